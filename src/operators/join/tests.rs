//! Row sequences of real Flink against the operator. Every check also runs in batches of one row and
//! with a restart at every line.

use super::*;
use crate::operators::testing::{Harness, schema};

/// The rows of two `changelog` tables in the order of their steps.
fn script(left: &str, right: &str) -> String {
    let mut lines = Vec::new();
    for (port, table) in [left, right].into_iter().enumerate() {
        let mut step = 0;
        for line in table.split_terminator('\n').map(str::trim) {
            let mut row = line;
            if let Some((number, rest)) = line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
                step = number.parse().unwrap();
                row = rest;
            }
            if !row.is_empty() {
                lines.push((step, format!("{port}:{row}")));
            }
        }
    }
    lines.sort_by_key(|(step, _)| *step);
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

struct Case {
    left: &'static str,
    right: &'static str,
    keys: (Vec<usize>, Vec<usize>),
    null_safe: bool,
    unique: (UniqueKey, UniqueKey),
}

impl Case {
    fn new(left: &'static str, right: &'static str) -> Self {
        Self {
            left,
            right,
            keys: (vec![0], vec![0]),
            null_safe: false,
            unique: (UniqueKey::None, UniqueKey::None),
        }
    }

    fn spec(&self, join_type: JoinType) -> JoinSpec {
        let input = |text, keys: &Vec<usize>, unique: &UniqueKey| JoinInput {
            schema: schema(text),
            keys: keys.clone(),
            unique_key: unique.clone(),
            updates_in_pairs: true,
            ttl_ms: 0,
        };
        let left = input(self.left, &self.keys.0, &self.unique.0);
        let right = input(self.right, &self.keys.1, &self.unique.1);
        JoinSpec {
            join_type,
            output: match join_type.is_left_only() {
                true => left.schema.clone(),
                false => left.schema.join(&right.schema),
            },
            null_safe: vec![self.null_safe; self.keys.0.len()],
            condition: None,
            mini_batch: None,
            left,
            right,
        }
    }

    fn harness(&self, join_type: JoinType) -> Harness {
        harness(self.spec(join_type))
    }
}

fn harness(spec: JoinSpec) -> Harness {
    let output = spec.output.clone();
    let (left, right) = (spec.left.schema.clone(), spec.right.schema.clone());
    let mut harness = Harness::new("x INT", "x INT", move |context| {
        Join::new(spec.clone(), context)
    });
    harness.inputs = vec![left, right];
    harness.output = output;
    harness
}

const L: &str = "
    @1 +I|1|x
    @3 +I|1|x
    @5 +I|2|y
    @6 +I|\\N|n
    @9 -D|1|x
    @11 -U|2|y
    @11 +U|2|yy
    @14 -D|1|x";
const R: &str = "
    @2 +I|1|p
    @4 +I|1|q
    @7 +I|3|z
    @8 +I|\\N|m
    @10 -D|1|q
    @12 -U|1|p
    @12 +U|1|pp
    @13 -D|1|pp
    @15 +I|2|w
    @16 +I|2|w
    @17 -D|2|w
    @18 -D|2|w";

fn updates(join_type: JoinType, expected: &str) {
    Case::new("id INT, a STRING", "rid INT, b STRING")
        .harness(join_type)
        .check(&script(L, R), expected);
}

#[test]
fn an_inner_join_passes_the_kinds_on() {
    updates(
        JoinType::Inner,
        "+I[1, x, 1, p]
        +I[1, x, 1, p]
        +I[1, x, 1, q]
        +I[1, x, 1, q]
        -D[1, x, 1, q]
        -D[1, x, 1, p]
        -D[1, x, 1, q]
        -U[1, x, 1, p]
        +U[1, x, 1, pp]
        -D[1, x, 1, pp]
        +I[2, yy, 2, w]
        +I[2, yy, 2, w]
        -D[2, yy, 2, w]
        -D[2, yy, 2, w]",
    );
}

