//! Windows over time: which a row belongs to, and when they are over.
//!
//! Windows are cut on wall-clock time: of a `TIMESTAMP_LTZ` attribute, the session zone's. So a day
//! in a zone with daylight saving time has 23 or 25 hours on two days a year. Whether a window is
//! over is decided on instants: [`Windowing::timer`] is the instant that the watermark must reach.

use chrono_tz::Tz;

use crate::types::calendar::{local_to_instant, utc_offset};

const HOUR_MS: i64 = 3_600_000;
/// Clocks of all zones change at multiples of this.
const BLOCK_MS: i64 = 900_000;

/// The shapes of windows; all lengths in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// One after the other.
    Tumble {
        /// Length.
        size: i64,
        /// Shift of the start.
        offset: i64,
    },
    /// A new one every `slide`, overlapping if `size` is more.
    Hop {
        /// Distance of starts.
        slide: i64,
        /// Length.
        size: i64,
        /// Shift of the start.
        offset: i64,
    },
    /// Growing by `step` up to `size`, then anew.
    Cumulate {
        /// Growth.
        step: i64,
        /// Greatest length.
        size: i64,
        /// Shift of the start.
        offset: i64,
    },
    /// As long as no gap between rows of a key is greater.
    Session {
        /// The gap that ends a window.
        gap: i64,
    },
}

/// The time that windows are cut on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowTime {
    /// The event time in this column.
    Rowtime(usize),
    /// The clock.
    Proctime,
}

/// Windows of a shape in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windowing {
    /// The shape.
    pub kind: WindowKind,
    /// The zone of wall-clock time, if the time attribute is an instant: a `TIMESTAMP_LTZ`, or
    /// processing time.
    pub zone: Option<Tz>,
}

/// A window in wall-clock ms: from `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeWindow {
    /// First millisecond.
    pub start: i64,
    /// Millisecond after the last.
    pub end: i64,
}

/// The start of the window of `size`, aligned to `offset`, that `time` lies in.
#[must_use]
pub fn window_start(time: i64, offset: i64, size: i64) -> i64 {
    time.saturating_sub((time.wrapping_sub(offset)).rem_euclid(size))
}

impl Windowing {
    /// Windows of `kind` on wall-clock time of `zone`.
    #[must_use]
    pub fn new(kind: WindowKind, zone: Option<Tz>) -> Self {
        Self {
            kind,
            zone: zone.filter(|zone| *zone != Tz::UTC),
        }
    }

    /// Wall-clock times of instants; the times themselves without a zone.
    pub fn wall_times(&self, times: &[i64]) -> Vec<i64> {
        let Some(zone) = self.zone else {
            return times.to_vec();
        };
        let mut known = None;
        let shift = |time: &i64| {
            let block = time.div_euclid(BLOCK_MS);
            let offset = match known {
                Some((known_block, offset)) if known_block == block => offset,
                _ => utc_offset(zone, time.div_euclid(1000)) * 1000,
            };
            known = Some((block, offset));
            time.saturating_add(offset)
        };
        times.iter().map(shift).collect()
    }

    /// The wall-clock time of one instant.
    #[must_use]
    pub fn wall_time(&self, time: i64) -> i64 {
        self.zone.map_or(time, |zone| {
            time.saturating_add(utc_offset(zone, time.div_euclid(1000)) * 1000)
        })
    }

    /// The instant at which clocks show `wall`; the first, if there are two.
    #[must_use]
    pub fn instant(&self, wall: i64) -> i64 {
        self.zone.map_or(wall, |zone| instant(zone, wall))
    }

    /// The instant that the watermark must have reached for all rows up to the wall-clock time
    /// `wall` to be there: the second, if clocks show it twice.
    #[must_use]
    pub fn timer(&self, wall: i64) -> i64 {
        let Some(zone) = self.zone.filter(|_| wall != i64::MAX) else {
            return wall;
        };
        let first = instant(zone, wall);
        let hour_later = instant(zone, wall.saturating_add(HOUR_MS));
        if first == hour_later {
            // Clocks skip `wall`: what is before it has ended with the hour before.
            first - first % HOUR_MS
        } else if hour_later - first > HOUR_MS {
            first + HOUR_MS
        } else {
            first
        }
    }

