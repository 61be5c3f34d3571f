//! The partitions, their rows and what waits, as tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::TimedOver;
use crate::error::Result;
use crate::operators::last_rows::{SNAPSHOT_ROWS, leading_numbers};
use crate::operators::row_copy::RowCopy;
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::Changed;
use crate::state::rows::{RowId, check_columns};
use crate::state::snapshot::{LazyBatch, OperatorSnapshot, RestoreState};

/// The key, up to when rows are late, whether aggregates hold anything, when it was written; the
/// aggregates.
const PARTITIONS: &str = "partitions";
/// The key, the time, the row.
const FRAMES: &str = "frames";
/// The key, the time, the place among the rows of this time, the row.
const WAITING: &str = "waiting";
/// The key and a time at which to look whether it can be forgotten.
const CLEANUPS: &str = "cleanups";
/// The key, and the values that `LAG` reads.
const HISTORY: &str = "history";

impl TimedOver {
    /// Copies the partitions of `slots`, which are in rising order.
    pub(super) fn copy(&self, slots: &[u32]) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.watermark),
            ..OperatorSnapshot::default()
        };
        for slots in slots.chunks(SNAPSHOT_ROWS) {
            self.copy_partitions(slots, &mut snapshot)?;
        }
        let keys = (&self.table, &self.encoder);
        let mut frames = RowCopy::new(FRAMES, keys, &self.codec);
        for slot in slots {
            for (time, id) in &self.partitions[*slot as usize].frame {
                let row = self.store.get(*id);
                frames.push(*slot, [Some(*time)], row, &mut snapshot);
            }
        }
        frames.finish(&mut snapshot);
        // Few rows wait, and most of them have just come: it does no harm to look at all.
        let mut waiting = RowCopy::new(WAITING, keys, &self.codec);
        for (time, rows) in &self.waiting {
            for (place, (slot, id)) in rows.iter().enumerate() {
                if slots.binary_search(slot).is_ok() {
                    let numbers = [Some(*time), i64::try_from(place).ok()];
                    waiting.push(*slot, numbers, self.store.get(*id), &mut snapshot);
                }
            }
        }
        waiting.finish(&mut snapshot);
        Ok(snapshot)
    }

    fn copy_partitions(&self, slots: &[u32], snapshot: &mut OperatorSnapshot) -> Result<()> {
        let partitions = || slots.iter().map(|slot| &self.partitions[*slot as usize]);
        let done = Int64Array::from_iter_values(partitions().map(|p| p.done));
        let used = Int64Array::from_iter_values(partitions().map(|p| i64::from(p.used)));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(done), Arc::new(used)];
        columns.push(self.expiry.save(slots));
        columns.extend(self.set.save(slots)?);
        snapshot.add_lazy(
            PARTITIONS,
            self.encoder.columns(),
            self.rows(slots, columns),
        );

        let of_slot = |slot: &u32| {
            let cleanups = self.partitions[*slot as usize].cleanups.iter();
            cleanups.map(|time| (*slot, *time)).collect::<Vec<_>>()
        };
        let (owners, times): (Vec<u32>, Vec<i64>) = slots.iter().flat_map(of_slot).unzip();
        if !owners.is_empty() {
            let columns = vec![Arc::new(Int64Array::from(times)) as ArrayRef];
            snapshot.add_lazy(
                CLEANUPS,
                self.encoder.columns(),
                self.rows(&owners, columns),
            );
        }

        let (owners, columns) = self.lags.save(slots)?;
        if !owners.is_empty() {
            snapshot.add_lazy(HISTORY, self.encoder.columns(), self.rows(&owners, columns));
        }
        Ok(())
    }

    /// Rows of partitions, with `columns` beside the key.
    fn rows(&self, slots: &[u32], columns: Vec<ArrayRef>) -> LazyBatch {
        let columns = columns.into_iter().enumerate();
        let columns = columns.map(|(i, column)| (format!("c{i}"), column));
        let keys = self.table.copy_keys(slots);
        keyed_rows(&self.encoder, keys, columns.collect())
    }

    /// Makes the tables of `snapshot` such of changes.
    pub(super) fn mark(&self, changed: &Changed, snapshot: &mut OperatorSnapshot) {
        let (table, encoder) = (&self.table, &self.encoder);
        let partition = |slot: u32| &self.partitions[slot as usize];
        changed.mark(snapshot, PARTITIONS, table, encoder, |_| false);
        changed.mark(snapshot, FRAMES, table, encoder, |slot| {
            partition(slot).frame.is_empty()
        });
        changed.mark(snapshot, WAITING, table, encoder, |slot| {
            partition(slot).waiting == 0
        });
        changed.mark(snapshot, CLEANUPS, table, encoder, |slot| {
            partition(slot).cleanups.is_empty()
        });
        changed.mark(snapshot, HISTORY, table, encoder, |slot| {
            !self.lags.has_rows(slot)
        });
    }

    /// Takes up a copy.
    pub(super) fn take_up(&mut self, state: &RestoreState) -> Result<()> {
        self.watermark = state.watermark.unwrap_or(i64::MIN);
        let key_count = self.partition_by.len();
        for batch in state.batches(PARTITIONS) {
            let (keys, rest) = batch.columns().split_at(key_count);
            let ([done, used, written], saved) = leading_numbers::<3>(rest)?;
            self.intern(keys, batch.num_rows())?;
            for (i, key) in self.slots.iter().enumerate() {
                let partition = &mut self.partitions[*key as usize];
                partition.done = done.value(i);
                partition.used = used.value(i) == 1;
            }
            self.expiry.load(&self.slots, written);
            self.set.load(&self.slots, saved)?;
        }
        for batch in state.batches(FRAMES) {
            let (keys, rest) = batch.columns().split_at(key_count);
            let ([times], rows) = leading_numbers::<1>(rest)?;
            let ids = self.take_up_rows(keys, rows, batch.num_rows())?;
            for (i, id) in ids.into_iter().enumerate() {
                let partition = &mut self.partitions[self.slots[i] as usize];
                partition.frame.push_back((times.value(i), id));
            }
        }
        let mut waiting: BTreeMap<i64, Vec<(i64, u32, RowId)>> = BTreeMap::new();
        for batch in state.batches(WAITING) {
            let (keys, rest) = batch.columns().split_at(key_count);
            let ([times, places], rows) = leading_numbers::<2>(rest)?;
            let ids = self.take_up_rows(keys, rows, batch.num_rows())?;
            for (i, id) in ids.into_iter().enumerate() {
                let key = self.slots[i];
                self.partitions[key as usize].waiting += 1;
                let of_time = waiting.entry(times.value(i)).or_default();
                of_time.push((places.value(i), key, id));
            }
        }
        for (time, mut rows) in waiting {
            rows.sort_by_key(|(place, ..)| *place);
            let rows = rows.into_iter().map(|(_, key, id)| (key, id));
            self.waiting.insert(time, rows.collect());
        }
        for batch in state.batches(CLEANUPS) {
            let (keys, rest) = batch.columns().split_at(key_count);
            let ([times], _) = leading_numbers::<1>(rest)?;
            self.intern(keys, batch.num_rows())?;
            for (i, key) in self.slots.iter().enumerate() {
                let time = times.value(i);
                self.partitions[*key as usize].cleanups.push_back(time);
                self.cleanups.insert((time, *key));
            }
        }
        for batch in state.batches(HISTORY) {
            let (keys, rows) = batch.columns().split_at(key_count);
            self.intern(keys, batch.num_rows())?;
            self.lags.load(&self.slots, rows)?;
        }
        Ok(())
    }

    /// Stores rows, whose partitions are then in `slots`.
    fn take_up_rows(
        &mut self,
        keys: &[ArrayRef],
        rows: &[ArrayRef],
        len: usize,
    ) -> Result<Vec<RowId>> {
        check_columns(rows, &self.types)?;
        self.intern(keys, len)?;
        self.codec.encode(rows, len, &mut self.encoded)?;
        let store = &mut self.store;
        let ids = (0..len).map(|i| store.insert(self.encoded.bytes(i)));
        Ok(ids.collect())
    }
}
