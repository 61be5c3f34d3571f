//! `function(..) OVER (..)`.

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, WindowFrameBound, WindowFrameUnits, WindowType};

use super::expr::{Context, OVER_BASE, time_attribute};
use super::{Binder, refusals};
use crate::aggregates::CallContext;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::plan::logical::{
    Frame, FrameBound, LogicalNode, LogicalPlan, OverCall, OverFunction, SortKey,
};
use crate::types::{Column, DataType, Schema, TypeKind};

/// An OVER call met in an expression; its parts are over the block's input.
pub(super) struct PendingOver {
    pub(super) function: OverFunction,
    pub(super) args: Vec<Expr>,
    pub(super) distinct: bool,
    pub(super) partition: Vec<Expr>,
    /// Key, descending, NULLS FIRST.
    pub(super) order: Vec<(Expr, bool, bool)>,
    pub(super) frame: Frame,
    pub(super) data_type: DataType,
}

impl PendingOver {
    /// Rewrites every part.
    pub(super) fn map(self, rewrite: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Self> {
        Ok(Self {
            args: self
                .args
                .into_iter()
                .map(&mut *rewrite)
                .collect::<Result<_>>()?,
            partition: self
                .partition
                .into_iter()
                .map(&mut *rewrite)
                .collect::<Result<_>>()?,
            order: self
                .order
                .into_iter()
                .map(|(e, d, n)| Ok((rewrite(e)?, d, n)))
                .collect::<Result<_>>()?,
            ..self
        })
    }
}

impl Binder<'_> {
    /// Binds an OVER call and puts it aside.
    pub(super) fn bind_over(
        &mut self,
        name: &str,
        function: &ast::Function,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        if context.overs.is_none() {
            return Err(Error::plan(format!(
                "{name}(..) OVER is not allowed in {}",
                context.clause
            ))
            .hint("compute it in a subquery, or filter it with QUALIFY"));
        }
        let spec = named_window(function.over.as_ref(), context.named_windows)?;
        let overs = context.overs.take();
        let pending = self.pending_over(name, function, &spec, context);
        context.overs = overs;
        let pending = pending?;
        let data_type = pending.data_type.clone();
        let overs = context.overs.get_or_insert_default();
        overs.push(pending);
        Ok(Expr::column(OVER_BASE + overs.len() - 1, data_type))
    }

    fn pending_over(
        &mut self,
        name: &str,
        function: &ast::Function,
        spec: &ast::WindowSpec,
        context: &mut Context<'_, '_>,
    ) -> Result<PendingOver> {
        if function.filter.is_some() {
            return Err(
                Error::plan("OVER must be applied to aggregate function").hint(
                    "FILTER does not go with OVER: use CASE WHEN .. THEN .. END as the argument",
                ),
            );
        }
        let (mut args, distinct, _) = self.aggregate_parts(name, function, context)?;
        let bare = [
            "ROW_NUMBER",
            "RANK",
            "DENSE_RANK",
            "CUME_DIST",
            "PERCENT_RANK",
        ];
        if bare.contains(&name) && !args.is_empty() {
            return Err(Error::plan(format!(
                "Invalid number of arguments to function '{name}'. Was expecting 0 arguments"
            )));
        }
        let partition = spec
            .partition_by
            .iter()
            .map(|e| self.bind_expr(e, context))
            .collect::<Result<Vec<_>>>()?;
        if partition.iter().any(|e| e.data_type.kind == TypeKind::Null) {
            return Err(refusals::untyped_null());
        }
        let mut order = Vec::new();
        for item in &spec.order_by {
            let key = self.bind_expr(&item.expr, context)?;
            let (descending, nulls_first) = direction(&item.options);
            order.push((key, descending, nulls_first));
        }
        let bigint = || TypeKind::BigInt.not_null();
        let (over, data_type) = match name {
            "ROW_NUMBER" => (OverFunction::RowNumber, bigint()),
            "RANK" => (OverFunction::Rank, bigint()),
            "DENSE_RANK" => (OverFunction::DenseRank, bigint()),
            "LAG" => self.bind_lag(&mut args)?,
            "LEAD" | "NTILE" | "CUME_DIST" | "PERCENT_RANK" => {
                return Err(Error::plan(format!(
                    "{name} Function is not supported in stream mode."
                ))
                .hint("rows after the current one are not known yet"));
            }
            _ if self.is_aggregate(name) => {
                let call = CallContext {
                    grouped: true,
                    filtered: false,
                    distinct,
                };
                let (function, columns) = self.resolve_aggregate(name, args, call)?;
                args = columns;
                let data_type = function.returns().clone();
                (OverFunction::Aggregate(function), data_type)
            }
            _ => {
                return Err(Error::plan(format!("{name} cannot be used with OVER"))
                    .hint("OVER takes aggregate functions, ROW_NUMBER, RANK, DENSE_RANK and LAG"));
            }
        };
        let frame = self.bind_frame(spec.window_frame.as_ref(), &over, context)?;
        Ok(PendingOver {
            function: over,
            args,
            distinct,
            partition,
            order,
            frame,
            data_type,
        })
    }

