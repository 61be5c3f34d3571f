//! Settings of checkpoints and restarts, with Flink's keys and defaults.
//!
//! With `execution.checkpointing.dir` a job keeps its checkpoints in a directory named after it, and
//! takes up what it finds there: after a crash the same script goes on where it was. Without, they
//! are kept in memory and serve restarts only.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Session;
use crate::checkpoint::{CheckpointStore, FileStore, MemoryStore};
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::runtime::job::{CheckpointConfig, CheckpointMode, JobConfig};
use crate::runtime::restart::RestartStrategy;

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

impl Session {
    /// Adds checkpoints, if an interval is set, and the restart strategy.
    pub(super) fn add_checkpoints(&self, job: &mut JobConfig) -> Result<()> {
        let config = &self.config;
        let interval = duration(config, "execution.checkpointing.interval");
        if let Some(interval) = interval.filter(|i| !i.is_zero()) {
            let mut checkpointing = CheckpointConfig::new(store(config, &job.name)?);
            checkpointing.interval = Some(interval);
            let key = "execution.checkpointing.min-pause";
            checkpointing.min_pause = duration(config, key).unwrap_or_default();
            let key = "execution.checkpointing.timeout";
            checkpointing.timeout = Some(duration(config, key).unwrap_or(10 * MINUTE));
            if config.is("execution.checkpointing.mode", "AT_LEAST_ONCE") {
                checkpointing.mode = CheckpointMode::AtLeastOnce;
            }
            job.checkpointing = Some(checkpointing);
        }
        job.restart = restart_strategy(config, job.checkpointing.is_some())?;
        Ok(())
    }
}

fn duration(config: &Configuration, key: &str) -> Option<Duration> {
    let ms = config.duration_ms(key)?;
    Some(Duration::from_millis(ms.max(0).unsigned_abs()))
}

fn store(config: &Configuration, job: &str) -> Result<Arc<dyn CheckpointStore>> {
    let directory = config.get("execution.checkpointing.dir");
    let directory = directory.or_else(|| config.get("state.checkpoints.dir"));
    let Some(directory) = directory else {
        return Ok(Arc::new(MemoryStore::default()));
    };
    let retained = config.int("execution.checkpointing.num-retained");
    let retained = retained.or_else(|| config.int("state.checkpoints.num-retained"));
    let retained = retained.and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
    let local = directory.strip_prefix("file://").unwrap_or(directory);
    if local.contains("://") {
        let text = format!("checkpoints cannot be kept in '{directory}'");
        return Err(Error::options(text).hint("name a directory of a local disk"));
    }
    // A path of its own for every job: its name without what a file name cannot have.
    let name = |c: char| {
        if c.is_alphanumeric() || "-_.,".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = job.chars().map(name).collect();
    let store = FileStore::open(Path::new(local).join(name), retained)?;
    Ok(Arc::new(store))
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
