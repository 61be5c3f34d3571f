//! Statements that run on a Flink cluster, through its SQL Gateway.

use super::names::Names;
use super::{Engine, Outcome};
use crate::cli::remote::{Look, show};
use crate::cli::signals::Stopper;
use crate::config::Configuration;
use crate::error::Result;
use crate::gateway::rehearsal::single;
use crate::gateway::{Gateway, RemoteSession};
use crate::session::Session;
use crate::sql::outline::{Outline, OutlineKind};
use crate::sql::{FlinkParser, Statement};

/// A session of a gateway.
pub(super) struct Remote {
    greeting: String,
    session: RemoteSession,
    stopper: Stopper,
    /// Settings of the client: how results are shown.
    client: Configuration,
    /// Words of the language: what the cluster has is not asked for.
    words: Session,
}

impl Remote {
    pub(super) fn new(
        gateway: &Gateway,
        session: RemoteSession,
        settings: &[(String, String)],
    ) -> Self {
        let mut remote = Self {
            greeting: format!("Ebbflow at {}: {}.", gateway.address(), gateway.product()),
            session,
            stopper: Stopper::default(),
            client: Configuration::default(),
            words: Session::new(),
        };
        for (key, value) in settings {
            // the gateway has had its say already
            let _ = remote.set(key, value);
        }
        remote
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if key.starts_with("sql-client.") {
            self.client.set(key, value)?;
        }
        Ok(())
    }
}

impl Engine for Remote {
    fn prompt(&self) -> &'static str {
        "Flink SQL> "
    }

    fn greeting(&self) -> String {
        self.greeting.clone()
    }

    fn stopper(&self) -> &Stopper {
        &self.stopper
    }

    fn names(&self) -> Names {
        Names::of(&self.words)
    }

    fn execute(&mut self, sql: &str) -> Result<Outcome> {
        match Outline::of(sql).kind {
            OutlineKind::Quit => return Ok(Outcome::Quit),
            OutlineKind::Session => {
                if let Ok(Statement::Set(Some(option))) = FlinkParser::parse_statement(sql) {
                    self.set(&option.key, &option.value)?;
                }
            }
            _ => {}
        }
        let look = Look::of(&self.client);
        let interrupted = || self.stopper.is_interrupted();
        let edited = single(sql);
        let moved = |e: crate::error::Error| e.moved(|offset| edited.original(offset));
        let answer = self.session.execute(edited.text(), &interrupted);
        let Some(answer) = answer.map_err(moved)? else {
            return Ok(Outcome::Shown);
        };
        let page = answer.page();
        if let (Some(id), false) = (&page.job_id, page.is_query) {
            return Ok(Outcome::Job(format!("Job ID: {id}")));
        }
        let shown = show(answer, look, &interrupted).map_err(moved)?;
        Ok(if shown { Outcome::Shown } else { Outcome::Done })
    }
}
