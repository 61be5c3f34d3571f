//! A side's state as a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::{Int64Type, UInt32Type};

use super::JoinInput;
use super::side::{RowMeta, Side};
use super::tables::{ROWS, numbers, row_table, split_table};
use crate::error::Result;
use crate::state::keys::KeyTable;
use crate::state::rows::RowId;
use crate::state::snapshot::OperatorSnapshot;

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
    let rows = side.codec.decode(&bytes)?;
    let number = |value: fn(&RowMeta) -> u32| -> ArrayRef {
        Arc::new(metas.iter().map(value).collect::<UInt32Array>())
    };
    let stamps: Int64Array = metas.iter().map(|m| m.stamp).collect();
    let meta = vec![
        ("count", number(|m| m.count)),
        ("matches", number(|m| m.degree)),
        ("buckets", number(|m| m.buckets)),
        ("written", Arc::new(stamps) as ArrayRef),
    ];
    row_table(&input.schema, &input.keys, &rows, meta)
}

/// The rows of a saved table, and what goes with each.
pub(super) fn split(saved: &RecordBatch, input: &JoinInput) -> Result<(RecordBatch, Vec<RowMeta>)> {
    let (rows, meta) = split_table(saved, input.keys.len(), &input.schema, 4)?;
    let count = numbers::<UInt32Type>(&meta[0])?;
    let degree = numbers::<UInt32Type>(&meta[1])?;
    let buckets = numbers::<UInt32Type>(&meta[2])?;
    let stamp = numbers::<Int64Type>(&meta[3])?;
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
