//! SHOW: lists of what there is.

use sqlparser::ast::ObjectName;

use super::listing::Listing;
use super::{Session, StatementResult};
use crate::catalog::CatalogEntry;
use crate::error::{Error, Result};
use crate::plan::binder::object_parts;
use crate::sql::ast::{ObjectKind, Show, ShowFilter, ShowWhat};

impl Session {
    pub(super) fn show(&self, show: &Show) -> Result<StatementResult> {
        let filter = show.filter.as_ref();
        let listing = match &show.what {
            ShowWhat::Catalogs => list("catalog name", self.catalogs.catalog_names(), filter),
            ShowWhat::CurrentCatalog => Listing::of(
                "current catalog name",
                [self.catalogs.current().0.to_string()],
            ),
            ShowWhat::CurrentDatabase => Listing::of(
                "current database name",
                [self.catalogs.current().1.to_string()],
            ),
            ShowWhat::Databases => {
                let catalog = self.catalog_of(show.from.as_ref())?;
                list(
                    "database name",
                    self.catalogs.database_names(&catalog)?,
                    filter,
                )
            }
            ShowWhat::Tables => list(
                "table name",
                self.entries(show.from.as_ref(), |_| true)?,
                filter,
            ),
            ShowWhat::Views => list(
                "view name",
                self.entries(show.from.as_ref(), |is_view| is_view)?,
                filter,
            ),
            ShowWhat::MaterializedTables => {
                self.entries(show.from.as_ref(), |_| true)?;
                Listing::new(&["table name"])
            }
            ShowWhat::Models => Listing::new(&["model name"]),
            ShowWhat::Jars => Listing::new(&["jars"]),
            ShowWhat::Procedures => {
                return Err(Error::plan("a catalog in memory has no procedures"));
            }
            ShowWhat::Columns => return self.show_columns(show),
            ShowWhat::Partitions(table) => self.show_partitions(table)?,
            ShowWhat::Functions { user } => {
                let names = self.function_names(show.from.as_ref(), *user)?;
                list("function name", names, filter)
            }
            ShowWhat::Modules { full } => self.show_modules(*full),
            ShowWhat::Jobs => self.show_jobs(),
            ShowWhat::Create(ObjectKind::Table, name) => self.show_create_table(name)?,
            ShowWhat::Create(ObjectKind::View, name) => self.show_create_view(name)?,
            ShowWhat::Create(ObjectKind::Catalog, name) => self.show_create_catalog(name)?,
            ShowWhat::Create(kind, _) => {
                let what = match kind {
                    ObjectKind::Model => "SHOW CREATE MODEL",
                    _ => "SHOW CREATE MATERIALIZED TABLE",
                };
                return Err(self.unsupported(what));
            }
        };
        Ok(StatementResult::Listing(listing))
    }

    fn catalog_of(&self, from: Option<&ObjectName>) -> Result<String> {
        match from.map(object_parts).transpose()? {
            None => Ok(self.catalogs.current().0.to_string()),
            Some(parts) => match parts.as_slice() {
                [catalog] => Ok(catalog.clone()),
                _ => Err(Error::plan(format!(
                    "'{}' is not the name of a catalog",
                    parts.join(".")
                ))),
            },
        }
    }

    /// Names of a database's tables and views, or of those whose being a view pleases `keep`.
    fn entries(
        &self,
        from: Option<&ObjectName>,
        keep: impl Fn(bool) -> bool,
    ) -> Result<Vec<String>> {
        let (catalog, database) = match from {
            Some(name) => self.database_of(name)?,
            None => {
                let (catalog, database) = self.catalogs.current();
                (catalog.to_string(), database.to_string())
            }
        };
        self.catalogs.database(&catalog, &database)?;
        let entries = self.catalogs.list(&catalog, &database);
        Ok(entries
            .into_iter()
            .filter(|(_, entry)| keep(entry.is_view()))
            .map(|(name, _)| name)
            .collect())
    }

    fn show_columns(&self, show: &Show) -> Result<StatementResult> {
        let from = show
            .from
            .as_ref()
            .ok_or_else(|| Error::internal("SHOW COLUMNS without a table"))?;
        let mut listing = self.describe_entry(from)?;
        if let Some(filter) = &show.filter {
            listing
                .rows
                .retain(|row| matches!(row.first(), Some(Some(name)) if passes(filter, name)));
        }
        Ok(StatementResult::Listing(listing))
    }

    fn show_partitions(&self, name: &ObjectName) -> Result<Listing> {
        let path = self.path_of(name)?;
        let Some(CatalogEntry::Table(table)) = self.catalogs.get_permanent(&path) else {
            let error = Error::catalog(format!(
                "Table (or view) {}.{} does not exist in Catalog {}.",
                path.database, path.name, path.catalog
            ));
            return Err(self.catalogs.suggest(&path, error));
        };
        if table.partitioned_by.is_empty() {
            return Err(Error::catalog(format!(
                "Table {}.{} in catalog {} is not partitioned.",
                path.database, path.name, path.catalog
            )));
        }
        let partitions = table.partitions.iter().map(|spec| {
            let parts: Vec<_> = spec.iter().map(|(k, v)| format!("{k}={v}")).collect();
            parts.join("/")
        });
        Ok(Listing::of("partition name", partitions))
    }
}

fn list(column: &str, names: Vec<String>, filter: Option<&ShowFilter>) -> Listing {
    let shown = names
        .into_iter()
        .filter(|name| filter.is_none_or(|f| passes(f, name)));
    Listing::of(column, shown)
}

/// Whether `[NOT] LIKE` lets a name through. `%` is any text, `_` any character, `\` makes either
/// plain.
fn passes(filter: &ShowFilter, name: &str) -> bool {
    let chars = |text: &str| -> Vec<char> {
        if filter.ignore_case {
            text.to_lowercase().chars().collect()
        } else {
            text.chars().collect()
        }
    };
    matches(&chars(&filter.pattern), &chars(name)) != filter.negated
}

fn matches(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|i| matches(rest, &text[i..])),
        ['_', rest @ ..] => !text.is_empty() && matches(rest, &text[1..]),
        ['\\', c, rest @ ..] | [c, rest @ ..] => {
            text.first() == Some(c) && matches(rest, &text[1..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(pattern: &str, name: &str) -> bool {
        let filter = ShowFilter {
            negated: false,
            ignore_case: false,
            pattern: pattern.into(),
        };
        passes(&filter, name)
    }

    #[test]
    fn patterns_are_those_of_like() {
        assert!(like("or%_s", "orders"));
        assert!(!like("or%_s", "ors"));
        assert!(!like("OR%", "orders"));
        assert!(like("a\\_b", "a_b"));
        assert!(!like("a\\_b", "axb"));
    }
}
