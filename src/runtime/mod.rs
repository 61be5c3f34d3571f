//! Runs a graph: tasks, channels between them, watermarks, barriers, time and counters.

pub mod clock;
pub mod collect;
pub mod combine;
pub mod control;
pub mod job;
pub mod metrics;
mod node;
pub mod output;
mod step;
mod task;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
