//! Windows: which columns tell of them, and the aggregates that use them.

use super::build::{calc, identity};
use super::keys::is_same_set;
use super::{Planner, StreamNode, StreamPlan};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::operators::group_window_aggregate::EmitStrategy;
use crate::operators::window_aggregate::{WindowProperty, WindowSource};
use crate::operators::windowing::{WindowKind, WindowTime, Windowing};
use crate::plan::logical::{AggregateCall, WindowSpec};
use crate::types::{Column, Schema, TimeAttribute, TypeKind};

/// The columns of a plan that tell of the window that a row belongs to.
#[derive(Debug, Clone)]
pub(super) struct WindowColumns {
    pub(super) start: usize,
    pub(super) end: usize,
    /// `window_time`, if it is there.
    pub(super) time: Option<usize>,
    pub(super) windowing: Windowing,
    /// Whether the window is one of event time.
    pub(super) rowtime: bool,
}

/// The window columns of a plan's output, if rows belong to windows.
pub(super) fn window_columns(plan: &StreamPlan) -> Option<WindowColumns> {
    match &plan.node {
        StreamNode::WindowTableFunction {
            windowing, time, ..
        } => {
            let width = plan.input().schema.len();
            Some(WindowColumns {
                start: width,
                end: width + 1,
                time: Some(width + 2),
                windowing: *windowing,
                rowtime: matches!(time, WindowTime::Rowtime(_)),
            })
        }
        StreamNode::Calc { projection, .. } => {
            let below = window_columns(plan.input())?;
            let place = |column: usize| {
                projection
                    .iter()
                    .position(|e| e.as_column() == Some(column))
            };
            Some(WindowColumns {
                start: place(below.start)?,
                end: place(below.end)?,
                time: below.time.and_then(place),
                ..below
            })
        }
        StreamNode::Expand { sets } => {
            let below = window_columns(plan.input())?;
            let kept = |column: usize| sets.iter().all(|(nulled, _)| !nulled.contains(&column));
            (kept(below.start) && kept(below.end)).then_some(below)
        }
        StreamNode::WindowAggregate {
            keys,
            calls,
            properties,
            windowing,
            source,
            ..
        } => {
            let first = keys.len() + calls.len();
            let place = |wanted: WindowProperty| {
                properties
                    .iter()
                    .position(|p| *p == wanted)
                    .map(|i| first + i)
            };
            Some(WindowColumns {
                start: place(WindowProperty::Start)?,
                end: place(WindowProperty::End)?,
                time: place(WindowProperty::Rowtime),
                windowing: *windowing,
                rowtime: !matches!(source, WindowSource::Time(WindowTime::Proctime)),
            })
        }
        StreamNode::WindowRank { .. } | StreamNode::WindowDeduplicate { .. } => {
            window_columns(plan.input())
        }
        StreamNode::WindowJoin { .. } => window_columns(&plan.inputs[0]),
        _ => None,
    }
}

