//! Watermarks that stand still while operators wait for them: the commonest reason why a query over
//! event time shows nothing.
//!
//! A thread looks at the running jobs every few seconds. When something waits in an operator of event
//! time, and the watermark that is lowest has not risen for a while, it says which source holds it
//! back, where it stands and since when; once, until it rises again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use crate::runtime::clock::monotonic_ns;
use crate::runtime::job::JobHandle;
use crate::runtime::metrics::VertexMetrics;

/// Time between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// How long a watermark may stand before it is told of.
const PATIENCE: Duration = Duration::from_secs(30);

/// Operators that give rows when a watermark passes.
const WAITING: [&str; 11] = [
    "WindowAggregate",
    "GroupWindowAggregate",
    "WindowJoin",
    "WindowRank",
    "WindowDeduplicate",
    "IntervalJoin",
    "TemporalJoin",
    "TemporalSort",
    "OverAggregate",
    "Deduplicate",
    "Match",
];

/// What is known of the watermark of one subtask.
#[derive(Debug)]
struct Seen {
    watermark: Option<i64>,
    rows: u64,
    since_ns: u64,
    told: bool,
}

/// Remembers where the watermarks of a job stood.
#[derive(Debug, Default)]
struct Standstill {
    /// By vertex and subtask.
    seen: BTreeMap<(usize, usize), Seen>,
}

impl Standstill {
    /// What to say about a job's watermarks at `now_ns`.
    fn look(&mut self, metrics: &[VertexMetrics], now_ns: u64) -> Vec<String> {
        let makers: Vec<&VertexMetrics> = metrics.iter().filter(|m| makes_watermarks(m)).collect();
        for maker in &makers {
            let gauge = &maker.metrics.current_output_watermark;
            let (watermark, rows) = (gauge.get(), maker.metrics.records_in.get());
            let place = (maker.vertex, maker.subtask);
            let seen = self.seen.entry(place).or_insert(Seen {
                watermark,
                rows,
                since_ns: now_ns,
                told: false,
            });
            if seen.watermark != watermark || gauge.is_out() {
                *seen = Seen {
                    watermark,
                    rows,
                    since_ns: now_ns,
                    told: false,
                };
            }
        }
        let Some((waiting, operator)) = what_waits(metrics) else {
            return Vec::new();
        };
        let active = makers
            .iter()
            .filter(|m| !m.metrics.current_output_watermark.is_out());
        let lowest = active
            .clone()
            .map(|m| m.metrics.current_output_watermark.get())
            .min();
        let mut lines = Vec::new();
        for maker in active {
            let Some(seen) = self.seen.get_mut(&(maker.vertex, maker.subtask)) else {
                continue;
            };
            let stood = Duration::from_nanos(now_ns.saturating_sub(seen.since_ns));
            if seen.told || stood < PATIENCE || Some(seen.watermark) != lowest {
                continue;
            }
            seen.told = true;
            let came = maker.metrics.records_in.get() - seen.rows;
            lines.push(message(maker, seen, came, stood, waiting, operator));
        }
        lines
    }
}

fn makes_watermarks(m: &VertexMetrics) -> bool {
    // a source that brings its own has none before the first
    m.name == "WatermarkAssigner"
        || (m.name == "TableSourceScan" && m.metrics.current_output_watermark.get().is_some())
}

/// Rows that wait for a watermark, and the operator with the most of them.
fn what_waits(metrics: &[VertexMetrics]) -> Option<(u64, &str)> {
    let waiting = metrics
        .iter()
        .filter(|m| WAITING.contains(&m.name.as_str()));
    waiting
        .map(|m| (m.metrics.state_rows.get(), &*m.description))
        .filter(|(rows, _)| *rows > 0)
        .max_by_key(|(rows, _)| *rows)
}

fn message(
    maker: &VertexMetrics,
    seen: &Seen,
    came: u64,
    stood: Duration,
    waiting: u64,
    operator: &str,
) -> String {
    let source = maker.sources.join(", ");
    let stands = match seen.watermark {
        Some(ms) => format!("stands at {}", instant(ms)),
        None => "has not begun".into(),
    };
    let hint = match (came, seen.watermark) {
        (0, _) => {
            "no row has come since: if it may stay silent, set 'table.exec.source.idle-timeout' (or \
             the table's 'scan.watermark.idle-timeout') so that the others do not wait for it"
        }
        (_, None) => "rows come, but their watermark is NULL: look at the WATERMARK expression",
        _ => {
            "rows come, but none is later: the watermark rises only when an event time does, less \
             the delay of the WATERMARK expression"
        }
    };
    format!(
        "the watermark of {source} (subtask {}) {stands} since {} s, and {waiting} rows of state wait \
         for it in {operator}; {hint}",
        maker.subtask,
        stood.as_secs()
    )
}

