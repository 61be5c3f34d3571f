//! The proleptic Gregorian calendar and time zones, by Java's rules.

use chrono::{DateTime, Days, LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

/// Milliseconds of a day.
pub const MILLIS_PER_DAY: i64 = 86_400_000;

/// Year, month (from 1) and day (from 1) of a day number; day 0 is 1970-01-01.
#[must_use]
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    // Years start on 1 March here, so that the leap day comes last; an era is 400 years.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    // Both are small and positive by construction.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (year, month as u32, day as u32)
}

/// The day number of a date. `month` and `day` count from 1; a day past the month's end runs over.
#[must_use]
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Whether `year` has a 29 February.
#[must_use]
pub fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Number of days of a month (from 1).
#[must_use]
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day number of a date that exists.
#[must_use]
pub fn checked_date(year: i64, month: u32, day: u32) -> Option<i64> {
    let valid = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    valid.then(|| days_from_civil(year, month, day))
}

/// A day number moved by `months`; the day of the month is cut to the month's length.
#[must_use]
pub fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let total = year * 12 + i64::from(month) - 1 + months;
    let year = total.div_euclid(12);
    let month = u32::try_from(total.rem_euclid(12)).unwrap_or(0) + 1;
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

/// Seconds that clocks in `zone` are ahead of UTC at an instant (seconds since the epoch).
#[must_use]
pub fn utc_offset(zone: Tz, instant: i64) -> i64 {
    if zone == Tz::UTC {
        return 0;
    }
    naive(instant).map_or(0, |utc| {
        i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
    })
}

/// The instant at which clocks in `zone` show `local` (both in seconds since 1970-01-01 00:00). A
/// time that occurs twice is the first of them; one that is skipped moves on by the gap.
#[must_use]
pub fn local_to_instant(zone: Tz, local: i64) -> i64 {
    if zone == Tz::UTC {
        return local;
    }
    let Some(time) = naive(local) else {
        return local;
    };
    let offset = match zone.offset_from_local_datetime(&time) {
        LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => offset,
        LocalResult::None => {
            // The offset from before the gap.
            let before = time.checked_sub_days(Days::new(1)).unwrap_or(time);
            zone.offset_from_utc_datetime(&before)
        }
    };
    local - i64::from(offset.fix().local_minus_utc())
}

fn naive(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp(seconds, 0).map(|t| t.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip_over_leap_years_and_eras() {
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(-1), (1969, 12, 31));
        assert_eq!(civil_from_days(19_782), (2024, 2, 29));
        assert_eq!(civil_from_days(-719_528), (0, 1, 1));
        for days in (-1_000_000..3_000_000).step_by(37) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
            assert!((1..=12).contains(&m) && d >= 1 && d <= days_in_month(y, m));
        }
    }

    #[test]
    fn months_are_added_with_the_day_cut() {
        let day = |y, m, d| days_from_civil(y, m, d);
        assert_eq!(add_months(day(2024, 1, 31), 1), day(2024, 2, 29));
        assert_eq!(add_months(day(2024, 3, 31), -1), day(2024, 2, 29));
        assert_eq!(add_months(day(2024, 2, 29), 12), day(2025, 2, 28));
        assert_eq!(add_months(day(2024, 1, 15), -13), day(2022, 12, 15));
    }

    #[test]
    fn local_times_in_a_gap_and_in_an_overlap() {
        let zone = Tz::Europe__Berlin;
        let local =
            |y, m, d, h: i64, min: i64| days_from_civil(y, m, d) * 86_400 + h * 3600 + min * 60;
        // 02:30 does not exist on 2024-03-31: 03:30 summer time = 01:30 UTC.
        let gap = local(2024, 3, 31, 2, 30);
        assert_eq!(local_to_instant(zone, gap), gap - 3600);
        // 02:30 exists twice on 2024-10-27: the first is summer time.
        let twice = local(2024, 10, 27, 2, 30);
        assert_eq!(local_to_instant(zone, twice), twice - 7200);
        assert_eq!(utc_offset(zone, twice - 7200), 7200);
    }
}
