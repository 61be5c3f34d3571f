//! `ROUND`, `TRUNCATE`, `CEIL` and `FLOOR` of numbers.

use super::builtin::{Builtin, Resolve::Custom};
use super::decimal_text::{Rounding, divide_power, round_double};
use super::kernel::{
    BigInt, Call, Decimal, Double, Float, Int, Outcome, Read, SmallInt, TinyInt, Write,
};
use super::signature::{Param, Returns, any_nullable, match_forms};
use super::temporal_floor;
use super::{Arg, Kernel, Signature};
use crate::error::Result;
use crate::types::{DataType, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "ROUND",
        "ROUND(x NUMERIC [, digits INT])",
        "The number with so many digits (none by default) after the point, halves away from zero.",
        Custom(resolve_round),
        |call| Ok(prepare_round(call, Rounding::HalfUp)),
    )
    .example("ROUND(2.345, 2)", "2.35"),
    Builtin::new(
        "TRUNCATE",
        "TRUNCATE(x NUMERIC [, digits INT])",
        "The number cut to so many digits (none by default) after the point.",
        Custom(resolve_round),
        |call| Ok(prepare_round(call, Rounding::Down)),
    )
    .example("TRUNCATE(2.345, 2)", "2.34"),
    CEIL,
    CEIL.alias("CEILING", "CEILING(x NUMERIC)\nCEILING(t TO unit)"),
    Builtin::new(
        "FLOOR",
        "FLOOR(x NUMERIC)\nFLOOR(t TO unit)",
        "The next smaller integer, or the start of the unit that the time lies in.",
        Custom(resolve_whole),
        |call| prepare_whole(call, Rounding::Floor),
    )
    .example("FLOOR(-1.5)", "-2"),
];

const CEIL: Builtin = Builtin::new(
    "CEIL",
    "CEIL(x NUMERIC)\nCEIL(t TO unit)",
    "The next larger integer, or the start of the next unit unless the time is at the start of one.",
    Custom(resolve_whole),
    |call| prepare_whole(call, Rounding::Ceiling),
)
.example("CEIL(1.5)", "2");

fn resolve_round(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    const FORMS: &[&[Param]] = &[&[Param::Numeric], &[Param::Numeric, Param::Int]];
    let mut signature = match_forms(builtin, FORMS, &Returns::First, args)?;
    let TypeKind::Decimal(precision, scale) = signature.returns.kind else {
        return Ok(signature);
    };
    let digits = match args.get(1) {
        None => Some(0),
        Some(digits) => digits.literal.as_ref().and_then(int_literal),
    };
    if let Some(digits) = digits {
        signature.returns.kind = rounded_decimal(precision, scale, digits);
    }
    Ok(signature)
}

/// The value of an integer constant.
pub(super) fn int_literal(value: &datafusion::common::ScalarValue) -> Option<i64> {
    use datafusion::common::ScalarValue;
    match value {
        ScalarValue::Int8(v) => v.map(i64::from),
        ScalarValue::Int16(v) => v.map(i64::from),
        ScalarValue::Int32(v) => v.map(i64::from),
        ScalarValue::Int64(v) => *v,
        _ => None,
    }
}

/// The type of a decimal with `digits` digits after the point: one digit more before it.
fn rounded_decimal(precision: u8, scale: u8, digits: i64) -> TypeKind {
    match u8::try_from(digits.max(0)) {
        Ok(digits) if digits < scale => {
            TypeKind::Decimal((1 + precision - scale + digits).min(38), digits)
        }
        _ => TypeKind::Decimal(precision, scale),
    }
}

fn prepare_round(call: &Call<'_>, rounding: Rounding) -> Kernel {
    match *call.kind(0) {
        TypeKind::TinyInt => with_digits::<TinyInt, TinyInt, _>(call, move |x, n| {
            round_integer(i128::from(x), n, rounding) as i8
        }),
        TypeKind::SmallInt => with_digits::<SmallInt, SmallInt, _>(call, move |x, n| {
            round_integer(i128::from(x), n, rounding) as i16
        }),
        TypeKind::BigInt => with_digits::<BigInt, BigInt, _>(call, move |x, n| {
            round_integer(i128::from(x), n, rounding) as i64
        }),
        TypeKind::Float => with_digits::<Float, Float, _>(call, move |x, n| {
            round_double(f64::from(x), n, rounding) as f32
        }),
        TypeKind::Double => {
            with_digits::<Double, Double, _>(call, move |x, n| round_double(x, n, rounding))
        }
        TypeKind::Decimal(_, scale) => {
            let (precision, to) = call.returns.kind.as_decimal().unwrap_or((38, scale));
            with_digits::<Decimal, Decimal, _>(call, move |x, n| {
                round_decimal(x, scale, n, to, precision, rounding)
            })
        }
        _ => with_digits::<Int, Int, _>(call, move |x, n| {
            round_integer(i128::from(x), n, rounding) as i32
        }),
    }
}

