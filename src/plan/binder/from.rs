//! FROM: tables, subqueries, lateral calls and joins.

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, JoinConstraint, JoinOperator, TableFactor, TableVersion};

use super::compare::compare;
use super::expr::{Context, and, boolean};
use super::query::rename_columns;
use super::scope::Scope;
use super::select::replace_subqueries;
use super::subquery::lateral_side;
use super::{Binder, calls, object_parts};
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr};
use crate::functions::refused::refusal;
use crate::plan::logical::{JoinKind, LogicalNode, LogicalPlan, TableCall};
use crate::types::{Column, Schema, TimeAttribute, TypeKind};

/// A bound relation: its plan, and the names that it brings.
pub(super) struct Relation<'p> {
    pub(super) plan: LogicalPlan,
    pub(super) scope: Scope<'p>,
}

impl Binder<'_> {
    /// Binds the FROM clause: items separated by commas are cross joined.
    pub(super) fn bind_from<'p>(
        &mut self,
        from: &[ast::TableWithJoins],
        parent: Option<&'p Scope<'p>>,
    ) -> Result<(LogicalPlan, Scope<'p>)> {
        let Some((first, rest)) = from.split_first() else {
            let plan = LogicalPlan::new(
                LogicalNode::Values {
                    rows: vec![Vec::new()],
                },
                Schema::default(),
            );
            return Ok((plan, Scope::default().within(parent)));
        };
        let mut relation = self.bind_joins(first, None, parent)?;
        for item in rest {
            relation = self.bind_joins(item, Some(relation), parent)?;
        }
        Ok((relation.plan, relation.scope))
    }

    fn bind_joins<'p>(
        &mut self,
        item: &ast::TableWithJoins,
        left: Option<Relation<'p>>,
        parent: Option<&'p Scope<'p>>,
    ) -> Result<Relation<'p>> {
        let mut relation = match left {
            None => self.bind_factor(&item.relation, parent)?,
            Some(left) => self.join_factor(
                left,
                &item.relation,
                JoinKind::Inner,
                &JoinConstraint::None,
                parent,
            )?,
        };
        for join in &item.joins {
            let (kind, constraint) = match &join.join_operator {
                JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinKind::Inner, c),
                JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinKind::Left, c),
                JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinKind::Right, c),
                JoinOperator::FullOuter(c) => (JoinKind::Full, c),
                JoinOperator::CrossJoin(c) => (JoinKind::Inner, c),
                other => {
                    return Err(
                        Error::plan(format!("The join '{other:?}' is not supported"))
                            .hint("use [INNER | LEFT | RIGHT | FULL] JOIN or CROSS JOIN"),
                    );
                }
            };
            relation = self.join_factor(relation, &join.relation, kind, constraint, parent)?;
        }
        Ok(relation)
    }

    fn join_factor<'p>(
        &mut self,
        left: Relation<'p>,
        factor: &TableFactor,
        kind: JoinKind,
        constraint: &JoinConstraint,
        parent: Option<&'p Scope<'p>>,
    ) -> Result<Relation<'p>> {
        if let Some(version) = temporal_version(factor) {
            return self.bind_temporal_join(left, factor, version, kind, constraint, parent);
        }
        match factor {
            TableFactor::UNNEST { .. } => self.bind_unnest(left, factor, kind, constraint),
            TableFactor::Function { lateral: true, .. } | TableFactor::TableFunction { .. }
                if lateral_call(factor).is_some() =>
            {
                self.bind_lateral_function(left, factor, kind, constraint)
            }
            TableFactor::Derived {
                lateral: true,
                subquery,
                alias,
                ..
            } => self.bind_lateral_subquery(left, subquery, alias.as_ref(), kind, constraint),
            _ => {
                let right = self.bind_factor(factor, parent)?;
                self.bind_join(left, right, kind, constraint)
            }
        }
    }

    pub(super) fn bind_factor<'p>(
        &mut self,
        factor: &TableFactor,
        parent: Option<&'p Scope<'p>>,
    ) -> Result<Relation<'p>> {
        let bound = self.bind_factor_inner(factor, parent);
        self.located(factor, bound)
    }

    fn bind_factor_inner<'p>(
        &mut self,
        factor: &TableFactor,
        parent: Option<&'p Scope<'p>>,
    ) -> Result<Relation<'p>> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                version,
                sample,
                with_hints,
                ..
            } => {
                if sample.is_some() {
                    return Err(Error::plan(
                        "TABLESAMPLE is not supported in streaming mode",
                    ));
                }
                if version.is_some() {
                    return Err(Error::plan(
                        "FOR SYSTEM_TIME AS OF is only supported on the right side of a join",
                    )
                    .hint("write ... JOIN t FOR SYSTEM_TIME AS OF left.time ON ..."));
                }
                let mut hints = super::table::TableHints::new();
                for hint in crate::sql::hints::of_table(with_hints) {
                    match hint.name.as_str() {
                        "OPTIONS" if hint.options.is_empty() || !hint.list.is_empty() => {
                            return Err(Error::plan(
                                "Hint [OPTIONS] only support non empty key value options",
                            )
                            .hint("write OPTIONS('key' = 'value')"));
                        }
                        "OPTIONS" => hints.extend(hint.options),
                        // ways of executing a join
                        "BROADCAST" | "SHUFFLE_HASH" | "SHUFFLE_MERGE" | "NEST_LOOP"
                        | "MULTI_JOIN" => {}
                        other => {
                            return Err(Error::plan(format!("Hint '{other}' is not known here"))
                                .hint("a table takes /*+ OPTIONS('key' = 'value') */"));
                        }
                    }
                }
                let parts = object_parts(name)?;
                let plan = self.bind_table(&parts, &hints)?;
                let qualifier = match alias {
                    Some(alias) => vec![alias.name.value.clone()],
                    None => self.full_name(parts),
                };
                self.named(plan, alias.as_ref(), qualifier, parent)
            }
            TableFactor::Derived {
                subquery, alias, ..
            } => {
                let plan = self.bind_query(subquery, parent)?;
                let qualifier = alias
                    .as_ref()
                    .map(|a| vec![a.name.value.clone()])
                    .unwrap_or_default();
                self.named(plan, alias.as_ref(), qualifier, parent)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.bind_joins(table_with_joins, None, parent),
            TableFactor::NestedJoin {
                table_with_joins,
                alias: Some(alias),
            } => {
                let inner = self.bind_joins(table_with_joins, None, parent)?;
                let qualifier = vec![alias.name.value.clone()];
                self.named(inner.plan, Some(alias), qualifier, parent)
            }
            TableFactor::UNNEST { .. } => {
                let one = Relation {
                    plan: LogicalPlan::new(
                        LogicalNode::Values {
                            rows: vec![Vec::new()],
                        },
                        Schema::default(),
                    ),
                    scope: Scope::default().within(parent),
                };
                self.bind_unnest(one, factor, JoinKind::Inner, &JoinConstraint::None)
            }
            TableFactor::MatchRecognize { .. } => self.bind_match_recognize(factor, parent),
            _ => {
                if let Some((function, alias)) = super::window::window_function(factor) {
                    let plan = self.bind_window_function(function, parent)?;
                    let qualifier = alias
                        .map(|a| vec![a.name.value.clone()])
                        .unwrap_or_default();
                    return self.named(plan, alias, qualifier, parent);
                }
                if lateral_call(factor).is_some() {
                    let one = Relation {
                        plan: LogicalPlan::new(
                            LogicalNode::Values {
                                rows: vec![Vec::new()],
                            },
                            Schema::default(),
                        ),
                        scope: Scope::default().within(parent),
                    };
                    return self.bind_lateral_function(
                        one,
                        factor,
                        JoinKind::Inner,
                        &JoinConstraint::None,
                    );
                }
                Err(Error::plan(format!("'{factor}' is not supported in FROM")))
            }
        }
    }

    pub(super) fn named<'p>(
        &mut self,
        plan: LogicalPlan,
        alias: Option<&ast::TableAlias>,
        qualifier: Vec<String>,
        parent: Option<&'p Scope<'p>>,
    ) -> Result<Relation<'p>> {
        let plan = match alias {
            Some(alias) => rename_columns(plan, alias)?,
            None => plan,
        };
        let scope = Scope::of_table(Some(&qualifier), &plan.schema).within(parent);
        Ok(Relation { plan, scope })
    }

    fn bind_join<'p>(
        &mut self,
        left: Relation<'p>,
        right: Relation<'_>,
        kind: JoinKind,
        constraint: &JoinConstraint,
    ) -> Result<Relation<'p>> {
        let width = left.plan.schema.len();
        let shown = width + right.plan.schema.len();
        let mut right_plan = right.plan;
        let (on, scope) = match constraint {
            JoinConstraint::Using(_) | JoinConstraint::Natural => {
                let names = common_names(&left.scope, &right.scope, constraint)?;
                let (on, scope) = using_scope(left.scope, right.scope, width, &names, kind)?;
                ((!on.is_empty()).then(|| and(on)), scope)
            }
            JoinConstraint::On(condition) => {
                let mut scope = left.scope;
                scope.append(right.scope, width);
                let (on, joined) = self.bind_on(condition, &scope, right_plan, width)?;
                right_plan = joined;
                (Some(on), nullable_scope(scope, width, kind))
            }
            JoinConstraint::None => {
                let mut scope = left.scope;
                scope.append(right.scope, width);
                (None, nullable_scope(scope, width, kind))
            }
        };
        let ttl = (
            self.ttl_of_side(&scope, 0..width),
            self.ttl_of_side(&scope, width..usize::MAX),
        );
        let plan = join(left.plan, right_plan, kind, on, ttl);
        let kept: Vec<usize> = (0..shown).collect();
        let plan = plan.project_columns(&kept);
        Ok(Relation { plan, scope })
    }

    /// The condition of ON over the columns of a left side of `width` and of `right`, which has
    /// the values of its subqueries behind its own columns then.
    fn bind_on(
        &mut self,
        condition: &ast::Expr,
        scope: &Scope<'_>,
        right: LogicalPlan,
        width: usize,
    ) -> Result<(Expr, LogicalPlan)> {
        let mut context = Context::condition(scope, "ON");
        let on = boolean(self.bind_expr(condition, &mut context)?, "ON")?;
        let on = self.fold(on)?;
        let subqueries = context.subqueries.take().unwrap_or_default();
        if subqueries.is_empty() {
            return Ok((on, right));
        }
        let (right, values) = self.join_subqueries_of_on(right, subqueries)?;
        let values: Vec<Expr> = values
            .into_iter()
            .map(|value| value.remap_columns(&|i| i + width))
            .collect();
        Ok((replace_subqueries(on, &values), right))
    }

    /// The condition of a join with a table function.
    fn correlate_on(
        &mut self,
        relation: Relation<'_>,
        constraint: &JoinConstraint,
    ) -> Result<LogicalPlan> {
        let condition = match constraint {
            JoinConstraint::On(condition) => condition,
            JoinConstraint::None => return Ok(relation.plan),
            _ => return Err(no_common_names()),
        };
        let mut context = Context {
            clause: "ON",
            ..Context::scalar(&relation.scope)
        };
        let on = boolean(self.bind_expr(condition, &mut context)?, "ON")?;
        let on = self.fold(on)?;
        if is_true(&on) {
            return Ok(relation.plan);
        }
        let LogicalPlan { node, schema } = relation.plan;
        match node {
            LogicalNode::Correlate {
                input,
                call,
                kind: JoinKind::Left,
                ..
            } => {
                let node = LogicalNode::Correlate {
                    input,
                    call,
                    kind: JoinKind::Left,
                    condition: Some(on),
                };
                Ok(LogicalPlan::new(node, schema))
            }
            node => Ok(LogicalPlan::new(node, schema).filter(on)),
        }
    }

    fn bind_unnest<'p>(
        &mut self,
        left: Relation<'p>,
        factor: &TableFactor,
        kind: JoinKind,
        constraint: &JoinConstraint,
    ) -> Result<Relation<'p>> {
        let TableFactor::UNNEST {
            alias,
            array_exprs,
            with_ordinality,
            ..
        } = factor
        else {
            return Err(Error::internal("not an UNNEST"));
        };
        let [array] = array_exprs.as_slice() else {
            return Err(Error::plan("UNNEST takes one collection"));
        };
        if !matches!(kind, JoinKind::Inner | JoinKind::Left) {
            return Err(Error::plan(
                "UNNEST only supports CROSS, INNER and LEFT joins",
            ));
        }
        let mut context = Context {
            clause: "UNNEST",
            ..Context::scalar(&left.scope)
        };
        let collection = self.bind_expr(array, &mut context)?;
        let mut columns = match &collection.data_type.kind {
            TypeKind::Array(element) | TypeKind::Multiset(element) => match &element.kind {
                TypeKind::Row(fields) | TypeKind::Structured(_, fields) => fields
                    .iter()
                    .map(|f| {
                        let nullable = f.data_type.nullable || element.nullable;
                        let data_type = f.data_type.kind.clone().with_nullable(nullable);
                        Column::new(f.name.clone(), data_type)
                    })
                    .collect(),
                _ => vec![Column::new("EXPR$0", (**element).clone())],
            },
            TypeKind::Map(key, value) => {
                vec![
                    Column::new("KEY", (**key).clone()),
                    Column::new("VALUE", (**value).clone()),
                ]
            }
            other => {
                return self.refuse(
                    array,
                    format!("Cannot apply 'UNNEST' to {other}: it takes ARRAY, MAP or MULTISET"),
                );
            }
        };
        if *with_ordinality {
            columns.push(Column::new("ORDINALITY", TypeKind::Int.not_null()));
        }
        let call = TableCall::Unnest {
            collection,
            ordinality: *with_ordinality,
        };
        self.correlate(left, call, columns, alias.as_ref(), kind, constraint)
    }

    fn bind_lateral_function<'p>(
        &mut self,
        left: Relation<'p>,
        factor: &TableFactor,
        kind: JoinKind,
        constraint: &JoinConstraint,
    ) -> Result<Relation<'p>> {
        let Some((function, alias)) = lateral_call(factor) else {
            return Err(Error::plan(format!("'{factor}' is not supported in FROM")));
        };
        let name = calls::function_name(function);
        let known = self.functions.table_function(&name);
        if known.is_none() && refusal(&name).is_some() {
            return Err(self.functions.unknown(&name, &[]));
        }
        self.refuse_declared(&function.name)?;
        let mut context = Context {
            clause: "LATERAL TABLE",
            ..Context::scalar(&left.scope)
        };
        let args = calls::arguments(function)?
            .into_iter()
            .map(|a| self.bind_expr(a, &mut context))
            .collect::<Result<Vec<_>>>()?;
        let Some(table_function) = known else {
            let types: Vec<_> = args.iter().map(|a| super::family(&a.data_type)).collect();
            return Err(Error::plan(format!(
                "No match found for function signature {name}({})",
                types.join(", ")
            ))
            .hint("it is no table function; a program that embeds Ebbflow can register one"));
        };
        let types: Vec<_> = args.iter().map(|a| a.data_type.clone()).collect();
        let (arg_types, returns) = table_function.resolve(&types)?;
        let args = args
            .into_iter()
            .zip(&arg_types)
            .map(|(a, t)| a.cast_to(t))
            .collect();
        let call = TableCall::Function {
            function: table_function,
            args,
        };
        self.correlate(left, call, returns.columns, alias, kind, constraint)
    }

    fn correlate<'p>(
        &mut self,
        left: Relation<'p>,
        call: TableCall,
        mut columns: Vec<Column>,
        alias: Option<&ast::TableAlias>,
        kind: JoinKind,
        constraint: &JoinConstraint,
    ) -> Result<Relation<'p>> {
        let width = left.plan.schema.len();
        if let Some(alias) = alias.filter(|a| !a.columns.is_empty()) {
            if alias.columns.len() != columns.len() {
                return Err(Error::plan(format!(
                    "List of column aliases must have same degree as table; table has {} columns, \
                     whereas alias list has {}",
                    columns.len(),
                    alias.columns.len()
                )));
            }
            for (column, name) in columns.iter_mut().zip(&alias.columns) {
                column.name.clone_from(&name.name.value);
            }
        }
        if kind == JoinKind::Left {
            for column in &mut columns {
                column.data_type.nullable = true;
            }
        }
        let right = Schema::new(columns);
        let qualifier = alias
            .map(|a| vec![a.name.value.clone()])
            .unwrap_or_default();
        let mut schema = left.plan.schema.clone();
        schema.columns.extend(right.columns.iter().cloned());
        let mut scope = left.scope;
        scope.append(Scope::of_table(Some(&qualifier), &right), width);
        let plan = LogicalPlan::new(
            LogicalNode::Correlate {
                input: Box::new(left.plan),
                call,
                kind,
                condition: None,
            },
            schema,
        );
        let relation = Relation {
            plan,
            scope: scope.clone(),
        };
        let plan = self.correlate_on(relation, constraint)?;
        Ok(Relation { plan, scope })
    }

    fn bind_lateral_subquery<'p>(
        &mut self,
        left: Relation<'p>,
        subquery: &ast::Query,
        alias: Option<&ast::TableAlias>,
        kind: JoinKind,
        constraint: &JoinConstraint,
    ) -> Result<Relation<'p>> {
        let width = left.plan.schema.len();
        let plan = self.bind_query(subquery, Some(&left.scope))?;
        let plan = match alias {
            Some(alias) => rename_columns(plan, alias)?,
            None => plan,
        };
        let qualifier = alias
            .map(|a| vec![a.name.value.clone()])
            .unwrap_or_default();
        let mut scope = left.scope.clone();
        scope.append(Scope::of_table(Some(&qualifier), &plan.schema), width);
        let shown = width + plan.schema.len();
        let (right, mut conditions) = lateral_side(plan, &left.plan, kind)?;
        let right = match constraint {
            JoinConstraint::On(condition) => {
                let (on, right) = self.bind_on(condition, &scope, right, width)?;
                conditions.extend((!is_true(&on)).then_some(on));
                right
            }
            JoinConstraint::None => right,
            _ => return Err(no_common_names()),
        };
        let on = (!conditions.is_empty()).then(|| and(conditions));
        let kept: Vec<usize> = (0..shown).collect();
        let plan = join(left.plan, right, kind, on, (None, None)).project_columns(&kept);
        let scope = nullable_scope(scope, width, kind);
        Ok(Relation { plan, scope })
    }

    fn bind_temporal_join<'p>(
        &mut self,
        left: Relation<'p>,
        factor: &TableFactor,
        version: &ast::Expr,
        kind: JoinKind,
        constraint: &JoinConstraint,
        parent: Option<&'p Scope<'p>>,
    ) -> Result<Relation<'p>> {
        if !matches!(kind, JoinKind::Inner | JoinKind::Left) {
            return Err(Error::plan(format!(
                "Temporal table join currently only support INNER JOIN and LEFT JOIN, but was {} \
                 JOIN.",
                if kind == JoinKind::Full {
                    "FULL"
                } else {
                    "RIGHT"
                }
            )));
        }
        let mut context = Context {
            clause: "FOR SYSTEM_TIME AS OF",
            ..Context::scalar(&left.scope)
        };
        let time = self.bind_expr(version, &mut context)?;
        let time_column = time
            .as_column()
            .filter(|c| left.plan.schema.columns[*c].time.is_some());
        let Some(time_column) = time_column else {
            return self.refuse(
                version,
                "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's \
                 time attribute field",
            );
        };
        let mut plain = factor.clone();
        if let TableFactor::Table { version, .. } = &mut plain {
            *version = None;
        }
        let right = self.bind_factor(&plain, parent)?;
        let width = left.plan.schema.len();
        let name = right
            .scope
            .columns
            .first()
            .and_then(|c| c.qualifier.last().cloned());
        let (on, scope) = match constraint {
            JoinConstraint::On(condition) => {
                let mut scope = left.scope;
                scope.append(right.scope, width);
                let mut context = Context {
                    clause: "ON",
                    ..Context::scalar(&scope)
                };
                let on = boolean(self.bind_expr(condition, &mut context)?, "ON")?;
                (self.fold(on)?, nullable_scope(scope, width, kind))
            }
            JoinConstraint::Using(_) => {
                let names = common_names(&left.scope, &right.scope, constraint)?;
                let (on, scope) = using_scope(left.scope, right.scope, width, &names, kind)?;
                (and(on), scope)
            }
            _ => {
                return Err(Error::plan(
                    "A temporal join needs an ON clause with the key",
                ));
            }
        };
        let schema = join_schema(&left.plan.schema, &right.plan.schema, kind);
        let time = left.plan.schema.columns[time_column].time;
        let (left, right) = (Box::new(left.plan), Box::new(right.plan));
        let node = if time == Some(TimeAttribute::Proctime) {
            LogicalNode::LookupJoin {
                left,
                right,
                kind,
                on: Some(on),
                hint: name.and_then(|n| self.lookup_hint(&n)).unwrap_or_default(),
            }
        } else {
            LogicalNode::TemporalJoin {
                left,
                right,
                kind,
                time_column,
                on,
            }
        };
        let plan = LogicalPlan::new(node, schema);
        Ok(Relation { plan, scope })
    }
}

