//! One query block: FROM, WHERE, GROUP BY, HAVING, WINDOW, QUALIFY, SELECT, DISTINCT.

use sqlparser::ast::{self, SelectItem};

use super::aggregate::GroupBy;
use super::expr::{
    AGGREGATE_BASE, Context, OVER_BASE, SUBQUERY_BASE, WINDOW_BASE, boolean, time_attribute,
};
use super::over::{direction, plan_over};
use super::scope::Scope;
use super::{Binder, expr, refusals};
use crate::error::{Error, Result};
use crate::expr::{Expr, ExprKind};
use crate::plan::logical::{LogicalNode, LogicalPlan, SortKey};
use crate::types::{Column, Schema};

/// A bound block, with hidden columns for ORDER BY behind the visible ones.
pub(super) struct BoundSelect {
    pub(super) plan: LogicalPlan,
    /// Number of columns that the query shows.
    pub(super) visible: usize,
    /// ORDER BY over the plan's columns.
    pub(super) sort: Vec<SortKey>,
}

/// What the names of columns begin with that only ORDER BY needs.
const HIDDEN_KEY: &str = "$s";

struct Item {
    name: String,
    expr: Expr,
    /// Whether a `*` stands for it.
    star: bool,
}

impl Binder<'_> {
    /// Binds a block; `order` is the ORDER BY of the query that it is the body of.
    pub(super) fn bind_select(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        parent: Option<&Scope<'_>>,
    ) -> Result<BoundSelect> {
        refuse_foreign_clauses(select)?;
        self.push_hints(select)?;
        let bound = self.bind_select_inner(select, order, parent);
        self.ttl_hints.pop();
        self.join_hints.pop();
        self.lookup_hints.pop();
        bound
    }

    fn bind_select_inner(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        parent: Option<&Scope<'_>>,
    ) -> Result<BoundSelect> {
        let (mut plan, scope) = self.bind_from(&select.from, parent)?;
        if let Some(condition) = &select.selection {
            plan = self.apply_where(plan, condition, &scope)?;
        }
        let mut group = self.bind_group_by(&select.group_by, &scope, &plan.schema)?;
        // all that may hold aggregates, OVER calls and subqueries
        let mut context = Context {
            aggregates: Some(Vec::new()),
            overs: Some(Vec::new()),
            subqueries: Some(Vec::new()),
            named_windows: &select.named_window,
            grouped: group.present,
            group_window: group.window.as_ref().map(|w| w.call.clone()),
            ..Context::condition(&scope, "SELECT")
        };
        let mut items = Vec::new();
        for item in &select.projection {
            self.bind_item(item, &mut items, &mut context)?;
        }
        let mut order_keys = Vec::new();
        for item in order {
            let key = self.bind_order_key(item, &items, &mut context)?;
            let (descending, nulls_first) = direction(&item.options);
            order_keys.push((key, descending, nulls_first));
        }
        let qualify = match &select.qualify {
            Some(e) => Some(boolean(self.bind_expr(e, &mut context)?, "QUALIFY")?),
            None => None,
        };
        let select_subqueries = context.subqueries.take().unwrap_or_default();
        let overs = context.overs.take();
        context.subqueries = Some(Vec::new());
        context.clause = "HAVING";
        let having = match &select.having {
            Some(e) => Some(boolean(self.bind_expr(e, &mut context)?, "HAVING")?),
            None => None,
        };
        let having_subqueries = context.subqueries.take().unwrap_or_default();
        let mut overs = overs.unwrap_or_default();
        let mut aggregates = context.aggregates.take().unwrap_or_default();
        let argument_subqueries = std::mem::take(&mut context.argument_subqueries);

        let grouped = group.present || !aggregates.is_empty() || having.is_some();
        self.check_table_hints(&scope, select, grouped)?;
        let input_schema = plan.schema.clone();
        let rewrite = |group: &GroupBy, e: Expr| {
            if grouped {
                group.rewrite(e, &input_schema)
            } else {
                Ok(e)
            }
        };
        if grouped {
            let ttl = self.ttl_of(&scope);
            if !argument_subqueries.is_empty() {
                let (joined, values) = self.join_subqueries(plan, argument_subqueries, &Ok)?;
                plan = joined;
                for call in &mut aggregates {
                    call.map(&|e| replace_subqueries(e, &values));
                }
            }
            plan = self.plan_aggregate(plan, &mut group, &aggregates, ttl)?;
        }
        if let Some(having) = having {
            let having = rewrite(&group, having)?;
            let outer = |e: Expr| rewrite(&group, e);
            plan = self.filter_with_subqueries(plan, having, having_subqueries, &outer)?;
        }
        for item in &mut items {
            item.expr = rewrite(&group, item.expr.clone())?;
        }
        for (key, _, _) in &mut order_keys {
            if let OrderKey::Expr(e) = key {
                *e = rewrite(&group, e.clone())?;
            }
        }
        let mut qualify = qualify.map(|q| rewrite(&group, q)).transpose()?;
        overs = overs
            .into_iter()
            .map(|over| over.map(&mut |e| rewrite(&group, e)))
            .collect::<Result<_>>()?;

        let place = |base: usize, end: usize, to: usize| {
            move |e: Expr| {
                e.transform(&mut |e| match e.kind {
                    ExprKind::Column(i) if (base..end).contains(&i) => {
                        Expr::column(to + i - base, e.data_type)
                    }
                    _ => e,
                })
            }
        };
        let mut relocate =
            |f: &dyn Fn(Expr) -> Expr, overs: &mut Vec<super::over::PendingOver>| -> Result<()> {
                for item in &mut items {
                    item.expr = f(item.expr.clone());
                }
                for (key, _, _) in &mut order_keys {
                    if let OrderKey::Expr(e) = key {
                        *e = f(e.clone());
                    }
                }
                qualify = qualify.take().map(f);
                *overs = std::mem::take(overs)
                    .into_iter()
                    .map(|over| over.map(&mut |e| Ok(f(e))))
                    .collect::<Result<_>>()?;
                Ok(())
            };
        if !select_subqueries.is_empty() {
            let outer = |e: Expr| rewrite(&group, e);
            let (joined, values) = self.join_subqueries(plan, select_subqueries, &outer)?;
            plan = joined;
            let replace = |e: Expr| replace_subqueries(e, &values);
            relocate(&replace, &mut overs)?;
        }
        if !overs.is_empty() {
            let width = plan.schema.len();
            plan = plan_over(plan, std::mem::take(&mut overs));
            relocate(&place(OVER_BASE, SUBQUERY_BASE, width), &mut overs)?;
        }
        if let Some(qualify) = qualify {
            plan = plan.filter(qualify);
        }
        self.finish_select(plan, items, order_keys, select)
    }

    fn finish_select(
        &mut self,
        plan: LogicalPlan,
        items: Vec<Item>,
        order_keys: Vec<(OrderKey, bool, bool)>,
        select: &ast::Select,
    ) -> Result<BoundSelect> {
        let visible = items.len();
        let starred: Vec<bool> = items.iter().map(|item| item.star).collect();
        let mut schema = Schema::default();
        let mut exprs = Vec::new();
        for item in items {
            let mut column = Column::new(item.name, item.expr.data_type.clone());
            column.time = time_attribute(&item.expr, &plan.schema);
            schema.columns.push(column);
            exprs.push(item.expr);
        }
        let mut sort = Vec::new();
        for (key, descending, nulls_first) in order_keys {
            let column = match key {
                OrderKey::Item(i) => i,
                OrderKey::Expr(e) => match exprs.iter().position(|x| x.same(&e)) {
                    Some(i) => i,
                    None if select.distinct.is_some() => {
                        return Err(Error::plan(
                            "ORDER BY of SELECT DISTINCT must be one of the selected columns",
                        ));
                    }
                    None => {
                        let mut column = Column::new(
                            format!("{HIDDEN_KEY}{}", exprs.len()),
                            e.data_type.clone(),
                        );
                        column.time = time_attribute(&e, &plan.schema);
                        schema.columns.push(column);
                        exprs.push(e);
                        exprs.len() - 1
                    }
                },
            };
            sort.push(SortKey {
                column,
                descending,
                nulls_first,
            });
        }
        if exprs.len() > visible && self.nesting == 1 {
            name_starred(&mut schema, &starred);
        }
        let mut plan = plan.project(exprs, schema);
        match &select.distinct {
            None | Some(ast::Distinct::All) => {}
            Some(ast::Distinct::Distinct) => {
                let mut group = GroupBy::all_columns(&plan);
                plan = self.plan_aggregate(plan, &mut group, &[], None)?;
            }
            Some(ast::Distinct::On(_)) => {
                return Err(Error::plan("SELECT DISTINCT ON is not supported")
                    .hint("use ROW_NUMBER() OVER (PARTITION BY .. ORDER BY ..) = 1"));
            }
        }
        Ok(BoundSelect {
            plan,
            visible,
            sort,
        })
    }

    fn bind_item(
        &mut self,
        item: &SelectItem,
        items: &mut Vec<Item>,
        context: &mut Context<'_, '_>,
    ) -> Result<()> {
        let (ast, name) = match item {
            SelectItem::Wildcard(_) => {
                if context.scope.columns.is_empty() {
                    return self.refuse(item, "SELECT * without FROM");
                }
                check_star(&context.scope.columns)?;
                let star = context.scope.columns.iter().filter(|c| c.in_star);
                items.extend(star.map(|c| Item {
                    name: c.name.clone(),
                    expr: c.expr.clone(),
                    star: true,
                }));
                return Ok(());
            }
            SelectItem::QualifiedWildcard(kind, _) => {
                return self.bind_qualified_star(kind, items, context);
            }
            SelectItem::UnnamedExpr(e) => (e, default_name(e)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
            SelectItem::ExprWithAliases { .. } => {
                return self.refuse(item, "several aliases for one expression");
            }
        };
        if is_null_literal(ast) {
            return self.located(ast, Err(refusals::untyped_null()));
        }
        let expr = self.bind_expr(ast, context)?;
        let name = name.unwrap_or_else(|| format!("EXPR${}", items.len()));
        items.push(Item {
            name,
            expr,
            star: false,
        });
        Ok(())
    }

    fn bind_qualified_star(
        &mut self,
        kind: &ast::SelectItemQualifiedWildcardKind,
        items: &mut Vec<Item>,
        context: &mut Context<'_, '_>,
    ) -> Result<()> {
        let parts = match kind {
            ast::SelectItemQualifiedWildcardKind::ObjectName(name) => super::object_parts(name)?,
            ast::SelectItemQualifiedWildcardKind::Expr(e) => {
                let row = self.bind_expr(e, context)?;
                return expand_row(row, items);
            }
        };
        let before = items.len();
        for column in &context.scope.columns {
            if column.qualifier.ends_with(&parts) {
                items.push(Item {
                    name: column.name.clone(),
                    expr: column.expr.clone(),
                    star: true,
                });
            }
        }
        if items.len() == before {
            // row.*: the fields of a column
            return match context.scope.resolve(&parts) {
                Ok(row) => expand_row(row, items),
                Err(_) => Err(
                    Error::plan(format!("Unknown identifier '{}'", parts.join(".")))
                        .hint("it is no table or alias in FROM"),
                ),
            };
        }
        Ok(())
    }

    fn bind_order_key(
        &mut self,
        item: &ast::OrderByExpr,
        items: &[Item],
        context: &mut Context<'_, '_>,
    ) -> Result<OrderKey> {
        if let ast::Expr::Value(value) = &item.expr
            && let ast::Value::Number(text, _) = &value.value
        {
            return match text.parse::<usize>() {
                Ok(n) if (1..=items.len()).contains(&n) => Ok(OrderKey::Item(n - 1)),
                _ => self.refuse(&item.expr, "Ordinal out of range"),
            };
        }
        if let ast::Expr::Identifier(ident) = &item.expr {
            // what `*` repeats has another name
            let mut named = (0..items.len()).filter(|i| {
                let repeated = |item: &Item| items[*i].star && item.name == ident.value;
                items[*i].name == ident.value && !items[..*i].iter().any(repeated)
            });
            match (named.next(), named.next()) {
                (Some(_), Some(_)) => {
                    return self
                        .refuse(&item.expr, format!("Column '{}' is ambiguous", ident.value));
                }
                (Some(i), None) => return Ok(OrderKey::Item(i)),
                (None, _) => {}
            }
        }
        Ok(OrderKey::Expr(self.bind_expr(&item.expr, context)?))
    }
}

