//! `Values`: a source of constant rows.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::changelog::ChangeBatch;
use crate::connectors::{SourcePoll, SourceReader, SourceReaderFactory, SplitPosition};
use crate::error::{Error, Result};

/// Makes readers of constant rows. Only subtask 0 reads.
#[derive(Debug, Clone)]
pub struct Values {
    rows: RecordBatch,
}

impl Values {
    /// A source of `rows`.
    #[must_use]
    pub fn new(rows: RecordBatch) -> Arc<Self> {
        Arc::new(Self { rows })
    }
}

const SPLIT: &str = "values";

impl SourceReaderFactory for Values {
    fn create(
        &self,
        subtask: usize,
        _parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let restored = restored.iter().find(|p| p.split == SPLIT);
        let next = match restored {
            Some(p) => p
                .position
                .parse()
                .map_err(|_| Error::checkpoint(format!("'{}' is no row number", p.position)))?,
            None => 0,
        };
        let rows = self.rows.clone();
        Ok(Box::new(ValuesReader {
            next: if subtask == 0 { next } else { rows.num_rows() },
            owns_split: subtask == 0,
            rows,
        }))
    }
}

struct ValuesReader {
    rows: RecordBatch,
    next: usize,
    owns_split: bool,
}

impl SourceReader for ValuesReader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        let left = self.rows.num_rows().saturating_sub(self.next);
        if left == 0 {
            return Ok(SourcePoll::End);
        }
        let count = left.min(max_rows.max(1));
        let rows = self.rows.slice(self.next, count);
        self.next += count;
        Ok(SourcePoll::Batch(ChangeBatch::inserts(rows)))
    }

    fn positions(&self) -> Vec<SplitPosition> {
        if !self.owns_split {
            return Vec::new();
        }
        vec![SplitPosition {
            split: SPLIT.to_string(),
            position: self.next.to_string(),
        }]
    }
}
