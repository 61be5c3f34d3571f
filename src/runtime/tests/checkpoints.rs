//! Jobs that take checkpoints, die and go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use super::numbers;
use crate::changelog::ChangeBatch;
use crate::checkpoint::{Checkpoint, CheckpointStore, FileStore, MemoryStore};
use crate::connectors::{SinkWriter, SinkWriterFactory};
use crate::error::{Error, Result};
use crate::graph::{Distribution, Graph, OperatorFactory, VertexKind};
use crate::operators::Operator;
use crate::runtime::committed::CommittedRows;
use crate::runtime::control::{JobEnd, lock};
use crate::runtime::job::{CheckpointConfig, CheckpointMode, Job, JobConfig, Kill};
use crate::runtime::output::Output;
use crate::runtime::restart::RestartStrategy;
use crate::runtime::testing::{
    Act, Builder, Pass, Record, Row, Seen, add, batch, insert, operator, rows, seen_rows, source,
};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

/// Counts rows by key: emits (key, count) for every row, and (-1 - key, count) at the end.
#[derive(Default)]
struct Count {
    counts: BTreeMap<i64, i64>,
}

impl Operator for Count {
    fn process(&mut self, _: usize, input: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let counted: Vec<Row> = rows(&input)
            .into_iter()
            .map(|(_, row)| {
                let count = self.counts.entry(row[0]).or_insert(0);
                *count += 1;
                insert(&[row[0], *count])
            })
            .collect();
        out.emit(batch(&counted))
    }

    fn end_input(&mut self, _: usize, out: &mut Output<'_>) -> Result<()> {
        for (key, count) in &self.counts {
            out.emit(batch(&[insert(&[-1 - key, *count])]))?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let rows: Vec<Row> = self.counts.iter().map(|(k, c)| insert(&[*k, *c])).collect();
        let mut snapshot = OperatorSnapshot::default();
        snapshot.add("counts", 1, batch(&rows).rows().clone());
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        for batch in state.batches("counts") {
            let column = |i: usize| batch.column(i).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let before = self
                    .counts
                    .insert(column(0).value(row), column(1).value(row));
                assert_eq!(before, None);
            }
        }
        Ok(())
    }
}

pub(super) fn count() -> VertexKind {
    operator(Count::default)
}

pub(super) const KEYS: i64 = 7;

/// Two sources -> count by key -> sink.
pub(super) fn counting(parallelism: usize, first: i64, second: i64, sink: VertexKind) -> Graph {
    let acts = |rows: i64| source((0..rows).map(|i| Act::Row(insert(&[i % KEYS]))).collect());
    let mut graph = Graph::default();
    let hash = Distribution::Hash(vec![0]);
    let a = add(&mut graph, "A", acts(first), &[]);
    let b = add(&mut graph, "B", acts(second), &[]);
    let pass = Builder::new("Pass", operator(|| Pass { tag: false }))
        .parallelism(parallelism)
        .from(a, Distribution::Rebalance)
        .add(&mut graph);
    let count = Builder::new("Count", count())
        .columns(2)
        .parallelism(parallelism)
        .from(pass, hash.clone())
        .from(b, hash)
        .add(&mut graph);
    Builder::new("Write", sink)
        .columns(2)
        .from(count, Distribution::Single)
        .add(&mut graph);
    graph
}

/// What `counting` commits when nothing goes wrong, in any order.
pub(super) fn expected(rows: [i64; 2]) -> Vec<Vec<i64>> {
    let mut expected = Vec::new();
    let mut counts = BTreeMap::new();
    for i in rows.into_iter().flat_map(|n| 0..n) {
        let count = counts.entry(i % KEYS).or_insert(0);
        *count += 1;
        expected.push(vec![i % KEYS, *count]);
    }
    expected.extend(counts.iter().map(|(k, c)| vec![-1 - k, *c]));
    expected.sort();
    expected
}

pub(super) fn committed(committed: &CommittedRows) -> Vec<Vec<i64>> {
    let batches = committed.batches();
    let mut all: Vec<_> = batches.iter().flat_map(rows).map(|(_, row)| row).collect();
    all.sort();
    all
}

