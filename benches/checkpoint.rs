//! What checkpoints cost: throughput with and without, the pause of a barrier, and a restore.
//!
//! A program of its own rather than Criterion's: it measures seconds of a running job, ratios within
//! one run, and percentiles of single calls. `cargo bench --bench checkpoint [-- throughput|pause|restore]`.

#![allow(clippy::print_stdout)] // a report

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ebbflow::aggregates::{AggregateCall, CallContext, resolve};
use ebbflow::changelog::ChangeBatch;
use ebbflow::checkpoint::{
    Checkpoint, CheckpointStore, FileStore, SubtaskSnapshot, VertexCheckpoint, operator_state,
};
use ebbflow::connectors::{
    SinkWriter, SinkWriterFactory, SourcePoll, SourceReader, SourceReaderFactory, SplitPosition,
};
use ebbflow::error::Result;
use ebbflow::functions::{Arg, Environment};
use ebbflow::graph::{Distribution, Graph, Input, Vertex, VertexId, VertexKind};
use ebbflow::operators::group_aggregate::{GroupAggregate, GroupAggregateSpec};
use ebbflow::operators::{Operator, OperatorContext};
use ebbflow::runtime::clock::{ManualClock, monotonic_ns};
use ebbflow::runtime::job::{CheckpointConfig, Job, JobConfig};
use ebbflow::runtime::metrics::OperatorMetrics;
use ebbflow::runtime::output::{Downstream, Output, Status};
use ebbflow::state::snapshot::OperatorSnapshot;
use ebbflow::types::{Column, Schema, TypeKind};

/// As in the binary.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: usize = 4096;
const KEYS: u64 = 1_000_000;
const INTERVAL: Duration = Duration::from_secs(1);

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    if !std::env::args().any(|a| a == "--bench") {
        println!("these take minutes without optimization: cargo bench --bench checkpoint");
        return;
    }
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let directory = std::env::temp_dir().join(format!("ebbflow-bench-{}", std::process::id()));
    if runs("pause") {
        pause();
    }
    if runs("restore") {
        restore(&directory.join("restore"));
    }
    if runs("throughput") {
        throughput(&directory.join("throughput"));
    }
    // Only what this run has written.
    let _ = std::fs::remove_dir_all(&directory);
}

fn now() -> Duration {
    Duration::from_nanos(monotonic_ns())
}

fn columns(names: &[&str]) -> Schema {
    let column = |name: &&str| Column {
        name: (*name).to_string(),
        data_type: TypeKind::BigInt.nullable(),
        time: None,
    };
    Schema::new(names.iter().map(column).collect())
}

/// `SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k`.
fn spec() -> GroupAggregateSpec {
    let call = |name: &str, args: Vec<usize>| {
        let arguments: Vec<Arg> = args
            .iter()
            .map(|_| Arg {
                data_type: TypeKind::BigInt.nullable(),
                literal: None,
            })
            .collect();
        let context = CallContext {
            grouped: true,
            filtered: false,
            distinct: false,
        };
        AggregateCall {
            function: resolve(name, &arguments, context).expect("an aggregate function"),
            args,
            filter: None,
            distinct: false,
        }
    };
    GroupAggregateSpec {
        input_types: columns(&["k", "v"]).types(),
        group_keys: vec![0],
        aggregates: vec![call("COUNT", vec![]), call("SUM", vec![1])],
        input_retracts: false,
        emit_update_before: true,
        ttl_ms: None,
        mini_batch: None,
        output: columns(&["k", "c", "s"]),
    }
}

fn operator() -> GroupAggregate {
    let context = OperatorContext {
        subtask: 0,
        parallelism: 1,
        batch_size: ROWS,
        environment: Arc::new(Environment::default()),
        metrics: Arc::new(OperatorMetrics::default()),
        clock: Arc::new(ManualClock::new(0)),
    };
    GroupAggregate::new(spec(), &context).expect("an operator")
}

fn batch(keys: impl Iterator<Item = u64>) -> ChangeBatch {
    let keys: Vec<i64> = keys.map(u64::cast_signed).collect();
    let keys: ArrayRef = Arc::new(Int64Array::from(keys));
    let rows = RecordBatch::try_new(
        columns(&["k", "v"]).to_arrow(),
        vec![Arc::clone(&keys), keys],
    );
    ChangeBatch::inserts(rows.expect("two columns"))
}

