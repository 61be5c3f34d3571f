//! Unique keys: which columns no two rows of a node's current table agree in.
//!
//! An *upsert key* is a unique key that also tells, behind every exchange on the way, which changes
//! belong together: one that holds the columns by which rows were spread.

use super::{StreamNode, StreamPlan};
use crate::expr::{Expr, ExprKind};
use crate::types::TypeKind;

/// Column positions, ascending. The empty key says that there is at most one row.
pub type Key = Vec<usize>;

/// The keys through a projection: those whose columns all survive, as they are or by a cast that
/// maps different values to different values.
///
/// As in Flink, no key is known where all columns are computed, not even that of a single row.
pub(super) fn through_projection(keys: &[Key], projection: &[Expr]) -> Vec<Key> {
    let mut found = Vec::new();
    if projection.iter().all(|e| injective(e).is_none()) {
        return found;
    }
    for key in keys {
        // every column can survive in several places: the first will do
        let mapped: Option<Key> = key
            .iter()
            .map(|column| {
                projection
                    .iter()
                    .position(|e| injective(e) == Some(*column))
            })
            .collect();
        found.extend(mapped);
    }
    normalized(found)
}

/// The column that the expression is one-to-one with.
fn injective(e: &Expr) -> Option<usize> {
    match &e.kind {
        ExprKind::Column(i) => Some(*i),
        ExprKind::Cast { input, .. } => {
            let (from, to) = (&input.data_type.kind, &e.data_type.kind);
            let wider = match (from, to) {
                (a, b) if a == b => true,
                (a, b) if a.is_integer() && b.is_integer() => a.as_decimal() <= b.as_decimal(),
                (a, TypeKind::VarChar(n)) if a.is_string() => a.length() <= Some(*n),
                (a, TypeKind::VarChar(_)) => a.is_integer() || *a == TypeKind::Boolean,
                _ => false,
            };
            if wider {
                return injective(input);
            }
            // there and back again
            match &input.kind {
                ExprKind::Cast { input: inner, .. }
                    if inner.data_type.kind == *to && injective(input).is_some() =>
                {
                    injective(inner)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Each key sorted, without repetition, and none that holds another one.
pub(super) fn normalized(keys: Vec<Key>) -> Vec<Key> {
    let mut keys: Vec<Key> = keys
        .into_iter()
        .map(|mut key| {
            key.sort_unstable();
            key.dedup();
            key
        })
        .collect();
    keys.sort_by(|a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
    let mut kept: Vec<Key> = Vec::new();
    for key in keys {
        if !kept.iter().any(|k| is_subset(k, &key)) {
            kept.push(key);
        }
    }
    kept
}

/// Whether every column of `a` is in `b`.
pub(super) fn is_subset(a: &[usize], b: &[usize]) -> bool {
    a.iter().all(|x| b.contains(x))
}

/// Whether both have the same columns, in any order.
pub(super) fn is_same_set(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && is_subset(a, b)
}

/// The keys that hold all of `columns`: those that survive an exchange by `columns`.
pub(super) fn behind_exchange(keys: &[Key], columns: &[usize]) -> Vec<Key> {
    keys.iter()
        .filter(|key| is_subset(columns, key))
        .cloned()
        .collect()
}

/// The positions in a grouping of a plan's columns whose values are not the same in all rows.
pub(super) fn without_constants(plan: &StreamPlan, columns: &[usize]) -> Key {
    let constant = |column: usize| match &plan.node {
        StreamNode::Calc { projection, .. } => {
            let e = &projection[column];
            e.columns().is_empty() && e.is_deterministic()
        }
        _ => false,
    };
    (0..columns.len())
        .filter(|i| !constant(columns[*i]))
        .collect()
}

/// Whether no two rows of a plan agree in `columns`, as far as Flink knows it when it looks for
/// aggregates of single rows: a Top-N has the keys of its input only, and a cast has none.
pub(super) fn are_unique(plan: &StreamPlan, columns: &[usize]) -> bool {
    match &plan.node {
        StreamNode::Calc { projection, .. } => {
            let below: Key = columns
                .iter()
                .filter_map(|i| projection[*i].as_column())
                .collect();
            !below.is_empty() && are_unique(plan.input(), &below)
        }
        StreamNode::Rank { .. }
        | StreamNode::Deduplicate { .. }
        | StreamNode::WindowRank { .. }
        | StreamNode::WindowDeduplicate { .. } => are_unique(plan.input(), columns),
        _ => plan.unique_keys.iter().any(|key| is_subset(key, columns)),
    }
}

/// The upsert keys of a plan's output.
pub(crate) fn upsert_keys(plan: &StreamPlan) -> Vec<Key> {
    match &plan.node {
        StreamNode::Calc { projection, .. } => {
            through_projection(&upsert_keys(plan.input()), projection)
        }
        StreamNode::WatermarkAssigner { .. }
        | StreamNode::DropUpdateBefore
        | StreamNode::ConstraintEnforcer
        | StreamNode::ChangelogNormalize { .. } => upsert_keys(plan.input()),
        StreamNode::LookupJoin(node) if node.unique => upsert_keys(plan.input()),
        StreamNode::Join { left, right, .. } => {
            let (l, r) = (&plan.inputs[0], &plan.inputs[1]);
            let left_keys = behind_exchange(&upsert_keys(l), &left.keys);
            let right_keys = behind_exchange(&upsert_keys(r), &right.keys);
            let left_only = plan.schema.len() == l.schema.len();
            if left_only && right.keys.len() == left.keys.len() && is_left_only(plan) {
                return left_keys;
            }
            let known = &plan.unique_keys;
            let width = l.schema.len();
            let mut found: Vec<Key> = Vec::new();
            for a in &left_keys {
                if known.contains(a) {
                    found.push(a.clone());
                }
                for b in &right_keys {
                    found.push(
                        a.iter()
                            .copied()
                            .chain(b.iter().map(|i| i + width))
                            .collect(),
                    );
                }
            }
            for b in &right_keys {
                let shifted: Key = b.iter().map(|i| i + width).collect();
                if known.contains(&shifted) {
                    found.push(shifted);
                }
            }
            normalized(found)
        }
        StreamNode::Rank { partition, .. } | StreamNode::Deduplicate { key: partition, .. } => {
            let width = plan.input().schema.len();
            let mut found = behind_exchange(&upsert_keys(plan.input()), partition);
            // keys that the operator itself gives
            found.extend(
                plan.unique_keys
                    .iter()
                    .filter(|k| **k == *partition || k.contains(&width))
                    .cloned(),
            );
            normalized(found)
        }
        // Flink has no keys for an aggregate of a windowing table function, and takes those of a
        // window's Top-N for keys without the window.
        StreamNode::WindowAggregate { emit: None, .. } => Vec::new(),
        StreamNode::WindowRank {
            partition,
            start,
            end,
            output_number,
            ..
        } => {
            if (*start, *end) == (1, 1) {
                return normalized(vec![partition.clone()]);
            }
            let mut found = behind_exchange(&upsert_keys(plan.input()), partition);
            if *output_number {
                let number = plan.schema.len() - 1;
                found.push(partition.iter().copied().chain([number]).collect());
            }
            normalized(found)
        }
        StreamNode::OverAggregate { partition, .. } => {
            behind_exchange(&upsert_keys(plan.input()), partition)
        }
        StreamNode::TemporalJoin { keys, .. } => {
            behind_exchange(&upsert_keys(plan.input()), &keys.left)
        }
        StreamNode::TemporalSort { .. } => upsert_keys(plan.input()),
        _ => plan.unique_keys.clone(),
    }
}

fn is_left_only(plan: &StreamPlan) -> bool {
    matches!(&plan.node, StreamNode::Join { join_type, .. } if join_type.is_left_only())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_minimal_keys_only() {
        let keys = normalized(vec![vec![2, 1], vec![1], vec![3, 0]]);
        assert_eq!(keys, vec![vec![1], vec![0, 3]]);
    }

    #[test]
    fn a_key_survives_a_projection_of_its_columns() {
        let column = |i| Expr::column(i, TypeKind::Int.nullable());
        let keys = through_projection(&[vec![0], vec![1, 2]], &[column(2), column(1)]);
        assert_eq!(keys, vec![vec![0, 1]]);
    }
}