fn killed_at<S>(store: &Arc<S>, checkpoint_after: u64, die_after: u64) -> JobConfig
where
    S: CheckpointStore + 'static,
{
    let store = Arc::<S>::clone(store);
    let mut checkpointing = CheckpointConfig::new(store);
    checkpointing.kill = Some(Kill {
        checkpoint_after,
        die_after,
        ..Kill::default()
    });
    JobConfig {
        batch_size: 3,
        checkpointing: Some(checkpointing),
        ..JobConfig::default()
    }
}

#[test]
fn a_killed_job_goes_on_at_another_parallelism_exactly_once() {
    for (before, after) in [(1, 3), (3, 1), (3, 2), (1, 1)] {
        for (checkpoint_after, die_after) in [(0, 0), (1, 0), (10, 20), (61, 5), (90, 3)] {
            let sink = CommittedRows::default();
            let store = Arc::new(MemoryStore::default());
            let kind = || VertexKind::Sink(sink.factory());
            let config = killed_at(&store, checkpoint_after, die_after);
            let job = Job::start(counting(before, 80, 20, kind()), config).unwrap();
            assert_eq!(job.wait().unwrap(), JobEnd::Cancelled);
            assert!(store.latest().unwrap().unwrap().committed);
            assert!(committed(&sink).len() < 100);

            let store_ = Arc::<MemoryStore>::clone(&store);
            let config = JobConfig {
                checkpointing: Some(CheckpointConfig::new(store_)),
                ..JobConfig::default()
            };
            let job = Job::start(counting(after, 80, 20, kind()), config).unwrap();
            assert_eq!(job.wait().unwrap(), JobEnd::Finished);
            assert_eq!(
                committed(&sink),
                expected([80, 20]),
                "{before} -> {after} at {checkpoint_after} + {die_after}"
            );
            assert!(store.latest().unwrap().is_none());
        }
    }
}

#[test]
fn a_job_dies_and_goes_on_behind_the_users_back() {
    for rows in [0, 1, 7, 50, 99, 200] {
        let (sink, seen) = Record::sink();
        let graph = counting(3, 80, 20, VertexKind::Sink(sink));
        let config = JobConfig {
            batch_size: 3,
            die_after_rows: Some(rows),
            ..JobConfig::default()
        };
        let job = Job::start(graph, config).unwrap();
        assert_eq!(job.wait().unwrap(), JobEnd::Finished);
        let mut all: Vec<_> = seen_rows(&seen).into_iter().map(|(_, row)| row).collect();
        all.sort();
        assert_eq!(all, expected([80, 20]), "{rows}");
        assert_eq!(lock(&seen).last(), Some(&Seen::Commit(b"tx".to_vec())));
    }
}

#[test]
fn a_killed_job_goes_on_from_files() {
    let directory = tempfile::TempDir::new().unwrap();
    let sink = CommittedRows::default();
    let run = |parallelism: usize, kill: bool| {
        let store = Arc::new(FileStore::open(directory.path(), 1).unwrap());
        let mut config = killed_at(&store, 30, 10);
        if !kill {
            config.checkpointing = Some(CheckpointConfig::new(store));
        }
        let graph = counting(parallelism, 80, 20, VertexKind::Sink(sink.factory()));
        Job::start(graph, config).unwrap().wait().unwrap()
    };
    assert_eq!(run(3, true), JobEnd::Cancelled);
    assert_eq!(run(2, true), JobEnd::Cancelled);
    assert_eq!(run(1, false), JobEnd::Finished);
    assert_eq!(committed(&sink), expected([80, 20]));
}

#[test]
fn a_job_that_ends_before_its_death_finishes() {
    let sink = CommittedRows::default();
    let store = Arc::new(MemoryStore::default());
    let graph = counting(2, 10, 10, VertexKind::Sink(sink.factory()));
    let job = Job::start(graph, killed_at(&store, 15, 100)).unwrap();
    assert_eq!(job.wait().unwrap(), JobEnd::Finished);
    assert_eq!(committed(&sink), expected([10, 10]));
}

