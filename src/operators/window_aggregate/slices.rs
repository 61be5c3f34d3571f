//! Windows made of slices: `TUMBLE`, `HOP`, `CUMULATE`, and windows that come with the rows.

mod copy;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::groups::{Due, States};
use super::{WindowAggregateSpec, WindowForm, WindowSource, check_times, timestamps, wall_times};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::operators::counted_keys::CountedKeys;
use crate::operators::windowing::{TimeWindow, WindowKind, WindowTime, Windowing};
use crate::operators::windows::Window;
use crate::operators::{Operator, OperatorContext, StateSize};
use crate::runtime::output::Output;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

/// A stretch of time with the groups that have rows in it: their states.
type Slice = Window<u32>;

/// What a window that is due consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assembly {
    /// One slice.
    Single,
    /// As many slices as windows overlap.
    Overlapping { size: i64, slide: i64 },
    /// What has been cumulated since the start, and one slice more.
    Growing { size: i64 },
}

/// State is put together anew when less than a quarter of its slots is in use, and there are at
/// least so many.
const LEAST_TO_COMPACT: usize = 8192;

/// The operator. State: the aggregates of slices that a window still needs.
#[derive(Debug)]
pub(super) struct SliceAggregate {
    spec: WindowAggregateSpec,
    source: WindowSource,
    windowing: Windowing,
    assembly: Assembly,
    keys: CountedKeys,
    states: States,
    /// By end and start (of a slice, or of a window that came with its rows).
    slices: BTreeMap<(i64, i64), Slice>,
    /// Of growing windows, what slices that are over have added up to, by start.
    sums: BTreeMap<i64, Slice>,
    /// Windows that have rows and are not over: end and start.
    pending: BTreeSet<(i64, i64)>,
    progress: i64,
    due: Due,
    /// Slices whose states can go once what is due has been emitted.
    closed: Vec<Slice>,
    /// States that were put together for one window only.
    assembled: Vec<u32>,
    context: OperatorContext,
    slots: Vec<u32>,
    weights: Vec<i8>,
}

/// Where a row goes.
#[derive(Debug, Clone, Copy)]
enum Target {
    Late,
    /// No window has the row.
    Nowhere,
    Slice(i64, i64),
    Sum(i64),
}

impl SliceAggregate {
    pub(super) fn new(spec: &WindowAggregateSpec, context: &OperatorContext) -> Result<Self> {
        let assembly = match (spec.source, spec.windowing.kind) {
            (WindowSource::Time(_), WindowKind::Hop { size, slide, .. }) => {
                Assembly::Overlapping { size, slide }
            }
            (WindowSource::Time(_), WindowKind::Cumulate { size, .. }) => {
                Assembly::Growing { size }
            }
            _ => Assembly::Single,
        };
        Ok(Self {
            spec: spec.clone(),
            source: spec.source,
            windowing: spec.windowing,
            assembly,
            keys: CountedKeys::new(&spec.input, &spec.group_by)?,
            states: States::new(spec)?,
            slices: BTreeMap::new(),
            sums: BTreeMap::new(),
            pending: BTreeSet::new(),
            progress: i64::MIN,
            due: Due::new(spec, context),
            closed: Vec::new(),
            assembled: Vec::new(),
            context: context.clone(),
            slots: Vec::new(),
            weights: Vec::new(),
        })
    }

    fn is_proctime(&self) -> bool {
        self.source == WindowSource::Time(WindowTime::Proctime)
    }

    /// The ends and starts of the slices, or windows, of the rows.
    fn places(&self, batch: ChangeBatch) -> Result<(ChangeBatch, Vec<(i64, i64)>)> {
        match self.source {
            WindowSource::Time(time) => {
                check_times(&batch, time, self.spec.form)?;
                let (batch, times) = wall_times(batch, time, &self.windowing, &self.context)?;
                let slice = self.windowing.slice_size().unwrap_or(1);
                let place = |time: &i64| {
                    let end = self.windowing.slice_end(*time);
                    (end, end - slice)
                };
                let places = times.iter().map(place).collect();
                Ok((batch, places))
            }
            WindowSource::Attached { start, end } => {
                let columns = batch.rows().columns();
                let (starts, ends) = (timestamps(columns, start)?, timestamps(columns, end)?);
                let places = ends.values().iter().zip(starts.values());
                let places = places.map(|(end, start)| (*end, *start)).collect();
                Ok((batch, places))
            }
        }
    }

