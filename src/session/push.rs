//! Pushing rows in: a host program feeds `memory` tables while queries over them go on.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;

use super::Session;
use crate::catalog::CatalogEntry;
use crate::changelog::{ChangeBatch, RowKind};
use crate::connectors::memory::MemoryTable;
use crate::error::{Error, Result};
use crate::types::Schema;

/// Writes into a `memory` table. Every accepted batch gets a token, one more than the last of the
/// table. When jobs that read the table go on from their checkpoints in another process,
/// [`restored_token`](Self::restored_token) says which batches they have: a program that pushes in the
/// same order goes on behind it, and no batch is lost or counts twice.
#[derive(Debug, Clone)]
pub struct TableWriter {
    table: Arc<MemoryTable>,
    takes_watermarks: bool,
}

impl Session {
    /// A writer into the `memory` table called `name`.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// # use datafusion::common::ScalarValue;
    /// let mut session = Session::new();
    /// session.execute("CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'memory')")?;
    /// let mut writer = session.table_writer("t")?;
    /// let query = session.query("SELECT k, SUM(v) AS s FROM t GROUP BY k")?;
    /// writer.insert(vec![vec!["a".into(), 1.into()], vec!["a".into(), 2.into()]])?;
    /// writer.retract(vec![vec!["a".into(), 1.into()]])?;
    /// writer.finish();
    /// let rows: Vec<String> = query.into_table()?.rows().map(ToString::to_string).collect();
    /// assert_eq!(rows, ["[a, 2]"]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such table or it has another connector.
    pub fn table_writer(&self, name: &str) -> Result<TableWriter> {
        let path = self.catalogs.resolve(&[name.to_string()])?;
        let CatalogEntry::Table(table) = self.catalogs.expect(&path)? else {
            return Err(Error::catalog(format!(
                "'{path}' is a view: rows go into tables"
            )));
        };
        if table.options.get("connector").map(String::as_str) != Some("memory") {
            return Err(Error::options(format!(
                "'{path}' is no memory table: a program can only push into these"
            ))
            .hint("declare it WITH ('connector' = 'memory')"));
        }
        let description = crate::plan::physical::describe(table, &table.options, &self.config)?;
        Ok(TableWriter {
            takes_watermarks: table.has_source_watermark(),
            table: self.context.memory.open(&description)?,
        })
    }
}

impl TableWriter {
    /// The table's columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.table.schema()
    }

    /// Adds rows of one value a column; the answer is the batch's token.
    ///
    /// # Errors
    /// When a row does not have the table's columns.
    pub fn insert(&mut self, rows: Vec<Vec<ScalarValue>>) -> Result<u64> {
        self.push(rows, RowKind::Insert)
    }

    /// Withdraws rows; the answer is the batch's token.
    ///
    /// # Errors
    /// When a row does not have the table's columns.
    pub fn retract(&mut self, rows: Vec<Vec<ScalarValue>>) -> Result<u64> {
        self.push(rows, RowKind::Delete)
    }

    /// Applies a batch of changes; the answer is its token.
    ///
    /// # Errors
    /// When the columns are not the table's.
    pub fn apply(&mut self, batch: &ChangeBatch) -> Result<u64> {
        self.table.apply(batch)
    }

    /// The token of the last batch that the checkpoints hold from which the jobs over the table went
    /// on; 0 if they started anew. Ask when the jobs have been started, and before the first push.
    ///
    /// ```
    /// # use ebbflow::session::{Session, StatementResult};
    /// # use datafusion::common::ScalarValue;
    /// let folder = tempfile::tempdir().unwrap();
    /// let rows = |i: u64| vec![vec![ScalarValue::from("a"), ScalarValue::from(i as i32)]];
    /// for run in 0..2 {
    ///     let mut session = Session::new();
    ///     let directory = folder.path().display().to_string();
    ///     session.set("execution.checkpointing.interval", "1 h")?;
    ///     session.set("execution.checkpointing.dir", &directory)?;
    ///     session.execute("CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'memory')")?;
    ///     session.execute("CREATE TABLE o (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) \
    ///                      WITH ('connector' = 'blackhole')")?;
    ///     let mut writer = session.table_writer("t")?;
    ///     let StatementResult::Job(job) =
    ///         session.execute("INSERT INTO o SELECT k, COUNT(*) FROM t GROUP BY k")?
    ///     else {
    ///         unreachable!("an INSERT starts a job");
    ///     };
    ///     assert_eq!(writer.restored_token(), run * 3);
    ///     for i in writer.restored_token() + 1..=3 + run {
    ///         assert_eq!(writer.insert(rows(i))?, i);
    ///     }
    ///     job.handle().stop(Default::default(), None)?;
    ///     job.wait()?;
    /// }
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    #[must_use]
    pub fn restored_token(&self) -> u64 {
        self.table.restored()
    }

    /// Says that no row with an event time up to `watermark` (ms since the epoch, in UTC for a
    /// TIMESTAMP) will come: windows that end there close. The table's watermark must be declared as
    /// coming from the program.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// session.execute(
    ///     "CREATE TABLE clicks (page STRING, ts TIMESTAMP_LTZ(3),
    ///        WATERMARK FOR ts AS SOURCE_WATERMARK()
    ///      ) WITH ('connector' = 'memory', 'changelog-mode' = 'I')",
    /// )?;
    /// let mut writer = session.table_writer("clicks")?;
    /// let mut query = session.query(
    ///     "SELECT window_end, COUNT(*) AS n
    ///      FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    ///      GROUP BY window_start, window_end",
    /// )?;
    /// let at = |ms| datafusion::common::ScalarValue::TimestampMillisecond(Some(ms), None);
    /// writer.insert(vec![vec!["home".into(), at(1_000)], vec!["help".into(), at(59_000)]])?;
    /// writer.watermark(60_000)?;
    /// let closed = query.next_batch()?.expect("the first minute is over");
    /// assert_eq!(closed.len(), 1);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the table makes its watermarks of its rows, or has none.
    pub fn watermark(&mut self, watermark: i64) -> Result<()> {
        if !self.takes_watermarks {
            return Err(
                Error::execution("the table does not take watermarks from the program")
                    .hint("declare WATERMARK FOR the column AS SOURCE_WATERMARK()"),
            );
        }
        self.table.watermark(watermark);
        Ok(())
    }

    /// Says that no rows will come: queries over the table come to their end.
    pub fn finish(&self) {
        self.table.finish();
    }

    fn push(&mut self, rows: Vec<Vec<ScalarValue>>, kind: RowKind) -> Result<u64> {
        let schema = self.table.schema().to_arrow();
        let ops = vec![kind; rows.len()];
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for (i, field) in schema.fields().iter().enumerate() {
            let values = rows
                .iter()
                .map(|row| {
                    let value = row.get(i).filter(|_| row.len() == schema.fields().len());
                    let value = value.ok_or_else(|| {
                        Error::execution(format!(
                            "a row has {} values, the table {} columns",
                            row.len(),
                            schema.fields().len()
                        ))
                    })?;
                    value.cast_to(field.data_type()).map_err(|e| {
                        Error::execution(format!(
                            "column '{}': {}",
                            field.name(),
                            e.strip_backtrace()
                        ))
                    })
                })
                .collect::<Result<Vec<_>>>()?;
            columns.push(if values.is_empty() {
                arrow::array::new_empty_array(field.data_type())
            } else {
                ScalarValue::iter_to_array(values)?
            });
        }
        self.apply(&ChangeBatch::try_new(
            RecordBatch::try_new(schema, columns)?,
            ops,
        )?)
    }
}
