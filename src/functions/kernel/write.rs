//! How results are collected.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, BooleanBufferBuilder,
    ListArray, NullBufferBuilder, PrimitiveArray, StringArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Int32Type, Int64Type};

use super::read::{Bool, Prim, Ticks};
use crate::error::{Error, Result};

/// A way to collect results.
pub(in crate::functions) trait Write: 'static {
    /// A value.
    type Item;
    /// The column of `f(i)` for every row that `nulls` doesn't exclude, of Arrow type `to`.
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        to: &ArrowType,
        f: impl FnMut(usize) -> Result<Option<Self::Item>>,
    ) -> Result<ArrayRef>;
}

fn primitive<P: ArrowPrimitiveType>(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize) -> Result<Option<P::Native>>,
) -> Result<PrimitiveArray<P>> {
    let mut values = Vec::with_capacity(rows);
    let mut valid = NullBufferBuilder::new(rows);
    for i in 0..rows {
        let value = match nulls {
            Some(nulls) if nulls.is_null(i) => None,
            _ => f(i)?,
        };
        values.push(value.unwrap_or_default());
        valid.append(value.is_some());
    }
    Ok(PrimitiveArray::new(values.into(), valid.finish()))
}

impl<P: ArrowPrimitiveType> Write for Prim<P> {
    type Item = P::Native;
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        to: &ArrowType,
        f: impl FnMut(usize) -> Result<Option<P::Native>>,
    ) -> Result<ArrayRef> {
        let array = primitive::<P>(rows, nulls, f)?;
        Ok(Arc::new(array.with_data_type(to.clone())))
    }
}

impl Write for Ticks {
    type Item = i64;
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        to: &ArrowType,
        f: impl FnMut(usize) -> Result<Option<i64>>,
    ) -> Result<ArrayRef> {
        let array = primitive::<Int64Type>(rows, nulls, f)?;
        let data = match to {
            ArrowType::Date32 | ArrowType::Time32(_) | ArrowType::Interval(_) => {
                array.unary::<_, Int32Type>(|v| v as i32).into_data()
            }
            _ => array.into_data(),
        };
        let data = data.into_builder().data_type(to.clone());
        Ok(arrow::array::make_array(data.build()?))
    }
}

impl Write for Bool {
    type Item = bool;
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        _to: &ArrowType,
        mut f: impl FnMut(usize) -> Result<Option<bool>>,
    ) -> Result<ArrayRef> {
        let mut values = BooleanBufferBuilder::new(rows);
        let mut valid = NullBufferBuilder::new(rows);
        for i in 0..rows {
            let value = match nulls {
                Some(nulls) if nulls.is_null(i) => None,
                _ => f(i)?,
            };
            values.append(value.unwrap_or_default());
            valid.append(value.is_some());
        }
        Ok(Arc::new(BooleanArray::new(values.finish(), valid.finish())))
    }
}

/// Collects what `f` gives for every row that `nulls` doesn't exclude.
pub(in crate::functions) fn collect<O: Write>(
    rows: usize,
    nulls: Option<&NullBuffer>,
    to: &ArrowType,
    f: impl FnMut(usize) -> Result<Option<O::Item>>,
) -> Result<ArrayRef> {
    O::collect(rows, nulls, to, f)
}

/// Collects texts that `f` appends to one long buffer.
pub(in crate::functions) fn collect_text(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize, &mut String) -> Result<Option<()>>,
) -> Result<StringArray> {
    let mut text = String::new();
    let (offsets, nulls) = offsets(rows, nulls, |i| {
        let start = text.len();
        let some = f(i, &mut text)?.is_some();
        if !some {
            text.truncate(start);
        }
        Ok((some, text.len()))
    })?;
    let values = Buffer::from(text.into_bytes());
    StringArray::try_new(offsets, values, nulls).map_err(Error::from)
}

/// Collects byte strings that `f` appends to one long buffer.
pub(in crate::functions) fn collect_bytes(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize, &mut Vec<u8>) -> Result<Option<()>>,
) -> Result<BinaryArray> {
    let mut bytes = Vec::new();
    let (offsets, nulls) = offsets(rows, nulls, |i| {
        let start = bytes.len();
        let some = f(i, &mut bytes)?.is_some();
        if !some {
            bytes.truncate(start);
        }
        Ok((some, bytes.len()))
    })?;
    BinaryArray::try_new(offsets, Buffer::from(bytes), nulls).map_err(Error::from)
}

/// The texts of one list after the other.
#[derive(Default)]
pub(in crate::functions) struct Texts {
    text: String,
    ends: Vec<i32>,
    valid: Vec<bool>,
}

impl Texts {
    /// Adds a text, or NULL, to the list of the current row.
    pub(in crate::functions) fn push(&mut self, text: Option<&str>) {
        self.text.push_str(text.unwrap_or_default());
        self.ends
            .push(i32::try_from(self.text.len()).unwrap_or(i32::MAX));
        self.valid.push(text.is_some());
    }

    /// Adds what is written to the end of the text.
    pub(in crate::functions) fn push_with(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.push(Some(""));
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.valid.truncate(len);
        let end = self.ends.last().map_or(0, |end| *end as usize);
        self.text.truncate(end);
    }

    pub(in crate::functions) fn finish(self) -> Result<StringArray> {
        if self.text.len() > i32::MAX as usize {
            return Err(too_much());
        }
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        offsets.extend(self.ends);
        StringArray::try_new(
            OffsetBuffer::new(offsets.into()),
            Buffer::from(self.text.into_bytes()),
            Some(NullBuffer::from(self.valid)),
        )
        .map_err(Error::from)
    }
}

/// Collects `ARRAY<STRING>` values that `f` appends text by text.
pub(in crate::functions) fn collect_texts(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize, &mut Texts) -> Result<Option<()>>,
) -> Result<ListArray> {
    let mut texts = Texts::default();
    let (offsets, nulls) = offsets(rows, nulls, |i| {
        let start = texts.ends.len();
        let some = f(i, &mut texts)?.is_some();
        if !some {
            texts.truncate(start);
        }
        Ok((some, texts.ends.len()))
    })?;
    let item = Arc::new(Field::new("item", ArrowType::Utf8, true));
    ListArray::try_new(item, offsets, Arc::new(texts.finish()?), nulls).map_err(Error::from)
}

fn too_much() -> Error {
    Error::execution("the values of a batch's column are longer than 2 GB together")
}

/// Offsets and validity of a column of variable length; `f` tells whether row `i` has a value and
/// where it ends.
pub(in crate::functions) fn offsets(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize) -> Result<(bool, usize)>,
) -> Result<(OffsetBuffer<i32>, Option<NullBuffer>)> {
    let mut offsets = Vec::with_capacity(rows + 1);
    let mut valid = NullBufferBuilder::new(rows);
    let mut end = 0;
    offsets.push(0);
    for i in 0..rows {
        let mut some = false;
        if nulls.is_none_or(|nulls| nulls.is_valid(i)) {
            let end_of_row;
            (some, end_of_row) = f(i)?;
            end = i32::try_from(end_of_row).map_err(|_| too_much())?;
        }
        offsets.push(end);
        valid.append(some);
    }
    Ok((OffsetBuffer::new(offsets.into()), valid.finish()))
}
