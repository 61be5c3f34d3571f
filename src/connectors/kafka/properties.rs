//! `properties.*`: the Java client's names and values made librdkafka's.
//!
//! Users write what they write for Flink. Every name is known here, or refused by name: a property
//! that is ignored in silence costs an afternoon. Errors never hold a value of a secret.

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use rdkafka::ClientConfig;

use crate::connectors::options::wrong_value;
use crate::error::{Error, Result, did_you_mean};

/// The prefix of all properties.
pub(super) const PREFIX: &str = "properties.";

/// What passes a name and its value to librdkafka unseen.
const NATIVE: &str = "librdkafka.";

/// Whom a property concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Both,
    Consumer,
    Producer,
}

/// What becomes of a property.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// librdkafka has it under this name.
    Is(&'static str),
    /// Read here, or below: see [`Properties`].
    Own,
    /// It configures what librdkafka or the engine does in its own way.
    WithoutEffect,
}

use Role::{Both, Consumer, Producer};
use Target::{Is, Own, WithoutEffect};

/// All properties of the Java client that are taken.
const KNOWN: &[(&str, Role, Target)] = &[
    ("acks", Producer, Is("acks")),
    (
        "allow.auto.create.topics",
        Consumer,
        Is("allow.auto.create.topics"),
    ),
    (
        "auto.commit.interval.ms",
        Consumer,
        Is("auto.commit.interval.ms"),
    ),
    ("auto.include.jmx.reporter", Both, WithoutEffect),
    ("auto.offset.reset", Consumer, Own),
    ("batch.size", Producer, Is("batch.size")),
    ("bootstrap.servers", Both, Is("bootstrap.servers")),
    ("buffer.memory", Producer, Own),
    ("check.crcs", Consumer, Is("check.crcs")),
    ("client.dns.lookup", Both, Is("client.dns.lookup")),
    ("client.id", Both, Is("client.id")),
    ("client.id.prefix", Both, Own),
    ("client.rack", Consumer, Is("client.rack")),
    ("commit.offsets.on.checkpoint", Consumer, Own),
    ("compression.gzip.level", Producer, Is("compression.level")),
    ("compression.lz4.level", Producer, Is("compression.level")),
    ("compression.type", Producer, Is("compression.type")),
    ("compression.zstd.level", Producer, Is("compression.level")),
    (
        "connections.max.idle.ms",
        Both,
        Is("connections.max.idle.ms"),
    ),
    ("default.api.timeout.ms", Both, Own),
    ("delivery.timeout.ms", Producer, Is("delivery.timeout.ms")),
    ("enable.auto.commit", Consumer, Is("enable.auto.commit")),
    ("enable.idempotence", Producer, Is("enable.idempotence")),
    ("enable.metrics.push", Both, Is("enable.metrics.push")),
    ("exclude.internal.topics", Consumer, WithoutEffect),
    ("fetch.max.bytes", Consumer, Is("fetch.max.bytes")),
    ("fetch.max.wait.ms", Consumer, Is("fetch.wait.max.ms")),
    ("fetch.min.bytes", Consumer, Is("fetch.min.bytes")),
    ("group.id", Consumer, Own),
    ("group.instance.id", Consumer, WithoutEffect),
    ("group.protocol", Consumer, WithoutEffect),
    ("heartbeat.interval.ms", Consumer, WithoutEffect),
    ("isolation.level", Consumer, Is("isolation.level")),
    ("key.deserializer", Consumer, WithoutEffect),
    ("key.serializer", Producer, WithoutEffect),
    ("linger.ms", Producer, Is("linger.ms")),
    ("max.block.ms", Producer, WithoutEffect),
    (
        "max.in.flight.requests.per.connection",
        Producer,
        Is("max.in.flight.requests.per.connection"),
    ),
    (
        "max.partition.fetch.bytes",
        Consumer,
        Is("max.partition.fetch.bytes"),
    ),
    ("max.poll.interval.ms", Consumer, WithoutEffect),
    ("max.poll.records", Consumer, WithoutEffect),
    ("max.request.size", Producer, Is("message.max.bytes")),
    (
        "metadata.max.age.ms",
        Both,
        Is("topic.metadata.refresh.interval.ms"),
    ),
    (
        "metadata.recovery.strategy",
        Both,
        Is("metadata.recovery.strategy"),
    ),
    ("metric.reporters", Both, WithoutEffect),
    ("metrics.num.samples", Both, WithoutEffect),
    ("metrics.recording.level", Both, WithoutEffect),
    ("metrics.sample.window.ms", Both, WithoutEffect),
    ("partition.assignment.strategy", Consumer, WithoutEffect),
    ("partition.discovery.interval.ms", Consumer, Own),
    ("receive.buffer.bytes", Both, Own),
    (
        "reconnect.backoff.max.ms",
        Both,
        Is("reconnect.backoff.max.ms"),
    ),
    ("reconnect.backoff.ms", Both, Is("reconnect.backoff.ms")),
    ("register.consumer.metrics", Consumer, WithoutEffect),
    ("register.producer.metrics", Producer, WithoutEffect),
    ("request.timeout.ms", Both, Own),
    ("retries", Producer, Is("retries")),
    ("retry.backoff.max.ms", Both, Is("retry.backoff.max.ms")),
    ("retry.backoff.ms", Both, Is("retry.backoff.ms")),
    ("sasl.jaas.config", Both, Own),
    ("sasl.mechanism", Both, Own),
    ("security.protocol", Both, Own),
    ("send.buffer.bytes", Both, Own),
    ("session.timeout.ms", Consumer, WithoutEffect),
    (
        "socket.connection.setup.timeout.ms",
        Both,
        Is("socket.connection.setup.timeout.ms"),
    ),
    (
        "socket.connection.setup.timeout.max.ms",
        Both,
        WithoutEffect,
    ),
    ("ssl.cipher.suites", Both, Is("ssl.cipher.suites")),
    ("ssl.enabled.protocols", Both, WithoutEffect),
    ("ssl.endpoint.identification.algorithm", Both, Own),
    ("ssl.key.password", Both, Is("ssl.key.password")),
    (
        "ssl.keystore.certificate.chain",
        Both,
        Is("ssl.certificate.pem"),
    ),
    ("ssl.keystore.key", Both, Is("ssl.key.pem")),
    ("ssl.keystore.location", Both, Own),
    ("ssl.keystore.password", Both, Own),
    ("ssl.keystore.type", Both, Own),
    ("ssl.protocol", Both, WithoutEffect),
    ("ssl.truststore.certificates", Both, Is("ssl.ca.pem")),
    ("ssl.truststore.location", Both, Own),
    ("ssl.truststore.password", Both, Own),
    ("ssl.truststore.type", Both, Own),
    (
        "transaction.timeout.ms",
        Producer,
        Is("transaction.timeout.ms"),
    ),
    ("value.deserializer", Consumer, WithoutEffect),
    ("value.serializer", Producer, WithoutEffect),
];

