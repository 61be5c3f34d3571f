//! The group of a table: where it goes on from, and who else is in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::broker::Broker;
use crate::cluster::{Engine, WAIT, log, wait_until};
use crate::tables::{cluster, print, printed, table};

pub fn group_offsets(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("grouped", 2);
    cluster.create_topic("grouped-out", 1);
    let value = "{\"i\": 1}";
    cluster.produce("grouped", (0..10).map(|i| (i % 2, None, Some(value))));
    let options =
        ", 'properties.group.id' = 'readers', 'properties.auto.offset.reset' = 'earliest'";
    let script = "SET 'execution.checkpointing.interval' = '100 ms';\n".to_string()
        + &table(broker, "t", "i INT", "grouped", options)
        + &table(broker, "o", "i INT", "grouped-out", "")
        + "INSERT INTO o SELECT i FROM t;";
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::start(folder.path(), &script);
    cluster.wait_for("grouped-out", 10, WAIT);
    let committed = || {
        let partition = |p| cluster.committed("readers", "grouped", p);
        partition(0) == Some(5) && partition(1) == Some(5)
    };
    wait_until("the offsets are not committed", committed);
    engine.kill();
    cluster.produce("grouped", [(0, None, Some(value)), (1, None, Some(value))]);
    let bounded = format!("{options}, 'scan.bounded.mode' = 'latest-offset'");
    let t = table(broker, "t", "i INT", "grouped", &bounded);
    let rest = printed(&print(&t, "i INT", "SELECT i FROM t"));
    assert_eq!(rest.len(), 2, "what the group has not read");
}

pub fn the_group_rebalances(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("shared", 4);
    cluster.create_topic("shared-out", 1);
    let options = ", 'properties.group.id' = 'crowd', 'properties.auto.offset.reset' = 'earliest'";
    let script = "SET 'execution.checkpointing.interval' = '100 ms';\n\
                  SET 'restart-strategy.type' = 'none';\n\
                  SET 'parallelism.default' = '2';\n"
        .to_string()
        + &table(broker, "t", "i INT", "shared", options)
        + &table(broker, "o", "i INT", "shared-out", "")
        + "INSERT INTO o SELECT i FROM t;";
    let folder = tempfile::tempdir().expect("a folder");
    let produce = |numbers: std::ops::Range<i32>| {
        let values: Vec<(i32, String)> = numbers
            .map(|i| (i % 4, format!("{{\"i\": {i}}}")))
            .collect();
        let values = values.iter();
        cluster.produce("shared", values.map(|(p, v)| (*p, None, Some(v.as_str()))));
    };
    let mut engine = Engine::start(folder.path(), &script);
    produce(0..40);
    cluster.wait_for("shared-out", 40, WAIT);

    // Others join the group one after the other: each time its partitions are shared out anew.
    let mut members: Vec<Member> = Vec::new();
    for round in 1..=3 {
        members.push(Member::join(cluster.consumer("crowd"), "shared"));
        wait_until("the group is not rebalanced", || {
            let shares: Vec<usize> = members.iter().map(Member::partitions).collect();
            shares.iter().sum::<usize>() == 4 && shares.iter().all(|n| *n > 0)
        });
        produce(40 * round..40 * (round + 1));
        let so_far = usize::try_from(40 * (round + 1)).expect("a small number");
        cluster.wait_for("shared-out", so_far, WAIT);
    }
    drop(members);

    // Alone again, the table commits again.
    produce(160..200);
    cluster.wait_for("shared-out", 200, WAIT);
    for partition in 0..4 {
        wait_until("the offsets are not committed", || {
            cluster.committed("crowd", "shared", partition) == Some(50)
        });
    }
    assert!(engine.is_running(), "{}", log(folder.path()));
    engine.kill();
    let mut expected: Vec<String> = (0..200).map(|i| format!("{{\"i\":{i}}}")).collect();
    expected.sort();
    assert_eq!(cluster.values("shared-out"), expected, "each row once");
}

/// A member of a group that polls until it is dropped.
struct Member {
    partitions: Arc<AtomicUsize>,
    leaves: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    fn join(consumer: BaseConsumer, topic: &str) -> Self {
        consumer.subscribe(&[topic]).expect("a subscription");
        let partitions = Arc::new(AtomicUsize::new(0));
        let leaves = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (partitions, leaves) = (Arc::clone(&partitions), Arc::clone(&leaves));
            move || {
                while !leaves.load(Ordering::SeqCst) {
                    consumer.poll(Duration::from_millis(50));
                    let assigned = consumer.assignment().map_or(0, |list| list.count());
                    partitions.store(assigned, Ordering::SeqCst);
                }
            }
        });
        Self {
            partitions,
            leaves,
            thread: Some(thread),
        }
    }

    /// How many partitions it has.
    fn partitions(&self) -> usize {
        self.partitions.load(Ordering::SeqCst)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leaves.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
