//! `Match`: MATCH_RECOGNIZE.
//!
//! By event time, rows wait for the watermark and are then matched in the order of their time, the
//! other ORDER BY columns and their arrival; rows that come after their watermark are dropped. By
//! processing time, rows are matched as they come, or, if there are other ORDER BY columns, when
//! the clock has left their millisecond.
//!
//! [`nfa`] says which partial matches a row continues and which matches it completes. [`history`]
//! holds the rows of partial matches, shared among them, and [`slots`] computes from these what
//! definitions and measures read.

mod history;
mod nfa;
mod slots;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, TimestampMillisecondArray, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;

use self::history::{Node, Row};
use self::nfa::{Candidate, Nfa, Partition};
use self::slots::Slots;
use super::last_rows::anonymous_batch;
use super::rank::SortColumn;
use super::time::{rowtime, rowtimes};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::expr::eval::Compiled;
use crate::plan::match_recognize::MatchSpec;
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// What is matched.
#[derive(Debug, Clone)]
pub struct MatchRecognizeSpec {
    /// Columns of the input.
    pub input: Schema,
    /// The pattern.
    pub pattern: Arc<MatchSpec>,
    /// Columns of the output.
    pub output: Schema,
}

/// The condition of a variable.
#[derive(Debug, Default)]
struct Condition {
    /// Over the input.
    row: Option<Compiled>,
    /// Over the slots.
    history: Option<Compiled>,
}

/// The operator. State: rows that wait, and the partial matches of each partition.
#[derive(Debug)]
pub struct MatchRecognize {
    spec: Arc<MatchSpec>,
    schema: SchemaRef,
    output: SchemaRef,
    /// The event-time column, or `None` for processing time.
    rowtime: Option<usize>,
    sort: Vec<usize>,
    sorts: RowCodec,
    /// Rows that wait, in batches as they came.
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    earliest: i64,
    timer: Option<i64>,
    watermark: i64,
    encoder: Arc<KeyEncoder>,
    table: KeyTable,
    /// By key slot.
    partitions: Vec<Partition>,
    nfa: Nfa,
    conditions: Vec<Condition>,
    values: Vec<Compiled>,
    codec: Arc<RowCodec>,
    slots: Slots,
    measures: Vec<Compiled>,
    /// Ends of WITHIN and the partitions in which a partial match ends then.
    deadlines: BTreeSet<(i64, u32)>,
    /// Number of the next row.
    sequence: u64,
    /// Matches to be given out: the last rows.
    found: Vec<Arc<Node>>,
    context: OperatorContext,
}

/// Batches are put together once there are more than these.
const MANY: usize = 64;

/// Rows that are due, in order, with all that is known of each by itself.
struct Due {
    rows: RecordBatch,
    encoded: EncodedRows,
    /// By variable: whether the row condition holds, if it could be told of all rows at once.
    holds: Vec<Option<BooleanArray>>,
}

impl MatchRecognize {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form or an expression cannot be compiled.
    pub fn new(spec: &MatchRecognizeSpec, context: &OperatorContext) -> Result<Self> {
        let pattern = &spec.pattern;
        let types = spec.input.types();
        let order = pattern.order.get(1..).unwrap_or_default();
        let sort: Vec<_> = order
            .iter()
            .map(|k| SortColumn {
                column: k.column,
                descending: k.descending,
                nulls_first: k.nulls_first,
            })
            .collect();
        let compile = |e: &crate::expr::Expr| Compiled::new(e, &context.environment);
        let optional = |e: &Option<crate::expr::Expr>| e.as_ref().map(compile).transpose();
        let conditions = pattern
            .variables
            .iter()
            .map(|v| {
                Ok(Condition {
                    row: optional(&v.row)?,
                    history: optional(&v.history)?,
                })
            })
            .collect::<Result<_>>()?;
        let value_types: Vec<_> = pattern.values.iter().map(|v| v.data_type.clone()).collect();
        let time = pattern.order.first().map(|k| k.column);
        let encoder = KeyEncoder::new(&spec.input.project(&pattern.partition).types())?;
        Ok(Self {
            schema: spec.input.to_arrow(),
            output: spec.output.to_arrow(),
            rowtime: time.filter(|t| spec.input.columns[*t].is_rowtime()),
            sort: sort.iter().map(|s| s.column).collect(),
            sorts: RowCodec::sorted(sort.iter().map(|s| (&types[s.column], s.options())))?,
            waiting: Vec::new(),
            waiting_rows: 0,
            earliest: i64::MAX,
            timer: None,
            watermark: i64::MIN,
            table: encoder.table(),
            encoder: Arc::new(encoder),
            partitions: Vec::new(),
            nfa: Nfa::new(pattern),
            conditions,
            values: pattern.values.iter().map(compile).collect::<Result<_>>()?,
            codec: Arc::new(RowCodec::new(&value_types)?),
            slots: Slots::new(pattern)?,
            measures: pattern
                .measures
                .iter()
                .map(compile)
                .collect::<Result<_>>()?,
            deadlines: BTreeSet::new(),
            sequence: 0,
            found: Vec::new(),
            context: context.clone(),
            spec: Arc::clone(pattern),
        })
    }

