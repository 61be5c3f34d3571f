//! Function calls: scalar functions, and those that are a form of their own.

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::compare::compare;
use super::expr::{Context, case, is_null};
use super::{Binder, literal, refusals};
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::functions::{Arg, families};
use crate::types::coerce::common_argument_type;
use crate::types::{TimeAttribute, TypeKind};

impl Binder<'_> {
    /// Binds a call by its name: OVER, an aggregate, a lowered form, or a scalar function.
    pub(super) fn bind_function(
        &mut self,
        function: &ast::Function,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let name = function_name(function);
        if function.over.is_some() {
            return self.bind_over(&name, function, context);
        }
        if context.pattern.is_some()
            && let Some(bound) = self.bind_pattern_call(&name, function, context)?
        {
            return Ok(bound);
        }
        let grouping = matches!(name.as_str(), "GROUPING" | "GROUPING_ID" | "GROUP_ID");
        if grouping || self.is_aggregate(&name) {
            return self.bind_aggregate(&name, function, context);
        }
        if let Some(refusal) = over_only(&name) {
            return Err(refusal);
        }
        let args = arguments(function)?;
        if let Some((time, _)) = args.split_first()
            && super::window::window_property(&name, None).is_some()
        {
            let window = name.split('_').next().unwrap_or_default();
            if context.group_window.as_deref() != Some(&super::window::window_call(window, &args)) {
                return Err(Error::plan(format!(
                    "Call to auxiliary group function '{name}' must have matching call to group \
                     function '${window}' in GROUP BY clause"
                )));
            }
            let clause = context.aggregates.take();
            let time = self.bind_expr(time, context);
            context.aggregates = clause;
            let time = time?;
            let of = |attribute| {
                let columns = &context.scope.columns;
                let mut times = columns.iter().filter(|c| c.time == Some(attribute));
                times.any(|c| c.expr.same(&time))
            };
            if name.ends_with("_ROWTIME") && of(TimeAttribute::Proctime) {
                return Err(
                    Error::plan("A proctime window cannot provide a rowtime attribute.")
                        .hint("use the .._PROCTIME function"),
                );
            }
            if name.ends_with("_PROCTIME") && of(TimeAttribute::Rowtime) {
                // no clock ends a window of event time
                let kind = match time.data_type.kind {
                    TypeKind::TimestampLtz(_) => TypeKind::TimestampLtz(3),
                    _ => TypeKind::Timestamp(3),
                };
                return literal::typed_null(&kind.nullable());
            }
            let property = super::window::window_property(&name, Some(&time));
            return property.ok_or_else(|| Error::internal("a window property without a type"));
        }
        match name.as_str() {
            "COALESCE" => {
                let args = self.bind_all(&args, context)?;
                coalesce(args)
            }
            "IFNULL" => {
                let args = self.bind_all(&args, context)?;
                let [x, default] = args.as_slice() else {
                    return Err(unknown_signature(&name, &args));
                };
                let Some(common) = common_argument_type(&[&x.data_type, &default.data_type]) else {
                    return Err(refusals::arguments(&name, &[x, default]));
                };
                if x.data_type.nullable {
                    coalesce(args)
                } else {
                    Ok(x.clone().cast_to(&common.kind.not_null()))
                }
            }
            "ITEM" if args.len() == 2 => {
                let [value, index] = self.exactly("ITEM", &args, context)?;
                self.item(value, index)
            }
            "CURRENT_DATABASE" if args.is_empty() => {
                let name = ScalarValue::from(self.catalogs.current().1);
                Ok(Expr::literal(name, TypeKind::STRING.not_null()))
            }
            "NULLIF" => {
                let [a, b] = self.exactly("NULLIF", &args, context)?;
                if a.data_type.kind == TypeKind::Null {
                    return Err(refusals::only_nulls());
                }
                let equal = compare(CompareOp::Eq, a.clone(), b)?;
                let null = literal::typed_null(&a.data_type)?;
                case(vec![(equal, null)], a)
            }
            "IF" => {
                let [condition, then, otherwise] = self.exactly("IF", &args, context)?;
                let refused = || refusals::arguments("IF", &[&condition, &then, &otherwise]);
                let parts = [&condition, &then, &otherwise];
                if parts.iter().any(|e| e.data_type.kind == TypeKind::Null) {
                    return Err(refusals::untyped_null());
                }
                let fits = |e: &Expr| {
                    let kind = &e.data_type.kind;
                    kind.is_numeric()
                        || kind.is_string()
                        || kind.is_binary()
                        || kind.is_temporal()
                        || *kind == TypeKind::Boolean
                };
                if !fits(&then) || !fits(&otherwise) {
                    return Err(refused());
                }
                let test = super::expr::boolean(condition.clone(), "IF").map_err(|_| refused())?;
                // of two points in time the first decides
                let otherwise = if [&then, &otherwise].iter().all(|e| e.data_type.kind.is_timestamp())
                {
                    otherwise.clone().cast_to(&then.data_type)
                } else {
                    otherwise.clone()
                };
                let nullable = test.data_type.nullable;
                let mut chosen = case(vec![(test, then.clone())], otherwise)
                    .map_err(|_| refused())?;
                chosen.data_type.nullable |= nullable;
                Ok(chosen)
            }
            "JSON" if !self.functions.hides("JSON") => Err(Error::plan(
                "The JSON() function is currently only supported inside JSON_ARRAY() or as the VALUE \
                 param of JSON_OBJECT()",
            )
            .hint("JSON_OBJECT('a' VALUE JSON('{\"key\": \"value\"}'))")),
            "JSON_OBJECT" | "JSON_ARRAY" => {
                let args = args
                    .iter()
                    .map(|arg| self.bind_json_value(arg, context))
                    .collect::<Result<_>>()?;
                self.call(&name, args)
            }
            "CURRENT_WATERMARK" => {
                let args = self.bind_all(&args, context)?;
                check_rowtime(&args, context)?;
                self.call(&name, args)
            }
            _ => {
                self.refuse_declared(&function.name)?;
                let args = self.bind_all(&args, context)?;
                self.call(&name, args)
            }
        }
    }

    /// Refuses a function that only a class implements. Built-ins and the program's functions stand
    /// before declared ones.
    pub(super) fn refuse_declared(&self, name: &ast::ObjectName) -> Result<()> {
        let parts = super::object_parts(name)?;
        let known = parts
            .last()
            .is_some_and(|last| self.functions.entry(last).is_some());
        match self.catalogs.find_function(&parts) {
            Some(declared) if !known => Err(declared.cannot_run(&name.to_string())),
            _ => Ok(()),
        }
    }

    fn bind_all(
        &mut self,
        args: &[&ast::Expr],
        context: &mut Context<'_, '_>,
    ) -> Result<Vec<Expr>> {
        args.iter().map(|a| self.bind_expr(a, context)).collect()
    }

    /// A value of a JSON constructor, which may be a text that JSON() says is JSON.
    fn bind_json_value(&mut self, arg: &ast::Expr, context: &mut Context<'_, '_>) -> Result<Expr> {
        match arg {
            ast::Expr::Function(function) if function_name(function) == "JSON" => {
                let args = self.bind_all(&arguments(function)?, context)?;
                self.call("JSON", args)
            }
            _ => self.bind_expr(arg, context),
        }
    }

    fn exactly<const N: usize>(
        &mut self,
        name: &str,
        args: &[&ast::Expr],
        context: &mut Context<'_, '_>,
    ) -> Result<[Expr; N]> {
        let bound = self.bind_all(args, context)?;
        <[Expr; N]>::try_from(bound).map_err(|given| {
            Error::plan(format!(
                "Invalid number of arguments to function '{name}'. Was expecting {N} arguments, \
                 got {}",
                given.len()
            ))
        })
    }
}

