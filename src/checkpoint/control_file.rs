//! How another process asks a running job to stop: a file in the job's checkpoint directory.
//!
//! `ebbflow stop` writes `<directory>/stop` with one word, `suspend` or `drain`. The job looks for it a
//! few times a second, takes it away and obeys. It works for every process that runs the job, whatever
//! the operating system.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// How a job is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCommand {
    /// With a last checkpoint, to go on another time.
    Suspend,
    /// Its sources end, and it finishes.
    Drain,
}

impl StopCommand {
    fn word(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Drain => "drain",
        }
    }
}

/// The file of one job.
#[derive(Debug, Clone)]
pub struct ControlFile(PathBuf);

impl ControlFile {
    /// That of the job whose checkpoints are in `directory`.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        Self(directory.join("stop"))
    }

    /// Asks the job to stop.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, command: StopCommand) -> Result<()> {
        let temporary = self.0.with_extension("tmp");
        let written = fs::write(&temporary, command.word());
        let renamed = written.and_then(|()| fs::rename(&temporary, &self.0));
        renamed.map_err(|e| self.failed("write", &e))
    }

    /// What the job is asked, once.
    ///
    /// # Errors
    /// When the file cannot be read, or says something else.
    pub fn take(&self) -> Result<Option<StopCommand>> {
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.failed("read", &e)),
        };
        fs::remove_file(&self.0).map_err(|e| self.failed("remove", &e))?;
        let commands = [StopCommand::Suspend, StopCommand::Drain];
        let command = commands.into_iter().find(|c| c.word() == text.trim());
        let unknown = || {
            Error::checkpoint(format!("'{}' says '{}'", self.0.display(), text.trim()))
                .hint("it may say suspend or drain")
        };
        command.ok_or_else(unknown).map(Some)
    }

    fn failed(&self, verb: &str, error: &std::io::Error) -> Error {
        Error::checkpoint(format!("cannot {verb} '{}': {error}", self.0.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_taken_once() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = ControlFile::of(directory.path());
        assert_eq!(file.take().unwrap(), None);
        for command in [StopCommand::Suspend, StopCommand::Drain] {
            file.write(command).unwrap();
            assert_eq!(file.take().unwrap(), Some(command));
            assert_eq!(file.take().unwrap(), None);
        }
        fs::write(directory.path().join("stop"), "maybe").unwrap();
        assert!(file.take().is_err());
        assert_eq!(file.take().unwrap(), None);
    }
}
