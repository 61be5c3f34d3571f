//! Reads the wanted columns of a file, from any row on.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};

use super::convert::{convert, fits};
use super::failed;
use crate::error::{Error, Result};
use crate::formats::DecodedColumns;
use crate::formats::bulk::BulkReader;
use crate::types::Schema;

/// Rows that are decoded at once.
pub(super) const BATCH_ROWS: usize = 4096;

pub(super) struct Reader {
    reader: ParquetRecordBatchReader,
    /// Of each column of the output: its place in what the file gives, if the file has it.
    places: Vec<Option<usize>>,
    arrow: SchemaRef,
    produced: Schema,
    /// Decoded and not handed out.
    rest: Option<RecordBatch>,
}

impl Reader {
    /// Opens a file, or one row group of it, behind its first `skip` rows.
    pub(super) fn open(
        file: File,
        columns: &DecodedColumns,
        row_group: Option<usize>,
        skip: u64,
    ) -> Result<Self> {
        let mut builder = builder(file)?;
        if let Some(row_group) = row_group {
            if row_group >= builder.metadata().num_row_groups() {
                return Err(failed(format!("there is no row group {row_group}")));
            }
            builder = builder.with_row_groups(vec![row_group]);
        }
        let produced = columns.produced();
        let found = Arc::clone(builder.schema());
        let mut wanted = Vec::new();
        let mut in_file = Vec::with_capacity(produced.len());
        for column in &produced.columns {
            // As in Flink: a column that the file does not have is NULL.
            let index = found.fields().iter().position(|f| *f.name() == column.name);
            if let Some(index) = index {
                let from = found.field(index).data_type();
                if !fits(from, &column.data_type) {
                    return Err(Error::format(format!(
                        "column '{}' is {from} in the file, which does not fit {}",
                        column.name, column.data_type
                    )));
                }
                wanted.push(index);
            }
            in_file.push(index);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let place = |index: &Option<usize>| index.and_then(|i| wanted.binary_search(&i).ok());
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.iter().copied());
        let reader = builder
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .with_offset(usize::try_from(skip).unwrap_or(usize::MAX))
            .build()
            .map_err(failed)?;
        Ok(Self {
            places: in_file.iter().map(place).collect(),
            arrow: produced.to_arrow(),
            produced,
            reader,
            rest: None,
        })
    }

    /// The columns of the table out of those that the file gave.
    fn shape(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns = self.places.iter().zip(&self.produced.columns);
        let columns = columns.map(|(place, column)| match place {
            Some(place) => convert(batch.column(*place), &column.data_type)
                .map_err(|e| e.context(format!("column '{}'", column.name))),
            None => Ok(new_null_array(&column.data_type.to_arrow(), rows)),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = columns.collect::<Result<_>>()?;
        let arrow = Arc::clone(&self.arrow);
        Ok(RecordBatch::try_new_with_options(arrow, columns, &options)?)
    }
}

/// The footer of a file, and what can be read by it.
fn builder(file: File) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    guarded(|| ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(failed))
}

/// Number of row groups of a file.
pub(super) fn row_groups(file: File) -> Result<usize> {
    Ok(builder(file)?.metadata().num_row_groups())
}

/// Calls the library, which panics over some damaged files.
fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    let called = catch_unwind(AssertUnwindSafe(call));
    called.unwrap_or_else(|_| Err(failed("the file is damaged")))
}

impl BulkReader for Reader {
    fn next(&mut self, max_rows: usize) -> Result<Option<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match guarded(|| Ok(self.reader.next()))? {
                None => return Ok(None),
                Some(batch) => self.shape(&batch.map_err(failed)?)?,
            },
        };
        if batch.num_rows() <= max_rows {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(max_rows, batch.num_rows() - max_rows));
        Ok(Some(batch.slice(0, max_rows)))
    }
}
