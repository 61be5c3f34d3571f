//! Which types meet and how: common types, comparisons, sink columns, explicit casts.

use super::{DataType, RowField, TypeKind};
use crate::error::{Error, Result};

/// The type of a column that holds values of all `types`: `CASE`, `VALUES`, `UNION`, `IN`. `None` if
/// they do not mix. Nullable as soon as one of them is.
#[must_use]
pub fn common_type(types: &[&DataType]) -> Option<DataType> {
    merge(types, Rule::Calcite)
}

/// The common type of function arguments (`COALESCE`, `IFNULL`, `GREATEST`), which Flink derives
/// itself: it differs from [`common_type`] where that depends on the order of the types.
#[must_use]
pub fn common_argument_type(types: &[&DataType]) -> Option<DataType> {
    merge(types, Rule::Flink)
}

/// Whose rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// `leastRestrictive` of SQL validation.
    Calcite,
    /// `LogicalTypeMerging` of function calls.
    Flink,
}

fn merge(types: &[&DataType], rule: Rule) -> Option<DataType> {
    let nullable = types.iter().any(|t| t.nullable || t.kind == TypeKind::Null);
    let mut kinds = types
        .iter()
        .map(|t| &t.kind)
        .filter(|kind| **kind != TypeKind::Null);
    let Some(first) = kinds.next() else {
        return types.first().map(|_| TypeKind::Null.nullable());
    };
    let kind = kinds.try_fold(first.clone(), |merged, kind| {
        merge_kinds(&merged, kind, rule)
    })?;
    Some(kind.with_nullable(nullable))
}

