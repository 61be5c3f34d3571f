//! One subtask of a vertex inside a task, and how events run through the nodes of the task.
//!
//! The nodes of a task stand in topological order. Whatever a node emits is handed at once to the
//! nodes behind it, depth first: when an emit returns, everything behind has seen the rows. So a
//! task holds one batch in flight, and its order is that of a single-threaded Flink job.

use std::sync::Arc;

use super::check::EdgeChecker;
use super::clock::monotonic_ns;
use super::combine::{Combined, WatermarkCombiner};
use super::exchange::Exchange;
use super::metrics::OperatorMetrics;
use super::output::{Downstream, Output, Status};
use crate::changelog::ChangeBatch;
use crate::connectors::{SinkWriter, SourceReader};
use crate::error::{Error, Result};
use crate::graph::VertexId;
use crate::operators::{Operator, StateSize};

/// What travels on an edge.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Batch(ChangeBatch),
    Watermark(i64),
    Status(Status),
    /// The rows before it belong to this checkpoint. Between tasks only.
    Barrier(u64),
    /// Nothing follows.
    End,
}

/// What a node does.
pub(super) enum Body {
    Source(Box<dyn SourceReader>),
    Operator(Box<dyn Operator>),
    Sink(Box<dyn SinkWriter>),
}

/// Where the output of a node goes.
pub(super) enum Edge {
    /// To a node of the same task, by a call.
    Local { node: usize, input: usize },
    /// To other tasks.
    Exchange(Exchange),
}

/// The inputs of a node: one for each local edge and for each channel.
pub(super) struct Inputs {
    /// The operator's port of each input.
    ports: Vec<usize>,
    combiner: WatermarkCombiner,
    /// Which have ended; a finished watermark comes before the end.
    ended: Vec<bool>,
}

impl Inputs {
    /// `watermarks` are those that the inputs have sent before, `combined` is what came of them.
    pub(super) fn new(
        ports: Vec<usize>,
        watermarks: &[Option<i64>],
        combined: Option<i64>,
    ) -> Self {
        Self {
            combiner: WatermarkCombiner::restored(watermarks, combined),
            ended: vec![false; ports.len()],
            ports,
        }
    }

    pub(super) fn watermark(&self) -> i64 {
        self.combiner.watermark()
    }

    fn port_ended(&self, port: usize) -> bool {
        let mut inputs = self.ports.iter().zip(&self.ended);
        inputs.all(|(p, ended)| *p != port || *ended)
    }

    fn all_ended(&self) -> bool {
        self.ended.iter().all(|e| *e)
    }
}

/// A subtask of a vertex.
pub(super) struct Node {
    pub(super) vertex: VertexId,
    pub(super) subtask: usize,
    pub(super) description: Arc<str>,
    pub(super) body: Body,
    pub(super) inputs: Inputs,
    pub(super) edges: Vec<Edge>,
    pub(super) metrics: Arc<OperatorMetrics>,
    /// The last watermark that went out.
    pub(super) watermark: i64,
    pub(super) checker: Option<EdgeChecker>,
    /// The restored checkpoint was taken after the end: nothing is left to do.
    pub(super) over: bool,
}

impl Node {
    /// Whether nothing will happen here any more.
    pub(super) fn is_done(&self) -> bool {
        !self.inputs.ended.is_empty() && self.inputs.all_ended()
    }

    pub(super) fn state_size(&self) -> StateSize {
        match &self.body {
            Body::Operator(operator) => operator.state_size(),
            Body::Source(_) | Body::Sink(_) => StateSize::default(),
        }
    }

