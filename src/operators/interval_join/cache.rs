//! The rows of one side of an interval join that may still meet rows of the other: by join key, then
//! by time.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::operators::join::changes::Rows;
use crate::operators::join::timers::Timers;
use crate::state::binary_row::BinaryRowCodec;
use crate::state::java_map::{Buckets, long_hash};
use crate::state::keys::grow;
use crate::state::rows::{RowId, RowStore};
use crate::types::Schema;

/// No timer.
pub(super) const NO_TIMER: i64 = i64::MIN;

/// The rows of one side.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) codec: Arc<BinaryRowCodec>,
    pub(super) rows: RowStore,
    /// By row: whether it has been part of a result.
    pub(super) matched: Vec<bool>,
    /// By slot of the join key.
    keys: Vec<KeyTimes>,
}

/// The rows of one join key. Flink keeps them in a map from time to rows, whose order its results
/// follow.
#[derive(Debug, Clone)]
pub(super) struct KeyTimes {
    /// By rising time.
    pub(super) times: SmallVec<[TimeRows; 1]>,
    buckets: Buckets,
    /// Number of the next entry.
    next: u32,
    /// When expired rows are to be removed.
    pub(super) timer: i64,
    /// The timer's number.
    pub(super) timer_number: u64,
}

/// The rows of one join key and time.
#[derive(Debug, Clone)]
pub(super) struct TimeRows {
    pub(super) time: i64,
    /// Number of the entry: entries of one bucket follow each other by it.
    number: u32,
    pub(super) rows: SmallVec<[u32; 2]>,
}

impl Default for KeyTimes {
    fn default() -> Self {
        Self {
            times: SmallVec::new(),
            buckets: Buckets::default(),
            next: 0,
            timer: NO_TIMER,
            timer_number: 0,
        }
    }
}

impl KeyTimes {
    /// Sorts entries, by position, as Flink walks over them.
    fn sort(&self, positions: &mut [usize]) {
        positions.sort_unstable_by_key(|i| {
            let entry = &self.times[*i];
            (self.buckets.of(long_hash(entry.time)), entry.number)
        });
    }

    /// Sets the timer of the key, which is `slot`'s.
    pub(super) fn set_timer(&mut self, time: i64, slot: u32, port: usize, timers: &mut Timers) {
        self.timer = time;
        self.timer_number = timers.set(time, slot, port);
    }

    pub(super) fn buckets(&self) -> u32 {
        self.buckets.count()
    }

    /// Whether nothing has to be remembered of the key.
    fn is_vacant(&self) -> bool {
        self.times.is_empty() && self.timer == NO_TIMER
    }
}

/// What an entry of the cache is to a row of the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) in_range: bool,
    pub(super) expired: bool,
}

impl Cache {
    pub(super) fn new(schema: &Schema) -> Self {
        Self {
            codec: Arc::new(BinaryRowCodec::new(&schema.types())),
            rows: RowStore::default(),
            matched: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// The rows, to gather them.
    pub(super) fn stored(&self) -> Rows<'_> {
        Rows::Stored(&self.codec, &self.rows)
    }

    /// Makes room for the slots of the join keys.
    pub(super) fn reserve_slots(&mut self, bound: usize) {
        if bound > self.keys.len() {
            grow(&mut self.keys, bound, KeyTimes::default());
        }
    }

    #[inline]
    pub(super) fn key(&self, slot: u32) -> &KeyTimes {
        &self.keys[slot as usize]
    }

    #[inline]
    pub(super) fn key_mut(&mut self, slot: u32) -> &mut KeyTimes {
        &mut self.keys[slot as usize]
    }

    #[inline]
    pub(super) fn is_vacant(&self, slot: u32) -> bool {
        self.key(slot).is_vacant()
    }

    /// Walks over the rows of a join key whose time is in `lower..=upper` or not after `expiration`,
    /// and forgets the expired ones, whose ids the caller has to free.
    pub(super) fn visit(
        &mut self,
        slot: u32,
        lower: i64,
        upper: i64,
        expiration: i64,
        mut each: impl FnMut(Visit, &[u32]),
    ) {
        let key = &mut self.keys[slot as usize];
        let expired = key.times.partition_point(|t| t.time <= expiration);
        let from = key.times.partition_point(|t| t.time < lower);
        let to = key.times.partition_point(|t| t.time <= upper).max(from);
        let visit = |i: usize| Visit {
            in_range: from <= i && i < to,
            expired: i < expired,
        };
        let both = (0..expired).chain(from.max(expired)..to);
        if expired + to.saturating_sub(from.max(expired)) <= 1 {
            for i in both {
                each(visit(i), &key.times[i].rows);
            }
        } else {
            let mut positions: Vec<usize> = both.collect();
            key.sort(&mut positions);
            for i in positions {
                each(visit(i), &key.times[i].rows);
            }
        }
        key.times.drain(..expired);
    }

    /// Stores a row.
    pub(super) fn insert(&mut self, slot: u32, time: i64, row: &[u8], matched: bool) -> u32 {
        let RowId(id) = self.rows.insert(row);
        let index = id as usize;
        if index >= self.matched.len() {
            grow(&mut self.matched, index + 1, false);
        }
        self.matched[index] = matched;
        let key = &mut self.keys[slot as usize];
        match key.times.binary_search_by_key(&time, |t| t.time) {
            Ok(at) => key.times[at].rows.push(id),
            Err(at) => {
                let entry = TimeRows {
                    time,
                    number: key.next,
                    rows: SmallVec::from_slice(&[id]),
                };
                key.next = key.next.wrapping_add(1);
                key.times.insert(at, entry);
                key.buckets.grow(key.times.len());
            }
        }
        id
    }

    /// Stores a row of a snapshot, whose entries come in the order of their numbers.
    pub(super) fn restore(
        &mut self,
        slot: u32,
        time: i64,
        row: &[u8],
        matched: bool,
        buckets: u32,
    ) {
        self.insert(slot, time, row, matched);
        self.keys[slot as usize].buckets = Buckets::new(buckets);
    }

    /// The entries of a join key in the order of their numbers.
    pub(super) fn entries(&self, slot: u32) -> Vec<&TimeRows> {
        let mut entries: Vec<_> = self
            .keys
            .get(slot as usize)
            .map_or(&[][..], |key| &key.times)
            .iter()
            .collect();
        entries.sort_unstable_by_key(|entry| entry.number);
        entries
    }

    pub(super) fn memory_size(&self) -> usize {
        self.rows.memory_size()
            + self.matched.capacity()
            + self.keys.capacity() * size_of::<KeyTimes>()
    }
}
