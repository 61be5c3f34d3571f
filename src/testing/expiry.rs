//! State with a time to live, in whole jobs: what has expired is freed, and a withdrawal that comes
//! later is dropped and counted.

use std::sync::Arc;

use datafusion::common::ScalarValue;

use crate::connectors::registry::ConnectorContext;
use crate::runtime::clock::{ManualClock, monotonic_ns};
use crate::runtime::metrics::OperatorMetrics;
use crate::session::{Query, Session};

/// Rows long enough for the slowest machine.
const PATIENCE_NS: u64 = 60_000_000_000;

fn sum(query: &Query, counter: impl Fn(&OperatorMetrics) -> u64) -> u64 {
    let metrics = query.job().metrics().iter();
    metrics.map(|vertex| counter(&vertex.metrics)).sum()
}

fn wait_until(what: &str, sql: &str, mut holds: impl FnMut() -> bool) {
    let start = monotonic_ns();
    while !holds() {
        assert!(monotonic_ns() - start < PATIENCE_NS, "{sql}: {what}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Runs a query over `a` and `b` until its state has expired. With `withdraws` a row of `a` is taken
/// back after that.
fn expires(sql: &str, mode: &str, ttl: Option<&str>, withdraws: bool) {
    let clock = Arc::new(ManualClock::new(1000));
    let mut session = Session::with_context(ConnectorContext {
        clock: Arc::clone(&clock) as _,
        ..ConnectorContext::default()
    });
    for table in ["a", "b"] {
        let ddl = format!(
            "CREATE TABLE {table} (id INT, k INT, v INT, pt AS PROCTIME()) WITH ('connector' = \
             'memory', 'changelog-mode' = '{mode}')"
        );
        session.execute(&ddl).unwrap();
    }
    if let Some(ttl) = ttl {
        session.set("table.exec.state.ttl", ttl).unwrap();
    }
    let query = session.query(sql).unwrap();
    let row = |id: i32| {
        [id, id % 3, id]
            .map(|n| ScalarValue::Int32(Some(n)))
            .to_vec()
    };
    let mut writers = ["a", "b"].map(|table| session.table_writer(table).unwrap());
    for writer in &mut writers {
        writer.insert((1..10).map(row).collect()).unwrap();
    }
    let state = || sum(&query, |m| m.state_rows.get());
    wait_until("has state", sql, || state() > 0);
    // rows that are still on their way count from when they arrive
    let mut now = 500_000;
    wait_until("frees its state", sql, || {
        now += 10_000;
        clock.set(now);
        state() == 0
    });
    if withdraws {
        writers[0].retract(vec![row(4)]).unwrap();
        let dropped = || sum(&query, |m| m.inconsistent_dropped.get());
        wait_until("counts the late withdrawal", sql, || dropped() == 1);
        assert_eq!(state(), 0, "{sql}");
    }
    query.stop();
}

#[test]
fn expired_state_is_freed_and_late_withdrawals_are_counted() {
    for sql in [
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM a GROUP BY k",
        "SELECT k, COUNT(DISTINCT v) AS n, MAX(v) AS m FROM a GROUP BY k",
        "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k",
        "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v",
        "SELECT a.id FROM a WHERE a.k IN (SELECT k FROM b)",
        "SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM a) \
         WHERE n <= 2",
    ] {
        expires(sql, "I,UB,UA,D", Some("1 s"), true);
    }
}

#[test]
fn expired_state_of_input_that_only_grows_is_freed() {
    for sql in [
        "SELECT DISTINCT k FROM a",
        "SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM a) \
         WHERE n <= 2",
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt) AS n FROM a) WHERE \
         n = 1",
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt DESC) AS n FROM a) \
         WHERE n = 1",
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY pt ROWS BETWEEN UNBOUNDED PRECEDING AND \
         CURRENT ROW) AS s FROM a",
    ] {
        expires(sql, "I", Some("1 s"), false);
    }
}

#[test]
fn a_hint_gives_one_query_a_time_to_live() {
    for sql in [
        "SELECT /*+ STATE_TTL('a' = '1 s') */ k, COUNT(*) AS n FROM a GROUP BY k",
        "SELECT /*+ STATE_TTL('x' = '1 s', 'y' = '2 s') */ x.id, y.v FROM a AS x JOIN b AS y ON x.k = \
         y.k",
    ] {
        expires(sql, "I,UB,UA,D", None, true);
    }
}
