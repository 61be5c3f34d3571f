//! From the types that a file has to those that the table declares: only where no value is lost.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};

use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

/// Bits of an integer type, a sign counted as one that an unsigned type lacks.
fn integer_bits(t: &ArrowType) -> Option<u8> {
    Some(match t {
        ArrowType::Int8 => 8,
        ArrowType::UInt8 => 9,
        ArrowType::Int16 => 16,
        ArrowType::UInt16 => 17,
        ArrowType::Int32 => 32,
        ArrowType::UInt32 => 33,
        ArrowType::Int64 => 64,
        _ => return None,
    })
}

/// Whether a column of a file can be read as `to`.
pub(super) fn fits(from: &ArrowType, to: &DataType) -> bool {
    let is_integer = integer_bits(from).is_some();
    match &to.kind {
        TypeKind::Boolean => *from == ArrowType::Boolean,
        // Old files tell no width: 32-bit integers that hold small ones. What does not fit fails.
        TypeKind::TinyInt | TypeKind::SmallInt => integer_bits(from).is_some_and(|bits| bits <= 32),
        TypeKind::Int => integer_bits(from).is_some_and(|bits| bits <= 32),
        TypeKind::BigInt => is_integer,
        TypeKind::Float => *from == ArrowType::Float32,
        TypeKind::Double => matches!(from, ArrowType::Float32 | ArrowType::Float64),
        TypeKind::Decimal(precision, scale) => match from {
            ArrowType::Decimal128(p, s) => {
                let scale = i16::from(*scale);
                let whole = i16::from(*p) - i16::from(*s);
                i16::from(*s) <= scale && whole <= i16::from(*precision) - scale
            }
            _ => is_integer,
        },
        TypeKind::Char(_)
        | TypeKind::VarChar(_)
        | TypeKind::Variant
        | TypeKind::Binary(_)
        | TypeKind::VarBinary(_) => matches!(
            from,
            ArrowType::Utf8 | ArrowType::Binary | ArrowType::FixedSizeBinary(_)
        ),
        TypeKind::Date => matches!(from, ArrowType::Date32),
        TypeKind::Time(_) => matches!(from, ArrowType::Time32(_) | ArrowType::Time64(_)),
        TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => {
            matches!(from, ArrowType::Timestamp(..))
        }
        TypeKind::Array(element) => match from {
            ArrowType::List(item) => fits(item.data_type(), element),
            _ => false,
        },
        TypeKind::Map(key, value) => map_fits(from, key, value),
        TypeKind::Multiset(element) => map_fits(from, element, &TypeKind::Int.not_null()),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => match from {
            ArrowType::Struct(found) => fields.iter().all(|f| {
                let found = found.find(&f.name);
                found.is_none_or(|(_, found)| fits(found.data_type(), &f.data_type))
            }),
            _ => false,
        },
        TypeKind::Null
        | TypeKind::IntervalYearMonth
        | TypeKind::IntervalDayTime
        | TypeKind::Bitmap => false,
    }
}

fn map_fits(from: &ArrowType, key: &DataType, value: &DataType) -> bool {
    let ArrowType::Map(entries, _) = from else {
        return false;
    };
    let ArrowType::Struct(fields) = entries.data_type() else {
        return false;
    };
    fields.len() == 2 && fits(fields[0].data_type(), key) && fits(fields[1].data_type(), value)
}

/// A column of a file as `to`, which it [`fits`].
pub(super) fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let arrow = to.to_arrow();
    if *array.data_type() == arrow {
        return Ok(Arc::clone(array));
    }
    match (&to.kind, array.data_type()) {
        (TypeKind::Row(fields) | TypeKind::Structured(_, fields), ArrowType::Struct(_)) => {
            let found = array.as_struct();
            let columns = fields.iter().map(|f| match found.column_by_name(&f.name) {
                Some(column) => convert(column, &f.data_type),
                None => Ok(new_null_array(&f.data_type.to_arrow(), array.len())),
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let nulls = found.nulls().cloned();
            let rows = StructArray::try_new(fields_of(&arrow)?.clone(), columns, nulls)?;
            Ok(Arc::new(rows))
        }
        (TypeKind::Array(element), ArrowType::List(_)) => {
            let found = array.as_list::<i32>();
            let values = convert(found.values(), element)?;
            let (offsets, nulls) = (found.offsets().clone(), found.nulls().cloned());
            let field = Arc::new(Field::new("item", element.to_arrow(), true));
            Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls)?))
        }
        (TypeKind::Map(key, value), ArrowType::Map(..)) => convert_map(array, &arrow, key, value),
        (TypeKind::Multiset(element), ArrowType::Map(..)) => {
            convert_map(array, &arrow, element, &TypeKind::Int.not_null())
        }
        _ => {
            let options = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            Ok(cast_with_options(array, &arrow, &options)?)
        }
    }
}

fn fields_of(struct_type: &ArrowType) -> Result<&Fields> {
    match struct_type {
        ArrowType::Struct(fields) => Ok(fields),
        other => Err(Error::internal(format!("{other} has no fields"))),
    }
}

fn convert_map(
    array: &ArrayRef,
    arrow: &ArrowType,
    key: &DataType,
    value: &DataType,
) -> Result<ArrayRef> {
    let found = array.as_map();
    let keys = convert(found.keys(), key)?;
    let values = convert(found.values(), value)?;
    let ArrowType::Map(entries, sorted) = arrow else {
        return Err(Error::internal("a map without entries"));
    };
    let fields = fields_of(entries.data_type())?.clone();
    let pairs = StructArray::try_new(fields, vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entries),
        found.offsets().clone(),
        pairs,
        found.nulls().cloned(),
        *sorted,
    )?))
}
