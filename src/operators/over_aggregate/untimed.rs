//! Rows in the order of columns that are not time: a row that comes or goes updates the results of
//! those behind it.
//!
//! Each group of rows that share a result (`ROWS`: one row; `RANGE`: all rows of a sort key) has a
//! slot of aggregates over all rows up to it. A change recomputes the groups from there on, each from
//! the one before, until nothing changes any more. With `ROWS n PRECEDING` a row's aggregates are over
//! its own frame, and a change recomputes the frames that it lies in.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::SchemaRef;

use super::{OverAggregateSpec, OverCall, OverFrame, aggregates, count, unsupported};
use crate::aggregates::{AggregateKind, AggregateSet, SetInput};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::operators::changes::{Changes, Place};
use crate::operators::expiry::Expiry;
use crate::operators::last_rows::{SNAPSHOT_ROWS, anonymous_batch, leading_numbers};
use crate::operators::rank::SortColumn;
use crate::operators::rank::sorted_rows::{Entry, Position, SortedRows};
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyBytes, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowStore, check_columns};
use crate::state::snapshot::{LazyBatch, OperatorSnapshot, RestoreState};
use crate::types::DataType;

/// The table of a snapshot.
const TABLE: &str = "rows";

/// The operator. State: all rows, and the aggregates up to each group.
#[derive(Debug)]
pub(super) struct UntimedOver {
    by_rows: bool,
    /// `ROWS n PRECEDING`.
    preceding: Option<usize>,
    partition_by: Vec<usize>,
    order_by: Vec<usize>,
    types: Vec<DataType>,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    partitions: Vec<SortedRows>,
    expiry: Expiry,
    sort_codec: RowCodec,
    codec: Arc<RowCodec>,
    store: RowStore,
    groups: Groups,
    results: Results,
    schema: SchemaRef,
    context: OperatorContext,
    keys: EncodedKeys,
    sorts: EncodedRows,
    rows: EncodedRows,
    slots: Vec<u32>,
    fresh: Vec<u32>,
    scratch: Vec<u8>,
}

/// The aggregates up to each group.
#[derive(Debug)]
struct Groups {
    set: AggregateSet,
    /// The first of the set's columns are results; the rest tell whether anything has changed.
    results: usize,
    /// Whether groups behind one that has not changed cannot have changed either.
    stops: bool,
    /// The group of each row, by row id.
    of_row: Vec<u32>,
    made: u32,
    free: Vec<u32>,
}

/// The rows to emit.
#[derive(Debug)]
struct Results {
    changes: Changes,
    /// Result columns, one row each.
    versions: Vec<Vec<ArrayRef>>,
    /// The version of each row to emit.
    version_of: Vec<u32>,
}

impl Groups {
    fn make(&mut self) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        });
        self.set.resize(self.made as usize);
        slot
    }

    fn release(&mut self, slot: u32) {
        self.set.clear(slot);
        self.free.push(slot);
    }

    fn of(&self, entry: Entry) -> u32 {
        self.of_row[entry.id.0 as usize]
    }

    fn assign(&mut self, entry: Entry, slot: u32) {
        let id = entry.id.0 as usize;
        if self.of_row.len() <= id {
            self.of_row.resize(id + 1, 0);
        }
        self.of_row[id] = slot;
    }

    /// Makes `slot` the aggregates of `before` and then `rows`.
    fn compute(&mut self, slot: u32, before: Option<u32>, rows: &[ArrayRef]) -> Result<()> {
        self.set.clear(slot);
        if let Some(before) = before {
            self.set.merge(slot, before)?;
        }
        let len = rows.first().map_or(0, Array::len);
        self.set.update(&SetInput {
            slots: &vec![slot; len],
            weights: None,
            ends: None,
            columns: rows,
        })
    }
}

impl Results {
    /// Takes a version of the results: the first columns of a group's values.
    fn version(&mut self, values: &[ArrayRef], results: usize) -> u32 {
        self.versions.push(values[..results].to_vec());
        u32::try_from(self.versions.len() - 1).expect("fewer than 2^32 results")
    }

    fn push(&mut self, kind: RowKind, place: Place, version: u32) {
        self.changes.push(kind, place);
        self.version_of.push(version);
    }
}

fn same(a: &[ArrayRef], b: &[ArrayRef]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_data() == b.to_data())
}

