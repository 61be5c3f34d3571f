//! Reads one subtask's partitions.
//!
//! Partitions are assigned by us, not by the group: a checkpoint knows every offset, and the offsets
//! that are committed to the group are for people who watch it. Every partition has a queue of its
//! own that librdkafka's threads fill; a poll takes from one after the other and never waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Message, OwnedMessage};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client::{Listener, consumer};
use super::dead_letters::DeadLetters;
use super::decode::RecordDecoder;
use super::settings::Place;
use super::source::Shared;
use super::splits::{Enumerator, Partition, Position, restore, save};
use crate::changelog::ChangeBatch;
use crate::connectors::{SourcePoll, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::runtime::clock::monotonic_ns;

/// Shortest and longest wait when there is nothing to read.
const WAIT_MIN: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(10);
/// A batch is cut when a buffer has so many bytes.
const BATCH_BYTES: usize = 16 << 20;

/// A partition that is being read.
struct Split {
    partition: Partition,
    position: Position,
    queue: PartitionQueue<Listener>,
    /// Records that came before it had a queue of its own.
    early: VecDeque<OwnedMessage>,
    /// The log reaches to the split's end already: who has come to the end of the log has read it
    /// all, though the last offsets may hold no record of ours (the end of a transaction, a record
    /// that compaction removed).
    ends_with_log: bool,
    /// Nothing is left of it.
    done: bool,
}

/// The reader of one subtask.
pub(super) struct KafkaReader {
    shared: Arc<Shared>,
    subtask: usize,
    parallelism: usize,
    consumer: Arc<BaseConsumer<Listener>>,
    splits: Vec<Split>,
    /// Positions of partitions that are read to their end.
    finished: BTreeMap<Partition, Position>,
    decoder: RecordDecoder,
    dead_letters: Option<DeadLetters>,
    /// Whether a batch has rows of one partition only.
    by_split: bool,
    /// The partition that the last rows came from.
    last: Option<String>,
    /// The split to read next.
    cursor: usize,
    wait: Duration,
    next_look_ns: u64,
}

impl KafkaReader {
    pub(super) fn new(
        shared: Arc<Shared>,
        subtask: usize,
        parallelism: usize,
        restored: &[SplitPosition],
        by_split: bool,
    ) -> Result<Self> {
        let listener = Listener::default();
        let mut config = shared.properties.consumer(&shared.stand_in_group);
        config.set(
            "enable.partition.eof",
            (shared.scan.end.is_some()).to_string(),
        );
        let consumer = Arc::new(consumer(&config, &listener)?);
        let decoder = shared.plan.decoder()?;
        let dead_letters = match &shared.scan.dead_letters {
            Some(topic) => Some(DeadLetters::new(topic, &shared.properties)?),
            None => None,
        };
        let mut this = Self {
            subtask,
            parallelism,
            consumer,
            splits: Vec::new(),
            finished: BTreeMap::new(),
            decoder,
            dead_letters,
            by_split,
            last: None,
            cursor: 0,
            wait: WAIT_MIN,
            next_look_ns: 0,
            shared,
        };
        this.begin(restored)?;
        Ok(this)
    }

    fn enumerator(&self) -> Enumerator<'_> {
        Enumerator {
            consumer: &self.consumer,
            topics: &self.shared.topics,
            properties: &self.shared.properties,
        }
    }

    /// The subtask's partitions that the cluster has and we do not read.
    fn unknown(&self) -> Result<Vec<Partition>> {
        let is_known = |p: &Partition| {
            self.finished.contains_key(p) || self.splits.iter().any(|s| s.partition == *p)
        };
        let mut all = self.enumerator().all()?;
        all.retain(|p| p.owner(self.parallelism) == self.subtask && !is_known(p));
        Ok(all)
    }

    /// Takes up the restored positions, or looks where to start.
    fn begin(&mut self, restored: &[SplitPosition]) -> Result<()> {
        let mut positions: Vec<_> = restore(restored)?.into_iter().collect();
        positions.retain(|(p, _)| {
            p.owner(self.parallelism) == self.subtask && self.shared.topics.contains(&p.topic)
        });
        self.add(positions)?;
        let new = if restored.is_empty() || self.shared.scan.end.is_none() {
            self.unknown()?
        } else {
            // A bounded scan ends with what there was when it began.
            Vec::new()
        };
        let scan = &self.shared.scan;
        let starts = if restored.is_empty() {
            self.enumerator().starts(&new, &scan.start)?
        } else {
            self.enumerator().starts(&new, &Place::Earliest)?
        };
        let stops: Vec<Option<i64>> = match &scan.end {
            Some(end) => {
                let stops = self.enumerator().stops(&new, end)?;
                stops.into_iter().map(Some).collect()
            }
            None => vec![None; new.len()],
        };
        let new = new.into_iter().zip(starts).zip(stops);
        let new = new.map(|((p, next), stop)| (p, Position { next, stop }));
        self.add(new.collect())?;
        self.plan_look();
        Ok(())
    }

    /// Starts to read partitions.
    fn add(&mut self, partitions: Vec<(Partition, Position)>) -> Result<()> {
        let mut list = TopicPartitionList::new();
        let mut added = Vec::new();
        for (partition, position) in partitions {
            if position.stop.is_some_and(|stop| position.next >= stop) {
                self.finished.insert(partition, position);
                continue;
            }
            let offset = Offset::Offset(position.next);
            list.add_partition_offset(&partition.topic, partition.id, offset)
                .map_err(|e| self.consumer.context().error(&about(&partition), &e))?;
            let ends_with_log = match (position.stop, &self.shared.scan.end) {
                (Some(stop), Some(Place::Specific(_))) => {
                    self.enumerator().latest(&partition)? >= stop
                }
                (stop, _) => stop.is_some(),
            };
            added.push((partition, position, ends_with_log));
        }
        if added.is_empty() {
            return Ok(());
        }
        let assigned = self.consumer.incremental_assign(&list);
        assigned.map_err(|e| {
            let context = self.consumer.context();
            context.error("cannot read the partitions of the table", &e)
        })?;
        for (partition, position, ends_with_log) in added {
            let queue = self
                .consumer
                .split_partition_queue(&partition.topic, partition.id)
                .ok_or_else(|| Error::internal(format!("{partition} has no queue")))?;
            self.splits.push(Split {
                partition,
                position,
                queue,
                early: VecDeque::new(),
                ends_with_log,
                done: false,
            });
        }
        Ok(())
    }

    fn plan_look(&mut self) {
        let interval = self.shared.scan.discovery;
        self.next_look_ns = match interval.filter(|_| self.shared.scan.end.is_none()) {
            Some(interval) => {
                let ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
                monotonic_ns().saturating_add(ns)
            }
            None => u64::MAX,
        };
    }

    /// Looks for new partitions if it is time to; they are read from their beginning.
    fn look(&mut self) -> Result<()> {
        if monotonic_ns() < self.next_look_ns {
            return Ok(());
        }
        self.plan_look();
        let new = match self.unknown() {
            Ok(new) => new,
            Err(e) => {
                // The next look will tell; what is being read goes on.
                tracing::warn!("no look at new partitions: {e}");
                return Ok(());
            }
        };
        let starts = self.enumerator().earliest(&new)?;
        for partition in &new {
            tracing::info!("new partition {partition}");
        }
        let new = new.into_iter().zip(starts);
        self.add(
            new.map(|(p, next)| (p, Position { next, stop: None }))
                .collect(),
        )
    }

    /// Serves what concerns the client as a whole.
    fn serve(&mut self) -> Result<()> {
        while let Some(event) = self.consumer.poll(Duration::ZERO) {
            match event {
                Ok(message) => {
                    let (topic, id) = (message.topic(), message.partition());
                    let mut splits = self.splits.iter_mut();
                    let split = splits.find(|s| s.partition.id == id && s.partition.topic == topic);
                    if let Some(split) = split {
                        split.early.push_back(message.detach());
                    }
                }
                Err(KafkaError::PartitionEOF(_)) => {}
                Err(e) => check(&self.consumer, "the table", &e)?,
            }
        }
        Ok(())
    }

    /// Decodes up to `max_rows` of split `at`. Answers whether anything came.
    fn read(&mut self, at: usize, max_rows: usize) -> Result<bool> {
        let split = &mut self.splits[at];
        let mut progress = false;
        while self.decoder.rows() < max_rows && self.decoder.bytes_used() < BATCH_BYTES {
            if let Some(message) = split.early.pop_front() {
                let offset = message.offset();
                let is_ours = split.position.stop.is_none_or(|stop| offset < stop);
                if is_ours && offset >= split.position.next {
                    push(&mut self.decoder, self.dead_letters.as_mut(), &message)?;
                    split.position.next = offset + 1;
                    progress = true;
                }
                continue;
            }
            let message = match split.queue.poll(Duration::ZERO) {
                None => break,
                Some(Ok(message)) => message,
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    split.done = split.ends_with_log;
                    if split.done {
                        break;
                    }
                    continue;
                }
                Some(Err(e)) => {
                    check(&self.consumer, &about(&split.partition), &e)?;
                    continue;
                }
            };
            let offset = message.offset();
            if split.position.stop.is_some_and(|stop| offset >= stop) {
                split.done = true;
                break;
            }
            progress = true;
            // What lies before the position was taken before.
            if offset >= split.position.next {
                push(&mut self.decoder, self.dead_letters.as_mut(), &message)?;
                split.position.next = offset + 1;
            }
            if split.position.stop.is_some_and(|stop| offset + 1 >= stop) {
                split.done = true;
                break;
            }
        }
        Ok(progress)
    }

    /// Takes partitions that are read to their end out of the assignment.
    fn remove_done(&mut self) -> Result<()> {
        if !self.splits.iter().any(|s| s.done) {
            return Ok(());
        }
        let mut list = TopicPartitionList::new();
        let splits = std::mem::take(&mut self.splits);
        for split in splits {
            if split.done {
                list.add_partition(&split.partition.topic, split.partition.id);
                self.finished.insert(split.partition, split.position);
            } else {
                self.splits.push(split);
            }
        }
        let context = self.consumer.context();
        let removed = self.consumer.incremental_unassign(&list);
        removed.map_err(|e| context.error("cannot end the reading of partitions", &e))
    }

    fn take(&mut self) -> Result<ChangeBatch> {
        if let Some(dead_letters) = &mut self.dead_letters {
            dead_letters.flush()?;
        }
        self.decoder.finish()
    }
}

