//! A running job: builds the tasks of a graph, runs them on threads, and ends well or with the first
//! error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::build::{build, vertex_metrics};
use super::check::EdgeChecks;
use super::clock::{Clock, SystemClock};
use super::control::JobControl;
use super::metrics::VertexMetrics;
use super::task::{Task, TaskEnd};
use crate::error::{Error, Result};
use crate::functions::Environment;
use crate::graph::{Graph, VertexId, VertexKind};
use crate::state::key_group::DEFAULT_MAX_PARALLELISM;

/// Stack of a task's thread: a batch runs through all operators of a task in nested calls.
const STACK_BYTES: usize = 16 << 20;

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
    /// `pipeline.max-parallelism`: the number of key groups.
    pub max_parallelism: u16,
    /// How much of what travels on edges is checked.
    pub checks: EdgeChecks,
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
            max_parallelism: DEFAULT_MAX_PARALLELISM,
            checks: EdgeChecks::default(),
            control: JobControl::default(),
        }
    }
}

/// Starts jobs.
#[derive(Debug)]
pub struct Job;

impl Job {
    /// Opens sources and sinks, and runs `graph` on threads of its own.
    ///
    /// # Errors
    /// When a source, an operator or a sink cannot be made.
    pub fn start(graph: Graph, config: JobConfig) -> Result<JobHandle> {
        let metrics = Arc::new(vertex_metrics(&graph));
        let handle = JobHandle {
            control: config.control.clone(),
            metrics: Arc::clone(&metrics),
        };
        let tasks = build(&graph, &config, &metrics)?;
        let name = config.name.clone();
        thread::Builder::new()
            .name(name)
            .spawn(move || {
                let result = supervise(&graph, &config, tasks);
                // First let go of the sinks: their readers ask for the result then.
                let control = config.control.clone();
                control.unregister_all();
                control.finish(result);
                drop(graph);
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
}

impl JobHandle {
    /// Waits until the job has ended and its sinks have committed.
    ///
    /// # Errors
    /// The error that ended the job. A cancelled job has none.
    pub fn wait(&self) -> Result<()> {
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

    /// The counters of every subtask of every vertex, in the order of the graph.
    #[must_use]
    pub fn metrics(&self) -> &[VertexMetrics] {
        &self.metrics
    }
}

/// Runs the tasks to their end and commits.
fn supervise(graph: &Graph, config: &JobConfig, tasks: Vec<Task>) -> Result<()> {
    let (reports, ends) = mpsc::channel();
    let mut threads = Vec::new();
    for task in tasks {
        let name = format!("{} {}", config.name, task.name);
        match spawn(name, task, reports.clone()) {
            Ok(thread) => threads.push(thread),
            Err(e) => {
                // The supervisor listens below.
                let _ = reports.send(Err(e));
            }
        }
    }
    drop(reports);
    let ends = gather(&ends, &config.control);
    for thread in threads {
        // What it had to say, panics included, is in its report.
        let _ = thread.join();
    }
    let Some(committables) = ends? else {
        return Ok(());
    };
    for (vertex, committables) in committables {
        let vertex = graph.vertex(vertex);
        if let VertexKind::Sink(factory) = &vertex.kind {
            for committable in &committables {
                let committed = factory.commit(committable);
                committed.map_err(|e| e.context(&*vertex.description))?;
            }
        }
    }
    Ok(())
}

fn spawn(name: String, task: Task, reports: Sender<Result<TaskEnd>>) -> Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name)
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let end = catch_unwind(AssertUnwindSafe(|| task.run()));
            let end = end.unwrap_or_else(|panic| Err(panicked(&*panic)));
            // The supervisor listens until all tasks have reported.
            let _ = reports.send(end);
        })
        .map_err(|e| Error::execution(format!("cannot start a thread: {e}")))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::internal(format!("a task panicked: {}", text.unwrap_or_default()))
}

type Committables = Vec<(VertexId, Vec<Vec<u8>>)>;

/// Collects how the tasks ended; the first error stops the others. `None` for a cancelled job.
fn gather(ends: &Receiver<Result<TaskEnd>>, control: &JobControl) -> Result<Option<Committables>> {
    let mut committables = Vec::new();
    let mut error = None;
    let mut cancelled = false;
    for end in ends {
        match end {
            Ok(TaskEnd::Finished(more)) => committables.extend(more),
            Ok(TaskEnd::Cancelled) => cancelled = true,
            // Once the job is told to stop, failures are only its consequence.
            Err(_) if control.is_cancelled() => cancelled = true,
            Err(e) => {
                control.cancel();
                error.get_or_insert(e);
            }
        }
    }
    match error {
        Some(e) => Err(e),
        None if cancelled => Ok(None),
        None => Ok(Some(committables)),
    }
}
