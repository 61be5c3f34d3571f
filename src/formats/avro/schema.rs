//! Avro schemas: read from JSON, and made of a table's columns by Flink's rules.

use std::collections::BTreeMap;

use apache_avro::Schema as AvroSchema;
use apache_avro::schema::{InnerDecimalSchema, UuidSchema};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::types::{DataType, Schema, TypeKind};

/// Deepest nesting of a schema: of types, and of references when it is written out.
const DEPTH: usize = 64;

/// An Avro type, without names: what the bytes of a value look like.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    /// Scale, and the length if it is fixed.
    Decimal(u32, Option<usize>),
    /// 16 bytes that print as a UUID.
    Uuid,
    Date,
    /// Units of a second.
    TimeOfDay(i64),
    /// Units of a second since the epoch.
    Timestamp(i64),
    Array(Box<Node>),
    Map(Box<Node>),
    Union(Vec<Node>),
    Record(Vec<(String, Node)>),
}

impl Node {
    /// Reads a schema from its JSON text.
    ///
    /// # Errors
    /// When it is no schema, or one that refers to itself.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let schema = AvroSchema::parse_str(text)
            .map_err(|e| Error::format(format!("this is no Avro schema: {e}")))?;
        let mut names = BTreeMap::new();
        Self::of(&schema, &mut names, 0)
    }

    fn of(schema: &AvroSchema, names: &mut BTreeMap<String, Self>, depth: usize) -> Result<Self> {
        if depth > DEPTH {
            return Err(Error::format("the Avro schema is nested too deeply"));
        }
        let mut of = |schema: &AvroSchema| Self::of(schema, names, depth + 1);
        Ok(match schema {
            AvroSchema::Null => Self::Null,
            AvroSchema::Boolean => Self::Boolean,
            AvroSchema::Int => Self::Int,
            AvroSchema::Long => Self::Long,
            AvroSchema::Float => Self::Float,
            AvroSchema::Double => Self::Double,
            AvroSchema::Bytes | AvroSchema::BigDecimal => Self::Bytes,
            AvroSchema::String | AvroSchema::Uuid(UuidSchema::String) => Self::String,
            AvroSchema::Uuid(UuidSchema::Bytes) => Self::Bytes,
            AvroSchema::Uuid(UuidSchema::Fixed(fixed)) => {
                names.insert(fixed.name.to_string(), Self::Uuid);
                Self::Uuid
            }
            AvroSchema::Fixed(fixed) | AvroSchema::Duration(fixed) => {
                let node = Self::Fixed(fixed.size);
                names.insert(fixed.name.to_string(), node.clone());
                node
            }
            AvroSchema::Enum(symbols) => {
                let node = Self::Enum(symbols.symbols.clone());
                names.insert(symbols.name.to_string(), node.clone());
                node
            }
            AvroSchema::Decimal(decimal) => {
                let scale = u32::try_from(decimal.scale).unwrap_or(0);
                match &decimal.inner {
                    InnerDecimalSchema::Bytes => Self::Decimal(scale, None),
                    InnerDecimalSchema::Fixed(fixed) => {
                        let node = Self::Decimal(scale, Some(fixed.size));
                        names.insert(fixed.name.to_string(), node.clone());
                        node
                    }
                }
            }
            AvroSchema::Date => Self::Date,
            AvroSchema::TimeMillis => Self::TimeOfDay(1_000),
            AvroSchema::TimeMicros => Self::TimeOfDay(1_000_000),
            AvroSchema::TimestampMillis | AvroSchema::LocalTimestampMillis => {
                Self::Timestamp(1_000)
            }
            AvroSchema::TimestampMicros | AvroSchema::LocalTimestampMicros => {
                Self::Timestamp(1_000_000)
            }
            AvroSchema::TimestampNanos | AvroSchema::LocalTimestampNanos => {
                Self::Timestamp(1_000_000_000)
            }
            AvroSchema::Array(array) => Self::Array(Box::new(of(&array.items)?)),
            AvroSchema::Map(map) => Self::Map(Box::new(of(&map.types)?)),
            AvroSchema::Union(union) => {
                Self::Union(union.variants().iter().map(of).collect::<Result<_>>()?)
            }
            AvroSchema::Record(record) => {
                let fields = record.fields.iter();
                let fields = fields.map(|f| Ok((f.name.clone(), of(&f.schema)?)));
                let node = Self::Record(fields.collect::<Result<_>>()?);
                names.insert(record.name.to_string(), node.clone());
                node
            }
            AvroSchema::Ref { name } => names.get(&name.to_string()).cloned().ok_or_else(|| {
                Error::format(format!("the Avro schema '{name}' refers to itself"))
            })?,
        })
    }

    /// Its name, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Boolean => "boolean".into(),
            Self::Int => "int".into(),
            Self::Long => "long".into(),
            Self::Float => "float".into(),
            Self::Double => "double".into(),
            Self::Bytes => "bytes".into(),
            Self::String => "string".into(),
            Self::Fixed(n) => format!("fixed({n})"),
            Self::Enum(_) => "enum".into(),
            Self::Decimal(..) => "decimal".into(),
            Self::Uuid => "uuid".into(),
            Self::Date => "date".into(),
            Self::TimeOfDay(_) => "time".into(),
            Self::Timestamp(_) => "timestamp".into(),
            Self::Array(_) => "array".into(),
            Self::Map(_) => "map".into(),
            Self::Union(branches) => {
                let names: Vec<_> = branches.iter().map(Self::name).collect();
                format!("union of {}", names.join(" and "))
            }
            Self::Record(_) => "record".into(),
        }
    }
}

