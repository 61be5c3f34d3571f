//! A table's declaration: read from its statement, and checked as a whole.
//!
//! CREATE, LIKE and ALTER put a [`TableDefinition`] together from parts of statements; then
//! [`Session::check_table`] derives the types of computed columns and refuses what does not fit.

use std::collections::BTreeMap;

use super::Session;
use crate::catalog::{
    ColumnDefinition, ColumnKind, DeclaredExpr, Distribution, PrimaryKey, TableDefinition,
    WatermarkDefinition,
};
use crate::error::{Error, Result, Span, did_you_mean};
use crate::expr::{Expr, ExprKind};
use crate::sql::ast::{self, DistributionKind, SqlExpr, TableColumn, TableElement};
use crate::sql::unparse;
use crate::types::{Column, DataType, Schema, TimeAttribute, TypeKind};

/// Columns, watermark and key as a statement declares them, unchecked.
#[derive(Debug, Default)]
pub(super) struct Declaration {
    pub(super) columns: Vec<ColumnDefinition>,
    pub(super) watermark: Option<WatermarkDefinition>,
    pub(super) primary_key: Option<PrimaryKey>,
    pub(super) places: Places,
}

/// Where the parts that this statement declares lie in its text.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) columns: BTreeMap<String, Span>,
    watermark: Option<Span>,
    primary_key: Option<Span>,
}

impl Declaration {
    /// Reads the elements between the parentheses.
    pub(super) fn read(elements: &[TableElement]) -> Result<Self> {
        let mut read = Self::default();
        for element in elements {
            match element {
                TableElement::Column(column) => read.add_column(column)?,
                TableElement::Key(key) => read.add_key(key)?,
                TableElement::Watermark(watermark) => read.add_watermark(watermark)?,
            }
        }
        // a key of this statement makes the columns of this statement NOT NULL
        if let Some(key) = &read.primary_key {
            for column in &mut read.columns {
                if key.columns.contains(&column.name) && column.kind == ColumnKind::Physical {
                    column.data_type.nullable = false;
                }
            }
        }
        Ok(read)
    }

    fn add_column(&mut self, column: &TableColumn) -> Result<()> {
        let (data_type, kind) = match &column.kind {
            ast::ColumnKind::Physical(t) => (t.data_type.clone(), ColumnKind::Physical),
            ast::ColumnKind::Metadata {
                data_type,
                key,
                is_virtual,
            } => (
                data_type.data_type.clone(),
                ColumnKind::Metadata {
                    key: key.clone(),
                    is_virtual: *is_virtual,
                },
            ),
            // its type is derived later
            ast::ColumnKind::Computed(expr) => (
                TypeKind::Null.nullable(),
                ColumnKind::Computed(declared(expr)),
            ),
        };
        let name = column.name.value.clone();
        if self
            .places
            .columns
            .insert(name.clone(), column.span)
            .is_some()
        {
            return Err(Error::plan(format!(
                "A column named '{name}' already exists in the table."
            ))
            .at(column.span));
        }
        self.columns.push(ColumnDefinition {
            name,
            data_type,
            kind,
            comment: column.comment.clone(),
            time: None,
        });
        Ok(())
    }

    fn add_key(&mut self, key: &ast::TableKey) -> Result<()> {
        if !key.primary {
            return Err(Error::plan("UNIQUE constraint is not supported yet").at(key.span));
        }
        if key.enforced != Some(false) {
            return Err(Error::plan(
                "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint. ENFORCED/NOT \
                 ENFORCED controls if the constraint checks are performed on the incoming/outgoing \
                 data. Flink does not own the data therefore the only supported mode is the NOT \
                 ENFORCED mode",
            )
            .at(key.span)
            .hint("write PRIMARY KEY (..) NOT ENFORCED"));
        }
        if self.primary_key.is_some() {
            return Err(Error::plan("Duplicate primary key definition").at(key.span));
        }
        let columns: Vec<_> = key.columns.iter().map(|c| c.value.clone()).collect();
        let name = match &key.name {
            Some(name) => name.value.clone(),
            None => format!("PK_{}", columns.join("_")),
        };
        self.primary_key = Some(PrimaryKey { name, columns });
        self.places.primary_key = Some(key.span);
        Ok(())
    }

