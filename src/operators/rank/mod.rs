//! `Rank`: Top-N by `ROW_NUMBER`, and with it `SortLimit` (`ORDER BY .. LIMIT`) and `Limit`.
//!
//! Each partition keeps its rows in order ([`sorted_rows`]); of input that only grows or improves no
//! more than the N best. What is emitted for a change depends on whether the output tells the rank:
//!
//! - with the rank (or a range that does not start at 1), every row that moves is updated:
//!   `-U[old at r] +U[new at r]` for each rank r from the change down to N,
//! - without, only the row that comes and the row that goes: `-D[the (N+1)th] +I[the new one]`.

mod row_keys;
pub(super) mod sorted_rows;
mod spec;
mod strategies;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use self::row_keys::RowKeys;
use self::sorted_rows::{Entry, Position, SortedRows};
pub use self::spec::{RankEnd, RankSpec, RankStrategy, SortColumn};
use super::changes::{Changes, Place};
use super::expiry::Expiry;
use super::last_rows::{SNAPSHOT_ROWS, anonymous_batch, leading_numbers};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::runtime::output::Output;
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{EncodedKeys, KeyBytes, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{LazyBatch, OperatorSnapshot, RestoreState};
use crate::types::DataType;

/// Tables of a snapshot.
const ROWS: &str = "rows";
const PARTITIONS: &str = "partitions";

/// Rows whose state is fetched together: what they need fits the nearest caches.
const PREFETCH: usize = 256;

/// The operator.
#[derive(Debug)]
pub struct Rank {
    partition_by: Vec<usize>,
    order_by: Vec<usize>,
    rank_end: RankEnd,
    strategy: Strategy,
    types: Vec<DataType>,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    /// By partition.
    partitions: Vec<Partition>,
    expiry: Expiry,
    sort_codec: RowCodec,
    codec: Arc<RowCodec>,
    row_keys: Option<RowKeys>,
    core: Core,
    context: OperatorContext,
    // Of the batch at hand.
    keys: EncodedKeys,
    slots: Vec<u32>,
    fresh: Vec<u32>,
    sorts: EncodedRows,
    rows: EncodedRows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// Append by arrival: counts, no rows.
    Count,
    Append,
    Update,
    Retract,
}

#[derive(Debug, Clone, Default)]
struct Partition {
    rows: SortedRows,
    /// Rows so far, for [`Strategy::Count`].
    count: u64,
    /// The last rank, once a row has told it.
    end: Option<u64>,
}

/// What all partitions share: the rows' bytes and the output.
#[derive(Debug)]
struct Core {
    store: RowStore,
    changes: Changes,
    /// Where the rows of state that were emitted already stand in the output, by row.
    places: Vec<Option<Place>>,
    placed: Vec<RowId>,
    rank_start: u64,
    with_rank: bool,
    /// Whether a partition has one row of output, which changes are updates of.
    top_1: bool,
    generate_update_before: bool,
    scratch: Vec<u8>,
}

fn select(columns: &[ArrayRef], indices: &[usize]) -> Vec<ArrayRef> {
    indices.iter().map(|c| Arc::clone(&columns[*c])).collect()
}

impl Rank {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(spec: &RankSpec, context: &OperatorContext) -> Result<Self> {
        let types = spec.schema.types();
        let encoder = KeyEncoder::new(&spec.schema.project(&spec.partition_by).types())?;
        let sort = spec.order_by.iter();
        let sort_codec = RowCodec::sorted(sort.map(|s| (&types[s.column], s.options())))?;
        let row_keys = match &spec.strategy {
            RankStrategy::UpdateFast(key) => Some(RowKeys::new(&spec.schema, key)?),
            _ => None,
        };
        let strategy = match &spec.strategy {
            RankStrategy::AppendFast if spec.order_by.is_empty() => Strategy::Count,
            RankStrategy::AppendFast => Strategy::Append,
            RankStrategy::UpdateFast(_) => Strategy::Update,
            RankStrategy::Retract => Strategy::Retract,
        };
        let output = spec.output.to_arrow();
        Ok(Self {
            partition_by: spec.partition_by.clone(),
            order_by: spec.order_by.iter().map(|s| s.column).collect(),
            rank_end: spec.rank_end,
            strategy,
            table: encoder.table(),
            encoder: Arc::new(encoder),
            partitions: Vec::new(),
            expiry: Expiry::new(spec.ttl_ms, &context.clock),
            sort_codec,
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            row_keys,
            core: Core {
                store: RowStore::default(),
                changes: match spec.output_rank {
                    true => Changes::with_rank(output),
                    false => Changes::new(output),
                },
                places: Vec::new(),
                placed: Vec::new(),
                rank_start: spec.rank_start.max(1),
                with_rank: spec.output_rank || spec.rank_start > 1,
                top_1: spec.rank_end == RankEnd::Constant(1),
                generate_update_before: spec.generate_update_before,
                scratch: Vec::new(),
            },
            context: context.clone(),
            keys: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
            sorts: EncodedRows::default(),
            rows: EncodedRows::default(),
        })
    }

    fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        let keys = select(columns, &self.partition_by);
        self.encoder.encode(&keys, len, &mut self.keys)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.partitions
            .resize(self.table.slot_bound(), Partition::default());
        self.expiry.begin(self.table.slot_bound());
        if self.strategy != Strategy::Count {
            let sorts = select(columns, &self.order_by);
            self.sort_codec.encode(&sorts, len, &mut self.sorts)?;
        }
        if let Some(row_keys) = &mut self.row_keys {
            row_keys.begin(columns, len)?;
        }
        Ok(())
    }

    /// Reads what rows of the batch will need of the state: without a decision in between the processor fetches it for
    /// many rows at once, and soon finds it in its cache.
    fn prefetch(&self, slots: impl Iterator<Item = u32> + Clone) {
        let partitions = || slots.clone().map(|s| &self.partitions[s as usize].rows);
        let mut sum = partitions().filter(|rows| rows.is_empty()).count();
        for rows in partitions() {
            sum ^= rows.touch() as usize;
        }
        for last in partitions().filter_map(SortedRows::last) {
            let id = last.id.0 as usize;
            sum ^= usize::from(self.core.store.get(last.id).first().copied().unwrap_or(0));
            sum ^= usize::from(matches!(self.core.places.get(id), Some(Some(_))));
        }
        std::hint::black_box(sum);
    }

    /// The rows of the batch that can be among the first ranks, where it pays to know: what comes
    /// behind the last row of a full partition has no effect.
    fn candidates(&self) -> Option<UInt32Array> {
        let RankEnd::Constant(end) = self.rank_end else {
            return None;
        };
        if self.strategy != Strategy::Append || self.expiry.is_on() {
            return None;
        }
        let mut chosen = Vec::with_capacity(self.slots.len());
        let mut i = 0;
        for slots in self.slots.chunks(PREFETCH) {
            let last = |slot: &u32| self.partitions[*slot as usize].rows.last();
            let ids = slots.iter().filter_map(last).map(|entry| entry.id.0);
            std::hint::black_box(ids.fold(0, |sum, id| sum ^ id));
            for slot in slots {
                let rows = &self.partitions[*slot as usize].rows;
                if (rows.len() as u64) < end
                    || rows.last().is_some_and(|last| {
                        last.is_behind(&self.core.store, self.sorts.bytes(i as usize))
                    })
                {
                    chosen.push(i);
                }
                i += 1;
            }
        }
        let chosen = UInt32Array::from(chosen);
        (chosen.len() < self.slots.len()).then_some(chosen)
    }

    /// Encodes the rows of the batch, or some of them.
    fn encode(&mut self, columns: &[ArrayRef], chosen: Option<&UInt32Array>) -> Result<()> {
        if self.strategy == Strategy::Count {
            return Ok(());
        }
        let Some(chosen) = chosen else {
            let len = self.slots.len();
            return self.codec.encode(columns, len, &mut self.rows);
        };
        let columns = columns
            .iter()
            .map(|column| Ok(take(column, chosen, None)?))
            .collect::<Result<Vec<_>>>()?;
        self.codec.encode(&columns, chosen.len(), &mut self.rows)
    }

    /// Drops the partitions of the batch that are empty.
    fn finish(&mut self) {
        if let Some(row_keys) = &mut self.row_keys {
            row_keys.finish();
        }
        for slot in &self.slots {
            let partition = &mut self.partitions[*slot as usize];
            if partition.rows.is_empty() && partition.count == 0 && self.table.is_live(*slot) {
                *partition = Partition::default();
                self.table.remove(*slot);
            }
        }
    }

    /// Forgets the rows of a partition.
    fn clear(&mut self, slot: u32) {
        let partition = std::mem::take(&mut self.partitions[slot as usize]);
        for entry in partition.rows.iter() {
            if let Some(row_keys) = &mut self.row_keys {
                row_keys.forget(entry);
            }
            self.core.remove(entry);
        }
    }

    /// The last rank of the partition of row `i`.
    fn end(&mut self, i: usize, ends: Option<&Int64Array>) -> u64 {
        match (self.rank_end, ends) {
            (RankEnd::Constant(end), _) => end,
            (RankEnd::Column(_), ends) => {
                let told = || ends.map_or(0, |e| u64::try_from(e.value(i)).unwrap_or(0));
                let partition = &mut self.partitions[self.slots[i] as usize];
                *partition.end.get_or_insert_with(told)
            }
        }
    }

    /// The column that tells the last rank, as `BIGINT`.
    fn ends(&self, columns: &[ArrayRef]) -> Result<Option<Int64Array>> {
        let RankEnd::Column(column) = self.rank_end else {
            return Ok(None);
        };
        let ends = cast(&columns[column], &ArrowType::Int64)?;
        Ok(Some(ends.as_primitive::<Int64Type>().clone()))
    }

    /// Takes row `i` of the batch, the `encoded`th that was encoded.
    fn row(&mut self, i: usize, encoded: usize, kind: RowKind, end: u64) {
        let partition = &mut self.partitions[self.slots[i] as usize];
        let new = NewRow {
            i,
            sort: self.sorts.bytes(i),
            row: self.rows.bytes(encoded),
        };
        let known = match (self.strategy, kind.is_add(), &mut self.row_keys) {
            (Strategy::Count, true, _) => {
                self.core.count(partition, i, end);
                true
            }
            (Strategy::Append, true, _) => {
                self.core.append(&mut partition.rows, &new, end);
                true
            }
            (Strategy::Update, true, Some(keys)) => {
                self.core.update(&mut partition.rows, keys, &new, end);
                true
            }
            (Strategy::Retract, true, _) => {
                self.core.add(&mut partition.rows, &new, end);
                true
            }
            (Strategy::Retract, false, _) => self.core.withdraw(&mut partition.rows, &new, end),
            _ => false,
        };
        if !known {
            self.context.metrics.inconsistent_dropped.add(1);
        }
    }
}

