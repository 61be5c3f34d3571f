//! The `parquet` format: whole files of columns, which only connectors of files can use.
//!
//! - [`write`]: rows to a file,
//! - [`read`]: a file to rows; only the columns that are asked for are read,
//! - [`convert`]: from the types of a file to those of the table.

mod convert;
mod read;
mod write;

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};

use super::bulk::{BulkDecoding, BulkEncoding, BulkReader, BulkWriter};
use super::{
    DecodedColumns, Decoder, DecodingFormat, Encoder, EncodingFormat, Format, FormatOptions,
};
use crate::changelog::ChangelogMode;
use crate::connectors::options::{optional, parse_memory_size, wrong_value};
use crate::connectors::{OptionSpec, Origin};
use crate::error::{Error, Result};
use crate::types::{DataType, Schema, TypeKind};

/// The format.
#[derive(Debug)]
pub struct ParquetFormat;

/// How files are written.
#[derive(Debug, Clone)]
struct Settings {
    compression: Compression,
    /// Bytes of a row group.
    block_bytes: usize,
    /// Bytes of a page.
    page_bytes: usize,
    dictionary: bool,
}

impl Settings {
    fn read(options: &FormatOptions<'_>) -> Result<Self> {
        // Times are never moved to another zone, whatever these two say.
        if !options.boolean("utc-timezone", true)? {
            return Err(Error::options(format!(
                "Option '{}' = 'false' is not supported: times in files are UTC.",
                options.key("utc-timezone")
            )));
        }
        options.boolean("write.int64.timestamp", true)?;
        let bytes = |name: &str, default: u64| {
            let Some(text) = options.get(name) else {
                return Ok(default);
            };
            parse_memory_size(text).filter(|n| *n > 0).ok_or_else(|| {
                wrong_value(&options.key(name), text, "a number of bytes is expected")
            })
        };
        let zstd = Compression::ZSTD(ZstdLevel::default());
        let gzip = Compression::GZIP(GzipLevel::default());
        let as_size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Ok(Self {
            compression: options.choice(
                "compression",
                &[
                    ("SNAPPY", Compression::SNAPPY),
                    ("ZSTD", zstd),
                    ("GZIP", gzip),
                    ("UNCOMPRESSED", Compression::UNCOMPRESSED),
                ],
                Compression::SNAPPY,
            )?,
            block_bytes: as_size(bytes("block.size", 128 << 20)?),
            page_bytes: as_size(bytes("page.size", 1 << 20)?),
            dictionary: options.boolean("enable.dictionary", true)?,
        })
    }
}

impl Format for ParquetFormat {
    fn identifier(&self) -> &'static str {
        "parquet"
    }

    fn origin(&self) -> Origin {
        Origin::Jar("flink-sql-parquet")
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            optional("compression", "SNAPPY, ZSTD, GZIP or UNCOMPRESSED (SNAPPY)"),
            optional("block.size", "bytes of a row group (128 mb)"),
            optional("page.size", "bytes of a page (1 mb)"),
            optional("enable.dictionary", "write repeated values once (true)"),
            optional("utc-timezone", "only true: times are UTC"),
            optional("write.int64.timestamp", "without effect: always"),
            optional("batch-size", "without effect"),
        ]
    }

    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>> {
        Ok(Arc::new(Coding(Settings::read(options)?)))
    }

    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>> {
        Ok(Arc::new(Coding(Settings::read(options)?)))
    }
}

struct Coding(Settings);

fn not_by_record() -> Error {
    Error::options("The 'parquet' format has no single records: it holds whole files.")
        .hint("use it with 'connector' = 'filesystem'")
}

/// Refuses types that files cannot hold.
fn check(schema: &Schema) -> Result<()> {
    fn is_supported(t: &DataType) -> bool {
        match &t.kind {
            TypeKind::Null | TypeKind::IntervalYearMonth | TypeKind::IntervalDayTime => false,
            TypeKind::Array(element) | TypeKind::Multiset(element) => is_supported(element),
            TypeKind::Map(key, value) => is_supported(key) && is_supported(value),
            TypeKind::Row(fields) => {
                !fields.is_empty() && fields.iter().all(|f| is_supported(&f.data_type))
            }
            _ => true,
        }
    }
    let refused = schema.columns.iter().find(|c| !is_supported(&c.data_type));
    refused.map_or(Ok(()), |column| {
        Err(Error::options(format!(
            "The 'parquet' format does not support the type {} of column '{}'.",
            column.data_type, column.name
        )))
    })
}

impl DecodingFormat for Coding {
    fn decoder(&self, _columns: &DecodedColumns) -> Result<Box<dyn Decoder>> {
        Err(not_by_record())
    }

    fn bulk(&self) -> Option<&dyn BulkDecoding> {
        Some(self)
    }
}

impl EncodingFormat for Coding {
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    fn encoder(&self, _schema: &Schema) -> Result<Box<dyn Encoder>> {
        Err(not_by_record())
    }

    fn bulk(&self) -> Option<&dyn BulkEncoding> {
        Some(self)
    }
}

impl BulkDecoding for Coding {
    fn check(&self, columns: &DecodedColumns) -> Result<()> {
        check(&columns.schema)
    }

    fn parts(&self, file: File) -> Result<usize> {
        read::row_groups(file)
    }

    fn reader(
        &self,
        file: File,
        columns: &DecodedColumns,
        part: Option<usize>,
        skip: u64,
    ) -> Result<Box<dyn BulkReader>> {
        Ok(Box::new(read::Reader::open(file, columns, part, skip)?))
    }
}

impl BulkEncoding for Coding {
    fn check(&self, schema: &Schema) -> Result<()> {
        check(schema)
    }

    fn writer(&self, file: File, schema: &Schema) -> Result<Box<dyn BulkWriter>> {
        Ok(Box::new(write::Writer::create(file, schema, &self.0)?))
    }

    fn merge(&self, files: Vec<File>, schema: &Schema, into: File) -> Result<()> {
        let columns = DecodedColumns::all(schema);
        let mut writer = write::Writer::create(into, schema, &self.0)?;
        for file in files {
            let mut reader = read::Reader::open(file, &columns, None, 0)?;
            while let Some(batch) = reader.next(read::BATCH_ROWS)? {
                writer.write(&batch)?;
            }
        }
        Box::new(writer).finish()
    }
}

/// The error of an operation on a file's content.
fn failed(error: impl std::fmt::Display) -> Error {
    Error::format(format!("parquet: {error}"))
}

#[cfg(test)]
mod tests;
