//! Windowing table functions (`TUMBLE(TABLE t, DESCRIPTOR(ts), ..)`) and the deprecated group
//! windows (`GROUP BY TUMBLE(ts, ..)`).

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, TableFactor};

use super::expr::{Context, WINDOW_BASE};
use super::scope::Scope;
use super::{Binder, calls};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::operators::windowing::WindowKind;
use crate::plan::logical::{LogicalNode, LogicalPlan, WindowSpec};
use crate::types::{Column, Schema, TimeAttribute, TypeKind};

/// The deprecated window of a GROUP BY.
#[derive(Debug, Clone)]
pub(super) struct GroupWindow {
    /// The function's name and its arguments as written, which its auxiliary functions repeat.
    pub(super) call: String,
    pub(super) shape: WindowKind,
    /// The time attribute, over the block's input.
    pub(super) time: Expr,
    pub(super) attribute: TimeAttribute,
}

/// The windowing function that a table factor is: `TABLE(TUMBLE(..))` or `TUMBLE(..)`.
pub(super) fn window_function(
    factor: &TableFactor,
) -> Option<(&ast::Function, Option<&ast::TableAlias>)> {
    match factor {
        TableFactor::TableFunction {
            expr: ast::Expr::Function(f),
            alias,
        } if is_window_function(&calls::function_name(f)) => Some((f, alias.as_ref())),
        _ => None,
    }
}

fn is_window_function(name: &str) -> bool {
    matches!(name, "TUMBLE" | "HOP" | "CUMULATE" | "SESSION")
}

/// The names of a windowing function's arguments, in order.
fn parameters(name: &str) -> &'static [&'static str] {
    match name {
        "TUMBLE" => &["DATA", "TIMECOL", "SIZE", "OFFSET"],
        "HOP" => &["DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"],
        "CUMULATE" => &["DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"],
        _ => &["DATA", "TIMECOL", "GAP"],
    }
}

