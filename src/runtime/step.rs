//! The order between sources that ask for one: rows of a step are read only when all rows of lower
//! steps have run through the whole job.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// No order is asked for, or the reader has ended.
const NEVER: u64 = u64::MAX;

/// Shared by all tasks of a job.
#[derive(Debug)]
pub(super) struct StepGate {
    /// The step of the next row of every reader.
    next: Vec<AtomicU64>,
    /// The highest step at which reading has been allowed.
    current: AtomicU64,
    /// Batches and control messages that somebody still works on or that wait in a channel.
    in_flight: AtomicUsize,
    /// Whether any reader asks for an order.
    ordered: bool,
}

impl StepGate {
    pub(super) fn new(steps: &[Option<u64>]) -> Self {
        Self {
            next: steps
                .iter()
                .map(|s| AtomicU64::new(s.unwrap_or(NEVER)))
                .collect(),
            current: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            ordered: steps.iter().any(Option::is_some),
        }
    }

    /// Whether `reader` may be polled.
    pub(super) fn may_read(&self, reader: usize) -> bool {
        let step = self.next[reader].load(Ordering::SeqCst);
        if step == NEVER || step <= self.current.load(Ordering::SeqCst) {
            return true;
        }
        // First the steps, then the count: whoever publishes a higher step has counted before what
        // it sent at the lower one.
        let lowest = self.next.iter().all(|s| s.load(Ordering::SeqCst) >= step);
        let may = lowest && self.in_flight.load(Ordering::SeqCst) == 0;
        if may {
            self.current.fetch_max(step, Ordering::SeqCst);
        }
        may
    }

    /// `reader` has worked off its last poll and will read `step` next.
    pub(super) fn publish(&self, reader: usize, step: Option<u64>) {
        self.next[reader].store(step.unwrap_or(NEVER), Ordering::SeqCst);
    }

    /// Something has begun that belongs to the current step.
    pub(super) fn enter(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    /// So many are over. Answers whether nothing is in flight now.
    pub(super) fn leave(&self, count: usize) -> bool {
        self.in_flight.fetch_sub(count, Ordering::SeqCst) == count
    }

    /// Whether any reader asks for an order.
    pub(super) fn is_ordered(&self) -> bool {
        self.ordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_waits_for_the_lower_ones() {
        let gate = StepGate::new(&[Some(1), Some(2), None]);
        assert!(gate.may_read(0));
        assert!(!gate.may_read(1));
        assert!(gate.may_read(2));
        gate.enter();
        gate.publish(0, Some(3));
        assert!(!gate.may_read(1));
        assert!(gate.leave(1));
        assert!(gate.may_read(1));
        assert!(!gate.may_read(0));
    }

    #[test]
    fn an_ended_reader_holds_nobody_up() {
        let gate = StepGate::new(&[Some(1), Some(5)]);
        assert!(!gate.may_read(1));
        gate.publish(0, None);
        assert!(gate.may_read(1));
    }
}
