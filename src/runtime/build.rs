//! Builds the tasks of one attempt at a job: subtasks, the channels between them, and what they share.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;

use super::alignment::Alignments;
use super::barrier::{BarrierState, Budget, Orders};
use super::channel::Channel;
use super::check::{EdgeChecker, EdgeChecks};
use super::control::{Attempt, Signal};
use super::cut::{Cut, cut, is_direct};
use super::exchange::Exchange;
use super::held_back::HeldBack;
use super::job::{CheckpointMode, JobConfig};
use super::metrics::{OperatorMetrics, VertexMetrics};
use super::node::{Body, Edge, Inputs, Node};
use super::step::StepGate;
use super::task::{ChannelSlot, Pace, Report, Shared, SourceSlot, Task};
use crate::checkpoint::{
    Checkpoint, SubtaskSnapshot, lowest, operator_state, positions, writer_states,
};
use crate::error::Result;
use crate::graph::{Graph, Input, Vertex, VertexId, VertexKind};
use crate::operators::OperatorContext;

/// How many batches a source of an at-most-once job may hold back.
const HELD_BATCHES: usize = 64;

/// The counters of every subtask of every vertex, in the order of the graph.
pub(super) fn vertex_metrics(graph: &Graph) -> Vec<VertexMetrics> {
    let mut metrics = Vec::new();
    for (vertex, v) in graph.vertices().iter().enumerate() {
        let description: Arc<str> = v.description.as_str().into();
        let sources = graph.sources_of(VertexId(vertex)).into_iter();
        let sources: Arc<[String]> = sources
            .map(|source| graph.vertex(source).description.clone())
            .collect();
        metrics.extend((0..v.parallelism).map(|subtask| VertexMetrics {
            vertex,
            name: v.name.clone(),
            description: Arc::clone(&description),
            sources: Arc::clone(&sources),
            subtask,
            metrics: Arc::new(OperatorMetrics::default()),
        }));
    }
    metrics
}

/// A graph that fits its checkpoint.
pub(super) struct Plan<'a> {
    graph: &'a Graph,
    config: &'a JobConfig,
    checkpoint: Option<&'a Checkpoint>,
    cut: Cut,
}

impl<'a> Plan<'a> {
    /// Cuts `graph` into tasks that will take up `checkpoint`, which fits.
    pub(super) fn new(
        graph: &'a Graph,
        config: &'a JobConfig,
        checkpoint: Option<&'a Checkpoint>,
    ) -> Result<Self> {
        Ok(Self {
            graph,
            config,
            checkpoint,
            cut: cut(graph)?,
        })
    }

