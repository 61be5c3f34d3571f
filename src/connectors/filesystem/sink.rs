//! The table as a sink: rows go into parts, one for each partition that rows come for.
//!
//! A part of lines may go on over several checkpoints. It is *closed* when it is large, old or idle,
//! when its partition is complete, and at the end of the job; a part of a bulk format at every
//! checkpoint. Closed parts are what [`pre_commit`](SinkWriter::pre_commit) hands over, and they
//! become visible when their checkpoint is complete. Parts that go on are in the writer's state, with
//! their length.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Layout;
use super::compaction::{Closed, pack, publish_merged};
use super::listing::failed;
use super::part::{epoch_of, sync_folder};
use super::partition_commit::{Committer, PartitionCommit};
use super::writer::Writer;
use crate::changelog::ChangelogMode;
use crate::connectors::{SinkWriter, SinkWriterFactory, TableSink};
use crate::error::{Error, Result};
use crate::formats::EncodingFormat;
use crate::runtime::clock::Clock;
use crate::types::Schema;

/// Attempts at a commit that fails for a reason that may pass.
const ATTEMPTS: u32 = 4;
/// The pause before the second attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(50);

/// When a part is closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rolling {
    /// Bytes.
    pub(super) size: u64,
    /// Since it was begun.
    pub(super) age: Duration,
    /// Since it was last written to.
    pub(super) idle: Duration,
    /// How often age and idleness are looked at.
    pub(super) check: Duration,
}

/// When closed parts become visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guarantee {
    /// With their checkpoint.
    ExactlyOnce,
    /// At once.
    AtLeastOnce,
}

/// How the sink writes.
pub(super) struct Settings {
    pub(super) rolling: Rolling,
    pub(super) guarantee: Guarantee,
    pub(super) partition_commit: Option<PartitionCommit>,
    /// Bytes of a compacted file, if small ones are to be compacted.
    pub(super) compaction: Option<u64>,
}

/// One use of a table as a sink.
pub(super) struct FileSink {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) layout: Layout,
    pub(super) format: Arc<dyn EncodingFormat>,
    /// The columns that files hold.
    pub(super) in_files: Schema,
    pub(super) rolling: Rolling,
    pub(super) guarantee: Guarantee,
    pub(super) committer: Option<Committer>,
    compaction: Option<u64>,
    pub(super) clock: Arc<dyn Clock>,
    /// In the names of all parts: of the job, which its checkpoints tell, and of this attempt.
    // No other lock is taken while this one is held.
    job: Mutex<String>,
    attempt: AtomicU64,
    /// The epoch after the restored one.
    first_epoch: AtomicU64,
}

/// What makes rows visible.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Committable {
    Part(Closed),
    /// The file that says that a partition is complete.
    Marker(PathBuf),
}

impl FileSink {
    pub(super) fn new(
        layout: Layout,
        format: Arc<dyn EncodingFormat>,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let in_files = layout.physical.project(&layout.in_files());
        match format.bulk() {
            Some(bulk) => bulk.check(&in_files)?,
            None => drop(format.encoder(&in_files)?),
        }
        let random = getrandom::u64()
            .map_err(|e| Error::connector(format!("no random name for files: {e}")))?;
        let is_partitioned = !layout.partitions.is_empty();
        let commit = settings.partition_commit.filter(|_| is_partitioned);
        Ok(Self {
            shared: Arc::new(Shared {
                layout,
                format,
                in_files,
                rolling: settings.rolling,
                guarantee: settings.guarantee,
                committer: commit.map(Committer::new),
                compaction: settings.compaction,
                clock,
                job: Mutex::new(format!("{random:016x}")),
                attempt: AtomicU64::new(random & 0xffff_ffff),
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
    fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        if let Some(committer) = &self.0.committer {
            committer.expect(parallelism);
        }
        let epoch = self.0.first_epoch.load(Ordering::SeqCst);
        Ok(Box::new(Writer::new(&self.0, subtask, epoch)?))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        self.commit_all(&[committable])
    }

    fn commit_all(&self, committables: &[&[u8]]) -> Result<()> {
        let mut parts: BTreeMap<PathBuf, Vec<Closed>> = BTreeMap::new();
        let mut markers = BTreeSet::new();
        for committable in committables {
            let committable = serde_json::from_slice(committable)
                .map_err(|e| Error::checkpoint(format!("a committable of another sink: {e}")))?;
            match committable {
                Committable::Part(part) => {
                    let folder = part.name.visible.parent().unwrap_or(Path::new(""));
                    parts.entry(folder.to_path_buf()).or_default().push(part);
                }
                Committable::Marker(file) => {
                    markers.insert(file);
                }
            }
        }
        for parts in parts.into_values() {
            self.publish(parts)?;
        }
        for file in markers {
            std::fs::File::create(&file).map_err(|e| failed(&file, &e))?;
            sync_folder(&file)?;
        }
        Ok(())
    }

    fn identify(&self, name: &str) {
        self.0.set_job(name);
    }

    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        let shared = &self.0;
        shared
            .first_epoch
            .store(restored_epoch + 1, Ordering::SeqCst);
        shared.attempt.fetch_add(1, Ordering::SeqCst);
        if let Some(committer) = &shared.committer {
            committer.reset();
        }
        remove_leftovers(&shared.layout.root, &shared.job(), restored_epoch)
    }
}

impl Writers {
    /// Makes the parts of one folder visible.
    fn publish(&self, parts: Vec<Closed>) -> Result<()> {
        let shared = &self.0;
        let Some(first) = parts.first().map(|p| p.name.visible.clone()) else {
            return Ok(());
        };
        let groups = match shared.compaction {
            Some(target) => pack(parts, target),
            None => parts.into_iter().map(|part| vec![part]).collect(),
        };
        for group in groups {
            again(|| publish_merged(&group, shared.format.as_ref(), &shared.in_files))?;
        }
        again(|| sync_folder(&first))
    }
}

/// Tries something that does no harm when it is repeated a few times.
fn again(mut work: impl FnMut() -> Result<()>) -> Result<()> {
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS {
        match work() {
            Ok(()) => return Ok(()),
            Err(e) => tracing::warn!("a commit is tried again: {e}"),
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
    work()
}

impl Shared {
    /// The job's part of the names of files.
    pub(super) fn job(&self) -> String {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        job.clone()
    }

    fn set_job(&self, job: &str) {
        job.clone_into(&mut self.job.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The attempt's part of the names of files.
    pub(super) fn attempt(&self) -> String {
        format!("{:08x}", self.attempt.load(Ordering::SeqCst))
    }

    /// Goes on with the names of a former attempt, and removes what it has begun after the restored
    /// checkpoint; `epoch` is the last one that a writer took part in, which others may have outlived.
    pub(super) fn take_over(&self, job: &str, epoch: u64) -> Result<()> {
        self.set_job(job);
        let restored = self.first_epoch.load(Ordering::SeqCst) - 1;
        let epoch = epoch.max(restored);
        remove_leftovers(&self.layout.root, job, epoch)
    }
}

/// Removes the files below `folder` that `job` has begun after `epoch` and not made visible.
fn remove_leftovers(folder: &Path, job: &str, epoch: u64) -> Result<()> {
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
            remove_leftovers(&path, job, epoch)?;
        } else if epoch_of(&name, job).is_some_and(|of| of > epoch) {
            std::fs::remove_file(&path).map_err(|e| failed(&path, &e))?;
        }
    }
    Ok(())
}
