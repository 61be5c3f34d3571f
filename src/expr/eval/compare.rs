//! Comparisons with the meaning that they have in Java.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Datum, PrimitiveArray, Scalar,
    make_comparator,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::SortOptions;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use crate::error::{Error, Result};
use crate::expr::CompareOp;
use crate::types::TypeKind;

/// Compares values of one type.
pub(super) struct Comparator {
    op: CompareOp,
    form: Form,
}

/// How values are compared.
enum Form {
    /// As Arrow does it: numbers by size, text by its bytes.
    Arrow,
    /// Java's `==` and `<` on primitives: NaN differs from everything, 0.0 equals -0.0.
    Float,
    /// The same.
    Double,
    /// Part by part, for equality only.
    Nested,
}

/// One side of a comparison.
struct Side {
    array: ArrayRef,
    is_scalar: bool,
}

impl Side {
    fn new(value: ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(array) => Self {
                array,
                is_scalar: false,
            },
            ColumnarValue::Scalar(scalar) => Self {
                array: scalar.to_array_of_size(1)?,
                is_scalar: true,
            },
        })
    }

    /// The row to read for row `i` of the result.
    fn row(&self, i: usize) -> usize {
        if self.is_scalar { 0 } else { i }
    }

    /// The NULLs of `rows` rows.
    fn nulls(&self, rows: usize) -> Option<NullBuffer> {
        if !self.is_scalar {
            self.array.nulls().cloned()
        } else if self.array.is_null(0) {
            Some(NullBuffer::new_null(rows))
        } else {
            None
        }
    }
}

impl Comparator {
    pub(super) fn new(op: CompareOp, kind: &TypeKind) -> Self {
        let form = match kind {
            TypeKind::Float => Form::Float,
            TypeKind::Double => Form::Double,
            TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Multiset(_)
            | TypeKind::Row(_)
            | TypeKind::Structured(..) => Form::Nested,
            _ => Form::Arrow,
        };
        Self { op, form }
    }

    pub(super) fn compare(
        &self,
        left: ColumnarValue,
        right: ColumnarValue,
    ) -> Result<ColumnarValue> {
        let (left, right) = (Side::new(left)?, Side::new(right)?);
        let found = match self.form {
            Form::Arrow => compare_arrow(self.op, &left, &right)?,
            Form::Float => compare_floats::<Float32Type>(self.op, &left, &right),
            Form::Double => compare_floats::<Float64Type>(self.op, &left, &right),
            Form::Nested => compare_nested(self.op, &left, &right)?,
        };
        Ok(if left.is_scalar && right.is_scalar {
            let value = (!found.is_null(0)).then(|| found.value(0));
            ColumnarValue::Scalar(ScalarValue::Boolean(value))
        } else {
            ColumnarValue::Array(Arc::new(found))
        })
    }
}

fn compare_arrow(op: CompareOp, left: &Side, right: &Side) -> Result<BooleanArray> {
    let kernel = match op {
        CompareOp::Eq => cmp::eq,
        CompareOp::NotEq => cmp::neq,
        CompareOp::Lt => cmp::lt,
        CompareOp::LtEq => cmp::lt_eq,
        CompareOp::Gt => cmp::gt,
        CompareOp::GtEq => cmp::gt_eq,
        CompareOp::NotDistinct => cmp::not_distinct,
        CompareOp::Distinct => cmp::distinct,
    };
    let (l, r) = (Arc::clone(&left.array), Arc::clone(&right.array));
    let found = match (left.is_scalar, right.is_scalar) {
        (true, false) => kernel(&Scalar::new(l), &r as &dyn Datum),
        (false, true) => kernel(&l as &dyn Datum, &Scalar::new(r)),
        _ => kernel(&l as &dyn Datum, &r as &dyn Datum),
    };
    Ok(found?)
}

/// One bit a row, 64 rows at a time so that the compiler can use vector instructions.
fn pack<T: Copy>(
    left: &[T],
    right: &[T],
    scalars: (bool, bool),
    test: impl Fn(T, T) -> bool,
) -> BooleanBuffer {
    fn words<T: Copy>(left: &[T], test: impl Fn(usize, T) -> bool) -> BooleanBuffer {
        let mut words = Vec::with_capacity(left.len().div_ceil(64));
        for (block, values) in left.chunks(64).enumerate() {
            let mut word = 0u64;
            for (i, value) in values.iter().enumerate() {
                word |= u64::from(test(block * 64 + i, *value)) << i;
            }
            words.push(word);
        }
        BooleanBuffer::new(Buffer::from_vec(words), 0, left.len())
    }
    match scalars {
        (false, true) => {
            let right = right[0];
            words(left, |_, l| test(l, right))
        }
        (true, false) => {
            let left = left[0];
            words(right, |_, r| test(left, r))
        }
        _ => {
            let right = &right[..left.len()];
            words(left, |i, l| test(l, right[i]))
        }
    }
}

