//! Rows in order, with ranks: the state of one partition.

use std::cmp::Ordering;

use smallvec::{SmallVec, smallvec};

use crate::state::rows::{RowId, RowStore};

/// A chunk is cut in two when it grows to this.
const CHUNK: usize = 512;

/// A row in order: its bytes in the store are those of its sort key, then those of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operators) struct Entry {
    /// The row.
    pub(in crate::operators) id: RowId,
    sort_len: u32,
    start: Start,
}

/// The first bytes of a sort key, as numbers that compare as the bytes do; zeros follow a shorter key. A number
/// or a time with its NULL byte fits: most comparisons need not look for the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Start([u32; 3]);

impl Start {
    const LEN: usize = 12;

    fn of(sort: &[u8]) -> Self {
        let mut bytes = [0; Self::LEN];
        let len = sort.len().min(Self::LEN);
        bytes[..len].copy_from_slice(&sort[..len]);
        let word = |i: usize| u32::from_be_bytes([0, 1, 2, 3].map(|j| bytes[i * 4 + j]));
        Self([word(0), word(1), word(2)])
    }
}

/// A sort key to compare entries with.
struct Sought<'a> {
    sort: &'a [u8],
    start: Start,
}

impl<'a> Sought<'a> {
    fn new(sort: &'a [u8]) -> Self {
        Self {
            sort,
            start: Start::of(sort),
        }
    }
}

impl Entry {
    /// The entry of row `id`, whose bytes begin with `sort`.
    pub(in crate::operators) fn new(id: RowId, sort: &[u8]) -> Self {
        Self {
            id,
            sort_len: u32::try_from(sort.len()).expect("a sort key is shorter than 4 GiB"),
            start: Start::of(sort),
        }
    }

    fn compare(&self, store: &RowStore, sought: &Sought<'_>) -> Ordering {
        let whole = self.sort_len as usize <= Start::LEN && sought.sort.len() <= Start::LEN;
        self.start.cmp(&sought.start).then_with(|| match whole {
            // Zeros of the shorter key may stand for none.
            true => (self.sort_len as usize).cmp(&sought.sort.len()),
            false => self.sort(store).cmp(sought.sort),
        })
    }

    /// Whether a new row with sort key `sort` comes before this one.
    pub(in crate::operators) fn is_behind(&self, store: &RowStore, sort: &[u8]) -> bool {
        self.compare(store, &Sought::new(sort)) == Ordering::Greater
    }

    /// The bytes of the sort key.
    pub(in crate::operators) fn sort<'a>(&self, store: &'a RowStore) -> &'a [u8] {
        &store.get(self.id)[..self.sort_len as usize]
    }

    /// The bytes of the row.
    pub(in crate::operators) fn row<'a>(&self, store: &'a RowStore) -> &'a [u8] {
        &store.get(self.id)[self.sort_len as usize..]
    }
}

/// A place in [`SortedRows`], valid until they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operators) struct Position {
    chunk: usize,
    index: usize,
}

/// Rows by sort key; rows of equal keys in the order of their arrival.
#[derive(Debug, Clone, Default)]
pub(in crate::operators) struct SortedRows {
    /// None is empty.
    chunks: SmallVec<[Vec<Entry>; 1]>,
}

impl SortedRows {
    /// Number of rows.
    pub(in crate::operators) fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Whether there is no row.
    pub(in crate::operators) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The rows, in order.
    pub(in crate::operators) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// The last row.
    pub(in crate::operators) fn last(&self) -> Option<Entry> {
        self.chunks.last().and_then(|chunk| chunk.last()).copied()
    }

