//! CREATE, ALTER, DROP and USE of catalogs and databases; DROP of tables and views.

use super::create_table::options;
use super::{Session, StatementResult};
use crate::catalog::{CatalogEntry, ObjectPath};
use crate::error::{Error, Result};
use crate::plan::binder::object_parts;
use crate::plan::physical::describe;
use crate::sql::ast::{
    AlterCatalogAction, CreateCatalog, CreateDatabase, Drop, ObjectKind, SqlOption, Use,
};
use sqlparser::ast::{Ident, ObjectName};

impl Session {
    pub(super) fn create_catalog(&mut self, create: &CreateCatalog) -> Result<StatementResult> {
        let name = &create.name.value;
        if create.if_not_exists && self.catalogs.catalog(name).is_ok() {
            return Ok(StatementResult::Done);
        }
        let comment = create.comment.clone();
        self.catalogs
            .create_catalog(name, options(&create.options), comment)?;
        Ok(StatementResult::Done)
    }

    pub(super) fn alter_catalog(
        &mut self,
        name: &Ident,
        action: &AlterCatalogAction,
    ) -> Result<StatementResult> {
        let name = &name.value;
        let mut changed = self.catalogs.catalog(name)?.options.clone();
        match action {
            AlterCatalogAction::Set(set) => changed.extend(options(set)),
            AlterCatalogAction::Reset(keys) => {
                if keys.is_empty() {
                    return Err(Error::plan(
                        "ALTER CATALOG RESET does not support empty key",
                    ));
                }
                for key in keys {
                    if key == "type" {
                        return Err(Error::plan(
                            "ALTER CATALOG RESET does not support changing 'type'",
                        ));
                    }
                    changed.shift_remove(key);
                }
            }
            AlterCatalogAction::Comment(comment) => {
                self.catalogs.set_catalog_comment(name, comment)?;
                return Ok(StatementResult::Done);
            }
        }
        self.catalogs.set_catalog_options(name, changed)?;
        Ok(StatementResult::Done)
    }

    pub(super) fn create_database(&mut self, create: &CreateDatabase) -> Result<StatementResult> {
        let (catalog, database) = self.database_of(&create.name)?;
        if create.if_not_exists && self.catalogs.database(&catalog, &database).is_ok() {
            return Ok(StatementResult::Done);
        }
        let comment = create.comment.clone();
        self.catalogs
            .create_database(&catalog, &database, options(&create.options), comment)?;
        Ok(StatementResult::Done)
    }

    pub(super) fn alter_database(
        &mut self,
        name: &ObjectName,
        set: &[SqlOption],
    ) -> Result<StatementResult> {
        let (catalog, database) = self.database_of(name)?;
        self.catalogs
            .alter_database(&catalog, &database, options(set))?;
        Ok(StatementResult::Done)
    }

    /// Catalog and database that a name means.
    pub(super) fn database_of(&self, name: &ObjectName) -> Result<(String, String)> {
        self.catalogs.resolve_database(&object_parts(name)?)
    }

    /// The full name that a table's or view's name means.
    pub(super) fn path_of(&self, name: &ObjectName) -> Result<ObjectPath> {
        self.catalogs.resolve(&object_parts(name)?)
    }

    pub(super) fn use_statement(&mut self, statement: &Use) -> Result<StatementResult> {
        match statement {
            Use::Catalog(name) => self.catalogs.use_catalog(&name.value)?,
            Use::Database(name) => {
                let (catalog, database) = self.database_of(name)?;
                self.catalogs.use_database(&catalog, &database)?;
            }
            Use::Modules(names) => self.use_modules(names)?,
        }
        Ok(StatementResult::Done)
    }

    pub(super) fn drop(&mut self, drop: &Drop) -> Result<StatementResult> {
        match drop.kind {
            ObjectKind::Table => self.drop_entry(drop, "table")?,
            ObjectKind::View => self.drop_entry(drop, "view")?,
            ObjectKind::Catalog => {
                let parts = object_parts(&drop.name)?;
                let name = parts.join(".");
                if !(drop.if_exists && self.catalogs.catalog(&name).is_err()) {
                    self.catalogs.drop_catalog(&name)?;
                }
            }
            ObjectKind::Database => {
                let (catalog, name) = self.database_of(&drop.name)?;
                if !(drop.if_exists && self.catalogs.database(&catalog, &name).is_err()) {
                    let dropped = self.catalogs.drop_database(&catalog, &name, drop.cascade)?;
                    for entry in &dropped {
                        self.forget_content(entry);
                    }
                }
            }
            ObjectKind::Function => self.drop_function(drop)?,
            ObjectKind::MaterializedTable => {
                return Err(self.unsupported("DROP MATERIALIZED TABLE"));
            }
            ObjectKind::Model => return Err(self.unsupported("DROP MODEL")),
        }
        Ok(StatementResult::Done)
    }

    fn drop_entry(&mut self, drop: &Drop, what: &str) -> Result<()> {
        let path = self.path_of(&drop.name)?;
        let fits = |entry: &CatalogEntry| entry.is_view() == (drop.kind == ObjectKind::View);
        let temporary = self.catalogs.get_temporary(&path).is_some_and(fits);
        let permanent = self.catalogs.get_permanent(&path).is_some_and(fits);
        if !drop.temporary && temporary {
            return Err(Error::plan(format!(
                "Temporary {what} with identifier '{}' exists. Drop it first before removing the \
                 permanent {what}.",
                path.quoted()
            ))
            .hint(format!(
                "DROP TEMPORARY {} {}",
                what.to_uppercase(),
                path.name
            )));
        }
        if !(if drop.temporary { temporary } else { permanent }) {
            if drop.if_exists {
                return Ok(());
            }
            let what = match (drop.temporary, what) {
                (true, _) => "Temporary table or view",
                (false, "view") => "View",
                _ => "Table",
            };
            let error = Error::catalog(format!("{what} with identifier '{path}' does not exist."));
            return Err(match self.catalogs.get(&path) {
                Some(found) if found.is_view() && drop.kind == ObjectKind::Table => {
                    error.hint("it is a view: use DROP VIEW")
                }
                Some(found) if !found.is_view() && drop.kind == ObjectKind::View => {
                    error.hint("it is a table: use DROP TABLE")
                }
                Some(_) => error.hint("use DROP without TEMPORARY"),
                None => self.catalogs.suggest(&path, error),
            });
        }
        if let Some(entry) = self.catalogs.remove(&path, drop.temporary) {
            self.forget_content(&entry);
        }
        Ok(())
    }

    /// Empties what a dropped table kept in the session.
    pub(super) fn forget_content(&self, dropped: &CatalogEntry) {
        if let CatalogEntry::Table(table) = dropped
            && table
                .options
                .get("connector")
                .is_some_and(|c| c == "memory")
            && let Ok(described) = describe(table, &table.options, &self.config)
        {
            self.context.memory.remove(&described);
        }
    }
}
