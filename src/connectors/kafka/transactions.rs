//! Exactly once: the rows of an epoch lie in the checkpoint, and go to the topic in one transaction
//! together with a marker that says so.
//!
//! A producer of librdkafka cannot take up a transaction that another has prepared. So nothing is
//! prepared in Kafka: [`pre_commit`](EpochBuffer::pre_commit) hands the epoch's records to the
//! checkpoint, and [`commit`](Transactions::commit) writes them and the *marker*, a record of a
//! compacted topic that holds the epoch under the transactional id, in one transaction. Kafka makes
//! both visible or none. After a crash it is not known whether the last commit went through:
//!
//! 1. all transactional ids of the checkpoint are *fenced*: whatever a process that is not quite dead
//!    has begun with one is aborted, and it can begin nothing more;
//! 2. the marker is read, with `read_committed`, after every open transaction in front of it has
//!    ended: it is the last epoch that was committed;
//! 3. an epoch up to the marker is skipped, a newer one is written.
//!
//! The marker's key holds the *lineage* of the job too, a random name that all attempts from one
//! start on share through their checkpoints: a job that starts anew with the same ids counts its
//! epochs anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer};
use serde::{Deserialize, Serialize};

use super::client::create_compacted_topic;
use super::encode::OutRecord;
use super::epoch_file::{EpochRecords, EpochWriter};
use super::marker::{self, Markers};
use super::producer::RecordProducer;
use super::properties::Properties;
use super::settings::Partitioner;
use super::sink::{FixedPartitions, to_client};
use crate::error::{Error, Result};

/// How often a transaction is tried that fails for a reason that may pass.
const ATTEMPTS: u32 = 5;
/// Pause before the next try.
const PAUSE: Duration = Duration::from_secs(1);

/// What the checkpoint holds of an epoch, in front of its records.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Header {
    /// The transactional id.
    id: String,
    lineage: String,
    epoch: u64,
    subtask: usize,
}

/// What the checkpoint holds of a writer.
#[derive(Debug, Serialize, Deserialize)]
struct WriterState {
    id: String,
    lineage: String,
    /// The last epoch that was handed to a checkpoint.
    epoch: u64,
}

/// A transactional id that is ours: whoever had it before is fenced.
struct Fenced {
    producer: RecordProducer,
    /// By lineage: the last epoch that is known to be committed. `None` until the markers are read.
    committed: Option<BTreeMap<String, u64>>,
}

struct State {
    lineage: String,
    /// By transactional id.
    fenced: BTreeMap<String, Fenced>,
    /// Whether the marker topic is known to be there.
    has_topic: bool,
}

/// The transactions of all subtasks of a sink.
pub(super) struct Transactions {
    prefix: String,
    marker_topic: String,
    partitioner: Partitioner,
    properties: Properties,
    /// No other lock is taken while it is held.
    state: Mutex<State>,
}

/// Why a try did not succeed.
enum Failure {
    /// Another try may succeed.
    Passing(Error),
    Final(Error),
}

