//! Who needs the old content of an updated row (`-U`), settled from the consumer down.
//!
//! An operator that keeps its input by key needs no `-U`; one that adds and subtracts does. Where the
//! consumer is content without but something on the way is not, all of it carries `-U`, and
//! `DropUpdateBefore` stands in front of the consumer. As Flink's changelog mode inference.

use super::keys::{is_subset, upsert_keys};
use super::{StreamNode, StreamPlan};
use crate::changelog::ChangelogMode;
use crate::expr::Expr;
use crate::operators::join::JoinType;
use crate::operators::rank::RankStrategy;
use crate::plan::binder::and;
use crate::plan::rewrite::split;

/// Settles the plan for a consumer that needs `-U`, or can do without.
pub(super) fn settle(plan: StreamPlan, updates_before: bool) -> StreamPlan {
    let needed = updates_before || !can_omit(&plan);
    visit(plan, needed)
}

fn drop_update_before(plan: StreamPlan) -> StreamPlan {
    StreamPlan {
        node: StreamNode::DropUpdateBefore,
        schema: plan.schema.clone(),
        mode: plan.mode.without_update_before(),
        unique_keys: plan.unique_keys.clone(),
        inputs: vec![plan],
    }
}

/// Whether the plan can give its updates without `-U`.
fn can_omit(plan: &StreamPlan) -> bool {
    if !plan.mode.has_updates() {
        return true;
    }
    match &plan.node {
        StreamNode::Calc { condition, .. } => {
            let input = plan.input();
            let by_key = condition.as_ref().is_none_or(|c| {
                let columns = c.columns();
                upsert_keys(input)
                    .iter()
                    .any(|key| is_subset(&columns, key))
            });
            by_key && can_omit(input)
        }
        StreamNode::Join { left, right, .. } => {
            let fits = |input: &StreamPlan, keys: &[usize]| {
                !input.mode.has_updates()
                    || (upsert_keys(input).iter().any(|key| is_subset(keys, key))
                        && can_omit(input))
            };
            fits(&plan.inputs[0], &left.keys) && fits(&plan.inputs[1], &right.keys)
        }
        StreamNode::TemporalJoin { .. } => can_omit(&plan.inputs[0]),
        StreamNode::LookupJoin(node) => node.keeps_rows() && can_omit(plan.input()),
        StreamNode::Union
        | StreamNode::WatermarkAssigner { .. }
        | StreamNode::Correlate { .. }
        | StreamNode::Expand { .. }
        | StreamNode::WindowTableFunction { .. }
        | StreamNode::DropUpdateBefore => plan.inputs.iter().all(can_omit),
        _ => true,
    }
}

fn visit(plan: StreamPlan, needed: bool) -> StreamPlan {
    let StreamPlan {
        node,
        inputs,
        schema,
        mode,
        unique_keys,
    } = plan;
    let rebuild = |node, inputs: Vec<StreamPlan>, mode: ChangelogMode| StreamPlan {
        node,
        inputs,
        schema: schema.clone(),
        mode,
        unique_keys: unique_keys.clone(),
    };
    let generated = ChangelogMode {
        update_before: mode.update_after && needed,
        ..mode
    };
    match node {
        StreamNode::TableSourceScan { ref source, .. } => {
            let repeats = source.changelog_mode().update_before && !mode.update_before;
            let scan = rebuild(node, inputs, mode);
            if mode.update_before && !needed {
                drop_update_before(scan)
            } else if mode.is_upsert() && (needed || repeats) {
                let mut plan = normalize(scan, None);
                plan.mode.update_before = needed;
                plan
            } else {
                scan
            }
        }
        StreamNode::Calc {
            condition,
            projection,
        } => {
            let input = only(inputs);
            let upsert_scan =
                matches!(input.node, StreamNode::TableSourceScan { .. }) && input.mode.is_upsert();
            if needed && upsert_scan && condition.is_some() {
                let normalized = normalize(input, condition);
                let mode = normalized.mode;
                return rebuild(
                    StreamNode::Calc {
                        condition: None,
                        projection,
                    },
                    vec![normalized],
                    mode,
                );
            }
            let input = visit(input, needed);
            let mode = input.mode;
            rebuild(
                StreamNode::Calc {
                    condition,
                    projection,
                },
                vec![input],
                mode,
            )
        }
        StreamNode::Union => {
            let inputs: Vec<_> = inputs.into_iter().map(|i| visit(i, needed)).collect();
            let mode = inputs
                .iter()
                .fold(ChangelogMode::APPEND, |m, i| m.union(i.mode));
            rebuild(StreamNode::Union, inputs, mode)
        }
        StreamNode::WatermarkAssigner { .. }
        | StreamNode::Correlate { .. }
        | StreamNode::LookupJoin(_)
        | StreamNode::WindowTableFunction { .. }
        | StreamNode::Expand { .. } => {
            let input = visit(only(inputs), needed);
            let mode = input.mode;
            rebuild(node, vec![input], mode)
        }
        StreamNode::Join { join_type, .. } => {
            let inputs: Vec<_> = inputs.into_iter().map(|i| visit(i, needed)).collect();
            let both = inputs[0].mode.union(inputs[1].mode);
            let mode = match join_type {
                JoinType::Inner | JoinType::Semi => both,
                _ => ChangelogMode {
                    update_before: needed && mode.update_before,
                    ..mode
                },
            };
            rebuild(node, inputs, mode)
        }
        StreamNode::TemporalJoin { .. } => {
            let mut sides = inputs.into_iter();
            let (left, right) = (sides.next(), sides.next());
            let left = left.map(|l| visit(l, needed));
            // a new version replaces the old one
            let right = right.map(|r| visit_for(r, false));
            let mode = left.as_ref().map_or(mode, |l| l.mode);
            rebuild(node, left.into_iter().chain(right).collect(), mode)
        }
        StreamNode::Rank { ref strategy, .. } => {
            let below = !matches!(strategy, RankStrategy::UpdateFast(_));
            let input = visit_for(only(inputs), below);
            rebuild(node, vec![input], generated)
        }
        _ => {
            let inputs = inputs.into_iter().map(|i| visit_for(i, true)).collect();
            rebuild(node, inputs, generated)
        }
    }
}