    fn saved(&self, vertex: VertexId) -> Option<&'a [SubtaskSnapshot]> {
        let saved = self.checkpoint?.vertex(&self.graph.uid(vertex))?;
        Some(&saved.subtasks)
    }

    /// Makes the tasks, ready to run, and what they share.
    pub(super) fn build(
        self,
        metrics: &Arc<Vec<VertexMetrics>>,
        attempt: &Attempt,
        reports: &Sender<Report>,
        epoch: u64,
    ) -> Result<(Vec<Task>, Arc<Shared>)> {
        let over = self.over();
        let body = |own: &VertexMetrics| Ok((self.body(own, attempt, reports)?, over[own.vertex]));
        let bodies: Vec<_> = metrics.iter().map(body).collect::<Result<_>>()?;
        let steps = bodies.iter().filter_map(|(body, _)| match body {
            Body::Source(reader) => Some(reader.step()),
            _ => None,
        });
        let shared = Arc::new(self.shared(attempt, &steps.collect::<Vec<_>>(), metrics));
        let checks = match self.checkpoint {
            // Rows from before the checkpoint are not known.
            Some(_) => self.config.checks.min(EdgeChecks::Cheap),
            None => self.config.checks,
        };
        let mut builder = Builder {
            graph: self.graph,
            max_parallelism: self.config.max_parallelism,
            channel_rows: self.config.channel_rows,
            checks,
            watermarks: self.watermarks(),
            place: vec![0; self.graph.vertices().len()],
            cut: self.cut,
            tasks: Vec::new(),
            first_task: Vec::new(),
            shared: Arc::clone(&shared),
        };
        builder.add_tasks(reports, epoch);
        builder.add_nodes(bodies);
        Ok((builder.tasks, shared))
    }

    fn shared(
        &self,
        attempt: &Attempt,
        steps: &[Option<u64>],
        metrics: &Arc<Vec<VertexMetrics>>,
    ) -> Shared {
        let config = self.config;
        let latency = config.mini_batch_latency.map(|l| l.as_millis());
        let checkpointing = config.checkpointing.as_ref();
        let kill = checkpointing.and_then(|c| c.kill);
        let at_least_once = checkpointing.is_some_and(|c| c.mode == CheckpointMode::AtLeastOnce);
        Shared {
            attempt: attempt.clone(),
            orders: Orders {
                budget: kill.map(|k| Budget::new(k.first_row_limit())),
                stored: AtomicU64::new(self.stored()),
                ..Orders::default()
            },
            checkpointing: checkpointing.is_some(),
            max_parallelism: config.max_parallelism,
            incremental: checkpointing.is_some_and(|c| c.incremental),
            exactly_once: !at_least_once,
            clock: Arc::clone(&config.clock),
            batch_size: config.batch_size.max(1),
            mini_batch_latency_ms: latency.map(|l| i64::try_from(l).unwrap_or(i64::MAX)),
            state_memory_limit: config.state_memory_limit,
            gate: Arc::new(StepGate::new(steps)),
            alignments: Alignments::new(self.graph, metrics),
            metrics: Arc::clone(metrics),
        }
    }

    /// The restored checkpoint, if the store has it and its keys are spread as they will be: then
    /// changes can go on from it.
    fn stored(&self) -> u64 {
        let groups = self.config.max_parallelism;
        let restored = self.checkpoint.filter(|c| c.max_parallelism == groups);
        restored.and_then(|c| c.base).unwrap_or(0)
    }

    /// What the subtask of `own` does.
    fn body(
        &self,
        own: &VertexMetrics,
        attempt: &Attempt,
        reports: &Sender<Report>,
    ) -> Result<Body> {
        let vertex = &self.graph.vertices()[own.vertex];
        let body = self.restored(vertex, own, self.saved(VertexId(own.vertex)));
        let body = body.map_err(|e| e.context(vertex.description.clone()))?;
        let mode = self.config.checkpointing.as_ref().map(|c| c.mode);
        Ok(match body {
            Body::Source(reader) if mode == Some(CheckpointMode::AtMostOnce) => {
                let limit = HELD_BATCHES * self.config.batch_size.max(1);
                let control = attempt.control().clone();
                let held = HeldBack::new(reader, limit, reports.clone(), control);
                Body::Source(Box::new(held))
            }
            body => body,
        })
    }

    /// Which vertices had done all in the checkpoint: those that had ended, and whose inputs go on
    /// where they were.
    fn over(&self) -> Vec<bool> {
        let mut over: Vec<bool> = Vec::new();
        let mut known: Vec<bool> = Vec::new();
        for (id, vertex) in self.graph.vertices().iter().enumerate() {
            let saved = self.saved(VertexId(id));
            let settled = |i: &Input| over[i.from.0] || known[i.from.0];
            let inputs = vertex.inputs.iter().all(settled);
            let is_source = matches!(vertex.kind, VertexKind::Source(_));
            let ended = saved.is_some_and(|s| s.iter().all(|s| s.ended));
            // A source says again that it has ended; so do the stateless vertices behind it.
            let passes = saved.is_none() && vertex.signature.is_empty();
            known.push(if is_source {
                saved.is_some()
            } else {
                passes && inputs
            });
            over.push(!is_source && ended && inputs);
        }
        over
    }

    /// The watermarks of the inputs and of the output of each vertex. Those of a vertex that has no
    /// part in the checkpoint are those that its inputs had sent, if it adds nothing of its own.
    fn watermarks(&self) -> Vec<(Option<i64>, Option<i64>)> {
        let mut watermarks: Vec<(Option<i64>, Option<i64>)> = Vec::new();
        for (id, vertex) in self.graph.vertices().iter().enumerate() {
            let pair = match self.saved(VertexId(id)) {
                Some(saved) => (
                    lowest(saved, |s| s.input_watermark),
                    lowest(saved, |s| s.output_watermark),
                ),
                None => {
                    let sent = vertex.inputs.iter().map(|i| watermarks[i.from.0].1);
                    let sent: Option<Vec<i64>> = sent.collect();
                    let lowest = sent.and_then(|sent| sent.into_iter().min());
                    (lowest, lowest.filter(|_| vertex.signature.is_empty()))
                }
            };
            watermarks.push(pair);
        }
        watermarks
    }

    fn restored(
        &self,
        vertex: &Vertex,
        own: &VertexMetrics,
        saved: Option<&[SubtaskSnapshot]>,
    ) -> Result<Body> {
        let (config, subtask, parallelism) = (self.config, own.subtask, vertex.parallelism);
        match &vertex.kind {
            VertexKind::Source(factory) => {
                let positions = saved.map_or_else(Vec::new, positions);
                let reader = factory.create(subtask, parallelism, &positions)?;
                Ok(Body::Source(reader))
            }
            VertexKind::Operator(factory) => {
                let mut operator = factory(&OperatorContext {
                    subtask,
                    parallelism,
                    batch_size: config.batch_size.max(1),
                    environment: Arc::clone(&config.environment),
                    metrics: Arc::clone(&own.metrics),
                    clock: Arc::clone(&config.clock),
                })?;
                if let Some(saved) = saved {
                    let groups = config.max_parallelism;
                    operator.restore(operator_state(saved, subtask, parallelism, groups)?)?;
                }
                if config.checkpointing.as_ref().is_some_and(|c| c.incremental) {
                    operator.track_changes();
                }
                Ok(Body::Operator(operator))
            }
            VertexKind::Sink(factory) => {
                let mut writer = factory.create(subtask, parallelism)?;
                let checkpointing = config.checkpointing.as_ref();
                if checkpointing.is_some_and(|c| c.mode != CheckpointMode::AtLeastOnce) {
                    writer.begin_transactions();
                }
                let states = saved.map(|s| writer_states(s, subtask, parallelism));
                if let Some(states) = states.filter(|s| !s.is_empty()) {
                    writer.restore(&states)?;
                }
                Ok(Body::Sink(writer))
            }
        }
    }
}