/// Refuses `*` over a table that has two columns of one name.
fn check_star(columns: &[super::scope::ScopeColumn]) -> Result<()> {
    for (i, column) in columns.iter().enumerate() {
        let same = |other: &&super::scope::ScopeColumn| {
            other.name == column.name && other.qualifier == column.qualifier
        };
        if column.in_star && columns[..i].iter().filter(|c| c.in_star).any(|c| same(&c)) {
            return Err(
                Error::plan(format!("Column '{}' is ambiguous", column.name))
                    .hint("give the columns of the subquery different names"),
            );
        }
    }
    Ok(())
}

enum OrderKey {
    /// A select item.
    Item(usize),
    /// Any expression of the block.
    Expr(Expr),
}

fn expand_row(row: Expr, items: &mut Vec<Item>) -> Result<()> {
    let Some(fields) = row.data_type.kind.fields() else {
        return Err(Error::plan(format!(
            "{} is no ROW: '.*' needs one",
            row.data_type.kind
        )));
    };
    for field in fields {
        let expr = super::scope::access_fields(row.clone(), std::slice::from_ref(&field.name))?;
        items.push(Item {
            name: field.name.clone(),
            expr,
            star: false,
        });
    }
    Ok(())
}

/// The name of a select item without alias: that of its column or field.
fn default_name(e: &ast::Expr) -> Option<String> {
    match e {
        // only a chain of names ends in one: a field of what a call gives has none
        ast::Expr::CompoundFieldAccess { root, access_chain } => {
            let named = matches!(
                root.as_ref(),
                ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)
            );
            let mut last = None;
            for access in access_chain {
                match access {
                    ast::AccessExpr::Dot(ast::Expr::Identifier(field)) if named => {
                        last = Some(field.value.clone());
                    }
                    _ => return None,
                }
            }
            last
        }
        // PI without parentheses is a name for Flink's grammar
        ast::Expr::Function(f) if matches!(f.args, ast::FunctionArguments::None) => {
            let name = f.name.0.first()?.as_ident()?;
            let named = name.value.eq_ignore_ascii_case("PI");
            named.then(|| name.value.clone())
        }
        _ => expr::name_parts(e).and_then(|mut parts| parts.pop()),
    }
}

