//! DESCRIBE: the columns of a table, and what is known of catalogs, databases and functions.

use sqlparser::ast::{Ident, ObjectName};

use super::listing::Listing;
use super::{Session, StatementResult};
use crate::catalog::{CatalogEntry, ColumnDefinition, ColumnKind, PrimaryKey, TableDefinition};
use crate::error::Result;
use crate::plan::binder::object_parts;
use crate::sql::ast::{Describe, DescribeWhat};
use crate::sql::unparse::string_literal;
use crate::types::{Column, TimeAttribute};

impl Session {
    pub(super) fn describe(&self, describe: &Describe) -> Result<StatementResult> {
        let listing = match &describe.what {
            DescribeWhat::Table(name) => self.describe_entry(name)?,
            DescribeWhat::Catalog(name) => self.describe_catalog(name, describe.extended)?,
            DescribeWhat::Database(name) => self.describe_database(name, describe.extended)?,
            DescribeWhat::Function(name) => self.describe_function(name, describe.extended)?,
            DescribeWhat::Job(id) => self.describe_job(id)?,
            DescribeWhat::Model(_) => return Err(self.unsupported("DESCRIBE MODEL")),
        };
        Ok(StatementResult::Listing(listing))
    }

    /// The columns of a table or view: name, type, whether NULL is allowed, key, what makes it,
    /// watermark, and comment if any column has one.
    pub(super) fn describe_entry(&self, name: &ObjectName) -> Result<Listing> {
        let path = self.path_of(name)?;
        let mut listing = Listing::new(&["name", "type", "null", "key", "extras", "watermark"]);
        match self.catalogs.expect(&path)? {
            CatalogEntry::Table(table) => {
                for column in &table.columns {
                    listing.push(describe_column(table, column));
                }
                if table.columns.iter().any(|c| c.comment.is_some()) {
                    listing.columns.push("comment".into());
                    for (row, column) in listing.rows.iter_mut().zip(&table.columns) {
                        row.push(column.comment.clone());
                    }
                }
            }
            CatalogEntry::View(view) => {
                for column in &view.schema.columns {
                    listing.push([
                        Some(column.name.clone()),
                        Some(type_text(column)),
                        Some(column.data_type.nullable.to_string()),
                        None,
                        None,
                        None,
                    ]);
                }
            }
        }
        Ok(listing)
    }

    fn describe_catalog(&self, name: &Ident, extended: bool) -> Result<Listing> {
        let catalog = self.catalogs.catalog(&name.value)?;
        let mut listing = Listing::new(&["info name", "info value"]);
        let mut push = |key: &str, value: Option<String>| listing.push([Some(key.into()), value]);
        push("name", Some(name.value.clone()));
        push("type", Some(super::show_create::catalog_type(catalog)));
        push("comment", catalog.comment.clone());
        if extended {
            for (key, value) in sorted(&catalog.options) {
                if key != "type" {
                    push(
                        &format!("option:{key}"),
                        Some(self.shown_option(None, key, value)),
                    );
                }
            }
        }
        Ok(listing)
    }

    fn describe_database(&self, name: &ObjectName, extended: bool) -> Result<Listing> {
        let (catalog, name) = self.database_of(name)?;
        let database = self.catalogs.database(&catalog, &name)?;
        let mut listing = Listing::new(&["info name", "info value"]);
        let mut push = |key: &str, value: Option<String>| listing.push([Some(key.into()), value]);
        push("catalog", Some(catalog));
        push("name", Some(name));
        push("comment", database.comment.clone());
        if extended {
            for (key, value) in sorted(&database.options) {
                push(
                    &format!("option:{key}"),
                    Some(self.shown_option(None, key, value)),
                );
            }
        }
        Ok(listing)
    }

    fn describe_function(&self, name: &ObjectName, extended: bool) -> Result<Listing> {
        let parts = object_parts(name)?;
        let mut listing = Listing::new(&["info name", "info value"]);
        let mut push = |key: &str, value: Option<&str>| {
            listing.push([Some(key.to_string()), value.map(str::to_string)]);
        };
        if let Some(declared) = self.catalogs.find_function(&parts) {
            return Err(declared.cannot_run(&parts.join(".")));
        }
        let name = parts.join(".");
        let Some(entry) = self.functions.entry(&name) else {
            return Err(self.function_missing(&name));
        };
        push(
            "is system function",
            Some(if entry.user { "false" } else { "true" }),
        );
        push(
            "is temporary",
            Some(if entry.user { "true" } else { "false" }),
        );
        if extended {
            let deterministic = entry.function.as_ref().is_none_or(|function| {
                function.determinism(1) == crate::functions::Determinism::Deterministic
            });
            push("kind", Some(&entry.doc.kind.to_string().to_uppercase()));
            push("requirements", Some("[]"));
            push("is deterministic", Some(&deterministic.to_string()));
            push("signature", Some(entry.doc.signature.as_ref()));
            push("description", Some(entry.doc.summary.as_ref()));
        }
        Ok(listing)
    }
}

/// Options in the order of their keys.
pub(super) fn sorted(
    options: &indexmap::IndexMap<String, String>,
) -> std::collections::BTreeMap<&str, &str> {
    options
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect()
}

fn type_text(column: &Column) -> String {
    let kind = &column.data_type.kind;
    match column.time {
        Some(TimeAttribute::Rowtime) => format!("{kind} *ROWTIME*"),
        Some(TimeAttribute::Proctime) => format!("{kind} *PROCTIME*"),
        None => kind.to_string(),
    }
}

fn describe_column(table: &TableDefinition, column: &ColumnDefinition) -> [Option<String>; 6] {
    let seen = Column {
        name: column.name.clone(),
        data_type: column.data_type.clone(),
        time: column.time,
    };
    let key = |key: &PrimaryKey| {
        key.columns
            .contains(&column.name)
            .then(|| format!("PRI({})", key.columns.join(", ")))
    };
    let watermark = table
        .watermark
        .as_ref()
        .filter(|w| w.column == column.name)
        .map(|w| w.expr.text.clone());
    [
        Some(column.name.clone()),
        Some(type_text(&seen)),
        Some(column.data_type.nullable.to_string()),
        table.primary_key.as_ref().and_then(key),
        made_by(&column.kind),
        watermark,
    ]
}

/// `AS expr`, `METADATA FROM 'key' VIRTUAL`; nothing for a physical column.
pub(super) fn made_by(kind: &ColumnKind) -> Option<String> {
    match kind {
        ColumnKind::Physical => None,
        ColumnKind::Computed(expr) => Some(format!("AS {}", expr.text)),
        ColumnKind::Metadata { key, is_virtual } => {
            let mut text = "METADATA".to_string();
            if let Some(key) = key {
                text.push_str(&format!(" FROM {}", string_literal(key)));
            }
            if *is_virtual {
                text.push_str(" VIRTUAL");
            }
            Some(text)
        }
    }
}
