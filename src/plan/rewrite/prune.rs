//! Leaves out columns that nobody reads, down to the scans.
//!
//! It matters for more than speed: an upsert source is normalized on the columns that are read, so
//! an update of other columns is no change.

use crate::expr::Expr;
use crate::plan::logical::{AggregateCall, LogicalNode, LogicalPlan, RankEnd, SortKey, TableCall};
use crate::types::Schema;

/// Prunes below the root, whose columns all stay.
pub(super) fn prune_all(plan: LogicalPlan) -> LogicalPlan {
    let all: Vec<usize> = (0..plan.schema.len()).collect();
    let schema = plan.schema.clone();
    let (pruned, map) = prune(plan, &all);
    let order: Vec<usize> = all.iter().map(|i| map.at(*i)).collect();
    let mut plan = pruned.project_columns(&order);
    plan.schema = schema;
    plan
}

/// Where the kept columns went.
struct Map(Vec<usize>);

impl Map {
    fn at(&self, old: usize) -> usize {
        self.0
            .iter()
            .position(|kept| *kept == old)
            .expect("a column that is read is kept")
    }

    fn expr(&self, e: Expr) -> Expr {
        e.remap_columns(&|i| self.at(i))
    }
}

/// Adds to `needed`, keeping it sorted and without repetition.
fn with(needed: &[usize], more: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut all: Vec<usize> = needed.iter().copied().chain(more).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// `plan` with at least the columns `needed` (ascending); the map lists, for each column of the
/// result, which one it was.
fn prune(plan: LogicalPlan, needed: &[usize]) -> (LogicalPlan, Map) {
    let LogicalPlan { node, schema } = plan;
    match node {
        LogicalNode::Scan(mut scan) => {
            scan.projection = needed.iter().map(|i| scan.projection[*i]).collect();
            let schema = schema.project(needed);
            (
                LogicalPlan::new(LogicalNode::Scan(scan), schema),
                Map(needed.to_vec()),
            )
        }
        LogicalNode::Values { rows } => {
            let rows = rows
                .into_iter()
                .map(|row| needed.iter().map(|i| row[*i].clone()).collect())
                .collect();
            let schema = schema.project(needed);
            (
                LogicalPlan::new(LogicalNode::Values { rows }, schema),
                Map(needed.to_vec()),
            )
        }
        LogicalNode::Project { input, exprs } => {
            let kept: Vec<Expr> = needed.iter().map(|i| exprs[*i].clone()).collect();
            let below = with(&[], kept.iter().flat_map(Expr::columns));
            let (input, map) = prune(*input, &below);
            let kept = kept.into_iter().map(|e| map.expr(e)).collect();
            (
                input.project(kept, schema.project(needed)),
                Map(needed.to_vec()),
            )
        }
        LogicalNode::Filter { input, predicate } => {
            let below = with(needed, predicate.columns());
            let (input, map) = prune(*input, &below);
            let predicate = map.expr(predicate);
            (input.filter(predicate), map)
        }
        LogicalNode::WatermarkAssigner {
            input,
            column,
            watermark,
            options,
        } => {
            let below = with(needed, watermark.columns().into_iter().chain([column]));
            let (input, map) = prune(*input, &below);
            let schema = kept_schema(&schema, &map);
            let node = LogicalNode::WatermarkAssigner {
                column: map.at(column),
                watermark: map.expr(watermark),
                input: Box::new(input),
                options,
            };
            (LogicalPlan::new(node, schema), map)
        }
        LogicalNode::Expand { input, sets } => {
            let width = input.schema.len();
            let nulled = sets.iter().flat_map(|(nulled, _)| nulled.iter().copied());
            let below: Vec<usize> = with(needed, nulled)
                .into_iter()
                .filter(|i| *i < width)
                .collect();
            let (input, map) = prune(*input, &below);
            let sets = sets
                .into_iter()
                .map(|(nulled, id)| (nulled.into_iter().map(|i| map.at(i)).collect(), id))
                .collect();
            let mut kept = map.0;
            kept.push(width);
            let map = Map(kept);
            let schema = kept_schema(&schema, &map);
            (
                LogicalPlan::new(
                    LogicalNode::Expand {
                        input: Box::new(input),
                        sets,
                    },
                    schema,
                ),
                map,
            )
        }
        LogicalNode::Aggregate {
            input,
            keys,
            calls,
            ttl,
        } => {
            let (calls, kept) = kept_calls(calls, keys.len(), needed);
            let below = with(&keys, calls.iter().flat_map(call_columns));
            let (input, map) = prune(*input, &below);
            let keys: Vec<usize> = keys.into_iter().map(|k| map.at(k)).collect();
            let calls = calls.into_iter().map(|c| remap_call(c, &map)).collect();
            let output = Map((0..keys.len()).chain(kept).collect());
            let schema = kept_schema(&schema, &output);
            let node = LogicalNode::Aggregate {
                input: Box::new(input),
                keys,
                calls,
                ttl,
            };
            (LogicalPlan::new(node, schema), output)
        }
        LogicalNode::GroupWindowAggregate {
            input,
            mut window,
            keys,
            calls,
        } => {
            let below = with(
                &keys,
                calls
                    .iter()
                    .flat_map(call_columns)
                    .chain([window.time_column]),
            );
            let (input, map) = prune(*input, &below);
            window.time_column = map.at(window.time_column);
            let keys = keys.into_iter().map(|k| map.at(k)).collect();
            let calls = calls.into_iter().map(|c| remap_call(c, &map)).collect();
            let output = Map((0..schema.len()).collect());
            let node = LogicalNode::GroupWindowAggregate {
                input: Box::new(input),
                window,
                keys,
                calls,
            };
            (LogicalPlan::new(node, schema), output)
        }
        LogicalNode::Join {
            left,
            right,
            kind,
            on,
            ttl,
        } => {
            let columns = with(needed, on.iter().flat_map(Expr::columns));
            let width = left.schema.len();
            let (left, right, map) = prune_sides(*left, *right, &columns);
            let on = on.map(|e| map.expr(e));
            let (schema, output) = if kind.is_semi_or_anti() {
                let kept: Vec<usize> = map.0.into_iter().filter(|i| *i < width).collect();
                (left.schema.clone(), Map(kept))
            } else {
                (kept_schema(&schema, &map), map)
            };
            let node = LogicalNode::Join {
                left: Box::new(left),
                right: Box::new(right),
                kind,
                on,
                ttl,
            };
            (LogicalPlan::new(node, schema), output)
        }
        LogicalNode::LookupJoin {
            left,
            right,
            kind,
            on,
            hint,
        } => {
            let columns = with(needed, on.iter().flat_map(Expr::columns));
            let (left, right, map) = prune_sides(*left, *right, &columns);
            let schema = kept_schema(&schema, &map);
            let node = LogicalNode::LookupJoin {
                left: Box::new(left),
                right: Box::new(right),
                kind,
                on: on.map(|e| map.expr(e)),
                hint,
            };
            (LogicalPlan::new(node, schema), map)
        }
        LogicalNode::TemporalJoin {
            left,
            right,
            kind,
            time_column,
            on,
        } => {
            // the versioned side keeps its key and its time attribute
            let width = left.schema.len();
            let times = right
                .schema
                .columns
                .iter()
                .enumerate()
                .filter(|(_, c)| c.time.is_some())
                .map(|(i, _)| i + width);
            let columns = with(
                needed,
                on.columns().into_iter().chain([time_column]).chain(times),
            );
            let (left, right, map) = prune_sides(*left, *right, &columns);
            let schema = kept_schema(&schema, &map);
            let node = LogicalNode::TemporalJoin {
                left: Box::new(left),
                right: Box::new(right),
                kind,
                time_column: map.at(time_column),
                on: map.expr(on),
            };
            (LogicalPlan::new(node, schema), map)
        }
        LogicalNode::Correlate {
            input,
            call,
            kind,
            condition,
        } => {
            let width = input.schema.len();
            let mut used: Vec<usize> = match &call {
                TableCall::Unnest { collection, .. } => collection.columns(),
                TableCall::Function { args, .. } => args.iter().flat_map(Expr::columns).collect(),
            };
            used.extend(condition.iter().flat_map(Expr::columns));
            let below: Vec<usize> = with(needed, used)
                .into_iter()
                .filter(|i| *i < width)
                .collect();
            let (input, map) = prune(*input, &below);
            let call = match call {
                TableCall::Unnest {
                    collection,
                    ordinality,
                } => TableCall::Unnest {
                    collection: map.expr(collection),
                    ordinality,
                },
                TableCall::Function { function, args } => TableCall::Function {
                    function,
                    args: args.into_iter().map(|e| map.expr(e)).collect(),
                },
            };
            let mut kept = map.0;
            kept.extend(width..schema.len());
            let map = Map(kept);
            let condition = condition.map(|c| map.expr(c));
            let schema = kept_schema(&schema, &map);
            let node = LogicalNode::Correlate {
                input: Box::new(input),
                call,
                kind,
                condition,
            };
            (LogicalPlan::new(node, schema), map)
        }
        LogicalNode::Union { inputs } => {
            let schema = schema.project(needed);
            let inputs = inputs
                .into_iter()
                .map(|input| {
                    let (input, map) = prune(input, needed);
                    let order: Vec<usize> = needed.iter().map(|i| map.at(*i)).collect();
                    input.project_columns(&order)
                })
                .collect();
            (
                LogicalPlan::new(LogicalNode::Union { inputs }, schema),
                Map(needed.to_vec()),
            )
        }
        LogicalNode::Over { input, calls } => {
            let width = input.schema.len();
            if !needed.is_empty() && needed.iter().all(|i| *i < width) {
                return prune(*input, needed);
            }
            // As Flink: a count of all rows keeps the calls.
            let kept: Vec<usize> = (0..calls.len())
                .filter(|i| needed.is_empty() || needed.contains(&(width + i)))
                .collect();
            let mut calls: Vec<_> = kept.iter().map(|i| calls[*i].clone()).collect();
            let used = calls.iter().flat_map(|c| {
                let order = c.order.iter().map(|k| k.column);
                c.args
                    .iter()
                    .chain(&c.partition)
                    .copied()
                    .chain(order)
                    .collect::<Vec<_>>()
            });
            let below: Vec<usize> = with(needed, used)
                .into_iter()
                .filter(|i| *i < width)
                .collect();
            let (input, map) = prune(*input, &below);
            for call in &mut calls {
                call.args.iter_mut().for_each(|i| *i = map.at(*i));
                call.partition.iter_mut().for_each(|i| *i = map.at(*i));
                call.order
                    .iter_mut()
                    .for_each(|k| k.column = map.at(k.column));
            }
            let mut all = map.0;
            all.extend(kept.iter().map(|i| width + i));
            let map = Map(all);
            let schema = kept_schema(&schema, &map);
            (
                LogicalPlan::new(
                    LogicalNode::Over {
                        input: Box::new(input),
                        calls,
                    },
                    schema,
                ),
                map,
            )
        }
        LogicalNode::Rank {
            input,
            function,
            partition,
            order,
            start,
            end,
            output_number,
        } => {
            let width = input.schema.len();
            let variable = match end {
                Some(RankEnd::Variable(i)) => Some(i),
                Some(RankEnd::Constant(_)) | None => None,
            };
            let used = partition
                .iter()
                .copied()
                .chain(order.iter().map(|k| k.column))
                .chain(variable)
                .chain(key_columns(&input));
            let below: Vec<usize> = with(needed, used)
                .into_iter()
                .filter(|i| *i < width)
                .collect();
            let (input, map) = if has_aggregate(&input) {
                prune_above(*input, &below)
            } else {
                prune(*input, &below)
            };
            let output_number = output_number && needed.contains(&width);
            let end = match end {
                Some(RankEnd::Variable(i)) => Some(RankEnd::Variable(map.at(i))),
                end @ (Some(RankEnd::Constant(_)) | None) => end,
            };
            let partition = partition.into_iter().map(|i| map.at(i)).collect();
            let order = remap_keys(order, &map);
            let mut kept = map.0;
            if output_number {
                kept.push(width);
            }
            let map = Map(kept);
            let schema = kept_schema(&schema, &map);
            let node = LogicalNode::Rank {
                input: Box::new(input),
                function,
                partition,
                order,
                start,
                end,
                output_number,
            };
            (LogicalPlan::new(node, schema), map)
        }
        LogicalNode::Sort {
            input,
            keys,
            offset,
            fetch,
        } => {
            if fetch.is_some() {
                let sort = |input: LogicalPlan, keys| {
                    let schema = input.schema.clone();
                    let node = LogicalNode::Sort {
                        input: Box::new(input),
                        keys,
                        offset,
                        fetch,
                    };
                    LogicalPlan::new(node, schema)
                };
                return prune_limit(*input, &keys, needed, &schema, &sort);
            }
            let below = with(needed, keys.iter().map(|k| k.column));
            let (input, map) = prune(*input, &below);
            let keys = remap_keys(keys, &map);
            let schema = kept_schema(&schema, &map);
            let node = LogicalNode::Sort {
                input: Box::new(input),
                keys,
                offset,
                fetch,
            };
            (LogicalPlan::new(node, schema), map)
        }
        LogicalNode::WindowTableFunction { input, mut window } => {
            let width = input.schema.len();
            let below: Vec<usize> = with(
                needed,
                window.partition.iter().copied().chain([window.time_column]),
            )
            .into_iter()
            .filter(|i| *i < width)
            .collect();
            let (input, map) = prune(*input, &below);
            window.time_column = map.at(window.time_column);
            window.partition.iter_mut().for_each(|i| *i = map.at(*i));
            let mut kept = map.0;
            kept.extend(width..schema.len());
            let map = Map(kept);
            let schema = kept_schema(&schema, &map);
            let node = LogicalNode::WindowTableFunction {
                input: Box::new(input),
                window,
            };
            (LogicalPlan::new(node, schema), map)
        }
        LogicalNode::Match { input, spec } => {
            let (input, below) = whole(*input);
            debug_assert!(below.0.iter().enumerate().all(|(i, c)| i == *c));
            let map = Map((0..schema.len()).collect());
            (
                LogicalPlan::new(
                    LogicalNode::Match {
                        input: Box::new(input),
                        spec,
                    },
                    schema,
                ),
                map,
            )
        }
    }
}

/// Prunes a `Sort` that `limited` makes of its input. As in Flink, a projection below goes above it,
/// and what is below that is not asked for less because of what is read above.
fn prune_limit(
    input: LogicalPlan,
    keys: &[SortKey],
    needed: &[usize],
    schema: &Schema,
    limited: &dyn Fn(LogicalPlan, Vec<SortKey>) -> LogicalPlan,
) -> (LogicalPlan, Map) {
    let (input, exprs) = projection_of(input);
    let by_column = keys.iter().all(|k| exprs[k.column].as_column().is_some());
    if !by_column {
        let schema = schema.clone();
        let input = input.project(exprs, schema.clone());
        let (input, map) = whole(input);
        let plan = limited(input, remap_keys(keys.to_vec(), &map));
        return (LogicalPlan { schema, ..plan }, map);
    }
    let keyed = matches!(&input.node, LogicalNode::Scan(scan) if scan.table.primary_key.is_some());
    let read = exprs.iter().flat_map(Expr::columns);
    let below = match keyed {
        true => (0..input.schema.len()).collect(),
        false => with(&[], read.chain(key_columns(&input))),
    };
    let (input, map) = prune(input, &below);
    let keys = keys
        .iter()
        .map(|k| SortKey {
            column: map.at(exprs[k.column].as_column().expect("a key is a column")),
            ..*k
        })
        .collect();
    let kept = needed.iter().map(|i| map.expr(exprs[*i].clone())).collect();
    let plan = limited(input, keys).project(kept, schema.project(needed));
    (plan, Map(needed.to_vec()))
}

/// The plan below all projections that can be made one, and that one.
fn projection_of(plan: LogicalPlan) -> (LogicalPlan, Vec<Expr>) {
    let all: Vec<usize> = (0..plan.schema.len()).collect();
    let mut exprs: Vec<Expr> = all.iter().map(|i| plan.column(*i)).collect();
    let mut plan = plan;
    loop {
        let LogicalNode::Project {
            input,
            exprs: inner,
        } = plan.node
        else {
            return (plan, exprs);
        };
        let plain = inner.iter().all(|e| e.as_column().is_some());
        if !plain && exprs.iter().any(|e| e.as_column().is_none()) {
            let schema = plan.schema;
            return (input.project(inner, schema), exprs);
        }
        exprs = exprs
            .into_iter()
            .map(|e| e.replace_columns(&|i, _| inner[i].clone()))
            .collect();
        plan = *input;
    }
}

/// Whether an aggregate gives rows of the plan, with nothing but filters, projections, joins and
/// unions in between.
fn has_aggregate(plan: &LogicalPlan) -> bool {
    match &plan.node {
        LogicalNode::Aggregate { .. } => true,
        LogicalNode::Project { input, .. } | LogicalNode::Filter { input, .. } => {
            has_aggregate(input)
        }
        LogicalNode::Join { left, right, .. } => has_aggregate(left) || has_aggregate(right),
        LogicalNode::Union { inputs } => inputs.iter().any(has_aggregate),
        _ => false,
    }
}

/// Takes columns from above the plan only: below a Top-N, Flink leaves everything as it is.
///
/// An aggregate keeps the calls that nobody reads, so their changes are changes of the row.
fn prune_above(plan: LogicalPlan, needed: &[usize]) -> (LogicalPlan, Map) {
    let LogicalPlan { node, schema } = plan;
    match node {
        LogicalNode::Project { input, exprs } if exprs.iter().all(|e| e.as_column().is_some()) => {
            let kept: Vec<Expr> = needed.iter().map(|i| exprs[*i].clone()).collect();
            let below = with(&[], kept.iter().flat_map(Expr::columns));
            let (input, map) = prune_above(*input, &below);
            let kept = kept.into_iter().map(|e| map.expr(e)).collect();
            (
                input.project(kept, schema.project(needed)),
                Map(needed.to_vec()),
            )
        }
        node => {
            let (plan, _) = whole(LogicalPlan { node, schema });
            (plan.project_columns(needed), Map(needed.to_vec()))
        }
    }
}

/// The columns of the unique keys by which a Top-N can tell rows apart.
fn key_columns(plan: &LogicalPlan) -> Vec<usize> {
    match &plan.node {
        LogicalNode::Aggregate { keys, .. } => (0..keys.len()).collect(),
        LogicalNode::Scan(scan) => {
            let Some(key) = &scan.table.primary_key else {
                return Vec::new();
            };
            let stored: Vec<_> = scan.table.stored_columns().collect();
            let is_key = |i: &usize| key.columns.contains(&stored[scan.projection[*i]].name);
            (0..scan.projection.len()).filter(is_key).collect()
        }
        LogicalNode::Filter { input, .. }
        | LogicalNode::WatermarkAssigner { input, .. }
        | LogicalNode::Sort { input, .. } => key_columns(input),
        LogicalNode::Project { input, exprs } => {
            let place = |column: usize| exprs.iter().position(|e| e.as_column() == Some(column));
            key_columns(input).into_iter().filter_map(place).collect()
        }
        LogicalNode::Join {
            left, right, kind, ..
        } => {
            let (l, r) = (key_columns(left), key_columns(right));
            if kind.is_semi_or_anti() {
                return l;
            }
            if l.is_empty() || r.is_empty() {
                return Vec::new();
            }
            let width = left.schema.len();
            l.into_iter()
                .chain(r.into_iter().map(|i| i + width))
                .collect()
        }
        LogicalNode::Rank {
            input,
            partition,
            output_number,
            ..
        } => {
            let number = output_number.then_some(input.schema.len());
            let keys = key_columns(input);
            keys.into_iter()
                .chain(partition.iter().copied())
                .chain(number)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// All columns stay, in their order.
fn whole(plan: LogicalPlan) -> (LogicalPlan, Map) {
    let all: Vec<usize> = (0..plan.schema.len()).collect();
    let (plan, map) = prune(plan, &all);
    let order: Vec<usize> = all.iter().map(|i| map.at(*i)).collect();
    (plan.project_columns(&order), Map(all))
}

fn kept_schema(schema: &Schema, map: &Map) -> Schema {
    schema.project(&map.0)
}

fn prune_sides(
    left: LogicalPlan,
    right: LogicalPlan,
    columns: &[usize],
) -> (LogicalPlan, LogicalPlan, Map) {
    let width = left.schema.len();
    let of_left: Vec<usize> = columns.iter().copied().filter(|i| *i < width).collect();
    let of_right: Vec<usize> = columns
        .iter()
        .filter(|i| **i >= width)
        .map(|i| i - width)
        .collect();
    let (left, left_map) = prune(left, &of_left);
    let (right, right_map) = prune(right, &of_right);
    let map = left_map
        .0
        .into_iter()
        .chain(right_map.0.into_iter().map(|i| i + width))
        .collect();
    (left, right, Map(map))
}

/// The calls that are read, and the output columns that they had.
fn kept_calls(
    calls: Vec<AggregateCall>,
    keys: usize,
    needed: &[usize],
) -> (Vec<AggregateCall>, Vec<usize>) {
    calls
        .into_iter()
        .enumerate()
        .map(|(i, call)| (call, keys + i))
        .filter(|(_, column)| needed.contains(column))
        .unzip()
}

fn call_columns(call: &AggregateCall) -> Vec<usize> {
    call.args.iter().copied().chain(call.filter).collect()
}

fn remap_call(mut call: AggregateCall, map: &Map) -> AggregateCall {
    call.args.iter_mut().for_each(|i| *i = map.at(*i));
    call.filter = call.filter.map(|i| map.at(i));
    call
}

fn remap_keys(keys: Vec<SortKey>, map: &Map) -> Vec<SortKey> {
    keys.into_iter()
        .map(|k| SortKey {
            column: map.at(k.column),
            ..k
        })
        .collect()
}
