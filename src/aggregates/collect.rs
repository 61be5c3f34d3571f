//! `COLLECT`: a multiset of the values that are not NULL; and `PERCENTILE`, which needs one too.

use std::borrow::Borrow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};

use super::convert::to_i64;
use super::extreme::{load_maps, maps_size, save_maps};
use super::state::Kernel;
use super::value::{Floats, Numbers, NumbersBuilder, Total, Value};
use super::variance::any_to_f64;
use crate::error::{Error, Result};
use crate::state::keys::grow;
use crate::state::multiset::CountedMap;

#[derive(Debug)]
pub(super) struct Collect<V: Value> {
    value: V,
    maps: Vec<CountedMap<V::Owned>>,
}

impl<V: Value> Collect<V> {
    pub(super) fn new(value: V) -> Self {
        Self {
            value,
            maps: Vec::new(),
        }
    }
}

/// Collects multisets.
pub(super) struct MultisetBuilder<V: Value> {
    values: V::Builder,
    counts: Vec<i32>,
    lengths: Vec<usize>,
    last: Vec<(V::Owned, i64)>,
    differ: bool,
}

impl<V: Value> Kernel for Collect<V> {
    type Columns = V::Column;
    type Builder = MultisetBuilder<V>;

    fn resize(&mut self, slots: usize) {
        if slots > self.maps.len() {
            grow(&mut self.maps, slots, CountedMap::default());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<V::Column> {
        self.value.read(&args[0])
    }

    fn add(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        if let Some(key) = V::get(column, row) {
            self.maps[slot].add(key, 1, V::own);
        }
        Ok(())
    }

    fn subtract(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        if let Some(key) = V::get(column, row) {
            self.maps[slot].add(key, -1, V::own);
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.maps[slot] = CountedMap::default();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        let other = std::mem::take(&mut self.maps[from]);
        for (key, count) in other.iter() {
            self.maps[into].add(key.borrow(), count, V::own);
        }
        self.maps[from] = other;
        Ok(())
    }

    fn builder(&self, capacity: usize) -> MultisetBuilder<V> {
        MultisetBuilder {
            values: V::builder(capacity),
            counts: Vec::with_capacity(capacity),
            lengths: Vec::with_capacity(capacity),
            last: Vec::new(),
            differ: false,
        }
    }

    fn push(&self, slot: usize, builder: &mut MultisetBuilder<V>) -> Result<()> {
        let entries: Vec<_> = self.maps[slot]
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(key, count)| (key.clone(), count))
            .collect();
        for (key, count) in &entries {
            V::push(&mut builder.values, Some(key.borrow()));
            builder
                .counts
                .push(i32::try_from(*count).unwrap_or(i32::MAX));
        }
        builder.lengths.push(entries.len());
        builder.differ = entries != builder.last;
        builder.last = entries;
        Ok(())
    }

    fn last_two_differ(builder: &MultisetBuilder<V>) -> bool {
        builder.differ
    }

    fn finish(&self, builder: MultisetBuilder<V>) -> Result<ArrayRef> {
        let keys = self.value.finish(builder.values)?;
        if keys.len() > i32::MAX as usize {
            return Err(Error::state(
                "COLLECT: the multisets of one batch are too large",
            ));
        }
        let fields = Fields::from(vec![
            Field::new("keys", keys.data_type().clone(), false),
            Field::new("values", ArrowType::Int32, true),
        ]);
        let counts: ArrayRef = Arc::new(Int32Array::from(builder.counts));
        let entries = StructArray::try_new(fields, vec![keys, counts], None)?;
        let field = Field::new("entries", entries.data_type().clone(), false);
        Ok(Arc::new(MapArray::try_new(
            Arc::new(field),
            OffsetBuffer::from_lengths(builder.lengths),
            entries,
            None,
            false,
        )?))
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        save_maps(&self.value, &self.maps, slots)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        load_maps(&self.value, &mut self.maps, slots, columns)
    }

    fn memory_size(&self) -> usize {
        maps_size::<V>(&self.maps)
    }
}

/// `PERCENTILE`, exact and interpolated: one for each percentage.
#[derive(Debug)]
pub(super) struct Percentile {
    percentages: Vec<f64>,
    /// Whether the result is an array.
    many: bool,
    maps: Vec<CountedMap<Total>>,
}

impl Percentile {
    pub(super) fn new(percentages: Vec<f64>, many: bool) -> Self {
        Self {
            percentages,
            many,
            maps: Vec::new(),
        }
    }

    fn change(&mut self, slot: usize, columns: &PercentileColumns, row: usize, sign: i64) {
        let frequency = match &columns.frequencies {
            None => Some(1),
            Some(frequencies) => frequencies.get(row).filter(|f| *f > 0),
        };
        if let (Some(value), Some(frequency)) = (columns.values.get(row), frequency) {
            self.maps[slot].add(&Total(value), sign * frequency, |v| *v);
        }
    }

    /// The value at a percentage; `None` without values.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // as Java does
    fn at(&self, slot: usize, percentage: f64) -> Option<f64> {
        let entries = || self.maps[slot].iter().filter(|(_, count)| *count > 0);
        let total: i64 = entries().map(|(_, count)| count).sum();
        if total <= 0 {
            return None;
        }
        let position = percentage * (total - 1) as f64 + 1.0;
        let (lower, higher) = (position.floor() as i64, position.ceil() as i64);
        let mut seen = 0;
        let mut entries = entries();
        while let Some((value, count)) = entries.next() {
            seen += count;
            if seen >= lower {
                return match entries.next() {
                    Some((next, _)) if seen < higher => Some(
                        (higher as f64 - position) * value.0 + (position - lower as f64) * next.0,
                    ),
                    _ => Some(value.0),
                };
            }
        }
        None
    }
}

/// The arguments of `PERCENTILE` that vary.
#[derive(Debug)]
pub(super) struct PercentileColumns {
    values: Numbers<f64>,
    frequencies: Option<Numbers<i64>>,
}

impl Kernel for Percentile {
    type Columns = PercentileColumns;
    /// As many values a slot as percentages; NULLs for none.
    type Builder = NumbersBuilder<f64>;

    fn resize(&mut self, slots: usize) {
        if slots > self.maps.len() {
            grow(&mut self.maps, slots, CountedMap::default());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<PercentileColumns> {
        Ok(PercentileColumns {
            values: any_to_f64(&args[0])?,
            frequencies: match args.get(1) {
                Some(frequencies) => Some(Numbers::of(&to_i64(frequencies)?)),
                None => None,
            },
        })
    }

    fn add(&mut self, slot: usize, columns: &PercentileColumns, row: usize) -> Result<()> {
        self.change(slot, columns, row, 1);
        Ok(())
    }

    fn subtract(&mut self, slot: usize, columns: &PercentileColumns, row: usize) -> Result<()> {
        self.change(slot, columns, row, -1);
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.maps[slot] = CountedMap::default();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        let other = std::mem::take(&mut self.maps[from]);
        for (key, count) in other.iter() {
            self.maps[into].add(key, count, |v| *v);
        }
        self.maps[from] = other;
        Ok(())
    }

    fn builder(&self, capacity: usize) -> NumbersBuilder<f64> {
        NumbersBuilder::with_group(capacity, self.percentages.len())
    }

    fn push(&self, slot: usize, builder: &mut NumbersBuilder<f64>) -> Result<()> {
        for percentage in &self.percentages {
            builder.push(self.at(slot, *percentage));
        }
        Ok(())
    }

    fn last_two_differ(builder: &NumbersBuilder<f64>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<f64>) -> Result<ArrayRef> {
        let rows = builder.rows();
        let values: ArrayRef = Arc::new(builder.finish::<arrow::datatypes::Float64Type>());
        if !self.many {
            return Ok(values);
        }
        let width = self.percentages.len();
        let nulls: NullBuffer = (0..rows)
            .map(|row| width > 0 && values.is_valid(row * width))
            .collect();
        let field = Arc::new(Field::new("item", ArrowType::Float64, true));
        Ok(Arc::new(ListArray::try_new(
            field,
            OffsetBuffer::from_lengths(std::iter::repeat_n(width, rows)),
            values,
            Some(nulls),
        )?))
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        save_maps(&Floats(ArrowType::Float64), &self.maps, slots)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let floats = Floats(ArrowType::Float64);
        load_maps(&floats, &mut self.maps, slots, columns)
    }

    fn memory_size(&self) -> usize {
        maps_size::<Floats>(&self.maps)
    }
}

/// The percentages that a constant argument gives: one number or an array of them.
pub(super) fn percentages(array: &ArrayRef) -> Option<(Vec<f64>, bool)> {
    let numbers = |array: &ArrayRef| -> Option<Vec<f64>> {
        let numbers = any_to_f64(array).ok()?;
        (0..array.len())
            .map(|i| numbers.get(i).filter(|p| (0.0..=1.0).contains(p)))
            .collect()
    };
    match array.as_list_opt::<i32>() {
        Some(list) if list.len() == 1 && list.is_valid(0) => Some((numbers(&list.value(0))?, true)),
        Some(_) => None,
        None => Some((numbers(array)?, false)),
    }
}
