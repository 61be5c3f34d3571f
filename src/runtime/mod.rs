//! Runs a graph: tasks, channels between them, watermarks, barriers, time and counters.

mod build;
mod channel;
pub mod check;
pub mod clock;
pub mod collect;
pub mod combine;
pub mod control;
mod cut;
mod exchange;
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
