//! Every function on extreme values: errors are fine, panics are not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::ListArray;
use arrow::datatypes::Int32Type;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::{Arg, Environment, EvalContext, FunctionRef, FunctionRegistry};
use crate::types::TypeKind;

/// Values of all types, the worst of each.
fn pool() -> Vec<(TypeKind, ScalarValue)> {
    let text = |s: &str| {
        let length = u32::try_from(s.chars().count()).unwrap_or(1);
        (TypeKind::Char(length), ScalarValue::from(s))
    };
    let lists = |values: Vec<Option<i32>>| {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(values)]);
        ScalarValue::List(std::sync::Arc::new(list))
    };
    vec![
        text(""),
        text("a😀\u{301}[*($.%{"),
        text("yyyy-MM-dd HH:mm:ss"),
        text("-9999999999999999999999999"),
        text("DAY"),
        text("MONTH"),
        (TypeKind::STRING, ScalarValue::Utf8(None)),
        (TypeKind::Int, ScalarValue::from(i32::MIN)),
        (TypeKind::Int, ScalarValue::from(i32::MAX)),
        (TypeKind::Int, ScalarValue::from(3)),
        (TypeKind::BigInt, ScalarValue::from(i64::MIN)),
        (TypeKind::BigInt, ScalarValue::from(i64::MAX)),
        (TypeKind::TinyInt, ScalarValue::from(i8::MIN)),
        (TypeKind::Double, ScalarValue::from(f64::NAN)),
        (TypeKind::Double, ScalarValue::from(f64::NEG_INFINITY)),
        (TypeKind::Double, ScalarValue::from(5e-324)),
        (TypeKind::Float, ScalarValue::from(f32::MAX)),
        (
            TypeKind::Decimal(38, 38),
            ScalarValue::Decimal128(Some(10i128.pow(38) - 1), 38, 38),
        ),
        (
            TypeKind::Decimal(38, 0),
            ScalarValue::Decimal128(Some(1 - 10i128.pow(38)), 38, 0),
        ),
        (TypeKind::Boolean, ScalarValue::from(false)),
        (
            TypeKind::BYTES,
            ScalarValue::Binary(Some(vec![0xFF, 0xC3, 0])),
        ),
        (TypeKind::Date, ScalarValue::Date32(Some(i32::MIN))),
        (TypeKind::Date, ScalarValue::Date32(Some(i32::MAX))),
        (
            TypeKind::Time(3),
            ScalarValue::Time32Millisecond(Some(86_399_999)),
        ),
        (
            TypeKind::Timestamp(3),
            ScalarValue::TimestampMillisecond(Some(i64::MIN), None),
        ),
        (
            TypeKind::Timestamp(9),
            ScalarValue::TimestampNanosecond(Some(i64::MAX), None),
        ),
        (
            TypeKind::TimestampLtz(3),
            ScalarValue::TimestampMillisecond(Some(i64::MAX), Some("UTC".into())),
        ),
        (
            TypeKind::IntervalDayTime,
            ScalarValue::DurationMillisecond(Some(i64::MIN)),
        ),
        (
            TypeKind::IntervalYearMonth,
            ScalarValue::IntervalYearMonth(Some(i32::MAX)),
        ),
        (
            TypeKind::Array(Box::new(TypeKind::Int.nullable())),
            lists(vec![Some(1), None, Some(i32::MIN)]),
        ),
        (
            TypeKind::Array(Box::new(TypeKind::Int.nullable())),
            lists(Vec::new()),
        ),
    ]
}

/// Calls with constants and with columns.
fn run(function: &FunctionRef, args: &[&(TypeKind, ScalarValue)]) {
    let env = Environment {
        time_zone: chrono_tz::Europe::Berlin,
        ..Environment::default()
    };
    let given: Vec<_> = args
        .iter()
        .map(|(kind, value)| Arg {
            data_type: kind.clone().with_nullable(value.is_null()),
            literal: Some(value.clone()),
        })
        .collect();
    let Ok(signature) = function.resolve(&given) else {
        return;
    };
    let cast: Option<Vec<_>> = given
        .iter()
        .zip(&signature.args)
        .map(|(arg, to)| {
            let value = arg.literal.as_ref()?.cast_to(&to.to_arrow()).ok()?;
            Some(Arg {
                data_type: to.clone(),
                literal: Some(value),
            })
        })
        .collect();
    let Some(cast) = cast else {
        return;
    };
    let ctx = EvalContext {
        rows: 2,
        now_ms: i64::MAX / 2,
        watermark: i64::MAX,
    };
    let values: Vec<_> = cast.iter().filter_map(|arg| arg.literal.clone()).collect();
    for constant in [true, false] {
        let args: Vec<_> = cast
            .iter()
            .map(|arg| Arg {
                literal: arg.literal.clone().filter(|_| constant),
                ..arg.clone()
            })
            .collect();
        let Ok(kernel) = function.prepare(&args, &signature.returns, &env) else {
            continue;
        };
        let columns: Vec<_> = values
            .iter()
            .map(|value| match constant {
                true => ColumnarValue::Scalar(value.clone()),
                false => ColumnarValue::Array(value.to_array_of_size(2).expect("two rows")),
            })
            .collect();
        if let Ok(result) = kernel(&columns, &ctx) {
            assert_eq!(result.data_type(), signature.returns.to_arrow());
        }
    }
}

#[test]
#[ignore = "takes half a minute"]
fn no_function_panics() {
    let pool = pool();
    let registry = FunctionRegistry::builtin();
    let mut failed = Vec::new();
    let mut check = |function: &FunctionRef, args: &[&(TypeKind, ScalarValue)]| {
        if catch_unwind(AssertUnwindSafe(|| run(function, args))).is_err() {
            failed.push(format!("{}{args:?}", function.name()));
        }
    };
    for entry in registry.entries() {
        let Some(function) = &entry.function else {
            continue;
        };
        check(function, &[]);
        for (i, a) in pool.iter().enumerate() {
            check(function, &[a]);
            for (j, b) in pool.iter().enumerate() {
                check(function, &[a, b]);
                // A sample: all of three take minutes.
                for c in pool.iter().skip((i + 7 * j) % 29).step_by(29) {
                    check(function, &[a, b, c]);
                }
            }
        }
    }
    failed.dedup_by_key(|f| f.split('[').next().map(str::to_string));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
