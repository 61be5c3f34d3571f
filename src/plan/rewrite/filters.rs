//! Moves predicates towards the sources, as far as Flink does, and turns filters on ROW_NUMBER into
//! Top-N.

use datafusion::common::ScalarValue;
use indexmap::IndexMap;

use crate::expr::{CompareOp, Expr, ExprKind};
use crate::plan::binder::{and, join_schema};
use crate::plan::logical::{JoinKind, LogicalNode, LogicalPlan, OverFunction, RankEnd};
use crate::types::Schema;

/// Pushes all filters of `plan` down.
pub(super) fn push_down(plan: LogicalPlan) -> LogicalPlan {
    push(plan, Vec::new())
}

/// `plan` filtered by all of `conjuncts`, pushed down as far as they go.
fn push(plan: LogicalPlan, mut conjuncts: Vec<Expr>) -> LogicalPlan {
    let LogicalPlan { node, schema } = plan;
    match node {
        LogicalNode::Filter { input, predicate } => {
            let mut all = split(predicate);
            all.append(&mut conjuncts);
            push(*input, all)
        }
        LogicalNode::Project { input, exprs } => {
            let (down, stay): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(|c| {
                c.is_deterministic() && c.columns().iter().all(|i| exprs[*i].is_deterministic())
            });
            let down = down
                .into_iter()
                .map(|c| c.replace_columns(&|i, _| exprs[i].clone()))
                .collect();
            let plan = push(*input, down).project(exprs, schema);
            filtered(plan, stay)
        }
        LogicalNode::Join {
            left,
            right,
            kind,
            on,
            ttl,
        } => push_join(*left, *right, kind, on, ttl, conjuncts),
        LogicalNode::LookupJoin {
            left,
            right,
            kind,
            on,
            hint,
        } => push_lookup_join(*left, *right, kind, on, hint, conjuncts),
        LogicalNode::Union { inputs } => {
            let inputs = inputs
                .into_iter()
                .map(|input| push(input, conjuncts.clone()))
                .collect();
            LogicalPlan::new(LogicalNode::Union { inputs }, schema)
        }
        LogicalNode::Aggregate {
            input,
            keys,
            calls,
            ttl,
        } => {
            let on_keys = |c: &Expr| {
                let columns = c.columns();
                !columns.is_empty() && columns.iter().all(|i| *i < keys.len())
            };
            let (down, stay): (Vec<_>, Vec<_>) = conjuncts
                .into_iter()
                .partition(|c| c.is_deterministic() && on_keys(c));
            let down = down
                .into_iter()
                .map(|c| c.remap_columns(&|i| keys[i]))
                .collect();
            let input = Box::new(push(*input, down));
            filtered(
                LogicalPlan::new(
                    LogicalNode::Aggregate {
                        input,
                        keys,
                        calls,
                        ttl,
                    },
                    schema,
                ),
                stay,
            )
        }
        LogicalNode::Correlate {
            input,
            call,
            kind,
            condition,
        } => {
            let width = input.schema.len();
            let (down, stay): (Vec<_>, Vec<_>) = conjuncts
                .into_iter()
                .partition(|c| c.is_deterministic() && c.columns().iter().all(|i| *i < width));
            let input = Box::new(push(*input, down));
            filtered(
                LogicalPlan::new(
                    LogicalNode::Correlate {
                        input,
                        call,
                        kind,
                        condition,
                    },
                    schema,
                ),
                stay,
            )
        }
        LogicalNode::Over { input, calls } => {
            let over = LogicalPlan::new(
                LogicalNode::Over {
                    input: Box::new(push(*input, Vec::new())),
                    calls,
                },
                schema,
            );
            as_rank(over, conjuncts)
        }
        node => {
            let mut plan = LogicalPlan::new(node, schema);
            for input in plan.inputs_mut() {
                let taken = std::mem::replace(
                    input,
                    LogicalPlan::new(LogicalNode::Values { rows: Vec::new() }, Default::default()),
                );
                *input = push(taken, Vec::new());
            }
            filtered(plan, conjuncts)
        }
    }
}