/// Fails once after so many rows.
struct FailsOnce {
    rows: usize,
    failures: Arc<AtomicU32>,
}

impl Operator for FailsOnce {
    fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        self.rows += batch.len();
        if self.rows > 30 && self.failures.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(Error::execution("a passing trouble"));
        }
        out.emit(batch)
    }
}

#[test]
fn a_failed_job_is_started_again_from_its_checkpoint() {
    let failures = Arc::new(AtomicU32::new(0));
    let sink = CommittedRows::default();
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..100)), &[]);
    let count = Builder::new("Count", count())
        .columns(2)
        .from(read, Distribution::Forward)
        .add(&mut graph);
    let made = Arc::clone(&failures);
    let factory: OperatorFactory = Arc::new(move |_| {
        Ok(Box::new(FailsOnce {
            rows: 0,
            failures: Arc::clone(&made),
        }))
    });
    let fails = Builder::new("Fails", VertexKind::Operator(factory))
        .columns(2)
        .from(count, Distribution::Forward)
        .add(&mut graph);
    let write = VertexKind::Sink(sink.factory());
    Builder::new("Write", write)
        .columns(2)
        .from(fails, Distribution::Forward)
        .add(&mut graph);

    let mut config = killed_at(&Arc::new(MemoryStore::default()), 20, 1000);
    config.restart = RestartStrategy::FixedDelay {
        attempts: 1,
        delay: Duration::from_millis(1),
    };
    let job = Job::start(graph, config).unwrap();
    assert_eq!(job.wait().unwrap(), JobEnd::Finished);
    assert!(failures.load(Ordering::SeqCst) > 0);
    let all = committed(&sink);
    let expected: BTreeSet<_> = (0..100)
        .flat_map(|k| [vec![k, 1], vec![-1 - k, 1]])
        .collect();
    assert_eq!(all.len(), 200);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn checkpoints_can_be_asked_for() {
    let store = Arc::new(MemoryStore::default());
    let mut acts = numbers(0..5);
    acts.push(Act::Forever);
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(acts), &[]);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(read, 0)]);
    let config = JobConfig {
        checkpointing: Some(CheckpointConfig::new(Arc::<MemoryStore>::clone(&store))),
        ..JobConfig::default()
    };
    let job = Job::start(graph, config).unwrap();
    assert_eq!(job.checkpoint().unwrap(), 1);
    assert_eq!(job.checkpoint().unwrap(), 2);
    job.cancel();
    assert_eq!(job.wait().unwrap(), JobEnd::Cancelled);
    assert!(job.checkpoint().is_err());
    assert_eq!(store.latest().unwrap().unwrap().epoch, 2);
    let commits = |s: &&Seen| matches!(s, Seen::PreCommit(_) | Seen::Commit(_));
    let tx = || Seen::Commit(b"tx".to_vec());
    let expected = [Seen::PreCommit(1), tx(), Seen::PreCommit(2), tx()];
    assert_eq!(
        lock(&seen)
            .iter()
            .filter(commits)
            .cloned()
            .collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn a_job_without_checkpoints_refuses_to_take_one() {
    let mut graph = Graph::default();
    let (sink, _) = Record::sink();
    let read = add(&mut graph, "Read", source(vec![Act::Forever]), &[]);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(read, 0)]);
    let job = Job::start(graph, JobConfig::default()).unwrap();
    let error = job.checkpoint().unwrap_err();
    assert!(error.to_string().contains("without checkpoints"), "{error}");
    job.cancel();
    job.wait().unwrap();
}

/// Full channels, barriers all the time, and paths that part and meet again: nothing may wait for
/// ever, and with exactly-once nothing may be lost or doubled.
#[test]
fn barriers_pass_full_channels() {
    for mode in [CheckpointMode::ExactlyOnce, CheckpointMode::AtLeastOnce] {
        let sink = CommittedRows::default();
        let rows = [3000, 1000];
        let graph = counting(3, rows[0], rows[1], VertexKind::Sink(sink.factory()));
        let mut checkpointing = CheckpointConfig::new(Arc::new(MemoryStore::default()));
        checkpointing.interval = Some(Duration::from_micros(100));
        checkpointing.mode = mode;
        let config = JobConfig {
            batch_size: 2,
            channel_rows: 3,
            checkpointing: Some(checkpointing),
            ..JobConfig::default()
        };
        Job::start(graph, config).unwrap().wait().unwrap();
        assert_eq!(committed(&sink), expected(rows));
    }
}

