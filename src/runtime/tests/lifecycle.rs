//! Jobs that are stopped, drained, restarted, and that do without a checkpoint.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::checkpoints::{committed, count, counting, expected};
use super::numbers;
use crate::changelog::ChangeBatch;
use crate::checkpoint::{Checkpoint, CheckpointStore, ControlFile, MemoryStore, StopCommand};
use crate::connectors::{
    SinkWriter, SinkWriterFactory, SourcePoll, SourceReader, SourceReaderFactory, SplitPosition,
};
use crate::error::{Error, Result};
use crate::graph::{Distribution, Graph, OperatorFactory, VertexKind};
use crate::operators::Operator;
use crate::runtime::collect::collect;
use crate::runtime::committed::CommittedRows;
use crate::runtime::control::{JobEnd, lock};
use crate::runtime::job::{
    CheckpointConfig, CheckpointMode, Job, JobConfig, JobHandle, Kill, Retention, StopMode,
};
use crate::runtime::output::Output;
use crate::runtime::restart::RestartStrategy;
use crate::runtime::testing::{Act, Builder, Script, add, operator, rows, source};

fn config(store: &Arc<MemoryStore>) -> JobConfig {
    let store = Arc::<MemoryStore>::clone(store);
    JobConfig {
        batch_size: 3,
        checkpointing: Some(CheckpointConfig::new(store)),
        ..JobConfig::default()
    }
}

/// Numbers, with a pause that does not end behind the first `rows` -> count by key -> sink.
pub(super) fn endless(rows: i64, parallelism: usize, sink: &CommittedRows) -> Graph {
    let mut acts = numbers(0..rows);
    acts.push(Act::Forever);
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(acts), &[]);
    let count = Builder::new("Count", count())
        .columns(2)
        .parallelism(parallelism)
        .from(read, Distribution::Hash(vec![0]))
        .add(&mut graph);
    Builder::new("Write", VertexKind::Sink(sink.factory()))
        .columns(2)
        .from(count, Distribution::Single)
        .add(&mut graph);
    graph
}

