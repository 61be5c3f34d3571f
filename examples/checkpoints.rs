//! A script with checkpoints: stopped in the middle and started again, it goes on where it was, and
//! every row is in the result once.
//!
//!     cargo run --example checkpoints

#![allow(clippy::print_stdout)] // what an example shows

use std::path::Path;
use std::time::Duration;

use ebbflow::error::Result;
use ebbflow::session::{Session, StatementResult};

const ROWS: usize = 1000;

fn main() -> Result<()> {
    let home = std::env::temp_dir().join(format!("ebbflow-checkpoints-{}", std::process::id()));
    let script = script(&home);

    // the first run is stopped behind a checkpoint, with rows still to come
    let job = run(&script)?;
    while read(&home.join("out")).is_empty() {
        std::thread::sleep(Duration::from_millis(20));
        job.handle().checkpoint()?;
    }
    job.handle().cancel();
    job.handle().wait()?;
    let before = read(&home.join("out")).len();
    println!("stopped with {before} of {ROWS} rows written");
    assert!(before < ROWS);

    // the same script in a new session takes up the checkpoint
    run(&script)?.wait()?;
    let mut ids = read(&home.join("out"));
    ids.sort_unstable();
    println!("in the end {} rows", ids.len());
    assert_eq!(ids, (1..=ROWS).collect::<Vec<_>>());
    // nothing depends on whether the folder can be removed
    let _ = std::fs::remove_dir_all(&home);
    Ok(())
}

fn script(home: &Path) -> String {
    let home = home.display();
    format!(
        "SET 'execution.checkpointing.interval' = '1 min';
         SET 'execution.checkpointing.dir' = '{home}/checkpoints';
         CREATE TABLE numbers (id INT) WITH (
           'connector' = 'datagen', 'rows-per-second' = '200',
           'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{ROWS}'
         );
         CREATE TABLE files (id INT) WITH (
           'connector' = 'filesystem', 'path' = 'file://{home}/out', 'format' = 'csv',
           'sink.rolling-policy.rollover-interval' = '50 ms',
           'sink.rolling-policy.check-interval' = '10 ms'
         );
         INSERT INTO files SELECT id FROM numbers"
    )
}

/// Starts the script; gives the job of its INSERT.
fn run(script: &str) -> Result<ebbflow::session::InsertJob> {
    let mut session = Session::new();
    let mut job = None;
    for statement in script.split(';') {
        if let StatementResult::Job(started) = session.execute(statement)? {
            job = Some(started);
        }
    }
    Ok(job.expect("the script ends with an INSERT"))
}

/// The numbers in the files that are visible.
fn read(folder: &Path) -> Vec<usize> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with(['.', '_']))
        .filter_map(|name| std::fs::read_to_string(folder.join(name)).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|l| l.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}
