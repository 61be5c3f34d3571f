//! Avro's bytes to columns: a writer's schema and the wanted columns are compiled to a [`Plan`] once;
//! values then go from the bytes into their columns, and what nobody wants is stepped over.

use super::schema::Node;
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::types::{DataType, TypeKind};
use arrow::datatypes::TimeUnit;

/// What is done with the bytes of a value.
#[derive(Debug)]
pub(super) enum Plan {
    /// They are stepped over.
    Skip(Node),
    /// A value without parts.
    Scalar(Node),
    /// One of several.
    Union(Vec<Plan>),
    /// The fields, in the order of the bytes, with their places in the row; and the places of those
    /// that the writer does not have.
    Row(Vec<(Plan, Option<usize>)>, Vec<usize>),
    List(Box<Plan>),
    Map(Box<Plan>),
}

impl Plan {
    /// The plan for reading values that were written as `node` into columns of type `target`.
    ///
    /// # Errors
    /// When a type does not fit; `path` names the column.
    pub(super) fn new(node: &Node, target: Option<&DataType>, path: &str) -> Result<Self> {
        let Some(target) = target else {
            return Ok(Self::Skip(node.clone()));
        };
        match (node, &target.kind) {
            (Node::Union(branches), _) => {
                let plans = branches.iter().map(|branch| match branch {
                    Node::Null => Ok(Self::Scalar(Node::Null)),
                    other => Self::new(other, Some(target), path),
                });
                Ok(Self::Union(plans.collect::<Result<_>>()?))
            }
            (Node::Record(fields), TypeKind::Row(columns)) => {
                let names = columns.iter().map(|c| (c.name.as_str(), &c.data_type));
                Self::row(fields, &names.collect::<Vec<_>>(), path)
            }
            (Node::Array(items), TypeKind::Array(element)) => {
                Ok(Self::List(Box::new(Self::new(items, Some(element), path)?)))
            }
            (Node::Map(values), TypeKind::Map(key, value)) if key.kind.is_string() => {
                Ok(Self::Map(Box::new(Self::new(values, Some(value), path)?)))
            }
            (Node::Map(values), TypeKind::Multiset(element)) if element.kind.is_string() => {
                let count = TypeKind::Int.not_null();
                Ok(Self::Map(Box::new(Self::new(values, Some(&count), path)?)))
            }
            _ if fits(node, &target.kind) => Ok(Self::Scalar(node.clone())),
            _ => Err(Error::format(format!(
                "the Avro type {} of '{path}' cannot be read as {target}",
                node.name()
            ))),
        }
    }

    /// The plan for the fields of a record.
    pub(super) fn row(
        fields: &[(String, Node)],
        columns: &[(&str, &DataType)],
        path: &str,
    ) -> Result<Self> {
        let plans = fields
            .iter()
            .map(|(name, node)| {
                let place = columns.iter().position(|(column, _)| column == name);
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                let plan = Self::new(node, place.map(|i| columns[i].1), &path)?;
                Ok((plan, place))
            })
            .collect::<Result<_>>()?;
        let is_missing = |i: &usize| !fields.iter().any(|(name, _)| name == columns[*i].0);
        Ok(Self::Row(
            plans,
            (0..columns.len()).filter(is_missing).collect(),
        ))
    }
}

impl Plan {
    /// Steps over the bytes of a value.
    pub(super) fn step_over(&self, input: &mut Input<'_>) -> Result<()> {
        match self {
            Self::Skip(node) | Self::Scalar(node) => input.skip(node),
            Self::Union(branches) => {
                let branch = input.branch(branches.len())?;
                branches[branch].step_over(input)
            }
            Self::Row(fields, _) => fields
                .iter()
                .try_for_each(|(plan, _)| plan.step_over(input)),
            Self::List(items) => input.blocks(|input| items.step_over(input)),
            Self::Map(values) => input.blocks(|input| {
                input.bytes()?;
                values.step_over(input)
            }),
        }
    }
}

