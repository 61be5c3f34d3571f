//! Event times of rows.

use arrow::array::{Array, AsArray, RecordBatch, TimestampMillisecondArray};
use arrow::datatypes::TimestampMillisecondType;

use crate::error::{Error, Result};
use crate::runtime::metrics::OperatorMetrics;

/// The failure of a job whose rows must have an event time, on one that has none.
pub(super) fn null_rowtime() -> Error {
    Error::execution(
        "RowTime field should not be null, please convert it to a non-null long value.",
    )
}

/// The event-time column of a batch: milliseconds.
///
/// # Errors
/// When the column is no timestamp in milliseconds: a bug of the planner.
pub(super) fn rowtimes(rows: &RecordBatch, column: usize) -> Result<&TimestampMillisecondArray> {
    rows.column(column)
        .as_primitive_opt::<TimestampMillisecondType>()
        .ok_or_else(|| Error::internal("an event-time column is no timestamp in milliseconds"))
}

/// The event time of row `i`; of NULL the epoch, as which Flink reads it.
pub(super) fn rowtime_or_epoch(times: &TimestampMillisecondArray, i: usize) -> i64 {
    if times.is_null(i) { 0 } else { times.value(i) }
}

/// The event time of row `i`; `None`, and counted, if it has none.
pub(super) fn rowtime(
    times: &TimestampMillisecondArray,
    i: usize,
    metrics: &OperatorMetrics,
) -> Option<i64> {
    if times.is_null(i) {
        metrics.null_rowtime_dropped.add(1);
        return None;
    }
    Some(times.value(i))
}
