//! Emits result rows in batches of bounded size.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::runtime::output::Output;

/// Emits rows with a kind each, cut to `batch_size`.
pub(super) fn emit(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    kinds: Vec<RowKind>,
    batch_size: usize,
    out: &mut Output<'_>,
) -> Result<()> {
    let len = kinds.len();
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    let rows = RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?;
    let batch = ChangeBatch::try_new(rows, kinds)?;
    let batch_size = batch_size.max(1);
    if len <= batch_size {
        return out.emit(batch);
    }
    for start in (0..len).step_by(batch_size) {
        out.emit(batch.slice(start, batch_size.min(len - start)))?;
    }
    Ok(())
}
