//! Which events a reader gives, and when.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use serde::{Deserialize, Serialize};

use super::columns::{Column, Events, Layout};
use super::model::{Kind, Model};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::connectors::pushdown::{FieldPath, Pushdown, PushedScan, ValueFilter};
use crate::connectors::{
    SourcePoll, SourceReader, SourceReaderFactory, SplitPosition, TableSource,
};
use crate::error::{Error, Result};
use crate::runtime::clock::Clock;
use crate::types::Schema;

/// Most events of one batch.
const MAX_ROWS: usize = 1 << 16;
/// Most events that are passed over for one row of a batch.
const MAX_SKIPPED: usize = 16;

/// What a table's options say.
pub(super) struct Settings {
    pub(super) schema: Schema,
    pub(super) layout: Layout,
    pub(super) model: Arc<Model>,
    /// Events in all.
    pub(super) end: Option<u64>,
    pub(super) throttle: bool,
    pub(super) clock: Arc<dyn Clock>,
}

/// One use of a table as a source.
pub(super) struct NexmarkSource {
    settings: Arc<Settings>,
}

impl NexmarkSource {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings: Arc::new(settings),
        }
    }
}

impl TableSource for NexmarkSource {
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    fn is_bounded(&self) -> bool {
        self.settings.end.is_some()
    }

    fn max_parallelism(&self) -> usize {
        usize::MAX
    }

    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>> {
        let fields = projection.iter().map(|i| FieldPath::column(*i)).collect();
        Pushdown::readers(
            self,
            &PushedScan {
                schema: self.settings.schema.project(projection).to_arrow(),
                fields,
                filter: None,
            },
        )
    }

    fn pushdown(&self) -> Option<&dyn Pushdown> {
        Some(self)
    }
}

impl Pushdown for NexmarkSource {
    fn event_times(&self) -> Vec<FieldPath> {
        self.settings.layout.times()
    }

    fn filters_on(&self, column: usize) -> bool {
        self.settings.layout.event_type() == Some(column)
    }

    fn readers(&self, scan: &PushedScan) -> Result<Arc<dyn SourceReaderFactory>> {
        Ok(Arc::new(Readers {
            settings: Arc::clone(&self.settings),
            scan: scan.clone(),
        }))
    }
}

struct Readers {
    settings: Arc<Settings>,
    scan: PushedScan,
}

/// The kinds of events that are asked for, and which others raise the watermark.
#[derive(Debug, Clone)]
struct Wanted {
    kinds: [bool; 3],
    interval_ms: Option<i64>,
}

impl Wanted {
    fn of(filter: Option<&ValueFilter>) -> Self {
        let Some(filter) = filter else {
            return Self {
                kinds: [true; 3],
                interval_ms: None,
            };
        };
        let asked = |kind| {
            let value = ScalarValue::Int32(Some(kind as i32));
            filter.values.contains(&value)
        };
        Self {
            kinds: Kind::ALL.map(asked),
            interval_ms: filter.watermark_interval_ms,
        }
    }
}

/// Events `next`, `next + stride`, ... of all events.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Split {
    next: u64,
    stride: u64,
    /// Event time of the last row at which a watermark may have been emitted.
    #[serde(skip)]
    emitted: Option<i64>,
}

impl Split {
    fn parse(position: &SplitPosition) -> Result<Self> {
        serde_json::from_str(&position.position)
            .ok()
            .filter(|split: &Self| split.stride > 0)
            .ok_or_else(|| {
                Error::checkpoint(format!("'{}' is no position of nexmark", position.position))
            })
    }

    /// The numbers of the next rows before event `end`, up to `max`.
    fn take(&mut self, max: usize, end: u64, wanted: &Wanted, model: &Model) -> Vec<i64> {
        let mut rows = Vec::with_capacity(max);
        if wanted.kinds == [true; 3] {
            let left = end.saturating_sub(self.next).div_ceil(self.stride);
            let count = left.min(max as u64);
            rows.extend((0..count).map(|i| (self.next + i * self.stride).cast_signed()));
            self.next = self.next.saturating_add(count * self.stride);
            return rows;
        }
        let mut left = max * MAX_SKIPPED;
        while self.next < end && rows.len() < max && left > 0 {
            let n = self.next.cast_signed();
            let asked = wanted.kinds[Kind::of(n) as usize];
            let raises = wanted.interval_ms.is_some_and(|interval| {
                let time = model.time(n);
                let raises = self.emitted.is_none_or(|last| time - last > interval);
                if raises {
                    self.emitted = Some(time);
                }
                raises
            });
            if asked || raises {
                rows.push(n);
            }
            self.next = self.next.saturating_add(self.stride);
            left -= 1;
        }
        rows
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
                    emitted: None,
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
        let columns = self
            .scan
            .fields
            .iter()
            .map(|path| self.settings.layout.column(path))
            .collect::<Result<Vec<_>>>()?;
        Ok(Box::new(Reader {
            settings: Arc::clone(&self.settings),
            wanted: Wanted::of(self.scan.filter.as_ref()),
            columns,
            schema: Arc::clone(&self.scan.schema),
            splits,
            started: None,
        }))
    }
}

struct Reader {
    settings: Arc<Settings>,
    wanted: Wanted,
    columns: Vec<Column>,
    schema: SchemaRef,
    splits: Vec<(String, Split)>,
    /// When the reading began, ms, and with which event.
    started: Option<(i64, u64)>,
}

impl Reader {
    fn end(&self) -> u64 {
        // event numbers are signed in the model
        self.settings.end.unwrap_or(i64::MAX.cast_unsigned())
    }

    /// The event before which all may be given now.
    fn due(&mut self) -> u64 {
        if !self.settings.throttle {
            return u64::MAX;
        }
        let now = self.settings.clock.now_ms();
        let first = self.splits.iter().map(|(_, s)| s.next).min().unwrap_or(0);
        let (start, first) = *self.started.get_or_insert((now, first));
        let passed = now.saturating_sub(start).max(0);
        let events = self.settings.model.events_within(passed).cast_unsigned();
        first.saturating_add(events).saturating_add(1)
    }

    fn batch(&self, rows: Vec<i64>) -> Result<ChangeBatch> {
        let events = Events::new(rows);
        let arrays = self
            .columns
            .iter()
            .map(|column| events.column(column, &self.settings.model))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(events.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        Ok(ChangeBatch::inserts(batch))
    }
}

impl SourceReader for Reader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        let (end, due) = (self.end(), self.due());
        if self.splits.iter().all(|(_, s)| s.next >= end) {
            return Ok(SourcePoll::End);
        }
        let max = max_rows.clamp(1, MAX_ROWS);
        let until = end.min(due);
        let model = Arc::clone(&self.settings.model);
        // the split that is furthest behind, so that all advance together
        let behind = self.splits.iter_mut().map(|(_, split)| split);
        let Some(split) = behind.min_by_key(|split| split.next) else {
            return Ok(SourcePoll::End);
        };
        if split.next >= until {
            return Ok(SourcePoll::Pending(Duration::from_millis(1)));
        }
        let rows = split.take(max, until, &self.wanted, &model);
        self.batch(rows).map(SourcePoll::Batch)
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
