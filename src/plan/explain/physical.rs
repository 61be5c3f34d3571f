//! The stream plan as text, in Flink's form: one node a line, exchanges between.

use crate::expr::Expr;
use crate::operators::deduplicate::{DeduplicateOrder, Keep};
use crate::operators::join::{JoinType, UniqueKey};
use crate::operators::over_aggregate::OverOrder;
use crate::operators::rank::RankStrategy;
use crate::operators::windowing::{WindowKind, Windowing};
use crate::plan::logical::{RankEnd, SortKey, TableCall};
use crate::plan::match_recognize::{MatchSpec, SkipStrategy};
use crate::plan::physical::{StreamNode, StreamPlan, explain_lookup_join};

/// The tree of a plan, one node a line; with `modes`, each line ends with its changelog mode.
#[must_use]
pub fn tree(plan: &StreamPlan, modes: bool) -> String {
    let mut text = String::new();
    write_tree(plan, modes, "", "", &mut text);
    text
}

fn write_tree(plan: &StreamPlan, modes: bool, first: &str, rest: &str, text: &mut String) {
    text.push_str(first);
    let mut own = line(plan);
    if modes {
        let mode = match plan.node {
            StreamNode::Sink { .. } => "NONE".to_string(),
            _ => plan.mode.to_string(),
        };
        own.truncate(own.len() - 1);
        let separator = if own.ends_with('(') { "" } else { ", " };
        own.push_str(&format!("{separator}changelogMode=[{mode}])"));
    }
    text.push_str(&own);
    text.push('\n');
    let exchanges = exchanges(plan);
    let last = plan.inputs.len().saturating_sub(1);
    for (i, input) in plan.inputs.iter().enumerate() {
        let (mark, bar) = if i == last {
            ("+- ", "   ")
        } else {
            (":- ", ":  ")
        };
        let (mut head, mut tail) = (format!("{rest}{mark}"), format!("{rest}{bar}"));
        if let Some(Some(distribution)) = exchanges.get(i) {
            text.push_str(&head);
            let mode = if modes {
                format!(", changelogMode=[{}]", input.mode)
            } else {
                String::new()
            };
            text.push_str(&format!("Exchange(distribution=[{distribution}]{mode})\n"));
            head = format!("{tail}+- ");
            tail = format!("{tail}   ");
        }
        write_tree(input, modes, &head, &tail, text);
    }
}

/// How the rows of each input are spread, where they are.
pub(super) fn exchanges(plan: &StreamPlan) -> Vec<Option<String>> {
    let by = |input: &StreamPlan, keys: &[usize]| {
        if keys.is_empty() {
            return Some("single".to_string());
        }
        Some(format!("hash[{}]", names(input, keys)))
    };
    match &plan.node {
        StreamNode::GroupAggregate { keys, .. } | StreamNode::WindowAggregate { keys, .. } => {
            vec![by(plan.input(), keys)]
        }
        StreamNode::Join { left, right, .. } => {
            vec![
                by(&plan.inputs[0], &left.keys),
                by(&plan.inputs[1], &right.keys),
            ]
        }
        StreamNode::IntervalJoin { keys, .. }
        | StreamNode::WindowJoin { keys, .. }
        | StreamNode::TemporalJoin { keys, .. } => {
            vec![
                by(&plan.inputs[0], &keys.left),
                by(&plan.inputs[1], &keys.right),
            ]
        }
        StreamNode::OverAggregate {
            partition: keys, ..
        }
        | StreamNode::Rank {
            partition: keys, ..
        }
        | StreamNode::WindowRank {
            partition: keys, ..
        }
        | StreamNode::WindowDeduplicate { key: keys, .. }
        | StreamNode::Deduplicate { key: keys, .. }
        | StreamNode::ChangelogNormalize { key: keys, .. }
        | StreamNode::SinkUpsertMaterializer {
            primary_key: keys, ..
        } => {
            vec![by(plan.input(), keys)]
        }
        StreamNode::Match { spec } => vec![by(plan.input(), &spec.partition)],
        StreamNode::LookupJoin(node) if node.shuffle => {
            vec![node.spread_by().and_then(|keys| by(plan.input(), &keys))]
        }
        StreamNode::TemporalSort { .. } => vec![by(plan.input(), &[])],
        _ => Vec::new(),
    }
}

