//! The table as a source: what is read of each file, and how files are shared among subtasks.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Layout;
use super::listing::{DataFile, failed};
use super::reader::FileReader;
use crate::changelog::ChangelogMode;
use crate::connectors::lookup::TableLookup;
use crate::connectors::lookup::options::LookupSettings;
use crate::connectors::options::Options;
use crate::connectors::{
    SourceReader, SourceReaderFactory, SplitPosition, TableDescription, TableSource,
};
use crate::error::{Error, Result};
use crate::formats::{DecodedColumns, DecodingFormat};
use crate::runtime::clock::Clock;
use crate::types::{Column, DataType, Schema, TypeKind};

/// What the connector tells of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileInfo {
    Path,
    Name,
    Size,
    ModificationTime,
}

impl FileInfo {
    const ALL: [(&'static str, Self); 4] = [
        ("file.path", Self::Path),
        ("file.name", Self::Name),
        ("file.size", Self::Size),
        ("file.modification-time", Self::ModificationTime),
    ];

    fn data_type(self) -> DataType {
        match self {
            Self::Path | Self::Name => TypeKind::STRING,
            Self::Size => TypeKind::BigInt,
            Self::ModificationTime => TypeKind::TimestampLtz(3),
        }
        .not_null()
    }
}

/// Where a column of the output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Column of the decoder.
    Decoded(usize),
    /// Partition column.
    Partition(usize),
    /// Metadata.
    Info(FileInfo),
}

/// One use of a table as a source.
pub(super) struct FileSource {
    layout: Layout,
    format: Arc<dyn DecodingFormat>,
    interval: Option<Duration>,
    /// The declared metadata columns.
    metadata: Vec<(FileInfo, Column)>,
    lookup: LookupSettings,
    clock: Arc<dyn Clock>,
}

impl FileSource {
    pub(super) fn new(
        layout: Layout,
        format: Arc<dyn DecodingFormat>,
        interval: Option<Duration>,
        table: &TableDescription,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let metadata = table
            .metadata
            .iter()
            .map(|(key, column)| {
                let info = FileInfo::ALL.iter().find(|(k, _)| k == key);
                let (_, info) = info.ok_or_else(|| {
                    Error::options(format!(
                        "Invalid metadata key '{key}' in column '{}' of table '{}'. The following metadata keys are supported for reading:\n{}",
                        column.name,
                        table.path,
                        FileInfo::ALL.map(|(k, _)| k).join("\n")
                    ))
                })?;
                Ok((*info, column.clone()))
            })
            .collect::<Result<_>>()?;
        let source = Self {
            layout,
            format,
            interval,
            metadata,
            lookup: LookupSettings::full_by_default(Options::of(table))?,
            clock,
        };
        // Types that the format cannot read are refused when the table is used, not when it runs.
        let all: Vec<usize> = (0..source.layout.physical.len()).collect();
        let columns = source.plan(&all).columns;
        match source.format.bulk() {
            Some(bulk) => bulk.check(&columns)?,
            None => drop(source.format.decoder(&columns)?),
        }
        Ok(source)
    }

    /// What is read for the columns of `projection`.
    fn plan(&self, projection: &[usize]) -> ReadPlan {
        let in_files = self.layout.in_files();
        let physical = &self.layout.physical;
        let mut columns = DecodedColumns {
            schema: physical.project(&in_files),
            ..DecodedColumns::default()
        };
        let mut origins = Vec::with_capacity(projection.len());
        let mut output = Vec::with_capacity(projection.len());
        for index in projection {
            let Some(column) = physical.columns.get(*index) else {
                let (info, column) = &self.metadata[index - physical.len()];
                origins.push(Origin::Info(*info));
                output.push(column.clone());
                continue;
            };
            output.push(column.clone());
            let partition = self.layout.partitions.iter().position(|p| p == index);
            origins.push(if let Some(partition) = partition {
                Origin::Partition(partition)
            } else {
                let field = in_files.iter().position(|i| i == index).unwrap_or(0);
                columns.projection.push(field);
                Origin::Decoded(columns.projection.len() - 1)
            });
        }
        ReadPlan {
            layout: self.layout.clone(),
            format: Arc::clone(&self.format),
            columns,
            origins,
            output: Schema::new(output),
        }
    }
}

