use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMillisecondArray,
};

use super::*;
use crate::types::TypeKind;

fn round_trip(types: &[DataType], columns: &[ArrayRef]) {
    let encoder = KeyEncoder::new(types).unwrap();
    let mut table = encoder.table();
    let mut keys = EncodedKeys::default();
    let (mut slots, mut fresh) = (Vec::new(), Vec::new());
    let len = columns[0].len();
    encoder.encode(columns, len, &mut keys).unwrap();
    table.intern(&keys, &mut slots, &mut fresh).unwrap();
    let back = table.decode(&encoder, slots.clone()).unwrap();
    assert_eq!(back, columns);
    let copy = table.copy_keys(&slots);
    assert_eq!(copy.len(), len);
    assert_eq!(encoder.decode(copy.iter()).unwrap(), columns);
    assert_eq!(table.len(), fresh.len());
    let again: Vec<u32> = (0..len).map(|i| table.find_one(&keys, i)).collect();
    assert_eq!(again, slots);
    for (i, slot) in slots.iter().enumerate() {
        assert_eq!(table.key_bytes(*slot), keys.bytes(i));
        assert_eq!(keys.has_null(i), columns.iter().any(|c| c.is_null(i)));
    }
}

#[test]
fn keys_of_all_layouts_come_back() {
    let ints: ArrayRef = Arc::new(Int64Array::from(vec![
        Some(1),
        None,
        Some(1),
        Some(i64::MIN),
    ]));
    let small: ArrayRef = Arc::new(Int32Array::from(vec![Some(-1), None, Some(0), Some(-1)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some(""), None, Some("é"), Some("")]));
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![Some(-1), None, Some(0), Some(7)]));
    let times: ArrayRef = Arc::new(
        TimestampMillisecondArray::from(vec![Some(-1), None, Some(0), Some(7)])
            .with_timezone("UTC"),
    );
    round_trip(&[TypeKind::BigInt.nullable()], &[ints.slice(2, 2)]);
    round_trip(&[TypeKind::BigInt.nullable()], &[Arc::clone(&ints)]);
    round_trip(&[TypeKind::Int.nullable()], &[small]);
    round_trip(&[TypeKind::Date.nullable()], &[dates]);
    round_trip(&[TypeKind::TimestampLtz(3).nullable()], &[times]);
    round_trip(&[TypeKind::STRING.nullable()], &[Arc::clone(&texts)]);
    round_trip(
        &[TypeKind::STRING.nullable(), TypeKind::BigInt.nullable()],
        &[texts, ints],
    );
}

#[test]
fn keys_in_bytes_keep_their_ends() {
    for keys in [
        vec!["ab", "cd"],
        vec!["ab", "", "c"],
        vec!["", "", "abc"],
        vec!["", ""],
    ] {
        let mut bytes = KeyBytes::default();
        keys.iter().for_each(|key| bytes.push(key.as_bytes()));
        let back: Vec<_> = bytes
            .iter()
            .map(|key| str::from_utf8(key).unwrap())
            .collect();
        assert_eq!(back, keys);
        assert_eq!(bytes.len(), keys.len());
    }
}

#[test]
fn nan_is_one_key_and_the_zeros_are_two() {
    let encoder = KeyEncoder::new(&[TypeKind::Double.nullable()]).unwrap();
    let column: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, -f64::NAN, 0.0, -0.0]));
    let mut keys = EncodedKeys::default();
    encoder.encode(&[column], 4, &mut keys).unwrap();
    let (mut slots, mut fresh) = (Vec::new(), Vec::new());
    encoder
        .table()
        .intern(&keys, &mut slots, &mut fresh)
        .unwrap();
    assert_eq!(slots, [0, 0, 1, 2]);
    assert_eq!(fresh, [0, 2, 3]);
}

#[test]
fn no_key_columns_give_one_slot() {
    let encoder = KeyEncoder::new(&[]).unwrap();
    let mut table = encoder.table();
    let mut keys = EncodedKeys::default();
    let (mut slots, mut fresh) = (Vec::new(), Vec::new());
    encoder.encode(&[], 3, &mut keys).unwrap();
    table.intern(&keys, &mut slots, &mut fresh).unwrap();
    assert_eq!(slots, [0, 0, 0]);
    assert_eq!(fresh, [0]);
    assert!(table.decode(&encoder, slots).unwrap().is_empty());
}

#[test]
fn a_freed_slot_is_given_out_in_the_next_batch_only() {
    for types in [TypeKind::BigInt.nullable(), TypeKind::Double.nullable()] {
        let encoder = KeyEncoder::new(std::slice::from_ref(&types)).unwrap();
        let column = |values: Vec<Option<i64>>| -> ArrayRef {
            arrow::compute::cast(&Int64Array::from(values), &types.to_arrow()).unwrap()
        };
        let mut table = encoder.table();
        let mut keys = EncodedKeys::default();
        let (mut slots, mut fresh) = (Vec::new(), Vec::new());
        encoder
            .encode(&[column(vec![Some(1), None, Some(3)])], 3, &mut keys)
            .unwrap();
        table.intern(&keys, &mut slots, &mut fresh).unwrap();
        table.remove(0);
        table.remove(1);
        assert_eq!(table.find_one(&keys, 0), NO_SLOT);
        assert_eq!(table.find_one(&keys, 1), NO_SLOT);
        assert_eq!(table.intern_one(&keys, 1).unwrap(), (3, true));
        assert_eq!(table.slots().collect::<Vec<_>>(), [2, 3]);
        encoder
            .encode(&[column(vec![Some(9), Some(3), Some(1)])], 3, &mut keys)
            .unwrap();
        table.intern(&keys, &mut slots, &mut fresh).unwrap();
        assert_eq!(slots, [1, 2, 0]);
        assert_eq!(table.len(), 4);
        assert_eq!(table.slot_bound(), 4);
    }
}
