//! The session's settings: `SET 'key' = 'value'`, with Flink's keys.
//!
//! Any key is accepted, as in Flink; keys that the engine reads have typed getters here, with
//! Flink's defaults. A value that does not fit is refused when it is set.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::error::{Error, Result};
use crate::state::key_group::DEFAULT_MAX_PARALLELISM;
use crate::types::cast::Environment;

/// Settings by key.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    values: BTreeMap<String, String>,
}

/// The kind of value that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Duration,
    Memory,
    Zone,
    OneOf(&'static [&'static str]),
}

/// The option of a table that says when watermarks go out.
const WATERMARK_EMIT_STRATEGY: &str = "scan.watermark.emit.strategy";

/// Keys whose values are checked when they are set.
const CHECKED: &[(&str, Kind)] = &[
    ("table.local-time-zone", Kind::Zone),
    ("table.dml-sync", Kind::Bool),
    ("table.exec.state.ttl", Kind::Duration),
    ("table.exec.mini-batch.enabled", Kind::Bool),
    ("table.exec.mini-batch.size", Kind::Int),
    ("table.exec.mini-batch.allow-latency", Kind::Duration),
    (
        "table.exec.sink.not-null-enforcer",
        Kind::OneOf(&["ERROR", "DROP"]),
    ),
    (
        "table.exec.sink.type-length-enforcer",
        Kind::OneOf(&["IGNORE", "TRIM_PAD", "ERROR"]),
    ),
    (
        "table.exec.sink.nested-constraint-enforcer",
        Kind::OneOf(&["IGNORE", "ENFORCE"]),
    ),
    (
        "table.exec.sink.upsert-materialize",
        Kind::OneOf(&["NONE", "AUTO", "FORCE"]),
    ),
    ("table.exec.sink.require-on-conflict", Kind::Bool),
    ("table.exec.source.idle-timeout", Kind::Duration),
    ("table.exec.source.cdc-events-duplicate", Kind::Bool),
    (
        "table.exec.legacy-cast-behaviour",
        Kind::OneOf(&["ENABLED", "DISABLED"]),
    ),
    ("table.dynamic-table-options.enabled", Kind::Bool),
    (
        "table.optimizer.non-deterministic-update.strategy",
        Kind::OneOf(&["TRY_RESOLVE", "IGNORE"]),
    ),
    ("table.exec.async-lookup.buffer-capacity", Kind::Int),
    ("table.exec.async-lookup.timeout", Kind::Duration),
    (
        "table.exec.async-lookup.output-mode",
        Kind::OneOf(&["ORDERED", "ALLOW_UNORDERED"]),
    ),
    ("table.exec.emit.early-fire.enabled", Kind::Bool),
    ("table.exec.emit.early-fire.delay", Kind::Duration),
    ("table.exec.emit.late-fire.enabled", Kind::Bool),
    ("table.exec.emit.late-fire.delay", Kind::Duration),
    ("table.exec.emit.allow-lateness", Kind::Duration),
    ("execution.checkpointing.interval", Kind::Duration),
    ("execution.checkpointing.min-pause", Kind::Duration),
    ("execution.checkpointing.timeout", Kind::Duration),
    (
        "execution.checkpointing.mode",
        Kind::OneOf(&["EXACTLY_ONCE", "AT_LEAST_ONCE", "AT_MOST_ONCE"]),
    ),
    (
        "execution.checkpointing.tolerable-failed-checkpoints",
        Kind::Int,
    ),
    (
        "execution.checkpointing.externalized-checkpoint-retention",
        Kind::OneOf(&[
            "RETAIN_ON_CANCELLATION",
            "DELETE_ON_CANCELLATION",
            "NO_EXTERNALIZED_CHECKPOINTS",
        ]),
    ),
    ("execution.state-recovery.fresh", Kind::Bool),
    ("execution.checkpointing.num-retained", Kind::Int),
    ("execution.checkpointing.incremental", Kind::Bool),
    ("s3.path.style.access", Kind::Bool),
    ("s3.path-style-access", Kind::Bool),
    (
        "execution.state-recovery.ignore-unclaimed-state",
        Kind::Bool,
    ),
    ("parallelism.default", Kind::Int),
    ("pipeline.max-parallelism", Kind::Int),
    ("pipeline.auto-watermark-interval", Kind::Duration),
    (
        "sql-client.execution.result-mode",
        Kind::OneOf(&["tableau", "changelog", "table"]),
    ),
    ("sql-client.display.max-column-width", Kind::Int),
    ("state.memory.limit", Kind::Memory),
    ("execution.batch-size", Kind::Int),
];

