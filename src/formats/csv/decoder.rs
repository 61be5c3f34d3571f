//! Fields of a record to columns.

use arrow::datatypes::ArrowPrimitiveType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Settings;
use super::parse::Fields;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::formats::builder::{ColumnBuilder, Primitive};
use crate::formats::text::{self, Decimal, Resolver, Seconds};
use crate::formats::{DecodedColumns, Decoder, Rows};
use crate::types::calendar::days_from_civil;
use crate::types::{DataType, Schema, TypeKind};

pub(super) struct CsvDecoder {
    settings: Settings,
    /// Fields of a record.
    width: usize,
    /// The field of each column.
    projection: Vec<usize>,
    schema: Schema,
    rows: Rows,
    fields: Fields,
    skipped: u64,
}

/// Why a field cannot be read.
struct Unreadable(String);

impl CsvDecoder {
    pub(super) fn new(settings: Settings, columns: &DecodedColumns) -> Self {
        let schema = columns.produced();
        Self {
            settings,
            width: columns.schema.len(),
            projection: columns.projection.clone(),
            rows: Rows::new(&schema),
            schema,
            fields: Fields::default(),
            skipped: 0,
        }
    }

    fn read(&mut self, record: &[u8]) -> Result<(), String> {
        self.fields.parse(record, &self.settings.dialect)?;
        self.check_width(record)?;
        let row = self.rows.len();
        for (i, index) in self.projection.iter().enumerate() {
            let (name, column) = &mut self.rows.columns[i];
            let Some(field) = self
                .fields
                .get(record, *index)
                .filter(|_| *index < self.width)
            else {
                column.push_null();
                continue;
            };
            let data_type = &self.schema.columns[i].data_type;
            if let Err(Unreadable(reason)) = push_field(column, data_type, field, &self.settings) {
                if !self.settings.ignore_parse_errors {
                    return Err(format!("Fail to deserialize at field: {name}. {reason}"));
                }
                column.truncate(row);
                column.push_null();
            }
        }
        self.rows.commit(RowKind::Insert);
        Ok(())
    }

    fn check_width(&self, record: &[u8]) -> Result<(), String> {
        let found = self.fields.len();
        let settings = &self.settings;
        if found > self.width && !settings.ignore_trailing {
            let last = self.fields.get(record, self.width).unwrap_or_default();
            let is_trailing_comma =
                settings.allow_trailing_comma && found == self.width + 1 && last.is_empty();
            if !is_trailing_comma {
                return Err(format!(
                    "Too many entries: expected at most {}, but '{}' follows",
                    self.width,
                    String::from_utf8_lossy(last)
                ));
            }
        }
        if found < self.width && settings.fail_on_missing_columns {
            return Err(format!(
                "Not enough column values: expected {}, found {found}",
                self.width
            ));
        }
        // As Flink, which looks at the columns that the query needs.
        if found < self.projection.len() && !settings.ignore_parse_errors {
            return Err(format!(
                "Row length mismatch. {} fields expected but was {found}.",
                self.projection.len()
            ));
        }
        Ok(())
    }
}

