//! Values from their text, as Java's parsers read them: `Integer.valueOf`, `BigDecimal`,
//! `LocalDate.parse`...

use arrow::datatypes::TimeUnit;

use crate::types::calendar::{checked_date, days_in_month};
use crate::types::parse::usual_timestamp;

/// A whole number as `Long.parseLong` takes it: an optional sign and digits, within `min..=max`.
#[must_use]
pub fn parse_integer(text: &str, min: i64, max: i64) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|v| (min..=max).contains(v))
}

/// A number as `Double.parseDouble` takes it, blanks around it ignored.
#[must_use]
pub fn parse_double(text: &str) -> Option<f64> {
    floating(text)?.parse().ok()
}

/// A number as `Float.parseFloat` takes it, blanks around it ignored.
#[must_use]
pub fn parse_float(text: &str) -> Option<f32> {
    floating(text)?.parse().ok()
}

/// The part that Rust's parser reads in the same way as Java's.
fn floating(text: &str) -> Option<&str> {
    let text = java_trim(text);
    match text.strip_prefix(['+', '-']).unwrap_or(text) {
        "NaN" | "Infinity" => return Some(text),
        unsigned if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return None,
        _ => {}
    }
    Some(text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text))
}

/// `String.trim`: without the characters up to blank at both ends.
#[must_use]
pub fn java_trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// What a decimal number's text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decimal {
    /// The unscaled value at the asked scale.
    Value(i128),
    /// More digits than the asked precision: NULL in Flink.
    TooLarge,
}

/// A number as `new BigDecimal(text)` takes it, rounded half up to `scale`; `None` when malformed.
#[must_use]
pub fn parse_decimal(text: &str, precision: u8, scale: u8) -> Option<Decimal> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(i) => (
            &unsigned[..i],
            parse_integer(&unsigned[i + 1..], i32::MIN.into(), i32::MAX.into())?,
        ),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0');
    let fraction_len = i64::try_from(fraction.len()).ok()?;
    // The value is digits * 10^shift at the asked scale.
    let shift = exponent - fraction_len + i64::from(scale);
    let count = i64::try_from(whole.len() + fraction.len()).ok()?;
    let kept = usize::try_from((count + shift.min(0)).max(0)).ok()?;
    let mut value: i128 = 0;
    let mut round_up = false;
    for (i, digit) in digits.enumerate() {
        if i < kept {
            let next = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(i128::from(digit)));
            let Some(next) = next else {
                return Some(Decimal::TooLarge);
            };
            value = next;
        } else {
            // The first digit dropped decides, unless zeros stand between it and the last kept.
            round_up = i == kept && count + shift.min(0) >= 0 && digit >= 5;
            break;
        }
    }
    if value != 0 {
        for _ in 0..shift.max(0) {
            match value.checked_mul(10) {
                Some(v) => value = v,
                None => return Some(Decimal::TooLarge),
            }
        }
    }
    value += i128::from(round_up);
    if value >= 10i128.pow(u32::from(precision.min(38))) {
        return Some(Decimal::TooLarge);
    }
    Some(Decimal::Value(if negative { -value } else { value }))
}

/// How a formatter takes fields that are out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolver {
    /// Refuses them.
    Strict,
    /// 31 is the last day of any month, 24:00 the midnight that follows.
    Smart,
}

/// Whether a time needs its seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seconds {
    /// `10:11` is a time.
    Optional,
    /// `HH:mm:ss`.
    Required,
}

/// Days since 1970-01-01 of `LocalDate.parse`: `2024-01-31`, `+12345-01-01`, `-0001-12-31`.
#[must_use]
pub fn parse_date(text: &str) -> Option<i32> {
    date(text, Resolver::Strict)
}

fn date(text: &str, resolver: Resolver) -> Option<i32> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (0, text),
    };
    let (year, rest) = unsigned.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let fits = match sign {
        0 => year.len() == 4,
        1 => (5..=9).contains(&year.len()),
        _ => (4..=9).contains(&year.len()),
    };
    if !fits || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let year = digits(year)?;
    let year = if sign < 0 { -year } else { year };
    date_of(year, digits(month)?, digits(day)?, resolver)
}

