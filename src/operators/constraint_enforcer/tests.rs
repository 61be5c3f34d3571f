use super::*;
use crate::operators::testing::{Harness, schema};
use crate::types::{Column, RowField};

fn harness(columns: &str, not_null: NotNullEnforcer, length: TypeLengthEnforcer) -> Harness {
    let sink = schema(columns);
    Harness::new(columns, columns, move |context| {
        let spec = ConstraintEnforcerSpec {
            schema: sink.clone(),
            not_null,
            length,
            nested: NestedEnforcer::Ignore,
            key_of_deletes: None,
        };
        Ok(ConstraintEnforcer::new(spec, context))
    })
}

const ROWS: &str = "+I|abcdef|1
    +I|xy|\\N
    +I|\\N|3
    +I||4";

#[test]
fn a_null_ends_the_job_after_the_rows_before_it() {
    harness(
        "s STRING, v INT NOT NULL",
        NotNullEnforcer::Error,
        TypeLengthEnforcer::Ignore,
    )
    .check(
        ROWS,
        "+I[abcdef, 1]
         ERROR Column 'v' is NOT NULL, however, a null value is being written into it. You can set job configuration 'table.exec.sink.not-null-enforcer'='DROP' to suppress this exception and drop such records silently.",
    );
}

#[test]
fn rows_with_nulls_are_dropped_on_request() {
    harness(
        "s STRING NOT NULL, v INT NOT NULL",
        NotNullEnforcer::Drop,
        TypeLengthEnforcer::Ignore,
    )
    .check(ROWS, "+I[abcdef, 1]\n+I[, 4]");
}

#[test]
fn strings_are_trimmed_and_padded() {
    harness(
        "c CHAR(4), w VARCHAR(3)",
        NotNullEnforcer::Error,
        TypeLengthEnforcer::TrimPad,
    )
    .check(
        "+I|äbcdef|äbcdef\n+U|xy|xy\n+I|\\N|\\N",
        "+I[äbcd, äbc]\n+U[xy  , xy]\n+I[null, null]",
    );
}

#[test]
fn a_wrong_length_ends_the_job_on_request() {
    harness(
        "c CHAR(2), w VARCHAR(3)",
        NotNullEnforcer::Error,
        TypeLengthEnforcer::Error,
    )
    .check(
        "+I|ab|abc\n+I|ab|abcd\n+I|a|abc",
        "+I[ab, abc]
         ERROR Column 'w' is VARCHAR(3), however, a string of length 4 is being written into it. You can set job configuration 'table.exec.sink.type-length-enforcer' to control this behaviour.",
    );
}

#[test]
fn fields_of_rows_and_elements_are_found_by_their_path() {
    let field = |name: &str, data_type| RowField {
        name: name.to_string(),
        data_type,
    };
    let inner = TypeKind::Row(vec![field("b", TypeKind::Int.not_null())]).nullable();
    let array = TypeKind::Array(Box::new(inner)).nullable();
    let column = TypeKind::Row(vec![field("a", array)]).nullable();
    let spec = ConstraintEnforcerSpec {
        schema: Schema::new(vec![Column::new("r", column.clone())]),
        not_null: NotNullEnforcer::Error,
        length: TypeLengthEnforcer::Ignore,
        nested: NestedEnforcer::RowsAndCollections,
        key_of_deletes: None,
    };
    assert!(spec.is_needed());
    let operator = ConstraintEnforcer::new(spec, &crate::operators::testing::context());
    let ints: ArrayRef = Arc::new(arrow::array::Int32Array::from(vec![Some(1), Some(2), None]));
    let arrow::datatypes::DataType::Struct(outer) = column.to_arrow() else {
        unreachable!()
    };
    let arrow::datatypes::DataType::List(item) = outer[0].data_type().clone() else {
        unreachable!()
    };
    let arrow::datatypes::DataType::Struct(fields) = item.data_type().clone() else {
        unreachable!()
    };
    let rows: ArrayRef = Arc::new(StructArray::new(fields, vec![ints], None));
    let offsets = arrow::buffer::OffsetBuffer::new(vec![0, 1, 3].into());
    let lists: ArrayRef = Arc::new(arrow::array::ListArray::new(item, offsets, rows, None));
    let mut columns = [Arc::new(StructArray::new(outer, vec![lists], None)) as ArrayRef];
    let violation = operator
        .enforce(&mut columns, &operator.fields, &mut [true, true], None)
        .0
        .unwrap();
    assert_eq!((violation.row, violation.column.as_str()), (1, "r.a[1].b"));
}
