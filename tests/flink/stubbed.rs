//! What is asked of a gateway, and what becomes of its answers.

use std::time::Duration;

use serde_json::json;

use crate::command::{call, deploy, ebbflow, run, script};
use crate::stub::{Reply, Stub};

pub const TESTS: &[(&str, fn())] = &[
    ("statements_go_unchanged_and_jobs_are_told", unchanged),
    ("an_error_is_shown_under_its_statement", planner_error),
    ("a_dry_run_explains_and_goes_on_after_errors", dry_run),
    ("a_block_of_inserts_is_one_statement", block),
    ("rows_of_a_query_come_page_by_page", query),
    ("waiting_ends_with_the_jobs", waiting),
    ("jobs_are_listed_and_stopped", jobs),
    ("no_gateway", no_gateway),
    ("a_slow_gateway", slow),
    ("a_server_that_is_no_gateway", rubbish),
];

const JOB: &str = "fa289c64a154786fa0068e88a31dbe52";

const SCRIPT: &str = "-- numbers\nSET 'parallelism.default' = '2';\n\
    CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen');\n\
    CREATE TABLE b (n BIGINT) WITH ('connector' = 'blackhole');\n\
    INSERT INTO b\n  SELECT n FROM g;\n";

fn replies(statement: &str) -> Reply {
    match statement.split_whitespace().next().unwrap_or_default() {
        "INSERT" | "EXECUTE" => Reply::Job(JOB),
        "EXPLAIN" => Reply::Rows(
            &["result"],
            vec![vec!["== Abstract Syntax Tree ==\nLogicalSink"]],
        ),
        _ => Reply::Done,
    }
}

fn unchanged() {
    let stub = Stub::start(replies);
    let outcome = deploy(
        SCRIPT,
        &stub.url(),
        &["--set", "rest.address=jm", "-D", "pipeline.name=p"],
    );
    assert!(outcome.well, "{}", outcome.err);
    assert_eq!(
        stub.statements(),
        [
            "SET 'parallelism.default' = '2'",
            "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen')",
            "CREATE TABLE b (n BIGINT) WITH ('connector' = 'blackhole')",
            "INSERT INTO b\n  SELECT n FROM g",
        ]
    );
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert_eq!(lines[0], "line 2: SET 'parallelism.default' = '2': done");
    assert_eq!(lines[3], format!("line 5: INSERT INTO b: job {JOB}"));
    assert_eq!(lines.len(), 4);
    let seen = stub.seen.lock().unwrap();
    assert_eq!(
        seen.settings,
        [json!({"rest.address": "jm", "pipeline.name": "p"})]
    );
    assert_eq!(seen.closed_sessions, 1);
    drop(seen);
    let quiet = deploy(SCRIPT, &stub.url(), &["-q"]);
    assert_eq!(quiet.out, format!("{JOB}\n"));
}

/// As Flink 2.3 answers `SELECT x FROM g`.
const NO_COLUMN: Reply = Reply::Failure(&[
    (
        "org.apache.flink.table.api.ValidationException",
        "SQL validation failed. From line 2, column 10 to line 2, column 13: Column 'nope' not found in any table",
    ),
    (
        "org.apache.calcite.runtime.CalciteContextException",
        "From line 2, column 10 to line 2, column 13: Column 'nope' not found in any table",
    ),
    (
        "org.apache.calcite.sql.validate.SqlValidatorException",
        "Column 'nope' not found in any table",
    ),
]);

fn planner_error() {
    let stub = Stub::start(|statement| match statement.contains("nope") {
        true => NO_COLUMN,
        false => replies(statement),
    });
    let sql = "INSERT INTO b SELECT n FROM g;\n\n-- wrong\nINSERT INTO b\n  SELECT nope FROM g;\nSELECT 1;\n";
    let outcome = deploy(sql, &stub.url(), &[]);
    assert!(!outcome.well);
    outcome.says(&[
        "error: Flink: Column 'nope' not found in any table\n",
        ".sql:5:10\n",
        "5 |   SELECT nope FROM g;\n",
        "|          ^^^^\n",
        "these jobs were started before the error, and run on:\n",
        JOB,
        "ebbflow stop JOB --on http://127.0.0.1:",
    ]);
    // what stands behind it is not run
    assert_eq!(stub.statements().len(), 2);
}

