//! `OverAggregate`: aggregates of each row's predecessors in its partition, beside the row.
//!
//! Ordered by time ([`timed`]) a row is emitted once, when all that come before it are known: by event
//! time when the watermark has passed it, by processing time at once. Ordered by other columns
//! ([`untimed`]) later rows update the results of those behind them.

mod lag;
mod timed;
mod untimed;

use datafusion::common::ScalarValue;

use self::timed::TimedOver;
use self::untimed::UntimedOver;
use super::rank::SortColumn;
use super::{Operator, OperatorContext};
use crate::aggregates::{AggregateCall, CallContext, resolve};
use crate::error::{Error, Result};
use crate::types::Schema;

/// What rows are ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverOrder {
    /// The event time in this column.
    Rowtime(usize),
    /// Arrival.
    Proctime,
    /// These columns.
    Columns(Vec<SortColumn>),
}

/// The rows that a result is made of: up to the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverFrame {
    /// `ROWS`: the current row and this many before it; all without a number.
    Rows(Option<u64>),
    /// `RANGE`: rows up to this many ms before, and all of the current row's time or sort key; all
    /// that are before without a number.
    Range(Option<i64>),
}

/// A result column.
#[derive(Debug, Clone)]
pub enum OverCall {
    /// An aggregate function.
    Aggregate(AggregateCall),
    /// `ROW_NUMBER`; also `RANK` and `DENSE_RANK`, which number rows in Flink's streams.
    RowNumber,
    /// `LAG`: the value of a column in the row `offset` rows before.
    Lag {
        /// The column.
        column: usize,
        /// How many rows before.
        offset: usize,
        /// The value where there is no such row, of the column's Arrow type.
        default: ScalarValue,
    },
}

/// How rows are aggregated.
#[derive(Debug, Clone)]
pub struct OverAggregateSpec {
    /// Columns of the input.
    pub input: Schema,
    /// `PARTITION BY`.
    pub partition_by: Vec<usize>,
    /// `ORDER BY`.
    pub order_by: OverOrder,
    /// The frame.
    pub frame: OverFrame,
    /// The result columns.
    pub calls: Vec<OverCall>,
    /// `table.exec.state.ttl`, ms.
    pub ttl_ms: Option<i64>,
    /// Columns of the output: those of the input, then the results.
    pub output: Schema,
}

/// Makes the operator for `spec`.
///
/// # Errors
/// When a type has no row form, or the frame cannot be computed in this order.
pub fn over_aggregate(
    spec: &OverAggregateSpec,
    context: &OperatorContext,
) -> Result<Box<dyn Operator>> {
    Ok(match &spec.order_by {
        OverOrder::Columns(columns) => Box::new(UntimedOver::new(spec, columns, context)?),
        _ => Box::new(TimedOver::new(spec, context)?),
    })
}

/// `COUNT` of rows, or of the values of columns.
fn count(
    spec: &OverAggregateSpec,
    columns: &[usize],
    filter: Option<usize>,
) -> Result<AggregateCall> {
    let args: Vec<_> = columns
        .iter()
        .map(|c| crate::functions::Arg {
            data_type: spec.input.columns[*c].data_type.clone(),
            literal: None,
        })
        .collect();
    let context = CallContext {
        grouped: true,
        filtered: filter.is_some(),
        distinct: false,
    };
    let function = resolve("COUNT", &args, context)?;
    let given = function.positions().iter();
    Ok(AggregateCall {
        args: given.filter_map(|p| columns.get(*p).copied()).collect(),
        function,
        filter,
        distinct: false,
    })
}

/// The aggregates among the calls, `ROW_NUMBER` as a count.
fn aggregates(spec: &OverAggregateSpec) -> Result<Vec<AggregateCall>> {
    let call = |call: &OverCall| match call {
        OverCall::Aggregate(call) => Some(Ok(call.clone())),
        OverCall::RowNumber => Some(count(spec, &[], None)),
        OverCall::Lag { .. } => None,
    };
    spec.calls.iter().filter_map(call).collect()
}

fn unsupported(what: &str) -> Error {
    Error::execution(format!(
        "{what} is not supported over an order that is not time"
    ))
}

#[cfg(test)]
mod tests;
