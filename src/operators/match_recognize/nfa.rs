//! Partial matches and how rows continue them.
//!
//! The rows of a match follow each other without gap. A row continues every partial match of its
//! partition in every way that the pattern allows, and those that it does not continue end. A match
//! is given out once no partial match that began earlier is left; then those that began in the rows
//! that are skipped end. Of several matches that begin with one row the first to be complete is
//! given out, except that a greedy variable first takes all rows that it can take in a match.
//!
//! Which of several equal ways wins depends in Flink on the order in its heaps, so these are kept
//! as Flink keeps them.

use std::sync::Arc;

use super::history::{Node, Row};
use crate::error::{Error, Result};
use crate::plan::match_recognize::{MatchSpec, PatternVariable, SkipStrategy};

/// A match that is under way, or complete but waiting for its turn.
#[derive(Debug, Clone)]
pub(super) struct Partial {
    /// Its last row, with all before; `None` for the one that is about to begin.
    pub(super) last: Option<Arc<Node>>,
    /// Number of its first row; the greatest for the one that is about to begin.
    pub(super) start: u64,
    /// Time of its first row.
    pub(super) start_time: i64,
    /// How many rows its last variable has.
    pub(super) count: u32,
}

impl Partial {
    pub(super) fn beginning() -> Self {
        Self {
            last: None,
            start: u64::MAX,
            start_time: i64::MAX,
            count: 0,
        }
    }

    /// The match that ends with `last`.
    pub(super) fn of(last: Arc<Node>) -> Self {
        let count = last
            .backwards()
            .take_while(|node| node.variable == last.variable)
            .count();
        let first = last.backwards().last().expect("a node is its own first");
        let (start, start_time) = (first.row.sequence, first.row.time);
        Self {
            start,
            start_time,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            last: Some(last),
        }
    }
}

/// A heap by start, as Java's `PriorityQueue` keeps it: its order is part of the result.
#[derive(Debug, Default)]
pub(super) struct Heap(pub(super) Vec<Partial>);

impl Heap {
    pub(super) fn push(&mut self, partial: Partial) {
        let mut k = self.0.len();
        self.0.push(partial);
        while k > 0 {
            let parent = (k - 1) / 2;
            if self.0[k].start >= self.0[parent].start {
                break;
            }
            self.0.swap(k, parent);
            k = parent;
        }
    }

    fn sift_down(&mut self, mut k: usize) {
        let half = self.0.len() / 2;
        while k < half {
            let mut child = 2 * k + 1;
            if child + 1 < self.0.len() && self.0[child].start > self.0[child + 1].start {
                child += 1;
            }
            if self.0[k].start <= self.0[child].start {
                break;
            }
            self.0.swap(k, child);
            k = child;
        }
    }

    fn pop(&mut self) {
        if !self.0.is_empty() {
            self.0.swap_remove(0);
            self.sift_down(0);
        }
    }

    fn retain(&mut self, keep: impl FnMut(&Partial) -> bool) {
        let before = self.0.len();
        self.0.retain(keep);
        if self.0.len() < before {
            for k in (0..self.0.len() / 2).rev() {
                self.sift_down(k);
            }
        }
    }
}

/// The matches of a partition.
#[derive(Debug, Default)]
pub(super) struct Partition {
    /// Under way; without the one that is about to begin if there are no others.
    pub(super) partials: Heap,
    /// Complete, waiting for matches that began earlier.
    pub(super) completed: Heap,
}

impl Partition {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of matches under way.
    pub(super) fn len(&self) -> usize {
        let under_way = self.partials.0.iter().filter(|p| p.last.is_some());
        under_way.count() + self.completed.0.len()
    }
}

/// A way in which a row may continue a partial match.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Which partial match; `None` for the one that is about to begin, when it is alone.
    partial: Option<usize>,
    /// The variable that takes the row.
    pub(super) variable: usize,
    /// How many rows that variable then has.
    count: u32,
}

impl Candidate {
    /// The rows matched, with the new one.
    pub(super) fn extended(&self, partition: &Partition, row: &Arc<Row>) -> Arc<Node> {
        let before = self
            .partial
            .and_then(|p| partition.partials.0[p].last.clone());
        Arc::new(Node {
            row: Arc::clone(row),
            variable: self.variable,
            before,
        })
    }
}

