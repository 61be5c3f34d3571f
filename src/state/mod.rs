//! What operators remember: keys, columns of slots, rows, timers; and its typed copy for checkpoints.

pub mod arena;
pub mod binary_row;
pub mod java_map;
pub mod key_group;
pub mod keyed_rows;
pub mod keys;
pub mod multiset;
pub mod rows;
pub mod snapshot;
pub mod ttl;
