//! The stream plan as a graph of operators. Those bounded by time are in [`time`]; [`share`] finds
//! what occurs more than once, and [`identity`] says how a vertex is found again in a checkpoint.

mod identity;
mod share;
mod time;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};

use self::identity::Identities;
use self::share::Sharing;
use super::logical::{self, PushedFields, SortKey};
use super::physical::{ConflictAction, JoinSide, StreamNode, StreamPlan, upsert_keys};
use crate::aggregates;
use crate::catalog::TableDefinition;
use crate::config::Configuration;
use crate::connectors::SinkWriterFactory;
use crate::connectors::pushdown::PushedScan;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::functions::EvalContext;
use crate::graph::{Distribution, Graph, Input, OperatorFactory, Vertex, VertexId, VertexKind};
use crate::operators::calc::{Calc, CalcSpec};
use crate::operators::changelog_normalize::{ChangelogNormalize, ChangelogNormalizeSpec};
use crate::operators::constraint_enforcer::{
    ConstraintEnforcer, ConstraintEnforcerSpec, NestedEnforcer, NotNullEnforcer, TypeLengthEnforcer,
};
use crate::operators::correlate::{Correlate, CorrelateCall, CorrelateSpec};
use crate::operators::deduplicate::{DeduplicateSpec, deduplicate};
use crate::operators::drop_update_before::DropUpdateBefore;
use crate::operators::expand::{Expand, ExpandSet, ExpandSpec};
use crate::operators::group_aggregate::{GroupAggregate, GroupAggregateSpec, MiniBatch};
use crate::operators::join::{BundleLimits, Join, JoinInput, JoinSpec};
use crate::operators::last_per_key::LastPerKey;
use crate::operators::lookup_join::{LookupJoin, LookupJoinSpec};
use crate::operators::match_recognize::{MatchRecognize, MatchRecognizeSpec};
use crate::operators::over_aggregate::{OverAggregateSpec, over_aggregate};
use crate::operators::rank::{Rank, RankEnd, RankSpec, SortColumn};
use crate::operators::sink_upsert_materializer::{
    ConflictStrategy, SinkUpsertMaterializer, SinkUpsertMaterializerSpec,
    WatermarkCompactingSinkMaterializer,
};
use crate::operators::split_watermarks::{SplitWatermarks, SplitWatermarksSpec};
use crate::operators::temporal_sort::{TemporalSort, TemporalSortSpec};
use crate::operators::values::Values;
use crate::operators::watermark_assigner::{WatermarkAssigner, WatermarkAssignerSpec};
use crate::operators::windowing::WindowKind;
use crate::operators::{Operator, OperatorContext};
use crate::runtime::clock::SystemClock;
use crate::types::Schema;

/// Adds plans to a graph.
pub struct Translator<'a> {
    graph: Graph,
    config: &'a Configuration,
    parallelism: usize,
    sharing: Sharing,
    /// The vertices of subplans that may occur again.
    known: HashMap<String, VertexId>,
    /// Whether some expression reads the watermark.
    reads_watermark: bool,
    identities: Identities,
}

impl<'a> Translator<'a> {
    /// A translator into an empty graph.
    #[must_use]
    pub fn new(config: &'a Configuration) -> Self {
        Self {
            graph: Graph::default(),
            parallelism: config.parallelism(),
            sharing: Sharing::of(config),
            known: HashMap::new(),
            config,
            reads_watermark: false,
            identities: Identities::default(),
        }
    }

    /// The graph.
    #[must_use]
    pub fn finish(mut self) -> Graph {
        self.identities.give(&mut self.graph);
        self.graph
    }

    /// Adds the plans of the INSERTs of one job.
    ///
    /// # Errors
    /// When a source or sink cannot be made.
    pub fn add_inserts(&mut self, mut plans: Vec<StreamPlan>) -> Result<()> {
        self.sharing.unite_scans(&mut plans);
        self.reads_watermark = plans.iter().any(reads_watermark);
        plans.iter().try_for_each(|plan| self.add_insert(plan))
    }

