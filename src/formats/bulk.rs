//! Formats that write and read whole files instead of records.

use std::fs::File;

use arrow::array::RecordBatch;

use super::DecodedColumns;
use crate::error::Result;
use crate::types::Schema;

/// A bulk format, for reading.
pub trait BulkDecoding: Send + Sync {
    /// Refuses columns that files cannot have.
    ///
    /// # Errors
    /// When a type is not supported.
    fn check(&self, columns: &DecodedColumns) -> Result<()>;

    /// Number of parts of a file that can be read apart from each other.
    ///
    /// # Errors
    /// When the file is not of the format.
    fn parts(&self, file: File) -> Result<usize>;

    /// A reader of `columns` of a file or a part of it, behind the first `skip` rows.
    ///
    /// # Errors
    /// When the file is not of the format, or has other types.
    fn reader(
        &self,
        file: File,
        columns: &DecodedColumns,
        part: Option<usize>,
        skip: u64,
    ) -> Result<Box<dyn BulkReader>>;
}

/// Reads one file.
pub trait BulkReader: Send {
    /// The next rows, at least one and at most `max_rows`; `None` at the end.
    ///
    /// # Errors
    /// When the file is damaged.
    fn next(&mut self, max_rows: usize) -> Result<Option<RecordBatch>>;
}

/// A bulk format, for writing.
pub trait BulkEncoding: Send + Sync {
    /// Refuses columns that files cannot have.
    ///
    /// # Errors
    /// When a type is not supported.
    fn check(&self, schema: &Schema) -> Result<()>;

    /// A writer of rows of `schema` to an empty file.
    ///
    /// # Errors
    /// When the file cannot be written to.
    fn writer(&self, file: File, schema: &Schema) -> Result<Box<dyn BulkWriter>>;

    /// Writes the rows of all `files` to the empty file `into`.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    fn merge(&self, files: Vec<File>, schema: &Schema, into: File) -> Result<()>;
}

/// Writes one file.
pub trait BulkWriter: Send {
    /// Takes rows.
    ///
    /// # Errors
    /// When they cannot be written.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Bytes that the file would have if it ended now, about.
    fn size(&self) -> u64;

    /// Writes what belongs at the end, and hands all to the operating system.
    ///
    /// # Errors
    /// When it cannot be written.
    fn finish(self: Box<Self>) -> Result<()>;
}
