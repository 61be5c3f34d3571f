//! The operators: arithmetic on numbers, dates and intervals, `||`, `LIKE` and `SIMILAR TO`.
//!
//! - [`arithmetic`]: which operator takes which types, and what comes out,
//! - [`number`], [`decimal`], [`temporal`]: the kernels,
//! - [`text`]: concatenation and patterns.

mod arithmetic;
mod decimal;
mod number;
mod pattern;
mod temporal;
mod text;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::binary;
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use self::arithmetic::{Arithmetic, MinusDate, Operator};
pub(super) use self::number::converted;
use self::text::{Concat, Like};
use super::doc::{FunctionDoc, FunctionKind};
use super::{Arg, FunctionRef, Kernel};
use crate::error::{Error, Result};

/// All operators.
#[must_use]
pub fn all() -> Vec<FunctionRef> {
    let mut all: Vec<FunctionRef> = [
        ("+", Operator::Plus),
        ("-", Operator::Minus),
        ("*", Operator::Times),
        ("/", Operator::Divide),
        ("%", Operator::Modulo),
        ("MOD", Operator::Modulo),
    ]
    .into_iter()
    .map(|(name, operator)| Arc::new(Arithmetic { name, operator }) as FunctionRef)
    .collect();
    all.push(Arc::new(MinusDate));
    all.push(Arc::new(Concat));
    all.push(Arc::new(Like { similar: false }));
    all.push(Arc::new(Like { similar: true }));
    all
}

/// All operators with their descriptions.
pub(super) fn documented() -> Vec<(FunctionRef, FunctionDoc)> {
    let doc = |name: &str| {
        let (signature, summary, example, result) = match name {
            "+" => (
                "a + b\n+a",
                "The sum of two numbers or intervals, or a point in time moved by an interval.",
                "DATE '2024-01-31' + INTERVAL '1' MONTH",
                "2024-02-29",
            ),
            "-" => (
                "a - b\n-a",
                "The difference of two numbers or intervals, or a point in time moved back.",
                "1.5 - 0.25",
                "1.25",
            ),
            "*" => (
                "a * b",
                "The product of two numbers, or of an interval and an integer.",
                "2 * 1.5",
                "3.0",
            ),
            "/" => (
                "a / b",
                "The quotient of two numbers; of integers an integer.",
                "7 / 2",
                "3",
            ),
            "%" | "MOD" => (
                "a % b\nMOD(a, b)",
                "The remainder of a division of exact numbers, with the sign of the dividend.",
                "MOD(-7, 3)",
                "-1",
            ),
            "||" => ("a || b", "Two strings joined.", "'a' || 'bc'", "abc"),
            "LIKE" => (
                "s [NOT] LIKE pattern [ESCAPE c]",
                "Whether all of s matches: % is any text, _ one character.",
                "'abc' LIKE 'a%'",
                "true",
            ),
            "SIMILAR TO" => (
                "s [NOT] SIMILAR TO pattern [ESCAPE c]",
                "Whether all of s matches the regular expression of the SQL standard.",
                "'abc' SIMILAR TO 'a(b|x)c'",
                "true",
            ),
            _ => (
                "(a - b) DAY",
                "The interval between two points in time of one type.",
                "(DATE '2024-01-02' - DATE '2024-01-01') DAY",
                "PT24H",
            ),
        };
        FunctionDoc {
            example: example.into(),
            result: result.into(),
            ..FunctionDoc::new(FunctionKind::Scalar, "operators", signature, summary)
        }
    };
    let all = all().into_iter();
    all.map(|function| {
        let doc = doc(function.name());
        (function, doc)
    })
    .collect()
}

/// The error of an operator whose arguments do not fit.
fn refuse(name: &str, args: &[Arg], forms: &str) -> Error {
    let types: Vec<String> = args
        .iter()
        .map(|arg| super::sql_type(&arg.data_type.kind))
        .collect();
    let symbol = !name.starts_with(|c: char| c.is_alphabetic());
    let call = match types.as_slice() {
        [left, right] if symbol => format!("{left} {name} {right}"),
        [only] if symbol => format!("{name}{only}"),
        types => format!("{name}({})", types.join(", ")),
    };
    Error::plan(format!(
        "Cannot apply '{name}' to arguments of type '{call}'. Supported form(s): {forms}"
    ))
}

/// An argument of a kernel: a column, or one value (NULL: `None`) for all rows.
enum Values<T: ArrowPrimitiveType> {
    Column(PrimitiveArray<T>),
    Constant(Option<T::Native>),
}

