//! Scripts on a real cluster.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::command::{Outcome, call, deploy, ebbflow, run, script};

type Test = fn(&Cluster);

pub const TESTS: &[(&str, Test)] = &[
    ("a_script_reads_and_writes_files", files),
    ("a_job_stops_with_a_savepoint_and_goes_on", savepoint),
    ("errors_of_the_planner_are_shown_in_place", planner_errors),
    ("a_job_that_fails_says_why", failing_job),
    ("changes_of_a_query_come_back", query),
    ("the_prompt_runs_on_the_cluster", prompt),
    ("nexmark_is_ready_for_the_cluster", nexmark),
];

/// Longest wait for something on the cluster.
const LONGEST: Duration = Duration::from_secs(120);

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LONGEST;
    while !holds() {
        assert!(Instant::now() < end, "not even after a while: {what}");
        sleep(Duration::from_millis(200));
    }
}

fn well(outcome: Outcome) -> String {
    assert!(outcome.well, "{}{}", outcome.out, outcome.err);
    outcome.out
}

/// The status that the cluster gives a job.
fn status(cluster: &Cluster, id: &str) -> String {
    let listed = well(call(&["jobs", "--on", &cluster.url()]));
    let line = listed.lines().find(|l| l.contains(id)).unwrap_or_default();
    line.split('|')
        .nth(3)
        .unwrap_or_default()
        .trim()
        .to_string()
}

/// All lines of the files in a folder, sorted.
fn lines_in(folder: &Path) -> Vec<String> {
    let mut lines: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with(['.', '_']))
        .flat_map(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            text.lines().map(str::to_string).collect::<Vec<_>>()
        })
        .collect();
    lines.sort();
    lines
}

/// The same script gives the same files here and there.
fn files(cluster: &Cluster) {
    let input = cluster.path("data/in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.csv"), "1,x\n2,y\n3,x\n").unwrap();
    let script = |out: &Path| {
        format!(
            "CREATE TABLE o (n INT, s STRING) WITH ('connector' = 'filesystem', 'path' = 'file://{}', 'format' = 'csv');\n\
             CREATE TABLE r (s STRING, n INT) WITH ('connector' = 'filesystem', 'path' = 'file://{}', 'format' = 'json');\n\
             INSERT INTO r SELECT UPPER(s), n * 10 FROM o WHERE n <> 2;\n",
            input.display(),
            out.display()
        )
    };
    let (here, there) = (cluster.path("data/here"), cluster.path("data/there"));
    let out = well(deploy(&script(&there), &cluster.url(), &["--wait"]));
    assert!(out.contains("FINISHED"), "{out}");
    well(run(ebbflow().args(["run", "-q", "-e", &script(&here)])));
    assert_eq!(
        lines_in(&there),
        ["{\"s\":\"X\",\"n\":10}", "{\"s\":\"X\",\"n\":30}"]
    );
    assert_eq!(lines_in(&there), lines_in(&here));
}

// random numbers: Flink holds a sequence in memory
const NUMBERS: &str = "SET 'execution.checkpointing.interval' = '500 ms';
    CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100',
        'fields.n.min' = '1', 'fields.n.max' = '1000');
    CREATE TABLE b (k BIGINT, c BIGINT) WITH ('connector' = 'blackhole');
    INSERT INTO b SELECT MOD(n, 3), COUNT(*) FROM g GROUP BY MOD(n, 3);";

fn savepoint(cluster: &Cluster) {
    let id = well(deploy(NUMBERS, &cluster.url(), &["-q"]))
        .trim()
        .to_string();
    assert_eq!(id.len(), 32, "{id}");
    wait_until("a checkpoint", || {
        cluster
            .ask(&format!("/jobs/{id}/checkpoints"))
            .contains("\"latest\":{\"completed\":{")
    });
    assert_eq!(status(cluster, &id), "RUNNING");
    let directory = format!("file://{}", cluster.path("savepoints").display());
    let said = well(call(&[
        "stop",
        &id,
        "--on",
        &cluster.url(),
        "--savepoint",
        &directory,
    ]));
    let path = said.trim().rsplit(' ').next().unwrap().to_string();
    let local = path.trim_start_matches("file:").trim_start_matches("//");
    assert!(Path::new(local).join("_metadata").is_file(), "{said}");
    wait_until("it has stopped", || status(cluster, &id) == "FINISHED");
    let path = format!("execution.state-recovery.path={path}");
    let id = well(deploy(NUMBERS, &cluster.url(), &["-q", "--set", &path]))
        .trim()
        .to_string();
    wait_until("it has gone on", || {
        cluster
            .ask(&format!("/jobs/{id}/checkpoints"))
            .contains("\"is_savepoint\":true")
    });
    let said = well(call(&["stop", &id, "--on", &cluster.url()]));
    assert_eq!(said, format!("job {id} is cancelled\n"));
    wait_until("it is cancelled", || status(cluster, &id) == "CANCELED");
}

