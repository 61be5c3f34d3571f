//! `WindowDeduplicate`: the first or last row by event time of each window and key, emitted when the
//! window is over.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::counted_keys::CountedKeys;
use super::deduplicate::Keep;
use super::row_copy::RowCopy;
use super::time::rowtime;
use super::window_rank::window_ends;
use super::windowing::Windowing;
use super::windows::{Windows, in_places};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::runtime::output::Output;
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::{DataType, Schema};

const TABLE: &str = "rows";

/// How rows of a window are deduplicated. The input only grows.
#[derive(Debug, Clone)]
pub struct WindowDeduplicateSpec {
    /// Columns of input and output.
    pub schema: Schema,
    /// The column `window_end`.
    pub window_end: usize,
    /// The windows: only their zone matters.
    pub windowing: Windowing,
    /// The key beside the window.
    pub key: Vec<usize>,
    /// The event time that orders rows.
    pub rowtime: usize,
    /// Which row is kept.
    pub keep: Keep,
}

/// The operator. State: one row of each window and key.
#[derive(Debug)]
pub struct WindowDeduplicate {
    window_end: usize,
    rowtime: usize,
    keep: Keep,
    types: Vec<DataType>,
    keys: CountedKeys,
    windows: Windows<Option<Kept>>,
    codec: Arc<RowCodec>,
    store: RowStore,
    schema: SchemaRef,
    context: OperatorContext,
    rows: EncodedRows,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    time: i64,
    row: RowId,
}

impl WindowDeduplicate {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(spec: &WindowDeduplicateSpec, context: &OperatorContext) -> Result<Self> {
        let types = spec.schema.types();
        Ok(Self {
            window_end: spec.window_end,
            rowtime: spec.rowtime,
            keep: spec.keep,
            keys: CountedKeys::new(&spec.schema, &spec.key)?,
            windows: Windows::new(spec.windowing),
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            store: RowStore::default(),
            schema: spec.schema.to_arrow(),
            context: context.clone(),
            rows: EncodedRows::default(),
        })
    }

    /// Takes up rows. Returns how many are late.
    fn add(&mut self, columns: &[ArrayRef], len: usize) -> Result<u64> {
        self.codec.encode(columns, len, &mut self.rows)?;
        let ends = window_ends(columns, self.window_end)?;
        let times = window_ends(columns, self.rowtime)?;
        let mut late = 0;
        for i in 0..len {
            let Some(time) = rowtime(times, i, &self.context.metrics) else {
                continue;
            };
            if ends.is_null(i) || self.windows.is_over(ends.value(i)) {
                late += 1;
                continue;
            }
            let key = self.keys.slot(i);
            let (kept, new) = self.windows.group(ends.value(i), key);
            if new {
                self.keys.retain(key);
            }
            let bytes = self.rows.bytes(i);
            match kept {
                None => {
                    let row = self.store.insert(bytes);
                    *kept = Some(Kept { time, row });
                }
                Some(kept) => {
                    let better = match self.keep {
                        Keep::LastRow => kept.time <= time,
                        Keep::FirstRow => time < kept.time,
                    };
                    if better {
                        self.store.replace(kept.row, bytes);
                        kept.time = time;
                    }
                }
            }
        }
        self.keys.finish();
        Ok(late)
    }

    /// A copy of the rows of `keys`, or of all: the key, its place in the window, the row.
    fn copy(&self, keys: Option<&[u32]>) -> OperatorSnapshot {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.windows.watermark()),
            ..OperatorSnapshot::default()
        };
        let mut copy = RowCopy::new(TABLE, self.keys.table(), &self.codec);
        for (place, key, kept) in self.windows.groups(keys, self.keys.slot_bound()) {
            if let Some(kept) = kept {
                let row = self.store.get(kept.row);
                copy.push(key, [i64::try_from(place).ok()], row, &mut snapshot);
            }
        }
        copy.finish(&mut snapshot);
        snapshot
    }
}

impl Operator for WindowDeduplicate {
    fn process(&mut self, _port: usize, batch: ChangeBatch, _out: &mut Output<'_>) -> Result<()> {
        self.keys.begin(batch.rows())?;
        let late = self.add(batch.rows().columns(), batch.len())?;
        self.context.metrics.late_records_dropped.add(late);
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.windows.set_watermark(watermark);
        while let Some(window) = self.windows.take_over() {
            let rows = window.groups.iter().filter_map(|(_, kept)| *kept);
            let ids: Vec<RowId> = rows.map(|kept| kept.row).collect();
            let columns = self.store.decode(&self.codec, ids.iter().copied())?;
            for id in ids {
                self.store.remove(id);
            }
            for (key, _) in &window.groups {
                self.keys.release(*key);
            }
            let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
            out.emit(ChangeBatch::inserts(rows))?;
        }
        out.watermark(watermark)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        self.keys.copy_all();
        Ok(self.copy(None))
    }

    fn track_changes(&mut self) {
        self.keys.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.keys.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut snapshot = self.copy(Some(&changed.slots));
        self.keys.mark(&changed, TABLE, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.windows
            .set_watermark(state.watermark.unwrap_or(i64::MIN));
        let width = self.keys.columns();
        if let Some(batch) = in_places(state.batches(TABLE), width)? {
            let (keys, rows) = (&batch.columns()[..width], &batch.columns()[width + 1..]);
            check_columns(rows, &self.types)?;
            self.keys.begin_keys(keys, batch.num_rows())?;
            self.add(rows, batch.num_rows())?;
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.store.len(),
            bytes: self.keys.memory_size()
                + self.store.memory_size()
                + self.store.len() * size_of::<(u32, Option<Kept>)>() * 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{Harness, schema};
    use crate::operators::windowing::WindowKind;

    const COLUMNS: &str = "k STRING, v INT, ts TIMESTAMP(3), we TIMESTAMP(3)";
    const ROWS: &str = "+I|a|1|1970-01-01T00:00:03|1970-01-01T00:00:10
        +I|a|2|1970-01-01T00:00:01|1970-01-01T00:00:10
        +I|a|3|1970-01-01T00:00:03|1970-01-01T00:00:10
        +I|a|4|1970-01-01T00:00:01|1970-01-01T00:00:10
        +I|b|5|1970-01-01T00:00:12|1970-01-01T00:00:20
        @wm 9999
        +I|a|6|1970-01-01T00:00:09|1970-01-01T00:00:10
        @end";

    fn harness(keep: Keep) -> Harness {
        let spec = WindowDeduplicateSpec {
            schema: schema(COLUMNS),
            window_end: 3,
            windowing: Windowing::new(WindowKind::Session { gap: 1 }, None),
            key: vec![0],
            rowtime: 2,
            keep,
        };
        Harness::new(COLUMNS, COLUMNS, move |context| {
            WindowDeduplicate::new(&spec, context)
        })
    }

    #[test]
    fn the_last_row_of_a_time_wins() {
        harness(Keep::LastRow).check(
            ROWS,
            "+I[a, 3, 1970-01-01T00:00:03, 1970-01-01T00:00:10]
             +I[b, 5, 1970-01-01T00:00:12, 1970-01-01T00:00:20]",
        );
    }

    #[test]
    fn the_first_row_of_a_time_wins() {
        harness(Keep::FirstRow).check(
            ROWS,
            "+I[a, 2, 1970-01-01T00:00:01, 1970-01-01T00:00:10]
             +I[b, 5, 1970-01-01T00:00:12, 1970-01-01T00:00:20]",
        );
    }
}
