//! Takes the references to the enclosing block out of a subquery's plan.
//!
//! Conditions that refer outside are pulled up to the top of the subquery, through projections,
//! joins, aggregates and Top-N, until they can stand in the condition of the join with the
//! enclosing block's input.

use super::compare::compare;
use super::expr::and;
use super::select::is_placeholder;
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::plan::logical::{JoinKind, LogicalNode, LogicalPlan, OverFunction, RankEnd};
use crate::types::{Column, Schema};

/// A subquery without references to the enclosing block.
pub(super) struct Decorrelated {
    /// Its first columns are those of the subquery; more may follow.
    pub(super) plan: LogicalPlan,
    /// What must hold, over the columns of the enclosing block's input followed by the plan's.
    pub(super) conditions: Vec<Expr>,
}

/// The block around a subquery.
#[derive(Clone, Copy)]
pub(super) struct Enclosing<'e> {
    /// What the subquery is joined with.
    plan: &'e LogicalPlan,
    /// Rewrites a column of the block's input to one of `plan`.
    column: &'e dyn Fn(Expr) -> Result<Expr>,
}

impl<'e> Enclosing<'e> {
    /// A block whose input is `plan`.
    pub(super) fn input(plan: &'e LogicalPlan) -> Self {
        Self { plan, column: &Ok }
    }

    /// A block whose input's columns are rewritten by `column` to those of `plan`.
    pub(super) fn block(plan: &'e LogicalPlan, column: &'e dyn Fn(Expr) -> Result<Expr>) -> Self {
        Self { plan, column }
    }

    /// What an expression of the subquery says within the block.
    pub(super) fn value(&self, e: Expr) -> Result<Expr> {
        self.resolve(e).map(nearer)
    }

    /// References to the block in `e`, as expressions over its plan.
    fn resolve(&self, e: Expr) -> Result<Expr> {
        let mut failed = None;
        let e = e.transform(&mut |e| match e.kind {
            ExprKind::Outer { depth: 1, index } => {
                let column = Expr::column(index, e.data_type.clone());
                (self.column)(column).unwrap_or_else(|error| {
                    failed.get_or_insert(error);
                    e
                })
            }
            _ => e,
        });
        failed.map_or(Ok(e), Err)
    }
}

/// Decorrelates `plan` against the block around it.
///
/// # Errors
/// When a reference stands where it cannot be pulled up.
pub(super) fn decorrelate(plan: LogicalPlan, enclosing: Enclosing<'_>) -> Result<Decorrelated> {
    if !has_outer(&plan) {
        return Ok(Decorrelated {
            plan,
            conditions: Vec::new(),
        });
    }
    let (plan, conditions) = pull_up(plan, enclosing)?;
    joined_with(plan, conditions, enclosing)
}

/// The same with conditions that are all `expression over the enclosing block = column`.
///
/// # Errors
/// When a reference stands where it cannot be pulled up.
pub(super) fn decorrelate_by_equality(
    plan: LogicalPlan,
    enclosing: Enclosing<'_>,
) -> Result<Decorrelated> {
    if !has_outer(&plan) {
        return decorrelate(plan, enclosing);
    }
    let (plan, conditions) = pull_up(plan, enclosing)?;
    let (plan, equal, columns) = keyed(plan, conditions, enclosing)?;
    let conditions = rebuild(equal, &columns, &plan, &|p| p)?;
    joined_with(plan, conditions, enclosing)
}

/// A plan and its conditions as seen from the enclosing block.
fn joined_with(
    plan: LogicalPlan,
    conditions: Vec<Expr>,
    enclosing: Enclosing<'_>,
) -> Result<Decorrelated> {
    if has_outer(&plan) {
        return Err(unsupported());
    }
    let width = enclosing.plan.schema.len();
    let conditions = conditions
        .into_iter()
        .map(|condition| {
            let condition = condition.transform(&mut |e| match e.kind {
                ExprKind::Column(i) if !is_placeholder(i) => Expr::column(i + width, e.data_type),
                _ => e,
            });
            enclosing.value(condition)
        })
        .collect::<Result<_>>()?;
    Ok(Decorrelated { plan, conditions })
}

fn unsupported() -> Error {
    Error::plan("A correlated subquery of this form is not supported").hint(
        "refer to the outer query only in WHERE of the subquery, by equality under LIMIT and OVER",
    )
}

/// Whether an expression refers to an enclosing block, however far out.
pub(super) fn is_outer(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Outer { .. }))
}

