//! Drives the checkpoints of one attempt: asks for them, gathers what the tasks answer, makes the
//! whole durable, commits the sinks.
//!
//! A checkpoint that comes to nothing (it took too long, it could not be saved) is given up, as often
//! in a row as is tolerated. What its sinks have prepared belongs to the next one.
//!
//! Runs on the job's own thread and never does anything that takes long: a checkpoint is made durable
//! elsewhere ([`publishing`](super::publishing)), so that failures, timeouts and requests to stop are
//! answered meanwhile. The next one begins when its outcome is known.

mod gather;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::barrier::NodeSnapshot;
use super::clock::monotonic_ns;
use super::job::CheckpointConfig;
use super::prepared::Prepared;
use super::publishing::{Outcome, Publication, Publisher, publish};
use super::task::{Report, Shared, StopMode, StopRequest, TaskEnd};
use crate::checkpoint::{Checkpoint, CheckpointStore, StopCommand};
use crate::error::{Error, Result};
use crate::graph::Graph;

/// Longest wait without a look at anything.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of a task.
#[derive(Default)]
struct TaskState {
    /// Its answer to the checkpoint under way.
    taken: Option<Vec<NodeSnapshot>>,
    /// What it left when it finished.
    last: Option<Vec<NodeSnapshot>>,
    /// A durable checkpoint holds it.
    last_stored: bool,
    /// The last checkpoint was made of it.
    in_last_checkpoint: bool,
    ended: bool,
}

/// A checkpoint that is being made durable.
struct Publishing {
    checkpoint: Arc<Checkpoint>,
    thread: Option<JoinHandle<()>>,
    /// It has taken too long, and is given up already. What comes of it counts all the same.
    given_up: bool,
}

/// How an attempt ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// All sources have ended.
    Finished,
    /// It was told to stop at once.
    Cancelled,
    /// It was told to stop behind this checkpoint.
    Stopped(u64),
}

/// How often the control file is looked for.
const CONTROL_LOOK: Duration = Duration::from_millis(200);

pub(super) struct Coordinator<'a> {
    graph: Arc<Graph>,
    config: Option<&'a CheckpointConfig>,
    shared: Arc<Shared>,
    reports: Sender<Report>,
    tasks: Vec<TaskState>,
    /// The last checkpoint that was begun.
    epoch: u64,
    /// Whether it is not complete yet.
    under_way: bool,
    /// It has been gathered.
    publishing: Option<Publishing>,
    publisher: Publisher,
    /// Who waits for the checkpoint under way.
    awaited: Vec<Sender<Result<u64>>>,
    /// Who waits for one that begins after it.
    wanted: Vec<Sender<Result<u64>>>,
    next_ns: Option<u64>,
    /// When the last checkpoint was begun.
    begun_ns: u64,
    /// The test's first checkpoint, if it wants two, is under way or taken.
    based: bool,
    /// The row budget is in its second half: the checkpoint of the test is taken.
    dying: bool,
    /// A task was told to stop before its end.
    cancelled: bool,
    /// How it is to end with a checkpoint, and who waits for that.
    stop: Option<StopMode>,
    stop_wanted: Vec<Sender<Result<u64>>>,
    /// Where copies of the last checkpoint go.
    savepoints: Vec<Arc<dyn CheckpointStore>>,
    /// The last checkpoint is complete.
    stopped: bool,
    /// What sinks have prepared for checkpoints that came to nothing.
    prepared: Prepared,
    /// Checkpoints in a row that came to nothing.
    failed_checkpoints: u32,
    error: Option<Error>,
}

impl<'a> Coordinator<'a> {
    /// For `tasks` tasks that go on from checkpoint `epoch`.
    pub(super) fn new(
        graph: &Arc<Graph>,
        config: Option<&'a CheckpointConfig>,
        shared: Arc<Shared>,
        reports: Sender<Report>,
        tasks: usize,
        epoch: u64,
    ) -> Self {
        let mut coordinator = Self {
            graph: Arc::clone(graph),
            config,
            shared,
            reports,
            tasks: (0..tasks).map(|_| TaskState::default()).collect(),
            epoch,
            under_way: false,
            publishing: None,
            publisher: Publisher::default(),
            awaited: Vec::new(),
            wanted: Vec::new(),
            next_ns: None,
            begun_ns: monotonic_ns(),
            based: false,
            dying: false,
            cancelled: false,
            stop: None,
            stop_wanted: Vec::new(),
            savepoints: Vec::new(),
            stopped: false,
            prepared: Prepared::default(),
            failed_checkpoints: 0,
            error: None,
        };
        coordinator.plan_next();
        if config
            .and_then(|c| c.kill)
            .is_some_and(|k| k.checkpoint_after == 0)
        {
            coordinator.begin();
        }
        coordinator
    }

