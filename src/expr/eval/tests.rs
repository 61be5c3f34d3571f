use arrow::array::{
    BooleanArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatchOptions, StringArray,
    StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{Field, Float64Type, Int64Type};

use super::*;
use crate::expr::{CastMode, CompareOp};
use crate::functions::operators;
use crate::types::{Column, RowField, Schema, TypeKind};

fn batch(columns: Vec<(ArrayRef, TypeKind)>) -> RecordBatch {
    let schema = Schema::new(
        columns
            .iter()
            .map(|(_, kind)| Column::new("c", kind.clone().nullable()))
            .collect(),
    );
    let rows = columns.first().map_or(1, |(a, _)| a.len());
    let arrays = columns.into_iter().map(|(array, _)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.to_arrow(), arrays, &options).expect("valid")
}

fn evaluate(e: &Expr, batch: &RecordBatch) -> Result<ArrayRef> {
    Compiled::new(e, &Environment::default())?.evaluate_array(batch, &context(batch))
}

fn context(batch: &RecordBatch) -> EvalContext {
    EvalContext {
        rows: batch.num_rows(),
        now_ms: 0,
        watermark: i64::MIN,
    }
}

fn bools(array: &ArrayRef) -> Vec<Option<bool>> {
    array.as_boolean().iter().collect()
}

fn ints(values: Vec<Option<i32>>) -> (ArrayRef, TypeKind) {
    (Arc::new(Int32Array::from(values)), TypeKind::Int)
}

fn flags(values: Vec<Option<bool>>) -> (ArrayRef, TypeKind) {
    (Arc::new(BooleanArray::from(values)), TypeKind::Boolean)
}

fn column(i: usize, kind: TypeKind) -> Expr {
    Expr::column(i, kind.nullable())
}

fn int(value: i32) -> Expr {
    Expr::literal(ScalarValue::Int32(Some(value)), TypeKind::Int.not_null())
}

fn truth(value: Option<bool>) -> Expr {
    Expr::literal(ScalarValue::Boolean(value), TypeKind::Boolean.nullable())
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

/// `10 / column`: fails where the column is 0.
fn ten_divided_by(divisor: Expr) -> Expr {
    let function = operators::all()
        .into_iter()
        .find(|f| f.name() == "/")
        .expect("division");
    let args = vec![int(10), divisor];
    Expr::new(ExprKind::Call { function, args }, TypeKind::Int.nullable())
}

#[test]
fn and_keeps_failures_from_rows_that_are_false() {
    let batch = batch(vec![
        ints(vec![Some(0), Some(5), None, Some(2)]),
        flags(vec![Some(false), Some(true), None, None]),
    ]);
    let divided = ten_divided_by(column(0, TypeKind::Int));
    let guarded = |and: bool, guard: Expr| {
        let test = compare(CompareOp::Gt, divided.clone(), int(2));
        let parts = vec![guard, test];
        boolean(if and {
            ExprKind::And(parts)
        } else {
            ExprKind::Or(parts)
        })
    };
    let guard = column(1, TypeKind::Boolean);
    let found = evaluate(&guarded(true, guard.clone()), &batch).expect("no zero is reached");
    assert_eq!(bools(&found), [Some(false), Some(false), None, None]);
    let not_guard = boolean(ExprKind::Not(Box::new(guard.clone())));
    let found = evaluate(&guarded(false, not_guard), &batch).expect("no zero is reached");
    assert_eq!(bools(&found), [Some(true), Some(false), None, Some(true)]);
    assert!(evaluate(&guarded(false, guard), &batch).is_err());
}

#[test]
fn connectives_follow_three_valued_logic() {
    let all = [Some(true), Some(false), None];
    for left in all {
        for right in all {
            let parts = || vec![column(0, TypeKind::Boolean), column(1, TypeKind::Boolean)];
            let batch = batch(vec![flags(vec![left; 2]), flags(vec![right; 2])]);
            let and = evaluate(&boolean(ExprKind::And(parts())), &batch).expect("no failure");
            let or = evaluate(&boolean(ExprKind::Or(parts())), &batch).expect("no failure");
            let expected_and = match (left, right) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let expected_or = match (left, right) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            assert_eq!(bools(&and), [expected_and; 2]);
            assert_eq!(bools(&or), [expected_or; 2]);
        }
    }
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    let kind = ExprKind::Case {
        branches,
        otherwise: Box::new(otherwise),
    };
    Expr::new(kind, TypeKind::Int.nullable())
}

#[test]
fn case_evaluates_a_branch_on_its_rows() {
    let batch = batch(vec![ints(vec![Some(0), Some(5), None, Some(-2), Some(7)])]);
    let c = || column(0, TypeKind::Int);
    let null = Expr::literal(ScalarValue::Int32(None), TypeKind::Int.nullable());
    let e = case(
        vec![
            (compare(CompareOp::Eq, c(), int(0)), int(-1)),
            (compare(CompareOp::Gt, c(), int(5)), c()),
            (compare(CompareOp::Lt, c(), int(0)), null),
        ],
        ten_divided_by(c()),
    );
    let found = evaluate(&e, &batch).expect("no zero is reached");
    let values: Vec<_> = found
        .as_primitive::<arrow::datatypes::Int32Type>()
        .iter()
        .collect();
    assert_eq!(values, [Some(-1), Some(2), None, None, Some(7)]);
    // Without anything that fails: all branches on all rows.
    let e = case(
        vec![
            (compare(CompareOp::Eq, c(), int(0)), int(-1)),
            (compare(CompareOp::Lt, c(), int(0)), int(-2)),
        ],
        c(),
    );
    let found = evaluate(&e, &batch).expect("no failure");
    let values: Vec<_> = found
        .as_primitive::<arrow::datatypes::Int32Type>()
        .iter()
        .collect();
    assert_eq!(values, [Some(-1), Some(5), None, Some(-2), Some(7)]);
}

#[test]
fn coalesce_evaluates_later_values_on_missing_rows() {
    let batch = batch(vec![
        ints(vec![Some(1), None, None]),
        ints(vec![Some(0), Some(5), None]),
    ]);
    let present = |e: &Expr| {
        boolean(ExprKind::IsNull {
            input: Box::new(e.clone()),
            negated: true,
        })
    };
    let (first, second) = (
        column(0, TypeKind::Int),
        ten_divided_by(column(1, TypeKind::Int)),
    );
    let e = case(
        vec![(present(&first), first), (present(&second), second)],
        int(-1),
    );
    let found = evaluate(&e, &batch).expect("no zero is reached");
    let values: Vec<_> = found
        .as_primitive::<arrow::datatypes::Int32Type>()
        .iter()
        .collect();
    assert_eq!(values, [Some(1), Some(2), Some(-1)]);
}

#[test]
fn doubles_compare_as_java_primitives() {
    let nan = f64::NAN;
    let left = Float64Array::from(vec![Some(nan), Some(0.0), Some(1.0), None, None]);
    let right = Float64Array::from(vec![Some(nan), Some(-0.0), Some(nan), Some(1.0), None]);
    let kind = || TypeKind::Double;
    let batch = batch(vec![(Arc::new(left), kind()), (Arc::new(right), kind())]);
    let found = |op| {
        let e = compare(op, column(0, kind()), column(1, kind()));
        bools(&evaluate(&e, &batch).expect("no failure"))
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(found(CompareOp::Eq), [no, yes, no, None, None]);
    assert_eq!(found(CompareOp::NotEq), [yes, no, yes, None, None]);
    assert_eq!(found(CompareOp::LtEq), [no, yes, no, None, None]);
    assert_eq!(found(CompareOp::NotDistinct), [no, yes, no, no, yes]);
    assert_eq!(found(CompareOp::Distinct), [yes, no, yes, yes, no]);
    let zero = Expr::literal(ScalarValue::Float64(Some(-0.0)), kind().not_null());
    let e = compare(CompareOp::Gt, zero, column(0, kind()));
    assert_eq!(
        bools(&evaluate(&e, &batch).expect("no failure")),
        [no, no, no, None, None]
    );
}

#[test]
fn nested_values_are_equal_part_by_part() {
    let list = |values: Vec<Option<f64>>, lengths: [usize; 2]| -> ArrayRef {
        let values: ArrayRef = Arc::new(Float64Array::from(values));
        let item = Arc::new(Field::new("item", values.data_type().clone(), true));
        Arc::new(ListArray::new(
            item,
            OffsetBuffer::from_lengths(lengths),
            values,
            None,
        ))
    };
    let kind = || TypeKind::Array(Box::new(TypeKind::Double.nullable()));
    let batch = batch(vec![
        (list(vec![Some(f64::NAN), None, Some(0.0)], [2, 1]), kind()),
        (list(vec![Some(f64::NAN), None, Some(-0.0)], [2, 1]), kind()),
    ]);
    let e = compare(CompareOp::Eq, column(0, kind()), column(1, kind()));
    let found = evaluate(&e, &batch).expect("no failure");
    assert_eq!(bools(&found), [Some(true), Some(false)]);
}

#[test]
fn a_field_of_a_null_row_is_null() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None]));
    let fields = vec![Field::new("a", numbers.data_type().clone(), true)];
    let nulls = NullBuffer::from(vec![true, false, true]);
    let row: ArrayRef = Arc::new(StructArray::new(fields.into(), vec![numbers], Some(nulls)));
    let kind = TypeKind::Row(vec![RowField {
        name: "a".into(),
        data_type: TypeKind::BigInt.nullable(),
    }]);
    let batch = batch(vec![(row, kind.clone())]);
    let kind = ExprKind::Field {
        input: Box::new(column(0, kind)),
        index: 0,
    };
    let found = evaluate(&Expr::new(kind, TypeKind::BigInt.nullable()), &batch).expect("a row");
    let values: Vec<_> = found.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(values, [Some(1), None, None]);
}

