//! Where the `print` and `changelog` sinks write: the process's own streams, or a list that a
//! transcript or a test reads.

use std::fmt;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// One of the two streams of a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Takes the lines that sinks print.
///
/// Lines of one call MUST stay together and in order.
pub trait Console: Send + Sync {
    /// Writes `text`: one or more lines, each with its line feed.
    ///
    /// # Errors
    /// When the stream is closed or broken.
    fn write(&self, stream: Stream, text: &str) -> Result<()>;
}

impl fmt::Debug for dyn Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Console")
    }
}

/// The process's standard output and standard error.
#[derive(Debug, Default)]
pub struct StandardConsole;

impl Console for StandardConsole {
    fn write(&self, stream: Stream, text: &str) -> Result<()> {
        let written = match stream {
            Stream::Out => {
                let mut out = std::io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Stream::Err => std::io::stderr().lock().write_all(text.as_bytes()),
        };
        written.map_err(|e| Error::connector(format!("cannot write to the console: {e}")))
    }
}

/// Keeps what is written to both streams, in order.
#[derive(Debug, Default)]
pub struct CapturedConsole {
    text: Mutex<String>,
}

impl CapturedConsole {
    /// What was written since the last call.
    #[must_use]
    pub fn take(&self) -> String {
        std::mem::take(&mut *self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Console for CapturedConsole {
    fn write(&self, _: Stream, text: &str) -> Result<()> {
        self.text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(text);
        Ok(())
    }
}