fn names(plan: &StreamPlan, columns: &[usize]) -> String {
    let names: Vec<_> = columns
        .iter()
        .map(|i| plan.schema.columns[*i].name.as_str())
        .collect();
    names.join(", ")
}

fn select(plan: &StreamPlan) -> String {
    plan.schema.names().join(", ")
}

/// One node as EXPLAIN prints it: `GroupAggregate(groupBy=[k], select=[k, SUM(v) AS s])`.
#[must_use]
pub fn line(plan: &StreamPlan) -> String {
    let noun = plan.node.noun();
    let detail = match &plan.node {
        StreamNode::TableSourceScan { table, pushed, .. } => {
            let p = &table.path;
            let filter = pushed.as_ref().and_then(|pushed| pushed.filter.as_ref());
            let filter = filter.map(|filter| {
                let column = table.stored_columns().nth(filter.column);
                let values: Vec<_> = filter.values.iter().map(ToString::to_string).collect();
                format!(
                    ", filter=[{} IN ({})]",
                    column.map_or("", |c| c.name.as_str()),
                    values.join(", ")
                )
            });
            format!(
                "table=[[{}, {}, {}{}]], fields=[{}]",
                p.catalog,
                p.database,
                p.name,
                filter.unwrap_or_default(),
                select(plan)
            )
        }
        StreamNode::Values { rows } => {
            let rows: Vec<_> = rows
                .iter()
                .map(|row| {
                    let values: Vec<_> = row.iter().map(ToString::to_string).collect();
                    format!("{{ {} }}", values.join(", "))
                })
                .collect();
            format!("tuples=[[{}]]", rows.join(", "))
        }
        StreamNode::Calc {
            condition,
            projection,
        } => {
            let inputs = plan.input().schema.names();
            let columns: Vec<_> = projection
                .iter()
                .zip(&plan.schema.columns)
                .map(|(e, c)| aliased(e, &inputs, &c.name))
                .collect();
            let mut detail = format!("select=[{}]", columns.join(", "));
            if let Some(condition) = condition {
                detail.push_str(&format!(", where=[{}]", condition.to_sql(&inputs)));
            }
            detail
        }
        StreamNode::WatermarkAssigner {
            rowtime, watermark, ..
        } => {
            let inputs = plan.schema.names();
            format!(
                "rowtime=[{}], watermark=[{}]",
                inputs[*rowtime],
                watermark.to_sql(&inputs)
            )
        }
        StreamNode::Expand { sets } => {
            let ids: Vec<_> = sets.iter().map(|(_, id)| id.to_string()).collect();
            format!("projects=[{}], ids=[{}]", select(plan), ids.join(", "))
        }
        StreamNode::GroupAggregate { keys, .. } => group_aggregate(plan, keys),
        StreamNode::Join { .. } => join(plan),
        StreamNode::Correlate { call, kind, .. } => {
            let inputs = plan.input().schema.names();
            let call = match call {
                TableCall::Unnest {
                    collection,
                    ordinality,
                } => {
                    let with = if *ordinality { " WITH ORDINALITY" } else { "" };
                    format!("UNNEST({}){with}", collection.to_sql(&inputs))
                }
                TableCall::Function { function, args } => {
                    let args: Vec<_> = args.iter().map(|a| a.to_sql(&inputs)).collect();
                    format!("{}({})", function.name(), args.join(", "))
                }
            };
            let kind = kind
                .name()
                .trim_end_matches("Join")
                .trim_end_matches("Outer")
                .to_uppercase();
            format!(
                "invocation=[{call}], joinType=[{kind}], select=[{}]",
                select(plan)
            )
        }
        StreamNode::OverAggregate {
            partition, order, ..
        } => {
            let order = match order {
                OverOrder::Rowtime(i) => format!("{} ASC", plan.schema.columns[*i].name),
                OverOrder::Proctime => "PROCTIME".into(),
                OverOrder::Columns(keys) => {
                    let keys: Vec<_> = keys
                        .iter()
                        .map(|k| plan.schema.columns[k.column].name.as_str())
                        .collect();
                    format!("{} ASC", keys.join(", "))
                }
            };
            let partition = names(plan.input(), partition);
            format!(
                "partitionBy=[{partition}], orderBy=[{order}], select=[{}]",
                select(plan)
            )
        }
        StreamNode::Union => {
            format!("all=[true], union=[{}]", select(plan))
        }
        StreamNode::Rank {
            partition,
            order,
            start,
            end,
            strategy,
            noun,
            ..
        } => rank(plan, partition, order, (*start, end), strategy, noun),
        StreamNode::Deduplicate {
            key,
            order,
            keep,
            insert_only,
        } => format!(
            "keep=[{}], key=[{}], order=[{}], outputInsertOnly=[{insert_only}]",
            if *keep == Keep::FirstRow {
                "FirstRow"
            } else {
                "LastRow"
            },
            names(plan.input(), key),
            if *order == DeduplicateOrder::Proctime {
                "PROCTIME"
            } else {
                "ROWTIME"
            },
        ),
        StreamNode::Match { spec } => match_recognize(plan, spec),
        StreamNode::TemporalSort { keys } => format!("orderBy=[{}]", order_by(plan, keys)),
        StreamNode::ChangelogNormalize { key, filter } => {
            let mut detail = format!("key=[{}]", names(plan, key));
            if let Some(filter) = filter {
                let filter = filter.to_sql(&plan.schema.names());
                detail.push_str(&format!(", condition=[{filter}]"));
            }
            detail
        }
        StreamNode::SinkUpsertMaterializer {
            primary_key,
            action,
            ..
        } => {
            let action = format!("{action:?}").to_uppercase();
            format!(
                "key=[{}], conflictStrategy=[{action}]",
                names(plan, primary_key)
            )
        }
        StreamNode::Sink { table, .. } => {
            format!("table=[{}], fields=[{}]", table.path, select(plan))
        }
        StreamNode::IntervalJoin {
            join_type,
            lower,
            upper,
            event_time,
            condition,
            ..
        } => {
            let all = plan.inputs[0].schema.join(&plan.inputs[1].schema).names();
            let condition = condition
                .as_ref()
                .map(|c| format!(", where=[{}]", c.to_sql(&all)));
            format!(
                "joinType=[{}], windowBounds=[isRowTime={event_time}, leftLowerBound={lower}, \
                 leftUpperBound={upper}]{}, select=[{}]",
                join_name(*join_type),
                condition.unwrap_or_default(),
                select(plan)
            )
        }
        StreamNode::WindowJoin {
            join_type,
            windowing,
            ..
        } => format!(
            "joinType=[{}], window=[{}], select=[{}]",
            join_name(*join_type),
            window(windowing),
            select(plan)
        ),
        StreamNode::LookupJoin(node) => explain_lookup_join(plan, node, join_name(node.join_type)),
        StreamNode::TemporalJoin { join_type, .. } => {
            format!(
                "joinType=[{}], select=[{}]",
                join_name(*join_type),
                select(plan)
            )
        }
        StreamNode::WindowRank {
            windowing,
            partition,
            order,
            start,
            end,
            ..
        } => format!(
            "window=[{}], rankRange=[rankStart={start}, rankEnd={end}], partitionBy=[{}], \
             orderBy=[{}], select=[{}]",
            window(windowing),
            names(plan.input(), partition),
            order_by(plan.input(), order),
            select(plan)
        ),
        StreamNode::WindowDeduplicate {
            windowing,
            key,
            keep,
            ..
        } => format!(
            "window=[{}], keep=[{}], partitionKeys=[{}]",
            window(windowing),
            if *keep == Keep::FirstRow {
                "FirstRow"
            } else {
                "LastRow"
            },
            names(plan.input(), key)
        ),
        StreamNode::WindowTableFunction { windowing, .. } => {
            format!("window=[{}]", window(windowing))
        }
        StreamNode::WindowAggregate {
            keys, windowing, ..
        } => {
            let group = if keys.is_empty() {
                String::new()
            } else {
                format!("groupBy=[{}], ", names(plan.input(), keys))
            };
            format!(
                "{group}window=[{}], select=[{}]",
                window(windowing),
                select(plan)
            )
        }
        StreamNode::DropUpdateBefore | StreamNode::ConstraintEnforcer | StreamNode::Collect => {
            String::new()
        }
    };
    format!("{noun}({detail})")
}

