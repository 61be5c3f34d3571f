//! Reads one JSON value into a column, with Flink's coercions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow::datatypes::ArrowPrimitiveType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiter::{Jiter, JiterError, NumberAny, NumberInt, Peek};

use super::write::{write_string, write_tree_number};
use super::{DecodeOptions, TimestampFormat};
use crate::error::Error;
use crate::formats::builder::{Bytes, ColumnBuilder, Ends, Primitive};
use crate::formats::text::{self, Decimal, Resolver, Seconds};

/// How deep values that are kept as text may nest.
const MAX_DEPTH: usize = 200;

/// Why a record could not be read.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is not JSON; the parser cannot go on.
    Syntax(String),
    /// A value does not fit its column; the parser stands behind it.
    Value {
        /// What it should have been.
        expected: &'static str,
        /// Where it is in the record.
        at: std::ops::Range<usize>,
        /// The names of the fields that lead to it, innermost first.
        path: Vec<String>,
    },
    /// Fields are missing and must not.
    Missing,
    /// The decoder does not know the column's type: a bug.
    Type,
}

pub(crate) fn syntax(e: JiterError) -> Failure {
    Failure::Syntax(e.to_string())
}

impl Failure {
    pub(crate) fn value(expected: &'static str, start: usize, end: usize) -> Self {
        Self::Value {
            expected,
            at: start..end,
            path: Vec::new(),
        }
    }

    /// The same in a record that begins `offset` bytes before what was read.
    pub(crate) fn shifted(mut self, offset: usize) -> Self {
        if let Self::Value { at, .. } = &mut self {
            *at = at.start + offset..at.end + offset;
        }
        self
    }

    pub(crate) fn in_field(mut self, name: &str) -> Self {
        if let Self::Value { path, .. } = &mut self {
            path.push(name.to_string());
        }
        self
    }

    /// The error for a person, who sees the record too.
    pub(crate) fn into_error(self, record: &[u8]) -> Error {
        let reason = match self {
            Self::Syntax(reason) => reason,
            Self::Value { expected, at, path } => {
                let value = record.get(at).map(String::from_utf8_lossy);
                let value = value.unwrap_or_default();
                let path: Vec<&str> = path.iter().rev().map(String::as_str).collect();
                format!(
                    "Fail to deserialize at field: {}. {value} is no {expected}",
                    path.join(".")
                )
            }
            Self::Missing => "Some field is missing in the JSON data.".into(),
            Self::Type => return Error::internal("a JSON value for a column of unknown type"),
        };
        Error::format(format!(
            "Failed to deserialize JSON '{}': {reason}",
            String::from_utf8_lossy(record)
        ))
    }
}

/// Reads values by the options of a format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) options: DecodeOptions,
}

impl Reader {
    pub(crate) fn new(options: DecodeOptions) -> Self {
        Self { options }
    }

    /// Reads an object at which the parser stands into row `row` of `fields`. On success every field
    /// has a value.
    pub(crate) fn row(
        self,
        jiter: &mut Jiter<'_>,
        fields: &mut [(String, ColumnBuilder)],
        row: usize,
    ) -> Result<(), Failure> {
        let mut key = jiter.known_object().map_err(syntax)?;
        let mut count = 0;
        let mut likely = 0;
        let mut is_repeated = false;
        while let Some(name) = key {
            // As Flink: what follows the last field that is missing is not looked at.
            let found = (count < fields.len())
                .then(|| find(fields, likely, name))
                .flatten();
            if let Some(i) = found {
                let peek = jiter.peek().map_err(syntax)?;
                let (name, column) = &mut fields[i];
                if column.len() > row {
                    column.truncate(row);
                    is_repeated = true;
                }
                self.value(jiter, peek, column)
                    .map_err(|f| f.in_field(name))?;
                count += 1;
                likely = i + 1;
            } else {
                jiter.next_skip().map_err(syntax)?;
            }
            key = jiter.next_key().map_err(syntax)?;
        }
        if count < fields.len() && self.options.fail_on_missing_field {
            return Err(Failure::Missing);
        }
        if count < fields.len() || is_repeated {
            for (_, column) in fields {
                if column.len() == row {
                    column.push_null();
                }
            }
        }
        Ok(())
    }

    /// Reads the value at which the parser stands; NULL if it does not fit and errors are ignored.
    pub(crate) fn value(
        self,
        jiter: &mut Jiter<'_>,
        peek: Peek,
        column: &mut ColumnBuilder,
    ) -> Result<(), Failure> {
        if peek == Peek::Null {
            jiter.known_null().map_err(syntax)?;
            column.push_null();
            return Ok(());
        }
        let before = column.len();
        match self.typed(jiter, peek, column) {
            Err(Failure::Value { .. }) if self.options.ignore_parse_errors => {
                column.truncate(before);
                column.push_null();
                Ok(())
            }
            result => result,
        }
    }

