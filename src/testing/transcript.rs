//! The transcript of a script: each statement with what it gave, in the form that is compared with
//! Flink's.
//!
//! For every statement: its text, each line after `> `; then `OK`, or the header, rows and count of
//! a query, or lines, or `ERROR` and a reason. The script goes on after an error.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use crate::connectors::console::{Console, Stream};
use crate::connectors::registry::ConnectorContext;
use crate::error::{Error, Result};
use crate::session::{Session, StatementResult};
use crate::sql::script::Script;
use crate::types::text::RowPrinter;

/// Takes what sinks print, to put it where the statement stands.
#[derive(Debug, Default)]
struct Captured(Mutex<String>);

impl Captured {
    fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Console for Captured {
    fn write(&self, _stream: Stream, text: &str) -> Result<()> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(text);
        Ok(())
    }
}

/// Runs `script` and returns its transcript; `settings` are set before the first statement.
#[must_use]
pub fn run(script: &str, settings: &[(String, String)]) -> String {
    let console = Arc::new(Captured::default());
    let context = ConnectorContext {
        console: Arc::clone(&console) as Arc<dyn Console>,
        ..ConnectorContext::default()
    };
    let mut session = Session::with_context(context);
    let mut transcript = String::new();
    for (key, value) in settings {
        if let Err(e) = session.set(key, value) {
            let _ = writeln!(transcript, "ERROR {e}");
        }
    }
    for statement in Script::split(script).all() {
        for line in statement.text.lines() {
            let _ = writeln!(transcript, "> {line}");
        }
        let outcome = run_statement(&mut session, statement.text, &mut transcript);
        // rows of sinks come before the OK
        let printed = console.take();
        transcript.push_str(&printed);
        match outcome {
            Ok(true) => transcript.push_str("OK\n"),
            Ok(false) => {}
            Err(e) => {
                let _ = writeln!(transcript, "ERROR {}", one_line(&e));
            }
        }
    }
    transcript
}

/// Whether the statement ended with nothing to show.
fn run_statement(session: &mut Session, sql: &str, transcript: &mut String) -> Result<bool> {
    match session.execute(sql)? {
        StatementResult::Done | StatementResult::Quit => Ok(true),
        StatementResult::Lines(lines) => {
            for line in lines {
                let _ = writeln!(transcript, "{line}");
            }
            Ok(false)
        }
        StatementResult::Listing(listing) => {
            for line in listing.lines() {
                let _ = writeln!(transcript, "{line}");
            }
            Ok(false)
        }
        StatementResult::Job(job) => job.wait().map(|()| true),
        StatementResult::Query(mut query) => {
            let _ = writeln!(transcript, "# {}", query.schema());
            let printer = RowPrinter::new(query.schema());
            let mut rows = 0usize;
            while let Some(batch) = query.next_batch()? {
                for i in 0..batch.len() {
                    printer.write(&batch, i, transcript);
                    transcript.push('\n');
                }
                rows += batch.len();
            }
            let _ = writeln!(transcript, "# {rows} rows");
            Ok(false)
        }
    }
}

fn one_line(e: &Error) -> String {
    let mut text = e.to_string().replace('\n', " ");
    if let Some(hint) = e.hint_text() {
        text.push_str(&format!(" (hint: {})", hint.replace('\n', " ")));
    }
    text
}
