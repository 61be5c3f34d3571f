//! Numbers as Java prints them.

use std::fmt::Write as _;

use super::java_float;

/// A small buffer that a number is formatted into before its digits are arranged.
struct Digits {
    bytes: [u8; 40],
    len: usize,
}

impl Digits {
    fn new() -> Self {
        Self {
            bytes: [0; 40],
            len: 0,
        }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl std::fmt::Write for Digits {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let end = self.len + s.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}

macro_rules! java_float {
    ($(#[$doc:meta])* $name:ident, $type:ty, $digits:path) => {
        $(#[$doc])*
        pub fn $name(value: $type, out: &mut String) {
            if value.is_nan() {
                out.push_str("NaN");
                return;
            }
            if value.is_sign_negative() {
                out.push('-');
            }
            if value.is_infinite() {
                out.push_str("Infinity");
            } else if value == 0.0 {
                out.push_str("0.0");
            } else {
                let digits = $digits(value.abs());
                arrange(digits.as_str(), digits.exponent, out);
            }
        }
    };
}

java_float!(
    /// `Double.toString`: digits that tell the value apart, `1.0E10` from 10^7 on and below 10^-3.
    write_double,
    f64,
    java_float::double
);
java_float!(
    /// `Float.toString`.
    write_float,
    f32,
    java_float::float
);

/// Writes `0.ddd` times 10^`exponent`.
fn arrange(digits: &str, exponent: i32, out: &mut String) {
    if !(-2..=7).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let _ = write!(out, "{first}.{rest}E{}", exponent - 1);
        return;
    }
    match usize::try_from(exponent) {
        Ok(point) if point > 0 => {
            let whole = digits.len().min(point);
            out.push_str(&digits[..whole]);
            zeros(point - whole, out);
            out.push('.');
            out.push_str(if whole < digits.len() {
                &digits[whole..]
            } else {
                "0"
            });
        }
        _ => {
            out.push_str("0.");
            zeros(usize::try_from(-exponent).unwrap_or(0), out);
            out.push_str(digits);
        }
    }
}

fn zeros(n: usize, out: &mut String) {
    out.extend(std::iter::repeat_n('0', n));
}

/// An integer.
pub fn write_integer(value: i64, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    let mut digits = [0u8; 20];
    out.push_str(unsigned_digits(value.unsigned_abs(), 1, &mut digits));
}

/// The digits of `value`, at least `least` of them, in the end of `buffer`.
pub(super) fn unsigned_digits(mut value: u64, least: usize, buffer: &mut [u8; 20]) -> &str {
    let mut at = buffer.len();
    let end = at.saturating_sub(least);
    while at > 0 && (value > 0 || at > end) {
        at -= 1;
        // A digit.
        #[allow(clippy::cast_possible_truncation)]
        {
            buffer[at] = b'0' + (value % 10) as u8;
        }
        value /= 10;
    }
    std::str::from_utf8(&buffer[at..]).unwrap_or_default()
}

/// A decimal with all digits of its scale: `BigDecimal.toPlainString`.
pub fn write_decimal(unscaled: i128, scale: u8, out: &mut String) {
    let mut digits = Digits::new();
    let _ = write!(digits, "{}", unscaled.unsigned_abs());
    let digits = digits.as_str();
    if unscaled < 0 {
        out.push('-');
    }
    let scale = usize::from(scale);
    if scale == 0 {
        out.push_str(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.push_str(whole);
        out.push('.');
        out.push_str(fraction);
    } else {
        out.push_str("0.");
        zeros(scale - digits.len(), out);
        out.push_str(digits);
    }
}

/// `BigDecimal.toString`: plain, but `1E-7` and `0E-9` when six zeros and more would follow the point.
pub fn write_big_decimal(unscaled: i128, scale: u8, out: &mut String) {
    let mut digits = Digits::new();
    let _ = write!(digits, "{}", unscaled.unsigned_abs());
    let digits = digits.as_str();
    let exponent = i64::try_from(digits.len()).unwrap_or(0) - 1 - i64::from(scale);
    if exponent >= -6 {
        write_decimal(unscaled, scale, out);
        return;
    }
    if unscaled < 0 {
        out.push('-');
    }
    let (first, rest) = digits.split_at(1);
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    let _ = write!(out, "E{exponent}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(v: f64) -> String {
        let mut s = String::new();
        write_double(v, &mut s);
        s
    }

    fn float(v: f32) -> String {
        let mut s = String::new();
        write_float(v, &mut s);
        s
    }

    #[test]
    fn doubles_as_java() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (100.0, "100.0"),
            (1234567.0, "1234567.0"),
            (9999999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12345678.5, "1.23456785E7"),
            (1e10, "1.0E10"),
            (1e21, "1.0E21"),
            (1e23, "9.999999999999999E22"),
            (0.001, "0.001"),
            (0.0015, "0.0015"),
            (0.00099, "9.9E-4"),
            (1e-4, "1.0E-4"),
            (123.456, "123.456"),
            (120.5, "120.5"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "4.9E-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (9007199254740993.0, "9.007199254740992E15"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn floats_as_java() {
        for (value, text) in [
            (1.1f32, "1.1"),
            (1234567.1, "1234567.1"),
            (4.2949673e9, "4.2949673E9"),
            (1e-45, "1.4E-45"),
            (99_999_999_999.0, "9.9999998E10"),
            (f32::from_bits(0x6900_0000), "9.6714065E24"),
            (16777216.0, "1.6777216E7"),
            (3.4028235e38, "3.4028235E38"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn decimals_plain_and_as_big_decimal() {
        let both = |unscaled, scale| {
            let (mut plain, mut big) = (String::new(), String::new());
            write_decimal(unscaled, scale, &mut plain);
            write_big_decimal(unscaled, scale, &mut big);
            (plain, big)
        };
        let same = |s: &str| (s.to_string(), s.to_string());
        assert_eq!(both(-1, 3), same("-0.001"));
        assert_eq!(both(12345, 2), same("123.45"));
        assert_eq!(both(0, 3), same("0.000"));
        assert_eq!(both(7, 0), same("7"));
        assert_eq!(both(0, 6), same("0.000000"));
        assert_eq!(both(0, 9), ("0.000000000".into(), "0E-9".into()));
        assert_eq!(both(-12, 9), ("-0.000000012".into(), "-1.2E-8".into()));
        assert_eq!(both(1, 6), same("0.000001"));
    }
}
