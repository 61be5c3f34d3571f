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