    /// As [`new`](Self::new), but nothing is made durable until [`publish`](Self::publish) is called.
    #[cfg(test)]
    pub(super) fn publishes_by_hand(mut self) -> Self {
        self.publisher = Publisher::ByHand(None);
        self
    }

    /// Works off what waits for it.
    #[cfg(test)]
    pub(super) fn publish(&mut self) {
        if let Publisher::ByHand(waiting) = &mut self.publisher
            && let Some(publication) = waiting.take()
        {
            publication.run();
        }
    }

    /// Gives the checkpoint under way up, as if it had taken too long.
    #[cfg(test)]
    pub(super) fn time_out(&mut self) {
        let given_up = self.publishing.as_ref().is_some_and(|p| p.given_up);
        if self.under_way
            && !given_up
            && let Err(e) = self.give_up(Error::checkpoint("it took too long"))
        {
            self.fail(e);
        }
    }

    /// Listens until all tasks have ended.
    pub(super) fn run(mut self, reports: &Receiver<Report>) -> Result<AttemptEnd> {
        while !self.is_over() {
            let report = match reports.recv_timeout(self.wait_time()) {
                Ok(report) => Some(report),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.hear(report);
        }
        self.end()
    }

    /// Whether no task runs any more, and nothing is on its way into the store.
    pub(super) fn is_over(&self) -> bool {
        self.tasks.iter().all(|t| t.ended) && self.publishing.is_none()
    }

    /// Whether all tasks have come to the end of their input.
    fn is_finished(&self) -> bool {
        self.tasks.iter().all(|t| t.last.is_some())
    }

    /// Acts on a report, or on the time that has passed. A failure stops the attempt.
    pub(super) fn hear(&mut self, report: Option<Report>) {
        if let Err(e) = self.step(report) {
            self.fail(e);
        }
    }

    /// All tasks have ended: takes the last checkpoint, unless one has failed or was stopped.
    pub(super) fn end(mut self) -> Result<AttemptEnd> {
        let result = match self.error.take() {
            Some(e) => Err(e),
            None if self.stopped => Ok(AttemptEnd::Stopped(self.epoch)),
            None if self.cancelled => Ok(AttemptEnd::Cancelled),
            None => self.finish().map(|()| AttemptEnd::Finished),
        };
        let answer = match &result {
            Err(e) => Err(e.clone()),
            Ok(AttemptEnd::Finished) if self.stop.is_some() => Ok(self.epoch),
            Ok(_) => Err(Error::checkpoint("the job has ended")),
        };
        self.awaited.append(&mut self.wanted);
        self.answer(&answer);
        self.answer_stop(&answer);
        result
    }

    fn step(&mut self, report: Option<Report>) -> Result<()> {
        match report {
            None => {}
            Some(Report::Taken {
                task,
                epoch,
                snapshots,
            }) if self.under_way && epoch == self.epoch => {
                self.tasks[task].taken = Some(snapshots);
            }
            // Of a checkpoint that was given up.
            Some(Report::Taken { snapshots, .. }) => self.prepared.keep(&snapshots),
            Some(Report::Ended { task, end }) => {
                self.tasks[task].ended = true;
                match end {
                    Ok(TaskEnd::Finished(last)) => self.tasks[task].last = Some(last),
                    Ok(TaskEnd::Cancelled) => self.cancelled = true,
                    // Once the job is told to stop, failures are only its consequence.
                    Err(_) if self.shared.attempt.is_stopped() => self.cancelled = true,
                    Err(e) => return Err(e),
                }
            }
            Some(Report::Published(outcome)) => self.published(outcome)?,
            Some(Report::BudgetSpent) if self.dying => self.kill(),
            Some(Report::BudgetSpent) => self.begin(),
            Some(Report::Wanted(answer)) => self.want(answer),
            Some(Report::Stop(request)) => self.stop(request),
        }
        self.heed_control_file();
        let has_answered = |t: &TaskState| t.taken.is_some() || t.last.is_some();
        if self.under_way && self.publishing.is_none() && self.tasks.iter().all(has_answered) {
            self.complete()?;
        }
        let now = monotonic_ns();
        if let Some(timeout) = self.timeout().filter(|t| *t <= now) {
            self.give_up(Error::checkpoint(format!(
                "checkpoint {} was not complete after {} ms",
                self.epoch,
                (timeout - self.begun_ns) / 1_000_000
            )))?;
        }
        let due = self.next_ns.is_some_and(|next| next <= now);
        let stops = self.stop == Some(StopMode::Suspend) && !self.stopped && !self.is_finished();
        if (due || stops || !self.wanted.is_empty()) && !self.under_way {
            self.begin();
        }
        Ok(())
    }

    /// When the checkpoint under way has taken too long.
    fn timeout(&self) -> Option<u64> {
        let given_up = self.publishing.as_ref().is_some_and(|p| p.given_up);
        if !self.under_way || given_up {
            return None;
        }
        let timeout = self.config.and_then(|c| c.timeout)?;
        Some(self.begun_ns.saturating_add(nanoseconds(timeout)))
    }

    fn wait_time(&self) -> Duration {
        let next = if self.under_way {
            self.timeout()
        } else {
            self.next_ns
        };
        let look = match self.config.and_then(|c| c.control_file.as_ref()) {
            Some(_) => CONTROL_LOOK,
            None => LOOK,
        };
        next.map_or(look, |next| {
            Duration::from_nanos(next.saturating_sub(monotonic_ns())).min(look)
        })
    }

    fn plan_next(&mut self) {
        let Some(config) = self.config else {
            return;
        };
        self.next_ns = config.interval.map(|interval| {
            let pause_end = monotonic_ns().saturating_add(nanoseconds(config.min_pause));
            let next = self.begun_ns.saturating_add(nanoseconds(interval));
            next.max(pause_end)
        });
    }

    fn want(&mut self, answer: Sender<Result<u64>>) {
        match self.config {
            Some(_) => self.wanted.push(answer),
            None => {
                let refusal = Error::checkpoint("the job runs without checkpoints");
                // Whoever asked may have gone.
                let _ = answer.send(Err(refusal.hint("set 'execution.checkpointing.interval'")));
            }
        }
    }

    /// The job is to end with a checkpoint.
    fn stop(&mut self, request: StopRequest) {
        if self.config.is_none() {
            self.want(request.answer);
            return;
        }
        self.stop = Some(request.mode);
        self.stop_wanted.push(request.answer);
        self.savepoints.extend(request.savepoint);
        self.shared.attempt.control().set_stopping();
        if request.mode == StopMode::Drain {
            self.shared.orders.drain.store(true, Ordering::SeqCst);
            self.shared.attempt.notify_all();
        }
    }

    /// Does what `ebbflow stop` asks for.
    fn heed_control_file(&mut self) {
        let Some(file) = self.config.and_then(|c| c.control_file.as_ref()) else {
            return;
        };
        if self.stop.is_some() {
            return;
        }
        match file.take() {
            Ok(None) => {}
            Ok(Some(command)) => {
                let (answer, _) = std::sync::mpsc::channel();
                let mode = match command {
                    StopCommand::Suspend => StopMode::Suspend,
                    StopCommand::Drain => StopMode::Drain,
                };
                self.stop(StopRequest {
                    mode,
                    savepoint: None,
                    answer,
                });
            }
            Err(e) => tracing::warn!("{e}"),
        }
    }

    fn answer(&mut self, result: &Result<u64>) {
        for awaited in self.awaited.drain(..) {
            // Whoever asked may have gone.
            let _ = awaited.send(result.clone());
        }
    }

    fn answer_stop(&mut self, result: &Result<u64>) {
        for wanted in self.stop_wanted.drain(..) {
            // Whoever asked may have gone.
            let _ = wanted.send(result.clone());
        }
    }

    fn begin(&mut self) {
        if self.under_way || self.shared.attempt.is_stopped() {
            return;
        }
        self.epoch += 1;
        self.under_way = true;
        self.awaited.append(&mut self.wanted);
        self.begun_ns = monotonic_ns();
        if self.stop == Some(StopMode::Suspend) {
            self.shared.orders.last.store(self.epoch, Ordering::SeqCst);
        }
        self.shared
            .orders
            .requested
            .store(self.epoch, Ordering::SeqCst);
        self.shared.attempt.notify_all();
    }

    /// All tasks have answered.
    fn complete(&mut self) -> Result<()> {
        if self.shared.attempt.is_stopped() {
            self.under_way = false;
            return Ok(());
        }
        let checkpoint = Arc::new(self.gather());
        let publication = Publication {
            graph: Arc::clone(&self.graph),
            store: self.config.map(|config| Arc::clone(&config.store)),
            checkpoint: Arc::clone(&checkpoint),
            attempt: self.shared.attempt.clone(),
            reports: self.reports.clone(),
        };
        self.publishing = Some(Publishing {
            checkpoint,
            thread: self.publisher.begin(publication)?,
            given_up: false,
        });
        Ok(())
    }

    /// What came of the checkpoint under way.
    fn published(&mut self, outcome: Outcome) -> Result<()> {
        let Some(publishing) = self.publishing.take() else {
            return Err(Error::internal("a checkpoint that nobody has gathered"));
        };
        self.under_way = false;
        if let Some(thread) = publishing.thread {
            // It has said what it had to say.
            let _ = thread.join();
        }
        match outcome {
            Outcome::Committed => self.committed(publishing.given_up),
            Outcome::Saved => Ok(()),
            Outcome::Unknown(e) => Err(e),
            Outcome::NotSaved(e) => {
                let checkpoint = &publishing.checkpoint;
                self.prepared.take_back(&self.graph, checkpoint);
                if publishing.given_up {
                    tracing::warn!("checkpoint {} is not saved: {e}", checkpoint.epoch);
                    self.plan_next();
                    return Ok(());
                }
                self.give_up(e)
            }
        }
    }

    /// The checkpoint is complete; `late`: after it was given up.
    fn committed(&mut self, late: bool) -> Result<()> {
        self.stored(self.epoch);
        if !late {
            self.failed_checkpoints = 0;
        }
        let is_last = self.shared.orders.last.load(Ordering::SeqCst) == self.epoch;
        // A job that has come to its end meanwhile has nothing to go on with: its end would come twice.
        if is_last && !self.is_finished() {
            self.save_copies()?;
            self.stopped = true;
            self.answer_stop(&Ok(self.epoch));
            self.shared.attempt.stop();
        }
        self.answer(&Ok(self.epoch));
        self.plan_next();
        self.play_dead();
        self.shared
            .orders
            .completed
            .store(self.epoch, Ordering::SeqCst);
        self.shared.attempt.notify_all();
        Ok(())
    }

    /// For tests: lets the sources read on, or ends the job.
    fn play_dead(&mut self) {
        let Some(kill) = self.config.and_then(|c| c.kill) else {
            return;
        };
        let rows = if kill.base_after > 0 && !self.based {
            self.based = true;
            kill.checkpoint_after
        } else if self.dying {
            return;
        } else {
            self.dying = true;
            kill.die_after
        };
        match &self.shared.orders.budget {
            Some(budget) if rows > 0 => budget.renew(rows),
            _ if self.dying => self.kill(),
            _ => self.begin(),
        }
    }

    /// All tasks have finished: the last checkpoint, of what they left.
    fn finish(&mut self) -> Result<()> {
        self.epoch += 1;
        let checkpoint = self.gather();
        let store = self.config.map(|config| config.store.as_ref());
        match publish(&self.graph, store, &checkpoint, || false) {
            Outcome::NotSaved(e) | Outcome::Unknown(e) => Err(e),
            Outcome::Committed | Outcome::Saved => self.save_copies(),
        }
    }

    /// The checkpoint under way comes to nothing: fails the job, unless that is tolerated. If it is on
    /// its way into the store, what comes of it is waited for.
    fn give_up(&mut self, error: Error) -> Result<()> {
        match &mut self.publishing {
            Some(publishing) => publishing.given_up = true,
            None => self.under_way = false,
        }
        for task in 0..self.tasks.len() {
            if let Some(snapshots) = self.tasks[task].taken.take() {
                self.prepared.keep(&snapshots);
            }
        }
        self.failed_checkpoints += 1;
        let tolerable = self.config.map_or(0, |c| c.tolerable_failures);
        if self.failed_checkpoints > tolerable {
            return Err(error.hint(
                "raise 'execution.checkpointing.timeout' if it takes too long; \
                 'execution.checkpointing.tolerable-failed-checkpoints' lets the job go on without \
                 so many checkpoints in a row",
            ));
        }
        tracing::warn!("the job goes on without checkpoint {}: {error}", self.epoch);
        if self.stop.take().is_some() {
            self.shared.orders.last.store(u64::MAX, Ordering::SeqCst);
            self.shared.attempt.control().unset_stopping();
            self.shared.attempt.notify_all();
        }
        let answer = Err(error);
        self.answer(&answer);
        self.answer_stop(&answer);
        self.plan_next();
        Ok(())
    }

    /// Keeps copies of the last checkpoint where they were asked for.
    fn save_copies(&mut self) -> Result<()> {
        let Some(config) = self.config.filter(|_| !self.savepoints.is_empty()) else {
            return Ok(());
        };
        let Some(checkpoint) = config.store.latest()? else {
            return Err(Error::internal("the last checkpoint is gone"));
        };
        for savepoint in self.savepoints.drain(..) {
            savepoint.save(&checkpoint)?;
            savepoint.mark_committed(checkpoint.epoch)?;
        }
        Ok(())
    }

    /// Ends the job as if it had been killed.
    fn kill(&mut self) {
        self.cancelled = true;
        self.shared.attempt.stop();
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.shared.attempt.stop();
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
