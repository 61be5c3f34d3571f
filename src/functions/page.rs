//! The page of the docs that lists all functions, made of what the registry says about them.

use std::fmt::Write;

use super::doc::FunctionKind;
use super::others::EXAMPLE_ROWS;
use super::refused;
use super::registry::{Entry, FunctionRegistry};

/// Topics in the order of the page, and their headings.
const TOPICS: &[(&str, &str)] = &[
    ("operators", "Operators"),
    ("comparison", "Comparisons"),
    ("logic", "Logic of three values"),
    ("special", "Forms of their own"),
    ("conditional", "Choosing and asking"),
    ("arithmetic", "Numbers"),
    ("string", "Strings"),
    ("temporal", "Dates and times"),
    ("collection", "Arrays, maps and rows"),
    ("json", "JSON"),
    ("variant", "VARIANT"),
    ("structured", "Structured types"),
    ("bitmap", "Bitmaps"),
    ("encoding", "Hashes and encodings"),
    ("url", "Addresses"),
    ("aggregate", "Aggregates"),
    ("window", "Functions with OVER"),
    ("table", "Tables"),
    ("pattern", "In MATCH_RECOGNIZE"),
];

const HEAD: &str = "\
# Functions

All functions that `SHOW FUNCTIONS` knows, with Flink's names, types and results. `DESCRIBE FUNCTION
EXTENDED name` shows the same in a session. What differs from Flink on purpose stands in
[differences.md](differences.md).

This page is made from the functions themselves (`EBBFLOW_WRITE_DOCS=1 cargo test --test
function_examples`), and every example is run as a test. Results are shown as the `print` connector
shows them.
";

/// The query that runs the example of a function, if it has one.
#[must_use]
pub fn example_query(entry: &Entry) -> Option<String> {
    let example = entry.doc.example.as_ref();
    let rows = match entry.doc.kind {
        FunctionKind::Aggregate => format!(" FROM {EXAMPLE_ROWS}"),
        _ => String::new(),
    };
    (!example.is_empty()).then(|| format!("SELECT {example} AS r{rows}"))
}

/// The page, as Markdown.
#[must_use]
pub fn markdown(registry: &FunctionRegistry) -> String {
    let mut page = HEAD.to_string();
    let known = |topic: &str| TOPICS.iter().any(|(t, _)| *t == topic);
    for (topic, heading) in TOPICS.iter().copied().chain([("", "Others")]) {
        let entries: Vec<&Entry> = registry
            .entries()
            .filter(|e| match topic {
                "" => !known(&e.doc.topic),
                _ => e.doc.topic == topic,
            })
            .collect();
        if !entries.is_empty() {
            section(&mut page, heading, &entries);
        }
    }
    page.push_str("\n## Refused\n\n| function | why | instead |\n|---|---|---|\n");
    for (name, reason, hint) in refused::all() {
        line(&mut page, &[&code(name), reason, hint]);
    }
    page
}

fn section(page: &mut String, heading: &str, entries: &[&Entry]) {
    let examples = entries.iter().any(|e| !e.doc.example.is_empty());
    let _ = write!(page, "\n## {heading}\n\n");
    if entries
        .iter()
        .any(|e| e.doc.kind == FunctionKind::Aggregate)
    {
        let _ = write!(page, "The examples are over `{EXAMPLE_ROWS}`.\n\n");
    }
    if !examples {
        page.push_str("| function | what it gives |\n|---|---|\n");
        for entry in entries {
            line(page, &[&forms(&entry.doc.signature), &entry.doc.summary]);
        }
        return;
    }
    page.push_str("| function | what it gives | example | result |\n|---|---|---|---|\n");
    for entry in entries {
        let doc = &entry.doc;
        let (example, result) = match doc.example.as_ref() {
            "" => (String::new(), String::new()),
            example => (code(example), code(&doc.result)),
        };
        line(
            page,
            &[&forms(&doc.signature), &doc.summary, &example, &result],
        );
    }
}

/// A row of a table, with the bars in its cells escaped.
fn line(page: &mut String, cells: &[&str]) {
    for cell in cells {
        page.push_str("| ");
        page.push_str(&cell.replace('|', "\\|"));
        page.push(' ');
    }
    page.push_str("|\n");
}

fn forms(signature: &str) -> String {
    let forms: Vec<String> = signature.lines().map(code).collect();
    forms.join("<br>")
}

/// Text as code, whatever ticks and blanks are in it.
fn code(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".into();
    }
    let inside = text.contains('`');
    let edge = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    match (inside, edge) {
        (false, false) => format!("`{text}`"),
        (false, true) => format!("` {text} `"),
        (true, _) => format!("`` {text} ``"),
    }
}
