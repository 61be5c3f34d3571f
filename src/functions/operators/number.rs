//! Arithmetic on integers and floating-point numbers, as Java does it.

use arrow::array::ArrowPrimitiveType;
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
};

use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::arithmetic::Operator;
use super::{Values, kernel, try_zip_with, unary_kernel, zip_with};
use crate::error::Error;
use crate::functions::Kernel;
use crate::types::TypeKind;
use crate::types::cast::Cast;

/// The error of a division by zero.
pub(super) fn division_by_zero() -> Error {
    Error::execution("Division by zero")
}

/// Unary `+` or, `negated`, `-`.
pub(super) fn sign(negated: bool, kind: &TypeKind) -> Option<Kernel> {
    let arrow = kind.to_arrow();
    if !negated {
        return Some(Box::new(|args, _| {
            args.first()
                .cloned()
                .ok_or_else(|| Error::internal("'+' got no argument"))
        }));
    }
    Some(match kind {
        TypeKind::TinyInt => unary_kernel::<Int8Type>(arrow, i8::wrapping_neg),
        TypeKind::SmallInt => unary_kernel::<Int16Type>(arrow, i16::wrapping_neg),
        TypeKind::Int => unary_kernel::<Int32Type>(arrow, i32::wrapping_neg),
        TypeKind::BigInt => unary_kernel::<Int64Type>(arrow, i64::wrapping_neg),
        TypeKind::Float => unary_kernel::<Float32Type>(arrow, |v| -v),
        TypeKind::Double => unary_kernel::<Float64Type>(arrow, |v| -v),
        TypeKind::Decimal(..) => unary_kernel::<Decimal128Type>(arrow, i128::wrapping_neg),
        TypeKind::IntervalYearMonth => {
            unary_kernel::<IntervalYearMonthType>(arrow, i32::wrapping_neg)
        }
        TypeKind::IntervalDayTime => {
            unary_kernel::<DurationMillisecondType>(arrow, i64::wrapping_neg)
        }
        _ => return None,
    })
}

/// An operation that fails on no value.
fn plain<T: ArrowPrimitiveType>(
    arrow: ArrowType,
    f: impl Fn(T::Native, T::Native) -> T::Native + Copy + Send + Sync + 'static,
) -> Kernel {
    kernel::<T, T, T>(arrow, move |left, right| zip_with(left, right, f))
}

/// A division or remainder, which refuses zero.
fn divide<T>(
    arrow: ArrowType,
    f: impl Fn(T::Native, T::Native) -> T::Native + Copy + Send + Sync + 'static,
) -> Kernel
where
    T: ArrowPrimitiveType,
    T::Native: PartialEq + Default,
{
    kernel::<T, T, T>(arrow, move |left, right| {
        let zero = T::Native::default();
        let safe = match right {
            Values::Column(column) => !column.values().contains(&zero),
            Values::Constant(value) => *value != Some(zero),
        };
        if safe {
            return zip_with(left, right, f);
        }
        try_zip_with(left, right, |l, r| {
            if r == zero {
                Err(division_by_zero())
            } else {
                Ok(Some(f(l, r)))
            }
        })
    })
}

/// The kernel of an operator on two numbers of type `operands`, integers or floating-point numbers.
/// `constant`: both are known, and Flink refuses to divide by zero even for floating-point numbers.
pub(super) fn prepare(operator: Operator, operands: &TypeKind, constant: bool) -> Option<Kernel> {
    let arrow = operands.to_arrow();
    macro_rules! integers {
        ($type:ident, $native:ident) => {
            match operator {
                Operator::Plus => plain::<$type>(arrow, $native::wrapping_add),
                Operator::Minus => plain::<$type>(arrow, $native::wrapping_sub),
                Operator::Times => plain::<$type>(arrow, $native::wrapping_mul),
                Operator::Divide => divide::<$type>(arrow, $native::wrapping_div),
                Operator::Modulo => divide::<$type>(arrow, $native::wrapping_rem),
            }
        };
    }
    macro_rules! floats {
        ($type:ident) => {
            match operator {
                Operator::Plus => plain::<$type>(arrow, |l, r| l + r),
                Operator::Minus => plain::<$type>(arrow, |l, r| l - r),
                Operator::Times => plain::<$type>(arrow, |l, r| l * r),
                Operator::Divide if constant => divide::<$type>(arrow, |l, r| l / r),
                Operator::Divide => plain::<$type>(arrow, |l, r| l / r),
                Operator::Modulo => return None,
            }
        };
    }
    Some(match operands {
        TypeKind::TinyInt => integers!(Int8Type, i8),
        TypeKind::SmallInt => integers!(Int16Type, i16),
        TypeKind::Int => integers!(Int32Type, i32),
        TypeKind::BigInt => integers!(Int64Type, i64),
        TypeKind::Float => floats!(Float32Type),
        TypeKind::Double => floats!(Float64Type),
        _ => return None,
    })
}

/// A kernel whose result is converted.
pub(in crate::functions) fn converted(kernel: Kernel, cast: Cast) -> Kernel {
    Box::new(move |args, context| {
        Ok(match kernel(args, context)? {
            ColumnarValue::Array(array) => ColumnarValue::Array(cast.array(&array)?),
            ColumnarValue::Scalar(value) => {
                let array = cast.array(&value.to_array_of_size(1)?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
        })
    })
}
