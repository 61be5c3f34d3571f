//! Finds what would give a withdrawal another content than its insertion had: expressions that
//! depend on chance or on the clock, and lookups of tables that change, above updating input.
//!
//! As Flink's strategy TRY_RESOLVE of `table.optimizer.non-deterministic-update.strategy`: from the
//! sink down, each node says which columns of its input must come out the same when a row is
//! withdrawn. A lookup join that cannot promise it remembers what it gave; an expression that
//! cannot is refused by name. Where the input only grows nothing is asked for.

use super::keys::{Key, is_subset, upsert_keys};
use super::{StreamNode, StreamPlan};
use crate::catalog::ColumnKind;
use crate::error::{Error, Result};
use crate::expr::{Expr, ExprKind};
use crate::functions::Determinism;
use crate::operators::join::UniqueKey;
use crate::operators::rank::RankStrategy;
use crate::plan::explain;
use crate::plan::logical::TableCall;
use crate::types::TimeAttribute;

/// The plan of an INSERT, or of a query whose reader matches withdrawals with insertions by all
/// columns (`complete`), with what can be resolved.
///
/// # Errors
/// When something cannot be.
pub(super) fn resolve(plan: StreamPlan, complete: bool) -> Result<StreamPlan> {
    let required = match &plan.node {
        StreamNode::Sink { primary_key, .. } => {
            let materialized = has_materializer(plan.input());
            let keyed = !primary_key.is_empty() && !materialized;
            let input = plan.input();
            let required = match keyed {
                true => primary_key.clone(),
                false => all(input),
            };
            return below(plan, |_, input| match input.mode.is_append() {
                true => Key::new(),
                false => required.clone(),
            });
        }
        _ if complete && !plan.mode.is_append() => all(&plan),
        _ => Key::new(),
    };
    visit(plan, &required)
}

fn has_materializer(plan: &StreamPlan) -> bool {
    match &plan.node {
        StreamNode::SinkUpsertMaterializer { .. } => true,
        StreamNode::ConstraintEnforcer => has_materializer(plan.input()),
        _ => false,
    }
}

fn all(plan: &StreamPlan) -> Key {
    (0..plan.schema.len()).collect()
}

/// The plan with its inputs resolved; `required` says what of input `i` must not change.
fn below(plan: StreamPlan, required: impl Fn(usize, &StreamPlan) -> Key) -> Result<StreamPlan> {
    let StreamPlan {
        node,
        inputs,
        schema,
        mode,
        unique_keys,
    } = plan;
    let inputs = inputs
        .into_iter()
        .enumerate()
        .map(|(i, input)| {
            let required = required(i, &input);
            refuse_proctime(&input, &required)?;
            visit(input, &required)
        })
        .collect::<Result<_>>()?;
    Ok(StreamPlan {
        node,
        inputs,
        schema,
        mode,
        unique_keys,
    })
}

