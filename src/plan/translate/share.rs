//! What occurs more than once in a job is read and computed once.
//!
//! Scans of one table are united: one source reads the columns of all of them, and a `Calc` gives each
//! the ones that it asked for (`table.optimizer.reuse-source-enabled`). Subplans that are equal become
//! one vertex with several consumers (`table.optimizer.reuse-sub-plan-enabled`), unless they compute
//! something that differs at every evaluation. As in Flink neither changes a result.

use std::fmt::Write as _;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::catalog::TableDefinition;
use crate::config::Configuration;
use crate::expr::{Expr, ExprKind};
use crate::graph::VertexId;
use crate::plan::physical::{StreamNode, StreamPlan};
use crate::types::Schema;

/// What of a job is shared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sharing {
    subplans: bool,
    sources: bool,
}

impl Sharing {
    /// As the settings say; sources are shared only when subplans are.
    pub(super) fn of(config: &Configuration) -> Self {
        let subplans = config.bool("table.optimizer.reuse-sub-plan-enabled", true);
        Self {
            subplans,
            sources: subplans && config.bool("table.optimizer.reuse-source-enabled", true),
        }
    }

    /// Makes all scans of a table in `plans` read the same columns.
    pub(super) fn unite_scans(self, plans: &mut [StreamPlan]) {
        if !self.sources {
            return;
        }
        let mut scans: Vec<Scan> = Vec::new();
        for plan in plans.iter() {
            collect(plan, &mut scans);
        }
        scans.retain(|scan| scan.differ);
        for plan in plans {
            widen(plan, &scans);
        }
    }

    /// What two subplans with these inputs agree in exactly when they are equal; `None` for one that
    /// is not shared.
    pub(super) fn identity(self, plan: &StreamPlan, inputs: &[VertexId]) -> Option<String> {
        let mut key = String::new();
        match &plan.node {
            StreamNode::TableSourceScan {
                table,
                projection,
                pushed,
                options,
                ..
            } if self.sources => {
                let table = Arc::as_ptr(table);
                // writing to a string cannot fail
                let _ = write!(key, "{table:p} {options:?} {projection:?} {pushed:?}");
            }
            StreamNode::TableSourceScan { .. }
            | StreamNode::Values { .. }
            | StreamNode::Sink { .. }
            | StreamNode::Collect => return None,
            node if self.subplans => {
                let mut functions = Vec::new();
                for e in expressions(node) {
                    if !e.is_deterministic() {
                        return None;
                    }
                    names(e, &mut functions);
                }
                let _ = write!(key, "{node:?} {functions:?} {inputs:?}");
            }
            _ => return None,
        }
        let _ = write!(key, " {:?} {:?}", plan.mode, plan.schema);
        Some(key)
    }
}

/// All scans of one table.
struct Scan {
    table: Arc<TableDefinition>,
    options: IndexMap<String, String>,
    /// Columns that some scan reads, ascending.
    columns: Vec<usize>,
    schema: Schema,
    /// Whether the scans read different columns.
    differ: bool,
}

impl Scan {
    fn is_of(&self, table: &Arc<TableDefinition>, options: &IndexMap<String, String>) -> bool {
        Arc::ptr_eq(&self.table, table) && self.options == *options
    }

    fn add(&mut self, columns: &[usize], schema: &Schema) {
        if self.columns == columns {
            return;
        }
        self.differ = true;
        for (i, column) in columns.iter().enumerate() {
            if let Err(place) = self.columns.binary_search(column) {
                self.columns.insert(place, *column);
                self.schema.columns.insert(place, schema.columns[i].clone());
            }
        }
    }
}

fn collect(plan: &StreamPlan, scans: &mut Vec<Scan>) {
    for input in &plan.inputs {
        collect(input, scans);
    }
    // scans that were asked for fields are united by the rewrite that asked
    let StreamNode::TableSourceScan {
        table,
        projection,
        pushed: None,
        options,
        ..
    } = &plan.node
    else {
        return;
    };
    if !projection.is_sorted() {
        return;
    }
    match scans.iter_mut().find(|s| s.is_of(table, options)) {
        Some(scan) => scan.add(projection, &plan.schema),
        None => scans.push(Scan {
            table: Arc::clone(table),
            options: options.clone(),
            columns: projection.clone(),
            schema: plan.schema.clone(),
            differ: false,
        }),
    }
}

