//! How the values of an argument are read.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, PrimitiveArray,
    StringArray,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type,
};

/// A way to read the values of an argument.
pub(in crate::functions) trait Read: 'static {
    /// The Arrow array.
    type Array: Array + Clone + 'static;
    /// A value.
    type Item<'a>: Copy;
    /// The array of an argument, if it has the right type.
    fn array(array: &ArrayRef) -> Option<Self::Array>;
    /// Value `i`, which is not NULL.
    fn read(array: &Self::Array, i: usize) -> Self::Item<'_>;
}

/// `CHAR`, `VARCHAR`.
pub(in crate::functions) struct Text;
/// `BINARY`, `VARBINARY`.
pub(in crate::functions) struct Bytes;
/// `BOOLEAN`.
pub(in crate::functions) struct Bool;
/// A primitive type.
pub(in crate::functions) struct Prim<P>(std::marker::PhantomData<P>);
/// Dates, times, timestamps and intervals of any unit, as `i64`.
pub(in crate::functions) struct Ticks;

pub(in crate::functions) type TinyInt = Prim<Int8Type>;
pub(in crate::functions) type SmallInt = Prim<Int16Type>;
pub(in crate::functions) type Int = Prim<Int32Type>;
pub(in crate::functions) type BigInt = Prim<Int64Type>;
pub(in crate::functions) type Float = Prim<Float32Type>;
pub(in crate::functions) type Double = Prim<Float64Type>;
pub(in crate::functions) type Decimal = Prim<Decimal128Type>;
pub(in crate::functions) type Date = Prim<Date32Type>;

impl Read for Text {
    type Array = StringArray;
    type Item<'a> = &'a str;
    fn array(array: &ArrayRef) -> Option<StringArray> {
        array.as_string_opt::<i32>().cloned()
    }
    fn read(array: &StringArray, i: usize) -> &str {
        array.value(i)
    }
}

impl Read for Bytes {
    type Array = BinaryArray;
    type Item<'a> = &'a [u8];
    fn array(array: &ArrayRef) -> Option<BinaryArray> {
        array.as_binary_opt::<i32>().cloned()
    }
    fn read(array: &BinaryArray, i: usize) -> &[u8] {
        array.value(i)
    }
}

impl Read for Bool {
    type Array = BooleanArray;
    type Item<'a> = bool;
    fn array(array: &ArrayRef) -> Option<BooleanArray> {
        array.as_boolean_opt().cloned()
    }
    fn read(array: &BooleanArray, i: usize) -> bool {
        array.value(i)
    }
}

impl<P: ArrowPrimitiveType> Read for Prim<P> {
    type Array = PrimitiveArray<P>;
    type Item<'a> = P::Native;
    fn array(array: &ArrayRef) -> Option<PrimitiveArray<P>> {
        array.as_primitive_opt::<P>().cloned()
    }
    fn read(array: &PrimitiveArray<P>, i: usize) -> P::Native {
        array.value(i)
    }
}

impl Read for Ticks {
    type Array = PrimitiveArray<Int64Type>;
    type Item<'a> = i64;
    fn array(array: &ArrayRef) -> Option<Self::Array> {
        let data = array.to_data();
        let (start, len) = (data.offset(), data.len());
        let values = match data.data_type() {
            ArrowType::Timestamp(..) | ArrowType::Duration(_) | ArrowType::Int64 => {
                ScalarBuffer::new(data.buffers()[0].clone(), start, len)
            }
            ArrowType::Date32 | ArrowType::Time32(_) | ArrowType::Interval(_) => {
                let narrow = ScalarBuffer::<i32>::new(data.buffers()[0].clone(), start, len);
                narrow.iter().map(|v| i64::from(*v)).collect()
            }
            _ => return None,
        };
        Some(PrimitiveArray::new(values, data.nulls().cloned()))
    }
    fn read(array: &Self::Array, i: usize) -> i64 {
        array.value(i)
    }
}
