//! A channel from a subtask to a subtask of another task.
//!
//! Bounded by rows and by bytes; a batch passes when there is any room at all, so that no batch is
//! too large. Watermarks, barriers and the end are never held up by the bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock::monotonic_ns;
use super::control::{Attempt, Signal, lock};
use super::node::Event;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};

/// A channel that holds so many bytes is full.
const BYTES: usize = 16 << 20;
/// How long a blocked producer waits before it looks whether the job goes on.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Default)]
struct State {
    queue: VecDeque<(Event, usize)>,
    rows: usize,
    bytes: usize,
    /// The producer waits for room.
    blocked: bool,
}

pub(super) struct Channel {
    state: Mutex<State>,
    producer: Arc<Signal>,
    consumer: Arc<Signal>,
    attempt: Attempt,
    /// With so many rows it is full.
    max_rows: usize,
}

/// What a channel gave: the event, and how many messages it was made of.
pub(super) struct Received {
    pub(super) event: Event,
    pub(super) messages: usize,
}

impl Channel {
    pub(super) fn new(
        producer: &Arc<Signal>,
        consumer: &Arc<Signal>,
        attempt: &Attempt,
        max_rows: usize,
    ) -> Self {
        Self {
            state: Mutex::default(),
            producer: Arc::clone(producer),
            consumer: Arc::clone(consumer),
            attempt: attempt.clone(),
            max_rows: max_rows.max(1),
        }
    }

    fn has_room(&self, state: &State) -> bool {
        state.rows < self.max_rows && state.bytes < BYTES
    }

    /// Sends; waits for room if `event` is a batch, of `bytes` bytes. Answers how long it waited, ns.
    pub(super) fn send(&self, event: Event, bytes: usize) -> Result<u64> {
        let mut state = lock(&self.state);
        let mut waited = 0;
        if let Event::Batch(batch) = &event {
            if !self.has_room(&state) {
                let start = monotonic_ns();
                while !self.has_room(&state) {
                    state.blocked = true;
                    drop(state);
                    if self.attempt.is_stopped() {
                        return Err(Error::execution("the job was cancelled"));
                    }
                    self.producer.wait(LOOK);
                    state = lock(&self.state);
                }
                waited = monotonic_ns() - start;
            }
            state.rows += batch.len();
            state.bytes += bytes;
        }
        let wake = state.queue.is_empty();
        state.queue.push_back((event, bytes));
        drop(state);
        if wake {
            self.consumer.notify();
        }
        Ok(waited)
    }

    /// The next event. Batches that wait behind each other come as one of up to `max_rows` rows.
    pub(super) fn receive(&self, max_rows: usize) -> Result<Option<Received>> {
        let mut state = lock(&self.state);
        let Some(first) = state.take() else {
            return Ok(None);
        };
        let Event::Batch(batch) = first else {
            return Ok(Some(Received {
                event: first,
                messages: 1,
            }));
        };
        let mut rows = batch.len();
        let mut batches = vec![batch];
        while let Some((Event::Batch(next), _)) = state.queue.front()
            && rows + next.len() <= max_rows
        {
            rows += next.len();
            if let Some(Event::Batch(next)) = state.take() {
                batches.push(next);
            }
        }
        let wake = state.blocked && self.has_room(&state);
        state.blocked &= !wake;
        drop(state);
        if wake {
            self.producer.notify();
        }
        let messages = batches.len();
        let event = Event::Batch(ChangeBatch::concat(batches)?);
        Ok(Some(Received { event, messages }))
    }
}

impl State {
    fn take(&mut self) -> Option<Event> {
        let (event, bytes) = self.queue.pop_front()?;
        if let Event::Batch(batch) = &event {
            self.rows -= batch.len();
            self.bytes -= bytes;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::runtime::control::JobControl;
    use crate::runtime::testing::{batch, insert, rows};

    fn channel() -> Channel {
        let signal = || Arc::new(Signal::default());
        Channel::new(
            &signal(),
            &signal(),
            &Attempt::new(&JobControl::default()),
            100,
        )
    }

    fn event(values: &[i64]) -> Event {
        Event::Batch(batch(
            &values.iter().map(|v| insert(&[*v])).collect::<Vec<_>>(),
        ))
    }

    #[test]
    fn waiting_batches_come_as_one_up_to_the_next_control_message() {
        let channel = channel();
        for values in [&[1, 2][..], &[3], &[4, 5]] {
            channel.send(event(values), 8).unwrap();
        }
        channel.send(Event::Watermark(1), 0).unwrap();
        channel.send(event(&[6]), 8).unwrap();
        let mut seen = Vec::new();
        while let Some(received) = channel.receive(4).unwrap() {
            seen.push(match received.event {
                Event::Batch(batch) => (received.messages, rows(&batch).len()),
                _ => (received.messages, 0),
            });
        }
        assert_eq!(seen, [(2, 3), (1, 2), (1, 0), (1, 1)]);
    }

    #[test]
    fn a_full_channel_holds_up_batches_but_not_watermarks() {
        let channel = Arc::new(channel());
        channel.send(event(&[1]), BYTES).unwrap();
        channel.send(Event::Watermark(1), 0).unwrap();
        let producer = thread::spawn({
            let channel = Arc::clone(&channel);
            move || channel.send(event(&[2]), 8).unwrap()
        });
        while !lock(&channel.state).blocked {
            thread::yield_now();
        }
        assert!(channel.receive(10).unwrap().is_some());
        producer.join().unwrap();
        assert_eq!(lock(&channel.state).queue.len(), 2);
    }

    #[test]
    fn a_blocked_producer_is_released_by_a_cancelled_job() {
        let channel = channel();
        channel.send(event(&[1]), BYTES).unwrap();
        channel.attempt.stop();
        assert!(channel.send(event(&[2]), 8).is_err());
    }
}
