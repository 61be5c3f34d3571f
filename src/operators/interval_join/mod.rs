//! The interval join: rows of two append-only inputs whose times lie within bounds of each other. In
//! event time both sides are pruned by the watermark, in processing time by the clock.
//!
//! Follows Flink's `TimeIntervalJoin`: a row first meets what is cached of the other side, then is
//! cached until no row of the other side can match it any more. A row of an outer side that was part
//! of no result comes out, padded with NULLs, when it is removed from the cache: by a timer of its
//! key, or earlier when a row of the other side walks by. Late rows are not dropped; they meet what is
//! still there.

mod cache;
mod probe;
mod snapshot;
#[cfg(test)]
pub(super) mod tests;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;

use self::cache::{Cache, NO_TIMER};
use self::probe::Probe;
use super::join::JoinType;
use super::join::changes::{Changes, NONE};
use super::join::condition::JoinCondition;
use super::join::keys::JoinKeys;
use super::join::timers::{Timer, Timers};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::runtime::output::Output;
use crate::state::binary_row::BinaryRows;
use crate::state::rows::RowId;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// One input of an interval join.
#[derive(Debug, Clone)]
pub struct IntervalJoinInput {
    /// Its columns.
    pub schema: Schema,
    /// Its columns of the join key, in the order of the other side's.
    pub keys: Vec<usize>,
    /// Its event-time column; not used in processing time.
    pub time: usize,
}

/// An interval join.
#[derive(Debug, Clone)]
pub struct IntervalJoinSpec {
    /// Inner or outer.
    pub join_type: JoinType,
    /// Port 0.
    pub left: IntervalJoinInput,
    /// Port 1.
    pub right: IntervalJoinInput,
    /// By key column: whether NULL matches NULL.
    pub null_safe: Vec<bool>,
    /// Whether time is event time; else processing time.
    pub event_time: bool,
    /// The least that the left time may be ahead of the right time, ms.
    pub lower: i64,
    /// The most that the left time may be ahead of the right time, ms.
    pub upper: i64,
    /// `table.exec.interval-join.min-cleanup-interval`, ms.
    pub min_cleanup_ms: i64,
    /// What else must hold of a pair, over the columns of left, then right.
    pub condition: Option<Expr>,
    /// Columns of the result: left, then right.
    pub output: Schema,
}

/// One side at work.
#[derive(Debug)]
struct Side {
    cache: Cache,
    /// How long after its time a row may match rows of the other side.
    reach: i64,
    /// Rows up to this time are gone from the cache of every key that was looked at.
    expiration: i64,
    outer: bool,
}

/// The operator. Port 0 is the left input.
#[derive(Debug)]
pub struct IntervalJoin {
    spec: IntervalJoinSpec,
    context: OperatorContext,
    condition: Option<JoinCondition>,
    schema: SchemaRef,
    keys: JoinKeys,
    sides: [Side; 2],
    timers: Timers,
    watermark: i64,
    // Buffers.
    rows: BinaryRows,
    changes: Changes,
    /// Rows that are gone from the caches, by port, to be freed once nothing refers to them.
    gone: [Vec<u32>; 2],
    emptied: Vec<u32>,
}

impl IntervalJoin {
    /// An operator without state.
    ///
    /// # Errors
    /// When the condition cannot be compiled or the sides' keys do not fit each other.
    pub fn new(spec: IntervalJoinSpec, context: &OperatorContext) -> Result<Self> {
        if spec.join_type.is_left_only() {
            return Err(Error::internal("an interval join is inner or outer"));
        }
        let keys = JoinKeys::new(
            (&spec.left.schema, &spec.left.keys),
            (&spec.right.schema, &spec.right.keys),
            &spec.null_safe,
        )?;
        let condition = spec
            .condition
            .as_ref()
            .map(|condition| {
                let (left, right) = (&spec.left.schema, &spec.right.schema);
                JoinCondition::new(condition, left, right, &context.environment)
            })
            .transpose()?;
        let side = |input: &IntervalJoinInput, reach, outer| Side {
            cache: Cache::new(&input.schema),
            reach,
            expiration: i64::MIN,
            outer,
        };
        Ok(Self {
            condition,
            schema: spec.output.to_arrow(),
            keys,
            sides: [
                side(&spec.left, -spec.lower, spec.join_type.is_left_outer()),
                side(&spec.right, spec.upper, spec.join_type.is_right_outer()),
            ],
            timers: Timers::default(),
            watermark: i64::MIN,
            rows: BinaryRows::default(),
            changes: Changes::default(),
            gone: Default::default(),
            emptied: Vec::new(),
            context: context.clone(),
            spec,
        })
    }

    fn input(&self, port: usize) -> &IntervalJoinInput {
        match port {
            0 => &self.spec.left,
            _ => &self.spec.right,
        }
    }

    /// Finds the slots of the rows' join keys, and the rows whose key equals nothing.
    fn intern(&mut self, port: usize, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let unmatchable = self.keys.intern(port, batch)?;
        self.reserve_slots();
        Ok(unmatchable)
    }

    fn reserve_slots(&mut self) {
        for side in &mut self.sides {
            side.cache.reserve_slots(self.keys.table.slot_bound());
        }
    }

