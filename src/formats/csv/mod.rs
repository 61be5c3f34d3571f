//! The `csv` format, in the dialect of Flink's parser (Jackson): escapes also outside of quotes,
//! blanks after a closing quote, quotes inside a field taken as they are, text after a closing quote
//! refused.
//!
//! - [`parse`]: finds records in a file and fields in a record,
//! - [`decoder`], [`encoder`]: fields to columns and back.

mod decoder;
mod encoder;
mod parse;

use std::sync::Arc;

use self::parse::{CsvSplitter, Dialect};
use super::{
    DecodedColumns, Decoder, DecodingFormat, Encoder, EncodingFormat, Format, FormatOptions,
    Splitter,
};
use crate::connectors::options::optional;
use crate::connectors::{OptionSpec, Origin};
use crate::error::{Error, Result};
use crate::types::{DataType, Schema, TypeKind};

/// The format.
#[derive(Debug)]
pub struct CsvFormat;

/// What the options say.
#[derive(Debug, Clone)]
struct Settings {
    dialect: Dialect,
    ignore_parse_errors: bool,
    array_delimiter: String,
    null_literal: Option<String>,
    scientific_decimals: bool,
    ignore_trailing: bool,
    allow_trailing_comma: bool,
    fail_on_missing_columns: bool,
    empty_string_as_null: bool,
}

impl Format for CsvFormat {
    fn identifier(&self) -> &'static str {
        "csv"
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            optional("field-delimiter", "character between fields (,)"),
            optional("quote-character", "character around fields (\")"),
            optional("disable-quote-character", "take quotes as they are (false)"),
            optional(
                "escape-character",
                "takes the next character's meaning away",
            ),
            optional("allow-comments", "skip lines that begin with # (false)"),
            optional(
                "ignore-parse-errors",
                "bad fields become NULL, bad rows are skipped (false)",
            ),
            optional("array-element-delimiter", "character between elements (;)"),
            optional("null-literal", "text that stands for NULL"),
            optional("trim-spaces", "drop blanks around fields (false)"),
            optional("empty-string-as-null", "read no text as NULL (false)"),
            optional("allow-trailing-comma", "one delimiter more is fine (true)"),
            optional("ignore-trailing-unmappable", "drop further fields (false)"),
            optional(
                "fail-on-missing-columns",
                "fewer fields are an error (false)",
            ),
            optional(
                "write-bigdecimal-in-scientific-notation",
                "write 100 as 1E+2 (true)",
            ),
        ]
    }

    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>> {
        Ok(Arc::new(Coding(Settings::read(options)?)))
    }

    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>> {
        Ok(Arc::new(Coding(Settings::read(options)?)))
    }
}

impl Settings {
    fn read(options: &FormatOptions<'_>) -> Result<Self> {
        let disable_quotes = options.boolean("disable-quote-character", false)?;
        if disable_quotes && options.get("quote-character").is_some() {
            return Err(Error::options(
                "Format cannot define a quote character and disabled quote character at the same time.",
            ));
        }
        let quote = match character(options, "quote-character")? {
            _ if disable_quotes => None,
            None => Some("\"".to_string()),
            quote => quote,
        };
        let delimiter = match options.get("field-delimiter") {
            Some(text) => single(options, "field-delimiter", &unescape(text), text)?,
            None => ",".to_string(),
        };
        Ok(Self {
            dialect: Dialect {
                delimiter: delimiter.into_bytes(),
                quote: quote.map(String::into_bytes),
                escape: character(options, "escape-character")?.map(String::into_bytes),
                comments: options.boolean("allow-comments", false)?,
                trim: options.boolean("trim-spaces", false)?,
            },
            ignore_parse_errors: options.boolean("ignore-parse-errors", false)?,
            array_delimiter: character(options, "array-element-delimiter")?
                .unwrap_or_else(|| ";".into()),
            null_literal: options.get("null-literal").map(str::to_string),
            scientific_decimals: options
                .boolean("write-bigdecimal-in-scientific-notation", true)?,
            ignore_trailing: options.boolean("ignore-trailing-unmappable", false)?,
            allow_trailing_comma: options.boolean("allow-trailing-comma", true)?,
            fail_on_missing_columns: options.boolean("fail-on-missing-columns", false)?,
            empty_string_as_null: options.boolean("empty-string-as-null", false)?,
        })
    }
}

