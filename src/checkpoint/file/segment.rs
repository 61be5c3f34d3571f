//! Rows of a table in a data file: Arrow IPC streams, each compressed with zstd and checksummed.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;
use arrow::buffer::{Buffer, MutableBuffer};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use serde::{Deserialize, Serialize};

use super::files::{FileWriter, Files};
use crate::error::{Error, Result};

/// An extent is closed once it has so many bytes before compression.
const EXTENT_BYTES: usize = 8 << 20;

/// Fast rather than small: checkpoints are short-lived.
const LEVEL: i32 = 1;

/// Where a stream is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extent {
    pub(super) offset: u64,
    /// Bytes in the file.
    pub(super) length: u64,
    /// Bytes of the stream before compression.
    raw: u64,
    pub(super) rows: u64,
    /// Of the bytes in the file.
    crc32: u32,
}

/// Writes a data file.
pub(super) struct Writer {
    file: Box<dyn FileWriter>,
    offset: u64,
}

impl Writer {
    pub(super) fn new(file: Box<dyn FileWriter>) -> Self {
        Self { file, offset: 0 }
    }

    /// Makes the file durable. Answers its length.
    pub(super) fn finish(self) -> Result<u64> {
        self.file.finish()?;
        Ok(self.offset)
    }

    fn append(&mut self, stream: &[u8], rows: u64) -> Result<Extent> {
        let bytes = compress(stream)?;
        self.file.write(&bytes)?;
        let extent = Extent {
            offset: self.offset,
            length: bytes.len() as u64,
            raw: stream.len() as u64,
            rows,
            crc32: crc32fast::hash(&bytes),
        };
        self.offset += extent.length;
        Ok(extent)
    }
}

fn compress(stream: &[u8]) -> Result<Vec<u8>> {
    let failed = |e| Error::checkpoint(format!("cannot compress: {e}"));
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL).map_err(failed)?;
    encoder.write_all(stream).map_err(failed)?;
    encoder.finish().map_err(failed)
}

/// Gathers batches of one schema to extents.
#[derive(Default)]
pub(super) struct Extents {
    open: Option<StreamWriter<Vec<u8>>>,
    rows: u64,
    pub(super) done: Vec<Extent>,
}

impl Extents {
    pub(super) fn add(&mut self, batch: &RecordBatch, writer: &mut Writer) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let stream = match &mut self.open {
            Some(stream) => stream,
            none => none.insert(StreamWriter::try_new(Vec::new(), &batch.schema())?),
        };
        stream.write(batch)?;
        self.rows += batch.num_rows() as u64;
        if stream.get_ref().len() >= EXTENT_BYTES {
            self.close(writer)?;
        }
        Ok(())
    }

    fn close(&mut self, writer: &mut Writer) -> Result<()> {
        if let Some(stream) = self.open.take() {
            let rows = std::mem::take(&mut self.rows);
            self.done.push(writer.append(&stream.into_inner()?, rows)?);
        }
        Ok(())
    }

    pub(super) fn finish(mut self, writer: &mut Writer) -> Result<Vec<Extent>> {
        self.close(writer)?;
        Ok(self.done)
    }
}

/// Reads the batches of an extent back.
pub(super) fn read(files: &dyn Files, name: &str, extent: &Extent) -> Result<Vec<RecordBatch>> {
    let damaged = |what: &dyn std::fmt::Display| {
        Error::checkpoint(format!("{name}, damaged at byte {}: {what}", extent.offset))
    };
    let bytes = files.read_range(name, extent.offset, extent.length)?;
    if bytes.len() as u64 != extent.length || crc32fast::hash(&bytes) != extent.crc32 {
        return Err(damaged(&"the checksum is wrong"));
    }
    let stream = decompress(&bytes, extent.raw).map_err(|e| damaged(&e))?;
    let batches = decode(stream).map_err(|e| damaged(&e))?;
    let rows: u64 = batches.iter().map(|b| b.num_rows() as u64).sum();
    if rows != extent.rows {
        return Err(damaged(&format!("{rows} rows, not {}", extent.rows)));
    }
    Ok(batches)
}

/// At first no more memory than this is taken on the word of a manifest.
const TRUSTED_BYTES: u64 = 64 << 20;

fn decompress(bytes: &[u8], raw: u64) -> std::io::Result<Buffer> {
    let trusted = usize::try_from(raw.min(TRUSTED_BYTES)).unwrap_or_default();
    let mut stream = MutableBuffer::with_capacity(trusted);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
    let mut chunk = vec![0; 128 << 10];
    loop {
        let n = decoder.read(&mut chunk)?;
        if n == 0 {
            break;
        }
        stream.extend_from_slice(&chunk[..n]);
        if stream.len() as u64 > raw {
            break;
        }
    }
    if stream.len() as u64 != raw {
        let text = "the length after decompression is wrong";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
    }
    Ok(stream.into())
}

/// The batches of an Arrow IPC stream, which share its memory.
pub(super) fn decode(mut stream: Buffer) -> Result<Vec<RecordBatch>> {
    // The reader of Arrow checks what it reads, but panics on some of what it finds.
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        let mut decoder = StreamDecoder::new();
        let mut batches = Vec::new();
        while let Some(batch) = decoder.decode(&mut stream)? {
            batches.push(batch);
        }
        decoder.finish()?;
        Ok(batches)
    }));
    decoded.unwrap_or_else(|_| Err(Error::checkpoint("not a stream of Arrow")))
}
