//! One watermark out of many: the rules by which the watermarks and the idleness of a vertex's
//! inputs become the watermark and the idleness of the vertex.
//!
//! A pure state machine. The rules, each with a test:
//! 1. The combined watermark is the minimum over the inputs that count, and never goes back.
//! 2. An idle input does not count.
//! 3. When the last active input goes idle, the maximum over all inputs is emitted once, then
//!    `Idle`: the result does not depend on which input went idle first.
//! 4. A waking input counts only once its watermark has caught up with the combined one.
//! 5. `Active` is announced even when the combined watermark does not advance; the minimum is derived
//!    anew at every change of status.
//! 6. A finished input is left out like an idle one and brings no `i64::MAX` while others live;
//!    when all are finished the watermark is `i64::MAX`.

use super::output::Status;

/// What a change of one input does to the combination.
///
/// `Active` is to be announced before the watermark, `Idle` after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Combined {
    /// The combined watermark has risen to this.
    pub watermark: Option<i64>,
    /// The combined status has become this.
    pub status: Option<Status>,
}

#[derive(Debug, Clone, Copy)]
struct Channel {
    watermark: i64,
    active: bool,
    caught_up: bool,
    finished: bool,
}

/// Combines the watermarks of inputs.
#[derive(Debug)]
pub struct WatermarkCombiner {
    channels: Vec<Channel>,
    emitted: i64,
    status: Status,
}

impl WatermarkCombiner {
    /// A combiner of `inputs` inputs, all active and without a watermark.
    #[must_use]
    pub fn new(inputs: usize) -> Self {
        let channel = Channel {
            watermark: i64::MIN,
            active: true,
            caught_up: true,
            finished: false,
        };
        Self {
            channels: vec![channel; inputs],
            emitted: i64::MIN,
            status: Status::Active,
        }
    }

    /// A combiner that goes on where another has been: `inputs` have their last watermarks, and
    /// `emitted` was the combined one. An input that is behind it does not count until it has caught
    /// up.
    #[must_use]
    pub fn restored(inputs: &[Option<i64>], emitted: Option<i64>) -> Self {
        let emitted = emitted.unwrap_or(i64::MIN);
        let mut combiner = Self::new(inputs.len());
        combiner.emitted = emitted;
        for (channel, watermark) in combiner.channels.iter_mut().zip(inputs) {
            channel.watermark = watermark.unwrap_or(i64::MIN);
            channel.caught_up = channel.watermark >= emitted;
        }
        combiner
    }

    /// The combined watermark; `i64::MIN` before the first.
    #[must_use]
    pub fn watermark(&self) -> i64 {
        self.emitted
    }

    /// Whether all inputs have finished.
    #[must_use]
    pub fn all_finished(&self) -> bool {
        self.channels.iter().all(|c| c.finished)
    }

    /// Input `input` has sent a watermark. `i64::MAX` finishes it; an idle input's is ignored.
    pub fn on_watermark(&mut self, input: usize, watermark: i64) -> Combined {
        if watermark == i64::MAX {
            return self.on_end(input);
        }
        let channel = &mut self.channels[input];
        if channel.finished || !channel.active || watermark <= channel.watermark {
            return Combined::default();
        }
        channel.watermark = watermark;
        channel.caught_up |= watermark >= self.emitted;
        Combined {
            watermark: self.rise_to_minimum(),
            status: None,
        }
    }

    /// Input `input` has changed its status.
    pub fn on_status(&mut self, input: usize, status: Status) -> Combined {
        let emitted = self.emitted;
        let channel = &mut self.channels[input];
        let active = status == Status::Active;
        if channel.finished || channel.active == active {
            return Combined::default();
        }
        channel.active = active;
        if active {
            channel.caught_up = channel.watermark >= emitted;
            let status = self.change(Status::Active);
            let watermark = self.rise_to_minimum();
            return Combined { watermark, status };
        }
        channel.caught_up = false;
        self.without_one()
    }

