//! Arithmetic on dates, times, timestamps and intervals.

use arrow::array::ArrowPrimitiveType;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, DurationMillisecondType, Int64Type, IntervalYearMonthType,
    Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use datafusion::logical_expr::ColumnarValue;

use super::arithmetic::Operator;
use super::{Outcome, Values, kernel, zip_with};
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::types::calendar::{MILLIS_PER_DAY, add_months};
use crate::types::{DataType, TypeKind};

/// A kernel that takes its arguments in the other order.
fn swapped(kernel: Kernel) -> Kernel {
    Box::new(move |args, context| match args {
        [left, right] => kernel(&[right.clone(), left.clone()], context),
        _ => Err(Error::internal("an operator of two arguments got others")),
    })
}

/// The kernel of an operator one of whose operands is an interval.
pub(super) fn prepare(
    operator: Operator,
    left: &TypeKind,
    right: &TypeKind,
    returns: &DataType,
) -> Option<Kernel> {
    let arrow = returns.to_arrow();
    let minus = operator == Operator::Minus;
    match operator {
        Operator::Times if left.is_interval() => Some(times(left, arrow)),
        Operator::Times => Some(swapped(times(right, arrow))),
        Operator::Plus | Operator::Minus => match (left, right) {
            (TypeKind::IntervalYearMonth, TypeKind::IntervalYearMonth) => {
                Some(sum::<IntervalYearMonthType>(arrow, move |l, r| {
                    if minus {
                        l.wrapping_sub(r)
                    } else {
                        l.wrapping_add(r)
                    }
                }))
            }
            (TypeKind::IntervalDayTime, TypeKind::IntervalDayTime) => {
                Some(sum::<DurationMillisecondType>(arrow, move |l, r| {
                    if minus {
                        l.wrapping_sub(r)
                    } else {
                        l.wrapping_add(r)
                    }
                }))
            }
            (l, r) if r.is_interval() => shift(l, r, minus, arrow),
            (l, r) => shift(r, l, minus, arrow).map(swapped),
        },
        Operator::Divide | Operator::Modulo => None,
    }
}

fn sum<T: ArrowPrimitiveType>(
    arrow: ArrowType,
    add: impl Fn(T::Native, T::Native) -> T::Native + Copy + Send + Sync + 'static,
) -> Kernel {
    kernel::<T, T, T>(arrow, move |left, right| zip_with(left, right, add))
}

/// An interval times a BIGINT; months wrap as Java's int.
fn times(interval: &TypeKind, arrow: ArrowType) -> Kernel {
    if *interval == TypeKind::IntervalYearMonth {
        return kernel::<IntervalYearMonthType, Int64Type, IntervalYearMonthType>(
            arrow,
            |left, right| {
                // The wrap is Java's.
                #[allow(clippy::cast_possible_truncation)]
                zip_with(left, right, |l, r| i64::from(l).wrapping_mul(r) as i32)
            },
        );
    }
    kernel::<DurationMillisecondType, Int64Type, DurationMillisecondType>(arrow, |left, right| {
        zip_with(left, right, i64::wrapping_mul)
    })
}

/// Ticks of a timestamp a millisecond, as numerator and denominator never below one.
fn per_milli(precision: u8) -> i64 {
    match precision {
        0..=3 => 1,
        4..=6 => 1000,
        _ => 1_000_000,
    }
}

/// A point in time plus or minus an interval.
fn shift(point: &TypeKind, interval: &TypeKind, minus: bool, arrow: ArrowType) -> Option<Kernel> {
    let months = *interval == TypeKind::IntervalYearMonth;
    match point {
        TypeKind::Date => Some(if months {
            kernel::<Date32Type, IntervalYearMonthType, Date32Type>(arrow, move |left, right| {
                zip_with(left, right, |days, months| {
                    let months = signed(i64::from(months), minus);
                    to_date(add_months(i64::from(days), months))
                })
            })
        } else {
            // Only whole days count.
            kernel::<Date32Type, DurationMillisecondType, Date32Type>(arrow, move |left, right| {
                zip_with(left, right, |days, millis| {
                    let days_more = signed(millis / MILLIS_PER_DAY, minus);
                    to_date(i64::from(days).wrapping_add(days_more))
                })
            })
        }),
        TypeKind::Time(_) => Some(if months {
            kernel::<Time32MillisecondType, IntervalYearMonthType, Time32MillisecondType>(
                arrow,
                |left, right| zip_with(left, right, |time, _| time),
            )
        } else {
            kernel::<Time32MillisecondType, DurationMillisecondType, Time32MillisecondType>(
                arrow,
                move |left, right| {
                    zip_with(left, right, |time, millis| {
                        let moved = i64::from(time).wrapping_add(signed(millis, minus));
                        i32::try_from(moved.rem_euclid(MILLIS_PER_DAY)).unwrap_or(0)
                    })
                },
            )
        }),
        TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) => Some(match p {
            0..=3 => shift_timestamp::<TimestampMillisecondType>(*p, months, minus, arrow),
            4..=6 => shift_timestamp::<TimestampMicrosecondType>(*p, months, minus, arrow),
            _ => shift_timestamp::<TimestampNanosecondType>(*p, months, minus, arrow),
        }),
        _ => None,
    }
}