/// Waits until so many rows have come to the sink.
pub(super) fn wait_for_rows(job: &JobHandle, rows: u64) {
    let arrived = || {
        let sinks = job.metrics().iter().filter(|m| m.name == "Write");
        sinks.map(|m| m.metrics.records_in.get()).sum::<u64>()
    };
    while arrived() < rows {
        assert!(!job.is_finished(), "{:?}", job.end());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_stopped_job_has_committed_what_it_has_read_and_goes_on_there() {
    let sink = CommittedRows::default();
    let store = Arc::new(MemoryStore::default());
    let savepoint = Arc::new(MemoryStore::default());
    let job = Job::start(endless(20, 3, &sink), config(&store)).unwrap();
    wait_for_rows(&job, 20);
    assert_eq!(committed(&sink).len(), 0);
    let copy = Arc::<MemoryStore>::clone(&savepoint);
    let epoch = job.stop(StopMode::Suspend, Some(copy)).unwrap();
    assert_eq!(job.wait().unwrap(), JobEnd::Stopped(epoch));
    assert_eq!(committed(&sink).len(), 20);
    assert!(job.stop(StopMode::Suspend, None).is_err());
    for store in [store, savepoint] {
        let checkpoint = store.latest().unwrap().unwrap();
        assert_eq!((checkpoint.epoch, checkpoint.committed), (epoch, true));
        let job = Job::start(endless(20, 1, &sink), config(&store)).unwrap();
        assert_eq!(job.restored_checkpoint(), Some(epoch));
        job.stop(StopMode::Suspend, None).unwrap();
        job.wait().unwrap();
        // nothing is read again
        assert_eq!(committed(&sink).len(), 20);
    }
}

#[test]
fn a_job_that_is_stopped_again_and_again_does_what_one_without_pause_does() {
    let sink = CommittedRows::default();
    let store = Arc::new(MemoryStore::default());
    let graph = |parallelism| counting(parallelism, 3000, 1000, VertexKind::Sink(sink.factory()));
    for round in 0.. {
        let job = Job::start(graph(round % 3 + 1), config(&store)).unwrap();
        if round < 6 {
            job.request_stop();
        }
        match job.wait().unwrap() {
            JobEnd::Stopped(_) => assert!(round < 6),
            JobEnd::Finished => break,
            JobEnd::Cancelled => panic!("it was not cancelled"),
        }
    }
    assert_eq!(committed(&sink), expected([3000, 1000]));
}

#[test]
fn a_drained_job_ends_as_if_its_sources_had() {
    let sink = CommittedRows::default();
    let store = Arc::new(MemoryStore::default());
    let savepoint = Arc::new(MemoryStore::default());
    let job = Job::start(endless(7, 1, &sink), config(&store)).unwrap();
    wait_for_rows(&job, 7);
    let copy = Arc::<MemoryStore>::clone(&savepoint);
    job.stop(StopMode::Drain, Some(copy)).unwrap();
    assert_eq!(job.wait().unwrap(), JobEnd::Finished);
    // with the rows that come at the end
    assert_eq!(committed(&sink).len(), 14);
    assert!(savepoint.latest().unwrap().unwrap().committed);
    assert!(store.latest().unwrap().is_none());
}

#[test]
fn another_process_stops_a_job_by_its_control_file() {
    for command in [StopCommand::Suspend, StopCommand::Drain] {
        let directory = tempfile::TempDir::new().unwrap();
        let file = ControlFile::of(directory.path());
        let sink = CommittedRows::default();
        let mut config = config(&Arc::new(MemoryStore::default()));
        config.checkpointing.as_mut().unwrap().control_file = Some(file.clone());
        let job = Job::start(endless(7, 1, &sink), config).unwrap();
        wait_for_rows(&job, 7);
        file.write(command).unwrap();
        let end = job.wait().unwrap();
        match command {
            StopCommand::Suspend => {
                assert_eq!((end, committed(&sink).len()), (JobEnd::Stopped(1), 7))
            }
            StopCommand::Drain => assert_eq!((end, committed(&sink).len()), (JobEnd::Finished, 14)),
        }
    }
}

#[test]
fn a_job_without_checkpoints_is_stopped_at_once() {
    let sink = CommittedRows::default();
    let job = Job::start(endless(7, 1, &sink), JobConfig::default()).unwrap();
    let error = job.stop(StopMode::Suspend, None).unwrap_err();
    assert!(error.to_string().contains("without checkpoints"), "{error}");
    job.request_stop();
    assert_eq!(job.wait().unwrap(), JobEnd::Cancelled);
}

#[test]
fn checkpoints_stay_or_go_with_a_cancelled_job() {
    for (retention, stays) in [
        (Retention::OnCancellation, true),
        (Retention::OnFailure, false),
        (Retention::Never, false),
    ] {
        let store = Arc::new(MemoryStore::default());
        let mut config = config(&store);
        config.checkpointing.as_mut().unwrap().retention = retention;
        let job = Job::start(endless(7, 1, &CommittedRows::default()), config).unwrap();
        job.checkpoint().unwrap();
        job.cancel();
        job.wait().unwrap();
        assert_eq!(store.latest().unwrap().is_some(), stays, "{retention:?}");
    }
}

/// Where a job fails, so many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    SourceOpens,
    Source,
    Operator,
    SinkOpens,
    SinkWrites,
    SinkPrepares,
    SinkCommits,
}

#[derive(Debug, Default)]
struct Faults {
    left: AtomicU32,
    /// Polls or batches of all attempts: one that goes on near the end has few of its own.
    seen: AtomicU32,
}

impl Faults {
    /// Whether the job has got going.
    fn is_warm(&self) -> bool {
        self.seen.fetch_add(1, Ordering::SeqCst) >= 5
    }

    fn point(&self, place: Place) -> Result<()> {
        let take = |left: u32| left.checked_sub(1);
        let failed = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        match failed {
            Ok(_) => Err(Error::connector(format!("{place:?} is out of order"))),
            Err(_) => Ok(()),
        }
    }
}

struct FaultySource {
    script: Script,
    place: Place,
    faults: Arc<Faults>,
    /// It has opened once: only restarts fail.
    opened: AtomicU32,
}

struct FaultyReader {
    reader: Box<dyn SourceReader>,
    place: Place,
    faults: Arc<Faults>,
}

impl SourceReaderFactory for FaultySource {
    fn create(
        &self,
        subtask: usize,
        parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let again = self.opened.fetch_add(1, Ordering::SeqCst) > 0;
        if again && self.place == Place::SourceOpens {
            self.faults.point(Place::SourceOpens)?;
        }
        Ok(Box::new(FaultyReader {
            reader: self.script.create(subtask, parallelism, restored)?,
            place: self.place,
            faults: Arc::clone(&self.faults),
        }))
    }
}

impl SourceReader for FaultyReader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        let faulty = matches!(self.place, Place::Source | Place::SourceOpens);
        if faulty && self.faults.is_warm() {
            self.faults.point(Place::Source)?;
        }
        self.reader.poll(max_rows)
    }

    fn positions(&self) -> Vec<SplitPosition> {
        self.reader.positions()
    }
}

