//! The `filesystem` connector: tables that are files of a local folder.
//!
//! - `listing`: which files a table has, and partitions in their paths,
//! - `source`: the table as a source; `reader` reads one subtask's files, `open_file` is the one
//!   that it is reading, `constants` are columns that the file's path tells,
//! - `sink`: the table as a sink; `writer` is one subtask's share of it, `part` writes one file and
//!   makes it visible, `compaction` makes one of several, `partition_commit` says which partitions
//!   are complete.

mod compaction;
mod constants;
mod listing;
mod open_file;
mod part;
mod partition_commit;
mod reader;
mod sink;
mod source;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fancy_regex::Regex;

use self::partition_commit::PartitionCommit;
use self::sink::{FileSink, Guarantee, Rolling, Settings};
use self::source::FileSource;
use super::lookup::options::lookup_options;
use super::options::{
    Options, missing_required, optional, refuse_unknown, required, sink_parallelism,
};
use super::{Connector, OptionSpec, Origin, TableDescription, TableSink, TableSource};
use crate::error::{Error, Result};
use crate::formats::{self, Format, FormatOptions};
use crate::runtime::clock::Clock;
use crate::types::Schema;

/// The name of the partition that holds NULL.
const DEFAULT_PARTITION: &str = "__DEFAULT_PARTITION__";

/// Which files a table has, and what their paths tell.
#[derive(Debug, Clone)]
struct Layout {
    root: PathBuf,
    /// Partition columns, as indices into the physical columns.
    partitions: Vec<usize>,
    physical: Schema,
    /// The name of the partition that holds NULL.
    default_partition: String,
    /// Files whose whole path matches, instead of all that are not hidden.
    pattern: Option<Regex>,
}

impl Layout {
    /// The columns that the files themselves hold, as indices into the physical columns.
    fn in_files(&self) -> Vec<usize> {
        (0..self.physical.len())
            .filter(|i| !self.partitions.contains(i))
            .collect()
    }
}

/// The connector.
#[derive(Debug)]
pub struct FilesystemConnector {
    clock: Arc<dyn Clock>,
}

impl FilesystemConnector {
    /// The connector that takes the age of files from `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    /// Checks the options that sources and sinks share.
    fn open(&self, table: &TableDescription) -> Result<(Layout, &'static dyn Format)> {
        let missing: Vec<&str> = ["format", "path"]
            .into_iter()
            .filter(|key| !table.options.contains_key(*key))
            .collect();
        if !missing.is_empty() {
            return Err(missing_required(&missing));
        }
        let options = Options::of(table);
        let format = formats::format(options.required("format")?)?;
        let mut supported: Vec<String> = self.options().iter().map(|s| s.key.to_string()).collect();
        let of_format = format.options();
        supported.extend(
            of_format
                .iter()
                .map(|s| format!("{}.{}", format.identifier(), s.key)),
        );
        refuse_unknown(self.identifier(), table, supported)?;
        let pattern = options
            .get("source.path.regex-pattern")
            .map(|text| {
                Regex::new(&format!("^(?:{text})$")).map_err(|e| {
                    Error::options(format!(
                        "Option 'source.path.regex-pattern' is no regular expression: {e}"
                    ))
                })
            })
            .transpose()?;
        let layout = Layout {
            root: local_path(options.required("path")?)?,
            partitions: table.partitioned_by.clone(),
            physical: table.physical.clone(),
            default_partition: options
                .get("partition.default-name")
                .unwrap_or(DEFAULT_PARTITION)
                .to_string(),
            pattern,
        };
        Ok((layout, format))
    }
}

/// The path on this machine that `path` means: `/a/b`, `file:/a/b`, `file:///a/b`.
fn local_path(path: &str) -> Result<PathBuf> {
    if path.is_empty() {
        return Err(Error::options("Option 'path' is empty."));
    }
    let rest = match path.split_once(':') {
        Some(("file", rest)) => match rest.strip_prefix("//") {
            Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
            None => rest,
        },
        Some((scheme, rest)) if rest.starts_with("//") => {
            return Err(Error::options(format!(
                "Could not find a file system implementation for scheme '{scheme}' of path '{path}'."
            ))
            .hint("local paths are supported: /folder or file:///folder"));
        }
        _ => path,
    };
    std::path::absolute(rest)
        .map_err(|e| Error::options(format!("'{path}' is no path of a file: {e}")))
}

