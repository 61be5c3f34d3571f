//! ALTER TABLE ADD, MODIFY, DROP and RENAME of columns, with the keys and watermarks that ADD and
//! MODIFY can bring along.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, visit_expressions};

use super::Session;
use super::alter_table::failed;
use super::declare::{Declaration, Places};
use crate::catalog::{ColumnDefinition, ColumnKind, TableDefinition};
use crate::error::Result;
use crate::sql::ast::{ColumnPosition, TableElement};
use crate::sql::unparse::quoted;

/// The first position that is said for each column, in the order of the elements.
fn positions(elements: &[TableElement]) -> Vec<Option<&ColumnPosition>> {
    let columns = elements.iter().filter_map(|element| match element {
        TableElement::Column(column) => Some(column.position.as_ref()),
        _ => None,
    });
    columns.collect()
}

impl Session {
    pub(super) fn add_elements(
        &self,
        table: &mut TableDefinition,
        elements: &[TableElement],
    ) -> Result<Places> {
        let added = Declaration::read(elements)?;
        if let (Some(_), Some(old)) = (&added.primary_key, &table.primary_key) {
            let columns: Vec<_> = old.columns.iter().map(|c| quoted(c)).collect();
            return Err(failed(format!(
                "The current table has already defined the primary key constraint [{}]. You might \
                 want to drop it before adding a new one.",
                columns.join(", ")
            )));
        }
        if let (Some(_), Some(old)) = (&added.watermark, &table.watermark) {
            return Err(failed(format!(
                "The current table has already defined the watermark strategy {} AS {}. You might \
                 want to drop it before adding a new one.",
                quoted(&old.column),
                old.expr.text
            )));
        }
        let old: BTreeSet<String> = table.columns.iter().map(|c| c.name.clone()).collect();
        for (column, position) in added.columns.into_iter().zip(positions(elements)) {
            if old.contains(&column.name) {
                return Err(failed(format!(
                    "Column {} already exists in the table.",
                    quoted(&column.name)
                )));
            }
            let i = index(table, position)?.unwrap_or(table.columns.len());
            table.columns.insert(i, column);
        }
        table.watermark = added.watermark.or_else(|| table.watermark.take());
        if let Some(key) = added.primary_key {
            table.primary_key = Some(key);
            require_key(table);
        }
        Ok(added.places)
    }

    pub(super) fn modify_elements(
        &self,
        table: &mut TableDefinition,
        elements: &[TableElement],
    ) -> Result<Places> {
        let changed = Declaration::read(elements)?;
        if changed.primary_key.is_some() && table.primary_key.is_none() {
            return Err(failed(
                "The current table does not define any primary key constraint. You might want to \
                 add a new one."
                    .into(),
            ));
        }
        if changed.watermark.is_some() && table.watermark.is_none() {
            return Err(failed(
                "The current table does not define any watermark. You might want to add a new one."
                    .into(),
            ));
        }
        for (mut column, position) in changed.columns.into_iter().zip(positions(elements)) {
            let Some(at) = table.columns.iter().position(|c| c.name == column.name) else {
                return Err(failed(format!(
                    "Column {} does not exist in the table.",
                    quoted(&column.name)
                )));
            };
            // the position may be that of the column itself
            let target = index(table, position)?;
            let before = table.columns.remove(at);
            column.comment = column.comment.or(before.comment);
            let target = match (target, position) {
                (None, _) => at,
                (Some(_), Some(ColumnPosition::After(other))) if other.value == column.name => 0,
                (Some(i), _) if i > at => i - 1,
                (Some(i), _) => i,
            };
            table.columns.insert(target, column);
        }
        table.watermark = changed.watermark.or_else(|| table.watermark.take());
        table.primary_key = changed.primary_key.or_else(|| table.primary_key.take());
        require_key(table);
        Ok(changed.places)
    }
}

/// Where `FIRST` or `AFTER c` puts a column.
fn index(table: &TableDefinition, position: Option<&ColumnPosition>) -> Result<Option<usize>> {
    match position {
        None => Ok(None),
        Some(ColumnPosition::First) => Ok(Some(0)),
        Some(ColumnPosition::After(other)) => {
            let at = table.columns.iter().position(|c| c.name == other.value);
            match at {
                Some(i) => Ok(Some(i + 1)),
                None => Err(failed(format!(
                    "Referenced column {} by 'AFTER' does not exist in the table.",
                    quoted(&other.value)
                ))),
            }
        }
    }
}