    fn add_insert(&mut self, plan: &StreamPlan) -> Result<()> {
        let StreamNode::Sink {
            table,
            sink,
            primary_key,
        } = &plan.node
        else {
            return Err(Error::internal(
                "the plan of an INSERT does not end in a sink",
            ));
        };
        let writers = sink.writers()?;
        self.add_sink(
            plan.input(),
            writers,
            &plan.node,
            &table.path.to_string(),
            primary_key,
        )
    }

    /// Adds the plan of a query whose rows go to `writers`.
    ///
    /// # Errors
    /// When a source cannot be made.
    pub fn add_query(
        &mut self,
        plan: StreamPlan,
        writers: Arc<dyn SinkWriterFactory>,
    ) -> Result<()> {
        let mut plans = [plan];
        self.sharing.unite_scans(&mut plans);
        let [plan] = &plans;
        self.reads_watermark = reads_watermark(plan);
        self.add_sink(plan, writers, &StreamNode::Collect, "query", &[])
    }

    fn add_sink(
        &mut self,
        input: &StreamPlan,
        writers: Arc<dyn SinkWriterFactory>,
        node: &StreamNode,
        target: &str,
        primary_key: &[usize],
    ) -> Result<()> {
        self.identities.begin(input, target);
        let from = self.add(input)?;
        let upstream = self.graph.vertex(from).parallelism;
        let collects = matches!(node, StreamNode::Collect);
        let parallelism = if collects { 1 } else { upstream };
        let distribution = if upstream == parallelism {
            Distribution::Forward
        } else {
            Distribution::Single
        };
        let _ = primary_key;
        self.graph.add(Vertex {
            name: node.noun().into(),
            description: format!("{}(table=[{target}])", node.noun()),
            uid: self.identities.sink(node.noun()),
            signature: format!("columns: {}", input.schema),
            kind: VertexKind::Sink(writers),
            mode: Some(input.mode),
            schema: input.schema.clone(),
            parallelism,
            inputs: vec![Input {
                from,
                port: 0,
                distribution,
            }],
        });
        Ok(())
    }

    fn add(&mut self, plan: &StreamPlan) -> Result<VertexId> {
        if let Some(source) = self.add_with_split_watermarks(plan)? {
            return Ok(source);
        }
        let inputs = plan
            .inputs
            .iter()
            .map(|input| self.add(input))
            .collect::<Result<Vec<_>>>()?;
        let identity = self.sharing.identity(plan, &inputs);
        let known = identity.as_ref().and_then(|i| self.known.get(i));
        let vertex = match known {
            Some(known) => *known,
            None => self.add_vertex(plan, inputs)?,
        };
        self.known.extend(identity.map(|i| (i, vertex)));
        self.identities.next_is(vertex);
        Ok(vertex)
    }

    fn add_vertex(&mut self, plan: &StreamPlan, inputs: Vec<VertexId>) -> Result<VertexId> {
        match &plan.node {
            StreamNode::TableSourceScan {
                source,
                projection,
                pushed,
                ..
            } => {
                let readers = match (source.pushdown(), pushed) {
                    (Some(source), Some(pushed)) => source.readers(&pushed_scan(plan, pushed))?,
                    _ => source.readers(projection)?,
                };
                let parallelism = source.max_parallelism().clamp(1, self.parallelism);
                Ok(self.vertex(plan, VertexKind::Source(readers), parallelism, Vec::new()))
            }
            StreamNode::Values { rows } => {
                let batch = constant_batch(rows, &plan.schema, self.config)?;
                Ok(self.vertex(plan, VertexKind::Source(Values::new(batch)), 1, Vec::new()))
            }
            StreamNode::Union => {
                let parallelism = inputs
                    .iter()
                    .map(|i| self.graph.vertex(*i).parallelism)
                    .max()
                    .unwrap_or(1);
                let edges = inputs
                    .into_iter()
                    .zip(&plan.inputs)
                    .map(|(from, input)| {
                        let same = self.graph.vertex(from).parallelism == parallelism;
                        let distribution = if same {
                            Distribution::Forward
                        } else {
                            spread(input)
                        };
                        Input {
                            from,
                            port: 0,
                            distribution,
                        }
                    })
                    .collect();
                let factory: OperatorFactory = Arc::new(|_: &OperatorContext| {
                    Ok(Box::new(crate::operators::union::Union) as Box<dyn Operator>)
                });
                Ok(self.vertex(plan, VertexKind::Operator(factory), parallelism, edges))
            }
            node => {
                let factory = self.operator(plan)?;
                let keys = keyed_by(node);
                let (parallelism, edges) = self.edges(&inputs, keys);
                let id = self.vertex(plan, VertexKind::Operator(factory), parallelism, edges);
                if let StreamNode::WatermarkAssigner { options, .. } = node
                    && let Some(alignment) = time::alignment(options)?
                {
                    self.graph.align(id, alignment);
                }
                Ok(id)
            }
        }
    }