fn dry_run() {
    let stub = Stub::start(|statement| match statement.contains("nope") {
        // the place is that of the statement as it was sent: behind EXPLAIN
        true => Reply::Failure(&[(
            "org.apache.flink.table.api.ValidationException",
            "SQL validation failed. From line 1, column 30 to line 1, column 33: Column 'nope' not found in any table",
        )]),
        false => replies(statement),
    });
    let sql =
        "INSERT INTO b SELECT nope FROM g;\nINSERT INTO b SELECT n FROM g;\nTRUNCATE TABLE b;\n";
    let outcome = deploy(sql, &stub.url(), &["--dry-run"]);
    assert!(!outcome.well);
    outcome.says(&[".sql:1:22\n", "|                      ^^^^\n"]);
    assert_eq!(
        stub.statements(),
        [
            "EXPLAIN INSERT INTO b SELECT nope FROM g",
            "EXPLAIN INSERT INTO b SELECT n FROM g",
        ]
    );
    assert_eq!(
        outcome.out,
        "line 2: INSERT INTO b SELECT n FROM g: can run\n\
         line 3: TRUNCATE TABLE b: not tried, only running it would tell what it does\n"
    );
    let verbose = deploy("SELECT 1;", &stub.url(), &["--dry-run", "-v"]);
    assert!(
        verbose.well && verbose.out.contains("LogicalSink"),
        "{}",
        verbose.out
    );
}

fn block() {
    let stub = Stub::start(replies);
    let sql = "BEGIN STATEMENT SET;\nINSERT INTO b SELECT 1;\nINSERT INTO c SELECT 2;\nEND;\n";
    let outcome = deploy(sql, &stub.url(), &[]);
    assert!(outcome.well, "{}", outcome.err);
    assert_eq!(
        stub.statements(),
        ["EXECUTE STATEMENT SET BEGIN\nINSERT INTO b SELECT 1;\nINSERT INTO c SELECT 2;\nEND"]
    );
    assert_eq!(
        outcome.out,
        format!("line 1: BEGIN STATEMENT SET;: job {JOB}\n")
    );
}