impl Binder<'_> {
    /// Binds a windowing function: the table's columns, then `window_start`, `window_end`,
    /// `window_time`.
    pub(super) fn bind_window_function(
        &mut self,
        function: &ast::Function,
        parent: Option<&Scope<'_>>,
    ) -> Result<LogicalPlan> {
        let name = calls::function_name(function);
        let args = named_arguments(&name, function)?;
        let get = |parameter: &str| args.iter().find(|(n, _)| n == parameter).map(|(_, e)| *e);
        let need = |parameter: &str| {
            get(parameter).ok_or_else(|| {
                Error::plan(format!("{name} needs the argument {parameter}")).hint(usage(&name))
            })
        };
        let data = need("DATA")?;
        let Some(table) = crate::sql::table_argument(data) else {
            return self.refuse(
                data,
                format!("The first argument of {name} must be a table"),
            );
        };
        let input = self.bind_query(table.query, parent)?;
        let scope = Scope::of_table(None, &input.schema);
        let time_column = self.descriptor(need("TIMECOL")?, &input.schema)?;
        let partition = table
            .partition_by
            .iter()
            .map(|e| {
                let bound = self.bind_expr(e, &mut Context::scalar(&scope))?;
                bound
                    .as_column()
                    .ok_or_else(|| Error::plan("PARTITION BY takes columns"))
            })
            .collect::<Result<Vec<_>>>()?;
        if !partition.is_empty() && name != "SESSION" {
            return self.refuse(data, format!("{name} does not take PARTITION BY"));
        }
        let column = &input.schema.columns[time_column];
        if column.time.is_none() {
            return Err(Error::plan(format!(
                "The window function requires the timecol is a time attribute type, but is {}.",
                column.data_type.kind
            ))
            .hint("declare WATERMARK FOR it, or use PROCTIME()"));
        }
        let mut ms = |parameter: &str| -> Result<i64> {
            self.interval_argument(&name, parameter, need(parameter)?)
        };
        let shape = match name.as_str() {
            "TUMBLE" => WindowKind::Tumble {
                size: ms("SIZE")?,
                offset: 0,
            },
            "HOP" => WindowKind::Hop {
                slide: ms("SLIDE")?,
                size: ms("SIZE")?,
                offset: 0,
            },
            "CUMULATE" => {
                let (step, size) = (ms("STEP")?, ms("SIZE")?);
                WindowKind::Cumulate {
                    step,
                    size,
                    offset: 0,
                }
            }
            _ => WindowKind::Session { gap: ms("GAP")? },
        };
        let shift = match get("OFFSET") {
            Some(e) => self.interval_argument(&name, "OFFSET", e)?,
            None => 0,
        };
        let shape = with_offset(shape, shift);
        check_shape(&name, shape)?;
        let mut schema = input.schema.clone();
        let stamp = TypeKind::Timestamp(3).not_null();
        schema
            .columns
            .push(Column::new("window_start", stamp.clone()));
        schema.columns.push(Column::new("window_end", stamp));
        let time = column.time;
        let kind = match (&column.data_type.kind, time) {
            (TypeKind::TimestampLtz(_), _) | (_, Some(TimeAttribute::Proctime)) => {
                TypeKind::TimestampLtz(3)
            }
            _ => TypeKind::Timestamp(3),
        };
        schema.columns.push(Column {
            name: "window_time".into(),
            data_type: kind.not_null(),
            time,
        });
        let window = WindowSpec {
            shape,
            time_column,
            partition,
        };
        let node = LogicalNode::WindowTableFunction {
            input: Box::new(input),
            window,
        };
        Ok(LogicalPlan::new(node, schema))
    }

    fn descriptor(&mut self, e: &ast::Expr, schema: &Schema) -> Result<usize> {
        let columns = match e {
            ast::Expr::Function(f) if calls::function_name(f) == "DESCRIPTOR" => {
                calls::arguments(f)?
            }
            _ => return self.refuse(e, "Expected DESCRIPTOR(column)"),
        };
        let scope = Scope::of_table(None, schema);
        let mut named = Vec::new();
        for column in columns {
            let bound = self.bind_expr(column, &mut Context::scalar(&scope))?;
            match bound.as_column() {
                Some(i) => named.push(i),
                None => return self.refuse(e, "DESCRIPTOR takes columns"),
            }
        }
        // the first one counts
        match named.first() {
            Some(i) => Ok(*i),
            None => self.refuse(e, "DESCRIPTOR must name a column"),
        }
    }

    /// A constant interval of days or less, in ms.
    pub(super) fn interval_argument(
        &mut self,
        function: &str,
        parameter: &str,
        e: &ast::Expr,
    ) -> Result<i64> {
        let scope = Scope::default();
        let bound = self.bind_expr(e, &mut Context::scalar(&scope))?;
        let bound = self.fold(bound)?;
        match bound.as_literal() {
            Some(ScalarValue::DurationMillisecond(Some(ms))) => Ok(*ms),
            Some(ScalarValue::IntervalYearMonth(_)) => self.refuse(
                e,
                "Window aggregate only support SECOND, MINUTE, HOUR, DAY as the time unit. MONTH \
                 and YEAR time unit are not supported yet.",
            ),
            _ => self.refuse(
                e,
                format!("The argument {parameter} of {function} must be a constant INTERVAL"),
            ),
        }
    }

    /// The deprecated window that an item of GROUP BY is.
    pub(super) fn bind_group_window(
        &mut self,
        item: &ast::Expr,
        scope: &Scope<'_>,
        input: &Schema,
    ) -> Result<Option<GroupWindow>> {
        let ast::Expr::Function(function) = item else {
            return Ok(None);
        };
        let name = calls::function_name(function);
        if !matches!(name.as_str(), "TUMBLE" | "HOP" | "SESSION") {
            return Ok(None);
        }
        let args = calls::arguments(function)?;
        let Some((time, intervals)) = args.split_first() else {
            return self.refuse(
                item,
                format!("{name} needs a time attribute and an INTERVAL"),
            );
        };
        if intervals.len() > if name == "HOP" { 2 } else { 1 } {
            return self.refuse(
                item,
                format!("{name} window with alignment is not supported yet."),
            );
        }
        let time_expr = self.bind_expr(time, &mut Context::scalar(scope))?;
        let attribute = super::expr::time_attribute(&time_expr, input);
        let Some(attribute) = attribute else {
            return self.refuse(
                item,
                format!(
                    "Window aggregate can only be defined over a time attribute column, but {} \
                     encountered.",
                    time_expr.data_type.kind
                ),
            );
        };
        let mut ms = |i: usize| -> Result<i64> {
            let e = intervals.get(i).copied().ok_or_else(|| {
                Error::plan(format!("{name} in GROUP BY needs one more INTERVAL"))
            })?;
            self.interval_argument(&name, "SIZE", e)
        };
        let shape = match name.as_str() {
            "TUMBLE" => WindowKind::Tumble {
                size: ms(0)?,
                offset: 0,
            },
            "HOP" => WindowKind::Hop {
                slide: ms(0)?,
                size: ms(1)?,
                offset: 0,
            },
            _ => WindowKind::Session { gap: ms(0)? },
        };
        let call = window_call(&name, &args);
        Ok(Some(GroupWindow {
            call,
            shape,
            time: time_expr,
            attribute,
        }))
    }
}

