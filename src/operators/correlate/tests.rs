use arrow::array::{Int32Array, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::DataType as ArrowType;

use super::*;
use crate::changelog::RowKind;
use crate::operators::testing::{context, schema};
use crate::runtime::output::Emitted;
use crate::types::text::RowPrinter;
use crate::types::{Column, DataType, RowField};

fn list(element: &DataType, values: ArrayRef, lengths: &[usize], valid: &[bool]) -> ArrayRef {
    let ArrowType::List(field) = TypeKind::Array(Box::new(element.clone())).to_arrow() else {
        unreachable!("an array is a list");
    };
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    let nulls = NullBuffer::from(valid.to_vec());
    Arc::new(arrow::array::ListArray::new(
        field,
        offsets,
        values,
        Some(nulls),
    ))
}

struct Case {
    element: DataType,
    collections: ArrayRef,
    kind: fn(Box<DataType>) -> TypeKind,
    table: &'static str,
    ordinality: bool,
    left: bool,
    condition: bool,
}

impl Case {
    /// `[3, NULL, 1]`, `[]`, NULL, `[7]` with the ids 1 to 4.
    fn ints() -> Self {
        let element = TypeKind::Int.nullable();
        let values = Arc::new(Int32Array::from(vec![Some(3), None, Some(1), Some(7)]));
        let valid = [true, true, false, true];
        Self {
            collections: list(&element, values, &[3, 0, 0, 1], &valid),
            element,
            kind: TypeKind::Array,
            table: "e INT",
            ordinality: false,
            left: false,
            condition: false,
        }
    }

    fn run(&self) -> String {
        let collection = (self.kind)(Box::new(self.element.clone())).nullable();
        let mut input = schema("id INT");
        input.columns.push(Column::new("c", collection.clone()));
        let mut table = schema(self.table);
        if self.ordinality {
            table
                .columns
                .push(Column::new("o", TypeKind::Int.nullable()));
        }
        let spec = CorrelateSpec {
            call: CorrelateCall::Unnest {
                collection: Expr::column(1, collection),
                ordinality: self.ordinality,
            },
            output: input.join(&table),
            input: input.clone(),
            table,
            left: self.left,
            condition: None,
        };
        let printed = spec.output.project(
            &[0].into_iter()
                .chain(2..spec.output.len())
                .collect::<Vec<_>>(),
        );
        let mut correlate = Correlate::new(spec, &context()).unwrap();
        correlate.condition = self
            .condition
            .then(|| JoinCondition::on_ints(0, 0, |id, e| e > id));
        let ids = Int32Array::from_iter_values(1..=4);
        let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::clone(&self.collections)];
        let rows = RecordBatch::try_new(input.to_arrow(), columns).unwrap();
        let kinds = [
            RowKind::Insert,
            RowKind::UpdateBefore,
            RowKind::UpdateAfter,
            RowKind::Delete,
        ];
        let batch = ChangeBatch::try_new(rows, kinds.to_vec()).unwrap();
        let mut emitted: Vec<Emitted> = Vec::new();
        correlate
            .process(0, batch, &mut Output::new(&mut emitted))
            .unwrap();
        let printer = RowPrinter::new(&printed);
        let mut text = String::new();
        for message in &emitted {
            let Emitted::Batch(batch) = message else {
                continue;
            };
            let positions: Vec<usize> = [0]
                .into_iter()
                .chain(2..batch.rows().num_columns())
                .collect();
            let batch = batch
                .with_rows(batch.rows().project(&positions).unwrap())
                .unwrap();
            for i in 0..batch.len() {
                printer.write(&batch, i, &mut text);
                text.push(' ');
            }
        }
        text.trim_end().to_string()
    }
}

#[test]
fn elements_become_rows_with_the_kind_of_their_row() {
    let mut case = Case::ints();
    assert_eq!(case.run(), "+I[1, 3] +I[1, null] +I[1, 1] -D[4, 7]");
    case.ordinality = true;
    assert_eq!(
        case.run(),
        "+I[1, 3, 1] +I[1, null, 2] +I[1, 1, 3] -D[4, 7, 1]"
    );
}

#[test]
fn a_left_join_pads_rows_without_elements() {
    let mut case = Case::ints();
    case.left = true;
    assert_eq!(
        case.run(),
        "+I[1, 3] +I[1, null] +I[1, 1] -U[2, null] +U[3, null] -D[4, 7]"
    );
    case.condition = true;
    assert_eq!(case.run(), "+I[1, 3] -U[2, null] +U[3, null] -D[4, 7]");
    case.left = false;
    assert_eq!(case.run(), "+I[1, 3] -D[4, 7]");
}

#[test]
fn rows_in_an_array_become_columns_and_null_rows_nothing() {
    let field = |name: &str, kind: TypeKind| RowField {
        name: name.into(),
        data_type: kind.into(),
    };
    let row = TypeKind::Row(vec![
        field("p", TypeKind::Int),
        field("q", TypeKind::STRING),
    ]);
    let ArrowType::Struct(fields) = row.to_arrow() else {
        unreachable!("a row is a struct");
    };
    let values = StructArray::new(
        fields,
        vec![
            Arc::new(Int32Array::from(vec![Some(7), Some(5), None])),
            Arc::new(StringArray::from(vec![
                Some("x"),
                Some("hidden"),
                Some("y"),
            ])),
        ],
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let element = row.nullable();
    let mut case = Case {
        collections: list(&element, Arc::new(values), &[2, 1, 0, 0], &[true; 4]),
        element,
        table: "p INT, q STRING",
        ..Case::ints()
    };
    assert_eq!(case.run(), "+I[1, 7, x] -U[2, null, y]");
    case.ordinality = true;
    assert_eq!(
        case.run(),
        "+I[1, 7, x, 1] +I[1, null, null, 2] -U[2, null, y, 1]"
    );
}

#[test]
fn maps_give_keys_and_values_and_multisets_repeat() {
    let map = TypeKind::Map(
        Box::new(TypeKind::STRING.nullable()),
        Box::new(TypeKind::Int.nullable()),
    );
    let ArrowType::Map(entries, _) = map.to_arrow() else {
        unreachable!("a map is a map");
    };
    let ArrowType::Struct(fields) = entries.data_type() else {
        unreachable!("entries are structs");
    };
    let pairs = StructArray::new(
        fields.clone(),
        vec![
            Arc::new(StringArray::from(vec!["a", "b", "c"])),
            Arc::new(Int32Array::from(vec![2, 1, 3])),
        ],
        None,
    );
    let offsets = OffsetBuffer::from_lengths([2, 0, 1, 0]);
    let valid = NullBuffer::from(vec![true, true, true, false]);
    let column = arrow::array::MapArray::new(entries, offsets, pairs, Some(valid), false);
    let mut case = Case {
        collections: Arc::new(column),
        element: TypeKind::STRING.nullable(),
        kind: |key| TypeKind::Map(key, Box::new(TypeKind::Int.nullable())),
        table: "k STRING, v INT",
        ordinality: true,
        ..Case::ints()
    };
    assert_eq!(case.run(), "+I[1, a, 2, 1] +I[1, b, 1, 2] +U[3, c, 3, 1]");
    case.kind = TypeKind::Multiset;
    case.table = "e STRING";
    assert_eq!(
        case.run(),
        "+I[1, a, 1] +I[1, a, 2] +I[1, b, 3] +U[3, c, 1] +U[3, c, 2] +U[3, c, 3]"
    );
}