fn planner_errors(cluster: &Cluster) {
    let sql = "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen');\n\
        CREATE TABLE m (n BIGINT) WITH ('connector' = 'memory');\n\
        INSERT INTO m\n  SELECT nope FROM g;\n\
        INSERT INTO m SELECT n FROM g;\n\
        INSERT INTO m SELECT n FORM g;\n\
        BEGIN STATEMENT SET;\nINSERT INTO m SELECT other FROM g;\nEND;\n";
    let outcome = deploy(sql, &cluster.url(), &["--dry-run"]);
    assert!(!outcome.well);
    outcome.says(&[
        "Column 'nope' not found in any table",
        ".sql:4:10\n",
        "4 |   SELECT nope FROM g;\n",
        "|          ^^^^\n",
        "Could not find any factory for identifier 'memory'",
        ".sql:5:1\n",
        "Encountered \"g\" at line 1",
        ".sql:6:",
        "Column 'other' not found in any table",
        ".sql:8:22\n",
    ]);
    // and the check knows it without a cluster
    let file = script(sql);
    let checked = run(ebbflow()
        .arg("check")
        .arg(file.path())
        .args(["--for", "flink-2.3"]));
    assert!(!checked.well && checked.out.contains("Not in Flink: the connector 'memory'"));
}

fn failing_job(cluster: &Cluster) {
    let sql = "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '10');\n\
        CREATE TABLE b (n BIGINT) WITH ('connector' = 'blackhole');\n\
        INSERT INTO b SELECT n / (n - n) FROM g;\n";
    let outcome = deploy(sql, &cluster.url(), &["--wait"]);
    assert!(!outcome.well);
    assert!(outcome.out.contains(": FAILED\n"), "{}", outcome.out);
    outcome.says(&["zero", "line 3: INSERT INTO b"]);
}

fn query(cluster: &Cluster) {
    let sql = "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '2',
            'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '2');
        SELECT COUNT(*) AS c, CAST(NULL AS STRING) AS s FROM g;";
    let out = well(deploy(
        sql,
        &cluster.url(),
        &["-q", "--set", "sql-client.execution.result-mode=changelog"],
    ));
    assert_eq!(out, "+I[1, null]\n-U[1, null]\n+U[2, null]\n");
}

fn prompt(cluster: &Cluster) {
    let mut child = ebbflow()
        .args(["repl", "--on", &cluster.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // nobody may listen any more
        let send = |line| sender.send(line).ok();
        stdout.lines().map_while(Result::ok).try_for_each(send)
    });
    let find = |what: &str| {
        let next = || lines.recv_timeout(LONGEST).ok();
        let found = std::iter::from_fn(next).find(|line| line.contains(what));
        assert!(found.is_some(), "'{what}' does not come");
    };
    stdin
        .write_all(
            b"CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50');\n\
              SELECT n FROM nowhere;\nSHOW TABLES;\nSELECT COUNT(*) AS c FROM g;\n",
        )
        .unwrap();
    find("Execute statement succeeded");
    find("table name");
    find("| +I |");
    find("| +U |");
    // the query is in the foreground: Ctrl-C ends it, and the prompt goes on
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    find("Received a total of");
    stdin.write_all(b"SHOW CURRENT DATABASE;\nQUIT;\n").unwrap();
    find("default_database");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("Object 'nowhere' not found"), "{err}");
    // the job of the query is gone from the cluster
    wait_until("no query runs", || {
        let jobs = well(call(&["jobs", "--on", &cluster.url()]));
        !jobs
            .lines()
            .any(|l| l.contains("COUNT(*)") && l.contains("RUNNING"))
    });
}

/// The scripts of the benchmark pass, but for those that the check names beforehand.
fn nexmark(cluster: &Cluster) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/nexmark");
    let fill = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let dir = cluster.path("data").display().to_string();
        text.replace("${EVENTS_NUM}", "1000")
            .replace("${NEXMARK_DIR}", &dir)
    };
    let ddl = script(&fill("ddl.sql"));
    let ddl = ddl.path().to_str().unwrap();
    for number in 0..=23 {
        let name = format!("q{number}.sql");
        let sql = fill(&name);
        let reason = match number {
            6 => Some("OVER with a frame of rows over a table that is updated"),
            13 => Some("a lookup join with a table of the connector 'filesystem'"),
            14 => Some("the function count_char"),
            _ => None,
        };
        let file = script(&sql);
        let checked = run(ebbflow().arg("check").arg(file.path()).args([
            "--for",
            "flink-2.3",
            "--with",
            "nexmark",
            "--init",
            ddl,
        ]));
        let tried = deploy(&sql, &cluster.url(), &["--dry-run", "--init", ddl]);
        match reason {
            None => {
                assert!(checked.well, "{name}: {}{}", checked.out, checked.err);
                assert!(tried.well, "{name}: {}{}", tried.out, tried.err);
            }
            Some(reason) => {
                assert!(
                    !checked.well && checked.out.contains(reason),
                    "{name}: {checked:?}"
                );
                assert!(!tried.well, "{name}: {}", tried.out);
            }
        }
    }
}
