//! What a join remembers of one side: its rows by join key, how often each is there, and for a side
//! that is shown without a match the number of its matches.

use std::sync::Arc;

use smallvec::SmallVec;

use super::UniqueKey;
use super::changes::{NONE, Rows};
use super::group::Group;
use crate::state::binary_row::{self, BinaryRowCodec};
use crate::state::java_map::Buckets;
use crate::state::keys::grow;
use crate::state::rows::{RowId, RowStore};
use crate::types::Schema;

/// Marks a head that is the number of a [`Group`], not of a row.
const SEVERAL: u32 = 1 << 31;

/// The rows of one side.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) codec: Arc<BinaryRowCodec>,
    unique_key: UniqueKey,
    /// By slot of the join key: no row, one, or a group.
    heads: Vec<u32>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    pub(super) rows: RowStore,
    /// By row: how often it is there; 0 once it is removed.
    pub(super) counts: Vec<u32>,
    /// By row: number of matches on the other side.
    pub(super) degrees: Option<Vec<u32>>,
    /// By row: when it was written, ms.
    pub(super) stamps: Option<Vec<i64>>,
    pub(super) ttl_ms: i64,
    /// Unique keys under comparison.
    scratch: [Vec<u8>; 2],
}

/// What goes with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowMeta {
    pub(super) count: u32,
    pub(super) degree: u32,
    pub(super) stamp: i64,
    /// Buckets of the Java map that holds the row's group.
    pub(super) buckets: u32,
}

impl Side {
    /// An empty side. `counts_matches`: it is shown without a match, or only with one.
    pub(super) fn new(
        schema: &Schema,
        unique_key: UniqueKey,
        counts_matches: bool,
        ttl_ms: i64,
    ) -> Self {
        Self {
            codec: Arc::new(BinaryRowCodec::new(&schema.types())),
            unique_key,
            heads: Vec::new(),
            groups: Vec::new(),
            free_groups: Vec::new(),
            rows: RowStore::default(),
            counts: Vec::new(),
            degrees: counts_matches.then(Vec::new),
            stamps: (ttl_ms > 0).then(Vec::new),
            ttl_ms,
            scratch: Default::default(),
        }
    }

    /// Makes room for the slots of the join keys.
    pub(super) fn reserve_slots(&mut self, bound: usize) {
        if bound > self.heads.len() {
            grow(&mut self.heads, bound, NONE);
        }
    }

