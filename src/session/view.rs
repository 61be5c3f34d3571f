//! CREATE VIEW and ALTER VIEW: a query checked and kept under a name.

use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName};

use super::{Session, StatementResult};
use crate::catalog::{CatalogEntry, ObjectPath, ViewDefinition, already_exists};
use crate::error::{Error, Result};
use crate::plan::binder::Binder;
use crate::plan::binder::object_parts;
use crate::plan::logical::{LogicalNode, LogicalPlan};
use crate::sql::ast::{AlterViewAction, CreateView, SqlQuery};
use crate::sql::unparse;

impl Session {
    pub(super) fn create_view(&mut self, create: &CreateView) -> Result<StatementResult> {
        let path = self.path_of(&create.name)?;
        if create.if_not_exists && self.is_taken(&path, create.temporary) {
            return Ok(StatementResult::Done);
        }
        let mut view = self.make_view(path.clone(), &create.query, &create.columns)?;
        view.comment.clone_from(&create.comment);
        view.temporary = create.temporary;
        self.catalogs
            .add(&path, CatalogEntry::View(Arc::new(view)), false)?;
        Ok(StatementResult::Done)
    }

    /// Refuses a plan over a table that no connector can read.
    pub(super) fn check_readable(&self, plan: &LogicalPlan) -> Result<()> {
        if let LogicalNode::Scan(scan) = &plan.node {
            self.planner().check_source(scan)?;
        }
        for input in plan.inputs() {
            self.check_readable(input)?;
        }
        Ok(())
    }

    fn make_view(
        &self,
        path: ObjectPath,
        query: &SqlQuery,
        columns: &[Ident],
    ) -> Result<ViewDefinition> {
        let (plan, names) = self.binder().bind_with_names(&query.query)?;
        self.check_readable(&plan)?;
        super::insert::refuse_untyped(&plan.schema).map_err(|e| e.at(query.span))?;
        let mut schema = Binder::described(&plan);
        if !columns.is_empty() {
            if columns.len() != schema.len() {
                let given: Vec<_> = columns.iter().map(|c| c.value.as_str()).collect();
                let input: Vec<_> = schema.columns.iter().map(|c| c.name.as_str()).collect();
                return Err(Error::plan(format!(
                    "VIEW definition and input fields not match:\n\tDef fields: [{}].\n\tInput \
                     fields: [{}].",
                    given.join(", "),
                    input.join(", ")
                )));
            }
            for (column, name) in schema.columns.iter_mut().zip(columns) {
                column.name.clone_from(&name.value);
            }
        }
        let names = if columns.is_empty() {
            names
        } else {
            columns.iter().map(|c| c.value.clone()).collect()
        };
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(Error::plan(format!(
                    "A column with the same name `{name}` has been defined."
                ))
                .at(query.span)
                .hint("give it another name with AS"));
            }
        }
        let expanded = self.expand(&query.query);
        let (catalog, database) = self.catalogs.current();
        let kept = expanded.as_ref().unwrap_or(&query.query);
        Ok(ViewDefinition {
            path,
            expanded_text: unparse::query(kept),
            query: Arc::new(kept.clone()),
            schema,
            home: (catalog.into(), database.into()),
            comment: None,
            temporary: false,
        })
    }

    pub(super) fn alter_view(
        &mut self,
        name: &ObjectName,
        action: &AlterViewAction,
    ) -> Result<StatementResult> {
        let path = self.path_of(name)?;
        let found = match self.catalogs.get_temporary(&path) {
            Some(_) => None,
            None => self.catalogs.get_permanent(&path),
        };
        let mut view = match found {
            Some(CatalogEntry::View(view)) => (**view).clone(),
            Some(CatalogEntry::Table(_)) => {
                return Err(
                    Error::plan("ALTER VIEW for a table is not allowed").hint("use ALTER TABLE")
                );
            }
            None => {
                let error = Error::catalog(format!(
                    "View {} doesn't exist or is a temporary view.",
                    path.quoted()
                ));
                return Err(self.catalogs.suggest(&path, error));
            }
        };
        match action {
            AlterViewAction::RenameTo(name) => {
                let parts = object_parts(name)?;
                let target = crate::catalog::resolve_from(&parts, &path.catalog, &path.database)?;
                self.catalogs.database(&target.catalog, &target.database)?;
                if self.catalogs.get(&target).is_some() {
                    return Err(already_exists(&target, false));
                }
                self.catalogs.remove(&path, false);
                view.path = target;
            }
            AlterViewAction::AsQuery(query) => {
                let comment = view.comment.take();
                view = self.make_view(path, query, &[])?;
                view.comment = comment;
            }
        }
        let path = view.path.clone();
        self.catalogs
            .add(&path, CatalogEntry::View(Arc::new(view)), true)?;
        Ok(StatementResult::Done)
    }
}
