//! Tables that are looked up by key, row by row: the right side of a processing-time temporal join.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};

use super::{SourcePoll, TableSource};
use crate::error::{Error, Result};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable, NO_SLOT};
use crate::types::Schema;

/// A table that can be looked up.
pub trait LookupSource: fmt::Debug + Send + Sync {
    /// Makes the lookups of one subtask: rows are found by the physical columns `keys` and have the
    /// physical columns `projection`.
    ///
    /// # Errors
    /// When the table cannot be opened.
    fn open(&self, keys: &[usize], projection: &[usize]) -> Result<Box<dyn Lookup>>;
}

/// Looks rows up. Runs on the task's thread and may block it.
pub trait Lookup: Send {
    /// The rows of every key of a batch. The key columns have no NULLs.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, now_ms: i64) -> Result<LookedUp>;
}

/// What a lookup found.
#[derive(Debug, Clone)]
pub struct LookedUp {
    /// The key that each row was found by, ascending.
    pub keys: UInt32Array,
    /// The rows.
    pub rows: RecordBatch,
}

/// Makes a table that can be read to its end one that can be looked up: it is held in memory as a
/// whole, and read again from time to time.
pub struct FullCache {
    source: Arc<dyn TableSource>,
    physical: Schema,
    reload_ms: Option<i64>,
}

impl FullCache {
    /// A cache of `source`, whose physical columns are `physical`. Without `reload_ms` it is read
    /// once.
    #[must_use]
    pub fn new(source: Arc<dyn TableSource>, physical: Schema, reload_ms: Option<i64>) -> Self {
        Self {
            source,
            physical,
            reload_ms,
        }
    }
}

impl fmt::Debug for FullCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FullCache")
            .field("reload_ms", &self.reload_ms)
            .finish_non_exhaustive()
    }
}

impl LookupSource for FullCache {
    fn open(&self, keys: &[usize], projection: &[usize]) -> Result<Box<dyn Lookup>> {
        let columns: Vec<usize> = projection.iter().chain(keys).copied().collect();
        let types = self.physical.project(keys).types();
        let encoder = KeyEncoder::new(&types)?;
        Ok(Box::new(Loaded {
            source: Arc::clone(&self.source),
            width: projection.len(),
            schema: self.physical.project(&columns),
            columns,
            reload_ms: self.reload_ms,
            table: encoder.table(),
            encoder,
            rows: None,
            by_slot: Vec::new(),
            loaded_at: i64::MIN,
            encoded: EncodedKeys::default(),
        }))
    }
}

/// The lookups of a [`FullCache`].
struct Loaded {
    source: Arc<dyn TableSource>,
    /// The projection, then the keys.
    columns: Vec<usize>,
    schema: Schema,
    width: usize,
    reload_ms: Option<i64>,
    encoder: KeyEncoder,
    table: KeyTable,
    rows: Option<RecordBatch>,
    /// The rows of every key.
    by_slot: Vec<Vec<u32>>,
    loaded_at: i64,
    encoded: EncodedKeys,
}

impl Loaded {
    /// Reads the whole table.
    fn load(&mut self) -> Result<RecordBatch> {
        let mut reader = self
            .source
            .readers(&self.columns)?
            .create(0, 1, &[])
            .map_err(|e| e.context("a lookup table"))?;
        let mut batches = Vec::new();
        loop {
            match reader.poll(8192)? {
                SourcePoll::Batch(batch) => {
                    if batch.kinds().any(|kind| !kind.is_add()) {
                        return Err(Error::connector(
                            "A lookup table must not have updates or deletions.",
                        ));
                    }
                    batches.push(batch.rows().clone());
                }
                SourcePoll::Watermark(_) => {}
                // A table that is written to: what is there now.
                SourcePoll::Pending(_) | SourcePoll::End => break,
            }
        }
        let schema = batches
            .first()
            .map_or_else(|| self.schema.to_arrow(), RecordBatch::schema);
        let rows = concat_batches(&schema, &batches)?;
        let keys = &rows.columns()[self.width..];
        self.encoder
            .encode(keys, rows.num_rows(), &mut self.encoded)?;
        self.table = self.encoder.table();
        let (mut slots, mut fresh) = (Vec::new(), Vec::new());
        self.table.intern(&self.encoded, &mut slots, &mut fresh)?;
        self.by_slot = vec![Vec::new(); self.table.slot_bound()];
        for (row, slot) in (0..).zip(&slots) {
            if !self.encoded.has_null(row as usize) {
                self.by_slot[*slot as usize].push(row);
            }
        }
        Ok(rows.project(&(0..self.width).collect::<Vec<_>>())?)
    }
}

impl Lookup for Loaded {
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, now_ms: i64) -> Result<LookedUp> {
        let stale = self
            .reload_ms
            .is_some_and(|interval| self.loaded_at.saturating_add(interval) <= now_ms);
        let rows = match &self.rows {
            Some(rows) if !stale => rows.clone(),
            _ => {
                let rows = self.load()?;
                self.loaded_at = now_ms;
                self.rows = Some(rows.clone());
                rows
            }
        };
        self.encoder.encode(keys, len, &mut self.encoded)?;
        let (mut found_by, mut found) = (Vec::new(), Vec::new());
        for (key, row) in (0..).zip(0..len) {
            let slot = self.table.find_one(&self.encoded, row);
            if slot != NO_SLOT {
                let rows = &self.by_slot[slot as usize];
                found.extend_from_slice(rows);
                found_by.resize(found.len(), key);
            }
        }
        Ok(LookedUp {
            keys: UInt32Array::from(found_by),
            rows: take_record_batch(&rows, &UInt32Array::from(found))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int32Array};
    use arrow::datatypes::Int32Type;

    use super::*;
    use crate::connectors::testing::table;
    use crate::connectors::{Connector, changelog::ChangelogConnector, console::CapturedConsole};

    #[test]
    fn a_table_that_ends_is_looked_up_by_any_columns() {
        let connector = ChangelogConnector::new(Arc::new(CapturedConsole::default()));
        let data = "+I|1|a\n+I|2|b\n+I|1|c\n+I|\\N|d\n";
        let options = [("data", data), ("changelog-mode", "I")];
        let t = table("id INT, s STRING", &options);
        let source = connector.source(&t).unwrap();
        let cache = FullCache::new(source, t.physical.clone(), None);
        let mut lookup = cache.open(&[0], &[1]).unwrap();
        let keys: ArrayRef = Arc::new(Int32Array::from(vec![2, 9, 1, 1]));
        let found = lookup.lookup(&[keys], 4, 0).unwrap();
        assert_eq!(found.keys.values(), &[0, 2, 2, 3, 3]);
        let texts: Vec<_> = found.rows.column(0).as_string::<i32>().iter().collect();
        assert_eq!(texts.iter().flatten().copied().collect::<String>(), "bacac");
        let mut by_text = cache.open(&[1], &[0, 1]).unwrap();
        let keys: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["c"]));
        let found = by_text.lookup(&[keys], 1, 0).unwrap();
        assert_eq!(
            found.rows.column(0).as_primitive::<Int32Type>().values(),
            &[1]
        );
    }
}