    /// The offset and default of LAG are constants; only its value stays an argument.
    fn bind_lag(&self, args: &mut Vec<Expr>) -> Result<(OverFunction, DataType)> {
        let data_type = lag_type(args)?;
        let mut rest = args.drain(1..).collect::<Vec<_>>().into_iter();
        let constant = |e: Expr, what: &str| {
            let e = self.fold(e)?;
            e.as_literal()
                .cloned()
                .ok_or_else(|| Error::plan(format!("The {what} of LAG must be a constant")))
        };
        let offset = match rest.next() {
            None => 1,
            Some(e) => match constant(e, "offset")? {
                ScalarValue::Int32(Some(n)) => usize::try_from(n).unwrap_or(0),
                other => {
                    return Err(Error::plan(format!(
                        "The offset of LAG is no number: {other}"
                    )));
                }
            },
        };
        let default = match rest.next() {
            None => None,
            Some(e) => Some(constant(e.cast_to(&data_type), "default")?),
        };
        if let Some(value) = args.first_mut() {
            *value = value.clone().cast_to(&data_type);
        }
        Ok((OverFunction::Lag { offset, default }, data_type))
    }

    fn bind_frame(
        &mut self,
        frame: Option<&ast::WindowFrame>,
        function: &OverFunction,
        context: &mut Context<'_, '_>,
    ) -> Result<Frame> {
        let Some(frame) = frame else {
            // As in Flink, LAG, RANK and DENSE_RANK too see all rows of a time at once.
            let rows = matches!(function, OverFunction::RowNumber);
            return Ok(Frame {
                rows,
                start: FrameBound::UnboundedPreceding,
                end: FrameBound::CurrentRow,
            });
        };
        let rows = match frame.units {
            WindowFrameUnits::Rows => true,
            WindowFrameUnits::Range => false,
            WindowFrameUnits::Groups => {
                return Err(
                    Error::plan("GROUPS frames are not supported").hint("use ROWS or RANGE")
                );
            }
        };
        let mut bound = |bound: &WindowFrameBound| -> Result<FrameBound> {
            Ok(match bound {
                WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
                WindowFrameBound::Preceding(None) => FrameBound::UnboundedPreceding,
                WindowFrameBound::Following(_) => FrameBound::Following,
                WindowFrameBound::Preceding(Some(e)) => {
                    let value = self.bind_expr(e, context)?;
                    let value = self.fold(value)?;
                    let number = matches!(
                        value.as_literal(),
                        Some(ScalarValue::Int32(_) | ScalarValue::Int64(_))
                    );
                    if number && !rows {
                        return Err(Error::plan(
                            "Data Type mismatch between ORDER BY and RANGE clause",
                        )
                        .hint("RANGE takes an INTERVAL before the row; ROWS takes a number"));
                    }
                    FrameBound::Preceding(constant_bound(&value)?)
                }
            })
        };
        let start = bound(&frame.start_bound)?;
        let end = frame
            .end_bound
            .as_ref()
            .map_or(Ok(FrameBound::CurrentRow), &mut bound)?;
        Ok(Frame { rows, start, end })
    }
}

/// Direction and place of NULLs; Flink puts NULLs first when ascending, last when descending.
pub(super) fn direction(options: &ast::OrderByOptions) -> (bool, bool) {
    let descending = options.asc == Some(false);
    (descending, options.nulls_first.unwrap_or(!descending))
}