    fn typed(
        self,
        jiter: &mut Jiter<'_>,
        peek: Peek,
        column: &mut ColumnBuilder,
    ) -> Result<(), Failure> {
        match column {
            ColumnBuilder::Int(p) => integer(jiter, peek, p, "INT"),
            ColumnBuilder::BigInt(p) => integer(jiter, peek, p, "BIGINT"),
            ColumnBuilder::Months(p) => integer(jiter, peek, p, "INT"),
            ColumnBuilder::Millis(p) => integer(jiter, peek, p, "BIGINT"),
            ColumnBuilder::Double(p) => {
                if let Some(number) = number(jiter, peek)? {
                    p.push(number);
                    return Ok(());
                }
                scalar(jiter, peek, "DOUBLE", |t| {
                    text::parse_double(t).map(|v| p.push(v))
                })
            }
            ColumnBuilder::Float(p) => scalar(jiter, peek, "FLOAT", |t| {
                text::parse_float(t).map(|v| p.push(v))
            }),
            ColumnBuilder::TinyInt(p) => scalar(jiter, peek, "TINYINT", |t| {
                let value = text::parse_integer(text::java_trim(t), i8::MIN.into(), i8::MAX.into());
                i8::try_from(value?).ok().map(|v| p.push(v))
            }),
            ColumnBuilder::SmallInt(p) => scalar(jiter, peek, "SMALLINT", |t| {
                let value =
                    text::parse_integer(text::java_trim(t), i16::MIN.into(), i16::MAX.into());
                i16::try_from(value?).ok().map(|v| p.push(v))
            }),
            ColumnBuilder::String(b) => string(jiter, peek, b),
            ColumnBuilder::Boolean(values, nulls) => scalar(jiter, peek, "BOOLEAN", |t| {
                values.append(text::java_trim(t).eq_ignore_ascii_case("true"));
                nulls.append_non_null();
                Some(())
            }),
            ColumnBuilder::Decimal(p, precision, scale) => {
                let (precision, scale) = (*precision, *scale);
                let mut too_large = false;
                scalar(jiter, peek, "DECIMAL", |t| {
                    match text::parse_decimal(text::java_trim(t), precision, scale)? {
                        Decimal::Value(v) => p.push(v),
                        Decimal::TooLarge => too_large = true,
                    }
                    Some(())
                })?;
                if too_large {
                    column.push_null();
                }
                Ok(())
            }
            ColumnBuilder::Date(p) => scalar(jiter, peek, "DATE (yyyy-MM-dd)", |t| {
                text::parse_date(t).map(|v| p.push(v))
            }),
            ColumnBuilder::Time(p) => scalar(jiter, peek, "TIME (HH:mm:ss)", |t| {
                let ms = text::parse_clock(t)? / 1_000_000;
                i32::try_from(ms).ok().map(|v| p.push(v))
            }),
            ColumnBuilder::Timestamp(p, unit, is_instant) => {
                let (unit, is_instant) = (*unit, *is_instant);
                let format = self.options.timestamp_format;
                scalar(jiter, peek, expected_timestamp(format, is_instant), |t| {
                    let moment = timestamp(t, format, is_instant)?;
                    moment.in_unit(unit).map(|v| p.push(v))
                })
            }
            ColumnBuilder::Binary(b) => binary(jiter, peek, b),
            ColumnBuilder::List(ends, element) => self.list(jiter, peek, ends, element),
            ColumnBuilder::Map(ends, keys, values) => self.map(jiter, peek, ends, keys, values),
            ColumnBuilder::Row(nulls, fields) => {
                if peek != Peek::Object {
                    return Err(skip_as(jiter, peek, "object"));
                }
                self.row(jiter, fields, nulls.len())?;
                nulls.append_non_null();
                Ok(())
            }
            ColumnBuilder::Null(n) => {
                jiter.known_skip(peek).map_err(syntax)?;
                *n += 1;
                Ok(())
            }
        }
    }

    fn list(
        self,
        jiter: &mut Jiter<'_>,
        peek: Peek,
        ends: &mut Ends,
        element: &mut ColumnBuilder,
    ) -> Result<(), Failure> {
        if peek != Peek::Array {
            return Err(skip_as(jiter, peek, "array"));
        }
        let mut next = jiter.known_array().map_err(syntax)?;
        while let Some(peek) = next {
            self.value(jiter, peek, element)?;
            next = jiter.array_step().map_err(syntax)?;
        }
        ends.push(element.len());
        Ok(())
    }

