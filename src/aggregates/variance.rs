//! `VAR_*` and `STDDEV_*`, by Welford's method, and `$WELFORD_M2`, to which Flink's planner reduces
//! them.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float64Type, Int64Type};

use super::convert::{from_f64, from_i64, from_i128, to_f64, to_i64};
use super::saved::{gather, scatter};
use super::state::Kernel;
use super::value::{Numbers, NumbersBuilder};
use crate::error::Result;
use crate::state::keys::grow;

/// What is made of the squared distances from the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Their sum.
    SquaredDistances,
    /// Their sum by the number of values.
    VariancePopulation,
    /// Their sum by the number of values less one.
    VarianceSample,
    /// The root of [`Self::VariancePopulation`].
    DeviationPopulation,
    /// The root of [`Self::VarianceSample`].
    DeviationSample,
}

#[derive(Debug)]
pub(super) struct Variance {
    spread: Spread,
    result: ArrowType,
    counts: Vec<i64>,
    means: Vec<f64>,
    squares: Vec<f64>,
}

impl Variance {
    pub(super) fn new(spread: Spread, result: ArrowType) -> Self {
        Self {
            spread,
            result,
            counts: Vec::new(),
            means: Vec::new(),
            squares: Vec::new(),
        }
    }

    #[allow(clippy::cast_precision_loss)] // as Java does
    fn value(&self, slot: usize) -> Option<f64> {
        let (count, squares) = (self.counts[slot], self.squares[slot]);
        if count <= 0 || squares < 0.0 {
            return None;
        }
        let sample = || (count > 1).then(|| squares / (count - 1) as f64);
        match self.spread {
            Spread::SquaredDistances => Some(squares),
            Spread::VariancePopulation => Some(squares / count as f64),
            Spread::VarianceSample => sample(),
            Spread::DeviationPopulation => Some((squares / count as f64).powf(0.5)),
            Spread::DeviationSample => sample().map(|v| v.powf(0.5)),
        }
    }
}

/// Collects results. As Flink looks for changes in what the result is computed from, so does this.
#[derive(Debug)]
pub(super) struct VarianceBuilder {
    values: NumbersBuilder<f64>,
    last: [(i64, f64); 2],
}

#[allow(clippy::cast_precision_loss)] // as Java does
impl Kernel for Variance {
    type Columns = Numbers<f64>;
    type Builder = VarianceBuilder;