/// A property of the deprecated window: `TUMBLE_START(..)` and its like, as a column beyond
/// [`WINDOW_BASE`].
pub(super) fn window_property(name: &str, time: Option<&Expr>) -> Option<Expr> {
    let (window, property) = name.split_once('_')?;
    if !matches!(window, "TUMBLE" | "HOP" | "SESSION") {
        return None;
    }
    let stamp = || TypeKind::Timestamp(3).not_null();
    let (index, data_type) = match property {
        "START" => (0, stamp()),
        "END" => (1, stamp()),
        "ROWTIME" => {
            let kind = match time.map(|t| &t.data_type.kind) {
                Some(TypeKind::TimestampLtz(_)) => TypeKind::TimestampLtz(3),
                _ => TypeKind::Timestamp(3),
            };
            (
                2,
                kind.with_nullable(time.is_none_or(|t| t.data_type.nullable)),
            )
        }
        "PROCTIME" => (2, TypeKind::TimestampLtz(3).not_null()),
        _ => return None,
    };
    Some(Expr::column(WINDOW_BASE + index, data_type))
}

/// A group window as text, to compare a call with its auxiliary calls.
pub(super) fn window_call(name: &str, args: &[&ast::Expr]) -> String {
    let args: Vec<_> = args.iter().map(ToString::to_string).collect();
    format!("{name}({})", args.join(", "))
}

fn named_arguments<'e>(
    name: &str,
    function: &'e ast::Function,
) -> Result<Vec<(String, &'e ast::Expr)>> {
    let FunctionArguments::List(list) = &function.args else {
        return Err(Error::plan(format!("{name} needs arguments")).hint(usage(name)));
    };
    let names = parameters(name);
    let mut args = Vec::new();
    for (i, arg) in list.args.iter().enumerate() {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => {
                let Some(parameter) = names.get(i) else {
                    return Err(Error::plan(format!(
                        "Invalid number of arguments to function '{name}'"
                    ))
                    .hint(usage(name)));
                };
                args.push(((*parameter).to_string(), e));
            }
            FunctionArg::Named {
                name: parameter,
                arg: FunctionArgExpr::Expr(e),
                ..
            } => {
                let parameter = parameter.value.to_uppercase();
                if !names.contains(&parameter.as_str()) {
                    return Err(Error::plan(format!("{name} has no argument {parameter}"))
                        .hint(usage(name)));
                }
                args.push((parameter, e));
            }
            other => {
                return Err(Error::plan(format!(
                    "The argument '{other}' of {name} is not supported"
                ))
                .hint(usage(name)));
            }
        }
    }
    Ok(args)
}

fn usage(name: &str) -> String {
    match name {
        "TUMBLE" => "TUMBLE(TABLE t, DESCRIPTOR(ts), size [, offset])",
        "HOP" => "HOP(TABLE t, DESCRIPTOR(ts), slide, size [, offset])",
        "CUMULATE" => "CUMULATE(TABLE t, DESCRIPTOR(ts), step, max_size [, offset])",
        _ => "SESSION(TABLE t [PARTITION BY k, ..], DESCRIPTOR(ts), gap)",
    }
    .into()
}

fn with_offset(shape: WindowKind, offset: i64) -> WindowKind {
    match shape {
        WindowKind::Tumble { size, .. } => WindowKind::Tumble { size, offset },
        WindowKind::Hop { slide, size, .. } => WindowKind::Hop {
            slide,
            size,
            offset,
        },
        WindowKind::Cumulate { step, size, .. } => WindowKind::Cumulate { step, size, offset },
        session @ WindowKind::Session { .. } => session,
    }
}

fn check_shape(name: &str, shape: WindowKind) -> Result<()> {
    let lengths: Vec<i64> = match shape {
        WindowKind::Tumble { size, .. } => vec![size],
        WindowKind::Hop { slide, size, .. } => vec![slide, size],
        WindowKind::Cumulate { step, size, .. } => vec![step, size],
        WindowKind::Session { gap } => vec![gap],
    };
    if lengths.iter().any(|ms| *ms <= 0) {
        return Err(Error::plan(format!("{name} needs intervals longer than 0")));
    }
    let (size, offset) = match shape {
        WindowKind::Tumble { size, offset }
        | WindowKind::Hop {
            slide: size,
            offset,
            ..
        } => (size, offset),
        WindowKind::Cumulate { step, offset, .. } => (step, offset),
        WindowKind::Session { .. } => (i64::MAX, 0),
    };
    if offset.abs() >= size {
        let what = match shape {
            WindowKind::Hop { .. } => "slide",
            WindowKind::Cumulate { .. } => "step",
            _ => "size",
        };
        return Err(Error::plan(format!(
            "{name} table function parameters must satisfy abs(offset) < {what}, but got {what} \
             {size} ms and offset {offset} ms."
        )));
    }
    Ok(())
}