    fn add_watermark(&mut self, watermark: &ast::Watermark) -> Result<()> {
        if self.watermark.is_some() {
            return Err(
                Error::plan("Multiple WATERMARK declarations are not supported yet.")
                    .at(watermark.span),
            );
        }
        let name: Vec<_> = watermark.column.iter().map(|i| i.value.clone()).collect();
        self.watermark = Some(WatermarkDefinition {
            column: name.join("."),
            expr: declared(&watermark.expr),
        });
        self.places.watermark = Some(watermark.span);
        Ok(())
    }
}

fn declared(expr: &SqlExpr) -> DeclaredExpr {
    DeclaredExpr {
        ast: expr.expr.clone(),
        text: unparse::expr(&expr.expr),
    }
}

pub(super) fn distribution(declared: &ast::Distribution) -> Distribution {
    Distribution {
        kind: declared.kind.map(|kind| match kind {
            DistributionKind::Hash => "HASH",
            DistributionKind::Range => "RANGE",
        }),
        columns: declared.columns.iter().map(|c| c.value.clone()).collect(),
        buckets: declared.buckets,
    }
}

impl Session {
    /// Checks a table as a whole; derives types of computed columns and time attributes.
    pub(super) fn check_table(&self, table: &mut TableDefinition, places: &Places) -> Result<()> {
        check_metadata_keys(table)?;
        self.derive_computed(table, places)?;
        self.check_watermark(table, places)?;
        let key = check_key(table);
        key.map_err(|e| located(e, places.primary_key))?;
        check_names(
            table,
            &table.partitioned_by,
            "Invalid partition key",
            "A partition key must reference a physical column in the schema.",
        )?;
        let Some(distribution) = &table.distribution else {
            return Ok(());
        };
        if distribution.buckets == Some(0) {
            return Err(Error::plan(
                "Invalid bucket count '0'. The number of buckets for a distributed table must be at \
                 least 1.",
            ));
        }
        check_names(
            table,
            &distribution.columns,
            "Invalid bucket key",
            "A bucket key for a distribution must reference a physical column in the schema.",
        )
    }

    /// An expression of the declaration over `schema`; `place` if it is of this statement.
    fn bind_declared(
        &self,
        expr: &DeclaredExpr,
        schema: &Schema,
        place: Option<Span>,
    ) -> Result<Expr> {
        let mut binder = self.binder();
        if place.is_none() {
            binder = binder.without_positions();
        }
        let bound = binder.bind_scalar(&expr.ast, schema);
        bound.map_err(|e| located(e, place))
    }

    fn derive_computed(&self, table: &mut TableDefinition, places: &Places) -> Result<()> {
        let stored = schema_of(table, |c| !matches!(c.kind, ColumnKind::Computed(_)));
        for column in &mut table.columns {
            column.time = None;
            let ColumnKind::Computed(expr) = &column.kind else {
                continue;
            };
            let place = places.columns.get(&column.name).copied();
            let bound = self.bind_declared(expr, &stored, place)?;
            let is_proctime = matches!(
                &bound.kind,
                ExprKind::Call { function, .. } if function.name() == "PROCTIME"
            );
            column.time = is_proctime.then_some(TimeAttribute::Proctime);
            column.data_type = bound.data_type;
        }
        Ok(())
    }

