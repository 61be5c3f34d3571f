//! The two-phase commit of a checkpoint as a pure state machine: what comes next, whatever happens.
//!
//! ```text
//! a checkpoint:  pre-committed -> Save -> Commit -> Mark -> Done
//! a start:       newest found  -> [Commit -> Mark ->] Abort -> Done
//! ```
//!
//! `Save` is the commit point. Before it, a failure means that the rows behind the last checkpoint are
//! aborted by the next start and read again; after it, that the next start commits what is not
//! marked. Every step may be repeated: committing is idempotent, and so are the others. Whoever runs
//! the machine MUST stop at the first step that fails, and begin again with
//! [`recovered`](TwoPhase::recovered).

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Make the checkpoint durable.
    Save,
    /// Make visible all that it holds of pre-committed rows.
    Commit,
    /// Remember that all is visible.
    Mark,
    /// Remove what was pre-committed or written after the checkpoint.
    Abort,
    /// Nothing.
    Done,
}

/// Where the commit of one checkpoint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TwoPhase {
    epoch: u64,
    step: Step,
    recovers: bool,
}

impl TwoPhase {
    /// All sinks have pre-committed the rows before barrier `epoch`.
    #[must_use]
    pub fn prepared(epoch: u64) -> Self {
        Self {
            epoch,
            step: Step::Save,
            recovers: false,
        }
    }

    /// A job starts, or starts again: `newest` is the newest checkpoint that is whole, and whether it
    /// is marked.
    #[must_use]
    pub fn recovered(newest: Option<(u64, bool)>) -> Self {
        let unmarked = newest.is_some_and(|(_, marked)| !marked);
        Self {
            epoch: newest.map_or(0, |(epoch, _)| epoch),
            step: if unmarked { Step::Commit } else { Step::Abort },
            recovers: true,
        }
    }

