//! Relations that can have no rows: what a constant condition keeps out is not read at all.

use crate::expr::Expr;
use crate::plan::logical::{LogicalNode, LogicalPlan};
use datafusion::common::ScalarValue;

/// The plan with an empty relation in place of every filter that is never true, and of projections
/// and filters of those.
pub(super) fn without_empty(mut plan: LogicalPlan) -> LogicalPlan {
    for input in plan.inputs_mut() {
        let below = std::mem::replace(
            input,
            LogicalPlan::new(
                LogicalNode::Values { rows: Vec::new() },
                input.schema.clone(),
            ),
        );
        *input = without_empty(below);
    }
    let empty = match &plan.node {
        LogicalNode::Filter { input, predicate } => is_never_true(predicate) || is_empty(input),
        LogicalNode::Project { input, .. } => is_empty(input),
        _ => false,
    };
    if empty {
        plan.node = LogicalNode::Values { rows: Vec::new() };
    }
    plan
}

fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(&plan.node, LogicalNode::Values { rows } if rows.is_empty())
}

fn is_never_true(predicate: &Expr) -> bool {
    match predicate.as_literal() {
        Some(ScalarValue::Boolean(value)) => *value != Some(true),
        Some(value) => value.is_null(),
        None => false,
    }
}
