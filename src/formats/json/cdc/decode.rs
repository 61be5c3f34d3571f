//! Envelopes to rows.

use std::ops::Range;

use jiter::{Jiter, Peek};

use super::metadata::Metadata;
use super::{CdcFormat, DecodeSettings};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::formats::json::{Failure, Reader, sanitize, syntax};
use crate::formats::{DecodedColumns, Decoder, Rows};

pub(super) struct CdcDecoder {
    settings: DecodeSettings,
    reader: Reader,
    metadata: Vec<&'static Metadata>,
    /// Columns of the row; those of the metadata follow.
    physical: usize,
    rows: Rows,
    skipped: u64,
}

/// Why an envelope cannot be read.
enum Corrupt {
    Json(Failure),
    /// It is JSON, but makes no sense.
    Envelope(String),
}

impl From<Failure> for Corrupt {
    fn from(failure: Failure) -> Self {
        Self::Json(failure)
    }
}

/// Where the parts of an envelope lie in the record; a part that is `null` is not there.
#[derive(Default)]
struct Envelope {
    kind: Option<Range<usize>>,
    before: Option<Range<usize>>,
    after: Option<Range<usize>>,
    database: Option<Range<usize>>,
    table: Option<Range<usize>>,
    /// One for each metadata column.
    metadata: Vec<Option<Range<usize>>>,
}

impl CdcDecoder {
    pub(super) fn new(
        settings: DecodeSettings,
        columns: &DecodedColumns,
        metadata: Vec<&'static Metadata>,
    ) -> Self {
        Self {
            reader: Reader::new(settings.json),
            settings,
            metadata,
            physical: columns.projection.len(),
            rows: Rows::new(&columns.produced()),
            skipped: 0,
        }
    }

    fn read(&mut self, record: &[u8]) -> Result<(), Corrupt> {
        let mut envelope = Envelope {
            metadata: vec![None; self.metadata.len()],
            ..Envelope::default()
        };
        let mut jiter = Jiter::new(record);
        if jiter.peek().map_err(syntax)? != Peek::Object {
            return Err(Corrupt::Envelope("it is no object".into()));
        }
        self.scan(&mut jiter, &mut envelope, self.settings.schema_include)?;
        if !self.is_included(record, &envelope)? {
            return Ok(());
        }
        let kind = text(record, envelope.kind.as_ref())?.ok_or_else(|| {
            Corrupt::Envelope(format!(
                "the field \"{}\" is missing",
                self.settings.flavor.kind_field()
            ))
        })?;
        match self.settings.flavor {
            CdcFormat::Debezium | CdcFormat::Ogg => self.read_images(record, &envelope, &kind),
            CdcFormat::Maxwell => {
                let data = envelope.after.clone();
                let old = envelope.before.clone();
                self.read_data(record, &envelope, &kind, data, old)
            }
            CdcFormat::Canal => self.read_list(record, &envelope, &kind),
        }
    }

    /// Finds the parts of the object at which the parser stands; `outer` when the envelope is in its
    /// field `payload`.
    fn scan(
        &self,
        jiter: &mut Jiter<'_>,
        envelope: &mut Envelope,
        outer: bool,
    ) -> Result<(), Corrupt> {
        let flavor = self.settings.flavor;
        let mut key = jiter.known_object().map_err(syntax)?;
        while let Some(name) = key {
            let is_payload = outer && name == "payload";
            let is = |field: &str| !outer && name == field;
            let (before, after) = match flavor {
                CdcFormat::Debezium | CdcFormat::Ogg => ("before", "after"),
                CdcFormat::Canal | CdcFormat::Maxwell => ("old", "data"),
            };
            let part = if is(flavor.kind_field()) {
                Some(&mut envelope.kind)
            } else if is(before) {
                Some(&mut envelope.before)
            } else if is(after) {
                Some(&mut envelope.after)
            } else if is("database") {
                Some(&mut envelope.database)
            } else if is("table") {
                Some(&mut envelope.table)
            } else {
                None
            };
            let wanted: Vec<usize> = (0..self.metadata.len())
                .filter(|i| {
                    let field = self.metadata[*i];
                    let is_here = !self.settings.schema_include || field.in_payload != outer;
                    field.field == name && is_here
                })
                .collect();
            let peek = jiter.peek().map_err(syntax)?;
            if is_payload && peek == Peek::Object {
                self.scan(jiter, envelope, false)?;
            } else {
                let start = jiter.current_index();
                jiter.known_skip(peek).map_err(syntax)?;
                let range = (peek != Peek::Null).then(|| start..jiter.current_index());
                for i in wanted {
                    envelope.metadata[i].clone_from(&range);
                }
                if let Some(part) = part {
                    *part = range;
                }
            }
            key = jiter.next_key().map_err(syntax)?;
        }
        Ok(())
    }

