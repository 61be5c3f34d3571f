//! Reads one subtask's files, one after the other, record by record.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use super::listing::{DataFile, failed};
use super::source::{FileInfo, Origin, ReadPlan, Share};
use crate::changelog::ChangeBatch;
use crate::connectors::{SourcePoll, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::formats::text;
use crate::formats::{Decoder, Splitter};
use crate::runtime::clock::Clock;
use crate::types::TypeKind;

/// Bytes that are asked of a file at once.
const CHUNK: usize = 64 << 10;
/// A batch is cut when its columns hold so many bytes.
const MAX_BYTES: usize = 16 << 20;
/// Bytes that a poll reads at most before it lets others do something.
const POLL_BYTES: u64 = 8 << 20;

/// Where the reading of a file stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// Bytes (of the decompressed text) before the next record.
    offset: u64,
    /// Records before it.
    record: u64,
    /// Rows of that record that were handed out.
    #[serde(default)]
    rows: usize,
    #[serde(default)]
    done: bool,
}

/// A file whose reading has begun.
struct OpenFile {
    file: DataFile,
    input: Box<dyn Read + Send>,
    /// Where the next record is decoded.
    position: Position,
    /// The bytes of the file from there on that were read, behind `used` bytes that are done with.
    buffer: Vec<u8>,
    used: usize,
    at_end: bool,
    splitter: Box<dyn Splitter>,
    /// Its columns that are the same in all rows: one value each.
    constants: Vec<Option<ArrayRef>>,
}

/// Rows of one record that were too many for a batch.
struct Rest {
    batch: ChangeBatch,
    /// The record, and how many of its rows were handed out.
    record: Position,
    /// Where the reading stands when all are.
    after: Position,
}

/// The watch for new files.
struct Monitor {
    share: Share,
    interval: Duration,
    clock: Arc<dyn Clock>,
    next_look: i64,
}

pub(super) struct FileReader {
    plan: Arc<ReadPlan>,
    arrow: SchemaRef,
    decoder: Box<dyn Decoder>,
    /// Files that were not begun.
    waiting: VecDeque<DataFile>,
    open: Option<OpenFile>,
    /// By path, of all files that the subtask has or had: behind the rows that were handed out.
    positions: BTreeMap<PathBuf, Position>,
    rest: Option<Rest>,
    /// An error that comes after the rows before it.
    failed: Option<Error>,
    monitor: Option<Monitor>,
}