impl Transactions {
    pub(super) fn new(
        prefix: &str,
        marker_topic: Option<&str>,
        partitioner: Partitioner,
        properties: &Properties,
    ) -> Result<Self> {
        let lineage = getrandom::u64()
            .map_err(|e| Error::connector(format!("no random name for a lineage: {e}")))?;
        Ok(Self {
            prefix: prefix.to_string(),
            // One for each job: the open transaction of another never stands in front of a marker.
            marker_topic: marker_topic
                .map_or_else(|| format!("{prefix}-ebbflow-epochs"), str::to_string),
            partitioner,
            properties: properties.clone(),
            state: Mutex::new(State {
                lineage: format!("{lineage:016x}"),
                fenced: BTreeMap::new(),
                has_topic: false,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, subtask: usize) -> String {
        format!("{}-{subtask}", self.prefix)
    }

    fn config(&self, id: &str) -> ClientConfig {
        let mut config = self.properties.producer();
        if config.get("transaction.timeout.ms").is_none() {
            config.set("transaction.timeout.ms", "60000");
        }
        config
            .set("transactional.id", id)
            .set("enable.idempotence", "true")
            .remove("acks");
        config
    }

    /// Takes the transactional id over.
    fn take<'s>(&self, state: &'s mut State, id: &str) -> Result<&'s mut Fenced> {
        if !state.has_topic {
            let config = self.properties.producer();
            create_compacted_topic(&config, &self.marker_topic, self.properties.api_timeout)?;
            state.has_topic = true;
        }
        if !state.fenced.contains_key(id) {
            let producer = RecordProducer::with_config(&self.config(id))?;
            let taken = producer
                .producer
                .init_transactions(self.properties.api_timeout);
            let what = format!("cannot take over the transactional id '{id}'");
            taken.map_err(|e| producer.listener.error(&what, &e))?;
            let fenced = Fenced {
                producer,
                committed: None,
            };
            state.fenced.insert(id.to_string(), fenced);
        }
        let fenced = state.fenced.get_mut(id);
        fenced.ok_or_else(|| Error::internal("a transactional id was lost"))
    }

    /// Takes the transactional id over, and reads how far it has come.
    fn fence<'s>(
        &self,
        state: &'s mut State,
        id: &str,
    ) -> Result<(&'s RecordProducer, &'s mut BTreeMap<String, u64>)> {
        let Fenced {
            producer,
            committed,
        } = self.take(state, id)?;
        let committed = match committed {
            Some(committed) => committed,
            none => {
                let markers = Markers {
                    topic: &self.marker_topic,
                    properties: &self.properties,
                };
                none.insert(markers.of(id)?)
            }
        };
        Ok((producer, committed))
    }

    /// Writes the records of all committables of a checkpoint, unless they are there.
    ///
    /// All ids are taken over before the first marker is read: a transaction that a dead attempt has
    /// left open would stand in front of the markers of the others until its timeout.
    ///
    /// # Errors
    /// When the outcome of one cannot be proven.
    pub(super) fn commit_all(&self, committables: &[&[u8]]) -> Result<()> {
        for committable in committables {
            let (header, _) = unpack_header(committable)?;
            if let Err(e) = self.take(&mut self.state(), &header.id) {
                // It is tried again, several times, when its turn comes.
                tracing::warn!("{e}");
            }
        }
        committables.iter().try_for_each(|c| self.commit(c))
    }

    /// Writes the records of a committable, unless they are there.
    ///
    /// # Errors
    /// When the outcome cannot be proven.
    pub(super) fn commit(&self, committable: &[u8]) -> Result<()> {
        let (header, records) = unpack(committable)?;
        let mut state = self.state();
        let mut attempt = 1;
        loop {
            let tried = self.attempt(&mut state, &header, &records);
            let error = match tried {
                Ok(()) => return Ok(()),
                Err(Failure::Final(e)) => return Err(e),
                Err(Failure::Passing(e)) => e,
            };
            // The outcome is open: whoever asks again must fence and look at the marker.
            state.fenced.remove(&header.id);
            if attempt == ATTEMPTS {
                return Err(error);
            }
            tracing::warn!("{error}; it is tried again");
            std::thread::sleep(PAUSE);
            attempt += 1;
        }
    }

    fn attempt(
        &self,
        state: &mut State,
        header: &Header,
        records: &EpochRecords,
    ) -> Result<(), Failure> {
        let fenced = self.fence(state, &header.id);
        let (producer, committed_epochs) = fenced.map_err(Failure::Passing)?;
        let done = committed_epochs.get(&header.lineage);
        if done.is_some_and(|epoch| *epoch >= header.epoch) {
            return Ok(());
        }
        if records.is_empty() {
            return Ok(());
        }
        let what = format!(
            "the transaction of epoch {} of '{}'",
            header.epoch, header.id
        );
        let listener = producer.listener.clone();
        let failed = |e: &KafkaError| {
            let error = listener.error(&what, e);
            match e.rdkafka_error_code() {
                Some(
                    RDKafkaErrorCode::Fenced
                    | RDKafkaErrorCode::ProducerFenced
                    | RDKafkaErrorCode::InvalidProducerEpoch,
                ) => Failure::Final(error.hint(
                    "another job has the same 'sink.transactional-id-prefix', or this one was \
                     replaced by a newer attempt",
                )),
                _ => Failure::Passing(error),
            }
        };
        producer
            .producer
            .begin_transaction()
            .map_err(|e| failed(&e))?;
        self.send(producer, header, records)
            .map_err(|e| Failure::Passing(e.context(what.clone())))?;
        let timeout = Duration::from_mins(2);
        let mut committed = producer.producer.commit_transaction(timeout);
        if let Err(KafkaError::Transaction(e)) = &committed
            && e.is_retriable()
        {
            committed = producer.producer.commit_transaction(timeout);
        }
        committed.map_err(|e| failed(&e))?;
        committed_epochs.insert(header.lineage.clone(), header.epoch);
        Ok(())
    }

    fn send(
        &self,
        producer: &RecordProducer,
        header: &Header,
        records: &EpochRecords,
    ) -> Result<()> {
        let mut partitions = FixedPartitions::new(self.partitioner, header.subtask);
        records.for_each(&mut |record| {
            let partition = partitions.get(record.topic, producer, &self.properties)?;
            producer.send(to_client(record, partition))
        })?;
        let key = marker::key(&header.id, &header.lineage);
        let value = marker::value(header.epoch);
        let marker: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.marker_topic)
            .key(key.as_bytes())
            .payload(value.as_bytes());
        producer.send(marker)
    }

