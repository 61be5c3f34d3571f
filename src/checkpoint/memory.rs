//! Checkpoints in memory: for tests, and for restarts within one process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Checkpoint, CheckpointStore, layers};
use crate::error::{Error, Result};

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
        let mut newest = self.lock();
        let base = newest.as_ref().filter(|c| checkpoint.base == Some(c.epoch));
        if checkpoint.has_changes() && base.is_none() {
            return Err(Error::internal("changes of another checkpoint"));
        }
        let mut whole = layers::apply(base, checkpoint)?;
        whole.base = Some(whole.epoch);
        *newest = Some(whole);
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