/// What to recompute a group for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    Nothing,
    /// Row at this place in the group has come with this kind, and is this row of the input.
    Came(usize, RowKind, usize),
    /// The row at this place in the group goes.
    Gone(usize),
}

impl UntimedOver {
    pub(super) fn new(
        spec: &OverAggregateSpec,
        order_by: &[SortColumn],
        context: &OperatorContext,
    ) -> Result<Self> {
        let (by_rows, preceding) = match spec.frame {
            OverFrame::Rows(n) => (true, n),
            OverFrame::Range(None) => (false, None),
            OverFrame::Range(Some(_)) => return Err(unsupported("A bounded range")),
        };
        if spec.calls.iter().any(|c| matches!(c, OverCall::Lag { .. })) {
            return Err(unsupported("LAG"));
        }
        let types = spec.input.types();
        let encoder = KeyEncoder::new(&spec.input.project(&spec.partition_by).types())?;
        let sort = order_by.iter();
        let sort_codec = RowCodec::sorted(sort.map(|s| (&types[s.column], s.options())))?;
        let mut calls = aggregates(spec)?;
        let results = calls.len();
        let stops = calls.iter().all(|call| {
            !call.distinct
                && matches!(
                    call.function.kind(),
                    AggregateKind::Count
                        | AggregateKind::Sum
                        | AggregateKind::Sum0
                        | AggregateKind::Avg
                        | AggregateKind::Min
                        | AggregateKind::Max
                        | AggregateKind::FirstValue
                        | AggregateKind::LastValue
                )
        });
        for i in 0..results {
            // As in Flink, one more value is a change for a sum or a mean even if it is the same.
            let counted = matches!(
                calls[i].function.kind(),
                AggregateKind::Sum
                    | AggregateKind::Sum0
                    | AggregateKind::Avg
                    | AggregateKind::Variance(_)
            );
            if counted && !calls[i].distinct {
                let call = count(spec, &calls[i].args, calls[i].filter)?;
                calls.push(call);
            }
        }
        let rows_schema = spec.input.to_arrow();
        Ok(Self {
            by_rows,
            preceding: preceding.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            partition_by: spec.partition_by.clone(),
            order_by: order_by.iter().map(|s| s.column).collect(),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            partitions: Vec::new(),
            expiry: Expiry::new(spec.ttl_ms, &context.clock),
            sort_codec,
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            store: RowStore::default(),
            groups: Groups {
                set: AggregateSet::new(&calls, false)?,
                results,
                stops,
                of_row: Vec::new(),
                made: 0,
                free: Vec::new(),
            },
            results: Results {
                changes: Changes::new(rows_schema),
                versions: Vec::new(),
                version_of: Vec::new(),
            },
            schema: spec.output.to_arrow(),
            context: context.clone(),
            keys: EncodedKeys::default(),
            sorts: EncodedRows::default(),
            rows: EncodedRows::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
            scratch: Vec::new(),
        })
    }

    fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        let select = |indices: &[usize]| -> Vec<ArrayRef> {
            indices.iter().map(|c| Arc::clone(&columns[*c])).collect()
        };
        self.encoder
            .encode(&select(&self.partition_by), len, &mut self.keys)?;
        self.sort_codec
            .encode(&select(&self.order_by), len, &mut self.sorts)?;
        self.codec.encode(columns, len, &mut self.rows)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        self.partitions
            .resize(self.table.slot_bound(), SortedRows::default());
        self.expiry.begin(self.table.slot_bound());
        Ok(())
    }

    /// Forgets the rows of a partition.
    fn clear(&mut self, slot: u32) {
        let rows = std::mem::take(&mut self.partitions[slot as usize]);
        let mut last = None;
        for entry in rows.iter() {
            let group = self.groups.of(entry);
            if last != Some(group) {
                self.groups.release(group);
                last = Some(group);
            }
            self.store.remove(entry.id);
        }
    }

    fn insert(&mut self, i: usize) -> (Position, Entry) {
        let sort = self.sorts.bytes(i);
        self.scratch.clear();
        self.scratch.extend_from_slice(sort);
        self.scratch.extend_from_slice(self.rows.bytes(i));
        let partition = &mut self.partitions[self.slots[i] as usize];
        let at = partition.upper_bound(&self.store, sort);
        let entry = Entry::new(self.store.insert(&self.scratch), sort);
        (partition.insert(at, entry), entry)
    }

    /// Row `i` of the input comes.
    fn add(&mut self, i: usize, kind: RowKind) -> Result<()> {
        let slot = self.slots[i] as usize;
        let (at, entry) = self.insert(i);
        let before = self.partitions[slot].rows_before(at);
        let previous = before
            .checked_sub(1)
            .and_then(|n| self.partitions[slot].nth(n));
        let joins = !self.by_rows
            && previous.is_some_and(|p| p.sort(&self.store) == entry.sort(&self.store));
        if joins && let Some(previous) = previous {
            let group = self.groups.of(previous);
            self.groups.assign(entry, group);
            let first = self.first_of_group(slot, before, group);
            let changed = Changed::Came(before - first, kind, i);
            return self.recompute(slot, first, changed);
        }
        let group = self.groups.make();
        self.groups.assign(entry, group);
        self.recompute(slot, before, Changed::Came(0, kind, i))
    }

    /// The rank of the first row of the group that the row of rank `rank` is in.
    fn first_of_group(&self, slot: usize, rank: usize, group: u32) -> usize {
        let rows = &self.partitions[slot];
        let mut first = rank;
        while first > 0
            && rows
                .nth(first - 1)
                .is_some_and(|entry| self.groups.of(entry) == group)
        {
            first -= 1;
        }
        first
    }

    /// A row like row `i` of the input goes. Says whether there was one.
    fn withdraw(&mut self, i: usize) -> Result<bool> {
        let slot = self.slots[i] as usize;
        let (store, row) = (&self.store, self.rows.bytes(i));
        let found =
            self.partitions[slot].find(store, self.sorts.bytes(i), |entry| entry.row(store) == row);
        let Some(at) = found else {
            return Ok(false);
        };
        let rank = self.partitions[slot].rows_before(at);
        let Some(entry) = self.partitions[slot].nth(rank) else {
            return Ok(false);
        };
        let group = self.groups.of(entry);
        let first = self.first_of_group(slot, rank, group);
        self.recompute(slot, first, Changed::Gone(rank - first))?;
        Ok(true)
    }

    /// Recomputes the frames that the row of rank `first` lies in, which has come or goes.
    fn recompute_frames(
        &mut self,
        slot: usize,
        first: usize,
        changed: Changed,
        preceding: usize,
    ) -> Result<()> {
        let from = first.saturating_sub(preceding);
        let rows = self.partitions[slot].iter().skip(from);
        let mut rows: Vec<Entry> = rows
            .take((first - from).saturating_add(preceding).saturating_add(1))
            .collect();
        let mut at = first - from;
        let entry = rows[at];
        let group = self.groups.of(entry);
        let frame = |rows: &[Entry], at: usize| rows[at.saturating_sub(preceding)..at].to_vec();
        self.recompute_group(group, None, &frame(&rows, at), &[entry], changed)?;
        if let Changed::Gone(_) = changed {
            let rows_of = &mut self.partitions[slot];
            let sort = entry.sort(&self.store);
            if let Some(position) = rows_of.find(&self.store, sort, |e| e.id == entry.id) {
                rows_of.remove(position);
            }
            self.store.remove(entry.id);
            self.groups.release(group);
            rows.remove(at);
        } else {
            at += 1;
        }
        for at in at..rows.len() {
            let group = self.groups.of(rows[at]);
            let before = frame(&rows, at);
            self.recompute_group(group, None, &before, &[rows[at]], Changed::Nothing)?;
        }
        Ok(())
    }

    /// Recomputes the groups from the row of rank `first` on, of which the first has changed.
    fn recompute(&mut self, slot: usize, first: usize, changed: Changed) -> Result<()> {
        if let Some(preceding) = self.preceding {
            return self.recompute_frames(slot, first, changed, preceding);
        }
        let behind: Vec<Entry> = self.partitions[slot].iter().skip(first).collect();
        let mut before = first
            .checked_sub(1)
            .and_then(|n| self.partitions[slot].nth(n))
            .map(|entry| self.groups.of(entry));
        let mut changed = changed;
        let mut start = 0;
        while start < behind.len() {
            let group = self.groups.of(behind[start]);
            let same_group = |entry: &&Entry| self.groups.of(**entry) == group;
            let end = start + behind[start..].iter().take_while(same_group).count();
            let members = &behind[start..end];
            let first_group = changed != Changed::Nothing;
            let differs = self.recompute_group(group, before, &[], members, changed)?;
            if let Changed::Gone(at) = changed {
                let gone = members[at];
                let position =
                    self.partitions[slot]
                        .find(&self.store, gone.sort(&self.store), |e| e.id == gone.id);
                if let Some(position) = position {
                    self.partitions[slot].remove(position);
                }
                self.store.remove(gone.id);
                if members.len() == 1 {
                    self.groups.release(group);
                } else {
                    before = Some(group);
                }
            } else {
                before = Some(group);
            }
            if !differs && !first_group && self.groups.stops {
                return Ok(());
            }
            changed = Changed::Nothing;
            start = end;
        }
        Ok(())
    }

    /// Recomputes a group and adds what that changes to the output. Says whether anything differs.
    /// Its aggregates go on from those of group `before`, then the rows `frame`.
    fn recompute_group(
        &mut self,
        group: u32,
        before: Option<u32>,
        frame: &[Entry],
        members: &[Entry],
        changed: Changed,
    ) -> Result<bool> {
        let new_group = members.len() == 1 && matches!(changed, Changed::Came(..));
        let old = match new_group {
            true => None,
            false => Some(self.groups.set.values(&[group])?),
        };
        let stay: Vec<Entry> = match changed {
            Changed::Gone(at) => {
                let others = members.iter().enumerate().filter(|(i, _)| *i != at);
                others.map(|(_, entry)| *entry).collect()
            }
            _ => members.to_vec(),
        };
        let rows = frame.iter().chain(&stay);
        let rows = rows.map(|entry| entry.row(&self.store));
        let columns = self.codec.decode(rows)?;
        let new = match stay.is_empty() {
            true => None,
            false => {
                self.groups.compute(group, before, &columns)?;
                Some(self.groups.set.values(&[group])?)
            }
        };
        let differs = match (&old, &new) {
            (Some(old), Some(new)) => !same(old, new),
            _ => true,
        };
        let results = self.groups.results;
        let mut version = |values: &Option<Vec<ArrayRef>>| {
            let values = values.as_ref();
            values.map(|values| self.results.version(values, results))
        };
        let (old, new) = (version(&old), version(&new));
        for (place_in_group, entry) in members.iter().enumerate() {
            match (changed, old, new) {
                (Changed::Came(at, kind, i), _, Some(new)) if at == place_in_group => {
                    let input = Place::Input(u32::try_from(i).expect("fewer than 2^32 rows"));
                    self.results.push(kind, input, new);
                }
                (Changed::Gone(at), Some(old), _) if at == place_in_group => {
                    let place = self.results.changes.keep(entry.row(&self.store));
                    self.results.push(RowKind::Delete, place, old);
                }
                (_, Some(old), Some(new)) if differs => {
                    let place = self.results.changes.keep(entry.row(&self.store));
                    self.results.push(RowKind::UpdateBefore, place, old);
                    self.results.push(RowKind::UpdateAfter, place, new);
                }
                _ => {}
            }
        }
        Ok(differs)
    }

    fn emit(&mut self, input: &RecordBatch, out: &mut Output<'_>) -> Result<()> {
        let mut collected: Vec<ChangeBatch> = Vec::new();
        {
            let mut sink = Collect(&mut collected);
            let out = &mut Output::new(&mut sink);
            self.results.changes.emit(input, &self.codec, out)?;
        }
        let versions = std::mem::take(&mut self.results.versions);
        let version_of = UInt32Array::from(std::mem::take(&mut self.results.version_of));
        let Some(rows) = collected.pop() else {
            return Ok(());
        };
        let mut columns = rows.rows().columns().to_vec();
        for result in 0..self.groups.results {
            let parts: Vec<&dyn Array> = versions.iter().map(|v| v[result].as_ref()).collect();
            columns.push(take(&concat(&parts)?, &version_of, None)?);
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.emit(rows.with_rows(batch)?)
    }

    fn finish(&mut self) {
        for slot in &self.slots {
            if self.partitions[*slot as usize].is_empty() && self.table.is_live(*slot) {
                self.table.remove(*slot);
            }
        }
    }
}

