//! Whole queries: WITH, set operations, VALUES, ORDER BY, LIMIT.

use std::collections::BTreeMap;

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

use super::aggregate::GroupBy;
use super::compare::compare;
use super::expr::{Context, and, boolean, case};
use super::scope::Scope;
use super::select::BoundSelect;
use super::time_types::typed_time;
use super::{Binder, literal, refusals};
use crate::aggregates::CallContext;
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr};
use crate::plan::logical::{AggregateCall, JoinKind, LogicalNode, LogicalPlan, SortKey, TableCall};
use crate::types::{Column, DataType, Schema, TypeKind, coerce};

impl Binder<'_> {
    /// Binds a query inside `parent`, the scope of the block that it is a subquery of.
    pub(super) fn bind_query(
        &mut self,
        query: &ast::Query,
        parent: Option<&Scope<'_>>,
    ) -> Result<LogicalPlan> {
        self.nesting += 1;
        let plan = self.bind_query_with(query, parent);
        self.nesting -= 1;
        plan
    }

    fn bind_query_with(
        &mut self,
        query: &ast::Query,
        parent: Option<&Scope<'_>>,
    ) -> Result<LogicalPlan> {
        let with = query.with.is_some();
        if let Some(clause) = &query.with {
            self.bind_with(clause)?;
        }
        let plan = self.bind_query_body(query, parent);
        if with {
            self.ctes.pop();
        }
        plan
    }

    fn bind_with(&mut self, with: &ast::With) -> Result<()> {
        if with.recursive {
            return Err(Error::plan(
                "WITH RECURSIVE is not supported in streaming mode",
            ));
        }
        self.ctes.push(BTreeMap::new());
        for cte in &with.cte_tables {
            let bound = self.bind_query(&cte.query, None);
            let named = bound.and_then(|plan| rename_columns(plan, &cte.alias));
            match named {
                Ok(plan) => {
                    if let Some(scope) = self.ctes.last_mut() {
                        scope.insert(cte.alias.name.value.clone(), plan);
                    }
                }
                Err(e) => {
                    self.ctes.pop();
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    fn bind_query_body(
        &mut self,
        query: &ast::Query,
        parent: Option<&Scope<'_>>,
    ) -> Result<LogicalPlan> {
        let order = order_items(query)?;
        let bound = match query.body.as_ref() {
            SetExpr::Select(select) => self.bind_select(select, order, parent)?,
            body => {
                let plan = self.bind_set_expr(body, parent)?;
                self.bind_order_of_set(plan, order)?
            }
        };
        let (offset, fetch) = self.bind_limit(query)?;
        let BoundSelect {
            mut plan,
            visible,
            sort,
        } = bound;
        // rows of a subquery have no order that anybody could see
        let sort = if self.nesting > 1 && offset == 0 && fetch.is_none() {
            Vec::new()
        } else {
            sort
        };
        if !sort.is_empty() || offset > 0 || fetch.is_some() {
            let schema = plan.schema.clone();
            plan = LogicalPlan::new(
                LogicalNode::Sort {
                    input: Box::new(plan),
                    keys: sort,
                    offset,
                    fetch,
                },
                schema,
            );
        }
        let shown: Vec<usize> = (0..visible).collect();
        Ok(plan.project_columns(&shown))
    }

    /// ORDER BY of a set operation or VALUES: output columns by name or number.
    fn bind_order_of_set(
        &mut self,
        plan: LogicalPlan,
        order: &[ast::OrderByExpr],
    ) -> Result<BoundSelect> {
        let mut sort = Vec::new();
        for item in order {
            let scope = Scope::of_table(None, &plan.schema);
            let column = match &item.expr {
                ast::Expr::Value(v) => match &v.value {
                    ast::Value::Number(text, _) => {
                        text.parse::<usize>().ok().and_then(|n| n.checked_sub(1))
                    }
                    _ => None,
                },
                e => self.bind_expr(e, &mut Context::scalar(&scope))?.as_column(),
            };
            let column = column.filter(|c| *c < plan.schema.len()).ok_or_else(|| {
                Error::plan(format!("'{}' is no output column of the query", item.expr))
            })?;
            let (descending, nulls_first) = super::over::direction(&item.options);
            sort.push(SortKey {
                column,
                descending,
                nulls_first,
            });
        }
        let visible = plan.schema.len();
        Ok(BoundSelect {
            plan,
            visible,
            sort,
        })
    }

    fn bind_limit(&mut self, query: &ast::Query) -> Result<(u64, Option<u64>)> {
        let mut offset = 0;
        let mut fetch = None;
        match &query.limit_clause {
            Some(ast::LimitClause::LimitOffset {
                limit,
                offset: o,
                limit_by,
            }) => {
                if !limit_by.is_empty() {
                    return Err(Error::plan("LIMIT BY is not part of Flink SQL"));
                }
                fetch = limit
                    .as_ref()
                    .map(|e| self.constant_count(e, "LIMIT"))
                    .transpose()?;
                if let Some(o) = o {
                    offset = self.constant_count(&o.value, "OFFSET")?;
                }
            }
            Some(ast::LimitClause::OffsetCommaLimit { offset: o, limit }) => {
                offset = self.constant_count(o, "OFFSET")?;
                fetch = Some(self.constant_count(limit, "LIMIT")?);
            }
            None => {}
        }
        if let Some(clause) = &query.fetch {
            if clause.percent || clause.with_ties {
                return Err(Error::plan(
                    "FETCH with PERCENT or WITH TIES is not supported",
                ));
            }
            fetch = match &clause.quantity {
                Some(e) => Some(self.constant_count(e, "FETCH")?),
                None => Some(1),
            };
        }
        Ok((offset, fetch))
    }

    fn constant_count(&mut self, ast: &ast::Expr, clause: &str) -> Result<u64> {
        let scope = Scope::default();
        let bound = self.bind_expr(ast, &mut Context::scalar(&scope))?;
        let count = match bound.as_literal() {
            Some(ScalarValue::Int32(Some(n))) => u64::try_from(*n).ok(),
            Some(ScalarValue::Int64(Some(n))) => u64::try_from(*n).ok(),
            _ => None,
        };
        match count {
            Some(n) => Ok(n),
            None => self.refuse(ast, format!("{clause} needs a number that is not negative")),
        }
    }

    fn bind_set_expr(&mut self, body: &SetExpr, parent: Option<&Scope<'_>>) -> Result<LogicalPlan> {
        match body {
            SetExpr::Select(select) => Ok(self.bind_select(select, &[], parent)?.plan),
            SetExpr::Query(query) => self.bind_query(query, parent),
            SetExpr::Values(values) => self.bind_values(values, parent),
            SetExpr::Table(table) => {
                let name = table.table_name.clone().unwrap_or_default();
                self.bind_table_by_name(&[name])
            }
            SetExpr::SetOperation {
                op,
                set_quantifier,
                left,
                right,
            } => {
                let left = self.bind_set_expr(left, parent)?;
                let right = self.bind_set_expr(right, parent)?;
                let all = match set_quantifier {
                    SetQuantifier::All => true,
                    SetQuantifier::None | SetQuantifier::Distinct => false,
                    other => return Err(Error::plan(format!("{op} {other} is not supported"))),
                };
                self.plan_set_operation(*op, all, left, right)
            }
            _ => Err(Error::plan(
                "INSERT, UPDATE and DELETE cannot stand inside a query",
            )),
        }
    }

    fn plan_set_operation(
        &mut self,
        op: SetOperator,
        all: bool,
        left: LogicalPlan,
        right: LogicalPlan,
    ) -> Result<LogicalPlan> {
        let word = op.to_string();
        let (left, right) = same_types(left, right, &word)?;
        match (op, all) {
            (SetOperator::Union, true) => Ok(union_all(vec![left, right])),
            (SetOperator::Union, false) => {
                let union = union_all(vec![left, right]);
                let mut group = GroupBy::all_columns(&union);
                self.plan_aggregate(union, &mut group, &[], None)
            }
            (SetOperator::Intersect | SetOperator::Except | SetOperator::Minus, false) => {
                let kind = if op == SetOperator::Intersect {
                    JoinKind::Semi
                } else {
                    JoinKind::Anti
                };
                let width = left.schema.len();
                let on = (0..width)
                    .map(|i| {
                        let mut other = right.column(i);
                        other = other.remap_columns(&|c| c + width);
                        compare(CompareOp::NotDistinct, left.column(i), other)
                    })
                    .collect::<Result<Vec<_>>>()?;
                let schema = left.schema.clone();
                let joined = LogicalPlan::new(
                    LogicalNode::Join {
                        left: Box::new(left),
                        right: Box::new(right),
                        kind,
                        on: Some(and(on)),
                        ttl: (None, None),
                    },
                    schema,
                );
                let mut group = GroupBy::all_columns(&joined);
                self.plan_aggregate(joined, &mut group, &[], None)
            }
            (SetOperator::Intersect, true) => self.plan_bag_operation(left, right, true),
            (SetOperator::Except | SetOperator::Minus, true) => {
                self.plan_bag_operation(left, right, false)
            }
        }
    }

    /// INTERSECT ALL and EXCEPT ALL: count the rows of each side, then repeat each row as often as
    /// it belongs to the result.
    fn plan_bag_operation(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        intersect: bool,
    ) -> Result<LogicalPlan> {
        let width = left.schema.len();
        let mark = |plan: LogicalPlan, marks: Vec<Expr>| {
            let mut exprs: Vec<Expr> = (0..width).map(|i| plan.column(i)).collect();
            let mut schema = plan.schema.clone();
            for (i, mark) in marks.into_iter().enumerate() {
                schema
                    .columns
                    .push(Column::new(format!("$m{i}"), mark.data_type.as_nullable()));
                exprs.push(mark);
            }
            plan.project(exprs, schema)
        };
        let truth = || literal::boolean(true);
        let unknown = || literal::typed_null(&TypeKind::Boolean.nullable());
        let (left, right) = if intersect {
            (
                mark(left, vec![truth(), unknown()?]),
                mark(right, vec![unknown()?, truth()]),
            )
        } else {
            (
                mark(left, vec![literal::bigint(1)]),
                mark(right, vec![literal::bigint(-1)]),
            )
        };
        let union = union_all(vec![left, right]);
        let keys: Vec<usize> = (0..width).collect();
        let mut calls = Vec::new();
        for (i, column) in union.schema.columns[width..].iter().enumerate() {
            let argument = Expr::column(width + i, column.data_type.clone());
            let name = if intersect { "COUNT" } else { "SUM" };
            let call = CallContext {
                grouped: true,
                filtered: false,
                distinct: false,
            };
            let (function, _) = self.resolve_aggregate(name, vec![argument], call)?;
            calls.push(AggregateCall {
                data_type: function.returns().clone(),
                function,
                args: vec![width + i],
                distinct: false,
                filter: None,
                name: format!("$n{i}"),
            });
        }
        let mut schema = union.schema.project(&keys);
        schema.columns.extend(
            calls
                .iter()
                .map(|c| Column::new(c.name.clone(), c.data_type.clone())),
        );
        let counted = LogicalPlan::new(
            LogicalNode::Aggregate {
                input: Box::new(union),
                keys,
                calls,
                ttl: None,
            },
            schema,
        );
        let (predicate, times) = if intersect {
            let (l, r) = (counted.column(width), counted.column(width + 1));
            let some = |e: &Expr| compare(CompareOp::GtEq, e.clone(), literal::bigint(1));
            let predicate = and(vec![some(&l)?, some(&r)?]);
            let more = compare(CompareOp::Gt, l.clone(), r.clone())?;
            (predicate, case(vec![(more, r)], l)?)
        } else {
            let n = counted.column(width);
            (compare(CompareOp::Gt, n.clone(), literal::bigint(0))?, n)
        };
        let filtered = counted.filter(predicate);
        let mut exprs: Vec<Expr> = vec![times.clone()];
        exprs.extend((0..width).map(|i| filtered.column(i)));
        let mut schema = Schema::new(vec![Column::new("$times", times.data_type.clone())]);
        schema
            .columns
            .extend(filtered.schema.columns[..width].iter().cloned());
        let repeated = filtered.project(exprs, schema);
        let args = (0..=width).map(|i| repeated.column(i)).collect();
        let function = crate::functions::table::replicate_rows();
        let mut schema = repeated.schema.clone();
        let copies = schema.columns[1..].to_vec();
        schema.columns.extend(copies);
        let correlated = LogicalPlan::new(
            LogicalNode::Correlate {
                input: Box::new(repeated),
                call: TableCall::Function { function, args },
                kind: JoinKind::Inner,
                condition: None,
            },
            schema,
        );
        let shown: Vec<usize> = (width + 1..2 * width + 1).collect();
        Ok(correlated.project_columns(&shown))
    }

    /// VALUES: columns `EXPR$0`, ..., each of the rows' common type.
    pub(super) fn bind_values(
        &mut self,
        values: &ast::Values,
        parent: Option<&Scope<'_>>,
    ) -> Result<LogicalPlan> {
        let scope = Scope::default().within(parent);
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let bound = row
                .content
                .iter()
                .map(|e| self.bind_expr(e, &mut Context::scalar(&scope)))
                .collect::<Result<Vec<_>>>()?;
            if bound.iter().any(|e| e.data_type.kind == TypeKind::Null) {
                return Err(refusals::untyped_null());
            }
            if rows
                .first()
                .is_some_and(|first: &Vec<Expr>| first.len() != bound.len())
            {
                return Err(Error::plan(
                    "Values passed to VALUES operator must have compatible types: the rows differ \
                     in their number of columns",
                ));
            }
            rows.push(bound);
        }
        let width = rows.first().map_or(0, Vec::len);
        let mut schema = Schema::default();
        for i in 0..width {
            let types: Vec<&DataType> = rows.iter().map(|r| &r[i].data_type).collect();
            let common = coerce::common_type(&types).ok_or_else(|| {
                Error::plan(format!(
                    "Values passed to VALUES operator must have compatible types: column {} has {}",
                    i + 1,
                    list_types(&types)
                ))
            })?;
            schema
                .columns
                .push(Column::new(format!("EXPR${i}"), common));
        }
        let rows = rows
            .into_iter()
            .map(|row| {
                row.into_iter()
                    .zip(&schema.columns)
                    .map(|(e, column)| self.fold(e.cast_to(&column.data_type)))
                    .collect::<Result<Vec<_>>>()
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(LogicalPlan::new(LogicalNode::Values { rows }, schema))
    }

    /// Keeps the rows for which `predicate`, that may use values of subqueries, is true.
    pub(super) fn filter_with_subqueries(
        &mut self,
        plan: LogicalPlan,
        predicate: Expr,
        subqueries: Vec<super::subquery::PendingSubquery>,
        outer: &dyn Fn(Expr) -> Result<Expr>,
    ) -> Result<LogicalPlan> {
        let predicate = boolean(predicate, "a condition")?;
        if subqueries.is_empty() {
            return Ok(plan.filter(predicate));
        }
        let width = plan.schema.len();
        let (joined, values) = self.join_subqueries(plan, subqueries, outer)?;
        let predicate = super::select::replace_subqueries(predicate, &values);
        let kept: Vec<usize> = (0..width).collect();
        Ok(joined.filter(predicate).project_columns(&kept))
    }
}

/// All rows of `inputs`, which have the same types.
pub(super) fn union_all(inputs: Vec<LogicalPlan>) -> LogicalPlan {
    let mut flat = Vec::new();
    let mut schema: Option<Schema> = None;
    for input in inputs {
        match &mut schema {
            None => schema = Some(input.schema.clone()),
            Some(schema) => {
                for (i, column) in schema.columns.iter_mut().enumerate() {
                    let other = &input.schema.columns[i];
                    column.data_type.nullable |= other.data_type.nullable;
                    // a plain time becomes one like that of the first input; what only a type says
                    // to be one does not
                    if column.time != other.time && typed_time(&input, i).is_some() {
                        column.time = None;
                    }
                }
            }
        }
        match input.node {
            LogicalNode::Union { inputs } => flat.extend(inputs),
            _ => flat.push(input),
        }
    }
    LogicalPlan::new(
        LogicalNode::Union { inputs: flat },
        schema.unwrap_or_default(),
    )
}

fn same_types(
    left: LogicalPlan,
    right: LogicalPlan,
    op: &str,
) -> Result<(LogicalPlan, LogicalPlan)> {
    if left.schema.len() != right.schema.len() {
        return Err(Error::plan(format!(
            "Column count mismatch in {op}: {} and {} columns",
            left.schema.len(),
            right.schema.len()
        )));
    }
    let mut common = Vec::new();
    for (i, (l, r)) in left
        .schema
        .columns
        .iter()
        .zip(&right.schema.columns)
        .enumerate()
    {
        let found = coerce::common_type(&[&l.data_type, &r.data_type]).ok_or_else(|| {
            Error::plan(format!(
                "Type mismatch in column {} of {op}: {} and {}",
                i + 1,
                l.data_type.kind,
                r.data_type.kind
            ))
        })?;
        common.push(found);
    }
    Ok((cast_columns(left, &common), cast_columns(right, &common)))
}

/// Casts the columns to `types`, nullability and names kept.
pub(super) fn cast_columns(plan: LogicalPlan, types: &[DataType]) -> LogicalPlan {
    let same = plan
        .schema
        .columns
        .iter()
        .zip(types)
        .all(|(c, t)| c.data_type.kind == t.kind);
    if same {
        return plan;
    }
    let exprs: Vec<Expr> = types
        .iter()
        .enumerate()
        .map(|(i, t)| plan.column(i).cast_to(t))
        .collect();
    let mut schema = plan.schema.clone();
    for (column, expr) in schema.columns.iter_mut().zip(&exprs) {
        if column.data_type.kind != expr.data_type.kind {
            column.time = None;
        }
        column.data_type = expr.data_type.clone();
    }
    plan.project(exprs, schema)
}

/// Applies the column list of an alias: `AS t(a, b)`.
pub(super) fn rename_columns(
    mut plan: LogicalPlan,
    alias: &ast::TableAlias,
) -> Result<LogicalPlan> {
    if alias.columns.is_empty() {
        return Ok(plan);
    }
    if alias.columns.len() != plan.schema.len() {
        return Err(Error::plan(format!(
            "List of column aliases must have same degree as table; table has {} columns, whereas \
             alias list has {}",
            plan.schema.len(),
            alias.columns.len()
        )));
    }
    for (column, name) in plan.schema.columns.iter_mut().zip(&alias.columns) {
        column.name.clone_from(&name.name.value);
    }
    Ok(plan)
}

fn order_items(query: &ast::Query) -> Result<&[ast::OrderByExpr]> {
    match &query.order_by {
        None => Ok(&[]),
        Some(order) => match &order.kind {
            ast::OrderByKind::Expressions(items) => Ok(items),
            ast::OrderByKind::All(_) => Err(Error::plan("ORDER BY ALL is not part of Flink SQL")),
        },
    }
}

fn list_types(types: &[&DataType]) -> String {
    types
        .iter()
        .map(|t| t.kind.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