/// Whether a value of `node` can be put into a column of `kind`.
fn fits(node: &Node, kind: &TypeKind) -> bool {
    use TypeKind as T;
    match node {
        Node::Null => true,
        Node::Boolean => *kind == T::Boolean,
        Node::Int => {
            kind.is_integer() || kind.is_approximate() || matches!(kind, T::Date | T::Time(_))
        }
        Node::Long => {
            kind.is_integer()
                || kind.is_approximate()
                || matches!(kind, T::Timestamp(_) | T::TimestampLtz(_))
        }
        Node::Float => kind.is_approximate(),
        Node::Double => *kind == T::Double,
        Node::Bytes | Node::String => kind.is_string() || kind.is_binary(),
        Node::Fixed(_) => kind.is_binary(),
        Node::Enum(_) | Node::Uuid => kind.is_string(),
        Node::Decimal(..) => matches!(kind, T::Decimal(..)),
        Node::Date => matches!(kind, T::Date | T::Int),
        Node::TimeOfDay(_) => matches!(kind, T::Time(_)),
        Node::Timestamp(_) => matches!(kind, T::Timestamp(_) | T::TimestampLtz(_) | T::BigInt),
        Node::Array(_) | Node::Map(_) | Node::Union(_) | Node::Record(_) => false,
    }
}

/// The bytes that are left of a record.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

fn ends() -> Error {
    Error::format("the Avro record ends too early")
}

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(ends)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| ends())
    }

    pub(super) fn long(&mut self) -> Result<i64> {
        let mut n = 0_u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            n |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                let magnitude = i64::try_from(n >> 1).unwrap_or(i64::MAX);
                return Ok(magnitude ^ -i64::from(n & 1 == 1));
            }
        }
        Err(Error::format("a number in the Avro record does not end"))
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.long()?;
        self.take(usize::try_from(len).map_err(|_| ends())?)
    }

    pub(super) fn branch(&mut self, len: usize) -> Result<usize> {
        let index = self.long()?;
        usize::try_from(index)
            .ok()
            .filter(|i| *i < len)
            .ok_or_else(|| Error::format(format!("{index} is no branch of the Avro type")))
    }

    /// The number of items of the next block of an array or a map; 0 at the end.
    fn block(&mut self) -> Result<usize> {
        let mut count = self.long()?;
        if count < 0 {
            self.long()?;
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        // No record that anybody writes has items without bytes.
        if count > self.0.len() {
            return Err(ends());
        }
        Ok(count)
    }

    /// A text.
    pub(super) fn text(&mut self, node: &Node) -> Result<String> {
        match node {
            Node::String => Ok(String::from_utf8_lossy(self.bytes()?).into_owned()),
            Node::Enum(symbols) => Ok(symbols[self.branch(symbols.len())?].clone()),
            Node::Union(branches) => {
                let branch = self.branch(branches.len())?;
                self.text(&branches[branch])
            }
            other => Err(Error::format(format!("{} instead of a text", other.name()))),
        }
    }

    fn skip(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Null => {}
            Node::Boolean => {
                self.take(1)?;
            }
            Node::Int
            | Node::Long
            | Node::Enum(_)
            | Node::Date
            | Node::TimeOfDay(_)
            | Node::Timestamp(_) => {
                self.long()?;
            }
            Node::Float => {
                self.take(4)?;
            }
            Node::Double => {
                self.take(8)?;
            }
            Node::Bytes | Node::String | Node::Decimal(_, None) => {
                self.bytes()?;
            }
            Node::Fixed(len) | Node::Decimal(_, Some(len)) => {
                self.take(*len)?;
            }
            Node::Uuid => {
                self.take(16)?;
            }
            Node::Array(items) => self.blocks(|input| input.skip(items))?,
            Node::Map(values) => self.blocks(|input| {
                input.bytes()?;
                input.skip(values)
            })?,
            Node::Union(branches) => {
                let branch = self.branch(branches.len())?;
                self.skip(&branches[branch])?;
            }
            Node::Record(fields) => {
                for (_, field) in fields {
                    self.skip(field)?;
                }
            }
        }
        Ok(())
    }

    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        loop {
            let count = self.block()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                item(self)?;
            }
        }
    }
}