struct Builder<'a> {
    graph: &'a Graph,
    max_parallelism: u16,
    channel_rows: usize,
    checks: EdgeChecks,
    /// What each vertex had received and sent, lowest of its subtasks, when it was saved.
    watermarks: Vec<(Option<i64>, Option<i64>)>,
    cut: Cut,
    /// All subtasks of the first task of the cut, then those of the second, and so on.
    tasks: Vec<Task>,
    /// Where the subtasks of each task of the cut begin.
    first_task: Vec<usize>,
    /// The place of each vertex among the nodes of its task.
    place: Vec<usize>,
    shared: Arc<Shared>,
}

impl Builder<'_> {
    fn add_tasks(&mut self, reports: &Sender<Report>, epoch: u64) {
        for vertices in &self.cut.tasks {
            self.first_task.push(self.tasks.len());
            let head = &self.graph.vertices()[vertices[0]];
            for subtask in 0..head.parallelism {
                let signal = Arc::new(Signal::default());
                self.shared.attempt.register(&signal);
                self.tasks.push(Task {
                    name: format!("{}-{subtask}", head.name),
                    nodes: Vec::new(),
                    sources: Vec::new(),
                    channels: Vec::new(),
                    signal,
                    shared: Arc::clone(&self.shared),
                    barriers: BarrierState::after(epoch),
                    pace: Pace::default(),
                    index: self.tasks.len(),
                    reports: reports.clone(),
                });
            }
            for (place, vertex) in vertices.iter().enumerate() {
                self.place[*vertex] = place;
            }
        }
    }

    /// Index of the task of subtask `subtask` of vertex `vertex`.
    fn task(&self, vertex: usize, subtask: usize) -> usize {
        self.first_task[self.cut.task_of[vertex]] + subtask
    }

    fn add_nodes(&mut self, bodies: Vec<(Body, bool)>) {
        let metrics = Arc::clone(&self.shared.metrics);
        let inconsistent = Arc::default();
        let mut readers = 0;
        for (own, (body, over)) in metrics.iter().zip(bodies) {
            let task = self.task(own.vertex, own.subtask);
            let node = self.tasks[task].nodes.len();
            if matches!(body, Body::Source(_)) {
                self.tasks[task].sources.push(SourceSlot {
                    node,
                    reader: readers,
                    ended: false,
                    ready_ns: 0,
                });
                readers += 1;
            }
            let (ports, watermarks) = self.inputs(own.vertex);
            let (combined, watermark) = self.watermarks[own.vertex];
            // an attempt before this one may have been further
            let gauge = &own.metrics.current_output_watermark;
            gauge.set(watermark.unwrap_or(i64::MIN));
            gauge.set_idle(false);
            self.tasks[task].nodes.push(Node {
                vertex: VertexId(own.vertex),
                subtask: own.subtask,
                description: Arc::clone(&own.description),
                body,
                inputs: Inputs::new(ports, &watermarks, combined),
                edges: Vec::new(),
                metrics: Arc::clone(&own.metrics),
                watermark: watermark.unwrap_or(i64::MIN),
                over,
                checker: EdgeChecker::new(
                    &self.graph.vertices()[own.vertex],
                    self.checks,
                    &inconsistent,
                ),
            });
        }
        let graph = self.graph;
        for (to, vertex) in graph.vertices().iter().enumerate() {
            let mut first = 0;
            for input in &vertex.inputs {
                self.connect(to, input, first);
                first += self.width(to, input);
            }
        }
    }

    fn is_local(&self, to: usize, input: &Input) -> bool {
        self.cut.task_of[input.from.0] == self.cut.task_of[to]
    }

    fn is_direct(&self, to: usize, input: &Input) -> bool {
        let vertices = self.graph.vertices();
        is_direct(
            input,
            vertices[input.from.0].parallelism,
            vertices[to].parallelism,
        )
    }

    /// Number of producers' subtasks that a subtask of vertex `to` hears of through `input`.
    fn width(&self, to: usize, input: &Input) -> usize {
        if self.is_direct(to, input) {
            1
        } else {
            self.graph.vertex(input.from).parallelism
        }
    }

    /// The ports of the inputs of a subtask of vertex `to`, and the watermarks that came there.
    fn inputs(&self, to: usize) -> (Vec<usize>, Vec<Option<i64>>) {
        let inputs = self.graph.vertices()[to].inputs.iter();
        let input = |i: &Input| {
            let (_, sent) = self.watermarks[i.from.0];
            std::iter::repeat_n((i.port, sent), self.width(to, i))
        };
        inputs.flat_map(input).unzip()
    }

    /// Makes the edges of `input` of vertex `to`; they are the inputs from `first` on of its nodes.
    fn connect(&mut self, to: usize, input: &Input, first: usize) {
        let (from, node) = (input.from.0, self.place[to]);
        let consumers = self.graph.vertices()[to].parallelism;
        let direct = self.is_direct(to, input);
        for producer in 0..self.graph.vertex(input.from).parallelism {
            let edge = if self.is_local(to, input) {
                Edge::Local { node, input: first }
            } else if direct {
                self.exchange(to, input, producer, first, producer..producer + 1)
            } else {
                self.exchange(to, input, producer, first + producer, 0..consumers)
            };
            let sender = self.task(from, producer);
            self.tasks[sender].nodes[self.place[from]].edges.push(edge);
        }
    }

    /// The channels from a producer to `consumers`; it is their input number `number`.
    fn exchange(
        &mut self,
        to: usize,
        input: &Input,
        producer: usize,
        number: usize,
        consumers: Range<usize>,
    ) -> Edge {
        let sender = Arc::clone(&self.tasks[self.task(input.from.0, producer)].signal);
        let mut channels = Vec::with_capacity(consumers.len());
        for consumer in consumers {
            let node = self.place[to];
            let receiver = self.task(to, consumer);
            let receiver = &mut self.tasks[receiver];
            let channel = Channel::new(
                &sender,
                &receiver.signal,
                &self.shared.attempt,
                self.channel_rows,
            );
            let channel = Arc::new(channel);
            receiver.channels.push(ChannelSlot {
                channel: Arc::clone(&channel),
                node,
                input: number,
                ended: false,
                barrier: 0,
            });
            channels.push(channel);
        }
        Edge::Exchange(Exchange::new(
            &input.distribution,
            producer,
            channels,
            self.max_parallelism,
            Arc::clone(&self.shared.gate),
        ))
    }
}
