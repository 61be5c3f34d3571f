//! The `raw` format: a record is the one column, unparsed.

use std::sync::Arc;

use super::view::{View, views};
use super::{
    DecodedColumns, Decoder, DecodingFormat, Encoder, EncodingFormat, Format, FormatOptions,
    Records, Rows,
};
use crate::changelog::{ChangeBatch, RowKind};
use crate::connectors::options::optional;
use crate::connectors::{OptionSpec, Origin};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::types::{Schema, TypeKind};

/// The format.
#[derive(Debug)]
pub struct RawFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Latin1,
    Ascii,
    Utf16 { big_endian: bool, mark: bool },
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    charset: Charset,
    big_endian: bool,
}

impl Settings {
    fn read(options: &FormatOptions<'_>) -> Result<Self> {
        let name = options.get("charset").unwrap_or("UTF-8");
        let utf16 = |big_endian, mark| Charset::Utf16 { big_endian, mark };
        let charset = match name.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" => Charset::Utf8,
            "ISO-8859-1" | "ISO8859_1" | "ISO_8859_1" | "ISO8859-1" | "LATIN1" | "L1" => {
                Charset::Latin1
            }
            "US-ASCII" | "ASCII" | "ISO646-US" => Charset::Ascii,
            "UTF-16" | "UTF_16" | "UTF16" => utf16(true, true),
            "UTF-16BE" => utf16(true, false),
            "UTF-16LE" => utf16(false, false),
            _ => {
                return Err(Error::options(format!(
                    "Unsupported '{}' name: {name}.",
                    options.key("charset")
                ))
                .hint("UTF-8, ISO-8859-1, US-ASCII, UTF-16, UTF-16BE and UTF-16LE are supported"));
            }
        };
        let big_endian = match options.get("endianness") {
            None => true,
            Some(name) if name.eq_ignore_ascii_case("big-endian") => true,
            Some(name) if name.eq_ignore_ascii_case("little-endian") => false,
            Some(name) => {
                return Err(Error::options(format!(
                    "Unsupported endianness name: {name}. Valid values of '{}' option are 'big-endian' and 'little-endian'.",
                    options.key("endianness")
                )));
            }
        };
        Ok(Self {
            charset,
            big_endian,
        })
    }
}

impl Format for RawFormat {
    fn identifier(&self) -> &'static str {
        "raw"
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            optional("charset", "encoding of text (UTF-8)"),
            optional("endianness", "big-endian or little-endian (big-endian)"),
        ]
    }

    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>> {
        Ok(Arc::new(Coding(Settings::read(options)?)))
    }

    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>> {
        Ok(Arc::new(Coding(Settings::read(options)?)))
    }
}

/// Refuses schemas that are not one scalar column.
fn check(schema: &Schema) -> Result<()> {
    let [column] = schema.columns.as_slice() else {
        let columns: Vec<String> = schema
            .columns
            .iter()
            .map(|c| format!("`{}` {}", c.name, c.data_type))
            .collect();
        return Err(Error::options(format!(
            "The 'raw' format only supports single physical column. However the defined schema contains multiple physical columns: [{}]",
            columns.join(", ")
        )));
    };
    let kind = &column.data_type.kind;
    if kind.is_string()
        || kind.is_binary()
        || kind.is_integer()
        || kind.is_approximate()
        || *kind == TypeKind::Boolean
    {
        return Ok(());
    }
    Err(Error::options(format!(
        "The 'raw' format doesn't supports '{}' as column type.",
        column.data_type
    )))
}

struct Coding(Settings);

impl DecodingFormat for Coding {
    fn decoder(&self, columns: &DecodedColumns) -> Result<Box<dyn Decoder>> {
        check(&columns.schema)?;
        Ok(Box::new(RawDecoder {
            settings: self.0,
            rows: Rows::new(&columns.produced()),
            // Decoded, to be checked, also when nobody asks for it.
            unread: columns
                .projection
                .is_empty()
                .then(|| ColumnBuilder::new(&columns.schema.columns[0].data_type)),
        }))
    }
}

struct RawDecoder {
    settings: Settings,
    rows: Rows,
    unread: Option<ColumnBuilder>,
}

impl Decoder for RawDecoder {
    fn decode(&mut self, record: &[u8]) -> Result<()> {
        match (&mut self.unread, self.rows.columns.first_mut()) {
            (Some(column), _) => {
                push(column, record, self.settings)?;
                column.truncate(0);
            }
            (None, Some((_, column))) => push(column, record, self.settings)?,
            (None, None) => {}
        }
        self.rows.commit(RowKind::Insert);
        Ok(())
    }

