//! The table of keys: from canonical bytes to slots and back.

use arrow::array::ArrayRef;
use hashbrown::HashTable;

use super::changes::{Changed, Changes, KeyBytes};
use super::{EncodedKeys, Form, KeyEncoder, NO_SLOT, grow, hash_bytes, hash_word};
use crate::error::{Error, Result};
use crate::state::arena::{ByteArena, Offset, VACANT};

/// Gives every key a slot: a small number, dense but for freed slots, by which operators address
/// their columns of state.
#[derive(Debug)]
pub struct KeyTable {
    table: HashTable<u32>,
    keys: Keys,
    /// Slots given out so far, freed ones included.
    slots: u32,
    free: Vec<u32>,
    /// Freed since the last call of `intern`.
    vacated: Vec<u32>,
    /// What has changed, if anybody wants to know.
    changes: Option<Box<Changes>>,
}

#[derive(Debug)]
enum Keys {
    Words {
        words: Vec<[u8; 8]>,
        /// One bit a slot.
        live: Vec<u64>,
        null_slot: u32,
    },
    Bytes {
        arena: ByteArena,
        offsets: Vec<Offset>,
    },
}

impl KeyTable {
    /// An empty table, of keys of eight bytes or of any length.
    pub(super) fn new(words: bool) -> Self {
        Self {
            table: HashTable::new(),
            keys: if words {
                Keys::Words {
                    words: Vec::new(),
                    live: Vec::new(),
                    null_slot: NO_SLOT,
                }
            } else {
                Keys::Bytes {
                    arena: ByteArena::default(),
                    offsets: Vec::new(),
                }
            },
            slots: 0,
            free: Vec::new(),
            vacated: Vec::new(),
            changes: None,
        }
    }

    /// From now on, remembers which keys change: those that are interned, touched or removed. Those
    /// that are there are known to who copies the table.
    pub fn track_changes(&mut self) {
        let mut changes = Box::<Changes>::default();
        for slot in self.slots() {
            changes.know(slot);
        }
        self.changes = Some(changes);
    }

    /// Notes that what belongs to a slot is about to change. Slots that were just interned need not
    /// be touched.
    #[inline]
    pub fn touch(&mut self, slot: u32) {
        if let Some(changes) = &mut self.changes {
            changes.touch(slot);
        }
    }

    /// What has changed since the last durable copy, which is the previous one if `previous_durable`,
    /// else an older one; `None` if changes are not tracked.
    pub fn take_changes(&mut self, previous_durable: bool) -> Option<Changed> {
        let mut changes = self.changes.take()?;
        changes.copy(previous_durable);
        let changed = changes.changed(|slot| self.is_live(slot));
        self.changes = Some(changes);
        Some(changed)
    }

    /// The slots in use, for a copy of all of them.
    pub fn copy_all(&mut self) -> Vec<u32> {
        let slots: Vec<u32> = self.slots().collect();
        if let Some(changes) = &mut self.changes {
            changes.copy(false);
            for slot in &slots {
                changes.know(*slot);
            }
        }
        slots
    }

    /// The keys of slots that are in use.
    #[must_use]
    pub fn copy_keys(&self, slots: &[u32]) -> KeyBytes {
        if let Keys::Words {
            words, null_slot, ..
        } = &self.keys
            && *null_slot == NO_SLOT
        {
            return KeyBytes::of_words(slots.iter().map(|slot| words[*slot as usize]));
        }
        let mut keys = KeyBytes::with_capacity(slots.len());
        for slot in slots {
            keys.push(self.key_bytes(*slot));
        }
        keys
    }

    /// Goes on remembering what `old` has remembered, whose keys this table has under other slots.
    pub fn take_over_changes(&mut self, old: &mut Self) {
        let Some(changes) = old.changes.take() else {
            return;
        };
        let number = |slot: u32| {
            let key = old.is_live(slot).then(|| old.key_bytes(slot))?;
            self.slot_of(key)
        };
        self.changes = Some(Box::new(changes.renumbered(number)));
    }

