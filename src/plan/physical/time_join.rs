//! Joins bounded by time: interval, temporal and window joins.

use datafusion::common::ScalarValue;

use super::build::calc;
use super::join::{JoinKeys, extract_keys, join_type};
use super::keys::is_subset;
use super::window::window_columns;
use super::{Planner, StreamNode, StreamPlan, TimeJoinKeys, changelog};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::plan::binder::and;
use crate::plan::logical::JoinKind;
use crate::plan::rewrite::split;
use crate::types::Schema;

/// The bounds of an interval join: `lower <= left time - right time <= upper`, ms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    left_time: usize,
    right_time: usize,
    lower: i64,
    upper: i64,
    event_time: bool,
}

/// Finds the bounds that a join condition puts on the distance of two time attributes; the rest of
/// the condition is given back.
pub(super) fn interval_bounds(
    left: &Schema,
    right: &Schema,
    on: Option<&Expr>,
) -> Option<(Bounds, Option<Expr>)> {
    let width = left.len();
    let mut bounds: Option<(usize, usize, Option<i64>, Option<i64>)> = None;
    let mut rest = Vec::new();
    for conjunct in on.cloned().map(split).unwrap_or_default() {
        let Some(found) = time_bound(&conjunct, left, right) else {
            rest.push(conjunct);
            continue;
        };
        let (l, r, lower, upper) = found;
        match &mut bounds {
            None => bounds = Some((l, r, lower, upper)),
            Some((bl, br, low, high)) if *bl == l && *br == r => {
                *low = tighter(*low, lower, i64::max);
                *high = tighter(*high, upper, i64::min);
            }
            Some(_) => rest.push(conjunct),
        }
    }
    let (left_time, right_time, Some(lower), Some(upper)) = bounds? else {
        return None;
    };
    let event_time = left.columns[left_time].is_rowtime();
    let bounds = Bounds {
        left_time,
        right_time: right_time - width,
        lower,
        upper,
        event_time,
    };
    Some((bounds, (!rest.is_empty()).then(|| and(rest))))
}

fn tighter(a: Option<i64>, b: Option<i64>, pick: fn(i64, i64) -> i64) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        (a, b) => a.or(b),
    }
}

type TimeBound = (usize, usize, Option<i64>, Option<i64>);

/// A comparison of time attributes of both sides: their columns and the bounds of their distance.
fn time_bound(e: &Expr, left: &Schema, right: &Schema) -> Option<TimeBound> {
    let ExprKind::Compare {
        op,
        left: a,
        right: b,
    } = &e.kind
    else {
        return None;
    };
    let (a_column, a_shift) = shifted_column(a)?;
    let (b_column, b_shift) = shifted_column(b)?;
    let width = left.len();
    let attribute = |column: usize| {
        if column < width {
            left.columns[column].time
        } else {
            right.columns[column - width].time
        }
    };
    if attribute(a_column).is_none() || attribute(a_column) != attribute(b_column) {
        return None;
    }
    // a + a_shift OP b + b_shift, with the left side's column first
    let (op, l, r, distance) = if a_column < width && b_column >= width {
        (*op, a_column, b_column, b_shift - a_shift)
    } else if b_column < width && a_column >= width {
        (op.flipped(), b_column, a_column, a_shift - b_shift)
    } else {
        return None;
    };
    // l - r OP distance
    match op {
        // as in Flink, shifted times that are equal make no interval join
        CompareOp::Eq if a_shift == 0 && b_shift == 0 => Some((l, r, Some(0), Some(0))),
        CompareOp::LtEq => Some((l, r, None, Some(distance))),
        CompareOp::Lt => Some((l, r, None, Some(distance - 1))),
        CompareOp::GtEq => Some((l, r, Some(distance), None)),
        CompareOp::Gt => Some((l, r, Some(distance + 1), None)),
        _ => None,
    }
}

