//! Requests with JSON, and what is said of a gateway that is down, slow or talks rubbish.

use std::time::Duration;

use reqwest::Method;
use reqwest::blocking::Client;
use serde_json::Value;

use crate::error::{Error, Result};

/// A token that every request carries, for gateways behind one that asks for it.
const TOKEN: &str = "EBBFLOW_GATEWAY_TOKEN";
/// Attempts of a request that may be repeated, when there is no connection.
const ATTEMPTS: u32 = 3;
/// Wait before the second attempt; then twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// What is shown of an answer that is not understood.
const SHOWN: usize = 120;

/// Why there is no answer to a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// The gateway says that it cannot: its messages, stack traces among them.
    Refused(Vec<String>),
    /// Nothing came that can be understood.
    NoAnswer(Error),
}

impl Failure {
    /// As an error of a request that has to do with no statement.
    pub(super) fn error(self) -> Error {
        match self {
            Self::Refused(messages) => super::trace::error(&messages, ""),
            Self::NoAnswer(e) => e,
        }
    }
}

/// A gateway's address.
#[derive(Debug, Clone)]
pub(super) struct Http {
    url: url::Url,
    client: Client,
    timeout: Duration,
}

impl Http {
    /// Requests to `address`: a URL, or host and port. Waits `timeout` for each answer.
    pub(super) fn new(address: &str, timeout: Duration) -> Result<Self> {
        let with_scheme = if address.contains("://") {
            address.to_string()
        } else {
            format!("http://{address}")
        };
        let wrong = |why: &dyn std::fmt::Display| {
            Error::options(format!("'{address}' is no address of a gateway: {why}"))
                .hint("an address is http://host:8083")
        };
        let url = url::Url::parse(with_scheme.trim_end_matches('/')).map_err(|e| wrong(&e))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(wrong(&"http or https and a host are expected"));
        }
        let client = Client::builder()
            .timeout(timeout)
            .connect_timeout(CONNECT.min(timeout))
            .build()
            .map_err(|e| Error::gateway(format!("no HTTP client: {e}")))?;
        Ok(Self {
            url,
            client,
            timeout,
        })
    }

    /// The address without what must not be shown.
    pub(super) fn shown(&self) -> String {
        let mut url = self.url.clone();
        // a URL with a host takes both
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.as_str().trim_end_matches('/').to_string()
    }

    /// Asks for `path`; is repeated when there is no connection.
    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        let mut pause = PAUSE;
        for _ in 1..ATTEMPTS {
            match self.send(&Method::GET, path, None) {
                Err(Sent::NoConnection(_)) => std::thread::sleep(pause),
                other => return other.map_err(Sent::failure),
            }
            pause *= 2;
        }
        self.send(&Method::GET, path, None).map_err(Sent::failure)
    }

    /// Sends `body`; is never repeated: the gateway may have acted on it.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send(&Method::POST, path, Some(body))
            .map_err(Sent::failure)
    }

    /// Deletes `path`.
    pub(super) fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.send(&Method::DELETE, path, None)
            .map_err(Sent::failure)
    }

    fn send(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Value, Sent> {
        let shown = self.shown();
        let url = format!("{}{path}", self.url.as_str().trim_end_matches('/'));
        let mut request = self.client.request(method.clone(), url);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Ok(token) = std::env::var(TOKEN) {
            request = request.bearer_auth(token);
        }
        let response = request.send().map_err(|e| self.not_sent(e, method, path))?;
        let status = response.status();
        let text = response
            .text()
            .map_err(|e| self.not_sent(e, method, path))?;
        let answer: Option<Value> = serde_json::from_str(&text).ok();
        match answer {
            Some(answer) if status.is_success() => Ok(answer),
            // an answer without content
            None if status.is_success() && text.trim().is_empty() => Ok(Value::Null),
            Some(answer) if answer.get("errors").is_some_and(Value::is_array) => {
                let messages = answer.get("errors").and_then(Value::as_array);
                let messages = messages.into_iter().flatten();
                let text = |m: &Value| m.as_str().map_or_else(|| m.to_string(), str::to_string);
                Err(Sent::Refused(messages.map(text).collect()))
            }
            _ => Err(Sent::Failed(
                Error::gateway(format!(
                    "the answer of {shown} to {method} {path} is none of a SQL Gateway: {status}, {}",
                    excerpt(&text)
                ))
                .hint("the gateway's REST API is at port 8083 unless set; 8081 is the JobManager's"),
            )),
        }
    }

    fn not_sent(&self, e: reqwest::Error, method: &Method, path: &str) -> Sent {
        let shown = self.shown();
        if e.is_timeout() && !e.is_connect() {
            return Sent::Failed(
                Error::gateway(format!(
                    "the gateway {shown} has not answered {method} {path} within {} s",
                    self.timeout.as_secs_f64()
                ))
                .hint("--timeout says how many seconds an answer may take"),
            );
        }
        let reason = innermost(&e);
        if e.is_connect() {
            return Sent::NoConnection(
                Error::gateway(format!(
                    "there is no connection to the gateway {shown}: {reason}"
                ))
                .hint("is it running? bin/sql-gateway.sh start of Flink starts one, at port 8083"),
            );
        }
        Sent::Failed(Error::gateway(format!(
            "{method} {path} at the gateway {shown}: {reason}"
        )))
    }
}

/// What a single request came to.
enum Sent {
    Refused(Vec<String>),
    NoConnection(Error),
    Failed(Error),
}

impl Sent {
    fn failure(self) -> Failure {
        match self {
            Self::Refused(messages) => Failure::Refused(messages),
            Self::NoConnection(e) | Self::Failed(e) => Failure::NoAnswer(e),
        }
    }
}

/// The reason at the bottom of a chain of errors: `Connection refused`.
fn innermost(e: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = e;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

/// The beginning of an answer, on one line.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return "without content".into();
    }
    let cut: String = line.chars().take(SHOWN).collect();
    if cut.len() < line.len() {
        format!("`{cut}...`")
    } else {
        format!("`{cut}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_no_scheme_and_show_no_password() {
        let http = |address| Http::new(address, Duration::from_secs(1));
        assert_eq!(http("host:8083").expect("fits").shown(), "http://host:8083");
        let secret = http("https://me:secret@host/flink/").expect("fits");
        assert_eq!(secret.shown(), "https://host/flink");
        assert!(http("ftp://host").is_err());
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(" a\n b "), "`a b`");
        assert_eq!(excerpt(""), "without content");
        assert!(excerpt(&"é".repeat(500)).len() < 300);
    }
}
