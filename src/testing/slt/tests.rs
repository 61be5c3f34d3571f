use super::*;

fn failures(text: &str) -> Vec<Failure> {
    let file = SltFile {
        path: "t.slt".into(),
        text: text.into(),
    };
    file.run(Mode::Plain).expect("the file is well-formed")
}

const TABLE: &str = "statement ok
CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'changelog', 'data' = '+I|a|1
+I|b|\\N
+I|a|2')
";

#[test]
fn tables_and_changes_that_are_right_pass() {
    let text = format!(
        "{TABLE}
query TI rowsort
SELECT k, SUM(v) FROM t GROUP BY k
----
b NULL
a 3

query TI retract
SELECT k, SUM(v) FROM t WHERE k = 'a' GROUP BY k
----
+I[a, 1]
-U[a, 1]
+U[a, 3]

statement error Column 'x' not found
SELECT x FROM t
"
    );
    let failures = failures(&text);
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let text = format!(
        "{TABLE}
query T
SELECT k FROM t
----
a
b

statement error nothing of the kind
SELECT x FROM t

statement error
SELECT k FROM t
"
    );
    let failures = failures(&text);
    let places: Vec<_> = failures.iter().map(|f| f.place.as_str()).collect();
    assert_eq!(places, ["t.slt:6", "t.slt:12", "t.slt:15"]);
    assert_eq!(
        failures[0].rows,
        Some((
            vec!["a".to_string(), "b".into()],
            vec!["a".to_string(), "a".into(), "b".into()]
        ))
    );
}

#[test]
fn rows_can_be_fed_between_queries() {
    let text = "statement ok
CREATE TABLE m (k INT) WITH ('connector' = 'memory')

statement ok
INSERT INTO m VALUES (1), (2)

query I rowsort
SELECT COUNT(*) FROM m
----
2

statement ok
INSERT INTO m VALUES (3)

query I rowsort
SELECT COUNT(*) FROM m
----
3
";
    let failures = failures(text);
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn a_script_runs_with_its_tables_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "CREATE TABLE orders (id INT, price INT) WITH ('connector' = 'kafka');
CREATE TABLE totals (id INT, n BIGINT, s INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc');
INSERT INTO totals SELECT id, COUNT(*), SUM(price) FROM orders GROUP BY id;
";
    fs::write(folder.path().join("prod.sql"), script).expect("written");
    let test = "replace table orders
1|10
+I|1|5

replace table totals

include prod.sql

query III rowsort
SELECT * FROM totals
----
1 2 15
";
    let path = folder.path().join("t.slt");
    fs::write(&path, test).expect("written");
    let failures = SltFile::read(&path)
        .and_then(|f| f.run(Mode::Plain))
        .expect("runs");
    assert!(failures.is_empty(), "{failures:?}");
}
