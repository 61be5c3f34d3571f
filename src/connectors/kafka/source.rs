//! The table as a source: which part of a record becomes which column.

use std::sync::Arc;

use super::decode::{DecodePlan, Origin, Piece};
use super::metadata::Metadata;
use super::nested;
use super::properties::Properties;
use super::reader::KafkaReader;
use super::settings::{ScanSettings, TableSettings, Topics};
use crate::changelog::ChangelogMode;
use crate::connectors::pushdown::{FieldPath, Pushdown, PushedScan};
use crate::connectors::{
    SourceReader, SourceReaderFactory, SplitPosition, TableDescription, TableSource,
};
use crate::error::{Error, Result};
use crate::formats::{DecodedColumns, DecodingFormat};
use crate::types::cast::Environment;
use crate::types::{Column, DataType, Schema};

/// In front of the metadata of the value's format.
const OF_VALUE: &str = "value.";

/// One use of a table as a source.
pub(super) struct KafkaSource {
    settings: TableSettings,
    scan: ScanSettings,
    key: Option<Arc<dyn DecodingFormat>>,
    value: Arc<dyn DecodingFormat>,
    physical: Schema,
    /// The declared metadata columns: key, and the column.
    metadata: Vec<(String, Column)>,
    environment: Environment,
    upsert: bool,
    path: String,
}

/// What the readers of all subtasks share.
pub(super) struct Shared {
    pub(super) topics: Topics,
    pub(super) properties: Properties,
    pub(super) scan: ScanSettings,
    pub(super) plan: DecodePlan,
    /// Stands in for a group that is not given.
    pub(super) stand_in_group: String,
}

/// The formats of a table for reading.
pub(super) struct Decoding {
    pub(super) key: Option<Arc<dyn DecodingFormat>>,
    pub(super) value: Arc<dyn DecodingFormat>,
}

impl KafkaSource {
    pub(super) fn new(
        table: &TableDescription,
        settings: TableSettings,
        scan: ScanSettings,
        formats: Decoding,
        upsert: bool,
    ) -> Result<Self> {
        let this = Self {
            settings,
            scan,
            key: formats.key,
            value: formats.value,
            physical: table.physical.clone(),
            metadata: table.metadata.clone(),
            environment: Environment {
                time_zone: table.time_zone,
                legacy_cast: false,
            },
            upsert,
            path: table.path.clone(),
        };
        // Types that a format cannot read are refused when the table is used, not when it runs.
        let all: Vec<usize> = (0..this.physical.len() + this.metadata.len()).collect();
        this.plan(&whole(&all))?.decoder()?;
        Ok(this)
    }

    /// How the columns `asked`, or fields in them, are made of records.
    fn plan(&self, asked: &[FieldPath]) -> Result<DecodePlan> {
        let fields = &self.settings.fields;
        let mut key = DecodedColumns {
            schema: fields.key_schema(&self.physical),
            ..DecodedColumns::default()
        };
        let mut value = DecodedColumns {
            schema: fields.value_schema(&self.physical),
            ..DecodedColumns::default()
        };
        let of_value = self.value.metadata();
        let mut metadata = Vec::new();
        let mut pieces = Vec::with_capacity(asked.len());
        let mut output = Vec::with_capacity(asked.len());
        for FieldPath {
            column: index,
            fields: path,
        } in asked
        {
            let piece = |origin| Piece {
                origin,
                path: path.clone(),
            };
            if let Some(column) = self.physical.columns.get(*index) {
                output.push(column.clone());
                let in_key = fields.key.iter().position(|i| i == index);
                let in_value = fields.value.iter().position(|i| i == index);
                // What lies in both is read from the value, as in Flink; a deletion has no value.
                pieces.push(match (in_key, in_value) {
                    (Some(i), value) if self.upsert || value.is_none() => {
                        piece(Origin::Key(place(i, &mut key.projection)))
                    }
                    (_, Some(i)) => {
                        let place = place(i, &mut value.projection);
                        let paths = if self.value.finds_by_name() {
                            let same = asked.iter().filter(|other| other.column == *index);
                            same.map(|other| other.fields.as_slice()).collect()
                        } else {
                            vec![&[][..]]
                        };
                        value.schema.columns[i].data_type =
                            nested::prune(&column.data_type, &paths);
                        Piece {
                            origin: Origin::Value(place),
                            path: nested::moved(path, &paths),
                        }
                    }
                    (_, None) => return Err(Error::internal("a column of neither key nor value")),
                });
                continue;
            }
            let (name, column) = &self.metadata[index - self.physical.len()];
            output.push(column.clone());
            if let Some(own) = Metadata::find(name) {
                metadata.push(own);
                pieces.push(piece(Origin::Metadata(metadata.len() - 1)));
                continue;
            }
            let found = name.strip_prefix(OF_VALUE);
            let found = found.and_then(|n| of_value.iter().find(|(key, _)| key == n));
            let Some(found) = found else {
                return Err(self.unknown_metadata(name, column));
            };
            // Metadata columns follow all columns of the record: they are numbered at the end.
            value.metadata.push(found.clone());
            pieces.push(piece(Origin::Value(usize::MAX - value.metadata.len())));
        }
        let columns = value.projection.len();
        for piece in &mut pieces {
            if let Origin::Value(i) = &mut piece.origin
                && *i > usize::MAX / 2
            {
                *i = columns + (usize::MAX - *i) - 1;
            }
        }
        let needs_key = self.upsert || !key.projection.is_empty();
        let output = Schema::new(output);
        Ok(DecodePlan {
            key: self
                .key
                .as_ref()
                .filter(|_| needs_key)
                .map(|format| (Arc::clone(format), key)),
            value: (Arc::clone(&self.value), value),
            metadata,
            pieces,
            arrow: output.to_arrow(),
            output,
            upsert: self.upsert,
            environment: self.environment.clone(),
        })
    }

