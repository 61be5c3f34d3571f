//! Runs the records of a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use sqllogictest::{
    ColumnType, Condition, ExpectedError, Location, QueryExpect, Record, SortMode, StatementExpect,
};

use super::Failure;
use super::replace::Replacements;
use crate::changelog::RowKind;
use crate::connectors::console::CapturedConsole;
use crate::connectors::memory::MemoryStore;
use crate::connectors::registry::ConnectorContext;
use crate::error::{Error, Result};
use crate::session::{Query, Session, StatementResult};
use crate::sql::script::Script;
use crate::testing::suite::Mode;
use crate::types::text::{Printer, Style};

/// A letter of a query's types. All are taken; a row of letters says how many columns there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Letter(char);

impl ColumnType for Letter {
    fn from_char(value: char) -> Option<Self> {
        Some(Self(value))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

/// How a query's result is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The final table.
    Table { sorted: bool },
    /// The changes.
    Changes,
}

pub(super) fn run(path: &Path, text: &str, mode: Mode) -> Result<Vec<Failure>> {
    let memory = Arc::new(MemoryStore::default());
    let context = ConnectorContext {
        console: Arc::new(CapturedConsole::default()),
        memory: Arc::clone(&memory),
        ..ConnectorContext::default()
    };
    let mut session = Session::with_context(context);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    for (key, value) in mode.settings(&name) {
        session.set(&key, &value)?;
    }
    let mut runner = Runner {
        session,
        memory,
        replacements: Replacements::default(),
        mode,
        failures: Vec::new(),
    };
    runner.file(path, text)?;
    Ok(runner.failures)
}

struct Runner {
    session: Session,
    memory: Arc<MemoryStore>,
    replacements: Replacements,
    mode: Mode,
    failures: Vec<Failure>,
}

impl Runner {
    fn file(&mut self, path: &Path, text: &str) -> Result<()> {
        let text = self.replacements.take(text);
        let name = path.display().to_string();
        let records = sqllogictest::parse_with_name::<Letter>(&text, name)
            .map_err(|e| Error::parse(e.to_string()))?;
        for record in records {
            match record {
                Record::Halt { .. } => break,
                Record::Include { loc, filename } => {
                    let file = path.parent().unwrap_or(Path::new("")).join(filename);
                    self.include(&loc, &file)?;
                }
                Record::Statement {
                    loc,
                    conditions,
                    sql,
                    expected,
                    ..
                } if self.wants(&conditions) => self.statement(&loc, &sql, &expected),
                Record::Query {
                    loc,
                    conditions,
                    sql,
                    expected,
                    ..
                } if self.wants(&conditions) => self.query(&loc, &sql, expected),
                Record::System { loc, .. } | Record::Let { loc, .. } => {
                    return Err(Error::parse(format!(
                        "{loc}: 'system' and 'let' records are not supported"
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn wants(&self, conditions: &[Condition]) -> bool {
        conditions.iter().all(|condition| match condition {
            Condition::OnlyIf { label } => label == self.mode.name(),
            Condition::SkipIf { label } => label != self.mode.name(),
        })
    }

    fn fail(&mut self, loc: &Location, sql: &str, why: String) {
        self.failures.push(Failure {
            place: loc.to_string(),
            sql: sql.into(),
            why,
            rows: None,
        });
    }

    fn include(&mut self, loc: &Location, file: &PathBuf) -> Result<()> {
        let text = fs::read_to_string(file)
            .map_err(|e| Error::options(format!("{loc}: cannot read '{}': {e}", file.display())))?;
        if file.extension().is_none_or(|e| e != "sql") {
            return self.file(file, &text);
        }
        let name = file.display().to_string();
        for statement in Script::split(&text).all() {
            if let Err(e) = self.execute(statement.text) {
                let why = e.shifted(statement.offset).render(&text, Some(&name));
                self.fail(loc, "", why);
            }
        }
        Ok(())
    }

    /// Runs a statement to its end.
    fn execute(&mut self, sql: &str) -> Result<()> {
        match self.replacements.execute(&mut self.session, sql)? {
            StatementResult::Job(job) => {
                self.memory.finish_all();
                job.wait()
            }
            StatementResult::Query(mut query) => {
                self.memory.finish_all();
                query.collect_changes().map(|_| ())
            }
            _ => Ok(()),
        }
    }

    fn statement(&mut self, loc: &Location, sql: &str, expected: &StatementExpect) {
        let result = self.execute(without_semicolon(sql));
        match (expected, result) {
            (StatementExpect::Error(expected), result) => {
                self.check_error(loc, sql, expected, result)
            }
            (_, Err(e)) => self.fail(loc, sql, e.render(sql, None)),
            (_, Ok(())) => {}
        }
    }

    fn check_error(
        &mut self,
        loc: &Location,
        sql: &str,
        expected: &ExpectedError,
        result: Result<()>,
    ) {
        match result {
            Ok(()) => self.fail(loc, sql, "an error is wanted, but there is none".into()),
            Err(e) => {
                let text = e.render(sql, None);
                if !expected.is_match(&text, None) {
                    self.fail(
                        loc,
                        sql,
                        format!("another error is wanted ({expected}) than: {text}"),
                    );
                }
            }
        }
    }

    fn query(&mut self, loc: &Location, sql: &str, expected: QueryExpect<Letter>) {
        let sql = without_semicolon(sql);
        let (types, sort_mode, label, want) = match expected {
            QueryExpect::Error(expected) => {
                let result = self.execute(sql);
                self.check_error(loc, sql, &expected, result);
                return;
            }
            QueryExpect::Results {
                types,
                sort_mode,
                label,
                results,
                ..
            } => (types, sort_mode, label, results),
        };
        let letters: String = types.iter().map(ColumnType::to_char).collect();
        let only_retract = letters == "retract";
        let form = if only_retract || label.as_deref() == Some("retract") {
            Form::Changes
        } else {
            Form::Table {
                sorted: sort_mode == Some(SortMode::RowSort),
            }
        };
        let columns = (!only_retract).then_some(letters.len());
        if let Err(e) = self.compare(loc, sql, columns, form, want) {
            self.fail(loc, sql, e.render(sql, None));
        }
    }

    fn compare(
        &mut self,
        loc: &Location,
        sql: &str,
        columns: Option<usize>,
        form: Form,
        want: Vec<String>,
    ) -> Result<()> {
        let mut query = match self.session.execute(sql)? {
            StatementResult::Query(query) => query,
            StatementResult::Lines(lines) => {
                self.judge(loc, sql, want, lines);
                return Ok(());
            }
            _ => return Err(Error::plan("this is no query: write 'statement ok'")),
        };
        self.memory.finish_all();
        let width = query.schema().len();
        if let Some(columns) = columns.filter(|n| *n != width) {
            self.fail(
                loc,
                sql,
                format!("the query has {width} columns, not {columns}"),
            );
        }
        let ordered = matches!(self.mode, Mode::Plain | Mode::BatchSize1);
        let (want, got) = match form {
            Form::Changes if ordered => (want, query.collect_changes()?),
            Form::Changes => {
                // several subtasks: only the table at the end is the same
                let got = fold_lines(&query.collect_changes()?);
                (sorted(fold_lines(&want)), sorted(got))
            }
            Form::Table { sorted: false } if ordered => (normal(want), table(&mut query)?),
            Form::Table { .. } => (sorted(normal(want)), sorted(table(&mut query)?)),
        };
        self.judge(loc, sql, want, got);
        Ok(())
    }

    fn judge(&mut self, loc: &Location, sql: &str, want: Vec<String>, got: Vec<String>) {
        if want != got {
            self.failures.push(Failure {
                place: loc.to_string(),
                sql: sql.into(),
                why: "the rows differ".into(),
                rows: Some((want, got)),
            });
        }
    }
}

fn without_semicolon(sql: &str) -> &str {
    let sql = sql.trim();
    // the `;` of a statement set belongs to it
    match sql.strip_suffix(';') {
        Some(rest) => rest.trim_end(),
        None => sql,
    }
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// Rows of a file with their spaces made single.
fn normal(rows: Vec<String>) -> Vec<String> {
    let one = |row: String| row.split_whitespace().collect::<Vec<_>>().join(" ");
    rows.into_iter().map(one).collect()
}

/// Keeps the rows that are there at the end, in the order of their coming.
#[derive(Default)]
struct Fold(IndexMap<String, i64>);

impl Fold {
    fn add(&mut self, row: &str, sign: i64) {
        let count = self.0.entry(row.into()).or_default();
        *count += sign;
        if *count == 0 {
            self.0.shift_remove(row);
        }
    }

    /// The rows; one that was withdrawn too often is marked.
    fn rows(self) -> Vec<String> {
        let mut rows = Vec::new();
        for (row, count) in self.0 {
            let text = if count < 0 {
                format!("(withdrawn) {row}")
            } else {
                row
            };
            rows.extend((0..count.abs()).map(|_| text.clone()));
        }
        rows
    }
}

fn fold_lines(changes: &[String]) -> Vec<String> {
    let mut fold = Fold::default();
    for line in changes {
        match line.split_at_checked(2) {
            Some((kind, row)) => {
                fold.add(row, RowKind::from_symbol(kind).map_or(1, RowKind::sign));
            }
            None => fold.add(line, 1),
        }
    }
    fold.rows()
}

/// The final table of a query, in the file's form.
fn table(query: &mut Query) -> Result<Vec<String>> {
    let printers: Vec<Printer> = query
        .schema()
        .columns
        .iter()
        .map(|c| Printer::new(&c.data_type, Style::Row, chrono_tz::Tz::UTC))
        .collect();
    let mut fold = Fold::default();
    let mut row = String::new();
    while let Some(batch) = query.next_batch()? {
        for i in 0..batch.len() {
            row.clear();
            for (printer, column) in printers.iter().zip(batch.rows().columns()) {
                if !row.is_empty() {
                    row.push(' ');
                }
                let start = row.len();
                if column.is_null(i) {
                    row.push_str("NULL");
                } else {
                    printer.write(column, i, &mut row);
                }
                if row.len() == start {
                    row.push_str("(empty)");
                }
            }
            fold.add(&row, batch.kind(i).sign());
        }
    }
    Ok(normal(fold.rows()))
}