fn visit(plan: StreamPlan, required: &[usize]) -> Result<StreamPlan> {
    let append = plan.inputs.iter().all(|input| input.mode.is_append());
    let nothing = |_: usize, _: &StreamPlan| Key::new();
    match &plan.node {
        StreamNode::TableSourceScan { .. } => {
            refuse_metadata(&plan, required)?;
            Ok(plan)
        }
        _ if append && !plan.inputs.is_empty() => below(plan, nothing),
        StreamNode::Calc {
            condition,
            projection,
        } => {
            if required.is_empty() {
                return below(plan, nothing);
            }
            if let Some(condition) = condition {
                refuse_condition(&plan, condition, plan.input())?;
            }
            refuse_columns(&plan, required.iter().map(|i| (*i, &projection[*i])))?;
            let mut read: Key = required
                .iter()
                .flat_map(|i| projection[*i].columns())
                .collect();
            read.sort_unstable();
            read.dedup();
            below(plan, |_, _| read.clone())
        }
        StreamNode::Correlate {
            call, condition, ..
        } => {
            if required.is_empty() {
                return below(plan, nothing);
            }
            if let Some(condition) = condition {
                refuse_condition(&plan, condition, plan.input())?;
            }
            let width = plan.input().schema.len();
            let args = match call {
                TableCall::Unnest { collection, .. } => std::slice::from_ref(collection),
                TableCall::Function { args, .. } => args,
            };
            refuse_columns(&plan, args.iter().map(|e| (width, e)))?;
            let mut read: Key = required.iter().copied().filter(|i| *i < width).collect();
            read.extend(args.iter().flat_map(Expr::columns));
            read.sort_unstable();
            read.dedup();
            below(plan, |_, _| read.clone())
        }
        StreamNode::LookupJoin(_) => lookup_join(plan, required),
        StreamNode::Join {
            left,
            right,
            condition,
            ..
        } => {
            if let Some(condition) = condition {
                refuse_condition(&plan, condition, &plan)?;
            }
            let width = plan.inputs[0].schema.len();
            let specs = [left, right].map(|side| side.unique_key.clone());
            let required = required.to_vec();
            below(plan, move |i, input| match specs[i] {
                _ if input.mode.is_append() => Key::new(),
                // a row is found by its key
                UniqueKey::JoinKey | UniqueKey::Columns(_) => of_side(&required, i, width),
                UniqueKey::None => all(input),
            })
        }
        StreamNode::TemporalJoin { condition, .. } => {
            if let Some(condition) = condition {
                refuse_condition(&plan, condition, &plan)?;
            }
            let width = plan.inputs[0].schema.len();
            let required = required.to_vec();
            below(plan, move |i, _| of_side(&required, i, width))
        }
        StreamNode::Rank {
            partition,
            order,
            strategy: RankStrategy::UpdateFast(key),
            ..
        } => {
            let order = order.iter().map(|k| k.column);
            let mut read: Key = partition.iter().chain(key).copied().chain(order).collect();
            read.sort_unstable();
            read.dedup();
            below(plan, |_, _| read.clone())
        }
        StreamNode::ChangelogNormalize { filter, .. } => {
            if let (Some(filter), false) = (filter, required.is_empty()) {
                refuse_condition(&plan, filter, plan.input())?;
            }
            below(plan, |_, _| required.to_vec())
        }
        StreamNode::Union
        | StreamNode::WatermarkAssigner { .. }
        | StreamNode::DropUpdateBefore
        | StreamNode::ConstraintEnforcer
        | StreamNode::SinkUpsertMaterializer { .. } => below(plan, |_, _| required.to_vec()),
        // columns that these add are made of what is required below anyway
        StreamNode::Expand { .. } | StreamNode::WindowTableFunction { .. } => {
            let width = plan.input().schema.len();
            below(plan, |_, _| {
                required.iter().copied().filter(|i| *i < width).collect()
            })
        }
        // the others take withdrawals off what they have added up, or find rows by all columns
        _ => below(plan, |_, input| match input.mode.is_append() {
            true => Key::new(),
            false => all(input),
        }),
    }
}

/// Of columns of a pair those of one side, as columns of that side.
fn of_side(required: &[usize], side: usize, width: usize) -> Key {
    let of_left = |i: &&usize| **i < width;
    match side {
        0 => required.iter().filter(of_left).copied().collect(),
        _ => {
            let right = required.iter().filter(|i| !of_left(i));
            right.map(|i| i - width).collect()
        }
    }
}

/// A lookup join can give other rows for the withdrawal: it remembers what it gave, unless nothing
/// of the table but the key that it was asked for is of interest.
fn lookup_join(mut plan: StreamPlan, required: &[usize]) -> Result<StreamPlan> {
    let StreamNode::LookupJoin(node) = &plan.node else {
        return Ok(plan);
    };
    let width = plan.input().schema.len();
    if !required.is_empty() {
        if let Some(condition) = &node.lookup.filter {
            refuse(condition, &node.lookup.columns.names(), &plan)?;
        }
        if let Some(condition) = &node.condition {
            refuse_condition(&plan, condition, &plan)?;
        }
    }
    let asked: Vec<usize> = node.lookup.keys.iter().map(|(column, _)| *column).collect();
    let is_asked = |i: usize| {
        let computed = node.lookup.computed.as_ref();
        let column = match computed {
            Some(exprs) => exprs[i].as_column(),
            None => Some(i),
        };
        column.is_some_and(|c| asked.contains(&node.lookup.projection[c]))
    };
    let of_table: Vec<usize> = of_side(required, 1, width);
    let stable = node.unique && of_table.iter().all(|i| is_asked(*i));
    let mut read = of_side(required, 0, width);
    if !of_table.is_empty() && !stable {
        let keys = upsert_keys(plan.input());
        let key = keys.into_iter().next().filter(|key| !key.is_empty());
        let key = key.unwrap_or_else(|| all(plan.input()));
        if let StreamNode::LookupJoin(node) = &mut plan.node {
            node.asynchronous = None;
            node.materialize = Some(key.clone());
        }
        read.extend(key);
        read.sort_unstable();
        read.dedup();
    }
    below(plan, |_, _| read.clone())
}

/// The name of the first function of an expression over `inputs` whose value depends on more than
/// the row.
fn changing(e: &Expr) -> Option<String> {
    let mut name = None;
    e.any(&mut |e| match &e.kind {
        ExprKind::Call { function, args }
            if function.determinism(args.len()) != Determinism::Deterministic =>
        {
            name = Some(function.name().to_string());
            true
        }
        _ => false,
    });
    name
}

fn reads_proctime(e: &Expr, input: &StreamPlan) -> bool {
    e.as_column().is_none()
        && e.columns().iter().any(|i| {
            let column = input.schema.columns.get(*i);
            column.is_some_and(|c| c.time == Some(TimeAttribute::Proctime))
        })
}

