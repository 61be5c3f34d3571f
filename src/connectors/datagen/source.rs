//! Gives generated rows at a rate, split by split.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use chrono_tz::Tz;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use super::generator::{Generator, Moment};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::connectors::{
    SourcePoll, SourceReader, SourceReaderFactory, SplitPosition, TableSource,
};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::runtime::clock::Clock;
use crate::types::Schema;

/// What a table's options say.
pub(super) struct Settings {
    pub(super) generators: Vec<Generator>,
    pub(super) schema: Schema,
    /// Rows per second of all subtasks.
    pub(super) rate: u64,
    pub(super) rows: Option<u64>,
    pub(super) seed: u64,
    pub(super) zone: Tz,
    pub(super) clock: Arc<dyn Clock>,
}

/// One use of a table as a source.
pub(super) struct DatagenSource {
    settings: Arc<Settings>,
}

impl DatagenSource {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings: Arc::new(settings),
        }
    }
}

impl Settings {
    /// Rows in all, when there is an end.
    fn end(&self) -> Option<u64> {
        let sequences = self.generators.iter().filter_map(Generator::rows);
        sequences.chain(self.rows).min()
    }
}

impl TableSource for DatagenSource {
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    fn is_bounded(&self) -> bool {
        self.settings.end().is_some()
    }

    fn max_parallelism(&self) -> usize {
        usize::MAX
    }

    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>> {
        Ok(Arc::new(Readers {
            settings: Arc::clone(&self.settings),
            projection: projection.to_vec(),
        }))
    }
}

struct Readers {
    settings: Arc<Settings>,
    projection: Vec<usize>,
}

/// Rows `next`, `next + stride`, ... of all rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Split {
    next: u64,
    stride: u64,
    seed: u64,
}

impl Split {
    fn parse(position: &SplitPosition) -> Result<Self> {
        serde_json::from_str(&position.position).map_err(|e| {
            Error::checkpoint(format!(
                "'{}' is no position of datagen: {e}",
                position.position
            ))
        })
    }
}

impl SourceReaderFactory for Readers {
    fn create(
        &self,
        subtask: usize,
        parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let splits = if restored.is_empty() {
            vec![(
                format!("{subtask}/{parallelism}"),
                Split {
                    next: subtask as u64,
                    stride: parallelism as u64,
                    seed: self.settings.seed,
                },
            )]
        } else {
            restored
                .iter()
                .enumerate()
                .filter(|(i, _)| i % parallelism == subtask)
                .map(|(_, p)| Ok((p.split.clone(), Split::parse(p)?)))
                .collect::<Result<_>>()?
        };
        let schema = self.settings.schema.project(&self.projection);
        let rate = self.settings.rate.div_ceil(parallelism as u64);
        Ok(Box::new(Reader {
            builders: schema
                .columns
                .iter()
                .map(|c| ColumnBuilder::new(&c.data_type))
                .collect(),
            arrow: schema.to_arrow(),
            settings: Arc::clone(&self.settings),
            projection: self.projection.clone(),
            splits,
            rate,
            left: rate,
            next_second: None,
        }))
    }
}

struct Reader {
    settings: Arc<Settings>,
    projection: Vec<usize>,
    arrow: SchemaRef,
    builders: Vec<ColumnBuilder>,
    splits: Vec<(String, Split)>,
    /// Rows a second.
    rate: u64,
    /// Rows that may still be made before `next_second`.
    left: u64,
    /// When the next rows may be made, ms.
    next_second: Option<i64>,
}

impl Reader {
    /// Whether rows may be made now; else how long to wait.
    fn throttle(&mut self) -> Option<Duration> {
        let now = self.settings.clock.now_ms();
        let next = *self.next_second.get_or_insert(now.saturating_add(1000));
        if self.left > 0 {
            return None;
        }
        if now < next {
            let wait = u64::try_from(next.saturating_sub(now)).unwrap_or(1);
            return Some(Duration::from_millis(wait));
        }
        self.next_second = Some(next.saturating_add(1000));
        self.left = self.rate;
        None
    }

    /// The numbers of the next rows of a split that has some, up to `max`.
    fn take(&mut self, max: u64) -> Option<(u64, Vec<u64>)> {
        let end = self.settings.end().unwrap_or(u64::MAX);
        let (_, split) = self.splits.iter_mut().find(|(_, s)| s.next < end)?;
        let left = (end - split.next).div_ceil(split.stride.max(1));
        let count = left.min(max);
        let rows: Vec<u64> = (0..count).map(|i| split.next + i * split.stride).collect();
        split.next = split
            .next
            .saturating_add(count.saturating_mul(split.stride));
        Some((split.seed, rows))
    }
}

impl SourceReader for Reader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        let end = self.settings.end().unwrap_or(u64::MAX);
        if self.splits.iter().all(|(_, s)| s.next >= end) {
            return Ok(SourcePoll::End);
        }
        if let Some(wait) = self.throttle() {
            return Ok(SourcePoll::Pending(wait));
        }
        let max = self.left.min(max_rows.max(1) as u64);
        let Some((seed, rows)) = self.take(max) else {
            return Ok(SourcePoll::End);
        };
        self.left -= rows.len() as u64;
        let moment = Moment {
            now_ms: self.settings.clock.now_ms(),
            zone: self.settings.zone,
        };
        let mut columns = Vec::with_capacity(self.builders.len());
        for (builder, index) in self.builders.iter_mut().zip(&self.projection) {
            let generator = &self.settings.generators[*index];
            let salt = (*index as u64 + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            for row in &rows {
                let start = seed ^ salt ^ row.wrapping_mul(0xA24B_AED4_963E_E407);
                let mut rng = SplitMix64::seed_from_u64(start);
                generator.push(&mut rng, *row, &moment, builder)?;
            }
            columns.push(builder.finish()?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns, &options)?;
        Ok(SourcePoll::Batch(ChangeBatch::inserts(batch)))
    }

    fn positions(&self) -> Vec<SplitPosition> {
        self.splits
            .iter()
            .map(|(name, split)| SplitPosition {
                split: name.clone(),
                position: serde_json::to_string(split).unwrap_or_default(),
            })
            .collect()
    }
}
