//! The `json` format: one object (or an array of objects) a record.
//!
//! - [`value`]: reads one value into a column,
//! - [`scan`]: passes what is not wanted of a record,
//! - [`write`]: writes one value of a column,
//! - [`cdc`]: envelopes that carry a changelog,
//! - here: the format's options, and the decoder and encoder of whole records.

mod cdc;
mod sanitize;
mod scan;
mod value;
mod write;

use std::sync::Arc;

use jiter::{Jiter, Peek};

pub use self::cdc::CdcFormat;
pub(crate) use self::value::{Failure, Reader, syntax};
pub(crate) use self::write::{JsonWriter, write_decimal, write_integer};
use super::{
    DecodedColumns, Decoder, DecodingFormat, Encoder, EncodingFormat, Format, FormatOptions,
    Records, Rows,
};
use crate::changelog::{ChangeBatch, RowKind};
use crate::connectors::options::optional;
use crate::connectors::{OptionSpec, Origin};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::types::{DataType, Schema, TypeKind};

/// How timestamps are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampFormat {
    /// `2024-01-01 10:00:00.123`.
    Sql,
    /// `2024-01-01T10:00:00.123`.
    Iso8601,
}

/// What becomes of a NULL key of a map when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapNullKey {
    /// The row cannot be written.
    Fail,
    /// The entry is left out.
    Drop,
    /// A given text stands for the key.
    Literal,
}

/// Options of reading, shared by all formats that are made of JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodeOptions {
    pub(crate) ignore_parse_errors: bool,
    pub(crate) fail_on_missing_field: bool,
    pub(crate) timestamp_format: TimestampFormat,
}

/// Options of writing, shared by all formats that are made of JSON.
#[derive(Debug, Clone)]
pub(crate) struct EncodeOptions {
    pub(crate) timestamp_format: TimestampFormat,
    pub(crate) map_null_key: MapNullKey,
    pub(crate) map_null_key_literal: String,
    pub(crate) decimal_as_plain_number: bool,
    pub(crate) ignore_null_fields: bool,
}

fn timestamp_format(options: &FormatOptions<'_>) -> Result<TimestampFormat> {
    match options.get("timestamp-format.standard") {
        None | Some("SQL") => Ok(TimestampFormat::Sql),
        Some("ISO-8601") => Ok(TimestampFormat::Iso8601),
        Some(other) => Err(Error::options(format!(
            "Unsupported value '{other}' for timestamp-format.standard. Supported values are [SQL, ISO-8601]."
        ))),
    }
}

impl DecodeOptions {
    pub(crate) fn read(options: &FormatOptions<'_>) -> Result<Self> {
        let read = Self {
            ignore_parse_errors: options.boolean("ignore-parse-errors", false)?,
            fail_on_missing_field: options.boolean("fail-on-missing-field", false)?,
            timestamp_format: timestamp_format(options)?,
        };
        if read.ignore_parse_errors && read.fail_on_missing_field {
            return Err(Error::options(
                "fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
            ));
        }
        Ok(read)
    }
}

impl EncodeOptions {
    pub(crate) fn read(options: &FormatOptions<'_>) -> Result<Self> {
        let modes = [
            ("FAIL", MapNullKey::Fail),
            ("DROP", MapNullKey::Drop),
            ("LITERAL", MapNullKey::Literal),
        ];
        Ok(Self {
            timestamp_format: timestamp_format(options)?,
            map_null_key: options.choice("map-null-key.mode", &modes, MapNullKey::Fail)?,
            map_null_key_literal: options
                .get("map-null-key.literal")
                .unwrap_or("null")
                .to_string(),
            decimal_as_plain_number: options.boolean("encode.decimal-as-plain-number", false)?,
            ignore_null_fields: options.boolean("encode.ignore-null-fields", false)?,
        })
    }
}

/// The specs of the options that [`EncodeOptions`] and [`DecodeOptions`] read.
pub(crate) fn common_options() -> Vec<OptionSpec> {
    vec![
        optional(
            "ignore-parse-errors",
            "bad fields become NULL, bad rows are skipped (false)",
        ),
        optional("timestamp-format.standard", "SQL or ISO-8601 (SQL)"),
        optional(
            "map-null-key.mode",
            "what becomes of a NULL key: FAIL, DROP or LITERAL (FAIL)",
        ),
        optional("map-null-key.literal", "text of a NULL key (null)"),
        optional(
            "encode.decimal-as-plain-number",
            "no exponents in decimals (false)",
        ),
        optional("encode.ignore-null-fields", "leave NULL fields out (false)"),
    ]
}

/// Refuses maps whose keys are no strings.
pub(crate) fn check_types(schema: &Schema) -> Result<()> {
    fn check(data_type: &DataType) -> Result<()> {
        match &data_type.kind {
            TypeKind::Map(key, _) | TypeKind::Multiset(key) if !key.kind.is_string() => {
                return Err(Error::options(format!(
                    "JSON format doesn't support non-string as key type of map. The type is: {data_type}"
                )));
            }
            TypeKind::Bitmap => {
                return Err(Error::options(format!(
                    "JSON format doesn't support the type {data_type}"
                ))
                .hint("write BITMAP_TO_BYTES(b) or BITMAP_TO_ARRAY(b)"));
            }
            TypeKind::Map(_, part) | TypeKind::Array(part) => check(part)?,
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                fields.iter().try_for_each(|f| check(&f.data_type))?
            }
            _ => {}
        }
        Ok(())
    }
    schema.columns.iter().try_for_each(|c| check(&c.data_type))
}

