use super::*;
use crate::functions::Arg;
use crate::operators::testing::{Harness, random_events, schema};

/// A call `SUM(v)`, `ROW_NUMBER` or `LAG(v, 2)`.
fn call(input: &Schema, text: &str) -> OverCall {
    let (name, args) = text.split_once('(').unwrap_or((text, ""));
    let args: Vec<&str> = args.trim_end_matches(')').split(", ").collect();
    let column = input.index_of(args[0]);
    match (name, column) {
        ("ROW_NUMBER", _) => OverCall::RowNumber,
        ("LAG", Some(column)) => OverCall::Lag {
            column,
            offset: args[1].parse().unwrap(),
            default: args.get(2).map_or(ScalarValue::Int32(None), |d| {
                ScalarValue::Int32(d.parse().ok())
            }),
        },
        _ => {
            let args: Vec<Arg> = column
                .iter()
                .map(|c| Arg {
                    data_type: input.columns[*c].data_type.clone(),
                    literal: None,
                })
                .collect();
            let context = CallContext {
                grouped: true,
                filtered: false,
                distinct: false,
            };
            OverCall::Aggregate(AggregateCall {
                function: resolve(name, &args, context).unwrap(),
                args: column.into_iter().collect(),
                filter: None,
                distinct: false,
            })
        }
    }
}

fn harness(
    columns: &str,
    partition_by: Vec<usize>,
    order_by: OverOrder,
    frame: OverFrame,
    calls: &[&str],
    results: &str,
) -> Harness {
    let input = schema(columns);
    let output = format!("{columns}, {results}");
    let spec = OverAggregateSpec {
        calls: calls.iter().map(|c| call(&input, c)).collect(),
        input,
        partition_by,
        order_by,
        frame,
        ttl_ms: None,
        output: schema(&output),
    };
    Harness::boxed(columns, &output, move |context| {
        over_aggregate(&spec, context)
    })
}

fn by_p() -> OverOrder {
    OverOrder::Columns(vec![SortColumn {
        column: 1,
        descending: false,
        nulls_first: true,
    }])
}

fn untimed(frame: OverFrame, calls: &[&str], results: &str) -> Harness {
    harness(
        "id INT, p INT, v INT",
        vec![],
        by_p(),
        frame,
        calls,
        results,
    )
}

const RANGE: OverFrame = OverFrame::Range(None);
const ROWS: OverFrame = OverFrame::Rows(None);
const R: &str = "+I|1|5|1
    +I|2|7|4
    +I|3|7|1
    +I|4|3|0
    +I|5|6|3
    +I|6|7|9
    -D|3|7|1
    -U|4|3|0
    +U|4|8|0";
const A: &str = "+I|1|5|1
    +I|2|7|4
    +I|3|7|1
    +I|4|3|0
    +I|5|6|3
    +I|6|7|9";

#[test]
fn range_updates_all_rows_of_later_sort_keys() {
    untimed(RANGE, &["SUM(v)"], "s INT").check(
        R,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 5]
         -U[2, 7, 4, 5]
         +U[2, 7, 4, 6]
         +I[3, 7, 1, 6]
         +I[4, 3, 0, 0]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 1]
         -U[2, 7, 4, 6]
         +U[2, 7, 4, 6]
         -U[3, 7, 1, 6]
         +U[3, 7, 1, 6]
         +I[5, 6, 3, 4]
         -U[2, 7, 4, 6]
         +U[2, 7, 4, 9]
         -U[3, 7, 1, 6]
         +U[3, 7, 1, 9]
         -U[2, 7, 4, 9]
         +U[2, 7, 4, 18]
         -U[3, 7, 1, 9]
         +U[3, 7, 1, 18]
         +I[6, 7, 9, 18]
         -U[2, 7, 4, 18]
         +U[2, 7, 4, 17]
         -D[3, 7, 1, 18]
         -U[6, 7, 9, 18]
         +U[6, 7, 9, 17]
         -D[4, 3, 0, 0]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 1]
         -U[5, 6, 3, 4]
         +U[5, 6, 3, 4]
         -U[2, 7, 4, 17]
         +U[2, 7, 4, 17]
         -U[6, 7, 9, 17]
         +U[6, 7, 9, 17]
         +U[4, 8, 0, 17]",
    );
}

