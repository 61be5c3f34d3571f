//! `Calc`: a condition, then a projection. The kinds of rows stay as they are.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use super::{Operator, OperatorContext};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::runtime::output::Output;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// What is computed.
#[derive(Debug, Clone)]
pub struct CalcSpec {
    /// Only rows for which it is true pass.
    pub condition: Option<Expr>,
    /// The columns of the output.
    pub projection: Vec<Expr>,
    /// Their names and types.
    pub schema: Schema,
}

/// The operator. It remembers the watermark only, for `CURRENT_WATERMARK`.
#[derive(Debug)]
pub struct Calc {
    condition: Option<Compiled>,
    /// The input columns that the projection reads, which alone are filtered.
    read: Vec<usize>,
    /// Over the columns `read`.
    projection: Vec<Compiled>,
    may_fail: bool,
    schema: SchemaRef,
    watermark: i64,
    context: OperatorContext,
}

impl Calc {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When an expression cannot be compiled.
    pub fn new(spec: &CalcSpec, context: &OperatorContext) -> Result<Self> {
        let environment = &context.environment;
        let mut read: Vec<usize> = spec.projection.iter().flat_map(Expr::columns).collect();
        read.sort_unstable();
        read.dedup();
        let place = |column: usize| read.binary_search(&column).unwrap_or(column);
        let projection: Vec<_> = spec
            .projection
            .iter()
            .map(|e| Compiled::new(&e.clone().remap_columns(&place), environment))
            .collect::<Result<_>>()?;
        let condition = spec.condition.as_ref();
        let condition = condition
            .map(|c| Compiled::new(c, environment))
            .transpose()?;
        Ok(Self {
            may_fail: condition.iter().chain(&projection).any(Compiled::may_fail),
            condition,
            read,
            projection,
            schema: spec.schema.to_arrow(),
            watermark: i64::MIN,
            context: context.clone(),
        })
    }

    fn compute(&self, batch: &ChangeBatch) -> Result<ChangeBatch> {
        let rows = batch.rows();
        let mask = match &self.condition {
            Some(condition) => {
                let context = self.context.eval(batch.len(), self.watermark);
                Some(condition.evaluate_predicate(rows, &context)?)
            }
            None => None,
        };
        let batch = batch.with_rows(rows.project(&self.read)?)?;
        let batch = match mask {
            Some(mask) => batch.filter(&mask)?,
            None => batch,
        };
        let context = self.context.eval(batch.len(), self.watermark);
        let columns = self
            .projection
            .iter()
            .map(|e| e.evaluate_array(batch.rows(), &context))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.len()));
        let schema = Arc::clone(&self.schema);
        batch.with_rows(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    /// Emits the rows before the one that fails, then fails with its error.
    fn emit_until_failure(&self, batch: &ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        match self.compute(batch) {
            Ok(rows) => out.emit(rows),
            Err(_) if batch.len() > 1 => {
                let half = batch.len() / 2;
                self.emit_until_failure(&batch.slice(0, half), out)?;
                self.emit_until_failure(&batch.slice(half, batch.len() - half), out)
            }
            Err(error) => Err(error),
        }
    }
}

impl Operator for Calc {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        if self.may_fail {
            return self.emit_until_failure(&batch, out);
        }
        out.emit(self.compute(&batch)?)
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.watermark = watermark;
        out.watermark(watermark)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        Ok(OperatorSnapshot {
            watermark: Some(self.watermark),
            ..OperatorSnapshot::default()
        })
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.watermark = state.watermark.unwrap_or(i64::MIN);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::expr::{CastMode, CompareOp, ExprKind};
    use crate::operators::testing::{Harness, schema};
    use crate::types::TypeKind;

    #[test]
    fn rows_pass_or_not_and_keep_their_kinds() {
        let int = TypeKind::Int.nullable();
        let v = Expr::column(1, int.clone());
        let ten = Expr::literal(ScalarValue::Int32(Some(10)), int);
        let condition = Expr::new(
            ExprKind::Compare {
                op: CompareOp::GtEq,
                left: Box::new(v.clone()),
                right: Box::new(ten),
            },
            TypeKind::Boolean.nullable(),
        );
        let spec = CalcSpec {
            condition: Some(condition),
            projection: vec![Expr::column(2, TypeKind::STRING.nullable()), v],
            schema: schema("s STRING, v INT"),
        };
        Harness::new(
            "id INT, v INT, s STRING",
            "s STRING, v INT",
            move |context| Calc::new(&spec, context),
        )
        .check(
            "+I|1|10|a\n-U|1|10|a\n+U|1|9|b\n+I|2|\\N|c\n-D|3|11|\\N",
            "+I[a, 10]\n-U[a, 10]\n-D[null, 11]",
        );
    }

    #[test]
    fn rows_before_a_failure_are_emitted() {
        let cast = Expr::new(
            ExprKind::Cast {
                input: Box::new(Expr::column(0, TypeKind::STRING.nullable())),
                mode: CastMode::Strict,
            },
            TypeKind::Int.nullable(),
        );
        let spec = CalcSpec {
            condition: None,
            projection: vec![cast],
            schema: schema("v INT"),
        };
        let harness = Harness::new("s STRING", "v INT", move |context| {
            Calc::new(&spec, context)
        });
        let answer = harness.run("+I|1\n+I|2\n+I|3\n+I|x\n+I|5");
        assert!(answer.starts_with("+I[1]\n+I[2]\n+I[3]\nERROR"), "{answer}");
    }
}
