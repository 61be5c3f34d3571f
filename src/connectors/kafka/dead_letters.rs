//! Records that cannot be decoded, kept in a topic with the reason.
//!
//! The record is kept as it came: key, value, timestamp and headers; where it lay and why it is here
//! stands in further headers. A checkpoint never passes a record that is not in the topic yet.

use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::BaseRecord;

use super::producer::RecordProducer;
use super::properties::Properties;
use crate::error::{Error, Result};

/// Writes dead letters.
pub(super) struct DeadLetters {
    topic: String,
    producer: RecordProducer,
    sent: u64,
    unflushed: bool,
}

impl DeadLetters {
    pub(super) fn new(topic: &str, properties: &Properties) -> Result<Self> {
        Ok(Self {
            topic: topic.to_string(),
            producer: RecordProducer::new(properties)?,
            sent: 0,
            unflushed: false,
        })
    }

    /// Takes a record that failed with `reason`.
    pub(super) fn send<M: Message>(&mut self, message: &M, reason: &Error) -> Result<()> {
        let mut headers = OwnedHeaders::new();
        for header in message.headers().into_iter().flat_map(Headers::iter) {
            headers = headers.insert(header);
        }
        let place = [
            ("ebbflow.topic", message.topic().to_string()),
            ("ebbflow.partition", message.partition().to_string()),
            ("ebbflow.offset", message.offset().to_string()),
            ("ebbflow.reason", reason.to_string()),
        ];
        for (key, value) in &place {
            headers = headers.insert(Header {
                key,
                value: Some(value.as_bytes()),
            });
        }
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.topic).headers(headers);
        record.key = message.key();
        record.payload = message.payload();
        record.timestamp = message.timestamp().to_millis();
        self.producer.send(record)?;
        self.sent += 1;
        self.unflushed = true;
        Ok(())
    }

    /// Waits until all are in the topic.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.unflushed {
            self.producer.flush()?;
            self.unflushed = false;
        }
        Ok(())
    }

    /// How many there were.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }
}
