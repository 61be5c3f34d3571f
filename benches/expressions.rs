//! Rows per second of expressions on one core: operators, casts, conditions, and a filter with a
//! projection over three numeric columns, 4096-row batches; functions beside DataFusion's of the same
//! kind, 8192-row batches. One row in ten is NULL.

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType as ArrowType, Field, TimeUnit};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use ebbflow::expr::eval::Compiled;
use ebbflow::expr::{CompareOp, Expr, ExprKind};
use ebbflow::functions::{Arg, Environment, EvalContext, FunctionRef, FunctionRegistry, operators};
use ebbflow::types::{Column, Schema, TypeKind};

/// As in the binary.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: usize = 4096;
const INT: usize = 0;
const BIGINT: usize = 1;
const DOUBLE: usize = 2;
const DECIMAL: usize = 3;
const STRING: usize = 4;
const TIMESTAMP: usize = 5;

fn kinds() -> Vec<TypeKind> {
    vec![
        TypeKind::Int,
        TypeKind::BigInt,
        TypeKind::Double,
        TypeKind::Decimal(10, 2),
        TypeKind::STRING,
        TypeKind::Timestamp(3),
    ]
}

/// Row numbers, NULL in every tenth row.
fn rows() -> impl Iterator<Item = Option<i32>> {
    (0..).take(ROWS).map(|i| (i % 10 != 0).then_some(i))
}

fn batch() -> RecordBatch {
    let decimals: Decimal128Array = rows().map(|v| v.map(i128::from)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(
            rows()
                .map(|v| v.map(|v| v * 7919 % 1000 + 1))
                .collect::<Int32Array>(),
        ),
        Arc::new(
            rows()
                .map(|v| v.map(|v| i64::from(v) * 3))
                .collect::<Int64Array>(),
        ),
        Arc::new(
            rows()
                .map(|v| v.map(|v| f64::from(v) * 0.37))
                .collect::<Float64Array>(),
        ),
        Arc::new(decimals.with_precision_and_scale(10, 2).expect("valid")),
        Arc::new(
            rows()
                .map(|v| v.map(|v| format!("user_{v}")))
                .collect::<StringArray>(),
        ),
        Arc::new(
            rows()
                .map(|v| v.map(|v| i64::from(v) * 86_401_001))
                .collect::<TimestampMillisecondArray>(),
        ),
    ];
    let columns_of = kinds()
        .into_iter()
        .map(|kind| Column::new("c", kind.nullable()));
    RecordBatch::try_new(Schema::new(columns_of.collect()).to_arrow(), columns).expect("valid")
}

fn column(i: usize) -> Expr {
    Expr::column(i, kinds()[i].clone().nullable())
}

fn int(value: i32) -> Expr {
    Expr::literal(ScalarValue::Int32(Some(value)), TypeKind::Int.not_null())
}

fn double(value: f64) -> Expr {
    Expr::literal(
        ScalarValue::Float64(Some(value)),
        TypeKind::Double.not_null(),
    )
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let function = operators::all()
        .into_iter()
        .find(|f| f.name() == name)
        .expect("an operator");
    call_of(function, args)
}

fn function(name: &str, args: Vec<Expr>) -> Expr {
    let function = FunctionRegistry::builtin().get(name);
    call_of(function.expect("a function"), args)
}

fn call_of(function: FunctionRef, args: Vec<Expr>) -> Expr {
    let described: Vec<Arg> = args
        .iter()
        .map(|e| Arg {
            data_type: e.data_type.clone(),
            literal: e.as_literal().cloned(),
        })
        .collect();
    let signature = function.resolve(&described).expect("types that fit");
    let args = args.into_iter().zip(&signature.args);
    let args = args.map(|(e, t)| e.cast_to(t)).collect();
    Expr::new(ExprKind::Call { function, args }, signature.returns)
}

fn boolean(kind: ExprKind) -> Expr {
    Expr::new(kind, TypeKind::Boolean.nullable())
}

fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    boolean(ExprKind::Compare {
        op,
        left: Box::new(left),
        right: Box::new(right),
    })
}

fn case(when: Expr, then: Expr, otherwise: Expr) -> Expr {
    let data_type = then.data_type.as_nullable();
    let kind = ExprKind::Case {
        branches: vec![(when, then)],
        otherwise: Box::new(otherwise),
    };
    Expr::new(kind, data_type)
}

fn compile(e: &Expr) -> Compiled {
    Compiled::new(e, &Environment::default()).expect("a valid expression")
}

fn context(rows: usize) -> EvalContext {
    EvalContext {
        rows,
        now_ms: 0,
        watermark: i64::MIN,
    }
}

