//! `ebbflow check`: what of a script Flink does not have.
//!
//! Two things know it. Names (connectors, formats, options, functions, settings) carry their origin in
//! our catalogs, which a test compares with what Flink's own factories say ([`facts`]). What only the
//! meaning of a query tells (an extension of the planner) is read off its plan: every statement is
//! planned, and nothing is run.
//!
//! - [`options`]: the options of a table,
//! - [`names`]: functions and hints of a statement,
//! - [`jars`]: the artifacts of Flink's connectors and formats,
//! - [`queries`]: extensions that a plan shows,
//! - this file: one statement after the other.

mod facts;
pub mod jars;
mod names;
mod options;
mod queries;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use sqlparser::ast::{ObjectName, Query};

use crate::catalog::{CatalogEntry, TableDefinition};
use crate::config::Configuration;
use crate::error::{Error, ErrorKind, Span};
use crate::plan::binder::object_parts;
use crate::session::Session;
use crate::sql::ast::{AlterTableAction, CreateTable, Insert, SqlOption};
use crate::sql::script::Script;
use crate::sql::{FlinkParser, Statement};

/// Something of a script that Flink does not have, or that is worth knowing.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What and where.
    pub error: Error,
    /// Whether the script runs on Flink all the same.
    pub note: bool,
}

/// Checks the statements of one or more scripts, in their order.
pub struct Checker {
    session: Session,
    /// What a cluster has from jars of the user's.
    provided: BTreeSet<String>,
    /// Functions that the scripts declare with a Java class.
    declared: BTreeSet<String>,
    /// What was noted once already.
    noted: BTreeSet<String>,
    findings: Vec<Finding>,
}

impl Checker {
    /// A checker for scripts that run in `session`; `provided` are connectors, formats and functions
    /// that the cluster has beside Flink's own.
    pub fn new(session: Session, provided: impl IntoIterator<Item = String>) -> Self {
        Self {
            session,
            provided: provided.into_iter().map(|n| n.to_lowercase()).collect(),
            declared: BTreeSet::new(),
            noted: BTreeSet::new(),
            findings: Vec::new(),
        }
    }

    /// What is to be said of `sql`, in the order of its text.
    pub fn check(&mut self, sql: &str) -> Vec<Finding> {
        let mut all = Vec::new();
        for statement in Script::split(sql).all() {
            let quits = self.statement(statement.text);
            let mut found = std::mem::take(&mut self.findings);
            found.sort_by_key(|f| f.error.span().map_or(0, |span| span.start));
            all.extend(found.into_iter().map(|f| Finding {
                error: f.error.shifted(statement.offset),
                ..f
            }));
            if quits {
                break;
            }
        }
        all
    }

    /// Checks one statement; says whether it ends the script.
    fn statement(&mut self, text: &str) -> bool {
        let statement = match FlinkParser::parse_statement(text) {
            Ok(statement) => statement,
            Err(e) => {
                self.refused(e, text);
                return false;
            }
        };
        match &statement {
            Statement::Quit => return true,
            Statement::CreateTable(create) => self.create_table(create, &statement, text),
            Statement::CreateView(create) => {
                self.query(&create.query.query);
                self.run(&statement, text);
            }
            Statement::CreateFunction(create) => {
                if let Some(name) = create.name.0.last().and_then(|p| p.as_ident()) {
                    self.declared.insert(name.value.to_lowercase());
                }
                if !create.temporary {
                    self.run(&statement, text);
                }
            }
            Statement::AlterTable(alter) => {
                self.run(&statement, text);
                if let (AlterTableAction::Set(options), Some(table)) =
                    (&alter.action, self.table(&alter.name))
                {
                    self.options(options, &table.options);
                }
            }
            Statement::Insert(_) | Statement::StatementSet(_) | Statement::Query(_) => {
                self.job(&statement, text);
            }
            Statement::Explain(explain) => self.job(&explain.statement, text),
            Statement::Set(Some(option)) => self.setting(option),
            Statement::Update(_) | Statement::Delete { .. } => {
                let word = text.split_whitespace().next().unwrap_or_default();
                let what = format!("{} in streaming mode", word.to_uppercase());
                self.missing(
                    what,
                    Some(first_word(text)),
                    "Flink has it for batches only",
                );
            }
            Statement::CreateCatalog(_)
            | Statement::CreateDatabase(_)
            | Statement::AlterDatabase { .. }
            | Statement::AlterCatalog { .. }
            | Statement::AlterView { .. }
            | Statement::Drop(_)
            | Statement::Use(_)
            | Statement::Reset(_)
            | Statement::LoadModule { .. }
            | Statement::UnloadModule(_) => self.run(&statement, text),
            Statement::AddJar(jar) => self.provided_by(jar),
            // they show something, or Flink knows more of them than we
            _ => {}
        }
        false
    }

    fn create_table(&mut self, create: &CreateTable, statement: &Statement, text: &str) {
        match &create.as_query {
            Some(query) => {
                self.query(&query.query);
                let all = create.options.iter();
                let all = all.map(|o| (o.key.clone(), o.value.clone())).collect();
                self.options(&create.options, &all);
                self.plan(statement, text);
                let result = self.session.declare_table_as(create);
                // what is wrong with it has been said with its plan
                if let Err(e) = result {
                    tracing::debug!("{e}");
                }
            }
            None => {
                let before = self.findings.len();
                self.run(statement, text);
                let table = self.table(&create.name);
                if let Some(table) = table.filter(|_| self.findings.len() == before) {
                    self.options(&create.options, &table.options);
                }
            }
        }
    }