/// Keys that are read as they are.
const READ: &[&str] = &[
    "execution.checkpointing.dir",
    "execution.checkpointing.savepoint-dir",
    "execution.savepoint.ignore-unclaimed-state",
    "execution.savepoint.path",
    "execution.state-recovery.path",
    "restart-strategy",
    "restart-strategy.type",
    "restart-strategy.fixed-delay.attempts",
    "restart-strategy.fixed-delay.delay",
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    "restart-strategy.exponential-delay.backoff-multiplier",
    "restart-strategy.exponential-delay.initial-backoff",
    "restart-strategy.exponential-delay.max-backoff",
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    "restart-strategy.failure-rate.delay",
    "restart-strategy.failure-rate.failure-rate-interval",
    "restart-strategy.failure-rate.max-failures-per-interval",
    "s3.access-key",
    "s3.access.key",
    "s3.endpoint",
    "s3.endpoint.region",
    "s3.region",
    "s3.secret-key",
    "s3.secret.key",
    "state.checkpoints.dir",
    "state.checkpoints.num-retained",
    "state.savepoints.dir",
    "table.exec.deduplicate.insert-update-after-sensitive-enabled",
    "table.exec.interval-join.min-cleanup-interval",
    "table.optimizer.agg-phase-strategy",
    "table.optimizer.reuse-source-enabled",
    "table.optimizer.reuse-sub-plan-enabled",
    "testing.die-after-rows",
];

/// Keys that Flink does not know.
const OWN: &[&str] = &[
    "execution.batch-size",
    "execution.state-recovery.fresh",
    "state.memory.limit",
];

/// Values that Flink does not know, of keys that it knows.
const OWN_VALUES: &[(&str, &str)] = &[("execution.checkpointing.mode", "AT_MOST_ONCE")];

impl Configuration {
    /// Whether the engine ever reads a key: others are taken and have no effect.
    #[must_use]
    pub fn has_effect(key: &str) -> bool {
        READ.contains(&key) || CHECKED.iter().any(|(known, _)| *known == key)
    }

    /// Whether Flink does not know a key.
    #[must_use]
    pub fn is_own_key(key: &str) -> bool {
        OWN.contains(&key)
    }

    /// Whether Flink refuses this value of a key that it knows.
    #[must_use]
    pub fn is_own_value(key: &str, value: &str) -> bool {
        let same = |(k, v): &(&str, &str)| *k == key && v.eq_ignore_ascii_case(value);
        OWN_VALUES.iter().any(same)
    }

