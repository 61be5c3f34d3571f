//! Arithmetic on decimals: exact, rounded half up to the scale of the result; NULL when that overflows.

use arrow::datatypes::{DataType as ArrowType, Decimal128Type};
use num_bigint::BigInt;

use super::arithmetic::Operator;
use super::number::division_by_zero;
use super::{kernel, try_zip_with, zip_with};
use crate::error::Result;
use crate::functions::Kernel;
use crate::types::TypeKind;

/// Greatest precision.
const MAX: u8 = 38;

/// Precision and scale of the result, by the rules of SQL Server as Flink has adopted them.
pub(super) fn result_type(operator: Operator, (p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> (u8, u8) {
    let (precision, scale) = match operator {
        Operator::Plus | Operator::Minus => {
            let scale = s1.max(s2);
            ((p1 - s1).max(p2 - s2) + scale + 1, scale)
        }
        Operator::Times => (p1 + p2 + 1, s1 + s2),
        Operator::Divide => {
            let scale = (s1 + p2 + 1).max(6);
            (p1 - s1 + s2 + scale, scale)
        }
        Operator::Modulo => {
            let scale = s1.max(s2);
            ((p1 - s1).min(p2 - s2) + scale, scale)
        }
    };
    if precision <= MAX {
        return (precision, scale);
    }
    // Digits before the point matter more, but up to six after it are kept.
    let whole = precision - scale;
    let least = scale.min(6);
    (MAX, MAX.saturating_sub(whole).max(least))
}

/// 10 to the `n`; `None` past 38.
fn power(n: u8) -> Option<i128> {
    10i128.checked_pow(n.into())
}

/// `numerator / denominator`, rounded half up.
fn round(numerator: i128, denominator: i128) -> i128 {
    crate::types::cast::divide_half_up(numerator, denominator)
}

fn big(value: i128, shift: u8) -> BigInt {
    BigInt::from(value) * BigInt::from(10).pow(shift.into())
}

/// `numerator / denominator`, rounded half up, if it has at most 38 digits.
fn round_big(numerator: &BigInt, denominator: &BigInt) -> Option<i128> {
    let quotient = numerator / denominator;
    let remainder = numerator - &quotient * denominator;
    let twice = remainder.magnitude() * 2u8;
    let up = i128::from(twice >= *denominator.magnitude());
    let quotient = i128::try_from(quotient).ok()?;
    let positive = (numerator.sign() == num_bigint::Sign::Minus)
        == (denominator.sign() == num_bigint::Sign::Minus);
    quotient.checked_add(if positive { up } else { -up })
}

/// The kernel of an operator on two decimals.
pub(super) fn prepare(
    operator: Operator,
    left: &TypeKind,
    right: &TypeKind,
    (p, s): (u8, u8),
) -> Option<Kernel> {
    let ((p1, s1), (p2, s2)) = (left.as_decimal()?, right.as_decimal()?);
    let arrow = ArrowType::Decimal128(p, s.cast_signed());
    let limit = power(p)?;
    let fit = move |value: Option<i128>| value.filter(|v| v.abs() < limit);
    Some(match operator {
        Operator::Plus | Operator::Minus => {
            let scale = s1.max(s2);
            let (up1, up2) = (scale - s1, scale - s2);
            let (f1, f2) = (power(up1)?, power(up2)?);
            let minus = operator == Operator::Minus;
            // What lies under a NULL may be any number.
            let add = move |l: i128, r: i128| {
                let (l, r) = (l.wrapping_mul(f1), r.wrapping_mul(f2));
                if minus {
                    l.wrapping_sub(r)
                } else {
                    l.wrapping_add(r)
                }
            };
            if scale == s && (p1 - s1).max(p2 - s2) + scale < MAX {
                return Some(kernel::<Decimal128Type, Decimal128Type, Decimal128Type>(
                    arrow,
                    move |left, right| zip_with(left, right, add),
                ));
            }
            let down = power(scale - s)?;
            kernel::<Decimal128Type, Decimal128Type, Decimal128Type>(arrow, move |left, right| {
                try_zip_with(left, right, |l, r| {
                    let exact = || {
                        let (l, r) = (l.checked_mul(f1)?, r.checked_mul(f2)?);
                        let r = if minus { r.checked_neg()? } else { r };
                        l.checked_add(r).map(|sum| round(sum, down))
                    };
                    let value = exact().or_else(|| {
                        let (l, r) = (big(l, up1), big(r, up2));
                        let sum = if minus { l - r } else { l + r };
                        round_big(&sum, &BigInt::from(down))
                    });
                    Ok(fit(value))
                })
            })
        }
        Operator::Times => {
            if p1 + p2 < MAX {
                return Some(kernel::<Decimal128Type, Decimal128Type, Decimal128Type>(
                    arrow,
                    |left, right| zip_with(left, right, i128::wrapping_mul),
                ));
            }
            let cut = s1 + s2 - s;
            let down = power(cut);
            kernel::<Decimal128Type, Decimal128Type, Decimal128Type>(arrow, move |left, right| {
                try_zip_with(left, right, |l, r| {
                    let exact = || Some(round(l.checked_mul(r)?, down?));
                    let value = exact()
                        .or_else(|| round_big(&(BigInt::from(l) * BigInt::from(r)), &big(1, cut)));
                    Ok(fit(value))
                })
            })
        }
        Operator::Divide => {
            // The quotient of the unscaled values has scale s1 - s2.
            let (up, down) = if s + s2 >= s1 {
                (s + s2 - s1, 0)
            } else {
                (0, s1 - s - s2)
            };
            let (f_up, f_down) = (power(up), power(down));
            kernel::<Decimal128Type, Decimal128Type, Decimal128Type>(arrow, move |left, right| {
                try_zip_with(left, right, |l, r| {
                    if r == 0 {
                        return Err(division_by_zero());
                    }
                    let exact = || Some(round(l.checked_mul(f_up?)?, r.checked_mul(f_down?)?));
                    let value = exact().or_else(|| round_big(&big(l, up), &big(r, down)));
                    Ok(fit(value))
                })
            })
        }
        Operator::Modulo => {
            let scale = s1.max(s2);
            let (up1, up2) = (scale - s1, scale - s2);
            let (f1, f2) = (power(up1)?, power(up2)?);
            let down = power(scale - s)?;
            let rest = move |l: i128, r: i128| -> Result<Option<i128>> {
                if r == 0 {
                    return Err(division_by_zero());
                }
                let exact = || Some(round(l.checked_mul(f1)? % r.checked_mul(f2)?, down));
                let value = exact()
                    .or_else(|| round_big(&(big(l, up1) % big(r, up2)), &BigInt::from(down)));
                Ok(fit(value))
            };
            kernel::<Decimal128Type, Decimal128Type, Decimal128Type>(arrow, move |left, right| {
                try_zip_with(left, right, rest)
            })
        }
    })
}
