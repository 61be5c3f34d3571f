use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray, StringArray,
    TimestampMillisecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::Field;

use super::*;
use crate::types::text::{Printer, Style};

/// The cast column's values as a row shows them, or the error.
fn cast(array: ArrayRef, from: TypeKind, to: TypeKind, mode: CastMode) -> Result<Vec<String>> {
    in_zone(array, from, to, mode, chrono_tz::UTC)
}

fn in_zone(
    array: ArrayRef,
    from: TypeKind,
    to: TypeKind,
    mode: CastMode,
    time_zone: chrono_tz::Tz,
) -> Result<Vec<String>> {
    let env = Environment {
        time_zone,
        ..Environment::default()
    };
    let (from, to) = (from.nullable(), to.nullable());
    let converted = cast_array(&array, &from, &to, mode, &env)?;
    assert_eq!(converted.data_type(), &to.to_arrow());
    let printer = Printer::new(&to, Style::Row, time_zone);
    Ok((0..converted.len())
        .map(|row| {
            let mut text = String::new();
            printer.write(&converted, row, &mut text);
            text
        })
        .collect())
}

fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn integers_wrap_and_floats_saturate() {
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![Some(4_294_967_297), Some(300), None]));
    let found = cast(
        Arc::clone(&longs),
        TypeKind::BigInt,
        TypeKind::Int,
        CastMode::Strict,
    );
    assert_eq!(found.expect("no failure"), ["1", "300", "null"]);
    let found = cast(longs, TypeKind::BigInt, TypeKind::TinyInt, CastMode::Strict);
    assert_eq!(found.expect("no failure"), ["1", "44", "null"]);
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1e10, -2.9, f64::NAN]));
    let found = cast(
        Arc::clone(&doubles),
        TypeKind::Double,
        TypeKind::Int,
        CastMode::Strict,
    );
    assert_eq!(found.expect("no failure"), ["2147483647", "-2", "0"]);
    let found = cast(
        doubles,
        TypeKind::Double,
        TypeKind::TinyInt,
        CastMode::Strict,
    );
    assert_eq!(found.expect("no failure"), ["-1", "-2", "0"]);
}

#[test]
fn decimals_round_half_up_and_overflow_to_null() {
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.005, -2.5, 1e10, 1.5e300]));
    let found = cast(
        doubles,
        TypeKind::Double,
        TypeKind::Decimal(5, 2),
        CastMode::Strict,
    );
    assert_eq!(
        found.expect("no failure"),
        ["1.01", "-2.50", "null", "null"]
    );
    let decimals = Decimal128Array::from(vec![2500, -2500, 2499, 1_234_567_125]);
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(12, 3).expect("valid"));
    let from = TypeKind::Decimal(12, 3);
    let to = |kind| cast(Arc::clone(&decimals), from.clone(), kind, CastMode::Strict);
    let found = to(TypeKind::Decimal(12, 0)).expect("no failure");
    assert_eq!(found, ["3", "-3", "2", "1234567"]);
    let found = to(TypeKind::Decimal(5, 2)).expect("no failure");
    assert_eq!(found, ["2.50", "-2.50", "2.50", "null"]);
    let found = to(TypeKind::Float).expect("no failure");
    assert_eq!(found, ["2.5", "-2.5", "2.499", "1234567.1"]);
    let found = to(TypeKind::STRING).expect("no failure");
    assert_eq!(found, ["2.500", "-2.500", "2.499", "1234567.125"]);
}

#[test]
fn a_double_that_is_not_finite_has_no_decimal() {
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY]));
    let to = |mode| {
        let array = Arc::clone(&doubles);
        cast(array, TypeKind::Double, TypeKind::Decimal(5, 2), mode)
    };
    assert!(to(CastMode::Strict).is_err());
    assert_eq!(to(CastMode::Try).expect("no failure"), ["null"]);
}

