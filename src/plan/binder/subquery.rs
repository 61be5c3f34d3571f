//! Subqueries: IN, EXISTS and scalar ones, as joins.
//!
//! A conjunct `[NOT] IN` or `[NOT] EXISTS` of WHERE becomes a semi or anti join. Anywhere else a
//! subquery is a value: it is left-joined, and the value is a column of the join.

use sqlparser::ast;

use super::aggregate::{GroupBy, PendingAggregate};
use super::compare::compare;
use super::conjuncts::{Test, as_test, split_and};
use super::decorrelate::{
    Decorrelated, Enclosing, decorrelate, decorrelate_by_equality, has_outer,
};
use super::expr::{Context, SUBQUERY_BASE, and, boolean, case, is_null, or};
use super::from::join;
use super::one_row::{always_has_row, as_value, has_one_row, split_above_aggregate};
use super::scope::Scope;
use super::select::is_placeholder;
use super::{Binder, literal, quantified, refusals};
use crate::aggregates::CallContext;
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::plan::logical::{JoinKind, LogicalPlan};
use crate::types::{Column, Schema, TypeKind};

/// A subquery used as a value.
pub(super) struct PendingSubquery {
    plan: LogicalPlan,
    form: Form,
}

enum Form {
    /// The only column of the only row.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether the expressions, over the enclosing block, equal the columns of a row.
    In { left: Vec<Expr>, unknown: Unknown },
}

/// What IN gives where a NULL leaves it open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Null,
    False,
}

impl PendingSubquery {
    /// Where only TRUE counts, IN need not tell unknown from FALSE.
    pub(super) fn take_unknown_for_false(&mut self) {
        if let Form::In { unknown, .. } = &mut self.form {
            *unknown = Unknown::False;
        }
    }
}

