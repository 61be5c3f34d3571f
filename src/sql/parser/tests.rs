use proptest::prelude::*;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SetExpr};

use super::super::ast::{AlterTableAction, ColumnKind, TableElement};
use super::super::span_of;
use super::*;

/// The expression with every operator's operands in parentheses.
fn shape(expr: &Expr) -> String {
    match expr {
        Expr::BinaryOp { left, op, right } => format!("({} {op} {})", shape(left), shape(right)),
        Expr::UnaryOp { op, expr } => format!("({op} {})", shape(expr)),
        Expr::IsNull(e) => format!("({} IS NULL)", shape(e)),
        Expr::Between {
            expr, low, high, ..
        } => format!("({} BETWEEN {} {})", shape(expr), shape(low), shape(high)),
        Expr::Nested(e) => shape(e),
        Expr::Function(f) => match &f.args {
            FunctionArguments::List(list) => {
                let args = list.args.iter().map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => shape(e),
                    other => other.to_string(),
                });
                format!("{}({})", f.name, args.collect::<Vec<_>>().join(", "))
            }
            _ => f.to_string(),
        },
        other => other.to_string(),
    }
}

#[test]
fn operators_bind_as_in_calcite() {
    for (sql, expected) in [
        ("a OR b AND NOT c = d", "(a OR (b AND (NOT (c = d))))"),
        ("NOT a IS NULL", "(NOT (a IS NULL))"),
        ("a = b IS NULL", "((a = b) IS NULL)"),
        ("a + b || c * d - e", "((a + ((b || c) * d)) - e)"),
        ("-a * b", "((- a) * b)"),
        ("a LIKE b || c = d", "(LIKE(a, (b || c)) = d)"),
        (
            "a BETWEEN b AND c + 1 AND d",
            "((a BETWEEN b (c + 1)) AND d)",
        ),
        ("a NOT LIKE 'x' ESCAPE '!'", "(NOT LIKE(a, 'x', '!'))"),
        ("a[1][2] + 1", "(ITEM(ITEM(a, 1), 2) + 1)"),
    ] {
        let expr = FlinkParser::parse_expr(sql).expect(sql);
        assert_eq!(shape(&expr), expected, "{sql}");
    }
}

#[test]
fn call_forms_become_plain_calls() {
    for (sql, expected) in [
        ("EXTRACT(DAY FROM x)", "EXTRACT('DAY', x)"),
        ("CEIL(x TO month)", "CEIL(x, 'MONTH')"),
        ("FLOOR(x)", "FLOOR(x)"),
        (
            "TIMESTAMPADD(SQL_TSI_DAY, 1, x)",
            "TIMESTAMPADD('DAY', 1, x)",
        ),
        ("TRIM(x)", "TRIM('BOTH', ' ', x)"),
        ("TRIM(LEADING 'a' FROM x)", "TRIM('LEADING', 'a', x)"),
        ("POSITION('a' IN x)", "POSITION('a', x)"),
        ("OVERLAY(x PLACING y FROM 1 FOR 2)", "OVERLAY(x, y, 1, 2)"),
        ("SUBSTRING(x FROM 2)", "SUBSTRING(x, 2)"),
        ("SUBSTRING(x, 2, 3)", "SUBSTRING(x, 2, 3)"),
        ("x IS JSON ARRAY", "IS JSON(x, 'ARRAY')"),
        ("x SIMILAR TO 'a'", "SIMILAR TO(x, 'a')"),
        ("(a, b) OVERLAPS (c, d)", "OVERLAPS(a, b, c, d)"),
        (
            "JSON_VALUE(j, '$.a' RETURNING INT DEFAULT 1 ON EMPTY ERROR ON ERROR)",
            "JSON_VALUE(j, '$.a', 'INTEGER', 'DEFAULT', 1, 'ERROR', NULL)",
        ),
        (
            "JSON_QUERY(j, 'p' WITH CONDITIONAL ARRAY WRAPPER EMPTY OBJECT ON ERROR)",
            "JSON_QUERY(j, 'p', 'STRING', 'CONDITIONAL', 'NULL', 'EMPTY OBJECT')",
        ),
        (
            "JSON_OBJECT(KEY 'a' VALUE 1, 'b' VALUE 2 ABSENT ON NULL)",
            "JSON_OBJECT('ABSENT', 'a', 1, 'b', 2)",
        ),
        ("JSON_ARRAY(1, 2)", "JSON_ARRAY('ABSENT', 1, 2)"),
        (
            "JSON_EXISTS(j, 'p' ERROR ON ERROR)",
            "JSON_EXISTS(j, 'p', 'ERROR')",
        ),
        ("MAP['a', 1]", "MAP('a', 1)"),
        ("(a - b) DAY TO SECOND", "MINUS_DATE(a, b, 'DAY TO SECOND')"),
    ] {
        let expr = FlinkParser::parse_expr(sql).expect(sql);
        assert_eq!(shape(&expr), expected, "{sql}");
    }
}

