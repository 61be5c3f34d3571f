//! The typed copy of an operator's state that a checkpoint holds, and its way back.
//!
//! State is a set of named tables of Arrow columns. The first `keys` columns of a table are the key
//! that its rows are addressed by: their key group decides which subtask takes a row up again, so a
//! job restores at another parallelism. A table with `keys == 0` goes to every subtask.
//!
//! A copy may hold only what has changed since an earlier one ([`Part::Changes`]): the rows of every
//! key that was touched, and the keys that are gone. Whoever keeps it puts the two together again
//! (`checkpoint::layers`), so that an operator restores from whole tables only.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::error::{Error, Result};

/// Rows that are made when somebody needs them, away from the thread that copied them.
#[derive(Clone)]
pub struct LazyBatch(Arc<Make>);

type Make = dyn Fn() -> Result<RecordBatch> + Send + Sync;

impl LazyBatch {
    /// Rows that `make` makes of what it owns.
    pub fn new(make: impl Fn() -> Result<RecordBatch> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// The rows.
    ///
    /// # Errors
    /// When the copy cannot be read.
    pub fn get(&self) -> Result<RecordBatch> {
        (self.0)()
    }
}

impl From<RecordBatch> for LazyBatch {
    fn from(batch: RecordBatch) -> Self {
        Self::new(move || Ok(batch.clone()))
    }
}

impl fmt::Debug for LazyBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Ok(batch) => batch.fmt(f),
            Err(error) => error.fmt(f),
        }
    }
}

/// What of a table a copy holds.
#[derive(Debug, Clone, Default)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// All rows of the keys that were touched since the copy that this one goes on from.
    Changes {
        /// Keys without any row left: batches of the key columns. A key may also be among the rows.
        removed: Vec<LazyBatch>,
    },
}

/// One named table of an operator's state.
#[derive(Debug, Clone, Default)]
pub struct StateTable {
    /// Number of leading columns that are the key.
    pub keys: usize,
    /// The rows, in one or more batches of one schema.
    pub batches: Vec<LazyBatch>,
    /// What of the table they are.
    pub part: Part,
}

impl StateTable {
    /// A copy that says: nothing has changed.
    #[must_use]
    pub fn unchanged(keys: usize) -> Self {
        Self {
            keys,
            batches: Vec::new(),
            part: Part::Changes {
                removed: Vec::new(),
            },
        }
    }
}

/// The state of one subtask of an operator.
#[derive(Debug, Clone, Default)]
pub struct OperatorSnapshot {
    /// Tables by name. A table that is not there is empty.
    pub tables: BTreeMap<String, StateTable>,
    /// The operator's last watermark, ms.
    pub watermark: Option<i64>,
}

impl OperatorSnapshot {
    /// Adds rows to a table that is copied whole, unless there are none.
    pub fn add(&mut self, name: &str, keys: usize, batch: RecordBatch) {
        if batch.num_rows() > 0 {
            self.add_lazy(name, keys, batch.into());
        }
    }

    /// Adds rows to a table.
    pub fn add_lazy(&mut self, name: &str, keys: usize, batch: LazyBatch) {
        let table = self.tables.entry(name.to_string()).or_default();
        table.keys = keys;
        table.batches.push(batch);
    }

    /// Makes a table one of changes; `removed` are keys without rows, if any.
    pub fn changes(&mut self, name: &str, keys: usize, removed: Option<LazyBatch>) {
        let table = self.tables.entry(name.to_string()).or_default();
        table.keys = keys;
        table.part = Part::Changes {
            removed: removed.into_iter().collect(),
        };
    }
}

/// What an operator takes up: the tables of all former subtasks, restricted to its key groups.
#[derive(Debug, Clone, Default)]
pub struct RestoreState {
    /// Tables by name. The rows of one key come in the order in which they were saved.
    pub tables: BTreeMap<String, Vec<RecordBatch>>,
    /// The lowest watermark of the former subtasks, ms.
    pub watermark: Option<i64>,
}

impl RestoreState {
    /// All of a copy of whole tables: for an operator that takes itself up again.
    ///
    /// # Errors
    /// When the copy cannot be read, or holds changes only.
    pub fn of(snapshot: &OperatorSnapshot) -> Result<Self> {
        let mut state = Self {
            watermark: snapshot.watermark,
            ..Self::default()
        };
        for (name, table) in &snapshot.tables {
            if !matches!(table.part, Part::Whole) {
                return Err(Error::internal(format!("'{name}' is not copied whole")));
            }
            let batches = table.batches.iter().map(LazyBatch::get);
            let batches = batches.collect::<Result<_>>()?;
            state.tables.insert(name.clone(), batches);
        }
        Ok(state)
    }

    /// The batches of a table; none if there was no row.
    #[must_use]
    pub fn batches(&self, name: &str) -> &[RecordBatch] {
        self.tables.get(name).map_or(&[], |batches| batches)
    }
}