    /// A statement that makes rows.
    fn job(&mut self, statement: &Statement, text: &str) {
        match statement {
            Statement::Query(query) => self.query(&query.query),
            Statement::Insert(insert) => self.insert(insert),
            Statement::StatementSet(inserts) => inserts.iter().for_each(|i| self.insert(i)),
            Statement::CreateTable(create) => {
                if let Some(query) = &create.as_query {
                    self.query(&query.query);
                }
            }
            _ => {}
        }
        self.plan(statement, text);
    }

    fn insert(&mut self, insert: &Insert) {
        self.query(&insert.source.query);
        if let (Some(table), false) = (self.table(&insert.table), insert.hints.is_empty()) {
            self.options(&insert.hints, &table.options);
        }
    }

    /// Functions and hints of a query.
    fn query(&mut self, query: &Query) {
        let names = names::of_query(query);
        for (name, span) in names.functions {
            if self.is_unknown_function(&name) {
                self.missing(
                    format!("the function {name}"),
                    Some(span),
                    "CREATE FUNCTION .. AS 'class' USING JAR names one of your own for Flink; \
                     --with NAME says that the cluster has it",
                );
            }
        }
        for (table, options) in names.hints {
            if let Some(definition) = self.table(&table) {
                self.options(&options, &definition.options);
            }
        }
    }

    fn is_unknown_function(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        let ours = self.session.functions.entry(name).is_some_and(|e| !e.user);
        !(ours
            || names::is_known_to_flink(name)
            || self.declared.contains(&lower)
            || self.provided.contains(&lower))
    }

    /// Plans a statement, and looks for what goes beyond Flink.
    fn plan(&mut self, statement: &Statement, text: &str) {
        match self.session.physical_plans(statement) {
            Ok(plans) => {
                for found in queries::extensions(&plans, statement, &self.provided) {
                    self.missing(found.what, found.span, found.why);
                }
            }
            Err(e) => self.not_planned(e, text),
        }
    }

    /// What cannot be planned here: for a reason that was named, for one that Flink need not have, or
    /// because Flink refuses it as well.
    fn not_planned(&mut self, e: Error, text: &str) {
        if self.findings.iter().any(|f| !f.note) {
            return;
        }
        let message = e.message().to_lowercase();
        let named = |name: &String| {
            message.contains(&format!("'{name}'"))
                || message.contains(&format!("signature {name}("))
        };
        let foreign = [
            "could not find any factory for identifier",
            "could not find any format factory for identifier",
            // the options have been checked with their table
            "unsupported options found",
        ]
        .iter()
        .any(|start| message.starts_with(start));
        let of_users = self.provided.iter().chain(&self.declared).any(named);
        if foreign || of_users || message.contains("implemented by the class") {
            self.note(
                "this statement is checked by its names alone: what it uses of the cluster's is not here",
                Some(first_word(text)),
                &format!("here it cannot be planned: {}", first_line(e.message())),
            );
            return;
        }
        self.refused(e, text);
    }

    /// Runs a statement that only declares.
    fn run(&mut self, statement: &Statement, text: &str) {
        if let Err(e) = self.session.execute_parsed(statement.clone()) {
            self.not_planned(e, text);
        }
    }

    /// An error that has nothing to do with where the script runs.
    fn refused(&mut self, e: Error, text: &str) {
        let error = match e.kind() {
            ErrorKind::Portability => e,
            _ => e.at(first_word(text)),
        };
        self.findings.push(Finding { error, note: false });
    }

    fn setting(&mut self, option: &SqlOption) {
        let SqlOption { key, value, span } = option;
        if Configuration::is_own_key(key) {
            self.note(
                &format!("the setting '{key}' is Ebbflow's: it has no effect in Flink"),
                Some(*span),
                "the script runs there all the same",
            );
        } else if Configuration::is_own_value(key, value) {
            self.missing(
                format!("the value '{value}' of the setting '{key}'"),
                Some(*span),
                "Flink has EXACTLY_ONCE and AT_LEAST_ONCE",
            );
        }
        if let Err(e) = self.session.set(key, value) {
            self.refused(e.at(*span), key);
        }
    }

    /// The table that a name stands for.
    fn table(&self, name: &ObjectName) -> Option<TableDefinition> {
        let parts = object_parts(name).ok()?;
        let path = self.session.catalogs.resolve(&parts).ok()?;
        match self.session.catalogs.get(&path)? {
            CatalogEntry::Table(table) => Some(TableDefinition::clone(table)),
            CatalogEntry::View(_) => None,
        }
    }

    fn missing(&mut self, what: String, span: Option<Span>, hint: &str) {
        let mut error = Error::portability(what);
        if !hint.is_empty() {
            error = error.hint(hint);
        }
        if let Some(span) = span {
            error = error.at(span);
        }
        self.findings.push(Finding { error, note: false });
    }

    /// Says something once.
    fn note(&mut self, what: &str, span: Option<Span>, hint: &str) {
        if !self.noted.insert(what.to_string()) {
            return;
        }
        let mut error = Error::portability(what).hint(hint);
        if let Some(span) = span {
            error = error.at(span);
        }
        self.findings.push(Finding { error, note: true });
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

fn first_word(text: &str) -> Span {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    Span::new(0, end)
}
