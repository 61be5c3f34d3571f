//! Remembers what each row of an updating input was joined with: its withdrawal finds the same rows,
//! though the table may have changed meanwhile.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};

use super::LookupJoinSpec;
use super::matcher::Matcher;
use crate::changelog::ChangeBatch;
use crate::connectors::lookup::Lookup;
use crate::error::Result;
use crate::operators::correlate::CalledRows;
use crate::operators::expiry::Expiry;
use crate::operators::last_rows::{anonymous_batch, leading_numbers};
use crate::operators::{OperatorContext, StateSize};
use crate::runtime::metrics::OperatorMetrics;
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::DataType;

const TABLE: &str = "joined";

/// The right rows that one row was joined with.
type Joined = Vec<RowId>;

/// The state.
pub(super) struct Materialized {
    /// Columns that tell rows of the input apart.
    key: Vec<usize>,
    /// Whether there is one row a key: a new one takes the place of the old one. Otherwise the key
    /// is the whole row, and equal rows are remembered each.
    unique: bool,
    encoder: KeyEncoder,
    table: KeyTable,
    types: Vec<DataType>,
    codec: RowCodec,
    store: RowStore,
    /// By slot; the latest last.
    joined: Vec<Vec<Joined>>,
    expiry: Expiry,
    keys: EncodedKeys,
    slots: Vec<u32>,
    fresh: Vec<u32>,
    encoded: EncodedRows,
    metrics: Arc<OperatorMetrics>,
}

impl Materialized {
    pub(super) fn new(
        spec: &LookupJoinSpec,
        key: &[usize],
        context: &OperatorContext,
    ) -> Result<Self> {
        let encoder = KeyEncoder::new(&spec.input.project(key).types())?;
        let types = spec.output.types().split_off(spec.input.len());
        Ok(Self {
            key: key.to_vec(),
            unique: key.len() < spec.input.len(),
            table: encoder.table(),
            encoder,
            codec: RowCodec::new(&types)?,
            types,
            store: RowStore::default(),
            joined: Vec::new(),
            expiry: Expiry::new(spec.ttl_ms, &context.clock),
            keys: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
            encoded: EncodedRows::default(),
            metrics: Arc::clone(&context.metrics),
        })
    }

    /// Joins a batch: rows that are added are looked up, those that are withdrawn give what they
    /// were joined with. A withdrawal of an unknown row is dropped and counted.
    pub(super) fn process(
        &mut self,
        batch: &ChangeBatch,
        matcher: &Matcher,
        lookup: &mut dyn Lookup,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let added: UInt32Array = (0..)
            .zip(batch.kinds())
            .filter_map(|(i, kind)| kind.is_add().then_some(i))
            .collect();
        let found = match added.is_empty() {
            true => matcher.nothing(),
            false => matcher.look_up(&batch.take(&added)?, lookup)?,
        };
        self.codec
            .encode(&found.columns, found.calls.len(), &mut self.encoded)?;
        let key: Vec<ArrayRef> = self
            .key
            .iter()
            .map(|c| Arc::clone(batch.rows().column(*c)))
            .collect();
        self.begin(&key, batch.len())?;

        let mut result = Rows::default();
        let mut found_for = found.calls.values().iter().enumerate().peekable();
        let mut next_added = 0;
        for (i, kind) in (0..).zip(batch.kinds()) {
            let slot = self.slots[i as usize];
            if self.expiry.is_expired(slot) {
                self.clear(slot);
            }
            if !kind.is_add() {
                self.withdraw(i, slot, &mut result);
                continue;
            }
            let mut joined = Joined::new();
            while let Some((row, _)) = found_for.next_if(|(_, call)| **call == next_added) {
                let bytes = self.encoded.bytes(row);
                joined.push(self.store.insert(bytes));
                result.push(i, bytes);
            }
            next_added += 1;
            if self.unique {
                self.clear(slot);
            }
            self.joined[slot as usize].push(joined);
            self.expiry.touch(slot);
        }
        self.drop_empty();
        let found = CalledRows {
            calls: UInt32Array::from(result.of),
            columns: self.codec.decode(
                result
                    .ranges
                    .iter()
                    .map(|(from, to)| &result.bytes[*from..*to]),
            )?,
        };
        matcher.emit(found, batch, out)
    }

    fn begin(&mut self, key: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(key, len, &mut self.keys)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.joined.resize(self.table.slot_bound(), Vec::new());
        self.expiry.begin(self.table.slot_bound());
        Ok(())
    }