/// Refuses output columns whose expressions give something else each time.
fn refuse_columns<'a>(
    plan: &StreamPlan,
    columns: impl Iterator<Item = (usize, &'a Expr)>,
) -> Result<()> {
    let mut refused = Vec::new();
    for (i, e) in columns {
        let column = &plan.schema.columns[i];
        // a processing-time attribute is no value yet
        if column.time == Some(TimeAttribute::Proctime) {
            continue;
        }
        let function = match changing(e) {
            None if reads_proctime(e, plan.input()) => Some("PROCTIME".into()),
            found => found,
        };
        if let Some(function) = function {
            refused.push((column.name.as_str(), function));
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(unsatisfied(&refused, plan)),
    }
}

fn refuse_proctime(plan: &StreamPlan, required: &[usize]) -> Result<()> {
    // an attribute on its way through is looked at where it becomes a value
    if matches!(
        plan.node,
        StreamNode::TableSourceScan { .. } | StreamNode::Calc { .. }
    ) {
        return Ok(());
    }
    let refused: Vec<_> = required
        .iter()
        .map(|i| &plan.schema.columns[*i])
        .filter(|c| c.time == Some(TimeAttribute::Proctime))
        .map(|c| (c.name.as_str(), "PROCTIME".to_string()))
        .collect();
    match refused.is_empty() || plan.mode.is_append() {
        true => Ok(()),
        false => Err(unsatisfied(&refused, plan)),
    }
}

fn unsatisfied(columns: &[(&str, String)], plan: &StreamPlan) -> Error {
    let columns: Vec<_> = columns
        .iter()
        .map(|(column, function)| {
            format!("{column}(generated by non-deterministic function: {function} )")
        })
        .collect();
    Error::plan(format!(
        "The column(s): {} can not satisfy the determinism requirement for correctly processing \
         update message('UB'/'UA'/'D' in changelogMode, not 'I' only), this usually happens when \
         input node has no upsertKey(upsertKeys=[{{}}]) or current node outputs non-deterministic \
         update messages. Please consider removing these non-deterministic columns or making them \
         deterministic by using deterministic functions.\n\nrelated rel plan:\n{}",
        columns.join(", "),
        explain::tree(plan, true)
    ))
    .hint(
        "a withdrawal would have another value than the insertion: compute it before the updates, \
         or write to a table whose PRIMARY KEY is the key of the query",
    )
}

/// Refuses a condition over the columns of `inputs` that may hold once and not the next time.
fn refuse_condition(plan: &StreamPlan, condition: &Expr, inputs: &StreamPlan) -> Result<()> {
    if reads_proctime(condition, inputs) {
        return Err(condition_error(
            "PROCTIME",
            condition,
            &inputs.schema.names(),
            plan,
        ));
    }
    refuse(condition, &inputs.schema.names(), plan)
}

fn refuse(condition: &Expr, names: &[String], plan: &StreamPlan) -> Result<()> {
    match changing(condition) {
        None => Ok(()),
        Some(function) => Err(condition_error(&function, condition, names, plan)),
    }
}

fn condition_error(function: &str, condition: &Expr, names: &[String], plan: &StreamPlan) -> Error {
    let fits = condition.columns().iter().all(|i| *i < names.len());
    let text = match fits {
        true => condition.to_sql(names),
        false => condition.to_string(),
    };
    Error::plan(format!(
        "There exists non deterministic function: '{function}' in condition: '{text}' which may \
         cause wrong result in update pipeline.\n\nrelated rel plan:\n{}",
        explain::tree(plan, true)
    ))
    .hint("a row could pass when it is added and not when it is withdrawn")
}

/// Metadata of a withdrawal is that of the withdrawal's own message.
fn refuse_metadata(plan: &StreamPlan, required: &[usize]) -> Result<()> {
    let StreamNode::TableSourceScan {
        table, projection, ..
    } = &plan.node
    else {
        return Ok(());
    };
    if plan.mode.is_append() {
        return Ok(());
    }
    let stored: Vec<_> = table.stored_columns().collect();
    let key = plan.unique_keys.first().cloned().unwrap_or_default();
    let refused: Vec<_> = required
        .iter()
        .filter(|i| !is_subset(&[**i], &key))
        .map(|i| stored[projection[*i]])
        .filter(|column| matches!(column.kind, ColumnKind::Metadata { .. }))
        .map(|column| format!("'{}'", column.name))
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    Err(Error::plan(format!(
        "The metadata column(s): {} in cdc source may cause wrong result or error on downstream \
         operators, please consider removing these columns or use a non-cdc source that only has \
         insert messages.\nsource node:\n{}",
        refused.join(", "),
        explain::tree(plan, true)
    )))
}
