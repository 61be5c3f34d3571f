//! The classes of values that aggregates keep: how a column of one is read, compared, stored and
//! built. A class carries several Arrow types, so that aggregates are compiled a few times only.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryBuilder, NullBufferBuilder,
    PrimitiveArray, StringArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::DataType as ArrowType;

use super::convert::{from_f64, from_i64, from_i128, to_binary, to_f64, to_i64, to_i128};
use crate::error::{Error, Result};
use crate::state::rows::{EncodedRows, RowCodec};
use crate::types::DataType;

/// A class of values.
pub(crate) trait Value: Send + Debug + Sized + 'static {
    /// A value as it is read and compared, in a total order: that of SQL, NaN last.
    type Key: ?Sized + Ord;
    /// A value as it is kept.
    type Owned: Borrow<Self::Key> + Ord + Clone + Send + Debug;
    /// A column made ready for reading.
    type Column;
    /// Collects a column.
    type Builder;

    /// Makes a column ready.
    fn read(&self, array: &ArrayRef) -> Result<Self::Column>;
    /// The value in a row.
    fn get(column: &Self::Column, row: usize) -> Option<&Self::Key>;
    /// A value to keep.
    fn own(key: &Self::Key) -> Self::Owned;
    /// Bytes that a kept value holds beyond itself.
    fn heap_size(_value: &Self::Owned) -> usize {
        0
    }
    /// SQL's `<`: false if one side is NaN.
    fn less(a: &Self::Key, b: &Self::Key) -> bool {
        a < b
    }
    /// An empty column with room.
    fn builder(capacity: usize) -> Self::Builder;
    /// Appends a value.
    fn push(builder: &mut Self::Builder, value: Option<&Self::Key>);
    /// Whether the last two values of the column differ. As in Flink, NaN differs from NaN.
    fn last_two_differ(builder: &Self::Builder) -> bool;
    /// The collected column.
    fn finish(&self, builder: Self::Builder) -> Result<ArrayRef>;
}

/// A column of numbers as it is read.
#[derive(Debug)]
pub(crate) struct Numbers<N: arrow::datatypes::ArrowNativeType> {
    /// The numbers.
    pub(crate) values: ScalarBuffer<N>,
    /// Where there is one.
    pub(crate) nulls: Option<NullBuffer>,
}

impl<N: arrow::datatypes::ArrowNativeType> Numbers<N> {
    pub(crate) fn of<T: ArrowPrimitiveType<Native = N>>(array: &PrimitiveArray<T>) -> Self {
        Self {
            values: array.values().clone(),
            nulls: array.nulls().filter(|n| n.null_count() > 0).cloned(),
        }
    }

    /// The number in a row.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<N> {
        self.reference(row).copied()
    }

    #[inline]
    fn reference(&self, row: usize) -> Option<&N> {
        match &self.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => Some(&self.values[row]),
        }
    }
}

/// Collects numbers.
#[derive(Debug)]
pub(crate) struct NumbersBuilder<N> {
    values: Vec<N>,
    nulls: NullBufferBuilder,
    /// Numbers that make one result.
    group: usize,
}

impl<N: arrow::datatypes::ArrowNativeType> NumbersBuilder<N> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self::with_group(capacity, 1)
    }

    /// Collects results of `group` numbers each.
    pub(crate) fn with_group(capacity: usize, group: usize) -> Self {
        Self {
            values: Vec::with_capacity(capacity * group),
            nulls: NullBufferBuilder::new(capacity * group),
            group,
        }
    }

    /// Number of results.
    pub(crate) fn rows(&self) -> usize {
        self.values.len() / self.group.max(1)
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Option<N>) {
        match value {
            Some(value) => {
                self.values.push(value);
                self.nulls.append_non_null();
            }
            None => {
                self.values.push(N::default());
                self.nulls.append_null();
            }
        }
    }

    #[inline]
    pub(crate) fn last_two_differ(&self) -> bool {
        if self.group != 1 {
            return self.last_groups_differ();
        }
        match self.values.as_slice() {
            // A NULL is a default value below: look at the validity only if that may matter.
            [.., a, b] => {
                a != b
                    || (self.nulls.as_slice().is_some() && {
                        let n = self.values.len();
                        self.nulls.is_valid(n - 1) != self.nulls.is_valid(n - 2)
                    })
            }
            _ => false,
        }
    }

    fn last_groups_differ(&self) -> bool {
        let n = self.values.len();
        let differ = |i: usize, j: usize| {
            self.values[i] != self.values[j] || self.nulls.is_valid(i) != self.nulls.is_valid(j)
        };
        n >= 2 * self.group && (n - self.group..n).any(|i| differ(i, i - self.group))
    }

    pub(crate) fn finish<T: ArrowPrimitiveType<Native = N>>(mut self) -> PrimitiveArray<T> {
        PrimitiveArray::new(self.values.into(), self.nulls.finish())
    }
}

