//! Rows of state as tables of a snapshot: the join key, the row's columns, and what goes with the row.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use arrow::datatypes::{Field, Schema as ArrowSchema};

use crate::error::{Error, Result};
use crate::types::Schema;

/// Rows per batch of a table.
pub(crate) const ROWS: usize = 8192;

/// A table of `rows`, which have the columns of `schema`.
pub(crate) fn row_table(
    schema: &Schema,
    keys: &[usize],
    rows: &[ArrayRef],
    meta: Vec<(&str, ArrayRef)>,
) -> Result<RecordBatch> {
    let positions = || keys.iter().copied().chain(0..rows.len());
    let named = |i: usize| {
        let column = &schema.columns[i];
        column.data_type.to_field(&column.name)
    };
    let fields = positions().map(named);
    let columns = positions().map(|i| Arc::clone(&rows[i]));
    let (names, values): (Vec<_>, Vec<_>) = meta.into_iter().unzip();
    let meta = names.iter().zip(&values);
    let meta = meta.map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let fields: Vec<Field> = fields.chain(meta).collect();
    let len = values.first().or(rows.first()).map_or(0, |c| c.len());
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    let columns = columns.chain(values.iter().cloned()).collect();
    let schema = Arc::new(ArrowSchema::new(fields));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// The rows of a [`row_table`] with `keys` columns of the key, and the columns that go with them.
pub(crate) fn split_table<'a>(
    saved: &'a RecordBatch,
    keys: usize,
    schema: &Schema,
    meta: usize,
) -> Result<(RecordBatch, &'a [ArrayRef])> {
    let end = keys + schema.len();
    if saved.num_columns() != end + meta {
        return Err(wrong_columns());
    }
    let columns = saved.columns()[keys..end].to_vec();
    let options = RecordBatchOptions::new().with_row_count(Some(saved.num_rows()));
    let rows = RecordBatch::try_new_with_options(schema.to_arrow(), columns, &options)
        .map_err(|_| wrong_columns())?;
    Ok((rows, &saved.columns()[end..]))
}

/// A column of numbers of a snapshot.
pub(crate) fn numbers<T: ArrowPrimitiveType>(column: &ArrayRef) -> Result<&PrimitiveArray<T>> {
    column.as_primitive_opt::<T>().ok_or_else(wrong_columns)
}

/// The snapshot is not the operator's.
pub(crate) fn wrong_columns() -> Error {
    Error::checkpoint("the saved state of a join has other columns")
}