    fn unknown_metadata(&self, key: &str, column: &Column) -> Error {
        let keys: Vec<String> = self.metadata().into_iter().map(|(key, _)| key).collect();
        Error::options(format!(
            "Invalid metadata key '{key}' in column '{}' of table '{}'. The following metadata keys \
             are supported for reading:\n{}",
            column.name,
            self.path,
            keys.join("\n")
        ))
    }

    fn factory(&self, plan: DecodePlan, by_split: bool) -> Arc<dyn SourceReaderFactory> {
        Arc::new(Readers {
            shared: Arc::new(Shared {
                topics: self.settings.topics.clone(),
                properties: self.settings.properties.clone(),
                scan: self.scan.clone(),
                plan,
                stand_in_group: format!("ebbflow-{}", self.path),
            }),
            by_split,
        })
    }

    fn pushed_plan(&self, scan: &PushedScan) -> Result<DecodePlan> {
        Ok(DecodePlan {
            arrow: Arc::clone(&scan.schema),
            ..self.plan(&scan.fields)?
        })
    }
}

/// The place of `column` in a projection, to which it is added if need be.
fn place(column: usize, projection: &mut Vec<usize>) -> usize {
    let found = projection.iter().position(|i| *i == column);
    found.unwrap_or_else(|| {
        projection.push(column);
        projection.len() - 1
    })
}

fn whole(projection: &[usize]) -> Vec<FieldPath> {
    projection.iter().map(|i| FieldPath::column(*i)).collect()
}

impl Pushdown for KafkaSource {
    fn readers(&self, scan: &PushedScan) -> Result<Arc<dyn SourceReaderFactory>> {
        Ok(self.factory(self.pushed_plan(scan)?, false))
    }

    fn split_readers(&self, scan: &PushedScan) -> Result<Option<Arc<dyn SourceReaderFactory>>> {
        Ok(Some(self.factory(self.pushed_plan(scan)?, true)))
    }
}

impl TableSource for KafkaSource {
    fn changelog_mode(&self) -> ChangelogMode {
        if self.upsert {
            return ChangelogMode {
                insert: false,
                ..ChangelogMode::UPSERT
            };
        }
        self.value.changelog_mode()
    }

    fn is_bounded(&self) -> bool {
        self.scan.end.is_some()
    }

    fn metadata(&self) -> Vec<(String, DataType)> {
        let own = Metadata::ALL
            .iter()
            .map(|(key, m)| ((*key).to_string(), m.data_type()));
        let of_value = self.value.metadata().into_iter();
        own.chain(of_value.map(|(key, t)| (format!("{OF_VALUE}{key}"), t)))
            .collect()
    }

    fn max_parallelism(&self) -> usize {
        usize::MAX
    }

    fn pushdown(&self) -> Option<&dyn Pushdown> {
        // Whatever else lies in a row is passed only by a format that finds the rest by name.
        self.value.finds_by_name().then_some(self)
    }

    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>> {
        Ok(self.factory(self.plan(&whole(projection))?, false))
    }

    fn split_readers(&self, projection: &[usize]) -> Result<Option<Arc<dyn SourceReaderFactory>>> {
        Ok(Some(self.factory(self.plan(&whole(projection))?, true)))
    }
}

struct Readers {
    shared: Arc<Shared>,
    by_split: bool,
}

impl SourceReaderFactory for Readers {
    fn create(
        &self,
        subtask: usize,
        parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let shared = Arc::clone(&self.shared);
        let reader = KafkaReader::new(shared, subtask, parallelism, restored, self.by_split)?;
        Ok(Box::new(reader))
    }
}
