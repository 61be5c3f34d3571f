//! `TemporalSort`: `ORDER BY` a time attribute ascending, and other columns after it.
//!
//! By event time, rows wait for the watermark; a row is late, and dropped, if its time is not after
//! that of a row that was emitted. By processing time, rows of one millisecond are sorted by the other columns once the
//! clock has moved on; without other columns they pass.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{Int64Type, SchemaRef};

use super::last_rows::anonymous_batch;
use super::rank::SortColumn;
use super::time::{rowtime_or_epoch, rowtimes};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::runtime::output::Output;
use crate::state::rows::{EncodedRows, RowCodec};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// How rows are sorted.
#[derive(Debug, Clone)]
pub struct TemporalSortSpec {
    /// Columns of input and output.
    pub schema: Schema,
    /// The event-time column that comes first, or `None` for processing time.
    pub rowtime: Option<usize>,
    /// The other columns.
    pub order_by: Vec<SortColumn>,
}

/// The operator. State: the rows that wait.
#[derive(Debug)]
pub struct TemporalSort {
    rowtime: Option<usize>,
    order_by: Vec<usize>,
    codec: RowCodec,
    schema: SchemaRef,
    /// Rows that wait, in batches as they came.
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    /// The lowest event time that waits.
    earliest: i64,
    /// When the rows that wait by processing time may go.
    timer: Option<i64>,
    /// The event time of the row emitted last.
    emitted: i64,
    context: OperatorContext,
}

/// Batches are put together once there are more than these.
const MANY: usize = 64;

impl TemporalSort {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(spec: &TemporalSortSpec, context: &OperatorContext) -> Result<Self> {
        let types = spec.schema.types();
        let sort = spec.order_by.iter();
        Ok(Self {
            rowtime: spec.rowtime,
            order_by: spec.order_by.iter().map(|s| s.column).collect(),
            codec: RowCodec::sorted(sort.map(|s| (&types[s.column], s.options())))?,
            schema: spec.schema.to_arrow(),
            waiting: Vec::new(),
            waiting_rows: 0,
            earliest: i64::MAX,
            timer: None,
            emitted: i64::MIN,
            context: context.clone(),
        })
    }

    fn keep(&mut self, rows: RecordBatch) -> Result<()> {
        if let Some(time) = self.rowtime {
            let times = rowtimes(&rows, time)?;
            let earliest = (0..times.len()).map(|i| rowtime_or_epoch(times, i)).min();
            self.earliest = self.earliest.min(earliest.unwrap_or(i64::MAX));
        }
        self.waiting_rows += rows.num_rows();
        self.waiting.push(rows);
        if self.waiting.len() > MANY {
            self.waiting = vec![concat_batches(&self.schema, &self.waiting)?];
        }
        Ok(())
    }

    /// Emits the rows that wait up to time `until`, in order; all, by processing time.
    fn release(&mut self, until: i64, out: &mut Output<'_>) -> Result<()> {
        if self.waiting_rows == 0 || self.earliest > until {
            return Ok(());
        }
        let all = concat_batches(&self.schema, &std::mem::take(&mut self.waiting))?;
        self.waiting_rows = 0;
        self.earliest = i64::MAX;
        let mut due: Vec<u32> = Vec::new();
        let mut rest: Vec<u32> = Vec::new();
        let times = self.rowtime.map(|time| rowtimes(&all, time)).transpose()?;
        for i in 0..u32::try_from(all.num_rows()).expect("fewer than 2^32 rows") {
            match times {
                Some(times) if rowtime_or_epoch(times, i as usize) > until => rest.push(i),
                _ => due.push(i),
            }
        }
        if self.order_by.is_empty() {
            due.sort_by_key(|i| times.map(|t| rowtime_or_epoch(t, *i as usize)));
        } else {
            let columns: Vec<_> = self
                .order_by
                .iter()
                .map(|c| all.column(*c))
                .cloned()
                .collect();
            let mut sorts = EncodedRows::default();
            self.codec.encode(&columns, all.num_rows(), &mut sorts)?;
            let time = |i: u32| times.map(|t| rowtime_or_epoch(t, i as usize));
            due.sort_by(|a, b| {
                let by_columns = || sorts.bytes(*a as usize).cmp(sorts.bytes(*b as usize));
                time(*a).cmp(&time(*b)).then_with(by_columns)
            });
        }
        if let (Some(times), Some(last)) = (times, due.last()) {
            self.emitted = self.emitted.max(rowtime_or_epoch(times, *last as usize));
        }
        if !rest.is_empty() {
            self.keep(take_record_batch(&all, &UInt32Array::from(rest))?)?;
        }
        for chunk in due.chunks(self.context.batch_size.max(1)) {
            let rows = take_record_batch(&all, &UInt32Array::from(chunk.to_vec()))?;
            out.emit(ChangeBatch::inserts(rows))?;
        }
        Ok(())
    }
}

