//! The command line.
//!
//! - [`run`]: runs a script,
//! - [`explain`]: shows plans,
//! - [`test`]: runs test files,
//! - [`nexmark`]: runs the queries of the benchmark,
//! - [`stop`], [`checkpoints`]: look after jobs of other processes,
//! - [`check`]: names what of a script Flink does not have,
//! - [`deploy`], [`jobs`]: run a script on a Flink cluster, and look after jobs there,
//! - [`remote`]: what the commands that speak to a cluster share,
//! - [`shell`]: one statement and what it shows, shared with the REPL,
//! - [`standstill`]: says which watermark a query waits for,
//! - [`tableau`], [`live`], [`progress`], [`signals`], [`settings`]: what these are made of.

mod check;
mod checkpoints;
mod deploy;
mod explain;
mod jobs;
mod live;
mod nexmark;
mod progress;
pub(crate) mod remote;
mod run;
mod settings;
pub(crate) mod shell;
pub(crate) mod signals;
mod standstill;
mod stop;
pub(crate) mod tableau;
mod test;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use self::explain::Detail;
use self::run::Text;
use crate::connectors::registry::ConnectorContext;
use crate::error::{Error, Result};
use crate::session::Session;

/// Flink SQL without the cluster.
#[derive(Debug, Parser)]
#[command(name = "ebbflow", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    common: Common,
}

/// What all commands take.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// A setting, as SET 'key' = 'value' makes it; may be repeated.
    #[arg(short = 'D', long = "set", value_name = "KEY=VALUE", value_parser = settings::pair, global = true)]
    settings: Vec<(String, String)>,
    /// A TOML file with settings; -D goes before it.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Says more on standard error; twice: much more.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Says nothing but errors on standard error.
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// Where the jobs of a run begin.
#[derive(Debug, Args)]
struct RecoveryArguments {
    /// Forgets the checkpoints of former runs: jobs start from the beginning.
    #[arg(long)]
    fresh: bool,
    /// Jobs without checkpoints of their own begin with this savepoint.
    #[arg(short = 's', long = "from-savepoint", value_name = "PATH")]
    savepoint: Option<String>,
    /// Drops state of a checkpoint that has no place in the statements any more.
    #[arg(short = 'n', long)]
    allow_non_restored_state: bool,
}

