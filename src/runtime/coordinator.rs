//! Drives the checkpoints of one attempt: asks for them, gathers what the tasks answer, makes the
//! whole durable, commits the sinks.
//!
//! Runs on the job's own thread, so that encoding and writing do not hold up the tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::barrier::NodeSnapshot;
use super::clock::monotonic_ns;
use super::job::CheckpointConfig;
use super::task::{Report, Shared, TaskEnd};
use crate::checkpoint::{Checkpoint, SubtaskSnapshot, VertexCheckpoint};
use crate::error::{Error, Result};
use crate::graph::{Graph, VertexId, VertexKind};

/// Longest wait without a look at anything.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of a task.
#[derive(Default)]
struct TaskState {
    /// Its answer to the checkpoint under way.
    taken: Option<Vec<NodeSnapshot>>,
    /// What it left when it finished.
    last: Option<Vec<NodeSnapshot>>,
    ended: bool,
}

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
    /// The row budget is in its second half: the checkpoint of the test is taken.
    dying: bool,
    /// A task was told to stop before its end.
    cancelled: bool,
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
            dying: false,
            cancelled: false,
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

    /// Listens until all tasks have ended. Answers whether the job has finished, and not been
    /// cancelled.
    pub(super) fn run(mut self, reports: &Receiver<Report>) -> Result<bool> {
        while self.tasks.iter().any(|t| !t.ended) {
            let report = match reports.recv_timeout(self.wait_time()) {
                Ok(report) => Some(report),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(e) = self.step(report) {
                self.fail(e);
            }
        }
        let finished = self.error.is_none() && !self.cancelled;
        let result = match self.error.take() {
            Some(e) => Err(e),
            None if finished => self.finish().map(|()| true),
            None => Ok(false),
        };
        self.answer(&Err(Error::checkpoint("the job has ended")));
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
            Some(Report::Taken { .. }) => {}
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
        }
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
            return Err(Error::checkpoint(format!(
                "checkpoint {} was not complete after {} ms",
                self.epoch,
                (timeout - self.begun_ns) / 1_000_000
            ))
            .hint("raise 'execution.checkpointing.timeout'"));
        }
        let due = self.next_ns.is_some_and(|next| next <= now);
        if (due || !self.wanted.is_empty()) && !self.under_way {
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
        next.map_or(LOOK, |next| {
            Duration::from_nanos(next.saturating_sub(monotonic_ns())).min(LOOK)
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

    fn answer(&mut self, result: &Result<u64>) {
        for wanted in self.wanted.drain(..) {
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
        self.publish()?;
        self.answer(&Ok(self.epoch));
        self.plan_next();
        if let Some(kill) = self.config.and_then(|c| c.kill)
            && !self.dying
        {
            self.dying = true;
            match &self.shared.orders.budget {
                Some(budget) if kill.die_after > 0 => budget.renew(kill.die_after),
                _ => self.kill(),
            }
        }
        self.shared
            .orders
            .completed
            .store(self.epoch, Ordering::SeqCst);
        self.shared.attempt.notify_all();
        Ok(())
    }

    /// All tasks have finished: the last checkpoint, of what they left.
    fn finish(&mut self) -> Result<()> {
        self.epoch += 1;
        self.publish()
    }

    /// Makes the gathered copies durable and commits what is prepared in them.
    fn publish(&mut self) -> Result<()> {
        let mut checkpoint = self.gather();
        if let Some(config) = self.config {
            config.store.save(&checkpoint)?;
        }
        commit(self.graph, &checkpoint)?;
        if let Some(config) = self.config {
            config.store.mark_committed(checkpoint.epoch)?;
        }
        checkpoint.committed = true;
        Ok(())
    }

    /// The checkpoint made of the tasks' answers.
    fn gather(&mut self) -> Checkpoint {
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
                let snapshot = node.snapshot.clone();
                vertices[node.vertex].subtasks[node.subtask] = snapshot;
            }
            // What it leaves is committed with this checkpoint, once.
            if taken.is_none() {
                for node in task.last.iter_mut().flatten() {
                    node.snapshot.committables.clear();
                }
            }
        }
        vertices.retain(|v| v.subtasks.iter().any(|s| !s.is_empty()));
        Checkpoint {
            epoch: self.epoch,
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

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Commits everything that `checkpoint` holds.
pub(super) fn commit(graph: &Graph, checkpoint: &Checkpoint) -> Result<()> {
    for (id, vertex) in graph.vertices().iter().enumerate() {
        let VertexKind::Sink(factory) = &vertex.kind else {
            continue;
        };
        let saved = checkpoint.vertex(&graph.uid(VertexId(id)));
        let subtasks = saved.map_or(&[][..], |v| &v.subtasks);
        let all = subtasks.iter().flat_map(|s| &s.committables);
        let all: Vec<&[u8]> = all.map(Vec::as_slice).collect();
        if !all.is_empty() {
            let committed = factory.commit_all(&all);
            committed.map_err(|e| e.context(vertex.description.clone()))?;
        }
    }
    Ok(())
}
