//! The catalog and database that a script uses, statement by statement.

use crate::sql::outline::{Outline, OutlineKind};

/// The catalog of a session that nobody has configured: it is forgotten with the session.
pub(super) const SESSION_CATALOG: &str = "default_catalog";
const SESSION_DATABASE: &str = "default_database";

/// Where names without a catalog and a database lead.
#[derive(Debug, Clone)]
pub(super) struct Current {
    catalog: String,
    database: String,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            catalog: SESSION_CATALOG.into(),
            database: SESSION_DATABASE.into(),
        }
    }
}

impl Current {
    /// Takes notice of `USE`.
    pub(super) fn follow(&mut self, outline: &Outline) {
        if outline.kind != OutlineKind::Use {
            return;
        }
        match outline.name.as_slice() {
            [catalog] if outline.of_catalog => {
                self.catalog.clone_from(catalog);
                // which one a catalog begins with only it knows; most say so
                self.database = "default".into();
            }
            [database] => self.database.clone_from(database),
            [catalog, database] => {
                self.catalog.clone_from(catalog);
                self.database.clone_from(database);
            }
            _ => {}
        }
    }

    /// The catalog of what `outline` names.
    pub(super) fn catalog_of<'a>(&'a self, outline: &'a Outline) -> &'a str {
        match outline.name.as_slice() {
            [catalog, _, _] => catalog,
            _ => &self.catalog,
        }
    }

    /// `catalog.database.name` of what `outline` names.
    pub(super) fn path_of(&self, outline: &Outline) -> String {
        match outline.name.as_slice() {
            [name] => format!("{}.{}.{name}", self.catalog, self.database),
            [database, name] => format!("{}.{database}.{name}", self.catalog),
            parts => parts.join("."),
        }
    }
}
