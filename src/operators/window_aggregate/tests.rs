use super::*;
use crate::aggregates::{CallContext, resolve};
use crate::checkpoint::layers::fold;
use crate::functions::Arg;
use crate::operators::testing::{Harness, batch, context, random_events, schema};
use crate::runtime::output::{Emitted, Output};
use crate::state::snapshot::{LazyBatch, Part, RestoreState};

/// A call `NAME`, `NAME(column)`, `NAME(DISTINCT column)`.
fn call(input: &Schema, text: &str) -> AggregateCall {
    let (name, arg) = text.split_once('(').unwrap_or((text, ""));
    let arg = arg.trim_end_matches(')');
    let (distinct, arg) = match arg.strip_prefix("DISTINCT ") {
        Some(arg) => (true, arg),
        None => (false, arg),
    };
    let column = input.index_of(arg);
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
        distinct,
    };
    AggregateCall {
        function: resolve(name, &args, context).unwrap(),
        args: column.into_iter().collect(),
        filter: None,
        distinct,
    }
}

struct Case {
    columns: &'static str,
    group_by: Vec<usize>,
    calls: &'static [&'static str],
    kind: WindowKind,
    source: Option<WindowSource>,
    output: &'static str,
}

impl Case {
    fn harness(self) -> Harness {
        let (spec, columns, output) = self.spec();
        Harness::boxed(columns, &output, move |context| {
            window_aggregate(&spec, context)
        })
    }

    fn spec(self) -> (WindowAggregateSpec, &'static str, String) {
        let input = schema(self.columns);
        let time = input
            .columns
            .iter()
            .position(crate::types::Column::is_rowtime);
        let time = time.map_or(WindowTime::Proctime, WindowTime::Rowtime);
        let output = format!("{}, ws TIMESTAMP(3), we TIMESTAMP(3)", self.output);
        let spec = WindowAggregateSpec {
            aggregates: self.calls.iter().map(|c| call(&input, c)).collect(),
            input,
            group_by: self.group_by,
            retracting: true,
            form: WindowForm::TableFunction,
            source: self.source.unwrap_or(WindowSource::Time(time)),
            windowing: Windowing::new(self.kind, None),
            properties: vec![WindowProperty::Start, WindowProperty::End],
            output: schema(&output),
        };
        (spec, self.columns, output)
    }
}

const T: &str = "k STRING, v INT, ts TIMESTAMP(3) *ROWTIME*";
const OUT: &str = "k STRING, c BIGINT, s INT";
const CALLS: &[&str] = &["COUNT", "SUM(v)"];

/// Rows of seconds after the epoch with a watermark that lags.
fn script(rows: &str, lag: i64) -> String {
    let mut text = String::new();
    let mut watermark = i64::MIN;
    for row in rows.split_whitespace() {
        let (row, time) = row.rsplit_once('|').unwrap();
        let ms = (time.parse::<f64>().unwrap() * 1000.0) as i64;
        let time = chrono::DateTime::from_timestamp_millis(ms)
            .unwrap()
            .naive_utc();
        text.push_str(&format!("{row}|{}\n", time.format("%Y-%m-%dT%H:%M:%S%.3f")));
        if ms - lag > watermark {
            watermark = ms - lag;
            text.push_str(&format!("@wm {watermark}\n"));
        }
    }
    text + "@end"
}

/// Windows in seconds after the epoch.
fn seconds(answer: &str) -> Vec<String> {
    let seconds =
        |text: &str| match chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S") {
            Ok(time) => time.and_utc().timestamp(),
            Err(_) => chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M")
                .unwrap()
                .and_utc()
                .timestamp(),
        };
    let line = |line: &str| {
        let parts: Vec<_> = line.trim_end_matches(']').split(", ").collect();
        let [rest @ .., start, end] = parts.as_slice() else {
            panic!("{line}")
        };
        format!("{} {}..{}", rest.join(" "), seconds(start), seconds(end))
    };
    answer.lines().map(line).collect()
}

