//! `DISTINCT`: how often every group has seen every value, shared by the aggregates over the same
//! arguments and filter. Tells which rows bring a value for the first time or take its last away.

use arrow::array::ArrayRef;
use arrow::datatypes::Int64Type;
use hashbrown::HashTable;

use super::saved::{count_lists, list_numbers, list_ranges, lists};
use super::state::AggregateInput;
use crate::error::Result;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable, grow};
use crate::types::DataType;

const NONE: u32 = u32::MAX;

/// A value in a group. Counts may be negative, when a withdrawal came before its addition.
#[derive(Debug, Clone)]
struct Entry {
    slot: u32,
    value: u32,
    count: i64,
    /// Neighbours in the list of the slot's entries.
    previous: u32,
    next: u32,
}

/// The counts of all groups.
#[derive(Debug)]
pub(super) struct DistinctValues {
    encoder: KeyEncoder,
    columns: usize,
    /// Every different value once, whatever the group.
    values: KeyTable,
    /// Entries with the value.
    uses: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_slot_and_value: HashTable<u32>,
    /// The last entry of each slot.
    heads: Vec<u32>,
    keys: EncodedKeys,
    ids: Vec<u32>,
    fresh: Vec<u32>,
    /// Values whose last entry has gone. They keep their ids to the end of the batch, whose rows may
    /// bring them back.
    unused: Vec<u32>,
}

