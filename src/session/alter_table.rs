//! ALTER TABLE: options, names, keys, watermarks, distribution and partitions. Columns are in
//! [`super::alter_columns`].

use sqlparser::ast::{Expr, Ident, Value};

use super::create_table::options;
use super::declare::{Places, distribution};
use super::{Session, StatementResult};
use crate::catalog::{
    CatalogEntry, ObjectPath, PartitionSpec, PrimaryKey, TableDefinition, already_exists,
};
use crate::error::{Error, Result};
use crate::plan::binder::object_parts;
use crate::plan::physical::describe;
use crate::sql::ast::{AlterTable, AlterTableAction};
use crate::sql::unparse;

/// Names and values of partitions, as written.
type Partitions = [Vec<(Ident, Option<Expr>)>];

/// A change that does not fit the table.
pub(super) fn failed(reason: String) -> Error {
    Error::plan(format!(
        "Failed to execute ALTER TABLE statement.\n{reason}"
    ))
}

impl Session {
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<StatementResult> {
        let path = self.path_of(&alter.name)?;
        let found = match self.catalogs.get_temporary(&path) {
            Some(_) => None,
            None => self.catalogs.get_permanent(&path),
        };
        let mut table = match found {
            Some(CatalogEntry::Table(table)) => (**table).clone(),
            Some(CatalogEntry::View(_)) => {
                return Err(
                    Error::plan("ALTER TABLE for a view is not allowed").hint("use ALTER VIEW")
                );
            }
            None if alter.if_exists => return Ok(StatementResult::Done),
            None => {
                let error = Error::catalog(format!(
                    "Table {} doesn't exist or is a temporary table.",
                    path.quoted()
                ));
                return Err(self.catalogs.suggest(&path, error));
            }
        };
        let mut places = Places::default();
        match &alter.action {
            AlterTableAction::RenameTo(name) => {
                let parts = object_parts(name)?;
                let target = crate::catalog::resolve_from(&parts, &path.catalog, &path.database)?;
                return self.rename_table(table, target);
            }
            AlterTableAction::Set(set) => table.options.extend(options(set)),
            AlterTableAction::Reset(keys) => reset(&mut table, keys)?,
            AlterTableAction::Add(elements) => places = self.add_elements(&mut table, elements)?,
            AlterTableAction::Modify(elements) => {
                places = self.modify_elements(&mut table, elements)?;
            }
            AlterTableAction::DropColumns(names) => super::alter_columns::drop(&mut table, names)?,
            AlterTableAction::RenameColumn { from, to } => {
                super::alter_columns::rename(&mut table, &from.value, &to.value)?;
            }
            AlterTableAction::DropPrimaryKey => drop_key(&mut table, None)?,
            AlterTableAction::DropConstraint(name) => drop_key(&mut table, Some(&name.value))?,
            AlterTableAction::DropWatermark => {
                if table.watermark.take().is_none() {
                    return Err(failed(
                        "The current table does not define any watermark strategy.".into(),
                    ));
                }
            }
            AlterTableAction::AddDistribution(added) => {
                if let Some(old) = &table.distribution {
                    return Err(failed(format!(
                        "The current table has already defined the distribution '{old}'. You can \
                         modify it or drop it before adding a new one."
                    )));
                }
                table.distribution = Some(distribution(added));
            }
            AlterTableAction::ModifyDistribution(changed) => {
                if table.distribution.is_none() {
                    return Err(failed(
                        "The current table does not define any distribution. You might want to add \
                         a new one."
                            .into(),
                    ));
                }
                table.distribution = Some(distribution(changed));
            }
            AlterTableAction::DropDistribution => {
                if table.distribution.take().is_none() {
                    return Err(Error::plan(format!(
                        "Table {} does not have a distribution to drop.",
                        path.quoted()
                    )));
                }
            }
            AlterTableAction::AddPartitions {
                if_not_exists,
                partitions,
            } => add_partitions(&mut table, partitions, *if_not_exists)?,
            AlterTableAction::DropPartitions {
                if_exists,
                partitions,
            } => drop_partitions(&mut table, partitions, *if_exists)?,
        }
        self.check_table(&mut table, &places)?;
        self.put_table(table, true)?;
        Ok(StatementResult::Done)
    }

