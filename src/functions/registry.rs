//! Finds functions by name, whatever the case, and describes them all.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use indexmap::IndexMap;

use super::doc::{FunctionDoc, FunctionKind};
use super::refused::refusal;
use super::signature::families;
use super::table::TableFunctionRef;
use super::{Arg, FunctionRef, TOPICS, forms, operators, others, user};
use crate::aggregates::{UserAggregate, UserAggregateRef};
use crate::error::{Error, Result, did_you_mean};
use crate::types::TypeKind;

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
    aggregates: IndexMap<String, UserAggregateRef>,
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
            aggregates: IndexMap::new(),
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
        for (name, doc) in others::all().chain(forms::all()) {
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
        self.insert_user(name, Some(function), doc);
    }

    /// Adds a scalar function of the user's: columns of the parameters' types in, a column of the
    /// result's type and of the same length out.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{ArrayRef, AsArray};
    /// use arrow::datatypes::Int64Type;
    /// use ebbflow::session::Session;
    /// use ebbflow::types::TypeKind;
    ///
    /// let mut session = Session::new();
    /// session.functions_mut().register_scalar(
    ///     "twice",
    ///     &[TypeKind::BigInt],
    ///     TypeKind::BigInt,
    ///     |args| {
    ///         let numbers = args[0].as_primitive::<Int64Type>();
    ///         let twice = numbers.unary::<_, Int64Type>(|n| n.wrapping_mul(2));
    ///         Ok(Arc::new(twice) as ArrayRef)
    ///     },
    /// );
    /// let mut query = session.query("SELECT twice(x) FROM (VALUES (4), (5)) AS t (x)")?;
    /// assert_eq!(query.collect_changes()?, ["+I[8]", "+I[10]"]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    pub fn register_scalar(
        &mut self,
        name: &str,
        parameters: &[TypeKind],
        returns: TypeKind,
        columns: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
    ) {
        let types: Vec<_> = parameters.iter().map(|t| t.clone().nullable()).collect();
        let doc = user::doc(FunctionKind::Scalar, name, &types);
        self.register(user::scalar(name, parameters, returns, columns), doc);
    }

    /// Adds a table function of the user's: a call's arguments in, rows of the columns' types out.
    ///
    /// ```
    /// use datafusion::common::ScalarValue;
    /// use ebbflow::session::Session;
    /// use ebbflow::types::TypeKind;
    ///
    /// let mut session = Session::new();
    /// session.functions_mut().register_table(
    ///     "words",
    ///     &[TypeKind::STRING],
    ///     &[("word", TypeKind::STRING), ("length", TypeKind::Int)],
    ///     |args| {
    ///         let ScalarValue::Utf8(Some(text)) = &args[0] else {
    ///             return Ok(Vec::new());
    ///         };
    ///         let row = |word: &str| {
    ///             let length = i32::try_from(word.len()).unwrap_or(i32::MAX);
    ///             vec![ScalarValue::from(word), ScalarValue::from(length)]
    ///         };
    ///         Ok(text.split_whitespace().map(row).collect())
    ///     },
    /// );
    /// let mut query = session.query(
    ///     "SELECT s, word, length FROM (VALUES ('to be'), ('')) AS t (s), LATERAL TABLE(words(s))",
    /// )?;
    /// assert_eq!(query.collect_changes()?, ["+I[to be, to, 2]", "+I[to be, be, 2]"]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    pub fn register_table(
        &mut self,
        name: &str,
        parameters: &[TypeKind],
        columns: &[(&str, TypeKind)],
        rows: impl Fn(&[ScalarValue]) -> Result<Vec<Vec<ScalarValue>>> + Send + Sync + 'static,
    ) {
        let types: Vec<_> = parameters.iter().map(|t| t.clone().nullable()).collect();
        let function = user::table(name, parameters, columns, rows);
        self.register_table_function(function);
        if let Some(entry) = self.entries.get_mut(&name.to_uppercase()) {
            entry.doc = user::doc(FunctionKind::Table, name, &types);
        }
    }

    /// Adds an aggregate function of the user's; see [`UserAggregate`].
    pub fn register_aggregate(&mut self, function: impl UserAggregate) {
        let name = function.name().to_uppercase();
        let doc = user::doc(FunctionKind::Aggregate, function.name(), &function.inputs());
        self.insert_user(name.clone(), None, doc);
        self.aggregates
            .insert(name, UserAggregateRef(Arc::new(function)));
    }

    /// The user's aggregate function called `name`, in any case.
    #[must_use]
    pub fn aggregate(&self, name: &str) -> Option<UserAggregateRef> {
        self.aggregates.get(&name.to_uppercase()).cloned()
    }

    /// Whether a function of the user's stands before a built-in called `name`.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|e| e.user)
    }

    /// Puts in a description of the user's; what else the user called so is gone.
    fn insert_user(&mut self, name: String, function: Option<FunctionRef>, doc: FunctionDoc) {
        self.aggregates.shift_remove(&name);
        self.table_functions.shift_remove(&name);
        self.insert(Entry {
            name,
            function,
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
        self.aggregates.shift_remove(&name);
        self.table_functions.shift_remove(&name);
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

    /// Adds a table function of the user's, or replaces one of the same name.
    pub fn register_table_function(&mut self, function: TableFunctionRef) {
        let name = function.name().to_uppercase();
        let doc = FunctionDoc {
            signature: format!("LATERAL TABLE({}(...))", function.name()).into(),
            ..user::doc(FunctionKind::Table, function.name(), &[])
        };
        self.insert_user(name.clone(), None, doc);
        self.table_functions.insert(name, function);
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
        if let Some((reason, hint)) = refusal(name) {
            return Error::plan(format!("{upper} is not supported: {reason}")).hint(hint);
        }
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
