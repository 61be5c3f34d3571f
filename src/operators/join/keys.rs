//! The join keys of both sides: what a row is found by.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use crate::error::{Error, Result};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable};
use crate::types::Schema;

/// Gives every join key a slot, whichever side it comes from.
#[derive(Debug)]
pub(crate) struct JoinKeys {
    columns: [Vec<usize>; 2],
    /// By key column: whether NULL matches NULL.
    null_safe: Vec<bool>,
    pub(crate) encoder: Arc<KeyEncoder>,
    pub(crate) table: KeyTable,
    /// The slots of the rows interned last.
    pub(crate) slots: Vec<u32>,
    encoded: EncodedKeys,
    fresh: Vec<u32>,
}

impl JoinKeys {
    /// No keys yet. Each side: its columns and which of them are the key.
    pub(crate) fn new(
        (left, left_keys): (&Schema, &[usize]),
        (right, right_keys): (&Schema, &[usize]),
        null_safe: &[bool],
    ) -> Result<Self> {
        let types = left.project(left_keys).types();
        let others = right.project(right_keys).types();
        let same = |(l, r): (&crate::types::DataType, &crate::types::DataType)| {
            l.to_arrow() == r.to_arrow()
        };
        let fits = types.len() == others.len() && types.len() == null_safe.len();
        if !fits || !types.iter().zip(&others).all(same) {
            return Err(Error::internal("the keys of a join do not fit each other"));
        }
        let encoder = KeyEncoder::new(&types)?;
        Ok(Self {
            columns: [left_keys.to_vec(), right_keys.to_vec()],
            null_safe: null_safe.to_vec(),
            table: encoder.table(),
            encoder: Arc::new(encoder),
            slots: Vec::new(),
            encoded: EncodedKeys::default(),
            fresh: Vec::new(),
        })
    }

    /// Number of key columns.
    pub(crate) fn len(&self) -> usize {
        self.null_safe.len()
    }

    /// Fills [`slots`](Self::slots) for the rows of a port, and answers which rows have a key that
    /// equals nothing.
    pub(crate) fn intern(
        &mut self,
        port: usize,
        batch: &RecordBatch,
    ) -> Result<Option<BooleanBuffer>> {
        let keys = &self.columns[port];
        let columns: Vec<ArrayRef> = keys.iter().map(|c| Arc::clone(batch.column(*c))).collect();
        self.intern_columns(&columns, batch.num_rows())?;
        let valid = columns
            .iter()
            .zip(&self.null_safe)
            .filter(|(_, null_safe)| !**null_safe)
            .fold(None, |nulls, (column, _)| {
                NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
            });
        Ok(valid
            .filter(|valid| valid.null_count() > 0)
            .map(|valid| !valid.inner()))
    }

    /// Fills [`slots`](Self::slots) for keys in columns of their own.
    pub(crate) fn intern_columns(&mut self, columns: &[ArrayRef], len: usize) -> Result<()> {
        self.encoder.encode(columns, len, &mut self.encoded)?;
        self.table
            .intern(&self.encoded, &mut self.slots, &mut self.fresh)
    }

    /// Forgets a key, unless it is forgotten already.
    pub(crate) fn release(&mut self, slot: u32) {
        if self.table.is_live(slot) {
            self.table.remove(slot);
        }
    }
}