    fn withdraw(&mut self, i: u32, slot: u32, result: &mut Rows) {
        let Some(joined) = self.joined[slot as usize].pop() else {
            self.metrics.inconsistent_dropped.add(1);
            return;
        };
        for id in joined {
            result.push(i, self.store.get(id));
            self.store.remove(id);
        }
    }

    fn clear(&mut self, slot: u32) {
        for id in std::mem::take(&mut self.joined[slot as usize])
            .into_iter()
            .flatten()
        {
            self.store.remove(id);
        }
    }

    /// Drops the keys of the batch that have no row.
    fn drop_empty(&mut self) {
        for slot in &self.slots {
            if self.joined[*slot as usize].is_empty() && self.table.is_live(*slot) {
                self.table.remove(*slot);
            }
        }
    }

    pub(super) fn next_timer(&self) -> Option<i64> {
        self.expiry.next_timer()
    }

    /// Forgets what has expired.
    pub(super) fn sweep(&mut self, now_ms: i64) {
        if !self.expiry.begin_sweep(now_ms) {
            return;
        }
        let slots: Vec<u32> = self.table.slots().collect();
        for slot in slots {
            if self.expiry.is_expired(slot) {
                self.clear(slot);
                self.table.remove(slot);
            }
        }
    }

    pub(super) fn snapshot(&self, snapshot: &mut OperatorSnapshot) -> Result<()> {
        let (mut slots, mut versions, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for slot in self.table.slots() {
            for (version, joined) in (0i64..).zip(&self.joined[slot as usize]) {
                // a row that was joined with nothing is remembered too
                let rows = joined.len().max(1);
                slots.resize(slots.len() + rows, slot);
                versions.resize(versions.len() + rows, version);
                match joined.is_empty() {
                    true => ids.push(None),
                    false => ids.extend(joined.iter().copied().map(Some)),
                }
            }
        }
        let len = slots.len();
        let written = self.expiry.save(&slots);
        let mut columns = self.table.decode(&self.encoder, slots)?;
        columns.push(written);
        columns.push(Arc::new(Int64Array::from(versions)));
        let numbers = ids.iter().scan(0u32, |next, id| {
            let at = id.map(|_| *next);
            *next += u32::from(id.is_some());
            Some(at)
        });
        let numbers: UInt32Array = numbers.collect();
        let there = numbers.iter().map(|n| i64::from(n.is_some()));
        columns.push(Arc::new(there.collect::<Int64Array>()));
        let rows = self
            .store
            .decode(&self.codec, ids.iter().flatten().copied())?;
        for column in rows {
            columns.push(arrow::compute::take(&column, &numbers, None)?);
        }
        snapshot.add(TABLE, self.key.len(), anonymous_batch(columns, len)?);
        Ok(())
    }

    pub(super) fn restore(&mut self, state: &RestoreState) -> Result<()> {
        for batch in state.batches(TABLE) {
            let (keys, rest) = batch.columns().split_at(self.key.len());
            let ([written, versions, there], rows) = leading_numbers::<3>(rest)?;
            check_columns(rows, &self.types)?;
            self.codec
                .encode(rows, batch.num_rows(), &mut self.encoded)?;
            self.begin(keys, batch.num_rows())?;
            for (i, slot) in self.slots.iter().enumerate() {
                let of_key = &mut self.joined[*slot as usize];
                let version = usize::try_from(versions.value(i)).unwrap_or_default();
                if of_key.len() <= version {
                    of_key.push(Joined::new());
                }
                if let (1, Some(joined)) = (there.value(i), of_key.last_mut()) {
                    joined.push(self.store.insert(self.encoded.bytes(i)));
                }
            }
            self.expiry.load(&self.slots, written);
        }
        Ok(())
    }

    pub(super) fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.table.len(),
            bytes: self.table.memory_size()
                + self.store.memory_size()
                + self.expiry.memory_size()
                + self.store.len() * size_of::<RowId>()
                + self.joined.capacity() * size_of::<Vec<Joined>>(),
        }
    }
}

/// Right rows in stored form, with the row of the batch that each belongs to.
#[derive(Default)]
struct Rows {
    of: Vec<u32>,
    ranges: Vec<(usize, usize)>,
    bytes: Vec<u8>,
}

impl Rows {
    fn push(&mut self, of: u32, row: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(row);
        self.of.push(of);
        self.ranges.push((from, self.bytes.len()));
    }
}
