//! Records to rows: key, value and metadata are decoded column by column, and put together once a
//! batch.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use rdkafka::message::Message;

use super::metadata::Metadata;
use super::nested;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::formats::{DecodedColumns, Decoder, DecodingFormat};
use crate::types::cast::{Cast, CastMode, Environment};
use crate::types::{Column, DataType, Schema};

/// A batch is cut when a buffer has so many bytes.
const BATCH_BYTES: usize = 16 << 20;
/// Buffers are looked at after so many bytes of records.
const LOOK_BYTES: usize = 64 << 10;

/// Where a column of the output comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// Column of the key's decoder.
    Key(usize),
    /// Column of the value's decoder, metadata of the format included.
    Value(usize),
    /// One of [`DecodePlan::metadata`].
    Metadata(usize),
}

/// A column of the output.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) origin: Origin,
    /// Which field of it, from the outermost row inwards; empty for all of it.
    pub(super) path: Vec<usize>,
}

/// What is made of records: the part of it that all subtasks share.
pub(super) struct DecodePlan {
    pub(super) key: Option<(Arc<dyn DecodingFormat>, DecodedColumns)>,
    pub(super) value: (Arc<dyn DecodingFormat>, DecodedColumns),
    pub(super) metadata: Vec<Metadata>,
    pub(super) pieces: Vec<Piece>,
    /// The columns of the output before fields are taken of them.
    pub(super) output: Schema,
    /// The output.
    pub(super) arrow: SchemaRef,
    /// Whether a record without a value deletes the row of its key.
    pub(super) upsert: bool,
    pub(super) environment: Environment,
}

impl DecodePlan {
    /// The type that `origin` gives before it is cast.
    fn origin_type(&self, origin: Origin) -> DataType {
        let decoded = |columns: &DecodedColumns, i: usize| {
            let schema = columns.produced();
            let column = schema.columns.get(i).cloned();
            column.unwrap_or_else(|| Column::new("", crate::types::TypeKind::Null.nullable()))
        };
        match (origin, &self.key) {
            (Origin::Key(i), Some((_, columns))) => decoded(columns, i).data_type,
            (Origin::Key(i) | Origin::Value(i), _) => decoded(&self.value.1, i).data_type,
            (Origin::Metadata(i), _) => self.metadata[i].data_type(),
        }
    }

    /// A decoder for one subtask.
    pub(super) fn decoder(&self) -> Result<RecordDecoder> {
        let casts = self.pieces.iter().zip(&self.output.columns);
        let casts = casts
            .map(|(piece, column)| {
                let from = self.origin_type(piece.origin);
                if from.kind == column.data_type.kind || !piece.path.is_empty() {
                    return Ok(None);
                }
                Cast::new(
                    &from,
                    &column.data_type,
                    CastMode::Strict,
                    &self.environment,
                )
                .map(Some)
                .map_err(|e| e.context(format!("column '{}'", column.name)))
            })
            .collect::<Result<_>>()?;
        Ok(RecordDecoder {
            key: match &self.key {
                Some((format, columns)) => Some(format.decoder(columns)?),
                None => None,
            },
            value: self.value.0.decoder(&self.value.1)?,
            metadata: self
                .metadata
                .iter()
                .map(|m| (*m, ColumnBuilder::new(&m.data_type())))
                .collect(),
            pieces: self.pieces.clone(),
            casts,
            arrow: Arc::clone(&self.arrow),
            upsert: self.upsert,
            rows: Vec::new(),
            len: 0,
            skipped: 0,
            unseen: 0,
            is_full: false,
        })
    }
}

/// Where the parts of a row are; `None`: NULL.
struct Row {
    key: Option<u32>,
    value: Option<u32>,
}

/// Turns the records of one subtask into rows.
pub(super) struct RecordDecoder {
    key: Option<Box<dyn Decoder>>,
    value: Box<dyn Decoder>,
    metadata: Vec<(Metadata, ColumnBuilder)>,
    pieces: Vec<Piece>,
    /// `None` where the type is the column's already.
    casts: Vec<Option<Cast>>,
    arrow: SchemaRef,
    upsert: bool,
    /// One a row, if a row is more than what the value's decoder gives.
    rows: Vec<Row>,
    /// Number of rows.
    len: usize,
    /// Records without a key, where one is needed.
    skipped: u64,
    /// Bytes of records since the buffers were last looked at.
    unseen: usize,
    /// What was seen then.
    is_full: bool,
}

