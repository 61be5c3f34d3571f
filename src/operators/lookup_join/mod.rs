//! The lookup join: every row is joined with what a table holds for its key at that moment.
//! Stateless; kinds pass through.

mod cache;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use self::cache::Cache;
use super::correlate::CalledRows;
use super::join::JoinType;
use super::join::condition::{JoinCondition, LEFT};
use super::{Operator, OperatorContext};
use crate::changelog::{ChangeBatch, RowKind};
use crate::connectors::lookup::{LookedUp, Lookup, LookupSource};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::runtime::output::Output;
use crate::types::Schema;

/// What is remembered of former lookups: the options `lookup.partial-cache.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupCache {
    /// Rows that are remembered at most.
    pub max_rows: usize,
    /// How long a key is remembered after it was looked up, ms.
    pub expire_after_write_ms: Option<i64>,
    /// How long a key is remembered after it was last used, ms.
    pub expire_after_access_ms: Option<i64>,
    /// Whether it is remembered that a key has no rows.
    pub cache_missing_key: bool,
}

/// A lookup join.
#[derive(Debug, Clone)]
pub struct LookupJoinSpec {
    /// Inner or left.
    pub join_type: JoinType,
    /// Columns of the input.
    pub input: Schema,
    /// The table.
    pub source: Arc<dyn LookupSource>,
    /// For each physical column of the table that rows are found by: the value, over the input's
    /// columns, of the column's type.
    pub keys: Vec<(usize, Expr)>,
    /// The physical columns of the table that the result has.
    pub projection: Vec<usize>,
    /// The types of these columns.
    pub table: Schema,
    /// What else must hold of a pair, over the columns of the input, then those of the table.
    pub condition: Option<Expr>,
    /// What is remembered of former lookups.
    pub cache: Option<LookupCache>,
    /// Columns of the result: those of the input, then those of the table.
    pub output: Schema,
}

/// The operator.
pub struct LookupJoin {
    lookup: Box<dyn Lookup>,
    keys: Vec<Compiled>,
    cache: Option<Cache>,
    left: bool,
    condition: Option<JoinCondition>,
    schema: SchemaRef,
    context: OperatorContext,
    watermark: i64,
}

impl LookupJoin {
    /// An operator for `spec`.
    ///
    /// # Errors
    /// When an expression cannot be compiled or the table cannot be opened.
    pub fn new(spec: &LookupJoinSpec, context: &OperatorContext) -> Result<Self> {
        if !matches!(spec.join_type, JoinType::Inner | JoinType::Left) {
            return Err(Error::internal("a lookup join is inner or left"));
        }
        let environment = &context.environment;
        let columns: Vec<usize> = spec.keys.iter().map(|(column, _)| *column).collect();
        let keys = spec
            .keys
            .iter()
            .map(|(_, value)| Compiled::new(value, environment))
            .collect::<Result<_>>()?;
        let condition = spec
            .condition
            .as_ref()
            .map(|condition| JoinCondition::new(condition, &spec.input, &spec.table, environment))
            .transpose()?;
        let key_types: Vec<_> = spec.keys.iter().map(|(_, e)| e.data_type.clone()).collect();
        let cache = spec
            .cache
            .map(|cache| Cache::new(cache, &key_types, &spec.table))
            .transpose()?;
        Ok(Self {
            lookup: spec.source.open(&columns, &spec.projection)?,
            keys,
            cache,
            left: spec.join_type == JoinType::Left,
            condition,
            schema: spec.output.to_arrow(),
            context: context.clone(),
            watermark: i64::MIN,
        })
    }

    /// What the table holds for the rows, with the number of the row that each belongs to.
    fn look_up(&mut self, batch: &RecordBatch) -> Result<CalledRows> {
        let context = self.context.eval(batch.num_rows(), self.watermark);
        let keys = self
            .keys
            .iter()
            .map(|key| key.evaluate_array(batch, &context))
            .collect::<Result<Vec<_>>>()?;
        let nulls: Vec<_> = keys.iter().filter_map(|key| key.logical_nulls()).collect();
        let len = batch.num_rows();
        let complete = |row: u32| nulls.iter().all(|n| n.is_valid(row as usize));
        // NULL equals nothing.
        let rows: UInt32Array = (0..).take(len).filter(|row| complete(*row)).collect();
        let keys = match rows.len() == len {
            true => keys,
            false => keys
                .iter()
                .map(|key| Ok(take(key, &rows, None)?))
                .collect::<Result<Vec<ArrayRef>>>()?,
        };
        let now = context.now_ms;
        let found = match &mut self.cache {
            _ if rows.is_empty() => return Ok(nothing(&self.schema, batch.num_columns())),
            Some(cache) => cache.look_up(&keys, rows.len(), now, self.lookup.as_mut())?,
            None => self.lookup.lookup(&keys, rows.len(), now)?,
        };
        let LookedUp { keys, rows: table } = found;
        let calls = keys.values().iter().map(|key| rows.value(*key as usize));
        Ok(CalledRows {
            calls: calls.collect(),
            columns: table.columns().to_vec(),
        })
    }
}

/// No row of the table.
fn nothing(schema: &SchemaRef, inputs: usize) -> CalledRows {
    let fields = schema.fields().iter().skip(inputs);
    CalledRows {
        calls: UInt32Array::from(Vec::<u32>::new()),
        columns: fields
            .map(|field| arrow::array::new_empty_array(field.data_type()))
            .collect(),
    }
}

impl Operator for LookupJoin {
    fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let rows = batch.rows();
        let mut found = self.look_up(rows)?;
        if let Some(condition) = self.condition.as_ref().filter(|_| !found.calls.is_empty()) {
            let context = self.context.eval(found.calls.len(), self.watermark);
            let holds = condition.evaluate(&context, |port, column| match port {
                LEFT => Ok(take(rows.column(column), &found.calls, None)?),
                _ => Ok(Arc::clone(&found.columns[column])),
            })?;
            found = found.filter(&holds)?;
        }
        if self.left {
            found = found.pad(batch.len())?;
        }
        let CalledRows { calls, columns } = found;
        let options = RecordBatchOptions::new().with_row_count(Some(calls.len()));
        let columns = rows
            .columns()
            .iter()
            .map(|column| Ok(take(column, &calls, None)?))
            .chain(columns.into_iter().map(Ok))
            .collect::<Result<Vec<_>>>()?;
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let kinds: Vec<RowKind> = calls
            .values()
            .iter()
            .map(|i| batch.kind(*i as usize))
            .collect();
        out.emit(ChangeBatch::try_new(rows, kinds)?)
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        out.watermark(watermark)
    }
}
