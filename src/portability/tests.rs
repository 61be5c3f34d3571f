//! What is named, and that nothing else is.

use super::*;

fn check_with(sql: &str, provided: &[&str]) -> Vec<String> {
    let provided = provided.iter().map(ToString::to_string);
    let mut checker = Checker::new(Session::new(), provided);
    let mut lines = Vec::new();
    for Finding { error, note } in checker.check(sql) {
        let text = error.span().and_then(|s| sql.get(s.start..s.end));
        let line = error
            .span()
            .map_or(0, |s| sql[..s.start].matches('\n').count() + 1);
        let kind = if note { "note" } else { "missing" };
        let message = first_line(error.message());
        lines.push(format!("{line} {kind} [{}] {message}", text.unwrap_or("?")));
    }
    lines
}

fn check(sql: &str) -> Vec<String> {
    check_with(sql, &[])
}

const TABLES: &str =
    "CREATE TABLE g (k INT, v INT, t AS PROCTIME()) WITH ('connector' = 'datagen');
CREATE TABLE b (k INT, v BIGINT) WITH ('connector' = 'blackhole');
";

#[test]
fn a_script_of_flink_has_no_findings() {
    let sql = format!(
        "{TABLES}SET 'table.exec.state.ttl' = '1 h';
        SET 'taskmanager.numberOfTaskSlots' = '4';
        CREATE VIEW v AS SELECT k, SUM(v) AS s FROM g GROUP BY k;
        CREATE TEMPORARY TABLE f (a STRING) WITH ('connector' = 'filesystem', 'path' = '/tmp/x',
            'format' = 'csv', 'csv.null-literal' = 'n', 'sink.parallelism' = '2',
            'scan.watermark.emit.strategy' = 'on-event', 'partition.time-extractor.kind' = 'default');
        INSERT INTO b SELECT k, s FROM v;
        BEGIN STATEMENT SET;
        INSERT INTO b SELECT k, CARDINALITY(ARRAY[1, 2]) FROM g;
        INSERT INTO b SELECT k, EXTRACT(DAY FROM DATE '2020-01-01') FROM g;
        END;"
    );
    assert_eq!(check(&sql), Vec::<String>::new());
}

#[test]
fn connectors_options_and_values_are_named_with_their_places() {
    let sql = "CREATE TABLE m (a INT) WITH (
  'connector' = 'memory',
  'name' = 'x');
CREATE TABLE g (a INT) WITH ('connector' = 'datagen',
  'seed' = '1', 'fields.a.min' = '1');
CREATE TABLE f (a INT) WITH ('connector' = 'filesystem', 'path' = '/tmp/x', 'format' = 'csv',
  'lookup.cache' = 'FULL', 'scan.parallelism' = '2');
SET 'execution.checkpointing.mode' = 'AT_MOST_ONCE';
SET 'state.memory.limit' = '1 gb';";
    assert_eq!(
        check(sql),
        [
            "2 missing ['connector' = 'memory'] the connector 'memory'",
            "5 missing ['seed' = '1'] the option 'seed' of the connector 'datagen'",
            "7 missing ['lookup.cache' = 'FULL'] the option 'lookup.cache' of the connector 'filesystem'",
            "7 missing ['scan.parallelism' = '2'] the option 'scan.parallelism' of the connector 'filesystem'",
            "8 missing ['execution.checkpointing.mode' = 'AT_MOST_ONCE'] the value 'AT_MOST_ONCE' of the setting 'execution.checkpointing.mode'",
            "9 note ['state.memory.limit' = '1 gb'] the setting 'state.memory.limit' is Ebbflow's: it has no effect in Flink",
        ]
    );
    assert!(
        check_with(sql, &["memory"])
            .iter()
            .all(|line| !line.contains("'memory'"))
    );
}

#[test]
fn options_of_hints_and_alter_table_are_checked() {
    let sql = format!(
        "{TABLES}INSERT INTO b SELECT k, v FROM g /*+ OPTIONS('seed' = '7') */;\nALTER TABLE g SET ('seed' = '8');"
    );
    assert_eq!(
        check(&sql),
        [
            "3 missing [g] the option 'seed' of the connector 'datagen'",
            "4 missing ['seed' = '8'] the option 'seed' of the connector 'datagen'",
        ]
    );
}

#[test]
fn functions_that_flink_does_not_have_are_named_all() {
    let sql = format!("{TABLES}INSERT INTO b SELECT mine(k), other(v) + ABS(k) FROM g;");
    assert_eq!(
        check(&sql),
        [
            "3 missing [mine] the function mine",
            "3 missing [other] the function other",
        ]
    );
    let declared = format!(
        "{TABLES}CREATE FUNCTION mine AS 'org.example.Mine' LANGUAGE JAVA;
        INSERT INTO b SELECT mine(k), v FROM g;"
    );
    let found = check(&declared);
    assert!(
        found.iter().all(|line| line.contains(" note ")),
        "{found:?}"
    );
}

