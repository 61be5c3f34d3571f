//! The stream plan: which operators run, what changelog each gives, and by which keys.
//!
//! [`build`] makes it bottom-up from the logical plan: operators, kinds of changes, unique keys.
//! [`changelog`] then goes top-down and settles who needs `-U`: it puts in `ChangelogNormalize` and
//! `DropUpdateBefore`. [`sink`] fits a plan to the table that it is written to.

mod build;
mod changelog;
mod join;
mod keys;
mod lookup_join;
mod nondeterminism;
mod over;
mod rank;
mod sink;
mod time_join;
mod window;

use std::sync::Arc;

use indexmap::IndexMap;

pub use build::Planner;
pub(crate) use build::describe;
pub(crate) use changelog::describe as describe_updates;
pub use keys::Key;
pub(crate) use keys::upsert_keys;
pub use lookup_join::LookupJoinNode;
pub(crate) use lookup_join::explain as explain_lookup_join;
pub use sink::{ConflictAction, SinkTarget};

use crate::catalog::TableDefinition;
use crate::changelog::ChangelogMode;
use crate::connectors::{TableSink, TableSource};
use crate::expr::Expr;
use crate::operators::deduplicate::{DeduplicateOrder, Keep};
use crate::operators::group_window_aggregate::EmitStrategy;
use crate::operators::join::{JoinType, UniqueKey};
use crate::operators::over_aggregate::{OverCall, OverFrame, OverOrder};
use crate::operators::rank::RankStrategy;
use crate::operators::window_aggregate::{WindowProperty, WindowSource};
use crate::operators::windowing::{WindowTime, Windowing};
use crate::plan::logical::{AggregateCall, JoinKind, PushedFields, RankEnd, SortKey, TableCall};
use crate::plan::match_recognize::MatchSpec;
use crate::types::Schema;

/// A node of the stream plan with what is known of its output.
#[derive(Debug, Clone)]
pub struct StreamPlan {
    /// What it does.
    pub node: StreamNode,
    /// Where its rows come from.
    pub inputs: Vec<StreamPlan>,
    /// Columns of its output.
    pub schema: Schema,
    /// Kinds of its output.
    pub mode: ChangelogMode,
    /// Sets of columns that no two rows of the current table agree in.
    pub unique_keys: Vec<Key>,
}

impl StreamPlan {
    /// The only input.
    ///
    /// # Panics
    /// When there is none: a bug.
    #[must_use]
    pub fn input(&self) -> &StreamPlan {
        self.inputs.first().expect("the node has an input")
    }
}

/// One side of a join.
#[derive(Debug, Clone)]
pub struct JoinSide {
    /// Key columns.
    pub keys: Vec<usize>,
    /// What is known of its rows.
    pub unique_key: UniqueKey,
    /// State TTL, ms.
    pub ttl: Option<i64>,
}

/// Keys and times of the sides of a join that is bounded by time.
#[derive(Debug, Clone)]
pub struct TimeJoinKeys {
    /// Left key columns.
    pub left: Vec<usize>,
    /// Right key columns.
    pub right: Vec<usize>,
    /// By key column: NULL matches NULL.
    pub null_safe: Vec<bool>,
    /// Left time column.
    pub left_time: usize,
    /// Right time column.
    pub right_time: usize,
}

