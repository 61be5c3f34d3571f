use arrow::array::{
    Date32Array, Decimal128Array, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};

use super::*;
use crate::expr::Expr;
use crate::expr::eval::{Compiled, fold};
use crate::functions::{Environment, EvalContext, FunctionRef};
use crate::types::literal::{self, Literal};
use crate::types::parse::{IntervalField, IntervalQualifier};
use crate::types::text::{Printer, Style};
use crate::types::{Column, DataType, Schema, TypeKind};

fn function(name: &str) -> FunctionRef {
    let found = all().into_iter().find(|f| f.name() == name);
    found.expect("a known operator")
}

/// `name(args)`, each cast to what the operator asks for.
fn call(name: &str, args: Vec<Expr>) -> Result<Expr> {
    let function = function(name);
    let described: Vec<Arg> = args
        .iter()
        .map(|e| Arg {
            data_type: e.data_type.clone(),
            literal: e.as_literal().cloned(),
        })
        .collect();
    let signature = function.resolve(&described)?;
    let args = args.into_iter().zip(&signature.args);
    let args = args.map(|(e, t)| e.cast_to(t)).collect();
    let kind = crate::expr::ExprKind::Call { function, args };
    Ok(fold_args(Expr::new(kind, signature.returns)))
}

/// Casts of literals become literals, as the binder makes them.
fn fold_args(e: Expr) -> Expr {
    let env = Environment::default();
    e.map_children(&mut |child| fold(child, &env))
}

fn lit(literal: Result<Literal>) -> Expr {
    let (value, data_type) = literal.expect("a literal");
    Expr::literal(value, data_type)
}

fn num(text: &str) -> Expr {
    lit(literal::numeric(text))
}

fn text(text: &str) -> Expr {
    lit(Ok(literal::string(text)))
}

fn interval(text: &str, field: IntervalField) -> Expr {
    let qualifier = IntervalQualifier::single(field);
    lit(literal::interval(text, false, &qualifier))
}

/// The type and the values of a call over columns.
fn run(call: Result<Expr>, columns: Vec<(ArrayRef, TypeKind)>) -> Result<(String, Vec<String>)> {
    let call = call?;
    let schema = Schema::new(
        columns
            .iter()
            .map(|(_, kind)| Column::new("c", kind.clone().nullable()))
            .collect(),
    );
    let arrays: Vec<ArrayRef> = columns.into_iter().map(|(array, _)| array).collect();
    let rows = arrays.first().map_or(1, |a| a.len());
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema.to_arrow(), arrays, &options)?;
    let context = EvalContext {
        rows,
        now_ms: 0,
        watermark: i64::MIN,
    };
    let compiled = Compiled::new(&call, &Environment::default())?;
    let array = compiled.evaluate_array(&batch, &context)?;
    assert_eq!(array.data_type(), &call.data_type.to_arrow());
    let printer = Printer::new(&call.data_type, Style::Row, chrono_tz::UTC);
    let values = (0..rows).map(|row| {
        let mut text = String::new();
        printer.write(&array, row, &mut text);
        text
    });
    Ok((call.data_type.kind.to_string(), values.collect()))
}

fn column(kind: TypeKind) -> Expr {
    Expr::column(0, kind.nullable())
}

/// The type and value of a call on constants.
fn value(name: &str, args: Vec<Expr>) -> Result<(String, String)> {
    let (kind, mut values) = run(call(name, args), Vec::new())?;
    Ok((kind, values.remove(0)))
}

fn is(found: Result<(String, String)>, kind: &str, value: &str) {
    assert_eq!(
        found.expect("no failure"),
        (kind.to_string(), value.to_string())
    );
}

#[test]
fn integers_wrap_and_keep_the_wider_type() {
    is(
        value("+", vec![num("2147483647"), num("1")]),
        "INT",
        "-2147483648",
    );
    is(
        value("*", vec![num("3000000000"), num("2")]),
        "BIGINT",
        "6000000000",
    );
    is(value("/", vec![num("7"), num("2")]), "INT", "3");
    is(value("%", vec![num("-7"), num("3")]), "INT", "-1");
    // A remainder has the type of the divisor.
    is(value("MOD", vec![num("5000000000"), num("7")]), "INT", "2");
    is(value("-", vec![num("-2147483648")]), "INT", "-2147483648");
}

