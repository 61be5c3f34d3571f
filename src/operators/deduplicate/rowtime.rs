//! The first or last row of a key by event time.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};

use super::{DeduplicateSpec, Keep};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::operators::changes::Changes;
use crate::operators::expiry::Expiry;
use crate::operators::last_rows::{LastRows, SNAPSHOT_ROWS, anonymous_batch, leading_numbers};
use crate::operators::row_copy::RowCopy;
use crate::operators::time::{rowtime_or_epoch, rowtimes};
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::DataType;

/// Keeps the first or last row, with updates when a better one comes.
#[derive(Debug)]
pub(super) struct RowtimeUpdating {
    time: usize,
    keep: Keep,
    generate_update_before: bool,
    generate_insert: bool,
    state: LastRows,
    /// Event time of the row, by slot.
    times: Vec<i64>,
    changes: Changes,
}

impl RowtimeUpdating {
    pub(super) fn new(
        spec: &DeduplicateSpec,
        time: usize,
        context: &OperatorContext,
    ) -> Result<Self> {
        Ok(Self {
            time,
            keep: spec.keep,
            generate_update_before: spec.generate_update_before,
            generate_insert: spec.generate_insert || spec.generate_update_before,
            state: LastRows::new(&spec.schema, &spec.key, spec.ttl_ms, context)?,
            times: Vec::new(),
            changes: Changes::new(spec.schema.to_arrow()),
        })
    }
}

impl Operator for RowtimeUpdating {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let times = rowtimes(batch.rows(), self.time)?;
        self.state.begin(batch.rows())?;
        self.times.resize(self.state.slot_bound(), 0);
        for i in 0..batch.len() {
            let time = rowtime_or_epoch(times, i);
            let kept = &mut self.times[self.state.slot(i)];
            let old = self.state.stored(i);
            let better = match self.keep {
                Keep::LastRow => *kept <= time,
                Keep::FirstRow => time < *kept,
            };
            match old {
                None if self.generate_insert => self.changes.input(RowKind::Insert, i),
                None => self.changes.input(RowKind::UpdateAfter, i),
                Some(_) if !better => continue,
                Some(old) => {
                    if self.generate_update_before {
                        self.changes.stored(RowKind::UpdateBefore, old);
                    }
                    self.changes.input(RowKind::UpdateAfter, i);
                }
            }
            *kept = time;
            self.state.put(i);
        }
        self.state.finish();
        self.changes.emit(batch.rows(), self.state.codec(), out)
    }

    fn next_timer(&self) -> Option<i64> {
        self.state.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        self.state.sweep(now_ms);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.state.snapshot(&mut snapshot);
        Ok(snapshot)
    }

    fn track_changes(&mut self) {
        self.state.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.state.changes(previous_durable, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        let (times, time) = (&mut self.times, self.time);
        self.state.restore(&state, |rows, slots, bound| {
            times.resize(bound, 0);
            let rows = anonymous_batch(rows.to_vec(), slots.len())?;
            let saved = rowtimes(&rows, time)?;
            for (i, slot) in slots.iter().enumerate() {
                times[*slot as usize] = rowtime_or_epoch(saved, i);
            }
            Ok(())
        })
    }

    fn state_size(&self) -> StateSize {
        let state = self.state.state_size();
        StateSize {
            bytes: state.bytes + self.times.capacity() * size_of::<i64>(),
            ..state
        }
    }
}

const WAITING: &str = "waiting";
const EMITTED: &str = "emitted";

