//! The first or last row of a key by arrival.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};

use super::DeduplicateSpec;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::operators::changes::Changes;
use crate::operators::last_rows::{LastRows, anonymous_batch};
use crate::operators::{Operator, StateSize};
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

/// The keys seen so far.
#[derive(Debug)]
pub(super) struct Seen {
    key: Vec<usize>,
    encoder: KeyEncoder,
    table: KeyTable,
    keys: EncodedKeys,
    slots: Vec<u32>,
    /// Rows of the batch with a key that was not seen before.
    fresh: Vec<u32>,
}

impl Seen {
    fn new(spec: &DeduplicateSpec) -> Result<Self> {
        let encoder = KeyEncoder::new(&spec.schema.project(&spec.key).types())?;
        Ok(Self {
            key: spec.key.clone(),
            table: encoder.table(),
            encoder,
            keys: EncodedKeys::default(),
            slots: Vec::new(),
            fresh: Vec::new(),
        })
    }

    fn begin(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(columns, len, &mut self.keys)?;
        self.table
            .intern(&self.keys, &mut self.slots, &mut self.fresh)
    }

    fn begin_batch(&mut self, batch: &ChangeBatch) -> Result<()> {
        let columns = batch.rows().columns();
        let keys: Vec<_> = self.key.iter().map(|c| Arc::clone(&columns[*c])).collect();
        self.begin(&keys, batch.len())
    }

    fn snapshot(&self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        let keys = self.table.decode(&self.encoder, self.table.slots())?;
        snapshot.add("keys", keys.len(), anonymous_batch(keys, self.table.len())?);
        Ok(snapshot)
    }

    fn restore(&mut self, state: &RestoreState) -> Result<()> {
        for batch in state.batches("keys") {
            self.begin(batch.columns(), batch.num_rows())?;
        }
        Ok(())
    }

    fn state_size(&self) -> StateSize {
        StateSize {
            rows: self.table.len(),
            bytes: self.table.memory_size(),
        }
    }
}

/// Keeps the first row.
#[derive(Debug)]
pub(super) struct ProctimeFirst {
    seen: Seen,
}

impl ProctimeFirst {
    pub(super) fn new(spec: &DeduplicateSpec) -> Result<Self> {
        Ok(Self {
            seen: Seen::new(spec)?,
        })
    }
}

impl Operator for ProctimeFirst {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        self.seen.begin_batch(&batch)?;
        let mut first = vec![false; batch.len()];
        for i in &self.seen.fresh {
            first[*i as usize] = true;
        }
        out.emit(batch.filter(&BooleanArray::from(first))?)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        self.seen.snapshot()
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.seen.restore(&state)
    }

    fn state_size(&self) -> StateSize {
        self.seen.state_size()
    }
}

/// Keeps the last row.
#[derive(Debug)]
pub(super) enum ProctimeLast {
    /// The reader wants neither `-U` nor `+I`: all rows are updates.
    Upsert,
    /// The reader wants to know the first row.
    Insert(Seen),
    /// The reader wants the old row.
    Retract(LastRows, Changes),
}

impl ProctimeLast {
    pub(super) fn new(spec: &DeduplicateSpec) -> Result<Self> {
        Ok(if spec.generate_update_before {
            let state = LastRows::new(&spec.schema, &spec.key)?;
            Self::Retract(state, Changes::new(spec.schema.to_arrow()))
        } else if spec.generate_insert {
            Self::Insert(Seen::new(spec)?)
        } else {
            Self::Upsert
        })
    }
}

impl Operator for ProctimeLast {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        match self {
            Self::Upsert => {
                let kinds = vec![RowKind::UpdateAfter; batch.len()];
                out.emit(ChangeBatch::try_new(batch.rows().clone(), kinds)?)
            }
            Self::Insert(seen) => {
                seen.begin_batch(&batch)?;
                let mut kinds = vec![RowKind::UpdateAfter; batch.len()];
                for i in &seen.fresh {
                    kinds[*i as usize] = RowKind::Insert;
                }
                out.emit(ChangeBatch::try_new(batch.rows().clone(), kinds)?)
            }
            Self::Retract(state, changes) => {
                state.begin(batch.rows())?;
                for i in 0..batch.len() {
                    match state.stored(i) {
                        None => changes.input(RowKind::Insert, i),
                        Some(old) => {
                            changes.stored(RowKind::UpdateBefore, old);
                            changes.input(RowKind::UpdateAfter, i);
                        }
                    }
                    state.put(i);
                }
                changes.emit(batch.rows(), state.codec(), out)
            }
        }
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        match self {
            Self::Upsert => {}
            Self::Insert(seen) => snapshot = seen.snapshot()?,
            Self::Retract(state, _) => state.snapshot(&mut snapshot)?,
        }
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        match self {
            Self::Upsert => Ok(()),
            Self::Insert(seen) => seen.restore(&state),
            Self::Retract(rows, _) => rows.restore(&state, |_, _, _| Ok(())),
        }
    }

    fn state_size(&self) -> StateSize {
        match self {
            Self::Upsert => StateSize::default(),
            Self::Insert(seen) => seen.state_size(),
            Self::Retract(state, _) => state.state_size(),
        }
    }
}
