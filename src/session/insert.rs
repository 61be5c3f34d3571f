//! INSERT: the query's columns fitted to the table's, and the jobs that run.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{InsertJob, Session};
use crate::catalog::{CatalogEntry, ColumnDefinition, ColumnKind, TableDefinition};
use crate::error::{Error, Result, did_you_mean};
use crate::expr::Expr;
use crate::plan::binder::object_parts;
use crate::plan::logical::LogicalPlan;
use crate::plan::physical::{ConflictAction, SinkTarget, StreamPlan};
use crate::plan::state_growth::{ADVICE, state_growth};
use crate::plan::translate::Translator;
use crate::runtime::job::Job;
use crate::sql::Statement;
use crate::sql::ast::{ConflictStrategy, Insert};
use crate::types::{Column, Schema, TypeKind, coerce};

/// An INSERT that has been planned and not been started.
pub(crate) struct PlannedInsert {
    plan: StreamPlan,
    /// Path of the table, for the job's name.
    target: String,
}

impl Session {
    pub(super) fn plan_inserts(&self, inserts: &[Insert]) -> Result<Vec<PlannedInsert>> {
        let plan = |insert| {
            Ok(PlannedInsert {
                plan: self.plan_insert(insert)?,
                target: self.insert_target(insert)?.path.to_string(),
            })
        };
        inserts.iter().map(plan).collect()
    }

    /// Plans an INSERT into a table that need not be in a catalog.
    pub(super) fn plan_insert_into(
        &self,
        insert: &Insert,
        table: Arc<TableDefinition>,
    ) -> Result<PlannedInsert> {
        let target = table.path.to_string();
        let plan = self.plan_bound(self.bind_insert_into(insert, table)?)?;
        Ok(PlannedInsert { plan, target })
    }

    /// Plans INSERTs that are to run as one job with others; `None` for a statement that is none, or
    /// that `table.dml-sync` makes wait for its end.
    pub(crate) fn plan_insert_of(
        &self,
        statement: &Statement,
    ) -> Result<Option<Vec<PlannedInsert>>> {
        let inserts = match statement {
            Statement::Insert(insert) => std::slice::from_ref(insert),
            Statement::StatementSet(inserts) => inserts,
            _ => return Ok(None),
        };
        if self.dml_sync() {
            return Ok(None);
        }
        self.plan_inserts(inserts).map(Some)
    }

    /// Starts one job for INSERTs that have been planned: they share scans, checkpoints and their end.
    pub(crate) fn start_planned(&mut self, inserts: Vec<PlannedInsert>) -> Result<InsertJob> {
        let job = self.start(inserts)?;
        self.tell(&job);
        self.jobs.push(job.clone());
        Ok(job)
    }

    /// Starts one job for INSERTs that have been planned.
    pub(super) fn start(&self, inserts: Vec<PlannedInsert>) -> Result<InsertJob> {
        for insert in &inserts {
            self.warn_of_growth(&format!("INSERT INTO {}", insert.target), &insert.plan);
        }
        let (plans, targets): (Vec<_>, Vec<_>) =
            inserts.into_iter().map(|i| (i.plan, i.target)).unzip();
        let mut translator = Translator::new(&self.config);
        translator.add_inserts(plans)?;
        let name = format!("insert-into_{}", targets.join(","));
        let mut config = self.job_config(&name);
        let place = self.add_checkpoints(&mut config)?;
        let handle = Job::start(translator.finish(), config)?;
        let now_ms = self.context.clock.now_ms();
        Ok(InsertJob::new(name, now_ms, handle, place))
    }

    /// Says what of a plan that is about to run grows without end.
    pub(super) fn warn_of_growth(&self, what: &str, plan: &StreamPlan) {
        let growth = state_growth(plan, &self.config);
        if growth.is_empty() {
            return;
        }
        let lines = crate::plan::state_growth::lines(&growth).join("\n  ");
        tracing::warn!("{what}: state grows without end; {ADVICE}\n  {lines}");
    }