impl Planner<'_> {
    /// The zone in which windows on `time` are cut: that of the session for instants.
    fn windowing(&self, kind: WindowKind, time: &Column) -> Windowing {
        let instant =
            time.is_proctime() || matches!(time.data_type.kind, TypeKind::TimestampLtz(_));
        Windowing::new(kind, instant.then(|| self.config.time_zone()))
    }

    pub(super) fn build_window_table_function(
        &self,
        input: StreamPlan,
        window: &WindowSpec,
        schema: Schema,
    ) -> Result<StreamPlan> {
        if let WindowKind::Cumulate { step, size, .. } = window.shape
            && size % step != 0
        {
            return Err(Error::plan(format!(
                "CUMULATE table function based aggregate requires maxSize must be an integral \
                 multiple of step, but got maxSize {size} ms and step {step} ms"
            )));
        }
        let column = &input.schema.columns[window.time_column];
        let windowing = self.windowing(window.shape, column);
        let time = window_time(column, window.time_column)?;
        if !input.mode.is_append() && matches!(window.shape, WindowKind::Session { .. }) {
            // only an aggregate takes sessions apart again
            tracing::debug!("sessions over an updating input");
        }
        Ok(StreamPlan {
            node: StreamNode::WindowTableFunction {
                windowing,
                time,
                partition: window.partition.clone(),
            },
            mode: input.mode,
            unique_keys: Vec::new(),
            inputs: vec![input],
            schema,
        })
    }

    /// An aggregate whose keys hold start and end of a window: emitted once, when it is over.
    ///
    /// `None` when it is no window aggregate; the input is given back.
    pub(super) fn build_window_aggregate(
        &self,
        input: StreamPlan,
        keys: &[usize],
        calls: &[AggregateCall],
        schema: &Schema,
    ) -> Result<std::result::Result<StreamPlan, Box<StreamPlan>>> {
        let Some(window) = window_columns(&input) else {
            return Ok(Err(Box::new(input)));
        };
        if !keys.contains(&window.start) || !keys.contains(&window.end) {
            return Ok(Err(Box::new(input)));
        }
        if let Some(partition) = session_partition(&input)
            && !partition
                .iter()
                .all(|name| keys.iter().any(|k| input.schema.columns[*k].name == *name))
        {
            return Ok(Err(Box::new(input)));
        }
        if let WindowKind::Hop { slide, size, .. } = window.windowing.kind
            && size % slide != 0
        {
            return Err(Error::plan(format!(
                "HOP table function based aggregate requires size must be an integral multiple of \
                 slide, but got size {size} ms and slide {slide} ms"
            )));
        }
        for prefix in [
            "table.exec.emit.early-fire.enabled",
            "table.exec.emit.late-fire.enabled",
        ] {
            if self.config.bool(prefix, false) {
                return Err(Error::plan(
                    "Currently, window table function based aggregate doesn't support early-fire \
                     and late-fire configuration 'table.exec.emit.early-fire.enabled' and \
                     'table.exec.emit.late-fire.enabled'.",
                ));
            }
        }
        let is_window =
            |k: &usize| *k == window.start || *k == window.end || Some(*k) == window.time;
        let groups: Vec<usize> = keys.iter().copied().filter(|k| !is_window(k)).collect();
        let parts = WindowAggregateParts::new(input, &window, &groups, calls);
        if matches!(parts.source, WindowSource::Time(_)) {
            refuse_without_merge(&window.windowing.kind, calls)?;
        }
        let group_count = parts.groups.len();
        let mut properties = vec![WindowProperty::Start, WindowProperty::End];
        if window.time.is_some_and(|t| keys.contains(&t)) {
            properties.push(if window.rowtime {
                WindowProperty::Rowtime
            } else {
                WindowProperty::Proctime
            });
        }
        let first_property = group_count + calls.len();
        // where each key of the logical output lies
        let mut next_group = 0;
        let mut order: Vec<usize> = keys
            .iter()
            .map(|k| {
                if *k == window.start {
                    first_property
                } else if *k == window.end {
                    first_property + 1
                } else if Some(*k) == window.time {
                    first_property + 2
                } else {
                    next_group += 1;
                    next_group - 1
                }
            })
            .collect();
        order.extend(group_count..first_property);
        let mut output = Schema::new(vec![
            Column::new("", TypeKind::Null.nullable());
            first_property + properties.len()
        ]);
        for (i, place) in order.iter().enumerate() {
            output.columns[*place] = schema.columns[i].clone();
        }
        for (i, property) in properties.iter().enumerate() {
            let column = &mut output.columns[first_property + i];
            if column.name.is_empty() {
                *column = property_column(*property);
            }
        }
        let mut key: Vec<usize> = (0..group_count).collect();
        key.extend([first_property, first_property + 1]);
        let plan = StreamPlan {
            node: StreamNode::WindowAggregate {
                keys: parts.groups,
                calls: parts.calls,
                source: parts.source,
                windowing: window.windowing,
                properties,
                emit: None,
            },
            inputs: vec![parts.input],
            schema: output,
            mode: ChangelogMode::APPEND,
            unique_keys: vec![key],
        };
        let exprs = order
            .iter()
            .zip(&schema.columns)
            .map(|(i, c)| Expr::column(*i, c.data_type.clone()))
            .collect();
        Ok(Ok(calc(plan, None, exprs, schema.clone())))
    }

    /// `table.exec.emit.*` for windows of `shape`.
    ///
    /// # Errors
    /// What does not go together, as Flink says it.
    fn emit_strategy(&self, kind: &WindowKind) -> Result<EmitStrategy> {
        let enabled = |what: &str| {
            let option = format!("table.exec.emit.{what}.enabled");
            self.config.bool(&option, false)
        };
        let delay = |what: &str| {
            let option = format!("table.exec.emit.{what}.delay");
            self.config.duration_ms(&option).ok_or_else(|| {
                let (first, rest) = what.split_at(1);
                Error::plan(format!(
                    "{}{rest} delay should not be null or negative value when enable {what} emit strategy.",
                    first.to_uppercase()
                ))
                .hint(format!("SET '{option}' = '0 ms' fires for each row"))
            })
        };
        let (early, late) = (enabled("early-fire"), enabled("late-fire"));
        if (early || late) && matches!(kind, WindowKind::Session { .. }) {
            return Err(
                Error::plan("Session window doesn't support EMIT strategy currently.").hint(
                    "SET 'table.exec.emit.early-fire.enabled' and 'late-fire.enabled' to 'false'",
                ),
            );
        }
        let early = early.then(|| delay("early-fire")).transpose()?;
        let lateness = self.config.duration_ms("table.exec.emit.allow-lateness");
        let lateness = lateness.or(self.config.state_ttl()).filter(|_| late);
        if late && lateness.is_none() {
            return Err(Error::plan(
                "The 'AFTER WATERMARK' emit strategy requires set 'allow-lateness' or \
                 'minIdleStateRetentionTime' in table config.",
            )
            .hint("SET 'table.exec.emit.allow-lateness' = '1 min', or 'table.exec.state.ttl'"));
        }
        Ok(EmitStrategy {
            early_fire_delay_ms: early,
            late_fire_delay_ms: late.then(|| delay("late-fire")).transpose()?,
            allow_lateness_ms: lateness.unwrap_or(0),
            generate_update_before: true,
        })
    }

    /// The deprecated group windows: `GROUP BY TUMBLE(ts, ..)`.
    pub(super) fn build_group_window_aggregate(
        &self,
        input: StreamPlan,
        window: &WindowSpec,
        keys: &[usize],
        calls: &[AggregateCall],
        schema: Schema,
    ) -> Result<StreamPlan> {
        let column = &input.schema.columns[window.time_column];
        let windowing = self.windowing(window.shape, column);
        // Flink asks for the time attribute before a GROUP BY below takes it away.
        let time = match column.time {
            None => WindowTime::Rowtime(window.time_column),
            Some(_) => window_time(column, window.time_column)?,
        };
        let last = if matches!(time, WindowTime::Rowtime(_)) {
            WindowProperty::Rowtime
        } else {
            WindowProperty::Proctime
        };
        refuse_without_merge(&windowing.kind, calls)?;
        let emit = self.emit_strategy(&windowing.kind)?;
        let append = input.mode.is_append();
        let first_property = keys.len() + calls.len();
        // any property tells of the window
        let unique_keys = (first_property..first_property + 3)
            .map(|property| (0..keys.len()).chain([property]).collect())
            .collect();
        Ok(StreamPlan {
            node: StreamNode::WindowAggregate {
                keys: keys.to_vec(),
                calls: calls.to_vec(),
                source: WindowSource::Time(time),
                windowing,
                properties: vec![WindowProperty::Start, WindowProperty::End, last],
                emit: Some(emit),
            },
            inputs: vec![input],
            schema,
            mode: if emit.produces_updates() {
                ChangelogMode {
                    delete: !append,
                    ..ChangelogMode::RETRACT
                }
            } else {
                ChangelogMode::APPEND
            },
            unique_keys,
        })
    }
}

