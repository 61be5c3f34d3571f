//! Runs the binary on a script in a folder of its own, kills it, and reads what can be seen.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;

/// How often a running process is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// No run takes so long, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A number from the environment.
pub fn setting(key: &str, default: u64) -> u64 {
    let text = std::env::var(key).ok();
    text.map_or(default, |t| t.parse().expect("a number"))
}

/// Random numbers that a seed determines.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

/// Lines and how often each is there.
pub type Bag = BTreeMap<String, i64>;

/// A folder with a script, its inputs, its outputs and its checkpoints.
pub struct Workplace {
    folder: TempDir,
}

/// How the watch over a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Watched {
    /// It came to its end and said that all is well.
    Finished,
    /// The moment to kill it has come.
    Due,
}

impl Workplace {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("checkpoints")).expect("a folder");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and its folder if need be.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        fs::write(path, text).expect("writes");
    }

    /// Starts the script `script.sql`.
    pub fn start(&self) -> Run {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_ebbflow"))
            .arg("run")
            .arg(self.path("script.sql"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        Run {
            child,
            log: self.path("log"),
        }
    }

    /// Runs the script to its end.
    pub fn finish(&self) {
        self.start().watch(|| false);
    }

    /// Changes whenever a checkpoint makes progress.
    pub fn checkpoints(&self) -> Vec<String> {
        let mut names = self.checkpoint_files();
        names.retain(|n| n.contains("manifest") && !n.ends_with(".tmp"));
        names.sort();
        names
    }

    /// Files of the folder of checkpoints.
    pub fn checkpoint_files(&self) -> Vec<String> {
        let mut names = Vec::new();
        list(&self.path("checkpoints"), "", &mut names);
        names
    }

    /// Files below `folder` that a reader of the table sees, with their content.
    pub fn visible(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.path(folder);
        let mut names = Vec::new();
        list(&root, "", &mut names);
        let is_visible = |name: &String| {
            let mut parts = name.split('/');
            parts.all(|p| !p.starts_with('.') && !p.starts_with('_'))
        };
        let names = names.into_iter().filter(is_visible);
        names
            .filter_map(|name| Some((name.clone(), fs::read(root.join(name)).ok()?)))
            .collect()
    }

    /// Files below `folder` that a reader does not see.
    pub fn hidden(&self, folder: &str) -> Vec<String> {
        let mut names = Vec::new();
        list(&self.path(folder), "", &mut names);
        names.retain(|n| n.ends_with(".inprogress"));
        names.sort();
        names
    }

    /// Bytes of the files below `folder` that a reader does not see.
    pub fn hidden_bytes(&self, folder: &str) -> u64 {
        let root = self.path(folder);
        let hidden = self.hidden(folder).into_iter();
        let sizes = hidden.filter_map(|n| Some(fs::metadata(root.join(n)).ok()?.len()));
        sizes.sum()
    }

    /// The lines (of Parquet files: rows) of the visible files below `folder`, each with the number of
    /// times that it is there. Every file must be whole.
    pub fn lines(&self, folder: &str) -> Bag {
        let mut bag = Bag::new();
        for (name, bytes) in self.visible(folder) {
            if bytes.starts_with(b"PAR1") {
                for row in rows_of(bytes) {
                    *bag.entry(row).or_default() += 1;
                }
                continue;
            }
            let text = String::from_utf8(bytes).expect("text");
            assert!(
                text.is_empty() || text.ends_with('\n'),
                "{name} ends within a line"
            );
            for line in text.lines() {
                *bag.entry(line.to_string()).or_default() += 1;
            }
        }
        bag
    }

    /// What the processes have said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

/// The rows of a Parquet file, values parted by commas.
fn rows_of(file: Vec<u8>) -> Vec<String> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file));
    let reader = reader.and_then(|r| r.build()).expect("a Parquet file");
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.expect("rows");
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns = columns.map(|c| ArrayFormatter::try_new(c, &options).expect("a type"));
        let columns: Vec<_> = columns.collect();
        for row in 0..batch.num_rows() {
            let values: Vec<_> = columns.iter().map(|c| c.value(row).to_string()).collect();
            rows.push(values.join(","));
        }
    }
    rows
}

fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    // Files come and go while a process runs.
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            list(&entry.path(), &format!("{name}/"), names);
        } else {
            names.push(name);
        }
    }
}

/// A running process.
pub struct Run {
    child: Child,
    log: PathBuf,
}

impl Run {
    /// Waits until the process has ended well or `due` says so.
    pub fn watch(&mut self, mut due: impl FnMut() -> bool) -> Watched {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                assert!(status.success(), "{status}\n{log}");
                return Watched::Finished;
            }
            if due() {
                return Watched::Due;
            }
            assert!(start.elapsed() < PATIENCE, "the run does not end");
            thread::sleep(LOOK);
        }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
    }
}

/// What `bag` has more of than `of`.
pub fn surplus(bag: &Bag, of: &Bag) -> Vec<(String, i64)> {
    let more = |(line, n): (&String, &i64)| {
        let more = n - of.get(line).copied().unwrap_or(0);
        (more > 0).then(|| (line.clone(), more))
    };
    bag.iter().filter_map(more).collect()
}