#[test]
fn a_predicate_takes_null_for_false() {
    let batch = batch(vec![flags(vec![Some(true), None, Some(false)])]);
    let compiled = Compiled::new(&column(0, TypeKind::Boolean), &Environment::default());
    let holds = compiled
        .expect("valid")
        .evaluate_predicate(&batch, &context(&batch))
        .expect("no failure");
    assert_eq!(holds.null_count(), 0);
    assert_eq!(
        holds.iter().collect::<Vec<_>>(),
        [Some(true), Some(false), Some(false)]
    );
}

#[test]
fn constants_are_folded_and_failures_wait() {
    let env = Environment::default();
    let twice = ten_divided_by(int(5));
    let folded = fold(twice, &env);
    assert_eq!(folded.as_literal(), Some(&ScalarValue::Int32(Some(2))));
    let failing = fold(ten_divided_by(int(0)), &env);
    assert!(failing.as_literal().is_none());
    // A branch that is never taken does not fail.
    let dead = case(
        vec![
            (truth(Some(false)), failing.clone()),
            (truth(None), failing),
        ],
        column(0, TypeKind::Int),
    );
    assert_eq!(fold(dead, &env).as_column(), Some(0));
}

#[test]
fn a_value_equals_itself_unless_it_is_null() {
    let c = || column(0, TypeKind::Double);
    let e = compare(CompareOp::Eq, c(), c());
    let folded = fold(e, &Environment::default());
    let nan: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::NAN), None]));
    let found = evaluate(&folded, &batch(vec![(nan, TypeKind::Double)])).expect("no failure");
    // As Flink, which does not compare at all here.
    assert_eq!(bools(&found), [Some(true), None]);
}

