//! The conjuncts of WHERE, and those among them that are joins.

use sqlparser::ast;

/// A conjunct that is a semi or anti join.
pub(super) struct Test<'q> {
    /// The left side of IN; `None` for EXISTS.
    pub(super) left: Option<&'q ast::Expr>,
    /// The subquery.
    pub(super) query: &'q ast::Query,
    /// NOT IN, NOT EXISTS.
    pub(super) negated: bool,
}

/// The conjunct as a join, if it is one; `negate` when it stands behind NOT.
pub(super) fn as_test(e: &ast::Expr, negate: bool) -> Option<Test<'_>> {
    match e {
        ast::Expr::Nested(inner) => as_test(inner, negate),
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Not,
            expr,
        } => as_test(expr, !negate),
        ast::Expr::Exists { subquery, negated } => Some(Test {
            left: None,
            query: subquery,
            negated: *negated != negate,
        }),
        ast::Expr::InSubquery {
            expr,
            subquery,
            negated,
        } => Some(Test {
            left: Some(expr),
            query: subquery,
            negated: *negated != negate,
        }),
        _ => None,
    }
}

/// The conjuncts of a condition, in order.
pub(super) fn split_and<'q>(e: &'q ast::Expr, conjuncts: &mut Vec<&'q ast::Expr>) {
    match e {
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::And,
            right,
        } => {
            split_and(left, conjuncts);
            split_and(right, conjuncts);
        }
        ast::Expr::Nested(inner)
            if matches!(
                **inner,
                ast::Expr::BinaryOp {
                    op: ast::BinaryOperator::And,
                    ..
                }
            ) =>
        {
            split_and(inner, conjuncts);
        }
        other => conjuncts.push(other),
    }
}
