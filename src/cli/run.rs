//! `ebbflow run`: the statements of a script in order, then its jobs to their end.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use super::progress::{StatusLine, Ticker, Totals, dropped};
use super::shell::{Next, Shell};
use super::signals::OnInterrupt;
use super::tableau::rows;
use super::{Common, report};
use crate::connectors::console::Console;
use crate::connectors::registry::ConnectorContext;
use crate::error::{Error, Result};
use crate::runtime::control::JobEnd;
use crate::session::{InsertJob, PlannedInsert};
use crate::sql::script::Script;
use crate::sql::{FlinkParser, Statement};

/// A script with the name that messages call it.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) name: Option<String>,
    pub(super) sql: String,
}

impl Text {
    /// The file's text; `-` is standard input.
    pub(super) fn read(path: &PathBuf) -> Result<Self> {
        let failed =
            |e: std::io::Error| Error::options(format!("cannot read '{}': {e}", path.display()));
        if path.as_os_str() == "-" {
            let mut sql = String::new();
            std::io::stdin().read_to_string(&mut sql).map_err(failed)?;
            return Ok(Self {
                name: Some("<stdin>".into()),
                sql,
            });
        }
        Ok(Self {
            name: Some(path.display().to_string()),
            sql: std::fs::read_to_string(path).map_err(failed)?,
        })
    }
}

/// Runs scripts one after the other, in one session; says whether all went well. Errors have been
/// reported.
pub(super) fn run(scripts: &[Text], common: &Common) -> bool {
    let status = Arc::new(StatusLine::default());
    let mut context = ConnectorContext::default();
    if std::io::stderr().is_terminal() {
        context.console = Arc::clone(&status) as Arc<dyn Console>;
    }
    let session = match common.session(context) {
        Ok(session) => session,
        Err(e) => {
            report(&e, "", None);
            return false;
        }
    };
    let mut shell = Shell::new(session);
    let settings: Vec<String> = shell
        .session
        .config()
        .iter()
        .map(|(k, _)| k.into())
        .collect();
    settings.iter().for_each(|key| shell.see_setting(key));
    if let Err(e) = shell.stopper.install(OnInterrupt::StopProgram) {
        tracing::warn!("{e}");
    }
    let mut run = Run {
        shell,
        planned: Vec::new(),
        jobs: Vec::new(),
        quiet: common.quiet,
    };
    let mut well = true;
    for text in scripts {
        if let Err(e) = run.script(&text.sql) {
            report(&e, &text.sql, text.name.as_deref());
            well = false;
            break;
        }
    }
    let Run {
        mut shell, jobs, ..
    } = run;
    shell.tell_ignored();
    if !well {
        jobs.iter().for_each(|job| job.handle().cancel());
    }
    let nothing = Text {
        name: None,
        sql: String::new(),
    };
    well &= wait(&jobs, &status, scripts.last().unwrap_or(&nothing));
    if !common.quiet {
        tell_ends(&jobs);
    }
    summarize(&shell, common);
    well
}

/// A script that is being run.
struct Run {
    shell: Shell,
    /// INSERTs that follow each other become one job, which begins when something has to see it.
    planned: Vec<PlannedInsert>,
    jobs: Vec<InsertJob>,
    quiet: bool,
}

impl Run {
    /// Runs the statements of a script in order; errors have their position in `sql`.
    fn script(&mut self, sql: &str) -> Result<()> {
        for statement in Script::split(sql).all() {
            if self.shell.stopper.is_stopping() {
                return Ok(());
            }
            let goes_on = self.execute(statement.text);
            if !goes_on.map_err(|e| e.shifted(statement.offset))? {
                break;
            }
        }
        self.start().map_err(|e| e.shifted(sql.len()))
    }

