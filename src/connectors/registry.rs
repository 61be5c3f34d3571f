//! Finds the connector of a table by the option `connector`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::blackhole::BlackholeConnector;
use super::changelog::ChangelogConnector;
use super::console::{Console, StandardConsole};
use super::datagen::DatagenConnector;
use super::filesystem::FilesystemConnector;
use super::fold::{FoldConnector, FoldStore};
use super::memory::{MemoryConnector, MemoryStore};
use super::nexmark::NexmarkConnector;
use super::print::PrintConnector;
use super::{Connector, TableDescription, TableSink, TableSource};
use crate::error::{Error, Result, did_you_mean};
use crate::runtime::clock::{Clock, SystemClock};

/// What connectors share within a session.
#[derive(Debug, Clone)]
pub struct ConnectorContext {
    /// Where `print` and `changelog` sinks write.
    pub console: Arc<dyn Console>,
    /// Tells the time to sources that make or look at times.
    pub clock: Arc<dyn Clock>,
    /// The content of `memory` tables.
    pub memory: Arc<MemoryStore>,
    /// What was written to `fold` tables.
    pub fold: Arc<FoldStore>,
}

impl Default for ConnectorContext {
    /// The process's own streams and the operating system's clock.
    fn default() -> Self {
        Self {
            console: Arc::new(StandardConsole),
            clock: Arc::new(SystemClock),
            memory: Arc::default(),
            fold: Arc::default(),
        }
    }
}

/// The connectors of a session, by identifier.
#[derive(Default)]
pub struct ConnectorRegistry {
    connectors: BTreeMap<&'static str, Arc<dyn Connector>>,
}

impl ConnectorRegistry {
    /// The built-in connectors.
    #[must_use]
    pub fn standard(context: &ConnectorContext) -> Self {
        let mut registry = Self::default();
        registry.register(Arc::new(BlackholeConnector));
        registry.register(Arc::new(ChangelogConnector::new(Arc::clone(
            &context.console,
        ))));
        registry.register(Arc::new(DatagenConnector::new(Arc::clone(&context.clock))));
        registry.register(Arc::new(FilesystemConnector::new(Arc::clone(
            &context.clock,
        ))));
        registry.register(Arc::new(FoldConnector::new(
            Arc::clone(&context.console),
            Arc::clone(&context.fold),
        )));
        #[cfg(feature = "kafka")]
        {
            registry.register(Arc::new(super::kafka::KafkaConnector));
            registry.register(Arc::new(super::kafka::UpsertKafkaConnector));
        }
        registry.register(Arc::new(MemoryConnector::new(Arc::clone(&context.memory))));
        registry.register(Arc::new(NexmarkConnector::new(Arc::clone(&context.clock))));
        registry.register(Arc::new(PrintConnector::new(Arc::clone(&context.console))));
        registry
    }

    /// Adds a connector, in place of one with the same identifier.
    pub fn register(&mut self, connector: Arc<dyn Connector>) {
        self.connectors.insert(connector.identifier(), connector);
    }

    /// All connectors, by identifier.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Connector>> {
        self.connectors.values()
    }

    /// The connector that `table` names.
    ///
    /// # Errors
    /// When it names none, or one that is not known.
    pub fn connector(&self, table: &TableDescription) -> Result<&Arc<dyn Connector>> {
        let Some(identifier) = table.options.get("connector") else {
            return Err(Error::options(
                "Table options do not contain an option key 'connector' for discovering a connector.",
            )
            .context(format!("table '{}'", table.path)));
        };
        self.connectors.get(identifier.as_str()).ok_or_else(|| {
            let known: Vec<&str> = self.connectors.keys().copied().collect();
            let error = Error::options(format!(
                "Could not find any factory for identifier '{identifier}' that implements \
                 'DynamicTableFactory'.\n\nAvailable factory identifiers are:\n\n{}",
                known.join("\n")
            ))
            .context(format!("table '{}'", table.path));
            match did_you_mean(identifier, known) {
                Some(close) => error.hint(format!("did you mean '{close}'?")),
                None => error,
            }
        })
    }

    /// `table` as a source.
    ///
    /// # Errors
    /// When its connector is not known, refuses an option or only writes.
    pub fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        self.connector(table)?
            .source(table)
            .map_err(|e| e.context(format!("table '{}'", table.path)))
    }

    /// `table` as a sink.
    ///
    /// # Errors
    /// When its connector is not known, refuses an option or only reads.
    pub fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        self.connector(table)?
            .sink(table)
            .map_err(|e| e.context(format!("table '{}'", table.path)))
    }
}

impl fmt::Debug for ConnectorRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.connectors.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::table;

    #[test]
    fn unknown_connector_lists_the_known_ones() {
        let registry = ConnectorRegistry::standard(&ConnectorContext::default());
        let error = registry
            .source(&table("a INT", &[("connector", "chagelog")]))
            .unwrap_err();
        assert!(
            error.message().contains("\n\nblackhole\nchangelog\n"),
            "{error}"
        );
        assert_eq!(error.hint_text(), Some("did you mean 'changelog'?"));
        let error = registry.sink(&table("a INT", &[])).unwrap_err();
        assert!(error.message().contains("'connector'"), "{error}");
    }
}
