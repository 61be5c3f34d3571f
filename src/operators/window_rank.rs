//! `WindowRank`: Top-N of each window, emitted once, when the window is over.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow::datatypes::{SchemaRef, TimestampMillisecondType};

use super::counted_keys::CountedKeys;
use super::rank::SortColumn;
use super::rank::sorted_rows::{Entry, SortedRows};
use super::row_copy::RowCopy;
use super::windowing::Windowing;
use super::windows::{Windows, in_places};
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::runtime::output::Output;
use crate::state::rows::{EncodedRows, RowCodec, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::{DataType, Schema};

const TABLE: &str = "rows";

/// How rows of a window are ranked. The input only grows.
#[derive(Debug, Clone)]
pub struct WindowRankSpec {
    /// Columns of the input.
    pub schema: Schema,
    /// The column `window_end`.
    pub window_end: usize,
    /// The windows: only their zone matters.
    pub windowing: Windowing,
    /// `PARTITION BY` beside the window.
    pub partition_by: Vec<usize>,
    /// `ORDER BY`.
    pub order_by: Vec<SortColumn>,
    /// The first rank of the output, from 1.
    pub rank_start: u64,
    /// The last rank of the output.
    pub rank_end: u64,
    /// Whether the output has the rank, a `BIGINT`, as a last column.
    pub output_rank: bool,
    /// Columns of the output.
    pub output: Schema,
}

/// The operator. State: the best rows of open windows.
#[derive(Debug)]
pub struct WindowRank {
    window_end: usize,
    order_by: Vec<usize>,
    rank_start: usize,
    rank_end: usize,
    output_rank: bool,
    types: Vec<DataType>,
    keys: CountedKeys,
    windows: Windows<SortedRows>,
    sort_codec: RowCodec,
    codec: Arc<RowCodec>,
    store: RowStore,
    schema: SchemaRef,
    context: OperatorContext,
    sorts: EncodedRows,
    rows: EncodedRows,
    scratch: Vec<u8>,
}

/// The ends of the windows of rows.
pub(super) fn window_ends(
    columns: &[ArrayRef],
    window_end: usize,
) -> Result<&TimestampMillisecondArray> {
    columns[window_end]
        .as_primitive_opt::<TimestampMillisecondType>()
        .ok_or_else(|| Error::internal("window_end is no timestamp in milliseconds"))
}

impl WindowRank {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(spec: &WindowRankSpec, context: &OperatorContext) -> Result<Self> {
        let types = spec.schema.types();
        let sort = spec.order_by.iter();
        let sort_codec = RowCodec::sorted(sort.map(|s| (&types[s.column], s.options())))?;
        let rank = |rank| usize::try_from(rank).unwrap_or(usize::MAX);
        Ok(Self {
            window_end: spec.window_end,
            order_by: spec.order_by.iter().map(|s| s.column).collect(),
            rank_start: rank(spec.rank_start.max(1)),
            rank_end: rank(spec.rank_end),
            output_rank: spec.output_rank,
            keys: CountedKeys::new(&spec.schema, &spec.partition_by)?,
            windows: Windows::new(spec.windowing),
            sort_codec,
            codec: Arc::new(RowCodec::new(&types)?),
            types,
            store: RowStore::default(),
            schema: spec.output.to_arrow(),
            context: context.clone(),
            sorts: EncodedRows::default(),
            rows: EncodedRows::default(),
            scratch: Vec::new(),
        })
    }

    /// Takes up rows. Returns how many are late.
    fn add(&mut self, columns: &[ArrayRef], len: usize) -> Result<u64> {
        let sorts: Vec<_> = self
            .order_by
            .iter()
            .map(|c| Arc::clone(&columns[*c]))
            .collect();
        self.sort_codec.encode(&sorts, len, &mut self.sorts)?;
        self.codec.encode(columns, len, &mut self.rows)?;
        let ends = window_ends(columns, self.window_end)?;
        let mut late = 0;
        for i in 0..len {
            if ends.is_null(i) || self.windows.is_over(ends.value(i)) {
                late += 1;
                continue;
            }
            let key = self.keys.slot(i);
            let (rows, new) = self.windows.group(ends.value(i), key);
            if new {
                self.keys.retain(key);
            }
            let sort = self.sorts.bytes(i);
            let at = rows.upper_bound(&self.store, sort);
            if rows.rows_before(at) >= self.rank_end {
                continue;
            }
            self.scratch.clear();
            self.scratch.extend_from_slice(sort);
            self.scratch.extend_from_slice(self.rows.bytes(i));
            let entry = Entry::new(self.store.insert(&self.scratch), sort);
            rows.insert(at, entry);
            if rows.len() > self.rank_end
                && let Some(last) = rows.pop()
            {
                self.store.remove(last.id);
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
        for (place, key, rows) in self.windows.groups(keys, self.keys.slot_bound()) {
            for entry in rows.iter() {
                let row = entry.row(&self.store);
                copy.push(key, [i64::try_from(place).ok()], row, &mut snapshot);
            }
        }
        copy.finish(&mut snapshot);
        snapshot
    }
}

impl Operator for WindowRank {
    fn process(&mut self, _port: usize, batch: ChangeBatch, _out: &mut Output<'_>) -> Result<()> {
        self.keys.begin(batch.rows())?;
        let late = self.add(batch.rows().columns(), batch.len())?;
        self.context.metrics.late_records_dropped.add(late);
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.windows.set_watermark(watermark);
        while let Some(window) = self.windows.take_over() {
            let mut entries = Vec::new();
            let mut ranks = Vec::new();
            for (key, rows) in &window.groups {
                for (rank, entry) in (1..).zip(rows.iter()) {
                    entries.push((rank >= self.rank_start, entry));
                    if rank >= self.rank_start {
                        ranks.push(rank as i64);
                    }
                }
                self.keys.release(*key);
            }
            let shown = entries.iter().filter(|(shown, _)| *shown);
            let bytes = shown.map(|(_, entry)| entry.row(&self.store));
            let mut columns = self.codec.decode(bytes)?;
            for (_, entry) in entries {
                self.store.remove(entry.id);
            }
            if self.output_rank {
                columns.push(Arc::new(Int64Array::from(ranks)));
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
                + self.store.len() * size_of::<Entry>() * 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{Harness, schema};
    use crate::operators::windowing::WindowKind;

    const COLUMNS: &str = "k STRING, v INT, we TIMESTAMP(3)";
    const ROWS: &str = "+I|a|5|1970-01-01T00:00:10
        +I|b|9|1970-01-01T00:00:10
        +I|a|7|1970-01-01T00:00:10
        +I|c|\\N|1970-01-01T00:00:10
        +I|b|1|1970-01-01T00:00:10
        +I|a|3|1970-01-01T00:00:20
        @wm 9999
        +I|b|4|1970-01-01T00:00:10
        +I|c|3|1970-01-01T00:00:20
        @end";

    fn harness(ranks: (u64, u64), partition_by: Vec<usize>, output_rank: bool) -> Harness {
        let output = match output_rank {
            true => format!("{COLUMNS}, rn BIGINT"),
            false => COLUMNS.to_string(),
        };
        let spec = WindowRankSpec {
            schema: schema(COLUMNS),
            window_end: 2,
            windowing: Windowing::new(WindowKind::Session { gap: 1 }, None),
            partition_by,
            order_by: vec![SortColumn {
                column: 1,
                descending: true,
                nulls_first: false,
            }],
            rank_start: ranks.0,
            rank_end: ranks.1,
            output_rank,
            output: schema(&output),
        };
        Harness::new(COLUMNS, &output, move |context| {
            WindowRank::new(&spec, context)
        })
    }

    #[test]
    fn the_best_rows_of_a_window_come_when_it_is_over() {
        harness((1, 2), vec![], true).check(
            ROWS,
            "+I[b, 9, 1970-01-01T00:00:10, 1]
             +I[a, 7, 1970-01-01T00:00:10, 2]
             +I[a, 3, 1970-01-01T00:00:20, 1]
             +I[c, 3, 1970-01-01T00:00:20, 2]",
        );
    }

    #[test]
    fn a_range_of_ranks_leaves_out_the_best() {
        harness((2, 3), vec![], false).check(
            ROWS,
            "+I[a, 7, 1970-01-01T00:00:10]
             +I[a, 5, 1970-01-01T00:00:10]
             +I[c, 3, 1970-01-01T00:00:20]",
        );
    }

    #[test]
    fn partitions_are_ranked_on_their_own() {
        harness((1, 1), vec![0], true).check(
            ROWS,
            "+I[a, 7, 1970-01-01T00:00:10, 1]
             +I[b, 9, 1970-01-01T00:00:10, 1]
             +I[c, null, 1970-01-01T00:00:10, 1]
             +I[a, 3, 1970-01-01T00:00:20, 1]
             +I[c, 3, 1970-01-01T00:00:20, 1]",
        );
    }
}