fn expressions(criterion: &mut Criterion) {
    let batch = batch();
    let text = |s: &str| {
        let value = ScalarValue::Utf8(Some(s.to_string()));
        Expr::literal(value, TypeKind::STRING.not_null())
    };
    let to_string = |i: usize| column(i).cast_to(&TypeKind::STRING.nullable());
    let guarded = compare(CompareOp::NotEq, column(INT), int(0));
    let small = compare(CompareOp::Lt, column(INT), int(500));
    let all = [
        ("int + 1", call("+", vec![column(INT), int(1)])),
        ("int + bigint", call("+", vec![column(INT), column(BIGINT)])),
        ("bigint / int", call("/", vec![column(BIGINT), column(INT)])),
        ("double * 1.5", call("*", vec![column(DOUBLE), double(1.5)])),
        (
            "double > 100",
            compare(CompareOp::Gt, column(DOUBLE), double(100.0)),
        ),
        (
            "decimal + decimal",
            call("+", vec![column(DECIMAL), column(DECIMAL)]),
        ),
        (
            "decimal / int",
            call("/", vec![column(DECIMAL), column(INT)]),
        ),
        (
            "string LIKE '%r_1%'",
            call("LIKE", vec![column(STRING), text("%r_1%")]),
        ),
        (
            "string || string",
            call("||", vec![column(STRING), column(STRING)]),
        ),
        ("cast int to string", to_string(INT)),
        ("cast double to string", to_string(DOUBLE)),
        ("cast timestamp to string", to_string(TIMESTAMP)),
        (
            "case without division",
            case(
                small,
                column(BIGINT),
                call("*", vec![column(BIGINT), int(2)]),
            ),
        ),
        (
            "case around division",
            case(
                guarded,
                call("/", vec![column(BIGINT), column(INT)]),
                column(BIGINT),
            ),
        ),
    ];
    let mut group = criterion.benchmark_group("expression");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, e) in &all {
        let compiled = compile(e);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| compiled.evaluate_array(black_box(&batch), &context(ROWS)));
        });
    }
    group.finish();
}

fn filter_and_project(criterion: &mut Criterion) {
    let batch = batch().project(&[INT, BIGINT, DOUBLE]).expect("valid");
    let condition = compile(&boolean(ExprKind::And(vec![
        compare(CompareOp::Gt, column(DOUBLE), double(100.0)),
        compare(CompareOp::Lt, column(INT), int(500)),
    ])));
    let columns = [
        compile(&call("+", vec![column(INT), int(1)])),
        compile(&call("+", vec![column(BIGINT), column(INT)])),
        compile(&call("*", vec![column(DOUBLE), double(1.1)])),
    ];
    let mut group = criterion.benchmark_group("calc");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("filter and project", |bencher| {
        bencher.iter(|| {
            let mask = condition.evaluate_predicate(black_box(&batch), &context(ROWS));
            let kept = filter_record_batch(&batch, &mask.expect("no failure")).expect("valid");
            let context = context(kept.num_rows());
            for column in &columns {
                black_box(column.evaluate_array(&kept, &context).expect("no failure"));
            }
        });
    });
    group.finish();
}

/// Rows of a batch for the functions.
const MANY: usize = 8192;

/// A column of texts, NULL in every tenth row.
fn texts(text: impl Fn(usize) -> String) -> ArrayRef {
    let rows = (0..MANY).map(|i| (i % 10 != 0).then(|| text(i)));
    Arc::new(rows.collect::<StringArray>())
}

/// A function of DataFusion on a column.
type Theirs = Box<dyn Fn(&ArrayRef) -> ColumnarValue>;

/// Ours and DataFusion's of the same kind, over one column and a constant.
struct Pair {
    name: &'static str,
    column: ArrayRef,
    kind: TypeKind,
    ours: Box<dyn Fn(Expr) -> Expr>,
    theirs: Option<Theirs>,
}

fn constant(text: &str) -> Expr {
    let length = u32::try_from(text.len()).expect("a short text");
    Expr::literal(ScalarValue::from(text), TypeKind::Char(length).not_null())
}

/// A call of a function of DataFusion on a column and constants.
fn udf(function: Arc<ScalarUDF>, constants: Vec<ScalarValue>, returns: ArrowType) -> Theirs {
    let config = Arc::new(ConfigOptions::default());
    let returns = Arc::new(Field::new("r", returns, true));
    Box::new(move |column| {
        let mut args = vec![ColumnarValue::Array(Arc::clone(column))];
        args.extend(constants.iter().cloned().map(ColumnarValue::Scalar));
        let arg_fields = args
            .iter()
            .map(|a| Arc::new(Field::new("a", a.data_type(), true)))
            .collect();
        let call = ScalarFunctionArgs {
            args,
            arg_fields,
            number_rows: MANY,
            return_field: Arc::clone(&returns),
            config_options: Arc::clone(&config),
        };
        function.invoke_with_args(call).expect("no failure")
    })
}

