//! Helpers for the columns in which aggregates save their state, and for estimating its size.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, ListArray, PrimitiveArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Int64Type};

use crate::error::{Error, Result};

/// A column of numbers, one a slot.
pub(super) fn gather<T: ArrowPrimitiveType>(values: &[T::Native], slots: &[u32]) -> ArrayRef {
    let values = slots.iter().map(|slot| values[*slot as usize]);
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

fn mismatch() -> Error {
    Error::checkpoint("the saved state is of another aggregate function")
}

/// Saved column `index`.
pub(super) fn column(columns: &[ArrayRef], index: usize) -> Result<&ArrayRef> {
    columns.get(index).ok_or_else(mismatch)
}

/// Saved column `index`, of numbers.
pub(super) fn numbers<T: ArrowPrimitiveType>(
    columns: &[ArrayRef],
    index: usize,
) -> Result<&PrimitiveArray<T>> {
    column(columns, index)?
        .as_primitive_opt()
        .ok_or_else(mismatch)
}

/// Puts saved numbers back.
pub(super) fn scatter<T: ArrowPrimitiveType>(
    values: &mut [T::Native],
    slots: &[u32],
    columns: &[ArrayRef],
    index: usize,
) -> Result<()> {
    let saved = numbers::<T>(columns, index)?.values();
    for (slot, value) in slots.iter().zip(saved) {
        values[*slot as usize] = *value;
    }
    Ok(())
}

/// A column of lists from the lengths of the lists and all elements.
pub(super) fn lists(lengths: &[usize], elements: ArrayRef) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    let field = Arc::new(Field::new("item", elements.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(
        field, offsets, elements, None,
    )?))
}

/// A column of lists of counts.
pub(super) fn count_lists(lengths: &[usize], counts: Vec<i64>) -> Result<ArrayRef> {
    lists(
        lengths,
        Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(counts)),
    )
}

/// Saved column `index`, of lists: the range of each list, and all elements.
pub(super) fn list_ranges(
    columns: &[ArrayRef],
    index: usize,
) -> Result<(Vec<std::ops::Range<usize>>, ArrayRef)> {
    let lists = column(columns, index)?
        .as_list_opt::<i32>()
        .ok_or_else(mismatch)?;
    let offset = |i: usize| usize::try_from(lists.value_offsets()[i]).map_err(|_| mismatch());
    let ranges = (0..lists.len())
        .map(|i| Ok(offset(i)?..offset(i + 1)?))
        .collect::<Result<_>>()?;
    Ok((ranges, Arc::clone(lists.values())))
}

/// The numbers of a saved column of lists.
pub(super) fn list_numbers<T: ArrowPrimitiveType>(
    columns: &[ArrayRef],
    index: usize,
) -> Result<PrimitiveArray<T>> {
    let (_, elements) = list_ranges(columns, index)?;
    elements
        .as_primitive_opt::<T>()
        .cloned()
        .ok_or_else(mismatch)
}

/// The sum of `size` over all items, from a sample if there are many.
pub(super) fn sampled<T>(items: &[T], size: impl Fn(&T) -> usize) -> usize {
    const SAMPLE: usize = 1024;
    if items.len() <= 2 * SAMPLE {
        return items.iter().map(size).sum();
    }
    let step = items.len() / SAMPLE;
    items.iter().step_by(step).map(size).sum::<usize>() * step
}
