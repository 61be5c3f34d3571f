//! Checkpoints in memory: for tests, and for restarts within one process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Checkpoint, CheckpointStore};
use crate::error::Result;

/// Keeps the newest checkpoint in memory.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Option<Checkpoint>>);

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Option<Checkpoint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointStore for MemoryStore {
    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        *self.lock() = Some(checkpoint.clone());
        Ok(())
    }

    fn latest(&self) -> Result<Option<Checkpoint>> {
        Ok(self.lock().clone())
    }

    fn mark_committed(&self, epoch: u64) -> Result<()> {
        if let Some(checkpoint) = &mut *self.lock()
            && checkpoint.epoch == epoch
        {
            checkpoint.committed = true;
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        *self.lock() = None;
        Ok(())
    }
}
