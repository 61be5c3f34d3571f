//! The rows of one join key on one side, when there are several: found by hash, walked over in the
//! order of a Java `HashMap`.

use hashbrown::HashTable;

use crate::state::java_map::Buckets;

/// Entries up to which a group is searched from end to end.
const SEARCHED: usize = 16;

/// A row of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Row in the side's store.
    pub(super) id: u32,
    /// Flink's hash of the row, or of its unique key.
    hash: u32,
}

/// The rows of a join key. Ids of removed rows stay in `entries` until the group is
/// [swept](Group::sweep); until then the owner must not reuse them.
#[derive(Debug, Default)]
pub(super) struct Group {
    entries: Vec<Entry>,
    /// Entries at the front that are in walking order.
    sorted: usize,
    dead: usize,
    buckets: Buckets,
    /// Ids by hash, for a large group.
    index: Option<HashTable<Entry>>,
}

impl Group {
    /// Bytes of memory that a row takes, about.
    pub(super) const ROW_SIZE: usize = 2 * size_of::<Entry>();

    /// A group whose map has this many buckets already.
    pub(super) fn with_buckets(buckets: Buckets) -> Self {
        Self {
            buckets,
            ..Self::default()
        }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.dead
    }

    pub(super) fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// The row with this hash for which `same` holds.
    pub(super) fn find(&self, hash: u32, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        match &self.index {
            Some(index) => index
                .find(u64::from(hash) << 32, |e| e.hash == hash && same(e.id))
                .map(|e| e.id),
            None => self
                .entries
                .iter()
                .find(|e| e.hash == hash && same(e.id))
                .map(|e| e.id),
        }
    }

    /// Adds a row that is not there.
    pub(super) fn insert(&mut self, id: u32, hash: u32) {
        let entry = Entry { id, hash };
        self.entries.push(entry);
        if self.buckets.grow(self.len()) {
            self.sorted = 0;
        }
        if let Some(index) = &mut self.index {
            index.insert_unique(u64::from(hash) << 32, entry, |e| u64::from(e.hash) << 32);
        } else if self.entries.len() > SEARCHED {
            let mut index = HashTable::with_capacity(2 * SEARCHED);
            for entry in &self.entries {
                index.insert_unique(u64::from(entry.hash) << 32, *entry, |e: &Entry| {
                    u64::from(e.hash) << 32
                });
            }
            self.index = Some(index);
        }
    }

    /// Removes a row that is there. Answers whether its id may be reused at once; else the group must
    /// be swept when [`wants_sweep`](Self::wants_sweep) says so.
    pub(super) fn remove(&mut self, id: u32, hash: u32) -> bool {
        if let Some(index) = &mut self.index {
            if let Ok(entry) = index.find_entry(u64::from(hash) << 32, |e| e.id == id) {
                entry.remove();
            }
            self.dead += 1;
            return false;
        }
        if let Some(position) = self.entries.iter().position(|e| e.id == id) {
            self.entries.remove(position);
            self.sorted -= usize::from(position < self.sorted);
        }
        true
    }

    /// Whether most entries are dead.
    pub(super) fn wants_sweep(&self) -> bool {
        self.dead * 2 > self.entries.len()
    }

    /// Drops dead entries and hands their ids, which may be reused now, to `free`.
    pub(super) fn sweep(&mut self, is_dead: impl Fn(u32) -> bool, mut free: impl FnMut(u32)) {
        if self.dead == 0 {
            return;
        }
        let mut sorted = self.sorted;
        let mut position = 0;
        self.entries.retain(|entry| {
            let dead = is_dead(entry.id);
            if dead {
                free(entry.id);
                sorted -= usize::from(position < self.sorted);
            }
            position += 1;
            !dead
        });
        self.sorted = sorted;
        self.dead = 0;
        if self.entries.len() <= SEARCHED / 2 {
            self.index = None;
        }
    }

    /// Brings the entries into walking order.
    pub(super) fn sort(&mut self) {
        if self.sorted < self.entries.len() {
            let buckets = self.buckets;
            // Stable, and quick on a sorted front with a short tail.
            self.entries.sort_by_key(|e| buckets.of(e.hash));
            self.sorted = self.entries.len();
        }
    }

    /// All entries, the dead included; in walking order after [`sort`](Self::sort).
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(group: &mut Group, dead: &[u32]) -> Vec<u32> {
        group.sort();
        let ids = group.entries().iter().map(|e| e.id);
        ids.filter(|id| !dead.contains(id)).collect()
    }

    #[test]
    fn rows_are_walked_over_by_bucket_then_by_insertion() {
        let mut group = Group::default();
        for (id, hash) in [(1, 9), (2, 3), (3, 19), (4, 25)] {
            group.insert(id, hash);
        }
        assert_eq!(walk(&mut group, &[]), [2, 3, 1, 4]);
        assert!(group.remove(2, 3));
        group.insert(5, 3);
        assert_eq!(walk(&mut group, &[]), [3, 5, 1, 4]);
    }

    #[test]
    fn a_large_group_keeps_its_rows_through_growth_removal_and_sweeping() {
        let mut group = Group::default();
        let mut dead = Vec::new();
        for id in 0..1000 {
            group.insert(id, id.wrapping_mul(0x9e37_79b9));
        }
        for id in (0..1000).filter(|id| id % 3 != 0) {
            assert!(!group.remove(id, id.wrapping_mul(0x9e37_79b9)));
            dead.push(id);
        }
        assert!(group.wants_sweep());
        let before = walk(&mut group, &dead);
        let mut freed = Vec::new();
        group.sweep(|id| id % 3 != 0, |id| freed.push(id));
        freed.sort_unstable();
        assert_eq!(freed, dead);
        assert_eq!(walk(&mut group, &[]), before);
        assert_eq!(group.len(), 334);
        let hash = 999_u32.wrapping_mul(0x9e37_79b9);
        assert_eq!(group.find(hash, |id| id == 999), Some(999));
        assert_eq!(group.find(1, |_| true), None);
    }
}
