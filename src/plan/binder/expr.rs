//! Scalar expressions: syntax to typed [`Expr`]s.
//!
//! What cannot be said over the block's input alone is put aside in the [`Context`] and stands in
//! the expression as a column beyond [`AGGREGATE_BASE`], [`OVER_BASE`] or [`SUBQUERY_BASE`]; the
//! clause that owns it replaces these.

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, BinaryOperator, UnaryOperator, Value};

use super::aggregate::PendingAggregate;
use super::compare::{compare, compare_as, is_nested};
use super::match_recognize::PatternCalls;
use super::over::PendingOver;
use super::scope::{Scope, access_fields, field_at};
use super::subquery::PendingSubquery;
use super::{Binder, literal, refusals};
use crate::error::{Error, Result};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::functions::Arg;
use crate::types::cast::CastMode;
use crate::types::{DataType, Schema, TimeAttribute, TypeKind, coerce};

/// Columns from here on are aggregate calls.
pub(super) const AGGREGATE_BASE: usize = 1 << 24;
/// Columns from here on are OVER calls.
pub(super) const OVER_BASE: usize = 2 << 24;
/// Columns from here on are values of subqueries.
pub(super) const SUBQUERY_BASE: usize = 3 << 24;
/// Columns from here on are properties of a group window: start, end, time.
pub(super) const WINDOW_BASE: usize = 4 << 24;

/// Where an expression stands and what it put aside.
pub(super) struct Context<'c, 's> {
    /// Names in reach.
    pub(super) scope: &'c Scope<'s>,
    /// Aggregate calls; `None` where they are not allowed.
    pub(super) aggregates: Option<Vec<PendingAggregate>>,
    /// OVER calls; `None` where they are not allowed.
    pub(super) overs: Option<Vec<PendingOver>>,
    /// Subqueries used as values; `None` where they are not allowed.
    pub(super) subqueries: Option<Vec<PendingSubquery>>,
    /// Those met inside aggregate calls, over the rows that are aggregated.
    pub(super) argument_subqueries: Vec<PendingSubquery>,
    /// The WINDOW clause.
    pub(super) named_windows: &'c [ast::NamedWindowDefinition],
    /// The clause, for messages.
    pub(super) clause: &'static str,
    /// The deprecated group window of the block, as text.
    pub(super) group_window: Option<String>,
    /// Whether the block has group keys.
    pub(super) grouped: bool,
    /// What MATCH_RECOGNIZE puts aside; `None` elsewhere.
    pub(super) pattern: Option<PatternCalls>,
}

impl<'c, 's> Context<'c, 's> {
    /// An expression that may hold nothing but columns and functions.
    pub(super) fn scalar(scope: &'c Scope<'s>) -> Self {
        Self {
            scope,
            aggregates: None,
            overs: None,
            subqueries: None,
            argument_subqueries: Vec::new(),
            named_windows: &[],
            clause: "this expression",
            group_window: None,
            grouped: false,
            pattern: None,
        }
    }

    /// A condition: subqueries are allowed.
    pub(super) fn condition(scope: &'c Scope<'s>, clause: &'static str) -> Self {
        Self {
            subqueries: Some(Vec::new()),
            clause,
            ..Self::scalar(scope)
        }
    }
}

