//! One file of a sink: hidden while it is written, renamed when its checkpoint is complete.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use super::compaction::Closed;
use super::listing::failed;
use crate::error::{Error, Result};
use crate::formats::EncodingFormat;
use crate::formats::bulk::BulkWriter;
use crate::types::Schema;

/// The end of the names of files that are being written.
pub(super) const SUFFIX: &str = ".inprogress";

/// A file's names. All paths are whole: the process that commits need not be the one that wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartName {
    /// While it is written.
    pub(super) temporary: PathBuf,
    /// When it is visible.
    pub(super) visible: PathBuf,
}

/// Who writes a part, and when: its name is made of that.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The same for all attempts at a job: what a dead attempt has left is found by it.
    pub(super) job: String,
    /// Of one attempt only: no two parts ever have the same name.
    pub(super) attempt: String,
    pub(super) subtask: usize,
    pub(super) epoch: u64,
    /// Number of the part in its epoch.
    pub(super) sequence: u64,
}

impl PartName {
    /// The names of the part that `origin` begins.
    pub(super) fn new(folder: &Path, origin: &Origin) -> Self {
        let Origin {
            job,
            attempt,
            subtask,
            epoch,
            sequence,
        } = origin;
        let name = format!("part-{job}-{attempt}-{subtask}-{epoch}-{sequence}");
        Self {
            temporary: folder.join(format!(".{name}{SUFFIX}")),
            visible: folder.join(name),
        }
    }

