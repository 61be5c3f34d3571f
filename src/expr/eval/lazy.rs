//! `AND`, `OR`, `CASE` and `COALESCE`: parts that can fail see only the rows that reach them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Scalar, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{and_kleene, filter, interleave, is_not_null, or_kleene, take};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::{Node, booleans, into_array};
use crate::error::Result;
use crate::functions::EvalContext;

/// A part that may be evaluated on some of the rows.
pub(super) struct Part {
    pub(super) node: Node,
    /// The columns that it reads.
    pub(super) columns: Vec<usize>,
    /// Whether a value can make it fail.
    pub(super) fallible: bool,
}

impl Part {
    fn evaluate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<ColumnarValue> {
        self.node.evaluate(columns, context)
    }

    /// The value on `rows` rows that `pick` picks out of a column.
    fn evaluate_on(
        &self,
        columns: &[ArrayRef],
        context: &EvalContext,
        rows: usize,
        pick: impl Fn(&ArrayRef) -> Result<ArrayRef>,
    ) -> Result<ColumnarValue> {
        let mut picked = columns.to_vec();
        for i in &self.columns {
            if let Some(column) = picked.get_mut(*i) {
                *column = pick(column)?;
            }
        }
        let context = EvalContext { rows, ..*context };
        self.node.evaluate(&picked, &context)
    }
}

/// `AND` or `OR`.
pub(super) struct Connective {
    pub(super) and: bool,
    pub(super) parts: Vec<Part>,
}

impl Connective {
    pub(super) fn evaluate(
        &self,
        columns: &[ArrayRef],
        context: &EvalContext,
    ) -> Result<ColumnarValue> {
        let Some((first, rest)) = self.parts.split_first() else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(self.and))));
        };
        let rows = context.rows;
        let mut so_far = booleans(first.evaluate(columns, context)?, rows)?;
        for part in rest {
            let decided = self.decided(&so_far);
            if decided == rows {
                break;
            }
            let value = if part.fallible && decided > 0 {
                let open = self.open(&so_far);
                let found = part.evaluate_on(columns, context, rows - decided, |column| {
                    Ok(filter(column, &open)?)
                })?;
                scatter(&booleans(found, rows - decided)?, &open, self.and)
            } else {
                booleans(part.evaluate(columns, context)?, rows)?
            };
            so_far = if self.and {
                and_kleene(&so_far, &value)?
            } else {
                or_kleene(&so_far, &value)?
            };
        }
        Ok(ColumnarValue::Array(Arc::new(so_far)))
    }

    /// How many rows are false (AND) or true (OR) already.
    fn decided(&self, so_far: &BooleanArray) -> usize {
        if self.and {
            so_far.false_count()
        } else {
            so_far.true_count()
        }
    }

    /// The rows that are not.
    fn open(&self, so_far: &BooleanArray) -> BooleanArray {
        let values = so_far.values();
        let undecided = if self.and { values.clone() } else { !values };
        BooleanArray::new(
            match so_far.nulls() {
                None => undecided,
                Some(nulls) => &undecided | &!nulls.inner(),
            },
            None,
        )
    }
}

/// The values of the rows that `open` picked in their places, `neutral` elsewhere.
fn scatter(found: &BooleanArray, open: &BooleanArray, neutral: bool) -> BooleanArray {
    let mut found = found.iter();
    open.values()
        .iter()
        .map(|open| {
            if open {
                found.next().flatten()
            } else {
                Some(neutral)
            }
        })
        .collect()
}

/// A value as an operand of `zip`.
enum Operand {
    Array(ArrayRef),
    Scalar(Scalar<ArrayRef>),
}

impl Operand {
    fn new(value: ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(array) => Self::Array(array),
            ColumnarValue::Scalar(scalar) => Self::Scalar(Scalar::new(scalar.to_array_of_size(1)?)),
        })
    }

    fn datum(&self) -> &dyn arrow::array::Datum {
        match self {
            Self::Array(array) => array,
            Self::Scalar(scalar) => scalar,
        }
    }
}

