//! GROUP BY: keys, grouping sets, aggregate calls, and what a grouped SELECT may refer to.

use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArgumentClause, FunctionArguments, GroupByExpr, NullTreatment,
};

use super::compare::compare;
use super::conjuncts::{as_test, split_and};
use super::expr::{AGGREGATE_BASE, Context, OVER_BASE, WINDOW_BASE, and, boolean, case};
use super::scope::Scope;
use super::window::GroupWindow;
use super::{Binder, calls, literal, refusals};
use crate::aggregates::{self, AggregateFunction, CallContext};
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::functions::Arg;
use crate::plan::logical::{AggregateCall, LogicalNode, LogicalPlan, WindowSpec};
use crate::types::{Column, Schema, TimeAttribute, TypeKind};

/// What a call says about NULLs, within its parentheses or behind them.
fn null_treatment(function: &ast::Function) -> Option<&'static str> {
    let clauses = match &function.args {
        FunctionArguments::List(list) => list.clauses.as_slice(),
        _ => &[],
    };
    let inside = clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => Some(*treatment),
        _ => None,
    });
    Some(match inside.or(function.null_treatment)? {
        NullTreatment::IgnoreNulls => "IGNORE NULLS",
        NullTreatment::RespectNulls => "RESPECT NULLS",
    })
}

/// An aggregate call met in an expression; its parts are over the block's input.
pub(super) struct PendingAggregate {
    pub(super) name: String,
    pub(super) args: Vec<Expr>,
    pub(super) distinct: bool,
    pub(super) filter: Option<Expr>,
    pub(super) function: PendingFunction,
}

/// What an aggregate call computes.
pub(super) enum PendingFunction {
    /// An aggregate function.
    Aggregate(AggregateFunction),
    /// `GROUPING(..)`, `GROUPING_ID(..)`: a number made of the grouping set.
    Grouping,
    /// `GROUP_ID()`.
    GroupId,
}

impl PendingAggregate {
    /// A plain call of `function` on `args`.
    pub(super) fn new(name: &str, args: Vec<Expr>, function: AggregateFunction) -> Self {
        Self {
            name: name.into(),
            args,
            distinct: false,
            filter: None,
            function: PendingFunction::Aggregate(function),
        }
    }

    /// Rewrites the arguments and the filter.
    pub(super) fn map(&mut self, rewrite: &dyn Fn(Expr) -> Expr) {
        for e in self.args.iter_mut().chain(&mut self.filter) {
            *e = rewrite(e.clone());
        }
    }

    fn same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.distinct == other.distinct
            && self.args.len() == other.args.len()
            && self.args.iter().zip(&other.args).all(|(a, b)| a.same(b))
            && match (&self.function, &other.function) {
                (PendingFunction::Aggregate(a), PendingFunction::Aggregate(b)) => a == b,
                (PendingFunction::Aggregate(_), _) | (_, PendingFunction::Aggregate(_)) => false,
                _ => true,
            }
            && match (&self.filter, &other.filter) {
                (None, None) => true,
                (Some(a), Some(b)) => a.same(b),
                _ => false,
            }
    }
}

