//! The `nexmark` connector: the events of an auction house, the benchmark of stream processors.
//!
//! `docs/nexmark.md` defines every value by arithmetic on the number of the event, so a reader can
//! start anywhere and any number of readers share the work. Only what is read is computed.
//!
//! - [`model`]: the arithmetic,
//! - [`columns`]: columns of many events,
//! - [`source`]: which events, and when.

mod columns;
mod model;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::columns::Layout;
use self::model::{BASE_TIME, Model};
use self::source::{NexmarkSource, Settings};
use super::options::{Options, optional, validate, wrong_value};
use super::print::source_only;
use super::{Connector, OptionSpec, TableDescription, TableSink, TableSource};
use crate::error::Result;
use crate::runtime::clock::Clock;

/// Events per second of event time when nothing else is asked for.
const DEFAULT_RATE: i64 = 100_000;

/// The connector.
#[derive(Debug)]
pub struct NexmarkConnector {
    clock: Arc<dyn Clock>,
}

impl NexmarkConnector {
    /// The connector that takes its pace, when it keeps one, from `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Connector for NexmarkConnector {
    fn identifier(&self) -> &'static str {
        "nexmark"
    }

    fn options(&self) -> Vec<OptionSpec> {
        let own = |key, help| OptionSpec {
            flink: false,
            ..optional(key, help)
        };
        vec![
            own("events.num", "events in all; 0 is no end (0)"),
            own("next-event.rate", "events a second of event time (100000)"),
            own(
                "base-time",
                "time of the first event, ms since 1970 (1704067200000)",
            ),
            own(
                "throttle",
                "give events at their rate, not as fast as possible (false)",
            ),
        ]
    }

    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        validate(self.identifier(), table, &self.options())?;
        let options = Options::of(table);
        let rate = options
            .parsed("next-event.rate", "a number of events")?
            .unwrap_or(DEFAULT_RATE);
        if rate <= 0 {
            return Err(wrong_value(
                "next-event.rate",
                &rate.to_string(),
                "a number above zero is expected",
            ));
        }
        let events: u64 = options
            .parsed("events.num", "a number of events")?
            .unwrap_or(0);
        let base = options
            .parsed("base-time", "milliseconds since 1970")?
            .unwrap_or(BASE_TIME);
        Ok(Arc::new(NexmarkSource::new(Settings {
            schema: table.physical.clone(),
            layout: Layout::of(&table.physical)?,
            model: Arc::new(Model::new(rate, base)),
            end: (events > 0).then_some(events),
            throttle: options.boolean("throttle", false)?,
            clock: Arc::clone(&self.clock),
        })))
    }

    fn sink(&self, _table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        Err(source_only(self.identifier()))
    }
}