pub(crate) fn window(windowing: &Windowing) -> String {
    let shift = |offset: i64| {
        if offset == 0 {
            String::new()
        } else {
            format!(", offset=[{offset} ms]")
        }
    };
    match windowing.kind {
        WindowKind::Tumble { size, offset } => format!("TUMBLE(size=[{size} ms]{})", shift(offset)),
        WindowKind::Hop {
            slide,
            size,
            offset,
        } => {
            format!("HOP(size=[{size} ms], slide=[{slide} ms]{})", shift(offset))
        }
        WindowKind::Cumulate { step, size, offset } => {
            format!(
                "CUMULATE(max_size=[{size} ms], step=[{step} ms]{})",
                shift(offset)
            )
        }
        WindowKind::Session { gap } => format!("SESSION(gap=[{gap} ms])"),
    }
}

fn aliased(e: &Expr, inputs: &[String], name: &str) -> String {
    let text = e.to_sql(inputs);
    if text == name {
        text
    } else {
        format!("{text} AS {name}")
    }
}

fn group_aggregate(plan: &StreamPlan, keys: &[usize]) -> String {
    let StreamNode::GroupAggregate { calls, .. } = &plan.node else {
        return String::new();
    };
    let input = plan.input();
    let retracts = !input.mode.is_append();
    let mut columns: Vec<String> = vec![];
    if !keys.is_empty() {
        columns.push(names(input, keys));
    }
    for (call, column) in calls.iter().zip(&plan.schema.columns[keys.len()..]) {
        let mut args = names(input, &call.args);
        if args.is_empty() {
            args = "*".into();
        }
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let retract = if retracts { "_RETRACT" } else { "" };
        let filter = call
            .filter
            .map(|f| format!(" FILTER {}", input.schema.columns[f].name))
            .unwrap_or_default();
        let name = call.function.name();
        columns.push(format!(
            "{name}{retract}({distinct}{args}){filter} AS {}",
            column.name
        ));
    }
    let group = if keys.is_empty() {
        String::new()
    } else {
        format!("groupBy=[{}], ", names(input, keys))
    };
    format!("{group}select=[{}]", columns.join(", "))
}

