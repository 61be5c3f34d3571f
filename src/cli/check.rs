//! `ebbflow check`: what of a script Flink does not have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::run::Text;
use super::{Common, report};
use crate::connectors::registry::ConnectorContext;
use crate::error::Result;
use crate::portability::{Checker, Finding};

/// The versions of Flink whose catalogs are known.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    /// Flink 2.3.
    #[value(name = "flink-2.3")]
    Flink23,
}

/// What `ebbflow check` takes.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The script; - is standard input.
    file: PathBuf,
    /// Where the script is to run.
    #[arg(long = "for", value_name = "VERSION", default_value = "flink-2.3")]
    target: Target,
    /// A script that runs before it; may be repeated.
    #[arg(short, long, value_name = "FILE")]
    init: Vec<PathBuf>,
    /// A connector, format or function that the cluster has from a jar; may be repeated.
    #[arg(long, value_name = "NAME")]
    with: Vec<String>,
}

/// Checks a script; whether Flink has all of it. Findings have been printed.
pub(super) fn check(options: &Options, common: &Common) -> bool {
    checked(options, common).unwrap_or_else(|e| {
        report(&e, "", None);
        false
    })
}

#[allow(clippy::print_stdout)] // the command's output
fn checked(options: &Options, common: &Common) -> Result<bool> {
    let Target::Flink23 = options.target;
    let session = common.session(ConnectorContext::default())?;
    let mut checker = Checker::new(session, options.with.iter().cloned());
    let mut missing = 0;
    for path in options.init.iter().chain(std::iter::once(&options.file)) {
        let text = Text::read(path)?;
        for Finding { error, note } in checker.check(&text.sql) {
            let name = text.name.as_deref();
            if !note {
                missing += 1;
                println!("{}\n", error.render(&text.sql, name));
            } else if !common.quiet {
                println!("note: {}\n", error.render_note(&text.sql, name));
            }
        }
    }
    match missing {
        0 => println!("Flink 2.3 has all of it"),
        1 => println!("1 thing would fail on Flink 2.3"),
        n => println!("{n} things would fail on Flink 2.3"),
    }
    Ok(missing == 0)
}
