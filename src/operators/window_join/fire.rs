//! A window is over: its rows are joined.

use super::{WindowJoin, WindowRows};
use crate::changelog::RowKind;
use crate::error::Result;
use crate::operators::join::JoinType;
use crate::operators::join::changes::{NONE, gather_column};
use crate::operators::join::condition::LEFT;
use crate::runtime::output::Output;
use crate::state::rows::RowId;

/// Pairs that are put to the condition at once.
const PAIRS: usize = 8192;

/// What is about to be emitted.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Pairs of a window: a row of the driving side and one of the other.
    drivers: Vec<u32>,
    others: Vec<u32>,
    /// Rows, by port, to be freed once nothing refers to them.
    gone: [Vec<u32>; 2],
}

impl WindowJoin {
    /// Joins the rows of a window and key.
    pub(super) fn fire(
        &mut self,
        slot: u32,
        window: WindowRows,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let join_type = self.spec.join_type;
        let WindowRows { sides, .. } = window;
        // A right join goes through the right rows, all others through the left.
        let driver = usize::from(join_type == JoinType::Right);
        let unmatchable = self.states[slot as usize].unmatchable;
        let others: &[u32] = match unmatchable {
            true => &[],
            false => &sides[1 - driver],
        };
        let mut seen = vec![false; sides[1 - driver].len()];
        let per_chunk = (PAIRS / others.len().max(1)).max(1);
        for drivers in sides[driver].chunks(per_chunk) {
            self.meet(drivers, others, driver, &mut seen, out)?;
        }
        if join_type == JoinType::Full {
            for (id, _) in sides[1].iter().zip(&seen).filter(|(_, seen)| !**seen) {
                self.changes.push(RowKind::Insert, NONE, *id);
            }
        }
        for (gone, rows) in self.pending.gone.iter_mut().zip(&sides) {
            gone.extend_from_slice(rows);
        }
        if self.changes.len() >= self.context.batch_size {
            self.emit(out)?;
        }
        Ok(())
    }

    /// Each of `drivers` meets each of `others`; notes which of these were part of a pair. There is
    /// only one driver if there are more than [`PAIRS`] others.
    fn meet(
        &mut self,
        drivers: &[u32],
        others: &[u32],
        driver: usize,
        seen: &mut [bool],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut matched = vec![false; drivers.len()];
        let parts = others.len().div_ceil(PAIRS).max(1);
        for part in 0..parts {
            let from = part * PAIRS;
            let others = &others[from..others.len().min(from + PAIRS)];
            let holds = self.matching(drivers, others, driver)?;
            let mut pair = 0;
            for (row, matched) in drivers.iter().zip(&mut matched) {
                for (other, seen) in others.iter().zip(&mut seen[from..]) {
                    if holds.as_ref().is_none_or(|h| h.value(pair)) {
                        (*matched, *seen) = (true, true);
                        if !self.spec.join_type.is_left_only() {
                            self.push(driver, *row, *other);
                        }
                    }
                    pair += 1;
                }
                if part == parts - 1 && self.shows_alone(driver, *matched) {
                    self.push(driver, *row, NONE);
                }
                if self.changes.len() >= self.context.batch_size {
                    self.emit_changes(out)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a row of the driving side comes out without a row of the other.
    fn shows_alone(&self, driver: usize, matched: bool) -> bool {
        let join_type = self.spec.join_type;
        match join_type {
            JoinType::Semi => matched,
            JoinType::Anti => !matched,
            _ if driver == LEFT => join_type.is_left_outer() && !matched,
            _ => join_type.is_right_outer() && !matched,
        }
    }

    fn push(&mut self, driver: usize, row: u32, other: u32) {
        let (left, right) = if driver == LEFT {
            (row, other)
        } else {
            (other, row)
        };
        self.changes.push(RowKind::Insert, left, right);
    }

    /// Which pairs fulfil the condition, driver by driver; all, if there is none.
    fn matching(
        &mut self,
        drivers: &[u32],
        others: &[u32],
        driver: usize,
    ) -> Result<Option<arrow::array::BooleanArray>> {
        let Some(condition) = self.condition.as_ref().filter(|_| !others.is_empty()) else {
            return Ok(None);
        };
        let pending = &mut self.pending;
        pending.drivers.clear();
        pending.others.clear();
        for row in drivers {
            pending.others.extend_from_slice(others);
            pending.drivers.resize(pending.others.len(), *row);
        }
        let context = self.context.eval(pending.others.len(), self.watermark);
        let sides = &self.sides;
        let holds = condition.evaluate(&context, |port, column| {
            let ids = match port == driver {
                true => &pending.drivers,
                false => &pending.others,
            };
            gather_column(sides[port].stored(), ids, column)
        })?;
        Ok(Some(holds))
    }

    fn emit_changes(&mut self, out: &mut Output<'_>) -> Result<()> {
        if self.changes.len() == 0 {
            return Ok(());
        }
        let [left, right] = &self.sides;
        let right = (!self.spec.join_type.is_left_only()).then(|| right.stored());
        let left = Some(left.stored());
        out.emit(self.changes.take(left, right, true, &self.schema)?)
    }

    /// Emits what is due and frees the rows that are gone.
    pub(super) fn emit(&mut self, out: &mut Output<'_>) -> Result<()> {
        self.emit_changes(out)?;
        for (side, gone) in self.sides.iter_mut().zip(&mut self.pending.gone) {
            for id in gone.drain(..) {
                side.rows.remove(RowId(id));
            }
        }
        Ok(())
    }
}
