//! Arrays, maps, multisets and rows: their parts are cast.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType as ArrowType, FieldRef};

use super::{Context, Convert, or_null, plan, reads_text};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

/// The conversion of nested types, or `None` if a column stays as it is.
pub(super) fn convert(
    from: &TypeKind,
    to: &TypeKind,
    context: &Context,
) -> Result<Option<Convert>> {
    // Where a part does not convert, all of the value is NULL: so parts convert strictly.
    let strict = Context {
        lenient: false,
        env: context.env,
    };
    let part = |from: &DataType, to: &DataType| plan(&from.kind, &to.kind, &strict);
    let convert = match (from, to) {
        (TypeKind::Array(x), TypeKind::Array(y)) => {
            let element = part(x, y)?;
            if element.is_none() && from.to_arrow() == to.to_arrow() {
                return Ok(None);
            }
            array(element, to)?
        }
        (TypeKind::Map(k, v), TypeKind::Map(l, w)) => {
            let (key, value) = (part(k, l)?, part(v, w)?);
            if key.is_none() && value.is_none() && from.to_arrow() == to.to_arrow() {
                return Ok(None);
            }
            map(key, value, to)?
        }
        (TypeKind::Multiset(x), TypeKind::Multiset(y)) => {
            let element = part(x, y)?;
            if element.is_none() && from.to_arrow() == to.to_arrow() {
                return Ok(None);
            }
            map(element, None, to)?
        }
        (
            TypeKind::Row(x) | TypeKind::Structured(_, x),
            TypeKind::Row(y) | TypeKind::Structured(_, y),
        ) if x.len() == y.len() => {
            let fields = x
                .iter()
                .zip(y)
                .map(|(x, y)| part(&x.data_type, &y.data_type))
                .collect::<Result<Vec<_>>>()?;
            if fields.iter().all(Option::is_none) && from.to_arrow() == to.to_arrow() {
                return Ok(None);
            }
            row(fields, to)?
        }
        _ => {
            return Err(Error::plan(format!(
                "Unsupported cast from '{from}' to '{to}'"
            )));
        }
    };
    let may_fail = context.lenient && reads_text(from, to);
    Ok(Some(if may_fail {
        or_null(convert, to)
    } else {
        convert
    }))
}

fn apply(convert: Option<&Convert>, array: &ArrayRef) -> Result<ArrayRef> {
    match convert {
        None => Ok(Arc::clone(array)),
        Some(convert) => convert(array),
    }
}

/// Offsets that start at zero, and the range of entries that they refer to.
fn rebase(offsets: &OffsetBuffer<i32>) -> (OffsetBuffer<i32>, usize, usize) {
    let first = offsets[0];
    let last = offsets[offsets.len() - 1];
    let position = |v: i32| usize::try_from(v).unwrap_or(0);
    let rebased = if first == 0 {
        offsets.clone()
    } else {
        OffsetBuffer::new(offsets.iter().map(|o| o - first).collect())
    };
    (rebased, position(first), position(last - first))
}

fn wrong_type() -> Error {
    Error::internal("a nested type has no nested Arrow type")
}

fn array(element: Option<Convert>, to: &TypeKind) -> Result<Convert> {
    let ArrowType::List(item) = to.to_arrow() else {
        return Err(wrong_type());
    };
    Ok(Box::new(move |array| {
        let list = array.as_list::<i32>();
        let (offsets, start, length) = rebase(list.offsets());
        let values = apply(element.as_ref(), &list.values().slice(start, length))?;
        let converted = ListArray::try_new(
            FieldRef::clone(&item),
            offsets,
            values,
            list.nulls().cloned(),
        )?;
        Ok(Arc::new(converted))
    }))
}

fn map(key: Option<Convert>, value: Option<Convert>, to: &TypeKind) -> Result<Convert> {
    let ArrowType::Map(entries_field, sorted) = to.to_arrow() else {
        return Err(wrong_type());
    };
    let ArrowType::Struct(fields) = entries_field.data_type().clone() else {
        return Err(wrong_type());
    };
    Ok(Box::new(move |array| {
        let map = array.as_map();
        let (offsets, start, length) = rebase(map.offsets());
        let keys = apply(key.as_ref(), &map.keys().slice(start, length))?;
        let values = apply(value.as_ref(), &map.values().slice(start, length))?;
        let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
        let converted = MapArray::try_new(
            FieldRef::clone(&entries_field),
            offsets,
            entries,
            map.nulls().cloned(),
            sorted,
        )?;
        Ok(Arc::new(converted))
    }))
}

fn row(parts: Vec<Option<Convert>>, to: &TypeKind) -> Result<Convert> {
    let ArrowType::Struct(fields) = to.to_arrow() else {
        return Err(wrong_type());
    };
    Ok(Box::new(move |array| {
        let row = array.as_struct();
        let columns = parts
            .iter()
            .zip(row.columns())
            .map(|(part, column)| apply(part.as_ref(), column))
            .collect::<Result<Vec<_>>>()?;
        let nulls = row.nulls().cloned();
        let converted = if columns.is_empty() {
            StructArray::new_empty_fields(row.len(), nulls)
        } else {
            StructArray::try_new(fields.clone(), columns, nulls)?
        };
        Ok(Arc::new(converted))
    }))
}
