//! Operands: literals, names, parentheses, `CASE`, `CAST` and constructors.

use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType as AstType, Expr, FunctionArguments, ObjectName,
    Query, SetExpr, TimezoneInfo, TypedString, Value, ValueWithSpan,
};

use super::super::lexer::TokenKind;
use super::super::{keywords, span};
use super::FlinkParser;
use super::build::{ast_type_named, call, call_of, cast, function, text, upper, value};
use super::query::{attached, plain_query};
use crate::error::Result;

impl FlinkParser<'_> {
    pub(super) fn primary(&mut self) -> Result<Expr> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number => self.number_literal(),
            TokenKind::String => {
                let start = self.here();
                let text = self.string_pieces()?;
                let at = self.since(start);
                Ok(value(Value::SingleQuotedString(text), at))
            }
            TokenKind::Hex => self.hex_literal(),
            TokenKind::Symbol if token.text == "(" => self.parenthesized_expr(),
            TokenKind::Symbol if token.text == "{" => self.escape(),
            TokenKind::Word => self.primary_word(),
            TokenKind::Quoted => self.name_or_call(),
            _ => Err(self.unexpected("an expression")),
        }
    }

    pub(super) fn number_literal(&mut self) -> Result<Expr> {
        let token = self.advance();
        Ok(value(Value::Number(token.text, false), token.span))
    }

    fn hex_literal(&mut self) -> Result<Expr> {
        let token = self.advance();
        let digits = token.text.chars().all(|c| c.is_ascii_hexdigit());
        if !digits {
            let reason = format!("'{}' holds more than hexadecimal digits", token.text);
            return Err(self.error(reason, token.span));
        }
        if !token.text.len().is_multiple_of(2) {
            let reason = "Binary literal string must contain an even number of hexits";
            return Err(self.error(reason, token.span));
        }
        Ok(value(Value::HexStringLiteral(token.text), token.span))
    }

    /// `(expr)`, `(a, b)`, `(query)`.
    pub(super) fn parenthesized_expr(&mut self) -> Result<Expr> {
        self.nested(|p| {
            p.expect_symbol("(")?;
            if p.peek_query() {
                let query = p.query()?;
                p.expect_symbol(")")?;
                return Ok(Expr::Subquery(Box::new(query)));
            }
            let mut exprs = p.comma_separated(Self::expr)?;
            if exprs.len() > 1 {
                p.expect_symbol(")")?;
                return Ok(Expr::Tuple(exprs));
            }
            let Some(only) = exprs.pop() else {
                return Err(p.unexpected("an expression"));
            };
            if let Expr::Subquery(first) = only {
                let query = if p.peek_query_continues() {
                    p.query_from(*first)?
                } else {
                    *first
                };
                p.expect_symbol(")")?;
                return Ok(Expr::Subquery(Box::new(query)));
            }
            p.expect_symbol(")")?;
            match only {
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::Minus,
                    right,
                } if p.peek_unit() => {
                    let start = p.here();
                    p.interval_qualifier()?;
                    let unit = p.text_of(p.since(start)).to_ascii_uppercase();
                    Ok(call("MINUS_DATE", vec![*left, *right, text(&unit)]))
                }
                only => Ok(Expr::Nested(Box::new(only))),
            }
        })
    }

    fn primary_word(&mut self) -> Result<Expr> {
        let token = self.peek();
        let at = token.span;
        let word = token.text.to_ascii_uppercase();
        let next = self.peek_at(1);
        let (call_next, string_next) = (next.is_symbol("("), next.kind == TokenKind::String);
        let bracket_next = next.is_symbol("[");
        match word.as_str() {
            "NULL" => self.literal(Value::Null),
            "TRUE" => self.literal(Value::Boolean(true)),
            "FALSE" => self.literal(Value::Boolean(false)),
            "UNKNOWN" => {
                self.skip(1);
                let null = value(Value::Null, at);
                Ok(cast(CastKind::Cast, null, ast_type_named("BOOLEAN")))
            }
            "CASE" => self.case(),
            "CAST" if call_next => self.cast(CastKind::Cast),
            "TRY_CAST" if call_next => self.cast(CastKind::TryCast),
            "EXISTS" if call_next => {
                self.skip(2);
                let subquery = Box::new(self.query()?);
                self.expect_symbol(")")?;
                Ok(Expr::Exists {
                    subquery,
                    negated: false,
                })
            }
            "INTERVAL" => self.interval(),
            "DATE" if string_next => self.typed_literal(AstType::Date),
            "TIME" if string_next => self.typed_literal(AstType::Time(None, TimezoneInfo::None)),
            "TIMESTAMP" if self.peek_local_timestamp() => {
                self.skip(4);
                self.typed_literal(AstType::Timestamp(None, TimezoneInfo::Tz))
            }
            "TIMESTAMP" if string_next => {
                self.typed_literal(AstType::Timestamp(None, TimezoneInfo::None))
            }
            "ARRAY" | "MAP" | "MULTISET" if bracket_next => self.collection(),
            "ARRAY" | "MAP" | "MULTISET" if call_next => self.collection_of_query(),
            "ROW" if call_next => self.row(),
            "RUNNING" | "FINAL" if keywords::is_reserved(&word) || self.is_name_at(1) => {
                self.running(&word)
            }
            _ => self.name_or_call(),
        }
    }

    /// `TIMESTAMP WITH LOCAL TIME ZONE '..'`
    fn peek_local_timestamp(&self) -> bool {
        self.peek_words(&["TIMESTAMP", "WITH", "LOCAL", "TIME", "ZONE"])
            && self.peek_at(5).kind == TokenKind::String
    }

    fn literal(&mut self, literal: Value) -> Result<Expr> {
        let at = self.advance().span;
        Ok(value(literal, at))
    }

    fn typed_literal(&mut self, data_type: AstType) -> Result<Expr> {
        self.skip(1);
        let start = self.here();
        let text = self.advance().text;
        let value = ValueWithSpan {
            value: Value::SingleQuotedString(text),
            span: span::to_ast(self.since(start)),
        };
        Ok(Expr::TypedString(TypedString {
            data_type,
            value,
            uses_odbc_syntax: false,
        }))
    }

    /// `{d '..'}`, `{t '..'}`, `{ts '..'}`, `{fn name(..)}`: the forms of ODBC.
    fn escape(&mut self) -> Result<Expr> {
        let form = self.peek_at(1).text.to_ascii_uppercase();
        let string_next = self.peek_at(2).kind == TokenKind::String;
        let expr = match form.as_str() {
            "FN" => {
                self.skip(2);
                self.nested(Self::escaped_call)?
            }
            "D" | "T" | "TS" if string_next => {
                self.skip(1);
                self.typed_literal(match form.as_str() {
                    "D" => AstType::Date,
                    "T" => AstType::Time(None, TimezoneInfo::None),
                    _ => AstType::Timestamp(None, TimezoneInfo::None),
                })?
            }
            _ => return Err(self.unexpected("an expression")),
        };
        self.expect_symbol("}")?;
        Ok(expr)
    }

    fn escaped_call(&mut self) -> Result<Expr> {
        let at = self.peek().span;
        let name = self.peek().text.to_ascii_uppercase();
        let renamed = match name.as_str() {
            "UCASE" => "UPPER",
            "LCASE" => "LOWER",
            "LENGTH" => "CHAR_LENGTH",
            "LOG" => "LN",
            _ if keywords::ODBC_FUNCTIONS.contains(&name.as_str()) => return self.name_or_call(),
            _ => {
                let reason = format!("Function '{{fn {name}}}' is not defined");
                return Err(self.error(reason, at));
            }
        };
        self.skip(1);
        self.expect_symbol("(")?;
        let args = self.comma_separated(Self::expr)?;
        self.expect_symbol(")")?;
        Ok(call(renamed, args))
    }

    fn case(&mut self) -> Result<Expr> {
        self.nested(|p| {
            let case_token = attached(p.peek());
            p.skip(1);
            let operand = if p.peek_word("WHEN") {
                None
            } else {
                Some(Box::new(p.expr()?))
            };
            let mut conditions = Vec::new();
            while p.take_word("WHEN") {
                let condition = p.case_condition(operand.as_deref())?;
                p.expect_word("THEN")?;
                let result = p.expr()?;
                conditions.push(CaseWhen { condition, result });
            }
            if conditions.is_empty() {
                return Err(p.unexpected_of("WHEN", &["WHEN"]));
            }
            let else_result = if p.take_word("ELSE") {
                Some(Box::new(p.expr()?))
            } else {
                None
            };
            let end_token = attached(p.peek());
            p.expect_word("END")?;
            Ok(Expr::Case {
                case_token,
                end_token,
                operand,
                conditions,
                else_result,
            })
        })
    }

    /// One condition, or with an operand several values: `WHEN 1, 2 THEN`, kept as a tuple.
    fn case_condition(&mut self, operand: Option<&Expr>) -> Result<Expr> {
        let start = self.here();
        let mut values = self.comma_separated(Self::expr)?;
        match values.pop() {
            Some(only) if values.is_empty() => Ok(only),
            Some(last) if operand.is_some() => {
                values.push(last);
                Ok(Expr::Tuple(values))
            }
            _ => {
                let reason = "Several values after WHEN need an operand after CASE";
                Err(self.error(reason, self.since(start)))
            }
        }
    }

    fn cast(&mut self, kind: CastKind) -> Result<Expr> {
        self.skip(2);
        let expr = self.expr()?;
        self.expect_word("AS")?;
        let data_type = self.ast_type()?;
        self.expect_symbol(")")?;
        Ok(cast(kind, expr, data_type))
    }

    /// `ARRAY[..]`, `MAP[..]`, `MULTISET[..]`
    fn collection(&mut self) -> Result<Expr> {
        let name = self.any_word();
        self.expect_symbol("[")?;
        let elements = if self.peek_symbol("]") {
            Vec::new()
        } else {
            self.comma_separated(Self::expr)?
        };
        self.expect_symbol("]")?;
        Ok(call_of(upper(name), elements))
    }

    /// `ARRAY(query)`, `MAP(query)`, `MULTISET(query)`
    fn collection_of_query(&mut self) -> Result<Expr> {
        let name = upper(self.any_word());
        self.expect_symbol("(")?;
        let query = self.query()?;
        self.expect_symbol(")")?;
        let mut function = function(ObjectName::from(vec![name]), Vec::new());
        function.args = FunctionArguments::Subquery(Box::new(query));
        Ok(Expr::Function(function))
    }

    fn row(&mut self) -> Result<Expr> {
        let name = upper(self.any_word());
        self.expect_symbol("(")?;
        let fields = if self.peek_symbol(")") {
            Vec::new()
        } else {
            self.comma_separated(Self::expr)?
        };
        self.expect_symbol(")")?;
        Ok(call_of(name, fields))
    }

    /// `RUNNING LAST(a.x)`, `FINAL LAST(a.x)`
    fn running(&mut self, word: &str) -> Result<Expr> {
        self.skip(1);
        let inner = self.name_or_call()?;
        let name = if word == "FINAL" { "FINAL" } else { "RUNNING" };
        Ok(call(name, vec![inner]))
    }

    /// A column, a dotted path, or a call.
    fn name_or_call(&mut self) -> Result<Expr> {
        let quoted = self.peek().kind == TokenKind::Quoted;
        let word = self.peek().text.to_ascii_uppercase();
        let call_next = self.peek_at(1).is_symbol("(");
        let alone = !call_next && !self.peek_at(1).is_symbol(".");
        let constant = word == "PI" && alone;
        if !quoted && (keywords::NILADIC.contains(&word.as_str()) && !call_next || constant) {
            let name = self.any_word();
            let mut function = function(ObjectName::from(vec![name]), Vec::new());
            function.args = FunctionArguments::None;
            return Ok(Expr::Function(function));
        }
        if call_next && !quoted {
            if !self.peek_is_name() && !keywords::may_be_called(&word) {
                return Err(self.unexpected("an expression"));
            }
            return self.call(&word);
        }
        if !self.peek_is_name() {
            return Err(self.unexpected("an expression"));
        }
        let mut parts = vec![self.ident()?];
        while self.peek_symbol(".") && self.is_name_at(1) {
            self.skip(1);
            parts.push(self.ident()?);
        }
        if self.peek_symbol("(") {
            return self.generic_call(ObjectName::from(parts));
        }
        Ok(match parts.pop() {
            Some(only) if parts.is_empty() => Expr::Identifier(only),
            Some(last) => {
                parts.push(last);
                Expr::CompoundIdentifier(parts)
            }
            None => return Err(self.unexpected("an expression")),
        })
    }

    /// `TABLE t` as an argument: the table's rows.
    pub(super) fn table_query(&mut self) -> Result<Query> {
        self.expect_word("TABLE")?;
        let body: SetExpr = self.explicit_table()?;
        Ok(plain_query(body))
    }
}
