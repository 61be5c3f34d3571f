//! From a checkpoint to the subtasks of a job that may have another parallelism.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;

use super::SubtaskSnapshot;
use crate::connectors::SplitPosition;
use crate::error::{Error, Result};
use crate::state::key_group::{key_groups, owner};
use crate::state::snapshot::{Part, RestoreState};

/// The lowest watermark of all subtasks; `None` if one has none.
#[must_use]
pub fn lowest(
    saved: &[SubtaskSnapshot],
    watermark: impl Fn(&SubtaskSnapshot) -> Option<i64>,
) -> Option<i64> {
    let open = saved.iter().filter(|s| !s.ended);
    let watermarks: Option<Vec<i64>> = open.map(watermark).collect();
    watermarks?.into_iter().min()
}

/// All positions of a source.
#[must_use]
pub fn positions(saved: &[SubtaskSnapshot]) -> Vec<SplitPosition> {
    saved.iter().flat_map(|s| s.positions.clone()).collect()
}

/// The states of former writers that subtask `subtask` of `parallelism` takes up.
#[must_use]
pub fn writer_states(
    saved: &[SubtaskSnapshot],
    subtask: usize,
    parallelism: usize,
) -> Vec<Vec<u8>> {
    let own = saved.iter().skip(subtask).step_by(parallelism.max(1));
    let states = own.map(|s| s.writer.clone());
    states.filter(|state| !state.is_empty()).collect()
}

/// The state that subtask `subtask` of `parallelism` takes up: rows of its key groups, and all rows
/// of tables without a key.
///
/// # Errors
/// When a key column has a type that is no key.
pub fn operator_state(
    saved: &[SubtaskSnapshot],
    subtask: usize,
    parallelism: usize,
    max_parallelism: u16,
) -> Result<RestoreState> {
    let mut state = RestoreState {
        tables: BTreeMap::new(),
        watermark: lowest(saved, |s| s.operator.watermark),
    };
    for (name, table) in saved.iter().flat_map(|s| &s.operator.tables) {
        if !matches!(table.part, Part::Whole) {
            return Err(Error::internal(
                "a checkpoint holds only the changes of a table",
            ));
        }
        let own = state.tables.entry(name.clone()).or_default();
        for batch in &table.batches {
            let mut batch = batch.get()?;
            if table.keys > 0 && parallelism > 1 {
                batch = of_subtask(&batch, table.keys, subtask, parallelism, max_parallelism)?;
            }
            if batch.num_rows() > 0 {
                own.push(batch);
            }
        }
    }
    state.tables.retain(|_, batches| !batches.is_empty());
    Ok(state)
}

fn of_subtask(
    batch: &RecordBatch,
    keys: usize,
    subtask: usize,
    parallelism: usize,
    max_parallelism: u16,
) -> Result<RecordBatch> {
    let columns: Vec<_> = batch.columns()[..keys].iter().map(Arc::clone).collect();
    let groups = key_groups(&columns, batch.num_rows(), max_parallelism)?;
    let own = |group: &u16| owner(*group, parallelism, max_parallelism) == subtask;
    let own: BooleanArray = groups.iter().map(|g| Some(own(g))).collect();
    Ok(filter_record_batch(batch, &own)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::state::snapshot::OperatorSnapshot;

    fn table(values: &[i64]) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        RecordBatch::try_from_iter([("k", column)]).unwrap()
    }

    fn snapshot(keyed: &[i64], everywhere: &[i64], watermark: i64) -> SubtaskSnapshot {
        let mut operator = OperatorSnapshot::default();
        operator.add("keyed", 1, table(keyed));
        operator.add("everywhere", 0, table(everywhere));
        operator.watermark = Some(watermark);
        SubtaskSnapshot {
            operator,
            ..SubtaskSnapshot::default()
        }
    }

    fn values(state: &RestoreState, name: &str) -> Vec<i64> {
        let batches = state.batches(name).iter();
        batches
            .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect()
    }

    #[test]
    fn every_key_goes_to_one_subtask_and_the_rest_to_all() {
        let all: Vec<i64> = (0..100).collect();
        let saved = [snapshot(&all[..40], &[7], 5), snapshot(&all[40..], &[8], 3)];
        let mut keyed = Vec::new();
        for subtask in 0..3 {
            let state = operator_state(&saved, subtask, 3, 128).unwrap();
            assert_eq!(values(&state, "everywhere"), [7, 8]);
            assert_eq!(state.watermark, Some(3));
            let own = values(&state, "keyed");
            assert!(!own.is_empty() && own.is_sorted());
            keyed.extend(own);
        }
        keyed.sort_unstable();
        assert_eq!(keyed, all);
    }

    #[test]
    fn writers_share_the_states_of_more_writers() {
        let saved: Vec<_> = (1..=4)
            .map(|i| SubtaskSnapshot {
                writer: vec![i],
                ..SubtaskSnapshot::default()
            })
            .collect();
        assert_eq!(writer_states(&saved, 0, 3), [[1], [4]]);
        assert_eq!(writer_states(&saved, 2, 3), [[3]]);
        assert_eq!(writer_states(&saved[..1], 1, 3), Vec::<Vec<u8>>::new());
    }
}
