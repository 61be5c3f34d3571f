//! The logical plan as text: the query as it was bound, one node a line.

use crate::expr::Expr;
use crate::operators::windowing::WindowKind;
use crate::plan::logical::{
    AggregateCall, FrameBound, LogicalNode, LogicalPlan, OverCall, OverFunction, RankEnd, SortKey,
    TableCall, WindowSpec,
};

/// The tree of a plan, below a sink if there is one.
#[must_use]
pub fn tree(plan: &LogicalPlan, sink: Option<&str>) -> String {
    let mut text = String::new();
    match sink {
        None => write_tree(plan, "", "", &mut text),
        Some(table) => {
            let fields = plan.schema.names().join(", ");
            text.push_str(&format!(
                "LogicalSink(table=[{table}], fields=[{fields}])\n"
            ));
            write_tree(plan, "+- ", "   ", &mut text);
        }
    }
    text
}

fn write_tree(plan: &LogicalPlan, first: &str, rest: &str, text: &mut String) {
    text.push_str(&format!("{first}{}\n", line(plan)));
    let inputs = plan.inputs();
    for (i, input) in inputs.iter().enumerate() {
        let (mark, bar) = if i + 1 == inputs.len() {
            ("+- ", "   ")
        } else {
            (":- ", ":  ")
        };
        write_tree(
            input,
            &format!("{rest}{mark}"),
            &format!("{rest}{bar}"),
            text,
        );
    }
}

/// One node: `LogicalFilter(condition=[v > 1])`.
fn line(plan: &LogicalPlan) -> String {
    let inputs: Vec<String> = plan
        .inputs()
        .iter()
        .flat_map(|input| input.schema.names())
        .collect();
    let fields = || plan.schema.names().join(", ");
    match &plan.node {
        LogicalNode::Scan(scan) => {
            let p = &scan.table.path;
            let hints = if scan.options == scan.table.options {
                ""
            } else {
                ", hints=[OPTIONS]"
            };
            format!(
                "LogicalTableScan(table=[[{}, {}, {}]]{hints})",
                p.catalog, p.database, p.name
            )
        }
        LogicalNode::Values { rows } => {
            let rows: Vec<_> = rows
                .iter()
                .map(|row| {
                    let values: Vec<_> = row.iter().map(|e| e.to_sql(&[])).collect();
                    format!("{{ {} }}", values.join(", "))
                })
                .collect();
            format!("LogicalValues(tuples=[[{}]])", rows.join(", "))
        }
        LogicalNode::Project { exprs, .. } => {
            let columns = exprs.iter().zip(&plan.schema.columns);
            let columns: Vec<_> = columns
                .map(|(e, c)| format!("{}=[{}]", c.name, e.to_sql(&inputs)))
                .collect();
            format!("LogicalProject({})", columns.join(", "))
        }
        LogicalNode::Filter { predicate, .. } => {
            format!("LogicalFilter(condition=[{}])", predicate.to_sql(&inputs))
        }
        LogicalNode::WatermarkAssigner {
            column, watermark, ..
        } => format!(
            "LogicalWatermarkAssigner(rowtime=[{}], watermark=[{}])",
            inputs[*column],
            watermark.to_sql(&inputs)
        ),
        LogicalNode::Expand { sets, .. } => {
            let sets: Vec<_> = sets.iter().map(|(_, id)| id.to_string()).collect();
            format!("LogicalExpand(ids=[{}])", sets.join(", "))
        }
        LogicalNode::Aggregate { keys, calls, .. } => {
            format!("LogicalAggregate({})", grouping(&inputs, keys, calls))
        }
        LogicalNode::GroupWindowAggregate {
            window: spec,
            keys,
            calls,
            ..
        } => format!(
            "LogicalWindowAggregate(window=[{}], {})",
            window(spec, &inputs),
            grouping(&inputs, keys, calls)
        ),
        LogicalNode::Join { kind, on, .. } => format!(
            "LogicalJoin(condition=[{}], joinType=[{}])",
            condition(on.as_ref(), &inputs),
            kind.name()
        ),
        LogicalNode::LookupJoin { kind, on, .. } => format!(
            "LogicalLookupJoin(condition=[{}], joinType=[{}])",
            condition(on.as_ref(), &inputs),
            kind.name()
        ),
        LogicalNode::TemporalJoin {
            kind,
            time_column,
            on,
            ..
        } => format!(
            "LogicalTemporalJoin(condition=[{}], time=[{}], joinType=[{}])",
            on.to_sql(&inputs),
            inputs[*time_column],
            kind.name()
        ),
        LogicalNode::Correlate {
            call,
            kind,
            condition: on,
            ..
        } => {
            let invocation = match call {
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
            let all = plan.schema.names();
            format!(
                "LogicalCorrelate(invocation=[{invocation}], condition=[{}], joinType=[{}])",
                condition(on.as_ref(), &all),
                kind.name()
            )
        }
        LogicalNode::Union { .. } => "LogicalUnion(all=[true])".into(),
        LogicalNode::Over { calls, .. } => {
            let calls: Vec<_> = calls.iter().map(|call| over(call, &inputs)).collect();
            format!("LogicalOver(calls=[{}])", calls.join(", "))
        }
        LogicalNode::Rank {
            partition,
            order,
            start,
            end,
            ..
        } => {
            let end = match end {
                Some(RankEnd::Constant(n)) => n.to_string(),
                Some(RankEnd::Variable(i)) => inputs[*i].clone(),
                None => String::new(),
            };
            format!(
                "LogicalRank(partitionBy=[{}], orderBy=[{}], rankStart=[{start}], rankEnd=[{end}])",
                names(&inputs, partition),
                order_by(&inputs, order)
            )
        }
        LogicalNode::Sort {
            keys,
            offset,
            fetch,
            ..
        } => {
            let mut parts = Vec::new();
            if !keys.is_empty() {
                parts.push(format!("sort=[{}]", order_by(&inputs, keys)));
            }
            if *offset > 0 {
                parts.push(format!("offset=[{offset}]"));
            }
            parts.extend(fetch.map(|n| format!("fetch=[{n}]")));
            format!("LogicalSort({})", parts.join(", "))
        }
        LogicalNode::WindowTableFunction { window: spec, .. } => format!(
            "LogicalTableFunctionScan(invocation=[{}], fields=[{}])",
            window(spec, &inputs),
            fields()
        ),
        LogicalNode::Match { spec, .. } => format!(
            "LogicalMatch(partition=[{}], order=[{}], pattern=[{}], measures=[{}])",
            names(&inputs, &spec.partition),
            order_by(&inputs, &spec.order),
            spec.text.pattern,
            spec.text.measures
        ),
    }
}

fn condition(on: Option<&Expr>, names: &[String]) -> String {
    on.map_or_else(|| "true".into(), |e| e.to_sql(names))
}

fn names(inputs: &[String], columns: &[usize]) -> String {
    let names: Vec<_> = columns.iter().map(|i| inputs[*i].as_str()).collect();
    names.join(", ")
}

fn order_by(inputs: &[String], keys: &[SortKey]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|k| {
            let direction = if k.descending { "DESC" } else { "ASC" };
            // said only where it is not the default
            let nulls = match (k.nulls_first, k.descending) {
                (true, true) => " NULLS FIRST",
                (false, false) => " NULLS LAST",
                _ => "",
            };
            format!("{} {direction}{nulls}", inputs[k.column])
        })
        .collect();
    keys.join(", ")
}

