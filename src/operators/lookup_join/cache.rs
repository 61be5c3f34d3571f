//! Rows that were looked up, by key, for a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use crate::connectors::lookup::{LookedUp, Lookup, PartialCache};
use crate::error::Result;
use crate::state::binary_row::{BinaryRowCodec, BinaryRows};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable, grow};
use crate::state::rows::{RowId, RowStore};
use crate::types::{DataType, Schema};

/// Lookups that remember what they found.
pub(super) struct Cached {
    cache: Cache,
    lookup: Box<dyn Lookup>,
}

impl Cached {
    /// Remembers what `lookup` finds by keys of types `keys`: rows of `table`.
    pub(super) fn new(
        options: PartialCache,
        keys: &[DataType],
        table: &Schema,
        lookup: Box<dyn Lookup>,
    ) -> Result<Self> {
        Ok(Self {
            cache: Cache::new(options, keys, table)?,
            lookup,
        })
    }
}

impl Lookup for Cached {
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, now_ms: i64) -> Result<LookedUp> {
        self.cache.look_up(keys, len, now_ms, self.lookup.as_mut())
    }
}

/// A cache that forgets what was used least recently.
struct Cache {
    options: PartialCache,
    encoder: KeyEncoder,
    table: KeyTable,
    codec: BinaryRowCodec,
    rows: RowStore,
    schema: SchemaRef,
    /// By slot of the key.
    entries: Vec<Entry>,
    /// Slots by the number of their last use.
    used: BTreeMap<u64, u32>,
    next_use: u64,
    encoded: EncodedKeys,
    buffer: BinaryRows,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    rows: Vec<RowId>,
    written: i64,
    accessed: i64,
    used: u64,
}

impl Cache {
    fn new(options: PartialCache, keys: &[DataType], table: &Schema) -> Result<Self> {
        let encoder = KeyEncoder::new(keys)?;
        Ok(Self {
            options,
            table: encoder.table(),
            encoder,
            codec: BinaryRowCodec::new(&table.types()),
            rows: RowStore::default(),
            schema: table.to_arrow(),
            entries: Vec::new(),
            used: BTreeMap::new(),
            next_use: 0,
            encoded: EncodedKeys::default(),
            buffer: BinaryRows::default(),
        })
    }

    /// The rows of keys without NULLs, from the cache where it has them.
    fn look_up(
        &mut self,
        keys: &[ArrayRef],
        len: usize,
        now: i64,
        lookup: &mut dyn Lookup,
    ) -> Result<LookedUp> {
        self.encoder.encode(keys, len, &mut self.encoded)?;
        let (mut slots, mut fresh) = (Vec::new(), Vec::new());
        self.table.intern(&self.encoded, &mut slots, &mut fresh)?;
        if self.table.slot_bound() > self.entries.len() {
            grow(&mut self.entries, self.table.slot_bound(), Entry::default());
        }
        let mut missing: Vec<u32> = fresh;
        for (row, slot) in (0..).zip(&slots) {
            let entry = &self.entries[*slot as usize];
            if entry.used != 0 && self.is_expired(entry, now) {
                self.forget(*slot);
                missing.push(row);
            }
        }
        missing.sort_unstable();
        self.fetch(keys, &slots, &missing, now, lookup)?;
        let (mut found_by, mut ids) = (Vec::new(), Vec::new());
        for (key, slot) in (0..).zip(&slots) {
            let slot = *slot;
            self.use_now(slot, now);
            ids.extend_from_slice(&self.entries[slot as usize].rows);
            found_by.resize(ids.len(), key);
        }
        let bytes: Vec<_> = ids.iter().map(|id| self.rows.get(*id)).collect();
        let columns = self.codec.decode(&bytes)?;
        let options = RecordBatchOptions::new().with_row_count(Some(found_by.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        self.evict(&slots);
        Ok(LookedUp {
            keys: UInt32Array::from(found_by),
            rows,
        })
    }

    fn is_expired(&self, entry: &Entry, now: i64) -> bool {
        let over = |since: i64, limit: Option<i64>| {
            limit.is_some_and(|limit| since.saturating_add(limit) <= now)
        };
        over(entry.written, self.options.expire_after_write_ms)
            || over(entry.accessed, self.options.expire_after_access_ms)
    }

    /// Looks up the keys of some rows and remembers what they have.
    fn fetch(
        &mut self,
        keys: &[ArrayRef],
        slots: &[u32],
        missing: &[u32],
        now: i64,
        lookup: &mut dyn Lookup,
    ) -> Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let indices = UInt32Array::from(missing.to_vec());
        let keys = keys
            .iter()
            .map(|key| Ok(take(key, &indices, None)?))
            .collect::<Result<Vec<_>>>()?;
        let found = lookup.lookup(&keys, missing.len(), now)?;
        self.codec.encode(
            found.rows.columns(),
            found.rows.num_rows(),
            &mut self.buffer,
        )?;
        for row in missing {
            let entry = &mut self.entries[slots[*row as usize] as usize];
            entry.written = now;
        }
        for (i, key) in found.keys.values().iter().enumerate() {
            let slot = slots[missing[*key as usize] as usize];
            let id = self.rows.insert(self.buffer.get(i));
            self.entries[slot as usize].rows.push(id);
        }
        Ok(())
    }

    fn use_now(&mut self, slot: u32, now: i64) {
        let entry = &mut self.entries[slot as usize];
        self.used.remove(&entry.used);
        self.next_use += 1;
        entry.used = self.next_use;
        entry.accessed = now;
        self.used.insert(entry.used, slot);
    }

    /// Drops the rows of a key; the key stays.
    fn forget(&mut self, slot: u32) {
        let entry = std::mem::take(&mut self.entries[slot as usize]);
        self.used.remove(&entry.used);
        for id in entry.rows {
            self.rows.remove(id);
        }
    }

    /// Forgets what is too much.
    fn evict(&mut self, slots: &[u32]) {
        if !self.options.cache_missing_key {
            for slot in slots {
                let entry = &self.entries[*slot as usize];
                if entry.used != 0 && entry.rows.is_empty() {
                    self.forget(*slot);
                    self.table.remove(*slot);
                }
            }
        }
        // A key without rows takes the place of one row.
        while self.rows.len().max(self.used.len()) > self.options.max_rows {
            let Some((_, slot)) = self.used.pop_first() else {
                break;
            };
            self.forget(slot);
            self.table.remove(slot);
        }
    }
}
