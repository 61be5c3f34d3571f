//! Functions of Flink that are refused by name, and what to do instead.

/// Names in upper case, the reason, and the way out.
const ROWS: &[(&str, &str, &str)] = &[
    (
        "ML_PREDICT",
        "it runs a model behind a service that CREATE MODEL names, and there are no models here",
        "call the service in a program and join its answers, or register a table function",
    ),
    (
        "ML_EVALUATE",
        "it runs a model behind a service that CREATE MODEL names, and there are no models here",
        "evaluate the model outside of the query",
    ),
    (
        "VECTOR_SEARCH",
        "it asks a connector of a vector store, and there is none here",
        "register a table function that asks the store",
    ),
    (
        "TO_CHANGELOG",
        "changes are not made rows here",
        "write the table into a sink whose format keeps the kind of each change, as debezium-json does",
    ),
    (
        "FROM_CHANGELOG",
        "rows are not made changes here",
        "read the table with a format that knows the kind of each change, as debezium-json does",
    ),
    (
        "PYTHON",
        "there is no Python in the engine",
        "write it as an SQL expression or a view, or register a Rust function",
    ),
];

/// Why the function called `name`, in any case, is refused, and what to do instead.
#[must_use]
pub fn refusal(name: &str) -> Option<(&'static str, &'static str)> {
    ROWS.iter()
        .find(|(known, ..)| known.eq_ignore_ascii_case(name))
        .map(|(_, reason, hint)| (*reason, *hint))
}

/// All refused functions: name, reason, way out.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ROWS.iter().copied()
}
