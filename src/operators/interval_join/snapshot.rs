//! The caches and timers as tables.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, UInt32Type, UInt64Type};

use super::{IntervalJoin, Timer};
use crate::error::{Error, Result};
use crate::state::rows::RowId;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};

const NAMES: [&str; 2] = ["left", "right"];

/// Rows per batch of a table.
const ROWS: usize = 8192;

pub(super) fn save(join: &IntervalJoin) -> Result<OperatorSnapshot> {
    let mut snapshot = OperatorSnapshot {
        watermark: (join.watermark > i64::MIN).then_some(join.watermark),
        ..OperatorSnapshot::default()
    };
    for (port, name) in NAMES.into_iter().enumerate() {
        let keys = join.input(port).keys.len();
        let mut saved = Saved::default();
        for slot in join.table.slots() {
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
    snapshot.add("timers", join.spec.left.keys.len(), timers(join)?);
    let expiration = join.sides.iter().map(|side| side.expiration);
    let columns: Vec<ArrayRef> = vec![Arc::new(expiration.collect::<Int64Array>())];
    let fields = vec![Field::new("expiration", DataType::Int64, false)];
    snapshot.add("expiration", 0, batch(fields, columns)?);
    Ok(snapshot)
}

fn batch(fields: Vec<Field>, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
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
        let row = cache.codec.decode(&bytes)?;
        let arrow = input.schema.to_arrow();
        let positions = || input.keys.iter().copied().chain(0..row.len());
        let mut fields: Vec<Field> = positions().map(|i| arrow.field(i).clone()).collect();
        let mut columns: Vec<ArrayRef> = positions().map(|i| Arc::clone(&row[i])).collect();
        let matched = self.ids.iter().map(|id| Some(cache.matched[*id as usize]));
        fields.push(Field::new("time", DataType::Int64, false));
        columns.push(Arc::new(Int64Array::from(self.times)));
        fields.push(Field::new("matched", DataType::Boolean, false));
        columns.push(Arc::new(matched.collect::<BooleanArray>()));
        fields.push(Field::new("buckets", DataType::UInt32, false));
        columns.push(Arc::new(UInt32Array::from(self.buckets)));
        batch(fields, columns)
    }
}

/// The timers that are set: join key, side, time and number.
fn timers(join: &IntervalJoin) -> Result<RecordBatch> {
    let set: Vec<&Timer> = join
        .timers
        .timers
        .iter()
        .filter(|t| join.sides[t.port].cache.key(t.slot).timer == t.time)
        .collect();
    let slots = set.iter().map(|t| t.slot);
    let mut columns = join.table.decode(&join.encoder, slots)?;
    let schema = &join.spec.left.schema;
    let mut fields: Vec<Field> = join
        .spec
        .left
        .keys
        .iter()
        .map(|i| {
            schema.columns[*i]
                .data_type
                .to_field(&schema.columns[*i].name)
        })
        .collect();
    let port = |t: &&Timer| u32::try_from(t.port).unwrap_or(0);
    fields.push(Field::new("side", DataType::UInt32, false));
    columns.push(Arc::new(set.iter().map(port).collect::<UInt32Array>()));
    fields.push(Field::new("time", DataType::Int64, false));
    columns.push(Arc::new(set.iter().map(|t| t.time).collect::<Int64Array>()));
    fields.push(Field::new("number", DataType::UInt64, false));
    columns.push(Arc::new(
        set.iter().map(|t| t.number).collect::<UInt64Array>(),
    ));
    batch(fields, columns)
}

pub(super) fn restore(join: &mut IntervalJoin, state: &RestoreState) -> Result<()> {
    join.watermark = state.watermark.unwrap_or(i64::MIN);
    let wrong = || Error::checkpoint("the saved rows of an interval join have other columns");
    for (port, name) in NAMES.into_iter().enumerate() {
        for saved in state.batches(name) {
            restore_rows(join, port, saved)?;
        }
    }
    for saved in state.batches("timers") {
        let keys = join.spec.left.keys.len();
        if saved.num_columns() != keys + 3 {
            return Err(wrong());
        }
        join.encoder
            .encode(&saved.columns()[..keys], saved.num_rows(), &mut join.keys)?;
        join.table
            .intern(&join.keys, &mut join.slots, &mut join.fresh)?;
        for side in &mut join.sides {
            side.cache.reserve_slots(join.table.slot_bound());
        }
        let side = saved.column(keys).as_primitive_opt::<UInt32Type>();
        let time = saved.column(keys + 1).as_primitive_opt::<Int64Type>();
        let number = saved.column(keys + 2).as_primitive_opt::<UInt64Type>();
        let (Some(side), Some(time), Some(number)) = (side, time, number) else {
            return Err(wrong());
        };
        for i in 0..saved.num_rows() {
            let (slot, time, number) = (join.slots[i], time.value(i), number.value(i));
            let port = usize::from(side.value(i) != 0);
            join.sides[port].cache.key_mut(slot).timer = time;
            join.timers.next = join.timers.next.max(number + 1);
            join.timers.timers.insert(Timer {
                time,
                number,
                slot,
                port,
            });
        }
    }
    for saved in state.batches("expiration") {
        let values = saved.column(0).as_primitive_opt::<Int64Type>();
        let values = values.filter(|v| v.values().len() == 2).ok_or_else(wrong)?;
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
    let wrong = || Error::checkpoint("the saved rows of an interval join have other columns");
    let keys = join.spec.null_safe.len();
    let columns = join.input(port).schema.len();
    if saved.num_columns() != keys + columns + 3 {
        return Err(wrong());
    }
    let rows = saved.project(&(keys..keys + columns).collect::<Vec<_>>())?;
    let meta = |i: usize| saved.column(keys + columns + i);
    let time = meta(0).as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
    let matched = meta(1).as_boolean_opt().ok_or_else(wrong)?;
    let buckets = meta(2).as_primitive_opt::<UInt32Type>().ok_or_else(wrong)?;
    join.intern(port, &rows)?;
    let cache = &mut join.sides[port].cache;
    cache
        .codec
        .encode(rows.columns(), rows.num_rows(), &mut join.rows)?;
    for i in 0..rows.num_rows() {
        cache.restore(
            join.slots[i],
            time.value(i),
            join.rows.get(i),
            matched.value(i),
            buckets.value(i),
        );
    }
    Ok(())
}
