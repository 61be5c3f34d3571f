//! A job that begins with the checkpoint of another directory: a savepoint.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Checkpoint, CheckpointStore, FileStore};
use crate::error::Result;

/// Keeps checkpoints in a store of its own; as long as that has none, the newest is one from
/// elsewhere.
#[derive(Debug)]
pub struct Recovery {
    own: Arc<dyn CheckpointStore>,
    path: PathBuf,
    /// The own store is known to have a checkpoint.
    has_own: AtomicBool,
}

impl Recovery {
    /// Checkpoints in `own` that begin with the one at `path`.
    #[must_use]
    pub fn new(own: Arc<dyn CheckpointStore>, path: PathBuf) -> Self {
        Self {
            own,
            path,
            has_own: AtomicBool::new(false),
        }
    }
}

impl CheckpointStore for Recovery {
    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        self.own.save(checkpoint)?;
        self.has_own.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn latest(&self) -> Result<Option<Checkpoint>> {
        match self.own.latest()? {
            Some(own) => {
                self.has_own.store(true, Ordering::SeqCst);
                Ok(Some(own))
            }
            None => FileStore::read(&self.path).map(Some),
        }
    }

    fn mark_committed(&self, epoch: u64) -> Result<()> {
        // what the other directory holds is not ours to change; committing is idempotent
        if self.has_own.load(Ordering::SeqCst) {
            self.own.mark_committed(epoch)?;
        }
        Ok(())
    }

    fn identity(&self) -> Result<Option<String>> {
        self.own.identity()
    }

    fn clear(&self) -> Result<()> {
        self.own.clear()
    }

    fn finish(&self) -> Result<()> {
        self.own.finish()
    }
}