impl Decoder for CsvDecoder {
    fn decode(&mut self, record: &[u8]) -> Result<()> {
        let start = self.settings.dialect.skip_comments(record, true);
        let record = &record[start.unwrap_or(0)..];
        if self.settings.dialect.comments && record.is_empty() {
            return Ok(());
        }
        let before = self.rows.len();
        if let Err(reason) = self.read(record) {
            self.rows.truncate(before);
            if !self.settings.ignore_parse_errors {
                return Err(Error::format(format!(
                    "Failed to deserialize CSV row '{}': {reason}",
                    String::from_utf8_lossy(record)
                )));
            }
            self.skipped += 1;
        }
        Ok(())
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn bytes_used(&self) -> usize {
        self.rows.bytes_used()
    }

    fn finish(&mut self) -> Result<ChangeBatch> {
        self.rows.finish()
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// Appends a field: NULL, an array or row cut at the element delimiter, or a scalar.
fn push_field(
    column: &mut ColumnBuilder,
    data_type: &DataType,
    field: &[u8],
    settings: &Settings,
) -> Result<(), Unreadable> {
    if is_null(field, settings) {
        column.push_null();
        return Ok(());
    }
    let text = std::str::from_utf8(field).map_err(|_| Unreadable("it is not UTF-8".into()))?;
    match (column, &data_type.kind) {
        (ColumnBuilder::List(ends, child), TypeKind::Array(element)) => {
            for part in elements(text, settings) {
                push_element(child, element, part, settings)?;
            }
            ends.push(child.len());
            Ok(())
        }
        (ColumnBuilder::Row(nulls, children), TypeKind::Row(fields)) => {
            let row = nulls.len();
            let mut parts = elements(text, settings);
            for ((_, child), field) in children.iter_mut().zip(fields) {
                match parts.next() {
                    Some(part) => push_element(child, &field.data_type, part, settings)?,
                    None if settings.ignore_parse_errors => child.push_null(),
                    None => {
                        return Err(Unreadable(format!(
                            "Row length mismatch. {} fields expected but was {}.",
                            fields.len(),
                            elements(text, settings).count()
                        )));
                    }
                }
            }
            if text.is_empty() {
                for (_, child) in children.iter_mut() {
                    child.truncate(row);
                    child.push_null();
                }
            }
            nulls.append(!text.is_empty());
            Ok(())
        }
        (column, _) => push_scalar(column, data_type, text),
    }
}

fn is_null(field: &[u8], settings: &Settings) -> bool {
    settings.empty_string_as_null && field.is_empty()
        || settings
            .null_literal
            .as_ref()
            .is_some_and(|null| null.as_bytes() == field)
}

/// The elements of an array; none of an empty text.
fn elements<'a>(text: &'a str, settings: &'a Settings) -> impl Iterator<Item = &'a str> {
    text.split(&settings.array_delimiter)
        .filter(|_| !text.is_empty())
        .map(|part| {
            if settings.dialect.trim {
                text::java_trim(part)
            } else {
                part
            }
        })
}

fn push_element(
    column: &mut ColumnBuilder,
    data_type: &DataType,
    text: &str,
    settings: &Settings,
) -> Result<(), Unreadable> {
    if settings.null_literal.as_deref() == Some(text) {
        column.push_null();
        return Ok(());
    }
    let before = column.len();
    let result = push_scalar(column, data_type, text);
    if result.is_err() && settings.ignore_parse_errors {
        column.truncate(before);
        column.push_null();
        return Ok(());
    }
    result
}

fn push_scalar(
    column: &mut ColumnBuilder,
    data_type: &DataType,
    text: &str,
) -> Result<(), Unreadable> {
    scalar(column, data_type, text)
        .ok_or_else(|| Unreadable(format!("'{text}' is no {}", data_type.kind)))
}

fn scalar(column: &mut ColumnBuilder, data_type: &DataType, text: &str) -> Option<()> {
    fn integer<T>(p: &mut Primitive<T>, text: &str, min: i64, max: i64) -> Option<()>
    where
        T: ArrowPrimitiveType,
        T::Native: TryFrom<i64>,
    {
        let value = text::parse_integer(text::java_trim(text), min, max)?;
        p.push(T::Native::try_from(value).ok()?);
        Some(())
    }
    match column {
        ColumnBuilder::String(b) => b.push(text.as_bytes()),
        ColumnBuilder::Boolean(values, nulls) => {
            values.append(text::java_trim(text).eq_ignore_ascii_case("true"));
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
        ColumnBuilder::Date(p) => p.push(parse_sql_date(text)?),
        ColumnBuilder::Time(p) => {
            let TypeKind::Time(precision) = data_type.kind else {
                return None;
            };
            let unit = 10i64.pow(3u32.saturating_sub(precision.into()));
            let ms = text::parse_time(text)? / 1_000_000;
            p.push(i32::try_from(ms / unit * unit).ok()?);
        }
        ColumnBuilder::Timestamp(p, unit, is_instant) => {
            let text = text::java_trim(text);
            let text = if *is_instant {
                text.strip_suffix('Z')?
            } else {
                text
            };
            let moment = text::timestamp(text, ' ', Seconds::Required, Resolver::Smart)?;
            p.push(moment.in_unit(*unit)?);
        }
        ColumnBuilder::Binary(b) => {
            let clean: String = text.chars().filter(|c| *c > ' ').collect();
            STANDARD.decode_vec(clean.as_bytes(), b.data()).ok()?;
            b.commit();
        }
        ColumnBuilder::Null(_) => column.push_null(),
        _ => return None,
    }
    Some(())
}

/// `java.sql.Date.valueOf`: `2024-1-31`; a day after the month's last runs over.
fn parse_sql_date(text: &str) -> Option<i32> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let part = |text: &str, max: i64| {
        let value = text::parse_integer(text, 1, max)?;
        (text.len() <= 2 && text.as_bytes()[0].is_ascii_digit())
            .then(|| u32::try_from(value).ok())
            .flatten()
    };
    if year.len() != 4 || !year.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (month, day) = (part(month, 12)?, part(day, 31)?);
    i32::try_from(days_from_civil(year.parse().ok()?, month, day)).ok()
}