/// Takes batches from [`Changes`], to which columns are still to be added.
struct Collect<'a>(&'a mut Vec<ChangeBatch>);

impl crate::runtime::output::Downstream for Collect<'_> {
    fn batch(&mut self, batch: ChangeBatch) -> Result<()> {
        self.0.push(batch);
        Ok(())
    }

    fn watermark(&mut self, _watermark: i64) -> Result<()> {
        Ok(())
    }

    fn status(&mut self, _status: crate::runtime::output::Status) -> Result<()> {
        Ok(())
    }
}

impl UntimedOver {
    /// Copies the partitions of slots.
    fn copy(&self, slots: &[u32], snapshot: &mut OperatorSnapshot) {
        for slots in slots.chunks(SNAPSHOT_ROWS) {
            let (mut of_row, mut rows) = (Vec::new(), KeyBytes::default());
            for slot in slots {
                for entry in self.partitions[*slot as usize].iter() {
                    of_row.push(*slot);
                    rows.push(entry.row(&self.store));
                }
            }
            let written = self.expiry.save(&of_row);
            let of_row = self.table.copy_keys(&of_row);
            let (encoder, codec) = (Arc::clone(&self.encoder), Arc::clone(&self.codec));
            let make = move || {
                let mut columns = encoder.decode(of_row.iter())?;
                columns.push(Arc::clone(&written));
                columns.extend(codec.decode(rows.iter())?);
                anonymous_batch(columns, written.len())
            };
            snapshot.add_lazy(TABLE, self.partition_by.len(), LazyBatch::new(make));
        }
    }
}

