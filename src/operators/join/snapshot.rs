//! A side's state as a table: the join key, the row's columns, and what goes with the row.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, UInt32Type};

use super::JoinInput;
use super::side::{RowMeta, Side};
use crate::error::{Error, Result};
use crate::state::keys::KeyTable;
use crate::state::rows::RowId;
use crate::state::snapshot::OperatorSnapshot;

/// Rows per batch of a table.
const ROWS: usize = 8192;

/// Columns behind those of the row.
const META: usize = 4;

/// Writes the rows of `side` as table `name`, join key by join key.
pub(super) fn save(
    name: &str,
    side: &Side,
    input: &JoinInput,
    keys: &KeyTable,
    snapshot: &mut OperatorSnapshot,
) -> Result<()> {
    let mut ids = Vec::new();
    let mut metas = Vec::new();
    for slot in keys.slots() {
        side.rows_of(slot, |id, meta| {
            ids.push(id);
            metas.push(meta);
        });
        if ids.len() >= ROWS {
            snapshot.add(name, input.keys.len(), table(side, input, &ids, &metas)?);
            ids.clear();
            metas.clear();
        }
    }
    snapshot.add(name, input.keys.len(), table(side, input, &ids, &metas)?);
    Ok(())
}

fn table(side: &Side, input: &JoinInput, ids: &[u32], metas: &[RowMeta]) -> Result<RecordBatch> {
    let bytes: Vec<_> = ids.iter().map(|id| side.rows.get(RowId(*id))).collect();
    let row = side.codec.decode(&bytes)?;
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    let arrow = input.schema.to_arrow();
    let positions = input.keys.iter().copied().chain(0..arrow.fields().len());
    for position in positions {
        fields.push(arrow.field(position).clone());
        columns.push(Arc::clone(&row[position]));
    }
    let mut number = |name: &str, value: fn(&RowMeta) -> u32| {
        fields.push(Field::new(name, DataType::UInt32, false));
        columns.push(Arc::new(metas.iter().map(value).collect::<UInt32Array>()));
    };
    number("count", |m| m.count);
    number("matches", |m| m.degree);
    number("buckets", |m| m.buckets);
    fields.push(Field::new("written", DataType::Int64, false));
    columns.push(Arc::new(
        metas.iter().map(|m| m.stamp).collect::<Int64Array>(),
    ));
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// The rows of a saved table, and what goes with each.
pub(super) fn split(
    saved: &RecordBatch,
    keys: usize,
    columns: usize,
) -> Result<(RecordBatch, Vec<RowMeta>)> {
    let wrong = || Error::checkpoint("the saved rows of a join have other columns");
    if saved.num_columns() != keys + columns + META {
        return Err(wrong());
    }
    let positions: Vec<usize> = (keys..keys + columns).collect();
    let rows = saved.project(&positions)?;
    let meta = |i: usize| saved.column(keys + columns + i);
    let number = |i: usize| meta(i).as_primitive_opt::<UInt32Type>().ok_or_else(wrong);
    let (count, degree, buckets) = (number(0)?, number(1)?, number(2)?);
    let stamp = meta(3).as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
    let metas = (0..saved.num_rows())
        .map(|i| RowMeta {
            count: count.value(i),
            degree: degree.value(i),
            stamp: stamp.value(i),
            buckets: buckets.value(i),
        })
        .collect();
    Ok((rows, metas))
}
