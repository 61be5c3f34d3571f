//! Reads one subtask's files, one after the other, record by record.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::SchemaRef;

use super::listing::DataFile;
use super::open_file::{Content, OpenFile, Position, is_compressed};
use super::source::{Origin, ReadPlan, Share};
use crate::changelog::ChangeBatch;
use crate::connectors::{SourcePoll, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::formats::Decoder;
use crate::runtime::clock::Clock;

/// A batch is cut when its columns hold so many bytes.
const MAX_BYTES: usize = 16 << 20;
/// Bytes that a poll reads at most before it lets others do something.
const POLL_BYTES: u64 = 8 << 20;

/// Rows of one record that were too many for a batch.
struct Rest {
    batch: ChangeBatch,
    /// The record, and how many of its rows were handed out.
    record: Position,
    /// Where the reading stands when all are.
    after: Position,
}

/// The watch for new files and files that grow.
struct Monitor {
    share: Share,
    interval: Duration,
    clock: Arc<dyn Clock>,
    next_look: i64,
    /// Size and time of change of every file at the last look.
    seen: BTreeMap<PathBuf, (u64, i64)>,
}

pub(super) struct FileReader {
    plan: Arc<ReadPlan>,
    arrow: SchemaRef,
    /// For formats of records.
    decoder: Option<Box<dyn Decoder>>,
    /// Files that were not begun.
    waiting: VecDeque<DataFile>,
    open: Option<OpenFile>,
    /// By split, of all files that the subtask has or had: behind the rows that were handed out.
    positions: BTreeMap<String, Position>,
    rest: Option<Rest>,
    /// An error that comes after the rows before it.
    failed: Option<Error>,
    monitor: Option<Monitor>,
}

impl FileReader {
    pub(super) fn new(plan: Arc<ReadPlan>) -> Result<Self> {
        Ok(Self {
            arrow: plan.output.to_arrow(),
            decoder: match plan.format.bulk() {
                Some(_) => None,
                None => Some(plan.format.decoder(&plan.columns)?),
            },
            plan,
            waiting: VecDeque::new(),
            open: None,
            positions: BTreeMap::new(),
            rest: None,
            failed: None,
            monitor: None,
        })
    }

    /// Reads `file` too, from its start.
    pub(super) fn add(&mut self, file: DataFile) {
        let known = self.positions.insert(file.split(), Position::default());
        if known.is_none() {
            self.waiting.push_back(file);
        }
    }

    /// Reads a file from a position on.
    pub(super) fn resume(&mut self, split: &SplitPosition) -> Result<()> {
        let position: Position = serde_json::from_str(&split.position).map_err(|e| {
            Error::checkpoint(format!(
                "'{}' is no position in a file: {e}",
                split.position
            ))
        })?;
        if !position.done {
            let mut file = DataFile::of_split(&split.split)?;
            let is_bulk = self.plan.format.bulk().is_some();
            file.may_grow = self.monitor.is_some() && !is_bulk && !is_compressed(&file.path);
            self.waiting.push_back(file);
        }
        self.positions.insert(split.split.clone(), position);
        Ok(())
    }

    /// Goes on looking for new files.
    pub(super) fn monitor(&mut self, share: Share, interval: Duration, clock: Arc<dyn Clock>) {
        self.monitor = Some(Monitor {
            share,
            interval,
            clock,
            next_look: i64::MIN,
            seen: BTreeMap::new(),
        });
    }

    /// Looks for new files if it is time to.
    fn look(&mut self) -> Result<()> {
        let Some(monitor) = &mut self.monitor else {
            return Ok(());
        };
        let now = monitor.clock.now_ms();
        if now < monitor.next_look {
            return Ok(());
        }
        let interval = i64::try_from(monitor.interval.as_millis()).unwrap_or(i64::MAX);
        monitor.next_look = now.saturating_add(interval.max(1));
        let share = monitor.share;
        let is_bulk = self.plan.format.bulk().is_some();
        for mut file in self.plan.layout.files()? {
            if !share.owns(&file.path.to_string_lossy()) {
                continue;
            }
            file.may_grow = !is_bulk && !is_compressed(&file.path);
            let state = (file.size, file.modified);
            let before = monitor.seen.insert(file.path.clone(), state);
            let Some(position) = self.positions.get_mut(&file.split()) else {
                self.positions.insert(file.split(), Position::default());
                self.waiting.push_back(file);
                continue;
            };
            if !file.may_grow || !position.done || file.size == position.offset {
                continue;
            }
            if file.size < position.offset {
                let path = file.path.display();
                tracing::warn!("{path} is shorter than what was read of it: it is read again");
                *position = Position::default();
            }
            // A last line that nothing ends is taken for whole when the file has not changed.
            file.may_grow = before != Some(state);
            position.done = false;
            self.waiting.push_back(file);
        }
        Ok(())
    }

    /// Opens the next file, if there is one.
    fn open_next(&mut self) -> Result<()> {
        let Some(file) = self.waiting.pop_front() else {
            return Ok(());
        };
        let position = self
            .positions
            .get(&file.split())
            .cloned()
            .unwrap_or_default();
        let constants = self.plan.origins.iter().zip(&self.plan.output.columns);
        let constants = constants
            .map(|(origin, column)| {
                let value = self.plan.constant(*origin, &file)?;
                let t = column.data_type.to_arrow();
                Ok(value.map(|v| cast(&v, &t)).transpose()?)
            })
            .collect::<Result<_>>()?;
        self.open = Some(OpenFile::open(&self.plan, file, position, constants)?);
        Ok(())
    }

    /// Rows of the open file, at most `max_rows`; fewer, and even none, when there is another reason
    /// to stop.
    fn read(&mut self, max_rows: usize) -> Result<ChangeBatch> {
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| Error::internal("no file is open"))?;
        if let Content::Bulk(reader) = &mut open.content {
            let rows = reader.next(max_rows);
            let rows = rows.map_err(|e| e.context(open.place()))?;
            open.position.record += rows.as_ref().map_or(0, |r| r.num_rows() as u64);
            open.position.done = rows.is_none();
            let (split, position) = (open.file.split(), open.position.clone());
            self.positions.insert(split, position);
            let rows = rows.unwrap_or_else(|| RecordBatch::new_empty(self.plan.columns.arrow()));
            return self.with_constants(&ChangeBatch::inserts(rows));
        }
        self.read_records(max_rows)
    }

    fn read_records(&mut self, max_rows: usize) -> Result<ChangeBatch> {
        let (Some(open), Some(decoder)) = (&mut self.open, &mut self.decoder) else {
            return Err(Error::internal("no file is open"));
        };
        let stop_at = open.position.offset.saturating_add(POLL_BYTES);
        // Of the last record: where it begins, and the rows before it.
        let mut last = (open.position.clone(), 0);
        while decoder.rows() < max_rows
            && decoder.bytes_used() < MAX_BYTES
            && open.position.offset < stop_at
        {
            let Content::Records(records) = &mut open.content else {
                return Err(Error::internal("a file without records"));
            };
            let Some(found) = records.next(&open.file.path)? else {
                open.position.done = true;
                break;
            };
            last = (open.position.clone(), decoder.rows());
            if let Err(e) = decoder.decode(&records.buffer[found.record]) {
                self.failed = Some(e.context(open.place()));
                break;
            }
            records.used += found.length;
            open.position = Position {
                offset: open.position.offset + found.length as u64,
                record: open.position.record + 1,
                ..Position::default()
            };
            if last.0.rows > 0 {
                break;
            }
        }
        let decoded = decoder.finish()?;
        let split = open.file.split();
        let after = open.position.clone();
        let batch = self.with_constants(&decoded)?;
        let (mut record, rows_before) = last;
        // The first record after a restore may have rows that were handed out before.
        let skip = record.rows.min(batch.len());
        let batch = batch.slice(skip, batch.len() - skip);
        if batch.len() <= max_rows {
            self.positions.insert(split, after);
            return Ok(batch);
        }
        record.rows += max_rows - rows_before;
        self.positions.insert(split, record.clone());
        self.rest = Some(Rest {
            batch: batch.slice(max_rows, batch.len() - max_rows),
            record,
            after,
        });
        Ok(batch.slice(0, max_rows))
    }

    /// Rows that are left of the last record.
    fn take_rest(&mut self, max_rows: usize) -> Option<ChangeBatch> {
        let mut rest = self.rest.take()?;
        let split = self.open.as_ref()?.file.split();
        if rest.batch.len() <= max_rows {
            self.positions.insert(split, rest.after);
            return Some(rest.batch);
        }
        let batch = rest.batch.slice(0, max_rows);
        rest.batch = rest.batch.slice(max_rows, rest.batch.len() - max_rows);
        rest.record.rows += max_rows;
        self.positions.insert(split, rest.record.clone());
        self.rest = Some(rest);
        Some(batch)
    }

    /// The output's columns for rows of the open file.
    fn with_constants(&self, decoded: &ChangeBatch) -> Result<ChangeBatch> {
        let rows = decoded.len();
        let zeros = UInt32Array::from(vec![0; rows]);
        let constants = self.open.as_ref().map_or(&[][..], |open| &open.constants);
        let columns = self
            .plan
            .origins
            .iter()
            .zip(constants)
            .map(|(origin, constant)| match (origin, constant) {
                (Origin::Decoded(i), _) => Ok(Arc::clone(decoded.rows().column(*i))),
                (_, Some(value)) => Ok(take(value, &zeros, None)?),
                (_, None) => Err(Error::internal("a constant column has no value")),
            })
            .collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns, &options)?;
        decoded.with_rows(batch)
    }
}

