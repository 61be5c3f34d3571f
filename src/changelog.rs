//! What travels on every edge: batches of rows with a kind each, and the modes a changelog can have.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};

/// What a row does to the dynamic table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RowKind {
    /// `+I`: a new row.
    Insert = 0,
    /// `-U`: the old content of an updated row.
    UpdateBefore = 1,
    /// `+U`: the new content of an updated row.
    UpdateAfter = 2,
    /// `-D`: a row is gone.
    Delete = 3,
}

impl RowKind {
    /// The two characters that Flink prints: `+I`, `-U`, `+U`, `-D`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Insert => "+I",
            Self::UpdateBefore => "-U",
            Self::UpdateAfter => "+U",
            Self::Delete => "-D",
        }
    }

    /// The kind whose [`symbol`](Self::symbol) is `text`.
    #[must_use]
    pub fn from_symbol(text: &str) -> Option<Self> {
        Some(match text {
            "+I" => Self::Insert,
            "-U" => Self::UpdateBefore,
            "+U" => Self::UpdateAfter,
            "-D" => Self::Delete,
            _ => return None,
        })
    }

    /// Whether the row is added (`+I`, `+U`), not withdrawn.
    #[must_use]
    pub fn is_add(self) -> bool {
        matches!(self, Self::Insert | Self::UpdateAfter)
    }

    /// +1 for a row that is added, -1 for one that is withdrawn.
    #[must_use]
    pub fn sign(self) -> i64 {
        if self.is_add() { 1 } else { -1 }
    }

    /// The kind with the opposite sign: `+I` and `-D`, `+U` and `-U` change places.
    #[must_use]
    pub fn inverse(self) -> Self {
        match self {
            Self::Insert => Self::Delete,
            Self::Delete => Self::Insert,
            Self::UpdateBefore => Self::UpdateAfter,
            Self::UpdateAfter => Self::UpdateBefore,
        }
    }
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

/// A batch of changes: rows and, beside them, the kind of each.
///
/// Invariant: `ops`, if present, has one entry a row. `None` means that all rows are `+I`.
/// No operator may assume that a `-U` is followed by its `+U`: filters and exchanges part them.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    rows: RecordBatch,
    ops: Option<Arc<[RowKind]>>,
}

impl ChangeBatch {
    /// A batch of insertions.
    #[must_use]
    pub fn inserts(rows: RecordBatch) -> Self {
        Self { rows, ops: None }
    }

    /// A batch whose row `i` has kind `ops[i]`. A list of `+I` only becomes `None`.
    ///
    /// # Errors
    /// When the lengths differ: a bug of the caller.
    pub fn try_new(rows: RecordBatch, ops: Vec<RowKind>) -> Result<Self> {
        if rows.num_rows() != ops.len() {
            return Err(Error::internal(format!(
                "{} rows with {} row kinds",
                rows.num_rows(),
                ops.len()
            )));
        }
        let ops = (!ops.iter().all(|k| *k == RowKind::Insert)).then(|| ops.into());
        Ok(Self { rows, ops })
    }

    /// The same kinds over other columns of as many rows (a projection).
    ///
    /// # Errors
    /// When the number of rows differs: a bug of the caller.
    pub fn with_rows(&self, rows: RecordBatch) -> Result<Self> {
        if rows.num_rows() != self.rows.num_rows() {
            return Err(Error::internal("a projection changed the number of rows"));
        }
        Ok(Self {
            rows,
            ops: self.ops.clone(),
        })
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// The kinds, or `None` when all rows are `+I`.
    #[must_use]
    pub fn ops(&self) -> Option<&[RowKind]> {
        self.ops.as_deref()
    }

    /// The kind of row `i`.
    #[must_use]
    pub fn kind(&self, i: usize) -> RowKind {
        self.ops.as_ref().map_or(RowKind::Insert, |ops| ops[i])
    }

    /// The kinds of all rows, in order.
    pub fn kinds(&self) -> impl Iterator<Item = RowKind> + '_ {
        (0..self.len()).map(|i| self.kind(i))
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The Arrow schema of the rows.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// Rows `offset..offset + length`, without copying columns.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let ops = self
            .ops
            .as_ref()
            .map(|ops| ops[offset..offset + length].into());
        Self {
            rows: self.rows.slice(offset, length),
            ops,
        }
    }

