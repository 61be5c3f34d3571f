use super::*;
use crate::operators::testing::{Harness, random_events, schema};

fn harness(columns: &'static str, spec: DeduplicateSpec) -> Harness {
    Harness::boxed(columns, columns, move |context| deduplicate(&spec, context))
}

fn spec(columns: &str, key: usize, order: DeduplicateOrder, keep: Keep) -> DeduplicateSpec {
    DeduplicateSpec {
        schema: schema(columns),
        key: vec![key],
        order,
        keep,
        insert_only: keep == Keep::FirstRow,
        generate_update_before: keep == Keep::LastRow,
        generate_insert: true,
        ttl_ms: None,
        mini_batch: None,
    }
}

const E: &str = "k STRING, v INT";
const ARRIVALS: &str = "+I|a|1
    +I|a|2
    +I|\\N|3
    +I|b|4
    +I|a|2
    +I|a|2
    +I|\\N|5";

#[test]
fn the_first_by_arrival() {
    harness(E, spec(E, 0, DeduplicateOrder::Proctime, Keep::FirstRow))
        .check(ARRIVALS, "+I[a, 1]\n+I[null, 3]\n+I[b, 4]");
}

#[test]
fn the_last_by_arrival_repeats_equal_rows() {
    harness(E, spec(E, 0, DeduplicateOrder::Proctime, Keep::LastRow)).check(
        ARRIVALS,
        "+I[a, 1]
         -U[a, 1]
         +U[a, 2]
         +I[null, 3]
         +I[b, 4]
         -U[a, 2]
         +U[a, 2]
         -U[a, 2]
         +U[a, 2]
         -U[null, 3]
         +U[null, 5]",
    );
}

#[test]
fn a_reader_that_knows_the_key_gets_no_old_rows() {
    let mut spec = spec(E, 0, DeduplicateOrder::Proctime, Keep::LastRow);
    spec.generate_update_before = false;
    harness(E, spec.clone()).check("+I|a|1\n+I|a|2\n+I|b|3", "+I[a, 1]\n+U[a, 2]\n+I[b, 3]");
    spec.generate_insert = false;
    harness(E, spec).check("+I|a|1\n+I|a|2\n+I|b|3", "+U[a, 1]\n+U[a, 2]\n+U[b, 3]");
}

const T: &str = "id INT, k STRING, ts TIMESTAMP(3) *ROWTIME*";
const EVENTS: &str = "+I|1|a|2025-03-01T10:00:05
    @wm 1740823202000
    +I|2|a|2025-03-01T10:00:04
    +I|3|a|2025-03-01T10:00:06
    @wm 1740823203000
    +I|4|b|2025-03-01T10:00:06
    +I|5|b|2025-03-01T10:00:06
    +I|6|\\N|2025-03-01T10:00:07
    @wm 1740823204000
    +I|7|\\N|2025-03-01T10:00:20
    @wm 1740823217000
    +I|8|a|2025-03-01T10:00:01
    +I|9|c|2025-03-01T10:00:01
    +I|10|a|2025-03-01T10:00:06
    @end";

#[test]
fn the_first_by_event_time_waits_for_the_watermark() {
    harness(T, spec(T, 1, DeduplicateOrder::Rowtime(2), Keep::FirstRow)).check(
        EVENTS,
        "+I[2, a, 2025-03-01T10:00:04]
         +I[4, b, 2025-03-01T10:00:06]
         +I[6, null, 2025-03-01T10:00:07]",
    );
}

#[test]
fn the_last_by_event_time_is_updated_also_by_late_rows() {
    harness(T, spec(T, 1, DeduplicateOrder::Rowtime(2), Keep::LastRow)).check(
        EVENTS,
        "+I[1, a, 2025-03-01T10:00:05]
         -U[1, a, 2025-03-01T10:00:05]
         +U[3, a, 2025-03-01T10:00:06]
         +I[4, b, 2025-03-01T10:00:06]
         -U[4, b, 2025-03-01T10:00:06]
         +U[5, b, 2025-03-01T10:00:06]
         +I[6, null, 2025-03-01T10:00:07]
         -U[6, null, 2025-03-01T10:00:07]
         +U[7, null, 2025-03-01T10:00:20]
         +I[9, c, 2025-03-01T10:00:01]
         -U[3, a, 2025-03-01T10:00:06]
         +U[10, a, 2025-03-01T10:00:06]",
    );
}

#[test]
fn what_has_expired_is_first_again() {
    let script = "+I|a|1
        @time 4000
        +I|a|2
        @time 5000
        +I|a|3
        +I|a|4
        @time 9500
        +I|a|5
        +I|b|6
        @time 30000
        +I|a|7";
    let mut spec = spec(E, 0, DeduplicateOrder::Proctime, Keep::FirstRow);
    spec.ttl_ms = Some(5000);
    harness(E, spec.clone()).check(script, "+I[a, 1]\n+I[a, 3]\n+I[b, 6]\n+I[a, 7]");
    spec.keep = Keep::LastRow;
    harness(E, spec.clone()).check(
        script,
        "+I[a, 1]\n+U[a, 2]\n+U[a, 3]\n+U[a, 4]\n+U[a, 5]\n+I[b, 6]\n+I[a, 7]",
    );
    spec.generate_update_before = true;
    harness(E, spec).check(
        script,
        "+I[a, 1]
         -U[a, 1]
         +U[a, 2]
         -U[a, 2]
         +U[a, 3]
         -U[a, 3]
         +U[a, 4]
         -U[a, 4]
         +U[a, 5]
         +I[b, 6]
         +I[a, 7]",
    );
}

#[test]
fn no_row_is_lost_by_copies_of_changes() {
    for keep in [Keep::FirstRow, Keep::LastRow] {
        let spec = spec(T, 1, DeduplicateOrder::Rowtime(2), keep);
        let harness = harness(T, spec);
        for seed in 0..3 {
            let mut id = 0;
            let script = random_events(seed, 150, |dice, time| {
                id += 1;
                format!("+I|{id}|k{}|{time}", dice.below(30))
            });
            harness.check_copies(&script, 12);
        }
    }
}
