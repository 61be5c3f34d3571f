//! The first or last row of a key by arrival.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};

use super::DeduplicateSpec;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::operators::changes::Changes;
use crate::operators::expiry::Expiry;
use crate::operators::last_rows::{LastRows, SNAPSHOT_ROWS, leading_numbers};
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

/// The table of a snapshot.
const TABLE: &str = "keys";

/// The keys seen so far.
#[derive(Debug)]
pub(super) struct Seen {
    key: Vec<usize>,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    expiry: Expiry,
    keys: EncodedKeys,
    slots: Vec<u32>,
    /// Rows of the batch with a key that was not seen before.
    fresh: Vec<u32>,
}

impl Seen {
    fn new(spec: &DeduplicateSpec, context: &OperatorContext) -> Result<Self> {
        let encoder = KeyEncoder::new(&spec.schema.project(&spec.key).types())?;
        Ok(Self {
            key: spec.key.clone(),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            expiry: Expiry::new(spec.ttl_ms, &context.clock),
            keys: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(columns, len, &mut self.keys)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.expiry.begin(self.table.slot_bound());
        Ok(())
    }

    /// Notes the keys of the batch; `fresh` are then the rows whose key was not known.
    fn note(&mut self, renews: bool) {
        if !self.expiry.is_on() {
            return;
        }
        for row in &self.fresh {
            self.expiry.touch(self.slots[*row as usize]);
        }
        for (row, slot) in (0..).zip(&self.slots) {
            if self.expiry.is_expired(*slot) {
                self.fresh.push(row);
                self.expiry.touch(*slot);
            } else if renews {
                self.expiry.touch(*slot);
            }
        }
    }

    fn sweep(&mut self, now_ms: i64) {
        if self.expiry.begin_sweep(now_ms) {
            let slots: Vec<u32> = self.table.slots().collect();
            for slot in slots {
                if self.expiry.is_expired(slot) {
                    self.table.remove(slot);
                }
            }
        }
    }

    fn begin_batch(&mut self, batch: &ChangeBatch) -> Result<()> {
        let columns = batch.rows().columns();
        let keys: Vec<_> = self.key.iter().map(|c| Arc::clone(&columns[*c])).collect();
        self.begin(&keys, batch.len())
    }

    fn track_changes(&mut self) {
        if !self.key.is_empty() {
            self.table.track_changes();
        }
    }

    fn snapshot(&mut self, snapshot: &mut OperatorSnapshot) {
        let slots = self.table.copy_all();
        self.copy(&slots, snapshot);
    }

    fn changes(&mut self, previous_durable: bool, snapshot: &mut OperatorSnapshot) {
        let Some(changed) = self.table.take_changes(previous_durable) else {
            return self.snapshot(snapshot);
        };
        self.copy(&changed.slots, snapshot);
        changed.mark(snapshot, TABLE, &self.table, &self.encoder, |_| false);
    }

    fn copy(&self, slots: &[u32], snapshot: &mut OperatorSnapshot) {
        for slots in slots.chunks(SNAPSHOT_ROWS) {
            let keys = self.table.copy_keys(slots);
            let written = ("written".to_string(), self.expiry.save(slots));
            let batch = keyed_rows(&self.encoder, keys, vec![written]);
            snapshot.add_lazy(TABLE, self.key.len(), batch);
        }
    }

    fn restore(&mut self, state: &RestoreState) -> Result<()> {
        for batch in state.batches(TABLE) {
            let (keys, rest) = batch.columns().split_at(self.key.len());
            let ([written], _) = leading_numbers::<1>(rest)?;
            self.begin(keys, batch.num_rows())?;
            self.expiry.load(&self.slots, written);
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.table.len(),
            bytes: self.table.memory_size() + self.expiry.memory_size(),
        }
    }
}

/// Keeps the first row.
#[derive(Debug)]
pub(super) struct ProctimeFirst {
    seen: Seen,
}

impl ProctimeFirst {
    pub(super) fn new(spec: &DeduplicateSpec, context: &OperatorContext) -> Result<Self> {
        Ok(Self {
            seen: Seen::new(spec, context)?,
        })
    }
}

impl Operator for ProctimeFirst {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        self.seen.begin_batch(&batch)?;
        self.seen.note(false);
        let mut first = vec![false; batch.len()];
        for i in &self.seen.fresh {
            first[*i as usize] = true;
        }
        out.emit(batch.filter(&BooleanArray::from(first))?)
    }

    fn next_timer(&self) -> Option<i64> {
        self.seen.expiry.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        self.seen.sweep(now_ms);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.seen.snapshot(&mut snapshot);
        Ok(snapshot)
    }

    fn track_changes(&mut self) {
        self.seen.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.seen.changes(previous_durable, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.seen.restore(&state)
    }

    fn state_size(&self) -> StateSize {
        self.seen.state_size()
    }
}

/// Keeps the last row.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one value an operator")]
pub(super) enum ProctimeLast {
    /// The reader wants neither `-U` nor `+I`: all rows are updates.
    Upsert,
    /// The reader wants to know the first row.
    Insert(Seen),
    /// The reader wants the old row.
    Retract(LastRows, Changes),
}

impl ProctimeLast {
    pub(super) fn new(spec: &DeduplicateSpec, context: &OperatorContext) -> Result<Self> {
        Ok(if spec.generate_update_before {
            let state = LastRows::new(&spec.schema, &spec.key, spec.ttl_ms, context)?;
            Self::Retract(state, Changes::new(spec.schema.to_arrow()))
        } else if spec.generate_insert {
            Self::Insert(Seen::new(spec, context)?)
        } else {
            Self::Upsert
        })
    }
}

impl Operator for ProctimeLast {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        match self {
            Self::Upsert => {
                let kinds = vec![RowKind::UpdateAfter; batch.len()];
                out.emit(ChangeBatch::try_new(batch.rows().clone(), kinds)?)
            }
            Self::Insert(seen) => {
                seen.begin_batch(&batch)?;
                seen.note(true);
                let mut kinds = vec![RowKind::UpdateAfter; batch.len()];
                for i in &seen.fresh {
                    kinds[*i as usize] = RowKind::Insert;
                }
                out.emit(ChangeBatch::try_new(batch.rows().clone(), kinds)?)
            }
            Self::Retract(state, changes) => {
                state.begin(batch.rows())?;
                for i in 0..batch.len() {
                    match state.stored(i) {
                        None => changes.input(RowKind::Insert, i),
                        Some(old) => {
                            changes.stored(RowKind::UpdateBefore, old);
                            changes.input(RowKind::UpdateAfter, i);
                        }
                    }
                    state.put(i);
                }
                changes.emit(batch.rows(), state.codec(), out)
            }
        }
    }

    fn next_timer(&self) -> Option<i64> {
        match self {
            Self::Upsert => None,
            Self::Insert(seen) => seen.expiry.next_timer(),
            Self::Retract(state, _) => state.next_timer(),
        }
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        match self {
            Self::Upsert => {}
            Self::Insert(seen) => seen.sweep(now_ms),
            Self::Retract(state, _) => state.sweep(now_ms),
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        match self {
            Self::Upsert => {}
            Self::Insert(seen) => seen.snapshot(&mut snapshot),
            Self::Retract(state, _) => state.snapshot(&mut snapshot),
        }
        Ok(snapshot)
    }

    fn track_changes(&mut self) {
        match self {
            Self::Upsert => {}
            Self::Insert(seen) => seen.track_changes(),
            Self::Retract(state, _) => state.track_changes(),
        }
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        match self {
            Self::Upsert => {}
            Self::Insert(seen) => seen.changes(previous_durable, &mut snapshot),
            Self::Retract(state, _) => state.changes(previous_durable, &mut snapshot),
        }
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        match self {
            Self::Upsert => Ok(()),
            Self::Insert(seen) => seen.restore(&state),
            Self::Retract(rows, _) => rows.restore(&state, |_, _, _| Ok(())),
        }
    }

    fn state_size(&self) -> StateSize {
        match self {
            Self::Upsert => StateSize::default(),
            Self::Insert(seen) => seen.state_size(),
            Self::Retract(state, _) => state.state_size(),
        }
    }
}
