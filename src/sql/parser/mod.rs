//! The parser of Flink SQL: recursive descent over the tokens of one statement.
//!
//! The grammar is Flink's own (Calcite's with Flink's statements), not the union of dialects that
//! `sqlparser`'s parser accepts; the result is `sqlparser`'s AST for queries and expressions and
//! [`ast`](super::ast) for the rest. This file owns the cursor, its errors and the way in; each
//! sibling owns a part of the grammar.

mod alter;
mod build;
mod calls;
mod ddl;
mod errors;
mod expr;
mod from;
mod interval;
mod json;
mod match_recognize;
mod operand;
mod query;
mod select;
mod show;
mod statement;
mod table;
mod types;

pub use match_recognize::{Quantifier, quantified, within};

#[cfg(test)]
mod tests;

use sqlparser::ast::{Expr, Ident, ObjectName, Query};

use super::ast::{SqlExpr, SqlOption, SqlQuery, Statement};
use super::keywords;
use super::lexer::{Token, TokenKind, tokenize};
use crate::error::{Error, Result, Span};
use crate::types::DataType;

/// How deep parentheses, subqueries and operators may nest.
const MAX_DEPTH: usize = 400;

/// The stack that one level may need; a thread with less left gets [`STACK_GROWTH`] more.
const STACK_RESERVE: usize = 128 * 1024;

/// By how much the stack grows.
const STACK_GROWTH: usize = 2 * 1024 * 1024;

/// How many operators one expression may chain, as in `a + b + c`.
const MAX_CHAIN: usize = 1000;

/// A cursor over the tokens of one text.
pub struct FlinkParser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    position: usize,
    depth: usize,
}

impl<'a> FlinkParser<'a> {
    /// A parser of `text`.
    pub fn new(text: &'a str) -> Result<Self> {
        Ok(Self {
            text,
            tokens: tokenize(text)?,
            position: 0,
            depth: 0,
        })
    }

    /// Parses one statement; a `;` may end it.
    pub fn parse_statement(text: &'a str) -> Result<Statement> {
        Self::whole(text, Self::statement)
    }

    /// Parses a query.
    pub fn parse_query(text: &'a str) -> Result<Query> {
        Self::whole(text, Self::query)
    }

    /// Parses an expression.
    pub fn parse_expr(text: &'a str) -> Result<Expr> {
        Self::whole(text, Self::expr)
    }

    /// Parses a data type.
    pub fn parse_type(text: &'a str) -> Result<DataType> {
        Self::whole(text, Self::data_type)
    }

    fn whole<T>(text: &'a str, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut parser = Self::new(text)?;
        let parsed = rule(&mut parser)?;
        parser.take_symbol(";");
        if parser.peek().kind != TokenKind::End {
            return Err(parser.unexpected("the end of the statement"));
        }
        Ok(parsed)
    }

