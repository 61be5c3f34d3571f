//! Behaviour of whole jobs, with sources and sinks of the tests.

mod checkpoints;
mod lifecycle;
mod publishing;
mod simulation;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::graph::{Distribution, Graph, VertexId, VertexKind};
use crate::operators::{Operator, StateSize};
use crate::runtime::clock::ManualClock;
use crate::runtime::collect::collect;
use crate::runtime::control::{JobControl, lock};
use crate::runtime::job::{Job, JobConfig, JobHandle};
use crate::runtime::output::Output;
use crate::runtime::testing::{
    Act, Builder, Pass, Record, Seen, add, batch, insert, operator, rows, seen_rows, source,
};

fn run(graph: Graph, config: JobConfig) -> Result<JobHandle> {
    let job = Job::start(graph, config)?;
    job.wait()?;
    Ok(job)
}

fn add_tagged(graph: &mut Graph, name: &str, inputs: &[(VertexId, usize)]) -> VertexId {
    let tag = operator(|| Pass { tag: true });
    let mut vertex = Builder::new(name, tag).columns(2);
    for (from, port) in inputs {
        vertex = vertex.from(*from, Distribution::Forward);
        vertex.0.inputs.last_mut().unwrap().port = *port;
    }
    vertex.add(graph)
}

fn numbers(range: std::ops::Range<i64>) -> Vec<Act> {
    range.map(|i| Act::Row(insert(&[i]))).collect()
}

#[test]
fn a_chain_ends_with_the_last_watermark_then_commits() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..3)), &[]);
    let pass = add(
        &mut graph,
        "Pass",
        operator(|| Pass { tag: false }),
        &[(read, 0)],
    );
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(pass, 0)]);
    let job = run(graph, JobConfig::default()).unwrap();
    let expected = [
        Seen::Row(insert(&[0])),
        Seen::Row(insert(&[1])),
        Seen::Row(insert(&[2])),
        Seen::Watermark(i64::MAX),
        Seen::End,
        Seen::PreCommit(1),
        Seen::Commit(b"tx".to_vec()),
    ];
    assert_eq!(*lock(&seen), expected);
    let rows: Vec<_> = job
        .metrics()
        .iter()
        .map(|m| (m.metrics.records_in.get(), m.metrics.records_out.get()))
        .collect();
    assert_eq!(rows, [(0, 3), (3, 3), (3, 0)]);
}

#[test]
fn a_port_ends_when_all_its_inputs_have() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let mut acts = numbers(10..12);
    acts.insert(0, Act::Pending);
    let a = add(&mut graph, "A", source(numbers(0..1)), &[]);
    let b = add(&mut graph, "B", source(acts), &[]);
    let c = add(&mut graph, "C", source(Vec::new()), &[]);
    let inputs = [(a, 0), (b, 0), (c, 1)];
    let union = add_tagged(&mut graph, "Union", &inputs);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(union, 0)]);
    run(graph, JobConfig::default()).unwrap();
    let expected = [&[0, 0], &[-1, 1], &[10, 0], &[11, 0], &[-1, 0]];
    assert_eq!(seen_rows(&seen), expected.map(|r| insert(r)));
}

#[test]
fn a_diamond_is_walked_depth_first() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..2)), &[]);
    let left = add(
        &mut graph,
        "Left",
        operator(|| Pass { tag: false }),
        &[(read, 0)],
    );
    let right = add(
        &mut graph,
        "Right",
        operator(|| Pass { tag: false }),
        &[(read, 0)],
    );
    let inputs = [(left, 0), (right, 1)];
    let join = add_tagged(&mut graph, "Join", &inputs);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(join, 0)]);
    let config = JobConfig {
        batch_size: 1,
        ..JobConfig::default()
    };
    run(graph, config).unwrap();
    let expected = [&[0, 0], &[0, 1], &[1, 0], &[1, 1], &[-1, 0], &[-1, 1]];
    assert_eq!(seen_rows(&seen), expected.map(|r| insert(r)));
}

