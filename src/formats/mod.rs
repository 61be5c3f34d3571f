//! Bytes to rows and back.
//!
//! A [`Format`] reads its options once and makes a [`DecodingFormat`] or an [`EncodingFormat`]; these
//! make the [`Decoder`]s and [`Encoder`]s that work on the data. Decoders fill typed columns, without
//! a value object a row.
//!
//! - [`avro`]: Avro, with and without a schema registry,
//! - [`builder`]: typed columns under construction, which every decoder fills,
//! - [`bulk`]: formats of whole files,
//! - [`csv`]: lines of values,
//! - [`json`]: objects, also those that carry a changelog,
//! - [`parquet`]: files of columns,
//! - [`protobuf`]: messages of a descriptor set,
//! - [`raw`]: one column, unparsed,
//! - [`text`]: values from their text, by Java's rules.

pub mod avro;
pub mod builder;
pub mod bulk;
pub mod csv;
pub mod json;
pub mod parquet;
pub mod protobuf;
pub mod raw;
mod temporal;
pub mod text;
mod view;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use self::avro::AvroFormat;
use self::builder::ColumnBuilder;
use self::json::CdcFormat;
use crate::changelog::{ChangeBatch, ChangelogMode, RowKind};
use crate::connectors::options::Options;
use crate::connectors::{OptionSpec, Origin, TableDescription};
use crate::error::{Error, Result, did_you_mean};
use crate::types::{DataType, Schema};

/// A format, found by the option `format`.
pub trait Format: Send + Sync {
    /// The value of `format` that names it, and the prefix of its options.
    fn identifier(&self) -> &'static str;

    /// Its options, without the prefix.
    fn options(&self) -> Vec<OptionSpec>;

    /// Whether Flink has it, and where.
    fn origin(&self) -> Origin;

    /// The format for reading.
    ///
    /// # Errors
    /// When an option is malformed, or the format only writes.
    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>>;

    /// The format for writing.
    ///
    /// # Errors
    /// When an option is malformed, or the format only reads.
    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>>;
}

/// A record found in a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Its bytes.
    pub record: Range<usize>,
    /// Where the next one begins.
    pub next: usize,
}

/// Tells the records of a file apart.
pub trait Splitter: Send {
    /// The first record of `data`, which begins where a record begins. `None` when it does not end in
    /// `data` and more may come, or when there is none left.
    fn next(&mut self, data: &[u8], at_end: bool) -> Option<Cut>;
}

/// One record a line; a carriage return before the line feed is not part of it.
#[derive(Debug, Default)]
pub struct Lines;

impl Splitter for Lines {
    fn next(&mut self, data: &[u8], at_end: bool) -> Option<Cut> {
        let (mut end, next) = match memchr::memchr(b'\n', data) {
            Some(i) => (i, i + 1),
            None if at_end && !data.is_empty() => (data.len(), data.len()),
            None => return None,
        };
        if end > 0 && data[end - 1] == b'\r' && next > end {
            end -= 1;
        }
        Some(Cut {
            record: 0..end,
            next,
        })
    }
}

/// What a decoder is to make of each record.
#[derive(Debug, Clone, Default)]
pub struct DecodedColumns {
    /// All columns that a record holds.
    pub schema: Schema,
    /// The columns to decode, as indices into `schema`.
    pub projection: Vec<usize>,
    /// Metadata of the format that follows them: key and type.
    pub metadata: Vec<(String, DataType)>,
}

impl DecodedColumns {
    /// All columns of `schema`.
    #[must_use]
    pub fn all(schema: &Schema) -> Self {
        Self {
            projection: (0..schema.len()).collect(),
            schema: schema.clone(),
            metadata: Vec::new(),
        }
    }

    /// The Arrow schema of what a decoder gives.
    #[must_use]
    pub fn arrow(&self) -> SchemaRef {
        self.produced().to_arrow()
    }

    /// The columns that a decoder gives.
    #[must_use]
    pub fn produced(&self) -> Schema {
        let mut schema = self.schema.project(&self.projection);
        schema.columns.extend(
            self.metadata
                .iter()
                .map(|(key, t)| crate::types::Column::new(key, t.clone())),
        );
        schema
    }
}

