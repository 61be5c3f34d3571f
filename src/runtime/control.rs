//! The switch of a job: stops it from outside, wakes its tasks, and says when and how it ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};

/// Locks although a holder has panicked: what these locks guard is whole at any moment.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes one thread. A notification that comes before the wait is kept.
#[derive(Debug, Default)]
pub(super) struct Signal {
    notified: Mutex<bool>,
    condition: Condvar,
}

impl Signal {
    pub(super) fn notify(&self) {
        *lock(&self.notified) = true;
        self.condition.notify_one();
    }

    /// Waits until notified, or for `timeout`.
    pub(super) fn wait(&self, timeout: Duration) {
        let mut notified = lock(&self.notified);
        if !*notified {
            let waited = self.condition.wait_timeout(notified, timeout);
            notified = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *notified = false;
    }
}

/// How a job ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// All sources have ended and all sinks have committed.
    Finished,
    /// It was told to stop at once.
    Cancelled,
    /// It was told to stop, and has taken this checkpoint behind its last row: another run goes on
    /// from there.
    Stopped(u64),
}

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    /// It is to end with a checkpoint.
    stopping: AtomicBool,
    /// Why it was started again, so far.
    failures: Mutex<Vec<Error>>,
    /// Never locked together with `result`.
    signals: Mutex<Vec<Arc<Signal>>>,
    result: Mutex<Option<Result<JobEnd>>>,
    ended: Condvar,
}

/// A shared handle on the life of one job.
#[derive(Debug, Clone, Default)]
pub struct JobControl(Arc<Inner>);

impl JobControl {
    /// Asks the job to stop as soon as it can. A stopped job commits nothing.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.notify_all();
    }

    /// Whether the job was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Says that the job is to end with a checkpoint: it is not started again any more.
    pub(super) fn set_stopping(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
        self.notify_all();
    }

    /// A checkpoint for the end could not be taken: the job goes on.
    pub(super) fn unset_stopping(&self) {
        self.0.stopping.store(false, Ordering::SeqCst);
    }

    /// Whether the job is to end with a checkpoint.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::SeqCst)
    }

    pub(super) fn add_failure(&self, failure: &Error) {
        lock(&self.0.failures).push(failure.clone());
    }

    /// The failures after which the job was started again, in order.
    #[must_use]
    pub fn failures(&self) -> Vec<Error> {
        lock(&self.0.failures).clone()
    }

    /// Whether the job has ended, in whatever way.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        lock(&self.0.result).is_some()
    }

    /// How the job has ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<Result<JobEnd>> {
        lock(&self.0.result).clone()
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The error that ended the job.
    pub fn wait(&self) -> Result<JobEnd> {
        let mut result = lock(&self.0.result);
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            let waited = self.0.ended.wait(result);
            result = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn finish(&self, result: Result<JobEnd>) {
        lock(&self.0.result).get_or_insert(result);
        self.0.ended.notify_all();
    }

    fn notify_all(&self) {
        for signal in &*lock(&self.0.signals) {
            signal.notify();
        }
    }
}

/// One attempt at running a job: stops with the job, or alone to be followed by another.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    stopped: Arc<AtomicBool>,
    control: JobControl,
}

impl Attempt {
    /// A new attempt; signals of the one before are forgotten.
    pub(super) fn new(control: &JobControl) -> Self {
        lock(&control.0.signals).clear();
        Self {
            stopped: Arc::default(),
            control: control.clone(),
        }
    }

    /// The switch of the job.
    pub(super) fn control(&self) -> &JobControl {
        &self.control
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.control.is_cancelled()
    }

    /// Has `signal` notified when the attempt is stopped.
    pub(super) fn register(&self, signal: &Arc<Signal>) {
        lock(&self.control.0.signals).push(Arc::clone(signal));
    }

    /// Wakes all tasks.
    pub(super) fn notify_all(&self) {
        self.control.notify_all();
    }
}
