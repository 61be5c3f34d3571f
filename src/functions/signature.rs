//! Types of calls: what parameters take, what results are, and how a call that fits no form is
//! refused.

use super::builtin::Builtin;
use super::{Arg, Signature};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

/// What a parameter takes, and what the argument is cast to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Param {
    /// `CHAR` or `VARCHAR`, as it is.
    Text,
    /// `BINARY` or `VARBINARY`, as it is.
    Binary,
    /// Any integer, as `INT`.
    Int,
    /// Any integer, as `BIGINT`.
    BigInt,
    /// Any number, as `DOUBLE`.
    Double,
    /// Any number, as it is.
    Numeric,
    /// `BOOLEAN`.
    Boolean,
    /// `ARRAY`, as it is.
    Array,
    /// `MAP`, as it is.
    Map,
    /// `BITMAP`.
    Bitmap,
    /// A timestamp, as it is.
    Timestamp,
    /// Anything, as it is.
    Any,
    /// Any number of further arguments like this, at least none; only at the end of a form.
    Rest(&'static Param),
}

impl Param {
    /// The type that an argument of `actual` is cast to; `None` if it does not fit. An untyped NULL
    /// fits everything.
    fn accept(self, actual: &DataType) -> Option<DataType> {
        let kind = &actual.kind;
        let null = *kind == TypeKind::Null;
        let as_is = |fits: bool, default: TypeKind| match (null, fits) {
            (true, _) => Some(default.nullable()),
            (false, true) => Some(actual.clone()),
            (false, false) => None,
        };
        let to = |fits: bool, target: TypeKind| {
            (null || fits).then(|| target.with_nullable(actual.nullable))
        };
        match self {
            Self::Text => as_is(kind.is_string(), TypeKind::STRING),
            Self::Binary => as_is(kind.is_binary(), TypeKind::BYTES),
            Self::Int => to(kind.is_integer(), TypeKind::Int),
            Self::BigInt => to(kind.is_integer(), TypeKind::BigInt),
            Self::Double => to(kind.is_numeric(), TypeKind::Double),
            Self::Numeric => as_is(kind.is_numeric(), TypeKind::Int),
            Self::Boolean => to(*kind == TypeKind::Boolean, TypeKind::Boolean),
            Self::Array if null => None,
            Self::Array => as_is(matches!(kind, TypeKind::Array(_)), TypeKind::Null),
            Self::Map if null => None,
            Self::Map => as_is(matches!(kind, TypeKind::Map(..)), TypeKind::Null),
            Self::Bitmap => as_is(*kind == TypeKind::Bitmap, TypeKind::Bitmap),
            Self::Timestamp => as_is(kind.is_timestamp(), TypeKind::Timestamp(3)),
            Self::Any => Some(actual.clone()),
            Self::Rest(each) => each.accept(actual),
        }
    }
}

/// The rule for a result type.
pub(super) enum Returns {
    /// This type; nullable if an argument is.
    Strict(TypeKind),
    /// This type, always nullable.
    Nullable(TypeKind),
    /// This type, never null.
    NotNull(TypeKind),
    /// The type of the first argument; nullable if an argument is.
    First,
    /// `VARCHAR` of the first argument's length; nullable if an argument is.
    FirstVarying,
    /// By code from the cast argument types.
    By(fn(&[DataType]) -> DataType),
}

impl Returns {
    fn apply(&self, args: &[DataType]) -> DataType {
        let nullable = any_nullable(args);
        let first = || args.first().map_or(TypeKind::Null, |t| t.kind.clone());
        match self {
            Self::Strict(kind) => kind.clone().with_nullable(nullable),
            Self::Nullable(kind) => kind.clone().nullable(),
            Self::NotNull(kind) => kind.clone().not_null(),
            Self::First => first().with_nullable(nullable),
            Self::FirstVarying => varying(&first()).with_nullable(nullable),
            Self::By(rule) => rule(args),
        }
    }
}

/// Whether one of them is nullable.
pub(super) fn any_nullable(types: &[DataType]) -> bool {
    types.iter().any(|t| t.nullable)
}