fn widen(plan: &mut StreamPlan, scans: &[Scan]) {
    for input in &mut plan.inputs {
        widen(input, scans);
    }
    let StreamNode::TableSourceScan {
        table,
        projection,
        pushed: None,
        options,
        ..
    } = &mut plan.node
    else {
        return;
    };
    if !projection.is_sorted() {
        return;
    }
    let Some(scan) = scans.iter().find(|s| s.is_of(table, options)) else {
        return;
    };
    if scan.columns == *projection {
        return;
    }
    let kept = projection.iter().map(|column| {
        let place = scan.columns.partition_point(|c| c < column);
        Expr {
            kind: ExprKind::Column(place),
            data_type: scan.schema.columns[place].data_type.clone(),
        }
    });
    let node = StreamNode::Calc {
        condition: None,
        projection: kept.collect(),
    };
    *projection = scan.columns.clone();
    let narrow = StreamPlan {
        node,
        inputs: Vec::new(),
        schema: plan.schema.clone(),
        mode: plan.mode,
        unique_keys: plan.unique_keys.clone(),
    };
    let mut wide = std::mem::replace(plan, narrow);
    wide.schema = scan.schema.clone();
    wide.unique_keys.clear();
    plan.inputs.push(wide);
}

/// The expressions of a node.
fn expressions(node: &StreamNode) -> Vec<&Expr> {
    match node {
        StreamNode::Calc {
            condition,
            projection,
        } => condition.iter().chain(projection).collect(),
        StreamNode::WatermarkAssigner { watermark, .. } => vec![watermark],
        StreamNode::Join { condition, .. }
        | StreamNode::IntervalJoin { condition, .. }
        | StreamNode::WindowJoin { condition, .. }
        | StreamNode::TemporalJoin { condition, .. }
        | StreamNode::Correlate { condition, .. } => condition.iter().collect(),
        StreamNode::LookupJoin(node) => {
            let lookup = &node.lookup;
            let keys = lookup.keys.iter().map(|(_, value)| value);
            keys.chain(&lookup.filter)
                .chain(lookup.computed.iter().flatten())
                .chain(&node.condition)
                .collect()
        }
        StreamNode::ChangelogNormalize { filter, .. } => filter.iter().collect(),
        _ => Vec::new(),
    }
}

/// The names of the functions that are called, in order: how a function shows itself is its own
/// affair.
fn names(e: &Expr, into: &mut Vec<String>) {
    e.any(&mut |e| {
        if let ExprKind::Call { function, .. } = &e.kind {
            into.push(function.name().to_string());
        }
        false
    });
}

#[cfg(test)]
mod tests {
    use crate::session::{Session, StatementResult};

    const DDL: &str = "CREATE TABLE t (a INT, b INT, c INT) WITH ('connector' = 'datagen', \
        'number-of-rows' = '10', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', \
        'fields.a.end' = '10')";

    /// How many vertices of each noun the job of `set` has.
    fn vertices(settings: &[&str], set: &str) -> impl Fn(&str) -> usize {
        let mut session = Session::new();
        for key in settings {
            session.set(key, "false").unwrap();
        }
        session.execute(DDL).unwrap();
        for sink in ["s1", "s2"] {
            let sql = format!("CREATE TABLE {sink} (x BIGINT) WITH ('connector' = 'blackhole')");
            session.execute(&sql).unwrap();
        }
        let set = format!("EXECUTE STATEMENT SET BEGIN {set} END");
        let StatementResult::Job(job) = session.execute(&set).unwrap() else {
            panic!("a statement set is a job");
        };
        job.wait().unwrap();
        let names: Vec<String> = job
            .handle()
            .metrics()
            .iter()
            .map(|m| m.name.clone())
            .collect();
        move |noun| names.iter().filter(|n| *n == noun).count()
    }

    const DIFFERENT_COLUMNS: &str =
        "INSERT INTO s1 SELECT a FROM t; INSERT INTO s2 SELECT b + c FROM t;";
    const EQUAL_GROUPS: &str = "INSERT INTO s1 SELECT n FROM (SELECT b, COUNT(*) AS n FROM t GROUP BY b); \
        INSERT INTO s2 SELECT n + 1 FROM (SELECT b, COUNT(*) AS n FROM t GROUP BY b);";

    #[test]
    fn a_table_is_scanned_once_for_all_its_readers() {
        assert_eq!(vertices(&[], DIFFERENT_COLUMNS)("TableSourceScan"), 1);
    }

    #[test]
    fn equal_subplans_are_computed_once() {
        let count = vertices(&[], EQUAL_GROUPS);
        assert_eq!((count("GroupAggregate"), count("Sink")), (1, 2));
    }

    #[test]
    fn what_differs_at_every_evaluation_is_not_shared() {
        let set = "INSERT INTO s1 SELECT CAST(RAND() * 9 AS BIGINT) FROM t; \
            INSERT INTO s2 SELECT CAST(RAND() * 9 AS BIGINT) FROM t;";
        assert_eq!(vertices(&[], set)("Calc"), 2);
    }

    #[test]
    fn settings_turn_sharing_off() {
        let sources = "table.optimizer.reuse-source-enabled";
        assert_eq!(
            vertices(&[sources], DIFFERENT_COLUMNS)("TableSourceScan"),
            2
        );
        let subplans = "table.optimizer.reuse-sub-plan-enabled";
        assert_eq!(vertices(&[subplans], EQUAL_GROUPS)("GroupAggregate"), 2);
    }
}
