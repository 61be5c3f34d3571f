use crate::session::Session;
use crate::sql::FlinkParser;

/// uid and signature of all stateful nodes of INSERT INTO o `query`, the sources' left out.
fn state(query: &str) -> Vec<(String, String)> {
    let mut session = Session::new();
    for ddl in [
        "CREATE TABLE t (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH \
         ('connector' = 'datagen')",
        "CREATE TABLE d (k STRING, name STRING) WITH ('connector' = 'datagen')",
        "CREATE TABLE o (a STRING, b BIGINT) WITH ('connector' = 'blackhole')",
    ] {
        session.execute(ddl).unwrap();
    }
    let statement = FlinkParser::parse_statement(&format!("INSERT INTO o {query}")).unwrap();
    let lines = session.explain_state(&statement).unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("  "), found.last_mut()) {
            (Some(part), Some((_, signature))) => *signature += &format!("{part}\n"),
            _ => found.push((
                line.replace("default_catalog.default_database.", ""),
                String::new(),
            )),
        }
    }
    found.retain(|(uid, _)| !uid.contains("TableSourceScan") && !uid.contains("WatermarkAssigner"));
    found
}

fn uids(query: &str) -> Vec<String> {
    state(query).into_iter().map(|(uid, _)| uid).collect()
}

#[test]
fn the_uid_names_sink_noun_keys_and_tables() {
    let query = "SELECT d.k, COUNT(*) FROM t JOIN d ON t.k = d.k GROUP BY d.k";
    assert_eq!(
        uids(query),
        ["o/Join(k = k)[t, d]", "o/GroupAggregate(right.k)[t, d]"]
    );
}

#[test]
fn filters_projections_and_aliases_change_nothing() {
    let plain = state("SELECT k, SUM(v) FROM t GROUP BY k");
    assert_eq!(plain[0].0, "o/GroupAggregate(k)[t]");
    for query in [
        "SELECT UPPER(k), SUM(v) * 2 FROM t GROUP BY k",
        "SELECT k, SUM(v) FROM t WHERE v > 3 GROUP BY k HAVING SUM(v) > 7",
        "SELECT x, SUM(y) FROM (SELECT v AS y, k AS x FROM t) GROUP BY x",
    ] {
        assert_eq!(state(query), plain, "{query}");
    }
}

#[test]
fn other_keys_are_another_operator_and_other_aggregates_another_signature() {
    let upper = state("SELECT UPPER(k), SUM(v) FROM t GROUP BY UPPER(k)");
    let lower = state("SELECT LOWER(k), SUM(v) FROM t GROUP BY LOWER(k)");
    assert_ne!(upper[0].0, lower[0].0);
    let plain = state("SELECT k, SUM(v) FROM t GROUP BY k");
    for query in [
        "SELECT k, SUM(v + 1) FROM t GROUP BY k",
        "SELECT k, SUM(DISTINCT v) FROM t GROUP BY k",
        "SELECT k, SUM(v) FILTER (WHERE v > 3) FROM t GROUP BY k",
        "SELECT k, MAX(v) FROM t GROUP BY k",
        "SELECT k, SUM(CAST(v AS BIGINT)) FROM t GROUP BY k",
    ] {
        let changed = state(query);
        assert_eq!(changed[0].0, plain[0].0, "{query}");
        assert_ne!(changed[0].1, plain[0].1, "{query}");
    }
}

#[test]
fn an_inner_join_may_change_its_condition_and_an_outer_join_may_not() {
    let join = |kind: &str, condition: &str| {
        state(&format!(
            "SELECT t.k, CAST(v AS BIGINT) FROM t {kind} JOIN d ON t.k = d.k {condition}"
        ))
    };
    let other = "AND CHAR_LENGTH(d.name) > v";
    let another = "AND CHAR_LENGTH(d.name) < v";
    assert_eq!(join("", other), join("", another));
    let (left, changed) = (join("LEFT", other), join("LEFT", another));
    assert_eq!(left[0].0, changed[0].0);
    assert_ne!(left[0].1, changed[0].1);
}

#[test]
fn equal_operators_are_told_apart_by_their_way_to_the_sink() {
    let query = "SELECT a.k, a.n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS a \
                 JOIN (SELECT k, SUM(v) AS s FROM t GROUP BY k) AS b ON a.k = b.k";
    let expected = [
        "o/GroupAggregate(k)[t]@Join.1",
        "o/GroupAggregate(k)[t]@Join.2",
        "o/Join(k = k)[t]",
    ];
    assert_eq!(uids(query), expected);
    let query = "SELECT k, COUNT(*) FROM t GROUP BY k UNION ALL SELECT k, SUM(v) FROM t GROUP BY k";
    let expected = [
        "o/GroupAggregate(k)[t]@Union.1",
        "o/GroupAggregate(k)[t]@Union.2",
    ];
    assert_eq!(uids(query), expected);
}

#[test]
fn what_is_shared_has_the_names_of_all_and_no_ways() {
    let query = "SELECT a.k, a.n + b.n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS a \
                 JOIN (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS b ON a.k = b.k";
    assert_eq!(uids(query), ["o/GroupAggregate(k)[t]", "o/Join(k = k)[t]"]);
    let mut session = Session::new();
    for ddl in [
        "CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'datagen')",
        "CREATE TABLE o (k STRING) WITH ('connector' = 'blackhole')",
        "CREATE TABLE p (v INT) WITH ('connector' = 'blackhole')",
    ] {
        session.execute(ddl).unwrap();
    }
    let set = "EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT k FROM t; \
               INSERT INTO p SELECT v FROM t; END";
    let statement = FlinkParser::parse_statement(set).unwrap();
    let lines = session.explain_state(&statement).unwrap();
    let short: Vec<String> = lines
        .iter()
        .map(|line| line.replace("default_catalog.default_database.", ""))
        .collect();
    let expected = [
        "o/TableSourceScan[t] & p/TableSourceScan[t]",
        "  connector: datagen",
    ];
    assert_eq!(short, expected);
}

#[test]
fn windows_and_orders_are_part_of_the_signature() {
    let window = |size: u32| {
        state(&format!(
            "SELECT k, COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '{size}' MINUTE) \
             GROUP BY k, window_start, window_end"
        ))
    };
    assert_eq!(window(1)[0].0, window(2)[0].0);
    assert_ne!(window(1)[0].1, window(2)[0].1);
    let top = |order: &str, n: u32| {
        state(&format!(
            "SELECT k, n FROM (SELECT k, CAST(v AS BIGINT) AS n, ROW_NUMBER() OVER (PARTITION BY k \
             ORDER BY v {order}) AS rn FROM t) WHERE rn <= {n}"
        ))
    };
    assert_eq!(top("DESC", 3)[0].0, "o/Rank(k)[t]");
    assert_ne!(top("DESC", 3)[0].1, top("ASC", 3)[0].1);
    assert_ne!(top("DESC", 3)[0].1, top("DESC", 4)[0].1);
}
