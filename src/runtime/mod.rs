//! Runs a graph: tasks, channels between them, watermarks, barriers, time and counters.

pub mod clock;
pub mod metrics;
pub mod output;
