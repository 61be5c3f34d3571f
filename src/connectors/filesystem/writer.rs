//! One subtask's share of the sink: open parts by partition, and when they are closed.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::UInt32Array;
use arrow::compute::{partition, take_record_batch};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::compaction::Closed;
use super::part::{Origin, Part, PartName};
use super::partition_commit::Pending;
use super::sink::{Committable, Guarantee, Shared};
use crate::changelog::ChangeBatch;
use crate::connectors::SinkWriter;
use crate::error::{Error, Result};
use crate::formats::{Encoder, Records};
use crate::types::text::{Printer, Style};

/// Parts that a subtask has open at most; one more closes the one that was begun first.
const MAX_OPEN: usize = 200;

/// A writer's state.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    job: String,
    /// The last epoch that was pre-committed.
    epoch: u64,
    open: Vec<Closed>,
    /// Partitions that are not complete.
    #[serde(default)]
    pending: Vec<Pending>,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    /// For formats of records.
    encoder: Option<Box<dyn Encoder>>,
    /// The columns that files hold, as indices into the physical columns.
    in_files: Vec<usize>,
    /// One a partition column.
    printers: Vec<Printer>,
    subtask: usize,
    /// The epoch whose rows are being written.
    epoch: u64,
    /// Number of the next part of the epoch.
    sequence: u64,
    /// By folder below the root.
    open: IndexMap<PathBuf, Part>,
    /// Durable, and not handed over.
    closed: Vec<Closed>,
    records: Records,
    watermark: i64,
    /// When the ages of parts are looked at again, ms.
    next_check: i64,
}

impl Writer {
    pub(super) fn new(shared: &Arc<Shared>, subtask: usize, epoch: u64) -> Result<Self> {
        let layout = &shared.layout;
        let encoder = match shared.format.bulk() {
            Some(_) => None,
            None => Some(shared.format.encoder(&shared.in_files)?),
        };
        let printer = |i: &usize| {
            let t = &layout.physical.columns[*i].data_type;
            Printer::new(t, Style::Row, chrono_tz::UTC)
        };
        Ok(Self {
            encoder,
            in_files: layout.in_files(),
            printers: layout.partitions.iter().map(printer).collect(),
            subtask,
            epoch,
            sequence: 0,
            open: IndexMap::new(),
            closed: Vec::new(),
            records: Records::default(),
            watermark: i64::MIN,
            next_check: i64::MIN,
            shared: Arc::clone(shared),
        })
    }

    /// The folder, below the root, of row `i`.
    fn folder(&self, batch: &ChangeBatch, i: usize) -> PathBuf {
        let values: Vec<String> = self
            .printers
            .iter()
            .zip(&self.shared.layout.partitions)
            .map(|(printer, column)| {
                let array = batch.rows().column(*column);
                let mut text = String::new();
                if array.is_valid(i) {
                    printer.write(array, i, &mut text);
                }
                text
            })
            .collect();
        let values = values.iter().map(String::as_str);
        self.shared.layout.partition_folder(values)
    }

    fn write_records(&mut self, batch: &ChangeBatch, records: &Records) -> Result<()> {
        let now = self.shared.clock.now_ms();
        for rows in self.runs(batch)? {
            let folder = self.folder(batch, rows.start);
            self.write_lines(&folder, records, rows, now)?;
        }
        Ok(())
    }

    /// Rows that follow each other and are of one partition.
    fn runs(&self, batch: &ChangeBatch) -> Result<Vec<Range<usize>>> {
        let columns = batch.rows().columns();
        let of = self.shared.layout.partitions.iter();
        let columns: Vec<_> = of.map(|column| Arc::clone(&columns[*column])).collect();
        Ok(match columns.as_slice() {
            _ if batch.is_empty() => Vec::new(),
            [] => std::iter::once(0..batch.len()).collect(),
            columns => partition(columns)?.ranges(),
        })
    }

    fn write_lines(
        &mut self,
        folder: &Path,
        records: &Records,
        mut rows: Range<usize>,
        now: i64,
    ) -> Result<()> {
        let size = self.shared.rolling.size;
        while !rows.is_empty() {
            let part = self.part(folder, now)?;
            for i in rows.by_ref() {
                let Some(record) = records.get(i) else {
                    return Err(Error::format(
                        "NULL has no record in this format; a file cannot hold it",
                    ));
                };
                part.write_line(record)?;
                if part.length >= size {
                    break;
                }
            }
            self.close_large(folder)?;
        }
        Ok(())
    }

    fn write_rows(&mut self, batch: &ChangeBatch) -> Result<()> {
        let now = self.shared.clock.now_ms();
        let rows = batch.rows().project(&self.in_files)?;
        if self.printers.is_empty() {
            let folder = PathBuf::new();
            self.part(&folder, now)?.write_rows(&rows)?;
            return self.close_large(&folder);
        }
        let mut groups: IndexMap<PathBuf, Vec<u32>> = IndexMap::new();
        for run in self.runs(batch)? {
            let group = groups.entry(self.folder(batch, run.start)).or_default();
            group.extend(run.filter_map(|i| u32::try_from(i).ok()));
        }
        for (folder, of_folder) in groups {
            let rows = take_record_batch(&rows, &UInt32Array::from(of_folder))?;
            self.part(&folder, now)?.write_rows(&rows)?;
            self.close_large(&folder)?;
        }
        Ok(())
    }

    /// The open part of a folder, which is written to now.
    fn part(&mut self, folder: &Path, now: i64) -> Result<&mut Part> {
        if !self.open.contains_key(folder) {
            self.begin(folder, now)?;
        }
        let part = self.open.get_mut(folder);
        let part = part.ok_or_else(|| Error::internal("a part is not open"))?;
        part.touched = now;
        Ok(part)
    }

