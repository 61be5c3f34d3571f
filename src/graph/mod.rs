//! The graph of operators that a plan becomes: vertices with factories, edges with a distribution.
//!
//! The graph is logical: a vertex stands for `parallelism` subtasks. [`crate::runtime`] cuts it into
//! tasks at the edges that are not [`Distribution::Forward`], and runs them. At parallelism 1 every
//! edge is a direct call and the whole graph is one task on one thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::changelog::ChangelogMode;
use crate::connectors::{SinkWriterFactory, SourceReaderFactory};
use crate::error::Result;
use crate::operators::{Operator, OperatorContext};
use crate::types::Schema;

/// Index of a vertex in its graph. Edges go from lower to higher ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexId(pub usize);

/// How rows travel from the subtasks of one vertex to those of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribution {
    /// Subtask i to subtask i.
    Forward,
    /// By the key group of these columns of the producer's rows.
    Hash(Vec<usize>),
    /// All to the only subtask.
    Single,
    /// Evenly; order between rows does not matter.
    Rebalance,
    /// All rows to every subtask.
    Broadcast,
}

/// An input of a vertex.
#[derive(Debug, Clone)]
pub struct Input {
    /// The producer.
    pub from: VertexId,
    /// The port at which the consumer's operator sees the rows. Two inputs may share a port (a
    /// union).
    pub port: usize,
    /// How rows are spread over the consumer's subtasks.
    pub distribution: Distribution,
}

/// Makes the operator of one subtask.
pub type OperatorFactory = Arc<dyn Fn(&OperatorContext) -> Result<Box<dyn Operator>> + Send + Sync>;

/// What a vertex does.
#[derive(Clone)]
pub enum VertexKind {
    /// Reads a table.
    Source(Arc<dyn SourceReaderFactory>),
    /// Transforms.
    Operator(OperatorFactory),
    /// Writes a table or hands rows to a reader.
    Sink(Arc<dyn SinkWriterFactory>),
}

/// A source, an operator or a sink.
#[derive(Clone)]
pub struct Vertex {
    /// The plan node's noun: `GroupAggregate`.
    pub name: String,
    /// The plan node's line in EXPLAIN, for errors and metrics.
    pub description: String,
    /// Stable identity for checkpoints: unchanged by new stateless nodes. A vertex that stands for
    /// several nodes has a line for each.
    pub uid: String,
    /// What must agree for state to be restored, a line `part: value` each; empty for a vertex whose
    /// state comes again by itself.
    pub signature: String,
    /// What it does.
    pub kind: VertexKind,
    /// Columns of its output (of its input for a sink).
    pub schema: Schema,
    /// The kinds that its output may contain, where the planner says so: checked in debug builds.
    pub mode: Option<ChangelogMode>,
    /// Number of subtasks.
    pub parallelism: usize,
    /// Where its rows come from; empty for a source.
    pub inputs: Vec<Input>,
}

impl fmt::Debug for Vertex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vertex")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .field("parallelism", &self.parallelism)
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}

/// Sources that wait for each other: `scan.watermark.alignment.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment {
    /// The name that they share.
    pub group: String,
    /// How far a source may be ahead of the slowest of its group, ms.
    pub max_drift_ms: i64,
}

/// A job's vertices in topological order.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    vertices: Vec<Vertex>,
    alignments: BTreeMap<VertexId, Alignment>,
}

impl Graph {
    /// Adds a vertex whose inputs are in the graph already.
    pub fn add(&mut self, vertex: Vertex) -> VertexId {
        debug_assert!(vertex.inputs.iter().all(|i| i.from.0 < self.vertices.len()));
        self.vertices.push(vertex);
        VertexId(self.vertices.len() - 1)
    }

    /// Lets the sources before `assigner`, whose watermarks it makes, wait for others.
    pub fn align(&mut self, assigner: VertexId, alignment: Alignment) {
        self.alignments.insert(assigner, alignment);
    }

    /// The vertices whose sources wait for others, in order.
    pub fn alignments(&self) -> impl Iterator<Item = (VertexId, &Alignment)> {
        self.alignments
            .iter()
            .map(|(id, alignment)| (*id, alignment))
    }

    /// The sources that the rows of `id` come from.
    #[must_use]
    pub fn sources_of(&self, id: VertexId) -> Vec<VertexId> {
        let vertex = self.vertex(id);
        if matches!(vertex.kind, VertexKind::Source(_)) {
            return vec![id];
        }
        let inputs = vertex.inputs.iter();
        inputs.flat_map(|i| self.sources_of(i.from)).collect()
    }

    /// The vertices, producers before consumers.
    #[must_use]
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// The identity of a vertex in checkpoints: its uid, or one made of its place if it has none or
    /// shares it with an earlier vertex.
    #[must_use]
    pub fn uid(&self, id: VertexId) -> String {
        let vertex = self.vertex(id);
        let taken = self.vertices[..id.0].iter().any(|v| v.uid == vertex.uid);
        if vertex.uid.is_empty() || taken {
            format!("{}#{}", vertex.name, id.0)
        } else {
            vertex.uid.clone()
        }
    }

    /// Says by what a vertex is found again in a checkpoint.
    pub fn identify(&mut self, id: VertexId, uid: String, signature: String) {
        let vertex = &mut self.vertices[id.0];
        vertex.uid = uid;
        vertex.signature = signature;
    }

    /// One vertex.
    #[must_use]
    pub fn vertex(&self, id: VertexId) -> &Vertex {
        &self.vertices[id.0]
    }
}