    /// Removes rows that have expired by `now`, the watermark or the clock.
    fn expire(&mut self, now: i64, out: &mut Output<'_>) -> Result<()> {
        while let Some(timer) = self.timers.pop_until(now) {
            let Timer {
                time,
                slot,
                tag: port,
                ..
            } = timer;
            let side = &mut self.sides[port];
            if side.cache.key(slot).timer != time {
                continue;
            }
            self.keys.table.touch(slot);
            side.expiration = expiration(now, side.reach);
            let (outer, gone) = (side.outer, &mut self.gone[port]);
            let from = gone.len();
            side.cache
                .visit(slot, i64::MAX, i64::MIN, side.expiration, |_, rows| {
                    gone.extend_from_slice(rows);
                });
            for id in gone[from..].iter().filter(|_| outer) {
                if !side.cache.matched[*id as usize] {
                    let (left, right) = if port == 0 { (*id, NONE) } else { (NONE, *id) };
                    self.changes.push(RowKind::Insert, left, right);
                }
            }
            let key = side.cache.key_mut(slot);
            match key.times.first().map(|entry| entry.time) {
                Some(earliest) => {
                    let time = cleanup_time(earliest, side.reach, self.spec.min_cleanup_ms);
                    key.set_timer(time, slot, port, &mut self.timers);
                }
                // A map that is cleared is a new one.
                None => *key = cache::KeyTimes::default(),
            }
            if self.sides.iter().all(|side| side.cache.is_vacant(slot)) {
                self.emptied.push(slot);
            }
            if self.changes.len() >= self.context.batch_size {
                self.emit_removed(out)?;
            }
        }
        self.emit_removed(out)?;
        self.release();
        Ok(())
    }

    fn emit_removed(&mut self, out: &mut Output<'_>) -> Result<()> {
        if self.changes.len() == 0 {
            return Ok(());
        }
        let [left, right] = &self.sides;
        let (left, right) = (left.cache.stored(), right.cache.stored());
        let batch = self
            .changes
            .take(Some(left), Some(right), true, &self.schema)?;
        out.emit(batch)
    }

    /// Frees rows and keys that nothing refers to.
    fn release(&mut self) {
        for (side, gone) in self.sides.iter_mut().zip(&mut self.gone) {
            for id in gone.drain(..) {
                side.cache.rows.remove(RowId(id));
            }
        }
        for slot in self.emptied.drain(..) {
            if self.sides.iter().all(|side| side.cache.is_vacant(slot)) {
                self.keys.release(slot);
            }
        }
    }
}

/// Rows up to the answer have met all that they could, if it is `now` for the other side.
fn expiration(now: i64, reach: i64) -> i64 {
    match now {
        i64::MAX => i64::MAX,
        now => now.saturating_sub(reach).saturating_sub(1),
    }
}

/// When a row of `time` is to be removed.
fn cleanup_time(time: i64, reach: i64, min_cleanup_ms: i64) -> i64 {
    time.saturating_add(reach)
        .saturating_add(min_cleanup_ms.max(0))
        .saturating_add(1)
}

impl Operator for IntervalJoin {
    fn process(&mut self, port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let unmatchable = self.intern(port, batch.rows())?;
        let (own, other) = self.sides.split_at_mut(1);
        let (own, other) = match port {
            0 => (&mut own[0], &mut other[0]),
            _ => (&mut other[0], &mut own[0]),
        };
        own.cache
            .codec
            .encode(batch.rows().columns(), batch.len(), &mut self.rows)?;
        let [left, right] = &mut self.gone;
        Probe {
            spec: &self.spec,
            port,
            own,
            other,
            batch: batch.rows(),
            encoded: &self.rows,
            slots: &self.keys.slots,
            unmatchable,
            condition: self.condition.as_ref(),
            context: &self.context,
            watermark: self.watermark,
            schema: &self.schema,
            changes: &mut self.changes,
            timers: &mut self.timers,
            gone: if port == 0 { right } else { left },
            emptied: &mut self.emptied,
        }
        .run(out)?;
        self.release();
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        if !self.spec.event_time {
            return out.watermark(watermark);
        }
        self.expire(watermark, out)?;
        // Results may carry the older of two times, and rows are held back.
        let delay = match self.spec.lower <= self.spec.upper {
            true => (-self.spec.lower).max(self.spec.upper),
            false => 0,
        };
        out.watermark(match watermark {
            i64::MAX => i64::MAX,
            watermark => watermark.saturating_sub(delay),
        })
    }

    fn next_timer(&self) -> Option<i64> {
        self.timers.first().filter(|_| !self.spec.event_time)
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        if self.spec.event_time {
            return Ok(());
        }
        self.expire(now_ms, out)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let slots = self.keys.table.copy_all();
        snapshot::save(self, &slots)
    }

    fn track_changes(&mut self) {
        if self.keys.len() > 0 {
            self.keys.table.track_changes();
        }
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.keys.table.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut snapshot = snapshot::save(self, &changed.slots)?;
        snapshot::mark(self, &changed, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        snapshot::restore(self, &state)
    }

    fn state_size(&self) -> StateSize {
        let [left, right] = &self.sides;
        StateSize {
            rows: left.cache.rows.len() + right.cache.rows.len(),
            bytes: left.cache.memory_size()
                + right.cache.memory_size()
                + self.keys.table.memory_size()
                + self.timers.memory_size(),
        }
    }
}

/// Whether a key's timer is set.
fn is_set(timer: i64) -> bool {
    timer != NO_TIMER
}
