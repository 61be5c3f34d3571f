//! Rewrites a Java pattern for the engines: groups, quantifiers, anchors and escapes. Classes are in
//! [`class`].

mod class;

use super::Refusal;

/// Classes nest at most so deep.
const MAX_DEPTH: usize = 100;

pub(super) const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
const END: &str = r"\z";
const END_OR_LINE_END: &str = r"(?=(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z)";

#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    case: bool,
    unicode_case: bool,
    multi_line: bool,
    dot_all: bool,
    comments: bool,
    unix_lines: bool,
    unicode_class: bool,
}

pub(super) struct Translator<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    pub(super) out: String,
    flags: Flags,
    /// Flags to go back to at the end of each open group.
    open: Vec<Flags>,
    pub(super) groups: usize,
    pub(super) fancy: bool,
    /// `$` or `\Z` occurs.
    pub(super) dollar: bool,
    end: &'static str,
    /// Whether something stands before that a quantifier can repeat.
    atom: bool,
    /// Classes within classes.
    depth: usize,
}

pub(super) type Step<T = ()> = Result<T, Refusal>;

fn invalid<T>(reason: &str) -> Step<T> {
    Err(Refusal::Invalid(reason.to_string()))
}

fn unsupported<T>(what: impl Into<String>) -> Step<T> {
    Err(Refusal::Unsupported(what.into()))
}

impl<'a> Translator<'a> {
    pub(super) fn run(pattern: &'a str, line_ends: bool) -> Step<Self> {
        let mut t = Self {
            rest: pattern.chars().peekable(),
            out: String::new(),
            flags: Flags::default(),
            open: Vec::new(),
            groups: 0,
            fancy: false,
            dollar: false,
            end: if line_ends { END_OR_LINE_END } else { END },
            atom: false,
            depth: 0,
        };
        while let Some(c) = t.rest.next() {
            t.step(c)?;
        }
        if t.open.is_empty() {
            Ok(t)
        } else {
            invalid("unclosed group")
        }
    }

    fn eat(&mut self, c: char) -> bool {
        self.rest.next_if_eq(&c).is_some()
    }

    fn step(&mut self, c: char) -> Step {
        match c {
            '\\' => self.escape(),
            '[' => {
                self.class()?;
                self.atom = true;
                Ok(())
            }
            '(' => self.group(),
            ')' => {
                let Some(flags) = self.open.pop() else {
                    return invalid("unmatched closing ')'");
                };
                self.flags = flags;
                self.out.push(')');
                self.atom = true;
                Ok(())
            }
            '|' => {
                self.out.push('|');
                self.atom = false;
                Ok(())
            }
            '*' | '+' | '?' => self.quantifier(&c.to_string()),
            '{' => self.counted(),
            '.' => {
                self.out.push_str(match self.flags {
                    Flags { dot_all: true, .. } => "(?s:.)",
                    Flags {
                        unix_lines: true, ..
                    } => r"[^\n]",
                    _ => r"[^\n\r\x{85}\x{2028}\x{2029}]",
                });
                self.atom = true;
                Ok(())
            }
            '^' => {
                self.out.push_str(if self.flags.multi_line {
                    "(?m:^)"
                } else {
                    r"\A"
                });
                self.atom = true;
                Ok(())
            }
            '$' => {
                if self.flags.multi_line {
                    self.out.push_str("(?m:$)");
                } else {
                    self.push_end();
                }
                self.atom = true;
                Ok(())
            }
            c if self.flags.comments && c.is_ascii_whitespace() => Ok(()),
            '#' if self.flags.comments => {
                for c in self.rest.by_ref() {
                    if LINE_ENDS.contains(&c) {
                        break;
                    }
                }
                Ok(())
            }
            c => {
                self.literal(c);
                Ok(())
            }
        }
    }

    fn push_end(&mut self) {
        self.dollar = true;
        self.out.push_str(self.end);
    }

    fn literal(&mut self, c: char) {
        self.atom = true;
        if !self.flags.case || !c.is_alphabetic() {
            push_escaped(c, &mut self.out);
        } else if self.flags.unicode_case {
            self.out.push_str("(?i:");
            push_escaped(c, &mut self.out);
            self.out.push(')');
        } else if c.is_ascii() {
            self.out
                .extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
        } else {
            self.out.push(c);
        }
    }

    fn quantifier(&mut self, text: &str) -> Step {
        if !self.atom {
            return invalid("dangling meta character");
        }
        self.out.push_str(text);
        if self.eat('?') {
            self.out.push('?');
        } else if self.eat('+') {
            self.out.push('+');
            self.fancy = true;
        }
        self.atom = false;
        Ok(())
    }

    fn counted(&mut self) -> Step {
        let min = self.number()?;
        let mut text = format!("{{{min}");
        if self.eat(',') {
            text.push(',');
            if self.rest.peek() != Some(&'}') {
                let max = self.number()?;
                if max < min {
                    return invalid("illegal repetition range");
                }
                text.push_str(&max.to_string());
            }
        }
        if !self.eat('}') {
            return invalid("unclosed counted closure");
        }
        text.push('}');
        self.quantifier(&text)
    }

