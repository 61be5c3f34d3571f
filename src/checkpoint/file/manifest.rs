//! The manifest of a checkpoint: JSON text, and a line with its checksum.
//!
//! ```text
//! {"format":1,"engine":"0.1.0","epoch":7,"vertices":[...]}
//! crc32 89abcdef
//! ```

use std::fs::File;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::data::{self, Segment, Writer};
use super::inspect::{CheckpointInfo, VertexInfo};
use crate::checkpoint::{Checkpoint, SubtaskSnapshot, VertexCheckpoint};
use crate::connectors::SplitPosition;
use crate::error::{Error, Result};
use crate::state::snapshot::{OperatorSnapshot, StateTable};

/// Version of the form of manifest and data.
const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    /// The version of Ebbflow that wrote it; for people.
    engine: String,
    epoch: u64,
    vertices: Vec<Vertex>,
}

/// What manifests of all versions have.
#[derive(Deserialize)]
struct Version {
    format: u32,
    engine: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Vertex {
    uid: String,
    name: String,
    signature: String,
    subtasks: Vec<Subtask>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Subtask {
    ended: bool,
    /// Of the operator, of its inputs, and of its output.
    watermark: Option<i64>,
    input_watermark: Option<i64>,
    output_watermark: Option<i64>,
    positions: Vec<SplitPosition>,
    writer: Bytes,
    committables: Vec<Bytes>,
    tables: Vec<Table>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Table {
    name: String,
    keys: usize,
    segment: Segment,
}

/// Bytes as Base64 text.
#[derive(Debug, Serialize, Deserialize)]
struct Bytes(String);

impl Bytes {
    fn new(bytes: &[u8]) -> Self {
        Self(STANDARD.encode(bytes))
    }

    fn decode(&self) -> Result<Vec<u8>> {
        let bytes = STANDARD.decode(&self.0);
        bytes.map_err(|e| Error::checkpoint(format!("damaged: {e}")))
    }
}

impl Manifest {
    /// Writes the tables of `checkpoint` and notes where they are.
    pub(super) fn save(checkpoint: &Checkpoint, data: &mut Writer) -> Result<Self> {
        let mut vertices = Vec::new();
        for vertex in &checkpoint.vertices {
            let subtasks = vertex.subtasks.iter().map(|s| Subtask::save(s, data));
            vertices.push(Vertex {
                uid: vertex.uid.clone(),
                name: vertex.name.clone(),
                signature: vertex.signature.clone(),
                subtasks: subtasks.collect::<Result<_>>()?,
            });
        }
        Ok(Self {
            format: FORMAT,
            engine: env!("CARGO_PKG_VERSION").to_string(),
            epoch: checkpoint.epoch,
            vertices,
        })
    }

    /// Reads the tables back.
    pub(super) fn restore(&self, data: &mut File) -> Result<Checkpoint> {
        let mut vertices = Vec::new();
        for vertex in &self.vertices {
            let subtasks = vertex.subtasks.iter().map(|s| s.restore(data));
            vertices.push(VertexCheckpoint {
                uid: vertex.uid.clone(),
                name: vertex.name.clone(),
                signature: vertex.signature.clone(),
                subtasks: subtasks.collect::<Result<_>>()?,
            });
        }
        Ok(Checkpoint {
            epoch: self.epoch,
            committed: false,
            vertices,
        })
    }

    /// What is told of it to people.
    pub(super) fn describe(&self) -> CheckpointInfo {
        let vertices = self.vertices.iter().map(|v| VertexInfo {
            uid: v.uid.clone(),
            name: v.name.clone(),
            subtasks: v.subtasks.len(),
            bytes: v.subtasks.iter().map(Subtask::bytes).sum(),
            positions: v
                .subtasks
                .iter()
                .flat_map(|s| s.positions.clone())
                .collect(),
        });
        CheckpointInfo {
            epoch: self.epoch,
            engine: self.engine.clone(),
            vertices: vertices.collect(),
            ..CheckpointInfo::default()
        }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|e| Error::internal(format!("a manifest is no JSON: {e}")))?;
        let crc = crc32fast::hash(text.as_bytes());
        Ok(format!("{text}\ncrc32 {crc:08x}\n").into_bytes())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::checkpoint("the manifest is damaged");
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let (text, checksum) = text.split_once('\n').ok_or_else(damaged)?;
        let checksum = checksum
            .strip_prefix("crc32 ")
            .and_then(|c| c.strip_suffix('\n'));
        if checksum != Some(&format!("{:08x}", crc32fast::hash(text.as_bytes()))) {
            return Err(damaged());
        }
        // The version first: another one may have other fields.
        let version: Version = serde_json::from_str(text).map_err(|_| damaged())?;
        if version.format != FORMAT {
            return Err(Error::checkpoint(format!(
                "it has format {}, written by Ebbflow {}; this version reads format {FORMAT}",
                version.format, version.engine
            )));
        }
        serde_json::from_str(text).map_err(|_| damaged())
    }
}

impl Subtask {
    /// Bytes that it has on disk.
    fn bytes(&self) -> u64 {
        let texts = std::iter::once(&self.writer).chain(&self.committables);
        let texts: usize = texts.map(|bytes| bytes.0.len()).sum();
        let tables: u64 = self.tables.iter().map(|t| t.segment.length()).sum();
        tables + texts as u64
    }

    fn save(snapshot: &SubtaskSnapshot, data: &mut Writer) -> Result<Self> {
        let mut tables = Vec::new();
        for (name, table) in &snapshot.operator.tables {
            tables.push(Table {
                name: name.clone(),
                keys: table.keys,
                segment: data.append(&table.batches)?,
            });
        }
        Ok(Self {
            ended: snapshot.ended,
            watermark: snapshot.operator.watermark,
            input_watermark: snapshot.input_watermark,
            output_watermark: snapshot.output_watermark,
            positions: snapshot.positions.clone(),
            writer: Bytes::new(&snapshot.writer),
            committables: snapshot
                .committables
                .iter()
                .map(|c| Bytes::new(c))
                .collect(),
            tables,
        })
    }

    fn restore(&self, data: &mut File) -> Result<SubtaskSnapshot> {
        let mut operator = OperatorSnapshot {
            watermark: self.watermark,
            ..OperatorSnapshot::default()
        };
        for table in &self.tables {
            let batches = data::read(data, &table.segment)?;
            if batches.iter().any(|b| b.num_columns() < table.keys) {
                return Err(Error::checkpoint("a table has fewer columns than keys"));
            }
            let keys = table.keys;
            let state = StateTable { keys, batches };
            operator.tables.insert(table.name.clone(), state);
        }
        let committables = self.committables.iter().map(Bytes::decode);
        Ok(SubtaskSnapshot {
            operator,
            positions: self.positions.clone(),
            writer: self.writer.decode()?,
            committables: committables.collect::<Result<_>>()?,
            input_watermark: self.input_watermark,
            output_watermark: self.output_watermark,
            ended: self.ended,
        })
    }
}