/// A kernel of a number and the optional number of digits.
fn with_digits<A: Read, O: Write, R: Outcome<O::Item>>(
    call: &Call<'_>,
    f: impl Fn(A::Item<'_>, i32) -> R + Send + Sync + 'static,
) -> Kernel {
    if call.args.len() == 2 {
        return call.map2::<A, Int, O, R>(f);
    }
    call.map1::<A, O, R>(move |x| f(x, 0))
}

fn round_integer(x: i128, digits: i32, rounding: Rounding) -> i128 {
    if digits >= 0 {
        return x;
    }
    let digits = digits.unsigned_abs();
    let quotient = divide_power(x, digits, rounding);
    10i128
        .checked_pow(digits)
        .map_or(0, |power| quotient * power)
}

/// A decimal of `scale`, rounded to `digits`, at scale `to`; `None` if it does not fit `precision`.
fn round_decimal(
    x: i128,
    scale: u8,
    digits: i32,
    to: u8,
    precision: u8,
    rounding: Rounding,
) -> Option<i128> {
    let digits = digits.clamp(-100, 100);
    let gone = i32::from(scale) - digits;
    let (value, at) = if gone <= 0 {
        (x, i32::from(scale))
    } else {
        (divide_power(x, gone.unsigned_abs(), rounding), digits)
    };
    let shift = i32::from(to) - at;
    let value = match u32::try_from(shift) {
        Ok(_) if value == 0 => 0,
        Ok(shift) => value.checked_mul(10i128.checked_pow(shift)?)?,
        Err(_) => divide_power(value, shift.unsigned_abs(), Rounding::HalfUp),
    };
    (value.unsigned_abs() < 10u128.pow(u32::from(precision))).then_some(value)
}

fn resolve_whole(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.len() == 2 {
        return temporal_floor::resolve(builtin, args);
    }
    let returns = Returns::By(|args: &[DataType]| {
        let kind = match &args[0].kind {
            TypeKind::Decimal(precision, _) => TypeKind::Decimal(*precision, 0),
            other => other.clone(),
        };
        kind.with_nullable(any_nullable(args))
    });
    match_forms(builtin, &[&[Param::Numeric]], &returns, args)
}

fn prepare_whole(call: &Call<'_>, rounding: Rounding) -> Result<Kernel> {
    if call.args.len() == 2 {
        return temporal_floor::prepare(call, rounding == Rounding::Ceiling);
    }
    let up = rounding == Rounding::Ceiling;
    Ok(match *call.kind(0) {
        TypeKind::Float => {
            call.map1::<Float, Float, _>(move |x| if up { x.ceil() } else { x.floor() })
        }
        TypeKind::Double => {
            call.map1::<Double, Double, _>(move |x| if up { x.ceil() } else { x.floor() })
        }
        TypeKind::Decimal(precision, scale) => {
            let limit = 10i128
                .checked_pow(u32::from(precision))
                .unwrap_or(i128::MAX);
            call.map1::<Decimal, Decimal, _>(move |x| {
                let whole = divide_power(x, u32::from(scale), rounding);
                (whole.abs() < limit).then_some(whole)
            })
        }
        _ => Box::new(|args, _| Ok(args[0].clone())),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use crate::functions::testing::{Value, args, check, check_type};
    use crate::types::TypeKind;

    fn decimal(unscaled: i128, precision: u8, scale: u8) -> Value {
        Value(
            TypeKind::Decimal(precision, scale).not_null(),
            ScalarValue::Decimal128(Some(unscaled), precision, scale as i8),
        )
    }

    #[test]
    fn decimals_round_into_a_narrower_type() {
        let x = decimal(34550, 10, 4);
        check("ROUND", args![&x, 1], "3.5");
        check_type("ROUND", args![&x, 1], "DECIMAL(8, 1) NOT NULL");
        check_type("ROUND", args![&x, -1], "DECIMAL(7, 0) NOT NULL");
        check_type("ROUND", args![&x, 6], "DECIMAL(10, 4) NOT NULL");
        check("ROUND", args![&x, 6], "3.4550");
        check("ROUND", args![decimal(99_999_999, 10, 4), -1], "10000");
        check("TRUNCATE", args![decimal(99_999_999, 10, 4), -2], "9900");
        check(
            "ROUND",
            args![decimal(10i128.pow(38) - 1, 38, 0), -2],
            "NULL",
        );
    }

    #[test]
    fn integers_round_and_wrap() {
        check("ROUND", args![15, -1], "20");
        check("ROUND", args![-15, -1], "-20");
        check("ROUND", args![2_147_483_647, -1], "-2147483646");
        check("ROUND", args![15, -40], "0");
        check("TRUNCATE", args![2_147_483_647, -1], "2147483640");
    }

    #[test]
    fn whole_numbers_of_decimals_keep_the_precision() {
        check("CEIL", args![decimal(-999, 6, 3)], "0");
        check("FLOOR", args![decimal(-1001, 6, 3)], "-2");
        check_type("FLOOR", args![decimal(1, 6, 3)], "DECIMAL(6, 0) NOT NULL");
        check("CEIL", args![-0.5], "-0.0");
        check("CEILING", args![7], "7");
    }
}
