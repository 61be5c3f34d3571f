//! The windows' rows as tables.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::UInt64Type;

use super::WindowJoin;
use crate::error::Result;
use crate::operators::join::keys::JoinKeys;
use crate::operators::join::tables::{ROWS, numbers, row_table, split_table, wrong_columns};
use crate::operators::time::rowtimes;
use crate::state::keys::{Changed, KeyBytes};
use crate::state::rows::RowId;
use crate::state::snapshot::{LazyBatch, OperatorSnapshot, RestoreState};

const NAMES: [&str; 2] = ["left", "right"];

/// Copies the rows of the join keys of `slots`.
pub(super) fn save(join: &WindowJoin, slots: &[u32]) -> OperatorSnapshot {
    let mut snapshot = OperatorSnapshot {
        watermark: (join.watermark > i64::MIN).then_some(join.watermark),
        ..OperatorSnapshot::default()
    };
    for port in 0..NAMES.len() {
        let mut copied = Copied::default();
        for slot in slots {
            let state = &join.states[*slot as usize];
            for window in &state.windows {
                for id in &window.sides[port] {
                    copied.rows.push(join.sides[port].rows.get(RowId(*id)));
                    copied.windows.push(window.number);
                    copied.unmatchable.push(state.unmatchable);
                }
            }
            if copied.windows.len() >= ROWS {
                copied.hand_over(join, port, &mut snapshot);
            }
        }
        copied.hand_over(join, port, &mut snapshot);
    }
    snapshot
}

/// Makes the tables of `snapshot` such of changes.
pub(super) fn mark(join: &WindowJoin, changed: &Changed, snapshot: &mut OperatorSnapshot) {
    let JoinKeys { table, encoder, .. } = &join.keys;
    for (port, name) in NAMES.into_iter().enumerate() {
        let is_vacant = |slot: u32| {
            let windows = &join.states[slot as usize].windows;
            windows.iter().all(|window| window.sides[port].is_empty())
        };
        changed.mark(snapshot, name, table, encoder, is_vacant);
    }
}

/// Rows of one side.
#[derive(Default)]
struct Copied {
    rows: KeyBytes,
    windows: Vec<u64>,
    unmatchable: Vec<bool>,
}

impl Copied {
    fn hand_over(&mut self, join: &WindowJoin, port: usize, snapshot: &mut OperatorSnapshot) {
        let copied = std::mem::take(self);
        if copied.windows.is_empty() {
            return;
        }
        let (codec, input) = (
            Arc::clone(&join.sides[port].codec),
            join.input(port).clone(),
        );
        let make = move || {
            let bytes: Vec<_> = copied.rows.iter().collect();
            let rows = codec.decode(&bytes)?;
            let windows = UInt64Array::from(copied.windows.clone());
            let unmatchable = BooleanArray::from(copied.unmatchable.clone());
            let meta: Vec<(&str, ArrayRef)> = vec![
                ("window", Arc::new(windows)),
                ("unmatchable", Arc::new(unmatchable)),
            ];
            row_table(&input.schema, &input.keys, &rows, meta)
        };
        snapshot.add_lazy(NAMES[port], join.keys.len(), LazyBatch::new(make));
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
