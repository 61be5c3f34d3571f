//! The patterns of `LIKE` and `SIMILAR TO`.

use memchr::memmem::Finder;

use crate::error::{Error, Result};

/// A compiled pattern.
#[derive(Debug)]
pub(super) enum Matcher {
    /// This text.
    Exactly(String),
    /// It starts so.
    Prefix(String),
    /// It ends so.
    Suffix(String),
    /// It contains this.
    Contains(Box<Finder<'static>>),
    /// A sequence of parts.
    Parts(Vec<Part>),
    /// A regular expression on the whole text.
    Regex(regex::Regex),
}

/// A part of a `LIKE` pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character.
    Char(char),
}

impl Matcher {
    /// Whether the whole of `text` matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exactly(part) => text == part,
            Self::Prefix(part) => text.starts_with(part.as_str()),
            Self::Suffix(part) => text.ends_with(part.as_str()),
            Self::Contains(finder) => finder.find(text.as_bytes()).is_some(),
            Self::Parts(parts) => parts_match(parts, text),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Whether `c` ends a line: `_` does not stand for such a character, as in Flink.
fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Matches by going back to the last `%` only: a later one makes the earlier ones settled.
fn parts_match(parts: &[Part], text: &str) -> bool {
    let mut rest = text.chars();
    let mut next = 0;
    // The part behind the last `%`, and the text from which it is tried next.
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        match parts.get(next) {
            Some(Part::Any) => {
                next += 1;
                retry = Some((next, rest.clone()));
                continue;
            }
            Some(part) => {
                let mut ahead = rest.clone();
                let fits = match (ahead.next(), part) {
                    (Some(c), Part::Char(wanted)) => c == *wanted,
                    (Some(c), Part::One) => !ends_line(c),
                    _ => false,
                };
                if fits {
                    rest = ahead;
                    next += 1;
                    continue;
                }
            }
            None if rest.as_str().is_empty() => return true,
            None => {}
        }
        let Some((part, from)) = &mut retry else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        next = *part;
        rest = from.clone();
    }
}

fn invalid_escape(pattern: &str, at: usize) -> Error {
    Error::execution(format!("Invalid escape sequence '{pattern}', {at}"))
}

/// A `LIKE` pattern: `%`, `_` and, behind the escape character, one of them or that character itself.
pub(super) fn like(pattern: &str, escape: Option<char>) -> Result<Matcher> {
    let mut parts = Vec::with_capacity(pattern.len());
    let mut chars = pattern.chars().enumerate();
    while let Some((at, c)) = chars.next() {
        parts.push(match c {
            c if Some(c) == escape => match chars.next() {
                Some((_, c)) if c == '%' || c == '_' || Some(c) == escape => Part::Char(c),
                _ => return Err(invalid_escape(pattern, at)),
            },
            '%' => Part::Any,
            '_' => Part::One,
            c => Part::Char(c),
        });
    }
    parts.dedup_by(|a, b| *a == Part::Any && *b == Part::Any);
    let text = |parts: &[Part]| {
        parts
            .iter()
            .map(|part| match part {
                Part::Char(c) => Some(*c),
                _ => None,
            })
            .collect::<Option<String>>()
    };
    let simple = match parts.as_slice() {
        [Part::Any] => Some(Matcher::Prefix(String::new())),
        [Part::Any, inner @ .., Part::Any] => {
            let finder = |part: String| Finder::new(part.as_bytes()).into_owned();
            text(inner).map(finder).map(Box::new).map(Matcher::Contains)
        }
        [Part::Any, inner @ ..] => text(inner).map(Matcher::Suffix),
        [inner @ .., Part::Any] => text(inner).map(Matcher::Prefix),
        all => text(all).map(Matcher::Exactly),
    };
    Ok(simple.unwrap_or(Matcher::Parts(parts)))
}

/// The characters that mean something in a `SIMILAR TO` pattern, and so can be escaped.
const SPECIALS: &str = "[]()|^-+*_%?{}";

/// The named sets of characters inside `[...]`, and what a regular expression calls them.
const SETS: [(&str, &str); 10] = [
    ("[:ALPHA:]", "a-zA-Z"),
    ("[:UPPER:]", "A-Z"),
    ("[:LOWER:]", "a-z"),
    ("[:DIGIT:]", "0-9"),
    ("[:SPACE:]", " "),
    ("[:WHITESPACE:]", " \\t\\n\\x0B\\f\\r"),
    ("[:ALNUM:]", "a-zA-Z0-9"),
    ("[:alpha:]", "a-zA-Z"),
    ("[:digit:]", "0-9"),
    ("[:alnum:]", "a-zA-Z0-9"),
];

/// One character that ends no line: Java's `.`.
const ONE: &str = "[^\\n\\r\\x{85}\\x{2028}\\x{2029}]";