    /// The rows, for [`gather`](super::changes::gather).
    pub(super) fn stored(&self) -> Rows<'_> {
        Rows::Stored(&self.codec, &self.rows)
    }

    /// Whether a row replaces the one that has its unique key.
    pub(super) fn has_unique_key(&self) -> bool {
        !matches!(self.unique_key, UniqueKey::None)
    }

    /// Whether the join key has no row.
    #[inline]
    pub(super) fn is_vacant(&self, slot: u32) -> bool {
        self.heads[slot as usize] == NONE
    }

    /// Whether the row is too old to be seen.
    #[inline]
    fn is_expired(&self, id: u32, now: i64) -> bool {
        self.stamps
            .as_ref()
            .is_some_and(|stamps| stamps[id as usize].saturating_add(self.ttl_ms) <= now)
    }

    /// The only row of a join key, or its group in walking order.
    #[inline]
    pub(super) fn candidates(&mut self, slot: u32) -> Candidates {
        match self.heads[slot as usize] {
            NONE => Candidates::Rows { one: NONE },
            head if head & SEVERAL != 0 => {
                let group = head & !SEVERAL;
                self.groups[group as usize].sort();
                Candidates::Group { group }
            }
            one => Candidates::Rows { one },
        }
    }

    /// Entry `position` of a group: its row, unless there is none at the position any more (`None`);
    /// [`NONE`] for a row that is not to be seen.
    #[inline]
    pub(super) fn visible(&self, candidates: Candidates, position: usize, now: i64) -> Option<u32> {
        let id = match candidates {
            Candidates::Rows { one: NONE } => return None,
            Candidates::Rows { one } if position == 0 => one,
            Candidates::Rows { .. } => return None,
            Candidates::Group { group } => self.groups[group as usize].entries().get(position)?.id,
        };
        let seen = self.counts[id as usize] > 0 && !self.is_expired(id, now);
        Some(if seen { id } else { NONE })
    }

    /// The hash by which the row is found: of its unique key if it has one.
    fn hash_of(
        unique_key: &UniqueKey,
        codec: &BinaryRowCodec,
        row: &[u8],
        key: &mut Vec<u8>,
    ) -> u32 {
        match unique_key {
            UniqueKey::Columns(columns) => {
                codec.project(row, columns, key);
                binary_row::hash(key)
            }
            UniqueKey::None | UniqueKey::JoinKey => binary_row::hash(row),
        }
    }

    /// The row in state that is the same as `row`: that has its unique key if the side has one. A row
    /// that has expired is removed instead.
    pub(super) fn find(&mut self, slot: u32, row: &[u8], now: i64) -> Option<u32> {
        let id = self.look_up(slot, row)?;
        if self.is_expired(id, now) {
            self.delete(slot, id);
            return None;
        }
        Some(id)
    }

    fn look_up(&mut self, slot: u32, row: &[u8]) -> Option<u32> {
        let head = self.heads[slot as usize];
        if head == NONE {
            return None;
        }
        let Self {
            codec,
            rows,
            unique_key,
            scratch: [wanted, found],
            ..
        } = self;
        if head & SEVERAL != 0 {
            let hash = Self::hash_of(unique_key, codec, row, wanted);
            let group = &self.groups[(head & !SEVERAL) as usize];
            return group.find(hash, |id| match unique_key {
                UniqueKey::Columns(columns) => {
                    codec.project(rows.get(RowId(id)), columns, found);
                    found == wanted
                }
                _ => rows.get(RowId(id)) == row,
            });
        }
        let same = match unique_key {
            UniqueKey::JoinKey => true,
            UniqueKey::None => rows.get(RowId(head)) == row,
            UniqueKey::Columns(columns) => {
                codec.project(row, columns, wanted);
                codec.project(rows.get(RowId(head)), columns, found);
                found == wanted
            }
        };
        same.then_some(head)
    }

    /// Stores `row`: `existing` is what [`find`](Self::find) gave for it.
    pub(super) fn add(
        &mut self,
        slot: u32,
        row: &[u8],
        existing: Option<u32>,
        degree: u32,
        now: i64,
    ) {
        let Some(id) = existing else {
            let meta = RowMeta {
                count: 1,
                degree,
                stamp: now,
                buckets: 0,
            };
            self.insert(slot, row, meta);
            return;
        };
        if matches!(self.unique_key, UniqueKey::None) {
            self.counts[id as usize] += 1;
        } else {
            self.rows.replace(RowId(id), row);
        }
        self.set_degree(id, degree, now);
    }

    /// Stores a row that is not there.
    pub(super) fn insert(&mut self, slot: u32, row: &[u8], meta: RowMeta) {
        // A row that has expired may still hold the only place of its key.
        if matches!(self.unique_key, UniqueKey::JoinKey) && !self.is_vacant(slot) {
            self.delete(slot, self.heads[slot as usize]);
        }
        let RowId(id) = self.rows.insert(row);
        assert!(id < SEVERAL, "a join side has fewer than 2^31 rows");
        self.set_meta(id, meta);
        let head = self.heads[slot as usize];
        let buckets = Buckets::new(meta.buckets);
        if head == NONE && buckets == Buckets::default() {
            self.heads[slot as usize] = id;
            return;
        }
        let group = if head != NONE && head & SEVERAL != 0 {
            head & !SEVERAL
        } else {
            let group = self.new_group(buckets);
            self.heads[slot as usize] = SEVERAL | group;
            if head != NONE {
                let hash = self.hash(head);
                self.groups[group as usize].insert(head, hash);
            }
            group
        };
        let hash = self.hash(id);
        self.groups[group as usize].insert(id, hash);
    }

    fn new_group(&mut self, buckets: Buckets) -> u32 {
        let group = Group::with_buckets(buckets);
        if let Some(free) = self.free_groups.pop() {
            self.groups[free as usize] = group;
            return free;
        }
        self.groups.push(group);
        u32::try_from(self.groups.len() - 1).expect("fewer groups than rows")
    }

    fn hash(&mut self, id: u32) -> u32 {
        let row = self.rows.get(RowId(id));
        Self::hash_of(&self.unique_key, &self.codec, row, &mut self.scratch[0])
    }

    fn set_meta(&mut self, id: u32, meta: RowMeta) {
        let index = id as usize;
        let put = |values: &mut Vec<u32>, value| {
            if index >= values.len() {
                grow(values, index + 1, 0);
            }
            values[index] = value;
        };
        put(&mut self.counts, meta.count);
        if let Some(degrees) = &mut self.degrees {
            put(degrees, meta.degree);
        }
        if let Some(stamps) = &mut self.stamps {
            if index >= stamps.len() {
                grow(stamps, index + 1, 0);
            }
            stamps[index] = meta.stamp;
        }
    }

    /// Number of matches of a row; 0 on a side that does not count them.
    #[inline]
    pub(super) fn degree(&self, id: u32) -> u32 {
        self.degrees.as_ref().map_or(0, |d| d[id as usize])
    }

    /// Writes the number of matches, and so gives the row a new lease of life.
    #[inline]
    pub(super) fn set_degree(&mut self, id: u32, degree: u32, now: i64) {
        if let Some(degrees) = &mut self.degrees {
            degrees[id as usize] = degree;
        }
        if let Some(stamps) = &mut self.stamps {
            stamps[id as usize] = now;
        }
    }

    /// Takes one occurrence of a row away.
    pub(super) fn retract(&mut self, slot: u32, id: u32, now: i64) {
        let count = &mut self.counts[id as usize];
        if *count > 1 {
            *count -= 1;
            if let Some(stamps) = &mut self.stamps {
                stamps[id as usize] = now;
            }
        } else {
            self.delete(slot, id);
        }
    }

    /// Removes a row, however often it is there.
    pub(super) fn delete(&mut self, slot: u32, id: u32) {
        let head = self.heads[slot as usize];
        if head == id {
            self.heads[slot as usize] = NONE;
            self.counts[id as usize] = 0;
            self.rows.remove(RowId(id));
            return;
        }
        let hash = self.hash(id);
        self.counts[id as usize] = 0;
        let number = head & !SEVERAL;
        let group = &mut self.groups[number as usize];
        if group.remove(id, hash) {
            self.rows.remove(RowId(id));
        }
        let empty = group.len() == 0;
        if empty || group.wants_sweep() {
            let (counts, rows) = (&self.counts, &mut self.rows);
            group.sweep(|id| counts[id as usize] == 0, |id| rows.remove(RowId(id)));
        }
        if empty {
            self.groups[number as usize] = Group::default();
            self.free_groups.push(number);
            self.heads[slot as usize] = NONE;
        }
    }

    /// Removes the expired rows of a join key. Answers whether there were any.
    pub(super) fn sweep(&mut self, slot: u32, now: i64) -> bool {
        if self.stamps.is_none() || self.is_vacant(slot) {
            return false;
        }
        let mut expired: SmallVec<[u32; 4]> = SmallVec::new();
        self.rows_of(slot, |id, _| {
            if self.is_expired(id, now) {
                expired.push(id);
            }
        });
        let any = !expired.is_empty();
        for id in expired {
            self.delete(slot, id);
        }
        any
    }

    /// Every row of a join key, in the order in which it must be stored again.
    pub(super) fn rows_of(&self, slot: u32, mut each: impl FnMut(u32, RowMeta)) {
        let meta = |id: u32, buckets: u32| RowMeta {
            count: self.counts[id as usize],
            degree: self.degree(id),
            stamp: self.stamps.as_ref().map_or(0, |s| s[id as usize]),
            buckets,
        };
        match self.heads.get(slot as usize) {
            None | Some(&NONE) => {}
            Some(head) if head & SEVERAL != 0 => {
                let group = &self.groups[(head & !SEVERAL) as usize];
                for entry in group.entries() {
                    if self.counts[entry.id as usize] > 0 {
                        each(entry.id, meta(entry.id, group.buckets().count()));
                    }
                }
            }
            Some(&id) => each(id, meta(id, Buckets::default().count())),
        }
    }

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        let words = self.heads.capacity()
            + self.counts.capacity()
            + self.degrees.as_ref().map_or(0, Vec::capacity)
            + 2 * self.stamps.as_ref().map_or(0, Vec::capacity);
        let grouped = match self.groups.len() {
            0 => 0,
            groups => groups * size_of::<Group>() + self.rows.len() * Group::ROW_SIZE,
        };
        self.rows.memory_size() + words * size_of::<u32>() + grouped
    }
}

/// Where the rows of a join key are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Candidates {
    Rows { one: u32 },
    Group { group: u32 },
}
