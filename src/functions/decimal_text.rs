//! Rounds doubles by their decimal digits, as Java's `BigDecimal.valueOf(x)` does: 1.005 is that
//! number, not the binary one just below.

use std::fmt::Write as _;

/// What happens to digits that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// Halves away from zero.
    HalfUp,
    /// Towards zero.
    Down,
    /// Up, to positive infinity.
    Ceiling,
    /// Down, to negative infinity.
    Floor,
}

/// The shortest decimal digits of a finite number and the place of the point: 0.d1d2d3.. * 10^point.
pub(super) fn shortest_digits(x: f64) -> (String, i32) {
    let text = format!("{:e}", x.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
    (digits, exponent.parse::<i32>().unwrap_or(0) + 1)
}

/// `digits` of a number 0.d1d2d3.. * 10^point cut to the first `keep`, halves rounded up, with zeros added
/// if there are fewer, and the new place of the point.
pub(super) fn round_digits(digits: &str, point: i32, keep: i32) -> (String, i32) {
    let len = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    if keep < 0 {
        return (String::new(), point);
    }
    let kept = usize::try_from(keep).unwrap_or(0);
    if keep >= len {
        return (format!("{digits:0<kept$}"), point);
    }
    let up = digits.as_bytes()[kept] >= b'5';
    let mut result = format!("0{}", &digits[..kept]);
    if up {
        increment(&mut result);
    }
    match result.strip_prefix('0') {
        Some(rest) => (rest.to_string(), point),
        None => (result, point + 1),
    }
}

/// `x` with `digits` digits after the point; negative ones count before it. Zero comes without a
/// sign.
pub(super) fn round_double(x: f64, digits: i32, rounding: Rounding) -> f64 {
    if !x.is_finite() || (digits >= 0 && x.fract() == 0.0) {
        return if x == 0.0 { 0.0 } else { x };
    }
    let text = format!("{:e}", x.abs());
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return x;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return x;
    };
    // 0.d1d2d3... * 10^point
    let mut decimals: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let point = exponent + 1;
    let keep = point.saturating_add(digits);
    if keep >= i32::try_from(decimals.len()).unwrap_or(i32::MAX) {
        return x;
    }
    let away = match rounding {
        Rounding::HalfUp => {
            usize::try_from(keep).is_ok_and(|keep| decimals.get(keep).is_some_and(|d| *d >= b'5'))
        }
        Rounding::Down => false,
        Rounding::Ceiling => x > 0.0,
        Rounding::Floor => x < 0.0,
    };
    decimals.truncate(usize::try_from(keep).unwrap_or(0));
    let mut result = String::with_capacity(decimals.len() + 8);
    result.push('0');
    let digits_text = String::from_utf8_lossy(&decimals);
    result.push_str(&digits_text);
    if away {
        increment(&mut result);
    }
    let _ = write!(result, "e{}", -i64::from(digits));
    let rounded: f64 = result.parse().unwrap_or(0.0);
    if x < 0.0 && rounded != 0.0 {
        -rounded
    } else {
        rounded
    }
}

/// Adds one to a number that starts with a zero to spare.
fn increment(digits: &mut String) {
    let mut bytes = std::mem::take(digits).into_bytes();
    for digit in bytes.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            break;
        }
        *digit = b'0';
    }
    *digits = String::from_utf8_lossy(&bytes).into_owned();
}

/// `x / 10^digits`, rounded.
pub(super) fn divide_power(x: i128, digits: u32, rounding: Rounding) -> i128 {
    let Some(divisor) = 10i128.checked_pow(digits) else {
        return match rounding {
            Rounding::Ceiling => i128::from(x > 0),
            Rounding::Floor => -i128::from(x < 0),
            Rounding::HalfUp | Rounding::Down => 0,
        };
    };
    let (quotient, rest) = (x / divisor, x % divisor);
    let away = match rounding {
        Rounding::HalfUp => rest.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2),
        Rounding::Down => false,
        Rounding::Ceiling => rest > 0,
        Rounding::Floor => rest < 0,
    };
    if away && rest != 0 {
        quotient + x.signum()
    } else {
        quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_round_by_their_shortest_digits() {
        let round = |x, n| round_double(x, n, Rounding::HalfUp);
        assert_eq!(round(1.005, 2), 1.01);
        assert_eq!(round(3.455, 2), 3.46);
        assert_eq!(round(-2.5, 0), -3.0);
        assert_eq!(round(9999.9999, -1), 10000.0);
        assert_eq!(round(9999.9999, -3), 10000.0);
        assert_eq!(round(15.0, -1), 20.0);
        assert_eq!(round(4.0, -1), 0.0);
        assert_eq!(round(-4.0, -1).to_bits(), 0);
        assert_eq!(round(-0.0, 0).to_bits(), 0);
        assert_eq!(round(1e300, 2), 1e300);
        assert_eq!(round(50.0, -2), 100.0);
        assert_eq!(round(49.0, -2), 0.0);
        assert_eq!(round(99.0, -3), 0.0);
        assert_eq!(round(0.05, 1), 0.1);
        assert_eq!(round(0.005, 1), 0.0);
        let cut = |x, n| round_double(x, n, Rounding::Down);
        assert_eq!(cut(3.4551, 2), 3.45);
        assert_eq!(cut(9999.9999, -2), 9900.0);
        assert_eq!(cut(-2.5, 0), -2.0);
    }

    #[test]
    fn powers_of_ten_divide_with_rounding() {
        assert_eq!(divide_power(25, 1, Rounding::HalfUp), 3);
        assert_eq!(divide_power(-25, 1, Rounding::HalfUp), -3);
        assert_eq!(divide_power(24, 1, Rounding::HalfUp), 2);
        assert_eq!(divide_power(-21, 1, Rounding::Floor), -3);
        assert_eq!(divide_power(21, 1, Rounding::Ceiling), 3);
        assert_eq!(divide_power(i128::MAX, 60, Rounding::HalfUp), 0);
        assert_eq!(divide_power(5, 0, Rounding::HalfUp), 5);
    }
}
