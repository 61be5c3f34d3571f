//! The regular join: both sides are remembered for ever (or for their TTL), every row meets what is
//! there of the other side. Inner, outer, semi and anti; with or without keys.
//!
//! The algorithm, one batch against the other side's state, is in [`probe`]; that state in [`side`],
//! its rows of one join key in [`group`]; what else must hold of a pair in [`condition`]; what is
//! emitted in [`changes`]; mini-batch in [`bundle`].
//!
//! Kinds and order of the changes are those of Flink: an inner join passes the input's kinds on; an
//! outer join emits `+I` and `-D` (and `-U` of its inner side), with a row of NULLs that comes and
//! goes; the matches of a row come in the order of Flink's heap state.

mod bundle;
pub(crate) mod changes;
pub(crate) mod condition;
mod group;
pub(crate) mod keys;
mod probe;
#[cfg(test)]
mod property_tests;
mod side;
mod snapshot;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod timers;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;

use self::bundle::Bundle;
pub use self::bundle::BundleLimits;
use self::changes::Changes;
use self::condition::JoinCondition;
use self::keys::JoinKeys;
use self::probe::{Probe, Role};
use self::side::Side;
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::expr::Expr;
use crate::runtime::output::Output;
use crate::state::binary_row::BinaryRows;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// Which rows a join gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinType {
    /// Pairs.
    Inner,
    /// Pairs, and left rows without a match.
    Left,
    /// Pairs, and right rows without a match.
    Right,
    /// Pairs, and rows of either side without a match.
    Full,
    /// Left rows with a match.
    Semi,
    /// Left rows without a match.
    Anti,
}

impl JoinType {
    /// Whether left rows without a match are part of the result, padded with NULLs.
    #[must_use]
    pub fn is_left_outer(self) -> bool {
        matches!(self, Self::Left | Self::Full)
    }

    /// Whether right rows without a match are part of the result, padded with NULLs.
    #[must_use]
    pub fn is_right_outer(self) -> bool {
        matches!(self, Self::Right | Self::Full)
    }

    /// Whether the result has the columns of the left side only.
    #[must_use]
    pub fn is_left_only(self) -> bool {
        matches!(self, Self::Semi | Self::Anti)
    }
}

/// What is known of the rows of an input: EXPLAIN's `leftInputSpec` and `rightInputSpec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UniqueKey {
    /// Nothing: a row may be there several times.
    None,
    /// No two rows agree in these columns.
    Columns(Vec<usize>),
    /// No two rows agree in the join key.
    JoinKey,
}

/// One input of a join.
#[derive(Debug, Clone)]
pub struct JoinInput {
    /// Its columns.
    pub schema: Schema,
    /// Its columns of the join key, in the order of the other side's.
    pub keys: Vec<usize>,
    /// What is known of its rows.
    pub unique_key: UniqueKey,
    /// Whether a row that is updated is withdrawn first: every `+U` has its `-U`.
    pub updates_in_pairs: bool,
    /// Time after which a row that was not written is forgotten, ms; 0 for never.
    pub ttl_ms: i64,
}

/// A regular join.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    /// Which rows it gives.
    pub join_type: JoinType,
    /// Port 0.
    pub left: JoinInput,
    /// Port 1.
    pub right: JoinInput,
    /// By key column: whether NULL matches NULL (`IS NOT DISTINCT FROM`).
    pub null_safe: Vec<bool>,
    /// What else must hold of a pair, over the columns of left, then right.
    pub condition: Option<Expr>,
    /// `table.exec.mini-batch.*`; not for semi and anti joins.
    pub mini_batch: Option<BundleLimits>,
    /// Columns of the result: left, then right unless the join type is left only.
    pub output: Schema,
}

/// The operator. Port 0 is the left input.
#[derive(Debug)]
pub struct Join {
    spec: JoinSpec,
    context: OperatorContext,
    condition: Option<JoinCondition>,
    schema: SchemaRef,
    keys: JoinKeys,
    left: Side,
    right: Side,
    watermark: i64,
    bundle: Option<Bundle>,
    /// When expired rows are removed next; `None` while there are none.
    sweep_at: Option<i64>,
    // Buffers.
    rows: BinaryRows,
    changes: Changes,
    emptied: Vec<u32>,
}

