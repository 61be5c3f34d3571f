//! What the commands that speak to a Flink cluster share: how its gateway is reached, and how its
//! results are shown.

use std::io::{self, BufWriter, Write as _};
use std::time::Duration;

use clap::Args;

use super::shell::{ResultMode, closed, max_column_width, show_listing};
use super::tableau::{ChangeTable, NULL, rows};
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::gateway::client::Interrupted;
use crate::gateway::{Answer, Gateway, RemoteSession};
use crate::session::Listing;
use crate::types::Schema;

/// How long answers may take.
#[derive(Debug, Clone, Args)]
pub(crate) struct Patience {
    /// Seconds that each answer of the gateway may take.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "a number of seconds is expected")?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|d| !d.is_zero())
        .ok_or_else(|| "a number of seconds above zero is expected".into())
}

/// A gateway as the command line names it.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) patience: Patience,
}

impl Address {
    /// Opens a session with these settings.
    pub(crate) fn open(&self, settings: &[(String, String)]) -> Result<(Gateway, RemoteSession)> {
        let gateway = Gateway::connect(&self.url, self.patience.timeout)?;
        let session = gateway.open("ebbflow", settings)?;
        Ok((gateway, session))
    }
}

/// How results are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) mode: ResultMode,
    pub(crate) max_width: usize,
}

impl Look {
    /// As the settings of a client say.
    pub(crate) fn of(config: &Configuration) -> Self {
        Self {
            mode: ResultMode::of(config),
            max_width: max_column_width(config),
        }
    }

    /// As those settings say that are the client's own.
    pub(crate) fn of_settings(settings: &[(String, String)]) -> Self {
        let mut config = Configuration::default();
        for (key, value) in settings {
            if let Err(e) = config.set(key, value) {
                tracing::debug!("{e}");
            }
        }
        Self::of(&config)
    }
}

/// Shows what a statement gives: the changes of a query as they come, or a listing. Whether there was
/// something to show.
pub(crate) fn show(
    mut answer: Answer<'_>,
    look: Look,
    interrupted: Interrupted<'_>,
) -> Result<bool> {
    if answer.page().is_query {
        return show_query(answer, look, interrupted).map(|()| true);
    }
    let mut listing = Listing {
        columns: answer.page().schema.names(),
        rows: Vec::new(),
    };
    let mut page = Some(answer.page().clone());
    while let Some(now) = page {
        if listing.columns.is_empty() {
            listing.columns = now.schema.names();
        }
        listing
            .rows
            .extend(now.rows.into_iter().map(|(_, row)| row));
        page = answer.next_page(interrupted)?.cloned();
    }
    let done = |row: &Vec<Option<String>>| matches!(row.as_slice(), [Some(text)] if text == "OK");
    if listing.columns == ["result"] && listing.rows.iter().all(done) {
        return Ok(false);
    }
    show_listing(&listing, look.max_width).map(|()| true)
}

fn show_query(mut answer: Answer<'_>, look: Look, interrupted: Interrupted<'_>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout());
    let mut table: Option<ChangeTable> = None;
    let mut received = 0;
    let mut page = Some(answer.page().clone());
    while let Some(now) = page {
        for (kind, row) in &now.rows {
            if look.mode == ResultMode::Changelog {
                let texts: Vec<&str> = row.iter().map(|v| v.as_deref().unwrap_or("null")).collect();
                writeln!(out, "{}[{}]", kind.symbol(), texts.join(", ")).map_err(closed)?;
                continue;
            }
            if table.is_none() {
                let new = change_table(&now.schema, look.max_width);
                new.write_header(&mut out).map_err(closed)?;
                table = Some(new);
            }
            let text = |v: &Option<String>| v.clone().unwrap_or_else(|| NULL.into());
            let texts: Vec<String> = row.iter().map(text).collect();
            if let Some(table) = &table {
                table.write_texts(&mut out, *kind, &texts).map_err(closed)?;
            }
            received += 1;
        }
        out.flush().map_err(closed)?;
        page = answer.next_page(interrupted)?.cloned();
    }
    if look.mode != ResultMode::Changelog {
        match &table {
            Some(table) => {
                table.write_footer(&mut out).map_err(closed)?;
                writeln!(out, "Received a total of {}", rows(received)).map_err(closed)?;
            }
            None => writeln!(out, "Empty set").map_err(closed)?,
        }
    }
    out.flush().map_err(closed)
}

/// Texts come ready from the gateway: no zone is needed.
fn change_table(schema: &Schema, max_width: usize) -> ChangeTable {
    ChangeTable::new(schema, chrono_tz::UTC, max_width)
}

/// An error of a statement of a script, `offset` bytes into it: where no place in the statement is known,
/// its first line is.
pub(crate) fn in_script(e: Error, statement: &str, offset: usize) -> Error {
    let line = statement.lines().next().unwrap_or(statement);
    e.at(crate::error::Span::new(0, line.trim_end().len()))
        .shifted(offset)
}