    fn rename_table(
        &mut self,
        mut table: TableDefinition,
        target: ObjectPath,
    ) -> Result<StatementResult> {
        self.catalogs.database(&target.catalog, &target.database)?;
        if self.catalogs.get(&target).is_some() {
            return Err(already_exists(&target, false));
        }
        let old = std::mem::replace(&mut table.path, target);
        if table
            .options
            .get("connector")
            .is_some_and(|c| c == "memory")
            && !table.options.contains_key("name")
        {
            let mut before = describe(&table, &table.options, &self.config)?;
            let after = before.clone();
            before.path = old.to_string();
            self.context.memory.rename(&before, &after);
        }
        self.catalogs.remove(&old, false);
        self.put_table(table, false)?;
        Ok(StatementResult::Done)
    }
}

fn reset(table: &mut TableDefinition, keys: &[String]) -> Result<()> {
    if keys.is_empty() {
        return Err(Error::plan("ALTER TABLE RESET does not support empty key"));
    }
    for key in keys {
        if key == "connector" {
            return Err(Error::plan(
                "ALTER TABLE RESET does not support changing 'connector'",
            ));
        }
        table.options.shift_remove(key);
    }
    Ok(())
}

fn drop_key(table: &mut TableDefinition, name: Option<&str>) -> Result<()> {
    let Some(PrimaryKey { name: have, .. }) = &table.primary_key else {
        return Err(failed(
            "The current table does not define any primary key.".into(),
        ));
    };
    if let Some(name) = name.filter(|name| name != have) {
        return Err(failed(format!(
            "The current table does not define a primary key constraint named '{name}'. Available \
             constraint name: ['{have}']."
        )));
    }
    table.primary_key = None;
    Ok(())
}

/// The values of a partition in the order of the partition columns.
fn spec(table: &TableDefinition, written: &[(Ident, Option<Expr>)]) -> Result<PartitionSpec> {
    let path = &table.path;
    if table.partitioned_by.is_empty() {
        return Err(Error::catalog(format!(
            "Table {}.{} in catalog {} is not partitioned.",
            path.database, path.name, path.catalog
        )));
    }
    let value = |expr: &Expr| match expr {
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        other => unparse::expr(other),
    };
    let found: Option<PartitionSpec> = table
        .partitioned_by
        .iter()
        .map(|key| {
            let (_, written) = written.iter().find(|(name, _)| name.value == *key)?;
            Some((key.clone(), value(written.as_ref()?)))
        })
        .collect();
    found
        .filter(|spec| spec.len() == written.len())
        .ok_or_else(|| {
            let names: Vec<_> = written.iter().map(|(name, _)| name.value.as_str()).collect();
            Error::catalog(format!(
                "The partition ({}) does not match partition keys [{}] of table {}.{} in catalog {}.",
                names.join(", "),
                table.partitioned_by.join(", "),
                path.database,
                path.name,
                path.catalog
            ))
        })
}

fn shown(spec: &PartitionSpec) -> String {
    let parts: Vec<_> = spec.iter().map(|(k, v)| format!("{k}={v}")).collect();
    parts.join(", ")
}

fn add_partitions(table: &mut TableDefinition, added: &Partitions, lenient: bool) -> Result<()> {
    for written in added {
        let spec = spec(table, written)?;
        if !table.partitions.contains(&spec) {
            table.partitions.push(spec);
        } else if !lenient {
            return Err(Error::catalog(format!(
                "Partition ({}) of table '{}' already exists.",
                shown(&spec),
                table.path
            )));
        }
    }
    Ok(())
}

fn drop_partitions(table: &mut TableDefinition, dropped: &Partitions, lenient: bool) -> Result<()> {
    for written in dropped {
        let spec = spec(table, written)?;
        if let Some(i) = table.partitions.iter().position(|p| *p == spec) {
            table.partitions.remove(i);
        } else if !lenient {
            return Err(Error::catalog(format!(
                "Partition ({}) of table '{}' does not exist.",
                shown(&spec),
                table.path
            )));
        }
    }
    Ok(())
}
