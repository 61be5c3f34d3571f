//! What a change of one row emits, by strategy.

use super::{Core, Entry, NewRow, Partition, Place, Position, RowKeys, SortedRows};
use crate::changelog::RowKind;
use crate::state::rows::RowId;

impl Core {
    /// A row of input that only grows and is ranked by arrival.
    pub(super) fn count(&mut self, partition: &mut Partition, i: usize, end: u64) {
        if partition.count < end {
            partition.count += 1;
            let place = Place::Input(u32::try_from(i).expect("fewer than 2^32 rows"));
            self.emit(RowKind::Insert, place, partition.count);
        }
    }

    /// A row of input that only grows.
    pub(super) fn append(&mut self, rows: &mut SortedRows, new: &NewRow<'_>, end: u64) {
        let at = rows.upper_bound(&self.store, new.sort);
        let rank = rows.rows_before(at) as u64 + 1;
        if rank > end {
            return;
        }
        self.enter(rows, None, at, new, end);
    }

    /// A row of input in which rows with one row key replace each other by better ones.
    pub(super) fn update(
        &mut self,
        rows: &mut SortedRows,
        keys: &mut RowKeys,
        new: &NewRow<'_>,
        end: u64,
    ) {
        match keys.find(new.i) {
            Some(old) => self.replace(rows, keys, old, new, end),
            None => {
                let at = rows.upper_bound(&self.store, new.sort);
                if (rows.rows_before(at) as u64) < end {
                    self.enter(rows, Some(keys), at, new, end);
                }
            }
        }
    }

    /// A new row enters the first `end` ranks, and one may leave them.
    fn enter(
        &mut self,
        rows: &mut SortedRows,
        mut keys: Option<&mut RowKeys>,
        at: Position,
        new: &NewRow<'_>,
        end: u64,
    ) {
        let (at, entry) = self.insert(rows, at, new);
        if let Some(keys) = &mut keys {
            keys.put(new.i, entry);
        }
        if self.with_rank {
            self.shift_down(rows, at, end);
        }
        let mut left = None;
        if rows.len() as u64 > end
            && let Some(last) = rows.pop()
        {
            left = Some(self.place(last));
            if let Some(keys) = keys {
                keys.forget(last);
            }
            self.remove(last);
        }
        if self.with_rank {
            return;
        }
        let place = self.place_of_input(new.i);
        match left {
            Some(left) if self.top_1 => {
                self.emit(RowKind::UpdateBefore, left, 1);
                self.emit(RowKind::UpdateAfter, place, 1);
            }
            Some(left) => {
                self.emit(RowKind::Delete, left, 1);
                self.emit(RowKind::Insert, place, 1);
            }
            None => self.emit(RowKind::Insert, place, 1),
        }
    }

    /// Row `new` replaces `old`, which has its row key.
    fn replace(
        &mut self,
        rows: &mut SortedRows,
        keys: &mut RowKeys,
        old: Entry,
        new: &NewRow<'_>,
        end: u64,
    ) {
        let sort = old.sort(&self.store);
        let stays = sort == new.sort;
        let Some(at) = rows.find(&self.store, sort, |entry| entry.id == old.id) else {
            return; // cannot be: the row keys are those of the rows
        };
        let old_rank = rows.rows_before(at) as u64 + 1;
        let old_place = self.place(old);
        if stays {
            self.scratch.clear();
            self.scratch.extend_from_slice(new.sort);
            self.scratch.extend_from_slice(new.row);
            self.store.replace(old.id, &self.scratch);
            self.set_place(old.id, self.place_of_input(new.i));
            self.emit(RowKind::UpdateBefore, old_place, old_rank);
            self.emit(RowKind::UpdateAfter, self.place_of_input(new.i), old_rank);
            return;
        }
        rows.remove(at);
        self.remove(old);
        let at = rows.upper_bound(&self.store, new.sort);
        let (at, entry) = self.insert(rows, at, new);
        keys.put(new.i, entry);
        if !self.with_rank {
            self.emit(RowKind::UpdateBefore, old_place, 1);
            self.emit(RowKind::UpdateAfter, self.place_of_input(new.i), 1);
            return;
        }
        let new_rank = rows.rows_before(at) as u64 + 1;
        if new_rank <= old_rank {
            self.move_up(rows, at, (new_rank, old_rank), old_place, end);
        } else {
            self.move_down(rows, (old_rank, new_rank), old_place, end);
        }
    }

