//! Calls functions in unit tests: every call is evaluated on constants and on columns, which must
//! agree.

use arrow::array::Array;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::{Arg, Environment, EvalContext, FunctionRegistry, Signature};
use crate::error::Result;
use crate::types::{DataType, TypeKind};

/// An argument.
#[derive(Clone)]
pub(super) struct Value(pub(super) DataType, pub(super) ScalarValue);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        Self(TypeKind::Char(length).not_null(), ScalarValue::from(text))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self(TypeKind::Int.not_null(), ScalarValue::from(value))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self(TypeKind::BigInt.not_null(), ScalarValue::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self(TypeKind::Double.not_null(), ScalarValue::from(value))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self(TypeKind::Boolean.not_null(), ScalarValue::from(value))
    }
}

/// NULL of a type.
pub(super) fn null(kind: TypeKind) -> Value {
    let value = ScalarValue::try_from(kind.to_arrow()).expect("every type has a NULL");
    Value(kind.nullable(), value)
}

/// Type and value of a call, as texts.
pub(super) fn call(name: &str, args: &[Value]) -> Result<(String, String)> {
    call_in(name, args, &Environment::default())
}

/// As [`call`], in an environment.
pub(super) fn call_in(name: &str, args: &[Value], env: &Environment) -> Result<(String, String)> {
    let registry = FunctionRegistry::builtin();
    let given: Vec<_> = args
        .iter()
        .map(|Value(data_type, value)| Arg {
            data_type: data_type.clone(),
            literal: Some(value.clone()),
        })
        .collect();
    let function = registry.find(name, &given)?;
    let Signature {
        args: types,
        returns,
    } = function.resolve(&given)?;
    let cast: Vec<_> = given
        .iter()
        .zip(&types)
        .map(|(arg, to)| {
            let value = arg.literal.as_ref().expect("tests pass constants");
            let value = if value.is_null() {
                ScalarValue::try_from(to.to_arrow())?
            } else {
                value.cast_to(&to.to_arrow())?
            };
            Ok(Arg {
                data_type: to.clone(),
                literal: Some(value),
            })
        })
        .collect::<Result<_>>()?;
    let rows = 3;
    let ctx = EvalContext {
        rows,
        now_ms: 1_700_000_000_123,
        watermark: i64::MIN,
    };
    let constants: Vec<_> = cast
        .iter()
        .map(|arg| ColumnarValue::Scalar(arg.literal.clone().expect("set above")))
        .collect();
    let columns: Vec<_> = constants
        .iter()
        .map(|value| Ok(ColumnarValue::Array(value.to_array(rows)?)))
        .collect::<Result<_>>()?;
    let unknown: Vec<_> = cast
        .iter()
        .map(|arg| Arg {
            data_type: arg.data_type.clone(),
            literal: None,
        })
        .collect();
    let show = |value: ColumnarValue| -> Result<Vec<String>> {
        let array = value.to_array(rows)?;
        assert_eq!(array.len(), rows, "{name} gives a value for every row");
        assert_eq!(
            array.data_type(),
            &returns.to_arrow(),
            "{name} gives the type that it promised"
        );
        let options = FormatOptions::new().with_null("NULL");
        let formatter = ArrayFormatter::try_new(&array, &options)?;
        Ok((0..array.len())
            .map(|i| formatter.value(i).to_string())
            .collect())
    };
    let constant = function.prepare(&cast, &returns, env)?(&constants, &ctx)?;
    let constant = show(constant)?;
    let varying = show(function.prepare(&cast, &returns, env)?(&columns, &ctx)?)?;
    assert_eq!(constant, varying, "{name} on constants and on columns");
    if let Ok(kernel) = function.prepare(&unknown, &returns, env) {
        let forms = kernel(&columns, &ctx)?;
        assert_eq!(constant, show(forms)?, "{name} without constants");
    }
    Ok((returns.to_string(), constant[0].clone()))
}

/// Asserts the value of a call.
#[track_caller]
pub(super) fn check(name: &str, args: &[Value], expected: &str) {
    match call(name, args) {
        Ok((_, value)) => assert_eq!(value, expected, "{name}"),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Asserts the type of a call.
#[track_caller]
pub(super) fn check_type(name: &str, args: &[Value], expected: &str) {
    match call(name, args) {
        Ok((data_type, _)) => assert_eq!(data_type, expected, "{name}"),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// The arguments of a call.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$($crate::functions::testing::Value::from($value)),*][..] };
}
pub(super) use args;

impl From<&Value> for Value {
    fn from(value: &Value) -> Self {
        value.clone()
    }
}