fn date_of(year: i64, month: i64, day: i64, resolver: Resolver) -> Option<i32> {
    let month = u32::try_from(month).ok()?;
    let mut day = u32::try_from(day).ok()?;
    if resolver == Resolver::Smart && (1..=12).contains(&month) && (29..=31).contains(&day) {
        day = day.min(days_in_month(year, month));
    }
    i32::try_from(checked_date(year, month, day)?).ok()
}

fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Nanoseconds of the day of `LocalTime.parse`: `10:11`, `10:11:12`, `10:11:12.123456789`.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    clock(text, Seconds::Optional, Resolver::Strict)
}

/// Nanoseconds of the day of the pattern `HH:mm:ss` with a fraction; `24:00:00` is midnight.
#[must_use]
pub fn parse_clock(text: &str) -> Option<i64> {
    let nanos = clock(text, Seconds::Required, Resolver::Smart)?;
    Some(nanos % DAY_NANOS)
}

const DAY_NANOS: i64 = 86_400_000_000_000;

fn clock(text: &str, seconds: Seconds, resolver: Resolver) -> Option<i64> {
    let (clock, fraction) = text
        .split_once('.')
        .map_or((text, None), |(c, f)| (c, Some(f)));
    let mut parts = clock.split(':');
    let mut part = || {
        let text = parts.next()?;
        digits(text).filter(|_| text.len() == 2)
    };
    let (hour, minute) = (part()?, part()?);
    let has_seconds = clock.len() > 5;
    let second = if has_seconds { part()? } else { 0 };
    if parts.next().is_some()
        || !has_seconds && (fraction.is_some() || seconds == Seconds::Required)
    {
        return None;
    }
    let nanos = match fraction {
        None | Some("") => 0,
        Some(f) if f.len() <= 9 => {
            let scale = 10i64.pow(9 - u32::try_from(f.len()).ok()?);
            digits(f)? * scale
        }
        Some(_) => return None,
    };
    clock_of([hour, minute, second], nanos, resolver)
}

fn clock_of([hour, minute, second]: [i64; 3], nanos: i64, resolver: Resolver) -> Option<i64> {
    if hour > 24 || minute > 59 || second > 59 {
        return None;
    }
    let all = ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos;
    let end = match resolver {
        Resolver::Strict => DAY_NANOS - 1,
        Resolver::Smart => DAY_NANOS,
    };
    (all <= end).then_some(all)
}

/// A point in time: seconds since the epoch and nanoseconds of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// Seconds since 1970-01-01T00:00.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
}

impl Instant {
    /// The point of a day (since 1970-01-01) and nanoseconds of that day.
    #[must_use]
    pub fn of(days: i32, nanos_of_day: i64) -> Self {
        Self {
            seconds: i64::from(days) * 86_400 + nanos_of_day.div_euclid(1_000_000_000),
            nanos: u32::try_from(nanos_of_day.rem_euclid(1_000_000_000)).unwrap_or(0),
        }
    }

    /// Its number in `unit`, finer digits cut off; `None` when the unit cannot count so far.
    #[must_use]
    pub fn in_unit(self, unit: TimeUnit) -> Option<i64> {
        let per_second: i64 = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        let fraction = i64::from(self.nanos) / (1_000_000_000 / per_second);
        self.seconds.checked_mul(per_second)?.checked_add(fraction)
    }
}

/// A timestamp of a date, `separator` and a time, as `LocalDateTime.parse` takes it.
#[must_use]
pub fn parse_timestamp(text: &str, separator: char) -> Option<Instant> {
    timestamp(text, separator, Seconds::Optional, Resolver::Strict)
}

