//! Writes into a memory table.

use std::sync::Arc;

use super::saved::Saved;
use super::table::{Logged, MemoryTable};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::connectors::{SinkWriter, SinkWriterFactory, TableSink};
use crate::error::{Error, Result};

/// One use of a table as a sink.
pub(super) struct MemorySink {
    pub(super) table: Arc<MemoryTable>,
    pub(super) append_only: bool,
    pub(super) keyed: bool,
}

impl TableSink for MemorySink {
    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        match (self.append_only, self.keyed) {
            (true, _) => ChangelogMode::APPEND,
            (false, true) => requested.without_update_before(),
            (false, false) => requested,
        }
    }

    fn writers(&self) -> Result<Arc<dyn SinkWriterFactory>> {
        self.table.add_writer();
        Ok(Arc::new(Writers(Arc::clone(&self.table))))
    }
}

struct Writers(Arc<MemoryTable>);

impl SinkWriterFactory for Writers {
    fn create(&self, subtask: usize, _parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Writer {
            table: Arc::clone(&self.0),
            subtask,
            open: None,
            prepared: Vec::new(),
        }))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        let (epoch, subtask) = serde_json::from_slice(committable)
            .map_err(|e| Error::checkpoint(format!("a committable of another sink: {e}")))?;
        self.0.commit(epoch, subtask)
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        self.0.abort(restored_epoch);
        Ok(())
    }
}

struct Writer {
    table: Arc<MemoryTable>,
    subtask: usize,
    /// Rows of the transaction; `None` if they are applied at once.
    open: Option<Vec<ChangeBatch>>,
    /// Rows of the last transaction.
    prepared: Vec<ChangeBatch>,
}

impl SinkWriter for Writer {
    fn begin_transactions(&mut self) {
        self.open = Some(Vec::new());
    }

    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        match &mut self.open {
            Some(open) => open.push(batch.clone()),
            None => {
                self.table.apply(batch)?;
            }
        }
        Ok(())
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        self.prepared = self.open.as_mut().map(std::mem::take).unwrap_or_default();
        if self.prepared.is_empty() {
            return Ok(Vec::new());
        }
        self.table
            .prepare(epoch, self.subtask, self.prepared.clone());
        let committable = serde_json::to_vec(&(epoch, self.subtask));
        Ok(vec![
            committable.map_err(|e| Error::internal(e.to_string()))?,
        ])
    }

    /// The table as it is when the last transaction is committed.
    fn snapshot(&mut self) -> Result<Vec<u8>> {
        let waiting = std::mem::take(&mut self.prepared);
        let waiting = waiting.into_iter().map(Logged::Change).collect();
        let saved = if self.subtask == 0 {
            self.table.save(waiting, None)?
        } else {
            self.table.save_waiting(waiting)?
        };
        serde_json::to_vec(&saved).map_err(|e| Error::internal(e.to_string()))
    }

    fn restore(&mut self, states: &[Vec<u8>]) -> Result<()> {
        for state in states {
            let saved: Saved = serde_json::from_slice(state).map_err(|e| {
                Error::checkpoint(format!("this is no state of a memory table: {e}"))
            })?;
            if self.table.is_of(&saved) {
                continue;
            }
            if saved.accepted > 0 || saved.content.is_some() {
                self.table.restore(&saved)?;
            }
            for waiting in self.table.waiting(&saved)? {
                if let Logged::Change(batch) = waiting {
                    self.table.apply(&batch)?;
                }
            }
        }
        Ok(())
    }
}