    // -- the cursor ----------------------------------------------------------------------------

    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    /// The token `ahead` of the next; the end, past it.
    fn peek_at(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.position + ahead).min(last)]
    }

    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        if self.position < self.tokens.len() - 1 {
            self.position += 1;
        }
        token
    }

    fn skip(&mut self, count: usize) {
        self.position = (self.position + count).min(self.tokens.len() - 1);
    }

    /// The place of the next token.
    fn here(&self) -> Span {
        self.peek().span
    }

    /// The place of the last token taken.
    fn last_token(&self) -> Span {
        self.tokens[self.position.saturating_sub(1)].span
    }

    /// From the start of `from` to the end of the last token taken.
    fn since(&self, from: Span) -> Span {
        let end = match self.position {
            0 => from.end,
            next => self.tokens[next - 1].span.end,
        };
        Span::new(from.start, end.max(from.start))
    }

    fn text_of(&self, span: Span) -> String {
        self.text
            .get(span.start..span.end)
            .unwrap_or("")
            .to_string()
    }

    fn peek_word(&self, keyword: &str) -> bool {
        self.peek().is_word(keyword)
    }

    fn peek_words(&self, keywords: &[&str]) -> bool {
        keywords
            .iter()
            .enumerate()
            .all(|(i, k)| self.peek_at(i).is_word(k))
    }

    fn peek_symbol(&self, symbol: &str) -> bool {
        self.peek().is_symbol(symbol)
    }

    fn take_word(&mut self, keyword: &str) -> bool {
        let found = self.peek_word(keyword);
        if found {
            self.skip(1);
        }
        found
    }

    /// Takes all of `keywords` or none.
    fn take_words(&mut self, keywords: &[&str]) -> bool {
        let found = self.peek_words(keywords);
        if found {
            self.skip(keywords.len());
        }
        found
    }

    /// Takes the one of `keywords` that is next.
    fn take_one_of(&mut self, keywords: &[&'static str]) -> Option<&'static str> {
        let found = keywords.iter().copied().find(|k| self.peek_word(k))?;
        self.skip(1);
        Some(found)
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.peek_symbol(symbol);
        if found {
            self.skip(1);
        }
        found
    }

    fn expect_word(&mut self, keyword: &str) -> Result<()> {
        if self.take_word(keyword) {
            return Ok(());
        }
        Err(self.unexpected_of(keyword, &[keyword]))
    }

    fn expect_words(&mut self, keywords: &[&str]) -> Result<()> {
        keywords.iter().try_for_each(|k| self.expect_word(k))
    }

    fn expect_one_of(&mut self, keywords: &[&'static str]) -> Result<&'static str> {
        match self.take_one_of(keywords) {
            Some(keyword) => Ok(keyword),
            None => Err(self.unexpected_of(&keywords.join(", "), keywords)),
        }
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("'{symbol}'")))
    }

    /// `rule, rule, ..`
    fn comma_separated<T>(
        &mut self,
        mut rule: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = vec![rule(self)?];
        while self.take_symbol(",") {
            all.push(rule(self)?);
        }
        Ok(all)
    }

    /// `(rule, rule, ..)`
    fn parenthesized<T>(&mut self, rule: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_symbol("(")?;
        let all = self.comma_separated(rule)?;
        self.expect_symbol(")")?;
        Ok(all)
    }

    /// Runs `rule` one level deeper, so that no input overflows the stack.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::parse(format!(
                "The statement nests deeper than {MAX_DEPTH} levels"
            ))
            .at(self.here()));
        }
        self.depth += 1;
        let result = stacker::maybe_grow(STACK_RESERVE, STACK_GROWTH, || rule(self));
        self.depth -= 1;
        result
    }

    // -- names and literals --------------------------------------------------------------------

    /// A name: in backticks, or a word that is not reserved.
    fn ident(&mut self) -> Result<Ident> {
        if self.peek_is_name() {
            return Ok(self.any_word());
        }
        Err(self.unexpected("a name"))
    }

    fn peek_is_name(&self) -> bool {
        self.is_name_at(0)
    }

    fn is_name_at(&self, ahead: usize) -> bool {
        let token = self.peek_at(ahead);
        match token.kind {
            TokenKind::Quoted => true,
            TokenKind::Word => !keywords::is_reserved(&token.text.to_ascii_uppercase()),
            _ => false,
        }
    }

    /// The next word as a name, reserved or not.
    fn any_word(&mut self) -> Ident {
        let token = self.advance();
        Ident {
            quote_style: (token.kind == TokenKind::Quoted).then_some('`'),
            span: super::span::to_ast(token.span),
            value: token.text,
        }
    }

    /// `[[catalog.]database.]name`
    fn object_name(&mut self) -> Result<ObjectName> {
        let mut parts = vec![self.ident()?];
        while self.take_symbol(".") {
            parts.push(self.ident()?);
        }
        Ok(ObjectName::from(parts))
    }

    fn string_literal(&mut self, what: &str) -> Result<String> {
        if self.peek().kind == TokenKind::String {
            return self.string_pieces();
        }
        Err(self.unexpected(what))
    }

    /// The string that is next, with those on the lines that follow: SQL joins them.
    fn string_pieces(&mut self) -> Result<String> {
        let mut piece = self.advance();
        let mut text = std::mem::take(&mut piece.text);
        while self.peek().kind == TokenKind::String {
            let next = self.advance();
            let between = Span::new(piece.span.end, next.span.start);
            if !self.text_of(between).contains('\n') {
                let reason = "String literal continued on same line";
                return Err(self
                    .error(reason, next.span)
                    .hint("join texts with ||, or write '' for a quote inside a string"));
            }
            text.push_str(&next.text);
            piece = next;
        }
        Ok(text)
    }

    fn integer<N: std::str::FromStr>(&mut self, what: &str) -> Result<N> {
        let token = self.peek();
        if token.kind == TokenKind::Number
            && let Ok(n) = token.text.parse()
        {
            self.skip(1);
            return Ok(n);
        }
        Err(self.unexpected(what))
    }

    /// `('k' = 'v', ..)`, possibly empty.
    fn option_list(&mut self) -> Result<Vec<SqlOption>> {
        self.expect_symbol("(")?;
        if self.take_symbol(")") {
            return Ok(Vec::new());
        }
        let options = self.comma_separated(Self::option)?;
        self.expect_symbol(")")?;
        Ok(options)
    }

    fn option(&mut self) -> Result<SqlOption> {
        let start = self.here();
        let key = self.string_literal("an option's key in single quotes")?;
        self.expect_symbol("=")?;
        let value = self.string_literal("an option's value in single quotes")?;
        Ok(SqlOption {
            key,
            value,
            span: self.since(start),
        })
    }

    /// `('k', ..)`, possibly empty.
    fn key_list(&mut self) -> Result<Vec<String>> {
        self.expect_symbol("(")?;
        if self.take_symbol(")") {
            return Ok(Vec::new());
        }
        let keys =
            self.comma_separated(|p| p.string_literal("an option's key in single quotes"))?;
        self.expect_symbol(")")?;
        Ok(keys)
    }

    fn comment(&mut self) -> Result<Option<String>> {
        if !self.take_word("COMMENT") {
            return Ok(None);
        }
        Ok(Some(self.string_literal("a comment in single quotes")?))
    }

    fn sql_expr(&mut self) -> Result<SqlExpr> {
        let start = self.here();
        let expr = self.expr()?;
        let span = self.since(start);
        Ok(SqlExpr {
            expr,
            text: self.text_of(span),
            span,
        })
    }

    fn sql_query(&mut self) -> Result<SqlQuery> {
        let start = self.here();
        let query = Box::new(self.query()?);
        let span = self.since(start);
        Ok(SqlQuery {
            query,
            text: self.text_of(span),
            span,
        })
    }
}

/// A call of `name`, for hints.
pub(crate) fn expr_call(name: Ident, args: Vec<Expr>) -> Expr {
    build::call_of(name, args)
}