#[test]
fn a_left_join_pads_rows_without_a_match() {
    updates(
        JoinType::Left,
        "+I[1, x, null, null]
        -D[1, x, null, null]
        +I[1, x, 1, p]
        +I[1, x, 1, p]
        +I[1, x, 1, q]
        +I[1, x, 1, q]
        +I[2, y, null, null]
        +I[null, n, null, null]
        -D[1, x, 1, q]
        -D[1, x, 1, p]
        -D[1, x, 1, q]
        -D[2, y, null, null]
        +I[2, yy, null, null]
        -U[1, x, 1, p]
        +I[1, x, null, null]
        -D[1, x, null, null]
        +I[1, x, 1, pp]
        -D[1, x, 1, pp]
        +I[1, x, null, null]
        -D[1, x, null, null]
        -D[2, yy, null, null]
        +I[2, yy, 2, w]
        +I[2, yy, 2, w]
        -D[2, yy, 2, w]
        -D[2, yy, 2, w]
        +I[2, yy, null, null]",
    );
}

#[test]
fn a_right_join_mirrors_a_left_join() {
    updates(
        JoinType::Right,
        "+I[1, x, 1, p]
        +I[1, x, 1, p]
        +I[1, x, 1, q]
        +I[1, x, 1, q]
        +I[null, null, 3, z]
        +I[null, null, null, m]
        -D[1, x, 1, q]
        -D[1, x, 1, p]
        -D[1, x, 1, q]
        -D[1, x, 1, p]
        +I[1, x, 1, pp]
        -D[1, x, 1, pp]
        +I[2, yy, 2, w]
        +I[2, yy, 2, w]
        -D[2, yy, 2, w]
        -D[2, yy, 2, w]",
    );
}

#[test]
fn a_full_join_pads_both_sides() {
    updates(
        JoinType::Full,
        "+I[1, x, null, null]
        -D[1, x, null, null]
        +I[1, x, 1, p]
        +I[1, x, 1, p]
        +I[1, x, 1, q]
        +I[1, x, 1, q]
        +I[2, y, null, null]
        +I[null, n, null, null]
        +I[null, null, 3, z]
        +I[null, null, null, m]
        -D[1, x, 1, q]
        -D[1, x, 1, p]
        -D[1, x, 1, q]
        -D[2, y, null, null]
        +I[2, yy, null, null]
        -D[1, x, 1, p]
        +I[1, x, null, null]
        -D[1, x, null, null]
        +I[1, x, 1, pp]
        -D[1, x, 1, pp]
        +I[1, x, null, null]
        -D[1, x, null, null]
        -D[2, yy, null, null]
        +I[2, yy, 2, w]
        +I[2, yy, 2, w]
        -D[2, yy, 2, w]
        -D[2, yy, 2, w]
        +I[2, yy, null, null]",
    );
}

#[test]
fn a_semi_join_shows_a_row_from_its_first_to_its_last_match() {
    // The right side is the projection to its key, as the planner makes it.
    let right: String = R
        .lines()
        .filter_map(|line| line.rsplit_once('|'))
        .map(|(row, _)| format!("{row}\n"))
        .collect();
    let case = Case::new("id INT, a STRING", "rid INT");
    case.harness(JoinType::Semi).check(
        &script(L, &right),
        "+I[1, x]
        +I[1, x]
        -D[1, x]
        -U[1, x]
        +U[1, x]
        -D[1, x]
        +I[2, yy]
        -D[2, yy]",
    );
    case.harness(JoinType::Anti).check(
        &script(L, &right),
        "+I[1, x]
        -D[1, x]
        +I[2, y]
        +I[null, n]
        -U[2, y]
        +U[2, yy]
        +I[1, x]
        -D[1, x]
        +I[1, x]
        -D[1, x]
        -D[2, yy]
        +I[2, yy]",
    );
}

#[test]
fn rows_of_one_key_come_in_the_order_of_flinks_heap_state() {
    let mut case = Case::new("a INT", "rid INT");
    case.keys = (vec![], vec![]);
    let rows = script(
        "@1 +I|10
         @2 +I|20
         @3 +I|30
         @8 -D|30",
        "@4 +I|1
         @5 +I|\\N
         @6 -D|\\N
         @7 -D|1
         @9 +I|5",
    );
    case.harness(JoinType::Inner).check(
        &rows,
        "+I[30, 1]
        +I[10, 1]
        +I[20, 1]
        +I[30, null]
        +I[10, null]
        +I[20, null]
        -D[30, null]
        -D[10, null]
        -D[20, null]
        -D[30, 1]
        -D[10, 1]
        -D[20, 1]
        +I[10, 5]
        +I[20, 5]",
    );
}