struct FaultyOperator {
    faults: Option<Arc<Faults>>,
}

impl Operator for FaultyOperator {
    fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        if let Some(faults) = self.faults.as_ref().filter(|f| f.is_warm()) {
            faults.point(Place::Operator)?;
        }
        out.emit(batch)
    }
}

struct FaultySink {
    rows: CommittedRows,
    place: Place,
    faults: Arc<Faults>,
    opened: AtomicU32,
}

struct FaultyWriter {
    writer: Box<dyn SinkWriter>,
    place: Place,
    faults: Arc<Faults>,
}

impl SinkWriterFactory for FaultySink {
    fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        let again = self.opened.fetch_add(1, Ordering::SeqCst) > 0;
        if again && self.place == Place::SinkOpens {
            self.faults.point(Place::SinkOpens)?;
        }
        Ok(Box::new(FaultyWriter {
            writer: self.rows.factory().create(subtask, parallelism)?,
            place: self.place,
            faults: Arc::clone(&self.faults),
        }))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        if self.place == Place::SinkCommits {
            self.faults.point(self.place)?;
        }
        self.rows.factory().commit(committable)
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        self.rows.factory().abort_leftovers(restored_epoch)
    }
}

impl SinkWriter for FaultyWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        if matches!(self.place, Place::SinkWrites | Place::SinkOpens) {
            self.faults.point(Place::SinkWrites)?;
        }
        self.writer.write(batch)
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        if self.place == Place::SinkPrepares {
            self.faults.point(self.place)?;
        }
        self.writer.pre_commit(epoch)
    }
}

/// Numbers -> count by key -> sink, with `failures` failures at `place`.
fn faulty(place: Place, failures: u32, rows: &CommittedRows) -> Graph {
    let faults = Arc::new(Faults {
        left: AtomicU32::new(failures),
        seen: AtomicU32::new(0),
    });
    let mut graph = Graph::default();
    let read = VertexKind::Source(Arc::new(FaultySource {
        script: Script(numbers(0..40)),
        place,
        faults: Arc::clone(&faults),
        opened: AtomicU32::new(0),
    }));
    let read = add(&mut graph, "Read", read, &[]);
    let count = Builder::new("Count", count())
        .columns(2)
        .from(read, Distribution::Forward)
        .add(&mut graph);
    let own = (place == Place::Operator).then(|| Arc::clone(&faults));
    let factory: OperatorFactory = Arc::new(move |_| {
        Ok(Box::new(FaultyOperator {
            faults: own.clone(),
        }))
    });
    let fails = Builder::new("Fails", VertexKind::Operator(factory))
        .columns(2)
        .from(count, Distribution::Forward)
        .add(&mut graph);
    let write = FaultySink {
        rows: rows.clone(),
        place,
        faults,
        opened: AtomicU32::new(0),
    };
    Builder::new("Write", VertexKind::Sink(Arc::new(write)))
        .columns(2)
        .from(fails, Distribution::Forward)
        .add(&mut graph);
    graph
}

const PLACES: [Place; 7] = [
    Place::SourceOpens,
    Place::Source,
    Place::Operator,
    Place::SinkOpens,
    Place::SinkWrites,
    Place::SinkPrepares,
    Place::SinkCommits,
];

fn strategies(attempts: u32) -> [RestartStrategy; 3] {
    let delay = Duration::from_micros(100);
    [
        RestartStrategy::FixedDelay { attempts, delay },
        RestartStrategy::FailureRate {
            max_failures: attempts,
            interval: Duration::from_secs(600),
            delay,
        },
        RestartStrategy::ExponentialDelay {
            initial: delay,
            max: delay,
            multiplier: 1.5,
            reset: Duration::from_secs(600),
            attempts: Some(attempts),
        },
    ]
}

