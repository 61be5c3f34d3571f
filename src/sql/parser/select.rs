//! `SELECT`: its items and clauses, grouping sets and windows.

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, NamedWindowDefinition, NamedWindowExpr, ObjectName, OptimizerHint,
    OptimizerHintStyle, Select, SelectItem, SelectItemQualifiedWildcardKind,
    WildcardAdditionalOptions, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
};

use super::super::hints;
use super::super::lexer::TokenKind;
use super::FlinkParser;
use super::query::{attached, empty_select};
use crate::error::{Error, Result};

impl FlinkParser<'_> {
    pub(super) fn select(&mut self) -> Result<Select> {
        let mut select = empty_select(attached(self.peek()));
        self.expect_word("SELECT")?;
        select.optimizer_hints = self.select_hints()?;
        select.distinct = match self.take_one_of(&["DISTINCT", "ALL"]) {
            Some("DISTINCT") => Some(Distinct::Distinct),
            _ => None,
        };
        select.projection = self.comma_separated(Self::select_item)?;
        if self.take_word("FROM") {
            select.from = self.comma_separated(Self::table_with_joins)?;
        }
        if select.from.is_empty() && self.peek_from_clause() {
            return Err(self
                .unexpected("FROM or the end of the query")
                .hint("a SELECT without FROM has one row and no further clause"));
        }
        if self.take_word("WHERE") {
            select.selection = Some(self.expr()?);
        }
        if self.take_words(&["GROUP", "BY"]) {
            let start = self.here();
            let distinct = self.take_one_of(&["DISTINCT", "ALL"]) == Some("DISTINCT");
            let keys = self.comma_separated(Self::grouping_element)?;
            if distinct && keys.iter().any(is_grouping_set) {
                let reason = "GROUP BY DISTINCT of grouping sets is not supported";
                return Err(Error::plan(reason).at(self.since(start)));
            }
            select.group_by = GroupByExpr::Expressions(keys, Vec::new());
        }
        if self.take_word("HAVING") {
            select.having = Some(self.expr()?);
        }
        if self.take_word("WINDOW") {
            select.named_window = self.comma_separated(|p| {
                let name = p.ident()?;
                p.expect_word("AS")?;
                let window = NamedWindowExpr::WindowSpec(p.window_spec()?);
                Ok(NamedWindowDefinition(name, window))
            })?;
        }
        if self.take_word("QUALIFY") {
            select.qualify = Some(self.expr()?);
        }
        Ok(select)
    }

    /// Whether a clause is next that needs a `FROM` before it.
    fn peek_from_clause(&self) -> bool {
        ["WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY"]
            .iter()
            .any(|k| self.peek_word(k))
    }

    fn select_hints(&mut self) -> Result<Vec<OptimizerHint>> {
        let mut all = Vec::new();
        while self.peek().kind == TokenKind::Hint {
            let token = self.advance();
            hints::parse(&token)?;
            all.push(OptimizerHint {
                prefix: String::new(),
                text: token.text,
                style: OptimizerHintStyle::MultiLine,
            });
        }
        Ok(all)
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        if self.peek_symbol("*") {
            let wildcard_token = attached(self.peek());
            self.skip(1);
            return Ok(SelectItem::Wildcard(WildcardAdditionalOptions {
                wildcard_token,
                ..Default::default()
            }));
        }
        if let Some(item) = self.qualified_wildcard()? {
            return Ok(item);
        }
        let expr = self.expr()?;
        if self.take_word("AS") || self.peek_is_name() {
            if self.peek().kind == TokenKind::String {
                return Err(self
                    .unexpected("an alias")
                    .hint("an alias is a name: it is not in single quotes"));
            }
            let alias = self.ident()?;
            return Ok(SelectItem::ExprWithAlias { expr, alias });
        }
        Ok(SelectItem::UnnamedExpr(expr))
    }

    /// `t.*`, `catalog.database.t.*`
    fn qualified_wildcard(&mut self) -> Result<Option<SelectItem>> {
        let mut length = 0;
        while self.is_name_at(length) && self.peek_at(length + 1).is_symbol(".") {
            length += 2;
        }
        if length == 0 || !self.peek_at(length).is_symbol("*") {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for _ in 0..length / 2 {
            parts.push(self.ident()?);
            self.expect_symbol(".")?;
        }
        let wildcard_token = attached(self.peek());
        self.skip(1);
        Ok(Some(SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(parts)),
            WildcardAdditionalOptions {
                wildcard_token,
                ..Default::default()
            },
        )))
    }

    fn grouping_element(&mut self) -> Result<Expr> {
        if self.take_words(&["GROUPING", "SETS"]) {
            return Ok(Expr::GroupingSets(self.grouping_sets()?));
        }
        if self.peek_at(1).is_symbol("(") {
            if self.take_word("ROLLUP") {
                return Ok(Expr::Rollup(self.grouping_sets()?));
            }
            if self.take_word("CUBE") {
                return Ok(Expr::Cube(self.grouping_sets()?));
            }
        }
        if self.peek_symbol("(") && self.peek_at(1).is_symbol(")") {
            self.skip(2);
            return Ok(Expr::Tuple(Vec::new()));
        }
        self.expr()
    }

    /// `((a, b), c, ROLLUP (d), ())`
    fn grouping_sets(&mut self) -> Result<Vec<Vec<Expr>>> {
        self.nested(|p| {
            p.parenthesized(|p| {
                Ok(match p.grouping_element()? {
                    Expr::Tuple(exprs) => exprs,
                    Expr::Nested(expr) => vec![*expr],
                    expr => vec![expr],
                })
            })
        })
    }

    /// `([name] [PARTITION BY ..] [ORDER BY ..] [ROWS | RANGE ..])`
    pub(super) fn window_spec(&mut self) -> Result<WindowSpec> {
        self.expect_symbol("(")?;
        let window_name = if self.peek_is_name() {
            Some(self.ident()?)
        } else {
            None
        };
        let partition_by = if self.take_words(&["PARTITION", "BY"]) {
            self.comma_separated(Self::expr)?
        } else {
            Vec::new()
        };
        let order_by = if self.take_words(&["ORDER", "BY"]) {
            self.comma_separated(Self::order_key)?
        } else {
            Vec::new()
        };
        let window_frame = self.window_frame()?;
        self.expect_symbol(")")?;
        Ok(WindowSpec {
            window_name,
            partition_by,
            order_by,
            window_frame,
        })
    }

    fn window_frame(&mut self) -> Result<Option<WindowFrame>> {
        let units = match self.take_one_of(&["ROWS", "RANGE"]) {
            None => return Ok(None),
            Some("ROWS") => WindowFrameUnits::Rows,
            Some(_) => WindowFrameUnits::Range,
        };
        let (start_bound, end_bound) = if self.take_word("BETWEEN") {
            let start = self.frame_bound()?;
            self.expect_word("AND")?;
            (start, Some(self.frame_bound()?))
        } else {
            (self.frame_bound()?, None)
        };
        Ok(Some(WindowFrame {
            units,
            start_bound,
            end_bound,
        }))
    }

    fn frame_bound(&mut self) -> Result<WindowFrameBound> {
        if self.take_words(&["CURRENT", "ROW"]) {
            return Ok(WindowFrameBound::CurrentRow);
        }
        let distance = if self.take_word("UNBOUNDED") {
            None
        } else {
            Some(Box::new(self.expr()?))
        };
        Ok(match self.expect_one_of(&["PRECEDING", "FOLLOWING"])? {
            "PRECEDING" => WindowFrameBound::Preceding(distance),
            _ => WindowFrameBound::Following(distance),
        })
    }
}

fn is_grouping_set(element: &Expr) -> bool {
    matches!(
        element,
        Expr::GroupingSets(_) | Expr::Rollup(_) | Expr::Cube(_)
    )
}
