//! Tables and views.

use std::collections::BTreeMap;

use super::{CatalogEntry, Catalogs, ObjectPath};
use crate::error::{Error, Result, did_you_mean};

impl Catalogs {
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
            self.suggest(path, error)
        })
    }

    /// Adds a hint to the error that `path` is missing.
    #[must_use]
    pub fn suggest(&self, path: &ObjectPath, error: Error) -> Error {
        let names = self.names(&path.catalog, &path.database);
        match did_you_mean(&path.name, names.iter().map(String::as_str)) {
            Some(close) if close != path.name => error.hint(format!("did you mean `{close}`?")),
            _ => error.hint("SHOW TABLES lists what there is"),
        }
    }

    /// Adds a table or view.
    ///
    /// # Errors
    /// When the database is missing or the name is taken (unless `replace`).
    pub fn add(&mut self, path: &ObjectPath, entry: CatalogEntry, replace: bool) -> Result<()> {
        let temporary = entry.is_temporary();
        let entries = if temporary {
            None
        } else {
            Some(self.entries_mut(path)?)
        };
        let taken = match &entries {
            Some(entries) => entries.contains_key(&path.name),
            None => self.temporary.contains_key(path),
        };
        if taken && !replace {
            return Err(already_exists(path, temporary));
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
        let database = self.database_mut(&path.catalog, &path.database)?;
        Ok(&mut database.entries)
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
}

/// The refusal of a name that is taken.
#[must_use]
pub fn already_exists(path: &ObjectPath, temporary: bool) -> Error {
    let message = if temporary {
        format!("Temporary table '{}' already exists", path.quoted())
    } else {
        format!(
            "Table (or view) {}.{} already exists in Catalog {}.",
            path.database, path.name, path.catalog
        )
    };
    Error::catalog(message).hint("use IF NOT EXISTS, or DROP it first")
}
