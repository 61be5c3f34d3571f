//! Functions on numbers. Those of analysis compute in `DOUBLE`, as Java's `Math` does.

use std::f64::consts;

use datafusion::common::ScalarValue;

use super::Kernel;
use super::builtin::{Builtin, Resolve::Forms};
use super::kernel::{
    BigInt, Call, Decimal, Double, Float, Int, SmallInt, Text, TinyInt, arrays, collect_bytes,
    constant,
};
use super::signature::{Param, Returns};
use crate::error::Result;
use crate::types::TypeKind;

/// A function of one `DOUBLE`.
macro_rules! double {
    ($name:literal, $summary:literal, $example:literal = $result:literal, $f:expr) => {
        Builtin::new(
            $name,
            concat!($name, "(x NUMERIC)"),
            $summary,
            Forms(&[&[Param::Double]], Returns::Strict(TypeKind::Double)),
            |call| Ok(call.map1::<Double, Double, f64>($f)),
        )
        .example($example, $result)
    };
}

/// A function of two `DOUBLE`s.
macro_rules! double2 {
    ($name:literal($a:literal), $summary:literal, $example:literal = $result:literal, $f:expr) => {
        Builtin::new(
            $name,
            concat!($name, "(", $a, ")"),
            $summary,
            Forms(
                &[&[Param::Double, Param::Double]],
                Returns::Strict(TypeKind::Double),
            ),
            |call| Ok(call.map2::<Double, Double, Double, f64>($f)),
        )
        .example($example, $result)
    };
}

