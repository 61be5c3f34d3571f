//! `ebbflow explain`: the plans of a script's queries, without running them.

use super::run::Text;
use super::{Common, report};
use crate::connectors::registry::ConnectorContext;
use crate::error::Result;
use crate::session::{Session, StatementResult};
use crate::sql::script::{Script, ScriptStatement};
use crate::sql::{FlinkParser, Statement};

/// Prints the plans; says whether all went well. Errors have been reported.
pub(super) fn explain(text: &Text, changelog_mode: bool, common: &Common) -> bool {
    let mut session = match common.session(ConnectorContext::default()) {
        Ok(session) => session,
        Err(e) => {
            report(&e, "", None);
            return false;
        }
    };
    for statement in Script::split(&text.sql).all() {
        if let Err(e) = one(&mut session, statement, changelog_mode) {
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
fn one(session: &mut Session, statement: ScriptStatement<'_>, modes: bool) -> Result<()> {
    let prefix = match FlinkParser::parse_statement(statement.text)? {
        Statement::Query(_) | Statement::Insert(_) | Statement::StatementSet(_) if modes => {
            "EXPLAIN CHANGELOG_MODE "
        }
        Statement::Query(_) | Statement::Insert(_) | Statement::StatementSet(_) => "EXPLAIN ",
        Statement::Quit => return Ok(()),
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
