//! Joins every row with the rows that a table function, or UNNEST of a collection, makes of it.
//! Stateless: kinds pass through.

#[cfg(test)]
mod tests;
pub mod unnest;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use self::unnest::{unnest, unnest_multiset};
use super::join::condition::{JoinCondition, LEFT};
use super::{Operator, OperatorContext};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::functions::EvalContext;
use crate::functions::table::TableFunctionRef;
use crate::runtime::output::Output;
use crate::types::{Schema, TypeKind};

/// What makes rows of a row.
#[derive(Debug, Clone)]
pub enum CorrelateCall {
    /// `UNNEST(collection)`: the elements of an `ARRAY`, `MAP` or `MULTISET`. Elements that are rows
    /// become columns.
    Unnest {
        /// The collection, over the input's columns.
        collection: Expr,
        /// `WITH ORDINALITY`: a last column that counts the elements from 1.
        ordinality: bool,
    },
    /// `LATERAL TABLE(function(args))`.
    Function {
        /// The function.
        function: TableFunctionRef,
        /// Its arguments, over the input's columns, of the types that it asks for.
        args: Vec<Expr>,
    },
}

/// A join with the rows of a call.
#[derive(Debug, Clone)]
pub struct CorrelateSpec {
    /// Columns of the input.
    pub input: Schema,
    /// What makes rows.
    pub call: CorrelateCall,
    /// Columns of these rows.
    pub table: Schema,
    /// Whether a row that gives no rows comes out padded with NULLs (`LEFT JOIN`).
    pub left: bool,
    /// What else must hold, over the columns of the input, then those of the call.
    pub condition: Option<Expr>,
    /// Columns of the result: those of the input, then those of the call.
    pub output: Schema,
}

/// The operator.
pub struct Correlate {
    call: Call,
    table: Schema,
    left: bool,
    condition: Option<JoinCondition>,
    schema: SchemaRef,
    context: OperatorContext,
    watermark: i64,
}

enum Call {
    Unnest {
        collection: Compiled,
        multiset: bool,
        ordinality: bool,
    },
    Function {
        function: TableFunctionRef,
        args: Vec<Compiled>,
    },
}

/// The rows of a batch of calls.
pub struct CalledRows {
    /// The call that each row belongs to, ascending.
    pub calls: UInt32Array,
    /// Their columns.
    pub columns: Vec<ArrayRef>,
}

impl Correlate {
    /// An operator for `spec`.
    ///
    /// # Errors
    /// When an expression cannot be compiled.
    pub fn new(spec: CorrelateSpec, context: &OperatorContext) -> Result<Self> {
        let environment = &context.environment;
        let call = match spec.call {
            CorrelateCall::Unnest {
                collection,
                ordinality,
            } => Call::Unnest {
                multiset: matches!(collection.data_type.kind, TypeKind::Multiset(_)),
                collection: Compiled::new(&collection, environment)?,
                ordinality,
            },
            CorrelateCall::Function { function, args } => Call::Function {
                function,
                args: args
                    .iter()
                    .map(|arg| Compiled::new(arg, environment))
                    .collect::<Result<_>>()?,
            },
        };
        let condition = spec
            .condition
            .as_ref()
            .map(|condition| JoinCondition::new(condition, &spec.input, &spec.table, environment))
            .transpose()?;
        Ok(Self {
            call,
            condition,
            table: spec.table,
            left: spec.left,
            schema: spec.output.to_arrow(),
            context: context.clone(),
            watermark: i64::MIN,
        })
    }

    fn call(&self, batch: &RecordBatch) -> Result<CalledRows> {
        let context = self.context.eval(batch.num_rows(), self.watermark);
        let called = match &self.call {
            Call::Unnest {
                collection,
                multiset,
                ordinality,
            } => {
                let collections = collection.evaluate_array(batch, &context)?;
                match multiset {
                    true => unnest_multiset(&collections, *ordinality)?,
                    false => unnest(&collections, *ordinality)?,
                }
            }
            Call::Function { function, args } => {
                let args = args
                    .iter()
                    .map(|arg| arg.evaluate_array(batch, &context))
                    .collect::<Result<Vec<_>>>()?;
                let (calls, rows) = function.evaluate(&args)?;
                CalledRows {
                    calls,
                    columns: rows.columns().to_vec(),
                }
            }
        };
        if called.columns.len() != self.table.len() {
            return Err(Error::internal("a table function gave other columns"));
        }
        Ok(called)
    }
}

