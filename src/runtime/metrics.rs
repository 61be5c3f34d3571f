//! Counters of a running job, readable at any time and from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// A counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Replaces the value: for gauges.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The last watermark that went out of a subtask, and whether the subtask is idle.
#[derive(Debug)]
pub struct WatermarkGauge {
    watermark: AtomicI64,
    idle: AtomicBool,
}

impl Default for WatermarkGauge {
    fn default() -> Self {
        Self {
            watermark: AtomicI64::new(i64::MIN),
            idle: AtomicBool::new(false),
        }
    }
}

impl WatermarkGauge {
    /// A watermark has gone out, ms.
    pub fn set(&self, watermark: i64) {
        self.watermark.store(watermark, Ordering::Relaxed);
    }

    /// The subtask has become idle, or active again.
    pub fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// The last watermark, ms: `None` before the first.
    #[must_use]
    pub fn get(&self) -> Option<i64> {
        let watermark = self.watermark.load(Ordering::Relaxed);
        (watermark > i64::MIN).then_some(watermark)
    }

    /// Whether nobody waits for it: it is idle, or it has sent its last watermark.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.idle.load(Ordering::Relaxed) || self.get() == Some(i64::MAX)
    }
}

/// Counters of one subtask of a vertex. Names as Flink's metrics, in snake case.
#[derive(Debug, Default)]
pub struct OperatorMetrics {
    /// Rows received.
    pub records_in: Counter,
    /// Rows sent.
    pub records_out: Counter,
    /// Rows dropped because the watermark had passed them.
    pub late_records_dropped: Counter,
    /// Withdrawals of rows that were not there, and rows of expired state.
    pub inconsistent_dropped: Counter,
    /// Rows that a source could not decode or a sink's enforcer dropped.
    pub invalid_dropped: Counter,
    /// Rows dropped because their event time is NULL.
    pub null_rowtime_dropped: Counter,
    /// Keys or rows in state.
    pub state_rows: Counter,
    /// Bytes in state.
    pub state_bytes: Counter,
    /// Nanoseconds spent in the operator.
    pub busy_ns: Counter,
    /// The watermark that it has sent last.
    pub current_output_watermark: WatermarkGauge,
}

/// The counters of one subtask of a vertex, and what it is.
#[derive(Debug, Clone)]
pub struct VertexMetrics {
    /// Index of the vertex in its graph.
    pub vertex: usize,
    /// The plan node's noun.
    pub name: String,
    /// The plan node's line in EXPLAIN.
    pub description: Arc<str>,
    /// The lines in EXPLAIN of the sources that its rows come from.
    pub sources: Arc<[String]>,
    /// Number of the subtask, from 0.
    pub subtask: usize,
    /// The counters; they go on counting.
    pub metrics: Arc<OperatorMetrics>,
}