#[test]
fn watermarks_of_two_sources_are_combined() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let acts = |ws: &[i64]| ws.iter().map(|w| Act::Watermark(*w)).collect::<Vec<_>>();
    let a = add(&mut graph, "A", source(acts(&[5, 3, 8])), &[]);
    let b = add(&mut graph, "B", source(acts(&[1, 6, 7])), &[]);
    let pass = add(
        &mut graph,
        "Pass",
        operator(|| Pass { tag: false }),
        &[(a, 0), (b, 0)],
    );
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(pass, 0)]);
    run(graph, JobConfig::default()).unwrap();
    let watermarks: Vec<_> = lock(&seen)
        .iter()
        .filter_map(|s| {
            if let Seen::Watermark(w) = s {
                Some(*w)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(watermarks, [1, 5, 6, 7, i64::MAX]);
}

#[test]
fn steps_order_the_rows_of_several_sources() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let acts = |steps: &[u64]| {
        let act = |s: &u64| Act::Step(*s, insert(&[i64::try_from(*s).unwrap()]));
        steps.iter().map(act).collect::<Vec<_>>()
    };
    let a = add(&mut graph, "A", source(acts(&[1, 4, 5, 9])), &[]);
    let b = add(&mut graph, "B", source(acts(&[2, 3, 6, 8])), &[]);
    let c = add(&mut graph, "C", source(acts(&[7])), &[]);
    let inputs = [(a, 0), (b, 0), (c, 0)];
    let union = add(
        &mut graph,
        "Union",
        operator(|| Pass { tag: false }),
        &inputs,
    );
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(union, 0)]);
    run(graph, JobConfig::default()).unwrap();
    assert_eq!(
        seen_rows(&seen),
        (1..10).map(|i| insert(&[i])).collect::<Vec<_>>()
    );
}

struct Fails;

impl Operator for Fails {
    fn process(&mut self, _: usize, _: ChangeBatch, _: &mut Output<'_>) -> Result<()> {
        Err(Error::execution("division by zero"))
    }
}

#[test]
fn an_error_names_the_vertex_that_failed_only() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..2)), &[]);
    let pass = add(
        &mut graph,
        "Pass",
        operator(|| Pass { tag: false }),
        &[(read, 0)],
    );
    let fails = add(&mut graph, "Fails", operator(|| Fails), &[(pass, 0)]);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(fails, 0)]);
    let text = run(graph, JobConfig::default()).unwrap_err().to_string();
    assert!(
        text.contains("division by zero") && text.contains("Fails(test)"),
        "{text}"
    );
    assert!(!text.contains("Pass(test)"), "{text}");
    assert!(lock(&seen).is_empty());
}

#[test]
fn an_error_of_a_source_commits_nothing() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let mut acts = numbers(0..1);
    acts.push(Act::Fail);
    let read = add(&mut graph, "Read", source(acts), &[]);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(read, 0)]);
    let text = run(graph, JobConfig::default()).unwrap_err().to_string();
    assert!(
        text.contains("broken pipe") && text.contains("Read(test)"),
        "{text}"
    );
    assert_eq!(*lock(&seen), [Seen::Row(insert(&[0]))]);
}

struct Panics;

impl Operator for Panics {
    fn process(&mut self, _: usize, _: ChangeBatch, _: &mut Output<'_>) -> Result<()> {
        panic!("a bug")
    }
}

#[test]
fn a_panic_is_an_error() {
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..2)), &[]);
    add(&mut graph, "Panics", operator(|| Panics), &[(read, 0)]);
    let text = run(graph, JobConfig::default()).unwrap_err().to_string();
    assert!(text.contains("a bug"), "{text}");
}

#[test]
fn a_running_job_can_be_cancelled() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(vec![Act::Forever]), &[]);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(read, 0)]);
    let job = Job::start(graph, JobConfig::default()).unwrap();
    assert!(!job.is_finished());
    job.cancel();
    job.wait().unwrap();
    assert!(job.is_finished());
    assert!(lock(&seen).is_empty());
}

#[test]
fn a_reader_sees_all_rows_and_the_end() {
    let control = JobControl::default();
    let (sink, reader) = collect(2, &control);
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..100)), &[]);
    add(&mut graph, "Collect", VertexKind::Sink(sink), &[(read, 0)]);
    let config = JobConfig {
        batch_size: 7,
        control,
        ..JobConfig::default()
    };
    let job = Job::start(graph, config).unwrap();
    let rows: usize = reader.map(|b| b.len()).sum();
    job.wait().unwrap();
    assert_eq!(rows, 100);
}

