//! Expressions. Precedences and the rule for parentheses are Calcite's.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, OrderByExpr, UnaryOperator, Value, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::Writer;
use super::calls::{is_table, marker, plain_args};

/// How tight an operator binds to its left and right.
pub(super) type Precedence = (u8, u8);

const OR: Precedence = (22, 23);
const AND: Precedence = (24, 25);
const NOT: Precedence = (26, 27);
const IS: Precedence = (28, 29);
pub(super) const COMPARISON: Precedence = (30, 31);
pub(super) const RANGE: Precedence = (32, 33);
const LIKE: Precedence = (33, 32);
pub(super) const SUM: Precedence = (40, 41);
const PRODUCT: Precedence = (60, 61);
const SIGN: Precedence = (80, 81);
const OVER: Precedence = (20, 21);

impl Writer {
    /// Writes `expr` where operators of precedence `left` and `right` stand beside it.
    pub(super) fn expr(&mut self, expr: &Expr, left: u8, right: u8) {
        let Some(own) = precedence(expr) else {
            self.bare(expr);
            return;
        };
        if left > own.0 || (own.1 <= right && right != 0) {
            self.push("(");
            self.operator(expr, own, 0, 0);
            self.push(")");
        } else {
            self.operator(expr, own, left, right);
        }
    }