struct Discard;

impl Downstream for Discard {
    fn batch(&mut self, _: ChangeBatch) -> Result<()> {
        Ok(())
    }

    fn watermark(&mut self, _: i64) -> Result<()> {
        Ok(())
    }

    fn status(&mut self, _: Status) -> Result<()> {
        Ok(())
    }
}

fn feed(operator: &mut GroupAggregate, keys: &[u64]) {
    for keys in keys.chunks(ROWS) {
        let batch = batch(keys.iter().copied());
        let fed = operator.process(0, batch, &mut Output::new(&mut Discard));
        fed.expect("rows that fit");
    }
}

/// Scatters numbers over all keys.
fn scatter(i: u64, keys: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys
}

/// The time that a task's thread spends on copying the state at a barrier.
fn pause() {
    let mut operator = operator();
    feed(&mut operator, &(0..KEYS).collect::<Vec<_>>());
    operator.track_changes();
    operator.changes(false).expect("a copy");
    let mut pauses = Vec::new();
    let mut next = 0;
    for _ in 0..300 {
        let dirty: Vec<u64> = (next..next + 100_000).map(|i| scatter(i, KEYS)).collect();
        next += 100_000;
        feed(&mut operator, &dirty);
        let start = now();
        let copy = operator.changes(true).expect("a copy");
        pauses.push(now() - start);
        drop(copy);
    }
    pauses.sort_unstable();
    let at = |percent: usize| pauses[(pauses.len() - 1) * percent / 100];
    println!(
        "barrier at 100,000 dirty of 1,000,000 keys: p50 {:.2?}, p90 {:.2?}, p99 {:.2?}, most {:.2?}",
        at(50),
        at(90),
        at(99),
        at(100)
    );
}

fn checkpoint(epoch: u64, base: Option<u64>, operator: OperatorSnapshot) -> Checkpoint {
    Checkpoint {
        epoch,
        base,
        vertices: vec![VertexCheckpoint {
            uid: "aggregate".into(),
            name: "GroupAggregate".into(),
            signature: String::new(),
            subtasks: vec![SubtaskSnapshot {
                operator,
                ..SubtaskSnapshot::default()
            }],
        }],
        ..Checkpoint::default()
    }
}

/// From files on disk to an operator that is ready.
fn restore(directory: &std::path::Path) {
    const GROUPS: u64 = 10_000_000;
    let mut operator = operator();
    feed(&mut operator, &(0..GROUPS).collect::<Vec<_>>());
    operator.track_changes();
    let store = FileStore::open(directory, 1).expect("a directory");
    let start = now();
    let whole = operator.snapshot().expect("a copy");
    let copied = now() - start;
    store
        .save(&checkpoint(1, None, whole))
        .expect("room on the disk");
    let saved = (now() - start) - copied;
    println!("copy of 10,000,000 groups: {copied:.2?}, encoded and written: {saved:.2?}");
    for (epoch, dirty) in [(2, 0), (3, 1_000_000)] {
        if dirty > 0 {
            let keys: Vec<u64> = (0..dirty).map(|i| scatter(i, GROUPS)).collect();
            feed(&mut operator, &keys);
            let changes = operator.changes(epoch > 2).expect("a copy");
            store
                .save(&checkpoint(epoch, Some(1), changes))
                .expect("room on the disk");
        }
        let mut times = Vec::new();
        for _ in 0..3 {
            let mut fresh = self::operator();
            let start = now();
            let read = store.latest().expect("a checkpoint").expect("a checkpoint");
            let loaded = now() - start;
            let state = operator_state(&read.vertices[0].subtasks, 0, 1, 128);
            fresh.restore(state.expect("its state")).expect("its state");
            times.push(((now() - start), loaded));
            assert_eq!(fresh.state_size().rows as u64, GROUPS);
        }
        let (best, loaded) = times.iter().min().expect("three runs");
        println!(
            "restore of 10,000,000 groups, {dirty} of them in a second layer: {best:.2?} ({loaded:.2?} of it reading)"
        );
    }
}

/// Rows over a tenth of the keys, another tenth every second.
struct Moving {
    start: Option<Duration>,
    read: u64,
    until: Duration,
}

struct Source {
    rows: Arc<AtomicU64>,
    until: Duration,
}

