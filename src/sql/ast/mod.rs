//! The statements of Flink SQL.
//!
//! Queries and expressions are `sqlparser`'s AST (its conventions for what it has no form for are
//! listed in [`crate::sql`]); everything around them is here. Positions are byte offsets into the
//! text given to the parser.

mod ddl;
mod table;

use sqlparser::ast::{Expr, Ident, ObjectName, Query};

use crate::error::Span;
use crate::types::DataType;

pub use ddl::{
    AlterCatalogAction, AlterMaterializedTableAction, AlterViewAction, CreateCatalog,
    CreateDatabase, CreateFunction, CreateMaterializedTable, CreateView, RefreshMode,
};
pub use table::{
    AlterTable, AlterTableAction, ColumnKind, ColumnPosition, CreateTable, Distribution,
    DistributionKind, LikeFeature, LikeMerge, Replace, TableColumn, TableElement, TableKey,
    TableLike, Watermark,
};

/// An expression inside a DDL statement.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlExpr {
    /// The expression.
    pub expr: Expr,
    /// As the user wrote it.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A query with its text: a whole statement, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlQuery {
    /// The query.
    pub query: Box<Query>,
    /// As the user wrote it.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A data type with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlType {
    /// The type.
    pub data_type: DataType,
    /// Where.
    pub span: Span,
}

/// A `'key' = 'value'` pair.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlOption {
    /// Key, without quotes.
    pub key: String,
    /// Value, without quotes.
    pub value: String,
    /// Where the pair lies.
    pub span: Span,
}

/// One statement.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Statement {
    /// A query.
    Query(SqlQuery),
    /// `INSERT INTO`, `INSERT OVERWRITE`, with or without `EXECUTE`.
    Insert(Insert),
    /// `EXECUTE STATEMENT SET BEGIN .. END` and `BEGIN STATEMENT SET; .. END`.
    StatementSet(Vec<Insert>),
    /// `CREATE [OR REPLACE] [TEMPORARY] TABLE`.
    CreateTable(CreateTable),
    /// `CREATE [TEMPORARY] VIEW`.
    CreateView(CreateView),
    /// `CREATE [OR ALTER] MATERIALIZED TABLE`.
    CreateMaterializedTable(CreateMaterializedTable),
    /// `CREATE CATALOG`.
    CreateCatalog(CreateCatalog),
    /// `CREATE DATABASE`.
    CreateDatabase(CreateDatabase),
    /// `CREATE [TEMPORARY [SYSTEM]] FUNCTION`.
    CreateFunction(CreateFunction),
    /// `ALTER TABLE`.
    AlterTable(AlterTable),
    /// `ALTER MATERIALIZED TABLE`.
    AlterMaterializedTable {
        /// The table.
        name: ObjectName,
        /// What changes.
        action: AlterMaterializedTableAction,
    },
    /// `ALTER VIEW`.
    AlterView {
        /// The view.
        name: ObjectName,
        /// What changes.
        action: AlterViewAction,
    },
    /// `ALTER DATABASE d SET (..)`.
    AlterDatabase {
        /// The database.
        name: ObjectName,
        /// Options to set.
        options: Vec<SqlOption>,
    },
    /// `ALTER CATALOG`.
    AlterCatalog {
        /// The catalog.
        name: Ident,
        /// What changes.
        action: AlterCatalogAction,
    },
    /// `ALTER FUNCTION`.
    AlterFunction(CreateFunction),
    /// `DROP ..`.
    Drop(Drop),
    /// `USE [CATALOG]`, `USE MODULES`.
    Use(Use),
    /// `LOAD MODULE m [WITH (..)]`.
    LoadModule {
        /// The module.
        name: Ident,
        /// Its options.
        options: Vec<SqlOption>,
    },
    /// `UNLOAD MODULE m`.
    UnloadModule(Ident),
    /// `SHOW ..`.
    Show(Show),
    /// `DESCRIBE ..`.
    Describe(Describe),
    /// `EXPLAIN ..`.
    Explain(Explain),
    /// `SET 'k' = 'v'`, or `SET` alone, which lists.
    Set(Option<SqlOption>),
    /// `RESET 'k'`, or `RESET` alone, which resets all.
    Reset(Option<String>),
    /// `UPDATE`.
    Update(Update),
    /// `DELETE FROM`.
    Delete {
        /// The table.
        table: ObjectName,
        /// Which rows.
        selection: Option<Expr>,
    },
    /// `TRUNCATE TABLE`.
    TruncateTable(ObjectName),
    /// `ANALYZE TABLE .. COMPUTE STATISTICS ..`.
    AnalyzeTable(ObjectName),
    /// `CALL procedure(..)`; a function call.
    Call(Expr),
    /// `COMPILE PLAN 'f' [IF NOT EXISTS] FOR ..`, `COMPILE AND EXECUTE PLAN 'f' FOR ..`.
    CompilePlan {
        /// The plan's file.
        path: String,
        /// An existing file is kept.
        if_not_exists: bool,
        /// The plan is run as well.
        execute: bool,
        /// What is compiled: an insert or a statement set.
        statement: Box<Statement>,
    },
    /// `EXECUTE PLAN 'f'`.
    ExecutePlan(String),
    /// `ADD JAR 'f'`.
    AddJar(String),
    /// `REMOVE JAR 'f'`.
    RemoveJar(String),
    /// `STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]`.
    StopJob(StopJob),
    /// `CREATE MODEL`, `ALTER MODEL` and other statements that Flink parses and we have no use for;
    /// the words that name the statement.
    Unsupported(String),
    /// `QUIT`, `EXIT`.
    Quit,
    /// `HELP`.
    Help,
    /// `CLEAR`.
    Clear,
}

