//! The stream plan as a graph of operators. [`operator`] says which one a node of the plan is, [`time`]
//! does for those bounded by time; [`share`] finds what occurs more than once, and [`identity`] says how
//! a vertex is found again in a checkpoint.

mod identity;
mod operator;
mod share;
mod time;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};

use self::identity::Identities;
use self::operator::factory;
pub(crate) use self::operator::{aggregate_calls, constraint_spec, sort_columns};
use self::share::Sharing;
use super::logical::PushedFields;
use super::physical::{StreamNode, StreamPlan, upsert_keys};
use crate::config::Configuration;
use crate::connectors::SinkWriterFactory;
use crate::connectors::pushdown::PushedScan;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::functions::EvalContext;
use crate::graph::{Distribution, Graph, Input, Vertex, VertexId, VertexKind};
use crate::operators::over_aggregate::{OverFrame, OverOrder};
use crate::operators::split_watermarks::{SplitWatermarks, SplitWatermarksSpec};
use crate::operators::union::Union;
use crate::operators::values::Values;
use crate::operators::windowing::WindowKind;
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
                let factory = factory(|_| Ok(Box::new(Union)));
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

/// Whether what comes out of the plan depends on the watermark after every single row: an expression
/// reads it, or state is given up by it whose rows would otherwise make others late.
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
        StreamNode::OverAggregate {
            order: OverOrder::Rowtime(_),
            frame: OverFrame::Range(Some(_)),
            ..
        } => true,
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
