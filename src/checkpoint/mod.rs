//! What a checkpoint holds and where it is kept.
//!
//! A [`Checkpoint`] is a consistent copy of a job at one barrier: positions of its sources, state of
//! its operators, and what its sinks have prepared. The life of checkpoint n:
//!
//! 1. The barrier n has passed every subtask; each has given its [`SubtaskSnapshot`]. Sinks have
//!    pre-committed: the rows between barriers n-1 and n are durable, but not visible.
//! 2. [`CheckpointStore::save`] makes the checkpoint durable. **This is the commit point**: from now
//!    on the job never goes back behind barrier n.
//! 3. All committables are committed. A crash before the end of this repeats it: committing is
//!    idempotent.
//! 4. [`CheckpointStore::mark_committed`], so that a restart need not repeat it.
//!
//! A restart takes the newest checkpoint, does 3 and 4 unless it is marked, has the sinks remove
//! what is newer, and goes on from there. Checkpoint n+1 begins only when n is committed.
//!
//! The runtime takes checkpoints and restores them; this module knows neither tasks nor threads.

mod claims;
mod control_file;
mod file;
pub(crate) mod layers;
mod memory;
mod recovery;
mod restore;
mod two_phase;

pub use claims::{Claim, Claims, Unclaimed};
pub use control_file::{ControlFile, StopCommand};
#[cfg(test)]
pub(crate) use file::sim;
pub use file::{CheckpointInfo, FileStore, S3Options, VertexInfo};
pub use memory::MemoryStore;
pub use recovery::Recovery;
pub use restore::{lowest, operator_state, positions, writer_states};
pub use two_phase::{Step, TwoPhase};

use std::fmt;

use crate::connectors::SplitPosition;
use crate::error::Result;
use crate::state::key_group::DEFAULT_MAX_PARALLELISM;
use crate::state::snapshot::{OperatorSnapshot, Part};

/// A consistent copy of a job.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Its number: higher is newer.
    pub epoch: u64,
    /// The checkpoint of the store that changes go on from: of one that is to be saved, that of its
    /// own tables of changes; of one that the store gave, the one itself.
    pub base: Option<u64>,
    /// Number of key groups of the job.
    pub max_parallelism: u16,
    /// Whether all its committables are known to be committed.
    pub committed: bool,
    /// The vertices that have anything to remember.
    pub vertices: Vec<VertexCheckpoint>,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self {
            epoch: 0,
            base: None,
            max_parallelism: DEFAULT_MAX_PARALLELISM,
            committed: false,
            vertices: Vec::new(),
        }
    }
}

impl Checkpoint {
    /// Whether there are tables of which it holds only the changes.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        let subtasks = self.vertices.iter().flat_map(|v| &v.subtasks);
        let mut tables = subtasks.flat_map(|s| s.operator.tables.values());
        tables.any(|table| matches!(table.part, Part::Changes { .. }))
    }

    /// The vertex with identity `uid`.
    #[must_use]
    pub fn vertex(&self, uid: &str) -> Option<&VertexCheckpoint> {
        self.vertices.iter().find(|v| v.uid == uid)
    }
}

/// All subtasks of a vertex.
#[derive(Debug, Clone)]
pub struct VertexCheckpoint {
    /// Stable identity.
    pub uid: String,
    /// The plan node's noun, for messages.
    pub name: String,
    /// What must agree for the state to be restored.
    pub signature: String,
    /// One entry a subtask, in order.
    pub subtasks: Vec<SubtaskSnapshot>,
}

/// One subtask of a vertex at a barrier.
#[derive(Debug, Clone, Default)]
pub struct SubtaskSnapshot {
    /// State of an operator.
    pub operator: OperatorSnapshot,
    /// Positions of a source.
    pub positions: Vec<SplitPosition>,
    /// State of a sink's writer.
    pub writer: Vec<u8>,
    /// What a sink has pre-committed.
    pub committables: Vec<Vec<u8>>,
    /// The combined watermark of its inputs, ms.
    pub input_watermark: Option<i64>,
    /// The last watermark that it sent, ms.
    pub output_watermark: Option<i64>,
    /// All inputs had ended, and the subtask had done what it does then.
    pub ended: bool,
}

impl SubtaskSnapshot {
    /// Whether anything would be lost with it that a new vertex does not have.
    #[must_use]
    pub fn holds_state(&self) -> bool {
        !(self.operator.tables.is_empty()
            && self.operator.watermark.is_none()
            && self.positions.is_empty()
            && self.writer.is_empty())
    }

    /// Whether it is worth keeping.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let moved = self.input_watermark.is_some() || self.output_watermark.is_some();
        !(self.ended || moved || self.holds_state()) && self.committables.is_empty()
    }
}

/// Keeps the checkpoints of one job.
pub trait CheckpointStore: Send + Sync + fmt::Debug {
    /// Makes `checkpoint` durable and the newest. Older ones may go. Its tables of changes go on from
    /// the checkpoint that was last saved or read, which [`Checkpoint::base`] names.
    ///
    /// # Errors
    /// When it is not durable, or goes on from another checkpoint.
    fn save(&self, checkpoint: &Checkpoint) -> Result<()>;

    /// The newest checkpoint that is whole.
    ///
    /// # Errors
    /// When there are checkpoints and none is whole.
    fn latest(&self) -> Result<Option<Checkpoint>>;

    /// Remembers that everything of checkpoint `epoch` is committed.
    ///
    /// # Errors
    /// When that cannot be made durable.
    fn mark_committed(&self, epoch: u64) -> Result<()>;

    /// The name of the job that keeps its checkpoints here: the same in every process that works on
    /// them, one after another, and never that of another job. `None` if the store does not outlive
    /// the process.
    ///
    /// # Errors
    /// When it cannot be read, or made durable.
    fn identity(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Removes all checkpoints.
    ///
    /// # Errors
    /// When they cannot be removed.
    fn clear(&self) -> Result<()>;

    /// Removes all checkpoints, and remembers that the job has finished.
    ///
    /// # Errors
    /// When that cannot be made durable.
    fn finish(&self) -> Result<()> {
        self.clear()
    }
}