/// Where a partition is begun that has no committed offset, or whose offset is not in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetReset {
    Earliest,
    Latest,
}

/// The properties of a table.
#[derive(Clone)]
pub(super) struct Properties {
    consumer: BTreeMap<&'static str, String>,
    producer: BTreeMap<&'static str, String>,
    /// Names and values for librdkafka as they are.
    native: Vec<(String, String)>,
    /// `group.id`.
    pub(super) group_id: Option<String>,
    /// `auto.offset.reset`; `None` for `none`.
    pub(super) offset_reset: Option<OffsetReset>,
    /// `default.api.timeout.ms`: longest wait for an answer of the cluster.
    pub(super) api_timeout: Duration,
    /// `commit.offsets.on.checkpoint`.
    pub(super) commit_on_checkpoint: bool,
    /// `partition.discovery.interval.ms`.
    pub(super) discovery_ms: Option<i64>,
}

/// Without values: they may be secrets.
impl std::fmt::Debug for Properties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Properties")
            .field("consumer", &self.consumer.keys())
            .field("producer", &self.producer.keys())
            .finish_non_exhaustive()
    }
}

impl Properties {
    /// Reads the properties out of a table's options.
    ///
    /// # Errors
    /// When one is unknown, malformed, or asks for what this build cannot do.
    pub(super) fn read(options: &IndexMap<String, String>) -> Result<Self> {
        let mut given: BTreeMap<&str, &str> = BTreeMap::new();
        let mut this = Self {
            consumer: BTreeMap::new(),
            producer: BTreeMap::new(),
            native: Vec::new(),
            group_id: None,
            offset_reset: None,
            api_timeout: Duration::from_secs(30),
            commit_on_checkpoint: true,
            discovery_ms: None,
        };
        for (key, value) in options {
            let Some(name) = key.strip_prefix(PREFIX) else {
                continue;
            };
            if let Some(native) = name.strip_prefix(NATIVE) {
                this.native.push((native.to_string(), value.clone()));
                continue;
            }
            let Some((name, role, target)) = KNOWN.iter().find(|(known, ..)| *known == name) else {
                return Err(unknown(name));
            };
            match target {
                Is(native) => this.set(*role, native, value.trim()),
                Own => {
                    given.insert(name, value);
                }
                WithoutEffect => tracing::debug!("'{PREFIX}{name}' has no effect"),
            }
        }
        this.read_own(&given)?;
        this.read_security(&given)?;
        Ok(this)
    }

