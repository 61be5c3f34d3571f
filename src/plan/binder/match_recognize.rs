//! `MATCH_RECOGNIZE`.
//!
//! Inside, a column `A.x` stands for the value of x in the last row of A so far. It is bound as a
//! column beyond [`PATTERN_BASE`] that knows its variable; FIRST and LAST and aggregates take these
//! away and become slots, columns beyond [`SLOT_BASE`], and so do those that remain.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, RowsPerMatch, TableFactor};

use super::aggregate::{PendingAggregate, PendingFunction};
use super::expr::{AGGREGATE_BASE, Context, OVER_BASE, boolean};
use super::from::Relation;
use super::match_pattern::{pattern_variables, skip_strategy};
use super::scope::{Scope, ScopeColumn};
use super::{Binder, and, calls};
use crate::error::{Error, Result};
use crate::expr::{Expr, ExprKind};
use crate::functions::match_rowtime::match_rowtime;
use crate::plan::logical::{LogicalNode, LogicalPlan, SortKey};
use crate::plan::match_recognize::{
    MatchSlot, MatchSpec, MatchText, PatternVariable, SkipStrategy, SlotFunction,
};
use crate::sql::{unparse, within};
use crate::types::{Column, DataType, Schema, TimeAttribute, TypeKind};

/// Columns from here on are columns of pattern variables: those of all rows first.
const PATTERN_BASE: usize = 5 << 24;
/// Columns from here on are slots.
const SLOT_BASE: usize = 6 << 24;

/// What the expressions of a MATCH_RECOGNIZE put aside.
pub(super) struct PatternCalls {
    /// Columns of the input.
    input: Schema,
    /// The time attribute.
    time: usize,
    /// How many rows there are at least by variable, in MEASURES: those of all rows first.
    least: Vec<usize>,
    /// The variable that is being defined; `None` in MEASURES.
    defines: Option<usize>,
    /// What every row is asked for.
    values: Vec<Expr>,
    slots: Vec<MatchSlot>,
}

impl PatternCalls {
    /// The variable and the input column of a column beyond [`PATTERN_BASE`].
    fn split(&self, column: usize) -> Option<(usize, usize)> {
        let place = column.checked_sub(PATTERN_BASE)?;
        (column < SLOT_BASE).then(|| (place / self.input.len(), place % self.input.len()))
    }

    /// `expr` over the input's columns, and its variable: 0 for all rows.
    fn of_one_variable(&self, expr: Expr, call: &dyn Fn() -> String) -> Result<(Expr, usize)> {
        let mut variables = Vec::new();
        let mut nested = false;
        for column in expr.columns() {
            match self.split(column) {
                Some((variable, _)) => variables.push(variable),
                None => nested = true,
            }
        }
        variables.sort_unstable();
        variables.dedup();
        if nested {
            return Err(Error::plan(format!(
                "Cannot nest PREV/NEXT under LAST/FIRST '{}'",
                call()
            )));
        }
        if variables.len() > 1 {
            return Err(Error::plan(format!(
                "Multiple pattern variables in '{}'",
                call()
            )));
        }
        let width = self.input.len();
        let plain = expr.remap_columns(&|i| (i - PATTERN_BASE) % width);
        Ok((plain, variables.first().copied().unwrap_or(0)))
    }

    fn value(&mut self, expr: Expr) -> usize {
        let found = self.values.iter().position(|v| v.same(&expr));
        found.unwrap_or_else(|| {
            self.values.push(expr);
            self.values.len() - 1
        })
    }

    fn slot(&mut self, slot: MatchSlot) -> Expr {
        let data_type = slot.data_type.clone();
        self.slots.push(slot);
        Expr::column(SLOT_BASE + self.slots.len() - 1, data_type)
    }

    /// The type of a value of a row of a variable: NULL if there may be no such row.
    fn row_type(&self, expr: &Expr, variable: usize, offset: usize) -> DataType {
        let least = self.least.get(variable).copied().unwrap_or(0);
        let certain = self.defines.is_none() && offset < least;
        let data_type = &expr.data_type;
        let nullable = data_type.nullable || !certain;
        data_type.kind.clone().with_nullable(nullable)
    }

    fn last(&mut self, expr: Expr, variable: usize, offset: usize) -> Expr {
        let data_type = self.row_type(&expr, variable, offset);
        let value = self.value(expr);
        let variable = variable.checked_sub(1);
        let same = self.slots.iter().position(|slot| {
            slot.variable == variable
                && matches!(slot.function, SlotFunction::Last { value: v, offset: o } if (v, o) == (value, offset))
        });
        if let Some(same) = same {
            return Expr::column(SLOT_BASE + same, data_type);
        }
        self.slot(MatchSlot {
            variable,
            function: SlotFunction::Last { value, offset },
            data_type,
        })
    }
}

