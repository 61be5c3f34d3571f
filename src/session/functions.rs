//! Functions and modules: CREATE, ALTER, DROP and SHOW FUNCTIONS; LOAD, UNLOAD, USE and SHOW MODULES.

use sqlparser::ast::{Ident, ObjectName};

use super::listing::Listing;
use super::{Session, StatementResult};
use crate::catalog::{FunctionDefinition, FunctionScope};
use crate::error::{Error, Result, did_you_mean};
use crate::functions::refused::refusal;
use crate::plan::binder::object_parts;
use crate::sql::ast::{CreateFunction, Drop};

/// The only module.
const CORE: &str = "core";

/// The names under which Flink lists the functions of its core module, sorted as Flink sorts them.
const CORE_FUNCTIONS: &str = include_str!("core_functions.txt");

/// A loaded module and whether its functions are used.
#[derive(Debug, Clone)]
pub(super) struct Module {
    name: String,
    used: bool,
}

impl Module {
    /// What a session starts with.
    pub(super) fn core() -> Vec<Self> {
        vec![Self {
            name: CORE.into(),
            used: true,
        }]
    }
}

impl Session {
    fn function_scope(
        &self,
        name: &ObjectName,
        temporary: bool,
        system: bool,
    ) -> Result<FunctionScope> {
        let parts = object_parts(name)?;
        if system {
            return Ok(FunctionScope::System(parts.join(".").to_lowercase()));
        }
        let path = self.catalogs.resolve_function(&parts)?;
        Ok(if temporary {
            FunctionScope::Temporary(path)
        } else {
            FunctionScope::Permanent(path)
        })
    }

    pub(super) fn create_function(&mut self, create: &CreateFunction) -> Result<StatementResult> {
        let scope = self.function_scope(&create.name, create.temporary, create.system)?;
        let definition = definition(create);
        if self.catalogs.declared_function(&scope).is_some() {
            if create.lenient {
                return Ok(StatementResult::Done);
            }
            return Err(already_exists(&scope));
        }
        // a permanent one is looked at when it is used, a temporary one at once
        if create.temporary {
            return Err(definition.cannot_run(&create.name.to_string()));
        }
        self.catalogs.put_function(scope, definition)?;
        Ok(StatementResult::Done)
    }

    pub(super) fn alter_function(&mut self, alter: &CreateFunction) -> Result<StatementResult> {
        let scope = self.function_scope(&alter.name, alter.temporary, alter.system)?;
        if self.catalogs.declared_function(&scope).is_none() {
            if alter.lenient {
                return Ok(StatementResult::Done);
            }
            return Err(does_not_exist(&scope));
        }
        self.catalogs.put_function(scope, definition(alter))?;
        Ok(StatementResult::Done)
    }

    pub(super) fn drop_function(&mut self, drop: &Drop) -> Result<()> {
        let scope = self.function_scope(&drop.name, drop.temporary, drop.system)?;
        if self.catalogs.remove_function(&scope) {
            return Ok(());
        }
        // functions of the embedding program are temporary system functions
        if let FunctionScope::System(name) = &scope
            && self.functions.unregister(name)
        {
            return Ok(());
        }
        if drop.if_exists {
            return Ok(());
        }
        let error = does_not_exist(&scope);
        match &scope {
            FunctionScope::Permanent(path) | FunctionScope::Temporary(path)
                if self.functions.hides(&path.name) =>
            {
                Err(error.hint(format!(
                    "{0} is of the embedding program: DROP TEMPORARY SYSTEM FUNCTION {0}",
                    path.name
                )))
            }
            _ => Err(error),
        }
    }