    /// Input `input` has ended.
    pub fn on_end(&mut self, input: usize) -> Combined {
        let channel = &mut self.channels[input];
        if channel.finished {
            return Combined::default();
        }
        channel.finished = true;
        channel.active = false;
        channel.caught_up = false;
        if self.all_finished() {
            return Combined {
                watermark: self.rise(i64::MAX),
                status: self.change(Status::Active),
            };
        }
        self.without_one()
    }

    /// An input has stopped to count.
    fn without_one(&mut self) -> Combined {
        if self.channels.iter().any(|c| c.active) {
            return Combined {
                watermark: self.rise_to_minimum(),
                status: None,
            };
        }
        let maximum = self.channels.iter().map(|c| c.watermark).max();
        Combined {
            watermark: maximum.and_then(|w| self.rise(w)),
            status: self.change(Status::Idle),
        }
    }

    fn rise_to_minimum(&mut self) -> Option<i64> {
        let counting = self.channels.iter().filter(|c| c.active && c.caught_up);
        let minimum = counting.map(|c| c.watermark).min()?;
        self.rise(minimum)
    }

    fn rise(&mut self, watermark: i64) -> Option<i64> {
        (watermark > self.emitted).then(|| {
            self.emitted = watermark;
            watermark
        })
    }

    fn change(&mut self, status: Status) -> Option<Status> {
        (self.status != status).then(|| {
            self.status = status;
            status
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{Active, Idle};
    use super::*;

    fn wm(watermark: i64) -> Combined {
        Combined {
            watermark: Some(watermark),
            status: None,
        }
    }

    fn status(status: Status) -> Combined {
        Combined {
            watermark: None,
            status: Some(status),
        }
    }

    const NOTHING: Combined = Combined {
        watermark: None,
        status: None,
    };

    #[test]
    fn the_minimum_counts_and_never_goes_back() {
        let mut c = WatermarkCombiner::new(2);
        assert_eq!(c.on_watermark(0, 10), NOTHING);
        assert_eq!(c.on_watermark(1, 5), wm(5));
        assert_eq!(c.on_watermark(1, 3), NOTHING);
        assert_eq!(c.on_watermark(1, 5), NOTHING);
        assert_eq!(c.on_watermark(1, 20), wm(10));
        assert_eq!(c.watermark(), 10);
    }

    #[test]
    fn an_idle_input_does_not_hold_back() {
        let mut c = WatermarkCombiner::new(2);
        assert_eq!(c.on_watermark(0, 10), NOTHING);
        assert_eq!(c.on_watermark(1, 5), wm(5));
        assert_eq!(c.on_status(1, Idle), wm(10));
        assert_eq!(c.on_watermark(0, 12), wm(12));
        assert_eq!(c.on_watermark(1, 100), NOTHING);
    }

    #[test]
    fn when_all_go_idle_the_maximum_is_flushed_in_either_order() {
        for order in [[0, 1], [1, 0]] {
            let mut c = WatermarkCombiner::new(2);
            let _ = c.on_watermark(0, 10);
            let _ = c.on_watermark(1, 5);
            let mut last = i64::MIN;
            for (i, input) in order.into_iter().enumerate() {
                let combined = c.on_status(input, Idle);
                last = combined.watermark.unwrap_or(last);
                assert_eq!(combined.status, (i == 1).then_some(Idle));
            }
            assert_eq!(last, 10);
            assert_eq!(c.on_status(0, Idle), NOTHING);
        }
    }

    #[test]
    fn a_waking_input_is_left_out_until_it_has_caught_up() {
        let mut c = WatermarkCombiner::new(2);
        let _ = c.on_watermark(0, 10);
        let _ = c.on_watermark(1, 5);
        assert_eq!(c.on_status(1, Idle), wm(10));
        assert_eq!(c.on_status(1, Active), NOTHING);
        assert_eq!(c.on_watermark(1, 7), NOTHING);
        assert_eq!(c.on_watermark(0, 15), wm(15));
        assert_eq!(c.on_watermark(1, 14), NOTHING);
        assert_eq!(c.on_watermark(1, 16), NOTHING);
        assert_eq!(c.on_watermark(0, 20), wm(16));
    }

    #[test]
    fn the_only_active_input_is_silent_while_it_catches_up() {
        let mut c = WatermarkCombiner::new(2);
        let _ = c.on_watermark(0, 10);
        let _ = c.on_status(0, Idle);
        assert_eq!(c.on_status(1, Idle).watermark, Some(10));
        assert_eq!(c.on_status(1, Active), status(Active));
        assert_eq!(c.on_watermark(1, 9), NOTHING);
        assert_eq!(c.on_watermark(1, 11), wm(11));
    }

    #[test]
    fn active_is_announced_without_a_new_watermark() {
        let mut c = WatermarkCombiner::new(1);
        assert_eq!(c.on_watermark(0, 10), wm(10));
        assert_eq!(c.on_status(0, Idle), status(Idle));
        assert_eq!(c.on_status(0, Active), status(Active));
        assert_eq!(c.on_status(0, Active), NOTHING);
        assert_eq!(c.on_watermark(0, 11), wm(11));
    }

    #[test]
    fn the_minimum_is_derived_anew_at_a_change_of_status() {
        let mut c = WatermarkCombiner::new(3);
        let _ = c.on_watermark(0, 10);
        let _ = c.on_watermark(1, 20);
        assert_eq!(c.on_watermark(2, 5), wm(5));
        assert_eq!(c.on_status(0, Idle), NOTHING);
        assert_eq!(c.on_status(2, Idle), wm(20));
        assert_eq!(c.on_status(0, Active), NOTHING);
        assert_eq!(c.on_watermark(1, 30), wm(30));
    }

    #[test]
    fn a_finished_input_brings_no_maximum_while_others_live() {
        let mut c = WatermarkCombiner::new(2);
        let _ = c.on_watermark(0, 10);
        assert_eq!(c.on_watermark(1, 5), wm(5));
        assert_eq!(c.on_watermark(0, i64::MAX), NOTHING);
        assert_eq!(c.on_watermark(1, 7), wm(7));
        // As an idle one: its last watermark is part of the maximum, MAX is not.
        assert_eq!(
            c.on_status(1, Idle),
            Combined {
                watermark: Some(10),
                status: Some(Idle)
            }
        );
        assert_eq!(c.on_status(1, Active), status(Active));
        assert_eq!(c.on_end(1), wm(i64::MAX));
        assert!(c.all_finished());
    }

    #[test]
    fn a_finished_input_does_not_hold_back() {
        let mut c = WatermarkCombiner::new(2);
        let _ = c.on_watermark(0, 3);
        assert_eq!(c.on_watermark(1, 8), wm(3));
        assert_eq!(c.on_end(0), wm(8));
        assert_eq!(c.on_end(0), NOTHING);
        assert_eq!(c.on_status(0, Active), NOTHING);
    }

    #[test]
    fn a_restored_combiner_goes_on() {
        let mut c = WatermarkCombiner::restored(&[Some(15), None], None);
        assert_eq!(c.on_watermark(1, 12), wm(12));
        // Input 1 was idle when the watermark rose to 15.
        let mut c = WatermarkCombiner::restored(&[Some(15), Some(3)], Some(15));
        assert_eq!(c.on_watermark(1, 12), NOTHING);
        assert_eq!(c.on_watermark(0, 20), wm(20));
        assert_eq!(c.on_watermark(1, 20), NOTHING);
        assert_eq!(c.on_watermark(0, 30), NOTHING);
        assert_eq!(c.on_watermark(1, 25), wm(25));
    }

    #[test]
    fn the_end_of_an_idle_stream_is_announced() {
        let mut c = WatermarkCombiner::new(1);
        assert_eq!(c.on_status(0, Idle), status(Idle));
        assert_eq!(
            c.on_end(0),
            Combined {
                watermark: Some(i64::MAX),
                status: Some(Active)
            }
        );
    }
}