impl Binder<'_> {
    /// Binds `ast`; errors get its position unless they have a better one.
    pub(super) fn bind_expr(
        &mut self,
        ast: &ast::Expr,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let bound = self.bind_expr_inner(ast, context);
        self.located(ast, bound)
    }

    fn bind_expr_inner(&mut self, ast: &ast::Expr, context: &mut Context<'_, '_>) -> Result<Expr> {
        use ast::Expr as A;
        match ast {
            A::Identifier(ident) => context.scope.resolve(std::slice::from_ref(&ident.value)),
            A::CompoundIdentifier(idents) => {
                let parts: Vec<String> = idents.iter().map(|i| i.value.clone()).collect();
                context.scope.resolve(&parts)
            }
            A::CompoundFieldAccess { root, access_chain } => {
                self.bind_access(root, access_chain, context)
            }
            A::Nested(inner) => self.bind_expr(inner, context),
            A::Value(value) => literal::value(&value.value),
            A::TypedString(typed) => literal::typed_string(typed),
            A::Interval(interval) => self.bind_interval(interval, context),
            A::Prefixed { prefix, value } => literal::prefixed(prefix, value),
            A::IsNull(inner) => self.is_null(inner, false, context),
            A::IsNotNull(inner) => self.is_null(inner, true, context),
            A::IsUnknown(inner) => self.is_unknown(inner, false, "IS UNKNOWN", context),
            A::IsNotUnknown(inner) => self.is_unknown(inner, true, "IS NOT UNKNOWN", context),
            A::IsTrue(inner) => self.is_true(inner, true, "IS TRUE", context),
            A::IsFalse(inner) => self.is_true(inner, false, "IS FALSE", context),
            A::IsNotTrue(inner) => Ok(not(self.is_true(inner, true, "IS NOT TRUE", context)?)),
            A::IsNotFalse(inner) => Ok(not(self.is_true(inner, false, "IS NOT FALSE", context)?)),
            A::IsDistinctFrom(a, b) => self.bind_compare(CompareOp::Distinct, a, b, context),
            A::IsNotDistinctFrom(a, b) => self.bind_compare(CompareOp::NotDistinct, a, b, context),
            A::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let value = self.bind_expr(expr, context)?;
                let low = self.bind_expr(low, context)?;
                let high = self.bind_expr(high, context)?;
                let lower = compare(CompareOp::GtEq, value.clone(), low)?;
                let upper = compare(CompareOp::LtEq, value, high)?;
                Ok(negate_if(*negated, and(vec![lower, upper])))
            }
            A::InList {
                expr,
                list,
                negated,
            } => {
                let value = self.bind_expr(expr, context)?;
                let found = self.bind_members(&value, list, context)?;
                Ok(negate_if(*negated, found))
            }
            A::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.bind_quantified(left, compare_op, right, false, context),
            A::AllOp {
                left,
                compare_op,
                right,
            } => self.bind_quantified(left, compare_op, right, true, context),
            A::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let found = self.bind_in_subquery(expr, subquery, context)?;
                Ok(negate_if(*negated, found))
            }
            A::Exists { subquery, negated } => {
                let found = self.bind_exists(subquery, context)?;
                Ok(negate_if(*negated, found))
            }
            A::Subquery(query) => self.bind_scalar_subquery(query, context),
            A::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => {
                let mut args = vec![(**expr).clone(), (**pattern).clone()];
                args.extend(escape_char.clone().map(A::Value));
                Ok(negate_if(*negated, self.bind_call("LIKE", &args, context)?))
            }
            A::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => {
                let mut args = vec![(**expr).clone(), (**pattern).clone()];
                args.extend(escape_char.clone().map(A::Value));
                Ok(negate_if(
                    *negated,
                    self.bind_call("SIMILAR TO", &args, context)?,
                ))
            }
            A::BinaryOp { left, op, right } => self.bind_binary(left, op, right, context),
            A::UnaryOp { op, expr } => self.bind_unary(*op, expr, context),
            A::Cast {
                kind,
                expr,
                data_type,
                ..
            } => {
                let mode = match kind {
                    ast::CastKind::TryCast | ast::CastKind::SafeCast => CastMode::Try,
                    _ => CastMode::Strict,
                };
                let input = self.bind_expr(expr, context)?;
                let target = crate::sql::parse_type(data_type)?;
                let text = data_type.to_string();
                if input.data_type.kind.is_integer()
                    && target.kind.is_interval()
                    && text.contains(" TO ")
                {
                    return Err(Error::plan(format!(
                        "Cast function cannot convert value of type {} to type {text}",
                        input.data_type.kind.root_name()
                    ))
                    .hint("a number is so many of one unit: INTERVAL SECOND"));
                }
                cast(input, &target, mode)
            }
            A::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.bind_case(
                operand.as_deref(),
                conditions,
                else_result.as_deref(),
                context,
            ),
            A::Array(array) => self.bind_call("ARRAY", &array.elem, context),
            A::Tuple(items) => self.bind_call("ROW", items, context),
            A::Function(function) => self.bind_function(function, context),
            A::Extract { field, expr, .. } => {
                let unit = literal::text(&field.to_string().to_uppercase());
                let input = self.bind_expr(expr, context)?;
                self.call("EXTRACT", vec![unit, input])
            }
            other => Err(Error::plan(format!(
                "The expression '{other}' is not supported"
            ))),
        }
    }

    /// Binds the arguments and applies the scalar function `name`.
    pub(super) fn bind_call(
        &mut self,
        name: &str,
        args: &[ast::Expr],
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let args = args
            .iter()
            .map(|a| self.bind_expr(a, context))
            .collect::<Result<Vec<_>>>()?;
        self.call(name, args)
    }

    /// Applies the scalar function `name`.
    pub(super) fn call(&self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        let args = match name {
            "JSON_OBJECT" | "JSON_ARRAY" => args
                .into_iter()
                .map(|arg| self.raw_json(arg))
                .collect::<Result<_>>()?,
            _ => args,
        };
        let infos: Vec<Arg> = args
            .iter()
            .map(|a| Arg {
                data_type: a.data_type.clone(),
                literal: a.as_literal().cloned(),
            })
            .collect();
        let function = self.functions.find(name, &infos)?;
        let signature = function.resolve(&infos)?;
        let args = args
            .into_iter()
            .zip(&signature.args)
            .map(|(arg, want)| arg.cast_to(want))
            .collect();
        Ok(Expr::new(
            ExprKind::Call { function, args },
            signature.returns,
        ))
    }

    /// What a JSON constructor makes goes into another one as it is, not as a text.
    fn raw_json(&self, arg: Expr) -> Result<Expr> {
        if super::calls::is_json(&arg) {
            self.call("JSON", vec![arg])
        } else {
            Ok(arg)
        }
    }

    fn bind_access(
        &mut self,
        root: &ast::Expr,
        chain: &[ast::AccessExpr],
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        // a.b[1].c: the dotted prefix is one name
        let mut dotted = match root {
            ast::Expr::Identifier(ident) => Some(vec![ident.value.clone()]),
            ast::Expr::CompoundIdentifier(idents) => {
                Some(idents.iter().map(|i| i.value.clone()).collect())
            }
            _ => None,
        };
        let mut rest = chain;
        while let (
            Some(parts),
            [
                ast::AccessExpr::Dot(ast::Expr::Identifier(ident)),
                tail @ ..,
            ],
        ) = (&mut dotted, rest)
        {
            parts.push(ident.value.clone());
            rest = tail;
        }
        let mut expr = match &dotted {
            Some(parts) => context.scope.resolve(parts)?,
            None => self.bind_expr(root, context)?,
        };
        for access in rest {
            expr = match access {
                ast::AccessExpr::Dot(ast::Expr::Identifier(field)) => {
                    access_fields(expr, std::slice::from_ref(&field.value))?
                }
                ast::AccessExpr::Dot(other) => {
                    return Err(Error::plan(format!("'{other}' is not a field name")));
                }
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => {
                    let index = self.bind_expr(index, context)?;
                    self.item(expr, index)?
                }
                ast::AccessExpr::Subscript(other) => {
                    return Err(
                        Error::plan(format!("The subscript '[{other}]' is not supported"))
                            .hint("use ARRAY_SLICE(array, from, to)"),
                    );
                }
            };
        }
        Ok(expr)
    }

    /// `value[index]`; of a row the index is the constant name or position of a field.
    pub(super) fn item(&self, value: Expr, index: Expr) -> Result<Expr> {
        let Some(fields) = value.data_type.kind.fields() else {
            return self.call("ITEM", vec![value, index]);
        };
        let constant = self.fold(index.clone())?;
        let position = match constant.as_literal() {
            Some(ScalarValue::Utf8(Some(name))) => {
                return access_fields(value, std::slice::from_ref(name));
            }
            Some(number) if index.data_type.kind.is_integer() => {
                let number: Option<usize> = number.to_string().parse().ok();
                number.and_then(|n| n.checked_sub(1))
            }
            _ => None,
        };
        match position.and_then(|i| Some((i, fields.get(i)?.data_type.clone()))) {
            Some((i, inner)) => Ok(field_at(value, i, inner)),
            None => Err(Error::plan(format!(
                "Cannot infer type of field at position {constant} within ROW type: {}",
                value.data_type
            ))
            .hint("the index of a row is the constant name or position of a field, from 1 on")),
        }
    }

    fn bind_interval(
        &mut self,
        interval: &ast::Interval,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        if let ast::Expr::Value(value) = interval.value.as_ref()
            && let Value::SingleQuotedString(text) = &value.value
        {
            return literal::interval(text, interval);
        }
        // INTERVAL x UNIT: a number of units
        let amount = self.bind_expr(&interval.value, context)?;
        let one = literal::interval("1", interval)?;
        self.call("*", vec![amount, one])
    }

    fn is_null(
        &mut self,
        inner: &ast::Expr,
        negated: bool,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let input = self.bind_expr(inner, context)?;
        Ok(is_null(input, negated))
    }

    fn is_unknown(
        &mut self,
        inner: &ast::Expr,
        negated: bool,
        test: &str,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let input = boolean(self.bind_expr(inner, context)?, test)?;
        Ok(is_null(input, negated))
    }

    fn is_true(
        &mut self,
        inner: &ast::Expr,
        wanted: bool,
        test: &str,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let input = boolean(self.bind_expr(inner, context)?, test)?;
        let known = is_null(input.clone(), true);
        let mut test = and(vec![known, negate_if(!wanted, input)]);
        test.data_type.nullable = false;
        Ok(test)
    }

    fn bind_compare(
        &mut self,
        op: CompareOp,
        left: &ast::Expr,
        right: &ast::Expr,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let left = self.bind_expr(left, context)?;
        let right = self.bind_expr(right, context)?;
        compare(op, left, right)
    }

    fn bind_binary(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let name = match op {
            BinaryOperator::And | BinaryOperator::Or => {
                let is_and = *op == BinaryOperator::And;
                let word = if is_and { "AND" } else { "OR" };
                let left = self.bind_expr(left, context)?;
                let right = self.bind_expr(right, context)?;
                let (l, r) = (left.data_type.kind.clone(), right.data_type.kind.clone());
                let refuse = |_| match (&l, &r) {
                    (TypeKind::Null, _) | (_, TypeKind::Null) => refusals::untyped_null(),
                    _ => refusals::not_booleans(word, &l, &r),
                };
                let left = boolean(left, word).map_err(refuse)?;
                let right = boolean(right, word).map_err(refuse)?;
                return Ok(if is_and {
                    and(vec![left, right])
                } else {
                    or(vec![left, right])
                });
            }
            BinaryOperator::Eq => return self.bind_compare(CompareOp::Eq, left, right, context),
            BinaryOperator::NotEq => {
                return self.bind_compare(CompareOp::NotEq, left, right, context);
            }
            BinaryOperator::Lt => return self.bind_compare(CompareOp::Lt, left, right, context),
            BinaryOperator::LtEq => {
                return self.bind_compare(CompareOp::LtEq, left, right, context);
            }
            BinaryOperator::Gt => return self.bind_compare(CompareOp::Gt, left, right, context),
            BinaryOperator::GtEq => {
                return self.bind_compare(CompareOp::GtEq, left, right, context);
            }
            BinaryOperator::Plus => "+",
            BinaryOperator::Minus => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::StringConcat => "||",
            other => {
                return Err(Error::plan(format!(
                    "The operator '{other}' is not supported"
                )));
            }
        };
        self.bind_call(name, &[left.clone(), right.clone()], context)
    }

    fn bind_unary(
        &mut self,
        op: UnaryOperator,
        inner: &ast::Expr,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        match op {
            UnaryOperator::Not => Ok(not(boolean(self.bind_expr(inner, context)?, "NOT")?)),
            UnaryOperator::Plus => self.bind_expr(inner, context),
            UnaryOperator::Minus => {
                if let ast::Expr::Value(value) = inner
                    && let Value::Number(text, _) = &value.value
                {
                    return literal::number(&format!("-{text}"));
                }
                let input = self.bind_expr(inner, context)?;
                let negated = self.call("-", vec![input])?;
                self.fold(negated)
            }
            other => Err(Error::plan(format!(
                "The operator '{other}' is not supported"
            ))),
        }
    }

    /// Whether `value` is one of the values in `list`.
    fn bind_members(
        &mut self,
        value: &Expr,
        list: &[ast::Expr],
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        let items = list
            .iter()
            .map(|item| self.bind_expr(item, context))
            .collect::<Result<Vec<_>>>()?;
        let types: Vec<_> = items.iter().map(|item| &item.data_type).collect();
        if coerce::common_type(&types).is_none() {
            return Err(Error::plan(
                "Values in expression list must have compatible types",
            ));
        }
        let is_text = value.data_type.kind.is_string();
        let tests = items.into_iter().map(|item| {
            let kind = &item.data_type.kind;
            // a text is compared with what the others look like as a text
            let scalar = kind.is_numeric() || kind.is_temporal() || *kind == TypeKind::Boolean;
            let item = if is_text && scalar {
                item.cast_to(&TypeKind::STRING.nullable())
            } else {
                item
            };
            compare_as(CompareOp::Eq, false, value.clone(), item)
        });
        Ok(or(tests.collect::<Result<Vec<_>>>()?))
    }

    fn bind_case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        else_result: Option<&ast::Expr>,
        context: &mut Context<'_, '_>,
    ) -> Result<Expr> {
        use ast::Expr as A;
        let operand = operand.map(|o| self.bind_expr(o, context)).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        for branch in conditions {
            let condition = match (&operand, &branch.condition) {
                (Some(operand), A::Tuple(values)) if !is_nested(&operand.data_type.kind) => {
                    self.bind_members(operand, values, context)?
                }
                (Some(operand), value) => {
                    let value = self.bind_expr(value, context)?;
                    compare(CompareOp::Eq, operand.clone(), value)?
                }
                (None, condition) => boolean(self.bind_expr(condition, context)?, "CASE WHEN")?,
            };
            branches.push((condition, self.bind_expr(&branch.result, context)?));
        }
        let otherwise = match else_result {
            Some(e) => self.bind_expr(e, context)?,
            None => literal::null(),
        };
        let untyped = |result: &Expr| result.data_type.kind == TypeKind::Null;
        if untyped(&otherwise) && branches.iter().all(|(_, then)| untyped(then)) {
            return Err(refusals::only_nulls());
        }
        case(branches, otherwise)
    }
}