    /// Names for SHOW FUNCTIONS: the core module's as Flink lists them, and what users made.
    pub(super) fn function_names(
        &self,
        from: Option<&ObjectName>,
        user: bool,
    ) -> Result<Vec<String>> {
        let (catalog, database) = match from {
            Some(name) => self.database_of(name)?,
            None => {
                let (catalog, database) = self.catalogs.current();
                (catalog.to_string(), database.to_string())
            }
        };
        let mut names = self.catalogs.function_names(&catalog, &database);
        names.extend(self.functions.user_names().map(str::to_lowercase));
        if !user && self.modules.iter().any(|m| m.used) {
            names.extend(CORE_FUNCTIONS.lines().map(str::to_string));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The refusal of an unknown function's name.
    pub(super) fn function_missing(&self, name: &str) -> Error {
        let error = Error::catalog(format!(
            "Function with the identifier '`{name}`' doesn't exist."
        ));
        if let Some((reason, hint)) = refusal(name) {
            return Error::catalog(format!(
                "{} is not supported: {reason}",
                name.to_uppercase()
            ))
            .hint(hint);
        }
        match did_you_mean(name, self.functions.names()) {
            Some(close) => error.hint(format!("did you mean {close}?")),
            None => error.hint("SHOW FUNCTIONS lists what there is"),
        }
    }

    pub(super) fn load_module(&mut self, name: &Ident) -> Result<StatementResult> {
        let name = &name.value;
        if self.modules.iter().any(|m| m.name == *name) {
            return Err(Error::plan(format!(
                "A module with name '{name}' already exists"
            )));
        }
        if name != CORE {
            return Err(Error::plan(format!(
                "Could not find any factory for identifier '{name}' that implements \
                 'ModuleFactory'. Available factory identifiers are: {CORE}"
            )));
        }
        self.modules = Module::core();
        Ok(StatementResult::Done)
    }

    pub(super) fn unload_module(&mut self, name: &Ident) -> Result<StatementResult> {
        self.module_index(&name.value)?;
        self.modules.retain(|m| m.name != name.value);
        Ok(StatementResult::Done)
    }

    pub(super) fn use_modules(&mut self, names: &[Ident]) -> Result<()> {
        for (i, name) in names.iter().enumerate() {
            self.module_index(&name.value)?;
            if names[..i].iter().any(|n| n.value == name.value) {
                return Err(Error::plan(format!(
                    "Module '{}' appears more than once",
                    name.value
                )));
            }
        }
        for module in &mut self.modules {
            module.used = names.iter().any(|n| n.value == module.name);
        }
        Ok(())
    }

    fn module_index(&self, name: &str) -> Result<usize> {
        self.modules
            .iter()
            .position(|m| m.name == name)
            .ok_or_else(|| Error::plan(format!("No module with name '{name}' exists")))
    }

    pub(super) fn show_modules(&self, full: bool) -> Listing {
        if !full {
            let used = self.modules.iter().filter(|m| m.used);
            return Listing::of("module name", used.map(|m| m.name.clone()));
        }
        let mut listing = Listing::new(&["module name", "used"]);
        for module in &self.modules {
            listing.push([Some(module.name.clone()), Some(module.used.to_string())]);
        }
        listing
    }
}

fn definition(create: &CreateFunction) -> FunctionDefinition {
    FunctionDefinition {
        class: create.class.clone(),
        language: create
            .language
            .as_ref()
            .map_or_else(|| "JAVA".into(), |l| l.to_uppercase()),
    }
}

fn already_exists(scope: &FunctionScope) -> Error {
    let error = match scope {
        FunctionScope::Permanent(path) => Error::catalog(format!(
            "Function {}.{} already exists in Catalog {}.",
            path.database, path.name, path.catalog
        )),
        FunctionScope::Temporary(path) => Error::catalog(format!(
            "Temporary catalog function {} is already defined",
            path.quoted()
        )),
        FunctionScope::System(name) => Error::catalog(format!(
            "Could not register temporary system function. A function named '{name}' does already \
             exist."
        )),
    };
    error.hint("use IF NOT EXISTS, or DROP it first")
}

fn does_not_exist(scope: &FunctionScope) -> Error {
    match scope {
        FunctionScope::Permanent(path) => Error::catalog(format!(
            "Function {}.{} does not exist in Catalog {}.",
            path.database, path.name, path.catalog
        )),
        FunctionScope::Temporary(path) => Error::catalog(format!(
            "Temporary catalog function {} doesn't exist",
            path.quoted()
        )),
        FunctionScope::System(name) => Error::catalog(format!(
            "Could not drop temporary system function. A function named '{name}' doesn't exist."
        )),
    }
}

#[cfg(test)]
mod tests;
