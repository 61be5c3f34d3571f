//! Java's regular expressions on Rust's engines.
//!
//! A pattern is rewritten: Java's classes (`\d` is ASCII), line ends, case folding (ASCII without the
//! `u` flag) and quoting are spelled out. What needs look-around, back references or possessive
//! quantifiers runs on the backtracking engine, the rest on the linear one. Not supported, and refused
//! with a reason: `\G`, `\X`, `\N{...}`, blocks (`\p{InGreek}`).

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Why a pattern was not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is no pattern for Java either.
    Invalid(String),
    /// Java takes it, we don't.
    Unsupported(String),
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct JavaRegex {
    engine: Engine,
    /// For texts that end with a line end, which `$` also matches before. Made when needed.
    before_line_end: Option<(String, OnceLock<Option<Engine>>)>,
    groups: usize,
}

#[derive(Debug)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// The places of a match and its groups, as byte offsets.
pub(super) type Groups = Vec<Option<(usize, usize)>>;

impl Engine {
    fn linear(pattern: &str) -> Result<Self, Refusal> {
        regex::Regex::new(pattern)
            .map(Self::Linear)
            .map_err(|e| Refusal::Unsupported(e.to_string()))
    }

    fn backtracking(pattern: &str) -> Result<Self, Refusal> {
        fancy_regex::Regex::new(pattern)
            .map(|regex| Self::Backtracking(Box::new(regex)))
            .map_err(|e| Refusal::Unsupported(e.to_string()))
    }
}

fn failed(error: &fancy_regex::Error) -> Error {
    Error::execution(format!("a regular expression gave up: {error}"))
}

impl JavaRegex {
    /// Compiles `pattern`.
    pub(super) fn new(pattern: &str) -> Result<Self, Refusal> {
        let plain = Translator::run(pattern, false)?;
        let engine = if plain.fancy {
            Engine::backtracking(&Translator::run(pattern, true)?.out)?
        } else {
            Engine::linear(&plain.out)?
        };
        let before_line_end = if plain.fancy || !plain.dollar {
            None
        } else {
            Some((Translator::run(pattern, true)?.out, OnceLock::new()))
        };
        Ok(Self {
            engine,
            before_line_end,
            groups: plain.groups,
        })
    }

    /// The number of capturing groups.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    fn engine(&self, text: &str) -> &Engine {
        match &self.before_line_end {
            Some((pattern, engine)) if text.ends_with(LINE_ENDS) => engine
                .get_or_init(|| Engine::backtracking(pattern).ok())
                .as_ref()
                .unwrap_or(&self.engine),
            _ => &self.engine,
        }
    }

    /// Whether it occurs in `text`.
    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        match self.engine(text) {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Backtracking(regex) => regex.is_match(text).map_err(|e| failed(&e)),
        }
    }

    /// The first match at `from` or later.
    pub(super) fn find_at(&self, text: &str, from: usize) -> Result<Option<(usize, usize)>> {
        match self.engine(text) {
            Engine::Linear(regex) => Ok(regex.find_at(text, from).map(|m| (m.start(), m.end()))),
            Engine::Backtracking(regex) => Ok(regex
                .find_from_pos(text, from)
                .map_err(|e| failed(&e))?
                .map(|m| (m.start(), m.end()))),
        }
    }

    /// The first match at `from` or later, with its groups.
    pub(super) fn groups_at(&self, text: &str, from: usize) -> Result<Option<Groups>> {
        match self.engine(text) {
            Engine::Linear(regex) => Ok(regex.captures_at(text, from).map(|groups| {
                groups
                    .iter()
                    .map(|m| m.map(|m| (m.start(), m.end())))
                    .collect()
            })),
            Engine::Backtracking(regex) => Ok(regex
                .captures_from_pos(text, from)
                .map_err(|e| failed(&e))?
                .map(|groups| {
                    groups
                        .iter()
                        .map(|m| m.map(|m| (m.start(), m.end())))
                        .collect()
                })),
        }
    }

    /// Calls `f` with every match, one after the other, as `Matcher.find` finds them: an empty match
    /// right after another counts.
    pub(super) fn for_each(
        &self,
        text: &str,
        mut f: impl FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let mut from = 0;
        while let Some((start, end)) = self.find_at(text, from)? {
            f(start, end)?;
            match after(text, start, end) {
                Some(next) => from = next,
                None => break,
            }
        }
        Ok(())
    }

    /// `String.split`: no empty pieces at the end, nor a first one from an empty match.
    pub(super) fn split<'a>(&self, text: &'a str) -> Result<Vec<&'a str>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        self.for_each(text, |from, to| {
            if to > 0 {
                pieces.push(&text[start..from]);
                start = to;
            }
            Ok(())
        })?;
        if pieces.is_empty() {
            return Ok(vec![text]);
        }
        pieces.push(&text[start..]);
        while pieces.last().is_some_and(|piece| piece.is_empty()) {
            pieces.pop();
        }
        Ok(pieces)
    }

    /// What stands before and after the first match, if there is one.
    pub(super) fn split_once<'a>(&self, text: &'a str) -> Result<Option<(&'a str, &'a str)>> {
        let mut from = 0;
        while let Some((start, end)) = self.find_at(text, from)? {
            if end > 0 {
                return Ok(Some((&text[..start], &text[end..])));
            }
            match after(text, start, end) {
                Some(next) => from = next,
                None => break,
            }
        }
        Ok(None)
    }
}

/// Where the search goes on after a match.
pub(super) fn after(text: &str, start: usize, end: usize) -> Option<usize> {
    if end > start {
        return Some(end);
    }
    text[end..].chars().next().map(|c| end + c.len_utf8())
}

/// Classes nest at most so deep.
const MAX_DEPTH: usize = 100;

