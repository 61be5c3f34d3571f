//! `SinkUpsertMaterializer`: stands before an upsert sink whose primary key is not a key of the
//! query, so that several live rows can claim one primary key.
//!
//! [`SinkUpsertMaterializer`] (`ON CONFLICT DO DEDUPLICATE`) remembers all of them: the latest is the
//! sink's, and when it goes the one before it comes back. [`WatermarkCompactingSinkMaterializer`]
//! (`DO ERROR`, `DO NOTHING`) waits for the watermark, by which time withdrawals have arrived, and
//! then allows one.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};

use super::changes::{Changes, column_kinds, kind_column};
use super::expiry::Expiry;
use super::last_rows::{anonymous_batch, leading_numbers};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::runtime::metrics::OperatorMetrics;
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::text::{Printer, Style};
use crate::types::{DataType, Schema};

/// What is materialized.
#[derive(Debug, Clone)]
pub struct SinkUpsertMaterializerSpec {
    /// Columns of input and output.
    pub schema: Schema,
    /// The sink's primary key.
    pub primary_key: Vec<usize>,
    /// The query's upsert key: rows that agree on it are versions of one row. Without one, rows are
    /// the same when all columns are.
    pub upsert_key: Option<Vec<usize>>,
    /// `table.exec.state.ttl`, ms.
    pub ttl_ms: Option<i64>,
}

/// The live rows of each primary key, oldest first.
#[derive(Debug)]
struct LiveRows {
    primary_key: Vec<usize>,
    types: Vec<DataType>,
    encoder: KeyEncoder,
    table: KeyTable,
    codec: RowCodec,
    store: RowStore,
    /// What tells rows apart, if it is not the whole row.
    identity: Option<(Vec<usize>, RowCodec, RowStore)>,
    /// By slot.
    rows: Vec<Vec<Live>>,
    expiry: Expiry,
    keys: EncodedKeys,
    encoded: EncodedRows,
    identities: EncodedRows,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    row: RowId,
    /// The same as `row` unless there is an upsert key.
    identity: RowId,
}

