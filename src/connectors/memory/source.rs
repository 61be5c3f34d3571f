//! Reads a memory table: its content at the start, then every change.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::lookup::MemoryLookup;
use super::saved::Saved;
use super::table::{Logged, MemoryTable, Next, Pin};
use crate::changelog::ChangelogMode;
use crate::connectors::lookup::TableLookup;
use crate::connectors::lookup::options::LookupSettings;
use crate::connectors::{
    SourcePoll, SourceReader, SourceReaderFactory, SplitPosition, TableSource,
};
use crate::error::{Error, Result};
use crate::types::Schema;

/// The name of the only split.
const SPLIT: &str = "table";
/// A reader that has seen all asks again after this long.
const PAUSE: Duration = Duration::from_millis(5);

/// One use of a table as a source.
pub(super) struct MemorySource {
    table: Arc<MemoryTable>,
    mode: ChangelogMode,
    schema: Schema,
    lookup: LookupSettings,
}

impl MemorySource {
    pub(super) fn new(
        table: Arc<MemoryTable>,
        mode: ChangelogMode,
        schema: Schema,
        lookup: LookupSettings,
    ) -> Self {
        Self {
            table,
            mode,
            schema,
            lookup,
        }
    }
}

impl TableSource for MemorySource {
    fn changelog_mode(&self) -> ChangelogMode {
        self.mode
    }

    fn is_bounded(&self) -> bool {
        false
    }

    fn supports_source_watermark(&self) -> bool {
        true
    }

    fn lookup(self: Arc<Self>) -> Option<TableLookup> {
        let lookups = Arc::new(MemoryLookup(Arc::clone(&self.table)));
        let columns = self.schema.clone();
        Some(self.lookup.of_lookups(lookups, self, columns))
    }

    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>> {
        Ok(Arc::new(Readers {
            pin: self.table.pin(),
            table: Arc::clone(&self.table),
            projection: projection.to_vec(),
            output: self.schema.project(projection),
        }))
    }
}

/// Shared by the readers of one job, also over its restarts.
struct Readers {
    table: Arc<MemoryTable>,
    /// Keeps the changes that a reader needs, also after a restart.
    pin: Arc<Pin>,
    projection: Vec<usize>,
    output: Schema,
}

impl SourceReaderFactory for Readers {
    fn create(
        &self,
        subtask: usize,
        _parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let mut reader = Reader {
            table: Arc::clone(&self.table),
            pin: Arc::clone(&self.pin),
            projection: self.projection.clone(),
            output: self.output.clone(),
            owns_split: subtask == 0,
            unread: VecDeque::new(),
            row: 0,
            next: 0,
            may_return_to: RefCell::default(),
        };
        if reader.owns_split {
            match restored.iter().find(|p| p.split == SPLIT) {
                Some(split) => reader.restore(&split.position)?,
                None => reader.begin()?,
            }
        }
        Ok(Box::new(reader))
    }
}

struct Reader {
    table: Arc<MemoryTable>,
    pin: Arc<Pin>,
    projection: Vec<usize>,
    output: Schema,
    owns_split: bool,
    /// What comes before change number `next`, and how many rows of the first entry have gone out.
    unread: VecDeque<Logged>,
    row: usize,
    next: u64,
    /// The next changes of checkpoints to which the job may come back.
    may_return_to: RefCell<Vec<u64>>,
}

/// Of a position, what tells of the log.
#[derive(Deserialize)]
struct Place {
    next: u64,
}

impl Reader {
    /// Starts with the content of this moment.
    fn begin(&mut self) -> Result<()> {
        let (content, watermark, next) = self.table.snapshot()?;
        self.unread.push_back(Logged::Change(content));
        if watermark > i64::MIN {
            self.unread.push_back(Logged::Watermark(watermark));
        }
        self.next = next;
        self.advance_pin();
        Ok(())
    }

