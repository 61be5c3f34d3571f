//! Mini-batch: rows are gathered into bundles, and a group is answered once a bundle.
//!
//! State is updated at once, exactly as without mini-batch. What a bundle remembers is the result row
//! that every group had before the bundle's first row for it; at the end it is compared with the
//! result row then, so that the answer is the fold of what would have been emitted row by row.
//!
//! A bundle ends after a number of rows, whatever the physical batches are. With two phases, rows are
//! first held back: `size` rows are the local bundle, and its groups are the records of which `size`
//! make the bundle. Groups come in the order of Flink's `HashMap` of binary rows.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::{concat, interleave, take};

use super::changes::mark_changes;
use super::emit::emit;
use super::groups::Groups;
use super::{GroupAggregate, MiniBatch};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::runtime::output::Output;
use crate::state::binary_row::{self, BinaryRowCodec, BinaryRows};
use crate::state::java_map::Buckets;
use crate::state::keys::grow;
use crate::types::DataType;

/// The bundle that a [`GroupAggregate`] is gathering.
#[derive(Debug)]
pub(super) struct Bundle {
    mini_batch: MiniBatch,
    /// Rows in the bundle; with two phases records.
    len: usize,
    /// When the rows have waited long enough.
    deadline: Option<i64>,
    touched: Touched,
    order: MapOrder,
    /// Rows of the local bundle.
    local: Vec<ChangeBatch>,
    local_len: usize,
    local_order: MapOrder,
}

/// The groups of a bundle, in the order of their first row.
#[derive(Debug, Default)]
struct Touched {
    slots: Vec<u32>,
    /// Whether the group was there before.
    was_live: Vec<bool>,
    /// Result rows before, in pieces.
    before: Vec<Vec<ArrayRef>>,
    /// By slot: the bundle that touched it last.
    stamps: Vec<u64>,
    bundle: u64,
}

impl Touched {
    fn contains(&self, slot: u32) -> bool {
        let stamp = self.stamps.get(slot as usize);
        stamp.is_some_and(|stamp| *stamp == self.bundle)
    }

    /// Takes note of groups, before anything is done to them.
    fn add(&mut self, groups: &Groups, slots: impl Iterator<Item = u32>) -> Result<()> {
        if groups.rows.len() > self.stamps.len() {
            grow(&mut self.stamps, groups.rows.len(), 0);
        }
        let known = self.slots.len();
        for slot in slots {
            let stamp = &mut self.stamps[slot as usize];
            if *stamp != self.bundle {
                *stamp = self.bundle;
                self.slots.push(slot);
                self.was_live.push(groups.rows[slot as usize] > 0);
            }
        }
        if self.slots.len() > known {
            self.before.push(groups.set.values(&self.slots[known..])?);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.was_live.clear();
        self.before.clear();
        self.bundle += 1;
    }
}

impl Bundle {
    pub(super) fn new(mini_batch: MiniBatch, key_types: &[DataType]) -> Self {
        Self {
            mini_batch: MiniBatch {
                size: mini_batch.size.max(1),
                latency_ms: mini_batch.latency_ms.max(1),
                ..mini_batch
            },
            len: 0,
            deadline: None,
            touched: Touched {
                bundle: 1,
                ..Touched::default()
            },
            order: MapOrder::new(key_types),
            local: Vec::new(),
            local_len: 0,
            local_order: MapOrder::new(key_types),
        }
    }

    /// When the bundle is to be flushed.
    pub(super) fn deadline(&self) -> Option<i64> {
        self.deadline
    }

    /// Whether the bundle has a group.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.touched.contains(slot)
    }

