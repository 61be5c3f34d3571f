//! `Expand`: makes of each row one row per grouping set, with the columns that the set leaves out
//! as NULL and the number of the set in a last column.

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::SchemaRef;

use super::Operator;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::runtime::output::Output;
use crate::types::Schema;

/// How rows are expanded.
#[derive(Debug, Clone)]
pub struct ExpandSpec {
    /// The sets, in the order in which their rows are emitted.
    pub sets: Vec<ExpandSet>,
    /// The output: one column for each projection of a set, then the id, `BIGINT`.
    pub schema: Schema,
}

/// One grouping set.
#[derive(Debug, Clone)]
pub struct ExpandSet {
    /// For each output column but the last: the input column, or `None` for NULL.
    pub columns: Vec<Option<usize>>,
    /// The value of the id column.
    pub id: i64,
}

/// The operator. Stateless.
#[derive(Debug)]
pub struct Expand {
    sets: Vec<ExpandSet>,
    schema: SchemaRef,
}

impl Expand {
    /// The operator for `spec`.
    #[must_use]
    pub fn new(spec: &ExpandSpec) -> Self {
        Self {
            sets: spec.sets.clone(),
            schema: spec.schema.to_arrow(),
        }
    }

    /// Output column `i`: the sets' versions of it one after the other, then woven row by row.
    fn column(&self, rows: &RecordBatch, i: usize, woven: &UInt32Array) -> Result<ArrayRef> {
        let field = self.schema.field(i);
        let first = self.sets[0].columns[i];
        if let Some(column) = first
            && self.sets.iter().all(|set| set.columns[i] == first)
        {
            let per_row =
                (0..rows.num_rows()).flat_map(|r| std::iter::repeat_n(r as u32, self.sets.len()));
            let indices = UInt32Array::from_iter_values(per_row);
            return Ok(take(rows.column(column), &indices, None)?);
        }
        let nulls = new_null_array(field.data_type(), rows.num_rows());
        let parts: Vec<_> = self
            .sets
            .iter()
            .map(|set| set.columns[i].map_or(nulls.as_ref(), |c| rows.column(c).as_ref()))
            .collect();
        Ok(take(&concat(&parts)?, woven, None)?)
    }
}

impl Operator for Expand {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let (n, sets) = (batch.len(), self.sets.len());
        let woven = (0..n).flat_map(|row| (0..sets).map(move |set| (set * n + row) as u32));
        let woven = UInt32Array::from_iter_values(woven);
        let mut columns = (0..self.schema.fields().len() - 1)
            .map(|i| self.column(batch.rows(), i, &woven))
            .collect::<Result<Vec<_>>>()?;
        let ids = (0..n).flat_map(|_| self.sets.iter().map(|set| set.id));
        columns.push(std::sync::Arc::new(Int64Array::from_iter_values(ids)));
        let rows = RecordBatch::try_new(std::sync::Arc::clone(&self.schema), columns)?;
        let kinds = batch.ops().map(|ops| {
            let repeated = ops.iter().flat_map(|kind| std::iter::repeat_n(*kind, sets));
            repeated.collect::<Vec<_>>()
        });
        out.emit(match kinds {
            Some(kinds) => ChangeBatch::try_new(rows, kinds)?,
            None => ChangeBatch::inserts(rows),
        })
    }
}
