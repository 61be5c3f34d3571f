//! Rows of a running job as an iterator: the sink behind a query that somebody reads.
//!
//! In a job that takes checkpoints rows come to the reader when a checkpoint behind them is complete:
//! a job that is started again after a failure gives none twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};

use super::control::{JobControl, lock};
use crate::changelog::ChangeBatch;
use crate::connectors::{SinkWriter, SinkWriterFactory};
use crate::error::{Error, Result};

/// How long a blocked side waits before it looks whether the job goes on.
const LOOK: Duration = Duration::from_millis(20);

/// A sink, and the reader of the rows that are written to it. At most `capacity` batches wait in
/// between. `control` is that of the job: dropping the reader cancels it.
#[must_use]
pub fn collect(
    capacity: usize,
    control: &JobControl,
) -> (Arc<dyn SinkWriterFactory>, CollectReader) {
    let (sender, receiver) = bounded(capacity.max(1));
    let control = control.clone();
    let factory = CollectFactory {
        outlet: Outlet {
            sender,
            control: control.clone(),
        },
        prepared: Arc::default(),
    };
    (Arc::new(factory), CollectReader { receiver, control })
}

struct CollectFactory {
    outlet: Outlet,
    prepared: Arc<Mutex<Prepared>>,
}

/// Rows of complete transactions that the reader does not have yet, by epoch.
type Prepared = BTreeMap<u64, Vec<ChangeBatch>>;

impl SinkWriterFactory for CollectFactory {
    fn create(&self, _subtask: usize, _parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(CollectWriter {
            outlet: self.outlet.clone(),
            open: None,
            prepared: Arc::clone(&self.prepared),
        }))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        let epoch = <[u8; 8]>::try_from(committable).map(u64::from_be_bytes);
        let epoch = epoch.map_err(|_| Error::internal("a committable of another sink"))?;
        // without: the reader has them already
        let batches = lock(&self.prepared).remove(&epoch).unwrap_or_default();
        batches.into_iter().try_for_each(|b| self.outlet.send(b))
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        lock(&self.prepared).retain(|epoch, _| *epoch <= restored_epoch);
        Ok(())
    }
}

/// The way to the reader.
#[derive(Clone)]
struct Outlet {
    sender: Sender<ChangeBatch>,
    control: JobControl,
}

impl Outlet {
    fn send(&self, mut batch: ChangeBatch) -> Result<()> {
        loop {
            if self.control.is_cancelled() {
                return Err(Error::execution("the reader of the result has gone"));
            }
            match self.sender.send_timeout(batch, LOOK) {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Timeout(again)) => batch = again,
                Err(SendTimeoutError::Disconnected(_)) => {
                    self.control.cancel();
                    return Ok(());
                }
            }
        }
    }
}

struct CollectWriter {
    outlet: Outlet,
    /// Rows of the transaction; `None` if they go out at once.
    open: Option<Vec<ChangeBatch>>,
    prepared: Arc<Mutex<Prepared>>,
}

impl SinkWriter for CollectWriter {
    fn begin_transactions(&mut self) {
        self.open = Some(Vec::new());
    }

    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        match &mut self.open {
            Some(open) => {
                open.push(batch.clone());
                Ok(())
            }
            None => self.outlet.send(batch.clone()),
        }
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        let batches = self.open.as_mut().map(std::mem::take).unwrap_or_default();
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        lock(&self.prepared).insert(epoch, batches);
        Ok(vec![epoch.to_be_bytes().to_vec()])
    }
}

/// Reads the rows in order. After the last one ask the job how it ended.
#[derive(Debug)]
pub struct CollectReader {
    receiver: Receiver<ChangeBatch>,
    control: JobControl,
}

impl CollectReader {
    /// The next batch; `None` when the job has ended.
    #[must_use]
    pub fn recv(&self) -> Option<ChangeBatch> {
        loop {
            match self.receiver.recv_timeout(LOOK) {
                Ok(batch) => return Some(batch),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Rows may have come between the time-out and the end.
            if self.control.is_finished() {
                return self.receiver.try_recv().ok();
            }
        }
    }

    /// The next batch if it comes within `timeout`.
    ///
    /// # Errors
    /// [`CollectEnd::Ended`] when the job has ended, [`CollectEnd::Timeout`] when it may go on.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<ChangeBatch, CollectEnd> {
        if self.control.is_finished() {
            return self.receiver.try_recv().map_err(|_| CollectEnd::Ended);
        }
        self.receiver.recv_timeout(timeout).map_err(|e| match e {
            RecvTimeoutError::Timeout => CollectEnd::Timeout,
            RecvTimeoutError::Disconnected => CollectEnd::Ended,
        })
    }
}

impl Iterator for CollectReader {
    type Item = ChangeBatch;

    fn next(&mut self) -> Option<ChangeBatch> {
        self.recv()
    }
}

impl Drop for CollectReader {
    fn drop(&mut self) {
        self.control.cancel();
    }
}

/// Why there is no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectEnd {
    /// None came in time.
    Timeout,
    /// The job has ended.
    Ended,
}