/// The clauses of a MATCH_RECOGNIZE.
struct Parts<'a> {
    variables: Vec<PatternVariable>,
    definitions: &'a [ast::SymbolDefinition],
    measures: &'a [ast::Measure],
}

impl Binder<'_> {
    /// Binds a MATCH_RECOGNIZE.
    pub(super) fn bind_match_recognize<'p>(
        &mut self,
        factor: &TableFactor,
        parent: Option<&'p Scope<'p>>,
    ) -> Result<Relation<'p>> {
        let TableFactor::MatchRecognize {
            table,
            partition_by,
            order_by,
            measures,
            rows_per_match,
            after_match_skip,
            pattern,
            symbols,
            alias,
        } = factor
        else {
            return Err(Error::internal("not a MATCH_RECOGNIZE"));
        };
        let input = self.bind_factor(table, None)?;
        if matches!(rows_per_match, Some(RowsPerMatch::AllRows(_))) {
            return Err(Error::plan("All rows per match mode is not supported yet.")
                .hint("use ONE ROW PER MATCH"));
        }
        if measures.is_empty() {
            return Err(Error::plan("MATCH_RECOGNIZE needs MEASURES")
                .hint("name what to give for a match: MEASURES LAST(A.x) AS x"));
        }
        let partition = self.match_partition(partition_by, &input)?;
        let order = self.match_order(order_by, &input)?;
        let (interval, definitions) = within(symbols);
        let within_ms = interval.map(|i| self.match_within(i)).transpose()?;
        let parts = Parts {
            variables: pattern_variables(pattern)?,
            definitions,
            measures,
        };
        let skip = skip_strategy(after_match_skip.as_ref(), &parts.variables)?;
        let text = MatchText {
            measures: texts(measures.iter().map(|m| {
                let expr = unparse::expr(&m.expr);
                format!("FINAL({expr}) AS {}", m.alias.value)
            })),
            pattern: pattern.to_string(),
            within: interval.map(unparse::expr),
            define: texts(
                definitions
                    .iter()
                    .map(|d| format!("{}={}", d.symbol.value, unparse::expr(&d.definition))),
            ),
        };
        let (spec, schema) = self.match_spec(&input.plan.schema, parts, partition, order)?;
        let spec = MatchSpec {
            skip,
            within_ms,
            text,
            ..spec
        };
        let node = LogicalNode::Match {
            input: Box::new(input.plan),
            spec: Arc::new(spec),
        };
        let plan = LogicalPlan::new(node, schema);
        let qualifier = alias
            .as_ref()
            .map(|a| vec![a.name.value.clone()])
            .unwrap_or_default();
        self.named(plan, alias.as_ref(), qualifier, parent)
    }

    fn match_partition(
        &mut self,
        partition_by: &[ast::Expr],
        input: &Relation<'_>,
    ) -> Result<Vec<usize>> {
        let mut partition = Vec::new();
        for key in partition_by {
            let bound = self.bind_expr(key, &mut Context::scalar(&input.scope))?;
            match bound.as_column() {
                Some(column) if partition.contains(&column) => {}
                Some(column) => partition.push(column),
                None => {
                    return self.refuse(key, "PARTITION BY of MATCH_RECOGNIZE takes columns only");
                }
            }
        }
        Ok(partition)
    }

    fn match_order(
        &mut self,
        order_by: &[ast::OrderByExpr],
        input: &Relation<'_>,
    ) -> Result<Vec<SortKey>> {
        let mut order = Vec::new();
        for item in order_by {
            let bound = self.bind_expr(&item.expr, &mut Context::scalar(&input.scope))?;
            let Some(column) = bound.as_column() else {
                return self.refuse(&item.expr, "ORDER BY of MATCH_RECOGNIZE takes columns only");
            };
            let (descending, nulls_first) = super::over::direction(&item.options);
            order.push(SortKey {
                column,
                descending,
                nulls_first,
            });
        }
        let Some(first) = order.first() else {
            return Err(Error::plan(
                "You must specify either rowtime or proctime for order by.",
            ));
        };
        if input.plan.schema.columns[first.column].time.is_none() {
            return Err(Error::plan(
                "You must specify either rowtime or proctime for order by as the first one.",
            ));
        }
        if first.descending {
            return Err(Error::plan(
                "Primary sort order of a streaming table must be ascending on time.",
            ));
        }
        Ok(order)
    }

    fn match_within(&mut self, interval: &ast::Expr) -> Result<i64> {
        let scope = Scope::default();
        let bound = self.bind_expr(interval, &mut Context::scalar(&scope))?;
        let bound = self.fold(bound)?;
        match bound.as_literal() {
            Some(ScalarValue::DurationMillisecond(Some(ms))) => Ok(*ms),
            _ => self.refuse(
                interval,
                "Only constant intervals with millisecond resolution are supported as time \
                 constraints of patterns.",
            ),
        }
    }

    fn match_spec(
        &mut self,
        input: &Schema,
        parts: Parts<'_>,
        partition: Vec<usize>,
        order: Vec<SortKey>,
    ) -> Result<(MatchSpec, Schema)> {
        let mut variables = parts.variables;
        // a variable that is defined but not in the pattern has no rows
        let mut names: Vec<String> = variables.iter().map(|v| v.name.clone()).collect();
        for (i, definition) in parts.definitions.iter().enumerate() {
            let name = &definition.symbol.value;
            if parts.definitions[..i]
                .iter()
                .any(|d| d.symbol.value == *name)
            {
                return Err(Error::plan(format!(
                    "Pattern variable '{name}' has already been defined"
                )));
            }
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let scope = pattern_scope(input, &names);
        let column = |i: usize| Expr::column(i, input.columns[i].data_type.clone());
        let mut calls = PatternCalls {
            time: order.first().map_or(0, |key| key.column),
            least: std::iter::once(1)
                .chain(variables.iter().map(|v| v.least as usize))
                .collect(),
            defines: None,
            values: partition.iter().map(|i| column(*i)).collect(),
            slots: Vec::new(),
            input: input.clone(),
        };
        for definition in parts.definitions {
            let variable = names.iter().position(|n| *n == definition.symbol.value);
            calls.defines = variable.map(|v| v + 1);
            let (bound, back) =
                self.bind_pattern(&definition.definition, &scope, "DEFINE", calls)?;
            calls = back;
            if boolean(bound.clone(), "DEFINE").is_err() {
                return self.refuse(&definition.definition, "DEFINE clause must be a condition");
            }
            let bound = self.fold(boolean(bound, "DEFINE")?)?;
            let (row, history) = split_condition(bound, &mut calls);
            if let Some(variable) = variable.and_then(|v| variables.get_mut(v)) {
                variable.row = row;
                variable.history = history;
            }
        }
        calls.defines = None;
        let mut columns: Vec<Column> = partition
            .iter()
            .map(|i| input.columns[*i].clone())
            .collect();
        let mut measures = Vec::new();
        for measure in parts.measures {
            let (bound, back) = self.bind_pattern(&measure.expr, &scope, "MEASURES", calls)?;
            calls = back;
            let bound = self.fold(bound)?;
            let time = measure_time(&bound, &calls);
            let bound = slots_only(bound, &mut calls);
            columns.push(Column {
                name: measure.alias.value.clone(),
                data_type: bound.data_type.clone(),
                time,
            });
            measures.push(bound);
        }
        let repeated = columns
            .iter()
            .enumerate()
            .find(|(i, c)| columns[..*i].iter().any(|d| d.name == c.name));
        if let Some((_, column)) = repeated {
            return Err(Error::plan(format!(
                "Columns ambiguously defined: {{{}}}",
                column.name
            )));
        }
        let spec = MatchSpec {
            partition,
            order,
            variables,
            skip: SkipStrategy::ToNextRow,
            within_ms: None,
            values: calls.values,
            slots: calls.slots,
            measures: measures
                .into_iter()
                .map(|m| m.remap_columns(&|i| i - SLOT_BASE))
                .collect(),
            text: MatchText::default(),
        };
        Ok((spec, Schema::new(columns)))
    }

    /// Binds an expression over pattern variables; aggregates have become slots.
    fn bind_pattern(
        &mut self,
        expr: &ast::Expr,
        scope: &Scope<'_>,
        clause: &'static str,
        calls: PatternCalls,
    ) -> Result<(Expr, PatternCalls)> {
        let mut context = Context {
            aggregates: Some(Vec::new()),
            grouped: true,
            pattern: Some(calls),
            clause,
            ..Context::scalar(scope)
        };
        let bound = self.bind_expr(expr, &mut context)?;
        let lost = || Error::internal("the pattern's calls are lost");
        let mut calls = context.pattern.take().ok_or_else(lost)?;
        let mut slots = Vec::new();
        for pending in context.aggregates.take().unwrap_or_default() {
            slots.push(aggregate_slot(pending, &mut calls)?);
        }
        let bound = bound.replace_columns(&|i, data_type| match i {
            AGGREGATE_BASE..OVER_BASE => slots[i - AGGREGATE_BASE].clone(),
            _ => Expr::column(i, data_type.clone()),
        });
        Ok((bound, calls))
    }

    /// FIRST, LAST and the other functions of MATCH_RECOGNIZE; `None` if it is none of them.
    pub(super) fn bind_pattern_call(
        &mut self,
        name: &str,
        function: &ast::Function,
        context: &mut Context<'_, '_>,
    ) -> Result<Option<Expr>> {
        if name == "FINAL" {
            // what MEASURES mean anyway
            return match calls::arguments(function)?.as_slice() {
                [arg] => self.bind_expr(arg, context).map(Some),
                _ => Ok(None),
            };
        }
        let call = || unparse::expr(&ast::Expr::Function(function.clone()));
        let Some(calls) = &mut context.pattern else {
            return Ok(None);
        };
        match name {
            "FIRST" | "LAST" => {
                let args = calls::arguments(function)?;
                let (value, offset) = match args.as_slice() {
                    [value] => (*value, 0),
                    [value, offset] => (*value, row_offset(offset)?),
                    _ => {
                        return Err(Error::plan(format!(
                            "{name} takes a value and, if need be, a number of rows"
                        )));
                    }
                };
                let aggregates = context.aggregates.take();
                let bound = self.bind_expr(value, context);
                context.aggregates = aggregates;
                let Some(calls) = &mut context.pattern else {
                    return Ok(None);
                };
                let (value, variable) = calls.of_one_variable(bound?, &call)?;
                if name == "LAST" {
                    return Ok(Some(calls.last(value, variable, offset)));
                }
                let data_type = calls.row_type(&value, variable, offset);
                let value = calls.value(value);
                Ok(Some(calls.slot(MatchSlot {
                    variable: variable.checked_sub(1),
                    function: SlotFunction::First { value, offset },
                    data_type,
                })))
            }
            "MATCH_ROWTIME" => {
                let args = calls::arguments(function)?;
                if args
                    .iter()
                    .any(|arg| super::expr::name_parts(arg).is_none())
                {
                    return Err(Error::plan(
                        "The function MATCH_ROWTIME requires a field reference as argument, but actual \
                         argument is not a simple field reference.",
                    ));
                }
                let time = &calls.input.columns[calls.time];
                if !time.is_rowtime() {
                    return Err(Error::plan(
                        "MATCH_ROWTIME() needs rows that are ordered by event time",
                    )
                    .hint("use MATCH_PROCTIME()"));
                }
                let nullable = !args.is_empty() && time.data_type.nullable;
                let instant = matches!(time.data_type.kind, TypeKind::TimestampLtz(_));
                let column = Expr::column(calls.time, time.data_type.clone());
                let mut slot = calls.last(column, 0, 0);
                slot.data_type.nullable = nullable;
                if !args.is_empty() || !instant {
                    return Ok(Some(slot));
                }
                let kind = ExprKind::Call {
                    function: match_rowtime(),
                    args: vec![slot],
                };
                Ok(Some(Expr::new(kind, TypeKind::Timestamp(3).not_null())))
            }
            "MATCH_PROCTIME" if !calls::arguments(function)?.is_empty() => Err(Error::plan(
                "Invalid number of arguments to function 'MATCH_PROCTIME'. Was expecting 0 arguments",
            )),
            "MATCH_PROCTIME" => self.call("PROCTIME", Vec::new()).map(Some),
            "PREV" | "NEXT" => Err(match calls.defines {
                Some(_) => Error::plan("Flink does not support physical offsets within partition.")
                    .hint("use LAST(x, n): the n-th row before the last of a variable"),
                None => Error::plan(format!("Cannot use PREV/NEXT in MEASURE '{}'", call())),
            }),
            "CLASSIFIER" | "RUNNING" | "MATCH_NUMBER" => Err(Error::plan(format!(
                "{name} is not supported in MATCH_RECOGNIZE"
            ))),
            _ => Ok(None),
        }
    }
}

