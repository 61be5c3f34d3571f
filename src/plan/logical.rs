//! The bound query: relational operators over typed expressions, before physical choices.
//!
//! The binder makes it, the rewrites of [`super::rewrite`] improve it, and [`super::physical`]
//! turns it into the stream plan. Expressions refer to the columns of their node's input by
//! position; a join's condition to those of the left input followed by the right one's.

use std::sync::Arc;

use indexmap::IndexMap;

use super::match_recognize::MatchSpec;
use crate::aggregates::AggregateFunction;
use crate::catalog::TableDefinition;
use crate::connectors::pushdown::{FieldPath, ValueFilter};
use crate::expr::Expr;
use crate::functions::table::TableFunctionRef;
use crate::operators::windowing::WindowKind;
use crate::types::{DataType, Schema};

/// A relation: a node and its output columns.
#[derive(Debug, Clone)]
pub struct LogicalPlan {
    /// What it does.
    pub node: LogicalNode,
    /// Its output.
    pub schema: Schema,
}

/// How two inputs are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Matching pairs.
    Inner,
    /// Also left rows without a match.
    Left,
    /// Also right rows without a match.
    Right,
    /// Both.
    Full,
    /// Left rows with a match.
    Semi,
    /// Left rows without a match.
    Anti,
}

impl JoinKind {
    /// Whether the output has the left input's columns only.
    #[must_use]
    pub fn is_semi_or_anti(self) -> bool {
        matches!(self, Self::Semi | Self::Anti)
    }

    /// Whether left columns may be NULL in the output though they are not in the input.
    #[must_use]
    pub fn nulls_left(self) -> bool {
        matches!(self, Self::Right | Self::Full)
    }

    /// Whether right columns may be NULL in the output though they are not in the input.
    #[must_use]
    pub fn nulls_right(self) -> bool {
        matches!(self, Self::Left | Self::Full)
    }

    /// Flink's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inner => "InnerJoin",
            Self::Left => "LeftOuterJoin",
            Self::Right => "RightOuterJoin",
            Self::Full => "FullOuterJoin",
            Self::Semi => "LeftSemiJoin",
            Self::Anti => "LeftAntiJoin",
        }
    }
}

