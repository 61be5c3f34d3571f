//! One file of a sink: hidden while it is written, renamed when its checkpoint is complete.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::listing::failed;
use crate::error::{Error, Result};

/// The end of the names of files that are being written.
const SUFFIX: &str = ".inprogress";

/// A file's names. All paths are whole: the process that commits need not be the one that wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartName {
    /// While it is written.
    pub(super) temporary: PathBuf,
    /// When it is visible.
    pub(super) visible: PathBuf,
}

impl PartName {
    /// The names of part number `sequence` that subtask `subtask` of job `job` begins in `epoch`.
    pub(super) fn new(folder: &Path, job: &str, subtask: usize, epoch: u64, sequence: u64) -> Self {
        let name = format!("part-{job}-{subtask}-{epoch}-{sequence}");
        Self {
            temporary: folder.join(format!(".{name}{SUFFIX}")),
            visible: folder.join(name),
        }
    }

    /// Makes the file visible. Does nothing when it is already.
    pub(super) fn publish(&self) -> Result<()> {
        if self.temporary.exists() {
            std::fs::rename(&self.temporary, &self.visible)
                .map_err(|e| failed(&self.temporary, &e))?;
            return sync_folder(&self.visible);
        }
        if self.visible.exists() {
            return Ok(());
        }
        Err(Error::connector(format!(
            "cannot tell whether {} was written: neither it nor {} exists",
            self.visible.display(),
            self.temporary.display()
        )))
    }

    /// Takes up a file that was being written: what was written after `length` bytes is cut off.
    pub(super) fn truncate(&self, length: u64) -> Result<()> {
        let at = |e: std::io::Error| failed(&self.temporary, &e);
        let file = OpenOptions::new()
            .write(true)
            .open(&self.temporary)
            .map_err(at)?;
        let found = file.metadata().map_err(at)?.len();
        if found < length {
            return Err(Error::connector(format!(
                "{} has {found} bytes, but the checkpoint knows of {length}",
                self.temporary.display()
            )));
        }
        file.set_len(length).map_err(at)?;
        file.sync_all().map_err(at)
    }
}

/// The epoch in the name of a file that `job` (and, if given, `subtask` of it) is writing.
pub(super) fn epoch_of(name: &str, job: &str, subtask: Option<usize>) -> Option<u64> {
    let numbers = name
        .strip_prefix(".part-")?
        .strip_prefix(job)?
        .strip_prefix('-')?
        .strip_suffix(SUFFIX)?;
    let mut numbers = numbers.split('-');
    let of: usize = numbers.next()?.parse().ok()?;
    let epoch = numbers.next()?.parse().ok()?;
    subtask.is_none_or(|s| s == of).then_some(epoch)
}

/// Makes names in the folder of `path` durable.
pub(super) fn sync_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| failed(folder, &e))
}

/// A file that is being written.
pub(super) struct Part {
    pub(super) name: PartName,
    file: BufWriter<File>,
    /// Bytes written.
    pub(super) length: u64,
    /// When it was begun, ms.
    pub(super) begun: i64,
    /// When it was last written to, ms.
    pub(super) touched: i64,
}

impl Part {
    pub(super) fn create(name: PartName, now: i64) -> Result<Self> {
        if let Some(folder) = name.temporary.parent() {
            std::fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
        }
        let file = File::create(&name.temporary).map_err(|e| failed(&name.temporary, &e))?;
        Ok(Self {
            name,
            file: BufWriter::with_capacity(64 << 10, file),
            length: 0,
            begun: now,
            touched: now,
        })
    }

    /// Appends a record as a line.
    pub(super) fn write(&mut self, record: &[u8]) -> Result<()> {
        self.file
            .write_all(record)
            .and_then(|()| self.file.write_all(b"\n"))
            .map_err(|e| failed(&self.name.temporary, &e))?;
        self.length += record.len() as u64 + 1;
        Ok(())
    }

    /// Hands what was written to the operating system.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.file
            .flush()
            .map_err(|e| failed(&self.name.temporary, &e))
    }

    /// Makes what was written durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file
            .get_ref()
            .sync_all()
            .map_err(|e| failed(&self.name.temporary, &e))?;
        sync_folder(&self.name.temporary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_job_subtask_and_epoch() {
        let name = PartName::new(Path::new("/x"), "ab", 3, 7, 0);
        let file = name.temporary.file_name().unwrap().to_str().unwrap();
        assert_eq!(file, ".part-ab-3-7-0.inprogress");
        assert_eq!(epoch_of(file, "ab", None), Some(7));
        assert_eq!(epoch_of(file, "ab", Some(3)), Some(7));
        assert_eq!(epoch_of(file, "ab", Some(2)), None);
        assert_eq!(epoch_of(file, "a", None), None);
        assert_eq!(epoch_of("part-ab-3-7-0", "ab", None), None);
    }

    #[test]
    fn publishing_twice_is_once_and_an_unknown_outcome_fails() {
        let folder = tempfile::tempdir().unwrap();
        let name = PartName::new(folder.path(), "j", 0, 1, 0);
        assert!(name.publish().is_err());
        let mut part = Part::create(name.clone(), 0).unwrap();
        part.write(b"a").unwrap();
        part.sync().unwrap();
        name.publish().unwrap();
        name.publish().unwrap();
        assert_eq!(std::fs::read(&name.visible).unwrap(), b"a\n");
    }
}
