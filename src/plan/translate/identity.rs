//! Who is who when a job takes up a checkpoint: a uid and a state signature for every vertex.
//!
//! The uid of a stateful node is made of the sink, the node's noun, its keys and its input tables, so
//! a new filter or projection, or a stateless node more or less, changes no uid. Where two vertices of
//! a sink would have the same, their ways to the sink tell them apart. A vertex that several sinks or
//! nodes share has the uids of all, and any one finds its state. The signature says what must agree
//! for the state to mean the same: one line a part, `part: value`.
//!
//! Columns are called by what they are made of (`UPPER(name)`), not by their place or alias.
//!
//! A stateless node has no signature. Its uid is only found again if nothing about it has changed:
//! what is lost otherwise (a watermark) comes again from its input.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::keyed_by;
use crate::expr::Expr;
use crate::graph::{Graph, VertexId};
use crate::operators::deduplicate::DeduplicateOrder;
use crate::operators::join::{JoinType, UniqueKey};
use crate::operators::over_aggregate::{OverCall, OverFrame, OverOrder};
use crate::operators::rank::{RankStrategy, SortColumn};
use crate::operators::windowing::WindowKind;
use crate::plan::explain;
use crate::plan::logical::{AggregateCall, RankEnd, SortKey};
use crate::plan::physical::{StreamNode, StreamPlan};
use crate::types::Schema;

/// A longer text of an expression is cut and told apart by its checksum.
const LONGEST_NAME: usize = 120;

/// Collects who is who while plans become a graph.
#[derive(Debug, Default)]
pub(super) struct Identities {
    /// How many plans write to each table.
    sinks: BTreeMap<String, usize>,
    /// The sink of the plan at hand.
    sink: String,
    /// The nodes of the plan at hand that have no vertex yet, inputs first.
    pending: VecDeque<Found>,
    /// The nodes that have.
    found: Vec<(VertexId, Found)>,
}

impl Identities {
    /// The next plan, whose rows go to `target`.
    pub(super) fn begin(&mut self, plan: &StreamPlan, target: &str) {
        let number = self.sinks.entry(target.to_string()).or_default();
        *number += 1;
        self.sink = match *number {
            1 => target.to_string(),
            n => format!("{target}#{n}"),
        };
        let mut walk = Walk {
            sink: self.sink.clone(),
            found: VecDeque::new(),
        };
        walk.visit(plan, "");
        self.pending = walk.found;
    }

    /// The next node of the plan, inputs first, is this vertex: a new one, or one that it shares.
    pub(super) fn next_is(&mut self, vertex: VertexId) {
        let found = self.pending.pop_front();
        let found = found.expect("a plan is translated node by node");
        self.found.push((vertex, found));
    }

    /// The uid of the plan's sink.
    pub(super) fn sink(&self, noun: &str) -> String {
        format!("{}/{noun}", self.sink)
    }

    /// Gives the vertices their identities.
    pub(super) fn give(self, graph: &mut Graph) {
        let mut vertices_of: BTreeMap<&str, BTreeSet<VertexId>> = BTreeMap::new();
        for (vertex, found) in &self.found {
            vertices_of.entry(&found.base).or_default().insert(*vertex);
        }
        // every name means one vertex
        let mut names: BTreeMap<String, VertexId> = BTreeMap::new();
        for (vertex, found) in &self.found {
            let mut name = found.base.clone();
            if vertices_of[found.base.as_str()].len() > 1 {
                name.push_str(&format!("@{}", found.way));
            }
            let mut number = 1;
            let mut numbered = name.clone();
            while names.get(&numbered).is_some_and(|other| other != vertex) {
                number += 1;
                numbered = format!("{name}#{number}");
            }
            names.insert(numbered, *vertex);
        }
        let mut uids: BTreeMap<VertexId, Vec<String>> = BTreeMap::new();
        for (name, vertex) in names {
            uids.entry(vertex).or_default().push(name);
        }
        for (vertex, found) in self.found {
            let uid = uids.get(&vertex).map_or(String::new(), |u| u.join("\n"));
            graph.identify(vertex, uid, found.signature);
        }
    }
}

/// A node of a plan.
#[derive(Debug)]
struct Found {
    /// Sink, noun, keys and tables.
    base: String,
    /// From the node to the sink, over the nodes that have state or several inputs.
    way: String,
    /// Empty for a stateless node.
    signature: String,
}

/// What a node tells those above it.
struct Output {
    /// What each column is made of.
    names: Vec<String>,
    /// The tables below, each once, in the order of the plan.
    tables: Vec<String>,
}

