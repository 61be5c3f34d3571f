//! Numbers and booleans into each other.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, PrimitiveBuilder,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};

use super::{Context, Convert, unreadable};
use crate::error::Result;
use crate::types::{TypeKind, parse};

/// 10 to the `n`, for `n` up to 38.
pub(super) fn power(n: u8) -> i128 {
    10i128.pow(u32::from(n.min(38)))
}

/// A Java conversion between primitive numbers: integers wrap, floating-point numbers saturate, to INT
/// first when the target is narrower.
trait Java<T> {
    fn java(self) -> T;
}

macro_rules! java {
    ($($from:ident: $($to:ident)+ $(, int first: $($narrow:ident)+)?;)+) => {
        $(
            $(impl Java<$to> for $from {
                // The wrap or loss is Java's, and wanted.
                #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_lossless)]
                fn java(self) -> $to {
                    self as $to
                }
            })+
            $($(impl Java<$narrow> for $from {
                #[allow(clippy::cast_possible_truncation)]
                fn java(self) -> $narrow {
                    self as i32 as $narrow
                }
            })+)?
        )+
    };
}

java! {
    i8: i16 i32 i64 f32 f64;
    i16: i8 i32 i64 f32 f64;
    i32: i8 i16 i64 f32 f64;
    i64: i8 i16 i32 f32 f64;
    f32: i32 i64 f64, int first: i8 i16;
    f64: i32 i64 f32, int first: i8 i16;
}

fn map<F, T>() -> Convert
where
    F: ArrowPrimitiveType,
    T: ArrowPrimitiveType,
    F::Native: Java<T::Native>,
{
    Box::new(|array| {
        let converted: PrimitiveArray<T> = array.as_primitive::<F>().unary(Java::java);
        Ok(Arc::new(converted))
    })
}

/// Numbers and booleans into each other; `None` if a type is neither.
pub(super) fn convert(from: &TypeKind, to: &TypeKind, context: &Context) -> Option<Convert> {
    use TypeKind as T;
    Some(match (from, to) {
        (T::TinyInt, T::SmallInt) => map::<Int8Type, Int16Type>(),
        (T::TinyInt, T::Int) => map::<Int8Type, Int32Type>(),
        (T::TinyInt, T::BigInt) => map::<Int8Type, Int64Type>(),
        (T::TinyInt, T::Float) => map::<Int8Type, Float32Type>(),
        (T::TinyInt, T::Double) => map::<Int8Type, Float64Type>(),
        (T::SmallInt, T::TinyInt) => map::<Int16Type, Int8Type>(),
        (T::SmallInt, T::Int) => map::<Int16Type, Int32Type>(),
        (T::SmallInt, T::BigInt) => map::<Int16Type, Int64Type>(),
        (T::SmallInt, T::Float) => map::<Int16Type, Float32Type>(),
        (T::SmallInt, T::Double) => map::<Int16Type, Float64Type>(),
        (T::Int, T::TinyInt) => map::<Int32Type, Int8Type>(),
        (T::Int, T::SmallInt) => map::<Int32Type, Int16Type>(),
        (T::Int, T::BigInt) => map::<Int32Type, Int64Type>(),
        (T::Int, T::Float) => map::<Int32Type, Float32Type>(),
        (T::Int, T::Double) => map::<Int32Type, Float64Type>(),
        (T::BigInt, T::TinyInt) => map::<Int64Type, Int8Type>(),
        (T::BigInt, T::SmallInt) => map::<Int64Type, Int16Type>(),
        (T::BigInt, T::Int) => map::<Int64Type, Int32Type>(),
        (T::BigInt, T::Float) => map::<Int64Type, Float32Type>(),
        (T::BigInt, T::Double) => map::<Int64Type, Float64Type>(),
        (T::Float, T::TinyInt) => map::<Float32Type, Int8Type>(),
        (T::Float, T::SmallInt) => map::<Float32Type, Int16Type>(),
        (T::Float, T::Int) => map::<Float32Type, Int32Type>(),
        (T::Float, T::BigInt) => map::<Float32Type, Int64Type>(),
        (T::Float, T::Double) => map::<Float32Type, Float64Type>(),
        (T::Double, T::TinyInt) => map::<Float64Type, Int8Type>(),
        (T::Double, T::SmallInt) => map::<Float64Type, Int16Type>(),
        (T::Double, T::Int) => map::<Float64Type, Int32Type>(),
        (T::Double, T::BigInt) => map::<Float64Type, Int64Type>(),
        (T::Double, T::Float) => map::<Float64Type, Float32Type>(),
        (T::Decimal(p, s), T::Decimal(q, t)) => decimal_to_decimal((*p, *s), (*q, *t)),
        (T::Decimal(_, s), _) => decimal_to_other(*s, to)?,
        (_, T::Decimal(p, s)) => other_to_decimal(from, *p, *s, context.lenient)?,
        (_, T::Boolean) => to_boolean(from)?,
        (T::Boolean, _) => from_boolean(to)?,
        _ => return None,
    })
}

