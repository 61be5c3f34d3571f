//! Dates, times and timestamps in text.

use crate::types::calendar::{checked_date, days_from_civil, days_in_month};

/// Digits only, and a number that fits.
fn number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn day_number(year: u32, month: u32, day: u32) -> Option<i32> {
    let days = checked_date(year.into(), month, day).filter(|_| year <= 9999)?;
    i32::try_from(days).ok()
}

/// The day of a DATE literal: `2024-01-31`, leading zeros and leading blanks left to taste.
#[must_use]
pub fn literal_date(text: &str) -> Option<i32> {
    let mut parts = text.trim_start().splitn(3, '-');
    let mut next = || parts.next().and_then(number);
    day_number(next()?, next()?, next()?)
}

/// Nanoseconds of the day and the number of digits of the fraction (at most 9) of a TIME literal.
#[must_use]
pub fn literal_time(text: &str) -> Option<(i64, u8)> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut parts = clock.splitn(3, ':');
    let mut next = |limit| parts.next().and_then(number).filter(|n| *n < limit);
    let (hour, minute, second) = (next(24)?, next(60)?, next(60)?);
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    let (nanos, digits) = match fraction {
        Some(fraction) => fraction_nanos(fraction)?,
        None => (0, 0),
    };
    Some((seconds * 1_000_000_000 + nanos, digits))
}

/// Nanoseconds of the digits after the point, further ones cut off, and how many count.
fn fraction_nanos(digits: &str) -> Option<(i64, u8)> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut nanos = 0;
    let mut weight = 100_000_000;
    for digit in digits.bytes().take(9) {
        nanos += i64::from(digit - b'0') * weight;
        weight /= 10;
    }
    Some((nanos, u8::try_from(digits.len().min(9)).unwrap_or(9)))
}

/// The Arrow value of a moment, finer digits than `precision` cut off; `None` if it does not fit (years
/// that nanoseconds do not reach).
#[must_use]
pub fn timestamp_value(seconds: i64, nanos: i64, precision: u8) -> Option<i64> {
    let seconds = seconds + nanos.div_euclid(1_000_000_000);
    let nanos = nanos.rem_euclid(1_000_000_000);
    let kept = nanos - nanos % 10i64.pow(9 - u32::from(precision.min(9)));
    let (per_second, per_nano) = match precision {
        0..=3 => (1000, 1_000_000),
        4..=6 => (1_000_000, 1000),
        _ => (1_000_000_000, 1),
    };
    seconds
        .checked_mul(per_second)?
        .checked_add(kept / per_nano)
}

/// The day that a string is cast to: a year with or without month and day; what follows a blank is ignored.
#[must_use]
pub fn cast_date(text: &str) -> Option<i32> {
    let text = match text.find(' ') {
        Some(at) if at > 0 => &text[..at],
        _ => text,
    };
    let mut parts = text.splitn(3, '-').map(|part| number(part.trim()));
    let year = parts.next()??;
    let month = parts.next().unwrap_or(Some(1))?;
    let day = parts.next().unwrap_or(Some(1))?;
    day_number(year, month, day)
}

/// The milliseconds of the day that a string is cast to: hours with or without minutes, seconds and a
/// fraction.
#[must_use]
pub fn cast_time(text: &str) -> Option<i32> {
    let text = text.trim_matches(' ');
    let mut parts = text.splitn(3, ':');
    let hour = number(parts.next()?.trim())?;
    let minute = parts.next().map_or(Some(0), |p| number(p.trim()))?;
    let (second, millis) = match parts.next() {
        None => (0, 0),
        Some(part) => match part.split_once('.') {
            None => (number(part.trim())?, 0),
            Some((second, fraction)) => {
                let nanos = if fraction.is_empty() {
                    0
                } else {
                    fraction_nanos(fraction.trim())?.0
                };
                // Half a millisecond rounds up.
                (number(second.trim())?, (nanos + 500_000) / 1_000_000)
            }
        },
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = i32::try_from(hour * 3600 + minute * 60 + second).ok()?;
    Some((seconds * 1000 + i32::try_from(millis).ok()?).min(86_399_999))
}

/// Seconds since 1970-01-01 00:00 and nanoseconds of the second that a string is cast to:
/// `2024-01-31`, or with ` 12:30:00` and a fraction of up to nine digits behind it. As in Java a day up to
/// the 31st is cut to the month's end, and 24:00:00 is the next midnight.
#[must_use]
pub fn cast_timestamp(text: &str) -> Option<(i64, i64)> {
    plain_timestamp(text).or_else(|| any_timestamp(text))
}

/// The usual form of it with nothing unusual in it.
fn plain_timestamp(text: &str) -> Option<(i64, i64)> {
    let ([year, month, day], [hour, minute, second], nanos) =
        usual_timestamp(text.as_bytes(), ' ')?;
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let plain = year > 0
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let days = plain.then(|| days_from_civil(year, month, day))?;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second, nanos))
}