    /// The keys whose values are checked, for completion.
    pub(crate) fn known_keys() -> impl Iterator<Item = &'static str> {
        CHECKED.iter().map(|(key, _)| *key)
    }

    /// Sets a key.
    ///
    /// # Errors
    /// When the engine reads the key and the value is not of its kind.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if let Some((_, kind)) = CHECKED.iter().find(|(k, _)| *k == key) {
            check(key, *kind, value)?;
        }
        self.values.insert(key.into(), value.into());
        Ok(())
    }

    /// Forgets a key, so that its default holds again.
    pub fn reset(&mut self, key: &str) {
        self.values.remove(key);
    }

    /// Forgets all keys.
    pub fn reset_all(&mut self) {
        self.values.clear();
    }

    /// All keys that were set, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The value of a key that was set.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        #[cfg(test)]
        assert!(
            Self::has_effect(key),
            "'{key}' is read and not listed as a key that has an effect"
        );
        self.values.get(key).map(String::as_str)
    }

    /// A BOOLEAN key.
    #[must_use]
    pub fn bool(&self, key: &str, default: bool) -> bool {
        self.get(key)
            .map_or(default, |v| v.eq_ignore_ascii_case("true"))
    }

    /// A duration, ms.
    #[must_use]
    pub fn duration_ms(&self, key: &str) -> Option<i64> {
        self.get(key).and_then(parse_duration)
    }

    /// The rise of a watermark that is emitted at once, ms, for a table with these options.
    #[must_use]
    pub fn watermark_interval_ms(&self, options: &IndexMap<String, String>) -> i64 {
        let on_event = options
            .get(WATERMARK_EMIT_STRATEGY)
            .is_some_and(|s| s.eq_ignore_ascii_case("on-event"));
        if on_event {
            return 0;
        }
        self.duration_ms("pipeline.auto-watermark-interval")
            .unwrap_or(200)
    }

    /// A whole number.
    #[must_use]
    pub fn int(&self, key: &str) -> Option<i64> {
        self.get(key).and_then(|v| v.trim().parse().ok())
    }

    /// Whether `key` is set to `value`, in any case.
    #[must_use]
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key).is_some_and(|v| v.eq_ignore_ascii_case(value))
    }

    /// `table.local-time-zone`; UTC unless set.
    #[must_use]
    pub fn time_zone(&self) -> chrono_tz::Tz {
        self.get("table.local-time-zone")
            .and_then(parse_zone)
            .unwrap_or(chrono_tz::UTC)
    }

    /// What expressions need of the settings.
    #[must_use]
    pub fn environment(&self) -> Environment {
        Environment {
            time_zone: self.time_zone(),
            legacy_cast: self.is("table.exec.legacy-cast-behaviour", "ENABLED"),
        }
    }

    /// `table.dynamic-table-options.enabled`.
    #[must_use]
    pub fn dynamic_table_options(&self) -> bool {
        self.bool("table.dynamic-table-options.enabled", true)
    }

    /// `table.exec.state.ttl`, ms; `None` for never.
    #[must_use]
    pub fn state_ttl(&self) -> Option<i64> {
        self.duration_ms("table.exec.state.ttl")
            .filter(|ms| *ms > 0)
    }

    /// `pipeline.max-parallelism`.
    #[must_use]
    pub fn max_parallelism(&self) -> u16 {
        let set = self.int("pipeline.max-parallelism").filter(|n| *n > 0);
        set.map_or(DEFAULT_MAX_PARALLELISM, |n| {
            u16::try_from(n).unwrap_or(u16::MAX)
        })
    }

    /// `parallelism.default`.
    #[must_use]
    pub fn parallelism(&self) -> usize {
        self.int("parallelism.default")
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(1)
            .max(1)
    }

    /// `execution.batch-size`: rows of a batch, 4096 unless set.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.int("execution.batch-size")
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(4096)
            .max(1)
    }

    /// Bundle size and latency (ms) when mini-batch is on.
    #[must_use]
    pub fn mini_batch(&self) -> Option<(usize, i64)> {
        if !self.bool("table.exec.mini-batch.enabled", false) {
            return None;
        }
        let size = self
            .int("table.exec.mini-batch.size")
            .and_then(|n| usize::try_from(n).ok())?;
        let latency = self.duration_ms("table.exec.mini-batch.allow-latency")?;
        Some((size.max(1), latency))
    }
}

