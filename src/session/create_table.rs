//! CREATE TABLE: a declaration checked and made a catalog entry.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{Session, StatementResult};
use crate::catalog::{
    CatalogEntry, ColumnDefinition, ColumnKind, DeclaredExpr, ObjectPath, PrimaryKey,
    TableDefinition, WatermarkDefinition,
};
use crate::error::{Error, Result};
use crate::plan::binder::object_parts;
use crate::sql::ast::{self, CreateTable, SqlExpr, SqlOption, TableColumn, TableElement};
use crate::types::{Column, DataType, Schema, TimeAttribute, TypeKind};

impl Session {
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<StatementResult> {
        let path = self.catalogs.resolve(&object_parts(&create.name)?)?;
        let exists = if create.temporary {
            self.catalogs.get_temporary(&path).is_some()
        } else {
            self.catalogs.get_permanent(&path).is_some()
        };
        if exists && create.if_not_exists {
            return Ok(StatementResult::Done);
        }
        if create.like.is_some() || create.as_query.is_some() {
            return Err(Error::plan(
                "CREATE TABLE .. LIKE and AS SELECT are not supported yet",
            ));
        }
        let table = self.declare(path.clone(), create)?;
        let replace = create.replace != ast::Replace::No;
        self.catalogs
            .add(&path, CatalogEntry::Table(Arc::new(table)), replace)?;
        Ok(StatementResult::Done)
    }

    fn declare(&self, path: ObjectPath, create: &CreateTable) -> Result<TableDefinition> {
        let mut builder = TableBuilder::new(self);
        for element in &create.elements {
            if let TableElement::Column(column) = element {
                builder.add_stored(column)?;
            }
        }
        for element in &create.elements {
            match element {
                TableElement::Column(column) => builder.add_computed(column)?,
                TableElement::Key(key) => builder.set_key(key)?,
                TableElement::Watermark(_) => {}
            }
        }
        for element in &create.elements {
            if let TableElement::Watermark(watermark) = element {
                builder.set_watermark(watermark)?;
            }
        }
        let columns = builder.in_declared_order(&create.elements);
        let partitioned_by: Vec<String> = create
            .partitioned_by
            .iter()
            .map(|i| i.value.clone())
            .collect();
        for name in &partitioned_by {
            let physical = columns
                .iter()
                .any(|c| c.name == *name && c.kind == ColumnKind::Physical);
            if !physical {
                return Err(Error::plan(format!(
                    "Partition column '{name}' not defined in the table schema."
                )));
            }
        }
        Ok(TableDefinition {
            path,
            columns,
            watermark: builder.watermark,
            primary_key: builder.primary_key,
            partitioned_by,
            partitions: Vec::new(),
            distribution: None,
            comment: create.comment.clone(),
            options: options(&create.options),
            temporary: create.temporary,
        })
    }
}

/// Options by key; the last of equal keys counts, as in Flink.
pub(super) fn options(list: &[SqlOption]) -> IndexMap<String, String> {
    list.iter()
        .map(|o| (o.key.clone(), o.value.clone()))
        .collect()
}

/// Checks the parts of a declaration as they come.
struct TableBuilder<'s> {
    session: &'s Session,
    columns: Vec<ColumnDefinition>,
    watermark: Option<WatermarkDefinition>,
    primary_key: Option<PrimaryKey>,
}

impl<'s> TableBuilder<'s> {
    fn new(session: &'s Session) -> Self {
        Self {
            session,
            columns: Vec::new(),
            watermark: None,
            primary_key: None,
        }
    }

    fn add(&mut self, column: ColumnDefinition, declared: &TableColumn) -> Result<()> {
        if self.columns.iter().any(|c| c.name == column.name) {
            return Err(Error::plan(format!(
                "A column named '{}' already exists in the table.",
                column.name
            ))
            .at(declared.span));
        }
        self.columns.push(column);
        Ok(())
    }