/// A timestamp of a date, `separator` and a time.
#[must_use]
pub fn timestamp(
    text: &str,
    separator: char,
    seconds: Seconds,
    resolver: Resolver,
) -> Option<Instant> {
    if let Some(([year, month, day], time, nanos)) = usual_timestamp(text.as_bytes(), separator) {
        let days = date_of(year, month, day, resolver)?;
        return Some(Instant::of(days, clock_of(time, nanos, resolver)?));
    }
    let (date_text, time) = text.split_once(separator)?;
    let days = date(date_text, resolver)?;
    Some(Instant::of(days, clock(time, seconds, resolver)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_in_java() {
        assert_eq!(parse_integer("+5", 0, 9), Some(5));
        assert_eq!(parse_integer("-", -9, 9), None);
        assert_eq!(parse_integer("1_000", 0, 9999), None);
        assert_eq!(parse_integer("128", -128, 127), None);
        assert_eq!(
            parse_integer("-9223372036854775808", i64::MIN, i64::MAX),
            Some(i64::MIN)
        );
    }

    #[test]
    fn doubles_as_in_java() {
        assert_eq!(parse_double(" 1.5f "), Some(1.5));
        assert_eq!(parse_double("-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_double("inf"), None);
        assert_eq!(parse_double("nan"), None);
        assert_eq!(parse_double("1e3"), Some(1000.0));
        assert_eq!(parse_double(""), None);
        assert_eq!(parse_double("."), None);
    }

    #[test]
    fn decimals_round_half_up() {
        let value = |t, p, s| parse_decimal(t, p, s);
        assert_eq!(value("1.005", 10, 2), Some(Decimal::Value(101)));
        assert_eq!(value("-1.005", 10, 2), Some(Decimal::Value(-101)));
        assert_eq!(value("1.0049", 10, 2), Some(Decimal::Value(100)));
        assert_eq!(value("1e3", 10, 2), Some(Decimal::Value(100_000)));
        assert_eq!(value("5e-3", 10, 2), Some(Decimal::Value(1)));
        assert_eq!(value("5e-4", 10, 2), Some(Decimal::Value(0)));
        assert_eq!(value("999.995", 5, 2), Some(Decimal::TooLarge));
        assert_eq!(value("1e999999999", 5, 2), Some(Decimal::TooLarge));
        assert_eq!(value("0e999999999", 5, 2), Some(Decimal::Value(0)));
        assert_eq!(value(".", 5, 2), None);
        assert_eq!(value("1.2.3", 5, 2), None);
    }

    #[test]
    fn dates_and_times_as_in_java() {
        assert_eq!(parse_date("1970-01-02"), Some(1));
        assert_eq!(parse_date("1969-12-31"), Some(-1));
        assert_eq!(parse_date("2023-02-29"), None);
        assert_eq!(parse_date("0001-01-01"), Some(-719_162));
        assert_eq!(parse_date("1970-1-1"), None);
        assert_eq!(parse_time("00:00:00.5"), Some(500_000_000));
        assert_eq!(parse_time("24:00"), None);
        assert_eq!(parse_time("10:11"), Some(36_660_000_000_000));
        assert_eq!(parse_clock("10:11"), None);
        assert_eq!(parse_clock("24:00:00"), Some(0));
        assert_eq!(parse_clock("24:00:01"), None);
        let smart = |t| timestamp(t, ' ', Seconds::Required, Resolver::Smart);
        assert_eq!(smart("2024-02-31 24:00:00"), smart("2024-03-01 00:00:00"));
        assert_eq!(smart("2024-02-32 00:00:00"), None);
        let t = parse_timestamp("1969-12-31T23:59:59.5", 'T').unwrap();
        assert_eq!(t.in_unit(TimeUnit::Millisecond), Some(-500));
    }

    #[test]
    fn the_usual_form_means_the_same_as_any_other() {
        for text in [
            "2024-02-31 24:00:00",
            "2024-02-30 23:59:59.999999999",
            "2024-13-01 00:00:00",
            "2024-01-00 00:00:00",
            "2024-01-01 25:00:00",
            "2024-01-01 10:60:00",
            "2024-01-01 10:00:60.1",
            "0000-01-01 00:00:00.000000001",
            "1969-12-31 23:59:59.12",
        ] {
            assert!(usual_timestamp(text.as_bytes(), ' ').is_some(), "{text}");
            for resolver in [Resolver::Smart, Resolver::Strict] {
                let (days, time) = text.split_once(' ').unwrap();
                let days = date(days, resolver);
                let time = clock(time, Seconds::Required, resolver);
                let general = days.zip(time).map(|(d, t)| Instant::of(d, t));
                let read = timestamp(text, ' ', Seconds::Required, resolver);
                assert_eq!(read, general, "{text}");
            }
        }
        for text in [
            "2024-01-01T10:00:00",
            "2024-01-01 10:00:0x",
            "+024-01-01 10:00:00",
            "2024-01-01 10:00:00.",
            "2024-01-01 10:00:00.1234567890",
            "2024-01-01 10:00:00 ",
            "2024-01-01 10:00",
            "20é4-01-01 10:00:00",
        ] {
            assert_eq!(usual_timestamp(text.as_bytes(), ' '), None, "{text}");
        }
    }
}