    fn map(
        self,
        jiter: &mut Jiter<'_>,
        peek: Peek,
        ends: &mut Ends,
        keys: &mut ColumnBuilder,
        values: &mut ColumnBuilder,
    ) -> Result<(), Failure> {
        if peek != Peek::Object {
            return Err(skip_as(jiter, peek, "object"));
        }
        let first = keys.len();
        let mut key = jiter.known_object().map_err(syntax)?;
        while let Some(name) = key {
            let ColumnBuilder::String(names) = keys else {
                return Err(Failure::Type);
            };
            names.push(name.as_bytes());
            let peek = jiter.peek().map_err(syntax)?;
            self.value(jiter, peek, values)?;
            key = jiter.next_key().map_err(syntax)?;
        }
        keep_last(first, keys, values)?;
        ends.push(keys.len());
        Ok(())
    }
}

/// Of entries with the same key only the last stays.
fn keep_last(
    first: usize,
    keys: &mut ColumnBuilder,
    values: &mut ColumnBuilder,
) -> Result<(), Failure> {
    let ColumnBuilder::String(names) = &*keys else {
        return if keys.len() == first {
            Ok(())
        } else {
            Err(Failure::Type)
        };
    };
    let end = keys.len();
    let mut last: BTreeMap<&[u8], usize> = BTreeMap::new();
    for i in first..end {
        last.insert(names.get(i), i);
    }
    if last.len() == end - first {
        return Ok(());
    }
    let mut kept: Vec<usize> = last.into_values().collect();
    kept.sort_unstable();
    keys.retain_tail(first, &kept);
    values.retain_tail(first, &kept);
    Ok(())
}

/// The position of the field `name`: first where it is likely, in the order of the declaration.
fn find(fields: &[(String, ColumnBuilder)], likely: usize, name: &str) -> Option<usize> {
    if fields.get(likely).is_some_and(|(n, _)| n == name) {
        return Some(likely);
    }
    last_named(fields, name.as_bytes())
}

/// The position of the field `name`: the last of several of one name, as in a Java map.
pub(super) fn last_named(fields: &[(String, ColumnBuilder)], name: &[u8]) -> Option<usize> {
    fields.iter().rposition(|(n, _)| n.as_bytes() == name)
}

/// Passes a value of the wrong shape.
fn skip_as(jiter: &mut Jiter<'_>, peek: Peek, expected: &'static str) -> Failure {
    let start = jiter.current_index();
    match jiter.known_skip(peek) {
        Ok(()) => Failure::value(expected, start, jiter.current_index()),
        Err(e) => syntax(e),
    }
}

/// Hands the text of a scalar to `take`: of a string its content, else what stands there.
fn scalar(
    jiter: &mut Jiter<'_>,
    peek: Peek,
    expected: &'static str,
    take: impl FnOnce(&str) -> Option<()>,
) -> Result<(), Failure> {
    let start = jiter.current_index();
    let taken = match peek {
        Peek::Array | Peek::Object => return Err(skip_as(jiter, peek, expected)),
        Peek::String => take(jiter.known_str().map_err(syntax)?),
        _ => {
            jiter.known_skip(peek).map_err(syntax)?;
            std::str::from_utf8(jiter.slice_to_current(start))
                .ok()
                .and_then(take)
        }
    };
    taken.ok_or_else(|| Failure::value(expected, start, jiter.current_index()))
}

/// A number that a double holds as it stands; `None` without moving when it is no number.
fn number(jiter: &mut Jiter<'_>, peek: Peek) -> Result<Option<f64>, Failure> {
    if !peek.is_num() {
        return Ok(None);
    }
    let start = jiter.current_index();
    Ok(Some(match jiter.known_number(peek).map_err(syntax)? {
        NumberAny::Float(value) => value,
        #[expect(clippy::cast_precision_loss, reason = "rounds to the nearest double")]
        NumberAny::Int(NumberInt::Int(value)) if value != 0 => value as f64,
        NumberAny::Int(_) => std::str::from_utf8(jiter.slice_to_current(start))
            .ok()
            .and_then(text::parse_double)
            .unwrap_or(f64::NAN),
    }))
}

/// An integer; a number with a fraction loses it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "as Java: checked against the bounds as a double, then cut"
)]
fn integer<T>(
    jiter: &mut Jiter<'_>,
    peek: Peek,
    column: &mut Primitive<T>,
    expected: &'static str,
) -> Result<(), Failure>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i64> + Bounded,
{
    if !peek.is_num() {
        return scalar(jiter, peek, expected, |t| {
            let value = text::parse_integer(text::java_trim(t), T::Native::MIN, T::Native::MAX)?;
            T::Native::try_from(value).ok().map(|v| column.push(v))
        });
    }
    let start = jiter.current_index();
    let value = match jiter.known_number(peek).map_err(syntax)? {
        NumberAny::Int(NumberInt::Int(value)) => Some(value),
        NumberAny::Float(value)
            if value >= T::Native::MIN as f64 && value <= T::Native::MAX as f64 =>
        {
            Some(value as i64)
        }
        _ => None,
    };
    value
        .and_then(|v| T::Native::try_from(v).ok())
        .map(|v| column.push(v))
        .ok_or_else(|| Failure::value(expected, start, jiter.current_index()))
}

