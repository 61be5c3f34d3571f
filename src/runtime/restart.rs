//! Whether and when a failed job is started again.

use std::collections::VecDeque;
use std::time::Duration;

/// `restart-strategy.type` and its options.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum RestartStrategy {
    /// `none`: the first failure ends the job.
    #[default]
    None,
    /// `fixed-delay`: so many times, after a pause.
    FixedDelay {
        /// Number of restarts.
        attempts: u32,
        /// Pause before each.
        delay: Duration,
    },
    /// `failure-rate`: as long as there are not more failures than this in an interval.
    FailureRate {
        /// Failures that one interval may have.
        max_failures: u32,
        /// Length of the interval.
        interval: Duration,
        /// Pause before each restart.
        delay: Duration,
    },
    /// `exponential-delay`: after pauses that grow with every failure.
    ExponentialDelay {
        /// The first pause.
        initial: Duration,
        /// The longest pause.
        max: Duration,
        /// By how much a pause is longer than the one before.
        multiplier: f64,
        /// After so long a run without failure the pauses begin anew.
        reset: Duration,
        /// Number of restarts before it gives up; `None`: never.
        attempts: Option<u32>,
    },
}

/// Counts failures and decides.
#[derive(Debug)]
pub(super) struct Restarts {
    strategy: RestartStrategy,
    /// Moments of failures that count, ns.
    failures: VecDeque<u64>,
    pause: Duration,
}

impl Restarts {
    pub(super) fn new(strategy: RestartStrategy) -> Self {
        Self {
            strategy,
            failures: VecDeque::new(),
            pause: Duration::ZERO,
        }
    }

    /// The job has failed at `now_ns`: the pause before it is started again, or `None` to give up.
    pub(super) fn on_failure(&mut self, now_ns: u64) -> Option<Duration> {
        let last = self.failures.back().copied();
        self.failures.push_back(now_ns);
        let since = |then: u64| Duration::from_nanos(now_ns.saturating_sub(then));
        match &self.strategy {
            RestartStrategy::None => None,
            RestartStrategy::FixedDelay { attempts, delay } => {
                (self.failures.len() <= *attempts as usize).then_some(*delay)
            }
            RestartStrategy::FailureRate {
                max_failures,
                interval,
                delay,
            } => {
                self.failures.retain(|then| since(*then) <= *interval);
                (self.failures.len() <= *max_failures as usize).then_some(*delay)
            }
            RestartStrategy::ExponentialDelay {
                initial,
                max,
                multiplier,
                reset,
                attempts,
            } => {
                self.pause = match last {
                    Some(then) if since(then) <= *reset + self.pause => {
                        let longer = self.pause.as_secs_f64() * multiplier;
                        Duration::try_from_secs_f64(longer).map_or(*max, |p| p.min(*max))
                    }
                    _ => {
                        self.failures.clear();
                        self.failures.push_back(now_ns);
                        *initial
                    }
                };
                let given_up = attempts.is_some_and(|a| self.failures.len() > a as usize);
                (!given_up).then_some(self.pause)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn pauses(strategy: RestartStrategy, failures: &[u64]) -> Vec<Option<u64>> {
        let mut restarts = Restarts::new(strategy);
        let mut pause = |s: &u64| restarts.on_failure(s * S).map(|p| p.as_secs());
        failures.iter().map(&mut pause).collect()
    }

    #[test]
    fn fixed_delay_gives_up_after_its_attempts() {
        let strategy = RestartStrategy::FixedDelay {
            attempts: 2,
            delay: seconds(1),
        };
        assert_eq!(pauses(strategy, &[0, 9, 99]), [Some(1), Some(1), None]);
        assert_eq!(pauses(RestartStrategy::None, &[0]), [None]);
    }

    #[test]
    fn failure_rate_forgets_old_failures() {
        let strategy = RestartStrategy::FailureRate {
            max_failures: 2,
            interval: seconds(10),
            delay: seconds(1),
        };
        let expected = [Some(1), Some(1), Some(1), None];
        assert_eq!(pauses(strategy, &[0, 5, 12, 14]), expected);
    }

    #[test]
    fn exponential_delay_grows_and_begins_anew() {
        let strategy = RestartStrategy::ExponentialDelay {
            initial: seconds(1),
            max: seconds(3),
            multiplier: 2.0,
            reset: seconds(60),
            attempts: Some(3),
        };
        let expected = [Some(1), Some(2), Some(3), Some(1), Some(2), Some(3), None];
        assert_eq!(pauses(strategy, &[0, 2, 5, 100, 101, 102, 103]), expected);
    }
}
