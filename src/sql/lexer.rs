//! Text to tokens with byte offsets, by Flink's lexical rules: backticks quote names, single quotes
//! strings, double quotes nothing; `--`, `//` and `/* */` are comments, `/*+ */` is a hint.
//!
//! [`Scanner`] walks any text and never fails: an unterminated piece becomes a token that says so.
//! The statement splitter uses it as it is, the parser through [`tokenize`], which turns such tokens
//! into errors.

use super::escapes::{decode_c_escapes, decode_unicode_escapes};
use crate::error::{Error, Result, Span};

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in backticks.
    Quoted,
    /// A number, as written.
    Number,
    /// A character string of any form, decoded.
    String,
    /// `X'..'`, its digits.
    Hex,
    /// Punctuation.
    Symbol,
    /// The inside of `/*+ .. */`.
    Hint,
    /// A comment; only the scanner gives it out.
    Comment,
    /// A string in double quotes, which the dialect has not.
    DoubleQuoted,
    /// A string, quoted name or comment whose end is missing; the text names the missing piece.
    Unterminated,
    /// A string literal that cannot be decoded; the text says why.
    Malformed,
    /// The end of the text.
    End,
}

/// A token: its kind, its decoded text and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) text: String,
    pub(super) span: Span,
}

impl Token {
    /// Whether this is the unquoted word `keyword`, whatever the case.
    pub(super) fn is_word(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether this is the punctuation `symbol`.
    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }
}

/// The punctuation of more than one character, longest first.
const LONG_SYMBOLS: &[&str] = &[
    "<=>", "=>", "<=", ">=", "<>", "!=", "||", "->", "..", "{-", "-}",
];

