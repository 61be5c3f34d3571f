//! The event-time temporal join: every left row meets the version of the right table that was valid
//! at the left row's time (`FOR SYSTEM_TIME AS OF`).
//!
//! Follows Flink's `TemporalRowTimeJoinOperator`: rows of both sides are kept until the watermark has
//! passed them. Then the left rows of a key come out in the order of their arrival, with the kinds
//! that they came with; of the versions the last one that is not after the watermark is kept, and all
//! later ones. A version that is a withdrawal says that there is no row from its time on.

mod snapshot;
mod state;
#[cfg(test)]
mod tests;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;

use self::state::{Due, KeyState, LeftRow, Side, Version};
use super::join::JoinType;
use super::join::changes::{Changes, NONE, gather_column};
use super::join::condition::{JoinCondition, LEFT};
use super::join::keys::JoinKeys;
use super::join::timers::{Timer, Timers};
use super::time::{rowtime, rowtimes};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::runtime::output::Output;
use crate::state::binary_row::BinaryRows;
use crate::state::keys::grow;
use crate::state::rows::RowId;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// Pairs that are put to the condition at once.
const PAIRS: usize = 8192;

/// One input of a temporal join.
#[derive(Debug, Clone)]
pub struct TemporalJoinInput {
    /// Its columns.
    pub schema: Schema,
    /// Its columns of the join key, in the order of the other side's.
    pub keys: Vec<usize>,
    /// Its event-time column.
    pub time: usize,
}

/// An event-time temporal join.
#[derive(Debug, Clone)]
pub struct TemporalJoinSpec {
    /// Inner or left.
    pub join_type: JoinType,
    /// Port 0: the rows that are looked up; any changelog.
    pub left: TemporalJoinInput,
    /// Port 1: the versions of a table whose key is the join key.
    pub right: TemporalJoinInput,
    /// By key column: whether NULL matches NULL.
    pub null_safe: Vec<bool>,
    /// What else must hold of a pair, over the columns of left, then right.
    pub condition: Option<Expr>,
    /// Time after which a key that got no row is forgotten, ms; 0 for never.
    pub ttl_ms: i64,
    /// Columns of the result: left, then right.
    pub output: Schema,
}

/// The operator. Port 0 is the left input.
#[derive(Debug)]
pub struct TemporalJoin {
    spec: TemporalJoinSpec,
    context: OperatorContext,
    condition: Option<JoinCondition>,
    schema: SchemaRef,
    keys: JoinKeys,
    /// By slot of the join key.
    states: Vec<KeyState>,
    left: Side,
    right: Side,
    timers: Timers,
    /// Processing times at which keys are forgotten.
    cleanups: Timers,
    watermark: i64,
    // Buffers.
    rows: BinaryRows,
    pairs: Pairs,
    changes: Changes,
    /// Rows, by port, to be freed once nothing refers to them.
    gone: [Vec<u32>; 2],
}

/// Left rows that come out, each with its version or [`NONE`].
#[derive(Debug, Default)]
struct Pairs {
    kinds: Vec<RowKind>,
    left: Vec<u32>,
    right: Vec<u32>,
}

