//! `CREATE` and `ALTER` of everything but tables.

use sqlparser::ast::{Expr, Ident, ObjectName};

use super::{AlterTableAction, CreateTable, SqlOption, SqlQuery};

/// `CREATE VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `OR REPLACE`, which Flink reads and then ignores.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Name.
    pub name: ObjectName,
    /// Column names; empty if not said.
    pub columns: Vec<Ident>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// Its query.
    pub query: SqlQuery,
}

/// `CREATE MATERIALIZED TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateMaterializedTable {
    /// The table: its name, elements, options and query. `replace` says `OR ALTER`.
    pub table: CreateTable,
    /// `START_MODE`, as written.
    pub start_mode: Option<String>,
    /// `FRESHNESS`, an interval.
    pub freshness: Option<Expr>,
    /// `REFRESH_MODE`.
    pub refresh_mode: Option<RefreshMode>,
}

/// How a materialized table is kept fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefreshMode {
    /// By a job that runs for ever.
    Continuous,
    /// By computing it anew.
    Full,
}

/// `ALTER MATERIALIZED TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterMaterializedTableAction {
    /// `SUSPEND`.
    Suspend,
    /// `RESUME [WITH (..)]`.
    Resume(Vec<SqlOption>),
    /// `REFRESH [PARTITION (..)]`.
    Refresh(Vec<(Ident, Option<Expr>)>),
    /// `SET FRESHNESS = ..`.
    SetFreshness(Expr),
    /// `SET REFRESH_MODE = ..`.
    SetRefreshMode(RefreshMode),
    /// `SET (..)`.
    Set(Vec<SqlOption>),
    /// `RESET (..)`.
    Reset(Vec<String>),
    /// `AS query`.
    AsQuery(SqlQuery),
    /// `ADD`, `MODIFY` and `DROP`, as of a table.
    Table(AlterTableAction),
}

/// `CREATE CATALOG`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateCatalog {
    /// Name.
    pub name: Ident,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `WITH`.
    pub options: Vec<SqlOption>,
}

/// `CREATE DATABASE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateDatabase {
    /// Name.
    pub name: ObjectName,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `WITH`.
    pub options: Vec<SqlOption>,
}

/// `CREATE FUNCTION`, `ALTER FUNCTION`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `SYSTEM`.
    pub system: bool,
    /// `IF NOT EXISTS` of `CREATE`, `IF EXISTS` of `ALTER`.
    pub lenient: bool,
    /// Name.
    pub name: ObjectName,
    /// The class after `AS`.
    pub class: String,
    /// `LANGUAGE`.
    pub language: Option<String>,
    /// `USING JAR 'f', ..`: kind and path.
    pub resources: Vec<(String, String)>,
    /// `WITH`.
    pub options: Vec<SqlOption>,
}

/// `ALTER VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterViewAction {
    /// `RENAME TO n`.
    RenameTo(ObjectName),
    /// `AS query`.
    AsQuery(SqlQuery),
}

/// `ALTER CATALOG`.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterCatalogAction {
    /// `SET (..)`.
    Set(Vec<SqlOption>),
    /// `RESET (..)`.
    Reset(Vec<String>),
    /// `COMMENT '..'`.
    Comment(String),
}
