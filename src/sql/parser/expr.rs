//! Expressions, by precedence climbing with Calcite's precedences.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator,
};

use super::super::lexer::TokenKind;
use super::build::{call, negated_if, text, unary};
use super::{FlinkParser, MAX_CHAIN};
use crate::error::{Error, Result};

/// How tight an operator binds.
type Power = u8;

const OR: Power = 1;
const AND: Power = 2;
const NOT: Power = 3;
const IS: Power = 4;
const COMPARISON: Power = 5;
const RANGE: Power = 6;
const SUM: Power = 7;
const PRODUCT: Power = 8;
const SIGN: Power = 9;

/// What stands between two operands.
enum Infix {
    Binary(BinaryOperator),
    Is,
    Overlaps,
    Between { negated: bool },
    In { negated: bool },
    Like { negated: bool, name: &'static str },
}

impl FlinkParser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.nested(|p| p.expr_above(0))
    }

    /// An expression of operators that bind tighter than `least`.
    fn expr_above(&mut self, least: Power) -> Result<Expr> {
        let mut left = self.prefix()?;
        let mut chain = 0;
        while let Some((infix, power)) = self.peek_infix()? {
            if power <= least {
                break;
            }
            chain += 1;
            self.check_chain(chain)?;
            left = self.infix(left, infix, power)?;
        }
        Ok(left)
    }

    /// The left side of `IN` where the `IN` belongs to a call.
    pub(super) fn operand_before_in(&mut self) -> Result<Expr> {
        self.nested(|p| p.expr_above(RANGE))
    }

    /// Refuses a chain of operators whose tree would be too deep to walk.
    pub(super) fn check_chain(&self, length: usize) -> Result<()> {
        if length > MAX_CHAIN {
            let reason = format!("More than {MAX_CHAIN} operators in a row");
            return Err(Error::parse(reason).at(self.here()));
        }
        Ok(())
    }

    fn peek_infix(&self) -> Result<Option<(Infix, Power)>> {
        let token = self.peek();
        let binary = |op, power| Ok(Some((Infix::Binary(op), power)));
        match token.kind {
            TokenKind::Symbol => match token.text.as_str() {
                "=" => binary(BinaryOperator::Eq, COMPARISON),
                "<>" => binary(BinaryOperator::NotEq, COMPARISON),
                "<" => binary(BinaryOperator::Lt, COMPARISON),
                "<=" => binary(BinaryOperator::LtEq, COMPARISON),
                ">" => binary(BinaryOperator::Gt, COMPARISON),
                ">=" => binary(BinaryOperator::GtEq, COMPARISON),
                "+" => binary(BinaryOperator::Plus, SUM),
                "-" => binary(BinaryOperator::Minus, SUM),
                "*" => binary(BinaryOperator::Multiply, PRODUCT),
                "/" => binary(BinaryOperator::Divide, PRODUCT),
                "%" => binary(BinaryOperator::Modulo, PRODUCT),
                "||" => binary(BinaryOperator::StringConcat, PRODUCT),
                "!=" => Err(self
                    .error("Bang equal '!=' is not allowed", token.span)
                    .hint("write <>")),
                _ => Ok(None),
            },
            TokenKind::Word => Ok(self.peek_infix_word()),
            _ => Ok(None),
        }
    }

    fn peek_infix_word(&self) -> Option<(Infix, Power)> {
        let negated = self.peek_word("NOT");
        let word = self.peek_at(usize::from(negated));
        if word.kind != TokenKind::Word {
            return None;
        }
        let found = match word.text.to_ascii_uppercase().as_str() {
            "BETWEEN" => (Infix::Between { negated }, RANGE),
            "IN" => (Infix::In { negated }, RANGE),
            "LIKE" => (like(negated, "LIKE"), RANGE),
            "ILIKE" => (like(negated, "ILIKE"), RANGE),
            "RLIKE" => (like(negated, "RLIKE"), RANGE),
            "SIMILAR" => (like(negated, "SIMILAR TO"), RANGE),
            "OR" if !negated => (Infix::Binary(BinaryOperator::Or), OR),
            "AND" if !negated => (Infix::Binary(BinaryOperator::And), AND),
            "IS" if !negated && self.peek_is_distinct() => (Infix::Is, COMPARISON),
            "IS" if !negated => (Infix::Is, IS),
            "OVERLAPS" if !negated => (Infix::Overlaps, COMPARISON),
            _ => return None,
        };
        Some(found)
    }

    /// `IS [NOT] DISTINCT`, which binds like a comparison.
    fn peek_is_distinct(&self) -> bool {
        self.peek_at(1).is_word("DISTINCT")
            || self.peek_at(1).is_word("NOT") && self.peek_at(2).is_word("DISTINCT")
    }

    fn infix(&mut self, left: Expr, infix: Infix, power: Power) -> Result<Expr> {
        match infix {
            Infix::Binary(op) => {
                self.skip(1);
                if power == COMPARISON
                    && let Some(expr) = self.quantified_comparison(&left, &op)?
                {
                    return Ok(expr);
                }
                let right = self.expr_above(power)?;
                Ok(Expr::BinaryOp {
                    left: Box::new(left),
                    op,
                    right: Box::new(right),
                })
            }
            Infix::Is => self.is_predicate(left),
            Infix::Overlaps => self.overlaps(left),
            Infix::Between { negated } => {
                self.skip(1 + usize::from(negated));
                self.between(left, negated)
            }
            Infix::In { negated } => {
                self.skip(1 + usize::from(negated));
                self.in_predicate(left, negated)
            }
            Infix::Like { negated, name } => {
                self.skip(1 + usize::from(negated));
                if name == "SIMILAR TO" {
                    self.expect_word("TO")?;
                }
                // from right to left: a LIKE (b LIKE c)
                let mut args = vec![left, self.expr_above(COMPARISON)?];
                if self.take_word("ESCAPE") {
                    args.push(self.expr_above(COMPARISON)?);
                }
                Ok(negated_if(negated, call(name, args)))
            }
        }
    }

    /// `= ANY (query)` and its kin.
    fn quantified_comparison(&mut self, left: &Expr, op: &BinaryOperator) -> Result<Option<Expr>> {
        if !self.peek_at(1).is_symbol("(") {
            return Ok(None);
        }
        let Some(word) = self.take_one_of(&["ANY", "SOME", "ALL"]) else {
            return Ok(None);
        };
        let left = Box::new(left.clone());
        let compare_op = op.clone();
        let right = Box::new(self.parenthesized_expr()?);
        Ok(Some(if word == "ALL" {
            Expr::AllOp {
                left,
                compare_op,
                right,
            }
        } else {
            Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some: word == "SOME",
            }
        }))
    }

    fn is_predicate(&mut self, left: Expr) -> Result<Expr> {
        self.expect_word("IS")?;
        let negated = self.take_word("NOT");
        if self.take_words(&["DISTINCT", "FROM"]) {
            let (left, right) = (Box::new(left), Box::new(self.expr_above(COMPARISON)?));
            return Ok(if negated {
                Expr::IsNotDistinctFrom(left, right)
            } else {
                Expr::IsDistinctFrom(left, right)
            });
        }
        if self.take_word("JSON") {
            let kind = self
                .take_one_of(&["VALUE", "OBJECT", "ARRAY", "SCALAR"])
                .unwrap_or("VALUE");
            return Ok(negated_if(negated, call("IS JSON", vec![left, text(kind)])));
        }
        let word = self.expect_one_of(&["NULL", "TRUE", "FALSE", "UNKNOWN"])?;
        let input = Box::new(left);
        Ok(match (word, negated) {
            ("NULL", false) => Expr::IsNull(input),
            ("NULL", true) => Expr::IsNotNull(input),
            ("TRUE", false) => Expr::IsTrue(input),
            ("TRUE", true) => Expr::IsNotTrue(input),
            ("FALSE", false) => Expr::IsFalse(input),
            ("FALSE", true) => Expr::IsNotFalse(input),
            (_, false) => Expr::IsUnknown(input),
            (_, true) => Expr::IsNotUnknown(input),
        })
    }

    fn overlaps(&mut self, left: Expr) -> Result<Expr> {
        let start = self.here();
        self.expect_word("OVERLAPS")?;
        let right = self.expr_above(COMPARISON)?;
        let mut args = Vec::new();
        for side in [left, right] {
            match side {
                Expr::Tuple(exprs) if exprs.len() == 2 => args.extend(exprs),
                Expr::Function(f) if is_row_of_two(&f) => args.extend(exprs_of(f)),
                _ => {
                    let reason = "OVERLAPS compares two pairs, as in (a, b) OVERLAPS (c, d)";
                    return Err(self.error(reason, start));
                }
            }
        }
        Ok(call("OVERLAPS", args))
    }

    fn between(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        let symmetric = self.take_one_of(&["ASYMMETRIC", "SYMMETRIC"]) == Some("SYMMETRIC");
        let low = self.expr_above(RANGE)?;
        self.expect_word("AND")?;
        let high = self.expr_above(RANGE)?;
        let make = |expr: Expr, low: Expr, high: Expr| Expr::Between {
            expr: Box::new(expr),
            negated: false,
            low: Box::new(low),
            high: Box::new(high),
        };
        if symmetric {
            let either = Expr::BinaryOp {
                left: Box::new(make(left.clone(), low.clone(), high.clone())),
                op: BinaryOperator::Or,
                right: Box::new(make(left, high, low)),
            };
            return Ok(negated_if(negated, Expr::Nested(Box::new(either))));
        }
        let mut between = make(left, low, high);
        if let Expr::Between { negated: n, .. } = &mut between {
            *n = negated;
        }
        Ok(between)
    }

    fn in_predicate(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        self.expect_symbol("(")?;
        let expr = Box::new(left);
        if self.peek_query() {
            let subquery = Box::new(self.query()?);
            self.expect_symbol(")")?;
            return Ok(Expr::InSubquery {
                expr,
                subquery,
                negated,
            });
        }
        let mut list = self.comma_separated(Self::expr)?;
        if let [Expr::Subquery(_)] = list.as_slice()
            && let Some(Expr::Subquery(mut subquery)) = list.pop()
        {
            if self.peek_query_continues() {
                *subquery = self.query_from(*subquery)?;
            }
            self.expect_symbol(")")?;
            return Ok(Expr::InSubquery {
                expr,
                subquery,
                negated,
            });
        }
        self.expect_symbol(")")?;
        Ok(Expr::InList {
            expr,
            list,
            negated,
        })
    }

    // -- operands ------------------------------------------------------------------------------

    /// A single operand: a literal, a name, a call, something in parentheses.
    pub(super) fn operand(&mut self) -> Result<Expr> {
        self.nested(Self::prefix)
    }

    fn prefix(&mut self) -> Result<Expr> {
        if self.take_word("NOT") {
            let expr = self.nested(|p| p.expr_above(NOT))?;
            return Ok(unary(UnaryOperator::Not, expr));
        }
        for (symbol, op) in [("-", UnaryOperator::Minus), ("+", UnaryOperator::Plus)] {
            if self.take_symbol(symbol) {
                let expr = self.nested(|p| p.expr_above(SIGN))?;
                return Ok(unary(op, expr));
            }
        }
        let primary = self.primary()?;
        self.postfix(primary)
    }

    /// `[index]` and `.field` behind an operand.
    fn postfix(&mut self, mut expr: Expr) -> Result<Expr> {
        let mut chain = 0;
        loop {
            chain += 1;
            self.check_chain(chain)?;
            if self.take_symbol("[") {
                let index = self.expr()?;
                self.expect_symbol("]")?;
                expr = call("ITEM", vec![expr, index]);
            } else if self.peek_symbol(".") && self.is_name_at(1) {
                self.skip(1);
                let field = AccessExpr::Dot(Expr::Identifier(self.ident()?));
                match &mut expr {
                    Expr::CompoundFieldAccess { access_chain, .. } => access_chain.push(field),
                    _ => {
                        expr = Expr::CompoundFieldAccess {
                            root: Box::new(expr),
                            access_chain: vec![field],
                        };
                    }
                }
            } else {
                return Ok(expr);
            }
        }
    }
}

fn like(negated: bool, name: &'static str) -> Infix {
    Infix::Like { negated, name }
}

fn is_row_of_two(function: &Function) -> bool {
    function.name.to_string() == "ROW"
        && matches!(&function.args, FunctionArguments::List(list) if list.args.len() == 2)
}

fn exprs_of(function: Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = function.args else {
        return Vec::new();
    };
    let expr = |arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    };
    list.args.into_iter().filter_map(expr).collect()
}
