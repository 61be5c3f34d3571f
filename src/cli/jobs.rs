//! `ebbflow jobs --on URL` and `ebbflow stop JOB --on URL`: the jobs of a Flink cluster.

use std::path::Path;

use super::Common;
use super::remote::Address;
use super::shell::show_listing;
use crate::error::Result;
use crate::gateway::jobs::{self, Stop};
use crate::session::Listing;

/// Nobody interrupts these statements but by ending the program.
const NEVER: fn() -> bool = || false;

/// Prints the jobs that the cluster remembers.
pub(super) fn list(gateway: &Address, common: &Common) -> Result<bool> {
    let (_, session) = gateway.open(&common.all_settings()?)?;
    let mut listing = Listing::new(&["job id", "job name", "status", "start time"]);
    for job in jobs::list(&session, &NEVER)? {
        listing.push([job.id, job.name, job.status, job.started].map(Some));
    }
    show_listing(&listing, 0)?;
    Ok(true)
}

/// Stops a job, with a savepoint if a directory for it is given.
#[allow(clippy::print_stdout)] // the command's output
pub(super) fn stop(
    gateway: &Address,
    id: &Path,
    savepoint: Option<&str>,
    drain: bool,
    common: &Common,
) -> Result<bool> {
    let id = id.to_string_lossy();
    let mut settings = common.all_settings()?;
    if let Some(directory) = savepoint {
        let key = "execution.checkpointing.savepoint-dir";
        settings.push((key.into(), directory.into()));
    }
    let how = match (savepoint, drain) {
        (_, true) => Stop::Drain,
        (Some(_), false) => Stop::Savepoint,
        (None, false) => Stop::Cancel,
    };
    let (_, session) = gateway.open(&settings)?;
    match jobs::stop(&session, &id, how, &NEVER)? {
        Some(path) => println!("job {id} has stopped with the savepoint {path}"),
        None => println!("job {id} is cancelled"),
    }
    Ok(true)
}
