//! Columns under construction: one typed vector a column, which a decoder appends to value by value
//! and can cut back to a former length when a row turns out to be bad.

mod storage;

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, ListArray, MapArray, NullArray,
    NullBufferBuilder, PrimitiveArray, StringArray, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType, Field, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    Time32MillisecondType, TimeUnit,
};

pub use self::storage::{Bytes, Ends, Primitive};

use crate::error::Result;
use crate::types::data_type::{UTC, timestamp_unit};
use crate::types::{DataType, TypeKind};

/// A column under construction, by kind of storage.
#[derive(Debug)]
pub enum ColumnBuilder {
    /// `NULL` only.
    Null(usize),
    /// `BOOLEAN`.
    Boolean(BooleanBufferBuilder, NullBufferBuilder),
    /// `TINYINT`.
    TinyInt(Primitive<Int8Type>),
    /// `SMALLINT`.
    SmallInt(Primitive<Int16Type>),
    /// `INT`.
    Int(Primitive<Int32Type>),
    /// `BIGINT`.
    BigInt(Primitive<Int64Type>),
    /// `FLOAT`.
    Float(Primitive<Float32Type>),
    /// `DOUBLE`.
    Double(Primitive<Float64Type>),
    /// `DECIMAL(p, s)`: unscaled values.
    Decimal(Primitive<Decimal128Type>, u8, u8),
    /// `CHAR`, `VARCHAR`, `VARIANT`: values MUST be UTF-8.
    String(Bytes),
    /// `BINARY`, `VARBINARY`.
    Binary(Bytes),
    /// `DATE`: days.
    Date(Primitive<Date32Type>),
    /// `TIME`: ms of the day.
    Time(Primitive<Time32MillisecondType>),
    /// Timestamps in the unit of the precision; with `true` an instant.
    Timestamp(Primitive<Int64Type>, TimeUnit, bool),
    /// `INTERVAL YEAR TO MONTH`.
    Months(Primitive<IntervalYearMonthType>),
    /// `INTERVAL DAY TO SECOND`.
    Millis(Primitive<DurationMillisecondType>),
    /// `ARRAY`.
    List(Ends, Box<ColumnBuilder>),
    /// `MAP`, `MULTISET`.
    Map(Ends, Box<ColumnBuilder>, Box<ColumnBuilder>),
    /// `ROW`.
    Row(NullBufferBuilder, Vec<(String, ColumnBuilder)>),
}

