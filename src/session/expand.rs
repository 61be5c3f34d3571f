//! A view's query with all names in full, as Flink keeps it: `*` as the columns it stands for,
//! columns with their table, tables with catalog and database.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Cte, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, JoinConstraint,
    JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, VisitMut,
    VisitorMut, WildcardAdditionalOptions, With, helpers::attached_token::AttachedToken,
};

use super::Session;
use crate::plan::binder::object_parts;
use crate::sql::parser::expr_call;

impl Session {
    /// `query` with all names in full; `None` if that is not known to mean the same.
    pub(super) fn expand(&self, query: &Query) -> Option<Query> {
        let mut expanded = query.clone();
        let mut head = query.clone();
        head.order_by = None;
        head.limit_clause = None;
        let mut expander = Expander {
            session: self,
            head,
            ctes: Vec::new(),
            scopes: Vec::new(),
        };
        expander.query(&mut expanded)?;
        let plain = self.binder().bind(query).ok()?.schema;
        let full = self
            .binder()
            .without_positions()
            .bind(&expanded)
            .ok()?
            .schema;
        (plain == full).then_some(expanded)
    }
}

/// A table of a FROM clause.
struct Source {
    alias: String,
    columns: Vec<String>,
    factor: TableFactor,
}

struct Expander<'s> {
    session: &'s Session,
    /// A query to put a body and named queries into.
    head: Query,
    /// The named queries around.
    ctes: Vec<Cte>,
    /// Tables of the blocks around, innermost last.
    scopes: Vec<Vec<Source>>,
}

