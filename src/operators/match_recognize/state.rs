//! The state of `Match` in checkpoints.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};

use super::MatchRecognize;
use super::history::{Node, Row};
use super::nfa::{Partial, Partition};
use crate::error::{Error, Result};
use crate::operators::last_rows::{SNAPSHOT_ROWS, anonymous_batch};
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{Changed, EncodedKeys};
use crate::state::rows::EncodedRows;
use crate::state::snapshot::{LazyBatch, OperatorSnapshot, RestoreState};

/// Rows that wait: the key, then the row.
const WAITING: &str = "waiting";
/// Rows of matches: the values, the key first, then number and time.
const ROWS: &str = "rows";
/// The lists of rows: key, number, that of the one before or -1, row, variable. The one before
/// stands before.
const NODES: &str = "nodes";
/// Matches under way, in their order: key, last node or -1, whether complete.
const MATCHES: &str = "matches";

/// Matches on their way into a copy.
#[derive(Default)]
struct Copied {
    rows: Vec<Arc<Row>>,
    /// The rows among them, and the numbers of the lists.
    known_rows: HashMap<u64, ()>,
    nodes: HashMap<*const Node, i64>,
    node_keys: Vec<u32>,
    numbers: Vec<i64>,
    befores: Vec<i64>,
    sequences: Vec<i64>,
    variables: Vec<i32>,
    match_keys: Vec<u32>,
    lasts: Vec<i64>,
    complete: Vec<bool>,
}

impl Copied {
    fn add(&mut self, slot: u32, partition: &Partition) {
        let partials = partition.partials.0.iter().map(|p| (p, false));
        let completed = partition.completed.0.iter().map(|p| (p, true));
        for (partial, is_complete) in partials.chain(completed) {
            self.match_keys.push(slot);
            self.complete.push(is_complete);
            let last = match &partial.last {
                Some(last) => self.add_list(slot, last),
                None => -1,
            };
            self.lasts.push(last);
        }
    }

    /// Adds what is not known of a list. Answers the number of its last node.
    fn add_list(&mut self, slot: u32, last: &Arc<Node>) -> i64 {
        let known = |node: &&Node| !self.nodes.contains_key(&std::ptr::from_ref(*node));
        let fresh: Vec<&Node> = last.backwards().take_while(known).collect();
        for node in fresh.into_iter().rev() {
            let number = i64::try_from(self.nodes.len()).unwrap_or(i64::MAX);
            let before = node.before.as_ref();
            let before = before.map_or(-1, |b| self.nodes[&Arc::as_ptr(b)]);
            self.nodes.insert(std::ptr::from_ref(node), number);
            self.node_keys.push(slot);
            self.numbers.push(number);
            self.befores.push(before);
            self.sequences.push(as_i64(node.row.sequence));
            let variable = i32::try_from(node.variable).unwrap_or(i32::MAX);
            self.variables.push(variable);
            if self.known_rows.insert(node.row.sequence, ()).is_none() {
                self.rows.push(Arc::clone(&node.row));
            }
        }
        self.nodes[&Arc::as_ptr(last)]
    }

    fn hand_over(self, operator: &MatchRecognize, snapshot: &mut OperatorSnapshot) {
        if self.match_keys.is_empty() {
            return;
        }
        let width = operator.spec.partition.len();
        let keyed = |keys: &[u32], columns: Vec<ArrayRef>| {
            let columns = columns.into_iter().enumerate();
            let columns = columns.map(|(i, column)| (format!("c{i}"), column));
            let keys = operator.table.copy_keys(keys);
            keyed_rows(&operator.encoder, keys, columns.collect())
        };
        if !self.rows.is_empty() {
            let (rows, codec) = (self.rows, Arc::clone(&operator.codec));
            let make = move || {
                let mut columns = codec.decode(rows.iter().map(|row| &*row.bytes))?;
                columns.push(longs(rows.iter().map(|row| as_i64(row.sequence))));
                columns.push(longs(rows.iter().map(|row| row.time)));
                anonymous_batch(columns, rows.len())
            };
            snapshot.add_lazy(ROWS, width, LazyBatch::new(make));
            let variables = Arc::new(Int32Array::from(self.variables));
            let columns =
                [self.numbers, self.befores, self.sequences].map(|c| longs(c.into_iter()));
            let columns = columns.into_iter().chain([variables as ArrayRef]).collect();
            snapshot.add_lazy(NODES, width, keyed(&self.node_keys, columns));
        }
        let columns: Vec<ArrayRef> = vec![
            longs(self.lasts.into_iter()),
            Arc::new(BooleanArray::from(self.complete)),
        ];
        snapshot.add_lazy(MATCHES, width, keyed(&self.match_keys, columns));
    }
}

impl MatchRecognize {
    /// Copies the rows that wait, and the matches of the partitions of `slots`.
    pub(super) fn save(&self, slots: &[u32]) -> Result<OperatorSnapshot> {
        let width = self.spec.partition.len();
        let mut snapshot = OperatorSnapshot {
            watermark: self.rowtime.map(|_| self.watermark),
            ..OperatorSnapshot::default()
        };
        for batch in &self.waiting {
            let keys = self.spec.partition.iter().map(|c| batch.column(*c));
            let columns = keys.chain(batch.columns()).cloned().collect();
            snapshot.add(WAITING, width, anonymous_batch(columns, batch.num_rows())?);
        }
        let mut copied = Copied::default();
        for slot in slots {
            if let Some(partition) = self.partitions.get(*slot as usize) {
                copied.add(*slot, partition);
            }
            if copied.match_keys.len() >= SNAPSHOT_ROWS {
                std::mem::take(&mut copied).hand_over(self, &mut snapshot);
            }
        }
        copied.hand_over(self, &mut snapshot);
        Ok(snapshot)
    }

