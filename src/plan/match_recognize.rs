//! The pattern of a MATCH_RECOGNIZE clause.

use super::logical::SortKey;
use crate::aggregates::AggregateFunction;
use crate::expr::Expr;
use crate::types::DataType;

/// What MATCH_RECOGNIZE looks for and gives. Output: the partition columns, then the measures.
#[derive(Debug, Clone)]
pub struct MatchSpec {
    /// PARTITION BY: columns of the input.
    pub partition: Vec<usize>,
    /// ORDER BY: the time attribute, then other columns.
    pub order: Vec<SortKey>,
    /// PATTERN: the variables in their order.
    pub variables: Vec<PatternVariable>,
    /// AFTER MATCH SKIP.
    pub skip: SkipStrategy,
    /// WITHIN, ms.
    pub within_ms: Option<i64>,
    /// What is computed of every row that a match may keep, over the input.
    pub values: Vec<Expr>,
    /// What definitions and measures read of the rows of a match.
    pub slots: Vec<MatchSlot>,
    /// MEASURES, over the slots.
    pub measures: Vec<Expr>,
    /// Texts for EXPLAIN.
    pub text: MatchText,
}

/// What EXPLAIN prints of a MATCH_RECOGNIZE.
#[derive(Debug, Clone, Default)]
pub struct MatchText {
    /// MEASURES.
    pub measures: String,
    /// PATTERN.
    pub pattern: String,
    /// WITHIN.
    pub within: Option<String>,
    /// DEFINE.
    pub define: String,
}

/// A variable of the pattern.
#[derive(Debug, Clone)]
pub struct PatternVariable {
    /// Name.
    pub name: String,
    /// How many rows at least.
    pub least: u32,
    /// How many rows at most; `None` without bound.
    pub most: Option<u32>,
    /// Whether it takes as many rows as it can.
    pub greedy: bool,
    /// What must hold of a row by itself, over the input.
    pub row: Option<Expr>,
    /// What must hold of a row with those matched before it, over the slots.
    pub history: Option<Expr>,
}

/// Where the search goes on after a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipStrategy {
    /// `PAST LAST ROW`.
    PastLastRow,
    /// `TO NEXT ROW`.
    ToNextRow,
    /// `TO FIRST` a variable.
    ToFirst(usize),
    /// `TO LAST` a variable.
    ToLast(usize),
}

/// A value that is made of the rows of a match.
#[derive(Debug, Clone)]
pub struct MatchSlot {
    /// The variable whose rows count; `None` for all rows.
    pub variable: Option<usize>,
    /// Which rows.
    pub function: SlotFunction,
    /// Its type.
    pub data_type: DataType,
}

/// What is made of the rows of a variable. Columns are those of [`MatchSpec::values`].
#[derive(Debug, Clone)]
pub enum SlotFunction {
    /// A value of the row `offset` behind the first.
    First {
        /// The value.
        value: usize,
        /// How far from the first.
        offset: usize,
    },
    /// A value of the row `offset` before the last.
    Last {
        /// The value.
        value: usize,
        /// How far from the last.
        offset: usize,
    },
    /// An aggregate of all of them.
    Aggregate {
        /// The function.
        function: AggregateFunction,
        /// Its arguments.
        args: Vec<usize>,
    },
}
