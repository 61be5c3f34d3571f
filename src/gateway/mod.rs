//! A Flink SQL Gateway as its REST API (version 2 and later) shows it: scripts that outgrow one
//! machine go there unchanged.
//!
//! - [`client`]: sessions, statements, their operations and results,
//! - [`http`]: requests, and what is said of a gateway that is down, slow or talks rubbish,
//! - [`page`]: results, page by page,
//! - [`trace`]: what of a Java stack trace concerns the user, and where in the statement,
//! - [`current`]: the catalog and database that a script uses,
//! - [`edited`]: a statement that was changed before it was sent, and the places of the original,
//! - [`rehearsal`]: what is sent in place of a statement that must have no effect,
//! - [`handover`]: the positions of a checkpoint as options of Flink's Kafka tables,
//! - [`jobs`]: the jobs of the cluster.
//!
//! Everything is blocking; whoever waits is asked between two requests whether to go on.

pub mod client;
mod current;
pub mod edited;
pub mod handover;
mod http;
pub mod jobs;
pub mod page;
pub mod rehearsal;
mod trace;

pub use client::{Answer, Gateway, RemoteSession};
pub use edited::Edited;