fn merge_kinds(a: &TypeKind, b: &TypeKind, rule: Rule) -> Option<TypeKind> {
    use TypeKind as T;
    if a == b {
        return Some(a.clone());
    }
    Some(match (a, b) {
        (a, b) if a.is_numeric() && b.is_numeric() => merge_numeric(a, b, rule)?,
        // Equal lengths and kinds were equal types.
        (T::Char(m) | T::VarChar(m), T::Char(n) | T::VarChar(n)) => T::VarChar(*m.max(n)),
        (T::Binary(m) | T::VarBinary(m), T::Binary(n) | T::VarBinary(n)) => T::VarBinary(*m.max(n)),
        (T::Time(m), T::Time(n)) => T::Time(*m.max(n)),
        (T::Timestamp(m), T::Timestamp(n)) => T::Timestamp(*m.max(n)),
        (T::TimestampLtz(m), T::TimestampLtz(n)) => T::TimestampLtz(*m.max(n)),
        (T::Timestamp(m), T::TimestampLtz(n)) | (T::TimestampLtz(m), T::Timestamp(n)) => {
            match rule {
                Rule::Flink => T::TimestampLtz(*m.max(n)),
                // Of equal precision the first, else the second with the larger one.
                Rule::Calcite if n == m => a.clone(),
                Rule::Calcite if matches!(b, T::Timestamp(_)) => T::Timestamp(*m.max(n)),
                Rule::Calcite => T::TimestampLtz(*m.max(n)),
            }
        }
        (T::Date | T::Time(_), T::Timestamp(_)) if rule == Rule::Flink => a.clone(),
        (T::Timestamp(_), T::Date | T::Time(_)) if rule == Rule::Flink => b.clone(),
        (T::Array(x), T::Array(y)) => T::Array(Box::new(merge(&[x, y], rule)?)),
        (T::Multiset(x), T::Multiset(y)) => T::Multiset(Box::new(merge(&[x, y], rule)?)),
        (T::Map(k, v), T::Map(l, w)) => T::Map(
            Box::new(merge(&[k, l], rule)?),
            Box::new(merge(&[v, w], rule)?),
        ),
        (T::Row(x), T::Row(y)) if x.len() == y.len() => {
            let fields = x.iter().zip(y).map(|(x, y)| {
                Some(RowField {
                    name: x.name.clone(),
                    data_type: merge(&[&x.data_type, &y.data_type], rule)?,
                })
            });
            T::Row(fields.collect::<Option<_>>()?)
        }
        (T::Structured(class, x), T::Structured(other, y))
            if class == other && x.len() == y.len() =>
        {
            let fields = x.iter().zip(y).map(|(x, y)| {
                Some(RowField {
                    name: x.name.clone(),
                    data_type: merge(&[&x.data_type, &y.data_type], rule)?,
                })
            });
            T::Structured(class.clone(), fields.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn merge_numeric(a: &TypeKind, b: &TypeKind, rule: Rule) -> Option<TypeKind> {
    use TypeKind as T;
    Some(match (a, b) {
        (T::Float | T::Double, T::Float | T::Double) => match rule {
            Rule::Flink => T::Double,
            Rule::Calcite => a.clone(),
        },
        (T::Decimal(..), T::Float) if rule == Rule::Flink => T::Float,
        (T::Float | T::Double, T::Decimal(..)) | (T::Decimal(..), T::Float | T::Double) => {
            T::Double
        }
        (T::Float | T::Double, _) => a.clone(),
        (_, T::Float | T::Double) => b.clone(),
        (T::Decimal(..), _) | (_, T::Decimal(..)) => {
            let ((p1, s1), (p2, s2)) = (a.as_decimal()?, b.as_decimal()?);
            let whole = (p1 - s1).max(p2 - s2).min(38);
            let scale = s1.max(s2).min(38 - whole);
            T::Decimal(whole + scale, scale)
        }
        // Integers: the wider one.
        _ if a.as_decimal()? >= b.as_decimal()? => a.clone(),
        _ => b.clone(),
    })
}

/// How two types meet in a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The type that both sides are cast to.
    pub data_type: DataType,
    /// Whether a string that cannot be read as that type is NULL (`TRY_CAST`), as when a string column
    /// meets a date. A constant string is cast strictly all the same.
    pub lenient: bool,
}

/// Why two types do not compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// A number and a text, which `=` does not read as a number.
    NoImplicitConversion,
    /// They have no type in common.
    Incomparable,
    /// They are equal or not, but have no order.
    NoOrder,
}

/// How two types meet under `=`, `<>`, `IS [NOT] DISTINCT FROM` (`equality`) or under an order
/// comparison, `BETWEEN` or `IN`, which also read a string as a number.
///
/// # Errors
/// The reason when the two do not compare.
pub fn comparison(equality: bool, a: &DataType, b: &DataType) -> Result<Comparison, Mismatch> {
    use TypeKind as T;
    let as_type = |kind: TypeKind, lenient: bool| {
        Ok(Comparison {
            data_type: kind.with_nullable(a.nullable || b.nullable),
            lenient,
        })
    };
    match (&a.kind, &b.kind) {
        (T::Null, kind) | (kind, T::Null) => as_type(kind.clone(), false),
        (x, y) if x.is_string() && y.is_string() => as_type(T::STRING, false),
        (string, other) | (other, string) if string.is_string() => {
            if other.is_temporal() || *other == T::Boolean {
                as_type(other.clone(), true)
            } else if other.is_numeric() && !equality {
                as_type(other.clone(), false)
            } else if other.is_numeric() {
                Err(Mismatch::NoImplicitConversion)
            } else {
                Err(Mismatch::Incomparable)
            }
        }
        (T::Date | T::Time(_), T::Timestamp(_)) | (T::Timestamp(_), T::Date | T::Time(_)) => {
            Err(Mismatch::Incomparable)
        }
        (x, y) => {
            if !equality
                && matches!(
                    x,
                    T::Array(_)
                        | T::Map(..)
                        | T::Multiset(_)
                        | T::Row(_)
                        | T::Structured(..)
                        | T::Bitmap
                        | T::Variant
                )
            {
                return Err(Mismatch::NoOrder);
            }
            match merge_kinds(x, y, Rule::Flink) {
                Some(kind) => as_type(kind, false),
                None => Err(Mismatch::Incomparable),
            }
        }
    }
}

/// Whether a query column of type `from` may be written to a sink column of type `to` as it is or by
/// widening; nullability is not looked at.
#[must_use]
pub fn assignable(from: &DataType, to: &DataType) -> bool {
    implicit(&from.kind, &to.kind)
}

fn implicit(from: &TypeKind, to: &TypeKind) -> bool {
    use TypeKind as T;
    if from == to {
        return true;
    }
    match (from, to) {
        (T::Null, _) => true,
        (x, T::Decimal(..) | T::Double) => x.is_numeric(),
        (x, T::Float) => x.is_integer() || matches!(x, T::Decimal(..)),
        (x, T::TinyInt | T::SmallInt | T::Int | T::BigInt) => {
            x.is_integer() && x.as_decimal() <= to.as_decimal()
        }
        (T::Char(_), T::Char(_)) => true,
        (x, T::VarChar(_)) => x.is_string(),
        (T::Binary(_), T::Binary(_)) => true,
        (x, T::VarBinary(_)) => x.is_binary(),
        (T::Timestamp(_), T::Date) => true,
        (T::Time(_) | T::Timestamp(_), T::Time(_)) => true,
        (x, T::Timestamp(_) | T::TimestampLtz(_)) => x.is_timestamp(),
        (T::Array(x), T::Array(y)) | (T::Multiset(x), T::Multiset(y)) => implicit(&x.kind, &y.kind),
        (T::Map(k, v), T::Map(l, w)) => implicit(&k.kind, &l.kind) && implicit(&v.kind, &w.kind),
        (T::Row(x) | T::Structured(_, x), T::Row(y) | T::Structured(_, y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|(x, y)| implicit(&x.data_type.kind, &y.data_type.kind))
        }
        _ => false,
    }
}

/// Whether `CAST(x AS to)` is allowed for an `x` of type `from`.
///
/// # Errors
/// Flink's reason when it is not.
pub fn explicit_cast_allowed(from: &DataType, to: &DataType) -> Result<()> {
    if explicit(&from.kind, &to.kind) {
        return Ok(());
    }
    let reason = Error::plan(format!(
        "Cast function cannot convert value of type {} to type {}",
        from.kind, to.kind
    ));
    Err(match (&from.kind, &to.kind) {
        (x, TypeKind::Timestamp(_)) if x.is_numeric() => {
            reason.hint("use TO_TIMESTAMP(FROM_UNIXTIME(seconds))")
        }
        (x, TypeKind::TimestampLtz(_)) if x.is_numeric() => {
            reason.hint("use TO_TIMESTAMP_LTZ(number, precision)")
        }
        (TypeKind::Timestamp(_), x) if x.is_numeric() => {
            reason.hint("use UNIX_TIMESTAMP(CAST(timestamp AS STRING))")
        }
        _ => reason,
    })
}

fn explicit(from: &TypeKind, to: &TypeKind) -> bool {
    use TypeKind as T;
    let opaque = matches!(from, T::Variant | T::Bitmap);
    if implicit(from, to) && !opaque {
        return true;
    }
    match (from, to) {
        (T::Variant, _) | (_, T::Variant | T::Bitmap) => false,
        (_, T::Char(_) | T::VarChar(_)) => true,
        (T::Boolean, x) | (x, T::Boolean) => x.is_numeric() || x.is_string(),
        (x, y) if x.is_numeric() && y.is_numeric() => true,
        (x, y) if x.is_integer() => y.is_interval(),
        (x, y) if x.is_string() => y.is_numeric() || y.is_binary() || y.is_temporal(),
        (x, y) if x.is_binary() => y.is_binary(),
        (T::Date, y) => y.is_timestamp(),
        (T::Time(_), y) => matches!(y, T::Time(_)) || y.is_timestamp(),
        (x, y) if x.is_timestamp() => y.is_temporal(),
        (T::Array(x), T::Array(y)) | (T::Multiset(x), T::Multiset(y)) => explicit(&x.kind, &y.kind),
        (T::Map(k, v), T::Map(l, w)) => explicit(&k.kind, &l.kind) && explicit(&v.kind, &w.kind),
        (T::Row(x) | T::Structured(_, x), T::Row(y) | T::Structured(_, y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|(x, y)| explicit(&x.data_type.kind, &y.data_type.kind))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(rule: Rule, types: &[TypeKind]) -> Option<TypeKind> {
        let types: Vec<_> = types.iter().map(|k| k.clone().not_null()).collect();
        merge(&types.iter().collect::<Vec<_>>(), rule).map(|t| t.kind)
    }

    #[test]
    fn numbers_widen() {
        use TypeKind as T;
        for (types, expected) in [
            (vec![T::TinyInt, T::SmallInt, T::Int], T::Int),
            (vec![T::Int, T::Decimal(2, 1), T::BigInt], T::Decimal(20, 1)),
            (
                vec![T::Decimal(5, 2), T::Decimal(8, 4), T::Int],
                T::Decimal(14, 4),
            ),
            (vec![T::BigInt, T::Float], T::Float),
            (vec![T::Float, T::Decimal(3, 1)], T::Double),
            (
                vec![T::Decimal(38, 0), T::Decimal(38, 38)],
                T::Decimal(38, 0),
            ),
        ] {
            assert_eq!(common(Rule::Calcite, &types), Some(expected.clone()));
            assert_eq!(common(Rule::Flink, &types), Some(expected));
        }
        let types = [T::Decimal(3, 1), T::Float];
        assert_eq!(common(Rule::Calcite, &types), Some(T::Double));
        assert_eq!(common(Rule::Flink, &types), Some(T::Float));
        let floats = [T::Float, T::Double];
        assert_eq!(common(Rule::Calcite, &floats), Some(T::Float));
        assert_eq!(common(Rule::Flink, &floats), Some(T::Double));
    }

    #[test]
    fn strings_and_times_widen_and_others_do_not_mix() {
        use TypeKind as T;
        assert_eq!(
            common(Rule::Calcite, &[T::Char(1), T::Char(9)]),
            Some(T::VarChar(9))
        );
        assert_eq!(
            common(Rule::Calcite, &[T::Char(3), T::Char(3)]),
            Some(T::Char(3))
        );
        assert_eq!(
            common(Rule::Calcite, &[T::Timestamp(3), T::TimestampLtz(6)]),
            Some(T::TimestampLtz(6))
        );
        assert_eq!(
            common(Rule::Calcite, &[T::TimestampLtz(6), T::Timestamp(3)]),
            Some(T::Timestamp(6))
        );
        assert_eq!(
            common(Rule::Calcite, &[T::TimestampLtz(3), T::Timestamp(3)]),
            Some(T::TimestampLtz(3))
        );
        assert_eq!(
            common(Rule::Flink, &[T::Timestamp(6), T::TimestampLtz(3)]),
            Some(T::TimestampLtz(6))
        );
        for (a, b) in [
            (T::Int, T::STRING),
            (T::Date, T::Timestamp(3)),
            (T::Int, T::Date),
            (T::Boolean, T::Int),
            (T::IntervalDayTime, T::IntervalYearMonth),
        ] {
            assert_eq!(common(Rule::Calcite, &[a, b]), None);
        }
    }

    #[test]
    fn null_makes_nullable() {
        let merged = common_type(&[&TypeKind::Null.nullable(), &TypeKind::Int.not_null()]);
        assert_eq!(merged, Some(TypeKind::Int.nullable()));
    }

    #[test]
    fn comparisons_read_strings_as_times_but_not_as_numbers() {
        let string = TypeKind::Char(2).not_null();
        let with = |equality, kind: TypeKind| comparison(equality, &kind.nullable(), &string);
        let found = with(true, TypeKind::Date).expect("comparable");
        assert_eq!(
            (found.data_type.kind, found.lenient),
            (TypeKind::Date, true)
        );
        let refused = with(true, TypeKind::Int).expect_err("not comparable");
        assert_eq!(refused, Mismatch::NoImplicitConversion);
        let found = with(false, TypeKind::Int).expect("comparable");
        assert_eq!(
            (found.data_type.kind, found.lenient),
            (TypeKind::Int, false)
        );
    }

    #[test]
    fn sinks_take_wider_types_only() {
        let take = |from: TypeKind, to: TypeKind| assignable(&from.nullable(), &to.not_null());
        assert!(take(TypeKind::Int, TypeKind::BigInt));
        assert!(take(TypeKind::Double, TypeKind::Decimal(5, 2)));
        assert!(take(TypeKind::Timestamp(6), TypeKind::TimestampLtz(3)));
        assert!(take(TypeKind::Char(9), TypeKind::VarChar(2)));
        assert!(!take(TypeKind::BigInt, TypeKind::Int));
        assert!(!take(TypeKind::Double, TypeKind::BigInt));
        assert!(!take(TypeKind::Int, TypeKind::STRING));
        assert!(!take(TypeKind::VarChar(2), TypeKind::Char(2)));
    }
}