/// A format with its options, for reading.
pub trait DecodingFormat: Send + Sync {
    /// The kinds that its rows have.
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    /// The metadata that it can read: key and type.
    fn metadata(&self) -> Vec<(String, DataType)> {
        Vec::new()
    }

    /// How the records of a file are told apart.
    fn splitter(&self) -> Box<dyn Splitter> {
        Box::new(Lines)
    }

    /// Whether it finds the fields of rows by name, so that a row may be declared with some of its
    /// fields alone.
    fn finds_by_name(&self) -> bool {
        false
    }

    /// The format as one of whole files, if it is one: it has no decoder then.
    fn bulk(&self) -> Option<&dyn bulk::BulkDecoding> {
        None
    }

    /// A decoder of `columns`.
    ///
    /// # Errors
    /// When the format does not support a type.
    fn decoder(&self, columns: &DecodedColumns) -> Result<Box<dyn Decoder>>;
}

/// A format with its options, for writing.
pub trait EncodingFormat: Send + Sync {
    /// The kinds that it can write.
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    /// The format as one of whole files, if it is one: it has no encoder then.
    fn bulk(&self) -> Option<&dyn bulk::BulkEncoding> {
        None
    }

    /// An encoder of rows of `schema`.
    ///
    /// # Errors
    /// When the format does not support a type.
    fn encoder(&self, schema: &Schema) -> Result<Box<dyn Encoder>>;
}

/// Turns records into rows. Rows are kept until [`finish`](Self::finish).
///
/// - Bytes MUST never make it panic.
/// - A record that fails leaves no half of a row behind.
pub trait Decoder: Send {
    /// Takes one record. It may hold no row, or several.
    ///
    /// # Errors
    /// When it cannot be decoded and errors are not to be ignored.
    fn decode(&mut self, record: &[u8]) -> Result<()>;

    /// Takes a record that is not there: one without a value. It holds no row, unless the format
    /// says that it stands for NULL.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_none(&mut self) -> Result<()> {
        Ok(())
    }

    /// Rows since the last [`finish`](Self::finish).
    fn rows(&self) -> usize;

    /// Bytes of the largest buffer: a reader cuts the batch when it grows large.
    fn bytes_used(&self) -> usize;

    /// The rows since the last call.
    ///
    /// # Errors
    /// When the columns do not fit together: a bug of the decoder.
    fn finish(&mut self) -> Result<ChangeBatch>;

    /// Records that were skipped because they could not be decoded.
    fn skipped(&self) -> u64;
}

/// Turns rows into records.
pub trait Encoder: Send {
    /// Appends the record of each row to `out`: one a row, in order.
    ///
    /// # Errors
    /// When a row cannot be written in the format.
    fn encode(&mut self, batch: &ChangeBatch, out: &mut Records) -> Result<()>;
}

/// Encoded records, one after the other.
#[derive(Debug, Default)]
pub struct Records {
    /// The bytes of all records.
    pub data: Vec<u8>,
    /// Where each ends in `data`, and whether it is there: the record of a row can be nothing.
    ends: Vec<(usize, bool)>,
}

impl Records {
    /// Ends the record that was written to `data`.
    pub fn commit(&mut self) {
        self.ends.push((self.data.len(), true));
    }

    /// Says that a row has no record.
    pub fn commit_none(&mut self) {
        self.ends.push((self.data.len(), false));
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The record of row `i`, if it has one.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<&[u8]> {
        let start = if i == 0 { 0 } else { self.ends[i - 1].0 };
        let (end, is_there) = self.ends[i];
        is_there.then(|| &self.data[start..end])
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
    }
}

/// The options of one format of a table, under their prefix.
#[derive(Debug, Clone)]
pub struct FormatOptions<'a> {
    options: Options<'a>,
    prefix: String,
}

impl<'a> FormatOptions<'a> {
    /// The options of `table` whose keys begin with `prefix` (`json.`).
    #[must_use]
    pub fn new(table: &'a TableDescription, prefix: impl Into<String>) -> Self {
        Self {
            options: Options::of(table),
            prefix: prefix.into(),
        }
    }

