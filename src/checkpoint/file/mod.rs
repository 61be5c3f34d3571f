//! Checkpoints in files: in a directory of a local disk, or under a prefix of an object store.
//!
//! ```text
//! <place>/lock                  held by the process that uses a directory; its process id
//!         finished              empty: the job has finished by itself
//!         identity              the name of the job; see `identity`
//!         stop                  asks the job to stop; see `control_file`
//!         chk-7.data            rows of state tables that checkpoint 7 has added; see `segment`
//!         merged-7.data         rows of several data files, merged after checkpoint 7
//!         sinks-7.data          what sinks have pre-committed, if it is long; see `prepared`
//!         chk-7.manifest        everything else, and where the rows are; see `manifest`
//!         chk-7.committed       empty: all of checkpoint 7 is committed
//! ```
//!
//! A checkpoint exists once its manifest does, which appears after the data is durable. A data file
//! goes when no manifest that is kept refers to it. Lengths and checksums tell a whole checkpoint
//! from a damaged one.

mod compaction;
mod directory;
mod disk;
mod files;
mod identity;
mod inspect;
mod manifest;
mod object;
mod prepared;
mod segment;
#[cfg(test)]
pub(crate) mod sim;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::compaction::Compaction;
use self::disk::LocalDisk;
use self::files::{Directory, Existing, Files, Published, TEMPORARY};
pub use self::inspect::{CheckpointInfo, VertexInfo};
use self::manifest::{Manifest, Subtask, Vertex};
use self::object::Bucket;
pub use self::object::S3Options;
use self::prepared::PreparedFile;
use self::tables::DataFile;
use super::{Checkpoint, CheckpointStore, VertexCheckpoint};
use crate::error::{Error, ErrorKind, Result};

const MANIFEST: &str = "manifest";
const DATA: &str = "data";
const COMMITTED: &str = "committed";
const FINISHED: &str = "finished";

/// Keeps checkpoints in a place that is its own while it lives.
#[derive(Debug)]
pub struct FileStore {
    files: Arc<dyn Files>,
    retained: usize,
    /// Whether files are merged in the background, or before `save` returns.
    background: bool,
    /// Part of the names of data files, where a second process could write to the same place.
    token: String,
    /// The job had finished by itself when the place was opened.
    finished: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The checkpoint that was last saved or read.
    current: Option<Manifest>,
    /// The checkpoints that are there: the data files they need; `None` if that is not known.
    kept: BTreeMap<u64, Option<BTreeSet<String>>>,
    compaction: Option<Compaction>,
    /// Whether files that no manifest mentions may go: without a lock they may be those of a process
    /// that is still there, until one of our manifests has appeared before its next.
    settled: bool,
    /// Another process has this place.
    lost: bool,
}

/// The name of a file of checkpoint `epoch`.
fn name(epoch: u64, kind: &str) -> String {
    format!("chk-{epoch}.{kind}")
}

/// The epoch of a name that [`name`] made.
fn epoch_of(name: &str, kind: &str) -> Option<u64> {
    let rest = name.strip_prefix("chk-")?.strip_suffix(kind)?;
    rest.strip_suffix('.')?.parse().ok()
}

