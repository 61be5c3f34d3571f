//! What the benches of operators share: the binary's allocator, and an end for what an operator emits.

use std::hint::black_box;

use ebbflow::changelog::ChangeBatch;
use ebbflow::error::Result;
use ebbflow::runtime::output::{Downstream, Status};

/// As in the binary.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Counts the rows that come and lets them go.
#[derive(Default)]
pub struct Discard(pub usize);

impl Downstream for Discard {
    fn batch(&mut self, batch: ChangeBatch) -> Result<()> {
        self.0 += black_box(&batch).len();
        Ok(())
    }

    fn watermark(&mut self, _: i64) -> Result<()> {
        Ok(())
    }

    fn status(&mut self, _: Status) -> Result<()> {
        Ok(())
    }
}
