//! Logical plan to stream plan, bottom-up.

use std::sync::Arc;

use indexmap::IndexMap;

use super::keys::{self, through_projection};
use super::{StreamNode, StreamPlan};
use crate::catalog::{ColumnKind, TableDefinition};
use crate::changelog::ChangelogMode;
use crate::config::Configuration;
use crate::connectors::pushdown::Pushdown;
use crate::connectors::registry::ConnectorRegistry;
use crate::connectors::{TableDescription, TableSource};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::plan::logical::{AggregateCall, LogicalNode, LogicalPlan, Scan};
use crate::plan::rewrite;
use crate::types::{Column, Schema};

/// Chooses operators.
pub struct Planner<'a> {
    pub(super) connectors: &'a ConnectorRegistry,
    pub(super) config: &'a Configuration,
}

impl<'a> Planner<'a> {
    /// A planner over the connectors and settings of a session.
    #[must_use]
    pub fn new(connectors: &'a ConnectorRegistry, config: &'a Configuration) -> Self {
        Self { connectors, config }
    }

    /// The plan of a query whose reader takes every kind of change (`updates_before`), or is content
    /// without `-U`.
    ///
    /// # Errors
    /// When an operator does not take what its input gives, or a source cannot be made.
    pub fn plan_query(&self, plan: &LogicalPlan, updates_before: bool) -> Result<StreamPlan> {
        let built = self.build_root(plan)?;
        let plan = super::changelog::settle(built, updates_before);
        self.resolve_nondeterminism(plan, updates_before)
    }

    /// Applies the strategy TRY_RESOLVE, if it is set.
    pub(super) fn resolve_nondeterminism(
        &self,
        plan: StreamPlan,
        complete: bool,
    ) -> Result<StreamPlan> {
        let key = "table.optimizer.non-deterministic-update.strategy";
        match self.config.is(key, "TRY_RESOLVE") {
            true => super::nondeterminism::resolve(plan, complete),
            false => Ok(plan),
        }
    }

    /// The operators of a whole query, its scans asked for no more than it reads.
    pub(super) fn build_root(&self, plan: &LogicalPlan) -> Result<StreamPlan> {
        self.build(&rewrite::pushdown::push(plan.clone(), self))
    }

