//! Exactly once, with an engine that is killed and a broker that goes away.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::broker::Broker;
use crate::cluster::{Cluster, Engine, WAIT, log, wait_until};

/// How often the engine is killed.
fn kills() -> u32 {
    let set = std::env::var("EBBFLOW_KAFKA_KILLS").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// Pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn script(address: &str, folder: &Path, name: &str, query: &str, parallelism: u64) -> String {
    format!(
        "SET 'execution.checkpointing.interval' = '100 ms';\n\
         SET 'execution.checkpointing.dir' = '{}';\n\
         SET 'parallelism.default' = '{parallelism}';\n\
         CREATE TABLE t (i BIGINT) WITH ('connector' = 'kafka', 'topic' = '{name}-in', \
         'properties.bootstrap.servers' = '{address}', 'scan.startup.mode' = 'earliest-offset', \
         'format' = 'json');\n\
         CREATE TABLE o (i BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{name}-out', \
         'properties.bootstrap.servers' = '{address}', 'format' = 'debezium-json', \
         'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{name}');\n\
         INSERT INTO o {query};\n",
        folder.join("checkpoints").display()
    )
}

const COPY: &str = "SELECT i, CAST(1 AS BIGINT) FROM t";

/// Writes numbers into the `partitions` of `topic` until these are none; answers how many.
fn feed(cluster: &Cluster, topic: &str, partitions: &AtomicI32) -> u64 {
    let mut next = 0;
    loop {
        let partitions = partitions.load(Ordering::SeqCst);
        if partitions == 0 {
            return next;
        }
        let values: Vec<(i32, String)> = (next..next + 50)
            .map(|i| {
                let partition = i32::try_from(i % 1000).expect("small") % partitions;
                (partition, format!("{{\"i\": {i}}}"))
            })
            .collect();
        cluster.produce(
            topic,
            values.iter().map(|(p, v)| (*p, None, Some(v.as_str()))),
        );
        next += 50;
        thread::sleep(Duration::from_millis(20));
    }
}

/// Kills the engine again and again while the topic that it reads is fed, and gains partitions;
/// answers how many numbers there were when all have come through.
fn kill_again_and_again(
    cluster: &Cluster,
    name: &str,
    query: &str,
    is_complete: &dyn Fn(u64) -> bool,
) -> u64 {
    let (input, output) = (format!("{name}-in"), format!("{name}-out"));
    cluster.create_topic(&input, 3);
    cluster.create_topic(&output, 2);
    let folder = tempfile::tempdir().expect("a folder");
    let mut dice = Dice(name.len() as u64);
    let partitions = AtomicI32::new(3);
    let total = thread::scope(|scope| {
        // It must not go on for ever when something fails here.
        let stop = OnDrop(&partitions);
        let feeder = scope.spawn(|| feed(cluster, &input, &partitions));
        for round in 0..kills() {
            let parallelism = 1 + dice.below(3);
            let script = script(&cluster.address, folder.path(), name, query, parallelism);
            let before = cluster.end(&output);
            let mut engine = Engine::start(folder.path(), &script);
            // Half of them while it starts or restores, half while transactions go through.
            if round % 2 == 0 {
                wait_until("no transaction goes through", || {
                    cluster.end(&output) > before || !engine.is_running()
                });
                thread::sleep(Duration::from_millis(dice.below(400)));
            } else {
                thread::sleep(Duration::from_millis(dice.below(2_500)));
            }
            assert!(engine.is_running(), "it has ended: {}", log(folder.path()));
            engine.kill();
            if round == kills() / 2 {
                cluster.set_partitions(&input, 5);
                partitions.store(5, Ordering::SeqCst);
            }
        }
        drop(stop);
        feeder.join().expect("the feeder ends")
    });
    let script = script(&cluster.address, folder.path(), name, query, 2);
    let mut engine = Engine::start(folder.path(), &script);
    let end = Instant::now() + 3 * WAIT;
    while !is_complete(total) {
        let log = || log(folder.path());
        assert!(engine.is_running(), "the engine has ended: {}", log());
        assert!(Instant::now() < end, "not all has come through: {}", log());
        thread::sleep(Duration::from_millis(300));
    }
    // Nothing more may come.
    thread::sleep(Duration::from_secs(1));
    engine.kill();
    total
}

/// Leaves no partitions to feed.
struct OnDrop<'a>(&'a AtomicI32);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

/// The rows of an envelope: `+` or `-`, and its two numbers.
fn change(text: &str) -> (i64, i64, i64) {
    let envelope: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let (row, sign) = match envelope["op"].as_str() {
        Some("c") => (&envelope["after"], 1),
        _ => (&envelope["before"], -1),
    };
    let number = |field: &str| row[field].as_i64().expect("a number");
    (sign, number("i"), number("n"))
}

