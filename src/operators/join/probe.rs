//! The algorithm of the regular join: one batch of one side meets the state of the other.
//!
//! The pairs of many rows are collected and put to the condition at once; then the rows are gone
//! through in order, as Flink's `StreamingJoinOperator` and `StreamingSemiAntiJoinOperator` do, which
//! only moves row numbers about; then the columns of the changes are gathered. The state of the other
//! side changes in its numbers of matches only, so pairs can be collected ahead.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;

use super::changes::{Changes, NONE, Rows, gather_column};
use super::condition::JoinCondition;
use super::side::Side;
use crate::changelog::RowKind;
use crate::error::Result;
use crate::operators::OperatorContext;
use crate::runtime::output::Output;
use crate::state::binary_row::BinaryRows;
use crate::state::rows::RowId;

/// Pairs that are put to the condition at once.
const PAIRS: usize = 8192;

/// What the input's rows are to the join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// One side of an inner or outer join; whether either side is shown without a match.
    Joined { own_outer: bool, other_outer: bool },
    /// The left side of a semi or anti join.
    Tested { anti: bool },
    /// The right side of a semi or anti join.
    Testing { anti: bool },
}

/// One batch on its way through the join.
pub(super) struct Probe<'a> {
    pub(super) role: Role,
    pub(super) own_is_left: bool,
    pub(super) own: &'a mut Side,
    pub(super) other: &'a mut Side,
    pub(super) batch: &'a RecordBatch,
    pub(super) kinds: Option<&'a [RowKind]>,
    /// Set for a withdrawal whose row is replaced by the next one: no row of NULLs comes between.
    pub(super) replaced: Option<&'a [bool]>,
    /// The batch's rows as the state stores them.
    pub(super) encoded: &'a BinaryRows,
    /// The slot of each row's join key.
    pub(super) slots: &'a [u32],
    /// Set for rows whose key has a NULL that equals nothing.
    pub(super) unmatchable: Option<BooleanBuffer>,
    pub(super) condition: Option<&'a JoinCondition>,
    pub(super) context: &'a OperatorContext,
    pub(super) watermark: i64,
    pub(super) now: i64,
    pub(super) schema: &'a SchemaRef,
    pub(super) changes: &'a mut Changes,
    /// Rows of the other side that lost their last match to a row that is being replaced.
    pub(super) withheld: Vec<u32>,
    /// Receives slots that may have no row any more.
    pub(super) emptied: &'a mut Vec<u32>,
}

/// Candidate pairs, row by row.
#[derive(Debug, Default)]
struct Pairs {
    rows: Vec<u32>,
    others: Vec<u32>,
    /// The end of each row whose pairs are complete.
    ends: Vec<usize>,
}

/// Which pair comes next.
#[derive(Debug, Default)]
struct Cursor {
    row: usize,
    position: usize,
    repetition: u32,
}

/// The row that is being gone through.
struct Current {
    row: u32,
    slot: u32,
    kind: RowKind,
    /// Its pairs are passed over: it withdraws a row that is not there.
    skipped: bool,
    matches: u32,
    /// What the state holds for it already: the same row, or one with its unique key.
    existing: Option<u32>,
    /// Whether `existing` is another row that this one replaces.
    replaces: bool,
    /// Whether it withdraws `existing` though it is another version of it.
    stored: bool,
    /// The matches of the row that it replaces, if they may differ.
    former: Vec<u32>,
    /// The other row of the last pair and its number of matches before.
    last: u32,
    last_degree: u32,
}

