//! `ebbflow nexmark`: runs the queries of the benchmark and prints what they took.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Common, report};
use crate::error::{Error, Result};
use crate::nexmark::{Report, RunOptions, SinkKind, names, run};

/// What the command takes.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The queries, as q0,q5; without it all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    queries: Vec<String>,
    /// Events to generate.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    events: u64,
    /// Subtasks of every operator.
    #[arg(long, value_name = "N", default_value_t = 1)]
    parallelism: usize,
    /// Where rows go: nowhere (q10: into files), or into a hash.
    #[arg(long, value_enum, default_value_t = Sink::Blackhole)]
    sink: Sink,
    /// A script that makes the tables, in place of the generated events.
    #[arg(long, value_name = "FILE")]
    ddl: Option<PathBuf>,
    /// Prints a JSON object a query.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sink {
    Blackhole,
    Fold,
}

/// Runs the queries; says whether all went well. Errors have been reported.
pub(super) fn nexmark(options: &Options, common: &Common) -> bool {
    let run_options = match run_options(options, common) {
        Ok(run_options) => run_options,
        Err(e) => {
            report(&e, "", None);
            return false;
        }
    };
    let queries: Vec<&str> = if options.queries.is_empty() {
        names().collect()
    } else {
        options.queries.iter().map(|q| q.trim()).collect()
    };
    let mut well = true;
    for (i, query) in queries.into_iter().enumerate() {
        match run(query, &run_options) {
            Ok(measured) => print(&measured, options, i == 0),
            Err(e) => {
                report(&e, "", None);
                well = false;
            }
        }
    }
    well
}

fn run_options(options: &Options, common: &Common) -> Result<RunOptions> {
    if options.events == 0 {
        return Err(Error::options("--events 0 would never end"));
    }
    if options.parallelism == 0 {
        return Err(Error::options("--parallelism starts from 1"));
    }
    let ddl = options.ddl.as_ref().map(|path| {
        std::fs::read_to_string(path)
            .map_err(|e| Error::options(format!("cannot read '{}': {e}", path.display())))
    });
    Ok(RunOptions {
        events: options.events,
        parallelism: options.parallelism,
        sink: match options.sink {
            Sink::Blackhole => SinkKind::AsWritten,
            Sink::Fold => SinkKind::Fold,
        },
        settings: common.settings.clone(),
        ddl: ddl.transpose()?,
    })
}

#[allow(clippy::print_stdout)] // the command's output
fn print(measured: &Report, options: &Options, first: bool) {
    if options.json {
        println!("{}", json(measured, options.parallelism));
        return;
    }
    if first {
        println!(
            "{:<5} {:>10} {:>8} {:>8} {:>11} {:>11} {:>8} {:>10} {:>9} {:>10}  result",
            "query",
            "events",
            "seconds",
            "CPU s",
            "events/s",
            "events/CPU s",
            "peak MB",
            "state rows",
            "state MB",
            "rows out"
        );
    }
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".into(), |v| format!("{v:.digits$}"))
    };
    println!(
        "{:<5} {:>10} {:>8.3} {:>8} {:>11.0} {:>11} {:>8} {:>10} {:>9.1} {:>10}  {}",
        measured.query,
        measured.events,
        measured.seconds,
        number(measured.cpu_seconds, 2),
        measured.events_per_second(),
        number(measured.events_per_cpu_second(), 0),
        number(measured.peak_bytes.map(megabytes), 0),
        measured.state_rows,
        megabytes(measured.state_bytes),
        measured.output_rows,
        measured.folded.map_or_else(String::new, |f| f.to_string()),
    );
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn json(measured: &Report, parallelism: usize) -> serde_json::Value {
    let mut object = serde_json::json!({
        "engine": "ebbflow",
        "query": measured.query,
        "parallelism": parallelism,
        "events": measured.events,
        "net_s": measured.seconds,
        "cpu_s": measured.cpu_seconds,
        "events_per_s": measured.events_per_second(),
        "events_per_cpu_s": measured.events_per_cpu_second(),
        "peak_bytes": measured.peak_bytes,
        "state_rows": measured.state_rows,
        "state_bytes": measured.state_bytes,
        "output_rows": measured.output_rows,
    });
    if let Some(folded) = measured.folded {
        object["rows"] = folded.rows.into();
        object["hash"] = format!("{:016x}", folded.hash).into();
        object["changes"] = folded.changes.to_vec().into();
    }
    object
}
