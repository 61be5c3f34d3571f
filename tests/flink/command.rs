//! Runs of the program.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tempfile::NamedTempFile;

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    pub well: bool,
    pub out: String,
    pub err: String,
}

/// The program, with a gateway on loopback that no proxy stands before.
pub fn ebbflow() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbflow"));
    command
        .env("NO_PROXY", "127.0.0.1")
        .env("EBBFLOW_LOG", "warn")
        .stdin(Stdio::null());
    command
}

pub fn run(command: &mut Command) -> Outcome {
    let output = command.output().expect("the program runs");
    Outcome {
        well: output.status.success(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs `ebbflow arguments..`.
pub fn call(arguments: &[&str]) -> Outcome {
    run(ebbflow().args(arguments))
}

/// A script in a file.
pub fn script(sql: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new()
        .suffix(".sql")
        .tempfile()
        .expect("a file");
    file.write_all(sql.as_bytes()).expect("it is written");
    file
}

/// Deploys `sql` to the gateway at `url`.
pub fn deploy(sql: &str, url: &str, arguments: &[&str]) -> Outcome {
    let file = script(sql);
    run(ebbflow()
        .arg("deploy")
        .arg(file.path())
        .args(["--to", url])
        .args(arguments))
}

impl Outcome {
    /// Asserts that all of `parts` were said on standard error, in this order.
    pub fn says(&self, parts: &[&str]) {
        let mut rest = self.err.as_str();
        for part in parts {
            match rest.find(part) {
                Some(i) => rest = &rest[i + part.len()..],
                None => panic!("{part:?} is not, or not in its place, in: {}", self.err),
            }
        }
    }
}