    /// The row at `at` came from a later rank, and those between moved down by one.
    fn move_up(
        &mut self,
        rows: &SortedRows,
        at: Position,
        (new_rank, old_rank): (u64, u64),
        old_place: Place,
        end: u64,
    ) {
        let mut entries = rows.iter_from(at);
        let Some(mut current) = entries.next() else {
            return;
        };
        for rank in new_rank..old_rank {
            let Some(next) = entries.next() else { return };
            self.emit_in_range(RowKind::UpdateBefore, next, rank, end);
            if rank == new_rank {
                self.emit(RowKind::UpdateBefore, old_place, old_rank);
            }
            self.emit_in_range(RowKind::UpdateAfter, current, rank, end);
            current = next;
        }
        if new_rank == old_rank {
            self.emit(RowKind::UpdateBefore, old_place, old_rank);
        }
        self.emit_in_range(RowKind::UpdateAfter, current, old_rank, end);
    }

    /// A row went to a later rank against its promise, and those between moved up by one.
    fn move_down(
        &mut self,
        rows: &SortedRows,
        (old_rank, new_rank): (u64, u64),
        old_place: Place,
        end: u64,
    ) {
        self.emit(RowKind::UpdateBefore, old_place, old_rank);
        let from = usize::try_from(old_rank - 1).unwrap_or(usize::MAX);
        for (entry, rank) in rows.iter().skip(from).zip(old_rank..=new_rank) {
            if rank < new_rank {
                self.emit_in_range(RowKind::UpdateBefore, entry, rank + 1, end);
            }
            self.emit_in_range(RowKind::UpdateAfter, entry, rank, end);
        }
    }

    /// A row of any input is added.
    pub(super) fn add(&mut self, rows: &mut SortedRows, new: &NewRow<'_>, end: u64) {
        let at = rows.upper_bound(&self.store, new.sort);
        let (at, _) = self.insert(rows, at, new);
        if self.with_rank {
            self.shift_down(rows, at, end);
            return;
        }
        if rows.rows_before(at) as u64 >= end {
            return;
        }
        if let Some(left) = nth(rows, end) {
            let left = self.place(left);
            self.emit(RowKind::Delete, left, 1);
        }
        self.emit(RowKind::Insert, self.place_of_input(new.i), 1);
    }

    /// A row of any input is withdrawn. Says whether it was there.
    pub(super) fn withdraw(&mut self, rows: &mut SortedRows, gone: &NewRow<'_>, end: u64) -> bool {
        let store = &self.store;
        let Some(at) = rows.find(store, gone.sort, |entry| entry.row(store) == gone.row) else {
            return false;
        };
        let rank = rows.rows_before(at) as u64 + 1;
        let entry = rows.remove(at);
        if rank <= end {
            if self.with_rank {
                self.shift_up(rows, entry, rank, end);
            } else {
                let place = self.place(entry);
                self.emit(RowKind::Delete, place, 1);
                if let Some(next) = nth(rows, end - 1) {
                    let next = self.place(next);
                    self.emit(RowKind::Insert, next, 1);
                }
            }
        }
        self.remove(entry);
        true
    }

