//! The changes that a join is about to emit: pairs of row numbers, turned into columns many at once.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::state::binary_row::BinaryRowCodec;
use crate::state::rows::{RowId, RowStore};

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// Where the rows of one side lie.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// In the batch that is being processed.
    Batch(&'a RecordBatch),
    /// In state.
    Stored(&'a BinaryRowCodec, &'a RowStore),
}

/// Pairs of rows with a kind each, in the order in which they are emitted. [`NONE`] is the row of
/// NULLs.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    kinds: Vec<RowKind>,
    own: Vec<u32>,
    other: Vec<u32>,
}

impl Changes {
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    #[inline]
    pub(crate) fn push(&mut self, kind: RowKind, own: u32, other: u32) {
        self.kinds.push(kind);
        self.own.push(own);
        self.other.push(other);
    }

    /// The changes as a batch of `schema`; none are left. The rows of the input stand left of the
    /// others if `own_is_left`. `None` for a side whose columns are not part of the output.
    pub(crate) fn take(
        &mut self,
        own: Option<Rows<'_>>,
        other: Option<Rows<'_>>,
        own_is_left: bool,
        schema: &SchemaRef,
    ) -> Result<ChangeBatch> {
        let mut columns = match own {
            Some(rows) => gather(rows, &self.own)?,
            None => Vec::new(),
        };
        let mut others = match other {
            Some(rows) => gather(rows, &self.other)?,
            None => Vec::new(),
        };
        if own_is_left {
            columns.append(&mut others);
        } else {
            others.append(&mut columns);
            columns = others;
        }
        self.own.clear();
        self.other.clear();
        let options = RecordBatchOptions::new().with_row_count(Some(self.kinds.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        ChangeBatch::try_new(rows, std::mem::take(&mut self.kinds))
    }
}

/// The columns of the rows `ids`.
pub(crate) fn gather(rows: Rows<'_>, ids: &[u32]) -> Result<Vec<ArrayRef>> {
    match rows {
        Rows::Batch(batch) => {
            let indices = Indices::new(ids);
            let columns = batch.columns().iter();
            columns.map(|column| indices.take(column)).collect()
        }
        Rows::Stored(codec, rows) => codec.decode(&bytes(rows, ids)),
    }
}

/// Column `column` of the rows `ids`.
pub(crate) fn gather_column(rows: Rows<'_>, ids: &[u32], column: usize) -> Result<ArrayRef> {
    match rows {
        Rows::Batch(batch) => Indices::new(ids).take(batch.column(column)),
        Rows::Stored(codec, rows) => codec.decode_field(&bytes(rows, ids), column),
    }
}

fn bytes<'a>(rows: &'a RowStore, ids: &[u32]) -> Vec<&'a [u8]> {
    let row = |id: &u32| match *id {
        NONE => &[],
        id => rows.get(RowId(id)),
    };
    ids.iter().map(row).collect()
}

/// Which rows to take, in the cheapest form.
enum Indices {
    Nothing(usize),
    Range(usize, usize),
    Some(UInt32Array),
}

impl Indices {
    fn new(ids: &[u32]) -> Self {
        let [first, ..] = ids else {
            return Self::Nothing(0);
        };
        let padded = ids.contains(&NONE);
        if padded && ids.iter().all(|id| *id == NONE) {
            return Self::Nothing(ids.len());
        }
        if !padded && ids.windows(2).all(|w| w[0] + 1 == w[1]) {
            return Self::Range(*first as usize, ids.len());
        }
        let nulls = padded.then(|| NullBuffer::from_iter(ids.iter().map(|id| *id != NONE)));
        // A row that is NULL must not be out of range.
        let values = match nulls {
            Some(_) => ids
                .iter()
                .map(|id| if *id == NONE { 0 } else { *id })
                .collect(),
            None => ids.to_vec(),
        };
        Self::Some(UInt32Array::new(ScalarBuffer::from(values), nulls))
    }

    fn take(&self, column: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self {
            Self::Nothing(len) => new_null_array(column.data_type(), *len),
            Self::Range(start, len) => column.slice(*start, *len),
            Self::Some(indices) => take(column, indices, None)?,
        })
    }
}
