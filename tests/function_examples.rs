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

/// What stands in the tests for a function that is not called by its name.
fn written(name: &str) -> &str {
    match name {
        "ITEM" => "[",
        "DOT" => "t.r",
        "MINUS_DATE" => ") DAY",
        name => name,
    }
}

/// Whether `name` stands in `text` as a word of its own.
fn occurs(name: &str, text: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !name.starts_with(word) || !before.is_some_and(word) && !after.is_some_and(word)
    })
}

/// Every function is used in an `.slt`, in a query with its result and in one that is refused or fails.
#[test]
fn every_function_has_a_test() {
    let (mut answered, mut refused) = (String::new(), String::new());
    let pattern = format!("{}/sql-tests/**/*.slt", env!("CARGO_MANIFEST_DIR"));
    for path in glob::glob(&pattern).expect("a pattern").flatten() {
        for record in fs::read_to_string(path).expect("a test").split("\n\n") {
            let lines: Vec<_> = record.lines().filter(|l| !l.starts_with('#')).collect();
            let Some((head, sql)) = lines.split_first() else {
                continue;
            };
            let sql = sql.split(|line| *line == "----").next().unwrap_or_default();
            let records = match *head {
                head if head.starts_with("statement error") => &mut refused,
                _ => &mut answered,
            };
            records.push_str(&sql.join("\n"));
            records.push('\n');
        }
    }
    let registry = FunctionRegistry::builtin();
    let missing = |records: &str| -> Vec<String> {
        let names = registry.names().filter(|n| !occurs(written(n), records));
        names.map(str::to_string).collect()
    };
    // in batch only, or never a value: a query with them is always refused
    let refused_always = [
        "APPROX_COUNT_DISTINCT",
        "CUME_DIST",
        "LEAD",
        "NTILE",
        "PERCENT_RANK",
        "SOURCE_WATERMARK",
    ];
    let mut without_result = missing(&answered);
    without_result.retain(|name| !refused_always.contains(&name.as_str()));
    assert!(
        without_result.is_empty(),
        "no .slt has a result of {}",
        without_result.join(", ")
    );
    let without_error = missing(&refused);
    assert!(
        without_error.is_empty(),
        "no .slt has a refusal or failure of {}",
        without_error.join(", ")
    );
}