    /// The row at `at` is new: it and all behind it take the ranks from there on.
    fn shift_down(&mut self, rows: &SortedRows, at: Position, end: u64) {
        let first = rows.rows_before(at) as u64 + 1;
        if first > end {
            return;
        }
        let mut entries = rows.iter_from(at);
        let Some(mut current) = entries.next() else {
            return;
        };
        let mut rank = first;
        for previous in entries {
            if rank > end {
                return;
            }
            self.emit_in_range(RowKind::UpdateBefore, previous, rank, end);
            self.emit_in_range(RowKind::UpdateAfter, current, rank, end);
            current = previous;
            rank += 1;
        }
        self.emit_in_range(RowKind::Insert, current, rank, end);
    }

    /// The row `gone` had `rank`: all behind it take the ranks from there on.
    fn shift_up(&mut self, rows: &SortedRows, gone: Entry, rank: u64, end: u64) {
        let mut previous = gone;
        let mut rank = rank;
        let from = usize::try_from(rank - 1).unwrap_or(usize::MAX);
        for entry in rows.iter().skip(from) {
            if rank > end {
                return;
            }
            self.emit_in_range(RowKind::UpdateBefore, previous, rank, end);
            self.emit_in_range(RowKind::UpdateAfter, entry, rank, end);
            previous = entry;
            rank += 1;
        }
        self.emit_in_range(RowKind::Delete, previous, rank, end);
    }

    fn emit_in_range(&mut self, kind: RowKind, entry: Entry, rank: u64, end: u64) {
        if rank >= self.rank_start && rank <= end {
            let place = self.place(entry);
            self.emit(kind, place, rank);
        }
    }

    fn emit(&mut self, kind: RowKind, place: Place, rank: u64) {
        if kind == RowKind::UpdateBefore && !self.generate_update_before
            || self.with_rank && rank < self.rank_start
        {
            return;
        }
        self.changes.push(kind, place);
        self.changes.rank(i64::try_from(rank).unwrap_or(i64::MAX));
    }

    /// Stores row `new` at `at`. Returns where it stands.
    pub(super) fn insert(
        &mut self,
        rows: &mut SortedRows,
        at: Position,
        new: &NewRow<'_>,
    ) -> (Position, Entry) {
        self.scratch.clear();
        self.scratch.extend_from_slice(new.sort);
        self.scratch.extend_from_slice(new.row);
        let entry = Entry::new(self.store.insert(&self.scratch), new.sort);
        self.set_place(entry.id, self.place_of_input(new.i));
        (rows.insert(at, entry), entry)
    }

    /// Frees the bytes of a row that has left its partition.
    pub(super) fn remove(&mut self, entry: Entry) {
        self.store.remove(entry.id);
        if let Some(place) = self.places.get_mut(entry.id.0 as usize) {
            *place = None;
        }
    }

    fn place_of_input(&self, i: usize) -> Place {
        Place::Input(u32::try_from(i).expect("a batch has fewer than 2^32 rows"))
    }

    fn set_place(&mut self, id: RowId, place: Place) {
        let index = id.0 as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        self.places[index] = Some(place);
        self.placed.push(id);
    }

    /// Where a row of state is taken from for the output; its bytes are copied once a batch.
    fn place(&mut self, entry: Entry) -> Place {
        if let Some(Some(place)) = self.places.get(entry.id.0 as usize) {
            return *place;
        }
        let place = self.changes.keep(entry.row(&self.store));
        self.set_place(entry.id, place);
        place
    }

    /// The rows handed over for the output are gone, the batch is still at hand.
    pub(super) fn forget_stored(&mut self) {
        let places = &mut self.places;
        self.placed.retain(|id| {
            let place = &mut places[id.0 as usize];
            *place = place.filter(|p| matches!(p, Place::Input(_)));
            place.is_some()
        });
    }

    /// The batch is over.
    pub(super) fn forget_all(&mut self) {
        for id in self.placed.drain(..) {
            self.places[id.0 as usize] = None;
        }
    }
}

fn nth(rows: &SortedRows, before: u64) -> Option<Entry> {
    rows.nth(usize::try_from(before).unwrap_or(usize::MAX))
}
