//! What makes the values of one column.

use chrono_tz::Tz;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::Rng;

use crate::connectors::options::{Options, wrong_value};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::types::calendar::utc_offset;
use crate::types::data_type::MAX_LENGTH;
use crate::types::{DataType, TypeKind};

const DAY_MS: i64 = 86_400_000;

/// Makes the values of a column or of a part of it.
#[derive(Debug, Clone)]
pub(super) struct Generator {
    kind: Kind,
    null_rate: f64,
}

#[derive(Debug, Clone)]
enum Kind {
    Boolean,
    /// A whole number between two others, both included.
    Integer(i64, i64),
    Floating(f64, f64),
    Decimal(f64, f64),
    Text(Length),
    Bytes(Length),
    /// The time now, at most so many ms back.
    Past(i64),
    Date,
    Time,
    Array(Box<Generator>, usize),
    Map(Box<Generator>, Box<Generator>, usize),
    Row(Vec<Generator>),
    /// Start and number of values.
    Sequence(i64, u64),
}

#[derive(Debug, Clone, Copy)]
struct Length {
    max: usize,
    varies: bool,
}

/// What values may depend on besides random numbers.
pub(super) struct Moment {
    /// The clock, ms.
    pub(super) now_ms: i64,
    /// The session's time zone.
    pub(super) zone: Tz,
}

/// Reads options under one path and notes their keys.
struct Fields<'a> {
    path: &'a str,
    options: Options<'a>,
    known: &'a mut Vec<String>,
}

impl Fields<'_> {
    fn key(&mut self, name: &str) -> String {
        let key = format!("{}.{name}", self.path);
        self.known.push(key.clone());
        key
    }

    fn bounds<T: std::str::FromStr + PartialOrd + Copy>(
        &mut self,
        min: T,
        max: T,
    ) -> Result<(T, T)> {
        let (min_key, max_key) = (self.key("min"), self.key("max"));
        let min = self.options.parsed(&min_key, "a number")?.unwrap_or(min);
        let max = self.options.parsed(&max_key, "a number")?.unwrap_or(max);
        if min > max {
            let text = self.options.get(&max_key).unwrap_or("");
            return Err(wrong_value(&max_key, text, "it is less than the minimum"));
        }
        Ok((min, max))
    }

    fn integers(&mut self, min: i64, max: i64) -> Result<Kind> {
        let (low, high) = self.bounds(min, max)?;
        if low < min || high > max {
            let key = format!("{}.{}", self.path, if low < min { "min" } else { "max" });
            let text = self.options.get(&key).unwrap_or("");
            return Err(wrong_value(
                &key,
                text,
                "it is out of the range of the type",
            ));
        }
        Ok(Kind::Integer(low, high))
    }

    fn length(&mut self, default: usize) -> Result<usize> {
        let key = self.key("length");
        Ok(self.options.parsed(&key, "a length")?.unwrap_or(default))
    }

    fn variable_length(&mut self, declared: u32) -> Result<Length> {
        let declared = if declared == MAX_LENGTH {
            100
        } else {
            declared
        };
        let max = self.length(usize::try_from(declared).unwrap_or(100))?;
        let key = self.key("var-len");
        let varies = self.options.boolean(&key, false)?;
        Ok(Length { max, varies })
    }

    fn null_rate(&mut self) -> Result<f64> {
        let key = self.key("null-rate");
        Ok(self.options.parsed(&key, "a share")?.unwrap_or(0.0))
    }

    fn past(&mut self) -> Result<Kind> {
        let key = self.key("max-past");
        let past = self.options.duration(&key)?.unwrap_or_default();
        Ok(Kind::Past(
            i64::try_from(past.as_millis()).unwrap_or(i64::MAX),
        ))
    }
}

fn unsupported(data_type: &DataType) -> Error {
    Error::options(format!("Unsupported type: {data_type}"))
}