#[test]
fn statements_for_batches_and_extensions_of_queries_are_named() {
    let sql = format!(
        "{TABLES}CREATE TABLE side (k INT, s STRING) WITH ('connector' = 'filesystem',
            'path' = '/tmp/side', 'format' = 'csv');
        INSERT INTO b SELECT k, SUM(s) OVER (PARTITION BY k ORDER BY s ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
            FROM (SELECT k, SUM(v) AS s FROM g GROUP BY k);
        INSERT INTO b SELECT g.k, v FROM g JOIN side FOR SYSTEM_TIME AS OF g.t AS s ON g.k = s.k;
        DELETE FROM b WHERE k = 1;"
    );
    assert_eq!(
        check(&sql),
        [
            "5 missing [SUM] OVER with a frame of rows over a table that is updated",
            "7 missing [side] a lookup join with a table of the connector 'filesystem'",
            "8 missing [DELETE] DELETE in streaming mode",
        ]
    );
}

#[test]
fn what_flink_has_elsewhere_is_a_note_that_comes_once() {
    let sql = "CREATE TABLE j (a INT) WITH ('connector' = 'jdbc', 'url' = 'x');
CREATE TABLE p (a INT) WITH ('connector' = 'filesystem', 'path' = '/tmp/x', 'format' = 'parquet');
CREATE TABLE q (a INT) WITH ('connector' = 'filesystem', 'path' = '/tmp/x', 'format' = 'parquet');
CREATE TABLE b (a INT) WITH ('connector' = 'blackhole');
INSERT INTO b SELECT a FROM j;";
    assert_eq!(
        check(sql),
        [
            "1 note ['connector' = 'jdbc'] the connector 'jdbc' is not in Flink's download, and its options are not known here",
            "2 note ['format' = 'parquet'] the format 'parquet' is in Flink's artifact flink-sql-parquet",
            "5 note [INSERT] this statement is checked by its names alone: what it uses of the cluster's is not here",
        ]
    );
    let with_jar = format!("ADD JAR '/lib/flink-sql-parquet-2.3.0.jar';\n{sql}");
    assert!(!check(&with_jar).iter().any(|line| line.contains("parquet")));
}

#[test]
fn what_flink_refuses_too_is_refused() {
    let sql = format!("{TABLES}INSERT INTO b SELECT nope, v FROM g;\nSELEC 1;");
    let found = check(&sql);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("3 missing [nope] "), "{found:?}");
}

/// Scripts that Flink has run: what it took, we must not say that it lacks.
#[test]
fn what_flink_has_run_has_no_findings() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql-tests/conformance");
    let pattern = format!("{folder}/**/*.sql");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for path in glob::glob(&pattern).expect("a pattern").flatten() {
        let sql = std::fs::read_to_string(&path).expect("a script");
        let Ok(transcript) = std::fs::read_to_string(path.with_extension("out")) else {
            continue;
        };
        // the connectors that the oracle was given, and its functions
        let provided = ["changelog", "lookup-csv", "nexmark"].map(str::to_string);
        let mut checker = Checker::new(Session::new(), provided);
        for Finding { error, note } in checker.check(&sql) {
            // Flink looks at the options of a table when it is used
            let nobodys = error.hint_text().is_some_and(|h| h.starts_with("neither "));
            let named = error.kind() == ErrorKind::Portability && !note && !nobodys;
            let place = error.span().map_or(0, |span| span.start);
            let statement = Script::split(&sql).all().find(|s| s.span().end > place);
            let title = statement.map_or("", |s| first_line(s.text));
            if named && !was_refused(&transcript, title) {
                wrong.push(format!(
                    "{}: {} in {title}",
                    path.display(),
                    error.message()
                ));
            }
        }
        checked += 1;
    }
    assert!(checked > 50, "only {checked} scripts were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether the transcript has an error below the statement that begins with `title`.
fn was_refused(transcript: &str, title: &str) -> bool {
    let mut lines = transcript.lines();
    while let Some(line) = lines.next() {
        if line
            .strip_prefix("> ")
            .is_some_and(|rest| rest.starts_with(title))
        {
            let mut below = lines
                .clone()
                .skip_while(|l| !l.starts_with("> ") && !l.starts_with("ERROR"));
            if below.next().is_some_and(|l| l.starts_with("ERROR")) {
                return true;
            }
        }
    }
    false
}
