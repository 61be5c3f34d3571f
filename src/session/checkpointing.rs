//! Settings of checkpoints and restarts, with Flink's keys and defaults.
//!
//! With `execution.checkpointing.dir` a job keeps its checkpoints in a directory named after it, and
//! takes up what it finds there: after a crash the same script goes on where it was. Without, they
//! are kept in memory and serve restarts only.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Session;
use crate::checkpoint::{
    CheckpointStore, ControlFile, FileStore, MemoryStore, Recovery, S3Options, Unclaimed,
};
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::runtime::job::{CheckpointConfig, CheckpointMode, JobConfig, Retention};
use crate::runtime::restart::RestartStrategy;

/// A longer name of a directory is cut.
const LONGEST_NAME: usize = 200;

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// Keys, and the older ones that Flink takes for them too.
const DIR: [&str; 2] = ["execution.checkpointing.dir", "state.checkpoints.dir"];
const SAVEPOINT_DIR: [&str; 2] = [
    "execution.checkpointing.savepoint-dir",
    "state.savepoints.dir",
];
const RETAINED: [&str; 2] = [
    "execution.checkpointing.num-retained",
    "state.checkpoints.num-retained",
];
const RECOVERY_PATH: [&str; 2] = ["execution.state-recovery.path", "execution.savepoint.path"];
const IGNORE_UNCLAIMED: [&str; 2] = [
    "execution.state-recovery.ignore-unclaimed-state",
    "execution.savepoint.ignore-unclaimed-state",
];

/// Where a job keeps its checkpoints.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The job's directory; `None` for checkpoints in memory and jobs without.
    pub(super) directory: Option<PathBuf>,
    /// What the user should know of the job's beginning.
    pub(super) notice: Option<String>,
}

impl Session {
    /// Adds checkpoints, if an interval or a directory is set, and the restart strategy.
    pub(super) fn add_checkpoints(&self, job: &mut JobConfig) -> Result<Place> {
        let config = &self.config;
        let mut place = Place::default();
        let interval = duration(config, "execution.checkpointing.interval");
        let interval = interval.filter(|i| !i.is_zero());
        let asked = [DIR, SAVEPOINT_DIR, RECOVERY_PATH].map(|keys| either(config, keys).is_some());
        if interval.is_some() || asked.contains(&true) {
            let store = self.store(&job.name, &mut place)?;
            let mut checkpointing = CheckpointConfig::new(store);
            checkpointing.interval = interval;
            self.set_policy(&mut checkpointing);
            let control_file = place.directory.as_deref().map(ControlFile::of);
            if let Some(file) = &control_file {
                // meant for a job that has ended
                let _ = file.take();
            }
            checkpointing.control_file = control_file;
            job.checkpointing = Some(checkpointing);
        }
        job.restart = restart_strategy(config, interval.is_some())?;
        Ok(place)
    }

    /// Adds checkpoints in memory, if an interval is set, and the restart strategy: the reader of a
    /// query does not outlive the process, but a failure.
    pub(super) fn add_query_checkpoints(&self, job: &mut JobConfig) -> Result<()> {
        let config = &self.config;
        let interval = duration(config, "execution.checkpointing.interval");
        if let Some(interval) = interval.filter(|i| !i.is_zero()) {
            let mut checkpointing = CheckpointConfig::new(Arc::new(MemoryStore::default()));
            checkpointing.interval = Some(interval);
            self.set_policy(&mut checkpointing);
            job.checkpointing = Some(checkpointing);
            job.restart = restart_strategy(config, true)?;
        }
        Ok(())
    }

