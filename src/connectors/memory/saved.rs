//! What a checkpoint holds of a memory table: its rows, and the changes that a reader or the table
//! itself has still to see.
//!
//! A table lives as long as its process. A job that goes on in the same process finds the table and
//! the log of its changes; in another one it makes both anew from this copy.

use std::sync::Arc;

use arrow::array::{AsArray, Int8Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int8Type, Schema as ArrowSchema, SchemaRef};
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::table::Logged;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};

/// A table at the moment of a checkpoint.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Saved {
    /// The table in its process.
    pub(super) incarnation: u64,
    /// Number of the change that comes next.
    pub(super) next: u64,
    /// Batches that the table had taken.
    pub(super) accepted: u64,
    /// Its rows.
    pub(super) content: Option<Changes>,
    /// The last watermark of its writers, ms.
    pub(super) watermark: Option<i64>,
    /// What waits for somebody, in order.
    pub(super) waiting: Vec<Waiting>,
}

/// Something that a reader has not seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Waiting {
    Changes(Changes),
    Watermark(i64),
}

impl Waiting {
    /// The log of a table; changes that follow each other become one.
    pub(super) fn encode(log: Vec<Logged>) -> Result<Vec<Self>> {
        let mut waiting = Vec::new();
        let mut changes = Vec::new();
        for entry in log {
            match entry {
                Logged::Change(batch) => changes.push(batch),
                Logged::Watermark(watermark) => {
                    let before = Changes::encode(std::mem::take(&mut changes))?;
                    waiting.extend(before.map(Self::Changes));
                    waiting.push(Self::Watermark(watermark));
                }
            }
        }
        waiting.extend(Changes::encode(changes)?.map(Self::Changes));
        Ok(waiting)
    }

    /// The entry, with the columns of `schema`.
    pub(super) fn decode(&self, schema: &SchemaRef) -> Result<Logged> {
        Ok(match self {
            Self::Changes(changes) => Logged::Change(changes.decode(schema)?),
            Self::Watermark(watermark) => Logged::Watermark(*watermark),
        })
    }
}

/// Changes as Arrow IPC with a column of kinds behind the others, in Base64.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Changes(String);

impl Changes {
    /// `None` if there are none.
    pub(super) fn encode(batches: Vec<ChangeBatch>) -> Result<Option<Self>> {
        let batches: Vec<_> = batches.into_iter().filter(|b| !b.is_empty()).collect();
        if batches.is_empty() {
            return Ok(None);
        }
        let all = ChangeBatch::concat(batches)?;
        let kinds = Int8Array::from_iter_values(all.kinds().map(number));
        let mut fields: Vec<_> = all.schema().fields().iter().map(Arc::clone).collect();
        fields.push(Arc::new(Field::new("kind", DataType::Int8, false)));
        let mut columns = all.rows().columns().to_vec();
        columns.push(Arc::new(kinds));
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns)?;
        let options = IpcWriteOptions::default();
        let options = options.try_with_compression(Some(CompressionType::ZSTD))?;
        let mut stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options)?;
        stream.write(&batch)?;
        Ok(Some(Self(STANDARD.encode(stream.into_inner()?))))
    }

    /// The changes, with the columns of `schema`.
    pub(super) fn decode(&self, schema: &SchemaRef) -> Result<ChangeBatch> {
        let damaged = || Error::checkpoint("the copy of a memory table is damaged");
        let bytes = STANDARD.decode(&self.0).map_err(|_| damaged())?;
        let stream = StreamReader::try_new(bytes.as_slice(), None).map_err(|_| damaged())?;
        let mut batches = Vec::new();
        for batch in stream {
            let batch = batch.map_err(|_| damaged())?;
            let (kinds, columns) = batch.columns().split_last().ok_or_else(damaged)?;
            let kinds = kinds.as_primitive_opt::<Int8Type>().ok_or_else(damaged)?;
            let kinds: Option<Vec<RowKind>> = kinds.iter().map(|k| kind(k?)).collect();
            let rows = RecordBatch::try_new(Arc::clone(schema), columns.to_vec());
            let rows = rows.map_err(|e| {
                Error::checkpoint(format!("the saved memory table has other columns: {e}"))
            })?;
            batches.push(ChangeBatch::try_new(rows, kinds.ok_or_else(damaged)?)?);
        }
        if batches.is_empty() {
            return Err(damaged());
        }
        ChangeBatch::concat(batches)
    }
}

fn number(kind: RowKind) -> i8 {
    match kind {
        RowKind::Insert => 0,
        RowKind::UpdateBefore => 1,
        RowKind::UpdateAfter => 2,
        RowKind::Delete => 3,
    }
}

fn kind(number: i8) -> Option<RowKind> {
    Some(match number {
        0 => RowKind::Insert,
        1 => RowKind::UpdateBefore,
        2 => RowKind::UpdateAfter,
        3 => RowKind::Delete,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::{batch, lines, schema};

    #[test]
    fn changes_come_back_with_their_kinds() {
        let columns = "k STRING, v INT";
        let changes = vec![
            batch(columns, "+I|a|1\n-U|a|1"),
            batch(columns, "+U|a|\\N\n-D|b|2"),
        ];
        let saved = Changes::encode(changes).unwrap().unwrap();
        let arrow = schema(columns).to_arrow();
        let back = saved.decode(&arrow).unwrap();
        let expected = ["+I[a, 1]", "-U[a, 1]", "+U[a, null]", "-D[b, 2]"];
        assert_eq!(lines(&back, &schema(columns)), expected);
        assert!(Changes::encode(Vec::new()).unwrap().is_none());
        let other = schema("k STRING, v BIGINT").to_arrow();
        assert!(saved.decode(&other).is_err());
        assert!(Changes("AAAA".into()).decode(&arrow).is_err());
    }
}
