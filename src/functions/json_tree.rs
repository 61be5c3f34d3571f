//! JSON values as Jackson reads and writes them: what follows the first value is ignored, objects are
//! written with their keys in order, numbers as `BigDecimal` shows them.

use std::fmt::Write as _;

use serde_json::Value;

/// The first value of a text; `None` if it is no JSON.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text)
        .into_iter::<Value>()
        .next()?
        .ok()
}

/// Appends a value.
pub(super) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number.as_str(), out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in fields.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// Appends a scalar without quotes, anything else as JSON.
pub(super) fn write_unquoted(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(text),
        other => write(other, out),
    }
}

/// Whether it is neither object nor array.
pub(super) fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Appends a text in quotes.
pub(super) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        out.push_str(&rest[..at]);
        let c = char::from(rest.as_bytes()[at]);
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            c => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Appends a number of a JSON text: integers as they are, others like `BigDecimal.toString`.
pub(super) fn write_number(text: &str, out: &mut String) {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(0)),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_integer = digits.bytes().all(|b| b.is_ascii_digit());
    let unscaled = format!("{whole}{fraction}");
    let unscaled = unscaled.trim_start_matches('0');
    let unscaled = if unscaled.is_empty() { "0" } else { unscaled };
    if negative && unscaled != "0" {
        out.push('-');
    }
    if is_integer {
        out.push_str(unscaled);
        return;
    }
    let scale = i64::try_from(fraction.len()).unwrap_or(0) - exponent;
    write_scaled(unscaled, scale, out);
}

/// Digits with a scale like `BigDecimal.toString`, the sign apart.
fn write_scaled(digits: &str, scale: i64, out: &mut String) {
    let len = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let adjusted = len - 1 - scale;
    if scale >= 0 && adjusted >= -6 {
        match usize::try_from(len - scale) {
            _ if scale == 0 => out.push_str(digits),
            Ok(point) if point > 0 => {
                out.push_str(&digits[..point]);
                out.push('.');
                out.push_str(&digits[point..]);
            }
            _ => {
                out.push_str("0.");
                out.extend((0..scale - len).map(|_| '0'));
                out.push_str(digits);
            }
        }
        return;
    }
    out.push_str(&digits[..1]);
    if digits.len() > 1 {
        out.push('.');
        out.push_str(&digits[1..]);
    }
    if adjusted != 0 {
        let _ = write!(out, "E{adjusted:+}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Option<String> {
        let mut out = String::new();
        write(&parse(text)?, &mut out);
        Some(out)
    }

    #[test]
    fn numbers_print_as_big_decimals() {
        for (text, expected) in [
            ("1.50", "1.50"),
            ("1e3", "1E+3"),
            ("1E+2", "1E+2"),
            ("0.00000001", "1E-8"),
            ("0.000001", "0.000001"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("12345678901234567890", "12345678901234567890"),
            ("100000000000000000000000.5", "100000000000000000000000.5"),
            ("1e400", "1E+400"),
            ("1.25e1", "12.5"),
            ("-1.5e-3", "-0.0015"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn keys_come_in_order_and_texts_are_escaped() {
        let text = r#"{"z":1.10,"b":[1E+2,"\u00e9/\u0001\t"],"a":{"y":1,"x":2}}"#;
        let expected = r#"{"a":{"x":2,"y":1},"b":[1E+2,"é/\u0001\t"],"z":1.10}"#;
        assert_eq!(canonical(text).as_deref(), Some(expected));
        assert_eq!(
            canonical(r#"{"a":1,"a":2} x"#).as_deref(),
            Some(r#"{"a":2}"#)
        );
    }

    #[test]
    fn malformed_texts_are_none() {
        for text in ["", "oops", "{'a': 1}", "[1,2,]", r#"{"a": 01}"#, "truex"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
