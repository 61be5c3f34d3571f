//! What a directory of checkpoints holds, for people: nothing is locked, changed or restored.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

use super::{COMMITTED, FileStore, MANIFEST, epoch_of, name};
use crate::connectors::SplitPosition;
use crate::error::Result;

/// A checkpoint as its manifest tells it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckpointInfo {
    /// Its number.
    pub epoch: u64,
    /// `checkpoint` or `savepoint`.
    pub kind: &'static str,
    /// When it was complete, ms since 1970; 0 if the file system does not say.
    pub completed_ms: u64,
    /// Whether all that its sinks had prepared is known to be visible.
    pub committed: bool,
    /// The version of Ebbflow that wrote it.
    pub engine: String,
    /// Why it cannot be restored, if its manifest says so.
    pub damage: Option<String>,
    /// What it holds.
    pub vertices: Vec<VertexInfo>,
}

impl CheckpointInfo {
    /// Bytes of all vertices.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.vertices.iter().map(|v| v.bytes).sum()
    }
}

/// A vertex in a checkpoint.
#[derive(Debug, Clone, Serialize)]
pub struct VertexInfo {
    /// Its stable identity.
    pub uid: String,
    /// The plan node's noun.
    pub name: String,
    /// Number of subtasks that wrote it.
    pub subtasks: usize,
    /// Bytes on disk.
    pub bytes: u64,
    /// Where a source's splits stood.
    pub positions: Vec<SplitPosition>,
}

impl FileStore {
    /// The checkpoints in `directory`, newest first.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(directory: &Path) -> Result<Vec<CheckpointInfo>> {
        let store = Self::read_only(directory);
        let folder = directory.file_name().and_then(|n| n.to_str());
        let kind = match folder {
            Some(name) if name.starts_with("savepoint-") => "savepoint",
            _ => "checkpoint",
        };
        let names = store.files.list()?;
        let mut epochs: Vec<u64> = names.iter().filter_map(|n| epoch_of(n, MANIFEST)).collect();
        epochs.sort_unstable_by(|a, b| b.cmp(a));
        let mut found = Vec::new();
        for epoch in epochs {
            let path = directory.join(name(epoch, MANIFEST));
            let mut info = match store.manifest(epoch) {
                Ok(manifest) => manifest.describe(),
                // a newer one has taken its place meanwhile
                Err(_) if !path.exists() => continue,
                Err(e) => CheckpointInfo {
                    epoch,
                    damage: Some(e.to_string()),
                    ..CheckpointInfo::default()
                },
            };
            let modified = fs::metadata(&path).and_then(|m| m.modified()).ok();
            let since = modified.and_then(|m| m.duration_since(SystemTime::UNIX_EPOCH).ok());
            let ms = since.map_or(0, |s| s.as_millis());
            info.completed_ms = u64::try_from(ms).unwrap_or(0);
            info.committed = names.contains(&name(epoch, COMMITTED));
            info.kind = kind;
            found.push(info);
        }
        Ok(found)
    }
}