fn signed(value: i64, minus: bool) -> i64 {
    if minus { value.wrapping_neg() } else { value }
}

/// Far beyond year 9999 days wrap, as in Java.
#[allow(clippy::cast_possible_truncation)]
fn to_date(days: i64) -> i32 {
    days as i32
}

fn shift_timestamp<T>(precision: u8, months: bool, minus: bool, arrow: ArrowType) -> Kernel
where
    T: ArrowPrimitiveType<Native = i64>,
{
    let unit = per_milli(precision);
    if !months {
        return kernel::<T, DurationMillisecondType, T>(arrow, move |left, right| {
            zip_with(left, right, |ticks, millis| {
                ticks.wrapping_add(signed(millis, minus).wrapping_mul(unit))
            })
        });
    }
    // Months of instants are counted in UTC, as Flink does.
    let per_day = MILLIS_PER_DAY * unit;
    kernel::<T, IntervalYearMonthType, T>(arrow, move |left, right| {
        zip_with(left, right, |ticks, months| {
            let (day, rest) = (ticks.div_euclid(per_day), ticks.rem_euclid(per_day));
            add_months(day, signed(i64::from(months), minus))
                .wrapping_mul(per_day)
                .wrapping_add(rest)
        })
    })
}

/// The whole months from one day and millisecond of the day to another.
fn months_between(from: (i64, i64), to: (i64, i64)) -> i64 {
    if from > to {
        return -months_between(to, from);
    }
    // No month has more than 31 days: this is not too many.
    let mut months = (to.0 - from.0) / 31;
    while (add_months(from.0, months + 1), from.1) <= to {
        months += 1;
    }
    months
}

/// The kernel of `(a - b) UNIT` on points in time of type `kind`.
pub(super) fn difference(kind: &TypeKind, months: bool) -> Option<Kernel> {
    fn plan<T: ArrowPrimitiveType>(
        months: bool,
        per_day: i64,
        to_millis: impl Fn(i64) -> i64 + Copy + Send + Sync + 'static,
    ) -> Kernel
    where
        T::Native: Into<i64>,
    {
        let two = |args: &[ColumnarValue]| -> Result<(Values<T>, Values<T>)> {
            match args {
                [left, right, ..] => Ok((Values::new(left)?, Values::new(right)?)),
                _ => Err(Error::internal("MINUS_DATE got too few arguments")),
            }
        };
        if months {
            let split = move |v: T::Native| {
                let ticks: i64 = v.into();
                (ticks.div_euclid(per_day), ticks.rem_euclid(per_day))
            };
            return Box::new(move |args, _| {
                let (left, right) = two(args)?;
                let found: Outcome<IntervalYearMonthType> = zip_with(&left, &right, |l, r| {
                    i32::try_from(months_between(split(r), split(l))).unwrap_or(0)
                })?;
                found.typed(&TypeKind::IntervalYearMonth.to_arrow())
            });
        }
        Box::new(move |args, _| {
            let (left, right) = two(args)?;
            let found: Outcome<DurationMillisecondType> = zip_with(&left, &right, |l, r| {
                to_millis(l.into()).wrapping_sub(to_millis(r.into()))
            })?;
            found.typed(&TypeKind::IntervalDayTime.to_arrow())
        })
    }
    Some(match kind {
        TypeKind::Date => plan::<Date32Type>(months, 1, |v| v.wrapping_mul(MILLIS_PER_DAY)),
        TypeKind::Time(_) => plan::<Time32MillisecondType>(months, MILLIS_PER_DAY, |v| v),
        TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) => {
            let unit = per_milli(*p);
            let to_millis = move |v: i64| v.div_euclid(unit);
            let per_day = MILLIS_PER_DAY * unit;
            match p {
                0..=3 => plan::<TimestampMillisecondType>(months, per_day, to_millis),
                4..=6 => plan::<TimestampMicrosecondType>(months, per_day, to_millis),
                _ => plan::<TimestampNanosecondType>(months, per_day, to_millis),
            }
        }
        _ => return None,
    })
}
