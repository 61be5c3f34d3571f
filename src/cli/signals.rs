//! Ctrl-C and SIGTERM: the first stops jobs with a last checkpoint where they take any, the second
//! ends the program.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::runtime::job::JobHandle;

/// Exit code of a program that the user has ended.
const INTERRUPTED: i32 = 130;

#[derive(Debug, Default)]
struct Inner {
    stopping: AtomicBool,
    /// Ctrl-C came since the last statement.
    interrupted: AtomicBool,
    // No other lock is taken while this one is held.
    jobs: Mutex<Vec<JobHandle>>,
}

/// Knows the jobs that a signal has to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopper(Arc<Inner>);

/// What signals mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// Ctrl-C stops all jobs, then the program.
    StopProgram,
    /// Ctrl-C stops the query in the foreground; the program goes on.
    StopQuery,
}

impl Stopper {
    /// Listens to signals from now on.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(crate) fn install(&self, meaning: OnInterrupt) -> Result<()> {
        let stopper = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::internal(format!("no runtime for signals: {e}")))?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(stopper.listen(meaning)))
            .map_err(|e| Error::internal(format!("no thread for signals: {e}")))?;
        Ok(())
    }

    async fn listen(&self, meaning: OnInterrupt) {
        let mut signals = match Signals::new() {
            Ok(signals) => signals,
            Err(e) => {
                tracing::warn!("signals are not listened to: {e}");
                return;
            }
        };
        while let Some(interrupt) = signals.next().await {
            match (interrupt, meaning) {
                (Interrupt::Terminal, OnInterrupt::StopQuery) => self.cancel_all(),
                _ if self.is_stopping() => std::process::exit(INTERRUPTED),
                (Interrupt::Terminate, OnInterrupt::StopQuery) => {
                    self.cancel_all();
                    std::process::exit(0);
                }
                (_, OnInterrupt::StopProgram) => {
                    self.0.stopping.store(true, Ordering::Release);
                    for job in self.jobs().iter() {
                        job.request_stop();
                    }
                }
            }
        }
    }

    fn cancel_all(&self) {
        self.0.interrupted.store(true, Ordering::Release);
        for job in self.jobs().iter() {
            job.cancel();
        }
    }

    fn jobs(&self) -> std::sync::MutexGuard<'_, Vec<JobHandle>> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a signal stop `job` too.
    pub(crate) fn watch(&self, job: &JobHandle) {
        self.jobs().push(job.clone());
        if self.is_stopping() {
            job.request_stop();
        }
    }

    /// Forgets all jobs, and that one was to be stopped.
    pub(crate) fn forget(&self) {
        self.jobs().clear();
        self.0.interrupted.store(false, Ordering::Release);
    }

    /// Whether what runs in the foreground is to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_stopping() || self.0.interrupted.load(Ordering::Acquire)
    }

    /// Whether the program was told to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupt {
    Terminal,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is only Ctrl-C"))]
    Terminate,
}

/// The signals of the operating system.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Option<Interrupt> {
        tokio::select! {
            got = self.interrupt.recv() => got.map(|()| Interrupt::Terminal),
            got = self.terminate.recv() => got.map(|()| Interrupt::Terminate),
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Option<Interrupt> {
        let got = tokio::signal::ctrl_c().await.ok();
        got.map(|()| Interrupt::Terminal)
    }
}
