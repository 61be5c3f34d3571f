//! From a parsed query to a stream plan.
//!
//! 1. [`binder`]: names and types resolved, subqueries turned into joins: a [`logical::LogicalPlan`],
//! 2. [`rewrite`]: filters pushed down, Top-N found, columns pruned,
//! 3. [`physical`]: operators chosen, changelog modes and keys derived: a [`physical::StreamPlan`],
//! 4. [`explain`]: the plan as text; [`state_growth`]: what of it grows without end; [`translate`]: the
//!    plan as a [`crate::graph::Graph`].

pub mod binder;
pub mod explain;
pub mod logical;
pub mod match_recognize;
pub mod physical;
pub mod rewrite;
pub mod state_growth;
pub mod translate;