    fn decode_none(&mut self) -> Result<()> {
        if let Some((_, column)) = self.rows.columns.first_mut() {
            column.push_null();
        }
        self.rows.commit(RowKind::Insert);
        Ok(())
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
        0
    }
}

fn push(column: &mut ColumnBuilder, record: &[u8], settings: Settings) -> Result<()> {
    fn bytes<const N: usize>(record: &[u8], name: &str, settings: Settings) -> Result<[u8; N]> {
        let mut bytes: [u8; N] = record.try_into().map_err(|_| {
            Error::format(format!(
                "Size of data received for deserializing {name} type is not {N}."
            ))
        })?;
        if !settings.big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }
    match column {
        ColumnBuilder::String(b) => {
            b.push(decode_text(record, settings.charset).as_bytes());
        }
        ColumnBuilder::Binary(b) => b.push(record),
        ColumnBuilder::Boolean(values, nulls) => {
            let [byte] = bytes(record, "BOOLEAN", settings)?;
            values.append(byte != 0);
            nulls.append_non_null();
        }
        ColumnBuilder::TinyInt(p) => p.push(i8::from_be_bytes(bytes(record, "TINYINT", settings)?)),
        ColumnBuilder::SmallInt(p) => {
            p.push(i16::from_be_bytes(bytes(record, "SMALLINT", settings)?));
        }
        ColumnBuilder::Int(p) => p.push(i32::from_be_bytes(bytes(record, "INT", settings)?)),
        ColumnBuilder::BigInt(p) => p.push(i64::from_be_bytes(bytes(record, "BIGINT", settings)?)),
        ColumnBuilder::Float(p) => p.push(f32::from_be_bytes(bytes(record, "FLOAT", settings)?)),
        ColumnBuilder::Double(p) => p.push(f64::from_be_bytes(bytes(record, "DOUBLE", settings)?)),
        _ => return Err(Error::internal("a raw record for a column of another type")),
    }
    Ok(())
}

/// The text of bytes; what is no character becomes U+FFFD.
fn decode_text(bytes: &[u8], charset: Charset) -> std::borrow::Cow<'_, str> {
    let ascii = |b: &u8| {
        if b.is_ascii() {
            char::from(*b)
        } else {
            char::REPLACEMENT_CHARACTER
        }
    };
    match charset {
        Charset::Utf8 => String::from_utf8_lossy(bytes),
        Charset::Latin1 => bytes.iter().map(|b| char::from(*b)).collect(),
        Charset::Ascii => bytes.iter().map(ascii).collect(),
        Charset::Utf16 { big_endian, mark } => {
            let (big_endian, bytes) = match bytes {
                [0xFE, 0xFF, rest @ ..] if mark => (true, rest),
                [0xFF, 0xFE, rest @ ..] if mark => (false, rest),
                _ => (big_endian, bytes),
            };
            let pairs = bytes.chunks(2).map(|pair| match (pair, big_endian) {
                ([a, b], true) => u16::from_be_bytes([*a, *b]),
                ([a, b], false) => u16::from_le_bytes([*a, *b]),
                _ => 0xFFFD,
            });
            char::decode_utf16(pairs)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
    }
}

/// Appends the bytes of a text; what the charset has not becomes `?`.
fn encode_text(text: &str, charset: Charset, out: &mut Vec<u8>) {
    match charset {
        Charset::Utf8 => out.extend_from_slice(text.as_bytes()),
        Charset::Latin1 => out.extend(text.chars().map(|c| u8::try_from(c).unwrap_or(b'?'))),
        Charset::Ascii => out.extend(text.chars().map(|c| {
            let byte = u8::try_from(c).ok();
            byte.filter(u8::is_ascii).unwrap_or(b'?')
        })),
        Charset::Utf16 { big_endian, mark } => {
            if mark {
                out.extend_from_slice(&[0xFE, 0xFF]);
            }
            for unit in text.encode_utf16() {
                out.extend_from_slice(&if big_endian {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                });
            }
        }
    }
}

impl EncodingFormat for Coding {
    fn encoder(&self, schema: &Schema) -> Result<Box<dyn Encoder>> {
        check(schema)?;
        Ok(Box::new(RawEncoder {
            settings: self.0,
            schema: schema.clone(),
        }))
    }
}

