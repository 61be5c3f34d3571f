//! Intervals and their units.

use sqlparser::ast::{BinaryOperator, DateTimeField, Expr, Interval, Value, ValueWithSpan};

use super::super::lexer::TokenKind;
use super::FlinkParser;
use super::build::{text, value};
use crate::error::{Result, Span};

/// The unit or units of an interval.
pub(super) struct IntervalQualifier {
    pub(super) leading: Option<DateTimeField>,
    leading_precision: Option<u64>,
    last: Option<DateTimeField>,
    fraction: Option<u64>,
}

impl IntervalQualifier {
    pub(super) fn is_year_month(&self) -> bool {
        use DateTimeField::{Month, Quarter, Year};
        matches!(self.leading, Some(Year | Month | Quarter))
            && matches!(self.last, None | Some(Month))
    }
}

impl FlinkParser<'_> {
    /// `INTERVAL [-] '1:30' MINUTE TO SECOND`, and `INTERVAL n DAY`, `INTERVAL (expr) DAY`, which are
    /// a number of one-unit intervals.
    pub(super) fn interval(&mut self) -> Result<Expr> {
        let start = self.here();
        self.skip(1);
        if self.peek_is_name() || self.peek_symbol("(") || self.peek().kind == TokenKind::Number {
            return self.interval_of_number(start);
        }
        let signed_number = self.peek_at(1).kind == TokenKind::Number;
        let sign = if self.take_symbol("-") {
            "-"
        } else {
            self.take_symbol("+");
            ""
        };
        let literal = self.here();
        let mut text = if signed_number {
            self.advance().text
        } else {
            self.string_literal("an interval in single quotes")?
        };
        text.insert_str(0, sign);
        let value = value(Value::SingleQuotedString(text), self.since(literal));
        let qualifier = self.interval_qualifier()?;
        Ok(interval_of(value, qualifier))
    }

    fn interval_of_number(&mut self, start: Span) -> Result<Expr> {
        let number = self.primary()?;
        let qualifier = self.interval_qualifier()?;
        if qualifier.last.is_some() {
            let reason = "An interval of a number has one unit";
            return Err(self.error(reason, self.since(start)));
        }
        if let Expr::Value(ValueWithSpan {
            value: Value::Number(text, _),
            span,
        }) = number
        {
            let text = Value::SingleQuotedString(text).with_span(span);
            return Ok(interval_of(Expr::Value(text), qualifier));
        }
        Ok(Expr::BinaryOp {
            left: Box::new(number),
            op: BinaryOperator::Multiply,
            right: Box::new(interval_of(text("1"), qualifier)),
        })
    }

    /// `DAY`, `DAY(2) TO SECOND(3)`
    pub(super) fn interval_qualifier(&mut self) -> Result<IntervalQualifier> {
        if !self.peek_unit() {
            return Err(self.unexpected_of("an interval's unit", UNITS));
        }
        let mut qualifier = IntervalQualifier {
            leading: self.take_unit(),
            leading_precision: None,
            last: None,
            fraction: None,
        };
        if self.take_symbol("(") {
            qualifier.leading_precision = Some(self.integer("a precision")?);
            if self.take_symbol(",") {
                qualifier.fraction = Some(self.integer("a precision")?);
            }
            self.expect_symbol(")")?;
        }
        let last: &[&str] = match qualifier.leading {
            Some(DateTimeField::Year) => &["MONTH"],
            Some(DateTimeField::Day) => &["HOUR", "MINUTE", "SECOND"],
            Some(DateTimeField::Hour) => &["MINUTE", "SECOND"],
            Some(DateTimeField::Minute) => &["SECOND"],
            _ => &[],
        };
        if !last.is_empty() && self.take_word("TO") {
            let unit = self.unit().map(|u| u.to_string()).unwrap_or_default();
            if !last.contains(&unit.as_str()) {
                return Err(self.unexpected_of(&last.join(" or "), last));
            }
            qualifier.last = self.take_unit();
            if self.take_symbol("(") {
                qualifier.fraction = Some(self.integer("a precision")?);
                self.expect_symbol(")")?;
            }
        }
        Ok(qualifier)
    }

    pub(super) fn peek_unit(&self) -> bool {
        self.unit().is_some()
    }

    fn take_unit(&mut self) -> Option<DateTimeField> {
        let unit = self.unit()?;
        self.skip(1);
        Some(unit)
    }

    fn unit(&self) -> Option<DateTimeField> {
        let word = self.peek().text.to_ascii_uppercase();
        Some(match word.strip_suffix('S').unwrap_or(&word) {
            _ if self.peek().kind != TokenKind::Word => return None,
            "YEAR" => DateTimeField::Year,
            "QUARTER" => DateTimeField::Quarter,
            "MONTH" => DateTimeField::Month,
            "WEEK" => DateTimeField::Week(None),
            "DAY" => DateTimeField::Day,
            "HOUR" => DateTimeField::Hour,
            "MINUTE" => DateTimeField::Minute,
            "SECOND" => DateTimeField::Second,
            _ => return None,
        })
    }
}

/// The units of intervals, for hints.
const UNITS: &[&str] = &[
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND",
];

fn interval_of(value: Expr, qualifier: IntervalQualifier) -> Expr {
    Expr::Interval(Interval {
        value: Box::new(value),
        leading_field: qualifier.leading,
        leading_precision: qualifier.leading_precision,
        last_field: qualifier.last,
        fractional_seconds_precision: qualifier.fraction,
    })
}