/// Gives repeated names a number behind, as Flink does: `id`, `id0`, `id1`. Where a sort key is
/// hidden, the number starts at that of the names so far.
pub(super) fn uniquify(plan: &mut LogicalPlan) {
    let hidden_key = hides_sort_key(plan);
    let mut used: Vec<String> = Vec::new();
    for column in &mut plan.schema.columns {
        let mut name = column.name.clone();
        let mut n = if hidden_key { used.len() } else { 0 };
        while used.contains(&name) {
            name = format!("{}{n}", column.name);
            n += 1;
        }
        used.push(name.clone());
        column.name = name;
    }
}

/// Tells apart what `*` repeats, before the names of the others are.
fn name_starred(schema: &mut Schema, starred: &[bool]) {
    for i in (0..starred.len()).filter(|i| starred[*i]) {
        let (before, column) = schema.columns.split_at_mut(i);
        let Some(column) = column.first_mut() else {
            continue;
        };
        let mut name = column.name.clone();
        let mut n = 0;
        while before.iter().any(|other| other.name == name) {
            name = format!("{}{n}", column.name);
            n += 1;
        }
        column.name = name;
    }
}

/// Whether the rows were sorted by a column that is not shown.
fn hides_sort_key(plan: &LogicalPlan) -> bool {
    let LogicalNode::Project { input, .. } = &plan.node else {
        return false;
    };
    let LogicalNode::Sort { input: sorted, .. } = &input.node else {
        return false;
    };
    let last = sorted.schema.columns.last();
    last.is_some_and(|column| column.name.starts_with(HIDDEN_KEY))
}

