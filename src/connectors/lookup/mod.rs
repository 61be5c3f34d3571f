//! Tables that are looked up by key, row by row: the right side of a processing-time temporal join.
//!
//! - [`FullCache`] makes any table that can be read to its end one that can be looked up,
//! - [`options`] reads the options `lookup.*`, which are the same for all connectors,
//! - [`Retrying`] asks again for keys that have no rows yet.

mod full_cache;
pub mod options;
mod retry;

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};

pub use full_cache::{FullCache, Reload};
pub use retry::{Retry, Retrying};

use crate::error::Result;

/// A table that can be looked up.
pub trait LookupSource: fmt::Debug + Send + Sync {
    /// Makes the lookups of one subtask: rows are found by the columns `keys` and have the columns
    /// `projection`. Both are indices into the physical columns followed by the declared metadata
    /// columns.
    ///
    /// # Errors
    /// When the table cannot be opened.
    fn open(&self, keys: &[usize], projection: &[usize]) -> Result<Box<dyn Lookup>>;
}

/// Looks rows up. Runs on the task's thread, or for an asynchronous lookup on one of its own, and
/// may block it.
pub trait Lookup: Send {
    /// The rows of every key of a batch. The key columns have no NULLs.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, now_ms: i64) -> Result<LookedUp>;
}

/// What a lookup found.
#[derive(Debug, Clone)]
pub struct LookedUp {
    /// The key that each row was found by, ascending.
    pub keys: UInt32Array,
    /// The rows.
    pub rows: RecordBatch,
}

/// What is remembered of former lookups: the options `lookup.partial-cache.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialCache {
    /// Rows that are remembered at most.
    pub max_rows: usize,
    /// How long a key is remembered after it was looked up, ms.
    pub expire_after_write_ms: Option<i64>,
    /// How long a key is remembered after it was last used, ms.
    pub expire_after_access_ms: Option<i64>,
    /// Whether it is remembered that a key has no rows.
    pub cache_missing_key: bool,
}

/// How a table wants to be looked up.
#[derive(Debug, Clone)]
pub struct TableLookup {
    /// Finds the rows.
    pub source: Arc<dyn LookupSource>,
    /// What the join remembers of former lookups.
    pub cache: Option<PartialCache>,
    /// Whether lookups run beside the task, on threads of their own.
    pub asynchronous: bool,
}
