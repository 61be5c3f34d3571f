//! The operator of a node of the plan: which one it is, and its specification.

use std::sync::Arc;

use super::{Translator, time};
use crate::aggregates;
use crate::catalog::TableDefinition;
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::graph::OperatorFactory;
use crate::operators::calc::{Calc, CalcSpec};
use crate::operators::changelog_normalize::{ChangelogNormalize, ChangelogNormalizeSpec};
use crate::operators::constraint_enforcer::{
    ConstraintEnforcer, ConstraintEnforcerSpec, NestedEnforcer, NotNullEnforcer, TypeLengthEnforcer,
};
use crate::operators::correlate::{Correlate, CorrelateCall, CorrelateSpec};
use crate::operators::deduplicate::{DeduplicateSpec, deduplicate};
use crate::operators::drop_update_before::DropUpdateBefore;
use crate::operators::expand::{Expand, ExpandSet, ExpandSpec};
use crate::operators::group_aggregate::{GroupAggregate, GroupAggregateSpec, MiniBatch};
use crate::operators::join::{BundleLimits, Join, JoinInput, JoinSpec};
use crate::operators::last_per_key::LastPerKey;
use crate::operators::lookup_join::{LookupJoin, LookupJoinSpec};
use crate::operators::match_recognize::{MatchRecognize, MatchRecognizeSpec};
use crate::operators::over_aggregate::{OverAggregateSpec, over_aggregate};
use crate::operators::rank::{Rank, RankEnd, RankSpec, SortColumn};
use crate::operators::sink_upsert_materializer::{
    ConflictStrategy, SinkUpsertMaterializer, SinkUpsertMaterializerSpec,
    WatermarkCompactingSinkMaterializer,
};
use crate::operators::temporal_sort::{TemporalSort, TemporalSortSpec};
use crate::operators::watermark_assigner::{WatermarkAssigner, WatermarkAssignerSpec};
use crate::operators::{Operator, OperatorContext};
use crate::plan::logical::{self, SortKey};
use crate::plan::physical::{ConflictAction, JoinSide, StreamNode, StreamPlan};
use crate::types::Schema;

