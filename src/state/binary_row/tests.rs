use std::sync::Arc;

use arrow::array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DurationMillisecondArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    IntervalYearMonthArray, ListArray, MapArray, StringArray, StructArray, Time32MillisecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType as ArrowType;

use super::*;
use crate::types::RowField;

/// Hash and bytes as Flink 2.3's `RowDataSerializer` and `BinaryRowData` gave them.
fn check(types: &[TypeKind], columns: Vec<ArrayRef>, hash_of: i32, hex: &str) {
    let types: Vec<DataType> = types.iter().cloned().map(DataType::from).collect();
    let codec = BinaryRowCodec::new(&types);
    let mut rows = BinaryRows::default();
    // Twice, so that the buffer is reused; a second row shows that rows do not touch.
    let doubled: Vec<ArrayRef> = columns
        .iter()
        .map(|c| arrow::compute::concat(&[c.as_ref(), c.as_ref()]).unwrap())
        .collect();
    codec.encode(&columns, 1, &mut rows).unwrap();
    codec.encode(&doubled, 2, &mut rows).unwrap();
    assert_eq!(rows.len(), 2);
    for i in 0..2 {
        let found: String = rows.get(i).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(found, hex);
        assert_eq!(hash(rows.get(i)).cast_signed(), hash_of);
    }
    let back = codec.decode(&[rows.get(0), &[], rows.get(1)]).unwrap();
    for (column, back) in columns.iter().zip(&back) {
        assert_eq!(back.data_type(), column.data_type());
        assert_eq!(&back.slice(0, 1), column);
        assert_eq!(&back.slice(2, 1), column);
        assert!(back.logical_nulls().unwrap().is_null(1));
    }
}

fn int(v: impl Into<Option<i32>>) -> ArrayRef {
    Arc::new(Int32Array::from(vec![v.into()]))
}

fn text<'a>(v: impl Into<Option<&'a str>>) -> ArrayRef {
    Arc::new(StringArray::from(vec![v.into()]))
}

fn decimal(v: impl Into<Option<i128>>, p: u8) -> ArrayRef {
    let column = Decimal128Array::from(vec![v.into()]);
    Arc::new(column.with_precision_and_scale(p, 2).unwrap())
}

#[test]
fn fixed_width_fields_lie_as_in_flink() {
    use TypeKind as T;
    check(
        &[T::Int],
        vec![int(1)],
        1_465_514_398,
        "00000000000000000100000000000000",
    );
    check(
        &[T::Int],
        vec![int(None)],
        -1_748_325_344,
        "00010000000000000000000000000000",
    );
    check(
        &[T::Int, T::Int],
        vec![int(1), int(10)],
        -1_688_960_984,
        "000000000000000001000000000000000a00000000000000",
    );
    check(
        &[T::TinyInt, T::SmallInt, T::BigInt, T::Date, T::Time(0)],
        vec![
            Arc::new(Int8Array::from(vec![-1])),
            Arc::new(Int16Array::from(vec![-2])),
            Arc::new(Int64Array::from(vec![-3])),
            Arc::new(Date32Array::from(vec![-4])),
            Arc::new(Time32MillisecondArray::from(vec![5])),
        ],
        236_905_313,
        "0000000000000000ff00000000000000feff000000000000fdfffffffffffffffcffffff000000000500000000000000",
    );
    check(
        &[T::Double, T::Float],
        vec![
            Arc::new(Float64Array::from(vec![f64::NAN])),
            Arc::new(Float32Array::from(vec![-0.0])),
        ],
        93_851_102,
        "0000000000000000000000000000f87f0000008000000000",
    );
    check(
        &[T::IntervalDayTime, T::IntervalYearMonth],
        vec![
            Arc::new(DurationMillisecondArray::from(vec![86_400_000])),
            Arc::new(IntervalYearMonthArray::from(vec![14])),
        ],
        1_293_936_807,
        "0000000000000000005c2605000000000e00000000000000",
    );
    check(&[], vec![], -1_670_924_195, "0000000000000000");
}

#[test]
fn rows_of_many_fields_have_more_null_bits() {
    let columns: Vec<ArrayRef> = (0..70)
        .map(|i| match i {
            60 => int(3),
            69 => int(5),
            _ => int(None),
        })
        .collect();
    let hex = format!(
        "00ffffffffffffffef1f000000000000{}0300000000000000{}0500000000000000",
        "0".repeat(60 * 16),
        "0".repeat(8 * 16)
    );
    check(&vec![TypeKind::Int; 70], columns, -736_233_747, &hex);
}

