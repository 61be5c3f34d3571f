//! A disk in memory that forgets, in a crash, what was not synced, and that fails where it is told to.
//!
//! Every call is a point. A test runs its scenario once to count them, and then again for each.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::disk::{Disk, DiskFile};

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call fails and has done nothing.
    Fails,
    /// There is no room: a write does half of its work.
    Full,
    /// The call works, and fails all the same.
    FailsLate,
    /// The process dies before the call.
    Crash,
}

/// A change of which names there are.
#[derive(Debug, Clone)]
enum Naming {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

fn apply(names: &mut BTreeMap<String, usize>, naming: &Naming) {
    match naming {
        Naming::Create(name, file) => {
            names.insert(name.clone(), *file);
        }
        Naming::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Naming::Remove(name) => {
            names.remove(name);
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    synced: usize,
}

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    since_sync: Vec<Naming>,
    contents: Vec<Content>,
    /// What has been called, for messages.
    points: Vec<String>,
    fault: Option<(usize, Fault)>,
    dead: bool,
}

/// The disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has point `point` (counted from now) fail.
    pub(crate) fn fail_at(&self, point: usize, fault: Fault) {
        let mut state = self.lock();
        state.fault = Some((state.points.len() + point, fault));
    }

    /// What has been called so far.
    pub(crate) fn points(&self) -> Vec<String> {
        self.lock().points.clone()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// What a crash leaves: of what was not synced, a part that depends on `seed`.
    pub(crate) fn after_crash(&self, seed: u64) -> Self {
        let mut random = SplitMix64::seed_from_u64(seed);
        let mut chance = |n: u64| random.next_u64() % n;
        let state = self.lock();
        let mut names = state.durable.clone();
        for naming in &state.since_sync {
            if chance(2) == 0 {
                apply(&mut names, naming);
            }
        }
        let mut contents = state.contents.clone();
        for content in &mut contents {
            let unsynced = content.bytes.len() - content.synced;
            let kept = usize::try_from(chance(unsynced as u64 + 1)).unwrap();
            content.bytes.truncate(content.synced + kept);
            if kept > 0 && chance(3) == 0 {
                // Blocks that were given to the file but not written.
                content.bytes[content.synced..].fill(0);
            }
            content.synced = content.bytes.len();
        }
        Self(Arc::new(Mutex::new(State {
            durable: names.clone(),
            names,
            contents,
            ..State::default()
        })))
    }

    /// Changes the bytes of a file.
    pub(crate) fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        let file = state.names[name];
        change(&mut state.contents[file].bytes);
    }

    /// Passes a point: an error if it fails before anything is done; whether it fails afterwards.
    fn point(&self, text: String) -> io::Result<Option<Fault>> {
        let mut state = self.lock();
        if state.dead {
            return Err(io::Error::other("the process is dead"));
        }
        let number = state.points.len();
        state.points.push(text);
        match state.fault {
            Some((at, fault)) if at == number => match fault {
                Fault::Fails => Err(io::Error::other("a fault")),
                Fault::Crash => {
                    state.dead = true;
                    Err(io::Error::other("the process is dead"))
                }
                late => Ok(Some(late)),
            },
            _ => Ok(None),
        }
    }

    fn naming(&self, text: String, naming: Naming) -> io::Result<()> {
        let fault = self.point(text)?;
        if fault == Some(Fault::Full) {
            return Err(full());
        }
        let mut state = self.lock();
        apply(&mut state.names, &naming);
        state.since_sync.push(naming);
        late(fault)
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        let state = self.lock();
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        state.names.get(name).copied().ok_or_else(missing)
    }
}

fn full() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

fn late(fault: Option<Fault>) -> io::Result<()> {
    match fault {
        None => Ok(()),
        Some(_) => Err(io::Error::other("a late fault")),
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        late(self.point("list".into())?)?;
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        late(self.point(format!("read {name}"))?)?;
        let file = self.file(name)?;
        Ok(self.lock().contents[file].bytes.clone())
    }

    fn read_range(&self, name: &str, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let bytes = self.read(name)?;
        let end = offset.checked_add(length);
        let range = usize::try_from(offset)
            .ok()
            .zip(end.and_then(|e| e.try_into().ok()));
        let part = range.and_then(|(from, to): (usize, usize)| bytes.get(from..to));
        let part = part.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(part.to_vec())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = {
            let mut state = self.lock();
            state.contents.push(Content::default());
            state.contents.len() - 1
        };
        let naming = Naming::Create(name.into(), file);
        self.naming(format!("create {name}"), naming)?;
        Ok(Box::new(SimFile {
            disk: self.clone(),
            name: name.into(),
            file,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.file(from)?;
        let naming = Naming::Rename(from.into(), to.into());
        self.naming(format!("rename {from} to {to}"), naming)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.file(name)?;
        self.naming(format!("remove {name}"), Naming::Remove(name.into()))
    }

    fn sync_names(&self) -> io::Result<()> {
        let fault = self.point("sync names".into())?;
        let mut state = self.lock();
        if fault != Some(Fault::Full) {
            state.durable = state.names.clone();
            state.since_sync.clear();
        }
        late(fault)
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/sim").join(name)
    }
}

struct SimFile {
    disk: SimDisk,
    name: String,
    file: usize,
}

impl DiskFile for SimFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let fault = self.disk.point(format!("write {}", self.name))?;
        let content = &mut self.disk.lock().contents[self.file].bytes;
        if fault == Some(Fault::Full) {
            content.extend_from_slice(&bytes[..bytes.len() / 2]);
            return Err(full());
        }
        content.extend_from_slice(bytes);
        late(fault)
    }

    fn sync(&mut self) -> io::Result<()> {
        let fault = self.disk.point(format!("sync {}", self.name))?;
        let content = &mut self.disk.lock().contents[self.file];
        if fault != Some(Fault::Full) {
            content.synced = content.bytes.len();
        }
        late(fault)
    }
}
