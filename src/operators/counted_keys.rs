//! Keys of state that has several parts a key, such as windows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};

use crate::error::Result;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::types::Schema;

/// Keys that live as long as something counts on them.
#[derive(Debug)]
pub(super) struct CountedKeys {
    columns: Vec<usize>,
    encoder: KeyEncoder,
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
            encoder,
            uses: Vec::new(),
            encoded: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
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
        }
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

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        self.table.memory_size() + self.uses.capacity() * size_of::<u32>()
    }
}