impl Probe<'_> {
    pub(super) fn run(&mut self, out: &mut Output<'_>) -> Result<()> {
        let mut cursor = Cursor::default();
        let mut pairs = Pairs::default();
        let mut current = None;
        let mut next_row = 0;
        while next_row < self.slots.len() {
            self.collect(&mut cursor, &mut pairs);
            let matching = self.matching(Rows::Batch(self.batch), &pairs.rows, &pairs.others)?;
            let holds = |pair: usize| matching.as_ref().is_none_or(|m| m.value(pair));
            let mut pair = 0;
            for end in pairs.ends.iter().copied().chain([pairs.others.len()]) {
                let complete = next_row < cursor.row;
                if !complete && pair == end {
                    break;
                }
                let mut row = match current.take() {
                    Some(row) => row,
                    None => self.begin(next_row)?,
                };
                while pair < end {
                    if !row.skipped {
                        self.pair(&mut row, pairs.others[pair], holds(pair), out)?;
                    }
                    pair += 1;
                }
                if complete {
                    self.finish(&row, out)?;
                    next_row += 1;
                } else {
                    current = Some(row);
                }
            }
        }
        self.flush(out)
    }

    /// Collects pairs until there are enough of them or no more.
    fn collect(&mut self, cursor: &mut Cursor, pairs: &mut Pairs) {
        pairs.rows.clear();
        pairs.others.clear();
        pairs.ends.clear();
        while cursor.row < self.slots.len() && pairs.others.len() < PAIRS {
            if !self.is_unmatchable(cursor.row) {
                let candidates = self.other.candidates(self.slots[cursor.row]);
                while let Some(id) = self.other.visible(candidates, cursor.position, self.now) {
                    let times = match id {
                        NONE => 0,
                        id => self.other.counts[id as usize],
                    };
                    while cursor.repetition < times {
                        if pairs.others.len() == PAIRS {
                            return;
                        }
                        pairs.rows.push(number(cursor.row));
                        pairs.others.push(id);
                        cursor.repetition += 1;
                    }
                    cursor.position += 1;
                    cursor.repetition = 0;
                }
            }
            pairs.ends.push(pairs.others.len());
            cursor.row += 1;
            cursor.position = 0;
        }
    }

    fn is_unmatchable(&self, row: usize) -> bool {
        self.unmatchable.as_ref().is_some_and(|u| u.value(row))
    }

    /// Which pairs fulfil the condition; all, if there is none.
    fn matching(
        &self,
        own: Rows<'_>,
        rows: &[u32],
        others: &[u32],
    ) -> Result<Option<BooleanArray>> {
        let Some(condition) = self.condition.filter(|_| !rows.is_empty()) else {
            return Ok(None);
        };
        let context = self.context.eval(rows.len(), self.watermark);
        let matching = condition.evaluate(&context, |port, column| {
            if (port == super::condition::LEFT) == self.own_is_left {
                gather_column(own, rows, column)
            } else {
                gather_column(self.other.stored(), others, column)
            }
        })?;
        Ok(Some(matching))
    }

    fn begin(&mut self, row: usize) -> Result<Current> {
        let slot = self.slots[row];
        let kind = self.kinds.map_or(RowKind::Insert, |kinds| kinds[row]);
        let mut current = Current {
            row: number(row),
            slot,
            kind,
            skipped: false,
            matches: 0,
            existing: None,
            replaces: false,
            stored: false,
            former: Vec::new(),
            last: NONE,
            last_degree: 0,
        };
        if self.is_unmatchable(row) {
            return Ok(current);
        }
        current.existing = self.own.find(slot, self.encoded.get(row), self.now);
        if kind.is_add() {
            current.replaces = current.existing.is_some() && self.own.has_unique_key();
            if let Some(replaced) = current.existing.filter(|_| current.replaces)
                && self.condition.is_some()
            {
                current.former = self.matches_of(slot, replaced)?;
            }
            return Ok(current);
        }
        let Some(existing) = current.existing else {
            // A bundle may have folded the row that is withdrawn.
            let folded = self.replaced.is_some() && self.own.has_unique_key();
            // With a TTL it may have been there: its pairs are withdrawn, as in Flink.
            current.skipped = folded || self.own.ttl_ms == 0;
            if !folded {
                self.context.metrics.inconsistent_dropped.add(1);
            }
            return Ok(current);
        };
        if self.condition.is_some() && self.own.has_unique_key() {
            let stored = self.own.rows.get(RowId(existing));
            if stored != self.encoded.get(row) {
                // Another version of the row was matched.
                current.stored = true;
                current.former = self.matches_of(slot, existing)?;
            }
        }
        Ok(current)
    }

    /// The rows of the other side that match `own`, a row in state; sorted.
    fn matches_of(&mut self, slot: u32, own: u32) -> Result<Vec<u32>> {
        let candidates = self.other.candidates(slot);
        let mut others = Vec::new();
        while let Some(id) = self.other.visible(candidates, others.len(), self.now) {
            others.push(id);
        }
        others.retain(|id| *id != NONE);
        let rows = vec![own; others.len()];
        let matching = self.matching(self.own.stored(), &rows, &others)?;
        let mut pair = 0;
        others.retain(|_| {
            pair += 1;
            matching.as_ref().is_none_or(|m| m.value(pair - 1))
        });
        others.sort_unstable();
        Ok(others)
    }

    /// Goes through a candidate of the current row.
    fn pair(
        &mut self,
        row: &mut Current,
        id: u32,
        holds: bool,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let holds = match row.stored {
            true => row.former.binary_search(&id).is_ok(),
            false => holds,
        };
        // Without a condition a row has the matches of the one that it replaces.
        let held = row.replaces
            && match self.condition {
                None => holds,
                Some(_) => row.former.binary_search(&id).is_ok(),
            };
        if !holds && !held {
            return Ok(());
        }
        // A row that is there several times comes several times in a row, each time with the number
        // that it had before the first.
        let first = row.last != id;
        if first {
            row.last = id;
            row.last_degree = self.other.degree(id);
        }
        match self.role {
            Role::Joined {
                own_outer,
                other_outer,
            } => self.joined_pair(row, id, (holds, held), first, own_outer, other_outer, out)?,
            Role::Tested { .. } => row.matches += u32::from(holds),
            Role::Testing { anti } => self.testing_pair(row, id, (holds, held), first, anti),
        }
        if self.changes.len() >= self.context.batch_size {
            self.flush(out)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn joined_pair(
        &mut self,
        row: &mut Current,
        id: u32,
        (holds, held): (bool, bool),
        first: bool,
        own_outer: bool,
        other_outer: bool,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let before = row.last_degree;
        let add = row.kind.is_add();
        let replaced = row.existing.filter(|_| row.replaces);
        if add && holds {
            if row.matches == 0
                && own_outer
                && self.condition.is_some()
                && let Some(replaced) = replaced
                && self.own.degree(replaced) == 0
            {
                self.push_stored(RowKind::Delete, replaced, NONE, out)?;
            }
            if other_outer {
                if let Some(at) = self.withheld.iter().position(|w| *w == id) {
                    self.withheld.swap_remove(at);
                } else if before == 0 {
                    self.changes.push(RowKind::Delete, NONE, id);
                }
                if first && !held {
                    self.other.set_degree(id, before + 1, self.now);
                }
            }
            let kind = if own_outer || other_outer {
                RowKind::Insert
            } else {
                row.kind
            };
            self.changes.push(kind, row.row, id);
            row.matches += 1;
            return Ok(());
        }
        if add {
            // The replaced row matched, this one does not.
            if let Some(replaced) = replaced {
                self.push_stored(RowKind::Delete, replaced, id, out)?;
            }
        } else {
            let kind = if own_outer { RowKind::Delete } else { row.kind };
            match row.existing.filter(|_| row.stored) {
                Some(stored) => self.push_stored(kind, stored, id, out)?,
                None => self.changes.push(kind, row.row, id),
            }
            row.matches += 1;
        }
        if other_outer {
            if before == 1 && self.is_replaced(row) {
                self.withheld.push(id);
            } else if before == 1 {
                self.changes.push(RowKind::Insert, NONE, id);
            }
            if first {
                self.other
                    .set_degree(id, before.saturating_sub(1), self.now);
            }
        }
        Ok(())
    }

    fn testing_pair(
        &mut self,
        row: &Current,
        id: u32,
        (holds, held): (bool, bool),
        first: bool,
        anti: bool,
    ) {
        let before = row.last_degree;
        if row.kind.is_add() && holds {
            if before == 0 {
                let kind = if anti { RowKind::Delete } else { row.kind };
                self.changes.push(kind, NONE, id);
            }
            if first && !held {
                self.other.set_degree(id, before + 1, self.now);
            }
            return;
        }
        if before == 1 {
            let kind = match (anti, row.kind.is_add()) {
                (true, _) => RowKind::Insert,
                (false, true) => RowKind::Delete,
                (false, false) => row.kind,
            };
            self.changes.push(kind, NONE, id);
        }
        if first {
            self.other
                .set_degree(id, before.saturating_sub(1), self.now);
        }
    }

    fn is_replaced(&self, row: &Current) -> bool {
        self.replaced.is_some_and(|r| r[row.row as usize])
    }

    /// All pairs of the row have been seen.
    fn finish(&mut self, row: &Current, out: &mut Output<'_>) -> Result<()> {
        let add = row.kind.is_add();
        if !self.is_replaced(row) {
            for id in self.withheld.drain(..) {
                self.changes.push(RowKind::Insert, NONE, id);
            }
        }
        if !row.skipped {
            match self.role {
                Role::Joined { own_outer, .. } if own_outer && row.matches == 0 => {
                    let kind = if add {
                        RowKind::Insert
                    } else {
                        RowKind::Delete
                    };
                    self.changes.push(kind, row.row, NONE);
                }
                Role::Tested { anti } => self.tested(row, anti, out)?,
                Role::Joined { .. } | Role::Testing { .. } => {}
            }
        }
        if !self.is_unmatchable(row.row as usize) {
            let bytes = self.encoded.get(row.row as usize);
            if add {
                let own = &mut self.own;
                own.add(row.slot, bytes, row.existing, row.matches, self.now);
            } else if let Some(id) = row.existing {
                self.own.retract(row.slot, id, self.now);
            }
        }
        if self.own.is_vacant(row.slot) && self.other.is_vacant(row.slot) {
            self.emptied.push(row.slot);
        }
        if self.changes.len() >= self.context.batch_size {
            self.flush(out)?;
        }
        Ok(())
    }

    /// Emits a row of the left side of a semi or anti join if it passes the test.
    fn tested(&mut self, row: &Current, anti: bool, out: &mut Output<'_>) -> Result<()> {
        let passes = |matches: u32| (matches == 0) == anti;
        if passes(row.matches) {
            self.changes.push(row.kind, row.row, NONE);
        } else if self.condition.is_some()
            && let Some(replaced) = row.existing.filter(|_| row.replaces)
            && passes(self.own.degree(replaced))
        {
            self.push_stored(RowKind::Delete, replaced, NONE, out)?;
        }
        Ok(())
    }

    /// Adds a change whose own row is one in state.
    fn push_stored(
        &mut self,
        kind: RowKind,
        own: u32,
        other: u32,
        out: &mut Output<'_>,
    ) -> Result<()> {
        self.flush(out)?;
        self.changes.push(kind, own, other);
        let (own, other) = shown(self.role, self.own.stored(), self.other.stored());
        let batch = self
            .changes
            .take(own, other, self.own_is_left, self.schema)?;
        out.emit(batch)
    }

    /// Emits the changes.
    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        if self.changes.len() == 0 {
            return Ok(());
        }
        let (own, other) = shown(self.role, Rows::Batch(self.batch), self.other.stored());
        let batch = self
            .changes
            .take(own, other, self.own_is_left, self.schema)?;
        out.emit(batch)
    }
}

/// The sides whose columns the output has.
fn shown<'b>(role: Role, own: Rows<'b>, other: Rows<'b>) -> (Option<Rows<'b>>, Option<Rows<'b>>) {
    match role {
        Role::Joined { .. } => (Some(own), Some(other)),
        Role::Tested { .. } => (Some(own), None),
        Role::Testing { .. } => (None, Some(other)),
    }
}

fn number(row: usize) -> u32 {
    u32::try_from(row).expect("a batch has fewer than 2^32 rows")
}
