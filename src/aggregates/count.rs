//! `COUNT`: of rows, or of rows in which no argument is NULL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Int64Type;

use super::saved::{gather, scatter};
use super::state::Kernel;
use super::value::NumbersBuilder;
use crate::error::Result;
use crate::state::keys::grow;

#[derive(Debug, Default)]
pub(super) struct Count {
    counts: Vec<i64>,
}

impl Kernel for Count {
    /// Where no argument is NULL; `None` for everywhere.
    type Columns = Option<NullBuffer>;
    type Builder = NumbersBuilder<i64>;

    fn resize(&mut self, slots: usize) {
        if slots > self.counts.len() {
            grow(&mut self.counts, slots, 0);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Option<NullBuffer>> {
        let nulls = args.iter().fold(None, |nulls, arg| {
            NullBuffer::union(nulls.as_ref(), arg.logical_nulls().as_ref())
        });
        Ok(nulls.filter(|n| n.null_count() > 0))
    }

    #[inline]
    fn add(&mut self, slot: usize, valid: &Option<NullBuffer>, row: usize) -> Result<()> {
        if valid.as_ref().is_none_or(|v| v.is_valid(row)) {
            self.counts[slot] += 1;
        }
        Ok(())
    }

    #[inline]
    fn subtract(&mut self, slot: usize, valid: &Option<NullBuffer>, row: usize) -> Result<()> {
        if valid.as_ref().is_none_or(|v| v.is_valid(row)) {
            self.counts[slot] -= 1;
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.counts[slot] = 0;
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        self.counts[into] += self.counts[from];
        Ok(())
    }

    fn builder(&self, capacity: usize) -> NumbersBuilder<i64> {
        NumbersBuilder::new(capacity)
    }

    #[inline]
    fn push(&self, slot: usize, builder: &mut NumbersBuilder<i64>) -> Result<()> {
        builder.push(Some(self.counts[slot]));
        Ok(())
    }

    #[inline]
    fn last_two_differ(builder: &NumbersBuilder<i64>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<i64>) -> Result<ArrayRef> {
        Ok(Arc::new(builder.finish::<Int64Type>()))
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![gather::<Int64Type>(&self.counts, slots)])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        scatter::<Int64Type>(&mut self.counts, slots, columns, 0)
    }

    fn memory_size(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
