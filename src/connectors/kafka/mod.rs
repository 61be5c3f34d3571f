//! The `kafka` and `upsert-kafka` connectors: tables that are topics of a Kafka cluster.
//!
//! - `settings`, `properties`, `fields`: what the options say,
//! - `client`: what all clients of a cluster share,
//! - `source`, `reader`, `splits`, `position`, `decode`, `nested`, `metadata`: the table as a source;
//!   records that cannot be decoded go to `dead_letters`, and `reset` says what becomes of a lost position,
//! - `sink`, `encode`, `producer`: the table as a sink,
//! - `transactions`, `marker`, `epoch_file`: exactly once.

mod client;
mod dead_letters;
mod decode;
mod encode;
mod epoch_file;
mod fields;
mod marker;
mod metadata;
mod nested;
mod position;
mod producer;
mod properties;
mod reader;
mod reset;
mod settings;
mod sink;
mod source;
mod splits;
mod transactions;

use std::sync::Arc;

use self::encode::EncodePlan;
use self::metadata::Metadata;
pub use self::position::next_offsets;
use self::settings::{ScanSettings, SinkSettings, TableSettings};
use self::sink::KafkaSink;
use self::source::{Decoding, KafkaSource};
use super::options::{
    Options, missing_required, optional, refuse_unknown, required, scan_parallelism,
    sink_parallelism,
};
use super::{Connector, OptionSpec, Origin, TableDescription, TableSink, TableSource};
use crate::error::{Error, Result};
use crate::formats::{self, Format, FormatOptions};

/// The `kafka` connector.
#[derive(Debug)]
pub struct KafkaConnector;

/// The `upsert-kafka` connector: the last record of every key counts.
#[derive(Debug)]
pub struct UpsertKafkaConnector;

/// An option of ours.
fn extension(key: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        flink: false,
        ..optional(key, help)
    }
}

fn secret(key: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        secret: true,
        ..optional(key, help)
    }
}

/// The options that both connectors have.
fn common_options() -> Vec<OptionSpec> {
    vec![
        required(
            "properties.bootstrap.servers",
            "brokers to begin with: host:port, separated by commas",
        ),
        scan_parallelism(),
        sink_parallelism(),
        optional("topic", "a topic, or several separated by ;"),
        optional("topic-pattern", "regular expression of topics"),
        optional("properties.*", "a property of Kafka's Java client"),
        secret("properties.sasl.jaas.config", "login: user and password"),
        secret("properties.ssl.key.password", "password of the private key"),
        secret("properties.ssl.keystore.key", "private key, PEM"),
        secret(
            "properties.ssl.keystore.password",
            "password of the keystore",
        ),
        optional("key.format", "format of the key"),
        optional("key.fields-prefix", "in front of the key's columns"),
        optional("value.format", "format of the value"),
        optional("value.fields-include", "ALL or EXCEPT_KEY (ALL)"),
        optional(
            "scan.bounded.mode",
            "where it ends: unbounded, latest-offset, group-offsets, timestamp or specific-offsets \
             (unbounded)",
        ),
        optional(
            "scan.bounded.specific-offsets",
            "partition:0,offset:42;partition:1,offset:300",
        ),
        optional("scan.bounded.timestamp-millis", "ms since the epoch"),
        optional(
            "scan.topic-partition-discovery.interval",
            "look for new partitions so often, 0 is never (5 min)",
        ),
        extension(
            "scan.dead-letter.topic",
            "topic that takes records that cannot be decoded",
        ),
        optional(
            "sink.delivery-guarantee",
            "none, at-least-once or exactly-once (at-least-once)",
        ),
        optional(
            "sink.transactional-id-prefix",
            "in front of transactional ids; for exactly-once",
        ),
        optional("sink.transaction-naming-strategy", "without effect"),
        extension(
            "sink.transaction-marker-topic",
            "compacted topic of committed epochs (PREFIX-ebbflow-epochs)",
        ),
    ]
}

