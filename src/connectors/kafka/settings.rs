//! What the options of a `kafka` or `upsert-kafka` table say.

use std::collections::BTreeMap;
use std::time::Duration;

use fancy_regex::Regex;

use super::fields::Fields;
use super::properties::Properties;
use crate::connectors::TableDescription;
use crate::connectors::options::Options;
use crate::error::{Error, Result};

/// Which topics a table has.
#[derive(Debug, Clone)]
pub(super) enum Topics {
    /// By name.
    List(Vec<String>),
    /// All whose whole name matches.
    Pattern(Regex),
}

impl Topics {
    pub(super) fn read(options: Options<'_>) -> Result<Self> {
        match (options.get("topic"), options.get("topic-pattern")) {
            (Some(_), Some(_)) => Err(Error::options(
                "Option 'topic' and 'topic-pattern' shouldn't be set together.",
            )),
            (None, None) => Err(Error::options(
                "Either 'topic' or 'topic-pattern' must be set.",
            )),
            (Some(list), None) => {
                let names: Vec<String> = list
                    .split(';')
                    .map(str::trim)
                    .filter(|name| !name.is_empty())
                    .map(str::to_string)
                    .collect();
                if names.is_empty() {
                    return Err(Error::options("Option 'topic' names no topic."));
                }
                Ok(Self::List(names))
            }
            (None, Some(pattern)) => Regex::new(&format!("^(?:{pattern})$"))
                .map(Self::Pattern)
                .map_err(|e| {
                    Error::options(format!(
                        "Option 'topic-pattern' is no regular expression: {e}"
                    ))
                }),
        }
    }

    /// Whether `topic` is one of them.
    pub(super) fn contains(&self, topic: &str) -> bool {
        match self {
            Self::List(names) => names.iter().any(|name| name == topic),
            Self::Pattern(pattern) => pattern.is_match(topic).unwrap_or(false),
        }
    }

    /// The one topic, if there is just one by name.
    pub(super) fn single(&self) -> Option<&str> {
        match self {
            Self::List(names) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }
}

/// A place in every partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Earliest,
    Latest,
    /// Where the group has committed.
    Group,
    /// The first record that is not older, ms.
    Timestamp(i64),
    /// Offsets of partitions.
    Specific(BTreeMap<i32, i64>),
}

/// What the table as a source says.
#[derive(Debug, Clone)]
pub(super) struct ScanSettings {
    pub(super) start: Place,
    /// Where it ends; `None`: never.
    pub(super) end: Option<Place>,
    /// How often it looks for new partitions.
    pub(super) discovery: Option<Duration>,
    /// The topic that takes records that cannot be decoded.
    pub(super) dead_letters: Option<String>,
}