fn character(options: &FormatOptions<'_>, name: &str) -> Result<Option<String>> {
    options
        .get(name)
        .map(|text| single(options, name, text, text))
        .transpose()
}

fn single(options: &FormatOptions<'_>, name: &str, value: &str, text: &str) -> Result<String> {
    if value.chars().count() == 1 {
        return Ok(value.to_string());
    }
    Err(Error::options(format!(
        "Option '{}' must be a string with single character, but was: {text}",
        options.key(name)
    )))
}

/// Java's escapes: `\t`, `\n`, `\u0001`, `\1`.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let (radix, max, first) = match chars.next() {
            Some('t') => {
                out.push('\t');
                continue;
            }
            Some('n') => {
                out.push('\n');
                continue;
            }
            Some('r') => {
                out.push('\r');
                continue;
            }
            Some('b') => {
                out.push('\u{8}');
                continue;
            }
            Some('f') => {
                out.push('\u{c}');
                continue;
            }
            Some('u') => (16, 4, None),
            Some(c @ '0'..='7') => (8, 2, c.to_digit(8)),
            Some(c) => {
                out.push(c);
                continue;
            }
            None => continue,
        };
        let mut code = first.unwrap_or(0);
        for _ in 0..max {
            let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            chars.next();
            code = code * radix + digit;
        }
        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    out
}

/// Refuses types that a line cannot hold.
fn check_types(schema: &Schema) -> Result<()> {
    fn is_simple(t: &DataType) -> bool {
        !matches!(
            t.kind,
            TypeKind::Array(_)
                | TypeKind::Map(..)
                | TypeKind::Multiset(_)
                | TypeKind::Row(_)
                | TypeKind::Structured(..)
                | TypeKind::Variant
                | TypeKind::Bitmap
                | TypeKind::IntervalYearMonth
                | TypeKind::IntervalDayTime
        )
    }
    for column in &schema.columns {
        let nested: Vec<&DataType> = match &column.data_type.kind {
            TypeKind::Array(element) => vec![element],
            TypeKind::Row(fields) => fields.iter().map(|f| &f.data_type).collect(),
            _ if is_simple(&column.data_type) => vec![&column.data_type],
            _ => {
                return Err(Error::options(format!(
                    "Unsupported type '{}' for field '{}'.",
                    column.data_type, column.name
                )));
            }
        };
        for t in nested {
            if !is_simple(t) {
                return Err(Error::options(format!(
                    "Only simple types are supported in the second level nesting of fields '{}' but was: {t}",
                    column.name
                )));
            }
            if let TypeKind::Time(p @ 4..) = t.kind {
                return Err(Error::options(format!(
                    "Csv does not support TIME type with precision: {p}, it only supports precision 0 ~ 3."
                )));
            }
        }
    }
    Ok(())
}

struct Coding(Settings);

impl DecodingFormat for Coding {
    fn splitter(&self) -> Box<dyn Splitter> {
        Box::new(CsvSplitter::new(self.0.dialect.clone()))
    }

    fn decoder(&self, columns: &DecodedColumns) -> Result<Box<dyn Decoder>> {
        check_types(&columns.schema)?;
        Ok(Box::new(decoder::CsvDecoder::new(self.0.clone(), columns)))
    }
}

impl EncodingFormat for Coding {
    fn encoder(&self, schema: &Schema) -> Result<Box<dyn Encoder>> {
        check_types(schema)?;
        Ok(Box::new(encoder::CsvEncoder::new(
            self.0.clone(),
            schema.clone(),
        )))
    }
}

#[cfg(test)]
mod tests;