    /// Runs `call` with the output of this node; errors of this node, not of those behind it, get
    /// its description. Answers how long it took, nodes behind included, ns.
    fn run<F>(&mut self, tail: Tail<'_>, call: F) -> Result<u64>
    where
        F: FnOnce(&mut Body, &mut Output<'_>) -> Result<()>,
    {
        let start = monotonic_ns();
        let mut behind = Behind {
            edges: &mut self.edges,
            watermark: &mut self.watermark,
            metrics: &self.metrics,
            checker: self.checker.as_mut(),
            tail,
            nested_ns: 0,
            failed: false,
        };
        let result = call(&mut self.body, &mut Output::new(&mut behind));
        let (nested, failed) = (behind.nested_ns, behind.failed);
        let total = monotonic_ns() - start;
        self.metrics.busy_ns.add(total.saturating_sub(nested));
        match result {
            Ok(()) => Ok(total),
            Err(e) if failed => Err(e),
            Err(e) => Err(e.context(&*self.description)),
        }
    }

    fn handle(&mut self, input: usize, event: Event, mut tail: Tail<'_>) -> Result<u64> {
        match event {
            Event::Batch(batch) => {
                self.metrics.records_in.add(batch.len() as u64);
                let port = self.inputs.ports[input];
                self.run(tail, |body, out| match body {
                    Body::Operator(operator) => operator.process(port, batch, out),
                    Body::Sink(writer) => writer.write(&batch),
                    Body::Source(_) => Err(Error::internal("rows for a source")),
                })
            }
            Event::Watermark(watermark) => {
                let combined = self.inputs.combiner.on_watermark(input, watermark);
                self.apply(combined, &mut tail)
            }
            Event::Status(status) => {
                let combined = self.inputs.combiner.on_status(input, status);
                self.apply(combined, &mut tail)
            }
            Event::Barrier(_) => Err(Error::internal("a barrier within a task")),
            Event::End => self.end_input(input, &mut tail),
        }
    }

    fn apply(&mut self, combined: Combined, tail: &mut Tail<'_>) -> Result<u64> {
        let mut ns = 0;
        if combined.status == Some(Status::Active) {
            ns += self.emit(Event::Status(Status::Active), tail)?;
        }
        if let Some(watermark) = combined.watermark {
            let over = self.over;
            ns += self.run(tail.reborrow(), |body, out| match body {
                _ if over => out.watermark(watermark),
                Body::Operator(operator) => {
                    operator.flush(out)?;
                    operator.watermark(watermark, out)
                }
                Body::Sink(writer) => writer.watermark(watermark),
                Body::Source(_) => Err(Error::internal("a watermark for a source")),
            })?;
        }
        if combined.status == Some(Status::Idle) {
            ns += self.emit(Event::Status(Status::Idle), tail)?;
        }
        Ok(ns)
    }

    fn end_input(&mut self, input: usize, tail: &mut Tail<'_>) -> Result<u64> {
        let combined = self.inputs.combiner.on_end(input);
        let mut ns = self.apply(combined, tail)?;
        self.inputs.ended[input] = true;
        let port = self.inputs.ports[input];
        let port_ended = self.inputs.port_ended(port);
        let all_ended = self.inputs.all_ended();
        let over = self.over;
        ns += self.run(tail.reborrow(), |body, out| match body {
            _ if over => Ok(()),
            Body::Operator(operator) if port_ended => {
                operator.flush(out)?;
                operator.end_input(port, out)
            }
            Body::Sink(writer) if all_ended => writer.end(),
            _ => Ok(()),
        })?;
        if all_ended {
            ns += self.emit(Event::End, tail)?;
        }
        Ok(ns)
    }

    /// Sends an event to other tasks only.
    pub(super) fn send_out(&mut self, event: &Event) -> Result<()> {
        for edge in &mut self.edges {
            if let Edge::Exchange(exchange) = edge {
                exchange.send(event.clone())?;
            }
        }
        Ok(())
    }

    /// Sends an event of the runtime's own to all edges.
    fn emit(&mut self, event: Event, tail: &mut Tail<'_>) -> Result<u64> {
        send(&mut self.edges, &self.metrics, event, tail)
    }
}

fn send(
    edges: &mut [Edge],
    metrics: &OperatorMetrics,
    event: Event,
    tail: &mut Tail<'_>,
) -> Result<u64> {
    match &event {
        Event::Batch(batch) => metrics.records_out.add(batch.len() as u64),
        Event::Watermark(watermark) => metrics.current_output_watermark.set(*watermark),
        Event::Status(status) => {
            let idle = *status == Status::Idle;
            metrics.current_output_watermark.set_idle(idle);
        }
        Event::Barrier(_) | Event::End => {}
    }
    let Some((last, others)) = edges.split_last_mut() else {
        return Ok(0);
    };
    let mut ns = 0;
    for edge in others {
        ns += edge.send(event.clone(), tail)?;
    }
    Ok(ns + last.send(event, tail)?)
}

impl Edge {
    fn send(&mut self, event: Event, tail: &mut Tail<'_>) -> Result<u64> {
        match self {
            Self::Local { node, input } => tail.deliver(*node, *input, event),
            Self::Exchange(exchange) => exchange.send(event),
        }
    }
}

/// The nodes behind a node: those of the task from `first` on.
pub(super) struct Tail<'a> {
    nodes: &'a mut [Node],
    first: usize,
}

impl<'a> Tail<'a> {
    pub(super) fn new(nodes: &'a mut [Node]) -> Self {
        Self { nodes, first: 0 }
    }

