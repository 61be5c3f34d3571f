//! `WatermarkAssigner`: makes watermarks of the rows that pass.
//!
//! As in Flink the watermark rises row by row: after a row it is the highest value of the watermark
//! expression so far, and it is emitted when it has risen by more than the emit interval, or when
//! the clock says so. A batch is cut only where a row could notice: where its event time is not
//! after the watermark that the rows before it have made. Otherwise the watermark follows the batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, TimestampMillisecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Int64Type, TimeUnit, TimestampMillisecondType};

use super::last_rows::anonymous_batch;
use super::time::{null_rowtime, rowtimes};
use super::{Operator, OperatorContext};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::runtime::output::{Output, Status};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

/// How watermarks are made.
#[derive(Debug, Clone)]
pub struct WatermarkAssignerSpec {
    /// The event-time column.
    pub rowtime: usize,
    /// The watermark after a row; NULL leaves it as it is.
    pub watermark: Expr,
    /// `pipeline.auto-watermark-interval`, ms; 0 emits every rise.
    pub interval_ms: i64,
    /// After how long without rows the stream is idle, ms; 0 is never.
    pub idle_timeout_ms: i64,
    /// Whether something behind looks at the watermark itself (`CURRENT_WATERMARK`): then every
    /// watermark is emitted right behind its row.
    pub exact: bool,
}

/// The operator.
#[derive(Debug)]
pub struct WatermarkAssigner {
    rowtime: usize,
    expression: Compiled,
    interval_ms: i64,
    idle_timeout_ms: i64,
    exact: bool,
    /// The highest value of the expression.
    current: i64,
    /// The watermark that was emitted last.
    emitted: i64,
    status: Status,
    last_emission_ms: i64,
    last_row_ms: i64,
    timer: Option<i64>,
    context: OperatorContext,
}

impl WatermarkAssigner {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When the expression cannot be compiled.
    pub fn new(spec: &WatermarkAssignerSpec, context: &OperatorContext) -> Result<Self> {
        let now = context.clock.now_ms();
        let mut this = Self {
            rowtime: spec.rowtime,
            expression: Compiled::new(&spec.watermark, &context.environment)?,
            interval_ms: spec.interval_ms.max(0),
            idle_timeout_ms: spec.idle_timeout_ms.max(0),
            exact: spec.exact,
            current: i64::MIN,
            emitted: i64::MIN,
            status: Status::Active,
            last_emission_ms: now,
            last_row_ms: now,
            timer: None,
            context: context.clone(),
        };
        this.set_timer();
        Ok(this)
    }

    fn set_timer(&mut self) {
        let emission =
            (self.interval_ms > 0).then(|| self.last_emission_ms.saturating_add(self.interval_ms));
        let idle = (self.idle_timeout_ms > 0 && self.status == Status::Active)
            .then(|| self.last_row_ms.saturating_add(self.idle_timeout_ms));
        self.timer = emission.into_iter().chain(idle).min();
    }

    /// The value of the watermark expression on every row, ms.
    fn watermarks(&self, batch: &ChangeBatch) -> Result<TimestampMillisecondArray> {
        let context = self.context.eval(batch.len(), self.emitted);
        let values = self.expression.evaluate_array(batch.rows(), &context)?;
        let millis = ArrowType::Timestamp(TimeUnit::Millisecond, None);
        let values = cast(&values, &millis)?;
        let values = values.as_primitive_opt::<TimestampMillisecondType>();
        values
            .cloned()
            .ok_or_else(|| Error::internal("a watermark is no timestamp"))
    }

    fn emit_watermark(&mut self, out: &mut Output<'_>) -> Result<()> {
        if self.current > self.emitted {
            self.emitted = self.current;
            out.watermark(self.current)?;
        }
        Ok(())
    }
}