    /// The value of `window_time`, and of a time attribute made of a window: its last millisecond.
    #[must_use]
    pub fn window_time(&self, end: i64) -> i64 {
        self.instant(end.saturating_sub(1))
    }

    /// Whether the window that ends at `end` is over at `watermark`.
    #[must_use]
    pub fn is_over(&self, end: i64, watermark: i64) -> bool {
        watermark != i64::MIN && end != i64::MAX && self.timer(end.saturating_sub(1)) <= watermark
    }

    /// The windows of a row, in Flink's order, into `windows`, which is cleared. A session is that
    /// of the row alone.
    pub fn assign(&self, time: i64, windows: &mut Vec<TimeWindow>) {
        windows.clear();
        let of = |start: i64, end: i64| TimeWindow { start, end };
        match self.kind {
            WindowKind::Tumble { size, offset } => {
                let start = window_start(time, offset, size);
                windows.push(of(start, start.saturating_add(size)));
            }
            WindowKind::Hop {
                slide,
                size,
                offset,
            } => {
                let mut start = window_start(time, offset, slide);
                while start > time.saturating_sub(size) {
                    windows.push(of(start, start.saturating_add(size)));
                    start -= slide;
                }
            }
            WindowKind::Cumulate { step, size, offset } => {
                let start = window_start(time, offset, size);
                let last = start.saturating_add(size);
                let mut end = window_start(time, offset, step).saturating_add(step);
                while end <= last {
                    windows.push(of(start, end));
                    end = end.saturating_add(step);
                }
            }
            WindowKind::Session { gap } => windows.push(of(time, time.saturating_add(gap))),
        }
    }

    /// The length of the slices that windows are made of; none for sessions.
    #[must_use]
    pub fn slice_size(&self) -> Option<i64> {
        match self.kind {
            WindowKind::Tumble { size, .. } => Some(size),
            WindowKind::Hop { slide, size, .. } => Some(gcd(slide, size)),
            WindowKind::Cumulate { step, .. } => Some(step),
            WindowKind::Session { .. } => None,
        }
    }

    /// The end of the slice that `time` lies in.
    #[must_use]
    pub fn slice_end(&self, time: i64) -> i64 {
        let offset = match self.kind {
            WindowKind::Tumble { offset, .. }
            | WindowKind::Hop { offset, .. }
            | WindowKind::Cumulate { offset, .. } => offset,
            WindowKind::Session { .. } => 0,
        };
        self.slice_size().map_or(time, |size| {
            window_start(time, offset, size).saturating_add(size)
        })
    }

    /// The start of the window that ends at `end`; of a session, the end.
    #[must_use]
    pub fn start_of(&self, end: i64) -> i64 {
        match self.kind {
            WindowKind::Tumble { size, .. } | WindowKind::Hop { size, .. } => end - size,
            WindowKind::Cumulate { size, offset, .. } => window_start(end - 1, offset, size),
            WindowKind::Session { .. } => end,
        }
    }

    /// The distance between the ends of windows that share a slice.
    #[must_use]
    pub fn interval(&self) -> i64 {
        match self.kind {
            WindowKind::Tumble { size, .. } => size,
            WindowKind::Hop { slide, .. } => slide,
            WindowKind::Cumulate { step, .. } => step,
            WindowKind::Session { .. } => 1,
        }
    }
}

