//! A store on a disk that fails, or whose process dies, at every single call.

use super::super::sim::{Fault, SimDisk};
use super::model::Model;
use super::*;

const EPOCHS: u64 = 7;

fn open(disk: &SimDisk) -> Result<FileStore> {
    FileStore::on_disk(disk.clone(), 2)
}

/// How far a job has come.
#[derive(Debug, Default)]
struct Progress {
    /// The last checkpoint that was begun, saved, and marked.
    begun: u64,
    saved: u64,
    marked: u64,
    failed: Vec<String>,
}

/// A job that takes checkpoints of changes; one that fails is passed over.
fn run(disk: &SimDisk) -> (Model, Progress) {
    let mut model = Model::new(11, 40);
    let mut progress = Progress::default();
    let store = match open(disk) {
        Ok(store) => store,
        Err(e) => {
            progress.failed.push(e.to_string());
            if disk.is_dead() {
                return (model, progress);
            }
            open(disk).unwrap()
        }
    };
    for epoch in 1..=EPOCHS {
        progress.begun = epoch;
        let base = (progress.saved > 0).then_some(progress.saved);
        let saved = store.save(&model.next(epoch, base, 2));
        match saved.and_then(|()| {
            progress.saved = epoch;
            store.mark_committed(epoch)
        }) {
            Ok(()) => progress.marked = epoch,
            Err(e) => progress.failed.push(e.to_string()),
        }
        if disk.is_dead() {
            break;
        }
    }
    (model, progress)
}

/// Checks what the next process finds.
fn check(disk: &SimDisk, model: &Model, progress: &Progress, what: &str) {
    let store = open(disk).unwrap();
    let latest = store.latest().unwrap_or_else(|e| panic!("{what}: {e}"));
    let Some(latest) = latest else {
        assert_eq!(progress.saved, 0, "{what}: a checkpoint is lost");
        return;
    };
    let epoch = latest.epoch;
    assert!(
        (progress.saved..=progress.begun).contains(&epoch),
        "{what}: {epoch} of {progress:?}"
    );
    assert_eq!(model.read(&latest), model.rows(epoch), "{what}: {epoch}");
    if latest.committed {
        assert!(
            progress.saved >= epoch,
            "{what}: committed before it was saved"
        );
    } else {
        assert!(
            progress.marked < epoch,
            "{what}: the mark of {epoch} is lost"
        );
    }
    // It goes on from there.
    let mut model = Model::new(1, 10);
    store.save(&model.next(epoch + 1, None, 1)).unwrap();
    let next = store.latest().unwrap().unwrap();
    assert_eq!(model.read(&next), model.rows(epoch + 1), "{what}");
}

#[test]
fn a_crash_at_any_point_loses_no_checkpoint() {
    let whole = SimDisk::default();
    let (_, progress) = run(&whole);
    assert_eq!((progress.saved, progress.marked), (EPOCHS, EPOCHS));
    let points = whole.points();
    for kind in [
        "create merged",
        "rename",
        "sync names",
        "remove merged",
        "create sinks",
        "remove sinks",
        "sync chk",
    ] {
        let has = points.iter().any(|p| p.starts_with(kind));
        assert!(has || kind == "remove merged", "no point '{kind}'");
    }
    for (number, point) in points.iter().enumerate() {
        let disk = SimDisk::default();
        disk.fail_at(number, Fault::Crash);
        let (model, progress) = run(&disk);
        assert!(disk.is_dead());
        for seed in 0..16 {
            let what = format!("dead before point {number} ({point}), seed {seed}");
            check(&disk.after_crash(seed), &model, &progress, &what);
        }
    }
}

#[test]
fn a_fault_at_any_point_costs_at_most_one_checkpoint() {
    let whole = SimDisk::default();
    run(&whole);
    for fault in [Fault::Fails, Fault::Full, Fault::FailsLate] {
        for (number, point) in whole.points().iter().enumerate() {
            let disk = SimDisk::default();
            disk.fail_at(number, fault);
            let (model, progress) = run(&disk);
            let what = format!("{fault:?} at point {number} ({point})");
            assert!(progress.failed.len() <= 1, "{what}: {:?}", progress.failed);
            assert!(progress.saved + 1 >= EPOCHS, "{what}: {progress:?}");
            for error in &progress.failed {
                assert!(error.contains("/sim"), "{what}: no file named: {error}");
            }
            check(&disk.after_crash(number as u64), &model, &progress, &what);
            check(&disk, &model, &progress, &what);
        }
    }
}

#[test]
fn a_full_disk_says_what_to_do() {
    let disk = SimDisk::default();
    let store = open(&disk).unwrap();
    let mut model = Model::new(1, 10);
    disk.fail_at(1, Fault::Full);
    let error = store.save(&model.next(1, None, 1)).unwrap_err();
    let text = error.render("", None);
    assert!(text.contains("num-retained"), "{text}");
    assert!(
        disk.points()
            .iter()
            .any(|p| p.starts_with("remove chk-1.data"))
    );
}

#[test]
fn a_half_written_checkpoint_is_passed_over() {
    for kind in [MANIFEST, DATA] {
        let disk = SimDisk::default();
        let store = open(&disk).unwrap();
        let mut model = Model::new(1, 10);
        store.save(&model.next(1, None, 1)).unwrap();
        store.save(&model.next(2, None, 1)).unwrap();
        drop(store);
        disk.damage(&name(2, kind), |bytes| bytes.truncate(bytes.len() / 2));
        let latest = open(&disk).unwrap().latest().unwrap().unwrap();
        assert_eq!(model.read(&latest), model.rows(1));
    }
}
