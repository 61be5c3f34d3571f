//! Scalar functions and operators with Flink's semantics, and the registry that finds them by name.
//!
//! A function is asked twice: when a call is bound it says which argument types it wants and what it
//! returns ([`ScalarFunction::resolve`]); when the expression is compiled it makes a [`Kernel`] for
//! exactly these arguments, where constants (patterns, zones, paths) are worked up once
//! ([`ScalarFunction::prepare`]). Kernels see whole columns.

mod array;
mod bitmap;
mod builtin;
mod clock;
mod conditional;
mod constructors;
mod date_format;
mod decimal_text;
pub mod doc;
mod encoding;
mod english;
mod extract;
mod forms;
#[cfg(test)]
mod fuzz_tests;
mod java_date;
mod java_regex;
mod java_time;
mod json;
mod json_path;
mod json_tree;
mod json_write;
mod kernel;
mod lists;
mod map;
pub(crate) mod match_rowtime;
mod math;
mod object;
pub mod operators;
mod others;
pub mod page;
mod printf;
mod random;
pub mod refused;
mod regex;
pub mod registry;
mod round;
mod search;
mod signature;
mod string;
pub mod table;
mod temporal_floor;
#[cfg(test)]
mod testing;
mod time_form;
mod timestamp_add;
mod url;
pub mod user;
mod utf16;
mod variant;
mod zones;

pub(crate) use builtin::untyped_null;
pub(crate) use java_time::TimePattern;

use std::fmt;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use crate::error::Result;
use crate::types::DataType;

pub use crate::types::cast::Environment;

pub use doc::{FunctionDoc, FunctionKind};
pub use registry::FunctionRegistry;
pub(crate) use signature::{families, sql_type};

/// The built-ins by topic.
static TOPICS: &[(&str, &[builtin::Builtin])] = &[
    ("string", string::FUNCTIONS),
    ("string", search::FUNCTIONS),
    ("string", regex::FUNCTIONS),
    ("string", printf::FUNCTIONS),
    ("arithmetic", math::FUNCTIONS),
    ("arithmetic", round::FUNCTIONS),
    ("arithmetic", random::FUNCTIONS),
    ("conditional", conditional::FUNCTIONS),
    ("collection", constructors::FUNCTIONS),
    ("collection", array::FUNCTIONS),
    ("collection", map::FUNCTIONS),
    ("structured", object::FUNCTIONS),
    ("bitmap", bitmap::FUNCTIONS),
    ("json", json::FUNCTIONS),
    ("variant", variant::FUNCTIONS),
    ("encoding", encoding::FUNCTIONS),
    ("url", url::FUNCTIONS),
    ("temporal", clock::FUNCTIONS),
    ("temporal", extract::FUNCTIONS),
    ("temporal", date_format::FUNCTIONS),
    ("temporal", timestamp_add::FUNCTIONS),
];

/// Whether two evaluations on the same row agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Determinism {
    /// Always.
    Deterministic,
    /// Depends on the clock or the watermark (`NOW`, `PROCTIME`, `CURRENT_WATERMARK`).
    Dynamic,
    /// Differs from call to call (`RAND`, `UUID`).
    Random,
}

/// An argument as a function sees it while a call is bound and compiled.
#[derive(Debug, Clone)]
pub struct Arg {
    /// Its type.
    pub data_type: DataType,
    /// Its value, if it is a constant.
    pub literal: Option<ScalarValue>,
}

/// What a function makes of a call.
#[derive(Debug, Clone)]
pub struct Signature {
    /// The types that the arguments are cast to; as many as arguments were given.
    pub args: Vec<DataType>,
    /// The type of the result, nullability included.
    pub returns: DataType,
}

/// What a kernel may know of the moment of the evaluation.
#[derive(Debug, Clone, Copy)]
pub struct EvalContext {
    /// Number of rows of the batch: the length of the result, if it is an array.
    pub rows: usize,
    /// The clock, ms since the epoch.
    pub now_ms: i64,
    /// The operator's watermark, ms since the epoch; `i64::MIN` before the first.
    pub watermark: i64,
}

/// A compiled call: columns in, a column or one value for all rows out. Arrays have
/// [`EvalContext::rows`] rows; a constant argument may come as a scalar. The result's Arrow type is
/// that of the bound result type.
pub type Kernel =
    Box<dyn Fn(&[ColumnarValue], &EvalContext) -> Result<ColumnarValue> + Send + Sync>;

/// A scalar function or operator.
///
/// MUST be pure but for what [`determinism`](Self::determinism) admits; MUST not panic on any value.
pub trait ScalarFunction: fmt::Debug + Send + Sync {
    /// Its name as Flink prints it: upper case, or the operator's symbol.
    fn name(&self) -> &str;

    /// Types of a call, or Flink's reason why it is refused.
    ///
    /// # Errors
    /// When the number or types of the arguments do not fit.
    fn resolve(&self, args: &[Arg]) -> Result<Signature>;

    /// Makes the kernel. `args` have the types that [`resolve`](Self::resolve) asked for, `returns`
    /// is what it answered.
    ///
    /// # Errors
    /// When a constant argument is malformed.
    fn prepare(&self, args: &[Arg], returns: &DataType, env: &Environment) -> Result<Kernel>;

    /// Whether two evaluations of a call with so many arguments agree on the same row.
    fn determinism(&self, _args: usize) -> Determinism {
        Determinism::Deterministic
    }

    /// Whether it can fail on data: then `CASE`, `AND` and `OR` keep it from rows that are not its
    /// business.
    fn may_fail(&self) -> bool {
        false
    }

    /// The same, when the arguments are known: a division by a constant does not fail.
    fn may_fail_on(&self, args: &[Arg]) -> bool {
        let _ = args;
        self.may_fail()
    }
}

/// A shared function.
pub type FunctionRef = Arc<dyn ScalarFunction>;