#[test]
fn rows_updates_each_later_row() {
    untimed(ROWS, &["SUM(v)"], "s INT").check(
        R,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 5]
         +I[3, 7, 1, 6]
         +I[4, 3, 0, 0]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 1]
         -U[2, 7, 4, 5]
         +U[2, 7, 4, 5]
         -U[3, 7, 1, 6]
         +U[3, 7, 1, 6]
         +I[5, 6, 3, 4]
         -U[2, 7, 4, 5]
         +U[2, 7, 4, 8]
         -U[3, 7, 1, 6]
         +U[3, 7, 1, 9]
         +I[6, 7, 9, 18]
         -D[3, 7, 1, 9]
         -U[6, 7, 9, 18]
         +U[6, 7, 9, 17]
         -D[4, 3, 0, 0]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 1]
         -U[5, 6, 3, 4]
         +U[5, 6, 3, 4]
         -U[2, 7, 4, 8]
         +U[2, 7, 4, 8]
         -U[6, 7, 9, 17]
         +U[6, 7, 9, 17]
         +U[4, 8, 0, 17]",
    );
}

#[test]
fn one_more_value_is_a_change_of_a_mean() {
    untimed(RANGE, &["AVG(v)"], "s INT").check(
        R,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 2]
         -U[2, 7, 4, 2]
         +U[2, 7, 4, 2]
         +I[3, 7, 1, 2]
         +I[4, 3, 0, 0]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 0]
         -U[2, 7, 4, 2]
         +U[2, 7, 4, 1]
         -U[3, 7, 1, 2]
         +U[3, 7, 1, 1]
         +I[5, 6, 3, 1]
         -U[2, 7, 4, 1]
         +U[2, 7, 4, 1]
         -U[3, 7, 1, 1]
         +U[3, 7, 1, 1]
         -U[2, 7, 4, 1]
         +U[2, 7, 4, 3]
         -U[3, 7, 1, 1]
         +U[3, 7, 1, 3]
         +I[6, 7, 9, 3]
         -U[2, 7, 4, 3]
         +U[2, 7, 4, 3]
         -D[3, 7, 1, 3]
         -U[6, 7, 9, 3]
         +U[6, 7, 9, 3]
         -D[4, 3, 0, 0]
         -U[1, 5, 1, 0]
         +U[1, 5, 1, 1]
         -U[5, 6, 3, 1]
         +U[5, 6, 3, 2]
         -U[2, 7, 4, 3]
         +U[2, 7, 4, 4]
         -U[6, 7, 9, 3]
         +U[6, 7, 9, 4]
         +U[4, 8, 0, 3]",
    );
}

#[test]
fn means_of_rows() {
    untimed(ROWS, &["AVG(v)"], "s INT").check(
        R,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 2]
         +I[3, 7, 1, 2]
         +I[4, 3, 0, 0]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 0]
         -U[2, 7, 4, 2]
         +U[2, 7, 4, 1]
         -U[3, 7, 1, 2]
         +U[3, 7, 1, 1]
         +I[5, 6, 3, 1]
         -U[2, 7, 4, 1]
         +U[2, 7, 4, 2]
         -U[3, 7, 1, 1]
         +U[3, 7, 1, 1]
         +I[6, 7, 9, 3]
         -D[3, 7, 1, 1]
         -U[6, 7, 9, 3]
         +U[6, 7, 9, 3]
         -D[4, 3, 0, 0]
         -U[1, 5, 1, 0]
         +U[1, 5, 1, 1]
         -U[5, 6, 3, 1]
         +U[5, 6, 3, 2]
         -U[2, 7, 4, 2]
         +U[2, 7, 4, 2]
         -U[6, 7, 9, 3]
         +U[6, 7, 9, 4]
         +U[4, 8, 0, 3]",
    );
}

