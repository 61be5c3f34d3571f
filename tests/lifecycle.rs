//! The life of `ebbflow run` seen from outside: stop, go on, finish, refuse.

#![allow(clippy::unwrap_used)] // a failure here is a failed test
#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// An endless source, a sum by key, and a sink that takes updates.
const ENDLESS: &str = "
    CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000',
        'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000000');
    CREATE TABLE sums (k BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'blackhole');
    INSERT INTO sums SELECT MOD(n, 7), SUM(n) FROM numbers GROUP BY MOD(n, 7);
";

/// The same with one more aggregate.
const CHANGED: &str = "
    CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000',
        'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000000');
    CREATE TABLE sums (k BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'blackhole');
    INSERT INTO sums SELECT MOD(n, 7), SUM(n) + COUNT(*) FROM numbers GROUP BY MOD(n, 7);
";

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    fn checkpoints(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, sql: &str, arguments: &[&str]) -> Command {
        let mut command = ebbflow();
        command
            .args(["run", "-e", sql])
            .args(["-D", "execution.checkpointing.interval=20 ms"])
            .arg("-D")
            .arg(format!(
                "execution.checkpointing.dir={}",
                self.checkpoints().display()
            ))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a run and waits until it has taken a checkpoint of its own.
    fn start(&self, sql: &str, arguments: &[&str]) -> Child {
        let before = self.newest();
        let mut child = self.command(sql, arguments).spawn().unwrap();
        wait_until("a checkpoint", || {
            if let Some(status) = child.try_wait().unwrap() {
                let output = std::mem::replace(&mut child, idle())
                    .wait_with_output()
                    .unwrap();
                panic!("ended with {status}: {}", text(&output.stderr));
            }
            self.newest() > before + 1
        });
        child
    }

    /// Number of the newest checkpoint; 0 without.
    fn newest(&self) -> u64 {
        let output = ebbflow()
            .args(["checkpoints", "--json"])
            .arg(self.checkpoints())
            .output()
            .unwrap();
        let jobs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let epochs = jobs[0]["checkpoints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        epochs
            .iter()
            .filter_map(|c| c["epoch"].as_u64())
            .max()
            .unwrap_or(0)
    }
}

fn ebbflow() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ebbflow"))
}