    pub(super) fn build(&self, plan: &LogicalPlan) -> Result<StreamPlan> {
        let schema = plan.schema.clone();
        match &plan.node {
            LogicalNode::Scan(scan) => self.build_scan(scan, schema),
            LogicalNode::Values { rows } => Ok(StreamPlan {
                node: StreamNode::Values { rows: rows.clone() },
                inputs: Vec::new(),
                schema,
                mode: ChangelogMode::APPEND,
                unique_keys: Vec::new(),
            }),
            LogicalNode::Project { input, exprs } => {
                let input = self.build(input)?;
                Ok(calc(input, None, exprs.clone(), schema))
            }
            LogicalNode::Filter { input, predicate } => {
                let input = self.build(input)?;
                let projection = identity(&input.schema);
                Ok(calc(input, Some(predicate.clone()), projection, schema))
            }
            LogicalNode::WatermarkAssigner {
                input,
                column,
                watermark,
                options,
            } => {
                crate::config::check_watermark_options(options)?;
                let input = self.build(input)?;
                let node = StreamNode::WatermarkAssigner {
                    rowtime: *column,
                    watermark: watermark.clone(),
                    options: options.clone(),
                };
                Ok(pass_through(node, input, schema))
            }
            LogicalNode::Expand { input, sets } => {
                let input = self.build(input)?;
                let mut plan =
                    pass_through(StreamNode::Expand { sets: sets.clone() }, input, schema);
                plan.unique_keys.clear();
                Ok(plan)
            }
            LogicalNode::Aggregate {
                input,
                keys,
                calls,
                ttl,
            } => {
                let input = self.build(input)?;
                // Rows come when a group changes, not in the order of time.
                let mut untimed = schema.clone();
                for column in &mut untimed.columns {
                    column.time = None;
                }
                if let Some(projection) = of_single_rows(&input, keys, calls) {
                    let mut plan = calc(input, None, projection, untimed);
                    for column in &mut plan.schema.columns[keys.len()..] {
                        column.time = None;
                    }
                    return Ok(plan);
                }
                let input = match self.build_window_aggregate(input, keys, calls, &schema)? {
                    Ok(plan) => return Ok(plan),
                    Err(input) => *input,
                };
                let append = input.mode.is_append();
                let key = keys::without_constants(&input, keys);
                let unique_keys = if key.is_empty() && !keys.is_empty() {
                    Vec::new()
                } else {
                    vec![key]
                };
                Ok(StreamPlan {
                    node: StreamNode::GroupAggregate {
                        keys: keys.clone(),
                        calls: calls.clone(),
                        ttl: ttl.or(self.config.state_ttl()),
                    },
                    inputs: vec![input],
                    schema: untimed,
                    mode: ChangelogMode {
                        delete: !append,
                        ..ChangelogMode::RETRACT
                    },
                    unique_keys,
                })
            }
            LogicalNode::Join {
                left,
                right,
                kind,
                on,
                ttl,
            } => {
                let left = self.build(left)?;
                let right = self.build(right)?;
                self.build_join(left, right, *kind, on.clone(), *ttl, schema)
            }
            LogicalNode::Correlate {
                input,
                call,
                kind,
                condition,
            } => {
                let input = self.build(input)?;
                let node = StreamNode::Correlate {
                    call: call.clone(),
                    kind: *kind,
                    condition: condition.clone(),
                };
                let mut plan = pass_through(node, input, schema);
                plan.unique_keys.clear();
                Ok(plan)
            }
            LogicalNode::Union { inputs } => {
                let inputs = inputs
                    .iter()
                    .map(|input| self.build(input))
                    .collect::<Result<Vec<_>>>()?;
                let mode = inputs
                    .iter()
                    .fold(ChangelogMode::APPEND, |mode, i| mode.union(i.mode));
                Ok(StreamPlan {
                    node: StreamNode::Union,
                    inputs,
                    schema,
                    mode,
                    unique_keys: Vec::new(),
                })
            }
            LogicalNode::Rank {
                input,
                function,
                partition,
                order,
                start,
                end,
                output_number,
            } => {
                let input = self.build(input)?;
                let end = end.clone().ok_or_else(super::rank::missing_end)?;
                let spec = super::rank::RankParts {
                    function,
                    partition: partition.clone(),
                    order: order.clone(),
                    start: *start,
                    end,
                    output_number: *output_number,
                };
                let mini_batch = self.config.mini_batch().is_some();
                super::rank::build_rank(input, spec, mini_batch, schema)
            }
            LogicalNode::Sort {
                input,
                keys,
                offset,
                fetch,
            } => {
                let input = self.build(input)?;
                super::rank::build_sort(input, keys, *offset, *fetch, schema)
            }
            LogicalNode::Over { input, calls } => {
                super::over::build_over(self.build(input)?, calls, schema)
            }
            LogicalNode::GroupWindowAggregate {
                input,
                window,
                keys,
                calls,
            } => {
                let input = self.build(input)?;
                self.build_group_window_aggregate(input, window, keys, calls, schema)
            }
            LogicalNode::LookupJoin {
                left,
                right,
                kind,
                on,
                hint,
            } => {
                let left = self.build(left)?;
                self.build_lookup_join(left, right, *kind, on.as_ref(), hint, schema)
            }
            LogicalNode::TemporalJoin {
                left,
                right,
                kind,
                time_column,
                on,
            } => {
                let left = self.build(left)?;
                let right = self.build(right)?;
                self.build_temporal_join(left, right, *kind, *time_column, on.clone(), schema)
            }
            LogicalNode::WindowTableFunction { input, window } => {
                let input = self.build(input)?;
                self.build_window_table_function(input, window, schema)
            }
            LogicalNode::Match { input, spec } => {
                let input = self.build(input)?;
                super::time_join::append_only(&input, "Match Recognize")?;
                Ok(StreamPlan {
                    node: StreamNode::Match {
                        spec: Arc::clone(spec),
                    },
                    inputs: vec![input],
                    schema,
                    mode: ChangelogMode::APPEND,
                    unique_keys: Vec::new(),
                })
            }
        }
    }