    /// An expression that is an operator, without parentheses around it.
    fn operator(&mut self, expr: &Expr, own: Precedence, left: u8, right: u8) {
        match expr {
            Expr::BinaryOp {
                left: a,
                op,
                right: b,
            } => self.infix(a, &binary_symbol(op), b, own, (left, right)),
            Expr::IsDistinctFrom(a, b) => {
                self.infix(a, "IS DISTINCT FROM", b, own, (left, right));
            }
            Expr::IsNotDistinctFrom(a, b) => {
                self.infix(a, "IS NOT DISTINCT FROM", b, own, (left, right));
            }
            Expr::AnyOp {
                left: a,
                compare_op,
                right: b,
                ..
            } => self.quantified(a, compare_op, "SOME", b, own),
            Expr::AllOp {
                left: a,
                compare_op,
                right: b,
            } => self.quantified(a, compare_op, "ALL", b, own),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: inner,
            } => match negatable(inner) {
                Some(call) => self.call_operator(call, true, left, right),
                None => {
                    self.push("NOT ");
                    self.expr(inner, own.1, right);
                }
            },
            Expr::UnaryOp { op, expr: inner } => {
                let number =
                    matches!(&**inner, Expr::Value(v) if matches!(v.value, Value::Number(..)));
                self.push(if *op == UnaryOperator::Minus {
                    "-"
                } else {
                    "+"
                });
                if !number {
                    self.push(" ");
                }
                self.expr(inner, own.1, right);
            }
            Expr::Between {
                expr: a,
                negated,
                low,
                high,
            } => {
                self.expr(a, own.0, 0);
                self.push(if *negated { " NOT" } else { "" });
                self.push(" BETWEEN ASYMMETRIC ");
                let bound = if contains_and(low) { 100 } else { 0 };
                self.expr(low, bound, bound);
                self.push(" AND ");
                self.expr(high, 0, own.1);
            }
            Expr::InList {
                expr: a,
                list,
                negated,
            } => {
                self.expr(a, left, own.0);
                self.push(if *negated { " NOT IN (" } else { " IN (" });
                self.exprs(list);
                self.push(")");
            }
            Expr::InSubquery {
                expr: a,
                subquery,
                negated,
            } => {
                self.expr(a, left, own.0);
                self.push(if *negated { " NOT IN (" } else { " IN (" });
                self.query(subquery);
                self.push(")");
            }
            Expr::Function(f) if f.over.is_some() => self.over(f),
            Expr::Function(f) => self.call_operator(f, false, left, right),
            _ => {
                if let Some((inner, suffix)) = postfix(expr) {
                    self.expr(inner, left, own.1);
                    self.push(suffix);
                } else {
                    self.bare(expr);
                }
            }
        }
    }

    pub(super) fn infix(
        &mut self,
        a: &Expr,
        symbol: &str,
        b: &Expr,
        own: Precedence,
        around: Precedence,
    ) {
        self.expr(a, around.0, own.0);
        self.push(" ");
        self.push(symbol);
        self.push(" ");
        self.expr(b, own.1, around.1);
    }

    fn quantified(
        &mut self,
        a: &Expr,
        op: &BinaryOperator,
        quantifier: &str,
        b: &Expr,
        own: Precedence,
    ) {
        self.expr(a, 0, own.0);
        self.push(&format!(" {} {quantifier} ", binary_symbol(op)));
        match b {
            Expr::Tuple(exprs) => {
                self.push("(");
                self.exprs(exprs);
                self.push(")");
            }
            Expr::Nested(inner) => {
                self.push("(");
                self.expr(inner, 0, 0);
                self.push(")");
            }
            other => self.expr(other, 0, 0),
        }
    }

    /// A call that is written as an operator: `LIKE`, `IS JSON`, `OVERLAPS`, `RUNNING`.
    fn call_operator(&mut self, function: &Function, negated: bool, left: u8, right: u8) {
        let name = function.name.to_string();
        let args = plain_args(function);
        let not = if negated { " NOT" } else { "" };
        match (name.as_str(), args.as_slice()) {
            ("LIKE" | "ILIKE" | "RLIKE" | "SIMILAR TO", [a, pattern, escape @ ..]) => {
                self.expr(a, LIKE.0, LIKE.1);
                self.push(&format!("{not} {name} "));
                self.expr(pattern, LIKE.0, LIKE.1);
                for escape in escape {
                    self.push(" ESCAPE ");
                    self.expr(escape, LIKE.0, LIKE.1);
                }
            }
            ("IS JSON", [a, kind]) => {
                self.expr(a, left, IS.1);
                self.push(&format!(" IS{not} JSON {}", marker(kind)));
            }
            ("OVERLAPS", [a, b, c, d]) => {
                for (i, (from, to)) in [(a, b), (c, d)].into_iter().enumerate() {
                    self.push(if i == 0 { "(" } else { " OVERLAPS (" });
                    self.exprs(&[(*from).clone(), (*to).clone()]);
                    self.push(")");
                }
            }
            ("RUNNING" | "FINAL", [a]) => {
                self.push(&format!("{name} "));
                self.expr(a, SIGN.1, right);
            }
            _ => self.call(function),
        }
    }

    fn over(&mut self, function: &Function) {
        self.call(function);
        self.push(" OVER ");
        match &function.over {
            Some(WindowType::WindowSpec(spec)) => self.window_spec(spec),
            Some(WindowType::NamedWindow(name)) => self.ident(name),
            None => {}
        }
    }

    pub(super) fn window_spec(&mut self, spec: &WindowSpec) {
        let mut separator = "";
        self.push("(");
        if let Some(name) = &spec.window_name {
            self.ident(name);
            separator = " ";
        }
        if !spec.partition_by.is_empty() {
            self.push(separator);
            self.push("PARTITION BY ");
            self.exprs(&spec.partition_by);
            separator = " ";
        }
        if !spec.order_by.is_empty() {
            self.push(separator);
            self.push("ORDER BY ");
            self.order_keys(&spec.order_by);
            separator = " ";
        }
        if let Some(frame) = &spec.window_frame {
            self.push(separator);
            self.frame(frame);
        }
        self.push(")");
    }

    fn frame(&mut self, frame: &WindowFrame) {
        self.push(match frame.units {
            WindowFrameUnits::Rows => "ROWS ",
            _ => "RANGE ",
        });
        match &frame.end_bound {
            Some(end) => {
                self.push("BETWEEN ");
                self.frame_bound(&frame.start_bound);
                self.push(" AND ");
                self.frame_bound(end);
            }
            None => self.frame_bound(&frame.start_bound),
        }
    }

    fn frame_bound(&mut self, bound: &WindowFrameBound) {
        let (distance, side) = match bound {
            WindowFrameBound::CurrentRow => return self.push("CURRENT ROW"),
            WindowFrameBound::Preceding(distance) => (distance, " PRECEDING"),
            WindowFrameBound::Following(distance) => (distance, " FOLLOWING"),
        };
        match distance {
            Some(distance) => self.expr(distance, 0, 0),
            None => self.push("UNBOUNDED"),
        }
        self.push(side);
    }

    pub(super) fn order_keys(&mut self, keys: &[OrderByExpr]) {
        self.list(keys, |w, key| {
            w.expr(&key.expr, 0, 0);
            if key.options.asc == Some(false) {
                w.push(" DESC");
            }
            match key.options.nulls_first {
                Some(true) => w.push(" NULLS FIRST"),
                Some(false) => w.push(" NULLS LAST"),
                None => {}
            }
        });
    }
}

