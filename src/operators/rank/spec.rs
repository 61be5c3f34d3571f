//! What is ranked, how, and what of it is shown.

use arrow::compute::SortOptions;

use crate::types::Schema;

/// A column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortColumn {
    /// Column of the input.
    pub column: usize,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`.
    pub nulls_first: bool,
}

impl SortColumn {
    /// Arrow's words for it.
    #[must_use]
    pub fn options(&self) -> SortOptions {
        SortOptions {
            descending: self.descending,
            nulls_first: self.nulls_first,
        }
    }
}

/// The last rank of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankEnd {
    /// This rank.
    Constant(u64),
    /// What this column says in the first row of a partition.
    Column(usize),
}

/// What the input is known to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankStrategy {
    /// Rows are added only.
    AppendFast,
    /// Rows are added, and those that agree on these columns replaced by rows that sort no later.
    UpdateFast(Vec<usize>),
    /// Anything.
    Retract,
}

/// How rows are ranked.
#[derive(Debug, Clone)]
pub struct RankSpec {
    /// Columns of the input.
    pub schema: Schema,
    /// `PARTITION BY`.
    pub partition_by: Vec<usize>,
    /// `ORDER BY`; without columns, by arrival (also for processing time).
    pub order_by: Vec<SortColumn>,
    /// What the input is known to do.
    pub strategy: RankStrategy,
    /// The first rank of the output, from 1.
    pub rank_start: u64,
    /// The last rank of the output.
    pub rank_end: RankEnd,
    /// Whether the output has the rank, a `BIGINT`, as a last column.
    pub output_rank: bool,
    /// Whether the reader wants `-U`.
    pub generate_update_before: bool,
    /// `table.exec.state.ttl`, ms.
    pub ttl_ms: Option<i64>,
    /// Columns of the output.
    pub output: Schema,
}

impl RankSpec {
    /// `ORDER BY order_by LIMIT fetch OFFSET offset`; without `order_by`, `LIMIT` alone.
    #[must_use]
    pub fn limit(
        schema: Schema,
        order_by: Vec<SortColumn>,
        strategy: RankStrategy,
        offset: u64,
        fetch: u64,
    ) -> Self {
        Self {
            output: schema.clone(),
            schema,
            partition_by: Vec::new(),
            order_by,
            strategy,
            rank_start: offset.saturating_add(1),
            rank_end: RankEnd::Constant(offset.saturating_add(fetch)),
            output_rank: false,
            generate_update_before: true,
            ttl_ms: None,
        }
    }
}
