//! Lookup joins: the right side is a table that is asked for the rows of each key.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use super::build::{check_metadata, describe, identity};
use super::join::join_type;
use super::keys::{Key, is_subset, normalized, upsert_keys};
use super::{Planner, StreamNode, StreamPlan};
use crate::catalog::TableDefinition;
use crate::config::{Configuration, parse_duration};
use crate::connectors::TableSource;
use crate::connectors::lookup::{Retry, TableLookup};
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::operators::join::JoinType;
use crate::operators::lookup_join::{AsyncLookup, LookupTable};
use crate::plan::binder::and;
use crate::plan::logical::{JoinKind, LogicalNode, LogicalPlan, Scan};
use crate::plan::rewrite::split;
use crate::types::{Column, Schema};

/// `LookupJoin`.
#[derive(Debug, Clone)]
pub struct LookupJoinNode {
    /// Inner or left.
    pub join_type: JoinType,
    /// The right table.
    pub table: Arc<TableDefinition>,
    /// Its options with hints, to tell equal lookups.
    pub options: IndexMap<String, String>,
    /// How its rows are found and what is made of them.
    pub lookup: LookupTable,
    /// Its columns for the join.
    pub right: Schema,
    /// What else must hold of a pair, over left and right columns.
    pub condition: Option<Expr>,
    /// Whether a left row has one row of the table at most: its primary key is looked up.
    pub unique: bool,
    /// Whether lookups run beside the task.
    pub asynchronous: Option<AsyncLookup>,
    /// Whether rows of one key go to one subtask.
    pub shuffle: bool,
    /// Columns that tell left rows apart, when it is remembered what each was joined with.
    pub materialize: Option<Key>,
}

impl LookupJoinNode {
    /// The left columns by which rows are spread, if they are.
    #[must_use]
    pub fn spread_by(&self) -> Option<Key> {
        if self.materialize.is_some() {
            return self.materialize.clone();
        }
        let columns = self.lookup.keys.iter().map(|(_, value)| value.as_column());
        let columns: Option<Key> = columns.collect();
        columns.filter(|keys| self.shuffle && !keys.is_empty())
    }

    /// Whether every left row comes out exactly once: then a new version of a row replaces the old
    /// one by itself.
    pub(super) fn keeps_rows(&self) -> bool {
        self.unique && self.join_type == JoinType::Left
    }
}

impl Planner<'_> {
    pub(super) fn build_lookup_join(
        &self,
        left: StreamPlan,
        right: &LogicalPlan,
        kind: JoinKind,
        on: Option<&Expr>,
        hint: &IndexMap<String, String>,
        schema: Schema,
    ) -> Result<StreamPlan> {
        let hint = LookupHint::parse(hint)?;
        let dimension = Dimension::of(right)?;
        let table = Arc::clone(&dimension.scan.table);
        let lookup = self.lookup_of(dimension.scan)?;
        let width = left.schema.len();
        let parts = Condition::split(on, width, &dimension, &table)?;

        let columns = dimension.scan_columns();
        let plain = dimension.exprs.len() == columns.len()
            && dimension
                .exprs
                .iter()
                .enumerate()
                .all(|(i, e)| e.as_column() == Some(i));
        let filter: Vec<Expr> = dimension
            .filter
            .iter()
            .cloned()
            .chain(parts.filter)
            .collect();
        let primary_key = dimension.primary_key();
        let looked_up: Vec<usize> = parts.keys.iter().map(|(column, _)| *column).collect();
        let unique = primary_key
            .as_ref()
            .is_some_and(|key| is_subset(key, &looked_up));
        let projection = dimension.scan.projection.clone();
        let keys = parts
            .keys
            .into_iter()
            .map(|(column, value)| (projection[column], value))
            .collect();
        let node = LookupJoinNode {
            join_type: join_type(kind),
            table,
            options: dimension.scan.options.clone(),
            asynchronous: hint.asynchronous(&lookup, left.mode.is_append(), self.config)?,
            lookup: LookupTable {
                source: lookup.source,
                keys,
                projection,
                columns,
                filter: (!filter.is_empty()).then(|| and(filter)),
                computed: (!plain).then(|| dimension.exprs.clone()),
                cache: lookup.cache,
                retry: hint.retry,
            },
            right: right.schema.clone(),
            condition: parts.rest,
            unique,
            shuffle: hint.shuffle,
            materialize: None,
        };
        let unique_keys = match (unique, primary_key) {
            (true, _) => left.unique_keys.clone(),
            (false, Some(key)) => dimension.with_key(&left, &key),
            (false, None) => Vec::new(),
        };
        let mut schema = schema;
        for (i, column) in schema.columns.iter_mut().enumerate() {
            column.time = left.schema.columns.get(i).and_then(|c| c.time);
        }
        Ok(StreamPlan {
            mode: left.mode,
            unique_keys,
            node: StreamNode::LookupJoin(Box::new(node)),
            inputs: vec![left],
            schema,
        })
    }

    fn lookup_of(&self, scan: &Scan) -> Result<TableLookup> {
        let table = &scan.table;
        let description = describe(table, &scan.options, self.config)?;
        let source: Arc<dyn TableSource> = self.connectors.source(&description)?;
        check_metadata(table, &source.metadata())?;
        source.lookup().ok_or_else(|| {
            let connector = scan.options.get("connector").map_or("", String::as_str);
            cannot_look_up(table.primary_key.is_some()).hint(format!(
                "tables of the connector '{connector}' cannot be looked up; declare PRIMARY KEY and \
                 WATERMARK on the right table and join at the row time of the left one"
            ))
        })
    }
}

