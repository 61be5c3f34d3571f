//! Moments at which something is due for a join key.

use std::collections::BTreeSet;

/// Something that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    /// When, ms.
    pub(crate) time: i64,
    /// Timers of one time fire in the order in which they were set.
    pub(crate) number: u64,
    /// The join key.
    pub(crate) slot: u32,
    /// What is due; the owner's business.
    pub(crate) tag: usize,
}

/// The timers of all keys. A timer is never taken back: its owner knows which are valid.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    timers: BTreeSet<Timer>,
    next: u64,
}

impl Timers {
    /// Sets a timer; answers its number.
    pub(crate) fn set(&mut self, time: i64, slot: u32, tag: usize) -> u64 {
        self.restore(Timer {
            time,
            number: self.next,
            slot,
            tag,
        })
    }

    /// Sets a timer of a snapshot.
    pub(crate) fn restore(&mut self, timer: Timer) -> u64 {
        self.next = self.next.max(timer.number.wrapping_add(1));
        self.timers.insert(timer);
        timer.number
    }

    /// The first timer that is due at `now`.
    pub(crate) fn pop_until(&mut self, now: i64) -> Option<Timer> {
        let first = *self.timers.first().filter(|t| t.time <= now)?;
        self.timers.pop_first();
        Some(first)
    }

    /// When the next one is due.
    pub(crate) fn first(&self) -> Option<i64> {
        self.timers.first().map(|t| t.time)
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.timers.len() * 2 * size_of::<Timer>()
    }
}