#[test]
fn text_that_cannot_be_read_fails_or_is_null() {
    let texts = strings(&["12", "3.99", "x"]);
    let to = |mode| cast(Arc::clone(&texts), TypeKind::STRING, TypeKind::Int, mode);
    assert_eq!(to(CastMode::Try).expect("no failure"), ["12", "3", "null"]);
    assert_eq!(
        to(CastMode::Strict).expect_err("x is no number").message(),
        "Cannot cast 'x' to INT: Invalid character found."
    );
}

#[test]
fn strings_are_cut_and_padded() {
    let texts = strings(&["abcdef", "äö", ""]);
    let to = |kind| cast(Arc::clone(&texts), TypeKind::STRING, kind, CastMode::Strict);
    let found = to(TypeKind::Char(4)).expect("no failure");
    assert_eq!(found, ["abcd", "äö  ", "    "]);
    let found = to(TypeKind::VarChar(1)).expect("no failure");
    assert_eq!(found, ["a", "ä", ""]);
    let found = to(TypeKind::Binary(3)).expect("no failure");
    assert_eq!(found, ["[97, 98, 99]", "[-61, -92, -61]", "[0, 0, 0]"]);
}

#[test]
fn timestamps_change_precision_and_zone() {
    let ticks: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![-1, 1_711_846_815_250]));
    let to = |kind| {
        let (array, zone) = (Arc::clone(&ticks), chrono_tz::Europe::Berlin);
        in_zone(array, TypeKind::Timestamp(3), kind, CastMode::Strict, zone).expect("no failure")
    };
    // Below the second Flink cuts towards 1970.
    assert_eq!(
        to(TypeKind::Timestamp(0)),
        ["1970-01-01T00:00", "2024-03-31T01:00:15"]
    );
    assert_eq!(to(TypeKind::Timestamp(6))[1], "2024-03-31T01:00:15.250");
    assert_eq!(to(TypeKind::TimestampLtz(3))[1], "2024-03-31T00:00:15.250Z");
    assert_eq!(to(TypeKind::Date), ["1969-12-31", "2024-03-31"]);
    assert_eq!(to(TypeKind::Time(1)), ["23:59:59.900", "01:00:15.200"]);
}

#[test]
fn one_bad_element_makes_the_tried_array_null() {
    let elements = strings(&["0", "1", "x", "2"]);
    let item = Arc::new(Field::new("item", elements.data_type().clone(), true));
    let list = ListArray::new(item, OffsetBuffer::from_lengths([1, 2, 1]), elements, None);
    let array = |kind: TypeKind| TypeKind::Array(Box::new(kind.nullable()));
    let list: ArrayRef = Arc::new(list.slice(1, 2));
    let (from, to) = (array(TypeKind::STRING), array(TypeKind::Int));
    let found = cast(Arc::clone(&list), from.clone(), to.clone(), CastMode::Try);
    assert_eq!(found.expect("no failure"), ["null", "[2]"]);
    assert!(cast(list, from, to, CastMode::Strict).is_err());
}

#[test]
fn columns_that_fit_already_are_not_touched() {
    let plan = |from: TypeKind, to: TypeKind| {
        let env = Environment::default();
        Cast::new(&from.nullable(), &to.nullable(), CastMode::Strict, &env).expect("allowed")
    };
    assert!(plan(TypeKind::VarChar(3), TypeKind::STRING).is_identity());
    assert!(plan(TypeKind::Char(3), TypeKind::VarChar(3)).is_identity());
    assert!(!plan(TypeKind::VarChar(3), TypeKind::Char(3)).is_identity());
    assert!(plan(TypeKind::Time(0), TypeKind::Time(3)).is_identity());
    assert!(!plan(TypeKind::Int, TypeKind::BigInt).may_fail());
    assert!(plan(TypeKind::STRING, TypeKind::BigInt).may_fail());
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    assert!(cast(ints, TypeKind::Int, TypeKind::Date, CastMode::Strict).is_err());
}