    /// The checkpoint; 0 for none.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What is to be done now.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// The step has succeeded.
    pub fn succeeded(&mut self) {
        self.step = match self.step {
            Step::Save => Step::Commit,
            Step::Commit => Step::Mark,
            Step::Mark if self.recovers => Step::Abort,
            Step::Mark | Step::Abort | Step::Done => Step::Done,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use super::*;

    const EPOCHS: u64 = 3;
    const FAILURES: u8 = 3;

    /// What happens to a step.
    #[derive(Debug, Clone, Copy)]
    enum Outcome {
        Works,
        /// It has no effect.
        Fails,
        /// It has its effect, and nobody hears of it.
        FailsLate,
    }

    /// Rows of one epoch of two sinks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Rows {
        None,
        Prepared,
        Visible,
    }

    /// All that survives a crash, and the machine.
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
    struct World {
        /// By epoch, by sink.
        sinks: [[Rows; 2]; EPOCHS as usize + 1],
        /// The newest durable checkpoint, and whether it is marked.
        newest: Option<(u64, bool)>,
        failures: u8,
        /// How often rows of an epoch were made visible.
        shown: [[u8; 2]; EPOCHS as usize + 1],
    }

    impl World {
        /// Does a step up to sink `until` of the two (the others it does as a whole).
        fn apply(&mut self, machine: TwoPhase, until: usize) {
            let epoch = machine.epoch();
            match machine.step() {
                Step::Save => self.newest = Some((epoch, false)),
                Step::Commit => {
                    for sink in 0..until {
                        let at = usize::try_from(epoch).unwrap();
                        let rows = &mut self.sinks[at][sink];
                        assert_ne!(*rows, Rows::None, "rows that were committed are gone");
                        if *rows == Rows::Prepared {
                            *rows = Rows::Visible;
                            self.shown[at][sink] += 1;
                        }
                    }
                }
                Step::Mark => self.newest = Some((epoch, true)),
                Step::Abort => {
                    for later in usize::try_from(epoch).unwrap() + 1..self.sinks.len() {
                        for rows in &mut self.sinks[later][..until] {
                            assert_ne!(*rows, Rows::Visible, "visible before it was durable");
                            *rows = Rows::None;
                        }
                    }
                }
                Step::Done => {}
            }
        }

        fn check(&self) {
            let durable = self.newest.map_or(0, |(epoch, _)| epoch);
            for (epoch, shown) in (0..).zip(&self.shown) {
                for count in shown {
                    assert!(*count <= 1, "shown twice: {self:?}");
                    assert!(*count == 0 || epoch <= durable, "not durable: {self:?}");
                    // Behind the newest all is visible, and with its mark too.
                    let settled = epoch < durable || self.newest == Some((epoch, true));
                    assert!(epoch == 0 || !settled || *count == 1, "lost: {self:?}");
                }
            }
        }
    }

    /// Every sequence of steps that work, fail, or fail after their effect, with a restart after each
    /// failure: nothing is shown twice, too early, or never.
    #[test]
    fn whatever_fails_rows_appear_once() {
        let start = World {
            sinks: [[Rows::None; 2]; EPOCHS as usize + 1],
            newest: None,
            failures: 0,
            shown: [[0; 2]; EPOCHS as usize + 1],
        };
        let mut seen = BTreeSet::new();
        let mut queue = VecDeque::from([(start, TwoPhase::recovered(None))]);
        let mut finished = 0;
        while let Some((world, machine)) = queue.pop_front() {
            let key = (world.clone(), format!("{machine:?}"));
            if !seen.insert(key) {
                continue;
            }
            world.check();
            if machine.step() == Step::Done {
                let next = world.newest.map_or(0, |(epoch, _)| epoch) + 1;
                if next > EPOCHS {
                    let all = world.shown[1..].iter().flatten().all(|shown| *shown == 1);
                    assert!(all, "lost: {world:?}");
                    finished += 1;
                    continue;
                }
                // The next checkpoint: one sink after the other pre-commits; a crash may come between.
                for prepared in 0..=2 {
                    let mut world = world.clone();
                    for sink in 0..prepared {
                        world.sinks[usize::try_from(next).unwrap()][sink] = Rows::Prepared;
                    }
                    if prepared == 2 {
                        queue.push_back((world, TwoPhase::prepared(next)));
                    } else if world.failures < FAILURES {
                        world.failures += 1;
                        let machine = TwoPhase::recovered(world.newest);
                        queue.push_back((world, machine));
                    }
                }
                continue;
            }
            for outcome in [Outcome::Works, Outcome::Fails, Outcome::FailsLate] {
                for until in 0..=2 {
                    let (mut world, mut machine) = (world.clone(), machine);
                    match outcome {
                        Outcome::Works if until == 2 => {
                            world.apply(machine, until);
                            machine.succeeded();
                        }
                        Outcome::FailsLate if world.failures < FAILURES => {
                            world.failures += 1;
                            world.apply(machine, until);
                            machine = TwoPhase::recovered(world.newest);
                        }
                        Outcome::Fails if until == 0 && world.failures < FAILURES => {
                            world.failures += 1;
                            machine = TwoPhase::recovered(world.newest);
                        }
                        _ => continue,
                    }
                    queue.push_back((world, machine));
                }
            }
        }
        assert!(finished > 0 && seen.len() > 100, "{} states", seen.len());
    }

    #[test]
    fn a_marked_checkpoint_is_not_committed_again() {
        let steps = |mut machine: TwoPhase| {
            let mut steps = Vec::new();
            while machine.step() != Step::Done {
                steps.push(machine.step());
                machine.succeeded();
            }
            steps
        };
        let all = [Step::Save, Step::Commit, Step::Mark];
        assert_eq!(steps(TwoPhase::prepared(7)), all);
        let unmarked = TwoPhase::recovered(Some((7, false)));
        assert_eq!(steps(unmarked), [Step::Commit, Step::Mark, Step::Abort]);
        assert_eq!(steps(TwoPhase::recovered(Some((7, true)))), [Step::Abort]);
        assert_eq!(steps(TwoPhase::recovered(None)), [Step::Abort]);
    }
}
