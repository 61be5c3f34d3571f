//! The groups of a group aggregation: keys, numbers of rows, aggregates, expiry; and their copy in
//! checkpoints.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;

use crate::aggregates::{AggregateCall, AggregateSet, SetInput};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable, grow};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::state::ttl::Ttl;
use crate::types::DataType;

const TABLE: &str = "groups";
const ROWS: &str = "rows";
const WRITTEN: &str = "written";

/// Rows of one batch of a snapshot.
const SNAPSHOT_ROWS: usize = 1 << 15;

#[derive(Debug)]
pub(super) struct Groups {
    encoder: Arc<KeyEncoder>,
    keys: usize,
    table: KeyTable,
    /// Rows of each slot's group; 0 for a group that is not there.
    pub(super) rows: Vec<i64>,
    pub(super) set: AggregateSet,
    pub(super) ttl: Option<Ttl>,
    encoded: EncodedKeys,
    /// The slots of the rows that were last located.
    pub(super) slots: Vec<u32>,
    fresh: Vec<u32>,
}

impl Groups {
    pub(super) fn new(
        key_types: &[DataType],
        aggregates: &[AggregateCall],
        retracting: bool,
        ttl_ms: Option<i64>,
    ) -> Result<Self> {
        let encoder = KeyEncoder::new(key_types)?;
        Ok(Self {
            keys: key_types.len(),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            rows: Vec::new(),
            set: AggregateSet::new(aggregates, retracting)?,
            ttl: ttl_ms.filter(|ms| *ms > 0).map(Ttl::new),
            encoded: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    /// Finds the slots of rows by their key columns, made for keys that are new.
    pub(super) fn locate(&mut self, keys: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(keys, len, &mut self.encoded)?;
        self.table
            .intern(&self.encoded, &mut self.slots, &mut self.fresh)?;
        self.resize(self.table.slot_bound());
        Ok(())
    }

    fn resize(&mut self, bound: usize) {
        if bound > self.rows.len() {
            grow(&mut self.rows, bound, 0);
            // With slack, so that not every new key touches every column.
            self.set.resize(self.rows.len());
            if let Some(ttl) = &mut self.ttl {
                ttl.resize(self.rows.len());
            }
        }
    }

    /// Applies the located rows to the aggregates. Empty `weights` and `ends` say nothing.
    pub(super) fn update(
        &mut self,
        batch: &ChangeBatch,
        weights: &[i8],
        ends: &[bool],
    ) -> Result<()> {
        let input = input(&self.slots, batch, weights, ends);
        self.set.update(&input)
    }

    /// As [`update`](Self::update), with the values before and after every row.
    pub(super) fn trace(
        &mut self,
        batch: &ChangeBatch,
        weights: &[i8],
        ends: &[bool],
        changed: &mut [bool],
    ) -> Result<Vec<ArrayRef>> {
        let input = input(&self.slots, batch, weights, ends);
        self.set.trace(&input, changed)
    }

    /// Empties the located groups that have expired, as if they had never been.
    pub(super) fn expire(&mut self, now: i64) {
        let Some(ttl) = &mut self.ttl else {
            return;
        };
        for slot in &self.slots {
            if self.rows[*slot as usize] != 0 && ttl.is_expired(*slot, now) {
                self.rows[*slot as usize] = 0;
                self.set.clear(*slot);
            }
        }
    }

    /// Forgets the groups that have expired, if it is time, but for those to `keep`.
    pub(super) fn sweep(&mut self, now: i64, keep: impl Fn(u32) -> bool) {
        let Some(ttl) = &mut self.ttl else {
            return;
        };
        if !ttl.begin_sweep(now) {
            return;
        }
        let expired: Vec<u32> = self
            .table
            .slots()
            .filter(|slot| ttl.is_expired(*slot, now) && !keep(*slot))
            .collect();
        for slot in expired {
            self.remove(slot);
        }
    }

    /// Forgets the group of a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        self.rows[slot as usize] = 0;
        self.set.clear(slot);
        self.table.remove(slot);
    }

    /// Forgets the key of a slot whose aggregates are fresh, if it has no rows.
    pub(super) fn remove_if_empty(&mut self, slot: u32) {
        if self.rows[slot as usize] == 0 && self.table.is_live(slot) {
            self.table.remove(slot);
        }
    }

    /// The key columns of slots.
    pub(super) fn key_columns(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.table.decode(&self.encoder, slots.iter().copied())
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn memory_size(&self) -> usize {
        self.table.memory_size()
            + self.rows.capacity() * size_of::<i64>()
            + self.set.memory_size()
            + self.ttl.as_ref().map_or(0, Ttl::memory_size)
    }

    pub(super) fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        let slots = self.table.copy_all();
        self.copy(&slots, &mut snapshot)?;
        Ok(snapshot)
    }

    pub(super) fn track_changes(&mut self) {
        // One group of all rows is copied whole.
        if self.keys > 0 {
            self.table.track_changes();
        }
    }

    pub(super) fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.table.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut snapshot = OperatorSnapshot::default();
        self.copy(&changed.slots, &mut snapshot)?;
        changed.mark(&mut snapshot, TABLE, &self.table, &self.encoder, |_| false);
        Ok(snapshot)
    }

    /// Copies the groups of slots. Keys are made columns by whoever reads the copy.
    fn copy(&self, slots: &[u32], snapshot: &mut OperatorSnapshot) -> Result<()> {
        for slots in slots.chunks(SNAPSHOT_ROWS) {
            let rows = slots.iter().map(|slot| self.rows[*slot as usize]);
            let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
            let mut columns = vec![(ROWS.to_string(), rows)];
            if let Some(ttl) = &self.ttl {
                let written = slots.iter().map(|slot| ttl.written(*slot));
                let written: ArrayRef = Arc::new(Int64Array::from_iter_values(written));
                columns.push((WRITTEN.to_string(), written));
            }
            let states = self.set.save(slots)?.into_iter().enumerate();
            columns.extend(states.map(|(i, state)| (format!("state{i}"), state)));
            let keys = self.table.copy_keys(slots);
            let batch = keyed_rows(&self.encoder, keys, columns);
            snapshot.add_lazy(TABLE, self.keys, batch);
        }
        Ok(())
    }

    pub(super) fn restore(&mut self, state: &RestoreState, now: i64) -> Result<()> {
        let batches = state.batches(TABLE);
        let groups = batches.iter().map(RecordBatch::num_rows).sum();
        self.table.reserve(groups);
        self.resize(self.table.slot_bound() + groups);
        for batch in batches {
            self.restore_batch(batch, now)?;
        }
        Ok(())
    }

    fn restore_batch(&mut self, batch: &RecordBatch, now: i64) -> Result<()> {
        let mismatch = || Error::checkpoint("the saved groups are of another aggregation");
        let (keys, rest) = batch
            .columns()
            .split_at_checked(self.keys)
            .ok_or_else(mismatch)?;
        let (rows, mut rest) = rest.split_first().ok_or_else(mismatch)?;
        let rows = rows.as_primitive_opt::<Int64Type>().ok_or_else(mismatch)?;
        let written = batch
            .column_by_name(WRITTEN)
            .and_then(|column| column.as_primitive_opt::<Int64Type>());
        if written.is_some() {
            rest = &rest[1..];
        }
        self.locate(keys, batch.num_rows())?;
        for (i, slot) in self.slots.iter().enumerate() {
            self.rows[*slot as usize] = rows.value(i);
            if let Some(ttl) = &mut self.ttl {
                ttl.touch(*slot, written.map_or(now, |written| written.value(i)));
            }
        }
        self.set.load(&self.slots, rest)
    }
}

fn input<'a>(
    slots: &'a [u32],
    batch: &'a ChangeBatch,
    weights: &'a [i8],
    ends: &'a [bool],
) -> SetInput<'a> {
    SetInput {
        slots,
        weights: (!weights.is_empty()).then_some(weights),
        ends: (!ends.is_empty()).then_some(ends),
        columns: batch.rows().columns(),
    }
}