impl Binder<'_> {
    /// Binds `(SELECT ..)` as a value.
    pub(super) fn bind_scalar_subquery(
        &mut self,
        query: &ast::Query,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let plan = self.bind_query(query, Some(context.scope))?;
        let [column] = plan.schema.columns.as_slice() else {
            return Err(Error::plan(format!(
                "A scalar subquery must have one column, not {}",
                plan.schema.len()
            )));
        };
        let data_type = column.data_type.as_nullable();
        self.put_aside(
            PendingSubquery {
                plan,
                form: Form::Scalar,
            },
            data_type,
            context,
        )
    }

    /// Binds `EXISTS (SELECT ..)` as a value.
    pub(super) fn bind_exists(
        &mut self,
        query: &ast::Query,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let plan = self.bind_query(query, Some(context.scope))?;
        let data_type = TypeKind::Boolean.not_null();
        self.put_aside(
            PendingSubquery {
                plan,
                form: Form::Exists,
            },
            data_type,
            context,
        )
    }

    /// Binds `x IN (SELECT ..)` as a value.
    pub(super) fn bind_in_subquery(
        &mut self,
        left: &ast::Expr,
        query: &ast::Query,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let left = self.bind_in_left(left, context)?;
        let plan = self.bind_query(query, Some(context.scope))?;
        let (left, plan) = same_row(left, plan)?;
        let nullable = left.iter().any(|e| e.data_type.nullable)
            || plan.schema.columns.iter().any(|c| c.data_type.nullable);
        let data_type = TypeKind::Boolean.with_nullable(nullable);
        self.put_aside(
            PendingSubquery {
                plan,
                form: Form::In {
                    left,
                    unknown: Unknown::Null,
                },
            },
            data_type,
            context,
        )
    }

    /// Binds `x = ANY (SELECT ..)` and `x <> ALL (SELECT ..)` as values.
    pub(super) fn bind_quantified(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
        all: bool,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let query = quantified::subquery(right)?;
        match quantified::as_in(left, op, query, all) {
            Some(test) => self.bind_expr(&test, context),
            None => Err(Error::plan(format!(
                "'{op}' with ANY, SOME or ALL is only supported as a condition of WHERE"
            ))
            .hint("compare with the MIN or the MAX of the subquery")),
        }
    }

    fn bind_in_left(
        &mut self,
        left: &ast::Expr,
        context: &mut Context<'_, '_>,
    ) -> Result<Vec<Expr>> {
        match left {
            ast::Expr::Tuple(items) => items.iter().map(|e| self.bind_expr(e, context)).collect(),
            ast::Expr::Nested(inner) if matches!(**inner, ast::Expr::Tuple(_)) => {
                self.bind_in_left(inner, context)
            }
            other => Ok(vec![self.bind_expr(other, context)?]),
        }
    }

    fn put_aside(
        &mut self,
        pending: PendingSubquery,
        data_type: crate::types::DataType,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let clause = context.clause;
        let Some(subqueries) = &mut context.subqueries else {
            return Err(Error::plan(format!(
                "A subquery is not allowed in {clause}"
            )));
        };
        subqueries.push(pending);
        Ok(Expr::column(
            SUBQUERY_BASE + subqueries.len() - 1,
            data_type,
        ))
    }

    /// WHERE: plain conjuncts filter, `IN` and `EXISTS` conjuncts become semi and anti joins.
    pub(super) fn apply_where(
        &mut self,
        plan: LogicalPlan,
        condition: &ast::Expr,
        scope: &Scope<'_>,
    ) -> Result<LogicalPlan> {
        let mut conjuncts = Vec::new();
        split_and(condition, &mut conjuncts);
        let mut plain = Vec::new();
        let mut subqueries = Vec::new();
        let mut joins = Vec::new();
        let clause = if conjuncts.len() > 1 { "AND" } else { "WHERE" };
        let rewritten = conjuncts
            .iter()
            .map(|conjunct| quantified::as_exists(conjunct, false))
            .collect::<Result<Vec<_>>>()?;
        for (conjunct, rewritten) in conjuncts.into_iter().zip(&rewritten) {
            let conjunct = rewritten.as_ref().unwrap_or(conjunct);
            match as_test(conjunct, false) {
                Some(test) => joins.push(test),
                None => {
                    let mut context = Context::condition(scope, "WHERE");
                    context.subqueries = Some(std::mem::take(&mut subqueries));
                    let bound = self.bind_expr(conjunct, &mut context)?;
                    subqueries = context.subqueries.take().unwrap_or_default();
                    plain.push(boolean(bound, clause)?);
                }
            }
        }
        let mut plan = plan;
        if !subqueries.is_empty() {
            // what needs no subquery holds before these are joined, and is known within them
            let (before, behind): (Vec<_>, Vec<_>) = plain
                .into_iter()
                .partition(|e| !e.columns().into_iter().any(is_placeholder));
            if !before.is_empty() {
                plan = plan.filter(self.fold(and(before))?);
            }
            plain = behind;
        }
        if !plain.is_empty() {
            let predicate = self.fold(and(plain))?;
            plan = self.filter_with_subqueries(plan, predicate, subqueries, &Ok)?;
        }
        for test in joins {
            plan = self.semi_join(plan, test, scope)?;
        }
        Ok(plan)
    }

    fn semi_join(
        &mut self,
        left: LogicalPlan,
        test: Test<'_>,
        scope: &Scope<'_>,
    ) -> Result<LogicalPlan> {
        let mut context = Context::condition(scope, "IN");
        let values = match test.left {
            Some(e) => self.bind_in_left(e, &mut context)?,
            None => Vec::new(),
        };
        if context.subqueries.take().is_some_and(|s| !s.is_empty()) {
            return Err(Error::plan(
                "A subquery on the left side of IN is not supported",
            ));
        }
        let right = self.bind_query(test.query, Some(scope))?;
        let (values, right) = if test.left.is_some() {
            same_row(values, right)?
        } else {
            (values, right)
        };
        if test.left.is_none() && always_has_row(&right) {
            return Ok(if test.negated {
                left.filter(literal::boolean(false))
            } else {
                left
            });
        }
        let width = left.schema.len();
        let shown = right.schema.len();
        let Decorrelated {
            plan: right,
            conditions,
        } = decorrelate(right, Enclosing::input(&left))?;
        let right = if conditions.is_empty() && test.left.is_none() {
            self.exists_row(right)?
        } else {
            right
        };
        let mut on = Vec::new();
        for (i, value) in values.into_iter().enumerate() {
            debug_assert!(i < shown);
            let other = right.column(i).remap_columns(&|c| c + width);
            let equal = compare(CompareOp::Eq, value.clone(), other.clone())?;
            // NOT IN is unknown, hence not true, where a NULL is compared
            let nullable = value.data_type.nullable || other.data_type.nullable;
            on.push(if test.negated && nullable {
                let mut unknown = Vec::new();
                for side in [&value, &other] {
                    if side.data_type.nullable {
                        unknown.push(is_null(side.clone(), false));
                    }
                }
                unknown.insert(0, equal);
                or(unknown)
            } else {
                equal
            });
        }
        on.extend(conditions);
        let kind = if test.negated {
            JoinKind::Anti
        } else {
            JoinKind::Semi
        };
        let on = (!on.is_empty()).then(|| and(on));
        Ok(join(left, right, kind, on, (None, None)))
    }

    /// One row if `plan` has any.
    fn exists_row(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let schema = Schema::new(vec![Column::new("i", TypeKind::Boolean.not_null())]);
        let marked = plan.project(vec![literal::boolean(true)], schema);
        let context = CallContext {
            grouped: false,
            filtered: false,
            distinct: false,
        };
        let (function, args) = self.resolve_aggregate("MIN", vec![marked.column(0)], context)?;
        let pending = PendingAggregate::new("MIN", args, function);
        let least = self.plan_aggregate(marked, &mut GroupBy::default(), &[pending], None)?;
        let found = is_null(least.column(0), true);
        Ok(least.filter(found))
    }

    fn count(&self, args: Vec<Expr>) -> Result<PendingAggregate> {
        let context = CallContext {
            grouped: false,
            filtered: false,
            distinct: false,
        };
        let (function, args) = self.resolve_aggregate("COUNT", args, context)?;
        Ok(PendingAggregate::new("COUNT", args, function))
    }

    /// Left-joins subqueries used as values to `plan`; the answers are the values, over the columns
    /// of the result. `outer` rewrites what the subqueries see of the block.
    pub(super) fn join_subqueries(
        &mut self,
        mut plan: LogicalPlan,
        subqueries: Vec<PendingSubquery>,
        outer: &dyn Fn(Expr) -> Result<Expr>,
    ) -> Result<(LogicalPlan, Vec<Expr>)> {
        let mut values = Vec::new();
        for subquery in subqueries {
            let (joined, value) = match subquery.form {
                Form::Scalar => self.join_scalar(plan, subquery.plan, outer)?,
                Form::Exists => self.join_exists(plan, subquery.plan, outer)?,
                Form::In { left, unknown } => {
                    let left = left.into_iter().map(outer).collect::<Result<Vec<_>>>()?;
                    self.join_in(plan, subquery.plan, left, unknown, outer)?
                }
            };
            plan = joined;
            values.push(value);
        }
        Ok((plan, values))
    }

    fn join_scalar(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        outer: &dyn Fn(Expr) -> Result<Expr>,
    ) -> Result<(LogicalPlan, Expr)> {
        if let Some(value) = as_value(&right) {
            let value = Enclosing::block(&left, outer).value(value)?;
            return Ok((left, value));
        }
        let width = left.schema.len();
        let one = has_one_row(&right);
        let (right, above) = split_above_aggregate(right);
        let right = if one || above.is_some() {
            right
        } else {
            self.single_value(right)?
        };
        let Decorrelated {
            plan: right,
            conditions,
        } = decorrelate(right, Enclosing::block(&left, outer))?;
        let on = (!conditions.is_empty()).then(|| and(conditions));
        let joined = join(left, right, JoinKind::Left, on, (None, None));
        let value = match above {
            None => joined.column(width),
            Some(above) => above.behind_join(&joined, width)?,
        };
        Ok((joined, value))
    }

    /// Checks that there is at most one row, which is what a scalar subquery may have.
    fn single_value(&mut self, right: LogicalPlan) -> Result<LogicalPlan> {
        let context = CallContext {
            grouped: false,
            filtered: false,
            distinct: false,
        };
        let value = right.column(0);
        let (function, args) = self.resolve_aggregate("SINGLE_VALUE", vec![value], context)?;
        let pending = PendingAggregate::new("SINGLE_VALUE", args, function);
        self.plan_aggregate(right, &mut GroupBy::default(), &[pending], None)
    }

    fn join_exists(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        outer: &dyn Fn(Expr) -> Result<Expr>,
    ) -> Result<(LogicalPlan, Expr)> {
        if always_has_row(&right) {
            return Ok((left, literal::boolean(true)));
        }
        let width = left.schema.len();
        let Decorrelated {
            plan: right,
            conditions,
        } = decorrelate_by_equality(right, Enclosing::block(&left, outer))?;
        let keys = equal_keys(&conditions, width);
        let columns: Vec<usize> = keys.iter().map(|(_, r)| *r).collect();
        let marked = self.distinct_marked(right, &columns)?;
        let mark = width + marked.schema.len() - 1;
        let on = keys
            .into_iter()
            .enumerate()
            .map(|(i, (l, _))| {
                compare(
                    CompareOp::Eq,
                    l,
                    marked.column(i).remap_columns(&|c| c + width),
                )
            })
            .collect::<Result<Vec<_>>>()?;
        let on = (!on.is_empty()).then(|| and(on));
        let joined = join(left, marked, JoinKind::Left, on, (None, None));
        let value = is_null(joined.column(mark), true);
        Ok((joined, value))
    }

    fn join_in(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        values: Vec<Expr>,
        unknown: Unknown,
        outer: &dyn Fn(Expr) -> Result<Expr>,
    ) -> Result<(LogicalPlan, Expr)> {
        let width = left.schema.len();
        let shown: Vec<usize> = (0..values.len()).collect();
        let Decorrelated {
            plan: right,
            conditions,
        } = decorrelate(right, Enclosing::block(&left, outer))?;
        if !conditions.is_empty() {
            return Err(
                Error::plan("A correlated IN inside OR or SELECT is not supported")
                    .hint("use it as a condition of WHERE, joined with AND"),
            );
        }
        let nullable = values.iter().any(|e| e.data_type.nullable)
            || right.schema.columns[..values.len()]
                .iter()
                .any(|c| c.data_type.nullable);
        let mut left = left;
        let mut counts = None;
        if nullable && unknown == Unknown::Null {
            // number of rows, and of rows without NULL
            let known = and(shown
                .iter()
                .map(|i| is_null(right.column(*i), true))
                .collect());
            let mark = case(
                vec![(known, literal::boolean(true))],
                literal::typed_null(&TypeKind::Boolean.nullable())?,
            )?;
            let schema = Schema::new(vec![Column::new("$known", mark.data_type.clone())]);
            let marks = right.clone().project(vec![mark], schema);
            let mut group = GroupBy::default();
            let mut pending = Vec::new();
            for args in [Vec::new(), vec![marks.column(0)]] {
                pending.push(self.count(args)?);
            }
            let counted = self.plan_aggregate(marks, &mut group, &pending, None)?;
            left = join(left, counted, JoinKind::Inner, None, (None, None));
            counts = Some((left.column(width), left.column(width + 1)));
        }
        let inner = left.schema.len();
        let marked = self.distinct_marked(right, &shown)?;
        let on = values
            .iter()
            .enumerate()
            .map(|(i, value)| {
                let other = marked.column(i).remap_columns(&|c| c + inner);
                compare(CompareOp::Eq, value.clone(), other)
            })
            .collect::<Result<Vec<_>>>()?;
        let joined = join(left, marked, JoinKind::Left, Some(and(on)), (None, None));
        let mark = joined.column(joined.schema.len() - 1);
        let found = is_null(mark, true);
        let Some((rows, known)) = counts else {
            return Ok((joined, found));
        };
        let null_left = or(values.iter().map(|v| is_null(v.clone(), false)).collect());
        let unknown = literal::typed_null(&TypeKind::Boolean.nullable())?;
        let value = case(
            vec![
                (
                    compare(CompareOp::Eq, rows.clone(), literal::bigint(0))?,
                    literal::boolean(false),
                ),
                (null_left, unknown.clone()),
                (found, literal::boolean(true)),
                (compare(CompareOp::Lt, known, rows)?, unknown),
            ],
            literal::boolean(false),
        )?;
        Ok((joined, value))
    }

    /// The distinct rows of `columns` with a last column that is never NULL.
    fn distinct_marked(&mut self, plan: LogicalPlan, columns: &[usize]) -> Result<LogicalPlan> {
        let distinct = if columns.is_empty() {
            // one row if there is any
            let mark = literal::boolean(true);
            let schema = Schema::new(vec![Column::new("$mark", TypeKind::Boolean.not_null())]);
            let marked = plan.project(vec![mark], schema);
            let mut group = GroupBy::all_columns(&marked);
            return self.plan_aggregate(marked, &mut group, &[], None);
        } else {
            let plan = plan.project_columns(columns);
            let mut group = GroupBy::all_columns(&plan);
            self.plan_aggregate(plan, &mut group, &[], None)?
        };
        let mut exprs: Vec<Expr> = (0..distinct.schema.len())
            .map(|i| distinct.column(i))
            .collect();
        exprs.push(literal::boolean(true));
        let mut schema = distinct.schema.clone();
        schema
            .columns
            .push(Column::new("$mark", TypeKind::Boolean.not_null()));
        Ok(distinct.project(exprs, schema))
    }

    /// Left-joins the subqueries of ON to the right side of the join, where Flink has them too.
    pub(super) fn join_subqueries_of_on(
        &mut self,
        right: LogicalPlan,
        subqueries: Vec<PendingSubquery>,
    ) -> Result<(LogicalPlan, Vec<Expr>)> {
        for subquery in &subqueries {
            if matches!(subquery.form, Form::In { .. }) {
                return Err(Error::plan("IN with a subquery is not allowed in ON")
                    .hint("put it into WHERE, or write it as EXISTS"));
            }
            if has_outer(&subquery.plan) {
                return Err(
                    Error::plan("A subquery in ON must not refer to the joined tables")
                        .hint("put it into WHERE"),
                );
            }
        }
        self.join_subqueries(right, subqueries, &Ok)
    }
}

