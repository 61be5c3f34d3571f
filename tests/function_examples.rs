//! What the functions say about themselves holds: examples give the result that stands beside them, the
//! page of the docs is theirs, and each occurs in a test.

use std::fs;
use std::path::Path;

use ebbflow::functions::FunctionRegistry;
use ebbflow::functions::page::{example_query, markdown};
use ebbflow::testing::transcript;

#[test]
fn examples_give_their_results() {
    let registry = FunctionRegistry::builtin();
    let examples: Vec<_> = registry
        .entries()
        .filter_map(|entry| Some((entry, example_query(entry)?)))
        .collect();
    let script: String = examples
        .iter()
        .map(|(_, query)| format!("{query};\n"))
        .collect();
    let transcript = transcript::run(&script, &[]);
    let mut outcomes = transcript.split("> SELECT ").skip(1);
    let mut wrong = Vec::new();
    for (entry, _) in examples {
        let outcome = outcomes.next().unwrap_or_default();
        let last = outcome
            .lines()
            .rfind(|line| line.starts_with("+I[") || line.starts_with("+U["));
        let expected = format!("[{}]", entry.doc.result);
        if last.is_none_or(|last| last[2..] != expected) {
            wrong.push(format!("{}: {expected} but\n{outcome}", entry.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_are_described() {
    for entry in FunctionRegistry::builtin().entries() {
        assert!(!entry.doc.summary.is_empty(), "{} says nothing", entry.name);
        assert!(
            entry.doc.summary.ends_with('.'),
            "{}: a summary is a sentence",
            entry.name
        );
        assert!(
            !entry.doc.signature.is_empty(),
            "{} has no form",
            entry.name
        );
    }
}

#[test]
fn the_page_of_the_docs_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/functions.md");
    let page = markdown(&FunctionRegistry::builtin());
    if std::env::var_os("EBBFLOW_WRITE_DOCS").is_some() {
        fs::write(&path, &page).expect("docs/functions.md can be written");
    }
    let stands = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stands == page,
        "docs/functions.md is stale: EBBFLOW_WRITE_DOCS=1 cargo test --test function_examples"
    );
}

/// Functions whose results were not compared with Flink's yet. This list may only shrink.
const UNCOMPARED: &[&str] = &[
    "CUME_DIST",
    "CURRENT_DATABASE",
    "DENSE_RANK",
    "HOP_PROCTIME",
    "PERCENT_RANK",
    "SESSION_PROCTIME",
    "SESSION_ROWTIME",
    "SINGLE_VALUE",
    "STDDEV",
    "STDDEV_SAMP",
    "TRY_PARSE_JSON",
    "TUMBLE_PROCTIME",
    "VARIANCE",
];

/// Every function is used in a test whose results are Flink's.
#[test]
fn every_function_has_a_test() {
    let mut tests = String::new();
    for folder in ["queries/functions", "conformance/*"] {
        let pattern = format!("{}/sql-tests/{folder}/*", env!("CARGO_MANIFEST_DIR"));
        for path in glob::glob(&pattern).expect("a pattern").flatten() {
            if path
                .extension()
                .is_some_and(|end| end == "slt" || end == "sql")
            {
                tests.push_str(&fs::read_to_string(path).expect("a test"));
            }
        }
    }
    let used = |name: &str| {
        tests.match_indices(name).any(|(at, _)| {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let before = tests[..at].chars().next_back();
            let after = tests[at + name.len()..].chars().next();
            !name.starts_with(word) || !before.is_some_and(word) && !after.is_some_and(word)
        })
    };
    let missing: Vec<_> = FunctionRegistry::builtin()
        .names()
        .map(|name| match name {
            // these are written otherwise
            "ITEM" => "[1]",
            "TRANSLATE3" => "TRANSLATE",
            "MINUS_DATE" => ") DAY",
            name => name,
        })
        .filter(|name| !used(name) && !UNCOMPARED.contains(name))
        .map(str::to_string)
        .collect();
    assert!(missing.is_empty(), "no test uses {}", missing.join(", "));
}
