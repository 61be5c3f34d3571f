//! How a job is run: settings of the runtime.

use std::sync::Arc;
use std::time::Duration;

use super::check::EdgeChecks;
use super::clock::{Clock, SystemClock};
use super::control::JobControl;
use super::restart::RestartStrategy;
use crate::checkpoint::{CheckpointStore, ControlFile, Unclaimed};
use crate::functions::Environment;
use crate::state::key_group::DEFAULT_MAX_PARALLELISM;

/// What happens to rows behind a barrier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckpointMode {
    /// They wait until the barrier has come through all inputs.
    #[default]
    ExactlyOnce,
    /// They do not wait, and may count twice after a restart.
    AtLeastOnce,
    /// As with exactly-once; but rows leave their source only when its position behind them is
    /// durable, so that none is read twice, and what was on its way at a failure is lost.
    AtMostOnce,
}

/// When the checkpoints of a job that has not finished stay
/// (`execution.checkpointing.externalized-checkpoint-retention`). Those of a job that was stopped with a checkpoint always do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Retention {
    /// Always.
    #[default]
    OnCancellation,
    /// When it has failed, not when it was cancelled.
    OnFailure,
    /// Never.
    Never,
}

/// For tests: a job that dies at a certain row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kill {
    /// Before that, when sources have read so many rows, another checkpoint is taken; 0 for none.
    pub base_after: u64,
    /// When sources have read so many rows (more), a checkpoint is taken.
    pub checkpoint_after: u64,
    /// When they have read so many more, the job stops as if it had been killed.
    pub die_after: u64,
}

impl Kill {
    /// How many rows are read before the first of all checkpoints.
    pub(super) fn first_row_limit(self) -> u64 {
        match self.base_after {
            0 => self.checkpoint_after,
            rows => rows,
        }
    }
}

/// How checkpoints are taken.
#[derive(Debug, Clone)]
pub struct CheckpointConfig {
    /// Where they are kept. A job that starts takes up the newest that it finds there.
    pub store: Arc<dyn CheckpointStore>,
    /// `execution.checkpointing.interval`: from the start of one to the start of the next; `None`:
    /// only when asked.
    pub interval: Option<Duration>,
    /// `execution.checkpointing.min-pause`: from the end of one to the start of the next.
    pub min_pause: Duration,
    /// `execution.checkpointing.timeout`: a checkpoint that takes longer fails the job.
    pub timeout: Option<Duration>,
    /// `execution.checkpointing.mode`.
    pub mode: CheckpointMode,
    /// What happens to state of a checkpoint that the job has no place for.
    pub unclaimed: Unclaimed,
    /// `execution.checkpointing.tolerable-failed-checkpoints`: so many in a row may come to nothing.
    pub tolerable_failures: u32,
    /// `execution.checkpointing.externalized-checkpoint-retention`.
    pub retention: Retention,
    /// Where other processes ask the job to stop.
    pub control_file: Option<ControlFile>,
    /// `execution.checkpointing.incremental`: only changes of the state are copied and written.
    pub incremental: bool,
    /// For tests.
    pub kill: Option<Kill>,
}

impl CheckpointConfig {
    /// Checkpoints in `store`, exactly-once, when asked for.
    #[must_use]
    pub fn new(store: Arc<dyn CheckpointStore>) -> Self {
        Self {
            store,
            interval: None,
            min_pause: Duration::ZERO,
            timeout: None,
            mode: CheckpointMode::ExactlyOnce,
            unclaimed: Unclaimed::Refuse,
            tolerable_failures: 0,
            retention: Retention::OnCancellation,
            control_file: None,
            incremental: true,
            kill: None,
        }
    }
}

/// How a job is run.
#[derive(Debug, Clone)]
pub struct JobConfig {
    /// Name, for threads and messages.
    pub name: String,
    /// Rows per batch that sources are asked for.
    pub batch_size: usize,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Session settings that expressions need.
    pub environment: Arc<Environment>,
    /// Most bytes that the state of all operators may have.
    pub state_memory_limit: Option<u64>,
    /// `table.exec.mini-batch.allow-latency`, when mini-batch is on.
    pub mini_batch_latency: Option<Duration>,
    /// A channel between tasks that holds so many rows is full.
    pub channel_rows: usize,
    /// `pipeline.max-parallelism`: the number of key groups.
    pub max_parallelism: u16,
    /// How much of what travels on edges is checked.
    pub checks: EdgeChecks,
    /// Checkpoints, if there are to be any.
    pub checkpointing: Option<CheckpointConfig>,
    /// What happens when the job fails.
    pub restart: RestartStrategy,
    /// For tests: the job dies when its sources have read so many rows, and a bit, and another goes
    /// on from its checkpoint at another parallelism.
    pub die_after_rows: Option<u64>,
    /// The job's switch: the same as that of the sinks that can stop it.
    pub control: JobControl,
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            name: "job".to_string(),
            batch_size: 4096,
            clock: Arc::new(SystemClock),
            environment: Arc::new(Environment::default()),
            state_memory_limit: None,
            mini_batch_latency: None,
            channel_rows: 8192,
            max_parallelism: DEFAULT_MAX_PARALLELISM,
            checks: EdgeChecks::default(),
            checkpointing: None,
            restart: RestartStrategy::None,
            die_after_rows: None,
            control: JobControl::default(),
        }
    }
}