fn is_true(e: &Expr) -> bool {
    matches!(e.as_literal(), Some(ScalarValue::Boolean(Some(true))))
}

fn no_common_names() -> Error {
    Error::plan("USING and NATURAL do not fit a lateral join")
}

fn temporal_version(factor: &TableFactor) -> Option<&ast::Expr> {
    match factor {
        TableFactor::Table {
            version: Some(TableVersion::ForSystemTimeAsOf(e)),
            ..
        } => Some(e),
        _ => None,
    }
}

/// The call inside `LATERAL TABLE(f(x))` or `TABLE(f(x))`, if it is no windowing function.
fn lateral_call(factor: &TableFactor) -> Option<(&ast::Function, Option<&ast::TableAlias>)> {
    if super::window::window_function(factor).is_some() {
        return None;
    }
    match factor {
        TableFactor::TableFunction {
            expr: ast::Expr::Function(f),
            alias,
        } => Some((f, alias.as_ref())),
        TableFactor::Function { args, alias, .. } => match args.as_slice() {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Function(f)))] => {
                Some((f, alias.as_ref()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A join with the schema of its kind.
pub(super) fn join(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinKind,
    on: Option<Expr>,
    ttl: (Option<i64>, Option<i64>),
) -> LogicalPlan {
    let schema = join_schema(&left.schema, &right.schema, kind);
    LogicalPlan::new(
        LogicalNode::Join {
            left: Box::new(left),
            right: Box::new(right),
            kind,
            on,
            ttl,
        },
        schema,
    )
}

/// The output columns of a join.
pub(crate) fn join_schema(left: &Schema, right: &Schema, kind: JoinKind) -> Schema {
    if kind.is_semi_or_anti() {
        return left.clone();
    }
    let mut schema = left.join(right);
    for (i, column) in schema.columns.iter_mut().enumerate() {
        let nulled = if i < left.len() {
            kind.nulls_left()
        } else {
            kind.nulls_right()
        };
        column.data_type.nullable |= nulled;
    }
    schema
}

fn nullable_scope(mut scope: Scope<'_>, width: usize, kind: JoinKind) -> Scope<'_> {
    for column in &mut scope.columns {
        let on_left = column.expr.columns().iter().all(|c| *c < width);
        if (on_left && kind.nulls_left()) || (!on_left && kind.nulls_right()) {
            column.make_nullable();
        }
    }
    scope
}

fn common_names(
    left: &Scope<'_>,
    right: &Scope<'_>,
    constraint: &JoinConstraint,
) -> Result<Vec<String>> {
    match constraint {
        JoinConstraint::Using(names) => names
            .iter()
            .map(|name| match name.0.as_slice() {
                [part] => part
                    .as_ident()
                    .map(|i| i.value.clone())
                    .ok_or_else(|| Error::plan(format!("'{name}' is no column name"))),
                _ => Err(Error::plan(format!(
                    "USING takes plain column names, not '{name}'"
                ))),
            })
            .collect(),
        _ => {
            let visible = |scope: &Scope<'_>| -> Vec<String> {
                scope
                    .columns
                    .iter()
                    .filter(|c| c.in_star)
                    .map(|c| c.name.clone())
                    .collect()
            };
            let right = visible(right);
            Ok(visible(left)
                .into_iter()
                .filter(|name| right.contains(name))
                .collect())
        }
    }
}

/// The scope of a join with merged columns: these first, once, then the rest of each side.
fn using_scope<'p>(
    left: Scope<'p>,
    right: Scope<'_>,
    width: usize,
    names: &[String],
    kind: JoinKind,
) -> Result<(Vec<Expr>, Scope<'p>)> {
    let parent = left.parent;
    let find = |scope: &Scope<'_>, name: &String| -> Result<Expr> {
        let parts = std::slice::from_ref(name);
        let local = Scope {
            columns: scope.columns.clone(),
            parent: None,
        };
        local.resolve(parts)
    };
    let mut shifted = Scope::default();
    shifted.append(right, width);
    let mut on = Vec::new();
    let mut merged = Vec::new();
    for name in names {
        let (l, r) = (find(&left, name)?, find(&shifted, name)?);
        on.push(compare(CompareOp::Eq, l.clone(), r.clone())?);
        let expr = match kind {
            JoinKind::Right => r,
            JoinKind::Full => {
                let nullable = |mut e: Expr| {
                    e.data_type.nullable = true;
                    e
                };
                calls::coalesce(vec![nullable(l), nullable(r)])?
            }
            JoinKind::Inner => {
                let nullable = l.data_type.nullable && r.data_type.nullable;
                let data_type = l.data_type.kind.clone().with_nullable(nullable);
                Expr { data_type, ..l }
            }
            _ => l,
        };
        merged.push(super::scope::ScopeColumn {
            qualifier: Vec::new(),
            name: name.clone(),
            expr,
            time: None,
            in_star: true,
            unqualified: true,
        });
    }
    let mut columns = left.columns;
    columns.extend(shifted.columns);
    for column in &mut columns {
        if names.contains(&column.name) {
            column.in_star = false;
            column.unqualified = false;
        }
    }
    let mut scope = nullable_scope(Scope { columns, parent }, width, kind);
    merged.append(&mut scope.columns);
    scope.columns = merged;
    Ok((on, scope))
}