    /// Refuses a scan of a table that its connector cannot read, or not with these options.
    ///
    /// # Errors
    /// The connector's reason.
    pub(crate) fn check_source(&self, scan: &Scan) -> Result<()> {
        self.source(scan).map(|_| ())
    }

    fn source(&self, scan: &Scan) -> Result<Arc<dyn TableSource>> {
        let table = &scan.table;
        let description = describe(table, &scan.options, self.config)?;
        self.connectors.source(&description).map_err(|e| {
            e.context(format!(
                "creating a source for reading table '{}'",
                table.path
            ))
        })
    }

    fn build_scan(&self, scan: &Scan, schema: Schema) -> Result<StreamPlan> {
        let table = &scan.table;
        let source = self.source(scan)?;
        check_metadata(table, &source.metadata())?;
        if table.has_source_watermark() && !source.supports_source_watermark() {
            return Err(Error::plan(format!(
                "SOURCE_WATERMARK() is used by table '{}' but its connector brings no watermarks of \
                 its own.",
                table.path
            ))
            .hint("make the watermark of a column: WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"));
        }
        let mode = source.changelog_mode();
        let stored: Vec<String> = table.stored_columns().map(|c| c.name.clone()).collect();
        let primary_key: Option<Vec<usize>> = table.primary_key.as_ref().and_then(|key| {
            key.columns
                .iter()
                .map(|name| scan.projection.iter().position(|i| stored[*i] == *name))
                .collect()
        });
        if mode.is_upsert() && table.primary_key.is_none() {
            return Err(Error::plan(format!(
                "Table '{}' produces a changelog stream that contains UPDATE_AFTER but no \
                 UPDATE_BEFORE. This requires defining a primary key constraint on the table.",
                table.path
            ))
            .hint("add PRIMARY KEY (..) NOT ENFORCED"));
        }
        let duplicates = !mode.is_append()
            && self
                .config
                .bool("table.exec.source.cdc-events-duplicate", false);
        if duplicates && table.primary_key.is_none() {
            return Err(Error::plan(format!(
                "Configuration 'table.exec.source.cdc-events-duplicate' is enabled which requires the \
                 changelog sources to define a PRIMARY KEY. However, table '{}' doesn't have a primary \
                 key.",
                table.path
            ))
            .hint("add PRIMARY KEY (..) NOT ENFORCED"));
        }
        let mode = if duplicates {
            mode.without_update_before()
        } else {
            mode
        };
        // an upsert source is read with its key, whatever the query selects
        if mode.is_upsert() && primary_key.is_none() {
            return self.build_scan_with_key(scan, schema, &stored);
        }
        Ok(StreamPlan {
            node: StreamNode::TableSourceScan {
                table: Arc::clone(table),
                source,
                projection: scan.projection.clone(),
                pushed: scan.pushed.clone(),
                options: scan.options.clone(),
            },
            inputs: Vec::new(),
            schema,
            mode,
            unique_keys: keys::normalized(primary_key.into_iter().collect()),
        })
    }

    fn build_scan_with_key(
        &self,
        scan: &Scan,
        schema: Schema,
        stored: &[String],
    ) -> Result<StreamPlan> {
        let mut wider = scan.clone();
        let key = scan
            .table
            .primary_key
            .as_ref()
            .map(|k| k.columns.clone())
            .unwrap_or_default();
        for name in key {
            let Some(column) = stored.iter().position(|s| *s == name) else {
                continue;
            };
            if !wider.projection.contains(&column) {
                wider.projection.push(column);
            }
        }
        let columns: Vec<_> = scan.table.stored_columns().collect();
        let wide = Schema::new(
            wider
                .projection
                .iter()
                .map(|i| Column::new(columns[*i].name.clone(), columns[*i].data_type.clone()))
                .collect(),
        );
        let plan = self.build_scan(&wider, wide)?;
        let exprs = (0..schema.len())
            .map(|i| Expr::column(i, schema.columns[i].data_type.clone()))
            .collect();
        Ok(calc(plan, None, exprs, schema))
    }
}