    /// Makes the file visible; the folder is left to be synced. Does nothing when it is already.
    pub(super) fn publish(&self) -> Result<()> {
        if self.temporary.exists() {
            return std::fs::rename(&self.temporary, &self.visible)
                .map_err(|e| failed(&self.temporary, &e));
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
        if !self.temporary.exists() && self.visible.exists() {
            return Err(Error::connector(format!(
                "{} was still open in the checkpoint and has become visible since: a newer checkpoint has committed it",
                self.visible.display()
            ))
            .hint("go on from the newest checkpoint, or remove what was written after this one"));
        }
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

/// The epoch in the name of a file that an attempt at `job` is or was writing.
pub(super) fn epoch_of(name: &str, job: &str) -> Option<u64> {
    let numbers = name
        .strip_prefix(".part-")?
        .strip_prefix(job)?
        .strip_prefix('-')?
        .strip_suffix(SUFFIX)?;
    let mut parts = numbers.split('-').skip(1);
    let _subtask: usize = parts.next()?.parse().ok()?;
    parts.next()?.parse().ok()
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

enum Content {
    /// Records, one a line.
    Lines(BufWriter<File>),
    /// A bulk format's file, written by a copy of the handle; `None` once it has its end.
    Bulk(Option<Box<dyn BulkWriter>>, File),
}

/// A file that is being written.
pub(super) struct Part {
    pub(super) name: PartName,
    content: Content,
    /// Bytes written; of a bulk format about.
    pub(super) length: u64,
    /// When it was begun, ms.
    pub(super) begun: i64,
    /// When it was last written to, ms.
    pub(super) touched: i64,
}

impl Part {
    pub(super) fn create(
        name: PartName,
        format: &dyn EncodingFormat,
        schema: &Schema,
        now: i64,
    ) -> Result<Self> {
        if let Some(folder) = name.temporary.parent() {
            std::fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
        }
        let file = File::create(&name.temporary).map_err(|e| failed(&name.temporary, &e))?;
        let content = match format.bulk() {
            None => Content::Lines(BufWriter::with_capacity(64 << 10, file)),
            Some(bulk) => {
                let copy = file.try_clone().map_err(|e| failed(&name.temporary, &e))?;
                let writer = bulk.writer(copy, schema);
                let writer = writer.map_err(|e| e.context(in_file(&name.temporary)))?;
                Content::Bulk(Some(writer), file)
            }
        };
        Ok(Self {
            name,
            content,
            length: 0,
            begun: now,
            touched: now,
        })
    }

    /// Appends a record as a line.
    pub(super) fn write_line(&mut self, record: &[u8]) -> Result<()> {
        let Content::Lines(file) = &mut self.content else {
            return Err(Error::internal("a line for a file without lines"));
        };
        file.write_all(record)
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|e| failed(&self.name.temporary, &e))?;
        self.length += record.len() as u64 + 1;
        Ok(())
    }

    /// Appends rows of a bulk format.
    pub(super) fn write_rows(&mut self, rows: &RecordBatch) -> Result<()> {
        let Content::Bulk(Some(writer), _) = &mut self.content else {
            return Err(Error::internal("rows for a file of lines"));
        };
        let written = writer.write(rows);
        written.map_err(|e| e.context(in_file(&self.name.temporary)))?;
        self.length = writer.size();
        Ok(())
    }

    /// Hands what was written to the operating system.
    pub(super) fn flush(&mut self) -> Result<()> {
        match &mut self.content {
            Content::Lines(file) => file.flush().map_err(|e| failed(&self.name.temporary, &e)),
            Content::Bulk(..) => Ok(()),
        }
    }

    /// Makes what was written durable, so that it can be gone on with.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let file = match &self.content {
            Content::Lines(file) => file.get_ref(),
            Content::Bulk(_, file) => file,
        };
        file.sync_all()
            .map_err(|e| failed(&self.name.temporary, &e))?;
        sync_folder(&self.name.temporary)
    }

    /// Writes the end and makes all durable.
    pub(super) fn close(mut self) -> Result<Closed> {
        if let Content::Bulk(writer, file) = &mut self.content
            && let Some(writer) = writer.take()
        {
            let finished = writer.finish();
            finished.map_err(|e| e.context(in_file(&self.name.temporary)))?;
            let metadata = file.metadata();
            self.length = metadata
                .map_err(|e| failed(&self.name.temporary, &e))?
                .len();
        }
        self.sync()?;
        Ok(Closed {
            name: self.name,
            length: self.length,
        })
    }
}

fn in_file(path: &Path) -> String {
    format!("file {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::table;
    use crate::formats::FormatOptions;

    fn name(folder: &Path) -> PartName {
        let origin = Origin {
            job: "ab".into(),
            attempt: "c".into(),
            subtask: 3,
            epoch: 7,
            sequence: 0,
        };
        PartName::new(folder, &origin)
    }

    fn create(name: &PartName) -> Part {
        let t = table("a INT", &[]);
        let options = FormatOptions::new(&t, "json.");
        let json = crate::formats::format("json").unwrap();
        let json = json.encoding(&options).unwrap();
        Part::create(name.clone(), json.as_ref(), &t.physical, 0).unwrap()
    }

    #[test]
    fn names_tell_job_and_epoch() {
        let name = name(Path::new("/x"));
        let file = name.temporary.file_name().unwrap().to_str().unwrap();
        assert_eq!(file, ".part-ab-c-3-7-0.inprogress");
        assert_eq!(epoch_of(file, "ab"), Some(7));
        assert_eq!(epoch_of(file, "a"), None);
        assert_eq!(epoch_of("part-ab-c-3-7-0", "ab"), None);
    }

    #[test]
    fn publishing_twice_is_once_and_an_unknown_outcome_fails() {
        let folder = tempfile::tempdir().unwrap();
        let name = name(folder.path());
        assert!(name.publish().is_err());
        let mut part = create(&name);
        part.write_line(b"a").unwrap();
        part.close().unwrap();
        name.publish().unwrap();
        name.publish().unwrap();
        assert_eq!(std::fs::read(&name.visible).unwrap(), b"a\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let name = name(folder.path());
        std::os::unix::fs::symlink("/dev/full", &name.temporary).unwrap();
        let mut part = create(&name);
        part.write_line(b"a").unwrap();
        let error = part.flush().unwrap_err().to_string();
        assert!(error.contains(".part-ab-c-3-7-0.inprogress"), "{error}");
        assert!(error.contains("No space left"), "{error}");
        assert!(!name.visible.exists());
    }

    #[test]
    fn a_part_that_was_committed_since_is_not_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let name = name(folder.path());
        create(&name).close().unwrap();
        name.publish().unwrap();
        let error = name.truncate(0).unwrap_err().to_string();
        assert!(
            error.contains("a newer checkpoint has committed it"),
            "{error}"
        );
    }
}