/// The refusal of a right side that is no table to look up.
fn cannot_look_up(has_key: bool) -> Error {
    Error::plan(match has_key {
        true => "Processing-time temporal join is not supported yet.",
        false => {
            "Temporal Table Join requires primary key in versioned table, but no primary key can be \
             found."
        }
    })
}

/// The right side of a lookup join.
struct Dimension<'a> {
    scan: &'a Scan,
    schema: &'a Schema,
    /// What must hold of a row, over the scan's columns.
    filter: Vec<Expr>,
    /// Its columns, over the scan's.
    exprs: Vec<Expr>,
}

impl<'a> Dimension<'a> {
    fn of(plan: &'a LogicalPlan) -> Result<Self> {
        match &plan.node {
            LogicalNode::Scan(scan) => Ok(Self {
                scan,
                schema: &plan.schema,
                filter: Vec::new(),
                exprs: identity(&plan.schema),
            }),
            LogicalNode::WatermarkAssigner { input, .. } => Self::of(input),
            LogicalNode::Filter { input, predicate } => {
                let mut below = Self::of(input)?;
                let predicate = below.over_scan(predicate.clone());
                below.filter.extend(split(predicate));
                Ok(below)
            }
            LogicalNode::Project { input, exprs } => {
                let mut below = Self::of(input)?;
                below.exprs = exprs.iter().map(|e| below.over_scan(e.clone())).collect();
                Ok(below)
            }
            _ => Err(cannot_look_up(false)
                .hint("a table, or a view that selects rows and columns of one, can be looked up")),
        }
    }

    /// An expression over this side's columns, over the scan's.
    fn over_scan(&self, e: Expr) -> Expr {
        e.replace_columns(&|i, _| self.exprs[i].clone())
    }

    fn scan_columns(&self) -> Schema {
        let stored: Vec<_> = self.scan.table.stored_columns().collect();
        let columns = self.scan.projection.iter().map(|i| {
            let column = stored[*i];
            Column::new(column.name.clone(), column.data_type.clone())
        });
        Schema::new(columns.collect())
    }

    /// The table's primary key, as columns of the scan.
    fn primary_key(&self) -> Option<Key> {
        let key = self.scan.table.primary_key.as_ref()?;
        let columns = self.scan_columns();
        key.columns.iter().map(|c| columns.index_of(c)).collect()
    }

    /// Keys of pairs of a left row and one of several right ones.
    fn with_key(&self, left: &StreamPlan, key: &[usize]) -> Vec<Key> {
        let width = left.schema.len();
        let output = |column: &usize| {
            let mut exprs = self.exprs.iter();
            Some(width + exprs.position(|e| e.as_column() == Some(*column))?)
        };
        let Some(key) = key.iter().map(output).collect::<Option<Key>>() else {
            return Vec::new();
        };
        let pairs = left.unique_keys.iter();
        normalized(pairs.map(|l| [l.as_slice(), &key].concat()).collect())
    }
}

/// The condition of a lookup join taken apart.
struct Condition {
    /// The scan's columns that rows are found by, and the values: constants first.
    keys: Vec<(usize, Expr)>,
    /// What concerns the right side only, over the scan's columns.
    filter: Vec<Expr>,
    rest: Option<Expr>,
}

