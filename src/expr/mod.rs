//! Typed scalar expressions: what the binder makes of SQL, what the planner rewrites and what
//! [`eval`] runs on batches.
//!
//! Every node carries its Flink type, derived when the node is made. Whatever needs no lazy
//! evaluation and no attention of the planner is a [`ExprKind::Call`] of a function of
//! [`crate::functions`], operators such as `+` and `LIKE` included.

pub mod eval;
mod visit;

use std::fmt;
use std::sync::Arc;

use datafusion::common::ScalarValue;

use crate::functions::ScalarFunction;
use crate::types::DataType;

pub use crate::types::cast::CastMode;

/// A typed expression over the columns of one input.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// The Flink type of its value.
    pub data_type: DataType,
}

/// The forms of an expression.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// Column `i` of the input.
    Column(usize),
    /// Column `index` of the query `depth` levels further out (1 = the next). Only between binding
    /// and decorrelation.
    Outer {
        /// How many queries further out.
        depth: usize,
        /// Column there.
        index: usize,
    },
    /// A constant, in the Arrow form of the node's type.
    Literal(ScalarValue),
    /// A function applied to arguments that already have the types it asks for.
    Call {
        /// The function.
        function: Arc<dyn ScalarFunction>,
        /// Arguments.
        args: Vec<Expr>,
    },
    /// A conversion to the node's type.
    Cast {
        /// What is converted.
        input: Box<Expr>,
        /// What happens to a value that cannot be converted.
        mode: CastMode,
    },
    /// A comparison; both sides have one type.
    Compare {
        /// Operator.
        op: CompareOp,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
    },
    /// Three-valued AND of two or more; a later one is not evaluated on rows that are false already.
    And(Vec<Expr>),
    /// Three-valued OR of two or more; a later one is not evaluated on rows that are true already.
    Or(Vec<Expr>),
    /// Three-valued NOT.
    Not(Box<Expr>),
    /// `IS NULL`; with `negated`, `IS NOT NULL`.
    IsNull {
        /// What is looked at.
        input: Box<Expr>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `CASE`: the first branch whose condition is true, else `otherwise`. A branch is evaluated
    /// only on the rows that take it. `COALESCE`, `NULLIF` and `IF` are bound to it too.
    Case {
        /// Condition and result, each.
        branches: Vec<(Expr, Expr)>,
        /// Result when no condition is true.
        otherwise: Box<Expr>,
    },
    /// Field `index` of a `ROW`; `NULL` when the row is.
    Field {
        /// The row.
        input: Box<Expr>,
        /// Position of the field.
        index: usize,
    },
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `IS NOT DISTINCT FROM`
    NotDistinct,
    /// `IS DISTINCT FROM`
    Distinct,
}

impl CompareOp {
    /// The operator that holds when the sides change places.
    #[must_use]
    pub fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            other => other,
        }
    }

    /// As written in SQL.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
            Self::NotDistinct => "IS NOT DISTINCT FROM",
            Self::Distinct => "IS DISTINCT FROM",
        }
    }
}

impl Expr {
    /// A node of `kind` and type.
    #[must_use]
    pub fn new(kind: ExprKind, data_type: DataType) -> Self {
        Self { kind, data_type }
    }

    /// Column `index` of the input.
    #[must_use]
    pub fn column(index: usize, data_type: DataType) -> Self {
        Self::new(ExprKind::Column(index), data_type)
    }

    /// A constant.
    #[must_use]
    pub fn literal(value: ScalarValue, data_type: DataType) -> Self {
        Self::new(ExprKind::Literal(value), data_type)
    }

    /// `self` as `data_type`: itself if it has the type already, whatever the nullability.
    #[must_use]
    pub fn cast_to(self, data_type: &DataType) -> Self {
        if self.data_type.kind == data_type.kind {
            return self;
        }
        let nullable = self.data_type.nullable;
        let target = data_type.kind.clone().with_nullable(nullable);
        Self::new(
            ExprKind::Cast {
                input: Box::new(self),
                mode: CastMode::Strict,
            },
            target,
        )
    }

    /// The column that this expression is, if it is just one.
    #[must_use]
    pub fn as_column(&self) -> Option<usize> {
        match self.kind {
            ExprKind::Column(i) => Some(i),
            _ => None,
        }
    }

    /// The constant that this expression is, if it is one.
    #[must_use]
    pub fn as_literal(&self) -> Option<&ScalarValue> {
        match &self.kind {
            ExprKind::Literal(value) => Some(value),
            _ => None,
        }
    }
}

/// Debug-like SQL text with columns as `$i`; EXPLAIN has its own printer that knows the names.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        visit::write_expr(self, &|i| format!("${i}"), f)
    }
}
