//! Dates, times, timestamps and intervals: as `java.time` prints them, and as `CAST` to a string does.

use std::fmt::Write as _;

use super::number::unsigned_digits;
use crate::types::calendar::civil_from_days;

/// `2024-01-31`; years past 9999 with a sign, as `java.time` does.
pub fn write_date(days: i64, out: &mut String) {
    let (year, month, day) = civil_from_days(days);
    write_year(year, out);
    let [m1, m2] = two(month);
    let [d1, d2] = two(day);
    push_ascii(&[b'-', m1, m2, b'-', d1, d2], out);
}

fn write_year(year: i64, out: &mut String) {
    match year {
        10_000.. => out.push('+'),
        ..0 => out.push('-'),
        _ => {}
    }
    out.push_str(unsigned_digits(year.unsigned_abs(), 4, &mut [0; 20]));
}

/// The two digits of a number below 100.
fn two(value: u32) -> [u8; 2] {
    let digit = |v: u32| b'0' + u8::try_from(v % 10).unwrap_or(0);
    [digit(value / 10), digit(value)]
}

fn push_ascii(bytes: &[u8], out: &mut String) {
    out.push_str(std::str::from_utf8(bytes).unwrap_or_default());
}

/// A time of day, split.
struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    nano: u32,
}

impl Clock {
    /// `second_of_day` below 86 400.
    fn new(second_of_day: i64, nano: u32) -> Self {
        let seconds = u32::try_from(second_of_day).unwrap_or(0);
        Self {
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            nano,
        }
    }

    fn write_hms(&self, out: &mut String) {
        let ([h1, h2], [m1, m2]) = (two(self.hour), two(self.minute));
        let [s1, s2] = two(self.second);
        push_ascii(&[h1, h2, b':', m1, m2, b':', s1, s2], out);
    }

    /// `LocalTime.toString`: `12:30`, `12:30:01`, `12:30:00.500`.
    fn write_iso(&self, out: &mut String) {
        if self.second == 0 && self.nano == 0 {
            let ([h1, h2], [m1, m2]) = (two(self.hour), two(self.minute));
            push_ascii(&[h1, h2, b':', m1, m2], out);
        } else {
            self.write_hms(out);
            write_nanos(self.nano, out);
        }
    }
}

/// Nothing, or a point and 3, 6 or 9 digits.
fn write_nanos(nano: u32, out: &mut String) {
    let (value, digits) = match nano {
        0 => return,
        _ if nano.is_multiple_of(1_000_000) => (nano / 1_000_000, 3),
        _ if nano.is_multiple_of(1000) => (nano / 1000, 6),
        _ => (nano, 9),
    };
    out.push('.');
    out.push_str(unsigned_digits(value.into(), digits, &mut [0; 20]));
}

/// A moment split into seconds since 1970-01-01 00:00 and nanoseconds of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Seconds, floored.
    pub seconds: i64,
    /// 0 to 999 999 999.
    pub nano: u32,
}

impl Moment {
    /// From a count of units, `per_second` of which make a second.
    #[must_use]
    pub fn new(value: i64, per_second: i64) -> Self {
        let nano = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
        Self {
            seconds: value.div_euclid(per_second),
            nano: u32::try_from(nano).unwrap_or(0),
        }
    }

    fn clock(self) -> Clock {
        Clock::new(self.seconds.rem_euclid(86_400), self.nano)
    }

    fn days(self) -> i64 {
        self.seconds.div_euclid(86_400)
    }

    /// `LocalDateTime.toString`: `2024-01-01T00:00`, `2024-01-01T00:00:00.500`.
    pub fn write_local(self, out: &mut String) {
        write_date(self.days(), out);
        out.push('T');
        self.clock().write_iso(out);
    }

    /// `Instant.toString`: `2024-01-01T00:00:00Z`, `2024-01-01T00:00:00.500Z`.
    pub fn write_instant(self, out: &mut String) {
        write_date(self.days(), out);
        out.push('T');
        self.clock().write_hms(out);
        write_nanos(self.nano, out);
        out.push('Z');
    }

    /// SQL form with at least `precision` digits of the fraction: `2024-01-01 00:00:00.500`.
    pub fn write_sql(self, precision: u8, out: &mut String) {
        write_date(self.days(), out);
        out.push(' ');
        self.clock().write_hms(out);
        let mut digits = 9usize;
        let mut nano = self.nano;
        while digits > usize::from(precision) && nano.is_multiple_of(10) {
            nano /= 10;
            digits -= 1;
        }
        if digits > 0 {
            out.push('.');
            out.push_str(unsigned_digits(nano.into(), digits, &mut [0; 20]));
        }
    }
}

/// `LocalTime.toString` of milliseconds of the day.
pub fn write_time(millis: i32, out: &mut String) {
    let moment = Moment::new(i64::from(millis), 1000);
    moment.clock().write_iso(out);
}