fn instant(zone: Tz, wall: i64) -> i64 {
    local_to_instant(zone, wall.div_euclid(1000)) * 1000 + wall.rem_euclid(1000)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap();
        time.and_utc().timestamp_millis()
    }

    fn assigned(kind: WindowKind, time: i64) -> Vec<(i64, i64)> {
        let mut windows = Vec::new();
        Windowing::new(kind, None).assign(time, &mut windows);
        windows.iter().map(|w| (w.start, w.end)).collect()
    }

    #[test]
    fn rows_fall_into_the_windows_of_flink() {
        let tumble = |offset| WindowKind::Tumble { size: 10, offset };
        assert_eq!(assigned(tumble(0), -1), [(-10, 0)]);
        assert_eq!(assigned(tumble(3), 1), [(-7, 3)]);
        assert_eq!(assigned(tumble(-3), 0), [(-3, 7)]);
        let hop = |slide, size| WindowKind::Hop {
            slide,
            size,
            offset: 0,
        };
        assert_eq!(assigned(hop(3, 7), 0), [(0, 7), (-3, 4), (-6, 1)]);
        assert_eq!(assigned(hop(5, 2), 3), []);
        assert_eq!(assigned(hop(5, 10), -11), [(-15, -5), (-20, -10)]);
        let cumulate = WindowKind::Cumulate {
            step: 5,
            size: 15,
            offset: 0,
        };
        assert_eq!(assigned(cumulate, -11), [(-15, -10), (-15, -5), (-15, 0)]);
        assert_eq!(assigned(cumulate, -1), [(-15, 0)]);
        assert_eq!(assigned(WindowKind::Session { gap: 4 }, 7), [(7, 11)]);
    }

    #[test]
    fn slices_know_their_windows() {
        let hop = WindowKind::Hop {
            slide: 5,
            size: 10,
            offset: 0,
        };
        let hop = Windowing::new(hop, None);
        let facts = |w: &Windowing, t| {
            let end = w.slice_end(t);
            (end, w.start_of(end))
        };
        assert_eq!(facts(&hop, 7), (10, 0));
        let cumulate = WindowKind::Cumulate {
            step: 5,
            size: 15,
            offset: 1,
        };
        let cumulate = Windowing::new(cumulate, None);
        assert_eq!(facts(&cumulate, 7), (11, 1));
        assert_eq!(facts(&cumulate, 0), (1, -14));
    }

    #[test]
    fn days_have_the_length_of_the_zone() {
        let day = WindowKind::Tumble {
            size: 24 * HOUR_MS,
            offset: 0,
        };
        let berlin = Windowing::new(day, Some(chrono_tz::Europe::Berlin));
        for (time, end, over) in [
            (
                "2024-03-31 00:59:59.999",
                "2024-04-01 00:00:00",
                "2024-03-31 21:59:59.999",
            ),
            (
                "2024-10-27 22:59:59.999",
                "2024-10-28 00:00:00",
                "2024-10-27 22:59:59.999",
            ),
            (
                "2024-10-27 23:00:00",
                "2024-10-29 00:00:00",
                "2024-10-28 22:59:59.999",
            ),
        ] {
            let slice_end = berlin.slice_end(berlin.wall_times(&[ms(time)])[0]);
            assert_eq!(slice_end, ms(end));
            assert_eq!(berlin.timer(slice_end - 1), ms(over));
            assert_eq!(berlin.window_time(slice_end), ms(over));
        }
    }

    #[test]
    fn an_hour_that_comes_twice_is_over_after_the_second() {
        let hour = WindowKind::Tumble {
            size: HOUR_MS,
            offset: 0,
        };
        let berlin = Windowing::new(hour, Some(chrono_tz::Europe::Berlin));
        let end = ms("2024-10-27 03:00:00");
        let times = [ms("2024-10-27 00:30:00"), ms("2024-10-27 01:30:00")];
        assert!(
            berlin
                .wall_times(&times)
                .iter()
                .all(|t| berlin.slice_end(*t) == end)
        );
        assert!(!berlin.is_over(end, ms("2024-10-27 01:59:59.998")));
        assert!(berlin.is_over(end, ms("2024-10-27 01:59:59.999")));
        let skipped = ms("2024-03-31 03:00:00");
        assert!(berlin.is_over(skipped, ms("2024-03-31 01:00:00")));
        assert!(!berlin.is_over(skipped, i64::MIN));
    }
}
