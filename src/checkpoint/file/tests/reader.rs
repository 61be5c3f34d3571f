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

/// How many inputs are tried: `EBBFLOW_READER_ROUNDS` times as many as on an everyday run.
fn rounds(everyday: usize) -> usize {
    let times = std::env::var("EBBFLOW_READER_ROUNDS").ok();
    everyday * times.map_or(1, |t| t.parse::<usize>().expect("a number"))
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
    for _ in 0..rounds(200) {
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
    let rounds = rounds(600);
    for round in 0..rounds {
        let mut changed = json.as_bytes().to_vec();
        random.mutate(&mut changed);
        let changed = String::from_utf8_lossy(&changed).replace('\n', " ");
        // With a right checksum, so that what is behind it is reached.
        fs::write(&path, manifest::sign(&changed)).unwrap();
        let store = FileStore::open(directory.path(), 2).unwrap();
        match store.latest() {
            Ok(latest) => refused += usize::from(latest.is_none_or(|c| c.epoch != 2)),
            Err(e) => assert!(!e.to_string().is_empty(), "{round}"),
        }
        let is_there = |name| directory.path().join(name).exists();
        if !is_there("chk-1.data") || !is_there("chk-2.data") {
            saved_again(directory.path());
        }
    }
    assert!(refused > rounds / 6, "{refused} of {rounds}");
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
    let decoded: Vec<bool> = (0..rounds(3000))
        .map(|_| {
            let mut changed = stream.clone();
            random.mutate(&mut changed);
            segment::decode(changed.into()).is_ok()
        })
        .collect();
    assert!(decoded.contains(&false));
    assert_eq!(segment::decode(stream.into()).unwrap(), [batch]);
}

/// Inputs of the fuzzer by their names: the first line is a manifest, the rest the data file. Those
/// that begin with `whole` restore.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 1).unwrap();
    store.save(&Model::new(9, 50).next(1, None, 2)).unwrap();
    let manifest = fs::read_to_string(directory.path().join("chk-1.manifest")).unwrap();
    let json = manifest.split_once('\n').unwrap().0.to_string();
    let data = fs::read(directory.path().join("chk-1.data")).unwrap();
    let input = |json: &str, data: &[u8]| [json.as_bytes(), b"\n", data].concat();
    let changed = |field: &str, value: &str| {
        let at = json.rfind(&format!("\"{field}\":")).unwrap() + field.len() + 3;
        let end = at + json[at..].find([',', '}', ']']).unwrap();
        input(&format!("{}{value}{}", &json[..at], &json[end..]), &data)
    };
    let mut flipped = data.clone();
    flipped[data.len() / 2] ^= 1;
    let deep = "[".repeat(100_000);
    vec![
        ("whole", input(&json, &data)),
        (
            "whole-with-more-data",
            input(&json, &[&data[..], b"more"].concat()),
        ),
        (
            "whole-without-state",
            input(
                &json.replace("\"tables\":[{", "\"tables\":[],\"was\":[{"),
                &data,
            ),
        ),
        ("empty", Vec::new()),
        ("no-json", input("chk-1", &data)),
        ("half-a-manifest", input(&json[..json.len() / 2], &data)),
        ("deep", input(&deep, &data)),
        ("deep-inside", input(&json.replacen('[', &deep, 1), &data)),
        ("no-data", input(&json, b"")),
        ("half-the-data", input(&json, &data[..data.len() / 2])),
        ("a-flipped-bit", input(&json, &flipped)),
        ("another-epoch", changed("epoch", "2")),
        ("another-format", changed("format", "99")),
        ("a-huge-length", changed("length", "18446744073709551615")),
        ("a-huge-offset", changed("offset", "18446744073709551615")),
        ("a-huge-size", changed("raw", "1099511627776")),
        ("a-small-size", changed("raw", "1")),
        ("too-many-keys", changed("keys", "18446744073709551615")),
        (
            "another-file",
            input(&json.replace("chk-1.data", "../../etc/passwd"), &data),
        ),
    ]
}

#[test]
fn the_inputs_of_the_fuzzer_are_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/checkpoint");
    if std::env::var_os("EBBFLOW_WRITE_CHECKPOINT_CORPUS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for (name, input) in corpus() {
            fs::write(folder.join(name), input).unwrap();
        }
    }
    let mut tried = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let input = fs::read(&path).unwrap();
        let end = input.iter().position(|b| *b == b'\n');
        let (json, data) = input.split_at(end.unwrap_or(input.len()));
        let directory = TempDir::new().unwrap();
        let sum = format!("\ncrc32 {:08x}\n", crc32fast::hash(json));
        let manifest = [json, sum.as_bytes()].concat();
        fs::write(directory.path().join("chk-1.manifest"), manifest).unwrap();
        let data = data.get(1..).unwrap_or_default();
        fs::write(directory.path().join("chk-1.data"), data).unwrap();
        let latest = FileStore::open(directory.path(), 1).and_then(|store| store.latest());
        let is_whole = matches!(latest, Ok(Some(_)));
        assert_eq!(is_whole, name.starts_with("whole"), "{name}: {latest:?}");
        tried += 1;
    }
    assert!(tried >= corpus().len(), "{tried}");
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
    let mut expected = checkpoint(7);
    // The kept one is older than the files for what sinks have pre-committed.
    expected.vertices[0].subtasks[0].committables.pop();
    assert_eq!(text(&latest), text(&expected));
    assert!(latest.committed);
}