impl Operator for WatermarkAssigner {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        if self.status == Status::Idle {
            self.status = Status::Active;
            out.status(Status::Active)?;
        }
        if self.idle_timeout_ms > 0 {
            self.last_row_ms = self.context.clock.now_ms();
            self.set_timer();
        }
        let times = rowtimes(batch.rows(), self.rowtime)?;
        let first_null = (0..batch.len()).find(|i| times.is_null(*i));
        let len = first_null.unwrap_or(batch.len());
        let watermarks = self.watermarks(&batch)?;
        let mut start = 0;
        // A watermark that counts as emitted, but still waits for the rows before it to go.
        let mut unsent = None;
        for i in 0..len {
            if let Some(watermark) = unsent
                && (self.exact || times.value(i) <= i64::saturating_add(watermark, 1))
            {
                out.emit(batch.slice(start, i - start))?;
                out.watermark(watermark)?;
                (start, unsent) = (i, None);
            }
            if watermarks.is_valid(i) {
                self.current = self.current.max(watermarks.value(i));
            }
            // Before the first watermark the distance is infinite.
            if self.current.saturating_sub(self.emitted) > self.interval_ms {
                self.emitted = self.current;
                unsent = Some(self.current);
            }
        }
        out.emit(batch.slice(start, len - start))?;
        if let Some(watermark) = unsent {
            out.watermark(watermark)?;
        }
        match first_null {
            Some(_) => Err(null_rowtime()),
            None => Ok(()),
        }
    }

    /// Only the end of the stream counts: watermarks are made here.
    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        if watermark != i64::MAX {
            return Ok(());
        }
        if self.status == Status::Idle {
            self.status = Status::Active;
            out.status(Status::Active)?;
        }
        self.timer = None;
        self.current = i64::MAX;
        self.emit_watermark(out)
    }

    fn next_timer(&self) -> Option<i64> {
        self.timer
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        if self.interval_ms > 0 && self.last_emission_ms.saturating_add(self.interval_ms) <= now_ms
        {
            self.last_emission_ms = now_ms;
            self.emit_watermark(out)?;
        }
        if self.idle_timeout_ms > 0
            && self.status == Status::Active
            && self.last_row_ms.saturating_add(self.idle_timeout_ms) <= now_ms
        {
            self.status = Status::Idle;
            out.status(Status::Idle)?;
        }
        self.set_timer();
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.emitted),
            ..OperatorSnapshot::default()
        };
        let current: ArrayRef = Arc::new(Int64Array::from(vec![self.current]));
        snapshot.add("watermark", 0, anonymous_batch(vec![current], 1)?);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.emitted = state.watermark.unwrap_or(i64::MIN);
        let saved = state.batches("watermark").iter();
        let values = saved.filter_map(|b| b.column(0).as_primitive_opt::<Int64Type>());
        let lowest = values.flat_map(|v| v.values().iter().copied()).min();
        self.current = lowest.unwrap_or(i64::MIN).max(self.emitted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::expr::ExprKind;
    use crate::operators::testing::Harness;
    use crate::types::TypeKind;

    const COLUMNS: &str = "id INT, ts TIMESTAMP(3), wm TIMESTAMP(3)";

    fn harness(interval_ms: i64, idle_timeout_ms: i64, exact: bool) -> Harness {
        let mut harness = Harness::new(COLUMNS, COLUMNS, move |context| {
            let spec = WatermarkAssignerSpec {
                rowtime: 1,
                watermark: Expr::column(2, TypeKind::Timestamp(3).nullable()),
                interval_ms,
                idle_timeout_ms,
                exact,
            };
            WatermarkAssigner::new(&spec, context)
        });
        harness.show_watermarks = true;
        harness
    }

    fn short(answer: &str) -> Vec<String> {
        let short = |line: &str| match line.strip_prefix("+I[") {
            Some(row) => row.split(',').next().unwrap().to_string(),
            None => line.to_string(),
        };
        answer.lines().map(short).collect()
    }

    const EVENTS: &str = "+I|1|1970-01-01T00:00:05|1970-01-01T00:00:03
        +I|2|1970-01-01T00:00:06|1970-01-01T00:00:04
        +I|3|1970-01-01T00:00:02|1970-01-01T00:00:01
        +I|4|1970-01-01T00:00:09|\\N
        +I|5|1970-01-01T00:00:09|1970-01-01T00:00:04.100
        +I|6|1970-01-01T00:00:09|1970-01-01T00:00:07
        @end";

    #[test]
    fn every_rise_is_emitted_behind_its_row_if_somebody_looks() {
        let answer = harness(0, 0, true).run(EVENTS);
        let expected = [
            "1", "wm 3000", "2", "wm 4000", "3", "4", "5", "wm 4100", "6", "wm 7000", "wm MAX",
        ];
        assert_eq!(short(&answer), expected);
        harness(0, 0, true).check(EVENTS, &answer);
    }

    #[test]
    fn otherwise_a_batch_is_cut_before_a_row_that_may_be_late() {
        let answer = harness(0, 0, false).run(EVENTS);
        let expected = ["1", "2", "wm 4000", "3", "4", "5", "6", "wm 7000", "wm MAX"];
        assert_eq!(short(&answer), expected);
    }

    #[test]
    fn small_rises_wait_for_the_clock() {
        let events = EVENTS.replace("@end", "@time 250\n@end");
        let answer = harness(200, 0, true).run(&events.replace("07\n", "04.150\n"));
        let expected = [
            "1", "wm 3000", "2", "wm 4000", "3", "4", "5", "6", "wm 4150", "wm MAX",
        ];
        assert_eq!(short(&answer), expected);
    }

    #[test]
    fn watermarks_before_the_epoch_count() {
        let answer = harness(0, 0, false).run("+I|1|1960-01-01T00:00:05|1960-01-01T00:00:03");
        assert_eq!(short(&answer), ["1", "wm -315619197000"]);
    }

    #[test]
    fn a_stream_without_rows_goes_idle_and_wakes_up() {
        let answer = harness(0, 1000, false).run(
            "+I|1|1970-01-01T00:00:05|1970-01-01T00:00:03
             @time 900
             +I|2|1970-01-01T00:00:06|1970-01-01T00:00:03
             @time 1800
             @time 1900
             +I|3|1970-01-01T00:00:06|1970-01-01T00:00:03
             @time 5000
             @end",
        );
        let expected = [
            "1", "wm 3000", "2", "Idle", "Active", "3", "Idle", "Active", "wm MAX",
        ];
        assert_eq!(short(&answer), expected);
    }

    #[test]
    fn a_null_event_time_ends_the_job_after_the_rows_before_it() {
        let answer = harness(0, 0, false)
            .run("+I|1|1970-01-01T00:00:05|1970-01-01T00:00:03\n+I|2|\\N|\\N\n+I|3|\\N|\\N");
        assert!(answer.starts_with("+I[1, "), "{answer}");
        assert!(answer.contains("wm 3000\nERROR RowTime field"), "{answer}");
        assert!(!answer.contains("+I[2"), "{answer}");
    }

    #[test]
    fn constants_are_watermarks_too() {
        let at = TypeKind::Timestamp(3).nullable();
        let literal = ScalarValue::TimestampMillisecond(Some(5), None);
        let expression = Expr::new(ExprKind::Literal(literal), at);
        let harness = Harness::new(COLUMNS, COLUMNS, move |context| {
            let spec = WatermarkAssignerSpec {
                rowtime: 1,
                watermark: expression.clone(),
                interval_ms: 0,
                idle_timeout_ms: 0,
                exact: false,
            };
            WatermarkAssigner::new(&spec, context)
        });
        harness.check(
            "+I|1|1970-01-01T00:00:05|\\N",
            "+I[1, 1970-01-01T00:00:05, null]",
        );
    }
}
