//! SHOW CREATE: the statement that makes a thing.

use std::fmt::Write as _;

use sqlparser::ast::ObjectName;

use super::Session;
use super::describe::{made_by, sorted};
use super::listing::Listing;
use crate::catalog::{Catalog, CatalogEntry, ColumnKind, TableDefinition, ViewDefinition};
use crate::error::{Error, Result};
use crate::plan::binder::object_parts;
use crate::sql::unparse::{quoted, string_literal};
use crate::types::{DataType, RowField, TypeKind};

/// What stands for the value of a secret.
pub(super) const HIDDEN: &str = "******";

/// Parts of keys whose values are secrets.
const SECRETS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "api-key",
    "api.key",
    "account.key",
    "access-key",
    "access.key",
    "auth-params",
    "service-key",
    "basic-auth",
    "jaas.config",
    "credential",
    "private-key",
    "http-headers",
];

/// Whether a key's name says that its value must not be shown.
pub(super) fn is_secret(key: &str) -> bool {
    let lower = key.to_lowercase();
    SECRETS.iter().any(|part| lower.contains(part))
}

impl Session {
    /// The value of an option as it may be shown.
    pub(super) fn shown_option(&self, connector: Option<&str>, key: &str, value: &str) -> String {
        let declared = connector.is_some_and(|name| {
            self.connectors
                .iter()
                .filter(|c| c.identifier() == name)
                .flat_map(|c| c.options())
                .any(|spec| spec.secret && spec.key == key)
        });
        if declared || is_secret(key) {
            HIDDEN.into()
        } else {
            value.into()
        }
    }

    pub(super) fn show_create_table(&self, name: &ObjectName) -> Result<Listing> {
        let path = self.path_of(name)?;
        match self.catalogs.get(&path) {
            Some(CatalogEntry::Table(table)) => Ok(text(self.create_table_text(table))),
            Some(CatalogEntry::View(_)) => Err(Error::plan(format!(
                "SHOW CREATE TABLE is only supported for tables, but {} is a view. Please use SHOW \
                 CREATE VIEW instead.",
                path.quoted()
            ))),
            None => {
                let error = Error::catalog(format!(
                    "Could not execute SHOW CREATE TABLE. Table with identifier {} does not exist.",
                    path.quoted()
                ));
                Err(self.catalogs.suggest(&path, error))
            }
        }
    }

    pub(super) fn show_create_view(&self, name: &ObjectName) -> Result<Listing> {
        let path = self.path_of(name)?;
        match self.catalogs.get(&path) {
            Some(CatalogEntry::View(view)) => Ok(text(create_view_text(view))),
            Some(CatalogEntry::Table(_)) => Err(Error::plan(format!(
                "SHOW CREATE VIEW is only supported for views, but {} is a table. Please use SHOW \
                 CREATE TABLE instead.",
                path.quoted()
            ))),
            None => {
                let error = Error::catalog(format!(
                    "Could not execute SHOW CREATE VIEW. View with identifier {} does not exist.",
                    path.quoted()
                ));
                Err(self.catalogs.suggest(&path, error))
            }
        }
    }

    pub(super) fn show_create_catalog(&self, name: &ObjectName) -> Result<Listing> {
        let name = object_parts(name)?.join(".");
        let catalog = self.catalogs.catalog(&name)?;
        let mut out = format!("CREATE CATALOG {}\n", quoted(&name));
        if let Some(comment) = &catalog.comment {
            let _ = writeln!(out, "COMMENT {}", string_literal(comment));
        }
        let options = sorted(&catalog.options)
            .into_iter()
            .map(|(k, v)| (k, self.shown_option(None, k, v)));
        let mut options: Vec<_> = options.collect();
        if options.is_empty() {
            options.push(("type", catalog_type(catalog)));
        }
        out.push_str(&with(&options));
        Ok(text(out))
    }