    /// The rows at `indices`, in that order, with their kinds.
    ///
    /// # Errors
    /// When an index is out of range: a bug of the caller.
    pub fn take(&self, indices: &UInt32Array) -> Result<Self> {
        let rows = take_record_batch(&self.rows, indices)?;
        let ops = self
            .ops
            .as_ref()
            .map(|ops| indices.values().iter().map(|i| ops[*i as usize]).collect());
        Ok(Self { rows, ops })
    }

    /// The rows where `mask` is true (not false or NULL), with their kinds. Copies nothing when all
    /// are.
    ///
    /// # Errors
    /// When the lengths differ: a bug of the caller.
    pub fn filter(&self, mask: &BooleanArray) -> Result<Self> {
        if mask.len() == self.len() && mask.true_count() == self.len() {
            return Ok(self.clone());
        }
        let rows = filter_record_batch(&self.rows, mask)?;
        let kept = |i: &usize| mask.is_valid(*i) && mask.value(*i);
        let ops = self
            .ops
            .as_ref()
            .map(|ops| (0..ops.len()).filter(kept).map(|i| ops[i]).collect());
        Ok(Self { rows, ops })
    }

    /// The rows of `batches`, which have one schema, in order, as one batch.
    ///
    /// # Errors
    /// When the schemas differ or there is no batch: a bug of the caller.
    pub fn concat(mut batches: Vec<Self>) -> Result<Self> {
        if batches.len() == 1 {
            return Ok(batches.swap_remove(0));
        }
        let Some(first) = batches.first() else {
            return Err(Error::internal("no batches to concatenate"));
        };
        let rows = concat_batches(&first.schema(), batches.iter().map(Self::rows))?;
        let all_inserts = batches.iter().all(|b| b.ops.is_none());
        let ops = (!all_inserts).then(|| batches.iter().flat_map(Self::kinds).collect());
        Ok(Self { rows, ops })
    }

    /// Bytes of memory that the columns hold.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.rows.get_array_memory_size() + self.ops.as_ref().map_or(0, |ops| ops.len())
    }
}

/// Which kinds a changelog may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChangelogMode {
    /// `+I` may occur.
    pub insert: bool,
    /// `-U` may occur.
    pub update_before: bool,
    /// `+U` may occur.
    pub update_after: bool,
    /// `-D` may occur.
    pub delete: bool,
}

impl ChangelogMode {
    /// Insertions only.
    pub const APPEND: Self = Self {
        insert: true,
        update_before: false,
        update_after: false,
        delete: false,
    };
    /// Updates without their old content; the reader knows the key.
    pub const UPSERT: Self = Self {
        insert: true,
        update_before: false,
        update_after: true,
        delete: true,
    };
    /// All four kinds.
    pub const RETRACT: Self = Self {
        insert: true,
        update_before: true,
        update_after: true,
        delete: true,
    };

    /// Whether only insertions occur.
    #[must_use]
    pub fn is_append(self) -> bool {
        !(self.update_before || self.update_after || self.delete)
    }

    /// Whether updates occur, with or without their old content.
    #[must_use]
    pub fn has_updates(self) -> bool {
        self.update_before || self.update_after
    }

    /// Whether updates occur without their old content.
    #[must_use]
    pub fn is_upsert(self) -> bool {
        self.update_after && !self.update_before
    }

    /// The kinds that either changelog may contain.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            insert: self.insert || other.insert,
            update_before: self.update_before || other.update_before,
            update_after: self.update_after || other.update_after,
            delete: self.delete || other.delete,
        }
    }

    /// The same without `-U`.
    #[must_use]
    pub fn without_update_before(self) -> Self {
        Self {
            update_before: false,
            ..self
        }
    }

    /// Whether `kind` may occur.
    #[must_use]
    pub fn contains(self, kind: RowKind) -> bool {
        match kind {
            RowKind::Insert => self.insert,
            RowKind::UpdateBefore => self.update_before,
            RowKind::UpdateAfter => self.update_after,
            RowKind::Delete => self.delete,
        }
    }
}

/// Flink's form: `I,UB,UA,D`, or `NONE`.
impl fmt::Display for ChangelogMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.insert, "I"),
            (self.update_before, "UB"),
            (self.update_after, "UA"),
            (self.delete, "D"),
        ];
        let present: Vec<_> = names
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, n)| *n)
            .collect();
        f.write_str(if present.is_empty() { "NONE" } else { "" })?;
        f.write_str(&present.join(","))
    }
}
