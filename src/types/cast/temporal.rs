//! Dates, times and timestamps into each other, and numbers into intervals.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    Date32Type, DurationMillisecondType, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalYearMonthType, Time32MillisecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};
use chrono_tz::Tz;

use super::{Context, Convert};
use crate::error::{Error, Result};
use crate::types::calendar::{MILLIS_PER_DAY, local_to_instant, utc_offset};
use crate::types::parse::timestamp_value;
use crate::types::{TypeKind, UTC};

/// Integers as months or milliseconds.
pub(super) fn integer_to_interval(from: &TypeKind, to: &TypeKind) -> Option<Convert> {
    fn plan<F>(months: bool) -> Convert
    where
        F: ArrowPrimitiveType,
        F::Native: Into<i64>,
    {
        Box::new(move |array| {
            let array = array.as_primitive::<F>();
            // Java's cast to int keeps the low bits.
            #[allow(clippy::cast_possible_truncation)]
            Ok(if months {
                let converted: PrimitiveArray<IntervalYearMonthType> =
                    array.unary(|v| v.into() as i32);
                Arc::new(converted)
            } else {
                let converted: PrimitiveArray<DurationMillisecondType> = array.unary(Into::into);
                Arc::new(converted)
            })
        })
    }
    let months = matches!(to, TypeKind::IntervalYearMonth);
    Some(match from {
        TypeKind::TinyInt => plan::<Int8Type>(months),
        TypeKind::SmallInt => plan::<Int16Type>(months),
        TypeKind::Int => plan::<Int32Type>(months),
        TypeKind::BigInt => plan::<Int64Type>(months),
        _ => return None,
    })
}

/// Ticks a second of a timestamp.
fn per_second(precision: u8) -> i64 {
    match precision {
        0..=3 => 1000,
        4..=6 => 1_000_000,
        _ => 1_000_000_000,
    }
}

/// A timestamp column as plain ticks.
fn ticks(array: &ArrayRef, precision: u8) -> PrimitiveArray<Int64Type> {
    match precision {
        0..=3 => array
            .as_primitive::<TimestampMillisecondType>()
            .reinterpret_cast(),
        4..=6 => array
            .as_primitive::<TimestampMicrosecondType>()
            .reinterpret_cast(),
        _ => array
            .as_primitive::<TimestampNanosecondType>()
            .reinterpret_cast(),
    }
}

/// Ticks as a timestamp column of type `to`.
fn timestamps(ticks: &PrimitiveArray<Int64Type>, to: &TypeKind) -> Result<ArrayRef> {
    let (precision, zone) = match to {
        TypeKind::TimestampLtz(p) => (*p, Some(UTC)),
        TypeKind::Timestamp(p) => (*p, None),
        _ => return Err(Error::internal("a timestamp type was expected")),
    };
    Ok(match precision {
        0..=3 => Arc::new(
            ticks
                .reinterpret_cast::<TimestampMillisecondType>()
                .with_timezone_opt(zone),
        ),
        4..=6 => Arc::new(
            ticks
                .reinterpret_cast::<TimestampMicrosecondType>()
                .with_timezone_opt(zone),
        ),
        _ => Arc::new(
            ticks
                .reinterpret_cast::<TimestampNanosecondType>()
                .with_timezone_opt(zone),
        ),
    })
}

/// Ticks of the coarser or finer unit of `to`, cut to its precision as Flink does: below the second it cuts
/// towards 1970.
fn rescale(
    ticks: &PrimitiveArray<Int64Type>,
    from: u8,
    to: u8,
) -> Result<PrimitiveArray<Int64Type>> {
    let (have, want) = (per_second(from), per_second(to));
    let cut = match to {
        0..=2 => 10i64.pow(3 - u32::from(to)),
        4..=5 => 10i64.pow(6 - u32::from(to)),
        7..=8 => 10i64.pow(9 - u32::from(to)),
        _ => 1,
    };
    let cut_off = |v: i64| {
        if cut == 1 {
            v
        } else if to < 3 {
            v / cut * cut
        } else {
            v.div_euclid(cut) * cut
        }
    };
    if want <= have {
        let divisor = have / want;
        return Ok(ticks.unary(|v| cut_off(v.div_euclid(divisor))));
    }
    let factor = want / have;
    ticks.try_unary(|v| v.checked_mul(factor).ok_or_else(out_of_range))
}

fn out_of_range() -> Error {
    Error::execution("a timestamp is out of the range of nanoseconds, 1677 to 2262")
}

/// Ticks shown by the clocks of `zone`.
fn to_local(
    ticks: PrimitiveArray<Int64Type>,
    precision: u8,
    zone: Tz,
) -> PrimitiveArray<Int64Type> {
    if zone == Tz::UTC {
        return ticks;
    }
    let unit = per_second(precision);
    ticks.unary(|v| v.wrapping_add(utc_offset(zone, v.div_euclid(unit)) * unit))
}

