//! The caches and timers as tables.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};

use super::{IntervalJoin, is_set};
use crate::error::Result;
use crate::operators::join::keys::JoinKeys;
use crate::operators::join::tables::{ROWS, numbers, row_table, split_table, wrong_columns};
use crate::operators::join::timers::Timer;
use crate::state::keyed_rows::keyed_rows;
use crate::state::keys::{Changed, KeyBytes};
use crate::state::rows::RowId;
use crate::state::snapshot::{LazyBatch, OperatorSnapshot, RestoreState};

const NAMES: [&str; 2] = ["left", "right"];
const TIMERS: &str = "timers";

/// Copies what is known of the join keys of `slots`.
pub(super) fn save(join: &IntervalJoin, slots: &[u32]) -> Result<OperatorSnapshot> {
    let mut snapshot = OperatorSnapshot {
        watermark: (join.watermark > i64::MIN).then_some(join.watermark),
        ..OperatorSnapshot::default()
    };
    for port in 0..NAMES.len() {
        let cache = &join.sides[port].cache;
        let mut copied = Copied::default();
        for slot in slots {
            let buckets = cache.key(*slot).buckets();
            for entry in cache.entries(*slot) {
                for id in &entry.rows {
                    copied.rows.push(cache.rows.get(RowId(*id)));
                    copied.times.push(entry.time);
                    copied.matched.push(cache.matched[*id as usize]);
                    copied.buckets.push(buckets);
                }
            }
            if copied.times.len() >= ROWS {
                copied.hand_over(join, port, &mut snapshot);
            }
        }
        copied.hand_over(join, port, &mut snapshot);
    }
    for slots in slots.chunks(ROWS) {
        copy_timers(join, slots, &mut snapshot);
    }
    let expiration = join.sides.iter().map(|side| side.expiration);
    let expiration: ArrayRef = Arc::new(expiration.collect::<Int64Array>());
    let table = RecordBatch::try_from_iter([("expiration", expiration)])?;
    snapshot.add("expiration", 0, table);
    Ok(snapshot)
}

/// Makes the tables of `snapshot` such of changes.
pub(super) fn mark(join: &IntervalJoin, changed: &Changed, snapshot: &mut OperatorSnapshot) {
    let JoinKeys { table, encoder, .. } = &join.keys;
    let key = |port: usize, slot: u32| join.sides[port].cache.key(slot);
    for (port, name) in NAMES.into_iter().enumerate() {
        let is_vacant = |slot: u32| key(port, slot).times.is_empty();
        changed.mark(snapshot, name, table, encoder, is_vacant);
    }
    let has_none = |slot: u32| (0..NAMES.len()).all(|port| !is_set(key(port, slot).timer));
    changed.mark(snapshot, TIMERS, table, encoder, has_none);
}

/// Rows of a cache.
#[derive(Default)]
struct Copied {
    rows: KeyBytes,
    times: Vec<i64>,
    matched: Vec<bool>,
    buckets: Vec<u32>,
}

impl Copied {
    /// Adds to a table: the join key, the row's columns, and what goes with the row.
    fn hand_over(&mut self, join: &IntervalJoin, port: usize, snapshot: &mut OperatorSnapshot) {
        let copied = std::mem::take(self);
        if copied.times.is_empty() {
            return;
        }
        let codec = Arc::clone(&join.sides[port].cache.codec);
        let input = join.input(port).clone();
        let make = move || {
            let bytes: Vec<_> = copied.rows.iter().collect();
            let rows = codec.decode(&bytes)?;
            let matched = BooleanArray::from(copied.matched.clone());
            let meta: Vec<(&str, ArrayRef)> = vec![
                ("time", Arc::new(Int64Array::from(copied.times.clone()))),
                ("matched", Arc::new(matched)),
                (
                    "buckets",
                    Arc::new(UInt32Array::from(copied.buckets.clone())),
                ),
            ];
            row_table(&input.schema, &input.keys, &rows, meta)
        };
        snapshot.add_lazy(NAMES[port], join.keys.len(), LazyBatch::new(make));
    }
}

/// Copies the timers of join keys: the key, side, time and number.
fn copy_timers(join: &IntervalJoin, slots: &[u32], snapshot: &mut OperatorSnapshot) {
    let mut keys = KeyBytes::default();
    let (mut sides, mut times, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for slot in slots {
        for (port, side) in (0..).zip(&join.sides) {
            let key = side.cache.key(*slot);
            if is_set(key.timer) {
                keys.push(join.keys.table.key_bytes(*slot));
                sides.push(port);
                times.push(key.timer);
                numbers.push(key.timer_number);
            }
        }
    }
    if keys.is_empty() {
        return;
    }
    let columns: Vec<(String, ArrayRef)> = vec![
        ("side".into(), Arc::new(UInt32Array::from(sides))),
        ("time".into(), Arc::new(Int64Array::from(times))),
        ("number".into(), Arc::new(UInt64Array::from(numbers))),
    ];
    let rows = keyed_rows(&join.keys.encoder, keys, columns);
    snapshot.add_lazy(TIMERS, join.keys.len(), rows);
}

pub(super) fn restore(join: &mut IntervalJoin, state: &RestoreState) -> Result<()> {
    join.watermark = state.watermark.unwrap_or(i64::MIN);
    for (port, name) in NAMES.into_iter().enumerate() {
        for saved in state.batches(name) {
            restore_rows(join, port, saved)?;
        }
    }
    let left = join.spec.left.schema.project(&join.spec.left.keys);
    for saved in state.batches(TIMERS) {
        let (keys, meta) = split_table(saved, 0, &left, 3)?;
        join.keys.intern_columns(keys.columns(), keys.num_rows())?;
        join.reserve_slots();
        let side = numbers::<UInt32Type>(&meta[0])?;
        let time = numbers::<Int64Type>(&meta[1])?;
        let number = numbers::<UInt64Type>(&meta[2])?;
        for i in 0..saved.num_rows() {
            let (slot, time, number) = (join.keys.slots[i], time.value(i), number.value(i));
            let port = usize::from(side.value(i) != 0);
            let key = join.sides[port].cache.key_mut(slot);
            (key.timer, key.timer_number) = (time, number);
            join.timers.restore(Timer {
                time,
                number,
                slot,
                tag: port,
            });
        }
    }
    for saved in state.batches("expiration") {
        let values = numbers::<Int64Type>(saved.column(0))?;
        for (side, value) in join.sides.iter_mut().zip(values.values()) {
            // Of several former subtasks the one that is behind.
            side.expiration = match side.expiration {
                i64::MIN => *value,
                expiration => expiration.min(*value),
            };
        }
    }
    Ok(())
}

fn restore_rows(join: &mut IntervalJoin, port: usize, saved: &RecordBatch) -> Result<()> {
    let schema = join.input(port).schema.clone();
    let (rows, meta) = split_table(saved, join.keys.len(), &schema, 3)?;
    let time = numbers::<Int64Type>(&meta[0])?;
    let matched = meta[1].as_boolean_opt().ok_or_else(wrong_columns)?;
    let buckets = numbers::<UInt32Type>(&meta[2])?;
    join.intern(port, &rows)?;
    let cache = &mut join.sides[port].cache;
    cache
        .codec
        .encode(rows.columns(), rows.num_rows(), &mut join.rows)?;
    for i in 0..rows.num_rows() {
        cache.restore(
            join.keys.slots[i],
            time.value(i),
            join.rows.get(i),
            matched.value(i),
            buckets.value(i),
        );
    }
    Ok(())
}