fn constant_bound(value: &Expr) -> Result<i64> {
    let number = match value.as_literal() {
        Some(ScalarValue::Int32(Some(n))) => Some(i64::from(*n)),
        Some(ScalarValue::Int64(Some(n)) | ScalarValue::DurationMillisecond(Some(n))) => Some(*n),
        _ => None,
    };
    number.ok_or_else(|| {
        Error::plan(format!("The window range {value} is not a constant"))
            .hint("use a number with ROWS and an INTERVAL of days or less with RANGE")
    })
}

fn lag_type(args: &[Expr]) -> Result<DataType> {
    match args {
        [value] | [value, _] => Ok(value.data_type.as_nullable()),
        [value, _, default] => {
            let types = [&value.data_type, &default.data_type];
            let common = crate::types::coerce::common_type(&types)
                .ok_or_else(|| Error::plan("The default of LAG has another type than its value"))?;
            Ok(common.as_nullable())
        }
        _ => Err(Error::plan("LAG takes a value, an offset and a default")),
    }
}

fn named_window(
    over: Option<&WindowType>,
    named: &[ast::NamedWindowDefinition],
) -> Result<ast::WindowSpec> {
    let find = |name: &ast::Ident| -> Result<ast::WindowSpec> {
        let found = named.iter().find(|d| d.0.value == name.value);
        match found.map(|d| &d.1) {
            Some(ast::NamedWindowExpr::WindowSpec(spec)) => Ok(spec.clone()),
            Some(ast::NamedWindowExpr::NamedWindow(other)) => {
                named_window(Some(&WindowType::NamedWindow(other.clone())), named)
            }
            None => Err(Error::plan(format!("Window '{}' not found", name.value))
                .hint("declare it: WINDOW name AS (..)")),
        }
    };
    match over {
        Some(WindowType::NamedWindow(name)) => find(name),
        Some(WindowType::WindowSpec(spec)) => match &spec.window_name {
            None => Ok(spec.clone()),
            Some(name) => {
                let base = find(name)?;
                let or = |a: &Vec<ast::Expr>, b: &Vec<ast::Expr>| {
                    if a.is_empty() { b.clone() } else { a.clone() }
                };
                Ok(ast::WindowSpec {
                    window_name: None,
                    partition_by: or(&spec.partition_by, &base.partition_by),
                    order_by: if spec.order_by.is_empty() {
                        base.order_by
                    } else {
                        spec.order_by.clone()
                    },
                    window_frame: spec.window_frame.clone().or(base.window_frame),
                })
            }
        },
        None => Err(Error::internal("an OVER call without a window")),
    }
}

/// Adds one column a call behind the columns of `input`.
pub(super) fn plan_over(input: LogicalPlan, pending: Vec<PendingOver>) -> LogicalPlan {
    let width = input.schema.len();
    let mut exprs: Vec<Expr> = (0..width).map(|i| input.column(i)).collect();
    let mut schema = input.schema.clone();
    let mut column_of = |expr: Expr| -> usize {
        exprs.iter().position(|e| e.same(&expr)).unwrap_or_else(|| {
            let mut column = Column::new(format!("$o{}", exprs.len()), expr.data_type.clone());
            column.time = time_attribute(&expr, &input.schema);
            schema.columns.push(column);
            exprs.push(expr);
            exprs.len() - 1
        })
    };
    let calls: Vec<OverCall> = pending
        .into_iter()
        .map(|p| OverCall {
            function: p.function,
            args: p.args.into_iter().map(&mut column_of).collect(),
            distinct: p.distinct,
            partition: p.partition.into_iter().map(&mut column_of).collect(),
            order: p
                .order
                .into_iter()
                .map(|(e, descending, nulls_first)| SortKey {
                    column: column_of(e),
                    descending,
                    nulls_first,
                })
                .collect(),
            frame: p.frame,
            data_type: p.data_type,
        })
        .collect();
    let extended = if exprs.len() == width {
        input
    } else {
        input.project(exprs, schema)
    };
    let inner = extended.schema.len();
    let mut output: Schema = extended.schema.clone();
    for (i, call) in calls.iter().enumerate() {
        output
            .columns
            .push(Column::new(format!("w0$o{i}"), call.data_type.clone()));
    }
    let over = LogicalPlan::new(
        LogicalNode::Over {
            input: Box::new(extended),
            calls,
        },
        output,
    );
    let kept: Vec<usize> = (0..width).chain(inner..over.schema.len()).collect();
    over.project_columns(&kept)
}
