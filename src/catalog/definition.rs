//! What a table and a view are made of.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use sqlparser::ast;

use super::ObjectPath;
use crate::sql::unparse::quoted;
use crate::types::{Column, DataType, Schema, TimeAttribute};

/// An expression of a table's declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredExpr {
    /// The syntax tree.
    pub ast: ast::Expr,
    /// Flink's canonical text, with back-quoted names.
    pub text: String,
}

impl DeclaredExpr {
    /// Whether it is `SOURCE_WATERMARK()`.
    #[must_use]
    pub fn is_source_watermark(&self) -> bool {
        let ast::Expr::Function(call) = &self.ast else {
            return false;
        };
        let no_arguments = match &call.args {
            ast::FunctionArguments::None => true,
            ast::FunctionArguments::List(list) => list.args.is_empty(),
            ast::FunctionArguments::Subquery(_) => false,
        };
        no_arguments
            && call
                .name
                .to_string()
                .eq_ignore_ascii_case("SOURCE_WATERMARK")
    }
}

/// Where a column's values come from.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "few values, and most are the small one"
)]
pub enum ColumnKind {
    /// The connector's row.
    Physical,
    /// The connector's metadata under `key` (the column's name if `None`).
    Metadata {
        /// Key at the connector.
        key: Option<String>,
        /// Read only.
        is_virtual: bool,
    },
    /// An expression over other columns.
    Computed(DeclaredExpr),
}

/// A declared column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    /// Name.
    pub name: String,
    /// Type; derived for a computed column.
    pub data_type: DataType,
    /// Where its values come from.
    pub kind: ColumnKind,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// Set for a time attribute: the declared row time, or a computed `PROCTIME()`.
    pub time: Option<TimeAttribute>,
}

/// `WATERMARK FOR column AS expr`.
#[derive(Debug, Clone, PartialEq)]
pub struct WatermarkDefinition {
    /// The row-time column.
    pub column: String,
    /// The watermark.
    pub expr: DeclaredExpr,
}

/// `PRIMARY KEY (..) NOT ENFORCED`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryKey {
    /// Name of the constraint.
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
}

/// Values of partition columns, in their order.
pub type PartitionSpec = Vec<(String, String)>;

/// `DISTRIBUTED BY HASH (c) INTO 4 BUCKETS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// `HASH`, `RANGE`, or nothing.
    pub kind: Option<&'static str>,
    /// Columns.
    pub columns: Vec<String>,
    /// Number of buckets.
    pub buckets: Option<u64>,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DISTRIBUTED")?;
        if !self.columns.is_empty() {
            let columns: Vec<_> = self.columns.iter().map(|c| quoted(c)).collect();
            let kind = self.kind.unwrap_or("");
            write!(f, " BY {kind}({})", columns.join(", "))?;
        }
        match self.buckets {
            Some(n) => write!(f, " INTO {n} BUCKETS"),
            None => Ok(()),
        }
    }
}

/// A declared table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    /// Full name.
    pub path: ObjectPath,
    /// Columns in order.
    pub columns: Vec<ColumnDefinition>,
    /// Watermark, if declared.
    pub watermark: Option<WatermarkDefinition>,
    /// Primary key, if declared.
    pub primary_key: Option<PrimaryKey>,
    /// `PARTITIONED BY`.
    pub partitioned_by: Vec<String>,
    /// Partitions that `ALTER TABLE ADD PARTITION` declared.
    pub partitions: Vec<PartitionSpec>,
    /// `DISTRIBUTED`.
    pub distribution: Option<Distribution>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `WITH`.
    pub options: IndexMap<String, String>,
    /// `CREATE TEMPORARY`.
    pub temporary: bool,
}

impl TableDefinition {
    /// All columns as a query sees them.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let column = |c: &ColumnDefinition| Column {
            name: c.name.clone(),
            data_type: c.data_type.clone(),
            time: c.time,
        };
        Schema::new(self.columns.iter().map(column).collect())
    }

    /// Whether the source itself brings the watermarks: `WATERMARK FOR c AS SOURCE_WATERMARK()`.
    #[must_use]
    pub fn has_source_watermark(&self) -> bool {
        self.watermark
            .as_ref()
            .is_some_and(|watermark| watermark.expr.is_source_watermark())
    }

    /// The declared column called `name`.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnDefinition> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The columns that the connector reads: physical ones, then metadata ones.
    pub fn stored_columns(&self) -> impl Iterator<Item = &ColumnDefinition> {
        let physical = self
            .columns
            .iter()
            .filter(|c| c.kind == ColumnKind::Physical);
        let metadata = self
            .columns
            .iter()
            .filter(|c| matches!(c.kind, ColumnKind::Metadata { .. }));
        physical.chain(metadata)
    }
}

/// A view: a named query, expanded where it is used.
#[derive(Debug, Clone)]
pub struct ViewDefinition {
    /// Full name.
    pub path: ObjectPath,
    /// The query.
    pub query: Arc<ast::Query>,
    /// Its text with all names expanded, for SHOW CREATE VIEW.
    pub expanded_text: String,
    /// Output columns.
    pub schema: Schema,
    /// Catalog and database against which the query's names resolve.
    pub home: (String, String),
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `CREATE TEMPORARY`.
    pub temporary: bool,
}

/// A table or a view.
#[derive(Debug, Clone)]
pub enum CatalogEntry {
    /// A table.
    Table(Arc<TableDefinition>),
    /// A view.
    View(Arc<ViewDefinition>),
}

impl CatalogEntry {
    /// Output columns.
    #[must_use]
    pub fn schema(&self) -> Schema {
        match self {
            Self::Table(table) => table.schema(),
            Self::View(view) => view.schema.clone(),
        }
    }

    /// Whether it was created with `TEMPORARY`.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Table(table) => table.temporary,
            Self::View(view) => view.temporary,
        }
    }

    /// Whether it is a view.
    #[must_use]
    pub fn is_view(&self) -> bool {
        matches!(self, Self::View(_))
    }
}
