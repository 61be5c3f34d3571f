//! Expressions, by precedence climbing with Calcite's precedences.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, DataType as AstType, DateTimeField, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    Interval, ObjectName, Query, SetExpr, TimezoneInfo, TypedString, UnaryOperator, Value,
    ValueWithSpan,
};

use super::super::lexer::TokenKind;
use super::super::{keywords, span};
use super::query::{attached, plain_query};
use super::{FlinkParser, MAX_CHAIN};
use crate::error::{Error, Result, Span};

/// How tight an operator binds.
type Power = u8;

const OR: Power = 1;
const AND: Power = 2;
const NOT: Power = 3;
const IS: Power = 4;
const COMPARISON: Power = 5;
const RANGE: Power = 6;
const SUM: Power = 7;
const PRODUCT: Power = 8;
const SIGN: Power = 9;

/// What stands between two operands.
enum Infix {
    Binary(BinaryOperator),
    Is,
    Overlaps,
    Between { negated: bool },
    In { negated: bool },
    Like { negated: bool, name: &'static str },
}

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
    /// An expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.nested(|p| p.expr_above(0))
    }

    /// An expression of operators that bind tighter than `least`.
    fn expr_above(&mut self, least: Power) -> Result<Expr> {
        let mut left = self.prefix()?;
        let mut chain = 0;
        while let Some((infix, power)) = self.peek_infix()? {
            if power <= least {
                break;
            }
            chain += 1;
            self.check_chain(chain)?;
            left = self.infix(left, infix, power)?;
        }
        Ok(left)
    }

    /// The left side of `IN` where the `IN` belongs to a call.
    pub(super) fn operand_before_in(&mut self) -> Result<Expr> {
        self.nested(|p| p.expr_above(RANGE))
    }

    /// Refuses a chain of operators whose tree would be too deep to walk.
    pub(super) fn check_chain(&self, length: usize) -> Result<()> {
        if length > MAX_CHAIN {
            let reason = format!("More than {MAX_CHAIN} operators in a row");
            return Err(Error::parse(reason).at(self.here()));
        }
        Ok(())
    }

    fn peek_infix(&self) -> Result<Option<(Infix, Power)>> {
        let token = self.peek();
        let binary = |op, power| Ok(Some((Infix::Binary(op), power)));
        match token.kind {
            TokenKind::Symbol => match token.text.as_str() {
                "=" => binary(BinaryOperator::Eq, COMPARISON),
                "<>" => binary(BinaryOperator::NotEq, COMPARISON),
                "<" => binary(BinaryOperator::Lt, COMPARISON),
                "<=" => binary(BinaryOperator::LtEq, COMPARISON),
                ">" => binary(BinaryOperator::Gt, COMPARISON),
                ">=" => binary(BinaryOperator::GtEq, COMPARISON),
                "+" => binary(BinaryOperator::Plus, SUM),
                "-" => binary(BinaryOperator::Minus, SUM),
                "*" => binary(BinaryOperator::Multiply, PRODUCT),
                "/" => binary(BinaryOperator::Divide, PRODUCT),
                "%" => binary(BinaryOperator::Modulo, PRODUCT),
                "||" => binary(BinaryOperator::StringConcat, PRODUCT),
                "!=" => Err(self
                    .error("Bang equal '!=' is not allowed", token.span)
                    .hint("write <>")),
                _ => Ok(None),
            },
            TokenKind::Word => Ok(self.peek_infix_word()),
            _ => Ok(None),
        }
    }

    fn peek_infix_word(&self) -> Option<(Infix, Power)> {
        let negated = self.peek_word("NOT");
        let word = self.peek_at(usize::from(negated));
        if word.kind != TokenKind::Word {
            return None;
        }
        let found = match word.text.to_ascii_uppercase().as_str() {
            "BETWEEN" => (Infix::Between { negated }, RANGE),
            "IN" => (Infix::In { negated }, RANGE),
            "LIKE" => (like(negated, "LIKE"), RANGE),
            "ILIKE" => (like(negated, "ILIKE"), RANGE),
            "RLIKE" => (like(negated, "RLIKE"), RANGE),
            "SIMILAR" => (like(negated, "SIMILAR TO"), RANGE),
            "OR" if !negated => (Infix::Binary(BinaryOperator::Or), OR),
            "AND" if !negated => (Infix::Binary(BinaryOperator::And), AND),
            "IS" if !negated && self.peek_is_distinct() => (Infix::Is, COMPARISON),
            "IS" if !negated => (Infix::Is, IS),
            "OVERLAPS" if !negated => (Infix::Overlaps, COMPARISON),
            _ => return None,
        };
        Some(found)
    }

    /// `IS [NOT] DISTINCT`, which binds like a comparison.
    fn peek_is_distinct(&self) -> bool {
        self.peek_at(1).is_word("DISTINCT")
            || self.peek_at(1).is_word("NOT") && self.peek_at(2).is_word("DISTINCT")
    }

    fn infix(&mut self, left: Expr, infix: Infix, power: Power) -> Result<Expr> {
        match infix {
            Infix::Binary(op) => {
                self.skip(1);
                if power == COMPARISON
                    && let Some(expr) = self.quantified_comparison(&left, &op)?
                {
                    return Ok(expr);
                }
                let right = self.expr_above(power)?;
                Ok(Expr::BinaryOp {
                    left: Box::new(left),
                    op,
                    right: Box::new(right),
                })
            }
            Infix::Is => self.is_predicate(left),
            Infix::Overlaps => self.overlaps(left),
            Infix::Between { negated } => {
                self.skip(1 + usize::from(negated));
                self.between(left, negated)
            }
            Infix::In { negated } => {
                self.skip(1 + usize::from(negated));
                self.in_predicate(left, negated)
            }
            Infix::Like { negated, name } => {
                self.skip(1 + usize::from(negated));
                if name == "SIMILAR TO" {
                    self.expect_word("TO")?;
                }
                // from right to left: a LIKE (b LIKE c)
                let mut args = vec![left, self.expr_above(COMPARISON)?];
                if self.take_word("ESCAPE") {
                    args.push(self.expr_above(COMPARISON)?);
                }
                Ok(negated_if(negated, call(name, args)))
            }
        }
    }

    /// `= ANY (query)` and its kin.
    fn quantified_comparison(&mut self, left: &Expr, op: &BinaryOperator) -> Result<Option<Expr>> {
        if !self.peek_at(1).is_symbol("(") {
            return Ok(None);
        }
        let Some(word) = self.take_one_of(&["ANY", "SOME", "ALL"]) else {
            return Ok(None);
        };
        let left = Box::new(left.clone());
        let compare_op = op.clone();
        let right = Box::new(self.parenthesized_expr()?);
        Ok(Some(if word == "ALL" {
            Expr::AllOp {
                left,
                compare_op,
                right,
            }
        } else {
            Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some: word == "SOME",
            }
        }))
    }

    fn is_predicate(&mut self, left: Expr) -> Result<Expr> {
        self.expect_word("IS")?;
        let negated = self.take_word("NOT");
        if self.take_words(&["DISTINCT", "FROM"]) {
            let (left, right) = (Box::new(left), Box::new(self.expr_above(COMPARISON)?));
            return Ok(if negated {
                Expr::IsNotDistinctFrom(left, right)
            } else {
                Expr::IsDistinctFrom(left, right)
            });
        }
        if self.take_word("JSON") {
            let kind = self
                .take_one_of(&["VALUE", "OBJECT", "ARRAY", "SCALAR"])
                .unwrap_or("VALUE");
            return Ok(negated_if(negated, call("IS JSON", vec![left, text(kind)])));
        }
        let word = self.expect_one_of(&["NULL", "TRUE", "FALSE", "UNKNOWN"])?;
        let input = Box::new(left);
        Ok(match (word, negated) {
            ("NULL", false) => Expr::IsNull(input),
            ("NULL", true) => Expr::IsNotNull(input),
            ("TRUE", false) => Expr::IsTrue(input),
            ("TRUE", true) => Expr::IsNotTrue(input),
            ("FALSE", false) => Expr::IsFalse(input),
            ("FALSE", true) => Expr::IsNotFalse(input),
            (_, false) => Expr::IsUnknown(input),
            (_, true) => Expr::IsNotUnknown(input),
        })
    }

    fn overlaps(&mut self, left: Expr) -> Result<Expr> {
        let start = self.here();
        self.expect_word("OVERLAPS")?;
        let right = self.expr_above(COMPARISON)?;
        let mut args = Vec::new();
        for side in [left, right] {
            match side {
                Expr::Tuple(exprs) if exprs.len() == 2 => args.extend(exprs),
                Expr::Function(f) if is_row_of_two(&f) => args.extend(exprs_of(f)),
                _ => {
                    let reason = "OVERLAPS compares two pairs, as in (a, b) OVERLAPS (c, d)";
                    return Err(self.error(reason, start));
                }
            }
        }
        Ok(call("OVERLAPS", args))
    }

    fn between(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        let symmetric = self.take_one_of(&["ASYMMETRIC", "SYMMETRIC"]) == Some("SYMMETRIC");
        let low = self.expr_above(RANGE)?;
        self.expect_word("AND")?;
        let high = self.expr_above(RANGE)?;
        let make = |expr: Expr, low: Expr, high: Expr| Expr::Between {
            expr: Box::new(expr),
            negated: false,
            low: Box::new(low),
            high: Box::new(high),
        };
        if symmetric {
            let either = Expr::BinaryOp {
                left: Box::new(make(left.clone(), low.clone(), high.clone())),
                op: BinaryOperator::Or,
                right: Box::new(make(left, high, low)),
            };
            return Ok(negated_if(negated, Expr::Nested(Box::new(either))));
        }
        let mut between = make(left, low, high);
        if let Expr::Between { negated: n, .. } = &mut between {
            *n = negated;
        }
        Ok(between)
    }

    fn in_predicate(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        self.expect_symbol("(")?;
        let expr = Box::new(left);
        if self.peek_query() {
            let subquery = Box::new(self.query()?);
            self.expect_symbol(")")?;
            return Ok(Expr::InSubquery {
                expr,
                subquery,
                negated,
            });
        }
        let mut list = self.comma_separated(Self::expr)?;
        if let [Expr::Subquery(_)] = list.as_slice()
            && let Some(Expr::Subquery(mut subquery)) = list.pop()
        {
            if self.peek_query_continues() {
                *subquery = self.query_from(*subquery)?;
            }
            self.expect_symbol(")")?;
            return Ok(Expr::InSubquery {
                expr,
                subquery,
                negated,
            });
        }
        self.expect_symbol(")")?;
        Ok(Expr::InList {
            expr,
            list,
            negated,
        })
    }

    // -- operands ------------------------------------------------------------------------------

    /// A single operand: a literal, a name, a call, something in parentheses.
    pub(super) fn operand(&mut self) -> Result<Expr> {
        self.nested(Self::prefix)
    }

    fn prefix(&mut self) -> Result<Expr> {
        if self.take_word("NOT") {
            let expr = self.nested(|p| p.expr_above(NOT))?;
            return Ok(unary(UnaryOperator::Not, expr));
        }
        for (symbol, op) in [("-", UnaryOperator::Minus), ("+", UnaryOperator::Plus)] {
            if self.take_symbol(symbol) {
                let expr = self.nested(|p| p.expr_above(SIGN))?;
                return Ok(unary(op, expr));
            }
        }
        let primary = self.primary()?;
        self.postfix(primary)
    }

    /// `[index]` and `.field` behind an operand.
    fn postfix(&mut self, mut expr: Expr) -> Result<Expr> {
        let mut chain = 0;
        loop {
            chain += 1;
            self.check_chain(chain)?;
            if self.take_symbol("[") {
                let index = self.expr()?;
                self.expect_symbol("]")?;
                expr = call("ITEM", vec![expr, index]);
            } else if self.peek_symbol(".") && self.is_name_at(1) {
                self.skip(1);
                let field = AccessExpr::Dot(Expr::Identifier(self.ident()?));
                match &mut expr {
                    Expr::CompoundFieldAccess { access_chain, .. } => access_chain.push(field),
                    _ => {
                        expr = Expr::CompoundFieldAccess {
                            root: Box::new(expr),
                            access_chain: vec![field],
                        };
                    }
                }
            } else {
                return Ok(expr);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number => self.number_literal(),
            TokenKind::String => {
                let start = self.here();
                let text = self.string_pieces();
                let at = self.since(start);
                Ok(value(Value::SingleQuotedString(text), at))
            }
            TokenKind::Hex => self.hex_literal(),
            TokenKind::Symbol if token.text == "(" => self.parenthesized_expr(),
            TokenKind::Word => self.primary_word(),
            TokenKind::Quoted => self.name_or_call(),
            _ => Err(self.unexpected("an expression")),
        }
    }

    pub(super) fn number_literal(&mut self) -> Result<Expr> {
        let token = self.advance();
        Ok(value(Value::Number(token.text, false), token.span))
    }

    fn hex_literal(&mut self) -> Result<Expr> {
        let token = self.advance();
        let digits = token.text.chars().all(|c| c.is_ascii_hexdigit());
        if !digits {
            let reason = format!("'{}' holds more than hexadecimal digits", token.text);
            return Err(self.error(reason, token.span));
        }
        if token.text.len() % 2 != 0 {
            let reason = "Binary literal string must contain an even number of hexits";
            return Err(self.error(reason, token.span));
        }
        Ok(value(Value::HexStringLiteral(token.text), token.span))
    }

    /// `(expr)`, `(a, b)`, `(query)`.
    fn parenthesized_expr(&mut self) -> Result<Expr> {
        self.nested(|p| {
            p.expect_symbol("(")?;
            if p.peek_query() {
                let query = p.query()?;
                p.expect_symbol(")")?;
                return Ok(Expr::Subquery(Box::new(query)));
            }
            let mut exprs = p.comma_separated(Self::expr)?;
            if exprs.len() > 1 {
                p.expect_symbol(")")?;
                return Ok(Expr::Tuple(exprs));
            }
            let Some(only) = exprs.pop() else {
                return Err(p.unexpected("an expression"));
            };
            if let Expr::Subquery(first) = only {
                let query = if p.peek_query_continues() {
                    p.query_from(*first)?
                } else {
                    *first
                };
                p.expect_symbol(")")?;
                return Ok(Expr::Subquery(Box::new(query)));
            }
            p.expect_symbol(")")?;
            match only {
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::Minus,
                    right,
                } if p.peek_unit() => {
                    let start = p.here();
                    p.interval_qualifier()?;
                    let unit = p.text_of(p.since(start)).to_ascii_uppercase();
                    Ok(call("MINUS_DATE", vec![*left, *right, text(&unit)]))
                }
                only => Ok(Expr::Nested(Box::new(only))),
            }
        })
    }

    fn primary_word(&mut self) -> Result<Expr> {
        let token = self.peek();
        let at = token.span;
        let word = token.text.to_ascii_uppercase();
        let next = self.peek_at(1);
        let (call_next, string_next) = (next.is_symbol("("), next.kind == TokenKind::String);
        let bracket_next = next.is_symbol("[");
        match word.as_str() {
            "NULL" => self.literal(Value::Null),
            "TRUE" => self.literal(Value::Boolean(true)),
            "FALSE" => self.literal(Value::Boolean(false)),
            "UNKNOWN" => {
                self.skip(1);
                let null = value(Value::Null, at);
                Ok(cast(CastKind::Cast, null, ast_type_named("BOOLEAN")))
            }
            "CASE" => self.case(),
            "CAST" if call_next => self.cast(CastKind::Cast),
            "TRY_CAST" if call_next => self.cast(CastKind::TryCast),
            "EXISTS" if call_next => {
                self.skip(2);
                let subquery = Box::new(self.query()?);
                self.expect_symbol(")")?;
                Ok(Expr::Exists {
                    subquery,
                    negated: false,
                })
            }
            "INTERVAL" => self.interval(),
            "DATE" if string_next => self.typed_literal(AstType::Date),
            "TIME" if string_next => self.typed_literal(AstType::Time(None, TimezoneInfo::None)),
            "TIMESTAMP" if self.peek_local_timestamp() => {
                self.skip(4);
                self.typed_literal(AstType::Timestamp(None, TimezoneInfo::Tz))
            }
            "TIMESTAMP" if string_next => {
                self.typed_literal(AstType::Timestamp(None, TimezoneInfo::None))
            }
            "ARRAY" | "MAP" | "MULTISET" if bracket_next => self.collection(),
            "ARRAY" | "MAP" | "MULTISET" if call_next => self.collection_of_query(),
            "ROW" if call_next => self.row(),
            "RUNNING" | "FINAL" if keywords::is_reserved(&word) || self.is_name_at(1) => {
                self.running(&word)
            }
            _ => self.name_or_call(),
        }
    }

    /// `TIMESTAMP WITH LOCAL TIME ZONE '..'`
    fn peek_local_timestamp(&self) -> bool {
        self.peek_words(&["TIMESTAMP", "WITH", "LOCAL", "TIME", "ZONE"])
            && self.peek_at(5).kind == TokenKind::String
    }

    fn literal(&mut self, literal: Value) -> Result<Expr> {
        let at = self.advance().span;
        Ok(value(literal, at))
    }

    fn typed_literal(&mut self, data_type: AstType) -> Result<Expr> {
        self.skip(1);
        let start = self.here();
        let text = self.string_pieces();
        let value = ValueWithSpan {
            value: Value::SingleQuotedString(text),
            span: span::to_ast(self.since(start)),
        };
        Ok(Expr::TypedString(TypedString {
            data_type,
            value,
            uses_odbc_syntax: false,
        }))
    }

    fn case(&mut self) -> Result<Expr> {
        self.nested(|p| {
            let case_token = attached(p.peek());
            p.skip(1);
            let operand = if p.peek_word("WHEN") {
                None
            } else {
                Some(Box::new(p.expr()?))
            };
            let mut conditions = Vec::new();
            while p.take_word("WHEN") {
                let condition = p.case_condition(operand.as_deref())?;
                p.expect_word("THEN")?;
                let result = p.expr()?;
                conditions.push(CaseWhen { condition, result });
            }
            if conditions.is_empty() {
                return Err(p.unexpected_of("WHEN", &["WHEN"]));
            }
            let else_result = if p.take_word("ELSE") {
                Some(Box::new(p.expr()?))
            } else {
                None
            };
            let end_token = attached(p.peek());
            p.expect_word("END")?;
            Ok(Expr::Case {
                case_token,
                end_token,
                operand,
                conditions,
                else_result,
            })
        })
    }

    /// One condition, or with an operand several values: `WHEN 1, 2 THEN`, kept as a tuple.
    fn case_condition(&mut self, operand: Option<&Expr>) -> Result<Expr> {
        let start = self.here();
        let mut values = self.comma_separated(Self::expr)?;
        match values.pop() {
            Some(only) if values.is_empty() => Ok(only),
            Some(last) if operand.is_some() => {
                values.push(last);
                Ok(Expr::Tuple(values))
            }
            _ => {
                let reason = "Several values after WHEN need an operand after CASE";
                Err(self.error(reason, self.since(start)))
            }
        }
    }

    fn cast(&mut self, kind: CastKind) -> Result<Expr> {
        self.skip(2);
        let expr = self.expr()?;
        self.expect_word("AS")?;
        let data_type = self.ast_type()?;
        self.expect_symbol(")")?;
        Ok(cast(kind, expr, data_type))
    }

    /// `INTERVAL [-] '1:30' MINUTE TO SECOND`, and `INTERVAL n DAY`, `INTERVAL (expr) DAY`, which are
    /// a number of one-unit intervals.
    fn interval(&mut self) -> Result<Expr> {
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

    fn peek_unit(&self) -> bool {
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

    /// `ARRAY[..]`, `MAP[..]`, `MULTISET[..]`
    fn collection(&mut self) -> Result<Expr> {
        let name = self.any_word();
        self.expect_symbol("[")?;
        let elements = if self.peek_symbol("]") {
            Vec::new()
        } else {
            self.comma_separated(Self::expr)?
        };
        self.expect_symbol("]")?;
        Ok(call_of(upper(name), elements))
    }

    /// `ARRAY(query)`, `MAP(query)`, `MULTISET(query)`
    fn collection_of_query(&mut self) -> Result<Expr> {
        let name = upper(self.any_word());
        self.expect_symbol("(")?;
        let query = self.query()?;
        self.expect_symbol(")")?;
        let mut function = function(ObjectName::from(vec![name]), Vec::new());
        function.args = FunctionArguments::Subquery(Box::new(query));
        Ok(Expr::Function(function))
    }

    fn row(&mut self) -> Result<Expr> {
        let name = upper(self.any_word());
        self.expect_symbol("(")?;
        let fields = if self.peek_symbol(")") {
            Vec::new()
        } else {
            self.comma_separated(Self::expr)?
        };
        self.expect_symbol(")")?;
        Ok(call_of(name, fields))
    }

    /// `RUNNING LAST(a.x)`, `FINAL LAST(a.x)`
    fn running(&mut self, word: &str) -> Result<Expr> {
        self.skip(1);
        let inner = self.name_or_call()?;
        let name = if word == "FINAL" { "FINAL" } else { "RUNNING" };
        Ok(call(name, vec![inner]))
    }

    /// A column, a dotted path, or a call.
    fn name_or_call(&mut self) -> Result<Expr> {
        let quoted = self.peek().kind == TokenKind::Quoted;
        let word = self.peek().text.to_ascii_uppercase();
        let call_next = self.peek_at(1).is_symbol("(");
        if !quoted && keywords::NILADIC.contains(&word.as_str()) && !call_next {
            let name = self.any_word();
            let mut function = function(ObjectName::from(vec![name]), Vec::new());
            function.args = FunctionArguments::None;
            return Ok(Expr::Function(function));
        }
        if call_next && !quoted {
            if !self.peek_is_name() && !keywords::may_be_called(&word) {
                return Err(self.unexpected("an expression"));
            }
            return self.call(&word);
        }
        if !self.peek_is_name() {
            return Err(self.unexpected("an expression"));
        }
        let mut parts = vec![self.ident()?];
        while self.peek_symbol(".") && self.is_name_at(1) {
            self.skip(1);
            parts.push(self.ident()?);
        }
        if self.peek_symbol("(") {
            return self.generic_call(ObjectName::from(parts));
        }
        Ok(match parts.pop() {
            Some(only) if parts.is_empty() => Expr::Identifier(only),
            Some(last) => {
                parts.push(last);
                Expr::CompoundIdentifier(parts)
            }
            None => return Err(self.unexpected("an expression")),
        })
    }

    /// `TABLE t` as an argument: the table's rows.
    pub(super) fn table_query(&mut self) -> Result<Query> {
        self.expect_word("TABLE")?;
        let body: SetExpr = self.explicit_table()?;
        Ok(plain_query(body))
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

fn like(negated: bool, name: &'static str) -> Infix {
    Infix::Like { negated, name }
}

fn unary(op: UnaryOperator, expr: Expr) -> Expr {
    Expr::UnaryOp {
        op,
        expr: Box::new(expr),
    }
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    if negated {
        unary(UnaryOperator::Not, expr)
    } else {
        expr
    }
}

fn cast(kind: CastKind, expr: Expr, data_type: AstType) -> Expr {
    Expr::Cast {
        kind,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

fn ast_type_named(name: &str) -> AstType {
    AstType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new())
}

fn value(value: Value, at: Span) -> Expr {
    Expr::Value(ValueWithSpan {
        value,
        span: span::to_ast(at),
    })
}

/// A string literal that is not in the text: a marker of a special call form.
pub(super) fn text(marker: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(marker.into()).with_empty_span())
}

/// A call of the function `name`.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    call_of(Ident::new(name), args)
}

pub(super) fn call_of(name: Ident, args: Vec<Expr>) -> Expr {
    Expr::Function(function(ObjectName::from(vec![name]), args))
}

pub(super) fn function(name: ObjectName, args: Vec<Expr>) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args
                .into_iter()
                .map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e)))
                .collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

fn upper(mut name: Ident) -> Ident {
    name.value.make_ascii_uppercase();
    name
}

fn is_row_of_two(function: &Function) -> bool {
    function.name.to_string() == "ROW"
        && matches!(&function.args, FunctionArguments::List(list) if list.args.len() == 2)
}

fn exprs_of(function: Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = function.args else {
        return Vec::new();
    };
    let expr = |arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    };
    list.args.into_iter().filter_map(expr).collect()
}
