//! Any manifest with a right checksum beside any data file: a checkpoint or an error.

#![no_main]

use ebbflow::checkpoint::{CheckpointStore, FileStore};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (String, Vec<u8>)| {
    let (json, data) = input;
    let json = json.replace('\n', " ");
    let directory = tempfile::TempDir::new().expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join(name), bytes).expect("room on the disk");
    };
    let crc = crc32fast::hash(json.as_bytes());
    write("chk-1.manifest", format!("{json}\ncrc32 {crc:08x}\n").as_bytes());
    write("chk-1.data", &data);
    if let Ok(store) = FileStore::open(directory.path(), 1) {
        let _ = store.latest();
    }
});
