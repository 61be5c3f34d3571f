//! The windows' rows as tables.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow::datatypes::UInt64Type;

use super::WindowJoin;
use crate::error::Result;
use crate::operators::join::tables::{ROWS, numbers, row_table, split_table, wrong_columns};
use crate::operators::time::rowtimes;
use crate::state::rows::RowId;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

const NAMES: [&str; 2] = ["left", "right"];

pub(super) fn save(join: &WindowJoin) -> Result<OperatorSnapshot> {
    let mut snapshot = OperatorSnapshot {
        watermark: (join.watermark > i64::MIN).then_some(join.watermark),
        ..OperatorSnapshot::default()
    };
    for (port, name) in NAMES.into_iter().enumerate() {
        let mut saved = Saved::default();
        for slot in join.keys.table.slots() {
            let state = &join.states[slot as usize];
            for window in &state.windows {
                for id in &window.sides[port] {
                    saved.ids.push(*id);
                    saved.windows.push(window.number);
                    saved.unmatchable.push(state.unmatchable);
                }
            }
            if saved.ids.len() >= ROWS {
                let table = std::mem::take(&mut saved).table(join, port)?;
                snapshot.add(name, join.keys.len(), table);
            }
        }
        snapshot.add(name, join.keys.len(), saved.table(join, port)?);
    }
    Ok(snapshot)
}

/// Rows of one side.
#[derive(Default)]
struct Saved {
    ids: Vec<u32>,
    windows: Vec<u64>,
    unmatchable: Vec<bool>,
}

impl Saved {
    fn table(self, join: &WindowJoin, port: usize) -> Result<RecordBatch> {
        let (side, input) = (&join.sides[port], join.input(port));
        let ids = self.ids.iter();
        let bytes: Vec<_> = ids.map(|id| side.rows.get(RowId(*id))).collect();
        let rows = side.codec.decode(&bytes)?;
        let meta: Vec<(&str, ArrayRef)> = vec![
            ("window", Arc::new(UInt64Array::from(self.windows))),
            (
                "unmatchable",
                Arc::new(BooleanArray::from(self.unmatchable)),
            ),
        ];
        row_table(&input.schema, &input.keys, &rows, meta)
    }
}

pub(super) fn restore(join: &mut WindowJoin, state: &RestoreState) -> Result<()> {
    join.watermark = state.watermark.unwrap_or(i64::MIN);
    for (port, name) in NAMES.into_iter().enumerate() {
        let schema = join.input(port).schema.clone();
        let window_end = join.input(port).window_end;
        for saved in state.batches(name) {
            let (rows, meta) = split_table(saved, join.keys.len(), &schema, 2)?;
            let number = numbers::<UInt64Type>(&meta[0])?;
            let unmatchable = meta[1].as_boolean_opt().ok_or_else(wrong_columns)?;
            join.intern(port, &rows)?;
            let ends = rowtimes(&rows, window_end)?;
            for (i, end) in ends.values().iter().enumerate() {
                let number = Some(number.value(i));
                join.add(port, i, *end, unmatchable.value(i), number);
            }
        }
    }
    Ok(())
}