    /// Watermarks of a source that has splits are made in the source, split by split: then there is
    /// no operator for them.
    fn add_with_split_watermarks(&mut self, plan: &StreamPlan) -> Result<Option<VertexId>> {
        let StreamNode::WatermarkAssigner {
            rowtime,
            watermark,
            options,
        } = &plan.node
        else {
            return Ok(None);
        };
        let input = plan.input();
        let (scan, calc) = match &input.node {
            StreamNode::TableSourceScan { .. } => (input, None),
            StreamNode::Calc { projection, .. } => (input.input(), Some(projection)),
            _ => return Ok(None),
        };
        let StreamNode::TableSourceScan {
            source,
            projection,
            pushed,
            ..
        } = &scan.node
        else {
            return Ok(None);
        };
        // Alignment looks at the operator.
        if time::alignment(options)?.is_some() {
            return Ok(None);
        }
        let readers = match (source.pushdown(), pushed) {
            (Some(source), Some(pushed)) => source.split_readers(&pushed_scan(scan, pushed))?,
            _ => source.split_readers(projection)?,
        };
        let Some(readers) = readers else {
            return Ok(None);
        };
        let parts = [scan, input, plan];
        let identity: Option<Vec<String>> = parts
            .iter()
            .map(|part| self.sharing.identity(part, &[]))
            .collect();
        let identity = identity.map(|parts| parts.join(" "));
        if let Some(known) = identity.as_ref().and_then(|i| self.known.get(i)) {
            return Ok(Some(*known));
        }
        // What the assigner reads, in terms of the source's columns.
        let below = |expr: Expr| match calc {
            Some(columns) => expr.replace_columns(&|i, _| columns[i].clone()),
            None => expr,
        };
        let spec = self.watermark_spec(*rowtime, watermark, options);
        let spec = SplitWatermarksSpec {
            rowtime: below(Expr::column(
                *rowtime,
                input.schema.columns[*rowtime].data_type.clone(),
            )),
            watermark: below(spec.watermark),
            interval_ms: spec.interval_ms,
            idle_timeout_ms: spec.idle_timeout_ms,
            exact: spec.exact,
        };
        let environment = self.config.environment();
        let readers = SplitWatermarks::new(readers, spec, environment, Arc::new(SystemClock));
        let parallelism = source.max_parallelism().clamp(1, self.parallelism);
        let kind = VertexKind::Source(Arc::new(readers));
        let mut vertex = self.vertex(scan, kind, parallelism, Vec::new());
        if calc.is_some() {
            let factory = self.operator(input)?;
            let (parallelism, edges) = self.edges(&[vertex], None);
            let kind = VertexKind::Operator(factory);
            vertex = self.vertex(input, kind, parallelism, edges);
        }
        self.known.extend(identity.map(|i| (i, vertex)));
        Ok(Some(vertex))
    }

    /// Parallelism and edges of an operator: `None` for one that takes rows where they are.
    fn edges(&self, inputs: &[VertexId], keys: Option<Vec<Vec<usize>>>) -> (usize, Vec<Input>) {
        let Some(keys) = keys else {
            let from = inputs[0];
            let parallelism = self.graph.vertex(from).parallelism;
            return (
                parallelism,
                vec![Input {
                    from,
                    port: 0,
                    distribution: Distribution::Forward,
                }],
            );
        };
        let single = keys.iter().any(Vec::is_empty);
        let parallelism = if single { 1 } else { self.parallelism };
        let edges = inputs
            .iter()
            .zip(keys)
            .enumerate()
            .map(|(port, (from, keys))| {
                let upstream = self.graph.vertex(*from).parallelism;
                let distribution = if single && upstream == 1 {
                    Distribution::Forward
                } else if single {
                    Distribution::Single
                } else {
                    Distribution::Hash(keys)
                };
                Input {
                    from: *from,
                    port,
                    distribution,
                }
            })
            .collect();
        (parallelism, edges)
    }

