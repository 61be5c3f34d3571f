//! The operators that are bounded by time: windows, interval and temporal joins.

use indexmap::IndexMap;

use super::{aggregate_calls, factory, sort_columns};
use crate::config::{Configuration, parse_duration};
use crate::error::{Error, Result};
use crate::graph::{Alignment, OperatorFactory};
use crate::operators::group_window_aggregate::{EmitStrategy, group_window_aggregate};
use crate::operators::interval_join::{IntervalJoin, IntervalJoinInput, IntervalJoinSpec};
use crate::operators::temporal_join::{TemporalJoin, TemporalJoinInput, TemporalJoinSpec};
use crate::operators::window_aggregate::{WindowAggregateSpec, WindowForm};
use crate::operators::window_deduplicate::{WindowDeduplicate, WindowDeduplicateSpec};
use crate::operators::window_join::{WindowJoin, WindowJoinInput, WindowJoinSpec};
use crate::operators::window_rank::{WindowRank, WindowRankSpec};
use crate::operators::window_table_function::{WindowTableFunctionSpec, window_table_function};
use crate::plan::physical::{StreamNode, StreamPlan};

/// `scan.watermark.alignment.*` among a table's options.
///
/// # Errors
/// When one of group and drift is there without the other, or the drift is no duration.
pub(super) fn alignment(options: &IndexMap<String, String>) -> Result<Option<Alignment>> {
    const GROUP: &str = "scan.watermark.alignment.group";
    const DRIFT: &str = "scan.watermark.alignment.max-drift";
    let (group, drift) = match (options.get(GROUP), options.get(DRIFT)) {
        (None, None) => return Ok(None),
        (Some(group), Some(drift)) => (group, drift),
        _ => {
            return Err(Error::options(format!(
                "'{GROUP}' and '{DRIFT}' have to be set together"
            )));
        }
    };
    let max_drift_ms = parse_duration(drift).filter(|ms| *ms >= 0).ok_or_else(|| {
        Error::options(format!("'{drift}' is no duration for '{DRIFT}'"))
            .hint("write for example '30 s' or '5 min'")
    })?;
    Ok(Some(Alignment {
        group: group.clone(),
        max_drift_ms,
    }))
}

/// The operator of a node that is bounded by time; `None` for others.
pub(super) fn operator(plan: &StreamPlan, config: &Configuration) -> Option<OperatorFactory> {
    let schema_of = |i: usize| plan.inputs[i].schema.clone();
    Some(match &plan.node {
        StreamNode::WindowTableFunction {
            windowing,
            time,
            partition,
        } => {
            let spec = WindowTableFunctionSpec {
                input: schema_of(0),
                time: *time,
                windowing: *windowing,
                partition_by: partition.clone(),
                output: plan.schema.clone(),
            };
            factory(move |context| window_table_function(&spec, context))
        }
        StreamNode::WindowAggregate {
            keys,
            calls,
            source,
            windowing,
            properties,
            emit,
        } => {
            let spec = WindowAggregateSpec {
                input: schema_of(0),
                group_by: keys.clone(),
                aggregates: aggregate_calls(calls),
                retracting: !plan.input().mode.is_append(),
                form: match emit {
                    Some(_) => WindowForm::GroupWindow,
                    None => WindowForm::TableFunction,
                },
                source: *source,
                windowing: *windowing,
                properties: properties.clone(),
                output: plan.schema.clone(),
            };
            let emit = EmitStrategy {
                generate_update_before: plan.mode.update_before,
                ..emit.unwrap_or_default()
            };
            factory(move |context| group_window_aggregate(&spec, emit, context))
        }
        StreamNode::WindowRank {
            window_end,
            windowing,
            partition,
            order,
            start,
            end,
            output_number,
        } => {
            let spec = WindowRankSpec {
                schema: schema_of(0),
                window_end: *window_end,
                windowing: *windowing,
                partition_by: partition.clone(),
                order_by: sort_columns(order),
                rank_start: *start,
                rank_end: *end,
                output_rank: *output_number,
                output: plan.schema.clone(),
            };
            factory(move |context| Ok(Box::new(WindowRank::new(&spec, context)?)))
        }
        StreamNode::WindowDeduplicate {
            window_end,
            windowing,
            key,
            rowtime,
            keep,
        } => {
            let spec = WindowDeduplicateSpec {
                schema: schema_of(0),
                window_end: *window_end,
                windowing: *windowing,
                key: key.clone(),
                rowtime: *rowtime,
                keep: *keep,
            };
            factory(move |context| Ok(Box::new(WindowDeduplicate::new(&spec, context)?)))
        }
        StreamNode::IntervalJoin {
            join_type,
            keys,
            event_time,
            lower,
            upper,
            condition,
        } => {
            let side = |i: usize, keys: &[usize], time: usize| IntervalJoinInput {
                schema: schema_of(i),
                keys: keys.to_vec(),
                time,
            };
            let cleanup = config.duration_ms("table.exec.interval-join.min-cleanup-interval");
            let spec = IntervalJoinSpec {
                join_type: *join_type,
                left: side(0, &keys.left, keys.left_time),
                right: side(1, &keys.right, keys.right_time),
                null_safe: keys.null_safe.clone(),
                event_time: *event_time,
                lower: *lower,
                upper: *upper,
                min_cleanup_ms: cleanup.unwrap_or(0),
                condition: condition.clone(),
                output: plan.schema.clone(),
            };
            factory(move |context| Ok(Box::new(IntervalJoin::new(spec.clone(), context)?)))
        }
        StreamNode::WindowJoin {
            join_type,
            keys,
            windowing,
            condition,
        } => {
            let side = |i: usize, keys: &[usize], window_end: usize| WindowJoinInput {
                schema: schema_of(i),
                keys: keys.to_vec(),
                window_end,
            };
            let spec = WindowJoinSpec {
                join_type: *join_type,
                left: side(0, &keys.left, keys.left_time),
                right: side(1, &keys.right, keys.right_time),
                null_safe: keys.null_safe.clone(),
                zone: windowing.zone,
                condition: condition.clone(),
                output: plan.schema.clone(),
            };
            factory(move |context| Ok(Box::new(WindowJoin::new(spec.clone(), context)?)))
        }
        StreamNode::TemporalJoin {
            join_type,
            keys,
            condition,
        } => {
            let side = |i: usize, keys: &[usize], time: usize| TemporalJoinInput {
                schema: schema_of(i),
                keys: keys.to_vec(),
                time,
            };
            let spec = TemporalJoinSpec {
                join_type: *join_type,
                left: side(0, &keys.left, keys.left_time),
                right: side(1, &keys.right, keys.right_time),
                null_safe: keys.null_safe.clone(),
                condition: condition.clone(),
                ttl_ms: config.state_ttl().unwrap_or(0),
                output: plan.schema.clone(),
            };
            factory(move |context| Ok(Box::new(TemporalJoin::new(spec.clone(), context)?)))
        }
        _ => return None,
    })
}
