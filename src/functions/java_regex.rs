//! Java's regular expressions on Rust's engines.
//!
//! A pattern is rewritten: Java's classes (`\d` is ASCII), line ends, case folding (ASCII without the
//! `u` flag) and quoting are spelled out. What needs look-around, back references or possessive
//! quantifiers runs on the backtracking engine, the rest on the linear one. Not supported, and refused
//! with a reason: `\G`, `\X`, `\N{...}`, blocks (`\p{InGreek}`).

mod translate;

use std::sync::OnceLock;

use self::translate::{LINE_ENDS, Translator};
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

    /// Group `group` of the first match; `None` if there is none, or the group took no part. `places` is memory to be
    /// used again with this pattern, `None` at first.
    pub(super) fn group(
        &self,
        text: &str,
        group: usize,
        places: &mut Option<regex::CaptureLocations>,
    ) -> Result<Option<(usize, usize)>> {
        match self.engine(text) {
            _ if group == 0 => self.find_at(text, 0),
            Engine::Linear(regex) => {
                let places = places.get_or_insert_with(|| regex.capture_locations());
                let found = regex.captures_read(places, text);
                Ok(found.and_then(|_| places.get(group)))
            }
            Engine::Backtracking(_) => {
                let groups = self.groups_at(text, 0)?;
                Ok(groups.and_then(|groups| groups.get(group).copied().flatten()))
            }
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

#[cfg(test)]
mod tests;