    fn set(&mut self, role: Role, native: &'static str, value: &str) {
        if role != Producer {
            self.consumer.insert(native, value.to_string());
        }
        if role != Consumer {
            self.producer.insert(native, value.to_string());
        }
    }

    fn read_own(&mut self, given: &BTreeMap<&str, &str>) -> Result<()> {
        let number = |name: &str| -> Result<Option<i64>> {
            let Some(text) = given.get(name) else {
                return Ok(None);
            };
            let number = text.trim().parse();
            number.map(Some).map_err(|_| {
                wrong_value(
                    &format!("{PREFIX}{name}"),
                    text,
                    "a whole number is expected",
                )
            })
        };
        self.group_id = given
            .get("group.id")
            .map(|id| id.trim().to_string())
            .filter(|id| !id.is_empty());
        self.offset_reset = match given.get("auto.offset.reset").map(|t| t.trim()) {
            None | Some("none") => None,
            Some("earliest") => Some(OffsetReset::Earliest),
            Some("latest") => Some(OffsetReset::Latest),
            Some(other) => {
                return Err(wrong_value(
                    "properties.auto.offset.reset",
                    other,
                    "'earliest', 'latest' or 'none' is expected",
                ));
            }
        };
        if let Some(ms) = number("default.api.timeout.ms")? {
            self.api_timeout = Duration::from_millis(ms.max(1).unsigned_abs());
        }
        self.discovery_ms = number("partition.discovery.interval.ms")?;
        if let Some(text) = given.get("commit.offsets.on.checkpoint") {
            self.commit_on_checkpoint = !text.trim().eq_ignore_ascii_case("false");
        }
        if let Some(bytes) = number("buffer.memory")? {
            let kilobytes = (bytes / 1024).max(1).to_string();
            self.set(Producer, "queue.buffering.max.kbytes", &kilobytes);
        }
        if let Some(prefix) = given.get("client.id.prefix") {
            self.set(Both, "client.id", prefix.trim());
        }
        // -1 is the operating system's default, for librdkafka 0.
        for (name, native) in [
            ("receive.buffer.bytes", "socket.receive.buffer.bytes"),
            ("send.buffer.bytes", "socket.send.buffer.bytes"),
        ] {
            if let Some(bytes) = number(name)? {
                self.set(Both, native, &bytes.max(0).to_string());
            }
        }
        if let Some(ms) = number("request.timeout.ms")? {
            self.set(
                Both,
                "socket.timeout.ms",
                &ms.clamp(10, 300_000).to_string(),
            );
            self.set(
                Producer,
                "request.timeout.ms",
                &ms.clamp(1, 900_000).to_string(),
            );
        }
        Ok(())
    }

    fn read_security(&mut self, given: &BTreeMap<&str, &str>) -> Result<()> {
        if let Some(protocol) = given.get("security.protocol") {
            let protocol = protocol.trim().to_ascii_lowercase();
            let known = ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"];
            if !known.contains(&protocol.as_str()) {
                return Err(wrong_value(
                    "properties.security.protocol",
                    &protocol,
                    "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL is expected",
                ));
            }
            self.set(Both, "security.protocol", &protocol);
        }
        if let Some(mechanism) = given.get("sasl.mechanism").map(|m| m.trim()) {
            if !["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"].contains(&mechanism) {
                return Err(Error::options(format!(
                    "The mechanism '{mechanism}' of 'properties.sasl.mechanism' is not supported."
                ))
                .hint("PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are"));
            }
            self.set(Both, "sasl.mechanism", mechanism);
        }
        if let Some(text) = given.get("sasl.jaas.config") {
            let (user, password) = jaas(text)?;
            self.set(Both, "sasl.username", &user);
            self.set(Both, "sasl.password", &password);
        }
        if let Some(algorithm) = given.get("ssl.endpoint.identification.algorithm") {
            let algorithm = match algorithm.trim() {
                "" => "none",
                other => other,
            };
            self.set(Both, "ssl.endpoint.identification.algorithm", algorithm);
        }
        self.read_stores(given)
    }