pub fn killed_at_random_moments(broker: &Broker) {
    let cluster = Cluster {
        address: broker.address(),
    };
    let seen = || cluster.read_all("kills-out", "read_committed").len() as u64;
    let total = kill_again_and_again(&cluster, "kills", COPY, &|total| seen() >= total);
    let mut counts = BTreeMap::new();
    for value in cluster.values("kills-out") {
        *counts.entry(change(&value).1).or_insert(0) += 1;
    }
    let twice: Vec<_> = counts.iter().filter(|(_, n)| **n != 1).take(9).collect();
    assert!(twice.is_empty(), "written more than once: {twice:?}");
    let total = i64::try_from(total).expect("a number");
    let lost: Vec<_> = (0..total)
        .filter(|i| !counts.contains_key(i))
        .take(9)
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
}

pub fn aggregates_survive_kills(broker: &Broker) {
    let cluster = Cluster {
        address: broker.address(),
    };
    let query = "SELECT MOD(i, 7), COUNT(*) FROM t GROUP BY MOD(i, 7)";
    // Every change is written once: the sum of all is the table.
    let table = || {
        let mut rows: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        for value in cluster.values("counts-out") {
            let (sign, i, n) = change(&value);
            *rows.entry((i, n)).or_insert(0) += sign;
        }
        rows.retain(|_, count| *count != 0);
        rows
    };
    let counted = |rows: &BTreeMap<(i64, i64), i64>| rows.keys().map(|(_, n)| n).sum::<i64>();
    let is_complete = |total: u64| counted(&table()) >= i64::try_from(total).expect("a number");
    let total = kill_again_and_again(&cluster, "counts", query, &is_complete);
    let total = i64::try_from(total).expect("a number");
    let expected: BTreeMap<(i64, i64), i64> = (0..7)
        .map(|k| ((k, (0..total).filter(|i| i % 7 == k).count()), 1))
        .map(|((k, n), one)| ((k, i64::try_from(n).expect("a number")), one))
        .collect();
    assert_eq!(table(), expected);
}

pub fn a_zombie_is_fenced(broker: &Broker) {
    let cluster = Cluster {
        address: broker.address(),
    };
    cluster.create_topic("zombie-in", 1);
    cluster.create_topic("zombie-out", 1);
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let script = |folder: usize| {
        // A failure is the end.
        "SET 'restart-strategy.type' = 'none';\n".to_string()
            + &script(&cluster.address, folders[folder].path(), "zombie", COPY, 1)
    };
    cluster.produce("zombie-in", [(0, None, Some("{\"i\": 1}"))]);
    let mut old = Engine::start(folders[0].path(), &script(0));
    cluster.wait_for("zombie-out", 1, WAIT);
    // The same ids: whoever comes later wins.
    let mut new = Engine::start(folders[1].path(), &script(1));
    cluster.wait_for("zombie-out", 2, WAIT);
    cluster.produce("zombie-in", [(0, None, Some("{\"i\": 2}"))]);
    let end = Instant::now() + WAIT;
    while old.is_running() {
        assert!(Instant::now() < end, "the old job is not fenced");
        thread::sleep(Duration::from_millis(100));
    }
    cluster.wait_for("zombie-out", 3, WAIT);
    assert!(new.is_running());
    new.kill();
    old.kill();
    let log = log(folders[0].path());
    assert!(log.contains("sink.transactional-id-prefix"), "{log}");
}

pub fn the_broker_restarts(_: &Broker) {
    // One of its own: the other tests go on.
    let broker = Broker::start().expect("a broker");
    let cluster = Cluster {
        address: broker.address(),
    };
    cluster.create_topic("restart-in", 2);
    cluster.create_topic("restart-out", 2);
    let folder = tempfile::tempdir().expect("a folder");
    let script = script(&cluster.address, folder.path(), "restart", COPY, 2);
    let mut engine = Engine::start(folder.path(), &script);
    let numbers = |range: std::ops::Range<i32>| {
        let values: Vec<(i32, String)> =
            range.map(|i| (i % 2, format!("{{\"i\": {i}}}"))).collect();
        cluster.produce(
            "restart-in",
            values.iter().map(|(p, v)| (*p, None, Some(v.as_str()))),
        );
    };
    numbers(0..100);
    cluster.wait_for("restart-out", 50, WAIT);
    broker.restart(Duration::from_secs(2));
    numbers(100..200);
    cluster.wait_for("restart-out", 200, 2 * WAIT);
    assert!(engine.is_running());
    engine.kill();
    let mut values: Vec<i64> = cluster
        .values("restart-out")
        .iter()
        .map(|v| change(v).1)
        .collect();
    values.sort_unstable();
    assert_eq!(values, (0..200).collect::<Vec<i64>>());
}