    fn vertex(
        &mut self,
        plan: &StreamPlan,
        kind: VertexKind,
        parallelism: usize,
        inputs: Vec<Input>,
    ) -> VertexId {
        let description = super::explain::line(plan);
        self.graph.add(Vertex {
            name: plan.node.noun().into(),
            // given when the graph is whole
            uid: String::new(),
            description,
            signature: String::new(),
            mode: Some(plan.mode),
            kind,
            schema: plan.schema.clone(),
            parallelism,
            inputs,
        })
    }

    fn operator(&self, plan: &StreamPlan) -> Result<OperatorFactory> {
        if let Some(factory) = time::operator(plan, self.config) {
            return Ok(factory);
        }
        let input = plan.input();
        let updates_before = plan.mode.update_before;
        Ok(match &plan.node {
            StreamNode::Calc {
                condition,
                projection,
            } => {
                let spec = CalcSpec {
                    condition: condition.clone(),
                    projection: projection.clone(),
                    schema: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Calc::new(&spec, context)?)))
            }
            StreamNode::WatermarkAssigner {
                rowtime,
                watermark,
                options,
            } => {
                let spec = self.watermark_spec(*rowtime, watermark, options);
                factory(move |context| Ok(Box::new(WatermarkAssigner::new(&spec, context)?)))
            }
            StreamNode::Expand { sets } => {
                let width = plan.schema.len() - 1;
                let sets = sets
                    .iter()
                    .map(|(nulled, id)| ExpandSet {
                        columns: (0..width)
                            .map(|i| (!nulled.contains(&i)).then_some(i))
                            .collect(),
                        id: *id,
                    })
                    .collect();
                let spec = ExpandSpec {
                    sets,
                    schema: plan.schema.clone(),
                };
                factory(move |_| Ok(Box::new(Expand::new(&spec))))
            }
            StreamNode::GroupAggregate { keys, calls, ttl } => {
                let spec = GroupAggregateSpec {
                    input_types: input.schema.types(),
                    group_keys: keys.clone(),
                    aggregates: aggregate_calls(calls),
                    input_retracts: !input.mode.is_append(),
                    emit_update_before: updates_before,
                    ttl_ms: *ttl,
                    mini_batch: self.mini_batch(calls),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(GroupAggregate::new(spec.clone(), context)?)))
            }
            StreamNode::Join {
                join_type,
                left,
                right,
                null_safe,
                condition,
            } => {
                let side = |side: &JoinSide, input: &StreamPlan| JoinInput {
                    schema: input.schema.clone(),
                    keys: side.keys.clone(),
                    unique_key: side.unique_key.clone(),
                    updates_in_pairs: input.mode.update_before || !input.mode.update_after,
                    ttl_ms: side.ttl.unwrap_or(0),
                };
                let spec = JoinSpec {
                    join_type: *join_type,
                    left: side(left, &plan.inputs[0]),
                    right: side(right, &plan.inputs[1]),
                    null_safe: null_safe.clone(),
                    condition: condition.clone(),
                    mini_batch: self
                        .config
                        .mini_batch()
                        .map(|(size, latency_ms)| BundleLimits { size, latency_ms }),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Join::new(spec.clone(), context)?)))
            }
            StreamNode::LookupJoin(node) => {
                let spec = LookupJoinSpec {
                    join_type: node.join_type,
                    input: input.schema.clone(),
                    table: node.lookup.clone(),
                    right: node.right.clone(),
                    condition: node.condition.clone(),
                    asynchronous: node.asynchronous,
                    materialize: node.materialize.clone(),
                    ttl_ms: self.config.state_ttl(),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(LookupJoin::new(&spec, context)?)))
            }
            StreamNode::Correlate {
                call,
                kind,
                condition,
            } => {
                let width = input.schema.len();
                let table: Vec<usize> = (width..plan.schema.len()).collect();
                let spec = CorrelateSpec {
                    input: input.schema.clone(),
                    call: match call.clone() {
                        logical::TableCall::Unnest {
                            collection,
                            ordinality,
                        } => CorrelateCall::Unnest {
                            collection,
                            ordinality,
                        },
                        logical::TableCall::Function { function, args } => {
                            CorrelateCall::Function { function, args }
                        }
                    },
                    table: plan.schema.project(&table),
                    left: *kind == logical::JoinKind::Left,
                    condition: condition.clone(),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Correlate::new(spec.clone(), context)?)))
            }
            StreamNode::OverAggregate {
                partition,
                order,
                frame,
                calls,
            } => {
                let spec = OverAggregateSpec {
                    input: input.schema.clone(),
                    partition_by: partition.clone(),
                    order_by: order.clone(),
                    frame: *frame,
                    calls: calls.clone(),
                    ttl_ms: self.config.state_ttl(),
                    output: plan.schema.clone(),
                };
                factory(move |context| over_aggregate(&spec, context))
            }
            StreamNode::Rank {
                partition,
                order,
                start,
                end,
                output_number,
                strategy,
                ..
            } => {
                let spec = RankSpec {
                    schema: input.schema.clone(),
                    partition_by: partition.clone(),
                    order_by: sort_columns(order),
                    strategy: strategy.clone(),
                    rank_start: *start,
                    rank_end: match end {
                        logical::RankEnd::Constant(n) => RankEnd::Constant(*n),
                        logical::RankEnd::Variable(i) => RankEnd::Column(*i),
                    },
                    output_rank: *output_number,
                    generate_update_before: updates_before,
                    ttl_ms: self.config.state_ttl(),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Rank::new(&spec, context)?)))
            }
            StreamNode::Deduplicate {
                key,
                order,
                keep,
                insert_only,
            } => {
                let spec = DeduplicateSpec {
                    schema: input.schema.clone(),
                    key: key.clone(),
                    order: *order,
                    keep: *keep,
                    insert_only: *insert_only,
                    generate_update_before: updates_before,
                    generate_insert: self.config.bool(
                        "table.exec.deduplicate.insert-update-after-sensitive-enabled",
                        true,
                    ),
                    ttl_ms: self.config.state_ttl(),
                    mini_batch: self.config.mini_batch().map(|(size, _)| size),
                };
                factory(move |context| deduplicate(&spec, context))
            }
            StreamNode::TemporalSort { keys } => {
                let (first, rest) = keys
                    .split_first()
                    .ok_or_else(|| Error::internal("no sort key"))?;
                let spec = TemporalSortSpec {
                    schema: input.schema.clone(),
                    rowtime: input.schema.columns[first.column]
                        .is_rowtime()
                        .then_some(first.column),
                    order_by: sort_columns(rest),
                };
                factory(move |context| Ok(Box::new(TemporalSort::new(&spec, context)?)))
            }
            StreamNode::Match { spec } => {
                let spec = MatchRecognizeSpec {
                    input: input.schema.clone(),
                    pattern: Arc::clone(spec),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(MatchRecognize::new(&spec, context)?)))
            }
            StreamNode::ChangelogNormalize { key, filter } => {
                let spec = ChangelogNormalizeSpec {
                    schema: input.schema.clone(),
                    key: key.clone(),
                    filter: filter.clone(),
                    generate_update_before: updates_before,
                    ttl_ms: self.config.state_ttl(),
                };
                let mini_batch = self.config.mini_batch();
                factory(move |context| {
                    let operator = ChangelogNormalize::new(&spec, context)?;
                    Ok(match mini_batch {
                        Some((size, _)) => {
                            Box::new(LastPerKey::new(operator, &spec.schema, &spec.key, size)?)
                        }
                        None => Box::new(operator) as Box<dyn Operator>,
                    })
                })
            }
            StreamNode::DropUpdateBefore => factory(move |_| Ok(Box::new(DropUpdateBefore))),
            StreamNode::ConstraintEnforcer => {
                let spec = constraint_spec_of(&plan.schema, self.config);
                factory(move |context| Ok(Box::new(ConstraintEnforcer::new(spec.clone(), context))))
            }
            StreamNode::SinkUpsertMaterializer {
                primary_key,
                upsert_key,
                action,
            } => {
                let spec = SinkUpsertMaterializerSpec {
                    schema: input.schema.clone(),
                    primary_key: primary_key.clone(),
                    upsert_key: upsert_key.clone(),
                    ttl_ms: self.config.state_ttl(),
                };
                let strategy = match action {
                    ConflictAction::Deduplicate => {
                        return Ok(factory(move |context| {
                            Ok(Box::new(SinkUpsertMaterializer::new(&spec, context)?))
                        }));
                    }
                    ConflictAction::Error => ConflictStrategy::Error,
                    ConflictAction::Nothing => ConflictStrategy::Nothing,
                };
                factory(move |context| {
                    let operator =
                        WatermarkCompactingSinkMaterializer::new(&spec, strategy, context)?;
                    Ok(Box::new(operator))
                })
            }
            other => {
                return Err(Error::internal(format!("{} is no operator", other.noun())));
            }
        })
    }

    fn watermark_spec(
        &self,
        rowtime: usize,
        watermark: &Expr,
        options: &indexmap::IndexMap<String, String>,
    ) -> WatermarkAssignerSpec {
        let idle = options
            .get("scan.watermark.idle-timeout")
            .and_then(|t| crate::config::parse_duration(t))
            .or_else(|| self.config.duration_ms("table.exec.source.idle-timeout"))
            .unwrap_or(0);
        WatermarkAssignerSpec {
            rowtime,
            watermark: watermark.clone(),
            interval_ms: self.config.watermark_interval_ms(options),
            idle_timeout_ms: idle,
            exact: self.reads_watermark,
        }
    }

    fn mini_batch(&self, calls: &[logical::AggregateCall]) -> Option<MiniBatch> {
        let (size, latency_ms) = self.config.mini_batch()?;
        let one_phase = self
            .config
            .is("table.optimizer.agg-phase-strategy", "ONE_PHASE");
        let two_phase = !one_phase && calls.iter().all(|c| c.function.merges_in_flink());
        Some(MiniBatch {
            size,
            latency_ms,
            two_phase,
        })
    }
}

