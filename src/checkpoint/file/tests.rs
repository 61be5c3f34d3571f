//! The directory after saving, crashing and damage.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use tempfile::TempDir;

use super::*;
use crate::checkpoint::{SubtaskSnapshot, VertexCheckpoint};
use crate::connectors::SplitPosition;
use crate::state::snapshot::OperatorSnapshot;

fn table(seed: i64) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(seed), None, Some(-seed)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("ä"), None, Some("")]));
    RecordBatch::try_from_iter([("k", keys), ("t", texts)]).unwrap()
}

fn checkpoint(epoch: u64) -> Checkpoint {
    let seed = i64::try_from(epoch).unwrap();
    let mut operator = OperatorSnapshot::default();
    operator.add("rows", 1, table(seed));
    operator.add("rows", 1, table(seed + 100));
    operator.add("timers", 0, table(seed + 200));
    operator.watermark = Some(i64::MIN + seed);
    let full = SubtaskSnapshot {
        operator,
        positions: vec![SplitPosition {
            split: "a\nb".into(),
            position: "{\"offset\":1}".into(),
        }],
        writer: vec![0, 255, 10],
        committables: vec![vec![1, 2], Vec::new()],
        input_watermark: Some(5),
        output_watermark: Some(-4),
        ended: true,
    };
    Checkpoint {
        epoch,
        committed: false,
        vertices: vec![VertexCheckpoint {
            uid: "agg".into(),
            name: "GroupAggregate".into(),
            signature: "k BIGINT".into(),
            subtasks: vec![full, SubtaskSnapshot::default()],
        }],
    }
}

fn text(checkpoint: &Checkpoint) -> String {
    format!("{:?}", checkpoint.vertices)
}

fn names(directory: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_checkpoint_comes_back_whole_in_another_process() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 1).unwrap();
    assert!(store.latest().unwrap().is_none());
    store.save(&checkpoint(1)).unwrap();
    store.save(&checkpoint(2)).unwrap();
    drop(store);
    let store = FileStore::open(directory.path(), 1).unwrap();
    let latest = store.latest().unwrap().unwrap();
    assert_eq!((latest.epoch, latest.committed), (2, false));
    assert_eq!(text(&latest), text(&checkpoint(2)));
    store.mark_committed(2).unwrap();
    assert!(store.latest().unwrap().unwrap().committed);
    assert_eq!(
        names(&directory),
        ["chk-2.committed", "chk-2.data", "chk-2.manifest", "lock"]
    );
    store.clear().unwrap();
    assert_eq!(names(&directory), ["lock"]);
}

#[test]
fn a_directory_belongs_to_one_job() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 1).unwrap();
    let error = FileStore::open(directory.path(), 1).unwrap_err();
    assert!(error.to_string().contains("is used by process"), "{error}");
    drop(store);
    FileStore::open(directory.path(), 1).unwrap();
}

#[test]
fn leftovers_of_a_crash_are_removed() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 3).unwrap();
    store.save(&checkpoint(1)).unwrap();
    drop(store);
    for name in [
        "chk-2.data",
        "chk-2.manifest.tmp",
        "chk-0.committed",
        "notes.txt",
    ] {
        fs::write(directory.path().join(name), "x").unwrap();
    }
    FileStore::open(directory.path(), 3).unwrap();
    assert_eq!(
        names(&directory),
        ["chk-1.data", "chk-1.manifest", "lock", "notes.txt"]
    );
}

#[test]
fn any_damaged_byte_is_noticed_and_the_older_checkpoint_taken() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 2).unwrap();
    store.save(&checkpoint(1)).unwrap();
    store.save(&checkpoint(2)).unwrap();
    for kind in [MANIFEST, DATA] {
        let path = store.path(2, kind);
        let whole = fs::read(&path).unwrap();
        for place in (0..whole.len()).step_by(11) {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(
                store.latest().unwrap().unwrap().epoch,
                1,
                "{kind} at {place}"
            );
        }
        for length in (0..whole.len()).step_by(13) {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(
                store.latest().unwrap().unwrap().epoch,
                1,
                "{kind} cut to {length}"
            );
        }
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(store.latest().unwrap().unwrap().epoch, 2);
    fs::remove_file(store.path(1, DATA)).unwrap();
    fs::remove_file(store.path(2, DATA)).unwrap();
    let error = store.latest().unwrap_err().to_string();
    assert!(
        error.contains("checkpoint 1: ") && error.contains("checkpoint 2: "),
        "{error}"
    );
}

#[test]
fn another_format_is_named() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 1).unwrap();
    let json = "{\"format\":99,\"engine\":\"7.0.0\"}";
    let crc = crc32fast::hash(json.as_bytes());
    fs::write(
        store.path(1, MANIFEST),
        format!("{json}\ncrc32 {crc:08x}\n"),
    )
    .unwrap();
    let error = store.latest().unwrap_err().to_string();
    assert!(
        error.contains("format 99, written by Ebbflow 7.0.0"),
        "{error}"
    );
}