fn precedence(expr: &Expr) -> Option<Precedence> {
    Some(match expr {
        Expr::BinaryOp { op, .. } => match op {
            BinaryOperator::Or => OR,
            BinaryOperator::And => AND,
            BinaryOperator::Plus | BinaryOperator::Minus => SUM,
            BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::StringConcat => PRODUCT,
            _ => COMPARISON,
        },
        Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => COMPARISON,
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => match negatable(expr) {
            Some(call) => precedence_of_call(call)?,
            None => NOT,
        },
        Expr::UnaryOp { expr, .. } => match &**expr {
            // a negative number is one literal
            Expr::Value(v) if matches!(v.value, Value::Number(..)) => return Some((200, 200)),
            _ => SIGN,
        },
        Expr::Between { .. } | Expr::InList { .. } | Expr::InSubquery { .. } => RANGE,
        Expr::Function(f) if f.over.is_some() && !is_table(f) => OVER,
        Expr::Function(f) => return precedence_of_call(f),
        Expr::Nested(inner) => return precedence(inner),
        _ => return postfix(expr).map(|_| IS),
    })
}

fn precedence_of_call(function: &Function) -> Option<Precedence> {
    match function.name.to_string().as_str() {
        "LIKE" | "ILIKE" | "RLIKE" | "SIMILAR TO" => Some(LIKE),
        "IS JSON" => Some(IS),
        "OVERLAPS" => Some(COMPARISON),
        "RUNNING" | "FINAL" => Some(SIGN),
        _ => None,
    }
}

/// The call inside `NOT` that is written with its own `NOT`: `a NOT LIKE b`.
fn negatable(expr: &Expr) -> Option<&Function> {
    match expr {
        Expr::Function(f)
            if matches!(
                f.name.to_string().as_str(),
                "LIKE" | "ILIKE" | "RLIKE" | "SIMILAR TO" | "IS JSON"
            ) =>
        {
            Some(f)
        }
        _ => None,
    }
}

fn postfix(expr: &Expr) -> Option<(&Expr, &'static str)> {
    Some(match expr {
        Expr::IsNull(e) => (e, " IS NULL"),
        Expr::IsNotNull(e) => (e, " IS NOT NULL"),
        Expr::IsTrue(e) => (e, " IS TRUE"),
        Expr::IsNotTrue(e) => (e, " IS NOT TRUE"),
        Expr::IsFalse(e) => (e, " IS FALSE"),
        Expr::IsNotFalse(e) => (e, " IS NOT FALSE"),
        Expr::IsUnknown(e) => (e, " IS UNKNOWN"),
        Expr::IsNotUnknown(e) => (e, " IS NOT UNKNOWN"),
        _ => return None,
    })
}

fn binary_symbol(op: &BinaryOperator) -> String {
    op.to_string()
}

fn contains_and(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            *op == BinaryOperator::And || contains_and(left) || contains_and(right)
        }
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => contains_and(inner),
        _ => false,
    }
}