/// What a scan asks of its source.
fn pushed_scan(scan: &StreamPlan, pushed: &PushedFields) -> PushedScan {
    PushedScan {
        schema: scan.schema.to_arrow(),
        fields: pushed.fields.clone(),
        filter: pushed.filter.clone(),
    }
}

/// How the rows of a plan are spread over more subtasks, whoever reads them: the changes of one row
/// keep their order.
fn spread(plan: &StreamPlan) -> Distribution {
    if plan.mode.is_append() {
        return Distribution::Rebalance;
    }
    let key = upsert_keys(plan).into_iter().next();
    // without a key a withdrawal has all values of the row that it withdraws
    Distribution::Hash(key.unwrap_or_else(|| (0..plan.schema.len()).collect()))
}

fn factory(
    make: impl Fn(&OperatorContext) -> Result<Box<dyn Operator>> + Send + Sync + 'static,
) -> OperatorFactory {
    Arc::new(make)
}

/// The columns by which an operator's inputs are spread; `None` for one that takes rows where they
/// are; an empty list for all rows in one place.
fn keyed_by(node: &StreamNode) -> Option<Vec<Vec<usize>>> {
    match node {
        StreamNode::GroupAggregate { keys, .. }
        | StreamNode::WindowAggregate { keys, .. }
        | StreamNode::Rank {
            partition: keys, ..
        }
        | StreamNode::Deduplicate { key: keys, .. }
        | StreamNode::ChangelogNormalize { key: keys, .. }
        | StreamNode::SinkUpsertMaterializer {
            primary_key: keys, ..
        } => Some(vec![keys.clone()]),
        StreamNode::Join { left, right, .. } => Some(vec![left.keys.clone(), right.keys.clone()]),
        StreamNode::IntervalJoin { keys, .. }
        | StreamNode::WindowJoin { keys, .. }
        | StreamNode::TemporalJoin { keys, .. } => {
            Some(vec![keys.left.clone(), keys.right.clone()])
        }
        StreamNode::WindowRank {
            partition: keys, ..
        }
        | StreamNode::WindowDeduplicate { key: keys, .. }
        | StreamNode::OverAggregate {
            partition: keys, ..
        } => Some(vec![keys.clone()]),
        StreamNode::Match { spec } => Some(vec![spec.partition.clone()]),
        StreamNode::LookupJoin(node) => node.spread_by().map(|keys| vec![keys]),
        StreamNode::TemporalSort { .. } => Some(vec![Vec::new()]),
        StreamNode::WindowTableFunction {
            windowing,
            partition,
            ..
        } if matches!(windowing.kind, WindowKind::Session { .. }) => Some(vec![partition.clone()]),
        _ => None,
    }
}

