//! Bytes to rows and back.
//!
//! - [`builder`]: typed columns under construction, which every decoder fills,
//! - [`text`]: values from their text, by Java's rules.

pub mod builder;
pub mod text;
