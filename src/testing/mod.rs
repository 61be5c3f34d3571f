//! Runs scripts as tests.
//!
//! - [`transcript`]: a script's statements with what they gave,
//! - [`compare`]: our transcript against Flink's,
//! - [`suite`]: the tests of a folder, each in several modes.

pub mod compare;
pub mod suite;
pub mod transcript;
