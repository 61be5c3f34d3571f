//! Values that one group holds: counted and ordered by value, or in the order of arrival.

use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};

/// Values with a count each, ordered by value. Counts may be negative, when a withdrawal came before
/// its addition; a count of zero is no entry. Small maps are a sorted list.
#[derive(Debug, Clone)]
pub enum CountedMap<K> {
    /// Up to [`SMALL`] entries.
    Small(Vec<(K, i64)>),
    /// More.
    Large(BTreeMap<K, i64>),
}

/// Entries that a sorted list may have.
const SMALL: usize = 32;

impl<K> Default for CountedMap<K> {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl<K: Ord> CountedMap<K> {
    /// Changes the count of a value and returns the new count. `own` makes the value to keep.
    pub fn add<Q: ?Sized + Ord>(&mut self, key: &Q, delta: i64, own: impl FnOnce(&Q) -> K) -> i64
    where
        K: Borrow<Q>,
    {
        match self {
            Self::Small(entries) => {
                let found = entries.binary_search_by(|(k, _)| k.borrow().cmp(key));
                match found {
                    Ok(i) => {
                        let count = entries[i].1.wrapping_add(delta);
                        if count == 0 {
                            entries.remove(i);
                        } else {
                            entries[i].1 = count;
                        }
                        count
                    }
                    Err(_) if delta == 0 => 0,
                    Err(i) if entries.len() < SMALL => {
                        entries.insert(i, (own(key), delta));
                        delta
                    }
                    Err(_) => {
                        let mut map: BTreeMap<_, _> = std::mem::take(entries).into_iter().collect();
                        map.insert(own(key), delta);
                        *self = Self::Large(map);
                        delta
                    }
                }
            }
            Self::Large(map) => match map.get_mut(key) {
                Some(count) => {
                    *count = count.wrapping_add(delta);
                    let count = *count;
                    if count == 0 {
                        map.remove(key);
                        if map.len() < SMALL / 4 {
                            let entries = std::mem::take(map).into_iter().collect();
                            *self = Self::Small(entries);
                        }
                    }
                    count
                }
                None if delta == 0 => 0,
                None => {
                    map.insert(own(key), delta);
                    delta
                }
            },
        }
    }

    /// The lowest value with a positive count.
    #[must_use]
    pub fn first(&self) -> Option<&K> {
        match self {
            Self::Small(entries) => entries.iter().find(|(_, n)| *n > 0).map(|(k, _)| k),
            Self::Large(map) => map.iter().find(|(_, n)| **n > 0).map(|(k, _)| k),
        }
    }

    /// The highest value with a positive count.
    #[must_use]
    pub fn last(&self) -> Option<&K> {
        match self {
            Self::Small(entries) => entries.iter().rfind(|(_, n)| *n > 0).map(|(k, _)| k),
            Self::Large(map) => map.iter().rfind(|(_, n)| **n > 0).map(|(k, _)| k),
        }
    }

    /// Values and counts, by value.
    pub fn iter(&self) -> impl Iterator<Item = (&K, i64)> {
        let (small, large) = match self {
            Self::Small(entries) => (Some(entries.iter().map(|(k, n)| (k, *n))), None),
            Self::Large(map) => (None, Some(map.iter().map(|(k, n)| (k, *n)))),
        };
        small
            .into_iter()
            .flatten()
            .chain(large.into_iter().flatten())
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Small(entries) => entries.len(),
            Self::Large(map) => map.len(),
        }
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory behind it, estimated, without what the values themselves hold elsewhere.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        let entry = size_of::<(K, i64)>();
        match self {
            Self::Small(entries) => entries.capacity() * entry,
            Self::Large(map) => map.len() * (entry + entry / 2),
        }
    }
}

/// Values in the order of arrival, from which the first occurrence of a value can be removed.
#[derive(Debug, Clone)]
pub struct Arrivals<V> {
    /// `None` where a value was removed; never at either end.
    values: VecDeque<Option<V>>,
    /// Arrivals before the first of `values`.
    start: u64,
    len: usize,
    /// Arrival numbers by value, once the list is long.
    index: Option<BTreeMap<V, VecDeque<u64>>>,
}

/// A longer list gets an index.
const INDEXED: usize = 64;

impl<V> Default for Arrivals<V> {
    fn default() -> Self {
        Self {
            values: VecDeque::new(),
            start: 0,
            len: 0,
            index: None,
        }
    }
}