/// Milliseconds since the epoch as an instant in UTC.
fn instant(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms).map_or_else(
        || format!("{ms} ms"),
        |t| t.format("%FT%T%.3fZ").to_string(),
    )
}

/// Looks at jobs until it is dropped.
#[derive(Debug)]
pub(crate) struct WatermarkWatch {
    // No other lock is taken while this one is held.
    jobs: Arc<Mutex<Vec<(JobHandle, Standstill)>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WatermarkWatch {
    pub(crate) fn start() -> Self {
        let jobs: Arc<Mutex<Vec<(JobHandle, Standstill)>>> = Arc::default();
        let watched = Arc::clone(&jobs);
        let (stop, stopped) = bounded::<()>(0);
        let thread = std::thread::Builder::new()
            .name("watermarks".into())
            .spawn(move || {
                while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                    let now = monotonic_ns();
                    let mut jobs = watched.lock().unwrap_or_else(PoisonError::into_inner);
                    jobs.retain(|(job, _)| !job.is_finished());
                    for (job, standstill) in jobs.iter_mut() {
                        for line in standstill.look(job.metrics(), now) {
                            tracing::warn!("{line}");
                        }
                    }
                }
            })
            .ok();
        Self {
            jobs,
            stop: Some(stop),
            thread,
        }
    }

    /// Looks at this job too.
    pub(crate) fn add(&self, job: &JobHandle) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push((job.clone(), Standstill::default()));
    }
}

impl Drop for WatermarkWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::metrics::OperatorMetrics;

    const SECOND: u64 = 1_000_000_000;

    fn vertex(vertex: usize, name: &str, source: &str) -> VertexMetrics {
        VertexMetrics {
            vertex,
            name: name.into(),
            description: format!("{name}()").into(),
            sources: Arc::from([source.to_string()]),
            subtask: 0,
            metrics: Arc::new(OperatorMetrics::default()),
        }
    }

    fn job() -> Vec<VertexMetrics> {
        vec![
            vertex(1, "WatermarkAssigner", "clicks"),
            vertex(3, "WatermarkAssigner", "views"),
            vertex(4, "WindowAggregate", ""),
        ]
    }

    #[test]
    fn the_source_that_holds_the_watermark_back_is_named_once() {
        let job = job();
        let mut standstill = Standstill::default();
        job[0].metrics.current_output_watermark.set(5_000);
        job[1].metrics.current_output_watermark.set(9_000);
        job[2].metrics.state_rows.set(7);
        assert!(standstill.look(&job, 0).is_empty());
        assert!(standstill.look(&job, 29 * SECOND).is_empty());
        let lines = standstill.look(&job, 31 * SECOND);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line = &lines[0];
        for part in [
            "clicks",
            "1970-01-01T00:00:05.000Z",
            "31 s",
            "7 rows",
            "idle-timeout",
        ] {
            assert!(line.contains(part), "{line} lacks {part}");
        }
        assert!(standstill.look(&job, 60 * SECOND).is_empty());
        job[0].metrics.current_output_watermark.set(6_000);
        assert!(standstill.look(&job, 61 * SECOND).is_empty());
        job[0].metrics.records_in.add(3);
        let lines = standstill.look(&job, 100 * SECOND);
        assert!(
            lines[0].contains("rows come, but none is later"),
            "{lines:?}"
        );
    }

    #[test]
    fn nothing_is_said_when_nothing_waits_or_a_source_is_idle() {
        let job = job();
        let mut standstill = Standstill::default();
        job[1].metrics.current_output_watermark.set(9_000);
        standstill.look(&job, 0);
        assert!(
            standstill.look(&job, 99 * SECOND).is_empty(),
            "no row waits"
        );
        job[2].metrics.state_rows.set(1);
        job[0].metrics.current_output_watermark.set_idle(true);
        let lines = standstill.look(&job, 199 * SECOND);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("views"), "{lines:?}");
    }
}
