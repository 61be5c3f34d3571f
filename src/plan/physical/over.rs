//! OVER aggregates: one window a node, in an order that the stream has or that is kept in state.

use datafusion::common::ScalarValue;

use super::time_join::append_only;
use super::{StreamNode, StreamPlan};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::operators::over_aggregate::{OverCall as Call, OverFrame, OverOrder};
use crate::plan::logical::{Frame, FrameBound, OverCall, OverFunction};
use crate::plan::translate::sort_columns;
use crate::types::{Schema, TimeAttribute};

/// An `OverAggregate` of `calls`, which must share one window.
pub(super) fn build_over(
    input: StreamPlan,
    calls: &[OverCall],
    schema: Schema,
) -> Result<StreamPlan> {
    let Some(first) = calls.first() else {
        return Err(Error::internal("an OVER node without calls"));
    };
    let same = |call: &OverCall| {
        call.partition == first.partition && call.order == first.order && call.frame == first.frame
    };
    if !calls.iter().all(same) {
        return Err(Error::plan(
            "Over Agg: Unsupported use of OVER windows. All aggregates must be computed on the same \
             window. please re-check the over window statement.",
        )
        .hint("compute them in separate subqueries, or give them one WINDOW"));
    }
    if first.order.iter().any(|key| key.descending) {
        return Err(Error::plan(
            "The window can only be ordered in ASCENDING mode.",
        ));
    }
    let frame = frame(&first.frame)?;
    let time = match first.order.as_slice() {
        [key] => input.schema.columns[key.column]
            .time
            .map(|time| (time, key.column)),
        _ => {
            return Err(
                Error::plan("The window can only be ordered by a single time column.")
                    .hint("add ORDER BY the row time, or PROCTIME()"),
            );
        }
    };
    // a frame of rows of a table that is updated goes beyond Flink
    let extension = matches!(frame, OverFrame::Rows(Some(_))) && !input.mode.is_append();
    let order = match time {
        Some((TimeAttribute::Rowtime, column)) if !extension => OverOrder::Rowtime(column),
        Some((TimeAttribute::Proctime, _)) => OverOrder::Proctime,
        _ => {
            if !extension && !matches!(frame, OverFrame::Rows(None) | OverFrame::Range(None)) {
                return Err(Error::plan(
                    "Non-time attribute sort is not supported for bounded OVER window.",
                )
                .hint("order by the row time, or use UNBOUNDED PRECEDING"));
            }
            OverOrder::Columns(sort_columns(&first.order))
        }
    };
    let timed = !matches!(order, OverOrder::Columns(_));
    if timed {
        append_only(&input, "StreamPhysicalOverAggregate")?;
    }
    let mode = match (timed, input.mode.is_append()) {
        (true, _) => ChangelogMode::APPEND,
        (false, true) => ChangelogMode {
            delete: false,
            ..ChangelogMode::RETRACT
        },
        (false, false) => ChangelogMode::RETRACT,
    };
    let mut output = schema;
    for (column, below) in output.columns.iter_mut().zip(&input.schema.columns) {
        column.time = below.time;
    }
    Ok(StreamPlan {
        node: StreamNode::OverAggregate {
            partition: first.partition.clone(),
            order,
            frame,
            calls: calls.iter().map(call).collect::<Result<_>>()?,
        },
        mode,
        unique_keys: input.unique_keys.clone(),
        inputs: vec![input],
        schema: output,
    })
}

fn frame(frame: &Frame) -> Result<OverFrame> {
    let refuse = || {
        Err(
            Error::plan("OVER RANGE FOLLOWING windows are not supported yet.")
                .hint("a frame is UNBOUNDED PRECEDING or n PRECEDING up to CURRENT ROW"),
        )
    };
    if frame.end != FrameBound::CurrentRow {
        return refuse();
    }
    Ok(match (frame.rows, &frame.start) {
        (true, FrameBound::UnboundedPreceding) => OverFrame::Rows(None),
        (false, FrameBound::UnboundedPreceding) => OverFrame::Range(None),
        (true, FrameBound::Preceding(n)) => OverFrame::Rows(u64::try_from(*n).ok()),
        (false, FrameBound::Preceding(ms)) => OverFrame::Range(Some(*ms)),
        (true, FrameBound::CurrentRow) => OverFrame::Rows(Some(0)),
        _ => return refuse(),
    })
}

fn call(call: &OverCall) -> Result<Call> {
    Ok(match &call.function {
        OverFunction::Aggregate(function) => Call::Aggregate(crate::aggregates::AggregateCall {
            function: function.clone(),
            args: call.args.clone(),
            filter: None,
            distinct: call.distinct,
        }),
        OverFunction::RowNumber | OverFunction::Rank | OverFunction::DenseRank => Call::RowNumber,
        OverFunction::Lag { offset, default } => {
            let column = call.args.first().copied();
            let null = ScalarValue::try_from(&call.data_type.to_arrow())?;
            Call::Lag {
                column: column.ok_or_else(|| Error::internal("LAG without a value"))?,
                offset: *offset,
                default: default.clone().unwrap_or(null),
            }
        }
    })
}
