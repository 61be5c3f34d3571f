//! Time attributes as types have them: an expression over a time attribute that gives a time of the
//! same type again is described as one, though no operator takes it for one.

use super::expr::time_attribute;
use crate::aggregates::AggregateFunction;
use crate::expr::{Expr, ExprKind};
use crate::plan::logical::{LogicalNode, LogicalPlan, OverFunction};
use crate::types::TimeAttribute;

/// The time attribute in the type of a column of `plan`.
pub(super) fn typed_time(plan: &LogicalPlan, column: usize) -> Option<TimeAttribute> {
    let described = plan.schema.columns.get(column)?;
    if described.time.is_some() {
        return described.time;
    }
    if !described.data_type.kind.is_timestamp() {
        return None;
    }
    let of_argument = |function: &AggregateFunction, args: &[usize], input: &LogicalPlan| {
        let keeps = matches!(
            function.name(),
            "MIN" | "MAX" | "FIRST_VALUE" | "LAST_VALUE" | "SINGLE_VALUE"
        );
        keeps.then(|| typed_time(input, *args.first()?)).flatten()
    };
    match &plan.node {
        LogicalNode::Project { input, exprs } => time_of(&exprs[column], input),
        LogicalNode::Filter { input, .. }
        | LogicalNode::Sort { input, .. }
        | LogicalNode::Rank { input, .. }
        | LogicalNode::Expand { input, .. }
        | LogicalNode::Correlate { input, .. }
        | LogicalNode::WindowTableFunction { input, .. } => typed_time(input, column),
        LogicalNode::Union { inputs } => typed_time(inputs.first()?, column),
        LogicalNode::Join { left, right, .. }
        | LogicalNode::LookupJoin { left, right, .. }
        | LogicalNode::TemporalJoin { left, right, .. } => {
            match column.checked_sub(left.schema.len()) {
                None => typed_time(left, column),
                Some(column) => typed_time(right, column),
            }
        }
        LogicalNode::Aggregate {
            input, keys, calls, ..
        }
        | LogicalNode::GroupWindowAggregate {
            input, keys, calls, ..
        } => match column.checked_sub(keys.len()) {
            None => typed_time(input, keys[column]),
            Some(i) => {
                let call = calls.get(i)?;
                of_argument(&call.function, &call.args, input)
            }
        },
        LogicalNode::Over { input, calls } => match column.checked_sub(input.schema.len()) {
            None => typed_time(input, column),
            Some(i) => {
                let call = calls.get(i)?;
                match &call.function {
                    OverFunction::Aggregate(function) => of_argument(function, &call.args, input),
                    OverFunction::Lag { .. } => typed_time(input, *call.args.first()?),
                    _ => None,
                }
            }
        },
        _ => None,
    }
}

fn time_of(e: &Expr, input: &LogicalPlan) -> Option<TimeAttribute> {
    if !e.data_type.kind.is_timestamp() {
        return None;
    }
    match &e.kind {
        ExprKind::Column(i) => typed_time(input, *i),
        ExprKind::Call { function, args } => match function.name() {
            "+" | "-" | "FLOOR" | "CEIL" | "GREATEST" | "LEAST" => {
                args.iter().find_map(|arg| time_of(arg, input))
            }
            _ => time_attribute(e, &input.schema),
        },
        ExprKind::Case {
            branches,
            otherwise,
        } => {
            let results = branches.iter().map(|(_, result)| result);
            results
                .chain([otherwise.as_ref()])
                .find_map(|result| time_of(result, input))
        }
        _ => None,
    }
}
