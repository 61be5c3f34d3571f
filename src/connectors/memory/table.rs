//! One memory table: its rows now, and the changes that some reader has not seen.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::SchemaRef;
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use indexmap::IndexMap;

use super::saved::{Changes as SavedChanges, Saved, Waiting};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::types::Schema;

/// A table in memory.
pub struct MemoryTable {
    schema: Schema,
    key: Vec<usize>,
    /// Tells the table from those of other processes.
    incarnation: u64,
    // No other lock is taken while this one is held.
    state: Mutex<State>,
}

struct State {
    arrow: SchemaRef,
    /// All columns to bytes; `None` without columns.
    rows: Option<RowConverter>,
    /// The key's columns to bytes; `None` without a key.
    keys: Option<RowConverter>,
    /// By key, or by the row itself: the row, and how often it is there.
    content: IndexMap<OwnedRow, (OwnedRow, u64)>,
    /// Changes that a pinned reader may ask for.
    log: VecDeque<Logged>,
    /// Number of the first entry of the log among all that were ever made.
    first: u64,
    /// The last watermark of the writers, ms; `i64::MIN` before the first.
    watermark: i64,
    finished: bool,
    pins: Vec<Weak<Pin>>,
    /// Batches that were ever applied.
    accepted: u64,
    /// How many of them a checkpoint of another process has brought, and the change that was next.
    restored: Option<(u64, u64)>,
    /// Whether a batch was applied in this process.
    used: bool,
    /// Whether a job of this process writes to it.
    has_writers: bool,
    /// Batches of transactions that are not committed, by epoch and subtask.
    prepared: BTreeMap<(u64, usize), Vec<ChangeBatch>>,
}

/// Keeps the changes from one on, for as long as it lives.
#[derive(Debug)]
pub(super) struct Pin(Mutex<u64>);