    /// The slot of a key in bytes.
    fn slot_of(&self, key: &[u8]) -> Option<u32> {
        match &self.keys {
            Keys::Words {
                words, null_slot, ..
            } => match key.try_into() {
                Ok(word) => {
                    let hash = hash_word(u64::from_le_bytes(word));
                    let found = self.table.find(hash, |slot| words[*slot as usize] == word);
                    found.copied()
                }
                Err(_) => (*null_slot != NO_SLOT).then_some(*null_slot),
            },
            Keys::Bytes { arena, offsets } => {
                let is_key = |slot: &u32| arena.get(offsets[*slot as usize]) == key;
                self.table.find(hash_bytes(key), is_key).copied()
            }
        }
    }

    /// Makes room for `additional` new keys.
    pub fn reserve(&mut self, additional: usize) {
        match &mut self.keys {
            Keys::Words { words, .. } => {
                words.reserve(additional);
                let words: &[[u8; 8]] = words;
                let rehash = |s: &u32| hash_word(u64::from_le_bytes(words[*s as usize]));
                self.table.reserve(additional, rehash);
            }
            Keys::Bytes { arena, offsets } => {
                offsets.reserve(additional);
                let rehash = |s: &u32| hash_bytes(arena.get(offsets[*s as usize]));
                self.table.reserve(additional, rehash);
            }
        }
    }

    /// The slots of all keys, made for those that are new; `fresh` receives the rows in which a key
    /// was seen for the first time. Both are replaced.
    ///
    /// Slots freed before this call may be given out, those freed after it are not until the next.
    ///
    /// # Errors
    /// When there are more than 2^32 - 2 keys.
    ///
    /// # Panics
    /// When the batch has 2^32 rows.
    pub fn intern(
        &mut self,
        keys: &EncodedKeys,
        slots: &mut Vec<u32>,
        fresh: &mut Vec<u32>,
    ) -> Result<()> {
        self.free.append(&mut self.vacated);
        slots.clear();
        slots.reserve(keys.len());
        fresh.clear();
        if matches!(keys.form, Form::Empty) && !keys.is_empty() {
            let (slot, new) = self.intern_one(keys, 0)?;
            slots.resize(keys.len(), slot);
            fresh.extend(new.then_some(0));
            self.touch(slot);
            return Ok(());
        }
        for i in 0..keys.len() {
            let mut slot = self.find_one(keys, i);
            if slot == NO_SLOT {
                slot = self.add(keys, i)?;
                fresh.push(u32::try_from(i).expect("a batch has fewer than 2^32 rows"));
            }
            slots.push(slot);
        }
        if let Some(changes) = &mut self.changes {
            for slot in slots.iter() {
                changes.touch(*slot);
            }
        }
        Ok(())
    }

    /// The slot of the key of one row, made if it is new (then `true`). Does not give out slots
    /// freed since the last [`intern`](Self::intern).
    ///
    /// # Errors
    /// When there are more than 2^32 - 2 keys.
    pub fn intern_one(&mut self, keys: &EncodedKeys, i: usize) -> Result<(u32, bool)> {
        let found = match self.find_one(keys, i) {
            NO_SLOT => (self.add(keys, i)?, true),
            slot => (slot, false),
        };
        self.touch(found.0);
        Ok(found)
    }

    /// The slots of all keys, [`NO_SLOT`] for one that is not there. Replaces `slots`.
    pub fn find(&self, keys: &EncodedKeys, slots: &mut Vec<u32>) {
        slots.clear();
        slots.extend((0..keys.len()).map(|i| self.find_one(keys, i)));
    }

    /// The slot of the key of row `i`, or [`NO_SLOT`].
    #[must_use]
    #[inline]
    pub fn find_one(&self, keys: &EncodedKeys, i: usize) -> u32 {
        let hash = keys.hash(i);
        let found = match (&self.keys, &keys.form) {
            (
                Keys::Words {
                    words, null_slot, ..
                },
                Form::Words(new),
            ) => {
                if keys.has_null(i) {
                    return *null_slot;
                }
                let word = new[i];
                self.table.find(hash, |slot| words[*slot as usize] == word)
            }
            (Keys::Bytes { arena, offsets }, _) => {
                let bytes = keys.bytes(i);
                self.table
                    .find(hash, |slot| arena.get(offsets[*slot as usize]) == bytes)
            }
            (Keys::Words { .. }, _) => None,
        };
        found.copied().unwrap_or(NO_SLOT)
    }

