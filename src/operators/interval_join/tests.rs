//! Row sequences of real Flink against the operator. Every check also runs in batches of one row and
//! with a restart at every line.

use proptest::prelude::*;

use super::*;
use crate::operators::testing::{Harness, random_events, schema};

/// The rows of two tables in the order of their steps, with the watermark of both after each row:
/// the last column, `HH:MM:SS` on the first of January 2024, less `delay` seconds.
pub(in crate::operators) fn script(left: &str, right: &str, delay: i64) -> String {
    let mut lines = Vec::new();
    for (port, table) in [left, right].into_iter().enumerate() {
        for line in table.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let (step, row) = line.trim_start_matches('@').split_once(' ').unwrap();
            lines.push((step.parse::<u32>().unwrap(), port, row));
        }
    }
    lines.sort_by_key(|(step, ..)| *step);
    let mut text = String::new();
    let mut watermarks = [i64::MIN; 2];
    let mut last = i64::MIN;
    for (_, port, row) in lines {
        let (front, time) = row.rsplit_once('|').unwrap();
        text.push_str(&format!("{port}:{front}|2024-01-01T{time}\n"));
        let seconds = time
            .split(':')
            .fold(0_i64, |s, part| s * 60 + part.parse::<i64>().unwrap());
        let watermark = 1_704_067_200_000 + (seconds - delay) * 1000;
        watermarks[port] = watermarks[port].max(watermark);
        let both = watermarks[0].min(watermarks[1]);
        if both > last {
            last = both;
            text.push_str(&format!("@wm {both}\n"));
        }
    }
    text + "@end\n"
}

fn spec(join_type: JoinType, lower: i64, upper: i64) -> IntervalJoinSpec {
    let input = |text| IntervalJoinInput {
        schema: schema(text),
        keys: vec![0],
        time: 1,
    };
    let left = input("id INT, ots TIMESTAMP(3)");
    let right = input("sid INT, sts TIMESTAMP(3)");
    IntervalJoinSpec {
        join_type,
        null_safe: vec![false],
        event_time: true,
        lower,
        upper,
        min_cleanup_ms: 0,
        condition: None,
        output: left.schema.join(&right.schema),
        left,
        right,
    }
}

fn harness(spec: IntervalJoinSpec) -> Harness {
    let (output, left) = (spec.output.clone(), spec.left.schema.clone());
    let right = spec.right.schema.clone();
    let mut harness = Harness::new("x INT", "x INT", move |context| {
        IntervalJoin::new(spec.clone(), context)
    });
    harness.inputs = vec![left, right];
    harness.output = output;
    harness
}

const ORDERS: &str = "
    @1 +I|1|00:00:01
    @3 +I|2|00:00:05
    @5 +I|3|00:00:12
    @8 +I|1|00:00:02
    @9 +I|4|00:00:30";
const SHIPMENTS: &str = "
    @2 +I|1|00:00:03
    @4 +I|2|00:00:20
    @6 +I|3|00:00:13
    @7 +I|1|00:00:04
    @10 +I|9|00:00:31
    @11 +I|1|00:00:02";

/// `sts BETWEEN ots AND ots + INTERVAL '5' SECOND`.
fn within_five_seconds(join_type: JoinType, expected: &str) {
    let script = script(ORDERS, SHIPMENTS, 1);
    harness(spec(join_type, -5000, 0)).check(&script, expected);
}

#[test]
fn rows_meet_within_the_bounds() {
    within_five_seconds(
        JoinType::Inner,
        "+I[1, 2024-01-01T00:00:01, 1, 2024-01-01T00:00:03]
        +I[3, 2024-01-01T00:00:12, 3, 2024-01-01T00:00:13]",
    );
}