struct RawEncoder {
    settings: Settings,
    schema: Schema,
}

impl Encoder for RawEncoder {
    fn encode(&mut self, batch: &ChangeBatch, out: &mut Records) -> Result<()> {
        let views = views(batch, &self.schema)?;
        let view = &views[0];
        let number = |bytes: &[u8], out: &mut Vec<u8>| {
            if self.settings.big_endian {
                out.extend_from_slice(bytes);
            } else {
                out.extend(bytes.iter().rev());
            }
        };
        for i in 0..batch.len() {
            if view.is_null(i) {
                out.commit_none();
                continue;
            }
            let data = &mut out.data;
            match view {
                View::String(a) => encode_text(a.value(i), self.settings.charset, data),
                View::Binary(a) => data.extend_from_slice(a.value(i)),
                View::Boolean(a) => data.push(a.value(i).into()),
                View::TinyInt(a) => number(&a.value(i).to_be_bytes(), data),
                View::SmallInt(a) => number(&a.value(i).to_be_bytes(), data),
                View::Int(a) => number(&a.value(i).to_be_bytes(), data),
                View::BigInt(a) => number(&a.value(i).to_be_bytes(), data),
                View::Float(a) => number(&a.value(i).to_be_bytes(), data),
                View::Double(a) => number(&a.value(i).to_be_bytes(), data),
                _ => return Err(Error::internal("a column that the raw format cannot write")),
            }
            out.commit();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::{batch, lines, schema, table};

    fn decode(columns: &str, options: &[(&str, &str)], records: &[&[u8]]) -> Result<Vec<String>> {
        let t = table(columns, options);
        let format = RawFormat.decoding(&FormatOptions::new(&t, "raw."))?;
        let mut decoder = format.decoder(&DecodedColumns::all(&t.physical))?;
        for record in records {
            decoder.decode(record)?;
        }
        Ok(lines(&decoder.finish()?, &schema(columns)))
    }

    #[test]
    fn text_in_several_charsets() {
        let bytes = "äß€".as_bytes();
        assert_eq!(
            decode("s STRING", &[], &[bytes, b""]).unwrap(),
            ["+I[äß€]", "+I[]"]
        );
        let latin = [("raw.charset", "ISO-8859-1")];
        assert_eq!(decode("s STRING", &latin, &[b"\xe4"]).unwrap(), ["+I[ä]"]);
        let utf16 = [("raw.charset", "UTF-16LE")];
        assert_eq!(
            decode("s STRING", &utf16, &[b"a\0b\0"]).unwrap(),
            ["+I[ab]"]
        );
        assert!(decode("s STRING", &[("raw.charset", "nope")], &[]).is_err());
    }

    #[test]
    fn numbers_in_both_byte_orders() {
        assert_eq!(decode("n INT", &[], &[&[0, 0, 1, 2]]).unwrap(), ["+I[258]"]);
        let little = [("raw.endianness", "little-endian")];
        assert_eq!(
            decode("n INT", &little, &[&[2, 1, 0, 0]]).unwrap(),
            ["+I[258]"]
        );
        assert_eq!(decode("b BOOLEAN", &[], &[&[7]]).unwrap(), ["+I[true]"]);
        let error = decode("n INT", &[], &[b"7"]).unwrap_err();
        assert!(error.message().contains("INT type is not 4"), "{error}");
    }

    #[test]
    fn other_schemas_are_refused() {
        let error = decode("a STRING, b STRING", &[], &[]).unwrap_err();
        assert!(
            error.message().ends_with("[`a` STRING, `b` STRING]"),
            "{error}"
        );
        assert!(decode("a ARRAY<STRING>", &[], &[]).is_err());
        assert!(decode("a DATE", &[], &[]).is_err());
    }

    #[test]
    fn null_has_no_record() {
        let t = table("n SMALLINT", &[("raw.endianness", "little-endian")]);
        let format = RawFormat.encoding(&FormatOptions::new(&t, "raw.")).unwrap();
        let mut records = Records::default();
        let mut encoder = format.encoder(&t.physical).unwrap();
        encoder
            .encode(&batch("n SMALLINT", "+I|258\n+I|\\N"), &mut records)
            .unwrap();
        assert_eq!(records.get(0), Some(&[2u8, 1][..]));
        assert_eq!(records.get(1), None);
    }
}