struct Walk {
    sink: String,
    found: VecDeque<Found>,
}

impl Walk {
    fn visit(&mut self, plan: &StreamPlan, way: &str) -> Output {
        let noun = plan.node.noun();
        let stateful = is_stateful(&plan.node);
        let several = plan.inputs.len() > 1;
        let mut inputs = Vec::with_capacity(plan.inputs.len());
        for (i, input) in plan.inputs.iter().enumerate() {
            let step = match (several, stateful) {
                (true, _) => format!("{noun}.{}/{way}", i + 1),
                (false, true) => format!("{noun}/{way}"),
                (false, false) => way.to_string(),
            };
            inputs.push(self.visit(input, &step));
        }
        let mut tables: Vec<String> = match &plan.node {
            StreamNode::TableSourceScan { table, .. } => vec![table.path.to_string()],
            _ => Vec::new(),
        };
        for table in inputs.iter().flat_map(|i| &i.tables) {
            if !tables.contains(table) {
                tables.push(table.clone());
            }
        }
        let node = Node {
            plan,
            inputs: &inputs,
        };
        let of = tables.join(", ");
        let (base, signature) = if stateful {
            let keys = node.keys().map_or(String::new(), |k| format!("({k})"));
            let parts = node.signature();
            let lines: Vec<String> = parts.iter().map(|(p, v)| format!("{p}: {v}")).collect();
            (format!("{noun}{keys}[{of}]"), lines.join("\n"))
        } else {
            let text = explain::line(plan);
            let sum = crc32fast::hash(text.as_bytes());
            (format!("{noun}~{sum:08x}[{of}]"), String::new())
        };
        self.found.push_back(Found {
            base: format!("{}/{base}", self.sink),
            way: way.trim_end_matches('/').to_string(),
            signature,
        });
        Output {
            names: node.names().into_iter().map(shortened).collect(),
            tables,
        }
    }
}

fn shortened(name: String) -> String {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let sum = crc32fast::hash(name.as_bytes());
    let start: String = name.chars().take(LONGEST_NAME / 2).collect();
    format!("{start}..{sum:08x}")
}

fn is_stateful(node: &StreamNode) -> bool {
    let reads = matches!(
        node,
        StreamNode::TableSourceScan { .. }
            | StreamNode::Values { .. }
            | StreamNode::WatermarkAssigner { .. }
    );
    reads || keyed_by(node).is_some()
}

type Parts = Vec<(&'static str, String)>;

struct Node<'a> {
    plan: &'a StreamPlan,
    inputs: &'a [Output],
}