impl Generator {
    /// Random values, with the options under `path`; their keys are added to `known`.
    pub(super) fn random(
        data_type: &DataType,
        path: &str,
        options: Options<'_>,
        known: &mut Vec<String>,
    ) -> Result<Self> {
        let mut part = |suffix: &str, t: &DataType| {
            Self::random(t, &format!("{path}.{suffix}"), options, known).map(Box::new)
        };
        let nested = match &data_type.kind {
            TypeKind::Array(element) => Some(Kind::Array(part("element", element)?, 0)),
            TypeKind::Multiset(element) => Some(Kind::Map(
                part("element", element)?,
                Box::new(Self {
                    kind: Kind::Integer(0, 10),
                    null_rate: 0.0,
                }),
                0,
            )),
            TypeKind::Map(key, value) => {
                Some(Kind::Map(part("key", key)?, part("value", value)?, 0))
            }
            TypeKind::Row(fields) => {
                let parts = fields
                    .iter()
                    .map(|f| part(&f.name, &f.data_type).map(|g| *g));
                Some(Kind::Row(parts.collect::<Result<_>>()?))
            }
            _ => None,
        };
        let mut fields = Fields {
            path,
            options,
            known,
        };
        let kind = match nested {
            Some(Kind::Array(element, _)) => Kind::Array(element, fields.length(3)?),
            Some(Kind::Map(key, value, _)) => Kind::Map(key, value, fields.length(3)?),
            Some(row) => row,
            None => Self::scalar(data_type, &mut fields)?,
        };
        let null_rate = match data_type.kind {
            TypeKind::Binary(_) | TypeKind::VarBinary(_) | TypeKind::Date | TypeKind::Time(_) => {
                0.0
            }
            _ => fields.null_rate()?,
        };
        Ok(Self { kind, null_rate })
    }

    fn scalar(data_type: &DataType, fields: &mut Fields<'_>) -> Result<Kind> {
        let fixed = |n: u32| Length {
            max: usize::try_from(n).unwrap_or(0),
            varies: false,
        };
        Ok(match &data_type.kind {
            TypeKind::Boolean => Kind::Boolean,
            TypeKind::TinyInt => fields.integers(i8::MIN.into(), i8::MAX.into())?,
            TypeKind::SmallInt => fields.integers(i16::MIN.into(), i16::MAX.into())?,
            TypeKind::Int => fields.integers(i32::MIN.into(), i32::MAX.into())?,
            TypeKind::BigInt | TypeKind::IntervalDayTime => fields.integers(i64::MIN, i64::MAX)?,
            TypeKind::IntervalYearMonth => {
                let (min, max) = fields.bounds(0, 120_000)?;
                Kind::Integer(min, max)
            }
            // Java's MIN_VALUE is the least above zero.
            TypeKind::Float => {
                let (min, max) = fields.bounds(f64::from(f32::from_bits(1)), f32::MAX.into())?;
                Kind::Floating(min, max)
            }
            TypeKind::Double => {
                let (min, max) = fields.bounds(f64::from_bits(1), f64::MAX)?;
                Kind::Floating(min, max)
            }
            TypeKind::Decimal(precision, scale) => {
                let (min, max) = fields.bounds(f64::from_bits(1), f64::MAX)?;
                let ten = |n: i32| 10f64.powi(n);
                let (precision, scale) = (i32::from(*precision), i32::from(*scale));
                let largest = ten(precision - scale) - ten(-scale);
                Kind::Decimal(min.max(-largest), max.min(largest))
            }
            TypeKind::Char(n) => Kind::Text(fixed(*n)),
            TypeKind::VarChar(n) => Kind::Text(fields.variable_length(*n)?),
            TypeKind::Binary(n) => Kind::Bytes(fixed(*n)),
            TypeKind::VarBinary(n) => Kind::Bytes(fields.variable_length(*n)?),
            TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => fields.past()?,
            TypeKind::Date => Kind::Date,
            TypeKind::Time(_) => Kind::Time,
            _ => return Err(unsupported(data_type)),
        })
    }