/// `INSERT`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// `OVERWRITE` instead of `INTO`.
    pub overwrite: bool,
    /// The table written to.
    pub table: ObjectName,
    /// Options of a hint behind the table.
    pub hints: Vec<SqlOption>,
    /// `PARTITION (p = 'v', ..)`: names, and values as literals.
    pub partition: Vec<(Ident, Expr)>,
    /// The columns written to; empty if not said.
    pub columns: Vec<Ident>,
    /// Where the rows come from.
    pub source: SqlQuery,
    /// `ON CONFLICT DO ..`.
    pub on_conflict: Option<ConflictStrategy>,
    /// The whole statement.
    pub span: Span,
}

/// What an upsert sink does when several rows claim one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConflictStrategy {
    /// `DO NOTHING`: the first stays.
    Nothing,
    /// `DO ERROR`.
    Error,
    /// `DO DEDUPLICATE`: the last counts.
    Deduplicate,
}

/// `UPDATE t SET c = e, .. WHERE ..`.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The table.
    pub table: ObjectName,
    /// Columns and new values.
    pub assignments: Vec<(Ident, Expr)>,
    /// Which rows.
    pub selection: Option<Expr>,
}
/// `DROP`.
#[derive(Debug, Clone, PartialEq)]
pub struct Drop {
    /// What kind of thing.
    pub kind: ObjectKind,
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `TEMPORARY SYSTEM FUNCTION`.
    pub system: bool,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// Name.
    pub name: ObjectName,
    /// `CASCADE` of a database.
    pub cascade: bool,
}

/// The kinds of catalog objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A catalog.
    Catalog,
    /// A database.
    Database,
    /// A table.
    Table,
    /// A view.
    View,
    /// A materialized table.
    MaterializedTable,
    /// A function.
    Function,
    /// A model.
    Model,
}

/// `USE`.
#[derive(Debug, Clone, PartialEq)]
pub enum Use {
    /// `USE [catalog.]database`.
    Database(ObjectName),
    /// `USE CATALOG c`.
    Catalog(Ident),
    /// `USE MODULES m, ..`.
    Modules(Vec<Ident>),
}

/// `SHOW`.
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// What is shown.
    pub what: ShowWhat,
    /// `FROM` or `IN`: a database, or the table of `SHOW COLUMNS`.
    pub from: Option<ObjectName>,
    /// `[NOT] LIKE`.
    pub filter: Option<ShowFilter>,
}

/// What `SHOW` lists.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowWhat {
    /// `CATALOGS`.
    Catalogs,
    /// `CURRENT CATALOG`.
    CurrentCatalog,
    /// `DATABASES`.
    Databases,
    /// `CURRENT DATABASE`.
    CurrentDatabase,
    /// `TABLES`.
    Tables,
    /// `VIEWS`.
    Views,
    /// `MATERIALIZED TABLES`.
    MaterializedTables,
    /// `COLUMNS`.
    Columns,
    /// `PARTITIONS t`.
    Partitions(ObjectName),
    /// `FUNCTIONS`, `USER FUNCTIONS`.
    Functions {
        /// Only those that users made.
        user: bool,
    },
    /// `PROCEDURES`.
    Procedures,
    /// `MODULES`, `FULL MODULES`.
    Modules {
        /// Those that are loaded but not used as well.
        full: bool,
    },
    /// `MODELS`.
    Models,
    /// `JARS`.
    Jars,
    /// `JOBS`.
    Jobs,
    /// `CREATE TABLE t` and so on: the statement that makes it.
    Create(ObjectKind, ObjectName),
}

/// `[NOT] {LIKE | ILIKE} 'pattern'`.
#[derive(Debug, Clone, PartialEq)]
pub struct ShowFilter {
    /// `NOT`.
    pub negated: bool,
    /// `ILIKE`.
    pub ignore_case: bool,
    /// The pattern.
    pub pattern: String,
}

/// `DESCRIBE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Describe {
    /// What is described.
    pub what: DescribeWhat,
    /// `EXTENDED`.
    pub extended: bool,
}

/// What `DESCRIBE` is asked about.
#[derive(Debug, Clone, PartialEq)]
pub enum DescribeWhat {
    /// A table or view.
    Table(ObjectName),
    /// `CATALOG c`.
    Catalog(Ident),
    /// `DATABASE d`.
    Database(ObjectName),
    /// `FUNCTION f`.
    Function(ObjectName),
    /// `MODEL m`.
    Model(ObjectName),
    /// `JOB 'id'`.
    Job(String),
}

/// `EXPLAIN`.
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    /// What is shown beside the plan.
    pub details: Vec<ExplainDetail>,
    /// What is explained: a query, an insert or a statement set.
    pub statement: Box<Statement>,
}

/// The details of `EXPLAIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExplainDetail {
    /// `ESTIMATED_COST`.
    EstimatedCost,
    /// `CHANGELOG_MODE`.
    ChangelogMode,
    /// `JSON_EXECUTION_PLAN`.
    JsonExecutionPlan,
    /// `PLAN_ADVICE`.
    PlanAdvice,
}

/// `STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]`.
#[derive(Debug, Clone, PartialEq)]
pub struct StopJob {
    /// The job.
    pub id: String,
    /// Take a savepoint.
    pub with_savepoint: bool,
    /// Let the sources end first, so that all windows fire.
    pub with_drain: bool,
}