/// Reads one value into `column`.
///
/// # Errors
/// When the bytes are not what the schema says, or a value does not fit.
pub(super) fn read(plan: &Plan, input: &mut Input<'_>, column: &mut ColumnBuilder) -> Result<()> {
    match plan {
        Plan::Skip(node) => input.skip(node),
        Plan::Scalar(node) => scalar(node, input, column),
        Plan::Union(branches) => {
            let branch = input.branch(branches.len())?;
            read(&branches[branch], input, column)
        }
        Plan::Row(..) => {
            let ColumnBuilder::Row(nulls, fields) = column else {
                return Err(mismatch());
            };
            read_row(plan, input, fields)?;
            nulls.append_non_null();
            Ok(())
        }
        Plan::List(items) => {
            let ColumnBuilder::List(ends, element) = column else {
                return Err(mismatch());
            };
            input.blocks(|input| read(items, input, element))?;
            ends.push(element.len());
            Ok(())
        }
        Plan::Map(values) => {
            let ColumnBuilder::Map(ends, key, value) = column else {
                return Err(mismatch());
            };
            input.blocks(|input| {
                scalar(&Node::String, input, key)?;
                read(values, input, value)
            })?;
            ends.push(key.len());
            Ok(())
        }
    }
}

/// Reads the fields of a record into columns.
pub(super) fn read_row(
    plan: &Plan,
    input: &mut Input<'_>,
    columns: &mut [(String, ColumnBuilder)],
) -> Result<()> {
    let Plan::Row(fields, missing) = plan else {
        return Err(mismatch());
    };
    for (plan, place) in fields {
        match (place, plan) {
            (Some(place), plan) => {
                let (_, column) = columns.get_mut(*place).ok_or_else(mismatch)?;
                read(plan, input, column)?;
            }
            (None, Plan::Skip(node)) => input.skip(node)?,
            (None, _) => return Err(mismatch()),
        }
    }
    for place in missing {
        let (_, column) = columns.get_mut(*place).ok_or_else(mismatch)?;
        column.push_null();
    }
    Ok(())
}

fn mismatch() -> Error {
    Error::internal("a plan for columns of other types")
}

fn too_large(value: impl std::fmt::Display) -> Error {
    Error::format(format!("{value} is out of the range of its column"))
}

