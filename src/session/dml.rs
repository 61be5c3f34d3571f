//! UPDATE and DELETE, which `memory` tables understand. Flink has them in batch mode only.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use sqlparser::ast::{Expr as SqlExpr, ObjectName};

use super::{Session, StatementResult};
use crate::catalog::{CatalogEntry, ColumnKind, TableDefinition};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result, did_you_mean};
use crate::expr::eval::Compiled;
use crate::functions::EvalContext;
use crate::plan::physical::describe;
use crate::sql::ast::Update;
use crate::types::coerce;

impl Session {
    pub(super) fn update(&mut self, update: &Update) -> Result<StatementResult> {
        let table = self.changeable(&update.table, "UPDATE")?;
        let described = describe(&table, &table.options, &self.config)?;
        let schema = &described.physical;
        let mut values: Vec<Option<Compiled>> = schema.columns.iter().map(|_| None).collect();
        let environment = self.config.environment();
        for (name, value) in &update.assignments {
            let Some(i) = schema.index_of(&name.value) else {
                let error = Error::plan(format!("Unknown target column '{}'", name.value));
                let names = schema.columns.iter().map(|c| c.name.as_str());
                return Err(match did_you_mean(&name.value, names) {
                    Some(close) => error.hint(format!("did you mean `{close}`?")),
                    None => error,
                });
            };
            if values[i].is_some() {
                return Err(Error::plan(format!(
                    "Target column '{}' is assigned more than once",
                    name.value
                )));
            }
            let target = &schema.columns[i].data_type;
            let bound = self.binder().bind_scalar(value, schema)?;
            if !coerce::assignable(&bound.data_type, target) {
                return Err(Error::plan(format!(
                    "Cannot assign to target field '{}' of type {target} from source of type {}",
                    name.value, bound.data_type
                ))
                .hint(format!("cast it: CAST(.. AS {})", target.kind)));
            }
            values[i] = Some(Compiled::new(&bound.cast_to(target), &environment)?);
        }
        self.change(&table, update.selection.as_ref(), |rows, context| {
            let columns = rows.columns().iter().zip(&values);
            let columns: Vec<ArrayRef> = columns
                .map(|(old, value)| match value {
                    Some(value) => value.evaluate_array(rows, context),
                    None => Ok(Arc::clone(old)),
                })
                .collect::<Result<_>>()?;
            for (column, declared) in columns.iter().zip(&schema.columns) {
                if !declared.data_type.nullable && column.null_count() > 0 {
                    return Err(Error::execution(format!(
                        "Column '{}' is NOT NULL, however, a null value is being written into it.",
                        declared.name
                    )));
                }
            }
            let new = RecordBatch::try_new(rows.schema(), columns)?;
            // old and new rows take turns
            let n = u32::try_from(rows.num_rows()).unwrap_or(u32::MAX);
            let both = concat_batches(&rows.schema(), [rows, &new])?;
            let order: UInt32Array = (0..n).flat_map(|i| [i, n + i]).collect();
            let ops = (0..n).flat_map(|_| [RowKind::UpdateBefore, RowKind::UpdateAfter]);
            ChangeBatch::try_new(take_record_batch(&both, &order)?, ops.collect())
        })
    }

    pub(super) fn delete(
        &mut self,
        name: &ObjectName,
        selection: Option<&SqlExpr>,
    ) -> Result<StatementResult> {
        let table = self.changeable(name, "DELETE")?;
        self.change(&table, selection, |rows, _| {
            let ops = vec![RowKind::Delete; rows.num_rows()];
            ChangeBatch::try_new(rows.clone(), ops)
        })
    }

    /// The table that UPDATE or DELETE means.
    fn changeable(&self, name: &ObjectName, statement: &str) -> Result<Arc<TableDefinition>> {
        let path = self.path_of(name)?;
        let table = match self.catalogs.expect(&path)? {
            CatalogEntry::Table(table) => Arc::clone(table),
            CatalogEntry::View(_) => {
                return Err(Error::plan(format!(
                    "'{path}' is a view: it cannot be written to"
                )));
            }
        };
        let physical = table.columns.iter().all(|c| {
            !matches!(
                c.kind,
                ColumnKind::Metadata {
                    is_virtual: false,
                    ..
                }
            )
        });
        if !physical || table.options.get("connector").is_none_or(|c| c != "memory") {
            return Err(Error::plan(format!(
                "{statement} statement is not supported for streaming mode now."
            ))
            .hint("tables WITH ('connector' = 'memory') can be changed"));
        }
        Ok(table)
    }

    /// Applies what `make` makes of the rows that `selection` picks.
    fn change(
        &self,
        table: &TableDefinition,
        selection: Option<&SqlExpr>,
        make: impl FnOnce(&RecordBatch, &EvalContext) -> Result<ChangeBatch>,
    ) -> Result<StatementResult> {
        let described = describe(table, &table.options, &self.config)?;
        let content = self.context.memory.open(&described)?;
        let environment = self.config.environment();
        let condition = selection
            .map(|condition| {
                let bound = self.binder().bind_scalar(condition, &described.physical)?;
                Compiled::new(&bound, &environment)
            })
            .transpose()?;
        let context = |rows: usize| EvalContext {
            rows,
            now_ms: self.context.clock.now_ms(),
            watermark: i64::MIN,
        };
        content.update(|rows| {
            let picked = match &condition {
                Some(condition) => {
                    let mask = condition.evaluate_predicate(&rows, &context(rows.num_rows()))?;
                    filter_record_batch(&rows, &mask)?
                }
                None => rows,
            };
            make(&picked, &context(picked.num_rows()))
        })?;
        Ok(StatementResult::Done)
    }
}
