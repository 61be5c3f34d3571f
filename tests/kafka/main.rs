//! Tests of the Kafka connectors against a real broker, which is started from the jars in the folder
//! that the variable `EBBFLOW_KAFKA_JARS` names. Without it nothing is tested here.
//!
//! `EBBFLOW_KAFKA_KILLS` is how often the engine is killed in the tests of exactly once (10).

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // it waits by the clock, and says what it skips

mod broker;
mod cluster;
mod compression;
mod exactly_once;
mod examples;
mod groups;
mod handover;
mod lost_records;
#[path = "../flink/stub.rs"]
#[allow(clippy::unwrap_used, dead_code)] // of another test, which uses all of it
mod stub;
mod tables;

use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use self::broker::{Broker, JARS};

/// A test, given the broker.
type Test = fn(&Broker);

const TESTS: &[(&str, Test)] = &[
    ("java_clients_and_we_read_each_other", tables::java_clients),
    ("places_to_start_and_to_end", tables::places),
    ("keys_and_metadata_both_ways", tables::keys_and_metadata),
    ("a_bad_record_is_named_skipped_or_kept", tables::bad_records),
    ("upserts_and_tombstones", tables::upserts),
    ("windows_by_partition", tables::windows_by_partition),
    ("offsets_of_the_group", groups::group_offsets),
    ("the_group_rebalances", groups::the_group_rebalances),
    ("new_partitions_are_found", tables::new_partitions),
    ("offsets_are_handed_to_a_cluster", handover::offsets),
    (
        "every_compression_both_ways",
        compression::every_compression,
    ),
    (
        "lost_records_are_named",
        lost_records::lost_records_are_named,
    ),
    ("the_examples_as_written", examples::as_written),
    (
        "killed_at_random_moments",
        exactly_once::killed_at_random_moments,
    ),
    (
        "aggregates_survive_kills",
        exactly_once::aggregates_survive_kills,
    ),
    ("a_zombie_is_fenced", exactly_once::a_zombie_is_fenced),
    ("the_broker_restarts", exactly_once::the_broker_restarts),
];

fn main() {
    let arguments = Arguments::from_args();
    let Some(broker) = start(&arguments) else {
        println!("skipped: {JARS} names no folder with Kafka's jars");
        return;
    };
    let broker = Arc::new(broker);
    let trials = TESTS.iter().map(|(name, test)| {
        let broker = Arc::clone(&broker);
        Trial::test(*name, move || {
            let run = std::panic::AssertUnwindSafe(|| test(&broker));
            std::panic::catch_unwind(run).map_err(|panic| Failed::from(message(&*panic)))
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    drop(broker);
    conclusion.exit();
}

/// A list needs no broker, but the names.
fn start(arguments: &Arguments) -> Option<Broker> {
    if arguments.list {
        return None;
    }
    Broker::start()
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
    text.unwrap_or_else(|| "a panic".into())
}