/// `truthy` where `mask` is true, else `falsy`.
fn choose(
    mask: &BooleanArray,
    truthy: ColumnarValue,
    falsy: ColumnarValue,
) -> Result<ColumnarValue> {
    let chosen = mask.true_count();
    if chosen == mask.len() {
        return Ok(truthy);
    }
    if chosen == 0 {
        return Ok(falsy);
    }
    let (truthy, falsy) = (Operand::new(truthy)?, Operand::new(falsy)?);
    Ok(ColumnarValue::Array(zip(
        mask,
        truthy.datum(),
        falsy.datum(),
    )?))
}

/// `CASE`.
pub(super) struct Case {
    pub(super) branches: Vec<(Part, Part)>,
    pub(super) otherwise: Box<Part>,
}

impl Case {
    pub(super) fn evaluate(
        &self,
        columns: &[ArrayRef],
        context: &EvalContext,
    ) -> Result<ColumnarValue> {
        let later_parts = self
            .branches
            .iter()
            .enumerate()
            .flat_map(|(i, (when, then))| {
                let when = (i > 0).then_some(when);
                when.into_iter().chain([then])
            });
        let fallible = later_parts
            .chain([self.otherwise.as_ref()])
            .any(|part| part.fallible);
        if fallible {
            self.evaluate_by_rows(columns, context)
        } else {
            self.evaluate_all(columns, context)
        }
    }

    /// Every part on every row, then the right one of each.
    fn evaluate_all(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<ColumnarValue> {
        let mut value = self.otherwise.evaluate(columns, context)?;
        for (when, then) in self.branches.iter().rev() {
            let when = booleans(when.evaluate(columns, context)?, context.rows)?;
            value = choose(&when, then.evaluate(columns, context)?, value)?;
        }
        Ok(value)
    }

    /// Every part on the rows that reach it.
    fn evaluate_by_rows(
        &self,
        columns: &[ArrayRef],
        context: &EvalContext,
    ) -> Result<ColumnarValue> {
        let mut pieces = Pieces::new(context.rows);
        // `None`: all rows.
        let mut open: Option<UInt32Array> = None;
        for (when, then) in &self.branches {
            let rows = open.as_ref().map_or(context.rows, UInt32Array::len);
            let holds = booleans(on_rows(when, columns, context, open.as_ref())?, rows)?;
            let holds = match holds.nulls() {
                None => holds,
                Some(nulls) => BooleanArray::new(holds.values() & nulls.inner(), None),
            };
            let matched = rows_where(open.as_ref(), holds.values(), true);
            if matched.len() == context.rows {
                return then.evaluate(columns, context);
            }
            if !matched.is_empty() {
                let value = on_rows(then, columns, context, Some(&matched))?;
                pieces.push(value, &matched)?;
            }
            let rest = rows_where(open.as_ref(), holds.values(), false);
            let done = rest.is_empty();
            open = Some(rest);
            if done {
                break;
            }
        }
        match open {
            None => return self.otherwise.evaluate(columns, context),
            Some(rows) if rows.len() == context.rows => {
                return self.otherwise.evaluate(columns, context);
            }
            Some(rows) if rows.is_empty() => {}
            Some(rows) => {
                let value = on_rows(&self.otherwise, columns, context, Some(&rows))?;
                pieces.push(value, &rows)?;
            }
        }
        pieces.finish()
    }
}

/// The value of `part` on some of the rows, or on all.
fn on_rows(
    part: &Part,
    columns: &[ArrayRef],
    context: &EvalContext,
    rows: Option<&UInt32Array>,
) -> Result<ColumnarValue> {
    match rows {
        None => part.evaluate(columns, context),
        Some(rows) => part.evaluate_on(columns, context, rows.len(), |column| {
            Ok(take(column, rows, None)?)
        }),
    }
}

/// Those of the `open` rows whose bit is `wanted`.
fn rows_where(open: Option<&UInt32Array>, bits: &BooleanBuffer, wanted: bool) -> UInt32Array {
    let bits = bits.iter();
    match open {
        Some(rows) => {
            let rows = rows.values().iter().zip(bits);
            rows.filter(|(_, bit)| *bit == wanted)
                .map(|(row, _)| *row)
                .collect::<Vec<_>>()
                .into()
        }
        None => (0u32..)
            .zip(bits)
            .filter(|(_, bit)| *bit == wanted)
            .map(|(row, _)| row)
            .collect::<Vec<_>>()
            .into(),
    }
}

/// Values of disjoint sets of rows that together make a column.
struct Pieces {
    values: Vec<ArrayRef>,
    /// Piece and position of every row's value.
    places: Vec<(usize, usize)>,
}

impl Pieces {
    fn new(rows: usize) -> Self {
        Self {
            values: Vec::new(),
            places: vec![(0, 0); rows],
        }
    }