impl Translator<'_> {
    /// The operator of a plan's node.
    ///
    /// # Errors
    /// When the node is no operator.
    pub(super) fn operator(&self, plan: &StreamPlan) -> Result<OperatorFactory> {
        if let Some(factory) = time::operator(plan, self.config) {
            return Ok(factory);
        }
        let input = plan.input();
        let updates_before = plan.mode.update_before;
        Ok(match &plan.node {
            StreamNode::Calc {
                condition,
                projection,
            } => {
                let spec = CalcSpec {
                    condition: condition.clone(),
                    projection: projection.clone(),
                    schema: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Calc::new(&spec, context)?)))
            }
            StreamNode::WatermarkAssigner {
                rowtime,
                watermark,
                options,
            } => {
                let spec = self.watermark_spec(*rowtime, watermark, options);
                factory(move |context| Ok(Box::new(WatermarkAssigner::new(&spec, context)?)))
            }
            StreamNode::Expand { sets } => {
                let width = plan.schema.len() - 1;
                let sets = sets
                    .iter()
                    .map(|(nulled, id)| ExpandSet {
                        columns: (0..width)
                            .map(|i| (!nulled.contains(&i)).then_some(i))
                            .collect(),
                        id: *id,
                    })
                    .collect();
                let spec = ExpandSpec {
                    sets,
                    schema: plan.schema.clone(),
                };
                factory(move |_| Ok(Box::new(Expand::new(&spec))))
            }
            StreamNode::GroupAggregate { keys, calls, ttl } => {
                let spec = GroupAggregateSpec {
                    input_types: input.schema.types(),
                    group_keys: keys.clone(),
                    aggregates: aggregate_calls(calls),
                    input_retracts: !input.mode.is_append(),
                    emit_update_before: updates_before,
                    ttl_ms: *ttl,
                    mini_batch: self.mini_batch(calls),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(GroupAggregate::new(spec.clone(), context)?)))
            }
            StreamNode::Join {
                join_type,
                left,
                right,
                null_safe,
                condition,
            } => {
                let side = |side: &JoinSide, input: &StreamPlan| JoinInput {
                    schema: input.schema.clone(),
                    keys: side.keys.clone(),
                    unique_key: side.unique_key.clone(),
                    updates_in_pairs: input.mode.update_before || !input.mode.update_after,
                    ttl_ms: side.ttl.unwrap_or(0),
                };
                let spec = JoinSpec {
                    join_type: *join_type,
                    left: side(left, &plan.inputs[0]),
                    right: side(right, &plan.inputs[1]),
                    null_safe: null_safe.clone(),
                    condition: condition.clone(),
                    mini_batch: self
                        .config
                        .mini_batch()
                        .map(|(size, latency_ms)| BundleLimits { size, latency_ms }),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Join::new(spec.clone(), context)?)))
            }
            StreamNode::LookupJoin(node) => {
                let spec = LookupJoinSpec {
                    join_type: node.join_type,
                    input: input.schema.clone(),
                    table: node.lookup.clone(),
                    right: node.right.clone(),
                    condition: node.condition.clone(),
                    asynchronous: node.asynchronous,
                    materialize: node.materialize.clone(),
                    ttl_ms: self.config.state_ttl(),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(LookupJoin::new(&spec, context)?)))
            }
            StreamNode::Correlate {
                call,
                kind,
                condition,
            } => {
                let width = input.schema.len();
                let table: Vec<usize> = (width..plan.schema.len()).collect();
                let spec = CorrelateSpec {
                    input: input.schema.clone(),
                    call: match call.clone() {
                        logical::TableCall::Unnest {
                            collection,
                            ordinality,
                        } => CorrelateCall::Unnest {
                            collection,
                            ordinality,
                        },
                        logical::TableCall::Function { function, args } => {
                            CorrelateCall::Function { function, args }
                        }
                    },
                    table: plan.schema.project(&table),
                    left: *kind == logical::JoinKind::Left,
                    condition: condition.clone(),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Correlate::new(spec.clone(), context)?)))
            }
            StreamNode::OverAggregate {
                partition,
                order,
                frame,
                calls,
            } => {
                let spec = OverAggregateSpec {
                    input: input.schema.clone(),
                    partition_by: partition.clone(),
                    order_by: order.clone(),
                    frame: *frame,
                    calls: calls.clone(),
                    ttl_ms: self.config.state_ttl(),
                    output: plan.schema.clone(),
                };
                factory(move |context| over_aggregate(&spec, context))
            }
            StreamNode::Rank {
                partition,
                order,
                start,
                end,
                output_number,
                strategy,
                ..
            } => {
                let spec = RankSpec {
                    schema: input.schema.clone(),
                    partition_by: partition.clone(),
                    order_by: sort_columns(order),
                    strategy: strategy.clone(),
                    rank_start: *start,
                    rank_end: match end {
                        logical::RankEnd::Constant(n) => RankEnd::Constant(*n),
                        logical::RankEnd::Variable(i) => RankEnd::Column(*i),
                    },
                    output_rank: *output_number,
                    generate_update_before: updates_before,
                    ttl_ms: self.config.state_ttl(),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(Rank::new(&spec, context)?)))
            }
            StreamNode::Deduplicate {
                key,
                order,
                keep,
                insert_only,
            } => {
                let spec = DeduplicateSpec {
                    schema: input.schema.clone(),
                    key: key.clone(),
                    order: *order,
                    keep: *keep,
                    insert_only: *insert_only,
                    generate_update_before: updates_before,
                    generate_insert: self.config.bool(
                        "table.exec.deduplicate.insert-update-after-sensitive-enabled",
                        true,
                    ),
                    ttl_ms: self.config.state_ttl(),
                    mini_batch: self.config.mini_batch().map(|(size, _)| size),
                };
                factory(move |context| deduplicate(&spec, context))
            }
            StreamNode::TemporalSort { keys } => {
                let (first, rest) = keys
                    .split_first()
                    .ok_or_else(|| Error::internal("no sort key"))?;
                let spec = TemporalSortSpec {
                    schema: input.schema.clone(),
                    rowtime: input.schema.columns[first.column]
                        .is_rowtime()
                        .then_some(first.column),
                    order_by: sort_columns(rest),
                };
                factory(move |context| Ok(Box::new(TemporalSort::new(&spec, context)?)))
            }
            StreamNode::Match { spec } => {
                let spec = MatchRecognizeSpec {
                    input: input.schema.clone(),
                    pattern: Arc::clone(spec),
                    output: plan.schema.clone(),
                };
                factory(move |context| Ok(Box::new(MatchRecognize::new(&spec, context)?)))
            }
            StreamNode::ChangelogNormalize { key, filter } => {
                let spec = ChangelogNormalizeSpec {
                    schema: input.schema.clone(),
                    key: key.clone(),
                    filter: filter.clone(),
                    generate_update_before: updates_before,
                    ttl_ms: self.config.state_ttl(),
                };
                let mini_batch = self.config.mini_batch();
                factory(move |context| {
                    let operator = ChangelogNormalize::new(&spec, context)?;
                    Ok(match mini_batch {
                        Some((size, _)) => {
                            Box::new(LastPerKey::new(operator, &spec.schema, &spec.key, size)?)
                        }
                        None => Box::new(operator) as Box<dyn Operator>,
                    })
                })
            }
            StreamNode::DropUpdateBefore => factory(move |_| Ok(Box::new(DropUpdateBefore))),
            StreamNode::ConstraintEnforcer => {
                let spec = constraint_spec_of(&plan.schema, self.config);
                factory(move |context| Ok(Box::new(ConstraintEnforcer::new(spec.clone(), context))))
            }
            StreamNode::SinkUpsertMaterializer {
                primary_key,
                upsert_key,
                action,
            } => {
                let spec = SinkUpsertMaterializerSpec {
                    schema: input.schema.clone(),
                    primary_key: primary_key.clone(),
                    upsert_key: upsert_key.clone(),
                    ttl_ms: self.config.state_ttl(),
                };
                let strategy = match action {
                    ConflictAction::Deduplicate => {
                        return Ok(factory(move |context| {
                            Ok(Box::new(SinkUpsertMaterializer::new(&spec, context)?))
                        }));
                    }
                    ConflictAction::Error => ConflictStrategy::Error,
                    ConflictAction::Nothing => ConflictStrategy::Nothing,
                };
                factory(move |context| {
                    let operator =
                        WatermarkCompactingSinkMaterializer::new(&spec, strategy, context)?;
                    Ok(Box::new(operator))
                })
            }
            other => {
                return Err(Error::internal(format!("{} is no operator", other.noun())));
            }
        })
    }

    pub(super) fn watermark_spec(
        &self,
        rowtime: usize,
        watermark: &Expr,
        options: &indexmap::IndexMap<String, String>,
    ) -> WatermarkAssignerSpec {
        let idle = options
            .get("scan.watermark.idle-timeout")
            .and_then(|t| crate::config::parse_duration(t))
            .or_else(|| self.config.duration_ms("table.exec.source.idle-timeout"))
            .unwrap_or(0);
        WatermarkAssignerSpec {
            rowtime,
            watermark: watermark.clone(),
            interval_ms: self.config.watermark_interval_ms(options),
            idle_timeout_ms: idle,
            exact: self.reads_watermark,
        }
    }

    fn mini_batch(&self, calls: &[logical::AggregateCall]) -> Option<MiniBatch> {
        let (size, latency_ms) = self.config.mini_batch()?;
        let one_phase = self
            .config
            .is("table.optimizer.agg-phase-strategy", "ONE_PHASE");
        let two_phase = !one_phase && calls.iter().all(|c| c.function.merges_in_flink());
        Some(MiniBatch {
            size,
            latency_ms,
            two_phase,
        })
    }
}

