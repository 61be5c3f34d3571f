//! Windows that are emitted again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use super::EmitStrategy;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::operators::counted_keys::CountedKeys;
use crate::operators::last_rows::{SNAPSHOT_ROWS, leading_numbers};
use crate::operators::window_aggregate::groups::{States, property_columns};
use crate::operators::window_aggregate::{
    WindowAggregateSpec, WindowProperty, WindowSource, wall_times,
};
use crate::operators::windowing::{TimeWindow, WindowTime, Windowing};
use crate::operators::windows::{Wanted, Window, in_places};
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::DataType;

const TABLE: &str = "windows";

/// The operator. State: the aggregates of windows, and what was emitted for each.
#[derive(Debug)]
pub(super) struct FiringWindows {
    time: WindowTime,
    windowing: Windowing,
    emit: EmitStrategy,
    keys: CountedKeys,
    states: States,
    /// By end and start.
    windows: BTreeMap<(i64, i64), Window<Group>>,
    /// Windows that are not over yet: end and start.
    running: BTreeSet<(i64, i64)>,
    /// Groups to emit when the clock says so: time, end, start, place in the window.
    timers: BTreeSet<(i64, i64, i64, usize)>,
    progress: i64,
    /// Results that were emitted.
    codec: RowCodec,
    results: RowStore,
    result_types: Vec<DataType>,
    pending: Pending,
    properties: Vec<WindowProperty>,
    schema: SchemaRef,
    context: OperatorContext,
    encoded: EncodedRows,
}

#[derive(Debug)]
struct Group {
    /// Its place in the window.
    place: usize,
    state: u32,
    /// The result that readers have.
    emitted: Option<RowId>,
    timer: Option<i64>,
}

/// Changes to emit.
#[derive(Debug, Default)]
struct Pending {
    kinds: Vec<RowKind>,
    keys: Vec<u32>,
    windows: Vec<TimeWindow>,
    /// Results, end to end.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Pending {
    fn push(&mut self, kind: RowKind, key: u32, window: TimeWindow, result: &[u8]) {
        self.kinds.push(kind);
        self.keys.push(key);
        self.windows.push(window);
        self.bytes.extend_from_slice(result);
        self.ends.push(self.bytes.len());
    }
}

impl FiringWindows {
    pub(super) fn new(
        spec: &WindowAggregateSpec,
        emit: EmitStrategy,
        context: &OperatorContext,
    ) -> Result<Self> {
        let WindowSource::Time(time) = spec.source else {
            return Err(Error::internal("windows that came with rows fire once"));
        };
        let states = States::new(spec)?;
        let result_types = states.types();
        Ok(Self {
            time,
            windowing: spec.windowing,
            emit,
            keys: CountedKeys::new(&spec.input, &spec.group_by)?,
            states,
            windows: BTreeMap::new(),
            running: BTreeSet::new(),
            timers: BTreeSet::new(),
            progress: i64::MIN,
            codec: RowCodec::new(&result_types)?,
            results: RowStore::default(),
            result_types,
            pending: Pending::default(),
            properties: spec.properties.clone(),
            schema: spec.output.to_arrow(),
            context: context.clone(),
            encoded: EncodedRows::default(),
        })
    }

    fn is_over(&self, end: i64) -> bool {
        self.windowing.is_over(end, self.progress)
    }

    /// Whether nothing can happen to the window that ends at `end` any more.
    fn is_gone(&self, end: i64) -> bool {
        self.is_over(end.saturating_add(self.emit.allow_lateness_ms))
    }

    /// How long after a change the window that ends at `end` is emitted.
    fn delay(&self, end: i64) -> Option<i64> {
        match self.is_over(end) {
            true => self.emit.late_fire_delay_ms,
            false => self.emit.early_fire_delay_ms,
        }
    }

    /// The group of a key in a window, made if there is none.
    fn group(&mut self, window: TimeWindow, key: u32) -> &mut Group {
        let place = (window.end, window.start);
        let over = self.is_over(window.end);
        let entry = self.windows.entry(place).or_insert_with(|| {
            if !over {
                self.running.insert(place);
            }
            Window::default()
        });
        if entry.get(key).is_none() {
            self.keys.retain(key);
            let group = Group {
                place: entry.groups.len(),
                state: self.states.make(),
                emitted: None,
                timer: None,
            };
            entry.insert(key, group);
        }
        entry.get_mut(key).expect("it was made")
    }