impl FileReader {
    pub(super) fn new(plan: Arc<ReadPlan>) -> Result<Self> {
        Ok(Self {
            arrow: plan.output.to_arrow(),
            decoder: plan.format.decoder(&plan.columns)?,
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
        let known = self
            .positions
            .insert(file.path.clone(), Position::default());
        if known.is_none() {
            self.waiting.push_back(file);
        }
    }

    /// Reads a file from a position on.
    pub(super) fn resume(&mut self, split: &SplitPosition) -> Result<()> {
        let path = PathBuf::from(&split.split);
        let position: Position = serde_json::from_str(&split.position).map_err(|e| {
            Error::checkpoint(format!(
                "'{}' is no position in a file: {e}",
                split.position
            ))
        })?;
        if !position.done {
            self.waiting.push_back(DataFile::open(path.clone())?);
        }
        self.positions.insert(path, position);
        Ok(())
    }

    /// Goes on looking for new files.
    pub(super) fn monitor(&mut self, share: Share, interval: Duration, clock: Arc<dyn Clock>) {
        self.monitor = Some(Monitor {
            share,
            interval,
            clock,
            next_look: i64::MIN,
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
        for file in self.plan.layout.files()? {
            if share.owns(&file.path.to_string_lossy()) && !self.positions.contains_key(&file.path)
            {
                self.add(file);
            }
        }
        Ok(())
    }

    /// Opens the next file, if there is one.
    fn open_next(&mut self) -> Result<()> {
        let Some(file) = self.waiting.pop_front() else {
            return Ok(());
        };
        let position = self.positions.get(&file.path).cloned().unwrap_or_default();
        let constants = self.plan.origins.iter().zip(&self.plan.output.columns);
        let constants = constants
            .map(|(origin, column)| {
                let value = self.plan.constant(*origin, &file)?;
                let t = column.data_type.to_arrow();
                Ok(value.map(|v| cast(&v, &t)).transpose()?)
            })
            .collect::<Result<_>>()?;
        self.open = Some(OpenFile {
            input: open_at(&file.path, position.offset)?,
            file,
            position,
            buffer: Vec::new(),
            used: 0,
            at_end: false,
            splitter: self.plan.format.splitter(),
            constants,
        });
        Ok(())
    }

    /// Rows of the open file, at most `max_rows`; fewer, and even none, when there is another reason
    /// to stop.
    fn read(&mut self, max_rows: usize) -> Result<ChangeBatch> {
        let open = self
            .open
            .as_mut()
            .ok_or_else(|| Error::internal("no file is open"))?;
        let stop_at = open.position.offset.saturating_add(POLL_BYTES);
        // Of the last record: where it begins, and the rows before it.
        let mut last = (open.position.clone(), 0);
        while self.decoder.rows() < max_rows
            && self.decoder.bytes_used() < MAX_BYTES
            && open.position.offset < stop_at
        {
            let data = &open.buffer[open.used..];
            let Some(cut) = open.splitter.next(data, open.at_end) else {
                if open.at_end {
                    open.position.done = true;
                    break;
                }
                open.fill()?;
                continue;
            };
            last = (open.position.clone(), self.decoder.rows());
            if let Err(e) = self.decoder.decode(&data[cut.record]) {
                self.failed = Some(e.context(open.place()));
                break;
            }
            open.used += cut.next;
            open.position = Position {
                offset: open.position.offset + cut.next as u64,
                record: open.position.record + 1,
                ..Position::default()
            };
            if last.0.rows > 0 {
                break;
            }
        }
        let decoded = self.decoder.finish()?;
        let path = open.file.path.clone();
        let after = open.position.clone();
        let batch = self.with_constants(&decoded)?;
        let (mut record, rows_before) = last;
        // The first record after a restore may have rows that were handed out before.
        let skip = record.rows.min(batch.len());
        let batch = batch.slice(skip, batch.len() - skip);
        if batch.len() <= max_rows {
            self.positions.insert(path, after);
            return Ok(batch);
        }
        record.rows += max_rows - rows_before;
        self.positions.insert(path, record.clone());
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
        let path = self.open.as_ref()?.file.path.clone();
        if rest.batch.len() <= max_rows {
            self.positions.insert(path, rest.after);
            return Some(rest.batch);
        }
        let batch = rest.batch.slice(0, max_rows);
        rest.batch = rest.batch.slice(max_rows, rest.batch.len() - max_rows);
        rest.record.rows += max_rows;
        self.positions.insert(path, rest.record.clone());
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
            let before = self.open.as_ref().map_or(0, |open| open.position.offset);
            let batch = self.read(max_rows)?;
            let has_moved = self
                .open
                .as_ref()
                .is_some_and(|open| open.position.offset > before);
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
            .map(|(path, position)| SplitPosition {
                split: path.to_string_lossy().into_owned(),
                position: serde_json::to_string(position).unwrap_or_default(),
            })
            .collect()
    }

    fn skipped(&self) -> u64 {
        self.decoder.skipped()
    }
}

impl Monitor {
    /// How long until the next look.
    fn wait(&self) -> Duration {
        let wait = self.next_look.saturating_sub(self.clock.now_ms());
        Duration::from_millis(u64::try_from(wait).unwrap_or(0))
    }
}

impl OpenFile {
    /// Reads on.
    fn fill(&mut self) -> Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        // A long record is not looked at again for every chunk of it.
        let chunk = CHUNK.max(self.buffer.len());
        let before = self.buffer.len();
        self.buffer.resize(before + chunk, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[before..]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let read = read.map_err(|e| failed(&self.file.path, &e))?;
        self.buffer.truncate(before + read);
        self.at_end = read == 0;
        Ok(())
    }

    /// Where the reading stands, for messages.
    fn place(&self) -> String {
        format!(
            "record {} (byte {}) of file {}",
            self.position.record + 1,
            self.position.offset,
            self.file.path.display()
        )
    }
}

/// Opens a file, decompressed as its name says, at a byte of its text.
fn open_at(path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
    let mut file = File::open(path).map_err(|e| failed(path, &e))?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let mut input: Box<dyn Read + Send> = match extension {
        "gz" | "gzip" => Box::new(flate2::read::MultiGzDecoder::new(file)),
        "deflate" => Box::new(flate2::read::ZlibDecoder::new(file)),
        "zst" => {
            let decoder = zstd::Decoder::new(file).map_err(|e| failed(path, &e))?;
            Box::new(decoder)
        }
        _ => {
            file.seek(SeekFrom::Start(offset))
                .map_err(|e| failed(path, &e))?;
            return Ok(Box::new(file));
        }
    };
    std::io::copy(&mut input.by_ref().take(offset), &mut std::io::sink())
        .map_err(|e| failed(path, &e))?;
    Ok(input)
}

impl ReadPlan {
    /// The one value that a column has in all rows of a file.
    fn constant(&self, origin: Origin, file: &DataFile) -> Result<Option<ArrayRef>> {
        let string = TypeKind::STRING.nullable();
        let mut column;
        match origin {
            Origin::Decoded(_) => return Ok(None),
            Origin::Partition(index) => {
                let data_type =
                    &self.layout.physical.columns[self.layout.partitions[index]].data_type;
                column = ColumnBuilder::new(data_type);
                let values = self.layout.partition_values(&file.path)?;
                match values.into_iter().nth(index).flatten() {
                    None => column.push_null(),
                    Some(value) => push_partition(&mut column, &value).ok_or_else(|| {
                        Error::connector(format!(
                            "Can not convert {value} to type {data_type} for partition value ({})",
                            file.path.display()
                        ))
                    })?,
                }
            }
            Origin::Info(info) => {
                let text = match info {
                    FileInfo::Path => Some(file.path.to_string_lossy()),
                    FileInfo::Name => file.path.file_name().map(|n| n.to_string_lossy()),
                    FileInfo::Size | FileInfo::ModificationTime => None,
                };
                column = ColumnBuilder::new(&match info {
                    FileInfo::Path | FileInfo::Name => string,
                    FileInfo::Size => TypeKind::BigInt.not_null(),
                    FileInfo::ModificationTime => TypeKind::TimestampLtz(3).not_null(),
                });
                match (&mut column, text) {
                    (ColumnBuilder::String(b), Some(text)) => b.push(text.as_bytes()),
                    (ColumnBuilder::BigInt(p), _) => {
                        p.push(i64::try_from(file.size).unwrap_or(i64::MAX));
                    }
                    (ColumnBuilder::Timestamp(p, ..), _) => p.push(file.modified),
                    _ => column.push_null(),
                }
            }
        }
        Ok(Some(column.finish()?))
    }
}

/// Appends the value of a partition column that a folder's name tells.
fn push_partition(column: &mut ColumnBuilder, value: &str) -> Option<()> {
    let integer = |min: i64, max: i64| text::parse_integer(value, min, max);
    match column {
        ColumnBuilder::String(b) => b.push(value.as_bytes()),
        ColumnBuilder::Boolean(values, nulls) => {
            values.append(value.eq_ignore_ascii_case("true"));
            nulls.append_non_null();
        }
        ColumnBuilder::TinyInt(p) => {
            p.push(i8::try_from(integer(i8::MIN.into(), i8::MAX.into())?).ok()?);
        }
        ColumnBuilder::SmallInt(p) => {
            p.push(i16::try_from(integer(i16::MIN.into(), i16::MAX.into())?).ok()?);
        }
        ColumnBuilder::Int(p) => {
            p.push(i32::try_from(integer(i32::MIN.into(), i32::MAX.into())?).ok()?);
        }
        ColumnBuilder::BigInt(p) => p.push(integer(i64::MIN, i64::MAX)?),
        ColumnBuilder::Float(p) => p.push(text::parse_float(value)?),
        ColumnBuilder::Double(p) => p.push(text::parse_double(value)?),
        ColumnBuilder::Decimal(p, precision, scale) => {
            match text::parse_decimal(value, *precision, *scale)? {
                text::Decimal::Value(v) => p.push(v),
                text::Decimal::TooLarge => return None,
            }
        }
        ColumnBuilder::Date(p) => p.push(text::parse_date(value)?),
        ColumnBuilder::Timestamp(p, unit, false) => {
            p.push(text::parse_timestamp(value, 'T')?.in_unit(*unit)?);
        }
        _ => return None,
    }
    Some(())
}