/// Appends the value that a JSON text stands for, with timestamps as ISO-8601; `None` when it does
/// not fit.
pub(crate) fn push_text(column: &mut ColumnBuilder, text: &str) -> Option<()> {
    let reader = Reader::new(DecodeOptions {
        ignore_parse_errors: false,
        fail_on_missing_field: false,
        timestamp_format: TimestampFormat::Iso8601,
    });
    let mut jiter = Jiter::new(text.as_bytes());
    let peek = jiter.peek().ok()?;
    reader.value(&mut jiter, peek, column).ok()?;
    jiter.finish().ok()
}

/// The format.
#[derive(Debug)]
pub struct JsonFormat;

impl Format for JsonFormat {
    fn identifier(&self) -> &'static str {
        "json"
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        let mut options = common_options();
        options.push(optional(
            "fail-on-missing-field",
            "a missing field is an error (false)",
        ));
        options.push(optional(
            "decode.json-parser.enabled",
            "without effect: there is one fast parser (true)",
        ));
        options
    }

    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>> {
        options.boolean("decode.json-parser.enabled", true)?;
        Ok(Arc::new(Decoding(DecodeOptions::read(options)?)))
    }

    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>> {
        Ok(Arc::new(Encoding(EncodeOptions::read(options)?)))
    }
}

struct Decoding(DecodeOptions);

impl DecodingFormat for Decoding {
    fn finds_by_name(&self) -> bool {
        true
    }

    fn decoder(&self, columns: &DecodedColumns) -> Result<Box<dyn Decoder>> {
        let schema = columns.produced();
        check_types(&schema)?;
        let rows = Rows::new(&schema);
        Ok(Box::new(JsonDecoder {
            scans: scan::are_plain(&rows.columns),
            rows,
            reader: Reader::new(self.0),
            skipped: 0,
            tape: Vec::new(),
        }))
    }
}

struct JsonDecoder {
    rows: Rows,
    reader: Reader,
    skipped: u64,
    /// Whether records are first read the fast way.
    scans: bool,
    /// Memory for strings with escapes.
    tape: Vec<u8>,
}

impl JsonDecoder {
    fn read(&mut self, record: &[u8]) -> Result<(), Failure> {
        let mut jiter = Jiter::with_tape(record, std::mem::take(&mut self.tape));
        let result = self.read_root(&mut jiter);
        self.tape = jiter.into_tape();
        result
    }

    fn read_root(&mut self, jiter: &mut Jiter<'_>) -> Result<(), Failure> {
        match jiter.peek().map_err(syntax)? {
            Peek::Object => self.read_object(jiter),
            Peek::Array => {
                let mut next = jiter.known_array().map_err(syntax)?;
                while let Some(peek) = next {
                    if peek == Peek::Object {
                        self.read_object(jiter)?;
                    } else {
                        let start = jiter.current_index();
                        jiter.known_skip(peek).map_err(syntax)?;
                        let failure = Failure::value("object", start, jiter.current_index());
                        if !self.reader.options.ignore_parse_errors {
                            return Err(failure);
                        }
                        self.skipped += 1;
                    }
                    next = jiter.array_step().map_err(syntax)?;
                }
                Ok(())
            }
            _ => Err(Failure::Syntax("no object or array of objects".into())),
        }
    }

    fn read_object(&mut self, jiter: &mut Jiter<'_>) -> Result<(), Failure> {
        let row = self.rows.len();
        self.reader.row(jiter, &mut self.rows.columns, row)?;
        self.rows.commit(RowKind::Insert);
        Ok(())
    }
}

impl Decoder for JsonDecoder {
    fn decode(&mut self, record: &[u8]) -> Result<()> {
        if record.is_empty() {
            return Ok(());
        }
        let before = self.rows.len();
        if self.scans
            && scan::read_object(self.reader, record, &mut self.rows, &mut self.tape).is_some()
        {
            self.rows.commit(RowKind::Insert);
            return Ok(());
        }
        self.rows.truncate(before);
        let mut result = self.read(record);
        if let Err(Failure::Syntax(_)) = &result
            && let Some(repaired) = sanitize::repair(record)
        {
            self.rows.truncate(before);
            result = self.read(&repaired);
        }
        let Err(failure) = result else {
            return Ok(());
        };
        let rows = self.rows.len();
        if self.reader.options.ignore_parse_errors {
            self.rows.truncate(rows);
            self.skipped += 1;
            return Ok(());
        }
        self.rows.truncate(before);
        Err(failure.into_error(record))
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn bytes_used(&self) -> usize {
        self.rows.bytes_used()
    }

    fn finish(&mut self) -> Result<ChangeBatch> {
        self.rows.finish()
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

struct Encoding(EncodeOptions);

impl EncodingFormat for Encoding {
    fn encoder(&self, schema: &Schema) -> Result<Box<dyn Encoder>> {
        Ok(Box::new(JsonEncoder {
            writer: JsonWriter::new(schema, self.0.clone())?,
        }))
    }
}

struct JsonEncoder {
    writer: JsonWriter,
}

impl Encoder for JsonEncoder {
    fn encode(&mut self, batch: &ChangeBatch, out: &mut Records) -> Result<()> {
        let mut rows = self.writer.rows(batch)?;
        for i in 0..batch.len() {
            rows.write(i, &mut out.data)?;
            out.commit();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
