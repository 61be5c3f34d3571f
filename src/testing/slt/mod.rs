//! sqllogictest files (`.slt`): statements, queries with their results, and scripts whose tables are
//! replaced.
//!
//! The syntax is that of sqllogictest, with these meanings:
//!
//! - `query <types> [rowsort]` compares the final table, one row a line, values parted by a space,
//!   NULL as `NULL` and the empty string as `(empty)`;
//! - `query <types> retract` (or `query retract`) compares the changes: `+I[a, 1]`;
//! - `include file.sql` runs a script, with the tables of `replace table` directives replaced (see
//!   [`replace`]);
//! - `onlyif` and `skipif` take names of modes; `# modes: p1 b1` at the top keeps a file to some;
//! - every INSERT ends before the next record; tables in memory are read as they are then.

mod replace;
mod runner;

use std::fs;
use std::path::{Path, PathBuf};

use super::diff::Colours;
use super::suite::Mode;
use crate::error::{Error, Result};

/// A test file.
#[derive(Debug, Clone)]
pub struct SltFile {
    path: PathBuf,
    text: String,
}

/// A record that did not give what the file says.
#[derive(Debug, Clone)]
pub struct Failure {
    /// File and line of the record.
    pub place: String,
    /// What it ran.
    pub sql: String,
    /// What was wrong.
    pub why: String,
    /// The rows that the file wants, and those that came, if that is what differs.
    pub rows: Option<(Vec<String>, Vec<String>)>,
}

impl Failure {
    /// The text for a person.
    #[must_use]
    pub fn render(&self, colours: Colours) -> String {
        let mut text = format!("{}: {}", self.place, self.why);
        for line in self.sql.lines() {
            text.push_str("\n    ");
            text.push_str(line);
        }
        text.push('\n');
        if let Some((want, got)) = &self.rows {
            text.push_str(&super::diff::unified(want, got, colours));
        }
        text
    }
}

impl SltFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .map_err(|e| Error::options(format!("cannot read '{}': {e}", path.display())))?;
        Ok(Self {
            path: path.to_path_buf(),
            text,
        })
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file runs in `mode`.
    #[must_use]
    pub fn runs_in(&self, mode: Mode) -> bool {
        let comments = self.text.lines().take_while(|line| line.starts_with('#'));
        let mut modes = comments.filter_map(|line| {
            let (key, value) = line.trim_start_matches('#').split_once(':')?;
            (key.trim() == "modes").then_some(value)
        });
        modes
            .next()
            .is_none_or(|names| names.split_whitespace().any(|name| name == mode.name()))
    }

    /// Runs the file; what differs comes back. After a difference the file goes on.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn run(&self, mode: Mode) -> Result<Vec<Failure>> {
        runner::run(&self.path, &self.text, mode)
    }
}

/// The `.slt` files below `folder`, by path. Files whose name begins with `_` are only included.
///
/// # Errors
/// When one cannot be read.
pub fn files(folder: &Path) -> Result<Vec<SltFile>> {
    let pattern = format!("{}/**/*.slt", folder.display());
    let found = glob::glob(&pattern).map_err(|e| Error::options(e.to_string()))?;
    let mut paths: Vec<PathBuf> = found.filter_map(std::result::Result::ok).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('_')
    });
    paths.sort();
    paths.iter().map(|path| SltFile::read(path)).collect()
}

#[cfg(test)]
mod tests;
