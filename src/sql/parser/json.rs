//! The SQL/JSON functions.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, ValueWithSpan,
};

use super::super::span;
use super::FlinkParser;
use super::build::text;
use crate::error::Result;
use crate::types::TypeKind;

impl FlinkParser<'_> {
    /// `(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])`
    pub(super) fn json_exists(&mut self) -> Result<Option<Vec<Expr>>> {
        let mut args = self.json_and_path()?;
        let behavior = self.take_one_of(&["TRUE", "FALSE", "UNKNOWN", "ERROR"]);
        if behavior.is_some() {
            self.expect_words(&["ON", "ERROR"])?;
        }
        args.push(self.marker(behavior, "FALSE"));
        Ok(Some(args))
    }

    /// `(json, path`
    fn json_and_path(&mut self) -> Result<Vec<Expr>> {
        self.expect_symbol("(")?;
        let json = self.expr()?;
        self.take_words(&["FORMAT", "JSON"]);
        self.expect_symbol(",")?;
        Ok(vec![json, self.expr()?])
    }

    /// `RETURNING type`, as the type's text.
    fn returning(&mut self) -> Result<Option<Expr>> {
        if !self.take_word("RETURNING") {
            return Ok(None);
        }
        let data_type = self.plain_type()?;
        let name = match &data_type.kind {
            TypeKind::Int => "INTEGER".to_string(),
            kind => kind.to_string(),
        };
        Ok(Some(self.marker(Some(&name), "")))
    }

    /// The marker of what was just read, at its place; `default`, without one, if it was left out.
    fn marker(&self, written: Option<&str>, default: &str) -> Expr {
        let Some(written) = written else {
            return text(default);
        };
        Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(written.to_string()),
            span: span::to_ast(self.last_token()),
        })
    }

    /// `(json, path [RETURNING type] [.. ON EMPTY] [.. ON ERROR])`
    pub(super) fn json_value(&mut self) -> Result<Option<Vec<Expr>>> {
        let mut args = self.json_and_path()?;
        args.push(self.returning()?.unwrap_or_else(|| text("STRING")));
        let null = || Expr::Value(Value::Null.with_empty_span());
        let mut empty = (text("NULL"), null());
        let mut error = (text("NULL"), null());
        while let Some(word) = self.take_one_of(&["NULL", "ERROR", "DEFAULT"]) {
            let default = if word == "DEFAULT" {
                self.expr()?
            } else {
                null()
            };
            self.expect_word("ON")?;
            let behavior = self.marker(Some(word), "");
            match self.expect_one_of(&["EMPTY", "ERROR"])? {
                "EMPTY" => empty = (behavior, default),
                _ => error = (behavior, default),
            }
        }
        args.extend([empty.0, empty.1, error.0, error.1]);
        Ok(Some(args))
    }

    /// `(json, path [RETURNING type] [wrapper] [.. ON EMPTY] [.. ON ERROR])`
    pub(super) fn json_query(&mut self) -> Result<Option<Vec<Expr>>> {
        let mut args = self.json_and_path()?;
        args.push(self.returning()?.unwrap_or_else(|| text("STRING")));
        let wrapper = match self.take_one_of(&["WITHOUT", "WITH"]) {
            None => "WITHOUT",
            Some("WITHOUT") => {
                self.take_word("ARRAY");
                self.expect_word("WRAPPER")?;
                "WITHOUT"
            }
            Some(_) => {
                let wrapper = self
                    .take_one_of(&["CONDITIONAL", "UNCONDITIONAL"])
                    .unwrap_or("UNCONDITIONAL");
                self.take_word("ARRAY");
                self.expect_word("WRAPPER")?;
                wrapper
            }
        };
        args.push(text(wrapper));
        let (mut empty, mut error) = ("NULL", "NULL");
        while let Some(word) = self.take_one_of(&["NULL", "ERROR", "EMPTY"]) {
            let behavior = match word {
                "EMPTY" if self.take_word("ARRAY") => "EMPTY ARRAY",
                "EMPTY" => {
                    self.expect_word("OBJECT")?;
                    "EMPTY OBJECT"
                }
                other => other,
            };
            self.expect_word("ON")?;
            match self.expect_one_of(&["EMPTY", "ERROR"])? {
                "EMPTY" => empty = behavior,
                _ => error = behavior,
            }
        }
        args.extend([text(empty), text(error)]);
        Ok(Some(args))
    }

    /// `([KEY] k VALUE v, .. [{NULL | ABSENT} ON NULL])`, `k: v` alike.
    pub(super) fn json_object(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let mut pairs = Vec::new();
        while !self.peek_symbol(")") && !self.peek_null_clause() {
            if !pairs.is_empty() {
                self.expect_symbol(",")?;
            }
            // KEY may also be a column's name
            if self.peek_word("KEY") && !self.peek_at(1).is_word("VALUE") {
                let next = self.peek_at(1);
                if !(next.is_symbol(":") || next.is_symbol(",") || next.is_symbol(".")) {
                    self.skip(1);
                }
            }
            pairs.push(self.expr()?);
            if !self.take_symbol(":") {
                self.expect_word("VALUE")?;
            }
            pairs.push(self.expr()?);
            self.take_words(&["FORMAT", "JSON"]);
        }
        pairs.insert(0, text(self.null_clause("NULL")?));
        Ok(Some(pairs))
    }

    /// `(v [ORDER BY ..] [{NULL | ABSENT} ON NULL])`; [`Self::json_array_order`] reads what follows
    /// the value.
    pub(super) fn json_array_agg(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let value = self.expr()?;
        self.take_words(&["FORMAT", "JSON"]);
        Ok(Some(vec![text("ABSENT"), value]))
    }

    pub(super) fn json_array_order(&mut self, function: &mut Function) -> Result<()> {
        if self.take_words(&["ORDER", "BY"]) {
            function.within_group = self.comma_separated(Self::order_key)?;
        }
        let nulls = self.null_clause("ABSENT")?;
        if let FunctionArguments::List(list) = &mut function.args
            && let Some(first) = list.args.first_mut()
        {
            *first = FunctionArg::Unnamed(FunctionArgExpr::Expr(text(nulls)));
        }
        Ok(())
    }

    /// `(v, .. [{NULL | ABSENT} ON NULL])`
    pub(super) fn json_array(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let mut values = Vec::new();
        while !self.peek_symbol(")") && !self.peek_null_clause() {
            if !values.is_empty() {
                self.expect_symbol(",")?;
            }
            values.push(self.expr()?);
            self.take_words(&["FORMAT", "JSON"]);
        }
        values.insert(0, text(self.null_clause("ABSENT")?));
        Ok(Some(values))
    }

    fn peek_null_clause(&self) -> bool {
        self.peek_words(&["NULL", "ON", "NULL"]) || self.peek_words(&["ABSENT", "ON", "NULL"])
    }

    fn null_clause(&mut self, default: &'static str) -> Result<&'static str> {
        let Some(word) = self.take_one_of(&["NULL", "ABSENT"]) else {
            return Ok(default);
        };
        self.expect_words(&["ON", "NULL"])?;
        Ok(word)
    }
}