    fn restore(&mut self, position: &str) -> Result<()> {
        let saved: Saved = serde_json::from_str(position).map_err(|e| {
            Error::checkpoint(format!("this is no position in a memory table: {e}"))
        })?;
        // A table that a job fills goes on with that job, or is filled anew from the start.
        if !self.table.is_of(&saved) && !self.table.has_writers() {
            self.table.restore(&saved)?;
        }
        self.unread.extend(self.table.waiting(&saved)?);
        self.next = saved.next;
        self.may_return_to.borrow_mut().push(saved.next);
        self.advance_pin();
        Ok(())
    }

    fn advance_pin(&self) {
        let kept = self.may_return_to.borrow().iter().copied().min();
        self.pin
            .advance(kept.map_or(self.next, |kept| kept.min(self.next)));
    }

    /// What the log of the table says next, if it is no change.
    fn load(&mut self) -> Result<Option<SourcePoll>> {
        let entry = match self.table.change(self.next) {
            Next::Change(batch) => Logged::Change(batch),
            Next::Watermark(watermark) => Logged::Watermark(watermark),
            Next::Nothing => return Ok(Some(SourcePoll::Pending(PAUSE))),
            Next::End => return Ok(Some(SourcePoll::End)),
            Next::Gone => {
                return Err(Error::checkpoint(
                    "the changes of a memory table since the checkpoint are gone",
                ));
            }
        };
        self.unread.push_back(entry);
        self.next += 1;
        self.advance_pin();
        Ok(None)
    }

    fn position(&self) -> Result<String> {
        let rest = self
            .unread
            .iter()
            .enumerate()
            .map(|(i, entry)| match entry {
                Logged::Change(batch) if i == 0 => {
                    let gone = self.row.min(batch.len());
                    Logged::Change(batch.slice(gone, batch.len() - gone))
                }
                other => other.clone(),
            });
        let saved = self.table.save(rest.collect(), Some(self.next))?;
        self.may_return_to.borrow_mut().push(saved.next);
        serde_json::to_string(&saved)
            .map_err(|e| Error::internal(format!("a position is no JSON: {e}")))
    }
}

impl SourceReader for Reader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        if !self.owns_split {
            return Ok(SourcePoll::End);
        }
        loop {
            let rows = match self.unread.front() {
                None => {
                    if let Some(poll) = self.load()? {
                        return Ok(poll);
                    }
                    continue;
                }
                Some(Logged::Watermark(watermark)) => {
                    let watermark = *watermark;
                    self.unread.pop_front();
                    return Ok(SourcePoll::Watermark(watermark));
                }
                Some(Logged::Change(batch)) if self.row < batch.len() => {
                    let count = max_rows.max(1).min(batch.len() - self.row);
                    batch.slice(self.row, count)
                }
                Some(Logged::Change(_)) => {
                    self.unread.pop_front();
                    self.row = 0;
                    continue;
                }
            };
            self.row += rows.len();
            let columns = rows.rows().project(&self.projection)?;
            let columns = columns.with_schema(self.output.to_arrow())?;
            return Ok(SourcePoll::Batch(rows.with_rows(columns)?));
        }
    }

    fn positions(&self) -> Vec<SplitPosition> {
        if !self.owns_split {
            return Vec::new();
        }
        let position = self.position().unwrap_or_else(|e| {
            // restoring it says so
            tracing::error!("a memory table cannot be saved: {e}");
            String::new()
        });
        vec![SplitPosition {
            split: SPLIT.into(),
            position,
        }]
    }

    fn checkpoint_complete(&mut self, positions: &[SplitPosition]) {
        let position = positions.iter().find(|p| p.split == SPLIT);
        let place = position.and_then(|p| serde_json::from_str::<Place>(&p.position).ok());
        if let Some(Place { next }) = place {
            self.may_return_to.borrow_mut().retain(|kept| *kept >= next);
            self.advance_pin();
        }
    }
}