#[test]
fn a_zero_divisor_fails_on_its_row_only() {
    let ints = |values: Vec<Option<i32>>| -> (ArrayRef, TypeKind) {
        (Arc::new(Int32Array::from(values)), TypeKind::Int)
    };
    let divide = || call("/", vec![num("10"), column(TypeKind::Int)]);
    let found = run(divide(), vec![ints(vec![Some(3), None, Some(-2)])]);
    assert_eq!(found.expect("no zero").1, ["3", "null", "-5"]);
    let found = run(divide(), vec![ints(vec![Some(3), Some(0)])]);
    assert_eq!(found.expect_err("a zero").message(), "Division by zero");
    assert!(value("/", vec![num("1e0"), num("0")]).is_err());
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let by_zero = call("/", vec![column(TypeKind::Double), num("0")]);
    let found = run(by_zero, vec![(doubles, TypeKind::Double)]);
    assert_eq!(found.expect("no failure").1, ["Infinity"]);
}

#[test]
fn decimals_have_the_precision_of_the_operation() {
    is(
        value("+", vec![num("1.10"), num("2.205")]),
        "DECIMAL(5, 3)",
        "3.305",
    );
    is(
        value("-", vec![num("10"), num("0.5")]),
        "DECIMAL(12, 1)",
        "9.5",
    );
    is(
        value("*", vec![num("1.5"), num("-2.5")]),
        "DECIMAL(5, 2)",
        "-3.75",
    );
    is(
        value("/", vec![num("5.0"), num("2")]),
        "DECIMAL(13, 12)",
        "2.500000000000",
    );
    is(
        value("%", vec![num("-7.5"), num("2")]),
        "DECIMAL(2, 1)",
        "-1.5",
    );
    is(value("+", vec![num("1.5"), num("1e0")]), "DOUBLE", "2.5");
}

#[test]
fn decimals_past_38_digits_lose_scale_then_are_null() {
    let kind = TypeKind::Decimal(38, 10);
    let decimals = |values: Vec<i128>| -> Vec<(ArrayRef, TypeKind)> {
        let array = Decimal128Array::from(values).with_precision_and_scale(38, 10);
        vec![(Arc::new(array.expect("valid")), TypeKind::Decimal(38, 10))]
    };
    let with = |name| call(name, vec![column(kind.clone()), column(kind.clone())]);
    let (returns, values) = run(with("+"), decimals(vec![12_345, -1])).expect("no failure");
    assert_eq!(
        (returns.as_str(), values.join(" ").as_str()),
        ("DECIMAL(38, 9)", "0.000002469 0E-9")
    );
    let huge = 10i128.pow(37);
    let (returns, values) =
        run(with("*"), decimals(vec![huge, 25_000_000_000])).expect("no failure");
    assert_eq!(
        (returns.as_str(), values.join(" ").as_str()),
        ("DECIMAL(38, 6)", "null 6.250000")
    );
    let (_, values) = run(with("/"), decimals(vec![huge, 3])).expect("no failure");
    assert_eq!(values, ["1.000000", "1.000000"]);
}

#[test]
fn dates_count_whole_days_and_months() {
    use IntervalField::{Day, Hour, Month};
    let date = |text| lit(literal::date(text));
    is(
        value("+", vec![date("2024-03-31"), interval("25", Hour)]),
        "DATE",
        "2024-04-01",
    );
    is(
        value("-", vec![date("2024-03-31"), interval("1", Month)]),
        "DATE",
        "2024-02-29",
    );
    is(
        value("-", vec![date("2024-03-31"), interval("1", Hour)]),
        "DATE",
        "2024-03-31",
    );
    is(
        value("+", vec![interval("1", Day), date("2024-03-31")]),
        "DATE",
        "2024-04-01",
    );
    assert!(value("-", vec![interval("1", Day), date("2024-03-31")]).is_err());
    assert!(value("-", vec![date("2024-03-31"), date("2024-03-31")]).is_err());
    assert!(value("+", vec![date("2024-03-31"), num("1")]).is_err());
}