fn integer(n: i64, per_second: i64, column: &mut ColumnBuilder) -> Result<()> {
    match column {
        ColumnBuilder::TinyInt(p) => p.push(i8::try_from(n).map_err(|_| too_large(n))?),
        ColumnBuilder::SmallInt(p) => p.push(i16::try_from(n).map_err(|_| too_large(n))?),
        ColumnBuilder::Int(p) => p.push(i32::try_from(n).map_err(|_| too_large(n))?),
        ColumnBuilder::BigInt(p) => p.push(n),
        #[allow(clippy::cast_precision_loss)]
        ColumnBuilder::Float(p) => p.push(n as f32),
        #[allow(clippy::cast_precision_loss)]
        ColumnBuilder::Double(p) => p.push(n as f64),
        ColumnBuilder::Date(p) => p.push(i32::try_from(n).map_err(|_| too_large(n))?),
        ColumnBuilder::Time(p) => {
            let ms = n / (per_second / 1_000).max(1);
            p.push(i32::try_from(ms).map_err(|_| too_large(n))?);
        }
        ColumnBuilder::Timestamp(p, unit, _) => {
            let wanted: i64 = match unit {
                TimeUnit::Second => 1,
                TimeUnit::Millisecond => 1_000,
                TimeUnit::Microsecond => 1_000_000,
                TimeUnit::Nanosecond => 1_000_000_000,
            };
            p.push(if wanted >= per_second {
                n.checked_mul(wanted / per_second)
                    .ok_or_else(|| too_large(n))?
            } else {
                n.div_euclid(per_second / wanted)
            });
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn scalar(node: &Node, input: &mut Input<'_>, column: &mut ColumnBuilder) -> Result<()> {
    match node {
        Node::Null => {
            column.push_null();
            Ok(())
        }
        Node::Boolean => {
            let [byte] = input.array()?;
            let ColumnBuilder::Boolean(values, nulls) = column else {
                return Err(mismatch());
            };
            values.append(byte != 0);
            nulls.append_non_null();
            Ok(())
        }
        Node::Int | Node::Long | Node::Date => integer(input.long()?, 1_000, column),
        Node::TimeOfDay(per_second) | Node::Timestamp(per_second) => {
            integer(input.long()?, *per_second, column)
        }
        Node::Float => {
            let value = f32::from_le_bytes(input.array()?);
            match column {
                ColumnBuilder::Float(p) => p.push(value),
                ColumnBuilder::Double(p) => p.push(value.into()),
                _ => return Err(mismatch()),
            }
            Ok(())
        }
        Node::Double => {
            let ColumnBuilder::Double(p) = column else {
                return Err(mismatch());
            };
            p.push(f64::from_le_bytes(input.array()?));
            Ok(())
        }
        Node::Bytes | Node::String => {
            let bytes = input.bytes()?;
            text(bytes, column)
        }
        Node::Fixed(len) => {
            let bytes = input.take(*len)?;
            text(bytes, column)
        }
        Node::Uuid => {
            let value = u128::from_be_bytes(input.array()?);
            let hex = format!("{value:032x}");
            let parts = [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..],
            ];
            text(parts.join("-").as_bytes(), column)
        }
        Node::Enum(symbols) => {
            let symbol = input.branch(symbols.len())?;
            text(symbols[symbol].as_bytes(), column)
        }
        Node::Decimal(scale, len) => {
            let bytes = match len {
                Some(len) => input.take(*len)?,
                None => input.bytes()?,
            };
            decimal(bytes, *scale, column)
        }
        Node::Array(_) | Node::Map(_) | Node::Union(_) | Node::Record(_) => Err(mismatch()),
    }
}

fn text(bytes: &[u8], column: &mut ColumnBuilder) -> Result<()> {
    match column {
        ColumnBuilder::Binary(b) => b.push(bytes),
        ColumnBuilder::String(b) => match std::str::from_utf8(bytes) {
            Ok(text) => b.push(text.as_bytes()),
            Err(_) => return Err(Error::format("a string of the Avro record is not UTF-8")),
        },
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn decimal(bytes: &[u8], scale: u32, column: &mut ColumnBuilder) -> Result<()> {
    let ColumnBuilder::Decimal(p, precision, wanted) = column else {
        return Err(mismatch());
    };
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let (rest, low) = bytes.split_at(bytes.len().saturating_sub(16));
    if rest.iter().any(|b| *b != fill) {
        return Err(too_large("a decimal"));
    }
    let mut wide = [fill; 16];
    wide[16 - low.len()..].copy_from_slice(low);
    let value = i128::from_be_bytes(wide);
    let wanted = u32::from(*wanted);
    let value = if wanted >= scale {
        let factor = 10_i128.checked_pow(wanted - scale);
        factor.and_then(|f| value.checked_mul(f))
    } else {
        let factor = 10_i128.checked_pow(scale - wanted);
        factor.map(|f| crate::types::cast::divide_half_up(value, f))
    };
    let limit = 10_i128
        .checked_pow(u32::from(*precision))
        .unwrap_or(i128::MAX);
    match value.filter(|v| v.unsigned_abs() < limit.unsigned_abs()) {
        Some(value) => p.push(value),
        // As in Flink, a decimal that does not fit is NULL.
        None => p.push_null(),
    }
    Ok(())
}
