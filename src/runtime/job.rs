//! A running job: builds the tasks of a graph, runs them on threads, and ends well or with the first
//! error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::build::{Plan, vertex_metrics};
use super::clock::monotonic_ns;
use super::control::{Attempt, JobControl, JobEnd, Signal};
use super::coordinator::{AttemptEnd, Coordinator};
use super::metrics::VertexMetrics;
use super::prepared::commit;
use super::restart::Restarts;
use super::revive;
use super::task::{Report, Shared, StopRequest, Task};
use crate::checkpoint::{
    CheckpointStore, Claim, Claims, Step, TwoPhase, Unclaimed, VertexCheckpoint,
};
use crate::error::{Error, Result};
use crate::graph::{Graph, VertexId, VertexKind};

pub use super::job_config::{CheckpointConfig, CheckpointMode, JobConfig, Kill, Retention};
pub use super::task::StopMode;

/// Stack of a task's thread: a batch runs through all operators of a task in nested calls.
const STACK_BYTES: usize = 16 << 20;

/// Starts jobs.
#[derive(Debug)]
pub struct Job;

impl Job {
    /// Opens sources and sinks, takes up the newest checkpoint if there is one, and runs `graph` on
    /// threads of its own.
    ///
    /// # Errors
    /// When a source, an operator or a sink cannot be made, or the checkpoint does not fit.
    pub fn start(graph: Graph, config: JobConfig) -> Result<JobHandle> {
        if let Some(rows) = config.die_after_rows {
            return revive::start(&graph, &config, rows);
        }
        let mut supervisor = Supervisor::new(graph, config);
        let mut handle = JobHandle {
            control: supervisor.config.control.clone(),
            metrics: Arc::clone(&supervisor.metrics),
            reports: supervisor.reports.clone(),
            takes_checkpoints: supervisor.config.checkpointing.is_some(),
            restored: None,
        };
        let first = supervisor.prepare(false)?;
        handle.restored = (first.epoch > 0).then_some(first.epoch);
        thread::Builder::new()
            .name(supervisor.config.name.clone())
            .spawn(move || {
                let control = supervisor.config.control.clone();
                let result = catch_unwind(AssertUnwindSafe(|| supervisor.supervise(first)));
                // Files and locks are let go of before anybody hears of the end.
                drop(supervisor);
                control.finish(result.unwrap_or_else(|panic| Err(panicked(&*panic))));
            })
            .map_err(|e| Error::execution(format!("cannot start a thread: {e}")))?;
        Ok(handle)
    }
}

/// A running or ended job. Dropping the handle lets the job run on.
#[derive(Debug, Clone)]
pub struct JobHandle {
    control: JobControl,
    metrics: Arc<Vec<VertexMetrics>>,
    reports: Sender<Report>,
    takes_checkpoints: bool,
    restored: Option<u64>,
}

impl JobHandle {
    /// The same job, ended by `control`.
    pub(super) fn with_control(&self, control: &JobControl) -> Self {
        Self {
            control: control.clone(),
            ..self.clone()
        }
    }

    /// Waits until the job has ended and its sinks have committed. Says whether it has finished or
    /// was cancelled.
    ///
    /// # Errors
    /// The error that ended the job.
    pub fn wait(&self) -> Result<JobEnd> {
        self.control.wait()
    }

    /// Asks the job to stop; [`wait`](Self::wait) says when it has.
    pub fn cancel(&self) {
        self.control.cancel();
    }

    /// Whether the job has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.control.is_finished()
    }

    /// How the job has ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<Result<JobEnd>> {
        self.control.end()
    }

    /// Takes a checkpoint now and waits until it is complete. Answers its number.
    ///
    /// # Errors
    /// When the job runs without checkpoints or ends before.
    pub fn checkpoint(&self) -> Result<u64> {
        let ended = || Error::checkpoint("the job has ended");
        let (answer, answered) = mpsc::channel();
        self.reports
            .send(Report::Wanted(answer))
            .map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())?
    }

    /// Takes a last checkpoint and ends the job behind it; waits until that is complete and answers
    /// its number. A copy goes to `savepoint`.
    ///
    /// # Errors
    /// When the job runs without checkpoints, or ends or fails before: it may go on then.
    pub fn stop(&self, mode: StopMode, savepoint: Option<Arc<dyn CheckpointStore>>) -> Result<u64> {
        let answered = self.send_stop(mode, savepoint)?;
        let ended = |_| Error::checkpoint("the job has ended");
        answered.recv().map_err(ended)?
    }

    /// Asks the job to end with a last checkpoint, or at once if it takes none;
    /// [`wait`](Self::wait) says when it has.
    pub fn request_stop(&self) {
        if !self.takes_checkpoints || self.send_stop(StopMode::Suspend, None).is_err() {
            self.cancel();
        }
    }

    fn send_stop(
        &self,
        mode: StopMode,
        savepoint: Option<Arc<dyn CheckpointStore>>,
    ) -> Result<Receiver<Result<u64>>> {
        let (answer, answered) = mpsc::channel();
        let request = StopRequest {
            mode,
            savepoint,
            answer,
        };
        let sent = self.reports.send(Report::Stop(request));
        sent.map_err(|_| Error::checkpoint("the job has ended"))?;
        if self.takes_checkpoints {
            self.control.set_stopping();
        }
        Ok(answered)
    }

    /// The checkpoint from which the job went on when it was started.
    #[must_use]
    pub fn restored_checkpoint(&self) -> Option<u64> {
        self.restored
    }

    /// The failures after which the job was started again, in order.
    #[must_use]
    pub fn failures(&self) -> Vec<Error> {
        self.control.failures()
    }

    /// The counters of every subtask of every vertex, in the order of the graph.
    #[must_use]
    pub fn metrics(&self) -> &[VertexMetrics] {
        &self.metrics
    }
}