fn query() {
    let stub = Stub::start(|_| Reply::Query {
        pages: vec![
            vec![],
            vec![("INSERT", 1), ("UPDATE_BEFORE", 1)],
            vec![],
            vec![("UPDATE_AFTER", 2), ("DELETE", 2)],
        ],
        ends: true,
    });
    let outcome = deploy("SELECT COUNT(*) AS n FROM g;", &stub.url(), &["-q"]);
    assert!(outcome.well, "{}", outcome.err);
    let cells = |line: &str| {
        line.split('|')
            .map(|c| c.trim().to_string())
            .collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = outcome
        .out
        .lines()
        .filter(|l| l.starts_with('|'))
        .map(cells)
        .collect();
    let rows: Vec<String> = rows.iter().map(|r| r[1..3].join(" ")).collect();
    assert_eq!(rows, ["op n", "+I 1", "-U 1", "+U 2", "-D 2"]);
    assert!(
        outcome.out.ends_with("Received a total of 4 rows\n"),
        "{}",
        outcome.out
    );
}

fn waiting() {
    for (last, well) in [("FINISHED", true), ("FAILED", false)] {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let stub = Stub::start(move |statement| {
            if statement != "SHOW JOBS" {
                return replies(statement);
            }
            let before = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let status = if before < 2 { "RUNNING" } else { last };
            let other = vec!["00000000000000000000000000000000", "other", "RUNNING", "t"];
            Reply::Rows(
                &["job id", "job name", "status", "start time"],
                vec![other, vec![JOB, "insert-into_b", status, "t"]],
            )
        });
        let outcome = deploy("INSERT INTO b SELECT 1;", &stub.url(), &["--wait"]);
        assert_eq!(outcome.well, well, "{}", outcome.err);
        assert!(
            outcome.out.ends_with(&format!("job {JOB}: {last}\n")),
            "{}",
            outcome.out
        );
    }
}

fn jobs() {
    let stub = Stub::start(|statement| match statement {
        "SHOW JOBS" => Reply::Rows(
            &["job id", "job name", "status", "start time"],
            vec![vec![JOB, "insert-into_b", "RUNNING", "2026-01-01T00:00:00"]],
        ),
        s if s.contains("SAVEPOINT") => {
            Reply::Rows(&["savepoint path"], vec![vec!["file:/s/savepoint-1"]])
        }
        _ => Reply::Done,
    });
    let listed = call(&["jobs", "--on", &stub.url()]);
    assert!(
        listed.well && listed.out.contains("insert-into_b"),
        "{listed:?}"
    );
    let stop = |more: &[&str]| {
        let outcome = run(ebbflow()
            .args(["stop", JOB, "--on", &stub.url()])
            .args(more));
        assert!(outcome.well, "{}", outcome.err);
        outcome.out
    };
    assert_eq!(
        stop(&["--savepoint", "file:///s"]),
        format!("job {JOB} has stopped with the savepoint file:/s/savepoint-1\n")
    );
    assert_eq!(stop(&[]), format!("job {JOB} is cancelled\n"));
    stop(&["--savepoint", "file:///s", "--drain"]);
    assert_eq!(
        stub.statements()[1..],
        [
            format!("STOP JOB '{JOB}' WITH SAVEPOINT"),
            format!("STOP JOB '{JOB}'"),
            format!("STOP JOB '{JOB}' WITH SAVEPOINT WITH DRAIN"),
        ]
    );
    assert_eq!(
        stub.seen.lock().unwrap().settings[1],
        json!({"execution.checkpointing.savepoint-dir": "file:///s"})
    );
    let wrong = call(&["stop", "'; DROP", "--on", &stub.url()]);
    assert!(!wrong.well);
    wrong.says(&["is no id of a job", "ebbflow jobs --on URL lists them"]);
}

fn no_gateway() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let outcome = deploy("SELECT 1;", &format!("http://127.0.0.1:{port}"), &[]);
    assert!(!outcome.well);
    outcome.says(&[
        &format!("SQL Gateway: there is no connection to the gateway http://127.0.0.1:{port}"),
        "hint: is it running?",
    ]);
    let outcome = deploy("SELECT 1;", "ftp://nowhere", &[]);
    outcome.says(&["'ftp://nowhere' is no address of a gateway"]);
}

fn slow() {
    let stub = Stub::saying(200, "{}", Duration::from_secs(3));
    let file = script("SELECT 1;");
    let outcome = run(ebbflow().arg("deploy").arg(file.path()).args([
        "--to",
        &stub.url(),
        "--timeout",
        "0.2",
    ]));
    assert!(!outcome.well);
    outcome.says(&[
        "has not answered GET /api_versions within 0.2 s",
        "--timeout",
    ]);
}

fn rubbish() {
    for (status, text, parts) in [
        (
            200,
            "<html><body>Welcome to nginx</body></html>",
            [
                "is none of a SQL Gateway: 200 OK, `<html>",
                "8081 is the JobManager's",
            ],
        ),
        (
            404,
            "{\"errors\":[\"Not found: /api_versions\"]}",
            ["Not found: /api_versions", "8081 is the JobManager's"],
        ),
        (
            200,
            "{\"versions\":[\"V1\"]}",
            [
                "offers no REST API of a SQL Gateway from version 2 on",
                "1.17",
            ],
        ),
        (200, "[]", ["offers no REST API", "1.17"]),
    ] {
        let stub = Stub::saying(status, text, Duration::ZERO);
        let outcome = deploy("SELECT 1;", &stub.url(), &[]);
        assert!(!outcome.well);
        outcome.says(&parts);
    }
}
