//! The interactive prompt: statements until `;`, with history, completion and colours.
//!
//! - [`helper`]: when a statement is whole, what completes a word, how a line is coloured,
//! - [`local`]: statements that run in this process,
//! - [`remote`]: statements that run on a Flink cluster,
//! - this file: the loop, and what statements answer.
//!
//! Without a terminal on both ends the same loop reads a pipe: no prompt, no colours.

mod helper;
mod local;
mod names;
mod remote;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use self::helper::SqlHelper;
use self::local::Local;
use self::names::Names;
use self::remote::Remote;
use crate::cli::report;
use crate::cli::shell::closed;
use crate::cli::signals::{OnInterrupt, Stopper};
use crate::error::{Error, Result};
use crate::gateway::{Gateway, RemoteSession};
use crate::session::Session;
use crate::sql::script::Script;

/// What runs the statements.
trait Engine {
    /// What stands before a line.
    fn prompt(&self) -> &'static str;

    /// What a terminal's user reads first.
    fn greeting(&self) -> String;

    /// Hears Ctrl-C.
    fn stopper(&self) -> &Stopper;

    /// Words that can be completed.
    fn names(&self) -> Names;

    /// The terminal has so many lines.
    fn set_height(&mut self, height: Option<usize>) {
        let _ = height;
    }

    /// Runs one statement and shows its rows. An error has its position in the statement.
    fn execute(&mut self, sql: &str) -> Result<Outcome>;

    /// Tells of jobs that have failed since the last time; whether there are none.
    fn report_jobs(&mut self) -> bool {
        true
    }

    /// Waits for the jobs that run in this process; whether all have finished.
    fn wait_for_jobs(&mut self) -> bool {
        true
    }

    /// Stops the jobs that run in this process.
    fn stop_jobs(&mut self) {}
}

/// What a statement came to.
enum Outcome {
    /// It has shown what it had to show.
    Shown,
    /// There was nothing to show.
    Done,
    /// A job runs: its name or id.
    Job(String),
    /// The program has to end.
    Quit,
}

const HELP: &str = "\
Statements end with ; and may have several lines.

SELECT ..                runs a query and shows its changes; Ctrl-C stops it
INSERT INTO .. SELECT .. starts a job in the background
CREATE, DROP, ALTER      change tables, views, functions, databases and catalogs
SHOW .., DESCRIBE ..     list what there is
EXPLAIN ..               shows the plan of a query
SET 'key' = 'value'      changes a setting; SET alone lists them; RESET forgets them
                         'sql-client.execution.result-mode' = 'tableau' | 'changelog' | 'table'
HELP                     this text
CLEAR                    clears the screen
QUIT, EXIT               end; so does Ctrl-D

Tab completes keywords, tables, columns, functions and settings.
";

/// Reads and runs statements until the input ends. Says whether all went well; from a terminal
/// always.
pub(crate) fn run(session: Session) -> bool {
    start(Box::new(Local::new(session)))
}

/// The same on a Flink cluster. Settings of the client itself are among `settings`.
pub(crate) fn run_on(
    gateway: &Gateway,
    session: RemoteSession,
    settings: &[(String, String)],
) -> bool {
    start(Box::new(Remote::new(gateway, session, settings)))
}

fn start(engine: Box<dyn Engine>) -> bool {
    let mut repl = Repl { engine, well: true };
    if let Err(e) = repl.engine.stopper().install(OnInterrupt::StopQuery) {
        tracing::warn!("{e}");
    }
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        match repl.interactive() {
            Ok(()) => true,
            Err(e) => {
                report(&e, "", None);
                false
            }
        }
    } else {
        repl.piped();
        repl.well
    }
}

/// Where statements are remembered: `$EBBFLOW_HISTORY`, or a file in the user's state folder.
fn history_file() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = variable("EBBFLOW_HISTORY") {
        return Some(path.into());
    }
    let state = variable("XDG_STATE_HOME").map(PathBuf::from).or_else(|| {
        let home = variable("HOME").or_else(|| variable("USERPROFILE"))?;
        Some(PathBuf::from(home).join(".local/state"))
    })?;
    Some(state.join("ebbflow/history"))
}

struct Repl {
    engine: Box<dyn Engine>,
    well: bool,
}

impl Repl {
    fn interactive(&mut self) -> Result<()> {
        let failed = |e: ReadlineError| Error::internal(format!("the terminal failed: {e}"));
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .auto_add_history(true)
            .build();
        let mut editor: Editor<SqlHelper, FileHistory> =
            Editor::with_config(config).map_err(failed)?;
        let history = history_file();
        if let Some(path) = &history {
            // there is none at the first start
            let _ = editor.load_history(path);
        }
        say(&format!(
            "{} Type HELP; for help, QUIT; to end.\n",
            self.engine.greeting()
        ))?;
        loop {
            editor.set_helper(Some(SqlHelper::new(self.engine.names())));
            let height = editor.dimensions().map(|(_, rows)| usize::from(rows));
            self.engine.set_height(height);
            let text = match editor.readline(self.engine.prompt()) {
                Ok(text) => text,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => break,
                Err(e) => return Err(failed(e)),
            };
            if let Some(path) = &history {
                if let Some(folder) = path.parent() {
                    let _ = std::fs::create_dir_all(folder);
                }
                if let Err(e) = editor.append_history(path) {
                    tracing::debug!("the history cannot be written: {e}");
                }
            }
            if self.run_text(&text) {
                break;
            }
        }
        self.engine.stop_jobs();
        Ok(())
    }

    /// Statements from a pipe, each run as soon as it is whole.
    fn piped(&mut self) {
        let mut text = String::new();
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            text.push_str(&line);
            text.push('\n');
            if helper::is_whole(&text) {
                if self.run_text(&text) {
                    return;
                }
                text.clear();
            }
        }
        if !self.run_text(&text) {
            self.well &= self.engine.wait_for_jobs();
        }
    }

    /// Runs what was typed; errors are told and end nothing. Whether the program has to end.
    fn run_text(&mut self, text: &str) -> bool {
        for statement in Script::split(text).all() {
            let result = self.run_statement(statement.text);
            self.engine.stopper().forget();
            match result {
                Ok(true) => return true,
                Ok(false) => {}
                Err(e) => {
                    self.well = false;
                    report(&e.shifted(statement.offset), text, None);
                }
            }
            self.well &= self.engine.report_jobs();
        }
        false
    }

    fn run_statement(&mut self, sql: &str) -> Result<bool> {
        match sql.to_ascii_uppercase().as_str() {
            "HELP" => say(HELP)?,
            "CLEAR" => {
                if io::stdout().is_terminal() {
                    say("\x1b[H\x1b[2J")?;
                }
            }
            "QUIT" | "EXIT" => return Ok(true),
            _ => match self.engine.execute(sql)? {
                Outcome::Quit => return Ok(true),
                Outcome::Shown => {}
                Outcome::Done => say("[INFO] Execute statement succeeded.\n\n")?,
                Outcome::Job(job) => say(&format!(
                    "[INFO] Submitting SQL update statement to the cluster...\n\
                     [INFO] SQL update statement has been successfully submitted to the cluster:\n\
                     {job}\n\n"
                ))?,
            },
        }
        Ok(false)
    }
}

fn say(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(closed)
}
