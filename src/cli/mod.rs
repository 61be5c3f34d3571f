//! The command line.
//!
//! - [`run`]: runs a script,
//! - [`explain`]: shows plans,
//! - [`test`]: runs test files,
//! - [`nexmark`]: runs the queries of the benchmark,
//! - [`shell`]: one statement and what it shows, shared with the REPL,
//! - [`standstill`]: says which watermark a query waits for,
//! - [`tableau`], [`live`], [`progress`], [`signals`], [`settings`]: what these are made of.

mod explain;
mod live;
mod nexmark;
mod progress;
mod run;
mod settings;
pub(crate) mod shell;
pub(crate) mod signals;
mod standstill;
pub(crate) mod tableau;
mod test;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

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
    #[arg(short = 'D', value_name = "KEY=VALUE", value_parser = settings::pair, global = true)]
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
        /// Prints each statement with what it gave, in a form to compare.
        #[arg(long)]
        transcript: bool,
    },
    /// Starts the interactive prompt; so does no command at all.
    Repl,
    /// Runs test files: .slt, and .sql with a .out beside it.
    Test {
        /// Files and folders.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Runs the queries of the Nexmark benchmark and shows what they took.
    Nexmark(nexmark::Options),
    /// Shows the plans of a script's queries without running them.
    Explain {
        /// The script; - is standard input.
        file: PathBuf,
        /// With the kinds of changes on every edge.
        #[arg(long)]
        changelog_mode: bool,
    },
}

impl Common {
    /// A session with the settings of the command line.
    fn session(&self, context: ConnectorContext) -> Result<Session> {
        let mut session = Session::with_context(context);
        if let Some(path) = &self.config {
            settings::load(path, &mut session)?;
        }
        for (key, value) in &self.settings {
            session.set(key, value)?;
        }
        Ok(session)
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
    let Arguments { command, common } = Arguments::parse();
    common.start_logging();
    let well = match command {
        Some(Command::Run {
            file,
            sql,
            transcript,
        }) => with_text(file.as_ref(), &sql, |text| {
            if transcript {
                print_transcript(text, &common)
            } else {
                run::run(text, &common)
            }
        }),
        Some(Command::Explain {
            file,
            changelog_mode,
        }) => with_text(Some(&file), &[], |text| {
            explain::explain(text, changelog_mode, &common)
        }),
        Some(Command::Nexmark(options)) => nexmark::nexmark(&options, &common),
        Some(Command::Test { paths }) => test::test(&paths, common.quiet).unwrap_or_else(|e| {
            report(&e, "", None);
            false
        }),
        None | Some(Command::Repl) => match common.session(ConnectorContext::default()) {
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

fn with_text(file: Option<&PathBuf>, sql: &[String], run: impl FnOnce(&Text) -> bool) -> bool {
    let text = match file {
        Some(file) => Text::read(file),
        None => Ok(Text {
            name: None,
            sql: sql.join(";\n"),
        }),
    };
    match text {
        Ok(text) => run(&text),
        Err(e) => {
            report(&e, "", None);
            false
        }
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
