//! `DropUpdateBefore`: takes the `-U` rows out of a changelog whose reader knows the key.

use arrow::array::BooleanArray;

use super::Operator;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::Result;
use crate::runtime::output::Output;

/// Drops `-U`. Stateless.
#[derive(Debug, Default)]
pub struct DropUpdateBefore;

impl Operator for DropUpdateBefore {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        match batch.ops() {
            Some(ops) if ops.contains(&RowKind::UpdateBefore) => {
                let mask: BooleanArray = ops
                    .iter()
                    .map(|kind| Some(*kind != RowKind::UpdateBefore))
                    .collect();
                out.emit(batch.filter(&mask)?)
            }
            _ => out.emit(batch),
        }
    }
}