    fn number(&mut self) -> Step<u32> {
        let mut digits = String::new();
        while let Some(c) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(c);
        }
        digits
            .parse()
            .map_err(|_| Refusal::Invalid("illegal repetition".to_string()))
    }

    fn group(&mut self) -> Step {
        self.atom = false;
        let before = self.flags;
        if !self.eat('?') {
            self.groups += 1;
            self.out.push('(');
            self.open.push(before);
            return Ok(());
        }
        match self.rest.next() {
            Some(':') => self.out.push_str("(?:"),
            Some(c @ ('=' | '!' | '>')) => {
                self.fancy = true;
                self.out.push_str("(?");
                self.out.push(c);
            }
            Some('<') => match self.rest.next() {
                Some(c @ ('=' | '!')) => {
                    self.fancy = true;
                    self.out.push_str("(?<");
                    self.out.push(c);
                }
                Some(c) if c.is_ascii_alphabetic() => {
                    let mut name = c.to_string();
                    while let Some(c) = self.rest.next_if(char::is_ascii_alphanumeric) {
                        name.push(c);
                    }
                    if !self.eat('>') {
                        return invalid("named capturing group is missing trailing '>'");
                    }
                    self.groups += 1;
                    self.out.push_str(&format!("(?<{name}>"));
                }
                _ => return invalid("unknown look-behind group"),
            },
            Some(c) => return self.inline_flags(c, before),
            None => return invalid("unknown group type"),
        }
        self.open.push(before);
        Ok(())
    }

    fn inline_flags(&mut self, first: char, before: Flags) -> Step {
        let mut on = true;
        let mut next = Some(first);
        loop {
            let flag = match next {
                Some('-') => {
                    on = false;
                    next = self.rest.next();
                    continue;
                }
                Some(')') => return Ok(()),
                Some(':') => {
                    self.out.push_str("(?:");
                    self.open.push(before);
                    return Ok(());
                }
                Some('i') => &mut self.flags.case,
                Some('m') => &mut self.flags.multi_line,
                Some('s') => &mut self.flags.dot_all,
                Some('x') => &mut self.flags.comments,
                Some('d') => &mut self.flags.unix_lines,
                Some('u') => &mut self.flags.unicode_case,
                Some('U') => {
                    self.flags.unicode_case = on;
                    &mut self.flags.unicode_class
                }
                _ => return invalid("unknown inline modifier"),
            };
            *flag = on;
            next = self.rest.next();
        }
    }

    /// After a backslash outside a class.
    fn escape(&mut self) -> Step {
        let Some(&c) = self.rest.peek() else {
            return invalid("unexpected internal error: trailing backslash");
        };
        self.atom = true;
        match c {
            'A' => self.out.push_str(r"\A"),
            'z' => self.out.push_str(r"\z"),
            'Z' => self.push_end(),
            'b' => self.out.push_str(r"\b"),
            'B' => self.out.push_str(r"\B"),
            'R' => self
                .out
                .push_str(r"(?:\r\n|[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}])"),
            'G' | 'X' | 'N' => return unsupported(format!(r"\{c} in a regular expression")),
            'Q' => {
                self.rest.next();
                for c in self.quoted() {
                    self.literal(c);
                }
                return Ok(());
            }
            'k' => {
                self.rest.next();
                if !self.eat('<') {
                    return invalid(r"\k is not followed by '<' for a named capturing group");
                }
                let mut name = String::new();
                loop {
                    match self.rest.next() {
                        Some('>') => break,
                        Some(c) => name.push(c),
                        None => return invalid("named group is not closed"),
                    }
                }
                self.fancy = true;
                self.out.push_str(&format!(r"\k<{name}>"));
                return Ok(());
            }
            '1'..='9' => {
                self.rest.next();
                let mut number = c as usize - '0' as usize;
                while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
                    let longer = number * 10 + digit as usize;
                    if longer > self.groups {
                        break;
                    }
                    number = longer;
                    self.rest.next();
                }
                self.fancy = true;
                if number > self.groups {
                    // A group that is not there never matches.
                    self.out.push_str(r"(?!)");
                } else {
                    self.out.push_str(&format!(r"(?:\{number})"));
                }
                return Ok(());
            }
            _ => {
                self.rest.next();
                if let Some(class) = self.class_escape(c)? {
                    self.out.push_str(&class);
                } else {
                    let c = self.character(c)?;
                    self.literal(c);
                }
                return Ok(());
            }
        }
        self.rest.next();
        Ok(())
    }

    /// The characters up to `\E` or the end.
    fn quoted(&mut self) -> Vec<char> {
        let mut chars = Vec::new();
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.eat('E') {
                break;
            }
            chars.push(c);
        }
        chars
    }
}

fn to_char(value: u32) -> Step<char> {
    match char::from_u32(value) {
        Some(c) => Ok(c),
        None => unsupported("half a surrogate pair in a regular expression"),
    }
}

/// A literal character, in or outside a class.
fn push_escaped(c: char, out: &mut String) {
    if c.is_ascii_punctuation() {
        out.push('\\');
        out.push(c);
    } else if c.is_ascii_whitespace() || c.is_ascii_control() {
        out.push_str(&format!(r"\x{:02X}", c as u32));
    } else {
        out.push(c);
    }
}
