use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int32Array, ListArray,
    RecordBatch, StringArray, StructArray, TimestampMillisecondArray,
};
use arrow::datatypes::Field;
use chrono_tz::Tz;

use super::*;
use crate::changelog::RowKind;
use crate::types::{Column, RowField};

fn both(array: &ArrayRef, kind: TypeKind) -> (String, String) {
    let form = |style| {
        let mut text = String::new();
        Printer::new(&kind.clone().nullable(), style, Tz::Europe__Berlin)
            .write(array, 0, &mut text);
        text
    };
    (form(Style::Row), form(Style::Cast))
}

fn two(a: &str, b: &str) -> (String, String) {
    (a.into(), b.into())
}

#[test]
fn scalars_in_both_styles() {
    let text: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    assert_eq!(both(&text, TypeKind::STRING), two("null", "NULL"));
    let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    assert_eq!(both(&truth, TypeKind::Boolean), two("true", "TRUE"));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![[65u8, 200].as_slice()]));
    assert_eq!(both(&bytes, TypeKind::BYTES), two("[65, -56]", "A\u{fffd}"));
    let decimal = Decimal128Array::from(vec![0]).with_precision_and_scale(38, 9);
    let decimal: ArrayRef = Arc::new(decimal.expect("valid"));
    assert_eq!(
        both(&decimal, TypeKind::Decimal(38, 9)),
        two("0E-9", "0.000000000")
    );
    let instant: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![0]).with_timezone("UTC"));
    assert_eq!(
        both(&instant, TypeKind::TimestampLtz(3)),
        two("1970-01-01T00:00:00Z", "1970-01-01 01:00:00.000")
    );
}

#[test]
fn nested_values_in_both_styles() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let offsets = arrow::buffer::OffsetBuffer::from_lengths([2]);
    let item = Arc::new(Field::new("item", numbers.data_type().clone(), true));
    let list: ArrayRef = Arc::new(ListArray::new(item, offsets, numbers, None));
    let list_type = TypeKind::Array(Box::new(TypeKind::Int.nullable()));
    assert_eq!(
        both(&list, list_type.clone()),
        two("[1, null]", "[1, NULL]")
    );

    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1e10]));
    let fields = vec![
        Field::new("d", doubles.data_type().clone(), true),
        Field::new("l", list.data_type().clone(), true),
    ];
    let row: ArrayRef = Arc::new(StructArray::new(fields.into(), vec![doubles, list], None));
    let field = |name: &str, kind: TypeKind| RowField {
        name: name.into(),
        data_type: kind.nullable(),
    };
    let row_type = TypeKind::Row(vec![field("d", TypeKind::Double), field("l", list_type)]);
    assert_eq!(
        both(&row, row_type),
        two("+I[1.0E10, [1, null]]", "(1.0E10, [1, NULL])")
    );
}

#[test]
fn rows_with_their_kind() {
    let schema = Schema::new(vec![
        Column::new("k", TypeKind::STRING.nullable()),
        Column::new("v", TypeKind::Int.nullable()),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["a", "b"])),
        Arc::new(Int32Array::from(vec![Some(1), None])),
    ];
    let rows = RecordBatch::try_new(schema.to_arrow(), columns).expect("valid");
    let batch = ChangeBatch::try_new(rows, vec![RowKind::Insert, RowKind::UpdateBefore]);
    let mut text = String::new();
    RowPrinter::new(&schema).write(&batch.expect("valid"), 1, &mut text);
    assert_eq!(text, "-U[b, null]");
}
