//! The `memory` connector: dynamic tables that live in the session.
//!
//! INSERT, UPDATE and DELETE change a table; a query over it sees the content of the moment when it
//! starts, then every change. It ends when the session says that a table's input is finished. With a
//! primary key a table keeps one row a key, without one it keeps all rows that were not withdrawn.
//!
//! Without checkpoints writers apply rows at once, with checkpoints when one is complete. A checkpoint
//! holds the table and what its readers have still to see, so a job goes on in another process too.
//!
//! - [`table`]: content and log of one table,
//! - [`lookup`]: its rows by key, for lookup joins,
//! - [`saved`]: its copy in a checkpoint,
//! - [`source`]: its readers,
//! - [`sink`]: its writers.

mod lookup;
mod saved;
mod sink;
mod source;
mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use self::table::MemoryTable;

use self::sink::MemorySink;
use self::source::MemorySource;
use super::lookup::options::{LookupSettings, lookup_options};
use super::options::{Options, optional, validate};
use super::{Connector, OptionSpec, TableDescription, TableSink, TableSource};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};

/// The memory tables of a session, by name.
#[derive(Debug, Default)]
pub struct MemoryStore {
    // No other lock is taken while this one is held.
    tables: Mutex<BTreeMap<String, Arc<MemoryTable>>>,
}

impl MemoryStore {
    /// The table that a declaration means, empty when it is new: the option `name`, or the table's
    /// own path.
    ///
    /// # Errors
    /// When a table of that name has other columns or another key.
    pub fn open(&self, table: &TableDescription) -> Result<Arc<MemoryTable>> {
        let name = name(table);
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = tables.get(name) {
            if found.has_shape(&table.physical, &table.primary_key) {
                return Ok(Arc::clone(found));
            }
            return Err(Error::options(format!(
                "The memory table '{name}' has other columns or another primary key."
            ))
            .hint("drop it, or give the table another 'name'"));
        }
        let made = Arc::new(MemoryTable::new(&table.physical, &table.primary_key)?);
        tables.insert(name.to_string(), Arc::clone(&made));
        Ok(made)
    }

    /// Forgets the table that a declaration means. Queries that read it keep what they have.
    pub fn remove(&self, table: &TableDescription) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.remove(name(table));
    }

    /// Lets another declaration have the table that one means.
    pub fn rename(&self, from: &TableDescription, to: &TableDescription) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.remove(name(from)) {
            tables.insert(name(to).to_string(), table);
        }
    }

    /// Says that no changes will come to any table: queries over them come to their end.
    pub fn finish_all(&self) {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        for table in tables.values() {
            table.finish();
        }
    }
}

fn name(table: &TableDescription) -> &str {
    table.options.get("name").map_or(&table.path, |n| n)
}

/// The connector.
#[derive(Debug)]
pub struct MemoryConnector {
    store: Arc<MemoryStore>,
}

impl MemoryConnector {
    /// The connector whose tables are in `store`.
    #[must_use]
    pub fn new(store: Arc<MemoryStore>) -> Self {
        Self { store }
    }
}

/// Whether the table's option says that it only grows.
fn is_append_only(table: &TableDescription) -> Result<bool> {
    Options::of(table).choice(
        "changelog-mode",
        &[("I", true), ("I,UB,UA,D", false)],
        false,
    )
}

impl Connector for MemoryConnector {
    fn identifier(&self) -> &'static str {
        "memory"
    }

    fn options(&self) -> Vec<OptionSpec> {
        let own = [
            optional("name", "name of the content, shared by all tables with it"),
            optional(
                "changelog-mode",
                "I for a table that only grows (I,UB,UA,D)",
            ),
        ]
        .map(|spec| OptionSpec {
            flink: false,
            ..spec
        });
        own.into_iter().chain(lookup_options()).collect()
    }

    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        validate(self.identifier(), table, &self.options())?;
        let mode = if is_append_only(table)? {
            ChangelogMode::APPEND
        } else {
            ChangelogMode::RETRACT
        };
        let content = self.store.open(table)?;
        Ok(Arc::new(MemorySource::new(
            content,
            mode,
            table.physical.clone(),
            LookupSettings::none_by_default(Options::of(table))?,
        )))
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        validate(self.identifier(), table, &self.options())?;
        Ok(Arc::new(MemorySink {
            table: self.store.open(table)?,
            append_only: is_append_only(table)?,
            keyed: !table.primary_key.is_empty(),
        }))
    }
}

#[cfg(test)]
mod tests;
