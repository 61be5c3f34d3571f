//! The SQL tests: every case of `sql-tests/` in every mode, one test each.

use std::path::Path;

use ebbflow::testing::diff::Colours;
use ebbflow::testing::slt::files;
use ebbflow::testing::suite::{Case, Mode, cases};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests/conformance");
    let cases = cases(&folder).expect("the test lists can be read");
    let mut trials: Vec<Trial> = cases
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
    trials.extend(slt_trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// The sqllogictest files, a trial per file and mode.
fn slt_trials() -> Vec<Trial> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut trials = Vec::new();
    for below in ["sql-tests", "examples/testing"] {
        for file in files(&folder.join(below)).expect("the test files can be read") {
            let name = file.path().strip_prefix(folder).unwrap_or(file.path());
            let name = name.with_extension("").display().to_string();
            for mode in Mode::ALL.into_iter().filter(|mode| file.runs_in(*mode)) {
                let file = file.clone();
                trials.push(Trial::test(format!("{name}::{}", mode.name()), move || {
                    let failures = file.run(mode).map_err(|e| e.to_string())?;
                    let lines: Vec<_> = failures.iter().map(|f| f.render(Colours::Off)).collect();
                    if lines.is_empty() {
                        Ok(())
                    } else {
                        Err(lines.join("\n").into())
                    }
                }));
            }
        }
    }
    trials
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