impl Node<'_> {
    /// The keys by which the state is kept, as the uid says them.
    fn keys(&self) -> Option<String> {
        if let StreamNode::WatermarkAssigner { rowtime, .. } = &self.plan.node {
            return Some(self.inputs[0].names[*rowtime].clone());
        }
        let keys = keyed_by(&self.plan.node)?;
        let (Some(left), Some(right)) = (keys.first(), keys.get(1)) else {
            return Some(self.list(0, keys.first().map_or(&[][..], |k| k)));
        };
        let null_safe: &[bool] = match &self.plan.node {
            StreamNode::Join { null_safe, .. } => null_safe,
            StreamNode::IntervalJoin { keys, .. }
            | StreamNode::WindowJoin { keys, .. }
            | StreamNode::TemporalJoin { keys, .. } => &keys.null_safe,
            _ => &[],
        };
        let pairs = left.iter().zip(right).enumerate();
        let pairs: Vec<String> = pairs
            .map(|(i, (l, r))| {
                let safe = null_safe.get(i).is_some_and(|safe| *safe);
                let equals = if safe { "IS NOT DISTINCT FROM" } else { "=" };
                let (l, r) = (&self.inputs[0].names[*l], &self.inputs[1].names[*r]);
                format!("{l} {equals} {r}")
            })
            .collect();
        Some(pairs.join(" AND "))
    }

    /// Names of columns of an input.
    fn list(&self, input: usize, columns: &[usize]) -> String {
        let names = columns
            .iter()
            .map(|i| self.inputs[input].names[*i].as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// All columns of an input with their types.
    fn columns(&self, input: usize) -> String {
        let all: Vec<usize> = (0..self.plan.inputs[input].schema.len()).collect();
        self.typed(input, &all)
    }

    fn typed(&self, input: usize, columns: &[usize]) -> String {
        typed(
            &self.inputs[input].names,
            &self.plan.inputs[input].schema,
            columns,
        )
    }

    fn order(&self, keys: impl IntoIterator<Item = SortColumn>) -> String {
        let text = |k: SortColumn| {
            let direction = if k.descending { "DESC" } else { "ASC" };
            let nulls = if k.nulls_first { "FIRST" } else { "LAST" };
            let name = &self.inputs[0].names[k.column];
            format!("{name} {direction} NULLS {nulls}")
        };
        keys.into_iter().map(text).collect::<Vec<_>>().join(", ")
    }

    fn sort(&self, keys: &[SortKey]) -> String {
        self.order(super::sort_columns(keys))
    }

    fn calls(&self, calls: &[AggregateCall]) -> String {
        let text = |call: &AggregateCall| {
            let name = self.call(call.function.name(), &call.args, call.distinct, call.filter);
            format!("{name} {}", call.data_type.kind)
        };
        calls.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    fn call(&self, name: &str, args: &[usize], distinct: bool, filter: Option<usize>) -> String {
        let args = match args {
            [] => "*".to_string(),
            args => self.list(0, args),
        };
        let distinct = if distinct { "DISTINCT " } else { "" };
        let filter = filter.map(|f| format!(" FILTER ({})", self.inputs[0].names[f]));
        format!("{name}({distinct}{args}){}", filter.unwrap_or_default())
    }

    fn over_call(&self, call: &OverCall) -> String {
        match call {
            OverCall::Aggregate(c) => self.call(c.function.name(), &c.args, c.distinct, c.filter),
            OverCall::RowNumber => "ROW_NUMBER()".into(),
            OverCall::Lag {
                column,
                offset,
                default,
            } => format!(
                "LAG({}, {offset}, {default})",
                self.inputs[0].names[*column]
            ),
        }
    }

    fn changes(&self) -> &'static str {
        if self.plan.input().mode.is_append() {
            "inserts"
        } else {
            "inserts and withdrawals"
        }
    }

    /// What each column of the output is made of.
    fn names(&self) -> Vec<String> {
        let own = self.plan.schema.names();
        let behind = |names: &[String]| own.iter().skip(names.len()).cloned().collect::<Vec<_>>();
        let input = self.inputs.first().map_or(&[][..], |i| &i.names);
        match &self.plan.node {
            StreamNode::Calc { projection, .. } => {
                projection.iter().map(|e| e.to_sql(input)).collect()
            }
            StreamNode::GroupAggregate { keys, calls, .. }
            | StreamNode::WindowAggregate { keys, calls, .. } => {
                let mut names: Vec<String> = keys.iter().map(|k| input[*k].clone()).collect();
                names.extend(
                    calls
                        .iter()
                        .map(|c| self.call(c.function.name(), &c.args, c.distinct, c.filter)),
                );
                let rest = behind(&names);
                names.extend(rest);
                names
            }
            StreamNode::OverAggregate { calls, .. } => {
                let calls = calls.iter().map(|c| format!("{} OVER", self.over_call(c)));
                input.iter().cloned().chain(calls).collect()
            }
            StreamNode::Union => {
                let same = self.inputs.iter().all(|i| i.names == input);
                if same { input.to_vec() } else { own }
            }
            _ if self.inputs.len() > 1 => {
                let sides = ["left", "right"].into_iter().zip(self.inputs);
                let both: Vec<String> = sides
                    .flat_map(|(side, i)| i.names.iter().map(move |n| format!("{side}.{n}")))
                    .collect();
                // a semi join gives the left side alone
                if both.len() == own.len() {
                    both
                } else {
                    input.to_vec()
                }
            }
            StreamNode::TableSourceScan { .. }
            | StreamNode::Values { .. }
            | StreamNode::Match { .. } => own,
            // the input's columns, and what the node adds behind them
            _ if own.len() >= input.len() => {
                let rest = behind(input);
                input.iter().cloned().chain(rest).collect()
            }
            _ => own,
        }
    }

    fn signature(&self) -> Parts {
        match &self.plan.node {
            StreamNode::TableSourceScan { table, .. } => {
                let connector = table.options.get("connector").cloned();
                vec![("connector", connector.unwrap_or_default())]
            }
            StreamNode::Values { rows } => vec![("rows", constant_rows(rows))],
            StreamNode::WatermarkAssigner { rowtime, .. } => {
                vec![("rowtime", self.typed(0, &[*rowtime]))]
            }
            StreamNode::GroupAggregate { keys, calls, .. } => vec![
                ("keys", self.typed(0, keys)),
                ("aggregates", self.calls(calls)),
                ("input", self.changes().into()),
            ],
            StreamNode::OverAggregate {
                partition,
                order,
                frame,
                calls,
            } => {
                let order = match order {
                    OverOrder::Rowtime(i) => self.inputs[0].names[*i].clone(),
                    OverOrder::Proctime => "PROCTIME".into(),
                    OverOrder::Columns(keys) => self.order(keys.iter().copied()),
                };
                let calls: Vec<String> = calls.iter().map(|c| self.over_call(c)).collect();
                vec![
                    ("keys", self.typed(0, partition)),
                    ("columns", self.columns(0)),
                    ("order", order),
                    ("frame", frame_text(*frame)),
                    ("calls", calls.join(", ")),
                ]
            }
            StreamNode::Match { spec } => vec![
                ("columns", self.columns(0)),
                ("order", self.sort(&spec.order)),
                ("pattern", spec.text.pattern.clone()),
                ("define", spec.text.define.clone()),
                ("measures", spec.text.measures.clone()),
                ("within", spec.text.within.clone().unwrap_or_default()),
                ("after match", format!("{:?}", spec.skip)),
            ],
            StreamNode::ChangelogNormalize { .. } => vec![("columns", self.columns(0))],
            StreamNode::SinkUpsertMaterializer {
                upsert_key, action, ..
            } => {
                let key = upsert_key.as_ref().map(|key| self.list(0, key));
                vec![
                    ("columns", self.columns(0)),
                    ("upsert key", key.unwrap_or_else(|| "none".into())),
                    ("on conflict", format!("{action:?}").to_uppercase()),
                ]
            }
            _ if self.inputs.len() > 1 => self.join_signature(),
            _ => self.ordered_signature(),
        }
    }

    fn join_signature(&self) -> Parts {
        let mut parts = vec![("left", self.columns(0)), ("right", self.columns(1))];
        match &self.plan.node {
            StreamNode::Join {
                join_type,
                left,
                right,
                condition,
                ..
            } => {
                let unique = |input: usize, key: &UniqueKey| match key {
                    UniqueKey::None => "nothing".to_string(),
                    UniqueKey::Columns(key) => self.list(input, key),
                    UniqueKey::JoinKey => "the join key".into(),
                };
                parts.push(("join", explain::join_name(*join_type).into()));
                parts.push(("left rows are unique by", unique(0, &left.unique_key)));
                parts.push(("right rows are unique by", unique(1, &right.unique_key)));
                // the state of others counts the matches of a row
                if *join_type != JoinType::Inner {
                    parts.push(("condition", self.pair_condition(condition.as_ref())));
                }
            }
            StreamNode::IntervalJoin {
                join_type,
                keys,
                event_time,
                lower,
                upper,
                condition,
            } => {
                parts.push(("join", explain::join_name(*join_type).into()));
                let time = if *event_time { "event" } else { "processing" };
                parts.push(("time", time.into()));
                parts.push(("left time", self.list(0, &[keys.left_time])));
                parts.push(("right time", self.list(1, &[keys.right_time])));
                parts.push(("interval", format!("{lower} ms to {upper} ms")));
                if *join_type != JoinType::Inner {
                    parts.push(("condition", self.pair_condition(condition.as_ref())));
                }
            }
            StreamNode::WindowJoin {
                join_type,
                keys,
                windowing,
                ..
            } => {
                parts.push(("join", explain::join_name(*join_type).into()));
                parts.push(("window", explain::window(windowing)));
                parts.push(("left window", self.list(0, &[keys.left_time])));
                parts.push(("right window", self.list(1, &[keys.right_time])));
            }
            StreamNode::TemporalJoin {
                join_type, keys, ..
            } => {
                parts.push(("join", explain::join_name(*join_type).into()));
                parts.push(("left time", self.list(0, &[keys.left_time])));
                parts.push(("right time", self.list(1, &[keys.right_time])));
            }
            _ => {}
        }
        parts
    }

    fn pair_condition(&self, condition: Option<&Expr>) -> String {
        let names = |i: usize, side: &str| {
            let names = self.inputs[i].names.iter();
            names.map(|n| format!("{side}.{n}")).collect::<Vec<_>>()
        };
        let both = [names(0, "left"), names(1, "right")].concat();
        condition.map_or_else(|| "none".into(), |c| c.to_sql(&both))
    }

    /// Nodes that keep rows in an order or by window.
    fn ordered_signature(&self) -> Parts {
        match &self.plan.node {
            StreamNode::Rank {
                order,
                start,
                end,
                strategy,
                ..
            } => {
                let end = match end {
                    RankEnd::Constant(n) => n.to_string(),
                    RankEnd::Variable(i) => self.inputs[0].names[*i].clone(),
                };
                let input = match strategy {
                    RankStrategy::AppendFast => "inserts".to_string(),
                    RankStrategy::UpdateFast(key) => {
                        format!("rising updates by {}", self.list(0, key))
                    }
                    RankStrategy::Retract => "inserts and withdrawals".into(),
                };
                vec![
                    ("columns", self.columns(0)),
                    ("order", self.sort(order)),
                    ("ranks", format!("{start} to {end}")),
                    ("input", input),
                ]
            }
            StreamNode::Deduplicate {
                order,
                keep,
                insert_only,
                ..
            } => {
                let order = match order {
                    DeduplicateOrder::Proctime => "PROCTIME".to_string(),
                    DeduplicateOrder::Rowtime(i) => self.inputs[0].names[*i].clone(),
                };
                vec![
                    ("columns", self.columns(0)),
                    ("order", order),
                    ("keep", format!("{keep:?}")),
                    ("inserts only", insert_only.to_string()),
                ]
            }
            StreamNode::TemporalSort { keys } => {
                vec![("columns", self.columns(0)), ("order", self.sort(keys))]
            }
            StreamNode::WindowTableFunction { windowing, .. } => vec![
                ("columns", self.columns(0)),
                ("window", explain::window(windowing)),
            ],
            StreamNode::WindowAggregate {
                keys,
                calls,
                windowing,
                source,
                ..
            } => {
                let form = match windowing.kind {
                    WindowKind::Session { .. } => "sessions in order",
                    _ => "slices in order",
                };
                vec![
                    ("keys", self.typed(0, keys)),
                    ("aggregates", self.calls(calls)),
                    ("window", explain::window(windowing)),
                    (
                        "state",
                        format!("{form} of {}", source_text(source, &self.inputs[0].names)),
                    ),
                    ("input", self.changes().into()),
                ]
            }
            StreamNode::WindowRank {
                windowing,
                order,
                start,
                end,
                ..
            } => vec![
                ("columns", self.columns(0)),
                ("window", explain::window(windowing)),
                ("order", self.sort(order)),
                ("ranks", format!("{start} to {end}")),
            ],
            StreamNode::WindowDeduplicate {
                windowing,
                rowtime,
                keep,
                ..
            } => vec![
                ("columns", self.columns(0)),
                ("window", explain::window(windowing)),
                ("order", self.inputs[0].names[*rowtime].clone()),
                ("keep", format!("{keep:?}")),
            ],
            _ => vec![("columns", self.columns(0))],
        }
    }
}

fn typed(names: &[String], schema: &Schema, columns: &[usize]) -> String {
    let text = |i: &usize| format!("{} {}", names[*i], schema.columns[*i].data_type.kind);
    columns.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn frame_text(frame: OverFrame) -> String {
    match frame {
        OverFrame::Rows(Some(n)) => format!("ROWS {n} PRECEDING"),
        OverFrame::Rows(None) => "ROWS UNBOUNDED PRECEDING".into(),
        OverFrame::Range(Some(ms)) => format!("RANGE {ms} ms PRECEDING"),
        OverFrame::Range(None) => "RANGE UNBOUNDED PRECEDING".into(),
    }
}

fn source_text(
    source: &crate::operators::window_aggregate::WindowSource,
    names: &[String],
) -> String {
    use crate::operators::window_aggregate::WindowSource;
    use crate::operators::windowing::WindowTime;
    match source {
        WindowSource::Time(WindowTime::Rowtime(i)) => names[*i].clone(),
        WindowSource::Time(WindowTime::Proctime) => "PROCTIME".into(),
        WindowSource::Attached { start, end } => format!("{} and {}", names[*start], names[*end]),
    }
}

/// Constant rows, long ones as a count and a checksum.
fn constant_rows(rows: &[Vec<Expr>]) -> String {
    let row = |row: &Vec<Expr>| {
        let values: Vec<String> = row.iter().map(ToString::to_string).collect();
        format!("({})", values.join(", "))
    };
    let text = rows.iter().map(row).collect::<Vec<_>>().join(", ");
    if text.len() <= LONGEST_NAME {
        return text;
    }
    let sum = crc32fast::hash(text.as_bytes());
    format!("{} rows ({sum:08x})", rows.len())
}

#[cfg(test)]
mod tests;