    fn add(&mut self, keys: &EncodedKeys, i: usize) -> Result<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots == NO_SLOT => {
                return Err(Error::state("more than 2^32 keys in one operator"));
            }
            None => {
                self.slots += 1;
                self.slots - 1
            }
        };
        let index = slot as usize;
        let hash = keys.hash(i);
        match (&mut self.keys, &keys.form) {
            (
                Keys::Words {
                    words,
                    live,
                    null_slot,
                },
                Form::Words(new),
            ) => {
                if index >= words.len() {
                    grow(words, index + 1, [0; 8]);
                    live.resize(index / 64 + 1, 0);
                }
                live[index / 64] |= 1 << (index % 64);
                if keys.has_null(i) {
                    *null_slot = slot;
                    return Ok(slot);
                }
                words[index] = new[i];
                let rehash = |s: &u32| hash_word(u64::from_le_bytes(words[*s as usize]));
                self.table.insert_unique(hash, slot, rehash);
            }
            (Keys::Bytes { arena, offsets }, _) => {
                if index >= offsets.len() {
                    grow(offsets, index + 1, VACANT);
                }
                offsets[index] = arena.push(keys.bytes(i));
                self.table
                    .insert_unique(hash, slot, |s| hash_bytes(arena.get(offsets[*s as usize])));
            }
            (Keys::Words { .. }, _) => {
                return Err(Error::internal("keys of another encoder"));
            }
        }
        Ok(slot)
    }

    /// Forgets the key of a slot that is in use. The slot is given out again after the next batch
    /// has begun.
    pub fn remove(&mut self, slot: u32) {
        if let Some(mut changes) = self.changes.take() {
            changes.remove(slot, self.key_bytes(slot));
            self.changes = Some(changes);
        }
        let index = slot as usize;
        match &mut self.keys {
            Keys::Words {
                words,
                live,
                null_slot,
            } => {
                live[index / 64] &= !(1 << (index % 64));
                if *null_slot == slot {
                    *null_slot = NO_SLOT;
                } else {
                    let hash = hash_word(u64::from_le_bytes(words[index]));
                    if let Ok(entry) = self.table.find_entry(hash, |s| *s == slot) {
                        entry.remove();
                    }
                }
            }
            Keys::Bytes { arena, offsets } => {
                if let Ok(entry) = self
                    .table
                    .find_entry(hash_bytes(arena.get(offsets[index])), |s| *s == slot)
                {
                    entry.remove();
                }
                arena.release(std::mem::replace(&mut offsets[index], VACANT));
                if arena.wants_compaction() {
                    arena.compact(offsets.iter_mut());
                }
            }
        }
        self.vacated.push(slot);
    }

    /// Whether the slot holds a key.
    #[must_use]
    pub fn is_live(&self, slot: u32) -> bool {
        let index = slot as usize;
        match &self.keys {
            Keys::Words { live, .. } => live
                .get(index / 64)
                .is_some_and(|bits| bits >> (index % 64) & 1 == 1),
            Keys::Bytes { offsets, .. } => offsets.get(index).is_some_and(|o| *o != VACANT),
        }
    }

    /// The key of a slot that is in use.
    #[must_use]
    pub fn key_bytes(&self, slot: u32) -> &[u8] {
        match &self.keys {
            Keys::Words { null_slot, .. } if *null_slot == slot => &[],
            Keys::Words { words, .. } => &words[slot as usize],
            Keys::Bytes { arena, offsets, .. } => arena.get(offsets[slot as usize]),
        }
    }

    /// The key columns of slots that are in use, in that order.
    ///
    /// # Errors
    /// When `encoder` is not the table's.
    pub fn decode(
        &self,
        encoder: &KeyEncoder,
        slots: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<ArrayRef>> {
        encoder.decode(slots.into_iter().map(|slot| self.key_bytes(slot)))
    }

    /// The slots in use, in rising order.
    pub fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.slots).filter(|slot| self.is_live(*slot))
    }

    /// One more than the highest slot ever given out: the length that columns of state need.
    #[must_use]
    pub fn slot_bound(&self) -> usize {
        self.slots as usize
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slot_bound() - self.free.len() - self.vacated.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        let keys = match &self.keys {
            Keys::Words { words, live, .. } => (words.capacity() + live.capacity()) * 8,
            Keys::Bytes { arena, offsets } => arena.memory_size() + offsets.capacity() * 8,
        };
        let changes = self.changes.as_ref().map_or(0, |c| c.memory_size());
        keys + changes
            + self.table.allocation_size()
            + (self.free.capacity() + self.vacated.capacity()) * 4
    }
}
