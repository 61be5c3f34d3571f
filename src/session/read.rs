//! The ways to read a query's result: as an append stream, as a retract stream, as a table.

use std::fmt;

use datafusion::common::ScalarValue;
use indexmap::IndexMap;

use super::Query;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::types::Schema;
use crate::types::text::RowPrinter;

/// One row of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// One value a column, in its Arrow form.
    pub values: Vec<ScalarValue>,
    text: String,
}

/// As Flink prints a row, without its kind: `[a, 1]`.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Cuts batches into rows.
struct Rows {
    printer: RowPrinter,
    batch: Option<ChangeBatch>,
    next: usize,
}

impl Rows {
    fn new(schema: &Schema) -> Self {
        Self {
            printer: RowPrinter::new(schema),
            batch: None,
            next: 0,
        }
    }

    fn next(&mut self, query: &mut Query) -> Option<Result<(RowKind, Row)>> {
        loop {
            if let Some(batch) = self.batch.as_ref().filter(|b| self.next < b.len()) {
                let i = self.next;
                self.next += 1;
                return Some(row(&self.printer, batch, i));
            }
            match query.next_batch() {
                Ok(Some(batch)) => {
                    self.batch = Some(batch);
                    self.next = 0;
                }
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

fn row(printer: &RowPrinter, batch: &ChangeBatch, i: usize) -> Result<(RowKind, Row)> {
    let values = batch
        .rows()
        .columns()
        .iter()
        .map(|column| Ok(ScalarValue::try_from_array(column, i)?))
        .collect::<Result<_>>()?;
    let mut line = String::new();
    printer.write(batch, i, &mut line);
    let text = line.split_off(2);
    Ok((batch.kind(i), Row { values, text }))
}

/// The rows of a query that only adds rows.
pub struct AppendStream {
    query: Query,
    rows: Rows,
}

impl Iterator for AppendStream {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.rows.next(&mut self.query)?;
        Some(next.map(|(_, row)| row))
    }
}

/// The changes of a query as `(true, row)` for a row that is added and `(false, row)` for one that is
/// withdrawn.
pub struct RetractStream {
    query: Query,
    rows: Rows,
}

impl Iterator for RetractStream {
    type Item = Result<(bool, Row)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.rows.next(&mut self.query)?;
        Some(next.map(|(kind, row)| (kind.is_add(), row)))
    }
}

impl Query {
    /// Reads the query as an append stream.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// let query = session.query("SELECT x * 2 AS y FROM (VALUES (1), (2)) AS t(x)")?;
    /// let rows: Vec<String> =
    ///     query.append_stream()?.map(|row| Ok(row?.to_string())).collect::<Result<_, ebbflow::error::Error>>()?;
    /// assert_eq!(rows, ["[2]", "[4]"]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the query updates its result, naming the operator that makes the updates.
    pub fn append_stream(self) -> Result<AppendStream> {
        if !self.mode().is_append() {
            return Err(Error::plan(format!(
                "The query updates its result, so it is no append stream: the updates are made by {}",
                self.update_maker()
            ))
            .hint("read it with retract_stream, or as a table"));
        }
        let rows = Rows::new(self.schema());
        Ok(AppendStream { query: self, rows })
    }

    /// Reads the query as a retract stream. An update is the withdrawal of the old row and the
    /// addition of the new one.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// let query = session.query("SELECT SUM(x) AS s FROM (VALUES (1), (2)) AS t(x)")?;
    /// let changes: Vec<(bool, String)> = query
    ///     .retract_stream()
    ///     .map(|change| change.map(|(add, row)| (add, row.to_string())))
    ///     .collect::<Result<_, _>>()?;
    /// assert_eq!(changes[1], (false, "[1]".to_string()));
    /// assert_eq!(changes[2], (true, "[3]".to_string()));
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    #[must_use]
    pub fn retract_stream(self) -> RetractStream {
        let rows = Rows::new(self.schema());
        RetractStream { query: self, rows }
    }

    /// Reads the query to its end and gives the final table. For queries that end.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// let query = session.query("SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS t(x)")?;
    /// let table = query.into_table()?;
    /// assert_eq!(table.rows().count(), 1);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the job fails.
    pub fn into_table(mut self) -> Result<DynamicTable> {
        let mut table = DynamicTable::new(self.schema().clone());
        while let Some(batch) = self.next_batch()? {
            table.apply(&batch)?;
        }
        Ok(table)
    }
}

/// A result as a table: the changes so far, applied.
///
/// ```
/// # use ebbflow::session::{DynamicTable, Session};
/// let mut session = Session::new();
/// let mut query = session.query("SELECT SUM(x) AS s FROM (VALUES (1), (2)) AS t(x)")?;
/// let mut table = DynamicTable::new(query.schema().clone());
/// while let Some(batch) = query.next_batch()? {
///     table.apply(&batch)?;
/// }
/// let rows: Vec<String> = table.rows().map(ToString::to_string).collect();
/// assert_eq!(rows, ["[3]"]);
/// # Ok::<(), ebbflow::error::Error>(())
/// ```
pub struct DynamicTable {
    schema: Schema,
    printer: RowPrinter,
    rows: IndexMap<String, (Row, i64)>,
}

impl DynamicTable {
    /// An empty table.
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        Self {
            printer: RowPrinter::new(&schema),
            schema,
            rows: IndexMap::new(),
        }
    }

    /// Columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Applies changes.
    ///
    /// # Errors
    /// When a value has no scalar form: a bug.
    pub fn apply(&mut self, batch: &ChangeBatch) -> Result<()> {
        for i in 0..batch.len() {
            let (kind, row) = row(&self.printer, batch, i)?;
            let key = row.text.clone();
            let entry = self.rows.entry(key.clone()).or_insert((row, 0));
            entry.1 += kind.sign();
            if entry.1 == 0 {
                self.rows.shift_remove(&key);
            }
        }
        Ok(())
    }

    /// The rows, equal ones as often as they are there, in the order of their first insertion.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows
            .values()
            .flat_map(|(row, n)| std::iter::repeat_n(row, usize::try_from(*n).unwrap_or(0)))
    }
}
