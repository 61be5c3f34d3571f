//! The live rows of each primary key.

use std::sync::Arc;

use arrow::array::ArrayRef;

use super::SinkUpsertMaterializerSpec;
use crate::error::Result;
use crate::operators::expiry::Expiry;
use crate::operators::last_rows::leading_numbers;
use crate::operators::row_copy::RowCopy;
use crate::operators::{OperatorContext, StateSize};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::DataType;

const TABLE: &str = "rows";

/// The live rows of each primary key, oldest first.
#[derive(Debug)]
pub(super) struct LiveRows {
    pub(super) primary_key: Vec<usize>,
    pub(super) types: Vec<DataType>,
    encoder: Arc<KeyEncoder>,
    pub(super) table: KeyTable,
    pub(super) codec: Arc<RowCodec>,
    store: RowStore,
    /// What tells rows apart, if it is not the whole row.
    identity: Option<(Vec<usize>, RowCodec, RowStore)>,
    /// By slot.
    pub(super) rows: Vec<Vec<Live>>,
    pub(super) expiry: Expiry,
    keys: EncodedKeys,
    encoded: EncodedRows,
    identities: EncodedRows,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Live {
    row: RowId,
    /// The same as `row` unless there is an upsert key.
    identity: RowId,
}

impl LiveRows {
    pub(super) fn new(
        spec: &SinkUpsertMaterializerSpec,
        ttl_ms: Option<i64>,
        context: &OperatorContext,
    ) -> Result<Self> {
        let types = spec.schema.types();
        let encoder = KeyEncoder::new(&spec.schema.project(&spec.primary_key).types())?;
        let identity = match &spec.upsert_key {
            Some(key) => {
                let codec = RowCodec::new(&spec.schema.project(key).types())?;
                Some((key.clone(), codec, RowStore::default()))
            }
            None => None,
        };
        Ok(Self {
            primary_key: spec.primary_key.clone(),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            store: RowStore::default(),
            identity,
            rows: Vec::new(),
            expiry: Expiry::new(ttl_ms, &context.clock),
            keys: EncodedKeys::default(),
            encoded: EncodedRows::default(),
            identities: EncodedRows::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    pub(super) fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        let select = |indices: &[usize]| -> Vec<ArrayRef> {
            indices.iter().map(|c| Arc::clone(&columns[*c])).collect()
        };
        self.encoder
            .encode(&select(&self.primary_key), len, &mut self.keys)?;
        self.codec.encode(columns, len, &mut self.encoded)?;
        if let Some((key, codec, _)) = &self.identity {
            codec.encode(&select(key), len, &mut self.identities)?;
        }
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.rows.resize(self.table.slot_bound(), Vec::new());
        self.expiry.begin(self.table.slot_bound());
        Ok(())
    }

    pub(super) fn slot(&self, i: usize) -> usize {
        self.slots[i] as usize
    }

    pub(super) fn last(&self, slot: usize) -> Option<&[u8]> {
        self.rows[slot].last().map(|live| self.store.get(live.row))
    }

    /// Where in the list of its key a row like row `i` stands first.
    pub(super) fn find(&self, i: usize) -> Option<usize> {
        let mut rows = self.rows[self.slot(i)].iter();
        match &self.identity {
            Some((_, _, store)) => {
                let wanted = self.identities.bytes(i);
                rows.position(|live| store.get(live.identity) == wanted)
            }
            None => {
                let wanted = self.encoded.bytes(i);
                rows.position(|live| self.store.get(live.row) == wanted)
            }
        }
    }

    /// Adds row `i`; with an upsert key it takes the place of its last version.
    pub(super) fn add(&mut self, i: usize) {
        if self.identity.is_some()
            && let Some(at) = self.find(i)
        {
            let old = self.rows[self.slot(i)][at];
            self.store.replace(old.row, self.encoded.bytes(i));
            return;
        }
        let row = self.store.insert(self.encoded.bytes(i));
        let identity = match &mut self.identity {
            Some((_, _, store)) => store.insert(self.identities.bytes(i)),
            None => row,
        };
        let slot = self.slot(i);
        self.rows[slot].push(Live { row, identity });
    }

    /// Forgets the rows of the key of row `i` if they have expired, and notes a write otherwise.
    pub(super) fn renew(&mut self, i: usize) {
        let slot = self.slots[i];
        if self.expiry.is_expired(slot) {
            self.clear(slot as usize);
        }
        self.expiry.touch(slot);
    }

    pub(super) fn clear(&mut self, slot: usize) {
        for live in std::mem::take(&mut self.rows[slot]) {
            self.store.remove(live.row);
            if let Some((_, _, store)) = &mut self.identity {
                store.remove(live.identity);
            }
        }
    }

    /// Forgets what has expired.
    pub(super) fn sweep(&mut self, now_ms: i64) {
        if self.expiry.begin_sweep(now_ms) {
            let slots: Vec<u32> = self.table.slots().collect();
            for slot in slots {
                if self.expiry.is_expired(slot) {
                    self.clear(slot as usize);
                    self.table.remove(slot);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, slot: usize, at: usize) {
        let live = self.rows[slot].remove(at);
        self.store.remove(live.row);
        if let Some((_, _, store)) = &mut self.identity {
            store.remove(live.identity);
        }
    }

    /// Drops the keys of the batch that have no row.
    pub(super) fn finish(&mut self) {
        for slot in &self.slots {
            if self.rows[*slot as usize].is_empty() && self.table.is_live(*slot) {
                self.table.remove(*slot);
            }
        }
    }

    pub(super) fn snapshot(&mut self, snapshot: &mut OperatorSnapshot) {
        let slots = self.table.copy_all();
        self.copy(&slots, snapshot);
    }

    pub(super) fn track_changes(&mut self) {
        if !self.primary_key.is_empty() {
            self.table.track_changes();
        }
    }

    pub(super) fn changes(&mut self, previous_durable: bool, snapshot: &mut OperatorSnapshot) {
        let Some(changed) = self.table.take_changes(previous_durable) else {
            return self.snapshot(snapshot);
        };
        self.copy(&changed.slots, snapshot);
        let is_vacant = |slot: u32| self.rows[slot as usize].is_empty();
        changed.mark(snapshot, TABLE, &self.table, &self.encoder, is_vacant);
    }

    fn copy(&self, slots: &[u32], snapshot: &mut OperatorSnapshot) {
        let keys = (&self.table, &self.encoder);
        let mut copy = RowCopy::new(TABLE, keys, &self.codec);
        for slot in slots {
            let written = self.expiry.written(*slot);
            for live in &self.rows[*slot as usize] {
                let row = self.store.get(live.row);
                copy.push(*slot, [written], row, snapshot);
            }
        }
        copy.finish(snapshot);
    }

    pub(super) fn restore(&mut self, state: &RestoreState) -> Result<()> {
        for batch in state.batches(TABLE) {
            let rest = &batch.columns()[self.primary_key.len()..];
            let ([written], rows) = leading_numbers::<1>(rest)?;
            check_columns(rows, &self.types)?;
            self.begin(rows, batch.num_rows())?;
            for i in 0..batch.num_rows() {
                self.add(i);
            }
            self.expiry.load(&self.slots, written);
        }
        Ok(())
    }

    pub(super) fn state_size(&self) -> StateSize {
        let identities = self.identity.as_ref();
        StateSize {
            rows: self.store.len(),
            bytes: self.table.memory_size()
                + self.store.memory_size()
                + self.expiry.memory_size()
                + identities.map_or(0, |(_, _, store)| store.memory_size())
                + self.store.len() * size_of::<Live>()
                + self.rows.capacity() * size_of::<Vec<Live>>(),
        }
    }
}
