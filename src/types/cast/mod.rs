//! `CAST`, `TRY_CAST` and the casts that the planner inserts, by Flink's rules.
//!
//! A [`Cast`] is planned once for a pair of types and then converts whole columns. What Flink does with
//! values that do not fit differs by pair and is kept: integers wrap, floating-point numbers saturate,
//! decimals become NULL, text that cannot be read fails the query under [`CastMode::Strict`] and gives
//! NULL under [`CastMode::Try`].

mod nested;
mod number;
mod temporal;
mod text;

pub(crate) use self::number::divide_half_up;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::compute::concat;

use super::coerce::explicit_cast_allowed;
use super::{DataType, TypeKind};
use crate::error::{Error, Result};

/// What a cast does with a value that has no counterpart in the target type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastMode {
    /// Fails the query with the value and the type (`CAST`).
    Strict,
    /// Gives `NULL` (`TRY_CAST`).
    Try,
}

/// What is fixed for all evaluations of a job.
#[derive(Debug, Clone)]
pub struct Environment {
    /// `table.local-time-zone`.
    pub time_zone: chrono_tz::Tz,
    /// Whether `table.exec.legacy-cast-behaviour` is on.
    pub legacy_cast: bool,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            time_zone: chrono_tz::UTC,
            legacy_cast: false,
        }
    }
}

/// Converts a column.
type Convert = Box<dyn Fn(&ArrayRef) -> Result<ArrayRef> + Send + Sync>;

/// What the planning of a cast needs to know beside the types.
struct Context<'a> {
    /// Whether a value that cannot be read is NULL.
    lenient: bool,
    env: &'a Environment,
}

/// A planned conversion from one type to another.
pub struct Cast {
    /// `None` if columns stay as they are.
    convert: Option<Convert>,
    fallible: bool,
}

impl std::fmt::Debug for Cast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cast")
            .field("identity", &self.is_identity())
            .field("fallible", &self.fallible)
            .finish()
    }
}

impl Cast {
    /// Plans the conversion of columns of `from` to `to`.
    ///
    /// # Errors
    /// When the types do not convert.
    pub fn new(from: &DataType, to: &DataType, mode: CastMode, env: &Environment) -> Result<Self> {
        explicit_cast_allowed(from, to)?;
        let lenient = mode == CastMode::Try || env.legacy_cast;
        let context = Context { lenient, env };
        Ok(Self {
            convert: plan(&from.kind, &to.kind, &context)?,
            fallible: !lenient && reads_text(&from.kind, &to.kind),
        })
    }

    /// Whether a value can make [`array`](Self::array) fail.
    #[must_use]
    pub fn may_fail(&self) -> bool {
        self.fallible
    }

    /// Whether columns stay as they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.convert.is_none()
    }

    /// The converted column.
    ///
    /// # Errors
    /// When a value does not convert and the mode is strict.
    pub fn array(&self, array: &ArrayRef) -> Result<ArrayRef> {
        match &self.convert {
            None => Ok(Arc::clone(array)),
            Some(convert) => convert(array),
        }
    }
}

/// Casts one column: [`Cast::new`] and [`Cast::array`] in one.
///
/// # Errors
/// When the types do not convert, or a value does not and the mode is strict.
pub fn cast_array(
    array: &ArrayRef,
    from: &DataType,
    to: &DataType,
    mode: CastMode,
    env: &Environment,
) -> Result<ArrayRef> {
    Cast::new(from, to, mode, env)?.array(array)
}

/// Whether the cast parses text, the one thing that can fail.
fn reads_text(from: &TypeKind, to: &TypeKind) -> bool {
    use TypeKind as T;
    match (from, to) {
        (T::Array(x), T::Array(y)) | (T::Multiset(x), T::Multiset(y)) => {
            reads_text(&x.kind, &y.kind)
        }
        (T::Map(k, v), T::Map(l, w)) => {
            reads_text(&k.kind, &l.kind) || reads_text(&v.kind, &w.kind)
        }
        (T::Row(x) | T::Structured(_, x), T::Row(y) | T::Structured(_, y)) => x
            .iter()
            .zip(y)
            .any(|(x, y)| reads_text(&x.data_type.kind, &y.data_type.kind)),
        (x, y) if x.is_string() => !(y.is_string() || y.is_binary()),
        // Infinity and NaN have no decimal.
        (x, T::Decimal(..)) => x.is_approximate(),
        // Nanoseconds reach from 1677 to 2262.
        (x, T::Timestamp(7..) | T::TimestampLtz(7..)) => x.is_temporal(),
        _ => false,
    }
}

/// The conversion, or `None` if a column of `from` is one of `to`.
fn plan(from: &TypeKind, to: &TypeKind, context: &Context) -> Result<Option<Convert>> {
    use TypeKind as T;
    if from == to {
        return Ok(None);
    }
    let unsupported = || Error::plan(format!("Unsupported cast from '{from}' to '{to}'"));
    Ok(match (from, to) {
        (T::Null, to) => {
            let to = to.to_arrow();
            Some(Box::new(move |array| Ok(new_null_array(&to, array.len()))))
        }
        (x, y) if x.is_string() && y.is_string() => text::string_to_string(x, y, context),
        (x, y) if x.is_string() && y.is_binary() => Some(text::string_to_binary(y)),
        (x, y) if x.is_binary() && y.is_binary() => text::binary_to_binary(x, y),
        (x, y) if y.is_string() => Some(text::to_string(x, y, context)),
        (x, y) if x.is_string() => Some(text::parse(y, context).ok_or_else(unsupported)?),
        (x, y) if (x.is_numeric() || *x == T::Boolean) && (y.is_numeric() || *y == T::Boolean) => {
            Some(number::convert(x, y, context).ok_or_else(unsupported)?)
        }
        (x, y) if x.is_integer() && y.is_interval() => {
            Some(temporal::integer_to_interval(x, y).ok_or_else(unsupported)?)
        }
        (x, y) if x.is_temporal() && y.is_temporal() => {
            temporal::convert(x, y, context).ok_or_else(unsupported)?
        }
        _ => nested::convert(from, to, context)?,
    })
}

/// A conversion in strict mode that gives NULL for every row in which a part of the value does not
/// convert: `TRY_CAST` of nested values.
fn or_null(strict: Convert, to: &TypeKind) -> Convert {
    let to = to.to_arrow();
    Box::new(move |array| {
        if let Ok(converted) = strict(array) {
            return Ok(converted);
        }
        let rows: Vec<ArrayRef> = (0..array.len())
            .map(|i| strict(&array.slice(i, 1)).unwrap_or_else(|_| new_null_array(&to, 1)))
            .collect();
        let rows: Vec<&dyn Array> = rows.iter().map(AsRef::as_ref).collect();
        Ok(concat(&rows)?)
    })
}

/// The error of a value that is not one of `to`.
fn unreadable(text: &str, to: &TypeKind, reason: &str) -> Error {
    Error::execution(format!("Cannot cast '{text}' to {to}: {reason}"))
        .hint("use TRY_CAST to get NULL instead")
}

#[cfg(test)]
mod tests;
