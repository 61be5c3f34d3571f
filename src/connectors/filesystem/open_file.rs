//! A file whose reading has begun.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use arrow::array::ArrayRef;
use serde::{Deserialize, Serialize};

use super::listing::{DataFile, failed};
use super::source::ReadPlan;
use crate::error::Result;
use crate::formats::Splitter;
use crate::formats::bulk::BulkReader;

/// Bytes that are asked of a file at once.
const CHUNK: usize = 256 << 10;

/// Where the reading of a file stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Bytes (of the decompressed text) before the next record.
    pub(super) offset: u64,
    /// Records before it; of a bulk format rows.
    pub(super) record: u64,
    /// Rows of that record that were handed out.
    #[serde(default)]
    pub(super) rows: usize,
    #[serde(default)]
    pub(super) done: bool,
}

/// How records are found.
pub(super) enum Content {
    Records(Records),
    Bulk(Box<dyn BulkReader>),
}

/// The text of a file from the next record on.
pub(super) struct Records {
    input: Box<dyn Read + Send>,
    /// What was read, behind `used` bytes that are done with.
    pub(super) buffer: Vec<u8>,
    pub(super) used: usize,
    at_end: bool,
    splitter: Box<dyn Splitter>,
    /// Whether the last record is whole even if nothing ends it.
    tail_is_whole: bool,
}

/// A file whose reading has begun.
pub(super) struct OpenFile {
    pub(super) file: DataFile,
    /// Where the next record is decoded.
    pub(super) position: Position,
    pub(super) content: Content,
    /// Its columns that are the same in all rows: one value each.
    pub(super) constants: Vec<Option<ArrayRef>>,
}

impl OpenFile {
    /// Opens a file where the reading goes on.
    pub(super) fn open(
        plan: &ReadPlan,
        file: DataFile,
        mut position: Position,
        constants: Vec<Option<ArrayRef>>,
    ) -> Result<Self> {
        let content = match plan.format.bulk() {
            Some(bulk) => {
                let input = File::open(&file.path).map_err(|e| failed(&file.path, &e))?;
                let reader = bulk.reader(input, &plan.columns, file.part, position.record);
                let context = || format!("file {}", file.path.display());
                Content::Bulk(reader.map_err(|e| e.context(context()))?)
            }
            None => {
                if position.offset > 0 && position.rows == 0 && !is_compressed(&file.path) {
                    let late = late_line_feed(&file.path, position.offset);
                    position.offset += late.map_err(|e| failed(&file.path, &e))?;
                }
                Content::Records(Records {
                    input: open_at(&file.path, position.offset)?,
                    buffer: Vec::new(),
                    used: 0,
                    at_end: false,
                    splitter: plan.format.splitter(),
                    tail_is_whole: !file.may_grow,
                })
            }
        };
        Ok(Self {
            file,
            position,
            content,
            constants,
        })
    }

    /// Where the reading stands, for messages.
    pub(super) fn place(&self) -> String {
        let path = self.file.path.display();
        let record = self.position.record + 1;
        match self.content {
            Content::Records(_) => {
                let offset = self.position.offset;
                format!("record {record} (byte {offset}) of file {path}")
            }
            Content::Bulk(_) => format!("row {record} or later of file {path}"),
        }
    }
}

/// A record in the buffer.
pub(super) struct Found {
    pub(super) record: std::ops::Range<usize>,
    /// Bytes up to the next one.
    pub(super) length: usize,
}

impl Records {
    /// The next record; `None` at the end of the file.
    pub(super) fn next(&mut self, path: &Path) -> Result<Option<Found>> {
        loop {
            let data = &self.buffer[self.used..];
            let is_last = self.at_end && self.tail_is_whole;
            if let Some(cut) = self.splitter.next(data, is_last) {
                let (start, end) = (cut.record.start, cut.record.end);
                return Ok(Some(Found {
                    record: self.used + start..self.used + end,
                    length: cut.next,
                }));
            }
            if self.at_end {
                return Ok(None);
            }
            self.fill(path)?;
        }
    }

    /// Reads on.
    fn fill(&mut self, path: &Path) -> Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        // A long record is not looked at again for every chunk of it.
        let chunk = CHUNK.max(self.buffer.len());
        let before = self.buffer.len();
        self.buffer.resize(before + chunk, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[before..]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let read = read.map_err(|e| failed(path, &e))?;
        self.buffer.truncate(before + read);
        self.at_end = read == 0;
        Ok(())
    }
}

/// Bytes of the line feed at `offset` that ends a line which was taken for whole without it.
fn late_line_feed(path: &Path, offset: u64) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset - 1))?;
    let mut around = Vec::with_capacity(3);
    file.take(3).read_to_end(&mut around)?;
    Ok(match around.as_slice() {
        [b'\n', ..] => 0,
        [_, b'\n', ..] => 1,
        [_, b'\r', b'\n'] => 2,
        _ => 0,
    })
}

/// Whether the bytes of a file are compressed, as its name says.
pub(super) fn is_compressed(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    matches!(extension, "gz" | "gzip" | "deflate" | "zst")
}

/// Opens a file, decompressed as its name says, at a byte of its text.
fn open_at(path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
    let mut file = File::open(path).map_err(|e| failed(path, &e))?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let mut input: Box<dyn Read + Send> = match extension {
        "gz" | "gzip" => Box::new(flate2::read::MultiGzDecoder::new(file)),
        "deflate" => Box::new(flate2::read::ZlibDecoder::new(file)),
        "zst" => {
            let decoder = zstd::Decoder::new(file).map_err(|e| failed(path, &e))?;
            Box::new(decoder)
        }
        _ => {
            file.seek(SeekFrom::Start(offset))
                .map_err(|e| failed(path, &e))?;
            return Ok(Box::new(file));
        }
    };
    std::io::copy(&mut input.by_ref().take(offset), &mut std::io::sink())
        .map_err(|e| failed(path, &e))?;
    Ok(input)
}
