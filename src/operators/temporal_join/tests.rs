//! Row sequences of real Flink against the operator. Every check also runs in batches of one row and
//! with a restart at every line.

use super::*;
use crate::operators::interval_join::tests::script;
use crate::operators::testing::{Harness, random_events, schema};

fn spec(join_type: JoinType) -> TemporalJoinSpec {
    let input = |text, key, time| TemporalJoinInput {
        schema: schema(text),
        keys: vec![key],
        time,
    };
    let left = input("oid INT, cur STRING, ts TIMESTAMP(3)", 1, 2);
    let right = input("rcur STRING, rate INT, rts TIMESTAMP(3)", 0, 2);
    TemporalJoinSpec {
        join_type,
        null_safe: vec![false],
        condition: None,
        ttl_ms: 0,
        output: left.schema.join(&right.schema),
        left,
        right,
    }
}

fn harness(spec: TemporalJoinSpec) -> Harness {
    let (output, left) = (spec.output.clone(), spec.left.schema.clone());
    let right = spec.right.schema.clone();
    let mut harness = Harness::new("x INT", "x INT", move |context| {
        TemporalJoin::new(spec.clone(), context)
    });
    harness.inputs = vec![left, right];
    harness.output = output;
    harness
}

/// Runs and keeps the id and the rate of each result.
fn check(join_type: JoinType, left: &str, right: &str, expected: &str) {
    let script = script(left, right, 0);
    let harness = harness(spec(join_type));
    let emitted = harness.run(&script);
    let short: Vec<String> = emitted
        .lines()
        .map(|line| {
            let parts: Vec<&str> = line.split(", ").collect();
            format!("{}, {}]", parts[0], parts[4])
        })
        .collect();
    assert_eq!(short.join(" "), expected);
    harness.check(&script, &emitted);
}

const ORDERS: &str = "
    @1 +I|1|EUR|00:00:02
    @2 +I|2|USD|00:00:03
    @5 +I|3|EUR|00:00:06
    @6 +I|4|EUR|00:00:04
    @9 +I|5|EUR|00:00:12
    @10 +I|6|USD|00:00:15
    @12 +I|7|EUR|00:00:25";
const RATES: &str = "
    @1 +I|EUR|100|00:00:01
    @3 +U|EUR|101|00:00:05
    @4 +I|USD|50|00:00:07
    @7 +U|EUR|102|00:00:06
    @8 -D|EUR|102|00:00:10
    @11 +I|EUR|200|00:00:20";

#[test]
fn a_row_meets_the_version_of_its_time() {
    check(
        JoinType::Inner,
        ORDERS,
        RATES,
        "+I[1, 100] +I[3, 101] +I[6, 50] +I[7, 200]",
    );
    check(
        JoinType::Left,
        ORDERS,
        RATES,
        "+I[1, 100] +I[2, null] +I[3, 101] +I[4, null] +I[5, null] +I[6, 50] +I[7, 200]",
    );
}

/// The planner drops `-U` from the right side.
#[test]
fn versions_are_ordered_by_their_time_and_a_withdrawal_ends_one() {
    check(
        JoinType::Left,
        "@6 +I|1|EUR|10:00:06
        @12 +I|2|EUR|10:00:14
        @15 +I|3|EUR|10:00:11
        @21 +I|4|EUR|10:00:22
        @27 +I|5|EUR|10:00:13
        @30 +I|6|EUR|10:00:40",
        "@3 +I|EUR|100|10:00:05
        @9 +U|EUR|120|10:00:12
        @18 +U|EUR|130|10:00:20
        @24 -D|EUR|130|10:00:35",
        "+I[1, 100] +I[2, 120] +I[3, 100] +I[4, 130] +I[5, null] +I[6, null]",
    );
}

#[test]
fn kinds_of_the_left_side_pass_and_null_keys_match_nothing() {
    harness(spec(JoinType::Left)).check(
        "1:+I|EUR|1|2024-01-01T00:00:01
        1:+I|\\N|9|2024-01-01T00:00:01
        0:+I|1|EUR|2024-01-01T00:00:02
        0:-U|1|EUR|2024-01-01T00:00:02
        0:+U|2|EUR|2024-01-01T00:00:02
        0:+I|3|\\N|2024-01-01T00:00:02
        0:-D|2|EUR|2024-01-01T00:00:03
        @end",
        "+I[1, EUR, 2024-01-01T00:00:02, EUR, 1, 2024-01-01T00:00:01]
        -U[1, EUR, 2024-01-01T00:00:02, EUR, 1, 2024-01-01T00:00:01]
        +U[2, EUR, 2024-01-01T00:00:02, EUR, 1, 2024-01-01T00:00:01]
        -D[2, EUR, 2024-01-01T00:00:03, EUR, 1, 2024-01-01T00:00:01]
        +I[3, null, 2024-01-01T00:00:02, null, null, null]",
    );
}

#[test]
fn a_key_that_gets_no_row_for_its_ttl_is_forgotten() {
    let mut spec = spec(JoinType::Left);
    spec.ttl_ms = 1000;
    harness(spec).check(
        "1:+I|EUR|1|1970-01-01T00:00:01
        @time 900
        1:+I|USD|2|1970-01-01T00:00:01
        @time 1600
        0:+I|1|EUR|1970-01-01T00:00:02
        0:+I|2|USD|1970-01-01T00:00:02
        @end",
        "+I[2, USD, 1970-01-01T00:00:02, USD, 2, 1970-01-01T00:00:01]
        +I[1, EUR, 1970-01-01T00:00:02, null, null, null]",
    );
}

#[test]
fn no_row_is_lost_by_copies_of_changes() {
    for (seed, join_type) in (0..).zip([JoinType::Inner, JoinType::Left]) {
        let script = random_events(seed, 150, |dice, time| {
            let (key, value) = (dice.below(6), dice.below(100));
            match dice.below(5) {
                0 => format!("1:-D|c{key}|{value}|{time}"),
                1 | 2 => format!("1:+I|c{key}|{value}|{time}"),
                _ => format!("0:+I|{value}|c{key}|{time}"),
            }
        });
        harness(spec(join_type)).check_copies(&script, 12);
    }
}
