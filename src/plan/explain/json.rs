//! The operators of plans as JSON, in the form of Flink's execution plan.

use serde_json::{Value, json};

use super::physical::{exchanges, line};
use crate::plan::physical::StreamPlan;

/// All plans as one document: `{"nodes": [..]}`, inputs before those that read them.
#[must_use]
pub fn text<'p>(plans: impl Iterator<Item = &'p StreamPlan>) -> String {
    let mut nodes = Vec::new();
    for plan in plans {
        add(plan, &mut nodes);
    }
    // maps of texts and numbers always have a JSON form
    serde_json::to_string_pretty(&json!({ "nodes": nodes })).unwrap_or_default()
}

/// Adds a plan behind its inputs; answers its id.
fn add(plan: &StreamPlan, nodes: &mut Vec<Value>) -> usize {
    let inputs: Vec<usize> = plan.inputs.iter().map(|input| add(input, nodes)).collect();
    let exchanges = exchanges(plan);
    let predecessors: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(i, id)| {
            let exchange = exchanges.get(i).cloned().flatten();
            let ship = exchange.unwrap_or_else(|| "forward".into());
            json!({ "id": id, "ship_strategy": ship })
        })
        .collect();
    let id = nodes.len() + 1;
    let mut node = json!({
        "id": id,
        "type": plan.node.noun(),
        "pact": match (plan.inputs.len(), plan.node.noun()) {
            (0, _) => "Data Source",
            (_, "Sink" | "Collect") => "Data Sink",
            _ => "Operator",
        },
        "contents": line(plan),
        "changelogMode": plan.mode.to_string(),
    });
    if let (false, Value::Object(fields)) = (predecessors.is_empty(), &mut node) {
        fields.insert("predecessors".into(), Value::Array(predecessors));
    }
    nodes.push(node);
    id
}