    fn resize(&mut self, slots: usize) {
        if slots > self.counts.len() {
            grow(&mut self.counts, slots, 0);
            grow(&mut self.means, slots, 0.0);
            grow(&mut self.squares, slots, 0.0);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Numbers<f64>> {
        any_to_f64(&args[0])
    }

    fn add(&mut self, slot: usize, column: &Numbers<f64>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.counts[slot] += 1;
            let count = self.counts[slot];
            if count > 0 {
                let before = value - self.means[slot];
                self.means[slot] += before / count as f64;
                self.squares[slot] += before * (value - self.means[slot]);
            }
        }
        Ok(())
    }

    fn subtract(&mut self, slot: usize, column: &Numbers<f64>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.counts[slot] -= 1;
            let count = self.counts[slot];
            if count > 0 {
                let before = value - self.means[slot];
                self.means[slot] -= before / count as f64;
                self.squares[slot] -= (value - self.means[slot]) * before;
            } else if count == 0 {
                self.means[slot] = 0.0;
                self.squares[slot] = 0.0;
            }
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.counts[slot] = 0;
        self.means[slot] = 0.0;
        self.squares[slot] = 0.0;
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        let (count, other) = (self.counts[into], self.counts[from]);
        if other > 0 && count == 0 {
            self.means[into] = self.means[from];
            self.squares[into] = self.squares[from];
        } else if other > 0 {
            let total = (count + other) as f64;
            let distance = self.means[from] - self.means[into];
            self.squares[into] +=
                self.squares[from] + count as f64 * other as f64 / total * distance * distance;
            self.means[into] += other as f64 / total * distance;
        }
        self.counts[into] = count + other;
        if self.counts[into] <= 0 {
            self.means[into] = 0.0;
            self.squares[into] = 0.0;
        }
        Ok(())
    }

    fn builder(&self, capacity: usize) -> VarianceBuilder {
        VarianceBuilder {
            values: NumbersBuilder::new(capacity),
            last: [(0, 0.0); 2],
        }
    }

    fn push(&self, slot: usize, builder: &mut VarianceBuilder) -> Result<()> {
        builder.values.push(self.value(slot));
        builder.last = [builder.last[1], (self.counts[slot], self.squares[slot])];
        Ok(())
    }

    fn last_two_differ(builder: &VarianceBuilder) -> bool {
        builder.last[0] != builder.last[1]
    }

    fn finish(&self, builder: VarianceBuilder) -> Result<ArrayRef> {
        cast_result(builder.values.finish(), &self.result)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            gather::<Int64Type>(&self.counts, slots),
            gather::<Float64Type>(&self.means, slots),
            gather::<Float64Type>(&self.squares, slots),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        scatter::<Int64Type>(&mut self.counts, slots, columns, 0)?;
        scatter::<Float64Type>(&mut self.means, slots, columns, 1)?;
        scatter::<Float64Type>(&mut self.squares, slots, columns, 2)
    }

    fn memory_size(&self) -> usize {
        (self.counts.capacity() + self.means.capacity() + self.squares.capacity()) * 8
    }
}

/// Any column of numbers as `f64`.
#[allow(clippy::cast_precision_loss)] // as Java does
pub(super) fn any_to_f64(array: &ArrayRef) -> Result<Numbers<f64>> {
    Ok(match array.data_type() {
        ArrowType::Float32 | ArrowType::Float64 => to_f64(array)?,
        ArrowType::Decimal128(precision, scale) => {
            let scale = u32::try_from(*scale).unwrap_or(0);
            let compact = *precision <= 18;
            let divisor = 10_i128.pow(scale) as f64;
            let convert = |v: i128| {
                if compact {
                    return v as f64 / divisor;
                }
                // The nearest number to the exact value.
                format!("{v}e-{scale}").parse().unwrap_or(f64::NAN)
            };
            let values: PrimitiveArray<Float64Type> =
                array.as_primitive::<Decimal128Type>().unary(convert);
            Numbers::of(&values)
        }
        _ => {
            let values: PrimitiveArray<Float64Type> = to_i64(array)?.unary(|v| v as f64);
            Numbers::of(&values)
        }
    })
}

/// Casts results as Java does: integers are saturated as INT or BIGINT, then cut.
#[allow(clippy::cast_possible_truncation)]
fn cast_result(values: PrimitiveArray<Float64Type>, t: &ArrowType) -> Result<ArrayRef> {
    match t {
        ArrowType::Float32 | ArrowType::Float64 => from_f64(values, t),
        ArrowType::Decimal128(_, scale) => {
            let scale = usize::try_from(*scale).unwrap_or(0);
            let values: PrimitiveArray<Decimal128Type> = values.unary_opt(|v| to_decimal(v, scale));
            from_i128(values, t)
        }
        ArrowType::Int64 => from_i64(values.unary(|v| v as i64), t),
        _ => from_i64(values.unary(|v| i64::from(v as i32)), t),
    }
}

/// The unscaled value of a number's decimal digits, rounded half up to `scale` digits; `None` if it
/// has more than 38.
fn to_decimal(value: f64, scale: usize) -> Option<i128> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits: String = fraction
        .chars()
        .chain(std::iter::repeat('0'))
        .take(scale)
        .collect();
    let unscaled: i128 = format!("{whole}{digits}").parse().ok()?;
    let up = fraction.as_bytes().get(scale).is_some_and(|d| *d >= b'5');
    let unscaled = unscaled.checked_add(i128::from(up))?;
    (unscaled < 10_i128.pow(38)).then_some(if value < 0.0 { -unscaled } else { unscaled })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_decimals_by_their_digits() {
        assert_eq!(to_decimal(1.005, 2), Some(101));
        assert_eq!(to_decimal(-2.5, 0), Some(-3));
        assert_eq!(to_decimal(1e-9, 8), Some(0));
        assert_eq!(to_decimal(1e38, 0), None);
        assert_eq!(to_decimal(f64::NAN, 0), None);
    }
}