/// The refusal of a call with so many arguments.
fn unknown_signature(name: &str, args: &[Expr]) -> Error {
    let args: Vec<_> = args
        .iter()
        .map(|arg| Arg {
            data_type: arg.data_type.clone(),
            literal: None,
        })
        .collect();
    Error::plan(format!(
        "No match found for function signature {name}({})",
        families(&args)
    ))
}

/// Whether it is what a JSON constructor makes.
pub(super) fn is_json(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Call { function, .. }
        if matches!(function.name(), "JSON_OBJECT" | "JSON_ARRAY"))
}

fn check_rowtime(args: &[Expr], context: &Context<'_, '_>) -> Result<()> {
    let [arg] = args else { return Ok(()) };
    let column = context.scope.columns.iter().find(|c| c.expr.same(arg));
    let time = column.and_then(|c| c.time);
    if time == Some(TimeAttribute::Rowtime) {
        return Ok(());
    }
    let mark = if time.is_some() { " *PROCTIME*" } else { "" };
    Err(Error::plan(format!(
        "The argument of CURRENT_WATERMARK() must be a rowtime attribute, but was '{}{mark}'.",
        arg.data_type
    ))
    .hint("name the column that WATERMARK FOR declares"))
}

fn over_only(name: &str) -> Option<Error> {
    let is = matches!(
        name,
        "ROW_NUMBER"
            | "RANK"
            | "DENSE_RANK"
            | "LAG"
            | "LEAD"
            | "NTILE"
            | "PERCENT_RANK"
            | "CUME_DIST"
    );
    is.then(|| {
        Error::plan(format!(
            "OVER clause is necessary for window functions: {name}"
        ))
        .hint(format!(
            "write {name}(..) OVER (PARTITION BY .. ORDER BY ..)"
        ))
    })
}

