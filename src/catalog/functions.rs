//! Functions that were declared by the name of a class.
//!
//! The engine runs no Java. A declaration is kept, as Flink keeps it, and refused when it is used.

use super::{Catalogs, ObjectPath};
use crate::error::{Error, Result};

/// `CREATE FUNCTION f AS 'class' LANGUAGE JAVA`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDefinition {
    /// The class.
    pub class: String,
    /// `LANGUAGE`, in upper case.
    pub language: String,
}

/// Where a declared function lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionScope {
    /// In a database, for good.
    Permanent(ObjectPath),
    /// In a database, for the session.
    Temporary(ObjectPath),
    /// Everywhere, for the session.
    System(String),
}

impl Catalogs {
    /// The full path of a function's name, in lower case.
    ///
    /// # Errors
    /// When the name has more than three parts.
    pub fn resolve_function(&self, parts: &[String]) -> Result<ObjectPath> {
        let mut path = self.resolve(parts)?;
        path.name = path.name.to_lowercase();
        Ok(path)
    }

    /// The declaration in `scope`.
    #[must_use]
    pub fn declared_function(&self, scope: &FunctionScope) -> Option<&FunctionDefinition> {
        match scope {
            FunctionScope::System(name) => self.system_functions.get(name),
            FunctionScope::Temporary(path) => self.temporary_functions.get(path),
            FunctionScope::Permanent(path) => self
                .database(&path.catalog, &path.database)
                .ok()?
                .functions
                .get(&path.name),
        }
    }

    /// The declaration that a call of `parts` means.
    #[must_use]
    pub fn find_function(&self, parts: &[String]) -> Option<&FunctionDefinition> {
        let path = self.resolve_function(parts).ok()?;
        let system = match parts {
            [name] => self.system_functions.get(&name.to_lowercase()),
            _ => None,
        };
        system
            .or_else(|| self.declared_function(&FunctionScope::Temporary(path.clone())))
            .or_else(|| self.declared_function(&FunctionScope::Permanent(path)))
    }

    /// Adds or replaces a declaration.
    ///
    /// # Errors
    /// When the database does not exist.
    pub fn put_function(
        &mut self,
        scope: FunctionScope,
        definition: FunctionDefinition,
    ) -> Result<()> {
        match scope {
            FunctionScope::System(name) => {
                self.system_functions.insert(name, definition);
            }
            FunctionScope::Temporary(path) => {
                self.temporary_functions.insert(path, definition);
            }
            FunctionScope::Permanent(path) => {
                let database = self.database_mut(&path.catalog, &path.database)?;
                database.functions.insert(path.name, definition);
            }
        }
        Ok(())
    }

    /// Removes a declaration; whether there was one.
    pub fn remove_function(&mut self, scope: &FunctionScope) -> bool {
        match scope {
            FunctionScope::System(name) => self.system_functions.remove(name).is_some(),
            FunctionScope::Temporary(path) => self.temporary_functions.remove(path).is_some(),
            FunctionScope::Permanent(path) => self
                .database_mut(&path.catalog, &path.database)
                .is_ok_and(|d| d.functions.remove(&path.name).is_some()),
        }
    }

    /// Names of the functions that were declared in a database or for the whole session, sorted.
    #[must_use]
    pub fn function_names(&self, catalog: &str, database: &str) -> Vec<String> {
        let mut names: Vec<String> = self.system_functions.keys().cloned().collect();
        let here = |path: &&ObjectPath| path.catalog == catalog && path.database == database;
        let temporary = self.temporary_functions.keys().filter(here);
        names.extend(temporary.map(|path| path.name.clone()));
        if let Ok(database) = self.database(catalog, database) {
            names.extend(database.functions.keys().cloned());
        }
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl FunctionDefinition {
    /// The refusal of what would need the class.
    #[must_use]
    pub fn cannot_run(&self, name: &str) -> Error {
        Error::plan(format!(
            "Function '{name}' is implemented by the class '{}' ({}), which this engine cannot load",
            self.class, self.language
        ))
        .hint(
            "write it as an SQL expression or a view, or register a Rust function with \
             Session::functions_mut",
        )
    }
}
