//! Functions that choose among their arguments or tell something about them.

use arrow::array::{Array, ArrayRef, make_array};
use arrow::compute::is_not_null;
use arrow::compute::kernels::cmp;
use arrow::compute::kernels::zip::zip;
use datafusion::common::ScalarValue;

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
    untyped_null,
};
use super::kernel::{Bool, Call, Text, collect, columns, constant};
use super::signature::{Param, Returns, any_nullable};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::coerce::common_argument_type;
use crate::types::parse;
use crate::types::{DataType, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "GREATEST",
        "GREATEST(x [, ...])",
        "The largest of the arguments; NULL if one is NULL.",
        Custom(resolve_extreme),
        |call| Ok(extreme(call, true)),
    )
    .null_from(0)
    .example("GREATEST(1, 5, 3)", "5"),
    Builtin::new(
        "LEAST",
        "LEAST(x [, ...])",
        "The smallest of the arguments; NULL if one is NULL.",
        Custom(resolve_extreme),
        |call| Ok(extreme(call, false)),
    )
    .null_from(0)
    .example("LEAST(1, 5, 3)", "1"),
    Builtin::new(
        "IFNULL",
        "IFNULL(x, default)",
        "x, or the default if it is NULL.",
        Custom(resolve_ifnull),
        |_| {
            Ok(columns(|c, _| {
                let (x, default) = (c.array(0)?, c.array(1)?);
                Ok(zip(&is_not_null(&x)?, &x, &default)?)
            }))
        },
    )
    .null_from(0)
    .example("IFNULL(CAST(NULL AS INT), 5)", "5"),
    is_kind(
        "IS_ALPHA",
        "IS_ALPHA(s STRING)",
        "Whether all characters are letters.",
        |call| is_text(call, |_| false, |s| all_chars(s, char::is_alphabetic)),
    )
    .example("IS_ALPHA('abc')", "true"),
    is_kind(
        "IS_DIGIT",
        "IS_DIGIT(s STRING)",
        "Whether all characters are digits.",
        |call| is_text(call, TypeKind::is_integer, |s| all_chars(s, is_digit)),
    )
    .example("IS_DIGIT('12')", "true"),
    is_kind(
        "IS_DECIMAL",
        "IS_DECIMAL(s STRING)",
        "Whether the text is a number.",
        |call| {
            is_text(
                call,
                |kind| !matches!(kind, TypeKind::Decimal(..)),
                |s| all_chars(s, is_digit) || parse::double(s).is_some(),
            )
        },
    )
    .example("IS_DECIMAL('1.5')", "true"),
    Builtin::new(
        "TYPEOF",
        "TYPEOF(x [, force_serializable BOOLEAN])",
        "The name of the argument's type.",
        Custom(|builtin, args| {
            let types = args.iter().map(|a| a.data_type.clone()).collect();
            match args {
                [_] => {}
                // the flag says how the name is made, for all rows
                [
                    _,
                    Arg {
                        data_type,
                        literal: Some(flag),
                    },
                ] if data_type.kind == TypeKind::Boolean && !flag.is_null() => {}
                [_, _] => return Err(builtin.refuse_types(args)),
                _ => return Err(builtin.refuse_count(args)),
            }
            Ok(Signature {
                args: types,
                returns: TypeKind::STRING.nullable(),
            })
        }),
        |call| {
            let name = call.args[0].data_type.to_string();
            Ok(constant(ScalarValue::Utf8(Some(name))))
        },
    )
    .null_from(0)
    .example("TYPEOF(1)", "INT NOT NULL"),
];

const fn is_kind(
    name: &'static str,
    signature: &'static str,
    summary: &'static str,
    prepare: fn(&Call<'_>) -> Result<Kernel>,
) -> Builtin {
    Builtin::new(
        name,
        signature,
        summary,
        Forms(
            &[&[Param::Text], &[Param::Numeric]],
            Returns::NotNull(TypeKind::Boolean),
        ),
        prepare,
    )
}

/// A test of texts; of a number the type alone decides.
fn is_text(
    call: &Call<'_>,
    number: fn(&TypeKind) -> bool,
    text: fn(&str) -> bool,
) -> Result<Kernel> {
    let kind = call.kind(0);
    if !kind.is_string() {
        return Ok(constant(ScalarValue::Boolean(Some(number(kind)))));
    }
    let to = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let s = c.column::<Text>(0)?;
        collect::<Bool>(c.rows, None, &to, |i| Ok(Some(s.get(i).is_some_and(text))))
    }))
}

fn all_chars(s: &str, test: fn(char) -> bool) -> bool {
    !s.is_empty() && s.chars().all(test)
}

/// `Character.isDigit`: a decimal digit of any script. Scripts have their digits in blocks of ten.
fn is_digit(c: char) -> bool {
    const ZEROS: [u32; 37] = [
        0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
        0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90,
        0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0,
        0xFF10,
    ];
    let c = u32::from(c);
    ZEROS.iter().any(|zero| (*zero..zero + 10).contains(&c))
}

