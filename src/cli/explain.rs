//! `ebbflow explain`: the plans of a script's queries, without running them.

use super::run::Text;
use super::{Common, report};
use crate::connectors::registry::ConnectorContext;
use crate::error::Result;
use crate::session::{Session, StatementResult};
use crate::sql::script::{Script, ScriptStatement};
use crate::sql::{FlinkParser, Statement};

/// What is shown of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The operators.
    Plan,
    /// The operators with the kinds of changes on every edge.
    ChangelogMode,
    /// The state that a checkpoint holds of it.
    State,
}

/// Prints the plans; says whether all went well. Errors have been reported.
pub(super) fn explain(text: &Text, detail: Detail, common: &Common) -> bool {
    let mut session = match common.session(ConnectorContext::default()) {
        Ok(session) => session,
        Err(e) => {
            report(&e, "", None);
            return false;
        }
    };
    for statement in Script::split(&text.sql).all() {
        if let Err(e) = one(&mut session, statement, detail) {
            report(
                &e.shifted(statement.offset),
                &text.sql,
                text.name.as_deref(),
            );
            return false;
        }
    }
    true
}

#[allow(clippy::print_stdout)] // the command's output
fn one(session: &mut Session, statement: ScriptStatement<'_>, detail: Detail) -> Result<()> {
    let parsed = FlinkParser::parse_statement(statement.text)?;
    let prefix = match (&parsed, detail) {
        (Statement::Quit, _) => return Ok(()),
        (Statement::Query(_) | Statement::Insert(_) | Statement::StatementSet(_), detail) => {
            match detail {
                Detail::Plan => "EXPLAIN ",
                Detail::ChangelogMode => "EXPLAIN CHANGELOG_MODE ",
                Detail::State => {
                    let lines = session.explain_state(&parsed)?;
                    println!("{}\n", lines.join("\n"));
                    return Ok(());
                }
            }
        }
        _ => "",
    };
    // EXECUTE is no part of what EXPLAIN takes
    let (skipped, rest) = match statement.text.split_at_checked(7) {
        Some((word, rest)) if !prefix.is_empty() && word.eq_ignore_ascii_case("EXECUTE") => {
            (7, rest)
        }
        _ => (0, statement.text),
    };
    let result = session
        .execute(&format!("{prefix}{rest}"))
        .map_err(|e| e.shifted_back(prefix.len()).shifted(skipped))?;
    if let StatementResult::Lines(lines) = result {
        for line in lines {
            println!("{line}");
        }
        println!();
    }
    Ok(())
}
