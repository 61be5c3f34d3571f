//! Makes few large files of the many small ones of a checkpoint.
//!
//! Only parts of a durable checkpoint are touched, and none of them is visible before. What is done
//! with the parts depends on nothing but the checkpoint, so that it can be repeated after a crash.

use std::fs::File;
use std::path::Path;

use super::listing::failed;
use super::part::{PartName, SUFFIX, sync_folder};
use crate::error::{Error, Result};
use crate::formats::EncodingFormat;
use crate::types::Schema;

/// A closed part.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct Closed {
    pub(super) name: PartName,
    /// Bytes.
    pub(super) length: u64,
}

/// Groups parts, in order, so that each group has about `target` bytes.
pub(super) fn pack(parts: Vec<Closed>, target: u64) -> Vec<Vec<Closed>> {
    let mut groups: Vec<Vec<Closed>> = Vec::new();
    let mut room = 0;
    for part in parts {
        match groups.last_mut() {
            Some(group) if part.length <= room => {
                room -= part.length;
                group.push(part);
            }
            _ => {
                room = target.saturating_sub(part.length);
                groups.push(vec![part]);
            }
        }
    }
    groups
}

/// The names of the file that takes the place of parts: made of the first one's.
fn merged_name(first: &PartName) -> PartName {
    let name = first.visible.file_name().unwrap_or_default();
    let name = format!("compacted-{}", name.to_string_lossy());
    PartName {
        temporary: first.visible.with_file_name(format!(".{name}{SUFFIX}")),
        visible: first.visible.with_file_name(name),
    }
}

/// Makes the rows of `parts` visible as one file. Idempotent.
pub(super) fn publish_merged(
    parts: &[Closed],
    format: &dyn EncodingFormat,
    schema: &Schema,
) -> Result<()> {
    let [first, others @ ..] = parts else {
        return Ok(());
    };
    if others.is_empty() {
        return first.name.publish();
    }
    let merged = merged_name(&first.name);
    if !merged.visible.exists() {
        let missing = parts.iter().find(|p| !p.name.temporary.exists());
        if let Some(part) = missing {
            return Err(Error::connector(format!(
                "cannot tell whether {} was written: neither it nor {} exists",
                merged.visible.display(),
                part.name.temporary.display()
            )));
        }
        let from: Vec<&Path> = parts.iter().map(|p| p.name.temporary.as_path()).collect();
        merge(&from, format, schema, &merged.temporary)?;
        sync_folder(&merged.temporary)?;
        merged.publish()?;
    }
    for part in parts {
        remove(&part.name.temporary)?;
    }
    Ok(())
}

fn merge(from: &[&Path], format: &dyn EncodingFormat, schema: &Schema, into: &Path) -> Result<()> {
    let open = |path: &&Path| File::open(path).map_err(|e| failed(path, &e));
    let files = from.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut target = File::create(into).map_err(|e| failed(into, &e))?;
    if let Some(bulk) = format.bulk() {
        let copy = target.try_clone().map_err(|e| failed(into, &e))?;
        let merged = bulk.merge(files, schema, copy);
        merged.map_err(|e| e.context(format!("file {}", into.display())))?;
    } else {
        for (mut file, path) in files.into_iter().zip(from) {
            let copied = std::io::copy(&mut file, &mut target);
            copied.map_err(|e| failed(into, &e).context(format!("copying {}", path.display())))?;
        }
    }
    target.sync_all().map_err(|e| failed(into, &e))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(failed(path, &e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn packs_in_order_up_to_the_size() {
        let parts = |lengths: &[u64]| -> Vec<Closed> {
            let part = |length: &u64| Closed {
                name: PartName {
                    temporary: PathBuf::new(),
                    visible: PathBuf::new(),
                },
                length: *length,
            };
            lengths.iter().map(part).collect()
        };
        let packed = |lengths: &[u64]| -> Vec<Vec<u64>> {
            let lengths_of = |group: &Vec<Closed>| group.iter().map(|p| p.length).collect();
            pack(parts(lengths), 10).iter().map(lengths_of).collect()
        };
        assert_eq!(packed(&[]), Vec::<Vec<u64>>::new());
        assert_eq!(
            packed(&[4, 6, 1, 30, 2]),
            [vec![4, 6], vec![1], vec![30], vec![2]]
        );
    }
}
