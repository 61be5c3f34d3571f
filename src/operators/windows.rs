//! State of windows: something for each key of each window. [`Windows`] are those that came with their
//! rows.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};

use super::last_rows::leading_numbers;
use super::windowing::Windowing;
use crate::error::Result;

/// What there is in one window.
#[derive(Debug)]
pub(super) struct Window<T> {
    /// By key, in the order in which keys were first seen. Groups go with the window only, so the
    /// place of one stays the same.
    pub(super) groups: Vec<(u32, T)>,
    by_key: HashMap<u32, usize, foldhash::fast::FixedState>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            by_key: HashMap::default(),
        }
    }
}

impl<T> Window<T> {
    /// Adds the group of a key that has none.
    pub(super) fn insert(&mut self, key: u32, group: T) {
        self.by_key.insert(key, self.groups.len());
        self.groups.push((key, group));
    }

    /// The group of a key.
    pub(super) fn get(&self, key: u32) -> Option<&T> {
        let place = self.by_key.get(&key)?;
        Some(&self.groups[*place].1)
    }

    /// The group of a key.
    pub(super) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        let place = self.by_key.get(&key)?;
        Some(&mut self.groups[*place].1)
    }
}

/// Which groups a copy is made of.
#[derive(Debug)]
pub(super) struct Wanted<'k> {
    keys: Option<&'k [u32]>,
    /// By key, where all groups are looked at.
    marked: Vec<bool>,
}

impl<'k> Wanted<'k> {
    /// The groups of `keys`, or all: in `windows` windows with so many `groups`. Looks for each key in
    /// each window, or at all groups, whatever is less.
    pub(super) fn new(
        keys: Option<&'k [u32]>,
        bound: usize,
        windows: usize,
        groups: usize,
    ) -> Self {
        let mut marked = Vec::new();
        if let Some(keys) = keys
            && keys.len().saturating_mul(windows) >= groups
        {
            marked.resize(bound, false);
            for key in keys {
                marked[*key as usize] = true;
            }
        }
        Self { keys, marked }
    }

    /// The places of those in `window`.
    pub(super) fn places<T>(&self, window: &Window<T>) -> Vec<usize> {
        match self.keys {
            None => (0..window.groups.len()).collect(),
            Some(keys) if self.marked.is_empty() => {
                let places = keys.iter().filter_map(|key| window.by_key.get(key));
                places.copied().collect()
            }
            Some(_) => {
                let groups = window.groups.iter().enumerate();
                let marked = groups.filter(|(_, (key, _))| self.marked[*key as usize]);
                marked.map(|(place, _)| place).collect()
            }
        }
    }
}

/// The open windows, by end.
#[derive(Debug)]
pub(super) struct Windows<T> {
    windowing: Windowing,
    open: BTreeMap<i64, Window<T>>,
    watermark: i64,
}

impl<T: Default> Windows<T> {
    /// No windows.
    pub(super) fn new(windowing: Windowing) -> Self {
        Self {
            windowing,
            open: BTreeMap::new(),
            watermark: i64::MIN,
        }
    }

    /// The highest watermark so far.
    pub(super) fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Raises the watermark.
    pub(super) fn set_watermark(&mut self, watermark: i64) {
        self.watermark = watermark;
    }

    /// Whether a row of the window that ends at `end` is late.
    pub(super) fn is_over(&self, end: i64) -> bool {
        self.windowing.is_over(end, self.watermark)
    }

    /// What there is for `key` in the window that ends at `end`; `true` if it is new.
    pub(super) fn group(&mut self, end: i64, key: u32) -> (&mut T, bool) {
        let window = self.open.entry(end).or_default();
        let next = window.groups.len();
        let at = *window.by_key.entry(key).or_insert(next);
        if at == next {
            window.groups.push((key, T::default()));
        }
        (&mut window.groups[at].1, at == next)
    }

    /// Takes out the first window that is over.
    pub(super) fn take_over(&mut self) -> Option<Window<T>> {
        let end = *self.open.first_key_value()?.0;
        if !self.is_over(end) {
            return None;
        }
        self.open.remove(&end)
    }

    /// The groups of `keys`, whose slots are below `bound`, or all: the place in the window, the key,
    /// and the group.
    pub(super) fn groups(&self, keys: Option<&[u32]>, bound: usize) -> Vec<(usize, u32, &T)> {
        let groups = self.open.values().map(|w| w.groups.len()).sum();
        let wanted = Wanted::new(keys, bound, self.open.len(), groups);
        let mut found = Vec::new();
        for window in self.open.values() {
            let places = wanted.places(window).into_iter();
            found.extend(places.map(|place| {
                let (key, group) = &window.groups[place];
                (place, *key, group)
            }));
        }
        found
    }
}

/// Saved rows in the order of the groups' places, which are in column `column`: groups that are made in
/// this order are in their windows as they were. Rows of one place keep their order.
pub(super) fn in_places(batches: &[RecordBatch], column: usize) -> Result<Option<RecordBatch>> {
    let Some(first) = batches.first() else {
        return Ok(None);
    };
    let all = concat_batches(&first.schema(), batches)?;
    let ([places], _) = leading_numbers::<1>(all.columns().get(column..).unwrap_or_default())?;
    let rows = u32::try_from(all.num_rows()).expect("fewer than 2^32 rows");
    let mut order: Vec<u32> = (0..rows).collect();
    order.sort_by_key(|row| places.value(*row as usize));
    Ok(Some(take_record_batch(&all, &UInt32Array::from(order))?))
}
