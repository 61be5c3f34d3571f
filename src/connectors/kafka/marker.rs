//! The markers of committed epochs: records of a compacted topic of one partition.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client::{Listener, consumer};
use super::properties::Properties;
use crate::error::{Error, Result};
use crate::runtime::clock::monotonic_ns;

/// Pause between two looks at a transaction that is open.
const PAUSE: Duration = Duration::from_millis(20);
/// An open transaction is ended by the broker after its timeout, which is at most this by default.
const LONGEST_TRANSACTION: Duration = Duration::from_mins(16);

/// The key of the marker of a transactional id.
pub(super) fn key(id: &str, lineage: &str) -> String {
    format!("{id} {lineage}")
}

/// The value of a marker.
pub(super) fn value(epoch: u64) -> String {
    epoch.to_string()
}

/// Reads markers.
pub(super) struct Markers<'a> {
    pub(super) topic: &'a str,
    pub(super) properties: &'a Properties,
}

impl Markers<'_> {
    /// The last committed epoch of every lineage of transactional id `id`, which MUST be fenced.
    ///
    /// A marker stands behind the open transactions of others until these end: it is waited for.
    pub(super) fn of(&self, id: &str) -> Result<BTreeMap<String, u64>> {
        let all = self.consumer("read_uncommitted")?;
        let committed = self.consumer("read_committed")?;
        let end = self.end(&all)?;
        let deadline = monotonic_ns() + u64::try_from(LONGEST_TRANSACTION.as_nanos()).unwrap_or(0);
        while self.end(&committed)? < end {
            if monotonic_ns() > deadline {
                return Err(Error::connector(format!(
                    "a transaction on topic '{}' does not end: what is committed cannot be read",
                    self.topic
                )));
            }
            std::thread::sleep(PAUSE);
        }
        self.read(&committed, id)
    }

    fn consumer(&self, isolation: &str) -> Result<BaseConsumer<Listener>> {
        let mut config = self.properties.consumer("ebbflow-markers");
        config
            .set("group.id", "ebbflow-markers")
            .set("isolation.level", isolation)
            .set("enable.partition.eof", "true")
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "error");
        consumer(&config, &Listener::default())
    }

    /// The offset behind the last record that `consumer` can see.
    fn end(&self, consumer: &BaseConsumer<Listener>) -> Result<i64> {
        let timeout = self.properties.api_timeout;
        let bounds = consumer.fetch_watermarks(self.topic, 0, timeout);
        let (_, end) = bounds.map_err(|e| self.failed(consumer, &e))?;
        Ok(end)
    }

    fn failed(&self, consumer: &BaseConsumer<Listener>, error: &KafkaError) -> Error {
        let what = format!("cannot read the markers in topic '{}'", self.topic);
        consumer.context().error(&what, error)
    }

    fn read(&self, consumer: &BaseConsumer<Listener>, id: &str) -> Result<BTreeMap<String, u64>> {
        let mut list = TopicPartitionList::new();
        let added = list.add_partition_offset(self.topic, 0, Offset::Beginning);
        added.map_err(|e| self.failed(consumer, &e))?;
        consumer
            .assign(&list)
            .map_err(|e| self.failed(consumer, &e))?;
        let mut markers = BTreeMap::new();
        loop {
            match consumer.poll(self.properties.api_timeout) {
                Some(Ok(message)) => {
                    let key = message.key().map(String::from_utf8_lossy);
                    let value = message.payload().map(String::from_utf8_lossy);
                    let Some((of, lineage)) = key.as_deref().and_then(|k| k.rsplit_once(' '))
                    else {
                        continue;
                    };
                    if of != id {
                        continue;
                    }
                    if let Some(epoch) = value.and_then(|v| v.parse().ok()) {
                        markers.insert(lineage.to_string(), epoch);
                    }
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(markers),
                Some(Err(e)) => return Err(self.failed(consumer, &e)),
                None => {
                    return Err(Error::connector(format!(
                        "the markers in topic '{}' do not come: what is committed is not known",
                        self.topic
                    )));
                }
            }
        }
    }
}