fn check(harness: &Harness, script: &str, expected: &[&str]) {
    let answer = harness.run(script);
    assert_eq!(seconds(&answer), expected);
    harness.check(script, &answer);
}

#[test]
fn tumbling_windows_drop_late_rows() {
    let kind = WindowKind::Tumble {
        size: 10_000,
        offset: 0,
    };
    let case = Case {
        columns: T,
        group_by: vec![0],
        calls: CALLS,
        kind,
        source: None,
        output: OUT,
    };
    let rows = "+I|a|1|1 +I|b|2|3 +I|a|3|9 +I|a|4|11 +I|a|5|8 +I|a|6|12 +I|a|7|9.999 +I|c|8|15
        +I|a|9|31 +I|a|10|5 +I|a|11|21 +I|a|12|29.5";
    let expected = [
        "+I[a 3 9 0..10",
        "+I[b 1 2 0..10",
        "+I[a 2 10 10..20",
        "+I[c 1 8 10..20",
        "+I[a 2 23 20..30",
        "+I[a 1 9 30..40",
    ];
    check(&case.harness(), &script(rows, 2000), &expected);
}

const HOP_ROWS: &str = "+I|a|1|1 +I|b|2|4 +I|a|3|6 +I|a|4|3 +I|a|5|12 +I|a|6|4 +I|a|7|8 +I|b|8|27";

#[test]
fn hopping_windows_take_a_late_row_where_it_is_not_late() {
    let kind = WindowKind::Hop {
        slide: 5000,
        size: 10_000,
        offset: 0,
    };
    let case = Case {
        columns: T,
        group_by: vec![0],
        calls: CALLS,
        kind,
        source: None,
        output: OUT,
    };
    let expected = [
        "+I[a 1 1 -5..5",
        "+I[b 1 2 -5..5",
        "+I[a 3 8 0..10",
        "+I[b 1 2 0..10",
        "+I[a 3 15 5..15",
        "+I[a 1 5 10..20",
        "+I[b 1 8 20..30",
        "+I[b 1 8 25..35",
    ];
    check(&case.harness(), &script(HOP_ROWS, 1000), &expected);
}

#[test]
fn hopping_windows_of_any_size() {
    let case = |slide, size| Case {
        columns: T,
        group_by: vec![],
        calls: CALLS,
        kind: WindowKind::Hop {
            slide,
            size,
            offset: 0,
        },
        source: None,
        output: "c BIGINT, s INT",
    };
    let rows = script("+I|a|1|0 +I|a|2|3 +I|a|3|6.5 +I|a|4|12", 0);
    let expected = [
        "+I[1 1 -6..1",
        "+I[2 3 -3..4",
        "+I[3 6 0..7",
        "+I[2 5 3..10",
        "+I[2 7 6..13",
        "+I[1 4 9..16",
        "+I[1 4 12..19",
    ];
    check(&case(3000, 7000).harness(), &rows, &expected);
    check(
        &case(5000, 2000).harness(),
        &rows,
        &["+I[1 1 0..2", "+I[1 3 5..7"],
    );
}

#[test]
fn cumulating_windows_grow() {
    let kind = WindowKind::Cumulate {
        step: 5000,
        size: 15_000,
        offset: 0,
    };
    let case = Case {
        columns: T,
        group_by: vec![0],
        calls: CALLS,
        kind,
        source: None,
        output: OUT,
    };
    let expected = [
        "+I[a 1 1 0..5",
        "+I[b 1 2 0..5",
        "+I[a 3 8 0..10",
        "+I[b 1 2 0..10",
        "+I[a 6 26 0..15",
        "+I[b 1 2 0..15",
        "+I[b 1 8 15..30",
    ];
    check(&case.harness(), &script(HOP_ROWS, 1000), &expected);
}