fn common(builtin: &Builtin, args: &[Arg]) -> Result<DataType> {
    let types: Vec<_> = args.iter().map(|a| &a.data_type).collect();
    common_argument_type(&types).ok_or_else(|| builtin.refuse_types(args))
}

/// Every argument cast to `kind`, each as nullable as it was.
fn cast_all(args: &[Arg], kind: &TypeKind) -> Vec<DataType> {
    args.iter()
        .map(|a| kind.clone().with_nullable(a.data_type.nullable))
        .collect()
}

fn resolve_extreme(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.is_empty() {
        return Err(builtin.refuse_count(args));
    }
    if args.iter().any(|a| a.data_type.kind == TypeKind::Null) {
        return Err(untyped_null());
    }
    let common = match common(builtin, args) {
        Ok(common) => common,
        Err(error) => {
            let first = &args[0].data_type;
            let other = args
                .iter()
                .map(|a| &a.data_type)
                .find(|t| t.kind != first.kind);
            return Err(match other {
                Some(other) => Error::plan(format!(
                    "All types in a comparison should support both 'EQUALS' and 'ORDER' comparison with each other. Can not compare {first} with {other}"
                )),
                None => error,
            });
        }
    };
    if !is_ordered(&common.kind) {
        return Err(Error::plan(format!(
            "Comparable type expected, but was '{common}'"
        )));
    }
    let types = cast_all(args, &common.kind);
    let nullable = any_nullable(&types);
    Ok(Signature {
        args: types,
        returns: common.kind.with_nullable(nullable),
    })
}

/// Whether values of the type have an order.
pub(super) fn is_ordered(kind: &TypeKind) -> bool {
    kind.is_numeric()
        || kind.is_string()
        || kind.is_binary()
        || kind.is_temporal()
        || kind.is_interval()
        || matches!(kind, TypeKind::Boolean | TypeKind::Null)
}

fn extreme(call: &Call<'_>, greatest: bool) -> Kernel {
    let count = call.args.len();
    columns(move |c, _| {
        let mut best = c.array(0)?;
        for i in 1..count {
            let next = c.array(i)?;
            let wins = if greatest {
                cmp::gt(&next, &best)?
            } else {
                cmp::lt(&next, &best)?
            };
            best = zip(&wins, &next, &best)?;
        }
        with_nulls(best, c.nulls())
    })
}

/// `array` with these rows NULL.
fn with_nulls(array: ArrayRef, nulls: Option<arrow::buffer::NullBuffer>) -> Result<ArrayRef> {
    if array.data_type().is_null() {
        return Ok(array);
    }
    let data = array.to_data().into_builder().nulls(nulls).build()?;
    Ok(make_array(data))
}

fn resolve_ifnull(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [x, default] = args else {
        return Err(builtin.refuse_count(args));
    };
    if !x.data_type.nullable {
        // The default is never needed.
        return Ok(Signature {
            args: args.iter().map(|_| x.data_type.clone()).collect(),
            returns: x.data_type.clone(),
        });
    }
    let common = common(builtin, args)?;
    Ok(Signature {
        args: cast_all(args, &common.kind),
        returns: common.kind.with_nullable(default.data_type.nullable),
    })
}

#[cfg(test)]
mod tests {
    use crate::functions::testing::{args, call, check, check_type, null};
    use crate::types::TypeKind;

    #[test]
    fn extremes_are_null_with_a_null() {
        check("GREATEST", args![1, 5, 3], "5");
        check("LEAST", args!["b", "aa", "c"], "aa");
        check("GREATEST", args![1, null(TypeKind::Int)], "NULL");
        check_type("GREATEST", args![1, 2i64], "BIGINT NOT NULL");
        check("GREATEST", args![f64::NAN, 1.0], "NaN");
        assert!(call("GREATEST", args![1, "a"]).is_err());
    }

    #[test]
    fn ifnull_is_not_null_with_a_default() {
        check("IFNULL", args![null(TypeKind::Int), 5], "5");
        check_type("IFNULL", args![null(TypeKind::Int), 5], "INT NOT NULL");
        check_type(
            "IFNULL",
            args![null(TypeKind::Int), 5i64],
            "BIGINT NOT NULL",
        );
    }

    #[test]
    fn kinds_of_text() {
        for (text, alpha, digit, decimal) in [
            ("abc", "true", "false", "false"),
            ("12", "false", "true", "true"),
            ("-1.5", "false", "false", "true"),
            ("", "false", "false", "false"),
            (" 1", "false", "false", "true"),
            ("٣", "false", "true", "true"),
            ("NaN", "true", "false", "true"),
            ("1_0", "false", "false", "false"),
        ] {
            check("IS_ALPHA", args![text], alpha);
            check("IS_DIGIT", args![text], digit);
            check("IS_DECIMAL", args![text], decimal);
        }
        check("IS_DECIMAL", args![1.5], "true");
        check("IS_DIGIT", args![null(TypeKind::STRING)], "false");
    }

    #[test]
    fn typeof_shows_the_summary() {
        check("TYPEOF", args!["abc"], "CHAR(3) NOT NULL");
    }
}
