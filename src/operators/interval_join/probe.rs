//! One batch of one side meets the cache of the other.

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;

use super::{IntervalJoinSpec, Side, cleanup_time, expiration, is_set};
use crate::changelog::RowKind;
use crate::error::Result;
use crate::operators::OperatorContext;
use crate::operators::join::changes::{Changes, NONE, Rows, gather_column};
use crate::operators::join::condition::{JoinCondition, LEFT};
use crate::operators::join::timers::Timers;
use crate::operators::time::rowtimes;
use crate::runtime::output::Output;
use crate::state::binary_row::BinaryRows;

/// Pairs that are put to the condition at once.
const PAIRS: usize = 8192;

/// Marks a row that leaves the cache: it is padded if it is unmatched by then.
const LEAVES: u32 = 1 << 31;

/// One batch on its way through the join.
pub(super) struct Probe<'a> {
    pub(super) spec: &'a IntervalJoinSpec,
    pub(super) port: usize,
    pub(super) own: &'a mut Side,
    pub(super) other: &'a mut Side,
    pub(super) batch: &'a RecordBatch,
    pub(super) encoded: &'a BinaryRows,
    pub(super) slots: &'a [u32],
    /// Set for rows whose key has a NULL that equals nothing.
    pub(super) unmatchable: Option<BooleanBuffer>,
    pub(super) condition: Option<&'a JoinCondition>,
    pub(super) context: &'a OperatorContext,
    pub(super) watermark: i64,
    pub(super) schema: &'a SchemaRef,
    pub(super) changes: &'a mut Changes,
    pub(super) timers: &'a mut Timers,
    /// Receives rows that leave the other side's cache.
    pub(super) gone: &'a mut Vec<u32>,
    /// Receives slots of which nothing may be remembered any more.
    pub(super) emptied: &'a mut Vec<u32>,
}

/// What the rows meet, row by row: rows of the other side, or such that leave ([`LEAVES`]).
#[derive(Debug, Default)]
struct Steps {
    rows: Vec<u32>,
    others: Vec<u32>,
    /// The end of each row whose steps are complete.
    ends: Vec<usize>,
    /// All steps of the row that comes next, and how many of them are taken.
    plan: Vec<u32>,
    taken: usize,
    /// Rows planned.
    planned: usize,
}