    /// Where a row of the slice goes that ends at `end`; makes the slice if it is new.
    fn target(&mut self, (end, start): (i64, i64)) -> Target {
        let over = |end: i64| self.windowing.is_over(end, self.progress);
        if self.assembly == Assembly::Single {
            if over(end) {
                return Target::Late;
            }
            if self.pending.insert((end, start)) {
                self.slices.insert((end, start), Slice::default());
            }
            return Target::Slice(end, start);
        }
        let mut windows = Vec::new();
        self.windowing.assign(end - 1, &mut windows);
        let Some(last) = windows.iter().map(|w| w.end).max() else {
            return Target::Nowhere;
        };
        if over(last) {
            return Target::Late;
        }
        let target = match self.assembly {
            Assembly::Growing { .. } if over(end) => Target::Sum(self.windowing.start_of(end)),
            _ => Target::Slice(end, start),
        };
        let new = match target {
            Target::Sum(start) => !self.sums.contains_key(&start),
            _ => !self.slices.contains_key(&(end, start)),
        };
        if new {
            for window in windows.iter().filter(|w| !over(w.end)) {
                self.pending.insert((window.end, window.start));
            }
            match target {
                Target::Sum(start) => self.sums.insert(start, Slice::default()),
                _ => self.slices.insert((end, start), Slice::default()),
            };
        }
        target
    }

    /// Puts the rows into their slices.
    fn add(&mut self, batch: &ChangeBatch, places: &[(i64, i64)]) -> Result<()> {
        self.keys.begin(batch.rows())?;
        self.slots.clear();
        self.weights.clear();
        let (mut late, mut unknown, mut nowhere) = (0, 0, 0);
        let mut last: Option<((i64, i64), Target)> = None;
        for (i, place) in places.iter().enumerate() {
            let target = match last {
                Some((last, target)) if last == *place => target,
                _ => self.target(*place),
            };
            last = Some((*place, target));
            let slice = match target {
                Target::Late | Target::Nowhere => None,
                Target::Slice(end, start) => self.slices.get_mut(&(end, start)),
                Target::Sum(start) => self.sums.get_mut(&start),
            };
            let Some(slice) = slice else {
                match target {
                    Target::Nowhere => nowhere += 1,
                    _ => late += 1,
                }
                self.slots.push(0);
                self.weights.push(0);
                continue;
            };
            let key = self.keys.slot(i);
            let known = slice.get(key).copied();
            let adds = batch.kind(i).is_add();
            if !adds && known.is_none_or(|state| self.states.count(state) == 0) {
                unknown += 1;
                self.slots.push(0);
                self.weights.push(0);
                continue;
            }
            let state = known.unwrap_or_else(|| {
                let state = self.states.make();
                slice.insert(key, state);
                self.keys.retain(key);
                state
            });
            self.states.add_count(state, if adds { 1 } else { -1 });
            self.slots.push(state);
            self.weights.push(if adds { 1 } else { -1 });
        }
        self.context.metrics.late_records_dropped.add(late);
        self.context.metrics.inconsistent_dropped.add(unknown);
        self.keys.finish();
        let all = late + unknown + nowhere == 0 && batch.ops().is_none();
        let weights = (!all).then_some(&*self.weights);
        let columns = batch.rows().columns();
        self.states.update(&self.slots, weights, columns)
    }

    /// Emits the windows that are over at `progress`.
    fn fire(&mut self, progress: i64, out: &mut Output<'_>) -> Result<()> {
        self.progress = progress;
        while let Some((end, start)) = self.pending.first().copied() {
            if !self.windowing.is_over(end, progress) {
                break;
            }
            self.pending.pop_first();
            let window = TimeWindow { start, end };
            match self.assembly {
                Assembly::Single => {
                    if let Some(slice) = self.slices.remove(&(end, start)) {
                        for (key, state) in &slice.groups {
                            self.due.add(*key, *state, window, &self.states);
                        }
                        self.closed.push(slice);
                    }
                }
                Assembly::Overlapping { size, slide } => self.overlap(window, size, slide)?,
                Assembly::Growing { size } => self.grow(window, size, out)?,
            }
            if self.due.is_full() {
                self.emit(out)?;
            }
        }
        self.emit(out)?;
        self.compact()
    }

    /// Gives memory back after many groups have gone.
    fn compact(&mut self) -> Result<()> {
        let slots = self.states.slots();
        if slots < LEAST_TO_COMPACT || self.states.len() > slots / 4 {
            return Ok(());
        }
        let snapshot = self.copy(None)?;
        let keys = CountedKeys::new(&self.spec.input, &self.spec.group_by)?;
        let mut old = std::mem::replace(&mut self.keys, keys);
        self.states = States::new(&self.spec)?;
        self.slices.clear();
        self.sums.clear();
        self.pending.clear();
        self.restore(RestoreState::of(&snapshot)?)?;
        self.keys.take_over_changes(&mut old);
        Ok(())
    }