    /// Puts rows into their windows, and emits those that fire on every row.
    fn add(&mut self, batch: &ChangeBatch, times: &[i64]) -> Result<()> {
        self.keys.begin(batch.rows())?;
        let now = self.context.clock.now_ms();
        let (mut rows, mut slots, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        // Group and window of each step, and whether it fires, and the rows in the group after it.
        let mut steps: Vec<(TimeWindow, u32, bool, i64)> = Vec::new();
        let mut windows = Vec::new();
        for (i, time) in times.iter().enumerate() {
            self.windowing.assign(*time, &mut windows);
            let assigned = windows.len();
            windows.retain(|w| !self.is_gone(w.end));
            if windows.is_empty() && assigned > 0 {
                self.context.metrics.late_records_dropped.add(1);
            }
            let key = self.keys.slot(i);
            let adds = batch.kind(i).is_add();
            for window in windows.iter().copied() {
                if !adds && !self.has_rows(window, key) {
                    self.context.metrics.inconsistent_dropped.add(1);
                    continue;
                }
                let delay = self.delay(window.end);
                let group = self.group(window, key);
                let state = group.state;
                if let Some(delay) = delay.filter(|delay| *delay > 0)
                    && group.timer.is_none()
                {
                    let timer = now.saturating_add(delay);
                    group.timer = Some(timer);
                    let timer = (timer, window.end, window.start, group.place);
                    self.timers.insert(timer);
                }
                let weight: i8 = if adds { 1 } else { -1 };
                self.states.add_count(state, i64::from(weight));
                rows.push(u32::try_from(i).expect("a batch has fewer than 2^32 rows"));
                slots.push(state);
                weights.push(weight);
                steps.push((window, key, delay == Some(0), self.states.count(state)));
            }
        }
        self.keys.finish();
        let rows = UInt32Array::from(rows);
        let columns = batch.rows().columns().iter();
        let columns: Vec<ArrayRef> = columns
            .map(|c| take(c, &rows, None))
            .collect::<std::result::Result<_, _>>()?;
        if steps.iter().all(|(_, _, fires, _)| !fires) {
            return self.states.update(&slots, Some(&weights), &columns);
        }
        let results = self.states.trace(&slots, &weights, &columns)?;
        self.codec
            .encode(&results, steps.len() * 2, &mut self.encoded)?;
        let encoded = std::mem::take(&mut self.encoded);
        for (step, (window, key, fires, count)) in steps.into_iter().enumerate() {
            if fires {
                let result = (count > 0).then(|| encoded.bytes(2 * step + 1));
                self.fire(window, key, result);
            }
        }
        self.encoded = encoded;
        Ok(())
    }

    fn has_rows(&self, window: TimeWindow, key: u32) -> bool {
        let window = self.windows.get(&(window.end, window.start));
        let group = window.and_then(|window| window.get(key));
        group.is_some_and(|group| self.states.count(group.state) > 0)
    }

    /// Emits the result of a group, unless it is the one that readers have. `None`: it has no rows.
    fn fire(&mut self, window: TimeWindow, key: u32, result: Option<&[u8]>) {
        let Some(entry) = self.windows.get_mut(&(window.end, window.start)) else {
            return;
        };
        let Some(group) = entry.get_mut(key) else {
            return;
        };
        self.keys.touch(key);
        match (group.emitted, result) {
            (None, None) => {}
            (None, Some(result)) => {
                self.pending.push(RowKind::Insert, key, window, result);
                group.emitted = Some(self.results.insert(result));
            }
            (Some(old), None) => {
                let row = self.results.get(old);
                self.pending.push(RowKind::Delete, key, window, row);
                self.results.remove(old);
                group.emitted = None;
            }
            (Some(old), Some(result)) => {
                let row = self.results.get(old);
                if row == result {
                    return;
                }
                if self.emit.generate_update_before {
                    self.pending.push(RowKind::UpdateBefore, key, window, row);
                }
                self.pending.push(RowKind::UpdateAfter, key, window, result);
                self.results.replace(old, result);
            }
        }
    }

    /// Emits the results that groups have now.
    fn fire_now(&mut self, window: TimeWindow, groups: &[(u32, u32)]) -> Result<()> {
        let slots: Vec<u32> = groups.iter().map(|(_, state)| *state).collect();
        let results = self.states.values(&slots)?;
        self.codec
            .encode(&results, slots.len(), &mut self.encoded)?;
        let encoded = std::mem::take(&mut self.encoded);
        for (i, (key, state)) in groups.iter().enumerate() {
            let result = (self.states.count(*state) > 0).then(|| encoded.bytes(i));
            self.fire(window, *key, result);
        }
        self.encoded = encoded;
        Ok(())
    }

    /// Fires the windows that are over at `progress`, and forgets those that are gone.
    fn advance(&mut self, progress: i64, out: &mut Output<'_>) -> Result<()> {
        self.progress = progress;
        while let Some((end, start)) = self.running.first().copied() {
            if !self.is_over(end) {
                break;
            }
            self.running.pop_first();
            let window = TimeWindow { start, end };
            let Some(entry) = self.windows.get_mut(&(end, start)) else {
                continue;
            };
            let mut groups = Vec::with_capacity(entry.groups.len());
            for (key, group) in &mut entry.groups {
                groups.push((*key, group.state));
                if let Some(timer) = group.timer.take() {
                    self.timers.remove(&(timer, end, start, group.place));
                    self.keys.touch(*key);
                }
            }
            self.fire_now(window, &groups)?;
        }
        self.emit_pending(out)?;
        while let Some(((end, start), _)) = self.windows.first_key_value() {
            let (end, start) = (*end, *start);
            if !self.is_gone(end) {
                break;
            }
            let window = self.windows.remove(&(end, start)).unwrap_or_default();
            for (key, group) in window.groups {
                self.states.free(group.state);
                self.keys.release(key);
                if let Some(emitted) = group.emitted {
                    self.results.remove(emitted);
                }
                if let Some(timer) = group.timer {
                    self.timers.remove(&(timer, end, start, group.place));
                }
            }
        }
        Ok(())
    }

    fn emit_pending(&mut self, out: &mut Output<'_>) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let len = pending.kinds.len();
        if len == 0 {
            return Ok(());
        }
        let mut columns = self.keys.decode(pending.keys)?;
        let starts = std::iter::once(&0).chain(&pending.ends);
        let results = starts.zip(&pending.ends);
        columns.extend(
            self.codec
                .decode(results.map(|(start, end)| &pending.bytes[*start..*end]))?,
        );
        columns.extend(property_columns(
            &self.properties,
            &pending.windows,
            &self.schema,
            columns.len(),
            &self.windowing,
            &self.context,
        )?);
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.emit(ChangeBatch::try_new(rows, pending.kinds)?)
    }
}

impl FiringWindows {
    /// A copy of the groups of `keys`, or of all: the key, its place in the window, the window, the
    /// number of rows, the timer, what was emitted, the aggregates.
    fn copy(&self, keys: Option<&[u32]>) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.progress),
            ..OperatorSnapshot::default()
        };
        let groups = self.windows.values().map(|w| w.groups.len()).sum();
        let wanted = Wanted::new(keys, self.keys.slot_bound(), self.windows.len(), groups);
        let mut found: Vec<(TimeWindow, usize, u32, &Group)> = Vec::new();
        for ((end, start), window) in &self.windows {
            let extent = TimeWindow {
                start: *start,
                end: *end,
            };
            for place in wanted.places(window) {
                let (key, group) = &window.groups[place];
                found.push((extent, place, *key, group));
            }
        }
        for groups in found.chunks(SNAPSHOT_ROWS) {
            self.copy_groups(groups, &mut snapshot)?;
        }
        Ok(snapshot)
    }

    fn copy_groups(
        &self,
        groups: &[(TimeWindow, usize, u32, &Group)],
        snapshot: &mut OperatorSnapshot,
    ) -> Result<()> {
        let keys: Vec<u32> = groups.iter().map(|(_, _, key, _)| *key).collect();
        let states: Vec<u32> = groups.iter().map(|(.., g)| g.state).collect();
        let places = groups
            .iter()
            .map(|(_, place, ..)| i64::try_from(*place).ok());
        let starts = groups.iter().map(|(window, ..)| Some(window.start));
        let ends = groups.iter().map(|(window, ..)| Some(window.end));
        let counts = states.iter().map(|state| Some(self.states.count(*state)));
        let timers = groups.iter().map(|(.., g)| g.timer);
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(places.collect::<Int64Array>()),
            Arc::new(starts.collect::<Int64Array>()),
            Arc::new(ends.collect::<Int64Array>()),
            Arc::new(counts.collect::<Int64Array>()),
            Arc::new(timers.collect::<Int64Array>()),
        ];
        // What was emitted; where nothing was, the current value stands in.
        let has_emitted = groups.iter().map(|(.., g)| Some(g.emitted.is_some()));
        columns.push(Arc::new(has_emitted.collect::<BooleanArray>()));
        let current = self.states.values(&states)?;
        let mut encoded = EncodedRows::default();
        self.codec.encode(&current, states.len(), &mut encoded)?;
        let emitted = groups.iter().enumerate().map(|(i, (.., g))| {
            g.emitted
                .map_or_else(|| encoded.bytes(i), |id| self.results.get(id))
        });
        columns.extend(self.codec.decode(emitted)?);
        columns.extend(self.states.save(&states)?);
        let rows = self.keys.rows(&keys, columns);
        snapshot.add_lazy(TABLE, self.keys.columns(), rows);
        Ok(())
    }
}

