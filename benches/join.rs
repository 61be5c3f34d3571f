//! Rows per second of the regular join on one core: rows of both sides in turn, insertions only and
//! with updates, by number of matches. 4096-row batches, output built and thrown away.

#![allow(clippy::unwrap_used)] // a bench may end at once

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ebbflow::changelog::{ChangeBatch, RowKind};
use ebbflow::functions::Environment;
use ebbflow::operators::join::{Join, JoinInput, JoinSpec, JoinType, UniqueKey};
use ebbflow::operators::{Operator, OperatorContext};
use ebbflow::runtime::clock::ManualClock;
use ebbflow::runtime::metrics::OperatorMetrics;
use ebbflow::runtime::output::Output;
use ebbflow::types::{Column, Schema, TypeKind};

use self::common::Discard;

const ROWS: usize = 4096;
const BATCHES: usize = 128;

/// What the rows of a side are.
#[derive(Clone, Copy, PartialEq)]
enum Rows {
    /// Each key once.
    Unique,
    /// Each key as often as this.
    Repeated(i64),
    /// In the first half each key once; then each row is replaced: `-U`, `+U`.
    Updated,
}

impl Rows {
    /// Key, value and kind of row `at` of a side that has `len` rows.
    fn row(self, at: i64, len: i64) -> (i64, i64, RowKind) {
        match self {
            Self::Unique => (at, at, RowKind::Insert),
            Self::Repeated(times) => (at / times, at, RowKind::Insert),
            Self::Updated if at < len / 2 => (at, 0, RowKind::Insert),
            Self::Updated if at % 2 == 0 => ((at - len / 2) / 2, 0, RowKind::UpdateBefore),
            Self::Updated => ((at - len / 2) / 2, 1, RowKind::UpdateAfter),
        }
    }
}

fn schema(side: &str, text: bool) -> Schema {
    let name = |column: &str| format!("{side}_{column}");
    let last = if text {
        TypeKind::STRING
    } else {
        TypeKind::BigInt
    };
    Schema::new(vec![
        Column::new(name("k"), TypeKind::BigInt.nullable()),
        Column::new(name("v"), TypeKind::BigInt.nullable()),
        Column::new(name("x"), last.nullable()),
    ])
}

/// The batches of both sides, in turn.
fn input(rows: Rows, text: bool) -> Vec<(usize, ChangeBatch)> {
    let len = i64::try_from(BATCHES / 2 * ROWS).unwrap();
    let batch = |number: usize| {
        let port = number % 2;
        let first = (number / 2) * ROWS;
        let rows: Vec<_> = (first..first + ROWS)
            .map(|at| rows.row(i64::try_from(at).unwrap(), len))
            .collect();
        // Scattered over the hash table.
        let scatter = |k: i64| k.wrapping_mul(0x5851_f42d_4c95_7f2d);
        let keys: Int64Array = rows.iter().map(|(key, ..)| scatter(*key)).collect();
        let values: Int64Array = rows.iter().map(|(_, value, _)| *value).collect();
        let last: ArrayRef = if text {
            let texts = rows.iter().map(|(_, v, _)| Some(format!("row number {v}")));
            Arc::new(texts.collect::<StringArray>())
        } else {
            Arc::new(values.clone())
        };
        let schema = schema(["l", "r"][port], text).to_arrow();
        let columns = vec![Arc::new(keys) as ArrayRef, Arc::new(values), last];
        let batch = RecordBatch::try_new(schema, columns).unwrap();
        let kinds = rows.iter().map(|(.., kind)| *kind).collect();
        (port, ChangeBatch::try_new(batch, kinds).unwrap())
    };
    (0..BATCHES).map(batch).collect()
}

fn join(join_type: JoinType, text: bool) -> Join {
    let input = |side| JoinInput {
        schema: schema(side, text),
        keys: vec![0],
        unique_key: UniqueKey::None,
        updates_in_pairs: true,
        ttl_ms: 0,
    };
    let spec = JoinSpec {
        join_type,
        left: input("l"),
        right: input("r"),
        null_safe: vec![false],
        condition: None,
        mini_batch: None,
        output: schema("l", text).join(&schema("r", text)),
    };
    let context = OperatorContext {
        subtask: 0,
        parallelism: 1,
        batch_size: 4096,
        environment: Arc::new(Environment::default()),
        metrics: Arc::new(OperatorMetrics::default()),
        clock: Arc::new(ManualClock::new(0)),
    };
    Join::new(spec, &context).unwrap()
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("join");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4))
        .throughput(Throughput::Elements((ROWS * BATCHES) as u64));
    let cases = [
        ("inner/unique", JoinType::Inner, Rows::Unique, false),
        ("inner/unique text", JoinType::Inner, Rows::Unique, true),
        (
            "inner/4 rows a key",
            JoinType::Inner,
            Rows::Repeated(4),
            false,
        ),
        ("inner/updates", JoinType::Inner, Rows::Updated, false),
        ("left/unique", JoinType::Left, Rows::Unique, false),
        ("left/updates", JoinType::Left, Rows::Updated, false),
        ("full/updates", JoinType::Full, Rows::Updated, false),
    ];
    for (name, join_type, rows, text) in cases {
        let batches = input(rows, text);
        group.bench_with_input(BenchmarkId::from_parameter(name), &batches, |b, batches| {
            b.iter(|| {
                let mut join = join(join_type, text);
                let mut out = Discard::default();
                for (port, batch) in batches {
                    join.process(*port, batch.clone(), &mut Output::new(&mut out))
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