/// A column plus constant milliseconds.
fn shifted_column(e: &Expr) -> Option<(usize, i64)> {
    match &e.kind {
        ExprKind::Column(i) => Some((*i, 0)),
        ExprKind::Cast { input, .. } if e.data_type.kind.is_timestamp() => shifted_column(input),
        ExprKind::Call { function, args } if function.name() == "TIMESTAMPADD" => {
            let [unit, n, time] = args.as_slice() else {
                return None;
            };
            let (column, shift) = shifted_column(time)?;
            let ms = unit_ms(unit)?.checked_mul(constant_int(n)?)?;
            Some((column, shift.checked_add(ms)?))
        }
        ExprKind::Call { function, args } if args.len() == 2 => {
            let sign = match function.name() {
                "+" => 1,
                "-" => -1,
                _ => return None,
            };
            if let Some(ms) = constant_ms(&args[1]) {
                let (column, shift) = shifted_column(&args[0])?;
                return Some((column, shift + sign * ms));
            }
            if sign > 0
                && let Some(ms) = constant_ms(&args[0])
            {
                let (column, shift) = shifted_column(&args[1])?;
                return Some((column, shift + ms));
            }
            None
        }
        _ => None,
    }
}

/// The length of a constant unit.
fn unit_ms(e: &Expr) -> Option<i64> {
    let (ScalarValue::Utf8(Some(unit)) | ScalarValue::Utf8View(Some(unit))) = e.as_literal()?
    else {
        return None;
    };
    match unit.as_str() {
        "SECOND" => Some(1000),
        "MINUTE" => Some(60_000),
        "HOUR" => Some(3_600_000),
        "DAY" => Some(86_400_000),
        _ => None,
    }
}

fn constant_int(e: &Expr) -> Option<i64> {
    match e.as_literal()? {
        ScalarValue::Int32(Some(n)) => Some(i64::from(*n)),
        ScalarValue::Int64(Some(n)) => Some(*n),
        _ => None,
    }
}

fn constant_ms(e: &Expr) -> Option<i64> {
    match e.as_literal()? {
        ScalarValue::DurationMillisecond(Some(ms)) => Some(*ms),
        _ => None,
    }
}