#[test]
fn an_extreme_that_stays_is_no_change() {
    untimed(RANGE, &["MAX(v)"], "s INT").check(
        R,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 4]
         +I[3, 7, 1, 4]
         +I[4, 3, 0, 0]
         +I[5, 6, 3, 3]
         -U[2, 7, 4, 4]
         +U[2, 7, 4, 9]
         -U[3, 7, 1, 4]
         +U[3, 7, 1, 9]
         +I[6, 7, 9, 9]
         -D[3, 7, 1, 9]
         -D[4, 3, 0, 0]
         +U[4, 8, 0, 9]",
    );
}

#[test]
fn extremes_of_rows() {
    untimed(ROWS, &["MAX(v)"], "s INT").check(
        R,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 4]
         +I[3, 7, 1, 4]
         +I[4, 3, 0, 0]
         +I[5, 6, 3, 3]
         +I[6, 7, 9, 9]
         -D[3, 7, 1, 4]
         -D[4, 3, 0, 0]
         +U[4, 8, 0, 9]",
    );
}

#[test]
fn several_results_change_together() {
    untimed(RANGE, &["MAX(v)", "MIN(v)"], "s INT, mn INT").check(
        A,
        "+I[1, 5, 1, 1, 1]
         +I[2, 7, 4, 4, 1]
         +I[3, 7, 1, 4, 1]
         +I[4, 3, 0, 0, 0]
         -U[1, 5, 1, 1, 1]
         +U[1, 5, 1, 1, 0]
         -U[2, 7, 4, 4, 1]
         +U[2, 7, 4, 4, 0]
         -U[3, 7, 1, 4, 1]
         +U[3, 7, 1, 4, 0]
         +I[5, 6, 3, 3, 0]
         -U[2, 7, 4, 4, 0]
         +U[2, 7, 4, 9, 0]
         -U[3, 7, 1, 4, 0]
         +U[3, 7, 1, 9, 0]
         +I[6, 7, 9, 9, 0]",
    );
}

#[test]
fn rows_are_numbered() {
    untimed(ROWS, &["ROW_NUMBER"], "s BIGINT").check(
        A,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 2]
         +I[3, 7, 1, 3]
         +I[4, 3, 0, 1]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 2]
         -U[2, 7, 4, 2]
         +U[2, 7, 4, 3]
         -U[3, 7, 1, 3]
         +U[3, 7, 1, 4]
         +I[5, 6, 3, 3]
         -U[2, 7, 4, 3]
         +U[2, 7, 4, 4]
         -U[3, 7, 1, 4]
         +U[3, 7, 1, 5]
         +I[6, 7, 9, 6]",
    );
}

#[test]
fn ranks_number_the_last_of_equal_rows() {
    untimed(RANGE, &["ROW_NUMBER"], "s BIGINT").check(
        A,
        "+I[1, 5, 1, 1]
         +I[2, 7, 4, 2]
         -U[2, 7, 4, 2]
         +U[2, 7, 4, 3]
         +I[3, 7, 1, 3]
         +I[4, 3, 0, 1]
         -U[1, 5, 1, 1]
         +U[1, 5, 1, 2]
         -U[2, 7, 4, 3]
         +U[2, 7, 4, 4]
         -U[3, 7, 1, 3]
         +U[3, 7, 1, 4]
         +I[5, 6, 3, 3]
         -U[2, 7, 4, 4]
         +U[2, 7, 4, 5]
         -U[3, 7, 1, 4]
         +U[3, 7, 1, 5]
         -U[2, 7, 4, 5]
         +U[2, 7, 4, 6]
         -U[3, 7, 1, 5]
         +U[3, 7, 1, 6]
         +I[6, 7, 9, 6]",
    );
}

