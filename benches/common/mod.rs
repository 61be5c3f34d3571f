//! What the benches of operators share: the binary's allocator, numbers that look random, and an end
//! for what an operator emits.

#![allow(dead_code)] // a bench uses what it needs

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

/// Numbers that look random, the same ones in every run (xorshift64, Marsaglia 2003).
pub struct Random(pub u64);

impl Random {
    /// A number from 0 up to `bound`, which is left out.
    pub fn next(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
