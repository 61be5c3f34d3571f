//! Computes what is constant in an expression before it runs.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::{compile, into_array};
use crate::error::Result;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::functions::{Determinism, Environment, EvalContext};
use crate::types::TypeKind;

/// `expr` with its constant parts computed and its dead branches removed. A part that fails stays as
/// it is and fails when it runs, if it runs. The type of the expression does not change.
#[must_use]
pub fn fold(expr: Expr, env: &Environment) -> Expr {
    expr.transform(&mut |node| fold_node(node, env))
}

fn fold_node(node: Expr, env: &Environment) -> Expr {
    let is_call_that_varies = match &node.kind {
        ExprKind::Literal(_) | ExprKind::Column(_) | ExprKind::Outer { .. } => return node,
        ExprKind::Call { function, args } => {
            function.determinism(args.len()) != Determinism::Deterministic
        }
        _ => false,
    };
    if let ExprKind::Compare { op, left, right } = &node.kind
        && left.same(right)
        && left.is_deterministic()
        && let Some(kind) = same_sides(*op, left)
    {
        return Expr::new(kind, node.data_type);
    }
    let constant = node.children().iter().all(|e| e.as_literal().is_some());
    if constant && !is_call_that_varies {
        return match compute(&node, env) {
            Ok(value) => Expr::literal(value, node.data_type),
            Err(_) => node,
        };
    }
    let Expr { kind, data_type } = node;
    let kind = match kind {
        ExprKind::And(parts) => connective(parts, true),
        ExprKind::Or(parts) => connective(parts, false),
        ExprKind::Case {
            branches,
            otherwise,
        } => case(branches, *otherwise),
        kind => kind,
    };
    Expr { kind, data_type }
}

/// The value of a node over constants.
fn compute(node: &Expr, env: &Environment) -> Result<ScalarValue> {
    let context = EvalContext {
        rows: 1,
        now_ms: 0,
        watermark: i64::MIN,
    };
    let value = match compile(node, env)?.evaluate(&[], &context)? {
        ColumnarValue::Scalar(value) => value,
        array @ ColumnarValue::Array(_) => ScalarValue::try_from_array(&into_array(array, 1)?, 0)?,
    };
    Ok(cut(value, &node.data_type.kind))
}

/// A constant holds no more digits of the second than its type says; a computed column may.
fn cut(value: ScalarValue, kind: &TypeKind) -> ScalarValue {
    let unit = |digits: u8, precision: u8| 10i64.pow(u32::from(digits.saturating_sub(precision)));
    match (value, kind) {
        (
            ScalarValue::TimestampMillisecond(Some(v), zone),
            TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p),
        ) => ScalarValue::TimestampMillisecond(Some(v - v.rem_euclid(unit(3, *p))), zone),
        (
            ScalarValue::TimestampMicrosecond(Some(v), zone),
            TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p),
        ) => ScalarValue::TimestampMicrosecond(Some(v - v.rem_euclid(unit(6, *p))), zone),
        (value, _) => value,
    }
}

/// AND or OR without the parts that do not matter.
fn connective(parts: Vec<Expr>, and: bool) -> ExprKind {
    let constant = |e: &Expr| match e.as_literal() {
        Some(ScalarValue::Boolean(Some(value))) => Some(*value),
        _ => None,
    };
    if parts.iter().any(|e| constant(e) == Some(!and)) {
        return ExprKind::Literal(ScalarValue::Boolean(Some(!and)));
    }
    let mut rest: Vec<Expr> = parts
        .into_iter()
        .filter(|e| constant(e) != Some(and))
        .collect();
    match rest.len() {
        0 => ExprKind::Literal(ScalarValue::Boolean(Some(and))),
        1 => rest.remove(0).kind,
        _ if and => ExprKind::And(rest),
        _ => ExprKind::Or(rest),
    }
}

/// A comparison of `x` with itself. Like Flink it does not look at the value: `x = x` is true, or NULL if `x`
/// is, even for NaN.
fn same_sides(op: CompareOp, x: &Expr) -> Option<ExprKind> {
    let known = |value| ExprKind::Literal(ScalarValue::Boolean(value));
    match op {
        CompareOp::NotDistinct => Some(known(Some(true))),
        CompareOp::Distinct => Some(known(Some(false))),
        CompareOp::Eq | CompareOp::LtEq | CompareOp::GtEq if x.as_literal().is_some() => {
            let null = x.as_literal().is_some_and(ScalarValue::is_null);
            Some(known((!null).then_some(true)))
        }
        CompareOp::Eq | CompareOp::LtEq | CompareOp::GtEq => {
            let boolean =
                |kind, nullable| Expr::new(kind, TypeKind::Boolean.with_nullable(nullable));
            let present = ExprKind::IsNull {
                input: Box::new(x.clone()),
                negated: true,
            };
            Some(ExprKind::Or(vec![
                boolean(known(None), true),
                boolean(present, false),
            ]))
        }
        CompareOp::NotEq | CompareOp::Lt | CompareOp::Gt => None,
    }
}

/// CASE without the branches that are never taken.
fn case(branches: Vec<(Expr, Expr)>, mut otherwise: Expr) -> ExprKind {
    let mut kept = Vec::with_capacity(branches.len());
    for (when, then) in branches {
        match when.as_literal() {
            Some(ScalarValue::Boolean(Some(true))) => {
                otherwise = then;
                break;
            }
            Some(value) if value.is_null() || *value == ScalarValue::Boolean(Some(false)) => {}
            _ => kept.push((when, then)),
        }
    }
    if kept.is_empty() {
        return otherwise.kind;
    }
    ExprKind::Case {
        branches: kept,
        otherwise: Box::new(otherwise),
    }
}
