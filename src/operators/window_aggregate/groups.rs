//! Groups of windows: their aggregates, and their rows in the output.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, TimestampMillisecondArray};
use arrow::datatypes::{DataType as ArrowType, SchemaRef, TimeUnit};

use super::{WindowAggregateSpec, WindowProperty};
use crate::aggregates::{AggregateSet, SetInput};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::operators::OperatorContext;
use crate::operators::counted_keys::CountedKeys;
use crate::operators::windowing::{TimeWindow, Windowing};
use crate::runtime::output::Output;
use crate::types::DataType;

/// The aggregates of groups, by slots that are given out here, with the number of rows of each.
#[derive(Debug)]
pub(in crate::operators) struct States {
    set: AggregateSet,
    counts: Vec<i64>,
    free: Vec<u32>,
}

impl States {
    pub(in crate::operators) fn new(spec: &WindowAggregateSpec) -> Result<Self> {
        Ok(Self {
            set: AggregateSet::new(&spec.aggregates, spec.retracting)?,
            counts: Vec::new(),
            free: Vec::new(),
        })
    }

    /// A fresh slot.
    pub(in crate::operators) fn make(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.counts.push(0);
            u32::try_from(self.counts.len() - 1).expect("fewer than 2^32 groups")
        })
    }

    /// Gives a slot back.
    pub(in crate::operators) fn free(&mut self, slot: u32) {
        self.set.clear(slot);
        self.counts[slot as usize] = 0;
        self.free.push(slot);
    }

    /// The number of rows of a group.
    pub(in crate::operators) fn count(&self, slot: u32) -> i64 {
        self.counts[slot as usize]
    }

    /// Counts a row in, or out.
    #[inline]
    pub(in crate::operators) fn add_count(&mut self, slot: u32, delta: i64) {
        self.counts[slot as usize] += delta;
    }

    /// Adds and withdraws rows, which are counted already. Row `i` of `columns` goes to `slots[i]`.
    pub(in crate::operators) fn update(
        &mut self,
        slots: &[u32],
        weights: Option<&[i8]>,
        columns: &[ArrayRef],
    ) -> Result<()> {
        self.set.resize(self.counts.len().max(1));
        self.set.update(&SetInput {
            slots,
            weights,
            ends: None,
            columns,
        })
    }

    /// As [`update`](Self::update), and returns the values before and after every row: those of row
    /// i are at 2i and 2i + 1.
    pub(in crate::operators) fn trace(
        &mut self,
        slots: &[u32],
        weights: &[i8],
        columns: &[ArrayRef],
    ) -> Result<Vec<ArrayRef>> {
        self.set.resize(self.counts.len().max(1));
        let input = SetInput {
            slots,
            weights: Some(weights),
            ends: None,
            columns,
        };
        self.set.trace(&input, &mut vec![false; slots.len()])
    }

    /// The values of groups.
    pub(in crate::operators) fn values(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.set.values(slots)
    }

    /// The types of values.
    pub(in crate::operators) fn types(&self) -> Vec<DataType> {
        self.set.types()
    }

    /// Adds what `from` has to `into`.
    pub(in crate::operators) fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        self.set.resize(self.counts.len());
        self.counts[into as usize] += self.counts[from as usize];
        self.set.merge(into, from)
    }

    pub(in crate::operators) fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.set.save(slots)
    }

    pub(in crate::operators) fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        self.set.resize(self.counts.len().max(1));
        self.set.load(slots, columns)
    }

    /// Number of groups.
    pub(in crate::operators) fn len(&self) -> usize {
        self.counts.len() - self.free.len()
    }

    /// Number of slots, free ones included.
    pub(in crate::operators) fn slots(&self) -> usize {
        self.counts.len()
    }

    pub(in crate::operators) fn memory_size(&self) -> usize {
        self.set.memory_size() + self.counts.capacity() * size_of::<i64>()
    }
}

/// Windows of groups that are due, until they are emitted.
#[derive(Debug)]
pub(in crate::operators) struct Due {
    properties: Vec<WindowProperty>,
    schema: SchemaRef,
    windowing: Windowing,
    context: OperatorContext,
    keys: Vec<u32>,
    states: Vec<u32>,
    windows: Vec<TimeWindow>,
}

impl Due {
    pub(in crate::operators) fn new(spec: &WindowAggregateSpec, context: &OperatorContext) -> Self {
        Self {
            properties: spec.properties.clone(),
            schema: spec.output.to_arrow(),
            windowing: spec.windowing,
            context: context.clone(),
            keys: Vec::new(),
            states: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Adds a window of a group, unless it has no rows.
    pub(in crate::operators) fn add(
        &mut self,
        key: u32,
        state: u32,
        window: TimeWindow,
        states: &States,
    ) {
        if states.count(state) > 0 {
            self.keys.push(key);
            self.states.push(state);
            self.windows.push(window);
        }
    }

    /// Whether there is a batch of them.
    pub(in crate::operators) fn is_full(&self) -> bool {
        self.keys.len() >= self.context.batch_size
    }

    /// Emits them. Their keys and states MUST still be as they were when they were added.
    pub(in crate::operators) fn emit(
        &mut self,
        keys: &CountedKeys,
        states: &mut States,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let len = self.keys.len();
        if len == 0 {
            return Ok(());
        }
        states.set.resize(states.counts.len());
        let slots = self.keys.drain(..);
        let mut columns = keys.decode(slots)?;
        columns.extend(states.set.values(&self.states)?);
        columns.extend(property_columns(
            &self.properties,
            &self.windows,
            &self.schema,
            columns.len(),
            &self.windowing,
            &self.context,
        )?);
        self.states.clear();
        self.windows.clear();
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let schema = Arc::clone(&self.schema);
        let rows = RecordBatch::try_new_with_options(schema, columns, &options)?;
        out.emit(ChangeBatch::inserts(rows))
    }
}

/// The columns that tell of windows; in `schema` they begin at `first`.
pub(in crate::operators) fn property_columns(
    properties: &[WindowProperty],
    windows: &[TimeWindow],
    schema: &SchemaRef,
    first: usize,
    windowing: &Windowing,
    context: &OperatorContext,
) -> Result<Vec<ArrayRef>> {
    let now = context.clock.now_ms();
    let column = |(i, property): (usize, &WindowProperty)| -> Result<ArrayRef> {
        let ArrowType::Timestamp(TimeUnit::Millisecond, zone) = schema.field(first + i).data_type()
        else {
            return Err(Error::internal(
                "a window property is no timestamp in milliseconds",
            ));
        };
        let value = |window: &TimeWindow| match property {
            WindowProperty::Start => window.start,
            WindowProperty::End => window.end,
            WindowProperty::Rowtime => windowing.window_time(window.end),
            WindowProperty::Proctime => now,
        };
        let values = TimestampMillisecondArray::from_iter_values(windows.iter().map(value));
        Ok(Arc::new(values.with_timezone_opt(zone.clone())))
    };
    properties.iter().enumerate().map(column).collect()
}
