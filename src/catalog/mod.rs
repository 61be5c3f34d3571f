//! Catalogs, databases, tables and views of a session, in memory.
//!
//! Names are case-sensitive. A temporary object hides a permanent one of the same path. What a
//! table or view is made of: [`definition`].

mod definition;

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;

pub use definition::{
    CatalogEntry, ColumnDefinition, ColumnKind, DeclaredExpr, PrimaryKey, TableDefinition,
    ViewDefinition, WatermarkDefinition,
};

use crate::error::{Error, Result, did_you_mean};

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

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.database, self.name)
    }
}

/// A database: tables and views by name.
#[derive(Debug, Clone, Default)]
pub struct Database {
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `WITH`.
    pub options: IndexMap<String, String>,
    entries: BTreeMap<String, CatalogEntry>,
}

/// A catalog: databases by name.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// `WITH`.
    pub options: IndexMap<String, String>,
    /// `COMMENT`.
    pub comment: Option<String>,
    databases: BTreeMap<String, Database>,
}

/// All catalogs of a session, and where unqualified names point.
#[derive(Debug, Clone)]
pub struct Catalogs {
    catalogs: BTreeMap<String, Catalog>,
    temporary: BTreeMap<ObjectPath, CatalogEntry>,
    current_catalog: String,
    current_database: String,
}

impl Default for Catalogs {
    fn default() -> Self {
        Self {
            catalogs: BTreeMap::from([(DEFAULT_CATALOG.into(), new_catalog(DEFAULT_DATABASE))]),
            temporary: BTreeMap::new(),
            current_catalog: DEFAULT_CATALOG.into(),
            current_database: DEFAULT_DATABASE.into(),
        }
    }
}