impl<T: ArrowPrimitiveType> Values<T> {
    fn new(value: &ColumnarValue) -> Result<Self> {
        let typed = |array: &ArrayRef| {
            array.as_primitive_opt::<T>().cloned().ok_or_else(|| {
                Error::internal(format!(
                    "an operator for {} got {}",
                    T::DATA_TYPE,
                    array.data_type()
                ))
            })
        };
        Ok(match value {
            ColumnarValue::Array(array) => Self::Column(typed(array)?),
            ColumnarValue::Scalar(scalar) => {
                let array = typed(&scalar.to_array_of_size(1)?)?;
                Self::Constant((!array.is_null(0)).then(|| array.value(0)))
            }
        })
    }
}

impl<T: ArrowPrimitiveType> Values<T> {
    fn get(&self, row: usize) -> Option<T::Native> {
        match self {
            Self::Column(column) => (!column.is_null(row)).then(|| column.value(row)),
            Self::Constant(value) => *value,
        }
    }
}

/// A result of a kernel.
enum Outcome<T: ArrowPrimitiveType> {
    Column(PrimitiveArray<T>),
    Constant(Option<T::Native>),
}

impl<T: ArrowPrimitiveType> Outcome<T> {
    /// With the Arrow type of the result, which may have a precision or a zone.
    fn typed(self, data_type: &ArrowType) -> Result<ColumnarValue> {
        Ok(match self {
            Self::Column(array) => {
                ColumnarValue::Array(Arc::new(array.with_data_type(data_type.clone())))
            }
            Self::Constant(value) => {
                let array = PrimitiveArray::<T>::from_iter([value]);
                let array: ArrayRef = Arc::new(array.with_data_type(data_type.clone()));
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
        })
    }
}

/// Applies `f` to the values of a row; NULL if one of them is.
fn zip_with<A, B, O>(
    left: &Values<A>,
    right: &Values<B>,
    f: impl Fn(A::Native, B::Native) -> O::Native,
) -> Result<Outcome<O>>
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    Ok(match (left, right) {
        (Values::Column(l), Values::Column(r)) => Outcome::Column(binary(l, r, f)?),
        (Values::Column(l), Values::Constant(Some(r))) => {
            let r = *r;
            Outcome::Column(l.unary(|l| f(l, r)))
        }
        (Values::Constant(Some(l)), Values::Column(r)) => {
            let l = *l;
            Outcome::Column(r.unary(|r| f(l, r)))
        }
        (Values::Constant(l), Values::Constant(r)) => {
            Outcome::Constant(l.zip(*r).map(|(l, r)| f(l, r)))
        }
        _ => Outcome::Constant(None),
    })
}

/// The same for an `f` that can fail or give NULL: it sees no value beside a NULL.
fn try_zip_with<A, B, O>(
    left: &Values<A>,
    right: &Values<B>,
    f: impl Fn(A::Native, B::Native) -> Result<Option<O::Native>>,
) -> Result<Outcome<O>>
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let rows = match (left, right) {
        (Values::Constant(None), _) | (_, Values::Constant(None)) => {
            return Ok(Outcome::Constant(None));
        }
        (Values::Constant(Some(l)), Values::Constant(Some(r))) => {
            return Ok(Outcome::Constant(f(*l, *r)?));
        }
        (Values::Column(column), _) => column.len(),
        (_, Values::Column(column)) => column.len(),
    };
    let mut builder = arrow::array::PrimitiveBuilder::<O>::with_capacity(rows);
    for i in 0..rows {
        let value = match (left.get(i), right.get(i)) {
            (Some(l), Some(r)) => f(l, r)?,
            _ => None,
        };
        builder.append_option(value);
    }
    Ok(Outcome::Column(builder.finish()))
}

/// A kernel of two arguments of primitive types.
fn kernel<A, B, O>(
    returns: ArrowType,
    apply: impl Fn(&Values<A>, &Values<B>) -> Result<Outcome<O>> + Send + Sync + 'static,
) -> Kernel
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    Box::new(move |args, _| match args {
        [left, right] => apply(&Values::new(left)?, &Values::new(right)?)?.typed(&returns),
        _ => Err(Error::internal("an operator of two arguments got others")),
    })
}

/// A kernel of one argument of a primitive type.
fn unary_kernel<T: ArrowPrimitiveType>(
    returns: ArrowType,
    f: impl Fn(T::Native) -> T::Native + Send + Sync + 'static,
) -> Kernel {
    Box::new(move |args, _| {
        let [input] = args else {
            return Err(Error::internal("an operator of one argument got others"));
        };
        let outcome = match Values::<T>::new(input)? {
            Values::Column(column) => Outcome::<T>::Column(column.unary(&f)),
            Values::Constant(value) => Outcome::Constant(value.map(&f)),
        };
        outcome.typed(&returns)
    })
}

#[cfg(test)]
mod tests;
