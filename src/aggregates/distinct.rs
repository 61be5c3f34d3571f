//! `DISTINCT`: how often every group has seen every value, shared by the aggregates over the same
//! arguments, with a count for each of their filters. Tells which rows bring a value for the first time
//! or take its last away.

use arrow::array::ArrayRef;
use arrow::datatypes::Int64Type;
use hashbrown::HashTable;

use super::saved::{count_lists, list_numbers, list_ranges, lists};
use super::state::AggregateInput;
use crate::error::{Error, Result};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable, grow};
use crate::types::DataType;

const NONE: u32 = u32::MAX;

/// What a group gains from another under a filter: +1 for a value that is new, -1 for one that is gone,
/// and the values' columns.
pub(super) type Gained = (Vec<i8>, Vec<ArrayRef>);

/// A value in a group.
#[derive(Debug, Clone)]
struct Entry {
    slot: u32,
    value: u32,
    /// Neighbours in the list of the slot's entries.
    previous: u32,
    next: u32,
}

/// The counts of all groups.
#[derive(Debug)]
pub(super) struct DistinctValues {
    encoder: KeyEncoder,
    columns: usize,
    /// Number of filters, of which none at all is one.
    filters: usize,
    /// Every different value once, whatever the group.
    values: KeyTable,
    /// Entries with the value.
    uses: Vec<u32>,
    entries: Vec<Entry>,
    /// A count for each filter, entry after entry. Below zero when a withdrawal came before its addition.
    counts: Vec<i64>,
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
    /// Of values of these types, under no filter yet.
    pub(super) fn new(types: &[DataType]) -> Result<Self> {
        let encoder = KeyEncoder::new(types)?;
        Ok(Self {
            values: encoder.table(),
            encoder,
            columns: types.len(),
            filters: 0,
            uses: Vec::new(),
            entries: Vec::new(),
            counts: Vec::new(),
            free: Vec::new(),
            by_slot_and_value: HashTable::new(),
            heads: Vec::new(),
            keys: EncodedKeys::default(),
            ids: Vec::new(),
            fresh: Vec::new(),
            unused: Vec::new(),
        })
    }

    /// Counts under one more filter. To be called before there are values.
    pub(super) fn add_filter(&mut self) {
        self.filters += 1;
    }

    pub(super) fn resize(&mut self, slots: usize) {
        if slots > self.heads.len() {
            grow(&mut self.heads, slots, NONE);
        }
    }

