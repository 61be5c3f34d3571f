//! Keys of state that has several parts a key, such as windows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};

use crate::error::Result;
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{Changed, EncodedKeys, KeyEncoder, KeyTable};
use crate::state::snapshot::{LazyBatch, OperatorSnapshot};
use crate::types::Schema;

/// Keys that live as long as something counts on them.
#[derive(Debug)]
pub(super) struct CountedKeys {
    columns: Vec<usize>,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    /// How many states a key has, by slot.
    uses: Vec<u32>,
    encoded: EncodedKeys,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

impl CountedKeys {
    /// Keys made of these columns of rows of `schema`.
    pub(super) fn new(schema: &Schema, columns: &[usize]) -> Result<Self> {
        let encoder = KeyEncoder::new(&schema.project(columns).types())?;
        Ok(Self {
            columns: columns.to_vec(),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            uses: Vec::new(),
            encoded: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    /// One more than the highest slot of a key.
    pub(super) fn slot_bound(&self) -> usize {
        self.table.slot_bound()
    }

    /// Number of key columns.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Takes up the keys of a batch.
    pub(super) fn begin(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns = self.columns.iter();
        let columns: Vec<_> = columns.map(|c| Arc::clone(rows.column(*c))).collect();
        self.begin_keys(&columns, rows.num_rows())
    }

    /// Takes up keys from key columns.
    pub(super) fn begin_keys(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(columns, len, &mut self.encoded)?;
        self.table
            .intern(&self.encoded, &mut self.slots, &mut self.fresh)?;
        self.uses.resize(self.table.slot_bound(), 0);
        Ok(())
    }

    /// The key of row `i` of the batch.
    #[inline]
    pub(super) fn slot(&self, i: usize) -> u32 {
        self.slots[i]
    }

    /// Counts one more on a key.
    pub(super) fn retain(&mut self, key: u32) {
        self.uses[key as usize] += 1;
    }

    /// Counts one less on a key; forgets it after the last.
    pub(super) fn release(&mut self, key: u32) {
        let uses = &mut self.uses[key as usize];
        *uses -= 1;
        if *uses == 0 {
            self.table.remove(key);
        } else {
            self.table.touch(key);
        }
    }

    /// Notes that what counts on a key changes, outside of a batch that has it.
    pub(super) fn touch(&mut self, key: u32) {
        self.table.touch(key);
    }

    /// Ends the batch: keys that nothing counts on are forgotten.
    pub(super) fn finish(&mut self) {
        for slot in &self.fresh {
            let key = self.slots[*slot as usize];
            if self.uses[key as usize] == 0 && self.table.is_live(key) {
                self.table.remove(key);
            }
        }
    }

    /// The key columns of keys.
    pub(super) fn decode(&self, keys: impl IntoIterator<Item = u32>) -> Result<Vec<ArrayRef>> {
        self.table.decode(&self.encoder, keys)
    }

    /// From now on, remembers which keys change. Without key columns everything is copied whole.
    pub(super) fn track_changes(&mut self) {
        if !self.columns.is_empty() {
            self.table.track_changes();
        }
    }

    /// Goes on with what `old` has remembered of the same keys.
    pub(super) fn take_over_changes(&mut self, old: &mut Self) {
        self.table.take_over_changes(&mut old.table);
    }

    /// All keys, for a copy of all of them.
    pub(super) fn copy_all(&mut self) -> Vec<u32> {
        self.table.copy_all()
    }

    /// See [`KeyTable::take_changes`].
    pub(super) fn take_changes(&mut self, previous_durable: bool) -> Option<Changed> {
        self.table.take_changes(previous_durable)
    }

    /// The table of the keys and their encoder.
    pub(super) fn table(&self) -> (&KeyTable, &Arc<KeyEncoder>) {
        (&self.table, &self.encoder)
    }

    /// Rows of `keys`, with `columns` beside them.
    pub(super) fn rows(&self, keys: &[u32], columns: Vec<ArrayRef>) -> LazyBatch {
        let columns = columns.into_iter().enumerate();
        let columns = columns.map(|(i, column)| (format!("c{i}"), column));
        let keys = self.table.copy_keys(keys);
        keyed_rows(&self.encoder, keys, columns.collect())
    }

    /// Makes `name` a table of the changes of keys, which all have rows as long as they live.
    pub(super) fn mark(&self, changed: &Changed, name: &str, snapshot: &mut OperatorSnapshot) {
        changed.mark(snapshot, name, &self.table, &self.encoder, |_| false);
    }

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        self.table.memory_size() + self.uses.capacity() * size_of::<u32>()
    }
}