/// The operators of a stream plan, by Flink's nouns.
#[derive(Debug, Clone)]
pub enum StreamNode {
    /// `TableSourceScan`.
    TableSourceScan {
        /// The table.
        table: Arc<TableDefinition>,
        /// Its source.
        source: Arc<dyn TableSource>,
        /// The columns read.
        projection: Vec<usize>,
        /// The fields read in their place, and the rows.
        pushed: Option<PushedFields>,
        /// Options with hints, to tell equal scans.
        options: IndexMap<String, String>,
    },
    /// `Values`.
    Values {
        /// Constant rows.
        rows: Vec<Vec<Expr>>,
    },
    /// `Calc`.
    Calc {
        /// The predicate.
        condition: Option<Expr>,
        /// The columns.
        projection: Vec<Expr>,
    },
    /// `WatermarkAssigner`.
    WatermarkAssigner {
        /// The row-time column.
        rowtime: usize,
        /// The watermark of a row.
        watermark: Expr,
        /// Options of the table.
        options: IndexMap<String, String>,
    },
    /// `Expand`.
    Expand {
        /// NULLed columns and id of each set.
        sets: Vec<(Vec<usize>, i64)>,
    },
    /// `GroupAggregate`.
    GroupAggregate {
        /// Keys.
        keys: Vec<usize>,
        /// Calls.
        calls: Vec<AggregateCall>,
        /// State TTL, ms.
        ttl: Option<i64>,
    },
    /// `Join`.
    Join {
        /// Which rows it gives.
        join_type: JoinType,
        /// Left side.
        left: JoinSide,
        /// Right side.
        right: JoinSide,
        /// By key column: NULL matches NULL.
        null_safe: Vec<bool>,
        /// What else must hold of a pair.
        condition: Option<Expr>,
    },
    /// `IntervalJoin`.
    IntervalJoin {
        /// Which rows it gives.
        join_type: JoinType,
        /// Key columns of both sides.
        keys: TimeJoinKeys,
        /// Event time; else processing time.
        event_time: bool,
        /// Least distance of the left time from the right one, ms.
        lower: i64,
        /// Greatest distance, ms.
        upper: i64,
        /// What else must hold of a pair.
        condition: Option<Expr>,
    },
    /// `WindowJoin`; the times are the columns of the windows' ends.
    WindowJoin {
        /// Which rows it gives.
        join_type: JoinType,
        /// Key columns of both sides beside the window.
        keys: TimeJoinKeys,
        /// The windows.
        windowing: Windowing,
        /// What else must hold of a pair.
        condition: Option<Expr>,
    },
    /// `TemporalJoin`.
    TemporalJoin {
        /// Inner or left.
        join_type: JoinType,
        /// Key columns of both sides.
        keys: TimeJoinKeys,
        /// What else must hold of a pair.
        condition: Option<Expr>,
    },
    /// `LookupJoin`.
    LookupJoin(Box<LookupJoinNode>),
    /// `WindowRank`.
    WindowRank {
        /// Column of the window's end.
        window_end: usize,
        /// The windows.
        windowing: Windowing,
        /// PARTITION BY beside the window.
        partition: Vec<usize>,
        /// ORDER BY.
        order: Vec<SortKey>,
        /// First row number.
        start: u64,
        /// Last row number.
        end: u64,
        /// Whether the number is an output column.
        output_number: bool,
    },
    /// `WindowDeduplicate`.
    WindowDeduplicate {
        /// Column of the window's end.
        window_end: usize,
        /// The windows.
        windowing: Windowing,
        /// The key beside the window.
        key: Vec<usize>,
        /// The row time.
        rowtime: usize,
        /// Which row.
        keep: Keep,
    },
    /// `Correlate`.
    Correlate {
        /// The table function.
        call: TableCall,
        /// Inner or left.
        kind: JoinKind,
        /// What must hold of a pair.
        condition: Option<Expr>,
    },
    /// `OverAggregate`.
    OverAggregate {
        /// PARTITION BY.
        partition: Vec<usize>,
        /// ORDER BY.
        order: OverOrder,
        /// The frame.
        frame: OverFrame,
        /// The calls.
        calls: Vec<OverCall>,
    },
    /// `Union`.
    Union,
    /// `Rank`, `SortLimit` and `Limit`.
    Rank {
        /// The noun.
        noun: &'static str,
        /// PARTITION BY.
        partition: Vec<usize>,
        /// ORDER BY.
        order: Vec<SortKey>,
        /// First row number.
        start: u64,
        /// Last row number.
        end: RankEnd,
        /// Whether the number is an output column.
        output_number: bool,
        /// What the input is known to do.
        strategy: RankStrategy,
    },
    /// `Deduplicate`.
    Deduplicate {
        /// The key.
        key: Vec<usize>,
        /// The time.
        order: DeduplicateOrder,
        /// Which row.
        keep: Keep,
        /// Whether only `+I` comes out.
        insert_only: bool,
    },
    /// `TemporalSort`.
    TemporalSort {
        /// Keys, the time attribute first.
        keys: Vec<SortKey>,
    },
    /// `Match`.
    Match {
        /// The pattern.
        spec: Arc<MatchSpec>,
    },
    /// `WindowTableFunction`.
    WindowTableFunction {
        /// The windows.
        windowing: Windowing,
        /// The time.
        time: WindowTime,
        /// PARTITION BY of SESSION.
        partition: Vec<usize>,
    },
    /// `WindowAggregate`.
    WindowAggregate {
        /// Keys beside the window.
        keys: Vec<usize>,
        /// Calls.
        calls: Vec<AggregateCall>,
        /// Where the window comes from.
        source: WindowSource,
        /// The windows.
        windowing: Windowing,
        /// Columns of the window behind keys and calls.
        properties: Vec<WindowProperty>,
        /// When the deprecated group windows fire; `None` for windows of a table function.
        emit: Option<EmitStrategy>,
    },
    /// `ChangelogNormalize`.
    ChangelogNormalize {
        /// The key.
        key: Vec<usize>,
        /// Rows for which it is not true do not exist for the output.
        filter: Option<Expr>,
    },
    /// `DropUpdateBefore`.
    DropUpdateBefore,
    /// `ConstraintEnforcer`.
    ConstraintEnforcer,
    /// `SinkUpsertMaterializer`.
    SinkUpsertMaterializer {
        /// The sink's primary key.
        primary_key: Vec<usize>,
        /// The query's upsert key.
        upsert_key: Option<Vec<usize>>,
        /// What happens on a conflict.
        action: ConflictAction,
    },
    /// `Sink`.
    Sink {
        /// The table.
        table: Arc<TableDefinition>,
        /// Its sink.
        sink: Arc<dyn TableSink>,
        /// The primary key, as columns of the input.
        primary_key: Vec<usize>,
    },
    /// The reader of a query.
    Collect,
}

