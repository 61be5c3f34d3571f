//! Patterns over a few rows, in all the ways in which the harness runs an operator.

use std::sync::Arc;

use datafusion::common::ScalarValue;

use super::*;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::operators::testing::{Harness, random_events, schema};
use crate::plan::logical::SortKey;
use crate::plan::match_recognize::{
    MatchSlot, MatchText, PatternVariable, SkipStrategy, SlotFunction,
};
use crate::types::TypeKind;

const COLUMNS: &str = "k STRING, id INT, v INT, ts TIMESTAMP(3) *ROWTIME*";
const OUTPUT: &str = "k STRING, a INT, b INT, c INT";

fn int(column: usize) -> Expr {
    Expr::column(column, TypeKind::Int.nullable())
}

fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    let kind = ExprKind::Compare { op, left, right };
    Expr::new(kind, TypeKind::Boolean.nullable())
}

fn number(n: i32) -> Expr {
    Expr::literal(ScalarValue::Int32(Some(n)), TypeKind::Int.not_null())
}

/// `A B+ C`, with B over 10 and C less than the last B.
fn spec(skip: SkipStrategy, within_ms: Option<i64>) -> MatchRecognizeSpec {
    let variable = |name: &str, most, row, history| PatternVariable {
        name: name.into(),
        least: 1,
        most,
        greedy: most.is_none(),
        row,
        history,
    };
    let last = |variable, value| MatchSlot {
        variable: Some(variable),
        function: SlotFunction::Last { value, offset: 0 },
        data_type: TypeKind::Int.nullable(),
    };
    let pattern = MatchSpec {
        partition: vec![0],
        order: vec![SortKey {
            column: 3,
            descending: false,
            nulls_first: true,
        }],
        variables: vec![
            variable("A", Some(1), None, None),
            variable(
                "B",
                None,
                Some(compare(CompareOp::Gt, int(2), number(10))),
                None,
            ),
            variable(
                "C",
                Some(1),
                None,
                Some(compare(CompareOp::Lt, int(4), int(3))),
            ),
        ],
        skip,
        within_ms,
        values: vec![Expr::column(0, TypeKind::STRING.nullable()), int(1), int(2)],
        slots: vec![last(0, 1), last(1, 1), last(2, 1), last(1, 2), last(2, 2)],
        measures: vec![int(0), int(1), int(2)],
        text: MatchText::default(),
    };
    MatchRecognizeSpec {
        input: schema(COLUMNS),
        pattern: Arc::new(pattern),
        output: schema(OUTPUT),
    }
}

fn check(skip: SkipStrategy, within_ms: Option<i64>, events: &str, expected: &str) {
    let spec = spec(skip, within_ms);
    let harness = Harness::new(COLUMNS, OUTPUT, move |context| {
        MatchRecognize::new(&spec, context)
    });
    harness.check(events, expected);
}

const EVENTS: &str = "+I|x|1|1|1970-01-01T00:00:01
    +I|y|2|1|1970-01-01T00:00:02
    +I|x|3|12|1970-01-01T00:00:03
    @wm 3000
    +I|x|4|13|1970-01-01T00:00:04
    +I|x|9|1|1970-01-01T00:00:03
    +I|y|5|20|1970-01-01T00:00:07
    +I|x|6|3|1970-01-01T00:00:05
    @wm 6000
    +I|y|7|15|1970-01-01T00:00:08
    @end";

#[test]
fn the_search_goes_on_behind_a_match() {
    let expected = "+I|x|1|4|6\n+I|y|2|5|7";
    check(SkipStrategy::PastLastRow, None, EVENTS, &shown(expected));
}

#[test]
fn the_search_goes_on_with_the_next_row() {
    let expected = "+I|x|1|4|6\n+I|x|3|4|6\n+I|y|2|5|7";
    check(SkipStrategy::ToNextRow, None, EVENTS, &shown(expected));
}

#[test]
fn what_takes_too_long_is_no_match() {
    let expected = "+I|x|3|4|6";
    check(
        SkipStrategy::ToNextRow,
        Some(4000),
        EVENTS,
        &shown(expected),
    );
}

fn shown(rows: &str) -> String {
    let row = |line: &str| {
        let (kind, values) = line.split_once('|').expect("a kind");
        format!("{kind}[{}]", values.replace('|', ", "))
    };
    rows.lines().map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_match_is_lost_by_copies_of_changes() {
    for (skip, within_ms) in [
        (SkipStrategy::PastLastRow, None),
        (SkipStrategy::ToNextRow, Some(2500)),
    ] {
        let spec = spec(skip, within_ms);
        let harness = Harness::new(COLUMNS, OUTPUT, move |context| {
            MatchRecognize::new(&spec, context)
        });
        for seed in 0..3 {
            let mut id = 0;
            let script = random_events(seed, 120, |dice, time| {
                id += 1;
                format!("+I|k{}|{id}|{}|{time}", dice.below(5), dice.below(20))
            });
            harness.check_copies(&script, 12);
        }
    }
}