/// `group=[k], n=[COUNT()]`.
fn grouping(inputs: &[String], keys: &[usize], calls: &[AggregateCall]) -> String {
    let mut parts = vec![format!("group=[{}]", names(inputs, keys))];
    for call in calls {
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let filter = call
            .filter
            .map(|f| format!(" FILTER {}", inputs[f]))
            .unwrap_or_default();
        parts.push(format!(
            "{}=[{}({distinct}{}){filter}]",
            call.name,
            call.function.name(),
            names(inputs, &call.args)
        ));
    }
    parts.join(", ")
}

fn over(call: &OverCall, inputs: &[String]) -> String {
    let name = match &call.function {
        OverFunction::Aggregate(function) => function.name().to_string(),
        OverFunction::RowNumber => "ROW_NUMBER".into(),
        OverFunction::Rank => "RANK".into(),
        OverFunction::DenseRank => "DENSE_RANK".into(),
        OverFunction::Lag { .. } => "LAG".into(),
    };
    let bound = |bound: &FrameBound| match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_string(),
        FrameBound::Preceding(n) => format!("{n} PRECEDING"),
        FrameBound::CurrentRow => "CURRENT ROW".into(),
        FrameBound::Following => "FOLLOWING".into(),
    };
    let mut window = Vec::new();
    if !call.partition.is_empty() {
        window.push(format!("PARTITION BY {}", names(inputs, &call.partition)));
    }
    if !call.order.is_empty() {
        window.push(format!("ORDER BY {}", order_by(inputs, &call.order)));
    }
    window.push(format!(
        "{} BETWEEN {} AND {}",
        if call.frame.rows { "ROWS" } else { "RANGE" },
        bound(&call.frame.start),
        bound(&call.frame.end)
    ));
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    format!(
        "{name}({distinct}{}) OVER ({})",
        names(inputs, &call.args),
        window.join(" ")
    )
}

fn window(spec: &WindowSpec, inputs: &[String]) -> String {
    let time = &inputs[spec.time_column];
    let shift = |offset: i64| {
        if offset == 0 {
            String::new()
        } else {
            format!(", {offset} ms")
        }
    };
    match spec.shape {
        WindowKind::Tumble { size, offset } => {
            format!("TUMBLE({time}, {size} ms{})", shift(offset))
        }
        WindowKind::Hop {
            slide,
            size,
            offset,
        } => format!("HOP({time}, {slide} ms, {size} ms{})", shift(offset)),
        WindowKind::Cumulate { step, size, offset } => {
            format!("CUMULATE({time}, {step} ms, {size} ms{})", shift(offset))
        }
        WindowKind::Session { gap } if spec.partition.is_empty() => {
            format!("SESSION({time}, {gap} ms)")
        }
        WindowKind::Session { gap } => format!(
            "SESSION({time}, {gap} ms, partitionBy=[{}])",
            names(inputs, &spec.partition)
        ),
    }
}
