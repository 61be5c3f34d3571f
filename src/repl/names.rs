//! The words that can be completed.

use std::collections::BTreeSet;

use crate::catalog::CatalogEntry;
use crate::config::Configuration;
use crate::session::Session;
use crate::sql::keywords;

/// Names by kind; tables and columns as they are now.
#[derive(Debug, Default)]
pub(super) struct Names {
    tables: BTreeSet<String>,
    columns: BTreeSet<String>,
    functions: BTreeSet<String>,
    settings: BTreeSet<String>,
}

impl Names {
    pub(super) fn of(session: &Session) -> Self {
        let mut names = Self::default();
        let (catalog, database) = session.catalogs.current();
        for (name, entry) in session.catalogs.list(catalog, database) {
            match &entry {
                CatalogEntry::Table(table) => {
                    names
                        .columns
                        .extend(table.columns.iter().map(|c| c.name.clone()));
                }
                CatalogEntry::View(view) => names.columns.extend(view.schema.names()),
            }
            names.tables.insert(name);
        }
        let functions = session.functions.names().map(str::to_uppercase);
        names.functions = functions
            .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
            .collect();
        names.settings = Configuration::known_keys().map(str::to_string).collect();
        names
            .settings
            .extend(session.config.iter().map(|(key, _)| key.to_string()));
        names
    }

    /// What may stand for `word`: settings inside quotes, else tables, columns, keywords and
    /// functions. Keywords come in the case of `word`.
    pub(super) fn complete(&self, word: &str, in_quotes: bool) -> Vec<String> {
        let starts = |name: &&str| {
            name.get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        if in_quotes {
            let keys = self.settings.iter().map(String::as_str);
            return keys.filter(starts).map(str::to_string).collect();
        }
        let mut found: Vec<String> = Vec::new();
        let own = self.tables.iter().chain(&self.columns).map(String::as_str);
        found.extend(own.filter(starts).map(str::to_string));
        if !word.is_empty() {
            let lower = !word.chars().any(|c| c.is_ascii_uppercase());
            let keywords: Vec<&str> = keywords::all().collect();
            let functions = self.functions.iter().map(String::as_str);
            let fixed = keywords.iter().copied().chain(functions);
            found.extend(fixed.filter(starts).map(|name| {
                if lower {
                    name.to_lowercase()
                } else {
                    name.to_string()
                }
            }));
        }
        let mut seen = BTreeSet::new();
        found.retain(|name| seen.insert(name.clone()));
        found
    }

    #[cfg(test)]
    pub(super) fn with_tables(tables: &[&str]) -> Self {
        Self {
            tables: tables.iter().map(ToString::to_string).collect(),
            settings: ["table.dml-sync".to_string()].into(),
            ..Self::default()
        }
    }
}
