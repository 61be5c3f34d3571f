//! Rows per second of Top-N on one core: the ten best rows of each of many keys, of rows that only
//! come and of rows that improve. 4096-row batches, output built and thrown away.

#![allow(clippy::unwrap_used)] // a bench may end at once

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ebbflow::changelog::{ChangeBatch, RowKind};
use ebbflow::functions::Environment;
use ebbflow::operators::rank::{Rank, RankEnd, RankSpec, RankStrategy, SortColumn};
use ebbflow::operators::{Operator, OperatorContext};
use ebbflow::runtime::clock::ManualClock;
use ebbflow::runtime::metrics::OperatorMetrics;
use ebbflow::runtime::output::Output;
use ebbflow::types::{Column, Schema, TypeKind};

use self::common::{Discard, Random};

const ROWS: usize = 4096;
/// About 31 rows a key: two rows of three enter.
const SHORT: usize = 768;
/// About 100 rows a key: one row of three enters.
const LONG: usize = 2442;
const KEYS: u64 = 100_000;
const N: u64 = 10;

fn schema(text: bool) -> Schema {
    let last = if text {
        TypeKind::STRING
    } else {
        TypeKind::BigInt
    };
    Schema::new(vec![
        Column::new("k", TypeKind::BigInt.nullable()),
        Column::new("score", TypeKind::BigInt.nullable()),
        Column::new("x", last.nullable()),
    ])
}

fn input(text: bool, batches: usize) -> Vec<ChangeBatch> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let arrow = schema(text).to_arrow();
    let mut column = |bound| {
        let numbers = (0..ROWS).map(|_| i64::try_from(random.next(bound)).unwrap());
        Int64Array::from_iter_values(numbers)
    };
    let mut batch = || {
        let keys = column(KEYS);
        let scores = column(1_000_000);
        let last: ArrayRef = if text {
            let texts = (0..ROWS).map(|i| Some(format!("row number {i}")));
            Arc::new(texts.collect::<StringArray>())
        } else {
            Arc::new(scores.clone())
        };
        let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(scores), last];
        let rows = RecordBatch::try_new(Arc::clone(&arrow), columns).unwrap();
        ChangeBatch::try_new(rows, vec![RowKind::Insert; ROWS]).unwrap()
    };
    (0..batches).map(|_| batch()).collect()
}

fn rank(strategy: RankStrategy, with_rank: bool, text: bool) -> Rank {
    let mut output = schema(text);
    if with_rank {
        let number = TypeKind::BigInt.not_null();
        output.columns.push(Column::new("n", number));
    }
    let spec = RankSpec {
        schema: schema(text),
        partition_by: vec![0],
        order_by: vec![SortColumn {
            column: 1,
            descending: true,
            nulls_first: false,
        }],
        strategy,
        rank_start: 1,
        rank_end: RankEnd::Constant(N),
        output_rank: with_rank,
        generate_update_before: true,
        ttl_ms: None,
        output,
    };
    let context = OperatorContext {
        subtask: 0,
        parallelism: 1,
        batch_size: 4096,
        environment: Arc::new(Environment::default()),
        metrics: Arc::new(OperatorMetrics::default()),
        clock: Arc::new(ManualClock::new(0)),
    };
    Rank::new(&spec, &context).unwrap()
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("top_n");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5));
    let append = RankStrategy::AppendFast;
    let cases = [
        ("insertions", append.clone(), false, false, LONG),
        ("first insertions", append.clone(), false, false, SHORT),
        ("first insertions, text", append.clone(), false, true, SHORT),
        (
            "first insertions, with the rank",
            append,
            true,
            false,
            SHORT,
        ),
        ("any changes", RankStrategy::Retract, false, false, SHORT),
    ];
    for (name, strategy, with_rank, text, batches) in cases {
        group.throughput(Throughput::Elements((ROWS * batches) as u64));
        let batches = input(text, batches);
        group.bench_with_input(BenchmarkId::from_parameter(name), &batches, |b, batches| {
            b.iter(|| {
                let mut rank = rank(strategy.clone(), with_rank, text);
                let mut out = Discard::default();
                for batch in batches {
                    rank.process(0, batch.clone(), &mut Output::new(&mut out))
                        .unwrap();
                }
                out.0
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
