//! Fits a plan to the table that it is written to: modes, keys, conflicts, constraints.

use std::sync::Arc;

use indexmap::IndexMap;

use super::build::{describe as describe_table, pass_through};
use super::keys::{Key, is_same_set, is_subset, upsert_keys};
use super::{Planner, StreamNode, StreamPlan, changelog};
use crate::catalog::{ColumnKind, TableDefinition};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::plan::logical::LogicalPlan;
use crate::types::DataType;

/// What happens when rows of different upsert keys meet in one primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictAction {
    /// The last live row wins.
    Deduplicate,
    /// The job fails.
    Error,
    /// The first row stays.
    Nothing,
}

/// Where the rows of a plan go.
#[derive(Debug, Clone)]
pub struct SinkTarget {
    /// The table; the plan has its writable columns.
    pub table: Arc<TableDefinition>,
    /// Its options with hints.
    pub options: IndexMap<String, String>,
    /// `ON CONFLICT DO ..`.
    pub on_conflict: Option<ConflictAction>,
}

impl Planner<'_> {
    /// The plan of an INSERT.
    ///
    /// # Errors
    /// When the sink does not take the changes that the query makes, or a conflict clause is
    /// needed.
    pub fn plan_insert(&self, plan: &LogicalPlan, target: &SinkTarget) -> Result<StreamPlan> {
        let table = &target.table;
        let built = self.build_root(plan)?;
        let description = describe_table(table, &target.options, self.config)?;
        let sink = self.connectors.sink(&description).map_err(|e| {
            e.context(format!(
                "creating a sink for writing table '{}'",
                table.path
            ))
        })?;
        check_metadata(table, &sink.metadata())?;
        let requested = changelog::settle(built.clone(), true).mode;
        let accepted = sink.changelog_mode(requested);
        check_mode(table, &built, requested, accepted)?;
        let primary_key: Key = table
            .primary_key
            .as_ref()
            .map(|key| {
                key.columns
                    .iter()
                    .filter_map(|c| built.schema.index_of(c))
                    .collect()
            })
            .unwrap_or_default();
        let upsert = accepted.update_after && !accepted.update_before;
        let keys = upsert_keys(&built);
        let action = self.conflict_action(target, &built, &primary_key, &keys, accepted)?;
        // a sink whose key is not exactly the query's upsert key needs the old rows to delete them
        let same_key =
            primary_key.is_empty() || keys.iter().any(|key| is_same_set(key, &primary_key));
        let needs_before = accepted.update_before || !same_key;
        let mut plan = changelog::settle(built, needs_before || !upsert);
        let enforcer = crate::plan::translate::constraint_spec(&plan.schema, table, self.config);
        if enforcer.is_needed() {
            plan = pass_through(StreamNode::ConstraintEnforcer, plan, enforcer.schema);
        }
        if let Some(action) = action {
            let schema = plan.schema.clone();
            let unique_keys = vec![primary_key.clone()];
            let upsert_key = keys.first().cloned();
            plan = StreamPlan {
                node: StreamNode::SinkUpsertMaterializer {
                    primary_key: primary_key.clone(),
                    upsert_key,
                    action,
                },
                inputs: vec![plan],
                schema,
                mode: ChangelogMode::UPSERT,
                unique_keys,
            };
        }
        let plan = StreamPlan {
            node: StreamNode::Sink {
                table: Arc::clone(table),
                sink,
                primary_key,
            },
            schema: plan.schema.clone(),
            mode: plan.mode,
            unique_keys: Vec::new(),
            inputs: vec![plan],
        };
        self.resolve_nondeterminism(plan, false)
    }

    /// Whether changes have to be materialized by the sink's key, and how conflicts are settled.
    fn conflict_action(
        &self,
        target: &SinkTarget,
        plan: &StreamPlan,
        primary_key: &[usize],
        keys: &[Key],
        accepted: ChangelogMode,
    ) -> Result<Option<ConflictAction>> {
        let setting = self
            .config
            .get("table.exec.sink.upsert-materialize")
            .unwrap_or("AUTO");
        if primary_key.is_empty() {
            return Ok(None);
        }
        let action = target.on_conflict;
        if action.is_some() && accepted.is_append() {
            return Err(Error::plan(format!(
                "ON CONFLICT clause is only allowed for upsert sinks. The sink '{}' is not an upsert \
                 sink because it only accepts INSERT (append-only) changes.",
                target.table.path
            )));
        }
        if matches!(
            action,
            Some(ConflictAction::Error | ConflictAction::Nothing)
        ) {
            check_watermarks(plan, action)?;
        }
        if setting.eq_ignore_ascii_case("FORCE") {
            return Ok(Some(action.unwrap_or(ConflictAction::Deduplicate)));
        }
        let differs = !accepted.is_append() && !keys.iter().any(|key| is_subset(key, primary_key));
        if setting.eq_ignore_ascii_case("NONE") || !differs {
            return Ok(None);
        }
        if let Some(action) = action {
            // the sink itself replaces the row before
            let added = action == ConflictAction::Deduplicate && plan.mode.is_append();
            return Ok((!added).then_some(action));
        }
        if !self
            .config
            .bool("table.exec.sink.require-on-conflict", true)
        {
            return Ok(Some(ConflictAction::Deduplicate));
        }
        let names = |key: &[usize]| {
            let names: Vec<_> = key
                .iter()
                .map(|i| plan.schema.columns[*i].name.as_str())
                .collect();
            format!("[{}]", names.join(", "))
        };
        let table = &target.table.path;
        Err(Error::plan(format!(
            "The query has an upsert key that differs from the primary key of the sink table \
             '{table}'. Primary key: {}, upsert key: {}. This can lead to non-deterministic results \
             when multiple records with different upsert keys map to the same primary key.",
            names(primary_key),
            keys.first().map(|k| names(k)).unwrap_or_default(),
        ))
        .hint(
            "add ON CONFLICT DO DEDUPLICATE (the latest row wins; keeps the whole history), ON \
             CONFLICT DO ERROR (fail) or ON CONFLICT DO NOTHING (keep the first row) to the INSERT",
        ))
    }
}

