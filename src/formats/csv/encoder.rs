//! Rows to lines, quoted where Jackson quotes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Settings;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::formats::json::{write_decimal, write_integer};
use crate::formats::temporal::{write_clock, write_date, write_timestamp};
use crate::formats::view::{View, children, views};
use crate::formats::{Encoder, Records};
use crate::types::Schema;
use crate::types::text::number;

/// Text of more characters is put in quotes without a look at it.
const MAX_CHECKED: usize = 24;

pub(super) struct CsvEncoder {
    settings: Settings,
    schema: Schema,
    /// Characters below it make quotes necessary.
    first_safe: char,
    /// The text of one field.
    field: Vec<u8>,
    /// Memory for the text of one number.
    scratch: String,
}

impl CsvEncoder {
    pub(super) fn new(settings: Settings, schema: Schema) -> Self {
        let character = |bytes: &[u8]| {
            std::str::from_utf8(bytes)
                .ok()
                .and_then(|s| s.chars().next())
                .unwrap_or('\r')
        };
        let dialect = &settings.dialect;
        let highest = character(&dialect.delimiter)
            .max(dialect.quote.as_deref().map_or('\r', character))
            .max('\r');
        Self {
            first_safe: char::from_u32(u32::from(highest) + 1).unwrap_or(highest),
            settings,
            schema,
            field: Vec::new(),
            scratch: String::new(),
        }
    }

    fn write_row(&mut self, views: &[View<'_>], i: usize, out: &mut Vec<u8>) {
        for (n, view) in views.iter().enumerate() {
            if n > 0 {
                out.extend_from_slice(&self.settings.dialect.delimiter);
            }
            self.field.clear();
            match view {
                _ if view.is_null(i) => {
                    out.extend_from_slice(null_text(&self.settings).as_bytes());
                }
                View::List(list, element) => {
                    let range = children(list.value_offsets(), i);
                    let parts = range.map(|child| (&**element, child));
                    write_elements(parts, &self.settings, &mut self.scratch, &mut self.field);
                    self.write_field(out);
                }
                View::Row(_, fields) => {
                    let parts = fields.iter().map(|(_, field)| (field, i));
                    write_elements(parts, &self.settings, &mut self.scratch, &mut self.field);
                    self.write_field(out);
                }
                View::String(texts) => self.write_text(texts.value(i), out),
                _ if is_text(view) => {
                    write_scalar(view, i, &self.settings, &mut self.scratch, &mut self.field);
                    self.write_field(out);
                }
                _ => write_scalar(view, i, &self.settings, &mut self.scratch, out),
            }
        }
    }

    fn write_field(&self, out: &mut Vec<u8>) {
        self.write_text(std::str::from_utf8(&self.field).unwrap_or_default(), out);
    }

    /// Writes a text, with quotes if it needs them.
    fn write_text(&self, text: &str, out: &mut Vec<u8>) {
        let dialect = &self.settings.dialect;
        let Some(quote) = dialect.quote.as_ref().filter(|_| self.needs_quotes(text)) else {
            out.extend_from_slice(text.as_bytes());
            return;
        };
        out.extend_from_slice(quote);
        let first = |mark: &[u8]| mark.first().copied().unwrap_or_default();
        let marks = (
            first(quote),
            dialect.escape.as_deref().map_or(first(quote), first),
        );
        let mut rest = text.as_bytes();
        loop {
            let plain = memchr::memchr2(marks.0, marks.1, rest).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..plain]);
            rest = &rest[plain..];
            if rest.is_empty() {
                break;
            }
            let mut width = 1;
            if rest.starts_with(quote) {
                out.extend_from_slice(quote);
                width = quote.len();
            } else if let Some(escape) = &dialect.escape
                && rest.starts_with(escape)
            {
                out.extend_from_slice(escape);
                width = escape.len();
            }
            out.extend_from_slice(&rest[..width]);
            rest = &rest[width..];
        }
        out.extend_from_slice(quote);
    }

    fn needs_quotes(&self, text: &str) -> bool {
        if text.len() > MAX_CHECKED && text.encode_utf16().count() > MAX_CHECKED {
            return true;
        }
        // a backslash counts as one where no other is set, as in Flink
        let escape = self.settings.dialect.escape.as_deref().unwrap_or(b"\\");
        if let Ok(first_safe) = u8::try_from(self.first_safe)
            && first_safe.is_ascii()
            && let [ascii @ 0..0x80] = escape
        {
            return text.bytes().any(|b| b < first_safe || b == *ascii);
        }
        text.chars()
            .any(|c| c < self.first_safe || c.encode_utf8(&mut [0; 4]).as_bytes() == escape)
    }
}