/// A row of the input.
struct NewRow<'a> {
    i: usize,
    sort: &'a [u8],
    row: &'a [u8],
}

impl Rank {
    /// Whether partitions have more to save than their rows.
    fn saves_partitions(&self) -> bool {
        let variable = matches!(self.rank_end, RankEnd::Column(_));
        self.strategy == Strategy::Count || variable || self.expiry.is_on()
    }

    /// Copies the partitions of slots.
    fn copy(&self, slots: &[u32], snapshot: &mut OperatorSnapshot) {
        let keys = self.partition_by.len();
        for slots in slots.chunks(SNAPSHOT_ROWS) {
            let (mut of_row, mut rows) = (Vec::new(), KeyBytes::default());
            for slot in slots {
                for entry in self.partitions[*slot as usize].rows.iter() {
                    of_row.push(*slot);
                    rows.push(entry.row(&self.core.store));
                }
            }
            let of_row = self.table.copy_keys(&of_row);
            let (encoder, codec) = (Arc::clone(&self.encoder), Arc::clone(&self.codec));
            let make = move || {
                let mut columns = encoder.decode(of_row.iter())?;
                columns.extend(codec.decode(rows.iter())?);
                anonymous_batch(columns, rows.len())
            };
            snapshot.add_lazy(ROWS, keys, LazyBatch::new(make));
            if self.saves_partitions() {
                let partitions = slots.iter().map(|slot| &self.partitions[*slot as usize]);
                let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
                let counts = partitions.clone().map(|p| number(p.count));
                let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(counts));
                let ends = partitions.map(|p| p.end.map(number));
                let ends: ArrayRef = Arc::new(ends.collect::<Int64Array>());
                let columns = vec![
                    ("count".to_string(), counts),
                    ("end".to_string(), ends),
                    ("written".to_string(), self.expiry.save(slots)),
                ];
                let batch = keyed_rows(&self.encoder, self.table.copy_keys(slots), columns);
                snapshot.add_lazy(PARTITIONS, keys, batch);
            }
        }
    }
}

