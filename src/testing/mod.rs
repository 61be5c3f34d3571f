//! Runs scripts as tests.
//!
//! - [`transcript`]: a script's statements with what they gave,
//! - [`compare`]: our transcript against Flink's,
//! - [`suite`]: the tests of a folder, each in several modes,
//! - [`slt`]: sqllogictest files,
//! - [`diff`]: what differs, for a person.

pub mod compare;
pub mod diff;
#[cfg(test)]
mod expiry;
#[cfg(test)]
mod properties;
pub mod slt;
pub mod suite;
pub mod transcript;