#[test]
fn sessions_merge() {
    let case = Case {
        columns: T,
        group_by: vec![0],
        calls: CALLS,
        kind: WindowKind::Session { gap: 5000 },
        source: None,
        output: OUT,
    };
    let rows =
        "+I|a|1|1 +I|a|2|4 +I|b|3|5 +I|a|4|10 +I|a|5|7 +I|a|6|20 +I|a|7|13 +I|a|8|17 +I|a|9|40";
    let expected = [
        "+I[b 1 3 5..10",
        "+I[a 4 12 1..15",
        "+I[a 2 14 17..25",
        "+I[a 1 9 40..45",
    ];
    check(&case.harness(), &script(rows, 2000), &expected);
}

const RETRACTING: &str = "+I|a|5|1 +I|a|7|2 +I|b|9|3 -U|a|5|1 +U|a|50|11 -U|b|9|3 +U|c|9|3 +I|d|1|4
    -D|d|1|4 +I|a|7|5 -D|a|7|2 +I|z|1|120 -D|a|50|11";

#[test]
fn groups_without_rows_are_not_emitted() {
    let kind = WindowKind::Tumble {
        size: 10_000,
        offset: 0,
    };
    let case = Case {
        columns: T,
        group_by: vec![0],
        calls: &["COUNT", "SUM(v)", "MIN(v)", "COUNT(DISTINCT v)"],
        kind,
        source: None,
        output: "k STRING, c BIGINT, s INT, mn INT, d BIGINT",
    };
    let expected = [
        "+I[a 1 7 7 1 0..10",
        "+I[c 1 9 9 1 0..10",
        "+I[a 1 50 50 1 10..20",
        "+I[z 1 1 1 1 120..130",
    ];
    check(&case.harness(), &script(RETRACTING, 30_000), &expected);
    let kind = WindowKind::Hop {
        slide: 10_000,
        size: 20_000,
        offset: 0,
    };
    let case = Case {
        columns: T,
        group_by: vec![],
        calls: &["COUNT", "SUM(v)", "MAX(v)"],
        kind,
        source: None,
        output: "c BIGINT, s INT, mx INT",
    };
    let expected = [
        "+I[2 16 9 -10..10",
        "+I[3 66 50 0..20",
        "+I[1 50 50 10..30",
        "+I[1 1 1 110..130",
        "+I[1 1 1 120..140",
    ];
    check(&case.harness(), &script(RETRACTING, 30_000), &expected);
}

#[test]
fn sessions_withdraw_rows() {
    let case = Case {
        columns: T,
        group_by: vec![0],
        calls: CALLS,
        kind: WindowKind::Session { gap: 10_000 },
        source: None,
        output: OUT,
    };
    let expected = ["+I[c 1 9 3..13", "+I[a 2 57 1..21", "+I[z 1 1 120..130"];
    check(&case.harness(), &script(RETRACTING, 30_000), &expected);
}

#[test]
fn windows_that_came_with_the_rows_are_kept_apart() {
    let case = Case {
        columns: "k STRING, v INT, ws TIMESTAMP(3), we TIMESTAMP(3)",
        group_by: vec![0],
        calls: CALLS,
        kind: WindowKind::Hop {
            slide: 5000,
            size: 10_000,
            offset: 0,
        },
        source: Some(WindowSource::Attached { start: 2, end: 3 }),
        output: OUT,
    };
    let script = "+I|a|1|1970-01-01T00:00:00|1970-01-01T00:00:10
        +I|a|2|1970-01-01T00:00:05|1970-01-01T00:00:15
        +I|b|3|1970-01-01T00:00:00|1970-01-01T00:00:10
        @wm 9999
        +I|a|4|1970-01-01T00:00:00|1970-01-01T00:00:10
        +I|a|5|1970-01-01T00:00:05|1970-01-01T00:00:15
        @end";
    let expected = ["+I[a 1 1 0..10", "+I[b 1 3 0..10", "+I[a 2 7 5..15"];
    check(&case.harness(), script, &expected);
}

