//! Makes a JSON text strict: Flink takes control characters and lone surrogates inside strings, the
//! parser does not.

/// The text with control characters escaped and lone surrogates replaced by `?` inside strings;
/// `None` when there were none.
pub(super) fn repair(record: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(record.len() + 16);
    let mut in_string = false;
    let mut changed = false;
    let mut i = 0;
    while let Some(byte) = record.get(i) {
        i += 1;
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                out.push(b'\\');
                if record.get(i) == Some(&b'u') {
                    let (text, read) = surrogate(&record[i..]);
                    if text.is_empty() {
                        out.push(b'u');
                        i += 1;
                    } else {
                        changed |= text == b"?";
                        if text == b"?" {
                            out.pop();
                        }
                        out.extend_from_slice(text);
                        i += read;
                    }
                } else if let Some(next) = record.get(i) {
                    out.push(*next);
                    i += 1;
                }
                continue;
            }
            0..0x20 if in_string => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                changed = true;
                continue;
            }
            _ => {}
        }
        out.push(*byte);
    }
    changed.then_some(out)
}

/// What stands for the escape at the start of `text` (`uXXXX`), and how much of the text that is:
/// the pair of surrogates as it is, or `?` for half of one; nothing when it is no surrogate.
fn surrogate(text: &[u8]) -> (&[u8], usize) {
    let unit = |at: usize| -> Option<u16> {
        let digits = std::str::from_utf8(text.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    match unit(1) {
        Some(0xD800..0xDC00) => {
            let is_pair = text.get(5..7) == Some(b"\\u") && matches!(unit(7), Some(0xDC00..0xE000));
            if is_pair {
                (&text[..11], 11)
            } else {
                (b"?", 5)
            }
        }
        Some(0xDC00..0xE000) => (b"?", 5),
        _ => (b"", 0),
    }
}

#[cfg(test)]
mod tests {
    use super::repair;

    fn repaired(text: &str) -> Option<String> {
        repair(text.as_bytes()).map(|b| String::from_utf8(b).unwrap())
    }

    #[test]
    fn only_what_strict_json_refuses_is_changed() {
        assert_eq!(repaired("{\"a\":\t\"b\\\"c\"}"), None);
        assert_eq!(repaired("{\"a\":\"\t\"}").unwrap(), "{\"a\":\"\\u0009\"}");
        assert_eq!(repaired(r#"{"a":"\ud83d\ude00"}"#), None);
        assert_eq!(repaired(r#"{"a":"\ud83dx"}"#).unwrap(), r#"{"a":"?x"}"#);
        assert_eq!(
            repaired(r#"{"a":"\u0041\ude00"}"#).unwrap(),
            r#"{"a":"\u0041?"}"#
        );
        assert_eq!(repaired("\"\\"), None);
    }
}