#[test]
fn first_and_last_values() {
    untimed(RANGE, &["FIRST_VALUE(v)", "LAST_VALUE(v)"], "s INT, l INT").check(
        A,
        "+I[1, 5, 1, 1, 1]
         +I[2, 7, 4, 1, 4]
         -U[2, 7, 4, 1, 4]
         +U[2, 7, 4, 1, 1]
         +I[3, 7, 1, 1, 1]
         +I[4, 3, 0, 0, 0]
         -U[1, 5, 1, 1, 1]
         +U[1, 5, 1, 0, 1]
         -U[2, 7, 4, 1, 1]
         +U[2, 7, 4, 0, 1]
         -U[3, 7, 1, 1, 1]
         +U[3, 7, 1, 0, 1]
         +I[5, 6, 3, 0, 3]
         -U[2, 7, 4, 0, 1]
         +U[2, 7, 4, 0, 9]
         -U[3, 7, 1, 0, 1]
         +U[3, 7, 1, 0, 9]
         +I[6, 7, 9, 0, 9]",
    );
}

#[test]
fn unknown_rows_are_not_withdrawn() {
    untimed(RANGE, &["SUM(v)"], "s INT").check(
        "-D|1|5|1\n+I|1|5|1\n-D|2|5|1\n-D|1|5|1\n-D|1|5|1",
        "+I[1, 5, 1, 1]\n-D[1, 5, 1, 1]",
    );
}

const T: &str = "id INT, k STRING, v INT, ts TIMESTAMP(3) *ROWTIME*";

/// Rows `id k v seconds` with a watermark that lags by a second.
fn events(rows: &str, lag: i64) -> String {
    let mut text = String::new();
    let mut watermark = i64::MIN;
    for row in rows.split('\n') {
        let parts: Vec<_> = row.split_whitespace().collect();
        let [id, k, v, seconds] = parts.as_slice() else {
            panic!("{row}")
        };
        let ms = (seconds.parse::<f64>().unwrap() * 1000.0).round() as i64;
        let time = chrono::DateTime::from_timestamp_millis(ms)
            .unwrap()
            .naive_utc();
        let time = time.format("%Y-%m-%dT%H:%M:%S%.3f");
        text.push_str(&format!("+I|{id}|{k}|{v}|{time}\n"));
        if ms - lag > watermark {
            watermark = ms - lag;
            text.push_str(&format!("@wm {watermark}\n"));
        }
    }
    text + "@end"
}

/// Ids and results.
fn results(answer: &str) -> Vec<String> {
    let line = |line: &str| {
        let parts: Vec<_> = line.trim_end_matches(']').split(", ").collect();
        let id = parts[0].trim_start_matches("+I[");
        format!("{id} {}", parts[4..].join(" "))
    };
    answer.lines().map(line).collect()
}

fn timed(frame: OverFrame, calls: &[&str], columns: &str, script: &str, expected: &[&str]) {
    let harness = harness(T, vec![1], OverOrder::Rowtime(3), frame, calls, columns);
    let answer = harness.run(script);
    assert_eq!(results(&answer), expected);
    harness.check(script, &answer);
}

const EVENTS: &str = "1 a 1 2
2 a 2 2
3 a 3 3
4 a 4 10
5 a 5 4
6 a 6 3
7 a 7 2
8 a 8 30
9 a 9 5
10 a 10 40
11 a 11 4";

#[test]
fn a_range_of_time_takes_a_row_until_a_later_one_was_emitted_or_the_frame_is_over() {
    timed(
        OverFrame::Range(Some(2000)),
        &["SUM(v)"],
        "s INT",
        &events(EVENTS, 1000),
        &["1 3", "2 3", "3 6", "4 4", "8 8", "10 10"],
    );
}

#[test]
fn a_number_of_rows_takes_a_row_until_a_later_one_was_emitted() {
    timed(
        OverFrame::Rows(Some(2)),
        &["SUM(v)"],
        "s INT",
        &events(EVENTS, 1000),
        &["1 1", "2 3", "3 6", "5 10", "4 12", "8 17", "10 22"],
    );
}

