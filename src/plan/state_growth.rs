//! Which operators of a plan hold state that grows without end, and why.
//!
//! State is bounded by a time to live, by a window or by an input that ends. What is left grows with
//! the number of rows or of keys that were ever seen: it is shown by EXPLAIN and said when the job
//! starts, so that nobody finds out by running out of memory.

use super::explain;
use super::physical::{ConflictAction, StreamNode, StreamPlan};
use crate::config::Configuration;
use crate::operators::join::UniqueKey;
use crate::operators::over_aggregate::{OverFrame, OverOrder};
use crate::operators::rank::RankStrategy;
use crate::types::TypeKind;

/// The heading of [`lines`] in EXPLAIN.
pub const HEADING: &str = "== State That Grows Without End ==";

/// An operator whose state grows without end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateGrowth {
    /// The operator, as EXPLAIN prints it.
    pub operator: String,
    /// What it keeps, and until when.
    pub reason: String,
}

/// All of them, from the sink to the sources.
#[must_use]
pub fn state_growth(plan: &StreamPlan, config: &Configuration) -> Vec<StateGrowth> {
    let mut found = Vec::new();
    collect(plan, config, &mut found);
    found
}

/// One line an operator.
#[must_use]
pub fn lines(growth: &[StateGrowth]) -> Vec<String> {
    let each = growth.iter();
    each.map(|g| format!("{}: {}", g.operator, g.reason))
        .collect()
}

/// What to do about it.
pub const ADVICE: &str = "bound it with 'table.exec.state.ttl', a STATE_TTL hint or a window";

fn collect(plan: &StreamPlan, config: &Configuration, found: &mut Vec<StateGrowth>) {
    if !is_endless(plan) {
        return;
    }
    if let Some(reason) = reason(plan, config) {
        found.push(StateGrowth {
            operator: explain::line(plan),
            reason,
        });
    }
    for input in &plan.inputs {
        collect(input, config, found);
    }
}

/// Whether some source below never ends.
fn is_endless(plan: &StreamPlan) -> bool {
    match &plan.node {
        StreamNode::TableSourceScan { source, .. } => !source.is_bounded(),
        _ => plan.inputs.iter().any(is_endless),
    }
}

fn reason(plan: &StreamPlan, config: &Configuration) -> Option<String> {
    let ttl = config.state_ttl();
    match &plan.node {
        StreamNode::GroupAggregate { keys, calls, ttl } => {
            if ttl.is_some() {
                return None;
            }
            if grows(plan.input(), keys) {
                let keys = names(plan.input(), keys);
                return Some(format!("keeps an entry for every value of [{keys}]"));
            }
            let distinct = calls.iter().find(|call| call.distinct);
            let call = distinct.or_else(|| {
                let withdrawn = !plan.input().mode.is_append();
                let mut calls = calls.iter();
                calls.find(|call| keeps_values(call.function.name(), withdrawn))
            })?;
            let args = names(plan.input(), &call.args);
            Some(format!(
                "keeps every value of {}({}{args})",
                call.function.name(),
                if call.distinct { "DISTINCT " } else { "" }
            ))
        }
        StreamNode::Join { left, right, .. } => {
            let sides: Vec<String> = [left, right]
                .into_iter()
                .zip(&plan.inputs)
                .zip(["left", "right"])
                .filter(|((side, input), _)| side.ttl.is_none() && is_endless(input))
                .map(|((side, input), name)| match &side.unique_key {
                    UniqueKey::JoinKey => {
                        let keys = names(input, &side.keys);
                        format!("a row of its {name} input for every value of [{keys}]")
                    }
                    UniqueKey::Columns(key) => {
                        let key = names(input, key);
                        format!("a row of its {name} input for every value of [{key}]")
                    }
                    UniqueKey::None => format!("every row of its {name} input"),
                })
                .collect();
            (!sides.is_empty()).then(|| format!("keeps {}", sides.join(" and ")))
        }
        StreamNode::TemporalJoin { keys, .. } if is_endless(&plan.inputs[1]) => {
            let keys = names(&plan.inputs[1], &keys.right);
            Some(format!(
                "keeps the latest version for every value of [{keys}]"
            ))
        }
        StreamNode::LookupJoin(node) if ttl.is_none() => {
            let key = names(plan.input(), node.materialize.as_ref()?);
            Some(format!(
                "keeps what it was joined with for every value of [{key}]"
            ))
        }
        _ if ttl.is_some() => None,
        StreamNode::OverAggregate {
            partition,
            order,
            frame,
            ..
        } => over_aggregate(plan, partition, order, frame),
        StreamNode::Rank {
            partition,
            strategy,
            noun,
            ..
        } => {
            if matches!(strategy, RankStrategy::Retract) {
                return Some("keeps every row, because its input withdraws rows".into());
            }
            let keys = grows(plan.input(), partition);
            keys.then(|| {
                let keys = names(plan.input(), partition);
                let what = if *noun == "Rank" {
                    "the first rows"
                } else {
                    "rows"
                };
                format!("keeps {what} for every value of [{keys}]")
            })
        }
        StreamNode::Deduplicate { key, .. } | StreamNode::ChangelogNormalize { key, .. }
            if grows(plan.input(), key) =>
        {
            let key = names(plan.input(), key);
            Some(format!("keeps a row for every value of [{key}]"))
        }
        StreamNode::SinkUpsertMaterializer {
            primary_key,
            action: ConflictAction::Deduplicate,
            ..
        } => {
            let key = names(plan.input(), primary_key);
            Some(format!("keeps every row for every value of [{key}]"))
        }
        StreamNode::SinkUpsertMaterializer { primary_key, .. } => {
            let key = names(plan.input(), primary_key);
            Some(format!("keeps a row for every value of [{key}]"))
        }
        StreamNode::Match { spec } if spec.text.within.is_none() => {
            Some("keeps matches that have begun until they end, having no WITHIN".into())
        }
        _ => None,
    }
}