fn idle() -> Child {
    Command::new("true").spawn().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited too long for {what}");
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Runs a command that ends by itself.
fn run(command: &mut Command) -> (Output, String) {
    let mut child = command.spawn().unwrap();
    for _ in 0..6000 {
        if child.try_wait().unwrap().is_some() {
            return ended(child);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    let (_, said) = ended(child);
    panic!("it did not end: {said}");
}

fn ended(child: Child) -> (Output, String) {
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    (output, said)
}

#[test]
fn a_signal_stops_with_a_last_checkpoint_and_the_next_run_goes_on() {
    let place = Place::new();
    for name in ["-TERM", "-INT"] {
        let before = place.newest();
        let child = place.start(ENDLESS, &[]);
        signal(&child, name);
        let (output, said) = ended(child);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("has stopped at checkpoint"), "{said}");
        let goes_on = said.contains(&format!("it goes on from checkpoint {before}\n"));
        assert_eq!(goes_on, before > 0, "{said}");
    }
}

#[test]
fn a_statement_that_waits_for_its_job_can_be_stopped() {
    let place = Place::new();
    let child = place.start(ENDLESS, &["-D", "table.dml-sync=true"]);
    signal(&child, "-INT");
    let (output, said) = ended(child);
    assert!(output.status.success(), "{said}");
}

#[test]
fn another_process_is_refused_and_can_stop_the_first() {
    let place = Place::new();
    let child = place.start(ENDLESS, &[]);
    let (second, said) = run(&mut place.command(ENDLESS, &[]));
    assert!(!second.status.success(), "{said}");
    assert!(
        said.contains(&format!("is used by process {}", child.id())),
        "{said}"
    );

    let listed = ebbflow()
        .arg("checkpoints")
        .arg(place.checkpoints())
        .output()
        .unwrap();
    let listed = text(&listed.stdout);
    assert!(
        listed.contains(&format!("used by process {}", child.id())),
        "{listed}"
    );
    assert!(listed.contains("sums/GroupAggregate(MOD(n"), "{listed}");
    assert!(listed.contains("TableSourceScan"), "{listed}");

    let stop = ebbflow()
        .arg("stop")
        .arg(place.checkpoints())
        .output()
        .unwrap();
    assert!(stop.status.success(), "{}", text(&stop.stderr));
    let answer = text(&stop.stdout);
    assert!(answer.contains("stopped at checkpoint"), "{answer}");
    let (output, said) = ended(child);
    assert!(output.status.success(), "{said}");
    let nobody = ebbflow()
        .arg("stop")
        .arg(place.checkpoints())
        .output()
        .unwrap();
    assert!(!nobody.status.success());
    assert!(text(&nobody.stderr).contains("no job runs"));
}

#[test]
fn a_changed_query_is_refused_with_the_difference_unless_told_otherwise() {
    let place = Place::new();
    let child = place.start(ENDLESS, &[]);
    signal(&child, "-TERM");
    ended(child);
    let (output, said) = run(&mut place.command(CHANGED, &[]));
    assert!(!output.status.success(), "{said}");
    for part in [
        "changed: default_catalog.default_database.sums/GroupAggregate",
        "saved: SUM(n) BIGINT",
        "now:   SUM(n) BIGINT, COUNT(*) BIGINT",
        "--allow-non-restored-state",
        "--fresh",
    ] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    for (option, begins) in [
        ("--allow-non-restored-state", "it goes on from checkpoint"),
        ("--fresh", "it starts anew, as asked for"),
    ] {
        let sql = if option == "--fresh" {
            ENDLESS
        } else {
            CHANGED
        };
        let mut child = place.command(sql, &[option]).spawn().unwrap();
        let newest = place.newest();
        wait_until("another checkpoint", || {
            place.newest() != newest || child.try_wait().unwrap().is_some()
        });
        signal(&child, "-TERM");
        let (output, said) = ended(child);
        assert!(output.status.success(), "{said}");
        assert!(said.contains(begins), "{said}");
    }
}

#[test]
fn a_job_that_has_finished_starts_anew_and_says_so() {
    let place = Place::new();
    let sql = "CREATE TABLE o (n INT) WITH ('connector' = 'print');
        INSERT INTO o VALUES (1), (2);";
    for finished_before in [false, true] {
        let (output, said) = run(&mut place.command(sql, &[]));
        assert!(output.status.success(), "{said}");
        assert_eq!(text(&output.stdout), "+I[1]\n+I[2]\n");
        assert_eq!(
            said.contains("had finished the last time"),
            finished_before,
            "{said}"
        );
    }
}

#[test]
fn a_savepoint_is_where_another_job_begins() {
    let place = Place::new();
    let child = place.start(ENDLESS, &[]);
    signal(&child, "-TERM");
    ended(child);
    let listed = ebbflow()
        .args(["checkpoints", "--json"])
        .arg(place.checkpoints())
        .output()
        .unwrap();
    let jobs: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let directory = jobs[0]["directory"].as_str().unwrap();
    let epoch = place.newest();
    let other = Place::new();
    let path = format!("{directory}/chk-{epoch}");
    let child = other.start(ENDLESS, &["--from-savepoint", &path]);
    signal(&child, "-TERM");
    let (output, said) = ended(child);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains(&format!("it goes on from checkpoint {epoch}\n")),
        "{said}"
    );
    assert!(other.newest() > epoch);
}

#[test]
fn an_insert_more_in_a_script_leaves_the_others_where_they_were() {
    let place = Place::new();
    let child = place.start(ENDLESS, &[]);
    signal(&child, "-TERM");
    ended(child);
    let epoch = place.newest();
    let more = format!(
        "{ENDLESS} CREATE TABLE odd (n BIGINT) WITH ('connector' = 'blackhole');
        INSERT INTO odd SELECT n FROM numbers WHERE MOD(n, 2) = 1;"
    );
    let child = place.start(&more, &[]);
    signal(&child, "-TERM");
    let (output, said) = ended(child);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains(&format!("it goes on from checkpoint {epoch}\n")),
        "{said}"
    );
    // and one less is refused, for its state has no place any more
    let less = ENDLESS
        .replace("INSERT INTO sums", "INSERT INTO odd")
        .replace(
            "SELECT MOD(n, 7), SUM(n) FROM numbers GROUP BY MOD(n, 7)",
            "SELECT n FROM numbers WHERE MOD(n, 2) = 1",
        );
    let less = format!("CREATE TABLE odd (n BIGINT) WITH ('connector' = 'blackhole'); {less}");
    let (output, said) = run(&mut place.command(&less, &[]));
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("gone:    default_catalog.default_database.sums/GroupAggregate"),
        "{said}"
    );
}