impl ScanSettings {
    pub(super) fn read(
        options: Options<'_>,
        topics: &Topics,
        properties: &Properties,
        upsert: bool,
    ) -> Result<Self> {
        #[derive(Clone, Copy)]
        enum Mode {
            Earliest,
            Latest,
            Group,
            Timestamp,
            Specific,
            Unbounded,
        }
        let place = |what: &str, mode: Mode| -> Result<Option<Place>> {
            let needed = |name: &str, mode: &str| {
                let key = format!("scan.{what}.{name}");
                options.get(&key).ok_or_else(|| {
                    Error::options(format!(
                        "'{key}' is required in '{mode}' {what} mode but missing."
                    ))
                })
            };
            Ok(Some(match mode {
                Mode::Unbounded => return Ok(None),
                Mode::Earliest => Place::Earliest,
                Mode::Latest => Place::Latest,
                Mode::Group => Place::Group,
                Mode::Timestamp => {
                    needed("timestamp-millis", "timestamp")?;
                    let key = format!("scan.{what}.timestamp-millis");
                    let ms = options.parsed(&key, "a number of milliseconds")?;
                    Place::Timestamp(ms.unwrap_or_default())
                }
                Mode::Specific => {
                    let text = needed("specific-offsets", "specific-offsets")?;
                    if topics.single().is_none() {
                        return Err(Error::options(
                            "Currently Kafka source only supports specific offset for single topic.",
                        ));
                    }
                    Place::Specific(specific_offsets(
                        text,
                        &format!("scan.{what}.specific-offsets"),
                    )?)
                }
            }))
        };
        let start = options.choice(
            "scan.startup.mode",
            &[
                ("earliest-offset", Mode::Earliest),
                ("latest-offset", Mode::Latest),
                ("group-offsets", Mode::Group),
                ("timestamp", Mode::Timestamp),
                ("specific-offsets", Mode::Specific),
            ],
            // What a compacted topic says is only known from its beginning.
            if upsert { Mode::Earliest } else { Mode::Group },
        )?;
        let end = options.choice(
            "scan.bounded.mode",
            &[
                ("unbounded", Mode::Unbounded),
                ("latest-offset", Mode::Latest),
                ("group-offsets", Mode::Group),
                ("timestamp", Mode::Timestamp),
                ("specific-offsets", Mode::Specific),
            ],
            Mode::Unbounded,
        )?;
        let discovery = match options.get("scan.topic-partition-discovery.interval") {
            // Flink takes '-1 s' and the like for never.
            Some(text) if text.trim().starts_with('-') => Duration::ZERO,
            Some(_) => options
                .duration("scan.topic-partition-discovery.interval")?
                .unwrap_or_default(),
            None => match properties.discovery_ms {
                Some(ms) => Duration::from_millis(u64::try_from(ms).unwrap_or(0)),
                None => Duration::from_mins(5),
            },
        };
        Self {
            start: place("startup", start)?.unwrap_or(Place::Group),
            end: place("bounded", end)?,
            discovery: Some(discovery).filter(|d| !d.is_zero()),
            dead_letters: options.get("scan.dead-letter.topic").map(str::to_string),
        }
        .check(properties)
    }

    fn check(self, properties: &Properties) -> Result<Self> {
        let places = [Some(&self.start), self.end.as_ref()];
        let by_group = places.into_iter().flatten().any(|p| *p == Place::Group);
        if by_group && properties.group_id.is_none() {
            return Err(Error::options(
                "Option 'properties.group.id' is missing: the mode 'group-offsets' reads from where a \
                 group has committed.",
            )
            .hint(
                "set 'properties.group.id', or 'scan.startup.mode' = 'earliest-offset' (or \
                 'latest-offset'); 'group-offsets' is the default",
            ));
        }
        Ok(self)
    }
}

/// Reads `partition:0,offset:42;partition:1,offset:300`.
fn specific_offsets(text: &str, key: &str) -> Result<BTreeMap<i32, i64>> {
    let parse = || -> Option<BTreeMap<i32, i64>> {
        let pairs = text.split(';').map(str::trim).filter(|p| !p.is_empty());
        let offsets: BTreeMap<i32, i64> = pairs
            .map(|pair| {
                let (partition, offset) = pair.split_once(',')?;
                let partition = partition.trim().strip_prefix("partition:")?;
                let offset = offset.trim().strip_prefix("offset:")?;
                let offset: i64 = offset.trim().parse().ok()?;
                Some((partition.trim().parse().ok()?, offset)).filter(|_| offset >= 0)
            })
            .collect::<Option<_>>()?;
        Some(offsets).filter(|o| !o.is_empty())
    };
    parse().ok_or_else(|| {
        Error::options(format!(
            "Invalid properties '{key}' should follow the format \
             'partition:0,offset:42;partition:1,offset:300', but is '{text}'."
        ))
    })
}

/// What the sink promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Rows may be lost.
    None,
    /// Rows of a checkpoint are in the topic before it is complete.
    AtLeastOnce,
    /// Rows appear in transactions, once.
    ExactlyOnce {
        /// In front of the transactional ids.
        prefix: String,
    },
}

/// To which partition a record without an explicit one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partitioner {
    /// By the hash of its key; without a key any, for a while the same.
    Default,
    /// All of a subtask to one.
    Fixed,
}

/// Many changes of a key within a while become one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffering {
    pub(super) max_rows: usize,
    pub(super) interval: Duration,
}