fn join(plan: &StreamPlan) -> String {
    let StreamNode::Join {
        join_type,
        left,
        right,
        null_safe,
        condition,
    } = &plan.node
    else {
        return String::new();
    };
    let (l, r) = (&plan.inputs[0], &plan.inputs[1]);
    let all: Vec<String> = l.schema.join(&r.schema).names();
    let mut conditions: Vec<String> = left
        .keys
        .iter()
        .zip(&right.keys)
        .zip(null_safe)
        .map(|((a, b), safe)| {
            let op = if *safe { "IS NOT DISTINCT FROM" } else { "=" };
            format!(
                "({} {op} {})",
                l.schema.columns[*a].name, r.schema.columns[*b].name
            )
        })
        .collect();
    conditions.extend(condition.as_ref().map(|c| c.to_sql(&all)));
    let spec = |key: &UniqueKey| match key {
        UniqueKey::None => "NoUniqueKey",
        UniqueKey::Columns(_) => "HasUniqueKey",
        UniqueKey::JoinKey => "JoinKeyContainsUniqueKey",
    };
    let kind = join_name(*join_type);
    let condition = if conditions.is_empty() {
        "true".to_string()
    } else {
        conditions.join(" AND ")
    };
    format!(
        "joinType=[{kind}], where=[{condition}], select=[{}], leftInputSpec=[{}], \
         rightInputSpec=[{}]",
        select(plan),
        spec(&left.unique_key),
        spec(&right.unique_key)
    )
}