#[test]
fn strings_of_up_to_seven_bytes_lie_in_the_slot() {
    use TypeKind as T;
    check(
        &[T::Boolean, T::STRING],
        vec![Arc::new(BooleanArray::from(vec![true])), text("abc")],
        261_371_745,
        "000000000000000001000000000000006162630000000083",
    );
    check(
        &[T::STRING],
        vec![text("1234567")],
        199_144_172,
        "00000000000000003132333435363787",
    );
    check(
        &[T::STRING],
        vec![text("12345678")],
        -391_021_801,
        "000000000000000008000000100000003132333435363738",
    );
    check(
        &[T::STRING, T::STRING],
        vec![text("123456789"), text("hello, wörld")],
        -1_530_292_570,
        "000000000000000009000000180000000d000000280000003132333435363738390000000000000068656c6c6f2c2077c3b6726c64000000",
    );
    check(
        &[T::STRING],
        vec![text("")],
        302_122_119,
        "00000000000000000000000000000080",
    );
    check(
        &[T::BYTES],
        vec![Arc::new(BinaryArray::from(vec![
            &[1_u8, 2, 3, 4, 5, 6, 7, 8, 9][..],
        ]))],
        -171_399_545,
        "0000000000000000090000001000000001020304050607080900000000000000",
    );
}

#[test]
fn decimals_and_timestamps_lie_as_in_flink() {
    use TypeKind as T;
    check(
        &[T::Decimal(10, 2)],
        vec![decimal(1234, 10)],
        -1_096_042_293,
        "0000000000000000d204000000000000",
    );
    check(
        &[T::Decimal(30, 2)],
        vec![decimal(1234, 30)],
        -531_788_649,
        "0000000000000000020000001000000004d20000000000000000000000000000",
    );
    check(
        &[T::Decimal(38, 2)],
        vec![decimal(-12_345_678_901_234_567_890_123_456_789_034, 38)],
        1_510_231_675,
        "00000000000000000e00000010000000ff642cf5c39ba6bc22e96f5fc5d60000",
    );
    check(
        &[T::Decimal(30, 2), T::STRING],
        vec![decimal(None, 30), text("0123456789")],
        1_215_631_971,
        "000100000000000000000000000000000a0000001800000030313233343536373839000000000000",
    );
    check(
        &[T::Timestamp(3)],
        vec![Arc::new(TimestampMillisecondArray::from(vec![
            1_234_567_890_123,
        ]))],
        -1_873_221_036,
        "0000000000000000cb04fb711f010000",
    );
    check(
        &[T::Timestamp(6)],
        vec![Arc::new(TimestampMicrosecondArray::from(vec![
            1_234_567_890_123_456,
        ]))],
        1_989_914_711,
        "000000000000000040f5060010000000cb04fb711f010000",
    );
    check(
        &[T::Timestamp(9)],
        vec![Arc::new(TimestampNanosecondArray::from(vec![-1]))],
        61_627_685,
        "00000000000000003f420f0010000000ffffffffffffffff",
    );
    check(
        &[T::TimestampLtz(9)],
        vec![Arc::new(
            TimestampNanosecondArray::from(vec![5_000_007]).with_timezone("UTC"),
        )],
        -1_077_058_302,
        "000000000000000007000000100000000500000000000000",
    );
}

fn list(kind: &TypeKind, values: ArrayRef) -> ArrayRef {
    let ArrowType::List(field) = TypeKind::Array(Box::new(kind.clone().into())).to_arrow() else {
        unreachable!("an array is a list");
    };
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    Arc::new(ListArray::new(field, offsets, values, None))
}