impl Binder<'_> {
    /// Whether `name`, in upper case, is an aggregate function, built in or the user's.
    pub(super) fn is_aggregate(&self, name: &str) -> bool {
        self.functions.aggregate(name).is_some()
            || (aggregates::is_aggregate(name) && !self.functions.hides(name))
    }

    /// Binds an aggregate call and puts it aside.
    pub(super) fn bind_aggregate(
        &mut self,
        name: &str,
        function: &ast::Function,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let Some(mut found) = context.aggregates.take() else {
            return Err(refusals::misplaced_aggregate(name, context.clause));
        };
        // inside its arguments no other aggregate may stand, and subqueries have their own numbers
        let outside = context.subqueries.take();
        if outside.is_some() {
            context.subqueries = Some(std::mem::take(&mut context.argument_subqueries));
        }
        let pending = self.pending_aggregate(name, function, context);
        context.argument_subqueries = context.subqueries.take().unwrap_or_default();
        context.subqueries = outside;
        let result = pending.map(|(pending, data_type)| {
            let index = found
                .iter()
                .position(|p: &PendingAggregate| p.same(&pending));
            let index = index.unwrap_or_else(|| {
                found.push(pending);
                found.len() - 1
            });
            Expr::column(AGGREGATE_BASE + index, data_type)
        });
        context.aggregates = Some(found);
        result
    }

    fn pending_aggregate(
        &mut self,
        name: &str,
        function: &ast::Function,
        context: &mut Context<'_, '_>,
    ) -> Result<(PendingAggregate, crate::types::DataType)> {
        let clause = std::mem::replace(&mut context.clause, refusals::AGGREGATE_ARGUMENT);
        let parts = self.aggregate_parts(name, function, context);
        context.clause = clause;
        let (args, distinct, filter) = parts?;
        let pending = |function| PendingAggregate {
            name: name.into(),
            args: args.clone(),
            distinct,
            filter: filter.clone(),
            function,
        };
        let grouping = matches!(name, "GROUPING" | "GROUPING_ID" | "GROUP_ID");
        if grouping && !context.grouped {
            return Err(Error::plan(format!(
                "{name} operator may only occur in an aggregate query"
            )));
        }
        match name {
            "GROUP_ID" if !args.is_empty() => Err(Error::plan(
                "Invalid number of arguments to function 'GROUP_ID'. Was expecting 0 arguments",
            )),
            "GROUPING" | "GROUPING_ID" => Ok((
                pending(PendingFunction::Grouping),
                TypeKind::BigInt.not_null(),
            )),
            "GROUP_ID" => Ok((
                pending(PendingFunction::GroupId),
                TypeKind::BigInt.not_null(),
            )),
            _ => {
                let call = CallContext {
                    grouped: context.grouped,
                    filtered: filter.is_some(),
                    distinct,
                };
                let (function, args) = self.resolve_aggregate(name, args, call)?;
                let data_type = function.returns().clone();
                let pending = PendingAggregate {
                    name: name.into(),
                    args,
                    distinct,
                    filter,
                    function: PendingFunction::Aggregate(function),
                };
                Ok((pending, data_type))
            }
        }
    }

    /// The function of a call, and its arguments as the columns that it takes.
    pub(super) fn resolve_aggregate(
        &self,
        name: &str,
        mut args: Vec<Expr>,
        context: CallContext,
    ) -> Result<(AggregateFunction, Vec<Expr>)> {
        if matches!(name, "JSON_OBJECTAGG" | "JSON_ARRAYAGG")
            && let Some(value) = args.pop()
        {
            if value.data_type.kind == TypeKind::Null {
                return Err(refusals::untyped_null());
            }
            args.push(if calls::is_json(&value) {
                value
            } else {
                self.call("JSON_STRING", vec![value])?
            });
        }
        let folded = args
            .iter()
            .map(|a| self.fold(a.clone()))
            .collect::<Result<Vec<_>>>()?;
        let infos: Vec<Arg> = folded.iter().map(arg_info).collect();
        let function = match self.functions.aggregate(name) {
            Some(user) => {
                let types: Vec<_> = infos.iter().map(|a| a.data_type.clone()).collect();
                AggregateFunction::user(user, &types)?
            }
            None => aggregates::resolve(name, &infos, context)?,
        };
        let args = function
            .positions()
            .iter()
            .zip(function.inputs())
            .map(|(i, t)| args[*i].clone().cast_to(t))
            .collect();
        Ok((function, args))
    }

    /// Arguments, DISTINCT and FILTER of a call.
    pub(super) fn aggregate_parts(
        &mut self,
        name: &str,
        function: &ast::Function,
        context: &mut Context<'_, '_>,
    ) -> Result<(Vec<Expr>, bool, Option<Expr>)> {
        let mut distinct = false;
        let args = match &function.args {
            FunctionArguments::List(list) => {
                distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
                let star = matches!(
                    list.args.as_slice(),
                    [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)]
                );
                if star && distinct {
                    return Err(
                        Error::plan("COUNT(DISTINCT *) does not say what is counted")
                            .hint("name the columns: COUNT(DISTINCT a, b)"),
                    );
                }
                if star && name != "COUNT" {
                    return Err(Error::plan(format!("{name}(*) is not an aggregate")));
                }
                if name == "COUNT" && list.args.is_empty() {
                    return Err(Error::plan(
                        "Invalid number of arguments to function 'COUNT'. Was expecting 1 arguments",
                    )
                    .hint("COUNT(*) counts rows"));
                }
                if star {
                    Vec::new()
                } else {
                    calls::arguments(function)?
                }
            }
            _ => Vec::new(),
        };
        let mut args = args
            .into_iter()
            .map(|a| self.bind_expr(a, context))
            .collect::<Result<Vec<_>>>()?;
        if let Some(nulls) = null_treatment(function) {
            if name != "ARRAY_AGG" {
                return Err(Error::plan(format!(
                    "Cannot specify IGNORE NULLS or RESPECT NULLS following '{name}'"
                )));
            }
            args.push(literal::text(nulls));
        }
        if name == "JSON_ARRAYAGG" && !function.within_group.is_empty() {
            return Err(Error::plan("JSON_ARRAYAGG does not sort its values")
                .hint("they come in the order of arrival"));
        }
        if let [order] = function.within_group.as_slice() {
            args.push(self.bind_expr(&order.expr, context)?);
        }
        let filter = function
            .filter
            .as_ref()
            .map(|f| self.bind_filter(f, context))
            .transpose()?;
        Ok((args, distinct, filter))
    }

    fn bind_filter(&mut self, filter: &ast::Expr, context: &mut Context<'_, '_>) -> Result<Expr> {
        let mut conjuncts = Vec::new();
        split_and(filter, &mut conjuncts);
        let clause = if conjuncts.len() > 1 { "AND" } else { "FILTER" };
        let mut bound = Vec::new();
        for conjunct in conjuncts {
            bound.push(boolean(self.bind_expr(conjunct, context)?, clause)?);
            // only whether it is true matters here
            let is_in = as_test(conjunct, false).is_some_and(|t| t.left.is_some() && !t.negated);
            if is_in && let Some(last) = context.subqueries.iter_mut().flatten().last() {
                last.take_unknown_for_false();
            }
        }
        Ok(and(bound))
    }

    /// Binds the keys of GROUP BY: the distinct key expressions and, for each grouping set, the keys
    /// in it.
    pub(super) fn bind_group_by(
        &mut self,
        group_by: &GroupByExpr,
        scope: &Scope<'_>,
        input: &Schema,
    ) -> Result<GroupBy> {
        let items = match group_by {
            GroupByExpr::Expressions(items, modifiers) if modifiers.is_empty() => items,
            other => return Err(Error::plan(format!("'{other}' is not supported"))),
        };
        let mut group = GroupBy {
            present: !items.is_empty(),
            ..GroupBy::default()
        };
        // the sets are the product of the items' alternatives
        for item in items {
            if let Some(window) = self.bind_group_window(item, scope, input)? {
                if group.window.replace(window).is_some() {
                    return self.refuse(item, "Only one group window is allowed in GROUP BY");
                }
                continue;
            }
            let alternatives = self.grouping_alternatives(item, scope, &mut group)?;
            group.sets = group
                .sets
                .iter()
                .flat_map(|set| {
                    alternatives.iter().map(|more| {
                        let mut set = set.clone();
                        set.extend(
                            more.iter()
                                .filter(|k| !set.contains(k))
                                .copied()
                                .collect::<Vec<_>>(),
                        );
                        set
                    })
                })
                .collect();
        }
        group.times = group
            .keys
            .iter()
            .map(|key| super::expr::time_attribute(key, input))
            .collect();
        Ok(group)
    }

    fn grouping_alternatives(
        &mut self,
        item: &ast::Expr,
        scope: &Scope<'_>,
        group: &mut GroupBy,
    ) -> Result<Vec<Vec<usize>>> {
        let mut keys = |binder: &mut Self, exprs: &[ast::Expr]| -> Result<Vec<usize>> {
            exprs
                .iter()
                .map(|e| binder.grouping_key(e, scope, group))
                .collect()
        };
        match item {
            ast::Expr::GroupingSets(sets) => {
                let mut all = Vec::new();
                for set in sets {
                    match set.as_slice() {
                        [
                            nested @ (ast::Expr::Rollup(_)
                            | ast::Expr::Cube(_)
                            | ast::Expr::GroupingSets(_)),
                        ] => {
                            all.extend(self.grouping_alternatives(nested, scope, group)?);
                        }
                        _ => {
                            let mut flat = Vec::new();
                            for e in set {
                                flat.extend(self.grouping_group(e, scope, group)?);
                            }
                            all.push(flat);
                        }
                    }
                }
                Ok(all)
            }
            ast::Expr::Rollup(parts) => {
                let parts = parts
                    .iter()
                    .map(|p| keys(self, p))
                    .collect::<Result<Vec<_>>>()?;
                Ok((0..=parts.len())
                    .rev()
                    .map(|n| parts[..n].concat())
                    .collect())
            }
            ast::Expr::Cube(parts) => {
                let parts = parts
                    .iter()
                    .map(|p| keys(self, p))
                    .collect::<Result<Vec<_>>>()?;
                let n = parts.len();
                Ok((0..1usize << n)
                    .map(|mask| {
                        (0..n)
                            .filter(|i| mask & (1 << (n - 1 - i)) == 0)
                            .flat_map(|i| parts[i].clone())
                            .collect()
                    })
                    .collect())
            }
            ast::Expr::Tuple(_) => Ok(vec![self.grouping_group(item, scope, group)?]),
            _ => Ok(vec![keys(self, std::slice::from_ref(item))?]),
        }
    }

    fn grouping_group(
        &mut self,
        item: &ast::Expr,
        scope: &Scope<'_>,
        group: &mut GroupBy,
    ) -> Result<Vec<usize>> {
        match item {
            ast::Expr::Tuple(items) => items
                .iter()
                .map(|e| self.grouping_key(e, scope, group))
                .collect(),
            _ => Ok(vec![self.grouping_key(item, scope, group)?]),
        }
    }

    fn grouping_key(
        &mut self,
        item: &ast::Expr,
        scope: &Scope<'_>,
        group: &mut GroupBy,
    ) -> Result<usize> {
        let mut context = Context {
            clause: "GROUP BY",
            ..Context::scalar(scope)
        };
        let bound = self.bind_expr(item, &mut context)?;
        if let Some(known) = group.keys.iter().position(|k| k.same(&bound)) {
            return Ok(known);
        }
        let name = super::expr::name_parts(item).and_then(|mut parts| parts.pop());
        group.keys.push(bound);
        group.names.push(name);
        Ok(group.keys.len() - 1)
    }

    /// Builds the aggregate over `input`. Output: keys, then one column a pending call, in order.
    pub(super) fn plan_aggregate(
        &mut self,
        input: LogicalPlan,
        group: &mut GroupBy,
        pending: &[PendingAggregate],
        ttl: Option<i64>,
    ) -> Result<LogicalPlan> {
        group.calls = pending.len();
        let group = &*group;
        // 1. keys, arguments and filters as columns
        let mut exprs: Vec<Expr> = Vec::new();
        let mut schema = Schema::default();
        for (i, key) in group.keys.iter().enumerate() {
            let name = group.names[i]
                .clone()
                .unwrap_or_else(|| format!("EXPR${i}"));
            let mut column = Column::new(name, key.data_type.clone());
            column.time = group.times[i];
            schema.columns.push(column);
            exprs.push(key.clone());
        }
        let simple = group.sets.len() == 1;
        let first_shared = if simple { 0 } else { exprs.len() };
        let mut column_of = |expr: &Expr| -> usize {
            // with several sets a key is NULLed outside its set, an argument is not
            let known = exprs[first_shared..].iter().position(|e| e.same(expr));
            known.map_or_else(
                || {
                    exprs.push(expr.clone());
                    let name = match expr.kind {
                        ExprKind::Column(i) => input.schema.columns.get(i).map(|c| c.name.clone()),
                        _ => None,
                    };
                    let name = name.unwrap_or_else(|| format!("$f{}", exprs.len() - 1));
                    schema
                        .columns
                        .push(Column::new(name, expr.data_type.clone()));
                    exprs.len() - 1
                },
                |i| i + first_shared,
            )
        };
        let mut calls = Vec::new();
        for (i, call) in pending.iter().enumerate() {
            let PendingFunction::Aggregate(function) = &call.function else {
                continue;
            };
            let function = function.clone();
            calls.push(AggregateCall {
                args: call.args.iter().map(&mut column_of).collect(),
                filter: call.filter.as_ref().map(&mut column_of),
                distinct: call.distinct && function.minds_duplicates(),
                data_type: function.returns().clone(),
                function,
                name: format!("EXPR${i}"),
            });
        }
        if let Some(window) = &group.window {
            let time_column = exprs.len();
            let mut column = Column::new("$time", window.time.data_type.clone());
            column.time = Some(window.attribute);
            exprs.push(window.time.clone());
            schema.columns.push(column);
            let projected = input.project(exprs, schema);
            return group_window(projected, group.keys.len(), time_column, window, calls);
        }
        let projected = input.project(exprs, schema);
        // 2. grouping sets
        let mut keys: Vec<usize> = (0..group.keys.len()).collect();
        let width = projected.schema.len();
        let expanded = if simple {
            projected
        } else {
            keys.push(width);
            expand(projected, group)
        };
        // 3. the aggregate
        let mut output = expanded.schema.project(&keys);
        for column in &mut output.columns {
            if column.time == Some(TimeAttribute::Proctime) {
                column.time = None;
            }
        }
        output.columns.extend(
            calls
                .iter()
                .map(|c| Column::new(c.name.clone(), c.data_type.clone())),
        );
        let key_count = keys.len();
        let aggregate = LogicalPlan::new(
            LogicalNode::Aggregate {
                input: Box::new(expanded),
                keys,
                calls,
                ttl,
            },
            output,
        );
        if simple
            && pending
                .iter()
                .all(|p| matches!(p.function, PendingFunction::Aggregate(_)))
        {
            return Ok(aggregate);
        }
        // 4. drop the set's id, compute GROUPING
        let mut exprs: Vec<Expr> = (0..group.keys.len()).map(|i| aggregate.column(i)).collect();
        let mut schema = aggregate
            .schema
            .project(&(0..group.keys.len()).collect::<Vec<_>>());
        let mut next = key_count;
        for call in pending {
            let expr = match &call.function {
                PendingFunction::Aggregate(_) => {
                    next += 1;
                    aggregate.column(next - 1)
                }
                PendingFunction::GroupId => group.group_id(&aggregate)?,
                PendingFunction::Grouping => group.grouping(&call.args, &aggregate)?,
            };
            schema.columns.push(Column::new(
                format!("EXPR${}", exprs.len()),
                expr.data_type.clone(),
            ));
            exprs.push(expr);
        }
        Ok(aggregate.project(exprs, schema))
    }
}

