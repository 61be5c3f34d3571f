//! The JSON formats that carry a changelog: `debezium-json`, `canal-json`, `maxwell-json` and
//! `ogg-json`.
//!
//! A record is an envelope: the kind of the change, the row before and after it, and what is known of
//! its origin. Written, every row is one envelope: an addition or a removal.

mod decode;
mod encode;
mod metadata;

use std::sync::Arc;

use fancy_regex::Regex;

use self::metadata::Metadata;
use super::{DecodeOptions, EncodeOptions, check_types, common_options};
use crate::changelog::ChangelogMode;
use crate::connectors::options::optional;
use crate::connectors::{OptionSpec, Origin};
use crate::error::{Error, Result};
use crate::formats::{
    DecodedColumns, Decoder, DecodingFormat, Encoder, EncodingFormat, Format, FormatOptions,
};
use crate::types::{DataType, Schema};

/// Which tool made the envelopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CdcFormat {
    /// `debezium-json`.
    Debezium,
    /// `canal-json`.
    Canal,
    /// `maxwell-json`.
    Maxwell,
    /// `ogg-json`.
    Ogg,
}

impl CdcFormat {
    /// The tool's name, for messages.
    fn tool(self) -> &'static str {
        match self {
            Self::Debezium => "Debezium",
            Self::Canal => "Canal",
            Self::Maxwell => "Maxwell",
            Self::Ogg => "Ogg",
        }
    }

    /// The field that holds the kind of the change.
    fn kind_field(self) -> &'static str {
        match self {
            Self::Debezium => "op",
            Self::Canal | Self::Maxwell => "type",
            Self::Ogg => "op_type",
        }
    }
}

/// What the options say for reading.
#[derive(Debug, Clone)]
struct DecodeSettings {
    flavor: CdcFormat,
    json: DecodeOptions,
    /// Whether the envelope lies in the field `payload`.
    schema_include: bool,
    database: Option<Regex>,
    table: Option<Regex>,
}

impl Format for CdcFormat {
    fn identifier(&self) -> &'static str {
        match self {
            Self::Debezium => "debezium-json",
            Self::Canal => "canal-json",
            Self::Maxwell => "maxwell-json",
            Self::Ogg => "ogg-json",
        }
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        let mut options = common_options();
        match self {
            Self::Debezium => options.push(optional(
                "schema-include",
                "records hold their schema beside the payload (false)",
            )),
            Self::Canal => options.extend([
                optional(
                    "database.include",
                    "regular expression of databases to read",
                ),
                optional("table.include", "regular expression of tables to read"),
            ]),
            Self::Maxwell | Self::Ogg => {}
        }
        options
    }

    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>> {
        Ok(Arc::new(Decoding(DecodeSettings {
            flavor: *self,
            json: DecodeOptions::read(options)?,
            schema_include: options.boolean("schema-include", false)?,
            database: pattern(options, "database.include")?,
            table: pattern(options, "table.include")?,
        })))
    }

    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>> {
        if options.boolean("schema-include", false)? {
            return Err(Error::options(format!(
                "Debezium JSON serialization doesn't support '{}' option been set to true.",
                options.key("schema-include")
            )));
        }
        Ok(Arc::new(Encoding(*self, EncodeOptions::read(options)?)))
    }
}

fn pattern(options: &FormatOptions<'_>, name: &str) -> Result<Option<Regex>> {
    options
        .get(name)
        .map(|text| {
            Regex::new(&format!("^(?:{text})$")).map_err(|e| {
                Error::options(format!(
                    "Option '{}' is no regular expression: {e}",
                    options.key(name)
                ))
            })
        })
        .transpose()
}

struct Decoding(DecodeSettings);

impl DecodingFormat for Decoding {
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::RETRACT
    }

    fn metadata(&self) -> Vec<(String, DataType)> {
        Metadata::all(self.0.flavor)
            .iter()
            .map(|m| (m.key.to_string(), m.data_type()))
            .collect()
    }

    fn decoder(&self, columns: &DecodedColumns) -> Result<Box<dyn Decoder>> {
        check_types(&columns.schema.project(&columns.projection))?;
        let metadata = columns
            .metadata
            .iter()
            .map(|(key, _)| {
                Metadata::find(self.0.flavor, key).ok_or_else(|| {
                    Error::options(format!("Could not find the requested metadata key: {key}"))
                })
            })
            .collect::<Result<_>>()?;
        Ok(Box::new(decode::CdcDecoder::new(
            self.0.clone(),
            columns,
            metadata,
        )))
    }
}

struct Encoding(CdcFormat, EncodeOptions);

impl EncodingFormat for Encoding {
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::RETRACT
    }

    fn encoder(&self, schema: &Schema) -> Result<Box<dyn Encoder>> {
        Ok(Box::new(encode::CdcEncoder::new(
            self.0,
            schema,
            self.1.clone(),
        )?))
    }
}

#[cfg(test)]
mod tests;
