//! A running job: builds the tasks of a graph, runs them on threads, and ends well or with the first
//! error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::build::{Plan, vertex_metrics};
use super::check::EdgeChecks;
use super::clock::{Clock, SystemClock, monotonic_ns};
use super::control::{Attempt, JobControl, JobEnd, Signal};
use super::coordinator::{Coordinator, commit};
use super::metrics::VertexMetrics;
use super::restart::{RestartStrategy, Restarts};
use super::revive;
use super::task::{Report, Shared, Task};
use crate::checkpoint::CheckpointStore;
use crate::error::{Error, Result};
use crate::functions::Environment;
use crate::graph::{Graph, VertexKind};
use crate::state::key_group::DEFAULT_MAX_PARALLELISM;

/// Stack of a task's thread: a batch runs through all operators of a task in nested calls.
const STACK_BYTES: usize = 16 << 20;

/// What happens to rows behind a barrier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckpointMode {
    /// They wait until the barrier has come through all inputs.
    #[default]
    ExactlyOnce,
    /// They do not wait, and may count twice after a restart.
    AtLeastOnce,
}

/// For tests: a job that dies at a certain row.
#[derive(Debug, Clone, Copy)]
pub struct Kill {
    /// When sources have read so many rows, a checkpoint is taken.
    pub checkpoint_after: u64,
    /// When they have read so many more, the job stops as if it had been killed.
    pub die_after: u64,
}

/// How checkpoints are taken.
#[derive(Debug, Clone)]
pub struct CheckpointConfig {
    /// Where they are kept. A job that starts takes up the newest that it finds there.
    pub store: Arc<dyn CheckpointStore>,
    /// `execution.checkpointing.interval`: from the start of one to the start of the next; `None`:
    /// only when asked.
    pub interval: Option<Duration>,
    /// `execution.checkpointing.min-pause`: from the end of one to the start of the next.
    pub min_pause: Duration,
    /// `execution.checkpointing.timeout`: a checkpoint that takes longer fails the job.
    pub timeout: Option<Duration>,
    /// `execution.checkpointing.mode`.
    pub mode: CheckpointMode,
    /// For tests.
    pub kill: Option<Kill>,
}

impl CheckpointConfig {
    /// Checkpoints in `store`, exactly-once, when asked for.
    #[must_use]
    pub fn new(store: Arc<dyn CheckpointStore>) -> Self {
        Self {
            store,
            interval: None,
            min_pause: Duration::ZERO,
            timeout: None,
            mode: CheckpointMode::ExactlyOnce,
            kill: None,
        }
    }
}

/// How a job is run.
#[derive(Debug, Clone)]
pub struct JobConfig {
    /// Name, for threads and messages.
    pub name: String,
    /// Rows per batch that sources are asked for.
    pub batch_size: usize,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Session settings that expressions need.
    pub environment: Arc<Environment>,
    /// Most bytes that the state of all operators may have.
    pub state_memory_limit: Option<u64>,
    /// `table.exec.mini-batch.allow-latency`, when mini-batch is on.
    pub mini_batch_latency: Option<Duration>,
    /// A channel between tasks that holds so many rows is full.
    pub channel_rows: usize,
    /// `pipeline.max-parallelism`: the number of key groups.
    pub max_parallelism: u16,
    /// How much of what travels on edges is checked.
    pub checks: EdgeChecks,
    /// Checkpoints, if there are to be any.
    pub checkpointing: Option<CheckpointConfig>,
    /// What happens when the job fails.
    pub restart: RestartStrategy,
    /// For tests: the job dies when its sources have read so many rows, and a bit, and another goes
    /// on from its checkpoint at another parallelism.
    pub die_after_rows: Option<u64>,
    /// The job's switch: the same as that of the sinks that can stop it.
    pub control: JobControl,
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            name: "job".to_string(),
            batch_size: 4096,
            clock: Arc::new(SystemClock),
            environment: Arc::new(Environment::default()),
            state_memory_limit: None,
            mini_batch_latency: None,
            channel_rows: 8192,
            max_parallelism: DEFAULT_MAX_PARALLELISM,
            checks: EdgeChecks::default(),
            checkpointing: None,
            restart: RestartStrategy::None,
            die_after_rows: None,
            control: JobControl::default(),
        }
    }
}

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
        let metrics = Arc::new(vertex_metrics(&graph));
        let (reports, inbox) = mpsc::channel();
        let handle = JobHandle {
            control: config.control.clone(),
            metrics: Arc::clone(&metrics),
            reports: reports.clone(),
        };
        let mut supervisor = Supervisor {
            restarts: Restarts::new(config.restart.clone()),
            graph,
            config,
            metrics,
            reports,
            inbox,
        };
        let first = supervisor.prepare(false)?;
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

    /// The counters of every subtask of every vertex, in the order of the graph.
    #[must_use]
    pub fn metrics(&self) -> &[VertexMetrics] {
        &self.metrics
    }
}