impl SourceReaderFactory for Source {
    fn create(&self, _: usize, _: usize, _: &[SplitPosition]) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(Counted {
            inner: Moving {
                start: None,
                read: 0,
                until: self.until,
            },
            rows: Arc::clone(&self.rows),
        }))
    }
}

struct Counted {
    inner: Moving,
    rows: Arc<AtomicU64>,
}

impl SourceReader for Counted {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        let Moving { start, read, until } = &mut self.inner;
        let rows = max_rows as u64;
        // First every key once.
        if *read < KEYS {
            let first = *read;
            *read += rows;
            return Ok(SourcePoll::Batch(batch(first..(first + rows).min(KEYS))));
        }
        let start = *start.get_or_insert_with(now);
        let elapsed = now() - start;
        if elapsed > *until {
            return Ok(SourcePoll::End);
        }
        let window = elapsed.as_secs() % 10 * (KEYS / 10);
        let first = *read;
        *read += rows;
        self.rows.fetch_add(rows, Ordering::Relaxed);
        let keys = (first..first + rows).map(|i| window + scatter(i, KEYS / 10));
        Ok(SourcePoll::Batch(batch(keys)))
    }

    fn positions(&self) -> Vec<SplitPosition> {
        Vec::new()
    }
}

struct Sink;

impl SinkWriterFactory for Sink {
    fn create(&self, _: usize, _: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Self))
    }
}

impl SinkWriter for Sink {
    fn write(&mut self, _: &ChangeBatch) -> Result<()> {
        Ok(())
    }
}

fn graph(rows: &Arc<AtomicU64>, until: Duration) -> Graph {
    let mut graph = Graph::default();
    let mut from = None;
    let source = VertexKind::Source(Arc::new(Source {
        rows: Arc::clone(rows),
        until,
    }));
    let aggregate = VertexKind::Operator(Arc::new(|context: &OperatorContext| {
        let operator: Box<dyn Operator> = Box::new(GroupAggregate::new(spec(), context)?);
        Ok(operator)
    }));
    let kinds = [
        ("Source", source, columns(&["k", "v"])),
        ("GroupAggregate", aggregate, columns(&["k", "c", "s"])),
        (
            "Sink",
            VertexKind::Sink(Arc::new(Sink)),
            columns(&["k", "c", "s"]),
        ),
    ];
    for (name, kind, schema) in kinds {
        let inputs = from.map(|from: VertexId| Input {
            from,
            port: 0,
            distribution: Distribution::Forward,
        });
        from = Some(graph.add(Vertex {
            name: name.into(),
            description: name.into(),
            uid: name.into(),
            signature: String::new(),
            kind,
            schema,
            mode: None,
            parallelism: 1,
            inputs: inputs.into_iter().collect(),
        }));
    }
    graph
}

/// Rows per second of a job, after its keys are there.
fn rate(checkpointing: Option<CheckpointConfig>, until: Duration) -> f64 {
    let rows = Arc::new(AtomicU64::new(0));
    let config = JobConfig {
        checkpointing,
        ..JobConfig::default()
    };
    let job = Job::start(graph(&rows, until), config).expect("a job");
    job.wait().expect("a job that ends");
    #[allow(clippy::cast_precision_loss)] // a rate
    let rows = rows.load(Ordering::Relaxed) as f64;
    rows / until.as_secs_f64()
}

fn throughput(directory: &std::path::Path) {
    let until = Duration::from_secs(8);
    let with = |incremental: bool| {
        let store = FileStore::open(directory, 1).expect("a directory");
        let mut config = CheckpointConfig::new(Arc::new(store));
        config.interval = Some(INTERVAL);
        config.incremental = incremental;
        config
    };
    for incremental in [true, false] {
        let mut ratios = Vec::new();
        for _ in 0..3 {
            let plain = rate(None, until);
            let checkpointed = rate(Some(with(incremental)), until);
            println!(
                "rows a second: {:.2} M without checkpoints, {:.2} M with one a second (incremental: {incremental})",
                plain / 1e6,
                checkpointed / 1e6
            );
            ratios.push(checkpointed / plain);
        }
        let best = ratios.iter().copied().fold(0.0, f64::max);
        println!(
            "best ratio, incremental {incremental}: {:.1} %",
            best * 100.0
        );
    }
}