fn run_faulty(
    place: Place,
    failures: u32,
    restart: RestartStrategy,
) -> (Result<JobEnd>, JobHandle, CommittedRows) {
    let rows = CommittedRows::default();
    let mut config = config(&Arc::new(MemoryStore::default()));
    let checkpointing = config.checkpointing.as_mut().unwrap();
    checkpointing.interval = Some(Duration::from_micros(300));
    config.restart = restart;
    let job = Job::start(faulty(place, failures, &rows), config).unwrap();
    (job.wait(), job, rows)
}

#[test]
fn a_job_survives_failures_of_its_source_operators_and_sink() {
    for place in PLACES {
        for restart in strategies(2) {
            let (end, job, rows) = run_faulty(place, 2, restart.clone());
            assert_eq!(end.unwrap(), JobEnd::Finished, "{place:?} {restart:?}");
            let mut expected: Vec<Vec<i64>> = (0..40).map(|k| vec![k, 1]).collect();
            expected.extend((0..40).map(|k| vec![-1 - k, 1]));
            expected.sort();
            assert_eq!(committed(&rows), expected, "{place:?} {restart:?}");
            let reasons: Vec<String> = job.failures().iter().map(ToString::to_string).collect();
            assert_eq!(reasons.len(), 2, "{place:?} {reasons:?}");
            assert!(
                reasons.iter().all(|r| r.contains("out of order")),
                "{reasons:?}"
            );
        }
    }
}

#[test]
fn a_job_gives_up_with_the_last_reason() {
    for place in PLACES {
        let mut all = strategies(2).to_vec();
        all.push(RestartStrategy::None);
        for restart in all {
            let restarts = if restart == RestartStrategy::None {
                0
            } else {
                2
            };
            let (end, job, _) = run_faulty(place, 99, restart);
            let reason = end.unwrap_err().to_string();
            assert!(reason.contains("is out of order"), "{reason}");
            assert_eq!(job.failures().len(), restarts);
        }
    }
}

#[test]
fn a_job_can_be_stopped_while_it_waits_for_its_restart() {
    let restart = RestartStrategy::FixedDelay {
        attempts: 9,
        delay: Duration::from_secs(3600),
    };
    for cancel in [true, false] {
        let rows = CommittedRows::default();
        let mut config = config(&Arc::new(MemoryStore::default()));
        config.restart = restart.clone();
        let job = Job::start(faulty(Place::Operator, 99, &rows), config).unwrap();
        while job.failures().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if cancel {
            job.cancel();
            assert_eq!(job.wait().unwrap(), JobEnd::Cancelled);
        } else {
            job.request_stop();
            assert_eq!(job.wait().unwrap(), JobEnd::Stopped(0));
        }
    }
}

/// Cannot save while told so.
#[derive(Debug, Default)]
struct FullDisk {
    store: MemoryStore,
    full: Mutex<u32>,
}

impl CheckpointStore for FullDisk {
    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        let mut full = lock(&self.full);
        if *full > 0 {
            *full -= 1;
            return Err(Error::checkpoint("no space left on device"));
        }
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

#[test]
fn checkpoints_that_cannot_be_saved_lose_no_transaction() {
    for (tolerable, failures) in [(0, 1), (2, 2), (2, 3)] {
        let sink = CommittedRows::default();
        let store = Arc::new(FullDisk::default());
        let mut checkpointing = CheckpointConfig::new(Arc::<FullDisk>::clone(&store));
        checkpointing.tolerable_failures = tolerable;
        let config = JobConfig {
            batch_size: 3,
            checkpointing: Some(checkpointing),
            ..JobConfig::default()
        };
        let job = Job::start(endless(20, 2, &sink), config).unwrap();
        wait_for_rows(&job, 20);
        *lock(&store.full) = failures;
        for _ in 0..failures {
            let error = job.checkpoint().unwrap_err().to_string();
            assert!(error.contains("no space left"), "{error}");
        }
        if failures > tolerable {
            let error = job.wait().unwrap_err().to_string();
            assert!(error.contains("no space left"), "{error}");
            continue;
        }
        assert_eq!(committed(&sink).len(), 0);
        job.stop(StopMode::Suspend, None).unwrap();
        assert_eq!(committed(&sink).len(), 20);
    }
}

#[test]
fn a_job_goes_on_without_a_checkpoint_that_took_too_long() {
    /// Is slow while there are rows of the first half.
    struct Slow;
    impl Operator for Slow {
        fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
            std::thread::sleep(Duration::from_millis(2));
            out.emit(batch)
        }
    }
    let sink = CommittedRows::default();
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..60)), &[]);
    let slow = Builder::new("Slow", operator(|| Slow))
        .parallelism(2)
        .from(read, Distribution::Rebalance)
        .add(&mut graph);
    Builder::new("Write", VertexKind::Sink(sink.factory()))
        .from(slow, Distribution::Single)
        .add(&mut graph);
    let mut config = config(&Arc::new(MemoryStore::default()));
    config.batch_size = 1;
    let checkpointing = config.checkpointing.as_mut().unwrap();
    checkpointing.interval = Some(Duration::from_micros(100));
    checkpointing.timeout = Some(Duration::from_micros(50));
    checkpointing.tolerable_failures = u32::MAX;
    let job = Job::start(graph, config).unwrap();
    assert_eq!(job.wait().unwrap(), JobEnd::Finished);
    let expected: Vec<Vec<i64>> = (0..60).map(|i| vec![i]).collect();
    assert_eq!(committed(&sink), expected);
}

