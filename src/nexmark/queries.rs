//! The text of the queries, and what they need beside their tables.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::error::{Error, Result, did_you_mean};

/// The tables.
pub(super) const DDL: &str = include_str!("../../examples/nexmark/ddl.sql");

const QUERIES: [(&str, &str); 24] = [
    ("q0", include_str!("../../examples/nexmark/q0.sql")),
    ("q1", include_str!("../../examples/nexmark/q1.sql")),
    ("q2", include_str!("../../examples/nexmark/q2.sql")),
    ("q3", include_str!("../../examples/nexmark/q3.sql")),
    ("q4", include_str!("../../examples/nexmark/q4.sql")),
    ("q5", include_str!("../../examples/nexmark/q5.sql")),
    ("q6", include_str!("../../examples/nexmark/q6.sql")),
    ("q7", include_str!("../../examples/nexmark/q7.sql")),
    ("q8", include_str!("../../examples/nexmark/q8.sql")),
    ("q9", include_str!("../../examples/nexmark/q9.sql")),
    ("q10", include_str!("../../examples/nexmark/q10.sql")),
    ("q11", include_str!("../../examples/nexmark/q11.sql")),
    ("q12", include_str!("../../examples/nexmark/q12.sql")),
    ("q13", include_str!("../../examples/nexmark/q13.sql")),
    ("q14", include_str!("../../examples/nexmark/q14.sql")),
    ("q15", include_str!("../../examples/nexmark/q15.sql")),
    ("q16", include_str!("../../examples/nexmark/q16.sql")),
    ("q17", include_str!("../../examples/nexmark/q17.sql")),
    ("q18", include_str!("../../examples/nexmark/q18.sql")),
    ("q19", include_str!("../../examples/nexmark/q19.sql")),
    ("q20", include_str!("../../examples/nexmark/q20.sql")),
    ("q21", include_str!("../../examples/nexmark/q21.sql")),
    ("q22", include_str!("../../examples/nexmark/q22.sql")),
    ("q23", include_str!("../../examples/nexmark/q23.sql")),
];

/// Keys of the side input of q13.
const SIDE_INPUT: usize = 10_000;

/// The names of all queries, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    QUERIES.iter().map(|(name, _)| *name)
}

/// The text of the query called `name`.
pub(super) fn text(name: &str) -> Result<&'static str> {
    let found = QUERIES.iter().find(|(query, _)| *query == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let error = Error::options(format!("There is no Nexmark query '{name}'"));
        match did_you_mean(name, names()) {
            Some(close) => error.hint(format!("did you mean {close}?")),
            None => error.hint("they are called q0 to q23"),
        }
    })
}

/// Writes the file that q13 looks values up in.
pub(super) fn write_side_input(folder: &Path) -> Result<()> {
    let mut lines = String::new();
    for key in 0..SIDE_INPUT {
        // writing to a string does not fail
        let _ = writeln!(lines, "{key},value-{key}");
    }
    let path = folder.join("side_input.csv");
    std::fs::write(&path, lines)
        .map_err(|e| Error::connector(format!("cannot write {}: {e}", path.display())))
}

/// The statement, with the connector `fold` if it makes the query's sink.
pub(super) fn with_fold_sink(statement: &str) -> Cow<'_, str> {
    static OPTIONS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?s)(PARTITIONED BY \([^)]*\)\s*)?WITH \(.*\)$").expect("a regex")
    });
    if statement.starts_with("CREATE TABLE nexmark_q") {
        OPTIONS.replace(statement, "WITH ('connector' = 'fold')")
    } else {
        statement.into()
    }
}
