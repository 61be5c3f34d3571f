//! The SQL tests: every case of `sql-tests/` in every mode, one test each; and the plans of
//! `sql-tests/plans/`: EXPLAIN of the script must be what the `.explain` beside it says.
//! `EBBFLOW_REWRITE_PLANS=1 cargo test --test sql plans` writes these anew.

use std::path::{Path, PathBuf};

use ebbflow::testing::diff::{Colours, unified};
use ebbflow::testing::slt::files;
use ebbflow::testing::suite::{Case, Mode, cases};
use ebbflow::testing::transcript;
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
    trials.extend(plan_trials());
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

fn plan_trials() -> Vec<Trial> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests/plans");
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder of plans can be read")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "sql"))
        .collect();
    scripts.sort();
    let name = |path: &Path| path.file_stem().map(|s| s.display().to_string());
    scripts
        .into_iter()
        .map(|script| {
            let name = name(&script).unwrap_or_default();
            Trial::test(format!("plans::{name}"), move || check_plan(&script))
        })
        .collect()
}

fn check_plan(script: &Path) -> Result<(), Failed> {
    let sql = std::fs::read_to_string(script)?;
    let golden = script.with_extension("explain");
    let got = transcript::run(&sql, &[]);
    if std::env::var_os("EBBFLOW_REWRITE_PLANS").is_some() {
        return Ok(std::fs::write(golden, got)?);
    }
    let want = std::fs::read_to_string(&golden).unwrap_or_default();
    if want == got {
        return Ok(());
    }
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let diff = unified(&lines(&want), &lines(&got), Colours::Off);
    Err(format!("{}: the plan is another\n{diff}", golden.display()).into())
}
