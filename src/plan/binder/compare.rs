//! Comparisons: both sides brought to one type, rows field by field.

use super::refusals;
use crate::error::Result;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::types::cast::CastMode;
use crate::types::{DataType, TypeKind, coerce};

/// Compares, both sides brought to one type.
pub(crate) fn compare(op: CompareOp, left: Expr, right: Expr) -> Result<Expr> {
    let equality = matches!(
        op,
        CompareOp::Eq | CompareOp::NotEq | CompareOp::Distinct | CompareOp::NotDistinct
    );
    compare_as(op, equality, left, right)
}

/// Compares by the rules of `=` (`equality`) or by those of an order and of IN.
pub(super) fn compare_as(op: CompareOp, equality: bool, left: Expr, right: Expr) -> Result<Expr> {
    if op == CompareOp::Eq
        && let (Some(x), Some(y)) = (row_parts(&left), row_parts(&right))
        && x.len() == y.len()
    {
        // rows written out are equal field by field: unknown if a NULL decides
        let parts = x.iter().zip(y);
        let parts = parts.map(|(x, y)| compare_values(op, equality, x.clone(), y.clone()));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let nullable = parts.iter().any(|part| part.data_type.nullable);
        return Ok(Expr::new(
            ExprKind::And(parts),
            TypeKind::Boolean.with_nullable(nullable),
        ));
    }
    compare_values(op, equality, left, right)
}

/// The fields of `ROW(..)`.
fn row_parts(expr: &Expr) -> Option<&[Expr]> {
    match &expr.kind {
        ExprKind::Call { function, args } if function.name() == "ROW" => Some(args),
        _ => None,
    }
}

fn compare_values(op: CompareOp, equality: bool, left: Expr, right: Expr) -> Result<Expr> {
    // rows and arrays have no order, but may be members
    let equality = equality || op == CompareOp::Eq && is_nested(&left.data_type.kind);
    let common = coerce::comparison(equality, &left.data_type, &right.data_type)
        .map_err(|why| refusals::incomparable(why, op, &left.data_type, &right.data_type))?;
    let meet = |side: Expr| {
        if side.data_type.to_arrow() == common.data_type.to_arrow() {
            return side;
        }
        let from_text = side.data_type.kind.is_string() && side.as_literal().is_none();
        if common.lenient && from_text {
            let target = common.data_type.as_nullable();
            return Expr::new(
                ExprKind::Cast {
                    input: Box::new(side),
                    mode: CastMode::Try,
                },
                target,
            );
        }
        side.cast_to(&common.data_type)
    };
    let (left, right) = (meet(left), meet(right));
    let nullable = !matches!(op, CompareOp::Distinct | CompareOp::NotDistinct)
        && (has_nullable(&left.data_type) || has_nullable(&right.data_type));
    Ok(Expr::new(
        ExprKind::Compare {
            op,
            left: Box::new(left),
            right: Box::new(right),
        },
        TypeKind::Boolean.with_nullable(nullable),
    ))
}

/// Whether the value, or a field of a row at any depth, may be NULL.
fn has_nullable(data_type: &DataType) -> bool {
    let fields = match &data_type.kind {
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => fields.as_slice(),
        _ => &[],
    };
    data_type.nullable || fields.iter().any(|field| has_nullable(&field.data_type))
}

pub(super) fn is_nested(kind: &TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Multiset(_)
            | TypeKind::Row(_)
            | TypeKind::Structured(..)
    )
}
