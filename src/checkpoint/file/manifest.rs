//! The manifest of a checkpoint: JSON text, and a line with its checksum.
//!
//! ```text
//! {"format":2,"engine":"0.1.0","epoch":7,"vertices":[...]}
//! crc32 89abcdef
//! ```
//!
//! It holds everything small itself, and says where what sinks have pre-committed is if it is long
//! (see [`super::prepared`]), and where the rows of state tables are: in segments of data files, older
//! ones first. A segment is what one subtask said of a table at one checkpoint, or
//! several of these merged; see [`crate::checkpoint::layers`] for what counts.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::files::Files;
use super::inspect::{CheckpointInfo, VertexInfo};
use super::prepared::{Prepared, PreparedFile};
use super::segment::Extent;
use crate::checkpoint::layers::Groups;
use crate::checkpoint::{Checkpoint, SubtaskSnapshot};
use crate::connectors::SplitPosition;
use crate::error::{Error, Result};
use crate::state::key_group::HASH_VERSION;

/// Version of the form of manifest and data.
pub(super) const FORMAT: u32 = 2;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    /// The version of Ebbflow that wrote it; for people.
    pub(super) engine: String,
    pub(super) epoch: u64,
    /// Number of key groups, and the version of the hash that keys are spread by.
    pub(super) max_parallelism: u16,
    key_hash: u32,
    pub(super) vertices: Vec<Vertex>,
}

/// What manifests of all versions have.
#[derive(Deserialize)]
struct Version {
    format: u32,
    engine: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Vertex {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) signature: String,
    pub(super) subtasks: Vec<Subtask>,
    pub(super) tables: Vec<Table>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Subtask {
    ended: bool,
    /// Of the operator, of its inputs, and of its output.
    watermark: Option<i64>,
    input_watermark: Option<i64>,
    output_watermark: Option<i64>,
    pub(super) positions: Vec<SplitPosition>,
    writer: Bytes,
    committables: Vec<Prepared>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Table {
    pub(super) name: String,
    /// Leading columns that are the key.
    pub(super) keys: usize,
    /// Older ones first.
    pub(super) segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) file: String,
    /// The checkpoint that it was written for; the newest of several that were merged.
    pub(super) layer: u64,
    /// Key groups of its keys, the second excluded.
    pub(super) groups: Groups,
    /// Key groups in which older segments mean nothing.
    pub(super) supersedes: Vec<Groups>,
    pub(super) rows: Vec<Extent>,
    /// Keys that have no rows any more.
    pub(super) removed: Vec<Extent>,
}

impl Segment {
    pub(super) fn bytes(&self) -> u64 {
        let extents = self.rows.iter().chain(&self.removed);
        extents.fold(0, |sum, e| sum.saturating_add(e.length))
    }
}

impl Vertex {
    /// Bytes that it has on disk, those of older checkpoints that it still needs included.
    fn bytes(&self) -> u64 {
        let segments = self.tables.iter().flat_map(|t| &t.segments);
        let segments = segments.map(Segment::bytes);
        let rest = self.subtasks.iter().map(Subtask::bytes);
        segments.chain(rest).fold(0, u64::saturating_add)
    }
}

/// Bytes as Base64 text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bytes(String);

impl Bytes {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(STANDARD.encode(bytes))
    }

    /// Bytes of the text.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn decode(&self) -> Result<Vec<u8>> {
        let bytes = STANDARD.decode(&self.0);
        bytes.map_err(|e| Error::checkpoint(format!("damaged: {e}")))
    }
}

impl Manifest {
    /// The manifest of `checkpoint`, whose state is in `vertices`.
    pub(super) fn new(checkpoint: &Checkpoint, vertices: Vec<Vertex>) -> Self {
        Self {
            format: FORMAT,
            engine: env!("CARGO_PKG_VERSION").to_string(),
            epoch: checkpoint.epoch,
            max_parallelism: checkpoint.max_parallelism,
            key_hash: HASH_VERSION,
            vertices,
        }
    }

    pub(super) fn vertex(&self, uid: &str) -> Option<&Vertex> {
        self.vertices.iter().find(|v| v.uid == uid)
    }

    /// The data files that it needs.
    pub(super) fn files(&self) -> BTreeSet<String> {
        self.file_names().map(str::to_string).collect()
    }

    fn file_names(&self) -> impl Iterator<Item = &str> {
        let subtasks = self.vertices.iter().flat_map(|v| &v.subtasks);
        let prepared = subtasks.flat_map(|s| &s.committables);
        let segments = self.segments().map(|segment| segment.file.as_str());
        segments.chain(prepared.filter_map(Prepared::file))
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &Segment> {
        let tables = self.vertices.iter().flat_map(|v| &v.tables);
        tables.flat_map(|table| &table.segments)
    }

    /// What is told of it to people.
    pub(super) fn describe(&self) -> CheckpointInfo {
        let vertices = self.vertices.iter().map(|v| VertexInfo {
            uid: v.uid.clone(),
            name: v.name.clone(),
            subtasks: v.subtasks.len(),
            bytes: v.bytes(),
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
        Ok(sign(&text))
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
        let manifest: Self = serde_json::from_str(text).map_err(|_| damaged())?;
        if manifest.key_hash != HASH_VERSION {
            return Err(Error::checkpoint(format!(
                "its keys are spread by version {} of the hash; this version of Ebbflow has \
                 {HASH_VERSION}",
                manifest.key_hash
            )));
        }
        let wrong = manifest.file_names().find(|n| !super::is_data_file(n));
        if let Some(name) = wrong {
            return Err(Error::checkpoint(format!("'{name}' is no data file")));
        }
        Ok(manifest)
    }
}

/// The text of a manifest with its checksum.
pub(super) fn sign(text: &str) -> Vec<u8> {
    let crc = crc32fast::hash(text.as_bytes());
    format!("{text}\ncrc32 {crc:08x}\n").into_bytes()
}

impl Subtask {
    /// Bytes that it has beside the state tables.
    fn bytes(&self) -> u64 {
        let prepared = self.committables.iter().map(Prepared::bytes);
        prepared.fold(self.writer.len(), u64::saturating_add)
    }

    /// Everything but the state tables.
    pub(super) fn save(
        snapshot: &SubtaskSnapshot,
        prepared: &mut PreparedFile<'_>,
    ) -> Result<Self> {
        let committables = snapshot.committables.iter();
        Ok(Self {
            ended: snapshot.ended,
            watermark: snapshot.operator.watermark,
            input_watermark: snapshot.input_watermark,
            output_watermark: snapshot.output_watermark,
            positions: snapshot.positions.clone(),
            writer: Bytes::new(&snapshot.writer),
            committables: committables
                .map(|c| prepared.put(c))
                .collect::<Result<_>>()?,
        })
    }

    /// The same without state tables.
    pub(super) fn restore(&self, files: &dyn Files) -> Result<SubtaskSnapshot> {
        let committables = self.committables.iter().map(|c| c.read(files));
        let mut snapshot = SubtaskSnapshot {
            positions: self.positions.clone(),
            writer: self.writer.decode()?,
            committables: committables.collect::<Result<_>>()?,
            input_watermark: self.input_watermark,
            output_watermark: self.output_watermark,
            ended: self.ended,
            ..SubtaskSnapshot::default()
        };
        snapshot.operator.watermark = self.watermark;
        Ok(snapshot)
    }
}
