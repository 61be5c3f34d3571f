//! `WindowAggregate`: aggregates of windows, emitted once, when the window is over.
//!
//! Windows that overlap share slices ([`slices`]): a row updates the one slice that it is in, and a
//! window is put together when it is due. Sessions ([`session`]) merge as rows come. Rows of windows
//! that are all over are late: dropped and counted. A window whose rows were all withdrawn is not
//! emitted.

pub(super) mod groups;
mod session;
mod slices;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, TimestampMillisecondArray};
use arrow::datatypes::TimestampMillisecondType;

use self::session::SessionAggregate;
use self::slices::SliceAggregate;
use super::window_table_function::with_rowtime;
use super::windowing::{TimeWindow, WindowKind, WindowTime, Windowing};
use super::{Operator, OperatorContext};
use crate::aggregates::AggregateCall;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::types::Schema;

/// Where a row's window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// From a time.
    Time(WindowTime),
    /// From columns that an operator before has made: `window_start` and `window_end`.
    Attached {
        /// Column of the start.
        start: usize,
        /// Column of the end.
        end: usize,
    },
}

/// How a query asks for windows, which differs in details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowForm {
    /// `TABLE(TUMBLE(..))`: parts of a window are merged from the newest on, and every row must have a
    /// time.
    TableFunction,
    /// `GROUP BY TUMBLE(..)`: parts are merged from the oldest on, and rows without a time are dropped.
    GroupWindow,
}

/// A column of the output that tells of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowProperty {
    /// `window_start`: wall-clock time.
    Start,
    /// `window_end`: wall-clock time.
    End,
    /// `window_time`, `TUMBLE_ROWTIME` and so on: a time attribute.
    Rowtime,
    /// `TUMBLE_PROCTIME` and so on: the clock.
    Proctime,
}

/// How rows are aggregated.
#[derive(Debug, Clone)]
pub struct WindowAggregateSpec {
    /// Columns of the input.
    pub input: Schema,
    /// The columns to group by beside the window.
    pub group_by: Vec<usize>,
    /// The aggregates.
    pub aggregates: Vec<AggregateCall>,
    /// Whether rows may be withdrawn.
    pub retracting: bool,
    /// How the query asks for windows.
    pub form: WindowForm,
    /// Where windows come from.
    pub source: WindowSource,
    /// The windows.
    pub windowing: Windowing,
    /// The columns that tell of the window.
    pub properties: Vec<WindowProperty>,
    /// Columns of the output: groups, aggregates, properties.
    pub output: Schema,
}

/// Makes the operator for `spec`.
///
/// # Errors
/// When a type has no row form.
pub fn window_aggregate(
    spec: &WindowAggregateSpec,
    context: &OperatorContext,
) -> Result<Box<dyn Operator>> {
    Ok(match (spec.windowing.kind, spec.source) {
        (WindowKind::Session { gap }, WindowSource::Time(time)) => {
            Box::new(SessionAggregate::new(spec, time, gap, context)?)
        }
        _ => Box::new(SliceAggregate::new(spec, context)?),
    })
}

/// The rows of a batch that have a time, and their wall-clock times.
pub(super) fn wall_times(
    batch: ChangeBatch,
    time: WindowTime,
    windowing: &Windowing,
    context: &OperatorContext,
) -> Result<(ChangeBatch, Vec<i64>)> {
    match time {
        WindowTime::Rowtime(column) => {
            let batch = with_rowtime(batch, column, context)?;
            let times = super::time::rowtimes(batch.rows(), column)?.values();
            let times = windowing.wall_times(times);
            Ok((batch, times))
        }
        WindowTime::Proctime => {
            let now = windowing.wall_time(context.clock.now_ms());
            let times = vec![now; batch.len()];
            Ok((batch, times))
        }
    }
}

/// Fails on rows without a time where the form of the windows does not allow them.
fn check_times(batch: &ChangeBatch, time: WindowTime, form: WindowForm) -> Result<()> {
    let WindowTime::Rowtime(column) = time else {
        return Ok(());
    };
    let times = super::time::rowtimes(batch.rows(), column)?;
    let missing = times.nulls().is_some_and(|nulls| nulls.null_count() > 0);
    if form == WindowForm::GroupWindow || !missing {
        return Ok(());
    }
    let schema = batch.rows().schema();
    Err(super::time::null_rowtime().hint(format!(
        "filter with {} IS NOT NULL before the window",
        schema.field(column).name()
    )))
}

fn timestamps(columns: &[ArrayRef], column: usize) -> Result<&TimestampMillisecondArray> {
    columns[column]
        .as_primitive_opt::<TimestampMillisecondType>()
        .ok_or_else(|| Error::internal("a window column is no timestamp in milliseconds"))
}

/// A window's extent as columns of state.
fn window_state(windows: &[TimeWindow]) -> [ArrayRef; 2] {
    let column = |value: fn(&TimeWindow) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(windows.iter().map(value)))
    };
    [column(|w| w.start), column(|w| w.end)]
}

#[cfg(test)]
mod tests;