impl SourceReader for KafkaReader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        self.serve()?;
        self.look()?;
        let mut progress = false;
        for _ in 0..self.splits.len() {
            let at = self.cursor % self.splits.len();
            self.cursor = at + 1;
            if self.read(at, max_rows)? {
                progress = true;
                if self.by_split {
                    self.last = Some(self.splits[at].partition.to_string());
                    break;
                }
            }
            if self.decoder.rows() >= max_rows || self.decoder.bytes_used() >= BATCH_BYTES {
                break;
            }
        }
        self.remove_done()?;
        if progress {
            self.wait = WAIT_MIN;
            return Ok(SourcePoll::Batch(self.take()?));
        }
        if self.splits.is_empty() && self.shared.scan.end.is_some() {
            return Ok(SourcePoll::End);
        }
        let wait = self.wait;
        self.wait = (wait * 2).min(WAIT_MAX);
        Ok(SourcePoll::Pending(wait))
    }

    fn split(&self) -> Option<&str> {
        self.last.as_deref()
    }

    fn splits(&self) -> Option<Vec<String>> {
        let names = self.splits.iter().map(|s| s.partition.to_string());
        Some(names.collect())
    }

    fn positions(&self) -> Vec<SplitPosition> {
        let read = self
            .splits
            .iter()
            .map(|s| (s.partition.clone(), s.position.clone()));
        let finished = self.finished.iter().map(|(p, at)| (p.clone(), at.clone()));
        save(finished.chain(read))
    }

    fn checkpoint_complete(&mut self, positions: &[SplitPosition]) {
        let properties = &self.shared.properties;
        if properties.group_id.is_none() || !properties.commit_on_checkpoint {
            return;
        }
        let mut list = TopicPartitionList::new();
        for (partition, position) in restore(positions).unwrap_or_default() {
            let offset = Offset::Offset(position.next);
            // It is the offset of a record that was read.
            let _ = list.add_partition_offset(&partition.topic, partition.id, offset);
        }
        if list.count() == 0 {
            return;
        }
        if let Err(e) = self.consumer.commit(&list, CommitMode::Async) {
            tracing::warn!("offsets of the group are not committed: {e}");
        }
    }

    fn skipped(&self) -> u64 {
        let dead = self.dead_letters.as_ref().map_or(0, DeadLetters::sent);
        self.decoder.skipped() + dead
    }
}