    /// Takes the ids of former writers over, before this attempt writes anything.
    fn take_over(&self, former: &WriterState) -> Result<()> {
        let mut state = self.state();
        state.lineage.clone_from(&former.lineage);
        let (_, committed) = self.fence(&mut state, &former.id)?;
        match committed.get(&former.lineage) {
            Some(committed) if *committed > former.epoch => Err(Error::checkpoint(format!(
                "'{}' has committed epoch {committed} to Kafka, but the checkpoint is of epoch {}: \
                 rows would be written twice",
                former.id, former.epoch
            ))
            .hint(
                "start from the newest checkpoint; to write the rows again on purpose change \
                 'sink.transactional-id-prefix'",
            )),
            _ => Ok(()),
        }
    }
}

/// The records of one subtask since the last barrier.
pub(super) struct EpochBuffer {
    transactions: Arc<Transactions>,
    id: String,
    subtask: usize,
    records: EpochWriter,
    /// The last epoch that was handed to a checkpoint.
    epoch: u64,
}

impl EpochBuffer {
    pub(super) fn new(transactions: Arc<Transactions>, subtask: usize) -> Self {
        Self {
            id: transactions.id(subtask),
            transactions,
            subtask,
            records: EpochWriter::default(),
            epoch: 0,
        }
    }

    pub(super) fn put(&mut self, record: &OutRecord<'_>) -> Result<()> {
        self.records.put(record)
    }

    /// The epoch's records. There is always something to commit: the id itself, which has to be
    /// fenced after a crash even if its last epoch has no records.
    pub(super) fn pre_commit(&mut self, epoch: u64) -> Result<Vec<u8>> {
        let header = Header {
            id: self.id.clone(),
            lineage: self.transactions.state().lineage.clone(),
            epoch,
            subtask: self.subtask,
        };
        self.epoch = epoch;
        pack(&header, &self.records.finish()?)
    }

    pub(super) fn snapshot(&self) -> Result<Vec<u8>> {
        let state = WriterState {
            id: self.id.clone(),
            lineage: self.transactions.state().lineage.clone(),
            epoch: self.epoch,
        };
        serde_json::to_vec(&state).map_err(|e| Error::internal(format!("state of a sink: {e}")))
    }

    pub(super) fn restore(&mut self, states: &[Vec<u8>]) -> Result<()> {
        for state in states {
            let state: WriterState = serde_json::from_slice(state)
                .map_err(|e| Error::checkpoint(format!("a state of another sink: {e}")))?;
            self.transactions.take_over(&state)?;
            self.epoch = self.epoch.max(state.epoch);
        }
        Ok(())
    }
}

fn pack(header: &Header, records: &[u8]) -> Result<Vec<u8>> {
    let mut out = serde_json::to_vec(header)
        .map_err(|e| Error::internal(format!("an epoch of a sink: {e}")))?;
    out.push(b'\n');
    out.extend_from_slice(records);
    Ok(out)
}

fn unpack(committable: &[u8]) -> Result<(Header, EpochRecords)> {
    let (header, records) = unpack_header(committable)?;
    Ok((header, EpochRecords::read(records)?))
}

/// The header, and the records as they lie there.
fn unpack_header(committable: &[u8]) -> Result<(Header, &[u8])> {
    let wrong = |what: &str| Error::checkpoint(format!("a committable of another sink: {what}"));
    let end = memchr::memchr(b'\n', committable).ok_or_else(|| wrong("no header"))?;
    let header = serde_json::from_slice(&committable[..end]).map_err(|e| wrong(&e.to_string()))?;
    Ok((header, &committable[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committables_are_read_back() {
        let header = Header {
            id: "p-0".into(),
            lineage: "l".into(),
            epoch: 4,
            subtask: 0,
        };
        let mut writer = EpochWriter::default();
        writer
            .put(&OutRecord {
                topic: "t",
                key: None,
                value: Some(b"a\nb"),
                timestamp: None,
                headers: &[],
            })
            .unwrap();
        let packed = pack(&header, &writer.finish().unwrap()).unwrap();
        let (again, records) = unpack(&packed).unwrap();
        assert_eq!((again.id.as_str(), again.epoch), ("p-0", 4));
        assert!(!records.is_empty());
        assert!(unpack(b"{}").is_err());
        assert!(unpack(&packed[..packed.len() - 1]).is_err());
    }
}