/// What the table as a sink says.
#[derive(Debug, Clone)]
pub(super) struct SinkSettings {
    pub(super) delivery: Delivery,
    pub(super) partitioner: Partitioner,
    pub(super) buffering: Option<Buffering>,
    /// The topic that holds, for every transactional id, the last epoch that was committed.
    pub(super) marker_topic: Option<String>,
}

impl SinkSettings {
    pub(super) fn read(options: Options<'_>, has_key: bool) -> Result<Self> {
        #[derive(Clone, Copy)]
        enum Guarantee {
            None,
            AtLeastOnce,
            ExactlyOnce,
        }
        let guarantee = options.choice(
            "sink.delivery-guarantee",
            &[
                ("none", Guarantee::None),
                ("at-least-once", Guarantee::AtLeastOnce),
                ("exactly-once", Guarantee::ExactlyOnce),
            ],
            Guarantee::AtLeastOnce,
        )?;
        let delivery = match guarantee {
            Guarantee::None => Delivery::None,
            Guarantee::AtLeastOnce => Delivery::AtLeastOnce,
            Guarantee::ExactlyOnce => {
                let prefix = options.get("sink.transactional-id-prefix");
                let prefix = prefix.filter(|p| !p.is_empty()).ok_or_else(|| {
                    Error::options(
                        "sink.transactional-id-prefix must be specified when using \
                         DeliveryGuarantee.EXACTLY_ONCE.",
                    )
                    .hint("give it a name that no other job on the cluster has")
                })?;
                Delivery::ExactlyOnce {
                    prefix: prefix.to_string(),
                }
            }
        };
        let partitioner = match options.get("sink.partitioner").unwrap_or("default") {
            "default" => Partitioner::Default,
            "fixed" => Partitioner::Fixed,
            "round-robin" if has_key => {
                return Err(Error::options(
                    "Currently 'round-robin' partitioner only works when option 'key.fields' is not \
                     specified.",
                ));
            }
            // Without a key both are the same, in Flink too.
            "round-robin" => Partitioner::Default,
            "" => {
                return Err(Error::options(
                    "Option 'sink.partitioner' should be a non-empty string.",
                ));
            }
            class => {
                return Err(Error::options(format!(
                    "The partitioner class '{class}' of option 'sink.partitioner' cannot be loaded."
                ))
                .hint("'default', 'fixed' and 'round-robin' are supported"));
            }
        };
        // Both strategies name transactions of the Java client; ours need no pool of names.
        options.choice(
            "sink.transaction-naming-strategy",
            &[("incrementing", ()), ("pooling", ())],
            (),
        )?;
        Ok(Self {
            delivery,
            partitioner,
            buffering: buffering(options)?,
            marker_topic: options
                .get("sink.transaction-marker-topic")
                .map(str::to_string),
        })
    }
}

fn buffering(options: Options<'_>) -> Result<Option<Buffering>> {
    let rows_key = "sink.buffer-flush.max-rows";
    let interval_key = "sink.buffer-flush.interval";
    let max_rows: i64 = options.parsed(rows_key, "a number of rows")?.unwrap_or(0);
    let interval = options.duration(interval_key)?.unwrap_or_default();
    match (max_rows > 0, !interval.is_zero()) {
        (true, true) => Ok(Some(Buffering {
            max_rows: usize::try_from(max_rows).unwrap_or(usize::MAX),
            interval,
        })),
        (false, false) => Ok(None),
        _ => Err(Error::options(format!(
            "'{rows_key}' and '{interval_key}' must be set to be greater than zero together to \
             enable sink buffer flushing."
        ))),
    }
}

/// What both uses of a table share.
pub(super) struct TableSettings {
    pub(super) topics: Topics,
    pub(super) properties: Properties,
    pub(super) fields: Fields,
}

impl TableSettings {
    pub(super) fn read(table: &TableDescription, upsert: bool) -> Result<Self> {
        Ok(Self {
            topics: Topics::read(Options::of(table))?,
            properties: Properties::read(&table.options)?,
            fields: Fields::read(table, upsert)?,
        })
    }
}