/// The bounds of an integer type, as `i64`.
trait Bounded {
    const MIN: i64;
    const MAX: i64;
}

impl Bounded for i32 {
    const MIN: i64 = i32::MIN as i64;
    const MAX: i64 = i32::MAX as i64;
}

impl Bounded for i64 {
    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;
}

fn expected_timestamp(format: TimestampFormat, is_instant: bool) -> &'static str {
    match (format, is_instant) {
        (TimestampFormat::Sql, false) => "TIMESTAMP (yyyy-MM-dd HH:mm:ss)",
        (TimestampFormat::Sql, true) => "TIMESTAMP_LTZ (yyyy-MM-dd HH:mm:ssZ)",
        (TimestampFormat::Iso8601, false) => "TIMESTAMP (yyyy-MM-ddTHH:mm:ss)",
        (TimestampFormat::Iso8601, true) => "TIMESTAMP_LTZ (yyyy-MM-ddTHH:mm:ssZ)",
    }
}

/// The moment that a text says in this format.
pub(super) fn timestamp(
    text: &str,
    format: TimestampFormat,
    is_instant: bool,
) -> Option<text::Instant> {
    let local = if is_instant {
        text.strip_suffix('Z')?
    } else {
        text
    };
    match format {
        TimestampFormat::Sql => text::timestamp(local, ' ', Seconds::Required, Resolver::Smart),
        TimestampFormat::Iso8601 => {
            let resolver = if is_instant {
                Resolver::Smart
            } else {
                Resolver::Strict
            };
            text::timestamp(local, 'T', Seconds::Optional, resolver)
        }
    }
}

fn binary(jiter: &mut Jiter<'_>, peek: Peek, column: &mut Bytes) -> Result<(), Failure> {
    let start = jiter.current_index();
    if peek != Peek::String {
        return Err(skip_as(jiter, peek, "base64 text"));
    }
    let text = jiter.known_str().map_err(syntax)?;
    let clean: Cow<'_, str> = if text.bytes().any(|b| b <= b' ') {
        text.chars().filter(|c| *c > ' ').collect::<String>().into()
    } else {
        text.into()
    };
    let decoded = STANDARD.decode_vec(clean.as_bytes(), column.data());
    if decoded.is_err() {
        return Err(Failure::value("base64 text", start, jiter.current_index()));
    }
    column.commit();
    Ok(())
}

fn string(jiter: &mut Jiter<'_>, peek: Peek, column: &mut Bytes) -> Result<(), Failure> {
    match peek {
        Peek::String => column.push(jiter.known_str().map_err(syntax)?.as_bytes()),
        Peek::Object | Peek::Array => {
            write_tree(jiter, peek, column.data(), 0)?;
            column.commit();
        }
        _ => {
            let start = jiter.current_index();
            jiter.known_skip(peek).map_err(syntax)?;
            column.push(jiter.slice_to_current(start));
        }
    }
    Ok(())
}

/// Writes the value at which the parser stands without blanks.
fn write_tree(
    jiter: &mut Jiter<'_>,
    peek: Peek,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), Failure> {
    if depth > MAX_DEPTH {
        return Err(Failure::Syntax("the value nests too deep".into()));
    }
    match peek {
        Peek::String => write_string(jiter.known_str().map_err(syntax)?, out),
        Peek::Array => {
            out.push(b'[');
            let mut next = jiter.known_array().map_err(syntax)?;
            let mut first = true;
            while let Some(peek) = next {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                write_tree(jiter, peek, out, depth + 1)?;
                next = jiter.array_step().map_err(syntax)?;
            }
            out.push(b']');
        }
        Peek::Object => {
            out.push(b'{');
            let mut key = jiter.known_object().map_err(syntax)?;
            let mut first = true;
            while let Some(name) = key {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                write_string(name, out);
                out.push(b':');
                let peek = jiter.peek().map_err(syntax)?;
                write_tree(jiter, peek, out, depth + 1)?;
                key = jiter.next_key().map_err(syntax)?;
            }
            out.push(b'}');
        }
        _ => {
            let start = jiter.current_index();
            jiter.known_skip(peek).map_err(syntax)?;
            write_tree_number(jiter.slice_to_current(start), out);
        }
    }
    Ok(())
}