/// An attempt that is ready to run.
pub(super) struct Ready {
    pub(super) tasks: Vec<Task>,
    pub(super) shared: Arc<Shared>,
    attempt: Attempt,
    /// The checkpoint that it goes on from; 0 for none.
    pub(super) epoch: u64,
}

/// Runs attempts until one ends well.
pub(super) struct Supervisor {
    pub(super) graph: Arc<Graph>,
    pub(super) config: JobConfig,
    metrics: Arc<Vec<VertexMetrics>>,
    pub(super) reports: Sender<Report>,
    pub(super) inbox: Receiver<Report>,
    restarts: Restarts,
}

impl Supervisor {
    pub(super) fn new(graph: Graph, config: JobConfig) -> Self {
        let (reports, inbox) = mpsc::channel();
        Self {
            restarts: Restarts::new(config.restart.clone()),
            metrics: Arc::new(vertex_metrics(&graph)),
            graph: Arc::new(graph),
            config,
            reports,
            inbox,
        }
    }

    /// Finishes what the newest checkpoint has begun, and builds the tasks from it.
    pub(super) fn prepare(&self, again: bool) -> Result<Ready> {
        let graph = self.graph.as_ref();
        let store = self.config.checkpointing.as_ref().map(|c| &c.store);
        let mut checkpoint = store.map_or(Ok(None), |s| s.latest())?;
        let restored = match &checkpoint {
            Some(checkpoint) => self.claims().settle(checkpoint, self.unclaimed())?,
            None => Vec::new(),
        };
        if let Some(identity) = store.map_or(Ok(None), |s| s.identity())? {
            identify(graph, &identity);
        }
        let mut protocol = TwoPhase::recovered(checkpoint.as_ref().map(|c| (c.epoch, c.committed)));
        let epoch = protocol.epoch();
        while protocol.step() != Step::Done {
            match (protocol.step(), &checkpoint, store) {
                (Step::Commit, Some(checkpoint), _) => commit(graph, checkpoint)?,
                (Step::Mark, _, Some(store)) => store.mark_committed(epoch)?,
                (Step::Abort, _, store) if again || store.is_some() => abort(graph, epoch)?,
                _ => {}
            }
            protocol.succeeded();
        }
        if let Some(checkpoint) = &mut checkpoint {
            let is_saved = |v: &VertexCheckpoint| checkpoint.vertex(&v.uid).is_some();
            if !restored.iter().all(is_saved) {
                // Changes of a vertex are put together with what the store has under its uid.
                checkpoint.base = None;
            }
            checkpoint.vertices = restored;
        }
        let plan = Plan::new(graph, &self.config, checkpoint.as_ref())?;
        let attempt = Attempt::new(&self.config.control);
        let (tasks, shared) = plan.build(&self.metrics, &attempt, &self.reports, epoch)?;
        Ok(Ready {
            tasks,
            shared,
            attempt,
            epoch,
        })
    }