impl ColumnBuilder {
    /// An empty column of a type.
    #[must_use]
    pub fn new(data_type: &DataType) -> Self {
        match &data_type.kind {
            TypeKind::Null => Self::Null(0),
            TypeKind::Boolean => Self::Boolean(
                BooleanBufferBuilder::new(1024),
                NullBufferBuilder::new(1024),
            ),
            TypeKind::TinyInt => Self::TinyInt(Primitive::new()),
            TypeKind::SmallInt => Self::SmallInt(Primitive::new()),
            TypeKind::Int => Self::Int(Primitive::new()),
            TypeKind::BigInt => Self::BigInt(Primitive::new()),
            TypeKind::Float => Self::Float(Primitive::new()),
            TypeKind::Double => Self::Double(Primitive::new()),
            TypeKind::Decimal(p, s) => Self::Decimal(Primitive::new(), *p, *s),
            TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Variant => {
                Self::String(Bytes::new())
            }
            TypeKind::Binary(_) | TypeKind::VarBinary(_) | TypeKind::Bitmap => {
                Self::Binary(Bytes::new())
            }
            TypeKind::Date => Self::Date(Primitive::new()),
            TypeKind::Time(_) => Self::Time(Primitive::new()),
            TypeKind::Timestamp(p) => Self::Timestamp(Primitive::new(), timestamp_unit(*p), false),
            TypeKind::TimestampLtz(p) => {
                Self::Timestamp(Primitive::new(), timestamp_unit(*p), true)
            }
            TypeKind::IntervalYearMonth => Self::Months(Primitive::new()),
            TypeKind::IntervalDayTime => Self::Millis(Primitive::new()),
            TypeKind::Array(element) => Self::List(Ends::new(), Box::new(Self::new(element))),
            TypeKind::Map(key, value) => Self::Map(
                Ends::new(),
                Box::new(Self::new(key)),
                Box::new(Self::new(value)),
            ),
            TypeKind::Multiset(element) => Self::Map(
                Ends::new(),
                Box::new(Self::new(element)),
                Box::new(Self::new(&TypeKind::Int.not_null())),
            ),
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => Self::Row(
                NullBufferBuilder::new(1024),
                fields
                    .iter()
                    .map(|f| (f.name.clone(), Self::new(&f.data_type)))
                    .collect(),
            ),
        }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Null(len) => *len,
            Self::Boolean(values, _) => values.len(),
            Self::TinyInt(p) => p.len(),
            Self::SmallInt(p) => p.len(),
            Self::Int(p) => p.len(),
            Self::BigInt(p) | Self::Timestamp(p, ..) => p.len(),
            Self::Float(p) => p.len(),
            Self::Double(p) => p.len(),
            Self::Decimal(p, ..) => p.len(),
            Self::String(b) | Self::Binary(b) => b.len(),
            Self::Date(p) => p.len(),
            Self::Time(p) => p.len(),
            Self::Months(p) => p.len(),
            Self::Millis(p) => p.len(),
            Self::List(ends, _) | Self::Map(ends, ..) => ends.len(),
            Self::Row(nulls, _) => nulls.len(),
        }
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the longest variable-width buffer inside: a decoder cuts the batch when it grows
    /// large, far below the 2 GiB that Arrow's offsets can address.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        match self {
            Self::String(b) | Self::Binary(b) => b.bytes_used(),
            Self::List(_, element) => element.bytes_used().max(element.len()),
            Self::Map(_, key, value) => key.bytes_used().max(value.bytes_used()).max(key.len()),
            Self::Row(_, fields) => fields
                .iter()
                .map(|(_, f)| f.bytes_used())
                .max()
                .unwrap_or(0),
            _ => 0,
        }
    }

    /// Appends `NULL`.
    pub fn push_null(&mut self) {
        match self {
            Self::Null(len) => *len += 1,
            Self::Boolean(values, nulls) => {
                values.append(false);
                nulls.append_null();
            }
            Self::TinyInt(p) => p.push_null(),
            Self::SmallInt(p) => p.push_null(),
            Self::Int(p) => p.push_null(),
            Self::BigInt(p) | Self::Timestamp(p, ..) => p.push_null(),
            Self::Float(p) => p.push_null(),
            Self::Double(p) => p.push_null(),
            Self::Decimal(p, ..) => p.push_null(),
            Self::String(b) | Self::Binary(b) => b.push_null(),
            Self::Date(p) => p.push_null(),
            Self::Time(p) => p.push_null(),
            Self::Months(p) => p.push_null(),
            Self::Millis(p) => p.push_null(),
            Self::List(ends, element) => ends.push_null(element.len()),
            Self::Map(ends, key, _) => ends.push_null(key.len()),
            Self::Row(nulls, fields) => {
                nulls.append_null();
                for (_, field) in fields {
                    field.push_null();
                }
            }
        }
    }

    /// Cuts back to the first `len` values, and a value that was begun after them.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Self::Null(n) => *n = len.min(*n),
            Self::Boolean(values, nulls) => {
                values.truncate(len);
                nulls.truncate(len);
            }
            Self::TinyInt(p) => p.truncate(len),
            Self::SmallInt(p) => p.truncate(len),
            Self::Int(p) => p.truncate(len),
            Self::BigInt(p) | Self::Timestamp(p, ..) => p.truncate(len),
            Self::Float(p) => p.truncate(len),
            Self::Double(p) => p.truncate(len),
            Self::Decimal(p, ..) => p.truncate(len),
            Self::String(b) | Self::Binary(b) => b.truncate(len),
            Self::Date(p) => p.truncate(len),
            Self::Time(p) => p.truncate(len),
            Self::Months(p) => p.truncate(len),
            Self::Millis(p) => p.truncate(len),
            Self::List(ends, element) => element.truncate(ends.truncate(len)),
            Self::Map(ends, key, value) => {
                let children = ends.truncate(len);
                key.truncate(children);
                value.truncate(children);
            }
            Self::Row(nulls, fields) => {
                nulls.truncate(len);
                for (_, field) in fields {
                    field.truncate(len);
                }
            }
        }
    }

    /// Appends a copy of value `from`, `NULL` included.
    pub fn push_copy(&mut self, from: usize) {
        match self {
            Self::Null(len) => *len += 1,
            Self::Boolean(values, nulls) => {
                values.append(values.get_bit(from));
                nulls.append(nulls.is_valid(from));
            }
            Self::TinyInt(p) => p.push_copy(from),
            Self::SmallInt(p) => p.push_copy(from),
            Self::Int(p) => p.push_copy(from),
            Self::BigInt(p) | Self::Timestamp(p, ..) => p.push_copy(from),
            Self::Float(p) => p.push_copy(from),
            Self::Double(p) => p.push_copy(from),
            Self::Decimal(p, ..) => p.push_copy(from),
            Self::String(b) | Self::Binary(b) => b.push_copy(from),
            Self::Date(p) => p.push_copy(from),
            Self::Time(p) => p.push_copy(from),
            Self::Months(p) => p.push_copy(from),
            Self::Millis(p) => p.push_copy(from),
            Self::List(ends, element) => {
                for i in ends.range(from) {
                    element.push_copy(i);
                }
                ends.push_as(from, element.len());
            }
            Self::Map(ends, key, value) => {
                for i in ends.range(from) {
                    key.push_copy(i);
                    value.push_copy(i);
                }
                ends.push_as(from, key.len());
            }
            Self::Row(nulls, fields) => {
                nulls.append(nulls.is_valid(from));
                for (_, field) in fields {
                    field.push_copy(from);
                }
            }
        }
    }

    /// Of the values from `first` on keeps those at `kept`, which ascend.
    pub fn retain_tail(&mut self, first: usize, kept: &[usize]) {
        match self {
            Self::Null(len) => *len = first + kept.len(),
            Self::Boolean(values, nulls) => {
                let saved: Vec<_> = kept
                    .iter()
                    .map(|i| (values.get_bit(*i), nulls.is_valid(*i)))
                    .collect();
                values.truncate(first);
                nulls.truncate(first);
                for (value, valid) in saved {
                    values.append(value);
                    nulls.append(valid);
                }
            }
            Self::TinyInt(p) => p.retain_tail(first, kept),
            Self::SmallInt(p) => p.retain_tail(first, kept),
            Self::Int(p) => p.retain_tail(first, kept),
            Self::BigInt(p) | Self::Timestamp(p, ..) => p.retain_tail(first, kept),
            Self::Float(p) => p.retain_tail(first, kept),
            Self::Double(p) => p.retain_tail(first, kept),
            Self::Decimal(p, ..) => p.retain_tail(first, kept),
            Self::String(b) | Self::Binary(b) => b.retain_tail(first, kept),
            Self::Date(p) => p.retain_tail(first, kept),
            Self::Time(p) => p.retain_tail(first, kept),
            Self::Months(p) => p.retain_tail(first, kept),
            Self::Millis(p) => p.retain_tail(first, kept),
            Self::List(ends, element) => {
                let (child, children) = ends.retain_tail(first, kept);
                element.retain_tail(child, &children);
            }
            Self::Map(ends, key, value) => {
                let (child, children) = ends.retain_tail(first, kept);
                key.retain_tail(child, &children);
                value.retain_tail(child, &children);
            }
            Self::Row(nulls, fields) => {
                let valid: Vec<_> = kept.iter().map(|i| nulls.is_valid(*i)).collect();
                nulls.truncate(first);
                for valid in valid {
                    nulls.append(valid);
                }
                for (_, field) in fields {
                    field.retain_tail(first, kept);
                }
            }
        }
    }

    /// The column, leaving the builder empty.
    ///
    /// # Errors
    /// When a string is not UTF-8 or children do not fit their parents: a bug of the decoder.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Self::Null(len) => Arc::new(NullArray::new(std::mem::take(len))),
            Self::Boolean(values, nulls) => {
                Arc::new(BooleanArray::new(values.finish(), nulls.finish()))
            }
            Self::TinyInt(p) => Arc::new(p.finish()),
            Self::SmallInt(p) => Arc::new(p.finish()),
            Self::Int(p) => Arc::new(p.finish()),
            Self::BigInt(p) => Arc::new(p.finish()),
            Self::Float(p) => Arc::new(p.finish()),
            Self::Double(p) => Arc::new(p.finish()),
            Self::Decimal(p, precision, scale) => {
                let scale = i8::try_from(*scale).unwrap_or(i8::MAX);
                Arc::new(p.finish().with_precision_and_scale(*precision, scale)?)
            }
            Self::String(b) => {
                let (offsets, data, nulls) = b.finish();
                Arc::new(StringArray::try_new(offsets, data.into(), nulls)?)
            }
            Self::Binary(b) => {
                let (offsets, data, nulls) = b.finish();
                Arc::new(BinaryArray::try_new(offsets, data.into(), nulls)?)
            }
            Self::Date(p) => Arc::new(p.finish()),
            Self::Time(p) => Arc::new(p.finish()),
            Self::Timestamp(p, unit, is_instant) => timestamps(&p.finish(), *unit, *is_instant),
            Self::Months(p) => Arc::new(p.finish()),
            Self::Millis(p) => Arc::new(p.finish()),
            Self::List(ends, element) => {
                let (offsets, nulls) = ends.finish();
                let values = element.finish()?;
                let field = Arc::new(Field::new("item", values.data_type().clone(), true));
                Arc::new(ListArray::try_new(field, offsets, values, nulls)?)
            }
            Self::Map(ends, key, value) => {
                let (offsets, nulls) = ends.finish();
                map(offsets, nulls, key.finish()?, value.finish()?)?
            }
            Self::Row(nulls, fields) => {
                let length = nulls.len();
                let nulls = nulls.finish();
                let mut columns = Vec::with_capacity(fields.len());
                let mut arrow_fields = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    let column = field.finish()?;
                    let t = column.data_type().clone();
                    arrow_fields.push(Field::new(name.as_str(), t, true));
                    columns.push(column);
                }
                Arc::new(StructArray::try_new_with_length(
                    arrow_fields.into(),
                    columns,
                    nulls,
                    length,
                )?)
            }
        })
    }
}

