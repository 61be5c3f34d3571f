//! Columns to messages.

use std::collections::HashMap;

use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, Value};

use crate::error::{Error, Result};
use crate::formats::view::{View, children};

/// Appends the bytes of a message.
pub(super) fn append(message: &DynamicMessage, out: &mut Vec<u8>) -> Result<()> {
    message
        .encode(out)
        .map_err(|e| Error::format(format!("a message cannot be written: {e}")))
}

/// Sets a field of `message`; NULL leaves it as it is.
pub(super) fn field(
    message: &mut DynamicMessage,
    field: &FieldDescriptor,
    view: &View<'_>,
    i: usize,
    null_string: &str,
) -> Result<()> {
    if view.is_null(i) {
        return Ok(());
    }
    let value = match view {
        View::List(list, element) => {
            let items = children(list.value_offsets(), i);
            let items = items.map(|item| value(&field.kind(), element, item, null_string));
            Value::List(items.collect::<Result<_>>()?)
        }
        View::Map(map, key, column) => {
            let Kind::Message(entry) = field.kind() else {
                return Err(mismatch());
            };
            let (key_kind, value_kind) = (
                entry.map_entry_key_field().kind(),
                entry.map_entry_value_field().kind(),
            );
            let mut entries = HashMap::new();
            for at in children(map.value_offsets(), i) {
                let key = map_key(value(&key_kind, key, at, null_string)?)?;
                entries.insert(key, value(&value_kind, column, at, null_string)?);
            }
            Value::Map(entries)
        }
        view => value(&field.kind(), view, i, null_string)?,
    };
    message
        .try_set_field(field, value)
        .map_err(|e| Error::format(format!("field '{}': {e}", field.name())))
}

/// A value without NULL: in lists and maps a default stands for it, as in Flink.
fn value(kind: &Kind, view: &View<'_>, i: usize, null_string: &str) -> Result<Value> {
    if view.is_null(i) {
        return Ok(match kind {
            Kind::String => Value::String(null_string.to_string()),
            kind => kind.default_value(),
        });
    }
    Ok(match (kind, view) {
        (Kind::Bool, View::Boolean(a)) => Value::Bool(a.value(i)),
        (Kind::Int32 | Kind::Sint32 | Kind::Sfixed32, View::Int(a)) => Value::I32(a.value(i)),
        (Kind::Uint32 | Kind::Fixed32, View::Int(a)) => Value::U32(a.value(i).cast_unsigned()),
        (Kind::Int64 | Kind::Sint64 | Kind::Sfixed64, View::BigInt(a)) => Value::I64(a.value(i)),
        (Kind::Uint64 | Kind::Fixed64, View::BigInt(a)) => Value::U64(a.value(i).cast_unsigned()),
        (Kind::Float, View::Float(a)) => Value::F32(a.value(i)),
        (Kind::Double, View::Double(a)) => Value::F64(a.value(i)),
        (Kind::String, View::String(a)) => Value::String(a.value(i).to_string()),
        (Kind::Bytes, View::Binary(a)) => Value::Bytes(a.value(i).to_vec().into()),
        (Kind::Enum(_), View::Int(a)) => Value::EnumNumber(a.value(i)),
        (Kind::Enum(of), View::String(a)) => {
            let name = a.value(i);
            let found = of.get_value_by_name(name).ok_or_else(|| {
                Error::format(format!(
                    "'{name}' is no value of the enum {}",
                    of.full_name()
                ))
            })?;
            Value::EnumNumber(found.number())
        }
        (Kind::Message(of), View::Row(_, columns)) => {
            let mut message = DynamicMessage::new(of.clone());
            for (name, column) in columns {
                let of = of.get_field_by_name(name).ok_or_else(mismatch)?;
                field(&mut message, &of, column, i, null_string)?;
            }
            Value::Message(message)
        }
        _ => return Err(mismatch()),
    })
}

fn map_key(value: Value) -> Result<MapKey> {
    Ok(match value {
        Value::Bool(v) => MapKey::Bool(v),
        Value::I32(v) => MapKey::I32(v),
        Value::I64(v) => MapKey::I64(v),
        Value::U32(v) => MapKey::U32(v),
        Value::U64(v) => MapKey::U64(v),
        Value::String(v) => MapKey::String(v),
        _ => return Err(mismatch()),
    })
}

fn mismatch() -> Error {
    Error::internal("a column for a field of another type")
}