#[test]
fn windows_of_processing_time_end_with_the_clock() {
    let case = Case {
        columns: "k STRING, v INT",
        group_by: vec![0],
        calls: CALLS,
        kind: WindowKind::Hop {
            slide: 5000,
            size: 10_000,
            offset: 0,
        },
        source: None,
        output: OUT,
    };
    let script = "+I|a|1
        +I|b|2
        @time 4999
        +I|a|4
        @time 5000
        +I|a|8
        @time 16000
        +I|b|16
        @end";
    let expected = [
        "+I[a 2 5 -5..5",
        "+I[b 1 2 -5..5",
        "+I[a 3 13 0..10",
        "+I[b 1 2 0..10",
        "+I[a 1 8 5..15",
    ];
    check(&case.harness(), script, &expected);
}

struct Nowhere;

impl crate::runtime::output::Downstream for Nowhere {
    fn batch(&mut self, _: ChangeBatch) -> Result<()> {
        Ok(())
    }

    fn watermark(&mut self, _: i64) -> Result<()> {
        Ok(())
    }

    fn status(&mut self, _: crate::runtime::output::Status) -> Result<()> {
        Ok(())
    }
}

/// An insertion a key, at `ms` after the epoch.
fn rows_at(columns: &str, keys: std::ops::Range<i32>, ms: i64) -> ChangeBatch {
    let n = keys.len();
    let names = arrow::array::StringArray::from_iter_values(keys.clone().map(|k| format!("k{k}")));
    let fields = schema(columns).to_arrow();
    let values: [ArrayRef; 3] = [
        Arc::new(names),
        Arc::new(arrow::array::Int32Array::from_iter_values(keys)),
        Arc::new(TimestampMillisecondArray::from(vec![ms; n])),
    ];
    let columns = values.iter().zip(fields.fields());
    let columns = columns.map(|(v, field)| arrow::compute::cast(v, field.data_type()).unwrap());
    let rows = arrow::array::RecordBatch::try_new(Arc::clone(&fields), columns.collect()).unwrap();
    ChangeBatch::inserts(rows)
}

/// An hour of event time, ten seconds a batch: what is kept is what open windows need, and memory
/// that a crowded minute has taken is given back.
#[test]
fn closed_windows_leave_no_state_behind() {
    let second = 1000;
    let kinds = [
        (
            WindowKind::Tumble {
                size: 10 * second,
                offset: 0,
            },
            1,
        ),
        (
            WindowKind::Hop {
                size: 60 * second,
                slide: 10 * second,
                offset: 0,
            },
            6,
        ),
        (
            WindowKind::Cumulate {
                size: 60 * second,
                step: 10 * second,
                offset: 0,
            },
            2,
        ),
        (WindowKind::Session { gap: 5 * second }, 1),
    ];
    for (kind, open_slices) in kinds {
        let (spec, columns, _) = Case {
            columns: T,
            group_by: vec![0],
            calls: CALLS,
            kind,
            source: None,
            output: OUT,
        }
        .spec();
        let context = crate::operators::testing::context();
        let mut operator = window_aggregate(&spec, &context).unwrap();
        let mut sink = Nowhere;
        let mut crowded_bytes = 0;
        for i in 0..360 {
            let keys = if i == 100 { 0..50_000 } else { 0..100 };
            let time = i64::from(i) * 10 * second;
            let batch = rows_at(columns, keys, time);
            let out = &mut Output::new(&mut sink);
            operator.process(0, batch, out).unwrap();
            if i == 100 {
                crowded_bytes = operator.state_size().bytes;
            }
            let out = &mut Output::new(&mut sink);
            operator.watermark(time + 10 * second - 1, out).unwrap();
            if !(100..110).contains(&i) {
                let rows = operator.state_size().rows;
                assert!(rows <= open_slices * 100, "{kind:?}: {rows} rows at {i}");
            }
        }
        let size = operator.state_size();
        if !matches!(kind, WindowKind::Session { .. }) {
            assert!(
                size.bytes < crowded_bytes / 4,
                "{kind:?}: {size:?} of {crowded_bytes}"
            );
        }
        let out = &mut Output::new(&mut sink);
        operator.watermark(i64::MAX, out).unwrap();
        assert_eq!(operator.state_size().rows, 0, "{kind:?}");
    }
}