#[test]
fn all_rows_before_leave_out_what_the_watermark_has_passed() {
    let script = events(EVENTS, 1000);
    timed(
        ROWS,
        &["SUM(v)", "ROW_NUMBER"],
        "s INT, n BIGINT",
        &script,
        &["1 1 1", "2 3 2", "3 6 3", "4 10 4", "8 18 5", "10 28 6"],
    );
    timed(
        RANGE,
        &["ROW_NUMBER"],
        "n BIGINT",
        &script,
        &["1 2", "2 2", "3 3", "4 4", "8 5", "10 6"],
    );
}

const BOUNDED: &str = "1 a 50 0
2 a 1 5
3 a 2 5.001
4 a 4 5
5 b 9 3
6 a 3 10
7 b 7 8
8 a 100 7
9 a 6 20";

#[test]
fn rows_leave_a_range_of_time() {
    timed(
        OverFrame::Range(Some(5000)),
        &["SUM(v)", "MAX(v)", "COUNT"],
        "s INT, mx INT, c BIGINT",
        &events(BOUNDED, 3000),
        &[
            "1 50 50 1",
            "5 9 9 1",
            "2 55 50 3",
            "4 55 50 3",
            "3 7 4 3",
            "8 107 100 4",
            "7 16 9 2",
            "6 110 100 5",
            "9 6 6 1",
        ],
    );
}

const LAGS: &str = "1 a 10 2
2 a \\N 1
3 b 30 3
4 a 40 4
5 a 50 3
6 b \\N 6";

#[test]
fn earlier_values_first_values_and_last_values() {
    let script = events(LAGS, 2000);
    timed(
        RANGE,
        &["LAG(v, 1)", "LAG(v, 2)"],
        "l INT, m INT",
        &script,
        &[
            "2 null null",
            "1 null null",
            "3 null null",
            "5 10 null",
            "4 50 10",
            "6 30 null",
        ],
    );
    timed(
        RANGE,
        &["LAG(id, 1, -1)", "ROW_NUMBER"],
        "l INT, n BIGINT",
        &script,
        &["2 -1 1", "1 2 2", "3 -1 1", "5 1 3", "4 5 4", "6 3 2"],
    );
    timed(
        OverFrame::Rows(Some(1)),
        &["FIRST_VALUE(v)", "LAST_VALUE(v)"],
        "f INT, l INT",
        &script,
        &[
            "2 null null",
            "1 10 10",
            "3 30 30",
            "5 10 50",
            "4 50 40",
            "6 30 30",
        ],
    );
}

#[test]
fn rows_of_one_time_have_one_earlier_value() {
    let rows = "1 a 1 1\n2 a 2 3\n3 a 3 2\n5 a 5 3\n6 a 6 10";
    timed(
        RANGE,
        &["LAG(v, 1)"],
        "l INT",
        &events(rows, 2000),
        &["1 null", "3 1", "2 2", "5 2", "6 5"],
    );
}

#[test]
fn rows_by_arrival_come_at_once() {
    let columns = "k STRING, v INT";
    let script = "+I|a|1\n+I|a|2\n+I|b|3\n+I|a|4\n+I|a|5";
    let harness = |frame, calls: &[&str], results| {
        harness(columns, vec![0], OverOrder::Proctime, frame, calls, results)
    };
    harness(RANGE, &["SUM(v)", "LAG(v, 2)"], "s INT, l INT").check(
        script,
        "+I[a, 1, 1, null]
         +I[a, 2, 3, null]
         +I[b, 3, 3, null]
         +I[a, 4, 7, 1]
         +I[a, 5, 12, 2]",
    );
    harness(OverFrame::Rows(Some(1)), &["SUM(v)"], "s INT").check(
        script,
        "+I[a, 1, 1]
         +I[a, 2, 3]
         +I[b, 3, 3]
         +I[a, 4, 6]
         +I[a, 5, 9]",
    );
}

