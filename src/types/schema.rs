//! Named, typed columns of a relation, with the time attributes among them.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema as ArrowSchema, SchemaRef};

use super::DataType;

/// What makes a timestamp column a time attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeAttribute {
    /// Event time: a watermark is declared on it.
    Rowtime,
    /// Processing time: its value is the clock when it is read.
    Proctime,
}

/// One column of a relation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// Name, as the user sees it.
    pub name: String,
    /// Flink type.
    pub data_type: DataType,
    /// Set while the column is a time attribute.
    pub time: Option<TimeAttribute>,
}

impl Column {
    /// A column that is no time attribute.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self {
            name: name.into(),
            data_type,
            time: None,
        }
    }

    /// Whether it is an event-time attribute.
    #[must_use]
    pub fn is_rowtime(&self) -> bool {
        self.time == Some(TimeAttribute::Rowtime)
    }

    /// Whether it is a processing-time attribute.
    #[must_use]
    pub fn is_proctime(&self) -> bool {
        self.time == Some(TimeAttribute::Proctime)
    }
}

/// Flink's form in headers: `name TYPE [NOT NULL] [*ROWTIME*]`.
impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.data_type.kind)?;
        if !self.data_type.nullable {
            f.write_str(" NOT NULL")?;
        }
        match self.time {
            Some(TimeAttribute::Rowtime) => f.write_str(" *ROWTIME*"),
            Some(TimeAttribute::Proctime) => f.write_str(" *PROCTIME*"),
            None => Ok(()),
        }
    }
}

/// The columns of a relation, in order. Names may repeat (a join's output).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Schema {
    /// The columns.
    pub columns: Vec<Column>,
}

impl Schema {
    /// A schema of `columns`.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns }
    }

    /// Number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no column.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The position of the column called exactly `name`, the first if several are.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().map(|c| c.name.clone()).collect()
    }

    /// Types, in order.
    #[must_use]
    pub fn types(&self) -> Vec<DataType> {
        self.columns.iter().map(|c| c.data_type.clone()).collect()
    }

    /// The columns at `indices`, in that order.
    #[must_use]
    pub fn project(&self, indices: &[usize]) -> Self {
        Self::new(indices.iter().map(|i| self.columns[*i].clone()).collect())
    }

    /// The columns of `self`, then those of `other`.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self::new(self.columns.iter().chain(&other.columns).cloned().collect())
    }

    /// The Arrow schema of batches of this relation: all fields nullable.
    #[must_use]
    pub fn to_arrow(&self) -> SchemaRef {
        let fields: Vec<_> = self
            .columns
            .iter()
            .map(|c| c.data_type.to_field(&c.name))
            .collect();
        Arc::new(ArrowSchema::new(fields))
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, column) in self.columns.iter().enumerate() {
            write!(f, "{}{column}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
