//! The options `lookup.*` of a table, by Flink's names.

use std::sync::Arc;

use super::{FullCache, LookupSource, PartialCache, Reload, TableLookup};
use crate::connectors::options::{Options, optional, wrong_value};
use crate::connectors::{OptionSpec, TableSource};
use crate::error::{Error, Result};
use crate::types::Schema;

const DAY_MS: i64 = 86_400_000;

/// What is kept of a table that is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheKind {
    None,
    Partial,
    Full,
}

/// The options of tables that can be looked up. They are named as in Flink, whose own connectors of
/// these kinds have none of them: it looks up in databases.
#[must_use]
pub fn lookup_options() -> Vec<OptionSpec> {
    let options = [
        optional(
            "lookup.cache",
            "what a lookup join keeps: NONE, PARTIAL (rows that were looked up), FULL (the table)",
        ),
        optional(
            "lookup.partial-cache.max-rows",
            "rows that PARTIAL keeps at most",
        ),
        optional(
            "lookup.partial-cache.expire-after-write",
            "PARTIAL forgets a key so long after it was looked up",
        ),
        optional(
            "lookup.partial-cache.expire-after-access",
            "PARTIAL forgets a key so long after it was last used",
        ),
        optional(
            "lookup.partial-cache.cache-missing-key",
            "whether PARTIAL remembers that a key has no rows (true)",
        ),
        optional(
            "lookup.full-cache.reload-strategy",
            "when FULL reads the table again: PERIODIC or TIMED (PERIODIC)",
        ),
        optional(
            "lookup.full-cache.periodic-reload.interval",
            "PERIODIC: so long after the last time (never)",
        ),
        optional(
            "lookup.full-cache.periodic-reload.schedule-mode",
            "without effect: the table is read when a row asks for it",
        ),
        optional(
            "lookup.full-cache.timed-reload.iso-time",
            "TIMED: at this time of the day, UTC: 04:00 or 04:00:00",
        ),
        optional(
            "lookup.full-cache.timed-reload.interval-in-days",
            "TIMED: every so many days (1)",
        ),
        optional(
            "lookup.async",
            "whether lookups run on threads beside the task (false)",
        ),
    ];
    let own = |spec| OptionSpec {
        flink: false,
        ..spec
    };
    options.map(own).into()
}

/// How the table says it is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupSettings {
    kind: CacheKind,
    partial: PartialCache,
    reload: Reload,
    asynchronous: bool,
}

impl LookupSettings {
    /// Reads the options of a table that keeps the whole table unless told otherwise.
    ///
    /// # Errors
    /// When a value is malformed, or options do not go together.
    pub fn full_by_default(options: Options<'_>) -> Result<Self> {
        Self::read(options, CacheKind::Full)
    }

    /// Reads the options of a table that keeps nothing unless told otherwise.
    ///
    /// # Errors
    /// As [`full_by_default`](Self::full_by_default).
    pub fn none_by_default(options: Options<'_>) -> Result<Self> {
        Self::read(options, CacheKind::None)
    }

