//! Makes kernels out of closures over one row's values.
//!
//! An argument is read through a [`Read`] (`Text`, `Int`, `Double`, ...), a result is collected by a
//! [`Write`]. The closures are inlined into one loop over the columns; a constant argument is an
//! array of one row that is read again and again, and a call on constants alone gives a scalar.
//! All kernels of [`Call::map1`] and its siblings are strict: NULL in, NULL out.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, BooleanBufferBuilder,
    ListArray, NullBufferBuilder, PrimitiveArray, StringArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type,
};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::{Arg, Environment, EvalContext, Kernel};
use crate::error::{Error, Result};
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

/// A way to read the values of an argument.
pub(super) trait Read: 'static {
    /// The Arrow array.
    type Array: Array + Clone + 'static;
    /// A value.
    type Item<'a>: Copy;
    /// The array of an argument, if it has the right type.
    fn array(array: &ArrayRef) -> Option<Self::Array>;
    /// Value `i`, which is not NULL.
    fn read(array: &Self::Array, i: usize) -> Self::Item<'_>;
}

/// `CHAR`, `VARCHAR`.
pub(super) struct Text;
/// `BINARY`, `VARBINARY`.
pub(super) struct Bytes;
/// `BOOLEAN`.
pub(super) struct Bool;
/// A primitive type.
pub(super) struct Prim<P>(std::marker::PhantomData<P>);
/// Dates, times, timestamps and intervals of any unit, as `i64`.
pub(super) struct Ticks;

pub(super) type TinyInt = Prim<Int8Type>;
pub(super) type SmallInt = Prim<Int16Type>;
pub(super) type Int = Prim<Int32Type>;
pub(super) type BigInt = Prim<Int64Type>;
pub(super) type Float = Prim<Float32Type>;
pub(super) type Double = Prim<Float64Type>;
pub(super) type Decimal = Prim<Decimal128Type>;
pub(super) type Date = Prim<Date32Type>;

impl Read for Text {
    type Array = StringArray;
    type Item<'a> = &'a str;
    fn array(array: &ArrayRef) -> Option<StringArray> {
        array.as_string_opt::<i32>().cloned()
    }
    fn read(array: &StringArray, i: usize) -> &str {
        array.value(i)
    }
}

impl Read for Bytes {
    type Array = BinaryArray;
    type Item<'a> = &'a [u8];
    fn array(array: &ArrayRef) -> Option<BinaryArray> {
        array.as_binary_opt::<i32>().cloned()
    }
    fn read(array: &BinaryArray, i: usize) -> &[u8] {
        array.value(i)
    }
}

impl Read for Bool {
    type Array = BooleanArray;
    type Item<'a> = bool;
    fn array(array: &ArrayRef) -> Option<BooleanArray> {
        array.as_boolean_opt().cloned()
    }
    fn read(array: &BooleanArray, i: usize) -> bool {
        array.value(i)
    }
}

impl<P: ArrowPrimitiveType> Read for Prim<P> {
    type Array = PrimitiveArray<P>;
    type Item<'a> = P::Native;
    fn array(array: &ArrayRef) -> Option<PrimitiveArray<P>> {
        array.as_primitive_opt::<P>().cloned()
    }
    fn read(array: &PrimitiveArray<P>, i: usize) -> P::Native {
        array.value(i)
    }
}

impl Read for Ticks {
    type Array = PrimitiveArray<Int64Type>;
    type Item<'a> = i64;
    fn array(array: &ArrayRef) -> Option<Self::Array> {
        let data = array.to_data();
        let (start, len) = (data.offset(), data.len());
        let values = match data.data_type() {
            ArrowType::Timestamp(..) | ArrowType::Duration(_) | ArrowType::Int64 => {
                ScalarBuffer::new(data.buffers()[0].clone(), start, len)
            }
            ArrowType::Date32 | ArrowType::Time32(_) | ArrowType::Interval(_) => {
                let narrow = ScalarBuffer::<i32>::new(data.buffers()[0].clone(), start, len);
                narrow.iter().map(|v| i64::from(*v)).collect()
            }
            _ => return None,
        };
        Some(PrimitiveArray::new(values, data.nulls().cloned()))
    }
    fn read(array: &Self::Array, i: usize) -> i64 {
        array.value(i)
    }
}

/// A way to collect results.
pub(super) trait Write: 'static {
    /// A value.
    type Item;
    /// The column of `f(i)` for every row that `nulls` doesn't exclude, of Arrow type `to`.
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        to: &ArrowType,
        f: impl FnMut(usize) -> Result<Option<Self::Item>>,
    ) -> Result<ArrayRef>;
}

fn primitive<P: ArrowPrimitiveType>(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize) -> Result<Option<P::Native>>,
) -> Result<PrimitiveArray<P>> {
    let mut values = Vec::with_capacity(rows);
    let mut valid = NullBufferBuilder::new(rows);
    for i in 0..rows {
        let value = match nulls {
            Some(nulls) if nulls.is_null(i) => None,
            _ => f(i)?,
        };
        values.push(value.unwrap_or_default());
        valid.append(value.is_some());
    }
    Ok(PrimitiveArray::new(values.into(), valid.finish()))
}

