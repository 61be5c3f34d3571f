//! `ebbflow stop`: asks jobs of other processes to end with a last checkpoint, and waits for it.

use std::path::Path;
use std::time::Duration;

use crate::checkpoint::{ControlFile, FileStore, StopCommand};
use crate::error::{Error, Result};

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Stops the jobs whose checkpoints are in `directory` or in folders of it. Whether all have ended
/// with a checkpoint, or finished.
///
/// # Errors
/// When there is none that runs, or one cannot be asked.
#[allow(clippy::print_stdout)] // the command's output
pub(super) fn stop(directory: &Path, drain: bool, no_wait: bool) -> Result<bool> {
    let command = if drain {
        StopCommand::Drain
    } else {
        StopCommand::Suspend
    };
    let mut asked = Vec::new();
    for job in FileStore::directories(directory)? {
        if let Some(holder) = FileStore::holder(&job)? {
            ControlFile::of(&job).write(command)?;
            println!("{}: {holder} is asked to stop it", job.display());
            asked.push(job);
        }
    }
    if asked.is_empty() {
        let text = format!("no job runs with checkpoints in '{}'", directory.display());
        return Err(Error::checkpoint(text).hint("see 'execution.checkpointing.dir'"));
    }
    if no_wait {
        return Ok(true);
    }
    let mut well = true;
    for job in asked {
        while FileStore::holder(&job)?.is_some() {
            std::thread::sleep(PAUSE);
        }
        let shown = job.display();
        if ControlFile::of(&job).take()?.is_some() {
            println!("{shown}: it has ended before it could be asked");
            well = false;
        } else if FileStore::is_finished(&job) {
            println!("{shown}: finished");
        } else {
            println!(
                "{shown}: stopped at checkpoint {}",
                FileStore::read(&job)?.epoch
            );
        }
    }
    Ok(well)
}
