//! Rows per second of window aggregation on one core: COUNT by key of tumbling and hopping windows of
//! ten seconds (every two seconds), a million events a second of event time. 4096-row batches, a
//! watermark every 200 ms of event time, output built and thrown away.

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ebbflow::aggregates::{AggregateCall, CallContext, resolve};
use ebbflow::changelog::ChangeBatch;
use ebbflow::functions::Environment;
use ebbflow::operators::window_aggregate::{
    WindowAggregateSpec, WindowForm, WindowProperty, WindowSource, window_aggregate,
};
use ebbflow::operators::windowing::{WindowKind, WindowTime, Windowing};
use ebbflow::operators::{Operator, OperatorContext};
use ebbflow::runtime::clock::ManualClock;
use ebbflow::runtime::metrics::OperatorMetrics;
use ebbflow::runtime::output::Output;
use ebbflow::types::{Column, Schema, TimeAttribute, TypeKind};

use self::common::{Discard, Random};

const ROWS: usize = 4096;
const KEYS: u64 = 100_000;
/// Events in a millisecond of event time.
const EVENTS_PER_MS: i64 = 1000;
/// Event time between two watermarks, ms.
const INTERVAL_MS: i64 = 200;
/// Batches that are made ahead; their times are moved on with every round.
const BATCHES: usize = 256;

fn schema() -> Schema {
    let time = Column {
        time: Some(TimeAttribute::Rowtime),
        ..Column::new("ts", TypeKind::Timestamp(3).nullable())
    };
    Schema::new(vec![Column::new("k", TypeKind::BigInt.nullable()), time])
}

fn operator(kind: WindowKind) -> Box<dyn Operator> {
    let context = CallContext {
        grouped: true,
        filtered: false,
        distinct: false,
    };
    let count = AggregateCall {
        function: resolve("COUNT", &[], context).expect("COUNT"),
        args: vec![],
        filter: None,
        distinct: false,
    };
    let spec = WindowAggregateSpec {
        input: schema(),
        group_by: vec![0],
        aggregates: vec![count],
        retracting: false,
        form: WindowForm::TableFunction,
        source: WindowSource::Time(WindowTime::Rowtime(1)),
        windowing: Windowing::new(kind, None),
        properties: vec![WindowProperty::Start, WindowProperty::End],
        output: Schema::new(vec![
            Column::new("k", TypeKind::BigInt.nullable()),
            Column::new("n", TypeKind::BigInt.not_null()),
            Column::new("window_start", TypeKind::Timestamp(3).not_null()),
            Column::new("window_end", TypeKind::Timestamp(3).not_null()),
        ]),
    };
    let context = OperatorContext {
        subtask: 0,
        parallelism: 1,
        batch_size: ROWS,
        environment: Arc::new(Environment::default()),
        metrics: Arc::new(OperatorMetrics::default()),
        clock: Arc::new(ManualClock::new(0)),
    };
    window_aggregate(&spec, &context).expect("the types can be kept")
}

/// The keys of a batch.
fn keys() -> Vec<ArrayRef> {
    let mut random = Random(0x9e37_79b9);
    (0..BATCHES)
        .map(|_| {
            let keys = (0..ROWS).map(|_| i64::try_from(random.next(KEYS)).expect("small"));
            Arc::new(Int64Array::from_iter_values(keys)) as ArrayRef
        })
        .collect()
}

fn run(criterion: &mut Criterion, name: &str, kind: WindowKind) {
    let keys = keys();
    let arrow = schema().to_arrow();
    let mut operator = operator(kind);
    let mut sink = Discard::default();
    let (mut event, mut next_watermark) = (0_i64, INTERVAL_MS);
    let mut batches = keys.iter().cycle();
    let mut group = criterion.benchmark_group("windows");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.sample_size(10);
    group.warm_up_time(Duration::from_secs(3));
    group.measurement_time(Duration::from_secs(10));
    group.bench_function(BenchmarkId::new(name, KEYS), |bencher| {
        bencher.iter(|| {
            let rows = i64::try_from(ROWS).expect("small");
            let times = (event..event + rows).map(|e| e / EVENTS_PER_MS);
            let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(times));
            let keys = Arc::clone(batches.next().expect("a cycle"));
            let batch = RecordBatch::try_new(Arc::clone(&arrow), vec![keys, times])
                .expect("columns of one length");
            event += rows;
            operator
                .process(0, ChangeBatch::inserts(batch), &mut Output::new(&mut sink))
                .expect("no failure");
            if event / EVENTS_PER_MS >= next_watermark {
                operator
                    .watermark(next_watermark - 1, &mut Output::new(&mut sink))
                    .expect("no failure");
                next_watermark += INTERVAL_MS;
            }
        });
    });
    group.finish();
    let size = operator.state_size();
    eprintln!(
        "{} rows, {} windows of keys emitted, {} groups open\n",
        event, sink.0, size.rows
    );
}

fn windows(criterion: &mut Criterion) {
    let tumble = WindowKind::Tumble {
        size: 10_000,
        offset: 0,
    };
    let hop = WindowKind::Hop {
        slide: 2_000,
        size: 10_000,
        offset: 0,
    };
    run(criterion, "tumble", tumble);
    run(criterion, "hop", hop);
}

criterion_group!(benches, windows);
criterion_main!(benches);