/// What the operators take of a call.
pub(crate) fn aggregate_calls(calls: &[logical::AggregateCall]) -> Vec<aggregates::AggregateCall> {
    calls
        .iter()
        .map(|c| aggregates::AggregateCall {
            function: c.function.clone(),
            args: c.args.clone(),
            filter: c.filter,
            distinct: c.distinct,
        })
        .collect()
}

/// What the operators take of an order.
pub(crate) fn sort_columns(keys: &[SortKey]) -> Vec<SortColumn> {
    keys.iter()
        .map(|k| SortColumn {
            column: k.column,
            descending: k.descending,
            nulls_first: k.nulls_first,
        })
        .collect()
}

/// What the constraint enforcer of a sink checks.
pub(crate) fn constraint_spec(
    schema: &Schema,
    table: &TableDefinition,
    config: &Configuration,
) -> ConstraintEnforcerSpec {
    let mut declared = schema.clone();
    for column in &mut declared.columns {
        if let Some(definition) = table.column(&column.name) {
            column.data_type = definition.data_type.clone();
        }
    }
    constraint_spec_of(&declared, config)
}

fn constraint_spec_of(schema: &Schema, config: &Configuration) -> ConstraintEnforcerSpec {
    ConstraintEnforcerSpec {
        schema: schema.clone(),
        not_null: if config.is("table.exec.sink.not-null-enforcer", "DROP") {
            NotNullEnforcer::Drop
        } else {
            NotNullEnforcer::Error
        },
        length: match config.get("table.exec.sink.type-length-enforcer") {
            Some(v) if v.eq_ignore_ascii_case("TRIM_PAD") => TypeLengthEnforcer::TrimPad,
            Some(v) if v.eq_ignore_ascii_case("ERROR") => TypeLengthEnforcer::Error,
            _ => TypeLengthEnforcer::Ignore,
        },
        nested: NestedEnforcer::Ignore,
        key_of_deletes: None,
    }
}

