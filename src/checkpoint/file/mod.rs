//! Checkpoints in a directory of a local disk.
//!
//! ```text
//! <directory>/lock               held by the process that uses the directory; its process id
//!             finished           empty: the job has finished by itself
//!             stop               asks the job to stop; see `control_file`
//!             chk-7.data         state tables of checkpoint 7, one Arrow IPC stream after another
//!             chk-7.manifest     everything else, and where the tables are; see `manifest`
//!             chk-7.committed    empty: all of checkpoint 7 is committed
//! ```
//!
//! A checkpoint exists once its manifest does. The manifest is written to a temporary name, synced and
//! renamed after the data is on disk. Lengths and checksums tell a whole checkpoint from a damaged one.

mod data;
mod inspect;
mod manifest;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

pub use self::inspect::{CheckpointInfo, VertexInfo};

use self::manifest::Manifest;
use super::{Checkpoint, CheckpointStore};
use crate::error::{Error, Result};

const MANIFEST: &str = "manifest";
const DATA: &str = "data";
const COMMITTED: &str = "committed";
const FINISHED: &str = "finished";

/// Keeps checkpoints in a directory, which is its own while it lives.
#[derive(Debug)]
pub struct FileStore {
    directory: PathBuf,
    retained: usize,
    /// The job had finished by itself when the directory was opened.
    finished: bool,
    /// Held, never read; none if the directory is only read.
    _lock: Option<File>,
}

impl FileStore {
    /// Opens `directory`, which is made if need be. The newest `retained` checkpoints are kept (at
    /// least one).
    ///
    /// # Errors
    /// When another process uses the directory, or it cannot be made.
    pub fn open(directory: impl Into<PathBuf>, retained: usize) -> Result<Self> {
        let directory = directory.into();
        fs::create_dir_all(&directory).map_err(|e| failed("make", &directory, &e))?;
        let lock = lock(&directory)?;
        let mut store = Self {
            directory,
            retained: retained.max(1),
            finished: false,
            _lock: Some(lock),
        };
        let marker = store.directory.join(FINISHED);
        if marker.exists() {
            store.finished = true;
            store.clear()?;
            fs::remove_file(&marker).map_err(|e| failed("remove", &marker, &e))?;
        }
        store.remove_leftovers()?;
        Ok(store)
    }

