//! The three guarantees, each exactly as its words say, when the process is killed right after rows
//! went out that no checkpoint knows of.

use crate::harness::{Bag, Watched, Workplace, surplus};

const ROWS: u64 = 4000;
/// A burst of so many rows each second.
const RATE: u64 = 500;
const KILLS: usize = 3;

/// `mode` is `execution.checkpointing.mode`, `sink` are options of the sink.
fn workplace(mode: &str, sink: &str) -> Workplace {
    let at = Workplace::new();
    let root = at.path("");
    let script = format!(
        "SET 'execution.checkpointing.mode' = '{mode}';
SET 'execution.checkpointing.interval' = '400 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{RATE}',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{ROWS}');
CREATE TABLE written (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{root}/out',
  'format' = 'csv', 'sink.rolling-policy.rollover-interval' = '50 ms',
  'sink.rolling-policy.check-interval' = '10 ms'{sink});
INSERT INTO written SELECT n FROM numbers;
",
        root = root.display(),
    );
    at.write("script.sql", &script);
    at
}

/// What tells that rows went out which no checkpoint knows of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// There are more visible files than at the last checkpoint.
    Visible,
    /// There is something in hidden files.
    Hidden,
}

fn visible(at: &Workplace) -> usize {
    at.visible("out").len()
}

/// Lines, and how often each.
type Counted = Vec<(String, i64)>;

/// Runs to the end, killed each time that `sign` is seen. Answers what is missing, and what is there
/// too often.
fn run(mode: &str, sink: &str, sign: Sign) -> (Counted, Counted) {
    let at = workplace(mode, sink);
    for kill in 0..KILLS {
        let mut process = at.start();
        let mut checkpoints = at.checkpoints();
        let mut taken = 0;
        let mut before = visible(&at);
        let watched = process.watch(|| {
            let now = at.checkpoints();
            if now != checkpoints {
                checkpoints = now;
                taken += 1;
                before = visible(&at);
            }
            let has_written = match sign {
                Sign::Visible => visible(&at) > before,
                Sign::Hidden => at.hidden_bytes("out") > 0,
            };
            taken >= kill && has_written && at.checkpoints() == checkpoints
        });
        assert_eq!(watched, Watched::Due, "there are rows left to write");
        process.kill();
    }
    at.finish();
    let wanted: Bag = (1..=ROWS).map(|n| (n.to_string(), 1)).collect();
    let found = at.lines("out");
    (surplus(&wanted, &found), surplus(&found, &wanted))
}

#[test]
fn exactly_once_loses_nothing_and_doubles_nothing() {
    let (missing, doubled) = run("EXACTLY_ONCE", "", Sign::Hidden);
    assert_eq!((missing, doubled), (vec![], vec![]));
}

#[test]
fn at_least_once_loses_nothing_and_doubles_what_no_checkpoint_knew_of() {
    let sink = ", 'sink.delivery-guarantee' = 'at-least-once'";
    let (missing, doubled) = run("AT_LEAST_ONCE", sink, Sign::Visible);
    assert_eq!(missing, []);
    assert!(!doubled.is_empty());
}

#[test]
fn at_most_once_doubles_nothing_and_loses_what_was_on_its_way() {
    let (missing, doubled) = run("AT_MOST_ONCE", "", Sign::Hidden);
    assert_eq!(doubled, []);
    // Rows had gone out whose position was durable, and the sink had not committed them.
    assert!(!missing.is_empty());
    assert!(!has_lost_the_last(&missing), "the last run was not killed");
}

/// The same kills double rows when the job is at least once.
#[test]
fn at_most_once_doubles_nothing_that_was_seen_before_its_checkpoint() {
    let sink = ", 'sink.delivery-guarantee' = 'at-least-once'";
    let (missing, doubled) = run("AT_MOST_ONCE", sink, Sign::Visible);
    assert_eq!(doubled, []);
    assert!(!has_lost_the_last(&missing), "the last run was not killed");
}

fn has_lost_the_last(missing: &Counted) -> bool {
    missing.iter().any(|(line, _)| *line == ROWS.to_string())
}
