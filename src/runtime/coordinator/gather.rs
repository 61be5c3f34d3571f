//! Makes a checkpoint of what the tasks have answered, and remembers what a durable one holds.

use std::sync::atomic::Ordering;

use super::Coordinator;
use crate::checkpoint::{Checkpoint, SubtaskSnapshot, VertexCheckpoint};
use crate::graph::VertexId;
use crate::state::snapshot::{OperatorSnapshot, StateTable};

impl Coordinator<'_> {
    /// Checkpoint `epoch` is durable.
    pub(super) fn stored(&mut self, epoch: u64) {
        self.shared.orders.stored.store(epoch, Ordering::SeqCst);
        for task in &mut self.tasks {
            task.last_stored = task.last.is_some() && task.in_last_checkpoint;
        }
    }

    /// The checkpoint made of the tasks' answers.
    pub(super) fn gather(&mut self) -> Checkpoint {
        let incremental = self.config.is_some_and(|c| c.incremental);
        let stored = self.shared.orders.stored.load(Ordering::SeqCst);
        let vertices = self.graph.vertices().iter().enumerate();
        let mut vertices: Vec<_> = vertices
            .map(|(id, v)| VertexCheckpoint {
                uid: self.graph.uid(VertexId(id)),
                name: v.name.clone(),
                signature: v.signature.clone(),
                subtasks: vec![SubtaskSnapshot::default(); v.parallelism],
            })
            .collect();
        for task in &mut self.tasks {
            let taken = task.taken.take();
            let nodes = taken.as_ref().or(task.last.as_ref()).into_iter().flatten();
            for node in nodes {
                let mut snapshot = node.snapshot.clone();
                if taken.is_none() && task.last_stored && incremental {
                    unchanged(&mut snapshot.operator);
                }
                vertices[node.vertex].subtasks[node.subtask] = snapshot;
            }
            task.in_last_checkpoint = taken.is_none();
            // What it leaves is committed with this checkpoint, once.
            if taken.is_none() {
                for node in task.last.iter_mut().flatten() {
                    node.snapshot.committables.clear();
                }
            }
        }
        self.prepared.add_to(&mut vertices);
        vertices.retain(|v| v.subtasks.iter().any(|s| !s.is_empty()));
        Checkpoint {
            epoch: self.epoch,
            base: (incremental && stored > 0).then_some(stored),
            max_parallelism: self.shared.max_parallelism,
            committed: false,
            vertices,
        }
    }
}

/// Says of keyed tables, which the store has, that they have not changed.
fn unchanged(operator: &mut OperatorSnapshot) {
    for table in operator.tables.values_mut().filter(|t| t.keys > 0) {
        *table = StateTable::unchanged(table.keys);
    }
}