/// Puts the values of subqueries in their places.
pub(super) fn replace_subqueries(e: Expr, values: &[Expr]) -> Expr {
    e.transform(&mut |e| match e.kind {
        ExprKind::Column(i) if (SUBQUERY_BASE..WINDOW_BASE).contains(&i) => {
            values[i - SUBQUERY_BASE].clone()
        }
        _ => e,
    })
}

/// Whether a column index stands for something put aside.
pub(super) fn is_placeholder(i: usize) -> bool {
    i >= AGGREGATE_BASE
}

fn refuse_foreign_clauses(select: &ast::Select) -> Result<()> {
    let found = [
        (select.top.is_some(), "TOP"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (
            select.value_table_mode.is_some(),
            "SELECT AS STRUCT / VALUE",
        ),
        (select.exclude.is_some(), "EXCLUDE"),
    ];
    match found.iter().find(|(is, _)| *is) {
        Some((_, clause)) => Err(Error::plan(format!("{clause} is not part of Flink SQL"))),
        None => Ok(()),
    }
}

fn is_null_literal(e: &ast::Expr) -> bool {
    match e {
        ast::Expr::Nested(inner) => is_null_literal(inner),
        ast::Expr::Value(value) => matches!(value.value, ast::Value::Null),
        _ => false,
    }
}
