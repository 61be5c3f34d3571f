//! The table as a sink: rows become records, which go out at once or with their checkpoint.

use std::sync::Arc;

use indexmap::IndexMap;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer};

use super::encode::{EncodePlan, OutRecord, RecordEncoder};
use super::metadata::Metadata;
use super::producer::RecordProducer;
use super::properties::Properties;
use super::settings::{Buffering, Delivery, Partitioner, SinkSettings};
use super::transactions::{EpochBuffer, Transactions};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::connectors::{SinkWriter, SinkWriterFactory, TableSink};
use crate::error::{Error, Result};
use crate::runtime::clock::monotonic_ns;
use crate::types::DataType;

/// One use of a table as a sink.
pub(super) struct KafkaSink {
    plan: Arc<EncodePlan>,
    properties: Properties,
    settings: SinkSettings,
}

impl KafkaSink {
    pub(super) fn new(
        plan: EncodePlan,
        properties: Properties,
        settings: SinkSettings,
    ) -> Result<Self> {
        let plan = Arc::new(plan);
        // Types that a format cannot write are refused when the table is used, not when it runs.
        plan.encoder()?;
        let names_topic = plan.metadata.iter().any(|(m, _)| *m == Metadata::Topic);
        if plan.topics.single().is_none() && !names_topic {
            return Err(Error::options(
                "The sink has several topics, and no column says to which one a row goes.",
            )
            .hint("name one 'topic', or declare a column STRING NOT NULL METADATA FROM 'topic'"));
        }
        Ok(Self {
            plan,
            properties,
            settings,
        })
    }
}

impl TableSink for KafkaSink {
    fn changelog_mode(&self, _requested: ChangelogMode) -> ChangelogMode {
        if self.plan.upsert {
            ChangelogMode::UPSERT
        } else {
            self.plan.value.changelog_mode()
        }
    }

    fn metadata(&self) -> Vec<(String, DataType)> {
        Metadata::WRITABLE
            .iter()
            .map(|(key, m)| ((*key).to_string(), m.data_type()))
            .collect()
    }

    fn writers(&self) -> Result<Arc<dyn SinkWriterFactory>> {
        let transactions = match &self.settings.delivery {
            Delivery::ExactlyOnce { prefix } => Some(Arc::new(Transactions::new(
                prefix,
                self.settings.marker_topic.as_deref(),
                self.settings.partitioner,
                &self.properties,
            )?)),
            Delivery::None | Delivery::AtLeastOnce => None,
        };
        Ok(Arc::new(Writers {
            plan: Arc::clone(&self.plan),
            properties: self.properties.clone(),
            settings: self.settings.clone(),
            transactions,
        }))
    }
}

struct Writers {
    plan: Arc<EncodePlan>,
    properties: Properties,
    settings: SinkSettings,
    transactions: Option<Arc<Transactions>>,
}

impl SinkWriterFactory for Writers {
    fn create(&self, subtask: usize, _parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        let out = match &self.transactions {
            Some(transactions) => Out::Epoch(EpochBuffer::new(Arc::clone(transactions), subtask)),
            None => Out::Now(Direct {
                producer: RecordProducer::new(&self.properties)?,
                partitions: FixedPartitions::new(self.settings.partitioner, subtask),
                waits: self.settings.delivery == Delivery::AtLeastOnce,
            }),
        };
        Ok(Box::new(Writer {
            encoder: self.plan.encoder()?,
            buffer: self.settings.buffering.map(Buffer::new),
            out,
            properties: self.properties.clone(),
        }))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        self.commit_all(&[committable])
    }

    fn commit_all(&self, committables: &[&[u8]]) -> Result<()> {
        match &self.transactions {
            Some(transactions) => transactions.commit_all(committables),
            None => Err(Error::checkpoint(
                "the checkpoint holds rows of an exactly-once sink, which this one is not",
            )
            .hint("set 'sink.delivery-guarantee' back to 'exactly-once'")),
        }
    }
}

/// The partition of all records of a subtask, by topic.
pub(super) struct FixedPartitions {
    /// `None`: the client chooses.
    subtask: Option<usize>,
    by_topic: IndexMap<String, i32>,
}

impl FixedPartitions {
    pub(super) fn new(partitioner: Partitioner, subtask: usize) -> Self {
        Self {
            subtask: (partitioner == Partitioner::Fixed).then_some(subtask),
            by_topic: IndexMap::new(),
        }
    }

    /// The partition of records of `topic`.
    pub(super) fn get(
        &mut self,
        topic: &str,
        producer: &RecordProducer,
        properties: &Properties,
    ) -> Result<Option<i32>> {
        let Some(subtask) = self.subtask else {
            return Ok(None);
        };
        if let Some(partition) = self.by_topic.get(topic) {
            return Ok(Some(*partition));
        }
        let what = format!("cannot read the partitions of topic '{topic}'");
        let client = producer.producer.client();
        let metadata = client
            .fetch_metadata(Some(topic), properties.api_timeout)
            .map_err(|e| producer.listener.error(&what, &e))?;
        let topics = metadata.topics().iter();
        let count: usize = topics.map(|t| t.partitions().len()).sum();
        if count == 0 {
            return Err(Error::connector(format!("{what}: it has none")));
        }
        let partition = i32::try_from(subtask % count).unwrap_or(0);
        self.by_topic.insert(topic.to_string(), partition);
        Ok(Some(partition))
    }
}

