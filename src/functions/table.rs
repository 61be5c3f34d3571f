//! Table functions: one row in, any number of rows out (`LATERAL TABLE(f(x))`).

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::Int64Type;

use crate::error::{Error, Result};
use crate::types::{Column, DataType, Schema, TypeKind};

/// A table function.
///
/// MUST be deterministic: a withdrawn row has to give the rows that it gave when it was added.
pub trait TableFunction: fmt::Debug + Send + Sync {
    /// Its name, in upper case.
    fn name(&self) -> &str;

    /// The types that the arguments are cast to, and the columns of the result.
    ///
    /// # Errors
    /// When the number or types of the arguments do not fit.
    fn resolve(&self, args: &[DataType]) -> Result<(Vec<DataType>, Schema)>;

    /// The rows for a batch of calls: `args` are columns of one length; the answer is, for each
    /// result row, the call that it belongs to (ascending), and the result's columns.
    ///
    /// # Errors
    /// When a call fails; ends the job.
    fn evaluate(&self, args: &[ArrayRef]) -> Result<(UInt32Array, RecordBatch)>;
}

/// A shared table function.
pub type TableFunctionRef = Arc<dyn TableFunction>;

/// The function behind INTERSECT ALL and EXCEPT ALL: a count and columns in, the columns `count`
/// times out.
#[must_use]
pub fn replicate_rows() -> TableFunctionRef {
    Arc::new(ReplicateRows)
}

#[derive(Debug)]
struct ReplicateRows;

impl TableFunction for ReplicateRows {
    fn name(&self) -> &str {
        "$REPLICATE_ROWS$1"
    }

    fn resolve(&self, args: &[DataType]) -> Result<(Vec<DataType>, Schema)> {
        let mut types = args.to_vec();
        let Some(times) = types.first_mut() else {
            return Err(Error::internal("a count of repetitions is missing"));
        };
        *times = TypeKind::BigInt.nullable();
        let columns = args[1..]
            .iter()
            .enumerate()
            .map(|(i, t)| Column::new(format!("f{i}"), t.clone()))
            .collect();
        Ok((types, Schema::new(columns)))
    }

    fn evaluate(&self, args: &[ArrayRef]) -> Result<(UInt32Array, RecordBatch)> {
        let Some((times, columns)) = args.split_first() else {
            return Err(Error::internal("a count of repetitions is missing"));
        };
        let times = times.as_primitive::<Int64Type>();
        let mut calls = Vec::new();
        for row in 0..times.len() {
            if times.is_valid(row) {
                let n = usize::try_from(times.value(row)).unwrap_or(0);
                let row = u32::try_from(row).map_err(|_| Error::internal("a batch is too long"))?;
                calls.extend(std::iter::repeat_n(row, n));
            }
        }
        let calls = UInt32Array::from(calls);
        let columns = columns
            .iter()
            .enumerate()
            .map(|(i, column)| Ok((format!("f{i}"), take(column, &calls, None)?, true)))
            .collect::<Result<Vec<_>>>()?;
        Ok((calls, RecordBatch::try_from_iter_with_nullable(columns)?))
    }
}