    fn keep(&mut self, rows: RecordBatch) -> Result<()> {
        if let Some(time) = self.rowtime
            && let Some(earliest) = rowtimes(&rows, time)?.values().iter().min()
        {
            self.earliest = self.earliest.min(*earliest);
        }
        self.waiting_rows += rows.num_rows();
        self.waiting.push(rows);
        if self.waiting.len() > MANY {
            self.waiting = vec![concat_batches(&self.schema, &self.waiting)?];
        }
        Ok(())
    }

    /// Takes the rows that wait up to time `until`, in order; all, by processing time.
    fn take_due(&mut self, until: i64) -> Result<Option<RecordBatch>> {
        if self.waiting_rows == 0 || self.earliest > until {
            return Ok(None);
        }
        let all = concat_batches(&self.schema, &std::mem::take(&mut self.waiting))?;
        self.waiting_rows = 0;
        self.earliest = i64::MAX;
        let times = self.rowtime.map(|time| rowtimes(&all, time)).transpose()?;
        let count = u32::try_from(all.num_rows()).expect("fewer than 2^32 rows");
        let is_due = |i: &u32| times.is_none_or(|t| t.value(*i as usize) <= until);
        let (mut due, rest): (Vec<u32>, Vec<u32>) = (0..count).partition(is_due);
        let time = |i: u32| times.map(|t| t.value(i as usize));
        if self.sort.is_empty() {
            due.sort_by_key(|i| time(*i));
        } else {
            let columns: Vec<_> = self.sort.iter().map(|c| all.column(*c)).cloned().collect();
            let mut sorts = EncodedRows::default();
            self.sorts.encode(&columns, all.num_rows(), &mut sorts)?;
            due.sort_by(|a, b| {
                let by_columns = || sorts.bytes(*a as usize).cmp(sorts.bytes(*b as usize));
                time(*a).cmp(&time(*b)).then_with(by_columns)
            });
        }
        if !rest.is_empty() {
            self.keep(take_record_batch(&all, &UInt32Array::from(rest))?)?;
        }
        Ok(Some(take_record_batch(&all, &UInt32Array::from(due))?))
    }

