//! The data file of a checkpoint: Arrow IPC streams (zstd), one after another, each with a checksum.

use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Seek, SeekFrom, Write};

use arrow::array::RecordBatch;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Where a stream is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Segment {
    offset: u64,
    length: u64,
    crc32: u32,
}

impl Segment {
    /// Bytes in the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }
}

/// Writes streams.
pub(super) struct Writer {
    file: BufWriter<File>,
    offset: u64,
}

impl Writer {
    pub(super) fn new(file: File) -> Self {
        Self {
            file: BufWriter::with_capacity(1 << 20, file),
            offset: 0,
        }
    }

    /// Appends batches of one schema; there must be one.
    pub(super) fn append(&mut self, batches: &[RecordBatch]) -> Result<Segment> {
        let Some(first) = batches.first() else {
            return Err(Error::internal("a state table without batches"));
        };
        let options = IpcWriteOptions::default();
        let options = options.try_with_compression(Some(CompressionType::ZSTD))?;
        let out = Checksummed {
            inner: &mut self.file,
            length: 0,
            crc: crc32fast::Hasher::new(),
        };
        let mut stream = StreamWriter::try_new_with_options(out, &first.schema(), options)?;
        for batch in batches {
            stream.write(batch)?;
        }
        let out = stream.into_inner()?;
        let segment = Segment {
            offset: self.offset,
            length: out.length,
            crc32: out.crc.finalize(),
        };
        self.offset += segment.length;
        Ok(segment)
    }

    pub(super) fn finish(self) -> io::Result<File> {
        self.file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
    }
}

struct Checksummed<'a> {
    inner: &'a mut BufWriter<File>,
    length: u64,
    crc: crc32fast::Hasher,
}

impl Write for Checksummed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.length += written as u64;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads the batches of a stream back.
pub(super) fn read(file: &mut File, segment: &Segment) -> Result<Vec<RecordBatch>> {
    let damaged = |what: &dyn std::fmt::Display| {
        Error::checkpoint(format!("damaged at byte {}: {what}", segment.offset))
    };
    let end = segment.offset.checked_add(segment.length);
    let length = file.metadata().map_err(|e| damaged(&e))?.len();
    if end.is_none_or(|end| end > length) {
        return Err(damaged(&format!("the file has {length} bytes only")));
    }
    let length = usize::try_from(segment.length).map_err(|e| damaged(&e))?;
    let mut bytes = vec![0; length];
    let sought = file.seek(SeekFrom::Start(segment.offset));
    let read = sought.and_then(|_| file.read_exact(&mut bytes));
    read.map_err(|e| damaged(&e))?;
    if crc32fast::hash(&bytes) != segment.crc32 {
        return Err(damaged(&"the checksum is wrong"));
    }
    let stream = StreamReader::try_new(Cursor::new(bytes), None)?;
    stream.map(|batch| Ok(batch?)).collect()
}