/// What GROUP BY says.
pub(super) struct GroupBy {
    /// Whether there is a GROUP BY at all.
    pub(super) present: bool,
    /// Distinct key expressions over the block's input.
    pub(super) keys: Vec<Expr>,
    /// Names of the keys that are columns.
    pub(super) names: Vec<Option<String>>,
    /// Time attributes among the keys.
    pub(super) times: Vec<Option<TimeAttribute>>,
    /// Number of aggregate calls, once planned.
    calls: usize,
    /// The deprecated window among the keys.
    pub(super) window: Option<GroupWindow>,
    /// Grouping sets, as indices of keys; one set without GROUPING SETS, ROLLUP, CUBE.
    pub(super) sets: Vec<Vec<usize>>,
}

impl Default for GroupBy {
    fn default() -> Self {
        Self {
            present: false,
            keys: Vec::new(),
            names: Vec::new(),
            times: Vec::new(),
            calls: 0,
            window: None,
            sets: vec![Vec::new()],
        }
    }
}

impl GroupBy {
    /// All columns of `schema` as keys: SELECT DISTINCT.
    pub(super) fn all_columns(plan: &LogicalPlan) -> Self {
        let columns = &plan.schema.columns;
        Self {
            present: true,
            keys: (0..columns.len()).map(|i| plan.column(i)).collect(),
            names: columns.iter().map(|c| Some(c.name.clone())).collect(),
            times: columns.iter().map(|c| c.time).collect(),
            calls: 0,
            window: None,
            sets: vec![(0..columns.len()).collect()],
        }
    }

