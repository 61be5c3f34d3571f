//! The Nexmark benchmark: the queries of `examples/nexmark`, run to their end and measured.
//!
//! - [`queries`]: their text and what they need,
//! - [`measure`]: time and memory of this process,
//! - [`count_char`]: the function that q14 calls.

mod count_char;
mod measure;
mod queries;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use self::queries::names;

use self::measure::Usage;
use crate::connectors::console::{CapturedConsole, Console};
use crate::connectors::fold::Folded;
use crate::connectors::registry::ConnectorContext;
use crate::error::{Error, Result};
use crate::runtime::job::JobHandle;
use crate::session::{Session, StatementResult};
use crate::sql::script::Script;

/// Where the rows of a query go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkKind {
    /// As the query says: nowhere, but for q10, which writes files.
    AsWritten,
    /// Into a hash, to be compared.
    Fold,
}

/// How queries are run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Events to generate.
    pub events: u64,
    /// Subtasks of every operator.
    pub parallelism: usize,
    /// Where rows go.
    pub sink: SinkKind,
    /// Settings, as SET makes them.
    pub settings: Vec<(String, String)>,
    /// A script with the tables in place of `examples/nexmark/ddl.sql`.
    pub ddl: Option<String>,
}

/// What a run of one query took and gave.
#[derive(Debug, Clone)]
pub struct Report {
    /// `q0` and so on.
    pub query: String,
    /// Events generated.
    pub events: u64,
    /// From the start of the job to its end, s.
    pub seconds: f64,
    /// CPU time of the process meanwhile, s; `None` where the operating system does not tell.
    pub cpu_seconds: Option<f64>,
    /// Most memory that the process held meanwhile, bytes; `None` where the system does not tell.
    pub peak_bytes: Option<u64>,
    /// Keys and rows in state when it was last measured.
    pub state_rows: u64,
    /// Bytes of state when it was last measured.
    pub state_bytes: u64,
    /// Changes that reached the sink.
    pub output_rows: u64,
    /// The result, when it was folded.
    pub folded: Option<Folded>,
}

impl Report {
    /// Events a second.
    #[must_use]
    pub fn events_per_second(&self) -> f64 {
        self.events as f64 / self.seconds.max(1e-9)
    }

    /// Events a second of CPU time.
    #[must_use]
    pub fn events_per_cpu_second(&self) -> Option<f64> {
        self.cpu_seconds.map(|s| self.events as f64 / s.max(1e-9))
    }
}

/// A folder of this process that is removed in the end.
struct Workspace(PathBuf);

impl Workspace {
    fn new() -> Result<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("ebbflow-nexmark-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)
            .map_err(|e| Error::connector(format!("cannot make {}: {e}", folder.display())))?;
        Ok(Self(folder))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // what is left is in the folder for temporary files
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the query called `name` in a session of its own.
///
/// # Errors
/// When there is no such query, or it fails.
pub fn run(name: &str, options: &RunOptions) -> Result<Report> {
    let query = queries::text(name)?;
    let workspace = Workspace::new()?;
    queries::write_side_input(&workspace.0)?;
    run_script(name, query, options, &workspace.0).map_err(|e| e.context(name.to_string()))
}

fn run_script(name: &str, query: &str, options: &RunOptions, folder: &Path) -> Result<Report> {
    let context = ConnectorContext {
        console: Arc::new(CapturedConsole::default()) as Arc<dyn Console>,
        ..ConnectorContext::default()
    };
    let fold = Arc::clone(&context.fold);
    let mut session = Session::with_context(context);
    count_char::register(session.functions_mut());
    session.set("parallelism.default", &options.parallelism.to_string())?;
    for (key, value) in &options.settings {
        session.set(key, value)?;
    }
    let ddl = options.ddl.as_deref().unwrap_or(queries::DDL);
    let script = format!("{ddl}\n{query}")
        .replace("${EVENTS_NUM}", &options.events.to_string())
        .replace("${NEXMARK_DIR}", &folder.display().to_string());
    let usage = Usage::start();
    let mut job: Option<JobHandle> = None;
    for statement in Script::split(&script).all() {
        let text = match options.sink {
            SinkKind::Fold => queries::with_fold_sink(statement.text),
            SinkKind::AsWritten => statement.text.into(),
        };
        if let StatementResult::Job(started) = session.execute(&text)? {
            started.wait()?;
            job = Some(started.handle().clone());
        }
    }
    let job = job.ok_or_else(|| Error::internal("the query starts no job"))?;
    let taken = usage.taken();
    let sum = |value: fn(&crate::runtime::metrics::OperatorMetrics) -> u64, only: Option<&str>| {
        let vertices = job.metrics().iter();
        let counted = vertices.filter(|v| only.is_none_or(|name| v.name == name));
        counted.map(|v| value(&v.metrics)).sum::<u64>()
    };
    Ok(Report {
        query: name.to_string(),
        events: options.events,
        seconds: taken.seconds,
        cpu_seconds: taken.cpu_seconds,
        peak_bytes: taken.peak_bytes,
        state_rows: sum(|m| m.state_rows.get(), None),
        state_bytes: sum(|m| m.state_bytes.get(), None),
        output_rows: sum(|m| m.records_in.get(), Some("Sink")),
        folded: fold.get(&format!("default_catalog.default_database.nexmark_{name}")),
    })
}