    fn read(options: Options<'_>, default: CacheKind) -> Result<Self> {
        let kinds = [
            ("NONE", CacheKind::None),
            ("PARTIAL", CacheKind::Partial),
            ("FULL", CacheKind::Full),
        ];
        let kind = options.choice("lookup.cache", &kinds, default)?;
        let ms = |key: &str| -> Result<Option<i64>> {
            let found = options.duration(key)?;
            Ok(found.map(|d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
        };
        let max_rows: Option<usize> =
            options.parsed("lookup.partial-cache.max-rows", "a number of rows")?;
        let partial = PartialCache {
            max_rows: max_rows.unwrap_or(usize::MAX),
            expire_after_write_ms: ms("lookup.partial-cache.expire-after-write")?,
            expire_after_access_ms: ms("lookup.partial-cache.expire-after-access")?,
            cache_missing_key: options.boolean("lookup.partial-cache.cache-missing-key", true)?,
        };
        let bounded = max_rows.is_some()
            || partial.expire_after_write_ms.is_some()
            || partial.expire_after_access_ms.is_some();
        if kind == CacheKind::Partial && !bounded {
            return Err(Error::options(
                "'lookup.cache' = 'PARTIAL' needs at least one of \
                 'lookup.partial-cache.expire-after-access', \
                 'lookup.partial-cache.expire-after-write' and 'lookup.partial-cache.max-rows'.",
            )
            .hint("without a bound the cache would grow, and get stale, without end"));
        }
        Ok(Self {
            kind,
            partial,
            reload: reload(options)?,
            asynchronous: options.boolean("lookup.async", false)?,
        })
    }

    /// Lookups of a table that is read as a whole: `columns` are its physical columns followed by
    /// the declared metadata columns.
    #[must_use]
    pub fn of_whole_table(self, source: Arc<dyn TableSource>, columns: Schema) -> TableLookup {
        let reload = match self.kind {
            CacheKind::Full => self.reload,
            // what is not kept is read again for every batch of lookups
            CacheKind::None | CacheKind::Partial => Reload::Every(0),
        };
        self.with_source(Arc::new(FullCache::new(source, columns, reload)))
    }

    /// Lookups of a table that finds rows by itself; `whole` serves `FULL`.
    #[must_use]
    pub fn of_lookups(
        self,
        lookups: Arc<dyn LookupSource>,
        whole: Arc<dyn TableSource>,
        columns: Schema,
    ) -> TableLookup {
        match self.kind {
            CacheKind::Full => self.of_whole_table(whole, columns),
            CacheKind::None | CacheKind::Partial => self.with_source(lookups),
        }
    }

    fn with_source(self, source: Arc<dyn LookupSource>) -> TableLookup {
        TableLookup {
            source,
            cache: (self.kind == CacheKind::Partial).then_some(self.partial),
            asynchronous: self.asynchronous,
        }
    }
}

fn reload(options: Options<'_>) -> Result<Reload> {
    let timed = options.choice(
        "lookup.full-cache.reload-strategy",
        &[("PERIODIC", false), ("TIMED", true)],
        false,
    )?;
    if !timed {
        let key = "lookup.full-cache.periodic-reload.interval";
        let interval = options.duration(key)?;
        return Ok(interval.map_or(Reload::Never, |d| {
            Reload::Every(i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
        }));
    }
    let key = "lookup.full-cache.timed-reload.iso-time";
    let text = options.required(key)?;
    let at = text.trim_end_matches('Z');
    let time = chrono::NaiveTime::parse_from_str(at, "%H:%M:%S%.f")
        .or_else(|_| chrono::NaiveTime::parse_from_str(at, "%H:%M"))
        .map_err(|_| wrong_value(key, text, "a time of the day is expected, as in '04:00'"))?;
    let days: Option<u32> = options.parsed(
        "lookup.full-cache.timed-reload.interval-in-days",
        "a number of days",
    )?;
    let since_midnight = time.signed_duration_since(chrono::NaiveTime::MIN);
    Ok(Reload::At {
        ms_of_day: since_midnight.num_milliseconds(),
        every_ms: i64::from(days.unwrap_or(1).max(1)) * DAY_MS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::table;

    fn read(options: &[(&str, &str)]) -> Result<LookupSettings> {
        LookupSettings::full_by_default(Options::of(&table("a INT", options)))
    }

    #[test]
    fn a_partial_cache_needs_a_bound() {
        let partial = ("lookup.cache", "partial");
        assert!(read(&[partial]).is_err());
        let settings = read(&[partial, ("lookup.partial-cache.max-rows", "7")]).unwrap();
        assert_eq!(settings.partial.max_rows, 7);
        assert!(read(&[("lookup.cache", "some")]).is_err());
    }

    #[test]
    fn a_reload_is_periodic_or_at_a_time_of_the_day() {
        let settings = read(&[("lookup.full-cache.periodic-reload.interval", "5 s")]).unwrap();
        assert_eq!(settings.reload, Reload::Every(5000));
        let timed = ("lookup.full-cache.reload-strategy", "TIMED");
        let at = |text| read(&[timed, ("lookup.full-cache.timed-reload.iso-time", text)]);
        let expected = Reload::At {
            ms_of_day: 4 * 3_600_000,
            every_ms: DAY_MS,
        };
        assert_eq!(at("04:00").unwrap().reload, expected);
        assert_eq!(at("04:00:00Z").unwrap().reload, expected);
        assert!(at("noon").is_err());
        assert!(read(&[timed]).is_err());
    }
}
