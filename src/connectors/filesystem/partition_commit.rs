//! When a partition is complete, and who says so.
//!
//! Every writer tells which partitions it has written to. A partition is due by the clock or by the
//! watermark of *all* writers; each writer then closes its parts of it and is done with it, and the
//! last one leaves the marker in its transaction. The marker is made after all parts of that
//! checkpoint are visible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use super::listing::unescape;
use crate::connectors::options::{Options, wrong_value};
use crate::error::{Error, Result};
use crate::functions::TimePattern;
use crate::types::calendar::local_to_instant;
use crate::types::parse::cast_timestamp;

/// What makes a partition due.
#[derive(Debug, Clone)]
enum Trigger {
    /// The time since its first row.
    ProcessTime,
    /// The watermark, against the time that its values tell.
    PartitionTime(Extractor),
}

/// Takes a time out of the values of a partition.
#[derive(Debug, Clone)]
struct Extractor {
    /// `$dt $hour:00:00`; without one the first partition column is the time.
    pattern: Option<String>,
    formatter: Option<TimePattern>,
    /// The zone whose clock the partitions tell.
    zone: Tz,
}

/// The settings of `sink.partition-commit.*`.
#[derive(Debug, Clone)]
pub(super) struct PartitionCommit {
    trigger: Trigger,
    delay_ms: i64,
    /// The name of the marker.
    success_file: String,
}

impl PartitionCommit {
    /// Reads the options; `None` if partitions are not to be marked.
    pub(super) fn read(options: Options<'_>) -> Result<Option<Self>> {
        let by_partition_time = options.choice(
            "sink.partition-commit.trigger",
            &[("process-time", false), ("partition-time", true)],
            false,
        )?;
        let delay = options.duration("sink.partition-commit.delay")?;
        let key = "sink.partition-commit.watermark-time-zone";
        let zone = options.get(key).unwrap_or("UTC");
        let zone = zone
            .parse::<Tz>()
            .map_err(|_| wrong_value(key, zone, "a time zone is expected, as in 'Europe/Rome'"))?;
        let key = "partition.time-extractor.timestamp-formatter";
        let formatter = options
            .get(key)
            .map(|text| TimePattern::new(text).map_err(|e| e.context(format!("option '{key}'"))));
        let extractor = Extractor {
            pattern: options
                .get("partition.time-extractor.timestamp-pattern")
                .map(str::to_string),
            formatter: formatter.transpose()?,
            zone,
        };
        let key = "partition.time-extractor.kind";
        if let Some(kind) = options.get(key).filter(|k| *k != "default") {
            return Err(wrong_value(key, kind, "only 'default' is supported")
                .hint("'partition.time-extractor.timestamp-pattern' makes a time of the values"));
        }
        let Some(kinds) = options.get("sink.partition-commit.policy.kind") else {
            return Ok(None);
        };
        for kind in kinds.split(',').map(str::trim) {
            if kind != "success-file" {
                return Err(Error::options(format!(
                    "The partition commit policy '{kind}' is not supported."
                ))
                .hint("'success-file' puts an empty file into each complete partition"));
            }
        }
        let name = options.get("sink.partition-commit.success-file.name");
        Ok(Some(Self {
            trigger: if by_partition_time {
                Trigger::PartitionTime(extractor)
            } else {
                Trigger::ProcessTime
            },
            delay_ms: milliseconds(delay.unwrap_or_default()),
            success_file: name.unwrap_or("_SUCCESS").to_string(),
        }))
    }

