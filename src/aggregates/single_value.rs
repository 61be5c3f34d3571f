//! `SINGLE_VALUE`: what a scalar subquery becomes; fails when there are two rows.

use std::borrow::Borrow;

use arrow::array::ArrayRef;
use arrow::datatypes::Int64Type;

use super::saved::{column, gather, sampled, scatter};
use super::state::Kernel;
use super::value::Value;
use crate::error::{Error, Result};
use crate::state::keys::grow;

#[derive(Debug)]
pub(super) struct SingleValue<V: Value> {
    value: V,
    values: Vec<Option<V::Owned>>,
    counts: Vec<i64>,
}

impl<V: Value> SingleValue<V> {
    pub(super) fn new(value: V) -> Self {
        Self {
            value,
            values: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn check(&self, slot: usize) -> Result<()> {
        if self.counts[slot] > 1 {
            return Err(Error::execution(
                "SingleValueAggFunction received more than one element.",
            ));
        }
        Ok(())
    }
}

impl<V: Value> Kernel for SingleValue<V> {
    type Columns = V::Column;
    type Builder = V::Builder;

    fn resize(&mut self, slots: usize) {
        if slots > self.values.len() {
            grow(&mut self.values, slots, None);
            grow(&mut self.counts, slots, 0);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<V::Column> {
        self.value.read(&args[0])
    }

    fn add(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        self.counts[slot] += 1;
        self.values[slot] = V::get(column, row).map(V::own);
        self.check(slot)
    }

    fn subtract(&mut self, slot: usize, _: &V::Column, _: usize) -> Result<()> {
        self.counts[slot] -= 1;
        if self.counts[slot] <= 0 {
            self.values[slot] = None;
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.values[slot] = None;
        self.counts[slot] = 0;
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        if self.counts[from] > 0 {
            self.values[into] = self.values[from].clone();
        }
        self.counts[into] += self.counts[from];
        self.check(into)
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
        Ok(vec![
            self.value.finish(builder)?,
            gather::<Int64Type>(&self.counts, slots),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let values = self.value.read(column(columns, 0)?)?;
        for (row, slot) in slots.iter().enumerate() {
            self.values[*slot as usize] = V::get(&values, row).map(V::own);
        }
        scatter::<Int64Type>(&mut self.counts, slots, columns, 1)
    }

    fn memory_size(&self) -> usize {
        let values = sampled(&self.values, |value| {
            size_of_val(value) + value.as_ref().map_or(0, V::heap_size)
        });
        values + self.counts.capacity() * size_of::<i64>()
    }
}