impl SourceReader for FileReader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        let max_rows = max_rows.max(1);
        if let Some(batch) = self.take_rest(max_rows) {
            return Ok(SourcePoll::Batch(batch));
        }
        loop {
            if let Some(e) = self.failed.take() {
                return Err(e);
            }
            if self.open.as_ref().is_some_and(|open| open.position.done) {
                self.open = None;
            }
            if self.open.is_none() {
                if self.waiting.is_empty() {
                    self.look()?;
                }
                self.open_next()?;
                if self.open.is_none() {
                    return Ok(match &self.monitor {
                        None => SourcePoll::End,
                        Some(monitor) => SourcePoll::Pending(monitor.wait()),
                    });
                }
            }
            let before = self.open.as_ref().map_or(0, |open| open.position.record);
            let batch = self.read(max_rows)?;
            let has_moved = self
                .open
                .as_ref()
                .is_some_and(|open| open.position.record > before);
            let is_done = self.open.as_ref().is_none_or(|open| open.position.done);
            // A batch without rows lets others go on after many bytes that held none.
            if !batch.is_empty() || has_moved && !is_done && self.failed.is_none() {
                return Ok(SourcePoll::Batch(batch));
            }
        }
    }

    fn positions(&self) -> Vec<SplitPosition> {
        self.positions
            .iter()
            .map(|(split, position)| SplitPosition {
                split: split.clone(),
                position: serde_json::to_string(position).unwrap_or_default(),
            })
            .collect()
    }

    fn skipped(&self) -> u64 {
        self.decoder.as_ref().map_or(0, |d| d.skipped())
    }
}

impl Monitor {
    /// How long until the next look.
    fn wait(&self) -> Duration {
        let wait = self.next_look.saturating_sub(self.clock.now_ms());
        Duration::from_millis(u64::try_from(wait).unwrap_or(0))
    }
}
