//! Whether result rows differ, as Flink's generated equalisers see it: NULL equals NULL, NaN does not
//! equal NaN, 0.0 equals -0.0.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
};

/// Sets `changed[i]` where the two columns differ in row `i`.
pub(super) fn mark_changes(before: &ArrayRef, after: &ArrayRef, changed: &mut [bool]) {
    match before.data_type() {
        ArrowType::Int64 => mark::<Int64Type>(before, after, changed),
        ArrowType::Int32 => mark::<Int32Type>(before, after, changed),
        ArrowType::Float64 => mark::<Float64Type>(before, after, changed),
        ArrowType::Float32 => mark::<Float32Type>(before, after, changed),
        ArrowType::Decimal128(..) => mark::<Decimal128Type>(before, after, changed),
        ArrowType::Utf8 => {
            let (before, after) = (before.as_string::<i32>(), after.as_string::<i32>());
            for (i, changed) in changed.iter_mut().enumerate() {
                *changed |= before.is_null(i) != after.is_null(i)
                    || (before.is_valid(i) && before.value(i) != after.value(i));
            }
        }
        _ => {
            for (i, changed) in changed.iter_mut().enumerate() {
                *changed |= before.slice(i, 1).to_data() != after.slice(i, 1).to_data();
            }
        }
    }
}

fn mark<T: ArrowPrimitiveType>(before: &ArrayRef, after: &ArrayRef, changed: &mut [bool]) {
    let (before, after) = (before.as_primitive::<T>(), after.as_primitive::<T>());
    let values = before.values().iter().zip(after.values());
    if before.null_count() == 0 && after.null_count() == 0 {
        for ((a, b), changed) in values.zip(changed) {
            *changed |= a != b;
        }
        return;
    }
    for (i, ((a, b), changed)) in values.zip(changed).enumerate() {
        *changed |= before.is_null(i) != after.is_null(i) || (before.is_valid(i) && a != b);
    }
}
