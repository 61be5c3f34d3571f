//! Row sequences of real Flink against the operator. Every check also runs in batches of one row and
//! with a restart at every line.

use super::*;
use crate::operators::testing::{Harness, random_events, schema};

fn spec(join_type: JoinType) -> WindowJoinSpec {
    let input = |text| WindowJoinInput {
        schema: schema(text),
        keys: vec![1],
        window_end: 2,
    };
    let left = input("id INT, k STRING, w TIMESTAMP(3)");
    let right = input("rid INT, rk STRING, rw TIMESTAMP(3)");
    WindowJoinSpec {
        join_type,
        null_safe: vec![false],
        zone: None,
        condition: None,
        output: match join_type.is_left_only() {
            true => left.schema.clone(),
            false => left.schema.join(&right.schema),
        },
        left,
        right,
    }
}

fn harness(spec: WindowJoinSpec, condition: bool) -> Harness {
    let (output, left) = (spec.output.clone(), spec.left.schema.clone());
    let right = spec.right.schema.clone();
    let mut harness = Harness::new("x INT", "x INT", move |context| {
        let mut join = WindowJoin::new(spec.clone(), context)?;
        join.condition = condition.then(|| JoinCondition::on_ints(0, 0, |id, _| id > 1));
        Ok(join)
    });
    harness.inputs = vec![left, right];
    harness.output = output;
    harness
}

/// The rows of `time/window-join-inner-and-outer` with the ends of their windows; watermarks in
/// between close the first.
const SCRIPT: &str = "0:+I|1|a|1970-01-01T00:00:10
    0:+I|2|b|1970-01-01T00:00:10
    1:+I|11|a|1970-01-01T00:00:10
    1:+I|12|\\N|1970-01-01T00:00:10
    0:+I|3|\\N|1970-01-01T00:00:10
    0:+I|4|a|1970-01-01T00:00:10
    0:+I|5|a|1970-01-01T00:00:20
    1:+I|13|z|1970-01-01T00:00:10
    @wm 9998
    1:+I|14|a|1970-01-01T00:00:30
    @wm 9999
    1:+I|99|a|1970-01-01T00:00:10
    0:+I|6|c|1970-01-01T00:00:40
    1:+I|15|c|1970-01-01T00:00:40
    @end";

/// Runs and keeps the ids.
fn check(join_type: JoinType, condition: bool, expected: &str) {
    let harness = harness(spec(join_type), condition);
    let emitted = harness.run(SCRIPT);
    let short: Vec<String> = emitted
        .lines()
        .map(|line| {
            let columns = line.trim_start_matches("+I[").trim_end_matches(']');
            let columns: Vec<&str> = columns.split(", ").collect();
            match join_type.is_left_only() {
                true => columns[0].to_string(),
                false => format!("{}-{}", columns[0], columns[3]),
            }
        })
        .collect();
    assert_eq!(short.join(" "), expected, "{join_type:?}");
    harness.check(SCRIPT, &emitted);
}

#[test]
fn windows_are_joined_when_the_watermark_closes_them() {
    check(JoinType::Inner, false, "1-11 4-11 6-15");
    check(JoinType::Left, false, "1-11 4-11 2-null 3-null 5-null 6-15");
    check(
        JoinType::Right,
        false,
        "1-11 4-11 null-12 null-13 null-14 6-15",
    );
    check(
        JoinType::Full,
        false,
        "1-11 4-11 2-null 3-null null-12 null-13 5-null null-14 6-15",
    );
    check(JoinType::Semi, false, "1 4 6");
    check(JoinType::Anti, false, "2 3 5");
}

#[test]
fn a_condition_pads_rows_that_have_no_pair_left() {
    check(
        JoinType::Full,
        true,
        "1-null 4-11 2-null 3-null null-12 null-13 5-null null-14 6-15",
    );
    check(JoinType::Anti, true, "1 2 3 5");
}

#[test]
fn late_rows_are_counted_and_state_is_freed() {
    let context = crate::operators::testing::context();
    let mut join = WindowJoin::new(spec(JoinType::Full), &context).unwrap();
    let mut emitted: Vec<crate::runtime::output::Emitted> = Vec::new();
    let out = &mut Output::new(&mut emitted);
    let rows = |port: usize, line: &str| {
        crate::operators::testing::batch(&join.input(port).schema.clone(), &[line])
    };
    let (left, right) = (
        rows(0, "+I|1|a|1970-01-01T00:00:10"),
        rows(1, "+I|1|a|1970-01-01T00:00:10"),
    );
    join.process(0, left.clone(), out).unwrap();
    join.process(1, right, out).unwrap();
    assert_eq!(join.state_size().rows, 2);
    join.watermark(9999, out).unwrap();
    join.process(0, left, out).unwrap();
    assert_eq!(join.state_size().rows, 0);
    assert_eq!(join.keys.table.len(), 0);
    assert_eq!(context.metrics.late_records_dropped.get(), 1);
}

#[test]
fn more_rows_than_fit_a_batch_of_pairs_are_joined_in_parts() {
    let context = crate::operators::testing::context();
    let mut join = WindowJoin::new(spec(JoinType::Full), &context).unwrap();
    join.condition = Some(JoinCondition::on_ints(0, 0, |l, r| l == r));
    let mut emitted: Vec<crate::runtime::output::Emitted> = Vec::new();
    let out = &mut Output::new(&mut emitted);
    for (port, n) in [(0, 3), (1, 10_000)] {
        let lines: Vec<String> = (0..n)
            .map(|i| format!("+I|{}|a|1970-01-01T00:00:10", i * 4000))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let rows = crate::operators::testing::batch(&join.input(port).schema.clone(), &lines);
        join.process(port, rows, out).unwrap();
    }
    join.watermark(i64::MAX, out).unwrap();
    let rows: usize = emitted
        .iter()
        .map(|message| match message {
            crate::runtime::output::Emitted::Batch(batch) => batch.len(),
            _ => 0,
        })
        .sum();
    // Every left row has its match, all other right rows are padded.
    assert_eq!(rows, 10_000);
}

#[test]
fn no_row_is_lost_by_copies_of_changes() {
    for (seed, join_type) in (0..).zip([JoinType::Inner, JoinType::Full, JoinType::Anti]) {
        let script = random_events(seed, 150, |dice, time| {
            let port = dice.below(2);
            let key = dice.below(25);
            // The end of the window of ten seconds.
            let (front, seconds) = time.split_at("1970-01-01T00:00:".len());
            let tens: u32 = seconds[..1].parse().unwrap();
            let end = match tens {
                5 => format!("{front}59"),
                _ => format!("{front}{}0", tens + 1),
            };
            format!("{port}:+I|{}|k{key}|{end}", dice.below(100))
        });
        harness(spec(join_type), false).check_copies(&script, 12);
    }
}