/// Walks a text token by token.
pub(super) struct Scanner<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// The next token; [`TokenKind::End`] for ever once the text is used up.
    pub(super) fn next_token(&mut self) -> Token {
        self.skip_while(char::is_whitespace);
        let start = self.position;
        let Some(first) = self.peek() else {
            return self.token(TokenKind::End, start, String::new());
        };
        match first {
            '\'' => self.string(start),
            '`' => self.quoted(start, '`', TokenKind::Quoted, "`"),
            '"' => self.quoted(start, '"', TokenKind::DoubleQuoted, "\""),
            '-' if self.rest().starts_with("--") => self.line_comment(start),
            '/' if self.rest().starts_with("//") => self.line_comment(start),
            '/' if self.rest().starts_with("/*") => self.block_comment(start),
            '.' if self.second().is_some_and(|c| c.is_ascii_digit()) => self.number(start),
            c if c.is_ascii_digit() => self.number(start),
            c if is_word_start(c) => self.word(start),
            _ => self.symbol(start),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn skip_while(&mut self, keep: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.position += rest.find(|c| !keep(c)).unwrap_or(rest.len());
    }

    fn token(&self, kind: TokenKind, start: usize, text: String) -> Token {
        Token {
            kind,
            text,
            span: Span::new(start, self.position),
        }
    }

    fn line_comment(&mut self, start: usize) -> Token {
        self.skip_while(|c| c != '\n');
        self.token(TokenKind::Comment, start, String::new())
    }

    fn block_comment(&mut self, start: usize) -> Token {
        let hint = self.rest().starts_with("/*+");
        let inside = start + if hint { 3 } else { 2 };
        let Some(length) = self.text[inside..].find("*/") else {
            self.position = self.text.len();
            return self.token(TokenKind::Unterminated, start, "*/".into());
        };
        self.position = inside + length + 2;
        if hint {
            let text = self.text[inside..inside + length].to_string();
            self.token(TokenKind::Hint, start, text)
        } else {
            self.token(TokenKind::Comment, start, String::new())
        }
    }

    /// Reads from the opening to the closing `quote`, a doubled one standing for itself.
    fn quoted(&mut self, start: usize, quote: char, kind: TokenKind, missing: &str) -> Token {
        self.position += quote.len_utf8();
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(at) = rest.find(quote) else {
                self.position = self.text.len();
                return self.token(TokenKind::Unterminated, start, missing.into());
            };
            text.push_str(&rest[..at]);
            self.position += at + quote.len_utf8();
            if self.peek() != Some(quote) {
                return self.token(kind, start, text);
            }
            text.push(quote);
            self.position += quote.len_utf8();
        }
    }

    fn string(&mut self, start: usize) -> Token {
        self.quoted(start, '\'', TokenKind::String, "'")
    }

    fn word(&mut self, start: usize) -> Token {
        self.skip_while(is_word_part);
        let word = &self.text[start..self.position];
        if self.rest().starts_with('\'') {
            match word {
                "e" | "E" => return self.escaped_string(start),
                "x" | "X" => return self.quoted(start, '\'', TokenKind::Hex, "'"),
                "n" | "N" => return self.string(start),
                _ if word.starts_with('_') => return self.string(start),
                _ => {}
            }
        }
        if matches!(word, "u" | "U") && self.rest().starts_with("&'") {
            self.position += 1;
            return self.unicode_string(start);
        }
        self.token(TokenKind::Word, start, word.to_string())
    }

    /// `E'..'`: backslash escapes of C.
    fn escaped_string(&mut self, start: usize) -> Token {
        self.position += 1;
        let mut raw = String::new();
        loop {
            match self.peek() {
                None => {
                    return self.token(TokenKind::Unterminated, start, "'".into());
                }
                Some('\\') => {
                    raw.push('\\');
                    self.position += 1;
                    if let Some(escaped) = self.peek() {
                        raw.push(escaped);
                        self.position += escaped.len_utf8();
                    }
                }
                Some('\'') => {
                    self.position += 1;
                    if self.peek() != Some('\'') {
                        break;
                    }
                    // kept as an escape, so that decoding sees one character
                    raw.push_str("\\'");
                    self.position += 1;
                }
                Some(c) => {
                    raw.push(c);
                    self.position += c.len_utf8();
                }
            }
        }
        match decode_c_escapes(&raw) {
            Ok(text) => self.token(TokenKind::String, start, text),
            Err(reason) => self.token(TokenKind::Malformed, start, reason),
        }
    }

    /// `U&'..' [UESCAPE 'c']`: `\XXXX` is a code unit.
    fn unicode_string(&mut self, start: usize) -> Token {
        let literal = self.quoted(start, '\'', TokenKind::String, "'");
        if literal.kind != TokenKind::String {
            return literal;
        }
        let mut escape = '\\';
        let mut ahead = Scanner {
            text: self.text,
            position: self.position,
        };
        if ahead.next_token().is_word("UESCAPE") {
            let character = ahead.next_token();
            if character.kind == TokenKind::String
                && let Some(c) = character.text.chars().next()
            {
                escape = c;
                self.position = ahead.position;
            }
        }
        match decode_unicode_escapes(&literal.text, escape) {
            Ok(text) => self.token(TokenKind::String, start, text),
            Err(reason) => self.token(TokenKind::Malformed, start, reason),
        }
    }

    fn number(&mut self, start: usize) -> Token {
        self.skip_while(|c| c.is_ascii_digit());
        if self.peek() == Some('.') && !self.rest().starts_with("..") {
            self.position += 1;
            self.skip_while(|c| c.is_ascii_digit());
        }
        if let Some('e' | 'E') = self.peek() {
            let exponent = self.rest()[1..].trim_start_matches(['+', '-']);
            let sign = self.rest().len() - 1 - exponent.len();
            if sign <= 1 && exponent.starts_with(|c: char| c.is_ascii_digit()) {
                self.position += 1 + sign;
                self.skip_while(|c| c.is_ascii_digit());
            }
        }
        let text = self.text[start..self.position].to_string();
        self.token(TokenKind::Number, start, text)
    }

    fn symbol(&mut self, start: usize) -> Token {
        let rest = self.rest();
        let symbol = LONG_SYMBOLS
            .iter()
            .find(|s| rest.starts_with(**s))
            .map_or_else(
                || rest.chars().next().map_or(0, char::len_utf8),
                |s| s.len(),
            );
        self.position += symbol;
        let text = self.text[start..self.position].to_string();
        self.token(TokenKind::Symbol, start, text)
    }
}

