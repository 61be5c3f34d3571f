//! The groups of slices as a table: the key, the slice and the group's place in it, the aggregates.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::{Assembly, Slice, SliceAggregate};
use crate::error::Result;
use crate::operators::last_rows::{SNAPSHOT_ROWS, leading_numbers};
use crate::operators::windows::Wanted;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

pub(super) const TABLE: &str = "slices";

/// Which slice, or sum of slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    end: i64,
    start: i64,
    /// What has been cumulated since the start; its end means nothing.
    is_sum: bool,
}

/// Groups on their way into a copy.
#[derive(Debug, Default)]
struct Copied {
    keys: Vec<u32>,
    states: Vec<u32>,
    /// Start and end of the slice, whether it is a sum, and the place in it.
    numbers: [Vec<i64>; 4],
}

impl Copied {
    fn push(&mut self, stretch: Stretch, place: usize, (key, state): (u32, u32)) {
        self.keys.push(key);
        self.states.push(state);
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        let numbers = [stretch.start, stretch.end, i64::from(stretch.is_sum), place];
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
    }
}

impl SliceAggregate {
    /// Slices and sums.
    fn stretches(&self) -> impl Iterator<Item = (Stretch, &Slice)> {
        let slices = self.slices.iter().map(|((end, start), slice)| {
            let stretch = Stretch {
                end: *end,
                start: *start,
                is_sum: false,
            };
            (stretch, slice)
        });
        let sums = self.sums.iter().map(|(start, slice)| {
            let stretch = Stretch {
                end: *start,
                start: *start,
                is_sum: true,
            };
            (stretch, slice)
        });
        slices.chain(sums)
    }

    /// A copy of the groups of `keys`, or of all.
    pub(super) fn copy(&self, keys: Option<&[u32]>) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.progress),
            ..OperatorSnapshot::default()
        };
        let mut copied = Copied::default();
        let groups = self.stretches().map(|(_, s)| s.groups.len()).sum();
        let stretches = self.slices.len() + self.sums.len();
        let wanted = Wanted::new(keys, self.keys.slot_bound(), stretches, groups);
        for (stretch, slice) in self.stretches() {
            for place in wanted.places(slice) {
                copied.push(stretch, place, slice.groups[place]);
                if copied.keys.len() >= SNAPSHOT_ROWS {
                    self.hand_over(&mut copied, &mut snapshot)?;
                }
            }
        }
        self.hand_over(&mut copied, &mut snapshot)?;
        Ok(snapshot)
    }

    fn hand_over(&self, copied: &mut Copied, snapshot: &mut OperatorSnapshot) -> Result<()> {
        let Copied {
            keys,
            states,
            numbers: [starts, ends, sums, places],
        } = std::mem::take(copied);
        if keys.is_empty() {
            return Ok(());
        }
        let counts = states.iter().map(|s| self.states.count(*s)).collect();
        let numbers = [starts, ends, sums, counts, places].into_iter();
        let mut columns: Vec<ArrayRef> = numbers
            .map(|numbers| Arc::new(Int64Array::from(numbers)) as ArrayRef)
            .collect();
        columns.extend(self.states.save(&states)?);
        let rows = self.keys.rows(&keys, columns);
        snapshot.add_lazy(TABLE, self.keys.columns(), rows);
        Ok(())
    }

    /// The slice of a copy, made with the windows that it is part of if it is new.
    fn restored(&mut self, stretch: Stretch) -> &mut Slice {
        let Stretch { end, start, is_sum } = stretch;
        if !is_sum {
            let _ = self.target((end, start));
            return self.slices.entry((end, start)).or_default();
        }
        let size = match self.assembly {
            Assembly::Growing { size } => size,
            _ => 0,
        };
        // All windows that the sum has still to be part of.
        let mut end = start + self.windowing.interval();
        while end <= start + size {
            if !self.windowing.is_over(end, self.progress) {
                self.pending.insert((end, start));
            }
            end += self.windowing.interval();
        }
        self.sums.entry(start).or_default()
    }

    /// Takes up the groups of a copy.
    pub(super) fn take_up(&mut self, state: &RestoreState) -> Result<()> {
        let mut found: BTreeMap<Stretch, Vec<(i64, u32, u32)>> = BTreeMap::new();
        for batch in state.batches(TABLE) {
            let (keys, rest) = batch.columns().split_at(self.keys.columns());
            let ([starts, ends, sums, counts, places], saved) = leading_numbers::<5>(rest)?;
            self.keys.begin_keys(keys, batch.num_rows())?;
            let mut slots = Vec::with_capacity(batch.num_rows());
            for i in 0..batch.num_rows() {
                let (key, state) = (self.keys.slot(i), self.states.make());
                self.keys.retain(key);
                self.states.add_count(state, counts.value(i));
                slots.push(state);
                let stretch = Stretch {
                    end: ends.value(i),
                    start: starts.value(i),
                    is_sum: sums.value(i) == 1,
                };
                let groups = found.entry(stretch).or_default();
                groups.push((places.value(i), key, state));
            }
            self.states.load(&slots, saved)?;
        }
        for (stretch, mut groups) in found {
            groups.sort_by_key(|(place, ..)| *place);
            let slice = self.restored(stretch);
            for (_, key, state) in groups {
                slice.insert(key, state);
            }
        }
        Ok(())
    }
}