fn is_data_file(name: &str) -> bool {
    let stem = name
        .strip_suffix(DATA)
        .and_then(|name| name.strip_suffix('.'));
    stem.is_some_and(|stem| {
        ["chk-", "merged-", "sinks-"]
            .iter()
            .any(|kind| stem.starts_with(kind))
            && stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

impl FileStore {
    /// Opens `directory`, which is made if need be. The newest `retained` checkpoints are kept (at
    /// least one).
    ///
    /// # Errors
    /// When another process uses the directory, or it cannot be made.
    pub fn open(directory: impl Into<PathBuf>, retained: usize) -> Result<Self> {
        let disk = LocalDisk::open(directory.into())?;
        Self::on(Arc::new(Directory(Box::new(disk))), retained, "")
    }

    /// Uses the prefix `url` (`s3://bucket/path`) of an object store.
    ///
    /// # Errors
    /// When the URL is none, or the store cannot be reached.
    pub fn on_s3(url: &str, options: &S3Options, retained: usize) -> Result<Self> {
        Self::on_bucket(Bucket::s3(url, options)?, retained)
    }

    fn on_bucket(bucket: Bucket, retained: usize) -> Result<Self> {
        let mut token = [0; 8];
        getrandom::fill(&mut token)
            .map_err(|e| Error::checkpoint(format!("no random numbers: {e}")))?;
        let token = format!("-{:016x}", u64::from_le_bytes(token));
        Self::on(Arc::new(bucket), retained, &token)
    }

    /// On the simulated disk; files are merged before `save` returns.
    #[cfg(test)]
    pub(crate) fn on_disk(disk: sim::SimDisk, retained: usize) -> Result<Self> {
        let mut store = Self::on(Arc::new(Directory(Box::new(disk))), retained, "")?;
        store.background = false;
        Ok(store)
    }

    fn on(files: Arc<dyn Files>, retained: usize, token: &str) -> Result<Self> {
        let mut store = Self::unopened(files, retained, token);
        {
            let mut state = store.lock();
            state.settled = token.is_empty();
            store.take_stock(&mut state)?;
        }
        if store.files.list()?.iter().any(|name| name == FINISHED) {
            store.finished = true;
            store.clear()?;
            store.files.remove(FINISHED)?;
        }
        Ok(store)
    }

    /// Nothing is known yet of what is there.
    fn unopened(files: Arc<dyn Files>, retained: usize, token: &str) -> Self {
        Self {
            files,
            retained: retained.max(1),
            background: true,
            token: token.to_string(),
            finished: false,
            state: Mutex::default(),
        }
    }

    /// Whether the job had finished by itself when the place was opened, so that it begins anew.
    #[must_use]
    pub fn had_finished(&self) -> bool {
        self.finished
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out what is there, and removes what a crash has left half done.
    fn take_stock(&self, state: &mut State) -> Result<()> {
        let names = self.files.list()?;
        for epoch in names.iter().filter_map(|name| epoch_of(name, MANIFEST)) {
            let manifest = self.manifest(epoch);
            state.kept.insert(epoch, manifest.ok().map(|m| m.files()));
        }
        let ours = |name: &str| epoch_of(name, MANIFEST).or(epoch_of(name, COMMITTED));
        for name in &names {
            let marker = epoch_of(name, COMMITTED);
            let leftover = marker.is_some_and(|epoch| !state.kept.contains_key(&epoch))
                || name.strip_suffix(TEMPORARY).and_then(ours).is_some();
            if leftover {
                self.files.remove(name)?;
            }
        }
        self.remove_unused(state, &names)
    }

    /// Removes data files that nothing needs: those of checkpoints that came to nothing.
    fn remove_unused(&self, state: &State, names: &[String]) -> Result<()> {
        // What a damaged manifest refers to is not known.
        if !state.settled || !state.kept.values().all(Option::is_some) {
            return Ok(());
        }
        let compaction = state.compaction.as_ref();
        for name in names.iter().filter(|name| is_data_file(name)) {
            let busy = compaction.is_some_and(|c| c.name == *name || c.files.contains(name));
            let needed = state.kept.values().flatten().any(|f| f.contains(name));
            if !busy && !needed {
                self.files.remove(name)?;
            }
        }
        Ok(())
    }

    fn manifest(&self, epoch: u64) -> Result<Manifest> {
        let name = name(epoch, MANIFEST);
        let manifest = self.files.read(&name).and_then(|b| Manifest::decode(&b));
        let manifest = manifest.map_err(|e| e.context(name.clone()))?;
        if manifest.epoch != epoch {
            let text = format!("{name} is the manifest of checkpoint {}", manifest.epoch);
            return Err(Error::checkpoint(text));
        }
        Ok(manifest)
    }

    fn load(&self, epoch: u64, committed: bool) -> Result<(Manifest, Checkpoint)> {
        let manifest = self.manifest(epoch)?;
        let groups = manifest.max_parallelism;
        let vertices = manifest.vertices.iter();
        let vertices = vertices.map(|v| tables::restore(v, groups, self.files.as_ref()));
        let checkpoint = Checkpoint {
            epoch,
            base: Some(epoch),
            max_parallelism: groups,
            committed,
            vertices: vertices.collect::<Result<_>>()?,
        };
        Ok((manifest, checkpoint))
    }

    /// Removes a checkpoint and the data files that no other needs. The manifest goes first: without
    /// it the rest means nothing.
    fn remove_checkpoint(&self, state: &mut State, epoch: u64) -> Result<()> {
        self.files.remove(&name(epoch, MANIFEST))?;
        self.files.remove(&name(epoch, COMMITTED))?;
        let Some(Some(files)) = state.kept.remove(&epoch) else {
            return Ok(());
        };
        let all_known = state.kept.values().all(Option::is_some);
        let busy = state.compaction.as_ref().map(|c| &c.files);
        for file in files {
            let needed = state.kept.values().flatten().any(|f| f.contains(&file));
            let needed = needed || busy.is_some_and(|busy| busy.contains(&file));
            if all_known && !needed {
                self.files.remove(&file)?;
            }
        }
        Ok(())
    }

    /// Removes what the newest checkpoints do not need.
    fn remove_old(&self, state: &mut State) -> Result<()> {
        if !state.settled {
            state.settled = true;
            self.remove_unused(state, &self.files.list()?)?;
        }
        let old = state.kept.keys().rev().skip(self.retained);
        for old in old.copied().collect::<Vec<_>>() {
            self.remove_checkpoint(state, old)?;
        }
        Ok(())
    }

    /// Puts files that were merged in the place of those they were made of.
    fn adopt_compaction(&self, state: &mut State) {
        let Some(compaction) = state.compaction.take_if(|c| c.is_done()) else {
            return;
        };
        let (name, inputs) = (compaction.name.clone(), compaction.files.clone());
        match (compaction.result(), &mut state.current) {
            (Ok(replacements), Some(current)) => compaction::adopt(current, replacements),
            (Ok(_), None) => {}
            (Err(e), _) => tracing::warn!("checkpoint files are not merged: {e}"),
        }
        let used = |file: &String| {
            let current = state.current.iter().flat_map(Manifest::segments);
            let kept = state.kept.values().flatten();
            current.into_iter().any(|s| s.file == *file)
                || kept.into_iter().any(|f| f.contains(file))
        };
        // What is not needed any more could not be removed while it was read.
        for file in inputs.iter().chain([&name]).filter(|file| !used(file)) {
            if let Err(e) = self.files.remove(file) {
                tracing::warn!("{e}");
            }
        }
    }

    fn write(
        &self,
        checkpoint: &Checkpoint,
        base: Option<&Manifest>,
        file: &mut DataFile<'_>,
        prepared: &mut PreparedFile<'_>,
    ) -> Result<Vec<Vertex>> {
        let groups = checkpoint.max_parallelism;
        let save = |vertex: &VertexCheckpoint| {
            let subtasks = vertex.subtasks.iter();
            let old = base.and_then(|base| base.vertex(&vertex.uid));
            let old = old.filter(|old| old.signature == vertex.signature);
            let old = old.map_or(&[][..], |old| &old.tables);
            Ok(Vertex {
                uid: vertex.uid.clone(),
                name: vertex.name.clone(),
                signature: vertex.signature.clone(),
                subtasks: subtasks
                    .map(|s| Subtask::save(s, prepared))
                    .collect::<Result<_>>()?,
                tables: tables::save(vertex, checkpoint.epoch, groups, old, file)?,
            })
        };
        checkpoint.vertices.iter().map(save).collect()
    }

    /// The manifest of `checkpoint`, now durable; `None` if another process has saved one of its
    /// number.
    fn try_save(
        &self,
        state: &State,
        checkpoint: &Checkpoint,
        [data, sinks]: &[String; 2],
    ) -> Result<Option<Manifest>> {
        let base = state.current.as_ref();
        let groups = checkpoint.max_parallelism;
        let fits = |base: &&Manifest| {
            checkpoint.base == Some(base.epoch) && base.max_parallelism == groups
        };
        let base = base.filter(fits);
        if checkpoint.has_changes() && base.is_none() {
            return Err(Error::internal("changes of another checkpoint"));
        }
        let mut file = DataFile::new(self.files.as_ref(), data.clone());
        let mut prepared = PreparedFile::new(self.files.as_ref(), sinks.clone());
        let vertices = self.write(checkpoint, base, &mut file, &mut prepared)?;
        file.finish()?;
        prepared.finish()?;
        let manifest = Manifest::new(checkpoint, vertices);
        let name = name(checkpoint.epoch, MANIFEST);
        let published = self
            .files
            .publish(&name, &manifest.encode()?, Existing::Refuse)?;
        Ok((published == Published::Done).then_some(manifest))
    }

    fn taken(&self) -> Error {
        let text = format!("another job writes to {}", self.files.place());
        Error::checkpoint(text)
            .hint("give every job a place of its own: 'execution.checkpointing.dir'")
    }

    fn data_name(&self, kind: &str, epoch: u64) -> String {
        format!("{kind}-{epoch}{}.{DATA}", self.token)
    }
}

impl CheckpointStore for FileStore {
    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        let state = &mut *self.lock();
        let epoch = checkpoint.epoch;
        if state.lost {
            return Err(self.taken());
        }
        self.adopt_compaction(state);
        // Former attempts at this epoch and at later ones are void.
        let void: Vec<u64> = state.kept.range(epoch..).map(|(e, _)| *e).collect();
        for epoch in void.into_iter().rev() {
            self.remove_checkpoint(state, epoch)?;
        }
        let names = ["chk", "sinks"].map(|kind| self.data_name(kind, epoch));
        let saved = self.try_save(state, checkpoint, &names);
        // A number that is taken says that somebody else goes on from the same checkpoint.
        state.lost = matches!(saved, Ok(None));
        let saved = saved.and_then(|saved| saved.ok_or_else(|| self.taken()));
        let manifest = match saved {
            Ok(manifest) => manifest,
            Err(e) => {
                for name in &names {
                    if let Err(e) = self.files.remove(name) {
                        tracing::warn!("{e}");
                    }
                }
                return Err(e);
            }
        };
        state.kept.insert(epoch, Some(manifest.files()));
        state.current = Some(manifest);
        // The checkpoint is there, whatever becomes of the old ones.
        if let Err(e) = self.remove_old(state) {
            tracing::warn!("old checkpoints are not removed: {e}");
        }
        if let Some(manifest) = &state.current
            && state.compaction.is_none()
        {
            let name = self.data_name("merged", epoch);
            state.compaction = Compaction::begin(manifest, &self.files, name, self.background);
        }
        Ok(())
    }

    fn latest(&self) -> Result<Option<Checkpoint>> {
        let state = &mut *self.lock();
        let names = self.files.list()?;
        let epochs: BTreeSet<u64> = names
            .iter()
            .filter_map(|name| epoch_of(name, MANIFEST))
            .collect();
        let mut reasons = Vec::new();
        for epoch in epochs.into_iter().rev() {
            let committed = names.contains(&name(epoch, COMMITTED));
            match self.load(epoch, committed) {
                Ok((manifest, checkpoint)) => {
                    state.kept.insert(epoch, Some(manifest.files()));
                    state.current = Some(manifest);
                    self.remove_unused(state, &names)?;
                    return Ok(Some(checkpoint));
                }
                // It may be whole: to go on from an older one would repeat what is committed.
                Err(e) if e.kind() == ErrorKind::Connector => return Err(e),
                Err(e) => {
                    let place = self.files.place();
                    tracing::warn!("checkpoint {epoch} in {place} is damaged and skipped: {e}");
                    reasons.push(format!("checkpoint {epoch}: {e}"));
                }
            }
        }
        if reasons.is_empty() {
            return Ok(None);
        }
        Err(Error::checkpoint(format!(
            "no checkpoint in {} is whole\n{}",
            self.files.place(),
            reasons.join("\n")
        ))
        .hint("empty the directory to start from the beginning"))
    }

    fn mark_committed(&self, epoch: u64) -> Result<()> {
        let name = name(epoch, COMMITTED);
        self.files
            .publish(&name, &[], Existing::Replace)
            .map(|_| ())
    }

    fn identity(&self) -> Result<Option<String>> {
        identity::of(self.files.as_ref()).map(Some)
    }

    fn clear(&self) -> Result<()> {
        let state = &mut *self.lock();
        // What a savepoint refers to is not a leftover of the job that begins anew.
        if !state.kept.is_empty() {
            self.files.remove(identity::FILE)?;
        }
        if let Some(compaction) = state.compaction.take() {
            compaction.cancel(self.files.as_ref());
        }
        // Oldest first: a crash must not leave an older one as the newest.
        for epoch in state.kept.keys().copied().collect::<Vec<_>>() {
            self.remove_checkpoint(state, epoch)?;
        }
        state.current = None;
        // What damaged ones referred to.
        for name in self.files.list()? {
            if is_data_file(&name) {
                self.files.remove(&name)?;
            }
        }
        self.files.sync()
    }

    fn finish(&self) -> Result<()> {
        self.files.publish(FINISHED, &[], Existing::Replace)?;
        self.clear()
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        let compaction = self.lock().compaction.take();
        if let Some(compaction) = compaction {
            compaction.cancel(self.files.as_ref());
        }
    }
}

#[cfg(test)]
mod tests;