impl Connector for FilesystemConnector {
    fn identifier(&self) -> &'static str {
        "filesystem"
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        let mut options = lookup_options();
        options.extend([
            sink_parallelism(),
            required("path", "a folder, or for a source a file"),
            required("format", "format of the files"),
            optional(
                "partition.default-name",
                "folder name of NULL (__DEFAULT_PARTITION__)",
            ),
            optional(
                "source.monitor-interval",
                "look for new files so often, without end",
            ),
            optional(
                "source.path.regex-pattern",
                "read the files whose whole path matches",
            ),
            optional("source.report-statistics", "without effect"),
            optional("sink.rolling-policy.file-size", "size of a part (128 mb)"),
            optional(
                "sink.rolling-policy.rollover-interval",
                "a part is open no longer than this (30 min)",
            ),
            optional(
                "sink.rolling-policy.inactivity-interval",
                "a part is idle no longer than this (30 min)",
            ),
            optional(
                "sink.rolling-policy.check-interval",
                "how often age and idleness are looked at (1 min)",
            ),
            optional("sink.shuffle-by-partition.enable", "without effect"),
            optional(
                "sink.partition-commit.trigger",
                "process-time or partition-time (process-time)",
            ),
            optional(
                "sink.partition-commit.delay",
                "wait before the commit (0 s)",
            ),
            optional(
                "sink.partition-commit.policy.kind",
                "success-file: put a file into a finished partition",
            ),
            optional(
                "sink.partition-commit.success-file.name",
                "name of that file (_SUCCESS)",
            ),
            optional(
                "sink.partition-commit.watermark-time-zone",
                "zone of watermarks (UTC)",
            ),
            optional(
                "auto-compaction",
                "make few large files of the small ones of a checkpoint (false)",
            ),
            optional(
                "compaction.file-size",
                "size of such a file (that of a part)",
            ),
            OptionSpec {
                flink: false,
                ..optional(
                    "sink.delivery-guarantee",
                    "exactly-once, or at-least-once: parts are visible before their checkpoint (exactly-once)",
                )
            },
            optional("partition.time-extractor.kind", "default"),
            optional(
                "partition.time-extractor.timestamp-pattern",
                "how partition columns make a time: $dt $hour:00:00",
            ),
            optional(
                "partition.time-extractor.timestamp-formatter",
                "format of that time (yyyy-MM-dd HH:mm:ss)",
            ),
        ]);
        options
    }

    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        let (layout, format) = self.open(table)?;
        let options = FormatOptions::new(table, format!("{}.", format.identifier()));
        let decoding = format.decoding(&options)?;
        let interval = Options::of(table).duration("source.monitor-interval")?;
        FileSource::new(layout, decoding, interval, table, Arc::clone(&self.clock))
            .map(|source| Arc::new(source) as Arc<dyn TableSource>)
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        let (layout, format) = self.open(table)?;
        let options = FormatOptions::new(table, format!("{}.", format.identifier()));
        let encoding = format.encoding(&options)?;
        let options = Options::of(table);
        let minutes = |n: u64| Duration::from_secs(60 * n);
        let rolling = Rolling {
            size: options
                .memory_size("sink.rolling-policy.file-size")?
                .unwrap_or(128 << 20),
            age: options
                .duration("sink.rolling-policy.rollover-interval")?
                .unwrap_or(minutes(30)),
            idle: options
                .duration("sink.rolling-policy.inactivity-interval")?
                .unwrap_or(minutes(30)),
            check: options
                .duration("sink.rolling-policy.check-interval")?
                .unwrap_or(minutes(1)),
        };
        options.boolean("sink.shuffle-by-partition.enable", false)?;
        let settings = Settings {
            rolling,
            guarantee: guarantee(options)?,
            partition_commit: PartitionCommit::read(options)?,
            compaction: compaction(options, rolling.size)?,
        };
        if settings.compaction.is_some() && settings.guarantee == Guarantee::AtLeastOnce {
            return Err(Error::options(
                "'auto-compaction' cannot go with 'sink.delivery-guarantee' = 'at-least-once': only parts that are not visible yet are compacted.",
            ));
        }
        FileSink::new(layout, encoding, settings, Arc::clone(&self.clock))
            .map(|sink| Arc::new(sink) as Arc<dyn TableSink>)
    }
}

fn guarantee(options: Options<'_>) -> Result<Guarantee> {
    let key = "sink.delivery-guarantee";
    if options.get(key).is_some_and(|text| {
        let weaker = ["at-most-once", "none"];
        weaker.iter().any(|w| text.eq_ignore_ascii_case(w))
    }) {
        return Err(Error::options(
            "A sink alone cannot be at-most-once: what a source reads again is written again.",
        )
        .hint("SET 'execution.checkpointing.mode' = 'AT_MOST_ONCE' makes the whole job so"));
    }
    options.choice(
        key,
        &[
            ("exactly-once", Guarantee::ExactlyOnce),
            ("at-least-once", Guarantee::AtLeastOnce),
        ],
        Guarantee::ExactlyOnce,
    )
}

/// Bytes of a compacted file, if files are to be compacted.
fn compaction(options: Options<'_>, part_size: u64) -> Result<Option<u64>> {
    let size = options.memory_size("compaction.file-size")?;
    let is_on = options.boolean("auto-compaction", false)?;
    Ok(is_on.then(|| size.unwrap_or(part_size)))
}

#[cfg(test)]
mod tests;