impl StreamNode {
    /// The noun in EXPLAIN, metrics and errors.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Self::TableSourceScan { .. } => "TableSourceScan",
            Self::Values { .. } => "Values",
            Self::Calc { .. } => "Calc",
            Self::WatermarkAssigner { .. } => "WatermarkAssigner",
            Self::Expand { .. } => "Expand",
            Self::GroupAggregate { .. } => "GroupAggregate",
            Self::Join { .. } => "Join",
            Self::IntervalJoin { .. } => "IntervalJoin",
            Self::WindowJoin { .. } => "WindowJoin",
            Self::TemporalJoin { .. } => "TemporalJoin",
            Self::LookupJoin(_) => "LookupJoin",
            Self::WindowRank { .. } => "WindowRank",
            Self::WindowDeduplicate { .. } => "WindowDeduplicate",
            Self::Correlate { .. } => "Correlate",
            Self::OverAggregate { .. } => "OverAggregate",
            Self::Union => "Union",
            Self::Rank { noun, .. } => noun,
            Self::Deduplicate { .. } => "Deduplicate",
            Self::TemporalSort { .. } => "TemporalSort",
            Self::Match { .. } => "Match",
            Self::WindowTableFunction { .. } => "WindowTableFunction",
            Self::WindowAggregate { emit: Some(_), .. } => "GroupWindowAggregate",
            Self::WindowAggregate { .. } => "WindowAggregate",
            Self::ChangelogNormalize { .. } => "ChangelogNormalize",
            Self::DropUpdateBefore => "DropUpdateBefore",
            Self::ConstraintEnforcer => "ConstraintEnforcer",
            Self::SinkUpsertMaterializer { .. } => "SinkUpsertMaterializer",
            Self::Sink { .. } => "Sink",
            Self::Collect => "Collect",
        }
    }
}
