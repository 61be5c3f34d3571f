//! The order in which a Java `HashMap` walks over its entries.
//!
//! Flink's heap state keeps the rows of a join key in such a map, and the changes that a join emits
//! for one input row follow its order. An entry lies in the bucket that its hash names; entries of
//! one bucket follow each other as they were put; the table doubles when it is three quarters full
//! and never shrinks. (Buckets of more than seven entries, which Java may turn into trees, are not
//! followed.)

/// The number of buckets of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets(u32);

impl Default for Buckets {
    /// A map with nothing in it yet.
    fn default() -> Self {
        Self(16)
    }
}

impl Buckets {
    /// A table of `n` buckets, as [`count`](Self::count) gave it.
    #[must_use]
    pub fn new(n: u32) -> Self {
        Self(n.next_power_of_two().max(16))
    }

    /// Number of buckets.
    #[must_use]
    pub fn count(self) -> u32 {
        self.0
    }

    /// Takes note that the map now has `entries` entries; whether the table grew, so that the order
    /// is another one.
    pub fn grow(&mut self, entries: usize) -> bool {
        let mut grew = false;
        while entries > self.0 as usize / 4 * 3 && self.0 < 1 << 30 {
            self.0 *= 2;
            grew = true;
        }
        grew
    }

    /// The bucket of an entry whose key has this hash: entries are walked over by rising bucket,
    /// then in the order in which they were put.
    #[must_use]
    #[inline]
    pub fn of(self, hash: u32) -> u32 {
        (hash ^ (hash >> 16)) & (self.0 - 1)
    }
}

/// `Long.hashCode`.
#[must_use]
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the two halves, folded
pub fn long_hash(value: i64) -> u32 {
    (value ^ ((value as u64) >> 32) as i64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_doubles_at_three_quarters() {
        let mut buckets = Buckets::default();
        assert!(!buckets.grow(12));
        assert!(buckets.grow(13));
        assert_eq!(buckets.count(), 32);
        assert!(!buckets.grow(1));
    }

    #[test]
    fn hashes_are_spread_over_buckets_as_in_java() {
        assert_eq!(Buckets::default().of(0x0005_0003), 6);
        assert_eq!(long_hash(-1), 0);
        assert_eq!(long_hash(1_709_251_200_000), 0xf74f_858d);
    }
}
