//! Runs statements for a person and shows what they give: what `run` and the REPL share.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use super::live;
use super::signals::Stopper;
use super::standstill::WatermarkWatch;
use super::tableau::{ChangeTable, MAX_COLUMN_WIDTH, NULL, rows, write_table};
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::portability::jars;
use crate::runtime::job::JobHandle;
use crate::session::{InsertJob, Listing, Query, Session, StatementResult};
use crate::sql::{FlinkParser, Statement};
use crate::types::text::RowPrinter;

/// What the caller has to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// The statement has shown what it had to show.
    Shown,
    /// The statement is done; there was nothing to show.
    Done,
    /// A job runs on.
    Job(InsertJob),
    /// End.
    Quit,
}

/// `sql-client.execution.result-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultMode {
    /// A bordered table of changes that grows.
    Tableau,
    /// A line a change: `+I[a, 1]`.
    Changelog,
    /// The table itself, redrawn when it changes.
    Table,
}

impl ResultMode {
    /// As the settings say.
    pub(crate) fn of(config: &Configuration) -> Self {
        let key = "sql-client.execution.result-mode";
        if config.is(key, "changelog") {
            Self::Changelog
        } else if config.is(key, "table") {
            Self::Table
        } else {
            Self::Tableau
        }
    }
}

/// `sql-client.display.max-column-width`.
pub(crate) fn max_column_width(config: &Configuration) -> usize {
    config
        .int("sql-client.display.max-column-width")
        .and_then(|n| usize::try_from(n).ok())
        .map_or(MAX_COLUMN_WIDTH, |n| n.max(4))
}

/// A session with the places where it shows things.
pub(crate) struct Shell {
    pub(crate) session: Session,
    pub(crate) stopper: Stopper,
    /// Jobs and queries that have been started, for the summary.
    pub(crate) started: Vec<JobHandle>,
    /// Lines of the terminal, if there is one.
    pub(crate) height: Option<usize>,
    watch: WatermarkWatch,
    /// Settings without effect that nobody has been told of.
    ignored: BTreeSet<String>,
}

impl Shell {
    pub(crate) fn new(mut session: Session) -> Self {
        let stopper = Stopper::default();
        let watcher = stopper.clone();
        session.on_job(move |job| watcher.watch(job));
        Self {
            session,
            stopper,
            started: Vec::new(),
            height: None,
            watch: WatermarkWatch::start(),
            ignored: BTreeSet::new(),
        }
    }

    /// Takes notice of a setting that was made.
    pub(crate) fn see_setting(&mut self, key: &str) {
        if !Configuration::has_effect(key) {
            self.ignored.insert(key.to_string());
        }
    }

    /// Tells of settings that have been made since the last time and have no effect here.
    pub(crate) fn tell_ignored(&mut self) {
        let ignored = std::mem::take(&mut self.ignored);
        if !ignored.is_empty() {
            let keys: Vec<String> = ignored.into_iter().collect();
            tracing::warn!("settings without effect here: {}", keys.join(", "));
        }
    }

