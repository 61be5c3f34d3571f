//! Records that are gone when a job goes on from its checkpoint.

use std::path::Path;

use crate::broker::Broker;
use crate::cluster::{Cluster, Engine, WAIT, log, wait_until};
use crate::tables::{cluster, table};

const GROUP: &str = ", 'properties.group.id' = 'losers', \
                     'scan.startup.mode' = 'earliest-offset'";
const EARLIEST: &str = ", 'properties.auto.offset.reset' = 'earliest'";

/// A job that copies, and ends when something fails.
fn script(broker: &Broker, folder: &Path, options: &str) -> String {
    format!(
        "SET 'execution.checkpointing.interval' = '100 ms';\n\
         SET 'execution.checkpointing.dir' = '{}';\n\
         SET 'restart-strategy.type' = 'none';\n",
        folder.join("checkpoints").display()
    ) + &table(broker, "t", "i INT", "lost", &format!("{GROUP}{options}"))
        + &table(broker, "o", "i INT", "lost-out", "")
        + "INSERT INTO o SELECT i FROM t;"
}

fn produce(cluster: &Cluster, numbers: std::ops::Range<i32>) {
    let values: Vec<String> = numbers.map(|i| format!("{{\"i\": {i}}}")).collect();
    cluster.produce("lost", values.iter().map(|v| (0, None, Some(v.as_str()))));
}

/// What is in the output: `{"i":7}` as 7.
fn copied(cluster: &Cluster) -> Vec<i32> {
    let values = cluster.values("lost-out");
    let numbers = values.iter().map(|v| {
        let row: serde_json::Value = serde_json::from_str(v).expect("JSON");
        row["i"].as_i64().and_then(|i| i32::try_from(i).ok())
    });
    let mut numbers: Vec<i32> = numbers.map(|i| i.expect("a number")).collect();
    numbers.sort_unstable();
    numbers
}

pub fn lost_records_are_named(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("lost", 1);
    cluster.create_topic("lost-out", 1);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let start = |options: &str| Engine::start(folder, &script(broker, folder, options));
    // Up to a checkpoint with offset `end`.
    let run_to = |options: &str, end: i64| {
        let engine = start(options);
        wait_until(&format!("no checkpoint with offset {end}"), || {
            cluster.committed("losers", "lost", 0) == Some(end)
        });
        engine.kill();
    };
    let expect = |text: &str| {
        let log = start("").fails(folder);
        assert!(log.contains(text), "{text}: {log}");
    };
    produce(&cluster, 0..10);
    run_to("", 10);
    assert_eq!(copied(&cluster), (0..10).collect::<Vec<_>>());

    produce(&cluster, 10..30);
    cluster.delete_records("lost", 20);
    expect("from offset 10 on were deleted before they were read; the first that is left is 20");
    run_to(EARLIEST, 30);
    assert_eq!(copied(&cluster), (0..10).chain(20..30).collect::<Vec<_>>());
    let text = "it goes on at offset 20 ('properties.auto.offset.reset' = 'earliest')";
    assert!(log(folder).contains(text), "{}", log(folder));

    cluster.delete_topic("lost");
    cluster.create_topic("lost", 1);
    produce(&cluster, 100..105);
    expect("the next record would be that of offset 30, but the log ends at 5");
    // The offset is there again, but what lies in front of it was never read.
    produce(&cluster, 105..140);
    expect("at offset 29 lies another record than was read");
    let engine = start(EARLIEST);
    cluster.wait_for("lost-out", 60, WAIT);
    engine.kill();
    let expected: Vec<i32> = (0..10).chain(20..30).chain(100..140).collect();
    assert_eq!(copied(&cluster), expected);
}