    /// The checkpoint at `path`, of whatever job: the newest whole one of a directory, or a certain one
    /// (`directory/chk-7`). Nothing is locked or changed.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn read(path: &Path) -> Result<Checkpoint> {
        let nothing = || {
            let text = format!("there is no checkpoint at '{}'", path.display());
            Error::checkpoint(text).hint("name a job's checkpoint directory, or DIRECTORY/chk-N")
        };
        if path.is_dir() {
            return Self::read_only(path).latest()?.ok_or_else(nothing);
        }
        let name = path.file_name().and_then(|n| n.to_str());
        let epoch = name.and_then(|n| n.strip_prefix("chk-")?.parse::<u64>().ok());
        match (epoch, path.parent()) {
            (Some(epoch), Some(parent)) => {
                let store = Self::read_only(parent);
                if !store.path(epoch, MANIFEST).exists() {
                    return Err(nothing());
                }
                store.load(epoch)
            }
            _ => Err(nothing()),
        }
    }

    fn read_only(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            retained: usize::MAX,
            finished: false,
            _lock: None,
        }
    }

    /// The job directories of `folder`: itself, or those in it.
    ///
    /// # Errors
    /// When it cannot be read, or there are none.
    pub fn directories(folder: &Path) -> Result<Vec<PathBuf>> {
        let is_job = |path: &Path| path.join("lock").exists();
        if is_job(folder) {
            return Ok(vec![folder.to_path_buf()]);
        }
        let entries = fs::read_dir(folder).map_err(|e| failed("read", folder, &e))?;
        let paths = entries.filter_map(|e| Some(e.ok()?.path()));
        let mut jobs: Vec<PathBuf> = paths.filter(|p| is_job(p)).collect();
        jobs.sort();
        if jobs.is_empty() {
            let text = format!("'{}' holds no checkpoints of a job", folder.display());
            return Err(
                Error::checkpoint(text).hint("name the 'execution.checkpointing.dir' of a job")
            );
        }
        Ok(jobs)
    }

    /// Who uses `directory`: `process 4711`.
    ///
    /// # Errors
    /// When the lock cannot be looked at.
    pub fn holder(directory: &Path) -> Result<Option<String>> {
        let path = directory.join("lock");
        let lock = File::open(&path).map_err(|e| failed("open", &path, &e))?;
        match lock.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(holder_of(&path))),
            Err(TryLockError::Error(e)) => Err(failed("lock", &path, &e)),
        }
    }

    /// Whether the last job in `directory` has finished by itself.
    #[must_use]
    pub fn is_finished(directory: &Path) -> bool {
        directory.join(FINISHED).exists()
    }

    /// Whether the job had finished by itself when the directory was opened, so that it begins anew.
    #[must_use]
    pub fn had_finished(&self) -> bool {
        self.finished
    }

    fn path(&self, epoch: u64, kind: &str) -> PathBuf {
        self.directory.join(format!("chk-{epoch}.{kind}"))
    }

    /// Epochs that have a file of this kind, newest first.
    fn epochs(&self, kind: &str) -> Result<Vec<u64>> {
        let failed = |e: std::io::Error| failed("list", &self.directory, &e);
        let mut epochs = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_str().and_then(|n: &str| n.strip_prefix("chk-"));
            let parts = name.and_then(|n| n.split_once('.'));
            if let Some((epoch, suffix)) = parts
                && suffix == kind
                && let Ok(epoch) = epoch.parse::<u64>()
            {
                epochs.push(epoch);
            }
        }
        epochs.sort_unstable_by(|a, b| b.cmp(a));
        Ok(epochs)
    }

    /// Removes what a crash has left half done.
    fn remove_leftovers(&self) -> Result<()> {
        let whole = self.epochs(MANIFEST)?;
        for kind in [DATA, COMMITTED, "manifest.tmp"] {
            for epoch in self.epochs(kind)? {
                if kind == "manifest.tmp" || !whole.contains(&epoch) {
                    self.remove(epoch, kind)?;
                }
            }
        }
        Ok(())
    }

    fn remove(&self, epoch: u64, kind: &str) -> Result<()> {
        let path = self.path(epoch, kind);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(failed("remove", &path, &e)),
            _ => Ok(()),
        }
    }

    /// The manifest goes first: without it the rest means nothing.
    fn remove_checkpoint(&self, epoch: u64) -> Result<()> {
        for kind in [MANIFEST, COMMITTED, DATA] {
            self.remove(epoch, kind)?;
        }
        Ok(())
    }

    fn load(&self, epoch: u64) -> Result<Checkpoint> {
        let path = self.path(epoch, MANIFEST);
        let text = fs::read(&path).map_err(|e| failed("read", &path, &e))?;
        let manifest =
            Manifest::decode(&text).map_err(|e| e.context(path.display().to_string()))?;
        let path = self.path(epoch, DATA);
        let mut data = File::open(&path).map_err(|e| failed("open", &path, &e))?;
        let checkpoint = manifest.restore(&mut data);
        let mut checkpoint = checkpoint.map_err(|e| e.context(path.display().to_string()))?;
        checkpoint.committed = self.path(epoch, COMMITTED).exists();
        Ok(checkpoint)
    }

    /// Makes names durable.
    fn sync_directory(&self) -> Result<()> {
        let directory = File::open(&self.directory).and_then(|d| d.sync_all());
        directory.map_err(|e| failed("sync", &self.directory, &e))
    }

    fn write_manifest(&self, epoch: u64, text: &[u8]) -> Result<()> {
        let temporary = self.path(epoch, "manifest.tmp");
        let mut file = File::create(&temporary).map_err(|e| failed("create", &temporary, &e))?;
        let written = file.write_all(text).and_then(|()| file.sync_all());
        written.map_err(|e| failed("write", &temporary, &e))?;
        let path = self.path(epoch, MANIFEST);
        fs::rename(&temporary, &path).map_err(|e| failed("rename to", &path, &e))?;
        self.sync_directory()
    }
}