fn pairs() -> Vec<Pair> {
    let list = || ArrowType::List(Arc::new(Field::new("item", ArrowType::Utf8, true)));
    let millis = (0..MANY).map(|i| (i % 10 != 0).then_some(i as i64 * 86_401_001));
    vec![
        Pair {
            name: "DATE_FORMAT",
            column: Arc::new(millis.collect::<TimestampMillisecondArray>()),
            kind: TypeKind::Timestamp(3),
            ours: Box::new(|c| function("DATE_FORMAT", vec![c, constant("yyyy-MM-dd HH:mm")])),
            theirs: Some(udf(
                datafusion::functions::datetime::to_char(),
                vec![ScalarValue::from("%Y-%m-%d %H:%M")],
                ArrowType::Utf8,
            )),
        },
        Pair {
            name: "REGEXP_EXTRACT",
            column: texts(|i| format!("/channel_id={i}&next")),
            kind: TypeKind::STRING,
            ours: Box::new(|c| {
                let args = vec![c, constant("(&|^|/)channel_id=([^&]*)"), int(2)];
                function("REGEXP_EXTRACT", args)
            }),
            theirs: Some(udf(
                datafusion::functions::regex::regexp_match(),
                vec![ScalarValue::from("(&|^|/)channel_id=([^&]*)")],
                list(),
            )),
        },
        Pair {
            name: "JSON_VALUE",
            column: texts(|i| {
                format!("{{\"id\": {i}, \"user\": {{\"name\": \"user {i}\"}}, \"n\": 1.5}}")
            }),
            kind: TypeKind::STRING,
            ours: Box::new(|c| {
                let clauses = ["$.user.name", "STRING", "NULL", "", "NULL", ""].map(constant);
                function("JSON_VALUE", [c].into_iter().chain(clauses).collect())
            }),
            theirs: None,
        },
        Pair {
            name: "SPLIT_INDEX",
            column: texts(|i| format!("https://example.org/{i}/second/third")),
            kind: TypeKind::STRING,
            ours: Box::new(|c| function("SPLIT_INDEX", vec![c, constant("/"), int(3)])),
            theirs: Some(udf(
                datafusion::functions::string::split_part(),
                vec![ScalarValue::from("/"), ScalarValue::from(4i64)],
                ArrowType::Utf8,
            )),
        },
        Pair {
            name: "CAST(STRING AS TIMESTAMP)",
            column: texts(|i| {
                format!(
                    "2024-02-{:02} 10:{:02}:07.{:03}",
                    i % 28 + 1,
                    i % 60,
                    i % 1000
                )
            }),
            kind: TypeKind::STRING,
            ours: Box::new(|c| c.cast_to(&TypeKind::Timestamp(3).nullable())),
            theirs: Some(Box::new(|column| {
                let to = ArrowType::Timestamp(TimeUnit::Millisecond, None);
                ColumnarValue::Array(arrow::compute::cast(column, &to).expect("no failure"))
            })),
        },
        Pair {
            name: "CAST(TIMESTAMP AS STRING)",
            column: Arc::new(
                (0..MANY)
                    .map(|i| (i % 10 != 0).then_some(i as i64 * 86_401_001))
                    .collect::<TimestampMillisecondArray>(),
            ),
            kind: TypeKind::Timestamp(3),
            ours: Box::new(|c| c.cast_to(&TypeKind::STRING.nullable())),
            theirs: Some(Box::new(|column| {
                let to = ArrowType::Utf8;
                ColumnarValue::Array(arrow::compute::cast(column, &to).expect("no failure"))
            })),
        },
    ]
}

fn functions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("function");
    group.throughput(Throughput::Elements(MANY as u64));
    for pair in pairs() {
        let schema = Schema::new(vec![Column::new("c", pair.kind.clone().nullable())]);
        let columns = vec![Arc::clone(&pair.column)];
        let batch = RecordBatch::try_new(schema.to_arrow(), columns).expect("valid");
        let compiled = compile(&(pair.ours)(Expr::column(0, pair.kind.clone().nullable())));
        group.bench_function(BenchmarkId::new(pair.name, "ours"), |bencher| {
            bencher.iter(|| {
                let result = compiled.evaluate_array(black_box(&batch), &context(MANY));
                result.expect("no failure")
            });
        });
        if let Some(theirs) = &pair.theirs {
            group.bench_function(BenchmarkId::new(pair.name, "DataFusion"), |bencher| {
                bencher.iter(|| theirs(black_box(&pair.column)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, expressions, filter_and_project, functions);
criterion_main!(benches);