/// `CHAR(n)` as `VARCHAR(n)`, `BINARY(n)` as `VARBINARY(n)`.
pub(super) fn varying(kind: &TypeKind) -> TypeKind {
    match kind {
        TypeKind::Char(n) => TypeKind::VarChar(*n),
        TypeKind::Binary(n) => TypeKind::VarBinary(*n),
        other => other.clone(),
    }
}

/// The types of a call of `builtin` by the first of `forms` that fits.
pub(super) fn match_forms(
    builtin: &Builtin,
    forms: &[&[Param]],
    returns: &Returns,
    args: &[Arg],
) -> Result<Signature> {
    let mut count_fits = false;
    for form in forms {
        let Some(params) = expand(form, args.len()) else {
            continue;
        };
        count_fits = true;
        let types: Option<Vec<_>> = params
            .iter()
            .zip(args)
            .map(|(param, arg)| param.accept(&arg.data_type))
            .collect();
        if let Some(types) = types {
            let result = returns.apply(&types);
            return Ok(Signature {
                args: types,
                returns: result,
            });
        }
    }
    Err(if count_fits {
        builtin.refuse_types(args)
    } else {
        builtin.refuse_count(args)
    })
}

/// The parameters of `form` for `count` arguments, if it takes so many.
fn expand(form: &[Param], count: usize) -> Option<Vec<Param>> {
    match form.split_last() {
        Some((Param::Rest(each), fixed)) if count >= fixed.len() => {
            let mut params = fixed.to_vec();
            params.resize(count, **each);
            Some(params)
        }
        _ => (form.len() == count).then(|| form.to_vec()),
    }
}

impl Builtin {
    /// The refusal of a call with a wrong number of arguments.
    pub(super) fn refuse_count(&self, args: &[Arg]) -> Error {
        Error::plan(format!(
            "No match found for function signature {}({})",
            self.name,
            families(args)
        ))
        .hint(self.supported())
    }

    /// The refusal of a call with arguments of wrong types.
    pub(super) fn refuse_types(&self, args: &[Arg]) -> Error {
        let types: Vec<_> = args.iter().map(|a| sql_type(&a.data_type.kind)).collect();
        Error::plan(format!(
            "Cannot apply '{0}' to arguments of type '{0}({1})'",
            self.name,
            types.join(", ")
        ))
        .hint(self.supported())
    }

    fn supported(&self) -> String {
        format!("it is called as {}", self.signature.replace('\n', " or "))
    }
}

/// The families of the arguments' types as Flink lists them: `<NUMERIC>, <CHARACTER>`.
pub(crate) fn families(args: &[Arg]) -> String {
    let names: Vec<_> = args
        .iter()
        .map(|arg| match &arg.data_type.kind {
            kind if kind.is_numeric() => "<NUMERIC>".to_string(),
            kind if kind.is_string() => "<CHARACTER>".to_string(),
            kind if kind.is_binary() => "<BINARY>".to_string(),
            TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => "<TIMESTAMP>".to_string(),
            TypeKind::IntervalYearMonth => "<INTERVAL_YEAR_MONTH>".to_string(),
            TypeKind::IntervalDayTime => "<INTERVAL_DAY_TIME>".to_string(),
            kind => sql_type(kind),
        })
        .collect();
    names.join(", ")
}

/// A type as Calcite writes it in refusals: `<INTEGER>`, `<CHAR(3)>`, `<INTEGER ARRAY>`.
pub(crate) fn sql_type(kind: &TypeKind) -> String {
    fn name(kind: &TypeKind) -> String {
        match kind {
            TypeKind::Int => "INTEGER".to_string(),
            TypeKind::VarChar(n) => format!("VARCHAR({n})"),
            TypeKind::VarBinary(n) => format!("VARBINARY({n})"),
            TypeKind::Array(e) => format!("{} ARRAY", name(&e.kind)),
            TypeKind::Map(k, v) => format!("({}, {}) MAP", name(&k.kind), name(&v.kind)),
            TypeKind::Multiset(e) => format!("{} MULTISET", name(&e.kind)),
            other => other.to_string(),
        }
    }
    format!("<{}>", name(kind))
}
