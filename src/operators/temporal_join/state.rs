//! What a temporal join remembers of a join key.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::changelog::RowKind;
use crate::operators::join::changes::Rows;
use crate::state::binary_row::BinaryRowCodec;
use crate::state::rows::RowStore;
use crate::types::Schema;

/// The rows of one side, of all keys.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) codec: Arc<BinaryRowCodec>,
    pub(super) rows: RowStore,
}

impl Side {
    pub(super) fn new(schema: &Schema) -> Self {
        Self {
            codec: Arc::new(BinaryRowCodec::new(&schema.types())),
            rows: RowStore::default(),
        }
    }

    /// The rows, to gather them.
    pub(super) fn stored(&self) -> Rows<'_> {
        Rows::Stored(&self.codec, &self.rows)
    }
}

/// A row that waits for the watermark.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeftRow {
    pub(super) time: i64,
    pub(super) id: u32,
    pub(super) kind: RowKind,
    /// Whether its key can equal another.
    pub(super) matchable: bool,
}

/// A version of the right row of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version {
    /// From when on it is valid.
    pub(super) time: i64,
    pub(super) id: u32,
    /// Whether there is a row from then on, not a withdrawal.
    pub(super) present: bool,
}

/// The state of one key.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyState {
    /// In the order of their arrival.
    pub(super) left: SmallVec<[LeftRow; 1]>,
    /// By rising time.
    pub(super) right: SmallVec<[Version; 1]>,
    /// When, in event time, there is something to do.
    pub(super) timer: Option<Due>,
    /// When, in processing time, the key is forgotten.
    pub(super) cleanup: Option<Due>,
}

/// The timer of a key that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) time: i64,
    /// Timers of one time fire in the order of their numbers.
    pub(super) number: u64,
}

impl Due {
    /// Whether it is set, for `time`.
    pub(super) fn is_at(due: Option<Self>, time: i64) -> bool {
        due.is_some_and(|due| due.time == time)
    }
}

impl KeyState {
    pub(super) fn is_vacant(&self) -> bool {
        self.left.is_empty() && self.right.is_empty() && self.timer.is_none()
    }
}