    /// The values from `start` to `end`, one after the other.
    pub(super) fn sequence(
        data_type: &DataType,
        path: &str,
        options: Options<'_>,
        known: &mut Vec<String>,
    ) -> Result<Self> {
        let mut bound = |name: &str| -> Result<i64> {
            let key = format!("{path}.{name}");
            known.push(key.clone());
            options.parsed(&key, "a whole number")?.ok_or_else(|| {
                Error::options(format!(
                    "Could not find required property '{key}' for sequence generator."
                ))
            })
        };
        let (start, end) = (bound("start")?, bound("end")?);
        let kind = match &data_type.kind {
            TypeKind::Boolean => Kind::Boolean,
            TypeKind::Date => Kind::Date,
            TypeKind::Time(_) => Kind::Time,
            TypeKind::Timestamp(_)
            | TypeKind::TimestampLtz(_)
            | TypeKind::IntervalYearMonth
            | TypeKind::IntervalDayTime
            | TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Multiset(_)
            | TypeKind::Row(_)
            | TypeKind::Structured(..)
            | TypeKind::Null
            | TypeKind::Variant
            | TypeKind::Bitmap => return Err(unsupported(data_type)),
            _ => {
                let count = (i128::from(end) - i128::from(start) + 1).unsigned_abs();
                Kind::Sequence(start, u64::try_from(count).unwrap_or(u64::MAX))
            }
        };
        Ok(Self {
            kind,
            null_rate: 0.0,
        })
    }

    /// How many rows there are, when a sequence says so.
    pub(super) fn rows(&self) -> Option<u64> {
        match self.kind {
            Kind::Sequence(_, count) => Some(count),
            _ => None,
        }
    }

    /// Appends the value of row `row`.
    pub(super) fn push(
        &self,
        rng: &mut SplitMix64,
        row: u64,
        moment: &Moment,
        out: &mut ColumnBuilder,
    ) -> Result<()> {
        if self.null_rate > 0.0 && unit(rng) <= self.null_rate {
            out.push_null();
            return Ok(());
        }
        match (&self.kind, out) {
            (Kind::Boolean, ColumnBuilder::Boolean(values, nulls)) => {
                values.append(rng.next_u64() & 1 == 0);
                nulls.append_non_null();
            }
            (Kind::Integer(min, max), out) => push_integer(between(rng, *min, *max), out)?,
            (Kind::Sequence(start, _), out) => {
                push_integer(start.wrapping_add_unsigned(row), out)?;
            }
            (Kind::Floating(min, max), ColumnBuilder::Double(p)) => {
                p.push(uniform(rng, *min, *max));
            }
            #[expect(clippy::cast_possible_truncation, reason = "the column is a FLOAT")]
            (Kind::Floating(min, max), ColumnBuilder::Float(p)) => {
                p.push(uniform(rng, *min, *max) as f32);
            }
            (Kind::Decimal(min, max), ColumnBuilder::Decimal(p, precision, scale)) => {
                p.push(decimal(uniform(rng, *min, *max), *precision, *scale));
            }
            (Kind::Text(length), ColumnBuilder::String(b)) => {
                let n = length.next(rng);
                push_hex(rng, n, b.data());
                b.commit();
            }
            (Kind::Bytes(length), ColumnBuilder::Binary(b)) => {
                let n = length.next(rng);
                let data = b.data();
                let end = data.len() + n;
                while data.len() < end {
                    data.extend_from_slice(&rng.next_u64().to_le_bytes());
                }
                data.truncate(end);
                b.commit();
            }
            (Kind::Past(past), ColumnBuilder::Timestamp(p, unit, _)) => {
                let back = if *past > 0 { between(rng, 0, *past) } else { 0 };
                let ms = moment.now_ms.saturating_sub(back);
                p.push(match unit {
                    arrow::datatypes::TimeUnit::Microsecond => ms.saturating_mul(1000),
                    arrow::datatypes::TimeUnit::Nanosecond => ms.saturating_mul(1_000_000),
                    _ => ms,
                });
            }
            (Kind::Date, ColumnBuilder::Date(p)) => {
                p.push(i32::try_from(moment.local_ms().div_euclid(DAY_MS)).unwrap_or(0));
            }
            (Kind::Time, ColumnBuilder::Time(p)) => {
                p.push(i32::try_from(moment.local_ms().rem_euclid(DAY_MS)).unwrap_or(0));
            }
            (Kind::Array(element, n), ColumnBuilder::List(ends, child)) => {
                for _ in 0..*n {
                    element.push(rng, row, moment, child)?;
                }
                ends.push(child.len());
            }
            (Kind::Map(key, value, n), ColumnBuilder::Map(ends, keys, values)) => {
                for _ in 0..*n {
                    key.push(rng, row, moment, keys)?;
                    value.push(rng, row, moment, values)?;
                }
                ends.push(keys.len());
            }
            (Kind::Row(generators), ColumnBuilder::Row(nulls, fields)) => {
                for (generator, (_, field)) in generators.iter().zip(fields) {
                    generator.push(rng, row, moment, field)?;
                }
                nulls.append_non_null();
            }
            (kind, _) => {
                return Err(Error::internal(format!(
                    "no column of its type for {kind:?}"
                )));
            }
        }
        Ok(())
    }
}