    /// Runs one statement and shows what it gives on standard output. A query is read to its end.
    ///
    /// # Errors
    /// When the statement or its query fails, or standard output does.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<Next> {
        self.execute_parsed(FlinkParser::parse_statement(sql)?)
    }

    /// Runs a statement that is parsed already.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub(crate) fn execute_parsed(&mut self, statement: Statement) -> Result<Next> {
        match &statement {
            Statement::Set(Some(option)) => self.see_setting(&option.key),
            Statement::AddJar(jar) => tracing::warn!("{}", about_jar(jar)),
            _ => {}
        }
        let next = match self.session.execute_parsed(statement)? {
            StatementResult::Done => Next::Done,
            StatementResult::Quit => Next::Quit,
            StatementResult::Lines(lines) => {
                let mut out = io::stdout().lock();
                for line in lines {
                    writeln!(out, "{line}").map_err(closed)?;
                }
                Next::Shown
            }
            StatementResult::Listing(listing) => {
                show_listing(&listing, max_column_width(self.session.config()))?;
                Next::Shown
            }
            StatementResult::Job(job) => {
                self.started.push(job.handle().clone());
                self.watch.add(job.handle());
                Next::Job(job)
            }
            StatementResult::Query(query) => {
                self.started.push(query.job().clone());
                self.watch.add(query.job());
                self.stopper.watch(query.job());
                self.show_query(query)?;
                Next::Shown
            }
        };
        Ok(next)
    }

    fn show_query(&self, query: Query) -> Result<()> {
        match ResultMode::of(self.session.config()) {
            ResultMode::Tableau => self.show_tableau(query),
            ResultMode::Changelog => show_changelog(query),
            ResultMode::Table => live::show(
                query,
                live::Frame {
                    zone: self.session.config().time_zone(),
                    max_width: max_column_width(self.session.config()),
                    height: self.height.unwrap_or(24),
                },
            ),
        }
    }

    fn show_tableau(&self, mut query: Query) -> Result<()> {
        let zone = self.session.config().time_zone();
        let table = ChangeTable::new(
            query.schema(),
            zone,
            max_column_width(self.session.config()),
        );
        let mut out = BufWriter::new(io::stdout());
        let mut received = 0;
        loop {
            let batch = query.next_batch();
            if received == 0 && matches!(batch, Ok(Some(_))) {
                table.write_header(&mut out).map_err(closed)?;
            }
            match batch? {
                Some(batch) => {
                    table.write_batch(&mut out, &batch).map_err(closed)?;
                    received += batch.len() as u64;
                    out.flush().map_err(closed)?;
                }
                None => break,
            }
        }
        if received == 0 {
            writeln!(out, "Empty set").map_err(closed)?;
        } else {
            table.write_footer(&mut out).map_err(closed)?;
            writeln!(out, "Received a total of {}", rows(received)).map_err(closed)?;
        }
        out.flush().map_err(closed)
    }
}

/// What becomes of a jar.
fn about_jar(jar: &str) -> String {
    let names = jars::built_in(jar);
    if names.is_empty() {
        return format!(
            "ADD JAR '{jar}' has no effect: there is no JVM here; what is in it cannot be used"
        );
    }
    let names: Vec<String> = names.iter().map(|n| format!("'{n}'")).collect();
    let (verb, names) = match names.as_slice() {
        [_] => ("is", names.join(", ")),
        _ => ("are", names.join(", ")),
    };
    format!("ADD JAR '{jar}' has no effect and needs none: {names} {verb} built in")
}

/// A bordered table; the text of SHOW CREATE as it is.
pub(crate) fn show_listing(listing: &Listing, max_width: usize) -> Result<()> {
    let mut out = BufWriter::new(io::stdout());
    if listing.columns == ["result"] {
        for line in listing.lines() {
            writeln!(out, "{}", line.trim_end()).map_err(closed)?;
        }
        return out.flush().map_err(closed);
    }
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| NULL.into());
    let cells: Vec<Vec<String>> = listing
        .rows
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    if cells.is_empty() {
        writeln!(out, "Empty set").map_err(closed)?;
    } else {
        // names and types are of no use when they are cut
        let width = max_width.max(120);
        write_table(&mut out, &listing.columns, &cells, width).map_err(closed)?;
        let n = u64::try_from(cells.len()).unwrap_or(u64::MAX);
        writeln!(out, "{} in set", rows(n)).map_err(closed)?;
    }
    out.flush().map_err(closed)
}

fn show_changelog(mut query: Query) -> Result<()> {
    let printer = RowPrinter::new(query.schema());
    let mut out = BufWriter::new(io::stdout());
    let mut line = String::new();
    while let Some(batch) = query.next_batch()? {
        for i in 0..batch.len() {
            line.clear();
            printer.write(&batch, i, &mut line);
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(closed)?;
        }
        out.flush().map_err(closed)?;
    }
    Ok(())
}

/// Standard output is gone. A reader that has enough (`| head`) is no failure: nothing is said.
pub(crate) fn closed(e: io::Error) -> Error {
    if e.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    Error::connector(format!("cannot write to standard output: {e}"))
}