impl<P: ArrowPrimitiveType> Write for Prim<P> {
    type Item = P::Native;
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        to: &ArrowType,
        f: impl FnMut(usize) -> Result<Option<P::Native>>,
    ) -> Result<ArrayRef> {
        let array = primitive::<P>(rows, nulls, f)?;
        Ok(Arc::new(array.with_data_type(to.clone())))
    }
}

impl Write for Ticks {
    type Item = i64;
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        to: &ArrowType,
        f: impl FnMut(usize) -> Result<Option<i64>>,
    ) -> Result<ArrayRef> {
        let array = primitive::<Int64Type>(rows, nulls, f)?;
        let data = match to {
            ArrowType::Date32 | ArrowType::Time32(_) | ArrowType::Interval(_) => {
                array.unary::<_, Int32Type>(|v| v as i32).into_data()
            }
            _ => array.into_data(),
        };
        let data = data.into_builder().data_type(to.clone());
        Ok(arrow::array::make_array(data.build()?))
    }
}

impl Write for Bool {
    type Item = bool;
    fn collect(
        rows: usize,
        nulls: Option<&NullBuffer>,
        _to: &ArrowType,
        mut f: impl FnMut(usize) -> Result<Option<bool>>,
    ) -> Result<ArrayRef> {
        let mut values = BooleanBufferBuilder::new(rows);
        let mut valid = NullBufferBuilder::new(rows);
        for i in 0..rows {
            let value = match nulls {
                Some(nulls) if nulls.is_null(i) => None,
                _ => f(i)?,
            };
            values.append(value.unwrap_or_default());
            valid.append(value.is_some());
        }
        Ok(Arc::new(BooleanArray::new(values.finish(), valid.finish())))
    }
}

/// Collects what `f` gives for every row that `nulls` doesn't exclude.
pub(super) fn collect<O: Write>(
    rows: usize,
    nulls: Option<&NullBuffer>,
    to: &ArrowType,
    f: impl FnMut(usize) -> Result<Option<O::Item>>,
) -> Result<ArrayRef> {
    O::collect(rows, nulls, to, f)
}

/// Collects texts that `f` appends to one long buffer.
pub(super) fn collect_text(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize, &mut String) -> Result<Option<()>>,
) -> Result<StringArray> {
    let mut text = String::new();
    let (offsets, nulls) = offsets(rows, nulls, |i| {
        let start = text.len();
        let some = f(i, &mut text)?.is_some();
        if !some {
            text.truncate(start);
        }
        Ok((some, text.len()))
    })?;
    let values = Buffer::from(text.into_bytes());
    StringArray::try_new(offsets, values, nulls).map_err(Error::from)
}

/// Collects byte strings that `f` appends to one long buffer.
pub(super) fn collect_bytes(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize, &mut Vec<u8>) -> Result<Option<()>>,
) -> Result<BinaryArray> {
    let mut bytes = Vec::new();
    let (offsets, nulls) = offsets(rows, nulls, |i| {
        let start = bytes.len();
        let some = f(i, &mut bytes)?.is_some();
        if !some {
            bytes.truncate(start);
        }
        Ok((some, bytes.len()))
    })?;
    BinaryArray::try_new(offsets, Buffer::from(bytes), nulls).map_err(Error::from)
}

/// The texts of one list after the other.
#[derive(Default)]
pub(super) struct Texts {
    text: String,
    ends: Vec<i32>,
    valid: Vec<bool>,
}

impl Texts {
    /// Adds a text, or NULL, to the list of the current row.
    pub(super) fn push(&mut self, text: Option<&str>) {
        self.text.push_str(text.unwrap_or_default());
        self.ends
            .push(i32::try_from(self.text.len()).unwrap_or(i32::MAX));
        self.valid.push(text.is_some());
    }

    /// Adds what is written to the end of the text.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.push(Some(""));
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.valid.truncate(len);
        let end = self.ends.last().map_or(0, |end| *end as usize);
        self.text.truncate(end);
    }

    pub(super) fn finish(self) -> Result<StringArray> {
        if self.text.len() > i32::MAX as usize {
            return Err(too_much());
        }
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        offsets.extend(self.ends);
        StringArray::try_new(
            OffsetBuffer::new(offsets.into()),
            Buffer::from(self.text.into_bytes()),
            Some(NullBuffer::from(self.valid)),
        )
        .map_err(Error::from)
    }
}

/// Collects `ARRAY<STRING>` values that `f` appends text by text.
pub(super) fn collect_texts(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize, &mut Texts) -> Result<Option<()>>,
) -> Result<ListArray> {
    let mut texts = Texts::default();
    let (offsets, nulls) = offsets(rows, nulls, |i| {
        let start = texts.ends.len();
        let some = f(i, &mut texts)?.is_some();
        if !some {
            texts.truncate(start);
        }
        Ok((some, texts.ends.len()))
    })?;
    let item = Arc::new(Field::new("item", ArrowType::Utf8, true));
    ListArray::try_new(item, offsets, Arc::new(texts.finish()?), nulls).map_err(Error::from)
}