fn timestamps(values: &PrimitiveArray<Int64Type>, unit: TimeUnit, is_instant: bool) -> ArrayRef {
    let zone = is_instant.then(|| Arc::<str>::from(UTC));
    let nulls = arrow::array::Array::nulls(values).cloned();
    let values = values.values().clone();
    match unit {
        TimeUnit::Microsecond => {
            Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone_opt(zone))
        }
        TimeUnit::Nanosecond => {
            Arc::new(TimestampNanosecondArray::new(values, nulls).with_timezone_opt(zone))
        }
        _ => Arc::new(TimestampMillisecondArray::new(values, nulls).with_timezone_opt(zone)),
    }
}

fn map(
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    keys: ArrayRef,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let fields = vec![
        Field::new("keys", keys.data_type().clone(), false),
        Field::new("values", values.data_type().clone(), true),
    ];
    let entries = StructArray::try_new(fields.into(), vec![keys, values], None)?;
    let field = Field::new(
        "entries",
        ArrowType::Struct(entries.fields().clone()),
        false,
    );
    Ok(Arc::new(MapArray::try_new(
        Arc::new(field),
        offsets,
        entries,
        nulls,
        false,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::data_type;

    #[test]
    fn arrays_have_the_arrow_type_of_their_flink_type() {
        for t in [
            "BOOLEAN",
            "DECIMAL(10, 2)",
            "TIMESTAMP(3)",
            "TIMESTAMP_LTZ(9)",
            "MAP<STRING, ARRAY<INT>>",
            "MULTISET<STRING>",
            "ROW<a INT, b ROW<c BYTES>>",
        ] {
            let t = data_type(t);
            let mut column = ColumnBuilder::new(&t);
            column.push_null();
            column.push_null();
            let array = column.finish().unwrap();
            assert_eq!(array.data_type(), &t.to_arrow());
            assert_eq!(array.null_count(), 2);
            assert!(column.is_empty());
        }
    }

    #[test]
    fn truncation_forgets_a_half_written_value() {
        let mut column = ColumnBuilder::new(&data_type("ARRAY<STRING>"));
        column.push_null();
        if let ColumnBuilder::List(_, element) = &mut column {
            let ColumnBuilder::String(s) = element.as_mut() else {
                panic!()
            };
            s.push(b"left over");
        }
        column.truncate(1);
        column.push_copy(0);
        let array = column.finish().unwrap();
        assert_eq!(array.len(), 2);
    }
}