impl Operator for UntimedOver {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        self.begin(batch.rows().columns(), batch.len())?;
        for (i, kind) in batch.kinds().enumerate() {
            if self.expiry.is_on() {
                if self.expiry.is_expired(self.slots[i]) {
                    self.clear(self.slots[i]);
                }
                self.expiry.touch(self.slots[i]);
            }
            if kind.is_add() {
                self.add(i, kind)?;
            } else if !self.withdraw(i)? {
                self.context.metrics.inconsistent_dropped.add(1);
            }
            if self.results.changes.is_full() {
                self.emit(batch.rows(), out)?;
            }
        }
        self.finish();
        self.emit(batch.rows(), out)
    }

    fn next_timer(&self) -> Option<i64> {
        self.expiry.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        if self.expiry.begin_sweep(now_ms) {
            let slots: Vec<u32> = self.table.slots().collect();
            for slot in slots {
                if self.expiry.is_expired(slot) {
                    self.clear(slot);
                    self.table.remove(slot);
                }
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
        let vacant = |slot: u32| self.partitions[slot as usize].is_empty();
        changed.mark(&mut snapshot, TABLE, &self.table, &self.encoder, vacant);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        for batch in state.batches(TABLE) {
            let rest = &batch.columns()[self.partition_by.len()..];
            let ([written], rows) = leading_numbers::<1>(rest)?;
            check_columns(rows, &self.types)?;
            self.begin(rows, batch.num_rows())?;
            self.expiry.load(&self.slots, written);
            // Rows come in order: each is the last of its partition.
            for i in 0..batch.num_rows() {
                let slot = self.slots[i] as usize;
                let last = self.partitions[slot].len().checked_sub(1);
                let previous = last.and_then(|n| self.partitions[slot].nth(n));
                let (_, entry) = self.insert(i);
                let before = previous.map(|p| self.groups.of(p));
                let joins = !self.by_rows
                    && previous.is_some_and(|p| p.sort(&self.store) == entry.sort(&self.store));
                let row: Vec<ArrayRef> = rows.iter().map(|c| c.slice(i, 1)).collect();
                match before.filter(|_| joins) {
                    Some(group) => {
                        self.groups.assign(entry, group);
                        self.groups.set.update(&SetInput {
                            slots: &[group],
                            weights: None,
                            ends: None,
                            columns: &row,
                        })?;
                    }
                    None => {
                        let group = self.groups.make();
                        self.groups.assign(entry, group);
                        let Some(preceding) = self.preceding else {
                            self.groups.compute(group, before, &row)?;
                            continue;
                        };
                        let partition = &self.partitions[slot];
                        let first = partition.len().saturating_sub(preceding.saturating_add(1));
                        let frame = partition.iter().skip(first);
                        let frame = frame.map(|entry| entry.row(&self.store));
                        let columns = self.codec.decode(frame)?;
                        self.groups.compute(group, None, &columns)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        let partitions = self.partitions.iter().map(SortedRows::memory_size);
        StateSize {
            rows: self.store.len(),
            bytes: self.table.memory_size()
                + self.store.memory_size()
                + self.groups.set.memory_size()
                + partitions.sum::<usize>(),
        }
    }
}