    /// Certificates and keys: PEM, or PKCS12 for the keystore. There is no reader of JKS.
    fn read_stores(&mut self, given: &BTreeMap<&str, &str>) -> Result<()> {
        let kind = |name: &str| {
            given
                .get(name)
                .map_or("JKS", |t| t.trim())
                .to_ascii_uppercase()
        };
        if let Some(location) = given.get("ssl.truststore.location") {
            let kind = kind("ssl.truststore.type");
            if kind != "PEM" {
                return Err(store("truststore", &kind, "PEM is"));
            }
            self.set(Both, "ssl.ca.location", location);
        }
        if given.contains_key("ssl.truststore.password") {
            return Err(Error::options(
                "'properties.ssl.truststore.password' cannot be given for a truststore of type PEM.",
            ));
        }
        if let Some(location) = given.get("ssl.keystore.location") {
            match kind("ssl.keystore.type").as_str() {
                "PEM" => {
                    self.set(Both, "ssl.certificate.location", location);
                    self.set(Both, "ssl.key.location", location);
                }
                "PKCS12" => {
                    self.set(Both, "ssl.keystore.location", location);
                    if let Some(password) = given.get("ssl.keystore.password") {
                        self.set(Both, "ssl.keystore.password", password);
                    }
                }
                other => return Err(store("keystore", other, "PEM and PKCS12 are")),
            }
        }
        Ok(())
    }

    /// The configuration of a consumer that is assigned its partitions. `group` stands in when the
    /// table has no group: librdkafka wants one, but nothing is committed to it.
    pub(super) fn consumer(&self, group: &str) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("client.id", "ebbflow")
            .set("isolation.level", "read_uncommitted")
            .set("enable.auto.commit", "false")
            .set("fetch.queue.backoff.ms", "10")
            // Nobody jumps to another offset but us: see `reset`.
            .set("auto.offset.reset", "error");
        for (name, value) in &self.consumer {
            config.set(*name, value);
        }
        config.set("group.id", self.group_id.as_deref().unwrap_or(group));
        if self.group_id.is_none() {
            config.set("enable.auto.commit", "false");
        }
        self.set_native(&mut config);
        config
    }

    /// The configuration of a producer, with the Java client's defaults where they matter.
    pub(super) fn producer(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("client.id", "ebbflow")
            .set("enable.idempotence", "true")
            .set("delivery.report.only.error", "true")
            // The partition of a key is the one that the Java client gives it.
            .set("partitioner", "murmur2_random");
        if self
            .producer
            .get("acks")
            .is_some_and(|a| a != "all" && a != "-1")
        {
            config.set("enable.idempotence", "false");
        }
        for (name, value) in &self.producer {
            config.set(*name, value);
        }
        self.set_native(&mut config);
        config
    }

    fn set_native(&self, config: &mut ClientConfig) {
        for (name, value) in &self.native {
            config.set(name.as_str(), value.as_str());
        }
    }
}

fn unknown(name: &str) -> Error {
    if name == "transactional.id" {
        return Error::options("'properties.transactional.id' is set by the sink itself.")
            .hint("give 'sink.transactional-id-prefix'");
    }
    let error = Error::options(format!(
        "Unknown property '{PREFIX}{name}' of the Kafka client."
    ));
    let close = did_you_mean(name, KNOWN.iter().map(|(known, ..)| *known));
    let native = format!("an option of librdkafka can be given as '{PREFIX}{NATIVE}{name}'");
    error.hint(match close {
        Some(close) => format!("did you mean '{PREFIX}{close}'? {native}"),
        None => native,
    })
}

fn store(what: &str, kind: &str, supported: &str) -> Error {
    Error::options(format!(
        "The type '{kind}' of 'properties.ssl.{what}.location' is not supported; {supported}."
    ))
    .hint(format!(
        "convert it to PEM (keytool -importkeystore -deststoretype PKCS12, then openssl pkcs12) and \
         set 'properties.ssl.{what}.type' = 'PEM'"
    ))
}