fn too_much() -> Error {
    Error::execution("the values of a batch's column are longer than 2 GB together")
}

/// Offsets and validity of a column of variable length; `f` tells whether row `i` has a value and
/// where it ends.
pub(super) fn offsets(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut f: impl FnMut(usize) -> Result<(bool, usize)>,
) -> Result<(OffsetBuffer<i32>, Option<NullBuffer>)> {
    let mut offsets = Vec::with_capacity(rows + 1);
    let mut valid = NullBufferBuilder::new(rows);
    let mut end = 0;
    offsets.push(0);
    for i in 0..rows {
        let mut some = false;
        if nulls.is_none_or(|nulls| nulls.is_valid(i)) {
            let end_of_row;
            (some, end_of_row) = f(i)?;
            end = i32::try_from(end_of_row).map_err(|_| too_much())?;
        }
        offsets.push(end);
        valid.append(some);
    }
    Ok((OffsetBuffer::new(offsets.into()), valid.finish()))
}

/// The arguments of one evaluation.
pub(super) struct Columns {
    arrays: Vec<(ArrayRef, bool)>,
    /// Rows to compute: one, if all arguments are constant.
    pub(super) rows: usize,
    constant: bool,
}

/// One argument, read by `R`.
pub(super) struct Column<R: Read> {
    array: R::Array,
    constant: bool,
}

impl<R: Read> Column<R> {
    /// The value in row `i`, which is not NULL.
    #[inline]
    pub(super) fn value(&self, i: usize) -> R::Item<'_> {
        R::read(&self.array, if self.constant { 0 } else { i })
    }

    /// The value in row `i`.
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<R::Item<'_>> {
        let i = if self.constant { 0 } else { i };
        self.array.is_valid(i).then(|| R::read(&self.array, i))
    }
}

impl Columns {
    pub(super) fn new(args: &[ColumnarValue], ctx: &EvalContext) -> Result<Self> {
        let constant = args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let arrays = args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Array(array) => Ok((Arc::clone(array), false)),
                ColumnarValue::Scalar(value) => Ok((value.to_array()?, true)),
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            arrays,
            rows: if constant { 1 } else { ctx.rows },
            constant,
        })
    }

    /// The number of arguments.
    pub(super) fn count(&self) -> usize {
        self.arrays.len()
    }

    /// Argument `i` as it came; of one row, if it is constant.
    pub(super) fn raw(&self, i: usize) -> (&ArrayRef, bool) {
        let (array, constant) = &self.arrays[i];
        (array, *constant)
    }

    /// Argument `i`, read by `R`.
    pub(super) fn column<R: Read>(&self, i: usize) -> Result<Column<R>> {
        let (array, constant) = &self.arrays[i];
        let array_of = |array: &ArrayRef| {
            R::array(array).ok_or_else(|| {
                Error::internal(format!(
                    "argument {i} of a function is a column of {}",
                    array.data_type()
                ))
            })
        };
        Ok(Column {
            array: array_of(array)?,
            constant: *constant,
        })
    }

    /// Arguments of one type, each read by `R`.
    pub(super) fn each<R: Read>(&self, args: std::ops::Range<usize>) -> Result<Vec<Column<R>>> {
        args.map(|i| self.column(i)).collect()
    }

    /// Argument `i` as an array of [`rows`](Self::rows) rows.
    pub(super) fn array(&self, i: usize) -> Result<ArrayRef> {
        let (array, constant) = &self.arrays[i];
        if *constant && self.rows != 1 {
            return Ok(ScalarValue::try_from_array(array, 0)?.to_array_of_size(self.rows)?);
        }
        Ok(Arc::clone(array))
    }

    /// The rows in which an argument is NULL.
    pub(super) fn nulls(&self) -> Option<NullBuffer> {
        self.nulls_of(0..self.arrays.len())
    }

    /// The rows in which one of these arguments is NULL.
    pub(super) fn nulls_of(&self, args: impl IntoIterator<Item = usize>) -> Option<NullBuffer> {
        let mut union: Option<NullBuffer> = None;
        for i in args {
            let (array, constant) = &self.arrays[i];
            if *constant {
                if array.is_null(0) || array.data_type() == &ArrowType::Null {
                    return Some(NullBuffer::new_null(self.rows));
                }
            } else {
                union = NullBuffer::union(union.as_ref(), array.logical_nulls().as_ref());
            }
        }
        union
    }

    /// The result: a scalar, if all arguments are constant.
    pub(super) fn finish(&self, array: ArrayRef) -> Result<ColumnarValue> {
        if self.constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &array, 0,
            )?));
        }
        Ok(ColumnarValue::Array(array))
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
