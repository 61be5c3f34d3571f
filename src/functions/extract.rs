//! `EXTRACT` and the functions that are short for it.

use super::builtin::{Builtin, Resolve::Custom};
use super::kernel::{BigInt, Call, Ticks};
use super::time_form::{Local, NANOS_PER_SECOND, TimeForm};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::TypeKind;
use crate::types::calendar::{civil_from_days, days_from_civil};

/// A part of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    Day,
    DayOfYear,
    DayOfWeek,
    IsoDayOfWeek,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Epoch,
}

impl Part {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "MILLENNIUM" => Self::Millennium,
            "CENTURY" => Self::Century,
            "DECADE" => Self::Decade,
            "YEAR" => Self::Year,
            "ISOYEAR" => Self::IsoYear,
            "QUARTER" => Self::Quarter,
            "MONTH" => Self::Month,
            "WEEK" => Self::Week,
            "DAY" => Self::Day,
            "DOY" => Self::DayOfYear,
            "DOW" => Self::DayOfWeek,
            "ISODOW" => Self::IsoDayOfWeek,
            "HOUR" => Self::Hour,
            "MINUTE" => Self::Minute,
            "SECOND" => Self::Second,
            "MILLISECOND" => Self::Millisecond,
            "MICROSECOND" => Self::Microsecond,
            "NANOSECOND" => Self::Nanosecond,
            "EPOCH" => Self::Epoch,
            _ => return None,
        })
    }

    fn is_of_time(self) -> bool {
        matches!(
            self,
            Self::Hour
                | Self::Minute
                | Self::Second
                | Self::Millisecond
                | Self::Microsecond
                | Self::Nanosecond
        )
    }

    fn of(self, t: Local) -> i64 {
        let second = || t.nanos / NANOS_PER_SECOND;
        match self {
            Self::Hour => second() / 3600,
            Self::Minute => second() / 60 % 60,
            Self::Second => second() % 60,
            Self::Millisecond => t.nanos_of_second() / 1_000_000,
            Self::Microsecond => t.nanos_of_second() / 1000,
            Self::Nanosecond => t.nanos_of_second(),
            // Towards zero.
            Self::Epoch => i64::try_from(t.millis() / 1000).unwrap_or(0),
            _ => self.of_day(t.days),
        }
    }

    fn of_day(self, days: i64) -> i64 {
        let (year, month, day) = civil_from_days(days);
        match self {
            Self::Millennium => era(year, 1000),
            Self::Century => era(year, 100),
            Self::Decade => year / 10,
            Self::Year => year,
            Self::IsoYear => iso_week(days).0,
            Self::Quarter => i64::from(month + 2) / 3,
            Self::Month => i64::from(month),
            Self::Week => iso_week(days).1,
            Self::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
            Self::DayOfWeek => (days + 4).rem_euclid(7) + 1,
            Self::IsoDayOfWeek => (days + 3).rem_euclid(7) + 1,
            _ => i64::from(day),
        }
    }

    /// Of an `INTERVAL YEAR TO MONTH`.
    fn of_months(self, months: i64) -> Option<i64> {
        Some(match self {
            Self::Millennium => months / 12_000,
            Self::Century => months / 1200,
            Self::Decade => months / 120,
            Self::Year => months / 12,
            Self::Quarter => months % 12 / 3 + 1,
            Self::Month => months % 12,
            _ => return None,
        })
    }

    /// Of an `INTERVAL DAY TO SECOND`.
    fn of_millis(self, millis: i64) -> Option<i64> {
        Some(match self {
            Self::Day => millis / 86_400_000,
            Self::Hour => millis % 86_400_000 / 3_600_000,
            Self::Minute => millis % 3_600_000 / 60_000,
            Self::Second => millis % 60_000 / 1000,
            Self::Millisecond => millis % 1000,
            Self::Microsecond => millis % 1000 * 1000,
            Self::Nanosecond => millis % 1000 * 1_000_000,
            _ => return None,
        })
    }

    /// Whether a value of the type has it.
    fn fits(self, kind: &TypeKind) -> bool {
        match kind {
            TypeKind::Date => true,
            TypeKind::Time(_) => self.is_of_time() || self == Self::Epoch,
            TypeKind::IntervalYearMonth => self.of_months(0).is_some(),
            TypeKind::IntervalDayTime => self.of_millis(0).is_some(),
            other => other.is_timestamp(),
        }
    }
}

fn era(year: i64, years: i64) -> i64 {
    if year > 0 {
        (year + years - 1) / years
    } else {
        (year - years + 1) / years
    }
}

