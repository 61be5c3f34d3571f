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
mod held_back;
pub mod job;
mod job_config;
pub mod metrics;
mod node;
pub mod output;
mod prepared;
mod publishing;
pub mod restart;
mod revive;
mod step;
mod task;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