/// The schema, as JSON text, that Flink gives a table of these columns. With `legacy` timestamps
/// without a zone are Avro's instants.
///
/// # Errors
/// When Avro has no such type.
pub(super) fn derive(schema: &Schema, legacy: bool) -> Result<String> {
    let fields = schema.columns.iter();
    let fields = fields.map(|c| (c.name.as_str(), &c.data_type));
    Ok(record("record", fields, legacy)?.to_string())
}

/// The schema of Debezium's envelope around such rows.
///
/// # Errors
/// When Avro has no such type.
pub(super) fn derive_envelope(schema: &Schema, legacy: bool) -> Result<String> {
    let fields = schema.columns.iter().map(|c| crate::types::RowField {
        name: c.name.clone(),
        data_type: c.data_type.clone(),
    });
    let row = TypeKind::Row(fields.collect()).nullable();
    let op = TypeKind::STRING.nullable();
    let fields = [("before", &row), ("after", &row), ("op", &op)];
    Ok(record("record", fields.into_iter(), legacy)?.to_string())
}

fn record<'a>(
    name: &str,
    fields: impl Iterator<Item = (&'a str, &'a DataType)>,
    legacy: bool,
) -> Result<Value> {
    let fields = fields
        .map(|(field, t)| {
            let schema = derive_type(t, &format!("{name}_{field}"), legacy)?;
            Ok(if t.nullable {
                json!({"name": field, "type": schema, "default": null})
            } else {
                json!({"name": field, "type": schema})
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(json!({
        "type": "record",
        "name": name,
        "namespace": "org.apache.flink.avro.generated",
        "fields": fields,
    }))
}

fn derive_type(t: &DataType, name: &str, legacy: bool) -> Result<Value> {
    let logical = |base: &str, logical: &str| json!({"type": base, "logicalType": logical});
    let too_precise = |what: &str, limit: u8| {
        Err(Error::options(format!(
            "Avro does not support {what} type with precision: {}, it only supports precision less \
             than {limit}.",
            match t.kind {
                TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) | TypeKind::Time(p) => p,
                _ => 0,
            }
        )))
    };
    let schema = match &t.kind {
        TypeKind::Null => return Ok(json!("null")),
        TypeKind::Boolean => json!("boolean"),
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int => json!("int"),
        TypeKind::BigInt => json!("long"),
        TypeKind::Float => json!("float"),
        TypeKind::Double => json!("double"),
        TypeKind::Char(_) | TypeKind::VarChar(_) => json!("string"),
        TypeKind::Binary(_) | TypeKind::VarBinary(_) => json!("bytes"),
        TypeKind::Date => logical("int", "date"),
        TypeKind::Time(p) if *p <= 3 => logical("int", "time-millis"),
        TypeKind::Time(_) => return too_precise("TIME", 3),
        TypeKind::Timestamp(p) => match (legacy, *p) {
            (true, 0..=3) => logical("long", "timestamp-millis"),
            (true, _) => return too_precise("TIMESTAMP", 3),
            (false, 0..=3) => logical("long", "local-timestamp-millis"),
            (false, 4..=6) => logical("long", "local-timestamp-micros"),
            (false, _) => return too_precise("TIMESTAMP", 6),
        },
        TypeKind::TimestampLtz(p) => match (legacy, *p) {
            (true, _) => {
                return Err(
                    Error::options(format!("Unsupported to derive Schema for type: {t}"))
                        .hint("set 'avro.timestamp_mapping.legacy' = 'false'"),
                );
            }
            (false, 0..=3) => logical("long", "timestamp-millis"),
            (false, 4..=6) => logical("long", "timestamp-micros"),
            (false, _) => return too_precise("TIMESTAMP_LTZ", 6),
        },
        TypeKind::Decimal(p, s) => {
            json!({"type": "bytes", "logicalType": "decimal", "precision": p, "scale": s})
        }
        TypeKind::Row(fields) => {
            let fields = fields.iter().map(|f| (f.name.as_str(), &f.data_type));
            record(name, fields, legacy)?
        }
        TypeKind::Array(element) => {
            json!({"type": "array", "items": derive_type(element, name, legacy)?})
        }
        TypeKind::Map(key, value) if key.kind.is_string() => {
            json!({"type": "map", "values": derive_type(value, name, legacy)?})
        }
        TypeKind::Multiset(element) if element.kind.is_string() => {
            json!({"type": "map", "values": "int"})
        }
        TypeKind::Map(..) | TypeKind::Multiset(_) => {
            return Err(Error::options(format!(
                "Avro format doesn't support non-string as key type of map. The type is: {t}"
            )));
        }
        _ => {
            return Err(Error::options(format!(
                "Unsupported to derive Schema for type: {t}"
            )));
        }
    };
    Ok(if t.nullable {
        json!(["null", schema])
    } else {
        schema
    })
}
