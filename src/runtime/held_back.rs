//! The source of an at-most-once job: rows go out only when the position behind them is durable.
//!
//! What is read waits until a checkpoint that was taken behind it is complete. After a failure the job
//! goes on from that position, so no row is read twice; what had not gone through is lost. A job that
//! is stopped in peace loses nothing: its last checkpoint holds the position of what has gone out.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::control::JobControl;
use super::task::Report;
use crate::connectors::{SourcePoll, SourceReader, SplitPosition};
use crate::error::Result;

/// A reader that waits for a checkpoint looks again after this long.
const PAUSE: Duration = Duration::from_millis(10);

/// Something that was read, and the positions behind it.
struct Item {
    poll: SourcePoll,
    after: Vec<SplitPosition>,
}

pub(super) struct HeldBack {
    reader: Box<dyn SourceReader>,
    /// In the order of reading: first what is free to go.
    items: VecDeque<Item>,
    /// How many of them are free to go.
    free: usize,
    /// Of checkpoints that are not known to be complete: the positions, and how many items that were
    /// read lie before them (counted from the first one ever).
    marks: RefCell<Vec<(Vec<SplitPosition>, usize)>>,
    /// Items that have gone out.
    gone: usize,
    /// The positions behind these.
    released: Vec<SplitPosition>,
    /// Rows that are not free to go, and how many there may be.
    held_rows: usize,
    limit: usize,
    ended: bool,
    /// A checkpoint has been asked for.
    asked: bool,
    reports: Sender<Report>,
    control: JobControl,
}

impl HeldBack {
    /// `reader`, of which at most about `limit` rows are held back.
    pub(super) fn new(
        reader: Box<dyn SourceReader>,
        limit: usize,
        reports: Sender<Report>,
        control: JobControl,
    ) -> Self {
        Self {
            released: reader.positions(),
            reader,
            items: VecDeque::new(),
            free: 0,
            marks: RefCell::default(),
            gone: 0,
            held_rows: 0,
            limit,
            ended: false,
            asked: false,
            reports,
            control,
        }
    }

    fn hold(&mut self, poll: SourcePoll) {
        self.held_rows += rows(&poll);
        let after = self.reader.positions();
        self.items.push_back(Item { poll, after });
    }

    /// Asks for a checkpoint, for nothing goes on without one.
    fn ask(&mut self) {
        if !std::mem::replace(&mut self.asked, true) {
            let (answer, _) = channel();
            // The coordinator listens until all tasks have ended.
            let _ = self.reports.send(Report::Wanted(answer));
        }
    }
}

fn rows(poll: &SourcePoll) -> usize {
    match poll {
        SourcePoll::Batch(batch) => batch.len(),
        _ => 0,
    }
}

impl SourceReader for HeldBack {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        if self.free > 0
            && let Some(item) = self.items.pop_front()
        {
            self.free -= 1;
            self.gone += 1;
            self.released = item.after;
            return Ok(item.poll);
        }
        if self.ended || self.held_rows >= self.limit {
            self.ask();
            return Ok(SourcePoll::Pending(PAUSE));
        }
        Ok(match self.reader.poll(max_rows)? {
            SourcePoll::Pending(pause) => SourcePoll::Pending(pause),
            SourcePoll::Batch(batch) => {
                let nothing = batch.slice(0, 0);
                self.hold(SourcePoll::Batch(batch));
                SourcePoll::Batch(nothing)
            }
            other => {
                self.ended |= matches!(other, SourcePoll::End);
                self.hold(other);
                SourcePoll::Pending(Duration::ZERO)
            }
        })
    }

    fn positions(&self) -> Vec<SplitPosition> {
        if self.control.is_stopping() {
            return self.released.clone();
        }
        let positions = self.reader.positions();
        let before = self.gone + self.items.len();
        self.marks.borrow_mut().push((positions.clone(), before));
        positions
    }

    fn checkpoint_complete(&mut self, positions: &[SplitPosition]) {
        let mut marks = self.marks.borrow_mut();
        let Some(mark) = marks.iter().position(|(p, _)| p == positions) else {
            return;
        };
        let (_, before) = marks.swap_remove(mark);
        marks.retain(|(_, items)| *items > before);
        drop(marks);
        let free = before.saturating_sub(self.gone).min(self.items.len());
        for item in self.items.iter().take(free).skip(self.free) {
            self.held_rows -= rows(&item.poll);
        }
        self.free = self.free.max(free);
        self.asked = false;
        self.reader.checkpoint_complete(positions);
    }

    fn skipped(&self) -> u64 {
        self.reader.skipped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::testing::{batch, insert};

    /// Rows 0, 1, 2, .. up to a number, one a batch.
    struct Numbers(i64, i64);

    impl SourceReader for Numbers {
        fn poll(&mut self, _: usize) -> Result<SourcePoll> {
            if self.0 == self.1 {
                return Ok(SourcePoll::End);
            }
            self.0 += 1;
            Ok(SourcePoll::Batch(batch(&[insert(&[self.0 - 1])])))
        }

        fn positions(&self) -> Vec<SplitPosition> {
            vec![SplitPosition {
                split: "n".into(),
                position: self.0.to_string(),
            }]
        }
    }

    fn goes_out(reader: &mut HeldBack) -> usize {
        let poll = reader.poll(9).unwrap();
        rows(&poll)
    }

    fn at(reader: &HeldBack) -> String {
        reader.positions()[0].position.clone()
    }

    #[test]
    fn rows_wait_for_the_checkpoint_behind_them() {
        let (reports, wanted) = channel();
        let control = JobControl::default();
        let mut reader = HeldBack::new(Box::new(Numbers(0, 9)), 3, reports, control.clone());
        assert_eq!(goes_out(&mut reader), 0);
        assert_eq!(goes_out(&mut reader), 0);
        let first = reader.positions();
        assert_eq!(first[0].position, "2");
        assert_eq!(goes_out(&mut reader), 0);
        assert!(wanted.try_recv().is_err());
        // three rows are held: it needs a checkpoint, and says so once
        assert_eq!(goes_out(&mut reader), 0);
        assert_eq!(goes_out(&mut reader), 0);
        assert!(matches!(wanted.try_recv(), Ok(Report::Wanted(_))));
        assert!(wanted.try_recv().is_err());
        reader.checkpoint_complete(&first);
        assert_eq!(goes_out(&mut reader), 1);
        // a job that is stopped goes on behind what has gone out
        control.set_stopping();
        assert_eq!(at(&reader), "1");
        control.unset_stopping();
        assert_eq!(goes_out(&mut reader), 1);
        assert_eq!(goes_out(&mut reader), 0);
        assert_eq!(at(&reader), "4");
    }

    #[test]
    fn the_end_comes_behind_the_last_rows() {
        let (reports, wanted) = channel();
        let control = JobControl::default();
        let mut reader = HeldBack::new(Box::new(Numbers(0, 1)), 99, reports, control);
        for _ in 0..3 {
            assert_eq!(goes_out(&mut reader), 0);
        }
        assert!(matches!(wanted.try_recv(), Ok(Report::Wanted(_))));
        let positions = reader.positions();
        reader.checkpoint_complete(&positions);
        assert_eq!(goes_out(&mut reader), 1);
        assert!(matches!(reader.poll(9), Ok(SourcePoll::End)));
    }
}
