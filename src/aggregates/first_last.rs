//! `FIRST_VALUE` and `LAST_VALUE`: by arrival, without NULLs.

use std::borrow::Borrow;

use arrow::array::ArrayRef;

use super::saved::{column, list_ranges, lists, sampled};
use super::state::Kernel;
use super::value::Value;
use crate::error::{Error, Result};
use crate::state::keys::grow;
use crate::state::multiset::Arrivals;

/// Which value is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// `FIRST_VALUE`.
    First,
    /// `LAST_VALUE`.
    Last,
}

/// One value a slot, while nothing is withdrawn.
#[derive(Debug)]
pub(super) struct FirstLast<V: Value> {
    value: V,
    which: Which,
    values: Vec<Option<V::Owned>>,
}

impl<V: Value> FirstLast<V> {
    pub(super) fn new(value: V, which: Which) -> Self {
        Self {
            value,
            which,
            values: Vec::new(),
        }
    }
}

impl<V: Value> Kernel for FirstLast<V> {
    type Columns = V::Column;
    type Builder = V::Builder;

    fn resize(&mut self, slots: usize) {
        if slots > self.values.len() {
            grow(&mut self.values, slots, None);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<V::Column> {
        self.value.read(&args[0])
    }

    #[inline]
    fn add(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        let kept = &mut self.values[slot];
        if (kept.is_none() || self.which == Which::Last)
            && let Some(key) = V::get(column, row)
        {
            *kept = Some(V::own(key));
        }
        Ok(())
    }

    fn subtract(&mut self, _: usize, _: &V::Column, _: usize) -> Result<()> {
        Err(Error::internal(
            "a withdrawal reached an aggregate over insertions only",
        ))
    }

    fn clear(&mut self, slot: usize) {
        self.values[slot] = None;
    }

    /// `from` arrived after `into`.
    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        if self.values[into].is_none() || (self.which == Which::Last && self.values[from].is_some())
        {
            self.values[into] = self.values[from].clone();
        }
        Ok(())
    }

    fn builder(&self, capacity: usize) -> V::Builder {
        V::builder(capacity)
    }

    fn push(&self, slot: usize, builder: &mut V::Builder) -> Result<()> {
        V::push(builder, self.values[slot].as_ref().map(Borrow::borrow));
        Ok(())
    }

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
            self.values[*slot as usize] = V::get(&values, row).map(V::own);
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        sampled(&self.values, |value| {
            size_of_val(value) + value.as_ref().map_or(0, V::heap_size)
        })
    }
}

/// All values a slot, so that a neighbour takes the place of one that is withdrawn. Of equal values
/// the earliest is withdrawn.
#[derive(Debug)]
pub(super) struct RetractableFirstLast<V: Value> {
    value: V,
    which: Which,
    values: Vec<Arrivals<V::Owned>>,
}

impl<V: Value> RetractableFirstLast<V> {
    pub(super) fn new(value: V, which: Which) -> Self {
        Self {
            value,
            which,
            values: Vec::new(),
        }
    }
}

impl<V: Value> Kernel for RetractableFirstLast<V> {
    type Columns = V::Column;
    type Builder = V::Builder;

    fn resize(&mut self, slots: usize) {
        if slots > self.values.len() {
            grow(&mut self.values, slots, Arrivals::default());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<V::Column> {
        self.value.read(&args[0])
    }

    fn add(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        if let Some(key) = V::get(column, row) {
            self.values[slot].push(V::own(key));
        }
        Ok(())
    }

    fn subtract(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        if let Some(key) = V::get(column, row) {
            self.values[slot].remove(key);
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.values[slot] = Arrivals::default();
    }

    /// `from` arrived after `into`.
    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        let other = std::mem::take(&mut self.values[from]);
        for value in other.iter() {
            self.values[into].push(value.clone());
        }
        self.values[from] = other;
        Ok(())
    }

    fn builder(&self, capacity: usize) -> V::Builder {
        V::builder(capacity)
    }

    fn push(&self, slot: usize, builder: &mut V::Builder) -> Result<()> {
        let value = match self.which {
            Which::First => self.values[slot].first(),
            Which::Last => self.values[slot].last(),
        };
        V::push(builder, value.map(Borrow::borrow));
        Ok(())
    }

    fn last_two_differ(builder: &V::Builder) -> bool {
        V::last_two_differ(builder)
    }

    fn finish(&self, builder: V::Builder) -> Result<ArrayRef> {
        self.value.finish(builder)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let arrivals = slots.iter().map(|slot| &self.values[*slot as usize]);
        let lengths: Vec<usize> = arrivals.clone().map(Arrivals::len).collect();
        let mut builder = V::builder(lengths.iter().sum());
        for value in arrivals.flat_map(Arrivals::iter) {
            V::push(&mut builder, Some(value.borrow()));
        }
        Ok(vec![lists(&lengths, self.value.finish(builder)?)?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let (ranges, values) = list_ranges(columns, 0)?;
        let values = self.value.read(&values)?;
        for (slot, range) in slots.iter().zip(ranges) {
            for i in range {
                if let Some(key) = V::get(&values, i) {
                    self.values[*slot as usize].push(V::own(key));
                }
            }
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        sampled(&self.values, |list| {
            let heap: usize = list.iter().map(V::heap_size).sum();
            size_of_val(list) + list.memory_size() + heap
        })
    }
}