    /// Takes a batch; answers every bundle that it fills.
    pub(super) fn add(
        &mut self,
        operator: &mut GroupAggregate,
        batch: &ChangeBatch,
        now: i64,
        out: &mut Output<'_>,
    ) -> Result<()> {
        if self.deadline.is_none() {
            // As Flink's MiniBatchAssigner: at multiples of the latency.
            let latency = self.mini_batch.latency_ms;
            self.deadline = Some(
                now.div_euclid(latency)
                    .saturating_add(1)
                    .saturating_mul(latency),
            );
        }
        let MiniBatch {
            size, two_phase, ..
        } = self.mini_batch;
        let mut start = 0;
        while start < batch.len() {
            let filled = if two_phase { self.local_len } else { self.len };
            let n = (batch.len() - start).min(size - filled);
            let part = if n == batch.len() {
                batch.clone()
            } else {
                batch.slice(start, n)
            };
            start += n;
            if two_phase {
                self.local.push(part);
                self.local_len += n;
                if self.local_len == size {
                    self.end_local(operator, now, out)?;
                }
            } else {
                operator.locate(&part)?;
                operator.groups.expire(now);
                let rows = &operator.groups.rows;
                let kinds = operator.groups.slots.iter().zip(part.kinds());
                // Not what will be dropped.
                let slots = kinds
                    .filter(|(slot, kind)| kind.is_add() || rows[**slot as usize] > 0)
                    .map(|(slot, _)| *slot);
                self.touched.add(&operator.groups, slots)?;
                self.absorb(operator, &part, now)?;
                self.len += n;
                if self.len == size {
                    self.end(operator, |_| false, out)?;
                }
            }
        }
        Ok(())
    }

    /// Answers what is held back.
    pub(super) fn flush(
        &mut self,
        operator: &mut GroupAggregate,
        now: i64,
        out: &mut Output<'_>,
    ) -> Result<()> {
        self.deadline = None;
        self.end_local(operator, now, out)?;
        self.end(operator, |_| false, out)
    }

    /// Applies located rows, whose groups have been touched, to the state.
    fn absorb(
        &mut self,
        operator: &mut GroupAggregate,
        batch: &ChangeBatch,
        now: i64,
    ) -> Result<()> {
        operator.step(batch);
        operator
            .groups
            .update(batch, &operator.weights, &operator.ends)?;
        operator.release(now, |slot| self.touched.contains(slot));
        Ok(())
    }

    /// Hands the groups of the local bundle to the bundle, one after the other.
    fn end_local(
        &mut self,
        operator: &mut GroupAggregate,
        now: i64,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let batches = std::mem::take(&mut self.local);
        self.local_len = 0;
        // The place of each slot in the local map, from 1; 0 for those that are not in it.
        let mut places: Vec<u32> = Vec::new();
        let mut slots: Vec<u32> = Vec::new();
        let mut located = Vec::with_capacity(batches.len());
        for batch in batches {
            operator.locate(&batch)?;
            operator.groups.expire(now);
            places.resize(operator.groups.rows.len(), 0);
            for slot in &operator.groups.slots {
                if places[*slot as usize] == 0 {
                    places[*slot as usize] = u32::MAX;
                    slots.push(*slot);
                }
            }
            located.push((batch, operator.groups.slots.clone()));
        }
        let keys = operator.groups.key_columns(&slots)?;
        let order = self.local_order.sort(&keys, slots.len())?;
        let slots: Vec<u32> = order.iter().map(|i| slots[*i as usize]).collect();
        for (place, slot) in (1..).zip(&slots) {
            places[*slot as usize] = place;
        }
        let mut first = 0;
        while first < slots.len() {
            let n = (slots.len() - first).min(self.mini_batch.size - self.len);
            let next = &slots[first..first + n];
            self.touched.add(&operator.groups, next.iter().copied())?;
            for (batch, batch_slots) in &located {
                if n == slots.len() {
                    operator.groups.slots.clone_from(batch_slots);
                    self.absorb(operator, batch, now)?;
                    continue;
                }
                let in_part =
                    |slot: u32| (first..first + n).contains(&(places[slot as usize] as usize - 1));
                let rows: Vec<u32> = (0..)
                    .zip(batch_slots)
                    .filter(|(_, slot)| in_part(**slot))
                    .map(|(row, _)| row)
                    .collect();
                operator.groups.slots.clear();
                let of_rows = rows.iter().map(|row| batch_slots[*row as usize]);
                operator.groups.slots.extend(of_rows);
                let part = batch.take(&UInt32Array::from(rows))?;
                self.absorb(operator, &part, now)?;
            }
            first += n;
            self.len += n;
            if self.len == self.mini_batch.size {
                // What is located already for the next bundle stays where it is.
                let place = |slot: u32| places[slot as usize] as usize;
                self.end(operator, |slot| place(slot) > first, out)?;
            }
        }
        Ok(())
    }

