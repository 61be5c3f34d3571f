//! What sinks have pre-committed: from the tasks' answers into a checkpoint, and from there to the sinks.

use std::collections::BTreeMap;

use super::barrier::NodeSnapshot;
use crate::checkpoint::{Checkpoint, VertexCheckpoint};
use crate::error::Result;
use crate::graph::{Graph, VertexId, VertexKind};

/// Committables of checkpoints that came to nothing: they belong to the next one.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// By vertex and subtask.
    committables: BTreeMap<(usize, usize), Vec<Vec<u8>>>,
}

impl Prepared {
    /// Keeps what a task has answered for such a checkpoint.
    pub(super) fn keep(&mut self, snapshots: &[NodeSnapshot]) {
        for node in snapshots {
            self.add((node.vertex, node.subtask), &node.snapshot.committables);
        }
    }

    /// Keeps what a checkpoint holds that could not be saved.
    pub(super) fn take_back(&mut self, graph: &Graph, checkpoint: &Checkpoint) {
        for id in 0..graph.vertices().len() {
            let saved = checkpoint.vertex(&graph.uid(VertexId(id)));
            let subtasks = saved.map_or(&[][..], |v| &v.subtasks);
            for (subtask, snapshot) in subtasks.iter().enumerate() {
                self.add((id, subtask), &snapshot.committables);
            }
        }
    }

    fn add(&mut self, place: (usize, usize), committables: &[Vec<u8>]) {
        if !committables.is_empty() {
            let kept = self.committables.entry(place).or_default();
            kept.extend_from_slice(committables);
        }
    }

    /// Puts all that is kept before what the vertices of a graph hold themselves.
    pub(super) fn add_to(&mut self, vertices: &mut [VertexCheckpoint]) {
        for ((vertex, subtask), mut kept) in std::mem::take(&mut self.committables) {
            let own = &mut vertices[vertex].subtasks[subtask].committables;
            kept.append(own);
            *own = kept;
        }
    }
}

/// Commits everything that `checkpoint` holds.
pub(super) fn commit(graph: &Graph, checkpoint: &Checkpoint) -> Result<()> {
    for (id, vertex) in graph.vertices().iter().enumerate() {
        let VertexKind::Sink(factory) = &vertex.kind else {
            continue;
        };
        let saved = checkpoint.vertex(&graph.uid(VertexId(id)));
        let subtasks = saved.map_or(&[][..], |v| &v.subtasks);
        let all = subtasks.iter().flat_map(|s| &s.committables);
        let all: Vec<&[u8]> = all.map(Vec::as_slice).collect();
        if !all.is_empty() {
            let committed = factory.commit_all(&all);
            committed.map_err(|e| e.context(vertex.description.clone()))?;
        }
    }
    Ok(())
}
