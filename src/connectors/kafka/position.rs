//! Where the reading of a partition stands: as it lies in a checkpoint, and what a record is to it.
//!
//! An offset alone does not say whether the log is still the one that was read: after an unclean
//! election of a leader, or when the topic was created again, other records lie at the same offsets.
//! The client's epochs of leaders do not survive a restart (librdkafka validates them while it runs).
//! So a position knows the last record in front of it by a checksum, and who goes on from it reads that
//! record again.

use std::collections::BTreeMap;

use rdkafka::message::Message;
use serde::{Deserialize, Serialize};

use super::splits::Partition;
use crate::connectors::SplitPosition;
use crate::error::{Error, Result};

/// Where the reading of a partition stands, as it lies in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Offset of the next record.
    pub(super) next: i64,
    /// The offset before which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<i64>,
    /// The last record that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<Fingerprint>,
}

impl Position {
    /// Whether nothing is left to read.
    pub(super) fn is_at_stop(&self) -> bool {
        self.stop.is_some_and(|stop| self.next >= stop)
    }
}

/// By what a record is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    pub(super) offset: i64,
    /// Of timestamp, key and value.
    crc32: u32,
}

impl Fingerprint {
    pub(super) fn of<M: Message>(message: &M) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        let timestamp = message.timestamp().to_millis().unwrap_or(-1);
        hasher.update(&timestamp.to_le_bytes());
        for part in [message.key(), message.payload()] {
            let length = part.map_or(u64::MAX, |bytes| bytes.len() as u64);
            hasher.update(&length.to_le_bytes());
            hasher.update(part.unwrap_or_default());
        }
        Self {
            offset: message.offset(),
            crc32: hasher.finalize(),
        }
    }
}

/// What a record is to the reading of its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// The next one.
    New,
    /// It was read before.
    Known,
    /// It lies where another record was read.
    Other,
    /// It lies behind the end.
    Beyond,
}

/// A position that moves on.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) position: Position,
    /// The record that should come first, as it was read before.
    expected: Option<Fingerprint>,
}

impl Cursor {
    /// Goes on from `position`; `again`: with the last record that was read.
    pub(super) fn new(position: Position, again: bool) -> Self {
        let expected = position.last.clone().filter(|_| again);
        Self { position, expected }
    }

    /// The offset from which records are fetched.
    pub(super) fn fetch_from(&self) -> i64 {
        match &self.expected {
            Some(last) => last.offset,
            None => self.position.next,
        }
    }

    /// What `message` is. A new one is taken: the position is behind it.
    pub(super) fn meet<M: Message>(&mut self, message: &M) -> Met {
        let offset = message.offset();
        if self.position.stop.is_some_and(|stop| offset >= stop) {
            return Met::Beyond;
        }
        if let Some(last) = self.expected.take_if(|last| offset >= last.offset)
            // Compaction may have removed it.
            && last.offset == offset
            && last != Fingerprint::of(message)
        {
            return Met::Other;
        }
        if offset < self.position.next {
            return Met::Known;
        }
        self.position.next = offset + 1;
        Met::New
    }
}

/// Of a checkpoint without partitions, which is still not a start.
const STARTED: &str = "";

/// The positions of a checkpoint.
pub(super) fn save(positions: impl Iterator<Item = (Partition, Position)>) -> Vec<SplitPosition> {
    let started = SplitPosition {
        split: STARTED.into(),
        position: "{}".into(),
    };
    let positions = positions.map(|(partition, position)| SplitPosition {
        split: partition.to_string(),
        position: serde_json::to_string(&position).unwrap_or_default(),
    });
    std::iter::once(started).chain(positions).collect()
}

/// The positions that a checkpoint holds.
pub(super) fn restore(saved: &[SplitPosition]) -> Result<BTreeMap<Partition, Position>> {
    let saved = saved.iter().filter(|s| s.split != STARTED);
    saved
        .map(|s| {
            let wrong = || {
                Error::checkpoint(format!(
                    "'{}' at '{}' is no position of a Kafka topic",
                    s.split, s.position
                ))
            };
            let partition = Partition::parse(&s.split).ok_or_else(wrong)?;
            let position = serde_json::from_str(&s.position).map_err(|_| wrong())?;
            Ok((partition, position))
        })
        .collect()
}

