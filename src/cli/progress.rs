//! What a run says about itself on standard error: a live line on a terminal, and at the end what
//! was dropped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::tableau::rows;
use crate::connectors::console::{Console, StandardConsole, Stream};
use crate::error::Result;
use crate::runtime::clock::monotonic_ns;
use crate::runtime::job::JobHandle;
use crate::runtime::metrics::OperatorMetrics;

/// Deletes the line where the cursor is.
const ERASE: &str = "\r\x1b[2K";

/// The last line of a terminal, kept free of what sinks print.
#[derive(Debug, Default)]
pub(super) struct StatusLine {
    // Held while a stream is written to, so that texts do not mix.
    text: Mutex<String>,
}

impl StatusLine {
    fn show(&self, text: String) {
        let mut shown = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "{ERASE}{text}");
        let _ = err.flush();
        *shown = text;
    }
}

impl Console for StatusLine {
    fn write(&self, stream: Stream, text: &str) -> Result<()> {
        let shown = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.is_empty() {
            return StandardConsole.write(stream, text);
        }
        StandardConsole.write(Stream::Err, ERASE)?;
        StandardConsole.write(stream, text)?;
        StandardConsole.write(Stream::Err, &shown)
    }
}

/// Shows the rows per second of some jobs, once a second, until it is dropped.
#[derive(Debug)]
pub(super) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts, if standard error is a terminal.
    pub(super) fn start(status: &Arc<StatusLine>, jobs: Vec<JobHandle>) -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let status = Arc::clone(status);
        let (stop, stopped) = bounded::<()>(0);
        let thread = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || {
                let mut last = (monotonic_ns(), Totals::of(&jobs));
                while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout)
                {
                    let now = (monotonic_ns(), Totals::of(&jobs));
                    status.show(line(&last, &now));
                    last = now;
                }
                status.show(String::new());
            })
            .ok()?;
        Some(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn line(last: &(u64, Totals), now: &(u64, Totals)) -> String {
    let per_second = |before: u64, after: u64| {
        let ns = u128::from(now.0.saturating_sub(last.0).max(1));
        u128::from(after.saturating_sub(before)) * 1_000_000_000 / ns
    };
    format!(
        "in {} ({}/s)  out {} ({}/s)",
        rows(now.1.rows_in),
        per_second(last.1.rows_in, now.1.rows_in),
        rows(now.1.rows_out),
        per_second(last.1.rows_out, now.1.rows_out),
    )
}

/// Rows that have come into and gone out of jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) rows_in: u64,
    pub(super) rows_out: u64,
}

impl Totals {
    pub(super) fn of(jobs: &[JobHandle]) -> Self {
        let mut totals = Self::default();
        for vertex in jobs.iter().flat_map(JobHandle::metrics) {
            match vertex.name.as_str() {
                "TableSourceScan" | "Values" => totals.rows_in += vertex.metrics.records_out.get(),
                "Sink" | "Collect" => totals.rows_out += vertex.metrics.records_in.get(),
                _ => {}
            }
        }
        totals
    }
}

/// A reason to drop rows: the counter, what to say and what to do.
struct Reason {
    count: fn(&OperatorMetrics) -> u64,
    what: &'static str,
    hint: &'static str,
}

const REASONS: [Reason; 4] = [
    Reason {
        count: |m| m.late_records_dropped.get(),
        what: "came behind the watermark and were dropped",
        hint: "let the watermark wait longer (WATERMARK FOR ts AS ts - INTERVAL ..) if such rows must count",
    },
    Reason {
        count: |m| m.inconsistent_dropped.get(),
        what: "withdrew something that was not there and were dropped",
        hint: "the source's changelog is incomplete, or state has expired (table.exec.state.ttl)",
    },
    Reason {
        count: |m| m.invalid_dropped.get(),
        what: "could not be read or did not fit the table and were dropped",
        hint: "look at the format's ignore-parse-errors option and at table.exec.sink.not-null-enforcer",
    },
    Reason {
        count: |m| m.null_rowtime_dropped.get(),
        what: "had no event time (NULL) and were dropped",
        hint: "filter rows without a time, or give them one in a computed column",
    },
];

/// What jobs have dropped, with the place and a remedy; empty if nothing.
pub(super) fn dropped(jobs: &[JobHandle]) -> String {
    let mut text = String::new();
    for reason in &REASONS {
        let mut places: BTreeMap<&str, u64> = BTreeMap::new();
        for vertex in jobs.iter().flat_map(JobHandle::metrics) {
            let n = (reason.count)(&vertex.metrics);
            if n > 0 {
                *places.entry(&vertex.description).or_default() += n;
            }
        }
        for (place, n) in &places {
            let _ = writeln!(text, "warning: {} {} in {place}", rows(*n), reason.what);
        }
        if !places.is_empty() {
            let _ = writeln!(text, "hint: {}", reason.hint);
        }
    }
    text
}
