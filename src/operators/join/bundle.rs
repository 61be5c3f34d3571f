//! Mini-batch: rows of both sides are gathered and folded before they are joined.
//!
//! As in Flink's `MiniBatchStreamingJoinOperator`: a row and its withdrawal cancel each other; of a
//! side with a unique key at most one withdrawal and one row of each key are left, which then replace
//! each other without a row of NULLs in between. The right side goes first, but in a right join; the
//! rows of a side follow the order of Flink's maps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::concat_batches;
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::{JoinInput, UniqueKey};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::state::binary_row::{self, BinaryRowCodec, BinaryRows};
use crate::state::java_map::Buckets;

/// How rows are bundled: `table.exec.mini-batch.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleLimits {
    /// Rows of both sides that make a bundle.
    pub size: usize,
    /// How long a row may wait, ms.
    pub latency_ms: i64,
}

/// The rows of one side that wait.
#[derive(Debug)]
struct Waiting {
    batches: Vec<ChangeBatch>,
    unique_key: UniqueKey,
    rows: BinaryRowCodec,
    /// The columns of the join key, and their codec.
    keys: Vec<usize>,
    key_codec: BinaryRowCodec,
    /// [`JoinInput::updates_in_pairs`].
    updates_in_pairs: bool,
    begun: bool,
    /// Of Flink's map from join keys, which stays as large as it was.
    buckets: Buckets,
}

/// The bundle that a join is gathering.
#[derive(Debug)]
pub(super) struct Bundle {
    limits: BundleLimits,
    sides: [Waiting; 2],
    len: usize,
    /// When the rows have waited long enough.
    pub(super) deadline: Option<i64>,
}

/// A side's rows, folded.
pub(super) struct Folded {
    pub(super) batch: ChangeBatch,
    /// Set for a withdrawal whose row is replaced by the next one.
    pub(super) replaced: Vec<bool>,
}

/// A join key in a bundle.
struct Key {
    row: u32,
    hash: u32,
    /// Number of its coming into the map.
    number: u32,
    records: u32,
}

/// A record of a join key: a row, or what has a unique key.
struct Record {
    row: u32,
    key: u32,
    hash: u32,
    number: u32,
    /// Rows that are left.
    pending: SmallVec<[u32; 2]>,
}

impl Bundle {
    pub(super) fn new(limits: BundleLimits, inputs: [&JoinInput; 2]) -> Self {
        let waiting = |input: &JoinInput| Waiting {
            batches: Vec::new(),
            unique_key: input.unique_key.clone(),
            rows: BinaryRowCodec::new(&input.schema.types()),
            keys: input.keys.clone(),
            key_codec: BinaryRowCodec::new(&input.schema.project(&input.keys).types()),
            updates_in_pairs: input.updates_in_pairs,
            begun: false,
            buckets: Buckets::default(),
        };
        Self {
            limits,
            sides: inputs.map(waiting),
            len: 0,
            deadline: None,
        }
    }

    /// Whether a port gets its first row: in Flink the marker of the port's first mini-batch comes
    /// before it and ends what was gathered of the other.
    pub(super) fn begins(&mut self, port: usize) -> bool {
        !std::mem::replace(&mut self.sides[port].begun, true)
    }

    /// Adds as many rows as there is room for; the rest comes back if the bundle is full.
    pub(super) fn add(
        &mut self,
        port: usize,
        batch: &ChangeBatch,
        now: i64,
    ) -> Option<ChangeBatch> {
        let room = self.limits.size.max(1) - self.len;
        let taken = batch.len().min(room);
        if taken > 0 {
            self.sides[port].batches.push(batch.slice(0, taken));
            self.len += taken;
            let deadline = now.saturating_add(self.limits.latency_ms);
            self.deadline.get_or_insert(deadline);
        }
        (taken == room).then(|| batch.slice(taken, batch.len() - taken))
    }

    /// The rows of one side, folded, if there are any; they are gone from the bundle.
    pub(super) fn take(&mut self, port: usize) -> Result<Option<Folded>> {
        let side = &mut self.sides[port];
        let batches = std::mem::take(&mut side.batches);
        self.len -= batches.iter().map(ChangeBatch::len).sum::<usize>();
        if self.len == 0 {
            self.deadline = None;
        }
        let Some(first) = batches.first() else {
            return Ok(None);
        };
        let rows = concat_batches(&first.schema(), batches.iter().map(ChangeBatch::rows))?;
        let kinds: Vec<RowKind> = batches.iter().flat_map(ChangeBatch::kinds).collect();
        side.fold(rows, kinds).map(Some)
    }

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        let batches = self.sides.iter().flat_map(|side| &side.batches);
        batches.map(ChangeBatch::memory_size).sum()
    }
}