/// Columns by variable: plain names are of the last row, whatever its variable.
fn pattern_scope(input: &Schema, names: &[String]) -> Scope<'static> {
    let width = input.len();
    let variables = std::iter::once(None).chain(names.iter().map(Some));
    let columns = variables.enumerate().flat_map(|(v, name)| {
        input.columns.iter().enumerate().map(move |(i, column)| {
            let place = PATTERN_BASE + v * width + i;
            ScopeColumn {
                qualifier: name.into_iter().cloned().collect(),
                name: column.name.clone(),
                expr: Expr::column(place, column.data_type.clone()),
                time: column.time,
                in_star: false,
                unqualified: name.is_none(),
            }
        })
    });
    Scope {
        columns: columns.collect(),
        parent: None,
    }
}

fn aggregate_slot(pending: PendingAggregate, calls: &mut PatternCalls) -> Result<Expr> {
    let name = pending.name.clone();
    let PendingFunction::Aggregate(function) = pending.function else {
        return Err(Error::plan(format!(
            "{name} is not supported in MATCH_RECOGNIZE"
        )));
    };
    if pending.distinct || pending.filter.is_some() {
        return Err(Error::plan(format!(
            "DISTINCT/ALL not allowed with {name} function in MATCH_RECOGNIZE"
        )));
    }
    let mut variable = None;
    let mut args = Vec::new();
    for arg in pending.args {
        let constant = arg.columns().is_empty();
        let (arg, of) = calls.of_one_variable(arg, &|| name.clone())?;
        if !constant && *variable.get_or_insert(of) != of {
            return Err(Error::plan(format!(
                "Multiple pattern variables in '{name}'"
            )));
        }
        args.push(calls.value(arg));
    }
    let data_type = function.returns().clone();
    Ok(calls.slot(MatchSlot {
        variable: variable.unwrap_or(0).checked_sub(1),
        function: SlotFunction::Aggregate { function, args },
        data_type,
    }))
}

