//! State of one row a key, as [`ChangelogNormalize`](super::changelog_normalize) and
//! [`Deduplicate`](super::deduplicate) keep it.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{Field, Int64Type, Schema as ArrowSchema};

use super::expiry::Expiry;
use super::row_copy::RowCopy;
use super::{OperatorContext, StateSize};
use crate::error::{Error, Result};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::{DataType, Schema};

const TABLE: &str = "rows";

/// Rows of one batch of a snapshot.
pub(super) const SNAPSHOT_ROWS: usize = 1 << 14;

/// The last row of each key.
#[derive(Debug)]
pub(super) struct LastRows {
    key: Vec<usize>,
    types: Vec<DataType>,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    codec: Arc<RowCodec>,
    store: RowStore,
    /// By slot.
    rows: Vec<Option<RowId>>,
    expiry: Expiry,
    /// Of the batch at hand: keys, rows and slots.
    keys: EncodedKeys,
    encoded: EncodedRows,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

impl LastRows {
    /// State of rows of `schema` by the columns `key`, which expires after `ttl_ms`.
    ///
    /// # Errors
    /// When a type has no row form.
    pub(super) fn new(
        schema: &Schema,
        key: &[usize],
        ttl_ms: Option<i64>,
        context: &OperatorContext,
    ) -> Result<Self> {
        let types = schema.types();
        let encoder = KeyEncoder::new(&schema.project(key).types())?;
        Ok(Self {
            key: key.to_vec(),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            store: RowStore::default(),
            rows: Vec::new(),
            expiry: Expiry::new(ttl_ms, &context.clock),
            keys: EncodedKeys::default(),
            encoded: EncodedRows::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    /// The codec of the stored rows.
    pub(super) fn codec(&self) -> &RowCodec {
        &self.codec
    }

    /// Takes up a batch, to whose rows the other methods refer by number.
    pub(super) fn begin(&mut self, batch: &RecordBatch) -> Result<()> {
        let keys: Vec<_> = self
            .key
            .iter()
            .map(|c| Arc::clone(batch.column(*c)))
            .collect();
        self.start(&keys, batch.columns(), batch.num_rows())
    }

    fn start(&mut self, keys: &[ArrayRef], rows: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(keys, len, &mut self.keys)?;
        self.codec.encode(rows, len, &mut self.encoded)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.rows.resize(self.table.slot_bound(), None);
        self.expiry.begin(self.table.slot_bound());
        Ok(())
    }

    /// The row that is stored under the key of row `i`.
    pub(super) fn stored(&self, i: usize) -> Option<&[u8]> {
        let slot = self.slots[i];
        let id = self.rows[slot as usize]?;
        (!self.expiry.is_expired(slot)).then(|| self.store.get(id))
    }

    /// Row `i` in the form of stored rows.
    pub(super) fn bytes(&self, i: usize) -> &[u8] {
        self.encoded.bytes(i)
    }

    /// The slot of the key of row `i`, for state beside this; valid until [`finish`](Self::finish)
    /// has dropped the key.
    pub(super) fn slot(&self, i: usize) -> usize {
        self.slots[i] as usize
    }

    /// Number of slots, for state beside this.
    pub(super) fn slot_bound(&self) -> usize {
        self.table.slot_bound()
    }

    /// Stores row `i` under its key.
    pub(super) fn put(&mut self, i: usize) {
        let bytes = self.encoded.bytes(i);
        self.expiry.touch(self.slots[i]);
        match &mut self.rows[self.slots[i] as usize] {
            Some(id) => self.store.replace(*id, bytes),
            empty => *empty = Some(self.store.insert(bytes)),
        }
    }

    /// Forgets what is stored under the key of row `i`.
    pub(super) fn clear(&mut self, i: usize) {
        if let Some(id) = self.rows[self.slots[i] as usize].take() {
            self.store.remove(id);
        }
    }

    /// Ends the batch: keys without a row are dropped.
    pub(super) fn finish(&mut self) {
        for slot in &self.slots {
            if self.rows[*slot as usize].is_none() && self.table.is_live(*slot) {
                self.table.remove(*slot);
            }
        }
    }

    /// When [`sweep`](Self::sweep) wants to be called.
    pub(super) fn next_timer(&self) -> Option<i64> {
        self.expiry.next_timer()
    }

    /// Forgets what has expired.
    pub(super) fn sweep(&mut self, now_ms: i64) {
        if !self.expiry.begin_sweep(now_ms) {
            return;
        }
        for slot in 0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX) {
            if self.rows[slot as usize].is_some()
                && self.expiry.is_expired(slot)
                && let Some(id) = self.rows[slot as usize].take()
            {
                self.store.remove(id);
                self.table.remove(slot);
            }
        }
    }

    /// From now on, remembers what changes.
    pub(super) fn track_changes(&mut self) {
        if !self.key.is_empty() {
            self.table.track_changes();
        }
    }

    /// Adds all rows to `snapshot`.
    pub(super) fn snapshot(&mut self, snapshot: &mut OperatorSnapshot) {
        let slots = self.table.copy_all();
        self.copy(&slots, snapshot);
    }

    /// Adds the rows of the keys that have changed; see [`Operator::changes`](super::Operator::changes).
    pub(super) fn changes(&mut self, previous_durable: bool, snapshot: &mut OperatorSnapshot) {
        let Some(changed) = self.table.take_changes(previous_durable) else {
            return self.snapshot(snapshot);
        };
        self.copy(&changed.slots, snapshot);
        let vacant = |slot: u32| self.rows[slot as usize].is_none();
        changed.mark(snapshot, TABLE, &self.table, &self.encoder, vacant);
    }

    fn copy(&self, slots: &[u32], snapshot: &mut OperatorSnapshot) {
        let keys = (&self.table, &self.encoder);
        let mut copy = RowCopy::new(TABLE, keys, &self.codec);
        for slot in slots {
            if let Some(id) = self.rows[*slot as usize] {
                let written = self.expiry.written(*slot);
                copy.push(*slot, [written], self.store.get(id), snapshot);
            }
        }
        copy.finish(snapshot);
    }

    /// Takes up the rows of a snapshot; `each` is told their slots, batch by batch.
    pub(super) fn restore(
        &mut self,
        state: &RestoreState,
        mut each: impl FnMut(&[ArrayRef], &[u32], usize) -> Result<()>,
    ) -> Result<()> {
        for batch in state.batches(TABLE) {
            let (keys, rest) = batch.columns().split_at(self.key.len());
            let ([written], rows) = leading_numbers::<1>(rest)?;
            check_columns(rows, &self.types)?;
            self.start(keys, rows, batch.num_rows())?;
            for i in 0..batch.num_rows() {
                self.put(i);
            }
            self.expiry.load(&self.slots, written);
            each(rows, &self.slots, self.table.slot_bound())?;
        }
        Ok(())
    }

    /// What it holds.
    pub(super) fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.store.len(),
            bytes: self.table.memory_size()
                + self.store.memory_size()
                + self.expiry.memory_size()
                + self.rows.capacity() * size_of::<Option<RowId>>(),
        }
    }
}

/// A batch of columns whose names do not matter.
pub(super) fn anonymous_batch(columns: Vec<ArrayRef>, len: usize) -> Result<RecordBatch> {
    let fields: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(i, c)| Field::new(format!("c{i}"), c.data_type().clone(), true))
        .collect();
    let schema = Arc::new(ArrowSchema::new(fields));
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(len));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// The leading `BIGINT` columns of saved state, and the others.
///
/// # Errors
/// When there are fewer, or they have another type.
pub(super) fn leading_numbers<const N: usize>(
    columns: &[ArrayRef],
) -> Result<([&Int64Array; N], &[ArrayRef])> {
    let fail = || Error::checkpoint("saved state has other columns than the operator expects");
    let (head, rest) = columns.split_at_checked(N).ok_or_else(fail)?;
    let head = head.iter().map(|c| c.as_primitive_opt::<Int64Type>());
    let head: Vec<_> = head.collect::<Option<_>>().ok_or_else(fail)?;
    Ok((head.try_into().map_err(|_| fail())?, rest))
}