impl Operator for FiringWindows {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let (batch, times) = wall_times(batch, self.time, &self.windowing, &self.context)?;
        self.add(&batch, &times)?;
        self.emit_pending(out)
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        if self.time != WindowTime::Proctime {
            self.advance(watermark, out)?;
        }
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        let firing = self.timers.first().map(|(time, ..)| *time);
        let over = match self.time {
            WindowTime::Proctime => self.running.first(),
            WindowTime::Rowtime(_) => None,
        };
        let over = over.map(|(end, _)| self.windowing.timer(end - 1).saturating_add(1));
        firing.into_iter().chain(over).min()
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        while let Some((time, end, start, place)) = self.timers.first().copied() {
            if time > now_ms {
                break;
            }
            self.timers.pop_first();
            let Some(entry) = self.windows.get_mut(&(end, start)) else {
                continue;
            };
            if let Some((key, group)) = entry.groups.get_mut(place) {
                group.timer = None;
                let key = *key;
                self.keys.touch(key);
                let state = group.state;
                self.fire_now(TimeWindow { start, end }, &[(key, state)])?;
            }
        }
        self.emit_pending(out)?;
        match self.time {
            // The last millisecond of a window must be over.
            WindowTime::Proctime => self.advance(now_ms - 1, out),
            WindowTime::Rowtime(_) => Ok(()),
        }
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        self.keys.copy_all();
        self.copy(None)
    }

    fn track_changes(&mut self) {
        self.keys.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.keys.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut snapshot = self.copy(Some(&changed.slots))?;
        self.keys.mark(&changed, TABLE, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.progress = state.watermark.unwrap_or(i64::MIN);
        let width = self.keys.columns();
        if let Some(batch) = in_places(state.batches(TABLE), width)? {
            let (keys, rest) = batch.columns().split_at(width);
            let ([_, starts, ends, counts, timers], rest) = leading_numbers::<5>(rest)?;
            let fail = || Error::checkpoint("the saved windows have other columns");
            let (has_emitted, rest) = rest.split_first().ok_or_else(fail)?;
            let has_emitted = has_emitted
                .as_any()
                .downcast_ref::<BooleanArray>()
                .ok_or_else(fail)?;
            let (results, saved) = rest
                .split_at_checked(self.result_types.len())
                .ok_or_else(fail)?;
            check_columns(results, &self.result_types)?;
            self.keys.begin_keys(keys, batch.num_rows())?;
            let mut encoded = EncodedRows::default();
            self.codec.encode(results, batch.num_rows(), &mut encoded)?;
            let mut slots = Vec::with_capacity(batch.num_rows());
            for i in 0..batch.num_rows() {
                let window = TimeWindow {
                    start: starts.value(i),
                    end: ends.value(i),
                };
                let key = self.keys.slot(i);
                let emitted = has_emitted
                    .value(i)
                    .then(|| self.results.insert(encoded.bytes(i)));
                let timer = timers.is_valid(i).then(|| timers.value(i));
                let group = self.group(window, key);
                group.emitted = emitted;
                group.timer = timer;
                let (state, place) = (group.state, group.place);
                self.states.add_count(state, counts.value(i));
                slots.push(state);
                if let Some(timer) = timer {
                    self.timers.insert((timer, window.end, window.start, place));
                }
            }
            self.states.load(&slots, saved)?;
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        let groups = self.states.len() * (size_of::<Group>() + size_of::<(u32, usize)>());
        StateSize {
            rows: self.states.len(),
            bytes: self.keys.memory_size()
                + self.states.memory_size()
                + self.results.memory_size()
                + groups,
        }
    }
}