/// `record` as the client takes it.
pub(super) fn to_client<'a>(
    record: &OutRecord<'a>,
    partition: Option<i32>,
) -> BaseRecord<'a, [u8], [u8]> {
    let mut out: BaseRecord<'a, [u8], [u8]> = BaseRecord::to(record.topic);
    out.partition = partition;
    out.key = record.key;
    out.payload = record.value;
    out.timestamp = record.timestamp;
    if !record.headers.is_empty() {
        let headers = record.headers.iter().fold(
            OwnedHeaders::new_with_capacity(record.headers.len()),
            |headers, (key, value)| {
                headers.insert(Header {
                    key,
                    value: Some(value),
                })
            },
        );
        out.headers = Some(headers);
    }
    out
}

/// Records that go out as they come.
struct Direct {
    producer: RecordProducer,
    partitions: FixedPartitions,
    /// Whether a checkpoint waits until they are delivered.
    waits: bool,
}

/// Where records go.
enum Out {
    Now(Direct),
    Epoch(EpochBuffer),
}

impl Out {
    fn put(&mut self, record: &OutRecord<'_>, properties: &Properties) -> Result<()> {
        match self {
            Self::Now(direct) => {
                let Direct {
                    producer,
                    partitions,
                    ..
                } = direct;
                let partition = partitions.get(record.topic, producer, properties)?;
                producer.send(to_client(record, partition))
            }
            Self::Epoch(buffer) => buffer.put(record),
        }
    }
}

/// A record that waits for another of its key.
struct Waiting {
    value: Option<Vec<u8>>,
    timestamp: Option<i64>,
    headers: Vec<(String, Vec<u8>)>,
}

/// The last record of every key since the last flush.
struct Buffer {
    limits: Buffering,
    /// By topic and key.
    records: IndexMap<(String, Vec<u8>), Waiting>,
    begun_ns: u64,
}

impl Buffer {
    fn new(limits: Buffering) -> Self {
        Self {
            limits,
            records: IndexMap::new(),
            begun_ns: 0,
        }
    }

    fn put(&mut self, record: &OutRecord<'_>) {
        if self.records.is_empty() {
            self.begun_ns = monotonic_ns();
        }
        let key = (
            record.topic.to_string(),
            record.key.unwrap_or_default().to_vec(),
        );
        let waiting = Waiting {
            value: record.value.map(<[u8]>::to_vec),
            timestamp: record.timestamp,
            headers: record.headers.to_vec(),
        };
        self.records.insert(key, waiting);
    }

    fn is_due(&self) -> bool {
        let interval = u64::try_from(self.limits.interval.as_nanos()).unwrap_or(u64::MAX);
        let age = monotonic_ns().saturating_sub(self.begun_ns);
        self.records.len() >= self.limits.max_rows || (!self.records.is_empty() && age >= interval)
    }
}

struct Writer {
    encoder: RecordEncoder,
    /// Folds many changes of a key into one.
    buffer: Option<Buffer>,
    out: Out,
    properties: Properties,
}

impl Writer {
    /// Hands on what waits in the buffer.
    fn empty_buffer(&mut self) -> Result<()> {
        let Some(buffer) = &mut self.buffer else {
            return Ok(());
        };
        for ((topic, key), waiting) in buffer.records.drain(..) {
            let record = OutRecord {
                topic: &topic,
                key: Some(&key),
                value: waiting.value.as_deref(),
                timestamp: waiting.timestamp,
                headers: &waiting.headers,
            };
            self.out.put(&record, &self.properties)?;
        }
        Ok(())
    }
}

impl SinkWriter for Writer {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        let Self {
            encoder,
            buffer,
            out,
            properties,
        } = self;
        encoder.encode(batch, &mut |record| match buffer.as_mut() {
            Some(buffer) => {
                buffer.put(record);
                Ok(())
            }
            None => out.put(record, properties),
        })?;
        if self.buffer.as_ref().is_some_and(Buffer::is_due) {
            self.empty_buffer()?;
        }
        match &self.out {
            Out::Now(direct) => direct.producer.serve(),
            Out::Epoch(_) => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.as_ref().is_some_and(Buffer::is_due) {
            self.empty_buffer()?;
        }
        match &self.out {
            Out::Now(direct) => direct.producer.serve(),
            Out::Epoch(_) => Ok(()),
        }
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        match &mut self.out {
            Out::Now(_) => Ok(Vec::new()),
            Out::Epoch(buffer) => buffer.snapshot(),
        }
    }

    fn restore(&mut self, states: &[Vec<u8>]) -> Result<()> {
        match &mut self.out {
            Out::Now(_) => Ok(()),
            Out::Epoch(buffer) => buffer.restore(states),
        }
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        self.empty_buffer()?;
        match &mut self.out {
            Out::Now(direct) => {
                if direct.waits {
                    direct.producer.flush()?;
                }
                Ok(Vec::new())
            }
            Out::Epoch(buffer) => buffer.pre_commit(epoch).map(|c| vec![c]),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.empty_buffer()?;
        match &self.out {
            Out::Now(direct) => direct.producer.flush(),
            Out::Epoch(_) => Ok(()),
        }
    }
}