/// Keeps the first row, and emits it when the watermark has passed it.
#[derive(Debug)]
pub(super) struct RowtimeFirst {
    key: Vec<usize>,
    time: usize,
    types: Vec<DataType>,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    codec: Arc<RowCodec>,
    store: RowStore,
    /// By slot.
    keys_state: Vec<KeyState>,
    /// Of keys whose row was emitted: one that waits does not expire.
    expiry: Expiry,
    /// Rows that wait, by event time and arrival.
    waiting: BTreeSet<(i64, u64, u32)>,
    arrivals: u64,
    watermark: i64,
    changes: Changes,
    context: OperatorContext,
    keys: EncodedKeys,
    encoded: EncodedRows,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
enum KeyState {
    #[default]
    New,
    Waiting(Waiting),
    Emitted,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    time: i64,
    arrival: u64,
    row: RowId,
}

impl RowtimeFirst {
    pub(super) fn new(
        spec: &DeduplicateSpec,
        time: usize,
        context: &OperatorContext,
    ) -> Result<Self> {
        let types = spec.schema.types();
        let encoder = KeyEncoder::new(&spec.schema.project(&spec.key).types())?;
        Ok(Self {
            key: spec.key.clone(),
            time,
            table: encoder.table(),
            encoder: Arc::new(encoder),
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            store: RowStore::default(),
            keys_state: Vec::new(),
            expiry: Expiry::new(spec.ttl_ms, &context.clock),
            waiting: BTreeSet::new(),
            arrivals: 0,
            watermark: i64::MIN,
            changes: Changes::new(spec.schema.to_arrow()),
            context: context.clone(),
            keys: EncodedKeys::default(),
            encoded: EncodedRows::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    fn intern(&mut self, keys: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(keys, len, &mut self.keys)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.keys_state
            .resize(self.table.slot_bound(), KeyState::New);
        self.expiry.begin(self.table.slot_bound());
        Ok(())
    }

    /// Makes row `i` the one that waits, unless it is not the first of its key.
    fn wait(&mut self, i: usize, time: i64) {
        let slot = self.slots[i];
        let state = &mut self.keys_state[slot as usize];
        match *state {
            KeyState::Emitted if !self.expiry.is_expired(slot) => return,
            KeyState::Waiting(other) if other.time <= time => return,
            KeyState::Waiting(other) => {
                self.waiting.remove(&(other.time, other.arrival, slot));
                self.store.remove(other.row);
            }
            KeyState::New | KeyState::Emitted => {}
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let row = self.store.insert(self.encoded.bytes(i));
        *state = KeyState::Waiting(Waiting { time, arrival, row });
        self.waiting.insert((time, arrival, slot));
    }
}

impl RowtimeFirst {
    /// A copy of what is known of keys.
    fn copy(&self, slots: &[u32]) -> OperatorSnapshot {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.watermark),
            ..OperatorSnapshot::default()
        };
        let mut waiting = RowCopy::new(WAITING, (&self.table, &self.encoder), &self.codec);
        let mut emitted = Vec::new();
        for slot in slots {
            match self.keys_state[*slot as usize] {
                KeyState::Waiting(row) => {
                    let arrival = i64::try_from(row.arrival).ok();
                    let bytes = self.store.get(row.row);
                    waiting.push(*slot, [arrival], bytes, &mut snapshot);
                }
                KeyState::Emitted => emitted.push(*slot),
                KeyState::New => {}
            }
        }
        waiting.finish(&mut snapshot);
        for slots in emitted.chunks(SNAPSHOT_ROWS) {
            let written = ("written".to_string(), self.expiry.save(slots));
            let keys = self.table.copy_keys(slots);
            let rows = keyed_rows(&self.encoder, keys, vec![written]);
            snapshot.add_lazy(EMITTED, self.key.len(), rows);
        }
        snapshot
    }
}

impl Operator for RowtimeFirst {
    fn process(&mut self, _port: usize, batch: ChangeBatch, _out: &mut Output<'_>) -> Result<()> {
        let rows = batch.rows();
        let times = rowtimes(rows, self.time)?;
        let on_time: Vec<bool> = (0..batch.len())
            .map(|i| {
                let late = rowtime_or_epoch(times, i) < self.watermark;
                self.context.metrics.late_records_dropped.add(late.into());
                !late
            })
            .collect();
        // A key of late rows only must not enter the state.
        let batch = batch.filter(&on_time.into())?;
        let rows = batch.rows();
        let times = rowtimes(rows, self.time)?;
        let keys: Vec<_> = self.key.iter().map(|c| rows.column(*c)).cloned().collect();
        self.intern(&keys, rows.num_rows())?;
        self.codec
            .encode(rows.columns(), rows.num_rows(), &mut self.encoded)?;
        for i in 0..rows.num_rows() {
            self.wait(i, rowtime_or_epoch(times, i));
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        self.expiry.begin(self.table.slot_bound());
        let no_input = RecordBatch::new_empty(self.changes.schema());
        while let Some((time, _, slot)) = self.waiting.first().copied() {
            if time > watermark {
                break;
            }
            self.waiting.pop_first();
            self.table.touch(slot);
            let state = &mut self.keys_state[slot as usize];
            if let KeyState::Waiting(waiting) = *state {
                let row = self.store.get(waiting.row);
                self.changes.stored(RowKind::Insert, row);
                self.store.remove(waiting.row);
            }
            *state = KeyState::Emitted;
            self.expiry.touch(slot);
            if self.changes.is_full() {
                self.changes.emit(&no_input, &self.codec, out)?;
            }
        }
        self.changes.emit(&no_input, &self.codec, out)?;
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        self.expiry.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        if self.expiry.begin_sweep(now_ms) {
            for slot in 0..u32::try_from(self.keys_state.len()).unwrap_or(u32::MAX) {
                let state = &mut self.keys_state[slot as usize];
                if matches!(state, KeyState::Emitted) && self.expiry.is_expired(slot) {
                    *state = KeyState::New;
                    self.table.remove(slot);
                }
            }
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let slots = self.table.copy_all();
        Ok(self.copy(&slots))
    }

    fn track_changes(&mut self) {
        if !self.key.is_empty() {
            self.table.track_changes();
        }
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.table.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut snapshot = self.copy(&changed.slots);
        let (table, encoder) = (&self.table, &self.encoder);
        changed.mark(&mut snapshot, WAITING, table, encoder, |slot| {
            !matches!(self.keys_state[slot as usize], KeyState::Waiting(_))
        });
        changed.mark(&mut snapshot, EMITTED, table, encoder, |slot| {
            !matches!(self.keys_state[slot as usize], KeyState::Emitted)
        });
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.watermark = state.watermark.unwrap_or(i64::MIN);
        for batch in state.batches(EMITTED) {
            let (keys, rest) = batch.columns().split_at(self.key.len());
            let ([written], _) = leading_numbers::<1>(rest)?;
            self.intern(keys, batch.num_rows())?;
            for slot in &self.slots {
                self.keys_state[*slot as usize] = KeyState::Emitted;
            }
            self.expiry.load(&self.slots, written);
        }
        for batch in state.batches(WAITING) {
            let (keys, rest) = batch.columns().split_at(self.key.len());
            let ([arrivals], rows) = leading_numbers::<1>(rest)?;
            check_columns(rows, &self.types)?;
            self.intern(keys, batch.num_rows())?;
            self.codec
                .encode(rows, batch.num_rows(), &mut self.encoded)?;
            let rows = anonymous_batch(rows.to_vec(), batch.num_rows())?;
            let times = rowtimes(&rows, self.time)?;
            for (i, slot) in self.slots.iter().enumerate() {
                let time = rowtime_or_epoch(times, i);
                let arrival = u64::try_from(arrivals.value(i)).unwrap_or(0);
                self.arrivals = self.arrivals.max(arrival + 1);
                let row = self.store.insert(self.encoded.bytes(i));
                let waiting = Waiting { time, arrival, row };
                self.keys_state[*slot as usize] = KeyState::Waiting(waiting);
                self.waiting.insert((time, arrival, *slot));
            }
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.table.len(),
            bytes: self.table.memory_size()
                + self.store.memory_size()
                + self.keys_state.capacity() * size_of::<KeyState>()
                + self.waiting.len() * 2 * size_of::<(i64, u64, u32)>(),
        }
    }
}
