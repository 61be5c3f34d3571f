//! The SQL tests: every case of `sql-tests/` in every mode, one test each.

use std::path::Path;

use ebbflow::testing::suite::{Case, Mode, cases};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests/conformance");
    let cases = cases(&folder).expect("the test lists can be read");
    let trials = cases
        .iter()
        .flat_map(|case| Mode::ALL.into_iter().map(move |mode| (case, mode)))
        .filter(|(case, mode)| case.runs_in(*mode))
        .map(|(case, mode)| {
            let case = case.clone();
            Trial::test(format!("{}::{}", case.name, mode.name()), move || {
                check(&case, mode)
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn check(case: &Case, mode: Mode) -> Result<(), Failed> {
    let outcome = case.run(mode).map_err(|e| e.to_string())?;
    if !outcome.failed.is_empty() {
        let lines: Vec<_> = outcome
            .failed
            .iter()
            .map(|(i, statement, why)| format!("#{i} {statement}\n     {why}"))
            .collect();
        return Err(lines.join("\n").into());
    }
    if mode == Mode::Plain && !outcome.agreed.is_empty() {
        return Err(format!(
            "statements {:?} agree now: take them off the list",
            outcome.agreed
        )
        .into());
    }
    Ok(())
}