/// `ast` is nothing but a name: the parts.
pub(super) fn name_parts(ast: &ast::Expr) -> Option<Vec<String>> {
    match ast {
        ast::Expr::Identifier(ident) => Some(vec![ident.value.clone()]),
        ast::Expr::CompoundIdentifier(idents) => {
            Some(idents.iter().map(|i| i.value.clone()).collect())
        }
        ast::Expr::Nested(inner) => name_parts(inner),
        _ => None,
    }
}

/// The time attribute that an expression over `input` keeps: a plain column or `PROCTIME()`.
pub(super) fn time_attribute(expr: &Expr, input: &Schema) -> Option<TimeAttribute> {
    match &expr.kind {
        ExprKind::Column(i) => input.columns.get(*i)?.time,
        ExprKind::Call { function, .. } if function.name() == "PROCTIME" => {
            Some(TimeAttribute::Proctime)
        }
        _ => None,
    }
}

/// Three-valued AND; nested ones are flattened.
pub(crate) fn and(args: Vec<Expr>) -> Expr {
    junction(args, true)
}

/// Three-valued OR; nested ones are flattened.
pub(crate) fn or(args: Vec<Expr>) -> Expr {
    junction(args, false)
}

fn junction(args: Vec<Expr>, is_and: bool) -> Expr {
    let mut flat = Vec::with_capacity(args.len());
    for arg in args {
        match arg.kind {
            ExprKind::And(inner) if is_and => flat.extend(inner),
            ExprKind::Or(inner) if !is_and => flat.extend(inner),
            _ => flat.push(arg),
        }
    }
    if flat.len() == 1 {
        return flat.remove(0);
    }
    let data_type = TypeKind::Boolean.with_nullable(flat.iter().any(|e| e.data_type.nullable));
    if flat.is_empty() {
        return Expr::literal(ScalarValue::Boolean(Some(is_and)), data_type);
    }
    Expr::new(
        if is_and {
            ExprKind::And(flat)
        } else {
            ExprKind::Or(flat)
        },
        data_type,
    )
}

