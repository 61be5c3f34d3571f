//! Columns of several Arrow types as one type to compute with, and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, Decimal128Array, Int64Array,
    PrimitiveArray, make_array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalUnit, IntervalYearMonthType,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};

use super::value::Numbers;
use crate::error::{Error, Result};

fn unexpected(array: &ArrayRef) -> Error {
    Error::internal(format!("an aggregate cannot read {}", array.data_type()))
}

/// Any column of the class [`Ints`] as 64-bit integers.
pub(crate) fn to_i64(array: &ArrayRef) -> Result<Int64Array> {
    fn wide<T: ArrowPrimitiveType>(array: &ArrayRef) -> Int64Array
    where
        T::Native: Into<i64>,
    {
        array.as_primitive::<T>().unary(Into::into)
    }
    Ok(match array.data_type() {
        ArrowType::Int64 => array.as_primitive::<Int64Type>().clone(),
        ArrowType::Int8 => wide::<Int8Type>(array),
        ArrowType::Int16 => wide::<Int16Type>(array),
        ArrowType::Int32 => wide::<Int32Type>(array),
        ArrowType::Date32 => wide::<Date32Type>(array),
        ArrowType::Time32(TimeUnit::Millisecond) => wide::<Time32MillisecondType>(array),
        ArrowType::Interval(IntervalUnit::YearMonth) => wide::<IntervalYearMonthType>(array),
        ArrowType::Boolean => cast(array, &ArrowType::Int64)?
            .as_primitive::<Int64Type>()
            .clone(),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => array
            .as_primitive::<TimestampMillisecondType>()
            .reinterpret_cast(),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => array
            .as_primitive::<TimestampMicrosecondType>()
            .reinterpret_cast(),
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => array
            .as_primitive::<TimestampNanosecondType>()
            .reinterpret_cast(),
        ArrowType::Duration(TimeUnit::Millisecond) => array
            .as_primitive::<DurationMillisecondType>()
            .reinterpret_cast(),
        _ => return Err(unexpected(array)),
    })
}

/// 64-bit integers as a column of a type of the class [`Ints`]; what does not fit is cut, as Java's
/// casts do.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn from_i64(values: Int64Array, t: &ArrowType) -> Result<ArrayRef> {
    fn narrow<T: ArrowPrimitiveType>(
        values: &Int64Array,
        f: impl Fn(i64) -> T::Native,
    ) -> ArrayRef {
        Arc::new(values.unary::<_, T>(f))
    }
    Ok(match t {
        ArrowType::Int64 => Arc::new(values),
        ArrowType::Int8 => narrow::<Int8Type>(&values, |v| v as i8),
        ArrowType::Int16 => narrow::<Int16Type>(&values, |v| v as i16),
        ArrowType::Int32 => narrow::<Int32Type>(&values, |v| v as i32),
        ArrowType::Date32 => narrow::<Date32Type>(&values, |v| v as i32),
        ArrowType::Time32(_) => narrow::<Time32MillisecondType>(&values, |v| v as i32),
        ArrowType::Interval(_) => narrow::<IntervalYearMonthType>(&values, |v| v as i32),
        ArrowType::Boolean => cast(&values, t)?,
        ArrowType::Timestamp(..) | ArrowType::Duration(_) => make_array(
            values
                .into_data()
                .into_builder()
                .data_type(t.clone())
                .build()?,
        ),
        other => return Err(Error::internal(format!("{other} is not made of integers"))),
    })
}

/// A `FLOAT` or `DOUBLE` column as `f64`.
pub(crate) fn to_f64(array: &ArrayRef) -> Result<Numbers<f64>> {
    Ok(match array.data_type() {
        ArrowType::Float64 => Numbers::of(array.as_primitive::<Float64Type>()),
        ArrowType::Float32 => Numbers::of(
            &array
                .as_primitive::<Float32Type>()
                .unary::<_, Float64Type>(f64::from),
        ),
        _ => return Err(unexpected(array)),
    })
}

/// `f64` as `FLOAT` or `DOUBLE`.
#[allow(clippy::cast_possible_truncation)] // a FLOAT was computed as one
pub(crate) fn from_f64(values: PrimitiveArray<Float64Type>, t: &ArrowType) -> Result<ArrayRef> {
    Ok(match t {
        ArrowType::Float64 => Arc::new(values),
        ArrowType::Float32 => Arc::new(values.unary::<_, Float32Type>(|v| v as f32)),
        other => {
            return Err(Error::internal(format!(
                "{other} is no floating-point type"
            )));
        }
    })
}

/// The unscaled values of a `DECIMAL` column.
pub(crate) fn to_i128(array: &ArrayRef) -> Result<Numbers<i128>> {
    array
        .as_primitive_opt::<Decimal128Type>()
        .map(Numbers::of)
        .ok_or_else(|| unexpected(array))
}

/// Unscaled values as `DECIMAL`.
pub(crate) fn from_i128(values: Decimal128Array, t: &ArrowType) -> Result<ArrayRef> {
    match t {
        ArrowType::Decimal128(precision, scale) => Ok(Arc::new(
            values.with_precision_and_scale(*precision, *scale)?,
        )),
        other => Err(Error::internal(format!("{other} is no DECIMAL"))),
    }
}

/// A string or binary column as binary.
pub(crate) fn to_binary(array: &ArrayRef) -> Result<BinaryArray> {
    match array.data_type() {
        ArrowType::Utf8 => Ok(BinaryArray::from(array.as_string::<i32>().clone())),
        ArrowType::Binary => Ok(array.as_binary::<i32>().clone()),
        _ => Err(unexpected(array)),
    }
}
