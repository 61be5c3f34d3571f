//! Writes rows to a file, row group by row group.

use std::fs::File;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::WriterProperties;

use super::{Settings, failed};
use crate::error::{Error, Result};
use crate::formats::bulk::BulkWriter;
use crate::types::Schema;

pub(super) struct Writer {
    writer: ArrowWriter<File>,
    block_bytes: usize,
}

impl Writer {
    pub(super) fn create(file: File, schema: &Schema, settings: &Settings) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(settings.compression)
            .set_dictionary_enabled(settings.dictionary)
            .set_data_page_size_limit(settings.page_bytes)
            .set_created_by(concat!("ebbflow version ", env!("CARGO_PKG_VERSION")).to_string())
            // The names inside lists and maps that all readers know.
            .set_coerce_types(true)
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_schema_root("flink_schema".to_string())
            .with_skip_arrow_metadata(true);
        let arrow = schema.to_arrow();
        let writer = ArrowWriter::try_new_with_options(file, arrow, options).map_err(failed)?;
        Ok(Self {
            writer,
            block_bytes: settings.block_bytes,
        })
    }
}

/// What a writer says: the cause of a full disk is worth more than where it was noticed.
fn written(error: parquet::errors::ParquetError) -> Error {
    match error {
        parquet::errors::ParquetError::External(cause) => Error::connector(cause.to_string()),
        other => failed(other),
    }
}

impl BulkWriter for Writer {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(written)?;
        if self.writer.in_progress_size() >= self.block_bytes {
            self.writer.flush().map_err(written)?;
        }
        Ok(())
    }

    fn size(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.writer.finish().map_err(written)?;
        self.writer.sync().map_err(failed)
    }
}
