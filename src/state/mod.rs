//! What operators remember: keys, columns of slots, rows, timers; and its typed copy for checkpoints.

pub mod snapshot;
