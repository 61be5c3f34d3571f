//! The part of a join's condition that its keys do not cover, evaluated on many pairs at once.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::functions::{Environment, EvalContext};

use crate::types::Schema;

/// Which of a join's inputs: the port at which it arrives.
pub(crate) const LEFT: usize = 0;

/// A compiled condition over the columns of a left and a right row. Only the columns that it reads
/// are gathered.
pub(crate) struct JoinCondition {
    predicate: Test,
    /// Port and column of what the predicate reads.
    columns: Vec<(usize, usize)>,
    schema: SchemaRef,
}

type Test = Box<dyn Fn(&RecordBatch, &EvalContext) -> Result<BooleanArray> + Send>;

impl JoinCondition {
    /// Compiles `condition`, whose columns are those of `left`, then those of `right`.
    pub(crate) fn new(
        condition: &Expr,
        left: &Schema,
        right: &Schema,
        environment: &Environment,
    ) -> Result<Self> {
        let used = condition.columns();
        let joined = left.join(right);
        if used.last().is_some_and(|last| *last >= joined.len()) {
            return Err(Error::internal(
                "a join condition reads a column that is not there",
            ));
        }
        let position = |i: usize| {
            used.binary_search(&i)
                .expect("collected from the expression")
        };
        let condition = condition.clone().remap_columns(&position);
        let predicate = Compiled::new(&condition, environment)?;
        Ok(Self {
            predicate: Box::new(move |pairs, context| predicate.evaluate_predicate(pairs, context)),
            columns: used
                .iter()
                .map(|i| match i.checked_sub(left.len()) {
                    None => (LEFT, *i),
                    Some(i) => (1 - LEFT, i),
                })
                .collect(),
            schema: joined.project(&used).to_arrow(),
        })
    }

    /// Which of `context.rows` pairs fulfil the condition: no NULLs in the answer. `column` gives
    /// column `.1` of the rows of port `.0`, pair by pair.
    pub(crate) fn evaluate(
        &self,
        context: &EvalContext,
        mut column: impl FnMut(usize, usize) -> Result<ArrayRef>,
    ) -> Result<BooleanArray> {
        let columns = self
            .columns
            .iter()
            .map(|(port, index)| column(*port, *index))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(context.rows));
        let pairs = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        (self.predicate)(&pairs, context)
    }

    /// A condition on column `left` of a left row and column `right` of a right row, both `INT NOT
    /// NULL`.
    #[cfg(test)]
    pub(crate) fn on_ints(left: usize, right: usize, holds: fn(i32, i32) -> bool) -> Self {
        use crate::operators::testing::schema;
        use arrow::array::AsArray;
        use arrow::datatypes::Int32Type;
        Self {
            predicate: Box::new(move |pairs, _| {
                let column = |i: usize| pairs.column(i).as_primitive::<Int32Type>().values();
                let pairs = column(0).iter().zip(column(1));
                Ok(pairs.map(|(l, r)| Some(holds(*l, *r))).collect())
            }),
            columns: vec![(LEFT, left), (1 - LEFT, right)],
            schema: schema("l INT, r INT").to_arrow(),
        }
    }
}

impl std::fmt::Debug for JoinCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinCondition")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}