/// Three-valued NOT; a double one is dropped.
pub(crate) fn not(input: Expr) -> Expr {
    let data_type = input.data_type.clone();
    match input.kind {
        ExprKind::Not(inner) => *inner,
        ExprKind::IsNull { input, negated } => Expr::new(
            ExprKind::IsNull {
                input,
                negated: !negated,
            },
            data_type,
        ),
        kind => Expr::new(
            ExprKind::Not(Box::new(Expr::new(kind, data_type.clone()))),
            data_type,
        ),
    }
}

fn negate_if(negated: bool, input: Expr) -> Expr {
    if negated { not(input) } else { input }
}

/// `IS [NOT] NULL`.
pub(crate) fn is_null(input: Expr, negated: bool) -> Expr {
    Expr::new(
        ExprKind::IsNull {
            input: Box::new(input),
            negated,
        },
        TypeKind::Boolean.not_null(),
    )
}

/// `input` as a condition.
pub(crate) fn boolean(input: Expr, what: &str) -> Result<Expr> {
    match input.data_type.kind.clone() {
        TypeKind::Boolean => Ok(input),
        TypeKind::Null if matches!(what, "AND" | "OR" | "NOT") || what.starts_with("IS ") => {
            Err(refusals::untyped_null())
        }
        TypeKind::Null => cast(input, &TypeKind::Boolean.nullable(), CastMode::Strict),
        kind => Err(refusals::not_boolean(what, &kind)),
    }
}