impl Join {
    /// An operator without state.
    ///
    /// # Errors
    /// When the condition cannot be compiled or the sides' keys do not fit each other.
    pub fn new(spec: JoinSpec, context: &OperatorContext) -> Result<Self> {
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
        let side = |input: &JoinInput, counts_matches| {
            let unique_key = input.unique_key.clone();
            Side::new(&input.schema, unique_key, counts_matches, input.ttl_ms)
        };
        let join_type = spec.join_type;
        let limits = spec.mini_batch.filter(|_| !join_type.is_left_only());
        let bundle = limits.map(|limits| Bundle::new(limits, [&spec.left, &spec.right]));
        Ok(Self {
            condition,
            schema: spec.output.to_arrow(),
            keys,
            left: side(
                &spec.left,
                join_type.is_left_outer() || join_type.is_left_only(),
            ),
            right: side(&spec.right, join_type.is_right_outer()),
            watermark: i64::MIN,
            bundle,
            sweep_at: None,
            rows: BinaryRows::default(),
            changes: Changes::default(),
            emptied: Vec::new(),
            context: context.clone(),
            spec,
        })
    }

    fn role(&self, port: usize) -> Role {
        let join_type = self.spec.join_type;
        let anti = join_type == JoinType::Anti;
        let outer = (join_type.is_left_outer(), join_type.is_right_outer());
        match (join_type.is_left_only(), port) {
            (true, 0) => Role::Tested { anti },
            (true, _) => Role::Testing { anti },
            (false, 0) => Role::Joined {
                own_outer: outer.0,
                other_outer: outer.1,
            },
            (false, _) => Role::Joined {
                own_outer: outer.1,
                other_outer: outer.0,
            },
        }
    }

    /// Finds the slots of the rows' join keys, and the rows whose key equals nothing.
    fn intern(&mut self, port: usize, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let unmatchable = self.keys.intern(port, batch)?;
        let bound = self.keys.table.slot_bound();
        self.left.reserve_slots(bound);
        self.right.reserve_slots(bound);
        Ok(unmatchable)
    }

    /// Joins a batch with the state of the other side and adds it to its own.
    fn join(
        &mut self,
        port: usize,
        batch: &ChangeBatch,
        replaced: Option<&[bool]>,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let unmatchable = self.intern(port, batch.rows())?;
        let role = self.role(port);
        let (own, other) = match port {
            0 => (&mut self.left, &mut self.right),
            _ => (&mut self.right, &mut self.left),
        };
        own.codec
            .encode(batch.rows().columns(), batch.len(), &mut self.rows)?;
        let now = self.context.clock.now_ms();
        Probe {
            role,
            own_is_left: port == 0,
            own,
            other,
            batch: batch.rows(),
            kinds: batch.ops(),
            replaced,
            encoded: &self.rows,
            slots: &self.keys.slots,
            unmatchable,
            condition: self.condition.as_ref(),
            context: &self.context,
            watermark: self.watermark,
            now,
            schema: &self.schema,
            changes: &mut self.changes,
            withheld: Vec::new(),
            emptied: &mut self.emptied,
        }
        .run(out)?;
        self.release_keys();
        self.plan_sweep(now);
        Ok(())
    }

    /// Sees to it that expired rows are removed: when half of the shorter TTL is over.
    fn plan_sweep(&mut self, now: i64) {
        let ttls = [self.left.ttl_ms, self.right.ttl_ms];
        if let (None, Some(ttl)) = (self.sweep_at, ttls.into_iter().filter(|t| *t > 0).min()) {
            self.sweep_at = Some(now.saturating_add((ttl / 2).max(1000)));
        }
    }