/// The next offsets that positions of a checkpoint hold, by topic and partition.
///
/// # Errors
/// When one is no position of a partition.
pub fn next_offsets(saved: &[SplitPosition]) -> Result<BTreeMap<String, BTreeMap<i32, i64>>> {
    let mut offsets: BTreeMap<String, BTreeMap<i32, i64>> = BTreeMap::new();
    for (partition, position) in restore(saved)? {
        let topic = offsets.entry(partition.topic).or_default();
        topic.insert(partition.id, position.next);
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use rdkafka::Timestamp;
    use rdkafka::message::OwnedMessage;

    use super::*;

    fn message(offset: i64, value: &str) -> OwnedMessage {
        let value = Some(value.as_bytes().to_vec());
        let timestamp = Timestamp::CreateTime(7);
        OwnedMessage::new(value, None, "t".into(), timestamp, 0, offset, None)
    }

    fn position(next: i64, last: Option<Fingerprint>) -> Position {
        Position {
            next,
            stop: Some(9),
            last,
        }
    }

    #[test]
    fn positions_survive_a_checkpoint() {
        let partition = Partition::parse("a-b-12").unwrap();
        let last = Fingerprint::of(&message(6, "x"));
        let all = [(partition, position(7, Some(last)))];
        let saved = save(all.clone().into_iter());
        assert_eq!(restore(&saved).unwrap(), all.into_iter().collect());
        assert!(!save(std::iter::empty()).is_empty());
        let mut saved = SplitPosition {
            split: "t-0".into(),
            position: "x".into(),
        };
        assert!(restore(std::slice::from_ref(&saved)).is_err());
        saved.position = "{\"next\": 5}".into();
        assert_eq!(
            restore(&[saved])
                .unwrap()
                .into_values()
                .next()
                .unwrap()
                .next,
            5
        );
    }

    #[test]
    fn a_record_is_met_once() {
        let mut cursor = Cursor::new(position(7, None), true);
        assert_eq!(cursor.fetch_from(), 7);
        assert_eq!(cursor.meet(&message(6, "a")), Met::Known);
        assert_eq!(cursor.meet(&message(7, "b")), Met::New);
        assert!(!cursor.position.is_at_stop());
        assert_eq!(cursor.meet(&message(8, "c")), Met::New);
        assert!(cursor.position.is_at_stop());
        assert_eq!(cursor.meet(&message(9, "d")), Met::Beyond);
    }

    #[test]
    fn another_record_in_the_place_of_the_last_is_noticed() {
        let last = Fingerprint::of(&message(5, "x"));
        let resumed = || Cursor::new(position(7, Some(last.clone())), true);
        assert_eq!(resumed().fetch_from(), 5);
        assert_eq!(resumed().meet(&message(5, "y")), Met::Other);
        let mut same = resumed();
        assert_eq!(same.meet(&message(5, "x")), Met::Known);
        assert_eq!(same.meet(&message(7, "y")), Met::New);
        // It is gone: nothing can be said.
        let mut compacted = resumed();
        assert_eq!(compacted.meet(&message(6, "y")), Met::Known);
        assert_eq!(compacted.meet(&message(7, "y")), Met::New);
        // Not asked for.
        let mut other = Cursor::new(position(7, Some(last.clone())), false);
        assert_eq!(other.fetch_from(), 7);
        assert_eq!(other.meet(&message(5, "y")), Met::Known);
    }

    #[test]
    fn a_fingerprint_tells_a_value_from_none() {
        let none = OwnedMessage::new(None, None, "t".into(), Timestamp::CreateTime(7), 0, 5, None);
        assert_ne!(Fingerprint::of(&none), Fingerprint::of(&message(5, "")));
        assert_eq!(
            Fingerprint::of(&message(5, "")),
            Fingerprint::of(&message(5, ""))
        );
    }
}
