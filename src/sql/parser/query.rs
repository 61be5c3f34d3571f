//! Queries: `WITH`, set operations, `SELECT`, `VALUES`, `ORDER BY` and `LIMIT`.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, LimitClause, Offset, OffsetRows, OrderBy, OrderByExpr,
    OrderByKind, OrderByOptions, Parens, Query, Select, SelectFlavor, SelectItem, SetExpr,
    SetOperator, SetQuantifier, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
    Values, WildcardAdditionalOptions, With,
};
use sqlparser::tokenizer::{Token as AstToken, TokenWithSpan};

use super::super::lexer::{Token, TokenKind};
use super::super::span;
use super::FlinkParser;
use crate::error::Result;

/// The words a query starts with, a parenthesis aside.
const QUERY_STARTS: &[&str] = &["SELECT", "WITH", "VALUES"];

/// The words that go on with a query after one of its operands.
const QUERY_CONTINUES: &[&str] = &[
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
];

impl FlinkParser<'_> {
    /// A whole query.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.nested(|p| {
            let with = p.with_clause()?;
            let body = p.set_expr()?;
            p.query_end(with, body)
        })
    }

    /// Whether a query starts here, not inside a parenthesis.
    pub(super) fn peek_query(&self) -> bool {
        QUERY_STARTS.iter().any(|k| self.peek_word(k))
            || self.peek_word("TABLE") && self.is_name_at(1)
    }

    /// Whether a parenthesised query goes on as the operand of a larger one.
    pub(super) fn peek_query_continues(&self) -> bool {
        QUERY_CONTINUES.iter().any(|k| self.peek_word(k))
    }

    /// The rest of a query whose first operand was read in parentheses.
    pub(super) fn query_from(&mut self, first: Query) -> Result<Query> {
        let left = SetExpr::Query(Box::new(first));
        let body = self.set_operations(left, 0)?;
        self.query_end(None, body)
    }

    fn with_clause(&mut self) -> Result<Option<With>> {
        let token = attached(self.peek());
        if !self.take_word("WITH") {
            return Ok(None);
        }
        let recursive = self.take_word("RECURSIVE");
        let cte_tables = self.comma_separated(|p| {
            let name = p.ident()?;
            let columns = if p.peek_symbol("(") {
                p.parenthesized(Self::ident)?
            } else {
                Vec::new()
            };
            p.expect_word("AS")?;
            p.expect_symbol("(")?;
            let query = Box::new(p.query()?);
            let closing_paren_token = attached(p.peek());
            p.expect_symbol(")")?;
            Ok(Cte {
                alias: table_alias(name, columns),
                query,
                from: None,
                materialized: None,
                closing_paren_token,
            })
        })?;
        Ok(Some(With {
            with_token: token,
            recursive,
            cte_tables,
        }))
    }

    fn set_expr(&mut self) -> Result<SetExpr> {
        let left = self.set_operand()?;
        self.set_operations(left, 0)
    }

    /// `INTERSECT` binds tighter than `UNION` and `EXCEPT`; both go from left to right.
    fn set_operations(&mut self, mut left: SetExpr, least: u8) -> Result<SetExpr> {
        let mut chain = 0;
        loop {
            let (op, strength) = if self.peek_word("UNION") {
                (SetOperator::Union, 1)
            } else if self.peek_word("EXCEPT") {
                (SetOperator::Except, 1)
            } else if self.peek_word("INTERSECT") {
                (SetOperator::Intersect, 2)
            } else {
                return Ok(left);
            };
            if strength <= least {
                return Ok(left);
            }
            chain += 1;
            self.check_chain(chain)?;
            self.skip(1);
            let set_quantifier = match self.take_one_of(&["ALL", "DISTINCT"]) {
                Some("ALL") => SetQuantifier::All,
                Some(_) => SetQuantifier::Distinct,
                None => SetQuantifier::None,
            };
            let operand = self.set_operand()?;
            let right = self.set_operations(operand, strength)?;
            left = SetExpr::SetOperation {
                left: Box::new(left),
                op,
                set_quantifier,
                right: Box::new(right),
            };
        }
    }

    fn set_operand(&mut self) -> Result<SetExpr> {
        if self.peek_word("SELECT") {
            return Ok(SetExpr::Select(Box::new(self.select()?)));
        }
        if self.peek_word("VALUES") {
            return self.values();
        }
        if self.peek_word("TABLE") {
            self.skip(1);
            return self.explicit_table();
        }
        if self.take_symbol("(") {
            let query = self.query()?;
            self.expect_symbol(")")?;
            return Ok(SetExpr::Query(Box::new(query)));
        }
        Err(self.unexpected_of("a query", QUERY_STARTS))
    }

    /// What follows `TABLE`: a name, read as `SELECT * FROM name`.
    pub(super) fn explicit_table(&mut self) -> Result<SetExpr> {
        let start = self.here();
        let name = self.object_name()?;
        let with_hints = self.table_hints()?;
        let relation = TableFactor::Table {
            name,
            alias: None,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        };
        let mut select = empty_select(token_at(AstToken::make_keyword("SELECT"), start));
        select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        select.from = vec![TableWithJoins {
            relation,
            joins: Vec::new(),
        }];
        Ok(SetExpr::Select(Box::new(select)))
    }

    fn values(&mut self) -> Result<SetExpr> {
        self.expect_word("VALUES")?;
        let rows = self.comma_separated(|p| {
            let opening_token = attached(p.peek());
            if p.peek_word("ROW") && p.peek_at(1).is_symbol("(") {
                p.skip(1);
            }
            let content = if p.peek_symbol("(") {
                p.value_row()?
            } else {
                vec![p.expr()?]
            };
            Ok(Parens {
                opening_token,
                content,
                closing_token: AttachedToken::empty(),
            })
        })?;
        Ok(SetExpr::Values(Values {
            explicit_row: false,
            value_keyword: false,
            rows,
        }))
    }

    /// A row of `VALUES` that starts with a parenthesis, which may also start an expression: `(1) + 2`.
    fn value_row(&mut self) -> Result<Vec<Expr>> {
        match self.expr()? {
            Expr::Tuple(exprs) => Ok(exprs),
            Expr::Nested(expr) => Ok(vec![*expr]),
            expr => Ok(vec![expr]),
        }
    }

    fn query_end(&mut self, with: Option<With>, body: SetExpr) -> Result<Query> {
        let order_by = if self.take_words(&["ORDER", "BY"]) {
            let keys = self.comma_separated(Self::order_key)?;
            Some(OrderBy {
                kind: OrderByKind::Expressions(keys),
                interpolate: None,
            })
        } else {
            None
        };
        let mut query = plain_query(body);
        query.with = with;
        query.order_by = order_by;
        query.limit_clause = self.limit_clause()?;
        Ok(query)
    }

    /// `[LIMIT n] [OFFSET m [ROWS]]` or `[OFFSET m [ROWS]] [FETCH FIRST n ROWS ONLY]`
    fn limit_clause(&mut self) -> Result<Option<LimitClause>> {
        let mut limit = None;
        let mut offset = None;
        let limited = self.take_word("LIMIT");
        if limited && !self.take_word("ALL") {
            limit = Some(self.row_count()?);
        }
        if self.take_word("OFFSET") {
            let value = self.row_count()?;
            let rows = match self.take_one_of(&["ROWS", "ROW"]) {
                Some("ROWS") => OffsetRows::Rows,
                Some(_) => OffsetRows::Row,
                None => OffsetRows::None,
            };
            offset = Some(Offset { value, rows });
        }
        if !limited && offset.is_some() && self.peek_word("LIMIT") {
            return Err(self
                .unexpected("the end of the query")
                .hint("write LIMIT before OFFSET"));
        }
        if !limited && self.take_word("FETCH") {
            self.expect_one_of(&["FIRST", "NEXT"])?;
            limit = Some(self.row_count()?);
            self.expect_one_of(&["ROWS", "ROW"])?;
            self.expect_word("ONLY")?;
        }
        if limit.is_none() && offset.is_none() {
            return Ok(None);
        }
        Ok(Some(LimitClause::LimitOffset {
            limit,
            offset,
            limit_by: Vec::new(),
        }))
    }

    fn row_count(&mut self) -> Result<Expr> {
        if self.peek().kind != TokenKind::Number {
            return Err(self.unexpected("a number of rows"));
        }
        self.number_literal()
    }

    /// `expr [ASC | DESC] [NULLS FIRST | NULLS LAST]`
    pub(super) fn order_key(&mut self) -> Result<OrderByExpr> {
        let expr = self.expr()?;
        let asc = self.take_one_of(&["ASC", "DESC"]).map(|k| k == "ASC");
        let nulls_first = if self.take_word("NULLS") {
            Some(self.expect_one_of(&["FIRST", "LAST"])? == "FIRST")
        } else {
            None
        };
        Ok(OrderByExpr {
            expr,
            options: OrderByOptions { asc, nulls_first },
            with_fill: None,
        })
    }
}

/// A query that is only a body.
pub(super) fn plain_query(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

pub(super) fn empty_select(select_token: AttachedToken) -> Select {
    Select {
        select_token,
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: Vec::new(),
        exclude: None,
        into: None,
        from: Vec::new(),
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: true,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

/// `AS name (columns)`
pub(super) fn table_alias(name: Ident, columns: Vec<Ident>) -> TableAlias {
    TableAlias {
        explicit: true,
        name,
        columns: columns
            .into_iter()
            .map(|name| TableAliasColumnDef {
                name,
                data_type: None,
            })
            .collect(),
        at: None,
    }
}

/// A token of the AST that only tells its place.
pub(super) fn attached(token: &Token) -> AttachedToken {
    let kind = match token.kind {
        TokenKind::Word => AstToken::make_keyword(&token.text),
        _ => AstToken::LParen,
    };
    token_at(kind, token.span)
}

fn token_at(token: AstToken, at: crate::error::Span) -> AttachedToken {
    AttachedToken(TokenWithSpan::new(token, span::to_ast(at)))
}
