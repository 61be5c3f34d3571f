//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Flink SQL without the cluster.
#[derive(Debug, Parser)]
#[command(name = "ebbflow", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a script.
    Run {
        /// The script.
        file: Option<PathBuf>,
        /// SQL to run instead of a file.
        #[arg(short = 'e', long = "execute")]
        sql: Option<String>,
        /// Prints each statement with what it gave, in a form to compare.
        #[arg(long)]
        transcript: bool,
    },
}

/// Runs the command line of the process.
#[must_use]
pub fn main() -> ExitCode {
    match Arguments::parse().command {
        Some(Command::Run {
            file,
            sql,
            transcript,
        }) => run(file, sql, transcript),
        None => ExitCode::SUCCESS,
    }
}

#[allow(clippy::print_stdout)] // the command's output
fn run(file: Option<PathBuf>, sql: Option<String>, _transcript: bool) -> ExitCode {
    let script = match (file, sql) {
        (_, Some(sql)) => sql,
        (Some(file), None) => match std::fs::read_to_string(&file) {
            Ok(script) => script,
            Err(e) => {
                eprintln!("{}: {e}", file.display());
                return ExitCode::FAILURE;
            }
        },
        (None, None) => return ExitCode::FAILURE,
    };
    print!("{}", crate::testing::transcript::run(&script, &[]));
    ExitCode::SUCCESS
}
