//! A side's state as a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::{Int64Type, UInt32Type};

use super::JoinInput;
use super::side::{RowMeta, Side};
use super::tables::{ROWS, numbers, row_table, split_table};
use crate::error::Result;
use crate::state::binary_row::BinaryRowCodec;
use crate::state::keys::KeyBytes;
use crate::state::rows::RowId;
use crate::state::snapshot::{LazyBatch, OperatorSnapshot};
use crate::types::Schema;

/// Copies the rows of the join keys of `slots` as table `name`, join key by join key.
pub(super) fn save(
    name: &str,
    side: &Side,
    input: &JoinInput,
    slots: &[u32],
    snapshot: &mut OperatorSnapshot,
) {
    let mut copy = Copied::default();
    for slot in slots {
        side.rows_of(*slot, |id, meta| {
            copy.rows.push(side.rows.get(RowId(id)));
            copy.metas.push(meta);
        });
        if copy.metas.len() >= ROWS {
            copy.hand_over(name, side, input, snapshot);
        }
    }
    copy.hand_over(name, side, input, snapshot);
}

/// Rows in bytes, to be made columns elsewhere.
#[derive(Default)]
struct Copied {
    rows: KeyBytes,
    metas: Vec<RowMeta>,
}

impl Copied {
    fn hand_over(
        &mut self,
        name: &str,
        side: &Side,
        input: &JoinInput,
        snapshot: &mut OperatorSnapshot,
    ) {
        if self.metas.is_empty() {
            return;
        }
        let Self { rows, metas } = std::mem::take(self);
        let (codec, schema) = (Arc::clone(&side.codec), input.schema.clone());
        let keys = input.keys.clone();
        let make = move || table(&codec, &schema, &keys, &rows, &metas);
        snapshot.add_lazy(name, input.keys.len(), LazyBatch::new(make));
    }
}

fn table(
    codec: &BinaryRowCodec,
    schema: &Schema,
    keys: &[usize],
    rows: &KeyBytes,
    metas: &[RowMeta],
) -> Result<RecordBatch> {
    let bytes: Vec<_> = rows.iter().collect();
    let rows = codec.decode(&bytes)?;
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
    row_table(schema, keys, &rows, meta)
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