/// The first argument that is not NULL.
pub(super) fn coalesce(args: Vec<Expr>) -> Result<Expr> {
    let types: Vec<_> = args.iter().map(|a| &a.data_type).collect();
    if args.is_empty() {
        return Err(unknown_signature("COALESCE", &args));
    }
    if types.iter().all(|t| t.kind == TypeKind::Null) {
        return Err(refusals::untyped_null());
    }
    let Some(common) = common_argument_type(&types) else {
        let types: Vec<_> = types.iter().map(|t| t.kind.to_string()).collect();
        return Err(Error::plan(format!(
            "The arguments of COALESCE have no common type: {}",
            types.join(", ")
        )));
    };
    let nullable = args.iter().all(|a| a.data_type.nullable);
    let mut args: Vec<Expr> = args.into_iter().map(|a| a.cast_to(&common)).collect();
    // nothing behind an argument that is never NULL is reached
    if let Some(last) = args.iter().position(|a| !a.data_type.nullable) {
        args.truncate(last + 1);
    }
    let Some(last) = args.pop() else {
        return Ok(literal::null());
    };
    if args.is_empty() {
        return Ok(last);
    }
    let branches = args
        .into_iter()
        .map(|a| (is_null(a.clone(), true), a))
        .collect();
    let mut result = case(branches, last)?;
    result.data_type.nullable = nullable;
    Ok(result)
}

/// A function's name in upper case, without catalog and database.
pub(super) fn function_name(function: &ast::Function) -> String {
    let last = function.name.0.last().and_then(|part| part.as_ident());
    last.map(|ident| ident.value.to_uppercase())
        .unwrap_or_default()
}

/// The positional arguments; `*` and named ones are refused.
pub(super) fn arguments(function: &ast::Function) -> Result<Vec<&ast::Expr>> {
    match &function.args {
        FunctionArguments::None => Ok(Vec::new()),
        FunctionArguments::Subquery(_) => Err(Error::plan(format!(
            "{} does not take a query",
            function.name
        ))),
        FunctionArguments::List(list) => list
            .args
            .iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Ok(e),
                other => Err(Error::plan(format!(
                    "The argument '{other}' of {} is not supported",
                    function.name
                ))),
            })
            .collect(),
    }
}