impl Expander<'_> {
    fn query(&mut self, query: &mut Query) -> Option<()> {
        let known = self.ctes.len();
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                self.query(&mut cte.query)?;
                self.ctes.push(cte.clone());
            }
        }
        let done = self.body(&mut query.body);
        let done = done.and_then(|()| self.order_from_outside(query));
        self.ctes.truncate(known);
        done
    }

    /// Flink orders and cuts a set operation as a table of a query around it.
    fn order_from_outside(&self, query: &mut Query) -> Option<()> {
        let bare =
            query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        let outermost = self.scopes.is_empty();
        let Some(first) = first_of_several(&query.body).filter(|_| outermost && !bare) else {
            return Some(());
        };
        let mut select = bare_select(first);
        let mut subquery = self.head.clone();
        subquery.with = query.with.take();
        subquery.body = query.body.clone();
        let alias = "EXPR$0";
        let table = TableFactor::Derived {
            lateral: false,
            subquery: Box::new(subquery),
            alias: Some(named(alias.into())),
            sample: None,
        };
        let columns = self.columns_of(&table, alias, &select)?.into_iter();
        select.projection = columns
            .map(|column| SelectItem::UnnamedExpr(column_of(alias, &column)))
            .collect();
        select.from = vec![TableWithJoins {
            relation: table,
            joins: Vec::new(),
        }];
        *query.body = SetExpr::Select(Box::new(select));
        Some(())
    }

    fn body(&mut self, body: &mut SetExpr) -> Option<()> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left)?;
                self.body(right)
            }
            SetExpr::Values(_) => Some(()),
            _ => None,
        }
    }

    fn select(&mut self, select: &mut Select) -> Option<()> {
        let template = select.clone();
        self.scopes.push(Vec::new());
        let done = self.select_parts(select, &template);
        self.scopes.pop();
        done
    }

    fn select_parts(&mut self, select: &mut Select, template: &Select) -> Option<()> {
        for table in &mut select.from {
            self.joined(table, template)?;
        }
        let mut items = Vec::new();
        for item in std::mem::take(&mut select.projection) {
            self.item(item, &mut items)?;
        }
        select.projection = items;
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            for key in keys {
                self.expr(key)?;
            }
        }
        let conditions = [
            &mut select.selection,
            &mut select.having,
            &mut select.qualify,
        ];
        for condition in conditions.into_iter().flatten() {
            self.expr(condition)?;
        }
        self.visit(&mut select.named_window)
    }

    /// One item, or the columns that `*` stands for.
    fn item(&mut self, item: SelectItem, items: &mut Vec<SelectItem>) -> Option<()> {
        let of = |source: &Source, items: &mut Vec<SelectItem>| {
            items.extend(
                source
                    .columns
                    .iter()
                    .map(|column| SelectItem::UnnamedExpr(column_of(&source.alias, column))),
            );
        };
        let scope = self.scopes.last()?;
        match item {
            SelectItem::Wildcard(_) => scope.iter().for_each(|source| of(source, items)),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let alias = object_parts(&name).ok()?.pop()?;
                of(scope.iter().find(|s| s.alias == alias)?, items);
            }
            SelectItem::UnnamedExpr(Expr::Identifier(name)) if self.is_common(&name.value) => {
                let scope = scope.iter().filter(|s| s.columns.contains(&name.value));
                let sides = scope.map(|source| column_of(&source.alias, &name.value));
                items.push(SelectItem::ExprWithAlias {
                    expr: expr_call(Ident::new("COALESCE"), sides.collect()),
                    alias: name,
                });
            }
            SelectItem::UnnamedExpr(mut expr) => {
                self.expr(&mut expr)?;
                items.push(SelectItem::UnnamedExpr(expr));
            }
            SelectItem::ExprWithAlias { mut expr, alias } => {
                self.expr(&mut expr)?;
                items.push(SelectItem::ExprWithAlias { expr, alias });
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether several tables of the block have a column called `name`: a common one of USING.
    fn is_common(&self, name: &str) -> bool {
        let sources = self.scopes.last().into_iter().flatten();
        let having = sources.filter(|source| source.columns.iter().any(|c| c == name));
        having.count() > 1
    }

    // -- FROM ------------------------------------------------------------------------------------

    fn joined(&mut self, table: &mut TableWithJoins, template: &Select) -> Option<()> {
        self.factor(&mut table.relation, template)?;
        for join in &mut table.joins {
            self.factor(&mut join.relation, template)?;
            let constraint = match &mut join.join_operator {
                JoinOperator::Left(c)
                | JoinOperator::LeftOuter(c)
                | JoinOperator::Right(c)
                | JoinOperator::RightOuter(c)
                | JoinOperator::FullOuter(c)
                | JoinOperator::CrossJoin(c)
                | JoinOperator::Join(c)
                | JoinOperator::Inner(c) => c,
                _ => return None,
            };
            match constraint {
                JoinConstraint::On(condition) => self.expr(condition)?,
                JoinConstraint::None | JoinConstraint::Using(_) | JoinConstraint::Natural => {}
            }
        }
        Some(())
    }

    fn factor(&mut self, factor: &mut TableFactor, template: &Select) -> Option<()> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            return self.joined(table_with_joins, template);
        }
        let default_alias = self.names_in(factor)?;
        let mut with_alias = factor.clone();
        let alias = alias_of(&mut with_alias)?.get_or_insert_with(|| named(default_alias));
        let alias = alias.name.value.clone();
        // Flink leaves a table with hints as it is
        if !matches!(factor, TableFactor::Table { with_hints, .. } if !with_hints.is_empty()) {
            *factor = with_alias.clone();
        }
        if let TableFactor::Table { version, .. } = &mut with_alias {
            *version = None;
        }
        let columns = self.columns_of(&with_alias, &alias, template)?;
        self.scopes.last_mut()?.push(Source {
            alias,
            columns,
            factor: with_alias,
        });
        Some(())
    }

    /// Puts the names inside a table in full; gives the alias that it has without one.
    fn names_in(&mut self, factor: &mut TableFactor) -> Option<String> {
        let position = self.scopes.last()?.len();
        match factor {
            TableFactor::Table { name, version, .. } => {
                let parts = object_parts(name).ok()?;
                let last = parts.last()?.clone();
                if !(parts.len() == 1 && self.ctes.iter().any(|c| c.alias.name.value == last)) {
                    let path = self.session.catalogs.resolve(&parts).ok()?;
                    let full = [path.catalog, path.database, path.name];
                    *name = ObjectName(
                        full.into_iter()
                            .map(|part| ObjectNamePart::Identifier(Ident::new(part)))
                            .collect(),
                    );
                }
                self.visit(version)?;
                Some(last)
            }
            TableFactor::Derived { subquery, .. } => {
                self.query(subquery)?;
                Some(format!("EXPR${position}"))
            }
            TableFactor::TableFunction { expr, .. } => {
                self.table_arguments(expr)?;
                Some(format!("EXPR${position}"))
            }
            TableFactor::UNNEST { array_exprs, .. } => {
                for expr in array_exprs {
                    self.expr(expr)?;
                }
                Some(format!("EXPR${position}"))
            }
            TableFactor::Function { args, .. } => {
                self.visit(args)?;
                Some(format!("EXPR${position}"))
            }
            _ => None,
        }
    }

    /// The tables among the arguments of a table function; descriptors stay.
    fn table_arguments(&mut self, call: &mut Expr) -> Option<()> {
        let Expr::Function(function) = call else {
            return Some(());
        };
        let FunctionArguments::List(list) = &mut function.args else {
            return Some(());
        };
        for arg in &mut list.args {
            let (FunctionArg::Unnamed(value) | FunctionArg::Named { arg: value, .. }) = arg else {
                continue;
            };
            let FunctionArgExpr::Expr(value) = value else {
                continue;
            };
            match value {
                Expr::Subquery(query) => self.query(query)?,
                Expr::Function(table) => {
                    let plain = table.over.is_none();
                    if let FunctionArguments::Subquery(query) = &mut table.args {
                        self.query(query)?;
                        if plain {
                            *value = Expr::Subquery(query.clone());
                        }
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Names of a table's columns. What refers to tables before it is read behind these.
    fn columns_of(
        &self,
        factor: &TableFactor,
        alias: &str,
        template: &Select,
    ) -> Option<Vec<String>> {
        let alone = self.columns_in(vec![factor.clone()], alias, template);
        alone.or_else(|| {
            let before = self.scopes.last()?.iter().map(|source| &source.factor);
            let all = before.chain([factor]).cloned().collect();
            self.columns_in(all, alias, template)
        })
    }

    /// Names of the columns of `SELECT alias.*` from `factors`.
    fn columns_in(
        &self,
        factors: Vec<TableFactor>,
        alias: &str,
        template: &Select,
    ) -> Option<Vec<String>> {
        let mut all = bare_select(template);
        all.projection = vec![SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![Ident::new(alias)])),
            WildcardAdditionalOptions::default(),
        )];
        all.from = factors
            .into_iter()
            .map(|relation| TableWithJoins {
                relation,
                joins: Vec::new(),
            })
            .collect();
        let mut query = self.head.clone();
        query.with = (!self.ctes.is_empty()).then(|| With {
            with_token: AttachedToken::empty(),
            recursive: false,
            cte_tables: self.ctes.clone(),
        });
        *query.body = SetExpr::Select(Box::new(all));
        let bound = self.session.binder().without_positions().bind(&query);
        Some(
            bound
                .ok()?
                .schema
                .columns
                .into_iter()
                .map(|c| c.name)
                .collect(),
        )
    }

    // -- Expressions -----------------------------------------------------------------------------

    fn expr(&mut self, expr: &mut Expr) -> Option<()> {
        self.visit(expr)
    }

    fn visit(&mut self, node: &mut impl VisitMut) -> Option<()> {
        let mut names = Names {
            expander: self,
            depth: 0,
        };
        match node.visit(&mut names) {
            ControlFlow::Continue(()) => Some(()),
            ControlFlow::Break(()) => None,
        }
    }

    /// The alias of the only table, of the innermost block, that has a column called `name`.
    fn table_with(&self, name: &str) -> Option<&str> {
        for scope in self.scopes.iter().rev() {
            let mut found = scope
                .iter()
                .filter(|source| source.columns.iter().any(|c| c == name));
            if let Some(source) = found.next() {
                return found.next().is_none().then_some(source.alias.as_str());
            }
        }
        None
    }

    fn is_alias(&self, name: &str) -> bool {
        self.scopes
            .iter()
            .flatten()
            .any(|source| source.alias == name)
    }
}

/// Puts the columns of an expression in full. Subqueries are the expander's.
struct Names<'e, 's> {
    expander: &'e mut Expander<'s>,
    depth: usize,
}

impl VisitorMut for Names<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.depth == 0 && self.expander.query(query).is_none() {
            return ControlFlow::Break(());
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let parts = match expr {
            Expr::Identifier(ident) => vec![ident.clone()],
            Expr::CompoundIdentifier(parts) if !self.expander.is_alias(&parts[0].value) => {
                parts.clone()
            }
            // PI without parentheses
            Expr::Function(f) if f.name.to_string().eq_ignore_ascii_case("PI") => {
                *expr = expr_call(Ident::new("PI"), Vec::new());
                return ControlFlow::Continue(());
            }
            _ => return ControlFlow::Continue(()),
        };
        if let Some(table) = self.expander.table_with(&parts[0].value) {
            let full = std::iter::once(Ident::new(table)).chain(parts);
            *expr = Expr::CompoundIdentifier(full.collect());
        }
        ControlFlow::Continue(())
    }
}

fn alias_of(factor: &mut TableFactor) -> Option<&mut Option<TableAlias>> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => Some(alias),
        _ => None,
    }
}

fn named(alias: String) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::new(alias),
        columns: Vec::new(),
        at: None,
    }
}

fn column_of(table: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::new(table), Ident::new(column)])
}

/// The first block of a set operation.
fn first_of_several(body: &SetExpr) -> Option<&Select> {
    fn first(body: &SetExpr) -> Option<&Select> {
        match body {
            SetExpr::Select(select) => Some(select),
            SetExpr::Query(query) => first(&query.body),
            SetExpr::SetOperation { left, .. } => first(left),
            _ => None,
        }
    }
    matches!(body, SetExpr::SetOperation { .. }).then(|| first(body))?
}

/// `template` without all that it says.
fn bare_select(template: &Select) -> Select {
    let mut select = template.clone();
    select.optimizer_hints.clear();
    select.distinct = None;
    select.projection.clear();
    select.from.clear();
    select.selection = None;
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    select.having = None;
    select.qualify = None;
    select.named_window.clear();
    select
}