    fn is_included(&self, record: &[u8], envelope: &Envelope) -> Result<bool, Corrupt> {
        let filters = [
            (&self.settings.database, &envelope.database, "database"),
            (&self.settings.table, &envelope.table, "table"),
        ];
        for (filter, part, name) in filters {
            let Some(filter) = filter else { continue };
            let value = text(record, part.as_ref())?
                .ok_or_else(|| Corrupt::Envelope(format!("the field \"{name}\" is missing")))?;
            if !filter.is_match(&value).unwrap_or(false) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Debezium and Ogg: whole rows before and after.
    fn read_images(
        &mut self,
        record: &[u8],
        envelope: &Envelope,
        kind: &str,
    ) -> Result<(), Corrupt> {
        let tool = self.settings.flavor.tool();
        let after = || {
            let missing = "The \"after\" field of the message is null";
            let part = envelope.after.clone();
            part.ok_or_else(|| Corrupt::Envelope(missing.into()))
        };
        let before = |what: &str| {
            envelope.before.clone().ok_or_else(|| {
                Corrupt::Envelope(format!(
                    "The \"before\" field of {what} message is null, if you are using {tool} Postgres Connector, please check the Postgres table has been set REPLICA IDENTITY to FULL level."
                ))
            })
        };
        match kind {
            "c" | "r" | "I" => self.push(record, envelope, RowKind::Insert, &[after()?]),
            "u" | "U" => {
                let (before, after) = (before("UPDATE")?, after()?);
                self.push(record, envelope, RowKind::UpdateBefore, &[before])?;
                self.push(record, envelope, RowKind::UpdateAfter, &[after])
            }
            "d" | "D" => self.push(record, envelope, RowKind::Delete, &[before("DELETE")?]),
            other => Err(self.unknown(other)),
        }
    }

    /// Maxwell, and Canal for each row: the row, and what has changed of the one before it.
    fn read_data(
        &mut self,
        record: &[u8],
        envelope: &Envelope,
        kind: &str,
        data: Option<Range<usize>>,
        old: Option<Range<usize>>,
    ) -> Result<(), Corrupt> {
        let need = |part: Option<Range<usize>>, name: &str| {
            part.ok_or_else(|| Corrupt::Envelope(format!("the field \"{name}\" is missing")))
        };
        match kind {
            "insert" | "INSERT" => {
                self.push(record, envelope, RowKind::Insert, &[need(data, "data")?])
            }
            "update" | "UPDATE" => {
                let (data, old) = (need(data, "data")?, need(old, "old")?);
                let parts = [data.clone(), old];
                self.push(record, envelope, RowKind::UpdateBefore, &parts)?;
                self.push(record, envelope, RowKind::UpdateAfter, &[data])
            }
            "delete" | "DELETE" => {
                self.push(record, envelope, RowKind::Delete, &[need(data, "data")?])
            }
            other => Err(self.unknown(other)),
        }
    }

    /// Canal: lists of rows.
    fn read_list(&mut self, record: &[u8], envelope: &Envelope, kind: &str) -> Result<(), Corrupt> {
        match kind {
            "CREATE" => return Ok(()),
            "INSERT" | "UPDATE" | "DELETE" => {}
            other => return Err(self.unknown(other)),
        }
        let data = elements(record, envelope.after.as_ref(), "data")?;
        let old = match kind {
            "UPDATE" => elements(record, envelope.before.as_ref(), "old")?,
            _ => Vec::new(),
        };
        for (i, row) in data.into_iter().enumerate() {
            let old = old.get(i).cloned().flatten();
            self.read_data(record, envelope, kind, row, old)?;
        }
        Ok(())
    }

    fn unknown(&self, kind: &str) -> Corrupt {
        let field = self.settings.flavor.kind_field();
        Corrupt::Envelope(format!("Unknown \"{field}\" value \"{kind}\""))
    }

    /// Adds a row that the objects `parts` make, one laid over the other.
    fn push(
        &mut self,
        record: &[u8],
        envelope: &Envelope,
        kind: RowKind,
        parts: &[Range<usize>],
    ) -> Result<(), Corrupt> {
        let row = self.rows.len();
        let (columns, metadata) = self.rows.columns.split_at_mut(self.physical);
        for part in parts {
            let mut jiter = Jiter::new(&record[part.clone()]);
            if jiter.peek().map_err(syntax)? != Peek::Object {
                let failure = Failure::value("object", part.start, part.end);
                return Err(Corrupt::Json(failure));
            }
            self.reader
                .row(&mut jiter, columns, row)
                .map_err(|f| f.shifted(part.start))?;
        }
        for ((field, value), (_, column)) in
            self.metadata.iter().zip(&envelope.metadata).zip(metadata)
        {
            let value = value.as_ref().map(|range| &record[range.clone()]);
            field.push(value, self.reader, column)?;
        }
        self.rows.commit(kind);
        Ok(())
    }
}

/// The text of a string or, as it stands, of another scalar.
fn text(record: &[u8], part: Option<&Range<usize>>) -> Result<Option<String>, Corrupt> {
    let Some(slice) = part.map(|range| &record[range.clone()]) else {
        return Ok(None);
    };
    let mut jiter = Jiter::new(slice);
    if jiter.peek().map_err(syntax)? == Peek::String {
        return Ok(Some(jiter.known_str().map_err(syntax)?.to_string()));
    }
    Ok(Some(String::from_utf8_lossy(slice).into_owned()))
}

/// Where the elements of an array lie in the record; one that is `null` is not there.
fn elements(
    record: &[u8],
    part: Option<&Range<usize>>,
    name: &str,
) -> Result<Vec<Option<Range<usize>>>, Corrupt> {
    let missing = || Corrupt::Envelope(format!("the field \"{name}\" is no array"));
    let part = part.ok_or_else(missing)?;
    let mut jiter = Jiter::new(&record[part.clone()]);
    if jiter.peek().map_err(syntax)? != Peek::Array {
        return Err(missing());
    }
    let mut ranges = Vec::new();
    let mut next = jiter.known_array().map_err(syntax)?;
    while let Some(peek) = next {
        let start = jiter.current_index();
        jiter.known_skip(peek).map_err(syntax)?;
        let range = part.start + start..part.start + jiter.current_index();
        ranges.push((peek != Peek::Null).then_some(range));
        next = jiter.array_step().map_err(syntax)?;
    }
    Ok(ranges)
}

impl Decoder for CdcDecoder {
    fn decode(&mut self, record: &[u8]) -> Result<()> {
        if record.is_empty() {
            return Ok(());
        }
        let before = self.rows.len();
        let mut result = self.read(record);
        let repaired;
        let mut used = record;
        if let Err(Corrupt::Json(Failure::Syntax(_))) = &result
            && let Some(strict) = sanitize::repair(record)
        {
            self.rows.truncate(before);
            repaired = strict;
            used = &repaired;
            result = self.read(used);
        }
        let Err(corrupt) = result else {
            return Ok(());
        };
        if self.settings.json.ignore_parse_errors {
            // Whole rows that came before the error stay.
            let rows = self.rows.len();
            self.rows.truncate(rows);
            self.skipped += 1;
            return Ok(());
        }
        self.rows.truncate(before);
        let tool = self.settings.flavor.tool();
        Err(match corrupt {
            Corrupt::Json(failure) => failure.into_error(used),
            Corrupt::Envelope(reason) => Error::format(format!(
                "{reason}. The {tool} JSON message is '{}'",
                String::from_utf8_lossy(record)
            )),
        })
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
