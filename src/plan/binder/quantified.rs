//! `x > ALL (SELECT ..)`, `x = ANY (SELECT ..)`: comparisons with all or some rows of a subquery, as
//! the EXISTS that says the same where only TRUE counts.

use sqlparser::ast::{self, BinaryOperator as Op};

use crate::error::{Error, Result};
use crate::sql::FlinkParser;

/// What a comparison over `q` becomes; `TRUE` is replaced by it.
const TEMPLATE: &str = "SELECT 1 FROM (SELECT 1) AS `$q` (`$x`) WHERE TRUE";

/// A conjunct of WHERE that is such a comparison, perhaps behind NOT: as an EXISTS, or an IN for
/// `= ANY`. `None` for other conjuncts.
///
/// # Errors
/// When the right side is no subquery, or the comparison is none.
pub(super) fn as_exists(conjunct: &ast::Expr, negated: bool) -> Result<Option<ast::Expr>> {
    let (left, op, right, all) = match conjunct {
        ast::Expr::Nested(inner) => return as_exists(inner, negated),
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Not,
            expr,
        } => return as_exists(expr, !negated),
        ast::Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } => (left, compare_op, right, false),
        ast::Expr::AllOp {
            left,
            compare_op,
            right,
        } => (left, compare_op, right, true),
        _ => return Ok(None),
    };
    // NOT x > ALL (..) says x <= ANY (..)
    let (op, all) = if negated {
        (opposite(op)?, !all)
    } else {
        (op.clone(), all)
    };
    let query = subquery(right)?;
    if let Some(found) = as_in(left, &op, query, all) {
        return Ok(Some(found));
    }
    let value = ast::Expr::CompoundIdentifier(vec![ast::Ident::new("$q"), ast::Ident::new("$x")]);
    let compared = ast::Expr::Nested(Box::new(ast::Expr::BinaryOp {
        left: left.clone(),
        op,
        right: Box::new(value),
    }));
    let selection = if all {
        ast::Expr::IsNotTrue(Box::new(compared))
    } else {
        compared
    };
    let mut exists = FlinkParser::parse_query(TEMPLATE)?;
    let ast::SetExpr::Select(select) = exists.body.as_mut() else {
        return Err(Error::internal("the template is a SELECT"));
    };
    select.selection = Some(selection);
    for from in &mut select.from {
        if let ast::TableFactor::Derived { subquery, .. } = &mut from.relation {
            **subquery = query.clone();
        }
    }
    Ok(Some(ast::Expr::Exists {
        subquery: Box::new(exists),
        negated: all,
    }))
}

/// `= ANY` as IN and `<> ALL` as NOT IN, which are the same as values too. `None` for others.
pub(super) fn as_in(left: &ast::Expr, op: &Op, query: &ast::Query, all: bool) -> Option<ast::Expr> {
    let negated = match (op, all) {
        (Op::Eq, false) => false,
        (Op::NotEq, true) => true,
        _ => return None,
    };
    Some(ast::Expr::InSubquery {
        expr: Box::new(left.clone()),
        subquery: Box::new(query.clone()),
        negated,
    })
}

/// The subquery on the right of a comparison.
///
/// # Errors
/// When it is something else.
pub(super) fn subquery(right: &ast::Expr) -> Result<&ast::Query> {
    match right {
        ast::Expr::Subquery(query) => Ok(query.as_ref()),
        ast::Expr::Nested(inner) => subquery(inner),
        _ => Err(Error::plan(
            "ANY, SOME and ALL compare with the rows of a subquery",
        )),
    }
}

fn opposite(op: &Op) -> Result<Op> {
    Ok(match op {
        Op::Eq => Op::NotEq,
        Op::NotEq => Op::Eq,
        Op::Lt => Op::GtEq,
        Op::GtEq => Op::Lt,
        Op::Gt => Op::LtEq,
        Op::LtEq => Op::Gt,
        other => {
            return Err(Error::plan(format!(
                "'{other}' does not compare with ANY, SOME or ALL"
            )));
        }
    })
}
