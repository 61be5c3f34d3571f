//! `GroupWindowAggregate`: `GROUP BY TUMBLE(..)`, `HOP(..)` and `SESSION(..)`, which may be emitted
//! before they are over and again for late rows.
//!
//! Without such an emit strategy it is a [`WindowAggregate`](super::window_aggregate). With one, each
//! window of each group remembers what it has emitted, and is kept until the allowed lateness is over.

mod firing;

use self::firing::FiringWindows;
use super::window_aggregate::{WindowAggregateSpec, window_aggregate};
use super::{Operator, OperatorContext};
use crate::error::Result;

/// `table.exec.emit.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EmitStrategy {
    /// How long after a change a window is emitted before it is over, ms; 0 is at once. `None`: not.
    pub early_fire_delay_ms: Option<i64>,
    /// How long after a change a window is emitted when it is over, ms; 0 is at once. `None`: not.
    pub late_fire_delay_ms: Option<i64>,
    /// How late rows may be, ms. 0 without late firing.
    pub allow_lateness_ms: i64,
    /// Whether the reader wants `-U`.
    pub generate_update_before: bool,
}

impl EmitStrategy {
    /// Whether windows are emitted more than once.
    #[must_use]
    pub fn produces_updates(&self) -> bool {
        self.early_fire_delay_ms.is_some() || self.late_fire_delay_ms.is_some()
    }
}

/// Makes the operator for `spec`.
///
/// # Errors
/// When a type has no row form.
pub fn group_window_aggregate(
    spec: &WindowAggregateSpec,
    emit: EmitStrategy,
    context: &OperatorContext,
) -> Result<Box<dyn Operator>> {
    if emit.produces_updates() {
        return Ok(Box::new(FiringWindows::new(spec, emit, context)?));
    }
    window_aggregate(spec, context)
}

#[cfg(test)]
mod tests;
