//! `Union`: all rows of all inputs, as they come.

use super::Operator;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::runtime::output::Output;

/// The operator. Stateless: its inputs share port 0, and the runtime combines their watermarks.
#[derive(Debug)]
pub struct Union;

impl Operator for Union {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        out.emit(batch)
    }
}
