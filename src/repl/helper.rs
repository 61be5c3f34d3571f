//! What the line editor asks while a statement is typed.

use std::borrow::Cow;
use std::cell::OnceCell;

use nu_ansi_term::{Color, Style};
use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::names::Names;
use crate::sql::keywords;
use crate::sql::script::Script;

/// Whether all statements of `text` are ended.
pub(super) fn is_whole(text: &str) -> bool {
    let word = text.trim().to_ascii_uppercase();
    matches!(word.as_str(), "QUIT" | "EXIT" | "HELP" | "CLEAR")
        || !Script::split(text).is_incomplete()
}

/// Completion, colours and the end of statements.
pub(super) struct SqlHelper {
    names: Names,
    /// How keywords look.
    keyword: OnceCell<Style>,
}

impl SqlHelper {
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            keyword: OnceCell::new(),
        }
    }

    /// The start of the word at `pos`, and what may stand there.
    fn candidates(&self, line: &str, pos: usize) -> (usize, Vec<String>) {
        let before = line.get(..pos).unwrap_or(line);
        let in_quotes = before.matches('\'').count() % 2 == 1;
        let belongs = |c: char| c.is_alphanumeric() || c == '_' || (in_quotes && "-.".contains(c));
        let start = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| belongs(*c))
            .last()
            .map_or(before.len(), |(i, _)| i);
        let word = &before[start..];
        (start, self.names.complete(word, in_quotes))
    }
}

impl Helper for SqlHelper {}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Completer for SqlHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(line, pos))
    }
}

impl Validator for SqlHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        let keyword = *self.keyword.get_or_init(|| Color::Blue.bold());
        let mut out = String::with_capacity(line.len() * 2);
        for (piece, text) in pieces(line) {
            match piece {
                Piece::Word if keywords::is_reserved(&text.to_ascii_uppercase()) => {
                    out.push_str(&keyword.paint(text).to_string());
                }
                Piece::String => out.push_str(&Color::Green.paint(text).to_string()),
                Piece::Comment => out.push_str(&Color::DarkGray.paint(text).to_string()),
                _ => out.push_str(text),
            }
        }
        Cow::Owned(out)
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(Color::Cyan.paint(prompt).to_string())
    }

    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

/// What a part of a line is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Word,
    String,
    Comment,
    Other,
}

/// Cuts a line, which may be unfinished, into pieces that give the line again.
fn pieces(line: &str) -> Vec<(Piece, &str)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let to = |end: &str, from: usize| {
            rest.get(from..)
                .and_then(|r| r.find(end))
                .map_or(rest.len(), |i| from + i + end.len())
        };
        let (piece, length) = if rest.starts_with("--") {
            (Piece::Comment, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (Piece::Comment, to("*/", 2))
        } else if first == '\'' {
            (Piece::String, to("'", 1))
        } else if first == '`' {
            (Piece::Other, to("`", 1))
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            (Piece::Word, end.unwrap_or(rest.len()))
        } else {
            (Piece::Other, first.len_utf8())
        };
        let (text, after) = rest.split_at(length);
        pieces.push((piece, text));
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_give_the_line_again() {
        let line = "SELECT 'a''b', `x y` -- end\nFROM é /* open";
        let pieces = pieces(line);
        assert_eq!(pieces.iter().map(|(_, t)| *t).collect::<String>(), line);
        assert!(pieces.contains(&(Piece::Comment, "-- end")));
        assert!(pieces.contains(&(Piece::Comment, "/* open")));
        assert!(pieces.contains(&(Piece::Word, "FROM")));
    }

    #[test]
    fn completes_tables_keywords_and_settings() {
        let helper = SqlHelper::new(Names::with_tables(&["orders"]));
        assert_eq!(helper.candidates("SELECT * FROM ord", 17).1[0], "orders");
        assert!(
            helper
                .candidates("sel", 3)
                .1
                .contains(&"select".to_string())
        );
        let line = "SET 'table.d";
        assert_eq!(
            helper.candidates(line, line.len()),
            (5, vec!["table.dml-sync".to_string()])
        );
    }

    #[test]
    fn a_statement_is_whole_behind_its_semicolon() {
        assert!(is_whole("SELECT 1;"));
        assert!(is_whole("quit"));
        assert!(!is_whole("SELECT ';'"));
    }
}