    /// Matches rows that are in order.
    fn match_rows(&mut self, rows: RecordBatch, out: &mut Output<'_>) -> Result<()> {
        let len = rows.num_rows();
        let context = self.context.eval(len, self.watermark);
        let partition = self.spec.partition.iter();
        let keys: Vec<_> = partition.map(|c| rows.column(*c)).cloned().collect();
        let mut encoded_keys = EncodedKeys::default();
        let (mut slots, mut fresh) = (Vec::new(), Vec::new());
        self.encoder.encode(&keys, len, &mut encoded_keys)?;
        self.table.intern(&encoded_keys, &mut slots, &mut fresh)?;
        self.partitions
            .resize_with(self.table.slot_bound(), Partition::default);
        let values = self
            .values
            .iter()
            .map(|v| v.evaluate_array(&rows, &context))
            .collect::<Result<Vec<_>>>()?;
        let mut encoded = EncodedRows::default();
        self.codec.encode(&values, len, &mut encoded)?;
        let holds = self
            .conditions
            .iter()
            .map(|c| match &c.row {
                Some(row) if !row.may_fail() => row.evaluate_predicate(&rows, &context).map(Some),
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        let times: Option<TimestampMillisecondArray> = self
            .rowtime
            .map(|time| rowtimes(&rows, time).cloned())
            .transpose()?;
        let due = Due {
            rows,
            encoded,
            holds,
        };
        for (i, slot) in slots.iter().enumerate() {
            let time = match &times {
                Some(times) => times.value(i),
                None => context.now_ms,
            };
            self.expire(*slot, time)?;
            self.match_row(&due, i, *slot, time)?;
            if self.found.len() >= self.context.batch_size.max(1) {
                self.give(out)?;
            }
        }
        slots.sort_unstable();
        slots.dedup();
        for slot in slots {
            self.forget_empty(slot);
        }
        Ok(())
    }

    fn match_row(&mut self, due: &Due, i: usize, slot: u32, time: i64) -> Result<()> {
        let row = Arc::new(Row {
            bytes: due.encoded.bytes(i).into(),
            sequence: self.sequence,
            time,
        });
        self.sequence += 1;
        let candidates = self.nfa.candidates(&self.partitions[slot as usize]);
        let accepted = self.accepted(due, i, &row, slot, &candidates)?;
        let partition = &mut self.partitions[slot as usize];
        let started = self.nfa.advance(partition, &candidates, &accepted, &row);
        self.nfa.release(partition, &mut self.found)?;
        if started && let Some(within) = self.nfa.within_ms {
            self.deadlines.insert((time.saturating_add(within), slot));
        }
        Ok(())
    }

    /// Which candidates the row can continue.
    fn accepted(
        &mut self,
        due: &Due,
        i: usize,
        row: &Arc<Row>,
        slot: u32,
        candidates: &[Candidate],
    ) -> Result<Vec<bool>> {
        let mut accepted = vec![true; candidates.len()];
        for (variable, condition) in self.conditions.iter().enumerate() {
            if condition.row.is_none() && condition.history.is_none() {
                continue;
            }
            let mut asked: Vec<usize> = (0..candidates.len())
                .filter(|c| candidates[*c].variable == variable)
                .collect();
            if asked.is_empty() {
                continue;
            }
            if let Some(test) = &condition.row {
                let holds = match &due.holds[variable] {
                    Some(holds) => holds.value(i),
                    None => {
                        let context = self.context.eval(1, self.watermark);
                        test.evaluate_predicate(&due.rows.slice(i, 1), &context)?
                            .value(0)
                    }
                };
                if !holds {
                    asked.iter().for_each(|c| accepted[*c] = false);
                    asked.clear();
                }
            }
            let Some(test) = condition.history.as_ref().filter(|_| !asked.is_empty()) else {
                continue;
            };
            let partition = &self.partitions[slot as usize];
            let histories: Vec<Arc<Node>> = asked
                .iter()
                .map(|c| candidates[*c].extended(partition, row))
                .collect();
            let needed = self.spec.variables[variable].history.as_ref();
            let needed = needed.map(crate::expr::Expr::columns).unwrap_or_default();
            let columns = self.slots.columns(&needed, &histories, &self.codec)?;
            let batch = anonymous_batch(columns, histories.len())?;
            let context = self.context.eval(histories.len(), self.watermark);
            let holds = test.evaluate_predicate(&batch, &context)?;
            for (n, c) in asked.iter().enumerate() {
                accepted[*c] = holds.value(n);
            }
        }
        Ok(accepted)
    }

    /// Ends the partial matches of a partition that are too old at `time`.
    fn expire(&mut self, slot: u32, time: i64) -> Result<()> {
        let partition = &mut self.partitions[slot as usize];
        if self.nfa.expire(partition, time) {
            self.table.touch(slot);
            self.nfa.release(partition, &mut self.found)?;
        }
        Ok(())
    }

    /// Ends all partial matches that are too old at `time`.
    fn expire_all(&mut self, time: i64) -> Result<()> {
        while let Some((deadline, slot)) = self.deadlines.first().copied() {
            if deadline > time {
                break;
            }
            self.deadlines.pop_first();
            if (slot as usize) < self.partitions.len() {
                self.expire(slot, time)?;
                self.forget_empty(slot);
            }
        }
        Ok(())
    }

    /// No row comes any more.
    fn end_all(&mut self) -> Result<()> {
        let slots: Vec<u32> = self.table.slots().collect();
        for slot in slots {
            self.table.touch(slot);
        }
        for partition in &mut self.partitions {
            self.nfa.end(partition, &mut self.found)?;
        }
        Ok(())
    }

    /// Frees the key of a partition in which nothing is under way.
    fn forget_empty(&mut self, slot: u32) {
        if self.partitions[slot as usize].is_empty() && self.table.is_live(slot) {
            self.table.remove(slot);
        }
    }

    /// Emits the matches that were found.
    fn give(&mut self, out: &mut Output<'_>) -> Result<()> {
        let found = std::mem::take(&mut self.found);
        for found in found.chunks(self.context.batch_size.max(1)) {
            let all: Vec<usize> = (0..self.spec.slots.len()).collect();
            let slots = self.slots.columns(&all, found, &self.codec)?;
            let batch = anonymous_batch(slots, found.len())?;
            let context = self.context.eval(found.len(), self.watermark);
            let rows = found.iter().map(|node| &*node.row.bytes);
            let mut columns: Vec<ArrayRef> = self.codec.decode(rows)?;
            columns.truncate(self.spec.partition.len());
            for measure in &self.measures {
                columns.push(measure.evaluate_array(&batch, &context)?);
            }
            let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(found.len()));
            let rows = RecordBatch::try_new_with_options(
                std::sync::Arc::clone(&self.output),
                columns,
                &options,
            )?;
            out.emit(ChangeBatch::inserts(rows))?;
        }
        Ok(())
    }
}

impl Operator for MatchRecognize {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let Some(time) = self.rowtime else {
            if !self.sort.is_empty() {
                self.timer = Some(self.context.clock.now_ms().saturating_add(1));
                return self.keep(batch.rows().clone());
            }
            self.match_rows(batch.rows().clone(), out)?;
            return self.give(out);
        };
        let times = rowtimes(batch.rows(), time)?;
        let on_time: Vec<bool> = (0..batch.len())
            .map(|i| match rowtime(times, i, &self.context.metrics) {
                Some(time) if time <= self.watermark => {
                    self.context.metrics.late_records_dropped.add(1);
                    false
                }
                time => time.is_some(),
            })
            .collect();
        let batch = batch.filter(&on_time.into())?;
        match batch.is_empty() {
            true => Ok(()),
            false => self.keep(batch.rows().clone()),
        }
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        if self.rowtime.is_some() {
            if let Some(rows) = self.take_due(watermark)? {
                self.match_rows(rows, out)?;
            }
            self.expire_all(watermark)?;
            if watermark == i64::MAX {
                self.end_all()?;
            }
            self.give(out)?;
        }
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        let deadline = match self.rowtime {
            None => self.deadlines.first().map(|(deadline, _)| *deadline),
            Some(_) => None,
        };
        self.timer.into_iter().chain(deadline).min()
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        if self.rowtime.is_some() {
            return Ok(());
        }
        if self.timer.is_some_and(|timer| timer <= now_ms) {
            self.timer = None;
            self.earliest = i64::MIN;
            if let Some(rows) = self.take_due(i64::MAX)? {
                self.match_rows(rows, out)?;
            }
        }
        self.expire_all(now_ms)?;
        self.give(out)
    }

    fn end_input(&mut self, _port: usize, out: &mut Output<'_>) -> Result<()> {
        if self.rowtime.is_some() {
            return Ok(());
        }
        self.timer = None;
        self.earliest = i64::MIN;
        if let Some(rows) = self.take_due(i64::MAX)? {
            self.match_rows(rows, out)?;
        }
        self.end_all()?;
        self.give(out)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let slots = self.table.copy_all();
        self.save(&slots)
    }

    fn track_changes(&mut self) {
        if !self.spec.partition.is_empty() {
            self.table.track_changes();
        }
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.table.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut snapshot = self.save(&changed.slots)?;
        self.mark(&changed, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.load(&state)
    }

    fn state_size(&self) -> StateSize {
        let bytes = self.waiting.iter().map(RecordBatch::get_array_memory_size);
        let waiting: usize = bytes.sum();
        let partial: usize = self.partitions.iter().map(Partition::len).sum();
        StateSize {
            rows: self.waiting_rows + partial,
            bytes: waiting + self.table.memory_size() + partial * size_of::<nfa::Partial>(),
        }
    }
}

#[cfg(test)]
mod tests;