    fn insert_target(&self, insert: &Insert) -> Result<Arc<TableDefinition>> {
        let path = self.catalogs.resolve(&object_parts(&insert.table)?)?;
        match self.catalogs.get(&path) {
            Some(CatalogEntry::Table(table)) => Ok(Arc::clone(table)),
            Some(CatalogEntry::View(_)) => Err(Error::plan(format!(
                "'{path}' is a view: it cannot be written to"
            ))),
            None => {
                let names = self.catalogs.names(&path.catalog, &path.database);
                let error = Error::plan(format!(
                    "Cannot find table '{path}' in any of the catalogs [{}], nor as a temporary \
                     table.",
                    self.catalogs.catalog_names().join(", ")
                ));
                Err(
                    match did_you_mean(&path.name, names.iter().map(String::as_str)) {
                        Some(close) => error.hint(format!("did you mean `{close}`?")),
                        None => error,
                    },
                )
            }
        }
    }

    pub(super) fn plan_insert(&self, insert: &Insert) -> Result<StreamPlan> {
        self.plan_bound(self.bind_insert(insert)?)
    }

    fn plan_bound(&self, (plan, target): (LogicalPlan, SinkTarget)) -> Result<StreamPlan> {
        let plan = crate::plan::rewrite::rewrite(plan);
        self.planner().plan_insert(&plan, &target)
    }

    /// The rows of an INSERT, fitted to its table, and the table.
    pub(super) fn bind_insert(&self, insert: &Insert) -> Result<(LogicalPlan, SinkTarget)> {
        if insert.overwrite {
            return Err(
                Error::plan("Streaming mode not support overwrite.").hint("use INSERT INTO")
            );
        }
        self.bind_insert_into(insert, self.insert_target(insert)?)
    }

    /// As [`bind_insert`](Self::bind_insert), with a table that need not be in a catalog.
    pub(super) fn bind_insert_into(
        &self,
        insert: &Insert,
        table: Arc<TableDefinition>,
    ) -> Result<(LogicalPlan, SinkTarget)> {
        if table.distribution.is_some() {
            return Err(Error::plan(format!(
                "Table '{}' is distributed into buckets, but its connector does not write buckets.",
                table.path
            ))
            .hint("leave DISTRIBUTED BY out"));
        }
        let query = self.binder().bind(&insert.source.query)?;
        if matches!(
            &*insert.source.query.body,
            sqlparser::ast::SetExpr::Select(_)
        ) {
            refuse_untyped(&query.schema)?;
        }
        let mapped = self.map_columns(query, insert, &table)?;
        let mut options: IndexMap<String, String> = table.options.clone();
        options.extend(
            insert
                .hints
                .iter()
                .map(|o| (o.key.clone(), o.value.clone())),
        );
        let on_conflict = insert.on_conflict.map(|c| match c {
            ConflictStrategy::Nothing => ConflictAction::Nothing,
            ConflictStrategy::Error => ConflictAction::Error,
            ConflictStrategy::Deduplicate => ConflictAction::Deduplicate,
        });
        let target = SinkTarget {
            table,
            options,
            on_conflict,
        };
        Ok((mapped, target))
    }

    /// The query's columns as the table's writable columns.
    fn map_columns(
        &self,
        query: LogicalPlan,
        insert: &Insert,
        table: &TableDefinition,
    ) -> Result<LogicalPlan> {
        let writable: Vec<&ColumnDefinition> = table
            .columns
            .iter()
            .filter(|c| match &c.kind {
                ColumnKind::Physical => true,
                ColumnKind::Metadata { is_virtual, .. } => !is_virtual,
                ColumnKind::Computed(_) => false,
            })
            .collect();
        let fixed = insert
            .partition
            .iter()
            .map(|(name, value)| (name.value.clone(), value))
            .map(|(name, value)| {
                let bound = self.binder().bind_scalar(value, &Schema::default())?;
                Ok((name, bound))
            })
            .collect::<Result<Vec<_>>>()?;
        for (i, (name, _)) in fixed.iter().enumerate() {
            if fixed[..i].iter().any(|(other, _)| other == name)
                || insert.columns.iter().any(|c| c.value == *name)
            {
                return Err(Error::plan(format!(
                    "Target column '{name}' is assigned more than once"
                )));
            }
            if !table.partitioned_by.contains(name) {
                return Err(Error::plan(format!(
                    "Static partition column '{name}' should be in the partition keys list [{}] for \
                     table '{}'.",
                    table.partitioned_by.join(", "),
                    table.path
                )));
            }
        }
        let targets = targets(insert, table, &writable, &fixed)?;
        check_types(&query, &targets, table)?;
        let mut exprs = Vec::new();
        let mut schema = Schema::default();
        // Sinks get the physical columns first.
        let is_physical = |c: &&&ColumnDefinition| c.kind == ColumnKind::Physical;
        let physical = writable.iter().filter(is_physical);
        let metadata = writable.iter().filter(|c| !is_physical(c));
        for column in physical.chain(metadata) {
            let position = targets.iter().position(|t| t.name == column.name);
            let constant = fixed.iter().find(|(name, _)| *name == column.name);
            let expr = match (position, constant) {
                (_, Some((_, value))) => value.clone().cast_to(&column.data_type),
                (Some(i), None) => query.column(i).cast_to(&column.data_type),
                (None, None) => missing_value(column, table)?,
            };
            schema
                .columns
                .push(Column::new(column.name.clone(), expr.data_type.clone()));
            exprs.push(expr);
        }
        Ok(query.project(exprs, schema))
    }
}