impl Condition {
    fn split(
        on: Option<&Expr>,
        width: usize,
        dimension: &Dimension<'_>,
        table: &TableDefinition,
    ) -> Result<Self> {
        let (mut keys, mut filter, mut rest) =
            (Vec::<(usize, Expr)>::new(), Vec::new(), Vec::new());
        for conjunct in on.cloned().map(split).unwrap_or_default() {
            let columns = conjunct.columns();
            let on_right = columns.first().is_some_and(|first| *first >= width);
            refuse_null_safe(&conjunct, width)?;
            let key = equality(&conjunct, width, dimension);
            let key = key.filter(|(column, _)| keys.iter().all(|(c, _)| c != column));
            let covered = key.is_some();
            let approximate = key
                .as_ref()
                .is_some_and(|(_, value)| value.data_type.kind.is_approximate());
            keys.extend(key);
            if on_right {
                let over_right = conjunct.remap_columns(&|i| i - width);
                filter.push(dimension.over_scan(over_right));
            } else if !covered || approximate {
                // NaN is a key, but equal to nothing
                rest.push(conjunct);
            }
        }
        if keys.is_empty() {
            return Err(Error::plan(format!(
                "Temporal table join requires an equality condition on fields of table [{}].",
                table.path
            ))
            .hint("write ON left.column = table.column: rows are found by the value of a column"));
        }
        keys.sort_by_key(|(column, value)| (!value.columns().is_empty(), *column));
        Ok(Self {
            keys,
            filter,
            rest: (!rest.is_empty()).then(|| and(rest)),
        })
    }
}

/// `value = column`, where the column is one of the scan and the value is a constant or made of the
/// left row.
fn equality(e: &Expr, width: usize, dimension: &Dimension<'_>) -> Option<(usize, Expr)> {
    let ExprKind::Compare {
        op: CompareOp::Eq,
        left,
        right,
    } = &e.kind
    else {
        return None;
    };
    let key = |column: &Expr, value: &Expr| {
        let right = column.as_column()?.checked_sub(width)?;
        let column = dimension.exprs.get(right)?.as_column()?;
        let of_left = value.columns().iter().all(|i| *i < width);
        let kind = &dimension.schema.columns.get(column)?.data_type.kind;
        let strings = kind.is_string() && value.data_type.kind.is_string();
        let fits = strings || *kind == value.data_type.kind;
        (of_left && fits && value.is_deterministic()).then(|| (column, value.clone()))
    };
    key(right, left).or_else(|| key(left, right))
}

fn refuse_null_safe(e: &Expr, width: usize) -> Result<()> {
    let ExprKind::Compare {
        op: CompareOp::NotDistinct,
        left,
        right,
    } = &e.kind
    else {
        return Ok(());
    };
    let sides = |e: &Expr| {
        let columns = e.columns();
        (
            columns.iter().any(|i| *i < width),
            columns.iter().any(|i| *i >= width),
        )
    };
    if !matches!(
        (sides(left), sides(right)),
        ((true, false), (false, true)) | ((false, true), (true, false))
    ) {
        return Ok(());
    }
    Err(Error::plan(
        "LookupJoin doesn't support join condition contains 'a IS NOT DISTINCT FROM b' (or \
         alternative '(a = b) or (a IS NULL AND b IS NULL)')",
    )
    .hint("join with =: a table cannot be asked for the rows of NULL"))
}

/// The `LOOKUP` hint of a table.
#[derive(Debug, Default)]
struct LookupHint {
    asynchronous: Option<bool>,
    ordered: Option<bool>,
    capacity: Option<usize>,
    timeout: Option<Duration>,
    retry: Option<Retry>,
    shuffle: bool,
}

impl LookupHint {
    fn parse(options: &IndexMap<String, String>) -> Result<Self> {
        let get = |key: &str| options.get(key).map(String::as_str);
        let boolean = |key: &str| match get(key) {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(text) => Err(unparsed(text, key)),
        };
        let duration = |key: &str| {
            get(key)
                .map(|text| {
                    let ms = parse_duration(text).and_then(|ms| u64::try_from(ms).ok());
                    ms.map(Duration::from_millis)
                        .ok_or_else(|| unparsed(text, key))
                })
                .transpose()
        };
        let positive = |key: &str| {
            get(key)
                .map(|text| match text.parse::<u32>() {
                    Ok(0) => Err(Error::plan(format!(
                        "Invalid LOOKUP hint option: {key} value should be positive integer but was 0"
                    ))),
                    Ok(n) => Ok(n),
                    Err(_) => Err(unparsed(text, key)),
                })
                .transpose()
        };
        let ordered = match get("output-mode") {
            None => None,
            Some(text) if text.eq_ignore_ascii_case("ordered") => Some(true),
            Some(text) if text.eq_ignore_ascii_case("allow_unordered") => Some(false),
            Some(text) => return Err(unparsed(text, "output-mode")),
        };
        let retry = match (
            get("retry-predicate"),
            get("retry-strategy"),
            duration("fixed-delay")?,
            positive("max-attempts")?,
        ) {
            (None, None, None, None) => None,
            (Some(predicate), Some(strategy), Some(delay), Some(attempts)) => {
                for (key, value, known) in [
                    ("retry-predicate", predicate, "lookup_miss"),
                    ("retry-strategy", strategy, "fixed_delay"),
                ] {
                    if !value.eq_ignore_ascii_case(known) {
                        return Err(Error::plan(format!(
                            "Invalid LOOKUP hint option: unsupported {key} '{value}', only '{known}' \
                             is supported currently"
                        )));
                    }
                }
                Some(Retry { delay, attempts })
            }
            _ => {
                return Err(Error::plan(
                    "Invalid LOOKUP hint: retry options can be both null or all not null",
                )
                .hint(
                    "give 'retry-predicate', 'retry-strategy', 'fixed-delay' and 'max-attempts', or \
                     none of them",
                ));
            }
        };
        Ok(Self {
            asynchronous: boolean("async")?,
            ordered,
            capacity: positive("capacity")?.map(|n| n as usize),
            timeout: duration("timeout")?,
            retry,
            shuffle: boolean("shuffle")?.unwrap_or(false),
        })
    }

