//! Looks at what leaves a vertex and fails the job when it breaks the contract of the edge: wrong
//! column types, kinds that its changelog mode excludes, a watermark that does not rise, and, where
//! asked for, a withdrawal of a row that is not there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::row::{RowConverter, SortField};
use arrow::util::display::array_value_to_string;

use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::{Error, Result};
use crate::graph::{Vertex, VertexKind};

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeChecks {
    /// Nothing.
    Off,
    /// Types, kinds and watermarks.
    Cheap,
    /// Withdrawals too, by a copy of all rows. Wrong below state that expires; ends by itself when a
    /// source withdraws what it never sent.
    Withdrawals,
}

impl Default for EdgeChecks {
    fn default() -> Self {
        if cfg!(debug_assertions) {
            Self::Withdrawals
        } else {
            Self::Off
        }
    }
}

/// Checks the output of one subtask.
pub(super) struct EdgeChecker {
    schema: arrow::datatypes::SchemaRef,
    mode: Option<ChangelogMode>,
    rows: Option<Rows>,
    may_be_inconsistent: bool,
    /// Shared by all checkers of a job: a source has withdrawn what it never sent.
    inconsistent: Arc<AtomicBool>,
}

/// How often each row is there.
struct Rows {
    converter: RowConverter,
    counts: BTreeMap<Box<[u8]>, usize>,
}

impl EdgeChecker {
    /// The checker of a subtask of `vertex`; `inconsistent` is the same for all of a job.
    pub(super) fn new(
        vertex: &Vertex,
        checks: EdgeChecks,
        inconsistent: &Arc<AtomicBool>,
    ) -> Option<Self> {
        if checks == EdgeChecks::Off {
            return None;
        }
        let schema = vertex.schema.to_arrow();
        let retracts = vertex
            .mode
            .is_some_and(|m| !m.is_append() && !m.is_upsert());
        let rows = (checks == EdgeChecks::Withdrawals && retracts).then(|| {
            let fields = schema.fields().iter();
            let fields = fields
                .map(|f| SortField::new(f.data_type().clone()))
                .collect();
            // Columns that have no row form (maps) leave the rows unchecked.
            let converter = RowConverter::new(fields).ok()?;
            Some(Rows {
                converter,
                counts: BTreeMap::new(),
            })
        });
        Some(Self {
            schema,
            mode: vertex.mode,
            rows: rows.flatten(),
            // a table that is looked up may hold other rows when a row is withdrawn
            may_be_inconsistent: matches!(vertex.kind, VertexKind::Source(_))
                || vertex.name == "LookupJoin",
            inconsistent: Arc::clone(inconsistent),
        })
    }

    pub(super) fn batch(&mut self, batch: &ChangeBatch) -> Result<()> {
        let actual = batch.schema();
        let fields = self.schema.fields();
        let same_type = |i: usize| {
            let (expected, actual) = (fields[i].data_type(), actual.field(i).data_type());
            expected.equals_datatype(actual)
        };
        if actual.fields().len() != fields.len() || !(0..fields.len()).all(same_type) {
            return Err(Error::internal(format!(
                "a batch has columns {actual:?}, declared are {:?}",
                self.schema
            )));
        }
        if let Some(mode) = self.mode
            && let Some(kind) = batch.kinds().find(|k| !mode.contains(*k))
        {
            return Err(Error::internal(format!(
                "a row of kind {kind} where the changelog mode is {mode}"
            )));
        }
        self.check_rows(batch)
    }

    fn check_rows(&mut self, batch: &ChangeBatch) -> Result<()> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let checked = rows.apply(batch);
        if checked.is_err() && self.may_be_inconsistent {
            self.inconsistent.store(true, Ordering::SeqCst);
        }
        if self.inconsistent.load(Ordering::SeqCst) {
            self.rows = None;
            return Ok(());
        }
        checked
    }

    pub(super) fn watermark(last: i64, watermark: i64) -> Result<()> {
        if watermark > last {
            Ok(())
        } else {
            Err(Error::internal(format!(
                "the watermark {watermark} follows {last}"
            )))
        }
    }
}