/// The expressions of a node.
fn node_exprs(plan: &LogicalPlan) -> Vec<&Expr> {
    use crate::plan::logical::TableCall;
    match &plan.node {
        LogicalNode::Values { rows } => rows.iter().flatten().collect(),
        LogicalNode::Project { exprs, .. } => exprs.iter().collect(),
        LogicalNode::Filter { predicate, .. } => vec![predicate],
        LogicalNode::WatermarkAssigner { watermark, .. } => vec![watermark],
        LogicalNode::Join { on, .. } => on.iter().collect(),
        LogicalNode::LookupJoin { on, .. } => on.iter().collect(),
        LogicalNode::TemporalJoin { on, .. } => vec![on],
        LogicalNode::Correlate {
            call, condition, ..
        } => {
            let mut exprs: Vec<&Expr> = condition.iter().collect();
            match call {
                TableCall::Unnest { collection, .. } => exprs.push(collection),
                TableCall::Function { args, .. } => exprs.extend(args),
            }
            exprs
        }
        _ => Vec::new(),
    }
}

/// Whether a plan refers to an enclosing block, however far out.
pub(super) fn has_outer(plan: &LogicalPlan) -> bool {
    node_exprs(plan).into_iter().any(is_outer) || plan.inputs().into_iter().any(has_outer)
}

/// References beyond the enclosing block are one level nearer once the subquery is part of it.
fn nearer(e: Expr) -> Expr {
    e.transform(&mut |e| match e.kind {
        ExprKind::Outer { depth, index } if depth > 1 => Expr::new(
            ExprKind::Outer {
                depth: depth - 1,
                index,
            },
            e.data_type,
        ),
        _ => e,
    })
}

fn pull_up(plan: LogicalPlan, enclosing: Enclosing<'_>) -> Result<(LogicalPlan, Vec<Expr>)> {
    if !has_outer(&plan) {
        return Ok((plan, Vec::new()));
    }
    let schema = plan.schema.clone();
    match plan.node {
        LogicalNode::Filter { input, predicate } => {
            let (input, mut conditions) = pull_up(*input, enclosing)?;
            let conjuncts = match predicate.kind {
                ExprKind::And(all) => all,
                _ => vec![predicate],
            };
            let (outer, inner): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(is_outer);
            conditions.extend(outer);
            let plan = if inner.is_empty() {
                input
            } else {
                input.filter(and(inner))
            };
            Ok((plan, conditions))
        }
        LogicalNode::Project { input, exprs } => {
            pull_through_project(*input, exprs, schema, enclosing)
        }
        LogicalNode::Join {
            left,
            right,
            kind,
            on,
            ttl,
        } => pull_through_join((*left, *right), kind, on, ttl, enclosing),
        LogicalNode::Aggregate {
            input,
            keys,
            calls,
            ttl,
        } => {
            let (input, conditions) = pull_up(*input, enclosing)?;
            let (input, equal, columns) = keyed(input, conditions, enclosing)?;
            let n = keys.len();
            let mut keys = keys;
            let mut positions = Vec::new();
            for column in &columns {
                positions.push(keys.iter().position(|k| k == column).unwrap_or_else(|| {
                    keys.push(*column);
                    keys.len() - 1
                }));
            }
            let mut output = input.schema.project(&keys);
            let calls_schema: Vec<_> = schema.columns[n..].to_vec();
            output.columns.extend(calls_schema);
            let added = keys.len() - n;
            let total = keys.len();
            let calls_len = calls.len();
            let aggregate = LogicalPlan::new(
                LogicalNode::Aggregate {
                    input: Box::new(input),
                    keys,
                    calls,
                    ttl,
                },
                output,
            );
            // the subquery's columns first, then the added keys
            let order: Vec<usize> = (0..n)
                .chain(total..total + calls_len)
                .chain(n..total)
                .collect();
            let plan = aggregate.project_columns(&order);
            let place = |p: usize| if p < n { p } else { p + calls_len };
            debug_assert!(added <= positions.len());
            let conditions = rebuild(equal, &positions, &plan, &place)?;
            Ok((plan, conditions))
        }
        LogicalNode::Sort {
            input,
            keys,
            offset,
            fetch,
        } => {
            let (input, conditions) = pull_up(*input, enclosing)?;
            let Some(fetch) = fetch else {
                return Ok((input, conditions));
            };
            let (equal, columns) = equalities(&conditions)?;
            let positions = columns;
            let output = input.schema.clone();
            let plan = LogicalPlan::new(
                LogicalNode::Rank {
                    input: Box::new(input),
                    function: OverFunction::RowNumber,
                    partition: positions.clone(),
                    order: keys,
                    start: offset + 1,
                    end: Some(RankEnd::Constant(offset + fetch)),
                    output_number: false,
                },
                output,
            );
            let conditions = rebuild(equal, &positions, &plan, &|p| p)?;
            Ok((plan, conditions))
        }
        LogicalNode::Over { input, mut calls } => {
            let (input, conditions) = pull_up(*input, enclosing)?;
            let (equal, columns) = equalities(&conditions)?;
            for call in &mut calls {
                call.partition.extend(columns.iter().copied());
            }
            let mut output = input.schema.clone();
            output
                .columns
                .extend(schema.columns[schema.len() - calls.len()..].iter().cloned());
            let shown = schema.len() - calls.len();
            let grown = input.schema.len();
            let calls_len = calls.len();
            let over = LogicalPlan::new(
                LogicalNode::Over {
                    input: Box::new(input),
                    calls,
                },
                output,
            );
            let order: Vec<usize> = (0..shown)
                .chain(grown..grown + calls_len)
                .chain(shown..grown)
                .collect();
            let plan = over.project_columns(&order);
            let place = |p: usize| if p < shown { p } else { p + calls_len };
            let conditions = rebuild(equal, &columns, &plan, &place)?;
            Ok((plan, conditions))
        }
        _ => Err(unsupported()),
    }
}

