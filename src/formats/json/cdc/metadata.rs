//! What the envelopes tell of a change's origin.

use jiter::{Jiter, Peek};

use super::CdcFormat;
use crate::formats::builder::ColumnBuilder;
use crate::formats::json::{Failure, Reader, syntax};
use crate::formats::text::{self, Resolver, Seconds};
use crate::types::{DataType, TypeKind};

/// A metadata column.
#[derive(Debug)]
pub(super) struct Metadata {
    /// The key by which a table asks for it.
    pub(super) key: &'static str,
    /// The field of the envelope that holds it.
    pub(super) field: &'static str,
    /// Whether that field lies in the payload, when there is one.
    pub(super) in_payload: bool,
    value: Value,
}

/// What is made of the field.
#[derive(Debug, Clone, Copy)]
enum Value {
    Text,
    Strings,
    TextMap,
    IntMap,
    /// A number of units, so many ms each.
    Epoch(i64),
    /// A date and a time around this character, in UTC.
    Instant(char),
    /// A property of an object.
    Property(&'static str),
    /// A property that is a number of ms.
    EpochProperty(&'static str),
}

const fn of(key: &'static str, field: &'static str, value: Value) -> Metadata {
    Metadata {
        key,
        field,
        in_payload: true,
        value,
    }
}

static DEBEZIUM: [Metadata; 7] = [
    Metadata {
        key: "schema",
        field: "schema",
        in_payload: false,
        value: Value::Text,
    },
    of("ingestion-timestamp", "ts_ms", Value::Epoch(1)),
    of("source.timestamp", "source", Value::EpochProperty("ts_ms")),
    of("source.database", "source", Value::Property("db")),
    of("source.schema", "source", Value::Property("schema")),
    of("source.table", "source", Value::Property("table")),
    of("source.properties", "source", Value::TextMap),
];

static CANAL: [Metadata; 6] = [
    of("database", "database", Value::Text),
    of("table", "table", Value::Text),
    of("sql-type", "sqlType", Value::IntMap),
    of("pk-names", "pkNames", Value::Strings),
    of("ingestion-timestamp", "ts", Value::Epoch(1)),
    of("event-timestamp", "es", Value::Epoch(1)),
];

static MAXWELL: [Metadata; 4] = [
    of("database", "database", Value::Text),
    of("table", "table", Value::Text),
    of("primary-key-columns", "primary_key_columns", Value::Strings),
    of("ingestion-timestamp", "ts", Value::Epoch(1000)),
];

static OGG: [Metadata; 4] = [
    of("table", "table", Value::Text),
    of("primary-keys", "primary_keys", Value::Strings),
    of("ingestion-timestamp", "current_ts", Value::Instant('T')),
    of("event-timestamp", "op_ts", Value::Instant(' ')),
];

impl Metadata {
    pub(super) fn all(flavor: CdcFormat) -> &'static [Self] {
        match flavor {
            CdcFormat::Debezium => &DEBEZIUM,
            CdcFormat::Canal => &CANAL,
            CdcFormat::Maxwell => &MAXWELL,
            CdcFormat::Ogg => &OGG,
        }
    }

    pub(super) fn find(flavor: CdcFormat, key: &str) -> Option<&'static Self> {
        Self::all(flavor).iter().find(|m| m.key == key)
    }

    pub(super) fn data_type(&self) -> DataType {
        let string = || Box::new(TypeKind::STRING.nullable());
        match self.value {
            Value::Text | Value::Property(_) => TypeKind::STRING,
            Value::Strings => TypeKind::Array(string()),
            Value::TextMap => TypeKind::Map(string(), string()),
            Value::IntMap => TypeKind::Map(string(), Box::new(TypeKind::Int.nullable())),
            Value::Epoch(_) | Value::EpochProperty(_) => TypeKind::TimestampLtz(3),
            Value::Instant(_) => TypeKind::TimestampLtz(6),
        }
        .nullable()
    }

    /// Appends what the JSON text of the field means.
    pub(super) fn push(
        &self,
        value: Option<&[u8]>,
        reader: Reader,
        column: &mut ColumnBuilder,
    ) -> Result<(), Failure> {
        let Some(value) = value else {
            column.push_null();
            return Ok(());
        };
        let mut jiter = Jiter::new(value);
        let mut peek = jiter.peek().map_err(syntax)?;
        if let Value::Property(name) | Value::EpochProperty(name) = self.value {
            let Some(found) = property(&mut jiter, peek, name)? else {
                column.push_null();
                return Ok(());
            };
            peek = found;
        }
        let text = |jiter: &mut Jiter<'_>| -> Result<String, Failure> {
            if peek == Peek::String {
                return Ok(jiter.known_str().map_err(syntax)?.to_string());
            }
            let start = jiter.current_index();
            jiter.known_skip(peek).map_err(syntax)?;
            Ok(String::from_utf8_lossy(jiter.slice_to_current(start)).into_owned())
        };
        match (self.value, column) {
            (Value::Epoch(unit), ColumnBuilder::Timestamp(p, ..)) => {
                push_or_null(p, epoch(&text(&mut jiter)?, unit));
            }
            (Value::EpochProperty(_), ColumnBuilder::Timestamp(p, ..)) => {
                push_or_null(p, epoch(&text(&mut jiter)?, 1));
            }
            (Value::Instant(separator), ColumnBuilder::Timestamp(p, unit, _)) => {
                let text = text(&mut jiter)?;
                let moment = text::timestamp(&text, separator, Seconds::Optional, Resolver::Smart);
                push_or_null(p, moment.and_then(|m| m.in_unit(*unit)));
            }
            (_, column) => reader.value(&mut jiter, peek, column)?,
        }
        Ok(())
    }
}

fn push_or_null(
    column: &mut crate::formats::builder::Primitive<arrow::datatypes::Int64Type>,
    value: Option<i64>,
) {
    match value {
        Some(value) => column.push(value),
        None => column.push_null(),
    }
}

fn epoch(text: &str, unit: i64) -> Option<i64> {
    text::parse_integer(text::java_trim(text), i64::MIN, i64::MAX)?.checked_mul(unit)
}

/// Goes to the property `name` of the object at which the parser stands.
fn property(jiter: &mut Jiter<'_>, peek: Peek, name: &str) -> Result<Option<Peek>, Failure> {
    if peek != Peek::Object {
        return Ok(None);
    }
    let mut key = jiter.known_object().map_err(syntax)?;
    while let Some(found) = key {
        let is_it = found == name;
        let peek = jiter.peek().map_err(syntax)?;
        if is_it {
            return Ok(Some(peek));
        }
        jiter.known_skip(peek).map_err(syntax)?;
        key = jiter.next_key().map_err(syntax)?;
    }
    Ok(None)
}