/// Date, time and nanoseconds in the form that nearly all have, read by place: `yyyy-MM-dd`,
/// `separator`, `HH:mm:ss`, a fraction of up to nine digits or none. The numbers may be out of range.
#[must_use]
pub fn usual_timestamp(text: &[u8], separator: char) -> Option<([i64; 3], [i64; 3], i64)> {
    let (fixed, fraction) = text.split_first_chunk::<19>()?;
    let marks = [fixed[4], fixed[7], fixed[13], fixed[16]];
    if marks != *b"--::" || char::from(fixed[10]) != separator {
        return None;
    }
    let digit = |b: u8| b.is_ascii_digit().then(|| i64::from(b - b'0'));
    let two = |at: usize| Some(digit(fixed[at])? * 10 + digit(fixed[at + 1])?);
    let nanos = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            let scale = 10_i64.pow(9 - u32::try_from(digits.len()).ok()?);
            let mut digits = digits.iter();
            digits.try_fold(0, |sum, b| Some(sum * 10 + digit(*b)?))? * scale
        }
        _ => return None,
    };
    let date = [two(0)? * 100 + two(2)?, two(5)?, two(8)?];
    Some((date, [two(11)?, two(14)?, two(17)?], nanos))
}

fn any_timestamp(text: &str) -> Option<(i64, i64)> {
    let (date, time) = match text.split_once(' ') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let year = parts.next()?;
    let year = match year.strip_prefix('+') {
        Some(digits) if digits.len() > 4 => number(digits)?,
        None if year.len() == 4 => number(year)?,
        _ => return None,
    };
    let mut next = || parts.next().filter(|p| p.len() <= 2).and_then(number);
    let (month, day) = (next()?, next()?);
    // Past this, microseconds do not fit.
    if !(1..=290_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let last = days_in_month(year.into(), month);
    let mut seconds = days_from_civil(year.into(), month, day.min(last)) * 86_400;
    let Some(time) = time else {
        return Some((seconds, 0));
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.splitn(3, ':');
    let mut next = |limit| {
        let part = parts.next().filter(|p| p.len() <= 2);
        part.and_then(number).filter(|n| *n < limit)
    };
    let (hour, minute, second) = (next(25)?, next(60)?, next(60)?);
    let nanos = match fraction.len() {
        0 => 0,
        1..=9 => fraction_nanos(fraction)?.0,
        _ => return None,
    };
    let of_day = i64::from(hour * 3600 + minute * 60 + second);
    if hour == 24 && (of_day > 86_400 || nanos > 0) {
        return None;
    }
    seconds += of_day;
    Some((seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_casts() {
        for (text, days) in [
            ("2024-01-02", Some(19_724)),
            ("2024-1-2", Some(19_724)),
            (" 2024-01-02", Some(19_724)),
            ("2024-01-02 garbage", Some(19_724)),
            ("2024", Some(19_723)),
            ("2024-2", Some(19_754)),
            ("2023-02-29", None),
            ("2024-01-02T10:00:00", None),
            ("-2024-01-01", None),
            ("10000-01-01", None),
            ("20240102", None),
            ("", None),
        ] {
            assert_eq!(cast_date(text), days, "{text}");
        }
    }

    #[test]
    fn timestamps_of_casts() {
        let day = 19_724 * 86_400;
        let feb = 19_416 * 86_400;
        for (text, expected) in [
            ("2024-01-02", Some((day, 0))),
            ("2024-1-2 3:4:5", Some((day + 11_045, 0))),
            ("2024-01-02 03:04:05.5", Some((day + 11_045, 500_000_000))),
            ("2024-01-02 03:04:05.", Some((day + 11_045, 0))),
            ("2024-01-02 03:04:05.000000012", Some((day + 11_045, 12))),
            ("2024-01-02 03:04:05.12é", None),
            ("2024-01-02 03:04:60", None),
            ("2024-01-02 03:04:0/", None),
            ("2024-00-02 03:04:05", None),
            ("0000-01-02 03:04:05", None),
            ("2023-02-30 00:00:00", Some((feb, 0))),
            ("2024-01-02 24:00:00", Some((day + 86_400, 0))),
            ("2024-01-02 24:00:01", None),
            ("2024-01-02T03:04:05", None),
            ("2024-01-02 03:04", None),
            ("2024-01-02 03:04:05.1234567891", None),
            ("2023-02-32", None),
            (" 2024-01-02", None),
            ("24-01-02", None),
            ("0000-01-01", None),
            ("2024-01", None),
        ] {
            assert_eq!(cast_timestamp(text), expected, "{text}");
        }
    }

    #[test]
    fn values_are_cut_to_the_precision() {
        assert_eq!(timestamp_value(1, 987_654_321, 0), Some(1000));
        assert_eq!(timestamp_value(1, 987_654_321, 2), Some(1980));
        assert_eq!(timestamp_value(1, 987_654_321, 4), Some(1_987_600));
        assert_eq!(timestamp_value(-1, 987_654_321, 9), Some(-12_345_679));
        assert_eq!(timestamp_value(300_000_000_000, 0, 9), None);
    }
}
