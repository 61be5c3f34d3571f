//! Messages to columns.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};

use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;

/// Appends a field of `message`; one that is not set is NULL if the message can tell, unless
/// `defaults`.
pub(super) fn field(
    message: &DynamicMessage,
    field: &FieldDescriptor,
    column: &mut ColumnBuilder,
    defaults: bool,
) -> Result<()> {
    let is_message =
        matches!(field.kind(), Kind::Message(_)) && !field.is_list() && !field.is_map();
    let is_unset = field.supports_presence() && !message.has_field(field);
    if is_unset && (is_message || !defaults) {
        column.push_null();
        return Ok(());
    }
    value(&message.get_field(field), &field.kind(), column, defaults)
}

fn value(value: &Value, kind: &Kind, column: &mut ColumnBuilder, defaults: bool) -> Result<()> {
    match (value, column) {
        (Value::Bool(v), ColumnBuilder::Boolean(values, nulls)) => {
            values.append(*v);
            nulls.append_non_null();
        }
        (Value::I32(v), ColumnBuilder::Int(p)) => p.push(*v),
        // As Java sees them.
        (Value::U32(v), ColumnBuilder::Int(p)) => p.push(v.cast_signed()),
        (Value::I64(v), ColumnBuilder::BigInt(p)) => p.push(*v),
        (Value::U64(v), ColumnBuilder::BigInt(p)) => p.push(v.cast_signed()),
        (Value::F32(v), ColumnBuilder::Float(p)) => p.push(*v),
        (Value::F64(v), ColumnBuilder::Double(p)) => p.push(*v),
        (Value::String(v), ColumnBuilder::String(b)) => b.push(v.as_bytes()),
        (Value::Bytes(v), ColumnBuilder::Binary(b)) => b.push(v),
        (Value::EnumNumber(n), ColumnBuilder::Int(p)) => p.push(*n),
        (Value::EnumNumber(n), ColumnBuilder::String(b)) => {
            let name = match kind {
                Kind::Enum(of) => of.get_value(*n).map(|v| v.name().to_string()),
                _ => None,
            };
            b.push(name.unwrap_or_else(|| n.to_string()).as_bytes());
        }
        (Value::Message(message), ColumnBuilder::Row(nulls, columns)) => {
            for (name, column) in columns {
                let of = message.descriptor();
                let of = of.get_field_by_name(name).ok_or_else(mismatch)?;
                field(message, &of, column, defaults)?;
            }
            nulls.append_non_null();
        }
        (Value::List(items), ColumnBuilder::List(ends, element)) => {
            for item in items {
                self::value(item, kind, element, defaults)?;
            }
            ends.push(element.len());
        }
        (Value::Map(map), ColumnBuilder::Map(ends, key, column)) => {
            let Kind::Message(entry) = kind else {
                return Err(mismatch());
            };
            let kind = entry.map_entry_value_field().kind();
            let mut entries: Vec<(&MapKey, &Value)> = map.iter().collect();
            entries.sort_by(|(a, _), (b, _)| order(a).cmp(&order(b)));
            for (k, v) in entries {
                map_key(k, key)?;
                value_of(v, &kind, column, defaults)?;
            }
            ends.push(key.len());
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn value_of(v: &Value, kind: &Kind, column: &mut ColumnBuilder, defaults: bool) -> Result<()> {
    value(v, kind, column, defaults)
}

/// The order in which entries come: that of their keys, not of a hash.
fn order(key: &MapKey) -> (i128, &str) {
    match key {
        MapKey::Bool(v) => (i128::from(*v), ""),
        MapKey::I32(v) => (i128::from(*v), ""),
        MapKey::I64(v) => (i128::from(*v), ""),
        MapKey::U32(v) => (i128::from(*v), ""),
        MapKey::U64(v) => (i128::from(*v), ""),
        MapKey::String(v) => (0, v.as_str()),
    }
}

fn map_key(key: &MapKey, column: &mut ColumnBuilder) -> Result<()> {
    match (key, column) {
        (MapKey::Bool(v), ColumnBuilder::Boolean(values, nulls)) => {
            values.append(*v);
            nulls.append_non_null();
        }
        (MapKey::I32(v), ColumnBuilder::Int(p)) => p.push(*v),
        (MapKey::U32(v), ColumnBuilder::Int(p)) => p.push(v.cast_signed()),
        (MapKey::I64(v), ColumnBuilder::BigInt(p)) => p.push(*v),
        (MapKey::U64(v), ColumnBuilder::BigInt(p)) => p.push(v.cast_signed()),
        (MapKey::String(v), ColumnBuilder::String(b)) => b.push(v.as_bytes()),
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn mismatch() -> Error {
    Error::internal("a field for a column of another type")
}