/// The columns that the query's columns go to, in the query's order.
fn targets<'t>(
    insert: &Insert,
    table: &TableDefinition,
    writable: &[&'t ColumnDefinition],
    fixed: &[(String, Expr)],
) -> Result<Vec<&'t ColumnDefinition>> {
    if insert.columns.is_empty() {
        let rest = writable
            .iter()
            .filter(|c| !fixed.iter().any(|(name, _)| *name == c.name));
        return Ok(rest.copied().collect());
    }
    let mut found: Vec<&ColumnDefinition> = Vec::new();
    for ident in &insert.columns {
        let name = &ident.value;
        if found.iter().any(|c| c.name == *name) {
            return Err(Error::plan(format!(
                "Target column '{name}' is assigned more than once"
            )));
        }
        let Some(column) = writable.iter().find(|c| c.name == *name) else {
            let error = Error::plan(format!("Unknown target column '{name}'"));
            let known = table.column(name).is_some();
            let names = writable.iter().map(|c| c.name.as_str());
            return Err(match did_you_mean(name, names) {
                Some(close) if !known => error.hint(format!("did you mean `{close}`?")),
                _ if known => error.hint("computed and virtual columns cannot be written"),
                _ => error,
            });
        };
        found.push(column);
    }
    Ok(found)
}

/// Refuses columns that are NULL and nothing else: they have no type.
pub(super) fn refuse_untyped(schema: &Schema) -> Result<()> {
    match schema
        .columns
        .iter()
        .find(|c| c.data_type.kind == TypeKind::Null)
    {
        None => Ok(()),
        Some(column) => Err(Error::plan("Illegal use of 'NULL'").hint(format!(
            "give column `{}` a type: CAST(NULL AS INT)",
            column.name
        ))),
    }
}

fn missing_value(column: &ColumnDefinition, table: &TableDefinition) -> Result<Expr> {
    if !column.data_type.nullable {
        return Err(Error::plan(format!(
            "Column '{}' of '{}' has no default value and does not allow NULLs",
            column.name, table.path
        ))
        .hint("name the column in the INSERT and give it a value"));
    }
    let value = datafusion::common::ScalarValue::try_from(&column.data_type.to_arrow())?;
    Ok(Expr::literal(value, column.data_type.clone()))
}

fn check_types(
    query: &LogicalPlan,
    targets: &[&ColumnDefinition],
    table: &TableDefinition,
) -> Result<()> {
    let mismatch = |cause: String| {
        let query_schema: Vec<_> = query
            .schema
            .columns
            .iter()
            .map(|c| format!("{}: {}", c.name, c.data_type))
            .collect();
        let sink_schema: Vec<_> = targets
            .iter()
            .map(|c| format!("{}: {}", c.name, c.data_type))
            .collect();
        Error::plan(format!(
            "Column types of query result and sink for '{}' do not match.\nCause: {cause}\n\nQuery \
             schema: [{}]\nSink schema:  [{}]",
            table.path,
            query_schema.join(", "),
            sink_schema.join(", ")
        ))
    };
    if query.schema.len() != targets.len() {
        return Err(mismatch("Different number of columns.".into()));
    }
    for (i, (column, target)) in query.schema.columns.iter().zip(targets).enumerate() {
        if !coerce::assignable(&column.data_type, &target.data_type) {
            return Err(mismatch(format!(
                "Incompatible types for sink column '{}' at position {}.",
                target.name,
                i + 1
            ))
            .hint(format!(
                "cast it: CAST({} AS {})",
                column.name, target.data_type.kind
            )));
        }
    }
    Ok(())
}