    fn claims(&self) -> Claims<'_> {
        let vertices = self.graph.vertices().iter().enumerate();
        let claims = vertices.map(|(id, v)| {
            let (name, signature) = (v.name.as_str(), v.signature.as_str());
            (self.graph.uid(VertexId(id)), Claim { name, signature })
        });
        claims.collect()
    }

    fn unclaimed(&self) -> Unclaimed {
        let config = self.config.checkpointing.as_ref();
        config.map_or_else(Unclaimed::default, |c| c.unclaimed)
    }

    fn supervise(&mut self, first: Ready) -> Result<JobEnd> {
        let end = self.attempts(first);
        if let Some(config) = &self.config.checkpointing {
            let cleared = match &end {
                Ok(JobEnd::Finished) => config.store.finish(),
                Ok(JobEnd::Cancelled) if config.kill.is_some() => Ok(()),
                Ok(JobEnd::Cancelled) if config.retention != Retention::OnCancellation => {
                    config.store.clear()
                }
                Err(_) if config.retention == Retention::Never => config.store.clear(),
                _ => Ok(()),
            };
            if end.is_ok() {
                cleared?;
            }
        }
        end
    }

    /// Runs the job, again and again if need be.
    fn attempts(&mut self, first: Ready) -> Result<JobEnd> {
        let mut ready = Ok(first);
        loop {
            let control = &self.config.control;
            let error = match ready.and_then(|r| self.run(r)) {
                Ok(AttemptEnd::Finished) => return Ok(JobEnd::Finished),
                Ok(AttemptEnd::Cancelled) => return Ok(JobEnd::Cancelled),
                Ok(AttemptEnd::Stopped(epoch)) => return Ok(JobEnd::Stopped(epoch)),
                Err(_) if control.is_cancelled() => return Ok(JobEnd::Cancelled),
                Err(e) if control.is_stopping() => return Err(e),
                Err(e) => e,
            };
            let Some(pause) = self.restarts.on_failure(monotonic_ns()) else {
                return Err(error);
            };
            tracing::warn!("{}: {error}; restarts in {pause:?}", self.config.name);
            control.add_failure(&error);
            if !self.pause(pause) {
                return self.end_between_attempts();
            }
            ready = self.prepare(true);
        }
    }

    /// The job was told to end while it did not run.
    fn end_between_attempts(&self) -> Result<JobEnd> {
        let Some(config) = self.config.checkpointing.as_ref() else {
            return Ok(JobEnd::Cancelled);
        };
        if self.config.control.is_cancelled() {
            return Ok(JobEnd::Cancelled);
        }
        let checkpoint = config.store.latest()?;
        let epoch = checkpoint.as_ref().map_or(0, |c| c.epoch);
        for report in self.inbox.try_iter() {
            let Report::Stop(request) = report else {
                continue;
            };
            let copied = match (&checkpoint, request.savepoint) {
                (Some(checkpoint), Some(savepoint)) => savepoint
                    .save(checkpoint)
                    .and_then(|()| savepoint.mark_committed(epoch)),
                (None, Some(_)) => Err(Error::checkpoint("the job has no checkpoint yet")),
                (_, None) => Ok(()),
            };
            // Whoever asked may have gone.
            let _ = request.answer.send(copied.map(|()| epoch));
        }
        Ok(JobEnd::Stopped(epoch))
    }

    /// Runs the tasks to their end.
    fn run(&self, ready: Ready) -> Result<AttemptEnd> {
        let config = self.config.checkpointing.as_ref();
        let count = ready.tasks.len();
        let (graph, reports) = (&self.graph, self.reports.clone());
        let coordinator =
            Coordinator::new(graph, config, ready.shared, reports, count, ready.epoch);
        let mut threads = Vec::new();
        for task in ready.tasks {
            let name = format!("{} {}", self.config.name, task.name);
            let (index, reports) = (task.index, self.reports.clone());
            match spawn(name, task) {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    // The inbox is ours.
                    let _ = reports.send(Report::Ended {
                        task: index,
                        end: Err(e),
                    });
                }
            }
        }
        let finished = coordinator.run(&self.inbox);
        ready.attempt.stop();
        for thread in threads {
            // What it had to say, panics included, is in its report.
            let _ = thread.join();
        }
        finished
    }

    /// Waits before a restart. Answers whether the job is still wanted.
    fn pause(&self, pause: Duration) -> bool {
        let signal = Arc::new(Signal::default());
        Attempt::new(&self.config.control).register(&signal);
        let control = &self.config.control;
        let end = monotonic_ns() + u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX / 2);
        loop {
            let left = end.saturating_sub(monotonic_ns());
            if control.is_cancelled() || control.is_stopping() || left == 0 {
                return !(control.is_cancelled() || control.is_stopping());
            }
            signal.wait(Duration::from_nanos(left));
        }
    }
}

/// Tells every sink its name in the job `identity`.
fn identify(graph: &Graph, identity: &str) {
    for (id, vertex) in graph.vertices().iter().enumerate() {
        if let VertexKind::Sink(factory) = &vertex.kind {
            let sink = crc32fast::hash(graph.uid(VertexId(id)).as_bytes());
            factory.identify(&format!("{identity}{sink:08x}"));
        }
    }
}

/// Removes what sinks have written after checkpoint `epoch`.
fn abort(graph: &Graph, epoch: u64) -> Result<()> {
    for vertex in graph.vertices() {
        if let VertexKind::Sink(factory) = &vertex.kind {
            let aborted = factory.abort_leftovers(epoch);
            aborted.map_err(|e| e.context(vertex.description.clone()))?;
        }
    }
    Ok(())
}

fn spawn(name: String, task: Task) -> Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name)
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let (index, reports) = (task.index, task.reports.clone());
            let end = catch_unwind(AssertUnwindSafe(|| task.run()));
            let end = end.unwrap_or_else(|panic| Err(panicked(&*panic)));
            // The supervisor listens until all tasks have reported.
            let _ = reports.send(Report::Ended { task: index, end });
        })
        .map_err(|e| Error::execution(format!("cannot start a thread: {e}")))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::internal(format!("a task panicked: {}", text.unwrap_or_default()))
}
