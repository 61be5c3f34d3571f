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
use crate::types::Schema;

/// A subquery without references to the enclosing block.
pub(super) struct Decorrelated {
    /// Its first columns are those of the subquery; more may follow.
    pub(super) plan: LogicalPlan,
    /// What must hold, over the columns of the enclosing block's input followed by the plan's.
    pub(super) conditions: Vec<Expr>,
}

/// Decorrelates `plan` against a block of `width` input columns.
///
/// # Errors
/// When a reference stands where it cannot be pulled up.
pub(super) fn decorrelate(plan: LogicalPlan, width: usize) -> Result<Decorrelated> {
    if !has_outer(&plan) {
        return Ok(Decorrelated {
            plan: lower_depth(plan),
            conditions: Vec::new(),
        });
    }
    let (plan, conditions) = pull_up(plan)?;
    if has_outer(&plan) {
        return Err(unsupported());
    }
    let conditions = conditions
        .into_iter()
        .map(|condition| {
            condition.transform(&mut |e| match e.kind {
                ExprKind::Column(i) if !is_placeholder(i) => Expr::column(i + width, e.data_type),
                ExprKind::Outer { depth: 1, index } => Expr::column(index, e.data_type),
                ExprKind::Outer { depth, index } => Expr::new(
                    ExprKind::Outer {
                        depth: depth - 1,
                        index,
                    },
                    e.data_type,
                ),
                _ => e,
            })
        })
        .collect();
    Ok(Decorrelated {
        plan: lower_depth(plan),
        conditions,
    })
}

fn unsupported() -> Error {
    Error::plan("A correlated subquery of this form is not supported").hint(
        "refer to the outer query only in WHERE of the subquery, by equality under aggregates",
    )
}

fn is_outer(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Outer { depth: 1, .. }))
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

/// Whether a plan refers to the enclosing block.
pub(super) fn has_outer(plan: &LogicalPlan) -> bool {
    node_exprs(plan).into_iter().any(is_outer) || plan.inputs().into_iter().any(has_outer)
}

/// References beyond the enclosing block are one level nearer once the subquery is part of it.
fn lower_depth(mut plan: LogicalPlan) -> LogicalPlan {
    plan.map_exprs(&mut |e| {
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
    });
    plan
}

fn pull_up(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Expr>)> {
    if !has_outer(&plan) {
        return Ok((plan, Vec::new()));
    }
    let schema = plan.schema.clone();
    match plan.node {
        LogicalNode::Filter { input, predicate } => {
            let (input, mut conditions) = pull_up(*input)?;
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
        LogicalNode::Project { input, exprs } => pull_through_project(*input, exprs, schema),
        LogicalNode::Join {
            left,
            right,
            kind,
            on,
            ttl,
        } => pull_through_join(*left, *right, kind, on, ttl),
        LogicalNode::Aggregate {
            input,
            keys,
            calls,
            ttl,
        } => {
            let (input, conditions) = pull_up(*input)?;
            let (equal, columns) = equalities(&conditions)?;
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
            let (input, conditions) = pull_up(*input)?;
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
            let (input, conditions) = pull_up(*input)?;
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
) -> Result<(LogicalPlan, Vec<Expr>)> {
    if exprs.iter().any(is_outer) {
        return Err(unsupported());
    }
    let (input, conditions) = pull_up(input)?;
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
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinKind,
    on: Option<Expr>,
    ttl: (Option<i64>, Option<i64>),
) -> Result<(LogicalPlan, Vec<Expr>)> {
    let conjuncts = match on {
        Some(Expr {
            kind: ExprKind::And(all),
            ..
        }) => all,
        Some(on) => vec![on],
        None => Vec::new(),
    };
    let (outer, inner): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(is_outer);
    match kind {
        JoinKind::Inner => {}
        // what holds for the left side holds before the join and behind it
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti
            if outer.is_empty() && !has_outer(&right) => {}
        _ => return Err(unsupported()),
    }
    let (left_shown, right_shown) = (left.schema.len(), right.schema.len());
    let (left, left_conditions) = pull_up(left)?;
    let (right, right_conditions) = pull_up(right)?;
    let (width, right_width) = (left.schema.len(), right.schema.len());
    let on = inner.into_iter().map(|e| {
        e.remap_columns(&|i| {
            if i < left_shown {
                i
            } else {
                i - left_shown + width
            }
        })
    });
    let on: Vec<_> = on.collect();
    let on = (!on.is_empty()).then(|| and(on));
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
    conditions.extend(outer);
    Ok((joined.project_columns(&order), conditions))
}

/// Conditions as `outer expression = inner column`.
fn equalities(conditions: &[Expr]) -> Result<(Vec<Expr>, Vec<usize>)> {
    let mut outer = Vec::new();
    let mut columns = Vec::new();
    for condition in conditions {
        let ExprKind::Compare {
            op: CompareOp::Eq,
            left,
            right,
        } = &condition.kind
        else {
            return Err(unsupported());
        };
        let pair = match (left.as_column(), right.as_column()) {
            (_, Some(column)) if left.columns().is_empty() => Some((left, column)),
            (Some(column), _) if right.columns().is_empty() => Some((right, column)),
            _ => None,
        };
        let (side, column) = pair.ok_or_else(unsupported)?;
        outer.push((**side).clone());
        columns.push(column);
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
