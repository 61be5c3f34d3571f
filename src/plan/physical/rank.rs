//! Top-N, deduplication, and ORDER BY.

use super::keys::{is_subset, normalized, upsert_keys};
use super::time_join::append_only;
use super::window::{WindowColumns, window_columns};
use super::{StreamNode, StreamPlan};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::operators::deduplicate::{DeduplicateOrder, Keep};
use crate::operators::rank::RankStrategy;
use crate::plan::logical::{OverFunction, RankEnd, SortKey};
use crate::types::{Schema, TimeAttribute};

/// A Top-N.
pub(super) struct RankParts<'a> {
    pub(super) function: &'a OverFunction,
    pub(super) partition: Vec<usize>,
    pub(super) order: Vec<SortKey>,
    pub(super) start: u64,
    pub(super) end: RankEnd,
    pub(super) output_number: bool,
}

/// The refusal of a Top-N of which only the first row number is bounded.
pub(super) fn missing_end() -> Error {
    Error::plan(
        "Rank end is not specified. Currently rank only support TopN, which means the rank end \
         must be specified.",
    )
}

/// The name of a rank that is no row number.
fn other_rank(function: &OverFunction) -> Option<&'static str> {
    match function {
        OverFunction::Rank => Some("RANK"),
        OverFunction::DenseRank => Some("DENSE_RANK"),
        _ => None,
    }
}

/// A `Deduplicate` where the Top-1 is by a time attribute of append-only input, else a `Rank`.
pub(super) fn build_rank(
    input: StreamPlan,
    spec: RankParts<'_>,
    mini_batch: bool,
    schema: Schema,
) -> Result<StreamPlan> {
    if spec.end == RankEnd::Constant(0) {
        return Err(Error::plan(
            "Rank end should not less than zero, but now is 0",
        ));
    }
    if let Some(window) = window_columns(&input)
        && spec.partition.contains(&window.start)
        && spec.partition.contains(&window.end)
    {
        return build_window_rank(input, spec, &window, schema);
    }
    if let Some(name) = other_rank(spec.function) {
        return Err(Error::plan(format!(
            "{name}() on streaming table is not supported currently"
        ))
        .hint("use ROW_NUMBER()"));
    }
    let first_only = spec.start == 1 && spec.end == RankEnd::Constant(1);
    if first_only
        && !spec.output_number
        && input.mode.is_append()
        && let [key] = spec.order.as_slice()
        && let Some(time) = input.schema.columns[key.column].time
    {
        let partition = &spec.partition;
        return Ok(deduplicate(
            input, partition, *key, time, mini_batch, schema,
        ));
    }
    let strategy = strategy(&input, &spec.partition, &spec.order);
    let mut unique_keys = input.unique_keys.clone();
    if first_only {
        unique_keys.push(spec.partition.clone());
    }
    if spec.output_number {
        let number = schema.len() - 1;
        unique_keys.push(spec.partition.iter().copied().chain([number]).collect());
    }
    Ok(StreamPlan {
        node: StreamNode::Rank {
            noun: "Rank",
            partition: spec.partition,
            order: spec.order,
            start: spec.start,
            end: spec.end,
            output_number: spec.output_number,
            strategy,
        },
        inputs: vec![input],
        schema,
        mode: ChangelogMode::RETRACT,
        unique_keys: normalized(unique_keys),
    })
}

/// Top-N or the first or last row of each window.
fn build_window_rank(
    input: StreamPlan,
    spec: RankParts<'_>,
    window: &WindowColumns,
    schema: Schema,
) -> Result<StreamPlan> {
    if let Some(name) = other_rank(spec.function) {
        return Err(Error::plan(format!(
            "{name}() function is not supported on Window TopN currently, only ROW_NUMBER() is \
             supported."
        )));
    }
    let RankEnd::Constant(end) = spec.end else {
        return Err(Error::plan("Window Top-N needs a constant number of rows"));
    };
    if !window.rowtime {
        return Err(Error::plan(
            "Processing time Window TopN is not supported yet.",
        ));
    }
    let is_window = |i: &usize| *i == window.start || *i == window.end || Some(*i) == window.time;
    let partition: Vec<usize> = spec
        .partition
        .iter()
        .copied()
        .filter(|i| !is_window(i))
        .collect();
    let by_time = match spec.order.as_slice() {
        [key] if input.schema.columns[key.column].is_rowtime() => Some(*key),
        _ => None,
    };
    let node = match by_time {
        Some(key) if spec.start == 1 && end == 1 && !spec.output_number => {
            append_only(&input, "StreamPhysicalWindowDeduplicate")?;
            StreamNode::WindowDeduplicate {
                window_end: window.end,
                windowing: window.windowing,
                key: partition,
                rowtime: key.column,
                keep: if key.descending {
                    Keep::LastRow
                } else {
                    Keep::FirstRow
                },
            }
        }
        _ => {
            append_only(&input, "StreamPhysicalWindowRank")?;
            StreamNode::WindowRank {
                window_end: window.end,
                windowing: window.windowing,
                partition,
                order: spec.order,
                start: spec.start,
                end,
                output_number: spec.output_number,
            }
        }
    };
    Ok(StreamPlan {
        node,
        mode: ChangelogMode::APPEND,
        unique_keys: Vec::new(),
        inputs: vec![input],
        schema,
    })
}