fn is_word_start(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

fn is_word_part(c: char) -> bool {
    is_word_start(c) || c.is_numeric()
}

/// The tokens of `text` without comments, an [`TokenKind::End`] last.
pub(super) fn tokenize(text: &str) -> Result<Vec<Token>> {
    let mut scanner = Scanner::new(text);
    let mut tokens = Vec::new();
    loop {
        let token = scanner.next_token();
        match token.kind {
            TokenKind::Comment => {}
            TokenKind::Unterminated => return Err(unterminated(&token)),
            TokenKind::Malformed => return Err(Error::parse(token.text).at(token.span)),
            TokenKind::Quoted if token.text.is_empty() => {
                return Err(Error::parse("A name in backticks is empty").at(token.span));
            }
            TokenKind::End => {
                tokens.push(token);
                return Ok(tokens);
            }
            _ => tokens.push(token),
        }
    }
}

fn unterminated(token: &Token) -> Error {
    let (what, hint) = match token.text.as_str() {
        "'" => (
            "The string that starts here never ends",
            "close it with ', and write ' inside a string as ''",
        ),
        "`" => (
            "The quoted name that starts here never ends",
            "close it with a backtick, and write a backtick inside a name as two",
        ),
        "*/" => (
            "The comment that starts here never ends",
            "close it with */",
        ),
        _ => (
            "Double quotes open nothing in Flink SQL",
            "strings are in single quotes, names in backticks",
        ),
    };
    let start = token.span.start;
    Error::parse(what)
        .at(Span::new(start, start + 1))
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<(TokenKind, String)> {
        let mut tokens: Vec<_> = tokenize(sql)
            .expect("tokens")
            .into_iter()
            .map(|t| (t.kind, t.text))
            .collect();
        tokens.pop();
        tokens
    }

    #[test]
    fn strings_of_every_form() {
        use TokenKind::{Hex, String};
        for (sql, kind, text) in [
            ("'it''s'", String, "it's"),
            (r"E'a\tb\\c\'d''e'", String, "a\tb\\c'd'e"),
            (r"e'\u00e4\xe4\344\U0001F600'", String, "äää😀"),
            (r"U&'\00e4\d83d\de00\\'", String, "ä😀\\"),
            (r"u&'!00e4' UESCAPE '!'", String, "ä"),
            ("X'4aFF'", Hex, "4aFF"),
            ("_UTF16'ä'", String, "ä"),
        ] {
            assert_eq!(texts(sql), vec![(kind, text.to_string())], "{sql}");
        }
    }

    #[test]
    fn comments_hints_and_numbers() {
        use TokenKind::{Hint, Number, Symbol, Word};
        let sql = "a--x\n//y\n/*z*//*+ H('k') */1.5e-3..5 .5=>1e";
        assert_eq!(
            texts(sql),
            [
                (Word, "a"),
                (Hint, " H('k') "),
                (Number, "1.5e-3"),
                (Symbol, ".."),
                (Number, "5"),
                (Number, ".5"),
                (Symbol, "=>"),
                (Number, "1"),
                (Word, "e"),
            ]
            .map(|(k, t)| (k, t.to_string()))
        );
    }

    #[test]
    fn unterminated_pieces_point_at_their_start() {
        for sql in ["  'abc", "  `abc", "  /* abc", "  E'a\\'"] {
            let error = tokenize(sql).expect_err(sql);
            assert_eq!(error.span(), Some(Span::new(2, 3)), "{sql}");
            assert!(error.hint_text().is_some());
        }
    }
}