    /// Puts a window together of the slices in it; those before the next window are not needed any
    /// more.
    fn overlap(&mut self, window: TimeWindow, size: i64, slide: i64) -> Result<()> {
        let range = (window.end - size + 1, i64::MIN)..=(window.end, i64::MAX);
        // groups by their first slices, and what later slices have of them
        let mut first: Vec<(u32, u32)> = Vec::new();
        let mut later: Vec<(usize, u32)> = Vec::new();
        let mut place: HashMap<u32, usize, foldhash::fast::FixedState> = HashMap::default();
        for slice in self.slices.range(range).map(|(_, slice)| slice) {
            for (key, state) in &slice.groups {
                match place.get(key) {
                    None => {
                        place.insert(*key, first.len());
                        first.push((*key, *state));
                    }
                    Some(at) => later.push((*at, *state)),
                }
            }
        }
        let newest_first = self.spec.form == WindowForm::TableFunction;
        if newest_first {
            later.reverse();
        }
        let mut sums: Vec<Option<u32>> = vec![None; first.len()];
        for (at, state) in later {
            let sum = match sums[at] {
                Some(sum) => sum,
                None => {
                    let fresh = self.states.make();
                    self.assembled.push(fresh);
                    sums[at] = Some(fresh);
                    if !newest_first {
                        self.states.merge(fresh, first[at].1)?;
                    }
                    fresh
                }
            };
            self.states.merge(sum, state)?;
        }
        for ((key, state), sum) in first.into_iter().zip(sums) {
            if let Some(sum) = sum
                && newest_first
            {
                self.states.merge(sum, state)?;
            }
            self.due
                .add(key, sum.unwrap_or(state), window, &self.states);
        }
        while let Some(slice) = self.slices.first_entry()
            && slice.key().0 <= window.start + slide
        {
            self.closed.push(slice.remove());
        }
        Ok(())
    }

    /// Adds the slice that ends with the window to what the window has so far.
    fn grow(&mut self, window: TimeWindow, size: i64, out: &mut Output<'_>) -> Result<()> {
        // The sum is part of what is due already.
        self.emit(out)?;
        let slice = self.windowing.interval();
        let new = self.slices.remove(&(window.end, window.end - slice));
        let sum = self.sums.entry(window.start).or_default();
        for (key, state) in new.into_iter().flat_map(|slice| slice.groups) {
            match sum.get(key).copied() {
                None => {
                    sum.insert(key, state);
                    self.keys.touch(key);
                }
                Some(into) => {
                    self.states.merge(into, state)?;
                    self.states.free(state);
                    self.keys.release(key);
                }
            }
        }
        for (key, state) in &sum.groups {
            self.due.add(*key, *state, window, &self.states);
        }
        if window.end == window.start + size
            && let Some(sum) = self.sums.remove(&window.start)
        {
            self.closed.push(sum);
        }
        Ok(())
    }

    /// Emits what is due and frees what it alone needed.
    fn emit(&mut self, out: &mut Output<'_>) -> Result<()> {
        self.due.emit(&self.keys, &mut self.states, out)?;
        for state in self.assembled.drain(..) {
            self.states.free(state);
        }
        for (key, state) in self.closed.drain(..).flat_map(|slice| slice.groups) {
            self.states.free(state);
            self.keys.release(key);
        }
        Ok(())
    }
}

impl Operator for SliceAggregate {
    fn process(&mut self, _port: usize, batch: ChangeBatch, _out: &mut Output<'_>) -> Result<()> {
        let (batch, places) = self.places(batch)?;
        self.add(&batch, &places)
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        if !self.is_proctime() {
            self.fire(watermark, out)?;
        }
        out.watermark(watermark)
    }

    fn next_timer(&self) -> Option<i64> {
        if !self.is_proctime() {
            return None;
        }
        let (end, _) = self.pending.first()?;
        Some(self.windowing.timer(end - 1).saturating_add(1))
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        if self.is_proctime() {
            // The last millisecond of a window must be over.
            self.fire(now_ms - 1, out)?;
        }
        Ok(())
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
        self.keys.mark(&changed, copy::TABLE, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.progress = state.watermark.unwrap_or(i64::MIN);
        self.take_up(&state)
    }

    fn state_size(&self) -> StateSize {
        let groups = self.states.len() * 2 * size_of::<(u32, u32)>();
        StateSize {
            rows: self.states.len(),
            bytes: self.keys.memory_size() + self.states.memory_size() + groups,
        }
    }
}