impl rewrite::pushdown::Sources for Planner<'_> {
    fn with_pushdown(&self, scan: &Scan, ask: &mut dyn FnMut(&dyn Pushdown)) {
        if scan.table.primary_key.is_some() {
            return;
        }
        // what is wrong with the source is said when it is built
        let source = describe(&scan.table, &scan.options, self.config)
            .and_then(|description| self.connectors.source(&description));
        if let Ok(source) = source
            && source.changelog_mode().is_append()
            && let Some(pushdown) = source.pushdown()
        {
            ask(pushdown);
        }
    }

    fn watermark_interval_ms(&self, options: &IndexMap<String, String>) -> i64 {
        self.config.watermark_interval_ms(options)
    }
}

/// An aggregate as a projection, where no group can have more than one row. As in Flink, this is
/// done for the calls that give back their argument.
fn of_single_rows(
    input: &StreamPlan,
    keys: &[usize],
    calls: &[AggregateCall],
) -> Option<Vec<Expr>> {
    if keys.is_empty() || !keys::are_unique(input, keys) {
        return None;
    }
    let column = |i: usize| Expr::column(i, input.schema.columns[i].data_type.clone());
    let mut projection: Vec<Expr> = keys.iter().map(|i| column(*i)).collect();
    for call in calls {
        let [arg] = call.args.as_slice() else {
            return None;
        };
        if call.filter.is_some() || !matches!(call.function.name(), "SUM" | "MIN" | "MAX") {
            return None;
        }
        projection.push(column(*arg).cast_to(&call.data_type));
    }
    Some(projection)
}

/// A node that passes every change on, with the unique keys of its input.
pub(super) fn pass_through(node: StreamNode, input: StreamPlan, schema: Schema) -> StreamPlan {
    let mut schema = schema;
    if !matches!(node, StreamNode::WatermarkAssigner { .. }) {
        for (column, below) in schema.columns.iter_mut().zip(&input.schema.columns) {
            column.time = below.time;
        }
    }
    StreamPlan {
        node,
        mode: input.mode,
        unique_keys: input.unique_keys.clone(),
        inputs: vec![input],
        schema,
    }
}

pub(super) fn identity(schema: &Schema) -> Vec<Expr> {
    schema
        .columns
        .iter()
        .enumerate()
        .map(|(i, c)| Expr::column(i, c.data_type.clone()))
        .collect()
}

/// A `Calc`, merged with one below where no expression would be computed twice or lose its place.
pub(super) fn calc(
    input: StreamPlan,
    condition: Option<Expr>,
    projection: Vec<Expr>,
    schema: Schema,
) -> StreamPlan {
    if let StreamNode::Calc {
        condition: below,
        projection: inner,
    } = &input.node
    {
        let simple = |e: &Expr| e.as_column().is_some() || e.as_literal().is_some();
        let used = |i: usize| {
            let count = |e: &Expr| usize::from(e.columns().contains(&i));
            projection
                .iter()
                .chain(&condition)
                .map(count)
                .sum::<usize>()
        };
        let mergeable = inner
            .iter()
            .enumerate()
            .all(|(i, e)| simple(e) || (e.is_deterministic() && used(i) <= 1));
        // a condition above must not see rows that the one below takes away, which AND keeps
        let pure = condition.is_none() || inner.iter().all(Expr::is_deterministic);
        if mergeable && pure {
            let replace = |e: Expr| e.replace_columns(&|i, _| inner[i].clone());
            let mut conjuncts: Vec<Expr> = below.iter().cloned().collect();
            conjuncts.extend(condition.map(replace));
            let condition = (!conjuncts.is_empty()).then(|| crate::plan::binder::and(conjuncts));
            let projection = projection.into_iter().map(replace).collect();
            let source = input
                .inputs
                .into_iter()
                .next()
                .expect("a Calc has an input");
            return make_calc(source, condition, projection, schema);
        }
    }
    make_calc(input, condition, projection, schema)
}