impl RecordDecoder {
    /// Takes a record. A record that fails leaves nothing behind.
    pub(super) fn push<M: Message>(&mut self, message: &M) -> Result<()> {
        let parts = [message.key(), message.payload()];
        self.unseen += parts.into_iter().flatten().map(<[u8]>::len).sum::<usize>();
        let key = self.push_key(message)?;
        if self.upsert && key.is_none() {
            // Nobody can say which row it is about.
            self.skipped += 1;
            return Ok(());
        }
        let before = self.value.rows();
        let is_tombstone = self.upsert && message.payload().is_none();
        match message.payload() {
            Some(payload) => self.value.decode(payload).map_err(|e| e.context("value"))?,
            None if is_tombstone => {}
            None => self.value.decode_none()?,
        }
        let added = self.value.rows() - before;
        if self.key.is_some() || self.upsert {
            let index = |i: usize| u32::try_from(i).ok();
            if is_tombstone {
                self.rows.push(Row { key, value: None });
            }
            self.rows.extend((before..before + added).map(|i| Row {
                key,
                value: index(i),
            }));
        }
        let rows = added + usize::from(is_tombstone);
        for (metadata, column) in &mut self.metadata {
            for _ in 0..rows {
                metadata.push(message, column);
            }
        }
        self.len += rows;
        Ok(())
    }

    /// Decodes the key: the number of its row.
    fn push_key<M: Message>(&mut self, message: &M) -> Result<Option<u32>> {
        let (Some(decoder), Some(key)) = (&mut self.key, message.key()) else {
            return Ok(None);
        };
        let before = decoder.rows();
        decoder.decode(key).map_err(|e| e.context("key"))?;
        let is_there = decoder.rows() > before;
        Ok(u32::try_from(before).ok().filter(|_| is_there))
    }

    /// Rows that wait to be taken.
    pub(super) fn rows(&self) -> usize {
        self.len
    }

    /// Whether a buffer has [`BATCH_BYTES`], so that the batch is to be cut. Buffers are looked at now
    /// and then: there may be many.
    pub(super) fn is_full(&mut self) -> bool {
        if self.unseen >= LOOK_BYTES {
            self.unseen = 0;
            self.is_full = self.bytes_used() >= BATCH_BYTES;
        }
        self.is_full
    }

    /// Bytes of the largest buffer.
    fn bytes_used(&self) -> usize {
        let key = self.key.as_ref().map_or(0, |k| k.bytes_used());
        let metadata = self.metadata.iter().map(|(_, c)| c.bytes_used()).max();
        key.max(self.value.bytes_used()).max(metadata.unwrap_or(0))
    }

    /// Records that were left out.
    pub(super) fn skipped(&self) -> u64 {
        let key = self.key.as_ref().map_or(0, |k| k.skipped());
        key + self.value.skipped() + self.skipped
    }

    /// The rows since the last call.
    pub(super) fn finish(&mut self) -> Result<ChangeBatch> {
        let len = std::mem::take(&mut self.len);
        self.is_full = false;
        let rows = std::mem::take(&mut self.rows);
        let tracked = self.key.is_some() || self.upsert;
        let key = self.key.as_mut().map(|k| k.finish()).transpose()?;
        let value = self.value.finish()?;
        let identity = |pick: &dyn Fn(&Row) -> Option<u32>, of: usize| {
            let mut numbered = rows.iter().enumerate();
            !tracked || (of == len && numbered.all(|(i, r)| pick(r) == u32::try_from(i).ok()))
        };
        let indices = |pick: &dyn Fn(&Row) -> Option<u32>, of: usize| {
            (!identity(pick, of)).then(|| rows.iter().map(pick).collect::<UInt32Array>())
        };
        let key_indices = indices(&|r| r.key, key.as_ref().map_or(0, ChangeBatch::len));
        let value_indices = indices(&|r| r.value, value.len());
        let at = |array: &ArrayRef, indices: &Option<UInt32Array>| match indices {
            Some(indices) => Ok(take(array, indices, None)?),
            None => Ok::<_, Error>(Arc::clone(array)),
        };
        let metadata: Vec<ArrayRef> = self
            .metadata
            .iter_mut()
            .map(|(_, c)| c.finish())
            .collect::<Result<_>>()?;
        let mut columns = Vec::with_capacity(self.pieces.len());
        for (piece, cast) in self.pieces.iter().zip(&self.casts) {
            let array = match (&piece.origin, &key) {
                (Origin::Key(i), Some(key)) => at(key.rows().column(*i), &key_indices)?,
                (Origin::Key(_), None) => return Err(Error::internal("a key without its format")),
                (Origin::Value(i), _) => at(value.rows().column(*i), &value_indices)?,
                (Origin::Metadata(i), _) => Arc::clone(&metadata[*i]),
            };
            columns.push(match cast {
                Some(cast) => cast.array(&array)?,
                None => nested::field(&array, &piece.path)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns, &options)?;
        if self.upsert {
            let kind = |row: &Row| match row.value {
                Some(_) => RowKind::UpdateAfter,
                None => RowKind::Delete,
            };
            return ChangeBatch::try_new(batch, rows.iter().map(kind).collect());
        }
        value.with_rows(batch)
    }
}