pub(crate) fn join_name(join_type: JoinType) -> &'static str {
    match join_type {
        JoinType::Inner => "InnerJoin",
        JoinType::Left => "LeftOuterJoin",
        JoinType::Right => "RightOuterJoin",
        JoinType::Full => "FullOuterJoin",
        JoinType::Semi => "LeftSemiJoin",
        JoinType::Anti => "LeftAntiJoin",
    }
}

fn match_recognize(plan: &StreamPlan, spec: &MatchSpec) -> String {
    let mut parts = Vec::new();
    if !spec.partition.is_empty() {
        let partition = names(plan.input(), &spec.partition);
        parts.push(format!("partitionBy=[{partition}]"));
    }
    parts.push(format!("orderBy=[{}]", order_by(plan.input(), &spec.order)));
    parts.push(format!("measures=[{}]", spec.text.measures));
    parts.push("rowsPerMatch=[ONE ROW PER MATCH]".into());
    let variable = |i: usize| spec.variables[i].name.as_str();
    let after = match spec.skip {
        SkipStrategy::PastLastRow => "SKIP PAST LAST ROW".into(),
        SkipStrategy::ToNextRow => "SKIP TO NEXT ROW".into(),
        SkipStrategy::ToFirst(i) => format!("SKIP TO FIRST {}", variable(i)),
        SkipStrategy::ToLast(i) => format!("SKIP TO LAST {}", variable(i)),
    };
    parts.push(format!("after=[{after}]"));
    parts.push(format!("pattern=[{}]", spec.text.pattern));
    if let Some(within) = &spec.text.within {
        parts.push(format!("within=[{within}]"));
    }
    parts.push(format!("define=[{{{}}}]", spec.text.define));
    parts.join(", ")
}

fn rank(
    plan: &StreamPlan,
    partition: &[usize],
    order: &[SortKey],
    (start, end): (u64, &RankEnd),
    strategy: &RankStrategy,
    noun: &str,
) -> String {
    let input = plan.input();
    let end_text = match end {
        RankEnd::Constant(n) => n.to_string(),
        RankEnd::Variable(i) => input.schema.columns[*i].name.clone(),
    };
    if noun != "Rank" {
        let offset = start - 1;
        let fetch = match end {
            RankEnd::Constant(n) => n.saturating_sub(offset).to_string(),
            RankEnd::Variable(_) => end_text,
        };
        let order = if order.is_empty() {
            String::new()
        } else {
            format!("orderBy=[{}], ", order_by(input, order))
        };
        return format!("{order}offset=[{offset}], fetch=[{fetch}]");
    }
    let strategy = match strategy {
        RankStrategy::AppendFast => "AppendFastStrategy".to_string(),
        RankStrategy::UpdateFast(key) => {
            format!("UpdateFastStrategy[primaryKeys: {}]", names(input, key))
        }
        RankStrategy::Retract => "RetractStrategy".to_string(),
    };
    format!(
        "strategy=[{strategy}], rankType=[ROW_NUMBER], rankRange=[rankStart={start}, \
         rankEnd={end_text}], partitionBy=[{}], orderBy=[{}], select=[{}]",
        names(input, partition),
        order_by(input, order),
        select(plan)
    )
}

fn order_by(plan: &StreamPlan, keys: &[SortKey]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|k| {
            let direction = if k.descending { "DESC" } else { "ASC" };
            format!("{} {direction}", plan.schema.columns[k.column].name)
        })
        .collect();
    keys.join(", ")
}
