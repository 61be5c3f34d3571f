//! Jobs played on one thread, in an order that a seed decides: the real tasks, coordinator, recovery
//! and store, on a disk that fails and forgets, with sinks that fail, processes that die at any
//! moment, and another parallelism after every restart. Whatever the order, the committed rows are
//! those of a run in which nothing goes wrong.
//!
//! One seed is one schedule. `EBBFLOW_SIMULATION_SEEDS=2000..3000` chooses the seeds (a single one to
//! play a failure again).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::aggregates::{AggregateCall, CallContext, resolve};
use crate::changelog::ChangeBatch;
use crate::checkpoint::{FileStore, sim};
use crate::connectors::{SinkWriter, SinkWriterFactory};
use crate::error::{Error, Result};
use crate::graph::{Distribution, Graph, OperatorFactory, VertexKind};
use crate::operators::group_aggregate::{GroupAggregate, GroupAggregateSpec};
use crate::operators::{Operator, OperatorContext};
use crate::runtime::committed::CommittedRows;
use crate::runtime::coordinator::{AttemptEnd, Coordinator};
use crate::runtime::job::{CheckpointConfig, JobConfig, Supervisor};
use crate::runtime::task::{Report, Round, Task, TaskEnd};
use crate::runtime::testing::{Act, Builder, Pass, insert, operator, rows, schema, source};

const ROWS: [i64; 2] = [50, 30];
const KEYS: i64 = 6;
/// Restarts after which nothing goes wrong any more.
const TROUBLES: u32 = 5;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n.max(1)
    }

    fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap()
    }
}

/// Transactions in memory whose commits fail now and then, before or after their effect.
struct Flaky {
    rows: CommittedRows,
    /// Commits until one fails.
    left: Arc<AtomicI64>,
}

impl SinkWriterFactory for Flaky {
    fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        self.rows.factory().create(subtask, parallelism)
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left == 1 {
            return Err(Error::connector("no answer to a commit"));
        }
        self.rows.factory().commit(committable)?;
        if left == 0 {
            return Err(Error::connector("the answer to a commit was lost"));
        }
        Ok(())
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        self.rows.factory().abort_leftovers(restored_epoch)
    }
}

fn spec() -> GroupAggregateSpec {
    let context = CallContext {
        grouped: true,
        filtered: false,
        distinct: false,
    };
    let count = AggregateCall {
        function: resolve("COUNT", &[], context).unwrap(),
        args: Vec::new(),
        filter: None,
        distinct: false,
    };
    GroupAggregateSpec {
        input_types: schema(1).types(),
        group_keys: vec![0],
        aggregates: vec![count],
        input_retracts: false,
        emit_update_before: false,
        ttl_ms: None,
        mini_batch: None,
        output: schema(2),
    }
}

/// Two sources, a union, an exchange by key, a count, two sinks.
fn graph(parallelism: usize, sinks: &[Arc<Flaky>]) -> Graph {
    let acts = |rows: i64| {
        let rows = (0..rows).map(|i| Act::Row(insert(&[i * i % KEYS])));
        source(rows.collect())
    };
    let mut graph = Graph::default();
    let a = Builder::new("A", acts(ROWS[0])).add(&mut graph);
    let b = Builder::new("B", acts(ROWS[1])).add(&mut graph);
    let pass = Builder::new("Pass", operator(|| Pass { tag: false }))
        .parallelism(parallelism)
        .from(a, Distribution::Rebalance)
        .add(&mut graph);
    let aggregate: OperatorFactory = Arc::new(|context: &OperatorContext| {
        let operator: Box<dyn Operator> = Box::new(GroupAggregate::new(spec(), context)?);
        Ok(operator)
    });
    let hash = Distribution::Hash(vec![0]);
    let count = Builder::new("Count", VertexKind::Operator(aggregate))
        .columns(2)
        .parallelism(parallelism)
        .from(pass, hash.clone())
        .from(b, hash)
        .add(&mut graph);
    for (number, sink) in sinks.iter().enumerate() {
        let sink = Arc::<Flaky>::clone(sink);
        Builder::new(&format!("Write{number}"), VertexKind::Sink(sink))
            .columns(2)
            .parallelism(if number == 0 { 1 } else { parallelism })
            .from(
                count,
                if number == 0 {
                    Distribution::Single
                } else {
                    Distribution::Forward
                },
            )
            .add(&mut graph);
    }
    graph
}

fn expected() -> Vec<Vec<i64>> {
    let mut counts = BTreeMap::new();
    let mut expected = Vec::new();
    for i in ROWS.into_iter().flat_map(|rows| 0..rows) {
        let count = counts.entry(i * i % KEYS).or_insert(0);
        *count += 1;
        expected.push(vec![i * i % KEYS, *count]);
    }
    expected.sort();
    expected
}

fn committed(sink: &Flaky) -> Vec<Vec<i64>> {
    let batches: Vec<ChangeBatch> = sink.rows.batches();
    let mut all: Vec<_> = batches.iter().flat_map(rows).map(|(_, row)| row).collect();
    all.sort();
    all
}

/// How an attempt ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Finished,
    /// It failed, and the process goes on.
    Failed(String),
    /// The process is dead.
    Dead,
}

