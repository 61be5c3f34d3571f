//! `ebbflow deploy`: a script, unchanged, on a Flink cluster.

use std::path::PathBuf;

use clap::Args;

use super::remote::{self, Address, Look, Patience};
use super::run::Text;
use super::signals::{OnInterrupt, Stopper};
use super::{Common, report};
use crate::error::{Error, ErrorKind, Result};
use crate::gateway::handover::Handover;
use crate::gateway::rehearsal::{Rehearsal, Rehearsed, single};
use crate::gateway::{Edited, Gateway, RemoteSession, jobs};
use crate::sql::outline::{Outline, OutlineKind, title};
use crate::sql::script::{Script, ScriptStatement};

/// What `ebbflow deploy` takes.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The script; - is standard input.
    file: PathBuf,
    /// The SQL Gateway: http://host:8083.
    #[arg(long, value_name = "URL")]
    to: String,
    /// A script that runs before it; may be repeated.
    #[arg(short, long, value_name = "FILE")]
    init: Vec<PathBuf>,
    /// Starts no job: the cluster explains every statement, so that its errors are seen.
    #[arg(long)]
    dry_run: bool,
    /// Kafka tables begin where the newest checkpoint in this directory stands.
    #[arg(long, value_name = "DIR")]
    from_checkpoint: Option<PathBuf>,
    /// Waits until the jobs have ended.
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Deploys a script; says whether all went well. Errors have been reported.
pub(super) fn deploy(options: &Options, common: &Common) -> bool {
    match Deployment::begin(options, common) {
        Ok((mut deployment, scripts)) => deployment.run(&scripts),
        Err(e) => {
            report(&e, "", None);
            false
        }
    }
}

/// A job that was started.
struct Started {
    id: String,
    title: String,
}

struct Deployment<'o> {
    options: &'o Options,
    quiet: bool,
    verbose: bool,
    gateway: Gateway,
    session: RemoteSession,
    stopper: Stopper,
    rehearsal: Option<Rehearsal>,
    handover: Option<Handover>,
    look: Look,
    started: Vec<Started>,
}

/// What comes behind a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Next,
    End,
}

impl<'o> Deployment<'o> {
    fn begin(options: &'o Options, common: &Common) -> Result<(Self, Vec<Text>)> {
        let files = options.init.iter().chain(std::iter::once(&options.file));
        let scripts = files.map(Text::read).collect::<Result<Vec<_>>>()?;
        let address = Address {
            url: options.to.clone(),
            patience: options.patience.clone(),
        };
        let stopper = Stopper::default();
        if let Err(e) = stopper.install(OnInterrupt::StopProgram) {
            tracing::warn!("{e}");
        }
        let directory = options.from_checkpoint.as_ref();
        let handover = directory.map(|d| Handover::read(d)).transpose()?;
        let settings = common.all_settings()?;
        let (gateway, session) = address.open(&settings)?;
        tracing::info!("{} at {}", gateway.product(), gateway.address());
        let deployment = Self {
            options,
            quiet: common.quiet,
            verbose: common.verbose > 0,
            gateway,
            session,
            stopper,
            rehearsal: options.dry_run.then(Rehearsal::default),
            handover,
            look: Look::of_settings(&settings),
            started: Vec::new(),
        };
        Ok((deployment, scripts))
    }

    fn run(&mut self, scripts: &[Text]) -> bool {
        let mut well = true;
        for text in scripts {
            well &= self.script(text);
            if !well && self.rehearsal.is_none() {
                break;
            }
        }
        if !well && !self.started.is_empty() {
            self.tell_of_the_rest();
        }
        if well && let Some(handover) = &self.handover {
            match handover.report() {
                Ok(text) => eprint(&text),
                Err(e) => {
                    report(&e, "", None);
                    well = false;
                }
            }
        }
        if well && self.options.wait {
            well = self.wait();
        }
        well
    }

