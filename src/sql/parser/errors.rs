//! What is said about a text that is not of the grammar.

use super::super::keywords;
use super::super::lexer::{Token, TokenKind};
use super::FlinkParser;
use crate::error::{Error, Span, did_you_mean};

impl FlinkParser<'_> {
    /// The error of the next token where `expected` should have been.
    pub(super) fn unexpected(&self, expected: &str) -> Error {
        self.unexpected_of(expected, &[])
    }

    /// The same, with the keywords that would have been right.
    pub(super) fn unexpected_of(&self, expected: &str, candidates: &[&str]) -> Error {
        let token = self.peek();
        let error = if token.kind == TokenKind::End {
            Error::parse(format!("The statement ends where {expected} is expected"))
        } else {
            let encountered = self.text_of(token.span);
            let shown = encountered.lines().next().unwrap_or_default();
            let shown = match shown.char_indices().nth(40) {
                Some((cut, _)) => format!("{}...", &shown[..cut]),
                None => shown.to_string(),
            };
            Error::parse(format!(
                "Encountered \"{shown}\" where {expected} is expected"
            ))
        };
        let error = error.at(token.span);
        match self.hint_for(token, expected, candidates) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// What the user may have meant by `token`.
    fn hint_for(&self, token: &Token, expected: &str, candidates: &[&str]) -> Option<String> {
        if token.kind == TokenKind::DoubleQuoted {
            return Some("strings are in single quotes, names in backticks".into());
        }
        // a misspelt clause was taken for an alias
        let before = &self.tokens[self.position.saturating_sub(1)];
        if candidates.is_empty()
            && before.kind == TokenKind::Word
            && !keywords::is_reserved(&before.text.to_ascii_uppercase())
            && let Some(clause) = misspelt(&before.text, CLAUSES)
        {
            return Some(format!("did you mean {clause} instead of {}?", before.text));
        }
        if token.kind != TokenKind::Word {
            return None;
        }
        if let Some(meant) = misspelt(&token.text, candidates) {
            return Some(format!("did you mean {meant}?"));
        }
        let upper = token.text.to_ascii_uppercase();
        let wants_name = matches!(expected, "a name" | "an alias" | "an expression");
        (wants_name && keywords::is_reserved(&upper)).then(|| {
            format!(
                "{upper} is a reserved word: as a name it is written `{}`",
                token.text
            )
        })
    }

    #[expect(clippy::unused_self, reason = "reads as the other errors do")]
    pub(super) fn error(&self, message: impl Into<String>, span: Span) -> Error {
        Error::parse(message).at(span)
    }
}

/// The words that start a clause of a query.
const CLAUSES: &[&str] = &[
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "JOIN", "WINDOW",
    "QUALIFY",
];

/// The keyword that `word` is nearly.
fn misspelt<'k>(word: &str, keywords: &[&'k str]) -> Option<&'k str> {
    if word.len() < 3 {
        return None;
    }
    did_you_mean(word, keywords.iter().copied()).filter(|k| !k.eq_ignore_ascii_case(word))
}
