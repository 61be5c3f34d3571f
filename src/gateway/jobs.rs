//! The jobs of a cluster, as a gateway's session sees them.

use std::time::Duration;

use serde_json::Value;

use super::client::{Interrupted, Pauses, RemoteSession};
use super::http::Http;
use super::trace;
use crate::error::{Error, Result};

/// Longest wait for the JobManager, which tells why a job has failed.
const JOB_MANAGER: Duration = Duration::from_secs(10);

/// A job of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteJob {
    /// 32 hexadecimal digits.
    pub id: String,
    /// What Flink calls it.
    pub name: String,
    /// `RUNNING`, `FINISHED` and so on.
    pub status: String,
    /// When it was started, as Flink prints it.
    pub started: String,
}

impl RemoteJob {
    /// Whether it has come to an end.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "FINISHED" | "CANCELED" | "FAILED")
    }
}

/// All jobs that the cluster remembers, in its own order.
///
/// # Errors
/// When the gateway does not reach the cluster.
pub fn list(session: &RemoteSession, interrupted: Interrupted<'_>) -> Result<Vec<RemoteJob>> {
    let page = session.rows("SHOW JOBS", interrupted)?;
    let mut jobs = Vec::new();
    for (_, row) in page.rows {
        let text = |i: usize| row.get(i).cloned().flatten().unwrap_or_default();
        jobs.push(RemoteJob {
            id: text(0),
            name: text(1),
            status: text(2),
            started: text(3),
        });
    }
    Ok(jobs)
}

/// How a job is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// At once.
    Cancel,
    /// With a savepoint in the session's directory of savepoints.
    Savepoint,
    /// The same, after all windows have fired: for jobs that are not to go on.
    Drain,
}

/// Stops a job; the answer is the path of its savepoint, if it takes one.
///
/// # Errors
/// When there is no such job, or the savepoint fails.
pub fn stop(
    session: &RemoteSession,
    id: &str,
    how: Stop,
    interrupted: Interrupted<'_>,
) -> Result<Option<String>> {
    if id.len() != 32 || !id.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(Error::options(format!(
            "'{id}' is no id of a job: it has 32 hexadecimal digits"
        ))
        .hint("ebbflow jobs --on URL lists them"));
    }
    let with = match how {
        Stop::Cancel => "",
        Stop::Savepoint => " WITH SAVEPOINT",
        Stop::Drain => " WITH SAVEPOINT WITH DRAIN",
    };
    let page = session.rows(&format!("STOP JOB '{id}'{with}"), interrupted)?;
    let path = page.rows.into_iter().next();
    let path = path.and_then(|(_, row)| row.into_iter().next().flatten());
    Ok(path.filter(|_| how != Stop::Cancel))
}

/// Waits until all of `ids` have ended; those that the cluster has forgotten are left out. When it is
/// interrupted the answer says how things stand then.
///
/// # Errors
/// When the gateway does not reach the cluster.
pub fn wait(
    session: &RemoteSession,
    ids: &[String],
    interrupted: Interrupted<'_>,
) -> Result<Vec<RemoteJob>> {
    let mut pauses = Pauses::default();
    loop {
        let mut jobs = list(session, &|| false)?;
        jobs.retain(|job| ids.contains(&job.id));
        if jobs.iter().all(RemoteJob::has_ended) || interrupted() {
            return Ok(jobs);
        }
        pauses.wait();
    }
}

/// Why a job has failed, if the cluster's JobManager can be asked: the gateway does not tell.
#[must_use]
pub fn failure(session: &RemoteSession, id: &str) -> Option<String> {
    let settings = session.settings().ok()?;
    let setting = |key: &str| {
        let found = settings.iter().find(|(k, _)| k == key);
        found.map(|(_, value)| value.as_str())
    };
    let address = setting("rest.address")?;
    let port = setting("rest.port").unwrap_or("8081");
    let http = Http::new(&format!("http://{address}:{port}"), JOB_MANAGER).ok()?;
    let answer = http.get(&format!("/jobs/{id}/exceptions")).ok()?;
    let entries = answer.get("exceptionHistory")?.get("entries")?.as_array()?;
    let newest = entries.first()?.get("stacktrace").and_then(Value::as_str)?;
    Some(
        trace::error(&[newest.to_string()], "")
            .message()
            .to_string(),
    )
}
