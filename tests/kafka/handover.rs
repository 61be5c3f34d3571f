//! A job that is stopped here goes on at its offsets on a Flink cluster.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::broker::Broker;
use crate::cluster::{Cluster, WAIT};
use crate::stub::{Reply, Stub};

fn ebbflow() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbflow"));
    command.env("NO_PROXY", "127.0.0.1").stdin(Stdio::null());
    command
}

pub fn offsets(broker: &Broker) {
    let cluster = Cluster {
        address: broker.address(),
    };
    cluster.create_topic("handed", 2);
    let value = "{\"i\": 1}";
    cluster.produce(
        "handed",
        (0..12).map(|i| (i32::from(i >= 7), None, Some(value))),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, file) = (
        folder.path().join("checkpoints"),
        folder.path().join("job.sql"),
    );
    let script = format!(
        "CREATE TABLE t (i INT) WITH ('connector' = 'kafka', 'topic' = 'handed', \
         'properties.bootstrap.servers' = '{}', 'scan.startup.mode' = 'earliest-offset', \
         'format' = 'json');\n\
         CREATE TABLE o (i INT, n BIGINT) WITH ('connector' = 'blackhole');\n\
         INSERT INTO o SELECT i, COUNT(*) FROM t GROUP BY i;\n",
        broker.address()
    );
    std::fs::write(&file, script).expect("the script is written");
    let mut job = ebbflow()
        .arg("run")
        .arg(&file)
        .args(["-D", "execution.checkpointing.interval=100 ms", "-D"])
        .arg(format!(
            "execution.checkpointing.dir={}",
            checkpoints.display()
        ))
        .spawn()
        .expect("it runs");
    let end = Instant::now() + WAIT;
    let all_read = || {
        let listed = ebbflow().arg("checkpoints").arg(&checkpoints).output();
        let text = String::from_utf8(listed.expect("it runs").stdout).expect("UTF-8");
        ["handed-0: {\"next\":7", "handed-1: {\"next\":5"]
            .iter()
            .all(|position| text.contains(position))
    };
    while !all_read() {
        assert!(Instant::now() < end, "the records are not read");
        std::thread::sleep(Duration::from_millis(100));
    }
    let stopped = ebbflow().arg("stop").arg(&checkpoints).output();
    assert!(stopped.expect("it runs").status.success());
    job.wait().expect("it ends");

    let stub = Stub::start(|statement| match statement.starts_with("INSERT") {
        true => Reply::Job("fa289c64a154786fa0068e88a31dbe52"),
        false => Reply::Done,
    });
    let deployed = ebbflow()
        .arg("deploy")
        .arg(&file)
        .args(["--to", &stub.url(), "--from-checkpoint"])
        .arg(&checkpoints)
        .output()
        .expect("it runs");
    let said = String::from_utf8(deployed.stderr).expect("UTF-8");
    assert!(deployed.status.success(), "{said}");
    let create = stub.statements()[0].clone();
    let begin = "'scan.startup.mode' = 'specific-offsets', \
        'scan.startup.specific-offsets' = 'partition:0,offset:7;partition:1,offset:5')";
    assert!(create.contains(begin), "{create}");
    assert!(!create.contains("earliest"), "{create}");
    assert!(said.contains("topic handed from 0:7, 1:5"), "{said}");
    assert!(said.contains("GroupAggregate(i)"), "{said}");
}