impl Pin {
    /// Changes before number `next` are not needed any more.
    pub(super) fn advance(&self, next: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn next(&self) -> u64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened to a table.
#[derive(Debug, Clone)]
pub(super) enum Logged {
    Change(ChangeBatch),
    /// No row with an earlier event time will come, ms.
    Watermark(i64),
}

/// What comes after a change.
pub(super) enum Next {
    Change(ChangeBatch),
    /// No row with an earlier event time will come, ms.
    Watermark(i64),
    /// Nothing yet.
    Nothing,
    /// Nothing, ever.
    End,
    /// It is not kept any more.
    Gone,
}

impl MemoryTable {
    pub(super) fn new(schema: &Schema, key: &[usize]) -> Result<Self> {
        let converter = |columns: &Schema| {
            let types = columns.columns.iter().map(|c| c.data_type.to_arrow());
            let fields: Vec<_> = types.map(SortField::new).collect();
            (!fields.is_empty())
                .then(|| RowConverter::new(fields))
                .transpose()
        };
        Ok(Self {
            state: Mutex::new(State {
                arrow: schema.to_arrow(),
                rows: converter(schema)?,
                keys: converter(&schema.project(key))?,
                content: IndexMap::new(),
                log: VecDeque::new(),
                first: 0,
                watermark: i64::MIN,
                finished: false,
                pins: Vec::new(),
                accepted: 0,
                restored: None,
                used: false,
                has_writers: false,
                prepared: BTreeMap::new(),
            }),
            schema: schema.clone(),
            key: key.to_vec(),
            incarnation: RandomState::new().hash_one("table"),
        })
    }

    pub(super) fn has_shape(&self, schema: &Schema, key: &[usize]) -> bool {
        self.schema == *schema && self.key == key
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The rows now, in the order of their first insertion.
    ///
    /// # Errors
    /// When rows cannot be decoded: a bug.
    pub fn content(&self) -> Result<RecordBatch> {
        self.lock().content()
    }

    /// Applies changes, as INSERT does. With a primary key an addition replaces the row of its key, and
    /// a withdrawal removes it; a `-U` that the new row follows is an update. Without a key a
    /// withdrawal removes one equal row. What changes nothing is not handed on. Answers how
    /// many batches the table has taken.
    ///
    /// # Errors
    /// When the columns are not the table's: a bug of the caller.
    pub fn apply(&self, batch: &ChangeBatch) -> Result<u64> {
        let mut state = self.lock();
        state.take(batch, &self.key)?;
        Ok(state.accepted)
    }

    /// How many batches a checkpoint has brought, in which a job of another process had them.
    #[must_use]
    pub fn restored(&self) -> u64 {
        self.lock().restored.map_or(0, |(accepted, _)| accepted)
    }

    /// Applies the changes that `change` makes of the rows now, as UPDATE and DELETE do: nothing
    /// comes between. An update is a `-U` with the old row and a `+U` with the new one; when it
    /// changes the primary key, a `-D` and a `+I`.
    ///
    /// # Errors
    /// What `change` fails with.
    pub fn update(&self, change: impl FnOnce(RecordBatch) -> Result<ChangeBatch>) -> Result<()> {
        let mut state = self.lock();
        let changes = change(state.content()?)?;
        state.take(&changes, &self.key)
    }

    /// Says that no row with an event time up to `watermark` (ms since the epoch) will come.
    /// Watermarks rise: an earlier one than the last says nothing.
    pub fn watermark(&self, watermark: i64) {
        let mut state = self.lock();
        if watermark > state.watermark {
            state.watermark = watermark;
            state.log.push_back(Logged::Watermark(watermark));
            state.forget();
        }
    }

    /// Says that no changes will come: queries over the table come to their end.
    pub fn finish(&self) {
        self.lock().finished = true;
    }

    /// Keeps the changes from now on.
    pub(super) fn pin(&self) -> Arc<Pin> {
        let mut state = self.lock();
        let pin = Arc::new(Pin(Mutex::new(state.end())));
        state.pins.push(Arc::downgrade(&pin));
        pin
    }

    /// The rows now, the watermark behind them, and the number of the change that comes next.
    pub(super) fn snapshot(&self) -> Result<(ChangeBatch, i64, u64)> {
        let state = self.lock();
        let rows = ChangeBatch::inserts(state.content()?);
        Ok((rows, state.watermark, state.end()))
    }

    /// A copy for a checkpoint. What waits: `unread`, then the changes from number `next` on.
    pub(super) fn save(&self, mut unread: Vec<Logged>, next: Option<u64>) -> Result<Saved> {
        let (content, saved) = {
            let state = self.lock();
            let next = next.unwrap_or_else(|| state.end());
            let skipped = usize::try_from(next.saturating_sub(state.first)).unwrap_or(usize::MAX);
            unread.extend(state.log.iter().skip(skipped).cloned());
            let saved = Saved {
                incarnation: self.incarnation,
                next: state.end().max(next),
                accepted: state.accepted,
                watermark: Some(state.watermark).filter(|w| *w > i64::MIN),
                ..Saved::default()
            };
            (state.content()?, saved)
        };
        Ok(Saved {
            content: SavedChanges::encode(vec![ChangeBatch::inserts(content)])?,
            waiting: Waiting::encode(unread)?,
            ..saved
        })
    }

    /// A copy of nothing but what waits.
    pub(super) fn save_waiting(&self, waiting: Vec<Logged>) -> Result<Saved> {
        Ok(Saved {
            incarnation: self.incarnation,
            waiting: Waiting::encode(waiting)?,
            ..Saved::default()
        })
    }

    /// What waits in a copy.
    pub(super) fn waiting(&self, saved: &Saved) -> Result<Vec<Logged>> {
        let arrow = Arc::clone(&self.lock().arrow);
        saved.waiting.iter().map(|w| w.decode(&arrow)).collect()
    }

    /// Whether a copy was made of this very table, in this process.
    pub(super) fn is_of(&self, saved: &Saved) -> bool {
        saved.incarnation == self.incarnation
    }

    /// Takes up the rows of a copy from another process. Of several copies the earliest counts: the
    /// later ones' readers leave out what they have seen.
    ///
    /// # Errors
    /// When rows were put into the table before, or the copy has other columns.
    pub(super) fn restore(&self, saved: &Saved) -> Result<()> {
        let mut state = self.lock();
        if state.restored.is_some_and(|(_, next)| next <= saved.next) {
            return Ok(());
        }
        if state.used {
            return Err(Error::checkpoint(
                "rows came into a memory table before a job that reads it went on from its checkpoint",
            )
            .hint("start the jobs first; then push from the token that the writer says"));
        }
        let arrow = Arc::clone(&state.arrow);
        state.content.clear();
        if let Some(content) = &saved.content {
            state.apply(&content.decode(&arrow)?, &self.key)?;
        }
        state.log.clear();
        state.first = saved.next;
        state.watermark = saved.watermark.unwrap_or(i64::MIN);
        state.accepted = saved.accepted;
        state.restored = Some((saved.accepted, saved.next));
        Ok(())
    }

    /// A job of this process writes to the table.
    pub(super) fn add_writer(&self) {
        self.lock().has_writers = true;
    }

    /// Whether a job of this process writes to the table.
    pub(super) fn has_writers(&self) -> bool {
        self.lock().has_writers
    }

    /// Keeps batches for [`commit`](Self::commit).
    pub(super) fn prepare(&self, epoch: u64, subtask: usize, batches: Vec<ChangeBatch>) {
        self.lock().prepared.insert((epoch, subtask), batches);
    }

    /// Applies what was prepared, once; nothing if another process has prepared it.
    pub(super) fn commit(&self, epoch: u64, subtask: usize) -> Result<()> {
        let mut state = self.lock();
        let batches = state.prepared.remove(&(epoch, subtask));
        let mut batches = batches.into_iter().flatten();
        batches.try_for_each(|batch| state.take(&batch, &self.key))
    }

    /// Forgets what was prepared after checkpoint `epoch`.
    pub(super) fn abort(&self, epoch: u64) {
        self.lock()
            .prepared
            .retain(|(prepared, _), _| *prepared <= epoch);
    }

    /// Change number `next`.
    pub(super) fn change(&self, next: u64) -> Next {
        let state = self.lock();
        if next < state.first {
            return Next::Gone;
        }
        let index = usize::try_from(next - state.first).unwrap_or(usize::MAX);
        match state.log.get(index) {
            Some(Logged::Change(batch)) => Next::Change(batch.clone()),
            Some(Logged::Watermark(watermark)) => Next::Watermark(*watermark),
            None if state.finished => Next::End,
            None => Next::Nothing,
        }
    }
}

impl State {
    /// Number of the change that comes next.
    fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    fn content(&self) -> Result<RecordBatch> {
        let repeated = |(row, count): &(OwnedRow, u64)| {
            let row = row.clone();
            (0..*count).map(move |_| row.clone())
        };
        let rows: Vec<OwnedRow> = self.content.values().flat_map(repeated).collect();
        let columns = match &self.rows {
            Some(converter) => converter.convert_rows(rows.iter().map(OwnedRow::row))?,
            None => Vec::new(),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let arrow = Arc::clone(&self.arrow);
        Ok(RecordBatch::try_new_with_options(arrow, columns, &options)?)
    }

    /// Applies a batch that somebody has given.
    fn take(&mut self, batch: &ChangeBatch, key: &[usize]) -> Result<()> {
        self.used = true;
        self.apply(batch, key)?;
        self.accepted += 1;
        Ok(())
    }

    fn apply(&mut self, batch: &ChangeBatch, key: &[usize]) -> Result<()> {
        let Some(converter) = &self.rows else {
            return Ok(());
        };
        let columns = batch.rows().columns();
        let rows = converter.convert_columns(columns)?;
        let keys = match &self.keys {
            Some(keys) => {
                let columns: Vec<_> = key.iter().map(|i| Arc::clone(&columns[*i])).collect();
                Some(keys.convert_columns(&columns)?)
            }
            None => None,
        };
        let replaced = keys.as_ref().map(|keys| replaced(batch, keys));
        let mut changes = Changes::default();
        for (i, kind) in batch.kinds().enumerate() {
            if replaced.as_ref().is_some_and(|replaced| replaced[i]) {
                continue;
            }
            let row = rows.row(i).owned();
            match &keys {
                Some(keys) => self.put(keys.row(i).owned(), row, kind, i, &mut changes),
                None => self.count(row, kind, i, &mut changes),
            }
        }
        let log = changes.into_batch(batch, self.rows.as_ref(), &self.arrow)?;
        if !log.is_empty() {
            self.log.push_back(Logged::Change(log));
        }
        self.forget();
        Ok(())
    }

    /// A change of a table with a primary key.
    fn put(&mut self, key: OwnedRow, row: OwnedRow, kind: RowKind, i: usize, to: &mut Changes) {
        match kind {
            // the row has another version already
            RowKind::UpdateBefore if self.content.get(&key).is_some_and(|(old, _)| *old != row) => {
            }
            RowKind::UpdateBefore | RowKind::Delete => {
                if let Some((old, _)) = self.content.shift_remove(&key) {
                    to.push_old(RowKind::Delete, old);
                }
            }
            RowKind::Insert | RowKind::UpdateAfter => {
                match self.content.insert(key, (row.clone(), 1)) {
                    None => to.push_new(RowKind::Insert, i),
                    Some((old, _)) if old == row => {}
                    Some((old, _)) => {
                        to.push_old(RowKind::UpdateBefore, old);
                        to.push_new(RowKind::UpdateAfter, i);
                    }
                }
            }
        }
    }

    /// A change of a table without one.
    fn count(&mut self, row: OwnedRow, kind: RowKind, i: usize, to: &mut Changes) {
        if kind.is_add() {
            self.content.entry(row.clone()).or_insert((row, 0)).1 += 1;
            to.push_new(kind, i);
            return;
        }
        let Some((_, count)) = self.content.get_mut(&row) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.content.shift_remove(&row);
        }
        to.push_new(kind, i);
    }

    /// Drops changes that no reader needs.
    fn forget(&mut self) {
        self.pins.retain(|pin| pin.strong_count() > 0);
        let needed = self.pins.iter().filter_map(Weak::upgrade);
        let needed = needed.map(|pin| pin.next()).min();
        let keep_from = needed.unwrap_or_else(|| self.end());
        while self.first < keep_from && self.log.pop_front().is_some() {
            self.first += 1;
        }
    }
}

/// Which rows are `-U` whose key gets a new row before anything else: the new row says it all. A
/// filter may have taken the new row away: then the `-U` is a deletion.
fn replaced(batch: &ChangeBatch, keys: &Rows) -> Vec<bool> {
    let mut replaced = vec![false; batch.len()];
    if batch.ops().is_none() {
        return replaced;
    }
    let mut next: HashMap<&[u8], bool> = HashMap::new();
    for i in (0..batch.len()).rev() {
        let kind = batch.kind(i);
        let is_added = next.insert(keys.row(i).data(), kind.is_add());
        replaced[i] = kind == RowKind::UpdateBefore && is_added == Some(true);
    }
    replaced
}

/// The changes that a batch has brought about.
#[derive(Default)]
struct Changes {
    kinds: Vec<RowKind>,
    /// Row of the batch, or of the old rows behind them.
    rows: Vec<Result<usize, usize>>,
    old: Vec<OwnedRow>,
}

impl Changes {
    fn push_new(&mut self, kind: RowKind, row: usize) {
        self.kinds.push(kind);
        self.rows.push(Ok(row));
    }

    fn push_old(&mut self, kind: RowKind, row: OwnedRow) {
        self.kinds.push(kind);
        self.rows.push(Err(self.old.len()));
        self.old.push(row);
    }

    fn into_batch(
        self,
        batch: &ChangeBatch,
        converter: Option<&RowConverter>,
        arrow: &SchemaRef,
    ) -> Result<ChangeBatch> {
        let new = RecordBatch::try_new(Arc::clone(arrow), batch.rows().columns().to_vec())?;
        let all = match converter {
            Some(converter) if !self.old.is_empty() => {
                let old = converter.convert_rows(self.old.iter().map(OwnedRow::row))?;
                let old = RecordBatch::try_new(Arc::clone(arrow), old)?;
                arrow::compute::concat_batches(arrow, [&new, &old])?
            }
            _ => new,
        };
        let indices = self.rows.into_iter().map(|row| {
            let index = match row {
                Ok(new) => new,
                Err(old) => batch.len() + old,
            };
            u32::try_from(index).unwrap_or(u32::MAX)
        });
        let indices = UInt32Array::from_iter_values(indices);
        let rows = arrow::compute::take_record_batch(&all, &indices)?;
        ChangeBatch::try_new(rows, self.kinds)
    }
}

impl fmt::Debug for MemoryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryTable")
            .field("schema", &self.schema.to_string())
            .field("rows", &state.content.len())
            .field("changes", &state.end())
            .finish_non_exhaustive()
    }
}