/// Ticks of the instants at which clocks of `zone` show `ticks`.
fn to_instant(
    ticks: PrimitiveArray<Int64Type>,
    precision: u8,
    zone: Tz,
) -> PrimitiveArray<Int64Type> {
    if zone == Tz::UTC {
        return ticks;
    }
    let unit = per_second(precision);
    ticks.unary(|v| {
        let (seconds, rest) = (v.div_euclid(unit), v.rem_euclid(unit));
        local_to_instant(zone, seconds)
            .wrapping_mul(unit)
            .wrapping_add(rest)
    })
}

/// Temporal types into each other: the outer `None` if there is no such cast, the inner if a column stays as
/// it is.
pub(super) fn convert(
    from: &TypeKind,
    to: &TypeKind,
    context: &Context,
) -> Option<Option<Convert>> {
    use TypeKind as T;
    let zone = context.env.time_zone;
    let convert: Convert = match (from, to) {
        (T::Time(m), T::Time(n)) if m <= n => return Some(None),
        (T::Time(_), T::Time(n)) => {
            let n = *n;
            Box::new(move |array| {
                let array = array.as_primitive::<Time32MillisecondType>();
                Ok(Arc::new(cut_time(array, n)))
            })
        }
        (T::Date, T::Timestamp(p) | T::TimestampLtz(p)) => {
            let (to, p) = (to.clone(), *p);
            Box::new(move |array| {
                let array = array.as_primitive::<Date32Type>();
                from_parts(array, p, &to, zone, |days| (i64::from(days) * 86_400, 0))
            })
        }
        (T::Time(_), T::Timestamp(p) | T::TimestampLtz(p)) => {
            let (to, p) = (to.clone(), *p);
            Box::new(move |array| {
                let array = array.as_primitive::<Time32MillisecondType>();
                from_parts(array, p, &to, zone, |millis| {
                    (0, i64::from(millis) * 1_000_000)
                })
            })
        }
        (T::Timestamp(p) | T::TimestampLtz(p), T::Date | T::Time(_)) => {
            let (p, from, to) = (*p, from.clone(), to.clone());
            Box::new(move |array| {
                let mut ticks = ticks(array, p);
                if matches!(from, T::TimestampLtz(_)) {
                    ticks = to_local(ticks, p, zone);
                }
                let per_day = per_second(p) * 86_400;
                // A day number and the milliseconds of a day fit into 32 bits.
                #[allow(clippy::cast_possible_truncation)]
                Ok(match to {
                    T::Time(n) => {
                        let per_milli = per_second(p) / 1000;
                        let millis: PrimitiveArray<Time32MillisecondType> =
                            ticks.unary(|v| (v.rem_euclid(per_day) / per_milli) as i32);
                        Arc::new(cut_time(&millis, n))
                    }
                    _ => {
                        let days: PrimitiveArray<Date32Type> =
                            ticks.unary(|v| v.div_euclid(per_day) as i32);
                        Arc::new(days)
                    }
                })
            })
        }
        (T::Timestamp(m) | T::TimestampLtz(m), T::Timestamp(n) | T::TimestampLtz(n)) => {
            let (m, n, from, to) = (*m, *n, from.clone(), to.clone());
            Box::new(move |array| {
                let mut moments = ticks(array, m);
                match (&from, &to) {
                    (T::TimestampLtz(_), T::Timestamp(_)) => moments = to_local(moments, m, zone),
                    (T::Timestamp(_), T::TimestampLtz(_)) => moments = to_instant(moments, m, zone),
                    _ => {}
                }
                timestamps(&rescale(&moments, m, n)?, &to)
            })
        }
        _ => return None,
    };
    Some(Some(convert))
}

fn cut_time(
    array: &PrimitiveArray<Time32MillisecondType>,
    precision: u8,
) -> PrimitiveArray<Time32MillisecondType> {
    let unit = 10i32.pow(3 - u32::from(precision).min(3));
    let day = i32::try_from(MILLIS_PER_DAY).unwrap_or(i32::MAX);
    array.unary(|v| {
        let v = v.rem_euclid(day);
        v - v % unit
    })
}

/// Timestamps of local times that are given in seconds and nanoseconds.
fn from_parts<F: ArrowPrimitiveType>(
    array: &PrimitiveArray<F>,
    precision: u8,
    to: &TypeKind,
    zone: Tz,
    parts: impl Fn(F::Native) -> (i64, i64),
) -> Result<ArrayRef> {
    let ticks: PrimitiveArray<Int64Type> = array.try_unary(|v| {
        let (seconds, nanos) = parts(v);
        timestamp_value(seconds, nanos, precision).ok_or_else(out_of_range)
    })?;
    let ticks = match to {
        TypeKind::TimestampLtz(_) => to_instant(ticks, precision, zone),
        _ => ticks,
    };
    timestamps(&ticks, to)
}
