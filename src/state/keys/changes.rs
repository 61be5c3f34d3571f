//! Which keys of a table have changed since the last copies of it, for checkpoints of changes only.
//!
//! Every slot has three bits: touched since the last copy; touched between the last durable copy and
//! the last one; known to earlier copies. A key that is removed leaves its bytes behind if an earlier
//! copy may know it.

/// One bit a slot.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    #[inline]
    fn set(&mut self, slot: u32) {
        let word = slot as usize / 64;
        if word >= self.0.len() {
            self.0.resize((word + 1).next_power_of_two(), 0);
        }
        self.0[word] |= 1 << (slot % 64);
    }

    fn take(&mut self, slot: u32) -> bool {
        let mask = 1 << (slot % 64);
        let word = self.0.get_mut(slot as usize / 64);
        word.is_some_and(|word| {
            let was = *word & mask != 0;
            *word &= !mask;
            was
        })
    }

    /// Moves all bits from `other`.
    fn absorb(&mut self, other: &mut Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, new) in self.0.iter_mut().zip(&mut other.0) {
            *word |= std::mem::take(new);
        }
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = (0_u32..).step_by(64).zip(&self.0);
        words
            .filter(|(_, word)| **word != 0)
            .flat_map(|(first, word)| {
                let mut left = *word;
                std::iter::from_fn(move || {
                    let bit = left.trailing_zeros();
                    left &= left.wrapping_sub(1);
                    (bit < 64).then_some(first + bit)
                })
            })
    }
}

/// Keys in bytes, taken out of their table. While they are all of one length, nothing but their bytes
/// is held.
#[derive(Debug, Clone, Default)]
pub struct KeyBytes {
    data: Vec<u8>,
    len: usize,
    /// Bytes of each key, as long as `ends` is empty.
    width: usize,
    /// Where each key ends, once their lengths differ.
    ends: Vec<usize>,
}

impl KeyBytes {
    /// Room for so many short keys.
    #[must_use]
    pub fn with_capacity(keys: usize) -> Self {
        Self {
            data: Vec::with_capacity(keys * 8),
            ..Self::default()
        }
    }

    /// Keys of eight bytes each.
    pub(super) fn of_words(words: impl Iterator<Item = [u8; 8]>) -> Self {
        let words: Vec<_> = words.collect();
        Self {
            len: words.len(),
            width: 8,
            data: words.into_flattened(),
            ends: Vec::new(),
        }
    }

    /// Appends a key.
    pub fn push(&mut self, key: &[u8]) {
        if self.len == 0 {
            self.width = key.len();
        } else if self.ends.is_empty() && key.len() != self.width {
            self.ends = (1..=self.len).map(|key| key * self.width).collect();
        }
        self.data.extend_from_slice(key);
        self.len += 1;
        if !self.ends.is_empty() {
            self.ends.push(self.data.len());
        }
    }

    fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            std::mem::swap(self, other);
        } else {
            for key in other.iter() {
                self.push(key);
            }
        }
        other.clear();
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The keys, one after another.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        (0..self.len).map(move |key| {
            let end = match self.ends.get(key) {
                Some(end) => *end,
                None => start + self.width,
            };
            &self.data[std::mem::replace(&mut start, end)..end]
        })
    }
}

/// What has changed since the last durable copy.
#[derive(Debug)]
pub struct Changed {
    /// Slots in use that were touched, in rising order.
    pub slots: Vec<u32>,
    /// Keys that are gone; they may have come back in one of the slots.
    pub removed: KeyBytes,
}

/// The changes of a table.
#[derive(Debug, Default)]
pub(super) struct Changes {
    touched: Bits,
    /// Touched before the last copy, which may not be durable.
    copied: Bits,
    /// Of keys that an earlier copy may have.
    known: Bits,
    removed: KeyBytes,
    copied_removed: KeyBytes,
}

impl Changes {
    #[inline]
    pub(super) fn touch(&mut self, slot: u32) {
        self.touched.set(slot);
    }

    pub(super) fn remove(&mut self, slot: u32, key: &[u8]) {
        if self.known.take(slot) {
            self.removed.push(key);
        }
    }

    pub(super) fn know(&mut self, slot: u32) {
        self.known.set(slot);
    }

    /// A copy is taken. `previous_durable` says that the changes before the previous one count no
    /// more.
    pub(super) fn copy(&mut self, previous_durable: bool) {
        if previous_durable {
            self.copied.0.fill(0);
            self.copied_removed.clear();
        }
        self.copied.absorb(&mut self.touched);
        self.copied_removed.append(&mut self.removed);
    }

    /// What the copy must hold, given which slots are in use.
    pub(super) fn changed(&mut self, is_live: impl Fn(u32) -> bool) -> Changed {
        let mut slots = Vec::with_capacity(self.copied.count());
        slots.extend(self.copied.iter().filter(|slot| is_live(*slot)));
        for slot in &slots {
            self.known.set(*slot);
        }
        Changed {
            slots,
            removed: self.copied_removed.clone(),
        }
    }

    /// The same with other numbers of slots; those without a number are gone.
    pub(super) fn renumbered(self, number: impl Fn(u32) -> Option<u32>) -> Self {
        let renumber = |bits: &Bits| {
            let mut renumbered = Bits::default();
            for slot in bits.iter().filter_map(&number) {
                renumbered.set(slot);
            }
            renumbered
        };
        Self {
            touched: renumber(&self.touched),
            copied: renumber(&self.copied),
            known: renumber(&self.known),
            removed: self.removed,
            copied_removed: self.copied_removed,
        }
    }

    pub(super) fn memory_size(&self) -> usize {
        let bits = [&self.touched, &self.copied, &self.known];
        let words: usize = bits.iter().map(|b| b.0.capacity()).sum();
        let removed = [&self.removed, &self.copied_removed];
        let keys = removed
            .iter()
            .map(|k| k.data.capacity() + k.ends.capacity() * 8);
        words * 8 + keys.sum::<usize>()
    }
}
