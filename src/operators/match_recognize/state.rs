//! The state of `Match` in checkpoints.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};

use super::MatchRecognize;
use super::history::{Node, Row};
use super::nfa::{Partial, Partition};
use crate::error::{Error, Result};
use crate::operators::last_rows::anonymous_batch;
use crate::state::keys::EncodedKeys;
use crate::state::rows::EncodedRows;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

/// Rows that wait: the key, then the row.
const WAITING: &str = "waiting";
/// Rows of matches: the values, the key first, then number and time.
const ROWS: &str = "rows";
/// The lists of rows: key, number, that of the one before or -1, row, variable. The one before
/// stands before.
const NODES: &str = "nodes";
/// Matches under way, in their order: key, last node or -1, whether complete.
const MATCHES: &str = "matches";

impl MatchRecognize {
    pub(super) fn save(&self) -> Result<OperatorSnapshot> {
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
        let mut rows: Vec<Arc<Row>> = Vec::new();
        let mut row_numbers: HashMap<u64, ()> = HashMap::new();
        let mut nodes: HashMap<*const Node, i64> = HashMap::new();
        let (mut node_keys, mut node_columns) =
            (Vec::new(), (Vec::new(), Vec::new(), Vec::new(), Vec::new()));
        let (mut match_keys, mut lasts, mut complete) = (Vec::new(), Vec::new(), Vec::new());
        for slot in self.table.slots() {
            let Some(partition) = self.partitions.get(slot as usize) else {
                continue;
            };
            let partials = partition.partials.0.iter().map(|p| (p, false));
            let completed = partition.completed.0.iter().map(|p| (p, true));
            for (partial, is_complete) in partials.chain(completed) {
                match_keys.push(slot);
                complete.push(is_complete);
                let Some(last) = &partial.last else {
                    lasts.push(-1);
                    continue;
                };
                let known = |node: &&Node| !nodes.contains_key(&std::ptr::from_ref(*node));
                let fresh: Vec<&Node> = last.backwards().take_while(known).collect();
                for node in fresh.into_iter().rev() {
                    let number = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
                    let before = node.before.as_ref().map_or(-1, |b| nodes[&Arc::as_ptr(b)]);
                    nodes.insert(std::ptr::from_ref(node), number);
                    node_keys.push(slot);
                    node_columns.0.push(number);
                    node_columns.1.push(before);
                    node_columns.2.push(as_i64(node.row.sequence));
                    node_columns
                        .3
                        .push(i32::try_from(node.variable).unwrap_or(i32::MAX));
                    if row_numbers.insert(node.row.sequence, ()).is_none() {
                        rows.push(Arc::clone(&node.row));
                    }
                }
                lasts.push(nodes[&Arc::as_ptr(last)]);
            }
        }
        let mut columns = self.codec.decode(rows.iter().map(|row| &*row.bytes))?;
        columns.push(longs(rows.iter().map(|row| as_i64(row.sequence))));
        columns.push(longs(rows.iter().map(|row| row.time)));
        snapshot.add(ROWS, width, anonymous_batch(columns, rows.len())?);
        let count = node_keys.len();
        let mut columns = self.table.decode(&self.encoder, node_keys)?;
        let (numbers, befores, sequences, variables) = node_columns;
        columns.push(longs(numbers.into_iter()));
        columns.push(longs(befores.into_iter()));
        columns.push(longs(sequences.into_iter()));
        columns.push(Arc::new(Int32Array::from(variables)));
        snapshot.add(NODES, width, anonymous_batch(columns, count)?);
        let count = match_keys.len();
        let mut columns = self.table.decode(&self.encoder, match_keys)?;
        columns.push(longs(lasts.into_iter()));
        columns.push(Arc::new(BooleanArray::from(complete)));
        snapshot.add(MATCHES, width, anonymous_batch(columns, count)?);
        Ok(snapshot)
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
