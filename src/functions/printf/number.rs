//! Numbers by the flags of a format.

use super::Field;
use crate::functions::decimal_text::{round_digits, shortest_digits};

impl Field {
    /// Signs, groups and fills up the digits of a number; `plain` digits are those that zeros may stand
    /// before.
    fn signed(&self, negative: bool, digits: &str, plain: bool) -> String {
        let digits = if self.flags.group && plain {
            grouped(digits)
        } else {
            digits.to_string()
        };
        let (before, after) = match negative {
            true if self.flags.parentheses => ("(", ")"),
            true => ("-", ""),
            false if self.flags.plus => ("+", ""),
            false if self.flags.space => (" ", ""),
            false => ("", ""),
        };
        let taken = before.len() + digits.len() + after.len();
        let zeros = if self.flags.zero && plain {
            self.width.saturating_sub(taken)
        } else {
            0
        };
        format!("{before}{}{digits}{after}", "0".repeat(zeros))
    }

    /// An integer; `None` if a flag does not go with the conversion.
    pub(super) fn integer(&self, value: i64, bits: u32) -> Option<String> {
        let flags = self.flags;
        if self.conversion == 'd' {
            if flags.alternate {
                return None;
            }
            return Some(self.signed(value < 0, &value.unsigned_abs().to_string(), true));
        }
        if flags.plus || flags.space || flags.group || flags.parentheses {
            return None;
        }
        let unsigned = value.cast_unsigned() & (u64::MAX >> (64 - bits));
        let (prefix, digits) = match self.conversion {
            'x' => ("0x", format!("{unsigned:x}")),
            _ => ("0", format!("{unsigned:o}")),
        };
        let prefix = if flags.alternate { prefix } else { "" };
        let zeros = if flags.zero {
            self.width.saturating_sub(prefix.len() + digits.len())
        } else {
            0
        };
        Some(format!("{prefix}{}{digits}", "0".repeat(zeros)))
    }

    /// A floating-point number; `None` if a flag does not go with the conversion.
    pub(super) fn approximate(&self, value: f64) -> Option<String> {
        let flags = self.flags;
        let negative = value.is_sign_negative() && !value.is_nan();
        if !value.is_finite() {
            let text = if value.is_nan() { "NaN" } else { "Infinity" };
            if value.is_nan() {
                return Some(text.to_string());
            }
            return Some(self.signed(negative, text, false));
        }
        let alternate_refused = flags.alternate && matches!(self.conversion, 'g' | 'a');
        let group_refused = flags.group && matches!(self.conversion, 'e' | 'a');
        if alternate_refused || group_refused {
            return None;
        }
        let precision = self.precision.unwrap_or(6);
        let text = match self.conversion {
            'f' => fixed(value, precision, flags.alternate),
            'e' => scientific(value, precision, flags.alternate),
            'g' => general(value, precision.max(1)),
            _ if self.precision.is_some() => return None,
            _ => hexadecimal(value),
        };
        Some(self.signed(negative, &text, true))
    }
}

/// Commas between groups of three digits before the point.
fn grouped(digits: &str) -> String {
    let (whole, rest) = digits.split_at(digits.find(['.', 'e']).unwrap_or(digits.len()));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out + rest
}

fn fixed(value: f64, precision: usize, point: bool) -> String {
    let (digits, at) = shortest_digits(value);
    let places = i32::try_from(precision).unwrap_or(i32::MAX);
    let (digits, at) = if value == 0.0 {
        (String::new(), 0)
    } else {
        round_digits(&digits, at, at.saturating_add(places))
    };
    let mut out = String::new();
    let whole = usize::try_from(at).unwrap_or(0).min(digits.len());
    out.push_str(if whole == 0 { "0" } else { &digits[..whole] });
    if precision > 0 || point {
        out.push('.');
    }
    let leading = usize::try_from(-at).unwrap_or(0).min(precision);
    out.push_str(&"0".repeat(leading));
    out.push_str(&digits[whole..]);
    let given = leading + digits.len() - whole;
    out.push_str(&"0".repeat(precision.saturating_sub(given)));
    out
}

fn scientific(value: f64, precision: usize, point: bool) -> String {
    let (digits, at) = if value == 0.0 {
        ("0".repeat(precision + 1), 1)
    } else {
        let (digits, at) = shortest_digits(value);
        let keep = i32::try_from(precision).unwrap_or(i32::MAX - 1) + 1;
        round_digits(&digits, at, keep)
    };
    // Rounding up may have added a digit.
    let digits = &digits[..precision + 1];
    let exponent = at - 1;
    let dot = if precision > 0 || point { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "{}{dot}{}e{sign}{:02}",
        &digits[..1],
        &digits[1..],
        exponent.abs()
    )
}

fn general(value: f64, precision: usize) -> String {
    if value == 0.0 {
        return fixed(value, precision - 1, false);
    }
    let (digits, at) = shortest_digits(value);
    let keep = i32::try_from(precision).unwrap_or(i32::MAX);
    let (_, at) = round_digits(&digits, at, keep);
    if (-3..=keep).contains(&at) {
        return fixed(value, usize::try_from(keep - at).unwrap_or(0), false);
    }
    scientific(value, precision - 1, false)
}

/// `Double.toHexString` without the sign.
fn hexadecimal(value: f64) -> String {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1);
    let exponent = i64::from((bits >> 52) as u32 & 0x7FF);
    let digits = format!("{mantissa:013x}");
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    match (exponent, mantissa) {
        (0, 0) => "0x0.0p0".to_string(),
        (0, _) => format!("0x0.{digits}p-1022"),
        _ => format!("0x1.{digits}p{}", exponent - 1023),
    }
}