/// Integers of all widths, booleans and everything that is counted in integers: dates, times,
/// timestamps, intervals.
#[derive(Debug, Clone)]
pub(crate) struct Ints(pub(crate) ArrowType);

impl Value for Ints {
    type Key = i64;
    type Owned = i64;
    type Column = Numbers<i64>;
    type Builder = NumbersBuilder<i64>;

    fn read(&self, array: &ArrayRef) -> Result<Numbers<i64>> {
        Ok(Numbers::of(&to_i64(array)?))
    }

    #[inline]
    fn get(column: &Numbers<i64>, row: usize) -> Option<&i64> {
        column.reference(row)
    }

    fn own(key: &i64) -> i64 {
        *key
    }

    fn builder(capacity: usize) -> NumbersBuilder<i64> {
        NumbersBuilder::new(capacity)
    }

    #[inline]
    fn push(builder: &mut NumbersBuilder<i64>, value: Option<&i64>) {
        builder.push(value.copied());
    }

    #[inline]
    fn last_two_differ(builder: &NumbersBuilder<i64>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<i64>) -> Result<ArrayRef> {
        from_i64(builder.finish(), &self.0)
    }
}

/// A floating-point number with Java's total order: -0.0 before 0.0, NaN last.
#[derive(Debug, Clone, Copy, Default)]
#[repr(transparent)]
pub(crate) struct Total(pub(crate) f64);

impl PartialEq for Total {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Total {}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Total {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0.is_nan(), other.0.is_nan()) {
            (false, false) => self.0.total_cmp(&other.0),
            (a, b) => a.cmp(&b),
        }
    }
}

/// `DOUBLE` and `FLOAT`.
#[derive(Debug, Clone)]
pub(crate) struct Floats(pub(crate) ArrowType);

/// A column of floating-point numbers as it is read.
#[derive(Debug)]
pub(crate) struct FloatColumn {
    values: Vec<Total>,
    nulls: Option<NullBuffer>,
}

impl Value for Floats {
    type Key = Total;
    type Owned = Total;
    type Column = FloatColumn;
    type Builder = NumbersBuilder<f64>;

    fn read(&self, array: &ArrayRef) -> Result<FloatColumn> {
        let numbers = to_f64(array)?;
        Ok(FloatColumn {
            values: numbers.values.iter().map(|v| Total(*v)).collect(),
            nulls: numbers.nulls,
        })
    }

    fn get(column: &FloatColumn, row: usize) -> Option<&Total> {
        match &column.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => Some(&column.values[row]),
        }
    }

    fn own(key: &Total) -> Total {
        *key
    }

    fn less(a: &Total, b: &Total) -> bool {
        a.0 < b.0
    }

    fn builder(capacity: usize) -> NumbersBuilder<f64> {
        NumbersBuilder::new(capacity)
    }

    fn push(builder: &mut NumbersBuilder<f64>, value: Option<&Total>) {
        builder.push(value.map(|v| v.0));
    }

    fn last_two_differ(builder: &NumbersBuilder<f64>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<f64>) -> Result<ArrayRef> {
        from_f64(builder.finish(), &self.0)
    }
}

/// `DECIMAL`.
#[derive(Debug, Clone)]
pub(crate) struct Decimals(pub(crate) ArrowType);

impl Value for Decimals {
    type Key = i128;
    type Owned = i128;
    type Column = Numbers<i128>;
    type Builder = NumbersBuilder<i128>;

    fn read(&self, array: &ArrayRef) -> Result<Numbers<i128>> {
        to_i128(array)
    }

    fn get(column: &Numbers<i128>, row: usize) -> Option<&i128> {
        column.reference(row)
    }

    fn own(key: &i128) -> i128 {
        *key
    }

    fn builder(capacity: usize) -> NumbersBuilder<i128> {
        NumbersBuilder::new(capacity)
    }

    fn push(builder: &mut NumbersBuilder<i128>, value: Option<&i128>) {
        builder.push(value.copied());
    }

    fn last_two_differ(builder: &NumbersBuilder<i128>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<i128>) -> Result<ArrayRef> {
        from_i128(builder.finish(), &self.0)
    }
}

/// Strings and binaries.
#[derive(Debug, Clone)]
pub(crate) struct Bytes(pub(crate) ArrowType);

impl Value for Bytes {
    type Key = [u8];
    type Owned = Box<[u8]>;
    type Column = BinaryArray;
    type Builder = BytesBuilder;

    fn read(&self, array: &ArrayRef) -> Result<BinaryArray> {
        to_binary(array)
    }

    fn get(column: &BinaryArray, row: usize) -> Option<&[u8]> {
        column.is_valid(row).then(|| column.value(row))
    }

    fn own(key: &[u8]) -> Box<[u8]> {
        key.into()
    }

    fn heap_size(value: &Box<[u8]>) -> usize {
        value.len()
    }

    fn builder(capacity: usize) -> BytesBuilder {
        BytesBuilder::new(capacity)
    }

    fn push(builder: &mut BytesBuilder, value: Option<&[u8]>) {
        builder.push(value);
    }