impl CalledRows {
    /// The rows that fulfil a condition together with the row of `batch` that they belong to.
    pub(super) fn fulfilling(
        self,
        condition: &JoinCondition,
        batch: &RecordBatch,
        context: EvalContext,
    ) -> Result<Self> {
        if self.calls.is_empty() {
            return Ok(self);
        }
        let context = EvalContext {
            rows: self.calls.len(),
            ..context
        };
        let holds = condition.evaluate(&context, |port, column| match port {
            LEFT => Ok(take(batch.column(column), &self.calls, None)?),
            _ => Ok(Arc::clone(&self.columns[column])),
        })?;
        self.filter(&holds)
    }

    /// Emits the rows behind those of `batch` that they belong to, with the kinds of these, at most
    /// `size` at once.
    pub(super) fn emit(
        self,
        batch: &ChangeBatch,
        schema: &SchemaRef,
        size: usize,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let size = size.max(1);
        for start in (0..self.calls.len()).step_by(size) {
            let len = size.min(self.calls.len() - start);
            let calls = self.calls.slice(start, len);
            let options = RecordBatchOptions::new().with_row_count(Some(len));
            let of_batch = batch.rows().columns().iter();
            let columns = of_batch
                .map(|column| Ok(take(column, &calls, None)?))
                .chain(self.columns.iter().map(|c| Ok(c.slice(start, len))))
                .collect::<Result<Vec<_>>>()?;
            let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
            let kinds = calls.values().iter().map(|i| batch.kind(*i as usize));
            out.emit(ChangeBatch::try_new(rows, kinds.collect())?)?;
        }
        Ok(())
    }

    /// The rows for which `holds`.
    pub(super) fn filter(&self, holds: &BooleanArray) -> Result<Self> {
        let kept: UInt32Array = (0..)
            .zip(holds.values())
            .filter_map(|(i, holds)| holds.then_some(i))
            .collect();
        let calls = kept.values().iter();
        Ok(Self {
            calls: calls.map(|i| self.calls.value(*i as usize)).collect(),
            columns: self
                .columns
                .iter()
                .map(|column| Ok(take(column, &kept, None)?))
                .collect::<Result<_>>()?,
        })
    }

    /// Adds a row of NULLs to every call without rows.
    pub(super) fn pad(self, calls: usize) -> Result<Self> {
        let mut rows = self.calls.values().iter().copied().peekable();
        let mut padded = Vec::with_capacity(self.calls.len());
        let mut from = Vec::with_capacity(self.calls.len());
        let mut next = 0;
        for call in 0..u32::try_from(calls).unwrap_or(u32::MAX) {
            if rows.peek() != Some(&call) {
                padded.push(call);
                from.push(None);
            }
            while rows.next_if_eq(&call).is_some() {
                padded.push(call);
                from.push(Some(next));
                next += 1;
            }
        }
        if padded.len() == self.calls.len() {
            return Ok(self);
        }
        let from = UInt32Array::from(from);
        Ok(Self {
            calls: UInt32Array::from(padded),
            columns: self
                .columns
                .iter()
                .map(|column| Ok(take(column, &from, None)?))
                .collect::<Result<_>>()?,
        })
    }
}

impl Operator for Correlate {
    fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let rows = batch.rows();
        let context = self.context.eval(rows.num_rows(), self.watermark);
        let mut called = self.call(rows)?;
        if let Some(condition) = &self.condition {
            called = called.fulfilling(condition, rows, context)?;
        }
        if self.left {
            called = called.pad(batch.len())?;
        }
        called.emit(&batch, &self.schema, self.context.batch_size, out)
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        out.watermark(watermark)
    }
}

/// `nulls` of a column and of the rows that it is a field of.
fn both_valid(column: &ArrayRef, rows: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(rows) = rows.filter(|rows| rows.null_count() > 0) else {
        return Ok(Arc::clone(column));
    };
    let nulls = NullBuffer::union(column.logical_nulls().as_ref(), Some(rows));
    let data = column.to_data().into_builder().nulls(nulls).build()?;
    Ok(arrow::array::make_array(data))
}
