//! The window join: rows of two append-only inputs that lie in the same window, joined when the
//! watermark closes it. Inner, outer, semi and anti.
//!
//! Follows Flink's `WindowJoinOperator`: a window is known by its end; rows of a window that is over
//! are dropped and counted; when it is over, each left row (each right row in a right join) meets the
//! other side's rows in the order of their arrival.

mod fire;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use chrono_tz::Tz;
use smallvec::SmallVec;

use self::fire::Pending;
use super::join::JoinType;
use super::join::changes::{Changes, Rows};
use super::join::condition::JoinCondition;
use super::join::keys::JoinKeys;
use super::join::timers::{Timer, Timers};
use super::time::rowtimes;
use super::windowing::{WindowKind, Windowing};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::runtime::output::Output;
use crate::state::binary_row::{BinaryRowCodec, BinaryRows};
use crate::state::keys::grow;
use crate::state::rows::{RowId, RowStore};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// One input of a window join.
#[derive(Debug, Clone)]
pub struct WindowJoinInput {
    /// Its columns.
    pub schema: Schema,
    /// Its columns of the join key, without those of the window, in the order of the other side's.
    pub keys: Vec<usize>,
    /// Its column `window_end`.
    pub window_end: usize,
}

/// A window join.
#[derive(Debug, Clone)]
pub struct WindowJoinSpec {
    /// Which rows it gives.
    pub join_type: JoinType,
    /// Port 0.
    pub left: WindowJoinInput,
    /// Port 1.
    pub right: WindowJoinInput,
    /// By key column: whether NULL matches NULL.
    pub null_safe: Vec<bool>,
    /// The zone of the windows' wall-clock time, if their time attribute is a `TIMESTAMP_LTZ`.
    pub zone: Option<Tz>,
    /// What else must hold of a pair, over the columns of left, then right.
    pub condition: Option<Expr>,
    /// Columns of the result: left, then right unless the join type is left only.
    pub output: Schema,
}

/// The rows of one side, of all keys and windows.
#[derive(Debug)]
struct Side {
    codec: Arc<BinaryRowCodec>,
    rows: RowStore,
}

impl Side {
    fn stored(&self) -> Rows<'_> {
        Rows::Stored(&self.codec, &self.rows)
    }
}

/// The rows of a key in a window, by port, in the order of their arrival.
#[derive(Debug, Clone)]
struct WindowRows {
    end: i64,
    /// Number of the window's timer.
    number: u64,
    sides: [Vec<u32>; 2],
}

/// The state of one key.
#[derive(Debug, Clone, Default)]
struct KeyWindows {
    windows: SmallVec<[WindowRows; 1]>,
    /// Whether the key equals nothing.
    unmatchable: bool,
}

/// The operator. Port 0 is the left input.
#[derive(Debug)]
pub struct WindowJoin {
    spec: WindowJoinSpec,
    context: OperatorContext,
    condition: Option<JoinCondition>,
    schema: SchemaRef,
    windowing: Windowing,
    keys: JoinKeys,
    /// By slot of the join key.
    states: Vec<KeyWindows>,
    sides: [Side; 2],
    timers: Timers,
    watermark: i64,
    // Buffers.
    rows: BinaryRows,
    pending: Pending,
    changes: Changes,
}

impl WindowJoin {
    /// An operator without state.
    ///
    /// # Errors
    /// When the condition cannot be compiled or the sides' keys do not fit each other.
    pub fn new(spec: WindowJoinSpec, context: &OperatorContext) -> Result<Self> {
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
        let side = |input: &WindowJoinInput| Side {
            codec: Arc::new(BinaryRowCodec::new(&input.schema.types())),
            rows: RowStore::default(),
        };
        // Only the zone counts: the windows' ends came with the rows.
        let kind = WindowKind::Tumble { size: 1, offset: 0 };
        Ok(Self {
            condition,
            schema: spec.output.to_arrow(),
            windowing: Windowing::new(kind, spec.zone),
            keys,
            states: Vec::new(),
            sides: [side(&spec.left), side(&spec.right)],
            timers: Timers::default(),
            watermark: i64::MIN,
            rows: BinaryRows::default(),
            pending: Pending::default(),
            changes: Changes::default(),
            context: context.clone(),
            spec,
        })
    }