/// Many groups go at once, and the operator puts its state together anew.
#[test]
fn changes_are_known_across_compaction() {
    for (columns, out) in [
        (T, OUT),
        (
            "k INT, v INT, ts TIMESTAMP(3) *ROWTIME*",
            "k INT, c BIGINT, s INT",
        ),
    ] {
        let case = Case {
            columns,
            group_by: vec![0],
            calls: CALLS,
            kind: WindowKind::Tumble {
                size: 10_000,
                offset: 0,
            },
            source: None,
            output: out,
        };
        let (spec, columns, _) = case.spec();
        let (context, input) = (context(), schema(columns));
        let make = || window_aggregate(&spec, &context).unwrap();
        let feed = |operator: &mut dyn Operator, keys: &[String], second: u32| {
            let row = |key: &String| format!("+I|{key}|1|1970-01-01T00:00:{second:02}");
            let rows: Vec<String> = keys.iter().map(row).collect();
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            let mut emitted = Vec::new();
            let rows = batch(&input, &rows);
            operator
                .process(0, rows, &mut Output::new(&mut emitted))
                .unwrap();
        };
        let pass = |operator: &mut dyn Operator, watermark: i64| -> Vec<String> {
            let mut emitted = Vec::new();
            let mut out = Output::new(&mut emitted);
            operator.watermark(watermark, &mut out).unwrap();
            let batches = emitted.iter().filter_map(|e| match e {
                Emitted::Batch(batch) => Some(format!("{:?}", batch.rows().columns())),
                _ => None,
            });
            batches.collect()
        };
        let mut keys: Vec<String> = (0..9000).map(|i| i.to_string()).collect();
        keys[7] = "\\N".into();
        let mut operator = make();
        operator.track_changes();
        feed(operator.as_mut(), &keys, 1);
        feed(operator.as_mut(), &keys[..50], 11);
        let base = operator.snapshot().unwrap();
        feed(operator.as_mut(), &keys[3..9], 12);
        assert!(!pass(operator.as_mut(), 10_000).is_empty());
        feed(operator.as_mut(), &keys[49..51], 13);
        let changes = operator.changes(true).unwrap();
        let rows = |batches: &[LazyBatch]| -> usize {
            batches.iter().map(|b| b.get().unwrap().num_rows()).sum()
        };
        let table = &changes.tables["slices"];
        // All keys have lost a group: those that are left are copied, the others are gone, of
        // which one has come back.
        assert_eq!(rows(&table.batches), 51);
        let Part::Changes { removed } = &table.part else {
            panic!("copied whole");
        };
        assert_eq!(rows(removed), 8950);
        let mut restored = make();
        let whole = fold(base, changes);
        restored.restore(RestoreState::of(&whole).unwrap()).unwrap();
        restored.track_changes();
        feed(operator.as_mut(), &keys[7..8], 14);
        let changes = operator.changes(true).unwrap();
        assert_eq!(rows(&changes.tables["slices"].batches), 1);
        feed(restored.as_mut(), &keys[7..8], 14);
        let answer = pass(operator.as_mut(), i64::MAX);
        assert_eq!(pass(restored.as_mut(), i64::MAX), answer);
        assert!(!answer.is_empty());
    }
}

#[test]
fn no_window_is_lost_by_copies_of_changes() {
    let (size, slide, step, offset) = (4000, 1000, 1000, 0);
    let kinds = [
        WindowKind::Tumble { size, offset },
        WindowKind::Hop {
            slide,
            size,
            offset,
        },
        WindowKind::Cumulate { step, size, offset },
        WindowKind::Session { gap: 900 },
    ];
    for kind in kinds {
        let case = Case {
            columns: T,
            group_by: vec![0],
            calls: &["COUNT", "SUM(v)"],
            kind,
            source: None,
            output: OUT,
        };
        let harness = case.harness();
        for seed in 0..3 {
            let script = random_events(seed, 120, |dice, time| {
                let kind = if dice.below(6) == 0 { "-D" } else { "+I" };
                format!("{kind}|k{}|{}|{time}", dice.below(7), dice.below(9))
            });
            harness.check_copies(&script, 12);
        }
    }
}
