//! `SinkUpsertMaterializer`: stands before an upsert sink whose primary key is not a key of the
//! query, so that several live rows can claim one primary key.
//!
//! [`SinkUpsertMaterializer`] (`ON CONFLICT DO DEDUPLICATE`) remembers all of them: the latest is the
//! sink's, and when it goes the one before it comes back. [`WatermarkCompactingSinkMaterializer`]
//! (`DO ERROR`, `DO NOTHING`) waits for the watermark, by which time withdrawals have arrived, and
//! then allows one.

mod live_rows;

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};

use self::live_rows::LiveRows;
use super::changes::{Changes, column_kinds, kind_column};
use super::last_rows::anonymous_batch;
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::runtime::metrics::OperatorMetrics;
use crate::runtime::output::Output;
use crate::state::rows::check_columns;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;
use crate::types::text::{Printer, Style};

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
        self.live.snapshot(&mut snapshot);
        Ok(snapshot)
    }

    fn track_changes(&mut self) {
        self.live.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.live.changes(previous_durable, &mut snapshot);
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

    /// Shares the changes since the last watermark with `snapshot`.
    fn copy_pending(&self, snapshot: &mut OperatorSnapshot) -> Result<()> {
        for batch in &self.pending {
            let rows = batch.rows();
            let keys = self.live.primary_key.iter().map(|c| rows.column(*c));
            let mut columns: Vec<_> = keys.chain(rows.columns()).cloned().collect();
            columns.push(kind_column(&batch.kinds().collect::<Vec<_>>()));
            let keys = self.live.primary_key.len();
            snapshot.add("pending", keys, anonymous_batch(columns, batch.len())?);
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
        self.live.snapshot(&mut snapshot);
        self.copy_pending(&mut snapshot)?;
        Ok(snapshot)
    }

    fn track_changes(&mut self) {
        self.live.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.live.changes(previous_durable, &mut snapshot);
        self.copy_pending(&mut snapshot)?;
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
