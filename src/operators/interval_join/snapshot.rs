//! The caches and timers as tables.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};

use super::IntervalJoin;
use crate::error::Result;
use crate::operators::join::tables::{ROWS, numbers, row_table, split_table, wrong_columns};
use crate::operators::join::timers::Timer;
use crate::state::rows::RowId;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

const NAMES: [&str; 2] = ["left", "right"];

pub(super) fn save(join: &IntervalJoin) -> Result<OperatorSnapshot> {
    let mut snapshot = OperatorSnapshot {
        watermark: (join.watermark > i64::MIN).then_some(join.watermark),
        ..OperatorSnapshot::default()
    };
    for (port, name) in NAMES.into_iter().enumerate() {
        let keys = join.input(port).keys.len();
        let mut saved = Saved::default();
        for slot in join.keys.table.slots() {
            let cache = &join.sides[port].cache;
            for entry in cache.entries(slot) {
                for id in &entry.rows {
                    saved.ids.push(*id);
                    saved.times.push(entry.time);
                    saved.buckets.push(cache.key(slot).buckets());
                }
            }
            if saved.ids.len() >= ROWS {
                snapshot.add(name, keys, std::mem::take(&mut saved).table(join, port)?);
            }
        }
        snapshot.add(name, keys, saved.table(join, port)?);
    }
    snapshot.add("timers", join.keys.len(), timers(join)?);
    let expiration = join.sides.iter().map(|side| side.expiration);
    let expiration: ArrayRef = Arc::new(expiration.collect::<Int64Array>());
    let table = RecordBatch::try_from_iter([("expiration", expiration)])?;
    snapshot.add("expiration", 0, table);
    Ok(snapshot)
}

/// Rows of a cache.
#[derive(Default)]
struct Saved {
    ids: Vec<u32>,
    times: Vec<i64>,
    buckets: Vec<u32>,
}

impl Saved {
    /// The join key, the row's columns, and what goes with the row.
    fn table(self, join: &IntervalJoin, port: usize) -> Result<RecordBatch> {
        let cache = &join.sides[port].cache;
        let input = join.input(port);
        let bytes: Vec<_> = self
            .ids
            .iter()
            .map(|id| cache.rows.get(RowId(*id)))
            .collect();
        let rows = cache.codec.decode(&bytes)?;
        let matched = self.ids.iter().map(|id| Some(cache.matched[*id as usize]));
        let meta: Vec<(&str, ArrayRef)> = vec![
            ("time", Arc::new(Int64Array::from(self.times))),
            ("matched", Arc::new(matched.collect::<BooleanArray>())),
            ("buckets", Arc::new(UInt32Array::from(self.buckets))),
        ];
        row_table(&input.schema, &input.keys, &rows, meta)
    }
}

/// The timers that are set: join key, side, time and number.
fn timers(join: &IntervalJoin) -> Result<RecordBatch> {
    let set: Vec<&Timer> = join
        .timers
        .iter()
        .filter(|t| join.sides[t.tag].cache.key(t.slot).timer == t.time)
        .collect();
    let slots = set.iter().map(|t| t.slot);
    let keys = join.keys.table.decode(&join.keys.encoder, slots)?;
    let port = |t: &&Timer| u32::try_from(t.tag).unwrap_or(0);
    let times = set.iter().map(|t| t.time);
    let numbers = set.iter().map(|t| t.number);
    let meta: Vec<(&str, ArrayRef)> = vec![
        (
            "side",
            Arc::new(set.iter().map(port).collect::<UInt32Array>()),
        ),
        ("time", Arc::new(times.collect::<Int64Array>())),
        ("number", Arc::new(numbers.collect::<UInt64Array>())),
    ];
    let left = &join.spec.left;
    row_table(&left.schema.project(&left.keys), &[], &keys, meta)
}

pub(super) fn restore(join: &mut IntervalJoin, state: &RestoreState) -> Result<()> {
    join.watermark = state.watermark.unwrap_or(i64::MIN);
    for (port, name) in NAMES.into_iter().enumerate() {
        for saved in state.batches(name) {
            restore_rows(join, port, saved)?;
        }
    }
    let left = join.spec.left.schema.project(&join.spec.left.keys);
    for saved in state.batches("timers") {
        let (keys, meta) = split_table(saved, 0, &left, 3)?;
        join.keys.intern_columns(keys.columns(), keys.num_rows())?;
        join.reserve_slots();
        let side = numbers::<UInt32Type>(&meta[0])?;
        let time = numbers::<Int64Type>(&meta[1])?;
        let number = numbers::<UInt64Type>(&meta[2])?;
        for i in 0..saved.num_rows() {
            let (slot, time, number) = (join.keys.slots[i], time.value(i), number.value(i));
            let port = usize::from(side.value(i) != 0);
            join.sides[port].cache.key_mut(slot).timer = time;
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