    fn push(&mut self, value: ColumnarValue, rows: &UInt32Array) -> Result<()> {
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let piece = self.values.len();
        self.values
            .push(into_array(value, if is_scalar { 1 } else { rows.len() })?);
        for (i, row) in rows.values().iter().enumerate() {
            let row = usize::try_from(*row).unwrap_or(usize::MAX);
            if let Some(place) = self.places.get_mut(row) {
                *place = (piece, if is_scalar { 0 } else { i });
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<ColumnarValue> {
        let values: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(interleave(&values, &self.places)?))
    }
}

/// `COALESCE`: the first value that is not NULL.
pub(super) struct Coalesce {
    pub(super) parts: Vec<Part>,
}

impl Coalesce {
    pub(super) fn evaluate(
        &self,
        columns: &[ArrayRef],
        context: &EvalContext,
    ) -> Result<ColumnarValue> {
        evaluate_from(&self.parts, columns, context)
    }
}

fn evaluate_from(
    parts: &[Part],
    columns: &[ArrayRef],
    context: &EvalContext,
) -> Result<ColumnarValue> {
    let Some((first, rest)) = parts.split_first() else {
        return Ok(ColumnarValue::Scalar(ScalarValue::Null));
    };
    let value = first.evaluate(columns, context)?;
    if rest.is_empty() {
        return Ok(value);
    }
    let array = match value {
        ColumnarValue::Scalar(scalar) if scalar.is_null() => {
            return evaluate_from(rest, columns, context);
        }
        ColumnarValue::Scalar(_) => return Ok(value),
        ColumnarValue::Array(array) => array,
    };
    let present = is_not_null(&array)?;
    let missing = present.false_count();
    if missing == 0 {
        return Ok(ColumnarValue::Array(array));
    }
    if missing == context.rows {
        return evaluate_from(rest, columns, context);
    }
    if !rest.iter().any(|part| part.fallible) {
        let rest = evaluate_from(rest, columns, context)?;
        return choose(&present, ColumnarValue::Array(array), rest);
    }
    let present_rows = rows_where(None, present.values(), true);
    let missing_rows = rows_where(None, present.values(), false);
    let mut pieces = Pieces::new(context.rows);
    let found = take(&array, &present_rows, None)?;
    pieces.push(ColumnarValue::Array(found), &present_rows)?;
    let mut picked = columns.to_vec();
    for i in rest.iter().flat_map(|part| &part.columns) {
        if let (Some(to), Some(from)) = (picked.get_mut(*i), columns.get(*i)) {
            *to = take(from, &missing_rows, None)?;
        }
    }
    let context = EvalContext {
        rows: missing,
        ..*context
    };
    pieces.push(evaluate_from(rest, &picked, &context)?, &missing_rows)?;
    pieces.finish()
}