    fn begin(&mut self, folder: &Path, now: i64) -> Result<()> {
        if self.open.len() >= MAX_OPEN
            && let Some((_, part)) = self.open.shift_remove_index(0)
        {
            self.close(part)?;
        }
        let shared = &self.shared;
        let origin = Origin {
            job: shared.job(),
            attempt: shared.attempt(),
            subtask: self.subtask,
            epoch: self.epoch,
            sequence: self.sequence,
        };
        let name = PartName::new(&shared.layout.root.join(folder), &origin);
        self.sequence += 1;
        let part = Part::create(name, shared.format.as_ref(), &shared.in_files, now)?;
        self.open.insert(folder.to_path_buf(), part);
        if let Some(committer) = &shared.committer {
            committer.add(self.subtask, folder, now);
        }
        Ok(())
    }

    fn close_large(&mut self, folder: &Path) -> Result<()> {
        let size = self.shared.rolling.size;
        let is_large = self.open.get(folder).is_some_and(|p| p.length >= size);
        if is_large && let Some(part) = self.open.shift_remove(folder) {
            self.close(part)?;
        }
        Ok(())
    }

    fn close(&mut self, part: Part) -> Result<()> {
        let closed = part.close()?;
        if self.shared.guarantee == Guarantee::AtLeastOnce {
            closed.name.publish()?;
            return super::part::sync_folder(&closed.name.visible);
        }
        self.closed.push(closed);
        Ok(())
    }

    fn close_all(&mut self) -> Result<()> {
        for (_, part) in std::mem::take(&mut self.open) {
            self.close(part)?;
        }
        Ok(())
    }

    /// Closes parts that are old or idle.
    fn close_due(&mut self, now: i64) -> Result<()> {
        let rolling = self.shared.rolling;
        let over = |since: i64, limit: Duration| now.saturating_sub(since) >= ms(limit);
        let due: Vec<PathBuf> = self
            .open
            .iter()
            .filter(|(_, p)| over(p.begun, rolling.age) || over(p.touched, rolling.idle))
            .map(|(folder, _)| folder.clone())
            .collect();
        for folder in due {
            if let Some(part) = self.open.shift_remove(&folder) {
                self.close(part)?;
            }
        }
        Ok(())
    }

    /// Closes the parts of partitions that are due. Answers the markers of those that are complete.
    fn end_partitions(&mut self, now: i64) -> Result<Vec<PathBuf>> {
        let shared = Arc::clone(&self.shared);
        let Some(committer) = &shared.committer else {
            return Ok(Vec::new());
        };
        let due = committer.due(self.subtask, self.watermark, now);
        for partition in &due {
            if let Some(part) = self.open.shift_remove(partition) {
                self.close(part)?;
            }
        }
        let markers = committer.done(self.subtask, &due, now).into_iter();
        Ok(markers.map(|m| shared.layout.root.join(m)).collect())
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl SinkWriter for Writer {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        let Some(encoder) = &mut self.encoder else {
            return self.write_rows(batch);
        };
        let rows = batch.rows().project(&self.in_files)?;
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        encoder.encode(&batch.with_rows(rows)?, &mut records)?;
        let written = self.write_records(batch, &records);
        self.records = records;
        written
    }

    fn watermark(&mut self, watermark: i64) -> Result<()> {
        self.watermark = watermark;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let now = self.shared.clock.now_ms();
        if now >= self.next_check {
            self.close_due(now)?;
            self.next_check = now.saturating_add(ms(self.shared.rolling.check));
        }
        self.open.values_mut().try_for_each(Part::flush)
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        let mut open = Vec::with_capacity(self.open.len());
        for part in self.open.values_mut() {
            part.sync()?;
            open.push(Closed {
                name: part.name.clone(),
                length: part.length,
            });
        }
        let committer = self.shared.committer.as_ref();
        encode(&State {
            job: self.shared.job(),
            epoch: self.epoch - 1,
            open,
            pending: committer.map_or_else(Vec::new, |c| c.pending_of(self.subtask)),
        })
    }

    fn restore(&mut self, states: &[Vec<u8>]) -> Result<()> {
        for state in states {
            let state: State = serde_json::from_slice(state)
                .map_err(|e| Error::checkpoint(format!("a state of another sink: {e}")))?;
            for part in state.open {
                part.name.truncate(part.length)?;
                self.closed.push(part);
            }
            // All subtasks are restored before one of them writes.
            self.shared.take_over(&state.job, state.epoch)?;
            if let Some(committer) = &self.shared.committer {
                for pending in state.pending {
                    committer.add(self.subtask, &pending.partition, pending.since);
                }
            }
            self.epoch = self.epoch.max(state.epoch + 1);
        }
        Ok(())
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        let now = self.shared.clock.now_ms();
        self.close_due(now)?;
        let is_bulk = self.encoder.is_none();
        if is_bulk || self.shared.guarantee == Guarantee::AtLeastOnce {
            self.close_all()?;
        }
        let markers = self.end_partitions(now)?;
        self.epoch = epoch + 1;
        self.sequence = 0;
        let parts = std::mem::take(&mut self.closed);
        let parts = parts.into_iter().map(Committable::Part);
        let all = parts.chain(markers.into_iter().map(Committable::Marker));
        all.map(|c| encode(&c)).collect()
    }

    fn end(&mut self) -> Result<()> {
        self.close_all()?;
        if let Some(committer) = &self.shared.committer {
            committer.end(self.subtask);
        }
        Ok(())
    }
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("state of a file sink: {e}")))
}