fn pull_through_project(
    input: LogicalPlan,
    exprs: Vec<Expr>,
    schema: Schema,
    enclosing: Enclosing<'_>,
) -> Result<(LogicalPlan, Vec<Expr>)> {
    if exprs.iter().any(is_outer) {
        return Err(unsupported());
    }
    let (input, conditions) = pull_up(input, enclosing)?;
    let mut exprs = exprs;
    let mut schema = schema;
    let mut place = |column: usize| -> usize {
        exprs
            .iter()
            .position(|e| e.as_column() == Some(column))
            .unwrap_or_else(|| {
                exprs.push(input.column(column));
                schema.columns.push(input.schema.columns[column].clone());
                exprs.len() - 1
            })
    };
    let conditions: Vec<Expr> = conditions
        .into_iter()
        .map(|condition| {
            condition.transform(&mut |e| match e.kind {
                ExprKind::Column(i) => Expr::column(place(i), e.data_type),
                _ => e,
            })
        })
        .collect();
    Ok((input.project(exprs, schema), conditions))
}

fn pull_through_join(
    (left, right): (LogicalPlan, LogicalPlan),
    kind: JoinKind,
    on: Option<Expr>,
    ttl: (Option<i64>, Option<i64>),
    enclosing: Enclosing<'_>,
) -> Result<(LogicalPlan, Vec<Expr>)> {
    let conjuncts = match on {
        Some(Expr {
            kind: ExprKind::And(all),
            ..
        }) => all,
        Some(on) => vec![on],
        None => Vec::new(),
    };
    // what holds for the left side holds before the join and behind it
    match kind {
        JoinKind::Inner => {}
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti if !has_outer(&right) => {}
        _ => return Err(unsupported()),
    }
    let (left_shown, right_shown) = (left.schema.len(), right.schema.len());
    let (left, left_conditions) = pull_up(left, enclosing)?;
    let (right, right_conditions) = pull_up(right, enclosing)?;
    let (width, right_width) = (left.schema.len(), right.schema.len());
    let (outer, inner): (Vec<_>, Vec<_>) = conjuncts
        .into_iter()
        .map(|e| {
            let e = e.remap_columns(&|i| {
                if i < left_shown {
                    i
                } else {
                    i - left_shown + width
                }
            });
            // of the left side's rows only those stay for which its conditions hold
            match kind {
                JoinKind::Inner => e,
                _ => e.transform(&mut |e| known_column(&left_conditions, &e).unwrap_or(e)),
            }
        })
        .partition(is_outer);
    if kind != JoinKind::Inner && !outer.is_empty() {
        return Err(unsupported());
    }
    let on = (!inner.is_empty()).then(|| and(inner));
    let joined = super::from::join(left, right, kind, on, ttl);
    if kind.is_semi_or_anti() {
        return Ok((joined, left_conditions));
    }
    // the columns of both sides first, then those that were added to either
    let order: Vec<usize> = (0..left_shown)
        .chain(width..width + right_shown)
        .chain(left_shown..width)
        .chain(width + right_shown..width + right_width)
        .collect();
    let place = |at: usize| order.iter().position(|i| *i == at).unwrap_or(at);
    let mut conditions: Vec<Expr> = left_conditions
        .into_iter()
        .map(|c| c.remap_columns(&place))
        .collect();
    conditions.extend(
        right_conditions
            .into_iter()
            .map(|c| c.remap_columns(&|i| place(i + width))),
    );
    conditions.extend(outer.into_iter().map(|c| c.remap_columns(&place)));
    Ok((joined.project_columns(&order), conditions))
}

