//! `ebbflow test`: runs test files in all modes and says what differs.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::testing::diff::Colours;
use crate::testing::slt::{self, SltFile};
use crate::testing::suite::{Case, Mode, cases};

/// A test file.
enum Test {
    Slt(String, SltFile),
    Transcript(Case),
}

impl Test {
    fn name(&self) -> &str {
        match self {
            Self::Slt(name, _) => name,
            Self::Transcript(case) => &case.name,
        }
    }

    fn runs_in(&self, mode: Mode) -> bool {
        match self {
            Self::Slt(_, file) => file.runs_in(mode),
            Self::Transcript(case) => case.runs_in(mode),
        }
    }

    /// What differs, for a person; empty if nothing.
    fn run(&self, mode: Mode, colours: Colours) -> Result<String> {
        let failures: Vec<String> = match self {
            Self::Slt(_, file) => file.run(mode)?.iter().map(|f| f.render(colours)).collect(),
            Self::Transcript(case) => case
                .run(mode)?
                .failed
                .iter()
                .map(|(i, statement, why)| format!("statement {i}: {statement}\n{why}\n"))
                .collect(),
        };
        Ok(failures.join("\n"))
    }
}

/// Runs the tests at `paths`; says whether all have passed.
///
/// # Errors
/// When there are none, or a file cannot be read.
#[allow(clippy::print_stdout)] // the command's output
pub(super) fn test(paths: &[PathBuf], quiet: bool) -> Result<bool> {
    let mut tests = Vec::new();
    for path in paths {
        tests.extend(find(path)?);
    }
    if tests.is_empty() {
        return Err(Error::options("there are no tests at the given paths")
            .hint("tests are .slt files, and .sql files with a .out beside them"));
    }
    let colours = if std::io::stdout().is_terminal() {
        Colours::On
    } else {
        Colours::Off
    };
    let (mut passed, mut failed) = (0, 0);
    for test in &tests {
        for mode in Mode::ALL.into_iter().filter(|mode| test.runs_in(*mode)) {
            let differs = test
                .run(mode, colours)
                .unwrap_or_else(|e| e.render("", None));
            if differs.is_empty() {
                passed += 1;
                if !quiet {
                    println!("ok     {} [{}]", test.name(), mode.name());
                }
            } else {
                failed += 1;
                println!(
                    "FAILED {} [{}]\n{}",
                    test.name(),
                    mode.name(),
                    differs.trim_end()
                );
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn find(path: &Path) -> Result<Vec<Test>> {
    let slt = |file: SltFile, path: &Path| Test::Slt(path.display().to_string(), file);
    if path.is_dir() {
        let mut tests: Vec<Test> = cases(path)?.into_iter().map(Test::Transcript).collect();
        for file in slt::files(path)? {
            let path = file.path().to_path_buf();
            tests.push(slt(file, &path));
        }
        return Ok(tests);
    }
    if path.extension().is_some_and(|e| e == "slt") {
        return Ok(vec![slt(SltFile::read(path)?, path)]);
    }
    if path.extension().is_some_and(|e| e == "sql") && path.with_extension("out").exists() {
        return Ok(vec![Test::Transcript(Case {
            name: path.display().to_string(),
            script: path.to_path_buf(),
            excused: Default::default(),
        })]);
    }
    Err(Error::options(format!("'{}' is no test", path.display()))
        .hint("a test is a .slt file, a .sql file with a .out beside it, or a folder of these"))
}
