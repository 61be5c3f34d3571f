use super::*;
use crate::operators::testing::{Harness, schema};

fn harness(
    columns: &str,
    kind: WindowKind,
    zone: Option<chrono_tz::Tz>,
    keys: Vec<usize>,
) -> Harness {
    let input = schema(columns);
    let time = input
        .columns
        .iter()
        .position(crate::types::Column::is_rowtime);
    let time_type = match columns.contains("_LTZ") {
        true => "TIMESTAMP_LTZ(3)",
        false => "TIMESTAMP(3)",
    };
    let output = format!(
        "{columns}, window_start TIMESTAMP(3), window_end TIMESTAMP(3), window_time {time_type} *ROWTIME*"
    );
    let spec = WindowTableFunctionSpec {
        input,
        time: time.map_or(WindowTime::Proctime, WindowTime::Rowtime),
        windowing: Windowing::new(kind, zone),
        partition_by: keys,
        output: schema(&output),
    };
    Harness::boxed(columns, &output, move |context| {
        window_table_function(&spec, context)
    })
}

#[test]
fn each_row_comes_once_per_window() {
    let kind = WindowKind::Hop {
        slide: 5000,
        size: 10_000,
        offset: 0,
    };
    harness("v INT, ts TIMESTAMP(3) *ROWTIME*", kind, None, Vec::new()).check(
        "+I|1|2024-01-01T00:00:01\n-U|2|2024-01-01T00:00:05\n+I|3|\\N",
        "+I[1, 2024-01-01T00:00:01, 2024-01-01T00:00, 2024-01-01T00:00:10, 2024-01-01T00:00:09.999]
         +I[1, 2024-01-01T00:00:01, 2023-12-31T23:59:55, 2024-01-01T00:00:05, 2024-01-01T00:00:04.999]
         -U[2, 2024-01-01T00:00:05, 2024-01-01T00:00:05, 2024-01-01T00:00:15, 2024-01-01T00:00:14.999]
         -U[2, 2024-01-01T00:00:05, 2024-01-01T00:00, 2024-01-01T00:00:10, 2024-01-01T00:00:09.999]",
    );
}

#[test]
fn windows_show_wall_clock_time_of_the_zone() {
    let day = WindowKind::Tumble {
        size: 86_400_000,
        offset: 0,
    };
    let berlin = Some(chrono_tz::Europe::Berlin);
    harness(
        "id INT, ts TIMESTAMP_LTZ(3) *ROWTIME*",
        day,
        berlin,
        Vec::new(),
    )
    .check(
        "+I|1|2024-03-30T22:30:00\n+I|4|2024-03-31T01:00:00",
        "+I[1, 2024-03-30T22:30:00Z, 2024-03-30T00:00, 2024-03-31T00:00, 2024-03-30T22:59:59.999Z]
         +I[4, 2024-03-31T01:00:00Z, 2024-03-31T00:00, 2024-04-01T00:00, 2024-03-31T21:59:59.999Z]",
    );
}

const SESSIONS: &str = "+I|a|1|1|1970-01-01T00:00:00
    +I|a|2|2|1970-01-01T00:00:01
    @wm -1000
    +I|a|1|4|1970-01-01T00:00:03
    @wm 1000
    +I|a|\\N|8|1970-01-01T00:00:04
    @wm 2000
    +I|a|1|16|1970-01-01T00:00:09
    @wm 7000
    +I|a|\\N|32|1970-01-01T00:00:08
    +I|a|1|64|1970-01-01T00:00:06
    +I|b|1|128|1970-01-01T00:00:01
    @end";

#[test]
fn rows_wait_until_their_session_is_over() {
    let gap = WindowKind::Session { gap: 5000 };
    harness("k STRING, j INT, v INT, ts TIMESTAMP(3) *ROWTIME*", gap, None, vec![0, 1]).check(
        SESSIONS,
        "+I[a, 2, 2, 1970-01-01T00:00:01, 1970-01-01T00:00:01, 1970-01-01T00:00:06, 1970-01-01T00:00:05.999]
         +I[a, null, 8, 1970-01-01T00:00:04, 1970-01-01T00:00:04, 1970-01-01T00:00:13, 1970-01-01T00:00:12.999]
         +I[a, null, 32, 1970-01-01T00:00:08, 1970-01-01T00:00:04, 1970-01-01T00:00:13, 1970-01-01T00:00:12.999]
         +I[a, 1, 1, 1970-01-01T00:00, 1970-01-01T00:00, 1970-01-01T00:00:14, 1970-01-01T00:00:13.999]
         +I[a, 1, 4, 1970-01-01T00:00:03, 1970-01-01T00:00, 1970-01-01T00:00:14, 1970-01-01T00:00:13.999]
         +I[a, 1, 16, 1970-01-01T00:00:09, 1970-01-01T00:00, 1970-01-01T00:00:14, 1970-01-01T00:00:13.999]
         +I[a, 1, 64, 1970-01-01T00:00:06, 1970-01-01T00:00, 1970-01-01T00:00:14, 1970-01-01T00:00:13.999]",
    );
}

#[test]
fn sessions_of_processing_time_end_with_the_clock() {
    let gap = WindowKind::Session { gap: 5000 };
    harness("k STRING", gap, None, vec![0]).check(
        "+I|a
         @time 3000
         +I|a
         +I|b
         @time 8000
         +I|c",
        "+I[a, 1970-01-01T00:00, 1970-01-01T00:00:08, 1970-01-01T00:00:07.999]
         +I[a, 1970-01-01T00:00, 1970-01-01T00:00:08, 1970-01-01T00:00:07.999]
         +I[b, 1970-01-01T00:00:03, 1970-01-01T00:00:08, 1970-01-01T00:00:07.999]",
    );
}