/// Plays one attempt.
fn attempt(
    supervisor: &Supervisor,
    again: bool,
    disk: &sim::SimDisk,
    random: &mut Random,
    dies_after: u64,
) -> End {
    let ready = match supervisor.prepare(again) {
        Ok(ready) => ready,
        Err(_) if disk.is_dead() => return End::Dead,
        Err(e) => return End::Failed(e.to_string()),
    };
    let config = supervisor.config.checkpointing.as_ref();
    let mut coordinator = Coordinator::new(
        &supervisor.graph,
        config,
        ready.shared,
        supervisor.reports.clone(),
        ready.tasks.len(),
        ready.epoch,
    )
    .publishes_by_hand();
    let mut tasks: Vec<Option<Task>> = ready.tasks.into_iter().map(Some).collect();
    let wants = random.below(60) + 8;
    // Checkpoints may take too long, in every state.
    let slow = dies_after < u64::MAX && random.below(2) == 0;
    let mut moment = 0;
    let mut stopped = false;
    let mut answers = Vec::new();
    while !coordinator.is_over() {
        moment += 1;
        assert!(moment < 100_000, "the job makes no progress");
        if moment == dies_after || disk.is_dead() {
            return End::Dead;
        }
        if slow && random.below(40) == 0 {
            coordinator.time_out();
        }
        if random.below(wants) == 0 {
            let (answer, answered) = std::sync::mpsc::channel();
            coordinator.hear(Some(Report::Wanted(answer)));
            answers.push(answered);
        }
        let chosen = random.index(tasks.len() + 3);
        let Some(slot) = tasks.get_mut(chosen) else {
            if chosen == tasks.len() {
                coordinator.publish();
            } else if let Ok(report) = supervisor.inbox.try_recv() {
                coordinator.hear(Some(report));
            }
            continue;
        };
        let Some(mut task) = slot.take() else {
            continue;
        };
        stopped |= task.shared.attempt.is_stopped();
        let index = task.index;
        let end = if stopped {
            Ok(TaskEnd::Cancelled)
        } else {
            match task.round() {
                Ok(Round::Done) => task.finish(),
                Ok(_) => {
                    *slot = Some(task);
                    continue;
                }
                Err(e) => Err(e),
            }
        };
        let ended = Report::Ended { task: index, end };
        supervisor.reports.send(ended).unwrap();
    }
    match coordinator.end() {
        _ if disk.is_dead() => End::Dead,
        Ok(AttemptEnd::Finished) => End::Finished,
        Ok(end) => End::Failed(format!("{end:?}")),
        Err(e) => End::Failed(e.to_string()),
    }
}

fn simulate(seed: u64) {
    let mut random = Random(SplitMix64::seed_from_u64(seed));
    let mut disk = sim::SimDisk::default();
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let sinks: Vec<_> = (0..2)
        .map(|_| {
            Arc::new(Flaky {
                rows: CommittedRows::default(),
                left: Arc::clone(&left),
            })
        })
        .collect();
    let mut history = Vec::new();
    for process in 0.. {
        let calm = process >= TROUBLES;
        assert!(process < 2 * TROUBLES, "seed {seed}: no end: {history:?}");
        let faults = [
            sim::Fault::Fails,
            sim::Fault::Full,
            sim::Fault::FailsLate,
            sim::Fault::Crash,
        ];
        if !calm && random.below(2) == 0 {
            disk.fail_at(random.index(120), faults[random.index(4)]);
        }
        let store = match FileStore::on_disk(disk.clone(), 1 + random.index(3)) {
            Ok(store) => Arc::new(store),
            Err(e) => {
                history.push(e.to_string());
                disk = disk.after_crash(random.below(u64::MAX));
                continue;
            }
        };
        let mut checkpointing = CheckpointConfig::new(store);
        checkpointing.incremental = random.below(4) > 0;
        checkpointing.tolerable_failures = [0, 2, u32::MAX][random.index(3)];
        let config = JobConfig {
            batch_size: 1 + random.index(6),
            channel_rows: usize::MAX >> 1,
            checkpointing: Some(checkpointing),
            ..JobConfig::default()
        };
        let graph = graph(1 + random.index(3), &sinks);
        let mut again = false;
        let dead = loop {
            // A process that fails starts again by itself; then its inbox must be empty.
            let supervisor = Supervisor::new(graph.clone(), config.clone());
            let calm = calm || history.len() > 8;
            let commits = if calm {
                u64::MAX >> 1
            } else {
                random.below(30)
            };
            left.store(i64::try_from(commits).unwrap(), Ordering::SeqCst);
            let dies_after = if calm { u64::MAX } else { random.below(700) };
            match attempt(&supervisor, again, &disk, &mut random, dies_after) {
                End::Finished => break false,
                End::Failed(text) => history.push(text),
                End::Dead => {
                    history.push("dead".into());
                    break true;
                }
            }
            again = true;
            assert!(history.len() < 100, "seed {seed}: no end: {history:?}");
        };
        if !dead {
            break;
        }
        drop(config);
        disk = disk.after_crash(random.below(u64::MAX));
    }
    for (number, sink) in sinks.iter().enumerate() {
        assert_eq!(
            committed(sink),
            expected(),
            "sink {number} with seed {seed}; what happened: {history:?}"
        );
    }
}

#[test]
fn every_schedule_commits_every_row_once() {
    let seeds = std::env::var("EBBFLOW_SIMULATION_SEEDS").unwrap_or_else(|_| "0..400".into());
    let number = |text: &str| text.trim().parse::<u64>().expect("a seed");
    let seeds = match seeds.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&seeds)..number(&seeds) + 1,
    };
    for seed in seeds {
        let played = std::panic::catch_unwind(|| simulate(seed));
        if let Err(panic) = played {
            eprintln!("EBBFLOW_SIMULATION_SEEDS={seed} plays this again");
            std::panic::resume_unwind(panic);
        }
    }
}