/// Refuses functions whose parts Flink cannot merge in windows that are put together of parts.
fn refuse_without_merge(kind: &WindowKind, calls: &[AggregateCall]) -> Result<()> {
    if matches!(kind, WindowKind::Tumble { .. }) {
        return Ok(());
    }
    match calls.iter().find(|c| !c.function.merges_in_flink()) {
        None => Ok(()),
        Some(call) => Err(Error::plan(format!(
            "Could not find an implementation method 'merge' for function '{}'",
            call.function.name()
        ))
        .hint(
            "such windows merge partial results: use TUMBLE, or ROW_NUMBER for the first or last \
             row",
        )),
    }
}

fn window_time(column: &Column, index: usize) -> Result<WindowTime> {
    match column.time {
        Some(TimeAttribute::Rowtime) => Ok(WindowTime::Rowtime(index)),
        Some(TimeAttribute::Proctime) => Ok(WindowTime::Proctime),
        None => Err(Error::plan(format!(
            "The window function requires the timecol is a time attribute type, but is {}.",
            column.data_type.kind
        ))
        .hint("an expression or a join on the way makes a plain timestamp of a time attribute")),
    }
}

fn property_column(property: WindowProperty) -> Column {
    let (name, kind) = match property {
        WindowProperty::Start => ("window_start", TypeKind::Timestamp(3)),
        WindowProperty::End => ("window_end", TypeKind::Timestamp(3)),
        WindowProperty::Rowtime => ("window_time", TypeKind::Timestamp(3)),
        WindowProperty::Proctime => ("window_time", TypeKind::TimestampLtz(3)),
    };
    Column::new(name, kind.not_null())
}