    /// Makes the tables of matches such of changes.
    pub(super) fn mark(&self, changed: &Changed, snapshot: &mut OperatorSnapshot) {
        let (table, encoder) = (&self.table, &self.encoder);
        let has_no_rows = |slot: u32| self.partitions[slot as usize].is_empty();
        changed.mark(snapshot, ROWS, table, encoder, has_no_rows);
        changed.mark(snapshot, NODES, table, encoder, has_no_rows);
        changed.mark(snapshot, MATCHES, table, encoder, |slot| {
            let partition = &self.partitions[slot as usize];
            partition.partials.0.is_empty() && partition.completed.0.is_empty()
        });
    }

    pub(super) fn load(&mut self, state: &RestoreState) -> Result<()> {
        let width = self.spec.partition.len();
        self.watermark = state.watermark.unwrap_or(i64::MIN);
        for batch in state.batches(WAITING) {
            let columns = batch.columns().get(width..).unwrap_or_default().to_vec();
            self.keep(RecordBatch::try_new(
                std::sync::Arc::clone(&self.schema),
                columns,
            )?)?;
        }
        if self.rowtime.is_none() && self.waiting_rows > 0 {
            self.timer = Some(self.context.clock.now_ms().saturating_add(1));
        }
        // numbers are those of one subtask: they mean something with their key only
        let mut rows: HashMap<(u32, i64), Arc<Row>> = HashMap::new();
        for batch in state.batches(ROWS) {
            let slots = self.slots_of(batch)?;
            let values = self.values.len();
            let mut encoded = EncodedRows::default();
            let columns = batch.columns();
            let [data @ .., sequences, times] = columns else {
                return Err(foreign());
            };
            if data.len() != values {
                return Err(foreign());
            }
            self.codec.encode(data, batch.num_rows(), &mut encoded)?;
            let (sequences, times) = (longs_of(sequences)?, longs_of(times)?);
            for (i, slot) in slots.iter().enumerate() {
                let sequence = u64::try_from(sequences[i]).unwrap_or(0);
                self.sequence = self.sequence.max(sequence + 1);
                let row = Row {
                    bytes: encoded.bytes(i).into(),
                    sequence,
                    time: times[i],
                };
                rows.insert((*slot, sequences[i]), Arc::new(row));
            }
        }
        let mut nodes: HashMap<(u32, i64), Arc<Node>> = HashMap::new();
        for batch in state.batches(NODES) {
            let slots = self.slots_of(batch)?;
            let [_, _, ..] = batch.columns() else {
                return Err(foreign());
            };
            let column = |i: usize| batch.columns().get(width + i).ok_or_else(foreign);
            let (numbers, befores) = (longs_of(column(0)?)?, longs_of(column(1)?)?);
            let sequences = longs_of(column(2)?)?;
            let variables = column(3)?
                .as_primitive_opt::<Int32Type>()
                .ok_or_else(foreign)?;
            for (i, slot) in slots.iter().enumerate() {
                let row = rows.get(&(*slot, sequences[i])).ok_or_else(foreign)?;
                let variable = usize::try_from(variables.value(i)).map_err(|_| foreign())?;
                if variable >= self.spec.variables.len() {
                    return Err(foreign());
                }
                let before = match befores[i] {
                    -1 => None,
                    before => Some(Arc::clone(nodes.get(&(*slot, before)).ok_or_else(foreign)?)),
                };
                let node = Node {
                    row: Arc::clone(row),
                    variable,
                    before,
                };
                nodes.insert((*slot, numbers[i]), Arc::new(node));
            }
        }
        for batch in state.batches(MATCHES) {
            let slots = self.slots_of(batch)?;
            let [.., lasts, complete] = batch.columns() else {
                return Err(foreign());
            };
            let lasts = longs_of(lasts)?;
            let complete = complete.as_boolean_opt().ok_or_else(foreign)?;
            for (i, slot) in slots.iter().enumerate() {
                let partial = match lasts[i] {
                    -1 => Partial::beginning(),
                    last => Partial::of(Arc::clone(nodes.get(&(*slot, last)).ok_or_else(foreign)?)),
                };
                if let (Some(within), false) = (self.nfa.within_ms, partial.last.is_none()) {
                    let deadline = partial.start_time.saturating_add(within);
                    self.deadlines.insert((deadline, *slot));
                }
                let partition = &mut self.partitions[*slot as usize];
                match complete.value(i) {
                    true => partition.completed.0.push(partial),
                    false => partition.partials.0.push(partial),
                }
            }
        }
        Ok(())
    }

    /// The slots of the keys in the first columns.
    fn slots_of(&mut self, batch: &RecordBatch) -> Result<Vec<u32>> {
        let width = self.spec.partition.len();
        let keys = batch.columns().get(..width).ok_or_else(foreign)?;
        let mut encoded = EncodedKeys::default();
        let (mut slots, mut fresh) = (Vec::new(), Vec::new());
        self.encoder.encode(keys, batch.num_rows(), &mut encoded)?;
        self.table.intern(&encoded, &mut slots, &mut fresh)?;
        self.partitions
            .resize_with(self.table.slot_bound(), Partition::default);
        Ok(slots)
    }
}

fn as_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn longs(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

fn longs_of(column: &ArrayRef) -> Result<&[i64]> {
    let longs = column.as_primitive_opt::<Int64Type>();
    let longs = longs.filter(|l| l.null_count() == 0).ok_or_else(foreign)?;
    Ok(longs.values())
}

fn foreign() -> Error {
    Error::checkpoint("the saved state is of another MATCH_RECOGNIZE")
}