    /// How many equal sets stand before set `i`.
    fn repetition(&self, i: usize) -> i64 {
        let before = self.sets[..i].iter().filter(|set| **set == self.sets[i]);
        i64::try_from(before.count()).unwrap_or(i64::MAX)
    }

    /// The id of set `i`: bit k, from the left, is set when key k is not in it; higher bits tell
    /// equal sets apart.
    fn set_id(&self, i: usize) -> i64 {
        let n = self.keys.len();
        let missing: i64 = (0..n)
            .filter(|k| !self.sets[i].contains(k))
            .map(|k| 1i64 << (n - 1 - k))
            .sum();
        missing + (self.repetition(i) << n)
    }

    /// A number of each set, by the set's id in the aggregate's output.
    fn by_set(&self, value: &dyn Fn(usize) -> i64, aggregate: &LogicalPlan) -> Result<Expr> {
        let last = self.sets.len() - 1;
        if last == 0 {
            return Ok(literal::bigint(value(0)));
        }
        let id = aggregate.column(self.keys.len());
        let branches = (0..last)
            .map(|i| {
                let this = compare(CompareOp::Eq, id.clone(), literal::bigint(self.set_id(i)))?;
                Ok((this, literal::bigint(value(i))))
            })
            .collect::<Result<Vec<_>>>()?;
        case(branches, literal::bigint(value(last)))
    }

