//! Drives the checkpoints of one attempt: asks for them, gathers what the tasks answer, makes the
//! whole durable, commits the sinks.
//!
//! A checkpoint that comes to nothing (it took too long, it could not be saved) is given up, as often
//! in a row as is tolerated. What its sinks have prepared belongs to the next one.
//!
//! Runs on the job's own thread, so that encoding and writing do not hold up the tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::barrier::NodeSnapshot;
use super::clock::monotonic_ns;
use super::job::CheckpointConfig;
use super::prepared::{Prepared, commit};
use super::task::{Report, Shared, StopMode, StopRequest, TaskEnd};
use crate::checkpoint::{
    Checkpoint, CheckpointStore, Step, StopCommand, SubtaskSnapshot, TwoPhase, VertexCheckpoint,
};
use crate::error::{Error, Result};
use crate::graph::{Graph, VertexId};
use crate::state::snapshot::{OperatorSnapshot, StateTable};

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
    graph: &'a Graph,
    config: Option<&'a CheckpointConfig>,
    shared: Arc<Shared>,
    tasks: Vec<TaskState>,
    /// The last checkpoint that was begun.
    epoch: u64,
    /// Whether it is not complete yet.
    under_way: bool,
    /// Who waits for the next complete checkpoint.
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
        graph: &'a Graph,
        config: Option<&'a CheckpointConfig>,
        shared: Arc<Shared>,
        tasks: usize,
        epoch: u64,
    ) -> Self {
        let mut coordinator = Self {
            graph,
            config,
            shared,
            tasks: (0..tasks).map(|_| TaskState::default()).collect(),
            epoch,
            under_way: false,
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

    /// Listens until all tasks have ended.
    pub(super) fn run(mut self, reports: &Receiver<Report>) -> Result<AttemptEnd> {
        while !self.all_ended() {
            let report = match reports.recv_timeout(self.wait_time()) {
                Ok(report) => Some(report),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.hear(report);
        }
        self.end()
    }

    /// Whether no task runs any more.
    pub(super) fn all_ended(&self) -> bool {
        self.tasks.iter().all(|t| t.ended)
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
            Some(Report::BudgetSpent) if self.dying => self.kill(),
            Some(Report::BudgetSpent) => self.begin(),
            Some(Report::Wanted(answer)) => self.want(answer),
            Some(Report::Stop(request)) => self.stop(request),
        }
        self.heed_control_file();
        if self.under_way
            && self
                .tasks
                .iter()
                .all(|t| t.taken.is_some() || t.last.is_some())
        {
            self.complete()?;
        }
        let now = monotonic_ns();
        if let Some(timeout) = self.timeout().filter(|t| self.under_way && *t <= now) {
            self.give_up(Error::checkpoint(format!(
                "checkpoint {} was not complete after {} ms",
                self.epoch,
                (timeout - self.begun_ns) / 1_000_000
            )))?;
        }
        let due = self.next_ns.is_some_and(|next| next <= now);
        let stops = self.stop == Some(StopMode::Suspend) && !self.stopped;
        if (due || stops || !self.wanted.is_empty()) && !self.under_way {
            self.begin();
        }
        Ok(())
    }

    /// When the checkpoint under way has taken too long.
    fn timeout(&self) -> Option<u64> {
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
        for wanted in self.wanted.drain(..) {
            // Whoever asked may have gone.
            let _ = wanted.send(result.clone());
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
        self.under_way = false;
        if self.shared.attempt.is_stopped() {
            return Ok(());
        }
        if let Err(e) = self.publish()? {
            return self.give_up(e);
        }
        self.failed_checkpoints = 0;
        if self.shared.orders.last.load(Ordering::SeqCst) == self.epoch {
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
        self.publish()??;
        self.save_copies()
    }

    /// The checkpoint under way comes to nothing: fails the job, unless that is tolerated.
    fn give_up(&mut self, error: Error) -> Result<()> {
        self.under_way = false;
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

    /// Makes the gathered copies durable and commits what is prepared in them. The inner error: they
    /// are not durable, and no harm is done. The outer one: it is not known what is committed.
    fn publish(&mut self) -> Result<Result<()>> {
        let checkpoint = self.gather();
        let store = self.config.map(|config| &config.store);
        let mut protocol = TwoPhase::prepared(checkpoint.epoch);
        loop {
            match (protocol.step(), store) {
                (Step::Save, Some(store)) => {
                    if let Err(e) = store.save(&checkpoint) {
                        self.prepared.take_back(self.graph, &checkpoint);
                        return Ok(Err(e));
                    }
                    self.stored(checkpoint.epoch);
                }
                (Step::Commit, _) => commit(self.graph, &checkpoint)?,
                (Step::Mark, Some(store)) => store.mark_committed(checkpoint.epoch)?,
                (Step::Done, _) => return Ok(Ok(())),
                _ => {}
            }
            protocol.succeeded();
        }
    }

    /// Checkpoint `epoch` is durable.
    fn stored(&mut self, epoch: u64) {
        self.shared.orders.stored.store(epoch, Ordering::SeqCst);
        for task in &mut self.tasks {
            task.last_stored = task.last.is_some() && task.in_last_checkpoint;
        }
    }

    /// The checkpoint made of the tasks' answers.
    fn gather(&mut self) -> Checkpoint {
        let incremental = self.config.is_some_and(|c| c.incremental);
        let stored = self.shared.orders.stored.load(Ordering::SeqCst);
        let vertices = self.graph.vertices().iter().enumerate();
        let mut vertices: Vec<_> = vertices
            .map(|(id, v)| VertexCheckpoint {
                uid: self.graph.uid(VertexId(id)),
                name: v.name.clone(),
                signature: v.signature.clone(),
                subtasks: vec![SubtaskSnapshot::default(); v.parallelism],
            })
            .collect();
        for task in &mut self.tasks {
            let taken = task.taken.take();
            let nodes = taken.as_ref().or(task.last.as_ref()).into_iter().flatten();
            for node in nodes {
                let mut snapshot = node.snapshot.clone();
                if taken.is_none() && task.last_stored && incremental {
                    unchanged(&mut snapshot.operator);
                }
                vertices[node.vertex].subtasks[node.subtask] = snapshot;
            }
            task.in_last_checkpoint = taken.is_none();
            // What it leaves is committed with this checkpoint, once.
            if taken.is_none() {
                for node in task.last.iter_mut().flatten() {
                    node.snapshot.committables.clear();
                }
            }
        }
        self.prepared.add_to(&mut vertices);
        vertices.retain(|v| v.subtasks.iter().any(|s| !s.is_empty()));
        Checkpoint {
            epoch: self.epoch,
            base: (incremental && stored > 0).then_some(stored),
            max_parallelism: self.shared.max_parallelism,
            committed: false,
            vertices,
        }
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

/// Says of keyed tables, which the store has, that they have not changed.
fn unchanged(operator: &mut OperatorSnapshot) {
    for table in operator.tables.values_mut().filter(|t| t.keys > 0) {
        *table = StateTable::unchanged(table.keys);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