#[test]
fn at_least_once_loses_nothing() {
    for die_after in [0, 7, 40] {
        let sink = CommittedRows::default();
        let store = Arc::new(MemoryStore::default());
        let graph = || counting(3, 80, 20, VertexKind::Sink(sink.factory()));
        let mut config = killed_at(&store, 50, die_after);
        let checkpointing = config.checkpointing.as_mut().unwrap();
        checkpointing.mode = CheckpointMode::AtLeastOnce;
        Job::start(graph(), config).unwrap().wait().unwrap();
        let config = JobConfig {
            checkpointing: Some(CheckpointConfig::new(store)),
            ..JobConfig::default()
        };
        Job::start(graph(), config).unwrap().wait().unwrap();
        let keys: BTreeSet<_> = committed(&sink).into_iter().map(|row| row[0]).collect();
        assert_eq!(keys, (-KEYS..KEYS).collect());
        assert!(committed(&sink).len() >= expected([80, 20]).len());
    }
}

/// A store and a sink that take their time.
#[test]
fn a_slow_store_and_a_slow_sink_hold_nothing_up_for_good() {
    #[derive(Debug, Default)]
    struct SlowStore(MemoryStore);
    impl CheckpointStore for SlowStore {
        fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
            std::thread::sleep(Duration::from_millis(3));
            self.0.save(checkpoint)
        }
        fn latest(&self) -> Result<Option<Checkpoint>> {
            self.0.latest()
        }
        fn mark_committed(&self, epoch: u64) -> Result<()> {
            std::thread::sleep(Duration::from_millis(1));
            self.0.mark_committed(epoch)
        }
        fn clear(&self) -> Result<()> {
            self.0.clear()
        }
    }
    struct SlowSink(CommittedRows);
    impl SinkWriterFactory for SlowSink {
        fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>> {
            let inner = self.0.factory().create(subtask, parallelism)?;
            Ok(Box::new(SlowWriter(inner)))
        }
        fn commit(&self, committable: &[u8]) -> Result<()> {
            std::thread::sleep(Duration::from_millis(1));
            self.0.factory().commit(committable)
        }
    }
    struct SlowWriter(Box<dyn SinkWriter>);
    impl SinkWriter for SlowWriter {
        fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
            std::thread::sleep(Duration::from_millis(1));
            self.0.write(batch)
        }
        fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
            std::thread::sleep(Duration::from_millis(1));
            self.0.pre_commit(epoch)
        }
    }
    let sink = CommittedRows::default();
    let rows = [90, 40];
    let writers = SlowSink(sink.clone());
    let graph = counting(2, rows[0], rows[1], VertexKind::Sink(Arc::new(writers)));
    let mut checkpointing = CheckpointConfig::new(Arc::new(SlowStore::default()));
    checkpointing.interval = Some(Duration::from_micros(100));
    let config = JobConfig {
        batch_size: 2,
        channel_rows: 3,
        checkpointing: Some(checkpointing),
        ..JobConfig::default()
    };
    Job::start(graph, config).unwrap().wait().unwrap();
    assert_eq!(committed(&sink), expected(rows));
}

#[test]
fn a_checkpoint_that_takes_too_long_fails_the_job() {
    /// Takes its time over every row.
    struct Slow;
    impl Operator for Slow {
        fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
            std::thread::sleep(Duration::from_millis(50));
            out.emit(batch)
        }
    }
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..100)), &[]);
    let (sink, _) = Record::sink();
    let slow = add(&mut graph, "Slow", operator(|| Slow), &[(read, 0)]);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(slow, 0)]);
    let mut config = killed_at(&Arc::new(MemoryStore::default()), 0, 100);
    config.checkpointing.as_mut().unwrap().kill = None;
    config.checkpointing.as_mut().unwrap().interval = Some(Duration::from_millis(1));
    config.checkpointing.as_mut().unwrap().timeout = Some(Duration::from_millis(1));
    let error = Job::start(graph, config).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("not complete"), "{error}");
}

