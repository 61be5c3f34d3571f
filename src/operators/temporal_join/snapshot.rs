//! The keys' rows and timers as tables.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int8Array, Int64Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};

use super::state::{Due, LeftRow, Side, Version};
use super::{LEFT, TemporalJoin};
use crate::error::Result;
use crate::operators::changes::column_kinds;
use crate::operators::join::keys::JoinKeys;
use crate::operators::join::tables::{ROWS, numbers, row_table, split_table, wrong_columns};
use crate::operators::join::timers::Timer;
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{Changed, KeyBytes};
use crate::state::rows::RowId;
use crate::state::snapshot::{LazyBatch, OperatorSnapshot, RestoreState};

const LEFT_ROWS: &str = "left";
const VERSIONS: &str = "right";
const TIMERS: &str = "timers";

/// Copies what is known of the join keys of `slots`.
pub(super) fn save(join: &TemporalJoin, slots: &[u32]) -> OperatorSnapshot {
    let mut snapshot = OperatorSnapshot {
        watermark: (join.watermark > i64::MIN).then_some(join.watermark),
        ..OperatorSnapshot::default()
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for slot in slots {
        let state = &join.states[*slot as usize];
        left.extend_from_slice(&state.left);
        right.extend_from_slice(&state.right);
        if left.len() >= ROWS {
            copy_left(join, std::mem::take(&mut left), &mut snapshot);
        }
        if right.len() >= ROWS {
            copy_right(join, std::mem::take(&mut right), &mut snapshot);
        }
    }
    copy_left(join, left, &mut snapshot);
    copy_right(join, right, &mut snapshot);
    for slots in slots.chunks(ROWS) {
        copy_timers(join, slots, &mut snapshot);
    }
    snapshot
}

/// Makes the tables of `snapshot` such of changes.
pub(super) fn mark(join: &TemporalJoin, changed: &Changed, snapshot: &mut OperatorSnapshot) {
    let JoinKeys { table, encoder, .. } = &join.keys;
    let state = |slot: u32| &join.states[slot as usize];
    changed.mark(snapshot, LEFT_ROWS, table, encoder, |s| {
        state(s).left.is_empty()
    });
    changed.mark(snapshot, VERSIONS, table, encoder, |s| {
        state(s).right.is_empty()
    });
    changed.mark(snapshot, TIMERS, table, encoder, |s| {
        state(s).timer.is_none() && state(s).cleanup.is_none()
    });
}

/// The bytes of rows.
fn bytes(side: &Side, ids: impl Iterator<Item = u32>) -> KeyBytes {
    let mut bytes = KeyBytes::default();
    for id in ids {
        bytes.push(side.rows.get(RowId(id)));
    }
    bytes
}

fn copy_left(join: &TemporalJoin, rows: Vec<LeftRow>, snapshot: &mut OperatorSnapshot) {
    if rows.is_empty() {
        return;
    }
    let bytes = bytes(&join.left, rows.iter().map(|row| row.id));
    let codec = Arc::clone(&join.left.codec);
    let input = join.spec.left.clone();
    let make = move || {
        let columns = codec.decode(&bytes.iter().collect::<Vec<_>>())?;
        let times = rows.iter().map(|row| row.time);
        let kinds = rows.iter().map(|row| row.kind as i8);
        let matchable = rows.iter().map(|row| Some(row.matchable));
        let meta: Vec<(&str, ArrayRef)> = vec![
            ("time", Arc::new(times.collect::<Int64Array>())),
            ("kind", Arc::new(kinds.collect::<Int8Array>())),
            ("matchable", Arc::new(matchable.collect::<BooleanArray>())),
        ];
        row_table(&input.schema, &input.keys, &columns, meta)
    };
    snapshot.add_lazy(LEFT_ROWS, join.keys.len(), LazyBatch::new(make));
}

fn copy_right(join: &TemporalJoin, versions: Vec<Version>, snapshot: &mut OperatorSnapshot) {
    if versions.is_empty() {
        return;
    }
    let bytes = bytes(&join.right, versions.iter().map(|version| version.id));
    let codec = Arc::clone(&join.right.codec);
    let input = join.spec.right.clone();
    let make = move || {
        let columns = codec.decode(&bytes.iter().collect::<Vec<_>>())?;
        let times = versions.iter().map(|version| version.time);
        let present = versions.iter().map(|version| Some(version.present));
        let meta: Vec<(&str, ArrayRef)> = vec![
            ("time", Arc::new(times.collect::<Int64Array>())),
            ("present", Arc::new(present.collect::<BooleanArray>())),
        ];
        row_table(&input.schema, &input.keys, &columns, meta)
    };
    snapshot.add_lazy(VERSIONS, join.keys.len(), LazyBatch::new(make));
}

/// Copies the timers of join keys: the key, whether it is one of processing time, time and number.
fn copy_timers(join: &TemporalJoin, slots: &[u32], snapshot: &mut OperatorSnapshot) {
    let mut keys = KeyBytes::default();
    let (mut cleanup, mut times, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for slot in slots {
        let state = &join.states[*slot as usize];
        for (which, due) in (0..).zip([state.timer, state.cleanup]) {
            if let Some(due) = due {
                keys.push(join.keys.table.key_bytes(*slot));
                cleanup.push(which);
                times.push(due.time);
                numbers.push(due.number);
            }
        }
    }
    if keys.is_empty() {
        return;
    }
    let columns: Vec<(String, ArrayRef)> = vec![
        ("cleanup".into(), Arc::new(UInt32Array::from(cleanup))),
        ("time".into(), Arc::new(Int64Array::from(times))),
        ("number".into(), Arc::new(UInt64Array::from(numbers))),
    ];
    let rows = keyed_rows(&join.keys.encoder, keys, columns);
    snapshot.add_lazy(TIMERS, join.keys.len(), rows);
}

pub(super) fn restore(join: &mut TemporalJoin, state: &RestoreState) -> Result<()> {
    join.watermark = state.watermark.unwrap_or(i64::MIN);
    let keys = join.keys.len();
    let (left, right) = (
        join.spec.left.schema.clone(),
        join.spec.right.schema.clone(),
    );
    for saved in state.batches(LEFT_ROWS) {
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
    for saved in state.batches(VERSIONS) {
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
    for saved in state.batches(TIMERS) {
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
            let due = Some(Due {
                time: timer.time,
                number: timer.number,
            });
            if which.value(i) == 0 {
                state.timer = due;
                join.timers.restore(timer);
            } else {
                state.cleanup = due;
                join.cleanups.restore(timer);
            }
        }
    }
    Ok(())
}
