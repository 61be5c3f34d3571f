//! The typed copy of an operator's state that a checkpoint holds, and its way back.
//!
//! State is a set of named tables of Arrow columns. The first `keys` columns of a table are the key
//! that its rows are addressed by: their key group decides which subtask takes a row up again, so a
//! job restores at another parallelism. A table with `keys == 0` goes to every subtask.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;

/// One named table of an operator's state.
#[derive(Debug, Clone)]
pub struct StateTable {
    /// Number of leading columns that are the key.
    pub keys: usize,
    /// The rows, in one or more batches of one schema.
    pub batches: Vec<RecordBatch>,
}

/// The state of one subtask of an operator.
#[derive(Debug, Clone, Default)]
pub struct OperatorSnapshot {
    /// Tables by name.
    pub tables: BTreeMap<String, StateTable>,
    /// The operator's last watermark, ms.
    pub watermark: Option<i64>,
}

impl OperatorSnapshot {
    /// Adds a table of one batch, unless it has no rows.
    pub fn add(&mut self, name: &str, keys: usize, batch: RecordBatch) {
        if batch.num_rows() > 0 {
            self.tables
                .entry(name.to_string())
                .or_insert_with(|| StateTable {
                    keys,
                    batches: Vec::new(),
                })
                .batches
                .push(batch);
        }
    }
}

/// What an operator takes up: the tables of all former subtasks, restricted to its key groups.
#[derive(Debug, Clone, Default)]
pub struct RestoreState {
    /// Tables by name; rows in the order in which they were saved.
    pub tables: BTreeMap<String, StateTable>,
    /// The lowest watermark of the former subtasks, ms.
    pub watermark: Option<i64>,
}

impl RestoreState {
    /// The batches of a table; none if there was no row.
    #[must_use]
    pub fn batches(&self, name: &str) -> &[RecordBatch] {
        self.tables.get(name).map_or(&[], |table| &table.batches)
    }
}
