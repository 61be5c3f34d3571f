//! Builds the tasks of one attempt at a job: subtasks, the channels between them, and what they share.

use std::ops::Range;
use std::sync::Arc;

use super::channel::Channel;
use super::check::EdgeChecker;
use super::control::Signal;
use super::cut::{Cut, cut, is_direct};
use super::exchange::Exchange;
use super::job::JobConfig;
use super::metrics::{OperatorMetrics, VertexMetrics};
use super::node::{Body, Edge, Inputs, Node};
use super::step::StepGate;
use super::task::{ChannelSlot, Shared, SourceSlot, Task};
use crate::error::Result;
use crate::graph::{Graph, Input, Vertex, VertexId, VertexKind};
use crate::operators::OperatorContext;

/// The counters of every subtask of every vertex, in the order of the graph.
pub(super) fn vertex_metrics(graph: &Graph) -> Vec<VertexMetrics> {
    let mut metrics = Vec::new();
    for (vertex, v) in graph.vertices().iter().enumerate() {
        let description: Arc<str> = v.description.as_str().into();
        metrics.extend((0..v.parallelism).map(|subtask| VertexMetrics {
            vertex,
            name: v.name.clone(),
            description: Arc::clone(&description),
            subtask,
            metrics: Arc::new(OperatorMetrics::default()),
        }));
    }
    metrics
}

/// The tasks of `graph`, ready to run.
pub(super) fn build(
    graph: &Graph,
    config: &JobConfig,
    metrics: &Arc<Vec<VertexMetrics>>,
) -> Result<Vec<Task>> {
    let bodies = bodies(graph, config, metrics)?;
    let steps: Vec<_> = bodies
        .iter()
        .filter_map(|body| match body {
            Body::Source(reader) => Some(reader.step()),
            _ => None,
        })
        .collect();
    let latency = config.mini_batch_latency.map(|l| l.as_millis());
    let shared = Arc::new(Shared {
        control: config.control.clone(),
        clock: Arc::clone(&config.clock),
        batch_size: config.batch_size.max(1),
        mini_batch_latency_ms: latency.map(|l| i64::try_from(l).unwrap_or(i64::MAX)),
        state_memory_limit: config.state_memory_limit,
        gate: Arc::new(StepGate::new(&steps)),
        metrics: Arc::clone(metrics),
    });
    let mut builder = Builder {
        graph,
        config,
        cut: cut(graph)?,
        tasks: Vec::new(),
        first_task: Vec::new(),
        place: vec![0; graph.vertices().len()],
        shared,
    };
    builder.add_tasks();
    builder.add_nodes(bodies);
    Ok(builder.tasks)
}

/// What every subtask of every vertex does, in the order of the metrics.
fn bodies(graph: &Graph, config: &JobConfig, metrics: &[VertexMetrics]) -> Result<Vec<Body>> {
    let make = |own: &VertexMetrics| {
        let vertex = &graph.vertices()[own.vertex];
        body(vertex, own, config).map_err(|e| e.context(vertex.description.clone()))
    };
    metrics.iter().map(make).collect()
}

fn body(vertex: &Vertex, own: &VertexMetrics, config: &JobConfig) -> Result<Body> {
    let (subtask, parallelism) = (own.subtask, vertex.parallelism);
    Ok(match &vertex.kind {
        VertexKind::Source(factory) => Body::Source(factory.create(subtask, parallelism, &[])?),
        VertexKind::Operator(factory) => Body::Operator(factory(&OperatorContext {
            subtask,
            parallelism,
            batch_size: config.batch_size.max(1),
            environment: Arc::clone(&config.environment),
            metrics: Arc::clone(&own.metrics),
            clock: Arc::clone(&config.clock),
        })?),
        VertexKind::Sink(factory) => Body::Sink(factory.create(subtask, parallelism)?),
    })
}

struct Builder<'a> {
    graph: &'a Graph,
    config: &'a JobConfig,
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
    fn add_tasks(&mut self) {
        for vertices in &self.cut.tasks {
            self.first_task.push(self.tasks.len());
            let head = &self.graph.vertices()[vertices[0]];
            for subtask in 0..head.parallelism {
                let signal = Arc::new(Signal::default());
                self.config.control.register(&signal);
                self.tasks.push(Task {
                    name: format!("{}-{subtask}", head.name),
                    nodes: Vec::new(),
                    sources: Vec::new(),
                    channels: Vec::new(),
                    signal,
                    shared: Arc::clone(&self.shared),
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

    fn add_nodes(&mut self, bodies: Vec<Body>) {
        let metrics = Arc::clone(&self.shared.metrics);
        let mut readers = 0;
        for (own, body) in metrics.iter().zip(bodies) {
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
            let ports = self.ports(own.vertex);
            self.tasks[task].nodes.push(Node {
                vertex: VertexId(own.vertex),
                description: Arc::clone(&own.description),
                body,
                inputs: Inputs::new(ports),
                edges: Vec::new(),
                metrics: Arc::clone(&own.metrics),
                watermark: i64::MIN,
                checker: EdgeChecker::new(&self.graph.vertices()[own.vertex], self.config.checks),
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
        match self.is_direct(to, input) {
            true => 1,
            false => self.graph.vertex(input.from).parallelism,
        }
    }

    fn ports(&self, to: usize) -> Vec<usize> {
        let inputs = self.graph.vertices()[to].inputs.iter();
        let ports = |i: &Input| std::iter::repeat_n(i.port, self.width(to, i));
        inputs.flat_map(ports).collect()
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
            let channel = Channel::new(&sender, &receiver.signal, &self.config.control);
            let channel = Arc::new(channel);
            receiver.channels.push(ChannelSlot {
                channel: Arc::clone(&channel),
                node,
                input: number,
                ended: false,
            });
            channels.push(channel);
        }
        Edge::Exchange(Exchange::new(
            &input.distribution,
            producer,
            channels,
            self.config.max_parallelism,
            Arc::clone(&self.shared.gate),
        ))
    }
}