    /// How the lookups run beside the task, if they do: the hint's word before the settings'.
    fn asynchronous(
        &self,
        lookup: &TableLookup,
        append_only: bool,
        config: &Configuration,
    ) -> Result<Option<AsyncLookup>> {
        if !self.asynchronous.unwrap_or(lookup.asynchronous) || !lookup.asynchronous {
            return Ok(None);
        }
        let capacity = config.int("table.exec.async-lookup.buffer-capacity");
        let capacity = capacity.and_then(|n| usize::try_from(n).ok());
        let timeout = config.duration_ms("table.exec.async-lookup.timeout");
        let timeout = timeout.and_then(|ms| u64::try_from(ms).ok());
        let unordered = config.is("table.exec.async-lookup.output-mode", "ALLOW_UNORDERED");
        Ok(Some(AsyncLookup {
            // an update must not overtake the insertion
            ordered: self.ordered.unwrap_or(!unordered) || !append_only,
            capacity: self.capacity.or(capacity).unwrap_or(100).max(1),
            timeout: self
                .timeout
                .unwrap_or(Duration::from_millis(timeout.unwrap_or(180_000))),
        }))
    }
}

fn unparsed(text: &str, key: &str) -> Error {
    Error::plan(format!(
        "Invalid LOOKUP hint options: Could not parse value '{text}' for key '{key}'."
    ))
}

/// The details of `LookupJoin` in EXPLAIN.
pub(crate) fn explain(plan: &StreamPlan, node: &LookupJoinNode, join: &str) -> String {
    let left = plan.input();
    let inputs = left.schema.names();
    let columns = node.lookup.columns.names();
    let stored: Vec<_> = node.table.stored_columns().map(|c| &c.name).collect();
    let keys: Vec<_> = node
        .lookup
        .keys
        .iter()
        .map(|(column, value)| format!("{}={}", stored[*column], value.to_sql(&inputs)))
        .collect();
    let mut parts = vec![
        format!("table=[{}]", node.table.path),
        format!("joinType=[{join}]"),
        format!("lookup=[{}]", keys.join(", ")),
    ];
    if let Some(filter) = &node.lookup.filter {
        parts.push(format!("where=[{}]", filter.to_sql(&columns)));
    }
    if let Some(condition) = &node.condition {
        let all = left.schema.join(&node.right).names();
        parts.push(format!("joinCondition=[{}]", condition.to_sql(&all)));
    }
    parts.push(format!("select=[{}]", plan.schema.names().join(", ")));
    if node.materialize.is_some() {
        parts.push("upsertMaterialize=[true]".into());
    }
    if let Some(options) = &node.asynchronous {
        let order = if options.ordered {
            "ORDERED"
        } else {
            "UNORDERED"
        };
        parts.push(format!(
            "async=[{order}, KEY_ORDERED: false, {}ms, {}]",
            options.timeout.as_millis(),
            options.capacity
        ));
    }
    if let Some(retry) = &node.lookup.retry {
        parts.push(format!(
            "retry=[lookup_miss, FIXED_DELAY, {}ms, {}]",
            retry.delay.as_millis(),
            retry.attempts
        ));
    }
    if node.shuffle {
        parts.push("shuffle=[true]".into());
    }
    if let Some(key) = upsert_keys(left).first()
        && !left.mode.is_append()
    {
        parts.push(format!("upsertKey=[{key:?}]"));
    }
    parts.join(", ")
}
