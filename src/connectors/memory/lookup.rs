//! Looks rows of a memory table up: an index over its content that follows its changes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::table::{MemoryTable, Next, Pin};
use crate::changelog::ChangeBatch;
use crate::connectors::lookup::{LookedUp, Lookup, LookupSource};
use crate::error::{Error, Result};
use crate::types::Schema;

/// The table as one that can be looked up: every lookup sees what the table holds at that moment.
pub(super) struct MemoryLookup(pub(super) Arc<MemoryTable>);

impl fmt::Debug for MemoryLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryLookup").finish_non_exhaustive()
    }
}

impl LookupSource for MemoryLookup {
    fn open(&self, keys: &[usize], projection: &[usize]) -> Result<Box<dyn Lookup>> {
        let schema = self.0.schema();
        Ok(Box::new(Index {
            keys: converter(&schema.project(keys))?,
            key_columns: keys.to_vec(),
            rows: converter(&schema.project(projection))?,
            output: schema.project(projection),
            projection: projection.to_vec(),
            pin: self.0.pin(),
            table: Arc::clone(&self.0),
            next: None,
            by_key: HashMap::new(),
        }))
    }
}

fn converter(columns: &Schema) -> Result<RowConverter> {
    let types = columns.columns.iter().map(|c| c.data_type.to_arrow());
    Ok(RowConverter::new(types.map(SortField::new).collect())?)
}

/// The lookups of one subtask.
struct Index {
    table: Arc<MemoryTable>,
    /// Keeps the changes that the index has not seen.
    pin: Arc<Pin>,
    /// Number of the next change; `None` before the content was read.
    next: Option<u64>,
    key_columns: Vec<usize>,
    projection: Vec<usize>,
    keys: RowConverter,
    rows: RowConverter,
    output: Schema,
    /// The rows of each key in the order of their insertion. Only looked into, never walked through.
    by_key: HashMap<OwnedRow, Vec<OwnedRow>>,
}

impl Index {
    /// Takes up all changes since the last lookup.
    fn catch_up(&mut self) -> Result<()> {
        let mut next = match self.next {
            Some(next) => next,
            None => {
                let (content, _, next) = self.table.snapshot()?;
                self.apply(&content)?;
                next
            }
        };
        loop {
            match self.table.change(next) {
                Next::Change(batch) => self.apply(&batch)?,
                Next::Watermark(_) => {}
                Next::Nothing | Next::End => break,
                Next::Gone => {
                    return Err(Error::internal("a pinned change of a memory table is gone"));
                }
            }
            next += 1;
        }
        self.pin.advance(next);
        self.next = Some(next);
        Ok(())
    }

    fn apply(&mut self, batch: &ChangeBatch) -> Result<()> {
        let column = |i: &usize| Arc::clone(batch.rows().column(*i));
        let keys: Vec<ArrayRef> = self.key_columns.iter().map(column).collect();
        let rows: Vec<ArrayRef> = self.projection.iter().map(column).collect();
        let keys = self.keys.convert_columns(&keys)?;
        let rows = match rows.is_empty() {
            true => None,
            false => Some(self.rows.convert_columns(&rows)?),
        };
        for (i, kind) in batch.kinds().enumerate() {
            let row = match &rows {
                Some(rows) => rows.row(i).owned(),
                None => keys.row(i).owned(),
            };
            let of_key = self.by_key.entry(keys.row(i).owned()).or_default();
            if kind.is_add() {
                of_key.push(row);
            } else if let Some(at) = of_key.iter().position(|r| *r == row) {
                of_key.remove(at);
            }
            if of_key.is_empty() {
                self.by_key.remove(&keys.row(i).owned());
            }
        }
        Ok(())
    }
}

impl Lookup for Index {
    fn lookup(&mut self, keys: &[ArrayRef], _len: usize, _now_ms: i64) -> Result<LookedUp> {
        self.catch_up()?;
        let keys = self.keys.convert_columns(keys)?;
        let (mut found_by, mut found) = (Vec::new(), Vec::new());
        for (i, key) in (0..).zip(keys.iter()) {
            if let Some(rows) = self.by_key.get(&key.owned()) {
                found.extend(rows.iter());
                found_by.resize(found.len(), i);
            }
        }
        let columns = match self.projection.is_empty() {
            true => Vec::new(),
            false => self.rows.convert_rows(found.iter().map(|row| row.row()))?,
        };
        let options = RecordBatchOptions::new().with_row_count(Some(found.len()));
        let arrow = self.output.to_arrow();
        Ok(LookedUp {
            keys: UInt32Array::from(found_by),
            rows: RecordBatch::try_new_with_options(arrow, columns, &options)?,
        })
    }
}
