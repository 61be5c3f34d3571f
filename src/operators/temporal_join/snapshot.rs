//! The keys' rows and timers as tables.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int8Array, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};

use super::state::{LeftRow, Version};
use super::{LEFT, TemporalJoin};
use crate::error::Result;
use crate::operators::changes::column_kinds;
use crate::operators::join::tables::{ROWS, numbers, row_table, split_table, wrong_columns};
use crate::operators::join::timers::Timer;
use crate::state::rows::RowId;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

pub(super) fn save(join: &TemporalJoin) -> Result<OperatorSnapshot> {
    let mut snapshot = OperatorSnapshot {
        watermark: (join.watermark > i64::MIN).then_some(join.watermark),
        ..OperatorSnapshot::default()
    };
    let keys = join.keys.len();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for slot in join.keys.table.slots() {
        let state = &join.states[slot as usize];
        left.extend_from_slice(&state.left);
        right.extend_from_slice(&state.right);
        if left.len() >= ROWS {
            snapshot.add("left", keys, left_table(join, &left)?);
            left.clear();
        }
        if right.len() >= ROWS {
            snapshot.add("right", keys, right_table(join, &right)?);
            right.clear();
        }
    }
    snapshot.add("left", keys, left_table(join, &left)?);
    snapshot.add("right", keys, right_table(join, &right)?);
    snapshot.add("timers", keys, timers(join)?);
    Ok(snapshot)
}

fn left_table(join: &TemporalJoin, rows: &[LeftRow]) -> Result<RecordBatch> {
    let bytes: Vec<_> = rows
        .iter()
        .map(|row| join.left.rows.get(RowId(row.id)))
        .collect();
    let columns = join.left.codec.decode(&bytes)?;
    let kinds = rows.iter().map(|row| row.kind as i8);
    let matchable = rows.iter().map(|row| Some(row.matchable));
    let meta: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(rows.iter().map(|row| row.time).collect::<Int64Array>()),
        ),
        ("kind", Arc::new(kinds.collect::<Int8Array>())),
        ("matchable", Arc::new(matchable.collect::<BooleanArray>())),
    ];
    let input = &join.spec.left;
    row_table(&input.schema, &input.keys, &columns, meta)
}

fn right_table(join: &TemporalJoin, versions: &[Version]) -> Result<RecordBatch> {
    let bytes: Vec<_> = versions
        .iter()
        .map(|version| join.right.rows.get(RowId(version.id)))
        .collect();
    let columns = join.right.codec.decode(&bytes)?;
    let times = versions.iter().map(|version| version.time);
    let present = versions.iter().map(|version| Some(version.present));
    let meta: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(times.collect::<Int64Array>())),
        ("present", Arc::new(present.collect::<BooleanArray>())),
    ];
    let input = &join.spec.right;
    row_table(&input.schema, &input.keys, &columns, meta)
}

/// The timers that are set: join key, whether it is one of processing time, time and number.
fn timers(join: &TemporalJoin) -> Result<RecordBatch> {
    let due = join
        .timers
        .iter()
        .filter(|t| join.states[t.slot as usize].timer == Some(t.time))
        .map(|t| (0, t));
    let cleanups = join
        .cleanups
        .iter()
        .filter(|t| join.states[t.slot as usize].cleanup == Some(t.time))
        .map(|t| (1, t));
    let set: Vec<(u32, &Timer)> = due.chain(cleanups).collect();
    let slots = set.iter().map(|(_, t)| t.slot);
    let keys = join.keys.table.decode(&join.keys.encoder, slots)?;
    let which = set.iter().map(|(which, _)| *which);
    let times = set.iter().map(|(_, t)| t.time);
    let numbers = set.iter().map(|(_, t)| t.number);
    let meta: Vec<(&str, ArrayRef)> = vec![
        ("cleanup", Arc::new(which.collect::<UInt32Array>())),
        ("time", Arc::new(times.collect::<Int64Array>())),
        ("number", Arc::new(numbers.collect::<UInt64Array>())),
    ];
    let left = &join.spec.left;
    row_table(&left.schema.project(&left.keys), &[], &keys, meta)
}

pub(super) fn restore(join: &mut TemporalJoin, state: &RestoreState) -> Result<()> {
    join.watermark = state.watermark.unwrap_or(i64::MIN);
    let keys = join.keys.len();
    let (left, right) = (
        join.spec.left.schema.clone(),
        join.spec.right.schema.clone(),
    );
    for saved in state.batches("left") {
        let (rows, meta) = split_table(saved, keys, &left, 3)?;
        let time = numbers::<Int64Type>(&meta[0])?;
        let kinds = column_kinds(&meta[1])?;
        let matchable = meta[2].as_boolean_opt().ok_or_else(wrong_columns)?;
        join.intern(LEFT, &rows)?;
        for (i, kind) in kinds.into_iter().enumerate() {
            let RowId(id) = join.left.rows.insert(join.rows.get(i));
            let state = &mut join.states[join.keys.slots[i] as usize];
            state.left.push(LeftRow {
                time: time.value(i),
                id,
                kind,
                matchable: matchable.value(i),
            });
        }
    }
    for saved in state.batches("right") {
        let (rows, meta) = split_table(saved, keys, &right, 2)?;
        let time = numbers::<Int64Type>(&meta[0])?;
        let present = meta[1].as_boolean_opt().ok_or_else(wrong_columns)?;
        join.intern(1, &rows)?;
        for i in 0..rows.num_rows() {
            let RowId(id) = join.right.rows.insert(join.rows.get(i));
            let state = &mut join.states[join.keys.slots[i] as usize];
            state.right.push(Version {
                time: time.value(i),
                id,
                present: present.value(i),
            });
        }
    }
    let key_schema = left.project(&join.spec.left.keys);
    for saved in state.batches("timers") {
        let (keys, meta) = split_table(saved, 0, &key_schema, 3)?;
        join.keys.intern_columns(keys.columns(), keys.num_rows())?;
        join.reserve_slots();
        let which = numbers::<UInt32Type>(&meta[0])?;
        let time = numbers::<Int64Type>(&meta[1])?;
        let number = numbers::<UInt64Type>(&meta[2])?;
        for i in 0..saved.num_rows() {
            let timer = Timer {
                time: time.value(i),
                number: number.value(i),
                slot: join.keys.slots[i],
                tag: 0,
            };
            let state = &mut join.states[timer.slot as usize];
            if which.value(i) == 0 {
                state.timer = Some(timer.time);
                join.timers.restore(timer);
            } else {
                state.cleanup = Some(timer.time);
                join.cleanups.restore(timer);
            }
        }
    }
    Ok(())
}