/// A constant.
macro_rules! constant_double {
    ($name:literal, $summary:literal, $result:literal, $value:expr) => {
        Builtin::new(
            $name,
            concat!($name, "()"),
            $summary,
            Forms(&[&[]], Returns::NotNull(TypeKind::Double)),
            |_| Ok(constant(ScalarValue::Float64(Some($value)))),
        )
        .example(concat!($name, "()"), $result)
    };
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    double!("EXP", "e to the power of x.", "EXP(0)" = "1.0", f64::exp),
    double!("LN", "The natural logarithm.", "LN(1)" = "0.0", f64::ln),
    double!(
        "LOG10",
        "The logarithm to base 10.",
        "LOG10(100)" = "2.0",
        f64::log10
    ),
    double!("LOG2", "The logarithm to base 2.", "LOG2(8)" = "3.0", |x| x
        .ln()
        / 2f64.ln()),
    double!("SQRT", "The square root.", "SQRT(4)" = "2.0", f64::sqrt),
    double!(
        "SIN",
        "The sine of an angle in radians.",
        "SIN(0)" = "0.0",
        f64::sin
    ),
    double!("SINH", "The hyperbolic sine.", "SINH(0)" = "0.0", f64::sinh),
    double!(
        "COS",
        "The cosine of an angle in radians.",
        "COS(0)" = "1.0",
        f64::cos
    ),
    double!(
        "COSH",
        "The hyperbolic cosine.",
        "COSH(0)" = "1.0",
        f64::cosh
    ),
    double!(
        "TAN",
        "The tangent of an angle in radians.",
        "TAN(0)" = "0.0",
        f64::tan
    ),
    double!(
        "TANH",
        "The hyperbolic tangent.",
        "TANH(0)" = "0.0",
        f64::tanh
    ),
    double!(
        "COT",
        "The cotangent of an angle in radians.",
        "COT(1)" = "0.6420926159343306",
        |x| 1.0 / x.tan()
    ),
    double!(
        "ASIN",
        "The arc sine, in radians.",
        "ASIN(0)" = "0.0",
        f64::asin
    ),
    double!(
        "ACOS",
        "The arc cosine, in radians.",
        "ACOS(1)" = "0.0",
        f64::acos
    ),
    double!(
        "ATAN",
        "The arc tangent, in radians.",
        "ATAN(0)" = "0.0",
        f64::atan
    ),
    double!(
        "DEGREES",
        "Radians as degrees.",
        "DEGREES(0)" = "0.0",
        f64::to_degrees
    ),
    double!(
        "RADIANS",
        "Degrees as radians.",
        "RADIANS(180)" = "3.141592653589793",
        |x| { x * (consts::PI / 180.0) }
    ),
    double2!(
        "ATAN2"("y NUMERIC, x NUMERIC"),
        "The angle of the point (x, y), in radians.",
        "ATAN2(1, 1)" = "0.7853981633974483",
        f64::atan2
    ),
    double2!(
        "POWER"("x NUMERIC, y NUMERIC"),
        "x to the power of y.",
        "POWER(2, 10)" = "1024.0",
        power
    ),
    Builtin::new(
        "LOG",
        "LOG(x NUMERIC)\nLOG(base NUMERIC, x NUMERIC)",
        "The logarithm to a base, e by default.",
        Forms(
            &[&[Param::Double], &[Param::Double, Param::Double]],
            Returns::Strict(TypeKind::Double),
        ),
        |call| {
            Ok(if call.args.len() == 1 {
                call.map1::<Double, Double, _>(f64::ln)
            } else {
                call.map2::<Double, Double, Double, _>(|base: f64, x: f64| x.ln() / base.ln())
            })
        },
    )
    .example("LOG(2, 16)", "4.0"),
    constant_double!(
        "PI",
        "The ratio of a circle's circumference to its diameter.",
        "3.141592653589793",
        consts::PI
    ),
    constant_double!(
        "E",
        "The base of the natural logarithm.",
        "2.718281828459045",
        consts::E
    ),
    Builtin::new(
        "ABS",
        "ABS(x NUMERIC)",
        "The absolute value.",
        Forms(&[&[Param::Numeric]], Returns::First),
        |call| {
            Ok(match call.kind(0) {
                TypeKind::TinyInt => call.map1::<TinyInt, TinyInt, _>(i8::wrapping_abs),
                TypeKind::SmallInt => call.map1::<SmallInt, SmallInt, _>(i16::wrapping_abs),
                TypeKind::BigInt => call.map1::<BigInt, BigInt, _>(i64::wrapping_abs),
                TypeKind::Float => call.map1::<Float, Float, _>(f32::abs),
                TypeKind::Double => call.map1::<Double, Double, _>(f64::abs),
                TypeKind::Decimal(..) => call.map1::<Decimal, Decimal, _>(i128::wrapping_abs),
                _ => call.map1::<Int, Int, _>(i32::wrapping_abs),
            })
        },
    )
    .example("ABS(-1.5)", "1.5"),
    Builtin::new(
        "SIGN",
        "SIGN(x NUMERIC)",
        "-1, 0 or 1 in the type of x.",
        Forms(&[&[Param::Numeric]], Returns::First),
        prepare_sign,
    )
    .example("SIGN(-1.5)", "-1.0"),
    Builtin::new(
        "BIN",
        "BIN(x INTEGER)",
        "The binary digits; those of the 64 bit two's complement if it is negative.",
        Forms(&[&[Param::BigInt]], Returns::Strict(TypeKind::STRING)),
        |call| {
            Ok(call.text1::<BigInt, _>(|x, out| {
                use std::fmt::Write as _;
                let _ = write!(out, "{x:b}");
            }))
        },
    )
    .example("BIN(5)", "101"),
    Builtin::new(
        "HEX",
        "HEX(x INTEGER)\nHEX(s STRING)",
        "The hexadecimal digits of a number or of the UTF-8 bytes of a text, in upper case.",
        Forms(
            &[&[Param::BigInt], &[Param::Text]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| {
            use std::fmt::Write as _;
            Ok(if call.kind(0).is_string() {
                call.text1::<Text, _>(|s, out| {
                    for byte in s.bytes() {
                        let _ = write!(out, "{byte:02X}");
                    }
                })
            } else {
                call.text1::<BigInt, _>(|x, out| {
                    let _ = write!(out, "{x:X}");
                })
            })
        },
    )
    .example("HEX(255)", "FF"),
    Builtin::new(
        "UNHEX",
        "UNHEX(s STRING)",
        "The bytes of hexadecimal digits; NULL if there is another character.",
        Forms(&[&[Param::Text]], Returns::Nullable(TypeKind::BYTES)),
        |_| {
            Ok(arrays(|c, _| {
                let s = c.column::<Text>(0)?;
                collect_bytes(c.rows, c.nulls().as_ref(), |i, out| {
                    Ok(unhex(s.value(i).as_bytes(), out))
                })
            }))
        },
    )
    .example("DECODE(UNHEX('466C696E6B'), 'UTF-8')", "Flink"),
];

/// `Math.pow`: NaN where C's `pow` gives 1.
fn power(x: f64, y: f64) -> f64 {
    if y.is_nan() || (x.abs() == 1.0 && y.is_infinite()) {
        return f64::NAN;
    }
    x.powf(y)
}

fn prepare_sign(call: &Call<'_>) -> Result<Kernel> {
    Ok(match *call.kind(0) {
        TypeKind::TinyInt => call.map1::<TinyInt, TinyInt, _>(i8::signum),
        TypeKind::SmallInt => call.map1::<SmallInt, SmallInt, _>(i16::signum),
        TypeKind::BigInt => call.map1::<BigInt, BigInt, _>(i64::signum),
        TypeKind::Float => call.map1::<Float, Float, _>(|x| if x == 0.0 { x } else { x.signum() }),
        TypeKind::Double => {
            call.map1::<Double, Double, _>(|x| if x == 0.0 { x } else { x.signum() })
        }
        TypeKind::Decimal(precision, scale) => {
            let one = 10i128.pow(u32::from(scale));
            let fits = precision > scale;
            call.map1::<Decimal, Decimal, _>(move |x| match x.signum() {
                0 => Some(0),
                sign => fits.then_some(sign * one),
            })
        }
        _ => call.map1::<Int, Int, _>(i32::signum),
    })
}

/// Pairs of digits as bytes. The first of an odd number of digits is not looked at but for being one:
/// its byte is 0.
fn unhex(digits: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let (first, pairs) = digits.split_at(digits.len() % 2);
    for b in first {
        digit(*b)?;
        out.push(0);
    }
    for pair in pairs.chunks_exact(2) {
        out.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::functions::testing::{args, check, check_type};

    #[test]
    fn powers_and_logarithms_are_javas() {
        check("POWER", args![2, 10], "1024.0");
        check("POWER", args![1.0, f64::NAN], "NaN");
        check("POWER", args![1.0, f64::INFINITY], "NaN");
        check("POWER", args![0, -1], "inf");
        check("LOG2", args![8], "3.0");
        check("LOG", args![10, 1000], "2.9999999999999996");
        check("LN", args![-1], "NaN");
    }

    #[test]
    fn signs_keep_the_type() {
        check("ABS", args![i32::MIN], "-2147483648");
        check("SIGN", args![-0.0], "-0.0");
        check("SIGN", args![-7], "-1");
        check_type("SIGN", args![7i64], "BIGINT NOT NULL");
    }

    #[test]
    fn digits_to_other_bases() {
        check("HEX", args![-1], "FFFFFFFFFFFFFFFF");
        check("HEX", args!["AbcÜ"], "416263C39C");
        check("BIN", args![5], "101");
        check("UNHEX", args!["4a4B"], "4a4b");
        check("UNHEX", args!["abc"], "00bc");
        check("UNHEX", args!["z12"], "NULL");
        check("UNHEX", args!["zz"], "NULL");
    }
}