    fn set_policy(&self, checkpointing: &mut CheckpointConfig) {
        let config = &self.config;
        let key = "execution.checkpointing.min-pause";
        checkpointing.min_pause = duration(config, key).unwrap_or_default();
        let key = "execution.checkpointing.timeout";
        checkpointing.timeout = Some(duration(config, key).unwrap_or(10 * MINUTE));
        checkpointing.incremental = config.bool("execution.checkpointing.incremental", true);
        let key = "execution.checkpointing.mode";
        checkpointing.mode = if config.is(key, "AT_LEAST_ONCE") {
            CheckpointMode::AtLeastOnce
        } else if config.is(key, "AT_MOST_ONCE") {
            CheckpointMode::AtMostOnce
        } else {
            CheckpointMode::ExactlyOnce
        };
        let key = "execution.checkpointing.tolerable-failed-checkpoints";
        let tolerable = config.int(key).map(|n| u32::try_from(n).unwrap_or(0));
        checkpointing.tolerable_failures = tolerable.unwrap_or(0);
        if IGNORE_UNCLAIMED.iter().any(|key| config.bool(key, false)) {
            checkpointing.unclaimed = Unclaimed::Drop;
        }
        let key = "execution.checkpointing.externalized-checkpoint-retention";
        checkpointing.retention = if config.is(key, "DELETE_ON_CANCELLATION") {
            Retention::OnFailure
        } else if config.is(key, "NO_EXTERNALIZED_CHECKPOINTS") {
            Retention::Never
        } else {
            Retention::OnCancellation
        };
    }

    fn store(&self, job: &str, place: &mut Place) -> Result<Arc<dyn CheckpointStore>> {
        let config = &self.config;
        let own: Arc<dyn CheckpointStore> = match either(config, DIR) {
            Some(directory) => {
                let retained = either(config, RETAINED).and_then(|n| n.trim().parse().ok());
                let retained = retained.unwrap_or(1);
                let (store, shown) = if is_bucket(directory) {
                    let (name, _) = self.place_name(job);
                    let url = format!("{}/{name}", directory.trim_end_matches('/'));
                    (FileStore::on_s3(&url, &s3_options(config), retained)?, url)
                } else {
                    let directory = self.directory_of(&local(directory)?, job)?;
                    let shown = directory.display().to_string();
                    let store = FileStore::open(&directory, retained)?;
                    place.directory = Some(directory);
                    (store, shown)
                };
                if store.had_finished() {
                    place.notice = Some(format!(
                        "it had finished the last time, so it starts anew (checkpoints in {shown})"
                    ));
                }
                if config.bool("execution.state-recovery.fresh", false) {
                    store.clear()?;
                    place.notice = Some(format!("it starts anew, as asked for, in {shown}"));
                }
                Arc::new(store)
            }
            None => Arc::new(MemoryStore::default()),
        };
        Ok(match either(config, RECOVERY_PATH) {
            Some(path) => Arc::new(Recovery::new(own, local(path)?)),
            None => own,
        })
    }

    /// The name of a job's place, and whether it is a further one of jobs of one name.
    fn place_name(&self, job: &str) -> (String, bool) {
        let keep = |c: char| c.is_alphanumeric() || "-_.,".contains(c);
        let mut name: String = job.chars().map(|c| if keep(c) { c } else { '_' }).collect();
        if name.len() > LONGEST_NAME {
            let sum = crc32fast::hash(name.as_bytes());
            let start: String = name.chars().take(LONGEST_NAME / 2).collect();
            name = format!("{start}..{sum:08x}");
        }
        // one that was stopped or has failed is taken up again
        let taken = |j: &&super::InsertJob| {
            j.name() == job && matches!(j.status(), "RUNNING" | "FINISHED") && !j.was_stopped()
        };
        match self.jobs.iter().filter(taken).count() {
            0 => (name, false),
            count => (format!("{name}#{}", count + 1), true),
        }
    }