#[test]
fn a_range_of_arrival_waits_for_the_clock() {
    let columns = "k STRING, v INT";
    harness(
        columns,
        vec![0],
        OverOrder::Proctime,
        OverFrame::Range(Some(1000)),
        &["SUM(v)"],
        "s INT",
    )
    .check(
        "+I|a|1
             +I|a|2
             @time 500
             +I|a|4
             @time 1500
             +I|a|8
             @time 5000
             +I|a|16
             @end",
        "+I[a, 1, 3]
             +I[a, 2, 3]
             +I[a, 4, 7]
             +I[a, 8, 12]
             +I[a, 16, 16]",
    );
}

#[test]
fn times_before_the_epoch_are_not_late() {
    timed(
        OverFrame::Rows(Some(1)),
        &["SUM(v)"],
        "s INT",
        &events("1 a 1 -5\n2 a 2 -3", 1000),
        &["1 1", "2 3"],
    );
}

#[test]
fn what_has_expired_is_not_counted() {
    let columns = "k STRING, v INT";
    let script = "+I|a|1
        +I|a|2
        +I|b|4
        @time 4000
        +I|b|8
        @time 5000
        +I|a|16
        +I|b|32
        @time 30000
        +I|b|64";
    let harness = |order_by| {
        let input = schema(columns);
        let output = format!("{columns}, s INT");
        let spec = OverAggregateSpec {
            calls: vec![call(&input, "SUM(v)")],
            input,
            partition_by: vec![0],
            order_by,
            frame: ROWS,
            ttl_ms: Some(5000),
            output: schema(&output),
        };
        Harness::boxed(columns, &output, move |context| {
            over_aggregate(&spec, context)
        })
    };
    let expected = "+I[a, 1, 1]
        +I[a, 2, 3]
        +I[b, 4, 4]
        +I[b, 8, 12]
        +I[a, 16, 16]
        +I[b, 32, 44]
        +I[b, 64, 64]";
    harness(OverOrder::Proctime).check(script, expected);
    harness(by_p()).check(script, expected);
}

#[test]
fn a_frame_of_rows_follows_the_table() {
    untimed(OverFrame::Rows(Some(1)), &["SUM(v)"], "s INT").check(
        "+I|1|10|1
         +I|2|20|2
         +I|3|30|4
         +I|4|15|8
         -D|2|20|2
         +I|5|40|16
         -D|1|10|1",
        "+I[1, 10, 1, 1]
         +I[2, 20, 2, 3]
         +I[3, 30, 4, 6]
         +I[4, 15, 8, 9]
         -U[2, 20, 2, 3]
         +U[2, 20, 2, 10]
         -D[2, 20, 2, 10]
         -U[3, 30, 4, 6]
         +U[3, 30, 4, 12]
         +I[5, 40, 16, 20]
         -D[1, 10, 1, 1]
         -U[4, 15, 8, 9]
         +U[4, 15, 8, 8]",
    );
}

#[test]
fn no_row_is_lost_by_copies_of_changes() {
    let columns = "k STRING, v INT, ts TIMESTAMP(3) *ROWTIME*";
    let frames: [(OverFrame, &[&str], &str); 4] = [
        (OverFrame::Rows(Some(2)), &["SUM(v)"], "s INT"),
        (OverFrame::Range(Some(1500)), &["SUM(v)"], "s INT"),
        (RANGE, &["SUM(v)", "LAG(v, 2)"], "s INT, l INT"),
        (ROWS, &["SUM(v)", "ROW_NUMBER"], "s INT, r BIGINT"),
    ];
    for (frame, calls, results) in frames {
        let order = OverOrder::Rowtime(2);
        let harness = harness(columns, vec![0], order, frame, calls, results);
        for seed in 0..3 {
            let script = random_events(seed, 120, |dice, time| {
                format!("+I|k{}|{}|{time}", dice.below(6), dice.below(9))
            });
            harness.check_copies(&script, 12);
        }
    }
}
