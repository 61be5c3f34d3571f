//! `SESSION`: rows wait until their session is over.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};

use super::{WindowTableFunctionSpec, window_columns, with_rowtime};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::operators::changes::{column_kinds, kind_column};
use crate::operators::last_rows::anonymous_batch;
use crate::operators::sessions::Sessions;
use crate::operators::time::rowtimes;
use crate::operators::windowing::{TimeWindow, WindowKind, WindowTime, Windowing};
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::DataType;

/// A row that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    arrival: u64,
    kind: RowKind,
    row: RowId,
}

/// The operator. State: the rows of open sessions.
#[derive(Debug)]
pub(super) struct SessionTableFunction {
    time: WindowTime,
    windowing: Windowing,
    gap: i64,
    partition_by: Vec<usize>,
    types: Vec<DataType>,
    encoder: KeyEncoder,
    table: KeyTable,
    codec: RowCodec,
    store: RowStore,
    sessions: Sessions,
    /// By session state.
    rows: Vec<Vec<Waiting>>,
    free: Vec<u32>,
    arrivals: u64,
    progress: i64,
    schema: SchemaRef,
    context: OperatorContext,
    keys: EncodedKeys,
    encoded: EncodedRows,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

impl SessionTableFunction {
    pub(super) fn new(spec: &WindowTableFunctionSpec, context: &OperatorContext) -> Result<Self> {
        let WindowKind::Session { gap } = spec.windowing.kind else {
            return Err(Error::internal("windows are no sessions"));
        };
        let types = spec.input.types();
        let encoder = KeyEncoder::new(&spec.input.project(&spec.partition_by).types())?;
        Ok(Self {
            time: spec.time,
            windowing: spec.windowing,
            gap,
            partition_by: spec.partition_by.clone(),
            table: encoder.table(),
            encoder,
            codec: RowCodec::new(&types)?,
            types,
            store: RowStore::default(),
            sessions: Sessions::default(),
            rows: Vec::new(),
            free: Vec::new(),
            arrivals: 0,
            progress: i64::MIN,
            schema: spec.output.to_arrow(),
            context: context.clone(),
            keys: EncodedKeys::default(),
            encoded: EncodedRows::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        let keys = self.partition_by.iter();
        let keys: Vec<_> = keys.map(|c| Arc::clone(&columns[*c])).collect();
        self.encoder.encode(&keys, len, &mut self.keys)?;
        self.codec.encode(columns, len, &mut self.encoded)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)
    }

    /// Puts row `i` into its session, which may be made of several. `None` if the session is over.
    fn add(&mut self, i: usize, window: TimeWindow, kind: RowKind) -> Option<()> {
        let key = self.slots[i];
        let added = self.sessions.preview(key, window);
        if self.windowing.is_over(added.window.end, self.progress) {
            return None;
        }
        let state = match added.states.first() {
            Some(state) => *state,
            None => self.free.pop().unwrap_or_else(|| {
                self.rows.push(Vec::new());
                u32::try_from(self.rows.len() - 1).expect("fewer than 2^32 sessions")
            }),
        };
        for other in added.states.iter().skip(1) {
            let rows = std::mem::take(&mut self.rows[*other as usize]);
            self.rows[state as usize].extend(rows);
            self.free.push(*other);
        }
        self.sessions.put(key, &added, state);
        let row = self.store.insert(self.encoded.bytes(i));
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.rows[state as usize].push(Waiting { arrival, kind, row });
        Some(())
    }

    /// Emits the sessions that are over at `progress`.
    fn fire(&mut self, progress: i64, out: &mut Output<'_>) -> Result<()> {
        self.progress = progress;
        let mut windows = Vec::new();
        let mut kinds = Vec::new();
        let mut ids = Vec::new();
        while let Some((key, session)) = self.sessions.first() {
            if !self.windowing.is_over(session.window.end, progress) {
                break;
            }
            if self.sessions.close(key, session) {
                self.table.remove(key);
            }
            let mut rows = std::mem::take(&mut self.rows[session.state as usize]);
            self.free.push(session.state);
            rows.sort_by_key(|row| row.arrival);
            windows.extend(std::iter::repeat_n(session.window, rows.len()));
            kinds.extend(rows.iter().map(|row| row.kind));
            ids.extend(rows.iter().map(|row| row.row));
        }
        if ids.is_empty() {
            return Ok(());
        }
        let mut columns = self.store.decode(&self.codec, ids.iter().copied())?;
        columns.extend(window_columns(&self.windowing, &windows, &self.schema)?);
        for id in ids {
            self.store.remove(id);
        }
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.emit(ChangeBatch::try_new(rows, kinds)?)
    }
}

impl Operator for SessionTableFunction {
    fn process(&mut self, _port: usize, batch: ChangeBatch, _out: &mut Output<'_>) -> Result<()> {
        let (batch, times) = match self.time {
            WindowTime::Rowtime(column) => {
                let batch = with_rowtime(batch, column, &self.context)?;
                let times = rowtimes(batch.rows(), column)?.values();
                let times = self.windowing.wall_times(times);
                (batch, times)
            }
            WindowTime::Proctime => {
                let now = self.windowing.wall_time(self.context.clock.now_ms());
                let times = vec![now; batch.len()];
                (batch, times)
            }
        };
        self.begin(batch.rows().columns(), batch.len())?;
        for (i, start) in times.into_iter().enumerate() {
            let end = start.saturating_add(self.gap);
            if self
                .add(i, TimeWindow { start, end }, batch.kind(i))
                .is_none()
            {
                self.context.metrics.late_records_dropped.add(1);
            }
        }
        for slot in &self.slots {
            if !self.sessions.has(*slot) && self.table.is_live(*slot) {
                self.table.remove(*slot);
            }
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        if self.time != WindowTime::Proctime {
            self.fire(watermark, out)?;
        }
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        if self.time != WindowTime::Proctime {
            return None;
        }
        let (_, session) = self.sessions.first()?;
        Some(
            self.windowing
                .timer(session.window.end - 1)
                .saturating_add(1),
        )
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        match self.time {
            // The last millisecond of a session must be over.
            WindowTime::Proctime => self.fire(now_ms - 1, out),
            WindowTime::Rowtime(_) => Ok(()),
        }
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.progress),
            ..OperatorSnapshot::default()
        };
        let sessions = self.sessions.in_order();
        let (mut keys, mut rows, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (key, session)) in sessions.iter().enumerate() {
            for row in &self.rows[session.state as usize] {
                keys.push(*key);
                rows.push((*row, session.window));
                numbers.push(number as i64);
            }
        }
        let mut columns = self.table.decode(&self.encoder, keys)?;
        let key_columns = columns.len();
        let ids = rows.iter().map(|(row, _)| row.row);
        columns.extend(self.store.decode(&self.codec, ids)?);
        let kinds: Vec<RowKind> = rows.iter().map(|(row, _)| row.kind).collect();
        columns.push(kind_column(&kinds));
        let number = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        columns.push(number(numbers));
        columns.push(number(rows.iter().map(|(_, w)| w.start).collect()));
        columns.push(number(rows.iter().map(|(_, w)| w.end).collect()));
        let arrival = |(row, _): &(Waiting, TimeWindow)| row.arrival.cast_signed();
        columns.push(number(rows.iter().map(arrival).collect()));
        snapshot.add("rows", key_columns, anonymous_batch(columns, rows.len())?);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.progress = i64::MIN;
        for batch in state.batches("rows") {
            let (rows, rest) =
                batch.columns()[self.partition_by.len()..].split_at(self.types.len());
            check_columns(rows, &self.types)?;
            let numbers = rest
                .iter()
                .skip(1)
                .map(|c| c.as_primitive_opt::<Int64Type>());
            let numbers: Option<Vec<_>> = numbers.collect();
            let (Some(kinds), Some([_, starts, ends, arrivals])) =
                (rest.first(), numbers.as_deref())
            else {
                return Err(Error::checkpoint("saved sessions have other columns"));
            };
            let kinds = column_kinds(kinds)?;
            self.begin(rows, batch.num_rows())?;
            for (i, kind) in kinds.into_iter().enumerate() {
                let window = TimeWindow {
                    start: starts.value(i),
                    end: ends.value(i),
                };
                let _ = self.add(i, window, kind);
                if let Some(session) = self.sessions.covering(self.slots[i], window)
                    && let Some(row) = self.rows[session.state as usize].last_mut()
                {
                    row.arrival = arrivals.value(i).cast_unsigned();
                }
            }
            let last = arrivals.values().iter().max().copied().unwrap_or(0);
            self.arrivals = self.arrivals.max(last.cast_unsigned() + 1);
        }
        self.progress = state.watermark.unwrap_or(i64::MIN);
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.store.len(),
            bytes: self.table.memory_size()
                + self.store.memory_size()
                + self.sessions.memory_size()
                + self.store.len() * size_of::<Waiting>(),
        }
    }
}