fn filtered(plan: LogicalPlan, conjuncts: Vec<Expr>) -> LogicalPlan {
    let kept: Vec<Expr> = conjuncts.into_iter().filter(|c| !is_true(c)).collect();
    if kept.is_empty() {
        plan
    } else {
        plan.filter(and(kept))
    }
}

fn is_true(e: &Expr) -> bool {
    matches!(e.as_literal(), Some(ScalarValue::Boolean(Some(true))))
}

/// The conjuncts of a predicate; of `NOT (a < b OR ..)` the opposites of its parts.
pub(crate) fn split(predicate: Expr) -> Vec<Expr> {
    let data_type = predicate.data_type;
    match predicate.kind {
        ExprKind::And(all) => all.into_iter().flat_map(split).collect(),
        ExprKind::Not(inner) => match opposites(&inner) {
            Some(all) => all,
            None => vec![Expr::new(ExprKind::Not(inner), data_type)],
        },
        kind => vec![Expr::new(kind, data_type)],
    }
}

/// Comparisons that all hold where `e`, a comparison or several in an OR, does not.
fn opposites(e: &Expr) -> Option<Vec<Expr>> {
    match &e.kind {
        ExprKind::Or(all) => {
            let opposites: Option<Vec<_>> = all.iter().map(opposites).collect();
            Some(opposites?.concat())
        }
        ExprKind::Compare { op, left, right } if !left.data_type.kind.is_approximate() => {
            let op = match op {
                CompareOp::Lt => CompareOp::GtEq,
                CompareOp::LtEq => CompareOp::Gt,
                CompareOp::Gt => CompareOp::LtEq,
                CompareOp::GtEq => CompareOp::Lt,
                _ => return None,
            };
            let (left, right) = (left.clone(), right.clone());
            let kind = ExprKind::Compare { op, left, right };
            Some(vec![Expr::new(kind, e.data_type.clone())])
        }
        _ => None,
    }
}

fn push_join(
    left: LogicalPlan,
    right: LogicalPlan,
    mut kind: JoinKind,
    on: Option<Expr>,
    ttl: (Option<i64>, Option<i64>),
    conjuncts: Vec<Expr>,
) -> LogicalPlan {
    let width = left.schema.len();
    let on_left = |c: &Expr| c.columns().iter().all(|i| *i < width);
    let on_right = |c: &Expr| {
        let columns = c.columns();
        !columns.is_empty() && columns.iter().all(|i| *i >= width)
    };
    // a condition that no row of NULLs passes makes an outer join an inner one on that side
    for c in &conjuncts {
        if rejects_nulls(c, &|i| i < width) {
            kind = match kind {
                JoinKind::Right => JoinKind::Inner,
                JoinKind::Full => JoinKind::Left,
                other => other,
            };
        }
        if rejects_nulls(c, &|i| i >= width) {
            kind = match kind {
                JoinKind::Left => JoinKind::Inner,
                JoinKind::Full => JoinKind::Right,
                other => other,
            };
        }
    }
    let mut to_left = Vec::new();
    let mut to_right = Vec::new();
    let mut stay = Vec::new();
    let mut condition = Vec::new();
    for c in conjuncts {
        let fixed = c.is_deterministic();
        if fixed && on_left(&c) && !kind.nulls_left() {
            to_left.push(c);
        } else if fixed && on_right(&c) && !kind.nulls_right() && !kind.is_semi_or_anti() {
            to_right.push(c);
        } else if fixed && kind == JoinKind::Inner {
            condition.push(c);
        } else {
            stay.push(c);
        }
    }
    for c in on.map(split).unwrap_or_default() {
        let fixed = c.is_deterministic();
        let left_too = matches!(kind, JoinKind::Inner | JoinKind::Right | JoinKind::Semi);
        let right_too = matches!(
            kind,
            JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti
        );
        if is_true(&c) {
            continue;
        }
        if fixed && left_too && on_left(&c) && !c.columns().is_empty() {
            to_left.push(c);
        } else if fixed && right_too && on_right(&c) {
            to_right.push(c);
        } else {
            condition.push(c);
        }
    }
    let to_right = to_right
        .into_iter()
        .map(|c| c.remap_columns(&|i| i - width))
        .collect();
    let left = push(left, to_left);
    let right = push(right, to_right);
    let schema = join_schema(&left.schema, &right.schema, kind);
    let on = (!condition.is_empty()).then(|| and(condition));
    let node = LogicalNode::Join {
        left: Box::new(left),
        right: Box::new(right),
        kind,
        on,
        ttl,
    };
    filtered(LogicalPlan::new(node, schema), stay)
}