    fn last_two_differ(builder: &BytesBuilder) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, mut builder: BytesBuilder) -> Result<ArrayRef> {
        builder.finish(&self.0)
    }
}

/// Collects strings or binaries.
#[derive(Debug)]
pub(crate) struct BytesBuilder {
    values: BinaryBuilder,
    rows: usize,
}

impl BytesBuilder {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            values: BinaryBuilder::with_capacity(capacity, capacity * 8),
            rows: 0,
        }
    }

    pub(crate) fn push(&mut self, value: Option<&[u8]>) {
        self.values.append_option(value);
        self.rows += 1;
    }

    pub(crate) fn last_two_differ(&self) -> bool {
        let n = self.rows;
        if n < 2 {
            return false;
        }
        let valid = |i: usize| {
            self.values
                .validity_slice()
                .is_none_or(|bits| bits[i / 8] >> (i % 8) & 1 == 1)
        };
        let value = |i: usize| {
            let offsets = self.values.offsets_slice();
            let start = usize::try_from(offsets[i]).unwrap_or(0);
            let end = usize::try_from(offsets[i + 1]).unwrap_or(start);
            &self.values.values_slice()[start..end]
        };
        valid(n - 1) != valid(n - 2) || value(n - 1) != value(n - 2)
    }

    pub(crate) fn finish(&mut self, t: &ArrowType) -> Result<ArrayRef> {
        let values = self.values.finish();
        if *t == ArrowType::Utf8 {
            return Ok(Arc::new(StringArray::try_from_binary(values)?));
        }
        Ok(Arc::new(values))
    }
}

/// Arrays, maps, multisets and rows.
#[derive(Debug)]
pub(crate) struct Nested(pub(crate) RowCodec);

impl Nested {
    pub(crate) fn new(data_type: &DataType) -> Result<Self> {
        Ok(Self(RowCodec::new(std::slice::from_ref(data_type))?))
    }
}

/// A column of nested values as it is read.
pub(crate) struct NestedColumn {
    rows: EncodedRows,
    nulls: Option<NullBuffer>,
}

impl Value for Nested {
    type Key = [u8];
    type Owned = Box<[u8]>;
    type Column = NestedColumn;
    /// Row bytes; none for NULL.
    type Builder = Vec<Option<Box<[u8]>>>;

    fn read(&self, array: &ArrayRef) -> Result<NestedColumn> {
        let mut rows = EncodedRows::default();
        self.0
            .encode(std::slice::from_ref(array), array.len(), &mut rows)?;
        Ok(NestedColumn {
            rows,
            nulls: array.logical_nulls(),
        })
    }

    fn get(column: &NestedColumn, row: usize) -> Option<&[u8]> {
        match &column.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => Some(column.rows.bytes(row)),
        }
    }

    fn own(key: &[u8]) -> Box<[u8]> {
        key.into()
    }

    fn heap_size(value: &Box<[u8]>) -> usize {
        value.len()
    }

    fn builder(capacity: usize) -> Self::Builder {
        Vec::with_capacity(capacity)
    }

    fn push(builder: &mut Self::Builder, value: Option<&[u8]>) {
        builder.push(value.map(Into::into));
    }

    fn last_two_differ(builder: &Self::Builder) -> bool {
        matches!(builder.as_slice(), [.., a, b] if a != b)
    }

    fn finish(&self, builder: Self::Builder) -> Result<ArrayRef> {
        let mut null = EncodedRows::default();
        if builder.contains(&None) {
            let t = self.0.arrow_types();
            let column = arrow::array::new_null_array(&t[0], 1);
            self.0.encode(&[column], 1, &mut null)?;
        }
        let rows = builder
            .iter()
            .map(|value| value.as_deref().unwrap_or_else(|| null.bytes(0)));
        let mut columns = self.0.decode(rows)?;
        columns
            .pop()
            .ok_or_else(|| Error::internal("a value codec has one column"))
    }
}

/// Calls a generic function with the class of a type: `with_value!(data_type, f(a, b))` is
/// `f(class, a, b)`.
macro_rules! with_value {
    ($data_type:expr, $function:ident ( $($arg:expr),* )) => {{
        use $crate::aggregates::value::{Bytes, Decimals, Floats, Ints, Nested};
        use arrow::datatypes::DataType as ArrowType;
        let data_type: &$crate::types::DataType = $data_type;
        match data_type.to_arrow() {
            t @ (ArrowType::Float32 | ArrowType::Float64) => $function(Floats(t), $($arg),*),
            t @ ArrowType::Decimal128(..) => $function(Decimals(t), $($arg),*),
            t @ (ArrowType::Utf8 | ArrowType::Binary) => $function(Bytes(t), $($arg),*),
            ArrowType::List(_) | ArrowType::Map(..) | ArrowType::Struct(_) | ArrowType::Null => {
                $function(Nested::new(data_type)?, $($arg),*)
            }
            t => $function(Ints(t), $($arg),*),
        }
    }};
}
pub(crate) use with_value;
