//! What a source can do beside leaving out columns: read single fields of rows, and leave out rows.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;

use super::SourceReaderFactory;
use crate::error::Result;

/// A physical column, or a field inside one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath {
    /// Index into the physical columns followed by the declared metadata columns.
    pub column: usize,
    /// Positions of fields, from the outermost row inwards; empty for the whole column.
    pub fields: Vec<usize>,
}

impl FieldPath {
    /// The whole of a column.
    #[must_use]
    pub fn column(column: usize) -> Self {
        Self {
            column,
            fields: Vec::new(),
        }
    }

    /// A field of what `self` is.
    #[must_use]
    pub fn field(mut self, index: usize) -> Self {
        self.fields.push(index);
        self
    }

    /// Whether `self` is `other` or lies inside it.
    #[must_use]
    pub fn within(&self, other: &Self) -> bool {
        self.column == other.column && self.fields.starts_with(&other.fields)
    }
}

/// Rows that nobody asks for: those whose column has none of some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFilter {
    /// The column, whole.
    pub column: usize,
    /// The values that are asked for, ascending.
    pub values: Vec<ScalarValue>,
    /// Watermarks are made from the rows behind the source, and a rise by more than this, in ms, is
    /// emitted at once. `None`: no watermarks are made.
    pub watermark_interval_ms: Option<i64>,
}

/// A scan as a source with [`Pushdown`] is asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedScan {
    /// The Arrow schema of the result.
    pub schema: SchemaRef,
    /// The columns of the result: fields, NULL where a row around them is.
    pub fields: Vec<FieldPath>,
    /// Rows that may be left out. Only with leave of [`Pushdown::filters_on`].
    pub filter: Option<ValueFilter>,
}

/// The abilities of a source beyond [`readers`](super::TableSource::readers).
pub trait Pushdown: Send + Sync {
    /// The fields that hold the time of an event. In a split it never falls from row to row, and in
    /// a row all of them that are not NULL agree.
    fn event_times(&self) -> Vec<FieldPath> {
        Vec::new()
    }

    /// Whether rows can be left out by the values of this column.
    ///
    /// Such a source MAY give rows that the filter does not ask for, and MUST give those at which a
    /// watermark would be emitted: whose event time is more than the interval after that of the last
    /// row that had one, the first row included.
    fn filters_on(&self, column: usize) -> bool {
        let _ = column;
        false
    }

    /// A factory of readers that give exactly the fields asked for.
    ///
    /// # Errors
    /// When the source cannot be opened.
    fn readers(&self, scan: &PushedScan) -> Result<Arc<dyn SourceReaderFactory>>;

    /// The same for [`split_readers`](super::TableSource::split_readers).
    ///
    /// # Errors
    /// When the source cannot be opened.
    fn split_readers(&self, scan: &PushedScan) -> Result<Option<Arc<dyn SourceReaderFactory>>> {
        let _ = scan;
        Ok(None)
    }
}
