//! `SUM`, `$SUM0` and `AVG`: one kernel for each class of numbers.
//!
//! The state is the sum and the number of values that are not NULL; both go below zero if more is
//! withdrawn than was added. Integer sums wrap at the width of the result, as in Flink. Decimal sums
//! are exact: one that does not fit `DECIMAL(38, s)` is NULL until it fits again.

use arrow::array::ArrayRef;
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, i256,
};

use super::convert::{from_f64, from_i64, from_i128, to_f64, to_i64, to_i128};
use super::saved::{gather, scatter};
use super::state::Kernel;
use super::value::{Numbers, NumbersBuilder};
use crate::error::Result;
use crate::state::keys::grow;

/// What is made of the sum and the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The sum; NULL without a value.
    Sum,
    /// The sum; zero without a value.
    Sum0,
    /// The sum by the count; NULL without a value.
    Avg,
}

/// Sums of integers.
#[derive(Debug)]
pub(super) struct IntSum {
    mode: Mode,
    result: ArrowType,
    /// Bits that a result does not have.
    unused_bits: u32,
    sums: Vec<i64>,
    counts: Vec<i64>,
}

impl IntSum {
    pub(super) fn new(mode: Mode, result: ArrowType) -> Self {
        let unused_bits = match result {
            ArrowType::Int8 => 56,
            ArrowType::Int16 => 48,
            ArrowType::Int32 => 32,
            _ => 0,
        };
        Self {
            mode,
            result,
            unused_bits,
            sums: Vec::new(),
            counts: Vec::new(),
        }
    }

    #[inline]
    fn wrapped(&self, value: i64) -> i64 {
        (value << self.unused_bits) >> self.unused_bits
    }
}

impl Kernel for IntSum {
    type Columns = Numbers<i64>;
    type Builder = NumbersBuilder<i64>;

    fn resize(&mut self, slots: usize) {
        if slots > self.sums.len() {
            grow(&mut self.sums, slots, 0);
            grow(&mut self.counts, slots, 0);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Numbers<i64>> {
        Ok(Numbers::of(&to_i64(&args[0])?))
    }

    #[inline]
    fn add(&mut self, slot: usize, column: &Numbers<i64>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.sums[slot] = self.sums[slot].wrapping_add(value);
            self.counts[slot] += 1;
        }
        Ok(())
    }

    #[inline]
    fn subtract(&mut self, slot: usize, column: &Numbers<i64>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.sums[slot] = self.sums[slot].wrapping_sub(value);
            self.counts[slot] -= 1;
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.sums[slot] = 0;
        self.counts[slot] = 0;
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        self.sums[into] = self.sums[into].wrapping_add(self.sums[from]);
        self.counts[into] += self.counts[from];
        Ok(())
    }

    fn builder(&self, capacity: usize) -> NumbersBuilder<i64> {
        NumbersBuilder::new(capacity)
    }

    #[inline]
    fn push(&self, slot: usize, builder: &mut NumbersBuilder<i64>) -> Result<()> {
        let (sum, count) = (self.sums[slot], self.counts[slot]);
        builder.push(match self.mode {
            Mode::Sum0 => Some(self.wrapped(sum)),
            _ if count == 0 => None,
            Mode::Sum => Some(self.wrapped(sum)),
            Mode::Avg => Some(self.wrapped(sum.wrapping_div(count))),
        });
        Ok(())
    }

    #[inline]
    fn last_two_differ(builder: &NumbersBuilder<i64>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<i64>) -> Result<ArrayRef> {
        from_i64(builder.finish(), &self.result)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            gather::<Int64Type>(&self.sums, slots),
            gather::<Int64Type>(&self.counts, slots),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        scatter::<Int64Type>(&mut self.sums, slots, columns, 0)?;
        scatter::<Int64Type>(&mut self.counts, slots, columns, 1)
    }

    fn memory_size(&self) -> usize {
        (self.sums.capacity() + self.counts.capacity()) * size_of::<i64>()
    }
}

/// Sums of floating-point numbers. A sum of `FLOAT` is rounded to `FLOAT` at every step, a mean of
/// `FLOAT` is computed in `DOUBLE`.
#[derive(Debug)]
pub(super) struct FloatSum {
    mode: Mode,
    result: ArrowType,
    sums: Vec<f64>,
    counts: Vec<i64>,
}

impl FloatSum {
    pub(super) fn new(mode: Mode, result: ArrowType) -> Self {
        Self {
            mode,
            result,
            sums: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn single(&self) -> bool {
        self.result == ArrowType::Float32
    }

    fn set(&mut self, slot: usize, sum: f64, count: i64) {
        let round = self.single() && self.mode != Mode::Avg;
        self.sums[slot] = if round { rounded(sum) } else { sum };
        self.counts[slot] += count;
    }
}

/// To the precision of `FLOAT`.
#[allow(clippy::cast_possible_truncation)]
fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}

impl Kernel for FloatSum {
    type Columns = Numbers<f64>;
    type Builder = NumbersBuilder<f64>;

