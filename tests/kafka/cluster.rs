//! What the tests do on a cluster: topics, records, and the engine as a process.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

pub const WAIT: Duration = Duration::from_secs(60);

/// A client's view of a cluster.
pub struct Cluster {
    pub address: String,
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub partition: i32,
    pub key: Option<String>,
    pub value: Option<String>,
}

impl Cluster {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.address)
            .set("log_level", "0");
        config
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().expect("a client")
    }

    pub fn create_topic(&self, topic: &str, partitions: i32) {
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        let admin = self.admin();
        let options = AdminOptions::new().operation_timeout(Some(WAIT));
        let created = admin.create_topics([&new], &options);
        for result in block_on(created).expect("an answer") {
            result.expect("the topic is created");
        }
    }

    pub fn set_partitions(&self, topic: &str, partitions: usize) {
        let new = NewPartitions::new(topic, partitions);
        let admin = self.admin();
        let options = AdminOptions::new().operation_timeout(Some(WAIT));
        let created = admin.create_partitions([&new], &options);
        for result in block_on(created).expect("an answer") {
            result.expect("the partitions are created");
        }
    }

    /// Removes the records of partition 0 of `topic` before `offset`.
    pub fn delete_records(&self, topic: &str, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Offset(offset))
            .expect("an offset");
        let options = AdminOptions::new().operation_timeout(Some(WAIT));
        let deleted = block_on(self.admin().delete_records(&list, &options)).expect("an answer");
        for partition in deleted.elements() {
            partition.error().expect("the records are deleted");
        }
    }

    /// Deletes a topic and waits until it is gone.
    pub fn delete_topic(&self, topic: &str) {
        let options = AdminOptions::new().operation_timeout(Some(WAIT));
        let deleted = block_on(self.admin().delete_topics(&[topic], &options)).expect("an answer");
        for result in deleted {
            result.expect("the topic is deleted");
        }
        let consumer: BaseConsumer = self.config().create().expect("a client");
        wait_until(&format!("topic {topic} is still there"), || {
            let metadata = consumer.fetch_metadata(None, WAIT).expect("metadata");
            metadata.topics().iter().all(|t| t.name() != topic)
        });
    }

    /// The offset that `group` has committed for a partition of `topic`.
    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let consumer = self.consumer(group);
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let found = consumer.committed_offsets(list, WAIT).expect("an answer");
        match found.elements()[0].offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    /// A member to be of `group`.
    pub fn consumer(&self, group: &str) -> BaseConsumer {
        self.config()
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("session.timeout.ms", "6000")
            .create()
            .expect("a client")
    }

    /// How far the committed records of `topic` reach: the sum of the offsets of its partitions.
    pub fn end(&self, topic: &str) -> i64 {
        let consumer: BaseConsumer = self
            .config()
            .set("isolation.level", "read_committed")
            .create()
            .expect("a client");
        let metadata = consumer
            .fetch_metadata(Some(topic), WAIT)
            .expect("metadata");
        let partitions = metadata.topics()[0].partitions().iter();
        partitions
            .map(|p| {
                let bounds = consumer.fetch_watermarks(topic, p.id(), WAIT);
                bounds.expect("offsets").1
            })
            .sum()
    }

    /// Writes records: partition, key, value.
    pub fn produce<'a>(
        &self,
        topic: &str,
        records: impl IntoIterator<Item = (i32, Option<&'a str>, Option<&'a str>)>,
    ) {
        let producer: BaseProducer = self.config().create().expect("a client");
        for (partition, key, value) in records {
            let mut record: BaseRecord<'_, str, str> = BaseRecord::to(topic).partition(partition);
            record.key = key;
            record.payload = value;
            producer.send(record).map_err(|(e, _)| e).expect("room");
        }
        producer.flush(WAIT).expect("the records are delivered");
    }

    /// Everything of a topic that is there now, partition by partition.
    pub fn read_all(&self, topic: &str, isolation: &str) -> Vec<Read> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", "test-reader")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", isolation)
            .create()
            .expect("a client");
        let metadata = consumer
            .fetch_metadata(Some(topic), WAIT)
            .expect("metadata");
        let ids: Vec<i32> = metadata.topics()[0]
            .partitions()
            .iter()
            .map(|p| p.id())
            .collect();
        let mut list = TopicPartitionList::new();
        for id in &ids {
            list.add_partition_offset(topic, *id, Offset::Beginning)
                .expect("an offset");
        }
        consumer.assign(&list).expect("an assignment");
        let mut read = Vec::new();
        let mut open = ids.len();
        while open > 0 {
            match consumer.poll(WAIT).expect("records or an end") {
                Ok(message) => {
                    let text = |b: Option<&[u8]>| b.map(|b| String::from_utf8_lossy(b).into());
                    read.push(Read {
                        partition: message.partition(),
                        key: text(message.key()),
                        value: text(message.payload()),
                    });
                }
                Err(KafkaError::PartitionEOF(_)) => open -= 1,
                Err(e) => panic!("{e}"),
            }
        }
        read.sort_by_key(|r| r.partition);
        read
    }

    /// The values of a topic that are committed, sorted.
    pub fn values(&self, topic: &str) -> Vec<String> {
        let read = self.read_all(topic, "read_committed");
        let mut values: Vec<String> = read.into_iter().filter_map(|r| r.value).collect();
        values.sort();
        values
    }

    /// Waits until `topic` has at least `count` committed records.
    pub fn wait_for(&self, topic: &str, count: usize, wait: Duration) {
        let end = Instant::now() + wait;
        loop {
            let found = self.read_all(topic, "read_committed").len();
            if found >= count {
                return;
            }
            assert!(
                Instant::now() < end,
                "{found} of {count} records in {topic}"
            );
            sleep(Duration::from_millis(200));
        }
    }
}

/// Waits until `condition` holds; fails with `what` when it does not come to that.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(100));
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// The engine, running a script of its own process.
pub struct Engine(Child);

impl Engine {
    pub fn start(folder: &Path, script: &str) -> Self {
        let file = folder.join("job.sql");
        fs::write(&file, script).expect("the script is written");
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(folder.join("engine.log"))
            .expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_ebbflow"))
            .arg("run")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the engine runs");
        Self(child)
    }

    /// As `kill -9`.
    pub fn kill(mut self) {
        self.0.kill().expect("the engine can be killed");
        self.0.wait().expect("the engine ends");
    }

    /// Waits until it ends by itself, with an error; answers what it has written since.
    pub fn fails(mut self, folder: &Path) -> String {
        wait_until("the engine does not fail", || !self.is_running());
        let status = self.0.wait().expect("a status");
        let log = log(folder);
        assert!(!status.success(), "no failure: {log}");
        log
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("a status").is_none()
    }
}

/// What all engines of a folder have written to their standard error and output.
pub fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("engine.log")).unwrap_or_default()
}

/// Runs a script to its end and gives what it printed.
pub fn run(script: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("job.sql");
    fs::write(&file, script).expect("the script is written");
    let output = Command::new(env!("CARGO_BIN_EXE_ebbflow"))
        .arg("run")
        .arg(&file)
        .output()
        .expect("the engine runs");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(out)
    } else {
        Err(format!("{out}\n{err}"))
    }
}
