//! The rows of partial matches: lists from the last row to the first, whose tails are shared.

use std::sync::Arc;

/// What is kept of a row.
#[derive(Debug)]
pub(super) struct Row {
    /// The values that slots read, encoded; the partition columns first.
    pub(super) bytes: Box<[u8]>,
    /// Its place in the order of all rows.
    pub(super) sequence: u64,
    /// Its event or processing time.
    pub(super) time: i64,
}

/// A row as a variable's, and those matched before it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) row: Arc<Row>,
    /// Which variable took it.
    pub(super) variable: usize,
    pub(super) before: Option<Arc<Node>>,
}

impl Node {
    /// This row and those before it, backwards.
    pub(super) fn backwards(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(Some(self), |node| node.before.as_deref())
    }

    /// The rows of a variable (all for `None`), backwards.
    pub(super) fn rows_of(&self, variable: Option<usize>) -> impl Iterator<Item = &Arc<Row>> {
        self.backwards()
            .filter(move |node| variable.is_none_or(|v| v == node.variable))
            .map(|node| &node.row)
    }
}

impl Drop for Node {
    /// Long histories must not be dropped by recursion.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(node) = before {
            match Arc::try_unwrap(node) {
                Ok(mut node) => before = node.before.take(),
                Err(_) => break,
            }
        }
    }
}
