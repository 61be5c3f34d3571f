//! The operators: each turns a changelog into a changelog, synchronously, and can save its state.
//!
//! One file (or folder) an operator, named like its plan node and like its line in EXPLAIN. The
//! runtime calls an operator from one thread only.

pub mod calc;
pub mod changelog_normalize;
mod changes;
pub mod constraint_enforcer;
pub mod correlate;
mod counted_keys;
pub mod deduplicate;
pub mod drop_update_before;
pub mod expand;
mod expiry;
pub mod group_aggregate;
pub mod group_window_aggregate;
pub mod interval_join;
pub mod join;
pub mod last_per_key;
mod last_rows;
pub mod lookup_join;
pub mod match_recognize;
pub mod over_aggregate;
pub mod rank;
mod row_copy;
mod sessions;
pub mod sink_upsert_materializer;
pub mod split_watermarks;
pub mod temporal_join;
pub mod temporal_sort;
#[cfg(test)]
pub(crate) mod testing;
mod time;
pub mod union;
pub mod values;
pub mod watermark_assigner;
pub mod window_aggregate;
pub mod window_deduplicate;
pub mod window_join;
pub mod window_rank;
pub mod window_table_function;
pub mod windowing;
mod windows;

use std::sync::Arc;

use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::functions::{Environment, EvalContext};
use crate::runtime::metrics::OperatorMetrics;
use crate::runtime::output::Output;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

/// A running operator.
///
/// - `process` MUST give the same rows in the same order however its input is cut into batches
///   (checked by running every SQL test with batch size 1).
/// - `watermark` MUST emit everything that is due before it forwards the watermark.
/// - No method may read the wall clock: time comes from [`OperatorContext`] and the arguments.
/// - State MUST be complete in `snapshot`: an operator restored from it goes on as if nothing had
///   happened (checked by the kill-and-restore mode of the SQL tests).
/// - A withdrawal of what is not there MUST be dropped and counted, never make a negative state.
pub trait Operator: Send {
    /// Takes one batch of input `port` (0, or 1 for the right side of a join).
    ///
    /// # Errors
    /// When an expression fails on data or the state is over its limit; ends the job.
    fn process(&mut self, port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()>;

    /// The combined watermark of all inputs has risen to `watermark` (ms; `i64::MAX` at the end of a
    /// bounded job). The default forwards it.
    ///
    /// # Errors
    /// As [`process`](Self::process).
    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        out.watermark(watermark)
    }

    /// Input `port` has ended. Watermarks for it have been delivered before.
    ///
    /// # Errors
    /// As [`process`](Self::process).
    fn end_input(&mut self, port: usize, out: &mut Output<'_>) -> Result<()> {
        let _ = (port, out);
        Ok(())
    }

    /// Emits what is held back for bundling (mini-batch), because a barrier, a watermark or the end
    /// comes, or the latency is over. The runtime calls it before each of these.
    ///
    /// # Errors
    /// As [`process`](Self::process).
    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// When [`processing_time`](Self::processing_time) wants to be called next, ms since the epoch.
    fn next_timer(&self) -> Option<i64> {
        None
    }

    /// The clock has passed [`next_timer`](Self::next_timer).
    ///
    /// # Errors
    /// As [`process`](Self::process).
    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        let _ = (now_ms, out);
        Ok(())
    }

    /// A copy of the state, typed and addressed by key. Stateless operators keep the default.
    ///
    /// # Errors
    /// When the state cannot be read back.
    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        Ok(OperatorSnapshot::default())
    }

    /// From now on, remember what changes. Called after [`restore`](Self::restore), if there is
    /// anything to restore, and before any row.
    fn track_changes(&mut self) {}

    /// As [`snapshot`](Self::snapshot), but tables may hold only what has changed since the last
    /// snapshot that is durable: the previous one if `previous_durable`, else an older one; before
    /// the first of these, since the state that was restored. Operators that do not track changes
    /// copy everything.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let _ = previous_durable;
        self.snapshot()
    }

    /// Takes up the state of snapshots (several after a change of parallelism), restricted to the
    /// key groups of this subtask. Called before any other method.
    ///
    /// # Errors
    /// When the snapshot does not fit the operator.
    fn restore(&mut self, state: RestoreState) -> Result<()> {
        let _ = state;
        Ok(())
    }

    /// Rows and bytes held in state, for metrics and the memory limit.
    fn state_size(&self) -> StateSize {
        StateSize::default()
    }
}

/// How much an operator holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateSize {
    /// Keys or rows.
    pub rows: usize,
    /// Bytes, estimated by the operator.
    pub bytes: usize,
}

/// What an operator is given when it is made.
#[derive(Debug, Clone)]
pub struct OperatorContext {
    /// Number of this subtask, from 0.
    pub subtask: usize,
    /// Number of subtasks of the operator.
    pub parallelism: usize,
    /// Rows per batch that an operator should not exceed when it makes batches of its own.
    pub batch_size: usize,
    /// Session settings that expressions need.
    pub environment: Arc<Environment>,
    /// Counters of this subtask.
    pub metrics: Arc<OperatorMetrics>,
    /// The clock.
    pub clock: Arc<dyn crate::runtime::clock::Clock>,
}

impl OperatorContext {
    /// The context of an evaluation on `rows` rows at `watermark`.
    #[must_use]
    pub fn eval(&self, rows: usize, watermark: i64) -> EvalContext {
        EvalContext {
            rows,
            now_ms: self.clock.now_ms(),
            watermark,
        }
    }
}