impl Probe<'_> {
    pub(super) fn run(&mut self, out: &mut Output<'_>) -> Result<()> {
        let times = self.times()?;
        let mut steps = Steps::default();
        let (mut row, mut matched) = (0, false);
        while row < times.len() {
            self.collect(&times, &mut steps);
            let matching = self.matching(&steps)?;
            let mut pair = 0;
            let mut step = 0;
            let ends = std::mem::take(&mut steps.ends);
            for end in ends.iter().copied().chain([steps.others.len()]) {
                while step < end {
                    let other = steps.others[step];
                    step += 1;
                    if other & LEAVES != 0 {
                        self.leave(other & !LEAVES);
                        continue;
                    }
                    if matching.as_ref().is_none_or(|m| m.value(pair)) {
                        matched = true;
                        self.pair(number(row), other);
                    }
                    pair += 1;
                    if self.changes.len() >= self.context.batch_size {
                        self.flush(out)?;
                    }
                }
                if row < steps.planned - usize::from(steps.taken < steps.plan.len()) {
                    self.finish(row, times[row], matched);
                    (row, matched) = (row + 1, false);
                }
            }
            steps.ends = ends;
        }
        self.flush(out)
    }

    /// The rows' times; `None` for a row without one.
    fn times(&self) -> Result<Vec<Option<i64>>> {
        let len = self.batch.num_rows();
        if !self.spec.event_time {
            return Ok(vec![Some(self.context.clock.now_ms()); len]);
        }
        let column = match self.port {
            0 => self.spec.left.time,
            _ => self.spec.right.time,
        };
        let times = rowtimes(self.batch, column)?;
        let nulls = u64::try_from(times.null_count()).unwrap_or(0);
        self.context.metrics.null_rowtime_dropped.add(nulls);
        Ok(times.iter().collect())
    }

    /// What time it is for both sides.
    fn now(&self) -> i64 {
        match self.spec.event_time {
            true => self.watermark,
            false => self.context.clock.now_ms(),
        }
    }

    /// Collects steps until there are enough of them or no more.
    fn collect(&mut self, times: &[Option<i64>], steps: &mut Steps) {
        steps.rows.clear();
        steps.others.clear();
        steps.ends.clear();
        while steps.others.len() < PAIRS {
            if steps.taken == steps.plan.len() {
                steps.plan.clear();
                steps.taken = 0;
                let row = steps.planned;
                let Some(time) = times.get(row) else {
                    return;
                };
                if let Some(time) = time {
                    self.plan(row, *time, &mut steps.plan);
                }
                steps.planned += 1;
            }
            let room = PAIRS - steps.others.len();
            let rest = &steps.plan[steps.taken..];
            let taken = &rest[..rest.len().min(room)];
            steps.others.extend_from_slice(taken);
            let row = number(steps.planned - 1);
            steps.rows.resize(steps.others.len(), row);
            steps.taken += taken.len();
            if steps.taken == steps.plan.len() {
                steps.ends.push(steps.others.len());
            }
        }
    }

    /// What the row meets in the other side's cache. Expired rows are taken from it.
    fn plan(&mut self, row: usize, time: i64, plan: &mut Vec<u32>) {
        if self.spec.lower > self.spec.upper {
            return;
        }
        let lower = time.saturating_sub(self.other.reach);
        let upper = time.saturating_add(self.own.reach);
        if self.other.expiration >= upper && self.other.expiration != i64::MIN {
            return;
        }
        self.other.expiration = expiration(self.now(), self.other.reach);
        let matchable = !self.unmatchable.as_ref().is_some_and(|u| u.value(row));
        let (outer, gone) = (self.other.outer, &mut *self.gone);
        let expiration = self.other.expiration;
        self.other
            .cache
            .visit(self.slots[row], lower, upper, expiration, |visit, ids| {
                if visit.in_range && matchable {
                    plan.extend_from_slice(ids);
                }
                if visit.expired {
                    if outer {
                        plan.extend(ids.iter().map(|id| id | LEAVES));
                    }
                    gone.extend_from_slice(ids);
                }
            });
    }

    /// Which pairs fulfil the condition; all, if there is none.
    fn matching(&self, steps: &Steps) -> Result<Option<BooleanArray>> {
        let Some(condition) = self.condition else {
            return Ok(None);
        };
        let pairs = || {
            let steps = steps.rows.iter().zip(&steps.others);
            steps.filter(|(_, other)| **other & LEAVES == 0)
        };
        let rows: Vec<u32> = pairs().map(|(row, _)| *row).collect();
        let others: Vec<u32> = pairs().map(|(_, other)| *other).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let context = self.context.eval(rows.len(), self.watermark);
        let matching = condition.evaluate(&context, |port, column| {
            if (port == LEFT) == (self.port == LEFT) {
                gather_column(Rows::Batch(self.batch), &rows, column)
            } else {
                gather_column(self.other.cache.stored(), &others, column)
            }
        })?;
        Ok(Some(matching))
    }

    fn pair(&mut self, row: u32, other: u32) {
        self.changes.push(RowKind::Insert, row, other);
        self.other.cache.matched[other as usize] = true;
    }

    fn leave(&mut self, other: u32) {
        if !self.other.cache.matched[other as usize] {
            self.changes.push(RowKind::Insert, NONE, other);
        }
    }

    /// All steps of the row have been taken: it is cached, or has no hope of a match any more.
    fn finish(&mut self, row: usize, time: Option<i64>, matched: bool) {
        let slot = self.slots[row];
        let Some(time) = time else {
            self.emptied.push(slot);
            return;
        };
        let waits =
            self.spec.lower <= self.spec.upper && self.now() < time.saturating_add(self.own.reach);
        if waits {
            let bytes = self.encoded.get(row);
            self.own.cache.insert(slot, time, bytes, matched);
            let key = self.own.cache.key_mut(slot);
            if !is_set(key.timer) {
                let time = cleanup_time(time, self.own.reach, self.spec.min_cleanup_ms);
                key.set_timer(time, slot, self.port, self.timers);
            }
            return;
        }
        if !matched && self.own.outer {
            self.changes.push(RowKind::Insert, number(row), NONE);
        }
        if self.own.cache.is_vacant(slot) && self.other.cache.is_vacant(slot) {
            self.emptied.push(slot);
        }
    }

    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        if self.changes.len() == 0 {
            return Ok(());
        }
        let own = Some(Rows::Batch(self.batch));
        let other = Some(self.other.cache.stored());
        let batch = self
            .changes
            .take(own, other, self.port == LEFT, self.schema)?;
        out.emit(batch)
    }
}

fn number(row: usize) -> u32 {
    u32::try_from(row).expect("a batch has fewer than 2^32 rows")
}
