//! `MIN` and `MAX`: the extreme value alone while nothing is withdrawn, else all values with counts.

use std::borrow::Borrow;

use arrow::array::ArrayRef;
use arrow::datatypes::Int64Type;

use super::saved::{column, count_lists, list_numbers, list_ranges, lists, sampled};
use super::state::Kernel;
use super::value::Value;
use crate::error::Result;
use crate::state::keys::grow;
use crate::state::multiset::CountedMap;

/// Which end is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// `MIN`.
    Lowest,
    /// `MAX`.
    Highest,
}

/// The extreme of values that are only added. As in Flink, NaN never takes another value's place.
#[derive(Debug)]
pub(super) struct Extreme<V: Value> {
    value: V,
    end: End,
    extremes: Vec<Option<V::Owned>>,
}

impl<V: Value> Extreme<V> {
    pub(super) fn new(value: V, end: End) -> Self {
        Self {
            value,
            end,
            extremes: Vec::new(),
        }
    }

    #[inline]
    fn offer(&mut self, slot: usize, new: &V::Key) {
        let better = match &self.extremes[slot] {
            None => true,
            Some(old) => match self.end {
                End::Lowest => V::less(new, old.borrow()),
                End::Highest => V::less(old.borrow(), new),
            },
        };
        if better {
            self.extremes[slot] = Some(V::own(new));
        }
    }
}

impl<V: Value> Kernel for Extreme<V> {
    type Columns = V::Column;
    type Builder = V::Builder;

    fn resize(&mut self, slots: usize) {
        if slots > self.extremes.len() {
            grow(&mut self.extremes, slots, None);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<V::Column> {
        self.value.read(&args[0])
    }

    #[inline]
    fn add(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        if let Some(new) = V::get(column, row) {
            self.offer(slot, new);
        }
        Ok(())
    }

    fn subtract(&mut self, _: usize, _: &V::Column, _: usize) -> Result<()> {
        Err(crate::error::Error::internal(
            "a withdrawal reached an aggregate over insertions only",
        ))
    }

    fn clear(&mut self, slot: usize) {
        self.extremes[slot] = None;
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        if let Some(value) = self.extremes[from].clone() {
            self.offer(into, value.borrow());
        }
        Ok(())
    }

    fn builder(&self, capacity: usize) -> V::Builder {
        V::builder(capacity)
    }

    #[inline]
    fn push(&self, slot: usize, builder: &mut V::Builder) -> Result<()> {
        V::push(builder, self.extremes[slot].as_ref().map(Borrow::borrow));
        Ok(())
    }

    #[inline]
    fn last_two_differ(builder: &V::Builder) -> bool {
        V::last_two_differ(builder)
    }

    fn finish(&self, builder: V::Builder) -> Result<ArrayRef> {
        self.value.finish(builder)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut builder = V::builder(slots.len());
        for slot in slots {
            self.push(*slot as usize, &mut builder)?;
        }
        Ok(vec![self.value.finish(builder)?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let values = self.value.read(column(columns, 0)?)?;
        for (row, slot) in slots.iter().enumerate() {
            self.extremes[*slot as usize] = V::get(&values, row).map(V::own);
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        sampled(&self.extremes, |extreme| {
            size_of_val(extreme) + extreme.as_ref().map_or(0, V::heap_size)
        })
    }
}

/// The extreme of values that may be withdrawn.
#[derive(Debug)]
pub(super) struct RetractableExtreme<V: Value> {
    value: V,
    end: End,
    values: Vec<CountedMap<V::Owned>>,
}

impl<V: Value> RetractableExtreme<V> {
    pub(super) fn new(value: V, end: End) -> Self {
        Self {
            value,
            end,
            values: Vec::new(),
        }
    }
}

impl<V: Value> Kernel for RetractableExtreme<V> {
    type Columns = V::Column;
    type Builder = V::Builder;

    fn resize(&mut self, slots: usize) {
        if slots > self.values.len() {
            grow(&mut self.values, slots, CountedMap::default());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<V::Column> {
        self.value.read(&args[0])
    }

    #[inline]
    fn add(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        if let Some(key) = V::get(column, row) {
            self.values[slot].add(key, 1, V::own);
        }
        Ok(())
    }

    #[inline]
    fn subtract(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        if let Some(key) = V::get(column, row) {
            self.values[slot].add(key, -1, V::own);
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.values[slot] = CountedMap::default();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        let other = std::mem::take(&mut self.values[from]);
        for (key, count) in other.iter() {
            self.values[into].add(key.borrow(), count, V::own);
        }
        self.values[from] = other;
        Ok(())
    }

    fn builder(&self, capacity: usize) -> V::Builder {
        V::builder(capacity)
    }

    #[inline]
    fn push(&self, slot: usize, builder: &mut V::Builder) -> Result<()> {
        let extreme = match self.end {
            End::Lowest => self.values[slot].first(),
            End::Highest => self.values[slot].last(),
        };
        V::push(builder, extreme.map(Borrow::borrow));
        Ok(())
    }

    #[inline]
    fn last_two_differ(builder: &V::Builder) -> bool {
        V::last_two_differ(builder)
    }

    fn finish(&self, builder: V::Builder) -> Result<ArrayRef> {
        self.value.finish(builder)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        save_maps(&self.value, &self.values, slots)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        load_maps(&self.value, &mut self.values, slots, columns)
    }

    fn memory_size(&self) -> usize {
        maps_size::<V>(&self.values)
    }
}

/// Counted maps as two columns of lists: values and counts.
pub(super) fn save_maps<V: Value>(
    value: &V,
    maps: &[CountedMap<V::Owned>],
    slots: &[u32],
) -> Result<Vec<ArrayRef>> {
    let maps = slots.iter().map(|slot| &maps[*slot as usize]);
    let lengths: Vec<usize> = maps.clone().map(CountedMap::len).collect();
    let total = lengths.iter().sum();
    let mut values = V::builder(total);
    let mut counts = Vec::with_capacity(total);
    for (key, count) in maps.flat_map(CountedMap::iter) {
        V::push(&mut values, Some(key.borrow()));
        counts.push(count);
    }
    Ok(vec![
        lists(&lengths, value.finish(values)?)?,
        count_lists(&lengths, counts)?,
    ])
}

/// The reverse of [`save_maps`].
pub(super) fn load_maps<V: Value>(
    value: &V,
    maps: &mut [CountedMap<V::Owned>],
    slots: &[u32],
    columns: &[ArrayRef],
) -> Result<()> {
    let (ranges, values) = list_ranges(columns, 0)?;
    let values = value.read(&values)?;
    let counts = list_numbers::<Int64Type>(columns, 1)?;
    for (slot, range) in slots.iter().zip(ranges) {
        for i in range {
            if let Some(key) = V::get(&values, i) {
                maps[*slot as usize].add(key, counts.value(i), V::own);
            }
        }
    }
    Ok(())
}

/// Bytes of memory that maps hold.
pub(super) fn maps_size<V: Value>(maps: &[CountedMap<V::Owned>]) -> usize {
    sampled(maps, |map| {
        let heap: usize = map.iter().map(|(key, _)| V::heap_size(key)).sum();
        size_of_val(map) + map.memory_size() + heap
    })
}
