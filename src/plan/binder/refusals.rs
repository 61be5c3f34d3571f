//! Types that do not fit an operator or a clause, refused in Flink's words.

use crate::error::Error;
use crate::expr::{CompareOp, Expr};
use crate::functions::sql_type;
pub(super) use crate::functions::untyped_null;
use crate::types::coerce::Mismatch;
use crate::types::{DataType, TypeKind};

/// A condition that is none: `what` is the clause or operator.
pub(super) fn not_boolean(what: &str, kind: &TypeKind) -> Error {
    let given = sql_type(kind);
    Error::plan(match what {
        "NOT" => not_applicable(what, &format!("NOT{given}"), "NOT<BOOLEAN>"),
        "CASE WHEN" => "Expected a boolean type".to_string(),
        what if what.starts_with("IS ") => not_applicable(
            what,
            &format!("{given} {what}"),
            &format!("<BOOLEAN> {what}"),
        ),
        what => format!("{what} clause must be a condition"),
    })
    .hint(format!("it is {given}: compare it with a value"))
}

/// The clause of what stands in an aggregate function's parentheses.
pub(super) const AGGREGATE_ARGUMENT: &str = "an aggregate function's argument";

/// An aggregate function where none can be computed.
pub(super) fn misplaced_aggregate(name: &str, clause: &str) -> Error {
    Error::plan(match clause {
        AGGREGATE_ARGUMENT => "Aggregate expressions cannot be nested".to_string(),
        "WHERE" | "ON" | "GROUP BY" => {
            format!("Aggregate expression is illegal in {clause} clause")
        }
        clause => format!("Aggregate function {name} is not allowed in {clause}"),
    })
}

/// A CASE without a result that has a type.
pub(super) fn only_nulls() -> Error {
    Error::plan("ELSE clause or at least one THEN clause must be non-NULL")
}

/// A call whose arguments do not go together.
pub(super) fn arguments(name: &str, args: &[&Expr]) -> Error {
    let types: Vec<_> = args.iter().map(|a| sql_type(&a.data_type.kind)).collect();
    let types = types.join(", ");
    Error::plan(format!(
        "Cannot apply '{name}' to arguments of type '{name}({types})'"
    ))
}

/// AND or OR of something that is no condition.
pub(super) fn not_booleans(op: &str, left: &TypeKind, right: &TypeKind) -> Error {
    Error::plan(not_applicable(
        op,
        &format!("{} {op} {}", sql_type(left), sql_type(right)),
        &format!("<BOOLEAN> {op} <BOOLEAN>"),
    ))
}

/// A text and something else that IN compares, which the join that it becomes does not convert.
pub(super) fn no_conversion_in_join(left: &TypeKind, right: &TypeKind) -> Error {
    let name = |kind| sql_type(kind).trim_matches(['<', '>']).to_string();
    Error::plan(format!(
        "implicit type conversion between {} and {} is not supported on join's condition now",
        name(left),
        name(right)
    ))
    .hint("cast one side: CAST(x AS ...)")
}

/// A comparison of types that do not compare.
pub(super) fn incomparable(
    mismatch: Mismatch,
    op: CompareOp,
    left: &DataType,
    right: &DataType,
) -> Error {
    match mismatch {
        Mismatch::NoImplicitConversion => Error::plan(format!(
            "implicit type conversion between {} and {} is not supported now",
            left.kind.root_name(),
            right.kind.root_name()
        ))
        .hint("cast one side: CAST(x AS ...)"),
        Mismatch::NoOrder => Error::plan(format!("Comparable type expected, but was '{left}'")),
        Mismatch::Incomparable => {
            let op = op.symbol();
            Error::plan(not_applicable(
                op,
                &format!("{} {op} {}", sql_type(&left.kind), sql_type(&right.kind)),
                &format!("<COMPARABLE_TYPE> {op} <COMPARABLE_TYPE>"),
            ))
        }
    }
}

fn not_applicable(name: &str, call: &str, form: &str) -> String {
    format!("Cannot apply '{name}' to arguments of type '{call}'. Supported form(s): '{form}'")
}