#[test]
fn connectives_lose_their_constants() {
    let env = Environment::default();
    let c = || column(0, TypeKind::Boolean);
    let and = |parts| fold(boolean(ExprKind::And(parts)), &env);
    let or = |parts| fold(boolean(ExprKind::Or(parts)), &env);
    assert_eq!(and(vec![truth(Some(true)), c()]).as_column(), Some(0));
    assert_eq!(
        and(vec![c(), truth(Some(false))]).as_literal(),
        Some(&ScalarValue::Boolean(Some(false)))
    );
    assert_eq!(or(vec![truth(Some(false)), c()]).as_column(), Some(0));
    assert!(matches!(and(vec![truth(None), c()]).kind, ExprKind::And(parts) if parts.len() == 2));
}

#[test]
fn casts_of_constants_are_folded() {
    let text = Expr::literal(
        ScalarValue::Utf8(Some("1.5".into())),
        TypeKind::Char(3).not_null(),
    );
    let kind = ExprKind::Cast {
        input: Box::new(text),
        mode: CastMode::Strict,
    };
    let e = Expr::new(kind, TypeKind::Double.not_null());
    let folded = fold(e, &Environment::default());
    assert_eq!(folded.as_literal(), Some(&ScalarValue::Float64(Some(1.5))));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["2.5"]));
    let kind = ExprKind::Cast {
        input: Box::new(column(0, TypeKind::STRING)),
        mode: CastMode::Try,
    };
    let e = Expr::new(kind, TypeKind::Double.nullable());
    let found = evaluate(&e, &batch(vec![(names, TypeKind::STRING)])).expect("no failure");
    assert_eq!(found.as_primitive::<Float64Type>().values()[..], [2.5]);
}
