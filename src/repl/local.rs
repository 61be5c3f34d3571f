//! Statements that run in this process.

use super::names::Names;
use super::{Engine, Outcome};
use crate::cli::report;
use crate::cli::shell::{Next, Shell};
use crate::cli::signals::Stopper;
use crate::error::Result;
use crate::session::Session;

/// A session, and how much of its jobs has been told.
pub(super) struct Local {
    shell: Shell,
    /// Jobs whose end has been told.
    reported: usize,
}

impl Local {
    pub(super) fn new(session: Session) -> Self {
        Self {
            shell: Shell::new(session),
            reported: 0,
        }
    }
}

impl Engine for Local {
    fn prompt(&self) -> &'static str {
        "Ebbflow SQL> "
    }

    fn greeting(&self) -> String {
        "Ebbflow: Flink SQL without the cluster.".into()
    }

    fn stopper(&self) -> &Stopper {
        &self.shell.stopper
    }

    fn names(&self) -> Names {
        Names::of(&self.shell.session)
    }

    fn set_height(&mut self, height: Option<usize>) {
        self.shell.height = height;
    }

    fn execute(&mut self, sql: &str) -> Result<Outcome> {
        let next = self.shell.execute(sql);
        self.shell.tell_ignored();
        Ok(match next? {
            Next::Quit => Outcome::Quit,
            Next::Shown => Outcome::Shown,
            Next::Done => Outcome::Done,
            Next::Job(job) => Outcome::Job(format!("Job name: {}", job.name())),
        })
    }

    fn report_jobs(&mut self) -> bool {
        let mut well = true;
        while let Some(job) = self.shell.session.jobs().get(self.reported) {
            match job.handle().end() {
                None => break,
                Some(Ok(_)) => {}
                Some(Err(e)) => {
                    well = false;
                    report(&e.context(format!("job '{}'", job.name())), "", None);
                }
            }
            self.reported += 1;
        }
        well
    }

    fn wait_for_jobs(&mut self) -> bool {
        for job in self.shell.session.jobs() {
            self.shell.stopper.watch(job.handle());
        }
        for job in self.shell.session.jobs() {
            // reported below
            let _ = job.wait();
        }
        self.report_jobs()
    }

    fn stop_jobs(&mut self) {
        for job in self.shell.session.jobs() {
            job.handle().request_stop();
        }
        for job in self.shell.session.jobs() {
            let _ = job.wait();
        }
    }
}
