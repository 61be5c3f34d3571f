//! Evaluates expressions on batches.
//!
//! An [`Expr`] is compiled once ([`Compiled::new`]): functions make their kernels, casts are planned,
//! constants are worked up. Evaluation then goes node by node over whole columns; constants stay
//! scalars. What can fail on data (a division, a cast of text) is evaluated by `AND`, `OR`, `CASE` and
//! `COALESCE` on the rows that reach it only.

mod compare;
mod fold;
mod lazy;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, make_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{is_not_null, is_null, not};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use self::compare::Comparator;
use self::lazy::{Case, Coalesce, Connective, Part};
use super::{Expr, ExprKind};
use crate::error::{Error, Result};
use crate::functions::{Arg, Environment, EvalContext, Kernel};
use crate::types::DataType;
use crate::types::cast::Cast;

pub use self::fold::fold;

/// An expression that is ready to run.
#[derive(Debug)]
pub struct Compiled {
    node: Node,
    data_type: DataType,
    fallible: bool,
}

impl Compiled {
    /// Compiles `expr`, its constant parts computed.
    ///
    /// # Errors
    /// When a constant argument is malformed, or the expression still refers to an outer query.
    pub fn new(expr: &Expr, env: &Environment) -> Result<Self> {
        let expr = &fold(expr.clone(), env);
        Ok(Self {
            node: compile(expr, env)?,
            data_type: expr.data_type.clone(),
            fallible: may_fail(expr, env),
        })
    }

    /// The type of the value.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The column that the expression is, if it is just one.
    #[must_use]
    pub fn as_column(&self) -> Option<usize> {
        match self.node {
            Node::Column(i) => Some(i),
            _ => None,
        }
    }

    /// Whether a value can make the evaluation fail.
    #[must_use]
    pub fn may_fail(&self) -> bool {
        self.fallible
    }

    /// The value on every row of `batch`: a column, or one value for all rows.
    ///
    /// # Errors
    /// When the evaluation fails on a row.
    pub fn evaluate(&self, batch: &RecordBatch, context: &EvalContext) -> Result<ColumnarValue> {
        debug_assert_eq!(batch.num_rows(), context.rows);
        self.node.evaluate(batch.columns(), context)
    }

    /// The value on every row of `batch` as a column.
    ///
    /// # Errors
    /// When the evaluation fails on a row.
    pub fn evaluate_array(&self, batch: &RecordBatch, context: &EvalContext) -> Result<ArrayRef> {
        into_array(self.evaluate(batch, context)?, context.rows)
    }

    /// Whether the condition holds, for every row of `batch`; NULL counts as false.
    ///
    /// # Errors
    /// When the evaluation fails on a row.
    pub fn evaluate_predicate(
        &self,
        batch: &RecordBatch,
        context: &EvalContext,
    ) -> Result<BooleanArray> {
        let holds = booleans(self.evaluate(batch, context)?, context.rows)?;
        Ok(match holds.nulls() {
            None => holds,
            Some(nulls) => BooleanArray::new(holds.values() & nulls.inner(), None),
        })
    }
}

/// A compiled node.
enum Node {
    Column(usize),
    Literal(ScalarValue),
    Call {
        kernel: Kernel,
        args: Vec<Node>,
    },
    Cast {
        input: Box<Node>,
        cast: Cast,
    },
    Compare {
        comparator: Comparator,
        left: Box<Node>,
        right: Box<Node>,
    },
    Connective(Connective),
    Not(Box<Node>),
    IsNull {
        input: Box<Node>,
        negated: bool,
    },
    Case(Case),
    Coalesce(Coalesce),
    Field {
        input: Box<Node>,
        index: usize,
    },
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Column(_) => "Column",
            Self::Literal(_) => "Literal",
            Self::Call { .. } => "Call",
            Self::Cast { .. } => "Cast",
            Self::Compare { .. } => "Compare",
            Self::Connective(_) => "Connective",
            Self::Not(_) => "Not",
            Self::IsNull { .. } => "IsNull",
            Self::Case(_) => "Case",
            Self::Coalesce(_) => "Coalesce",
            Self::Field { .. } => "Field",
        })
    }
}

/// Arguments as a function sees them.
fn describe(args: &[Expr]) -> Vec<Arg> {
    args.iter()
        .map(|arg| Arg {
            data_type: arg.data_type.clone(),
            literal: arg.as_literal().cloned(),
        })
        .collect()
}

/// Whether a value can make `expr` fail, the input columns being what they may.
fn may_fail(expr: &Expr, env: &Environment) -> bool {
    expr.any(&mut |e| match &e.kind {
        ExprKind::Call { function, args } => function.may_fail_on(&describe(args)),
        ExprKind::Cast { input, mode } => {
            Cast::new(&input.data_type, &e.data_type, *mode, env).is_ok_and(|cast| cast.may_fail())
        }
        _ => false,
    })
}