#[test]
fn an_unmatched_row_comes_out_when_nothing_can_match_it_any_more() {
    within_five_seconds(
        JoinType::Left,
        "+I[1, 2024-01-01T00:00:01, 1, 2024-01-01T00:00:03]
        +I[2, 2024-01-01T00:00:05, null, null]
        +I[3, 2024-01-01T00:00:12, 3, 2024-01-01T00:00:13]
        +I[1, 2024-01-01T00:00:02, null, null]
        +I[4, 2024-01-01T00:00:30, null, null]",
    );
    within_five_seconds(
        JoinType::Full,
        "+I[1, 2024-01-01T00:00:01, 1, 2024-01-01T00:00:03]
        +I[2, 2024-01-01T00:00:05, null, null]
        +I[3, 2024-01-01T00:00:12, 3, 2024-01-01T00:00:13]
        +I[null, null, 1, 2024-01-01T00:00:04]
        +I[1, 2024-01-01T00:00:02, null, null]
        +I[null, null, 2, 2024-01-01T00:00:20]
        +I[null, null, 1, 2024-01-01T00:00:02]
        +I[null, null, 9, 2024-01-01T00:00:31]
        +I[4, 2024-01-01T00:00:30, null, null]",
    );
}

/// `sts BETWEEN ots AND ots + INTERVAL '10' SECOND`.
#[test]
fn rows_of_one_key_come_in_the_order_of_flinks_heap_state() {
    let mut spec = spec(JoinType::Inner, -10_000, 0);
    spec.left.schema = schema("id INT, ots TIMESTAMP(3), n INT");
    spec.right.schema = schema("sid INT, sts TIMESTAMP(3), m INT");
    spec.output = spec.left.schema.join(&spec.right.schema);
    let harness = harness(spec);
    let script = "0:+I|1|2024-01-01T00:00:01|1
        0:+I|1|2024-01-01T00:00:02|2
        0:+I|1|2024-01-01T00:00:03|3
        0:+I|1|2024-01-01T00:00:01|4
        0:+I|1|2024-01-01T00:00:04|5
        0:+I|1|2024-01-01T00:00:05|6
        0:+I|1|2024-01-01T00:00:05.500|7
        0:+I|1|2024-01-01T00:00:05.700|8
        1:+I|1|2024-01-01T00:00:06|1
        1:+I|1|2024-01-01T00:00:02|2";
    let emitted = harness.run(script);
    let numbers: Vec<String> = emitted
        .lines()
        .map(|line| {
            let parts: Vec<&str> = line.split(", ").collect();
            format!("{}-{}", parts[2], parts[5].trim_end_matches(']'))
        })
        .collect();
    assert_eq!(
        numbers.join(" "),
        "7-1 1-1 4-1 3-1 6-1 8-1 2-1 5-1 1-2 4-2 2-2"
    );
    harness.check(script, &emitted);
}

#[test]
fn bounds_that_nothing_fulfils_pad_at_once() {
    harness(spec(JoinType::Left, 5000, -5000)).check(
        "0:+I|1|2024-01-01T00:00:01
        1:+I|1|2024-01-01T00:00:01
        @end",
        "+I[1, 2024-01-01T00:00:01, null, null]",
    );
}

#[test]
fn null_keys_match_nothing_but_come_out_padded() {
    harness(spec(JoinType::Full, -5000, 5000)).check(
        "0:+I|\\N|2024-01-01T00:00:01
        1:+I|\\N|2024-01-01T00:00:01
        @end",
        "+I[null, 2024-01-01T00:00:01, null, null]
        +I[null, null, null, 2024-01-01T00:00:01]",
    );
}

#[test]
fn the_watermark_is_held_back_by_the_farther_bound() {
    let mut harness = harness(spec(JoinType::Inner, -2000, 3000));
    harness.show_watermarks = true;
    harness.check("@wm 10000\n@wm 12000\n@end", "wm 7000\nwm 9000\nwm MAX");
}

#[test]
fn processing_time_is_the_time_of_arrival() {
    let mut spec = spec(JoinType::Left, -2000, 0);
    spec.event_time = false;
    harness(spec).check(
        "@time 10000
        0:+I|1|2024-01-01T00:00:01
        0:+I|2|2024-01-01T00:00:01
        @time 12000
        1:+I|1|2024-01-01T00:00:09
        @time 12001
        1:+I|2|2024-01-01T00:00:09",
        "+I[1, 2024-01-01T00:00:01, 1, 2024-01-01T00:00:09]
        +I[2, 2024-01-01T00:00:01, null, null]",
    );
}

