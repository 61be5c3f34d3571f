//! Makes a gathered checkpoint durable and commits what its sinks have prepared: encoding, writing and
//! committing take their time, and happen on a thread of their own. The coordinator hears of the
//! outcome by a report, and has an ear for everything else meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use super::control::Attempt;
use super::prepared::commit;
use super::task::Report;
use crate::checkpoint::{Checkpoint, CheckpointStore, Step, TwoPhase};
use crate::error::{Error, Result};
use crate::graph::Graph;

/// What came of a checkpoint.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is durable, and all of it is committed.
    Committed,
    /// It is durable. The attempt was stopped, and the next one commits it.
    Saved,
    /// It is not durable, and no harm is done.
    NotSaved(Error),
    /// It is not known what is durable or committed: the next attempt finds it out.
    Unknown(Error),
}

/// Runs the protocol to its end; not on to the commit once `is_stopped`.
pub(super) fn publish(
    graph: &Graph,
    store: Option<&dyn CheckpointStore>,
    checkpoint: &Checkpoint,
    is_stopped: impl Fn() -> bool,
) -> Outcome {
    let mut protocol = TwoPhase::prepared(checkpoint.epoch);
    loop {
        let step = match (protocol.step(), store) {
            (Step::Save, Some(store)) => match store.save(checkpoint) {
                Ok(()) if is_stopped() => return Outcome::Saved,
                Ok(()) => Ok(()),
                Err(e) => return Outcome::NotSaved(e),
            },
            (Step::Commit, _) => commit(graph, checkpoint),
            (Step::Mark, Some(store)) => store.mark_committed(checkpoint.epoch),
            (Step::Done, _) => return Outcome::Committed,
            _ => Ok(()),
        };
        if let Err(e) = step {
            return Outcome::Unknown(e);
        }
        protocol.succeeded();
    }
}

/// A checkpoint on its way into the store.
pub(super) struct Publication {
    pub(super) graph: Arc<Graph>,
    pub(super) store: Option<Arc<dyn CheckpointStore>>,
    pub(super) checkpoint: Arc<Checkpoint>,
    pub(super) attempt: Attempt,
    pub(super) reports: Sender<Report>,
}

impl Publication {
    /// Does all of it, and reports.
    pub(super) fn run(self) {
        let store = self.store.as_deref();
        let is_stopped = || self.attempt.is_stopped();
        let published = || publish(&self.graph, store, &self.checkpoint, is_stopped);
        let outcome = catch_unwind(AssertUnwindSafe(published)).unwrap_or_else(|_| {
            let text = format!("saving checkpoint {} panicked", self.checkpoint.epoch);
            Outcome::Unknown(Error::internal(text))
        });
        // The coordinator listens until it has heard of it.
        let _ = self.reports.send(Report::Published(outcome));
    }
}

/// Where publications are worked off.
#[derive(Default)]
pub(super) enum Publisher {
    /// On a thread each.
    #[default]
    Threads,
    /// When somebody says so: for simulations.
    #[cfg(test)]
    ByHand(Option<Publication>),
}

impl Publisher {
    /// Begins; there is never a second before the outcome of the first.
    pub(super) fn begin(&mut self, publication: Publication) -> Result<Option<JoinHandle<()>>> {
        match self {
            Self::Threads => {
                let name = format!("checkpoint {}", publication.checkpoint.epoch);
                let thread = thread::Builder::new().name(name);
                let thread = thread.spawn(move || publication.run());
                let failed = |e| Error::execution(format!("cannot start a thread: {e}"));
                thread.map(Some).map_err(failed)
            }
            #[cfg(test)]
            Self::ByHand(waiting) => {
                *waiting = Some(publication);
                Ok(None)
            }
        }
    }
}