    /// `GROUP_ID()`: how many equal sets stand before the row's set.
    fn group_id(&self, aggregate: &LogicalPlan) -> Result<Expr> {
        self.by_set(&|i| self.repetition(i), aggregate)
    }

    /// `GROUPING(args)`: one bit an argument, set when the row's set lacks it.
    fn grouping(&self, args: &[Expr], aggregate: &LogicalPlan) -> Result<Expr> {
        let keys = args
            .iter()
            .map(|arg| {
                self.keys.iter().position(|k| k.same(arg)).ok_or_else(|| {
                    Error::plan("Argument to GROUPING operator must be a grouped expression")
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let value = |i: usize| -> i64 {
            let bit = |k: &usize| i64::from(!self.sets[i].contains(k));
            keys.iter().fold(0, |bits, k| bits << 1 | bit(k))
        };
        self.by_set(&value, aggregate)
    }

    /// Rewrites an expression over the block's input to one over the aggregate's output.
    ///
    /// # Errors
    /// When it refers to a column that is not grouped.
    pub(super) fn rewrite(&self, expr: Expr, input: &Schema) -> Result<Expr> {
        let mut refused = None;
        let rewritten = self.rewrite_inner(expr, input, &mut refused);
        match refused {
            Some(name) => Err(
                Error::plan(format!("Expression '{name}' is not being grouped"))
                    .hint("add it to GROUP BY, or aggregate it"),
            ),
            None => Ok(rewritten),
        }
    }

    fn rewrite_inner(&self, expr: Expr, input: &Schema, refused: &mut Option<String>) -> Expr {
        if let Some(key) = self.keys.iter().position(|k| k.same(&expr)) {
            let mut data_type = self.keys[key].data_type.clone();
            data_type.nullable |=
                self.sets.len() > 1 && !self.sets.iter().all(|s| s.contains(&key));
            return Expr::column(key, data_type);
        }
        match expr.kind {
            ExprKind::Column(i) if (AGGREGATE_BASE..OVER_BASE).contains(&i) => {
                Expr::column(self.keys.len() + i - AGGREGATE_BASE, expr.data_type)
            }
            ExprKind::Column(i) if i >= WINDOW_BASE => {
                if self.window.is_none() {
                    refused.get_or_insert("a property of a group window".into());
                }
                Expr::column(
                    self.keys.len() + self.calls + i - WINDOW_BASE,
                    expr.data_type,
                )
            }
            ExprKind::Column(i) if i < AGGREGATE_BASE => {
                let name = input.columns.get(i).map(|c| c.name.clone());
                refused.get_or_insert(name.unwrap_or_default());
                expr
            }
            _ => expr.map_children(&mut |child| self.rewrite_inner(child, input, refused)),
        }
    }
}

fn expand(input: LogicalPlan, group: &GroupBy) -> LogicalPlan {
    let sets = group
        .sets
        .iter()
        .enumerate()
        .map(|(i, set)| {
            let nulled = (0..group.keys.len()).filter(|k| !set.contains(k)).collect();
            (nulled, group.set_id(i))
        })
        .collect();
    let mut schema = input.schema.clone();
    for (k, column) in schema.columns.iter_mut().take(group.keys.len()).enumerate() {
        column.data_type.nullable |= !group.sets.iter().all(|s| s.contains(&k));
    }
    schema
        .columns
        .push(Column::new("$e", TypeKind::BigInt.not_null()));
    LogicalPlan::new(
        LogicalNode::Expand {
            input: Box::new(input),
            sets,
        },
        schema,
    )
}

fn group_window(
    input: LogicalPlan,
    keys: usize,
    time_column: usize,
    window: &GroupWindow,
    calls: Vec<AggregateCall>,
) -> Result<LogicalPlan> {
    let keys: Vec<usize> = (0..keys).collect();
    let mut output = input.schema.project(&keys);
    output.columns.extend(
        calls
            .iter()
            .map(|c| Column::new(c.name.clone(), c.data_type.clone())),
    );
    let stamp = TypeKind::Timestamp(3).not_null();
    output
        .columns
        .push(Column::new("window_start", stamp.clone()));
    output.columns.push(Column::new("window_end", stamp));
    let kind = match (&window.time.data_type.kind, window.attribute) {
        (TypeKind::TimestampLtz(_), _) | (_, TimeAttribute::Proctime) => TypeKind::TimestampLtz(3),
        _ => TypeKind::Timestamp(3),
    };
    output.columns.push(Column {
        name: "window_time".into(),
        data_type: kind.not_null(),
        time: Some(window.attribute),
    });
    let window = WindowSpec {
        shape: window.shape,
        time_column,
        partition: Vec::new(),
    };
    let node = LogicalNode::GroupWindowAggregate {
        input: Box::new(input),
        window,
        keys,
        calls,
    };
    Ok(LogicalPlan::new(node, output))
}

fn arg_info(expr: &Expr) -> Arg {
    Arg {
        data_type: expr.data_type.clone(),
        literal: expr.as_literal().cloned(),
    }
}