#[test]
fn timestamps_and_times_move_by_intervals() {
    use IntervalField::{Day, Hour, Month, Second};
    let ticks: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![Some(-1), None]));
    let kind = TypeKind::Timestamp(3);
    let moved = |by| {
        let columns = vec![(Arc::clone(&ticks), kind.clone())];
        run(call("+", vec![column(kind.clone()), by]), columns)
            .expect("no failure")
            .1
    };
    assert_eq!(
        moved(interval("1", Month)),
        ["1970-01-31T23:59:59.999", "null"]
    );
    assert_eq!(
        moved(interval("1.5", Second)),
        ["1970-01-01T00:00:01.499", "null"]
    );
    let time = |text| lit(literal::time(text));
    is(
        value("-", vec![time("12:30:15.250"), interval("13", Hour)]),
        "TIME(3)",
        "23:30:15.250",
    );
    is(
        value("+", vec![interval("1", Day), interval("1", Hour)]),
        "INTERVAL SECOND(3)",
        "PT25H",
    );
    is(
        value("*", vec![num("3"), interval("1", Month)]),
        "INTERVAL MONTH",
        "P3M",
    );
    assert!(value("*", vec![num("1.5"), interval("1", Month)]).is_err());
    assert!(value("+", vec![interval("1", Day), interval("1", Month)]).is_err());
}

#[test]
fn differences_of_points_in_time() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![19_813, 19_722]));
    let with = |unit| {
        let start = lit(literal::date("2024-01-01"));
        let e = call(
            "MINUS_DATE",
            vec![column(TypeKind::Date), start, text(unit)],
        );
        run(e, vec![(Arc::clone(&days), TypeKind::Date)]).expect("no failure")
    };
    assert_eq!(with("DAY").1, ["PT2160H", "PT-24H"]);
    assert_eq!(with("MONTH").1, ["P2M", "P0D"]);
    let two = |a, b| {
        let (a, b) = (lit(literal::timestamp(a)), lit(literal::timestamp(b)));
        value("MINUS_DATE", vec![a, b, text("MONTH")])
    };
    is(
        two("2024-03-01 00:00:00", "2024-01-31 00:00:00"),
        "INTERVAL MONTH",
        "P1M",
    );
    is(
        two("2024-03-31 00:00:00", "2024-01-31 00:00:01"),
        "INTERVAL MONTH",
        "P1M",
    );
    is(
        two("2024-01-31 00:00:01", "2024-03-31 00:00:00"),
        "INTERVAL MONTH",
        "P-1M",
    );
}

#[test]
fn strings_are_joined_with_their_lengths() {
    is(value("||", vec![text("a"), text("bc")]), "CHAR(3)", "abc");
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let e = call("||", vec![text("a"), column(TypeKind::VarChar(5))]);
    let found = run(e, vec![(names, TypeKind::VarChar(5))]).expect("no failure");
    assert_eq!(
        (found.0.as_str(), found.1.join(" ").as_str()),
        ("VARCHAR(6)", "ax null")
    );
    assert!(value("||", vec![text("a"), num("1")]).is_err());
}

#[test]
fn patterns_may_come_from_a_column() {
    let patterns: ArrayRef = Arc::new(StringArray::from(vec![Some("a%"), Some("b"), None]));
    let e = call("LIKE", vec![text("abc"), column(TypeKind::STRING)]);
    let found = run(e, vec![(patterns, TypeKind::STRING)]).expect("no failure");
    assert_eq!(found.1, ["true", "false", "null"]);
    let found = value("LIKE", vec![text("a%b"), text("a!%b"), text("!")]);
    is(found, "BOOLEAN", "true");
    assert!(value("LIKE", vec![text("a"), text("a"), text("!!")]).is_err());
    assert!(value("LIKE", vec![num("1"), text("1")]).is_err());
    is(
        value("SIMILAR TO", vec![text("abc"), text("a(b|x)c")]),
        "BOOLEAN",
        "true",
    );
}

#[test]
fn only_divisions_that_can_meet_a_zero_are_fallible() {
    let fallible = |args: Vec<Expr>| {
        let e = call("/", args).expect("valid");
        Compiled::new(&e, &Environment::default()).is_ok_and(|c| c.may_fail())
    };
    assert!(fallible(vec![num("1"), column(TypeKind::Int)]));
    assert!(!fallible(vec![column(TypeKind::Int), num("2")]));
    assert!(fallible(vec![column(TypeKind::Int), num("0")]));
    assert!(!fallible(vec![num("1"), column(TypeKind::Double)]));
}

#[test]
fn a_constant_keeps_only_the_digits_of_its_type() {
    let start = lit(literal::timestamp("2024-01-01 00:00:00"));
    let e = call("+", vec![start, interval("1.5", IntervalField::Second)]).expect("valid");
    let folded = fold(e, &Environment::default());
    let DataType { kind, .. } = &folded.data_type;
    assert_eq!(*kind, TypeKind::Timestamp(0));
    assert_eq!(
        folded.as_literal(),
        Some(&ScalarValue::TimestampMillisecond(
            Some(1_704_067_201_000),
            None
        ))
    );
}