fn deduplicate(
    input: StreamPlan,
    partition: &[usize],
    key: SortKey,
    time: TimeAttribute,
    mini_batch: bool,
    schema: Schema,
) -> StreamPlan {
    let keep = if key.descending {
        Keep::LastRow
    } else {
        Keep::FirstRow
    };
    let order = match time {
        TimeAttribute::Proctime => DeduplicateOrder::Proctime,
        TimeAttribute::Rowtime => DeduplicateOrder::Rowtime(key.column),
    };
    // a bundle is deduplicated before the watermark has passed its rows
    let insert_only = keep == Keep::FirstRow && !mini_batch;
    let mode = if insert_only {
        ChangelogMode::APPEND
    } else {
        ChangelogMode::RETRACT
    };
    let mut unique_keys = input.unique_keys.clone();
    unique_keys.push(partition.to_vec());
    StreamPlan {
        node: StreamNode::Deduplicate {
            key: partition.to_vec(),
            order,
            keep,
            insert_only,
        },
        inputs: vec![input],
        schema,
        mode,
        unique_keys: normalized(unique_keys),
    }
}

/// What the order may count on: rows are added only; rows of a key only move up; or anything.
fn strategy(input: &StreamPlan, partition: &[usize], order: &[SortKey]) -> RankStrategy {
    if input.mode.is_append() {
        return RankStrategy::AppendFast;
    }
    if input.mode.delete {
        return RankStrategy::Retract;
    }
    let keys = upsert_keys(input);
    let key = keys.iter().find(|key| is_subset(partition, key));
    let moves_up = order.iter().all(|k| match direction(input, k.column) {
        Some(Direction::Constant) => true,
        Some(Direction::Rising) => k.descending,
        Some(Direction::Falling) => !k.descending,
        None => false,
    });
    match key {
        Some(key) if moves_up && !order.is_empty() => RankStrategy::UpdateFast(key.clone()),
        _ => RankStrategy::Retract,
    }
}

/// How the value of a column changes in updates of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Constant,
    Rising,
    Falling,
}

fn direction(plan: &StreamPlan, column: usize) -> Option<Direction> {
    match &plan.node {
        // a row can go and come back through a condition
        StreamNode::Calc {
            condition: None,
            projection,
        } => direction(plan.input(), projection.get(column)?.as_column()?),
        StreamNode::GroupAggregate { keys, calls, .. } => {
            if column < keys.len() {
                return Some(Direction::Constant);
            }
            if !plan.input().mode.is_append() {
                return None;
            }
            match calls.get(column - keys.len())?.function.name() {
                "COUNT" | "MAX" => Some(Direction::Rising),
                "MIN" => Some(Direction::Falling),
                _ => None,
            }
        }
        _ => None,
    }
}

/// ORDER BY and LIMIT: `TemporalSort`, `SortLimit` or `Limit`.
pub(super) fn build_sort(
    input: StreamPlan,
    keys: &[SortKey],
    offset: u64,
    fetch: Option<u64>,
    schema: Schema,
) -> Result<StreamPlan> {
    let Some(fetch) = fetch else {
        if offset > 0 {
            return Err(Error::plan(
                "FETCH is missed, which on streaming table is not supported currently.",
            )
            .hint("add FETCH NEXT n ROWS ONLY or LIMIT n to OFFSET"));
        }
        return temporal_sort(input, keys, schema);
    };
    let append = input.mode.is_append();
    let strategy = strategy(&input, &[], keys);
    let mode = if keys.is_empty() && append {
        ChangelogMode::APPEND
    } else {
        ChangelogMode::RETRACT
    };
    let unique_keys = input.unique_keys.clone();
    Ok(StreamPlan {
        node: StreamNode::Rank {
            noun: if keys.is_empty() {
                "Limit"
            } else {
                "SortLimit"
            },
            partition: Vec::new(),
            order: keys.to_vec(),
            start: offset.saturating_add(1),
            end: RankEnd::Constant(offset.saturating_add(fetch)),
            output_number: false,
            strategy: if keys.is_empty() && !append {
                RankStrategy::Retract
            } else {
                strategy
            },
        },
        inputs: vec![input],
        schema,
        mode,
        unique_keys: normalized(unique_keys),
    })
}

fn temporal_sort(input: StreamPlan, keys: &[SortKey], schema: Schema) -> Result<StreamPlan> {
    let Some(first) = keys.first() else {
        return Ok(input);
    };
    if input.schema.columns[first.column].time.is_none() {
        return Err(
            Error::plan("Sort on a non-time-attribute field is not supported.").hint(
                "an endless table cannot be sorted: add LIMIT, or sort by the row time first",
            ),
        );
    }
    if first.descending {
        return Err(Error::plan(
            "Primary sort field must be ascending on a time attribute.",
        ));
    }
    if !input.mode.is_append() {
        return Err(Error::plan(format!(
            "StreamPhysicalTemporalSort doesn't support consuming {} changes which is produced by \
             node {}",
            super::changelog::changes(input.mode),
            super::changelog::describe(&input)
        )));
    }
    let keys = keys.to_vec();
    Ok(StreamPlan {
        node: StreamNode::TemporalSort { keys },
        mode: ChangelogMode::APPEND,
        unique_keys: input.unique_keys.clone(),
        inputs: vec![input],
        schema,
    })
}