    fn input(&self, port: usize) -> &WindowJoinInput {
        match port {
            0 => &self.spec.left,
            _ => &self.spec.right,
        }
    }

    /// The instant at which the watermark closes a window.
    fn closes_at(&self, end: i64) -> i64 {
        self.windowing.timer(end.saturating_sub(1))
    }

    fn intern(&mut self, port: usize, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let unmatchable = self.keys.intern(port, batch)?;
        let bound = self.keys.table.slot_bound();
        if bound > self.states.len() {
            grow(&mut self.states, bound, KeyWindows::default());
        }
        self.sides[port]
            .codec
            .encode(batch.columns(), batch.num_rows(), &mut self.rows)?;
        Ok(unmatchable)
    }

    /// Stores row `i` of the batch that was interned last; `number` is that of the window's timer if
    /// it has one.
    fn add(&mut self, port: usize, i: usize, end: i64, unmatchable: bool, number: Option<u64>) {
        let slot = self.keys.slots[i];
        let RowId(id) = self.sides[port].rows.insert(self.rows.get(i));
        let known = self.states[slot as usize].windows.iter();
        let position = match known.into_iter().position(|w| w.end == end) {
            Some(position) => position,
            None => {
                let time = self.closes_at(end);
                let number = match number {
                    None => self.timers.set(time, slot, 0),
                    Some(number) => self.timers.restore(Timer {
                        time,
                        number,
                        slot,
                        tag: 0,
                    }),
                };
                let state = &mut self.states[slot as usize];
                state.unmatchable = unmatchable;
                state.windows.push(WindowRows {
                    end,
                    number,
                    sides: Default::default(),
                });
                state.windows.len() - 1
            }
        };
        self.states[slot as usize].windows[position].sides[port].push(id);
    }
}

impl Operator for WindowJoin {
    fn process(&mut self, port: usize, batch: ChangeBatch, _: &mut Output<'_>) -> Result<()> {
        if batch.kinds().any(|kind| !kind.is_add()) {
            return Err(Error::internal("a window join met a withdrawal"));
        }
        let unmatchable = self.intern(port, batch.rows())?;
        let ends = rowtimes(batch.rows(), self.input(port).window_end)?.clone();
        let mut late = Vec::new();
        for (i, end) in ends.values().iter().enumerate() {
            if self.closes_at(*end) <= self.watermark {
                late.push(self.keys.slots[i]);
                continue;
            }
            let unmatchable = unmatchable.as_ref().is_some_and(|u| u.value(i));
            self.add(port, i, *end, unmatchable, None);
        }
        self.context
            .metrics
            .late_records_dropped
            .add(late.len() as u64);
        // A later row of the batch may need the key.
        for slot in late {
            if self.states[slot as usize].windows.is_empty() {
                self.keys.release(slot);
            }
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        while let Some(Timer {
            time, number, slot, ..
        }) = self.timers.pop_until(watermark)
        {
            debug_assert!(time <= watermark);
            let windows = &mut self.states[slot as usize].windows;
            let Some(position) = windows.iter().position(|w| w.number == number) else {
                continue;
            };
            let window = windows.remove(position);
            let vacant = windows.is_empty();
            self.fire(slot, window, out)?;
            if vacant {
                self.keys.release(slot);
            } else {
                self.keys.table.touch(slot);
            }
        }
        self.emit(out)?;
        out.watermark(watermark)
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
        let [left, right] = &self.sides;
        let rows = left.rows.len() + right.rows.len();
        StateSize {
            rows,
            bytes: left.rows.memory_size()
                + right.rows.memory_size()
                + rows * size_of::<u32>()
                + self.keys.table.memory_size()
                + self.states.capacity() * size_of::<KeyWindows>()
                + self.timers.memory_size(),
        }
    }
}
