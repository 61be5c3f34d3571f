//! `TIMESTAMPADD`, `TIMESTAMPDIFF` and `OVERLAPS`.

use datafusion::common::ScalarValue;

use super::builtin::{Builtin, Resolve::Custom};
use super::kernel::{BigInt, Bool, Call, Int, Ticks, collect, columns};
use super::signature::any_nullable;
use super::time_form::{Local, NANOS_PER_DAY, NANOS_PER_SECOND, TimeForm};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::calendar::add_months;
use crate::types::{DataType, TypeKind};

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nanos(i64),
    Months(i64),
}

impl Step {
    fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        Some(match name.strip_prefix("SQL_TSI_").unwrap_or(&name) {
            "NANOSECOND" => Self::Nanos(1),
            "MICROSECOND" => Self::Nanos(1000),
            "MILLISECOND" => Self::Nanos(1_000_000),
            "SECOND" => Self::Nanos(NANOS_PER_SECOND),
            "MINUTE" => Self::Nanos(60 * NANOS_PER_SECOND),
            "HOUR" => Self::Nanos(3600 * NANOS_PER_SECOND),
            "DAY" => Self::Nanos(NANOS_PER_DAY),
            "WEEK" => Self::Nanos(7 * NANOS_PER_DAY),
            "MONTH" => Self::Months(1),
            "QUARTER" => Self::Months(3),
            "YEAR" => Self::Months(12),
            "DECADE" => Self::Months(120),
            "CENTURY" => Self::Months(1200),
            "MILLENNIUM" => Self::Months(12_000),
            _ => return None,
        })
    }

    fn of(arg: &Arg) -> Option<Self> {
        match &arg.literal {
            Some(ScalarValue::Utf8(Some(name))) => Self::from_name(name),
            _ => None,
        }
    }

    fn is_whole_days(self) -> bool {
        match self {
            Self::Nanos(n) => n % NANOS_PER_DAY == 0,
            Self::Months(_) => true,
        }
    }

    /// `t` and `n` of these.
    fn add(self, t: Local, n: i64) -> Option<Local> {
        match self {
            Self::Nanos(unit) => t.plus_nanos(i128::from(unit) * i128::from(n)),
            Self::Months(unit) => {
                let months = unit
                    .checked_mul(n)
                    .filter(|m| m.unsigned_abs() < 1_000_000_000)?;
                Some(Local {
                    days: add_months(t.days, months),
                    nanos: t.nanos,
                })
            }
        }
    }

    /// How many of these lie between two moments.
    fn between(self, from: Local, to: Local) -> i64 {
        match self {
            Self::Nanos(unit) => {
                let nanos = (to.millis() - from.millis()) * 1_000_000;
                i64::try_from(nanos / i128::from(unit)).unwrap_or(i64::MAX)
            }
            Self::Months(unit) => months_between(from, to) / unit,
        }
    }
}

/// Months from one day to another, towards zero.
fn months_of_days(from: i64, to: i64) -> i64 {
    if to < from {
        return -months_of_days(to, from);
    }
    let mut months = (to - from) / 31;
    while add_months(from, months + 1) <= to {
        months += 1;
    }
    months
}

/// Months from one moment to another. As in Flink a month less when the time of the day is not reached
/// on the day that counts, even backwards.
fn months_between(from: Local, to: Local) -> i64 {
    let months = months_of_days(from.days, to.days);
    if add_months(from.days, months) == to.days && to.nanos < from.nanos {
        months - 1
    } else {
        months
    }
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "TIMESTAMPADD",
        "TIMESTAMPADD(unit, n INT, t DATE | TIME | TIMESTAMP)",
        "The time n units later; the day is cut to the month's length.",
        Custom(resolve_add),
        prepare_add,
    )
    .example("TIMESTAMPADD(MONTH, 1, DATE '2024-01-31')", "2024-02-29"),
    Builtin::new(
        "TIMESTAMPDIFF",
        "TIMESTAMPDIFF(unit, a DATE | TIME | TIMESTAMP, b DATE | TIME | TIMESTAMP)",
        "The number of whole units from a to b.",
        Custom(resolve_diff),
        prepare_diff,
    )
    .example("TIMESTAMPDIFF(DAY, DATE '2024-01-31', DATE '2024-02-29')", "29"),
    Builtin::new(
        "OVERLAPS",
        "(start1, end1) OVERLAPS (start2, end2)",
        "Whether two periods have a moment in common, their ends included. An end may be an interval from the start.",
        Custom(resolve_overlaps),
        prepare_overlaps,
    )
    .example(
        "(TIME '10:00:00', INTERVAL '1' HOUR) OVERLAPS (TIME '10:30:00', INTERVAL '1' HOUR)",
        "true",
    ),
];

