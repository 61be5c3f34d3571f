//! State that expires when a key has not been written to for a time (`table.exec.state.ttl`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};

use crate::runtime::clock::Clock;
use crate::state::ttl::Ttl;

/// When the state of keys expires, by slot. Does nothing without a time to live.
#[derive(Debug)]
pub(super) struct Expiry {
    ttl: Option<Ttl>,
    clock: Arc<dyn Clock>,
    now: i64,
}

impl Expiry {
    /// State that expires `ttl_ms` after a key's last write; never without.
    pub(super) fn new(ttl_ms: Option<i64>, clock: &Arc<dyn Clock>) -> Self {
        Self {
            ttl: ttl_ms.filter(|ms| *ms > 0).map(Ttl::new),
            clock: Arc::clone(clock),
            now: 0,
        }
    }

    /// Whether state expires at all.
    pub(super) fn is_on(&self) -> bool {
        self.ttl.is_some()
    }

    /// Reads the clock for the batch at hand, and makes sure that slots below `slots` exist.
    pub(super) fn begin(&mut self, slots: usize) {
        if let Some(ttl) = &mut self.ttl {
            self.now = self.clock.now_ms();
            ttl.resize(slots);
        }
    }

    /// Notes a write to a key.
    #[inline]
    pub(super) fn touch(&mut self, slot: u32) {
        if let Some(ttl) = &mut self.ttl {
            ttl.touch(slot, self.now);
        }
    }

    /// Whether the state of a key, which has been written, is as good as gone.
    #[inline]
    pub(super) fn is_expired(&self, slot: u32) -> bool {
        self.ttl
            .as_ref()
            .is_some_and(|ttl| ttl.is_expired(slot, self.now))
    }

    /// When to look for expired keys next.
    pub(super) fn next_timer(&self) -> Option<i64> {
        self.ttl.as_ref().and_then(Ttl::sweep_at)
    }

    /// Whether it is time to look for expired keys.
    pub(super) fn begin_sweep(&mut self, now_ms: i64) -> bool {
        self.now = now_ms;
        self.ttl.as_mut().is_some_and(|ttl| ttl.begin_sweep(now_ms))
    }

    /// When a key was written last, if that counts.
    pub(super) fn written(&self, slot: u32) -> Option<i64> {
        self.ttl.as_ref().map(|ttl| ttl.written(slot))
    }

    /// When keys were written last, as a column of state.
    pub(super) fn save(&self, slots: &[u32]) -> ArrayRef {
        let written = slots.iter().map(|slot| self.written(*slot));
        Arc::new(written.collect::<Int64Array>())
    }

    /// Takes up what [`save`](Self::save) gave; keys saved without a time count as written now.
    pub(super) fn load(&mut self, slots: &[u32], written: &Int64Array) {
        let now = self.clock.now_ms();
        if let Some(ttl) = &mut self.ttl {
            let slots = slots.iter().enumerate();
            for (i, slot) in slots {
                ttl.resize(*slot as usize + 1);
                let at = written.is_valid(i).then(|| written.value(i));
                ttl.touch(*slot, at.unwrap_or(now));
            }
        }
    }

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        self.ttl.as_ref().map_or(0, Ttl::memory_size)
    }
}
