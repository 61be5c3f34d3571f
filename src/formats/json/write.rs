//! Writes rows as JSON objects, as Jackson does.

use std::io::Write as _;

use arrow::array::Array;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{EncodeOptions, MapNullKey, TimestampFormat, check_types};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::temporal::{write_clock, write_date, write_timestamp};
use crate::formats::text;
use crate::formats::view::{View, children, views};
use crate::types::Schema;
use crate::types::text::number;

/// Writes rows of one schema.
pub(crate) struct JsonWriter {
    schema: Schema,
    options: EncodeOptions,
}

impl JsonWriter {
    pub(crate) fn new(schema: &Schema, options: EncodeOptions) -> Result<Self> {
        check_types(schema)?;
        Ok(Self {
            schema: schema.clone(),
            options,
        })
    }

    /// The rows of a batch, ready to be written.
    pub(crate) fn rows<'a>(&'a self, batch: &'a ChangeBatch) -> Result<JsonRows<'a>> {
        let views = views(batch, &self.schema)?;
        let names = self.schema.columns.iter().map(|c| c.name.as_str());
        Ok(JsonRows {
            fields: names.zip(views).collect(),
            options: &self.options,
            scratch: String::new(),
        })
    }
}

/// The rows of one batch.
pub(crate) struct JsonRows<'a> {
    fields: Vec<(&'a str, View<'a>)>,
    options: &'a EncodeOptions,
    /// Memory for the text of one number.
    scratch: String,
}

impl JsonRows<'_> {
    /// Writes row `i` as an object.
    pub(crate) fn write(&mut self, i: usize, out: &mut Vec<u8>) -> Result<()> {
        write_object(&self.fields, i, self.options, &mut self.scratch, out)
    }
}

