//! Whatever is in the files, reading a checkpoint ends with a checkpoint or an error: it neither
//! panics nor takes memory that the files do not call for.

use std::path::Path;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::super::segment;
use super::model::{Model, checkpoint, text};
use super::*;

struct Random(SplitMix64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next_u64() % n.max(1) as u64).unwrap()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most);
        (0..length)
            .map(|_| self.0.next_u64().to_le_bytes()[0])
            .collect()
    }

    /// A few changes of the kinds that find faults in readers.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(6) {
                _ if bytes.is_empty() => bytes.push(0),
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = [0, 0x7f, 0x80, 0xff][self.below(4)],
                2 => bytes.truncate(at),
                3 => {
                    let end = at + self.below(bytes.len() - at);
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
                4 => {
                    let end = at + self.below((bytes.len() - at).min(16));
                    bytes.drain(at..end);
                }
                _ => {
                    let new = self.bytes(8);
                    bytes.splice(at..at, new);
                }
            }
        }
    }
}

/// A directory with two checkpoints, the second of changes.
fn saved(directory: &Path) {
    let store = FileStore::open(directory, 2).unwrap();
    let mut model = Model::new(9, 50);
    store.save(&model.next(1, None, 2)).unwrap();
    store.save(&model.next(2, Some(1), 2)).unwrap();
}

#[test]
fn arbitrary_bytes_are_no_checkpoint() {
    let directory = TempDir::new().unwrap();
    let mut random = Random::new(1);
    for _ in 0..200 {
        for file in ["chk-1.manifest", "chk-1.data"] {
            fs::write(directory.path().join(file), random.bytes(300)).unwrap();
        }
        let store = FileStore::open(directory.path(), 1).unwrap();
        assert!(store.latest().is_err());
    }
}

#[test]
fn a_manifest_of_any_text_is_read_or_refused() {
    let directory = TempDir::new().unwrap();
    saved(directory.path());
    let path = directory.path().join("chk-2.manifest");
    let whole = fs::read_to_string(&path).unwrap();
    let json = whole.split_once('\n').unwrap().0;
    let mut random = Random::new(2);
    let mut refused = 0;
    for seed in 0..600 {
        let mut changed = json.as_bytes().to_vec();
        random.mutate(&mut changed);
        let changed = String::from_utf8_lossy(&changed).replace('\n', " ");
        // With a right checksum, so that what is behind it is reached.
        fs::write(&path, manifest::sign(&changed)).unwrap();
        let store = FileStore::open(directory.path(), 2).unwrap();
        match store.latest() {
            Ok(latest) => refused += usize::from(latest.is_none_or(|c| c.epoch != 2)),
            Err(e) => assert!(!e.to_string().is_empty(), "{seed}"),
        }
        let is_there = |name| directory.path().join(name).exists();
        if !is_there("chk-1.data") || !is_there("chk-2.data") {
            saved_again(directory.path());
        }
    }
    assert!(refused > 100, "{refused} of 600");
}

/// Opening a directory removes files that its manifests do not mention.
fn saved_again(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    saved(directory);
}

#[test]
fn sizes_out_of_a_manifest_are_not_believed() {
    let directory = TempDir::new().unwrap();
    for (field, value) in [
        ("length", "1152921504606846976"),
        ("length", "18446744073709551615"),
        ("offset", "18446744073709551615"),
        ("raw", "18446744073709551615"),
        ("raw", "1099511627776"),
        ("raw", "1"),
        ("rows", "99"),
        ("keys", "9"),
        ("keys", "18446744073709551615"),
        ("max_parallelism", "0"),
        ("max_parallelism", "65535"),
    ] {
        saved_again(directory.path());
        let path = directory.path().join("chk-2.manifest");
        let whole = fs::read_to_string(&path).unwrap();
        let json = whole.split_once('\n').unwrap().0;
        let at = json.rfind(&format!("\"{field}\":")).unwrap() + field.len() + 3;
        let end = at + json[at..].find([',', '}']).unwrap();
        if json[at..end].starts_with('[') {
            continue;
        }
        let changed = format!("{}{value}{}", &json[..at], &json[end..]);
        fs::write(&path, manifest::sign(&changed)).unwrap();
        let store = FileStore::open(directory.path(), 2).unwrap();
        // Without key groups nothing is superseded, and nothing else is asked of their number.
        let latest = store.latest().unwrap().unwrap();
        assert_eq!(
            latest.epoch == 2,
            field == "max_parallelism",
            "{field} {value}"
        );
    }
}

#[test]
fn a_stream_of_any_bytes_is_decoded_or_refused() {
    let batch = checkpoint(3).vertices[0].subtasks[0].operator.tables["rows"].batches[0].clone();
    let batch = batch.get().unwrap();
    let mut writer =
        arrow::ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let stream = writer.into_inner().unwrap();
    let mut random = Random::new(4);
    let decoded: Vec<bool> = (0..3000)
        .map(|_| {
            let mut changed = stream.clone();
            random.mutate(&mut changed);
            segment::decode(changed.into()).is_ok()
        })
        .collect();
    assert!(decoded.contains(&false));
    assert_eq!(segment::decode(stream.into()).unwrap(), [batch]);
}

/// The fixture was written by the first version with this format. A later version restores it, or
/// has another format and refuses it by name: then add a fixture, and keep this one.
#[test]
fn the_kept_checkpoint_of_this_format_restores() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checkpoints/format-2");
    if std::env::var_os("EBBFLOW_WRITE_CHECKPOINT_FIXTURE").is_some() {
        let store = FileStore::open(&kept, 2).unwrap();
        store.save(&checkpoint(6)).unwrap();
        store.save(&checkpoint(7)).unwrap();
        store.mark_committed(7).unwrap();
    }
    let directory = TempDir::new().unwrap();
    for entry in fs::read_dir(&kept).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    let store = FileStore::open(directory.path(), 2).unwrap();
    let latest = store.latest().unwrap().unwrap();
    assert_eq!(text(&latest), text(&checkpoint(7)));
    assert!(latest.committed);
}
