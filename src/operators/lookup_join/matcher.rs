//! What a lookup join does around the lookups: keys of the input's rows, and what of the rows that
//! were found belongs to them.

use arrow::array::{Array, ArrayRef, UInt32Array, new_empty_array};
use arrow::compute::{filter_record_batch, take};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::LookupJoinSpec;
use crate::changelog::ChangeBatch;
use crate::connectors::lookup::{LookedUp, Lookup};
use crate::error::Result;
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::operators::OperatorContext;
use crate::operators::correlate::CalledRows;
use crate::operators::join::JoinType;
use crate::operators::join::condition::JoinCondition;
use crate::runtime::output::Output;

/// The expressions of a lookup join.
pub(super) struct Matcher {
    keys: Vec<Compiled>,
    filter: Option<Compiled>,
    computed: Option<Vec<Compiled>>,
    pub(super) condition: Option<JoinCondition>,
    left: bool,
    schema: SchemaRef,
    /// Number of the input's columns.
    width: usize,
    context: OperatorContext,
    pub(super) watermark: i64,
}

/// The keys of a batch.
pub(super) struct Keys {
    /// The rows whose keys have no NULL.
    pub(super) rows: UInt32Array,
    /// Their key columns.
    pub(super) columns: Vec<ArrayRef>,
}

impl Matcher {
    pub(super) fn new(spec: &LookupJoinSpec, context: &OperatorContext) -> Result<Self> {
        let environment = &context.environment;
        let compiled = |e: &Expr| Compiled::new(e, environment);
        let keys = spec.table.keys.iter().map(|(_, value)| compiled(value));
        let computed = spec.table.computed.as_ref();
        let condition = spec.condition.as_ref();
        Ok(Self {
            keys: keys.collect::<Result<_>>()?,
            filter: spec.table.filter.as_ref().map(compiled).transpose()?,
            computed: computed
                .map(|exprs| exprs.iter().map(compiled).collect::<Result<_>>())
                .transpose()?,
            condition: condition
                .map(|c| JoinCondition::new(c, &spec.input, &spec.right, environment))
                .transpose()?,
            left: spec.join_type == JoinType::Left,
            schema: spec.output.to_arrow(),
            width: spec.input.len(),
            context: context.clone(),
            watermark: i64::MIN,
        })
    }

    /// The keys of a batch. NULL equals nothing: rows whose keys have one find none.
    pub(super) fn keys(&self, batch: &RecordBatch) -> Result<Keys> {
        let len = batch.num_rows();
        let context = self.context.eval(len, self.watermark);
        let keys = self
            .keys
            .iter()
            .map(|key| key.evaluate_array(batch, &context))
            .collect::<Result<Vec<_>>>()?;
        let nulls: Vec<_> = keys.iter().filter_map(|key| key.logical_nulls()).collect();
        let complete = |row: u32| nulls.iter().all(|n| n.is_valid(row as usize));
        let rows: UInt32Array = (0..).take(len).filter(|row| complete(*row)).collect();
        let columns = match rows.len() == len {
            true => keys,
            false => keys
                .iter()
                .map(|key| Ok(take(key, &rows, None)?))
                .collect::<Result<_>>()?,
        };
        Ok(Keys { rows, columns })
    }

    /// Of the rows that were found by the keys of `rows`, those that belong to a row of `batch`.
    pub(super) fn matches(
        &self,
        batch: &RecordBatch,
        rows: &UInt32Array,
        found: LookedUp,
    ) -> Result<CalledRows> {
        let context = self.context.eval(found.rows.num_rows(), self.watermark);
        let LookedUp { keys, rows: table } = found;
        let (keys, table) = match &self.filter {
            Some(filter) if table.num_rows() > 0 => {
                let holds = filter.evaluate_predicate(&table, &context)?;
                let keys = arrow::compute::filter(&keys, &holds)?;
                (
                    UInt32Array::from(keys.to_data()),
                    filter_record_batch(&table, &holds)?,
                )
            }
            _ => (keys, table),
        };
        let columns = match &self.computed {
            None => table.columns().to_vec(),
            Some(computed) => {
                let context = self.context.eval(table.num_rows(), self.watermark);
                computed
                    .iter()
                    .map(|e| e.evaluate_array(&table, &context))
                    .collect::<Result<_>>()?
            }
        };
        let calls = keys.values().iter().map(|key| rows.value(*key as usize));
        let called = CalledRows {
            calls: calls.collect(),
            columns,
        };
        match &self.condition {
            Some(condition) => called.fulfilling(condition, batch, context),
            None => Ok(called),
        }
    }

    /// No row of the table.
    pub(super) fn nothing(&self) -> CalledRows {
        let fields = self.schema.fields().iter().skip(self.width);
        CalledRows {
            calls: UInt32Array::from(Vec::<u32>::new()),
            columns: fields
                .map(|field| new_empty_array(field.data_type()))
                .collect(),
        }
    }

    /// What the table holds for the rows of a batch; for a left join at least a row of NULLs.
    pub(super) fn look_up(
        &self,
        batch: &ChangeBatch,
        lookup: &mut dyn Lookup,
    ) -> Result<CalledRows> {
        let keys = self.keys(batch.rows())?;
        let found = match keys.rows.is_empty() {
            true => self.nothing(),
            false => {
                let now = self.context.clock.now_ms();
                let found = lookup.lookup(&keys.columns, keys.rows.len(), now)?;
                self.matches(batch.rows(), &keys.rows, found)?
            }
        };
        self.padded(found, batch.len())
    }

    /// For a left join: with a row of NULLs for each of `rows` rows that has none.
    pub(super) fn padded(&self, found: CalledRows, rows: usize) -> Result<CalledRows> {
        match self.left {
            true => found.pad(rows),
            false => Ok(found),
        }
    }

    /// Emits what was found for a batch.
    pub(super) fn emit(
        &self,
        found: CalledRows,
        batch: &ChangeBatch,
        out: &mut Output<'_>,
    ) -> Result<()> {
        found.emit(batch, &self.schema, self.context.batch_size, out)
    }
}
