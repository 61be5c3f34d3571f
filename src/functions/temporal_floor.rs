//! `FLOOR(t TO unit)` and `CEIL(t TO unit)`.

use super::builtin::Builtin;
use super::kernel::{Call, Ticks};
use super::time_form::{Local, NANOS_PER_DAY, NANOS_PER_SECOND, TimeForm};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::TypeKind;
use crate::types::calendar::{civil_from_days, days_from_civil};

/// What a time is rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// So many nanoseconds.
    Nanos(i64),
    /// The week from Sunday.
    Week,
    /// So many months from a year's start.
    Months(i64),
    /// So many years; centuries and millennia start with a year 1.
    Years(i64),
}

impl Unit {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "NANOSECOND" => Self::Nanos(1),
            "MICROSECOND" => Self::Nanos(1000),
            "MILLISECOND" => Self::Nanos(1_000_000),
            "SECOND" => Self::Nanos(NANOS_PER_SECOND),
            "MINUTE" => Self::Nanos(60 * NANOS_PER_SECOND),
            "HOUR" => Self::Nanos(3600 * NANOS_PER_SECOND),
            "DAY" => Self::Nanos(NANOS_PER_DAY),
            "WEEK" => Self::Week,
            "MONTH" => Self::Months(1),
            "QUARTER" => Self::Months(3),
            "YEAR" => Self::Years(1),
            "DECADE" => Self::Years(10),
            "CENTURY" => Self::Years(100),
            "MILLENNIUM" => Self::Years(1000),
            _ => return None,
        })
    }

    fn is_of_time(self) -> bool {
        matches!(self, Self::Nanos(n) if n < NANOS_PER_DAY)
    }

    fn floor(self, t: Local) -> Local {
        let midnight = |days| Local { days, nanos: 0 };
        match self {
            Self::Nanos(unit) => Local {
                days: t.days,
                nanos: t.nanos - t.nanos % unit,
            },
            Self::Week => midnight(t.days - (t.days + 4).rem_euclid(7)),
            Self::Months(unit) => {
                let (year, month, _) = civil_from_days(t.days);
                let month = (i64::from(month) - 1) / unit * unit + 1;
                midnight(first_of(year, month))
            }
            Self::Years(unit) => {
                let (year, _, _) = civil_from_days(t.days);
                let origin = i64::from(unit >= 100);
                let year = (year - origin).div_euclid(unit) * unit + origin;
                midnight(first_of(year, 1))
            }
        }
    }

    /// The start of the next unit.
    fn next(self, start: Local) -> Option<Local> {
        let days = match self {
            Self::Nanos(unit) => return start.plus_nanos(i128::from(unit)),
            Self::Week => start.days + 7,
            Self::Months(unit) => {
                let (year, month, _) = civil_from_days(start.days);
                first_of(year, i64::from(month) + unit)
            }
            Self::Years(unit) => {
                let (year, _, _) = civil_from_days(start.days);
                first_of(year + unit, 1)
            }
        };
        Some(Local { days, nanos: 0 })
    }
}

/// The first day of a month; the month may be 13 and more.
fn first_of(year: i64, month: i64) -> i64 {
    let months = year * 12 + month - 1;
    let month = u32::try_from(months.rem_euclid(12)).unwrap_or(0) + 1;
    days_from_civil(months.div_euclid(12), month, 1)
}

/// The types of a call with a unit.
pub(super) fn resolve(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let unit = match &args[1].literal {
        Some(datafusion::common::ScalarValue::Utf8(Some(name))) => Unit::from_name(name),
        _ => None,
    };
    let kind = &args[0].data_type.kind;
    let fits = match kind {
        TypeKind::Time(_) => unit.is_some_and(Unit::is_of_time),
        kind => unit.is_some() && kind.is_temporal(),
    };
    if !fits {
        return Err(builtin.refuse_types(args));
    }
    Ok(Signature {
        args: args.iter().map(|a| a.data_type.clone()).collect(),
        returns: args[0].data_type.clone(),
    })
}

/// The kernel of a call with a unit.
pub(super) fn prepare(call: &Call<'_>, up: bool) -> Result<Kernel> {
    let unit = call.text_literal(1).and_then(Unit::from_name);
    let form = TimeForm::new(call.kind(0), call.env);
    let (Some(unit), Some(form)) = (unit, form) else {
        return Err(Error::internal(format!("{} to no unit", call.name)));
    };
    if matches!(call.kind(0), TypeKind::Date) && unit.is_of_time() {
        return Ok(Box::new(|args, _| Ok(args[0].clone())));
    }
    let time_of_day = matches!(call.kind(0), TypeKind::Time(_));
    Ok(call.map_arg::<Ticks, Ticks, _>(0, move |value| {
        let t = form.local(value);
        let mut start = unit.floor(t);
        if up && start != t {
            start = unit.next(start)?;
        }
        if time_of_day {
            start.days = 0;
        }
        if unit.is_of_time() {
            form.value_near(start, value)
        } else {
            form.value(start)
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::text::temporal::Moment;

    fn both(unit: &str, seconds: i64) -> (String, String) {
        let unit = Unit::from_name(unit).expect("a unit");
        let t = Local::from_seconds(seconds, 0);
        let show = |t: Local| {
            let mut out = String::new();
            Moment::new(t.seconds(), 1).write_local(&mut out);
            out
        };
        let start = unit.floor(t);
        let end = if start == t {
            t
        } else {
            unit.next(start).expect("near")
        };
        (show(start), show(end))
    }

    #[test]
    fn units_start_where_the_calendar_says() {
        let t = days_from_civil(2024, 2, 29) * 86_400 + 86_399;
        let pair = |a: &str, b: &str| (format!("{a}T00:00"), format!("{b}T00:00"));
        assert_eq!(both("YEAR", t), pair("2024-01-01", "2025-01-01"));
        assert_eq!(both("QUARTER", t), pair("2024-01-01", "2024-04-01"));
        assert_eq!(both("MONTH", t), pair("2024-02-01", "2024-03-01"));
        assert_eq!(both("WEEK", t), pair("2024-02-25", "2024-03-03"));
        assert_eq!(both("DAY", t), pair("2024-02-29", "2024-03-01"));
        assert_eq!(both("DECADE", t), pair("2020-01-01", "2030-01-01"));
        assert_eq!(both("CENTURY", t), pair("2001-01-01", "2101-01-01"));
        assert_eq!(both("MILLENNIUM", t), pair("2001-01-01", "3001-01-01"));
        assert_eq!(
            both("HOUR", t),
            (
                "2024-02-29T23:00".to_string(),
                "2024-03-01T00:00".to_string()
            )
        );
    }

    #[test]
    fn a_start_is_its_own_floor_and_ceiling() {
        let april = days_from_civil(2024, 4, 1) * 86_400;
        for unit in ["QUARTER", "MONTH", "DAY", "HOUR"] {
            let (floor, ceil) = both(unit, april);
            assert_eq!(floor, ceil, "{unit}");
        }
        let before = days_from_civil(1969, 12, 31) * 86_400 + 1;
        assert_eq!(both("MONTH", before).0, "1969-12-01T00:00");
    }
}
