//! Catalogs, databases, tables, views and functions of a session, in memory.
//!
//! Names are case-sensitive, those of functions are not. A temporary object hides a permanent one of
//! the same path.
//!
//! - [`definition`]: what a table and a view are made of,
//! - [`namespaces`]: catalogs and databases,
//! - [`objects`]: tables and views,
//! - [`functions`]: functions that were declared by a class.

mod definition;
mod functions;
mod namespaces;
mod objects;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;

pub use definition::{
    CatalogEntry, ColumnDefinition, ColumnKind, DeclaredExpr, Distribution, PartitionSpec,
    PrimaryKey, TableDefinition, ViewDefinition, WatermarkDefinition,
};
pub use functions::{FunctionDefinition, FunctionScope};
pub use namespaces::{Catalog, Database};
pub use objects::already_exists;

use crate::error::{Error, Result};

/// The catalog that every session starts in.
pub const DEFAULT_CATALOG: &str = "default_catalog";
/// The database that the default catalog starts with.
pub const DEFAULT_DATABASE: &str = "default_database";

/// The full name of a table or view.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectPath {
    /// Catalog.
    pub catalog: String,
    /// Database.
    pub database: String,
    /// Table or view.
    pub name: String,
}

impl ObjectPath {
    /// The name with backticks, as a statement has it.
    #[must_use]
    pub fn quoted(&self) -> String {
        use crate::sql::unparse::quoted;
        format!(
            "{}.{}.{}",
            quoted(&self.catalog),
            quoted(&self.database),
            quoted(&self.name)
        )
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.database, self.name)
    }
}

/// All catalogs of a session, and where unqualified names point.
#[derive(Debug, Clone)]
pub struct Catalogs {
    catalogs: BTreeMap<String, Catalog>,
    temporary: BTreeMap<ObjectPath, CatalogEntry>,
    /// Temporary functions of databases.
    temporary_functions: BTreeMap<ObjectPath, FunctionDefinition>,
    /// Temporary functions that belong to no database.
    system_functions: BTreeMap<String, FunctionDefinition>,
    current_catalog: String,
    current_database: String,
}

impl Default for Catalogs {
    fn default() -> Self {
        let default = Catalog::new(DEFAULT_DATABASE, IndexMap::new(), None);
        Self {
            catalogs: BTreeMap::from([(DEFAULT_CATALOG.into(), default)]),
            temporary: BTreeMap::new(),
            temporary_functions: BTreeMap::new(),
            system_functions: BTreeMap::new(),
            current_catalog: DEFAULT_CATALOG.into(),
            current_database: DEFAULT_DATABASE.into(),
        }
    }
}

impl Catalogs {
    /// Catalog and database of unqualified names.
    #[must_use]
    pub fn current(&self) -> (&str, &str) {
        (&self.current_catalog, &self.current_database)
    }

    /// The full path of a name of one to three parts, from the current catalog and database.
    ///
    /// # Errors
    /// When there are more parts.
    pub fn resolve(&self, parts: &[String]) -> Result<ObjectPath> {
        resolve_from(parts, &self.current_catalog, &self.current_database)
    }

    /// Catalog and database that a name of one or two parts means.
    ///
    /// # Errors
    /// When there are more parts.
    pub fn resolve_database(&self, parts: &[String]) -> Result<(String, String)> {
        match parts {
            [database] => Ok((self.current_catalog.clone(), database.clone())),
            [catalog, database] => Ok((catalog.clone(), database.clone())),
            _ => Err(Error::catalog(format!(
                "'{}' does not have one or two parts",
                parts.join(".")
            ))
            .hint("write [catalog.]database")),
        }
    }
}

/// The full path of a name of one to three parts, from `catalog` and `database`.
///
/// # Errors
/// When there are more parts.
pub fn resolve_from(parts: &[String], catalog: &str, database: &str) -> Result<ObjectPath> {
    let (catalog, database, name) = match parts {
        [name] => (catalog, database, name.as_str()),
        [database, name] => (catalog, database.as_str(), name.as_str()),
        [catalog, database, name] => (catalog.as_str(), database.as_str(), name.as_str()),
        _ => {
            let name = parts.join(".");
            return Err(Error::catalog(format!(
                "Object identifier must consist of 1 to 3 parts, but '{name}' has {}.",
                parts.len()
            ))
            .hint("write [[catalog.]database.]name"));
        }
    };
    Ok(ObjectPath {
        catalog: catalog.into(),
        database: database.into(),
        name: name.into(),
    })
}