/// At most once: what a job that dies has not sent on is lost, and nothing comes twice.
#[test]
fn at_most_once_doubles_nothing() {
    let mut lost = 0;
    for (checkpoint_after, die_after) in [(0, 0), (10, 20), (61, 5), (90, 3)] {
        let sink = CommittedRows::default();
        let store = Arc::new(MemoryStore::default());
        let graph = || counting(2, 80, 20, VertexKind::Sink(sink.factory()));
        let mut first = config(&store);
        let checkpointing = first.checkpointing.as_mut().unwrap();
        checkpointing.mode = CheckpointMode::AtMostOnce;
        let second = first.clone();
        first.checkpointing.as_mut().unwrap().kill = Some(Kill {
            checkpoint_after,
            die_after,
            ..Kill::default()
        });
        Job::start(graph(), first).unwrap().wait().unwrap();
        let second = JobConfig {
            control: crate::runtime::control::JobControl::default(),
            ..second
        };
        let job = Job::start(graph(), second).unwrap();
        assert_eq!(job.wait().unwrap(), JobEnd::Finished);
        let rows = committed(&sink);
        let mut distinct = rows.clone();
        distinct.dedup();
        assert_eq!(rows, distinct);
        lost += expected([80, 20]).len() - rows.len();
    }
    assert!(lost > 0);
}

/// A stop in peace loses nothing, whatever the mode.
#[test]
fn a_stopped_at_most_once_job_loses_nothing() {
    let sink = CommittedRows::default();
    let store = Arc::new(MemoryStore::default());
    for round in 0.. {
        let mut config = config(&store);
        config.checkpointing.as_mut().unwrap().mode = CheckpointMode::AtMostOnce;
        config.checkpointing.as_mut().unwrap().interval = Some(Duration::from_micros(200));
        let graph = counting(2, 800, 200, VertexKind::Sink(sink.factory()));
        let job = Job::start(graph, config).unwrap();
        if round < 3 {
            job.request_stop();
        }
        if job.wait().unwrap() == JobEnd::Finished {
            break;
        }
    }
    assert_eq!(committed(&sink), expected([800, 200]));
}

/// The reader of a query gets every row once, although the job fails.
#[test]
fn the_reader_of_a_query_gets_every_row_once() {
    let faults = Arc::new(Faults {
        left: AtomicU32::new(2),
        seen: AtomicU32::new(0),
    });
    let mut config = config(&Arc::new(MemoryStore::default()));
    config.checkpointing.as_mut().unwrap().interval = Some(Duration::from_micros(300));
    config.restart = strategies(9)[0].clone();
    let (writers, reader) = collect(4, &config.control);
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..40)), &[]);
    let factory: OperatorFactory = Arc::new(move |_| {
        Ok(Box::new(FaultyOperator {
            faults: Some(Arc::clone(&faults)),
        }))
    });
    let fails = Builder::new("Fails", VertexKind::Operator(factory))
        .from(read, Distribution::Forward)
        .add(&mut graph);
    Builder::new("Collect", VertexKind::Sink(writers))
        .from(fails, Distribution::Forward)
        .add(&mut graph);
    let job = Job::start(graph, config).unwrap();
    let all: Vec<i64> = reader
        .flat_map(|b| rows(&b))
        .map(|(_, row)| row[0])
        .collect();
    assert_eq!(all, (0..40).collect::<Vec<i64>>());
    assert_eq!(job.failures().len(), 2);
}
