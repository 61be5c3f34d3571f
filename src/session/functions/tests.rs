use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::common::ScalarValue;

use crate::aggregates::UserAggregate;
use crate::error::Result;
use crate::session::{Listing, Session, StatementResult};
use crate::types::{DataType, TypeKind};

/// The mean of numbers weighted by integers, as Flink's documentation has it.
#[derive(Debug)]
struct WeightedMean {
    complete: bool,
}

fn int(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int64(value) => *value,
        _ => None,
    }
}

fn change(accumulator: &mut [ScalarValue], row: &[ScalarValue], sign: i64) {
    let (Some(value), Some(weight)) = (int(&row[0]), int(&row[1])) else {
        return;
    };
    for (part, delta) in accumulator.iter_mut().zip([value * weight, weight]) {
        *part = ScalarValue::Int64(int(part).map(|n| n + sign * delta));
    }
}

impl UserAggregate for WeightedMean {
    fn name(&self) -> &str {
        "WeightedMean"
    }

    fn inputs(&self) -> Vec<DataType> {
        vec![TypeKind::BigInt.nullable(), TypeKind::BigInt.nullable()]
    }

    fn returns(&self) -> DataType {
        TypeKind::BigInt.nullable()
    }

    fn accumulator(&self) -> Vec<(DataType, ScalarValue)> {
        let zero = || (TypeKind::BigInt.not_null(), ScalarValue::Int64(Some(0)));
        vec![zero(), zero()]
    }

    fn accumulate(&self, accumulator: &mut [ScalarValue], row: &[ScalarValue]) -> Result<()> {
        change(accumulator, row, 1);
        Ok(())
    }

    fn can_retract(&self) -> bool {
        self.complete
    }

    fn retract(&self, accumulator: &mut [ScalarValue], row: &[ScalarValue]) -> Result<()> {
        change(accumulator, row, -1);
        Ok(())
    }

    fn can_merge(&self) -> bool {
        self.complete
    }

    fn merge(&self, accumulator: &mut [ScalarValue], other: &[ScalarValue]) -> Result<()> {
        for (part, other) in accumulator.iter_mut().zip(other) {
            *part = ScalarValue::Int64(int(part).zip(int(other)).map(|(a, b)| a + b));
        }
        Ok(())
    }

    fn value(&self, accumulator: &[ScalarValue]) -> Result<ScalarValue> {
        let (sum, weight) = (int(&accumulator[0]), int(&accumulator[1]));
        Ok(ScalarValue::Int64(match (sum, weight) {
            (Some(sum), Some(weight)) if weight != 0 => Some(sum / weight),
            _ => None,
        }))
    }
}

fn session(complete: bool) -> Session {
    let mut session = Session::new();
    let functions = session.functions_mut();
    functions.register_aggregate(WeightedMean { complete });
    functions.register_scalar("twice", &[TypeKind::BigInt], TypeKind::BigInt, |args| {
        let numbers = args[0].as_primitive::<Int64Type>();
        Ok(std::sync::Arc::new(numbers.unary::<_, Int64Type>(|n| n * 2)) as ArrayRef)
    });
    functions.register_table(
        "up_to",
        &[TypeKind::BigInt],
        &[("n", TypeKind::BigInt)],
        |args| {
            let numbers = 1..=int(&args[0]).unwrap_or(0);
            Ok(numbers.map(|n| vec![ScalarValue::from(n)]).collect())
        },
    );
    for table in [
        "CREATE TABLE t (k STRING, x BIGINT, w INT) WITH ('connector' = 'changelog', 'data' = '
+I|a|10|1
+I|b|7|\\N
+I|a|40|2
-D|a|10|1')",
        "CREATE TABLE r (x BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
            'connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '
+I|2|2024-01-01T00:00:01
+I|4|2024-01-01T00:00:06
+I|6|2024-01-01T00:00:12')",
    ] {
        session.execute(table).unwrap();
    }
    session
}

fn changes(session: &mut Session, sql: &str) -> Vec<String> {
    session.query(sql).unwrap().collect_changes().unwrap()
}

/// What a statement is refused with, the hint behind it.
fn refusal(session: &mut Session, sql: &str) -> String {
    let error = match session.execute(sql) {
        Ok(StatementResult::Query(mut query)) => match query.collect_changes() {
            Ok(rows) => panic!("{sql} gives {rows:?}"),
            Err(error) => error,
        },
        Ok(_) => panic!("{sql} is accepted"),
        Err(error) => error,
    };
    format!("{error}; hint: {}", error.hint_text().unwrap_or("none"))
}

