//! A sink in memory with transactions: shows exactly what a job has committed, over restarts too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::control::lock;
use crate::changelog::ChangeBatch;
use crate::connectors::{SinkWriter, SinkWriterFactory};
use crate::error::{Error, Result};

/// A transaction: its epoch, and the subtask that wrote it.
type Transaction = (u64, usize);

#[derive(Debug, Default)]
struct State {
    /// Pre-committed, not visible.
    prepared: BTreeMap<Transaction, Vec<ChangeBatch>>,
    /// Visible, in the order of the commits.
    committed: Vec<(Transaction, Vec<ChangeBatch>)>,
}

/// The rows that jobs have committed to the sinks that [`factory`](Self::factory) makes.
#[derive(Debug, Clone, Default)]
pub struct CommittedRows(Arc<Mutex<State>>);

impl CommittedRows {
    /// A sink that commits to these rows. A job that goes on from a checkpoint of another must be
    /// given a factory of the same rows.
    #[must_use]
    pub fn factory(&self) -> Arc<dyn SinkWriterFactory> {
        Arc::new(self.clone())
    }

    /// All that is committed.
    #[must_use]
    pub fn batches(&self) -> Vec<ChangeBatch> {
        let state = lock(&self.0);
        let committed = state.committed.iter().flat_map(|(_, batches)| batches);
        committed.cloned().collect()
    }
}

impl SinkWriterFactory for CommittedRows {
    fn create(&self, subtask: usize, _parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Writer {
            subtask,
            open: Vec::new(),
            rows: self.clone(),
        }))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        let transaction = decode(committable)?;
        let mut state = lock(&self.0);
        if let Some(batches) = state.prepared.remove(&transaction) {
            state.committed.push((transaction, batches));
        } else if !state.committed.iter().any(|(t, _)| *t == transaction) {
            let (epoch, subtask) = transaction;
            return Err(Error::connector(format!(
                "transaction {epoch} of subtask {subtask} is neither prepared nor committed"
            )));
        }
        Ok(())
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        let mut state = lock(&self.0);
        state
            .prepared
            .retain(|(epoch, _), _| *epoch <= restored_epoch);
        Ok(())
    }
}

fn decode(committable: &[u8]) -> Result<Transaction> {
    let text = std::str::from_utf8(committable).ok();
    let parts = text.and_then(|t| t.split_once('-'));
    parts
        .and_then(|(epoch, subtask)| Some((epoch.parse().ok()?, subtask.parse().ok()?)))
        .ok_or_else(|| Error::connector("a committable of another sink"))
}

struct Writer {
    subtask: usize,
    open: Vec<ChangeBatch>,
    rows: CommittedRows,
}

impl SinkWriter for Writer {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        self.open.push(batch.clone());
        Ok(())
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        let batches = std::mem::take(&mut self.open);
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let mut state = lock(&self.rows.0);
        state.prepared.insert((epoch, self.subtask), batches);
        Ok(vec![format!("{epoch}-{}", self.subtask).into_bytes()])
    }
}
