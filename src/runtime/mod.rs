//! Runs a graph: tasks, channels between them, watermarks, barriers, time and counters.

mod alignment;
mod barrier;
mod build;
mod channel;
pub mod check;
pub mod clock;
pub mod collect;
pub mod combine;
pub mod committed;
pub mod control;
mod coordinator;
mod cut;
mod exchange;
pub mod job;
pub mod metrics;
mod node;
pub mod output;
pub mod restart;
mod revive;
mod step;
mod task;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
