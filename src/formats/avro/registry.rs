//! A schema registry: schemas by number over HTTP, and the five bytes in front of a record that say
//! which one it was written with.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::blocking::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::schema::Node;
use crate::error::{Error, Result};
use crate::formats::FormatOptions;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The first byte of a record.
const MAGIC: u8 = 0;

/// How to log in.
#[derive(Clone)]
enum Login {
    None,
    Basic(String, String),
    Bearer(String),
}

/// The registry of a table.
pub(super) struct Registry {
    url: String,
    login: Login,
    /// PEM of the authority that the registry's certificate must come from.
    authority: Option<Vec<u8>>,
    /// Made when it is first needed.
    client: Mutex<Option<Client>>,
    /// No other lock is taken while it is held.
    schemas: Mutex<BTreeMap<u32, Arc<Node>>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Reads the options of the registry; `None` for `url` when it is missing.
    pub(super) fn read(options: &FormatOptions<'_>) -> Result<Self> {
        let url = options
            .get("url")
            .ok_or_else(|| crate::connectors::options::missing_required(&[&options.key("url")]))?;
        let source = options.get("basic-auth.credentials-source");
        let user = options.get("basic-auth.user-info");
        let login = match (source, user, options.get("bearer-auth.token")) {
            (Some("USER_INFO") | None, Some(user), _) => match user.split_once(':') {
                Some((name, password)) => Login::Basic(name.into(), password.into()),
                None => {
                    return Err(Error::options(format!(
                        "Option '{}' is not of the form user:password.",
                        options.key("basic-auth.user-info")
                    )));
                }
            },
            (None, None, Some(token)) => Login::Bearer(token.into()),
            (None, None, None) => Login::None,
            (Some(other), ..) => {
                return Err(Error::options(format!(
                    "Unsupported value '{other}' for option '{}'.",
                    options.key("basic-auth.credentials-source")
                ))
                .hint("USER_INFO is supported, with 'basic-auth.user-info' = 'user:password'"));
            }
        };
        let authority = options.get("ssl.truststore.location").map(|path| {
            std::fs::read(path).map_err(|e| {
                Error::options(format!(
                    "Option '{}' names '{path}', which cannot be read: {e}",
                    options.key("ssl.truststore.location")
                ))
            })
        });
        Ok(Self {
            url: url.trim_end_matches('/').to_string(),
            login,
            authority: authority.transpose()?,
            client: Mutex::default(),
            schemas: Mutex::default(),
        })
    }

    fn client(&self) -> Result<Client> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let mut builder = Client::builder().timeout(TIMEOUT);
        if let Some(pem) = &self.authority {
            let authority = reqwest::Certificate::from_pem(pem)
                .map_err(|e| Error::options(format!("the truststore is not PEM: {e}")))?;
            builder = builder.add_root_certificate(authority);
        }
        let made = builder
            .build()
            .map_err(|e| Error::connector(format!("no HTTP client: {e}")))?;
        *client = Some(made.clone());
        Ok(made)
    }

    fn send(&self, request: RequestBuilder, what: &str) -> Result<Value> {
        let request = match &self.login {
            Login::None => request,
            Login::Basic(user, password) => request.basic_auth(user, Some(password)),
            Login::Bearer(token) => request.bearer_auth(token),
        };
        let failed = |e: &dyn std::fmt::Display| {
            Error::connector(format!("the schema registry {}: {what}: {e}", self.url))
        };
        let response = request.send().map_err(|e| failed(&e.without_url()))?;
        let status = response.status();
        let body = response.text().map_err(|e| failed(&e.without_url()))?;
        if !status.is_success() {
            let answer: Value = serde_json::from_str(&body).unwrap_or_default();
            let message = answer.get("message").and_then(Value::as_str).unwrap_or("");
            return Err(failed(&format!("{status} {message}")));
        }
        serde_json::from_str(&body).map_err(|e| failed(&e))
    }

    /// The schema with number `id`.
    pub(super) fn schema(&self, id: u32) -> Result<Arc<Node>> {
        let known = |r: &Self| {
            let schemas = r.schemas.lock().unwrap_or_else(PoisonError::into_inner);
            schemas.get(&id).cloned()
        };
        if let Some(schema) = known(self) {
            return Ok(schema);
        }
        let what = format!("schema {id}");
        let request = self.client()?.get(format!("{}/schemas/ids/{id}", self.url));
        let answer = self.send(request, &what)?;
        let text = answer.get("schema").and_then(Value::as_str);
        let text = text.ok_or_else(|| {
            Error::connector(format!(
                "the schema registry {}: {what} is no text",
                self.url
            ))
        })?;
        let schema = Arc::new(Node::parse(text)?);
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        schemas.insert(id, Arc::clone(&schema));
        Ok(schema)
    }

    /// Registers a schema under `subject` and gives its number.
    pub(super) fn register(&self, subject: &str, schema: &str) -> Result<u32> {
        let subject =
            percent_encoding::utf8_percent_encode(subject, percent_encoding::NON_ALPHANUMERIC);
        let url = format!("{}/subjects/{subject}/versions", self.url);
        let request = self
            .client()?
            .post(url)
            .header("Content-Type", "application/vnd.schemaregistry.v1+json")
            .body(json!({ "schema": schema }).to_string());
        let what = format!("subject '{subject}'");
        let answer = self.send(request, &what)?;
        let id = answer.get("id").and_then(Value::as_u64);
        id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
            Error::connector(format!(
                "the schema registry {}: {what} got no number",
                self.url
            ))
        })
    }
}

/// The number of the schema that `record` was written with, and the bytes behind it.
pub(super) fn split(record: &[u8]) -> Result<(u32, &[u8])> {
    match record {
        [MAGIC, a, b, c, d, rest @ ..] => Ok((u32::from_be_bytes([*a, *b, *c, *d]), rest)),
        _ => Err(Error::format(
            "the record does not begin with the number of a schema: it was not written by way of a \
             schema registry",
        )),
    }
}

/// Appends what stands in front of a record.
pub(super) fn prefix(id: u32, out: &mut Vec<u8>) {
    out.push(MAGIC);
    out.extend_from_slice(&id.to_be_bytes());
}