/// An input of an operator that needs `-U` (or explicitly not).
fn visit_for(input: StreamPlan, needed: bool) -> StreamPlan {
    if needed {
        visit(input, true)
    } else {
        settle(input, false)
    }
}

fn only(inputs: Vec<StreamPlan>) -> StreamPlan {
    inputs.into_iter().next().expect("the node has an input")
}

/// Puts `ChangelogNormalize` on an upsert source. Conditions on the key are tested before it, others
/// in it: rows that fail do not exist for the output.
fn normalize(scan: StreamPlan, condition: Option<Expr>) -> StreamPlan {
    let key = scan.unique_keys.first().cloned().unwrap_or_default();
    let (on_key, inside): (Vec<Expr>, Vec<Expr>) = condition
        .map(split)
        .unwrap_or_default()
        .into_iter()
        .partition(|c| is_subset(&c.columns(), &key));
    let schema = scan.schema.clone();
    let unique_keys = scan.unique_keys.clone();
    let mut input = match &scan.node {
        // a source that may give changes twice: the last one of a key counts
        StreamNode::TableSourceScan { source, .. } if source.changelog_mode().update_before => {
            let mode = source.changelog_mode();
            drop_update_before(StreamPlan { mode, ..scan })
        }
        _ => scan,
    };
    if !on_key.is_empty() {
        input = super::build::calc(
            input,
            Some(and(on_key)),
            super::build::identity(&schema),
            schema.clone(),
        );
    }
    StreamPlan {
        node: StreamNode::ChangelogNormalize {
            key,
            filter: (!inside.is_empty()).then(|| and(inside)),
        },
        inputs: vec![input],
        schema,
        mode: ChangelogMode::RETRACT,
        unique_keys,
    }
}

/// `update changes`, `update and delete changes`: what a mode has beyond insertions.
pub(crate) fn changes(mode: ChangelogMode) -> &'static str {
    match (mode.has_updates(), mode.delete) {
        (true, true) => "update and delete",
        (false, true) => "delete",
        _ => "update",
    }
}

/// The node that makes the updates of a plan, as EXPLAIN prints it.
pub(crate) fn describe(plan: &StreamPlan) -> String {
    let maker = plan.inputs.iter().find(|input| !input.mode.is_append());
    match maker {
        Some(input) if !makes_updates(plan) => describe(input),
        _ => crate::plan::explain::line(plan),
    }
}

fn makes_updates(plan: &StreamPlan) -> bool {
    !matches!(
        plan.node,
        StreamNode::Calc { .. }
            | StreamNode::Union
            | StreamNode::Expand { .. }
            | StreamNode::Correlate { .. }
            | StreamNode::LookupJoin(_)
            | StreamNode::WatermarkAssigner { .. }
            | StreamNode::DropUpdateBefore
    )
}