pub(super) fn factory(
    make: impl Fn(&OperatorContext) -> Result<Box<dyn Operator>> + Send + Sync + 'static,
) -> OperatorFactory {
    Arc::new(make)
}
/// What the operators take of a call.
pub(crate) fn aggregate_calls(calls: &[logical::AggregateCall]) -> Vec<aggregates::AggregateCall> {
    calls
        .iter()
        .map(|c| aggregates::AggregateCall {
            function: c.function.clone(),
            args: c.args.clone(),
            filter: c.filter,
            distinct: c.distinct,
        })
        .collect()
}

/// What the operators take of an order.
pub(crate) fn sort_columns(keys: &[SortKey]) -> Vec<SortColumn> {
    keys.iter()
        .map(|k| SortColumn {
            column: k.column,
            descending: k.descending,
            nulls_first: k.nulls_first,
        })
        .collect()
}

/// What the constraint enforcer of a sink checks.
pub(crate) fn constraint_spec(
    schema: &Schema,
    table: &TableDefinition,
    config: &Configuration,
) -> ConstraintEnforcerSpec {
    let mut declared = schema.clone();
    for column in &mut declared.columns {
        if let Some(definition) = table.column(&column.name) {
            column.data_type = definition.data_type.clone();
        }
    }
    constraint_spec_of(&declared, config)
}

fn constraint_spec_of(schema: &Schema, config: &Configuration) -> ConstraintEnforcerSpec {
    ConstraintEnforcerSpec {
        schema: schema.clone(),
        not_null: if config.is("table.exec.sink.not-null-enforcer", "DROP") {
            NotNullEnforcer::Drop
        } else {
            NotNullEnforcer::Error
        },
        length: match config.get("table.exec.sink.type-length-enforcer") {
            Some(v) if v.eq_ignore_ascii_case("TRIM_PAD") => TypeLengthEnforcer::TrimPad,
            Some(v) if v.eq_ignore_ascii_case("ERROR") => TypeLengthEnforcer::Error,
            _ => TypeLengthEnforcer::Ignore,
        },
        nested: NestedEnforcer::Ignore,
        key_of_deletes: None,
    }
}
