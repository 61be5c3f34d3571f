//! Which statement does what.

use super::insert::PlannedInsert;
use super::show_create::HIDDEN;
use super::{InsertJob, Listing, Query, Session};
use crate::error::{Error, Result};
use crate::sql::Statement;
use crate::sql::ast::Insert;

/// What a statement gives.
#[derive(Debug)]
pub enum StatementResult {
    /// Done; nothing to show.
    Done,
    /// Lines to show: EXPLAIN.
    Lines(Vec<String>),
    /// A small table to show: SHOW, DESCRIBE.
    Listing(Listing),
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
                    .map(|(k, v)| match super::show_create::is_secret(k) {
                        true => format!("'{k}' = '{HIDDEN}'"),
                        false => format!("'{k}' = '{}'", v.replace('\'', "''")),
                    })
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
        match statement {
            Statement::CreateCatalog(create) => self.create_catalog(&create),
            Statement::CreateDatabase(create) => self.create_database(&create),
            Statement::CreateFunction(create) => self.create_function(&create),
            Statement::AlterCatalog { name, action } => self.alter_catalog(&name, &action),
            Statement::AlterDatabase { name, options } => self.alter_database(&name, &options),
            Statement::AlterTable(alter) => self.alter_table(&alter),
            Statement::AlterView { name, action } => self.alter_view(&name, &action),
            Statement::Update(update) => self.update(&update),
            Statement::Delete { table, selection } => self.delete(&table, selection.as_ref()),
            Statement::AlterFunction(alter) => self.alter_function(&alter),
            Statement::Drop(drop) => self.drop(&drop),
            Statement::Use(statement) => self.use_statement(&statement),
            Statement::LoadModule { name, .. } => self.load_module(&name),
            Statement::UnloadModule(name) => self.unload_module(&name),
            Statement::Show(show) => self.show(&show),
            Statement::Describe(describe) => self.describe(&describe),
            Statement::StopJob(stop) => self.stop_job(&stop),
            other => self.refuse(&other),
        }
    }

    /// Statements that Flink has and we have not.
    fn refuse(&self, statement: &Statement) -> Result<StatementResult> {
        let what = match statement {
            Statement::TruncateTable(_) => {
                return Err(Error::plan(
                    "TRUNCATE TABLE statement is not supported in streaming mode.",
                ));
            }
            Statement::AnalyzeTable(_) => {
                return Err(Error::plan(
                    "ANALYZE TABLE is not supported for streaming mode now",
                ));
            }
            Statement::AddJar(_) | Statement::RemoveJar(_) => return Ok(StatementResult::Done),
            Statement::CreateMaterializedTable(_) => "CREATE MATERIALIZED TABLE",
            Statement::AlterMaterializedTable { .. } => "ALTER MATERIALIZED TABLE",
            Statement::Call(_) => "CALL",
            Statement::CompilePlan { .. } => "COMPILE PLAN",
            Statement::ExecutePlan(_) => "EXECUTE PLAN",
            Statement::Unsupported(what) => what,
            _ => "This statement",
        };
        Err(self.unsupported(what))
    }

    /// The refusal of a statement that there will be no use for.
    #[expect(
        clippy::unused_self,
        reason = "hints may come to depend on the session"
    )]
    pub(super) fn unsupported(&self, what: &str) -> Error {
        let error = Error::plan(format!("{what} is not supported"));
        match what {
            "CREATE MATERIALIZED TABLE" => error.hint(
                "CREATE TABLE and INSERT INTO keep a table fresh: CREATE TABLE .. AS SELECT does both",
            ),
            "COMPILE PLAN" | "EXECUTE PLAN" => {
                error.hint("keep the SQL script: a job takes up its checkpoint by the script")
            }
            "CALL" => error.hint("there are no procedures"),
            _ => error,
        }
    }

    pub(super) fn run_inserts(&mut self, inserts: &[Insert]) -> Result<StatementResult> {
        self.run_planned(self.plan_inserts(inserts)?)
    }

    /// The same with INSERTs that have been planned.
    pub(super) fn run_planned(&mut self, inserts: Vec<PlannedInsert>) -> Result<StatementResult> {
        let job = self.start(inserts)?;
        self.tell(&job);
        if self.dml_sync() {
            job.wait()?;
        }
        self.jobs.push(job.clone());
        Ok(StatementResult::Job(job))
    }

    /// Tells the listener of a job that has started.
    pub(super) fn tell(&self, job: &InsertJob) {
        if let Some(listener) = &self.job_listener {
            listener(job.handle());
        }
    }

    /// Whether an INSERT is waited for.
    pub(super) fn dml_sync(&self) -> bool {
        self.config.bool("table.dml-sync", false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_alone_lists_the_settings_without_secrets() {
        let mut session = Session::new();
        session.execute("SET 'a.b' = 'it''s'").unwrap();
        session.execute("SET 's3.secret-key' = 'hidden'").unwrap();
        let StatementResult::Lines(lines) = session.execute("SET").unwrap() else {
            panic!("SET lists lines");
        };
        assert_eq!(lines, ["'a.b' = 'it''s'", "'s3.secret-key' = '******'"]);
    }
}
