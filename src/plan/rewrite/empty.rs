//! Relations that can have no rows: what a constant condition keeps out is not read at all.

use datafusion::common::ScalarValue;

use crate::expr::Expr;
use crate::plan::logical::{AggregateCall, JoinKind, LogicalNode, LogicalPlan};

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
    let rows = match &plan.node {
        LogicalNode::Filter { input, predicate } if is_never_true(predicate) || is_empty(input) => {
            Vec::new()
        }
        LogicalNode::Project { input, .. } | LogicalNode::Sort { input, .. } if is_empty(input) => {
            Vec::new()
        }
        LogicalNode::Join {
            left,
            right,
            kind: JoinKind::Inner | JoinKind::Semi,
            ..
        } if is_empty(left) || is_empty(right) => Vec::new(),
        LogicalNode::Aggregate {
            input, keys, calls, ..
        } if is_empty(input) => match keys.as_slice() {
            [] => match of_no_rows(calls) {
                Some(row) => vec![row],
                None => return plan,
            },
            _ => Vec::new(),
        },
        _ => return plan,
    };
    plan.node = LogicalNode::Values { rows };
    plan
}

/// What aggregates of no rows are, where that is known.
fn of_no_rows(calls: &[AggregateCall]) -> Option<Vec<Expr>> {
    let value = |call: &AggregateCall| {
        let value = match call.function.name() {
            "COUNT" => ScalarValue::Int64(Some(0)),
            _ if call.data_type.nullable => {
                ScalarValue::try_from(&call.data_type.to_arrow()).ok()?
            }
            _ => return None,
        };
        Some(Expr::literal(value, call.data_type.clone()))
    };
    calls.iter().map(value).collect()
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