    fn create_table_text(&self, table: &TableDefinition) -> String {
        let temporary = if table.temporary { "TEMPORARY " } else { "" };
        let mut out = format!("CREATE {temporary}TABLE {} (\n", table.path.quoted());
        let mut elements: Vec<String> = table
            .columns
            .iter()
            .map(|c| {
                let mut line = format!("  {}", quoted(&c.name));
                if !matches!(c.kind, ColumnKind::Computed(_)) {
                    let _ = write!(line, " {}", serializable(&c.data_type));
                }
                if let Some(made) = made_by(&c.kind) {
                    let _ = write!(line, " {made}");
                }
                if let Some(comment) = c.comment.as_ref().filter(|c| !c.is_empty()) {
                    let _ = write!(line, " COMMENT {}", string_literal(comment));
                }
                line
            })
            .collect();
        if let Some(watermark) = &table.watermark {
            elements.push(format!(
                "  WATERMARK FOR {} AS {}",
                quoted(&watermark.column),
                watermark.expr.text
            ));
        }
        if let Some(key) = &table.primary_key {
            elements.push(format!(
                "  CONSTRAINT {} PRIMARY KEY ({}) NOT ENFORCED",
                quoted(&key.name),
                names(&key.columns)
            ));
        }
        let _ = writeln!(out, "{}\n)", elements.join(",\n"));
        if let Some(comment) = table.comment.as_ref().filter(|c| !c.is_empty()) {
            let _ = writeln!(out, "COMMENT {}", string_literal(comment));
        }
        if let Some(distribution) = &table.distribution {
            let _ = writeln!(out, "{distribution}");
        }
        if !table.partitioned_by.is_empty() {
            let _ = writeln!(out, "PARTITIONED BY ({})", names(&table.partitioned_by));
        }
        let connector = table.options.get("connector").map(String::as_str);
        let options: Vec<_> = sorted(&table.options)
            .into_iter()
            .map(|(k, v)| (k, self.shown_option(connector, k, v)))
            .collect();
        if !options.is_empty() {
            out.push_str(&with(&options));
        }
        out
    }
}

fn text(text: String) -> Listing {
    Listing::of("result", [text])
}

/// `WITH ( .. )` with an option a line.
fn with(options: &[(&str, String)]) -> String {
    let lines: Vec<_> = options
        .iter()
        .map(|(k, v)| format!("  {} = {}", option_literal(k), option_literal(v)))
        .collect();
    format!("WITH (\n{}\n)\n", lines.join(",\n"))
}

fn option_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn names(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|n| quoted(n)).collect();
    names.join(", ")
}

fn create_view_text(view: &ViewDefinition) -> String {
    let temporary = if view.temporary { "TEMPORARY " } else { "" };
    let columns: Vec<_> = view
        .schema
        .columns
        .iter()
        .map(|c| format!("  {}", quoted(&c.name)))
        .collect();
    let mut out = format!(
        "CREATE {temporary}VIEW {} (\n{}\n)\n",
        view.path.quoted(),
        columns.join(",\n")
    );
    if let Some(comment) = view.comment.as_ref().filter(|c| !c.is_empty()) {
        let _ = writeln!(out, "COMMENT {}", string_literal(comment));
    }
    let _ = writeln!(out, "AS {}", view.expanded_text);
    out
}

/// The type of a catalog; the one that every session has says nothing.
pub(super) fn catalog_type(catalog: &Catalog) -> String {
    catalog
        .options
        .get("type")
        .map_or("generic_in_memory", String::as_str)
        .to_string()
}

fn serializable_fields(fields: &[RowField]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|f| format!("{} {}", quoted(&f.name), serializable(&f.data_type)))
        .collect();
    fields.join(", ")
}

/// A type as a statement has it, without abbreviations.
fn serializable(data_type: &DataType) -> String {
    let not_null = if data_type.nullable { "" } else { " NOT NULL" };
    let kind = match &data_type.kind {
        TypeKind::VarChar(n) => format!("VARCHAR({n})"),
        TypeKind::VarBinary(n) => format!("VARBINARY({n})"),
        TypeKind::TimestampLtz(p) => format!("TIMESTAMP({p}) WITH LOCAL TIME ZONE"),
        TypeKind::IntervalYearMonth => "INTERVAL MONTH".into(),
        TypeKind::Array(element) => format!("ARRAY<{}>", serializable(element)),
        TypeKind::Multiset(element) => format!("MULTISET<{}>", serializable(element)),
        TypeKind::Map(key, value) => {
            format!("MAP<{}, {}>", serializable(key), serializable(value))
        }
        TypeKind::Row(fields) => format!("ROW<{}>", serializable_fields(fields)),
        TypeKind::Structured(class, fields) => format!(
            "STRUCTURED<{}, {}>",
            string_literal(class),
            serializable_fields(fields)
        ),
        kind => kind.to_string(),
    };
    format!("{kind}{not_null}")
}
