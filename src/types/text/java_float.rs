//! The decimal digits of floating-point numbers as Java shows them.
//!
//! Up to version 18 (Flink runs on 17) Java's digits are not always the shortest that tell a number apart:
//! 1.0E11 as a FLOAT is `9.9999998E10`. These are the digits of its algorithm: a long division that stops
//! when the rest is within half the distance to the next number.

use std::cmp::Ordering;

use num_bigint::BigUint;

/// Up to 19 digits, the first one at 10 to the `exponent`.
pub(super) struct Digits {
    bytes: [u8; 24],
    len: usize,
    /// Position of the point: the number is `0.d1d2d3...` times 10 to this.
    pub(super) exponent: i32,
}

impl Digits {
    fn new(exponent: i32) -> Self {
        Self {
            bytes: [b'0'; 24],
            len: 0,
            exponent,
        }
    }

    fn push(&mut self, digit: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = b'0' + digit;
            self.len += 1;
        }
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Adds one to the last digit.
    fn round_up(&mut self) {
        let mut i = self.len;
        while i > 1 && self.bytes[i - 1] == b'9' {
            i -= 1;
            self.bytes[i] = b'0';
        }
        if i == 0 {
            return;
        }
        if self.bytes[i - 1] == b'9' {
            self.bytes[i - 1] = b'1';
            self.exponent += 1;
        } else {
            self.bytes[i - 1] += 1;
        }
    }
}

/// Bits of the fraction of a DOUBLE.
const FRACTION: i32 = 52;

/// The digits of a DOUBLE that is positive and finite.
pub(super) fn double(value: f64) -> Digits {
    let bits = value.to_bits();
    let fraction = bits & ((1 << FRACTION) - 1);
    let exponent = i32::try_from(bits >> FRACTION).unwrap_or(0);
    if exponent == 0 {
        let shift = fraction.leading_zeros() - 11;
        let significant = 64 - fraction.leading_zeros();
        return digits(
            1 - signed(shift) - 1023,
            fraction << shift,
            signed(significant),
        );
    }
    digits(exponent - 1023, fraction | 1 << FRACTION, FRACTION + 1)
}

/// The digits of a FLOAT that is positive and finite.
pub(super) fn float(value: f32) -> Digits {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 23) - 1);
    let exponent = i32::try_from(bits >> 23).unwrap_or(0);
    if exponent == 0 {
        let shift = fraction.leading_zeros() - 8;
        let significant = 32 - fraction.leading_zeros();
        return digits(
            1 - signed(shift) - 127,
            u64::from(fraction << shift) << 29,
            signed(significant),
        );
    }
    digits(exponent - 127, u64::from(fraction | 1 << 23) << 29, 24)
}

fn signed(bits: u32) -> i32 {
    i32::try_from(bits).unwrap_or(0)
}

/// About how many bits 5 to the `n` has.
fn bits_of_five(n: i32) -> i32 {
    /// Exact up to 5^26.
    const EXACT: [i32; 27] = [
        0, 3, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28, 31, 33, 35, 38, 40, 42, 45, 47, 49, 52, 54,
        56, 59, 61,
    ];
    usize::try_from(n)
        .ok()
        .and_then(|n| EXACT.get(n).copied())
        .unwrap_or(n * 3)
}

