//! EXPLAIN: what was written, what runs, and what is asked for beside it, in Flink's sections.
//!
//! - [`logical`]: the syntax tree with its names and types resolved, before anything is optimized,
//! - [`physical`]: the operators, their exchanges and changelog modes,
//! - [`json`]: the operators as JSON, for tools,
//! - [`advice`]: what the settings could do for the plan.

pub mod advice;
pub mod json;
pub mod logical;
pub mod physical;

pub(super) use physical::{join_name, window};
pub use physical::{line, tree};

use super::logical::LogicalPlan;
use super::physical::StreamPlan;
use crate::sql::ast::ExplainDetail;

/// One query or INSERT that is explained.
#[derive(Debug)]
pub struct Explained {
    /// As it was bound.
    pub logical: LogicalPlan,
    /// Full name of the table that an INSERT writes to.
    pub sink: Option<String>,
    /// As it runs.
    pub physical: StreamPlan,
}

/// The text of EXPLAIN, line by line.
#[must_use]
pub fn explain(all: &[Explained], details: &[ExplainDetail]) -> Vec<String> {
    let asks = |detail| details.contains(&detail);
    let mut text = String::from("== Abstract Syntax Tree ==\n");
    for one in all {
        text.push_str(&logical::tree(&one.logical, one.sink.as_deref()));
        text.push('\n');
    }
    let advised = asks(ExplainDetail::PlanAdvice);
    let title = if advised { " With Advice" } else { "" };
    text.push_str(&format!("== Optimized Physical Plan{title} ==\n"));
    for one in all {
        let modes = asks(ExplainDetail::ChangelogMode);
        text.push_str(&tree(&one.physical, modes));
        text.push('\n');
    }
    if advised {
        text.push_str(&advice::text(all.iter().map(|one| &one.physical)));
        text.push('\n');
    }
    if asks(ExplainDetail::EstimatedCost) {
        text.push_str(
            "No estimated cost: operators are chosen by keys and changelog modes, not by \
             statistics, which streams do not have.\n\n",
        );
    }
    text.push_str("== Optimized Execution Plan ==\n");
    for one in all {
        text.push_str(&tree(&one.physical, false));
        text.push('\n');
    }
    if asks(ExplainDetail::JsonExecutionPlan) {
        text.push_str("== Physical Execution Plan ==\n");
        text.push_str(&json::text(all.iter().map(|one| &one.physical)));
        text.push('\n');
    }
    text.trim_end().lines().map(str::to_string).collect()
}