impl Length {
    fn next(self, rng: &mut SplitMix64) -> usize {
        if !self.varies || self.max <= 1 {
            return self.max;
        }
        let max = i64::try_from(self.max - 1).unwrap_or(i64::MAX);
        usize::try_from(between(rng, 1, max)).unwrap_or(1)
    }
}

impl Moment {
    fn local_ms(&self) -> i64 {
        let seconds = self.now_ms.div_euclid(1000);
        self.now_ms + utc_offset(self.zone, seconds) * 1000
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the bounds of the options fit the type; sequences wrap as in Flink"
)]
fn push_integer(value: i64, out: &mut ColumnBuilder) -> Result<()> {
    match out {
        ColumnBuilder::TinyInt(p) => p.push(value as i8),
        ColumnBuilder::SmallInt(p) => p.push(value as i16),
        ColumnBuilder::Int(p) => p.push(value as i32),
        ColumnBuilder::BigInt(p) => p.push(value),
        ColumnBuilder::Millis(p) => p.push(value),
        ColumnBuilder::Months(p) => p.push(value as i32),
        ColumnBuilder::Float(p) => p.push(value as f32),
        ColumnBuilder::Double(p) => p.push(value as f64),
        ColumnBuilder::Decimal(p, precision, scale) => {
            p.push(decimal(value as f64, *precision, *scale));
        }
        ColumnBuilder::String(b) => b.push(value.to_string().as_bytes()),
        ColumnBuilder::Binary(b) => b.push(&value.to_be_bytes()),
        _ => {
            return Err(Error::internal(
                "a whole number for a column of another type",
            ));
        }
    }
    Ok(())
}

/// A number from 0 up to, not including, 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn unit(rng: &mut SplitMix64) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn uniform(rng: &mut SplitMix64, min: f64, max: f64) -> f64 {
    let u = unit(rng);
    u * max + (1.0 - u) * min
}

/// A whole number between two others, both included.
fn between(rng: &mut SplitMix64, min: i64, max: i64) -> i64 {
    let span = (i128::from(max) - i128::from(min) + 1).cast_unsigned();
    let offset = (u128::from(rng.next_u64()) * span) >> 64;
    min.wrapping_add_unsigned(offset as u64)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float cast saturates, and the range is cut after it"
)]
fn decimal(value: f64, precision: u8, scale: u8) -> i128 {
    let limit = 10i128.pow(u32::from(precision.min(38))) - 1;
    let unscaled = (value * 10f64.powi(i32::from(scale))).round() as i128;
    unscaled.clamp(-limit, limit)
}

fn push_hex(rng: &mut SplitMix64, length: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let end = out.len() + length;
    while out.len() < end {
        let mut word = rng.next_u64();
        for _ in 0..16.min(end - out.len()) {
            out.push(DIGITS[usize::try_from(word & 15).unwrap_or(0)]);
            word >>= 4;
        }
    }
}
