//! The `blackhole` connector: swallows every row.

use std::sync::Arc;

use super::options::validate;
use super::print::sink_only;
use super::{
    Connector, OptionSpec, Origin, SinkWriter, SinkWriterFactory, TableDescription, TableSink,
    TableSource,
};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::Result;

/// The connector.
#[derive(Debug, Default)]
pub struct BlackholeConnector;

impl Connector for BlackholeConnector {
    fn identifier(&self) -> &'static str {
        "blackhole"
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        Vec::new()
    }

    fn source(&self, _table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        Err(sink_only(self.identifier()))
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        validate(self.identifier(), table, &self.options())?;
        Ok(Arc::new(Blackhole))
    }
}

struct Blackhole;

impl TableSink for Blackhole {
    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        requested.without_update_before()
    }

    fn writers(&self) -> Result<Arc<dyn SinkWriterFactory>> {
        Ok(Arc::new(Self))
    }
}

impl SinkWriterFactory for Blackhole {
    fn create(&self, _subtask: usize, _parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Self))
    }
}

impl SinkWriter for Blackhole {
    fn write(&mut self, _batch: &ChangeBatch) -> Result<()> {
        Ok(())
    }
}
