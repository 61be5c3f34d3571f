//! Numbers in text.

/// Why a text is not a number of the type: the last words of Flink's message.
pub type Reason = &'static str;

const EMPTY: Reason = "Input is empty.";
const SIGN_ONLY: Reason = "Input has only positive or negative symbol.";
const INVALID: Reason = "Invalid character found.";
const OVERFLOW: Reason = "Overflow.";

/// An integer of `min..=max`: a sign, digits and perhaps a fraction, which is cut off. Blanks around it
/// are ignored.
///
/// # Errors
/// The reason why it is none.
pub fn integer(text: &str, min: i64, max: i64) -> Result<i64, Reason> {
    let text = text.trim_matches(' ');
    if text.is_empty() {
        return Err(EMPTY);
    }
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    if digits.is_empty() {
        return Err(SIGN_ONLY);
    }
    let point = digits.iter().position(|b| *b == b'.');
    let (whole, fraction) = digits.split_at(point.unwrap_or(digits.len()));
    // Counted downwards: there is one more negative number than positive ones.
    let mut value = 0i64;
    for byte in whole {
        if !byte.is_ascii_digit() {
            return Err(INVALID);
        }
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_sub(i64::from(byte - b'0')))
            .ok_or(OVERFLOW)?;
    }
    if !fraction.iter().skip(1).all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    let value = if negative {
        value
    } else {
        value.checked_neg().ok_or(OVERFLOW)?
    };
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(OVERFLOW)
    }
}

/// The part of a floating-point number that Rust reads, if Java would read the whole: digits with point and
/// exponent, `NaN`, `Infinity`, and a type suffix `d` or `f`; white space around it is ignored.
fn java_float(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, "NaN" | "Infinity") {
        return Some(text);
    }
    let plain = |c: u8| c.is_ascii_digit() || matches!(c, b'.' | b'e' | b'E' | b'-' | b'+');
    let number = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    (unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') && number.bytes().all(plain))
        .then_some(number)
}

/// A DOUBLE as `Double.parseDouble` reads it.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    java_float(text)?.parse().ok()
}

/// A FLOAT as `Float.parseFloat` reads it.
#[must_use]
pub fn float(text: &str) -> Option<f32> {
    java_float(text)?.parse().ok()
}

/// The unscaled value of a DECIMAL(`precision`, `scale`): digits with point and exponent, rounded half up.
/// Blanks, tabs and line ends around it are ignored.
///
/// # Errors
/// The reason why it is none.
pub fn decimal(text: &str, precision: u8, scale: u8) -> Result<i128, Reason> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if text.is_empty() {
        return Err(EMPTY);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
        None => (text, 0),
    };
    let negative = mantissa.starts_with('-');
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(INVALID);
    }
    let mut digits = whole.bytes().chain(fraction.bytes());
    if !digits.clone().all(|b| b.is_ascii_digit()) {
        return Err(INVALID);
    }
    // How many of the digits are kept: those before the last one of the scale.
    let kept = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let kept = kept.saturating_add(exponent).saturating_add(scale.into());
    let limit = 10i128.pow(u32::from(precision.min(38)));
    let mut value = 0i128;
    let mut taken = 0;
    while taken < kept {
        let digit = match digits.next() {
            Some(digit) => i128::from(digit - b'0'),
            // Only zeros follow: none matters once the value is zero.
            None if value == 0 => break,
            None => 0,
        };
        let more = value.checked_mul(10).and_then(|v| v.checked_add(digit));
        value = more.filter(|v| *v < limit).ok_or(OVERFLOW)?;
        taken += 1;
    }
    if kept >= 0 && digits.next().is_some_and(|digit| digit >= b'5') {
        value += 1;
        if value >= limit {
            return Err(OVERFLOW);
        }
    }
    Ok(if negative { -value } else { value })
}

fn exponent_of(text: &str) -> Result<i64, Reason> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Err(INVALID);
    }
    // An exponent that does not fit moves the number out of every range.
    let value = unsigned.parse().unwrap_or(1_000_000i64).min(1_000_000);
    Ok(if text.starts_with('-') { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_cut_fractions_and_refuse_the_rest() {
        let int = |text| integer(text, i32::MIN.into(), i32::MAX.into());
        assert_eq!(int("  42 "), Ok(42));
        assert_eq!(int("+5"), Ok(5));
        assert_eq!(int("-3.99"), Ok(-3));
        assert_eq!(int(".5"), Ok(0));
        assert_eq!(int("-2147483648"), Ok(-2_147_483_648));
        assert_eq!(int("2147483648"), Err(OVERFLOW));
        assert_eq!(int("1e2"), Err(INVALID));
        assert_eq!(int("4 2"), Err(INVALID));
        assert_eq!(int("1.5x"), Err(INVALID));
        assert_eq!(int(""), Err(EMPTY));
        assert_eq!(int("-"), Err(SIGN_ONLY));
        let max = integer("9223372036854775807", i64::MIN, i64::MAX);
        assert_eq!(max, Ok(i64::MAX));
        assert_eq!(
            integer("9223372036854775808", i64::MIN, i64::MAX),
            Err(OVERFLOW)
        );
        assert_eq!(
            integer("-9223372036854775808", i64::MIN, i64::MAX),
            Ok(i64::MIN)
        );
    }

    #[test]
    fn floats_as_java_reads_them() {
        assert_eq!(double(" 1.5 "), Some(1.5));
        assert_eq!(double("1d"), Some(1.0));
        assert_eq!(double(".5"), Some(0.5));
        assert_eq!(double("5."), Some(5.0));
        assert_eq!(double("-1.5E-3"), Some(-0.0015));
        assert_eq!(double("-Infinity"), Some(f64::NEG_INFINITY));
        assert!(double("NaN").is_some_and(f64::is_nan));
        for bad in [
            "inf", "nan", "infinity", "", ".", "-", "1_0", "1L", "1,5", "e5", "1e",
        ] {
            assert_eq!(double(bad), None, "{bad}");
        }
        assert_eq!(float("1e40"), Some(f32::INFINITY));
    }

    #[test]
    fn decimals_round_half_up() {
        assert_eq!(decimal("1.005", 10, 2), Ok(101));
        assert_eq!(decimal("-1.005", 10, 2), Ok(-101));
        assert_eq!(decimal("1.00499", 10, 2), Ok(100));
        assert_eq!(decimal(" 5. ", 10, 2), Ok(500));
        assert_eq!(decimal("1e3", 10, 2), Ok(100_000));
        assert_eq!(decimal("1e-3", 10, 2), Ok(0));
        assert_eq!(decimal("5e-3", 10, 2), Ok(1));
        assert_eq!(decimal("0e999999999999", 10, 2), Ok(0));
        assert_eq!(decimal("99.995", 4, 2), Err(OVERFLOW));
        assert_eq!(decimal("3e38", 38, 10), Err(OVERFLOW));
        assert_eq!(decimal("1e9", 10, 2), Err(OVERFLOW));
        for bad in ["12a", "1.2.3", ".", "1e", "0x1", "1 1", "- 1"] {
            assert_eq!(decimal(bad, 10, 2), Err(INVALID), "{bad}");
        }
    }
}
