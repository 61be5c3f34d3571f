//! Where an operator puts its rows and watermarks: whatever comes behind it.
//!
//! In a running job that is the next operator of the chain, called directly, or a channel; in a unit
//! test of an operator it is a list of [`Emitted`].

use crate::changelog::ChangeBatch;
use crate::error::Result;

/// Whether a stream takes part in event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Rows or watermarks are to be expected.
    Active,
    /// Nothing comes for the time being: consumers do not wait for its watermark.
    Idle,
}

/// What comes behind an operator.
pub trait Downstream {
    /// Takes a batch.
    ///
    /// # Errors
    /// When an operator behind fails.
    fn batch(&mut self, batch: ChangeBatch) -> Result<()>;

    /// Takes a watermark, ms.
    ///
    /// # Errors
    /// When an operator behind fails.
    fn watermark(&mut self, watermark: i64) -> Result<()>;

    /// Takes a change of status.
    ///
    /// # Errors
    /// When an operator behind fails.
    fn status(&mut self, status: Status) -> Result<()>;
}

/// The operator's handle on what comes behind it.
pub struct Output<'a> {
    downstream: &'a mut dyn Downstream,
}

impl<'a> Output<'a> {
    /// A handle on `downstream`.
    pub fn new(downstream: &'a mut dyn Downstream) -> Self {
        Self { downstream }
    }

    /// Emits a batch. Everything behind in the same task has processed it on return. An empty batch
    /// is not passed on.
    ///
    /// # Errors
    /// When an operator behind fails.
    pub fn emit(&mut self, batch: ChangeBatch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.downstream.batch(batch)
    }

    /// Emits a watermark, ms: no row with an event time at or before it follows. MUST be higher than
    /// the last one.
    ///
    /// # Errors
    /// When an operator behind fails.
    pub fn watermark(&mut self, watermark: i64) -> Result<()> {
        self.downstream.watermark(watermark)
    }

    /// Announces that the stream goes idle or is active again. Only an operator that makes
    /// watermarks of its own does it: the runtime passes on the status of inputs.
    ///
    /// # Errors
    /// When an operator behind fails.
    pub fn status(&mut self, status: Status) -> Result<()> {
        self.downstream.status(status)
    }
}

/// What an operator emitted: the downstream of unit tests.
#[derive(Debug)]
pub enum Emitted {
    /// A batch.
    Batch(ChangeBatch),
    /// A watermark.
    Watermark(i64),
    /// A change of status.
    Status(Status),
}

impl Downstream for Vec<Emitted> {
    fn batch(&mut self, batch: ChangeBatch) -> Result<()> {
        self.push(Emitted::Batch(batch));
        Ok(())
    }

    fn watermark(&mut self, watermark: i64) -> Result<()> {
        self.push(Emitted::Watermark(watermark));
        Ok(())
    }

    fn status(&mut self, status: Status) -> Result<()> {
        self.push(Emitted::Status(status));
        Ok(())
    }
}
