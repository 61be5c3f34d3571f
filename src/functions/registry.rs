//! Finds functions by name, whatever the case, and describes them all.

use indexmap::IndexMap;

use super::doc::{FunctionDoc, FunctionKind};
use super::signature::families;
use super::table::TableFunctionRef;
use super::{Arg, FunctionRef, TOPICS, operators, others};
use crate::error::{Error, Result, did_you_mean};

/// A function with its description. Aggregates and table functions have only the latter here.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name in upper case.
    pub name: String,
    /// The scalar function; `None` for what another module computes.
    pub function: Option<FunctionRef>,
    /// What a person reads.
    pub doc: FunctionDoc,
    /// Whether the user registered it.
    pub user: bool,
}

/// All functions of a session by name.
#[derive(Debug, Clone)]
pub struct FunctionRegistry {
    entries: IndexMap<String, Entry>,
    table_functions: IndexMap<String, TableFunctionRef>,
}

impl Default for FunctionRegistry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl FunctionRegistry {
    /// No function at all.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            entries: IndexMap::new(),
            table_functions: IndexMap::new(),
        }
    }

    /// Flink's built-ins.
    #[must_use]
    pub fn builtin() -> Self {
        let mut registry = Self::empty();
        for (topic, builtins) in TOPICS {
            for builtin in *builtins {
                registry.insert(Entry {
                    name: builtin.name.to_string(),
                    function: Some(builtin.function()),
                    doc: builtin.doc(topic),
                    user: false,
                });
            }
        }
        for (function, doc) in operators::documented() {
            registry.insert(Entry {
                name: function.name().to_string(),
                function: Some(function),
                doc,
                user: false,
            });
        }
        for (name, doc) in others::all() {
            registry.insert(Entry {
                name: name.to_string(),
                function: None,
                doc,
                user: false,
            });
        }
        registry.entries.sort_unstable_keys();
        registry
    }

    fn insert(&mut self, entry: Entry) {
        self.entries.insert(entry.name.clone(), entry);
    }

    /// The scalar function called `name`, in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<FunctionRef> {
        self.entry(name)?.function.clone()
    }

    /// The function called `name`, of any kind, with its description.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries
            .get(name)
            .or_else(|| self.entries.get(&name.to_uppercase()))
    }

    /// All functions, by name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// All names, ascending, of every kind of function.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Names that the user registered, ascending.
    pub fn user_names(&self) -> impl Iterator<Item = &str> {
        self.entries().filter(|e| e.user).map(|e| e.name.as_str())
    }

    /// Adds a function of the user's; a built-in of the same name is hidden, as by Flink's temporary
    /// system functions.
    pub fn register(&mut self, function: FunctionRef, doc: FunctionDoc) {
        let name = function.name().to_uppercase();
        self.insert(Entry {
            name,
            function: Some(function),
            doc,
            user: true,
        });
        self.entries.sort_unstable_keys();
    }

    /// Removes a function of the user's, and shows the built-in of that name again. Whether there
    /// was one.
    pub fn unregister(&mut self, name: &str) -> bool {
        let name = name.to_uppercase();
        if !self.entries.get(&name).is_some_and(|e| e.user) {
            return false;
        }
        self.entries.shift_remove(&name);
        if let Some(builtin) = Self::builtin().entries.shift_remove(&name) {
            self.insert(builtin);
            self.entries.sort_unstable_keys();
        }
        true
    }

    /// The table function called `name`, in any case.
    #[must_use]
    pub fn table_function(&self, name: &str) -> Option<TableFunctionRef> {
        self.table_functions.get(&name.to_uppercase()).cloned()
    }

    /// Adds a user's table function, or replaces one of the same name.
    pub fn register_table_function(&mut self, function: TableFunctionRef) {
        self.table_functions
            .insert(function.name().to_uppercase(), function);
    }

    /// The function called `name` for a call with `args`.
    ///
    /// # Errors
    /// With Flink's reason and the nearest name, if there is no such scalar function.
    pub fn find(&self, name: &str, args: &[Arg]) -> Result<FunctionRef> {
        self.get(name).ok_or_else(|| self.unknown(name, args))
    }

    /// The refusal of a call of an unknown function.
    #[must_use]
    pub fn unknown(&self, name: &str, args: &[Arg]) -> Error {
        let upper = name.to_uppercase();
        let error = Error::plan(format!(
            "No match found for function signature {upper}({})",
            families(args)
        ));
        let hint = match self.entry(name) {
            Some(entry) => match entry.doc.kind {
                FunctionKind::Aggregate => Some(format!(
                    "{upper} is an aggregate function and cannot be used here"
                )),
                FunctionKind::Window => Some(format!("{upper} needs an OVER clause")),
                FunctionKind::Table => Some(format!(
                    "{upper} is a table function: use it in FROM, {}",
                    entry.doc.signature
                )),
                FunctionKind::Scalar => None,
            },
            None => did_you_mean(&upper, self.names()).map(|near| format!("did you mean {near}?")),
        };
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        let registry = FunctionRegistry::builtin();
        assert!(registry.get("upper").is_some());
        assert!(registry.get("UPPER").is_some());
        assert!(registry.get("no_such").is_none());
        assert_eq!(
            registry.entry("Sum").map(|e| e.doc.kind),
            Some(FunctionKind::Aggregate)
        );
    }

    #[test]
    fn names_come_sorted_and_once() {
        let names: Vec<_> = FunctionRegistry::builtin()
            .names()
            .map(str::to_string)
            .collect();
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(names, sorted);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_one() {
        let error = FunctionRegistry::builtin().unknown("uper", &[]);
        assert_eq!(
            error.message(),
            "No match found for function signature UPER()"
        );
        assert_eq!(error.hint_text(), Some("did you mean UPPER?"));
    }

    #[test]
    fn a_function_of_the_user_hides_the_builtin_until_it_is_dropped() {
        let mut registry = FunctionRegistry::builtin();
        let lower = registry.get("lower").expect("LOWER is built in");
        let doc = FunctionDoc::new(FunctionKind::Scalar, "user", "LOWER(x)", "mine");
        registry.register(lower, doc);
        assert_eq!(registry.user_names().collect::<Vec<_>>(), ["LOWER"]);
        assert!(registry.unregister("Lower"));
        assert!(registry.entry("lower").is_some_and(|e| !e.user));
        assert!(!registry.unregister("lower"));
    }
}