impl RecoveryArguments {
    /// As settings.
    fn settings(&self) -> Vec<(String, String)> {
        let set =
            |key: &str, value: &str| (format!("execution.state-recovery.{key}"), value.into());
        let fresh = self.fresh.then(|| set("fresh", "true"));
        let path = self.savepoint.as_deref().map(|path| set("path", path));
        let ignore = self.allow_non_restored_state;
        let ignore = ignore.then(|| set("ignore-unclaimed-state", "true"));
        fresh.into_iter().chain(path).chain(ignore).collect()
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a script: its statements in order, then its jobs to their end.
    Run {
        /// The script; - is standard input.
        #[arg(required_unless_present = "sql", conflicts_with = "sql")]
        file: Option<PathBuf>,
        /// SQL to run instead of a file; may be repeated.
        #[arg(short = 'e', long = "execute", value_name = "SQL")]
        sql: Vec<String>,
        /// A script that runs before it; may be repeated.
        #[arg(short, long, value_name = "FILE")]
        init: Vec<PathBuf>,
        /// Prints each statement with what it gave, in a form to compare.
        #[arg(long, conflicts_with = "init")]
        transcript: bool,
        #[command(flatten)]
        recovery: RecoveryArguments,
    },
    /// Names what of a script Flink does not have; nothing is run.
    Check(check::Options),
    /// Runs a script on a Flink cluster, unchanged, through its SQL Gateway.
    Deploy(deploy::Options),
    /// Lists the jobs of a Flink cluster.
    Jobs {
        /// The SQL Gateway: http://host:8083.
        #[arg(long, value_name = "URL")]
        on: String,
        #[command(flatten)]
        patience: remote::Patience,
    },
    /// Starts the interactive prompt; so does no command at all.
    Repl {
        /// The SQL Gateway of a Flink cluster, on which statements run: http://host:8083.
        #[arg(long, value_name = "URL")]
        on: Option<String>,
        #[command(flatten)]
        patience: remote::Patience,
    },
    /// Runs test files: .slt, and .sql with a .out beside it.
    Test {
        /// Files and folders.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Runs the queries of the Nexmark benchmark and shows what they took.
    Nexmark(nexmark::Options),
    /// Stops running jobs with a last checkpoint, from which they can go on.
    Stop {
        /// The checkpoint directory of a job, or the folder of several; with --on the id of a job.
        target: PathBuf,
        /// Lets sources end and windows fire: for jobs that are not to go on.
        #[arg(long)]
        drain: bool,
        /// Does not wait until they have stopped.
        #[arg(long, conflicts_with = "on")]
        no_wait: bool,
        /// The SQL Gateway of the Flink cluster where the job runs: http://host:8083.
        #[arg(long, value_name = "URL")]
        on: Option<String>,
        /// Takes a savepoint in this directory of the cluster; without it the job is cancelled.
        #[arg(long, value_name = "DIR", requires = "on")]
        savepoint: Option<String>,
        #[command(flatten)]
        patience: remote::Patience,
    },
    /// Lists the checkpoints of jobs: age, size and positions.
    Checkpoints {
        /// The checkpoint directory of a job, or the folder of several.
        directory: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows the plans of a script's queries without running them.
    Explain {
        /// The script; - is standard input.
        file: PathBuf,
        /// With the kinds of changes on every edge.
        #[arg(long)]
        changelog_mode: bool,
        /// The state that checkpoints hold: uids, and what must agree for it to be restored.
        #[arg(long, conflicts_with = "changelog_mode")]
        state: bool,
    },
}

impl Common {
    /// A session with the settings of the command line.
    fn session(&self, context: ConnectorContext) -> Result<Session> {
        let mut session = Session::with_context(context);
        for (key, value) in self.all_settings()? {
            session.set(&key, &value)?;
        }
        Ok(session)
    }

    /// The settings of the file, then those of the command line.
    fn all_settings(&self) -> Result<Vec<(String, String)>> {
        let mut settings = match &self.config {
            Some(path) => settings::read(path)?,
            None => Vec::new(),
        };
        settings.extend(self.settings.iter().cloned());
        Ok(settings)
    }

    /// Sends the program's own messages to standard error: `EBBFLOW_LOG` or -v and -q say which.
    fn start_logging(&self) {
        use tracing_subscriber::filter::{EnvFilter, LevelFilter};
        let level = match (self.quiet, self.verbose) {
            (true, _) => LevelFilter::ERROR,
            (_, 0) => LevelFilter::WARN,
            (_, 1) => LevelFilter::INFO,
            (_, 2) => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        };
        let subscriber = tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .without_time()
            .with_target(false);
        match EnvFilter::try_from_env("EBBFLOW_LOG") {
            Ok(filter) => {
                let _ = subscriber.with_env_filter(filter).try_init();
            }
            Err(_) => {
                let _ = subscriber.with_max_level(level).try_init();
            }
        }
    }
}

/// Runs the command line of the process.
#[must_use]
pub fn main() -> ExitCode {
    let Arguments {
        command,
        mut common,
    } = Arguments::parse();
    common.start_logging();
    let well = match command {
        Some(Command::Run {
            file,
            sql,
            init,
            transcript,
            recovery,
        }) => {
            common.settings.extend(recovery.settings());
            let texts = init.iter().map(Text::read);
            let texts = texts.chain(std::iter::once(text_of(file.as_ref(), &sql)));
            reported(
                texts
                    .collect::<Result<Vec<_>>>()
                    .map(|texts| match texts.last() {
                        Some(text) if transcript => print_transcript(text, &common),
                        _ => run::run(&texts, &common),
                    }),
            )
        }
        Some(Command::Stop {
            target,
            drain,
            no_wait,
            on,
            savepoint,
            patience,
        }) => reported(match on {
            Some(url) => {
                let gateway = remote::Address { url, patience };
                jobs::stop(&gateway, &target, savepoint.as_deref(), drain, &common)
            }
            None => stop::stop(&target, drain, no_wait),
        }),
        Some(Command::Check(options)) => check::check(&options, &common),
        Some(Command::Deploy(options)) => deploy::deploy(&options, &common),
        Some(Command::Jobs { on, patience }) => {
            reported(jobs::list(&remote::Address { url: on, patience }, &common))
        }
        Some(Command::Checkpoints { directory, json }) => {
            reported(checkpoints::list(&directory, json))
        }
        Some(Command::Explain {
            file,
            changelog_mode,
            state,
        }) => reported(Text::read(&file).map(|text| {
            let detail = match (changelog_mode, state) {
                (true, _) => Detail::ChangelogMode,
                (_, true) => Detail::State,
                _ => Detail::Plan,
            };
            explain::explain(&text, detail, &common)
        })),
        Some(Command::Nexmark(options)) => nexmark::nexmark(&options, &common),
        Some(Command::Test { paths }) => reported(test::test(&paths, common.quiet)),
        Some(Command::Repl {
            on: Some(url),
            patience,
        }) => reported(repl_on(&remote::Address { url, patience }, &common)),
        None | Some(Command::Repl { .. }) => match common.session(ConnectorContext::default()) {
            Ok(session) => crate::repl::run(session),
            Err(e) => {
                report(&e, "", None);
                false
            }
        },
    };
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn repl_on(gateway: &remote::Address, common: &Common) -> Result<bool> {
    let settings = common.all_settings()?;
    let (gateway, session) = gateway.open(&settings)?;
    Ok(crate::repl::run_on(&gateway, session, &settings))
}

/// Whether all went well; an error is reported.
fn reported(result: Result<bool>) -> bool {
    result.unwrap_or_else(|e| {
        report(&e, "", None);
        false
    })
}

/// The text of a file, or of the command line.
fn text_of(file: Option<&PathBuf>, sql: &[String]) -> Result<Text> {
    match file {
        Some(file) => Text::read(file),
        None => Ok(Text {
            name: None,
            sql: sql.join(";\n"),
        }),
    }
}

#[allow(clippy::print_stdout)] // the command's output
fn print_transcript(text: &Text, common: &Common) -> bool {
    print!(
        "{}",
        crate::testing::transcript::run(&text.sql, &common.settings)
    );
    true
}

/// Prints an error for a person, on standard error.
#[allow(clippy::print_stderr)] // where errors go
pub(crate) fn report(e: &Error, sql: &str, name: Option<&str>) {
    let text = e.render(sql, name);
    if std::io::stderr().is_terminal() {
        let red = nu_ansi_term::Color::Red.bold();
        eprintln!("{} {text}", red.paint("error:"));
    } else {
        eprintln!("error: {text}");
    }
}