#[test]
fn state_shrinks_with_the_watermark() {
    let context = crate::operators::testing::context();
    let mut join = IntervalJoin::new(spec(JoinType::Inner, -5000, 0), &context).unwrap();
    let mut emitted: Vec<crate::runtime::output::Emitted> = Vec::new();
    for second in 0..600_i64 {
        for port in [0, 1] {
            let line = format!(
                "+I|{second}|1970-01-01T00:{:02}:{:02}",
                second / 60,
                second % 60
            );
            let rows = crate::operators::testing::batch(&join.input(port).schema.clone(), &[&line]);
            join.process(port, rows, &mut Output::new(&mut emitted))
                .unwrap();
        }
        join.watermark(second * 1000, &mut Output::new(&mut emitted))
            .unwrap();
    }
    assert!(join.state_size().rows < 20, "{:?}", join.state_size());
    assert!(join.keys.table.len() < 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rows in any order between watermarks, none late: the result is the join of all rows.
    #[test]
    fn random_rows_give_the_join_of_all(
        rows in prop::collection::vec((0..2_usize, 0..3_u8, 0..9_i64, any::<bool>()), 1..40),
        lower in -6_i64..3,
        span in 0..6_i64,
    ) {
        let upper = lower + span;
        let mut script = String::new();
        let mut all: [Vec<(u8, i64)>; 2] = Default::default();
        let mut base = 10;
        for (port, key, offset, advance) in rows {
            let time = base + offset;
            all[port].push((key, time));
            let key_text = if key == 0 { "\\N".to_string() } else { key.to_string() };
            script += &format!("{port}:+I|{key_text}|1970-01-01T00:{:02}:{:02}\n", time / 60, time % 60);
            if advance {
                script += &format!("@wm {}\n", base * 1000 + 500);
                base += 1;
            }
        }
        script += "@end";
        for join_type in [JoinType::Inner, JoinType::Left, JoinType::Right, JoinType::Full] {
            let harness = harness(spec(join_type, lower * 1000, upper * 1000));
            let emitted = harness.run(&script);
            harness.check(&script, &emitted);
            let mut emitted: Vec<_> = emitted.lines().map(str::to_string).collect();
            emitted.sort();
            prop_assert_eq!(emitted, naive(join_type, &all, lower, upper));
        }
    }
}

fn naive(
    join_type: JoinType,
    [left, right]: &[Vec<(u8, i64)>; 2],
    lower: i64,
    upper: i64,
) -> Vec<String> {
    let text = |row: Option<&(u8, i64)>| match row {
        None => "null, null".to_string(),
        Some((key, time)) => {
            let key = if *key == 0 {
                "null".to_string()
            } else {
                key.to_string()
            };
            let seconds = if time % 60 == 0 {
                String::new()
            } else {
                format!(":{:02}", time % 60)
            };
            format!("{key}, 1970-01-01T00:{:02}{seconds}", time / 60)
        }
    };
    let matches = |l: &(u8, i64), r: &(u8, i64)| {
        l.0 != 0 && l.0 == r.0 && (lower..=upper).contains(&(l.1 - r.1))
    };
    let mut lines = Vec::new();
    for l in left {
        for r in right.iter().filter(|r| matches(l, r)) {
            lines.push(format!("+I[{}, {}]", text(Some(l)), text(Some(r))));
        }
        if join_type.is_left_outer() && !right.iter().any(|r| matches(l, r)) {
            lines.push(format!("+I[{}, {}]", text(Some(l)), text(None)));
        }
    }
    for r in right {
        if join_type.is_right_outer() && !left.iter().any(|l| matches(l, r)) {
            lines.push(format!("+I[{}, {}]", text(None), text(Some(r))));
        }
    }
    lines.sort();
    lines
}

#[test]
fn no_row_is_lost_by_copies_of_changes() {
    for (seed, join_type) in (0..).zip([JoinType::Inner, JoinType::Left, JoinType::Full]) {
        let script = random_events(seed, 150, |dice, time| {
            format!("{}:+I|{}|{time}", dice.below(2), dice.below(8))
        });
        harness(spec(join_type, -1500, 700)).check_copies(&script, 12);
        let mut slow = spec(join_type, -1500, 700);
        slow.min_cleanup_ms = 900;
        harness(slow).check_copies(&script, 12);
    }
}
