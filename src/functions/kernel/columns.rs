//! The arguments of one evaluation, constants among them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::read::Read;
use crate::error::{Error, Result};
use crate::functions::EvalContext;

/// The arguments of one evaluation.
pub(in crate::functions) struct Columns {
    arrays: Vec<(ArrayRef, bool)>,
    /// Rows to compute: one, if all arguments are constant.
    pub(in crate::functions) rows: usize,
    constant: bool,
}

/// One argument, read by `R`.
pub(in crate::functions) struct Column<R: Read> {
    array: R::Array,
    constant: bool,
}

impl<R: Read> Column<R> {
    /// The value in row `i`, which is not NULL.
    #[inline]
    pub(in crate::functions) fn value(&self, i: usize) -> R::Item<'_> {
        R::read(&self.array, if self.constant { 0 } else { i })
    }

    /// The value in row `i`.
    #[inline]
    pub(in crate::functions) fn get(&self, i: usize) -> Option<R::Item<'_>> {
        let i = if self.constant { 0 } else { i };
        self.array.is_valid(i).then(|| R::read(&self.array, i))
    }
}

impl Columns {
    pub(in crate::functions) fn new(args: &[ColumnarValue], ctx: &EvalContext) -> Result<Self> {
        let constant = args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let arrays = args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Array(array) => Ok((Arc::clone(array), false)),
                ColumnarValue::Scalar(value) => Ok((value.to_array()?, true)),
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            arrays,
            rows: if constant { 1 } else { ctx.rows },
            constant,
        })
    }

    /// The number of arguments.
    pub(in crate::functions) fn count(&self) -> usize {
        self.arrays.len()
    }

    /// Argument `i` as it came; of one row, if it is constant.
    pub(in crate::functions) fn raw(&self, i: usize) -> (&ArrayRef, bool) {
        let (array, constant) = &self.arrays[i];
        (array, *constant)
    }

    /// Argument `i`, read by `R`.
    pub(in crate::functions) fn column<R: Read>(&self, i: usize) -> Result<Column<R>> {
        let (array, constant) = &self.arrays[i];
        let array_of = |array: &ArrayRef| {
            R::array(array).ok_or_else(|| {
                Error::internal(format!(
                    "argument {i} of a function is a column of {}",
                    array.data_type()
                ))
            })
        };
        Ok(Column {
            array: array_of(array)?,
            constant: *constant,
        })
    }

    /// Arguments of one type, each read by `R`.
    pub(in crate::functions) fn each<R: Read>(
        &self,
        args: std::ops::Range<usize>,
    ) -> Result<Vec<Column<R>>> {
        args.map(|i| self.column(i)).collect()
    }

    /// Argument `i` as an array of [`rows`](Self::rows) rows.
    pub(in crate::functions) fn array(&self, i: usize) -> Result<ArrayRef> {
        let (array, constant) = &self.arrays[i];
        if *constant && self.rows != 1 {
            return Ok(ScalarValue::try_from_array(array, 0)?.to_array_of_size(self.rows)?);
        }
        Ok(Arc::clone(array))
    }

    /// The rows in which an argument is NULL.
    pub(in crate::functions) fn nulls(&self) -> Option<NullBuffer> {
        self.nulls_of(0..self.arrays.len())
    }

    /// The rows in which one of these arguments is NULL.
    pub(in crate::functions) fn nulls_of(
        &self,
        args: impl IntoIterator<Item = usize>,
    ) -> Option<NullBuffer> {
        let mut union: Option<NullBuffer> = None;
        for i in args {
            let (array, constant) = &self.arrays[i];
            if *constant {
                if array.is_null(0) || array.data_type() == &ArrowType::Null {
                    return Some(NullBuffer::new_null(self.rows));
                }
            } else {
                union = NullBuffer::union(union.as_ref(), array.logical_nulls().as_ref());
            }
        }
        union
    }

    /// The result: a scalar, if all arguments are constant.
    pub(in crate::functions) fn finish(&self, array: ArrayRef) -> Result<ColumnarValue> {
        if self.constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &array, 0,
            )?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
