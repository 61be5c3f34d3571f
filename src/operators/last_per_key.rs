//! Mini-batch of operators that only remember the last row of a key: a bundle is folded to the last
//! row of each key before the operator sees it.
//!
//! The rows of a bundle come in the order in which their keys came first. A bundle ends when it is
//! full, and before everything that comes between batches, so that there is nothing to save.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};

use super::{Operator, StateSize};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::runtime::output::Output;
use crate::state::keys::{EncodedKeys, KeyEncoder};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// An operator behind a bundle.
pub struct LastPerKey<O> {
    operator: O,
    key: Vec<usize>,
    encoder: KeyEncoder,
    keys: EncodedKeys,
    /// Rows that end a bundle.
    size: usize,
    bundle: Vec<ChangeBatch>,
    rows: usize,
}

impl<O: Operator> LastPerKey<O> {
    /// Bundles of `size` rows in front of `operator`, whose input has the columns `schema` and
    /// remembers one row for each value of `key`.
    ///
    /// # Errors
    /// When a column cannot be a key.
    pub fn new(operator: O, schema: &Schema, key: &[usize], size: usize) -> Result<Self> {
        Ok(Self {
            operator,
            key: key.to_vec(),
            encoder: KeyEncoder::new(&schema.project(key).types())?,
            keys: EncodedKeys::default(),
            size: size.max(1),
            bundle: Vec::new(),
            rows: 0,
        })
    }

    /// The last row of each key of the bundle, which is empty afterwards.
    fn take(&mut self) -> Result<Option<ChangeBatch>> {
        self.rows = 0;
        let bundle = std::mem::take(&mut self.bundle);
        if bundle.is_empty() {
            return Ok(None);
        }
        let batch = ChangeBatch::concat(bundle)?;
        let columns = batch.rows().columns();
        let keys: Vec<ArrayRef> = self.key.iter().map(|c| Arc::clone(&columns[*c])).collect();
        self.encoder.encode(&keys, batch.len(), &mut self.keys)?;
        let (mut slots, mut fresh) = (Vec::new(), Vec::new());
        let mut table = self.encoder.table();
        table.intern(&self.keys, &mut slots, &mut fresh)?;
        // slots of a new table are numbered in the order of their keys
        let mut last = vec![0u32; table.slot_bound()];
        for (row, slot) in (0..).zip(&slots) {
            last[*slot as usize] = row;
        }
        Ok(Some(batch.take(&UInt32Array::from(last))?))
    }
}

impl<O: Operator> Operator for LastPerKey<O> {
    fn process(&mut self, port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let mut rest = batch;
        // bundles are as full as they may be, however the input is cut into batches
        while self.rows + rest.len() >= self.size {
            let fits = self.size - self.rows;
            self.bundle.push(rest.slice(0, fits));
            rest = rest.slice(fits, rest.len() - fits);
            if let Some(bundle) = self.take()? {
                self.operator.process(port, bundle, out)?;
            }
        }
        if !rest.is_empty() {
            self.rows += rest.len();
            self.bundle.push(rest);
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.operator.watermark(watermark, out)
    }

    fn end_input(&mut self, port: usize, out: &mut Output<'_>) -> Result<()> {
        self.operator.end_input(port, out)
    }

    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        if let Some(bundle) = self.take()? {
            self.operator.process(0, bundle, out)?;
        }
        self.operator.flush(out)
    }

    fn next_timer(&self) -> Option<i64> {
        self.operator.next_timer()
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        self.operator.processing_time(now_ms, out)
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        self.operator.snapshot()
    }

    fn restore(&mut self, state: RestoreState) -> Result<()> {
        self.operator.restore(state)
    }

    fn state_size(&self) -> StateSize {
        self.operator.state_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::changelog_normalize::{ChangelogNormalize, ChangelogNormalizeSpec};
    use crate::operators::testing::{Harness, schema};

    const COLUMNS: &str = "id INT NOT NULL, v INT";

    fn harness(size: usize) -> Harness {
        Harness::new(COLUMNS, COLUMNS, move |context| {
            let schema = schema(COLUMNS);
            let spec = ChangelogNormalizeSpec {
                schema: schema.clone(),
                key: vec![0],
                filter: None,
                generate_update_before: true,
                ttl_ms: None,
            };
            let operator = ChangelogNormalize::new(&spec, context)?;
            LastPerKey::new(operator, &schema, &spec.key, size)
        })
    }

    #[test]
    fn a_bundle_gives_one_change_a_key() {
        let script =
            "+U|1|1\n+U|2|1\n+U|1|2\n-D|2|\\N\n+U|3|1\n@flush\n+U|1|3\n+U|1|2\n+U|3|9\n@end";
        let expected = "+I[1, 2]\n+I[3, 1]\n-U[3, 1]\n+U[3, 9]";
        assert_eq!(harness(100).run(script).trim(), expected);
    }

    #[test]
    fn a_full_bundle_ends() {
        let script = "+U|1|1\n+U|1|2\n+U|1|3\n+U|1|4\n+U|1|5\n@end";
        let expected = "+I[1, 2]\n-U[1, 2]\n+U[1, 4]\n-U[1, 4]\n+U[1, 5]";
        assert_eq!(harness(2).run(script).trim(), expected);
    }
}