#[test]
fn collections_and_rows_lie_as_in_flink() {
    use TypeKind as T;
    let array = |t: T| T::Array(Box::new(t.into()));
    check(
        &[array(T::Int)],
        vec![list(
            &T::Int,
            Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
        )],
        1_830_759_751,
        "00000000000000001800000010000000030000000200000001000000000000000300000000000000",
    );
    let texts = StringArray::from(vec![Some("a"), None, Some("long string here")]);
    check(
        &[array(T::STRING), T::Int],
        vec![list(&T::STRING, Arc::new(texts)), int(9)],
        -1_563_468_053,
        "00000000000000003000000018000000090000000000000003000000020000006100000000000081000000000000000010000000200000006c6f6e6720737472696e672068657265",
    );
    let flags = BooleanArray::from(vec![Some(true), None, Some(false)]);
    check(
        &[array(T::Boolean)],
        vec![list(&T::Boolean, Arc::new(flags))],
        637_478_931,
        "0000000000000000100000001000000003000000020000000100000000000000",
    );
    let decimals = Decimal128Array::from(vec![Some(1234), None]);
    check(
        &[array(T::Decimal(30, 2))],
        vec![list(
            &T::Decimal(30, 2),
            Arc::new(decimals.with_precision_and_scale(30, 2).unwrap()),
        )],
        -1_062_024_548,
        "0000000000000000280000001000000002000000020000000200000018000000000000000000000004d20000000000000000000000000000",
    );
    let row = T::Row(vec![
        RowField {
            name: "a".into(),
            data_type: T::Int.into(),
        },
        RowField {
            name: "b".into(),
            data_type: T::STRING.into(),
        },
    ]);
    let ArrowType::Struct(fields) = row.to_arrow() else {
        unreachable!("a row is a struct");
    };
    let structs = |a: ArrayRef, b: ArrayRef, nulls| -> ArrayRef {
        Arc::new(StructArray::new(fields.clone(), vec![a, b], nulls))
    };
    check(
        std::slice::from_ref(&row),
        vec![structs(int(7), text("long string here"), None)],
        1_873_301_041,
        "00000000000000002800000010000000000000000000000007000000000000001000000018000000\
         6c6f6e6720737472696e672068657265"
            .replace(' ', "")
            .as_str(),
    );
    let nested = structs(
        Arc::new(Int32Array::from(vec![Some(7), None])),
        Arc::new(StringArray::from(vec![Some("x"), None])),
        Some(NullBuffer::from(vec![true, false])),
    );
    check(
        &[array(row.clone())],
        vec![list(&row, nested)],
        -1_190_069_378,
        "00000000000000003000000010000000020000000200000018000000180000000000000000000000000000000000000007000000000000007800000000000081",
    );
    let map = T::Map(Box::new(T::STRING.into()), Box::new(T::Int.into()));
    let ArrowType::Map(entries, _) = map.to_arrow() else {
        unreachable!("a map is a map");
    };
    let ArrowType::Struct(fields) = entries.data_type() else {
        unreachable!("entries are structs");
    };
    let pairs = StructArray::new(
        fields.clone(),
        vec![
            Arc::new(StringArray::from(vec!["k", "z"])),
            Arc::new(Int32Array::from(vec![Some(1), None])),
        ],
        None,
    );
    let offsets = OffsetBuffer::from_lengths([2]);
    let column = MapArray::new(entries, offsets, pairs, None, false);
    check(
        &[map],
        vec![Arc::new(column)],
        -1_842_402_478,
        "00000000000000002c000000100000001800000002000000000000006b000000000000817a000000000000810200000002000000010000000000000000000000",
    );
}

#[test]
fn a_projection_is_the_row_of_its_fields() {
    let types: Vec<DataType> = [
        TypeKind::STRING,
        TypeKind::Int,
        TypeKind::Decimal(30, 2),
        TypeKind::STRING,
        TypeKind::Timestamp(6),
    ]
    .into_iter()
    .map(DataType::from)
    .collect();
    let columns = vec![
        text("a long string"),
        int(None),
        decimal(77, 30),
        text("short"),
        Arc::new(TimestampMicrosecondArray::from(vec![1_234])) as ArrayRef,
    ];
    let codec = BinaryRowCodec::new(&types);
    let mut rows = BinaryRows::default();
    codec.encode(&columns, 1, &mut rows).unwrap();
    for fields in [vec![4, 0, 2], vec![3, 1], vec![1], vec![0]] {
        let mut projected = Vec::new();
        codec.project(rows.get(0), &fields, &mut projected);
        let types: Vec<_> = fields.iter().map(|f| types[*f].clone()).collect();
        let columns: Vec<_> = fields.iter().map(|f| Arc::clone(&columns[*f])).collect();
        let mut expected = BinaryRows::default();
        BinaryRowCodec::new(&types)
            .encode(&columns, 1, &mut expected)
            .unwrap();
        assert_eq!(projected, expected.get(0));
    }
}
