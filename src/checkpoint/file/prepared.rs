//! What sinks have pre-committed, in a checkpoint: short ones lie in the manifest, long ones (the rows
//! of an exactly-once sink into Kafka) in a file of their own, as they are, with a checksum.
//!
//! The file belongs to one checkpoint and goes with it: it is never merged with others.

use serde::{Deserialize, Serialize};

use super::files::{FileWriter, Files};
use super::manifest::Bytes;
use crate::error::{Error, Result};

/// Longer ones do not go into the manifest, which is read and checked as one text.
const SHORT: usize = 4 << 10;

/// What a sink has pre-committed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Prepared {
    /// Here.
    Short(Bytes),
    /// In a file.
    Long(Blob),
}

/// Where bytes are in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Blob {
    file: String,
    offset: u64,
    length: u64,
    crc32: u32,
}

impl Prepared {
    /// Bytes that it has in the checkpoint.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Short(bytes) => bytes.len(),
            Self::Long(blob) => blob.length,
        }
    }

    /// The file that it needs.
    pub(super) fn file(&self) -> Option<&str> {
        match self {
            Self::Short(_) => None,
            Self::Long(blob) => Some(&blob.file),
        }
    }

    /// Reads it back.
    pub(super) fn read(&self, files: &dyn Files) -> Result<Vec<u8>> {
        let blob = match self {
            Self::Short(bytes) => return bytes.decode(),
            Self::Long(blob) => blob,
        };
        let bytes = files.read_range(&blob.file, blob.offset, blob.length)?;
        if bytes.len() as u64 != blob.length || crc32fast::hash(&bytes) != blob.crc32 {
            return Err(Error::checkpoint(format!(
                "{}, damaged at byte {}: the checksum is wrong",
                blob.file, blob.offset
            )));
        }
        Ok(bytes)
    }
}

/// The file of the long ones, which is begun when there is one.
pub(super) struct PreparedFile<'a> {
    files: &'a dyn Files,
    name: String,
    open: Option<Box<dyn FileWriter>>,
    offset: u64,
}

impl<'a> PreparedFile<'a> {
    pub(super) fn new(files: &'a dyn Files, name: String) -> Self {
        Self {
            files,
            name,
            open: None,
            offset: 0,
        }
    }

    /// Takes what a sink has pre-committed.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<Prepared> {
        if bytes.len() <= SHORT {
            return Ok(Prepared::Short(Bytes::new(bytes)));
        }
        let file = match &mut self.open {
            Some(file) => file,
            none => none.insert(self.files.create(&self.name)?),
        };
        file.write(bytes)?;
        let blob = Blob {
            file: self.name.clone(),
            offset: self.offset,
            length: bytes.len() as u64,
            crc32: crc32fast::hash(bytes),
        };
        self.offset += blob.length;
        Ok(Prepared::Long(blob))
    }

    /// Makes the file durable, if there is one.
    pub(super) fn finish(self) -> Result<()> {
        self.open.map_or(Ok(()), |file| file.finish())
    }
}
