//! Any manifest with a right checksum beside any data file: a checkpoint or an error. The first line of
//! the input is the manifest, the rest is the data file.

#![no_main]

use ebbflow::checkpoint::{CheckpointStore, FileStore};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|b| *b == b'\n');
    let (json, data) = input.split_at(end.unwrap_or(input.len()));
    let data = data.get(1..).unwrap_or_default();
    let directory = tempfile::TempDir::new().expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join(name), bytes).expect("room on the disk");
    };
    let crc = crc32fast::hash(json);
    let sum = format!("\ncrc32 {crc:08x}\n");
    write("chk-1.manifest", &[json, sum.as_bytes()].concat());
    write("chk-1.data", data);
    if let Ok(store) = FileStore::open(directory.path(), 1) {
        let _ = store.latest();
    }
});