fn other_to_decimal(from: &TypeKind, p: u8, s: u8, lenient: bool) -> Option<Convert> {
    fn integers<F>(digits: u8, p: u8, s: u8) -> Convert
    where
        F: ArrowPrimitiveType,
        F::Native: Into<i64>,
    {
        let factor = power(s);
        let limit = power(p);
        Box::new(move |array| {
            let array = array.as_primitive::<F>();
            let scale = |v: F::Native| i128::from(v.into()).checked_mul(factor);
            let converted: PrimitiveArray<Decimal128Type> = if digits + s <= p {
                array.unary(|v| i128::from(v.into()) * factor)
            } else {
                array.unary_opt(|v| scale(v).filter(|v| v.abs() < limit))
            };
            typed(converted, p, s)
        })
    }
    Some(match from {
        TypeKind::Boolean => Box::new(move |array| {
            let one = power(s);
            let array = array.as_boolean();
            let values = array.values().iter().map(|b| if b { one } else { 0 });
            let converted = PrimitiveArray::<Decimal128Type>::new(
                values.collect::<Vec<_>>().into(),
                array.nulls().cloned(),
            );
            typed(converted, p, s)
        }),
        TypeKind::TinyInt => integers::<Int8Type>(3, p, s),
        TypeKind::SmallInt => integers::<Int16Type>(5, p, s),
        TypeKind::Int => integers::<Int32Type>(10, p, s),
        TypeKind::BigInt => integers::<Int64Type>(19, p, s),
        TypeKind::Float => Box::new(move |array| {
            // Flink goes by the digits of the number as a DOUBLE.
            let array: PrimitiveArray<Float64Type> =
                array.as_primitive::<Float32Type>().unary(f64::from);
            doubles_to_decimal(&array, p, s, lenient)
        }),
        TypeKind::Double => {
            Box::new(move |array| doubles_to_decimal(array.as_primitive(), p, s, lenient))
        }
        _ => return None,
    })
}

fn doubles_to_decimal(
    array: &PrimitiveArray<Float64Type>,
    p: u8,
    s: u8,
    lenient: bool,
) -> Result<ArrayRef> {
    let mut digits = String::new();
    let mut builder = PrimitiveBuilder::<Decimal128Type>::with_capacity(array.len());
    for value in array {
        let Some(value) = value else {
            builder.append_null();
            continue;
        };
        if !value.is_finite() && !lenient {
            let to = TypeKind::Decimal(p, s);
            return Err(unreadable(
                &value.to_string(),
                &to,
                "it is not a finite number",
            ));
        }
        digits.clear();
        let _ = write!(digits, "{value:e}");
        builder.append_option(parse::decimal(&digits, p, s).ok());
    }
    typed(builder.finish(), p, s)
}

fn typed(array: PrimitiveArray<Decimal128Type>, p: u8, s: u8) -> Result<ArrayRef> {
    Ok(Arc::new(
        array.with_precision_and_scale(p, s.cast_signed())?,
    ))
}

/// `value / divisor`, rounded half away from zero.
pub(crate) fn divide_half_up(value: i128, divisor: i128) -> i128 {
    let (quotient, remainder) = (value / divisor, value % divisor);
    let round = remainder.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2);
    if !round {
        quotient
    } else if (value < 0) == (divisor < 0) {
        quotient + 1
    } else {
        quotient - 1
    }
}

fn decimal_to_decimal((p, s): (u8, u8), (q, t): (u8, u8)) -> Convert {
    let limit = power(q);
    Box::new(move |array| {
        let array = array.as_primitive::<Decimal128Type>();
        let fits = q - t >= p - s;
        let converted: PrimitiveArray<Decimal128Type> = if t >= s {
            let factor = power(t - s);
            if t == s && fits {
                array.clone()
            } else if fits {
                array.unary(|v| v.wrapping_mul(factor))
            } else {
                array.unary_opt(|v| v.checked_mul(factor).filter(|v| v.abs() < limit))
            }
        } else {
            let divisor = power(s - t);
            // Rounding up may need one digit more.
            if q - t > p - s {
                array.unary(|v| divide_half_up(v, divisor))
            } else {
                array.unary_opt(|v| Some(divide_half_up(v, divisor)).filter(|v| v.abs() < limit))
            }
        };
        typed(converted, q, t)
    })
}

