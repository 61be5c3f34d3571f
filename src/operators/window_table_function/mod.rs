//! `WindowTableFunction`: `TUMBLE`, `HOP`, `CUMULATE` and `SESSION` as tables: each row once per
//! window that it belongs to, with `window_start`, `window_end` and `window_time` behind it.
//!
//! A session is known only when it is over, so its rows wait for that; all others pass at once.

mod session;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, TimestampMillisecondArray, UInt32Array,
};
use arrow::datatypes::{DataType as ArrowType, SchemaRef, TimeUnit};

use self::session::SessionTableFunction;
use super::time::rowtimes;
use super::windowing::{TimeWindow, WindowKind, WindowTime, Windowing};
use super::{Operator, OperatorContext};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::runtime::output::Output;
use crate::types::Schema;

/// How windows are assigned.
#[derive(Debug, Clone)]
pub struct WindowTableFunctionSpec {
    /// Columns of the input.
    pub input: Schema,
    /// The time.
    pub time: WindowTime,
    /// The windows.
    pub windowing: Windowing,
    /// `PARTITION BY` of `SESSION`.
    pub partition_by: Vec<usize>,
    /// Columns of the output: those of the input, then the three of the window.
    pub output: Schema,
}

/// Makes the operator for `spec`.
///
/// # Errors
/// When a type has no row form.
pub fn window_table_function(
    spec: &WindowTableFunctionSpec,
    context: &OperatorContext,
) -> Result<Box<dyn Operator>> {
    Ok(match spec.windowing.kind {
        WindowKind::Session { .. } => Box::new(SessionTableFunction::new(spec, context)?),
        _ => Box::new(WindowTableFunction::new(spec, context)),
    })
}

/// The operator for windows that are known at once. Stateless.
#[derive(Debug)]
struct WindowTableFunction {
    time: WindowTime,
    windowing: Windowing,
    schema: SchemaRef,
    context: OperatorContext,
}

impl WindowTableFunction {
    fn new(spec: &WindowTableFunctionSpec, context: &OperatorContext) -> Self {
        Self {
            time: spec.time,
            windowing: spec.windowing,
            schema: spec.output.to_arrow(),
            context: context.clone(),
        }
    }

    /// The rows that have a time, and the time.
    fn timed(&self, batch: ChangeBatch) -> Result<(ChangeBatch, Vec<i64>)> {
        let WindowTime::Rowtime(column) = self.time else {
            let now = self.windowing.wall_time(self.context.clock.now_ms());
            let times = vec![now; batch.len()];
            return Ok((batch, times));
        };
        let batch = with_rowtime(batch, column, &self.context)?;
        let times = rowtimes(batch.rows(), column)?.values();
        let times = self.windowing.wall_times(times);
        Ok((batch, times))
    }
}

/// The rows whose event time is not NULL; others are counted.
pub(super) fn with_rowtime(
    batch: ChangeBatch,
    column: usize,
    context: &OperatorContext,
) -> Result<ChangeBatch> {
    let times = rowtimes(batch.rows(), column)?;
    let Some(nulls) = times.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(batch);
    };
    let dropped = nulls.null_count() as u64;
    context.metrics.null_rowtime_dropped.add(dropped);
    batch.filter(&BooleanArray::new(nulls.inner().clone(), None))
}

impl Operator for WindowTableFunction {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let (batch, times) = self.timed(batch)?;
        let mut windows = Vec::new();
        let mut rows: Vec<u32> = Vec::with_capacity(times.len());
        let mut assigned = Vec::with_capacity(times.len());
        for (row, time) in times.iter().enumerate() {
            self.windowing.assign(*time, &mut windows);
            for window in &windows {
                rows.push(u32::try_from(row).expect("a batch has fewer than 2^32 rows"));
                assigned.push(*window);
            }
        }
        let batch = match self.windowing.kind {
            WindowKind::Tumble { .. } => batch,
            _ => batch.take(&UInt32Array::from(rows))?,
        };
        let mut columns = batch.rows().columns().to_vec();
        columns.extend(window_columns(&self.windowing, &assigned, &self.schema)?);
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.emit(batch.with_rows(rows)?)
    }
}

/// The columns `window_start`, `window_end` and `window_time`, which are the last of `schema`.
fn window_columns(
    windowing: &Windowing,
    windows: &[TimeWindow],
    schema: &SchemaRef,
) -> Result<[ArrayRef; 3]> {
    let column = |values: &mut dyn Iterator<Item = i64>, zone: Option<Arc<str>>| -> ArrayRef {
        let values = TimestampMillisecondArray::from_iter_values(values);
        Arc::new(values.with_timezone_opt(zone))
    };
    let zone = match schema.fields().last().map(|f| f.data_type()) {
        Some(ArrowType::Timestamp(TimeUnit::Millisecond, zone)) => zone.clone(),
        _ => {
            return Err(Error::internal(
                "window_time is no timestamp in milliseconds",
            ));
        }
    };
    let time = |w: &TimeWindow| windowing.window_time(w.end);
    Ok([
        column(&mut windows.iter().map(|w| w.start), None),
        column(&mut windows.iter().map(|w| w.end), None),
        column(&mut windows.iter().map(time), zone),
    ])
}

#[cfg(test)]
mod tests;