/// `CAST(TIME(p) AS STRING)`: up to `precision` digits of the fraction, but no zeros after the first
/// digit: `00:00:00.0`, `12:30:00.05`.
pub fn write_time_sql(millis: i32, precision: u8, out: &mut String) {
    let clock = Moment::new(i64::from(millis), 1000).clock();
    clock.write_hms(out);
    if precision == 0 {
        return;
    }
    out.push('.');
    let mut rest = clock.nano / 1_000_000;
    for _ in 0..precision {
        out.push(char::from_digit(rest / 100, 10).unwrap_or('0'));
        rest = rest % 100 * 10;
        if rest == 0 {
            break;
        }
    }
}

/// `Period.toString` of months: `P14M`, `P0D`.
pub fn write_period(months: i32, out: &mut String) {
    let _ = if months == 0 {
        out.write_str("P0D")
    } else {
        write!(out, "P{months}M")
    };
}

/// `Duration.toString` of milliseconds: `PT24H`, `PT-1M-30S`, `PT0.5S`.
pub fn write_duration(millis: i64, out: &mut String) {
    if millis == 0 {
        out.push_str("PT0S");
        return;
    }
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let (seconds, fraction) = (millis / 1000 % 60, (millis % 1000).unsigned_abs());
    out.push_str("PT");
    if hours != 0 {
        let _ = write!(out, "{hours}H");
    }
    if minutes != 0 {
        let _ = write!(out, "{minutes}M");
    }
    if seconds == 0 && fraction == 0 {
        return;
    }
    if seconds == 0 && millis < 0 {
        out.push('-');
    }
    let _ = write!(out, "{seconds}");
    if fraction != 0 {
        let digits = format!(".{fraction:03}");
        out.push_str(digits.trim_end_matches('0'));
    }
    out.push('S');
}

/// `CAST(INTERVAL YEAR TO MONTH AS STRING)`: `+1-03`.
pub fn write_months_sql(months: i32, out: &mut String) {
    let sign = if months < 0 { '-' } else { '+' };
    let months = months.unsigned_abs();
    let _ = write!(out, "{sign}{}-{:02}", months / 12, months % 12);
}

/// `CAST(INTERVAL DAY TO SECOND AS STRING)`: `+1 02:03:04.005`.
pub fn write_millis_sql(millis: i64, out: &mut String) {
    let sign = if millis < 0 { '-' } else { '+' };
    let millis = millis.unsigned_abs();
    let (seconds, fraction) = (millis / 1000, millis % 1000);
    let _ = write!(
        out,
        "{sign}{} {:02}:{:02}:{:02}.{fraction:03}",
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut String)) -> String {
        let mut s = String::new();
        write(&mut s);
        s
    }

    #[test]
    fn timestamps_in_three_forms() {
        let forms = |millis: i64| {
            let m = Moment::new(millis, 1000);
            (
                text(|s| m.write_local(s)),
                text(|s| m.write_instant(s)),
                text(|s| m.write_sql(0, s)),
                text(|s| m.write_sql(3, s)),
            )
        };
        let four = |a: &str, b: &str, c: &str, d: &str| (a.into(), b.into(), c.into(), d.into());
        assert_eq!(
            forms(1_704_067_200_000),
            four(
                "2024-01-01T00:00",
                "2024-01-01T00:00:00Z",
                "2024-01-01 00:00:00",
                "2024-01-01 00:00:00.000"
            )
        );
        assert_eq!(
            forms(-1),
            four(
                "1969-12-31T23:59:59.999",
                "1969-12-31T23:59:59.999Z",
                "1969-12-31 23:59:59.999",
                "1969-12-31 23:59:59.999"
            )
        );
        assert_eq!(
            text(|s| Moment::new(1_000_001, 1_000_000).write_local(s)),
            "1970-01-01T00:00:01.000001"
        );
        assert_eq!(
            text(|s| Moment::new(5, 1_000_000_000).write_local(s)),
            "1970-01-01T00:00:00.000000005"
        );
    }

    #[test]
    fn times_and_dates() {
        assert_eq!(text(|s| write_time(0, s)), "00:00");
        assert_eq!(text(|s| write_time(45_000_050, s)), "12:30:00.050");
        assert_eq!(text(|s| write_time_sql(45_000_050, 3, s)), "12:30:00.05");
        assert_eq!(text(|s| write_time_sql(0, 3, s)), "00:00:00.0");
        assert_eq!(text(|s| write_time_sql(45_000_050, 0, s)), "12:30:00");
        assert_eq!(text(|s| write_date(-719_162, s)), "0001-01-01");
        assert_eq!(text(|s| write_date(2_932_897, s)), "+10000-01-01");
    }

    #[test]
    fn intervals() {
        assert_eq!(text(|s| write_duration(97_445_678, s)), "PT27H4M5.678S");
        assert_eq!(text(|s| write_duration(-90_000, s)), "PT-1M-30S");
        assert_eq!(text(|s| write_duration(-500, s)), "PT-0.5S");
        assert_eq!(text(|s| write_duration(-1500, s)), "PT-1.5S");
        assert_eq!(text(|s| write_period(-5, s)), "P-5M");
        assert_eq!(text(|s| write_months_sql(15, s)), "+1-03");
        assert_eq!(
            text(|s| write_millis_sql(-93_784_005, s)),
            "-1 02:03:04.005"
        );
    }
}
