//! Rows of a running job as an iterator: the sink behind a query that somebody reads.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};

use super::control::JobControl;
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
        sender,
        control: control.clone(),
    };
    (Arc::new(factory), CollectReader { receiver, control })
}

struct CollectFactory {
    sender: Sender<ChangeBatch>,
    control: JobControl,
}

impl SinkWriterFactory for CollectFactory {
    fn create(&self, _subtask: usize, _parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(CollectWriter {
            sender: self.sender.clone(),
            control: self.control.clone(),
        }))
    }
}

struct CollectWriter {
    sender: Sender<ChangeBatch>,
    control: JobControl,
}

impl SinkWriter for CollectWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        let mut batch = batch.clone();
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
