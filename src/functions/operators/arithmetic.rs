//! Which arithmetic operator takes which types, and the type of the result.

use super::{decimal, number, refuse, temporal};
use crate::error::{Error, Result};
use crate::functions::builtin::untyped_null;
use crate::functions::{Arg, Environment, Kernel, ScalarFunction, Signature};
use crate::types::cast::{Cast, CastMode};
use crate::types::coerce::common_type;
use crate::types::parse::IntervalField;
use crate::types::{DataType, TypeKind};

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
}

impl Operator {
    fn forms(self) -> &'static str {
        match self {
            Self::Plus => {
                "'<NUMERIC> + <NUMERIC>' '<DATETIME_INTERVAL> + <DATETIME_INTERVAL>' '<DATETIME> + <DATETIME_INTERVAL>' '<DATETIME_INTERVAL> + <DATETIME>'"
            }
            Self::Minus => {
                "'<NUMERIC> - <NUMERIC>' '<DATETIME_INTERVAL> - <DATETIME_INTERVAL>' '<DATETIME> - <DATETIME_INTERVAL>' '-<NUMERIC>' '-<DATETIME_INTERVAL>'"
            }
            Self::Times => {
                "'<NUMERIC> * <NUMERIC>' '<DATETIME_INTERVAL> * <INTEGER>' '<INTEGER> * <DATETIME_INTERVAL>'"
            }
            Self::Divide => "'<NUMERIC> / <NUMERIC>'",
            Self::Modulo => "'MOD(<EXACT_NUMERIC>, <EXACT_NUMERIC>)'",
        }
    }
}

/// `+`, `-`, `*`, `/`, `%`, `MOD`; `+` and `-` also of one argument.
#[derive(Debug)]
pub(super) struct Arithmetic {
    pub(super) name: &'static str,
    pub(super) operator: Operator,
}

impl Arithmetic {
    fn resolve_two(&self, left: &DataType, right: &DataType) -> Option<Signature> {
        use TypeKind as T;
        let (l, r) = (&left.kind, &right.kind);
        let nullable = left.nullable || right.nullable;
        let typed = |args: [TypeKind; 2], returns: TypeKind| {
            let [a, b] = args;
            Some(Signature {
                args: vec![
                    a.with_nullable(left.nullable),
                    b.with_nullable(right.nullable),
                ],
                returns: returns.with_nullable(nullable),
            })
        };
        let as_is = |returns: TypeKind| typed([l.clone(), r.clone()], returns);
        if l.is_numeric() && r.is_numeric() {
            let common = common_type(&[left, right])?.kind;
            if common.is_approximate() {
                let modulo = self.operator == Operator::Modulo;
                return (!modulo)
                    .then(|| typed([common.clone(), common.clone()], common.clone()))?;
            }
            if common.is_integer() {
                let returns = match self.operator {
                    Operator::Modulo => r.clone(),
                    _ => common.clone(),
                };
                return typed([common.clone(), common], returns);
            }
            let (a, b) = (l.as_decimal()?, r.as_decimal()?);
            if self.operator == Operator::Modulo && a.1 == 0 && b.1 == 0 {
                // whole numbers: the type of the divisor, as of integers
                return typed([T::Decimal(a.0, 0), T::Decimal(b.0, 0)], r.clone());
            }
            let (p, s) = decimal::result_type(self.operator, a, b);
            return typed(
                [T::Decimal(a.0, a.1), T::Decimal(b.0, b.1)],
                T::Decimal(p, s),
            );
        }
        match self.operator {
            Operator::Plus if l.is_temporal() && r.is_interval() => as_is(l.clone()),
            Operator::Plus if l.is_interval() && r.is_temporal() => as_is(r.clone()),
            Operator::Minus if l.is_temporal() && r.is_interval() => as_is(l.clone()),
            Operator::Plus | Operator::Minus if l.is_interval() && l == r => as_is(l.clone()),
            Operator::Times if l.is_interval() && r.is_integer() => {
                typed([l.clone(), T::BigInt], l.clone())
            }
            Operator::Times if l.is_integer() && r.is_interval() => {
                typed([T::BigInt, r.clone()], r.clone())
            }
            _ => None,
        }
    }
}

impl ScalarFunction for Arithmetic {
    fn name(&self) -> &str {
        self.name
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        let found = match args {
            [input] => {
                let kind = &input.data_type.kind;
                let fits = kind.is_numeric() || kind.is_interval();
                let unary = matches!(self.operator, Operator::Plus | Operator::Minus);
                (fits && unary).then(|| Signature {
                    args: vec![input.data_type.clone()],
                    returns: input.data_type.clone(),
                })
            }
            [left, right] => self.resolve_two(&left.data_type, &right.data_type),
            _ => None,
        };
        found.ok_or_else(|| match args {
            args if args.iter().any(|a| a.data_type.kind == TypeKind::Null) => untyped_null(),
            [l, r]
                if self.operator == Operator::Minus
                    && l.data_type.kind.is_temporal()
                    && r.data_type.kind.is_temporal() =>
            {
                refuse(self.name, args, self.operator.forms())
                    .hint("use TIMESTAMPDIFF(unit, from, to), or (a - b) DAY")
            }
            args => refuse(self.name, args, self.operator.forms()),
        })
    }