/// An attempt that is ready to run.
struct Ready {
    tasks: Vec<Task>,
    shared: Arc<Shared>,
    attempt: Attempt,
    /// The checkpoint that it goes on from; 0 for none.
    epoch: u64,
}

/// Runs attempts until one ends well.
struct Supervisor {
    graph: Graph,
    config: JobConfig,
    metrics: Arc<Vec<VertexMetrics>>,
    reports: Sender<Report>,
    inbox: Receiver<Report>,
    restarts: Restarts,
}

impl Supervisor {
    /// Finishes what the newest checkpoint has begun, and builds the tasks from it.
    fn prepare(&self, again: bool) -> Result<Ready> {
        let graph = &self.graph;
        let store = self.config.checkpointing.as_ref().map(|c| &c.store);
        let checkpoint = store.map_or(Ok(None), |s| s.latest())?;
        let plan = Plan::new(graph, &self.config, checkpoint.as_ref())?;
        let epoch = checkpoint.as_ref().map_or(0, |c| c.epoch);
        if let (Some(checkpoint), Some(store)) = (&checkpoint, store)
            && !checkpoint.committed
        {
            commit(graph, checkpoint)?;
            store.mark_committed(epoch)?;
        }
        if again || store.is_some() {
            for vertex in graph.vertices() {
                if let VertexKind::Sink(factory) = &vertex.kind {
                    let aborted = factory.abort_leftovers(epoch);
                    aborted.map_err(|e| e.context(vertex.description.clone()))?;
                }
            }
        }
        let attempt = Attempt::new(&self.config.control);
        let (tasks, shared) = plan.build(&self.metrics, &attempt, &self.reports, epoch)?;
        Ok(Ready {
            tasks,
            shared,
            attempt,
            epoch,
        })
    }

    fn supervise(&mut self, first: Ready) -> Result<JobEnd> {
        let mut ready = Ok(first);
        loop {
            let error = match ready.and_then(|r| self.run(r)) {
                Ok(true) => return self.finished(),
                Ok(false) => return Ok(JobEnd::Cancelled),
                Err(_) if self.config.control.is_cancelled() => return Ok(JobEnd::Cancelled),
                Err(e) => e,
            };
            let Some(pause) = self.restarts.on_failure(monotonic_ns()) else {
                return Err(error);
            };
            tracing::warn!("{}: {error}; restarts in {pause:?}", self.config.name);
            if !self.pause(pause) {
                return Ok(JobEnd::Cancelled);
            }
            ready = self.prepare(true);
        }
    }

    /// Runs the tasks to their end. Answers whether the job has finished.
    fn run(&self, ready: Ready) -> Result<bool> {
        let config = self.config.checkpointing.as_ref();
        let count = ready.tasks.len();
        let coordinator = Coordinator::new(&self.graph, config, ready.shared, count, ready.epoch);
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

    fn finished(&self) -> Result<JobEnd> {
        if let Some(config) = &self.config.checkpointing {
            config.store.clear()?;
        }
        Ok(JobEnd::Finished)
    }

    /// Waits before a restart. Answers whether the job is still wanted.
    fn pause(&self, pause: Duration) -> bool {
        let signal = Arc::new(Signal::default());
        Attempt::new(&self.config.control).register(&signal);
        let control = &self.config.control;
        let end = monotonic_ns() + u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX / 2);
        loop {
            let left = end.saturating_sub(monotonic_ns());
            if control.is_cancelled() || left == 0 {
                return !control.is_cancelled();
            }
            signal.wait(Duration::from_nanos(left));
        }
    }
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