fn write_object(
    fields: &[(&str, View<'_>)],
    i: usize,
    options: &EncodeOptions,
    scratch: &mut String,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    let mut first = true;
    for (name, view) in fields {
        if options.ignore_null_fields && view.is_null(i) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_value(view, i, options, scratch, out)
            .map_err(|e| e.context(format!("field '{name}' of a row that is written as JSON")))?;
    }
    out.push(b'}');
    Ok(())
}

fn write_value(
    view: &View<'_>,
    i: usize,
    options: &EncodeOptions,
    scratch: &mut String,
    out: &mut Vec<u8>,
) -> Result<()> {
    if view.is_null(i) {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    let quoted = |out: &mut Vec<u8>, write: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'"');
        write(out);
        out.push(b'"');
    };
    match view {
        View::Null => out.extend_from_slice(b"null"),
        View::Boolean(a) => out.extend_from_slice(if a.value(i) { b"true" } else { b"false" }),
        View::TinyInt(a) => write_integer(a.value(i), out),
        View::SmallInt(a) => write_integer(a.value(i), out),
        View::Int(a) => write_integer(a.value(i), out),
        View::BigInt(a) => write_integer(a.value(i), out),
        View::Months(a) => write_integer(a.value(i), out),
        View::Millis(a) => write_integer(a.value(i), out),
        View::Float(a) => {
            scratch.clear();
            number::write_float(a.value(i), scratch);
            write_float_text(scratch, a.value(i).is_finite(), out);
        }
        View::Double(a) => {
            scratch.clear();
            number::write_double(a.value(i), scratch);
            write_float_text(scratch, a.value(i).is_finite(), out);
        }
        View::Decimal(a, scale) => {
            write_decimal(
                a.value(i),
                *scale,
                options.decimal_as_plain_number,
                scratch,
                out,
            );
        }
        View::String(a) => write_string(a.value(i), out),
        View::Binary(a) => {
            scratch.clear();
            STANDARD.encode_string(a.value(i), scratch);
            quoted(out, &|out| out.extend_from_slice(scratch.as_bytes()));
        }
        View::Date(a) => quoted(out, &|out| write_date(a.value(i).into(), out)),
        View::Time(a) => {
            let ms = a.value(i);
            let nano = u32::try_from(ms.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
            quoted(out, &|out| {
                write_clock(ms.div_euclid(1000).into(), nano, out)
            });
        }
        View::Timestamp(stamps, is_instant) => {
            let (seconds, nano) = stamps.get(i);
            let separator = match options.timestamp_format {
                TimestampFormat::Sql => b' ',
                TimestampFormat::Iso8601 => b'T',
            };
            quoted(out, &|out| {
                write_timestamp(seconds, nano, separator, out);
                if *is_instant {
                    out.push(b'Z');
                }
            });
        }
        View::List(a, element) => {
            out.push(b'[');
            for (n, child) in children(a.value_offsets(), i).enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_value(element, child, options, scratch, out)?;
            }
            out.push(b']');
        }
        View::Map(a, keys, values) => {
            write_map(
                children(a.value_offsets(), i),
                keys,
                values,
                options,
                scratch,
                out,
            )?;
        }
        View::Row(_, fields) => write_object(fields, i, options, scratch, out)?,
    }
    Ok(())
}

fn write_map(
    entries: std::ops::Range<usize>,
    keys: &View<'_>,
    values: &View<'_>,
    options: &EncodeOptions,
    scratch: &mut String,
    out: &mut Vec<u8>,
) -> Result<()> {
    let View::String(names) = keys else {
        return Err(Error::internal("the key of a JSON map is no string"));
    };
    out.push(b'{');
    let mut first = true;
    for i in entries {
        let name = if names.is_valid(i) {
            names.value(i)
        } else {
            match options.map_null_key {
                MapNullKey::Literal => options.map_null_key_literal.as_str(),
                MapNullKey::Drop => continue,
                MapNullKey::Fail => {
                    return Err(Error::format(
                        "JSON format doesn't support to serialize map data with null keys. You can drop null key entries or encode null in literals by specifying map-null-key.mode option.",
                    ));
                }
            }
        };
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_value(values, i, options, scratch, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// The digits of an integer.
pub(crate) fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// NaN and the infinities are no JSON numbers: they become strings.
fn write_float_text(text: &str, is_finite: bool, out: &mut Vec<u8>) {
    if is_finite {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_string(text, out);
    }
}

/// A decimal without trailing zeros, as `BigDecimal.toString` shows it (`1E+2`), or with all digits
/// of its scale.
pub(crate) fn write_decimal(
    unscaled: i128,
    scale: u8,
    plain: bool,
    scratch: &mut String,
    out: &mut Vec<u8>,
) {
    scratch.clear();
    if plain {
        number::write_decimal(unscaled, scale, scratch);
        out.extend_from_slice(scratch.as_bytes());
        return;
    }
    if unscaled == 0 {
        out.push(b'0');
        return;
    }
    let (mut unscaled, mut scale) = (unscaled, i32::from(scale));
    while unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    if let Ok(scale) = u8::try_from(scale) {
        number::write_big_decimal(unscaled, scale, scratch);
        out.extend_from_slice(scratch.as_bytes());
        return;
    }
    let digits = unscaled.unsigned_abs().to_string();
    if unscaled < 0 {
        out.push(b'-');
    }
    let (first, rest) = digits.split_at(1);
    out.extend_from_slice(first.as_bytes());
    if !rest.is_empty() {
        let _ = write!(out, ".{rest}");
    }
    let exponent = i32::try_from(rest.len()).unwrap_or(0) - scale;
    let _ = write!(out, "E+{exponent}");
}

/// Writes a string with its quotes.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (i, byte) in bytes.iter().enumerate() {
        if *byte >= 0x20 && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[written..i]);
        written = i + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            other => {
                let _ = write!(out, "\\u{other:04X}");
            }
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Writes a number, `true`, `false` or `null` as Jackson's tree does: a number with a fraction or
/// exponent goes through a double.
pub(super) fn write_tree_number(token: &[u8], out: &mut Vec<u8>) {
    let is_double = token
        .first()
        .is_some_and(|b| b.is_ascii_digit() || *b == b'-')
        && token.iter().any(|b| matches!(b, b'.' | b'e' | b'E'));
    let value = is_double
        .then(|| std::str::from_utf8(token).ok().and_then(text::parse_double))
        .flatten();
    match value {
        Some(value) => {
            let mut text = String::new();
            number::write_double(value, &mut text);
            write_float_text(&text, value.is_finite(), out);
        }
        None => out.extend_from_slice(token),
    }
}
