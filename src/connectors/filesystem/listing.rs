//! Which files a table has, and partitions in their paths: `dt=2024-01-01/hr=3`.

use std::fmt::Write as _;
use std::fs::{DirEntry, Metadata};
use std::path::{Path, PathBuf};

use super::Layout;
use crate::error::{Error, Result};

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataFile {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    /// ms since the epoch.
    pub(super) modified: i64,
    /// Whether somebody may be writing to it: its last line counts only when it has an end.
    pub(super) may_grow: bool,
    /// The part of it that is read, if it is not the whole.
    pub(super) part: Option<usize>,
}

/// Parts the path of a file from the number of a part of it, in the identity of a split.
const PART: &str = "#row-group=";

impl DataFile {
    /// Looks at a file.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let metadata = std::fs::metadata(&path).map_err(|e| failed(&path, &e))?;
        Ok(Self::new(path, &metadata))
    }

    fn new(path: PathBuf, metadata: &Metadata) -> Self {
        let since_epoch = metadata
            .modified()
            .ok()
            .and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        Self {
            size: metadata.len(),
            modified: since_epoch.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)),
            path,
            may_grow: false,
            part: None,
        }
    }

    /// Looks at the file of a split.
    pub(super) fn of_split(split: &str) -> Result<Self> {
        let parts = split.rsplit_once(PART);
        let part = parts.and_then(|(path, part)| Some((path, part.parse().ok()?)));
        let (path, part) = part.map_or((split, None), |(path, part)| (path, Some(part)));
        let file = Self::open(PathBuf::from(path))?;
        Ok(Self { part, ..file })
    }

    /// The identity of the split: the path, and which part of the file.
    pub(super) fn split(&self) -> String {
        let path = self.path.to_string_lossy();
        match self.part {
            None => path.into_owned(),
            Some(part) => format!("{path}{PART}{part}"),
        }
    }
}

/// The error of an operation on a file.
pub(super) fn failed(path: &Path, error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::connector(format!(
            "File {} does not exist or the user running the job has insufficient permissions to access it.",
            path.display()
        ));
    }
    Error::connector(format!("{}: {error}", path.display()))
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('_')
}

impl Layout {
    /// The files of the table, by path.
    ///
    /// # Errors
    /// When a folder cannot be read; when the path of a table without partitions does not exist.
    pub(super) fn files(&self) -> Result<Vec<DataFile>> {
        let metadata = match std::fs::metadata(&self.root) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !self.partitions.is_empty() => {
                return Ok(Vec::new());
            }
            other => other.map_err(|e| failed(&self.root, &e))?,
        };
        let mut files = Vec::new();
        if metadata.is_dir() {
            self.add_folder(&self.root, self.partitions.len(), &mut files)?;
        } else if self.partitions.is_empty() {
            files.push(DataFile::new(self.root.clone(), &metadata));
        }
        Ok(files)
    }

    /// Adds the files of a folder, `levels` of partitions above the data.
    fn add_folder(&self, folder: &Path, levels: usize, files: &mut Vec<DataFile>) -> Result<()> {
        let entries = std::fs::read_dir(folder).map_err(|e| failed(folder, &e))?;
        let mut entries = entries
            .collect::<std::io::Result<Vec<DirEntry>>>()
            .map_err(|e| failed(folder, &e))?;
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if self.pattern.is_none() && is_hidden(&name) {
                continue;
            }
            let path = entry.path();
            // A file may vanish between the listing and the look at it: a part that is renamed.
            let metadata = match std::fs::metadata(&path) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                other => other.map_err(|e| failed(&path, &e))?,
            };
            if metadata.is_dir() {
                self.add_folder(&path, levels.saturating_sub(1), files)?;
            } else if levels == 0 && self.is_wanted(&path) {
                files.push(DataFile::new(path, &metadata));
            }
        }
        Ok(())
    }

    fn is_wanted(&self, path: &Path) -> bool {
        self.pattern
            .as_ref()
            .is_none_or(|p| p.is_match(&*path.to_string_lossy()).unwrap_or(false))
    }

    /// The texts of the partition columns that the path of a file tells, `None` for NULL.
    ///
    /// # Errors
    /// When a partition column is not in the path.
    pub(super) fn partition_values(&self, file: &Path) -> Result<Vec<Option<String>>> {
        let relative = file.strip_prefix(&self.root).unwrap_or(file);
        let parts: Vec<(String, String)> = relative
            .parent()
            .into_iter()
            .flat_map(Path::components)
            .filter_map(|c| {
                let name = c.as_os_str().to_str()?;
                let (key, value) = name.split_once('=')?;
                Some((unescape(key), unescape(value)))
            })
            .collect();
        self.partitions
            .iter()
            .map(|column| {
                let name = &self.physical.columns[*column].name;
                let value = parts.iter().rev().find(|(key, _)| key == name);
                let (_, value) = value.ok_or_else(|| {
                    Error::connector(format!(
                        "Cannot find the partition value from path for partition: {name} ({})",
                        file.display()
                    ))
                })?;
                Ok((*value != self.default_partition).then(|| value.clone()))
            })
            .collect()
    }

    /// The folder, below the root, of a partition with these values: NULL and the empty text are in
    /// the default partition.
    pub(super) fn partition_folder<'a>(&self, values: impl Iterator<Item = &'a str>) -> PathBuf {
        self.partitions
            .iter()
            .zip(values)
            .map(|(column, value)| {
                let name = &self.physical.columns[*column].name;
                let value = if value.is_empty() {
                    &self.default_partition
                } else {
                    value
                };
                format!("{}={}", escape(name), escape(value))
            })
            .collect()
    }
}

/// Writes characters that mean something in paths as `%2F`.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_special = c < ' '
            || matches!(
                c,
                '"' | '#'
                    | '%'
                    | '\''
                    | '*'
                    | '/'
                    | ':'
                    | '='
                    | '?'
                    | '\\'
                    | '\u{7f}'
                    | '{'
                    | '}'
                    | '['
                    | ']'
                    | '^'
            );
        if is_special {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{:02X}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let code = rest
            .get(at + 1..at + 3)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(code) = code {
            out.push(char::from(code));
            rest = &rest[at + 3..];
        } else {
            out.push('%');
            rest = &rest[at + 1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_their_way_through_a_path() {
        assert_eq!(escape("a/b=c d"), "a%2Fb%3Dc d");
        for text in ["a/b=c d", "100%", "%zz", "ä:b", "", "%2"] {
            assert_eq!(unescape(&escape(text)), text);
        }
    }
}
