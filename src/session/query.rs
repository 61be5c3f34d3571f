//! A running query and the ways to read it.

use super::Session;
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::Result;
use crate::plan::logical::LogicalPlan;
use crate::plan::translate::Translator;
use crate::runtime::collect::{CollectReader, collect};
use crate::runtime::job::{Job, JobHandle};
use crate::types::Schema;
use crate::types::text::RowPrinter;

/// Batches that wait between the job and the reader.
const CAPACITY: usize = 64;

/// A running query. Dropping it stops the job.
#[derive(Debug)]
pub struct Query {
    schema: Schema,
    mode: ChangelogMode,
    update_maker: String,
    handle: JobHandle,
    reader: CollectReader,
}

impl Session {
    pub(super) fn start_query(&self, plan: &LogicalPlan) -> Result<Query> {
        let stream = self.planner().plan_query(plan, true)?;
        self.warn_of_growth("query", &stream);
        let mut config = self.job_config("query");
        self.add_query_checkpoints(&mut config)?;
        let (writers, reader) = collect(CAPACITY, &config.control);
        let mode = stream.mode;
        let update_maker = crate::plan::physical::describe_updates(&stream);
        let mut translator = Translator::new(&self.config);
        translator.add_query(stream, writers)?;
        let handle = Job::start(translator.finish(), config)?;
        Ok(Query {
            schema: plan.schema.clone(),
            mode,
            update_maker,
            handle,
            reader,
        })
    }
}

impl Query {
    /// Columns of the result.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The kinds of changes that can occur.
    #[must_use]
    pub fn mode(&self) -> ChangelogMode {
        self.mode
    }

    /// The plan's line of the operator that makes the updates.
    pub(super) fn update_maker(&self) -> &str {
        &self.update_maker
    }

    /// The job behind the query.
    #[must_use]
    pub fn job(&self) -> &JobHandle {
        &self.handle
    }

    /// The next changes, in order; `None` when the query has ended.
    ///
    /// ```
    /// # use ebbflow::changelog::RowKind;
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// let mut query = session.query("SELECT MAX(x) AS m FROM (VALUES (1), (2)) AS t(x)")?;
    /// let mut kinds = Vec::new();
    /// while let Some(batch) = query.next_batch()? {
    ///     kinds.extend((0..batch.len()).map(|i| batch.kind(i)));
    /// }
    /// assert_eq!(kinds, [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the job fails.
    pub fn next_batch(&mut self) -> Result<Option<ChangeBatch>> {
        match self.reader.recv() {
            Some(batch) => Ok(Some(batch)),
            None => self.handle.wait().map(|_| None),
        }
    }

    /// All changes to the end, each as Flink prints it: `+I[a, 1]`. For queries that end.
    ///
    /// # Errors
    /// When the job fails.
    pub fn collect_changes(&mut self) -> Result<Vec<String>> {
        let printer = RowPrinter::new(&self.schema);
        let mut changes = Vec::new();
        while let Some(batch) = self.next_batch()? {
            for i in 0..batch.len() {
                let mut line = String::new();
                printer.write(&batch, i, &mut line);
                changes.push(line);
            }
        }
        Ok(changes)
    }

    /// Stops the query.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// session.execute("CREATE TABLE endless (x INT) WITH ('connector' = 'datagen')")?;
    /// let mut query = session.query("SELECT COUNT(*) AS n FROM endless")?;
    /// assert!(query.next_batch()?.is_some());
    /// query.stop();
    /// while query.next_batch()?.is_some() {}
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    pub fn stop(&self) {
        self.handle.cancel();
    }
}