    /// The rows from `at` on, in order.
    pub(in crate::operators) fn iter_from(&self, at: Position) -> impl Iterator<Item = Entry> + '_ {
        let first = self.chunks.get(at.chunk).into_iter();
        let rest = self.chunks.iter().skip(at.chunk + 1).flatten();
        first.flat_map(move |c| &c[at.index..]).chain(rest).copied()
    }

    /// Reads a little of every cache line that a search in the last chunk may need, and tells nothing by it.
    pub(in crate::operators) fn touch(&self) -> u32 {
        const STEP: usize = 64 / size_of::<Entry>();
        let entries = self.chunks.last().map_or(&[][..], |chunk| chunk);
        let steps = entries.iter().step_by(STEP);
        steps.fold(0, |sum, entry| sum ^ entry.start.0[0])
    }

    /// Where the first row stands for which `before` is not true; it MUST be true for a prefix.
    fn partition_point(&self, before: impl Fn(&Entry) -> bool) -> Position {
        let chunk = self
            .chunks
            .partition_point(|chunk| chunk.last().is_some_and(&before));
        let index = self
            .chunks
            .get(chunk)
            .map_or(0, |chunk| chunk.partition_point(&before));
        Position { chunk, index }
    }

    /// Where a new row with sort key `sort` belongs: behind all rows of that key.
    pub(in crate::operators) fn upper_bound(&self, store: &RowStore, sort: &[u8]) -> Position {
        let sought = Sought::new(sort);
        self.partition_point(|entry| entry.compare(store, &sought) != Ordering::Greater)
    }

    /// Where the first row stands that has sort key `sort` and passes `is_it`.
    pub(in crate::operators) fn find(
        &self,
        store: &RowStore,
        sort: &[u8],
        is_it: impl Fn(&Entry) -> bool,
    ) -> Option<Position> {
        let sought = Sought::new(sort);
        let mut at = self.partition_point(|entry| entry.compare(store, &sought) == Ordering::Less);
        while let Some(chunk) = self.chunks.get(at.chunk) {
            for (index, entry) in chunk.iter().enumerate().skip(at.index) {
                if entry.compare(store, &sought) != Ordering::Equal {
                    return None;
                }
                if is_it(entry) {
                    return Some(Position { index, ..at });
                }
            }
            at = Position {
                chunk: at.chunk + 1,
                index: 0,
            };
        }
        None
    }

    /// The number of rows before `at`.
    pub(in crate::operators) fn rows_before(&self, at: Position) -> usize {
        let before = self.chunks[..at.chunk].iter().map(Vec::len);
        before.sum::<usize>() + at.index
    }

    /// The row that has `before` rows before it.
    pub(in crate::operators) fn nth(&self, mut before: usize) -> Option<Entry> {
        for chunk in &self.chunks {
            match chunk.get(before) {
                Some(entry) => return Some(*entry),
                None => before -= chunk.len(),
            }
        }
        None
    }

    /// Puts a row at `at`, before the one that stands there. Returns its place.
    pub(in crate::operators) fn insert(&mut self, at: Position, entry: Entry) -> Position {
        let mut at = at;
        if at.chunk == self.chunks.len() {
            match self.chunks.len() {
                0 => self.chunks = smallvec![Vec::with_capacity(1)],
                n => {
                    at = Position {
                        chunk: n - 1,
                        index: self.chunks[n - 1].len(),
                    }
                }
            }
        }
        if self.chunks[at.chunk].len() == CHUNK {
            let second = self.chunks[at.chunk].split_off(CHUNK / 2);
            self.chunks.insert(at.chunk + 1, second);
            if at.index > CHUNK / 2 {
                at = Position {
                    chunk: at.chunk + 1,
                    index: at.index - CHUNK / 2,
                };
            }
        }
        self.chunks[at.chunk].insert(at.index, entry);
        at
    }

    /// Takes the row at `at` out. What stood behind it stands at `at`'s rank now.
    pub(in crate::operators) fn remove(&mut self, at: Position) -> Entry {
        let entry = self.chunks[at.chunk].remove(at.index);
        if self.chunks[at.chunk].is_empty() {
            self.chunks.remove(at.chunk);
        }
        entry
    }

    /// Takes the last row out.
    pub(in crate::operators) fn pop(&mut self) -> Option<Entry> {
        let chunk = self.chunks.last_mut()?;
        let entry = chunk.pop();
        if chunk.is_empty() {
            self.chunks.pop();
        }
        entry
    }

    /// Bytes of memory held.
    pub(in crate::operators) fn memory_size(&self) -> usize {
        let chunks = self.chunks.iter();
        chunks
            .map(|c| c.capacity() * size_of::<Entry>() + size_of::<Vec<Entry>>())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_in_order_with_ties_by_arrival() {
        let mut store = RowStore::default();
        let mut rows = SortedRows::default();
        let mut model: Vec<(u8, u32)> = Vec::new();
        let mut x = 7_u32;
        for arrival in 0..5000_u32 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let sort = (x >> 24) as u8 / 4;
            let bytes = [&[sort][..], &arrival.to_le_bytes()].concat();
            let at = rows.upper_bound(&store, &[sort]);
            let rank = rows.rows_before(at);
            let id = store.insert(&bytes);
            let at = rows.insert(at, Entry::new(id, &[sort]));
            assert_eq!(rows.rows_before(at), rank);
            let model_rank = model.partition_point(|(s, _)| *s <= sort);
            assert_eq!(rank, model_rank);
            model.insert(model_rank, (sort, arrival));
            if arrival % 3 == 0 {
                let (sort, arrival) = model.remove(model.len() / 2);
                let bytes = arrival.to_le_bytes();
                let at = rows.find(&store, &[sort], |e| e.row(&store) == bytes);
                let entry = rows.remove(at.unwrap());
                store.remove(entry.id);
            }
        }
        assert_eq!(rows.len(), model.len());
        for (i, (entry, (sort, arrival))) in rows.iter().zip(&model).enumerate() {
            assert_eq!(store.get(entry.id)[0], *sort);
            assert_eq!(entry.row(&store), arrival.to_le_bytes());
            assert_eq!(rows.nth(i), Some(entry));
        }
        while let Some((sort, _)) = model.pop() {
            assert_eq!(rows.pop().unwrap().sort(&store), [sort]);
        }
        assert!(rows.is_empty());
    }
}
