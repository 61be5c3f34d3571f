//! Exactly once, whenever the process dies: a union and a join, an exchange by key between two
//! subtasks, an aggregate, and sinks for appended rows and for a changelog.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Bag, Dice, Watched, Workplace, setting, surplus};

/// Orders in files and from `datagen`, and the customers they join with.
const ORDERS: usize = 6000;
const GENERATED: usize = 3000;
const CUSTOMERS: usize = 40;

struct Scenario {
    /// Format of the sink of appended rows.
    append: &'static str,
    /// Options of that sink.
    options: &'static str,
}

/// `rate`: rows a second of the generated input.
fn script(scenario: &Scenario, at: &Workplace, rate: usize) -> String {
    let root = at.path("");
    let root = root.display();
    let Scenario { append, options } = scenario;
    format!(
        "SET 'parallelism.default' = '2';
SET 'execution.batch-size' = '32';
SET 'execution.checkpointing.interval' = '60 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
CREATE TABLE filed (id BIGINT, customer INT, amount INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/orders', 'format' = 'json');
CREATE TABLE generated (id BIGINT, customer INT, amount INT) WITH (
  'connector' = 'datagen', 'seed' = '7', 'rows-per-second' = '{rate}',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1000000',
  'fields.id.end' = '{last}', 'fields.customer.min' = '0',
  'fields.customer.max' = '{CUSTOMERS}', 'fields.amount.min' = '0', 'fields.amount.max' = '100');
CREATE TABLE customers (customer INT, name STRING, weight INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/customers', 'format' = 'csv');
CREATE TABLE rows_out (id BIGINT, name STRING, amount INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/rows', 'format' = '{append}'{options});
CREATE TABLE changes_out (name STRING, orders BIGINT, weights BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/changes', 'format' = 'debezium-json');
CREATE TABLE totals_out (name STRING, total BIGINT, largest INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/totals', 'format' = 'debezium-json');
CREATE VIEW orders AS SELECT * FROM filed UNION ALL SELECT * FROM generated;
CREATE VIEW joined AS SELECT o.id, c.name, o.amount, c.weight
  FROM orders o JOIN customers c ON o.customer = c.customer;
EXECUTE STATEMENT SET BEGIN
INSERT INTO rows_out SELECT id, name, amount FROM joined;
INSERT INTO changes_out SELECT name, COUNT(*), SUM(weight) FROM joined GROUP BY name;
INSERT INTO totals_out SELECT name, SUM(amount), MAX(amount) FROM joined GROUP BY name;
END;
",
        last = 1_000_000 + GENERATED - 1,
    )
}

fn workplace(scenario: &Scenario, rate: usize) -> Workplace {
    let at = Workplace::new();
    let mut dice = Dice::new(11);
    for file in 0..4 {
        let mut text = String::new();
        for i in 0..ORDERS / 4 {
            let id = file * (ORDERS / 4) + i;
            let (customer, amount) = (dice.below(CUSTOMERS as u64 + 3), dice.below(1000));
            writeln!(
                text,
                "{{\"id\":{id},\"customer\":{customer},\"amount\":{amount}}}"
            )
            .expect("to memory");
        }
        at.write(&format!("orders/{file}.json"), &text);
    }
    let mut text = String::new();
    for i in 0..CUSTOMERS {
        writeln!(text, "{i},name {},{}", i / 2, i / 2 + 1).expect("to memory");
    }
    at.write("customers/all.csv", &text);
    at.write("script.sql", &script(scenario, &at, rate));
    at
}

/// The table that a changelog of debezium-json lines makes.
fn folded(changes: &Bag) -> Bag {
    let mut table = Bag::new();
    for (line, n) in changes {
        let change: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for (key, sign) in [("before", -1), ("after", 1)] {
            if !change[key].is_null() {
                *table.entry(change[key].to_string()).or_default() += sign * n;
            }
        }
    }
    table.retain(|_, n| *n != 0);
    table
}

/// When to kill: so long after the start, or after so many checkpoints and a bit.
enum Moment {
    AfterStart(Duration),
    AfterCheckpoints(u64, Duration),
}

impl Moment {
    fn throw(dice: &mut Dice) -> Self {
        if dice.below(4) == 0 {
            return Self::AfterStart(Duration::from_millis(dice.below(400)));
        }
        let micros = dice.below(120_000);
        Self::AfterCheckpoints(dice.below(4), Duration::from_micros(micros))
    }
}

/// Runs the script, killing it, until it has finished. Answers how often it was killed.
fn run(at: &Workplace, dice: &mut Dice, mut check: impl FnMut(&Workplace)) -> u64 {
    let mut kills = 0;
    loop {
        let mut process = at.start();
        let start = Instant::now();
        let mut seen = at.checkpoints();
        let mut taken = 0;
        let moment = Moment::throw(dice);
        let watched = process.watch(|| match moment {
            Moment::AfterStart(after) => start.elapsed() >= after,
            Moment::AfterCheckpoints(wanted, after) => {
                let now = at.checkpoints();
                if now != seen {
                    seen = now;
                    taken += 1;
                }
                if taken > wanted {
                    thread::sleep(after);
                }
                taken > wanted
            }
        });
        if watched == Watched::Finished {
            return kills;
        }
        process.kill();
        kills += 1;
        check(at);
        // It had come to its end already, and would start afresh.
        if has_finished(at) {
            return kills;
        }
    }
}

/// Whether the job has left word that it is finished.
fn has_finished(at: &Workplace) -> bool {
    let names = at.checkpoint_files();
    let is_marked = names.iter().any(|n| n.ends_with("finished"));
    is_marked || at.checkpoints().is_empty() && !at.lines("changes").is_empty()
}

fn survives(scenario: &Scenario, default_kills: u64) {
    let expected = workplace(scenario, 1_000_000);
    expected.finish();
    let wanted = |folder: &str| expected.lines(folder);
    let (rows, changes) = (wanted("rows"), wanted("changes"));
    let totals = folded(&wanted("totals"));
    assert!(rows.len() > ORDERS && totals.len() == CUSTOMERS / 2);

    let seed = setting("EBBFLOW_SEED", 1);
    let mut kills = 0;
    for round in 0.. {
        if kills >= setting("EBBFLOW_KILLS", default_kills) {
            break;
        }
        let at = workplace(scenario, 700);
        let mut dice = Dice::new(seed.wrapping_mul(1000) + round);
        let place = || format!("seed {seed}, round {round}\n{}", at.log());
        // What is visible stays as it is, and is part of the result.
        let mut before = at.visible("rows");
        let killed = run(&at, &mut dice, |at| {
            let now = at.visible("rows");
            for (name, bytes) in &before {
                assert!(now.get(name) == Some(bytes), "{name} has changed");
            }
            before = now;
            assert_eq!(surplus(&at.lines("rows"), &rows), [], "{}", place());
            assert_eq!(surplus(&at.lines("changes"), &changes), [], "{}", place());
        });
        kills += killed;
        assert!(at.lines("rows") == rows, "rows are lost, {}", place());
        assert!(
            at.lines("changes") == changes,
            "changes are lost, {}",
            place()
        );
        assert_eq!(folded(&at.lines("totals")), totals, "{}", place());
        for folder in ["rows", "changes", "totals"] {
            assert_eq!(at.hidden(folder), [""; 0], "leftovers, {}", place());
        }
    }
}

#[test]
fn killed_before_the_first_checkpoint_nothing_is_left_behind() {
    let scenario = Scenario {
        append: "json",
        options: "",
    };
    let at = workplace(&scenario, 700);
    // No checkpoint comes by itself.
    let script = std::fs::read_to_string(at.path("script.sql")).expect("a script");
    at.write("script.sql", &script.replace("'60 ms'", "'1 h'"));
    let mut before = Vec::new();
    for _ in 0..3 {
        let mut process = at.start();
        let watched = process.watch(|| {
            let now = at.hidden("rows");
            !now.is_empty() && now.iter().all(|name| !before.contains(name))
        });
        assert_eq!(watched, Watched::Due, "leftovers: {before:?}");
        process.kill();
        assert!(at.checkpoints().is_empty());
        before = at.hidden("rows");
    }
}

#[test]
fn killed_at_any_moment_json_and_a_changelog_come_out_exactly_once() {
    let scenario = Scenario {
        append: "json",
        options: "",
    };
    survives(&scenario, 7);
}

#[test]
fn killed_at_any_moment_parts_that_roll_come_out_exactly_once() {
    let scenario = Scenario {
        append: "csv",
        options: ", 'sink.rolling-policy.file-size' = '4 kb'",
    };
    survives(&scenario, 7);
}

#[test]
fn killed_at_any_moment_compacted_parquet_comes_out_exactly_once() {
    let scenario = Scenario {
        append: "parquet",
        options: ", 'auto-compaction' = 'true'",
    };
    survives(&scenario, 6);
}
