//! What all clients of a cluster share: they listen to librdkafka's own log and errors, wait for
//! answers, and say what went wrong.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, NoCustomPartitioner, ProducerContext};
use rdkafka::topic_partition_list::TopicPartitionList;

use crate::error::{Error, Result};

/// Listens to one client.
#[derive(Debug, Clone, Default)]
pub(super) struct Listener(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    /// The last error of the client as a whole: a broker that cannot be reached, a login refused.
    last: Option<String>,
    /// The first record that could not be delivered.
    undelivered: Option<String>,
}

impl Listener {
    fn heard<T>(&self, read: impl FnOnce(&mut Heard) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `error` happened during `what`: with what the client has said before.
    pub(super) fn error(&self, what: &str, error: &KafkaError) -> Error {
        let mut text = format!("{what}: {}", reason(error));
        if let Some(last) = self.heard(|h| h.last.clone()) {
            text.push_str(&format!(" ({last})"));
        }
        Error::connector(text)
    }

    /// Fails when a record could not be delivered.
    pub(super) fn check_delivered(&self) -> Result<()> {
        match self.heard(|h| h.undelivered.clone()) {
            Some(text) => Err(Error::connector(text)),
            None => Ok(()),
        }
    }
}

impl ClientContext for Listener {
    fn log(&self, level: RDKafkaLogLevel, _facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error => tracing::warn!(target: "kafka", "{message}"),
            RDKafkaLogLevel::Warning => tracing::info!(target: "kafka", "{message}"),
            _ => tracing::debug!(target: "kafka", "{message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "kafka", "{error}: {reason}");
        self.heard(|h| h.last = Some(reason.to_string()));
    }
}

impl ConsumerContext for Listener {
    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        // The offsets of the group are for people who watch it; the checkpoint has its own.
        if let Err(e) = result {
            tracing::warn!("offsets of the group are not committed: {e}");
        }
    }
}

impl ProducerContext<NoCustomPartitioner> for Listener {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((e, message)) = result {
            let text = format!(
                "a record for topic '{}' was not delivered: {}",
                message.topic(),
                reason(e)
            );
            self.heard(|h| h.undelivered.get_or_insert(text).len());
        }
    }
}

/// Why, without the value of a property: it may be a secret.
pub(super) fn reason(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, description, key, _) => {
            let description = description.split(" for value").next().unwrap_or_default();
            format!(
                "option '{key}' of librdkafka: {}",
                without_quotes(description)
            )
        }
        KafkaError::Transaction(e) => e.to_string(),
        other => match other.rdkafka_error_code() {
            Some(code) => code.to_string(),
            None => other.to_string(),
        },
    }
}

/// `text` without anything in quotes.
fn without_quotes(text: &str) -> String {
    text.split('"').step_by(2).collect::<Vec<_>>().join("..")
}

/// A consumer of `config`.
pub(super) fn consumer(
    config: &ClientConfig,
    listener: &Listener,
) -> Result<BaseConsumer<Listener>> {
    config
        .create_with_context(listener.clone())
        .map_err(|e| config_error(&e))
}

/// `error` of a client that could not be made.
pub(super) fn config_error(error: &KafkaError) -> Error {
    Error::options(format!(
        "the Kafka client cannot be made: {}",
        reason(error)
    ))
}

/// The partitions of one topic, or of all topics.
pub(super) fn partitions(
    consumer: &BaseConsumer<Listener>,
    topic: Option<&str>,
    timeout: Duration,
) -> Result<Vec<(String, i32)>> {
    let listener = consumer.context();
    let what = || match topic {
        Some(topic) => format!("cannot read the partitions of topic '{topic}'"),
        None => "cannot read the topics of the cluster".to_string(),
    };
    let metadata = consumer
        .fetch_metadata(topic, timeout)
        .map_err(|e| unreachable(listener.error(&what(), &e)))?;
    let mut partitions = Vec::new();
    for found in metadata.topics() {
        if let Some(code) = found.error().map(RDKafkaErrorCode::from)
            && topic.is_some()
        {
            let error = Error::connector(format!("{}: {code}", what()));
            return Err(match code {
                RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic => {
                    Error::connector(format!("The topic '{}' does not exist.", found.name()))
                        .hint("create it, or mend the option 'topic'")
                }
                _ => error,
            });
        }
        let ids = found.partitions().iter().map(|p| p.id());
        partitions.extend(ids.map(|id| (found.name().to_string(), id)));
    }
    partitions.sort();
    Ok(partitions)
}

fn unreachable(error: Error) -> Error {
    error.hint("look at 'properties.bootstrap.servers' and whether the brokers run")
}

/// Creates a compacted topic of one partition, unless it is there.
pub(super) fn create_compacted_topic(
    config: &ClientConfig,
    topic: &str,
    timeout: Duration,
) -> Result<()> {
    let listener = Listener::default();
    let admin: AdminClient<Listener> = config
        .create_with_context(listener.clone())
        .map_err(|e| config_error(&e))?;
    let new = NewTopic::new(topic, 1, TopicReplication::Fixed(-1)).set("cleanup.policy", "compact");
    let options = AdminOptions::new().operation_timeout(Some(timeout));
    let what = format!("cannot create the topic '{topic}'");
    let created = block_on(admin.create_topics([&new], &options));
    for result in created.map_err(|e| listener.error(&what, &e))? {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((_, code)) => {
                return Err(Error::connector(format!("{what}: {code}")).hint(
                    "create it with one partition and cleanup.policy=compact, or name another with \
                     'sink.transaction-marker-topic'",
                ));
            }
        }
    }
    Ok(())
}

/// Waits on this thread until `future` is done.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = TaskContext::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_option_does_not_show_its_value() {
        let mut config = ClientConfig::new();
        config.set("sasl.mechanism", "PLAIN");
        config.set("security.protocol", "geheim");
        let Err(error) = consumer(&config, &Listener::default()) else {
            panic!("not refused");
        };
        let text = error.to_string();
        assert!(text.contains("security.protocol"), "{text}");
        assert!(!text.contains("geheim"), "{text}");
    }
}
