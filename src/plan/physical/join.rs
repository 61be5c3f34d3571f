//! Regular joins: keys out of the condition, what is known of each side, keys of the result.

use super::build::{calc, identity};
use super::keys::{Key, is_subset, normalized, upsert_keys};
use super::time_join::{interval_bounds, without_key_columns};
use super::{JoinSide, Planner, StreamNode, StreamPlan};
use crate::changelog::ChangelogMode;
use crate::error::Result;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::operators::join::{JoinType, UniqueKey};
use crate::plan::binder::and;
use crate::plan::logical::JoinKind;
use crate::plan::rewrite::split;
use crate::types::{Column, Schema};

/// A join condition taken apart.
pub(super) struct JoinKeys {
    /// Left input, with key expressions as extra columns at its end.
    pub(super) left: StreamPlan,
    /// Right input, likewise.
    pub(super) right: StreamPlan,
    pub(super) left_keys: Vec<usize>,
    pub(super) right_keys: Vec<usize>,
    pub(super) null_safe: Vec<bool>,
    /// The rest of the condition, over the columns of the (extended) inputs.
    pub(super) rest: Option<Expr>,
}

impl Planner<'_> {
    pub(super) fn build_join(
        &self,
        left: StreamPlan,
        right: StreamPlan,
        kind: JoinKind,
        on: Option<Expr>,
        ttl: (Option<i64>, Option<i64>),
        schema: Schema,
    ) -> Result<StreamPlan> {
        if !kind.is_semi_or_anti()
            && let Some(interval) = interval_bounds(&left.schema, &right.schema, on.as_ref())
        {
            return self.build_interval_join(left, right, kind, interval, schema);
        }
        if let Some(rest) = Self::window_join_parts(&left, &right, on.as_ref()) {
            return self.build_window_join(left, right, kind, rest, schema);
        }
        let widths = (left.schema.len(), right.schema.len());
        let keys = extract_keys(left, right, on);
        let JoinKeys {
            left,
            right,
            left_keys,
            right_keys,
            null_safe,
            rest,
        } = keys;
        let wide_left = left.schema.len();
        let mode = if matches!(kind, JoinKind::Inner | JoinKind::Semi) {
            left.mode.union(right.mode)
        } else {
            ChangelogMode::RETRACT
        };
        let unique_keys = joined_keys(&left, &right, &left_keys, &right_keys, kind);
        let output = if kind.is_semi_or_anti() {
            left.schema.clone()
        } else {
            crate::plan::binder::join_schema(&left.schema, &right.schema, kind)
        };
        let default_ttl = self.config.state_ttl();
        let side = |plan: &StreamPlan, keys: &[usize], ttl: Option<i64>| JoinSide {
            keys: keys.to_vec(),
            unique_key: input_spec(&upsert_keys(plan), keys),
            ttl: ttl.or(default_ttl),
        };
        let node = StreamNode::Join {
            join_type: join_type(kind),
            left: side(&left, &left_keys, ttl.0),
            right: side(&right, &right_keys, ttl.1),
            null_safe,
            condition: rest,
        };
        let mut plan = StreamPlan {
            node,
            inputs: vec![left, right],
            schema: output,
            mode,
            unique_keys,
        };
        // rows of a regular join come in no order of time any more
        for column in &mut plan.schema.columns {
            column.time = None;
        }
        Ok(without_key_columns(plan, widths, wide_left, kind, schema))
    }
}

/// The operator's name for a kind of join.
pub(super) fn join_type(kind: JoinKind) -> JoinType {
    match kind {
        JoinKind::Inner => JoinType::Inner,
        JoinKind::Left => JoinType::Left,
        JoinKind::Right => JoinType::Right,
        JoinKind::Full => JoinType::Full,
        JoinKind::Semi => JoinType::Semi,
        JoinKind::Anti => JoinType::Anti,
    }
}

