//! Rows in the order of time.

mod copy;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray, RecordBatch, UInt64Array};
use arrow::compute::{interleave, take};
use arrow::datatypes::SchemaRef;

use super::lag::{Lags, in_order};
use super::{OverAggregateSpec, OverCall, OverFrame, OverOrder, aggregates};
use crate::aggregates::{AggregateCall, AggregateSet, SetInput};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::operators::expiry::Expiry;
use crate::operators::time::{rowtime, rowtimes};
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::DataType;

/// The operator. State: rows that wait, aggregates of each partition, and the rows of bounded frames.
#[derive(Debug)]
pub(super) struct TimedOver {
    rowtime: Option<usize>,
    frame: OverFrame,
    calls: Vec<OverCall>,
    partition_by: Vec<usize>,
    types: Vec<DataType>,
    /// The columns that aggregates read.
    read: Vec<usize>,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    /// By partition.
    partitions: Vec<Partition>,
    set: AggregateSet,
    lags: Lags,
    codec: Arc<RowCodec>,
    store: RowStore,
    /// Rows that wait, by time: partition and row, in the order of their arrival. Rows of one time go
    /// together, so the place of one stays the same.
    waiting: BTreeMap<i64, Vec<(u32, RowId)>>,
    /// When to look whether a partition can be forgotten.
    cleanups: BTreeSet<(i64, u32)>,
    expiry: Expiry,
    watermark: i64,
    /// Schema of the input, and of the output.
    input: SchemaRef,
    schema: SchemaRef,
    context: OperatorContext,
    keys: EncodedKeys,
    encoded: EncodedRows,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Partition {
    /// Rows in a bounded frame, oldest first.
    frame: VecDeque<(i64, RowId)>,
    /// Rows are late up to this time.
    done: i64,
    /// When to look whether everything can be forgotten: at the last of these times it can.
    cleanups: VecDeque<i64>,
    /// Rows that wait.
    waiting: usize,
    /// Whether aggregates hold anything.
    used: bool,
}

impl Default for Partition {
    fn default() -> Self {
        Self {
            frame: VecDeque::new(),
            done: i64::MIN,
            cleanups: VecDeque::new(),
            waiting: 0,
            used: false,
        }
    }
}

/// Rows to be evaluated together, in order.
#[derive(Debug, Default)]
struct DueRows {
    keys: Vec<u32>,
    times: Vec<i64>,
    ids: Vec<RowId>,
}

fn columns_read(calls: &[AggregateCall]) -> Vec<usize> {
    let used = calls
        .iter()
        .flat_map(|c| c.args.iter().copied().chain(c.filter));
    let mut read: Vec<usize> = used.collect();
    read.sort_unstable();
    read.dedup();
    read
}

impl TimedOver {
    pub(super) fn new(spec: &OverAggregateSpec, context: &OperatorContext) -> Result<Self> {
        let types = spec.input.types();
        let encoder = KeyEncoder::new(&spec.input.project(&spec.partition_by).types())?;
        let calls = aggregates(spec)?;
        let bounded = !matches!(spec.frame, OverFrame::Rows(None) | OverFrame::Range(None));
        let lags = Lags::new(spec)?;
        if bounded && !lags.is_empty() {
            return Err(Error::internal("LAG has no frame"));
        }
        Ok(Self {
            rowtime: match spec.order_by {
                OverOrder::Rowtime(column) => Some(column),
                _ => None,
            },
            frame: spec.frame,
            calls: spec.calls.clone(),
            partition_by: spec.partition_by.clone(),
            read: columns_read(&calls),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            partitions: Vec::new(),
            set: AggregateSet::new(&calls, bounded)?,
            lags,
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            store: RowStore::default(),
            waiting: BTreeMap::new(),
            cleanups: BTreeSet::new(),
            // A range of time forgets by itself.
            expiry: match spec.frame {
                OverFrame::Range(Some(_)) => Expiry::new(None, &context.clock),
                _ => Expiry::new(spec.ttl_ms, &context.clock),
            },
            watermark: i64::MIN,
            input: spec.input.to_arrow(),
            schema: spec.output.to_arrow(),
            context: context.clone(),
            keys: EncodedKeys::default(),
            encoded: EncodedRows::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    fn is_bounded(&self) -> bool {
        !matches!(self.frame, OverFrame::Rows(None) | OverFrame::Range(None))
    }

    fn intern(&mut self, keys: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(keys, len, &mut self.keys)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)?;
        let bound = self.table.slot_bound();
        self.partitions.resize(bound, Partition::default());
        self.set.resize(bound.max(1));
        self.expiry.begin(bound);
        Ok(())
    }

    fn begin(&mut self, rows: &RecordBatch) -> Result<()> {
        let keys = self.partition_by.iter();
        let keys: Vec<_> = keys.map(|c| rows.column(*c)).cloned().collect();
        self.intern(&keys, rows.num_rows())
    }

    /// Lets row `i` of the batch wait at `time`.
    fn wait(&mut self, i: usize, time: i64) {
        let key = self.slots[i];
        let row = self.store.insert(self.encoded.bytes(i));
        self.waiting.entry(time).or_default().push((key, row));
        let partition = &mut self.partitions[key as usize];
        partition.waiting += 1;
        if let OverFrame::Range(Some(preceding)) = self.frame {
            // As in Flink: a partition without new rows is forgotten after the frame and a half.
            let at_least = time.saturating_add(preceding).saturating_add(1);
            if partition
                .cleanups
                .back()
                .is_none_or(|last| *last < at_least)
            {
                let cleanup = at_least.saturating_add(preceding / 2);
                partition.cleanups.push_back(cleanup);
                self.cleanups.insert((cleanup, key));
            }
        }
    }

    /// Makes a partition as if it had never had a row.
    fn clear(&mut self, key: u32) {
        let partition = std::mem::take(&mut self.partitions[key as usize]);
        for (_, id) in partition.frame {
            self.store.remove(id);
        }
        self.set.clear(key);
        self.lags.clear(key);
    }

    fn forget(&mut self, key: u32) {
        self.clear(key);
        self.table.remove(key);
    }

    /// Forgets partitions of the batch that have expired, and notes that the others are in use.
    fn renew(&mut self) {
        if !self.expiry.is_on() {
            return;
        }
        let slots = std::mem::take(&mut self.slots);
        for key in &slots {
            if self.expiry.is_expired(*key) && self.partitions[*key as usize].waiting == 0 {
                self.clear(*key);
            }
            self.expiry.touch(*key);
        }
        self.slots = slots;
    }

    /// Takes the rows of one time, partition by partition, into `due`.
    fn collect(&mut self, time: i64, rows: Vec<(u32, RowId)>, due: &mut DueRows) {
        let mut order: Vec<u32> = Vec::new();
        let mut first: HashMap<u32, usize, foldhash::fast::FixedState> = HashMap::default();
        for (key, _) in &rows {
            first.entry(*key).or_insert_with(|| {
                order.push(*key);
                order.len() - 1
            });
            self.table.touch(*key);
            let partition = &mut self.partitions[*key as usize];
            partition.waiting -= 1;
            partition.done = time;
        }
        let mut rows = rows;
        rows.sort_by_key(|(key, _)| first[key]);
        for (key, id) in rows {
            due.keys.push(key);
            due.times.push(time);
            due.ids.push(id);
        }
    }

    /// Emits the rows that wait up to `until`.
    fn fire(&mut self, until: i64, out: &mut Output<'_>) -> Result<()> {
        let mut due = DueRows::default();
        loop {
            let rows = self.waiting.first_key_value().map(|(time, _)| *time);
            let cleanup = self.cleanups.first().map(|(time, _)| *time);
            match (rows, cleanup) {
                (Some(time), cleanup) if time <= until && cleanup.is_none_or(|c| time <= c) => {
                    let (_, rows) = self.waiting.pop_first().expect("it was there");
                    self.collect(time, rows, &mut due);
                    if due.ids.len() >= self.context.batch_size {
                        self.emit(&mut due, out)?;
                    }
                }
                (_, Some(time)) if time <= until => {
                    let (_, key) = self.cleanups.pop_first().expect("it was there");
                    if !self.table.is_live(key) {
                        continue;
                    }
                    self.table.touch(key);
                    let partition = &mut self.partitions[key as usize];
                    if partition.cleanups.back().is_some_and(|last| *last <= time) {
                        self.emit(&mut due, out)?;
                        self.forget(key);
                    } else {
                        partition.cleanups.pop_front();
                        partition.done = time;
                    }
                }
                _ => break,
            }
        }
        self.emit(&mut due, out)
    }

    fn emit(&mut self, due: &mut DueRows, out: &mut Output<'_>) -> Result<()> {
        if due.ids.is_empty() {
            return Ok(());
        }
        let due = std::mem::take(due);
        let columns = self.store.decode(&self.codec, due.ids.iter().copied())?;
        let rows = RecordBatch::try_new(Arc::clone(&self.input), columns)?;
        self.evaluate(&rows, &due, out)?;
        if !self.is_bounded() {
            for id in due.ids {
                self.store.remove(id);
            }
        }
        Ok(())
    }

    /// Computes the results of rows, which are in order, and emits them.
    fn evaluate(&mut self, rows: &RecordBatch, due: &DueRows, out: &mut Output<'_>) -> Result<()> {
        let len = rows.num_rows();
        let mut steps = Steps::default();
        let mut last_of_group: Vec<usize> = Vec::with_capacity(len);
        let in_batch: HashMap<RowId, usize, foldhash::fast::FixedState> = match self.is_bounded() {
            true => due.ids.iter().enumerate().map(|(i, id)| (*id, i)).collect(),
            false => HashMap::default(),
        };
        let mut start = 0;
        while start < len {
            let end = self.group_end(due, start, len);
            for row in start..end {
                last_of_group.push(if matches!(self.frame, OverFrame::Rows(_)) {
                    row
                } else {
                    end - 1
                });
            }
            let key = due.keys[start];
            let partition = &mut self.partitions[key as usize];
            partition.used = true;
            if let OverFrame::Range(Some(preceding)) = self.frame {
                let oldest = due.times[start].saturating_sub(preceding);
                while partition
                    .frame
                    .front()
                    .is_some_and(|(time, _)| *time < oldest)
                {
                    let (_, id) = partition.frame.pop_front().expect("it was there");
                    steps.withdraw(key, id, in_batch.get(&id).copied());
                }
            }
            for row in start..end {
                match self.frame {
                    OverFrame::Rows(Some(preceding)) => {
                        partition.frame.push_back((due.times[row], due.ids[row]));
                        if partition.frame.len() as u64 > preceding.saturating_add(1) {
                            let (_, id) = partition.frame.pop_front().expect("it was pushed");
                            steps.withdraw(key, id, in_batch.get(&id).copied());
                        }
                    }
                    OverFrame::Range(Some(_)) => {
                        partition.frame.push_back((due.times[row], due.ids[row]));
                    }
                    _ => {}
                }
                steps.add(key, row);
            }
            start = end;
        }
        let results = self.trace(rows, &steps, &last_of_group)?;
        let lags = self.lags.evaluate(rows, &due.keys, &last_of_group)?;
        for id in steps.withdrawn {
            self.store.remove(id);
        }
        let mut columns = rows.columns().to_vec();
        columns.extend(in_order(&self.calls, results, lags)?);
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.emit(ChangeBatch::inserts(rows))
    }

    /// The end of the rows from `start` on whose results belong together.
    fn group_end(&self, due: &DueRows, start: usize, len: usize) -> usize {
        let by_time = self.rowtime.is_some() || self.is_bounded();
        if matches!(self.frame, OverFrame::Rows(_)) || !by_time {
            return start + 1;
        }
        let group = (due.keys[start], due.times[start]);
        let same = (start..len).take_while(|i| (due.keys[*i], due.times[*i]) == group);
        start + same.count()
    }

    /// Runs the steps. Row `i` has the results after row `until[i]` was added.
    fn trace(
        &mut self,
        rows: &RecordBatch,
        steps: &Steps,
        until: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        if self.set.is_empty() {
            return Ok(Vec::new());
        }
        let len = steps.slots.len();
        let columns = if steps.withdrawn.is_empty() {
            rows.columns().to_vec()
        } else {
            let old: Vec<RowId> = steps.stored.clone();
            let old = self.store.decode(&self.codec, old)?;
            let unread: ArrayRef = Arc::new(NullArray::new(len));
            let mut columns = vec![unread; rows.num_columns()];
            for column in &self.read {
                let sources = [rows.column(*column).as_ref(), old[*column].as_ref()];
                columns[*column] = interleave(&sources, &steps.sources)?;
            }
            columns
        };
        let mut changed = vec![false; len];
        let input = SetInput {
            slots: &steps.slots,
            weights: (!steps.withdrawn.is_empty()).then_some(&steps.weights),
            ends: None,
            columns: &columns,
        };
        let traced = self.set.trace(&input, &mut changed)?;
        let after = |row: &usize| 2 * steps.step_of_row[*row] as u64 + 1;
        let places = UInt64Array::from_iter_values(until.iter().map(after));
        let results = traced.iter().map(|values| take(values, &places, None));
        Ok(results.collect::<std::result::Result<_, _>>()?)
    }

    /// Drops partitions of the batch that hold nothing.
    fn finish(&mut self) {
        for i in &self.fresh {
            let key = self.slots[*i as usize];
            let partition = &self.partitions[key as usize];
            if !partition.used && partition.waiting == 0 && self.table.is_live(key) {
                self.table.remove(key);
            }
        }
    }
}

/// Rows that come and go, in order.
#[derive(Debug, Default)]
struct Steps {
    slots: Vec<u32>,
    weights: Vec<i8>,
    /// Where the row of a step is: row of the batch, or of `stored`.
    sources: Vec<(usize, usize)>,
    stored: Vec<RowId>,
    withdrawn: Vec<RowId>,
    /// The step that adds a row.
    step_of_row: Vec<usize>,
}

impl Steps {
    fn add(&mut self, slot: u32, row: usize) {
        self.step_of_row.push(self.slots.len());
        self.slots.push(slot);
        self.weights.push(1);
        self.sources.push((0, row));
    }

    fn withdraw(&mut self, slot: u32, id: RowId, row: Option<usize>) {
        self.slots.push(slot);
        self.weights.push(-1);
        self.withdrawn.push(id);
        self.sources.push(match row {
            Some(row) => (0, row),
            None => {
                self.stored.push(id);
                (1, self.stored.len() - 1)
            }
        });
    }
}

impl Operator for TimedOver {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let rows = batch.rows();
        self.begin(rows)?;
        self.renew();
        let waits = self.rowtime.is_some() || matches!(self.frame, OverFrame::Range(Some(_)));
        if waits || self.is_bounded() {
            self.codec
                .encode(rows.columns(), rows.num_rows(), &mut self.encoded)?;
        }
        if let Some(column) = self.rowtime {
            let times = rowtimes(rows, column)?;
            for i in 0..rows.num_rows() {
                let Some(time) = rowtime(times, i, &self.context.metrics) else {
                    continue;
                };
                let done = match self.is_bounded() {
                    true => self.partitions[self.slots[i] as usize].done,
                    false => self.watermark,
                };
                if time <= done && done != i64::MIN {
                    self.context.metrics.late_records_dropped.add(1);
                } else {
                    self.wait(i, time);
                }
            }
            self.finish();
            return Ok(());
        }
        let now = self.context.clock.now_ms();
        if waits {
            for i in 0..rows.num_rows() {
                self.wait(i, now);
            }
            return Ok(());
        }
        let ids = match self.is_bounded() {
            true => (0..rows.num_rows())
                .map(|i| self.store.insert(self.encoded.bytes(i)))
                .collect(),
            false => Vec::new(),
        };
        let due = DueRows {
            keys: std::mem::take(&mut self.slots),
            times: vec![now; rows.num_rows()],
            ids,
        };
        self.evaluate(rows, &due, out)
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        if self.rowtime.is_some() {
            self.fire(watermark, out)?;
        }
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        let expiry = self.expiry.next_timer();
        if self.rowtime.is_some() {
            return expiry;
        }
        let rows = self.waiting.first_key_value().map(|(time, _)| *time);
        let cleanup = self.cleanups.first().map(|(time, _)| *time);
        let next = rows.into_iter().chain(cleanup).min();
        let next = next.map(|time| time.saturating_add(1));
        next.into_iter().chain(expiry).min()
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        if self.expiry.begin_sweep(now_ms) {
            let slots: Vec<u32> = self.table.slots().collect();
            for key in slots {
                if self.expiry.is_expired(key) && self.partitions[key as usize].waiting == 0 {
                    self.forget(key);
                }
            }
        }
        match self.rowtime {
            // Rows of one millisecond belong together: it must be over.
            None => self.fire(now_ms - 1, out),
            Some(_) => Ok(()),
        }
    }

    fn end_input(&mut self, _port: usize, out: &mut Output<'_>) -> Result<()> {
        match (self.rowtime, self.waiting.last_key_value()) {
            (None, Some((time, _))) => self.fire(*time, out),
            _ => Ok(()),
        }
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let slots = self.table.copy_all();
        self.copy(&slots)
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
        let mut snapshot = self.copy(&changed.slots)?;
        self.mark(&changed, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.take_up(&state)
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.store.len().max(self.table.len()),
            bytes: self.table.memory_size()
                + self.store.memory_size()
                + self.set.memory_size()
                + self.lags.memory_size()
                + self.partitions.capacity() * size_of::<Partition>()
                + self.store.len() * size_of::<(i64, RowId)>(),
        }
    }
}