impl Connector for KafkaConnector {
    fn identifier(&self) -> &'static str {
        "kafka"
    }

    fn origin(&self) -> Origin {
        Origin::Jar("flink-sql-connector-kafka")
    }

    fn options(&self) -> Vec<OptionSpec> {
        let mut options = common_options();
        options.extend([
            optional("format", "format of the value"),
            optional("key.fields", "columns of the key, separated by ;"),
            optional(
                "scan.startup.mode",
                "where it begins: earliest-offset, latest-offset, group-offsets, timestamp or \
                 specific-offsets (group-offsets)",
            ),
            optional(
                "scan.startup.specific-offsets",
                "partition:0,offset:42;partition:1,offset:300",
            ),
            optional("scan.startup.timestamp-millis", "ms since the epoch"),
            optional(
                "sink.partitioner",
                "default, fixed or round-robin (default)",
            ),
        ]);
        options
    }

    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        source(self, table, false)
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        sink(self, table, false)
    }
}

impl Connector for UpsertKafkaConnector {
    fn identifier(&self) -> &'static str {
        "upsert-kafka"
    }

    fn origin(&self) -> Origin {
        Origin::Jar("flink-sql-connector-kafka")
    }

    fn options(&self) -> Vec<OptionSpec> {
        let mut options = common_options();
        for option in &mut options {
            option.required |= ["key.format", "value.format"].contains(&option.key);
        }
        options.extend([
            optional(
                "sink.buffer-flush.max-rows",
                "fold changes of a key until there are so many (0)",
            ),
            optional(
                "sink.buffer-flush.interval",
                "fold changes of a key so long (0 s)",
            ),
        ]);
        options
    }

    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        source(self, table, true)
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        sink(self, table, true)
    }
}

