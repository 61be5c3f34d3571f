//! Queries, a clause a line.

use sqlparser::ast::{
    Distinct, Expr, FunctionArg, FunctionArgExpr, GroupByExpr, JoinConstraint, JoinOperator,
    LimitClause, NamedWindowExpr, ObjectName, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, TableAlias, TableFactor,
    TableVersion, TableWithJoins,
};

use super::super::hints;
use super::{Writer, quoted_name, string_literal};

impl Writer {
    pub(super) fn query(&mut self, query: &Query) {
        if let Some(with) = &query.with {
            self.push(if with.recursive {
                "WITH RECURSIVE "
            } else {
                "WITH "
            });
            self.list(&with.cte_tables, |w, cte| {
                w.ident(&cte.alias.name);
                w.alias_columns(&cte.alias);
                w.push(" AS (");
                w.query(&cte.query);
                w.push(")");
            });
            self.push(" ");
        }
        self.set_expr(&query.body);
        if let Some(order_by) = &query.order_by
            && let OrderByKind::Expressions(keys) = &order_by.kind
        {
            self.push("\nORDER BY ");
            self.order_keys(keys);
        }
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            if let Some(offset) = offset {
                self.push("\nOFFSET ");
                self.expr(&offset.value, 0, 0);
                self.push(" ROWS");
            }
            if let Some(limit) = limit {
                self.push("\nFETCH NEXT ");
                self.expr(limit, 0, 0);
                self.push(" ROWS ONLY");
            }
        }
    }

    fn set_expr(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => {
                let bare = query.with.is_none()
                    && query.order_by.is_none()
                    && query.limit_clause.is_none();
                match &*query.body {
                    inner @ (SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Query(_))
                        if bare =>
                    {
                        self.set_expr(inner);
                    }
                    _ => {
                        self.push("(");
                        self.query(query);
                        self.push(")");
                    }
                }
            }
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                self.set_expr(left);
                self.push(match op {
                    SetOperator::Union => "\nUNION",
                    SetOperator::Intersect => "\nINTERSECT",
                    _ => "\nEXCEPT",
                });
                if *set_quantifier == SetQuantifier::All {
                    self.push(" ALL");
                }
                self.push("\n");
                self.set_expr(right);
            }
            SetExpr::Values(values) => {
                self.push("VALUES ");
                for (i, row) in values.rows.iter().enumerate() {
                    self.push(if i > 0 { ",\nROW(" } else { "ROW(" });
                    self.exprs(&row.content);
                    self.push(")");
                }
            }
            other => self.push(&other.to_string()),
        }
    }

    fn select(&mut self, select: &Select) {
        self.push("SELECT");
        if let Ok(hints) = hints::of_select(select)
            && !hints.is_empty()
        {
            self.push("\n/*+ ");
            self.list(&hints, |w, hint| w.hint(hint));
            self.push(" */\n");
        } else {
            self.push(" ");
        }
        if matches!(select.distinct, Some(Distinct::Distinct)) {
            self.push("DISTINCT ");
        }
        self.list(&select.projection, Self::select_item);
        for (i, table) in select.from.iter().enumerate() {
            self.push(if i > 0 { ",\n" } else { "\nFROM " });
            self.table_with_joins(table);
        }
        if let Some(condition) = &select.selection {
            self.push("\nWHERE ");
            self.expr(condition, 0, 0);
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by
            && !keys.is_empty()
        {
            self.push("\nGROUP BY ");
            self.list(keys, Self::grouping_element);
        }
        if let Some(condition) = &select.having {
            self.push("\nHAVING ");
            self.expr(condition, 0, 0);
        }
        if !select.named_window.is_empty() {
            self.push("\nWINDOW ");
            self.list(&select.named_window, |w, window| {
                w.ident(&window.0);
                w.push(" AS ");
                match &window.1 {
                    NamedWindowExpr::WindowSpec(spec) => w.window_spec(spec),
                    NamedWindowExpr::NamedWindow(name) => w.ident(name),
                }
            });
        }
        if let Some(condition) = &select.qualify {
            self.push("\nQUALIFY ");
            self.expr(condition, 0, 0);
        }
    }

    fn hint(&mut self, hint: &hints::Hint) {
        self.push(&super::quoted(&hint.name));
        let options = hint
            .options
            .iter()
            .map(|(k, v)| format!("{} = {}", string_literal(k), string_literal(v)));
        let list = hint.list.iter().map(|name| super::quoted(name));
        let args: Vec<_> = options.chain(list).collect();
        if !args.is_empty() {
            self.push(&format!("({})", args.join(", ")));
        }
    }

    fn select_item(&mut self, item: &SelectItem) {
        match item {
            SelectItem::UnnamedExpr(expr) => self.expr(expr, 0, 0),
            SelectItem::ExprWithAlias { expr, alias } => {
                self.expr(expr, 0, 20);
                self.push(" AS ");
                self.ident(alias);
            }
            SelectItem::Wildcard(_) => self.push("*"),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                self.push(&quoted_name(name));
                self.push(".*");
            }
            other => self.push(&other.to_string()),
        }
    }

    fn grouping_element(&mut self, element: &Expr) {
        let (name, sets) = match element {
            Expr::GroupingSets(sets) => ("GROUPING SETS", sets),
            Expr::Rollup(sets) => ("ROLLUP", sets),
            Expr::Cube(sets) => ("CUBE", sets),
            Expr::Tuple(exprs) if exprs.is_empty() => return self.push("()"),
            Expr::Tuple(exprs) => {
                self.push("(");
                self.exprs(exprs);
                return self.push(")");
            }
            other => return self.expr(other, 0, 0),
        };
        self.push(name);
        self.push("(");
        self.list(sets, |w, set| match set.as_slice() {
            [only] => w.grouping_element(only),
            many => {
                w.push("(");
                w.exprs(many);
                w.push(")");
            }
        });
        self.push(")");
    }

    // -- FROM ------------------------------------------------------------------------------------

    fn table_with_joins(&mut self, table: &TableWithJoins) {
        self.table_factor(&table.relation);
        for join in &table.joins {
            let (word, constraint) = match &join.join_operator {
                JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => ("LEFT JOIN ", c),
                JoinOperator::Right(c) | JoinOperator::RightOuter(c) => ("RIGHT JOIN ", c),
                JoinOperator::FullOuter(c) => ("FULL JOIN ", c),
                JoinOperator::CrossJoin(c) => ("CROSS JOIN ", c),
                JoinOperator::Join(c) | JoinOperator::Inner(c) => ("INNER JOIN ", c),
                _ => ("JOIN ", &JoinConstraint::None),
            };
            self.push("\n");
            if matches!(constraint, JoinConstraint::Natural) {
                self.push("NATURAL ");
            }
            self.push(word);
            self.table_factor(&join.relation);
            match constraint {
                JoinConstraint::On(condition) => {
                    self.push(" ON ");
                    self.expr(condition, 0, 0);
                }
                JoinConstraint::Using(columns) => {
                    self.push(" USING (");
                    self.list(columns, |w, c| w.push(&quoted_name(c)));
                    self.push(")");
                }
                _ => {}
            }
        }
    }

    pub(super) fn table_factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table {
                name,
                alias,
                version,
                with_hints,
                ..
            } => {
                self.push(&quoted_name(name));
                let hints = hints::of_table(with_hints);
                if !hints.is_empty() {
                    self.push("\n/*+ ");
                    self.list(&hints, |w, hint| w.hint(hint));
                    self.push(" */");
                }
                if let Some(TableVersion::ForSystemTimeAsOf(time)) = version {
                    self.push(" FOR SYSTEM_TIME AS OF ");
                    self.expr(time, 0, 0);
                }
                self.alias(alias.as_ref());
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                self.push(if *lateral { "LATERAL (" } else { "(" });
                self.query(subquery);
                self.push(")");
                self.alias(alias.as_ref());
            }
            TableFactor::TableFunction { expr, alias } => {
                self.push("TABLE(");
                self.expr(expr, 0, 0);
                self.push(")");
                self.alias(alias.as_ref());
            }
            TableFactor::Function { args, alias, .. } => {
                self.push("LATERAL TABLE(");
                if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(call))] = args.as_slice() {
                    self.expr(call, 0, 0);
                }
                self.push(")");
                self.alias(alias.as_ref());
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_ordinality,
                ..
            } => {
                self.push("UNNEST(");
                self.exprs(array_exprs);
                self.push(")");
                if *with_ordinality {
                    self.push(" WITH ORDINALITY");
                }
                self.alias(alias.as_ref());
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => {
                self.push("(");
                self.table_with_joins(table_with_joins);
                self.push(")");
            }
            TableFactor::MatchRecognize { alias, .. } => {
                self.match_recognize(factor);
                self.alias(alias.as_ref());
            }
            other => self.push(&other.to_string()),
        }
    }

    fn alias(&mut self, alias: Option<&TableAlias>) {
        if let Some(alias) = alias {
            self.push(" AS ");
            self.ident(&alias.name);
            self.alias_columns(alias);
        }
    }

    fn alias_columns(&mut self, alias: &TableAlias) {
        if !alias.columns.is_empty() {
            self.push(" (");
            self.list(&alias.columns, |w, column| w.ident(&column.name));
            self.push(")");
        }
    }
}

/// The table that `query` is nothing but all rows of.
pub(super) fn table_of(query: &Query) -> Option<&ObjectName> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let plain = select.projection.len() == 1
        && matches!(select.projection[0], SelectItem::Wildcard(_))
        && select.selection.is_none();
    match select.from.as_slice() {
        [
            TableWithJoins {
                relation:
                    TableFactor::Table {
                        name,
                        alias: None,
                        with_hints,
                        ..
                    },
                joins,
            },
        ] if plain && joins.is_empty() && with_hints.is_empty() => Some(name),
        _ => None,
    }
}
