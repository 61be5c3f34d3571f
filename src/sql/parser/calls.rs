//! Function calls: the plain form, and the forms with keywords inside, which become plain calls whose
//! keywords are string literals.

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, NullTreatment,
    ObjectName, Value, ValueWithSpan, WindowSpec, WindowType,
};

use super::super::lexer::TokenKind;
use super::super::span;
use super::FlinkParser;
use super::build::{function, text};
use crate::error::Result;

/// The aggregates that take `ORDER BY` among their arguments.
const ORDERED_AGGREGATES: &[&str] = &["ARRAY_AGG", "ARRAY_CONCAT_AGG", "GROUP_CONCAT"];

impl FlinkParser<'_> {
    /// A call of the unqualified function that is next; `word` is its name in upper case.
    pub(super) fn call(&mut self, word: &str) -> Result<Expr> {
        let start = self.position;
        let mut name = self.any_word();
        if word == "CEILING" {
            name.value = "CEIL".into();
        }
        let name = ObjectName::from(vec![name]);
        let args = self.nested(|p| match word {
            "EXTRACT" => p.extract(),
            "CEIL" | "CEILING" | "FLOOR" => p.rounding(),
            "TIMESTAMPADD" | "TIMESTAMPDIFF" => p.unit_first(),
            "TRIM" => p.trim(),
            "POSITION" => p.position_in(),
            "OVERLAY" => p.overlay(),
            "SUBSTRING" => p.substring(),
            "JSON_EXISTS" => p.json_exists(),
            "JSON_VALUE" => p.json_value(),
            "JSON_QUERY" => p.json_query(),
            "JSON_OBJECT" | "JSON_OBJECTAGG" => p.json_object(),
            "JSON_ARRAY" => p.json_array(),
            "JSON_ARRAYAGG" => p.json_array_agg(),
            _ => Ok(None),
        })?;
        match args {
            Some(args) => {
                let mut function = function(name, args);
                if word == "JSON_ARRAYAGG" {
                    self.json_array_order(&mut function)?;
                }
                self.expect_symbol(")")?;
                if word == "JSON_ARRAYAGG" {
                    self.within_group(&mut function)?;
                }
                Ok(Expr::Function(function))
            }
            None => {
                self.position = start + 1;
                self.generic_call(name)
            }
        }
    }

    /// `([DISTINCT | ALL] arg, .. [ORDER BY ..]) [clauses]`
    pub(super) fn generic_call(&mut self, name: ObjectName) -> Result<Expr> {
        let ordered = ORDERED_AGGREGATES
            .iter()
            .any(|n| n.eq_ignore_ascii_case(&name.to_string()));
        let mut function = function(name, Vec::new());
        let list = self.nested(|p| p.argument_list(ordered))?;
        function.args = FunctionArguments::List(list);
        self.after_call(function)
    }

    fn argument_list(&mut self, ordered: bool) -> Result<FunctionArgumentList> {
        self.expect_symbol("(")?;
        let mut list = FunctionArgumentList {
            duplicate_treatment: None,
            args: Vec::new(),
            clauses: Vec::new(),
        };
        if self.take_symbol(")") {
            return Ok(list);
        }
        list.duplicate_treatment = match self.take_one_of(&["DISTINCT", "ALL"]) {
            Some("DISTINCT") => Some(DuplicateTreatment::Distinct),
            Some(_) => Some(DuplicateTreatment::All),
            None => None,
        };
        if self.take_symbol("*") {
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)];
        } else {
            list.args = self.comma_separated(Self::argument)?;
        }
        if ordered {
            if let Some(treatment) = self.null_treatment()? {
                let clause = FunctionArgumentClause::IgnoreOrRespectNulls(treatment);
                list.clauses.push(clause);
            }
            if self.take_words(&["ORDER", "BY"]) {
                let keys = self.comma_separated(Self::order_key)?;
                list.clauses.push(FunctionArgumentClause::OrderBy(keys));
            }
        }
        self.expect_symbol(")")?;
        Ok(list)
    }

    fn argument(&mut self) -> Result<FunctionArg> {
        let named = matches!(self.peek().kind, TokenKind::Word | TokenKind::Quoted)
            && self.peek_at(1).is_symbol("=>");
        if !named {
            return Ok(FunctionArg::Unnamed(FunctionArgExpr::Expr(
                self.argument_value()?,
            )));
        }
        let name = self.any_word();
        self.expect_symbol("=>")?;
        let arg = FunctionArgExpr::Expr(self.argument_value()?);
        Ok(FunctionArg::Named {
            name,
            arg,
            operator: FunctionArgOperator::RightArrow,
        })
    }

    fn argument_value(&mut self) -> Result<Expr> {
        if self.peek_word("TABLE") {
            let name = Ident::with_span(span::to_ast(self.here()), "TABLE");
            let query = self.table_query()?;
            let mut table = function(ObjectName::from(vec![name]), Vec::new());
            table.args = FunctionArguments::Subquery(Box::new(query));
            table.over = self.table_partitioning()?;
            return Ok(Expr::Function(table));
        }
        if self.peek_word("DEFAULT") {
            let name = self.any_word();
            let mut default = function(ObjectName::from(vec![name]), Vec::new());
            default.args = FunctionArguments::None;
            return Ok(Expr::Function(default));
        }
        self.expr()
    }

    /// `PARTITION BY (a, b) ORDER BY c` behind a table argument.
    fn table_partitioning(&mut self) -> Result<Option<WindowType>> {
        let mut partition_by = Vec::new();
        if self.take_words(&["PARTITION", "BY"]) {
            partition_by = match self.expr()? {
                Expr::Tuple(exprs) => exprs,
                Expr::Nested(expr) => vec![*expr],
                expr => vec![expr],
            };
        }
        let order_by = if self.take_words(&["ORDER", "BY"]) {
            if self.take_symbol("(") {
                let keys = self.comma_separated(Self::order_key)?;
                self.expect_symbol(")")?;
                keys
            } else {
                vec![self.order_key()?]
            }
        } else {
            Vec::new()
        };
        if partition_by.is_empty() && order_by.is_empty() {
            return Ok(None);
        }
        Ok(Some(WindowType::WindowSpec(WindowSpec {
            window_name: None,
            partition_by,
            order_by,
            window_frame: None,
        })))
    }

    fn null_treatment(&mut self) -> Result<Option<NullTreatment>> {
        if self.take_words(&["IGNORE", "NULLS"]) {
            return Ok(Some(NullTreatment::IgnoreNulls));
        }
        if self.take_words(&["RESPECT", "NULLS"]) {
            return Ok(Some(NullTreatment::RespectNulls));
        }
        Ok(None)
    }

    /// What may follow a call's parentheses.
    fn after_call(&mut self, mut function: Function) -> Result<Expr> {
        function.null_treatment = self.null_treatment()?;
        self.within_group(&mut function)?;
        if self.peek_word("FILTER") && self.peek_at(1).is_symbol("(") {
            self.skip(2);
            self.expect_word("WHERE")?;
            function.filter = Some(Box::new(self.expr()?));
            self.expect_symbol(")")?;
        }
        if self.take_word("OVER") {
            function.over = Some(if self.peek_symbol("(") {
                WindowType::WindowSpec(self.window_spec()?)
            } else {
                WindowType::NamedWindow(self.ident()?)
            });
        }
        Ok(Expr::Function(function))
    }

    /// `WITHIN GROUP (ORDER BY ..)`
    fn within_group(&mut self, function: &mut Function) -> Result<()> {
        if self.take_words(&["WITHIN", "GROUP"]) {
            self.expect_symbol("(")?;
            self.expect_words(&["ORDER", "BY"])?;
            function.within_group = self.comma_separated(Self::order_key)?;
            self.expect_symbol(")")?;
        }
        Ok(())
    }

    // -- forms with keywords; None gives the arguments back to the plain form --------------------

    /// `(DAY FROM x)`
    fn extract(&mut self) -> Result<Option<Vec<Expr>>> {
        if !self.peek_at(2).is_word("FROM") {
            return Ok(None);
        }
        self.expect_symbol("(")?;
        let unit = self.unit_literal()?;
        self.expect_word("FROM")?;
        Ok(Some(vec![unit, self.expr()?]))
    }

    /// A unit of time as a string literal, at its place.
    fn unit_literal(&mut self) -> Result<Expr> {
        if self.peek().kind != TokenKind::Word {
            return Err(self.unexpected("a unit of time"));
        }
        let token = self.advance();
        let upper = token.text.to_ascii_uppercase();
        let unit = upper.strip_prefix("SQL_TSI_").unwrap_or(&upper);
        let value = Value::SingleQuotedString(unit.to_string());
        Ok(Expr::Value(ValueWithSpan {
            value,
            span: span::to_ast(token.span),
        }))
    }

    /// `(x TO DAY)`
    fn rounding(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let mut args = vec![self.expr()?];
        if self.take_word("TO") {
            args.push(self.unit_literal()?);
        }
        Ok(Some(args))
    }

    /// `(DAY, ..)`
    fn unit_first(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let mut args = vec![self.unit_literal()?];
        for _ in 0..2 {
            self.expect_symbol(",")?;
            args.push(self.expr()?);
        }
        Ok(Some(args))
    }

    /// `([BOTH | LEADING | TRAILING] [chars] FROM s)`, `(s)`
    fn trim(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let side = self.take_one_of(&["BOTH", "LEADING", "TRAILING"]);
        let space = text(" ");
        let which = text(side.unwrap_or("BOTH"));
        if side.is_some() && self.take_word("FROM") {
            return Ok(Some(vec![which, space, self.expr()?]));
        }
        let first = self.expr()?;
        if self.take_word("FROM") {
            return Ok(Some(vec![which, first, self.expr()?]));
        }
        if side.is_some() {
            return Err(self.unexpected_of("FROM", &["FROM"]));
        }
        Ok(Some(vec![which, space, first]))
    }

    /// `(a IN b)`
    fn position_in(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let part = self.operand_before_in()?;
        self.expect_word("IN")?;
        let mut args = vec![part, self.expr()?];
        if self.take_word("FROM") {
            args.push(self.expr()?);
        }
        Ok(Some(args))
    }

    /// `(s PLACING r FROM start [FOR length])`
    fn overlay(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let mut args = vec![self.expr()?];
        for keyword in ["PLACING", "FROM"] {
            self.expect_word(keyword)?;
            args.push(self.expr()?);
        }
        if self.take_word("FOR") {
            args.push(self.expr()?);
        }
        Ok(Some(args))
    }

    /// `(s FROM start [FOR length])`, or the same with commas.
    fn substring(&mut self) -> Result<Option<Vec<Expr>>> {
        self.expect_symbol("(")?;
        let mut args = vec![self.expr()?];
        for keyword in ["FROM", "FOR"] {
            if !self.take_word(keyword) && !self.take_symbol(",") {
                break;
            }
            args.push(self.expr()?);
        }
        Ok(Some(args))
    }
}
