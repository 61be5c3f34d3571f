//! Sessions of a gateway, and the statements that they run.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use serde_json::{Map, Value, json};

use super::http::{Failure, Http};
use super::page::Page;
use super::trace;
use crate::error::{Error, Result};

/// The oldest version of the API that has what we ask for.
const OLDEST: u32 = 2;
/// Time between signs of life: a gateway forgets a session that is idle for ten minutes.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// Shortest and longest wait between two questions about the same thing.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Asked while something is waited for: whether to give up.
pub type Interrupted<'a> = &'a dyn Fn() -> bool;

/// A gateway that has answered.
#[derive(Debug, Clone)]
pub struct Gateway {
    http: Arc<Http>,
    version: u32,
    product: String,
}

impl Gateway {
    /// Asks the gateway at `address`, a URL or host and port, who it is. Every answer is waited for
    /// no longer than `timeout`.
    ///
    /// # Errors
    /// When it cannot be reached, does not answer in time, or is no gateway of version 2 or later.
    pub fn connect(address: &str, timeout: Duration) -> Result<Self> {
        let http = Http::new(address, timeout)?;
        let answer = http.get("/api_versions").map_err(|failure| {
            let error = failure.error();
            match error.hint_text() {
                Some(_) => error,
                None => error
                    .context(format!("the server at {}", http.shown()))
                    .hint("is it a SQL Gateway? Its port is 8083 unless set; 8081 is the JobManager's"),
            }
        })?;
        let versions = answer.get("versions").and_then(Value::as_array);
        let number = |v: &Value| v.as_str()?.trim_start_matches(['v', 'V']).parse().ok();
        let versions: Vec<u32> = versions.into_iter().flatten().filter_map(number).collect();
        let Some(version) = versions.iter().copied().filter(|v| *v >= OLDEST).min() else {
            return Err(Error::gateway(format!(
                "the server at {} offers no REST API of a SQL Gateway from version {OLDEST} on",
                http.shown()
            ))
            .hint("Flink has it from version 1.17 on"));
        };
        let info = http.get("/info").map_err(Failure::error)?;
        let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or("?");
        Ok(Self {
            product: format!("{} {}", text("productName"), text("version")),
            http: Arc::new(http),
            version,
        })
    }

    /// Name and version: `Apache Flink 2.3.0`.
    #[must_use]
    pub fn product(&self) -> &str {
        &self.product
    }

    /// The address, for messages.
    #[must_use]
    pub fn address(&self) -> String {
        self.http.shown()
    }

    /// Opens a session with these settings.
    ///
    /// # Errors
    /// When the gateway refuses.
    pub fn open(&self, name: &str, settings: &[(String, String)]) -> Result<RemoteSession> {
        let properties: Map<String, Value> = settings
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect();
        let body = json!({"sessionName": name, "properties": properties});
        let path = format!("/v{}/sessions", self.version);
        let answer = self.http.post(&path, &body).map_err(Failure::error)?;
        let handle = handle(&answer, "sessionHandle")?;
        Ok(RemoteSession::new(
            Arc::clone(&self.http),
            format!("{path}/{handle}"),
        ))
    }
}

/// The identifier that an answer holds.
fn handle(answer: &Value, key: &str) -> Result<String> {
    let text = answer.get(key).and_then(Value::as_str);
    // it becomes part of a path
    let fits = |t: &&str| !t.is_empty() && t.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    text.filter(fits)
        .map(str::to_string)
        .ok_or_else(|| Error::gateway(format!("the gateway's answer has no '{key}': {answer}")))
}

/// A session; it is closed when it is dropped. Jobs that it started run on.
#[derive(Debug)]
pub struct RemoteSession {
    http: Arc<Http>,
    path: String,
    /// Ends the signs of life when it is dropped.
    _alive: Option<Sender<()>>,
}

