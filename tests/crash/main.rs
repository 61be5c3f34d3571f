//! The proof by killing: the real binary is killed with `kill -9`, again and again, and what it has
//! committed is read from outside.
//!
//! `EBBFLOW_KILLS` sets how many kills each test of random moments makes; the default suits everyday
//! runs, 67 a long one. `EBBFLOW_SEED` sets the seed of the moments.

// Real processes live in real time.
#![allow(clippy::disallowed_methods)]

mod guarantees;
mod harness;
mod killed;