/// Year and week by ISO 8601.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// A short form of `EXTRACT`.
macro_rules! short {
    ($name:literal, $part:ident, $summary:literal, $example:literal = $result:literal) => {
        Builtin::new(
            $name,
            concat!($name, "(t DATE | TIME | TIMESTAMP | INTERVAL)"),
            $summary,
            Custom(|builtin, args| match args {
                [arg] => resolve_part(builtin, args, arg, Part::$part),
                _ => Err(builtin.refuse_count(args)),
            }),
            |call| prepare_part(call, 0, Part::$part),
        )
        .example($example, $result)
    };
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "EXTRACT",
        "EXTRACT(part FROM t)",
        "A part of a date, time, timestamp or interval: YEAR, QUARTER, MONTH, WEEK (ISO), DAY, DOY, DOW (Sunday is 1), ISODOW, ISOYEAR, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND, NANOSECOND, EPOCH, DECADE, CENTURY, MILLENNIUM.",
        Custom(resolve_extract),
        |call| {
            let part = call.text_literal(0).and_then(Part::from_name);
            prepare_part(call, 1, part.ok_or_else(|| no_part(call.name))?)
        },
    )
    .example("EXTRACT(DAY FROM DATE '2024-02-29')", "29"),
    short!("YEAR", Year, "The year.", "YEAR(DATE '2024-02-29')" = "2024"),
    short!("QUARTER", Quarter, "The quarter of the year, 1 to 4.", "QUARTER(DATE '2024-02-29')" = "1"),
    short!("MONTH", Month, "The month of the year, 1 to 12.", "MONTH(DATE '2024-02-29')" = "2"),
    short!("WEEK", Week, "The week of the year by ISO 8601.", "WEEK(DATE '2024-02-29')" = "9"),
    short!("DAYOFYEAR", DayOfYear, "The day of the year, from 1.", "DAYOFYEAR(DATE '2024-02-29')" = "60"),
    short!("DAYOFMONTH", Day, "The day of the month, from 1.", "DAYOFMONTH(DATE '2024-02-29')" = "29"),
    short!("DAYOFWEEK", DayOfWeek, "The day of the week, Sunday is 1.", "DAYOFWEEK(DATE '2024-02-29')" = "5"),
    short!("HOUR", Hour, "The hour of the day.", "HOUR(TIME '10:11:12')" = "10"),
    short!("MINUTE", Minute, "The minute of the hour.", "MINUTE(TIME '10:11:12')" = "11"),
    short!("SECOND", Second, "The second of the minute.", "SECOND(TIME '10:11:12')" = "12"),
];

fn no_part(name: &str) -> Error {
    Error::plan(format!("{name} needs the name of a part of a time"))
}

fn resolve_extract(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [part, arg] = args else {
        return Err(builtin.refuse_count(args));
    };
    let part = match &part.literal {
        Some(datafusion::common::ScalarValue::Utf8(Some(name))) => Part::from_name(name),
        _ => None,
    };
    let part = part.ok_or_else(|| no_part(builtin.name))?;
    resolve_part(builtin, args, arg, part)
}

fn resolve_part(builtin: &Builtin, args: &[Arg], arg: &Arg, part: Part) -> Result<Signature> {
    if !part.fits(&arg.data_type.kind) {
        return Err(builtin.refuse_types(args));
    }
    Ok(Signature {
        args: args.iter().map(|a| a.data_type.clone()).collect(),
        returns: TypeKind::BigInt.with_nullable(arg.data_type.nullable),
    })
}

fn prepare_part(call: &Call<'_>, arg: usize, part: Part) -> Result<Kernel> {
    let kind = call.kind(arg);
    Ok(match kind {
        TypeKind::IntervalYearMonth => {
            call.map_arg::<Ticks, BigInt, _>(arg, move |months| part.of_months(months))
        }
        TypeKind::IntervalDayTime => {
            call.map_arg::<Ticks, BigInt, _>(arg, move |millis| part.of_millis(millis))
        }
        _ => {
            let form = TimeForm::new(kind, call.env)
                .ok_or_else(|| Error::internal(format!("{} of {kind}", call.name)))?;
            call.map_arg::<Ticks, BigInt, _>(arg, move |value| part.of(form.local(value)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i64, month: u32, day: u32) -> Local {
        Local {
            days: days_from_civil(year, month, day),
            nanos: 0,
        }
    }

    #[test]
    fn weeks_follow_iso_8601() {
        assert_eq!(Part::Week.of(date(2021, 1, 3)), 53);
        assert_eq!(Part::IsoYear.of(date(2021, 1, 3)), 2020);
        assert_eq!(Part::Week.of(date(2024, 12, 30)), 1);
        assert_eq!(Part::IsoYear.of(date(2024, 12, 30)), 2025);
        assert_eq!(Part::DayOfWeek.of(date(2021, 1, 3)), 1);
        assert_eq!(Part::IsoDayOfWeek.of(date(2021, 1, 3)), 7);
    }

    #[test]
    fn eras_start_with_a_one() {
        assert_eq!(Part::Century.of(date(2000, 1, 1)), 20);
        assert_eq!(Part::Century.of(date(2001, 1, 1)), 21);
        assert_eq!(Part::Millennium.of(date(2000, 1, 1)), 2);
        assert_eq!(Part::Decade.of(date(1969, 1, 1)), 196);
    }

    #[test]
    fn times_before_the_epoch_count_forwards() {
        let t = Local::from_seconds(-41_104, 789_012_345);
        assert_eq!(Part::Hour.of(t), 12);
        assert_eq!(Part::Minute.of(t), 34);
        assert_eq!(Part::Second.of(t), 56);
        assert_eq!(Part::Millisecond.of(t), 789);
        assert_eq!(Part::Nanosecond.of(t), 789_012_345);
        assert_eq!(Part::Day.of(t), 31);
        assert_eq!(Part::Epoch.of(t), -41_103);
    }
}