    /// Counts rows, those that pass filter `f` with `weights[f]` (`None`: every row adds), and replaces
    /// `news`: +1 where a value is new to its group under the filter, -1 where its last copy is gone,
    /// else 0.
    pub(super) fn update(
        &mut self,
        input: &AggregateInput<'_>,
        weights: &[Option<&[i8]>],
        news: &mut [Vec<i8>],
    ) -> Result<()> {
        let len = input.slots.len();
        self.intern(input.args, len)?;
        for news in news.iter_mut() {
            news.clear();
            news.resize(len, 0);
        }
        for row in 0..len {
            let slot = input.slots[row];
            let weight = |filter: usize| weights[filter].map_or(1, |w| w[row]);
            if (0..self.filters).any(|filter| weight(filter) != 0) {
                let entry = self.entry(slot, self.ids[row]);
                for (filter, news) in news.iter_mut().enumerate() {
                    let count = &mut self.counts[entry as usize * self.filters + filter];
                    match weight(filter) {
                        0 => {}
                        1.. => {
                            *count += 1;
                            news[row] = i8::from(*count == 1);
                        }
                        _ => {
                            *count -= 1;
                            news[row] = -i8::from(*count == 0);
                        }
                    }
                }
                self.tidy(entry);
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

    /// The entry of a value in a group, made without any count if it is not there.
    fn entry(&mut self, slot: u32, value: u32) -> u32 {
        let hash = hash(slot, value);
        let entries = &self.entries;
        let found = self.by_slot_and_value.find(hash, |e| {
            let entry = &entries[*e as usize];
            entry.slot == slot && entry.value == value
        });
        if let Some(found) = found {
            return *found;
        }
        let head = self.heads[slot as usize];
        let entry = Entry {
            slot,
            value,
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
                self.counts.resize(self.entries.len() * self.filters, 0);
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
        index
    }

    /// The counts of an entry, one a filter.
    fn counts(&self, entry: u32) -> &[i64] {
        let start = entry as usize * self.filters;
        &self.counts[start..start + self.filters]
    }

    /// Removes an entry that counts nothing.
    fn tidy(&mut self, entry: u32) {
        if self.counts(entry).iter().all(|count| *count == 0) {
            self.remove(entry);
        }
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
        let start = index as usize * self.filters;
        self.counts[start..start + self.filters].fill(0);
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
    fn entries_of(&self, slot: u32) -> Vec<u32> {
        let mut entries = Vec::new();
        let mut index = self.heads[slot as usize];
        while index != NONE {
            entries.push(index);
            index = self.entries[index as usize].previous;
        }
        entries.reverse();
        entries
    }

    /// Adds the counts of `from` to `into`. Returns for each filter the values that `into` has gained
    /// (+1) or lost (-1), with their columns: what its aggregates must do.
    pub(super) fn merge(&mut self, into: u32, from: u32) -> Result<Vec<Gained>> {
        let mut gained = vec![(Vec::new(), Vec::new()); self.filters];
        for other in self.entries_of(from) {
            let value = self.entries[other as usize].value;
            let entry = self.entry(into, value);
            for (filter, (weights, values)) in gained.iter_mut().enumerate() {
                let added = self.counts(other)[filter];
                let count = &mut self.counts[entry as usize * self.filters + filter];
                let before = *count;
                *count += added;
                if (before > 0) != (*count > 0) {
                    weights.push(if *count > 0 { 1 } else { -1 });
                    values.push(value);
                }
            }
            self.tidy(entry);
        }
        let gained = gained.into_iter().map(|(weights, values)| {
            let columns = self.values.decode(&self.encoder, values)?;
            Ok((weights, columns))
        });
        let gained = gained.collect::<Result<_>>()?;
        self.drop_unused();
        Ok(gained)
    }

    /// Columns of lists: one for each argument, and one of counts for each filter.
    pub(super) fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut lengths = Vec::with_capacity(slots.len());
        let mut values = Vec::new();
        let mut counts = vec![Vec::new(); self.filters];
        for slot in slots {
            let entries = self.entries_of(*slot);
            lengths.push(entries.len());
            for entry in entries {
                values.push(self.entries[entry as usize].value);
                for (counts, count) in counts.iter_mut().zip(self.counts(entry)) {
                    counts.push(*count);
                }
            }
        }
        let mut columns = self
            .values
            .decode(&self.encoder, values)?
            .into_iter()
            .map(|column| lists(&lengths, column))
            .collect::<Result<Vec<_>>>()?;
        for counts in counts {
            columns.push(count_lists(&lengths, counts)?);
        }
        Ok(columns)
    }

    pub(super) fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let (ranges, _) = list_ranges(columns, self.columns)?;
        let counts = (0..self.filters)
            .map(|filter| list_numbers::<Int64Type>(columns, self.columns + filter))
            .collect::<Result<Vec<_>>>()?;
        let args = (0..self.columns)
            .map(|i| Ok(list_ranges(columns, i)?.1))
            .collect::<Result<Vec<_>>>()?;
        let values = counts.first().map_or(0, |counts| counts.len());
        if counts.iter().any(|counts| counts.len() != values) {
            return Err(Error::checkpoint("the saved counts of values do not match"));
        }
        self.intern(&args, values)?;
        for (slot, range) in slots.iter().zip(ranges) {
            for i in range {
                let entry = self.entry(*slot, self.ids[i]);
                for (filter, counts) in counts.iter().enumerate() {
                    self.counts[entry as usize * self.filters + filter] += counts.value(i);
                }
                self.tidy(entry);
            }
        }
        Ok(())
    }

    /// Number of columns that [`save`](Self::save) gives.
    pub(super) fn saved_columns(&self) -> usize {
        self.columns + self.filters
    }

    pub(super) fn memory_size(&self) -> usize {
        self.values.memory_size()
            + self.entries.capacity() * size_of::<Entry>()
            + self.counts.capacity() * size_of::<i64>()
            + (self.uses.capacity() + self.heads.capacity() + self.free.capacity()) * 4
            + self.by_slot_and_value.allocation_size()
    }
}