    /// The full key of an option.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The text of an option, if it is given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.options.get(&self.key(name))
    }

    /// The subject of a schema registry that Flink gives the key or the value of a topic.
    #[must_use]
    pub fn default_subject(&self) -> Option<String> {
        let topic = self.options.get("topic").filter(|t| !t.contains(';'))?;
        let part = if self.prefix.starts_with("key.") {
            "key"
        } else {
            "value"
        };
        Some(format!("{topic}-{part}"))
    }

    /// `true` or `false`, or `default`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool> {
        self.options.boolean(&self.key(name), default)
    }

    /// One of a few words, or `default`.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)], default: T) -> Result<T> {
        self.options.choice(&self.key(name), choices, default)
    }
}

/// All formats.
static FORMATS: [&dyn Format; 12] = [
    &protobuf::ProtobufFormat,
    &AvroFormat::Plain,
    &AvroFormat::Confluent,
    &AvroFormat::Debezium,
    &csv::CsvFormat,
    &json::JsonFormat,
    &parquet::ParquetFormat,
    &raw::RawFormat,
    &CdcFormat::Debezium,
    &CdcFormat::Canal,
    &CdcFormat::Maxwell,
    &CdcFormat::Ogg,
];

/// The format that `identifier` names.
///
/// # Errors
/// When there is none.
pub fn format(identifier: &str) -> Result<&'static dyn Format> {
    FORMATS
        .iter()
        .find(|f| f.identifier() == identifier)
        .copied()
        .ok_or_else(|| {
            let names: Vec<&str> = formats().map(Format::identifier).collect();
            let error = Error::options(format!(
                "Could not find any format factory for identifier '{identifier}'.\n\n\
                 Available formats are:\n\n{}",
                names.join("\n")
            ));
            match did_you_mean(identifier, names) {
                Some(close) => error.hint(format!("did you mean '{close}'?")),
                None => error,
            }
        })
}

/// All formats.
pub fn formats() -> impl Iterator<Item = &'static dyn Format> {
    FORMATS.iter().copied()
}

/// The columns of a decoder and the kinds of its rows.
#[derive(Debug)]
pub(crate) struct Rows {
    arrow: SchemaRef,
    /// The columns, by name.
    pub(crate) columns: Vec<(String, ColumnBuilder)>,
    /// One a row. Empty while all are insertions.
    kinds: Vec<RowKind>,
    rows: usize,
}

impl Rows {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            arrow: schema.to_arrow(),
            columns: schema
                .columns
                .iter()
                .map(|c| (c.name.clone(), ColumnBuilder::new(&c.data_type)))
                .collect(),
            kinds: Vec::new(),
            rows: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let used = self.columns.iter().map(|(_, c)| c.bytes_used());
        used.max().unwrap_or(0)
    }

    /// Counts a row whose columns are all written.
    pub(crate) fn commit(&mut self, kind: RowKind) {
        if kind != RowKind::Insert && self.kinds.is_empty() {
            self.kinds.resize(self.rows, RowKind::Insert);
        }
        if kind != RowKind::Insert || !self.kinds.is_empty() {
            self.kinds.push(kind);
        }
        self.rows += 1;
    }

    /// Forgets all rows from row `rows` on, and what was written of the next one.
    pub(crate) fn truncate(&mut self, rows: usize) {
        for (_, column) in &mut self.columns {
            column.truncate(rows);
        }
        self.kinds.truncate(rows);
        self.rows = rows;
    }

    pub(crate) fn finish(&mut self) -> Result<ChangeBatch> {
        let rows = std::mem::take(&mut self.rows);
        let kinds = std::mem::take(&mut self.kinds);
        let columns = self
            .columns
            .iter_mut()
            .map(|(_, c)| c.finish())
            .collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns, &options)?;
        if kinds.is_empty() {
            Ok(ChangeBatch::inserts(batch))
        } else {
            ChangeBatch::try_new(batch, kinds)
        }
    }
}