impl Operator for Rank {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let rows = batch.rows();
        self.begin(rows.columns(), batch.len())?;
        let ends = self.ends(rows.columns())?;
        let chosen = self.candidates();
        self.encode(rows.columns(), chosen.as_ref())?;
        let count = chosen.as_ref().map_or(batch.len(), Array::len);
        let row = |encoded: usize| match &chosen {
            Some(chosen) => chosen.value(encoded) as usize,
            None => encoded,
        };
        for encoded in 0..count {
            if encoded % PREFETCH == 0 && self.strategy != Strategy::Count {
                let block = encoded..count.min(encoded + PREFETCH);
                self.prefetch(block.map(|encoded| self.slots[row(encoded)]));
            }
            let i = row(encoded);
            let kind = batch.kind(i);
            if self.expiry.is_on() {
                if self.expiry.is_expired(self.slots[i]) {
                    self.clear(self.slots[i]);
                }
                self.expiry.touch(self.slots[i]);
            }
            let end = self.end(i, ends.as_ref());
            self.row(i, encoded, kind, end);
            if self.core.changes.is_full() {
                self.core.changes.emit(rows, &self.codec, out)?;
                self.core.forget_stored();
            }
        }
        self.finish();
        self.core.changes.emit(rows, &self.codec, out)?;
        self.core.forget_all();
        Ok(())
    }

    fn next_timer(&self) -> Option<i64> {
        self.expiry.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        if self.expiry.begin_sweep(now_ms) {
            let slots: Vec<u32> = self.table.slots().collect();
            self.slots.clear();
            for slot in slots {
                if self.expiry.is_expired(slot) {
                    self.clear(slot);
                    self.table.remove(slot);
                }
            }
            if let Some(row_keys) = &mut self.row_keys {
                row_keys.sweep();
            }
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        let slots = self.table.copy_all();
        self.copy(&slots, &mut snapshot);
        Ok(snapshot)
    }

    fn track_changes(&mut self) {
        if !self.partition_by.is_empty() {
            self.table.track_changes();
        }
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.table.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut snapshot = OperatorSnapshot::default();
        self.copy(&changed.slots, &mut snapshot);
        let vacant = |slot: u32| self.partitions[slot as usize].rows.iter().next().is_none();
        changed.mark(&mut snapshot, ROWS, &self.table, &self.encoder, vacant);
        if self.saves_partitions() {
            changed.mark(
                &mut snapshot,
                PARTITIONS,
                &self.table,
                &self.encoder,
                |_| false,
            );
        }
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        let keys = self.partition_by.len();
        for batch in state.batches(PARTITIONS) {
            let (columns, numbers) = batch.columns().split_at(keys);
            let ([counts, ends, written], _) = leading_numbers::<3>(numbers)?;
            self.encoder
                .encode(columns, batch.num_rows(), &mut self.keys)?;
            self.table
                .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
            self.partitions
                .resize(self.table.slot_bound(), Partition::default());
            for (i, slot) in self.slots.iter().enumerate() {
                let partition = &mut self.partitions[*slot as usize];
                partition.count = counts.value(i).unsigned_abs();
                partition.end = ends.is_valid(i).then(|| ends.value(i).unsigned_abs());
            }
            self.expiry.load(&self.slots, written);
        }
        for batch in state.batches(ROWS) {
            let rows = &batch.columns()[keys..];
            check_columns(rows, &self.types)?;
            self.begin(rows, batch.num_rows())?;
            self.encode(rows, None)?;
            for i in 0..batch.num_rows() {
                let partition = &mut self.partitions[self.slots[i] as usize];
                let (sort, row) = (self.sorts.bytes(i), self.rows.bytes(i));
                let at = partition.rows.upper_bound(&self.core.store, sort);
                let (_, entry) =
                    self.core
                        .insert(&mut partition.rows, at, &NewRow { i, sort, row });
                if let Some(row_keys) = &mut self.row_keys {
                    row_keys.put(i, entry);
                }
            }
            self.core.forget_all();
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        let partitions = self.partitions.iter().map(|p| p.rows.memory_size());
        let row_keys = self.row_keys.as_ref().map_or(0, RowKeys::memory_size);
        StateSize {
            rows: self.core.store.len().max(self.table.len()),
            bytes: self.table.memory_size()
                + self.core.store.memory_size()
                + self.expiry.memory_size()
                + self.partitions.capacity() * size_of::<Partition>()
                + partitions.sum::<usize>()
                + row_keys,
        }
    }
}

#[cfg(test)]
mod tests;