    fn prepare(&self, args: &[Arg], returns: &DataType, env: &Environment) -> Result<Kernel> {
        let unsupported =
            || Error::internal(format!("'{}' has no kernel for these types", self.name));
        match args {
            [input] => {
                let negated = self.operator == Operator::Minus;
                number::sign(negated, &input.data_type.kind).ok_or_else(unsupported)
            }
            [left, right] => {
                let (l, r) = (&left.data_type.kind, &right.data_type.kind);
                if l.is_interval() || r.is_interval() {
                    return temporal::prepare(self.operator, l, r, returns).ok_or_else(unsupported);
                }
                if let (TypeKind::Decimal(..), TypeKind::Decimal(..), TypeKind::Decimal(p, s)) =
                    (l, r, &returns.kind)
                {
                    return decimal::prepare(self.operator, l, r, (*p, *s)).ok_or_else(unsupported);
                }
                let constant = left.literal.is_some() && right.literal.is_some();
                let kernel = match (l, r) {
                    (TypeKind::Decimal(..), TypeKind::Decimal(p, s)) => {
                        decimal::prepare(self.operator, l, r, (*p, *s))
                    }
                    _ => number::prepare(self.operator, l, constant),
                };
                let kernel = kernel.ok_or_else(unsupported)?;
                if *l == returns.kind {
                    return Ok(kernel);
                }
                // A remainder has the type of the divisor, into which it fits.
                let made = if l.is_integer() { left } else { right };
                let cast = Cast::new(&made.data_type, returns, CastMode::Strict, env)?;
                Ok(number::converted(kernel, cast))
            }
            _ => Err(unsupported()),
        }
    }

    fn may_fail(&self) -> bool {
        matches!(self.operator, Operator::Divide | Operator::Modulo)
    }

    fn may_fail_on(&self, args: &[Arg]) -> bool {
        match args {
            [_, divisor] if self.may_fail() => match &divisor.literal {
                Some(value) => value.is_null() || is_zero(value),
                None => !divisor.data_type.kind.is_approximate(),
            },
            _ => false,
        }
    }
}

fn is_zero(value: &datafusion::common::ScalarValue) -> bool {
    use datafusion::common::ScalarValue as S;
    match value {
        S::Int8(Some(v)) => *v == 0,
        S::Int16(Some(v)) => *v == 0,
        S::Int32(Some(v)) => *v == 0,
        S::Int64(Some(v)) => *v == 0,
        S::Decimal128(Some(v), ..) => *v == 0,
        _ => true,
    }
}

/// `MINUS_DATE(a, b, 'DAY')`, which `(a - b) DAY` is read as: the interval between two points in time,
/// in whole months for YEAR, QUARTER and MONTH.
#[derive(Debug)]
pub(super) struct MinusDate;

fn unit_of(arg: &Arg) -> Option<IntervalField> {
    match &arg.literal {
        // Of `DAY TO SECOND` the first field decides.
        Some(datafusion::common::ScalarValue::Utf8(Some(name))) => {
            IntervalField::from_name(name.split(' ').next().unwrap_or(name))
        }
        _ => None,
    }
}

impl ScalarFunction for MinusDate {
    fn name(&self) -> &'static str {
        "MINUS_DATE"
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        let [left, right, unit] = args else {
            return Err(refuse(
                self.name(),
                args,
                "'(<DATETIME> - <DATETIME>) <UNIT>'",
            ));
        };
        let field = unit_of(unit)
            .ok_or_else(|| Error::plan("the unit of an interval must be YEAR, MONTH, DAY, ..."))?;
        let (l, r) = (&left.data_type, &right.data_type);
        let same = std::mem::discriminant(&l.kind) == std::mem::discriminant(&r.kind);
        let common = common_type(&[l, r]).filter(|c| same && c.kind.is_temporal());
        let Some(common) = common else {
            return Err(
                refuse(self.name(), args, "'(<DATETIME> - <DATETIME>) <UNIT>'")
                    .hint("both must have the same type"),
            );
        };
        let returns = if field <= IntervalField::Month {
            TypeKind::IntervalYearMonth
        } else {
            TypeKind::IntervalDayTime
        };
        Ok(Signature {
            args: vec![
                common.kind.clone().with_nullable(l.nullable),
                common.kind.clone().with_nullable(r.nullable),
                unit.data_type.clone(),
            ],
            returns: returns.with_nullable(common.nullable),
        })
    }

    fn prepare(&self, args: &[Arg], returns: &DataType, _: &Environment) -> Result<Kernel> {
        let months = returns.kind == TypeKind::IntervalYearMonth;
        let kind = args.first().map(|arg| &arg.data_type.kind);
        kind.and_then(|kind| temporal::difference(kind, months))
            .ok_or_else(|| Error::internal("MINUS_DATE has no kernel for these types"))
    }
}