    fn resize(&mut self, slots: usize) {
        if slots > self.sums.len() {
            grow(&mut self.sums, slots, 0.0);
            grow(&mut self.counts, slots, 0);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Numbers<f64>> {
        to_f64(&args[0])
    }

    #[inline]
    fn add(&mut self, slot: usize, column: &Numbers<f64>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.set(slot, self.sums[slot] + value, 1);
        }
        Ok(())
    }

    #[inline]
    fn subtract(&mut self, slot: usize, column: &Numbers<f64>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.set(slot, self.sums[slot] - value, -1);
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.sums[slot] = 0.0;
        self.counts[slot] = 0;
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        self.set(into, self.sums[into] + self.sums[from], self.counts[from]);
        Ok(())
    }

    fn builder(&self, capacity: usize) -> NumbersBuilder<f64> {
        NumbersBuilder::new(capacity)
    }

    #[allow(clippy::cast_precision_loss)] // as Java does
    fn push(&self, slot: usize, builder: &mut NumbersBuilder<f64>) -> Result<()> {
        let (sum, count) = (self.sums[slot], self.counts[slot]);
        let value = match self.mode {
            Mode::Sum0 => Some(sum),
            _ if count == 0 => None,
            Mode::Sum => Some(sum),
            Mode::Avg => Some(sum / count as f64),
        };
        builder.push(value.map(|v| if self.single() { rounded(v) } else { v }));
        Ok(())
    }

    fn last_two_differ(builder: &NumbersBuilder<f64>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<f64>) -> Result<ArrayRef> {
        from_f64(builder.finish(), &self.result)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            gather::<Float64Type>(&self.sums, slots),
            gather::<Int64Type>(&self.counts, slots),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        scatter::<Float64Type>(&mut self.sums, slots, columns, 0)?;
        scatter::<Int64Type>(&mut self.counts, slots, columns, 1)
    }

    fn memory_size(&self) -> usize {
        self.sums.capacity() * size_of::<f64>() + self.counts.capacity() * size_of::<i64>()
    }
}

/// Sums of decimals of one scale.
#[derive(Debug)]
pub(super) struct DecimalSum {
    mode: Mode,
    result: ArrowType,
    /// 10 to the power of the digits that the result has after those of the argument.
    factor: i256,
    sums: Vec<i256>,
    counts: Vec<i64>,
}

impl DecimalSum {
    pub(super) fn new(mode: Mode, argument: &ArrowType, result: ArrowType) -> Self {
        let scale = |t: &ArrowType| match t {
            ArrowType::Decimal128(_, scale) => i32::from(*scale),
            _ => 0,
        };
        let digits = u32::try_from(scale(&result) - scale(argument)).unwrap_or(0);
        Self {
            mode,
            result,
            factor: i256::from_i128(10_i128.pow(digits)),
            sums: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn value(&self, slot: usize) -> Option<i128> {
        let (sum, count) = (self.sums[slot], self.counts[slot]);
        let exact = match self.mode {
            Mode::Sum0 => sum,
            _ if count == 0 => return None,
            Mode::Sum => sum,
            Mode::Avg => half_up(sum.checked_mul(self.factor)?, i256::from_i128(count.into()))?,
        };
        exact
            .to_i128()
            .filter(|v| v.unsigned_abs() < 10_u128.pow(38))
    }
}

/// A quotient, rounded to the nearest, away from zero in the middle.
fn half_up(dividend: i256, divisor: i256) -> Option<i256> {
    let quotient = dividend.checked_div(divisor)?;
    let rest = dividend.checked_rem(divisor)?.wrapping_abs();
    if rest.wrapping_add(rest) < divisor.wrapping_abs() {
        return Some(quotient);
    }
    let negative = (dividend < i256::ZERO) != (divisor < i256::ZERO);
    let away = if negative { i256::MINUS_ONE } else { i256::ONE };
    quotient.checked_add(away)
}

impl Kernel for DecimalSum {
    type Columns = Numbers<i128>;
    type Builder = NumbersBuilder<i128>;

    fn resize(&mut self, slots: usize) {
        if slots > self.sums.len() {
            grow(&mut self.sums, slots, i256::ZERO);
            grow(&mut self.counts, slots, 0);
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Numbers<i128>> {
        to_i128(&args[0])
    }

    fn add(&mut self, slot: usize, column: &Numbers<i128>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.sums[slot] = self.sums[slot].wrapping_add(i256::from_i128(value));
            self.counts[slot] += 1;
        }
        Ok(())
    }

    fn subtract(&mut self, slot: usize, column: &Numbers<i128>, row: usize) -> Result<()> {
        if let Some(value) = column.get(row) {
            self.sums[slot] = self.sums[slot].wrapping_sub(i256::from_i128(value));
            self.counts[slot] -= 1;
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.sums[slot] = i256::ZERO;
        self.counts[slot] = 0;
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        self.sums[into] = self.sums[into].wrapping_add(self.sums[from]);
        self.counts[into] += self.counts[from];
        Ok(())
    }

    fn builder(&self, capacity: usize) -> NumbersBuilder<i128> {
        NumbersBuilder::new(capacity)
    }

    fn push(&self, slot: usize, builder: &mut NumbersBuilder<i128>) -> Result<()> {
        builder.push(self.value(slot));
        Ok(())
    }

    fn last_two_differ(builder: &NumbersBuilder<i128>) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: NumbersBuilder<i128>) -> Result<ArrayRef> {
        from_i128(builder.finish::<Decimal128Type>(), &self.result)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            gather::<Decimal256Type>(&self.sums, slots),
            gather::<Int64Type>(&self.counts, slots),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        scatter::<Decimal256Type>(&mut self.sums, slots, columns, 0)?;
        scatter::<Int64Type>(&mut self.counts, slots, columns, 1)
    }

    fn memory_size(&self) -> usize {
        self.sums.capacity() * size_of::<i256>() + self.counts.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_in_the_middle_is_rounded_away_from_zero() {
        let half_up = |a: i128, b: i128| half_up(i256::from_i128(a), i256::from_i128(b)).unwrap();
        assert_eq!(half_up(5, 2), i256::from_i128(3));
        assert_eq!(half_up(-5, 2), i256::from_i128(-3));
        assert_eq!(half_up(4, 3), i256::from_i128(1));
        assert_eq!(half_up(-1, -2), i256::from_i128(1));
    }
}