impl Waiting {
    fn fold(&mut self, batch: RecordBatch, kinds: Vec<RowKind>) -> Result<Folded> {
        let columns: Vec<ArrayRef> = self
            .keys
            .iter()
            .map(|c| Arc::clone(batch.column(*c)))
            .collect();
        let (mut keys, mut rows) = (BinaryRows::default(), BinaryRows::default());
        self.key_codec
            .encode(&columns, batch.num_rows(), &mut keys)?;
        self.rows
            .encode(batch.columns(), batch.num_rows(), &mut rows)?;
        let nulls = columns.iter().fold(None, |nulls, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        let (found_keys, records) = self.records(&keys, &rows, nulls.as_ref(), &kinds);
        let mut order: Vec<&Record> = records.iter().filter(|r| !r.pending.is_empty()).collect();
        let live = found_keys.iter().filter(|key| key.records > 0).count();
        self.buckets.grow(live);
        let mut outer = self.buckets;
        if matches!(self.unique_key, UniqueKey::None) {
            // These keys are put into a new map once more.
            outer = Buckets::default();
            outer.grow(live);
        }
        order.sort_by_cached_key(|record| {
            let key = &found_keys[record.key as usize];
            let mut inner = Buckets::default();
            inner.grow(key.records as usize);
            (
                outer.of(key.hash),
                self.buckets.of(key.hash),
                key.number,
                inner.of(record.hash),
                record.number,
            )
        });
        let mut indices = Vec::with_capacity(order.len());
        let mut replaced = Vec::with_capacity(order.len());
        for record in order {
            for (i, row) in record.pending.iter().enumerate() {
                indices.push(*row);
                let unique = !matches!(self.unique_key, UniqueKey::None);
                replaced.push(unique && i + 1 < record.pending.len());
            }
        }
        let batch = ChangeBatch::try_new(batch, kinds)?;
        Ok(Folded {
            batch: batch.take(&UInt32Array::from(indices))?,
            replaced,
        })
    }

    /// The join keys and their records, with the rows that are left of each.
    fn records(
        &self,
        key_rows: &BinaryRows,
        rows: &BinaryRows,
        null_keys: Option<&NullBuffer>,
        kinds: &[RowKind],
    ) -> (Vec<Key>, Vec<Record>) {
        let (mut keys, mut records): (Vec<Key>, Vec<Record>) = (Vec::new(), Vec::new());
        let mut key_table: HashTable<u32> = HashTable::new();
        let mut record_table: HashTable<u32> = HashTable::new();
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        for (row, at) in (0..).zip(0..kinds.len()) {
            let key_hash = binary_row::hash(key_rows.get(at));
            let same_key =
                |key: &u32| key_rows.get(keys[*key as usize].row as usize) == key_rows.get(at);
            let key = match key_table.find(spread(key_hash), same_key) {
                Some(key) => *key,
                None => {
                    let key = number(keys.len());
                    keys.push(Key {
                        row,
                        hash: key_hash,
                        number: row,
                        records: 0,
                    });
                    key_table
                        .insert_unique(spread(key_hash), key, |k| spread(keys[*k as usize].hash));
                    key
                }
            };
            let hash = match &self.unique_key {
                UniqueKey::None => binary_row::hash(rows.get(at)),
                UniqueKey::Columns(columns) => {
                    self.rows.project(rows.get(at), columns, &mut wanted);
                    binary_row::hash(&wanted)
                }
                UniqueKey::JoinKey => 0,
            };
            let both = spread(hash ^ key_hash.rotate_left(16));
            let same_record = |record: &u32| {
                let record = &records[*record as usize];
                record.key == key
                    && record.hash == hash
                    && match &self.unique_key {
                        UniqueKey::None => rows.get(record.row as usize) == rows.get(at),
                        UniqueKey::Columns(columns) => {
                            let known = rows.get(record.row as usize);
                            self.rows.project(known, columns, &mut found);
                            found == wanted
                        }
                        UniqueKey::JoinKey => true,
                    }
            };
            let record = match record_table.find(both, same_record) {
                Some(record) => *record,
                None => {
                    let record = number(records.len());
                    records.push(Record {
                        row,
                        key,
                        hash,
                        number: row,
                        pending: SmallVec::new(),
                    });
                    record_table.insert_unique(both, record, |r| {
                        let record = &records[*r as usize];
                        spread(record.hash ^ keys[record.key as usize].hash.rotate_left(16))
                    });
                    record
                }
            };
            let record = &mut records[record as usize];
            let key = &mut keys[key as usize];
            let before = record.pending.is_empty();
            let null_key = null_keys.is_some_and(|nulls| nulls.is_null(at));
            self.put(&mut record.pending, row, null_key, kinds);
            match (before, record.pending.is_empty()) {
                (true, false) => {
                    record.number = row;
                    if key.records == 0 {
                        key.number = row;
                    }
                    key.records += 1;
                }
                (false, true) => key.records -= 1,
                _ => {}
            }
        }
        (keys, records)
    }

    /// Adds a row to those that are left of its record.
    fn put(&self, pending: &mut SmallVec<[u32; 2]>, row: u32, null_key: bool, kinds: &[RowKind]) {
        let kind = kinds[row as usize];
        let is_add = |row: u32| kinds[row as usize].is_add();
        if matches!(self.unique_key, UniqueKey::None) {
            // All that is left has one sign.
            if pending
                .last()
                .is_some_and(|last| is_add(*last) != kind.is_add())
            {
                pending.pop();
            } else {
                pending.push(row);
            }
            return;
        }
        match pending.last().map(|last| is_add(*last)) {
            Some(true) => {
                let last = pending.pop();
                let replaced = pending.is_empty() && !self.updates_in_pairs;
                // The row may have replaced one in state, which is withdrawn then. A row whose key is
                // NULL is not in state: it is taken at its word.
                let update = |row: u32| kinds[row as usize] == RowKind::UpdateAfter;
                if kind.is_add() || replaced && (!null_key || last.is_some_and(update)) {
                    pending.push(row);
                }
            }
            Some(false) if !kind.is_add() => {
                pending.pop();
                pending.push(row);
            }
            _ => pending.push(row),
        }
    }
}

fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("a bundle has fewer than 2^32 rows")
}
