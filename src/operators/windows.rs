//! State of windows that came with their rows: something for each key of each window.

use std::collections::{BTreeMap, HashMap};

use super::windowing::Windowing;

/// What there is in one window.
#[derive(Debug)]
pub(super) struct Window<T> {
    /// By key, in the order in which keys were first seen.
    pub(super) groups: Vec<(u32, T)>,
    by_key: HashMap<u32, usize, foldhash::fast::FixedState>,
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
        let window = self.open.entry(end).or_insert_with(|| Window {
            groups: Vec::new(),
            by_key: HashMap::default(),
        });
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

    /// All windows with their ends.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, &Window<T>)> {
        self.open.iter().map(|(end, window)| (*end, window))
    }
}
