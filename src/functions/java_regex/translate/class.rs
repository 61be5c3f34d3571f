//! Classes of characters: `[..]`, `\d` and its kin, `\p{..}`, and characters by their number.

use super::{MAX_DEPTH, Step, Translator, invalid, push_escaped, to_char, unsupported};

impl Translator<'_> {
    /// A class that `\c` stands for, in brackets.
    pub(super) fn class_escape(&mut self, c: char) -> Step<Option<String>> {
        let negated = c.is_ascii_uppercase();
        let unicode = self.flags.unicode_class;
        let items = match c.to_ascii_lowercase() {
            'd' if unicode => r"\d",
            's' if unicode => r"\s",
            'w' if unicode => r"\w",
            'd' => "0-9",
            's' => r" \t\n\x0B\x0C\r",
            'w' => "a-zA-Z0-9_",
            'h' => r" \t\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}",
            'v' => r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}",
            'p' => return self.property(negated).map(Some),
            _ => return Ok(None),
        };
        let not = if negated { "^" } else { "" };
        Ok(Some(format!("[{not}{items}]")))
    }

    pub(super) fn property(&mut self, negated: bool) -> Step<String> {
        let mut name = String::new();
        if self.eat('{') {
            loop {
                match self.rest.next() {
                    Some('}') => break,
                    Some(c) => name.push(c),
                    None => return invalid("unclosed character family"),
                }
            }
        } else {
            match self.rest.next() {
                Some(c) => name.push(c),
                None => return invalid("missing character family"),
            }
        }
        let both_cases = self.flags.case && matches!(name.as_str(), "Lower" | "Upper");
        let items = match name.as_str() {
            _ if both_cases => "a-zA-Z",
            "Lower" => "a-z",
            "Upper" => "A-Z",
            "ASCII" => r"\x00-\x7F",
            "Alpha" => "a-zA-Z",
            "Digit" => "0-9",
            "Alnum" => "a-zA-Z0-9",
            "Punct" => r"!-/:-@\[-`{-\~",
            "Graph" => r"!-\~",
            "Print" => r" -\~",
            "Blank" => r" \t",
            "Cntrl" => r"\x00-\x1F\x7F",
            "XDigit" => "0-9a-fA-F",
            "Space" => r" \t\n\x0B\x0C\r",
            "javaLowerCase" | "IsLowercase" => r"\p{Lowercase}",
            "javaUpperCase" | "IsUppercase" => r"\p{Uppercase}",
            "javaTitleCase" | "IsTitlecase" => r"\p{Lt}",
            "javaAlphabetic" | "IsAlphabetic" => r"\p{Alphabetic}",
            "javaLetter" | "IsLetter" => r"\p{L}",
            "javaDigit" | "IsDigit" => r"\p{Nd}",
            "javaLetterOrDigit" => r"\p{L}\p{Nd}",
            "javaWhitespace" => {
                r"\t-\r\x1C-\x20\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
            }
            "IsPunctuation" => r"\p{P}",
            "IsWhite_Space" | "IsWhiteSpace" => r"\p{White_Space}",
            "L1" => r"\x00-\x{FF}",
            "LC" => r"\p{Lu}\p{Ll}\p{Lt}",
            "LD" => r"\p{L}\p{Nd}",
            "all" => r"\x00-\x{10FFFF}",
            block if block.starts_with("In") || block.starts_with("blk=") => {
                return unsupported(format!(r"\p{{{block}}} in a regular expression"));
            }
            other => {
                let plain = other.strip_prefix("Is").unwrap_or(other);
                let not = if negated { "P" } else { "p" };
                let class = format!(r"\{not}{{{plain}}}");
                return match regex::Regex::new(&class) {
                    Ok(_) => Ok(class),
                    Err(_) => invalid("unknown character property name"),
                };
            }
        };
        let not = if negated { "^" } else { "" };
        Ok(format!("[{not}{items}]"))
    }

    /// The character that `\c` stands for.
    pub(super) fn character(&mut self, c: char) -> Step<char> {
        Ok(match c {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\u{C}',
            'a' => '\u{7}',
            'e' => '\u{1B}',
            'c' => match self.rest.next() {
                Some(c) if c.is_ascii() => char::from(c as u8 ^ 64),
                _ => return invalid("illegal control escape sequence"),
            },
            '0' => {
                let mut value = 0;
                let mut digits = 0;
                while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(8)) {
                    if digits == 3 || value * 8 + digit > 0o377 {
                        break;
                    }
                    value = value * 8 + digit;
                    digits += 1;
                    self.rest.next();
                }
                if digits == 0 {
                    return invalid("illegal octal escape sequence");
                }
                to_char(value)?
            }
            'x' if self.eat('{') => {
                let mut digits = String::new();
                loop {
                    match self.rest.next() {
                        Some('}') => break,
                        Some(c) => digits.push(c),
                        None => return invalid("unclosed hexadecimal escape sequence"),
                    }
                }
                match u32::from_str_radix(&digits, 16) {
                    Ok(value) => to_char(value)?,
                    Err(_) => return invalid("illegal hexadecimal escape sequence"),
                }
            }
            'x' => to_char(self.hex(2)?)?,
            'u' => {
                let unit = self.hex(4)?;
                if !(0xD800..0xDC00).contains(&unit) {
                    return to_char(unit);
                }
                if !(self.eat('\\') && self.eat('u')) {
                    return unsupported("half a surrogate pair in a regular expression");
                }
                let low = self.hex(4)?;
                to_char(0x10000 + ((unit - 0xD800) << 10) + low.saturating_sub(0xDC00))?
            }
            c if c.is_ascii_alphanumeric() => {
                return invalid("illegal/unsupported escape sequence");
            }
            c => c,
        })
    }

    pub(super) fn hex(&mut self, digits: usize) -> Step<u32> {
        let mut value = 0;
        for _ in 0..digits {
            match self.rest.next().and_then(|c| c.to_digit(16)) {
                Some(digit) => value = value * 16 + digit,
                None => return invalid("illegal hexadecimal escape sequence"),
            }
        }
        Ok(value)
    }

    /// After `[`, up to its `]`.
    pub(super) fn class(&mut self) -> Step {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return unsupported("so deep a nest of classes");
        }
        self.out.push('[');
        if self.eat('^') {
            self.out.push('^');
        }
        let mut empty = true;
        loop {
            let Some(c) = self.rest.next() else {
                return invalid("unclosed character class");
            };
            match c {
                ']' if !empty => {
                    self.out.push(']');
                    self.depth -= 1;
                    return Ok(());
                }
                '[' => self.class()?,
                '&' if self.eat('&') => {
                    self.out.push_str("&&");
                    continue;
                }
                c if self.flags.comments && c.is_ascii_whitespace() => continue,
                '\\' => {
                    let Some(c) = self.rest.next() else {
                        return invalid("unclosed character class");
                    };
                    if c == 'Q' {
                        for c in self.quoted() {
                            self.class_range(c, c);
                        }
                    } else if let Some(class) = self.class_escape(c)? {
                        self.out.push_str(&class);
                    } else if c == 'b' {
                        return invalid("illegal/unsupported escape sequence");
                    } else {
                        let c = self.character(c)?;
                        self.range_from(c)?;
                    }
                }
                c => self.range_from(c)?,
            }
            empty = false;
        }
    }

    /// A character in a class, or the range that it starts.
    pub(super) fn range_from(&mut self, first: char) -> Step {
        let mut ahead = self.rest.clone();
        let range = ahead.next() == Some('-')
            && ahead.peek().is_some_and(|c| *c != ']' && *c != '[')
            && !(ahead.next() == Some('&') && ahead.next() == Some('&'));
        if !range {
            self.class_range(first, first);
            return Ok(());
        }
        self.rest.next();
        let last = match self.rest.next() {
            Some('\\') => match self.rest.next() {
                Some('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P') => {
                    return invalid("illegal character range");
                }
                Some(c) => self.character(c)?,
                None => return invalid("unclosed character class"),
            },
            Some(c) => c,
            None => return invalid("unclosed character class"),
        };
        if last < first {
            return invalid("illegal character range");
        }
        self.class_range(first, last);
        Ok(())
    }

    pub(super) fn class_range(&mut self, first: char, last: char) {
        let mut push = |first: char, last: char| {
            push_escaped(first, &mut self.out);
            if last > first {
                self.out.push('-');
                push_escaped(last, &mut self.out);
            }
        };
        push(first, last);
        if !self.flags.case {
            return;
        }
        if self.flags.unicode_case {
            for c in [first, last] {
                for folded in c.to_lowercase().chain(c.to_uppercase()) {
                    push(folded, folded);
                }
            }
        }
        for (low, high, other) in [('a', 'z', 'A'), ('A', 'Z', 'a')] {
            let (from, to) = (first.max(low), last.min(high));
            if from <= to {
                let shift = |c: char| char::from(c as u8 - low as u8 + other as u8);
                push(shift(from), shift(to));
            }
        }
    }
}
