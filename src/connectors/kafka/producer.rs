//! Sends records and waits until they are in their topics.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::client::{Listener, config_error};
use super::properties::Properties;
use crate::error::Result;

/// A wait for room in the send buffer.
const ROOM_WAIT: Duration = Duration::from_millis(5);
/// Longer than any record is tried: then it counts as not delivered.
const FLUSH_WAIT: Duration = Duration::from_mins(15);

/// A producer, and what became of its records.
pub(super) struct RecordProducer {
    pub(super) producer: BaseProducer<Listener>,
    pub(super) listener: Listener,
}

impl RecordProducer {
    /// A producer without transactions.
    pub(super) fn new(properties: &Properties) -> Result<Self> {
        Self::with_config(&properties.producer())
    }

    pub(super) fn with_config(config: &ClientConfig) -> Result<Self> {
        let listener = Listener::default();
        let producer = config
            .create_with_context(listener.clone())
            .map_err(|e| config_error(&e))?;
        Ok(Self { producer, listener })
    }

    /// Hands a record over; waits while the send buffer is full.
    ///
    /// # Errors
    /// When it is not taken, or an earlier one was not delivered.
    pub(super) fn send(&self, mut record: BaseRecord<'_, [u8], [u8]>) -> Result<()> {
        loop {
            let topic = record.topic;
            match self.producer.send(record) {
                Ok(()) => return self.listener.check_delivered(),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    self.producer.poll(ROOM_WAIT);
                    self.listener.check_delivered()?;
                    record = again;
                }
                Err((e, _)) => {
                    let what = format!("cannot write to topic '{topic}'");
                    return Err(self.listener.error(&what, &e));
                }
            }
        }
    }

    /// Serves what the client has to say, without waiting.
    pub(super) fn serve(&self) -> Result<()> {
        self.producer.poll(Duration::ZERO);
        self.listener.check_delivered()
    }

    /// Waits until every record is delivered.
    pub(super) fn flush(&self) -> Result<()> {
        let flushed = self.producer.flush(FLUSH_WAIT);
        self.listener.check_delivered()?;
        flushed.map_err(|e| self.listener.error("records are not delivered", &e))
    }
}
