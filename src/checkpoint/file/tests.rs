//! The place of checkpoints after saving, crashing and damage.

mod crashes;
mod model;
mod object;
mod reader;

use std::fs;

use tempfile::TempDir;

use self::model::{Model, checkpoint, text};
use super::*;

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
        [
            "chk-2.committed",
            "chk-2.data",
            "chk-2.manifest",
            "lock",
            "sinks-2.data"
        ]
    );
    store.clear().unwrap();
    assert_eq!(names(&directory), ["lock"]);
}

#[test]
fn a_job_has_one_name_until_its_checkpoints_are_cleared() {
    let directory = TempDir::new().unwrap();
    let open = || FileStore::open(directory.path(), 1).unwrap();
    let name = open().identity().unwrap().unwrap();
    assert_eq!(open().identity().unwrap().unwrap(), name);
    // Nothing else knows of what was written before the first checkpoint.
    open().clear().unwrap();
    let store = open();
    assert_eq!(store.identity().unwrap().unwrap(), name);
    store.save(&checkpoint(1)).unwrap();
    store.clear().unwrap();
    let other = store.identity().unwrap().unwrap();
    assert_ne!(other, name);
    drop(store);
    fs::write(directory.path().join(identity::FILE), "../..").unwrap();
    let third = open().identity().unwrap().unwrap();
    assert_ne!(third, other);
    assert_eq!(third.len(), 16);
    assert_eq!(open().identity().unwrap().unwrap(), third);
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
        "merged-2.data",
        "sinks-2.data",
        "chk-2.manifest.tmp",
        "chk-0.committed",
        "notes.txt",
    ] {
        fs::write(directory.path().join(name), "x").unwrap();
    }
    FileStore::open(directory.path(), 3).unwrap();
    assert_eq!(
        names(&directory),
        [
            "chk-1.data",
            "chk-1.manifest",
            "lock",
            "notes.txt",
            "sinks-1.data"
        ]
    );
}

#[test]
fn any_damaged_byte_is_noticed_and_the_older_checkpoint_taken() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 2).unwrap();
    store.save(&checkpoint(1)).unwrap();
    store.save(&checkpoint(2)).unwrap();
    let path = |epoch, kind| directory.path().join(name(epoch, kind));
    for file in ["chk-2.manifest", "chk-2.data", "sinks-2.data"] {
        let path = directory.path().join(file);
        let whole = fs::read(&path).unwrap();
        for place in (0..whole.len()).step_by(11) {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let latest = store.latest().unwrap().unwrap();
            assert_eq!(latest.epoch, 1, "{file} at {place}");
        }
        for length in (0..whole.len()).step_by(13) {
            fs::write(&path, &whole[..length]).unwrap();
            let latest = store.latest().unwrap().unwrap();
            assert_eq!(latest.epoch, 1, "{file} cut to {length}");
        }
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(store.latest().unwrap().unwrap().epoch, 2);
    fs::remove_file(path(1, DATA)).unwrap();
    fs::remove_file(path(2, DATA)).unwrap();
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
    let manifest = manifest::sign("{\"format\":99,\"engine\":\"7.0.0\"}");
    fs::write(directory.path().join(name(1, MANIFEST)), manifest).unwrap();
    let error = store.latest().unwrap_err().to_string();
    assert!(
        error.contains("format 99, written by Ebbflow 7.0.0"),
        "{error}"
    );
}

#[test]
fn a_damaged_checkpoint_is_replaced_by_the_next_of_its_number() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 2).unwrap();
    store.save(&checkpoint(1)).unwrap();
    store.save(&checkpoint(2)).unwrap();
    drop(store);
    fs::write(directory.path().join("chk-2.manifest"), "x").unwrap();
    let store = FileStore::open(directory.path(), 2).unwrap();
    assert_eq!(store.latest().unwrap().unwrap().epoch, 1);
    store.save(&checkpoint(2)).unwrap();
    let latest = store.latest().unwrap().unwrap();
    assert_eq!(text(&latest), text(&checkpoint(2)));
}

/// Hundreds of checkpoints of changes: every one restores, and neither files nor bytes pile up.
#[test]
fn changes_are_merged_and_files_nobody_needs_are_removed() {
    for background in [false, true] {
        let directory = TempDir::new().unwrap();
        let mut store = FileStore::open(directory.path(), 2).unwrap();
        store.background = background;
        let mut model = Model::new(7, 400);
        for epoch in 1..=120 {
            let base = (epoch > 1).then(|| epoch - 1);
            store.save(&model.next(epoch, base, 2)).unwrap();
            if epoch % 17 == 0 {
                drop(store);
                store = FileStore::open(directory.path(), 2).unwrap();
                store.background = background;
                let latest = store.latest().unwrap().unwrap();
                assert_eq!(
                    (latest.epoch, model.read(&latest)),
                    (epoch, model.rows(epoch))
                );
            }
            let data = names(&directory).iter().filter(|n| is_data_file(n)).count();
            assert!(background || data < 16, "{:?}", names(&directory));
        }
        let latest = store.latest().unwrap().unwrap();
        assert_eq!(model.read(&latest), model.rows(120));
        drop(store);
        FileStore::open(directory.path(), 2)
            .unwrap()
            .clear()
            .unwrap();
        assert_eq!(names(&directory), ["lock"]);
    }
}

#[test]
fn only_what_has_changed_is_written() {
    let directory = TempDir::new().unwrap();
    let mut store = FileStore::open(directory.path(), 1).unwrap();
    store.background = false;
    let mut model = Model::new(3, 20_000);
    store.save(&model.next(1, None, 1)).unwrap();
    let size = |name: &str| fs::metadata(directory.path().join(name)).unwrap().len();
    let whole = size("chk-1.data");
    store.save(&model.next(2, Some(1), 1)).unwrap();
    assert!(
        size("chk-2.data") < whole / 2,
        "{} of {whole}",
        size("chk-2.data")
    );
    assert!(directory.path().join("chk-1.data").exists());
    assert!(!directory.path().join("chk-1.manifest").exists());
}

#[test]
fn a_changed_signature_and_a_subtask_that_copies_all_hide_what_is_older() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 1).unwrap();
    let mut model = Model::new(5, 300);
    store.save(&model.next(1, None, 4)).unwrap();
    // One subtask says all, the others what has changed.
    let mixed = model.next_mixed(2, 1, 4);
    store.save(&mixed).unwrap();
    let latest = store.latest().unwrap().unwrap();
    assert_eq!(model.read(&latest), model.rows(2));
    let mut other = model.next(3, Some(2), 4);
    let changed: Vec<_> = model.changed(2, 3);
    other.vertices[0].signature = "another".into();
    store.save(&other).unwrap();
    let latest = store.latest().unwrap().unwrap();
    assert_eq!(model.read(&latest), changed);
}

#[test]
fn changes_of_another_checkpoint_are_refused() {
    let directory = TempDir::new().unwrap();
    let store = FileStore::open(directory.path(), 1).unwrap();
    let mut model = Model::new(5, 30);
    store.save(&model.next(1, None, 1)).unwrap();
    model.next(2, Some(1), 1);
    assert!(store.save(&model.next(3, Some(2), 1)).is_err());
    assert_eq!(store.latest().unwrap().unwrap().epoch, 1);
}