/// User and password out of a login line:
/// `...PlainLoginModule required username="u" password="p";`.
fn jaas(text: &str) -> Result<(String, String)> {
    let malformed = |what: &str| {
        Error::options(format!("Option 'properties.sasl.jaas.config' {what}")).hint(
            "expected: org.apache.kafka.common.security.plain.PlainLoginModule required \
             username=\"..\" password=\"..\";",
        )
    };
    let module = text.split_whitespace().next().unwrap_or_default();
    let module = module.rsplit('.').next().unwrap_or_default();
    if !["PlainLoginModule", "ScramLoginModule"].contains(&module) {
        return Err(malformed("names a login module that is not supported"));
    }
    let value = |name: &str| -> Result<String> {
        let missing = || malformed(&format!("has no {name}"));
        let mut from = 0;
        let start = loop {
            let at = text[from..].find(name).ok_or_else(missing)? + from;
            let rest = text[at + name.len()..].trim_start();
            let is_word = text[..at].ends_with(char::is_whitespace);
            if let Some(rest) = rest.strip_prefix('=').filter(|_| is_word) {
                break rest.trim_start();
            }
            from = at + name.len();
        };
        let Some(quoted) = start.strip_prefix('"') else {
            let end = start.find(|c: char| c.is_whitespace() || c == ';');
            return Ok(start[..end.unwrap_or(start.len())].to_string());
        };
        let mut value = String::new();
        let mut chars = quoted.chars();
        loop {
            match chars.next() {
                Some('"') => return Ok(value),
                Some('\\') => value.extend(chars.next()),
                Some(c) => value.push(c),
                None => return Err(malformed("does not end")),
            }
        }
    };
    Ok((value("username")?, value("password")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&str, &str)]) -> Result<Properties> {
        let options = options
            .iter()
            .map(|(k, v)| (format!("{PREFIX}{k}"), (*v).to_string()));
        Properties::read(&options.collect())
    }

    #[test]
    fn names_are_translated_for_whom_they_concern() {
        let properties = read(&[
            ("fetch.max.wait.ms", "7"),
            ("buffer.memory", "33554432"),
            ("request.timeout.ms", "1000"),
            ("librdkafka.queued.min.messages", "5"),
        ])
        .unwrap();
        let consumer = properties.consumer("g");
        assert_eq!(consumer.get("fetch.wait.max.ms"), Some("7"));
        assert_eq!(consumer.get("queue.buffering.max.kbytes"), None);
        assert_eq!(consumer.get("socket.timeout.ms"), Some("1000"));
        assert_eq!(consumer.get("queued.min.messages"), Some("5"));
        assert_eq!(consumer.get("group.id"), Some("g"));
        let producer = properties.producer();
        assert_eq!(producer.get("queue.buffering.max.kbytes"), Some("32768"));
        assert_eq!(producer.get("request.timeout.ms"), Some("1000"));
    }

    #[test]
    fn unknown_properties_are_refused_by_name() {
        let error = read(&[("fetch.min.byte", "1")]).unwrap_err();
        assert!(error.message().contains("'properties.fetch.min.byte'"));
        assert!(error.hint_text().unwrap().contains("fetch.min.bytes"));
        assert!(read(&[("transactional.id", "x")]).is_err());
    }

    #[test]
    fn a_login_line_gives_user_and_password() {
        let line = "org.apache.kafka.common.security.scram.ScramLoginModule required\n \
                    username=\"my user\" password = \"a\\\"b;c\";";
        let properties = read(&[
            ("sasl.jaas.config", line),
            ("sasl.mechanism", "SCRAM-SHA-512"),
            ("security.protocol", "SASL_SSL"),
        ])
        .unwrap();
        let config = properties.producer();
        assert_eq!(config.get("sasl.username"), Some("my user"));
        assert_eq!(config.get("sasl.password"), Some("a\"b;c"));
        assert_eq!(config.get("security.protocol"), Some("sasl_ssl"));
        assert!(!format!("{properties:?}").contains("a\"b"));
        let error = read(&[(
            "sasl.jaas.config",
            "x.PlainLoginModule required password=\"geheim",
        )])
        .unwrap_err();
        assert!(!error.to_string().contains("geheim"), "{error}");
        let error = read(&[("sasl.jaas.config", "x.Krb5LoginModule required geheim")]).unwrap_err();
        assert!(!error.to_string().contains("geheim"), "{error}");
    }

    #[test]
    fn stores_are_pem() {
        let pem = [
            ("ssl.truststore.location", "ca.pem"),
            ("ssl.truststore.type", "PEM"),
        ];
        let config = read(&pem).unwrap().consumer("g");
        assert_eq!(config.get("ssl.ca.location"), Some("ca.pem"));
        let error = read(&[("ssl.truststore.location", "ca.jks")]).unwrap_err();
        assert!(error.message().contains("'JKS'"), "{error}");
        let mechanism = read(&[("sasl.mechanism", "GSSAPI")]).unwrap_err();
        assert!(mechanism.message().contains("'GSSAPI'"), "{mechanism}");
    }
}
