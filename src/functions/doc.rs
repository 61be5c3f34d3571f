//! What a person reads about a function: SHOW FUNCTIONS, DESCRIBE FUNCTION and the docs page.

use std::borrow::Cow;
use std::fmt;

/// What kind of function a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FunctionKind {
    /// One value a row.
    Scalar,
    /// One value a group.
    Aggregate,
    /// Only with an OVER clause.
    Window,
    /// A table from arguments: windowing functions, `UNNEST`.
    Table,
}

impl fmt::Display for FunctionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Aggregate => "aggregate",
            Self::Window => "window",
            Self::Table => "table",
        })
    }
}

/// The description of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDoc {
    /// Scalar, aggregate, ...
    pub kind: FunctionKind,
    /// The chapter of the docs page: `string`, `temporal`, ...
    pub topic: Cow<'static, str>,
    /// How it is called: one form a line.
    pub signature: Cow<'static, str>,
    /// What it does, in a line.
    pub summary: Cow<'static, str>,
    /// An expression that uses it; may be empty.
    pub example: Cow<'static, str>,
    /// What the example gives, as the `print` connector shows it.
    pub result: Cow<'static, str>,
}

impl FunctionDoc {
    /// The description of a built-in.
    #[must_use]
    pub const fn new(
        kind: FunctionKind,
        topic: &'static str,
        signature: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            kind,
            topic: Cow::Borrowed(topic),
            signature: Cow::Borrowed(signature),
            summary: Cow::Borrowed(summary),
            example: Cow::Borrowed(""),
            result: Cow::Borrowed(""),
        }
    }

    /// With an example and what it gives.
    #[must_use]
    pub fn example(mut self, example: &'static str, result: &'static str) -> Self {
        self.example = Cow::Borrowed(example);
        self.result = Cow::Borrowed(result);
        self
    }
}