impl TemporalJoin {
    /// An operator without state.
    ///
    /// # Errors
    /// When the condition cannot be compiled or the sides' keys do not fit each other.
    pub fn new(spec: TemporalJoinSpec, context: &OperatorContext) -> Result<Self> {
        if !matches!(spec.join_type, JoinType::Inner | JoinType::Left) {
            return Err(Error::internal("a temporal join is inner or left"));
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
        Ok(Self {
            condition,
            schema: spec.output.to_arrow(),
            keys,
            states: Vec::new(),
            left: Side::new(&spec.left.schema),
            right: Side::new(&spec.right.schema),
            timers: Timers::default(),
            cleanups: Timers::default(),
            watermark: i64::MIN,
            rows: BinaryRows::default(),
            pairs: Pairs::default(),
            changes: Changes::default(),
            gone: Default::default(),
            context: context.clone(),
            spec,
        })
    }

    fn reserve_slots(&mut self) {
        let bound = self.keys.table.slot_bound();
        if bound > self.states.len() {
            grow(&mut self.states, bound, KeyState::default());
        }
    }

    fn intern(&mut self, port: usize, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let unmatchable = self.keys.intern(port, batch)?;
        self.reserve_slots();
        let (side, input) = match port {
            LEFT => (&self.left, &self.spec.left),
            _ => (&self.right, &self.spec.right),
        };
        debug_assert_eq!(input.schema.len(), batch.num_columns());
        side.codec
            .encode(batch.columns(), batch.num_rows(), &mut self.rows)?;
        Ok(unmatchable)
    }

    /// Sets the key's timer to `time`, unless it fires earlier already.
    fn set_timer(&mut self, slot: u32, time: i64) {
        let state = &mut self.states[slot as usize];
        if state.timer.is_none_or(|timer| timer.time > time) {
            let number = self.timers.set(time, slot, 0);
            state.timer = Some(Due { time, number });
        }
    }

    /// Puts off the moment at which the key is forgotten: to between one and one and a half times
    /// the TTL from now.
    fn put_off_cleanup(&mut self, slot: u32) {
        let ttl = self.spec.ttl_ms;
        if ttl <= 0 {
            return;
        }
        let now = self.context.clock.now_ms();
        let state = &mut self.states[slot as usize];
        let is_early = |due: Due| now.saturating_add(ttl) > due.time;
        if state.cleanup.is_none_or(is_early) {
            let time = now.saturating_add(ttl).saturating_add(ttl / 2);
            let number = self.cleanups.set(time, slot, 0);
            state.cleanup = Some(Due { time, number });
        }
    }

    /// The watermark has passed rows of the key: its left rows come out, old versions go.
    fn fire(&mut self, slot: u32, out: &mut Output<'_>) -> Result<()> {
        self.keys.table.touch(slot);
        let state = &mut self.states[slot as usize];
        state.timer = None;
        let watermark = self.watermark;
        let Self { pairs, gone, .. } = self;
        let KeyState { left, right, .. } = state;
        left.retain(|row| {
            let due = row.time <= watermark;
            if due {
                let version = right.partition_point(|v| v.time <= row.time).checked_sub(1);
                let version = version.map(|i| right[i]).filter(|v| v.present);
                pairs.kinds.push(row.kind);
                pairs.left.push(row.id);
                pairs
                    .right
                    .push(version.filter(|_| row.matchable).map_or(NONE, |v| v.id));
                gone[LEFT].push(row.id);
            }
            !due
        });
        let passed = right.partition_point(|v| v.time <= watermark);
        for version in right.drain(..passed.saturating_sub(1)) {
            gone[1].push(version.id);
        }
        let next = left.iter().map(|row| row.time).min();
        let keeps = !right.is_empty() || next.is_some();
        if let Some(next) = next {
            self.set_timer(slot, next);
        }
        if keeps {
            self.put_off_cleanup(slot);
        } else {
            self.states[slot as usize] = KeyState::default();
            self.keys.release(slot);
        }
        if self.pairs.left.len() >= PAIRS {
            self.emit(out)?;
        }
        Ok(())
    }

    /// Emits the pairs and frees the rows that are gone.
    fn emit(&mut self, out: &mut Output<'_>) -> Result<()> {
        let Pairs { kinds, left, right } = &mut self.pairs;
        if let Some(condition) = &self.condition {
            let found = || right.iter().zip(&*left).filter(|(r, _)| **r != NONE);
            let rights: Vec<u32> = found().map(|(r, _)| *r).collect();
            let lefts: Vec<u32> = found().map(|(_, l)| *l).collect();
            let context = self.context.eval(rights.len(), self.watermark);
            if !rights.is_empty() {
                let holds = condition.evaluate(&context, |port, column| match port {
                    LEFT => gather_column(self.left.stored(), &lefts, column),
                    _ => gather_column(self.right.stored(), &rights, column),
                })?;
                let pairs = right.iter_mut().filter(|r| **r != NONE);
                for (right, holds) in pairs.zip(holds.values()) {
                    if !holds {
                        *right = NONE;
                    }
                }
            }
        }
        let inner = self.spec.join_type == JoinType::Inner;
        for ((kind, left), right) in kinds.drain(..).zip(left.drain(..)).zip(right.drain(..)) {
            if right == NONE && inner {
                continue;
            }
            self.changes.push(kind, left, right);
            if self.changes.len() >= self.context.batch_size {
                let sides = (Some(self.left.stored()), Some(self.right.stored()));
                out.emit(self.changes.take(sides.0, sides.1, true, &self.schema)?)?;
            }
        }
        if self.changes.len() > 0 {
            let sides = (Some(self.left.stored()), Some(self.right.stored()));
            out.emit(self.changes.take(sides.0, sides.1, true, &self.schema)?)?;
        }
        let [left, right] = &mut self.gone;
        left.drain(..)
            .for_each(|id| self.left.rows.remove(RowId(id)));
        right
            .drain(..)
            .for_each(|id| self.right.rows.remove(RowId(id)));
        Ok(())
    }

    fn add_left(&mut self, batch: &ChangeBatch) -> Result<()> {
        let unmatchable = self.intern(LEFT, batch.rows())?;
        let times = rowtimes(batch.rows(), self.spec.left.time)?.clone();
        let mut dropped = Vec::new();
        for (i, kind) in batch.kinds().enumerate() {
            let slot = self.keys.slots[i];
            let Some(time) = rowtime(&times, i, &self.context.metrics) else {
                dropped.push(slot);
                continue;
            };
            let RowId(id) = self.left.rows.insert(self.rows.get(i));
            self.states[slot as usize].left.push(LeftRow {
                time,
                id,
                kind,
                matchable: !unmatchable.as_ref().is_some_and(|u| u.value(i)),
            });
            self.set_timer(slot, time);
            self.put_off_cleanup(slot);
        }
        self.release_vacant(dropped);
        Ok(())
    }

    fn add_right(&mut self, batch: &ChangeBatch) -> Result<()> {
        let unmatchable = self.intern(1, batch.rows())?;
        let times = rowtimes(batch.rows(), self.spec.right.time)?.clone();
        let mut dropped = Vec::new();
        for (i, kind) in batch.kinds().enumerate() {
            let slot = self.keys.slots[i];
            let time = rowtime(&times, i, &self.context.metrics);
            let matchable = !unmatchable.as_ref().is_some_and(|u| u.value(i));
            let Some(time) = time.filter(|_| matchable) else {
                dropped.push(slot);
                continue;
            };
            let RowId(id) = self.right.rows.insert(self.rows.get(i));
            let present = kind.is_add();
            let versions = &mut self.states[slot as usize].right;
            let version = Version { time, id, present };
            match versions.binary_search_by_key(&time, |v| v.time) {
                Ok(at) => {
                    let old = std::mem::replace(&mut versions[at], version);
                    self.right.rows.remove(RowId(old.id));
                }
                Err(at) => versions.insert(at, version),
            }
            self.set_timer(slot, time);
            self.put_off_cleanup(slot);
        }
        self.release_vacant(dropped);
        Ok(())
    }

    /// Forgets the keys of rows that were dropped, unless a later row of the batch needs them.
    fn release_vacant(&mut self, slots: Vec<u32>) {
        for slot in slots {
            if self.states[slot as usize].is_vacant() {
                self.keys.release(slot);
            }
        }
    }
}

impl Operator for TemporalJoin {
    fn process(&mut self, port: usize, batch: ChangeBatch, _: &mut Output<'_>) -> Result<()> {
        match port {
            LEFT => self.add_left(&batch),
            _ => self.add_right(&batch),
        }
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        while let Some(Timer { time, slot, .. }) = self.timers.pop_until(watermark) {
            if Due::is_at(self.states[slot as usize].timer, time) {
                self.fire(slot, out)?;
            }
        }
        self.emit(out)?;
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        self.cleanups.first()
    }

    fn processing_time(&mut self, now_ms: i64, _: &mut Output<'_>) -> Result<()> {
        while let Some(Timer { time, slot, .. }) = self.cleanups.pop_until(now_ms) {
            let state = &mut self.states[slot as usize];
            if !Due::is_at(state.cleanup, time) {
                continue;
            }
            let state = std::mem::take(state);
            for row in &state.left {
                self.left.rows.remove(RowId(row.id));
            }
            for version in &state.right {
                self.right.rows.remove(RowId(version.id));
            }
            self.keys.release(slot);
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let slots = self.keys.table.copy_all();
        Ok(snapshot::save(self, &slots))
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
        let mut snapshot = snapshot::save(self, &changed.slots);
        snapshot::mark(self, &changed, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        snapshot::restore(self, &state)
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.left.rows.len() + self.right.rows.len(),
            bytes: self.left.rows.memory_size()
                + self.right.rows.memory_size()
                + self.keys.table.memory_size()
                + self.states.capacity() * size_of::<KeyState>()
                + self.timers.memory_size()
                + self.cleanups.memory_size(),
        }
    }
}
