//! The values in a line of `changelog` data.

use crate::error::{Error, Result};
use crate::formats::builder::{ColumnBuilder, Primitive};
use crate::formats::json;
use crate::formats::text::{self, Decimal};
use arrow::datatypes::ArrowPrimitiveType;

/// Appends the value that `text` stands for; `None` when it is malformed.
fn push(column: &mut ColumnBuilder, text: &str) -> Option<()> {
    fn integer<T>(p: &mut Primitive<T>, text: &str, min: i64, max: i64) -> Option<()>
    where
        T: ArrowPrimitiveType,
        T::Native: TryFrom<i64>,
    {
        p.push(text::parse_integer(text, min, max).and_then(|v| T::Native::try_from(v).ok())?);
        Some(())
    }
    if let ColumnBuilder::String(b) = column {
        b.push(text.as_bytes());
        return Some(());
    }
    let text = text::java_trim(text);
    match column {
        ColumnBuilder::Boolean(values, nulls) => {
            values.append(text.eq_ignore_ascii_case("true"));
            nulls.append_non_null();
        }
        ColumnBuilder::TinyInt(p) => integer(p, text, i8::MIN.into(), i8::MAX.into())?,
        ColumnBuilder::SmallInt(p) => integer(p, text, i16::MIN.into(), i16::MAX.into())?,
        ColumnBuilder::Int(p) => integer(p, text, i32::MIN.into(), i32::MAX.into())?,
        ColumnBuilder::BigInt(p) => integer(p, text, i64::MIN, i64::MAX)?,
        ColumnBuilder::Float(p) => p.push(text::parse_float(text)?),
        ColumnBuilder::Double(p) => p.push(text::parse_double(text)?),
        ColumnBuilder::Decimal(p, precision, scale) => {
            match text::parse_decimal(text, *precision, *scale)? {
                Decimal::Value(v) => p.push(v),
                Decimal::TooLarge => column.push_null(),
            }
        }
        ColumnBuilder::Date(p) => p.push(text::parse_date(text)?),
        ColumnBuilder::Time(p) => {
            p.push(i32::try_from(text::parse_time(text)? / 1_000_000).ok()?);
        }
        ColumnBuilder::Timestamp(p, unit, _) => {
            p.push(text::parse_timestamp(text, 'T')?.in_unit(*unit)?);
        }
        ColumnBuilder::List(..) | ColumnBuilder::Map(..) | ColumnBuilder::Row(..) => {
            return json::push_text(column, text);
        }
        _ => return None,
    }
    Some(())
}

/// Appends the value that `text` stands for; `\N` is NULL.
///
/// # Errors
/// When the text is not a value of the type.
pub(super) fn append(column: &mut ColumnBuilder, text: &str) -> Result<()> {
    if text == "\\N" {
        column.push_null();
        return Ok(());
    }
    push(column, text).ok_or_else(|| Error::format(format!("malformed value '{text}'")))
}
