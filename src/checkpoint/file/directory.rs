//! Directories of checkpoints as other processes see them: whose they are, and what is in them. Nothing
//! is locked or changed.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{LocalDisk, failed, holder_of};
use super::files::{Directory, Files};
use super::{COMMITTED, FINISHED, FileStore, MANIFEST, name};
use crate::checkpoint::{Checkpoint, CheckpointStore};
use crate::error::{Error, Result};

impl FileStore {
    /// The checkpoint at `path`, of whatever job: the newest whole one of a directory, or a certain one
    /// (`directory/chk-7`). Changes cannot go on from it in another directory.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn read(path: &Path) -> Result<Checkpoint> {
        let nothing = || {
            let text = format!("there is no checkpoint at '{}'", path.display());
            Error::checkpoint(text).hint("name a job's checkpoint directory, or DIRECTORY/chk-N")
        };
        let mut checkpoint = if path.is_dir() {
            Self::read_only(path).latest()?.ok_or_else(nothing)?
        } else {
            let file = path.file_name().and_then(|n| n.to_str());
            let epoch = file.and_then(|n| n.strip_prefix("chk-")?.parse::<u64>().ok());
            let (Some(epoch), Some(parent)) = (epoch, path.parent()) else {
                return Err(nothing());
            };
            let store = Self::read_only(parent);
            let names = store.files.list()?;
            if !names.contains(&name(epoch, MANIFEST)) {
                return Err(nothing());
            }
            store
                .load(epoch, names.contains(&name(epoch, COMMITTED)))?
                .1
        };
        checkpoint.base = None;
        Ok(checkpoint)
    }

    /// For reading only: nothing must be saved.
    pub(super) fn read_only(directory: &Path) -> Self {
        let disk = LocalDisk::read_only(directory.to_path_buf());
        let files: Arc<dyn Files> = Arc::new(Directory(Box::new(disk)));
        Self::unopened(files, usize::MAX, "")
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
}
