//! Sessions: windows that grow and merge as rows come.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::groups::{Due, States};
use super::{WindowAggregateSpec, WindowForm, check_times, wall_times, window_state};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::operators::counted_keys::CountedKeys;
use crate::operators::last_rows::{SNAPSHOT_ROWS, leading_numbers};
use crate::operators::sessions::{Session, Sessions};
use crate::operators::windowing::{TimeWindow, WindowTime, Windowing};
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

const TABLE: &str = "sessions";

/// The operator. State: the aggregates of open sessions.
#[derive(Debug)]
pub(super) struct SessionAggregate {
    time: WindowTime,
    gap: i64,
    form: WindowForm,
    windowing: Windowing,
    keys: CountedKeys,
    states: States,
    sessions: Sessions,
    progress: i64,
    due: Due,
    closed: Vec<(u32, Session)>,
    context: OperatorContext,
    slots: Vec<u32>,
    weights: Vec<i8>,
}

impl SessionAggregate {
    pub(super) fn new(
        spec: &WindowAggregateSpec,
        time: WindowTime,
        gap: i64,
        context: &OperatorContext,
    ) -> Result<Self> {
        Ok(Self {
            time,
            gap,
            form: spec.form,
            windowing: spec.windowing,
            keys: CountedKeys::new(&spec.input, &spec.group_by)?,
            states: States::new(spec)?,
            sessions: Sessions::default(),
            progress: i64::MIN,
            due: Due::new(spec, context),
            closed: Vec::new(),
            context: context.clone(),
            slots: Vec::new(),
            weights: Vec::new(),
        })
    }

    /// Hands the rows `from..self.slots.len()` of `batch` to the aggregates.
    fn update(&mut self, batch: &ChangeBatch, from: usize) -> Result<()> {
        let len = self.slots.len() - from;
        if len == 0 {
            return Ok(());
        }
        let columns: Vec<ArrayRef> = batch
            .rows()
            .columns()
            .iter()
            .map(|c| c.slice(from, len))
            .collect();
        let weights = Some(&self.weights[from..]);
        self.states.update(&self.slots[from..], weights, &columns)
    }

    fn skip(&mut self) {
        self.slots.push(0);
        self.weights.push(0);
    }

    fn add(&mut self, batch: &ChangeBatch, times: &[i64]) -> Result<()> {
        self.keys.begin(batch.rows())?;
        self.slots.clear();
        self.weights.clear();
        let mut updated = 0;
        for (i, start) in times.iter().enumerate() {
            let window = TimeWindow {
                start: *start,
                end: start.saturating_add(self.gap),
            };
            let key = self.keys.slot(i);
            if !batch.kind(i).is_add() {
                let session = self.sessions.covering(key, window);
                let state = session.map(|s| s.state);
                match state.filter(|state| self.states.count(*state) > 0) {
                    Some(state) => {
                        self.states.add_count(state, -1);
                        self.slots.push(state);
                        self.weights.push(-1);
                    }
                    None => {
                        let over = self.windowing.is_over(window.end, self.progress);
                        match over {
                            true => self.context.metrics.late_records_dropped.add(1),
                            false => self.context.metrics.inconsistent_dropped.add(1),
                        }
                        self.skip();
                    }
                }
                continue;
            }
            let added = self.sessions.preview(key, window);
            if self.windowing.is_over(added.window.end, self.progress) {
                self.context.metrics.late_records_dropped.add(1);
                self.skip();
                continue;
            }
            let state = match added.states.first() {
                Some(state) => *state,
                None => {
                    self.keys.retain(key);
                    self.states.make()
                }
            };
            if added.states.len() > 1 {
                self.update(batch, updated)?;
                updated = i;
                for other in &added.states[1..] {
                    self.states.merge(state, *other)?;
                    self.states.free(*other);
                    self.keys.release(key);
                }
            }
            self.sessions.put(key, &added, state);
            self.states.add_count(state, 1);
            self.slots.push(state);
            self.weights.push(1);
        }
        self.update(batch, updated)?;
        self.keys.finish();
        Ok(())
    }

