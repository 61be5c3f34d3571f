//! Columns of arrays and maps as ranges of their elements, and results made by taking elements.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray, MapArray, StructArray,
    UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType as ArrowType, Field, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};

use super::kernel::{Columns, offsets};
use crate::error::{Error, Result};

/// A column of arrays or maps.
pub(super) struct Lists {
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    constant: bool,
}

impl Lists {
    /// The elements in row `i`; `None` if it is NULL.
    pub(super) fn get(&self, i: usize) -> Option<Range<usize>> {
        let i = if self.constant { 0 } else { i };
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(i)) {
            return None;
        }
        Some(self.range(i))
    }

    /// The elements in row `i`, which is not NULL.
    pub(super) fn value(&self, i: usize) -> Range<usize> {
        self.range(if self.constant { 0 } else { i })
    }

    fn range(&self, i: usize) -> Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }
}

impl Columns {
    /// Argument `i`, an array, and its elements.
    pub(super) fn lists(&self, i: usize) -> Result<(Lists, ArrayRef)> {
        let (array, constant) = self.raw(i);
        let list = array
            .as_list_opt::<i32>()
            .ok_or_else(|| not_a("an array", array))?;
        let lists = Lists {
            offsets: list.offsets().clone(),
            nulls: list.nulls().cloned(),
            constant,
        };
        Ok((lists, Arc::clone(list.values())))
    }

    /// Argument `i`, a map, with its keys and values.
    pub(super) fn maps(&self, i: usize) -> Result<(Lists, ArrayRef, ArrayRef)> {
        let (array, constant) = self.raw(i);
        let map = array.as_map_opt().ok_or_else(|| not_a("a map", array))?;
        let lists = Lists {
            offsets: map.offsets().clone(),
            nulls: map.nulls().cloned(),
            constant,
        };
        Ok((lists, Arc::clone(map.keys()), Arc::clone(map.values())))
    }
}

fn not_a(what: &str, array: &ArrayRef) -> Error {
    Error::internal(format!("{what} is a column of {}", array.data_type()))
}

/// Which elements make up each row of a result.
pub(super) struct Taken {
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    elements: UInt32Array,
}

/// Collects the elements that `f` chooses for every row that `nulls` doesn't exclude; `None` makes the row
/// NULL.
pub(super) fn take_elements(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize, &mut Vec<u32>) -> Result<Option<()>>,
) -> Result<Taken> {
    let mut elements = Vec::new();
    let (offsets, nulls) = offsets(rows, nulls, |i| {
        let start = elements.len();
        let some = f(i, &mut elements)?.is_some();
        if !some {
            elements.truncate(start);
        }
        Ok((some, elements.len()))
    })?;
    Ok(Taken {
        offsets,
        nulls,
        elements: UInt32Array::from(elements),
    })
}

impl Taken {
    /// The arrays of these elements of `values`.
    pub(super) fn lists(self, values: &ArrayRef) -> Result<ListArray> {
        let values = take(values, &self.elements, None)?;
        let field = Arc::new(Field::new("item", values.data_type().clone(), true));
        Ok(ListArray::try_new(field, self.offsets, values, self.nulls)?)
    }

    /// The maps of these keys and values.
    pub(super) fn maps(self, keys: &ArrayRef, values: &ArrayRef) -> Result<MapArray> {
        let keys = take(keys, &self.elements, None)?;
        let values = take(values, &self.elements, None)?;
        if keys.null_count() > 0 {
            return Err(Error::execution("a key of a map is NULL"));
        }
        let fields = vec![
            Arc::new(Field::new("keys", keys.data_type().clone(), false)),
            Arc::new(Field::new("values", values.data_type().clone(), true)),
        ];
        let entries = StructArray::try_new(fields.into(), vec![keys, values], None)?;
        let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        Ok(MapArray::try_new(
            field,
            self.offsets,
            entries,
            self.nulls,
            false,
        )?)
    }
}

/// Values of one type in a form that compares byte by byte: equal values have equal bytes, NULL comes
/// first.
pub(super) struct Comparable {
    converter: RowConverter,
}

impl Comparable {
    /// For values of a type.
    pub(super) fn new(data_type: &ArrowType) -> Result<Self> {
        Ok(Self {
            converter: RowConverter::new(vec![SortField::new(data_type.clone())])?,
        })
    }

    /// The values of a column.
    pub(super) fn rows(&self, array: &ArrayRef) -> Result<Rows> {
        Ok(self.converter.convert_columns(&[one_zero(array)])?)
    }
}

/// `array` with 0.0 for -0.0, which equals it.
fn one_zero(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Float32 => {
            let array: Float32Array = array.as_primitive::<Float32Type>().unary(|x| x + 0.0);
            Arc::new(array)
        }
        ArrowType::Float64 => {
            let array: Float64Array = array.as_primitive::<Float64Type>().unary(|x| x + 0.0);
            Arc::new(array)
        }
        _ => Arc::clone(array),
    }
}