/// One key of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// Input column.
    pub column: usize,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`; Flink's default: first when ascending, last when descending.
    pub nulls_first: bool,
}

/// A call of an aggregate function in GROUP BY.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// The function.
    pub function: AggregateFunction,
    /// Arguments, as input columns.
    pub args: Vec<usize>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `FILTER (WHERE ..)`, as a BOOLEAN input column.
    pub filter: Option<usize>,
    /// Result type.
    pub data_type: DataType,
    /// Output column name.
    pub name: String,
}

/// What is computed over a window of rows.
#[derive(Debug, Clone)]
pub enum OverFunction {
    /// An aggregate function.
    Aggregate(AggregateFunction),
    /// `ROW_NUMBER()`.
    RowNumber,
    /// `RANK()`.
    Rank,
    /// `DENSE_RANK()`.
    DenseRank,
    /// `LAG(x [, n [, default]])`.
    Lag {
        /// How many rows before.
        offset: usize,
        /// The value where there is no such row; NULL without.
        default: Option<datafusion::common::ScalarValue>,
    },
}

/// Where a frame starts or ends, relative to the current row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameBound {
    /// `UNBOUNDED PRECEDING`.
    UnboundedPreceding,
    /// `n PRECEDING`: rows, or ms for RANGE.
    Preceding(i64),
    /// `CURRENT ROW`.
    CurrentRow,
    /// Anything after the current row.
    Following,
}

/// A frame of OVER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// `ROWS`; otherwise `RANGE`.
    pub rows: bool,
    /// Start.
    pub start: FrameBound,
    /// End.
    pub end: FrameBound,
}

/// A call of a function OVER a window.
#[derive(Debug, Clone)]
pub struct OverCall {
    /// The function.
    pub function: OverFunction,
    /// Arguments, as input columns.
    pub args: Vec<usize>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// PARTITION BY columns.
    pub partition: Vec<usize>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// The frame.
    pub frame: Frame,
    /// Result type.
    pub data_type: DataType,
}

/// A windowing table function applied to a relation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowSpec {
    /// The windows.
    pub shape: WindowKind,
    /// The time attribute, as a column of the input.
    pub time_column: usize,
    /// PARTITION BY columns of SESSION.
    pub partition: Vec<usize>,
}

/// The table function of a lateral join.
#[derive(Debug, Clone)]
pub enum TableCall {
    /// `UNNEST(expr)`.
    Unnest {
        /// An ARRAY, MAP or MULTISET over the left input's columns.
        collection: Expr,
        /// `WITH ORDINALITY`.
        ordinality: bool,
    },
    /// A table function with arguments over the left input's columns.
    Function {
        /// The function.
        function: TableFunctionRef,
        /// Its arguments.
        args: Vec<Expr>,
    },
}

/// The end of a Top-N's range of row numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankEnd {
    /// A number.
    Constant(u64),
    /// The number in this column of the input.
    Variable(usize),
}

/// A base table as one query uses it.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The table.
    pub table: Arc<TableDefinition>,
    /// Its options with hints merged in.
    pub options: IndexMap<String, String>,
    /// The columns read: indices into [`TableDefinition::stored_columns`].
    pub projection: Vec<usize>,
    /// Set when the source is asked for less than whole columns and all rows: the fields, in place of
    /// `projection`, and the rows.
    pub pushed: Option<PushedFields>,
}

/// What a source with [`Pushdown`](crate::connectors::pushdown::Pushdown) is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedFields {
    /// One a column.
    pub fields: Vec<FieldPath>,
    /// The rows that are looked at.
    pub filter: Option<ValueFilter>,
}

/// The relational operators.
#[derive(Debug, Clone)]
pub enum LogicalNode {
    /// Reads physical and metadata columns of a table.
    Scan(Scan),
    /// Constant rows; an empty list of rows is an empty relation.
    Values {
        /// Rows of expressions without columns.
        rows: Vec<Vec<Expr>>,
    },
    /// Computes columns.
    Project {
        /// Input.
        input: Box<LogicalPlan>,
        /// One expression a column.
        exprs: Vec<Expr>,
    },
    /// Keeps the rows for which the predicate is true.
    Filter {
        /// Input.
        input: Box<LogicalPlan>,
        /// The predicate.
        predicate: Expr,
    },
    /// Makes watermarks from a row-time column.
    WatermarkAssigner {
        /// Input.
        input: Box<LogicalPlan>,
        /// The row-time column.
        column: usize,
        /// The watermark of a row.
        watermark: Expr,
        /// The table's options (emit strategy, idleness).
        options: IndexMap<String, String>,
    },
    /// Repeats each row once for every grouping set, keys outside the set as NULL, with the set's
    /// id in a last column `$e`.
    Expand {
        /// Input.
        input: Box<LogicalPlan>,
        /// For each set: the columns that are set to NULL, and the id.
        sets: Vec<(Vec<usize>, i64)>,
    },
    /// Groups by columns. Output: keys, then calls.
    Aggregate {
        /// Input.
        input: Box<LogicalPlan>,
        /// Keys.
        keys: Vec<usize>,
        /// Calls.
        calls: Vec<AggregateCall>,
        /// State TTL of a hint, ms.
        ttl: Option<i64>,
    },
    /// Groups by a window of the deprecated group-window functions and by columns. Output: keys,
    /// calls, then window_start, window_end and window_time.
    GroupWindowAggregate {
        /// Input.
        input: Box<LogicalPlan>,
        /// The window.
        window: WindowSpec,
        /// Keys.
        keys: Vec<usize>,
        /// Calls.
        calls: Vec<AggregateCall>,
    },
    /// Joins.
    Join {
        /// Left input.
        left: Box<LogicalPlan>,
        /// Right input.
        right: Box<LogicalPlan>,
        /// Kind.
        kind: JoinKind,
        /// Condition; `None` is true.
        on: Option<Expr>,
        /// State TTL of a hint for each side, ms.
        ttl: (Option<i64>, Option<i64>),
    },
    /// Joins what the right table holds for the left row's key at the moment of processing.
    LookupJoin {
        /// Left input.
        left: Box<LogicalPlan>,
        /// Right input: a scan, below projections and filters.
        right: Box<LogicalPlan>,
        /// Inner or left.
        kind: JoinKind,
        /// Condition; `None` is true.
        on: Option<Expr>,
        /// Options of a `LOOKUP` hint for the right table.
        hint: IndexMap<String, String>,
    },
    /// Joins the version of the right table that was valid at the left row's time.
    TemporalJoin {
        /// Left input.
        left: Box<LogicalPlan>,
        /// Right input.
        right: Box<LogicalPlan>,
        /// Inner or left.
        kind: JoinKind,
        /// The left time attribute.
        time_column: usize,
        /// Condition.
        on: Expr,
    },
    /// Applies a table function to each left row. Output: left columns, then the function's.
    Correlate {
        /// Left input.
        input: Box<LogicalPlan>,
        /// The function.
        call: TableCall,
        /// Inner or left.
        kind: JoinKind,
        /// What must hold of a pair.
        condition: Option<Expr>,
    },
    /// All rows of all inputs.
    Union {
        /// Inputs of one schema.
        inputs: Vec<LogicalPlan>,
    },
    /// Adds one column a call.
    Over {
        /// Input.
        input: Box<LogicalPlan>,
        /// Calls.
        calls: Vec<OverCall>,
    },
    /// The first rows by row number in each partition. Output: the input's columns, then the row
    /// number (BIGINT) if asked for.
    Rank {
        /// Input.
        input: Box<LogicalPlan>,
        /// `ROW_NUMBER`, or a rank that physical planning refuses.
        function: OverFunction,
        /// PARTITION BY.
        partition: Vec<usize>,
        /// ORDER BY.
        order: Vec<SortKey>,
        /// First row number, from 1.
        start: u64,
        /// Last row number; `None`, which physical planning refuses, where only the first is bounded.
        end: Option<RankEnd>,
        /// Whether the row number is an output column.
        output_number: bool,
    },
    /// Orders and cuts the whole relation.
    Sort {
        /// Input.
        input: Box<LogicalPlan>,
        /// Keys; none for LIMIT alone.
        keys: Vec<SortKey>,
        /// Rows to skip.
        offset: u64,
        /// Rows to keep.
        fetch: Option<u64>,
    },
    /// Assigns windows: adds window_start, window_end, window_time.
    WindowTableFunction {
        /// Input.
        input: Box<LogicalPlan>,
        /// The windows.
        window: WindowSpec,
    },
    /// Finds patterns.
    Match {
        /// Input.
        input: Box<LogicalPlan>,
        /// The pattern.
        spec: Arc<MatchSpec>,
    },
}

impl LogicalPlan {
    /// A node with its output columns.
    #[must_use]
    pub fn new(node: LogicalNode, schema: Schema) -> Self {
        Self { node, schema }
    }

    /// A projection of `self`; names and time attributes are the caller's business.
    #[must_use]
    pub fn project(self, exprs: Vec<Expr>, schema: Schema) -> Self {
        debug_assert_eq!(exprs.len(), schema.len());
        Self {
            node: LogicalNode::Project {
                input: Box::new(self),
                exprs,
            },
            schema,
        }
    }

    /// A projection to some of the columns.
    #[must_use]
    pub fn project_columns(self, columns: &[usize]) -> Self {
        let identity =
            columns.len() == self.schema.len() && columns.iter().enumerate().all(|(i, c)| i == *c);
        if identity {
            return self;
        }
        let exprs = columns.iter().map(|i| self.column(*i)).collect();
        let schema = self.schema.project(columns);
        self.project(exprs, schema)
    }

    /// The rows of `self` for which `predicate` is true.
    #[must_use]
    pub fn filter(self, predicate: Expr) -> Self {
        let schema = self.schema.clone();
        Self {
            node: LogicalNode::Filter {
                input: Box::new(self),
                predicate,
            },
            schema,
        }
    }

    /// Column `i` as an expression.
    #[must_use]
    pub fn column(&self, i: usize) -> Expr {
        Expr::column(i, self.schema.columns[i].data_type.clone())
    }

    /// The inputs, in order.
    #[must_use]
    pub fn inputs(&self) -> Vec<&LogicalPlan> {
        match &self.node {
            LogicalNode::Scan(_) | LogicalNode::Values { .. } => Vec::new(),
            LogicalNode::Join { left, right, .. }
            | LogicalNode::LookupJoin { left, right, .. }
            | LogicalNode::TemporalJoin { left, right, .. } => vec![left, right],
            LogicalNode::Union { inputs } => inputs.iter().collect(),
            LogicalNode::Project { input, .. }
            | LogicalNode::Filter { input, .. }
            | LogicalNode::WatermarkAssigner { input, .. }
            | LogicalNode::Expand { input, .. }
            | LogicalNode::Aggregate { input, .. }
            | LogicalNode::GroupWindowAggregate { input, .. }
            | LogicalNode::Correlate { input, .. }
            | LogicalNode::Over { input, .. }
            | LogicalNode::Rank { input, .. }
            | LogicalNode::Sort { input, .. }
            | LogicalNode::WindowTableFunction { input, .. }
            | LogicalNode::Match { input, .. } => vec![input],
        }
    }

    /// The inputs, in order, to be changed.
    pub fn inputs_mut(&mut self) -> Vec<&mut LogicalPlan> {
        match &mut self.node {
            LogicalNode::Scan(_) | LogicalNode::Values { .. } => Vec::new(),
            LogicalNode::Join { left, right, .. }
            | LogicalNode::LookupJoin { left, right, .. }
            | LogicalNode::TemporalJoin { left, right, .. } => vec![left, right],
            LogicalNode::Union { inputs } => inputs.iter_mut().collect(),
            LogicalNode::Project { input, .. }
            | LogicalNode::Filter { input, .. }
            | LogicalNode::WatermarkAssigner { input, .. }
            | LogicalNode::Expand { input, .. }
            | LogicalNode::Aggregate { input, .. }
            | LogicalNode::GroupWindowAggregate { input, .. }
            | LogicalNode::Correlate { input, .. }
            | LogicalNode::Over { input, .. }
            | LogicalNode::Rank { input, .. }
            | LogicalNode::Sort { input, .. }
            | LogicalNode::WindowTableFunction { input, .. }
            | LogicalNode::Match { input, .. } => vec![input],
        }
    }

    /// Rewrites every expression of the plan.
    pub fn map_exprs(&mut self, rewrite: &mut dyn FnMut(Expr) -> Expr) {
        let mut each = |e: &mut Expr| *e = rewrite(e.clone());
        match &mut self.node {
            LogicalNode::Values { rows } => rows.iter_mut().flatten().for_each(each),
            LogicalNode::Project { exprs, .. } => exprs.iter_mut().for_each(each),
            LogicalNode::Filter { predicate, .. } => each(predicate),
            LogicalNode::WatermarkAssigner { watermark, .. } => each(watermark),
            LogicalNode::Join { on, .. } => on.iter_mut().for_each(each),
            LogicalNode::LookupJoin { on, .. } => on.iter_mut().for_each(each),
            LogicalNode::TemporalJoin { on, .. } => each(on),
            LogicalNode::Correlate {
                call, condition, ..
            } => {
                condition.iter_mut().for_each(&mut each);
                match call {
                    TableCall::Unnest { collection, .. } => each(collection),
                    TableCall::Function { args, .. } => args.iter_mut().for_each(each),
                }
            }
            _ => {}
        }
        for input in self.inputs_mut() {
            input.map_exprs(rewrite);
        }
    }
}
