//! Checkpoints in an object store: in one in memory and one of local files always, in a server that
//! speaks S3 where `EBBFLOW_TEST_S3_ENDPOINT` names one (with the bucket `ebbflow-test`).

use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};

use super::super::files::Files;
use super::model::{Model, checkpoint, text};
use super::*;

/// A prefix of its own in some object store.
type Opened = Box<dyn Fn() -> Bucket>;

fn options(endpoint: &str) -> S3Options {
    S3Options {
        endpoint: Some(endpoint.to_string()),
        access_key: Some("AKIATEST".into()),
        secret_key: Some("a-very-secret-key".into()),
        path_style: true,
        region: Some("us-east-1".into()),
    }
}

/// Runs `test` in every object store there is.
fn everywhere(name: &str, test: impl Fn(&Opened)) {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let open = move || Bucket::of(Arc::clone(&memory), "a/b", "memory:///a/b").unwrap();
    let open: Opened = Box::new(open);
    test(&open);
    let directory = TempDir::new().unwrap();
    let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    let local: Arc<dyn ObjectStore> = Arc::new(local);
    let open: Opened = Box::new(move || Bucket::of(Arc::clone(&local), "a", "local").unwrap());
    test(&open);
    let Ok(endpoint) = std::env::var("EBBFLOW_TEST_S3_ENDPOINT") else {
        println!("skipped for S3: EBBFLOW_TEST_S3_ENDPOINT names no server");
        return;
    };
    let url = format!("s3://ebbflow-test/{name}-{}", std::process::id());
    let open: Opened = Box::new(move || Bucket::s3(&url, &options(&endpoint)).unwrap());
    test(&open);
}

#[test]
fn checkpoints_come_back_and_files_that_nobody_needs_go() {
    everywhere("come-back", |open| {
        let bucket = open();
        let store = FileStore::on_bucket(bucket.clone(), 2).unwrap();
        assert!(store.latest().unwrap().is_none());
        store.save(&checkpoint(1)).unwrap();
        store.save(&checkpoint(2)).unwrap();
        store.mark_committed(2).unwrap();
        store.mark_committed(2).unwrap();
        drop(store);
        let store = FileStore::on_bucket(open(), 2).unwrap();
        let latest = store.latest().unwrap().unwrap();
        assert_eq!(text(&latest), text(&checkpoint(2)));
        assert!(latest.committed);
        store.clear().unwrap();
        assert_eq!(bucket.list().unwrap(), Vec::<String>::new());
        let mut model = Model::new(3, 200);
        for epoch in 1..=20 {
            let base = (epoch > 1).then(|| epoch - 1);
            store.save(&model.next(epoch, base, 2)).unwrap();
        }
        drop(store);
        let store = FileStore::on_bucket(open(), 2).unwrap();
        let latest = store.latest().unwrap().unwrap();
        assert_eq!(model.read(&latest), model.rows(20));
        // Twenty manifests and as many files of rows, were none removed.
        assert!(bucket.list().unwrap().len() < 30, "{:?}", bucket.list());
        store.clear().unwrap();
    });
}

#[test]
fn of_two_processes_the_second_is_refused() {
    everywhere("two", |open| {
        let first = FileStore::on_bucket(open(), 1).unwrap();
        let second = FileStore::on_bucket(open(), 1).unwrap();
        let mut model = Model::new(3, 20);
        first.save(&model.next(1, None, 1)).unwrap();
        let theirs = Model::new(9, 20).next(1, None, 1);
        let error = second.save(&theirs).unwrap_err();
        assert!(error.to_string().contains("another job"), "{error}");
        let error = second.save(&theirs).unwrap_err();
        assert!(error.to_string().contains("another job"), "{error}");
        drop(second);
        let store = FileStore::on_bucket(open(), 1).unwrap();
        let latest = store.latest().unwrap().unwrap();
        assert_eq!((latest.epoch, model.read(&latest)), (1, model.rows(1)));
        store.clear().unwrap();
    });
}

#[test]
fn a_large_file_is_written_in_parts() {
    everywhere("parts", |open| {
        let bucket = open();
        let bytes: Vec<u8> = (0..21 << 20_u32).map(|i: u32| i.to_le_bytes()[1]).collect();
        let mut file = bucket.create("chk-1.data").unwrap();
        for part in bytes.chunks(3 << 20) {
            file.write(part).unwrap();
        }
        file.finish().unwrap();
        assert!(bucket.read("chk-1.data").unwrap() == bytes);
        let range = bucket.read_range("chk-1.data", 9 << 20, 1000).unwrap();
        assert_eq!(range, bytes[9 << 20..][..1000]);
        assert!(bucket.read_range("chk-1.data", u64::MAX, 2).is_err());
        assert!(bucket.read("chk-2.data").is_err());
        bucket.remove("chk-1.data").unwrap();
        bucket.remove("chk-1.data").unwrap();
        // A file that is given up leaves nothing.
        let mut file = bucket.create("chk-2.data").unwrap();
        file.write(&bytes[..9 << 20]).unwrap();
        drop(file);
        assert_eq!(bucket.list().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_damaged_checkpoint_is_passed_over_and_replaced() {
    let memory = Arc::new(InMemory::new());
    let open = || Bucket::of(Arc::<InMemory>::clone(&memory), "x", "memory:///x").unwrap();
    let store = FileStore::on_bucket(open(), 2).unwrap();
    store.save(&checkpoint(1)).unwrap();
    store.save(&checkpoint(2)).unwrap();
    drop(store);
    let path = object_store::path::Path::from("x/chk-2.manifest");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(memory.put(&path, b"damaged".as_slice().into()))
        .unwrap();
    let store = FileStore::on_bucket(open(), 2).unwrap();
    assert_eq!(store.latest().unwrap().unwrap().epoch, 1);
    store.save(&checkpoint(2)).unwrap();
    assert_eq!(
        text(&store.latest().unwrap().unwrap()),
        text(&checkpoint(2))
    );
}

#[test]
fn places_and_credentials() {
    for url in ["s3://", "s3:///path", "bucket/path", "gs://bucket/path"] {
        let error = Bucket::s3(url, &S3Options::default()).unwrap_err();
        let text = error.render("", None);
        assert!(text.contains("s3://bucket/path"), "{text}");
    }
    // Nobody listens there.
    let options = options("http://127.0.0.1:1");
    let bucket = Bucket::s3("s3://bucket/path/", &options).unwrap();
    assert_eq!(bucket.place(), "s3://bucket/path");
    let printed = format!("{options:?} {bucket:?}");
    assert!(
        !printed.contains("secret-key") && !printed.contains("AKIA"),
        "{printed}"
    );
}
