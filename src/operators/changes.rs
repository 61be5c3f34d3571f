//! Puts together the changes that an operator emits: rows of its input and rows of its state.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int8Array, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{interleave, take};
use arrow::datatypes::{Int8Type, SchemaRef};

use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::runtime::output::Output;
use crate::state::rows::RowCodec;

/// Output rows after which [`Changes::is_full`] asks for emission, to bound memory.
const FULL: usize = 1 << 15;

/// The changes to emit, in order. A buffer to be reused.
#[derive(Debug)]
pub(super) struct Changes {
    schema: SchemaRef,
    kinds: Vec<RowKind>,
    places: Vec<Place>,
    /// Copies of rows of state, end to end.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Values of a last column of the output that the rows themselves don't have.
    ranks: Option<Vec<i64>>,
}

/// Where a row to emit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// This row of the input.
    Input(u32),
    /// This one of the rows of state that were handed over since the last [`Changes::emit`].
    Stored(u32),
}

impl Changes {
    /// A buffer for output of `schema`, whose columns are those of the rows.
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            kinds: Vec::new(),
            places: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            ranks: None,
        }
    }

    /// A buffer for output of `schema`, whose last column is a number given with each row.
    pub(super) fn with_rank(schema: SchemaRef) -> Self {
        Self {
            ranks: Some(Vec::new()),
            ..Self::new(schema)
        }
    }

    /// The Arrow schema of the output.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Adds row `i` of the input.
    pub(super) fn input(&mut self, kind: RowKind, i: usize) {
        self.kinds.push(kind);
        self.places.push(Place::Input(index(i)));
    }

    /// Adds a row of state; its bytes are copied.
    pub(super) fn stored(&mut self, kind: RowKind, row: &[u8]) {
        let place = self.keep(row);
        self.push(kind, place);
    }

    /// Takes a copy of a row of state, to be [pushed](Self::push) once or several times.
    pub(super) fn keep(&mut self, row: &[u8]) -> Place {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
        Place::Stored(index(self.ends.len() - 1))
    }

    /// Adds the row at `place`.
    pub(super) fn push(&mut self, kind: RowKind, place: Place) {
        self.kinds.push(kind);
        self.places.push(place);
    }

    /// Gives the row added last its number.
    pub(super) fn rank(&mut self, rank: i64) {
        if let Some(ranks) = &mut self.ranks {
            ranks.push(rank);
        }
    }

    /// Whether the operator should emit before it goes on.
    pub(super) fn is_full(&self) -> bool {
        self.kinds.len() >= FULL
    }

    /// Emits what was added since the last call. `codec` encoded the rows of state.
    ///
    /// # Errors
    /// When the rows do not fit the schema (a bug), or an operator behind fails.
    pub(super) fn emit(
        &mut self,
        input: &RecordBatch,
        codec: &RowCodec,
        out: &mut Output<'_>,
    ) -> Result<()> {
        if self.kinds.is_empty() {
            self.bytes.clear();
            self.ends.clear();
            return Ok(());
        }
        let mut columns = self.columns(input, codec)?;
        if let Some(ranks) = &mut self.ranks {
            columns.push(Arc::new(Int64Array::from(std::mem::take(ranks))));
        }
        let kinds = std::mem::take(&mut self.kinds);
        self.places.clear();
        self.bytes.clear();
        self.ends.clear();
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.emit(ChangeBatch::try_new(rows, kinds)?)
    }

    fn columns(&self, input: &RecordBatch, codec: &RowCodec) -> Result<Vec<ArrayRef>> {
        if self.ends.is_empty() {
            return self.input_columns(input);
        }
        let starts = std::iter::once(&0).chain(&self.ends);
        let rows = starts.zip(&self.ends).map(|(s, e)| &self.bytes[*s..*e]);
        let stored = codec.decode(rows)?;
        let in_order = |(i, place): (usize, &Place)| *place == Place::Stored(index(i));
        if self.ends.len() == self.places.len() && self.places.iter().enumerate().all(in_order) {
            return Ok(stored);
        }
        let indices: Vec<(usize, usize)> = self
            .places
            .iter()
            .map(|place| match place {
                Place::Input(i) => (0, *i as usize),
                Place::Stored(i) => (1, *i as usize),
            })
            .collect();
        let both = input.columns().iter().zip(&stored);
        both.map(|(input, stored)| {
            interleave(&[input.as_ref(), stored.as_ref()], &indices).map_err(Error::from)
        })
        .collect()
    }

    fn input_columns(&self, input: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let indices: Vec<u32> = self
            .places
            .iter()
            .map(|place| match place {
                Place::Input(i) | Place::Stored(i) => *i,
            })
            .collect();
        let all = indices.len() == input.num_rows();
        if all && indices.iter().enumerate().all(|(i, at)| i == *at as usize) {
            return Ok(input.columns().to_vec());
        }
        let indices = UInt32Array::from(indices);
        let columns = input.columns().iter();
        columns
            .map(|column| take(column, &indices, None).map_err(Error::from))
            .collect()
    }
}

fn index(i: usize) -> u32 {
    u32::try_from(i).expect("fewer than 2^32 rows in a batch")
}

/// Kinds as a column of state.
pub(super) fn kind_column(kinds: &[RowKind]) -> ArrayRef {
    Arc::new(Int8Array::from_iter_values(
        kinds.iter().map(|kind| *kind as i8),
    ))
}

/// The kinds that [`kind_column`] saved.
pub(super) fn column_kinds(column: &ArrayRef) -> Result<Vec<RowKind>> {
    const KINDS: [RowKind; 4] = [
        RowKind::Insert,
        RowKind::UpdateBefore,
        RowKind::UpdateAfter,
        RowKind::Delete,
    ];
    let numbers = column
        .as_primitive_opt::<Int8Type>()
        .ok_or_else(|| Error::checkpoint("saved row kinds have another type"))?;
    let kind = |n: &i8| usize::try_from(*n).ok().and_then(|n| KINDS.get(n).copied());
    let kinds = numbers.values().iter().map(kind).collect::<Option<_>>();
    kinds.ok_or_else(|| Error::checkpoint("saved row kinds are not valid"))
}