/// Refuses a table's options on watermarks that mean nothing.
///
/// # Errors
/// When the strategy is unknown.
pub fn check_watermark_options(options: &IndexMap<String, String>) -> Result<()> {
    match options.get(WATERMARK_EMIT_STRATEGY) {
        Some(value) => {
            let strategies = Kind::OneOf(&["on-event", "on-periodic"]);
            check(WATERMARK_EMIT_STRATEGY, strategies, value)
        }
        None => Ok(()),
    }
}

fn check(key: &str, kind: Kind, value: &str) -> Result<()> {
    let (fits, wanted) = match kind {
        Kind::Bool => (
            value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false"),
            "'true' or 'false'".to_string(),
        ),
        Kind::Int => (value.trim().parse::<i64>().is_ok(), "a whole number".into()),
        Kind::Duration => (
            parse_duration(value).is_some(),
            "a duration such as '10 s' or '500 ms'".into(),
        ),
        Kind::Memory => (
            parse_memory(value).is_some(),
            "a size such as '512 mb' or '4 gb'".into(),
        ),
        Kind::Zone => (
            parse_zone(value).is_some(),
            "a zone such as 'Europe/Berlin', 'UTC' or 'GMT+02:00'".into(),
        ),
        Kind::OneOf(allowed) => (
            allowed.iter().any(|a| a.eq_ignore_ascii_case(value)),
            allowed.join(", "),
        ),
    };
    if fits {
        return Ok(());
    }
    Err(
        Error::options(format!("Could not parse value '{value}' for key '{key}'."))
            .hint(format!("expected: {wanted}")),
    )
}

/// A duration in ms: `10 s`, `500ms`, `1d`, `1 min`; a bare number is ms.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let text = text.trim().to_lowercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: i64 = number.parse().ok()?;
    let factor = match unit.trim() {
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => return Some(number / 1_000_000),
        "us" | "µs" | "micro" | "micros" | "microsecond" | "microseconds" => {
            return Some(number / 1_000);
        }
        _ => return None,
    };
    number.checked_mul(factor)
}

/// A size in bytes: `512 mb`, `4gb`; a bare number is bytes.
#[must_use]
pub fn parse_memory(text: &str) -> Option<u64> {
    let text = text.trim().to_lowercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let shift = match unit.trim() {
        "" | "b" | "bytes" => 0,
        "k" | "kb" | "kibibytes" => 10,
        "m" | "mb" | "mebibytes" => 20,
        "g" | "gb" | "gibibytes" => 30,
        "t" | "tb" | "tebibytes" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// A time zone by name.
#[must_use]
pub fn parse_zone(name: &str) -> Option<chrono_tz::Tz> {
    let name = name.trim();
    if name.eq_ignore_ascii_case("default") || name.eq_ignore_ascii_case("Z") {
        return Some(chrono_tz::UTC);
    }
    // GMT+02:00 is Etc/GMT-2 in the database of zones
    if let Some(rest) = name
        .strip_prefix("GMT")
        .or_else(|| name.strip_prefix("UTC"))
        && !rest.is_empty()
    {
        let (sign, hours) = rest.split_at(1);
        let hours: u32 = hours.trim_end_matches(":00").parse().ok()?;
        let flipped = match sign {
            "+" => "-",
            "-" => "+",
            _ => return None,
        };
        return format!("Etc/GMT{flipped}{hours}").parse().ok();
    }
    name.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_as_flink() {
        assert_eq!(parse_duration("10 s"), Some(10_000));
        assert_eq!(parse_duration("1d"), Some(86_400_000));
        assert_eq!(parse_duration("5"), Some(5));
        assert_eq!(parse_duration("5 parsecs"), None);
    }

    #[test]
    fn refuses_values_that_do_not_fit() {
        let mut config = Configuration::default();
        let error = config
            .set("table.local-time-zone", "Moon/Base")
            .unwrap_err();
        assert!(error.to_string().contains("table.local-time-zone"));
        config.set("any.other.key", "whatever").unwrap();
    }
}