impl RemoteSession {
    fn new(http: Arc<Http>, path: String) -> Self {
        let (alive, dropped) = bounded::<()>(0);
        let (beating, session) = (Arc::clone(&http), path.clone());
        let thread = std::thread::Builder::new().name("heartbeat".into());
        let started = thread.spawn(move || {
            while dropped.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                if let Err(failure) = beating.post(&format!("{session}/heartbeat"), &json!({})) {
                    tracing::debug!("no heartbeat: {}", failure.error());
                }
            }
        });
        Self {
            http,
            path,
            _alive: started.is_ok().then_some(alive),
        }
    }

    /// The session's settings, those of the gateway's own configuration included.
    ///
    /// # Errors
    /// When the gateway does not tell.
    pub fn settings(&self) -> Result<Vec<(String, String)>> {
        let answer = self.http.get(&self.path).map_err(Failure::error)?;
        let settings = answer.get("properties").and_then(Value::as_object);
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
        Ok(settings
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect())
    }

    /// Runs one statement and waits until it has a result; `None` when it was interrupted before.
    ///
    /// # Errors
    /// When it fails; the position is that in `statement`.
    pub fn execute(
        &self,
        statement: &str,
        interrupted: Interrupted<'_>,
    ) -> Result<Option<Answer<'_>>> {
        let because = |failure: Failure| match failure {
            Failure::Refused(messages) => trace::error(&messages, statement),
            Failure::NoAnswer(e) => e,
        };
        let path = format!("{}/statements", self.path);
        let body = json!({"statement": statement});
        let answer = self.http.post(&path, &body).map_err(because)?;
        let operation = Operation {
            http: &self.http,
            path: format!(
                "{}/operations/{}",
                self.path,
                handle(&answer, "operationHandle")?
            ),
        };
        let mut pauses = Pauses::default();
        loop {
            let status = self.http.get(&format!("{}/status", operation.path));
            let status = status.map_err(because)?;
            match status.get("status").and_then(Value::as_str) {
                // the result of a failed operation is its error
                Some("FINISHED" | "ERROR") => break,
                Some("INITIALIZED" | "PENDING" | "RUNNING") => {}
                Some(ended @ ("CANCELED" | "TIMEOUT" | "CLOSED")) => {
                    return Err(Error::flink(format!(
                        "the gateway has ended the statement: {ended}"
                    )));
                }
                _ => {
                    return Err(Error::gateway(format!(
                        "the gateway's answer is no status of an operation: {status}"
                    )));
                }
            }
            if interrupted() {
                operation.cancel();
                return Ok(None);
            }
            pauses.wait();
        }
        let path = format!("{}/result/0?rowFormat=PLAIN_TEXT", operation.path);
        let first = self.http.get(&path).map_err(because)?;
        Ok(Some(Answer {
            operation,
            page: Page::read(&first)?,
            statement: statement.to_string(),
        }))
    }

    /// Runs one statement and reads its whole result.
    ///
    /// # Errors
    /// When it fails or is interrupted.
    pub fn rows(&self, statement: &str, interrupted: Interrupted<'_>) -> Result<Page> {
        let stopped = || Error::flink("interrupted");
        let mut answer = self.execute(statement, interrupted)?.ok_or_else(stopped)?;
        let mut whole = answer.page().clone();
        while let Some(page) = answer.next_page(interrupted)? {
            whole.rows.extend(page.rows.iter().cloned());
        }
        if interrupted() {
            return Err(stopped());
        }
        Ok(whole)
    }
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        if let Err(failure) = self.http.delete(&self.path) {
            tracing::debug!("the session is not closed: {}", failure.error());
        }
    }
}

/// What a statement gives: a page, and those that follow. Dropping it ends a query.
#[derive(Debug)]
pub struct Answer<'s> {
    operation: Operation<'s>,
    page: Page,
    statement: String,
}

impl Answer<'_> {
    /// The page at hand.
    #[must_use]
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// The next page with rows; `None` behind the last one, or when it was interrupted.
    ///
    /// # Errors
    /// When the query fails.
    pub fn next_page(&mut self, interrupted: Interrupted<'_>) -> Result<Option<&Page>> {
        let mut pauses = Pauses::default();
        loop {
            if interrupted() {
                self.operation.cancel();
                return Ok(None);
            }
            let Some(next) = &self.page.next else {
                return Ok(None);
            };
            let answer = self
                .operation
                .http
                .get(next)
                .map_err(|failure| match failure {
                    Failure::Refused(messages) => trace::error(&messages, &self.statement),
                    Failure::NoAnswer(e) => e,
                })?;
            let mut page = Page::read(&answer)?;
            if !page.rows.is_empty() {
                self.page = page;
                return Ok(Some(&self.page));
            }
            if page.next.is_none() {
                self.page.next = None;
                self.page.rows.clear();
                return Ok(None);
            }
            self.page.next = page.next.take();
            pauses.wait();
        }
    }
}

#[derive(Debug)]
struct Operation<'s> {
    http: &'s Http,
    path: String,
}

impl Operation<'_> {
    fn cancel(&self) {
        if let Err(failure) = self.http.post(&format!("{}/cancel", self.path), &json!({})) {
            tracing::debug!("the operation is not cancelled: {}", failure.error());
        }
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if let Err(failure) = self.http.delete(&format!("{}/close", self.path)) {
            tracing::debug!("the operation is not closed: {}", failure.error());
        }
    }
}

/// Waits between questions, longer every time.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(PAUSES.0)
    }
}

impl Pauses {
    pub(super) fn wait(&mut self) {
        sleep(self.0);
        self.0 = (self.0 * 2).min(PAUSES.1);
    }
}