/// Finds the equalities of a join condition. Keys that are expressions become columns.
pub(super) fn extract_keys(left: StreamPlan, right: StreamPlan, on: Option<Expr>) -> JoinKeys {
    let width = left.schema.len();
    let mut left_exprs = identity(&left.schema);
    let mut right_exprs = identity(&right.schema);
    let mut keys: Vec<(usize, usize, bool)> = Vec::new();
    let mut rest = Vec::new();
    for conjunct in on.map(split).unwrap_or_default() {
        match equality(&conjunct, width) {
            Some((l, r, null_safe)) => {
                let l = column_of(&mut left_exprs, l);
                let r = column_of(&mut right_exprs, r);
                keys.push((l, r, null_safe));
            }
            None => rest.push(conjunct),
        }
    }
    let left = extended(left, left_exprs, "$l");
    let right = extended(right, right_exprs, "$r");
    let shift = left.schema.len() - width;
    let rest = rest
        .into_iter()
        .map(|e| e.remap_columns(&|i| if i < width { i } else { i + shift }))
        .collect::<Vec<_>>();
    JoinKeys {
        left_keys: keys.iter().map(|k| k.0).collect(),
        right_keys: keys.iter().map(|k| k.1).collect(),
        null_safe: keys.iter().map(|k| k.2).collect(),
        rest: (!rest.is_empty()).then(|| and(rest)),
        left,
        right,
    }
}

/// `left = right` or `left IS NOT DISTINCT FROM right` with one input on each side; the right
/// expression is over the right input's columns.
fn equality(e: &Expr, width: usize) -> Option<(Expr, Expr, bool)> {
    let ExprKind::Compare { op, left, right } = &e.kind else {
        return None;
    };
    let null_safe = match op {
        CompareOp::Eq => false,
        CompareOp::NotDistinct => true,
        _ => return None,
    };
    if left.data_type.kind.is_approximate() {
        // 0.0 and -0.0 are equal, but two keys; NaN is a key, but equal to nothing
        return None;
    }
    let side = |e: &Expr| {
        let columns = e.columns();
        match (columns.first(), columns.last()) {
            (Some(_), Some(last)) if *last < width => Some(true),
            (Some(first), Some(_)) if *first >= width => Some(false),
            _ => None,
        }
    };
    if !left.is_deterministic() || !right.is_deterministic() {
        return None;
    }
    let shifted = |e: &Expr| e.clone().remap_columns(&|i| i - width);
    match (side(left)?, side(right)?) {
        (true, false) => Some(((**left).clone(), shifted(right), null_safe)),
        (false, true) => Some(((**right).clone(), shifted(left), null_safe)),
        _ => None,
    }
}

fn column_of(exprs: &mut Vec<Expr>, key: Expr) -> usize {
    exprs.iter().position(|e| e.same(&key)).unwrap_or_else(|| {
        exprs.push(key);
        exprs.len() - 1
    })
}

fn extended(plan: StreamPlan, exprs: Vec<Expr>, prefix: &str) -> StreamPlan {
    let width = plan.schema.len();
    if exprs.len() == width {
        return plan;
    }
    let mut schema = plan.schema.clone();
    for (i, e) in exprs.iter().enumerate().skip(width) {
        schema
            .columns
            .push(Column::new(format!("{prefix}{i}"), e.data_type.clone()));
    }
    calc(plan, None, exprs, schema)
}

/// Flink's input specs: the join key is unique, some key is, or none. `unique` are upsert keys: behind an
/// exchange the changes of a row meet again only by those.
fn input_spec(unique: &[Key], keys: &[usize]) -> UniqueKey {
    if unique.iter().any(|key| is_subset(key, keys)) {
        return UniqueKey::JoinKey;
    }
    match unique.first() {
        Some(key) => UniqueKey::Columns(key.clone()),
        None => UniqueKey::None,
    }
}

/// Unique keys of a join's result, over left columns followed by right ones.
fn joined_keys(
    left: &StreamPlan,
    right: &StreamPlan,
    left_keys: &[usize],
    right_keys: &[usize],
    kind: JoinKind,
) -> Vec<Key> {
    if kind.is_semi_or_anti() {
        return left.unique_keys.clone();
    }
    let width = left.schema.len();
    let shifted: Vec<Key> = right
        .unique_keys
        .iter()
        .map(|k| k.iter().map(|i| i + width).collect())
        .collect();
    let left_unique = left.unique_keys.iter().any(|k| is_subset(k, left_keys));
    let right_unique = right.unique_keys.iter().any(|k| is_subset(k, right_keys));
    let mut found: Vec<Key> = Vec::new();
    for l in &left.unique_keys {
        for r in &shifted {
            found.push(l.iter().chain(r).copied().collect());
        }
    }
    // each left row has at most one match: keys of the left side stay keys
    if right_unique && !kind.nulls_left() {
        found.extend(left.unique_keys.iter().cloned());
    }
    if left_unique && !kind.nulls_right() {
        found.extend(shifted);
    }
    normalized(found)
}