impl LiveRows {
    fn new(
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
            encoder,
            codec: RowCodec::new(&types)?,
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

    fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
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

    fn slot(&self, i: usize) -> usize {
        self.slots[i] as usize
    }

    fn last(&self, slot: usize) -> Option<&[u8]> {
        self.rows[slot].last().map(|live| self.store.get(live.row))
    }

    /// Where in the list of its key a row like row `i` stands first.
    fn find(&self, i: usize) -> Option<usize> {
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
    fn add(&mut self, i: usize) {
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
    fn renew(&mut self, i: usize) {
        let slot = self.slots[i];
        if self.expiry.is_expired(slot) {
            self.clear(slot as usize);
        }
        self.expiry.touch(slot);
    }

    fn clear(&mut self, slot: usize) {
        for live in std::mem::take(&mut self.rows[slot]) {
            self.store.remove(live.row);
            if let Some((_, _, store)) = &mut self.identity {
                store.remove(live.identity);
            }
        }
    }

    /// Forgets what has expired.
    fn sweep(&mut self, now_ms: i64) {
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

    fn remove(&mut self, slot: usize, at: usize) {
        let live = self.rows[slot].remove(at);
        self.store.remove(live.row);
        if let Some((_, _, store)) = &mut self.identity {
            store.remove(live.identity);
        }
    }

    /// Drops the keys of the batch that have no row.
    fn finish(&mut self) {
        for slot in &self.slots {
            if self.rows[*slot as usize].is_empty() && self.table.is_live(*slot) {
                self.table.remove(*slot);
            }
        }
    }

    fn snapshot(&self, snapshot: &mut OperatorSnapshot) -> Result<()> {
        let mut slots = Vec::new();
        let mut ids = Vec::new();
        for slot in self.table.slots() {
            for live in &self.rows[slot as usize] {
                slots.push(slot);
                ids.push(live.row);
            }
        }
        let len = ids.len();
        let written = self.expiry.save(&slots);
        let mut columns = self.table.decode(&self.encoder, slots)?;
        columns.push(written);
        columns.extend(self.store.decode(&self.codec, ids)?);
        snapshot.add(
            "rows",
            self.primary_key.len(),
            anonymous_batch(columns, len)?,
        );
        Ok(())
    }

    fn restore(&mut self, state: &RestoreState) -> Result<()> {
        for batch in state.batches("rows") {
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

    fn state_size(&self) -> StateSize {
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

/// The operator for `ON CONFLICT DO DEDUPLICATE`.
#[derive(Debug)]
pub struct SinkUpsertMaterializer {
    live: LiveRows,
    changes: Changes,
    metrics: Arc<OperatorMetrics>,
}

impl SinkUpsertMaterializer {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(spec: &SinkUpsertMaterializerSpec, context: &OperatorContext) -> Result<Self> {
        Ok(Self {
            live: LiveRows::new(spec, spec.ttl_ms, context)?,
            changes: Changes::new(spec.schema.to_arrow()),
            metrics: Arc::clone(&context.metrics),
        })
    }

    fn add(&mut self, i: usize) {
        let empty = self.live.rows[self.live.slot(i)].is_empty();
        self.live.add(i);
        let kind = match empty {
            true => RowKind::Insert,
            false => RowKind::UpdateAfter,
        };
        self.changes.input(kind, i);
    }

    fn withdraw(&mut self, i: usize) {
        let Some(at) = self.live.find(i) else {
            self.metrics.inconsistent_dropped.add(1);
            return;
        };
        let slot = self.live.slot(i);
        self.live.remove(slot, at);
        match self.live.last(slot) {
            None => self.changes.input(RowKind::Delete, i),
            Some(row) if at == self.live.rows[slot].len() => {
                self.changes.stored(RowKind::UpdateAfter, row);
            }
            Some(_) => {}
        }
    }
}

impl Operator for SinkUpsertMaterializer {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        self.live.begin(batch.rows().columns(), batch.len())?;
        for (i, kind) in batch.kinds().enumerate() {
            self.live.renew(i);
            match kind.is_add() {
                true => self.add(i),
                false => self.withdraw(i),
            }
        }
        self.live.finish();
        self.changes.emit(batch.rows(), &self.live.codec, out)
    }

    fn next_timer(&self) -> Option<i64> {
        self.live.expiry.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        self.live.sweep(now_ms);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.live.snapshot(&mut snapshot)?;
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.live.restore(&state)
    }

    fn state_size(&self) -> StateSize {
        self.live.state_size()
    }
}

/// What a second live row of a primary key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictStrategy {
    /// It ends the job (`ON CONFLICT DO ERROR`).
    Error,
    /// It is ignored (`ON CONFLICT DO NOTHING`).
    Nothing,
}

/// The operator for `ON CONFLICT DO ERROR | NOTHING`. State: the sink's row of each primary key, and
/// the changes since the last watermark.
#[derive(Debug)]
pub struct WatermarkCompactingSinkMaterializer {
    strategy: ConflictStrategy,
    /// The sink's row of each key; while a key is compacted, its candidates.
    live: LiveRows,
    /// Changes since the last watermark, in order.
    pending: Vec<ChangeBatch>,
    pending_rows: usize,
    changes: Changes,
    key_names: Vec<String>,
    metrics: Arc<OperatorMetrics>,
}

impl WatermarkCompactingSinkMaterializer {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(
        spec: &SinkUpsertMaterializerSpec,
        strategy: ConflictStrategy,
        context: &OperatorContext,
    ) -> Result<Self> {
        Ok(Self {
            strategy,
            // What the sink has must be known as long as the sink has it.
            live: LiveRows::new(spec, None, context)?,
            pending: Vec::new(),
            pending_rows: 0,
            changes: Changes::new(spec.schema.to_arrow()),
            key_names: spec.schema.project(&spec.primary_key).names(),
            metrics: Arc::clone(&context.metrics),
        })
    }

    /// All pending changes, those of one key together, keys in the order of their first change.
    fn take_pending(&mut self) -> Result<Option<ChangeBatch>> {
        let batches = std::mem::take(&mut self.pending);
        self.pending_rows = 0;
        let Some(first) = batches.first() else {
            return Ok(None);
        };
        let kinds = batches.iter().flat_map(ChangeBatch::kinds).collect();
        let rows = batches.iter().map(ChangeBatch::rows);
        let rows = arrow::compute::concat_batches(&first.schema(), rows)?;
        let all = ChangeBatch::try_new(rows, kinds)?;
        self.live.begin(all.rows().columns(), all.len())?;
        let mut first_touch = vec![u32::MAX; self.live.table.slot_bound()];
        for i in (0..all.len()).rev() {
            first_touch[self.live.slot(i)] = u32::try_from(i).expect("fewer than 2^32 rows");
        }
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|i| first_touch[self.live.slot(*i)]);
        let order = UInt32Array::from_iter_values(order.iter().map(|i| *i as u32));
        let all = all.take(&order)?;
        self.live.begin(all.rows().columns(), all.len())?;
        Ok(Some(all))
    }

    /// Applies the changes `range`, all of one key.
    fn compact(&mut self, all: &ChangeBatch, range: std::ops::Range<usize>) -> Result<()> {
        let slot = self.live.slot(range.start);
        let before = self.live.last(slot).map(<[u8]>::to_vec);
        let key_row = range.start;
        for i in range {
            if all.kind(i).is_add() {
                self.live.add(i);
            } else if let Some(at) = self.live.find(i) {
                self.live.remove(slot, at);
            } else {
                self.metrics.inconsistent_dropped.add(1);
            }
        }
        if self.live.rows[slot].len() > 1 && self.strategy == ConflictStrategy::Error {
            return Err(self.conflict(all.rows(), key_row));
        }
        while self.live.rows[slot].len() > 1 {
            self.live.remove(slot, 1);
        }
        let now = self.live.last(slot);
        match (&before, now) {
            (None, Some(now)) => self.changes.stored(RowKind::Insert, now),
            (Some(before), None) => self.changes.stored(RowKind::Delete, before),
            (Some(before), Some(now)) if before != now => {
                self.changes.stored(RowKind::UpdateAfter, now);
            }
            _ => {}
        }
        Ok(())
    }

    fn conflict(&self, rows: &RecordBatch, row: usize) -> Error {
        let mut key = String::new();
        for (name, column) in self.key_names.iter().zip(&self.live.primary_key) {
            let separator = if key.is_empty() { "" } else { ", " };
            key.push_str(&format!("{separator}{name}="));
            let printer = Printer::new(&self.live.types[*column], Style::Row, chrono_tz::UTC);
            printer.write(rows.column(*column), row, &mut key);
        }
        Error::execution(format!(
            "Primary key constraint violation: multiple distinct records with the same primary key \
             detected. Conflicting key: [{key}]. Use ON CONFLICT DO NOTHING to keep the first record."
        ))
    }
}

impl Operator for WatermarkCompactingSinkMaterializer {
    fn process(&mut self, _port: usize, batch: ChangeBatch, _out: &mut Output<'_>) -> Result<()> {
        self.pending_rows += batch.len();
        self.pending.push(batch);
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        if let Some(all) = self.take_pending()? {
            let mut start = 0;
            let mut outcome = Ok(());
            while start < all.len() && outcome.is_ok() {
                let slot = self.live.slot(start);
                let same = (start..all.len()).take_while(|i| self.live.slot(*i) == slot);
                let end = start + same.count();
                outcome = self.compact(&all, start..end);
                start = end;
            }
            self.live.finish();
            self.changes.emit(all.rows(), &self.live.codec, out)?;
            outcome?;
        }
        out.watermark(watermark)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.live.snapshot(&mut snapshot)?;
        for batch in &self.pending {
            let rows = batch.rows();
            let keys = self.live.primary_key.iter().map(|c| rows.column(*c));
            let mut columns: Vec<_> = keys.chain(rows.columns()).cloned().collect();
            columns.push(kind_column(&batch.kinds().collect::<Vec<_>>()));
            let keys = self.live.primary_key.len();
            snapshot.add("pending", keys, anonymous_batch(columns, batch.len())?);
        }
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.live.restore(&state)?;
        let schema = self.changes.schema();
        for batch in state.batches("pending") {
            let keys = self.live.primary_key.len();
            let (rows, kinds) = batch.columns()[keys..].split_at(self.live.types.len());
            check_columns(rows, &self.live.types)?;
            let rows = RecordBatch::try_new(Arc::clone(&schema), rows.to_vec())?;
            self.pending_rows += rows.num_rows();
            self.pending
                .push(ChangeBatch::try_new(rows, column_kinds(&kinds[0])?)?);
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        let live = self.live.state_size();
        StateSize {
            rows: live.rows + self.pending_rows,
            bytes: live.bytes
                + self
                    .pending
                    .iter()
                    .map(ChangeBatch::memory_size)
                    .sum::<usize>(),
        }
    }
}

#[cfg(test)]
mod tests;