fn over_aggregate(
    plan: &StreamPlan,
    partition: &[usize],
    order: &OverOrder,
    frame: &OverFrame,
) -> Option<String> {
    if matches!(order, OverOrder::Columns(_)) {
        return Some("keeps every row, because its order is not that of time".into());
    }
    // a RANGE of so much time forgets what is older
    if matches!(frame, OverFrame::Range(Some(_))) || !grows(plan.input(), partition) {
        return None;
    }
    let keys = names(plan.input(), partition);
    Some(format!("keeps a frame for every value of [{keys}]"))
}

/// Aggregates that keep what they were given.
fn keeps_values(function: &str, withdrawn: bool) -> bool {
    match function {
        "MIN" | "MAX" | "FIRST_VALUE" | "LAST_VALUE" => withdrawn,
        "COLLECT" | "LISTAGG" | "ARRAY_AGG" | "JSON_ARRAYAGG" | "JSON_OBJECTAGG" | "PERCENTILE" => {
            true
        }
        _ => false,
    }
}

/// Whether the columns can have ever more values.
fn grows(plan: &StreamPlan, columns: &[usize]) -> bool {
    let kind = |i: &usize| &plan.schema.columns[*i].data_type.kind;
    columns.iter().any(|i| *kind(i) != TypeKind::Boolean)
}

fn names(plan: &StreamPlan, columns: &[usize]) -> String {
    let columns = columns.iter();
    let names: Vec<_> = columns
        .map(|i| plan.schema.columns[*i].name.as_str())
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use crate::session::{Session, StatementResult};

    /// The operators that EXPLAIN names, with the reasons.
    fn named(settings: &[(&str, &str)], sql: &str) -> Vec<String> {
        let mut session = Session::new();
        for (key, value) in settings {
            session.set(key, value).unwrap();
        }
        for ddl in [
            "CREATE TABLE e (id BIGINT, k INT, flag BOOLEAN, ts AS LOCALTIMESTAMP, WATERMARK FOR ts AS \
             ts) WITH ('connector' = 'datagen')",
            "CREATE TABLE few (id BIGINT, k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5')",
        ] {
            session.execute(ddl).unwrap();
        }
        let StatementResult::Lines(lines) = session.execute(&format!("EXPLAIN {sql}")).unwrap()
        else {
            panic!("EXPLAIN gives lines");
        };
        let heading = lines.iter().position(|line| line == super::HEADING);
        let Some(heading) = heading else {
            return Vec::new();
        };
        let found = &lines[heading + 1..lines.len() - 1];
        let short = |line: &String| {
            let (operator, reason) = line.split_once("): ").unwrap();
            format!("{}: {reason}", operator.split('(').next().unwrap())
        };
        found.iter().map(short).collect()
    }

    #[test]
    fn state_that_grows_without_end_is_named_with_the_reason() {
        for (sql, expected) in [
            (
                "SELECT k, COUNT(*) AS n FROM e GROUP BY k",
                "GroupAggregate: keeps an entry for every value of [k]",
            ),
            (
                "SELECT COUNT(DISTINCT k) AS n FROM e",
                "GroupAggregate: keeps every value of COUNT(DISTINCT k)",
            ),
            (
                "SELECT a.id, b.k FROM e AS a JOIN e AS b ON a.k = b.k",
                "Join: keeps every row of its left input and every row of its right input",
            ),
            (
                "SELECT a.id, b.k FROM e AS a JOIN few AS b ON a.k = b.k",
                "Join: keeps every row of its left input",
            ),
            (
                "SELECT id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM \
                 e) WHERE n <= 3",
                "Rank: keeps the first rows for every value of [k]",
            ),
            (
                "SELECT id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n \
                 FROM e) WHERE n = 1",
                "Deduplicate: keeps a row for every value of [k]",
            ),
            (
                "SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts) AS n FROM e",
                "OverAggregate: keeps a frame for every value of [k]",
            ),
        ] {
            assert_eq!(named(&[], sql), [expected], "{sql}");
            let ttl = named(&[("table.exec.state.ttl", "1 h")], sql);
            assert_eq!(ttl, Vec::<String>::new(), "{sql}");
        }
    }

    #[test]
    fn nothing_is_said_of_state_that_is_bounded() {
        for sql in [
            "SELECT k, COUNT(*) AS n FROM few GROUP BY k",
            "SELECT flag, COUNT(*) AS n FROM e GROUP BY flag",
            "SELECT COUNT(*) AS n FROM e",
            "SELECT /*+ STATE_TTL('e' = '1 h') */ k, COUNT(*) AS n FROM e GROUP BY k",
            "SELECT k, window_end, COUNT(*) AS n FROM TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' \
             MINUTE) GROUP BY k, window_start, window_end",
            "SELECT a.id FROM e AS a JOIN e AS b ON a.k = b.k AND a.ts BETWEEN b.ts AND b.ts + INTERVAL \
             '1' MINUTE",
            "SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE \
             PRECEDING AND CURRENT ROW) AS n FROM e",
        ] {
            assert_eq!(named(&[], sql), Vec::<String>::new(), "{sql}");
        }
    }
}