/// Makes the key's columns NOT NULL.
fn require_key(table: &mut TableDefinition) {
    let Some(key) = &table.primary_key else {
        return;
    };
    for column in &mut table.columns {
        if key.columns.contains(&column.name) && column.kind == ColumnKind::Physical {
            column.data_type.nullable = false;
        }
    }
}

/// `DROP (a, b)`: the computed columns first, so that they can go together with what they read.
pub(super) fn drop(table: &mut TableDefinition, names: &[Ident]) -> Result<()> {
    for (i, name) in names.iter().enumerate() {
        if names[..i].iter().any(|n| n.value == name.value) {
            return Err(failed(format!("Duplicate column {}.", quoted(&name.value))));
        }
        if table.column(&name.value).is_none() {
            return Err(missing(&name.value));
        }
    }
    let is_computed = |table: &TableDefinition, name: &str| {
        table
            .column(name)
            .is_some_and(|c| matches!(c.kind, ColumnKind::Computed(_)))
    };
    let (computed, stored): (Vec<_>, Vec<_>) =
        names.iter().partition(|n| is_computed(table, &n.value));
    for name in computed.into_iter().chain(stored) {
        check_unused(table, &name.value)?;
        let key = table.primary_key.as_ref();
        if key.is_some_and(|key| key.columns.contains(&name.value)) {
            return Err(failed(format!(
                "The column {} is used as the primary key.",
                quoted(&name.value)
            )));
        }
        table.columns.retain(|c| c.name != name.value);
    }
    Ok(())
}

/// `RENAME a TO b`.
pub(super) fn rename(table: &mut TableDefinition, from: &str, to: &str) -> Result<()> {
    if table.column(from).is_none() {
        return Err(missing(from));
    }
    if table.column(to).is_some() {
        return Err(failed(format!(
            "The column {} already existed in table schema.",
            quoted(to)
        )));
    }
    check_unused(table, from)?;
    for column in table.columns.iter_mut().filter(|c| c.name == from) {
        column.name = to.into();
    }
    if let Some(key) = &mut table.primary_key {
        for name in key.columns.iter_mut().filter(|name| *name == from) {
            *name = to.into();
        }
    }
    Ok(())
}

fn missing(name: &str) -> crate::error::Error {
    failed(format!(
        "The column {} does not exist in the base table.",
        quoted(name)
    ))
}

/// Refuses to touch a column that something else is made of.
fn check_unused(table: &TableDefinition, name: &str) -> Result<()> {
    let users: BTreeSet<String> = table
        .columns
        .iter()
        .filter(|c| reads(c, name))
        .map(|c| quoted(&c.name))
        .collect();
    let quoted = quoted(name);
    if !users.is_empty() {
        let users: Vec<_> = users.into_iter().collect();
        return Err(failed(format!(
            "The column {quoted} is referenced by computed column {}.",
            users.join(", ")
        )));
    }
    if table.partitioned_by.iter().any(|key| key == name) {
        return Err(failed(format!(
            "The column {quoted} is used as the partition keys."
        )));
    }
    if let Some(watermark) = &table.watermark
        && (watermark.column == name || mentions(&watermark.expr.ast, name))
    {
        return Err(failed(format!(
            "The column {quoted} is referenced by watermark expression."
        )));
    }
    let distribution = table.distribution.as_ref();
    if distribution.is_some_and(|d| d.columns.iter().any(|key| key == name)) {
        return Err(failed(format!(
            "The column {quoted} is used as the distribution key."
        )));
    }
    Ok(())
}

fn reads(column: &ColumnDefinition, name: &str) -> bool {
    match &column.kind {
        ColumnKind::Computed(expr) => column.name != name && mentions(&expr.ast, name),
        _ => false,
    }
}

/// Whether an expression reads a column.
fn mentions(expr: &Expr, name: &str) -> bool {
    let found = visit_expressions(expr, |e| {
        let first = match e {
            Expr::Identifier(ident) => Some(ident),
            Expr::CompoundIdentifier(parts) => parts.first(),
            _ => None,
        };
        if first.is_some_and(|ident| ident.value == name) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    found.is_break()
}