    /// Physical and metadata columns.
    fn add_stored(&mut self, column: &TableColumn) -> Result<()> {
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
            ast::ColumnKind::Computed(_) => return Ok(()),
        };
        let definition = ColumnDefinition {
            name: column.name.value.clone(),
            data_type,
            kind,
            comment: column.comment.clone(),
            time: None,
        };
        self.add(definition, column)
    }

    /// Computed columns, over the stored ones.
    fn add_computed(&mut self, column: &TableColumn) -> Result<()> {
        let ast::ColumnKind::Computed(expr) = &column.kind else {
            return Ok(());
        };
        let stored = self.schema(|c| !matches!(c.kind, ColumnKind::Computed(_)));
        let bound = self.session.binder().bind_scalar(&expr.expr, &stored)?;
        let is_proctime = matches!(
            &bound.kind,
            crate::expr::ExprKind::Call { function, .. } if function.name() == "PROCTIME"
        );
        let definition = ColumnDefinition {
            name: column.name.value.clone(),
            data_type: bound.data_type,
            kind: ColumnKind::Computed(declared(expr)),
            comment: column.comment.clone(),
            time: is_proctime.then_some(TimeAttribute::Proctime),
        };
        self.add(definition, column)
    }

    fn schema(&self, keep: impl Fn(&ColumnDefinition) -> bool) -> Schema {
        let columns = self.columns.iter().filter(|c| keep(c));
        Schema::new(
            columns
                .map(|c| Column::new(c.name.clone(), c.data_type.clone()))
                .collect(),
        )
    }

    fn set_key(&mut self, key: &ast::TableKey) -> Result<()> {
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
        let mut names: Vec<String> = Vec::new();
        for ident in &key.columns {
            let name = ident.value.clone();
            let Some(column) = self.columns.iter_mut().find(|c| c.name == name) else {
                return Err(Error::plan(format!(
                    "Primary key column '{name}' is not defined in the schema"
                ))
                .at(key.span));
            };
            if column.kind != ColumnKind::Physical {
                return Err(Error::plan(format!(
                    "Could not create a PRIMARY KEY with column '{name}': only physical columns can \
                     be part of it"
                ))
                .at(key.span));
            }
            if names.contains(&name) {
                return Err(Error::plan(format!(
                    "A primary key must not contain column '{name}' twice"
                ))
                .at(key.span));
            }
            column.data_type.nullable = false;
            names.push(name);
        }
        let name = match &key.name {
            Some(name) => name.value.clone(),
            None => format!("PK_{}", names.join("_")),
        };
        self.primary_key = Some(PrimaryKey {
            name,
            columns: names,
        });
        Ok(())
    }

    fn set_watermark(&mut self, watermark: &ast::Watermark) -> Result<()> {
        if self.watermark.is_some() {
            return Err(
                Error::plan("Multiple WATERMARK declarations are not supported yet.")
                    .at(watermark.span),
            );
        }
        let name: Vec<_> = watermark.column.iter().map(|i| i.value.clone()).collect();
        let name = name.join(".");
        let schema = self.schema(|_| true);
        let Some(column) = self.columns.iter_mut().find(|c| c.name == name) else {
            return Err(Error::plan(format!(
                "The rowtime attribute field '{name}' is not defined in the table schema."
            ))
            .at(watermark.span));
        };
        if column.time == Some(TimeAttribute::Proctime) {
            return Err(Error::plan(
                "A watermark can not be defined for a processing-time attribute.",
            )
            .at(watermark.span));
        }
        let fits = |t: &DataType| matches!(t.kind, TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) if p <= 3);
        if !fits(&column.data_type) {
            return Err(Error::plan(format!(
                "Invalid data type of time field for watermark definition. The field must be of \
                 type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, \
                 but the time field type is {}",
                column.data_type
            ))
            .at(watermark.span)
            .hint(format!("declare {name} TIMESTAMP(3), or a computed column of that type")));
        }
        column.time = Some(TimeAttribute::Rowtime);
        let bound = self
            .session
            .binder()
            .bind_scalar(&watermark.expr.expr, &schema)?;
        if !fits(&bound.data_type) {
            return Err(Error::plan(format!(
                "Invalid data type of expression for watermark definition. The field must be of \
                 type TIMESTAMP(p) or TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, \
                 but the watermark expression type is {}",
                bound.data_type
            ))
            .at(watermark.span));
        }
        self.watermark = Some(WatermarkDefinition {
            column: name,
            expr: declared(&watermark.expr),
        });
        Ok(())
    }

    fn in_declared_order(&self, elements: &[TableElement]) -> Vec<ColumnDefinition> {
        elements
            .iter()
            .filter_map(|element| match element {
                TableElement::Column(column) => self
                    .columns
                    .iter()
                    .find(|c| c.name == column.name.value)
                    .cloned(),
                _ => None,
            })
            .collect()
    }
}

fn declared(expr: &SqlExpr) -> DeclaredExpr {
    DeclaredExpr {
        ast: expr.expr.clone(),
        text: crate::sql::unparse::expr(&expr.expr),
    }
}