fn new_catalog(default_database: &str) -> Catalog {
    let databases = BTreeMap::from([(default_database.to_string(), Database::default())]);
    Catalog {
        databases,
        ..Catalog::default()
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

    /// The table or view at `path`; a temporary one hides a permanent one.
    #[must_use]
    pub fn get(&self, path: &ObjectPath) -> Option<&CatalogEntry> {
        self.temporary
            .get(path)
            .or_else(|| self.get_permanent(path))
    }

    /// The permanent table or view at `path`.
    #[must_use]
    pub fn get_permanent(&self, path: &ObjectPath) -> Option<&CatalogEntry> {
        self.catalogs
            .get(&path.catalog)?
            .databases
            .get(&path.database)?
            .entries
            .get(&path.name)
    }

    /// The temporary table or view at `path`.
    #[must_use]
    pub fn get_temporary(&self, path: &ObjectPath) -> Option<&CatalogEntry> {
        self.temporary.get(path)
    }

    /// The table or view at `path`.
    ///
    /// # Errors
    /// When there is none, with a suggestion.
    pub fn expect(&self, path: &ObjectPath) -> Result<&CatalogEntry> {
        self.get(path).ok_or_else(|| {
            let error = Error::catalog(format!(
                "Tables or views with the identifier '{path}' doesn't exist."
            ));
            let names = self.names(&path.catalog, &path.database);
            match did_you_mean(&path.name, names.iter().map(String::as_str)) {
                Some(name) => error.hint(format!("did you mean `{name}`?")),
                None => error,
            }
        })
    }

    /// Adds a table or view.
    ///
    /// # Errors
    /// When the database is missing or the name is taken (unless `replace`).
    pub fn add(&mut self, path: &ObjectPath, entry: CatalogEntry, replace: bool) -> Result<()> {
        let temporary = entry.is_temporary();
        let taken = if temporary {
            self.temporary.contains_key(path)
        } else {
            self.entries_mut(path)?.contains_key(&path.name)
        };
        if taken && !replace {
            let what = if temporary {
                "Temporary table or view"
            } else {
                "Table or view"
            };
            return Err(Error::catalog(format!("{what} '{path}' already exists."))
                .hint("use IF NOT EXISTS, or DROP it first"));
        }
        if temporary {
            self.temporary.insert(path.clone(), entry);
        } else {
            self.entries_mut(path)?.insert(path.name.clone(), entry);
        }
        Ok(())
    }

    /// Removes the table or view at `path` and returns it: the temporary or the permanent one.
    pub fn remove(&mut self, path: &ObjectPath, temporary: bool) -> Option<CatalogEntry> {
        if temporary {
            return self.temporary.remove(path);
        }
        self.entries_mut(path).ok()?.remove(&path.name)
    }

    fn entries_mut(&mut self, path: &ObjectPath) -> Result<&mut BTreeMap<String, CatalogEntry>> {
        self.catalogs
            .get_mut(&path.catalog)
            .ok_or_else(|| catalog_missing(&path.catalog))?
            .databases
            .get_mut(&path.database)
            .map(|database| &mut database.entries)
            .ok_or_else(|| database_missing(&path.catalog, &path.database))
    }

    /// Names of all tables and views of a database, temporary ones included, sorted.
    #[must_use]
    pub fn names(&self, catalog: &str, database: &str) -> Vec<String> {
        self.list(catalog, database)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    /// All tables and views of a database by name, temporary ones hiding permanent ones.
    #[must_use]
    pub fn list(&self, catalog: &str, database: &str) -> Vec<(String, CatalogEntry)> {
        let mut all = self
            .catalogs
            .get(catalog)
            .and_then(|c| c.databases.get(database))
            .map(|d| d.entries.clone())
            .unwrap_or_default();
        for (path, entry) in &self.temporary {
            if path.catalog == catalog && path.database == database {
                all.insert(path.name.clone(), entry.clone());
            }
        }
        all.into_iter().collect()
    }

    /// Names of the catalogs, sorted.
    #[must_use]
    pub fn catalog_names(&self) -> Vec<String> {
        self.catalogs.keys().cloned().collect()
    }

    /// One catalog.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn catalog(&self, name: &str) -> Result<&Catalog> {
        self.catalogs.get(name).ok_or_else(|| catalog_missing(name))
    }

    /// Names of a catalog's databases, sorted.
    ///
    /// # Errors
    /// When the catalog does not exist.
    pub fn database_names(&self, catalog: &str) -> Result<Vec<String>> {
        Ok(self.catalog(catalog)?.databases.keys().cloned().collect())
    }

    /// One database.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn database(&self, catalog: &str, database: &str) -> Result<&Database> {
        self.catalog(catalog)?
            .databases
            .get(database)
            .ok_or_else(|| database_missing(catalog, database))
    }

    /// Creates a catalog of type `generic_in_memory`.
    ///
    /// # Errors
    /// When the name is taken or the type is unknown.
    pub fn create_catalog(
        &mut self,
        name: &str,
        options: IndexMap<String, String>,
        comment: Option<String>,
    ) -> Result<()> {
        if self.catalogs.contains_key(name) {
            return Err(Error::catalog(format!("Catalog {name} already exists.")));
        }
        let kind = options.get("type").map(String::as_str);
        if kind != Some("generic_in_memory") {
            let reason = match kind {
                Some(other) => format!("no catalog type '{other}'"),
                None => "the option 'type' is missing".into(),
            };
            return Err(
                Error::options(format!("Unable to create catalog '{name}': {reason}"))
                    .hint("available: WITH ('type' = 'generic_in_memory')"),
            );
        }
        let default = options
            .get("default-database")
            .map_or("default", String::as_str);
        let mut catalog = new_catalog(default);
        catalog.options = options;
        catalog.comment = comment;
        self.catalogs.insert(name.into(), catalog);
        Ok(())
    }

    /// Drops a catalog.
    ///
    /// # Errors
    /// When it does not exist or is in use.
    pub fn drop_catalog(&mut self, name: &str) -> Result<()> {
        self.catalog(name)?;
        if self.current_catalog == name {
            return Err(
                Error::catalog("Cannot drop a catalog which is currently in use.")
                    .hint("USE CATALOG another one first"),
            );
        }
        self.catalogs.remove(name);
        self.temporary.retain(|path, _| path.catalog != name);
        Ok(())
    }

    /// Creates a database.
    ///
    /// # Errors
    /// When the catalog is missing or the name is taken.
    pub fn create_database(
        &mut self,
        catalog: &str,
        name: &str,
        options: IndexMap<String, String>,
        comment: Option<String>,
    ) -> Result<()> {
        let found = self
            .catalogs
            .get_mut(catalog)
            .ok_or_else(|| catalog_missing(catalog))?;
        if found.databases.contains_key(name) {
            return Err(Error::catalog(format!(
                "Database {name} already exists in Catalog {catalog}."
            )));
        }
        let database = Database {
            comment,
            options,
            entries: BTreeMap::new(),
        };
        found.databases.insert(name.into(), database);
        Ok(())
    }

    /// Drops a database; with `cascade`, its tables too.
    ///
    /// # Errors
    /// When it is missing, in use, or not empty without `cascade`.
    pub fn drop_database(&mut self, catalog: &str, name: &str, cascade: bool) -> Result<()> {
        let database = self.database(catalog, name)?;
        if self.current_catalog == catalog && self.current_database == name {
            return Err(
                Error::catalog("Cannot drop a database which is currently in use.")
                    .hint("USE another one first"),
            );
        }
        if !database.entries.is_empty() && !cascade {
            return Err(Error::catalog(format!(
                "Database {name} in catalog {catalog} is not empty."
            ))
            .hint("DROP DATABASE ... CASCADE drops its tables too"));
        }
        if let Some(found) = self.catalogs.get_mut(catalog) {
            found.databases.remove(name);
        }
        Ok(())
    }

    /// Changes options of a database.
    ///
    /// # Errors
    /// When it is missing.
    pub fn alter_database(
        &mut self,
        catalog: &str,
        name: &str,
        set: IndexMap<String, String>,
    ) -> Result<()> {
        self.database(catalog, name)?;
        if let Some(found) = self
            .catalogs
            .get_mut(catalog)
            .and_then(|c| c.databases.get_mut(name))
        {
            found.options.extend(set);
        }
        Ok(())
    }

    /// `USE CATALOG`.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn use_catalog(&mut self, name: &str) -> Result<()> {
        let catalog = self.catalog(name)?;
        let default = catalog
            .options
            .get("default-database")
            .map_or("default", String::as_str);
        let database = [DEFAULT_DATABASE, default]
            .into_iter()
            .find(|d| catalog.databases.contains_key(*d))
            .unwrap_or("default")
            .to_string();
        self.current_catalog = name.into();
        self.current_database = database;
        Ok(())
    }

    /// `USE [catalog.]database`.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn use_database(&mut self, catalog: Option<&str>, name: &str) -> Result<()> {
        let catalog = catalog.unwrap_or(&self.current_catalog).to_string();
        self.database(&catalog, name)?;
        self.current_catalog = catalog;
        self.current_database = name.into();
        Ok(())
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
            return Err(
                Error::catalog(format!("'{name}' does not have one to three parts"))
                    .hint("write [[catalog.]database.]name"),
            );
        }
    };
    Ok(ObjectPath {
        catalog: catalog.into(),
        database: database.into(),
        name: name.into(),
    })
}

fn catalog_missing(name: &str) -> Error {
    Error::catalog(format!("Catalog {name} does not exist"))
}

fn database_missing(catalog: &str, database: &str) -> Error {
    Error::catalog(format!("Database '{catalog}'.'{database}' doesn't exist."))
}
