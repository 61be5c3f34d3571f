//! Which row of a partition has a row key, for input whose rows replace each other.

use arrow::array::ArrayRef;

use super::select;
use super::sorted_rows::Entry;
use crate::error::Result;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::types::Schema;

/// Rows by the key that updates agree on.
#[derive(Debug)]
pub(super) struct RowKeys {
    columns: Vec<usize>,
    encoder: KeyEncoder,
    table: KeyTable,
    /// By slot of the row key.
    rows: Vec<Option<Entry>>,
    /// Slot of the row key, by row.
    slot_of: Vec<u32>,
    keys: EncodedKeys,
    slots: Vec<u32>,
    fresh: Vec<u32>,
    /// Slots whose row was pushed out in this batch.
    vacated: Vec<u32>,
}

impl RowKeys {
    pub(super) fn new(schema: &Schema, columns: &[usize]) -> Result<Self> {
        let encoder = KeyEncoder::new(&schema.project(columns).types())?;
        Ok(Self {
            columns: columns.to_vec(),
            table: encoder.table(),
            encoder,
            rows: Vec::new(),
            slot_of: Vec::new(),
            keys: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
            vacated: Vec::new(),
        })
    }

    pub(super) fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        let columns = select(columns, &self.columns);
        self.encoder.encode(&columns, len, &mut self.keys)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.rows.resize(self.table.slot_bound(), None);
        Ok(())
    }

    /// The row that row `i` replaces.
    pub(super) fn find(&self, i: usize) -> Option<Entry> {
        self.rows[self.slots[i] as usize]
    }

    pub(super) fn put(&mut self, i: usize, entry: Entry) {
        let slot = self.slots[i];
        self.rows[slot as usize] = Some(entry);
        let id = entry.id.0 as usize;
        if self.slot_of.len() <= id {
            self.slot_of.resize(id + 1, 0);
        }
        self.slot_of[id] = slot;
    }

    pub(super) fn forget(&mut self, entry: Entry) {
        let slot = self.slot_of[entry.id.0 as usize];
        self.rows[slot as usize] = None;
        self.vacated.push(slot);
    }

    pub(super) fn finish(&mut self) {
        let batch = std::mem::take(&mut self.slots);
        for slot in batch.iter().chain(&std::mem::take(&mut self.vacated)) {
            if self.rows[*slot as usize].is_none() && self.table.is_live(*slot) {
                self.table.remove(*slot);
            }
        }
        self.slots = batch;
    }

    /// Drops the keys of rows that were forgotten outside of a batch.
    pub(super) fn sweep(&mut self) {
        self.slots.clear();
        self.finish();
    }

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        self.table.memory_size()
            + self.rows.capacity() * size_of::<Option<Entry>>()
            + self.slot_of.capacity() * size_of::<u32>()
    }
}