fn compile(expr: &Expr, env: &Environment) -> Result<Node> {
    let node = |e: &Expr| compile(e, env);
    let boxed = |e: &Expr| compile(e, env).map(Box::new);
    let part = |e: &Expr| {
        Ok::<_, Error>(Part {
            node: compile(e, env)?,
            columns: e.columns(),
            fallible: may_fail(e, env),
        })
    };
    Ok(match &expr.kind {
        ExprKind::Column(i) => Node::Column(*i),
        ExprKind::Outer { .. } => {
            return Err(Error::internal(
                "a reference to an outer query was not decorrelated",
            ));
        }
        ExprKind::Literal(value) => Node::Literal(value.clone()),
        ExprKind::Call { function, args } => Node::Call {
            kernel: function.prepare(&describe(args), &expr.data_type, env)?,
            args: args.iter().map(node).collect::<Result<_>>()?,
        },
        ExprKind::Cast { input, mode } => {
            let cast = Cast::new(&input.data_type, &expr.data_type, *mode, env)?;
            if cast.is_identity() {
                return node(input);
            }
            Node::Cast {
                input: boxed(input)?,
                cast,
            }
        }
        ExprKind::Compare { op, left, right } => Node::Compare {
            comparator: Comparator::new(*op, &left.data_type.kind),
            left: boxed(left)?,
            right: boxed(right)?,
        },
        ExprKind::And(parts) | ExprKind::Or(parts) => Node::Connective(Connective {
            and: matches!(expr.kind, ExprKind::And(_)),
            parts: parts.iter().map(part).collect::<Result<_>>()?,
        }),
        ExprKind::Not(input) => Node::Not(boxed(input)?),
        ExprKind::IsNull { input, negated } => Node::IsNull {
            input: boxed(input)?,
            negated: *negated,
        },
        ExprKind::Case {
            branches,
            otherwise,
        } => {
            let is_coalesce = branches.iter().all(|(when, then)| match &when.kind {
                ExprKind::IsNull {
                    input,
                    negated: true,
                } => input.same(then),
                _ => false,
            });
            if is_coalesce {
                let values = branches.iter().map(|(_, then)| then);
                let parts = values.chain([otherwise.as_ref()]).map(part);
                return Ok(Node::Coalesce(Coalesce {
                    parts: parts.collect::<Result<_>>()?,
                }));
            }
            Node::Case(Case {
                branches: branches
                    .iter()
                    .map(|(when, then)| Ok((part(when)?, part(then)?)))
                    .collect::<Result<_>>()?,
                otherwise: Box::new(part(otherwise)?),
            })
        }
        ExprKind::Field { input, index } => Node::Field {
            input: boxed(input)?,
            index: *index,
        },
    })
}

impl Node {
    /// The value on every row of `columns`, of which there are `context.rows`.
    fn evaluate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<ColumnarValue> {
        match self {
            Self::Column(i) => match columns.get(*i) {
                Some(column) => Ok(ColumnarValue::Array(Arc::clone(column))),
                None => Err(Error::internal(format!(
                    "column {i} of {} is missing",
                    columns.len()
                ))),
            },
            Self::Literal(value) => Ok(ColumnarValue::Scalar(value.clone())),
            Self::Call { kernel, args } => {
                let args = args
                    .iter()
                    .map(|arg| arg.evaluate(columns, context))
                    .collect::<Result<Vec<_>>>()?;
                kernel(&args, context)
            }
            Self::Cast { input, cast } => {
                map_array(input.evaluate(columns, context)?, |array| cast.array(array))
            }
            Self::Compare {
                comparator,
                left,
                right,
            } => comparator.compare(
                left.evaluate(columns, context)?,
                right.evaluate(columns, context)?,
            ),
            Self::Connective(connective) => connective.evaluate(columns, context),
            Self::Not(input) => map_array(input.evaluate(columns, context)?, |array| {
                Ok(Arc::new(not(boolean_array(array)?)?))
            }),
            Self::IsNull { input, negated } => {
                map_array(input.evaluate(columns, context)?, |array| {
                    let found = if *negated {
                        is_not_null(array)?
                    } else {
                        is_null(array)?
                    };
                    Ok(Arc::new(found))
                })
            }
            Self::Case(case) => case.evaluate(columns, context),
            Self::Coalesce(coalesce) => coalesce.evaluate(columns, context),
            Self::Field { input, index } => {
                map_array(input.evaluate(columns, context)?, |row| field(row, *index))
            }
        }
    }
}

/// Column `index` of a column of rows; NULL where the row is.
fn field(row: &ArrayRef, index: usize) -> Result<ArrayRef> {
    let row = row
        .as_struct_opt()
        .filter(|row| index < row.num_columns())
        .ok_or_else(|| Error::internal("a field was taken of something that is no row"))?;
    let column = row.column(index);
    if row.null_count() == 0 {
        return Ok(Arc::clone(column));
    }
    let nulls = NullBuffer::union(row.nulls(), column.nulls());
    let data = column.to_data().into_builder().nulls(nulls).build()?;
    Ok(make_array(data))
}

/// Applies `convert` to a column, or to a scalar as a column of one row.
fn map_array(
    value: ColumnarValue,
    convert: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(convert(&array)?),
        ColumnarValue::Scalar(scalar) => {
            let converted = convert(&scalar.to_array_of_size(1)?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&converted, 0)?)
        }
    })
}

/// A value as a column of `rows` rows.
fn into_array(value: ColumnarValue, rows: usize) -> Result<ArrayRef> {
    match value {
        ColumnarValue::Array(array) => Ok(array),
        ColumnarValue::Scalar(scalar) => Ok(scalar.to_array_of_size(rows)?),
    }
}

fn boolean_array(array: &ArrayRef) -> Result<&BooleanArray> {
    array
        .as_boolean_opt()
        .ok_or_else(|| Error::internal("a condition is not BOOLEAN"))
}

/// A condition as a column of `rows` rows.
fn booleans(value: ColumnarValue, rows: usize) -> Result<BooleanArray> {
    match value {
        ColumnarValue::Array(array) => boolean_array(&array).cloned(),
        ColumnarValue::Scalar(ScalarValue::Boolean(value)) => {
            Ok(std::iter::repeat_n(value, rows).collect())
        }
        ColumnarValue::Scalar(value) if value.is_null() => {
            Ok(std::iter::repeat_n(None::<bool>, rows).collect())
        }
        ColumnarValue::Scalar(_) => Err(Error::internal("a condition is not BOOLEAN")),
    }
}

#[cfg(test)]
mod tests;