#[test]
fn ddl_keeps_text_and_place() {
    let sql = "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b AS a  + 1 COMMENT 'x', \
               m STRING METADATA FROM 'k' VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)";
    let Ok(Statement::CreateTable(table)) = FlinkParser::parse_statement(sql) else {
        panic!("no table");
    };
    assert!(matches!(&table.elements[1], TableElement::Key(k) if k.enforced == Some(false)));
    let TableElement::Column(computed) = &table.elements[2] else {
        panic!("no column");
    };
    let ColumnKind::Computed(expr) = &computed.kind else {
        panic!("not computed");
    };
    assert_eq!(expr.text, "a  + 1");
    assert_eq!(&sql[expr.span.start..expr.span.end], expr.text);
    assert!(matches!(&table.elements[4], TableElement::Watermark(w) if w.column[0].value == "ts"));
}

#[test]
fn alter_table_takes_one_element_or_a_list() {
    for (sql, count) in [
        ("ALTER TABLE t ADD a INT FIRST", 1),
        (
            "ALTER TABLE t ADD (a INT AFTER b, PRIMARY KEY (a) NOT ENFORCED)",
            2,
        ),
        ("ALTER TABLE t ADD WATERMARK FOR ts AS ts", 1),
    ] {
        match FlinkParser::parse_statement(sql) {
            Ok(Statement::AlterTable(alter)) => {
                assert!(
                    matches!(&alter.action, AlterTableAction::Add(e) if e.len() == count),
                    "{sql}"
                );
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn parenthesised_queries_go_on() {
    for sql in [
        "((SELECT 1) UNION (SELECT 2)) ORDER BY 1",
        "SELECT * FROM ((SELECT 1 AS a) UNION ALL (SELECT 2)) AS t",
        "SELECT ((SELECT 1) + 1), a IN ((SELECT 1) EXCEPT (SELECT 2)) FROM t",
        "SELECT * FROM ((a JOIN b ON TRUE) CROSS JOIN (SELECT 1 AS x) AS c)",
    ] {
        FlinkParser::parse_query(sql).expect(sql);
    }
    let query = FlinkParser::parse_query("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3");
    let SetExpr::SetOperation { right, .. } = *query.expect("query").body else {
        panic!("no set operation");
    };
    assert!(matches!(*right, SetExpr::SetOperation { .. }));
}

#[test]
fn errors_say_where_and_what_to_do() {
    for (sql, at, hint) in [
        ("SELCT 1", "SELCT", "did you mean SELECT?"),
        ("SELECT a FORM t", "t", "did you mean FROM"),
        ("SELECT \"x\" FROM t", "\"x\"", "backticks"),
        ("SELECT a AS value FROM t", "value", "reserved word"),
        ("CREATE TABLE t (ü STRIN)", "STRIN", "did you mean STRING?"),
        ("SELECT 'abc", "'", "close it with '"),
        ("SELECT /*+ X('a'=) */ 1", ")", ""),
        ("SHOW TABELS", "TABELS", "did you mean TABLES?"),
        ("SELECT a != 1 FROM t", "!=", "write <>"),
    ] {
        let error = FlinkParser::parse_statement(sql).expect_err(sql);
        let span = error.span().expect("span");
        assert_eq!(&sql[span.start..span.end], at, "{sql}");
        let given = error.hint_text().unwrap_or_default();
        assert!(given.contains(hint), "{sql}: {given}");
    }
}

#[test]
fn spans_are_byte_offsets() {
    let sql = "SELECT 'ä', `ö` + b FROM t";
    let query = FlinkParser::parse_query(sql).expect("query");
    let SetExpr::Select(select) = *query.body else {
        panic!("no select");
    };
    let span = span_of(&select.projection[1]).expect("span");
    assert_eq!(&sql[span.start..span.end], "`ö` + b");
}

#[test]
fn deep_nesting_is_refused_and_long_chains_are_not() {
    for open in ["(", "NOT ", "CASE WHEN ", "-", "f(", "ARRAY[", "(SELECT "] {
        let sql = format!("SELECT {}1", open.repeat(5000));
        FlinkParser::parse_statement(&sql).expect_err("too deep");
    }
    let long = format!("SELECT 1{}", " + 1".repeat(999));
    FlinkParser::parse_statement(&long).expect("a chain");
}

/// Pieces that statements are made of.
const PIECES: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "GROUPING SETS",
    "ORDER BY",
    "CASE",
    "WHEN",
    "END",
    "CAST",
    "AS",
    "ROW",
    "ARRAY",
    "INTERVAL",
    "'1'",
    "DAY",
    "TO",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    "*",
    "+",
    "-",
    "=",
    "=>",
    "a",
    "`b c`",
    "1.5",
    "NULL",
    "TABLE",
    "LATERAL",
    "JOIN",
    "ON",
    "IN",
    "NOT",
    "LIKE",
    "BETWEEN",
    "AND",
    "IS",
    "JSON_OBJECT",
    "KEY",
    "VALUE",
    "TRIM",
    "BOTH",
    "CREATE TABLE",
    "INT",
    "MAP<",
    "<",
    ">",
    "WATERMARK FOR",
    "PRIMARY KEY",
    "WITH",
    "LIMIT",
    "MATCH_RECOGNIZE",
    "PATTERN",
    "{",
    "}",
    "?",
    "DEFINE",
    "ALTER TABLE",
    "ADD",
    "DROP",
    "INSERT",
    "INTO",
    "VALUES",
    "STATEMENT SET",
    "BEGIN",
    ";",
    "/*+ A(",
    "*/",
    "'",
    "E'\\",
    "U&'\\",
    "--",
    "EXPLAIN",
    "OVER",
    "PARTITION BY",
    "UNNEST",
    "ORDINALITY",
    "EXTRACT",
    "ü",
    "\u{1F600}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_panics_on_pieces(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)) {
        let sql = pieces.join(" ");
        let _ = FlinkParser::parse_statement(&sql);
        let _ = super::super::script::Script::split(&sql);
    }

    #[test]
    fn nothing_panics_on_text(sql in any::<String>()) {
        if let Err(error) = FlinkParser::parse_statement(&sql) {
            let _ = error.render(&sql, None);
        }
        let _ = super::super::script::Script::split(&sql);
    }
}

#[test]
fn set_and_reset_take_keys_and_values_without_quotes() {
    let set = |sql: &str| match FlinkParser::parse_statement(sql) {
        Ok(Statement::Set(Some(option))) => (option.key, option.value),
        other => panic!("{sql}: {other:?}"),
    };
    for sql in [
        "SET 'a.b' = 'c'",
        "SET a.b = 'c'",
        "SET a.b=c",
        "SET a.b = c;",
    ] {
        assert_eq!(set(sql), ("a.b".to_string(), "c".to_string()), "{sql}");
    }
    assert_eq!(set("SET a = -1 ").1, "-1");
    assert_eq!(
        set("SET state.dir = file:///x/y").1,
        "file:///x/y".to_string()
    );
    for sql in [
        "SET a",
        "SET a =",
        "SET a b = c",
        "SET a = b c",
        "SET a = b'c",
    ] {
        assert!(FlinkParser::parse_statement(sql).is_err(), "{sql}");
    }
    assert_eq!(
        FlinkParser::parse_statement("RESET a.b").expect("a statement"),
        Statement::Reset(Some("a.b".into()))
    );
}