    /// Runs the statements of a script. In a rehearsal all are tried, else the first error ends it.
    fn script(&mut self, text: &Text) -> bool {
        let mut well = true;
        for statement in Script::split(&text.sql).all() {
            let result = match self.stopper.is_stopping() {
                true => Err(Error::flink("interrupted before this statement")),
                false => self.statement(statement, &text.sql),
            };
            match result {
                Ok(Then::Next) => {}
                Ok(Then::End) => break,
                Err(e) => {
                    let lost = e.kind() == ErrorKind::Gateway || self.stopper.is_stopping();
                    let e = remote::in_script(e, statement.text, statement.offset);
                    report(&e, &text.sql, text.name.as_deref());
                    well = false;
                    if lost || self.rehearsal.is_none() {
                        break;
                    }
                }
            }
        }
        well
    }

    /// Runs one statement; an error has its position in the statement.
    fn statement(&mut self, statement: ScriptStatement<'_>, sql: &str) -> Result<Then> {
        let line = sql[..statement.offset].matches('\n').count() + 1;
        let name = format!("line {line}: {}", title(statement.text));
        match Outline::of(statement.text).kind {
            OutlineKind::Quit => return Ok(Then::End),
            OutlineKind::Terminal => return Ok(Then::Next),
            _ => {}
        }
        let positioned = match &mut self.handover {
            Some(handover) => handover.next(statement.text)?,
            None => Edited::of(statement.text),
        };
        let (edited, explains) = match &mut self.rehearsal {
            None => (single(positioned.text()), false),
            Some(rehearsal) => match rehearsal.next(positioned.text()) {
                Rehearsed::Explained(edited) => (edited, true),
                Rehearsed::Run(edited) => (edited, false),
                Rehearsed::Skipped(why) => {
                    self.say(&format!("{name}: not tried, {why}"));
                    return Ok(Then::Next);
                }
            },
        };
        let result = self.send(&edited, &name, explains);
        result.map_err(|e| e.moved(|offset| positioned.original(edited.original(offset))))?;
        Ok(Then::Next)
    }

    /// Sends a statement and shows what it gives.
    fn send(&mut self, edited: &Edited, name: &str, explains: bool) -> Result<()> {
        let stopper = self.stopper.clone();
        let interrupted = || stopper.is_stopping();
        let answer = self.session.execute(edited.text(), &interrupted)?;
        let answer = answer.ok_or_else(|| Error::flink("interrupted"))?;
        let page = answer.page();
        if let Some(id) = page.job_id.clone().filter(|_| !page.is_query) {
            if self.quiet {
                say(&id);
            } else {
                say(&format!("{name}: job {id}"));
            }
            self.started.push(Started {
                id,
                title: name.to_string(),
            });
            return Ok(());
        }
        if explains && !self.verbose {
            self.say(&format!("{name}: can run"));
            return Ok(());
        }
        self.say(&format!("{name}: done"));
        remote::show(answer, self.look, &interrupted)?;
        Ok(())
    }

    fn wait(&self) -> bool {
        let ids: Vec<String> = self.started.iter().map(|job| job.id.clone()).collect();
        if ids.is_empty() {
            return true;
        }
        let jobs = match jobs::wait(&self.session, &ids, &|| self.stopper.is_stopping()) {
            Ok(jobs) => jobs,
            Err(e) => {
                report(&e, "", None);
                return false;
            }
        };
        let mut well = true;
        for started in &self.started {
            let status = jobs.iter().find(|job| job.id == started.id);
            let status = status.map_or("forgotten by the cluster", |job| job.status.as_str());
            self.say(&format!("job {}: {status}", started.id));
            if status == "FAILED" {
                let reason = jobs::failure(&self.session, &started.id);
                let reason = reason.unwrap_or_else(|| "Flink's log says why".into());
                report(
                    &Error::flink(reason)
                        .context(format!("job {} of {}", started.id, started.title)),
                    "",
                    None,
                );
            }
            well &= status == "FINISHED";
        }
        well
    }

    /// After an error: what runs on all the same.
    fn tell_of_the_rest(&self) {
        eprint("these jobs were started before the error, and run on:\n");
        for job in &self.started {
            eprint(&format!("  {}  {}\n", job.id, job.title));
        }
        eprint(&format!(
            "ebbflow stop JOB --on {} stops one\n",
            self.gateway.address()
        ));
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }
}

#[allow(clippy::print_stdout)] // the command's output
fn say(text: &str) {
    println!("{text}");
}

#[allow(clippy::print_stderr)] // what a command says about itself
fn eprint(text: &str) {
    eprint!("{text}");
}