#[test]
fn null_matches_null_where_the_key_is_null_safe() {
    let mut case = Case::new("plate STRING, lane INT", "plate STRING, who STRING");
    case.null_safe = true;
    let rows = script(
        "@2 +I|AB|1
         @4 +I|\\N|2
         @8 +I|CD|3",
        "@3 +I|\\N|nobody
         @5 +I|AB|ann
         @6 +I|CD|cy
         @7 +I||blank
         @9 +I|AB|ben",
    );
    case.harness(JoinType::Left).check(
        &rows,
        "+I[AB, 1, null, null]
        +I[null, 2, null, nobody]
        -D[AB, 1, null, null]
        +I[AB, 1, AB, ann]
        +I[CD, 3, CD, cy]
        +I[AB, 1, AB, ben]",
    );
}

#[test]
fn an_upsert_replaces_the_row_of_its_unique_key() {
    let mut case = Case::new("id INT, a STRING", "rid INT, b STRING");
    case.unique = (UniqueKey::JoinKey, UniqueKey::JoinKey);
    let rows = script(
        "@1 +I|1|x
         @3 +U|1|x2
         @5 +I|2|y
         @7 +U|1|x2
         @9 -D|1|x2",
        "@2 +I|1|p
         @4 +U|1|q
         @6 +U|2|z
         @8 -D|2|z
         @10 +I|1|pp",
    );
    case.harness(JoinType::Left).check(
        &rows,
        "+I[1, x, null, null]
        -D[1, x, null, null]
        +I[1, x, 1, p]
        +I[1, x2, 1, p]
        +I[1, x2, 1, q]
        +I[2, y, null, null]
        -D[2, y, null, null]
        +I[2, y, 2, z]
        +I[1, x2, 1, q]
        -D[2, y, 2, z]
        +I[2, y, null, null]
        -D[1, x2, 1, q]",
    );
}

#[test]
fn an_upsert_does_not_count_a_match_twice() {
    // The join key is part of the right side's unique key.
    let mut case = Case::new("id INT, a STRING", "rid INT, n INT, b STRING");
    case.unique = (UniqueKey::JoinKey, UniqueKey::Columns(vec![0, 1]));
    case.harness(JoinType::Left).check(
        "0:+I|1|x
        1:+I|1|7|p
        1:+U|1|7|q
        1:+U|1|8|r
        1:-D|1|7|q
        1:-D|1|8|r",
        "+I[1, x, null, null, null]
        -D[1, x, null, null, null]
        +I[1, x, 1, 7, p]
        +I[1, x, 1, 7, q]
        +I[1, x, 1, 8, r]
        -D[1, x, 1, 7, q]
        -D[1, x, 1, 8, r]
        +I[1, x, null, null, null]",
    );
}

#[test]
fn withdrawals_of_unknown_rows_are_dropped() {
    let case = Case::new("id INT, a STRING", "rid INT, b STRING");
    case.harness(JoinType::Full).check(
        "1:+I|1|p
        0:-D|1|x
        0:+I|1|x
        0:-U|1|y
        0:-D|1|x",
        "+I[null, null, 1, p]
        -D[null, null, 1, p]
        +I[1, x, 1, p]
        -D[1, x, 1, p]
        +I[null, null, 1, p]",
    );
}

