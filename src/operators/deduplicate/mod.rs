//! `Deduplicate`: of the rows with one key, the first or the last, by processing time or event time.
//!
//! It is the Top-1 by a time attribute of input that only grows, which needs no order of rows: one
//! row a key, or none.

mod proctime;
mod rowtime;

use self::proctime::{ProctimeFirst, ProctimeLast};
use self::rowtime::{RowtimeFirst, RowtimeUpdating};
use super::last_per_key::LastPerKey;
use super::{Operator, OperatorContext};
use crate::error::Result;
use crate::types::Schema;

/// By which time rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeduplicateOrder {
    /// Arrival.
    Proctime,
    /// The event time in this column.
    Rowtime(usize),
}

/// Which row of a key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The first.
    FirstRow,
    /// The last.
    LastRow,
}

/// How rows are deduplicated.
#[derive(Debug, Clone)]
pub struct DeduplicateSpec {
    /// Columns of input and output.
    pub schema: Schema,
    /// The key.
    pub key: Vec<usize>,
    /// By which time rows are ordered.
    pub order: DeduplicateOrder,
    /// Which row is kept.
    pub keep: Keep,
    /// Whether the first row by event time is emitted once, when the watermark has passed it, and
    /// not updated by rows that are earlier but come later.
    pub insert_only: bool,
    /// Whether the reader wants `-U`.
    pub generate_update_before: bool,
    /// Whether the reader tells `+I` from `+U`.
    pub generate_insert: bool,
    /// `table.exec.state.ttl`, ms.
    pub ttl_ms: Option<i64>,
    /// Rows of a bundle, when mini-batch is on.
    pub mini_batch: Option<usize>,
}

/// Makes the operator for `spec`.
///
/// # Errors
/// When a type has no row form.
pub fn deduplicate(spec: &DeduplicateSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
    Ok(match (spec.order, spec.keep) {
        (DeduplicateOrder::Proctime, Keep::FirstRow) => {
            Box::new(ProctimeFirst::new(spec, context)?)
        }
        (DeduplicateOrder::Proctime, Keep::LastRow) => {
            let operator = ProctimeLast::new(spec, context)?;
            match spec.mini_batch {
                Some(size) => Box::new(LastPerKey::new(operator, &spec.schema, &spec.key, size)?),
                None => Box::new(operator),
            }
        }
        (DeduplicateOrder::Rowtime(time), Keep::FirstRow) if spec.insert_only => {
            Box::new(RowtimeFirst::new(spec, time, context)?)
        }
        (DeduplicateOrder::Rowtime(time), _) => {
            Box::new(RowtimeUpdating::new(spec, time, context)?)
        }
    })
}

#[cfg(test)]
mod tests;
