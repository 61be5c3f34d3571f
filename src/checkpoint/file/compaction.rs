//! Merges data files in the background, so that a checkpoint does not come to lie in ever more of
//! them, and rows that were replaced give their room back.
//!
//! The newest files are merged once there are several of about the same size; so every row is
//! written a few times only, however long the job runs. The merged file takes the place of the others
//! with the next checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::files::Files;
use super::manifest::{Manifest, Segment, Table};
use super::tables::{self, DataFile};
use crate::error::{Error, Result};

/// So many files of about the same size are merged.
const FILES: usize = 4;

/// A merge of data files.
#[derive(Debug)]
pub(super) struct Compaction {
    /// The files that go in.
    pub(super) files: BTreeSet<String>,
    /// The file that comes out.
    pub(super) name: String,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<Replacement>>>>,
}

/// Segments of a table, and what stands for them.
#[derive(Debug)]
pub(super) struct Replacement {
    uid: String,
    table: String,
    segments: Vec<Segment>,
    merged: Option<Segment>,
}

/// The newest files that are worth merging. The newest file counts itself.
fn pick(manifest: &Manifest) -> BTreeSet<String> {
    // Files by their newest layer, with the bytes that still count.
    let mut sizes: Vec<(u64, &str, u64)> = Vec::new();
    for segment in manifest.segments() {
        match sizes.iter_mut().find(|(_, name, _)| *name == segment.file) {
            Some((layer, _, bytes)) => {
                *layer = segment.layer.max(*layer);
                *bytes += segment.bytes();
            }
            None => sizes.push((segment.layer, &segment.file, segment.bytes())),
        }
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut run: Vec<&str> = Vec::new();
    let mut sum = 0_u64;
    for (_, name, bytes) in sizes {
        if !run.is_empty() && bytes > sum.saturating_mul(2) {
            break;
        }
        sum = sum.saturating_add(bytes);
        run.push(name);
    }
    if run.len() < FILES {
        run.clear();
    }
    run.into_iter().map(str::to_string).collect()
}

impl Compaction {
    /// Begins a merge, if one is due after checkpoint `manifest`; in the background or at once.
    pub(super) fn begin(
        manifest: &Manifest,
        files: &Arc<dyn Files>,
        name: String,
        background: bool,
    ) -> Option<Self> {
        let picked = pick(manifest);
        if picked.is_empty() {
            return None;
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let run = {
            let (manifest, picked) = (manifest.clone(), picked.clone());
            let (files, name) = (Arc::clone(files), name.clone());
            let cancelled = Arc::clone(&cancelled);
            move || compact(&manifest, &picked, files.as_ref(), name, &cancelled)
        };
        let thread = thread::Builder::new().name("compaction".into()).spawn(run);
        let mut compaction = Self {
            files: picked,
            name,
            cancelled,
            thread: thread.ok(),
        };
        if !background {
            compaction.wait();
        }
        Some(compaction)
    }

    fn wait(&mut self) {
        while self.thread.as_ref().is_some_and(|t| !t.is_finished()) {
            thread::yield_now();
        }
    }

    /// What came out, once it is done.
    pub(super) fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What came out. Waits until it is done.
    pub(super) fn result(mut self) -> Result<Vec<Replacement>> {
        let thread = self.thread.take();
        let thread = thread.ok_or_else(|| Error::checkpoint("no thread for compaction"))?;
        let joined = thread.join();
        joined.unwrap_or_else(|_| Err(Error::internal("a compaction panicked")))
    }

    /// Gives it up.
    pub(super) fn cancel(self, files: &dyn Files) {
        self.cancelled.store(true, Ordering::SeqCst);
        let name = self.name.clone();
        // Whatever came of it is not wanted any more.
        let _ = self.result();
        let _ = files.remove(&name);
    }
}

fn compact(
    manifest: &Manifest,
    picked: &BTreeSet<String>,
    files: &dyn Files,
    name: String,
    cancelled: &AtomicBool,
) -> Result<Vec<Replacement>> {
    let mut file = DataFile::new(files, name);
    let mut replacements = Vec::new();
    for vertex in &manifest.vertices {
        for table in &vertex.tables {
            if cancelled.load(Ordering::SeqCst) {
                return Err(Error::checkpoint("cancelled"));
            }
            let is_picked = |segment: &&Segment| picked.contains(&segment.file);
            let segments: Vec<Segment> = table.segments.iter().filter(is_picked).cloned().collect();
            if segments.is_empty() {
                continue;
            }
            let oldest = table.segments.first() == segments.first();
            let groups = manifest.max_parallelism;
            let merged = tables::compact(table, &segments, oldest, groups, files, &mut file)?;
            replacements.push(Replacement {
                uid: vertex.uid.clone(),
                table: table.name.clone(),
                segments,
                merged,
            });
        }
    }
    file.finish()?;
    Ok(replacements)
}

/// Puts the merged segments in the place of the others, where those still count.
pub(super) fn adopt(manifest: &mut Manifest, replacements: Vec<Replacement>) {
    for replacement in replacements {
        let vertex = manifest.vertices.iter_mut();
        let vertex = vertex.filter(|v| v.uid == replacement.uid);
        let mut tables = vertex.flat_map(|v| &mut v.tables);
        if let Some(table) = tables.find(|t| t.name == replacement.table) {
            replace(table, replacement);
        }
    }
}

fn replace(table: &mut Table, replacement: Replacement) {
    let old = &replacement.segments;
    let at = table.segments.windows(old.len()).position(|w| w == old);
    if let Some(at) = at {
        table
            .segments
            .splice(at..at + old.len(), replacement.merged);
    }
}