    fn is_due(&self, partition: &Path, since: i64, now: i64, watermark: i64) -> bool {
        match &self.trigger {
            Trigger::ProcessTime => self.delay_ms == 0 || now > since.saturating_add(self.delay_ms),
            Trigger::PartitionTime(extractor) => extractor
                .time(partition)
                .is_some_and(|time| watermark > time.saturating_add(self.delay_ms)),
        }
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Extractor {
    /// The moment that a partition (`dt=2024-01-01/hour=3`) begins, ms; `None` if its values tell
    /// none: it is complete at the end.
    fn time(&self, partition: &Path) -> Option<i64> {
        let values = partition.iter().filter_map(|part| {
            let (key, value) = part.to_str()?.split_once('=')?;
            Some((unescape(key), unescape(value)))
        });
        let mut values: Vec<(String, String)> = values.collect();
        let text = match &self.pattern {
            None => values.first()?.1.clone(),
            Some(pattern) => {
                // `$hour_of_day` is not `$hour`.
                values.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
                let replace = |text: String, (key, value): &(String, String)| {
                    text.replace(&format!("${key}"), value)
                };
                values.iter().fold(pattern.clone(), replace)
            }
        };
        let seconds = match &self.formatter {
            Some(formatter) => formatter.seconds(&text)?,
            None => cast_timestamp(&text)?.0,
        };
        local_to_instant(self.zone, seconds).checked_mul(1000)
    }
}

/// A partition that a writer has written to, as its state keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// Its folder below the root.
    pub(super) partition: PathBuf,
    /// When its first row came, ms.
    pub(super) since: i64,
}

#[derive(Debug, Default)]
struct State {
    /// What each writer was told of time.
    watermarks: BTreeMap<usize, i64>,
    writers: usize,
    /// Writers that will get no more rows.
    ended: BTreeSet<usize>,
    /// Partitions that are not complete: when their first row came, and who is not done.
    pending: BTreeMap<PathBuf, (i64, BTreeSet<usize>)>,
}

impl State {
    fn is_due(&self, settings: &PartitionCommit, partition: &Path, since: i64, now: i64) -> bool {
        let all = self.watermarks.len() >= self.writers;
        let lowest = self.watermarks.values().min().copied();
        let watermark = lowest.filter(|_| all).unwrap_or(i64::MIN);
        let all_ended = self.ended.len() >= self.writers;
        all_ended || settings.is_due(partition, since, now, watermark)
    }
}

/// What the writers of one attempt know together.
#[derive(Debug)]
pub(super) struct Committer {
    settings: PartitionCommit,
    // No other lock is taken while this one is held.
    state: Mutex<State>,
}

impl Committer {
    pub(super) fn new(settings: PartitionCommit) -> Self {
        Self {
            settings,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what a dead attempt knew.
    pub(super) fn reset(&self) {
        let mut state = self.lock();
        *state = State {
            writers: state.writers,
            ..State::default()
        };
    }

    /// There will be so many writers.
    pub(super) fn expect(&self, writers: usize) {
        self.lock().writers = writers;
    }

    /// Writer `writer` has written to a partition, for the first time at `since`.
    pub(super) fn add(&self, writer: usize, partition: &Path, since: i64) {
        let mut state = self.lock();
        if let Some((_, holders)) = state.pending.get_mut(partition) {
            holders.insert(writer);
        } else {
            let pending = (since, BTreeSet::from([writer]));
            state.pending.insert(partition.to_path_buf(), pending);
        }
    }

    /// `writer` will get no more rows.
    pub(super) fn end(&self, writer: usize) {
        let mut state = self.lock();
        state.ended.insert(writer);
        state.watermarks.insert(writer, i64::MAX);
    }

    /// The partitions of `writer`, whose watermark stands at `watermark`, that are due.
    pub(super) fn due(&self, writer: usize, watermark: i64, now: i64) -> Vec<PathBuf> {
        let mut state = self.lock();
        let known = state.watermarks.entry(writer).or_insert(watermark);
        *known = watermark.max(*known);
        let pending = state
            .pending
            .iter()
            .filter(|(partition, (since, holders))| {
                holders.contains(&writer) && state.is_due(&self.settings, partition, *since, now)
            });
        pending.map(|(partition, _)| partition.clone()).collect()
    }

    /// `writer` has handed over all it had of the partitions `due`. Answers the markers, below the
    /// root, of those that are complete with that, and of those that only ended writers had.
    pub(super) fn done(&self, writer: usize, due: &[PathBuf], now: i64) -> Vec<PathBuf> {
        let mut state = self.lock();
        let mut pending = std::mem::take(&mut state.pending);
        let mut markers = Vec::new();
        pending.retain(|partition, (since, holders)| {
            // It may have become due just now, with parts of the writer still open.
            let is_open = holders.contains(&writer) && !due.contains(partition);
            if is_open || !state.is_due(&self.settings, partition, *since, now) {
                return true;
            }
            // One that has ended has handed over everything.
            holders.retain(|w| *w != writer && !state.ended.contains(w));
            if holders.is_empty() {
                markers.push(partition.join(&self.settings.success_file));
            }
            !holders.is_empty()
        });
        state.pending = pending;
        markers
    }

    /// What the state of `writer` must keep.
    pub(super) fn pending_of(&self, writer: usize) -> Vec<Pending> {
        let state = self.lock();
        let own = state
            .pending
            .iter()
            .filter(|(_, (_, h))| h.contains(&writer));
        let own = own.map(|(partition, (since, _))| Pending {
            partition: partition.clone(),
            since: *since,
        });
        own.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extractor(pattern: Option<&str>, formatter: Option<&str>, zone: &str) -> Extractor {
        Extractor {
            pattern: pattern.map(str::to_string),
            formatter: formatter.map(|f| TimePattern::new(f).unwrap()),
            zone: zone.parse().unwrap(),
        }
    }

    #[test]
    fn partitions_tell_their_time() {
        let hour = 3_600_000;
        let day = 24 * hour;
        let time = |e: &Extractor, path: &str| e.time(Path::new(path));
        let plain = extractor(None, None, "UTC");
        assert_eq!(time(&plain, "dt=1970-01-02"), Some(day));
        assert_eq!(time(&plain, "dt=1970-01-02 01%3A00%3A00"), Some(day + hour));
        assert_eq!(time(&plain, "dt=__DEFAULT_PARTITION__"), None);
        let pattern = extractor(Some("$dt $h:00:00"), None, "UTC");
        assert_eq!(time(&pattern, "dt=1970-01-02/h=3"), Some(day + 3 * hour));
        let rome = extractor(Some("$dt $h:00:00"), None, "Europe/Rome");
        assert_eq!(time(&rome, "dt=1970-01-02/h=3"), Some(day + 2 * hour));
        let compact = extractor(Some("$d$h"), Some("yyyyMMddHH"), "UTC");
        assert_eq!(time(&compact, "d=19700102/h=03"), Some(day + 3 * hour));
    }

    fn committer(trigger: Trigger, delay_ms: i64) -> Committer {
        Committer::new(PartitionCommit {
            trigger,
            delay_ms,
            success_file: "_OK".into(),
        })
    }

    fn step(committer: &Committer, writer: usize, watermark: i64, now: i64) -> Vec<PathBuf> {
        let due = committer.due(writer, watermark, now);
        committer.done(writer, &due, now)
    }

    #[test]
    fn the_slowest_writer_decides_and_the_last_one_marks() {
        let both = committer(Trigger::PartitionTime(extractor(None, None, "UTC")), 1000);
        both.expect(2);
        let day = Path::new("dt=1970-01-01");
        both.add(0, day, 5);
        both.add(1, day, 7);
        assert!(
            step(&both, 0, 9999, 0).is_empty(),
            "the other has said nothing"
        );
        assert!(step(&both, 1, 1000, 0).is_empty(), "not after the delay");
        assert_eq!(both.due(1, 1001, 0), [day]);
        assert!(
            both.done(1, &[day.into()], 0).is_empty(),
            "the other is not done"
        );
        assert!(both.pending_of(1).is_empty());
        assert_eq!(both.pending_of(0).len(), 1);
        assert!(both.done(0, &[], 0).is_empty(), "its parts are still open");
        assert_eq!(step(&both, 0, 9999, 0), [day.join("_OK")]);
        // Rows that come late make it due again.
        both.add(0, day, 8);
        assert_eq!(step(&both, 0, 9999, 0), [day.join("_OK")]);
    }

    #[test]
    fn who_has_ended_leaves_its_partitions_to_the_others() {
        let both = committer(Trigger::ProcessTime, 1000);
        both.expect(2);
        let day = Path::new("dt=x");
        both.add(0, day, 0);
        both.end(0);
        assert!(step(&both, 0, i64::MAX, 10).is_empty());
        assert_eq!(both.pending_of(0).len(), 1, "its state keeps it");
        assert!(step(&both, 1, 3, 1000).is_empty());
        assert_eq!(step(&both, 1, 3, 1001), [day.join("_OK")]);
    }
}