    fn reborrow(&mut self) -> Tail<'_> {
        Tail {
            nodes: self.nodes,
            first: self.first,
        }
    }

    /// Node `node` and those behind it.
    fn split(&mut self, node: usize) -> (&mut Node, Tail<'_>) {
        let (head, nodes) = self.nodes.split_at_mut(node + 1 - self.first);
        let first = node + 1;
        let node = head.last_mut().expect("edges lead to later nodes");
        (node, Tail { nodes, first })
    }

    /// Hands an event to input `input` of node `node`.
    pub(super) fn deliver(&mut self, node: usize, input: usize, event: Event) -> Result<u64> {
        let (node, tail) = self.split(node);
        node.handle(input, event, tail)
    }

    /// Sends what source `node` has read.
    pub(super) fn emit(&mut self, node: usize, event: Event) -> Result<()> {
        let (node, mut tail) = self.split(node);
        if let Event::Watermark(watermark) = event {
            if watermark <= node.watermark {
                return Ok(());
            }
            node.watermark = watermark;
        }
        if let (Event::Batch(batch), Some(checker)) = (&event, &mut node.checker) {
            let checked = checker.batch(batch);
            checked.map_err(|e| e.context(&*node.description))?;
        }
        node.emit(event, &mut tail).map(|_| ())
    }

    /// Calls the operator of node `node`, if it is one.
    pub(super) fn call<F>(&mut self, node: usize, call: F) -> Result<()>
    where
        F: FnOnce(&mut dyn Operator, &mut Output<'_>) -> Result<()>,
    {
        let (node, tail) = self.split(node);
        node.run(tail, |body, out| match body {
            Body::Operator(operator) => call(operator.as_mut(), out),
            Body::Source(_) | Body::Sink(_) => Ok(()),
        })
        .map(|_| ())
    }
}

/// What an operator sees as its downstream.
struct Behind<'a> {
    edges: &'a mut [Edge],
    watermark: &'a mut i64,
    metrics: &'a OperatorMetrics,
    checker: Option<&'a mut EdgeChecker>,
    tail: Tail<'a>,
    nested_ns: u64,
    failed: bool,
}

impl Behind<'_> {
    fn send(&mut self, event: Event) -> Result<()> {
        match send(self.edges, self.metrics, event, &mut self.tail) {
            Ok(ns) => {
                self.nested_ns += ns;
                Ok(())
            }
            Err(e) => {
                self.failed = true;
                Err(e)
            }
        }
    }
}

impl Downstream for Behind<'_> {
    fn batch(&mut self, batch: ChangeBatch) -> Result<()> {
        if let Some(checker) = &mut self.checker {
            checker.batch(&batch)?;
        }
        self.send(Event::Batch(batch))
    }

    fn watermark(&mut self, watermark: i64) -> Result<()> {
        if self.checker.is_some() {
            EdgeChecker::watermark(*self.watermark, watermark)?;
        }
        if watermark <= *self.watermark {
            return Ok(());
        }
        *self.watermark = watermark;
        self.send(Event::Watermark(watermark))
    }

    fn status(&mut self, status: Status) -> Result<()> {
        self.send(Event::Status(status))
    }
}