/// Fails at one moment: after so many calls.
#[derive(Debug, Default)]
struct Faults {
    left: Mutex<Option<u32>>,
}

impl Faults {
    fn point(&self) -> Result<()> {
        let mut left = lock(&self.left);
        match &mut *left {
            Some(0) => {
                *left = None;
                Err(Error::connector("the power went out"))
            }
            Some(n) => {
                *n -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Every operation can fail before and after its effect.
#[derive(Debug)]
struct FaultyStore {
    store: MemoryStore,
    faults: Arc<Faults>,
}

impl CheckpointStore for FaultyStore {
    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        self.faults.point()?;
        self.store.save(checkpoint)?;
        self.faults.point()
    }

    fn latest(&self) -> Result<Option<Checkpoint>> {
        self.faults.point()?;
        self.store.latest()
    }

    fn mark_committed(&self, epoch: u64) -> Result<()> {
        self.faults.point()?;
        self.store.mark_committed(epoch)?;
        self.faults.point()
    }

    fn clear(&self) -> Result<()> {
        self.store.clear()
    }
}

struct FaultySink {
    rows: CommittedRows,
    faults: Arc<Faults>,
}

struct FaultyWriter {
    writer: Box<dyn SinkWriter>,
    faults: Arc<Faults>,
}

impl SinkWriterFactory for FaultySink {
    fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(FaultyWriter {
            writer: self.rows.factory().create(subtask, parallelism)?,
            faults: Arc::clone(&self.faults),
        }))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        self.faults.point()?;
        self.rows.factory().commit(committable)?;
        self.faults.point()
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        self.faults.point()?;
        self.rows.factory().abort_leftovers(restored_epoch)?;
        self.faults.point()
    }
}

impl SinkWriter for FaultyWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        self.writer.write(batch)
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        self.faults.point()?;
        let prepared = self.writer.pre_commit(epoch)?;
        self.faults.point()?;
        Ok(prepared)
    }
}

/// Crashes at every operation of the protocol in turn, and once more in the recovery.
#[test]
fn every_row_is_committed_once_wherever_the_job_crashes() {
    let mut crashes = 0;
    for first in 0.. {
        let mut crashed_twice = false;
        for second in [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)] {
            let faults = Arc::new(Faults::default());
            let store = Arc::new(FaultyStore {
                store: MemoryStore::default(),
                faults: Arc::clone(&faults),
            });
            let sink = CommittedRows::default();
            let attempt = |faults_at: Option<u32>| {
                let writers = FaultySink {
                    rows: sink.clone(),
                    faults: Arc::clone(&faults),
                };
                let graph = counting(1, 20, 0, VertexKind::Sink(Arc::new(writers)));
                let mut checkpointing = CheckpointConfig::new(Arc::<FaultyStore>::clone(&store));
                checkpointing.kill = Some(Kill {
                    checkpoint_after: 10,
                    die_after: 1000,
                    ..Kill::default()
                });
                let config = JobConfig {
                    batch_size: 4,
                    checkpointing: Some(checkpointing),
                    ..JobConfig::default()
                };
                *lock(&faults.left) = faults_at;
                Job::start(graph, config).and_then(|job| job.wait())
            };
            let mut end = attempt(Some(first));
            if end.is_err() {
                crashes += 1;
                end = attempt(second);
            } else {
                crashed_twice = true;
            }
            if end.is_err() {
                end = attempt(None);
            }
            assert_eq!(end.unwrap(), JobEnd::Finished);
            assert_eq!(committed(&sink), expected([20, 0]), "{first} {second:?}");
        }
        if crashed_twice {
            break;
        }
    }
    assert!(crashes > 80, "{crashes}");
}