fn make_calc(
    input: StreamPlan,
    condition: Option<Expr>,
    projection: Vec<Expr>,
    schema: Schema,
) -> StreamPlan {
    let mut schema = schema;
    for (column, e) in schema.columns.iter_mut().zip(&projection) {
        if let Some(i) = e.as_column() {
            column.time = input.schema.columns[i].time;
        }
    }
    let trivial = condition.is_none()
        && projection.len() == input.schema.len()
        && projection
            .iter()
            .enumerate()
            .all(|(i, e)| e.as_column() == Some(i));
    if trivial {
        return StreamPlan { schema, ..input };
    }
    let unique_keys = through_projection(&input.unique_keys, &projection);
    StreamPlan {
        mode: input.mode,
        unique_keys,
        node: StreamNode::Calc {
            condition,
            projection,
        },
        inputs: vec![input],
        schema,
    }
}

/// The table as its connector sees it.
///
/// # Errors
/// When the option `connector` is missing.
pub(crate) fn describe(
    table: &TableDefinition,
    options: &indexmap::IndexMap<String, String>,
    config: &Configuration,
) -> Result<TableDescription> {
    let physical: Vec<Column> = table
        .columns
        .iter()
        .filter(|c| c.kind == ColumnKind::Physical)
        .map(|c| Column::new(c.name.clone(), c.data_type.clone()))
        .collect();
    let physical = Schema::new(physical);
    let metadata = table
        .columns
        .iter()
        .filter_map(|c| match &c.kind {
            ColumnKind::Metadata { key, .. } => Some((
                key.clone().unwrap_or_else(|| c.name.clone()),
                Column::new(c.name.clone(), c.data_type.clone()),
            )),
            _ => None,
        })
        .collect();
    let virtual_metadata = table
        .columns
        .iter()
        .filter(|c| {
            matches!(
                &c.kind,
                ColumnKind::Metadata {
                    is_virtual: true,
                    ..
                }
            )
        })
        .map(|c| c.name.clone())
        .collect();
    let find = |names: &[String]| -> Vec<usize> {
        names
            .iter()
            .filter_map(|name| physical.index_of(name))
            .collect()
    };
    if !options.contains_key("connector") {
        return Err(Error::options(format!(
            "Table options of '{}' do not contain an option key 'connector' for discovering a \
             connector.",
            table.path
        ))
        .hint("add 'connector' = '...' to WITH"));
    }
    Ok(TableDescription {
        path: table.path.to_string(),
        metadata,
        virtual_metadata,
        primary_key: table
            .primary_key
            .as_ref()
            .map(|k| find(&k.columns))
            .unwrap_or_default(),
        partitioned_by: find(&table.partitioned_by),
        physical,
        options: options.clone(),
        time_zone: config.time_zone(),
    })
}

pub(super) fn check_metadata(
    table: &TableDefinition,
    known: &[(String, crate::types::DataType)],
) -> Result<()> {
    for column in &table.columns {
        let ColumnKind::Metadata { key, .. } = &column.kind else {
            continue;
        };
        let key = key.as_ref().unwrap_or(&column.name);
        if !known.iter().any(|(k, _)| k == key) {
            let keys: Vec<_> = known.iter().map(|(k, _)| k.as_str()).collect();
            return Err(Error::plan(format!(
                "Invalid metadata key '{key}' in column '{}' of table '{}'.",
                column.name, table.path
            ))
            .hint(if keys.is_empty() {
                "the connector has no metadata".to_string()
            } else {
                format!("the connector's metadata: {}", keys.join(", "))
            }));
        }
    }
    Ok(())
}
