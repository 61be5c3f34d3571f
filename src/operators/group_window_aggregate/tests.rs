use super::*;
use crate::aggregates::{AggregateCall, CallContext, resolve};
use crate::functions::Arg;
use crate::operators::testing::{Harness, random_events, schema};
use crate::operators::window_aggregate::{WindowForm, WindowProperty, WindowSource};
use crate::operators::windowing::{WindowKind, WindowTime, Windowing};

const T: &str = "k STRING, v INT, ts TIMESTAMP(3) *ROWTIME*";
const OUT: &str = "k STRING, c BIGINT, s INT, ws TIMESTAMP(3)";

fn harness(kind: WindowKind, emit: EmitStrategy) -> Harness {
    let input = schema(T);
    let context = CallContext {
        grouped: true,
        filtered: false,
        distinct: false,
    };
    let v = Arg {
        data_type: input.columns[1].data_type.clone(),
        literal: None,
    };
    let call = |name, args: &[Arg], columns: Vec<usize>| AggregateCall {
        function: resolve(name, args, context).unwrap(),
        args: columns,
        filter: None,
        distinct: false,
    };
    let spec = WindowAggregateSpec {
        aggregates: vec![call("COUNT", &[], vec![]), call("SUM", &[v], vec![1])],
        input,
        group_by: vec![0],
        retracting: true,
        form: WindowForm::GroupWindow,
        source: WindowSource::Time(WindowTime::Rowtime(2)),
        windowing: Windowing::new(kind, None),
        properties: vec![WindowProperty::Start],
        output: schema(OUT),
    };
    Harness::boxed(T, OUT, move |context| {
        group_window_aggregate(&spec, emit, context)
    })
}

fn tumble() -> WindowKind {
    WindowKind::Tumble {
        size: 10_000,
        offset: 0,
    }
}

fn emit(early: Option<i64>, late: Option<i64>, allow_lateness_ms: i64) -> EmitStrategy {
    EmitStrategy {
        early_fire_delay_ms: early,
        late_fire_delay_ms: late,
        allow_lateness_ms,
        generate_update_before: true,
    }
}

const ROWS: &str = "+I|a|1|1970-01-01T00:00:01
    +I|b|2|1970-01-01T00:00:03
    @wm 1000
    +I|a|3|1970-01-01T00:00:09
    @wm 7000
    +I|a|4|1970-01-01T00:00:11
    @wm 9000
    +I|a|5|1970-01-01T00:00:08
    +I|a|0|1970-01-01T00:00:12
    @wm 10000
    +I|a|7|1970-01-01T00:00:09.999
    +I|c|8|1970-01-01T00:00:15
    @wm 29000
    +I|a|10|1970-01-01T00:00:05
    @end";

#[test]
fn without_a_strategy_windows_come_once() {
    harness(tumble(), EmitStrategy::default()).check(
        ROWS,
        "+I[a, 3, 9, 1970-01-01T00:00]
         +I[b, 1, 2, 1970-01-01T00:00]
         +I[a, 2, 4, 1970-01-01T00:00:10]
         +I[c, 1, 8, 1970-01-01T00:00:10]",
    );
}

#[test]
fn every_row_fires_early() {
    harness(tumble(), emit(Some(0), None, 0)).check(
        ROWS,
        "+I[a, 1, 1, 1970-01-01T00:00]
         +I[b, 1, 2, 1970-01-01T00:00]
         -U[a, 1, 1, 1970-01-01T00:00]
         +U[a, 2, 4, 1970-01-01T00:00]
         +I[a, 1, 4, 1970-01-01T00:00:10]
         -U[a, 2, 4, 1970-01-01T00:00]
         +U[a, 3, 9, 1970-01-01T00:00]
         -U[a, 1, 4, 1970-01-01T00:00:10]
         +U[a, 2, 4, 1970-01-01T00:00:10]
         +I[c, 1, 8, 1970-01-01T00:00:10]",
    );
}

#[test]
fn late_rows_fire_while_lateness_is_allowed() {
    harness(tumble(), emit(None, Some(0), 10_000)).check(
        ROWS,
        "+I[a, 3, 9, 1970-01-01T00:00]
         +I[b, 1, 2, 1970-01-01T00:00]
         -U[a, 3, 9, 1970-01-01T00:00]
         +U[a, 4, 16, 1970-01-01T00:00]
         +I[a, 2, 4, 1970-01-01T00:00:10]
         +I[c, 1, 8, 1970-01-01T00:00:10]",
    );
}

#[test]
fn a_delay_folds_changes() {
    harness(tumble(), emit(Some(1000), Some(1000), 10_000)).check(
        "+I|a|1|1970-01-01T00:00:01
         +I|a|2|1970-01-01T00:00:02
         @time 999
         +I|a|4|1970-01-01T00:00:03
         @time 1000
         +I|a|8|1970-01-01T00:00:03
         @wm 9999
         @time 3000
         +I|a|16|1970-01-01T00:00:03
         +I|b|32|1970-01-01T00:00:03
         -D|b|32|1970-01-01T00:00:03
         +I|c|64|1970-01-01T00:00:03
         @time 4000
         -D|a|16|1970-01-01T00:00:03
         @wm 19998
         @time 5000
         @wm 19999
         +I|a|16|1970-01-01T00:00:03
         @time 9000",
        "+I[a, 3, 7, 1970-01-01T00:00]
         -U[a, 3, 7, 1970-01-01T00:00]
         +U[a, 4, 15, 1970-01-01T00:00]
         -U[a, 4, 15, 1970-01-01T00:00]
         +U[a, 5, 31, 1970-01-01T00:00]
         +I[c, 1, 64, 1970-01-01T00:00]
         -U[a, 5, 31, 1970-01-01T00:00]
         +U[a, 4, 15, 1970-01-01T00:00]",
    );
}

#[test]
fn a_window_that_loses_its_rows_is_deleted() {
    let hop = WindowKind::Hop {
        slide: 5000,
        size: 10_000,
        offset: 0,
    };
    harness(hop, emit(Some(0), None, 0)).check(
        "+I|a|1|1970-01-01T00:00:06
         -D|a|1|1970-01-01T00:00:06
         -D|a|1|1970-01-01T00:00:06
         +I|a|2|1970-01-01T00:00:06
         @end",
        "+I[a, 1, 1, 1970-01-01T00:00:05]
         +I[a, 1, 1, 1970-01-01T00:00]
         -D[a, 1, 1, 1970-01-01T00:00:05]
         -D[a, 1, 1, 1970-01-01T00:00]
         +I[a, 1, 2, 1970-01-01T00:00:05]
         +I[a, 1, 2, 1970-01-01T00:00]",
    );
}

#[test]
fn no_window_is_lost_by_copies_of_changes() {
    for emit in [emit(Some(0), Some(0), 2000), emit(Some(5), Some(0), 1000)] {
        let harness = harness(tumble(), emit);
        for seed in 0..3 {
            let mut now = 0;
            let script = random_events(seed, 120, |dice, time| {
                let row = format!("+I|k{}|{}|{time}", dice.below(7), dice.below(9));
                now += dice.below(4);
                match dice.below(3) {
                    0 => format!("{row}\n@time {now}"),
                    _ => row,
                }
            });
            harness.check_copies(&script, 12);
        }
    }
}
