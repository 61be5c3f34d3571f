//! What never needs parentheses: names, literals, `CASE`, `CAST`.

use sqlparser::ast::{
    AccessExpr, CaseWhen, CastKind, DataType as AstType, DateTimeField, Expr, Interval,
    TimezoneInfo, Value,
};

use super::expr::{COMPARISON, RANGE};
use super::{Writer, string_literal};

impl Writer {
    /// An expression that never needs parentheses.
    pub(super) fn bare(&mut self, expr: &Expr) {
        match expr {
            Expr::Identifier(ident) => self.ident(ident),
            Expr::CompoundIdentifier(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    self.push(if i > 0 { "." } else { "" });
                    self.ident(part);
                }
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expr(root, 0, 100);
                for access in access_chain {
                    match access {
                        AccessExpr::Dot(Expr::Identifier(field)) => {
                            self.push(".");
                            self.ident(field);
                        }
                        other => self.push(&other.to_string()),
                    }
                }
            }
            Expr::Nested(inner) => self.expr(inner, 0, 0),
            Expr::Value(v) => self.literal(&v.value),
            Expr::TypedString(typed) => {
                self.push(match &typed.data_type {
                    AstType::Date => "DATE ",
                    AstType::Time(..) => "TIME ",
                    AstType::Timestamp(_, TimezoneInfo::Tz) => "TIMESTAMP WITH LOCAL TIME ZONE ",
                    _ => "TIMESTAMP ",
                });
                self.literal(&typed.value.value);
            }
            Expr::Interval(interval) => self.interval(interval),
            Expr::Cast {
                kind,
                expr,
                data_type,
                ..
            } => self.cast(kind, expr, data_type),
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            Expr::Exists { subquery, negated } => {
                self.push(if *negated { "NOT EXISTS (" } else { "EXISTS (" });
                self.query(subquery);
                self.push(")");
            }
            Expr::Subquery(query) => {
                self.push("(");
                self.query(query);
                self.push(")");
            }
            Expr::Tuple(exprs) => {
                self.push("ROW(");
                self.exprs(exprs);
                self.push(")");
            }
            Expr::Function(function) => self.call(function),
            other => self.push(&other.to_string()),
        }
    }

    fn literal(&mut self, value: &Value) {
        match value {
            Value::Number(text, _) => self.push(&number(text)),
            Value::SingleQuotedString(text) => self.push(&string_literal(text)),
            Value::HexStringLiteral(digits) => {
                self.push(&format!("X'{}'", digits.to_ascii_uppercase()));
            }
            Value::Boolean(true) => self.push("TRUE"),
            Value::Boolean(false) => self.push("FALSE"),
            Value::Null => self.push("NULL"),
            other => self.push(&other.to_string()),
        }
    }

    fn interval(&mut self, interval: &Interval) {
        self.push("INTERVAL ");
        self.expr(&interval.value, 0, 0);
        if let Some(unit) = &interval.leading_field {
            self.push(&format!(" {}", unit_name(unit)));
        }
        match (
            interval.leading_precision,
            interval.fractional_seconds_precision,
        ) {
            (Some(p), Some(f)) if interval.last_field.is_none() => {
                self.push(&format!("({p}, {f})"));
            }
            (Some(p), _) => self.push(&format!("({p})")),
            _ => {}
        }
        if let Some(last) = &interval.last_field {
            self.push(&format!(" TO {}", unit_name(last)));
            if let Some(fraction) = interval.fractional_seconds_precision {
                self.push(&format!("({fraction})"));
            }
        }
    }

    fn cast(&mut self, kind: &CastKind, expr: &Expr, data_type: &AstType) {
        if let (Expr::Value(v), AstType::Custom(name, modifiers)) = (expr, data_type)
            && v.value == Value::Null
            && modifiers.is_empty()
            && name.to_string() == "BOOLEAN"
        {
            return self.push("UNKNOWN");
        }
        self.push(match kind {
            CastKind::TryCast => "TRY_CAST(",
            _ => "CAST(",
        });
        self.expr(expr, 0, 0);
        self.push(" AS ");
        match data_type {
            AstType::Custom(_, modifiers) if !modifiers.is_empty() => self.push(&modifiers[0]),
            other => self.push(&other.to_string()),
        }
        self.push(")");
    }

    /// `CASE` with an operand is written with conditions, and `ELSE` always.
    fn case(&mut self, operand: Option<&Expr>, branches: &[CaseWhen], other: Option<&Expr>) {
        self.push("CASE");
        for branch in branches {
            self.push(" WHEN ");
            match (operand, &branch.condition) {
                (None, condition) => self.expr(condition, 0, 0),
                (Some(operand), Expr::Tuple(values)) => {
                    self.expr(operand, 0, RANGE.0);
                    self.push(" IN (");
                    self.exprs(values);
                    self.push(")");
                }
                (Some(operand), value) => {
                    self.expr(operand, 0, COMPARISON.0);
                    self.push(" = ");
                    self.expr(value, COMPARISON.1, 0);
                }
            }
            self.push(" THEN ");
            self.expr(&branch.result, 0, 0);
        }
        self.push(" ELSE ");
        match other {
            Some(other) => self.expr(other, 0, 0),
            None => self.push("NULL"),
        }
        self.push(" END");
    }
}

fn unit_name(unit: &DateTimeField) -> String {
    unit.to_string().to_ascii_uppercase()
}

/// `1.50`, `0.5`, `1E3`: numbers as Calcite prints what it read.
fn number(text: &str) -> String {
    let upper = text.to_ascii_uppercase();
    if let Some((mantissa, exponent)) = upper.split_once('E') {
        return scientific(mantissa, exponent).unwrap_or(upper);
    }
    let (whole, fraction) = upper.split_once('.').unwrap_or((&upper, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() {
        whole.to_string()
    } else {
        format!("{whole}.{fraction}")
    }
}

/// One digit, the others behind a point, and the exponent of the first.
fn scientific(mantissa: &str, exponent: &str) -> Option<String> {
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let mut digits = if digits.is_empty() { "0" } else { digits }.to_string();
    let scale = i64::try_from(fraction.len()).ok()? - exponent;
    let first = i64::try_from(digits.len()).ok()? - scale - 1;
    if scale == 0 {
        let kept = digits.trim_end_matches('0').len().max(1);
        digits.truncate(kept);
    }
    let rest = &digits[1..];
    let point = if rest.is_empty() { "" } else { "." };
    Some(format!("{}{point}{rest}E{first}", &digits[..1]))
}
