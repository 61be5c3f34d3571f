//! The `datagen` connector: random values and sequences at a given rate.
//!
//! Every row is a function of the seed and its number, so a reader can start anywhere and a replay
//! gives the same rows (but for times, which come from the clock).

mod generator;
mod source;

use std::sync::Arc;

use self::generator::Generator;
use self::source::{DatagenSource, Settings};
use super::options::{Options, optional, refuse_unknown, scan_parallelism, wrong_value};
use super::print::source_only;
use super::{Connector, OptionSpec, Origin, TableDescription, TableSink, TableSource};
use crate::error::{Error, Result};
use crate::runtime::clock::Clock;

/// Rows per second when nothing else is asked for.
const DEFAULT_RATE: u64 = 10_000;

/// The connector.
#[derive(Debug)]
pub struct DatagenConnector {
    clock: Arc<dyn Clock>,
}

impl DatagenConnector {
    /// The connector that takes times and its rate from `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Connector for DatagenConnector {
    fn identifier(&self) -> &'static str {
        "datagen"
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            optional("rows-per-second", "rate (10000)"),
            scan_parallelism(),
            optional("number-of-rows", "rows in all; without it no end"),
            optional("fields.#.kind", "random or sequence (random)"),
            optional("fields.#.min", "least random value"),
            optional("fields.#.max", "greatest random value"),
            optional("fields.#.max-past", "how far back random timestamps go (0)"),
            optional(
                "fields.#.length",
                "length of strings (100) and collections (3)",
            ),
            optional("fields.#.var-len", "random length up to the length (false)"),
            optional("fields.#.null-rate", "share of NULL (0)"),
            optional("fields.#.start", "first value of a sequence"),
            optional("fields.#.end", "last value of a sequence"),
            OptionSpec {
                flink: false,
                ..optional("seed", "number from which random values follow")
            },
        ]
    }

    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        let options = Options::of(table);
        let mut known = vec![
            "rows-per-second".to_string(),
            "number-of-rows".to_string(),
            "seed".to_string(),
        ];
        let mut generators = Vec::with_capacity(table.physical.len());
        for column in &table.physical.columns {
            let path = format!("fields.{}", column.name);
            let kind = format!("{path}.kind");
            let generator = match options.get(&kind).unwrap_or("random") {
                "random" => Generator::random(&column.data_type, &path, options, &mut known)?,
                "sequence" => Generator::sequence(&column.data_type, &path, options, &mut known)?,
                other => {
                    return Err(
                        Error::options(format!("Unsupported generator kind: {other}"))
                            .hint("'random' and 'sequence' are supported"),
                    );
                }
            };
            known.push(kind);
            generators.push(generator);
        }
        refuse_unknown(self.identifier(), table, known)?;
        let rate = options
            .parsed("rows-per-second", "a number of rows")?
            .unwrap_or(DEFAULT_RATE);
        if rate == 0 {
            return Err(wrong_value(
                "rows-per-second",
                "0",
                "a number above zero is expected",
            ));
        }
        let seed = match options.parsed("seed", "a number")? {
            Some(seed) => seed,
            None => random_seed()?,
        };
        Ok(Arc::new(DatagenSource::new(Settings {
            generators,
            schema: table.physical.clone(),
            rate,
            rows: options.parsed("number-of-rows", "a number of rows")?,
            seed,
            zone: table.time_zone,
            clock: Arc::clone(&self.clock),
        })))
    }

    fn sink(&self, _table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        Err(source_only(self.identifier()))
    }
}

fn random_seed() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::connector(format!("no random numbers: {e}")))
}

#[cfg(test)]
mod tests;
