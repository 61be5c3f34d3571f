//! Runs scripts as tests.

pub mod transcript;
