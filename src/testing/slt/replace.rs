//! `replace table`: other content for a table of a script that is tested.
//!
//! ```text
//! replace table orders
//! 1|ann|10.0
//! +I|2|bob|20.0
//! -D|1|ann|10.0
//!
//! replace table totals
//! ```
//!
//! A table with rows is read from the `changelog` connector; a row without a kind is `+I`. A table
//! without rows lies in memory: what the script writes into it can be queried. Columns, watermark
//! and key stay those of the script.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::session::{Session, StatementResult};
use crate::sql::ast::SqlOption;
use crate::sql::{FlinkParser, Statement};

/// The replaced tables, by name, with the `WITH` options they get.
#[derive(Debug, Default)]
pub(super) struct Replacements(BTreeMap<String, Vec<(&'static str, String)>>);

impl Replacements {
    /// Takes the directives out of `text`: comments stay in their place, so that lines keep their
    /// numbers.
    pub(super) fn take(&mut self, text: &str) -> String {
        let mut rest = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &["replace", "table", name] = words.as_slice() else {
                rest.push_str(line);
                rest.push('\n');
                continue;
            };
            rest.push_str("#\n");
            let mut data = Vec::new();
            for row in lines.by_ref() {
                if row.trim().is_empty() {
                    rest.push('\n');
                    break;
                }
                rest.push_str("#\n");
                data.push(with_kind(row));
            }
            self.0.insert(name.trim_matches('`').into(), options(&data));
        }
        rest
    }

    /// Runs a statement of a script; a replaced table gets its other options.
    pub(super) fn execute(&self, session: &mut Session, sql: &str) -> Result<StatementResult> {
        let mut statement = FlinkParser::parse_statement(sql)?;
        if let Statement::CreateTable(create) = &mut statement {
            let name = create.name.0.last().map(ToString::to_string);
            let name = name.as_deref().unwrap_or_default().trim_matches('`');
            if let Some(options) = self.0.get(name) {
                let span = create.options.first().map(|o| o.span).unwrap_or_default();
                create.partitioned_by.clear();
                create.options = options
                    .iter()
                    .map(|(key, value)| SqlOption {
                        key: (*key).into(),
                        value: value.clone(),
                        span,
                    })
                    .collect();
            }
        }
        session.execute_parsed(statement)
    }
}

/// `row` with a kind after its step, if it has none.
fn with_kind(row: &str) -> String {
    let (step, changes) = match row.split_once(' ') {
        Some((step, changes)) if step.starts_with('@') => (Some(step), changes),
        _ => (None, row),
    };
    let kind = changes.split('|').next().unwrap_or_default();
    let known = matches!(kind, "+I" | "-U" | "+U" | "-D") || changes == "end";
    let plus = if known { "" } else { "+I|" };
    match step {
        Some(step) => format!("{step} {plus}{changes}"),
        None => format!("{plus}{changes}"),
    }
}

fn options(data: &[String]) -> Vec<(&'static str, String)> {
    if data.is_empty() {
        return vec![("connector", "memory".into())];
    }
    let has = |kind: &str| data.iter().any(|row| row.contains(&format!("{kind}|")));
    let mode = match (has("-U"), has("+U"), has("-D")) {
        (false, false, false) => "I",
        (false, true, _) => "I,UA,D",
        _ => "I,UB,UA,D",
    };
    vec![
        ("connector", "changelog".into()),
        ("changelog-mode", mode.into()),
        ("data", data.join("\n")),
    ]
}
