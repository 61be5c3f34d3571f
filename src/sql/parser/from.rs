//! What stands in `FROM`: tables, subqueries, table functions and joins.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    TableAlias, TableFactor, TableVersion, TableWithJoins,
};

use super::super::hints;
use super::super::lexer::TokenKind;
use super::FlinkParser;
use super::query::table_alias;
use crate::error::{Error, Result};

impl FlinkParser<'_> {
    /// `factor [join ..]`
    pub(super) fn table_with_joins(&mut self) -> Result<TableWithJoins> {
        self.nested(|p| {
            let relation = p.table_factor()?;
            p.joins(relation)
        })
    }

    fn joins(&mut self, relation: TableFactor) -> Result<TableWithJoins> {
        let mut joins = Vec::new();
        while let Some(join) = self.join()? {
            joins.push(join);
            self.check_chain(joins.len())?;
        }
        Ok(TableWithJoins { relation, joins })
    }

    fn join(&mut self) -> Result<Option<Join>> {
        if self.take_words(&["CROSS", "JOIN"]) {
            return Ok(Some(Join {
                relation: self.table_factor()?,
                global: false,
                join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
            }));
        }
        let natural = self.take_word("NATURAL");
        type Make = fn(JoinConstraint) -> JoinOperator;
        let make: Make = match self.peek().text.to_ascii_uppercase().as_str() {
            _ if self.peek().kind != TokenKind::Word => return self.no_join(natural),
            "JOIN" => JoinOperator::Join,
            "INNER" => JoinOperator::Inner,
            "LEFT" => JoinOperator::Left,
            "RIGHT" => JoinOperator::Right,
            "FULL" => JoinOperator::FullOuter,
            _ => return self.no_join(natural),
        };
        if !self.take_word("JOIN") {
            let outer = !self.peek_word("INNER");
            self.skip(1);
            if outer {
                self.take_word("OUTER");
            }
            self.expect_word("JOIN")?;
        }
        let relation = self.table_factor()?;
        let constraint = if natural {
            JoinConstraint::Natural
        } else if self.take_word("ON") {
            JoinConstraint::On(self.expr()?)
        } else if self.take_word("USING") {
            let columns = self.parenthesized(Self::ident)?;
            let names = columns.into_iter().map(|c| ObjectName::from(vec![c]));
            JoinConstraint::Using(names.collect())
        } else {
            return Err(self
                .error(
                    "INNER, LEFT, RIGHT or FULL join requires a condition (NATURAL keyword or ON or \
                     USING clause)",
                    self.last_token(),
                )
                .hint("all pairs of rows are a CROSS JOIN"));
        };
        Ok(Some(Join {
            relation,
            global: false,
            join_operator: make(constraint),
        }))
    }

    fn no_join(&self, natural: bool) -> Result<Option<Join>> {
        if natural {
            return Err(self.unexpected_of("JOIN", &["JOIN"]));
        }
        Ok(None)
    }

    fn table_factor(&mut self) -> Result<TableFactor> {
        self.nested(|p| {
            let mut factor = p.table_primary()?;
            if p.take_word("MATCH_RECOGNIZE") {
                factor = p.match_recognize(factor)?;
            }
            if let Some(word) = ["TABLESAMPLE", "PIVOT", "UNPIVOT"]
                .into_iter()
                .find(|w| p.peek_word(w))
            {
                let reason = format!("{word} is not supported on streams");
                return Err(Error::plan(reason).at(p.here()));
            }
            let start = p.here();
            if let Some(alias) = p.optional_alias()? {
                if matches!(factor, TableFactor::NestedJoin { .. }) {
                    let reason = "Join expression encountered in illegal context";
                    return Err(p
                        .error(reason, p.since(start))
                        .hint("a join in parentheses has no alias; name its tables"));
                }
                set_alias(&mut factor, alias);
            }
            Ok(factor)
        })
    }

    fn table_primary(&mut self) -> Result<TableFactor> {
        let lateral = self.take_word("LATERAL");
        if self.take_word("UNNEST") {
            return self.unnest();
        }
        if self.peek_word("TABLE") && self.peek_at(1).is_symbol("(") {
            self.skip(2);
            let factor = self.table_function(lateral)?;
            self.expect_symbol(")")?;
            return Ok(factor);
        }
        if self.take_symbol("(") {
            return self.parenthesized_factor(lateral);
        }
        if self.peek().kind == TokenKind::End {
            return Err(self.unexpected("a table"));
        }
        if lateral {
            return Err(self.unexpected_of("TABLE, UNNEST or a query", &["TABLE", "UNNEST"]));
        }
        if self.peek_call() {
            return self.table_function(false);
        }
        let name = self.object_name()?;
        let with_hints = self.table_hints()?;
        let version = if self.take_words(&["FOR", "SYSTEM_TIME", "AS", "OF"]) {
            Some(TableVersion::ForSystemTimeAsOf(self.expr()?))
        } else {
            None
        };
        Ok(TableFactor::Table {
            name,
            alias: None,
            args: None,
            with_hints,
            version,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        })
    }

    /// Whether a dotted name with a parenthesis behind it is next.
    fn peek_call(&self) -> bool {
        let mut at = 0;
        while self.is_name_at(at) && self.peek_at(at + 1).is_symbol(".") {
            at += 2;
        }
        self.is_name_at(at) && self.peek_at(at + 1).is_symbol("(")
    }

    /// A call in `FROM`: a table function over the rows to its left, or a function of tables.
    fn table_function(&mut self, lateral: bool) -> Result<TableFactor> {
        let start = self.here();
        let expr = self.expr()?;
        let Expr::Function(function) = expr else {
            return Err(self.error("A function call is expected here", self.since(start)));
        };
        if !lateral {
            return Ok(TableFactor::TableFunction {
                expr: Expr::Function(function),
                alias: None,
            });
        }
        // the call stays whole: a name and arguments would have to be put together again
        let name = function.name.clone();
        let call = FunctionArgExpr::Expr(Expr::Function(function));
        Ok(TableFactor::Function {
            lateral: true,
            name,
            args: vec![FunctionArg::Unnamed(call)],
            with_ordinality: false,
            alias: None,
        })
    }

    fn unnest(&mut self) -> Result<TableFactor> {
        let array_exprs = self.parenthesized(Self::expr)?;
        let with_ordinality = self.take_words(&["WITH", "ORDINALITY"]);
        Ok(TableFactor::UNNEST {
            alias: None,
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality,
        })
    }

    /// What follows a parenthesis: a query, or tables with joins.
    fn parenthesized_factor(&mut self, lateral: bool) -> Result<TableFactor> {
        if self.peek_query() {
            let subquery = Box::new(self.query()?);
            self.expect_symbol(")")?;
            return Ok(derived(lateral, subquery));
        }
        let start = self.here();
        let tables = self.table_with_joins()?;
        let bare = tables.joins.is_empty();
        match tables.relation {
            TableFactor::Derived {
                subquery,
                alias: None,
                ..
            } if bare && self.peek_query_continues() => {
                let query = self.query_from(*subquery)?;
                self.expect_symbol(")")?;
                Ok(derived(lateral, Box::new(query)))
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias: None,
                ..
            } if bare => {
                self.expect_symbol(")")?;
                Ok(derived(lateral, subquery))
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } if bare => {
                self.expect_symbol(")")?;
                Ok(TableFactor::NestedJoin {
                    table_with_joins,
                    alias: None,
                })
            }
            _ if bare => Err(self.error("Expected query or join", self.since(start))),
            relation => {
                self.expect_symbol(")")?;
                Ok(TableFactor::NestedJoin {
                    table_with_joins: Box::new(TableWithJoins {
                        relation,
                        joins: tables.joins,
                    }),
                    alias: None,
                })
            }
        }
    }

    /// `[AS] name [(columns)]`
    pub(super) fn optional_alias(&mut self) -> Result<Option<TableAlias>> {
        let explicit = self.take_word("AS");
        if !explicit && !self.peek_is_name() {
            return Ok(None);
        }
        let name = self.ident()?;
        let columns: Vec<Ident> = if self.peek_symbol("(") {
            self.parenthesized(Self::ident)?
        } else {
            Vec::new()
        };
        let mut alias = table_alias(name, columns);
        alias.explicit = explicit;
        Ok(Some(alias))
    }

    /// `/*+ OPTIONS(..) */` behind a table, each hint as a call.
    pub(super) fn table_hints(&mut self) -> Result<Vec<Expr>> {
        let mut calls = Vec::new();
        while self.peek().kind == TokenKind::Hint {
            let token = self.advance();
            calls.extend(hints::parse(&token)?.iter().map(hints::Hint::to_expr));
        }
        Ok(calls)
    }
}

fn derived(lateral: bool, subquery: Box<sqlparser::ast::Query>) -> TableFactor {
    TableFactor::Derived {
        lateral,
        subquery,
        alias: None,
        sample: None,
    }
}

/// Names `factor`.
fn set_alias(factor: &mut TableFactor, new: TableAlias) {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::MatchRecognize { alias, .. } => *alias = Some(new),
        _ => {}
    }
}