/// The right side of a lateral join and what must hold between it, behind the left side's columns,
/// and the left side. Columns may follow those of the subquery.
pub(super) fn lateral_side(
    subquery: LogicalPlan,
    left: &LogicalPlan,
    kind: JoinKind,
) -> Result<(LogicalPlan, Vec<Expr>)> {
    if !matches!(kind, JoinKind::Inner | JoinKind::Left) {
        return Err(Error::plan(
            "LATERAL only supports CROSS, INNER and LEFT joins",
        ));
    }
    let Decorrelated { plan, conditions } = decorrelate(subquery, Enclosing::input(left))?;
    Ok((plan, conditions))
}

/// Brings the left side of IN and the subquery's columns to common types.
fn same_row(left: Vec<Expr>, plan: LogicalPlan) -> Result<(Vec<Expr>, LogicalPlan)> {
    if left.len() != plan.schema.len() {
        return Err(Error::plan(format!(
            "Values passed to IN operator must have compatible types: {} and {} columns",
            left.len(),
            plan.schema.len()
        )));
    }
    let mut common = Vec::new();
    for (value, column) in left.iter().zip(&plan.schema.columns) {
        let (from, to) = (&value.data_type, &column.data_type);
        let untyped = from.kind == TypeKind::Null || to.kind == TypeKind::Null;
        if from.kind.is_string() != to.kind.is_string() && !untyped {
            return Err(refusals::no_conversion_in_join(&from.kind, &to.kind));
        }
        let met = crate::types::coerce::comparison(false, from, to)
            .map_err(|why| refusals::incomparable(why, CompareOp::Eq, from, to))?;
        common.push(met.data_type);
    }
    let left = left
        .into_iter()
        .zip(&common)
        .map(|(e, t)| e.cast_to(t))
        .collect();
    Ok((left, super::query::cast_columns(plan, &common)))
}

/// The conditions, as expressions over the left side and the right side's columns that equal them.
fn equal_keys(conditions: &[Expr], width: usize) -> Vec<(Expr, usize)> {
    conditions
        .iter()
        .filter_map(|c| {
            let ExprKind::Compare {
                op: CompareOp::Eq,
                left,
                right,
            } = &c.kind
            else {
                return None;
            };
            let on_left = |e: &Expr| e.columns().iter().all(|c| *c < width);
            match (left.as_column(), right.as_column()) {
                (_, Some(r)) if r >= width && on_left(left) => Some(((**left).clone(), r - width)),
                (Some(l), _) if l >= width && on_left(right) => {
                    Some(((**right).clone(), l - width))
                }
                _ => None,
            }
        })
        .collect()
}