    /// A directory of its own for every job: its name without what a file name cannot have, and a
    /// number if there are more of the name. A job that has none goes on in that of a job which wrote to
    /// one of its tables: an INSERT more or less in a script must not start the others anew.
    fn directory_of(&self, parent: &Path, job: &str) -> Result<PathBuf> {
        let (name, is_further) = self.place_name(job);
        if is_further {
            return Ok(parent.join(name));
        }
        let own = parent.join(&name);
        if own.exists() || self.config.bool("execution.state-recovery.fresh", false) {
            return Ok(own);
        }
        let relatives = relatives(parent, job);
        match relatives.as_slice() {
            [] => Ok(own),
            [relative] => Ok(relative.clone()),
            several => {
                let names: Vec<String> = several.iter().map(|p| p.display().to_string()).collect();
                Err(Error::checkpoint(format!(
                    "'{job}' writes to tables of several former jobs:\n{}",
                    names.join("\n")
                ))
                .hint("run these INSERTs apart as before, or start from nothing (ebbflow run --fresh)"))
            }
        }
    }

    /// A new directory for a savepoint of job `id`: by Flink's name.
    ///
    /// # Errors
    /// When no directory for savepoints is set, or it cannot be made.
    pub(super) fn savepoint_store(&self, id: &str) -> Result<Option<(PathBuf, FileStore)>> {
        let Some(directory) = either(&self.config, SAVEPOINT_DIR) else {
            return Ok(None);
        };
        let random = super::jobs::random_id(self.context.clock.now_ms());
        let name = format!("savepoint-{}-{}", &id[..6], &random[..12]);
        let path = local(directory)?.join(name);
        let store = FileStore::open(&path, 1)?;
        Ok(Some((path, store)))
    }
}

/// The directories of jobs that have not finished and whose newest checkpoint is of a job that wrote
/// to a table of the job called `job`.
fn relatives(parent: &Path, job: &str) -> Vec<PathBuf> {
    let targets = job.strip_prefix("insert-into_").unwrap_or_default();
    let targets: Vec<&str> = targets.split(',').filter(|t| !t.is_empty()).collect();
    let is_of = |name: &str| {
        let rest = targets.iter().find_map(|t| name.strip_prefix(t));
        rest.is_some_and(|rest| rest.starts_with(['/', '#']))
    };
    let is_relative = |path: &PathBuf| {
        let free = FileStore::holder(path).is_ok_and(|holder| holder.is_none());
        let goes_on = free && !FileStore::is_finished(path);
        let checkpoints = if goes_on {
            FileStore::list(path)
        } else {
            Ok(Vec::new())
        };
        let newest = checkpoints.unwrap_or_default().into_iter().next();
        let vertices = newest.map_or_else(Vec::new, |newest| newest.vertices);
        vertices.iter().any(|v| v.uid.lines().any(is_of))
    };
    let jobs = FileStore::directories(parent).unwrap_or_default();
    jobs.into_iter().filter(is_relative).collect()
}

fn either<'c>(config: &'c Configuration, keys: [&str; 2]) -> Option<&'c str> {
    keys.into_iter().find_map(|key| config.get(key))
}

fn duration(config: &Configuration, key: &str) -> Option<Duration> {
    let ms = config.duration_ms(key)?;
    Some(Duration::from_millis(ms.max(0).unsigned_abs()))
}

/// Whether a place is one of an object store.
fn is_bucket(place: &str) -> bool {
    let schemes = ["s3://", "s3a://", "s3p://"];
    schemes.iter().any(|scheme| place.starts_with(scheme))
}

/// A directory of a local disk.
fn local(directory: &str) -> Result<PathBuf> {
    let local = directory.strip_prefix("file://").unwrap_or(directory);
    if local.contains("://") {
        let text = format!("'{directory}' is no place for this");
        return Err(Error::options(text).hint(
            "name a directory of a local disk; 'execution.checkpointing.dir' may also be \
             s3://bucket/path",
        ));
    }
    Ok(Path::new(local).to_path_buf())
}