/// The pattern as an automaton.
#[derive(Debug)]
pub(super) struct Nfa {
    variables: Vec<PatternVariable>,
    skip: SkipStrategy,
    pub(super) within_ms: Option<i64>,
    /// Whether some variable is greedy.
    greedy: bool,
    /// Whether no definition reads earlier rows.
    independent: bool,
}

impl Nfa {
    pub(super) fn new(spec: &MatchSpec) -> Self {
        Self {
            skip: spec.skip,
            within_ms: spec.within_ms.filter(|ms| *ms > 0),
            greedy: spec.variables.iter().any(|v| v.greedy),
            independent: spec.variables.iter().all(|v| v.history.is_none()),
            variables: spec.variables.clone(),
        }
    }

    /// All ways in which the next row may continue the partition's partial matches.
    pub(super) fn candidates(&self, partition: &Partition) -> Vec<Candidate> {
        let mut found = Vec::new();
        for (i, partial) in partition.partials.0.iter().enumerate() {
            self.continuations(Some(i), partial, &mut found);
        }
        if partition.partials.0.is_empty() {
            self.continuations(None, &Partial::beginning(), &mut found);
        }
        found
    }

    fn continuations(&self, place: Option<usize>, partial: &Partial, found: &mut Vec<Candidate>) {
        let mut next = 0;
        if let Some(last) = &partial.last {
            let variable = &self.variables[last.variable];
            if variable.most.is_none_or(|most| partial.count < most) {
                found.push(Candidate {
                    partial: place,
                    variable: last.variable,
                    count: partial.count.saturating_add(1),
                });
            }
            if partial.count < variable.least {
                return;
            }
            next = last.variable + 1;
        }
        for (variable, what) in self.variables.iter().enumerate().skip(next) {
            found.push(Candidate {
                partial: place,
                variable,
                count: 1,
            });
            if what.least > 0 {
                return;
            }
        }
    }

    /// Whether a match may end with `count` rows of `variable`.
    fn is_complete(&self, variable: usize, count: u32) -> bool {
        let rest = &self.variables[variable + 1..];
        count >= self.variables[variable].least && rest.iter().all(|v| v.least == 0)
    }

    /// Whether a match with `count` rows of `variable` may have more rows.
    fn may_go_on(&self, variable: usize, count: u32) -> bool {
        variable + 1 < self.variables.len()
            || self.variables[variable]
                .most
                .is_none_or(|most| count < most)
    }

    /// Continues the partial matches by a row, as far as `accepted`. Returns whether the row began
    /// one that goes on.
    pub(super) fn advance(
        &self,
        partition: &mut Partition,
        candidates: &[Candidate],
        accepted: &[bool],
        row: &Arc<Row>,
    ) -> bool {
        let mut partials = Heap::default();
        let mut potential = Heap::default();
        let mut started = false;
        let old = &partition.partials.0;
        let alone = [Partial::beginning()];
        let sources: &[Partial] = if old.is_empty() { &alone } else { old };
        let mut next = 0;
        for (place, source) in sources.iter().enumerate() {
            let begins = source.last.is_none();
            while let Some(candidate) = candidates.get(next)
                && candidate.partial.unwrap_or(0) == place
            {
                next += 1;
                if !accepted[next - 1] {
                    continue;
                }
                let partial = Partial {
                    last: Some(candidate.extended(partition, row)),
                    start: if begins { row.sequence } else { source.start },
                    start_time: if begins { row.time } else { source.start_time },
                    count: candidate.count,
                };
                let variable = candidate.variable;
                if self.is_complete(variable, candidate.count) {
                    potential.push(partial.clone());
                }
                if self.may_go_on(variable, candidate.count) {
                    started |= begins;
                    self.add(&mut partials, partial);
                }
            }
            if begins {
                partials.push(source.clone());
            }
        }
        for complete in potential.0 {
            partition.completed.push(complete);
        }
        partition.partials = partials;
        if self.greedy {
            self.settle(partition);
        }
        if partition.partials.0.len() == 1 {
            partition.partials.0.clear();
        }
        started
    }

    /// Adds a partial match. Where all that can follow is the same as for another with the same
    /// start, the one that is preferred is enough.
    fn add(&self, partials: &mut Heap, partial: Partial) {
        if self.greedy && self.independent {
            let same = partials.0.iter().position(|other| {
                other.start == partial.start && self.position(other) == self.position(&partial)
            });
            if let Some(same) = same {
                if self.prefers(&partial, &partials.0[same]) {
                    partials.0[same] = partial;
                }
                return;
            }
        }
        partials.push(partial);
    }

