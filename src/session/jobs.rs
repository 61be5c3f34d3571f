//! The jobs of INSERT statements: SHOW JOBS, DESCRIBE JOB, STOP JOB.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;

use super::checkpointing::Place;
use super::listing::Listing;
use super::{Session, StatementResult};
use crate::checkpoint::CheckpointStore;
use crate::error::{Error, Result};
use crate::runtime::control::JobEnd;
use crate::runtime::job::{JobHandle, StopMode};
use crate::sql::ast::StopJob;

/// A started job of one or more INSERT statements.
#[derive(Debug, Clone)]
pub struct InsertJob {
    id: String,
    name: String,
    started_ms: i64,
    handle: JobHandle,
    place: Place,
}

/// 32 hexadecimal digits.
pub(super) fn random_id(seed: i64) -> String {
    let random = || RandomState::new().hash_one(seed);
    format!("{:016x}{:016x}", random(), random())
}

impl InsertJob {
    pub(super) fn new(name: String, started_ms: i64, handle: JobHandle, place: Place) -> Self {
        Self {
            id: random_id(started_ms),
            name,
            started_ms,
            handle,
            place,
        }
    }

    /// The directory of its checkpoints, if they are kept on disk.
    #[must_use]
    pub fn checkpoint_directory(&self) -> Option<&Path> {
        self.place.directory.as_deref()
    }

