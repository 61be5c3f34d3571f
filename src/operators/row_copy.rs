//! Rows of keyed state on their way into a checkpoint: the key and the row in bytes, and numbers that
//! go with the row. The thread that copies only moves memory; columns are made by whoever reads.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::last_rows::{SNAPSHOT_ROWS, anonymous_batch};
use crate::state::keys::{KeyBytes, KeyEncoder, KeyTable};
use crate::state::rows::RowCodec;
use crate::state::snapshot::{LazyBatch, OperatorSnapshot};

/// What a table of rows is made of: columns of the key, `N` numbers, columns of the row.
#[derive(Debug)]
pub(super) struct RowCopy<'a, const N: usize> {
    name: &'static str,
    table: &'a KeyTable,
    encoder: &'a Arc<KeyEncoder>,
    codec: &'a Arc<RowCodec>,
    copied: Copied<N>,
}

#[derive(Debug)]
struct Copied<const N: usize> {
    keys: KeyBytes,
    numbers: [Vec<Option<i64>>; N],
    rows: KeyBytes,
}

impl<const N: usize> Default for Copied<N> {
    fn default() -> Self {
        Self {
            keys: KeyBytes::default(),
            numbers: std::array::from_fn(|_| Vec::new()),
            rows: KeyBytes::default(),
        }
    }
}

impl<'a, const N: usize> RowCopy<'a, N> {
    /// A copy of nothing, for table `name`: keys of `table`, which `encoder` has made, and rows of
    /// `codec`.
    pub(super) fn new(
        name: &'static str,
        (table, encoder): (&'a KeyTable, &'a Arc<KeyEncoder>),
        codec: &'a Arc<RowCodec>,
    ) -> Self {
        Self {
            name,
            table,
            encoder,
            codec,
            copied: Copied::default(),
        }
    }

    /// Adds a row of the key of `slot`.
    pub(super) fn push(
        &mut self,
        slot: u32,
        numbers: [Option<i64>; N],
        row: &[u8],
        snapshot: &mut OperatorSnapshot,
    ) {
        self.copied.keys.push(self.table.key_bytes(slot));
        for (column, number) in self.copied.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
        self.copied.rows.push(row);
        if self.copied.rows.len() >= SNAPSHOT_ROWS {
            self.hand_over(snapshot);
        }
    }

    /// Adds what is left to the table.
    pub(super) fn finish(mut self, snapshot: &mut OperatorSnapshot) {
        self.hand_over(snapshot);
    }

    fn hand_over(&mut self, snapshot: &mut OperatorSnapshot) {
        let copied = std::mem::take(&mut self.copied);
        let len = copied.rows.len();
        if len == 0 {
            return;
        }
        let (encoder, codec) = (Arc::clone(self.encoder), Arc::clone(self.codec));
        let Copied {
            keys,
            numbers,
            rows,
        } = copied;
        let numbers: [ArrayRef; N] = numbers.map(|n| Arc::new(Int64Array::from(n)) as ArrayRef);
        let make = move || {
            let mut columns = encoder.decode(keys.iter())?;
            columns.extend(numbers.iter().cloned());
            columns.extend(codec.decode(rows.iter())?);
            anonymous_batch(columns, len)
        };
        snapshot.add_lazy(self.name, self.encoder.columns(), LazyBatch::new(make));
    }
}