impl Planner<'_> {
    pub(super) fn build_interval_join(
        &self,
        left: StreamPlan,
        right: StreamPlan,
        kind: JoinKind,
        (bounds, rest): (Bounds, Option<Expr>),
        schema: Schema,
    ) -> Result<StreamPlan> {
        for input in [&left, &right] {
            append_only(input, "StreamPhysicalIntervalJoin")?;
        }
        let widths = (left.schema.len(), right.schema.len());
        let JoinKeys {
            left,
            right,
            left_keys,
            right_keys,
            null_safe,
            rest,
        } = extract_keys(left, right, rest);
        let output = crate::plan::binder::join_schema(&left.schema, &right.schema, kind);
        let wide_left = left.schema.len();
        let plan = StreamPlan {
            node: StreamNode::IntervalJoin {
                join_type: join_type(kind),
                keys: TimeJoinKeys {
                    left: left_keys,
                    right: right_keys,
                    null_safe,
                    left_time: bounds.left_time,
                    right_time: bounds.right_time,
                },
                event_time: bounds.event_time,
                lower: bounds.lower,
                upper: bounds.upper,
                condition: rest,
            },
            inputs: vec![left, right],
            schema: output,
            mode: ChangelogMode::APPEND,
            unique_keys: Vec::new(),
        };
        Ok(without_key_columns(plan, widths, wide_left, kind, schema))
    }

    /// A join on equal windows, if it is one.
    pub(super) fn window_join_parts(
        left: &StreamPlan,
        right: &StreamPlan,
        on: Option<&Expr>,
    ) -> Option<Option<Expr>> {
        let (l, r) = (window_columns(left)?, window_columns(right)?);
        let width = left.schema.len();
        let mut starts = false;
        let mut ends = false;
        let mut rest = Vec::new();
        for conjunct in on.cloned().map(split).unwrap_or_default() {
            match equal_columns(&conjunct) {
                Some((a, b)) if (a, b) == (l.start, r.start + width) => starts = true,
                Some((a, b)) if (a, b) == (l.end, r.end + width) => ends = true,
                _ => rest.push(conjunct),
            }
        }
        let fits = starts && ends && l.windowing == r.windowing && l.rowtime && r.rowtime;
        fits.then(|| (!rest.is_empty()).then(|| and(rest)))
    }

    pub(super) fn build_window_join(
        &self,
        left: StreamPlan,
        right: StreamPlan,
        kind: JoinKind,
        rest: Option<Expr>,
        schema: Schema,
    ) -> Result<StreamPlan> {
        for input in [&left, &right] {
            append_only(input, "StreamPhysicalWindowJoin")?;
        }
        let internal = || Error::internal("a window join without windows");
        let (l, r) = (
            window_columns(&left).ok_or_else(internal)?,
            window_columns(&right).ok_or_else(internal)?,
        );
        let widths = (left.schema.len(), right.schema.len());
        let JoinKeys {
            left,
            right,
            left_keys,
            right_keys,
            null_safe,
            rest,
        } = extract_keys(left, right, rest);
        let output = crate::plan::binder::join_schema(&left.schema, &right.schema, kind);
        let wide_left = left.schema.len();
        let plan = StreamPlan {
            node: StreamNode::WindowJoin {
                join_type: join_type(kind),
                keys: TimeJoinKeys {
                    left: left_keys,
                    right: right_keys,
                    null_safe,
                    left_time: l.end,
                    right_time: r.end,
                },
                windowing: l.windowing,
                condition: rest,
            },
            inputs: vec![left, right],
            schema: output,
            mode: ChangelogMode::APPEND,
            unique_keys: Vec::new(),
        };
        Ok(without_key_columns(plan, widths, wide_left, kind, schema))
    }

    pub(super) fn build_temporal_join(
        &self,
        left: StreamPlan,
        right: StreamPlan,
        kind: JoinKind,
        time_column: usize,
        on: Expr,
        schema: Schema,
    ) -> Result<StreamPlan> {
        let Some(right_time) = right.schema.columns.iter().position(|c| c.is_rowtime()) else {
            return Err(Error::plan(
                "Event-Time Temporal Table Join requires both primary key and row time attribute in \
                 versioned table, but no row time attribute can be found.",
            )
            .hint("declare WATERMARK FOR a column of the right table"));
        };
        let widths = (left.schema.len(), right.schema.len());
        let versioned_keys = right.unique_keys.clone();
        let JoinKeys {
            left,
            right,
            left_keys,
            right_keys,
            null_safe,
            rest,
        } = extract_keys(left, right, Some(on));
        if versioned_keys.is_empty() {
            return Err(Error::plan(
                "Event-Time Temporal Table Join requires both primary key and row time attribute in \
                 versioned table, but no primary key can be found.",
            )
            .hint("declare PRIMARY KEY (..) NOT ENFORCED on the right table"));
        }
        if !versioned_keys.iter().any(|key| is_subset(key, &right_keys)) {
            let key: Vec<_> = versioned_keys[0]
                .iter()
                .map(|i| right.schema.columns[*i].name.as_str())
                .collect();
            return Err(Error::plan(format!(
                "Temporal table's primary key [{}] must be included in the equivalence condition of \
                 temporal join, but current temporal join condition does not hold it.",
                key.join(", ")
            )));
        }
        let output = crate::plan::binder::join_schema(&left.schema, &right.schema, kind);
        let wide_left = left.schema.len();
        let plan = StreamPlan {
            mode: left.mode,
            unique_keys: left.unique_keys.clone(),
            node: StreamNode::TemporalJoin {
                join_type: join_type(kind),
                keys: TimeJoinKeys {
                    left: left_keys,
                    right: right_keys,
                    null_safe,
                    left_time: time_column,
                    right_time,
                },
                condition: rest,
            },
            inputs: vec![left, right],
            schema: output,
        };
        Ok(without_key_columns(plan, widths, wide_left, kind, schema))
    }
}

/// Refuses an input with updates.
pub(super) fn append_only(input: &StreamPlan, operator: &str) -> Result<()> {
    if input.mode.is_append() {
        return Ok(());
    }
    Err(Error::plan(format!(
        "{operator} doesn't support consuming {} changes which is produced by node {}",
        changelog::changes(input.mode),
        changelog::describe(input)
    )))
}

/// `column = column`, the lower one first.
fn equal_columns(e: &Expr) -> Option<(usize, usize)> {
    let ExprKind::Compare {
        op: CompareOp::Eq,
        left,
        right,
    } = &e.kind
    else {
        return None;
    };
    let (a, b) = (left.as_column()?, right.as_column()?);
    Some((a.min(b), a.max(b)))
}

/// Drops the columns that key expressions added to the inputs.
pub(super) fn without_key_columns(
    plan: StreamPlan,
    (left_width, right_width): (usize, usize),
    wide_left: usize,
    kind: JoinKind,
    schema: Schema,
) -> StreamPlan {
    let mut kept: Vec<usize> = (0..left_width).collect();
    if !kind.is_semi_or_anti() {
        kept.extend(wide_left..wide_left + right_width);
    }
    let exprs = kept
        .iter()
        .map(|i| Expr::column(*i, plan.schema.columns[*i].data_type.clone()))
        .collect();
    calc(plan, None, exprs, schema)
}