#[test]
fn a_reader_that_goes_away_stops_the_job() {
    let control = JobControl::default();
    let (sink, reader) = collect(1, &control);
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..100)), &[]);
    add(&mut graph, "Collect", VertexKind::Sink(sink), &[(read, 0)]);
    let config = JobConfig {
        batch_size: 1,
        control,
        ..JobConfig::default()
    };
    let job = Job::start(graph, config).unwrap();
    assert_eq!(reader.recv().unwrap().len(), 1);
    drop(reader);
    job.wait().unwrap();
    assert!(job.metrics()[0].metrics.records_out.get() < 100);
}

struct Hoards(usize);

impl Operator for Hoards {
    fn process(&mut self, _: usize, batch: ChangeBatch, _: &mut Output<'_>) -> Result<()> {
        self.0 += batch.len();
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.0,
            bytes: self.0 * 10,
        }
    }
}

#[test]
fn state_over_the_limit_ends_the_job_and_names_the_largest_operator() {
    let mut graph = Graph::default();
    let read = add(&mut graph, "Read", source(numbers(0..1000)), &[]);
    add(&mut graph, "Hoards", operator(|| Hoards(0)), &[(read, 0)]);
    let config = JobConfig {
        batch_size: 1,
        state_memory_limit: Some(1000),
        ..JobConfig::default()
    };
    let text = run(graph, config).unwrap_err().to_string();
    assert!(
        text.contains("Hoards(test): 112 keys, 1120 bytes"),
        "{text}"
    );
}

struct Alarm {
    at: Option<i64>,
}

impl Operator for Alarm {
    fn process(&mut self, _: usize, _: ChangeBatch, _: &mut Output<'_>) -> Result<()> {
        self.at = Some(50);
        Ok(())
    }

    fn next_timer(&self) -> Option<i64> {
        self.at
    }

    fn processing_time(&mut self, now: i64, out: &mut Output<'_>) -> Result<()> {
        self.at = None;
        out.emit(batch(&[insert(&[now])]))
    }
}

#[test]
fn timers_fire_when_the_clock_passes_them() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let mut acts = numbers(0..1);
    acts.push(Act::Forever);
    let read = add(&mut graph, "Read", source(acts), &[]);
    let alarm = add(
        &mut graph,
        "Alarm",
        operator(|| Alarm { at: None }),
        &[(read, 0)],
    );
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(alarm, 0)]);
    let clock = Arc::new(ManualClock::new(49));
    let config = JobConfig {
        clock: Arc::<ManualClock>::clone(&clock),
        ..JobConfig::default()
    };
    let job = Job::start(graph, config).unwrap();
    while job.metrics()[1].metrics.records_in.get() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(seen_rows(&seen).is_empty());
    clock.set(57);
    while seen_rows(&seen).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    job.cancel();
    job.wait().unwrap();
    assert_eq!(seen_rows(&seen), [insert(&[57])]);
}

struct Bundles(i64);

impl Operator for Bundles {
    fn process(&mut self, _: usize, batch: ChangeBatch, _: &mut Output<'_>) -> Result<()> {
        self.0 += i64::try_from(batch.len()).unwrap();
        Ok(())
    }

    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        if self.0 > 0 {
            out.emit(batch(&[insert(&[std::mem::take(&mut self.0)])]))?;
        }
        Ok(())
    }
}

#[test]
fn bundles_are_flushed_before_watermarks_and_the_end() {
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let mut acts = numbers(0..3);
    acts.push(Act::Watermark(7));
    acts.extend(numbers(0..2));
    let read = add(&mut graph, "Read", source(acts), &[]);
    let bundles = add(&mut graph, "Bundles", operator(|| Bundles(0)), &[(read, 0)]);
    add(&mut graph, "Write", VertexKind::Sink(sink), &[(bundles, 0)]);
    run(graph, JobConfig::default()).unwrap();
    let expected = [
        Seen::Row(insert(&[3])),
        Seen::Watermark(7),
        Seen::Row(insert(&[2])),
        Seen::Watermark(i64::MAX),
        Seen::End,
    ];
    assert_eq!(lock(&seen)[..5], expected);
}

/// Forwards each row only if its key has come in order, and counts the rows of every key.
struct InOrder {
    next: BTreeMap<i64, i64>,
}

impl Operator for InOrder {
    fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        for (_, row) in rows(&batch) {
            let next = self.next.entry(row[0]).or_insert(0);
            if row[1] != *next {
                return Err(Error::execution(format!("{row:?} after {next}")));
            }
            *next += 1;
        }
        out.emit(batch)
    }

    fn end_input(&mut self, _: usize, out: &mut Output<'_>) -> Result<()> {
        for (key, count) in &self.next {
            out.emit(batch(&[insert(&[-1 - key, *count])]))?;
        }
        Ok(())
    }
}