/// `CASE` with all results brought to one type.
pub(crate) fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Result<Expr> {
    let types: Vec<&DataType> = branches
        .iter()
        .map(|(_, then)| &then.data_type)
        .chain([&otherwise.data_type])
        .collect();
    let Some(common) = coerce::common_type(&types) else {
        let types: Vec<_> = types.iter().map(|t| t.kind.to_string()).collect();
        return Err(Error::plan(format!(
            "Illegal mixing of types in CASE or COALESCE statement: {}",
            types.join(", ")
        )));
    };
    let nullable = types.iter().any(|t| t.nullable);
    let branches = branches
        .into_iter()
        .map(|(when, then)| (when, then.cast_to(&common)))
        .collect();
    let otherwise = Box::new(otherwise.cast_to(&common));
    Ok(Expr::new(
        ExprKind::Case {
            branches,
            otherwise,
        },
        common.kind.with_nullable(nullable),
    ))
}

/// An explicit cast.
pub(crate) fn cast(input: Expr, target: &DataType, mode: CastMode) -> Result<Expr> {
    coerce::explicit_cast_allowed(&input.data_type, target)?;
    // a cast of a time attribute makes a plain timestamp of it, even to the same type
    let plain = !target.kind.is_timestamp();
    if input.data_type.kind == target.kind && mode == CastMode::Strict && plain {
        return Ok(input);
    }
    let nullable = input.data_type.nullable || mode == CastMode::Try;
    let target = target.kind.clone().with_nullable(nullable);
    Ok(Expr::new(
        ExprKind::Cast {
            input: Box::new(input),
            mode,
        },
        target,
    ))
}
