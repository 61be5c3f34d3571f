//! The name of the job that a place of checkpoints belongs to: random, made by the first process, and
//! found again by the others. It is in the names of what sinks write, so that what a process has left
//! that was killed before its first checkpoint is known to be ours.

use super::files::{Existing, Files, Published};
use crate::error::{Error, Result};

/// The file that holds the name.
pub(super) const FILE: &str = "identity";

/// Characters of a name.
const LENGTH: usize = 16;

/// The name, which is made if there is none.
pub(super) fn of(files: &dyn Files) -> Result<String> {
    let is_there = files.list()?.iter().any(|name| name == FILE);
    if is_there && let Some(name) = read(files)? {
        return Ok(name);
    }
    let random =
        getrandom::u64().map_err(|e| Error::checkpoint(format!("no random numbers: {e}")))?;
    let name = format!("{random:016x}");
    let existing = match is_there {
        // It is no name: it says nothing of what was written.
        true => Existing::Replace,
        false => Existing::Refuse,
    };
    match files.publish(FILE, name.as_bytes(), existing)? {
        Published::Done => Ok(name),
        Published::Taken => read(files)?.ok_or_else(|| {
            let text = format!("the job's name in {} cannot be read", files.place());
            Error::checkpoint(text)
        }),
    }
}

fn read(files: &dyn Files) -> Result<Option<String>> {
    let name = String::from_utf8(files.read(FILE)?).ok();
    let is_name =
        |name: &String| name.len() == LENGTH && name.bytes().all(|b| b.is_ascii_hexdigit());
    Ok(name.filter(is_name))
}
