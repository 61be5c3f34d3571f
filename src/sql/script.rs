//! Cutting a script, or what was typed so far, into statements.

use super::lexer::{Scanner, Token, TokenKind};
use crate::error::Span;

/// A statement of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStatement<'a> {
    /// Its text, without the comments before it and the `;` behind it. This is what the parser is
    /// given; the positions of its errors count from [`offset`](Self::offset).
    pub text: &'a str,
    /// Where the text starts in the script.
    pub offset: usize,
}

impl ScriptStatement<'_> {
    /// Where the statement lies in the script.
    #[must_use]
    pub fn span(&self) -> Span {
        Span::new(self.offset, self.offset + self.text.len())
    }
}

/// The statements of a script, and what it ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script<'a> {
    /// The statements that a `;` ends.
    pub statements: Vec<ScriptStatement<'a>>,
    /// Text behind the last `;`, if there is more than comments: a script's last statement, or one
    /// that a terminal's user is still typing.
    pub rest: Option<ScriptStatement<'a>>,
    /// The text ends inside a string, a quoted name or a comment.
    pub unterminated: bool,
}

impl<'a> Script<'a> {
    /// Cuts `text`. Never fails: what is no SQL is for the parser to refuse.
    #[must_use]
    pub fn split(text: &'a str) -> Self {
        let mut script = Script {
            statements: Vec::new(),
            rest: None,
            unterminated: false,
        };
        let mut scanner = Scanner::new(text);
        let mut block = Block::default();
        let mut start = None;
        loop {
            let token = scanner.next_token();
            match token.kind {
                TokenKind::End => break,
                TokenKind::Comment => continue,
                TokenKind::Unterminated => {
                    script.unterminated = true;
                    // an open comment before a statement belongs to no statement
                    if token.text == "*/" && start.is_none() {
                        break;
                    }
                }
                _ => {}
            }
            if token.is_symbol(";") && !block.is_open() {
                if let Some(offset) = start.take() {
                    let text = text[offset..token.span.start].trim_end();
                    script.statements.push(ScriptStatement { text, offset });
                }
                block = Block::default();
                continue;
            }
            start.get_or_insert(token.span.start);
            block.see(&token);
        }
        if let Some(offset) = start {
            let text = text[offset..].trim_end();
            script.rest = Some(ScriptStatement { text, offset });
        }
        script
    }

    /// All statements; the last needs no `;`.
    pub fn all(&self) -> impl Iterator<Item = ScriptStatement<'a>> + '_ {
        self.statements.iter().copied().chain(self.rest)
    }

    /// Whether a terminal has to wait for more before anything of this can run.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.unterminated || self.rest.is_some()
    }
}

/// Knows whether a `;` is inside a statement set.
#[derive(Default)]
struct Block {
    /// The first words, in upper case, as long as they may open a statement set.
    words: Vec<String>,
    open: bool,
    /// The last thing seen is `;` or the opening words, so that `END` closes.
    at_statement: bool,
    closed: bool,
}

impl Block {
    fn is_open(&self) -> bool {
        self.open
    }

    fn see(&mut self, token: &Token) {
        if self.open {
            if self.at_statement && token.is_word("END") {
                self.open = false;
                self.closed = true;
            }
            self.at_statement = token.is_symbol(";");
            return;
        }
        if self.closed || self.words.len() > 12 {
            return;
        }
        self.words.push(match token.kind {
            TokenKind::Word => token.text.to_ascii_uppercase(),
            _ => String::new(),
        });
        self.open = self.opens();
        self.at_statement = self.open;
    }

    /// `BEGIN STATEMENT SET`, or `STATEMENT SET BEGIN` behind `EXECUTE`, `EXPLAIN ..` or `COMPILE ..`.
    fn opens(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["BEGIN", "STATEMENT", "SET"] => true,
            [first, .., "STATEMENT", "SET", "BEGIN"] => {
                matches!(*first, "EXECUTE" | "EXPLAIN" | "COMPILE")
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<&str> {
        Script::split(script).all().map(|s| s.text).collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_end_nothing() {
        let script =
            "-- c;\nSELECT ';', `a;b` /* ; */ -- ;\n, E'\\';' ;\n;; /* x */ SELECT 2 -- end\n";
        assert_eq!(
            texts(script),
            [
                "SELECT ';', `a;b` /* ; */ -- ;\n, E'\\';'",
                "SELECT 2 -- end"
            ]
        );
        let second = Script::split(script).all().nth(1).expect("two");
        assert_eq!(
            &script[second.span().start..second.span().end],
            "SELECT 2 -- end"
        );
    }

    #[test]
    fn statement_sets_stay_whole() {
        for set in [
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN 1=1 THEN 2 END; INSERT INTO b SELECT 1; END",
            "begin statement set; INSERT INTO a SELECT 1; end",
            "EXPLAIN CHANGELOG_MODE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END",
            "COMPILE PLAN 'f' FOR STATEMENT SET BEGIN INSERT INTO a SELECT 1; END",
        ] {
            let script = format!("{set};\nSELECT 1;");
            assert_eq!(texts(&script), [set, "SELECT 1"]);
        }
    }

    #[test]
    fn incomplete_buffers_are_known() {
        for (buffer, incomplete) in [
            ("", false),
            ("-- only a comment", false),
            ("SELECT 1;", false),
            ("SELECT 1; -- done", false),
            ("SELECT 1", true),
            ("SELECT 'a;", true),
            ("SELECT 1; /* ", true),
            ("BEGIN STATEMENT SET; INSERT INTO t SELECT 1;", true),
        ] {
            assert_eq!(
                Script::split(buffer).is_incomplete(),
                incomplete,
                "{buffer}"
            );
        }
    }
}
