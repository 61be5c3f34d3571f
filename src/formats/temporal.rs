//! Dates and times as formats write them: all of `HH:mm:ss`, and of the fraction the digits that are
//! not zero.

use std::io::Write as _;

use crate::types::calendar::civil_from_days;

/// `2024-01-31`; years past 9999 and before 0 with their sign.
pub(crate) fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    // Writing to a Vec cannot fail.
    let _ = match u32::try_from(year) {
        Ok(year @ 0..=9999) => {
            two(year / 100, out);
            two(year, out);
            Ok(())
        }
        Ok(year) => write!(out, "+{year}"),
        Err(_) => write!(out, "-{:04}", year.unsigned_abs()),
    };
    out.push(b'-');
    two(month, out);
    out.push(b'-');
    two(day, out);
}

/// `10:11:12.5`.
pub(crate) fn write_clock(second_of_day: i64, nano: u32, out: &mut Vec<u8>) {
    let seconds = u32::try_from(second_of_day).unwrap_or(0);
    two(seconds / 3600, out);
    out.push(b':');
    two(seconds / 60 % 60, out);
    out.push(b':');
    two(seconds % 60, out);
    if nano == 0 {
        return;
    }
    out.push(b'.');
    two(nano / 10_000_000, out);
    two(nano / 100_000, out);
    two(nano / 1000, out);
    two(nano / 10, out);
    out.push(b'0' + u8::try_from(nano % 10).unwrap_or(0));
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// A date, `separator` and a time.
pub(crate) fn write_timestamp(seconds: i64, nano: u32, separator: u8, out: &mut Vec<u8>) {
    write_date(seconds.div_euclid(86_400), out);
    out.push(separator);
    write_clock(seconds.rem_euclid(86_400), nano, out);
}

fn two(value: u32, out: &mut Vec<u8>) {
    for digit in [value / 10 % 10, value % 10] {
        out.push(b'0' + u8::try_from(digit).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_lose_their_trailing_zeros() {
        let text = |seconds, nano| {
            let mut out = Vec::new();
            write_timestamp(seconds, nano, b' ', &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0, 0), "1970-01-01 00:00:00");
        assert_eq!(text(-1, 120_000_000), "1969-12-31 23:59:59.12");
        assert_eq!(text(0, 1), "1970-01-01 00:00:00.000000001");
    }
}