fn listed(session: &mut Session, sql: &str) -> Listing {
    match session.execute(sql) {
        Ok(StatementResult::Listing(listing)) => listing,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn an_aggregate_of_the_program_takes_rows_back() {
    let mut session = session(true);
    assert_eq!(
        changes(
            &mut session,
            "SELECT k, weightedmean(x, w) AS m FROM t GROUP BY k"
        ),
        [
            "+I[a, 10]",
            "+I[b, null]",
            "-U[a, 10]",
            "+U[a, 30]",
            "-U[a, 30]",
            "+U[a, 40]"
        ]
    );
    // what stands beside it is its own business
    assert_eq!(
        changes(
            &mut session,
            "SELECT WEIGHTEDMEAN(x, 1) FILTER (WHERE x < 40), SUM(x), WEIGHTEDMEAN(DISTINCT w, 1) \
             FROM t WHERE k = 'a'"
        )
        .last()
        .map(String::as_str),
        Some("+U[null, 40, 2]")
    );
}

#[test]
fn an_aggregate_of_the_program_works_in_windows() {
    let mut session = session(true);
    assert_eq!(
        changes(
            &mut session,
            "SELECT window_start, WEIGHTEDMEAN(x, 1) FROM TABLE(HOP(TABLE r, DESCRIPTOR(ts), \
             INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
        ),
        [
            "+I[2023-12-31T23:59:55, 2]",
            "+I[2024-01-01T00:00, 3]",
            "+I[2024-01-01T00:00:05, 5]",
            "+I[2024-01-01T00:00:10, 6]"
        ]
    );
    assert_eq!(
        changes(
            &mut session,
            "SELECT x, WEIGHTEDMEAN(x, 1) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) \
             FROM r"
        ),
        ["+I[2, 2]", "+I[4, 3]", "+I[6, 5]"]
    );
}

#[test]
fn what_an_aggregate_cannot_do_is_refused() {
    let mut session = session(false);
    let text = refusal(&mut session, "SELECT WEIGHTEDMEAN(x, w) FROM t");
    assert!(
        text.contains("WeightedMean cannot take rows back"),
        "{text}"
    );
    let text = refusal(&mut session, "SELECT WEIGHTEDMEAN(k, w) FROM t");
    assert!(
        text.contains("Cannot apply 'WEIGHTEDMEAN' to arguments of type"),
        "{text}"
    );
    let text = refusal(&mut session, "SELECT WEIGHTEDMEAN(x) FROM t");
    assert!(text.contains("WEIGHTEDMEAN(<BIGINT>)"), "{text}");
    let text = refusal(&mut session, "SELECT twice('a') FROM t");
    assert!(text.contains("Cannot apply 'TWICE'"), "{text}");
}

#[test]
fn functions_of_the_program_are_listed_and_dropped() {
    let mut session = session(true);
    let user = listed(&mut session, "SHOW USER FUNCTIONS").lines();
    assert_eq!(user, ["twice", "up_to", "weightedmean"]);
    let kind = listed(&mut session, "DESCRIBE FUNCTION EXTENDED up_to").lines();
    assert!(kind.contains(&"+I[kind, TABLE]".to_string()), "{kind:?}");

    let text = refusal(&mut session, "DROP FUNCTION twice");
    assert!(
        text.contains("doesn't exist") || text.contains("does not exist"),
        "{text}"
    );
    assert!(
        text.contains("DROP TEMPORARY SYSTEM FUNCTION twice"),
        "{text}"
    );
    for name in ["twice", "up_to", "WeightedMean"] {
        let sql = format!("DROP TEMPORARY SYSTEM FUNCTION {name}");
        session.execute(&sql).unwrap();
    }
    assert_eq!(listed(&mut session, "SHOW USER FUNCTIONS").lines().len(), 0);
    let text = refusal(&mut session, "SELECT WEIGHTEDMEAN(x, w) FROM t");
    assert!(
        text.contains("No match found for function signature"),
        "{text}"
    );
    let text = refusal(&mut session, "SELECT n FROM t, LATERAL TABLE(up_to(x))");
    assert!(
        text.contains("No match found for function signature"),
        "{text}"
    );
}

#[test]
fn a_function_of_the_program_hides_a_builtin_until_it_is_dropped() {
    let mut session = session(true);
    session
        .functions_mut()
        .register_scalar("sum", &[TypeKind::BigInt], TypeKind::BigInt, |args| {
            Ok(std::sync::Arc::clone(&args[0]))
        });
    assert_eq!(changes(&mut session, "SELECT SUM(x) FROM r").len(), 3);
    session
        .execute("DROP TEMPORARY SYSTEM FUNCTION `sum`")
        .unwrap();
    let sum = changes(&mut session, "SELECT SUM(x) FROM r");
    assert_eq!(sum.last().map(String::as_str), Some("+U[12]"));
}

#[test]
fn a_class_of_java_is_declared_but_not_run() {
    let mut session = session(true);
    session
        .execute("CREATE FUNCTION IF NOT EXISTS f AS 'com.example.F' LANGUAGE JAVA")
        .unwrap();
    let user = listed(&mut session, "SHOW USER FUNCTIONS").lines();
    assert!(user.contains(&"f".to_string()), "{user:?}");
    for sql in [
        "SELECT f(x) FROM t",
        "SELECT n FROM t, LATERAL TABLE(f(x))",
        "CREATE TEMPORARY FUNCTION g AS 'com.example.G'",
        "CREATE TEMPORARY SYSTEM FUNCTION g AS 'com.example.G'",
        "CREATE TEMPORARY SYSTEM FUNCTION g AS 'module.g' LANGUAGE PYTHON",
    ] {
        let text = refusal(&mut session, sql);
        assert!(text.contains("cannot load"), "{sql}: {text}");
        assert!(!text.contains("hint: none"), "{sql}: {text}");
    }
    session.execute("DROP FUNCTION f").unwrap();
    session.execute("DROP FUNCTION IF EXISTS f").unwrap();
    session
        .execute("DROP TEMPORARY SYSTEM FUNCTION IF EXISTS g")
        .unwrap();
}