/// A window aggregate with its window taken from the time where nothing stands in between, else
/// from the columns.
struct WindowAggregateParts {
    input: StreamPlan,
    groups: Vec<usize>,
    calls: Vec<AggregateCall>,
    source: WindowSource,
}

impl WindowAggregateParts {
    fn new(
        input: StreamPlan,
        window: &WindowColumns,
        groups: &[usize],
        calls: &[AggregateCall],
    ) -> Self {
        let used: Vec<usize> = groups
            .iter()
            .copied()
            .chain(
                calls
                    .iter()
                    .flat_map(|c| c.args.iter().copied().chain(c.filter)),
            )
            .collect();
        match from_time(&input, &used, groups) {
            Some((input, map, time)) => {
                let at = |old: usize| map[old].expect("a used column is kept");
                let calls = calls
                    .iter()
                    .map(|c| AggregateCall {
                        args: c.args.iter().map(|i| at(*i)).collect(),
                        filter: c.filter.map(at),
                        ..c.clone()
                    })
                    .collect();
                Self {
                    groups: groups.iter().map(|i| at(*i)).collect(),
                    calls,
                    source: WindowSource::Time(time),
                    input,
                }
            }
            None => Self {
                input,
                groups: groups.to_vec(),
                calls: calls.to_vec(),
                source: WindowSource::Attached {
                    start: window.start,
                    end: window.end,
                },
            },
        }
    }
}

/// The input below the windowing function, where each used column of `plan` lies in it, and the
/// time.
fn from_time(
    plan: &StreamPlan,
    used: &[usize],
    groups: &[usize],
) -> Option<(StreamPlan, Vec<Option<usize>>, WindowTime)> {
    match &plan.node {
        StreamNode::WindowTableFunction {
            time, partition, ..
        } => {
            let width = plan.input().schema.len();
            let fits = partition.is_empty() || is_same_set(partition, groups);
            if used.iter().any(|i| *i >= width) || !fits {
                return None;
            }
            let map = (0..plan.schema.len())
                .map(|i| (i < width).then_some(i))
                .collect();
            Some((plan.input().clone(), map, *time))
        }
        StreamNode::Calc {
            condition,
            projection,
        } => {
            let function = plan.input();
            let StreamNode::WindowTableFunction {
                time, partition, ..
            } = &function.node
            else {
                return None;
            };
            let below = function.input();
            let width = below.schema.len();
            let plain = |e: &Expr| e.columns().iter().all(|i| *i < width);
            if condition.as_ref().is_some_and(|c| !plain(c))
                || used.iter().any(|i| !plain(&projection[*i]))
            {
                return None;
            }
            let grouped: Option<Vec<usize>> =
                groups.iter().map(|g| projection[*g].as_column()).collect();
            if !partition.is_empty() && !is_same_set(partition, &grouped?) {
                return None;
            }
            if partition.is_empty() && is_session(function) && !groups.is_empty() {
                return None;
            }
            let mut exprs = Vec::new();
            let mut schema = Schema::default();
            let mut map = vec![None; projection.len()];
            for (i, e) in projection.iter().enumerate().filter(|(_, e)| plain(e)) {
                map[i] = Some(exprs.len());
                exprs.push(e.clone());
                schema.columns.push(plan.schema.columns[i].clone());
            }
            let time = match time {
                WindowTime::Proctime => WindowTime::Proctime,
                WindowTime::Rowtime(column) => {
                    let at = exprs.iter().position(|e| e.as_column() == Some(*column));
                    let at = at.unwrap_or_else(|| {
                        exprs.push(identity(&below.schema)[*column].clone());
                        schema.columns.push(below.schema.columns[*column].clone());
                        exprs.len() - 1
                    });
                    WindowTime::Rowtime(at)
                }
            };
            Some((
                calc(below.clone(), condition.clone(), exprs, schema),
                map,
                time,
            ))
        }
        _ => None,
    }
}

/// Names of the PARTITION BY columns of a session window right below, through a projection.
fn session_partition(plan: &StreamPlan) -> Option<Vec<String>> {
    match &plan.node {
        StreamNode::WindowTableFunction { partition, .. } if is_session(plan) => Some(
            partition
                .iter()
                .map(|i| plan.schema.columns[*i].name.clone())
                .collect(),
        ),
        StreamNode::Calc { .. } => session_partition(plan.input()),
        _ => None,
    }
}

fn is_session(plan: &StreamPlan) -> bool {
    matches!(
        &plan.node,
        StreamNode::WindowTableFunction { windowing, .. }
            if matches!(windowing.kind, WindowKind::Session { .. })
    )
}