impl CheckpointStore for FileStore {
    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        let epoch = checkpoint.epoch;
        // A former attempt at this epoch is void, its marker too.
        self.remove_checkpoint(epoch)?;
        let path = self.path(epoch, DATA);
        let file = File::create(&path).map_err(|e| failed("create", &path, &e))?;
        let mut writer = data::Writer::new(file);
        let manifest = Manifest::save(checkpoint, &mut writer);
        let manifest = manifest.map_err(|e| e.context(path.display().to_string()))?;
        let synced = writer.finish().and_then(|file| file.sync_all());
        synced.map_err(|e| failed("write", &path, &e))?;
        self.write_manifest(epoch, &manifest.encode()?)?;
        for old in self.epochs(MANIFEST)?.into_iter().skip(self.retained) {
            self.remove_checkpoint(old)?;
        }
        Ok(())
    }

    fn latest(&self) -> Result<Option<Checkpoint>> {
        let mut reasons = Vec::new();
        for epoch in self.epochs(MANIFEST)? {
            match self.load(epoch) {
                Ok(checkpoint) => return Ok(Some(checkpoint)),
                Err(e) => {
                    tracing::warn!("checkpoint {epoch} is damaged and skipped: {e}");
                    reasons.push(format!("checkpoint {epoch}: {e}"));
                }
            }
        }
        if reasons.is_empty() {
            return Ok(None);
        }
        Err(Error::checkpoint(format!(
            "no checkpoint in {} is whole\n{}",
            self.directory.display(),
            reasons.join("\n")
        ))
        .hint("empty the directory to start from the beginning"))
    }

    fn mark_committed(&self, epoch: u64) -> Result<()> {
        let path = self.path(epoch, COMMITTED);
        let marker = File::create(&path).and_then(|f| f.sync_all());
        marker.map_err(|e| failed("create", &path, &e))?;
        self.sync_directory()
    }

    fn clear(&self) -> Result<()> {
        // Oldest first: a crash must not leave an older one as the newest.
        let mut epochs = self.epochs(MANIFEST)?;
        epochs.reverse();
        for epoch in epochs {
            self.remove_checkpoint(epoch)?;
        }
        self.sync_directory()
    }

    fn finish(&self) -> Result<()> {
        let path = self.directory.join(FINISHED);
        let marker = File::create(&path).and_then(|f| f.sync_all());
        marker.map_err(|e| failed("create", &path, &e))?;
        self.sync_directory()?;
        self.clear()
    }
}

/// Takes the lock of `directory`, which names this process.
fn lock(directory: &Path) -> Result<File> {
    let path = directory.join("lock");
    let mut options = OpenOptions::new();
    let lock = options.create(true).truncate(false).write(true).open(&path);
    let mut lock = lock.map_err(|e| failed("open", &path, &e))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let text = format!("{} is used by {}", directory.display(), holder_of(&path));
            return Err(Error::checkpoint(text).hint(
                "wait until it has ended or stop it (ebbflow stop), or give every job a directory \
                 of its own: 'execution.checkpointing.dir'",
            ));
        }
        Err(TryLockError::Error(e)) => return Err(failed("lock", &path, &e)),
    }
    let written = lock
        .set_len(0)
        .and_then(|()| writeln!(lock, "{}", std::process::id()));
    written.map_err(|e| failed("write", &path, &e))?;
    Ok(lock)
}

/// The process that a lock names.
fn holder_of(lock: &Path) -> String {
    match fs::read_to_string(lock).unwrap_or_default().trim() {
        "" => "another process".to_string(),
        pid => format!("process {pid}"),
    }
}

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::checkpoint(format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
