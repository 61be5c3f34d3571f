//! Catalogs and databases.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::{CatalogEntry, Catalogs, FunctionDefinition};
use crate::error::{Error, Result, did_you_mean};

/// The only type of catalog.
const GENERIC: &str = "generic_in_memory";

/// A database: tables, views and functions by name.
#[derive(Debug, Clone, Default)]
pub struct Database {
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `WITH`.
    pub options: IndexMap<String, String>,
    pub(super) entries: BTreeMap<String, CatalogEntry>,
    pub(super) functions: BTreeMap<String, FunctionDefinition>,
}

/// A catalog: databases by name.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// `WITH`; empty for the catalog that every session has.
    pub options: IndexMap<String, String>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// The database that `USE CATALOG` goes to.
    default_database: String,
    pub(super) databases: BTreeMap<String, Database>,
}

impl Catalog {
    pub(super) fn new(
        default_database: &str,
        options: IndexMap<String, String>,
        comment: Option<String>,
    ) -> Self {
        Self {
            options,
            comment,
            default_database: default_database.into(),
            databases: BTreeMap::from([(default_database.into(), Database::default())]),
        }
    }
}

impl Catalogs {
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
        self.catalogs
            .get(name)
            .ok_or_else(|| self.catalog_missing(name))
    }

    fn catalog_mut(&mut self, name: &str) -> Result<&mut Catalog> {
        if !self.catalogs.contains_key(name) {
            return Err(self.catalog_missing(name));
        }
        Ok(self.catalogs.entry(name.into()).or_default())
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
    pub fn database(&self, catalog: &str, name: &str) -> Result<&Database> {
        let found = self.catalog(catalog)?;
        found
            .databases
            .get(name)
            .ok_or_else(|| database_missing(catalog, name, found.databases.keys()))
    }

    pub(super) fn database_mut(&mut self, catalog: &str, name: &str) -> Result<&mut Database> {
        self.database(catalog, name)?;
        let found = self.catalog_mut(catalog)?;
        Ok(found.databases.entry(name.into()).or_default())
    }

    /// Creates a catalog of type `generic_in_memory`.
    ///
    /// # Errors
    /// When the name is taken or an option is not understood.
    pub fn create_catalog(
        &mut self,
        name: &str,
        options: IndexMap<String, String>,
        comment: Option<String>,
    ) -> Result<()> {
        if self.catalogs.contains_key(name) {
            return Err(Error::catalog(format!("Catalog {name} already exists."))
                .hint("use IF NOT EXISTS, or DROP it first"));
        }
        check_options(&options)?;
        let default = options
            .get("default-database")
            .map_or("default", String::as_str)
            .to_string();
        let catalog = Catalog::new(&default, options, comment);
        self.catalogs.insert(name.into(), catalog);
        Ok(())
    }

    /// Changes the options of a catalog.
    ///
    /// # Errors
    /// When it does not exist, or the options are not understood.
    pub fn set_catalog_options(
        &mut self,
        name: &str,
        options: IndexMap<String, String>,
    ) -> Result<()> {
        let catalog = self.catalog_mut(name)?;
        check_options(&options)?;
        catalog.options = options;
        Ok(())
    }

    /// Changes the comment of a catalog.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn set_catalog_comment(&mut self, name: &str, comment: &str) -> Result<()> {
        self.catalog_mut(name)?.comment = Some(comment.into());
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
        let found = self.catalog_mut(catalog)?;
        if found.databases.contains_key(name) {
            return Err(Error::catalog(format!(
                "Database {name} already exists in Catalog {catalog}."
            ))
            .hint("use IF NOT EXISTS, or DROP it first"));
        }
        let database = Database {
            comment,
            options,
            ..Database::default()
        };
        found.databases.insert(name.into(), database);
        Ok(())
    }

    /// Drops a database; with `cascade`, its tables too. Returns them.
    ///
    /// # Errors
    /// When it is missing, in use, or not empty without `cascade`.
    pub fn drop_database(
        &mut self,
        catalog: &str,
        name: &str,
        cascade: bool,
    ) -> Result<Vec<CatalogEntry>> {
        let database = self.database(catalog, name)?;
        if self.current_catalog == catalog && self.current_database == name {
            return Err(
                Error::catalog("Cannot drop a database which is currently in use.")
                    .hint("USE another one first"),
            );
        }
        let empty = database.entries.is_empty() && database.functions.is_empty();
        if !empty && !cascade {
            return Err(Error::catalog(format!(
                "Database {name} in catalog {catalog} is not empty."
            ))
            .hint("DROP DATABASE ... CASCADE drops its tables too"));
        }
        let dropped = self.catalog_mut(catalog)?.databases.remove(name);
        Ok(dropped
            .map(|d| d.entries.into_values().collect())
            .unwrap_or_default())
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
        self.database_mut(catalog, name)?.options.extend(set);
        Ok(())
    }

    /// `USE CATALOG`.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn use_catalog(&mut self, name: &str) -> Result<()> {
        self.current_database = self.catalog(name)?.default_database.clone();
        self.current_catalog = name.into();
        Ok(())
    }

    /// `USE [catalog.]database`.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn use_database(&mut self, catalog: &str, name: &str) -> Result<()> {
        self.database(catalog, name)?;
        self.current_catalog = catalog.into();
        self.current_database = name.into();
        Ok(())
    }

    fn catalog_missing(&self, name: &str) -> Error {
        let error = Error::catalog(format!("Catalog {name} does not exist."));
        match did_you_mean(name, self.catalogs.keys().map(String::as_str)) {
            Some(close) => error.hint(format!("did you mean `{close}`?")),
            None => error.hint("SHOW CATALOGS lists what there is"),
        }
    }
}

fn check_options(options: &IndexMap<String, String>) -> Result<()> {
    let available = format!("write WITH ('type' = '{GENERIC}')");
    match options.get("type") {
        Some(kind) if kind == GENERIC => {}
        Some(kind) => {
            return Err(Error::options(format!(
                "Could not find any factory for identifier '{kind}' that implements \
                 'CatalogFactory'. Available factory identifiers are: {GENERIC}"
            ))
            .hint(available));
        }
        None => {
            return Err(Error::options(
                "Catalog options do not contain an option key 'type' for discovering a catalog.",
            )
            .hint(available));
        }
    }
    let known = ["type", "default-database", "property-version"];
    let unknown: Vec<_> = options
        .keys()
        .filter(|key| !known.contains(&key.as_str()))
        .map(String::as_str)
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Error::options(format!(
        "Unsupported options found for '{GENERIC}'.\n\nUnsupported options:\n\n{}\n\nSupported \
         options:\n\ndefault-database\nproperty-version",
        unknown.join("\n")
    )))
}

fn database_missing<'a>(
    catalog: &str,
    database: &str,
    known: impl Iterator<Item = &'a String>,
) -> Error {
    let error = Error::catalog(format!("Database '{catalog}'.'{database}' doesn't exist."));
    match did_you_mean(database, known.map(String::as_str)) {
        Some(close) => error.hint(format!("did you mean `{close}`?")),
        None => error.hint("SHOW DATABASES lists what there is"),
    }
}
