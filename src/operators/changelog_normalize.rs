//! `ChangelogNormalize`: makes a complete changelog of one that names keys only: updates get their
//! old rows, deletions their content, repetitions and deletions of unknown keys go.

use super::changes::Changes;
use super::last_rows::LastRows;
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::runtime::output::Output;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// How a changelog is normalized.
#[derive(Debug, Clone)]
pub struct ChangelogNormalizeSpec {
    /// Columns of input and output.
    pub schema: Schema,
    /// The key.
    pub key: Vec<usize>,
    /// Rows for which it is not true do not exist for the output.
    pub filter: Option<Expr>,
    /// Whether the reader wants `-U`.
    pub generate_update_before: bool,
    /// `table.exec.state.ttl`, ms.
    pub ttl_ms: Option<i64>,
}

/// The operator. State: the last row of each key that passes the filter.
#[derive(Debug)]
pub struct ChangelogNormalize {
    filter: Option<Compiled>,
    generate_update_before: bool,
    /// Without a time to live a row that says nothing new is not passed on.
    silent_repeats: bool,
    state: LastRows,
    changes: Changes,
    context: OperatorContext,
}

impl ChangelogNormalize {
    /// The operator for `spec`.
    ///
    /// # Errors
    /// When a type has no row form or the filter cannot be compiled.
    pub fn new(spec: &ChangelogNormalizeSpec, context: &OperatorContext) -> Result<Self> {
        let filter = spec.filter.as_ref();
        Ok(Self {
            filter: filter
                .map(|f| Compiled::new(f, &context.environment))
                .transpose()?,
            generate_update_before: spec.generate_update_before,
            silent_repeats: spec.ttl_ms.is_none(),
            state: LastRows::new(&spec.schema, &spec.key, spec.ttl_ms, context)?,
            changes: Changes::new(spec.schema.to_arrow()),
            context: context.clone(),
        })
    }

    fn add(&mut self, i: usize, passes: bool) {
        match (self.state.stored(i), passes) {
            (None, true) => self.changes.input(RowKind::Insert, i),
            (None, false) => return,
            (Some(old), true) => {
                if self.silent_repeats && old == self.state.bytes(i) {
                    return;
                }
                if self.generate_update_before {
                    self.changes.stored(RowKind::UpdateBefore, old);
                }
                self.changes.input(RowKind::UpdateAfter, i);
            }
            (Some(old), false) => {
                self.changes.stored(RowKind::Delete, old);
                self.state.clear(i);
                return;
            }
        }
        self.state.put(i);
    }

    fn withdraw(&mut self, i: usize) {
        match self.state.stored(i) {
            Some(old) => self.changes.stored(RowKind::Delete, old),
            None => return,
        }
        self.state.clear(i);
    }
}

impl Operator for ChangelogNormalize {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let rows = batch.rows();
        let passes = match &self.filter {
            Some(filter) => {
                let context = self.context.eval(batch.len(), i64::MIN);
                Some(filter.evaluate_predicate(rows, &context)?)
            }
            None => None,
        };
        self.state.begin(rows)?;
        for (i, kind) in batch.kinds().enumerate() {
            if kind.is_add() {
                self.add(i, passes.as_ref().is_none_or(|mask| mask.value(i)));
            } else {
                self.withdraw(i);
            }
        }
        self.state.finish();
        self.changes.emit(rows, self.state.codec(), out)
    }

    fn next_timer(&self) -> Option<i64> {
        self.state.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, _out: &mut Output<'_>) -> Result<()> {
        self.state.sweep(now_ms);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.state.snapshot(&mut snapshot);
        Ok(snapshot)
    }

    fn track_changes(&mut self) {
        self.state.track_changes();
    }

    fn changes(&mut self, previous_durable: bool) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        self.state.changes(previous_durable, &mut snapshot);
        Ok(snapshot)
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.state.restore(&state, |_, _, _| Ok(()))
    }

    fn state_size(&self) -> StateSize {
        self.state.state_size()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::expr::{CompareOp, ExprKind};
    use crate::operators::testing::{Harness, schema};
    use crate::types::TypeKind;

    const COLUMNS: &str = "id INT NOT NULL, s STRING, v INT";
    const SCRIPT: &str = "-D|9|\\N|\\N
        +U|1|a|10
        +U|1|a|10
        +I|1|b|20
        +U|2|c|\\N
        -D|1|\\N|\\N
        +U|2|c|5
        -D|2|zzz|99
        +I|2|d|1";

    fn harness(generate_update_before: bool) -> Harness {
        filtered(generate_update_before, None)
    }

    fn filtered(generate_update_before: bool, filter: Option<Expr>) -> Harness {
        Harness::new(COLUMNS, COLUMNS, move |context| {
            let spec = ChangelogNormalizeSpec {
                schema: schema(COLUMNS),
                key: vec![0],
                filter: filter.clone(),
                generate_update_before,
                ttl_ms: None,
            };
            ChangelogNormalize::new(&spec, context)
        })
    }

    #[test]
    fn updates_get_their_old_row_and_deletions_their_content() {
        harness(true).check(
            SCRIPT,
            "+I[1, a, 10]
             -U[1, a, 10]
             +U[1, b, 20]
             +I[2, c, null]
             -D[1, b, 20]
             -U[2, c, null]
             +U[2, c, 5]
             -D[2, c, 5]
             +I[2, d, 1]",
        );
    }

    #[test]
    fn old_rows_are_left_out_for_a_reader_that_knows_the_key() {
        harness(false).check(
            SCRIPT,
            "+I[1, a, 10]
             +U[1, b, 20]
             +I[2, c, null]
             -D[1, b, 20]
             +U[2, c, 5]
             -D[2, c, 5]
             +I[2, d, 1]",
        );
    }

    #[test]
    fn rows_that_a_filter_hides_come_and_go() {
        let int = TypeKind::Int.nullable();
        let filter = Expr::new(
            ExprKind::Compare {
                op: CompareOp::GtEq,
                left: Box::new(Expr::column(2, int.clone())),
                right: Box::new(Expr::literal(ScalarValue::Int32(Some(10)), int)),
            },
            TypeKind::Boolean.nullable(),
        );
        filtered(true, Some(filter)).check(
            "+U|1|a|10
             +I|1|a|5
             +U|1|a|7
             +U|1|a|30
             +U|1|a|30
             +U|1|b|30
             +U|1|b|3
             +U|2|b|30
             -D|2|b|\\N
             -D|1|b|\\N",
            "+I[1, a, 10]
             -D[1, a, 10]
             +I[1, a, 30]
             -U[1, a, 30]
             +U[1, b, 30]
             -D[1, b, 30]
             +I[2, b, 30]
             -D[2, b, 30]",
        );
    }

    #[test]
    fn what_has_expired_is_unknown() {
        Harness::new(COLUMNS, COLUMNS, move |context| {
            let spec = ChangelogNormalizeSpec {
                schema: schema(COLUMNS),
                key: vec![0],
                filter: None,
                generate_update_before: true,
                ttl_ms: Some(5000),
            };
            ChangelogNormalize::new(&spec, context)
        })
        .check(
            "+U|1|a|1
             +U|2|a|1
             @time 4000
             +U|1|a|1
             @time 5000
             +U|2|b|1
             -D|1|\\N|\\N
             +U|1|c|1
             @time 20000
             -D|1|\\N|\\N",
            "+I[1, a, 1]
             +I[2, a, 1]
             -U[1, a, 1]
             +U[1, a, 1]
             +I[2, b, 1]
             -D[1, a, 1]
             +I[1, c, 1]",
        );
    }
}
