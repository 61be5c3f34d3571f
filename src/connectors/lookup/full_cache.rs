//! A lookup table that is held in memory as a whole.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};

use super::{LookedUp, Lookup, LookupSource};
use crate::connectors::{SourcePoll, TableSource};
use crate::error::{Error, Result};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable, NO_SLOT};
use crate::types::Schema;

/// When a table that is held as a whole is read again. It is read by the first lookup after that
/// moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// It is read once.
    Never,
    /// So many ms after it was read last; 0 for every batch of lookups.
    Every(i64),
    /// At a time of the day, UTC.
    At {
        /// ms since midnight.
        ms_of_day: i64,
        /// ms from one time to the next: whole days.
        every_ms: i64,
    },
}

impl Reload {
    /// Whether what was read at `loaded_ms` is to be read again at `now_ms`.
    fn is_due(self, loaded_ms: i64, now_ms: i64) -> bool {
        match self {
            Self::Never => false,
            Self::Every(interval) => loaded_ms.saturating_add(interval) <= now_ms,
            Self::At {
                ms_of_day,
                every_ms,
            } => {
                let period = |ms: i64| ms.saturating_sub(ms_of_day).div_euclid(every_ms);
                period(loaded_ms) < period(now_ms)
            }
        }
    }
}

/// Makes a table that can be read to its end one that can be looked up: it is held in memory as a
/// whole, and read again from time to time.
pub struct FullCache {
    source: Arc<dyn TableSource>,
    columns: Schema,
    reload: Reload,
}

impl FullCache {
    /// A cache of `source`, whose physical columns followed by the declared metadata columns are
    /// `columns`.
    #[must_use]
    pub fn new(source: Arc<dyn TableSource>, columns: Schema, reload: Reload) -> Self {
        Self {
            source,
            columns,
            reload,
        }
    }
}

impl fmt::Debug for FullCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FullCache")
            .field("reload", &self.reload)
            .finish_non_exhaustive()
    }
}

impl LookupSource for FullCache {
    fn open(&self, keys: &[usize], projection: &[usize]) -> Result<Box<dyn Lookup>> {
        let mut columns: Vec<usize> = projection.iter().chain(keys).copied().collect();
        columns.sort_unstable();
        columns.dedup();
        let place = |column: &usize| columns.partition_point(|c| c < column);
        let types = self.columns.project(keys).types();
        let encoder = KeyEncoder::new(&types)?;
        Ok(Box::new(Loaded {
            source: Arc::clone(&self.source),
            projection: projection.iter().map(place).collect(),
            keys: keys.iter().map(place).collect(),
            schema: self.columns.project(&columns),
            columns,
            reload: self.reload,
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
    /// The columns that are read, ascending.
    columns: Vec<usize>,
    schema: Schema,
    /// Which of them are given out.
    projection: Vec<usize>,
    /// Which of them are looked up by.
    keys: Vec<usize>,
    reload: Reload,
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
        let mut waiting: Vec<SourcePoll> = Vec::new();
        loop {
            let poll = match waiting.pop() {
                Some(poll) => poll,
                None => reader.poll(8192)?,
            };
            match poll {
                SourcePoll::Batch(batch) => {
                    if batch.kinds().any(|kind| !kind.is_add()) {
                        return Err(Error::connector(
                            "A lookup table must not have updates or deletions.",
                        ));
                    }
                    batches.push(batch.rows().clone());
                }
                SourcePoll::Watermark(_) | SourcePoll::Idle(_) => {}
                SourcePoll::Several(polls) => waiting.extend(polls.into_iter().rev()),
                // A table that is written to: what is there now.
                SourcePoll::Pending(_) | SourcePoll::End => break,
            }
        }
        let schema = batches
            .first()
            .map_or_else(|| self.schema.to_arrow(), RecordBatch::schema);
        let rows = concat_batches(&schema, &batches)?;
        let keys: Vec<_> = self
            .keys
            .iter()
            .map(|i| Arc::clone(rows.column(*i)))
            .collect();
        self.encoder
            .encode(&keys, rows.num_rows(), &mut self.encoded)?;
        self.table = self.encoder.table();
        let (mut slots, mut fresh) = (Vec::new(), Vec::new());
        self.table.intern(&self.encoded, &mut slots, &mut fresh)?;
        self.by_slot = vec![Vec::new(); self.table.slot_bound()];
        for (row, slot) in (0..).zip(&slots) {
            if !self.encoded.has_null(row as usize) {
                self.by_slot[*slot as usize].push(row);
            }
        }
        Ok(rows.project(&self.projection)?)
    }
}

impl Lookup for Loaded {
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, now_ms: i64) -> Result<LookedUp> {
        let stale = self.reload.is_due(self.loaded_at, now_ms);
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
        let cache = FullCache::new(source, t.physical.clone(), Reload::Never);
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

    #[test]
    fn a_table_is_read_again_when_its_time_comes() {
        assert!(!Reload::Never.is_due(0, i64::MAX));
        assert!(Reload::Every(5).is_due(10, 15) && !Reload::Every(5).is_due(10, 14));
        let daily = Reload::At {
            ms_of_day: 100,
            every_ms: 1000,
        };
        assert!(daily.is_due(99, 100) && daily.is_due(-5000, 0));
        assert!(!daily.is_due(100, 1099) && daily.is_due(100, 1100));
    }
}
