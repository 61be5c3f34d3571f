//! What aggregates remember, a slot a group: the interface that operators use, and the loops that
//! all aggregates share.

use std::fmt::Debug;

use arrow::array::ArrayRef;

use crate::error::Result;

/// Rows for an aggregate.
#[derive(Debug, Clone, Copy)]
pub struct AggregateInput<'a> {
    /// The group of each row.
    pub slots: &'a [u32],
    /// What each row does: +1 adds, -1 withdraws, 0 is not for this aggregate. `None`: all add.
    pub weights: Option<&'a [i8]>,
    /// Rows after which the group is gone and its state must be fresh. `None`: none.
    pub ends: Option<&'a [bool]>,
    /// The argument columns, as many rows as `slots`.
    pub args: &'a [ArrayRef],
}

/// The state of one aggregate call, for all groups of an operator.
///
/// - Slots are fresh when [`resize`](Self::resize) first makes them and after
///   [`clear`](Self::clear).
/// - A withdrawal of a value that was never added MUST NOT fail.
/// - [`save`](Self::save) and [`load`](Self::load) MUST be complete.
pub trait AggregateState: Send + Debug {
    /// Makes sure that slots below `slots` exist.
    fn resize(&mut self, slots: usize);

    /// Adds and withdraws rows.
    ///
    /// # Errors
    /// When the function refuses a value.
    fn update(&mut self, input: &AggregateInput<'_>) -> Result<()>;

    /// As [`update`](Self::update), and returns the values before and after every row: those of row
    /// i are at 2i and 2i + 1. Sets `changed[i]` if they differ.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    fn trace(&mut self, input: &AggregateInput<'_>, changed: &mut [bool]) -> Result<ArrayRef>;

    /// The current values of slots.
    ///
    /// # Errors
    /// When the function has no value for what it was given.
    fn values(&self, slots: &[u32]) -> Result<ArrayRef>;

    /// Makes a slot fresh.
    fn clear(&mut self, slot: u32);

    /// Adds what slot `from` has to slot `into`; `from` stays as it is.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    fn merge(&mut self, into: u32, from: u32) -> Result<()>;

    /// The state of slots as columns, for a checkpoint.
    ///
    /// # Errors
    /// When the state cannot be read back.
    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>>;

    /// Puts saved state into fresh slots.
    ///
    /// # Errors
    /// When the columns are not of this aggregate.
    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()>;

    /// Bytes of memory held, estimated.
    fn memory_size(&self) -> usize;
}

/// The part of an aggregate that differs: what one row does to one slot. [`Looped`] makes an
/// [`AggregateState`] of it, with loops that are compiled for it.
pub(super) trait Kernel: Send + Debug {
    /// Argument columns made ready.
    type Columns;
    /// Collects results.
    type Builder;

    fn resize(&mut self, slots: usize);
    fn read(&self, args: &[ArrayRef]) -> Result<Self::Columns>;
    fn add(&mut self, slot: usize, columns: &Self::Columns, row: usize) -> Result<()>;
    fn subtract(&mut self, slot: usize, columns: &Self::Columns, row: usize) -> Result<()>;
    fn clear(&mut self, slot: usize);
    fn merge(&mut self, into: usize, from: usize) -> Result<()>;
    fn builder(&self, capacity: usize) -> Self::Builder;
    /// Appends the value of a slot.
    fn push(&self, slot: usize, builder: &mut Self::Builder) -> Result<()>;
    fn last_two_differ(builder: &Self::Builder) -> bool;
    fn finish(&self, builder: Self::Builder) -> Result<ArrayRef>;
    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>>;
    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()>;
    fn memory_size(&self) -> usize;
}

/// An aggregate by its kernel.
#[derive(Debug)]
pub(super) struct Looped<K>(pub(super) K);

impl<K: Kernel> Looped<K> {
    #[inline]
    fn apply(&mut self, slot: usize, weight: i8, columns: &K::Columns, row: usize) -> Result<()> {
        match weight {
            0 => Ok(()),
            1.. => self.0.add(slot, columns, row),
            _ => self.0.subtract(slot, columns, row),
        }
    }
}

impl<K: Kernel> AggregateState for Looped<K> {
    fn resize(&mut self, slots: usize) {
        self.0.resize(slots);
    }

    fn update(&mut self, input: &AggregateInput<'_>) -> Result<()> {
        let columns = self.0.read(input.args)?;
        let rows = input.slots.iter().map(|s| *s as usize).enumerate();
        match (input.weights, input.ends) {
            (None, None) => {
                for (row, slot) in rows {
                    self.0.add(slot, &columns, row)?;
                }
            }
            (Some(weights), None) => {
                for ((row, slot), weight) in rows.zip(weights) {
                    self.apply(slot, *weight, &columns, row)?;
                }
            }
            (weights, Some(ends)) => {
                for ((row, slot), end) in rows.zip(ends) {
                    let weight = weights.map_or(1, |w| w[row]);
                    self.apply(slot, weight, &columns, row)?;
                    if *end {
                        self.0.clear(slot);
                    }
                }
            }
        }
        Ok(())
    }

    fn trace(&mut self, input: &AggregateInput<'_>, changed: &mut [bool]) -> Result<ArrayRef> {
        let columns = self.0.read(input.args)?;
        let mut builder = self.0.builder(input.slots.len() * 2);
        let rows = input.slots.iter().map(|s| *s as usize).enumerate();
        match (input.weights, input.ends) {
            (None, None) => {
                for ((row, slot), changed) in rows.zip(changed) {
                    self.0.push(slot, &mut builder)?;
                    self.0.add(slot, &columns, row)?;
                    self.0.push(slot, &mut builder)?;
                    *changed |= K::last_two_differ(&builder);
                }
            }
            (weights, ends) => {
                for ((row, slot), changed) in rows.zip(changed) {
                    let weight = weights.map_or(1, |w| w[row]);
                    self.0.push(slot, &mut builder)?;
                    self.apply(slot, weight, &columns, row)?;
                    self.0.push(slot, &mut builder)?;
                    *changed |= K::last_two_differ(&builder);
                    if ends.is_some_and(|ends| ends[row]) {
                        self.0.clear(slot);
                    }
                }
            }
        }
        self.0.finish(builder)
    }

    fn values(&self, slots: &[u32]) -> Result<ArrayRef> {
        let mut builder = self.0.builder(slots.len());
        for slot in slots {
            self.0.push(*slot as usize, &mut builder)?;
        }
        self.0.finish(builder)
    }

    fn clear(&mut self, slot: u32) {
        self.0.clear(slot as usize);
    }

    fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        self.0.merge(into as usize, from as usize)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.0.save(slots)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        self.0.load(slots, columns)
    }

    fn memory_size(&self) -> usize {
        self.0.memory_size()
    }
}