    /// Removes expired rows.
    fn sweep(&mut self, now: i64) {
        self.sweep_at = None;
        let slots: Vec<u32> = self.keys.table.slots().collect();
        for slot in slots {
            if self.left.sweep(slot, now) | self.right.sweep(slot, now) {
                self.keys.table.touch(slot);
            }
            self.emptied.push(slot);
        }
        self.release_keys();
        if !self.keys.table.is_empty() {
            self.plan_sweep(now);
        }
    }

    /// Copies the rows of the join keys of slots.
    fn copy(&self, slots: &[u32]) -> OperatorSnapshot {
        let mut snapshot = OperatorSnapshot {
            watermark: (self.watermark > i64::MIN).then_some(self.watermark),
            ..OperatorSnapshot::default()
        };
        let (left, right) = (&self.spec.left, &self.spec.right);
        snapshot::save("left", &self.left, left, slots, &mut snapshot);
        snapshot::save("right", &self.right, right, slots, &mut snapshot);
        snapshot
    }

    /// Forgets join keys that have no row.
    fn release_keys(&mut self) {
        for slot in self.emptied.drain(..) {
            if self.left.is_vacant(slot) && self.right.is_vacant(slot) {
                self.keys.release(slot);
            }
        }
    }
}

impl Operator for Join {
    fn process(&mut self, port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let now = self.context.clock.now_ms();
        if self.bundle.as_mut().is_some_and(|b| b.begins(port)) {
            self.flush(out)?;
        }
        let Some(bundle) = &mut self.bundle else {
            return self.join(port, &batch, None, out);
        };
        let mut rest = bundle.add(port, &batch, now);
        while let Some(batch) = rest {
            self.flush(out)?;
            rest = match &mut self.bundle {
                Some(bundle) if !batch.is_empty() => bundle.add(port, &batch, now),
                _ => None,
            };
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        let right_first = self.spec.join_type != JoinType::Right;
        for port in if right_first { [1, 0] } else { [0, 1] } {
            let folded = match &mut self.bundle {
                Some(bundle) => bundle.take(port)?,
                None => None,
            };
            if let Some(folded) = folded {
                self.join(port, &folded.batch, Some(&folded.replaced), out)?;
            }
        }
        Ok(())
    }

    fn end_input(&mut self, _: usize, out: &mut Output<'_>) -> Result<()> {
        self.flush(out)
    }

    fn next_timer(&self) -> Option<i64> {
        let deadline = self.bundle.as_ref().and_then(|bundle| bundle.deadline);
        match (deadline, self.sweep_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        let deadline = self.bundle.as_ref().and_then(|bundle| bundle.deadline);
        if deadline.is_some_and(|at| at <= now_ms) {
            self.flush(out)?;
        }
        if self.sweep_at.is_some_and(|at| at <= now_ms) {
            self.sweep(now_ms);
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        out.watermark(watermark)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let slots = self.keys.table.copy_all();
        Ok(self.copy(&slots))
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
        let mut snapshot = self.copy(&changed.slots);
        let JoinKeys { table, encoder, .. } = &self.keys;
        for (name, side) in [("left", &self.left), ("right", &self.right)] {
            changed.mark(&mut snapshot, name, table, encoder, |s| side.is_vacant(s));
        }
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.watermark = state.watermark.unwrap_or(i64::MIN);
        for port in [0, 1] {
            let name = ["left", "right"][port];
            for saved in state.batches(name) {
                let input = [&self.spec.left, &self.spec.right][port];
                let (rows, metas) = snapshot::split(saved, input)?;
                self.intern(port, &rows)?;
                let side = [&mut self.left, &mut self.right].into_iter().nth(port);
                let side = side.expect("two sides");
                side.codec
                    .encode(rows.columns(), rows.num_rows(), &mut self.rows)?;
                for (row, meta) in metas.into_iter().enumerate() {
                    side.insert(self.keys.slots[row], self.rows.get(row), meta);
                }
            }
        }
        self.plan_sweep(self.context.clock.now_ms());
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.left.rows.len() + self.right.rows.len(),
            bytes: self.left.memory_size()
                + self.right.memory_size()
                + self.keys.table.memory_size()
                + self.bundle.as_ref().map_or(0, Bundle::memory_size),
        }
    }
}