    /// Runs a statement; `false` says that the script ends here.
    fn execute(&mut self, sql: &str) -> Result<bool> {
        let statement = FlinkParser::parse_statement(sql)?;
        if let Some(planned) = self.shell.session.plan_insert_of(&statement)? {
            self.planned.extend(planned);
            return Ok(true);
        }
        if !only_declares(&statement) {
            self.start()?;
        }
        match self.shell.execute_parsed(statement)? {
            Next::Shown | Next::Done => {}
            Next::Quit => return Ok(false),
            Next::Job(job) => self.watch(job),
        }
        Ok(true)
    }

    /// Starts the INSERTs that wait.
    fn start(&mut self) -> Result<()> {
        if !self.planned.is_empty() {
            let planned = std::mem::take(&mut self.planned);
            let job = self.shell.session.start_planned(planned)?;
            self.shell.started.push(job.handle().clone());
            self.watch(job);
        }
        Ok(())
    }

    fn watch(&mut self, job: InsertJob) {
        tracing::info!("started {}", job.name());
        if !self.quiet {
            tell_beginning(&job);
        }
        self.jobs.push(job);
    }
}

/// Whether a statement neither shows what an earlier INSERT does nor changes how it runs.
fn only_declares(statement: &Statement) -> bool {
    match statement {
        Statement::CreateTable(create) => create.as_query.is_none(),
        Statement::CreateView(_)
        | Statement::CreateCatalog(_)
        | Statement::CreateDatabase(_)
        | Statement::CreateFunction(_)
        | Statement::Explain(_)
        | Statement::Use(_) => true,
        _ => false,
    }
}

#[allow(clippy::print_stderr)] // what a run says about itself
fn tell_beginning(job: &InsertJob) {
    if let Some(notice) = job.notice() {
        eprintln!("job '{}': {notice}", job.name());
    }
}

/// What became of the jobs, where it is more than that they have finished.
#[allow(clippy::print_stderr)] // what a run says about itself
fn tell_ends(jobs: &[InsertJob]) {
    for job in jobs {
        let failures = job.handle().failures();
        if let Some(last) = failures.last() {
            let times = match failures.len() {
                1 => "once".to_string(),
                n => format!("{n} times"),
            };
            eprintln!(
                "job '{}' was started again {times}; the last reason: {last}",
                job.name()
            );
        }
        if let Some(Ok(JobEnd::Stopped(epoch))) = job.handle().end() {
            let place = job.checkpoint_directory();
            let place = place.map(|d| format!(" in {}", d.display()));
            eprintln!(
                "job '{}' has stopped at checkpoint {epoch}{}",
                job.name(),
                place.unwrap_or_default()
            );
        }
    }
}

/// Waits for all jobs. When one fails the others are stopped.
fn wait(jobs: &[InsertJob], status: &Arc<StatusLine>, text: &Text) -> bool {
    let handles = jobs.iter().map(|job| job.handle().clone()).collect();
    let ticker = if jobs.is_empty() {
        None
    } else {
        Ticker::start(status, handles)
    };
    let failed = first_failure(jobs);
    drop(ticker);
    let Some((name, e)) = failed else {
        return true;
    };
    report(
        &e.context(format!("job '{name}'")),
        &text.sql,
        text.name.as_deref(),
    );
    false
}

fn first_failure(jobs: &[InsertJob]) -> Option<(&str, Error)> {
    // one waiter a job: whichever fails first stops the rest
    let (sender, ended) = crossbeam_channel::unbounded();
    std::thread::scope(|scope| {
        for job in jobs {
            let sender = sender.clone();
            scope.spawn(move || sender.send((job.name(), job.wait())));
        }
        drop(sender);
        let mut failed = None;
        for (name, result) in ended {
            if let Err(e) = result
                && failed.is_none()
            {
                failed = Some((name, e));
                jobs.iter().for_each(|job| job.handle().cancel());
            }
        }
        failed
    })
}

#[allow(clippy::print_stderr)] // what a run says about itself
fn summarize(shell: &Shell, common: &Common) {
    let totals = Totals::of(&shell.started);
    tracing::info!("{} in, {} out", rows(totals.rows_in), rows(totals.rows_out));
    if !common.quiet {
        eprint!("{}", dropped(&shell.started));
    }
}