/// The digits of `fraction` times 2 to the (`exponent` - 52); the highest bit of the 53 is set.
/// `significant`: how many bits of them the type holds.
fn digits(exponent: i32, fraction: u64, significant: i32) -> Digits {
    let tail = signed(fraction.trailing_zeros());
    let fraction_bits = FRACTION + 1 - tail;
    // Bits behind the point.
    let tiny = (fraction_bits - exponent - 1).max(0);
    if (-21..=62).contains(&exponent) && tiny == 0 && fraction_bits < 64 {
        return whole(exponent, fraction, significant);
    }
    let decimal = estimate(fraction, exponent);
    // Powers of 2 and 5 in the number, the divisor and half the distance to the next number.
    let five_b = (-decimal).max(0);
    let mut two_b = five_b + tiny + exponent;
    let five_s = decimal.max(0);
    let mut two_s = five_s + tiny;
    let mut two_m = two_b - significant;
    let fraction = fraction >> tail;
    two_b -= fraction_bits - 1;
    let common = two_b.min(two_s);
    two_b -= common;
    two_s -= common;
    two_m -= common;
    if fraction_bits == 1 {
        // A power of two: the next smaller number is only half as far.
        two_m -= 1;
    }
    if two_m < 0 {
        two_b -= two_m;
        two_s -= two_m;
        two_m = 0;
    }
    let bits_b = fraction_bits + two_b + bits_of_five(five_b);
    let bits_s = two_s + 1 + bits_of_five(five_s + 1);
    let width = match bits_b.max(bits_s) {
        ..32 => Width::Int,
        32..64 => Width::Long,
        _ => Width::Big,
    };
    let powers = [(five_b, two_b), (five_s, two_s), (five_b, two_m)];
    if bits_b < 120 && bits_s < 120 {
        let [b, s, m] = powers.map(|(five, two)| 5i128.pow(five.unsigned_abs()) << two);
        divide_small(i128::from(fraction) * b, s, m, decimal, width)
    } else {
        let [b, s, m] =
            powers.map(|(five, two)| BigUint::from(5u8).pow(five.unsigned_abs()) << two);
        divide_big(b * fraction, &s, m, decimal)
    }
}

/// A whole number: all its digits, but those past what the type can hold.
fn whole(exponent: i32, fraction: u64, significant: i32) -> Digits {
    let mut value = if exponent >= FRACTION {
        fraction << (exponent - FRACTION)
    } else {
        fraction >> (FRACTION - exponent)
    };
    let mut dropped = 0;
    let beyond = exponent - significant - 1;
    if beyond > 1 {
        // As many digits as 2 to the `beyond` has whole ones: log10(2) of it.
        dropped = beyond * 1233 / 4096;
        let power = 10u64.pow(dropped.unsigned_abs());
        let rest = value % power;
        value /= power;
        if rest >= power / 2 && power > 1 {
            value += 1;
        }
    }
    let mut text = [0u8; 20];
    let mut at = text.len();
    let mut trailing = true;
    let mut length = 0;
    while value > 0 {
        let digit = u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        length += 1;
        trailing &= digit == 0;
        if !trailing {
            at -= 1;
            text[at] = digit;
        }
    }
    let mut digits = Digits::new(length + dropped);
    for digit in &text[at..] {
        digits.push(*digit);
    }
    digits
}

/// The largest whole number below the decimal logarithm, perhaps one more: Java's estimate.
// The constants are Java's.
#[allow(clippy::approx_constant)]
fn estimate(fraction: u64, exponent: i32) -> i32 {
    let one = 1023u64 << FRACTION;
    let mantissa = f64::from_bits(one | fraction & ((1 << FRACTION) - 1));
    let log = (mantissa - 1.5) * 0.289_529_654
        + 0.176_091_259
        + f64::from(exponent) * 0.301_029_995_663_981;
    // Within +-400.
    #[allow(clippy::cast_possible_truncation)]
    {
        log.floor() as i32
    }
}

/// Whether more digits than one are wanted in any case: those of the exponent form.
fn wants_two(decimal: i32) -> bool {
    !(-3..8).contains(&decimal)
}

/// In which numbers Java divides; they wrap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Int,
    Long,
    Big,
}

impl Width {
    #[allow(clippy::cast_possible_truncation)]
    fn wrap(self, value: i128) -> i128 {
        match self {
            Self::Int => i128::from(value as i32),
            Self::Long => i128::from(value as i64),
            Self::Big => value,
        }
    }
}

