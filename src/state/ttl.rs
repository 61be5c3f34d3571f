//! How long ago every slot was written to, for state that expires.
//!
//! As in Flink, a write renews a slot, a read does not, and expired state is as good as gone even
//! before it is removed.

use super::keys::grow;

/// Times of the last writes, ms.
#[derive(Debug)]
pub struct Ttl {
    ttl_ms: i64,
    written: Vec<i64>,
    /// When the next sweep is due; `None` while nothing was written.
    sweep_at: Option<i64>,
}

impl Ttl {
    /// State that expires `ttl_ms` after its last write.
    #[must_use]
    pub fn new(ttl_ms: i64) -> Self {
        Self {
            ttl_ms: ttl_ms.max(1),
            written: Vec::new(),
            sweep_at: None,
        }
    }

    /// Makes sure that slots below `slots` exist.
    pub fn resize(&mut self, slots: usize) {
        if slots > self.written.len() {
            grow(&mut self.written, slots, 0);
        }
    }

    /// Notes a write.
    pub fn touch(&mut self, slot: u32, now_ms: i64) {
        self.written[slot as usize] = now_ms;
        if self.sweep_at.is_none() {
            self.sweep_at = Some(self.next_sweep(now_ms));
        }
    }

    /// Whether the slot, which is in use, has expired.
    #[must_use]
    pub fn is_expired(&self, slot: u32, now_ms: i64) -> bool {
        self.written[slot as usize].saturating_add(self.ttl_ms) <= now_ms
    }

    /// The time of the slot's last write.
    #[must_use]
    pub fn written(&self, slot: u32) -> i64 {
        self.written[slot as usize]
    }

    fn next_sweep(&self, now_ms: i64) -> i64 {
        // Often enough that expired state is a fraction of the live one, not more than every second.
        now_ms.saturating_add((self.ttl_ms / 2).max(1000))
    }

    /// When to look for expired slots next.
    #[must_use]
    pub fn sweep_at(&self) -> Option<i64> {
        self.sweep_at
    }

    /// Whether it is time to look for expired slots; plans the next time.
    pub fn begin_sweep(&mut self, now_ms: i64) -> bool {
        let due = self.sweep_at.is_some_and(|at| at <= now_ms);
        if due {
            self.sweep_at = Some(self.next_sweep(now_ms));
        }
        due
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.written.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_expires_when_its_time_is_over() {
        let mut ttl = Ttl::new(5000);
        ttl.resize(1);
        ttl.touch(0, 100);
        assert!(!ttl.is_expired(0, 5099));
        assert!(ttl.is_expired(0, 5100));
        assert_eq!(ttl.sweep_at(), Some(2600));
        assert!(!ttl.begin_sweep(2599));
        assert!(ttl.begin_sweep(2600));
        assert_eq!(ttl.sweep_at(), Some(5100));
    }
}
