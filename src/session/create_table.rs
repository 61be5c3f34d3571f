//! CREATE TABLE, with columns, LIKE another table, or AS a query's rows.

use std::sync::Arc;

use indexmap::IndexMap;
use sqlparser::ast::Ident;

use super::declare::{Declaration, distribution};
use super::{Session, StatementResult};
use crate::catalog::{
    CatalogEntry, ColumnDefinition, ColumnKind, ObjectPath, TableDefinition, already_exists,
};
use crate::error::{Error, Result};
use crate::sql::ast::{CreateTable, Insert, Replace, SqlOption, SqlQuery};
use crate::types::{Schema, coerce};

/// Options by key; the last of equal keys counts, as in Flink.
pub(super) fn options(list: &[SqlOption]) -> IndexMap<String, String> {
    list.iter()
        .map(|o| (o.key.clone(), o.value.clone()))
        .collect()
}

impl Session {
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<StatementResult> {
        let path = self.path_of(&create.name)?;
        if let Some(query) = &create.as_query {
            return self.create_table_as(&path, create, query);
        }
        let exists = self.is_taken(&path, create.temporary);
        if exists && create.if_not_exists {
            return Ok(StatementResult::Done);
        }
        // only with AS does Flink replace a table
        if exists {
            return Err(already_exists(&path, create.temporary));
        }
        let mut declaration = Declaration::read(&create.elements)?;
        let places = std::mem::take(&mut declaration.places);
        let mut table = new_table(path, create, declaration);
        if let Some(like) = &create.like {
            self.merge_like(&mut table, like)?;
        }
        self.check_table(&mut table, &places)?;
        self.put_table(table, false)?;
        Ok(StatementResult::Done)
    }

    /// Whether the name of a table or view that is to be created is taken.
    pub(super) fn is_taken(&self, path: &ObjectPath, temporary: bool) -> bool {
        if temporary {
            self.catalogs.get_temporary(path).is_some()
        } else {
            self.catalogs.get_permanent(path).is_some()
        }
    }

    pub(super) fn put_table(&mut self, table: TableDefinition, replace: bool) -> Result<()> {
        let path = table.path.clone();
        self.catalogs
            .add(&path, CatalogEntry::Table(Arc::new(table)), replace)
    }

    /// Makes the table, then starts the INSERT of the query.
    fn create_table_as(
        &mut self,
        path: &ObjectPath,
        create: &CreateTable,
        query: &SqlQuery,
    ) -> Result<StatementResult> {
        let (table, insert) = self.plan_table_as(path, create, query)?;
        let Some(table) = table else {
            return self.run_inserts(&[insert]);
        };
        // planned first: the query may read the table that is replaced
        let planned = self.plan_insert_into(&insert, Arc::new(table.clone()));
        if let Some(old) = self.catalogs.remove(path, false) {
            self.forget_content(&old);
        }
        self.put_table(table, true)?;
        self.run_planned(vec![planned?])
    }

    /// Makes the table of a CREATE TABLE AS and leaves it without rows.
    pub(crate) fn declare_table_as(&mut self, create: &CreateTable) -> Result<()> {
        let path = self.path_of(&create.name)?;
        if let Some(query) = &create.as_query
            && let (Some(table), _) = self.plan_table_as(&path, create, query)?
        {
            self.put_table(table, true)?;
        }
        Ok(())
    }

