//! Copies of keyed state on their way into a checkpoint: keys in bytes beside columns, made one batch
//! by whoever reads the copy, so that the thread that copies only moves memory.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};

use super::keys::{Changed, KeyBytes, KeyEncoder, KeyTable};
use super::snapshot::{LazyBatch, OperatorSnapshot};
use crate::error::Result;

/// Rows of the columns of `keys`, named `key0` and so on, and of named `columns`.
#[must_use]
pub fn keyed_rows(
    encoder: &Arc<KeyEncoder>,
    keys: KeyBytes,
    columns: Vec<(String, ArrayRef)>,
) -> LazyBatch {
    let encoder = Arc::clone(encoder);
    LazyBatch::new(move || batch(encoder.decode(keys.iter())?, &columns))
}

/// Removed keys, unless there are none.
#[must_use]
pub fn removed_keys(encoder: &Arc<KeyEncoder>, keys: KeyBytes) -> Option<LazyBatch> {
    let any = !keys.is_empty();
    any.then(|| keyed_rows(encoder, keys, Vec::new()))
}

impl Changed {
    /// Makes table `name` of `snapshot`, which holds the rows of [`Changed::slots`], one of changes.
    /// `is_vacant` says of a slot that it has no row in this table.
    pub fn mark(
        &self,
        snapshot: &mut OperatorSnapshot,
        name: &str,
        table: &KeyTable,
        encoder: &Arc<KeyEncoder>,
        is_vacant: impl Fn(u32) -> bool,
    ) {
        let mut removed = self.removed.clone();
        for slot in self.slots.iter().filter(|slot| is_vacant(**slot)) {
            removed.push(table.key_bytes(*slot));
        }
        snapshot.changes(name, encoder.columns(), removed_keys(encoder, removed));
    }
}

fn batch(keys: Vec<ArrayRef>, columns: &[(String, ArrayRef)]) -> Result<RecordBatch> {
    let keys = keys.into_iter().enumerate();
    let keys = keys.map(|(i, key)| (format!("key{i}"), key));
    let columns = keys.chain(columns.iter().cloned());
    let (fields, columns): (Vec<_>, Vec<_>) = columns
        .map(|(name, column)| (Field::new(name, column.data_type().clone(), true), column))
        .unzip();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}
