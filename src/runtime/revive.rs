//! The test mode in which a job dies and another goes on: whatever an operator forgets to save shows
//! in the result.
//!
//! The first job takes a checkpoint, and another when its sources have read so many rows, reads a few
//! more, and dies. The second, of another parallelism, starts from the checkpoint and runs to the end. Sinks
//! see, at the very end, what both have committed.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::committed::CommittedRows;
use super::control::{JobControl, JobEnd};
use super::job::{CheckpointConfig, Job, JobConfig, JobHandle, Kill};
use crate::checkpoint::MemoryStore;
use crate::connectors::SinkWriterFactory;
use crate::error::{Error, Result};
use crate::graph::{Graph, VertexKind};

/// How often the test looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(1);

/// A sink of the user's, and the rows that were committed to its stand-in.
type Sink = (Arc<dyn SinkWriterFactory>, CommittedRows);

/// Runs `graph` so. One of the two jobs has parallelism 1: the first if `rows` is even.
pub(super) fn start(graph: &Graph, config: &JobConfig, rows: u64) -> Result<JobHandle> {
    let sinks = sinks(graph);
    let single = stand_ins(graph, &sinks, true);
    let parallel = stand_ins(graph, &sinks, false);
    let (first, second) = if rows.is_multiple_of(2) {
        (single, parallel)
    } else {
        (parallel, single)
    };
    let mut checkpointing = CheckpointConfig::new(Arc::new(MemoryStore::default()));
    let again = job_config(config, checkpointing.clone());
    // Two checkpoints: so the second holds only what has changed since the first.
    checkpointing.kill = Some(Kill {
        base_after: rows / 2,
        checkpoint_after: rows - rows / 2,
        die_after: rows / 2,
    });
    let first = Job::start(first, job_config(config, checkpointing))?;
    let control = config.control.clone();
    let handle = first.with_control(&control);
    thread::Builder::new()
        .name(config.name.clone())
        .spawn(move || {
            let end = match watch(&first, &control) {
                Ok(JobEnd::Cancelled) if !control.is_cancelled() => {
                    Job::start(second, again).and_then(|job| watch(&job, &control))
                }
                end => end,
            };
            let shown = sinks.iter().try_for_each(show);
            drop(sinks);
            control.finish(end.and_then(|end| shown.map(|()| end)));
        })
        .map_err(|e| Error::execution(format!("cannot start a thread: {e}")))?;
    Ok(handle)
}

fn job_config(config: &JobConfig, checkpointing: CheckpointConfig) -> JobConfig {
    JobConfig {
        checkpointing: Some(checkpointing),
        control: JobControl::default(),
        die_after_rows: None,
        ..config.clone()
    }
}

fn sinks(graph: &Graph) -> Vec<Sink> {
    let sinks = graph.vertices().iter().filter_map(|v| match &v.kind {
        VertexKind::Sink(factory) => Some((Arc::clone(factory), CommittedRows::default())),
        _ => None,
    });
    sinks.collect()
}

/// `graph` with transactions in memory for sinks.
fn stand_ins(graph: &Graph, sinks: &[Sink], single: bool) -> Graph {
    let mut sinks = sinks.iter();
    let mut changed = Graph::default();
    for vertex in graph.vertices() {
        let mut vertex = vertex.clone();
        if single {
            vertex.parallelism = 1;
        }
        if matches!(vertex.kind, VertexKind::Sink(_)) {
            let (_, rows) = sinks.next().expect("one stand-in for every sink");
            vertex.kind = VertexKind::Sink(rows.factory());
        }
        changed.add(vertex);
    }
    changed
}

/// Waits for `job`, which stops when `control` is cancelled.
fn watch(job: &JobHandle, control: &JobControl) -> Result<JobEnd> {
    loop {
        if control.is_cancelled() {
            job.cancel();
        }
        if let Some(end) = job.end() {
            return end;
        }
        thread::sleep(LOOK);
    }
}

/// Writes what is committed to the user's sink.
fn show((factory, rows): &Sink) -> Result<()> {
    let mut writer = factory.create(0, 1)?;
    for batch in rows.batches() {
        writer.write(&batch)?;
    }
    writer.end()?;
    let prepared = writer.pre_commit(1)?;
    prepared.iter().try_for_each(|c| factory.commit(c))
}