/// A `SIMILAR TO` pattern: `%` and `_`, `|`, `( )`, `* + ? { }`, `[ ]`; a dot stands for any character as
/// in Flink.
pub(super) fn similar(pattern: &str, escape: Option<char>) -> Result<Matcher> {
    let invalid = || Error::execution(format!("Invalid regular expression '{pattern}'"));
    let mut regex = String::from("\\A(?:");
    let mut rest = pattern;
    let mut in_set = false;
    while let Some(c) = rest.chars().next() {
        let at = pattern.len() - rest.len();
        rest = &rest[c.len_utf8()..];
        if Some(c) == escape {
            let next = rest.chars().next();
            match next {
                Some(next) if SPECIALS.contains(next) || Some(next) == escape => {
                    literal(next, &mut regex);
                    rest = &rest[next.len_utf8()..];
                }
                _ => return Err(invalid_escape(pattern, at)),
            }
            continue;
        }
        if in_set {
            if let Some((name, set)) = SETS.iter().find(|(name, _)| {
                c == '[' && name.get(1..).is_some_and(|name| rest.starts_with(name))
            }) {
                regex.push_str(set);
                rest = &rest[name.len() - 1..];
                continue;
            }
            match c {
                ']' => {
                    in_set = false;
                    regex.push(']');
                }
                '-' | '^' => regex.push(c),
                c if SPECIALS.contains(c) => return Err(invalid()),
                c => literal(c, &mut regex),
            }
            continue;
        }
        match c {
            '_' | '.' => regex.push_str(ONE),
            '%' => regex.push_str("(?s:.*)"),
            '[' => {
                in_set = true;
                regex.push('[');
            }
            ']' => return Err(invalid()),
            '(' | ')' | '|' | '*' | '+' | '?' | '{' | '}' | '^' => regex.push(c),
            c => literal(c, &mut regex),
        }
    }
    if in_set {
        return Err(invalid());
    }
    regex.push_str(")\\z");
    regex::Regex::new(&regex)
        .map(Matcher::Regex)
        .map_err(|_| invalid())
}

/// A character that stands for itself.
fn literal(c: char, regex: &mut String) {
    regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like_matches(text: &str, pattern: &str) -> bool {
        like(pattern, None).expect("well-formed").matches(text)
    }

    fn similar_matches(text: &str, pattern: &str) -> Option<bool> {
        similar(pattern, Some('!')).ok().map(|m| m.matches(text))
    }

    #[test]
    fn like_patterns() {
        for (text, pattern, expected) in [
            ("abc", "a%c%", true),
            ("abc", "a%b", false),
            ("aXbXc", "a%b%c", true),
            ("abab", "%ab", true),
            ("abcabd", "%ab_", true),
            ("abcabd", "%abc", false),
            ("abc", "_b_", true),
            ("ä", "_", true),
            ("😀", "_", true),
            ("😀", "__", false),
            ("", "", true),
            ("", "%", true),
            ("a\nb", "a%b", true),
            ("a\nb", "a_b", false),
            ("a.c", "a.c", true),
            ("abc", "a.c", false),
            ("a\\xb", "a\\_b", true),
            ("ab", "ab%%", true),
            ("aaab", "%a%a%b", true),
            ("A", "a", false),
        ] {
            assert_eq!(
                like_matches(text, pattern),
                expected,
                "{text} LIKE {pattern}"
            );
        }
    }

    #[test]
    fn like_escapes() {
        let escaped = |pattern| like(pattern, Some('!'));
        assert!(escaped("a!%b").is_ok_and(|m| m.matches("a%b") && !m.matches("axb")));
        assert!(escaped("a!!b").is_ok_and(|m| m.matches("a!b")));
        assert!(escaped("a!b").is_err());
        assert!(escaped("a!").is_err());
    }

    #[test]
    fn similar_patterns() {
        for (text, pattern, expected) in [
            ("abc", "a(b|x)c", Some(true)),
            ("abc", "b", Some(false)),
            ("abc", "[a-c]+", Some(true)),
            ("abc", "a.c", Some(true)),
            ("a%c", "a!%c", Some(true)),
            ("abc", "_{3}", Some(true)),
            ("a\nb", "a%b", Some(true)),
            ("5", "[[:DIGIT:]]", Some(true)),
            ("ab1", "[[:ALPHA:][:DIGIT:]]*", Some(true)),
            ("x", "[^a]", Some(true)),
            ("^", "^", Some(false)),
            ("a$", "a$", Some(true)),
            ("ab", "a|ab", Some(true)),
            ("a", "(", None),
            ("a]", "a]", None),
            ("a", "[a", None),
        ] {
            assert_eq!(
                similar_matches(text, pattern),
                expected,
                "{text} ~ {pattern}"
            );
        }
    }
}