    /// Emits the sessions that are over at `progress`.
    fn fire(&mut self, progress: i64, out: &mut Output<'_>) -> Result<()> {
        self.progress = progress;
        while let Some((key, session)) = self.sessions.first() {
            if !self.windowing.is_over(session.window.end, progress) {
                break;
            }
            self.sessions.close(key, session);
            self.due
                .add(key, session.state, session.window, &self.states);
            self.closed.push((key, session));
            if self.due.is_full() {
                self.emit(out)?;
            }
        }
        self.emit(out)
    }

    fn emit(&mut self, out: &mut Output<'_>) -> Result<()> {
        self.due.emit(&self.keys, &mut self.states, out)?;
        for (key, session) in self.closed.drain(..) {
            self.states.free(session.state);
            self.keys.release(key);
        }
        Ok(())
    }
}

impl SessionAggregate {
    /// A copy of sessions.
    fn copy(&self, sessions: &[(u32, Session)]) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot {
            watermark: Some(self.progress),
            ..OperatorSnapshot::default()
        };
        for sessions in sessions.chunks(SNAPSHOT_ROWS) {
            let keys: Vec<u32> = sessions.iter().map(|(key, _)| *key).collect();
            let states: Vec<u32> = sessions.iter().map(|(_, s)| s.state).collect();
            let windows: Vec<TimeWindow> = sessions.iter().map(|(_, s)| s.window).collect();
            let counts = states.iter().map(|state| self.states.count(*state));
            let order = |s: &Session| i64::try_from(s.order).unwrap_or(i64::MAX);
            let orders = sessions.iter().map(|(_, s)| order(s));
            let mut columns = window_state(&windows).to_vec();
            columns.push(Arc::new(Int64Array::from_iter_values(counts)));
            columns.push(Arc::new(Int64Array::from_iter_values(orders)));
            columns.extend(self.states.save(&states)?);
            let rows = self.keys.rows(&keys, columns);
            snapshot.add_lazy(TABLE, self.keys.columns(), rows);
        }
        Ok(snapshot)
    }
}

impl Operator for SessionAggregate {
    fn process(&mut self, _port: usize, batch: ChangeBatch, _out: &mut Output<'_>) -> Result<()> {
        check_times(&batch, self.time, self.form)?;
        let (batch, times) = wall_times(batch, self.time, &self.windowing, &self.context)?;
        self.add(&batch, &times)
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
        if self.time == WindowTime::Proctime {
            // The last millisecond of a session must be over.
            self.fire(now_ms - 1, out)?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        self.keys.copy_all();
        self.copy(&self.sessions.in_order())
    }

    fn track_changes(&mut self) {
        self.keys.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let Some(changed) = self.keys.take_changes(previous_durable) else {
            return self.snapshot();
        };
        let mut sessions: Vec<(u32, Session)> = Vec::new();
        for key in &changed.slots {
            sessions.extend(self.sessions.of(*key).iter().map(|s| (*key, *s)));
        }
        let mut snapshot = self.copy(&sessions)?;
        self.keys.mark(&changed, TABLE, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.progress = state.watermark.unwrap_or(i64::MIN);
        for batch in state.batches(TABLE) {
            let (keys, rest) = batch.columns().split_at(self.keys.columns());
            let ([starts, ends, counts, orders], saved) = leading_numbers::<4>(rest)?;
            self.keys.begin_keys(keys, batch.num_rows())?;
            let mut slots = Vec::with_capacity(batch.num_rows());
            for i in 0..batch.num_rows() {
                let window = TimeWindow {
                    start: starts.value(i),
                    end: ends.value(i),
                };
                let (key, state) = (self.keys.slot(i), self.states.make());
                let session = Session {
                    window,
                    state,
                    order: u64::try_from(orders.value(i)).unwrap_or(0),
                };
                self.sessions.restore(key, session);
                self.keys.retain(key);
                self.states.add_count(state, counts.value(i));
                slots.push(state);
            }
            self.states.load(&slots, saved)?;
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.states.len(),
            bytes: self.keys.memory_size()
                + self.states.memory_size()
                + self.sessions.memory_size(),
        }
    }
}