    fn check_watermark(&self, table: &mut TableDefinition, places: &Places) -> Result<()> {
        let Some(watermark) = table.watermark.clone() else {
            return Ok(());
        };
        let refuse = |e: Error| Err(located(e, places.watermark));
        let schema = schema_of(table, |_| true);
        let name = &watermark.column;
        let Some(column) = table.columns.iter_mut().find(|c| c.name == *name) else {
            let names: Vec<_> = schema.columns.iter().map(|c| c.name.as_str()).collect();
            return refuse(Error::plan(format!(
                "The rowtime attribute field '{name}' is not defined in the table schema. Available \
                 fields: [{}]",
                names.join(", ")
            )));
        };
        if column.time == Some(TimeAttribute::Proctime) {
            return refuse(Error::plan(
                "A watermark can not be defined for a processing-time attribute.",
            ));
        }
        if !is_time(&column.data_type) {
            let error = Error::plan(format!(
                "Invalid data type of time field for watermark definition. The field must be of \
                 type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, \
                 but the time field type is {}",
                column.data_type
            ));
            return refuse(error.hint(format!(
                "declare {name} TIMESTAMP(3), or a computed column of that type"
            )));
        }
        column.time = Some(TimeAttribute::Rowtime);
        // the source brings its own, of whatever form
        if watermark.expr.is_source_watermark() {
            return Ok(());
        }
        let bound = self.bind_declared(&watermark.expr, &schema, places.watermark)?;
        if !is_time(&bound.data_type) {
            return refuse(Error::plan(format!(
                "Invalid data type of expression for watermark definition. The field must be of \
                 type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, \
                 but the watermark expression type is {}",
                bound.data_type
            )));
        }
        let source = matches!(
            &bound.kind,
            ExprKind::Call { function, .. } if function.name() == "SOURCE_WATERMARK"
        );
        let own = &schema_of(table, |c| c.name == *name).columns[0].data_type;
        if !source && bound.data_type.kind.root_name() != own.kind.root_name() {
            return refuse(Error::plan(format!(
                "The watermark declaration's output data type '{}' is different from the time \
                 field's data type '{own}'.",
                bound.data_type
            )));
        }
        Ok(())
    }
}

fn located(error: Error, place: Option<Span>) -> Error {
    match place {
        Some(span) => error.at(span),
        None => error,
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(
        data_type.kind,
        TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) if p <= 3
    )
}

fn schema_of(table: &TableDefinition, keep: impl Fn(&ColumnDefinition) -> bool) -> Schema {
    let columns = table.columns.iter().filter(|c| keep(c));
    Schema::new(
        columns
            .map(|c| Column::new(c.name.clone(), c.data_type.clone()))
            .collect(),
    )
}

fn check_metadata_keys(table: &TableDefinition) -> Result<()> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for column in &table.columns {
        let ColumnKind::Metadata { key, .. } = &column.kind else {
            continue;
        };
        let key = key.as_ref().unwrap_or(&column.name);
        if let Some(other) = seen.insert(key, &column.name) {
            return Err(Error::plan(format!(
                "The column `{other}` and `{}` in the table are both from the same metadata key \
                 '{key}'. Please specify one of the columns as the metadata column and use the \
                 computed column syntax to specify the others.",
                column.name
            )));
        }
    }
    Ok(())
}

fn check_key(table: &TableDefinition) -> Result<()> {
    let Some(key) = &table.primary_key else {
        return Ok(());
    };
    let invalid = |why: String| Error::plan(format!("Invalid primary key '{}'. {why}", key.name));
    for (i, name) in key.columns.iter().enumerate() {
        if key.columns[..i].contains(name) {
            return Err(invalid(format!(
                "A primary key must not contain duplicate columns. Found: [{name}]"
            )));
        }
        let Some(column) = table.column(name) else {
            let error = invalid(format!("Column '{name}' does not exist."));
            let names = table.columns.iter().map(|c| c.name.as_str());
            return Err(match did_you_mean(name, names) {
                Some(close) => error.hint(format!("did you mean `{close}`?")),
                None => error,
            });
        };
        if column.kind != ColumnKind::Physical {
            return Err(invalid(format!(
                "Column '{name}' is not a physical column."
            )));
        }
        if column.data_type.nullable {
            return Err(invalid(format!("Column '{name}' is nullable."))
                .hint("declare the column NOT NULL where it comes from"));
        }
    }
    Ok(())
}

fn check_names(table: &TableDefinition, names: &[String], what: &str, why: &str) -> Result<()> {
    let physical: Vec<_> = table
        .columns
        .iter()
        .filter(|c| c.kind == ColumnKind::Physical)
        .map(|c| c.name.as_str())
        .collect();
    for name in names {
        if !physical.contains(&name.as_str()) {
            return Err(Error::plan(format!(
                "{what} '{name}'. {why} Available columns are: [{}]",
                physical.join(", ")
            )));
        }
    }
    Ok(())
}
