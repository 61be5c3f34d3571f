//! The jobs of INSERT statements: SHOW JOBS, DESCRIBE JOB, STOP JOB.

use std::hash::{BuildHasher, RandomState};

use super::listing::Listing;
use super::{Session, StatementResult};
use crate::error::{Error, Result};
use crate::runtime::control::JobEnd;
use crate::runtime::job::JobHandle;

/// A started job of one or more INSERT statements.
#[derive(Debug, Clone)]
pub struct InsertJob {
    id: String,
    name: String,
    started_ms: i64,
    handle: JobHandle,
}

impl InsertJob {
    pub(super) fn new(name: String, started_ms: i64, handle: JobHandle) -> Self {
        let random = || RandomState::new().hash_one(started_ms);
        Self {
            id: format!("{:016x}{:016x}", random(), random()),
            name,
            started_ms,
            handle,
        }
    }

    /// Identifies the job: 32 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Name, as Flink makes it: `insert-into_catalog.database.table`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it was started, in milliseconds since the epoch.
    #[must_use]
    pub fn started_ms(&self) -> i64 {
        self.started_ms
    }

    /// The running job.
    #[must_use]
    pub fn handle(&self) -> &JobHandle {
        &self.handle
    }

    /// `RUNNING`, `FINISHED`, `CANCELED` or `FAILED`.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self.handle.end() {
            None => "RUNNING",
            Some(Ok(JobEnd::Finished)) => "FINISHED",
            Some(Ok(_)) => "CANCELED",
            Some(Err(_)) => "FAILED",
        }
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// When it fails.
    pub fn wait(&self) -> Result<()> {
        self.handle.wait().map(|_| ())
    }

    fn row(&self) -> [Option<String>; 4] {
        let started = chrono::DateTime::from_timestamp_millis(self.started_ms)
            .map(|t| t.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
        [
            Some(self.id.clone()),
            Some(self.name.clone()),
            Some(self.status().into()),
            started,
        ]
    }
}

impl Session {
    pub(super) fn show_jobs(&self) -> Listing {
        let mut listing = Listing::new(&["job id", "job name", "status", "start time"]);
        for job in &self.jobs {
            listing.push(job.row());
        }
        listing
    }

    pub(super) fn describe_job(&self, id: &str) -> Result<Listing> {
        let mut listing = Listing::new(&["job id", "job name", "status", "start time"]);
        listing.push(self.job(id)?.row());
        Ok(listing)
    }

    fn job(&self, id: &str) -> Result<&InsertJob> {
        self.jobs.iter().find(|job| job.id == id).ok_or_else(|| {
            Error::plan(format!("The job {id} does not exist."))
                .hint("SHOW JOBS lists the jobs of this session")
        })
    }

    pub(super) fn stop_job(&mut self, id: &str, with_savepoint: bool) -> Result<StatementResult> {
        let job = self.job(id)?;
        if with_savepoint && job.status() == "RUNNING" {
            job.handle.checkpoint()?;
        }
        job.handle.cancel();
        // how it ended is for SHOW JOBS to say
        let _ended = job.handle.wait();
        Ok(StatementResult::Done)
    }
}
