//! What settings could do for a plan.

use super::physical::line;
use crate::plan::physical::{StreamNode, StreamPlan};

/// The advice on all plans, numbered; or that there is none.
#[must_use]
pub fn text<'p>(plans: impl Iterator<Item = &'p StreamPlan>) -> String {
    let mut advice = Vec::new();
    for plan in plans {
        collect(plan, &mut advice);
    }
    if advice.is_empty() {
        return "No available advice...\n".into();
    }
    let numbered = advice.iter().enumerate();
    numbered
        .map(|(i, text)| format!("advice[{}]: {text}\n", i + 1))
        .collect()
}

fn collect(plan: &StreamPlan, advice: &mut Vec<String>) {
    let keeps = match &plan.node {
        StreamNode::GroupAggregate { keys, ttl, .. } if !keys.is_empty() => {
            ttl.is_none().then_some("a row a key")
        }
        StreamNode::Join { left, right, .. } => {
            (left.ttl.is_none() || right.ttl.is_none()).then_some("all rows of both inputs")
        }
        _ => None,
    };
    if let Some(keeps) = keeps {
        advice.push(format!(
            "[ADVICE] {} keeps {keeps} for ever. If old ones may be forgotten, set \
             'table.exec.state.ttl', or give this operator a STATE_TTL hint; if only what is near in \
             time counts, use a window or an interval join.",
            line(plan)
        ));
    }
    for input in &plan.inputs {
        collect(input, advice);
    }
}
