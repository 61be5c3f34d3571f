//! Rows in order, with ranks: the state of one partition.

use crate::state::rows::{RowId, RowStore};

/// A chunk is cut in two when it grows to this.
const CHUNK: usize = 512;

/// A row in order: its bytes in the store are those of its sort key, then those of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operators) struct Entry {
    /// The row.
    pub(in crate::operators) id: RowId,
    /// Length of the sort key.
    pub(in crate::operators) sort_len: u32,
}

impl Entry {
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
    chunks: Vec<Vec<Entry>>,
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
        self.partition_point(|entry| entry.sort(store) <= sort)
    }

    /// Where the first row stands that has sort key `sort` and passes `is_it`.
    pub(in crate::operators) fn find(
        &self,
        store: &RowStore,
        sort: &[u8],
        is_it: impl Fn(&Entry) -> bool,
    ) -> Option<Position> {
        let mut at = self.partition_point(|entry| entry.sort(store) < sort);
        while let Some(chunk) = self.chunks.get(at.chunk) {
            for (index, entry) in chunk.iter().enumerate().skip(at.index) {
                if entry.sort(store) != sort {
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
                0 => self.chunks.push(Vec::with_capacity(1)),
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
            let at = rows.insert(at, Entry { id, sort_len: 1 });
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
