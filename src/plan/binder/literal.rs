//! Constants as SQL writes them.

use datafusion::common::ScalarValue;
use sqlparser::ast::{self, DateTimeField, Value};

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::types::literal::{self, Literal};
use crate::types::parse::{IntervalField, IntervalQualifier};
use crate::types::{DataType, TypeKind};

fn expr((value, data_type): Literal) -> Expr {
    Expr::literal(value, data_type)
}

/// A number, with its sign.
pub(super) fn number(text: &str) -> Result<Expr> {
    literal::numeric(text).map(expr)
}

/// A character string.
pub(super) fn text(text: &str) -> Expr {
    expr(literal::string(text))
}

/// The untyped NULL.
pub(super) fn null() -> Expr {
    Expr::literal(ScalarValue::Null, TypeKind::Null.nullable())
}

/// NULL of a type.
pub(super) fn typed_null(data_type: &DataType) -> Result<Expr> {
    let value = ScalarValue::try_from(&data_type.to_arrow())?;
    Ok(Expr::literal(value, data_type.as_nullable()))
}

/// A BIGINT.
pub(super) fn bigint(value: i64) -> Expr {
    Expr::literal(ScalarValue::Int64(Some(value)), TypeKind::BigInt.not_null())
}

/// A BOOLEAN.
pub(crate) fn boolean(value: bool) -> Expr {
    Expr::literal(
        ScalarValue::Boolean(Some(value)),
        TypeKind::Boolean.not_null(),
    )
}

/// A literal of the syntax tree.
pub(super) fn value(value: &Value) -> Result<Expr> {
    match value {
        Value::Number(digits, _) => number(digits),
        Value::SingleQuotedString(s)
        | Value::EscapedStringLiteral(s)
        | Value::UnicodeStringLiteral(s)
        | Value::NationalStringLiteral(s) => Ok(text(s)),
        Value::HexStringLiteral(digits) => literal::binary(digits).map(expr),
        Value::Boolean(b) => Ok(boolean(*b)),
        Value::Null => Ok(null()),
        other => Err(Error::plan(format!("The literal {other} is not supported"))),
    }
}

/// `DATE '..'`, `TIME '..'`, `TIMESTAMP '..'`, `TIMESTAMP WITH LOCAL TIME ZONE '..'`.
pub(super) fn typed_string(typed: &ast::TypedString) -> Result<Expr> {
    let Value::SingleQuotedString(text) = &typed.value.value else {
        return Err(Error::plan(format!("{typed} is not a literal")));
    };
    match &typed.data_type {
        ast::DataType::Date => literal::date(text).map(expr),
        ast::DataType::Time(..) => literal::time(text).map(expr),
        ast::DataType::Timestamp(_, ast::TimezoneInfo::Tz) => literal::instant(text).map(expr),
        ast::DataType::Timestamp(..) => literal::timestamp(text).map(expr),
        other => Err(
            Error::plan(format!("A literal of type {other} is not supported"))
                .hint("use CAST('...' AS type)"),
        ),
    }
}

/// A prefixed string such as `_UTF8'..'`.
pub(super) fn prefixed(prefix: &ast::Ident, inner: &ast::Expr) -> Result<Expr> {
    match inner {
        ast::Expr::Value(v) if prefix.value.starts_with('_') => value(&v.value),
        _ => Err(Error::plan(format!(
            "The literal prefix '{prefix}' is not supported"
        ))),
    }
}

/// `INTERVAL 'text' qualifier`.
pub(super) fn interval(text: &str, interval: &ast::Interval) -> Result<Expr> {
    let unit = |field: &Option<DateTimeField>| field.as_ref().map(interval_unit).transpose();
    let Some(from) = unit(&interval.leading_field)? else {
        return Err(
            Error::plan(format!("INTERVAL '{text}' has no unit")).hint(format!(
                "write INTERVAL '{text}' SECOND, MINUTE, HOUR, DAY, MONTH or YEAR"
            )),
        );
    };
    let digits = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
    let qualifier = IntervalQualifier {
        from,
        to: unit(&interval.last_field)?,
        precision: digits(interval.leading_precision),
        fraction: digits(interval.fractional_seconds_precision),
    };
    let (text, negative) = match text.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    literal::interval(text, negative, &qualifier).map(expr)
}

fn interval_unit(field: &DateTimeField) -> Result<IntervalField> {
    let name = field.to_string().to_uppercase();
    IntervalField::from_name(&name)
        .ok_or_else(|| Error::plan(format!("{name} is not a unit of an INTERVAL")))
}
