//! Flink's SQL types, how they lie in Arrow columns, and what is done with values as such.
//!
//! - [`data_type`]: the logical types, their printed forms and their Arrow representation,
//! - [`text`]: the two text forms of a value,
//! - [`bitmap`]: the values of `BITMAP`,
//! - [`calendar`]: dates and time zones,
//! - [`cast`]: conversions between types,
//! - [`coerce`]: which types meet in comparisons, unions, sinks and casts,
//! - [`parse`], [`literal`]: text to values,
//! - [`schema`]: named, typed columns with their time attributes.

pub mod bitmap;
pub mod calendar;
pub mod cast;
pub mod coerce;
pub mod data_type;
pub mod literal;
pub mod parse;
pub mod schema;
pub mod text;

pub use data_type::{DataType, RowField, TypeKind, UTC};
pub use schema::{Column, Schema, TimeAttribute};