fn decimal_to_other(s: u8, to: &TypeKind) -> Option<Convert> {
    fn whole<T: ArrowPrimitiveType>(s: u8, narrow: fn(i128) -> T::Native) -> Convert {
        let divisor = power(s);
        Box::new(move |array| {
            let array = array.as_primitive::<Decimal128Type>();
            let converted: PrimitiveArray<T> = array.unary(|v| narrow(v / divisor));
            Ok(Arc::new(converted))
        })
    }
    // The low bits are what Java keeps of a number that is too large.
    #[allow(clippy::cast_possible_truncation)]
    Some(match to {
        TypeKind::Boolean => Box::new(|array| Ok(not_zero(array.as_primitive::<Decimal128Type>()))),
        TypeKind::TinyInt => whole::<Int8Type>(s, |v| v as i8),
        TypeKind::SmallInt => whole::<Int16Type>(s, |v| v as i16),
        TypeKind::Int => whole::<Int32Type>(s, |v| v as i32),
        TypeKind::BigInt => whole::<Int64Type>(s, |v| v as i64),
        TypeKind::Float => Box::new(move |array| {
            let array = array.as_primitive::<Decimal128Type>();
            let converted: PrimitiveArray<Float32Type> = array.unary(|v| decimal_to_float(v, s));
            Ok(Arc::new(converted))
        }),
        TypeKind::Double => Box::new(move |array| {
            let array = array.as_primitive::<Decimal128Type>();
            let converted: PrimitiveArray<Float64Type> = array.unary(|v| decimal_to_double(v, s));
            Ok(Arc::new(converted))
        }),
        _ => return None,
    })
}

/// The nearest DOUBLE of a decimal.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn decimal_to_double(unscaled: i128, scale: u8) -> f64 {
    // Both sides of this division are exact, so that it rounds once.
    if unscaled.unsigned_abs() <= 1 << 53 && scale <= 22 {
        return unscaled as f64 / 10f64.powi(scale.into());
    }
    format!("{unscaled}e-{scale}").parse().unwrap_or(f64::NAN)
}

/// The nearest FLOAT of a decimal.
#[allow(clippy::cast_precision_loss)]
fn decimal_to_float(unscaled: i128, scale: u8) -> f32 {
    if unscaled.unsigned_abs() <= 1 << 24 && scale <= 10 {
        return unscaled as f32 / 10f32.powi(scale.into());
    }
    format!("{unscaled}e-{scale}").parse().unwrap_or(f32::NAN)
}

fn not_zero<F: ArrowPrimitiveType>(array: &PrimitiveArray<F>) -> ArrayRef {
    let zero = F::default_value();
    let values = array.values();
    let bits = BooleanBuffer::collect_bool(values.len(), |i| values[i] != zero);
    Arc::new(BooleanArray::new(bits, array.nulls().cloned()))
}

fn to_boolean(from: &TypeKind) -> Option<Convert> {
    fn plan<F: ArrowPrimitiveType>() -> Convert {
        Box::new(|array| Ok(not_zero(array.as_primitive::<F>())))
    }
    Some(match from {
        TypeKind::TinyInt => plan::<Int8Type>(),
        TypeKind::SmallInt => plan::<Int16Type>(),
        TypeKind::Int => plan::<Int32Type>(),
        TypeKind::BigInt => plan::<Int64Type>(),
        TypeKind::Float => plan::<Float32Type>(),
        TypeKind::Double => plan::<Float64Type>(),
        _ => return None,
    })
}

fn from_boolean(to: &TypeKind) -> Option<Convert> {
    fn plan<T: ArrowPrimitiveType>() -> Convert
    where
        T::Native: From<bool>,
    {
        Box::new(|array| {
            let array = array.as_boolean();
            let values: Vec<T::Native> = array.values().iter().map(T::Native::from).collect();
            let converted = PrimitiveArray::<T>::new(values.into(), array.nulls().cloned());
            Ok(Arc::new(converted))
        })
    }
    Some(match to {
        TypeKind::TinyInt => plan::<Int8Type>(),
        TypeKind::SmallInt => plan::<Int16Type>(),
        TypeKind::Int => plan::<Int32Type>(),
        TypeKind::BigInt => plan::<Int64Type>(),
        TypeKind::Float => plan::<Float32Type>(),
        TypeKind::Double => plan::<Float64Type>(),
        _ => return None,
    })
}
