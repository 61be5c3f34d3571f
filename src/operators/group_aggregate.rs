//! `GROUP BY` without windows, and `SELECT DISTINCT`: emits how the result row of a group changes.
//!
//! Without mini-batch every input row is answered for itself, as in Flink: `+I` when a group begins,
//! `-U` and `+U` when its result changes, `-D` when its last row is withdrawn. The work is still done
//! in columns: one pass finds what each row is to its group, then every aggregate runs over all rows
//! and writes its values before and after each (`AggregateSet::trace`), then the output is taken
//! from these columns. With mini-batch (`bundle`) each group is answered once a bundle.

mod bundle;
mod changes;
mod emit;
mod groups;

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use self::bundle::Bundle;
use self::emit::emit;
use self::groups::Groups;
use super::{Operator, OperatorContext, StateSize};
use crate::aggregates::AggregateCall;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::runtime::output::Output;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::state::ttl::Ttl;
use crate::types::{DataType, Schema};

/// What a [`GroupAggregate`] does.
#[derive(Debug, Clone)]
pub struct GroupAggregateSpec {
    /// Types of the input's columns.
    pub input_types: Vec<DataType>,
    /// Columns of the input that make the group; none for one group of all rows.
    pub group_keys: Vec<usize>,
    /// The aggregates; none for `SELECT DISTINCT`.
    pub aggregates: Vec<AggregateCall>,
    /// Whether the input may withdraw rows.
    pub input_retracts: bool,
    /// Whether the consumer wants `-U` rows.
    pub emit_update_before: bool,
    /// `table.exec.state.ttl`: how long a group without input is remembered.
    pub ttl_ms: Option<i64>,
    /// `table.exec.mini-batch.*`.
    pub mini_batch: Option<MiniBatch>,
    /// The group keys, then the results of the aggregates.
    pub output: Schema,
}

/// How rows are bundled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiniBatch {
    /// `table.exec.mini-batch.size`: rows of a bundle.
    pub size: usize,
    /// `table.exec.mini-batch.allow-latency`: how long a row may wait.
    pub latency_ms: i64,
    /// Whether bundles are first reduced to one record a group, of which `size` make a bundle again:
    /// the boundaries of Flink's local and global aggregation.
    pub two_phase: bool,
}

/// What a row is to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A withdrawal from a group that is not there.
    Dropped,
    /// The first row of a group.
    First,
    /// Any other row.
    Update,
    /// The withdrawal of the last row.
    Last,
}

/// The operator.
#[derive(Debug)]
pub struct GroupAggregate {
    context: OperatorContext,
    group_keys: Vec<usize>,
    emit_update_before: bool,
    output: SchemaRef,
    groups: Groups,
    bundle: Option<Bundle>,
    steps: Vec<Step>,
    weights: Vec<i8>,
    ends: Vec<bool>,
    changed: Vec<bool>,
    gone: Vec<u32>,
}

impl GroupAggregate {
    /// The operator of one subtask.
    ///
    /// # Errors
    /// When a key or an argument has a type that cannot be kept.
    pub fn new(spec: GroupAggregateSpec, context: &OperatorContext) -> Result<Self> {
        let key_types: Vec<_> = spec
            .group_keys
            .iter()
            .map(|i| spec.input_types[*i].clone())
            .collect();
        let groups = Groups::new(
            &key_types,
            &spec.aggregates,
            spec.input_retracts,
            spec.ttl_ms,
        )?;
        let bundle = spec
            .mini_batch
            .map(|mini_batch| Bundle::new(mini_batch, &key_types));
        Ok(Self {
            context: context.clone(),
            group_keys: spec.group_keys,
            emit_update_before: spec.emit_update_before,
            output: spec.output.to_arrow(),
            groups,
            bundle,
            steps: Vec::new(),
            weights: Vec::new(),
            ends: Vec::new(),
            changed: Vec::new(),
            gone: Vec::new(),
        })
    }

    fn now(&self) -> i64 {
        self.context.clock.now_ms()
    }

    /// Finds the groups of rows; returns their key columns.
    fn locate(&mut self, batch: &ChangeBatch) -> Result<Vec<ArrayRef>> {
        let columns = batch.rows().columns();
        let keys: Vec<ArrayRef> = self
            .group_keys
            .iter()
            .map(|i| Arc::clone(&columns[*i]))
            .collect();
        self.groups.locate(&keys, batch.len())?;
        Ok(keys)
    }

    /// Finds what every row is to its group, and counts it.
    fn step(&mut self, batch: &ChangeBatch) {
        let rows = &mut self.groups.rows;
        self.steps.clear();
        self.weights.clear();
        self.ends.clear();
        match batch.ops() {
            None => self.steps.extend(self.groups.slots.iter().map(|slot| {
                let count = &mut rows[*slot as usize];
                *count += 1;
                if *count == 1 {
                    Step::First
                } else {
                    Step::Update
                }
            })),
            Some(ops) => {
                for (slot, kind) in self.groups.slots.iter().zip(ops) {
                    let count = &mut rows[*slot as usize];
                    let step = if kind.is_add() {
                        *count += 1;
                        if *count == 1 {
                            Step::First
                        } else {
                            Step::Update
                        }
                    } else if *count == 0 {
                        Step::Dropped
                    } else {
                        *count -= 1;
                        if *count == 0 {
                            Step::Last
                        } else {
                            Step::Update
                        }
                    };
                    self.steps.push(step);
                    self.weights.push(match step {
                        Step::Dropped => 0,
                        _ if kind.is_add() => 1,
                        _ => -1,
                    });
                }
                if self.steps.contains(&Step::Last) {
                    self.ends
                        .extend(self.steps.iter().map(|step| *step == Step::Last));
                }
            }
        }
    }

