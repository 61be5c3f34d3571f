//! What is known of the number of rows of a subquery: none or one, one or more, one whatever there is.

use super::decorrelate::{has_outer, is_outer};
use super::{calls, literal};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::logical::{LogicalNode, LogicalPlan};

/// The value of a subquery without FROM that refers to the enclosing block.
pub(super) fn as_value(plan: &LogicalPlan) -> Option<Expr> {
    match &plan.node {
        LogicalNode::Project { input, exprs } if has_outer(plan) => match &input.node {
            LogicalNode::Values { rows } if rows.len() == 1 && rows[0].is_empty() => {
                exprs.first().cloned()
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a plan is known to have one row at most. As in Flink, nothing is known behind a
/// projection that does more than name columns.
pub(super) fn has_one_row(plan: &LogicalPlan) -> bool {
    match &plan.node {
        LogicalNode::Project { input, exprs } => {
            let mut columns = exprs.iter().enumerate();
            exprs.len() == input.schema.len()
                && columns.all(|(i, e)| e.as_column() == Some(i))
                && has_one_row(input)
        }
        LogicalNode::Filter { input, .. } => has_one_row(input),
        LogicalNode::Aggregate { keys, .. } => keys.is_empty(),
        LogicalNode::Values { rows } => rows.len() == 1,
        _ => false,
    }
}

/// Whether a plan has a row whatever its inputs hold.
pub(super) fn always_has_row(plan: &LogicalPlan) -> bool {
    match &plan.node {
        LogicalNode::Project { input, .. } => always_has_row(input),
        LogicalNode::Aggregate { keys, .. } => keys.is_empty(),
        LogicalNode::Values { rows } => !rows.is_empty(),
        LogicalNode::Union { inputs } => inputs.iter().any(always_has_row),
        _ => false,
    }
}

/// A value over the calls of an aggregate without keys.
pub(super) struct AboveAggregate {
    value: Expr,
    /// Which of the aggregate's columns count: 0, not NULL, where there is no row.
    counts: Vec<bool>,
}

impl AboveAggregate {
    /// The value where `joined` has the aggregate's columns behind the first `width`, all NULL for
    /// a row without match.
    pub(super) fn behind_join(self, joined: &LogicalPlan, width: usize) -> Result<Expr> {
        let columns = self
            .counts
            .iter()
            .enumerate()
            .map(|(i, counts)| {
                let column = joined.column(width + i);
                if *counts {
                    calls::coalesce(vec![column, literal::bigint(0)])
                } else {
                    Ok(column)
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let mut value = self.value.replace_columns(&|i, _| columns[i].clone());
        value.data_type.nullable = true;
        Ok(value)
    }
}

/// Splits a correlated subquery that is one row of aggregates into the aggregate and the value
/// above it: the value is computed behind the join with the enclosing block, where an aggregate of
/// no rows has a value too.
pub(super) fn split_above_aggregate(plan: LogicalPlan) -> (LogicalPlan, Option<AboveAggregate>) {
    fn counts(plan: &LogicalPlan) -> Option<Vec<bool>> {
        match &plan.node {
            LogicalNode::Project { input, exprs } => (!exprs.iter().any(is_outer))
                .then(|| counts(input))
                .flatten(),
            LogicalNode::Aggregate { keys, calls, .. } if keys.is_empty() => Some(
                calls
                    .iter()
                    .map(|call| call.function.name() == "COUNT")
                    .collect(),
            ),
            _ => None,
        }
    }
    let Some(counts) = counts(&plan).filter(|_| has_outer(&plan)) else {
        return (plan, None);
    };
    let mut plan = plan;
    let mut value = plan.column(0);
    while let LogicalNode::Project { input, exprs } = plan.node {
        value = value.replace_columns(&|i, _| exprs[i].clone());
        plan = *input;
    }
    (plan, Some(AboveAggregate { value, counts }))
}