fn about(partition: &Partition) -> String {
    format!("topic '{}', partition {}", partition.topic, partition.id)
}

/// Decodes a record. One that fails is named, or goes to the dead letters.
fn push<M: Message>(
    decoder: &mut RecordDecoder,
    dead_letters: Option<&mut DeadLetters>,
    message: &M,
) -> Result<()> {
    let Err(error) = decoder.push(message) else {
        return Ok(());
    };
    if let Some(dead_letters) = dead_letters {
        return dead_letters.send(message, &error);
    }
    let place = format!(
        "topic '{}', partition {}, offset {}",
        message.topic(),
        message.partition(),
        message.offset()
    );
    let error = error.context(place);
    if error.hint_text().is_some() {
        return Err(error);
    }
    Err(error.hint(
        "skip such records with the format's 'ignore-parse-errors', or keep them with \
         'scan.dead-letter.topic'",
    ))
}

/// Whether an error of the client is more than a passing one, which librdkafka deals with.
fn check(consumer: &BaseConsumer<Listener>, what: &str, error: &KafkaError) -> Result<()> {
    use RDKafkaErrorCode as Code;
    let context = consumer.context();
    let code = error.rdkafka_error_code();
    match code {
        Some(Code::AutoOffsetReset | Code::OffsetOutOfRange) => {
            Err(context.error(what, error).hint(
                "records were deleted before they were read; 'properties.auto.offset.reset' = \
                 'earliest' goes on with the oldest that is left",
            ))
        }
        Some(
            Code::Fatal
            | Code::Authentication
            | Code::SSL
            | Code::UnknownTopic
            | Code::UnknownPartition
            | Code::UnknownTopicOrPartition
            | Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::SaslAuthenticationFailed
            | Code::BadMessage
            | Code::BadCompression
            | Code::NotImplemented
            | Code::InvalidMessage,
        ) => Err(context.error(what, error)),
        _ if matches!(error, KafkaError::MessageConsumptionFatal(_)) => {
            Err(context.error(what, error))
        }
        _ => {
            tracing::debug!("{what}: {error}");
            Ok(())
        }
    }
}
