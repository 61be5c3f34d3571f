//! Reads a memory table: its content at the start, then every change.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::table::{MemoryTable, Next, Pin};
use crate::changelog::{ChangeBatch, ChangelogMode};
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
}

impl MemorySource {
    pub(super) fn new(table: Arc<MemoryTable>, mode: ChangelogMode, schema: Schema) -> Self {
        Self {
            table,
            mode,
            schema,
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

    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>> {
        Ok(Arc::new(Readers {
            shared: Arc::new(Shared {
                pin: self.table.pin(),
                table: Arc::clone(&self.table),
                start: Mutex::new(None),
            }),
            projection: projection.to_vec(),
            output: self.schema.project(projection),
        }))
    }
}

/// What the readers of one job share, also over its restarts.
struct Shared {
    table: Arc<MemoryTable>,
    pin: Arc<Pin>,
    /// The content with which the job began, and the change after it, until a checkpoint that lies
    /// behind it is complete.
    start: Mutex<Option<Start>>,
}

/// What a job begins with.
#[derive(Clone)]
struct Start {
    content: ChangeBatch,
    watermark: i64,
    /// Number of the change after it.
    next: u64,
}

struct Readers {
    shared: Arc<Shared>,
    projection: Vec<usize>,
    output: Schema,
}

/// Where the reading stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// Whether it is in the content of the start; else in the changes.
    in_start: bool,
    /// Number of the change; of the first one after the content.
    change: u64,
    /// Rows of it that were handed out.
    rows: usize,
}

impl SourceReaderFactory for Readers {
    fn create(
        &self,
        subtask: usize,
        _parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let owns_split = subtask == 0;
        let position = match restored.iter().find(|p| p.split == SPLIT) {
            Some(split) => serde_json::from_str(&split.position).map_err(|e| {
                Error::checkpoint(format!(
                    "'{}' is no position in a memory table: {e}",
                    split.position
                ))
            })?,
            None => Position {
                in_start: true,
                change: if owns_split { self.shared.begin()? } else { 0 },
                rows: 0,
            },
        };
        Ok(Box::new(Reader {
            shared: Arc::clone(&self.shared),
            projection: self.projection.clone(),
            output: self.output.clone(),
            position,
            owns_split,
            current: None,
            start_watermark: None,
            may_return: Cell::new(!restored.is_empty()),
        }))
    }
}

impl Shared {
    /// Takes the content of this moment as the start; gives the number of the change after it.
    fn begin(&self) -> Result<u64> {
        let (content, watermark, next) = self.table.snapshot()?;
        self.pin.advance(next);
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(Start {
            content,
            watermark,
            next,
        });
        Ok(next)
    }

    /// The content of the start and the changes before number `next` are not needed any more.
    fn forget(&self, next: u64) {
        self.pin.advance(next);
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The content of the start, if it is still there.
    fn start(&self, next: u64) -> Option<Start> {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        start.as_ref().filter(|start| start.next == next).cloned()
    }
}

struct Reader {
    shared: Arc<Shared>,
    projection: Vec<usize>,
    output: Schema,
    position: Position,
    owns_split: bool,
    /// The content or change at `position`.
    current: Option<ChangeBatch>,
    /// The watermark that follows the content of the start.
    start_watermark: Option<i64>,
    /// Whether a checkpoint may bring the job back to where it was: then what lies behind `position`
    /// is kept until a later checkpoint is complete.
    may_return: Cell<bool>,
}

impl Reader {
    /// Goes behind what lies at `position`.
    fn pass(&mut self) {
        self.current = None;
        self.position.rows = 0;
        if !std::mem::replace(&mut self.position.in_start, false) {
            self.position.change += 1;
        }
        if !self.may_return.get() {
            self.shared.forget(self.position.change);
        }
    }

    /// Goes to the rows at `position`. `None` when it is reached.
    fn load(&mut self) -> Result<Option<SourcePoll>> {
        if self.current.is_some() {
            return Ok(None);
        }
        if self.position.in_start {
            if let Some(start) = self.shared.start(self.position.change) {
                self.start_watermark = Some(start.watermark).filter(|w| *w > i64::MIN);
                self.current = Some(start.content);
            }
        } else if let Some(watermark) = self.start_watermark.take() {
            return Ok(Some(SourcePoll::Watermark(watermark)));
        } else {
            match self.shared.table.change(self.position.change) {
                Next::Change(batch) => self.current = Some(batch),
                Next::Watermark(watermark) => {
                    self.pass();
                    return Ok(Some(SourcePoll::Watermark(watermark)));
                }
                Next::Nothing => return Ok(Some(SourcePoll::Pending(PAUSE))),
                Next::End => return Ok(Some(SourcePoll::End)),
                Next::Gone => {}
            }
        }
        if self.current.is_some() {
            return Ok(None);
        }
        Err(Error::checkpoint(
            "the content of a memory table at the checkpoint is gone: it does not outlive the process",
        ))
    }
}

impl SourceReader for Reader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        if !self.owns_split {
            return Ok(SourcePoll::End);
        }
        loop {
            if let Some(poll) = self.load()? {
                return Ok(poll);
            }
            let Some(current) = &self.current else {
                return Err(Error::internal("a memory reader has no rows to read"));
            };
            let first = self.position.rows.min(current.len());
            let count = max_rows.max(1).min(current.len() - first);
            let rows = current.slice(first, count);
            self.position.rows = first + count;
            if self.position.rows == current.len() {
                self.pass();
            }
            if rows.is_empty() {
                continue;
            }
            let columns = rows.rows().project(&self.projection)?;
            let columns = columns.with_schema(self.output.to_arrow())?;
            return Ok(SourcePoll::Batch(rows.with_rows(columns)?));
        }
    }

    fn positions(&self) -> Vec<SplitPosition> {
        if !self.owns_split {
            return Vec::new();
        }
        self.may_return.set(true);
        vec![SplitPosition {
            split: SPLIT.into(),
            position: serde_json::to_string(&self.position).unwrap_or_default(),
        }]
    }

    fn checkpoint_complete(&mut self, positions: &[SplitPosition]) {
        let position = positions.iter().find(|p| p.split == SPLIT);
        let Some(position) =
            position.and_then(|p| serde_json::from_str::<Position>(&p.position).ok())
        else {
            return;
        };
        if !position.in_start {
            self.shared.forget(position.change);
        }
    }
}
