//! What is heard while a checkpoint is on its way into the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use super::checkpoints::committed;
use super::lifecycle::{endless, wait_for_rows};
use crate::changelog::ChangeBatch;
use crate::checkpoint::{Checkpoint, CheckpointStore, MemoryStore};
use crate::error::Result;
use crate::graph::{Graph, OperatorFactory, VertexKind};
use crate::operators::Operator;
use crate::runtime::committed::CommittedRows;
use crate::runtime::control::{JobEnd, lock};
use crate::runtime::job::{CheckpointConfig, Job, JobConfig, JobHandle};
use crate::runtime::output::Output;
use crate::runtime::testing::{Act, add, source};

const ROWS: i64 = 20;

#[derive(Debug, Default)]
struct Gate {
    open: bool,
    /// Checkpoints that have come to it.
    arrived: Vec<u64>,
}

/// Saves nothing while its gate is closed.
#[derive(Debug, Default)]
struct Gated {
    store: MemoryStore,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl Gated {
    fn open(&self) {
        lock(&self.gate).open = true;
        self.changed.notify_all();
    }

    /// The first checkpoint that has come to the gate.
    fn arrived(&self) -> Option<u64> {
        lock(&self.gate).arrived.first().copied()
    }

    fn wait_for_arrival(&self) {
        let gate = lock(&self.gate);
        let arrived = self
            .changed
            .wait_while(gate, |gate| gate.arrived.is_empty());
        drop(arrived.unwrap());
    }
}

impl CheckpointStore for Gated {
    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        let mut gate = lock(&self.gate);
        gate.arrived.push(checkpoint.epoch);
        self.changed.notify_all();
        let passed = self.changed.wait_while(gate, |gate| !gate.open);
        drop(passed.unwrap());
        self.store.save(checkpoint)
    }

    fn latest(&self) -> Result<Option<Checkpoint>> {
        self.store.latest()
    }

    fn mark_committed(&self, epoch: u64) -> Result<()> {
        self.store.mark_committed(epoch)
    }

    fn clear(&self) -> Result<()> {
        self.store.clear()
    }
}

/// A job that waits for more rows, with all of its rows behind it.
fn start(
    store: &Arc<Gated>,
    sink: &CommittedRows,
    set: impl FnOnce(&mut CheckpointConfig),
) -> JobHandle {
    let mut checkpointing = CheckpointConfig::new(Arc::<Gated>::clone(store));
    set(&mut checkpointing);
    let config = JobConfig {
        checkpointing: Some(checkpointing),
        ..JobConfig::default()
    };
    let job = Job::start(endless(ROWS, 2, sink), config).unwrap();
    if job.restored_checkpoint().is_none() {
        wait_for_rows(&job, ROWS.unsigned_abs());
    }
    job
}

fn checkpoint(job: &JobHandle) -> thread::JoinHandle<Result<u64>> {
    let job = job.clone();
    thread::spawn(move || job.checkpoint())
}

#[test]
fn a_checkpoint_that_is_saved_too_slowly_is_given_up_and_counts_when_it_comes() {
    let (store, sink) = (Arc::new(Gated::default()), CommittedRows::default());
    let job = start(&store, &sink, |config| {
        config.timeout = Some(Duration::from_millis(20));
        config.tolerable_failures = u32::MAX;
    });
    // The store does not answer, the coordinator does. (On a busy machine the tasks may be late too.)
    let late = loop {
        let error = job.checkpoint().unwrap_err().to_string();
        assert!(error.contains("not complete"), "{error}");
        if let Some(epoch) = store.arrived() {
            break epoch;
        }
    };
    assert_eq!(committed(&sink).len(), 0);
    assert!(store.latest().unwrap().is_none());
    store.open();
    let next = std::iter::from_fn(|| Some(job.checkpoint()));
    let next = next.flatten().next().unwrap();
    assert!(next > late);
    assert_eq!(committed(&sink).len(), 20);
    assert!(store.latest().unwrap().unwrap().committed);
    job.cancel();
    assert_eq!(job.wait().unwrap(), JobEnd::Cancelled);
}

/// Tells when its task has ended.
struct Tells(Arc<AtomicBool>);

impl Drop for Tells {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Operator for Tells {
    fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        out.emit(batch)
    }
}

#[test]
fn a_failure_ends_the_tasks_although_the_store_does_not_answer() {
    loop {
        let store = Arc::new(Gated::default());
        let ended = Arc::new(AtomicBool::new(false));
        let job = Job::start(telling(&ended), impatient(&store)).unwrap();
        while store.arrived().is_none() && !job.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        if store.arrived().is_none() {
            // The machine is so busy that the tasks have taken too long.
            continue;
        }
        while !ended.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        // What is on its way into the store is waited for.
        assert!(!job.is_finished());
        store.open();
        let error = job.wait().unwrap_err().to_string();
        assert!(error.contains("not complete"), "{error}");
        break;
    }
}

/// A job without rows that tells when its tasks have ended.
fn telling(ended: &Arc<AtomicBool>) -> Graph {
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(vec![Act::Forever]), &[]);
    let told = Arc::clone(ended);
    let tells: OperatorFactory = Arc::new(move |_| Ok(Box::new(Tells(Arc::clone(&told)))));
    let tells = VertexKind::Operator(tells);
    let tells = add(&mut graph, "Tells", tells, &[(read, 0)]);
    let write = VertexKind::Sink(CommittedRows::default().factory());
    add(&mut graph, "Write", write, &[(tells, 0)]);
    graph
}

fn impatient(store: &Arc<Gated>) -> JobConfig {
    let mut checkpointing = CheckpointConfig::new(Arc::<Gated>::clone(store));
    checkpointing.interval = Some(Duration::from_millis(1));
    checkpointing.timeout = Some(Duration::from_millis(50));
    JobConfig {
        checkpointing: Some(checkpointing),
        ..JobConfig::default()
    }
}

#[test]
fn a_job_that_is_cancelled_meanwhile_leaves_the_commit_to_the_next_run() {
    let (store, sink) = (Arc::new(Gated::default()), CommittedRows::default());
    let job = start(&store, &sink, |_| {});
    let waits = checkpoint(&job);
    store.wait_for_arrival();
    job.cancel();
    store.open();
    assert_eq!(job.wait().unwrap(), JobEnd::Cancelled);
    assert!(waits.join().unwrap().is_err());
    let saved = store.latest().unwrap().unwrap();
    assert_eq!((saved.epoch, saved.committed), (1, false));
    assert_eq!(committed(&sink).len(), 0);
    let job = start(&store, &sink, |_| {});
    assert_eq!(job.restored_checkpoint(), Some(1));
    assert_eq!(committed(&sink).len(), 20);
    job.cancel();
    job.wait().unwrap();
}

#[test]
fn who_asks_meanwhile_gets_the_next_checkpoint() {
    for stop in [false, true] {
        let (store, sink) = (Arc::new(Gated::default()), CommittedRows::default());
        let job = start(&store, &sink, |_| {});
        let first = checkpoint(&job);
        store.wait_for_arrival();
        if stop {
            job.request_stop();
            store.open();
            assert_eq!(job.wait().unwrap(), JobEnd::Stopped(2));
        } else {
            let second = checkpoint(&job);
            store.open();
            assert_eq!(second.join().unwrap().unwrap(), 2);
            job.cancel();
            job.wait().unwrap();
        }
        assert_eq!(first.join().unwrap().unwrap(), 1);
        assert_eq!(committed(&sink).len(), 20);
    }
}