/// `input` with columns that equal expressions over the enclosing block and say all that
/// `conditions` do: the plan, the expressions, the columns.
fn keyed(
    input: LogicalPlan,
    conditions: Vec<Expr>,
    enclosing: Enclosing<'_>,
) -> Result<(LogicalPlan, Vec<Expr>, Vec<usize>)> {
    let width = input.schema.len();
    let mut exprs: Vec<Expr> = (0..width).map(|i| input.column(i)).collect();
    let mut schema = input.schema.clone();
    let (mut equal, mut columns, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for condition in &conditions {
        let Some((outer, inner)) = as_equality(condition) else {
            others.push(condition.clone());
            continue;
        };
        columns.push(inner.as_column().unwrap_or_else(|| {
            let name = format!("$f{}", exprs.len());
            schema
                .columns
                .push(Column::new(name, inner.data_type.clone()));
            exprs.push(inner.clone());
            exprs.len() - 1
        }));
        equal.push(outer.clone());
    }
    // where a column of the block is known by equality, other conditions can do without it
    let others: Vec<Expr> = others
        .into_iter()
        .map(|e| e.transform(&mut |e| known_column(&conditions, &e).unwrap_or(e)))
        .collect();
    if others.iter().any(is_outer) {
        return joined_with_values(input, conditions, enclosing);
    }
    let input = if others.is_empty() {
        input
    } else {
        input.filter(and(others))
    };
    let input = if exprs.len() > width {
        input.project(exprs, schema)
    } else {
        input
    };
    Ok((input, equal, columns))
}

/// Joins `input` with the distinct values of the block's columns that `conditions` refer to.
fn joined_with_values(
    input: LogicalPlan,
    conditions: Vec<Expr>,
    enclosing: Enclosing<'_>,
) -> Result<(LogicalPlan, Vec<Expr>, Vec<usize>)> {
    if has_outer(enclosing.plan) {
        return Err(unsupported());
    }
    let mut outer: Vec<Expr> = Vec::new();
    for condition in &conditions {
        condition.any(&mut |e| {
            if as_outer(e).is_some() && !outer.iter().any(|known| known.same(e)) {
                outer.push(e.clone());
            }
            false
        });
    }
    let mut schema = Schema::default();
    let mut values = Vec::new();
    for (i, column) in outer.iter().enumerate() {
        let value = enclosing.resolve(column.clone())?;
        let name = value.as_column().map_or_else(
            || format!("$f{i}"),
            |c| enclosing.plan.schema.columns[c].name.clone(),
        );
        schema
            .columns
            .push(Column::new(name, value.data_type.clone()));
        values.push(value);
    }
    let distinct = LogicalPlan::new(
        LogicalNode::Aggregate {
            keys: (0..values.len()).collect(),
            input: Box::new(enclosing.plan.clone().project(values, schema.clone())),
            calls: Vec::new(),
            ttl: None,
        },
        schema,
    );
    let width = input.schema.len();
    let on = conditions
        .into_iter()
        .map(|condition| {
            condition.transform(&mut |e| match outer.iter().position(|o| o.same(&e)) {
                Some(i) => Expr::column(width + i, e.data_type),
                None => e,
            })
        })
        .collect();
    let columns = (width..width + outer.len()).collect();
    let joined = super::from::join(
        input,
        distinct,
        JoinKind::Inner,
        Some(and(on)),
        (None, None),
    );
    Ok((joined, outer, columns))
}

/// The column that a reference to the enclosing block equals by one of `conditions`.
fn known_column(conditions: &[Expr], e: &Expr) -> Option<Expr> {
    let index = as_outer(e)?;
    conditions.iter().find_map(|condition| {
        let (outer, inner) = as_equality(condition)?;
        (as_outer(outer) == Some(index)).then(|| inner.clone())
    })
}

fn as_outer(e: &Expr) -> Option<usize> {
    match e.kind {
        ExprKind::Outer { depth: 1, index } => Some(index),
        _ => None,
    }
}

/// A condition as an expression over the enclosing block and one over the subquery that are equal.
fn as_equality(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let ExprKind::Compare {
        op: CompareOp::Eq,
        left,
        right,
    } = &condition.kind
    else {
        return None;
    };
    let outer = |e: &Expr| is_outer(e) && e.columns().is_empty();
    if outer(left) && !is_outer(right) {
        Some((left, right))
    } else if outer(right) && !is_outer(left) {
        Some((right, left))
    } else {
        None
    }
}

/// Conditions as `outer expression = inner column`.
fn equalities(conditions: &[Expr]) -> Result<(Vec<Expr>, Vec<usize>)> {
    let mut outer = Vec::new();
    let mut columns = Vec::new();
    for condition in conditions {
        let (side, inner) = as_equality(condition).ok_or_else(unsupported)?;
        columns.push(inner.as_column().ok_or_else(unsupported)?);
        outer.push(side.clone());
    }
    Ok((outer, columns))
}

fn rebuild(
    outer: Vec<Expr>,
    positions: &[usize],
    plan: &LogicalPlan,
    place: &dyn Fn(usize) -> usize,
) -> Result<Vec<Expr>> {
    outer
        .into_iter()
        .zip(positions)
        .map(|(side, p)| compare(CompareOp::Eq, side, plan.column(place(*p))))
        .collect()
}
