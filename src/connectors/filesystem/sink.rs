//! The table as a sink: rows go into parts, one for each partition that rows come for.
//!
//! A part may go on over several checkpoints. It is *closed* when it is large, old or idle, and at
//! the end of the job; closed parts are what [`pre_commit`](SinkWriter::pre_commit) hands over, and
//! they become visible when their checkpoint is complete. Parts that go on are in the writer's
//! state, with their length.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Layout;
use super::listing::failed;
use super::part::{Part, PartName, epoch_of, sync_folder};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::connectors::{SinkWriter, SinkWriterFactory, TableSink};
use crate::error::{Error, Result};
use crate::formats::{Encoder, EncodingFormat, Records};
use crate::runtime::clock::Clock;
use crate::types::text::{Printer, Style};

/// Parts that a subtask has open at most; one more closes the one that was begun first.
const MAX_OPEN: usize = 200;

/// When a part is closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rolling {
    /// Bytes.
    pub(super) size: u64,
    /// Since it was begun.
    pub(super) age: Duration,
    /// Since it was last written to.
    pub(super) idle: Duration,
}

/// One use of a table as a sink.
pub(super) struct FileSink {
    shared: Arc<Shared>,
}

struct Shared {
    layout: Layout,
    format: Arc<dyn EncodingFormat>,
    rolling: Rolling,
    /// The file that marks a partition as complete.
    success_file: Option<String>,
    clock: Arc<dyn Clock>,
    /// In the names of all parts.
    job: String,
    /// The epoch after the restored one.
    first_epoch: AtomicU64,
}

/// What makes rows visible.
#[derive(Debug, Serialize, Deserialize)]
struct Committable {
    part: PartName,
    /// A file that is made beside it.
    #[serde(default)]
    success_file: Option<PathBuf>,
}

impl FileSink {
    pub(super) fn new(
        layout: Layout,
        format: Arc<dyn EncodingFormat>,
        rolling: Rolling,
        success_file: Option<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let in_files = layout.physical.project(&layout.in_files());
        format.encoder(&in_files)?;
        let job = getrandom::u64()
            .map_err(|e| Error::connector(format!("no random name for files: {e}")))?;
        Ok(Self {
            shared: Arc::new(Shared {
                success_file: success_file.filter(|_| !layout.partitions.is_empty()),
                layout,
                format,
                rolling,
                clock,
                job: format!("{job:016x}"),
                first_epoch: AtomicU64::new(1),
            }),
        })
    }
}

impl TableSink for FileSink {
    fn changelog_mode(&self, _requested: ChangelogMode) -> ChangelogMode {
        self.shared.format.changelog_mode()
    }

    fn writers(&self) -> Result<Arc<dyn SinkWriterFactory>> {
        let root = &self.shared.layout.root;
        if root.is_file() {
            return Err(Error::connector(format!(
                "{} is a file; a sink needs a folder",
                root.display()
            )));
        }
        Ok(Arc::new(Writers(Arc::clone(&self.shared))))
    }
}

struct Writers(Arc<Shared>);

impl SinkWriterFactory for Writers {
    fn create(&self, subtask: usize, _parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        let shared = &self.0;
        let layout = &shared.layout;
        let in_files = layout.in_files();
        let partitions = layout.partitions.iter();
        Ok(Box::new(Writer {
            encoder: shared.format.encoder(&layout.physical.project(&in_files))?,
            in_files,
            printers: partitions
                .map(|i| {
                    let t = &layout.physical.columns[*i].data_type;
                    Printer::new(t, Style::Row, chrono_tz::UTC)
                })
                .collect(),
            subtask,
            epoch: shared.first_epoch.load(Ordering::SeqCst),
            sequence: 0,
            open: IndexMap::new(),
            closed: Vec::new(),
            records: Records::default(),
            shared: Arc::clone(shared),
        }))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        let committable: Committable = serde_json::from_slice(committable)
            .map_err(|e| Error::checkpoint(format!("a committable of another sink: {e}")))?;
        committable.part.publish()?;
        if let Some(file) = committable.success_file {
            std::fs::File::create(&file).map_err(|e| failed(&file, &e))?;
            sync_folder(&file)?;
        }
        Ok(())
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        self.0
            .first_epoch
            .store(restored_epoch + 1, Ordering::SeqCst);
        remove_leftovers(&self.0.layout.root, &self.0.job, None, restored_epoch)
    }
}