    /// Answers the groups of the bundle and begins the next. Forgets those that are gone, but for
    /// those to `keep`.
    fn end(
        &mut self,
        operator: &mut GroupAggregate,
        keep: impl Fn(u32) -> bool,
        out: &mut Output<'_>,
    ) -> Result<()> {
        self.len = 0;
        let touched = &self.touched;
        let len = touched.slots.len();
        if len == 0 {
            return Ok(());
        }
        let groups = &mut operator.groups;
        let keys = groups.key_columns(&touched.slots)?;
        let order = self.order.sort(&keys, len)?;
        let after = groups.set.values(&touched.slots)?;
        let mut before = Vec::with_capacity(after.len());
        let mut changed = vec![groups.ttl.is_some(); len];
        for (i, after) in after.iter().enumerate() {
            let pieces: Vec<_> = touched.before.iter().map(|b| b[i].as_ref()).collect();
            let column = concat(&pieces)?;
            mark_changes(&column, after, &mut changed);
            before.push(column);
        }
        let mut kinds = Vec::with_capacity(len * 2);
        // Of each result row: its group, and whether it is the one after.
        let mut picks = Vec::with_capacity(len * 2);
        for i in order {
            let index = i as usize;
            let is_live = groups.rows[touched.slots[index] as usize] > 0;
            let mut pick = |kind, is_after| {
                kinds.push(kind);
                picks.push((is_after, i));
            };
            match (touched.was_live[index], is_live) {
                (false, true) => pick(RowKind::Insert, true),
                (true, false) => pick(RowKind::Delete, false),
                (true, true) if changed[index] => {
                    if operator.emit_update_before {
                        pick(RowKind::UpdateBefore, false);
                    }
                    pick(RowKind::UpdateAfter, true);
                }
                _ => {}
            }
        }
        for slot in touched.slots.iter().filter(|slot| !keep(**slot)) {
            groups.remove_if_empty(*slot);
        }
        self.touched.clear();
        if kinds.is_empty() {
            return Ok(());
        }
        let of_groups = UInt32Array::from_iter_values(picks.iter().map(|(_, i)| *i));
        let of_values: Vec<_> = picks
            .iter()
            .map(|(is_after, i)| (usize::from(*is_after), *i as usize))
            .collect();
        let keys = keys.iter().map(|key| take(key, &of_groups, None));
        let values = before
            .iter()
            .zip(&after)
            .map(|(before, after)| interleave(&[before.as_ref(), after.as_ref()], &of_values));
        let columns = keys.chain(values).collect::<Result<_, _>>()?;
        emit(
            &operator.output,
            columns,
            kinds,
            operator.context.batch_size,
            out,
        )
    }
}

/// The order in which a Java `HashMap` that is filled and cleared again and again walks over keys.
#[derive(Debug)]
struct MapOrder {
    codec: BinaryRowCodec,
    rows: BinaryRows,
    buckets: Buckets,
}

impl MapOrder {
    fn new(key_types: &[DataType]) -> Self {
        Self {
            codec: BinaryRowCodec::new(key_types),
            rows: BinaryRows::default(),
            buckets: Buckets::default(),
        }
    }

    /// The positions of keys, which come in the order in which they were put, in map order.
    fn sort(&mut self, keys: &[ArrayRef], len: usize) -> Result<Vec<u32>> {
        self.buckets.grow(len);
        self.codec.encode(keys, len, &mut self.rows)?;
        let places: Vec<u32> = (0..len)
            .map(|i| self.buckets.of(binary_row::hash(self.rows.get(i))))
            .collect();
        if len < self.buckets.count() as usize / 16 {
            let mut order: Vec<u32> = (0..).take(len).collect();
            order.sort_by_key(|position| places[*position as usize]);
            return Ok(order);
        }
        // Sorted by counting: where each bucket's keys begin, then every key to its place.
        let mut next = vec![0_u32; self.buckets.count() as usize + 1];
        for place in &places {
            next[*place as usize + 1] += 1;
        }
        for i in 1..next.len() {
            next[i] += next[i - 1];
        }
        let mut order = vec![0; len];
        for (position, place) in (0..).zip(places) {
            let to = &mut next[place as usize];
            order[*to as usize] = position;
            *to += 1;
        }
        Ok(order)
    }
}
