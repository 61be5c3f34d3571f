//! Rows per second of `GROUP BY` on one core: by key type and number of keys, for insertions and for
//! a changelog, row by row and in mini-batch. 4096-row batches, output built and thrown away.

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ebbflow::aggregates::{AggregateCall, CallContext, resolve};
use ebbflow::changelog::{ChangeBatch, RowKind};
use ebbflow::functions::{Arg, Environment};
use ebbflow::operators::group_aggregate::{GroupAggregate, GroupAggregateSpec, MiniBatch};
use ebbflow::operators::{Operator, OperatorContext};
use ebbflow::runtime::clock::ManualClock;
use ebbflow::runtime::metrics::OperatorMetrics;
use ebbflow::runtime::output::Output;
use ebbflow::types::{Column, Schema, TypeKind};

use self::common::{Discard, Random};

const ROWS: usize = 4096;
const BATCHES: usize = 256;

#[derive(Clone, Copy, PartialEq)]
enum Key {
    BigInt,
    Text,
}

#[derive(Clone, Copy)]
struct Case {
    key: Key,
    keys: u64,
    calls: &'static [&'static str],
    retracting: bool,
    mini_batch: Option<usize>,
}

impl Case {
    fn operator(self) -> GroupAggregate {
        let key = match self.key {
            Key::BigInt => TypeKind::BigInt,
            Key::Text => TypeKind::STRING,
        };
        let types = vec![key.nullable(), TypeKind::BigInt.nullable()];
        let aggregates: Vec<AggregateCall> = self.calls.iter().map(|name| call(name)).collect();
        let mut output = vec![Column::new("k", types[0].clone())];
        for call in &aggregates {
            output.push(Column::new("x", call.function.returns().clone()));
        }
        let spec = GroupAggregateSpec {
            input_types: types,
            group_keys: vec![0],
            aggregates,
            input_retracts: self.retracting,
            emit_update_before: true,
            ttl_ms: None,
            mini_batch: self.mini_batch.map(|size| MiniBatch {
                size,
                latency_ms: 1000,
                two_phase: false,
            }),
            output: Schema::new(output),
        };
        let context = OperatorContext {
            subtask: 0,
            parallelism: 1,
            batch_size: ROWS,
            environment: Arc::new(Environment::default()),
            metrics: Arc::new(OperatorMetrics::default()),
            clock: Arc::new(ManualClock::new(0)),
        };
        GroupAggregate::new(spec, &context).expect("the types can be kept")
    }

    /// Batches to be fed again and again. A changelog withdraws in every batch the rows that the
    /// batch before has added.
    fn batches(self) -> Vec<ChangeBatch> {
        let mut random = Random(0x9e37_79b9);
        let mut row = || {
            let key = i64::try_from(random.next(self.keys)).expect("small");
            let value = i64::try_from(random.next(1_000_000)).expect("small");
            (key, value)
        };
        if !self.retracting {
            return (0..BATCHES)
                .map(|_| {
                    let rows: Vec<_> = (0..ROWS).map(|_| row()).collect();
                    self.batch(&rows, vec![RowKind::Insert; ROWS])
                })
                .collect();
        }
        let added: Vec<Vec<_>> = (0..BATCHES)
            .map(|_| (0..ROWS / 2).map(|_| row()).collect())
            .collect();
        (0..BATCHES)
            .map(|i| {
                let before = &added[(i + BATCHES - 1) % BATCHES];
                let rows: Vec<_> = added[i]
                    .iter()
                    .zip(before)
                    .flat_map(|(new, old)| [*new, *old])
                    .collect();
                let kinds = [RowKind::Insert, RowKind::Delete].repeat(ROWS / 2);
                self.batch(&rows, kinds)
            })
            .collect()
    }

    fn batch(self, rows: &[(i64, i64)], kinds: Vec<RowKind>) -> ChangeBatch {
        let keys: ArrayRef = match self.key {
            Key::BigInt => Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.0))),
            Key::Text => Arc::new(StringArray::from_iter_values(
                rows.iter().map(|r| format!("customer-{:08}", r.0)),
            )),
        };
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.1)));
        let rows =
            RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, true)])
                .expect("columns of one length");
        ChangeBatch::try_new(rows, kinds).expect("as many kinds as rows")
    }

    fn name(self) -> String {
        format!(
            "{}/{}{}",
            self.calls.join("+"),
            if self.key == Key::BigInt {
                "BIGINT"
            } else {
                "STRING"
            },
            match (self.retracting, self.mini_batch) {
                (false, None) => "",
                (true, None) => "/retracting",
                (false, Some(_)) => "/mini-batch",
                (true, Some(_)) => "/retracting/mini-batch",
            }
        )
    }

    fn run(self, criterion: &mut Criterion) {
        let batches = self.batches();
        let mut operator = self.operator();
        let mut sink = Discard::default();
        // All keys, and what the first batch will withdraw.
        if let Some(last) = batches.last() {
            let first = self.all_keys();
            for batch in first.iter().chain(self.retracting.then_some(last)) {
                let batch = ChangeBatch::inserts(batch.rows().clone());
                operator
                    .process(0, batch, &mut Output::new(&mut sink))
                    .expect("no failure");
            }
        }
        let mut next = batches.iter().cycle();
        let mut group = criterion.benchmark_group("group_by");
        group.throughput(Throughput::Elements(ROWS as u64));
        group.sample_size(10);
        group.warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_millis(1000));
        group.bench_function(BenchmarkId::new(self.name(), self.keys), |bencher| {
            bencher.iter(|| {
                let batch = next.next().expect("a cycle").clone();
                operator
                    .process(0, batch, &mut Output::new(&mut sink))
                    .expect("no failure");
            });
        });
        group.finish();
        let size = operator.state_size();
        eprintln!("{} bytes of state a key\n", size.bytes / size.rows.max(1));
    }

    fn all_keys(self) -> Vec<ChangeBatch> {
        let keys: Vec<_> = (0..self.keys)
            .map(|key| (i64::try_from(key).expect("small"), 1))
            .collect();
        keys.chunks(ROWS)
            .map(|rows| self.batch(rows, vec![RowKind::Insert; rows.len()]))
            .collect()
    }
}

fn call(name: &str) -> AggregateCall {
    let args = if name == "COUNT" { vec![] } else { vec![1] };
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
        function: resolve(name, &arguments, context).expect("a function of numbers"),
        args,
        filter: None,
        distinct: false,
    }
}

fn group_by(criterion: &mut Criterion) {
    let base = Case {
        key: Key::BigInt,
        keys: 64,
        calls: &["COUNT", "SUM"],
        retracting: false,
        mini_batch: None,
    };
    for key in [Key::BigInt, Key::Text] {
        for keys in [64, 100_000, 1_000_000] {
            for mini_batch in [None, Some(50_000)] {
                let case = Case {
                    key,
                    keys,
                    mini_batch,
                    ..base
                };
                case.run(criterion);
            }
        }
    }
    for keys in [64, 100_000] {
        for mini_batch in [None, Some(50_000)] {
            for (calls, retracting) in [
                (&["MAX"][..], false),
                (&["MAX"], true),
                (&["COUNT", "SUM"], true),
            ] {
                let case = Case {
                    keys,
                    mini_batch,
                    calls,
                    retracting,
                    ..base
                };
                case.run(criterion);
            }
        }
    }
}

criterion_group!(benches, group_by);
criterion_main!(benches);
