//! The place where the files of a store are: what a store needs of it, and a directory of a local
//! disk as such a place.
//!
//! Files are written once and never changed. A *published* file appears whole or not at all, after
//! everything that was finished before it; it is what makes the other files mean something.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{Disk, DiskFile};
use crate::error::{Error, Result};

/// What becomes of a file of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// It stays, and nothing is published.
    Refuse,
    /// It is replaced.
    Replace,
}

/// What came of publishing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    /// It is there.
    Done,
    /// The name is taken by another file.
    Taken,
}

/// A place for files.
///
/// - Once `finish` or `publish` has returned, the file MUST be there after a crash.
/// - A published file MUST never be seen half. If `publish` fails, the file SHOULD not be there, but
///   for one of somebody else that was refused to be replaced.
/// - `read` and `read_range` MUST NOT allocate more than the file has.
pub(super) trait Files: Send + Sync + Debug {
    /// Names of all files, in any order.
    fn list(&self) -> Result<Vec<String>>;
    /// A whole file.
    fn read(&self, name: &str) -> Result<Vec<u8>>;
    /// `length` bytes from `offset`; an error if the file has fewer.
    fn read_range(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>>;
    /// Begins a file, in place of one of the same name.
    fn create(&self, name: &str) -> Result<Box<dyn FileWriter>>;
    /// Writes a whole file.
    fn publish(&self, name: &str, bytes: &[u8], existing: Existing) -> Result<Published>;
    /// Removes a file, if it is there.
    fn remove(&self, name: &str) -> Result<()>;
    /// Makes removals durable.
    fn sync(&self) -> Result<()>;
    /// Where this is, for messages.
    fn place(&self) -> String;
}

/// A file that is being written.
pub(super) trait FileWriter: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Makes the file durable.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A directory of a local disk.
#[derive(Debug)]
pub(super) struct Directory(pub(super) Box<dyn Disk>);

/// Ends the name of a file that is not published yet.
pub(super) const TEMPORARY: &str = ".tmp";

impl Directory {
    fn failed(&self, verb: &str, name: &str, error: &io::Error) -> Error {
        failed(verb, &self.0.path(name), error)
    }
}

impl Files for Directory {
    fn list(&self) -> Result<Vec<String>> {
        self.0.list().map_err(|e| self.failed("list", "", &e))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.0.read(name).map_err(|e| self.failed("read", name, &e))
    }

    fn read_range(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>> {
        let read = self.0.read_range(name, offset, length);
        read.map_err(|e| self.failed("read", name, &e))
    }

    fn create(&self, name: &str) -> Result<Box<dyn FileWriter>> {
        let file = self.0.create(name);
        let file = file.map_err(|e| self.failed("create", name, &e))?;
        let path = self.0.path(name);
        Ok(Box::new(LocalFile { file, path }))
    }

    fn publish(&self, name: &str, bytes: &[u8], existing: Existing) -> Result<Published> {
        if existing == Existing::Refuse && self.list()?.iter().any(|n| n == name) {
            return Ok(Published::Taken);
        }
        let temporary = format!("{name}{TEMPORARY}");
        let published = self.create(&temporary).and_then(|mut file| {
            file.write(bytes)?;
            file.finish()?;
            // The names of the files that it refers to, before its own.
            self.sync()?;
            let renamed = self.0.rename(&temporary, name);
            renamed.map_err(|e| self.failed("rename to", name, &e))?;
            self.sync()
        });
        if published.is_err() {
            // Best effort: the error counts.
            let _ = self.0.remove(&temporary);
            let _ = self.0.remove(name);
        }
        published.map(|()| Published::Done)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match self.0.remove(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.failed("remove", name, &e)),
            _ => Ok(()),
        }
    }

    fn sync(&self) -> Result<()> {
        let synced = self.0.sync_names();
        synced.map_err(|e| self.failed("sync", "", &e))
    }

    fn place(&self) -> String {
        self.0.path("").display().to_string()
    }
}

/// Whether a file is not what its manifest says, however often it is read.
fn is_damage(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> Error {
    let text = format!("cannot {verb} {}: {error}", path.display());
    match error.kind() {
        // What cannot be read now may be whole: nobody must take it for damaged.
        kind if verb == "read" && !is_damage(kind) => Error::connector(text),
        io::ErrorKind::StorageFull => Error::checkpoint(text).hint(
            "make room on the disk, or keep fewer checkpoints: \
             'execution.checkpointing.num-retained'",
        ),
        _ => Error::checkpoint(text),
    }
}

struct LocalFile {
    file: Box<dyn DiskFile>,
    path: PathBuf,
}

impl FileWriter for LocalFile {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|e| failed("write", &self.path, &e))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let synced = self.file.sync();
        synced.map_err(|e| failed("sync", &self.path, &e))
    }
}
