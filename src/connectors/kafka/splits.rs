//! The partitions of a table: which there are, whose they are, where each begins and ends.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client::{Listener, partitions};
use super::properties::{OffsetReset, Properties};
use super::settings::{Place, Topics};
use crate::error::{Error, Result};
use crate::runtime::clock::monotonic_ns;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Partition {
    pub(super) topic: String,
    pub(super) id: i32,
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.id)
    }
}

impl Partition {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (topic, id) = text.rsplit_once('-')?;
        Some(Self {
            topic: topic.to_string(),
            id: id.parse().ok()?,
        })
    }

    /// The subtask that reads it: as in Flink, partitions of a topic go round from a subtask that
    /// its name says.
    pub(super) fn owner(&self, parallelism: usize) -> usize {
        let hash = self
            .topic
            .encode_utf16()
            .fold(0_i32, |h, c| h.wrapping_mul(31).wrapping_add(i32::from(c)));
        let start = (hash.wrapping_mul(31) & i32::MAX).unsigned_abs() as usize % parallelism.max(1);
        let id = usize::try_from(self.id).unwrap_or(0);
        (start + id) % parallelism.max(1)
    }
}

/// Asks the cluster about partitions.
pub(super) struct Enumerator<'a> {
    pub(super) consumer: &'a BaseConsumer<Listener>,
    pub(super) topics: &'a Topics,
    pub(super) properties: &'a Properties,
}

impl Enumerator<'_> {
    fn timeout(&self) -> Duration {
        self.properties.api_timeout
    }

    /// All partitions of the table.
    pub(super) fn all(&self) -> Result<Vec<Partition>> {
        let found = match self.topics {
            Topics::List(names) => {
                let mut found = Vec::new();
                for name in names {
                    found.extend(partitions(self.consumer, Some(name), self.timeout())?);
                }
                found
            }
            Topics::Pattern(_) => partitions(self.consumer, None, self.timeout())?,
        };
        let found = found.into_iter().filter(|(t, _)| self.topics.contains(t));
        Ok(found.map(|(topic, id)| Partition { topic, id }).collect())
    }

    /// The first offset of each of `partitions` that is still there.
    pub(super) fn earliest(&self, of: &[Partition]) -> Result<Vec<i64>> {
        of.iter().map(|p| Ok(self.bounds(p)?.0)).collect()
    }

    /// The offset after the last record.
    pub(super) fn latest(&self, partition: &Partition) -> Result<i64> {
        Ok(self.bounds(partition)?.1)
    }

    /// The first offset that is still there, and the one after the last record.
    pub(super) fn bounds(&self, partition: &Partition) -> Result<(i64, i64)> {
        let Partition { topic, id } = partition;
        let bounds = self.consumer.fetch_watermarks(topic, *id, self.timeout());
        bounds.map_err(|e| {
            let what = format!("cannot read the offsets of topic '{topic}', partition {id}");
            self.consumer.context().error(&what, &e)
        })
    }

    /// Where each of `partitions` begins.
    pub(super) fn starts(&self, of: &[Partition], place: &Place) -> Result<Vec<i64>> {
        let found = self.offsets(of, place)?;
        let found = found.into_iter().zip(of);
        found
            .map(|(offset, partition)| match (offset, place) {
                (Some(offset), _) => Ok(offset),
                (None, Place::Specific(_)) => Ok(self.bounds(partition)?.0),
                (None, Place::Timestamp(_)) => self.latest(partition),
                (None, _) => match self.properties.offset_reset {
                    Some(OffsetReset::Earliest) => Ok(self.bounds(partition)?.0),
                    Some(OffsetReset::Latest) => self.latest(partition),
                    None => Err(self.nothing_committed(partition)),
                },
            })
            .collect()
    }

    /// The offset before which each of `partitions` ends.
    pub(super) fn stops(&self, of: &[Partition], place: &Place) -> Result<Vec<i64>> {
        let found = self.offsets(of, place)?;
        let found = found.into_iter().zip(of);
        found
            .map(|(offset, partition)| match (offset, place) {
                (Some(offset), _) => Ok(offset),
                (None, Place::Timestamp(_)) => self.latest(partition),
                (None, Place::Specific(_)) => Err(Error::options(format!(
                    "Option 'scan.bounded.specific-offsets' has no offset for partition {} of topic \
                     '{}'.",
                    partition.id, partition.topic
                ))),
                (None, _) => Err(self.nothing_committed(partition)),
            })
            .collect()
    }

    fn nothing_committed(&self, partition: &Partition) -> Error {
        Error::connector(format!(
            "The group '{}' has no committed offset for partition {} of topic '{}'.",
            self.properties.group_id.as_deref().unwrap_or_default(),
            partition.id,
            partition.topic
        ))
        .hint(
            "set 'properties.auto.offset.reset' to 'earliest' or 'latest', or another \
             'scan.startup.mode'",
        )
    }

    fn offsets(&self, of: &[Partition], place: &Place) -> Result<Vec<Option<i64>>> {
        match place {
            Place::Earliest => Ok(self.earliest(of)?.into_iter().map(Some).collect()),
            Place::Latest => of.iter().map(|p| self.latest(p).map(Some)).collect(),
            Place::Group => self.committed(of),
            Place::Timestamp(ms) => self.at_time(of, *ms),
            Place::Specific(offsets) => {
                let committed = match self.properties.group_id {
                    Some(_) => self.committed(of)?,
                    None => vec![None; of.len()],
                };
                let found = of.iter().zip(committed);
                Ok(found
                    .map(|(p, committed)| offsets.get(&p.id).copied().or(committed))
                    .collect())
            }
        }
    }

    fn committed(&self, of: &[Partition]) -> Result<Vec<Option<i64>>> {
        if of.is_empty() {
            return Ok(Vec::new());
        }
        let group = self.properties.group_id.as_deref().unwrap_or_default();
        let what = format!("cannot read the offsets of group '{group}'");
        let timeout = self.timeout();
        let deadline =
            monotonic_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let list = list(of, Offset::Invalid)?;
            match self.consumer.committed_offsets(list, timeout) {
                Ok(found) => return Ok(in_order(of, &found)),
                Err(e) if has_no_coordinator(&e) && monotonic_ns() < deadline => {
                    std::thread::sleep(COORDINATOR_PAUSE);
                }
                Err(e) => return Err(self.consumer.context().error(&what, &e)),
            }
        }
    }

    fn at_time(&self, of: &[Partition], ms: i64) -> Result<Vec<Option<i64>>> {
        if of.is_empty() {
            return Ok(Vec::new());
        }
        let at = list(of, Offset::Offset(ms.max(0)))?;
        let found = self.consumer.offsets_for_times(at, self.timeout());
        let what = format!("cannot find the offsets of timestamp {ms}");
        let found = found.map_err(|e| self.consumer.context().error(&what, &e))?;
        Ok(in_order(of, &found))
    }
}

