//! The elements of collections as rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type};

use super::{CalledRows, both_valid};
use crate::error::{Error, Result};

/// The elements of every collection of a column: an array's elements, a map's keys and values, a
/// multiset's elements as often as they are in it. Elements that are rows become columns; a row that
/// is NULL gives no row, unless its number is asked for. `ordinality` adds the number of the
/// element, from 1.
///
/// # Errors
/// When the column holds no collections.
pub fn unnest(collections: &ArrayRef, ordinality: bool) -> Result<CalledRows> {
    match collections.data_type() {
        DataType::List(_) => {
            let lists = collections.as_list::<i32>();
            let offsets = lists.value_offsets();
            let places = Places::collect(lists, offsets, |_| 1);
            elements(lists.values(), places, ordinality)
        }
        DataType::Map(..) => {
            let maps = collections.as_map();
            let places = Places::collect(maps, maps.value_offsets(), |_| 1);
            let mut columns = vec![
                take(maps.keys(), &places.elements, None)?,
                take(maps.values(), &places.elements, None)?,
            ];
            if ordinality {
                columns.push(Arc::new(places.numbers));
            }
            Ok(CalledRows {
                calls: places.calls,
                columns,
            })
        }
        other => Err(Error::internal(format!("UNNEST of {other}"))),
    }
}

/// The elements of every multiset of a column; see [`unnest`].
///
/// # Errors
/// When the column holds no multisets.
pub fn unnest_multiset(multisets: &ArrayRef, ordinality: bool) -> Result<CalledRows> {
    let maps = multisets
        .as_map_opt()
        .ok_or_else(|| Error::internal("UNNEST of what is no multiset"))?;
    let counts = maps
        .values()
        .as_primitive_opt::<Int32Type>()
        .ok_or_else(|| Error::internal("a multiset without counts"))?;
    let places = Places::collect(maps, maps.value_offsets(), |i| {
        usize::try_from(counts.value(i)).unwrap_or(0)
    });
    elements(maps.keys(), places, ordinality)
}

/// Where result rows come from.
struct Places {
    calls: UInt32Array,
    elements: UInt32Array,
    /// From 1 in every call.
    numbers: Int32Array,
}

impl Places {
    /// The elements between the offsets of every collection that is not NULL, each `times`.
    fn collect(column: &dyn Array, offsets: &[i32], times: impl Fn(usize) -> usize) -> Self {
        let (mut calls, mut elements, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (call, range) in (0_u32..).zip(offsets.windows(2)) {
            if column.is_null(call as usize) {
                continue;
            }
            let mut number = 0;
            for element in range[0]..range[1] {
                let element = u32::try_from(element).expect("offsets are not negative");
                for _ in 0..times(element as usize) {
                    number += 1;
                    calls.push(call);
                    elements.push(element);
                    numbers.push(number);
                }
            }
        }
        Self {
            calls: UInt32Array::from(calls),
            elements: UInt32Array::from(elements),
            numbers: Int32Array::from(numbers),
        }
    }

    /// The places whose element is not NULL.
    fn without_nulls(self, values: &ArrayRef) -> Self {
        if values.null_count() == 0 {
            return self;
        }
        let elements = self.elements.values();
        let kept = || (0..elements.len()).filter(|i| values.is_valid(elements[*i] as usize));
        Self {
            calls: kept().map(|i| self.calls.value(i)).collect(),
            numbers: kept().map(|i| self.numbers.value(i)).collect(),
            elements: kept().map(|i| elements[i]).collect(),
        }
    }
}

fn elements(values: &ArrayRef, places: Places, ordinality: bool) -> Result<CalledRows> {
    let (places, mut columns) = match values.as_struct_opt() {
        Some(rows) => {
            let places = match ordinality {
                true => places,
                false => places.without_nulls(values),
            };
            let fields = rows.columns().iter();
            let columns = fields
                .map(|field| {
                    let field = both_valid(field, rows.nulls())?;
                    Ok(take(&field, &places.elements, None)?)
                })
                .collect::<Result<Vec<_>>>()?;
            (places, columns)
        }
        None => {
            let column = take(values, &places.elements, None)?;
            (places, vec![column])
        }
    };
    if ordinality {
        columns.push(Arc::new(places.numbers));
    }
    Ok(CalledRows {
        calls: places.calls,
        columns,
    })
}