impl Operator for TemporalSort {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let Some(time) = self.rowtime else {
            if self.order_by.is_empty() {
                return out.emit(batch);
            }
            self.timer = Some(self.context.clock.now_ms().saturating_add(1));
            return self.keep(batch.rows().clone());
        };
        let times = rowtimes(batch.rows(), time)?;
        let mut on_time = Vec::with_capacity(batch.len());
        for i in 0..batch.len() {
            let late = rowtime_or_epoch(times, i) <= self.emitted;
            self.context.metrics.late_records_dropped.add(late.into());
            on_time.push(!late);
        }
        let batch = batch.filter(&on_time.into())?;
        match batch.is_empty() {
            true => Ok(()),
            false => self.keep(batch.rows().clone()),
        }
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        if self.rowtime.is_some() {
            self.release(watermark, out)?;
        }
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        self.timer
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        if self.timer.is_some_and(|timer| timer <= now_ms) {
            self.timer = None;
            self.earliest = i64::MIN;
            self.release(i64::MAX, out)?;
        }
        Ok(())
    }

    fn end_input(&mut self, _port: usize, out: &mut Output<'_>) -> Result<()> {
        self.timer = None;
        if self.rowtime.is_none() && self.waiting_rows > 0 {
            self.earliest = i64::MIN;
            self.release(i64::MAX, out)?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        let emitted: ArrayRef = Arc::new(Int64Array::from(vec![self.emitted]));
        snapshot.add("emitted", 0, anonymous_batch(vec![emitted], 1)?);
        for batch in &self.waiting {
            snapshot.add("rows", 0, batch.clone());
        }
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        for batch in state.batches("emitted") {
            if let Some(emitted) = batch.column(0).as_primitive_opt::<Int64Type>() {
                let latest = emitted.values().iter().max();
                self.emitted = self.emitted.max(latest.copied().unwrap_or(i64::MIN));
            }
        }
        for batch in state.batches("rows") {
            let columns = batch.columns().to_vec();
            self.keep(RecordBatch::try_new(
                std::sync::Arc::clone(&self.schema),
                columns,
            )?)?;
        }
        if self.rowtime.is_none() && self.waiting_rows > 0 {
            self.timer = Some(self.context.clock.now_ms().saturating_add(1));
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        let bytes = self.waiting.iter().map(RecordBatch::get_array_memory_size);
        StateSize {
            rows: self.waiting_rows,
            bytes: bytes.sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{Harness, schema};

    const COLUMNS: &str = "id INT, v INT, ts TIMESTAMP(3) *ROWTIME*";
    const EVENTS: &str = "+I|1|9|1970-01-01T00:00:05
        @wm 0
        +I|2|8|1970-01-01T00:00:01
        +I|3|7|1970-01-01T00:00:05
        +I|4|\\N|1970-01-01T00:00:05
        +I|5|6|1970-01-01T00:00:12
        @wm 7000
        +I|6|5|1970-01-01T00:00:07
        +I|7|4|1970-01-01T00:00:06.999
        +I|8|3|1970-01-01T00:00:07.001
        +I|9|2|1970-01-01T00:00:08
        +I|0|1|1970-01-01T00:00:05
        @end";

    fn harness(rowtime: Option<usize>, order_by: Vec<SortColumn>) -> Harness {
        let spec = TemporalSortSpec {
            schema: schema(COLUMNS),
            rowtime,
            order_by,
        };
        Harness::new(COLUMNS, COLUMNS, move |context| {
            TemporalSort::new(&spec, context)
        })
    }

    fn by_v() -> Vec<SortColumn> {
        vec![SortColumn {
            column: 1,
            descending: false,
            nulls_first: true,
        }]
    }

    fn ids(text: &str) -> Vec<&str> {
        text.lines().map(|line| &line[3..4]).collect()
    }

    #[test]
    fn rows_of_one_time_keep_their_order_and_late_ones_are_dropped() {
        let harness = harness(Some(2), Vec::new());
        let answer = harness.run(EVENTS);
        assert_eq!(ids(&answer), ["2", "1", "3", "4", "7", "6", "8", "9", "5"]);
        harness.check(EVENTS, &answer);
    }

    #[test]
    fn other_columns_sort_rows_of_one_time() {
        let harness = harness(Some(2), by_v());
        let answer = harness.run(EVENTS);
        assert_eq!(ids(&answer), ["2", "4", "3", "1", "7", "6", "8", "9", "5"]);
        harness.check(EVENTS, &answer);
    }

    #[test]
    fn rows_of_one_millisecond_are_sorted_when_the_clock_moves() {
        let answer = harness(None, by_v()).run(
            "+I|1|9|1970-01-01T00:00:05
             +I|2|8|1970-01-01T00:00:05
             @time 5
             +I|3|9|1970-01-01T00:00:05
             +I|4|\\N|1970-01-01T00:00:05
             @end",
        );
        assert_eq!(ids(&answer), ["2", "1", "4", "3"]);
    }
}
