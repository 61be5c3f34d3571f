//! Finds the tests of a folder and runs them, each in several modes.
//!
//! A `.sql` with a `.out` beside it is a transcript test. What does not agree with Flink stands in
//! lists beside the tests: `open.txt` (not yet) and `differences.txt` (on purpose); a line is
//! `case #statement reason`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::compare::{Block, Comparison, difference, header, parse};
use super::diff::{Colours, unified};
use super::transcript;
use crate::error::{Error, Result};

/// A way to run a script that must not change its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Parallelism 1.
    Plain,
    /// Every batch has one row.
    BatchSize1,
    /// Three subtasks: only the final tables must agree.
    Parallelism3,
    /// Every job dies after some rows, and another, of 1 instead of 3 subtasks or the other way
    /// round, goes on from its checkpoint: only the final tables must agree.
    Restore,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [
        Self::Plain,
        Self::BatchSize1,
        Self::Parallelism3,
        Self::Restore,
    ];

    /// Name, as test names and `-- modes:` headers say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "p1",
            Self::BatchSize1 => "b1",
            Self::Parallelism3 => "p3",
            Self::Restore => "restore",
        }
    }

    /// The settings that make it for the test called `name`.
    #[must_use]
    pub fn settings(self, name: &str) -> Vec<(String, String)> {
        let set = |key: &str, value: &str| (key.to_string(), value.to_string());
        match self {
            Self::Plain => Vec::new(),
            Self::BatchSize1 => vec![set("execution.batch-size", "1")],
            Self::Parallelism3 => vec![set("parallelism.default", "3")],
            Self::Restore => vec![
                set("parallelism.default", "3"),
                set("testing.die-after-rows", &death(name).to_string()),
            ],
        }
    }
}

/// A transcript test.
#[derive(Debug, Clone)]
pub struct Case {
    /// Path below the folder, without extension: `changelog/topn-append-only`.
    pub name: String,
    /// The script.
    pub script: PathBuf,
    /// Statements (from 1) that need not agree, with the reason.
    pub excused: BTreeMap<usize, String>,
}

/// How a case ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Statements (from 1) that do not agree, with their first line and what differs.
    pub failed: Vec<(usize, String, String)>,
    /// Statements that are excused but agree.
    pub agreed: Vec<usize>,
}

/// The transcript tests below `folder`, by name.
///
/// # Errors
/// When a file cannot be read or a list is malformed.
pub fn cases(folder: &Path) -> Result<Vec<Case>> {
    let mut excused = BTreeMap::new();
    for list in ["open.txt", "differences.txt"] {
        read_list(&folder.join(list), &mut excused)?;
    }
    let pattern = format!("{}/**/*.sql", folder.display());
    let paths = glob::glob(&pattern).map_err(|e| Error::options(e.to_string()))?;
    let mut cases = Vec::new();
    for path in paths.filter_map(std::result::Result::ok) {
        if !path.with_extension("out").exists() {
            continue;
        }
        let name = path
            .strip_prefix(folder)
            .unwrap_or(&path)
            .with_extension("");
        let name = name.to_string_lossy().replace('\\', "/");
        let excused = excused.remove(&name).unwrap_or_default();
        cases.push(Case {
            name,
            script: path,
            excused,
        });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    match excused.keys().next() {
        Some(unknown) => Err(Error::options(format!(
            "the lists name a case '{unknown}' that is not there"
        ))),
        None => Ok(cases),
    }
}

type Excused = BTreeMap<String, BTreeMap<usize, String>>;

fn read_list(path: &Path, excused: &mut Excused) -> Result<()> {
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(());
    };
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = line.split_once(" #").and_then(|(case, rest)| {
            let (statement, reason) = rest.split_once(' ')?;
            Some((
                case.to_string(),
                statement.parse::<usize>().ok()?,
                reason.to_string(),
            ))
        });
        let Some((case, statement, reason)) = parsed else {
            return Err(Error::options(format!(
                "{}:{}: expected 'case #statement reason'",
                path.display(),
                number + 1
            )));
        };
        excused.entry(case).or_default().insert(statement, reason);
    }
    Ok(())
}

impl Case {
    /// Runs the case.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn run(&self, mode: Mode) -> Result<Outcome> {
        let read = |path: &Path| {
            fs::read_to_string(path)
                .map_err(|e| Error::connector(format!("{}: {e}", path.display())))
        };
        let script = read(&self.script)?;
        let want = parse(&read(&self.script.with_extension("out"))?);
        let folder = self.script.parent().unwrap_or(Path::new("."));
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        let text = script.replace("${CASE_DIR}", &folder.display().to_string());
        let settings = mode.settings(&self.name);
        let got = parse(&transcript::run(&text, &settings));
        let comparison = match mode {
            Mode::Parallelism3 | Mode::Restore => Comparison::Folded,
            _ => Comparison::of_script(&script),
        };
        Ok(self.judge(comparison, &want, &got))
    }

    /// Whether the case runs in `mode`: `-- modes: p1` at the top of a script keeps it to some.
    #[must_use]
    pub fn runs_in(&self, mode: Mode) -> bool {
        let script = fs::read_to_string(&self.script).unwrap_or_default();
        header(&script, "modes")
            .is_none_or(|modes| modes.split_whitespace().any(|m| m == mode.name()))
    }

    fn judge(&self, comparison: Comparison, want: &[Block], got: &[Block]) -> Outcome {
        let mut outcome = Outcome::default();
        for (i, want) in want.iter().enumerate() {
            let why = match got.get(i) {
                Some(got) => {
                    difference(comparison, want, got).map(|why| with_diff(&why, want, got))
                }
                None => Some("the script stopped before this statement".into()),
            };
            match (why, self.excused.contains_key(&(i + 1))) {
                (Some(why), false) => {
                    let first = want
                        .statement
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .to_string();
                    outcome.failed.push((i + 1, first, why));
                }
                (None, true) => outcome.agreed.push(i + 1),
                _ => {}
            }
        }
        outcome
    }
}

/// After how many rows the jobs of a test die: the same in every run.
fn death(name: &str) -> u32 {
    name.bytes().map(u32::from).sum::<u32>() % 8
}

/// `why`, and both results where they have several rows.
fn with_diff(why: &str, want: &Block, got: &Block) -> String {
    let (want, got) = (want.result(), got.result());
    if want.len() < 3 || got.len() < 2 {
        return why.into();
    }
    format!("{why}\n{}", unified(&want, &got, Colours::Off))
}