impl Rows {
    fn apply(&mut self, batch: &ChangeBatch) -> Result<()> {
        let keys = self.converter.convert_columns(batch.rows().columns())?;
        for (row, key) in keys.iter().enumerate() {
            let kind = batch.kind(row);
            match self.counts.entry(key.as_ref().into()) {
                Entry::Occupied(mut there) if kind.is_add() => *there.get_mut() += 1,
                Entry::Occupied(mut there) if *there.get() > 1 => *there.get_mut() -= 1,
                Entry::Occupied(there) => {
                    there.remove();
                }
                Entry::Vacant(absent) if kind.is_add() => {
                    absent.insert(1);
                }
                Entry::Vacant(_) => {
                    return Err(Error::internal(format!(
                        "{kind}[{}] withdraws a row that is not there",
                        text(batch.rows(), row)
                    )));
                }
            }
        }
        Ok(())
    }
}

fn text(rows: &RecordBatch, row: usize) -> String {
    let mut text = String::new();
    for (i, column) in rows.columns().iter().enumerate() {
        let value = if column.is_null(row) {
            "NULL".to_string()
        } else {
            array_value_to_string(column, row).unwrap_or_default()
        };
        let _ = write!(text, "{}{value}", if i > 0 { ", " } else { "" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changelog::RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
    use crate::runtime::testing::{Builder, Pass, Row, batch, operator, source};

    fn checker(kind: VertexKind, mode: ChangelogMode, shared: &Arc<AtomicBool>) -> EdgeChecker {
        let mut vertex = Builder::new("V", kind).0;
        vertex.mode = Some(mode);
        EdgeChecker::new(&vertex, EdgeChecks::Withdrawals, shared).unwrap()
    }

    fn check(mode: ChangelogMode, rows: &[Row]) -> Result<()> {
        let kind = operator(|| Pass { tag: false });
        checker(kind, mode, &Arc::default()).batch(&batch(rows))
    }

    #[test]
    fn an_inconsistent_source_ends_the_check_of_withdrawals() {
        let rows = batch(&[(Delete, vec![1])]);
        let shared = Arc::default();
        let checker = |kind| checker(kind, ChangelogMode::RETRACT, &shared);
        let mut behind = checker(operator(|| Pass { tag: false }));
        assert!(behind.batch(&rows).is_err());
        checker(source(Vec::new())).batch(&rows).unwrap();
        behind.batch(&rows).unwrap();
    }

    #[test]
    fn a_withdrawal_of_a_row_that_is_there_passes() {
        let rows = [
            (Insert, vec![1]),
            (Insert, vec![1]),
            (UpdateBefore, vec![1]),
            (UpdateAfter, vec![2]),
            (Delete, vec![1]),
            (Delete, vec![2]),
        ];
        check(ChangelogMode::RETRACT, &rows).unwrap();
    }

    #[test]
    fn a_withdrawal_of_a_row_that_is_not_there_is_found() {
        let rows = [(Insert, vec![1]), (Delete, vec![1]), (Delete, vec![1])];
        let error = check(ChangelogMode::RETRACT, &rows).unwrap_err();
        assert!(error.to_string().contains("-D[1] withdraws"), "{error}");
        check(ChangelogMode::UPSERT, &rows).unwrap();
    }

    #[test]
    fn kinds_and_types_must_be_those_declared() {
        let error = check(ChangelogMode::APPEND, &[(UpdateAfter, vec![1])]).unwrap_err();
        assert!(error.to_string().contains("+U where"), "{error}");
        let error = check(ChangelogMode::APPEND, &[(Insert, vec![1, 2])]).unwrap_err();
        assert!(error.to_string().contains("columns"), "{error}");
    }

    #[test]
    fn watermarks_must_rise() {
        assert!(EdgeChecker::watermark(5, 6).is_ok());
        assert!(EdgeChecker::watermark(5, 5).is_err());
    }
}
