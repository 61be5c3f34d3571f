//! Writes the values of a column as JSON: objects with their keys in order.

use std::fmt::Write as _;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::json_tree::{write_number, write_string};
use super::time_form::{Local, TimeForm};
use crate::error::{Error, Result};
use crate::types::TypeKind;
use crate::types::calendar::civil_from_days;
use crate::types::text::number::{write_big_decimal, write_double};

/// How values of a type are written.
#[derive(Debug, Clone)]
pub(super) enum JsonForm {
    Null,
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal(u8),
    Text,
    /// JSON already.
    Raw,
    Bytes,
    Timestamp(TimeForm, &'static str),
    Array(Box<JsonForm>),
    /// Keys in quotes with a colon, in order, with their fields.
    Row(Vec<(String, usize, JsonForm)>),
    Map(Box<JsonForm>),
}

/// `key` in quotes and a colon.
pub(super) fn quoted_key(key: &str) -> String {
    let mut out = String::new();
    write_string(key, &mut out);
    out.push(':');
    out
}

impl JsonForm {
    /// The form of a type.
    ///
    /// # Errors
    /// When its values cannot be written as JSON.
    pub(super) fn new(kind: &TypeKind) -> Result<Self> {
        Ok(match kind {
            TypeKind::Null => Self::Null,
            TypeKind::Boolean => Self::Boolean,
            TypeKind::TinyInt => Self::TinyInt,
            TypeKind::SmallInt => Self::SmallInt,
            TypeKind::Int => Self::Int,
            TypeKind::BigInt => Self::BigInt,
            TypeKind::Float => Self::Float,
            TypeKind::Double => Self::Double,
            TypeKind::Decimal(_, scale) => Self::Decimal(*scale),
            TypeKind::Char(_) | TypeKind::VarChar(_) => Self::Text,
            TypeKind::Variant => Self::Raw,
            TypeKind::Binary(_) | TypeKind::VarBinary(_) => Self::Bytes,
            TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => {
                let form = TimeForm::utc(kind)
                    .ok_or_else(|| Error::internal(format!("{kind} is no timestamp")))?;
                let suffix = if matches!(kind, TypeKind::TimestampLtz(_)) {
                    "Z"
                } else {
                    ""
                };
                Self::Timestamp(form, suffix)
            }
            TypeKind::Array(element) => Self::Array(Box::new(Self::new(&element.kind)?)),
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                let mut forms = fields
                    .iter()
                    .enumerate()
                    .map(|(i, field)| Ok((&field.name, i, Self::new(&field.data_type.kind)?)))
                    .collect::<Result<Vec<_>>>()?;
                forms.sort_by_key(|(name, ..)| *name);
                Self::Row(
                    forms
                        .into_iter()
                        .map(|(name, i, form)| (quoted_key(name), i, form))
                        .collect(),
                )
            }
            TypeKind::Map(key, value) if key.kind.is_string() => {
                Self::Map(Box::new(Self::new(&value.kind)?))
            }
            TypeKind::Map(key, _) => {
                return Err(Error::plan(format!(
                    "Type '{key}' is not supported for JSON conversion. The key type must be a character string."
                )));
            }
            other => {
                return Err(Error::plan(format!(
                    "Type '{other}' is not scalar or cannot be converted into JSON."
                ))
                .hint("cast it to STRING"));
            }
        })
    }

    /// Appends the value in `row` of `array`.
    pub(super) fn write(&self, array: &dyn Array, row: usize, out: &mut String) {
        if array.is_null(row) {
            out.push_str("null");
            return;
        }
        match self {
            Self::Null => out.push_str("null"),
            Self::Boolean => {
                let value = array.as_boolean().value(row);
                out.push_str(if value { "true" } else { "false" });
            }
            Self::TinyInt => integer(array.as_primitive::<Int8Type>().value(row), out),
            Self::SmallInt => integer(array.as_primitive::<Int16Type>().value(row), out),
            Self::Int => integer(array.as_primitive::<Int32Type>().value(row), out),
            Self::BigInt => integer(array.as_primitive::<Int64Type>().value(row), out),
            Self::Float => {
                // as the DOUBLE that it is
                let value = f64::from(array.as_primitive::<Float32Type>().value(row));
                let mut text = String::new();
                write_double(value, &mut text);
                approximate(&text, value.is_finite(), out);
            }
            Self::Double => {
                let value = array.as_primitive::<Float64Type>().value(row);
                let mut text = String::new();
                write_double(value, &mut text);
                approximate(&text, value.is_finite(), out);
            }
            Self::Decimal(scale) => {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                write_big_decimal(value, *scale, out);
            }
            Self::Text => write_string(array.as_string::<i32>().value(row), out),
            Self::Raw => out.push_str(array.as_string::<i32>().value(row)),
            Self::Bytes => {
                out.push('"');
                STANDARD.encode_string(array.as_binary::<i32>().value(row), out);
                out.push('"');
            }
            Self::Timestamp(form, suffix) => {
                if let Some(value) = ticks(array, row) {
                    out.push('"');
                    write_iso(form.local(value), out);
                    out.push_str(suffix);
                    out.push('"');
                }
            }
            Self::Array(element) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                out.push('[');
                for at in offsets[row]..offsets[row + 1] {
                    if at > offsets[row] {
                        out.push(',');
                    }
                    element.write(list.values().as_ref(), at as usize, out);
                }
                out.push(']');
            }
            Self::Row(fields) => {
                let columns = array.as_struct();
                out.push('{');
                for (i, (key, at, form)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(key);
                    form.write(columns.column(*at).as_ref(), row, out);
                }
                out.push('}');
            }
            Self::Map(form) => {
                let map = array.as_map();
                let keys = map.keys().as_string::<i32>();
                let offsets = map.value_offsets();
                let mut places: Vec<_> =
                    (offsets[row] as usize..offsets[row + 1] as usize).collect();
                places.sort_by_key(|at| keys.value(*at));
                out.push('{');
                for (i, at) in places.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_string(keys.value(at), out);
                    out.push(':');
                    form.write(map.values().as_ref(), at, out);
                }
                out.push('}');
            }
        }
    }
}

fn integer(value: impl std::fmt::Display, out: &mut String) {
    let _ = write!(out, "{value}");
}

/// A floating-point number as Java shows it; what is no number is quoted.
fn approximate(text: &str, finite: bool, out: &mut String) {
    if finite {
        write_number(text, out);
    } else {
        write_string(text, out);
    }
}

/// The value of a timestamp of any unit.
fn ticks(array: &dyn Array, row: usize) -> Option<i64> {
    use arrow::datatypes::{
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    };
    if let Some(array) = array.as_primitive_opt::<TimestampMillisecondType>() {
        return Some(array.value(row));
    }
    if let Some(array) = array.as_primitive_opt::<TimestampMicrosecondType>() {
        return Some(array.value(row));
    }
    array
        .as_primitive_opt::<TimestampNanosecondType>()
        .map(|array| array.value(row))
}

/// `2024-01-02T03:04:05`, with a fraction if there is one.
fn write_iso(t: Local, out: &mut String) {
    let (year, month, day) = civil_from_days(t.days);
    let second = t.nanos / 1_000_000_000;
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    let nanos = t.nanos_of_second();
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}