    /// What decides on how a partial match may go on.
    fn position(&self, partial: &Partial) -> Option<(usize, u32)> {
        let last = partial.last.as_ref()?;
        let variable = &self.variables[last.variable];
        let enough = variable.most.unwrap_or(variable.least.max(1));
        Some((last.variable, partial.count.min(enough)))
    }

    /// Leaves of the matches with one start those that greedy variables want.
    fn settle(&self, partition: &mut Partition) {
        let complete: Vec<Partial> = partition.completed.0.clone();
        for best in &complete {
            let better = |p: &Partial| p.start != best.start || self.prefers(p, best);
            partition.partials.retain(better);
            let worse = |p: &Partial| p.start == best.start && self.prefers(best, p);
            partition.completed.retain(|p| !worse(p));
        }
    }

    /// Whether a greedy variable has more rows in `a` than in `b` where they first differ.
    fn prefers(&self, a: &Partial, b: &Partial) -> bool {
        let (a, b) = (self.counts(a), self.counts(b));
        let differing = a.iter().zip(&b).position(|(a, b)| a != b);
        differing.is_some_and(|i| self.variables[i].greedy && a[i] > b[i])
    }

    fn counts(&self, partial: &Partial) -> Vec<u32> {
        let mut counts = vec![0; self.variables.len()];
        for node in partial.last.iter().flat_map(|last| last.backwards()) {
            counts[node.variable] += 1;
        }
        counts
    }

    /// Moves the complete matches whose turn it is into `found`.
    pub(super) fn release(
        &self,
        partition: &mut Partition,
        found: &mut Vec<Arc<Node>>,
    ) -> Result<()> {
        while let Some(head) = partition.completed.0.first() {
            let waits = partition.partials.0.first().is_some_and(|earliest| {
                earliest.start < head.start || (self.greedy && earliest.start == head.start)
            });
            if waits {
                break;
            }
            let Some(last) = head.last.clone() else { break };
            let start = head.start;
            partition.completed.pop();
            let goes_on = self.skip_to(&last, start)?;
            partition.partials.retain(|p| p.start >= goes_on);
            partition.completed.retain(|p| p.start >= goes_on);
            found.push(last);
        }
        if partition.partials.0.len() == 1 {
            partition.partials.0.clear();
        }
        Ok(())
    }

    /// The number of the first row that may begin a match after one.
    fn skip_to(&self, last: &Arc<Node>, start: u64) -> Result<u64> {
        let (variable, row) = match self.skip {
            SkipStrategy::PastLastRow => return Ok(last.row.sequence + 1),
            SkipStrategy::ToNextRow => return Ok(start + 1),
            SkipStrategy::ToFirst(variable) => (variable, last.rows_of(Some(variable)).last()),
            SkipStrategy::ToLast(variable) => (variable, last.rows_of(Some(variable)).next()),
        };
        let Some(row) = row else {
            let name = &self.variables[variable].name;
            return Err(Error::execution(format!(
                "Could not skip to {name}. No such element in the found match"
            )));
        };
        if row.sequence == start {
            return Err(Error::execution(
                "Could not skip to first element of a match.",
            ));
        }
        Ok(row.sequence)
    }

    /// Ends the partial matches that are too old at `time`; whether there were any.
    pub(super) fn expire(&self, partition: &mut Partition, time: i64) -> bool {
        let Some(within) = self.within_ms else {
            return false;
        };
        let before = partition.partials.0.len();
        let mut kept = Heap::default();
        for partial in std::mem::take(&mut partition.partials.0) {
            if partial.last.is_none() || time.saturating_sub(partial.start_time) < within {
                kept.push(partial);
            }
        }
        partition.partials = kept;
        partition.partials.0.len() < before
    }

    /// No row follows: greedy variables can take no more.
    pub(super) fn end(&self, partition: &mut Partition, found: &mut Vec<Arc<Node>>) -> Result<()> {
        if !self.greedy {
            return Ok(());
        }
        let starts: Vec<u64> = partition.completed.0.iter().map(|c| c.start).collect();
        partition.partials.retain(|p| !starts.contains(&p.start));
        self.release(partition, found)
    }
}