/// What is read of each file.
pub(super) struct ReadPlan {
    pub(super) layout: Layout,
    pub(super) format: Arc<dyn DecodingFormat>,
    /// What the decoder gives.
    pub(super) columns: DecodedColumns,
    pub(super) origins: Vec<Origin>,
    /// The columns of the output.
    pub(super) output: Schema,
}

impl TableSource for FileSource {
    fn changelog_mode(&self) -> ChangelogMode {
        self.format.changelog_mode()
    }

    fn is_bounded(&self) -> bool {
        self.interval.is_none()
    }

    fn metadata(&self) -> Vec<(String, DataType)> {
        FileInfo::ALL
            .iter()
            .map(|(key, info)| ((*key).to_string(), info.data_type()))
            .collect()
    }

    fn max_parallelism(&self) -> usize {
        usize::MAX
    }

    fn lookup(self: Arc<Self>) -> Option<TableLookup> {
        let mut columns = self.layout.physical.clone();
        let metadata = self.metadata.iter().map(|(_, column)| column.clone());
        columns.columns.extend(metadata);
        Some(self.lookup.of_whole_table(self, columns))
    }

    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>> {
        // All subtasks of a bounded job share one look at the folder.
        let files = match self.interval {
            None => self.layout.files()?,
            Some(_) => Vec::new(),
        };
        Ok(Arc::new(Readers {
            plan: Arc::new(self.plan(projection)),
            files,
            interval: self.interval,
            clock: Arc::clone(&self.clock),
        }))
    }
}

struct Readers {
    plan: Arc<ReadPlan>,
    files: Vec<DataFile>,
    interval: Option<Duration>,
    clock: Arc<dyn Clock>,
}

/// Which files are read by one subtask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) subtask: usize,
    pub(super) parallelism: usize,
}

impl Share {
    /// Whether a file that appears while the job runs is the subtask's: every subtask looks, and
    /// must come to the same answer.
    pub(super) fn owns(self, path: &str) -> bool {
        let hash = crc32fast::hash(path.as_bytes());
        usize::try_from(hash).unwrap_or(0) % self.parallelism.max(1) == self.subtask
    }
}

impl Readers {
    /// The files, or where they are too few for all subtasks and can be cut, their parts.
    fn splits(&self, parallelism: usize) -> Result<Vec<DataFile>> {
        let bulk = self.plan.format.bulk();
        let Some(bulk) = bulk.filter(|_| self.files.len() < parallelism) else {
            return Ok(self.files.clone());
        };
        let mut splits = Vec::new();
        for file in &self.files {
            let input = File::open(&file.path).map_err(|e| failed(&file.path, &e))?;
            let parts = bulk.parts(input);
            let parts = parts.map_err(|e| e.context(format!("file {}", file.path.display())))?;
            splits.extend((0..parts).map(|part| DataFile {
                part: Some(part),
                ..file.clone()
            }));
        }
        Ok(splits)
    }
}

impl SourceReaderFactory for Readers {
    fn create(
        &self,
        subtask: usize,
        parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let share = Share {
            subtask,
            parallelism,
        };
        let mut reader = FileReader::new(Arc::clone(&self.plan))?;
        if let Some(interval) = self.interval {
            reader.monitor(share, interval, Arc::clone(&self.clock));
            for position in restored.iter().filter(|p| share.owns(&p.split)) {
                reader.resume(position)?;
            }
            return Ok(Box::new(reader));
        }
        if restored.is_empty() {
            let splits = self.splits(parallelism)?.into_iter();
            for file in splits.skip(subtask).step_by(parallelism.max(1)) {
                reader.add(file);
            }
        } else {
            let mut positions: Vec<&SplitPosition> = restored.iter().collect();
            positions.sort_by_key(|p| PathBuf::from(&p.split));
            for position in positions.iter().skip(subtask).step_by(parallelism.max(1)) {
                reader.resume(position)?;
            }
        }
        Ok(Box::new(reader))
    }
}
