//! The few things that a store does to a local disk, one system call each, so that a test can stand
//! in for the disk and fail, or crash, at every one of them.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// One directory of a disk, without directories in it.
pub(super) trait Disk: Send + Sync + Debug {
    /// Names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// A whole file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Part of a file; an error if the file ends before.
    fn read_range(&self, name: &str, offset: u64, length: u64) -> io::Result<Vec<u8>>;
    /// An empty file, in place of one of the same name.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes durable which names there are.
    fn sync_names(&self) -> io::Result<()>;
    /// The path of a file; of the directory itself if `name` is empty. For messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file that is being written.
pub(super) trait DiskFile: Send {
    /// Appends.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory, held by this process alone unless it is only read.
#[derive(Debug)]
pub(super) struct LocalDisk {
    directory: PathBuf,
    /// Held, never read.
    _lock: Option<File>,
}

impl LocalDisk {
    /// Makes `directory` if need be, and takes its lock.
    pub(super) fn open(directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory).map_err(|e| failed("make", &directory, &e))?;
        let lock = lock(&directory)?;
        Ok(Self {
            directory,
            _lock: Some(lock),
        })
    }

    /// `directory`, to be read only.
    pub(super) fn read_only(directory: PathBuf) -> Self {
        Self {
            directory,
            _lock: None,
        }
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
pub(super) fn holder_of(lock: &Path) -> String {
    match fs::read_to_string(lock).unwrap_or_default().trim() {
        "" => "another process".to_string(),
        pid => format!("process {pid}"),
    }
}

pub(super) fn failed(verb: &str, path: &Path, error: &io::Error) -> Error {
    Error::checkpoint(format!("cannot {verb} {}: {error}", path.display()))
}

impl Disk for LocalDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    fn read_range(&self, name: &str, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path(name))?;
        let size = file.metadata()?.len();
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("it has {size} bytes only"),
            ));
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            return self.directory.clone();
        }
        self.directory.join(name)
    }
}

impl DiskFile for File {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Write::write_all(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
