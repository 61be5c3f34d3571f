//! Rewrites of the logical plan that keep its meaning.
//!
//! Joins are never reordered: what a join emits, and when, is part of what the user wrote.

mod empty;
mod filters;
mod prune;
pub mod pushdown;

pub(crate) use filters::split;

use super::logical::LogicalPlan;

/// Pushes filters down, finds Top-N, and leaves out what gives no rows and columns that nobody reads.
#[must_use]
pub fn rewrite(plan: LogicalPlan) -> LogicalPlan {
    prune::prune_all(empty::without_empty(filters::push_down(plan)))
}
