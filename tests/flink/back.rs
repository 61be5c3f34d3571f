//! What a Flink user has runs here; what runs here is handed over.

use std::process::Stdio;
use std::time::Duration;

use crate::command::{call, deploy, ebbflow, run, script};
use crate::stub::{Reply, Stub};

pub const TESTS: &[(&str, fn())] = &[
    ("init_files_foreign_settings_and_jars", flink_user),
    ("a_prompt_on_a_gateway_reads_a_pipe", prompt),
    ("a_checkpoint_is_handed_over_in_words", handover),
];

fn flink_user() {
    let init = script(
        "SET 'state.backend.type' = 'rocksdb';\nSET 'table.dml-sync' = 'false';\n\
         ADD JAR '/lib/flink-sql-parquet-2.3.0.jar';\nADD JAR 'mine.jar';\n\
         CREATE TABLE o (n INT) WITH ('connector' = 'print');\n",
    );
    let job = script("INSERT INTO o VALUES (1);\nSET 'taskmanager.numberOfTaskSlots' = '4';\n");
    let run = |more: &[&str]| {
        run(ebbflow()
            .args(["run", "-D", "rest.port=8081", "--init"])
            .arg(init.path())
            .arg(job.path())
            .args(more))
    };
    let outcome = run(&[]);
    assert!(outcome.well, "{}", outcome.err);
    assert_eq!(outcome.out, "+I[1]\n");
    outcome.says(&[
        "'/lib/flink-sql-parquet-2.3.0.jar' has no effect and needs none: 'parquet' is built in",
        "ADD JAR 'mine.jar' has no effect: there is no JVM here",
        "settings without effect here: rest.port, state.backend.type, taskmanager.numberOfTaskSlots",
    ]);
    assert!(!outcome.err.contains("table.dml-sync"), "{}", outcome.err);
}

fn prompt() {
    use std::io::Write as _;
    let stub = Stub::start(|statement| match statement {
        "SELECT 1" => Reply::Query {
            pages: vec![vec![("INSERT", 1)], vec![("DELETE", 1)]],
            ends: true,
        },
        s if s.starts_with("INSERT") => Reply::Job("fa289c64a154786fa0068e88a31dbe52"),
        s if s.contains("nope") => Reply::Failure(&[(
            "org.apache.calcite.runtime.CalciteContextException",
            "At line 1, column 8: Column 'nope' not found in any table",
        )]),
        _ => Reply::Done,
    });
    let mut child = ebbflow()
        .args(["repl", "--on", &stub.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sql = "SET 'sql-client.execution.result-mode' = 'changelog';\nSELECT 1;\nSELECT nope FROM t;\n\
        INSERT INTO t SELECT 1;\nEXIT;\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(sql.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(
        out.contains("[INFO] Execute statement succeeded.\n\n+I[1]\n-D[1]\n"),
        "{out}"
    );
    assert!(
        out.contains("Job ID: fa289c64a154786fa0068e88a31dbe52\n"),
        "{out}"
    );
    assert!(
        err.contains("Flink: Column 'nope' not found in any table"),
        "{err}"
    );
    assert!(err.contains("       ^"), "{err}");
    assert_eq!(stub.seen.lock().unwrap().closed_sessions, 1);
}

fn handover() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().display().to_string();
    let sql = "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '500',
            'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000000');
        CREATE TABLE b (k BIGINT, c BIGINT) WITH ('connector' = 'blackhole');
        INSERT INTO b SELECT MOD(n, 3), COUNT(*) FROM g GROUP BY MOD(n, 3);";
    let mut child = ebbflow()
        .args([
            "run",
            "-e",
            sql,
            "-D",
            "execution.checkpointing.interval=20 ms",
            "-D",
        ])
        .arg(format!("execution.checkpointing.dir={directory}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let listed = || call(&["checkpoints", &directory]).out;
    while !listed().contains("GroupAggregate") {
        assert!(child.try_wait().unwrap().is_none(), "the job has ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    let stub = Stub::start(
        |statement| match statement.trim_start().starts_with("INSERT") {
            true => Reply::Job("fa289c64a154786fa0068e88a31dbe52"),
            false => Reply::Done,
        },
    );
    let deployed = || deploy(sql, &stub.url(), &["--from-checkpoint", &directory]);
    let refused = deployed();
    assert!(!refused.well && stub.statements().is_empty());
    refused.says(&["is still run by process", "stop it first: ebbflow stop"]);

    assert!(call(&["stop", &directory]).well);
    child.wait().unwrap();
    let outcome = deployed();
    assert!(outcome.well, "{}", outcome.err);
    outcome.says(&[
        "positions come from checkpoint ",
        "default_catalog.default_database.g: it is no Kafka table and is read from its beginning",
        "state is not handed over",
        "GroupAggregate(",
        "sums, counts and the like begin with the rows that come from now on",
    ]);
    let nothing = deploy(sql, &stub.url(), &["--from-checkpoint", "/no/such/folder"]);
    assert!(!nothing.well);
}