/// The formats of a table: their prefix in the options, and themselves.
struct Formats {
    key: Option<(String, &'static dyn Format)>,
    value: (String, &'static dyn Format),
}

impl Formats {
    fn read(table: &TableDescription) -> Result<Self> {
        let options = Options::of(table);
        let key = match options.get("key.format") {
            Some(name) => Some((format!("key.{name}."), formats::format(name)?)),
            None => None,
        };
        let value = match (options.get("value.format"), options.get("format")) {
            (Some(name), _) => (format!("value.{name}."), formats::format(name)?),
            (None, Some(name)) => (format!("{name}."), formats::format(name)?),
            (None, None) => return Err(missing_required(&["format"])),
        };
        Ok(Self { key, value })
    }

    fn all(&self) -> impl Iterator<Item = &(String, &'static dyn Format)> {
        self.key.iter().chain(std::iter::once(&self.value))
    }
}

/// Checks all options of a table.
fn check(connector: &dyn Connector, table: &TableDescription, upsert: bool) -> Result<Formats> {
    let specs = connector.options();
    let missing: Vec<&str> = specs
        .iter()
        .filter(|s| s.required && !table.options.contains_key(s.key))
        .map(|s| s.key)
        .collect();
    if !missing.is_empty() {
        return Err(missing_required(&missing));
    }
    let formats = Formats::read(table)?;
    let mut supported: Vec<String> = specs.iter().map(|s| s.key.to_string()).collect();
    for (prefix, format) in formats.all() {
        let options = format.options();
        supported.extend(options.iter().map(|s| format!("{prefix}{}", s.key)));
    }
    refuse_unknown(connector.identifier(), table, supported)?;
    if upsert && table.primary_key.is_empty() {
        return Err(Error::options(
            "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY \
             specifies which columns should be read from or write to the Kafka message key. The \
             PRIMARY KEY also defines records in the 'upsert-kafka' table should update or delete on \
             which keys.",
        ));
    }
    Ok(formats)
}

/// Refuses formats that carry a changelog where there may be only insertions, and a key that
/// nothing could keep.
fn check_mode(
    table: &TableDescription,
    formats: &Formats,
    key_is_append: bool,
    value_is_append: bool,
    upsert: bool,
) -> Result<()> {
    let name = |format: &(String, &'static dyn Format)| format.1.identifier();
    let key_name = formats.key.as_ref().map_or("", name);
    if upsert {
        for (what, name, is_append) in [
            ("key", key_name, key_is_append),
            ("value", name(&formats.value), value_is_append),
        ] {
            if !is_append {
                return Err(Error::options(format!(
                    "'upsert-kafka' connector doesn't support '{name}' as {what} format, because \
                     '{name}' is not in insert-only mode."
                )));
            }
        }
        return Ok(());
    }
    if !key_is_append {
        return Err(Error::options(format!(
            "A key format should only deal with INSERT-only records. But {key_name} has a changelog \
             mode of I,UB,UA,D."
        )));
    }
    if !table.primary_key.is_empty() && value_is_append {
        return Err(Error::options(format!(
            "The Kafka table '{}' with '{}' format doesn't support defining PRIMARY KEY constraint on \
             the table, because it can't guarantee the semantic of primary key.",
            table.path,
            name(&formats.value)
        ))
        .hint("use 'connector' = 'upsert-kafka', or leave the key out"));
    }
    Ok(())
}

fn source(
    connector: &dyn Connector,
    table: &TableDescription,
    upsert: bool,
) -> Result<Arc<dyn TableSource>> {
    let formats = check(connector, table, upsert)?;
    let decoding = |(prefix, format): &(String, &'static dyn Format)| {
        format.decoding(&FormatOptions::new(table, prefix.as_str()))
    };
    let decoding = Decoding {
        key: formats.key.as_ref().map(decoding).transpose()?,
        value: decoding(&formats.value)?,
    };
    let key_is_append = decoding
        .key
        .as_ref()
        .is_none_or(|f| f.changelog_mode().is_append());
    let value_is_append = decoding.value.changelog_mode().is_append();
    check_mode(table, &formats, key_is_append, value_is_append, upsert)?;
    let settings = TableSettings::read(table, upsert)?;
    let options = Options::of(table);
    let scan = ScanSettings::read(options, &settings.topics, &settings.properties, upsert)?;
    let source = KafkaSource::new(table, settings, scan, decoding, upsert)?;
    Ok(Arc::new(source))
}

fn sink(
    connector: &dyn Connector,
    table: &TableDescription,
    upsert: bool,
) -> Result<Arc<dyn TableSink>> {
    let formats = check(connector, table, upsert)?;
    let encoding = |(prefix, format): &(String, &'static dyn Format)| {
        format.encoding(&FormatOptions::new(table, prefix.as_str()))
    };
    let key = formats.key.as_ref().map(encoding).transpose()?;
    let value = encoding(&formats.value)?;
    let key_is_append = key.as_ref().is_none_or(|f| f.changelog_mode().is_append());
    let value_is_append = value.changelog_mode().is_append();
    check_mode(table, &formats, key_is_append, value_is_append, upsert)?;
    let settings = TableSettings::read(table, upsert)?;
    let sink = SinkSettings::read(Options::of(table), key.is_some() && !upsert)?;
    let mut metadata = Vec::new();
    for (key, column) in table.writable_metadata() {
        let found = Metadata::WRITABLE.iter().find(|(k, _)| k == key);
        let (_, found) = found.ok_or_else(|| {
            Error::options(format!(
                "Invalid metadata key '{key}' in column '{}' of table '{}'. The following metadata \
                 keys are supported for writing:\n{}",
                column.name,
                table.path,
                Metadata::WRITABLE.map(|(k, _)| k).join("\n")
            ))
            .hint("a column that is only read is declared VIRTUAL")
        })?;
        metadata.push((*found, column.clone()));
    }
    let plan = EncodePlan {
        topics: settings.topics,
        fields: settings.fields,
        physical: table.physical.clone(),
        metadata,
        key,
        value,
        upsert,
    };
    let sink = KafkaSink::new(plan, settings.properties, sink)?;
    Ok(Arc::new(sink))
}

#[cfg(test)]
mod tests;
