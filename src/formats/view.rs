//! Columns cast to their Arrow types once a batch, for encoders that then go row by row.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, ListArray, MapArray,
    PrimitiveArray, StringArray, StructArray,
};
use arrow::datatypes::{
    Date32Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType, Time32MillisecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};

use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::types::data_type::timestamp_unit;
use crate::types::{DataType, Schema, TypeKind};

/// One column.
pub(crate) enum View<'a> {
    Null,
    Boolean(&'a BooleanArray),
    TinyInt(&'a PrimitiveArray<Int8Type>),
    SmallInt(&'a PrimitiveArray<Int16Type>),
    Int(&'a PrimitiveArray<Int32Type>),
    BigInt(&'a PrimitiveArray<Int64Type>),
    Float(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Decimal(&'a Decimal128Array, u8),
    String(&'a StringArray),
    Binary(&'a BinaryArray),
    Date(&'a PrimitiveArray<Date32Type>),
    Time(&'a PrimitiveArray<Time32MillisecondType>),
    /// With `true` an instant.
    Timestamp(Stamps<'a>, bool),
    Months(&'a PrimitiveArray<IntervalYearMonthType>),
    Millis(&'a PrimitiveArray<DurationMillisecondType>),
    List(&'a ListArray, Box<View<'a>>),
    Map(&'a MapArray, Box<View<'a>>, Box<View<'a>>),
    Row(&'a StructArray, Vec<(&'a str, View<'a>)>),
}

/// A timestamp column of any unit.
pub(crate) enum Stamps<'a> {
    Millis(&'a PrimitiveArray<TimestampMillisecondType>),
    Micros(&'a PrimitiveArray<TimestampMicrosecondType>),
    Nanos(&'a PrimitiveArray<TimestampNanosecondType>),
}

impl Stamps<'_> {
    /// Seconds since the epoch and nanoseconds of the second.
    pub(crate) fn get(&self, i: usize) -> (i64, u32) {
        let (value, per_second) = match self {
            Self::Millis(a) => (a.value(i), 1_000),
            Self::Micros(a) => (a.value(i), 1_000_000),
            Self::Nanos(a) => (a.value(i), 1_000_000_000),
        };
        let nano = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
        (
            value.div_euclid(per_second),
            u32::try_from(nano).unwrap_or(0),
        )
    }
}

/// The columns of a batch, which has the columns of `schema`.
pub(crate) fn views<'a>(batch: &'a ChangeBatch, schema: &'a Schema) -> Result<Vec<View<'a>>> {
    if batch.rows().num_columns() != schema.len() {
        return Err(Error::internal("a sink got another number of columns"));
    }
    batch
        .rows()
        .columns()
        .iter()
        .zip(&schema.columns)
        .map(|(array, column)| View::new(array, &column.data_type))
        .collect()
}

impl<'a> View<'a> {
    fn new(array: &'a ArrayRef, data_type: &'a DataType) -> Result<Self> {
        Self::cast(array, &data_type.kind).ok_or_else(|| {
            Error::internal(format!(
                "a column of type {data_type} came as {}",
                array.data_type()
            ))
        })
    }

    fn cast(array: &'a ArrayRef, kind: &'a TypeKind) -> Option<Self> {
        Some(match kind {
            TypeKind::Null => Self::Null,
            TypeKind::Boolean => Self::Boolean(array.as_boolean_opt()?),
            TypeKind::TinyInt => Self::TinyInt(array.as_primitive_opt()?),
            TypeKind::SmallInt => Self::SmallInt(array.as_primitive_opt()?),
            TypeKind::Int => Self::Int(array.as_primitive_opt()?),
            TypeKind::BigInt => Self::BigInt(array.as_primitive_opt()?),
            TypeKind::Float => Self::Float(array.as_primitive_opt()?),
            TypeKind::Double => Self::Double(array.as_primitive_opt()?),
            TypeKind::Decimal(_, scale) => Self::Decimal(array.as_primitive_opt()?, *scale),
            TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Variant => {
                Self::String(array.as_string_opt()?)
            }
            TypeKind::Binary(_) | TypeKind::VarBinary(_) | TypeKind::Bitmap => {
                Self::Binary(array.as_binary_opt()?)
            }
            TypeKind::Date => Self::Date(array.as_primitive_opt()?),
            TypeKind::Time(_) => Self::Time(array.as_primitive_opt()?),
            TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) => {
                let stamps = match timestamp_unit(*p) {
                    TimeUnit::Microsecond => Stamps::Micros(array.as_primitive_opt()?),
                    TimeUnit::Nanosecond => Stamps::Nanos(array.as_primitive_opt()?),
                    _ => Stamps::Millis(array.as_primitive_opt()?),
                };
                Self::Timestamp(stamps, matches!(kind, TypeKind::TimestampLtz(_)))
            }
            TypeKind::IntervalYearMonth => Self::Months(array.as_primitive_opt()?),
            TypeKind::IntervalDayTime => Self::Millis(array.as_primitive_opt()?),
            TypeKind::Array(element) => {
                let list: &ListArray = array.as_list_opt()?;
                Self::List(list, Box::new(Self::cast(list.values(), &element.kind)?))
            }
            TypeKind::Map(key, value) => Self::map(array, &key.kind, &value.kind)?,
            TypeKind::Multiset(element) => Self::map(array, &element.kind, &TypeKind::Int)?,
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                let row = array.as_struct_opt()?;
                if row.num_columns() != fields.len() {
                    return None;
                }
                let columns = row.columns().iter().zip(fields);
                let columns = columns
                    .map(|(child, f)| {
                        Some((f.name.as_str(), Self::cast(child, &f.data_type.kind)?))
                    })
                    .collect::<Option<_>>()?;
                Self::Row(row, columns)
            }
        })
    }

    fn map(array: &'a ArrayRef, key: &'a TypeKind, value: &'a TypeKind) -> Option<Self> {
        let map = array.as_map_opt()?;
        Some(Self::Map(
            map,
            Box::new(Self::cast(map.keys(), key)?),
            Box::new(Self::cast(map.values(), value)?),
        ))
    }

    /// Whether value `i` is NULL.
    pub(crate) fn is_null(&self, i: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Boolean(a) => a.is_null(i),
            Self::TinyInt(a) => a.is_null(i),
            Self::SmallInt(a) => a.is_null(i),
            Self::Int(a) => a.is_null(i),
            Self::BigInt(a) => a.is_null(i),
            Self::Float(a) => a.is_null(i),
            Self::Double(a) => a.is_null(i),
            Self::Decimal(a, _) => a.is_null(i),
            Self::String(a) => a.is_null(i),
            Self::Binary(a) => a.is_null(i),
            Self::Date(a) => a.is_null(i),
            Self::Time(a) => a.is_null(i),
            Self::Timestamp(Stamps::Millis(a), _) => a.is_null(i),
            Self::Timestamp(Stamps::Micros(a), _) => a.is_null(i),
            Self::Timestamp(Stamps::Nanos(a), _) => a.is_null(i),
            Self::Months(a) => a.is_null(i),
            Self::Millis(a) => a.is_null(i),
            Self::List(a, _) => a.is_null(i),
            Self::Map(a, ..) => a.is_null(i),
            Self::Row(a, _) => a.is_null(i),
        }
    }
}

/// The positions of the children of value `i` of a list or map.
pub(crate) fn children(offsets: &[i32], i: usize) -> std::ops::Range<usize> {
    let at = |n: usize| usize::try_from(offsets[n]).unwrap_or(0);
    at(i)..at(i + 1)
}