/// Removes the files below `folder` that `job` has begun after `epoch` and not made visible.
fn remove_leftovers(folder: &Path, job: &str, subtask: Option<usize>, epoch: u64) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| failed(folder, &e))?,
    };
    for entry in entries {
        let entry = entry.map_err(|e| failed(folder, &e))?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_leftovers(&path, job, subtask, epoch)?;
        } else if epoch_of(&name, job, subtask).is_some_and(|of| of > epoch) {
            std::fs::remove_file(&path).map_err(|e| failed(&path, &e))?;
        }
    }
    Ok(())
}

/// A writer's state.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    job: String,
    subtask: usize,
    /// The last epoch that was pre-committed.
    epoch: u64,
    open: Vec<OpenPart>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OpenPart {
    name: PartName,
    length: u64,
}

struct Writer {
    shared: Arc<Shared>,
    encoder: Box<dyn Encoder>,
    /// The columns that files hold.
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
    closed: Vec<PartName>,
    records: Records,
}

impl Writer {
    /// The folder, below the root, of row `i`. `value` is memory for texts.
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
        let is_partitioned = !self.printers.is_empty();
        let mut folder = PathBuf::new();
        for i in 0..records.len() {
            let Some(record) = records.get(i) else {
                return Err(Error::format(
                    "NULL has no record in this format; a file cannot hold it",
                ));
            };
            if is_partitioned {
                folder = self.folder(batch, i);
            }
            if !self.open.contains_key(&folder) {
                self.begin(&folder, now)?;
            }
            let Some(part) = self.open.get_mut(&folder) else {
                return Err(Error::internal("a part is not open"));
            };
            part.write(record)?;
            part.touched = now;
            if part.length >= self.shared.rolling.size
                && let Some(part) = self.open.shift_remove(&folder)
            {
                self.close(part)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, folder: &Path, now: i64) -> Result<()> {
        if self.open.len() >= MAX_OPEN
            && let Some((_, part)) = self.open.shift_remove_index(0)
        {
            self.close(part)?;
        }
        let shared = &self.shared;
        let path = shared.layout.root.join(folder);
        let name = PartName::new(&path, &shared.job, self.subtask, self.epoch, self.sequence);
        self.sequence += 1;
        self.open
            .insert(folder.to_path_buf(), Part::create(name, now)?);
        Ok(())
    }

    fn close(&mut self, mut part: Part) -> Result<()> {
        part.sync()?;
        self.closed.push(part.name);
        Ok(())
    }

    /// Closes parts that are old or idle.
    fn close_due(&mut self) -> Result<()> {
        let now = self.shared.clock.now_ms();
        let rolling = self.shared.rolling;
        let over = |since: i64, limit: Duration| {
            let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
            now.saturating_sub(since) >= limit
        };
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
}

impl SinkWriter for Writer {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        let rows: RecordBatch = batch.rows().project(&self.in_files)?;
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        self.encoder.encode(&batch.with_rows(rows)?, &mut records)?;
        let written = self.write_records(batch, &records);
        self.records = records;
        written
    }

    fn flush(&mut self) -> Result<()> {
        self.open.values_mut().try_for_each(Part::flush)
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        let mut open = Vec::with_capacity(self.open.len());
        for part in self.open.values_mut() {
            part.sync()?;
            open.push(OpenPart {
                name: part.name.clone(),
                length: part.length,
            });
        }
        encode(&State {
            job: self.shared.job.clone(),
            subtask: self.subtask,
            epoch: self.epoch - 1,
            open,
        })
    }

    fn restore(&mut self, states: &[Vec<u8>]) -> Result<()> {
        for state in states {
            let state: State = serde_json::from_slice(state)
                .map_err(|e| Error::checkpoint(format!("a state of another sink: {e}")))?;
            for part in state.open {
                part.name.truncate(part.length)?;
                self.closed.push(part.name);
            }
            let root = &self.shared.layout.root;
            remove_leftovers(root, &state.job, Some(state.subtask), state.epoch)?;
            self.epoch = self.epoch.max(state.epoch + 1);
        }
        Ok(())
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        self.close_due()?;
        self.epoch = epoch + 1;
        self.sequence = 0;
        std::mem::take(&mut self.closed)
            .into_iter()
            .map(|part| {
                let folder = part.visible.parent();
                let success_file = self.shared.success_file.as_ref();
                let success_file = success_file.zip(folder).map(|(name, f)| f.join(name));
                encode(&Committable { part, success_file })
            })
            .collect()
    }

    fn end(&mut self) -> Result<()> {
        for (_, part) in std::mem::take(&mut self.open) {
            self.close(part)?;
        }
        Ok(())
    }
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("state of a file sink: {e}")))
}