const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
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

struct Translator<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    flags: Flags,
    /// Flags to go back to at the end of each open group.
    open: Vec<Flags>,
    groups: usize,
    fancy: bool,
    /// `$` or `\Z` occurs.
    dollar: bool,
    end: &'static str,
    /// Whether something stands before that a quantifier can repeat.
    atom: bool,
    /// Classes within classes.
    depth: usize,
}

type Step<T = ()> = Result<T, Refusal>;

fn invalid<T>(reason: &str) -> Step<T> {
    Err(Refusal::Invalid(reason.to_string()))
}

fn unsupported<T>(what: impl Into<String>) -> Step<T> {
    Err(Refusal::Unsupported(what.into()))
}

impl<'a> Translator<'a> {
    fn run(pattern: &'a str, line_ends: bool) -> Step<Self> {
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

    /// A class that `\c` stands for, in brackets.
    fn class_escape(&mut self, c: char) -> Step<Option<String>> {
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

    fn property(&mut self, negated: bool) -> Step<String> {
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
    fn character(&mut self, c: char) -> Step<char> {
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

    fn hex(&mut self, digits: usize) -> Step<u32> {
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
    fn class(&mut self) -> Step {
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
    fn range_from(&mut self, first: char) -> Step {
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

    fn class_range(&mut self, first: char, last: char) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'a>(pattern: &str, text: &'a str) -> Option<&'a str> {
        let regex = JavaRegex::new(pattern).expect("a valid pattern");
        let found = regex.find_at(text, 0).expect("a quick match");
        found.map(|(start, end)| &text[start..end])
    }

    #[test]
    fn classes_are_ascii_and_case_folding_too() {
        assert_eq!(first(r"\w+", "élan"), Some("lan"));
        assert_eq!(first(r"\d", "٣4"), Some("4"));
        assert_eq!(first(r"a\sb", "a\u{a0}b"), None);
        assert_eq!(first("(?i)É", "aé"), None);
        assert_eq!(first("(?iu)É", "aé"), Some("é"));
        assert_eq!(first("(?i)[a-c]+", "xABCd"), Some("ABC"));
        assert_eq!(first("a(?i)b(?-i)c", "aBc"), Some("aBc"));
        assert_eq!(first("(?:(?i)b)B", "Bb"), None);
    }

    #[test]
    fn classes_nest_and_intersect() {
        assert_eq!(first("[a-z&&[^b]]+", "abc-def"), Some("a"));
        assert_eq!(first("[^]]+", "ab]c"), Some("ab"));
        assert_eq!(first(r"[\[]", "a[b"), Some("["));
        assert_eq!(first("[a-]+", "a-b"), Some("a-"));
        assert_eq!(first("[a[0-3]]+", "x3a4"), Some("3a"));
        assert_eq!(first(r"[\d.-]+", "x-1.5"), Some("-1.5"));
    }

    #[test]
    fn the_end_stands_before_a_last_line_end_too() {
        assert_eq!(first("b$", "ab\n"), Some("b"));
        assert_eq!(first("b$", "ab\r\n"), Some("b"));
        assert_eq!(first("b$", "ab\n\n"), None);
        assert_eq!(first("b$", "ab"), Some("b"));
        assert_eq!(first(r"b\z", "ab\n"), None);
        assert_eq!(first("a.b", "a\u{2028}b"), None);
        assert_eq!(first("(?s)a.b", "a\nb"), Some("a\nb"));
    }

    #[test]
    fn look_around_back_references_and_possessive_quantifiers_work() {
        assert_eq!(first("(?<=foo)bar", "foobar"), Some("bar"));
        assert_eq!(first(r"(a)\1", "aabb"), Some("aa"));
        assert_eq!(first("a++", "aaa"), Some("aaa"));
        assert_eq!(first("a++a", "aaa"), None);
        assert_eq!(first(r"(a)\2", "aa"), None);
    }

    #[test]
    fn escapes_quotes_and_comments() {
        assert_eq!(first(r"\Q\\E", r"x\y"), Some(r"\"));
        assert_eq!(first(r"\Q.*", "a.*"), Some(".*"));
        assert_eq!(first(r"\x61\u0062\0143", "abc"), Some("abc"));
        assert_eq!(first(r"\uD83D\uDE00", "x😀"), Some("😀"));
        assert_eq!(first("(?x) a \\  b # c", "a b"), Some("a b"));
        assert_eq!(first(r"\p{Lower}+\p{L}", "fooÉ"), Some("fooÉ"));
        assert_eq!(first(r"\P{L}+", "ab12"), Some("12"));
    }

    #[test]
    fn what_java_refuses_is_invalid_and_what_we_lack_is_said() {
        for pattern in [
            "(", ")", "[a", "*a", "a{2,1}", "[z-a]", r"\y", "a{x}", "(?q)",
        ] {
            assert!(
                matches!(JavaRegex::new(pattern), Err(Refusal::Invalid(_))),
                "{pattern}"
            );
        }
        for pattern in [r"\G", r"\p{InGreek}", r"\X"] {
            assert!(
                matches!(JavaRegex::new(pattern), Err(Refusal::Unsupported(_))),
                "{pattern}"
            );
        }
    }

    #[test]
    fn splits_as_java_does() {
        let split = |pattern: &str, text: &'static str| {
            let regex = JavaRegex::new(pattern).expect("a valid pattern");
            regex.split(text).expect("a quick match")
        };
        assert_eq!(split(",", "a,,b,,"), ["a", "", "b"]);
        assert_eq!(split(",", ""), [""]);
        assert_eq!(split("", "abc"), ["a", "b", "c"]);
        assert_eq!(split("[0-9]", "a1b22c"), ["a", "b", "", "c"]);
    }
}