/// Pause before a coordinator is looked for again.
const COORDINATOR_PAUSE: Duration = Duration::from_millis(100);

/// Whether the broker that keeps the group's offsets is still to be found: on a cluster that is new,
/// or where it moves.
fn has_no_coordinator(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::NotCoordinator | Code::CoordinatorNotAvailable | Code::CoordinatorLoadInProgress
        )
    )
}

/// `partitions`, all at `offset`.
fn list(of: &[Partition], offset: Offset) -> Result<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(of.len());
    for Partition { topic, id } in of {
        list.add_partition_offset(topic, *id, offset)
            .map_err(|e| Error::internal(format!("offset of {topic}-{id}: {e}")))?;
    }
    Ok(list)
}

/// The offsets that `found` tells of `partitions`; `None` where it tells none.
fn in_order(of: &[Partition], found: &TopicPartitionList) -> Vec<Option<i64>> {
    of.iter()
        .map(|p| match found.find_partition(&p.topic, p.id)?.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(topic: &str, id: i32) -> Partition {
        Partition {
            topic: topic.into(),
            id,
        }
    }

    #[test]
    fn every_partition_has_one_owner() {
        let owners: Vec<usize> = (0..8).map(|id| partition("orders", id).owner(3)).collect();
        for subtask in 0..3 {
            assert!(owners.iter().filter(|o| **o == subtask).count() >= 2);
        }
        assert_eq!(partition("t", 5).owner(1), 0);
    }
}