fn check_mode(
    table: &TableDefinition,
    plan: &StreamPlan,
    requested: ChangelogMode,
    accepted: ChangelogMode,
) -> Result<()> {
    let updates = requested.has_updates() && !accepted.update_after;
    let deletes = requested.delete && !accepted.delete;
    if !updates && !deletes {
        return Ok(());
    }
    let what = match (updates, deletes) {
        (true, true) => "update and delete",
        (true, false) => "update",
        _ => "delete",
    };
    Err(Error::plan(format!(
        "Table sink '{}' doesn't support consuming {what} changes which is produced by node {}",
        table.path,
        changelog::describe(plan)
    ))
    .hint(
        "write to a sink that takes updates (a changelog format such as debezium-json, or a table \
         with a PRIMARY KEY on an upsert connector), or make the query append-only, for example with \
         a window aggregation",
    ))
}

/// Refuses metadata columns that the sink cannot write.
fn check_metadata(table: &TableDefinition, writable: &[(String, DataType)]) -> Result<()> {
    for column in &table.columns {
        let ColumnKind::Metadata {
            key,
            is_virtual: false,
        } = &column.kind
        else {
            continue;
        };
        let key = key.as_ref().unwrap_or(&column.name);
        if !writable.iter().any(|(name, _)| name == key) {
            return Err(Error::plan(format!(
                "Table '{}' declares the metadata column '{}', which its connector cannot write. If \
                 the column should not be persisted, it can be declared with the VIRTUAL keyword.",
                table.path, column.name
            )));
        }
    }
    Ok(())
}

fn check_watermarks(plan: &StreamPlan, action: Option<ConflictAction>) -> Result<()> {
    let mut missing = Vec::new();
    sources_without_watermark(plan, false, &mut missing);
    if missing.is_empty() {
        return Ok(());
    }
    let action = if action == Some(ConflictAction::Error) {
        "ERROR"
    } else {
        "NOTHING"
    };
    Err(Error::plan(format!(
        "ON CONFLICT DO {action} requires all source tables to define watermarks, but the following \
         source(s) do not: {}",
        missing.join(", ")
    ))
    .hint("declare WATERMARK FOR in these tables, or use ON CONFLICT DO DEDUPLICATE"))
}

fn sources_without_watermark(plan: &StreamPlan, assigned: bool, missing: &mut Vec<String>) {
    match &plan.node {
        StreamNode::TableSourceScan { table, .. } if !assigned && !table.has_source_watermark() => {
            missing.push(table.path.to_string());
        }
        node => {
            let assigned = assigned || matches!(node, StreamNode::WatermarkAssigner { .. });
            for input in &plan.inputs {
                sources_without_watermark(input, assigned, missing);
            }
        }
    }
}
