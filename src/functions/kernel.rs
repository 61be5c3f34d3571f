//! Makes kernels out of closures over one row's values.
//!
//! An argument is read through a [`Read`] (`Text`, `Int`, `Double`, ...), a result is collected by a
//! [`Write`]. The closures are inlined into one loop over the columns; a constant argument is an
//! array of one row that is read again and again, and a call on constants alone gives a scalar.
//! All kernels of [`Call::map1`] and its siblings are strict: NULL in, NULL out.

mod columns;
mod read;
mod write;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

pub(super) use self::columns::Columns;
pub(super) use self::read::{
    BigInt, Bool, Bytes, Date, Decimal, Double, Float, Int, Read, SmallInt, Text, Ticks, TinyInt,
};
pub(super) use self::write::{
    Texts, Write, collect, collect_bytes, collect_text, collect_texts, offsets,
};
use super::{Arg, Environment, EvalContext, Kernel};
use crate::error::Result;
use crate::types::{DataType, TypeKind};

/// A call that is being compiled.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) args: &'a [Arg],
    pub(super) returns: &'a DataType,
    pub(super) env: &'a Environment,
}

/// What a closure gives for a row: a value, perhaps none (NULL), perhaps an error.
pub(super) trait Outcome<T> {
    fn outcome(self) -> Result<Option<T>>;
}

impl<T> Outcome<T> for T {
    fn outcome(self) -> Result<Option<T>> {
        Ok(Some(self))
    }
}

impl<T> Outcome<T> for Option<T> {
    fn outcome(self) -> Result<Option<T>> {
        Ok(self)
    }
}

impl<T> Outcome<T> for Result<T> {
    fn outcome(self) -> Result<Option<T>> {
        self.map(Some)
    }
}

impl<T> Outcome<T> for Result<Option<T>> {
    fn outcome(self) -> Result<Option<T>> {
        self
    }
}

/// A kernel from a function of all arguments at once.
pub(super) fn columns(f: impl Fn(&Columns, &EvalContext) -> Result<ArrayRef> + Closure) -> Kernel {
    Box::new(move |args, ctx| {
        let columns = Columns::new(args, ctx)?;
        columns.finish(f(&columns, ctx)?)
    })
}

/// As [`columns`], for a function that gives an array of known type.
pub(super) fn arrays<A: Array + 'static>(
    f: impl Fn(&Columns, &EvalContext) -> Result<A> + Closure,
) -> Kernel {
    columns(move |c, ctx| Ok(Arc::new(f(c, ctx)?)))
}

/// The bounds of a closure that is stored in a kernel.
pub(super) trait Closure: Send + Sync + 'static {}
impl<T: Send + Sync + 'static> Closure for T {}

impl<'a> Call<'a> {
    /// Type of argument `i`.
    pub(super) fn kind(&self, i: usize) -> &'a TypeKind {
        &self.args[i].data_type.kind
    }

    /// The constant text that argument `i` is.
    pub(super) fn text_literal(&self, i: usize) -> Option<&'a str> {
        match self.args.get(i)?.literal.as_ref()? {
            ScalarValue::Utf8(Some(text)) => Some(text),
            _ => None,
        }
    }

    /// A kernel of one argument.
    pub(super) fn map1<A: Read, O: Write, R: Outcome<O::Item>>(
        &self,
        f: impl Fn(A::Item<'_>) -> R + Closure,
    ) -> Kernel {
        let to = self.returns.to_arrow();
        columns(move |c, _| {
            let a = c.column::<A>(0)?;
            O::collect(c.rows, c.nulls().as_ref(), &to, |i| f(a.value(i)).outcome())
        })
    }

    /// A kernel of argument `arg` alone: the others are constants that were worked up.
    pub(super) fn map_arg<A: Read, O: Write, R: Outcome<O::Item>>(
        &self,
        arg: usize,
        f: impl Fn(A::Item<'_>) -> R + Closure,
    ) -> Kernel {
        let to = self.returns.to_arrow();
        columns(move |c, _| {
            let a = c.column::<A>(arg)?;
            O::collect(c.rows, c.nulls_of([arg]).as_ref(), &to, |i| {
                f(a.value(i)).outcome()
            })
        })
    }

    /// A kernel of two arguments.
    pub(super) fn map2<A: Read, B: Read, O: Write, R: Outcome<O::Item>>(
        &self,
        f: impl Fn(A::Item<'_>, B::Item<'_>) -> R + Closure,
    ) -> Kernel {
        let to = self.returns.to_arrow();
        columns(move |c, _| {
            let (a, b) = (c.column::<A>(0)?, c.column::<B>(1)?);
            O::collect(c.rows, c.nulls().as_ref(), &to, |i| {
                f(a.value(i), b.value(i)).outcome()
            })
        })
    }

    /// A kernel of three arguments.
    pub(super) fn map3<A: Read, B: Read, C: Read, O: Write, R: Outcome<O::Item>>(
        &self,
        f: impl Fn(A::Item<'_>, B::Item<'_>, C::Item<'_>) -> R + Closure,
    ) -> Kernel {
        let to = self.returns.to_arrow();
        columns(move |c, _| {
            let (a, b) = (c.column::<A>(0)?, c.column::<B>(1)?);
            let d = c.column::<C>(2)?;
            O::collect(c.rows, c.nulls().as_ref(), &to, |i| {
                f(a.value(i), b.value(i), d.value(i)).outcome()
            })
        })
    }

    /// A kernel of one argument that writes text.
    pub(super) fn text1<A: Read, R: Outcome<()>>(
        &self,
        f: impl Fn(A::Item<'_>, &mut String) -> R + Closure,
    ) -> Kernel {
        arrays(move |c, _| {
            let a = c.column::<A>(0)?;
            collect_text(c.rows, c.nulls().as_ref(), |i, out| {
                f(a.value(i), out).outcome()
            })
        })
    }

    /// A kernel of two arguments that writes text.
    pub(super) fn text2<A: Read, B: Read, R: Outcome<()>>(
        &self,
        f: impl Fn(A::Item<'_>, B::Item<'_>, &mut String) -> R + Closure,
    ) -> Kernel {
        arrays(move |c, _| {
            let (a, b) = (c.column::<A>(0)?, c.column::<B>(1)?);
            collect_text(c.rows, c.nulls().as_ref(), |i, out| {
                f(a.value(i), b.value(i), out).outcome()
            })
        })
    }

    /// A kernel of three arguments that writes text.
    pub(super) fn text3<A: Read, B: Read, C: Read, R: Outcome<()>>(
        &self,
        f: impl Fn(A::Item<'_>, B::Item<'_>, C::Item<'_>, &mut String) -> R + Closure,
    ) -> Kernel {
        arrays(move |c, _| {
            let (a, b) = (c.column::<A>(0)?, c.column::<B>(1)?);
            let d = c.column::<C>(2)?;
            collect_text(c.rows, c.nulls().as_ref(), |i, out| {
                f(a.value(i), b.value(i), d.value(i), out).outcome()
            })
        })
    }
}

/// A constant result.
pub(super) fn constant(value: ScalarValue) -> Kernel {
    Box::new(move |_, _| Ok(ColumnarValue::Scalar(value.clone())))
}