    /// Answers every row.
    fn immediate(&mut self, batch: &ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let now = self.now();
        let keys = self.locate(batch)?;
        self.groups.expire(now);
        self.step(batch);
        self.changed.clear();
        self.changed.resize(batch.len(), self.groups.ttl.is_some());
        let values = self
            .groups
            .trace(batch, &self.weights, &self.ends, &mut self.changed)?;
        self.release(now, |_| false);
        self.answer(&keys, &values, out)
    }

    /// Forgets groups that are gone, but for those to `keep`, and notes when the others were written.
    fn release(&mut self, now: i64, keep: impl Fn(u32) -> bool) {
        let mut dropped = 0;
        for (step, slot) in self.steps.iter().zip(&self.groups.slots) {
            match step {
                Step::First | Step::Update => {
                    if let Some(ttl) = &mut self.groups.ttl {
                        ttl.touch(*slot, now);
                    }
                    continue;
                }
                Step::Dropped => dropped += 1,
                Step::Last => {}
            }
            if !keep(*slot) {
                self.gone.push(*slot);
            }
        }
        for slot in self.gone.drain(..) {
            self.groups.remove_if_empty(slot);
        }
        if dropped > 0 {
            self.context.metrics.inconsistent_dropped.add(dropped);
        }
    }

    /// Emits the changes of result rows: from values before and after each input row, at 2i, 2i + 1.
    fn answer(&self, keys: &[ArrayRef], values: &[ArrayRef], out: &mut Output<'_>) -> Result<()> {
        let capacity = self.steps.len() * 2;
        let mut kinds = Vec::with_capacity(capacity);
        let mut indices: Vec<u32> = Vec::with_capacity(capacity);
        let rows = self.steps.iter().zip(&self.changed);
        for (before, (step, changed)) in (0..).step_by(2).zip(rows) {
            match step {
                Step::First => {
                    kinds.push(RowKind::Insert);
                    indices.push(before + 1);
                }
                Step::Update if *changed => {
                    if self.emit_update_before {
                        kinds.push(RowKind::UpdateBefore);
                        indices.push(before);
                    }
                    kinds.push(RowKind::UpdateAfter);
                    indices.push(before + 1);
                }
                Step::Last => {
                    kinds.push(RowKind::Delete);
                    indices.push(before);
                }
                Step::Update | Step::Dropped => {}
            }
        }
        if kinds.is_empty() {
            return Ok(());
        }
        let of_rows = UInt32Array::from_iter_values(indices.iter().map(|i| i / 2));
        let of_values = UInt32Array::from(indices);
        let keys = keys.iter().map(|key| take(key, &of_rows, None));
        let values = values.iter().map(|value| take(value, &of_values, None));
        let columns = keys.chain(values).collect::<Result<_, _>>()?;
        emit(&self.output, columns, kinds, self.context.batch_size, out)
    }

    /// Puts a batch into the bundle, and answers bundles that are full.
    fn bundled(&mut self, batch: &ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let now = self.now();
        let Some(mut bundle) = self.bundle.take() else {
            return Ok(());
        };
        let result = bundle.add(self, batch, now, out);
        self.bundle = Some(bundle);
        result
    }
}

impl Operator for GroupAggregate {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        match self.bundle {
            None => self.immediate(&batch, out),
            Some(_) => self.bundled(&batch, out),
        }
    }

    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        let now = self.now();
        let Some(mut bundle) = self.bundle.take() else {
            return Ok(());
        };
        let result = bundle.flush(self, now, out);
        self.bundle = Some(bundle);
        result
    }

    fn next_timer(&self) -> Option<i64> {
        let sweep = self.groups.ttl.as_ref().and_then(Ttl::sweep_at);
        let deadline = self.bundle.as_ref().and_then(Bundle::deadline);
        match (sweep, deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        let deadline = self.bundle.as_ref().and_then(Bundle::deadline);
        if deadline.is_some_and(|at| at <= now_ms) {
            self.flush(out)?;
        }
        let bundle = self.bundle.as_ref();
        self.groups
            .sweep(now_ms, |slot| bundle.is_some_and(|b| b.has(slot)));
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        self.groups.snapshot()
    }

    fn track_changes(&mut self) {
        self.groups.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        self.groups.changes(previous_durable)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        let now = self.now();
        self.groups.restore(&state, now)
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.groups.len(),
            bytes: self.groups.memory_size(),
        }
    }
}

#[cfg(test)]
mod tests;