#[test]
fn many_tiny_batches_cross_exchanges_in_order() {
    const KEYS: i64 = 50;
    const ROUNDS: i64 = 200;
    let rows: Vec<_> = (0..KEYS * ROUNDS)
        .map(|i| Act::Row(insert(&[i % KEYS, i / KEYS])))
        .collect();
    let (sink, seen) = Record::sink();
    let mut graph = Graph::default();
    let read = Builder::new("Read", source(rows))
        .columns(2)
        .add(&mut graph);
    let in_order = || {
        operator(|| InOrder {
            next: BTreeMap::new(),
        })
    };
    let hash = Distribution::Hash(vec![0]);
    let first = Builder::new("First", in_order())
        .parallelism(3)
        .columns(2)
        .from(read, hash.clone())
        .add(&mut graph);
    let pass = Builder::new("Pass", operator(|| Pass { tag: false }))
        .parallelism(3)
        .columns(2)
        .from(first, Distribution::Rebalance)
        .add(&mut graph);
    // Both paths from `First` meet again.
    let count = Builder::new("Count", operator(|| Pass { tag: false }))
        .parallelism(2)
        .columns(2)
        .from(pass, hash.clone())
        .from(first, Distribution::Broadcast)
        .add(&mut graph);
    Builder::new("Write", VertexKind::Sink(sink))
        .parallelism(1)
        .from(count, Distribution::Single)
        .add(&mut graph);
    let config = JobConfig {
        batch_size: 2,
        ..JobConfig::default()
    };
    let job = run(graph, config).unwrap();
    let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
    for (_, row) in seen_rows(&seen) {
        *counts.entry(row[0]).or_default() += if row[0] < 0 { row[1] } else { 1 };
    }
    // Once by the hash edge, twice by the broadcast.
    let expected = (0..KEYS).flat_map(|k| [(k, 3 * ROUNDS), (-1 - k, 3 * ROUNDS)]);
    assert_eq!(counts, expected.collect());
    let ends = lock(&seen)
        .iter()
        .filter(|s| **s == Seen::Watermark(i64::MAX))
        .count();
    assert_eq!(ends, 1);
    assert_eq!(job.metrics().len(), 1 + 3 + 3 + 2 + 1);
}

#[test]
fn steps_order_the_rows_across_tasks() {
    let acts = |steps: &[u64]| {
        let act = |s: &u64| Act::Step(*s, insert(&[i64::try_from(*s).unwrap()]));
        source(steps.iter().map(act).collect())
    };
    for _ in 0..20 {
        let (sink, seen) = Record::sink();
        let mut graph = Graph::default();
        let a = add(&mut graph, "A", acts(&[1, 4, 5, 9]), &[]);
        let b = add(&mut graph, "B", acts(&[2, 3, 6, 8]), &[]);
        let c = add(&mut graph, "C", acts(&[7]), &[]);
        let hash = Distribution::Hash(vec![0]);
        let union = Builder::new("Union", operator(|| Pass { tag: false }))
            .parallelism(3)
            .from(a, hash.clone())
            .from(b, hash.clone())
            .from(c, hash)
            .add(&mut graph);
        Builder::new("Write", VertexKind::Sink(sink))
            .parallelism(1)
            .from(union, Distribution::Single)
            .add(&mut graph);
        run(graph, JobConfig::default()).unwrap();
        assert_eq!(
            seen_rows(&seen),
            (1..10).map(|i| insert(&[i])).collect::<Vec<_>>()
        );
    }
}

#[test]
fn an_error_in_one_task_ends_all() {
    let mut graph = Graph::default();
    let mut acts = numbers(0..100);
    acts.push(Act::Forever);
    let read = add(&mut graph, "Read", source(acts), &[]);
    let pass = Builder::new("Pass", operator(|| Pass { tag: false }))
        .parallelism(3)
        .from(read, Distribution::Rebalance)
        .add(&mut graph);
    Builder::new("Fails", operator(|| Fails))
        .parallelism(1)
        .from(pass, Distribution::Single)
        .add(&mut graph);
    let text = run(graph, JobConfig::default()).unwrap_err().to_string();
    assert!(text.contains("division by zero"), "{text}");
}