#[test]
fn a_map_of_rows_of_all_types_grows_as_in_java() {
    let mut case = Case::new("n INT", "x INT");
    case.keys = (vec![], vec![]);
    let mut spec = case.spec(JoinType::Inner);
    spec.left.schema = schema("n INT, s STRING, d DECIMAL(30,3), t BIGINT, f DOUBLE, b BOOLEAN");
    spec.left.schema.columns[3].data_type = crate::types::TypeKind::Timestamp(6).nullable();
    spec.output = spec.left.schema.join(&spec.right.schema);
    let harness = harness(spec);
    let script = "0:+I|1|a|1.5|2024-01-01T00:00:00.123456|1.5|true
        0:+I|2|a long string|\\N|\\N|-0.0|false
        0:+I|3|\\N|-7.25|1969-12-31T23:59:59.999999|\\N|\\N
        0:+I|4|four|12345678901234567890.123|2024-01-01T00:00:00|2|true
        0:+I|5|five|0|2024-01-01T00:00:00|3|true
        0:+I|6|six|0|2024-01-01T00:00:00|3|true
        0:+I|7|seven|0|2024-01-01T00:00:00|3|true
        0:+I|8|eight888|0|2024-01-01T00:00:00|3|true
        0:+I|9|ninety-nine|0|2024-01-01T00:00:00|3|true
        0:+I|10|ten|0|2024-01-01T00:00:00|3|true
        0:+I|11|eleven|0|2024-01-01T00:00:00|3|true
        0:+I|12|twelve|0|2024-01-01T00:00:00|3|true
        1:+I|1
        0:+I|13|thirteen|0|2024-01-01T00:00:00|3|true
        0:-D|5|five|0|2024-01-01T00:00:00|3|true
        0:+I|5|five|0|2024-01-01T00:00:00|3|true
        1:+I|2
        0:-D|1|a|1.5|2024-01-01T00:00:00.123456|1.5|true
        0:-D|2|a long string|\\N|\\N|-0.0|false
        0:+I|14|14|0|2024-01-01T00:00:00|3|true
        1:+I|3";
    let emitted = harness.run(script);
    let short: Vec<String> = emitted
        .lines()
        .map(|line| {
            let (n, _) = line[3..].split_once(',').unwrap();
            let (_, x) = line.trim_end_matches(']').rsplit_once(", ").unwrap();
            format!("{}{n}:{x}", if line.starts_with('+') { "" } else { "-" })
        })
        .collect();
    assert_eq!(
        short.join(" "),
        "3:1 7:1 6:1 1:1 4:1 11:1 12:1 9:1 5:1 2:1 8:1 10:1 \
         13:1 -5:1 5:1 \
         3:2 1:2 9:2 5:2 2:2 8:2 10:2 7:2 6:2 13:2 4:2 11:2 12:2 \
         -1:2 -1:1 -2:2 -2:1 14:2 14:1 \
         3:3 9:3 5:3 8:3 10:3 7:3 6:3 13:3 4:3 11:3 12:3 14:3"
    );
    harness.check(script, &emitted);
}

#[test]
fn rows_of_a_unique_key_come_in_the_order_of_their_keys() {
    let mut case = Case::new("id INT, k INT, v INT", "rk INT, x INT");
    case.keys = (vec![1], vec![0]);
    case.unique.0 = UniqueKey::Columns(vec![0]);
    case.harness(JoinType::Inner).check(
        "0:+I|1|1|10
        0:+I|2|1|20
        0:+I|3|1|30
        0:+I|4|1|40
        0:+I|5|1|50
        0:+I|6|1|60
        1:+I|1|100
        0:-U|2|1|20
        0:+U|2|1|21
        1:+I|1|200",
        "+I[3, 1, 30, 1, 100]
        +I[2, 1, 20, 1, 100]
        +I[5, 1, 50, 1, 100]
        +I[1, 1, 10, 1, 100]
        +I[6, 1, 60, 1, 100]
        +I[4, 1, 40, 1, 100]
        -U[2, 1, 20, 1, 100]
        +U[2, 1, 21, 1, 100]
        +I[3, 1, 30, 1, 200]
        +I[2, 1, 21, 1, 200]
        +I[5, 1, 50, 1, 200]
        +I[1, 1, 10, 1, 200]
        +I[6, 1, 60, 1, 200]
        +I[4, 1, 40, 1, 200]",
    );
}

#[test]
fn a_row_is_forgotten_when_it_was_not_written_for_its_ttl() {
    let mut spec = Case::new("id INT, a STRING", "rid INT, b STRING").spec(JoinType::Left);
    spec.left.ttl_ms = 5000;
    spec.right.ttl_ms = 5000;
    let harness = harness(spec);
    // The match gives the left row a new lease of life; the right row expires.
    harness.check(
        "0:+I|1|x
        @time 3000
        1:+I|1|p
        @time 7000
        1:+I|1|q
        @time 9000
        0:+I|1|y
        1:-D|1|p
        @time 20000
        1:+I|1|r",
        "+I[1, x, null, null]
        -D[1, x, null, null]
        +I[1, x, 1, p]
        +I[1, x, 1, q]
        +I[1, y, 1, q]
        -D[1, y, 1, p]
        +I[1, y, null, null]
        -D[1, x, 1, p]",
    );
}

