//! Names of months and days, and the weeks of a calendar that starts them on Sunday.

use crate::types::calendar::{civil_from_days, days_from_civil};

/// Full names of the months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Full names of the days of the week, from Sunday.
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The name in one of its forms, chosen by the number of pattern letters: full at 4, one letter at 5, else
/// three letters.
pub(super) fn name(full: &'static str, letters: usize) -> &'static str {
    match letters {
        4 => full,
        5 => &full[..1],
        _ => &full[..3],
    }
}

/// The day of the week, 0 for Sunday.
pub(super) fn day_of_week(days: i64) -> usize {
    usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0)
}

/// Year and week that a day belongs to: weeks start on Sunday, the first is that of 1 January.
pub(super) fn sunday_week(days: i64) -> (i64, i64) {
    let saturday = days - (days + 4).rem_euclid(7) + 6;
    let (year, _, _) = civil_from_days(saturday);
    let first = days_from_civil(year, 1, 1);
    let first_sunday = first - (first + 4).rem_euclid(7);
    (year, (days - first_sunday) / 7 + 1)
}

/// The week of the month, from 1; weeks start on Sunday.
pub(super) fn sunday_week_of_month(days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    let first = days_from_civil(year, month, 1);
    let first_sunday = first - (first + 4).rem_euclid(7);
    (days - first_sunday) / 7 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_start_on_sunday() {
        let day = |y, m, d| days_from_civil(y, m, d);
        assert_eq!(sunday_week(day(2024, 2, 29)), (2024, 9));
        assert_eq!(sunday_week(day(2021, 1, 3)), (2021, 2));
        assert_eq!(sunday_week(day(2024, 12, 30)), (2025, 1));
        assert_eq!(sunday_week_of_month(day(2024, 2, 29)), 5);
        assert_eq!(day_of_week(day(2021, 1, 3)), 0);
    }
}
