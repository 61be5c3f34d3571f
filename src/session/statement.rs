//! Which statement does what.

use super::{InsertJob, Query, Session};
use crate::error::{Error, Result};
use crate::plan::explain;
use crate::sql::Statement;
use crate::sql::ast::{Explain, ExplainDetail, Insert};

/// What a statement gives.
#[derive(Debug)]
pub enum StatementResult {
    /// Done; nothing to show.
    Done,
    /// Lines to show: SHOW, DESCRIBE, EXPLAIN.
    Lines(Vec<String>),
    /// A running query.
    Query(Query),
    /// A started job of INSERT statements.
    Job(InsertJob),
    /// `QUIT`: the caller should end.
    Quit,
}

impl Session {
    pub(super) fn execute_statement(&mut self, statement: Statement) -> Result<StatementResult> {
        match statement {
            Statement::Query(query) => {
                let plan = self.bind(&query.query)?;
                Ok(StatementResult::Query(self.start_query(&plan)?))
            }
            Statement::Insert(insert) => self.run_inserts(&[insert]),
            Statement::StatementSet(inserts) => self.run_inserts(&inserts),
            Statement::CreateTable(create) => self.create_table(&create),
            Statement::CreateView(create) => self.create_view(&create),
            Statement::Explain(explain) => self.explain(&explain),
            Statement::Set(Some(option)) => {
                self.config
                    .set(&option.key, &option.value)
                    .map_err(|e| e.at(option.span))?;
                Ok(StatementResult::Done)
            }
            Statement::Set(None) => {
                let lines = self
                    .config
                    .iter()
                    .map(|(k, v)| format!("'{k}' = '{v}'"))
                    .collect();
                Ok(StatementResult::Lines(lines))
            }
            Statement::Reset(Some(key)) => {
                self.config.reset(&key);
                Ok(StatementResult::Done)
            }
            Statement::Reset(None) => {
                self.config.reset_all();
                Ok(StatementResult::Done)
            }
            Statement::Quit => Ok(StatementResult::Quit),
            other => self.execute_ddl(other),
        }
    }

    fn execute_ddl(&mut self, statement: Statement) -> Result<StatementResult> {
        let _ = statement;
        Err(Error::plan("This statement is not supported yet"))
    }

    fn run_inserts(&mut self, inserts: &[Insert]) -> Result<StatementResult> {
        let job = self.start_inserts(inserts)?;
        if self.config.bool("table.dml-sync", false) {
            job.wait()?;
        }
        self.jobs.push(job.clone());
        Ok(StatementResult::Job(job))
    }

    fn explain(&self, explained: &Explain) -> Result<StatementResult> {
        let modes = explained.details.contains(&ExplainDetail::ChangelogMode);
        let plans = match explained.statement.as_ref() {
            Statement::Query(query) => {
                vec![
                    self.planner()
                        .plan_query(&self.bind(&query.query)?, false)?,
                ]
            }
            Statement::Insert(insert) => vec![self.plan_insert(insert)?],
            Statement::StatementSet(inserts) => inserts
                .iter()
                .map(|i| self.plan_insert(i))
                .collect::<Result<Vec<_>>>()?,
            _ => {
                return Err(Error::plan(
                    "EXPLAIN takes a query, an INSERT or a STATEMENT SET",
                ));
            }
        };
        let mut lines = vec!["== Optimized Physical Plan ==".to_string()];
        for plan in &plans {
            lines.extend(explain::tree(plan, modes).lines().map(str::to_string));
        }
        Ok(StatementResult::Lines(lines))
    }
}