fn resolve_add(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [unit, count, time] = args else {
        return Err(builtin.refuse_count(args));
    };
    let step = Step::of(unit);
    let (Some(step), true) = (step, count.data_type.kind.is_integer()) else {
        return Err(builtin.refuse_types(args));
    };
    let fine = match step {
        Step::Nanos(n) if n < 1000 => 9,
        Step::Nanos(n) if n < 1_000_000 => 6,
        Step::Nanos(n) if n < NANOS_PER_SECOND => 3,
        _ => 0,
    };
    let kind = match &time.data_type.kind {
        TypeKind::Date if step.is_whole_days() => TypeKind::Date,
        TypeKind::Date => TypeKind::Timestamp(6),
        TypeKind::Time(p) if !matches!(step, Step::Months(_)) => TypeKind::Time(*p),
        TypeKind::Timestamp(p) => TypeKind::Timestamp((*p).max(fine)),
        TypeKind::TimestampLtz(p) => TypeKind::TimestampLtz((*p).max(fine)),
        _ => return Err(builtin.refuse_types(args)),
    };
    let nullable = count.data_type.nullable || time.data_type.nullable;
    Ok(Signature {
        args: vec![
            unit.data_type.clone(),
            TypeKind::BigInt.with_nullable(count.data_type.nullable),
            time.data_type.clone(),
        ],
        returns: kind.with_nullable(nullable),
    })
}

fn forms(call: &Call<'_>, arg: usize) -> Result<TimeForm> {
    let kind = call.kind(arg);
    TimeForm::utc(kind).ok_or_else(|| Error::internal(format!("{} of {kind}", call.name)))
}

fn step(call: &Call<'_>) -> Result<Step> {
    let unit = call.text_literal(0).and_then(Step::from_name);
    unit.ok_or_else(|| Error::internal(format!("{} without a unit", call.name)))
}

fn prepare_add(call: &Call<'_>) -> Result<Kernel> {
    let (step, from) = (step(call)?, forms(call, 2)?);
    let to = TimeForm::utc(&call.returns.kind)
        .ok_or_else(|| Error::internal(format!("{} to {}", call.name, call.returns)))?;
    let arrow = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let (n, t) = (c.column::<BigInt>(1)?, c.column::<Ticks>(2)?);
        collect::<Ticks>(c.rows, c.nulls_of([1, 2]).as_ref(), &arrow, |i| {
            let moved = step.add(from.local(t.value(i)), n.value(i));
            Ok(moved.and_then(|t| to.value(t)))
        })
    }))
}

fn resolve_diff(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [unit, a, b] = args else {
        return Err(builtin.refuse_count(args));
    };
    let (x, y) = (&a.data_type.kind, &b.data_type.kind);
    if Step::of(unit).is_none() || !x.is_temporal() || !y.is_temporal() {
        return Err(builtin.refuse_types(args));
    }
    let instant = |kind: &TypeKind| matches!(kind, TypeKind::TimestampLtz(_));
    if instant(x) != instant(y) {
        return Err(
            Error::plan("TIMESTAMP_LTZ only supports diff between the same type.")
                .hint("cast one of the two"),
        );
    }
    let time = |kind: &TypeKind| matches!(kind, TypeKind::Time(_));
    if time(x) != time(y) {
        return Err(builtin.refuse_types(args));
    }
    Ok(Signature {
        args: args.iter().map(|a| a.data_type.clone()).collect(),
        returns: TypeKind::Int.with_nullable(a.data_type.nullable || b.data_type.nullable),
    })
}

fn prepare_diff(call: &Call<'_>) -> Result<Kernel> {
    let (step, from, to) = (step(call)?, forms(call, 1)?, forms(call, 2)?);
    let arrow = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let (a, b) = (c.column::<Ticks>(1)?, c.column::<Ticks>(2)?);
        collect::<Int>(c.rows, c.nulls_of([1, 2]).as_ref(), &arrow, |i| {
            let n = step.between(from.local(a.value(i)), to.local(b.value(i)));
            // Too many wrap around, as Flink's cast does.
            Ok(Some(n as i32))
        })
    }))
}

