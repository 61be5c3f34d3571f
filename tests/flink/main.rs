//! Tests of the commands that speak to a Flink cluster: against a server that answers as a SQL Gateway
//! does, and against a real cluster, which is started from the jars in the folder that the variable
//! `EBBFLOW_TEST_FLINK` names (`.ci/run` sets it up).

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // a test waits by the clock, and a failure is a failed test

mod back;
mod cluster;
mod command;
mod real;
mod stub;
mod stubbed;

use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use self::cluster::{Cluster, FOLDER};

fn main() {
    let mut arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = [stubbed::TESTS, back::TESTS]
        .concat()
        .iter()
        .map(|(name, test)| trial(name, *test))
        .collect();
    let cluster = start(&arguments);
    if let Some(cluster) = &cluster {
        trials.extend(real::TESTS.iter().map(|(name, test)| {
            let cluster = Arc::clone(cluster);
            trial(name, move || test(&cluster))
        }));
        // they share its slots
        arguments.test_threads = Some(1);
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(cluster);
    conclusion.exit();
}

/// The cluster, if it is set up and a test of it is asked for.
fn start(arguments: &Arguments) -> Option<Arc<Cluster>> {
    let wanted = |name: &str| match &arguments.filter {
        Some(filter) => name.contains(filter.as_str()),
        None => true,
    };
    if arguments.list || !real::TESTS.iter().any(|(name, _)| wanted(name)) {
        return None;
    }
    let cluster = Cluster::start();
    if cluster.is_none() {
        println!("skipped: tests on a real cluster; {FOLDER} names no folder with Flink's jars");
    }
    cluster.map(Arc::new)
}

fn trial(name: &str, test: impl Fn() + Send + Sync + 'static) -> Trial {
    Trial::test(name, move || {
        let run = std::panic::AssertUnwindSafe(&test);
        std::panic::catch_unwind(run).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Failed::from(text.unwrap_or_else(|| "a panic without words".into()))
        })
    })
}