/// Conditions on the left side go below a lookup join; of an inner one all become its condition.
fn push_lookup_join(
    left: LogicalPlan,
    right: LogicalPlan,
    mut kind: JoinKind,
    on: Option<Expr>,
    hint: IndexMap<String, String>,
    conjuncts: Vec<Expr>,
) -> LogicalPlan {
    let width = left.schema.len();
    if conjuncts.iter().any(|c| rejects_nulls(c, &|i| i >= width)) {
        kind = JoinKind::Inner;
    }
    let on_left = |c: &Expr| {
        let columns = c.columns();
        !columns.is_empty() && columns.iter().all(|i| *i < width)
    };
    let (mut to_left, mut stay, mut condition) = (Vec::new(), Vec::new(), Vec::new());
    for c in conjuncts {
        match c.is_deterministic() {
            true if on_left(&c) => to_left.push(c),
            true if kind == JoinKind::Inner => condition.push(c),
            _ => stay.push(c),
        }
    }
    for c in on.map(split).unwrap_or_default() {
        if is_true(&c) {
            continue;
        }
        if kind == JoinKind::Inner && c.is_deterministic() && on_left(&c) {
            to_left.push(c);
        } else {
            condition.push(c);
        }
    }
    let left = push(left, to_left);
    let right = push(right, Vec::new());
    let schema = join_schema(&left.schema, &right.schema, kind);
    let node = LogicalNode::LookupJoin {
        left: Box::new(left),
        right: Box::new(right),
        kind,
        on: (!condition.is_empty()).then(|| and(condition)),
        hint,
    };
    filtered(LogicalPlan::new(node, schema), stay)
}

/// Whether the predicate cannot be true when all of `columns` are NULL.
fn rejects_nulls(e: &Expr, columns: &dyn Fn(usize) -> bool) -> bool {
    let strict = |e: &Expr| null_if_null(e, columns);
    match &e.kind {
        ExprKind::Compare {
            op: CompareOp::Distinct | CompareOp::NotDistinct,
            ..
        } => false,
        ExprKind::Compare { left, right, .. } => strict(left) || strict(right),
        ExprKind::IsNull {
            input,
            negated: true,
        } => strict(input),
        ExprKind::And(all) => all.iter().any(|e| rejects_nulls(e, columns)),
        ExprKind::Or(all) => all.iter().all(|e| rejects_nulls(e, columns)),
        ExprKind::Not(inner) => strict(inner),
        ExprKind::Column(i) => columns(*i),
        _ => false,
    }
}

/// Whether the value is NULL when all of `columns` are.
fn null_if_null(e: &Expr, columns: &dyn Fn(usize) -> bool) -> bool {
    match &e.kind {
        ExprKind::Column(i) => columns(*i),
        ExprKind::Cast { input, .. } | ExprKind::Field { input, .. } => {
            null_if_null(input, columns)
        }
        ExprKind::Call { function, args } => {
            matches!(function.name(), "+" | "-" | "*" | "/" | "%" | "||")
                && args.iter().any(|a| null_if_null(a, columns))
        }
        ExprKind::Compare { op, left, right } => {
            !matches!(op, CompareOp::Distinct | CompareOp::NotDistinct)
                && (null_if_null(left, columns) || null_if_null(right, columns))
        }
        _ => false,
    }
}

