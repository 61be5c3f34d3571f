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
use super::position::{Cursor, Fingerprint, Met, Position, restore, save};
use super::reset::{self, Lost};
use super::settings::Place;
use super::source::Shared;
use super::splits::{Enumerator, Partition};
use crate::changelog::ChangeBatch;
use crate::connectors::{SourcePoll, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::runtime::clock::monotonic_ns;

/// Shortest and longest wait when there is nothing to read.
const WAIT_MIN: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(10);

/// A partition that is being read.
struct Split {
    partition: Partition,
    cursor: Cursor,
    queue: PartitionQueue<Listener>,
    /// Records that came before it had a queue of its own.
    early: VecDeque<OwnedMessage>,
    /// The log reaches to the split's end already: who has come to the end of the log has read it
    /// all, though the last offsets may hold no record of ours (the end of a transaction, a record
    /// that compaction removed).
    ends_with_log: bool,
    state: Reading,
}

/// What becomes of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    GoesOn,
    /// Nothing is left of it.
    Done,
    /// What it would read is not there.
    Lost(Lost),
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
        self.add(self.with_last(positions)?)?;
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
        let new = new.map(|((p, next), stop)| (p, begin_at(next, stop)));
        self.add(new.collect())?;
        self.plan_look();
        Ok(())
    }

    /// Positions that are gone on from: each with the last record that was read, if it is there, by
    /// which the log is known again.
    fn with_last(&self, positions: Vec<(Partition, Position)>) -> Result<Vec<(Partition, Cursor)>> {
        let cursors = positions.into_iter().map(|(partition, position)| {
            let last = position.last.as_ref();
            let is_there = match last {
                Some(last) if !position.is_at_stop() => {
                    let (first, end) = self.enumerator().bounds(&partition)?;
                    (first..end).contains(&last.offset)
                }
                _ => false,
            };
            Ok((partition, Cursor::new(position, is_there)))
        });
        cursors.collect()
    }

    /// Starts to read partitions.
    fn add(&mut self, partitions: Vec<(Partition, Cursor)>) -> Result<()> {
        let mut list = TopicPartitionList::new();
        let mut added = Vec::new();
        for (partition, cursor) in partitions {
            let position = &cursor.position;
            if position.is_at_stop() {
                self.finished.insert(partition, cursor.position);
                continue;
            }
            let offset = Offset::Offset(cursor.fetch_from());
            list.add_partition_offset(&partition.topic, partition.id, offset)
                .map_err(|e| self.consumer.context().error(&about(&partition), &e))?;
            let ends_with_log = match (position.stop, &self.shared.scan.end) {
                (Some(stop), Some(Place::Specific(_))) => {
                    self.enumerator().latest(&partition)? >= stop
                }
                (stop, _) => stop.is_some(),
            };
            added.push((partition, cursor, ends_with_log));
        }
        if added.is_empty() {
            return Ok(());
        }
        let assigned = self.consumer.incremental_assign(&list);
        assigned.map_err(|e| {
            let context = self.consumer.context();
            context.error("cannot read the partitions of the table", &e)
        })?;
        for (partition, cursor, ends_with_log) in added {
            let queue = self
                .consumer
                .split_partition_queue(&partition.topic, partition.id)
                .ok_or_else(|| Error::internal(format!("{partition} has no queue")))?;
            self.splits.push(Split {
                partition,
                cursor,
                queue,
                early: VecDeque::new(),
                ends_with_log,
                state: Reading::GoesOn,
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
        self.add(new.map(|(p, next)| (p, begin_at(next, None))).collect())
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
        let Self {
            splits,
            decoder,
            dead_letters,
            consumer,
            ..
        } = self;
        let split = &mut splits[at];
        let mut progress = false;
        // Its fingerprint is taken at the end: nobody asks for those in between.
        let mut last = None;
        while split.state == Reading::GoesOn && decoder.rows() < max_rows && !decoder.is_full() {
            let (met, offset) = if let Some(message) = split.early.pop_front() {
                let met = split.cursor.meet(&message);
                if met == Met::New {
                    push(decoder, dead_letters.as_mut(), &message)?;
                    split.cursor.position.last = Some(Fingerprint::of(&message));
                }
                (met, message.offset())
            } else {
                let message = match split.queue.poll(Duration::ZERO) {
                    None => break,
                    Some(Ok(message)) => message,
                    Some(Err(KafkaError::PartitionEOF(_))) => {
                        if split.ends_with_log {
                            split.state = Reading::Done;
                        }
                        continue;
                    }
                    Some(Err(e)) if reset::is_refusal(&e) => {
                        split.state = Reading::Lost(Lost::Refused);
                        continue;
                    }
                    Some(Err(e)) => {
                        check(consumer, &about(&split.partition), &e)?;
                        continue;
                    }
                };
                let offset = message.offset();
                let met = split.cursor.meet(&message);
                if met == Met::New {
                    push(decoder, dead_letters.as_mut(), &message)?;
                    last = Some(message);
                }
                (met, offset)
            };
            progress |= matches!(met, Met::New | Met::Known);
            match met {
                Met::Other => split.state = Reading::Lost(Lost::OtherRecord(offset)),
                Met::Beyond => split.state = Reading::Done,
                _ if split.cursor.position.is_at_stop() => split.state = Reading::Done,
                Met::New | Met::Known => {}
            }
        }
        if let Some(message) = last {
            split.cursor.position.last = Some(Fingerprint::of(&message));
        }
        Ok(progress)
    }

    /// Takes partitions that are read to their end out of the assignment, and goes on elsewhere with
    /// those whose records are not there.
    fn settle(&mut self) -> Result<()> {
        if self.splits.iter().all(|s| s.state == Reading::GoesOn) {
            return Ok(());
        }
        let mut list = TopicPartitionList::new();
        let mut moved = Vec::new();
        let splits = std::mem::take(&mut self.splits);
        for split in splits {
            if split.state == Reading::GoesOn {
                self.splits.push(split);
                continue;
            }
            list.add_partition(&split.partition.topic, split.partition.id);
            let position = split.cursor.position;
            if let Reading::Lost(lost) = split.state {
                let enumerator = self.enumerator();
                let next = reset::go_on(&enumerator, &split.partition, position.next, lost)?;
                moved.push((split.partition, begin_at(next, position.stop)));
            } else {
                self.finished.insert(split.partition, position);
            }
        }
        let context = self.consumer.context();
        let removed = self.consumer.incremental_unassign(&list);
        removed.map_err(|e| context.error("cannot end the reading of partitions", &e))?;
        self.add(moved)
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
            if self.decoder.rows() >= max_rows || self.decoder.is_full() {
                break;
            }
        }
        self.settle()?;
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
            .map(|s| (s.partition.clone(), s.cursor.position.clone()));
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

/// The reading of a partition from offset `next` on.
fn begin_at(next: i64, stop: Option<i64>) -> Cursor {
    let last = None;
    Cursor::new(Position { next, stop, last }, false)
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
        // Of which partition is not said.
        Some(
            Code::AutoOffsetReset
            | Code::OffsetOutOfRange
            | Code::LogTruncation
            | Code::Fatal
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
