//! A server that speaks the REST API of a SQL Gateway, with answers that a test prepares. Their form is
//! that of Flink 2.3's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tiny_http::{Method, Request, Response, Server};

/// What a statement gives.
#[derive(Clone)]
pub enum Reply {
    /// `OK`.
    Done,
    /// A job.
    Job(&'static str),
    /// Columns of text, and rows.
    Rows(&'static [&'static str], Vec<Vec<&'static str>>),
    /// A query: pages of changes; behind the last one comes nothing more, or it never ends.
    Query {
        pages: Vec<Vec<(&'static str, i64)>>,
        ends: bool,
    },
    /// A Java exception: class and message of each cause, outermost first.
    Failure(&'static [(&'static str, &'static str)]),
}

/// What the stub has seen.
#[derive(Default)]
pub struct Seen {
    pub statements: Vec<String>,
    pub settings: Vec<Value>,
    pub closed_sessions: usize,
    pub cancelled: usize,
    operations: BTreeMap<String, Operation>,
}

struct Operation {
    reply: Reply,
    /// How often it is still said to run.
    running: usize,
}

type Replies = dyn Fn(&str) -> Reply + Send + Sync;

/// The server; it ends when it is dropped.
pub struct Stub {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
    pub seen: Arc<Mutex<Seen>>,
}

impl Stub {
    /// A gateway that gives `replies` to statements.
    pub fn start(replies: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (shared, replies) = (Arc::clone(&seen), Box::new(replies) as Box<Replies>);
        Self::serve(seen, move |request| {
            let mut body = String::new();
            request.as_reader().read_to_string(&mut body).unwrap();
            let body: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
            let (method, url) = (request.method().clone(), request.url().to_string());
            let mut seen = shared.lock().unwrap();
            let (status, answer) = seen.answer(&method, &url, &body, &*replies);
            Response::from_string(answer.to_string()).with_status_code(status)
        })
    }

    /// A server that gives the same text to every request, after a while.
    pub fn saying(status: u16, text: &'static str, after: Duration) -> Self {
        Self::serve(Arc::default(), move |_| {
            std::thread::sleep(after);
            Response::from_string(text).with_status_code(status)
        })
    }

    fn serve(
        seen: Arc<Mutex<Seen>>,
        mut answer: impl FnMut(&mut Request) -> Response<std::io::Cursor<Vec<u8>>> + Send + 'static,
    ) -> Self {
        let server = Arc::new(Server::http("127.0.0.1:0").expect("a free port"));
        let listening = Arc::clone(&server);
        let thread = std::thread::spawn(move || {
            for mut request in listening.incoming_requests() {
                let response = answer(&mut request);
                // a client that does not wait any more is what some tests are about
                let _ = request.respond(response);
            }
        });
        Self {
            server,
            thread: Some(thread),
            seen,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.server_addr())
    }

    pub fn statements(&self) -> Vec<String> {
        self.seen.lock().unwrap().statements.clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Seen {
    fn answer(
        &mut self,
        method: &Method,
        url: &str,
        body: &Value,
        replies: &Replies,
    ) -> (u16, Value) {
        let path = url.split('?').next().unwrap_or(url);
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (method, parts.as_slice()) {
            (Method::Get, ["api_versions"]) => (200, json!({"versions": ["V1", "V2", "V3", "V4"]})),
            (Method::Get, ["info"]) => (
                200,
                json!({"productName": "Apache Flink", "version": "2.3.0"}),
            ),
            (Method::Post, ["v2", "sessions"]) => {
                self.settings.push(body["properties"].clone());
                (
                    200,
                    json!({"sessionHandle": "5e551017-0000-4000-8000-000000000001"}),
                )
            }
            (Method::Get, ["v2", "sessions", _]) => (200, json!({"properties": {}})),
            (Method::Delete, ["v2", "sessions", _]) => {
                self.closed_sessions += 1;
                (200, json!({"status": "CLOSED"}))
            }
            (Method::Post, ["v2", "sessions", _, "statements"]) => {
                let statement = body["statement"].as_str().expect("a statement").to_string();
                let handle = format!("0be4a710-0000-4000-8000-{:012}", self.statements.len());
                let operation = Operation {
                    reply: replies(&statement),
                    running: 2,
                };
                self.operations.insert(handle.clone(), operation);
                self.statements.push(statement);
                (200, json!({"operationHandle": handle}))
            }
            (_, ["v2", "sessions", session, "operations", handle, what @ ..]) => {
                self.operation(session, handle, what)
            }
            _ => (404, json!({"errors": [format!("Not found: {url}")]})),
        }
    }

    fn operation(&mut self, session: &str, handle: &str, what: &[&str]) -> (u16, Value) {
        let Some(operation) = self.operations.get_mut(handle) else {
            return (
                500,
                json!({"errors": ["Can not find the submitted operation"]}),
            );
        };
        match what {
            ["status"] if operation.running > 0 => {
                operation.running -= 1;
                (200, json!({"status": "RUNNING"}))
            }
            ["status"] => match operation.reply {
                Reply::Failure(_) => (200, json!({"status": "ERROR"})),
                _ => (200, json!({"status": "FINISHED"})),
            },
            ["cancel"] => {
                self.cancelled += 1;
                (200, json!({"status": "CANCELED"}))
            }
            ["close"] => {
                self.operations.remove(handle);
                (200, json!({"status": "CLOSED"}))
            }
            ["result", token] => {
                let token: usize = token.parse().expect("a number");
                let next = format!(
                    "/v2/sessions/{session}/operations/{handle}/result/{}?rowFormat=PLAIN_TEXT",
                    token + 1
                );
                operation.reply.page(token, &next)
            }
            _ => (404, json!({"errors": ["Not found"]})),
        }
    }
}

impl Reply {
    fn page(&self, token: usize, next: &str) -> (u16, Value) {
        let text = json!({"type": "VARCHAR", "nullable": true, "length": 2_147_483_647});
        let column = |name: &str| json!({"name": name, "logicalType": text, "comment": null});
        let mut job = None;
        let (columns, pages, is_query, ends) = match self {
            Self::Failure(causes) => return (500, failure(causes)),
            Self::Done => (
                vec![column("result")],
                vec![vec![row("INSERT", json!(["OK"]))]],
                false,
                true,
            ),
            Self::Job(id) => {
                job = Some(*id);
                (
                    vec![column("job id")],
                    vec![vec![row("INSERT", json!([id]))]],
                    false,
                    true,
                )
            }
            Self::Rows(names, rows) => {
                let rows = rows.iter().map(|r| row("INSERT", json!(r))).collect();
                (
                    names.iter().map(|n| column(n)).collect(),
                    vec![rows],
                    false,
                    true,
                )
            }
            Self::Query { pages, ends } => {
                let number = json!({"name": "n", "logicalType": {"type": "BIGINT", "nullable": false}, "comment": null});
                let page = |p: &Vec<(&str, i64)>| {
                    p.iter()
                        .map(|(kind, n)| row(kind, json!([n.to_string()])))
                        .collect()
                };
                job = Some("3e338eb506a349674ac979e32542832c");
                (vec![number], pages.iter().map(page).collect(), true, *ends)
            }
        };
        let end = token >= pages.len() && ends;
        let mut answer = json!({
            "resultType": if end { "EOS" } else { "PAYLOAD" },
            "isQueryResult": is_query,
            "resultKind": "SUCCESS_WITH_CONTENT",
            "results": {
                "columns": columns,
                "rowFormat": "PLAIN_TEXT",
                "data": pages.get(token).cloned().unwrap_or_default(),
            },
        });
        if let Some(id) = job {
            answer["jobID"] = json!(id);
        }
        if !end {
            answer["nextResultUri"] = json!(next);
        }
        (200, answer)
    }
}

fn row(kind: &str, fields: Value) -> Value {
    json!({"kind": kind, "fields": fields})
}

/// The answer of a statement that has failed, as the gateway writes it.
fn failure(causes: &[(&str, &str)]) -> Value {
    let mut trace = "<Exception on server side:\n\
        org.apache.flink.table.gateway.api.utils.SqlGatewayException: org.apache.flink.table.gateway.api.utils.SqlGatewayException: Failed to fetchResults.\n\
        \tat org.apache.flink.table.gateway.rest.handler.statement.FetchResultsHandler.handleRequest(FetchResultsHandler.java:91)\n\
        Caused by: org.apache.flink.table.gateway.service.utils.SqlExecutionException: Failed to execute the operation 39c81324-2e06-4867-9231-a158f90d6b42.\n\
        \tat java.base/java.lang.Thread.run(Thread.java:840)\n\t... 1 more\n"
        .to_string();
    for (class, message) in causes {
        trace.push_str(&format!(
            "Caused by: {class}: {message}\n\tat a.B.c(B.java:1)\n\t... 7 more\n"
        ));
    }
    trace.push_str("\nEnd of exception on server side>");
    json!({"errors": ["Internal server error.", trace]})
}
