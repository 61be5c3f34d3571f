//! Times as functions compute with them: a day and the nanoseconds of that day, in the session's zone
//! for an instant.

use chrono_tz::Tz;

use super::Environment;
use crate::types::TypeKind;
use crate::types::calendar::{local_to_instant, utc_offset};

/// Nanoseconds of a day.
pub(super) const NANOS_PER_DAY: i64 = 86_400 * NANOS_PER_SECOND;
/// Nanoseconds of a second.
pub(super) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// No timestamp is further from 1970-01-01.
pub(super) const MAX_DAYS: i64 = 200_000_000_000;

/// A moment on a clock on the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Local {
    /// Days since 1970-01-01.
    pub(super) days: i64,
    /// Nanoseconds of the day.
    pub(super) nanos: i64,
}

impl Local {
    /// From seconds since 1970-01-01 00:00 and nanoseconds of the second.
    pub(super) fn from_seconds(seconds: i64, nanos: i64) -> Self {
        Self {
            days: seconds.div_euclid(86_400),
            nanos: seconds.rem_euclid(86_400) * NANOS_PER_SECOND + nanos,
        }
    }

    /// Seconds since 1970-01-01 00:00.
    pub(super) fn seconds(self) -> i64 {
        self.days * 86_400 + self.nanos.div_euclid(NANOS_PER_SECOND)
    }

    /// Nanoseconds of the second.
    pub(super) fn nanos_of_second(self) -> i64 {
        self.nanos.rem_euclid(NANOS_PER_SECOND)
    }

    /// Milliseconds since 1970-01-01 00:00.
    pub(super) fn millis(self) -> i128 {
        i128::from(self.days) * 86_400_000 + i128::from(self.nanos.div_euclid(1_000_000))
    }

    /// Moved by nanoseconds; `None` if that is further away than any timestamp.
    pub(super) fn plus_nanos(self, nanos: i128) -> Option<Self> {
        let total = i128::from(self.nanos) + nanos;
        let day = i128::from(NANOS_PER_DAY);
        let days = i64::try_from(total.div_euclid(day)).ok()?;
        let days = self
            .days
            .checked_add(days)
            .filter(|d| d.abs() <= MAX_DAYS)?;
        Some(Self {
            days,
            nanos: i64::try_from(total.rem_euclid(day)).ok()?,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Days,
    MillisOfDay,
    PerSecond(i64),
}

/// How the values of a temporal type stand for moments.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeForm {
    unit: Unit,
    /// Of an instant.
    zone: Option<Tz>,
}

/// The count of units in a second of a timestamp's Arrow form.
pub(super) fn per_second(precision: u8) -> i64 {
    match precision {
        0..=3 => 1000,
        4..=6 => 1_000_000,
        _ => NANOS_PER_SECOND,
    }
}

impl TimeForm {
    /// Of a temporal type; an instant is seen in the session's zone.
    pub(super) fn new(kind: &TypeKind, env: &Environment) -> Option<Self> {
        Self::in_zone(kind, env.time_zone)
    }

    /// Of a temporal type; an instant is seen in UTC.
    pub(super) fn utc(kind: &TypeKind) -> Option<Self> {
        Self::in_zone(kind, Tz::UTC)
    }

    fn in_zone(kind: &TypeKind, zone: Tz) -> Option<Self> {
        let (unit, zone) = match kind {
            TypeKind::Date => (Unit::Days, None),
            TypeKind::Time(_) => (Unit::MillisOfDay, None),
            TypeKind::Timestamp(p) => (Unit::PerSecond(per_second(*p)), None),
            TypeKind::TimestampLtz(p) => (Unit::PerSecond(per_second(*p)), Some(zone)),
            _ => return None,
        };
        Some(Self { unit, zone })
    }

    /// The moment of a value.
    pub(super) fn local(self, value: i64) -> Local {
        match self.unit {
            Unit::Days => Local {
                days: value,
                nanos: 0,
            },
            Unit::MillisOfDay => Local {
                days: 0,
                nanos: value * 1_000_000,
            },
            Unit::PerSecond(per_second) => {
                let seconds = value.div_euclid(per_second);
                let nanos = value.rem_euclid(per_second) * (NANOS_PER_SECOND / per_second);
                let offset = self.zone.map_or(0, |zone| utc_offset(zone, seconds));
                Local::from_seconds(seconds + offset, nanos)
            }
        }
    }

    /// The value of a moment; `None` if it is out of range.
    pub(super) fn value(self, local: Local) -> Option<i64> {
        let shifted = |seconds: i64| match self.zone {
            Some(zone) => local_to_instant(zone, seconds),
            None => seconds,
        };
        self.value_at(local, shifted(local.seconds()))
    }

    /// The value of a moment near the one that `near` stands for: they have the same offset from UTC.
    pub(super) fn value_near(self, local: Local, near: i64) -> Option<i64> {
        let offset = match (self.zone, self.unit) {
            (Some(zone), Unit::PerSecond(n)) => utc_offset(zone, near.div_euclid(n)),
            _ => 0,
        };
        self.value_at(local, local.seconds() - offset)
    }

    fn value_at(self, local: Local, seconds: i64) -> Option<i64> {
        match self.unit {
            Unit::Days => Some(local.days),
            Unit::MillisOfDay => Some(local.nanos / 1_000_000),
            Unit::PerSecond(per_second) => {
                let fraction = local.nanos_of_second() / (NANOS_PER_SECOND / per_second);
                seconds.checked_mul(per_second)?.checked_add(fraction)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_round_trip_before_the_epoch() {
        let form = TimeForm::utc(&TypeKind::Timestamp(3)).expect("temporal");
        for value in [-1, 0, 1, -86_400_001, 86_399_999] {
            assert_eq!(form.value(form.local(value)), Some(value));
        }
        assert_eq!(form.local(-1).days, -1);
    }

    #[test]
    fn instants_show_the_zones_clock() {
        let env = Environment {
            time_zone: chrono_tz::Europe::Berlin,
            ..Environment::default()
        };
        let form = TimeForm::new(&TypeKind::TimestampLtz(3), &env).expect("temporal");
        let local = form.local(0);
        assert_eq!(local.nanos, 3600 * NANOS_PER_SECOND);
        assert_eq!(form.value(local), Some(0));
    }
}