/// `Over` with a single ROW_NUMBER, RANK or DENSE_RANK, filtered by a range of it: a Top-N.
fn as_rank(plan: LogicalPlan, conjuncts: Vec<Expr>) -> LogicalPlan {
    let LogicalNode::Over { input, calls } = &plan.node else {
        return filtered(plan, conjuncts);
    };
    let [call] = calls.as_slice() else {
        return filtered(plan, conjuncts);
    };
    let row_number = matches!(call.function, OverFunction::RowNumber);
    let ranks = matches!(call.function, OverFunction::Rank | OverFunction::DenseRank);
    if !(row_number || ranks) || call.order.is_empty() {
        return filtered(plan, conjuncts);
    }
    let number = input.schema.len();
    let mut bounded = false;
    let mut start = 1u64;
    let mut end: Option<RankEnd> = None;
    let mut rest = Vec::new();
    for c in conjuncts {
        match bound(&c, number) {
            Some((CompareOp::Eq, Bound::Constant(n))) => {
                start = start.max(n.max(0).unsigned_abs());
                end = Some(tighter(end, n));
            }
            Some((CompareOp::LtEq, Bound::Constant(n))) => end = Some(tighter(end, n)),
            Some((CompareOp::Lt, Bound::Constant(n))) => {
                end = Some(tighter(end, n.saturating_sub(1)));
            }
            Some((CompareOp::GtEq, Bound::Constant(n))) => {
                bounded = true;
                start = start.max(n.max(1).unsigned_abs());
            }
            Some((CompareOp::Gt, Bound::Constant(n))) => {
                bounded = true;
                start = start.max(n.saturating_add(1).max(1).unsigned_abs());
            }
            Some((CompareOp::LtEq, Bound::Column(i))) if end.is_none() => {
                end = Some(RankEnd::Variable(i));
            }
            // not the row with the number itself: that is filtered behind
            Some((CompareOp::Lt, Bound::Column(i))) if end.is_none() => {
                end = Some(RankEnd::Variable(i));
                rest.push(c);
            }
            _ => rest.push(c),
        }
    }
    if end.is_none() && !bounded {
        return filtered(plan, rest);
    }
    let rank = |output_number: bool, schema: Schema| {
        let node = LogicalNode::Rank {
            input: input.clone(),
            function: call.function.clone(),
            partition: call.partition.clone(),
            order: call.order.clone(),
            start,
            end: end.clone(),
            output_number,
        };
        LogicalPlan::new(node, schema)
    };
    // the number of a single row is known
    if end == Some(RankEnd::Constant(start)) {
        let plan_schema = plan.schema.clone();
        let rank = rank(false, input.schema.clone());
        let mut exprs: Vec<Expr> = (0..number).map(|i| rank.column(i)).collect();
        exprs.push(Expr::literal(
            ScalarValue::Int64(i64::try_from(start).ok()),
            plan_schema.columns[number].data_type.clone(),
        ));
        return filtered(rank.project(exprs, plan_schema), rest);
    }
    filtered(rank(true, plan.schema.clone()), rest)
}

enum Bound {
    Constant(i64),
    Column(usize),
}

fn tighter(end: Option<RankEnd>, n: i64) -> RankEnd {
    let n = n.max(0).unsigned_abs();
    match end {
        Some(RankEnd::Constant(m)) => RankEnd::Constant(m.min(n)),
        _ => RankEnd::Constant(n),
    }
}

/// `number op bound`, the number on the left.
fn bound(e: &Expr, number: usize) -> Option<(CompareOp, Bound)> {
    let ExprKind::Compare { op, left, right } = &e.kind else {
        return None;
    };
    let (op, other) = if left.as_column() == Some(number) {
        (*op, right)
    } else if right.as_column() == Some(number) {
        (op.flipped(), left)
    } else {
        return None;
    };
    match strip_cast(other) {
        Expr {
            kind: ExprKind::Literal(value),
            ..
        } => {
            let n = match value {
                ScalarValue::Int8(Some(n)) => i64::from(*n),
                ScalarValue::Int16(Some(n)) => i64::from(*n),
                ScalarValue::Int32(Some(n)) => i64::from(*n),
                ScalarValue::Int64(Some(n)) => *n,
                _ => return None,
            };
            Some((op, Bound::Constant(n)))
        }
        Expr {
            kind: ExprKind::Column(i),
            ..
        } if *i != number => Some((op, Bound::Column(*i))),
        _ => None,
    }
}

fn strip_cast(e: &Expr) -> &Expr {
    match &e.kind {
        ExprKind::Cast { input, .. } => strip_cast(input),
        _ => e,
    }
}
