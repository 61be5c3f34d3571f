//! What is sent in place of a statement that must have no effect beyond the session: queries and
//! INSERTs are explained, declarations are made in the session's own memory.

use super::current::{Current, SESSION_CATALOG};
use super::edited::Edited;
use crate::sql::outline::{Outline, OutlineKind};

/// What becomes of a statement.
#[derive(Debug, Clone)]
pub enum Rehearsed {
    /// It is explained: this is sent.
    Explained(Edited),
    /// It concerns the session alone: this is sent.
    Run(Edited),
    /// It is not sent, for this reason.
    Skipped(String),
}

/// Follows a script, because where a declaration goes depends on the catalog that is used.
#[derive(Debug, Default)]
pub struct Rehearsal {
    current: Current,
}

/// The text that a gateway is sent for a statement that it has no form for: it takes one statement at a
/// time, and `BEGIN STATEMENT SET; .. END` is several.
#[must_use]
pub fn single(text: &str) -> Edited {
    let outline = Outline::of(text);
    let edited = Edited::of(text);
    match outline.kind {
        OutlineKind::StatementBlock => {
            edited.replace(0..outline.head, "EXECUTE STATEMENT SET BEGIN")
        }
        _ => edited,
    }
}

impl Rehearsal {
    /// What becomes of the next statement.
    pub fn next(&mut self, text: &str) -> Rehearsed {
        let outline = Outline::of(text);
        let edited = Edited::of(text);
        match outline.kind {
            OutlineKind::Query | OutlineKind::Insert | OutlineKind::StatementSet => {
                let head = if outline.head > 0 {
                    "EXPLAIN"
                } else {
                    "EXPLAIN "
                };
                Rehearsed::Explained(edited.replace(0..outline.head, head))
            }
            OutlineKind::StatementBlock => {
                Rehearsed::Explained(edited.replace(0..outline.head, "EXPLAIN STATEMENT SET BEGIN"))
            }
            OutlineKind::CreateTableAs => Rehearsed::Explained(edited.replace(0..0, "EXPLAIN ")),
            OutlineKind::Use => {
                self.current.follow(&outline);
                Rehearsed::Run(edited)
            }
            OutlineKind::Session | OutlineKind::Show => Rehearsed::Run(edited),
            OutlineKind::Create | OutlineKind::ChangeCatalog => {
                let catalog = self.current.catalog_of(&outline);
                if outline.temporary || catalog == SESSION_CATALOG {
                    Rehearsed::Run(edited)
                } else if outline.kind == OutlineKind::Create && !outline.replaces {
                    Rehearsed::Run(edited.replace(outline.head..outline.head, " TEMPORARY"))
                } else {
                    Rehearsed::Skipped(format!("it would change the catalog '{catalog}'"))
                }
            }
            OutlineKind::Quit | OutlineKind::Terminal => {
                Rehearsed::Skipped("it is for a terminal".into())
            }
            OutlineKind::Other => {
                Rehearsed::Skipped("only running it would tell what it does".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(rehearsal: &mut Rehearsal, text: &str) -> String {
        match rehearsal.next(text) {
            Rehearsed::Explained(e) => format!("explained: {}", e.text()),
            Rehearsed::Run(e) => format!("run: {}", e.text()),
            Rehearsed::Skipped(why) => format!("skipped: {why}"),
        }
    }

    #[test]
    fn what_starts_a_job_is_explained() {
        let mut rehearsal = Rehearsal::default();
        for (text, want) in [
            ("SELECT 1", "explained: EXPLAIN SELECT 1"),
            (
                "EXECUTE INSERT INTO t SELECT 1",
                "explained: EXPLAIN INSERT INTO t SELECT 1",
            ),
            (
                "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; END",
                "explained: EXPLAIN STATEMENT SET BEGIN INSERT INTO t SELECT 1; END",
            ),
            (
                "BEGIN STATEMENT SET;\nINSERT INTO t SELECT 1;\nEND",
                "explained: EXPLAIN STATEMENT SET BEGIN\nINSERT INTO t SELECT 1;\nEND",
            ),
            (
                "CREATE TABLE t WITH ('connector' = 'print') AS SELECT 1",
                "explained: EXPLAIN CREATE TABLE t WITH ('connector' = 'print') AS SELECT 1",
            ),
            (
                "TRUNCATE TABLE t",
                "skipped: only running it would tell what it does",
            ),
        ] {
            assert_eq!(sent(&mut rehearsal, text), want);
        }
    }

    #[test]
    fn catalogs_that_outlive_the_session_are_not_changed() {
        let mut rehearsal = Rehearsal::default();
        let create = "CREATE TABLE t (a INT) WITH ('connector' = 'print')";
        assert_eq!(sent(&mut rehearsal, create), format!("run: {create}"));
        sent(&mut rehearsal, "USE CATALOG hive");
        assert_eq!(
            sent(&mut rehearsal, create),
            "run: CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'print')"
        );
        assert_eq!(
            sent(&mut rehearsal, "DROP TABLE t"),
            "skipped: it would change the catalog 'hive'"
        );
        let own = "DROP TABLE default_catalog.default_database.t";
        assert_eq!(sent(&mut rehearsal, own), format!("run: {own}"));
        sent(&mut rehearsal, "USE default_catalog.default_database");
        assert_eq!(sent(&mut rehearsal, "DROP TABLE t"), "run: DROP TABLE t");
    }

    #[test]
    fn a_block_is_sent_as_one_statement() {
        let block = "BEGIN STATEMENT SET; INSERT INTO t SELECT nope; END";
        let edited = single(block);
        assert_eq!(
            edited.text(),
            "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT nope; END"
        );
        let place = edited.text().find("nope").expect("it is there");
        assert_eq!(
            edited.original(place),
            block.find("nope").expect("it is there")
        );
    }
}
