//! The escapes of `E'..'` and `U&'..'` strings.

/// Decodes the backslash escapes of C.
pub(super) fn decode_c_escapes(raw: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut units: Vec<u16> = Vec::new();
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            flush_units(&mut units, &mut text);
            text.push(c);
            continue;
        }
        let Some(kind) = chars.next() else {
            return Err("a backslash at the end of the string escapes nothing".into());
        };
        let digits = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>, radix, most| {
            let mut digits = String::new();
            while digits.len() < most
                && let Some(d) = chars.next_if(|d: &char| d.is_digit(radix))
            {
                digits.push(d);
            }
            digits
        };
        let code = match kind {
            'u' | 'U' => {
                let most = if kind == 'u' { 4 } else { 8 };
                let hex = digits(&mut chars, 16, most);
                if hex.len() < most {
                    return Err(format!("\\{kind} needs {most} hexadecimal digits"));
                }
                u32::from_str_radix(&hex, 16).ok()
            }
            'x' => match digits(&mut chars, 16, 2) {
                hex if hex.is_empty() => Some(u32::from('x')),
                hex => u32::from_str_radix(&hex, 16).ok(),
            },
            '0'..='7' => {
                let octal = format!("{kind}{}", digits(&mut chars, 8, 2));
                u32::from_str_radix(&octal, 8).ok()
            }
            'b' => Some(8),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            other => Some(u32::from(other)),
        };
        match code {
            Some(code @ 0..=0xFFFF) => units.push(u16::try_from(code).unwrap_or_default()),
            Some(code) => match char::from_u32(code) {
                Some(c) => {
                    flush_units(&mut units, &mut text);
                    text.push(c);
                }
                None => return Err(format!("{code:#x} is no Unicode character")),
            },
            None => return Err("an escape of the string is out of range".into()),
        }
    }
    flush_units(&mut units, &mut text);
    Ok(text)
}

/// Decodes `escape` and four digits to a UTF-16 code unit.
pub(super) fn decode_unicode_escapes(raw: &str, escape: char) -> Result<String, String> {
    let mut text = String::new();
    let mut units: Vec<u16> = Vec::new();
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != escape {
            flush_units(&mut units, &mut text);
            text.push(c);
            continue;
        }
        if chars.as_str().starts_with(escape) {
            chars.next();
            flush_units(&mut units, &mut text);
            text.push(escape);
            continue;
        }
        let hex: String = chars.by_ref().take(4).collect();
        match u16::from_str_radix(&hex, 16) {
            Ok(unit) if hex.len() == 4 => units.push(unit),
            _ => {
                return Err(format!(
                    "Unicode escape sequence starting at character '{escape}' is not exactly four hex digits"
                ));
            }
        }
    }
    flush_units(&mut units, &mut text);
    Ok(text)
}

/// Appends UTF-16 code units, so that an escaped surrogate pair is one character.
fn flush_units(units: &mut Vec<u16>, text: &mut String) {
    text.push_str(&String::from_utf16_lossy(units));
    units.clear();
}