    /// From where it has started, if that is not simply the beginning.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        match self.handle.restored_checkpoint() {
            Some(epoch) => Some(format!("it goes on from checkpoint {epoch}")),
            None => self.place.notice.clone(),
        }
    }

    /// Whether it was stopped behind a last checkpoint, so that it can go on another time.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        matches!(self.handle.end(), Some(Ok(JobEnd::Stopped(_))))
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
            Some(Ok(JobEnd::Finished | JobEnd::Stopped(_))) => "FINISHED",
            Some(Ok(JobEnd::Cancelled)) => "CANCELED",
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

    /// `STOP JOB`: at once, or with a savepoint, whose path is the answer.
    pub(super) fn stop_job(&mut self, stop: &StopJob) -> Result<StatementResult> {
        let job = self.job(&stop.id)?;
        if !stop.with_savepoint {
            job.handle.cancel();
            // how it ended is for SHOW JOBS to say
            let _ended = job.handle.wait();
            return Ok(StatementResult::Done);
        }
        if job.status() != "RUNNING" {
            let text = format!("The job {} is not running: {}.", stop.id, job.status());
            return Err(Error::plan(text));
        }
        let mode = if stop.with_drain {
            StopMode::Drain
        } else {
            StopMode::Suspend
        };
        let (path, store) = match self.savepoint_store(&job.id)? {
            Some((path, store)) => (path, Some(Arc::new(store) as Arc<dyn CheckpointStore>)),
            None => match job.checkpoint_directory() {
                Some(directory) => (directory.to_path_buf(), None),
                None => {
                    return Err(Error::options("there is no place for a savepoint").hint(
                        "set 'execution.checkpointing.savepoint-dir' before the job starts",
                    ));
                }
            },
        };
        job.handle.stop(mode, store)?;
        job.handle.wait()?;
        let path = path.display().to_string();
        Ok(StatementResult::Listing(Listing::of(
            "savepoint path",
            [path],
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session with a job that does not end, over a table that a program pushes into.
    fn session(settings: &[(&str, &str)]) -> (Session, String) {
        let mut session = Session::new();
        for (key, value) in settings {
            session.set(key, value).unwrap();
        }
        for sql in [
            "CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'memory')",
            "CREATE TABLE o (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = \
             'memory')",
        ] {
            session.execute(sql).unwrap();
        }
        let id = start(&mut session);
        (session, id)
    }

    fn start(session: &mut Session) -> String {
        let sql = "INSERT INTO o SELECT k, COUNT(*) FROM t GROUP BY k";
        match session.execute(sql).unwrap() {
            StatementResult::Job(job) => job.id().to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn push(session: &Session, key: &str) {
        let mut writer = session.table_writer("t").unwrap();
        writer.insert(vec![vec![key.into(), 1.into()]]).unwrap();
    }

    fn stop(session: &mut Session, id: &str, how: &str) -> Result<Option<String>> {
        let result = session.execute(&format!("STOP JOB '{id}' {how}"))?;
        Ok(match result {
            StatementResult::Listing(listing) => {
                assert_eq!(listing.columns, ["savepoint path"]);
                listing.rows[0][0].clone()
            }
            _ => None,
        })
    }

    /// What jobs have committed.
    fn counts(session: &mut Session) -> Vec<String> {
        let query = session.query("SELECT * FROM o");
        session.table_writer("o").unwrap().finish();
        let table = query.unwrap().into_table().unwrap();
        let mut rows: Vec<String> = table.rows().map(ToString::to_string).collect();
        rows.sort();
        rows
    }

    /// Rows that a job has read.
    fn read(job: &InsertJob) -> u64 {
        let metrics = job.handle().metrics().iter();
        let scans = metrics.filter(|m| m.name == "TableSourceScan");
        scans.map(|m| m.metrics.records_out.get()).sum()
    }

    #[test]
    fn a_job_is_stopped_with_a_savepoint_and_another_begins_there() {
        let folder = tempfile::TempDir::new().unwrap();
        let savepoints = folder.path().display().to_string();
        let key = "execution.checkpointing.savepoint-dir";
        let (mut session, id) = session(&[(key, &savepoints)]);
        push(&session, "a");
        push(&session, "b");
        let path = stop(&mut session, &id, "WITH SAVEPOINT").unwrap().unwrap();
        assert!(path.contains(&format!("savepoint-{}-", &id[..6])), "{path}");
        assert_eq!(session.jobs()[0].status(), "FINISHED");
        assert!(stop(&mut session, &id, "WITH SAVEPOINT").is_err());

        session.set("execution.state-recovery.path", &path).unwrap();
        let id = start(&mut session);
        assert!(session.jobs()[1].notice().unwrap().contains("checkpoint"));
        push(&session, "a");
        while read(&session.jobs()[0]) + read(&session.jobs()[1]) < 3 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let drained = stop(&mut session, &id, "WITH SAVEPOINT WITH DRAIN");
        assert!(drained.unwrap().is_some());
        assert_eq!(counts(&mut session), ["[a, 2]", "[b, 1]"]);
    }

    #[test]
    fn without_a_place_there_is_no_savepoint() {
        let (mut session, id) = session(&[("execution.checkpointing.interval", "1 h")]);
        let error = stop(&mut session, &id, "WITH SAVEPOINT").unwrap_err();
        assert!(error.to_string().contains("no place"), "{error}");
        assert_eq!(session.jobs()[0].status(), "RUNNING");
        assert_eq!(stop(&mut session, &id, "").unwrap(), None);
        assert_eq!(session.jobs()[0].status(), "CANCELED");
    }

    #[test]
    fn jobs_of_one_name_have_directories_of_their_own() {
        let folder = tempfile::TempDir::new().unwrap();
        let directory = folder.path().display().to_string();
        let (mut session, first) = session(&[("execution.checkpointing.dir", &directory)]);
        start(&mut session);
        let name = |session: &Session, i: usize| {
            let directory = session.jobs()[i].checkpoint_directory().unwrap();
            directory.file_name().unwrap().to_str().unwrap().to_string()
        };
        let path = "insert-into_default_catalog.default_database.o";
        assert_eq!(name(&session, 0), path);
        assert_eq!(name(&session, 1), format!("{path}#2"));
        // one that was stopped is taken up by the next
        stop(&mut session, &first, "WITH SAVEPOINT").unwrap();
        let second = session.jobs()[1].id().to_string();
        stop(&mut session, &second, "").unwrap();
        start(&mut session);
        assert_eq!(name(&session, 2), path);
        let third = session.jobs()[2].id().to_string();
        stop(&mut session, &third, "").unwrap();
    }
}