fn divide_small(mut b: i128, s: i128, mut m: i128, mut decimal: i32, width: Width) -> Digits {
    let tens = width.wrap(s * 10);
    let stops = |b: i128, m: i128| {
        let sum = width.wrap(b + m);
        let high = sum > tens || width == Width::Big && sum == tens;
        (b < m, high)
    };
    let mut out = Digits::new(0);
    let digit = |b: i128| u8::try_from(b / s).unwrap_or(9);
    let first = digit(b);
    b = width.wrap(b % s * 10);
    m = width.wrap(m * 10);
    let (mut low, mut high) = stops(b, m);
    if first == 0 && !high {
        decimal -= 1;
    } else {
        out.push(first);
    }
    if wants_two(decimal) {
        (low, high) = (false, false);
    }
    while !low && !high {
        out.push(digit(b));
        b = width.wrap(b % s * 10);
        m = width.wrap(m * 10);
        // Half the distance has overflowed: it is more than the rest in any case.
        (low, high) = if m > 0 { stops(b, m) } else { (true, true) };
    }
    let rest = width.wrap(width.wrap(b * 2) - tens);
    finish(out, decimal, low, high, rest.cmp(&0))
}

fn divide_big(mut b: BigUint, s: &BigUint, mut m: BigUint, mut decimal: i32) -> Digits {
    let tens = s * 10u8;
    let mut out = Digits::new(0);
    let digit = |b: &BigUint| u8::try_from(b / s).unwrap_or(9);
    let first = digit(&b);
    b = b % s * 10u8;
    m *= 10u8;
    let (mut low, mut high) = (b < m, &b + &m >= tens);
    if first == 0 && !high {
        decimal -= 1;
    } else {
        out.push(first);
    }
    if wants_two(decimal) {
        (low, high) = (false, false);
    }
    while !low && !high {
        out.push(digit(&b));
        b = b % s * 10u8;
        m *= 10u8;
        (low, high) = (b < m, &b + &m >= tens);
    }
    finish(out, decimal, low, high, (b * 2u8).cmp(&tens))
}

/// Rounds the last digit by how the division stopped.
fn finish(mut out: Digits, decimal: i32, low: bool, high: bool, rest: Ordering) -> Digits {
    out.exponent = decimal + 1;
    let odd = out.as_str().bytes().last().is_some_and(|d| d % 2 == 1);
    let up = match rest {
        _ if !low => true,
        Ordering::Equal => odd,
        other => other == Ordering::Greater,
    };
    if high && up {
        out.round_up();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_float(value: f32) -> (String, i32) {
        let digits = float(value);
        (digits.as_str().to_string(), digits.exponent)
    }

    #[test]
    fn floats_have_javas_digits_not_the_shortest() {
        let is = |digits: &str, exponent| (digits.to_string(), exponent);
        assert_eq!(of_float(99_999_999_999.0), is("99999998", 11));
        assert_eq!(of_float(1e18), is("99999998", 18));
        assert_eq!(of_float(3e38), is("30", 39));
        assert_eq!(of_float(1.1), is("11", 1));
        assert_eq!(of_float(0.1), is("1", 0));
        assert_eq!(of_float(16_777_216.0), is("16777216", 8));
        assert_eq!(of_float(1e-4), is("10", -3));
        assert_eq!(of_float(f32::from_bits(1)), is("14", -44));
        assert_eq!(of_float(f32::MAX), is("34028235", 39));
    }

    #[test]
    fn the_digits_tell_numbers_apart() {
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let value = f64::from_bits(state >> 1);
            if value.is_finite() && value > 0.0 {
                let digits = double(value);
                let text = format!("0.{}e{}", digits.as_str(), digits.exponent);
                assert_eq!(text.parse(), Ok(value), "{value:e}");
            }
            let value = f32::from_bits(u32::try_from(state >> 33).unwrap_or(0));
            if value.is_finite() && value > 0.0 {
                let digits = float(value);
                let text = format!("0.{}e{}", digits.as_str(), digits.exponent);
                assert_eq!(text.parse(), Ok(value), "{value:e}");
            }
        }
    }
}