fn hash(slot: u32, value: u32) -> u64 {
    let word = u64::from(slot) << 32 | u64::from(value);
    let product = u128::from(word ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15_u128;
    #[allow(clippy::cast_possible_truncation)] // folding the two halves is the point
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded
}

impl DistinctValues {
    pub(super) fn new(types: &[DataType]) -> Result<Self> {
        let encoder = KeyEncoder::new(types)?;
        Ok(Self {
            values: encoder.table(),
            encoder,
            columns: types.len(),
            uses: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            by_slot_and_value: HashTable::new(),
            heads: Vec::new(),
            keys: EncodedKeys::default(),
            ids: Vec::new(),
            fresh: Vec::new(),
            unused: Vec::new(),
        })
    }

    pub(super) fn resize(&mut self, slots: usize) {
        if slots > self.heads.len() {
            grow(&mut self.heads, slots, NONE);
        }
    }

    /// Counts rows and replaces `weights`: +1 where a value is new to its group, -1 where its last
    /// copy is gone, else 0.
    pub(super) fn update(
        &mut self,
        input: &AggregateInput<'_>,
        weights: &mut Vec<i8>,
    ) -> Result<()> {
        let len = input.slots.len();
        self.intern(input.args, len)?;
        weights.clear();
        weights.resize(len, 0);
        for row in 0..len {
            let slot = input.slots[row];
            match input.weights.map_or(1, |w| w[row]) {
                0 => {}
                1.. => {
                    if self.change(slot, self.ids[row], 1) == 1 {
                        weights[row] = 1;
                    }
                }
                _ => {
                    if self.change(slot, self.ids[row], -1) == 0 {
                        weights[row] = -1;
                    }
                }
            }
            if input.ends.is_some_and(|ends| ends[row]) {
                self.remove_all(slot);
            }
        }
        // Values may have been interned for rows that left no entry.
        let fresh = self.fresh.iter().map(|row| self.ids[*row as usize]);
        self.unused.extend(fresh);
        self.drop_unused();
        Ok(())
    }

    fn intern(&mut self, args: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(args, len, &mut self.keys)?;
        self.values
            .intern(&self.keys, &mut self.ids, &mut self.fresh)?;
        if self.values.slot_bound() > self.uses.len() {
            grow(&mut self.uses, self.values.slot_bound(), 0);
        }
        Ok(())
    }

    fn drop_unused(&mut self) {
        for id in self.unused.drain(..) {
            if self.uses[id as usize] == 0 && self.values.is_live(id) {
                self.values.remove(id);
            }
        }
    }

    /// Changes a count and returns the new one.
    fn change(&mut self, slot: u32, value: u32, delta: i64) -> i64 {
        let hash = hash(slot, value);
        let entries = &self.entries;
        let found = self.by_slot_and_value.find(hash, |e| {
            let entry = &entries[*e as usize];
            entry.slot == slot && entry.value == value
        });
        if let Some(found) = found.copied() {
            let entry = &mut self.entries[found as usize];
            entry.count += delta;
            let count = entry.count;
            if count == 0 {
                self.remove(found);
            }
            return count;
        }
        let head = self.heads[slot as usize];
        let entry = Entry {
            slot,
            value,
            count: delta,
            previous: head,
            next: NONE,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 values in memory")
            }
        };
        if head != NONE {
            self.entries[head as usize].next = index;
        }
        self.heads[slot as usize] = index;
        let entries = &self.entries;
        let rehash = |e: &u32| {
            let entry = &entries[*e as usize];
            self::hash(entry.slot, entry.value)
        };
        self.by_slot_and_value.insert_unique(hash, index, rehash);
        self.uses[value as usize] += 1;
        delta
    }

    fn remove(&mut self, index: u32) {
        let Entry {
            slot,
            value,
            previous,
            next,
            ..
        } = self.entries[index as usize];
        if previous != NONE {
            self.entries[previous as usize].next = next;
        }
        if next == NONE {
            self.heads[slot as usize] = previous;
        } else {
            self.entries[next as usize].previous = previous;
        }
        let found = self
            .by_slot_and_value
            .find_entry(hash(slot, value), |e| *e == index);
        if let Ok(found) = found {
            found.remove();
        }
        self.free.push(index);
        let uses = &mut self.uses[value as usize];
        *uses -= 1;
        if *uses == 0 {
            self.unused.push(value);
        }
    }

    pub(super) fn clear(&mut self, slot: u32) {
        self.remove_all(slot);
        self.drop_unused();
    }

    fn remove_all(&mut self, slot: u32) {
        while let Some(head) = self.heads.get(slot as usize).filter(|h| **h != NONE) {
            self.remove(*head);
        }
    }

    /// The entries of a slot, oldest first.
    fn entries_of(&self, slot: u32) -> Vec<&Entry> {
        let mut entries = Vec::new();
        let mut index = self.heads[slot as usize];
        while index != NONE {
            let entry = &self.entries[index as usize];
            entries.push(entry);
            index = entry.previous;
        }
        entries.reverse();
        entries
    }

    /// Adds the counts of `from` to `into`. Returns the values that `into` has gained (+1) or lost
    /// (-1), with their columns: what its aggregates must do.
    pub(super) fn merge(&mut self, into: u32, from: u32) -> Result<(Vec<i8>, Vec<ArrayRef>)> {
        let others: Vec<(u32, i64)> = self
            .entries_of(from)
            .into_iter()
            .map(|e| (e.value, e.count))
            .collect();
        let mut weights = Vec::new();
        let mut values = Vec::new();
        for (value, count) in others {
            let now = self.change(into, value, count);
            let before = now - count;
            if (before > 0) != (now > 0) {
                weights.push(if now > 0 { 1 } else { -1 });
                values.push(value);
            }
        }
        let columns = self.values.decode(&self.encoder, values)?;
        self.drop_unused();
        Ok((weights, columns))
    }

    /// Columns of lists: one for each argument, and the counts.
    pub(super) fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut lengths = Vec::with_capacity(slots.len());
        let (mut values, mut counts) = (Vec::new(), Vec::new());
        for slot in slots {
            let entries = self.entries_of(*slot);
            lengths.push(entries.len());
            values.extend(entries.iter().map(|e| e.value));
            counts.extend(entries.iter().map(|e| e.count));
        }
        let mut columns = self
            .values
            .decode(&self.encoder, values)?
            .into_iter()
            .map(|column| lists(&lengths, column))
            .collect::<Result<Vec<_>>>()?;
        columns.push(count_lists(&lengths, counts)?);
        Ok(columns)
    }

    pub(super) fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let (ranges, _) = list_ranges(columns, self.columns)?;
        let counts = list_numbers::<Int64Type>(columns, self.columns)?;
        let args = (0..self.columns)
            .map(|i| Ok(list_ranges(columns, i)?.1))
            .collect::<Result<Vec<_>>>()?;
        self.intern(&args, counts.len())?;
        for (slot, range) in slots.iter().zip(ranges) {
            for i in range {
                self.change(*slot, self.ids[i], counts.value(i));
            }
        }
        Ok(())
    }

    /// Number of columns that [`save`](Self::save) gives.
    pub(super) fn saved_columns(&self) -> usize {
        self.columns + 1
    }

    pub(super) fn memory_size(&self) -> usize {
        self.values.memory_size()
            + self.entries.capacity() * size_of::<Entry>()
            + (self.uses.capacity() + self.heads.capacity() + self.free.capacity()) * 4
            + self.by_slot_and_value.allocation_size()
    }
}
