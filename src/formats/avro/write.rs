//! Columns to Avro's bytes.

use super::schema::Node;
use crate::error::{Error, Result};
use crate::formats::view::{View, children};

fn long(n: i64, out: &mut Vec<u8>) {
    let mut z = ((n << 1) ^ (n >> 63)).cast_unsigned();
    while z >= 0x80 {
        out.push(u8::try_from(z & 0x7f).unwrap_or(0) | 0x80);
        z >>= 7;
    }
    out.push(u8::try_from(z).unwrap_or(0));
}

fn length(len: usize, out: &mut Vec<u8>) {
    long(i64::try_from(len).unwrap_or(i64::MAX), out);
}

fn bytes(value: &[u8], out: &mut Vec<u8>) {
    length(value.len(), out);
    out.extend_from_slice(value);
}

/// Appends which branch of a union follows.
pub(super) fn branch(branch: usize, out: &mut Vec<u8>) {
    length(branch, out);
}

/// Appends a text as `node` says.
pub(super) fn text(node: &Node, value: &str, out: &mut Vec<u8>) -> Result<()> {
    match node {
        Node::String | Node::Bytes => bytes(value.as_bytes(), out),
        Node::Union(branches) => {
            let place = branches.iter().position(|b| *b == Node::String);
            let place = place.ok_or_else(|| no_fit(node))?;
            branch(place, out);
            bytes(value.as_bytes(), out);
        }
        _ => return Err(no_fit(node)),
    }
    Ok(())
}

fn no_fit(node: &Node) -> Error {
    Error::format(format!(
        "a column cannot be written as the Avro type {}",
        node.name()
    ))
}

/// Appends the fields of a record, taken by name from `columns`; those that have no column are NULL.
pub(super) fn write_record(
    fields: &[(String, Node)],
    columns: &[(&str, View<'_>)],
    i: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    for (name, node) in fields {
        let column = columns.iter().find(|(column, _)| column == name);
        let written = match column {
            Some((_, view)) => write(node, view, i, out),
            None => write(node, &View::Null, i, out),
        };
        written.map_err(|e| e.context(format!("field '{name}'")))?;
    }
    Ok(())
}

/// Appends value `i` of `view` as `node` says.
pub(super) fn write(node: &Node, view: &View<'_>, i: usize, out: &mut Vec<u8>) -> Result<()> {
    if let Node::Union(branches) = node {
        let is_null = view.is_null(i);
        let place = branches.iter().position(|b| (*b == Node::Null) == is_null);
        let place = place.ok_or_else(|| no_fit(node))?;
        branch(place, out);
        return write(&branches[place], view, i, out);
    }
    if *node == Node::Null {
        return Ok(());
    }
    if view.is_null(i) {
        return Err(Error::format(format!(
            "NULL cannot be written as the Avro type {}",
            node.name()
        )));
    }
    match (node, view) {
        (Node::Boolean, View::Boolean(a)) => out.push(a.value(i).into()),
        (Node::Float, View::Float(a)) => out.extend_from_slice(&a.value(i).to_le_bytes()),
        (Node::Double, View::Double(a)) => out.extend_from_slice(&a.value(i).to_le_bytes()),
        (Node::Double, View::Float(a)) => {
            out.extend_from_slice(&f64::from(a.value(i)).to_le_bytes());
        }
        (Node::String | Node::Bytes, View::String(a)) => bytes(a.value(i).as_bytes(), out),
        (Node::Bytes, View::Binary(a)) => bytes(a.value(i), out),
        (Node::Fixed(len), View::Binary(a)) if a.value(i).len() == *len => {
            out.extend_from_slice(a.value(i));
        }
        (Node::Enum(symbols), View::String(a)) => {
            let value = a.value(i);
            let symbol = symbols.iter().position(|s| s == value).ok_or_else(|| {
                Error::format(format!("'{value}' is none of the symbols of the Avro enum"))
            })?;
            length(symbol, out);
        }
        (Node::Decimal(scale, len), View::Decimal(a, own)) => {
            decimal(a.value(i), u32::from(*own), *scale, *len, out)?;
        }
        (Node::Array(items), View::List(list, element)) => {
            let range = children(list.value_offsets(), i);
            if !range.is_empty() {
                length(range.len(), out);
                for child in range {
                    write(items, element, child, out)?;
                }
            }
            long(0, out);
        }
        (Node::Map(values), View::Map(map, key, value)) => {
            let range = children(map.value_offsets(), i);
            if !range.is_empty() {
                length(range.len(), out);
                for child in range {
                    write(&Node::String, key, child, out)?;
                    write(values, value, child, out)?;
                }
            }
            long(0, out);
        }
        (Node::Record(fields), View::Row(_, columns)) => write_record(fields, columns, i, out)?,
        (node, view) => {
            let n = integer(node, view, i).ok_or_else(|| no_fit(node))?;
            long(n, out);
        }
    }
    Ok(())
}

/// The value as a number, if `node` is written as one.
fn integer(node: &Node, view: &View<'_>, i: usize) -> Option<i64> {
    let plain = match view {
        View::TinyInt(a) => Some(i64::from(a.value(i))),
        View::SmallInt(a) => Some(i64::from(a.value(i))),
        View::Int(a) => Some(i64::from(a.value(i))),
        View::BigInt(a) => Some(a.value(i)),
        View::Date(a) => Some(i64::from(a.value(i))),
        View::Time(a) => Some(i64::from(a.value(i))),
        _ => None,
    };
    match (node, view) {
        (Node::Int, View::BigInt(_)) => None,
        (Node::Int | Node::Long | Node::Date, _) => plain,
        (Node::TimeOfDay(per_second), View::Time(_)) => Some(plain? * (per_second / 1_000)),
        (Node::Timestamp(per_second), View::Timestamp(stamps, _)) => {
            let (seconds, nanos) = stamps.get(i);
            let part = i64::from(nanos) / (1_000_000_000 / per_second);
            seconds.checked_mul(*per_second)?.checked_add(part)
        }
        _ => None,
    }
}

fn decimal(value: i128, own: u32, scale: u32, len: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
    let too_large = || Error::format(format!("the decimal {value} does not fit its Avro type"));
    let value = if scale >= own {
        let factor = 10_i128.checked_pow(scale - own).ok_or_else(too_large)?;
        value.checked_mul(factor).ok_or_else(too_large)?
    } else {
        let factor = 10_i128.checked_pow(own - scale).ok_or_else(too_large)?;
        crate::types::cast::divide_half_up(value, factor)
    };
    let wide = value.to_be_bytes();
    // The fewest bytes that keep the sign.
    let fill = if value < 0 { 0xff } else { 0 };
    let mut start = 0;
    while start < 15 && wide[start] == fill && (wide[start + 1] & 0x80 == fill & 0x80) {
        start += 1;
    }
    let short = &wide[start..];
    match len {
        None => bytes(short, out),
        Some(len) if short.len() <= len => {
            out.extend(std::iter::repeat_n(fill, len - short.len()));
            out.extend_from_slice(short);
        }
        Some(_) => return Err(too_large()),
    }
    Ok(())
}
