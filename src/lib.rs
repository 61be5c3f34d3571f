//! Ebbflow: Flink SQL without the cluster.

pub mod aggregates;
pub mod catalog;
pub mod changelog;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod connectors;
pub mod error;
pub mod expr;
pub mod formats;
pub mod functions;
pub mod gateway;
pub mod graph;
pub mod nexmark;
pub mod operators;
pub mod plan;
pub mod portability;
pub mod repl;
pub mod runtime;
pub mod session;
pub mod sql;
pub mod state;
pub mod testing;
pub mod types;
