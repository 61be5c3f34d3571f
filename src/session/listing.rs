//! What SHOW and DESCRIBE give: a small table of texts.

use std::fmt::Write as _;

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Listing {
    /// A listing without rows.
    #[must_use]
    pub fn new(columns: &[&str]) -> Self {
        Self {
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// One column of texts.
    pub fn of(column: &str, values: impl IntoIterator<Item = String>) -> Self {
        Self {
            columns: vec![column.into()],
            rows: values.into_iter().map(|v| vec![Some(v)]).collect(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = Option<String>>) {
        self.rows.push(row.into_iter().collect());
    }

    /// The rows as Flink prints them: the bare value of a single column, else `+I[a, b]`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.rows.iter().map(|row| line(row)).collect()
    }
}

fn line(row: &[Option<String>]) -> String {
    if let [only] = row {
        return only.clone().unwrap_or_else(|| "null".into());
    }
    let mut line = "+I[".to_string();
    for (i, value) in row.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        let _ = write!(line, "{comma}{}", value.as_deref().unwrap_or("null"));
    }
    line.push(']');
    line
}