impl<V: Ord + Clone> Arrivals<V> {
    /// Appends a value.
    pub fn push(&mut self, value: V) {
        let number = self.start + self.values.len() as u64;
        if let Some(index) = &mut self.index {
            index.entry(value.clone()).or_default().push_back(number);
        }
        self.values.push_back(Some(value));
        self.len += 1;
    }

    /// Removes the first occurrence of a value; whether there was one.
    pub fn remove<Q: ?Sized + Ord>(&mut self, value: &Q) -> bool
    where
        V: Borrow<Q>,
    {
        if self.index.is_none() && self.values.len() > INDEXED {
            self.build_index();
        }
        let position = match &mut self.index {
            Some(index) => match index.get_mut(value) {
                None => None,
                Some(numbers) => {
                    let number = numbers.pop_front();
                    if numbers.is_empty() {
                        index.remove(value);
                    }
                    number.and_then(|n| usize::try_from(n - self.start).ok())
                }
            },
            None => self
                .values
                .iter()
                .position(|v| v.as_ref().is_some_and(|v| v.borrow() == value)),
        };
        let Some(position) = position else {
            return false;
        };
        self.values[position] = None;
        self.len -= 1;
        self.trim();
        true
    }

    fn trim(&mut self) {
        while let Some(None) = self.values.front() {
            self.values.pop_front();
            self.start += 1;
        }
        while let Some(None) = self.values.back() {
            self.values.pop_back();
        }
        if self.values.len() > INDEXED && self.len < self.values.len() / 2 {
            self.values.retain(Option::is_some);
            self.index = None;
        }
        if self.len == 0 {
            *self = Self::default();
        }
    }

    fn build_index(&mut self) {
        let mut index: BTreeMap<V, VecDeque<u64>> = BTreeMap::new();
        for (number, value) in (self.start..).zip(&self.values) {
            if let Some(value) = value {
                index.entry(value.clone()).or_default().push_back(number);
            }
        }
        self.index = Some(index);
    }

    /// The value that arrived first.
    #[must_use]
    pub fn first(&self) -> Option<&V> {
        self.values.front()?.as_ref()
    }

    /// The value that arrived last.
    #[must_use]
    pub fn last(&self) -> Option<&V> {
        self.values.back()?.as_ref()
    }

    /// All values, in the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &V> {
        self.values.iter().flatten()
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory behind it, estimated, without what the values themselves hold elsewhere.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        let index = self.index.as_ref().map_or(0, BTreeMap::len);
        self.values.capacity() * size_of::<Option<V>>() + index * (size_of::<V>() + 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_additions_and_withdrawals_in_small_and_large_maps() {
        let mut map = CountedMap::default();
        for key in (0..100_i64).rev() {
            assert_eq!(map.add(&key, 1, |k| *k), 1);
        }
        assert!(matches!(map, CountedMap::Large(_)));
        assert_eq!((map.first(), map.last()), (Some(&0), Some(&99)));
        assert_eq!(map.add(&99, -2, |k| *k), -1);
        assert_eq!(map.last(), Some(&98), "a negative count is no value");
        assert_eq!(map.add(&99, 1, |k| *k), 0);
        for key in 3..99_i64 {
            assert_eq!(map.add(&key, -1, |k| *k), 0);
        }
        assert!(matches!(map, CountedMap::Small(_)));
        assert_eq!(map.iter().collect::<Vec<_>>(), [(&0, 1), (&1, 1), (&2, 1)]);
    }

    #[test]
    fn the_first_occurrence_is_removed_in_short_and_long_lists() {
        for n in [10_u64, 1000] {
            let mut list = Arrivals::default();
            for i in 0..n {
                list.push(i % 5);
            }
            assert!(list.remove(&0));
            assert_eq!(list.first(), Some(&1));
            assert!(list.remove(&3));
            assert!(list.remove(&3));
            assert!(!list.remove(&9));
            assert_eq!(list.len() as u64, n - 3);
            let head: Vec<_> = list.iter().take(6).copied().collect();
            assert_eq!(head, [1, 2, 4, 0, 1, 2]);
            while list.remove(&4) {}
            let last = if n == 10 { 2 } else { 3 };
            assert_eq!(list.last(), Some(&last));
            for v in 0..5 {
                while list.remove(&v) {}
            }
            assert!(list.is_empty());
            list.push(7);
            assert_eq!((list.first(), list.last()), (Some(&7), Some(&7)));
        }
    }
}