fn resolve_overlaps(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [a, b, c, d] = args else {
        return Err(builtin.refuse_count(args));
    };
    let temporal = |arg: &Arg| arg.data_type.kind.is_temporal();
    let ends = |arg: &Arg| temporal(arg) || arg.data_type.kind.is_interval();
    if !(temporal(a) && ends(b) && temporal(c) && ends(d)) {
        return Err(builtin.refuse_types(args));
    }
    let types: Vec<DataType> = args.iter().map(|a| a.data_type.clone()).collect();
    let nullable = any_nullable(&types);
    Ok(Signature {
        args: types,
        returns: TypeKind::Boolean.with_nullable(nullable),
    })
}

/// How the end of a period is found.
#[derive(Clone, Copy)]
enum End {
    At(TimeForm),
    After(Step),
}

fn prepare_overlaps(call: &Call<'_>) -> Result<Kernel> {
    let end = |arg: usize| -> Result<End> {
        Ok(match call.kind(arg) {
            TypeKind::IntervalYearMonth => End::After(Step::Months(1)),
            TypeKind::IntervalDayTime => End::After(Step::Nanos(1_000_000)),
            _ => End::At(forms(call, arg)?),
        })
    };
    let time_of_day = matches!(call.kind(0), TypeKind::Time(_));
    let (form1, form2) = (forms(call, 0)?, forms(call, 2)?);
    let (end1, end2) = (end(1)?, end(3)?);
    let arrow = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let args = c.each::<Ticks>(0..4)?;
        let period = |i: usize, arg: usize, form: TimeForm, end: End| {
            let start = args[arg].get(i).map(|t| form.local(t));
            let end = match (end, args[arg + 1].get(i)) {
                (End::At(form), end) => end.map(|t| form.local(t)),
                (End::After(step), Some(n)) => start.and_then(|t| step.add(t, n)),
                (End::After(_), None) => None,
            };
            let end = end.map(|mut t| {
                if time_of_day {
                    t.days = 0;
                }
                t
            });
            match (start, end) {
                (Some(s), Some(e)) if s <= e => (start, end),
                _ => (end, start),
            }
        };
        let not_before = |a: Option<Local>, b: Option<Local>| Some(a? >= b?);
        collect::<Bool>(c.rows, None, &arrow, |i| {
            let (start1, end1) = period(i, 0, form1, end1);
            let (start2, end2) = period(i, 2, form2, end2);
            Ok(match (not_before(end1, start2), not_before(end2, start1)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            })
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::calendar::days_from_civil;

    fn at(year: i64, month: u32, day: u32, hour: i64) -> Local {
        Local {
            days: days_from_civil(year, month, day),
            nanos: hour * 3600 * NANOS_PER_SECOND,
        }
    }

    #[test]
    fn months_are_counted_as_flink_does() {
        let months = |a, b| months_between(a, b);
        assert_eq!(months(at(2024, 1, 31, 0), at(2024, 2, 29, 0)), 1);
        assert_eq!(months(at(2024, 2, 29, 0), at(2024, 1, 31, 0)), -1);
        assert_eq!(months(at(2024, 1, 15, 10), at(2024, 2, 15, 9)), 0);
        assert_eq!(months(at(2024, 2, 15, 9), at(2024, 1, 15, 10)), -1);
        assert_eq!(months(at(2024, 2, 15, 9), at(2024, 1, 15, 8)), -2);
        assert_eq!(months(at(2024, 3, 31, 0), at(2024, 2, 29, 0)), -1);
        assert_eq!(
            Step::Months(12).between(at(2024, 2, 29, 0), at(2025, 2, 28, 0)),
            1
        );
    }

    #[test]
    fn differences_are_cut_towards_zero() {
        let hours = Step::Nanos(3600 * NANOS_PER_SECOND);
        let a = at(2024, 1, 1, 10);
        let b = a
            .plus_nanos(-90 * 60 * i128::from(NANOS_PER_SECOND))
            .expect("near");
        assert_eq!(hours.between(a, b), -1);
        assert_eq!(hours.between(b, a), 1);
    }
}