    /// What CREATE TABLE AS does: the table that it makes, unless IF NOT EXISTS found one that the
    /// rows go into, and the INSERT.
    pub(super) fn plan_table_as(
        &self,
        path: &ObjectPath,
        create: &CreateTable,
        query: &SqlQuery,
    ) -> Result<(Option<TableDefinition>, Insert)> {
        if create.temporary {
            return Err(Error::plan(
                "CREATE TABLE AS SELECT syntax does not support to create temporary table yet.",
            )
            .hint("create the temporary table, then INSERT INTO it"));
        }
        let exists = self.is_taken(path, false);
        let replaces = create.replace != Replace::No;
        if replaces && create.if_not_exists {
            return Err(Error::plan(
                "CREATE OR REPLACE TABLE AS SELECT syntax does not support IF NOT EXISTS statements \
                 yet.",
            ));
        }
        if replaces
            && matches!(
                self.catalogs.get_permanent(path),
                Some(CatalogEntry::View(_))
            )
        {
            return Err(
                Error::catalog(format!("Table with identifier '{path}' does not exist."))
                    .hint("it is a view: drop it first"),
            );
        }
        match create.replace {
            Replace::No if exists && !create.if_not_exists => {
                return Err(already_exists(path, false));
            }
            Replace::Replace if !exists => {
                return Err(Error::catalog(format!(
                    "The table {} to be replaced doesn't exist. You can try to use CREATE TABLE AS \
                     statement or CREATE OR REPLACE TABLE AS statement.",
                    path.quoted()
                )));
            }
            _ => {}
        }
        let plan = self.binder().bind(&query.query)?;
        self.check_readable(&plan)?;
        let source = plan.schema;
        super::insert::refuse_untyped(&source).map_err(|e| e.at(query.span))?;
        let table = if exists && create.replace == Replace::No {
            None
        } else {
            let mut declaration = Declaration::read(&create.elements)?;
            let places = std::mem::take(&mut declaration.places);
            declaration.columns = columns_as(&create.column_order, declaration.columns, &source)?;
            let mut table = new_table(path.clone(), create, declaration);
            self.check_table(&mut table, &places)?;
            Some(table)
        };
        let columns = source.columns.iter();
        let insert = Insert {
            overwrite: false,
            table: create.name.clone(),
            hints: Vec::new(),
            partition: Vec::new(),
            // a table that was there takes the rows by position
            columns: match &table {
                Some(_) => columns.map(|c| Ident::new(c.name.clone())).collect(),
                None => Vec::new(),
            },
            source: query.clone(),
            on_conflict: None,
            span: query.span,
        };
        Ok((table, insert))
    }
}

fn new_table(path: ObjectPath, create: &CreateTable, declaration: Declaration) -> TableDefinition {
    TableDefinition {
        path,
        columns: declaration.columns,
        watermark: declaration.watermark,
        primary_key: declaration.primary_key,
        partitioned_by: create
            .partitioned_by
            .iter()
            .map(|i| i.value.clone())
            .collect(),
        partitions: Vec::new(),
        distribution: create.distribution.as_ref().map(distribution),
        comment: create.comment.clone(),
        options: options(&create.options),
        temporary: create.temporary,
    }
}

/// The columns of CREATE TABLE AS: new ones, then the query's, changed where they are declared; or the
/// query's in the order that was said.
fn columns_as(
    order: &[Ident],
    declared: Vec<ColumnDefinition>,
    source: &Schema,
) -> Result<Vec<ColumnDefinition>> {
    let made = |name: &str, i: usize| ColumnDefinition {
        name: name.into(),
        data_type: source.columns[i].data_type.clone(),
        kind: ColumnKind::Physical,
        comment: None,
        time: None,
    };
    if !order.is_empty() {
        if order.len() != source.len() {
            return Err(Error::plan(
                "The number of columns in the column list must match the number of columns in the \
                 source schema.",
            ));
        }
        return order
            .iter()
            .map(|name| {
                let i = source.index_of(&name.value).ok_or_else(|| {
                    Error::plan(format!(
                        "Column '{}' not found in the source schema.",
                        name.value
                    ))
                })?;
                Ok(made(&name.value, i))
            })
            .collect();
    }
    let columns = declared;
    for (i, column) in columns.iter().enumerate() {
        let from = source.columns.iter().find(|c| c.name == column.name);
        match (&column.kind, from) {
            (ColumnKind::Computed(_), Some(_)) => {
                return Err(Error::plan(format!(
                    "A column named '{}' already exists in the source schema. Computed columns \
                     cannot overwrite columns from source.",
                    column.name
                )));
            }
            (ColumnKind::Physical, Some(from))
                if !coerce::assignable(&from.data_type, &column.data_type) =>
            {
                return Err(Error::plan(format!(
                    "Incompatible types for sink column '{}' at position {}. The source column has \
                     type '{}', while the target column has type '{}'.",
                    column.name,
                    i + 1,
                    from.data_type,
                    column.data_type
                )));
            }
            (ColumnKind::Physical, None) if !column.data_type.nullable => {
                return Err(Error::plan(format!(
                    "Column '{}' has no default value and does not allow NULLs.",
                    column.name
                )));
            }
            _ => {}
        }
    }
    let (mut columns, mut changed): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .partition(|c| source.index_of(&c.name).is_none());
    for (i, from) in source.columns.iter().enumerate() {
        let declared = changed.iter().position(|c| c.name == from.name);
        columns.push(match declared {
            Some(at) => changed.swap_remove(at),
            None => made(&from.name, i),
        });
    }
    Ok(columns)
}