fn reads_watermark(plan: &StreamPlan) -> bool {
    let calls = |e: &Expr| {
        e.any(&mut |e| match &e.kind {
            crate::expr::ExprKind::Call { function, .. } => function.name() == "CURRENT_WATERMARK",
            _ => false,
        })
    };
    let here = match &plan.node {
        StreamNode::Calc {
            condition,
            projection,
        } => condition.iter().chain(projection).any(calls),
        _ => false,
    };
    here || plan.inputs.iter().any(reads_watermark)
}

/// Constant rows as a batch.
fn constant_batch(
    rows: &[Vec<Expr>],
    schema: &Schema,
    config: &Configuration,
) -> Result<RecordBatch> {
    let environment = config.environment();
    let one = RecordBatch::try_new_with_options(
        Arc::new(arrow::datatypes::Schema::empty()),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    let context = EvalContext {
        rows: 1,
        now_ms: 0,
        watermark: i64::MIN,
    };
    let arrow = schema.to_arrow();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (i, field) in arrow.fields().iter().enumerate() {
        let mut values: Vec<ArrayRef> = Vec::new();
        for row in rows {
            let compiled = Compiled::new(&row[i], &environment)?;
            values.push(compiled.evaluate_array(&one, &context)?);
        }
        let column = if values.is_empty() {
            arrow::array::new_empty_array(field.data_type())
        } else {
            let parts: Vec<&dyn arrow::array::Array> = values.iter().map(AsRef::as_ref).collect();
            arrow::compute::concat(&parts)?
        };
        columns.push(column);
    }
    Ok(RecordBatch::try_new_with_options(arrow, columns, &options)?)
}