/// The columns that remain become values of last rows.
fn slots_only(expr: Expr, calls: &mut PatternCalls) -> Expr {
    expr.transform(&mut |e| {
        let place = e.as_column().and_then(|i| calls.split(i));
        match place {
            Some((variable, column)) => {
                let plain = Expr::column(column, e.data_type.clone());
                calls.last(plain, variable, 0)
            }
            None => e,
        }
    })
}

/// The part of a condition that a row fulfils by itself, over the input, and the rest, over slots.
fn split_condition(condition: Expr, calls: &mut PatternCalls) -> (Option<Expr>, Option<Expr>) {
    let own = calls.defines;
    let conjuncts = match condition.kind {
        ExprKind::And(all) => all,
        kind => vec![Expr::new(kind, condition.data_type)],
    };
    let (mut row, mut history) = (Vec::new(), Vec::new());
    for conjunct in conjuncts {
        let alone = conjunct.columns().into_iter().all(|i| {
            calls
                .split(i)
                .is_some_and(|(v, _)| v == 0 || Some(v) == own)
        });
        if alone {
            let width = calls.input.len();
            row.push(conjunct.remap_columns(&|i| (i - PATTERN_BASE) % width));
        } else {
            let slots = slots_only(conjunct, calls);
            history.push(slots.remap_columns(&|i| i - SLOT_BASE));
        }
    }
    let all = |list: Vec<Expr>| (!list.is_empty()).then(|| and(list));
    (all(row), all(history))
}

/// The time attribute that a measure is.
fn measure_time(expr: &Expr, calls: &PatternCalls) -> Option<TimeAttribute> {
    if let ExprKind::Call { function, .. } = &expr.kind {
        return match function.name() {
            "PROCTIME" => Some(TimeAttribute::Proctime),
            "MATCH_ROWTIME" => Some(TimeAttribute::Rowtime),
            _ => None,
        };
    }
    let column = expr.as_column()?;
    if let Some((_, column)) = calls.split(column) {
        return calls.input.columns[column].time;
    }
    match calls.slots.get(column.checked_sub(SLOT_BASE)?)?.function {
        SlotFunction::First { value, .. } | SlotFunction::Last { value, .. } => {
            let column = calls.values[value].as_column()?;
            calls.input.columns[column].time
        }
        SlotFunction::Aggregate { .. } => None,
    }
}

fn row_offset(offset: &ast::Expr) -> Result<usize> {
    let text = match offset {
        ast::Expr::Value(value) => value.to_string(),
        other => other.to_string(),
    };
    text.parse().map_err(|_| {
        Error::plan(format!("'{text}' is not a number of rows"))
            .hint("FIRST and LAST take a whole number from 0")
    })
}

fn texts(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
