//! `CREATE TABLE` and `ALTER TABLE`.

use sqlparser::ast::{Expr, Ident, ObjectName};

use super::{SqlExpr, SqlOption, SqlQuery, SqlType};
use crate::error::Span;

/// `CREATE TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `CREATE OR REPLACE`, `REPLACE`.
    pub replace: Replace,
    /// Name.
    pub name: ObjectName,
    /// Columns, watermark and keys, as written.
    pub elements: Vec<TableElement>,
    /// The order of the columns of `AS SELECT`, by their names; empty if not said.
    pub column_order: Vec<Ident>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `DISTRIBUTED BY`.
    pub distribution: Option<Distribution>,
    /// `PARTITIONED BY`.
    pub partitioned_by: Vec<Ident>,
    /// `WITH`.
    pub options: Vec<SqlOption>,
    /// `LIKE`.
    pub like: Option<TableLike>,
    /// `AS SELECT`.
    pub as_query: Option<SqlQuery>,
}

/// Whether a table that exists is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Replace {
    /// `CREATE`: it must not exist.
    No,
    /// `CREATE OR REPLACE`.
    CreateOrReplace,
    /// `REPLACE`: it must exist.
    Replace,
}

/// An element between the parentheses of `CREATE TABLE`, `ALTER TABLE ADD` and `MODIFY`.
#[derive(Debug, Clone, PartialEq)]
pub enum TableElement {
    /// A column.
    Column(TableColumn),
    /// `WATERMARK FOR c AS e`.
    Watermark(Watermark),
    /// `PRIMARY KEY`, `UNIQUE`.
    Key(TableKey),
}

/// A column's declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    /// Name.
    pub name: Ident,
    /// What it is.
    pub kind: ColumnKind,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `FIRST` or `AFTER c`, in `ALTER TABLE`.
    pub position: Option<ColumnPosition>,
    /// The whole declaration.
    pub span: Span,
}

/// The kinds of columns.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a table has few")]
pub enum ColumnKind {
    /// Stored in the table's rows.
    Physical(SqlType),
    /// Read from the connector beside the row.
    Metadata {
        /// Type.
        data_type: SqlType,
        /// The connector's name for it, if it is not the column's.
        key: Option<String>,
        /// Not written.
        is_virtual: bool,
    },
    /// Computed from other columns.
    Computed(SqlExpr),
}

/// Where `ALTER TABLE` puts a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnPosition {
    /// `FIRST`.
    First,
    /// `AFTER c`.
    After(Ident),
}

/// `WATERMARK FOR column AS expr`.
#[derive(Debug, Clone, PartialEq)]
pub struct Watermark {
    /// The column; several parts name a field of a row.
    pub column: Vec<Ident>,
    /// The watermark that a row gives.
    pub expr: SqlExpr,
    /// The whole declaration.
    pub span: Span,
}

/// `[CONSTRAINT n] PRIMARY KEY (..) [NOT ENFORCED]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableKey {
    /// `CONSTRAINT n`.
    pub name: Option<Ident>,
    /// `PRIMARY KEY`, not `UNIQUE`.
    pub primary: bool,
    /// Columns.
    pub columns: Vec<Ident>,
    /// `ENFORCED`, `NOT ENFORCED`, or nothing.
    pub enforced: Option<bool>,
    /// The whole declaration.
    pub span: Span,
}

/// `DISTRIBUTED BY HASH (c) INTO 4 BUCKETS`.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// `HASH`, `RANGE`, or nothing.
    pub kind: Option<DistributionKind>,
    /// Columns.
    pub columns: Vec<Ident>,
    /// Number of buckets.
    pub buckets: Option<u64>,
}

/// How rows are put into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DistributionKind {
    /// `HASH`.
    Hash,
    /// `RANGE`.
    Range,
}

/// `LIKE source (options)`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableLike {
    /// The table that is copied from.
    pub source: ObjectName,
    /// What is copied, how.
    pub options: Vec<(LikeMerge, LikeFeature)>,
}

/// What `LIKE` does with a feature of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LikeMerge {
    /// `INCLUDING`: added; a clash is an error.
    Including,
    /// `EXCLUDING`: left out.
    Excluding,
    /// `OVERWRITING`: added; the new table's wins a clash.
    Overwriting,
}

/// What of a table `LIKE` can copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LikeFeature {
    /// Everything.
    All,
    /// Keys.
    Constraints,
    /// `DISTRIBUTED BY`.
    Distribution,
    /// `PARTITIONED BY`.
    Partitions,
    /// Computed columns.
    Generated,
    /// Metadata columns.
    Metadata,
    /// `WITH`.
    Options,
    /// Watermarks.
    Watermarks,
}

/// `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub name: ObjectName,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// What changes.
    pub action: AlterTableAction,
}

/// The changes of `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterTableAction {
    /// `ADD (..)`.
    Add(Vec<TableElement>),
    /// `ADD DISTRIBUTION ..`.
    AddDistribution(Distribution),
    /// `ADD [IF NOT EXISTS] PARTITION ..`.
    AddPartitions {
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// Names and values as literals, a list a partition.
        partitions: Vec<Vec<(Ident, Option<Expr>)>>,
    },
    /// `MODIFY (..)`.
    Modify(Vec<TableElement>),
    /// `MODIFY DISTRIBUTION ..`.
    ModifyDistribution(Distribution),
    /// `DROP c`, `DROP (c, ..)`.
    DropColumns(Vec<Ident>),
    /// `DROP PRIMARY KEY`.
    DropPrimaryKey,
    /// `DROP CONSTRAINT n`.
    DropConstraint(Ident),
    /// `DROP WATERMARK`.
    DropWatermark,
    /// `DROP DISTRIBUTION`.
    DropDistribution,
    /// `DROP [IF EXISTS] PARTITION ..`.
    DropPartitions {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Names and values as literals, a list a partition.
        partitions: Vec<Vec<(Ident, Option<Expr>)>>,
    },
    /// `RENAME c TO d`.
    RenameColumn {
        /// From.
        from: Ident,
        /// To.
        to: Ident,
    },
    /// `RENAME TO n`.
    RenameTo(ObjectName),
    /// `SET (..)`.
    Set(Vec<SqlOption>),
    /// `RESET (..)`.
    Reset(Vec<String>),
}