/// Flink's options of its S3 file systems.
fn s3_options(config: &Configuration) -> S3Options {
    let get = |keys: &[&str]| {
        let mut values = keys.iter().filter_map(|key| config.get(key));
        values.next().map(str::to_string)
    };
    S3Options {
        endpoint: get(&["s3.endpoint"]),
        access_key: get(&["s3.access-key", "s3.access.key"]),
        secret_key: get(&["s3.secret-key", "s3.secret.key"]),
        path_style: ["s3.path.style.access", "s3.path-style-access"]
            .iter()
            .any(|key| config.is(key, "true")),
        region: get(&["s3.region", "s3.endpoint.region"]),
    }
}

fn restart_strategy(config: &Configuration, checkpointing: bool) -> Result<RestartStrategy> {
    let text = config.get("restart-strategy.type");
    let text = text.or_else(|| config.get("restart-strategy"));
    let default = if checkpointing {
        "exponential-delay"
    } else {
        "none"
    };
    let duration = |key: &str, default| duration(config, key).unwrap_or(default);
    let count = |key: &str| config.int(key).and_then(|n| u32::try_from(n).ok());
    Ok(
        match text.unwrap_or(default).to_ascii_lowercase().as_str() {
            "none" | "off" | "disable" => RestartStrategy::None,
            "fixed-delay" | "fixeddelay" => RestartStrategy::FixedDelay {
                attempts: count("restart-strategy.fixed-delay.attempts").unwrap_or(1),
                delay: duration("restart-strategy.fixed-delay.delay", SECOND),
            },
            "failure-rate" | "failurerate" => {
                let key = "restart-strategy.failure-rate.max-failures-per-interval";
                RestartStrategy::FailureRate {
                    max_failures: count(key).unwrap_or(1),
                    interval: duration(
                        "restart-strategy.failure-rate.failure-rate-interval",
                        MINUTE,
                    ),
                    delay: duration("restart-strategy.failure-rate.delay", SECOND),
                }
            }
            "exponential-delay" | "exponentialdelay" => {
                let key = |key: &str| format!("restart-strategy.exponential-delay.{key}");
                let multiplier = config.get(&key("backoff-multiplier"));
                RestartStrategy::ExponentialDelay {
                    initial: duration(&key("initial-backoff"), SECOND),
                    max: duration(&key("max-backoff"), MINUTE),
                    multiplier: multiplier
                        .and_then(|m| m.trim().parse().ok())
                        .filter(|m| *m >= 1.0)
                        .unwrap_or(1.5),
                    reset: duration(&key("reset-backoff-threshold"), 60 * MINUTE),
                    attempts: count(&key("attempts-before-reset-backoff")),
                }
            }
            other => {
                return Err(Error::options(format!("'{other}' is no restart strategy"))
                    .hint("one of none, fixed-delay, failure-rate, exponential-delay"));
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(settings: &[(&str, &str)], checkpointing: bool) -> RestartStrategy {
        let mut config = Configuration::default();
        for (key, value) in settings {
            config.set(key, value).unwrap();
        }
        restart_strategy(&config, checkpointing).unwrap()
    }

    #[test]
    fn without_checkpoints_a_job_is_not_restarted() {
        assert_eq!(strategy(&[], false), RestartStrategy::None);
        let RestartStrategy::ExponentialDelay { initial, .. } = strategy(&[], true) else {
            panic!("not Flink's default");
        };
        assert_eq!(initial, SECOND);
    }

    #[test]
    fn reads_flinks_keys() {
        let settings = [
            ("restart-strategy.type", "fixed-delay"),
            ("restart-strategy.fixed-delay.attempts", "3"),
            ("restart-strategy.fixed-delay.delay", "10 ms"),
        ];
        let expected = RestartStrategy::FixedDelay {
            attempts: 3,
            delay: Duration::from_millis(10),
        };
        assert_eq!(strategy(&settings, true), expected);
        let mut config = Configuration::default();
        config.set("restart-strategy.type", "sometimes").unwrap();
        assert!(restart_strategy(&config, true).is_err());
    }
}