impl Encoder for CsvEncoder {
    fn encode(&mut self, batch: &ChangeBatch, out: &mut Records) -> Result<()> {
        let schema = self.schema.clone();
        let views = views(batch, &schema)?;
        for i in 0..batch.len() {
            self.write_row(&views, i, &mut out.data);
            out.commit();
        }
        Ok(())
    }
}

fn null_text(settings: &Settings) -> &str {
    settings.null_literal.as_deref().unwrap_or("")
}

fn write_elements<'a>(
    parts: impl Iterator<Item = (&'a View<'a>, usize)>,
    settings: &Settings,
    scratch: &mut String,
    out: &mut Vec<u8>,
) {
    for (n, (view, i)) in parts.enumerate() {
        if n > 0 {
            out.extend_from_slice(settings.array_delimiter.as_bytes());
        }
        if view.is_null(i) {
            out.extend_from_slice(null_text(settings).as_bytes());
        } else {
            write_scalar(view, i, settings, scratch, out);
        }
    }
}

/// Whether Jackson looks at the text of a value for what must be quoted.
fn is_text(view: &View<'_>) -> bool {
    matches!(
        view,
        View::String(_) | View::Binary(_) | View::Date(_) | View::Time(_) | View::Timestamp(..)
    )
}

/// Writes a value that is not NULL. Nested values are refused when the encoder is made.
fn write_scalar(
    view: &View<'_>,
    i: usize,
    settings: &Settings,
    text: &mut String,
    out: &mut Vec<u8>,
) {
    text.clear();
    match view {
        View::Boolean(a) => {
            let value: &[u8] = if a.value(i) { b"true" } else { b"false" };
            out.extend_from_slice(value);
        }
        View::TinyInt(a) => write_integer(a.value(i), out),
        View::SmallInt(a) => write_integer(a.value(i), out),
        View::Int(a) => write_integer(a.value(i), out),
        View::BigInt(a) => write_integer(a.value(i), out),
        View::Float(a) => {
            number::write_float(a.value(i), text);
            out.extend_from_slice(text.as_bytes());
        }
        View::Double(a) => {
            number::write_double(a.value(i), text);
            out.extend_from_slice(text.as_bytes());
        }
        View::Decimal(a, scale) => {
            write_decimal(a.value(i), *scale, !settings.scientific_decimals, text, out);
        }
        View::String(a) => out.extend_from_slice(a.value(i).as_bytes()),
        View::Binary(a) => {
            STANDARD.encode_string(a.value(i), text);
            out.extend_from_slice(text.as_bytes());
        }
        View::Date(a) => write_date(a.value(i).into(), out),
        View::Time(a) => {
            let ms = a.value(i);
            let nano = u32::try_from(ms.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
            write_clock(ms.div_euclid(1000).into(), nano, out);
        }
        View::Timestamp(stamps, is_instant) => {
            let (seconds, nano) = stamps.get(i);
            write_timestamp(seconds, nano, b' ', out);
            if *is_instant {
                out.push(b'Z');
            }
        }
        View::Null
        | View::Months(_)
        | View::Millis(_)
        | View::List(..)
        | View::Map(..)
        | View::Row(..) => {}
    }
}