fn compare_floats<T>(op: CompareOp, left: &Side, right: &Side) -> BooleanArray
where
    T: ArrowPrimitiveType,
    T::Native: PartialOrd,
{
    let l: &PrimitiveArray<T> = left.array.as_primitive();
    let r: &PrimitiveArray<T> = right.array.as_primitive();
    let scalars = (left.is_scalar, right.is_scalar);
    let (l, r) = (&l.values()[..], &r.values()[..]);
    let bits = match op {
        CompareOp::Eq | CompareOp::NotDistinct => pack(l, r, scalars, |a, b| a == b),
        CompareOp::NotEq | CompareOp::Distinct => pack(l, r, scalars, |a, b| a != b),
        CompareOp::Lt => pack(l, r, scalars, |a, b| a < b),
        CompareOp::LtEq => pack(l, r, scalars, |a, b| a <= b),
        CompareOp::Gt => pack(l, r, scalars, |a, b| a > b),
        CompareOp::GtEq => pack(l, r, scalars, |a, b| a >= b),
    };
    with_nulls(op, bits, left, right)
}

/// Completes the comparison of values: NULL if a side is, but for the two comparisons that know NULL.
fn with_nulls(op: CompareOp, bits: BooleanBuffer, left: &Side, right: &Side) -> BooleanArray {
    let rows = bits.len();
    let (l, r) = (left.nulls(rows), right.nulls(rows));
    let nulls = NullBuffer::union(l.as_ref(), r.as_ref());
    let distinct = match op {
        CompareOp::NotDistinct => false,
        CompareOp::Distinct => true,
        _ => return BooleanArray::new(bits, nulls),
    };
    let Some(nulls) = nulls else {
        return BooleanArray::new(bits, None);
    };
    let is_null = |nulls: &Option<NullBuffer>, i| nulls.as_ref().is_some_and(|n| n.is_null(i));
    let bits = BooleanBuffer::collect_bool(rows, |i| {
        if nulls.is_null(i) {
            (is_null(&l, i) != is_null(&r, i)) == distinct
        } else {
            bits.value(i)
        }
    });
    BooleanArray::new(bits, None)
}

/// Whether a value of one array equals a value of another, by their rows.
type Equal = Box<dyn Fn(usize, usize) -> bool>;

fn compare_nested(op: CompareOp, left: &Side, right: &Side) -> Result<BooleanArray> {
    let negated = match op {
        CompareOp::Eq | CompareOp::NotDistinct => false,
        CompareOp::NotEq | CompareOp::Distinct => true,
        _ => return Err(Error::internal("nested values have no order")),
    };
    let rows = if left.is_scalar {
        &right.array
    } else {
        &left.array
    }
    .len();
    let equal = nested_equal(&left.array, &right.array)?;
    let bits = BooleanBuffer::collect_bool(rows, |i| equal(left.row(i), right.row(i)) != negated);
    Ok(with_nulls(op, bits, left, right))
}

/// Equality of values of one type, in which NULL equals NULL and floating-point numbers are equal by their
/// bits: that is how Flink looks at the parts of nested values.
fn nested_equal(left: &ArrayRef, right: &ArrayRef) -> Result<Equal> {
    let equal: Equal = match (left.data_type(), right.data_type()) {
        (ArrowType::List(_), ArrowType::List(_)) => {
            let (l, r) = (
                left.as_list::<i32>().clone(),
                right.as_list::<i32>().clone(),
            );
            let element = nested_equal(l.values(), r.values())?;
            Box::new(move |i, j| {
                let (a, b) = (range(l.value_offsets(), i), range(r.value_offsets(), j));
                a.len() == b.len() && a.zip(b).all(|(a, b)| element(a, b))
            })
        }
        (ArrowType::Struct(_), ArrowType::Struct(_)) => {
            let fields = left
                .as_struct()
                .columns()
                .iter()
                .zip(right.as_struct().columns())
                .map(|(l, r)| nested_equal(l, r))
                .collect::<Result<Vec<_>>>()?;
            Box::new(move |i, j| fields.iter().all(|equal| equal(i, j)))
        }
        (ArrowType::Map(..), ArrowType::Map(..)) => {
            let (l, r) = (left.as_map().clone(), right.as_map().clone());
            let key = nested_equal(l.keys(), r.keys())?;
            let value = nested_equal(l.values(), r.values())?;
            Box::new(move |i, j| {
                let (a, b) = (range(l.value_offsets(), i), range(r.value_offsets(), j));
                // Entries have no order.
                a.len() == b.len()
                    && a.clone()
                        .all(|a| b.clone().any(|b| key(a, b) && value(a, b)))
            })
        }
        _ => {
            let order = make_comparator(left, right, SortOptions::default())?;
            return Ok(Box::new(move |i, j| order(i, j).is_eq()));
        }
    };
    let (l, r) = (left.nulls().cloned(), right.nulls().cloned());
    if l.is_none() && r.is_none() {
        return Ok(equal);
    }
    let is_null = |nulls: &Option<NullBuffer>, i| nulls.as_ref().is_some_and(|n| n.is_null(i));
    Ok(Box::new(move |i, j| {
        match (is_null(&l, i), is_null(&r, j)) {
            (false, false) => equal(i, j),
            (a, b) => a == b,
        }
    }))
}

/// The entries of row `i`.
fn range(offsets: &[i32], i: usize) -> std::ops::Range<usize> {
    let at = |i: usize| usize::try_from(offsets[i]).unwrap_or(0);
    at(i)..at(i + 1)
}