#[test]
fn expired_rows_are_removed_by_and_by() {
    let mut spec = Case::new("id INT, a STRING", "rid INT, b STRING").spec(JoinType::Inner);
    spec.left.ttl_ms = 5000;
    let clock = std::sync::Arc::new(crate::runtime::clock::ManualClock::new(0));
    let mut context = crate::operators::testing::context();
    context.clock = std::sync::Arc::clone(&clock) as _;
    let left = spec.left.schema.clone();
    let mut join = Join::new(spec, &context).unwrap();
    let mut emitted: Vec<crate::runtime::output::Emitted> = Vec::new();
    let out = &mut Output::new(&mut emitted);
    let rows = crate::operators::testing::batch(&left, &["+I|1|x", "+I|1|y", "+I|2|z"]);
    join.process(0, rows, out).unwrap();
    assert_eq!(join.state_size().rows, 3);
    while let Some(at) = join.next_timer() {
        clock.set(at);
        join.processing_time(at, out).unwrap();
    }
    assert_eq!(join.state_size().rows, 0);
    assert!(join.keys.table.is_empty());
}

#[test]
fn a_bundle_is_folded_before_it_is_joined() {
    let mut spec = Case::new("id INT, a STRING", "rid INT, b STRING").spec(JoinType::Left);
    spec.mini_batch = Some(BundleLimits {
        size: 1000,
        latency_ms: 5000,
    });
    let mut keyed = spec.clone();
    bundled(
        spec,
        "0:+I|1|x
        0:+I|2|y
        0:+I|3|z
        0:-D|3|z
        0:+I|4|w
        @flush
        1:+I|1|p
        1:-U|1|p
        1:+U|1|pp
        1:+I|4|q
        1:+I|5|f
        0:+I|4|ww
        @flush
        1:+I|4|qq
        @time 5000",
        "+I[2, y, null, null]
        +I[1, x, null, null]
        +I[4, w, null, null]
        -D[1, x, null, null]
        +I[1, x, 1, pp]
        -D[4, w, null, null]
        +I[4, w, 4, q]
        +I[4, ww, 4, q]
        +I[4, ww, 4, qq]
        +I[4, w, 4, qq]",
    );
    keyed.left.unique_key = UniqueKey::JoinKey;
    keyed.right.unique_key = UniqueKey::JoinKey;
    bundled(
        keyed,
        "0:+I|1|x
        0:+I|2|y
        0:-U|1|x
        0:+U|1|xx
        @flush
        1:+I|1|p
        1:+I|2|q
        @flush
        0:-D|2|y
        1:-U|1|p
        1:+U|1|pp
        @flush",
        "+I[2, y, null, null]
        +I[1, xx, null, null]
        -D[2, y, null, null]
        +I[2, y, 2, q]
        -D[1, xx, null, null]
        +I[1, xx, 1, p]
        -U[1, xx, 1, p]
        +I[1, xx, 1, pp]
        -D[2, y, 2, q]",
    );
}

/// A barrier ends a bundle, so restarts are not tried.
fn bundled(spec: JoinSpec, script: &str, expected: &str) {
    let tidy = |text: &str| {
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(tidy(&harness(spec).run(script)), tidy(expected));
}

#[test]
fn a_skewed_key_comes_out_in_bounded_batches() {
    let spec = Case::new("id INT, a STRING", "rid INT, b STRING").spec(JoinType::Full);
    let mut context = crate::operators::testing::context();
    context.batch_size = 16;
    let (left, right) = (spec.left.schema.clone(), spec.right.schema.clone());
    let mut join = Join::new(spec, &context).unwrap();
    let mut emitted: Vec<crate::runtime::output::Emitted> = Vec::new();
    let out = &mut Output::new(&mut emitted);
    let many: Vec<String> = (0..100).map(|i| format!("+I|1|{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let rows = crate::operators::testing::batch(&left, &many);
    join.process(0, rows, out).unwrap();
    let rows = crate::operators::testing::batch(&right, &many[..10]);
    join.process(1, rows, out).unwrap();
    let sizes: Vec<usize> = emitted
        .iter()
        .filter_map(|e| match e {
            crate::runtime::output::Emitted::Batch(batch) => Some(batch.len()),
            _ => None,
        })
        .collect();
    // 100 rows of NULLs come and go, and there are 1000 pairs
    assert_eq!(sizes.iter().sum::<usize>(), 1200);
    assert!(sizes.iter().all(|size| *size <= 2 * 16), "{sizes:?}");
}
